/* code.h — a module of PTX as the stand-in holds it: what reader.c makes of the text, and machine.c runs. */
#ifndef WEFT_TESTS_SUPPORT_CUDA_CODE_H
#define WEFT_TESTS_SUPPORT_CUDA_CODE_H

#include "tests/support/cuda/machine.h"

#include <stdlib.h>

typedef enum Op {
  MOV, PACK, UNPACK, ADD, SUB, MUL, MULHI, WIDE, MAD, MADWIDE, DIV, REM, MIN, MAX, NEG, ABS, AND, OR, XOR, NOT, SHL,
  SHR, FMA, SQRT, COPYSIGN,
  CVT, CVT_PAIR, SETP, SELP, LD_PARAM, LD_GLOBAL, LD_CONST, LD_SHARED, ST_PARAM, ST_GLOBAL, ST_SHARED, RED_MIN,
  ATOM_ADD, BRA, RET, CALL, SHFL, BAR_WARP, BAR_SYNC, LDMATRIX, MMA, CP_ASYNC, CP_COMMIT, CP_WAIT,
} Op;
typedef enum Type { T_NONE, T_PRED, T_U8, T_U16, T_B16, T_F16, T_S32, T_U32, T_B32, T_F32, T_S64, T_U64, T_B64,
                    T_F64 } Type;
static const unsigned type_bytes[] = {0, 1, 1, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8};

typedef enum Special { SP_NONE, SP_CTAID, SP_NTID, SP_TID, SP_NCTAID } Special;

/* Where a named operand lies: a parameter of this function, an argument or the result of a call, the result of this
 * function. */
typedef enum Where { W_NONE, W_PARAM, W_ARGUMENT, W_CALLED, W_RESULT } Where;

typedef struct Operand {
  bool is_reg, is_special;
  unsigned char where;
  unsigned reg;
  uint64_t bits;
} Operand;

/* Instructions that make one register of registers and numbers, by what they do: machine.c, steps_until. */
typedef enum Usual {
  USUAL_NOT, USUAL_BRA, USUAL_MOVE, USUAL_ADD, USUAL_SUB, USUAL_MUL, USUAL_MAD, USUAL_AND, USUAL_OR, USUAL_XOR,
  USUAL_WIDE, USUAL_MADWIDE, USUAL_ADD_F32, USUAL_SUB_F32, USUAL_MUL_F32, USUAL_FMA_F32, USUAL_ADD_F64, USUAL_SUB_F64,
  USUAL_MUL_F64, USUAL_FMA_F64, USUAL_SETP, USUAL_SELP,
} Usual;

enum { OPERANDS = 14 /* of mma.sync */, OWN_OPERANDS = 4 };
typedef struct Insn {
  unsigned char op, type, from, how; /* how: comparison, rounding, elements of an access; of
                                         * ldmatrix: it turns; of mma.sync, pairs: bf16 */
  bool guarded, inverted;
  bool waits; /* a load of what another block publishes: the lowest bit says that it is there */
  unsigned char usual; /* a Usual */
  uint64_t mask; /* the bits of a usual instruction's result that its register keeps */
  unsigned guard, target; /* register; instruction or function */
  Operand *v; /* OWN_OPERANDS of them at least; those behind `count` are zeros */
  int count;
  unsigned line, offset; /* offset: bytes that are added to the address of an access */
} Insn;

struct MachineFn {
  char name[64];
  bool entry;
  const Machine *m;
  unsigned params;
  char param_names[600][16];
  unsigned base[6], regs; /* p h r rd f d */
  unsigned shared; /* bytes of shared memory */
  unsigned allowed; /* … that a launch may give beside them */
  char shared_names[4][16];
  unsigned shared_at[4], shared_count;
  bool waits; /* its blocks wait for one another: several run side by side */
  bool meets; /* has bar.sync or shared memory: the warps of a block run side by side */
  Insn *code;
  unsigned count, cap;
};

typedef struct Table {
  char name[64];
  uint64_t *values;
  size_t count;
} Table;

struct Machine {
  MachineFn *fns[256];
  unsigned fn_count;
  Table tables[32];
  unsigned table_count;
  bool dynamic; /* it declares `rows`, shared memory whose size a launch gives */
};

enum { EQ, NE, LT, LE, GT, GE, NEU, UNORDERED };   /* comparisons */
enum { EXACT, RN, RZI, RNI, RMI, RPI };            /* roundings */

static inline void *need(void *p) {
  if (!p) abort();
  return p;
}

#endif
