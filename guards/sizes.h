/* sizes.h — symbolic sizes: hash-consed integer expressions over symbols, their ranges, proofs about them,
 * and their compiled form.
 *
 * The currency is `Dim` (lang/ops.h): >= 0 is that constant, < 0 is expression number -dim of one SizePool.
 * Negative constants are expressions too. Every expression is kept in a canonical sum of products, so two
 * that are equal by + and * alone are the same Dim; compare with ==. DIM_NONE stands for failure: memory was
 * refused (pool->failed), or the expression left i64 or its size limits; the tracer then breaks.
 *
 * Meaning: checked i64. Evaluation fails when a step of the canonical form leaves i64 or divides by zero; the
 * region then takes its exit and the interpreter, where integers wrap, runs the code. When it does not fail, the
 * value is that of the program's own wrapping integers. Rules that go through
 * floordiv, mod, min, max or an order proof apply only where the ranges show that nothing overflows.
 * `floordiv` and `mod` round to minus infinity, like the language. */
#ifndef WEFT_GUARDS_SIZES_H
#define WEFT_GUARDS_SIZES_H

#include "lang/ops.h"
#include "parser/base.h"

#define DIM_NONE INT64_MIN
#define SIZE_LIMIT ((i64)1 << 62) /* sizes and trip counts stay below */

enum {
  SIZE_MAX_DEPTH = 40,  /* nesting of floordiv, mod, min, max and sums: recursion over it is safe */
  SIZE_MAX_TERMS = 48,  /* terms of a sum, alternatives of a min or max */
  SIZE_MAX_FACTORS = 8, /* factors of a product */
  SIZE_STACK = 128,     /* numbers that evaluation may have pending */
};

typedef enum SizeKind {
  SK_const,    /* value (negative constants only; others are the Dim itself) */
  SK_sym,      /* value = symbol index */
  SK_mul,      /* two or more atoms, sorted, repeats allowed */
  SK_add,      /* value (constant term) + sum of coefficient * (atom or product) */
  SK_floordiv, /* a // b */
  SK_mod,      /* a % b, with the sign of b */
  SK_min,      /* two or more */
  SK_max,
  SK_COUNT
} SizeKind;

typedef enum SizeRel { REL_eq, REL_ne, REL_le, REL_lt } SizeRel;

typedef enum SizeTruth { TRUTH_unknown, TRUTH_always, TRUTH_never } SizeTruth;

typedef struct SizeTerm {
  i64 coef;
  Dim of; /* sums: atom or product; elsewhere the argument, coef 1 */
} SizeTerm;

typedef struct SizeNode {
  u8 kind;
  u8 depth;
  bool unbacked; /* some symbol in it is known at run time only */
  u32 first, count; /* SizePool.terms */
  u32 hash;
  i64 value;
  Dim resolved;    /* what size_resolve gave in the epoch, */
  u32 epoch;       /* 0: not asked yet, */
  u32 proving;     /* inside so many proofs: nested deeper, less can be seen */
} SizeNode;

/* Where a symbol comes from is an opaque id: a SourceId of guards.h, or for unbacked ones the value of the
 * graph (graph.h) that carries the number. */
typedef struct SizeSym {
  const char *name; /* in the pool's arena */
  u32 source;
  bool unbacked;
  i64 lo, hi;  /* inclusive; assumed, so whoever narrows it beyond what the source promises adds a guard */
  i64 hint;    /* value seen while tracing; meaningless when unbacked */
  Dim same_as; /* what it was found equal to, or DIM_NONE */
  Dim dim;     /* the expression that is this symbol alone */
  u8 axis;     /* unbacked, carried by an array: its axis of that size */
  u32 anchor;  /* the recorder's: where its check stands in a list, 1 up; what stands there may be another's */
} SizeSym;

typedef struct SizeFact { /* known to hold, beyond ranges and same_as: diff rel 0 */
  u8 rel;
  Dim diff;
} SizeFact;

typedef struct SizeUndo {
  u32 sym;
  i64 lo, hi;
  Dim same_as;
} SizeUndo;

typedef struct SizePool {
  Allocator *alloc;
  Arena arena; /* names */
  VEC(SizeNode) nodes; /* index = -dim; entry 0 unused */
  VEC(SizeTerm) terms;
  VEC(SizeSym) syms;
  VEC(SizeFact) facts;
  VEC(SizeUndo) trail; /* old state of symbols, for rollback */
  u32 *slots;          /* open addressing: node ids */
  u32 slot_count;
  u32 equated;         /* symbols with same_as */
  u32 epoch;           /* rises when symbols are equated or rolled back */
  u32 proving;         /* proofs under way, one inside the other */
  /* what is known now, by number: the same again once what was assumed is rolled back; numbers given */
  u32 known, knowings;
  u32 proofs;          /* of sizes being equal, that were not remembered */
  struct SizeMemo *memo; /* NULL: none was made */
  bool named;          /* symbols were given names */
  bool failed;         /* memory was refused */
} SizePool;

typedef struct SizeMark {
  u32 nodes, terms, syms, facts, trail, known;
} SizeMark;

void size_init(SizePool *p, Allocator *alloc); /* allocates nothing */
void size_free(SizePool *p);
bool size_clone(SizePool *to, const SizePool *from, Allocator *alloc) MUST_USE; /* ids stay the same */

/* Everything made, narrowed or equated after the mark is undone. */
SizeMark size_mark(const SizePool *p);
void size_rollback(SizePool *p, SizeMark m);

