/* rules.h — what the files of derivative rules share. */
#ifndef WEFT_HOP_RULES_H
#define WEFT_HOP_RULES_H

#include "hop/deriv.h"

/* Operations on handles. 0 in, 0 out. */
Dv dv_op(Deriv *d, u32 op, const Dv *operands, u32 count, const GraphAttr *attrs, u32 nattrs);
Dv dv1(Deriv *d, u32 op, Dv a);
Dv dv2(Deriv *d, u32 op, Dv a, Dv b);
Dv dv3(Deriv *d, u32 op, Dv a, Dv b, Dv c);
Dv dv_num(Deriv *d, f64 v);
Dv dv_reshape(Deriv *d, Dv x, u32 rank, const Dim *dims); /* x itself when it has that shape; so below */
Dv dv_stretch(Deriv *d, Dv x, u32 rank, const Dim *dims);
Dv dv_numbers(Deriv *d, Dim n); /* 0 … n-1, on the device of what is pulled back */
Dv dv_permute(Deriv *d, Dv x, const u32 *perm);           /* result axis i is axis perm[i] of x */
Dv dv_reduce(Deriv *d, u32 op, Dv x, u32 mask, bool keepdims);
Dv dv_convert(Deriv *d, Dv x, u32 dtype);
/* What |x| changes by: its sign, of a complex number the conjugate of its direction; has derivatives itself. */
Dv dv_slope_of_abs(Deriv *d, Dv x);
Dv dv_conj(Deriv *d, Dv x);                               /* x itself where it is real */
Dv dv_turned(Deriv *d, Dv x);                             /* the last two axes exchanged */
Dv dv_widened(Deriv *d, Dv v, u32 at);                    /* a size of 1 put in before axis `at` */
/* g where x equals y, shared among ties along the axes of mask */
Dv dv_share_ties(Deriv *d, Dv x, Dv y, Dv g, u32 mask);
Dv dv_positions(Deriv *d, Dim n, u32 rank, u32 axis);     /* 0 … n-1 along `axis` of `rank` axes */
static inline ArrayType dv_type(Deriv *d, Dv x) { return x ? d->to->type(d, x) : (ArrayType){0}; }

#define ADD(a, b) dv2(d, OP_add, a, b)
#define SUB(a, b) dv2(d, OP_subtract, a, b)
#define MUL(a, b) dv2(d, OP_multiply, a, b)
#define DIV(a, b) dv2(d, OP_divide, a, b)
#define NEG(a) dv1(d, OP_negative, a)
#define NUM(v) dv_num(d, v)

/* The axes in `mask` in line, as one last axis; and back. */
typedef struct Lined {
  ArrayType type; /* before */
  u32 perm[TYPE_MAX_RANK], rank;
  Dim count;      /* of the last axis */
} Lined;
Dv dv_lined(Deriv *d, Dv x, const ArrayType *t, u32 mask, Lined *l);
Dv dv_unlined(Deriv *d, Dv x, const Lined *l);

/* ---- rules -------------------------------------------------------------------------------------------------- */

/* What a rule reads beside types. result: that alone; operands: all of them, not the result; others: an operand where
 * another one is wanted. The tape saves what is read, and of all else the type. */
typedef enum Reads { READS_all, READS_nothing, READS_result, READS_operands, READS_others, READS_divide, READS_power,
                     READS_condition, READS_indices } Reads;

/* What is pulled back by an operation: operands x and b (0: it has one), the first result y, cotangents. */
typedef struct Pull {
  Dv x, b, y, g; /* g: of y */
  ArrayType t;   /* of x */
  const Dv *ct;  /* of all results */
  const bool *wants;
  Dv *out;
} Pull;

/* The rule of an operation, or of several: the cell `deriv` of ops.def names it. It has either of the functions. */
typedef struct DerivRule {
  u8 reads;  /* Reads */
  bool many; /* of an operation with several results */
  /* of one operand and one result: the cotangent of x; 0 without d->failed: there is none for these arguments */
  Dv (*one)(Deriv *d, const DerivNode *n, const Pull *p);
  /* the cotangents of operands; false without d->failed: there is no rule for these arguments */
  bool (*pull)(Deriv *d, const DerivNode *n, const Pull *p);
} DerivRule;

/* Each writes one rule, deriv_NAME, in the names of Pull. ONE: the cotangent of x. TWO: those of the operands x and b.
 * RULE: whether it holds, out being filled. MANY: the same of several results. */
#define RULE_NAMES                                                                              \
  const Dv x = p->x, b = p->b, y = p->y, g = p->g, *const ct = p->ct;                           \
  const ArrayType *const t = &p->t;                                                             \
  const bool *const wants = p->wants;                                                           \
  Dv *const out = p->out;                                                                       \
  (void)d, (void)n, (void)x, (void)b, (void)y, (void)g, (void)ct, (void)t, (void)wants, (void)out
#define ONE(name, reads_, formula)                                         \
  static Dv one_##name(Deriv *d, const DerivNode *n, const Pull *p) {      \
    RULE_NAMES;                                                            \
    return formula;                                                        \
  }                                                                        \
  const DerivRule deriv_##name = {.reads = READS_##reads_, .one = one_##name};
#define TWO(name, reads_, to_x, to_b)                                      \
  static bool two_##name(Deriv *d, const DerivNode *n, const Pull *p) {    \
    RULE_NAMES;                                                            \
    if (n->count != 2) return false;                                       \
    if (wants[0]) out[0] = to_x;                                           \
    if (wants[1]) out[1] = to_b;                                           \
    return true;                                                           \
  }                                                                        \
  const DerivRule deriv_##name = {.reads = READS_##reads_, .pull = two_##name};
#define RULE_OF(name, reads_, many_, holds)                                \
  static bool rule_##name(Deriv *d, const DerivNode *n, const Pull *p) {   \
    RULE_NAMES;                                                            \
    return holds;                                                          \
  }                                                                        \
  const DerivRule deriv_##name = {.reads = READS_##reads_, .many = many_, .pull = rule_##name};
#define RULE(name, reads, holds) RULE_OF(name, reads, false, holds)
#define MANY(name, reads, holds) RULE_OF(name, reads, true, holds)

bool dv_pull_matmul(Deriv *d, Dv x, Dv y, Dv g, const bool *wants, Dv *out); /* of x @ y */
/* The number that a setting is; false: it is none, or not known. */
bool rules_number(Deriv *d, const GraphArg *a, f64 fallback, f64 *out);
bool rules_pad_by_elements(Deriv *d, const DerivNode *n, const ArrayType *t, const i64 *before, const i64 *after,
                           Dv g, Dv *out);

#endif
