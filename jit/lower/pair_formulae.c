/* pair_formulae.c — functions of complex numbers as graphs of real ones, in f64. Each has the steps of its eager kernel
 * (stdlib/kernels/kernel_complex.c), where they are explained, and so its bits. */
#include "jit/lower/pair_formulae.h"

#include "tracer/graph/graph.h"

#include <math.h>

static ValueId f64_number(Graph *g, f64 x) { return graph_const_f64(g, DT_f64, x); }
static ValueId is_finite(Graph *g, ValueId x) { return unary(g, OP_isfinite, x); }

Pair pair_product(Graph *g, Pair x, Pair y) {
  return (Pair){
      binary(g, OP_subtract, binary(g, OP_multiply, x.re, y.re), binary(g, OP_multiply, x.im, y.im)),
      binary(g, OP_add, binary(g, OP_multiply, x.re, y.im), binary(g, OP_multiply, x.im, y.re)),
  };
}

/* Smith's way: divided by the larger part first. Both cases at once. */
Pair pair_quotient(Graph *g, Pair x, Pair y) {
  ValueId zero = f64_number(g, 0), size = unary(g, OP_abs, y.re);
  ValueId first = binary(g, OP_greater_equal, size, unary(g, OP_abs, y.im));
  ValueId large = pick(g, first, y.re, y.im), small = pick(g, first, y.im, y.re);
  ValueId r = binary(g, OP_divide, small, large);
  ValueId d = binary(g, OP_add, large, binary(g, OP_multiply, small, r));
  ValueId a = pick(g, first, x.re, x.im), b = pick(g, first, x.im, x.re), ar = binary(g, OP_multiply, a, r);
  ValueId re = binary(g, OP_divide, binary(g, OP_add, a, binary(g, OP_multiply, b, r)), d);
  ValueId im = binary(g, OP_divide, pick(g, first, binary(g, OP_subtract, b, ar), binary(g, OP_subtract, ar, b)), d);
  ValueId none = binary(g, OP_logical_and, binary(g, OP_equal, y.re, zero), binary(g, OP_equal, y.im, zero));
  return (Pair){pick(g, none, binary(g, OP_divide, x.re, size), re),
                pick(g, none, binary(g, OP_divide, x.im, size), im)};
}

/* By a real number: the case of the larger real part alone, for what is not 0 and not NaN. */
Pair pair_quotient_by_real(Graph *g, Pair x, ValueId y) {
  ValueId zero = f64_number(g, 0), r = binary(g, OP_divide, zero, y), size = unary(g, OP_abs, y);
  ValueId none = binary(g, OP_equal, y, zero);
  ValueId re = binary(g, OP_divide, binary(g, OP_add, x.re, binary(g, OP_multiply, x.im, r)), y);
  ValueId im = binary(g, OP_divide, binary(g, OP_subtract, x.im, binary(g, OP_multiply, x.re, r)), y);
  return (Pair){pick(g, none, binary(g, OP_divide, x.re, size), re),
                pick(g, none, binary(g, OP_divide, x.im, size), im)};
}

static Pair exponential_of(Graph *g, Pair x) {
  ValueId large = binary(g, OP_greater, x.re, f64_number(g, 700));
  ValueId k = pick(g, large, f64_number(g, 0x1.9476504ba852ep738), f64_number(g, 1));
  ValueId r = unary(g, OP_exp, pick(g, large, binary(g, OP_subtract, x.re, f64_number(g, 512)), x.re));
  ValueId re = binary(g, OP_multiply, binary(g, OP_multiply, r, unary(g, OP_cos, x.im)), k);
  ValueId im = binary(g, OP_multiply, binary(g, OP_multiply, r, unary(g, OP_sin, x.im)), k);
  im = pick(g, binary(g, OP_equal, x.im, f64_number(g, 0)), x.im, im);
  ValueId none = binary(g, OP_equal, x.re, f64_number(g, -INFINITY));
  ValueId all = binary(g, OP_equal, x.re, f64_number(g, INFINITY));
  ValueId far = pick(g, none, f64_number(g, 0), pick(g, all, f64_number(g, INFINITY), f64_number(g, NAN)));
  ValueId plain = is_finite(g, x.im);
  return (Pair){pick(g, plain, re, far), pick(g, plain, im, pick(g, none, f64_number(g, 0), f64_number(g, NAN)))};
}

static Pair two_to(Graph *g, Pair x) {
  ValueId r = unary(g, OP_exp2, x.re), turn = binary(g, OP_multiply, x.im, f64_number(g, M_LN2));
  ValueId real = binary(g, OP_equal, x.im, f64_number(g, 0));
  return (Pair){pick(g, real, r, binary(g, OP_multiply, r, unary(g, OP_cos, turn))),
                pick(g, real, x.im, binary(g, OP_multiply, r, unary(g, OP_sin, turn)))};
}

