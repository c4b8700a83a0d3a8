/* ops.h — hand-off format: every built-in operation as a row of ops.def, and the shape and dtype rules that
 * eager and traced execution share.
 * Described in docs/formats/operations.md.
 *
 * A `Dim` is a size: >= 0 a constant, < 0 the symbolic expression with id -dim (guards/sizes.h). Rules see
 * symbolic sizes through a DimCtx only, which proves, records guards or emits checks as its owner decides. */
#ifndef WEFT_LANG_OPS_H
#define WEFT_LANG_OPS_H

#include "lang/dtypes.h"
#include "lang/errors.h"
#include "parser/base.h"

/* OP(name, signature, family, dtype, shape, needs, check, effect, agree, kernel, lower, deriv, batch, flops, doc)
 * See ops.def for what each column may hold. */
typedef enum OpId {
  OP_none = 0,
#define OP(name, ...) OP_##name,
#include "lang/ops.def"
#undef OP
  OP_COUNT
} OpId;

/* Tables that are made of one column. The file defines CELL_word as `~, KIND, argument` for words that it knows, and OP
 * as OP_CELL(name, CELL_##column), which becomes KIND(name, argument); with another word it becomes nothing. */
#define OP_CELL(name, cell) OP_CELL_(name, cell, OP_NOTHING, 0, ~)
#define OP_CELL_(name, mark, kind, argument, ...) kind(name, argument)
#define OP_NOTHING(name, argument)

/* The standard modules: `linalg_eigh` is shown as `linalg.eigh`. */
#define OP_MODULES(X) X(linalg) X(nn) X(fft) X(random) X(optim) X(plot) X(trace) \
  X(regex) X(json) X(date) X(table) X(stats) X(signal) X(ode) X(integrate)

typedef enum OpFamily { FAM_elementwise, FAM_reduce, FAM_scan, FAM_view, FAM_index, FAM_make, FAM_sort, FAM_linalg,
                        FAM_fft, FAM_random, FAM_text, FAM_io, FAM_control, FAM_tree, FAM_data } OpFamily;
typedef enum OpDType { DTYPE_RULE_none, DTYPE_RULE_same, DTYPE_RULE_promote, DTYPE_RULE_float_of, DTYPE_RULE_arith,
                       DTYPE_RULE_arith_same, DTYPE_RULE_compare, DTYPE_RULE_logic, DTYPE_RULE_bits, DTYPE_RULE_shift,
                       DTYPE_RULE_test, DTYPE_RULE_int_same, DTYPE_RULE_where, DTYPE_RULE_given, DTYPE_RULE_accum,
                       DTYPE_RULE_index, DTYPE_RULE_complex_of, DTYPE_RULE_custom } OpDType;
typedef enum OpEffect { EFF_pure, EFF_raises, EFF_rng, EFF_output, EFF_input, EFF_clock, EFF_process, EFF_file,
                        EFF_state, EFF_ends } OpEffect;
typedef enum OpAgree { AGREE_bits, AGREE_order, AGREE_lib } OpAgree;
typedef enum OpLower { LOWER_none, LOWER_element, LOWER_math, LOWER_convert, LOWER_reduce, LOWER_scan, LOWER_view,
                       LOWER_move, LOWER_make, LOWER_fill, LOWER_mask, LOWER_join, LOWER_compose, LOWER_extern,
                       LOWER_calls, LOWER_weft } OpLower;
/* How a construct calls functions. */
typedef enum OpCalls { CALLS_none, CALLS_freely, CALLS_in_order } OpCalls;
/* Which elements of an operand that is an array one element of the result reads. */
typedef enum OpReads { READS_same, READS_moved, READS_renumbered, READS_spread } OpReads;
/* What a reduction or scan makes of an element and what came before. */
typedef enum OpFold { FOLD_none, FOLD_add, FOLD_mul, FOLD_min, FOLD_max, FOLD_all, FOLD_any, FOLD_count, FOLD_argmin,
                      FOLD_argmax } OpFold;
typedef enum OpDeriv { DERIVATIVE_none, DERIVATIVE_rule, DERIVATIVE_zero, DERIVATIVE_construct,
                       DERIVATIVE_weft } OpDeriv;
typedef enum OpBatch { BATCH_elementwise, BATCH_rule, BATCH_loop, BATCH_construct, BATCH_weft } OpBatch;

enum { OP_MAX_PARAMS = 10 };

