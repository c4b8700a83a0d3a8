/* vector_encode.c — machine code from instructions whose registers are known (vector_emitter.h). */
#include <string.h>

#include "jit/vector/vector_emitter.h"

enum { SCRATCH_MASK = 6, SAVED_GPRS = 6 };

static const u8 saved_gprs[SAVED_GPRS] = {RSI, RDI, R8, R9, R10, R11};

static u8 scratch(const VecFn *f, u32 n) { return (u8)((f->evex ? 30 : 14) + n); }
static u8 longest(const VecFn *f) { return f->evex ? L512 : L256; }
static const VInfo *info(const VecFn *f, VReg r) { return &f->regs.data[r]; }
static bool in_reg(const VecFn *f, VReg r) { return info(f, r)->place == VP_REG; }

/* The memory where a register that has none lies; `element`: what the instruction can broadcast. False: it must be
 * loaded. */
static bool memory_of(const VecFn *f, VReg r, u32 element, VecMem *m) {
  const VInfo *v = info(f, r);
  if (v->place == VP_SLOT) {
    *m = mem_at(RSP, (i32)v->at);
    return true;
  }
  *m = (VecMem){.used = true, .pool = true, .index = NO_INDEX, .disp = (i32)v->at,
                .broadcast = f->evex && v->bytes != 0};
  return !m->broadcast || element == v->bytes;
}

static void load_to(VecFn *f, u8 phys, VReg r) {
  VecMem m;
  const VInfo *v = info(f, r);
  if (v->place == VP_REG) {
    if (v->phys != phys) asm_vec(&f->as, &(VecIns){.op = V_MOVAPS, .length = longest(f), .dst = phys, .a = v->phys});
    return;
  }
  bool plain = memory_of(f, r, 0, &m);
  m.broadcast = false;
  VecOp op = plain ? V_MOVUPS : v->bytes == 8 ? V_BROADCASTQ : V_BROADCASTD;
  asm_vec(&f->as, &(VecIns){.op = (u16)op, .length = longest(f), .dst = phys, .mem = m});
}

static u8 in_scratch(VecFn *f, VReg r, u32 n) {
  if (in_reg(f, r)) return info(f, r)->phys;
  load_to(f, scratch(f, n), r);
  return scratch(f, n);
}

static u8 mask_in(VecFn *f, VReg r, u8 spare) {
  if (in_reg(f, r)) return info(f, r)->phys;
  asm_mask_mem(&f->as, K_KLOAD, spare, RSP, (i32)info(f, r)->at);
  return spare;
}

static u8 target(const VecFn *f, VReg r) {
  return in_reg(f, r) ? info(f, r)->phys : info(f, r)->mask ? 0 : scratch(f, 0);
}

static void keep_in(VecFn *f, VReg r, u8 from) {
  const VInfo *v = info(f, r);
  if (v->place == VP_REG) return;
  if (v->mask) asm_mask_mem(&f->as, K_KSAVE, 0, RSP, (i32)v->at);
  else asm_vec(&f->as, &(VecIns){.op = V_MOVUPS_TO, .length = longest(f), .a = from, .mem = mem_at(RSP, (i32)v->at)});
}

static void keep_target(VecFn *f, VReg r) { keep_in(f, r, scratch(f, 0)); }

static u8 mask_of(VecFn *f, const VIns *i) {
  if (!(i->flags & VI_SCRATCH_MASK)) return i->mask ? mask_in(f, i->mask, SCRATCH_MASK) : i->flags & VI_TAIL ? 7 : 0;
  if (i->mask && !in_reg(f, i->mask)) asm_mask_mem(&f->as, K_KLOAD, SCRATCH_MASK, RSP, (i32)info(f, i->mask)->at);
  else if (i->mask || i->flags & VI_TAIL)
    asm_mask(&f->as, K_KMOV, SCRATCH_MASK, i->mask ? info(f, i->mask)->phys : 7, 0);
  else asm_mask(&f->as, K_KXNOR, SCRATCH_MASK, SCRATCH_MASK, SCRATCH_MASK);
  return SCRATCH_MASK;
}

