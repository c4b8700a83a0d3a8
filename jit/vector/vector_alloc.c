/* vector_alloc.c — instructions over virtual registers, and which machine register each of these gets
 * (vector_emitter.h).
 *
 * One scan over the instructions. A register's life goes from its first to its last mention, and to the end of every
 * loop that it enters alive. Where registers run out, the life that is used least for its length goes to the frame,
 * as a whole. Constants stay in memory, where instructions can read them; registers that nobody got keep the most
 * used of them. */
#include <string.h>

#include "jit/vector/vector_emitter.h"

void refuse(VecFn *f, const char *why) {
  if (!f->why) f->why = why;
  f->failed = true;
}

static VReg new_reg(VecFn *f, VInfo i) {
  i.first = UINT32_MAX;
  if (!vec_push(f->alloc, &f->regs, i)) return refuse(f, "out of memory"), 0;
  return f->regs.count - 1;
}

VReg new_vec(VecFn *f) { return new_reg(f, (VInfo){0}); }
VReg new_mask(VecFn *f) { return new_reg(f, (VInfo){.mask = 1}); }

static VReg pool_reg(VecFn *f, const void *from, u32 length, u32 bytes) {
  return new_reg(f, (VInfo){.place = VP_POOL, .at = asm_append(&f->as, from, length), .bytes = (u8)bytes});
}

VReg new_const(VecFn *f, u64 bits, u32 bytes) {
  u8 all[32];
  u32 at = (u32)((bits ^ bytes) * 0x9E3779B97F4A7C15u >> 56), tries = 0;
  VConst *c = &f->consts[at & (CONST_PLACES - 1)];
  for (; tries < 8 && c->bytes; tries++, c = &f->consts[(at + tries) & (CONST_PLACES - 1)])
    if (c->bits == bits && c->bytes == bytes) return c->reg;
  for (u32 i = 0; i < sizeof all; i += bytes) memcpy(all + i, &bits, bytes);
  VReg r = pool_reg(f, all, f->evex ? bytes : sizeof all, bytes);
  if (!c->bytes) *c = (VConst){bits, bytes, r};
  return r;
}

void learn(VecFn *f, VFact fact) { f->facts[fact.of & (FACTS_MOST - 1)] = fact; }

const VFact *fact_of(const VecFn *f, VReg v) {
  const VFact *fact = &f->facts[v & (FACTS_MOST - 1)];
  return v && fact->of == v ? fact : NULL;
}

VReg new_pool(VecFn *f, const void *bytes) { return pool_reg(f, bytes, f->evex ? 64 : 32, 0); }

VIns *put(VecFn *f, VIns i) {
  bool half = i.op == V_CVTPH2PS || i.op == V_CVTPS2PH;
  if (half && !f->evex && !cpu_has(CPU_F16C)) refuse(f, "a half on a processor without F16C");
  if (f->failed || !toil(f->fn->module->toil, 2) || !vec_push(f->alloc, &f->ins, i)) {
    refuse(f, "out of memory");
    return &f->nowhere;
  }
  return &f->ins.data[f->ins.count - 1];
}

i32 frame_room(VecFn *f, u32 bytes, u32 align) {
  f->frame = (f->frame + align - 1) & ~(align - 1);
  u32 at = f->frame;
  f->frame += bytes;
  return (i32)at;
}

/* ---- instructions -------------------------------------------------------------------------- */

