/* deriv.c — derivative rules of elementwise operations, and the way to all others (see deriv.h). In the formulae g is
 * the cotangent of the result y. */
#include "hop/rules.h"

#include <math.h>
#include <string.h>

/* ---- running operations ---------------------------------------------------------------------------------- */

Dv dv_op(Deriv *d, u32 op, const Dv *operands, u32 count, const GraphAttr *attrs, u32 nattrs) {
  for (u32 i = 0; i < count; i++) d->failed |= !operands[i];
  if (d->failed) return 0;
  Dv v = d->to->op(d, op, operands, count, attrs, nattrs);
  d->failed |= !v;
  return v;
}
Dv dv1(Deriv *d, u32 op, Dv a) { return dv_op(d, op, &a, 1, NULL, 0); }
Dv dv2(Deriv *d, u32 op, Dv a, Dv b) { return dv_op(d, op, (Dv[]){a, b}, 2, NULL, 0); }
Dv dv3(Deriv *d, u32 op, Dv a, Dv b, Dv c) { return dv_op(d, op, (Dv[]){a, b, c}, 3, NULL, 0); }
Dv dv_num(Deriv *d, f64 v) {
  Dv n = d->failed ? 0 : d->to->number(d, v);
  d->failed |= !n;
  return n;
}

static bool same_dims(Deriv *d, const ArrayType *t, u32 rank, const Dim *dims) {
  bool same = t->rank == rank;
  for (u32 i = 0; i < rank && same; i++) same = d->to->same(d, t->dims[i], dims[i]);
  return same;
}

Dv dv_reshape(Deriv *d, Dv x, u32 rank, const Dim *dims) {
  if (d->failed) return 0;
  ArrayType t = d->to->type(d, x);
  if (same_dims(d, &t, rank, dims)) return x;
  GraphAttr a = {.kind = ATTR_dims, .param = 1, .count = rank, .ints = dims};
  return dv_op(d, OP_reshape, &x, 1, &a, 1);
}

Dv dv_stretch(Deriv *d, Dv x, u32 rank, const Dim *dims) {
  if (d->failed) return 0;
  ArrayType t = d->to->type(d, x);
  if (same_dims(d, &t, rank, dims)) return x;
  GraphAttr a = {.kind = ATTR_dims, .param = 1, .count = rank, .ints = dims};
  return dv_op(d, OP_broadcast_to, &x, 1, &a, 1);
}

Dv dv_permute(Deriv *d, Dv x, const u32 *perm) {
  if (d->failed) return 0;
  ArrayType t = d->to->type(d, x);
  i64 axes[TYPE_MAX_RANK];
  bool moves = false;
  for (u32 i = 0; i < t.rank; i++) {
    axes[i] = perm[i];
    moves |= perm[i] != i;
  }
  if (!moves) return x;
  GraphAttr a = {.kind = ATTR_ints, .param = 1, .count = t.rank, .ints = axes};
  return dv_op(d, OP_transpose, &x, 1, &a, 1);
}

Dv dv_reduce(Deriv *d, u32 op, Dv x, u32 mask, bool keepdims) {
  i64 axes[TYPE_MAX_RANK];
  u32 n = 0;
  for (u32 i = 0; i < TYPE_MAX_RANK; i++)
    if (mask >> i & 1) axes[n++] = i;
  GraphAttr attrs[2] = {{.kind = ATTR_ints, .param = (u8)op_param(op, "axis"), .count = n, .ints = axes},
                        attr_bool(op_param(op, "keepdims"), true)};
  return dv_op(d, op, &x, 1, attrs, keepdims ? 2 : 1);
}

Dv dv_convert(Deriv *d, Dv x, u32 dtype) {
  if (d->failed) return 0;
  ArrayType t = d->to->type(d, x);
  if (t.dtype == dtype && !t.weak) return x;
  GraphAttr a = attr_dtype(1, dtype);
  return dv_op(d, OP_astype, &x, 1, &a, 1);
}

Dv deriv_add(Deriv *d, Dv a, Dv b) { return !a ? b : !b ? a : dv2(d, OP_add, a, b); }

