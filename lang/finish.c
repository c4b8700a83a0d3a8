/* finish.c — the last steps over finished code: last-use bits, writes of extents, sites; tables into the prototype. */
#include "lang/compiler.h"
#include "lang/flow.h"

#include <stdlib.h>
#include <string.h>

static bool has(const u64 *bits, u32 r) { return bits[r >> 6] >> (r & 63) & 1; }

/* ---- last uses ------------------------------------------------------------------------------------ */

static bool written(const InsUse *u, u32 r) {
  return (r - u->write) < u->write_count || (u->write_next && r == u->write + 2);
}

/* `after`: live behind pc on every edge but the handler's; an instruction that fails leaves its operands alone. */
static Ins with_deaths(const Proto *p, u32 pc, const u64 *after) {
  Ins ins = p->code[pc];
  u32 op = ins_op(ins), flags = ins_flags(ins);
  const char *form = bc_info[op].form, *effects = bc_info[op].effects;
  if (op == BC_checkarg || op == BC_jgiven) return ins;
  InsUse u;
  ins_uses(p, pc, &u);
  u32 a = ins_a(ins), b = ins_b(ins), c = ins_c(ins);
#define DIES(r) (!((r) & INS_CONST) && (!has(after, r) || written(&u, r)))
  bool run = u.run_count || strchr("n", form[2]);
  if (!run && (form[1] == 'r' || form[1] == 'k') && DIES(b)) flags |= INS_B_DIES;
  if (!run && (form[2] == 'r' || form[2] == 'k') && DIES(c)) flags |= INS_C_DIES;
  if (b == c && (flags & INS_C_DIES)) flags &= ~(u32)INS_B_DIES;
  if (form[0] == 'k' && strchr(effects, 'A') && DIES(a)) flags |= INS_A_DIES;
#undef DIES
  return ins_make_x(op, flags, a, ins_x(ins));
}

static bool mark_deaths(Proto *p, Allocator *alloc, Toil *t) {
  Liveness *l = liveness_within(p, alloc, t);
  if (!l) return false;
  u32 words = liveness_words(l);
  u64 *after = mem_alloc(alloc, sizeof *after * words * 2);
  if (after) {
    LiveWalk w;
    for (liveness_walk(l, &w, after, after + words); toil(t, 1) && liveness_back(&w);)
      p->code[w.pc] = with_deaths(p, w.pc, after);
    mem_free(alloc, after, sizeof *after * words * 2);
  }
  liveness_free(l);
  return after && !toil_ended(t);
}

/* ---- kills ---------------------------------------------------------------------------------------- */

/* At the end of its scope a variable is emptied, so that it holds no value which the program cannot reach any more
 * (and a later update would have to copy). Where it is empty already, on all paths, the instruction goes. */
typedef struct Held {
  const Liveness *l;
  const Proto *p;
  u64 *in;    /* per block: registers that may hold a counted value before it */
  u64 *state;
  bool changed;
} Held;

static void held_join(Held *h, u32 block, const u64 *mask) {
  u64 *in = h->in + (size_t)block * h->l->words;
  for (u32 w = 0; w < h->l->words; w++) {
    u64 with = in[w] | (h->state[w] & (mask ? mask[w] : ~(u64)0));
    h->changed |= with != in[w];
    in[w] = with;
  }
}

static bool makes_number(const Proto *p, Ins ins) {
  if (ins_op(ins) != BC_move || !(ins_b(ins) & INS_CONST)) return false;
  return p->consts[ins_b(ins) & ~(u32)INS_CONST].kind != CK_TEXT;
}

static void held_clear(Held *h, u32 r) { h->state[r >> 6] &= ~((u64)1 << (r & 63)); }

static void held_step(Held *h, u32 pc) {
  const Proto *p = h->p;
  Ins ins = p->code[pc];
  const char *effects = bc_info[ins_op(ins)].effects;
  u32 handler = h->l->handler[h->l->block_of[pc]], target;
  if (handler != UINT32_MAX && strchr(effects, 'E')) { /* what is not live there is emptied on the way */
    u32 block = h->l->block_of[handler]; /* which begins there */
    held_join(h, block, h->l->in + (size_t)block * h->l->words);
  }
  InsUse u;
  ins_uses(p, pc, &u);
  if (ins_flags(ins) & INS_A_DIES) held_clear(h, ins_a(ins));
  if (ins_flags(ins) & INS_B_DIES) held_clear(h, ins_b(ins));
  if (ins_flags(ins) & INS_C_DIES) held_clear(h, ins_c(ins));
  for (u32 i = 0; i < u.run_count; i++) held_clear(h, u.run + i);
  if (ins_jumps(ins, &target)) held_join(h, h->l->block_of[target], NULL);
  for (u32 i = 0; i < u.write_count + 2u * u.write_next; i++) {
    u32 r = u.write + i;
    if (makes_number(p, ins)) held_clear(h, r);
    else h->state[r >> 6] |= (u64)1 << (r & 63);
  }
}