static void vector(VecFn *f, const VIns *i) {
  const VecOpInfo *o = &vec_op_info[i->op];
  VecIns m = {.op = i->op, .length = i->length, .imm = i->imm, .zero = i->flags & VI_ZERO, .mem = i->mem};
  bool saves = o->form == VF_MR || o->form == VF_MRI || o->form == VF_SCATTER, tied = i->flags & VI_TIED;
  VReg a = i->a, b = i->b, rm = 0;
  m.mask = mask_of(f, i);
  if (i->mem.used && i->mem.vector_index) m.mem.index = in_scratch(f, i->b, 1);
  if (i->op == V_MOVQ_GPR || i->op == V_MOVD_GPR) {
    m.a = (u8)i->x;
    m.dst = target(f, i->dst);
  } else if (i->op == V_MOVQ_TO_GPR || i->op == V_MOVD_TO_GPR || i->op == V_MOVMSKPS || i->op == V_MOVMSKPD ||
             i->op == V_PMOVMSKB) {
    m.a = in_scratch(f, a, 0);
    m.dst = (u8)i->x;
    asm_vec(&f->as, &m);
    return;
  } else if (saves) {
    m.a = in_scratch(f, a, 0);
    if (i->dst) m.dst = target(f, i->dst);
  } else if (o->form == VF_RK) {
    m.a = mask_in(f, a, SCRATCH_MASK);
    m.dst = target(f, i->dst);
  } else {
    m.dst = target(f, i->dst);
    if (tied) load_to(f, m.dst, i->c);
    bool three = o->form != VF_RM && o->form != VF_RMI && o->form != VF_VMI && o->form != VF_GATHER;
    if (three && i->commutes && !in_reg(f, a) && in_reg(f, b) && !i->mem.used) a = i->b, b = i->a;
    if (three) m.a = in_scratch(f, a, tied ? 1 : 0);
    if (o->form == VF_RVMR) m.c = in_scratch(f, i->c, 1);
    if (!i->mem.used) rm = three ? b : a;
    u8 *place = three ? &m.b : &m.a;
    if (rm && in_reg(f, rm)) *place = info(f, rm)->phys;
    else if (rm && (o->form == VF_VMI || !memory_of(f, rm, o->element, &m.mem))) {
      bool taken = (three && m.a == scratch(f, 1)) || (o->form == VF_RVMR && m.c == scratch(f, 1));
      if (taken && (m.dst == scratch(f, 0) || m.a == scratch(f, 0))) refuse(f, "too many values at a time");
      m.mem.used = false;
      *place = in_scratch(f, rm, taken ? 0 : 1);
    }
  }
  asm_vec(&f->as, &m);
  if (i->dst) keep_target(f, i->dst);
}

/* One of the three forms, by which operand lies where the result goes. */
static void fused(VecFn *f, const VIns *i) {
  u8 bytes = i->imm & FMA_BYTES;
  bool d = bytes == 8;
  u32 kind = (u32)(i->imm >> 4) * (V_FNMADD132PS - V_FMA132PS);
  VReg a = i->a, b = i->b, c = i->c;
  u8 to = target(f, i->dst);
  VecIns m = {.length = i->length, .dst = to};
  bool spilled = !in_reg(f, i->dst);
#define IS_TO(r) (!spilled && in_reg(f, r) && info(f, r)->phys == to)
  if (!in_reg(f, b) && in_reg(f, a)) a = i->b, b = i->a; /* what lies in memory is a */
  if (IS_TO(b) && !IS_TO(a)) {
    VReg t = a;
    a = b, b = t;
  }
  VecMem mem = {0};
  if (IS_TO(c)) { /* c += a * b */
    m.op = (u16)((d ? V_FMA231PD : V_FMA231PS) + kind);
    if (!in_reg(f, a) && in_reg(f, b)) {
      VReg t = a;
      a = b, b = t;
    }
    m.a = in_scratch(f, a, 1);
    if (in_reg(f, b)) m.b = info(f, b)->phys;
    else if (memory_of(f, b, bytes, &mem)) m.mem = mem;
    else m.b = in_scratch(f, b, 0);
  } else {
    if (!IS_TO(a)) { /* begin with what lies in memory, if anything does */
      if (in_reg(f, a) && in_reg(f, b) && !in_reg(f, c) && !IS_TO(b)) {
        load_to(f, to, c);
        m.op = (u16)((d ? V_FMA231PD : V_FMA231PS) + kind);
        m.a = info(f, a)->phys;
        m.b = info(f, b)->phys;
        asm_vec(&f->as, &m);
        keep_target(f, i->dst);
        return;
      }
      load_to(f, to, a);
    }
    if (in_reg(f, c) || in_reg(f, b)) {
      bool b_in = in_reg(f, b);
      m.op = (u16)((b_in ? (d ? V_FMA213PD : V_FMA213PS) : d ? V_FMA132PD : V_FMA132PS) + kind);
      VReg rm = b_in ? c : b;
      m.a = info(f, b_in ? b : c)->phys;
      if (in_reg(f, rm)) m.b = info(f, rm)->phys;
      else if (memory_of(f, rm, bytes, &mem)) m.mem = mem;
      else m.b = in_scratch(f, rm, 1);
    } else { /* both in memory */
      m.op = (u16)((d ? V_FMA213PD : V_FMA213PS) + kind);
      m.a = in_scratch(f, b, 1);
      if (memory_of(f, c, bytes, &mem)) m.mem = mem;
      else refuse(f, "too many values at a time");
    }
  }
  asm_vec(&f->as, &m);
  keep_target(f, i->dst);
}