Dv deriv_fit(Deriv *d, Dv ct, const ArrayType *t) {
  if (!ct || d->failed) return 0;
  ArrayType c = d->to->type(d, ct);
  u32 mask = 0, extra = c.rank > t->rank ? c.rank - t->rank : 0;
  for (u32 i = 0; i < c.rank; i++)
    if (i < extra || (c.rank >= t->rank && d->to->same(d, t->dims[i - extra], 1) && !d->to->same(d, c.dims[i], 1)))
      mask |= 1u << i;
  if (mask) ct = dv_reduce(d, OP_sum, ct, mask, false);
  ct = dv_reshape(d, ct, t->rank, t->dims);
  return dv_convert(d, ct, t->dtype);
}

void *deriv_room(Deriv *d, u32 n, size_t size) {
  void *p = arena_alloc(&d->room, n * size);
  if (!p) d->failed = d->refused = true;
  return p;
}

bool deriv_lists(Deriv *d, u32 operands, u32 results, DerivLists *out) {
  Dv *all = deriv_room(d, 2 * (operands + results), sizeof *all);
  bool *wants = deriv_room(d, operands, sizeof *wants);
  if (!all || !wants) return false;
  *out = (DerivLists){all, all + operands, all + operands + results, all + operands + 2 * results, wants};
  return true;
}

bool deriv_is_zero(u32 op) { return op_info(op)->deriv == DERIVATIVE_zero; }

/* ---- what is read --------------------------------------------------------------------------------------------- */

/* NOTHING: types at most. RESULT: that alone. OPERANDS: all of them, not the result. OTHERS: an operand where
 * another one is wanted. ALL: what is not listed. The tape saves what is read, and of all else the type. */
typedef enum Reads { READS_all, READS_nothing, READS_result, READS_operands, READS_others, READS_divide, READS_power,
                     READS_condition, READS_indices } Reads;

static Reads reads_of(u32 op) {
  switch (op) {
    case OP_add:
    case OP_subtract:
    case OP_negative:
    case OP_positive:
    case OP_astype:
    case OP_to:
    case OP_reshape:
    case OP_ravel:
    case OP_squeeze:
    case OP_expand_dims:
    case OP_transpose:
    case OP_permute_dims:
    case OP_moveaxis:
    case OP_swapaxes:
    case OP_broadcast_to:
    case OP_broadcast_arrays:
    case OP_flip:
    case OP_roll:
    case OP_tile:
    case OP_tril:
    case OP_triu:
    case OP_concat:
    case OP_stack:
    case OP_unstack:
    case OP_split:
    case OP_sum:
    case OP_mean:
    case OP_cumsum:
    case OP_diff: return READS_nothing;
    case OP_sqrt:
    case OP_cbrt:
    case OP_exp:
    case OP_exp2:
    case OP_expm1:
    case OP_tan:
    case OP_tanh:
    case OP_sigmoid:
    case OP_reciprocal:
    case OP_nn_softmax:
    case OP_nn_log_softmax: return READS_result;
    case OP_abs:
    case OP_square:
    case OP_log:
    case OP_log2:
    case OP_log10:
    case OP_log1p:
    case OP_sin:
    case OP_cos:
    case OP_asin:
    case OP_acos:
    case OP_atan:
    case OP_sinh:
    case OP_cosh:
    case OP_asinh:
    case OP_acosh:
    case OP_atanh:
    case OP_erf:
    case OP_erfc:
    case OP_relu:
    case OP_softplus:
    case OP_gelu:
    case OP_maximum:
    case OP_minimum:
    case OP_clip:
    case OP_atan2: return READS_operands;
    case OP_multiply:
    case OP_matmul:
    case OP_dot:
    case OP_outer:
    case OP_vecdot:
    case OP_tensordot:
    case OP_einsum: return READS_others;
    case OP_divide: return READS_divide;
    case OP_power:
    case OP_pow: return READS_power;
    case OP_where: return READS_condition;
    case OP_take:
    case OP_take_along_axis: return READS_indices;
    default: return READS_all;
  }
}

bool deriv_reads(u32 op, u32 i, const bool *wants, u32 count) {
  bool others = false;
  switch (reads_of(op)) {
    case READS_nothing:
    case READS_result: return false;
    case READS_others:
      for (u32 k = 0; k < count; k++) others |= k != i && wants[k];
      return others;
    case READS_divide: return i == 1;
    case READS_condition: return i == 0;
    case READS_indices: return i > 0;
    default: return true;
  }
}