VReg v_rm(VecFn *f, VecOp op, u8 length, VReg a) { return v_rmi(f, op, length, a, 0); }
VReg v_rmi(VecFn *f, VecOp op, u8 length, VReg a, u8 imm) {
  VReg d = new_vec(f);
  put(f, (VIns){.op = (u16)op, .length = length, .dst = d, .a = a, .imm = imm});
  return d;
}
VReg v_rvm(VecFn *f, VecOp op, u8 length, VReg a, VReg b) { return v_rvmi(f, op, length, a, b, 0); }
static bool commutes(VecOp op) {
  switch (op) {
    case V_ADDPS: case V_ADDPD: case V_MULPS: case V_MULPD: case V_ANDPS: case V_ANDPD: case V_ORPS: case V_ORPD:
    case V_XORPS: case V_XORPD:
    case V_PADDD: case V_PADDQ: case V_PMULLD: case V_PMULLQ: case V_PMULUDQ: case V_PMINSD: case V_PMINSQ:
    case V_PMINUD: case V_PMINUQ:
    case V_PMAXSD: case V_PMAXSQ: case V_PMAXUD: case V_PMAXUQ: case V_PADDB: case V_PMINUB: case V_PMAXUB:
    case V_PMINSB: case V_PMAXSB: case V_PADDW: case V_PMULLW: case V_PMULHUW: case V_PMINUW: case V_PMAXUW:
    case V_PMINSW: case V_PMAXSW: return true;
    default: return false;
  }
}
VReg v_rvmi(VecFn *f, VecOp op, u8 length, VReg a, VReg b, u8 imm) {
  VReg d = new_vec(f);
  put(f, (VIns){.op = (u16)op, .length = length, .dst = d, .a = a, .b = b, .imm = imm, .commutes = commutes(op)});
  return d;
}
VReg v_compare(VecFn *f, VecOp op, u8 length, VReg a, VReg b, u8 imm) {
  VReg d = new_mask(f);
  put(f, (VIns){.op = (u16)op, .length = length, .dst = d, .a = a, .b = b, .imm = imm});
  return d;
}
VReg v_masked(VecFn *f, VecOp op, u8 length, VReg mask, VReg old, VReg a, VReg b) {
  VReg d = new_vec(f);
  put(f, (VIns){.op = (u16)op, .length = length, .dst = d, .a = a, .b = b, .c = old, .mask = mask,
                .flags = VI_TIED | VI_EARLY});
  return d;
}
VReg v_mask_op(VecFn *f, MaskOp op, VReg a, VReg b) {
  VReg d = new_mask(f);
  put(f, (VIns){.op = (u16)(M_FIRST + op), .dst = d, .a = a, .b = b});
  return d;
}
VReg v_load(VecFn *f, VecOp op, u8 length, VecMem m) {
  VReg d = new_vec(f);
  put(f, (VIns){.op = (u16)op, .length = length, .dst = d, .mem = m});
  return d;
}
void v_save(VecFn *f, VecOp op, u8 length, VecMem m, VReg a) {
  put(f, (VIns){.op = (u16)op, .length = length, .mem = m, .a = a});
}
void g_load(VecFn *f, u32 dst, u32 base, i32 disp) {
  put(f, (VIns){.op = G_LOAD, .dst = dst, .mem = mem_at(base, disp)});
}
void g_save(VecFn *f, u32 base, i32 disp, u32 src) {
  put(f, (VIns){.op = G_SAVE, .a = src, .mem = mem_at(base, disp)});
}
void g_alu(VecFn *f, u32 alu, u32 dst, u32 src) { put(f, (VIns){.op = G_ALU, .imm = (u8)alu, .dst = dst, .a = src}); }
void g_alu_load(VecFn *f, u32 alu, u32 dst, u32 base, i32 disp) {
  put(f, (VIns){.op = G_ALU_LOAD, .imm = (u8)alu, .dst = dst, .mem = mem_at(base, disp)});
}
void g_imul_imm(VecFn *f, u32 dst, i64 x) { put(f, (VIns){.op = G_IMUL_IMM, .dst = dst, .a = dst, .x = (u64)x}); }
void g_mov(VecFn *f, u32 dst, u32 src) { put(f, (VIns){.op = G_MOV, .dst = dst, .a = src}); }
void g_imm(VecFn *f, u32 dst, u64 v) { put(f, (VIns){.op = G_IMM, .dst = dst, .x = v}); }
void g_alu_imm(VecFn *f, u32 alu, u32 dst, i64 v) {
  if (v == (i32)v) {
    put(f, (VIns){.op = G_ALU_IMM, .imm = (u8)alu, .dst = dst, .x = (u64)v});
    return;
  }
  g_imm(f, RDX, (u64)v);
  g_alu(f, alu, dst, RDX);
}
u32 g_label(VecFn *f) { return asm_label(&f->as); }
void g_put(VecFn *f, u32 label) { put(f, (VIns){.op = G_LABEL, .x = label}); }
void g_jcc(VecFn *f, u32 cc, u32 label) { put(f, (VIns){.op = G_JCC, .imm = (u8)cc, .x = label}); }
void g_jump(VecFn *f, u32 label) { put(f, (VIns){.op = G_JUMP, .x = label}); }

