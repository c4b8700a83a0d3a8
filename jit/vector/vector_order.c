/* vector_order.c — the order of vector instructions in long straight pieces of AVX2 code (vector_emitter.h).
 *
 * A processor looks some hundred instructions ahead. Function after function, copy after copy, most of what it sees
 * there waits for one another; so the instruction comes next that most others wait for, of those that end a life, so
 * that registers suffice, if there are any. Where they do not, what is read last goes to the frame, and comes back
 * when it is read more than once from there on. What is not computed on vectors alone stays where it is. */
#include <string.h>

#include "jit/vector/vector_emitter.h"

enum { PIECE_LEAST = 72, ROOM = 13 };

typedef struct Reg {
  u32 uses, makers; /* instructions that read it and have no place yet; that make it */
  u32 height;       /* of the longest chain of instructions that wait for it */
  u32 waiting;      /* the latest instruction that waits for it, 1 + its number */
  VReg now, slot;   /* what holds it: 0: the frame alone; where it lies in the frame */
  u32 seen;         /* 0: not held; by the latest look ahead, or an earlier one */
  bool pending;     /* will be made, in the piece at hand */
} Reg;

typedef struct Order {
  VecFn *f;
  Reg *regs;
  u32 *next;  /* per instruction of the piece: 1 + number of another that waits for the same */
  u32 *ready; /* those that wait for nothing */
  u32 count;
  VReg held[ROOM]; /* made in the piece at hand, in registers */
  u32 holds, seen;
} Order;

static u32 reads_of(const VIns *i, VReg out[4]) {
  u32 n = 0;
  if (i->a) out[n++] = i->a;
  if (i->b && i->b != i->a) out[n++] = i->b;
  if (i->c && i->c != i->a && i->c != i->b) out[n++] = i->c;
  if (i->mask && i->mask != i->a && i->mask != i->b && i->mask != i->c) out[n++] = i->mask;
  return n;
}

/* What asks for a general register that another instruction may write: P_RARE does. */
static bool asks_scratch(const VIns *i) {
  if (i->op == V_MOVQ_GPR || i->op == V_MOVD_GPR) return true;
  return i->mem.used && !i->mem.pool && (i->mem.base <= RDX || i->mem.index <= RDX);
}

static bool moves(const Order *o, const VIns *i) {
  return i->op == G_NOTHING || (has_vregs(i) && i->dst && o->regs[i->dst].makers == 1 && !asks_scratch(i));
}

static void learn_lives(Order *o) {
  for (u32 k = o->f->ins.count; k-- > 0;) {
    const VIns *i = &o->f->ins.data[k];
    VReg reads[4];
    if (!has_vregs(i)) continue;
    Reg *made = &o->regs[i->dst];
    made->makers++;
    for (u32 n = reads_of(i, reads); n-- > 0;) {
      Reg *r = &o->regs[reads[n]];
      r->uses++;
      if (i->dst && r->height <= made->height) r->height = made->height + 1;
    }
  }
}

static void wait_or_join(Order *o, const VIns *piece, u32 k) {
  VReg reads[4];
  for (u32 n = reads_of(&piece[k], reads); n-- > 0;) {
    Reg *r = &o->regs[reads[n]];
    if (!r->pending) continue;
    o->next[k] = r->waiting;
    r->waiting = k + 1;
    return;
  }
  o->ready[o->count++] = k;
}

/* How soon: those that end a life, then those that most wait for, then those that stood first. */
static u64 rank(const Order *o, const VIns *i, u32 k) {
  const Reg *r = o->regs;
  bool ends = !i->dst | (r[i->a].uses == 1) | (r[i->b].uses == 1) | (r[i->c].uses == 1) | (r[i->mask].uses == 1);
  return (u64)ends << 63 | (u64)r[i->dst].height << 32 | (UINT32_MAX - k);
}

static void order_piece(Order *o, VIns *to, VIns *piece, u32 count) {
  VReg reads[4];
  memcpy(piece, to, sizeof *piece * count);
  for (u32 k = 0; k < count; k++) o->regs[piece[k].dst].pending = piece[k].dst != 0;
  for (u32 k = 0; k < count; k++) wait_or_join(o, piece, k);
  for (; o->count; to++) {
    u64 best = 0;
    u32 at = 0;
    for (u32 n = 0; n < o->count; n++) {
      u64 r = rank(o, &piece[o->ready[n]], o->ready[n]);
      if (r > best) best = r, at = n;
    }
    *to = piece[o->ready[at]];
    o->ready[at] = o->ready[--o->count];
    for (u32 n = reads_of(to, reads); n-- > 0;) o->regs[reads[n]].uses--;
    Reg *made = &o->regs[to->dst];
    made->pending = false;
    for (u32 k = made->waiting, after; k; k = after) {
      after = o->next[k - 1];
      wait_or_join(o, piece, k - 1);
    }
  }
  for (u32 k = 0; k < count; k++)
    for (u32 n = reads_of(&piece[k], reads); n-- > 0;) o->regs[reads[n]].uses++;
}

