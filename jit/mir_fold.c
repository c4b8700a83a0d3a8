/* mir_fold.c — what is left of constants and addresses, back into the instructions that use them, between MIR's simplification and its
 * generator (mir_operands.c brings displacements and most immediates there).
 *
 * MIR writes what it takes apart into registers of their own, and level 1 does not undo it: where registers are short, constants
 * lie in memory. A register that is written once, with a constant, stands for it wherever the processor takes one; a sum that is
 * read once, as an address, becomes the address, as long as nothing changes its operands in between. */
#include <string.h>

#include "jit/mir_emitter.h"

typedef struct Reg {
  u32 defs, uses;
  u32 version;    /* writes seen so far */
  MIR_insn_t made; /* of the only write, when it is one that can be taken over */
  u32 block, base_version, index_version; /* where that stands, and its operands then */
} Reg;

typedef struct Folder {
  MIR_context_t ctx;
  MIR_item_t item;
  Reg *regs;
  u32 count, block;
} Folder;

static bool is_int(MIR_op_t op) { return op.mode == MIR_OP_INT && op.u.i == (i32)op.u.i; }

/* Only the first operand is a result, except of calls. */
static bool is_result(const Folder *f, MIR_insn_t insn, size_t at, bool call) {
  int out = 0;
  if (at == 0 || call) MIR_insn_op_mode(f->ctx, insn, at, &out);
  return out != 0;
}

/* Each register that an operand reads or writes: of a memory operand, two that are read. */
static void each_reg(Folder *f, MIR_insn_t insn, void (*visit)(Folder *f, MIR_reg_t reg, bool written)) {
  bool call = MIR_call_code_p(insn->code) || insn->code == MIR_UNSPEC;
  for (size_t i = 0; i < insn->nops; i++) { /* reads first */
    const MIR_op_t *op = &insn->ops[i];
    if (op->mode == MIR_OP_REG) {
      if (!is_result(f, insn, i, call)) visit(f, op->u.reg, false);
    } else if (op->mode == MIR_OP_MEM) {
      if (op->u.mem.base) visit(f, op->u.mem.base, false);
      if (op->u.mem.index) visit(f, op->u.mem.index, false);
    }
  }
  for (size_t i = 0; i < (call || !insn->nops ? insn->nops : 1); i++)
    if (insn->ops[i].mode == MIR_OP_REG && is_result(f, insn, i, call)) visit(f, insn->ops[i].u.reg, true);
}

static void find_most(Folder *f, MIR_reg_t reg, bool written) {
  (void)written;
  if (reg >= f->count) f->count = reg + 1;
}

static void count(Folder *f, MIR_reg_t reg, bool written) {
  if (written) f->regs[reg].defs++;
  else f->regs[reg].uses++;
}

static void note_write(Folder *f, MIR_reg_t reg, bool written) {
  if (written) f->regs[reg].version++;
}

/* The instruction that made what a register holds, if it can still be taken over: its only write, in this block, of operands that are
 * as they were. */
static MIR_insn_t maker(const Folder *f, MIR_reg_t reg) {
  const Reg *r = &f->regs[reg];
  if (!r->made || r->block != f->block || r->uses != 1) return NULL;
  const MIR_op_t *ops = r->made->ops;
  if (f->regs[ops[1].u.reg].version != r->base_version) return NULL;
  if (ops[2].mode == MIR_OP_REG && f->regs[ops[2].u.reg].version != r->index_version) return NULL;
  return r->made;
}

static void drop(Folder *f, MIR_reg_t reg) {
  MIR_remove_insn(f->ctx, f->item, f->regs[reg].made);
  f->regs[reg].made = NULL;
}

/* The constant that a register stands for. */
static bool constant(const Folder *f, const MIR_op_t *op, i64 *out) {
  if (op->mode != MIR_OP_REG) return false;
  const Reg *r = &f->regs[op->u.reg];
  if (!r->made || r->made->code != MIR_MOV || !is_int(r->made->ops[1])) return false;
  *out = r->made->ops[1].u.i;
  return true;
}

static bool takes_constant(MIR_insn_t insn, i64 v) {
  switch (insn->code) {
    case MIR_ADD:
    case MIR_MUL: return true;
    case MIR_SUB:
    case MIR_SUBO:
    case MIR_AND:
    case MIR_OR:
    case MIR_XOR: return insn->ops[0].mode == MIR_OP_REG && insn->ops[1].mode == MIR_OP_REG && insn->ops[0].u.reg == insn->ops[1].u.reg;
    case MIR_LSH:
    case MIR_RSH:
    case MIR_URSH: return v >= 0 && v < 64; /* goes to rcx, and back again where it is a constant */
    case MIR_BEQ:
    case MIR_BNE:
    case MIR_BLT:
    case MIR_BLE:
    case MIR_BGT:
    case MIR_BGE:
    case MIR_UBLT:
    case MIR_UBLE:
    case MIR_UBGT:
    case MIR_UBGE: return true;
    default: return false;
  }
}

/* A call of what a register was loaded with for it alone. */
static void fold_callee(Folder *f, MIR_insn_t insn) {
  MIR_op_t *op = &insn->ops[1];
  if (insn->code != MIR_CALL || op->mode != MIR_OP_REG) return;
  const Reg *r = &f->regs[op->u.reg];
  if (!r->made || r->uses != 1 || r->made->ops[1].mode != MIR_OP_REF) return;
  MIR_reg_t reg = op->u.reg;
  *op = r->made->ops[1];
  drop(f, reg);
}

