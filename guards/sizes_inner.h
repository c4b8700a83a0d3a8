/* sizes_inner.h — what the files of symbolic sizes share: access to nodes, sums as terms on the stack. */
#ifndef WEFT_GUARDS_SIZES_INNER_H
#define WEFT_GUARDS_SIZES_INNER_H

#include "guards/sizes.h"

static inline const SizeNode *node_of(const SizePool *p, Dim d) { return &p->nodes.data[-d]; } /* d < 0 */

/* c + sum of terms, unsorted. */
typedef struct SizePoly {
  i64 c;
  u32 n;
  SizeTerm t[SIZE_MAX_TERMS];
} SizePoly;

void poly_of(const SizePool *p, Dim d, SizePoly *out); /* d is not DIM_NONE */
bool poly_add_term(SizePoly *q, i64 coef, Dim of);     /* false: overflow or too many */
Dim poly_make(SizePool *p, SizePoly *q);               /* sorts q */
u64 poly_gcd(const SizePoly *q);                       /* of the coefficients without the constant; 0 without terms */

static inline i64 floor_div(i64 a, i64 b) { /* b is not 0, the quotient fits */
  i64 q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
static inline i64 floor_mod(i64 a, i64 b) { /* b is not 0; the sign of b */
  if (b == -1) return 0;
  i64 r = a % b;
  return r && (r < 0) != (b < 0) ? r + b : r;
}

/* Questions whether two sizes are equal, and their answers: most are asked again and again while nothing more is
 * known. */
enum { SIZE_MEMO = 64 };
typedef struct SizeMemo {
  struct SizeAnswer {
    Dim a, b; /* a < b; a == b: none */
    u32 known;
    u8 equal; /* SizeTruth */
  } answers[SIZE_MEMO];
  Dim newest; /* no answer is about an expression made after this one */
} SizeMemo;

void size_forget(SizePool *p, u32 nodes); /* answers about expressions made behind that many */

/* The expression made once more, by the ranges and facts of now: min(1, n) is 1 once n >= 1 is known. */
Dim size_renew(SizePool *p, Dim d);
/* The same, and what facts leave one value for becomes that number. A fact itself must not be said anew in this form:
 * it would make itself 0. */
Dim size_renew_by_facts(SizePool *p, Dim d);
/* Do ranges and facts leave one value for d? */
bool size_is_one_number(SizePool *p, Dim d, i64 *out);

#endif