/* ---- lives --------------------------------------------------------------------------------- */

static void use(VecFn *f, const VIns *i, u32 more) {
  VInfo *r = f->regs.data;
  r[i->a].weight += more;
  r[i->b].weight += more;
  r[i->c].weight += more;
  r[i->mask].weight += more;
}

/* Drops what nothing uses: comparisons that became a minimum, conditions that were not needed narrow. */
static void drop_unused(VecFn *f) {
  for (u32 k = 0; k < f->ins.count; k++)
    if (has_vregs(&f->ins.data[k])) use(f, &f->ins.data[k], 1);
  for (u32 k = f->ins.count; k-- > 0;) {
    VIns *i = &f->ins.data[k];
    if (!has_vregs(i) || !i->dst || i->op == P_RARE || f->regs.data[i->dst].weight) continue;
    use(f, i, UINT32_MAX);
    *i = (VIns){.op = G_NOTHING};
  }
  for (VReg v = 0; v < f->regs.count; v++) f->regs.data[v].weight = 0;
}

static void mention(VecFn *f, VReg r, u32 at, u32 weight) {
  if (!r) return;
  VInfo *v = &f->regs.data[r];
  if (v->first == UINT32_MAX) v->first = at;
  v->last = at;
  v->weight += weight;
}

static void find_lives(VecFn *f) {
  for (u32 i = 0; i < f->ins.count; i++) {
    const VIns *v = &f->ins.data[i];
    if (!has_vregs(v)) continue;
    u32 depth = 0; /* spans around i */
    for (u32 s = 0; s < f->spans.count; s++)
      depth += i - f->spans.data[s].first <= f->spans.data[s].last - f->spans.data[s].first;
    u32 weight = depth == 0 ? 1 : depth == 1 ? 10 : 100;
    mention(f, v->a, i, weight);
    mention(f, v->b, i, weight);
    mention(f, v->c, i, weight);
    mention(f, v->mask, i, weight);
    mention(f, v->dst, i, weight);
  }
  for (u32 s = 0; s < f->spans.count; s++) { /* inner loops come first */
    VSpan span = f->spans.data[s];
    for (u32 i = span.first; i <= span.last && i < f->ins.count; i++) {
      const VIns *v = &f->ins.data[i];
      if (!has_vregs(v)) continue;
      VReg all[5] = {v->a, v->b, v->c, v->mask, v->dst};
      for (u32 k = 0; k < 5; k++) {
        VInfo *r = &f->regs.data[all[k]];
        if (all[k] && r->first < span.first && r->last < span.last) r->last = span.last;
      }
    }
  }
}

/* ---- the scan ------------------------------------------------------------------------------ */

typedef struct Pool { /* one class of registers */
  VReg owner[32];
  bool used[32];
  u32 first, count;
} Pool;

static bool is_free(const VecFn *f, VReg owner, u32 at, bool early) {
  return !owner || f->regs.data[owner].last < at || (!early && f->regs.data[owner].last == at);
}

static f64 cost_of(const VInfo *v) { return (f64)v->weight / (f64)(v->last - v->first + 1); }

