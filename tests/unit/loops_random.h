/* loops_random.h — random loop IR for differential tests: kernels and native functions over a fixed set of buffers.
 *
 * Whatever is drawn is verified loop IR that ends, whose affine accesses are in bounds, and whose gathers are
 * checked or masked. The same seed gives the same function. */
#ifndef WEFT_TESTS_UNIT_LOOPS_RANDOM_H
#define WEFT_TESTS_UNIT_LOOPS_RANDOM_H

#include <math.h>
#include <string.h>

#include "jit/loops/loops.h"

enum { RANDOM_CELLS = 4096, RANDOM_IN = 8, RANDOM_OUT = 7, RANDOM_SCALARS = 6,
       RANDOM_PARAMS = RANDOM_IN + RANDOM_OUT + RANDOM_SCALARS };

static const LoopType random_in_types[RANDOM_IN] = {LT_F64, LT_F32, LT_I64, LT_I32, LT_U8, LT_U64, LT_F16,
                                                 LT_BF16};
static const LoopType random_out_types[RANDOM_OUT] = {LT_F64, LT_F32, LT_I64, LT_I32, LT_U8, LT_F16, LT_BF16};

typedef struct RandomFn {
  LoopModule *m;
  LoopFn *fn;
  u64 seed;
  u32 in[RANDOM_IN], out[RANDOM_OUT];
  u32 n, k, stride, fs, ds, is; /* scalars: n and k are trip counts up to 20, stride is 1 .. 8 */
  u32 values[64][LT_COUNT]; /* recent values per type */
  u32 counts[LT_COUNT];
  u32 checks, exits, depth;
  u32 indices[8], index_count; /* i64 below 20 */
  u32 stores;
  u32 room; /* statements left to draw */
} RandomFn;

static u64 draw(RandomFn *r) {
  r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
  u64 x = r->seed ^ r->seed >> 29;
  return x * 0x9E3779B97F4A7C15u >> 17;
}
static u32 below(RandomFn *r, u32 n) { return (u32)(draw(r) % n); }
static bool chance(RandomFn *r, u32 percent) { return below(r, 100) < percent; }

static u32 keep(RandomFn *r, u32 id) {
  LoopType t = loop_type_of(r->fn, id);
  r->values[r->counts[t]++ & 63][t] = id;
  return id;
}