static Pair root_of(Graph *g, Pair z) {
  ValueId x = unary(g, OP_abs, z.re), y = unary(g, OP_abs, z.im);
  ValueId much = f64_number(g, 0x1p1000), little = f64_number(g, 0x1p-900);
  ValueId large = binary(g, OP_logical_or, binary(g, OP_greater, x, much), binary(g, OP_greater, y, much));
  ValueId tiny = binary(g, OP_logical_and, binary(g, OP_less, x, little), binary(g, OP_less, y, little));
  ValueId scale = pick(g, large, f64_number(g, 0x1p-4), pick(g, tiny, f64_number(g, 0x1p200), f64_number(g, 1)));
  ValueId back = pick(g, large, f64_number(g, 0x1p2), pick(g, tiny, f64_number(g, 0x1p-100), f64_number(g, 1)));
  ValueId a = binary(g, OP_multiply, x, scale), b = binary(g, OP_multiply, y, scale), zero = f64_number(g, 0);
  ValueId sum = binary(g, OP_add, a, binary(g, OP_hypot, a, b));
  ValueId most = unary(g, OP_sqrt, binary(g, OP_multiply, sum, f64_number(g, 0.5)));
  ValueId least = binary(g, OP_divide, b, binary(g, OP_multiply, most, f64_number(g, 2)));
  least = pick(g, binary(g, OP_equal, most, zero), zero, least);
  ValueId right = binary(g, OP_greater_equal, z.re, zero), end = binary(g, OP_equal, y, f64_number(g, INFINITY));
  ValueId re = binary(g, OP_multiply, pick(g, right, most, least), back);
  ValueId im = binary(g, OP_copysign, binary(g, OP_multiply, pick(g, right, least, most), back), z.im);
  return (Pair){pick(g, end, f64_number(g, INFINITY), re), pick(g, end, z.im, im)};
}

static ValueId times(Graph *g, ValueId a, ValueId b) { return binary(g, OP_multiply, a, b); }
static ValueId minus(Graph *g, ValueId a, ValueId b) { return binary(g, OP_subtract, a, b); }
static ValueId plus(Graph *g, ValueId a, ValueId b) { return binary(g, OP_add, a, b); }
static ValueId is_zero(Graph *g, ValueId x) { return binary(g, OP_equal, x, f64_number(g, 0)); }
static ValueId is_end(Graph *g, ValueId size) { return binary(g, OP_equal, size, f64_number(g, INFINITY)); }

static ValueId square_error(Graph *g, ValueId a, ValueId square) {
  ValueId c = times(g, a, f64_number(g, 134217729)), high = minus(g, c, minus(g, c, a)), low = minus(g, a, high);
  ValueId twice = times(g, times(g, high, low), f64_number(g, 2));
  return plus(g, plus(g, minus(g, times(g, high, high), square), twice), times(g, low, low));
}

static Pair logarithm_of(Graph *g, Pair z) {
  ValueId x = unary(g, OP_abs, z.re), y = unary(g, OP_abs, z.im), more = binary(g, OP_greater, x, y);
  ValueId a = pick(g, more, x, y), b = pick(g, more, y, x), unit = f64_number(g, 1);
  ValueId large = binary(g, OP_greater, a, f64_number(g, 0x1p1000));
  ValueId tiny = binary(g, OP_less, a, f64_number(g, 0x1p-900));
  ValueId scale = pick(g, large, f64_number(g, 0x1p-4), pick(g, tiny, f64_number(g, 0x1p200), unit));
  ValueId back = pick(g, large, f64_number(g, 4 * M_LN2), pick(g, tiny, f64_number(g, -200 * M_LN2), f64_number(g, 0)));
  ValueId r = binary(g, OP_hypot, times(g, a, scale), times(g, b, scale)), aa = times(g, a, a), bb = times(g, b, b);
  ValueId less = plus(g, plus(g, minus(g, aa, unit), bb), plus(g, square_error(g, a, aa), square_error(g, b, bb)));
  ValueId near = binary(g, OP_logical_and, binary(g, OP_greater, r, f64_number(g, 0.5)),
                      binary(g, OP_less, r, f64_number(g, 2)));
  ValueId by_less = times(g, unary(g, OP_log1p, less), f64_number(g, 0.5));
  ValueId re = pick(g, near, by_less, plus(g, unary(g, OP_log, r), back));
  return (Pair){pick(g, is_zero(g, b), unary(g, OP_log, a), re), binary(g, OP_atan2, z.im, z.re)};
}

