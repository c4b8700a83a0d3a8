/* vector_asm.h — encodes the instructions of vector.def and the few general ones around them, for x86-64. Inside jit/.
 *
 * A growing run of bytes with labels (32-bit jumps) and references to constants that lie behind the code. Registers
 * are physical numbers. Displacements are written in 32 bits (0 in none): no table of compressed ones. */
#ifndef WEFT_JIT_VECTOR_ASM_H
#define WEFT_JIT_VECTOR_ASM_H

#include "parser/base.h"

typedef enum VecOp {
  V_NONE,
#define VOP(NAME, ...) V_##NAME,
#include "jit/vector/vector.def"
  V_COUNT
} VecOp;

typedef enum MaskOp {
#define KOP(NAME, ...) K_##NAME,
#include "jit/vector/vector.def"
  K_COUNT
} MaskOp;

typedef enum VecForm { VF_RVM, VF_RVMI, VF_RM, VF_RMI, VF_MR, VF_MRI, VF_VMI, VF_RVMR, VF_KRVM, VF_KRVMI, VF_RK,
                       VF_GATHER, VF_SCATTER } VecForm;
typedef enum MaskForm { KF_RR, KF_RVR, KF_LOAD, KF_SAVE, KF_FROM, KF_TO, KF_TEST } MaskForm;
enum { VE_V = 1, VE_E = 2, VE_B = 3 };

typedef struct VecOpInfo {
  const char *text;
  u8 map, prefix, vex_w, evex_w, opcode, form, digit, enc, element;
} VecOpInfo;
extern const VecOpInfo vec_op_info[V_COUNT];
typedef struct MaskOpInfo {
  const char *text;
  u8 prefix, w, l, opcode, form;
} MaskOpInfo;
extern const MaskOpInfo mask_op_info[K_COUNT];

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };
enum { L128, L256, L512 };

/* A memory operand: [base + index << scale + disp], or a constant of the pool. */
typedef struct VecMem {
  bool used, pool, broadcast, vector_index; /* broadcast: one element for all lanes (EVEX) */
  u8 base, index, scale; /* index NO_INDEX: none */
  i32 disp;              /* pool: offset in it */
} VecMem;
enum { NO_INDEX = 0xFF };

/* One vector instruction with physical registers. */
typedef struct VecIns {
  u16 op;
  u8 length;  /* L128 … */
  u8 dst, a, b, c; /* of MR forms: dst the rm operand when there is no mem, a the source */
  u8 mask;    /* 0: none */
  bool zero;  /* masked-off lanes become 0, else they stay */
  u8 imm;
  VecMem mem; /* takes the place of the rm operand */
} VecIns;

typedef struct AsmFix {
  u32 at;    /* of the 32 bits; they count from behind them */
  u32 extra; /* bytes of immediates between the field and the end of the instruction */
  u32 to;    /* label, or offset in the pool */
  bool pool;
} AsmFix;

typedef struct Asm {
  Allocator *alloc;
  bool evex; /* vector instructions by EVEX where both exist */
  VEC(u8) code;
  VEC(u8) pool;
  VEC(AsmFix) fixes;
  VEC(u32) labels; /* offsets; UINT32_MAX: not put yet */
  bool failed;
} Asm;

void asm_init(Asm *a, Allocator *alloc, bool evex);
void asm_free(Asm *a);
/* Patches jumps and references, the pool lying at `code.count` rounded up to 64; false when memory was refused. */
bool asm_finish(Asm *a);
u32 asm_pool_at(const Asm *a); /* where the pool begins */
/* to the pool, aligned to its length, a power of two; its offset */
u32 asm_append(Asm *a, const void *bytes, u32 length);

u32 asm_label(Asm *a);
void asm_put(Asm *a, u32 label);

void asm_vec(Asm *a, const VecIns *v);
void asm_mask(Asm *a, MaskOp op, u32 dst, u32 x, u32 y); /* FROM, TO: the general register in its place */
void asm_mask_mem(Asm *a, MaskOp op, u32 reg, u32 base, i32 disp);

/* General registers, 64 bits. */
enum { ALU_ADD = 0, ALU_OR = 1, ALU_AND = 4, ALU_SUB = 5, ALU_XOR = 6, ALU_CMP = 7 };
enum { CC_B = 2, CC_AE = 3, CC_E = 4, CC_NE = 5, CC_BE = 6, CC_A = 7, CC_L = 12, CC_GE = 13, CC_LE = 14, CC_G = 15 };
void asm_mov(Asm *a, u32 dst, u32 src);
void asm_mov_imm(Asm *a, u32 dst, u64 v);
void asm_load(Asm *a, u32 dst, u32 base, i32 disp);
void asm_save(Asm *a, u32 base, i32 disp, u32 src);
void asm_lea(Asm *a, u32 dst, u32 base, u32 index, u32 scale, i32 disp); /* index may be NO_INDEX */
void asm_alu(Asm *a, u32 alu, u32 dst, u32 src);
void asm_alu_imm(Asm *a, u32 alu, u32 dst, i32 v);
void asm_alu_load(Asm *a, u32 alu, u32 dst, u32 base, i32 disp);
void asm_alu_mem_imm(Asm *a, u32 alu, u32 base, i32 disp, i32 v);
void asm_imul(Asm *a, u32 dst, u32 src);
void asm_imul_imm(Asm *a, u32 dst, u32 src, i32 v);
void asm_imul_load(Asm *a, u32 dst, u32 base, i32 disp);
void asm_shift(Asm *a, bool left, u32 dst, u32 by); /* logical */
void asm_cmov(Asm *a, u32 cc, u32 dst, u32 src);
void asm_bzhi(Asm *a, u32 dst, u32 src, u32 count);
void asm_prefetch(Asm *a, u32 base, u32 index, u32 scale, i32 disp);
void asm_zero_extend_byte(Asm *a, u32 dst, u32 base, u32 index, u32 scale, i32 disp);
void asm_load32(Asm *a, u32 dst, u32 base, u32 index, u32 scale, i32 disp); /* zero-extended */
void asm_save8(Asm *a, u32 base, u32 index, u32 scale, i32 disp, u32 src);
void asm_save16(Asm *a, u32 base, u32 index, u32 scale, i32 disp, u32 src);
void asm_save32(Asm *a, u32 base, i32 disp, u32 src);
void asm_zero_extend_word(Asm *a, u32 dst, u32 base, u32 index, u32 scale, i32 disp);
void asm_jump(Asm *a, u32 label);
void asm_jcc(Asm *a, u32 cc, u32 label);
void asm_call(Asm *a, u32 reg);
void asm_call_label(Asm *a, u32 label);
void asm_push(Asm *a, u32 reg);
void asm_pop(Asm *a, u32 reg);
void asm_ret(Asm *a);
void asm_vzeroupper(Asm *a);
void asm_sfence(Asm *a);
void asm_tzcnt(Asm *a, u32 dst, u32 src);

#endif
