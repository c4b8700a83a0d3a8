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

/* The number x as an array on the device of what is pulled back. */
static Dv filled_there(Deriv *d, Dv x, u32 rank, const Dim *dims) {
  GraphAttr a[2] = {{.kind = ATTR_dims, .param = 0, .count = rank, .ints = dims},
                    {.kind = ATTR_int, .param = 3, .i = d->device}};
  return dv_op(d, OP_full, &x, 1, a, 2);
}

Dv dv_numbers(Deriv *d, Dim n) {
  GraphAttr a[2] = {attr_dim(0, n), attr_int(4, d->device)};
  return dv_op(d, OP_arange, NULL, 0, a, d->device ? 2 : 1);
}

Dv dv_reshape(Deriv *d, Dv x, u32 rank, const Dim *dims) {
  if (d->failed) return 0;
  ArrayType t = d->to->type(d, x);
  if (same_dims(d, &t, rank, dims)) return x;
  if (d->device && !t.rank) return filled_there(d, x, rank, dims);
  GraphAttr a = {.kind = ATTR_dims, .param = 1, .count = rank, .ints = dims};
  return dv_op(d, OP_reshape, &x, 1, &a, 1);
}

Dv dv_stretch(Deriv *d, Dv x, u32 rank, const Dim *dims) {
  if (d->failed) return 0;
  ArrayType t = d->to->type(d, x);
  if (same_dims(d, &t, rank, dims)) return x;
  if (d->device && !t.rank) return filled_there(d, x, rank, dims);
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
  if (dtype_kind(t.dtype) == DK_COMPLEX && dtype_kind(dtype) != DK_COMPLEX) { /* the operand was real */
    x = dv1(d, OP_real, x);
    if (dtype_real_of(t.dtype) == dtype && !t.weak) return x;
  }
  GraphAttr a = attr_dtype(1, dtype);
  return dv_op(d, OP_astype, &x, 1, &a, 1);
}

Dv dv_conj(Deriv *d, Dv x) {
  if (d->failed) return 0;
  const ArrayType t = d->to->type(d, x);
  return dtype_kind(t.dtype) == DK_COMPLEX ? dv1(d, OP_conj, x) : x;
}

Dv dv_slope_of_abs(Deriv *d, Dv x) {
  if (d->failed) return 0;
  const ArrayType t = d->to->type(d, x);
  if (dtype_kind(t.dtype) != DK_COMPLEX) return dv1(d, OP_sign, x);
  Dv size = dv1(d, OP_abs, x);
  return dv2(d, OP_divide, dv_conj(d, x), dv3(d, OP_where, dv2(d, OP_equal, size, NUM(0)), NUM(1), size));
}

Dv dv_add(Deriv *d, Dv a, Dv b) { return !a ? b : !b ? a : dv2(d, OP_add, a, b); }

Dv deriv_fit(Deriv *d, Dv ct, const ArrayType *t) {
  if (!ct || d->failed) return 0;
  ArrayType c = d->to->type(d, ct);
  u32 mask = 0, extra = c.rank > t->rank ? c.rank - t->rank : 0;
  for (u32 i = 0; i < c.rank; i++)
    if (i < extra || (c.rank >= t->rank && d->to->same(d, t->dims[i - extra], 1) && !d->to->same(d, c.dims[i], 1)))
      mask |= 1u << i;
  if (mask) ct = dv_reduce(d, OP_sum, ct, mask, false);
  const u8 device = d->device;
  d->device = t->device;
  ct = dv_reshape(d, ct, t->rank, t->dims);
  d->device = device;
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
    sum = dv_add(d, sum, MUL(at, at));
  }
  Dv inverse = dv1(d, OP_reciprocal, ADD(y, NUM(STEPS))), square = MUL(inverse, inverse), tail = 0;
  for (u32 k = COUNT_OF(series); k-- > 0;) tail = tail ? ADD(MUL(tail, square), NUM(series[k])) : NUM(series[k]);
  sum = ADD(sum, ADD(ADD(inverse, MUL(square, NUM(0.5))), MUL(MUL(tail, square), inverse)));
  Dv sine = DIV(NUM(M_PI), dv1(d, OP_sin, MUL(dv3(d, OP_where, low, x, NUM(0.5)), NUM(M_PI))));
  return dv3(d, OP_where, low, SUB(MUL(sine, sine), sum), sum);
}

static Dv silu(Deriv *d, Dv x, Dv y, Dv g) {
  Dv s = dv1(d, OP_sigmoid, x);
  return MUL(g, ADD(s, MUL(y, SUB(NUM(1), s))));
}

/* Derivatives of complex numbers are as JAX has them: a holomorphic function has the rule that it has of real numbers,
 * with nothing conjugated, so that the gradient of a real function of x + iy is df/dx - i df/dy. */