static Pair logarithm_to(Graph *g, Pair z, u32 op, f64 scale) {
  ValueId r = binary(g, OP_hypot, z.re, z.im), k = f64_number(g, scale);
  ValueId short_one = binary(g, OP_logical_and, binary(g, OP_greater, r, f64_number(g, 0x1p-1000)),
                           binary(g, OP_less, r, f64_number(g, 0.5)));
  ValueId long_one = binary(g, OP_logical_and, binary(g, OP_greater, r, f64_number(g, 2)),
                          binary(g, OP_less, r, f64_number(g, INFINITY)));
  ValueId plain = binary(g, OP_logical_or, binary(g, OP_logical_or, short_one, long_one), is_zero(g, z.im));
  const Pair y = logarithm_of(g, z);
  return (Pair){pick(g, plain, unary(g, op, r), times(g, y.re, k)), times(g, y.im, k)};
}

static ValueId is_below(Graph *g, u32 op, ValueId x, f64 limit) {
  return binary(g, op, unary(g, OP_abs, x), f64_number(g, limit));
}

static Pair log_one_more(Graph *g, Pair z) {
  const Pair y = logarithm_of(g, (Pair){plus(g, f64_number(g, 1), z.re), z.im});
  ValueId small = binary(g, OP_logical_and, is_below(g, OP_less, z.re, 0.5), is_below(g, OP_less, z.im, 0.5));
  ValueId inner = plus(g, times(g, z.re, plus(g, f64_number(g, 2), z.re)), times(g, z.im, z.im));
  return (Pair){pick(g, small, times(g, f64_number(g, 0.5), unary(g, OP_log1p, inner)), y.re), y.im};
}

static Pair exp_less_one(Graph *g, Pair z) {
  const Pair y = exponential_of(g, z);
  ValueId small = binary(g, OP_logical_and, is_below(g, OP_less_equal, z.re, 1), is_finite(g, z.im));
  ValueId half = unary(g, OP_sin, times(g, z.im, f64_number(g, 0.5)));
  ValueId re = minus(g, times(g, unary(g, OP_expm1, z.re), unary(g, OP_cos, z.im)),
                     times(g, times(g, f64_number(g, 2), half), half));
  return (Pair){pick(g, small, re, minus(g, y.re, f64_number(g, 1))),
                pick(g, small, times(g, unary(g, OP_exp, z.re), unary(g, OP_sin, z.im)), y.im)};
}

typedef struct Hyperbolic {
  ValueId sinh, cosh, k;
} Hyperbolic;

static Hyperbolic hyperbolic_of(Graph *g, ValueId x) {
  ValueId size = unary(g, OP_abs, x), large = binary(g, OP_greater, size, f64_number(g, 700));
  ValueId e = unary(g, OP_exp, pick(g, large, minus(g, size, f64_number(g, 512)), f64_number(g, 0)));
  e = times(g, e, f64_number(g, 0.5));
  return (Hyperbolic){pick(g, large, binary(g, OP_copysign, e, x), unary(g, OP_sinh, x)),
                      pick(g, large, e, unary(g, OP_cosh, x)),
                      pick(g, large, f64_number(g, 0x1.9476504ba852ep738), f64_number(g, 1))};
}

static Pair sinh_of(Graph *g, Pair z) {
  const Hyperbolic h = hyperbolic_of(g, z.re);
  ValueId far = unary(g, OP_logical_not, is_finite(g, z.im));
  ValueId end = binary(g, OP_logical_or, is_zero(g, z.re), is_end(g, unary(g, OP_abs, z.re)));
  ValueId re = times(g, times(g, h.sinh, unary(g, OP_cos, z.im)), h.k);
  ValueId im = times(g, times(g, h.cosh, unary(g, OP_sin, z.im)), h.k);
  return (Pair){pick(g, binary(g, OP_logical_and, far, end), z.re, re), pick(g, is_zero(g, z.im), z.im, im)};
}

static Pair cosh_of(Graph *g, Pair z) {
  const Hyperbolic h = hyperbolic_of(g, z.re);
  ValueId far = unary(g, OP_logical_not, is_finite(g, z.im)), size = unary(g, OP_abs, z.re);
  ValueId re = times(g, times(g, h.cosh, unary(g, OP_cos, z.im)), h.k);
  ValueId im = times(g, times(g, h.sinh, unary(g, OP_sin, z.im)), h.k);
  im = pick(g, binary(g, OP_logical_and, far, is_zero(g, z.re)), z.re, im);
  ValueId flat = times(g, binary(g, OP_copysign, f64_number(g, 1), z.re), z.im);
  flat = pick(g, unary(g, OP_isnan, z.re), z.im, flat); /* the sign of NaN says nothing */
  return (Pair){pick(g, binary(g, OP_logical_and, far, is_end(g, size)), size, re),
                pick(g, is_zero(g, z.im), flat, im)};
}

