/* jit_random.h — random graphs as text, for test_jit.c: straight code over numbers, vectors and matrices of four
 * dtypes, with reductions, views, and now and then a loop around numbers. */
#ifndef WEFT_TESTS_JIT_RANDOM_H
#define WEFT_TESTS_JIT_RANDOM_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "parser/base.h"

typedef enum RandomShape { SHAPE_number, SHAPE_vector, SHAPE_matrix, SHAPE_turned, SHAPES } RandomShape;
typedef enum RandomType { TYPE_f64, TYPE_i64, TYPE_bool, TYPE_f32, TYPES } RandomType;

typedef struct RandomValue {
  u8 shape, type;
} RandomValue;

enum { RANDOM_VALUES = 40 };

typedef struct RandomGraph {
  u64 state;
  char text[16000];
  u32 len, count;
  RandomValue values[RANDOM_VALUES];
} RandomGraph;

static u32 random_below(RandomGraph *r, u32 n) {
  r->state = r->state * 6364136223846793005u + 1442695040888963407u;
  return (u32)(r->state >> 33) % n;
}

static void random_put(RandomGraph *r, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  r->len += (u32)vsnprintf(r->text + r->len, sizeof r->text - r->len, fmt, ap);
  va_end(ap);
}

static const char *const random_shapes[SHAPES] = {"[]", "[n]", "[n, 3]", "[3, n]"};
static const char *const random_types[TYPES] = {"f64", "i64", "bool", "f32"};

static u32 random_new(RandomGraph *r, u32 shape, u32 type) {
  r->values[r->count] = (RandomValue){(u8)shape, (u8)type};
  return ++r->count;
}

static void random_type(RandomGraph *r, u32 v) {
  random_put(r, " : %s%s\n", random_types[r->values[v - 1].type], random_shapes[r->values[v - 1].shape]);
}

/* A value of this type and shape, or of this type alone; 0: there is none. */
static u32 random_value(RandomGraph *r, u32 type, int shape) {
  u32 start = random_below(r, r->count);
  for (u32 i = 0; i < r->count; i++) {
    u32 v = (start + i) % r->count;
    if (r->values[v].type == type && (shape < 0 || r->values[v].shape == shape)) return v + 1;
  }
  return 0;
}

static void random_binary(RandomGraph *r) {
  static const char *const floats[] = {"add", "subtract", "multiply", "minimum", "maximum", "copysign",
                                       "divide", "atan2"};
  static const char *const ints[] = {"add", "subtract", "multiply", "minimum", "maximum", "bitwise_and", "bitwise_xor",
                                     "left_shift"};
  static const char *const tests[] = {"less", "greater_equal", "equal", "not_equal"};
  u32 type = (u32[]){TYPE_f64, TYPE_i64, TYPE_f32, TYPE_f64}[random_below(r, 4)], a = random_value(r, type, -1);
  if (!a) return;
  u32 shape = r->values[a - 1].shape, b = random_value(r, type, random_below(r, 3) ? (int)shape : SHAPE_number);
  if (!b) return;
  bool swap = random_below(r, 4) == 0, test = random_below(r, 5) == 0;
  u32 out = random_new(r, shape, test ? (u32)TYPE_bool : type), which = random_below(r, 8);
  const char *op = test ? tests[which % 4] : type == TYPE_i64 ? ints[which] : floats[which];
  random_put(r, "%%v%u = %s %%v%u %%v%u", out, op, swap ? b : a, swap ? a : b);
  random_type(r, out);
}

static void random_unary(RandomGraph *r) {
  static const char *const floats[] = {"negative", "abs", "sqrt", "sin", "floor", "sign", "tanh", "exp"};
  static const char *const ints[] = {"negative", "abs", "sign", "square", "bit_count", "bitwise_not",
                                     "positive", "relu"};
  u32 a = 1 + random_below(r, r->count), type = r->values[a - 1].type;
  if (type == TYPE_bool) {
    u32 out = random_new(r, r->values[a - 1].shape, TYPE_bool);
    random_put(r, "%%v%u = logical_not %%v%u", out, a);
    random_type(r, out);
    return;
  }
  u32 out = random_new(r, r->values[a - 1].shape, type);
  random_put(r, "%%v%u = %s %%v%u", out, (type == TYPE_i64 ? ints : floats)[random_below(r, 8)], a);
  random_type(r, out);
}