static void alloc_give(VecFn *f, Pool *p, const VIns *i, u32 at) {
  VInfo *d = &f->regs.data[i->dst];
  bool early = i->flags & VI_EARLY;
  u32 found = UINT32_MAX;
  VReg wish[3] = {i->c, i->a, i->b};
  for (u32 k = 0; k < 3 && found == UINT32_MAX; k++) { /* what dies here, first what dst begins as */
    if (!wish[k] || f->regs.data[wish[k]].mask != d->mask || f->regs.data[wish[k]].place != VP_REG ||
        f->regs.data[wish[k]].last != at)
      continue;
    if (early && (k > 0 || !(i->flags & VI_TIED) || i->c == i->a || i->c == i->b)) continue;
    if (p->owner[f->regs.data[wish[k]].phys] == wish[k]) found = f->regs.data[wish[k]].phys;
  }
  for (u32 r = p->first; r < p->first + p->count && found == UINT32_MAX; r++)
    if (is_free(f, p->owner[r], at, early)) found = r;
  if (found == UINT32_MAX) { /* the cheapest goes to the frame */
    u32 cheapest = UINT32_MAX;
    f64 least = cost_of(d);
    for (u32 r = p->first; r < p->first + p->count; r++) {
      VReg o = p->owner[r];
      if (o == i->a || o == i->b || o == i->c || o == i->mask || cost_of(&f->regs.data[o]) >= least) continue;
      least = cost_of(&f->regs.data[o]);
      cheapest = r;
    }
    VInfo *out = cheapest == UINT32_MAX ? d : &f->regs.data[p->owner[cheapest]];
    out->place = VP_SLOT;
    out->at = (u32)frame_room(f, out->mask ? 8 : f->evex ? 64 : 32, out->mask ? 8 : f->evex ? 64 : 32);
    if (cheapest == UINT32_MAX) return;
    found = cheapest;
  }
  d->place = VP_REG;
  d->phys = (u8)found;
  p->owner[found] = i->dst;
  p->used[found] = true;
}

/* Registers nobody got keep the constants that loops use most. */
static void keep_constants(VecFn *f, Pool *p) {
  VReg most[COUNT_OF(p->owner)]; /* in falling order of their weights */
  u32 count = 0, room = 0;
  for (u32 r = p->first; r < p->first + p->count; r++) room += !p->used[r];
  for (VReg v = 1; v < f->regs.count && room; v++) {
    const VInfo *i = &f->regs.data[v];
    if (i->place != VP_POOL || i->weight < 20 || i->first == UINT32_MAX) continue;
    if (count == room && f->regs.data[most[count - 1]].weight >= i->weight) continue;
    u32 at = count < room ? count++ : count - 1;
    for (; at && f->regs.data[most[at - 1]].weight < i->weight; at--) most[at] = most[at - 1];
    most[at] = v;
  }
  for (u32 r = p->first, k = 0; k < count; r++) {
    if (p->used[r]) continue;
    VInfo *i = &f->regs.data[most[k]];
    i->place = VP_REG;
    i->phys = (u8)r;
    i->first = 0; /* marks it: encode loads it at the beginning */
    p->used[r] = true;
    if (!vec_push(f->alloc, &f->kept, most[k++])) refuse(f, "out of memory");
  }
}

bool give_registers(VecFn *f) {
  Pool vectors = {.first = 0, .count = f->evex ? 30 : 14}, masks = {.first = 1, .count = 5};
  drop_unused(f);
  if (!f->evex) order_instructions(f);
  find_lives(f);
  for (u32 i = 0; i < f->ins.count && !f->failed; i++) {
    const VIns *v = &f->ins.data[i];
    if (!toil(f->fn->module->toil, 1)) refuse(f, "the compilation was stopped");
    if (!has_vregs(v) || !v->dst) continue;
    VInfo *d = &f->regs.data[v->dst];
    if (d->first == i && d->place == VP_REG) alloc_give(f, d->mask ? &masks : &vectors, v, i);
  }
  keep_constants(f, &vectors);
  return !f->failed;
}
