/* vector_asm.c — VEX, EVEX and general encodings (see vector_asm.h). */
#include "jit/vector/vector_asm.h"

#include <string.h>

const VecOpInfo vec_op_info[V_COUNT] = {
#define VOP(NAME, text, map, prefix, vex_w, evex_w, opcode, form, digit, enc, element) \
  [V_##NAME] = {text, map, prefix, vex_w, evex_w, opcode, VF_##form, digit, VE_##enc, element},
#include "jit/vector/vector.def"
};
const MaskOpInfo mask_op_info[K_COUNT] = {
#define KOP(NAME, text, prefix, w, l, opcode, form) [K_##NAME] = {text, prefix, w, l, opcode, KF_##form},
#include "jit/vector/vector.def"
};

void asm_init(Asm *a, Allocator *alloc, bool evex) { *a = (Asm){.alloc = alloc, .evex = evex}; }

void asm_free(Asm *a) {
  vec_free(a->alloc, &a->code);
  vec_free(a->alloc, &a->pool);
  vec_free(a->alloc, &a->fixes);
  vec_free(a->alloc, &a->labels);
}

static void byte(Asm *a, u32 b) {
  if (!vec_push(a->alloc, &a->code, (u8)b)) a->failed = true;
}

static void word(Asm *a, u32 v) {
  for (u32 i = 0; i < 4; i++) byte(a, v >> 8 * i);
}

static void fix(Asm *a, u32 to, bool pool) {
  AsmFix f = {.at = a->code.count, .to = to, .pool = pool};
  if (!vec_push(a->alloc, &a->fixes, f)) a->failed = true;
  word(a, 0);
}

u32 asm_label(Asm *a) {
  if (!vec_push(a->alloc, &a->labels, UINT32_MAX)) {
    a->failed = true;
    return 0;
  }
  return a->labels.count - 1;
}

void asm_put(Asm *a, u32 label) {
  if (!a->failed) a->labels.data[label] = a->code.count;
}

u32 asm_append(Asm *a, const void *bytes, u32 length) {
  while (a->pool.count % length)
    if (!vec_push(a->alloc, &a->pool, 0)) return a->failed = true, 0;
  u32 at = a->pool.count;
  for (u32 i = 0; i < length; i++)
    if (!vec_push(a->alloc, &a->pool, ((const u8 *)bytes)[i])) return a->failed = true, 0;
  return at;
}

u32 asm_pool_at(const Asm *a) { return (a->code.count + 63) & ~63u; }

bool asm_finish(Asm *a) {
  for (u32 i = 0; !a->failed && i < a->fixes.count; i++) {
    AsmFix f = a->fixes.data[i];
    u32 to = f.pool ? asm_pool_at(a) + f.to : a->labels.data[f.to];
    u32 v = to - (f.at + 4 + f.extra);
    memcpy(a->code.data + f.at, &v, 4);
  }
  return !a->failed;
}

/* ---- operands ------------------------------------------------------------------------------ */

/* ModRM, SIB, displacement of a memory operand; `tail`: immediate bytes that follow. */
static void memory(Asm *a, u32 reg, const VecMem *m, u32 tail) {
  if (m->pool) {
    byte(a, (reg & 7) << 3 | 5);
    fix(a, (u32)m->disp, true);
    if (!a->failed) a->fixes.data[a->fixes.count - 1].extra = tail;
    return;
  }
  bool sib = m->index != NO_INDEX || (m->base & 7) == RSP;
  u32 mod = m->disp == 0 && (m->base & 7) != RBP ? 0 : 2;
  byte(a, mod << 6 | (reg & 7) << 3 | (sib ? 4 : m->base & 7));
  if (sib) byte(a, (u32)m->scale << 6 | (m->index == NO_INDEX ? 4u : m->index & 7u) << 3 | (m->base & 7));
  if (mod) word(a, (u32)m->disp);
}

/* Bits of the registers of a memory operand, 1 where the register is one of the upper eight. */
static u32 base_bit(const VecMem *m) { return m->pool ? 0 : m->base >> 3 & 1u; }
static u32 index_bit(const VecMem *m) { return m->pool || m->index == NO_INDEX ? 0 : m->index >> 3 & 1u; }

static void vex(Asm *a, u32 map, u32 prefix, u32 w, u32 l, u32 reg, u32 v, u32 x, u32 b) {
  u32 r = reg >> 3 & 1;
  if (map == 1 && !w && !x && !b) {
    byte(a, 0xC5);
    byte(a, (r ^ 1) << 7 | (~v & 15) << 3 | l << 2 | prefix);
    return;
  }
  byte(a, 0xC4);
  byte(a, (r ^ 1) << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | map);
  byte(a, w << 7 | (~v & 15) << 3 | l << 2 | prefix);
}

static void evex(Asm *a, const VecOpInfo *o, const VecIns *i, u32 reg, u32 v, u32 x, u32 b, u32 v5) {
  byte(a, 0x62);
  byte(a, ((reg >> 3 & 1) ^ 1) << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | ((reg >> 4 & 1) ^ 1) << 4 | o->map);
  byte(a, (u32)o->evex_w << 7 | (~v & 15) << 3 | 4 | o->prefix);
  byte(a,
       (u32)i->zero << 7 | (u32)i->length << 5 | (u32)(i->mem.used && i->mem.broadcast) << 4 | (v5 ^ 1) << 3 | i->mask);
}

void asm_vec(Asm *a, const VecIns *i) {
  const VecOpInfo *o = &vec_op_info[i->op];
  u32 reg = 0, v = 0, rm = 0, tail = 0;
  switch (o->form) {
    case VF_RVMI:
    case VF_KRVMI: tail = 1; reg = i->dst, v = i->a, rm = i->b; break;
    case VF_RVM:
    case VF_KRVM: reg = i->dst, v = i->a, rm = i->b; break;
    case VF_RVMR: tail = 1; reg = i->dst, v = i->a, rm = i->b; break;
    case VF_RMI: tail = 1; reg = i->dst, rm = i->a; break;
    case VF_RM:
    case VF_RK:
    case VF_GATHER: reg = i->dst, rm = i->a; break;
    case VF_MRI: tail = 1; reg = i->a, rm = i->dst; break;
    case VF_MR:
    case VF_SCATTER: reg = i->a, rm = i->dst; break;
    case VF_VMI: tail = 1; reg = o->digit, v = i->dst, rm = i->a; break;
    default: break;
  }
  bool wide = o->enc == VE_E || (o->enc == VE_B && a->evex);
  u32 x = i->mem.used ? index_bit(&i->mem) : wide ? rm >> 4 & 1 : 0, b = i->mem.used ? base_bit(&i->mem) : rm >> 3 & 1;
  u32 v5 = i->mem.used && i->mem.vector_index ? i->mem.index >> 4 & 1u : v >> 4 & 1;
  if (wide) evex(a, o, i, reg, v, x, b, v5);
  else vex(a, o->map, o->prefix, o->vex_w, i->length, reg, v, x, b);
  byte(a, o->opcode);
  if (i->mem.used) memory(a, reg, &i->mem, tail);
  else byte(a, 0xC0 | (reg & 7) << 3 | (rm & 7));
  if (o->form == VF_RVMR) byte(a, (u32)i->c << 4);
  else if (tail) byte(a, i->imm);
}

void asm_mask(Asm *a, MaskOp op, u32 dst, u32 x, u32 y) {
  const MaskOpInfo *o = &mask_op_info[op];
  u32 rm = o->form == KF_RVR ? y : x;
  vex(a, 1, o->prefix, o->w, o->l, dst, o->form == KF_RVR ? x : 0, 0, rm >> 3 & 1);
  byte(a, o->opcode);
  byte(a, 0xC0 | (dst & 7) << 3 | (rm & 7));
}

void asm_mask_mem(Asm *a, MaskOp op, u32 reg, u32 base, i32 disp) {
  const MaskOpInfo *o = &mask_op_info[op];
  VecMem m = {.used = true, .base = (u8)base, .index = NO_INDEX, .disp = disp};
  vex(a, 1, o->prefix, o->w, o->l, reg, 0, 0, base_bit(&m));
  byte(a, o->opcode);
  memory(a, reg, &m, 0);
}

/* ---- general registers --------------------------------------------------------------------- */

static void rex(Asm *a, u32 w, u32 reg, u32 x, u32 b, bool always) {
  u32 bits = w << 3 | (reg >> 3 & 1) << 2 | x << 1 | b;
  if (bits || always) byte(a, 0x40 | bits);
}

static void reg_reg(Asm *a, u32 w, u32 opcode, u32 reg, u32 rm) {
  rex(a, w, reg, 0, rm >> 3 & 1, false);
  if (opcode > 0xFF) byte(a, opcode >> 8);
  byte(a, opcode);
  byte(a, 0xC0 | (reg & 7) << 3 | (rm & 7));
}

static void reg_mem(Asm *a, u32 w, u32 opcode, u32 reg, const VecMem *m, u32 tail, bool bytes) {
  rex(a, w, reg, index_bit(m), base_bit(m), bytes);
  if (opcode > 0xFF) byte(a, opcode >> 8);
  byte(a, opcode);
  memory(a, reg, m, tail);
}

static VecMem at(u32 base, i32 disp) {
  return (VecMem){.used = true, .base = (u8)base, .index = NO_INDEX, .disp = disp};
}
static VecMem indexed(u32 base, u32 index, u32 scale, i32 disp) {
  return (VecMem){.used = true, .base = (u8)base, .index = (u8)index, .scale = (u8)scale, .disp = disp};
}

void asm_mov(Asm *a, u32 dst, u32 src) {
  if (dst != src) reg_reg(a, 1, 0x8B, dst, src);
}
void asm_mov_imm(Asm *a, u32 dst, u64 v) {
  bool small = v <= UINT32_MAX;
  rex(a, !small, 0, 0, dst >> 3 & 1, false);
  byte(a, 0xB8 | (dst & 7));
  word(a, (u32)v);
  if (!small) word(a, (u32)(v >> 32));
}
void asm_load(Asm *a, u32 dst, u32 base, i32 disp) {
  reg_mem(a, 1, 0x8B, dst, &(VecMem[]){at(base, disp)}[0], 0, false);
}
void asm_save(Asm *a, u32 base, i32 disp, u32 src) {
  reg_mem(a, 1, 0x89, src, &(VecMem[]){at(base, disp)}[0], 0, false);
}
void asm_lea(Asm *a, u32 dst, u32 base, u32 index, u32 scale, i32 disp) {
  VecMem m = indexed(base, index, scale, disp);
  reg_mem(a, 1, 0x8D, dst, &m, 0, false);
}
void asm_alu(Asm *a, u32 alu, u32 dst, u32 src) { reg_reg(a, 1, alu << 3 | 3, dst, src); }
void asm_alu_imm(Asm *a, u32 alu, u32 dst, i32 v) {
  bool small = v == (i8)v;
  reg_reg(a, 1, small ? 0x83 : 0x81, alu, dst);
  if (small) byte(a, (u32)v & 255);
  else word(a, (u32)v);
}
void asm_alu_load(Asm *a, u32 alu, u32 dst, u32 base, i32 disp) {
  reg_mem(a, 1, alu << 3 | 3, dst, &(VecMem[]){at(base, disp)}[0], 0, false);
}
void asm_alu_mem_imm(Asm *a, u32 alu, u32 base, i32 disp, i32 v) {
  VecMem m = at(base, disp);
  reg_mem(a, 1, 0x81, alu, &m, 4, false);
  word(a, (u32)v);
}
void asm_imul(Asm *a, u32 dst, u32 src) { reg_reg(a, 1, 0x0FAF, dst, src); }
void asm_imul_imm(Asm *a, u32 dst, u32 src, i32 v) {
  reg_reg(a, 1, 0x69, dst, src);
  word(a, (u32)v);
}
void asm_imul_load(Asm *a, u32 dst, u32 base, i32 disp) {
  reg_mem(a, 1, 0x0FAF, dst, &(VecMem[]){at(base, disp)}[0], 0, false);
}
void asm_shift(Asm *a, bool left, u32 dst, u32 by) {
  reg_reg(a, 1, 0xC1, left ? 4 : 5, dst);
  byte(a, by);
}
void asm_cmov(Asm *a, u32 cc, u32 dst, u32 src) { reg_reg(a, 1, 0x0F40 | cc, dst, src); }
void asm_bzhi(Asm *a, u32 dst, u32 src, u32 count) {
  vex(a, 2, 0, 1, 0, dst, count, 0, src >> 3 & 1);
  byte(a, 0xF5);
  byte(a, 0xC0 | (dst & 7) << 3 | (src & 7));
}
void asm_prefetch(Asm *a, u32 base, u32 index, u32 scale, i32 disp) {
  VecMem m = indexed(base, index, scale, disp);
  reg_mem(a, 0, 0x0F18, 1, &m, 0, false);
}
void asm_zero_extend_byte(Asm *a, u32 dst, u32 base, u32 index, u32 scale, i32 disp) {
  VecMem m = indexed(base, index, scale, disp);
  reg_mem(a, 1, 0x0FB6, dst, &m, 0, false);
}
void asm_zero_extend_word(Asm *a, u32 dst, u32 base, u32 index, u32 scale, i32 disp) {
  VecMem m = indexed(base, index, scale, disp);
  reg_mem(a, 1, 0x0FB7, dst, &m, 0, false);
}
void asm_load32(Asm *a, u32 dst, u32 base, u32 index, u32 scale, i32 disp) {
  VecMem m = indexed(base, index, scale, disp);
  reg_mem(a, 0, 0x8B, dst, &m, 0, false);
}
void asm_save8(Asm *a, u32 base, u32 index, u32 scale, i32 disp, u32 src) {
  VecMem m = indexed(base, index, scale, disp);
  reg_mem(a, 0, 0x88, src, &m, 0, true);
}
void asm_save16(Asm *a, u32 base, u32 index, u32 scale, i32 disp, u32 src) {
  VecMem m = indexed(base, index, scale, disp);
  byte(a, 0x66);
  reg_mem(a, 0, 0x89, src, &m, 0, false);
}
void asm_save32(Asm *a, u32 base, i32 disp, u32 src) {
  reg_mem(a, 0, 0x89, src, &(VecMem[]){at(base, disp)}[0], 0, false);
}
void asm_jump(Asm *a, u32 label) {
  byte(a, 0xE9);
  fix(a, label, false);
}
void asm_jcc(Asm *a, u32 cc, u32 label) {
  byte(a, 0x0F);
  byte(a, 0x80 | cc);
  fix(a, label, false);
}
void asm_call(Asm *a, u32 reg) {
  rex(a, 0, 0, 0, reg >> 3 & 1, false);
  byte(a, 0xFF);
  byte(a, 0xD0 | (reg & 7));
}
void asm_call_label(Asm *a, u32 label) {
  byte(a, 0xE8);
  fix(a, label, false);
}
void asm_push(Asm *a, u32 reg) {
  rex(a, 0, 0, 0, reg >> 3 & 1, false);
  byte(a, 0x50 | (reg & 7));
}
void asm_pop(Asm *a, u32 reg) {
  rex(a, 0, 0, 0, reg >> 3 & 1, false);
  byte(a, 0x58 | (reg & 7));
}
void asm_ret(Asm *a) { byte(a, 0xC3); }
void asm_vzeroupper(Asm *a) { byte(a, 0xC5), byte(a, 0xF8), byte(a, 0x77); }
void asm_sfence(Asm *a) { byte(a, 0x0F), byte(a, 0xAE), byte(a, 0xF8); }
void asm_tzcnt(Asm *a, u32 dst, u32 src) {
  byte(a, 0xF3);
  reg_reg(a, 1, 0x0FBC, dst, src);
}
