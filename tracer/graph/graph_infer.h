/* graph_infer.h — the shape rules: what types an operation's results have, from its arguments in a trace. The cell
 * `shape` of a row of lang/ops.def names its rule: `infer_NAME`, which several operations may share. A rule fills the
 * first result, and others where `capacity` allows; it refuses arguments that the kernel would refuse, as a node whose
 * result nobody needs does not run. */
#ifndef WEFT_TRACER_GRAPH_INFER_H
#define WEFT_TRACER_GRAPH_INFER_H

#include "tracer/graph/graph.h"

enum { FEW_OPERANDS = 16 }; /* more take memory of their own */

typedef struct Infer {
  Graph *g;
  DimCtx *dims;
  u32 op;
  GraphArg args[OP_MAX_PARAMS];
  ArrayType *out; /* the first result */
  u32 capacity, count;
  RuleError *err;
  const ArrayType *few[FEW_OPERANDS], **more; /* types of the operands */
  u32 nmore;
} Infer;

/* `none` is a rule, too: no such operation becomes a node. */
#define OP(name, signature, family, dtype, shape, ...) bool infer_##shape(Infer *c);
#include "lang/ops.def"
#undef OP

/* ---- refusing (graph_args.c): all give false ---- */
bool inf_fail(Infer *c, ErrorKind kind, const char *text);
bool inf_no_rule(Infer *c);
bool inf_axis_fails(Infer *c, u32 p, ErrorKind kind, const char *what); /* an axis that is wrong, or not known */

/* ---- reading the argument for parameter p (graph_args.c) ---- */
const ArrayType *inf_type(const Infer *c, u32 p); /* of an operand; NULL: it is none */
bool inf_given(const Infer *c, u32 p);            /* and not nil */
bool inf_dim(Infer *c, u32 p, Dim fallback, Dim *out); /* an integer that is known or symbolic */
bool inf_int(Infer *c, u32 p, i64 fallback, i64 *out);
/* A list of integers known while tracing: an integer counts as a list of one. */
bool inf_ints(Infer *c, u32 p, u32 *n, i64 *out, u32 cap);
bool inf_shape(Infer *c, u32 p, u32 *rank, Dim *dims); /* a list of sizes, or one size */
bool inf_axis(Infer *c, u32 p, i64 fallback, bool *flat, i64 *axis); /* no fallback: INT64_MIN, then *flat */
/* All arrays among the arguments, lists included; they stay until the inference ends. */
bool inf_arrays(Infer *c, const ArrayType ***out, u32 *n);

/* ---- would the kernel take it? (graph_args.c) ---- */
bool inf_flags_fit(const Infer *c);    /* a flag is true or false, a dtype a dtype, or nil, whatever the operation */
bool inf_operands_fit(const Infer *c); /* those that must be there are */
bool inf_is_integer(const Infer *c, u32 p);
bool inf_are_integers(const Infer *c, u32 p);
bool inf_is_number(const Infer *c, u32 p); /* or not given */
bool inf_is_list(const Infer *c, u32 p);   /* of integers */
bool inf_is_key(const Infer *c);           /* the first one: of random numbers */
/* One of a few words, the default where there is none. */
bool inf_is_word(const Infer *c, u32 p, const char *const *words);
/* An axis, or several, of the first operand. `fallback`: when none was given; nil stands for it where `nil_too`. */
bool inf_axes_fit(const Infer *c, u32 p, i64 fallback, bool nil_too);
bool inf_scale_fits(const Infer *c, u32 p); /* it broadcasts to the first operand, or was not given */

/* ---- filling the first result ---- */
bool inf_same(Infer *c, const ArrayType *x);                  /* the type of x, but strong; true */
bool inf_dtype(Infer *c, const ArrayType *const *xs, u32 n);  /* by the column `dtype` */
/* The device that parameter p gives by its number, of an array made in a graph; not given: the processor. */
void inf_device(Infer *c, u32 p);
bool inf_new(Infer *c, u32 p, u32 dtype);                     /* of the shape that parameter p gives */
bool inf_reduced(Infer *c);                                   /* by the parameters axis and keepdims */

#endif