/* Marks in `gone` the kills that find their register empty. False: it was to end. */
static bool useless_kills(Held *h, u8 *gone, Toil *t) {
  const Proto *p = h->p;
  for (u32 i = 0; i < p->nparams; i++) h->in[i >> 6] |= (u64)1 << (i & 63);
  do {
    h->changed = false;
    for (u32 b = 0; b < h->l->nblocks; b++) {
      if (!toil(t, 1 + h->l->starts[b + 1] - h->l->starts[b])) return false;
      memcpy(h->state, h->in + (size_t)b * h->l->words, sizeof(u64) * h->l->words);
      for (u32 pc = h->l->starts[b]; pc < h->l->starts[b + 1]; pc++) {
        gone[pc] = (ins_flags(p->code[pc]) & INS_KILL) && !has(h->state, ins_a(p->code[pc]));
        held_step(h, pc);
      }
      const char *effects = bc_info[ins_op(p->code[h->l->starts[b + 1] - 1])].effects;
      if (b + 1 < h->l->nblocks && !strchr(effects, 'B')) held_join(h, b + 1, NULL);
    }
  } while (h->changed);
  return true;
}

static void compact(Proto *p, const u8 *gone, u32 *moved) {
  u32 n = 0;
  for (u32 pc = 0; pc <= p->ncode; pc++) {
    moved[pc] = n;
    n += pc < p->ncode && !gone[pc];
  }
  for (u32 pc = 0; pc < p->ncode; pc++) {
    Ins ins = p->code[pc];
    u32 target, flags = ins_flags(ins) & ~(u32)INS_KILL;
    if (gone[pc]) continue;
    p->code[moved[pc]] = ins_make_x(ins_op(ins), flags, ins_a(ins),
                                    ins_jumps(ins, &target) ? moved[target] : ins_x(ins));
    p->spans[moved[pc]] = p->spans[pc];
  }
  p->ncode = n;
  for (u32 i = 0; i < p->nextents; i++) {
    Extent *e = &p->extents[i];
    e->begin = moved[e->begin];
    e->head = moved[e->head];
    e->els = moved[e->els];
    e->end = moved[e->end];
  }
  for (u32 i = 0; i < p->nlocals; i++) {
    LocalName *v = &p->locals[i];
    v->from = moved[v->from];
    if (v->until != UINT32_MAX) v->until = moved[v->until];
  }
}

static bool drop_kills(Proto *p, Allocator *alloc, Toil *t) {
  u32 kills = 0;
  for (u32 pc = 0; pc < p->ncode; pc++) kills += (ins_flags(p->code[pc]) & INS_KILL) != 0;
  if (!kills) return true;
  Liveness *l = liveness_within(p, alloc, t);
  if (!l) return false;
  size_t sets = sizeof(u64) * l->words * (l->nblocks + (size_t)1), pcs = p->ncode + (size_t)1;
  Held h = {.l = l, .p = p, .in = mem_alloc_zero(alloc, sets)};
  u8 *gone = mem_alloc(alloc, pcs);
  u32 *moved = mem_alloc(alloc, sizeof *moved * pcs);
  bool ok = h.in && gone && moved;
  if (ok) {
    h.state = h.in + (size_t)l->nblocks * l->words;
    ok = useless_kills(&h, gone, t);
    if (ok) compact(p, gone, moved);
  }
  mem_free(alloc, moved, sizeof *moved * pcs);
  mem_free(alloc, gone, pcs);
  mem_free(alloc, h.in, sets);
  liveness_free(l);
  return ok;
}

/* ---- writes of extents ---------------------------------------------------------------------------- */

static int finish_by_number(const void *x, const void *y) {
  u32 a = *(const u32 *)x, b = *(const u32 *)y;
  return a < b ? -1 : a > b;
}

