/* mir_fold.c — what is left of constants and addresses, back into the instructions that use them, between MIR's
 * simplification and its generator (mir_operands.c brings displacements and most immediates there).
 *
 * MIR writes what it takes apart into registers of their own, and level 1 does not undo it: where registers are
 * short, constants lie in memory. A register that is written once, with a constant, stands for it wherever the
 * processor takes one; a sum that is read as an address and as nothing else becomes the address, as long as nothing
 * changes its operands in between. */
#include <string.h>

#include "jit/scalar/mir_emitter.h"

typedef struct Reg {
  u32 defs, uses;
  u32 addressed;  /* of the uses: what goes to an address with an index as well */
  u32 version;    /* writes seen so far */
  MIR_insn_t made; /* of the only write, when it is one that can be taken over */
  u32 block, base_version, index_version; /* where that stands, and its operands then */
} Reg;

/* Who jumps to a label. */
typedef struct Label {
  MIR_insn_t jump; /* the last one */
  MIR_insn_t rare; /* where its block begins, if that is a straight one that nothing falls into */
  u32 refs, block; /* the jumps; the block of the last one, once it was passed */
} Label;

typedef struct Folder {
  MIR_context_t ctx;
  MIR_item_t item;
  Reg *regs;
  Label *labels; /* NULL: nothing is known of them */
  u32 count, block, label_count;
  i64 first_label; /* numbers go on from function to function */
  u8 results[MIR_INSN_BOUND]; /* of instructions but calls: 0 not asked yet, 1 none, 2 the first operand */
} Folder;

static bool is_int(MIR_op_t op) { return op.mode == MIR_OP_INT && op.u.i == (i32)op.u.i; }

/* Only the first operand is a result, except of calls. */
static bool is_result(Folder *f, MIR_insn_t insn, size_t at, bool call) {
  int out = 0;
  if (call) {
    MIR_insn_op_mode(f->ctx, insn, at, &out);
    return out != 0;
  }
  if (at) return false;
  u8 *known = &f->results[insn->code];
  if (!*known) {
    MIR_insn_op_mode(f->ctx, insn, 0, &out);
    *known = out ? 2 : 1;
  }
  return *known == 2;
}