static void random_convert(RandomGraph *r) {
  u32 a = 1 + random_below(r, r->count), from = r->values[a - 1].type, to = random_below(r, TYPES);
  if (to == TYPE_i64 && (from == TYPE_f64 || from == TYPE_f32)) return; /* would need a check */
  u32 out = random_new(r, r->values[a - 1].shape, to);
  random_put(r, "%%v%u = astype %%v%u {dtype=%s}", out, a, random_types[to]);
  random_type(r, out);
}

static void random_where(RandomGraph *r) {
  u32 c = random_value(r, TYPE_bool, -1);
  if (!c) return;
  u32 shape = r->values[c - 1].shape, a = random_value(r, TYPE_f64, (int)shape);
  if (!a) return;
  u32 out = random_new(r, shape, TYPE_f64);
  random_put(r, "%%v%u = where %%v%u %%v%u -0.5", out, c, a);
  random_type(r, out);
}

static void random_reduce(RandomGraph *r) {
  static const char *const ops[] = {"sum", "max", "min", "prod", "argmax", "any", "mean", "cumsum"};
  u32 a = 1 + random_below(r, r->count), shape = r->values[a - 1].shape, type = r->values[a - 1].type,
      which = random_below(r, 8);
  if (shape == SHAPE_number || type == TYPE_bool) return;
  u32 to = which == 4 ? (u32)TYPE_i64 : which == 5 ? (u32)TYPE_bool
                      : which == 6 && type == TYPE_i64 ? (u32)TYPE_f64 : type;
  if (which == 7) {
    u32 out = random_new(r, shape, type);
    random_put(r, "%%v%u = cumsum %%v%u {axis=%u%s}", out, a, shape >= SHAPE_matrix ? random_below(r, 2) : 0,
               random_below(r, 2) ? ", reverse=true" : "");
    random_type(r, out);
    return;
  }
  bool keeps = shape >= SHAPE_matrix && random_below(r, 2);
  u32 out = random_new(r, keeps ? SHAPE_vector : SHAPE_number, to);
  if (keeps) random_put(r, "%%v%u = %s %%v%u {axis=%d}", out, ops[which], a, shape == SHAPE_matrix ? 1 : 0);
  else random_put(r, "%%v%u = %s %%v%u", out, ops[which], a);
  random_type(r, out);
}

/* A row's reduction, broadcast over the row again. */
static void random_rows(RandomGraph *r) {
  static const char *const ops[] = {"sum", "max", "min", "mean"},
      *const uses[] = {"subtract", "add", "maximum", "multiply"};
  u32 a = 1 + random_below(r, r->count), shape = r->values[a - 1].shape, type = r->values[a - 1].type;
  if (shape < SHAPE_matrix || (type != TYPE_f64 && type != TYPE_f32) || r->count + 1 >= RANDOM_VALUES) return;
  u32 out = random_new(r, shape, type), axis = random_below(r, 4) ? 1 : 0;
  const char *t = random_types[type];
  const char *one = axis ? shape == SHAPE_matrix ? "[n, 1]" : "[3, 1]" : shape == SHAPE_matrix ? "[1, 3]" : "[1, n]";
  random_put(r, "%%k%u = %s %%v%u {axis=[%u], keepdims=true} : %s%s\n", out, ops[random_below(r, 4)], a, axis, t, one);
  random_put(r, "%%v%u = %s %%v%u %%k%u", out, uses[random_below(r, 4)], a, out);
  random_type(r, out);
}

static void random_view(RandomGraph *r) {
  u32 a = 1 + random_below(r, r->count), shape = r->values[a - 1].shape, type = r->values[a - 1].type;
  if (shape == SHAPE_number) return;
  if (shape == SHAPE_vector) {
    if (random_below(r, 2)) {
      u32 out = random_new(r, SHAPE_vector, type);
      random_put(r, "%%v%u = flip %%v%u", out, a);
      random_type(r, out);
      return;
    }
    u32 out = random_new(r, SHAPE_turned, type);
    random_put(r, "%%v%u = broadcast_to %%v%u {shape=(3, n)}", out, a);
    random_type(r, out);
    return;
  }
  u32 out = random_new(r, shape == SHAPE_matrix ? SHAPE_turned : SHAPE_matrix, type), how = random_below(r, 3);
  if (how == 2) random_put(r, "%%v%u = reshape %%v%u {shape=%s}", out, a, shape == SHAPE_matrix ? "(3, n)" : "(n, 3)");
  else random_put(r, "%%v%u = transpose %%v%u", out, a);
  random_type(r, out);
}