static void drop(Order *o, VReg v) {
  if (!o->regs[v].seen) return;
  o->regs[v].seen = 0;
  for (u32 n = 0; n < o->holds; n++)
    if (o->held[n] == v) o->held[n] = o->held[--o->holds];
}

/* Room for a register that is written at `i`: what is read last, from there on, goes to the frame. */
static void hold(Order *o, const VIns *i, const VIns *end, VReg v) {
  if (o->holds == ROOM) {
    VReg reads[4], out = 0;
    u32 left = ROOM;
    for (o->seen++; i < end && left; i++)
      for (u32 n = reads_of(i, reads); n-- > 0;) {
        Reg *r = &o->regs[reads[n]];
        if (r->seen && r->seen != o->seen) r->seen = o->seen, left--, out = reads[n];
      }
    for (u32 n = 0; n < ROOM && left; n++)
      if (o->regs[o->held[n]].seen != o->seen) out = o->held[n];
    Reg *r = &o->regs[out];
    if (!r->slot) {
      r->slot = new_vec(o->f);
      VInfo *s = &o->f->regs.data[r->slot];
      s->place = VP_SLOT;
      s->at = (u32)frame_room(o->f, 32, 32);
      put(o->f, (VIns){.op = P_COPY, .dst = r->slot, .a = r->now});
    }
    r->now = 0;
    drop(o, out);
  }
  o->held[o->holds++] = v;
  o->regs[v].seen = 1;
}

static VReg name_of(const Order *o, VReg v) { return o->regs[v].now ? o->regs[v].now : o->regs[v].slot; }

/* An instruction goes to its place; of a piece that ends at `end`: NULL: of none. */
static void put_next(Order *o, const VIns *i, const VIns *end) {
  VIns copy = *i;
  VReg reads[4];
  if (has_vregs(i)) {
    u32 some = reads_of(i, reads);
    for (u32 n = 0; n < some && end; n++) {
      Reg *r = &o->regs[reads[n]];
      if (r->now || r->uses < 2) continue;
      hold(o, i, end, reads[n]);
      r->now = new_vec(o->f);
      put(o->f, (VIns){.op = P_COPY, .dst = r->now, .a = r->slot});
    }
    for (u32 n = 0; n < some; n++)
      if (!--o->regs[reads[n]].uses) drop(o, reads[n]);
    if (i->dst && end) hold(o, i, end, i->dst);
    copy.a = name_of(o, i->a);
    copy.b = name_of(o, i->b);
    copy.c = name_of(o, i->c);
    copy.mask = name_of(o, i->mask);
  }
  put(o->f, copy);
}

static void put_piece(Order *o, const VIns *piece, u32 count) {
  for (u32 k = 0; k < count; k++) put_next(o, &piece[k], piece + count);
  while (o->holds) { /* what came back is there in this piece alone: the next one may be run without it */
    Reg *r = &o->regs[o->held[--o->holds]];
    if (r->slot) r->now = 0;
    r->seen = 0;
  }
}

void order_instructions(VecFn *f) {
  u32 count = f->ins.count, reg_count = f->regs.count;
  size_t regs = sizeof(Reg) * reg_count, all = sizeof(VIns) * count, list = sizeof(u32) * count;
  u32 *places = mem_alloc(f->alloc, list); /* where what is in no piece goes */
  Order o = {.f = f, .seen = 1, .regs = mem_alloc_zero(f->alloc, regs), .ready = mem_alloc(f->alloc, list)};
  VIns *was = mem_alloc(f->alloc, all), *piece = mem_alloc(f->alloc, all);
  if (o.regs && places && o.ready && was && piece) {
    learn_lives(&o);
    /* a constant's life does not end */
    for (VReg v = 0; v < reg_count; v++)
      o.regs[v].now = v, o.regs[v].uses += f->regs.data[v].place == VP_POOL ? UINT32_MAX / 2 : 0;
    memcpy(was, f->ins.data, all);
    f->ins.count = 0;
    for (u32 first, k = 0; k < count; k++) {
      for (first = k; k < count && moves(&o, &was[k]); k++) {}
      o.next = places + first;
      if (k - first >= PIECE_LEAST)
        order_piece(&o, was + first, piece, k - first), put_piece(&o, was + first, k - first);
      else
        for (; first < k; first++) put_next(&o, &was[first], NULL);
      if (k == count) break;
      places[k] = f->ins.count;
      put_next(&o, &was[k], NULL);
    }
    for (u32 s = 0; s < f->spans.count; s++)
      f->spans.data[s] = (VSpan){places[f->spans.data[s].first], places[f->spans.data[s].last]};
  } else {
    refuse(f, "out of memory");
  }
  mem_free(f->alloc, o.regs, regs);
  mem_free(f->alloc, places, list);
  mem_free(f->alloc, o.ready, list);
  mem_free(f->alloc, was, all);
  mem_free(f->alloc, piece, all);
}