bool deriv_reads_results(u32 op, const bool *wants, u32 count) {
  switch (reads_of(op)) {
    case READS_all:
    case READS_result: return true;
    case READS_divide:
    case READS_power: return count > 1 && wants[1];
    default: return false;
  }
}

/* ---- one operand ------------------------------------------------------------------------------------------ */

static Dv gelu(Deriv *d, const DerivNode *n, Dv x, Dv g) {
  if (arg_bool(&n->args[1], false)) { /* 0.5 x (1 + tanh(u)), u = c (x + 0.044715 x**3) */
    const f64 c = 0.7978845608028654, k = 0.044715;
    Dv x2 = MUL(x, x);
    Dv u = MUL(MUL(x, ADD(NUM(1), MUL(x2, NUM(k)))), NUM(c));
    Dv t = dv1(d, OP_tanh, u);
    Dv du = MUL(ADD(NUM(1), MUL(x2, NUM(3 * k))), NUM(c));
    Dv left = MUL(ADD(t, NUM(1)), NUM(0.5));
    Dv right = MUL(MUL(MUL(x, SUB(NUM(1), MUL(t, t))), du), NUM(0.5));
    return MUL(g, ADD(left, right));
  }
  Dv phi = MUL(dv1(d, OP_exp, MUL(MUL(x, x), NUM(-0.5))), NUM(0.3989422804014327));
  Dv cdf = MUL(dv1(d, OP_erfc, MUL(x, NUM(-0.7071067811865476))), NUM(0.5));
  return MUL(g, ADD(cdf, MUL(x, phi)));
}

/* The derivative of sinc: (cos(pi x) - sinc(x)) / x; where that cancels, its Taylor series, whose next term is below
 * 2^-52 of the sum there. */
static Dv sinc_slope(Deriv *d, Dv x, Dv y) {
  /* (-1)^k 2k pi^(2k) / (2k + 1)!, k = 1 … 6 */
  static const f64 series[] = {-3.289868133696453,  3.246969701133414,     -1.144510944732505,
                               0.20918278254123832, -0.023460810354558225, 0.001781145516372851};
  Dv z = MUL(x, x), near = dv2(d, OP_less, z, NUM(0.01)), sum = NUM(series[COUNT_OF(series) - 1]);
  for (u32 k = COUNT_OF(series) - 1; k-- > 0;) sum = ADD(MUL(sum, z), NUM(series[k]));
  Dv far = DIV(SUB(dv1(d, OP_cos, MUL(x, NUM(M_PI))), y), dv3(d, OP_where, near, NUM(1), x));
  return dv3(d, OP_where, near, MUL(sum, x), far);
}

/* The derivative of digamma: sums of 1 / (x + k)**2 up to k = 9, then its asymptotic series; below 1/2 by
 * reflection. */