/* A loop that counts and gathers a number. */
static void random_loop(RandomGraph *r) {
  u32 a = random_value(r, TYPE_f64, SHAPE_vector), s = random_value(r, TYPE_f64, SHAPE_number);
  if (!a || !s || r->count + 2 >= RANDOM_VALUES) return;
  u32 out = random_new(r, SHAPE_number, TYPE_f64), k = random_new(r, SHAPE_number, TYPE_i64);
  random_put(r, "%%v%u %%v%u = while (%%v%u 0:i64) (%%v%u) {\n cond (%%g%u: f64[n], %%s%u: f64[], %%k%u: "
                "i64[]) { %%p%u = less %%k%u n : bool[] yield %%p%u }\n", out, k, s, a, out, out, out, out, out, out);
  random_put(r, " body (%%h%u: f64[n], %%t%u: f64[], %%l%u: i64[]) {\n  %%e%u = index %%h%u[%%l%u] : f64[]\n"
                "  %%q%u = greater %%e%u %%t%u : bool[]\n", out, out, out, out, out, out, out, out, out);
  random_put(r, "  %%c%u = cond %%q%u (%%t%u %%e%u) {\n   then (%%x%u: f64[], %%y%u: "
                "f64[]) { %%z%u = multiply %%x%u 0.5 : f64[] %%w%u = add %%z%u %%y%u : f64[] yield %%w%u }\n", out, out,
             out, out, out, out, out, out, out, out, out, out);
  random_put(r, "   else (%%x%u_: f64[], %%y%u_: f64[]) { yield %%x%u_ }\n  } : f64[]\n  %%m%u = add %%l%u 1 : i64[]\n"
                "  next %%c%u %%m%u }\n} : f64[] i64[]\n", out, out, out, out, out, out, out);
}

static void random_graph(RandomGraph *r, u64 seed) {
  r->state = seed * 0x9E3779B97F4A7C15u + 1;
  r->len = r->count = 0;
  random_put(r, "graph f\nframe 0 f\nsym n = size(arg0, 0) in [0, 2^62)\nin %%v1: f64[n] = arg0\n"
                "in %%v2: f64[n, 3] = arg1\nin %%v3: i64[n] = arg2\nin %%v4: f64[] = arg3\n"
                "in %%v5: f32[3, n] = arg4\nin %%v6: i64[] = arg5\n");
  (void)random_new(r, SHAPE_vector, TYPE_f64);
  (void)random_new(r, SHAPE_matrix, TYPE_f64);
  (void)random_new(r, SHAPE_vector, TYPE_i64);
  (void)random_new(r, SHAPE_number, TYPE_f64);
  (void)random_new(r, SHAPE_turned, TYPE_f32);
  (void)random_new(r, SHAPE_number, TYPE_i64);
  u32 want = 7 + random_below(r, RANDOM_VALUES - 9);
  for (u32 tries = 0; tries < 200 && r->count < want; tries++) switch (random_below(r, 14)) {
      case 0:
      case 1: random_unary(r); break;
      case 2: random_convert(r); break;
      case 3: random_where(r); break;
      case 4:
      case 5: random_reduce(r); break;
      case 6:
      case 7: random_view(r); break;
      case 8: random_loop(r); break;
      case 9:
      case 10: random_rows(r); break;
      default: random_binary(r);
    }
  random_put(r, "out -> 0\nexit 0 return { f: ret = list(");
  u32 outs = 1 + random_below(r, 6);
  for (u32 i = 0; i < outs; i++)
    random_put(r, "%s%%v%u", i ? ", " : "", i == 0 ? r->count : 1 + random_below(r, r->count));
  random_put(r, ") }\nexit 1 limit { f pc 0: r0 = %%v1 }\nentry -> 1\n");
}

#define RANDOM_ARGUMENTS                                                                                   \
  "sin(arange(N) * 1.3) * 3.0; reshape(cos(arange(3.0 * N)), (N, 3)); arange(N) * 7 % 11 - 4; f64(0.75); " \
  "reshape(f32(arange(3.0 * N) * 0.1 - 2.0), (3, N)); i64(3)"

#endif