static bool is_complex(const ArrayType *t) { return dtype_kind(t->dtype) == DK_COMPLEX; }

ONE(real, nothing, is_complex(t) ? dv2(d, OP_complex, g, NUM(0)) : g)
ONE(imag, nothing, is_complex(t) ? dv2(d, OP_complex, NUM(0), NEG(g)) : MUL(g, NUM(0)))
ONE(conj, nothing, dv_conj(d, g))
ONE(angle, operands, is_complex(t) ? DIV(dv2(d, OP_complex, NUM(0), NEG(g)), x) : MUL(g, NUM(0)))
/* The sign of a complex number turns as its angle does: by i times itself. */
static Dv turn_of_sign(Deriv *d, Dv x, Dv y, Dv g) {
  Dv none = dv2(d, OP_equal, x, NUM(0)), turn = dv2(d, OP_complex, NUM(0), dv1(d, OP_imag, MUL(g, y)));
  return DIV(turn, dv3(d, OP_where, none, NUM(1), x));
}

extern const DerivRule deriv_sign_of_complex;
ONE(sign_of_complex, all, turn_of_sign(d, x, y, g))
ONE(negative, nothing, NEG(g))
ONE(abs, operands, MUL(g, dv_slope_of_abs(d, x)))
ONE(square, operands, MUL(g, MUL(x, NUM(2))))
ONE(sqrt, result, DIV(g, MUL(y, NUM(2))))
ONE(cbrt, result, DIV(g, MUL(MUL(y, y), NUM(3))))
ONE(exp, result, MUL(g, y))
ONE(exp2, result, MUL(g, MUL(y, NUM(M_LN2))))
ONE(expm1, result, MUL(g, ADD(y, NUM(1))))
ONE(log, operands, DIV(g, x))
ONE(log2, operands, DIV(g, MUL(x, NUM(M_LN2))))
ONE(log10, operands, DIV(g, MUL(x, NUM(M_LN10))))
ONE(log1p, operands, DIV(g, ADD(x, NUM(1))))
ONE(sin, operands, MUL(g, dv1(d, OP_cos, x)))
ONE(cos, operands, NEG(MUL(g, dv1(d, OP_sin, x))))
ONE(tan, result, MUL(g, ADD(MUL(y, y), NUM(1))))
ONE(asin, operands, DIV(g, dv1(d, OP_sqrt, SUB(NUM(1), MUL(x, x)))))
ONE(acos, operands, NEG(DIV(g, dv1(d, OP_sqrt, SUB(NUM(1), MUL(x, x))))))
ONE(atan, operands, DIV(g, ADD(MUL(x, x), NUM(1))))
ONE(sinh, operands, MUL(g, dv1(d, OP_cosh, x)))
ONE(cosh, operands, MUL(g, dv1(d, OP_sinh, x)))
ONE(tanh, result, MUL(g, SUB(NUM(1), MUL(y, y))))
ONE(asinh, operands, DIV(g, dv1(d, OP_sqrt, ADD(MUL(x, x), NUM(1)))))
ONE(acosh, operands, DIV(g, dv1(d, OP_sqrt, SUB(MUL(x, x), NUM(1)))))
ONE(atanh, operands, DIV(g, SUB(NUM(1), MUL(x, x))))
ONE(erf, operands, MUL(g, MUL(dv1(d, OP_exp, NEG(MUL(x, x))), NUM(M_2_SQRTPI))))
ONE(erfc, operands, MUL(g, MUL(dv1(d, OP_exp, NEG(MUL(x, x))), NUM(-M_2_SQRTPI))))
ONE(sinc, all, MUL(g, sinc_slope(d, x, y)))
ONE(erfinv, all, MUL(g, MUL(dv1(d, OP_exp, MUL(y, y)), NUM(1 / M_2_SQRTPI))))
ONE(gamma, all, MUL(g, MUL(y, dv1(d, OP_digamma, x))))
ONE(lgamma, all, MUL(g, dv1(d, OP_digamma, x)))
ONE(digamma, all, MUL(g, trigamma(d, x)))
ONE(reciprocal, result, NEG(MUL(g, MUL(y, y))))
ONE(sigmoid, result, MUL(g, MUL(y, SUB(NUM(1), y))))
ONE(relu, operands, dv3(d, OP_where, dv2(d, OP_greater, x, NUM(0)), g, NUM(0)))
ONE(softplus, operands, MUL(g, dv1(d, OP_sigmoid, x)))
ONE(gelu, operands, gelu(d, n, x, g))
ONE(silu, all, silu(d, x, y, g))

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
    if (known == 1) return MUL(g, e); /* x ** 0 is 1, and x ** 1 is x, exactly (lang/math.loops) */
    if (known == 2) return MUL(g, MUL(e, x));
    return MUL(g, MUL(e, dv2(d, OP_power, x, SUB(e, NUM(1)))));
  }
  Dv less = dv3(d, OP_where, dv2(d, OP_equal, e, NUM(0)), NUM(1), SUB(e, NUM(1)));
  return MUL(g, MUL(e, dv2(d, OP_power, x, less)));
}