/* What a parameter holds: X(kind). Operands are inputs of a node; what follows `operands` are settings, which a graph
 * keeps beside a node as attributes, known while tracing or sizes.
 *   any        a value of the program, of an operation that is no node of a graph
 *   operand    an array or a number
 *   like       the same; of it only dtype, shape and device are looked at: zeros_like(x)
 *   condition  looked at as true or false; the rule of dtypes does not ask for its dtype: where(c, a, b)
 *   stored     its elements are stored as they are, in the dtype of the result: full(2, value)
 *   places     integers: places along an axis of the first operand: take(x, indices)
 *   classes    integers of 0 or more: places along an axis of the result: one_hot(x, n)
 *   written    stored at the places that another parameter holds: scatter(x, idx, updates)
 *   order      places at which the first operand is read beforehand: searchsorted(a, v, sorter=order)
 *   joined     a list of operands, or an array for its rows, stored as they are: stack(xs)
 *   operands   a list of operands, or an array for its rows
 *   count      a number is a setting, a size; an array is an operand: repeat(x, n)
 *   setting    a number, a word, or a list of numbers
 *   size       how many there are of something, 0 or more
 *   window     the same, 1 or more
 *   shape      sizes
 *   layout     sizes, one of which may be -1: reshape(x, (2, -1))
 *   axis       an axis or several. A size there is fixed to its present value, since rules must know it
 *   axis_list  the same, and no array: min(a, b) is an error
 *   flag       true or false; its default is one of them
 *   dtype, device */
#define OP_PARAM_KINDS(X) X(any) X(operand) X(like) X(condition) X(stored) X(places) X(classes) X(written) X(order) \
  X(joined) X(operands) X(count) X(setting) X(size) X(window) X(shape) X(layout) X(axis) X(axis_list) X(flag) \
  X(dtype) X(device)
#define PARAM_KIND(kind) PARAM_##kind,
typedef enum ParamKind { OP_PARAM_KINDS(PARAM_KIND) PARAM_KIND_COUNT } ParamKind;
#undef PARAM_KIND

/* One parameter of a signature: "(x, axis=nil, ...xs, keepdims=false)"; `...xs` collects the rest. */
typedef struct OpParam {
  const char *name;
  const char *initial; /* its default as the signature writes it, or NULL */
  u32 len;             /* of the name */
  bool has_default; /* the kernel sees V_HOLE when it was not given, and knows its default */
  bool nil_default; /* it is nil */
  bool keyword_only;
  bool rest;        /* arrives as one list */
  u8 kind;          /* ParamKind */
} OpParam;

/* Is it a setting, given a number, a list or a word? */
static inline bool param_is_operand(const OpParam *p) { return p->kind > PARAM_any && p->kind <= PARAM_operands; }
static inline bool param_is_setting(const OpParam *p) { return p->kind > PARAM_operands; }
/* Is it one, given an array of rank 1 or more? */
static inline bool param_keeps_arrays(const OpParam *p) { return p->kind > PARAM_count; }
/* Does it take the items of a list as operands? */
static inline bool param_joins(const OpParam *p) {
  return p->kind == PARAM_joined || p->kind == PARAM_operands || p->rest;
}
static inline bool param_is_shape(const OpParam *p) { return p->kind == PARAM_shape || p->kind == PARAM_layout; }
static inline bool param_is_axis(const OpParam *p) { return p->kind == PARAM_axis || p->kind == PARAM_axis_list; }
/* Must it be a number of 0 or more? */
static inline bool param_is_size(const OpParam *p) {
  return p->kind == PARAM_count || (p->kind >= PARAM_size && p->kind <= PARAM_layout);
}

typedef struct OpInfo {
  const char *name;      /* as shown: "linalg.eigh" */
  const char *signature; /* as users see it, without kinds */
  const char *doc;       /* "what; example == value" */
  const char *instead;   /* where deriv is none: what has a derivative in its place, or "" */
  u8 family;             /* OpFamily */
  u8 dtype;              /* OpDType: rule_dtype */
  u8 needs;              /* DTypeNeed: what its operands' dtypes must be able to do */
  u8 check;              /* CheckKind: what it can raise at run time */
  u8 effect;             /* OpEffect */
  u8 agree;              /* OpAgree */
  u8 lower;              /* OpLower */
  u8 deriv;              /* OpDeriv */
  u8 batch;              /* OpBatch */
  u32 flops;             /* per element */
  bool gives_list;       /* of one array too */
  u32 nparams;
  const OpParam *params;
  u8 reads;              /* OpReads: of a view, a move, an array made of sizes */
  u8 folds;              /* OpFold: of a reduction or scan that has a loop */
  u8 calls;              /* OpCalls: of a construct */
  u8 fill;               /* of an array that is made: the number that all of its elements are */
} OpInfo;