/* Stores the operands, calls, and takes the answer in the lanes of the mask. Follows the function's end. */
static void rare_code(VecFn *f, const VCold *c) {
  Asm *a = &f->as;
  u8 length = c->length;
  asm_put(a, c->label);
  u8 x = in_scratch(f, c->a, 1);
  if (c->fn == RARE_DIVIDED) {
    VecIns m = {.op = c->bytes == 8 ? V_DIVPD : V_DIVPS, .length = length, .dst = c->dst_phys,
                .mask = mask_in(f, c->mask, SCRATCH_MASK), .a = x};
    if (in_reg(f, c->b)) m.b = info(f, c->b)->phys;
    else if (!memory_of(f, c->b, c->bytes, &m.mem)) refuse(f, "too many values at a time");
    asm_vec(a, &m);
    asm_jump(a, c->back);
    return;
  }
  asm_vec(a, &(VecIns){.op = V_MOVUPS_TO, .length = length, .a = x, .mem = mem_at(RSP, (i32)f->scratch_x)});
  if (c->b) {
    u8 y = in_scratch(f, c->b, 1);
    asm_vec(a, &(VecIns){.op = V_MOVUPS_TO, .length = length, .a = y, .mem = mem_at(RSP, (i32)f->scratch_y)});
  }
  const u32 at[3] = {f->scratch_out, f->scratch_x, c->b ? f->scratch_y : f->scratch_x};
  for (u32 k = 0; k < 3; k++) {
    asm_lea(a, RCX, RSP, NO_INDEX, 0, (i32)at[k]);
    asm_save(a, RSP, (i32)(f->call_frame + 8 * k), RCX);
  }
  asm_mov_imm(a, RCX, c->lanes);
  asm_save(a, RSP, (i32)f->call_frame + 24, RCX);
  asm_mov_imm(a, RAX, f->calls.data[c->fn]);
  asm_call_label(a, f->save_label);
  VecMem out = mem_at(RSP, (i32)f->scratch_out);
  if (f->evex) {
    u8 k = mask_in(f, c->mask, SCRATCH_MASK);
    asm_vec(a, &(VecIns){.op = c->bytes == 8 ? V_MOVUPD : V_MOVUPS, .length = length, .dst = c->dst_phys, .mask = k,
                         .mem = out});
  } else {
    u8 k = in_scratch(f, c->mask, 1);
    asm_vec(a, &(VecIns){.op = c->bytes == 8 ? V_BLENDVPD : V_BLENDVPS, .length = length, .dst = c->dst_phys,
                         .a = c->dst_phys, .c = k, .mem = out});
  }
  asm_jump(a, c->back);
}

static void rare(VecFn *f, const VIns *i) {
  Asm *a = &f->as;
  u8 to = target(f, i->dst);
  load_to(f, to, i->c);
  u32 bits;
  if (f->evex) {
    asm_mask(a, K_KTO, RAX, mask_in(f, i->mask, SCRATCH_MASK), 0);
    bits = (1u << (i->x & 0xFF)) - 1;
  } else {
    asm_vec(a, &(VecIns){.op = V_MOVMSKPS, .length = i->length, .dst = RAX, .a = in_scratch(f, i->mask, 1)});
    bits = (1u << ((i->x & 0xFF) * i->imm / 4)) - 1;
  }
  VCold c = {.label = asm_label(a), .back = asm_label(a), .dst = i->dst, .a = i->a, .b = i->b, .mask = i->mask,
             .dst_phys = to,
    .fn = (u32)(i->x >> 8), .length = i->length, .lanes = (u8)i->x, .bytes = i->imm};
  asm_alu_imm(a, ALU_AND, RAX, (i32)bits);
  asm_jcc(a, CC_NE, c.label);
  asm_put(a, c.back);
  f->calls_made |= c.fn != RARE_DIVIDED;
  if (!vec_push(f->alloc, &f->cold, c)) refuse(f, "out of memory");
  keep_target(f, i->dst);
}