static void fold_constant(Folder *f, MIR_insn_t insn) {
  i64 v;
  if (insn->nops != 3) return;
  if ((insn->code == MIR_ADD || insn->code == MIR_MUL) && constant(f, &insn->ops[1], &v) && !constant(f, &insn->ops[2], &v)) {
    MIR_op_t t = insn->ops[1];
    insn->ops[1] = insn->ops[2];
    insn->ops[2] = t;
  }
  if (insn->ops[1].mode != MIR_OP_REG || !constant(f, &insn->ops[2], &v) || !takes_constant(insn, v)) return;
  MIR_reg_t reg = insn->ops[2].u.reg;
  insn->ops[2] = MIR_new_int_op(f->ctx, v);
  if (--f->regs[reg].uses == 0) drop(f, reg);
}

/* Two steps at most: what a sum adds, then the sum that its base is, or the shift that its index is. */
static void fold_address(Folder *f, MIR_insn_t insn, size_t at) {
  MIR_op_t *op = &insn->ops[at];
  bool indexed = insn->code == MIR_MOV || at == 1; /* a float that is stored needs a register of its own where all are in memory */
  MIR_insn_t sum;
  if (op->mode != MIR_OP_MEM || !op->u.mem.base || op->u.mem.index) return;
  MIR_type_t type = op->u.mem.type;
  MIR_reg_t base = op->u.mem.base, index = 0;
  MIR_disp_t disp = op->u.mem.disp;
  for (u32 step = 0; step < 2 && (sum = maker(f, base)) && sum->code == MIR_ADD; step++) {
    MIR_reg_t was = base;
    if (sum->ops[2].mode == MIR_OP_INT) {
      i64 all = disp + sum->ops[2].u.i;
      if (all != (i32)all) break;
      disp = all;
    } else {
      if (!indexed || index) break;
      index = sum->ops[2].u.reg;
    }
    base = sum->ops[1].u.reg;
    drop(f, was);
  }
  MIR_scale_t scale = 1;
  if (index && (sum = maker(f, index)) && sum->code == MIR_LSH && sum->ops[2].mode == MIR_OP_INT && sum->ops[2].u.i <= 3 && sum->ops[1].u.reg != index) {
    scale = (MIR_scale_t)(1 << sum->ops[2].u.i);
    MIR_reg_t was = index;
    index = sum->ops[1].u.reg;
    drop(f, was);
  }
  *op = MIR_new_mem_op(f->ctx, type, disp, base, index, scale);
}

static void note_maker(Folder *f, MIR_insn_t insn) {
  if (!insn->nops || insn->ops[0].mode != MIR_OP_REG) return;
  Reg *r = &f->regs[insn->ops[0].u.reg];
  bool is_constant = insn->code == MIR_MOV && (is_int(insn->ops[1]) || insn->ops[1].mode == MIR_OP_REF);
  bool sum = (insn->code == MIR_ADD || insn->code == MIR_LSH) && insn->ops[1].mode == MIR_OP_REG && (insn->ops[2].mode == MIR_OP_REG || is_int(insn->ops[2]));
  if (r->defs != 1 || (!is_constant && !sum)) return;
  r->made = insn;
  r->block = is_constant ? 0 : f->block;
  if (!sum) return;
  r->base_version = f->regs[insn->ops[1].u.reg].version;
  r->index_version = insn->ops[2].mode == MIR_OP_REG ? f->regs[insn->ops[2].u.reg].version : 0;
}

void mir_fold(MIR_context_t ctx, MIR_item_t item, Allocator *alloc) {
  Folder f = {.ctx = ctx, .item = item, .block = 1 /* 0: of no block */};
  MIR_func_t func = item->u.func;
  for (MIR_insn_t i = DLIST_HEAD(MIR_insn_t, func->insns); i; i = DLIST_NEXT(MIR_insn_t, i)) each_reg(&f, i, find_most);
  f.regs = mem_alloc_zero(alloc, sizeof *f.regs * (f.count + 1));
  if (!f.regs) return; /* the code is right as it is */
  for (size_t i = 0; i < func->nargs; i++) {
    MIR_reg_t reg = MIR_reg(ctx, VARR_GET(MIR_var_t, func->vars, i).name, func);
    if (reg < f.count) f.regs[reg].defs = 1;
  }
  for (MIR_insn_t i = DLIST_HEAD(MIR_insn_t, func->insns); i; i = DLIST_NEXT(MIR_insn_t, i)) each_reg(&f, i, count);
  for (MIR_insn_t next, i = DLIST_HEAD(MIR_insn_t, func->insns); i; i = next) {
    next = DLIST_NEXT(MIR_insn_t, i);
    f.block += i->code == MIR_LABEL;
    fold_constant(&f, i);
    fold_callee(&f, i);
    if (i->code == MIR_MOV || i->code == MIR_FMOV || i->code == MIR_DMOV) {
      fold_address(&f, i, 0);
      fold_address(&f, i, 1);
    }
    each_reg(&f, i, note_write);
    note_maker(&f, i);
  }
  mem_free(alloc, f.regs, sizeof *f.regs * (f.count + 1));
}