extern const OpInfo op_infos[OP_COUNT];
static inline const OpInfo *op_info(u32 op) { return &op_infos[op < OP_COUNT ? op : 0]; }
OpId op_by_name(const char *s, size_t len); /* shown name; OP_none when there is none */
#define OP_MODULE(name) OP_MODULE_##name,
enum { OP_MODULES(OP_MODULE) OP_MODULE_COUNT };
#undef OP_MODULE
extern const char *const op_modules[OP_MODULE_COUNT];
bool op_takes_shape(u32 op); /* has a parameter `shape` */
static inline DTypeNeed op_need(u32 op) { return (DTypeNeed)op_info(op)->needs; }
bool op_takes(u32 op, u32 dtype); /* operands, or a result, of that dtype; else it is not supported for it */
bool op_gives_real(u32 op);       /* of complex operands the real dtype */
bool op_complex_deriv(u32 op);    /* of complex operands it has the derivative that it has of real ones */
/* what it gives depends on its operands alone */
static inline bool op_is_pure(u32 op) { return op_info(op)->effect <= EFF_raises; }
/* it does something that is seen outside of what it gives */
static inline bool op_acts(u32 op) { return op_info(op)->effect > EFF_rng; }
/* it gives what it is given in another dtype */
static inline bool op_converts(u32 op) { return op_info(op)->lower == LOWER_convert; }
/* with integers it may refuse the numbers that it is given */
static inline bool op_refuses_integers(u32 op) {
  return op_info(op)->check == CHECK_zero_div || op_info(op)->check == CHECK_neg_power;
}
/* it makes an array of one number, which its name says */
static inline bool op_fills(u32 op) { return op_info(op)->lower == LOWER_fill; }
/* what it makes has dtype, shape and device of what it is given */
static inline bool op_follows(u32 op) { return op_info(op)->nparams && op_info(op)->params[0].kind == PARAM_like; }
/* the first of its parameters of that kind; UINT32_MAX: it has none */
u32 op_param_of(u32 op, ParamKind kind);
/* it looks at elements as true or false, or gives the place of one */
static inline bool op_folds_truth(u32 op) { return op_info(op)->folds >= FOLD_all && op_info(op)->folds <= FOLD_count; }
static inline bool op_folds_place(u32 op) { return op_info(op)->folds >= FOLD_argmin; }
static inline bool op_compares(u32 op) { return op_info(op)->dtype == DTYPE_RULE_compare; }
static inline const char *op_name(u32 op) { return op_info(op)->name; }

/* ---- types and rules ------------------------------------------------------------------------ */

typedef i64 Dim;
enum { TYPE_MAX_RANK = 16 };

/* The abstract type of an array value. */
typedef struct ArrayType {
  u8 dtype;
  bool weak; /* rank 0 only */
  u8 rank;
  u8 device;
  Dim dims[TYPE_MAX_RANK];
} ArrayType;

/* Is it kept as a number, one word? Else as an array, which rank 0 of c128, or on a device, is too. */
static inline bool type_is_number(const ArrayType *t) { return !t->rank && !t->device && t->dtype != DT_c128; }

/* How a rule treats symbolic sizes. NULL functions (or a NULL context): all dims are constants. */
typedef struct DimCtx DimCtx;
struct DimCtx {
  /* Is a == b? Eager: compares. Tracing: proves it, or decides by the hints and records a guard or check. */
  bool (*equal)(DimCtx *, Dim a, Dim b);
  bool (*is_one)(DimCtx *, Dim a); /* broadcasting asks only after `equal` said no */
  Dim (*binary)(DimCtx *, char op, Dim a, Dim b); /* '+' '*' '/' (floor) '%' 'm' (min) 'M' (max) '-' */
};
/* Constant results saturate here: making an array of such a size is an error. */
#define DIM_TOO_BIG ((Dim)1 << 62)
bool dim_equal(DimCtx *c, Dim a, Dim b);
bool dim_is_one(DimCtx *c, Dim a);
Dim dim_binary(DimCtx *c, char op, Dim a, Dim b);

/* Why a rule failed: kind and text (without the function's name), for both tiers the same. */
typedef struct RuleError {
  u8 kind; /* ErrorKind */
  char text[240];
} RuleError;