static Pair tanh_of(Graph *g, Pair z) {
  ValueId size = unary(g, OP_abs, z.re), unit = f64_number(g, 1);
  ValueId large = binary(g, OP_greater, size, f64_number(g, 22)), t = unary(g, OP_tan, z.im);
  ValueId s = unary(g, OP_sinh, pick(g, large, f64_number(g, 0), z.re)), ss = times(g, s, s);
  ValueId beta = plus(g, unit, times(g, t, t)), d = plus(g, unit, times(g, beta, ss));
  ValueId limit = binary(g, OP_copysign, unit, z.re);
  ValueId shrunk = times(g, times(g, f64_number(g, 4), times(g, unary(g, OP_sin, z.im), unary(g, OP_cos, z.im))),
                         unary(g, OP_exp, times(g, f64_number(g, -2), size)));
  ValueId re = binary(g, OP_divide, times(g, beta, times(g, unary(g, OP_sqrt, plus(g, unit, ss)), s)), d);
  ValueId im = pick(g, large, shrunk, binary(g, OP_divide, t, d)), end = is_end(g, size);
  ValueId far = unary(g, OP_logical_not, is_finite(g, z.im));
  ValueId edge = pick(g, is_zero(g, z.re), z.re, pick(g, end, limit, f64_number(g, NAN)));
  im = pick(g, binary(g, OP_logical_and, far, end), f64_number(g, 0), im);
  return (Pair){pick(g, far, edge, pick(g, large, limit, re)), pick(g, is_zero(g, z.im), z.im, im)};
}

/* Of a function of i times z; turned back, that is of its sine or tangent. */
static Pair turned(Graph *g, Pair z) { return (Pair){unary(g, OP_negative, z.im), z.re}; }
static Pair turned_back(Graph *g, Pair z) { return (Pair){z.im, unary(g, OP_negative, z.re)}; }

/* POWER_MOST: by products here; POWER_WHOLE: by products in the kernel */
enum { POWER_MOST = 16, POWER_WHOLE = 100 };

/* A power that is known: a whole one by squaring, where a factor of 1 is left out, as of NaN; any other by the
 * logarithm. */
bool pair_power(Graph *g, Pair x, ValueId exponent, Pair *out) {
  Value k;
  if (!value_const(g, exponent, &k) || dtype_kind(k.dtype) > DK_FLOAT) return false;
  const f64 e = num_as_f64(k);
  if (e != floor(e) || fabs(e) > POWER_WHOLE) {
    const Pair power = {f64_number(g, e), f64_number(g, 0)};
    const Pair by_log = exponential_of(g, pair_product(g, power, logarithm_of(g, x)));
    ValueId none = binary(g, OP_logical_and, is_zero(g, x.re), is_zero(g, x.im));
    *out = !(e > 0) ? by_log : (Pair){pick(g, none, f64_number(g, 0), by_log.re),
                                      pick(g, none, f64_number(g, 0), by_log.im)};
    return true;
  }
  if (fabs(e) > POWER_MOST) return false;
  const ValueId zero = f64_number(g, 0), unit = f64_number(g, 1);
  Pair all = {unit, zero};
  bool any = false;
  for (u32 n = (u32)fabs(e); n; n >>= 1) {
    if (n & 1 && !any) {
      all = x;
    } else if (n & 1) {
      Pair y = pair_product(g, all, x);
      ValueId same = binary(g, OP_logical_and, binary(g, OP_equal, all.re, unit), binary(g, OP_equal, all.im, zero));
      all = (Pair){pick(g, same, x.re, y.re), pick(g, same, x.im, y.im)};
    }
    any |= n & 1;
    if (n > 1) x = pair_product(g, x, x);
  }
  *out = e < 0 ? pair_quotient(g, (Pair){unit, zero}, all) : all;
  return true;
}

bool pair_function(Graph *g, u32 op, Pair x, Pair *out) {
  switch (op) {
    case OP_exp: *out = exponential_of(g, x); return true;
    case OP_exp2: *out = two_to(g, x); return true;
    case OP_expm1: *out = exp_less_one(g, x); return true;
    case OP_sqrt: *out = root_of(g, x); return true;
    case OP_log: *out = logarithm_of(g, x); return true;
    case OP_log2: *out = logarithm_to(g, x, OP_log2, 1 / M_LN2); return true;
    case OP_log10: *out = logarithm_to(g, x, OP_log10, 1 / M_LN10); return true;
    case OP_log1p: *out = log_one_more(g, x); return true;
    case OP_sinh: *out = sinh_of(g, x); return true;
    case OP_cosh: *out = cosh_of(g, x); return true;
    case OP_tanh: *out = tanh_of(g, x); return true;
    case OP_sin: *out = turned_back(g, sinh_of(g, turned(g, x))); return true;
    case OP_cos: *out = cosh_of(g, turned(g, x)); return true;
    case OP_tan: *out = turned_back(g, tanh_of(g, turned(g, x))); return true;
    default: return false;
  }
}
