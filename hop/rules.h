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
Dv dv_permute(Deriv *d, Dv x, const u32 *perm);           /* result axis i is axis perm[i] of x */
Dv dv_reduce(Deriv *d, u32 op, Dv x, u32 mask, bool keepdims);
Dv dv_convert(Deriv *d, Dv x, u32 dtype);
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

/* False, without d->failed: no rule here. */
bool rules_reduce(Deriv *d, const DerivNode *n, Dv g, const bool *wants, Dv *out);
bool rules_linalg(Deriv *d, const DerivNode *n, Dv g, const bool *wants, Dv *out);
bool rules_factors(Deriv *d, const DerivNode *n, const Dv *ct, const bool *wants, Dv *out); /* linalg */
bool rules_product(Deriv *d, const DerivNode *n, Dv g, const bool *wants, Dv *out);
bool rules_select(Deriv *d, const DerivNode *n, const Dv *ct, const bool *wants, Dv *out);
bool rules_pad_by_elements(Deriv *d, const DerivNode *n, const ArrayType *t, const i64 *before, const i64 *after,
                           Dv g, Dv *out);
bool rules_shape(Deriv *d, const DerivNode *n, const Dv *ct, const bool *wants, Dv *out);

#endif