/* Broadcasts n types' dims by NumPy's rules into out->rank, out->dims. `name_shapes` in the error. */
bool rule_broadcast(DimCtx *c, u32 n, const ArrayType *const *xs, ArrayType *out, RuleError *err);
/* Normalises an axis (negative counts from the end); false: out of range, err filled. */
bool rule_axis(i64 axis, u32 rank, u32 *out, RuleError *err);
/* What round(x, decimals) takes, and what x is multiplied by, or divided by where decimals are below 0. */
static inline bool rule_decimals(i64 decimals) { return decimals >= -30 && decimals <= 300; }
static inline f64 rule_power_of_ten(i64 decimals) {
  f64 power = 1;
  for (i64 k = decimals < 0 ? -decimals : decimals; k > 0; k--) power *= 10;
  return power;
}
/* dims after reducing the axes in mask. */
void rule_reduce(const ArrayType *x, u32 axes_mask, bool keepdims, ArrayType *out);
/* Appends "(3, 4)" ; symbolic sizes as "n1". */
void rule_shape_text(const ArrayType *t, char *out, size_t cap);

/* The dtype column of ops.def: given n operand types, the compute dtype (operands are converted to it)
 * and the result dtype and weakness. */
typedef struct DTypeResult {
  u8 compute, result;
  bool weak;
} DTypeResult;
bool rule_dtype(u32 op, u32 n, const ArrayType *const *xs, DTypeResult *out, RuleError *err);

/* ---- shape rules (rules_shape.c) --------------------------------------------------------------
 * One per operation or group of operations whose shape is more than a broadcast or a reduction. They fill
 * out->rank and out->dims only; attributes are already integers. A failed rule says why, without the name. */
#define DIM_INFER INT64_MIN /* the one size that reshape works out */
/* of a result in a trace: a size known when the operation has run, one for the whole operation */
#define DIM_FRESH (INT64_MIN + 1)

/* Axes as given (negative ones count from the end) to a bit mask; a repeated one is an error. */
bool rule_axes(u32 n, const i64 *axes, u32 rank, u32 *mask, RuleError *err);
/* transpose(x, nil): reversed. moveaxis and swapaxes as permutations: result axis d is axis perm[d] of x. */
bool rule_permutation(u32 n, const i64 *axes, u32 rank, u32 *perm, RuleError *err);
bool rule_moveaxis(u32 n, const i64 *source, const i64 *destination, u32 rank, u32 *perm, RuleError *err);
bool rule_swapaxes(i64 a, i64 b, u32 rank, u32 *perm, RuleError *err);
void shape_transpose(const ArrayType *x, const u32 *perm, ArrayType *out);
bool shape_reshape(DimCtx *c, const ArrayType *x, u32 rank, const Dim *dims, ArrayType *out, RuleError *err);
void shape_ravel(DimCtx *c, const ArrayType *x, ArrayType *out);
/* all: drop every axis of size 1; else those in `mask`, which must have it. *dropped: the axes that went. */
bool shape_squeeze(DimCtx *c, const ArrayType *x, bool all, u32 mask, ArrayType *out, u32 *dropped, RuleError *err);
/* `axes` are positions in the result. *added: the mask of new axes. */
bool shape_expand_dims(const ArrayType *x, u32 n, const i64 *axes, ArrayType *out, u32 *added, RuleError *err);
bool shape_broadcast_to(DimCtx *c, const ArrayType *x, u32 rank, const Dim *dims, ArrayType *out, RuleError *err);
bool shape_concat(DimCtx *c, u32 n, const ArrayType *const *xs, i64 axis, ArrayType *out, RuleError *err);
bool shape_stack(DimCtx *c, u32 n, const ArrayType *const *xs, i64 axis, ArrayType *out, RuleError *err);
bool shape_tile(DimCtx *c, const ArrayType *x, u32 n, const Dim *reps, ArrayType *out, RuleError *err);
/* widths: (before, after) for each axis. */
void shape_pad(DimCtx *c, const ArrayType *x, const Dim *before, const Dim *after, ArrayType *out);
/* windows[i] over axes[i]; the window axes come last. */
bool shape_sliding_window(DimCtx *c, const ArrayType *x, u32 n, const Dim *windows, const u32 *axes, ArrayType *out,
                          RuleError *err);
bool shape_diff(DimCtx *c, const ArrayType *x, i64 n, i64 axis, ArrayType *out, RuleError *err);
/* flat: no axis was given, which only rank 0 and 1 allow; the result has rank 1. */
bool shape_scan(DimCtx *c, const ArrayType *x, bool flat, i64 axis, bool include_initial, ArrayType *out,
                RuleError *err);