static void mask_ins(VecFn *f, const VIns *i) {
  MaskOp op = (MaskOp)(i->op - M_FIRST);
  u8 form = mask_op_info[op].form, to = i->dst ? target(f, i->dst) : 0;
  if (form == KF_FROM) asm_mask(&f->as, op, to, (u32)i->x, 0);
  else if (form == KF_TO) asm_mask(&f->as, op, (u32)i->x, mask_in(f, i->a, SCRATCH_MASK), 0);
  else {
    u8 x = mask_in(f, i->a, SCRATCH_MASK), y = i->b ? mask_in(f, i->b, 0) : 0;
    asm_mask(&f->as, op, to, x, y);
  }
  if (i->dst) keep_target(f, i->dst);
}

static void call(VecFn *f, const VIns *i) {
  f->calls_made = true;
  asm_mov_imm(&f->as, RAX, i->x);
  asm_call_label(&f->as, f->save_label);
}

static void general(VecFn *f, const VIns *i) {
  Asm *a = &f->as;
  switch (i->op) {
    case G_MOV: asm_mov(a, i->dst, i->a); return;
    case G_IMM: asm_mov_imm(a, i->dst, i->x); return;
    case G_LOAD: asm_load(a, i->dst, i->mem.base, i->mem.disp); return;
    case G_SAVE: asm_save(a, i->mem.base, i->mem.disp, i->a); return;
    case G_LEA: asm_lea(a, i->dst, i->mem.base, i->mem.index, i->mem.scale, i->mem.disp); return;
    case G_ALU: asm_alu(a, i->imm, i->dst, i->a); return;
    case G_ALU_IMM: asm_alu_imm(a, i->imm, i->dst, (i32)i->x); return;
    case G_ALU_LOAD: asm_alu_load(a, i->imm, i->dst, i->mem.base, i->mem.disp); return;
    case G_ALU_MEM_IMM: asm_alu_mem_imm(a, i->imm, i->mem.base, i->mem.disp, (i32)i->x); return;
    case G_IMUL: asm_imul(a, i->dst, i->a); return;
    case G_IMUL_IMM: asm_imul_imm(a, i->dst, i->a, (i32)i->x); return;
    case G_IMUL_LOAD: asm_imul_load(a, i->dst, i->mem.base, i->mem.disp); return;
    case G_SHL:
    case G_SHR: asm_shift(a, i->op == G_SHL, i->dst, (u32)i->x); return;
    case G_CMOV: asm_cmov(a, i->imm, i->dst, i->a); return;
    case G_JCC: asm_jcc(a, i->imm, (u32)i->x); return;
    case G_JUMP: asm_jump(a, (u32)i->x); return;
    case G_LABEL: asm_put(a, (u32)i->x); return;
    case G_TAIL:
      asm_mov_imm(a, RAX, i->x ? UINT64_MAX : 0xFFFF);
      asm_bzhi(a, RAX, RAX, RCX);
      asm_mask(a, K_KFROM, 7, RAX, 0);
      return;
    case G_LOW: asm_bzhi(a, RAX, RAX, RCX); return;
    case G_FIRST_BIT: asm_tzcnt(a, RAX, RAX); return;
    case G_FETCH: asm_prefetch(a, i->mem.base, i->mem.index, i->mem.scale, i->mem.disp); return;
    case G_BYTE: asm_zero_extend_byte(a, i->dst, i->mem.base, i->mem.index, i->mem.scale, i->mem.disp); return;
    case G_BYTE_TO: asm_save8(a, i->mem.base, i->mem.index, i->mem.scale, i->mem.disp, i->a); return;
    case G_HALF: asm_zero_extend_word(a, i->dst, i->mem.base, i->mem.index, i->mem.scale, i->mem.disp); return;
    case G_HALF_TO: asm_save16(a, i->mem.base, i->mem.index, i->mem.scale, i->mem.disp, i->a); return;
    case G_CALL: call(f, i); return;
    case G_NOTHING: return;
    default: refuse(f, "an instruction that is not known");
  }
}