static u32 random_const(RandomFn *r, LoopType t) {
  static const f64 floats[] = {0.0, -0.0, 1.0, -1.5, 3.25, 1e10, -1e-5, 0.1, 1e300, INFINITY, -INFINITY, NAN,
                               2147483648.5, -0.5, 255.5, 9.3e18};
  static const i64 ints[] = {0, 1, -1, 2, 3, 7, -5, 8, 64, 31, 63, 100, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  if (t == LT_I1) return loop_const(r->fn, t, below(r, 2));
  if (loop_is_float(t)) return loop_const_f(r->fn, t, floats[below(r, COUNT_OF(floats))]);
  return loop_const_i(r->fn, t, ints[below(r, COUNT_OF(ints))]);
}

static u32 any(RandomFn *r, LoopType t) {
  u32 count = r->counts[t] < 64 ? r->counts[t] : 64;
  if (!count || chance(r, 12)) return random_const(r, t);
  u32 back = chance(r, 60) && count > 4 ? below(r, 4) : below(r, count);
  return r->values[(r->counts[t] - 1 - back) & 63][t];
}

static LoopType random_type(RandomFn *r) {
  static const LoopType types[] = {LT_F64, LT_F64, LT_F64, LT_F32, LT_F32, LT_I64, LT_I64, LT_I64, LT_I32, LT_U32,
                                   LT_U64, LT_U8, LT_I1};
  return types[below(r, COUNT_OF(types))];
}

/* An i1, seldom a constant: code that is never reached is another test. */
static u32 condition(RandomFn *r) {
  u32 c = any(r, LT_I1);
  if (loop_node(r->fn, c)->op != LOOP_CONST || chance(r, 5)) return c;
  return loop_emit(r->fn, (LoopOp)(LOOP_LT + below(r, 4)), LT_I1, any(r, LT_I64), chance(r, 50) ? r->n : r->k, 0);
}

static u32 random_op(RandomFn *r, LoopType t) {
  static const LoopOp on_float[] = {LOOP_ADD, LOOP_SUB, LOOP_MUL, LOOP_DIV, LOOP_MIN, LOOP_MAX, LOOP_COPYSIGN,
                                    LOOP_ADD, LOOP_MUL};
  static const LoopOp on_float_1[] = {LOOP_NEG, LOOP_ABS, LOOP_SQRT, LOOP_FLOOR, LOOP_CEIL, LOOP_TRUNC, LOOP_RINT};
  static const LoopOp on_int[] = {LOOP_ADD, LOOP_SUB, LOOP_MUL, LOOP_DIV, LOOP_REM, LOOP_FLOORDIV, LOOP_MOD, LOOP_MULHI,
                                  LOOP_MIN, LOOP_MAX, LOOP_AND, LOOP_OR, LOOP_XOR, LOOP_SHL, LOOP_SHR, LOOP_ADD,
                                  LOOP_SUB, LOOP_MUL};
  static const LoopOp on_int_1[] = {LOOP_NEG, LOOP_ABS, LOOP_NOT};
  static const LoopOp on_bool[] = {LOOP_AND, LOOP_OR, LOOP_XOR};
  LoopFn *fn = r->fn;
  if (t == LT_I1) {
    if (chance(r, 30)) return loop_emit(fn, LOOP_NOT, t, any(r, t), 0, 0);
    if (chance(r, 40)) return loop_emit(fn, on_bool[below(r, 3)], t, any(r, t), any(r, t), 0);
    LoopType of = random_type(r);
    LoopOp op = (LoopOp)(LOOP_EQ + below(r, of == LT_I1 ? 2 : 6));
    return loop_emit(fn, op, t, any(r, of), any(r, of), 0);
  }
  if (chance(r, 8)) return loop_emit(fn, LOOP_SELECT, t, any(r, LT_I1), any(r, t), any(r, t));
  if (chance(r, 12)) {
    LoopType from = random_type(r);
    return loop_emit(fn, LOOP_CONVERT, t, any(r, from), 0, 0);
  }
  if (chance(r, 4)) {
    LoopType from = loop_is_float(t) ? (t == LT_F64 ? LT_I64 : LT_U32) : t == LT_U8 ? LT_U8
                                     : loop_type_bytes(t) == 8 ? LT_F64 : LT_F32;
    u32 v = any(r, from);
    /* a NaN's bits are its own */
    if (loop_is_float(from))
      v = loop_emit(fn, LOOP_SELECT, from, loop_emit(fn, LOOP_EQ, LT_I1, v, v, 0), v, loop_const_f(fn, from, 1));
    return loop_emit(fn, LOOP_BITCAST, t, v, 0, 0);
  }
  if (loop_is_float(t)) {
    if (t == LT_F32 && chance(r, 3))
      return loop_emit(fn, chance(r, 50) ? LOOP_ROUND_F16 : LOOP_ROUND_BF16, t, any(r, t), 0, 0);
    if (chance(r, 8)) return loop_emit(fn, LOOP_FMA, t, any(r, t), any(r, t), any(r, t));
    if (chance(r, 25)) return loop_emit(fn, on_float_1[below(r, COUNT_OF(on_float_1))], t, any(r, t), 0, 0);
    u32 a = any(r, t), b = any(r, t);
    LoopOp op = on_float[below(r, COUNT_OF(on_float))];
    /* of a NaN either sign */
    if (op == LOOP_COPYSIGN) b = loop_emit(fn, LOOP_SELECT, t, loop_emit(fn, LOOP_EQ, LT_I1, b, b, 0), b, a);
    if (op == LOOP_COPYSIGN)
      b = loop_emit(fn, LOOP_SELECT, t, loop_emit(fn, LOOP_EQ, LT_I1, b, b, 0), b, loop_const_f(fn, t, 1));
    return loop_emit(fn, op, t, a, b, 0);
  }
  if (chance(r, 12)) return loop_emit(fn, on_int_1[below(r, 3)], t, any(r, t), 0, 0);
  return loop_emit(fn, on_int[below(r, COUNT_OF(on_int))], t, any(r, t), any(r, t), 0);
}

/* An affine index below RANDOM_CELLS: up to two indices (below 20 each), times small factors. */
static u32 random_terms(RandomFn *r, LoopTerm *terms, i64 *constant) {
  u32 count = 0;
  *constant = (i64)below(r, 8);
  for (u32 i = 0; i < 2 && r->index_count; i++) {
    if (chance(r, 30)) continue;
    terms[count] = (LoopTerm){.coef = 1 + (i64)below(r, 5), .var = r->indices[below(r, r->index_count)]};
    if (chance(r, 30)) terms[count].stride[0] = r->stride;
    count++;
  }
  if (chance(r, 15)) terms[count++] = (LoopTerm){.coef = 1, .var = r->k};
  return count;
}

static void exit_values(RandomFn *r, u32 *values, u32 *count) {
  *count = r->fn->kind == LOOP_NATIVE ? below(r, 4) : 0;
  for (u32 i = 0; i < *count; i++) values[i] = any(r, random_type(r));
}

static void random_check(RandomFn *r, LoopCheck kind, u32 a, u32 b) {
  u32 values[4], count, number = r->fn->kind == LOOP_NATIVE ? ++r->exits : r->checks++ % 5;
  exit_values(r, values, &count);
  loop_check(r->fn, kind, number, a, b, count, values);
}

static u32 random_load(RandomFn *r) {
  LoopTerm terms[4];
  i64 constant;
  u32 which = below(r, RANDOM_IN);
  if (chance(r, 25)) { /* gather, checked or masked */
    u32 at = any(r, LT_I64);
    if (chance(r, 60)) at = loop_emit(r->fn, LOOP_AND, LT_I64, at, loop_const_i(r->fn, LT_I64, 1023), 0);
    else random_check(r, LOOP_CHECK_INDEX, at, loop_const_i(r->fn, LT_I64, RANDOM_CELLS - 300));
    if (chance(r, 50) || !r->index_count) return loop_load_at(r->fn, r->in[which], at);
    terms[0] = (LoopTerm){.coef = 1, .var = at};
    terms[1] = (LoopTerm){.coef = 2, .var = r->indices[below(r, r->index_count)]};
    return loop_load(r->fn, r->in[which], 3, terms, 2);
  }
  u32 count = random_terms(r, terms, &constant);
  return loop_load(r->fn, r->in[which], constant, terms, count);
}

/* A store to a place that only this trip of the outermost loop writes: its index is times 100, and stores are numbered
 * below 100. */
static void random_store(RandomFn *r) {
  u32 which = below(r, RANDOM_OUT);
  LoopTerm terms[2] = {{.coef = 100, .var = r->indices[0]}, {.coef = 1, .var = r->indices[r->index_count - 1]}};
  i64 constant = (i64)(r->stores++ % 60) + 20 * 0;
  u32 v = any(r, loop_value_type(random_out_types[which]));
  loop_store(r->fn, r->out[which], constant, terms, r->index_count > 1 && chance(r, 70) ? 2 : 1, v);
}

typedef struct Scope {
  u32 counts[LT_COUNT];
  u32 values[64][LT_COUNT];
  u32 index_count;
} Scope;

static void save(const RandomFn *r, Scope *s) {
  memcpy(s->counts, r->counts, sizeof s->counts);
  memcpy(s->values, r->values, sizeof s->values);
  s->index_count = r->index_count;
}
static void restore(RandomFn *r, const Scope *s) {
  memcpy(r->counts, s->counts, sizeof s->counts);
  memcpy(r->values, s->values, sizeof s->values);
  r->index_count = s->index_count;
}

static void random_statements(RandomFn *r, u32 most);

static u32 small_trips(RandomFn *r) {
  return chance(r, 40) ? r->k : chance(r, 50) ? r->n : loop_const_i(r->fn, LT_I64, below(r, 9));
}

static void random_if(RandomFn *r) {
  LoopType types[3];
  Scope s;
  u32 count = below(r, 4), values[3];
  for (u32 i = 0; i < count; i++) types[i] = random_type(r);
  u32 head = loop_begin_if(r->fn, condition(r), count, types);
  for (u32 arm = 0; arm < 2; arm++) {
    save(r, &s);
    if (arm) loop_else(r->fn);
    random_statements(r, 4);
    for (u32 i = 0; i < count; i++) values[i] = any(r, types[i]);
    if (count) loop_yield(r->fn, count, values);
    restore(r, &s);
    if (!count && chance(r, 50)) break;
  }
  loop_end(r->fn);
  for (u32 i = 0; i < count; i++) keep(r, loop_result_of(r->fn, head, i));
}

/* for or while with carried values; early breaks and nexts. A while's first carried value counts its trips. */
static void random_loop(RandomFn *r) {
  LoopFn *fn = r->fn;
  bool is_while = chance(r, 60);
  LoopType types[4];
  u32 count = below(r, 3) + is_while, init[4], values[4];
  Scope s, inner;
  for (u32 i = 0; i < count; i++) {
    types[i] = is_while && i == 0 ? LT_I64 : random_type(r);
    init[i] = is_while && i == 0 ? loop_const_i(fn, LT_I64, 0) : any(r, types[i]);
  }
  u32 trips = small_trips(r);
  u32 head = is_while ? loop_begin_while(fn, count, init) : loop_begin_for(fn, "f", trips, count, init);
  save(r, &s);
  for (u32 i = 0; i < count; i++) keep(r, loop_carry_of(fn, head, i));
  if (!is_while) r->indices[r->index_count++] = keep(r, loop_index_of(head, 0));
  bool unrolled = !is_while && loop_node(fn, trips)->op == LOOP_CONST; /* its polls would go */
  if (fn->kind == LOOP_NATIVE && !unrolled && chance(r, 60)) {
    u32 exits[4], n;
    exit_values(r, exits, &n);
    loop_poll(fn, ++r->exits, n, exits);
  }
  bool top = is_while && chance(r, 60);
  u32 counter = is_while ? loop_carry_of(fn, head, 0) : 0;
  if (is_while) r->indices[r->index_count++] = counter;
  if (top) { /* if i < trips { …; next }; break */
    u32 c = loop_emit(fn, LOOP_LT, LT_I1, counter, trips, 0);
    loop_begin_if(fn, c, 0, NULL);
  } else if (is_while) {
    u32 c = loop_emit(fn, LOOP_GE, LT_I1, counter, trips, 0);
    loop_begin_if(fn, c, 0, NULL);
    for (u32 i = 0; i < count; i++) values[i] = any(r, types[i]);
    loop_break(fn, count, values);
    loop_end(fn);
  }
  random_statements(r, 6);
  if (chance(r, 25)) {
    u32 one = is_while ? loop_emit(fn, LOOP_ADD, LT_I64, counter, loop_const_i(fn, LT_I64, 1), 0) : 0;
    loop_begin_if(fn, condition(r), 0, NULL);
    save(r, &inner);
    random_statements(r, 2);
    for (u32 i = 0; i < count; i++) values[i] = any(r, types[i]);
    if (is_while) values[0] = one;
    if (chance(r, 50)) loop_next(fn, count, values);
    else loop_break(fn, count, values);
    restore(r, &inner);
    loop_end(fn);
  }
  random_statements(r, 3);
  for (u32 i = 0; i < count; i++) values[i] = any(r, types[i]);
  if (is_while) values[0] = loop_emit(fn, LOOP_ADD, LT_I64, counter, loop_const_i(fn, LT_I64, 1), 0);
  if (count || chance(r, 50)) loop_next(fn, count, values);
  restore(r, &s);
  if (top) {
    loop_end(fn);
    for (u32 i = 0; i < count; i++) values[i] = chance(r, 50) ? loop_carry_of(fn, head, i) : any(r, types[i]);
    loop_break(fn, count, values);
  }
  loop_end(fn);
  for (u32 i = 0; i < count; i++) keep(r, loop_result_of(fn, head, i));
}

static void random_fold_over(RandomFn *r, u32 axes, const u32 *trips, bool scan) {
  LoopFn *fn = r->fn;
  LoopType t = random_type(r);
  LoopReduce op = t == LT_I1 ? (LoopReduce)(LOOP_REDUCE_AND + below(r, 3))
                             : (LoopReduce)below(r, loop_is_float(t) ? 4 : 7);
  bool big = loop_node(fn, trips[0])->op == LOOP_CONST && loop_node(fn, trips[0])->imm > 20;
  Scope s;
  u32 head = scan ? loop_begin_scan(fn, op, t, axes, trips)
                  : loop_begin_reduce(fn, op, t, chance(r, 40) ? LOOP_ORDER_ROWS : LOOP_ORDER_LANES, axes, trips);
  save(r, &s);
  for (u32 i = 0; i < axes; i++) {
    keep(r, loop_index_of(head, i));
    if (!big) r->indices[r->index_count++] = loop_index_of(head, i);
  }
  random_statements(r, 5);
  if (big && (t == LT_F64 || t == LT_F32)) {
    u32 x = loop_load(fn, r->in[t == LT_F64 ? 0 : 1], 0, &(LoopTerm){.coef = 1, .var = loop_index_of(head, 0)}, 1);
    keep(r, x);
  }
  u32 v = any(r, t);
  if (scan) {
    keep(r, loop_emit(fn, LOOP_PREFIX, t, v, 0, 0));
    random_statements(r, 3);
  } else {
    loop_yield(fn, 1, &v);
  }
  loop_end(fn);
  restore(r, &s);
  keep(r, loop_result_of(fn, head, 0));
}

/* One, or some side by side over the same trips. */
static void random_fold(RandomFn *r) {
  bool scan = chance(r, 35);
  u32 axes = 1 + below(r, 2), trips[2] = {small_trips(r), small_trips(r)},
      count = !scan && chance(r, 30) ? 2 + below(r, 3) : 1;
  /* several blocks */
  if (axes == 1 && r->index_count < 2 && chance(r, 20))
    trips[0] = loop_const_i(r->fn, LT_I64, chance(r, 50) ? 300 : 2500);
  for (u32 i = 0; i < count; i++) random_fold_over(r, axes, trips, scan);
}

static void random_statements(RandomFn *r, u32 most) {
  u32 count = 1 + below(r, most);
  r->depth++;
  for (u32 i = 0; i < count && r->room; i++) {
    u32 kind = below(r, 100);
    r->room--;
    if (kind < 62) keep(r, random_op(r, random_type(r)));
    else if (kind < 76) keep(r, random_load(r));
    else if (kind < 82 && r->index_count) random_store(r);
    else if (kind < 84) random_check(r, LOOP_CHECK_ZERO_DIV, any(r, LT_I64), 0);
    else if (kind < 85) random_check(r, LOOP_CHECK_FIT_I32, any(r, LT_F64), 0);
    else if (kind < 86)
      random_check(r, LOOP_CHECK_ASSERT, loop_emit(r->fn, LOOP_OR, LT_I1, condition(r), condition(r), 0), 0);
    else if (r->depth < 4 && r->index_count < 5) {
      if (kind < 90) random_if(r);
      else if (kind < 96) random_loop(r);
      else random_fold(r);
    }
  }
  r->depth--;
}

/* A kernel or native function `name` in `m`: parameters in, out, then n k stride ds fs is. */
static LoopFn *random_function(LoopModule *m, u64 seed, LoopKind kind, const char *name) {
  static const char *const in_names[] = {"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"},
      *const out_names[] = {"z0", "z1", "z2", "z3", "z4", "z5", "z6"};
  RandomFn r = {.m = m, .seed = seed * 0x9E3779B97F4A7C15u + 12345, .room = 60};
  LoopFn *fn = r.fn = loop_fn_new(m, kind, name);
  for (u32 i = 0; i < 5; i++) (void)draw(&r);
  for (u32 i = 0; i < RANDOM_IN; i++) r.in[i] = loop_param_buffer(fn, in_names[i], random_in_types[i], LOOP_IN);
  for (u32 i = 0; i < RANDOM_OUT; i++) r.out[i] = loop_param_buffer(fn, out_names[i], random_out_types[i], LOOP_INOUT);
  r.n = keep(&r, loop_param(fn, "n", LT_I64));
  r.k = keep(&r, loop_param(fn, "k", LT_I64));
  r.stride = keep(&r, loop_param(fn, "stride", LT_I64));
  r.ds = keep(&r, loop_param(fn, "ds", LT_F64));
  r.fs = keep(&r, loop_param(fn, "fs", LT_F32));
  r.is = keep(&r, loop_param(fn, "is", LT_I32));
  if (kind == LOOP_KERNEL) {
    u32 par = loop_begin_par(fn, "i", r.n, 1);
    r.indices[r.index_count++] = keep(&r, loop_index_of(par, 0));
    for (u32 i = 0; i < 4; i++) random_statements(&r, 8);
    random_store(&r);
    loop_end(fn);
  } else {
    LoopType types[2] = {random_type(&r), random_type(&r)};
    u32 values[2];
    for (u32 i = 0; i < 2; i++) loop_result(fn, types[i]);
    for (u32 i = 0; i < 4; i++) random_statements(&r, 8);
    for (u32 i = 0; i < 2; i++) values[i] = any(&r, types[i]);
    loop_return(fn, 2, values);
  }
  return fn;
}

/* ---- data to run it on --------------------------------------------------------------------- */

typedef struct RandomData {
  u8 in[RANDOM_IN][RANDOM_CELLS * 8] __attribute__((aligned(16)));
  u8 out[RANDOM_OUT][RANDOM_CELLS * 8] __attribute__((aligned(16)));
  u64 args[RANDOM_PARAMS];
} RandomData;

/* Where gcc can, one build per instruction set: these loops take more of a test's time than what is tested. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define RANDOM_WIDE __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "no-trapping-math")))
#else
#define RANDOM_WIDE
#endif

__attribute__((always_inline)) static inline u64 random_bits(u64 seed, u64 i) {
  u64 x = seed + i * 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

/* 24 bits, their scale from 2^-20 to 2^-5; three in a hundred are -0.0, NaN, or infinite. */
__attribute__((always_inline)) static inline f64 random_float(u64 x) {
  f64 scale, v;
  u64 bits = (u64)(1003 + (x >> 24 & 15)) << 52, by = x >> 28 & 0xFFFF;
  memcpy(&scale, &bits, 8);
  v = ((f64)(i32)(x & 0xFFFFFF) - 8e6) * scale;
  memcpy(&bits, &v, 8);
  bits = by < 1966 ? (u64)1 << 63 : bits;
  bits = by < 983 ? (u64)0x7FF << 52 : bits;
  bits = by < 491 ? (u64)0x7FF8 << 48 : bits;
  memcpy(&v, &bits, 8);
  return v;
}

/* Seven in ten from -5 to 44, the rest of any size. */
__attribute__((always_inline)) static inline u64 random_word(u64 x) {
  u64 small = ((x & 0xFFFFFFFF) * 50 >> 32) - 5;
  return (x >> 32 & 0xFF) < 179 ? small : (x >> 17) << (x & 31);
}

RANDOM_WIDE static void random_f64(f64 *to, u64 seed) {
  for (u32 i = 0; i < RANDOM_CELLS; i++) to[i] = random_float(random_bits(seed, i));
}
RANDOM_WIDE static void random_f32(f32 *to, u64 seed) {
  for (u32 i = 0; i < RANDOM_CELLS; i++) to[i] = (f32)random_float(random_bits(seed, i));
}
RANDOM_WIDE static void random_8(u64 *to, u64 seed) {
  for (u32 i = 0; i < RANDOM_CELLS; i++) to[i] = random_word(random_bits(seed, i));
}
RANDOM_WIDE static void random_4(u32 *to, u64 seed) {
  for (u32 i = 0; i < RANDOM_CELLS; i++) to[i] = (u32)random_word(random_bits(seed, i));
}
RANDOM_WIDE static void random_1(u8 *to, u64 seed) {
  for (u32 i = 0; i < RANDOM_CELLS; i++) to[i] = (u8)random_word(random_bits(seed, i));
}

/* Halves: of any exponent, with as many that are special. */
RANDOM_WIDE static void random_2(u16 *to, u64 seed) {
  for (u32 i = 0; i < RANDOM_CELLS; i++) {
    u64 x = random_bits(seed, i), by = x >> 48;
    u64 half = (x & 0x83FF) | ((x >> 32 & 0xFFFF) * 31 >> 16) << 10;
    half = by < 1966 ? 0x8000 : half;
    half = by < 983 ? 0x7C00 : half;
    half = by < 491 ? 0x7E00 : half;
    to[i] = (u16)half;
  }
}

static void random_data(RandomData *d, u64 seed) {
  RandomFn r = {.seed = seed + 99};
  memset(d->out, 0, sizeof d->out);
  for (u32 b = 0; b < RANDOM_IN; b++) {
    u64 from = draw(&r);
    switch (random_in_types[b]) {
      case LT_F64: random_f64((f64 *)d->in[b], from); break;
      case LT_F32: random_f32((f32 *)d->in[b], from); break;
      case LT_I64:
      case LT_U64: random_8((u64 *)d->in[b], from); break;
      case LT_I32: random_4((u32 *)d->in[b], from); break;
      case LT_U8: random_1(d->in[b], from); break;
      default: random_2((u16 *)d->in[b], from); break;
    }
  }
  f64 ds = 1.75;
  f32 fs = -2.5f;
  for (u32 b = 0; b < RANDOM_IN; b++) d->args[b] = (u64)(uintptr_t)d->in[b];
  for (u32 b = 0; b < RANDOM_OUT; b++) d->args[RANDOM_IN + b] = (u64)(uintptr_t)d->out[b];
  u64 *s = d->args + RANDOM_IN + RANDOM_OUT;
  s[0] = chance(&r, 10) ? 0 : 1 + below(&r, 20);
  s[1] = below(&r, 20);
  s[2] = 1 + below(&r, 8);
  s[4] = 0; /* its upper half too */
  memcpy(&s[3], &ds, 8);
  memcpy(&s[4], &fs, 4);
  s[5] = (u64)(i64)-3;
}

/* Equal, but that a NaN is a NaN. */
static bool same_word(LoopType t, u64 a, u64 b) {
  t = loop_value_type(t);
  return loop_normal(t, a) == loop_normal(t, b);
}

static bool same_outputs(const RandomData *a, const RandomData *b, u32 *buffer, u32 *cell) {
  for (u32 o = 0; o < RANDOM_OUT; o++) {
    u32 bytes = loop_type_bytes(random_out_types[o]);
    if (memcmp(a->out[o], b->out[o], (size_t)RANDOM_CELLS * bytes) == 0) continue;
    for (u32 i = 0; i < RANDOM_CELLS; i++)
      if (!same_word(random_out_types[o], loop_load_memory(random_out_types[o], a->out[o] + i * bytes),
                     loop_load_memory(random_out_types[o], b->out[o] + i * bytes))) {
        *buffer = o;
        *cell = i;
        return false;
      }
  }
  return true;
}

#endif