bool shape_take(DimCtx *c, const ArrayType *x, const ArrayType *indices, bool flat, i64 axis, ArrayType *out,
                RuleError *err);
bool shape_take_along_axis(DimCtx *c, const ArrayType *x, const ArrayType *indices, i64 axis, ArrayType *out,
                           RuleError *err);
bool shape_one_hot(const ArrayType *x, Dim n, i64 axis, ArrayType *out, RuleError *err);
/* One axis of x gets size n (compress with size, topk, repeat). */
bool shape_resize_axis(const ArrayType *x, i64 axis, Dim n, ArrayType *out, RuleError *err);
/* rank 1: matrix; rank 2: diagonal */
bool shape_diag(DimCtx *c, const ArrayType *x, i64 k, ArrayType *out, RuleError *err);
/* of the last two axes, batched */
bool shape_diagonal(DimCtx *c, const ArrayType *x, i64 k, ArrayType *out, RuleError *err);
bool shape_matrix(const ArrayType *x, RuleError *err);                  /* rank 2 at least */
/* Fourier transforms (ops.def, fft): pairs are (..., n, 2), or complex numbers (..., n). */
bool shape_fft_pairs(DimCtx *c, const ArrayType *x, RuleError *err);
bool shape_fft_real(DimCtx *c, const ArrayType *x, ArrayType *out, RuleError *err);
bool shape_fft_whole(DimCtx *c, const ArrayType *x, Dim n, ArrayType *out, RuleError *err);
bool shape_square(DimCtx *c, const ArrayType *x, RuleError *err);       /* and the last two sizes are equal */
bool shape_matmul(DimCtx *c, const ArrayType *x, const ArrayType *y, ArrayType *out, RuleError *err);
bool shape_dot(DimCtx *c, const ArrayType *x, const ArrayType *y, ArrayType *out, RuleError *err);
bool shape_vecdot(DimCtx *c, const ArrayType *x, const ArrayType *y, i64 axis, ArrayType *out, RuleError *err);
/* n pairs of contracted axes, normalised into xa and ya. */
bool shape_tensordot(DimCtx *c, const ArrayType *x, const ArrayType *y, u32 n, const i64 *x_axes, const i64 *y_axes,
                     u32 *xa, u32 *ya, ArrayType *out, RuleError *err);
bool shape_solve(DimCtx *c, const ArrayType *a, const ArrayType *b, ArrayType *out, RuleError *err);
bool shape_kron(DimCtx *c, const ArrayType *x, const ArrayType *y, ArrayType *out, RuleError *err);
bool shape_cross(DimCtx *c, const ArrayType *x, const ArrayType *y, i64 axis, ArrayType *out, RuleError *err);

/* An axis of windows in an einsum spec: `(2p+3i)` is item 2 p + 3 i of the axis, for each p and i. */
typedef struct EinsumWindow {
  u8 first, second; /* letters; in a plan `second` is a label + 1, and 0 where there is no window */
  i64 steps[2];
} EinsumWindow;
/* Reads one from `(` on, and leaves *s at its `)`. false: it is none. */
bool einsum_window(const char **s, const char *end, EinsumWindow *w);

/* An einsum spec, parsed and checked against operand types. Labels are numbered in order of appearance in the
 * result first, then as they are summed; `...` stands for as many labels as its operand has axes left. */
enum { EINSUM_MAX_OPERANDS = 16, EINSUM_MAX_LABELS = 32 };
typedef struct EinsumPlan {
  u32 operands, labels, out_rank;      /* labels 0 … out_rank-1 are the result's axes in order */
  u8 axes[EINSUM_MAX_OPERANDS][TYPE_MAX_RANK]; /* label of each axis of each operand */
  EinsumWindow windows[EINSUM_MAX_OPERANDS][TYPE_MAX_RANK]; /* of axes that have two labels */
  Dim dims[EINSUM_MAX_LABELS];
} EinsumPlan;
bool shape_einsum(DimCtx *c, const char *spec, size_t len, u32 n, const ArrayType *const *xs, EinsumPlan *plan,
                  ArrayType *out, RuleError *err);

/* ---- transforms ----------------------------------------------------------------------------- */

/* Function values that wrap a function (value.h FN_TRANSFORM). */
typedef enum TransformKind { TF_grad, TF_value_and_grad, TF_vmap, TF_jit, TF_eager, TF_checkpoint, TF_custom_vjp,
                             TF_pullback, TF_jacfwd, TF_jacrev, TF_hessian, TF_strict, TF_COUNT } TransformKind;

#endif