/* Each register that an operand reads or writes: of a memory operand, two that are read. */
static inline __attribute__((always_inline)) void each_reg(Folder *f, MIR_insn_t insn,
                                                           void (*visit)(Folder *f, MIR_reg_t reg, bool written)) {
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

static void count(Folder *f, MIR_reg_t reg, bool written) {
  if (written) f->regs[reg].defs++;
  else f->regs[reg].uses++;
}

static void note_write(Folder *f, MIR_reg_t reg, bool written) {
  if (written) f->regs[reg].version++;
}

static void note_writes(Folder *f, MIR_insn_t insn) {
  if (MIR_call_code_p(insn->code) || insn->code == MIR_UNSPEC) each_reg(f, insn, note_write);
  else if (insn->nops && insn->ops[0].mode == MIR_OP_REG && is_result(f, insn, 0, false))
    f->regs[insn->ops[0].u.reg].version++;
}

/* A float that is stored needs a register of its own where all are in memory. */
static bool takes_index(MIR_insn_t insn, size_t at) { return insn->code == MIR_MOV || at == 1; }

static bool is_address(MIR_insn_t insn, size_t at) {
  const MIR_op_t *op = &insn->ops[at];
  bool moves = insn->code == MIR_MOV || insn->code == MIR_FMOV || insn->code == MIR_DMOV;
  return moves && op->mode == MIR_OP_MEM && op->u.mem.base && !op->u.mem.index;
}

/* The instruction that made what a register holds, if it can still be taken over: its only write, in this block, of
 * operands that are as they were. What is read more than once stays until its last reader has it (`shared`). */
static MIR_insn_t maker(const Folder *f, MIR_reg_t reg, bool shared) {
  const Reg *r = &f->regs[reg];
  if (!r->made || r->block != f->block || (r->uses != 1 && !(shared && r->addressed == r->uses))) return NULL;
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
    case MIR_XOR:
      return insn->ops[0].mode == MIR_OP_REG && insn->ops[1].mode == MIR_OP_REG &&
             insn->ops[0].u.reg == insn->ops[1].u.reg;
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
  if ((insn->code == MIR_ADD || insn->code == MIR_MUL) && constant(f, &insn->ops[1], &v) &&
      !constant(f, &insn->ops[2], &v)) {
    MIR_op_t t = insn->ops[1];
    insn->ops[1] = insn->ops[2];
    insn->ops[2] = t;
  }
  if (insn->ops[1].mode != MIR_OP_REG || !constant(f, &insn->ops[2], &v) || !takes_constant(insn, v)) return;
  MIR_reg_t reg = insn->ops[2].u.reg;
  insn->ops[2] = MIR_new_int_op(f->ctx, v);
  if (--f->regs[reg].uses == 0) drop(f, reg);
}

/* Two steps at most: what a sum adds, then the sum that its base is, or the shift that its index is. An address of
 * several readers is done away with by the last one. */
static void fold_address(Folder *f, MIR_insn_t insn, size_t at) {
  MIR_op_t *op = &insn->ops[at];
  MIR_insn_t sum;
  if (!is_address(insn, at)) return;
  MIR_reg_t address = op->u.mem.base, base = address, index = 0, gone[3];
  MIR_disp_t disp = op->u.mem.disp;
  u32 count = 0;
  for (u32 step = 0; step < 2 && (sum = maker(f, base, step == 0)) && sum->code == MIR_ADD; step++) {
    if (sum->ops[2].mode == MIR_OP_INT) {
      i64 all = disp + sum->ops[2].u.i;
      if (all != (i32)all) break;
      disp = all;
    } else {
      if (!takes_index(insn, at) || index) break;
      index = sum->ops[2].u.reg;
    }
    gone[count++] = base;
    base = sum->ops[1].u.reg;
  }
  MIR_scale_t scale = 1;
  if (index && (sum = maker(f, index, false)) && sum->code == MIR_LSH && sum->ops[2].mode == MIR_OP_INT &&
      sum->ops[2].u.i <= 3 && sum->ops[1].u.reg != index) {
    scale = (MIR_scale_t)(1 << sum->ops[2].u.i);
    gone[count++] = index;
    index = sum->ops[1].u.reg;
  }
  *op = MIR_new_mem_op(f->ctx, op->u.mem.type, disp, base, index, scale);
  if (base == address) return;
  f->regs[address].uses--;
  f->regs[address].addressed--;
  if (!f->regs[address].uses)
    for (u32 i = 0; i < count; i++) drop(f, gone[i]);
}

static void note_maker(Folder *f, MIR_insn_t insn) {
  if (!insn->nops || insn->ops[0].mode != MIR_OP_REG) return;
  Reg *r = &f->regs[insn->ops[0].u.reg];
  bool is_constant = insn->code == MIR_MOV && (is_int(insn->ops[1]) || insn->ops[1].mode == MIR_OP_REF);
  bool sum = (insn->code == MIR_ADD || insn->code == MIR_LSH) && insn->ops[1].mode == MIR_OP_REG &&
             (insn->ops[2].mode == MIR_OP_REG || is_int(insn->ops[2]));
  if (r->defs != 1 || (!is_constant && !sum)) return;
  r->made = insn;
  r->block = is_constant ? 0 : f->block;
  if (!sum) return;
  r->base_version = f->regs[insn->ops[1].u.reg].version;
  r->index_version = insn->ops[2].mode == MIR_OP_REG ? f->regs[insn->ops[2].u.reg].version : 0;
}

static Label *label_of(const Folder *f, MIR_insn_t label) { return &f->labels[label->ops[0].u.i - f->first_label]; }

/* The label that an instruction may go on at, none: NULL. */
static MIR_insn_t target_of(MIR_insn_t insn) {
  return insn->nops && insn->ops[0].mode == MIR_OP_LABEL ? insn->ops[0].u.label : NULL;
}

static void find_labels(Folder *f, Allocator *alloc) {
  MIR_func_t func = f->item->u.func;
  i64 last = -1;
  for (MIR_insn_t i = DLIST_HEAD(MIR_insn_t, func->insns); i; i = DLIST_NEXT(MIR_insn_t, i)) {
    if (i->code == MIR_SWITCH || i->code == MIR_LADDR) return;
    if (i->code != MIR_LABEL) continue;
    if (last < 0 || i->ops[0].u.i < f->first_label) f->first_label = i->ops[0].u.i;
    if (i->ops[0].u.i > last) last = i->ops[0].u.i;
  }
  if (last < 0) return;
  f->label_count = (u32)(last - f->first_label + 1);
  f->labels = mem_alloc_zero(alloc, sizeof *f->labels * f->label_count);
  MIR_insn_t rare = NULL, before = NULL;
  for (MIR_insn_t i = DLIST_HEAD(MIR_insn_t, func->insns); i && f->labels; before = i, i = DLIST_NEXT(MIR_insn_t, i)) {
    MIR_insn_t target = target_of(i);
    if (i->code == MIR_LABEL) rare = before && (before->code == MIR_JMP || before->code == MIR_RET) ? i : NULL;
    if (!target) continue;
    Label *l = label_of(f, target);
    l->refs++;
    l->jump = i;
    l->rare = rare;
  }
}

/* Nobody comes to a jump behind a jump; one to what follows does nothing. The next instruction. */
static MIR_insn_t fold_jump(const Folder *f, MIR_insn_t jump) {
  MIR_insn_t next = DLIST_NEXT(MIR_insn_t, jump), at;
  for (; next && next->code == MIR_JMP; next = at) {
    at = DLIST_NEXT(MIR_insn_t, next);
    MIR_remove_insn(f->ctx, f->item, next);
  }
  for (at = next; at && at->code == MIR_LABEL && at != target_of(jump); at = DLIST_NEXT(MIR_insn_t, at)) {}
  if (at && at == target_of(jump)) MIR_remove_insn(f->ctx, f->item, jump);
  return next;
}

/* A block ends at a label, unless what jumps there was left from this same block for a rare case: then it only writes
 * what that writes. */
static void pass_label(Folder *f, MIR_insn_t label) {
  const Label *l = f->labels ? label_of(f, label) : NULL;
  if (l && l->refs == 1 && l->rare && label_of(f, l->rare)->refs == 1 && label_of(f, l->rare)->block == f->block) {
    for (MIR_insn_t i = l->rare; i != l->jump; i = DLIST_NEXT(MIR_insn_t, i)) note_writes(f, i);
  } else {
    f->block++;
  }
}

void mir_fold(MIR_context_t ctx, MIR_item_t item, Allocator *alloc) {
  Folder f = {.ctx = ctx, .item = item, .block = 1 /* 0: of no block */};
  MIR_func_t func = item->u.func;
  f.count = (u32)VARR_LENGTH(MIR_var_t, func->vars) + 1; /* from 1 on */
  f.regs = mem_alloc_zero(alloc, sizeof *f.regs * (f.count + 1));
  if (!f.regs) return; /* the code is right as it is */
  for (MIR_insn_t next, i = DLIST_HEAD(MIR_insn_t, func->insns); i; i = next)
    next = i->code == MIR_JMP ? fold_jump(&f, i) : DLIST_NEXT(MIR_insn_t, i);
  find_labels(&f, alloc);
  for (size_t i = 0; i < func->nargs; i++) {
    MIR_reg_t reg = MIR_reg(ctx, VARR_GET(MIR_var_t, func->vars, i).name, func);
    if (reg < f.count) f.regs[reg].defs = 1;
  }
  for (MIR_insn_t i = DLIST_HEAD(MIR_insn_t, func->insns); i; i = DLIST_NEXT(MIR_insn_t, i)) {
    each_reg(&f, i, count);
    for (size_t at = 0; at < i->nops && at < 2; at++)
      if (is_address(i, at) && takes_index(i, at)) f.regs[i->ops[at].u.mem.base].addressed++;
  }
  for (MIR_insn_t next, i = DLIST_HEAD(MIR_insn_t, func->insns); i; i = next) {
    next = DLIST_NEXT(MIR_insn_t, i);
    MIR_insn_t target = target_of(i);
    if (i->code == MIR_LABEL) pass_label(&f, i);
    if (target && f.labels) label_of(&f, target)->block = f.block;
    fold_constant(&f, i);
    fold_callee(&f, i);
    for (size_t at = 0; at < i->nops && at < 2; at++) fold_address(&f, i, at);
    note_writes(&f, i);
    note_maker(&f, i);
  }
  mem_free(alloc, f.labels, sizeof *f.labels * f.label_count);
  mem_free(alloc, f.regs, sizeof *f.regs * (f.count + 1));
}