static Dv power_exponent(Deriv *d, Dv a, Dv y, Dv g) {
  return MUL(g, MUL(y, dv1(d, OP_log, dv3(d, OP_where, dv2(d, OP_equal, a, NUM(0)), NUM(1), a))));
}

static bool pull_atan2(Deriv *d, Dv a, Dv b, Dv g, const bool *wants, Dv *out) {
  Dv r2 = ADD(MUL(a, a), MUL(b, b));
  if (wants[0]) out[0] = DIV(MUL(g, b), r2);
  if (wants[1]) out[1] = NEG(DIV(MUL(g, a), r2));
  return true;
}

/* A limit takes the cotangent where x is beyond it; at it, x has it. */
static bool pull_clip(Deriv *d, const DerivNode *n, Dv g, const bool *wants, Dv *out) {
  Dv x = n->operands[0], inside = g, zero = NUM(0);
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

static bool pull_where(Deriv *d, Dv c, Dv g, const bool *wants, Dv *out) {
  Dv zero = NUM(0);
  if (wants[1]) out[1] = dv3(d, OP_where, c, g, zero);
  if (wants[2]) out[2] = dv3(d, OP_where, c, zero, g);
  return true;
}

TWO(complex, nothing, dv1(d, OP_real, g), NEG(dv1(d, OP_imag, g)))
TWO(add, nothing, g, g)
TWO(subtract, nothing, g, NEG(g))
TWO(multiply, others, MUL(g, b), MUL(g, x))
TWO(divide, divide, DIV(g, b), NEG(DIV(MUL(g, y), b)))
TWO(power, power, power_base(d, x, b, g), power_exponent(d, x, y, g))
TWO(remainder, all, g, NEG(MUL(g, dv1(d, OP_floor, DIV(x, b)))))
TWO(fmod, all, g, NEG(MUL(g, dv1(d, OP_trunc, DIV(x, b)))))
TWO(copysign, all, dv3(d, OP_where, dv2(d, OP_equal, dv1(d, OP_signbit, x), dv1(d, OP_signbit, y)), g, NEG(g)), 0)
TWO(nextafter, all, g, 0)
TWO(hypot, all, DIV(MUL(g, x), y), DIV(MUL(g, b), y))
TWO(logaddexp, all, MUL(g, dv1(d, OP_exp, SUB(x, y))), MUL(g, dv1(d, OP_exp, SUB(b, y))))
TWO(maximum, operands, share(d, OP_greater, x, b, g), share(d, OP_greater, b, x, g))
TWO(minimum, operands, share(d, OP_less, x, b, g), share(d, OP_less, b, x, g))
RULE(atan2, operands, n->count == 2 && pull_atan2(d, x, b, g, wants, out))
RULE(clip, operands, pull_clip(d, n, g, wants, out))
RULE(where, condition, n->count == 3 && pull_where(d, x, g, wants, out))

/* ---- all ------------------------------------------------------------------------------------------------------ */

/* The cell `deriv` of each row of ops.def: the rule, or none. A rule that is not there does not compile. */
#define CELL_rule ~, OWN, 0
#define CELL_by(rule) ~, SHARED, rule
#define OP(name, signature, family, dtype, shape, needs, check, effect, agree, kernel, lower, deriv, ...) \
  OP_CELL(name, CELL_##deriv)
#define OWN(name, rule) extern const DerivRule deriv_##name;
#define SHARED(name, rule) extern const DerivRule deriv_##rule;
#include "lang/ops.def"
#undef OWN
#undef SHARED
static const DerivRule *const rules[OP_COUNT] = {
#define OWN(name, rule) [OP_##name] = &deriv_##name,
#define SHARED(name, rule) [OP_##name] = &deriv_##rule,
#include "lang/ops.def"
#undef OP
    [OP_sign] = &deriv_sign_of_complex, /* of real numbers it is constant */
};

bool deriv_is_zero(u32 op, u32 dtype) {
  return op_info(op)->deriv == DERIVATIVE_zero &&
         (dtype_kind(dtype) != DK_COMPLEX || (op_complex_deriv(op) && !rules[op]));
}

static Reads reads_of(u32 op) { return rules[op] ? (Reads)rules[op]->reads : READS_all; }

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

static bool pull_op(Deriv *d, const DerivNode *n, const Dv *ct, const bool *wants, Dv *out) {
  const DerivRule *rule = rules[n->op];
  if (!rule || !n->count || (n->nresults != 1 && !rule->many)) return false;
  for (u32 i = 0; i < n->count && !op_complex_deriv(n->op); i++) {
    const ArrayType t = dv_type(d, n->operands[i]);
    if (is_complex(&t)) d->detail = "an operation that orders complex numbers";
    if (d->detail) return false;
  }
  const Pull p = {.x = n->operands[0], .b = n->count > 1 ? n->operands[1] : 0, .y = n->results[0], .g = ct[0],
                  .t = dv_type(d, n->operands[0]), .ct = ct, .wants = wants, .out = out};
  if (rule->pull) return rule->pull(d, n, &p) && !d->failed && !d->detail;
  return n->count == 1 && (out[0] = rule->one(d, n, &p)) != 0;
}

/* Of what was written v gets g back where it stands: of several at one place that is the last. */
static Dv pull_written(Deriv *d, const DerivNode *n, Dv x, Dv g) {
  Dv read = d->to->index(d, n, g);
  if (!read || !d->to->repeats(d, n)) return read;
  ArrayType t = dv_type(d, read), whole = dv_type(d, x);
  GraphAttr stop = attr_dim(0, 1);
  for (u32 i = 0; i < t.rank; i++) stop.dim = d->to->dim(d, '*', stop.dim, t.dims[i]);
  whole.dtype = DT_i64;
  Dv number = dv_reshape(d, dv_numbers(d, stop.dim), t.rank, t.dims),
      zeros = d->failed ? 0 : d->to->zeros(d, &whole);
  Dv stands = zeros && number ? d->to->update(d, n, OP_none, zeros, number) : 0;
  Dv mine = stands ? dv2(d, OP_equal, d->to->index(d, n, stands), number) : 0;
  return dv3(d, OP_where, mine, read, NUM(0));
}

/* Of factors multiplied into x, in which places may be named twice: the product of the others, where factors are 0 as
 * well. */
static Dv pull_factors(Deriv *d, const DerivNode *n, Dv x, Dv v, Dv g) {
  ArrayType t = dv_type(d, x);
  t.dtype = dv_type(d, g).dtype;
  Dv zeros = d->to->zeros(d, &t), all = zeros ? ADD(d->to->index(d, n, zeros), v) : 0, one = NUM(1), nothing = NUM(0);
  Dv none = dv2(d, OP_equal, all, nothing), factor = dv3(d, OP_where, none, one, all);
  Dv copy = MUL(x, one), product = factor && copy ? d->to->update(d, n, OP_multiply, copy, factor) : 0;
  Dv part = MUL(g, product);
  Dv count = none ? d->to->update(d, n, OP_add, zeros, dv_convert(d, none, t.dtype)) : 0;
  if (!part || !count) return 0;
  Dv here = d->to->index(d, n, count), rest = d->to->index(d, n, part);
  Dv plain = dv3(d, OP_where, dv2(d, OP_equal, here, nothing), DIV(rest, factor), nothing);
  return dv3(d, OP_where, none, dv3(d, OP_where, dv2(d, OP_equal, here, one), rest, nothing), plain);
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
      if (wants[1] && n->op == OP_multiply && d->to->repeats(d, n)) {
        out[1] = pull_factors(d, n, x, v, g);
      } else if (wants[1]) {
        Dv part = MUL(d->to->index(d, n, g), d->to->index(d, n, n->op == OP_divide ? n->results[0] : x));
        out[1] = n->op == OP_divide ? NEG(DIV(part, v)) : part;
      }
      if (wants[0]) out[0] = d->to->update(d, n, n->op, g, v);
      return true;
    default: return false;
  }
}

/* A cotangent lies where what it belongs to does: a value may have been moved, or stacked of numbers. */
static Dv lies_with(Deriv *d, Dv ct, const ArrayType *t) {
  if (!ct || d->failed || !t->rank || d->to->type(d, ct).device == t->device) return ct;
  GraphAttr a = attr_int(1, t->device);
  return dv_op(d, OP_to, &ct, 1, &a, 1);
}

bool deriv_pull(Deriv *d, const DerivNode *n, const Dv *ct, const bool *wants, Dv *out, const char **why) {
  bool ok = true;
  *why = n->kind == DERIV_index ? "index" : n->kind == DERIV_update ? "an indexed assignment" : op_name(n->op);
  memset(out, 0, sizeof *out * n->count);
  d->detail = NULL;
  d->device = 0;
  for (u32 i = 0; i < n->count && !d->device; i++) d->device = d->to->type(d, n->operands[i]).device;
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
    out[i] = lies_with(d, deriv_fit(d, out[i], &t), &t);
  }
  return !d->failed;
}