/* ---- making expressions (DIM_NONE in, DIM_NONE out) --------------------------------------------- */

/* `name` NULL: n0, n1 … Names are made unique. Range inclusive. */
Dim size_sym(SizePool *p, const char *name, u32 source, i64 lo, i64 hi, i64 hint);
Dim size_unbacked(SizePool *p, const char *name, u32 value, i64 lo, i64 hi);
/* The unbacked symbol in d that is known last (its size_first_symbol). False: none. */
bool size_last_unbacked(const SizePool *p, Dim d, u32 *sym);
/* The first symbol for what `sym` stands for: there may be several for one carrier. */
u32 size_first_symbol(const SizePool *p, u32 sym);
/* d with symbol `from[i]` replaced by the expression to[i]. */
Dim size_substitute(SizePool *p, Dim d, const u32 *from, const Dim *to, u32 count);
Dim size_const(SizePool *p, i64 v);
Dim size_add(SizePool *p, Dim a, Dim b);
Dim size_sub(SizePool *p, Dim a, Dim b);
Dim size_mul(SizePool *p, Dim a, Dim b);
Dim size_floordiv(SizePool *p, Dim a, Dim b);
Dim size_mod(SizePool *p, Dim a, Dim b);
Dim size_min(SizePool *p, Dim a, Dim b);
Dim size_max(SizePool *p, Dim a, Dim b);
Dim size_ceildiv(SizePool *p, Dim a, Dim b);
Dim size_above_zero(const SizePool *p, Dim d); /* d, which is above 0: without a maximum with 0 */
/* op as in DimCtx.binary: + - * / (floor) % m (min) M (max). */
Dim size_binary(SizePool *p, char op, Dim a, Dim b);
/* The expression with every equated symbol replaced; what the makers above do to their arguments. */
Dim size_resolve(SizePool *p, Dim d);

/* ---- asking ------------------------------------------------------------------------------------- */

bool size_is_const(const SizePool *p, Dim d, i64 *out);
bool size_is_sym(const SizePool *p, Dim d, u32 *sym);
bool size_is_unbacked(const SizePool *p, Dim d);
typedef struct SizeRange {
  i64 lo, hi;  /* inclusive, clamped to i64 */
  bool fits;   /* proved: the true value lies in i64, so evaluation of the outermost step cannot fail */
} SizeRange;
SizeRange size_range(const SizePool *p, Dim d);
SizeTruth size_prove(SizePool *p, SizeRel rel, Dim a, Dim b);
static inline bool size_same(SizePool *p, Dim a, Dim b) { return size_prove(p, REL_eq, a, b) == TRUTH_always; }
/* The value by the symbols' hints; false when unbacked or evaluation fails. */
bool size_hint(const SizePool *p, Dim d, i64 *out);
/* The value given one number per symbol. False: it left i64 or divided by zero. */
bool size_eval(const SizePool *p, Dim d, const i64 *syms, i64 *out);
/* The same for an integer of the program, which wraps. False: divided by zero. */
bool size_eval_wrapped(const SizePool *p, Dim d, const i64 *syms, i64 *out);
static inline bool rel_holds(SizeRel rel, i64 a, i64 b) {
  return rel == REL_eq ? a == b : rel == REL_ne ? a != b : rel == REL_le ? a <= b : a < b;
}
const char *rel_text(SizeRel rel); /* "==" … */

/* Makes the relation known (a guard or a check stands for it): symbols are equated, ranges narrowed, the
 * rest is kept as a fact. False when it contradicts what is known, or memory was refused. */
bool size_assume(SizePool *p, SizeRel rel, Dim a, Dim b) MUST_USE;
/* What was learnt later may make an expression simpler. Says all that is known again in the simpler forms, once a
 * graph is whole: its sizes are then worked out in these. False: memory was refused. */
bool size_renew_facts(SizePool *p) MUST_USE;

/* Calls back for each symbol of the expression (each once per occurrence). */
void size_symbols(const SizePool *p, Dim d, void (*each)(void *ctx, u32 sym), void *ctx);

/* ---- text --------------------------------------------------------------------------------------- */

void size_print(const SizePool *p, Dim d, Buf *out); /* `2*n + 1`, `(n + 7) // 8`, `min(n, m)` */
/* The same with `name` writing each symbol (guards name the sources: `size(arg0, 1)`). */
void size_print_named(const SizePool *p, Dim d, void (*name)(void *ctx, u32 sym, Buf *out), void *ctx, Buf *out);
/* Parses what size_print writes (symbols must exist). Returns the position after it, NULL on a syntax error. */
const char *size_parse(SizePool *p, const char *text, const char *end, Dim *out);

/* ---- compiled form ------------------------------------------------------------------------------ */

/* Postfix code over numbers that lie in 8-byte slots; needs no pool. Words: opcode in the low 8 bits, for
 * `slot` its number above; `const` is followed by its word. Lies in whatever arena the caller gives. */
typedef struct SizeCode {
  const i64 *words;
  u32 count;
  u32 slots; /* it reads such below this alone */
} SizeCode;
/* slot_of[sym] is the slot that holds the symbol's value. False when memory was refused, a symbol has no slot
 * (UINT32_MAX), or the expression needs more than SIZE_STACK. Equated symbols are not replaced: the guard that
 * equates them is compiled this way too. */
bool size_compile(const SizePool *p, Dim d, const u32 *slot_of, Arena *arena, SizeCode *out) MUST_USE;
bool size_run(const SizeCode *code, const u64 *slots, i64 *out); /* false: left i64 or divided by zero */

#endif