/* Keeps everything, calls RAX with the four words at call_frame, brings everything back. Within it the frame lies 16
 * bytes further. */
static void save_code(VecFn *f) {
  Asm *a = &f->as;
  static const u8 words[4] = {RDI, RSI, RDX, RCX};
  u32 vectors = f->evex ? 32 : 16, bytes = f->evex ? 64 : 32, area = f->call_frame + 64 + 16;
  asm_put(a, f->save_label);
  asm_alu_imm(a, ALU_SUB, RSP, 8);
  for (u32 restore = 0; restore < 2; restore++) {
    for (u32 k = 0; k < vectors; k++) {
      VecIns v = {.op = (u16)(restore ? V_MOVUPS : V_MOVUPS_TO), .length = longest(f),
                  .mem = mem_at(RSP, (i32)(area + k * bytes))};
      *(restore ? &v.dst : &v.a) = (u8)k;
      asm_vec(a, &v);
    }
    for (u32 k = 0; k < 8 && f->evex; k++)
      asm_mask_mem(a, restore ? K_KLOAD : K_KSAVE, k, RSP, (i32)(area + vectors * bytes + 8 * k));
    for (u32 k = 0; k < SAVED_GPRS; k++) {
      i32 at = (i32)(area + vectors * bytes + 64 + 8 * k);
      if (restore) asm_load(a, saved_gprs[k], RSP, at);
      else asm_save(a, RSP, at, saved_gprs[k]);
    }
    if (restore) break;
    for (u32 k = 0; k < 4; k++) asm_load(a, words[k], RSP, (i32)(f->call_frame + 16 + 8 * k));
    asm_vzeroupper(a);
    asm_call(a, RAX);
  }
  asm_alu_imm(a, ALU_ADD, RSP, 8);
  asm_ret(a);
}

static const u8 pushed[5] = {RBX, R12, R13, R14, R15};

static void prologue(VecFn *f) {
  Asm *a = &f->as;
  asm_push(a, RBP);
  asm_mov(a, RBP, RSP);
  for (u32 k = 0; k < 5; k++) asm_push(a, pushed[k]);
  asm_alu_imm(a, ALU_SUB, RSP, (i32)((f->frame + 127) & ~63u));
  asm_alu_imm(a, ALU_AND, RSP, -64);
  asm_mov(a, RBX, RDI);
  for (u32 k = 0; k < f->kept.count; k++) {
    const VInfo *v = info(f, f->kept.data[k]);
    VecOp op = v->bytes == 0 || !f->evex ? V_MOVUPS : v->bytes == 8 ? V_BROADCASTQ : V_BROADCASTD;
    asm_vec(a, &(VecIns){.op = (u16)op, .length = longest(f), .dst = v->phys,
                         .mem = {.used = true, .pool = true, .index = NO_INDEX, .disp = (i32)v->at}});
  }
}

static void epilogue(VecFn *f) {
  Asm *a = &f->as;
  asm_vzeroupper(a);
  asm_lea(a, RSP, RBP, NO_INDEX, 0, -40);
  for (u32 k = 5; k-- > 0;) asm_pop(a, pushed[k]);
  asm_pop(a, RBP);
  asm_ret(a);
}

bool encode(VecFn *f) {
  prologue(f);
  for (u32 k = 0; k < f->ins.count && !f->failed; k++) {
    const VIns *i = &f->ins.data[k];
    if (i->op < V_COUNT) vector(f, i);
    else if (i->op < P_FMA) general(f, i);
    else if (i->op == P_FMA) fused(f, i);
    else if (i->op == P_RARE) rare(f, i);
    else if (i->op == P_COPY) {
      if (in_reg(f, i->dst)) load_to(f, info(f, i->dst)->phys, i->a);
      else keep_in(f, i->dst, in_scratch(f, i->a, 0));
    } else mask_ins(f, i);
  }
  if (f->failed) return false;
  epilogue(f);
  for (u32 k = 0; k < f->cold.count; k++) rare_code(f, &f->cold.data[k]);
  if (f->calls_made) save_code(f);
  if (!asm_finish(&f->as)) refuse(f, "out of memory");
  return !f->failed;
}