typedef VEC(u32) Numbers;

static void sort_unique(Numbers *v, u32 first) {
  if (v->count - first < 2) return;
  qsort(v->data + first, v->count - first, sizeof *v->data, finish_by_number);
  u32 n = first + 1;
  for (u32 i = n; i < v->count; i++)
    if (v->data[i] != v->data[n - 1]) v->data[n++] = v->data[i];
  v->count = n;
}

static bool add_writes(const Proto *p, u32 pc, Numbers *out, Allocator *alloc) {
  Ins ins = p->code[pc];
  InsUse u;
  ins_uses(p, pc, &u);
  for (u32 i = 0; i < u.write_count; i++)
    if (!vec_push(alloc, out, u.write + i)) return false;
  if (u.write_next && !vec_push(alloc, out, u.write + 2)) return false;
  u32 slot = UINT32_MAX;
  if (ins_op(ins) == BC_setmod) slot = ins_x(ins);
  if (ins_op(ins) == BC_setpath && p->descs[ins_c(ins)].root == ROOT_MODULE) slot = p->descs[ins_c(ins)].root_slot;
  return slot == UINT32_MAX || vec_push(alloc, out, slot | WRITE_MODULE);
}

/* Children are done before their parents (they stand behind them), and hand on what they write. The function's own
 * list is left empty: it would say nothing that is not in the code. */
bool proto_writes(Proto *p, Allocator *alloc) {
  Numbers all = {0}, own = {0};
  u32 *next_child = mem_alloc(alloc, sizeof(u32) * (p->nextents + (size_t)1) * 2);
  bool ok = next_child;
  u32 *first_child = next_child + (next_child ? p->nextents : 0);
  for (u32 i = 0; ok && i < p->nextents; i++) first_child[i] = 0;
  for (u32 i = p->nextents; ok && i-- > 1;) {
    next_child[i] = first_child[p->extents[i].parent];
    first_child[p->extents[i].parent] = i;
  }
  for (u32 i = p->nextents; ok && i-- > 1;) {
    Extent *e = &p->extents[i];
    own.count = 0;
    u32 child = first_child[i];
    for (u32 pc = e->begin; ok && pc < e->end;) {
      if (child && p->extents[child].begin == pc) {
        const Extent *k = &p->extents[child];
        for (u32 w = 0; ok && w < k->write_count; w++) ok = vec_push(alloc, &own, all.data[k->write_first + w]);
        pc = k->end;
        child = next_child[child];
      } else {
        ok = add_writes(p, pc++, &own, alloc);
      }
    }
    sort_unique(&own, 0);
    e->write_first = all.count;
    e->write_count = own.count;
    for (u32 w = 0; ok && w < own.count; w++) ok = vec_push(alloc, &all, own.data[w]);
  }
  if (ok && all.count) {
    p->writes = arena_alloc(&p->arena, sizeof(u32) * all.count);
    ok = p->writes;
    if (ok) memcpy(p->writes, all.data, sizeof(u32) * all.count);
    p->nwrites = ok ? all.count : 0;
  }
  mem_free(alloc, next_child, sizeof(u32) * (p->nextents + (size_t)1) * 2);
  vec_free(alloc, &all);
  vec_free(alloc, &own);
  return ok;
}

/* ---- all ------------------------------------------------------------------------------------------ */

bool proto_finish(FnState *fs) {
  Proto *p = fs->proto;
  Allocator *alloc = fs->c->o->alloc;
  Toil *t = fs->c->o->toil;
  if (fs->extents.count) fs->extents.data[0].els = fs->extents.data[0].end = here(fs);
#define TABLE(field, nfield, vec)                                          \
  p->field = proto_copy(fs, (vec).data, sizeof *(vec).data * (vec).count); \
  p->nfield = (vec).count
  TABLE(code, ncode, fs->code);
  TABLE(spans, ncode, fs->spans);
  TABLE(consts, nconsts, fs->consts);
  TABLE(descs, ndescs, fs->descs);
  TABLE(extents, nextents, fs->extents);
  TABLE(protos, nprotos, fs->protos);
  TABLE(locals, nlocals, fs->local_names);
#undef TABLE
  return !fs->c->failed && mark_deaths(p, alloc, t) && drop_kills(p, alloc, t) && proto_sites(p) &&
         proto_writes(p, alloc);
}