static Dv trigamma(Deriv *d, Dv x) {
  enum { STEPS = 10 };
  /* Bernoulli numbers 2, 4 … 14 */
  static const f64 series[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
  Dv low = dv2(d, OP_less, x, NUM(0.5)), y = dv3(d, OP_where, low, SUB(NUM(1), x), x), sum = 0;
  for (u32 k = 0; k < STEPS; k++) {
    Dv at = dv1(d, OP_reciprocal, k ? ADD(y, NUM(k)) : y);
    sum = deriv_add(d, sum, MUL(at, at));
  }
  Dv inverse = dv1(d, OP_reciprocal, ADD(y, NUM(STEPS))), square = MUL(inverse, inverse), tail = 0;
  for (u32 k = COUNT_OF(series); k-- > 0;) tail = tail ? ADD(MUL(tail, square), NUM(series[k])) : NUM(series[k]);
  sum = ADD(sum, ADD(ADD(inverse, MUL(square, NUM(0.5))), MUL(MUL(tail, square), inverse)));
  Dv sine = DIV(NUM(M_PI), dv1(d, OP_sin, MUL(dv3(d, OP_where, low, x, NUM(0.5)), NUM(M_PI))));
  return dv3(d, OP_where, low, SUB(MUL(sine, sine), sum), sum);
}

static Dv one_operand(Deriv *d, const DerivNode *n, Dv x, Dv y, Dv g) {
  switch (n->op) {
    case OP_negative: return NEG(g);
    case OP_positive:
    case OP_astype:
    case OP_to: return g;
    case OP_abs: return MUL(g, dv1(d, OP_sign, x));
    case OP_square: return MUL(g, MUL(x, NUM(2)));
    case OP_sqrt: return DIV(g, MUL(y, NUM(2)));
    case OP_cbrt: return DIV(g, MUL(MUL(y, y), NUM(3)));
    case OP_exp: return MUL(g, y);
    case OP_exp2: return MUL(g, MUL(y, NUM(M_LN2)));
    case OP_expm1: return MUL(g, ADD(y, NUM(1)));
    case OP_log: return DIV(g, x);
    case OP_log2: return DIV(g, MUL(x, NUM(M_LN2)));
    case OP_log10: return DIV(g, MUL(x, NUM(M_LN10)));
    case OP_log1p: return DIV(g, ADD(x, NUM(1)));
    case OP_sin: return MUL(g, dv1(d, OP_cos, x));
    case OP_cos: return NEG(MUL(g, dv1(d, OP_sin, x)));
    case OP_tan: return MUL(g, ADD(MUL(y, y), NUM(1)));
    case OP_asin: return DIV(g, dv1(d, OP_sqrt, SUB(NUM(1), MUL(x, x))));
    case OP_acos: return NEG(DIV(g, dv1(d, OP_sqrt, SUB(NUM(1), MUL(x, x)))));
    case OP_atan: return DIV(g, ADD(MUL(x, x), NUM(1)));
    case OP_sinh: return MUL(g, dv1(d, OP_cosh, x));
    case OP_cosh: return MUL(g, dv1(d, OP_sinh, x));
    case OP_tanh: return MUL(g, SUB(NUM(1), MUL(y, y)));
    case OP_asinh: return DIV(g, dv1(d, OP_sqrt, ADD(MUL(x, x), NUM(1))));
    case OP_acosh: return DIV(g, dv1(d, OP_sqrt, SUB(MUL(x, x), NUM(1))));
    case OP_atanh: return DIV(g, SUB(NUM(1), MUL(x, x)));
    case OP_erf: return MUL(g, MUL(dv1(d, OP_exp, NEG(MUL(x, x))), NUM(M_2_SQRTPI)));
    case OP_erfc: return MUL(g, MUL(dv1(d, OP_exp, NEG(MUL(x, x))), NUM(-M_2_SQRTPI)));
    case OP_sinc: return MUL(g, sinc_slope(d, x, y));
    case OP_erfinv: return MUL(g, MUL(dv1(d, OP_exp, MUL(y, y)), NUM(1 / M_2_SQRTPI)));
    case OP_gamma: return MUL(g, MUL(y, dv1(d, OP_digamma, x)));
    case OP_lgamma: return MUL(g, dv1(d, OP_digamma, x));
    case OP_digamma: return MUL(g, trigamma(d, x));
    case OP_reciprocal: return NEG(MUL(g, MUL(y, y)));
    case OP_sigmoid: return MUL(g, MUL(y, SUB(NUM(1), y)));
    case OP_relu: return dv3(d, OP_where, dv2(d, OP_greater, x, NUM(0)), g, NUM(0));
    case OP_softplus: return MUL(g, dv1(d, OP_sigmoid, x));
    case OP_silu: {
      Dv s = dv1(d, OP_sigmoid, x);
      return MUL(g, ADD(s, MUL(y, SUB(NUM(1), s))));
    }
    case OP_gelu: return gelu(d, n, x, g);
    default: return 0;
  }
}

/* ---- two operands and more --------------------------------------------------------------------------------- */

/* g where a is beyond b, half of it where they are equal. */
static Dv share(Deriv *d, u32 beyond, Dv a, Dv b, Dv g) {
  Dv rest = dv3(d, OP_where, dv2(d, OP_equal, a, b), MUL(g, NUM(0.5)), NUM(0));
  return dv3(d, OP_where, dv2(d, beyond, a, b), g, rest);
}

/* y x**(y - 1), 0 where y is 0. */
static Dv power_base(Deriv *d, Dv x, Dv e, Dv g) {
  f64 known;
  if (d->to->known(d, e, &known)) {
    if (known == 0) return MUL(g, NUM(0));
    return MUL(g, MUL(e, dv2(d, OP_power, x, SUB(e, NUM(1)))));
  }
  Dv less = dv3(d, OP_where, dv2(d, OP_equal, e, NUM(0)), NUM(1), SUB(e, NUM(1)));
  return MUL(g, MUL(e, dv2(d, OP_power, x, less)));
}

static bool two_operands(Deriv *d, const DerivNode *n, Dv a, Dv b, Dv y, Dv g, const bool *wants, Dv *out) {
  switch (n->op) {
    case OP_add:
      out[0] = out[1] = g;
      return true;
    case OP_subtract:
      out[0] = g;
      if (wants[1]) out[1] = NEG(g);
      return true;
    case OP_multiply:
      if (wants[0]) out[0] = MUL(g, b);
      if (wants[1]) out[1] = MUL(g, a);
      return true;
    case OP_divide:
      if (wants[0]) out[0] = DIV(g, b);
      if (wants[1]) out[1] = NEG(DIV(MUL(g, y), b));
      return true;
    case OP_power:
    case OP_pow:
      if (wants[0]) out[0] = power_base(d, a, b, g);
      if (wants[1]) {
        Dv safe = dv3(d, OP_where, dv2(d, OP_equal, a, NUM(0)), NUM(1), a);
        out[1] = MUL(g, MUL(y, dv1(d, OP_log, safe)));
      }
      return true;
    case OP_remainder:
      out[0] = g;
      if (wants[1]) out[1] = NEG(MUL(g, dv1(d, OP_floor, DIV(a, b))));
      return true;
    case OP_fmod:
      out[0] = g;
      if (wants[1]) out[1] = NEG(MUL(g, dv1(d, OP_trunc, DIV(a, b))));
      return true;
    case OP_copysign:
      if (wants[0])
        out[0] = dv3(d, OP_where, dv2(d, OP_equal, dv1(d, OP_signbit, a), dv1(d, OP_signbit, y)), g, NEG(g));
      return true;
    case OP_nextafter:
      if (wants[0]) out[0] = g;
      return true;
    case OP_atan2: {
      Dv r2 = ADD(MUL(a, a), MUL(b, b));
      if (wants[0]) out[0] = DIV(MUL(g, b), r2);
      if (wants[1]) out[1] = NEG(DIV(MUL(g, a), r2));
      return true;
    }
    case OP_hypot:
      if (wants[0]) out[0] = DIV(MUL(g, a), y);
      if (wants[1]) out[1] = DIV(MUL(g, b), y);
      return true;
    case OP_logaddexp:
      if (wants[0]) out[0] = MUL(g, dv1(d, OP_exp, SUB(a, y)));
      if (wants[1]) out[1] = MUL(g, dv1(d, OP_exp, SUB(b, y)));
      return true;
    case OP_maximum:
      if (wants[0]) out[0] = share(d, OP_greater, a, b, g);
      if (wants[1]) out[1] = share(d, OP_greater, b, a, g);
      return true;
    case OP_minimum:
      if (wants[0]) out[0] = share(d, OP_less, a, b, g);
      if (wants[1]) out[1] = share(d, OP_less, b, a, g);
      return true;
    default: return false;
  }
}

static bool where_or_clip(Deriv *d, const DerivNode *n, Dv g, const bool *wants, Dv *out) {
  Dv zero = NUM(0);
  if (n->op == OP_where) {
    if (wants[1]) out[1] = dv3(d, OP_where, n->operands[0], g, zero);
    if (wants[2]) out[2] = dv3(d, OP_where, n->operands[0], zero, g);
    return true;
  }
  if (n->op != OP_clip) return false;
  /* a limit takes the cotangent where x is beyond it; at it, x has it */
  Dv x = n->operands[0], inside = g;
  for (u32 p = 1; p < 3; p++) {
    if (n->args[p].kind != ARG_value) continue;
    Dv beyond = dv2(d, p == 1 ? OP_less : OP_greater, x, n->args[p].value);
    u32 at = p == 2 && n->args[1].kind == ARG_value ? 2 : 1;
    if (wants[at]) out[at] = dv3(d, OP_where, beyond, g, zero);
    inside = dv3(d, OP_where, beyond, zero, inside);
  }
  if (wants[0]) out[0] = inside;
  return true;
}

/* ---- all ------------------------------------------------------------------------------------------------------ */

static bool pull_op(Deriv *d, const DerivNode *n, const Dv *ct, const bool *wants, Dv *out) {
  Dv g = ct[0], y = n->results[0];
  if (n->count && n->nresults == 1) {
    if (n->count == 2 && two_operands(d, n, n->operands[0], n->operands[1], y, g, wants, out)) return true;
    if (where_or_clip(d, n, g, wants, out)) return true;
    if (n->count == 1 && (out[0] = one_operand(d, n, n->operands[0], y, g))) return true;
    if (d->failed) return false;
    if (rules_reduce(d, n, g, wants, out) || d->failed) return !d->failed;
    if (rules_product(d, n, g, wants, out) || d->failed) return !d->failed;
    if (rules_linalg(d, n, g, wants, out) || d->failed) return !d->failed;
  }
  if (rules_factors(d, n, ct, wants, out) || d->failed || d->detail) return !d->failed && !d->detail;
  if (rules_select(d, n, ct, wants, out) || d->failed) return !d->failed;
  return rules_shape(d, n, ct, wants, out);
}

/* Of what was written v gets g back where it stands: of several at one place that is the last. */
static Dv pull_written(Deriv *d, const DerivNode *n, Dv x, Dv g) {
  Dv read = d->to->index(d, n, g);
  if (!read || !d->to->repeats(d, n)) return read;
  ArrayType t = dv_type(d, read), whole = dv_type(d, x);
  GraphAttr stop = attr_dim(0, 1);
  for (u32 i = 0; i < t.rank; i++) stop.dim = d->to->dim(d, '*', stop.dim, t.dims[i]);
  whole.dtype = DT_i64;
  Dv number = dv_reshape(d, dv_op(d, OP_arange, NULL, 0, &stop, 1), t.rank, t.dims),
      zeros = d->failed ? 0 : d->to->zeros(d, &whole);
  Dv stands = zeros && number ? d->to->update(d, n, OP_none, zeros, number) : 0;
  Dv mine = stands ? dv2(d, OP_equal, d->to->index(d, n, stands), number) : 0;
  return dv3(d, OP_where, mine, read, NUM(0));
}

/* y = x with v written at, or combined into, the places of the index. */
static bool pull_update(Deriv *d, const DerivNode *n, Dv g, const bool *wants, Dv *out) {
  Dv x = n->operands[0], v = n->operands[1];
  switch (n->op) {
    case OP_none:
      if (wants[1]) out[1] = pull_written(d, n, x, g);
      if (wants[0]) out[0] = d->to->update(d, n, OP_none, g, NUM(0));
      return true;
    case OP_add:
    case OP_subtract:
      out[0] = g;
      if (wants[1]) out[1] = d->to->index(d, n, g);
      if (wants[1] && n->op == OP_subtract) out[1] = NEG(out[1]);
      return true;
    case OP_multiply:
    case OP_divide:
      if (wants[1] && d->to->repeats(d, n)) {
        d->detail = "`*=` and `/=` at places given by an array";
        return false;
      }
      if (wants[1]) {
        Dv part = MUL(d->to->index(d, n, g), d->to->index(d, n, n->op == OP_divide ? n->results[0] : x));
        out[1] = n->op == OP_divide ? NEG(DIV(part, v)) : part;
      }
      if (wants[0]) out[0] = d->to->update(d, n, n->op, g, v);
      return true;
    default: return false;
  }
}

bool deriv_pull(Deriv *d, const DerivNode *n, const Dv *ct, const bool *wants, Dv *out, const char **why) {
  bool ok = true;
  *why = n->kind == DERIV_index ? "index" : n->kind == DERIV_update ? "an indexed assignment" : op_name(n->op);
  memset(out, 0, sizeof *out * n->count);
  d->detail = NULL;
  if (n->kind == DERIV_index) {
    ArrayType t = d->to->type(d, n->operands[0]);
    Dv zeros = d->to->zeros(d, &t);
    if (zeros) out[0] = d->to->update(d, n, OP_add, zeros, ct[0]);
  } else if (n->kind == DERIV_update) {
    ok = pull_update(d, n, ct[0], wants, out);
  } else {
    ok = pull_op(d, n, ct, wants, out);
  }
  if (d->detail) *why = d->detail;
  if (!ok || d->failed) return false;
  for (u32 i = 0; i < n->count; i++) {
    if (!wants[i]) {
      out[i] = 0;
      continue;
    }
    ArrayType t = d->to->type(d, n->operands[i]);
    out[i] = deriv_fit(d, out[i], &t);
  }
  return !d->failed;
}
