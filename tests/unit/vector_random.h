/* vector_random.h — random kernels that the vector emitter takes: pointwise loops, rows, reductions, over the
 * buffers of loops_random.h. The same seed gives the same kernel. */
#ifndef WEFT_TESTS_UNIT_VECTOR_RANDOM_H
#define WEFT_TESTS_UNIT_VECTOR_RANDOM_H

#include "tests/unit/loops_random.h"

enum { ROW_PITCH = 300, ROWS_MOST = 9, TALL_PITCH = 9, LONGEST = 3900 };

typedef struct VectorRandom {
  RandomFn r;
  u32 palette;  /* 0: everything, 1: lanes of 4 bytes, 2: floats, CONDITIONS */
  u32 row, at;  /* indices: of the row (0: none), of the loop */
  i64 pitch;    /* elements from one row to the next */
  i64 turn;     /* no less than the loop's index, for what is read backwards; 0: nothing is */
  bool strides, maths, divides, checks, checked; /* one check: the least key is then the first that fails */
  u32 stored;
} VectorRandom;

/* Every buffer holds conditions, and hardly anything else is computed. */
enum { CONDITIONS = 3 };
static bool of_conditions(u64 seed) { return seed % 9 == 7; }

/* Small integers: bytes in memory, operations with constants, so that lanes of 1, 2 and 4 bytes suffice for some. */
static bool of_bytes(u64 seed) { return seed % 6 == 4; }

static LoopType vector_type(VectorRandom *v) {
  if (v->palette == CONDITIONS) return chance(&v->r, 97) ? LT_I1 : LT_I32;
  static const LoopType narrow[] = {LT_F32, LT_F32, LT_F32, LT_I32, LT_U32, LT_U8, LT_I1},
      floats[] = {LT_F64, LT_F64, LT_F64, LT_F32, LT_I1};
  if (v->palette == 1) return narrow[below(&v->r, COUNT_OF(narrow))];
  if (v->palette == 2) return floats[below(&v->r, COUNT_OF(floats))];
  return random_type(&v->r);
}

static u32 vector_math(VectorRandom *v, LoopType t) {
  static const char *const one[] = {"exp", "log", "sin", "cos", "tanh", "erf", "log1p", "expm1", "exp2", "atan",
                                    "sigmoid", "gelu", "cbrt", "tan", "asin", "sinh", "lgamma"};
  static const char *const both[] = {"pow", "atan2", "hypot", "fmod", "remainder"};
  if (chance(&v->r, 80)) return loop_math(v->r.fn, one[below(&v->r, COUNT_OF(one))], any(&v->r, t), 0, 0);
  return loop_math(v->r.fn, both[below(&v->r, COUNT_OF(both))], any(&v->r, t), any(&v->r, t), 0);
}

static u32 vector_op(VectorRandom *v) {
  static const LoopOp on_float[] = {LOOP_ADD, LOOP_SUB, LOOP_MUL, LOOP_DIV, LOOP_MIN, LOOP_MAX, LOOP_ADD, LOOP_MUL};
  static const LoopOp on_float_1[] = {LOOP_NEG, LOOP_ABS, LOOP_SQRT, LOOP_FLOOR, LOOP_CEIL, LOOP_TRUNC, LOOP_RINT};
  static const LoopOp on_int[] = {LOOP_ADD, LOOP_SUB, LOOP_MUL, LOOP_MIN, LOOP_MAX, LOOP_AND, LOOP_OR, LOOP_XOR,
                                  LOOP_SHL, LOOP_SHR};
  static const LoopOp on_int_1[] = {LOOP_NEG, LOOP_ABS, LOOP_NOT}, on_bool[] = {LOOP_AND, LOOP_OR, LOOP_XOR};
  RandomFn *r = &v->r;
  LoopFn *fn = r->fn;
  LoopType t = vector_type(v);
  if (t == LT_I1) {
    if (chance(r, 20)) return loop_emit(fn, LOOP_NOT, t, any(r, t), 0, 0);
    if (chance(r, 30)) return loop_emit(fn, on_bool[below(r, 3)], t, any(r, t), any(r, t), 0);
    LoopType of = vector_type(v);
    return loop_emit(fn, (LoopOp)(LOOP_EQ + below(r, of == LT_I1 ? 2 : 6)), t, any(r, of), any(r, of), 0);
  }
  if (chance(r, 12)) return loop_emit(fn, LOOP_SELECT, t, any(r, LT_I1), any(r, t), any(r, t));
  if (chance(r, 12)) return loop_emit(fn, LOOP_CONVERT, t, any(r, vector_type(v)), 0, 0);
  if (!loop_is_float(t)) {
    if (chance(r, 15)) return loop_emit(fn, on_int_1[below(r, 3)], t, any(r, t), 0, 0);
    if (v->divides && (t == LT_I32 || t == LT_I64) && chance(r, 30))
      return loop_emit(fn, (LoopOp[]){LOOP_DIV, LOOP_REM, LOOP_FLOORDIV, LOOP_MOD}[below(r, 4)], t, any(r, t),
                       any(r, t), 0);
    return loop_emit(fn, on_int[below(r, COUNT_OF(on_int))], t, any(r, t), any(r, t), 0);
  }
  if (v->maths && chance(r, 10)) return vector_math(v, t);
  if (t == LT_F32 && chance(r, 3))
    return loop_emit(fn, chance(r, 50) ? LOOP_ROUND_F16 : LOOP_ROUND_BF16, t, any(r, t), 0, 0);
  if (chance(r, 15)) return loop_emit(fn, LOOP_FMA, t, any(r, t), any(r, t), any(r, t));
  if (chance(r, 25)) return loop_emit(fn, on_float_1[below(r, COUNT_OF(on_float_1))], t, any(r, t), 0, 0);
  return loop_emit(fn, on_float[below(r, COUNT_OF(on_float))], t, any(r, t), any(r, t), 0);
}

static u32 vector_load(VectorRandom *v) {
  RandomFn *r = &v->r;
  LoopTerm terms[3];
  u32 count = 0, which = below(r, RANDOM_IN);
  if (v->palette == 1) which = (u32[]){1, 3, 4, 6, 7}[below(r, 5)];
  if (v->palette == 2) which = below(r, 2);
  i64 constant = (i64)below(r, 8);
  bool wide = v->palette != CONDITIONS && loop_type_bytes(random_in_types[which]) >= 4;
  if (v->strides && wide && r->counts[LT_I64] && chance(r, 20)) { /* a place that is computed */
    u32 at = loop_emit(r->fn, LOOP_AND, LT_I64, any(r, LT_I64), loop_const_i(r->fn, LT_I64, 1023), 0);
    terms[count++] = (LoopTerm){.coef = 1 + (i64)below(r, 2), .var = at};
  } else if (v->at && !chance(r, 10)) {
    terms[count] = (LoopTerm){.coef = 1, .var = v->at};
    if (v->strides && wide && chance(r, 30)) {
      if (chance(r, 50)) terms[count].coef = 2 + (i64)below(r, 2);
      else terms[count].stride[0] = r->stride;
    } else if (v->turn && chance(r, 12)) {
      terms[count].coef = -1;
      constant += v->turn;
    }
    count++;
  }
  if (v->row && chance(r, 70)) terms[count++] = (LoopTerm){.coef = v->pitch, .var = v->row};
  if (chance(r, 10)) terms[count++] = (LoopTerm){.coef = 1, .var = r->k};
  return loop_load(r->fn, r->in[which], constant, terms, count);
}

/* Checks that hold seldom or often; a gather behind one. */
static void vector_check(VectorRandom *v) {
  RandomFn *r = &v->r;
  u32 kind = below(r, 4);
  v->checked = true;
  if (kind == 0 && v->palette != 1) {
    u32 at = any(r, LT_I64), which = v->palette == 2 ? below(r, 2) : (u32[]){0, 1, 2, 3, 5}[below(r, 5)];
    if (chance(r, 60)) at = loop_emit(r->fn, LOOP_AND, LT_I64, at, loop_const_i(r->fn, LT_I64, 255), 0);
    loop_check(r->fn, LOOP_CHECK_INDEX, 3, at, loop_const_i(r->fn, LT_I64, 250), 0, NULL);
    keep(r, loop_load(r->fn, r->in[which], 2, &(LoopTerm){.coef = 1, .var = at}, 1));
  } else if (kind == 1) {
    loop_check(r->fn, LOOP_CHECK_ZERO_DIV, 4, any(r, v->palette == 1 ? LT_I32 : LT_I64), 0, 0, NULL);
  } else if (kind == 2) {
    loop_check(r->fn, (LoopCheck)(LOOP_CHECK_FIT_U8 + below(r, 5)), 1,
               any(r, v->palette == 1 || chance(r, 50) ? LT_F32 : LT_F64), 0, 0, NULL);
  } else {
    loop_check(r->fn, LOOP_CHECK_ASSERT, 2, loop_emit(r->fn, LOOP_OR, LT_I1, any(r, LT_I1), any(r, LT_I1), 0),
               0, 0, NULL);
  }
}

static void vector_body(VectorRandom *v, u32 count) {
  if (v->checks && !v->checked && v->at && chance(&v->r, 30)) vector_check(v);
  for (u32 i = 0; i < count; i++) keep(&v->r, chance(&v->r, 25) ? vector_load(v) : vector_op(v));
}

/* Each store of a kernel goes to a buffer of its own: in z[300 row + at], or z[at], z[row], z[0]. */
static void vector_store(VectorRandom *v) {
  RandomFn *r = &v->r;
  if (v->stored == RANDOM_OUT) return;
  u32 which = v->stored++;
  LoopType t = v->palette == CONDITIONS ? LT_I1 : loop_value_type(random_out_types[which]);
  if (v->palette == 1 && (t == LT_F64 || t == LT_I64)) return;
  if (v->palette == 2 && t != LT_F64 && t != LT_F32) return;
  LoopTerm terms[2];
  u32 count = 0;
  if (v->row) terms[count++] = (LoopTerm){.coef = v->at ? ROW_PITCH : 1, .var = v->row};
  if (v->at)
    terms[count++] = (LoopTerm){.coef = v->strides && loop_type_bytes(t) >= 4 && chance(r, 20) && !v->row ? 2 : 1,
                                .var = v->at};
  loop_store(r->fn, r->out[which], 0, terms, count, any(r, t));
}

/* Over two or three axes that are one in memory, or one that is not there. */
static void vector_fold_axes(VectorRandom *v, LoopReduce op, LoopType t) {
  RandomFn *r = &v->r;
  LoopFn *fn = r->fn;
  u32 inner = 1 + below(r, 9), outer = below(r, 7), n = loop_const_i(fn, LT_I64, inner),
      trips[3] = {loop_const_i(fn, LT_I64, outer), n, n};
  bool by_param = chance(r, 40), three = chance(r, 30);
  if (by_param) trips[1] = r->k; /* at most 9 */
  if (three) trips[0] = loop_const_i(fn, LT_I64, 1), trips[2] = trips[1], trips[1] = loop_const_i(fn, LT_I64, outer);
  Scope s;
  u32 head = loop_begin_reduce(fn, op, t, LOOP_ORDER_LANES, three ? 3 : 2, trips), before = v->at;
  save(r, &s);
  v->at = 0;
  for (u32 i = 0; i < 3; i++) {
    u32 which = v->palette == 2 ? below(r, 2) : v->palette == 1 ? (u32[]){1, 3, 4, 6, 7}[below(r, 5)]
                                : below(r, RANDOM_IN), count = 0;
    LoopTerm terms[3];
    terms[count] = (LoopTerm){.coef = by_param ? 1 : inner, .var = loop_index_of(head, three)};
    if (by_param) terms[count].stride[0] = r->k;
    count++;
    terms[count++] = (LoopTerm){.coef = 1, .var = loop_index_of(head, three ? 2 : 1)};
    if (v->row) terms[count++] = (LoopTerm){.coef = ROW_PITCH, .var = v->row};
    keep(r, loop_load(fn, r->in[which], (i64)below(r, 5), terms, count));
    vector_body(v, 1 + below(r, 3));
  }
  u32 value = any(r, t);
  loop_yield(fn, 1, &value);
  loop_end(fn);
  v->at = before;
  restore(r, &s);
  keep(r, loop_result_of(fn, head, 0));
}

static void vector_fold(VectorRandom *v, u32 trips) {
  RandomFn *r = &v->r;
  LoopFn *fn = r->fn;
  LoopType t = vector_type(v);
  LoopReduce op = t == LT_I1 ? (LoopReduce)(LOOP_REDUCE_AND + below(r, 3))
                             : (LoopReduce)below(r, loop_is_float(t) ? 4 : 7);
  Scope s;
  if (chance(r, 20)) {
    vector_fold_axes(v, op, t);
    return;
  }
  u32 head = loop_begin_reduce(fn, op, t, LOOP_ORDER_LANES, 1, &trips), before = v->at;
  save(r, &s);
  v->at = loop_index_of(head, 0);
  bool big = loop_node(fn, trips)->op == LOOP_CONST && loop_node(fn, trips)->imm > ROW_PITCH, strides = v->strides;
  i64 turn = v->turn;
  if (big) v->strides = false;
  if (big && turn) v->turn = LONGEST;
  if (v->palette != 1 && chance(r, 30)) keep(r, v->at);
  vector_body(v, 1 + below(r, 8));
  if (chance(r, 20) && !v->row && !big) vector_store(v);
  u32 value = any(r, t);
  loop_yield(fn, 1, &value);
  loop_end(fn);
  v->at = before;
  v->strides = strides;
  v->turn = turn;
  restore(r, &s);
  keep(r, loop_result_of(fn, head, 0));
}

/* Some next to each other, over the same elements. */
static void vector_folds(VectorRandom *v) {
  RandomFn *r = &v->r;
  u32 trips = chance(r, 80) ? r->n : loop_const_i(r->fn, LT_I64, v->row ? below(r, 40) : below(r, LONGEST));
  u32 count = chance(r, 40) ? 1 + below(r, 5) : 1;
  for (u32 i = 0; i < count; i++) vector_fold(v, trips);
}

static void vector_for(VectorRandom *v) {
  RandomFn *r = &v->r;
  Scope s;
  u32 head = loop_begin_for(r->fn, "f", r->n, 0, NULL);
  save(r, &s);
  v->at = loop_index_of(head, 0);
  if (v->palette != 1 && chance(r, 30)) keep(r, v->at);
  vector_body(v, 1 + below(r, 14));
  vector_store(v);
  loop_end(r->fn);
  v->at = 0;
  restore(r, &s);
}

/* A loop over rows, in each column: a reduction in the order of rows, a scan, or values that are carried. */
static void vector_rows(VectorRandom *v) {
  RandomFn *r = &v->r;
  LoopFn *fn = r->fn;
  Scope s;
  u32 kind = below(r, 3), head, start[2], before = v->row, trips =
      chance(r, 40) ? r->k : chance(r, 30) ? r->n : loop_const_i(fn, LT_I64, below(r, chance(r, 40) ? 40 : 300));
  bool tall = trips != r->k;
  LoopType t = vector_type(v);
  if (kind && t == LT_I1) t = v->palette == 1 ? LT_I32 : LT_F64;
  LoopReduce op = t == LT_I1 ? (LoopReduce)(LOOP_REDUCE_AND + below(r, 3))
                             : (LoopReduce)below(r, loop_is_float(t) ? 4 : 7);
  for (u32 i = 0; i < 2; i++) start[i] = any(r, t);
  if (kind == 0) head = loop_begin_reduce(fn, op, t, LOOP_ORDER_ROWS, 1, &trips);
  else if (kind == 1) head = loop_begin_for(fn, "f", trips, 2, start);
  else head = loop_begin_scan(fn, op, t, 1, &trips);
  save(r, &s);
  v->row = loop_index_of(head, 0);
  if (tall) v->pitch = 1 + (i64)below(r, TALL_PITCH); /* rows that overlap */
  if (v->palette != 1 && chance(r, 40)) keep(r, loop_index_of(head, 0));
  for (u32 i = 0; kind == 1 && i < 2; i++) keep(r, loop_carry_of(fn, head, i));
  vector_body(v, 1 + below(r, 6));
  if (kind == 2) {
    keep(r, loop_emit(fn, LOOP_PREFIX, t, any(r, t), 0, 0));
    if (!tall) vector_store(v);
  }
  u32 value[2] = {any(r, t), any(r, t)};
  if (kind == 0) loop_yield(fn, 1, value);
  else if (kind == 1) loop_next(fn, 2, value);
  loop_end(fn);
  v->row = before;
  v->pitch = ROW_PITCH;
  restore(r, &s);
  for (u32 i = 0; i < (kind == 1 ? 2u : 1u) && kind < 2; i++) keep(r, loop_result_of(fn, head, i));
}

static u32 byte_constant(RandomFn *r, LoopType t) {
  static const i64 some[] = {0, 1, 2, 3, 7, 9, 26, 31, 60, 77, 97, 100, 127, 128, 150, 200, 255, 256, 1000, -1, -3,
                             -128};
  return loop_const_i(r->fn, t, some[below(r, COUNT_OF(some))]);
}

static u32 byte_op(VectorRandom *v) {
  static const LoopOp plain[] = {LOOP_ADD, LOOP_SUB, LOOP_MUL, LOOP_MIN, LOOP_MAX, LOOP_AND, LOOP_OR, LOOP_XOR};
  static const LoopType types[] = {LT_I64, LT_I64, LT_I64, LT_I32, LT_U8, LT_U8, LT_I1, LT_U32};
  RandomFn *r = &v->r;
  LoopFn *fn = r->fn;
  LoopType t = types[below(r, COUNT_OF(types))], from = types[below(r, COUNT_OF(types))];
  if (t == LT_I1) {
    if (chance(r, 10)) return loop_emit(fn, LOOP_NOT, t, any(r, t), 0, 0);
    if (chance(r, 30))
      return loop_emit(fn, (LoopOp[]){LOOP_AND, LOOP_OR, LOOP_XOR}[below(r, 3)], t, any(r, t), any(r, t), 0);
    if (chance(r, 10)) return loop_emit(fn, LOOP_SELECT, t, any(r, LT_I1), any(r, t), any(r, t));
    if (from == LT_I1) from = LT_U8;
    return loop_emit(fn, (LoopOp)(LOOP_EQ + below(r, 6)), t, any(r, from), chance(r, 50) ? byte_constant(r, from)
                                                                                         : any(r, from), 0);
  }
  if (chance(r, 15)) return loop_emit(fn, LOOP_SELECT, t, any(r, LT_I1), any(r, t), any(r, t));
  if (chance(r, 30)) return loop_emit(fn, LOOP_CONVERT, t, any(r, from), 0, 0);
  if (chance(r, 20))
    return loop_emit(fn, chance(r, 70) ? LOOP_SHR : LOOP_SHL, t, any(r, t), loop_const_i(fn, t, (i64)below(r, 9)), 0);
  if (chance(r, 12) && t != LT_U32)
    return loop_emit(fn, chance(r, 50) ? LOOP_FLOORDIV : LOOP_MOD, t, any(r, t),
                     loop_const_i(fn, t, 2 + (i64)below(r, 200)), 0);
  if (chance(r, 12))
    return loop_emit(fn, (LoopOp[]){LOOP_NEG, LOOP_ABS, LOOP_NOT}[below(r, 3)], t, any(r, t), 0, 0);
  return loop_emit(fn, plain[below(r, COUNT_OF(plain))], t, any(r, t), chance(r, 60) ? byte_constant(r, t) : any(r, t),
                   0);
}

static void bytes_kernel(VectorRandom *v) {
  RandomFn *r = &v->r;
  LoopFn *fn = r->fn;
  static const u32 outs[] = {4, 2, 3};
  u32 par = loop_begin_par(fn, "i", r->n, 1), count = 2 + below(r, 12);
  bool words = chance(r, 30);
  v->at = loop_index_of(par, 0);
  for (u32 i = 0; i < count; i++) {
    LoopTerm term = {.coef = 1, .var = v->at};
    u32 x = loop_load(fn, r->in[words && chance(r, 30) ? 3u : (u32[]){0, 4, 5}[below(r, 3)]], (i64)below(r, 8), &term,
                      chance(r, 92));
    x = keep(r, x);
    if (chance(r, 60)) keep(r, loop_emit(fn, LOOP_CONVERT, chance(r, 80) ? LT_I64 : LT_I32, x, 0, 0));
    keep(r, byte_op(v)), keep(r, byte_op(v));
  }
  if (chance(r, 20)) loop_check(fn, LOOP_CHECK_ASSERT, 2, any(r, LT_I1), 0, 0, NULL);
  for (u32 i = 0; i < 1 + below(r, 3); i++) {
    LoopType t = i == 1 && chance(r, 50) ? LT_I1 : i == 2 && words ? LT_I32 : LT_U8;
    u32 to = loop_node(fn, r->out[outs[i]])->mem == t ? r->out[outs[i]] : 0;
    LoopTerm term = {.coef = 1, .var = v->at};
    if (to) loop_store(fn, to, 0, &term, 1, any(r, t));
  }
  loop_end(fn);
}

/* Parameters as random_function has them; n up to 290. */
static LoopFn *vector_kernel(LoopModule *m, u64 seed, const char *name) {
  static const char *const in_names[] = {"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"},
      *const out_names[] = {"z0", "z1", "z2", "z3", "z4", "z5", "z6"};
  VectorRandom v = {.pitch = ROW_PITCH, .turn = ROW_PITCH,
                    .r = {.m = m, .seed = seed * 0x9E3779B97F4A7C15u + 54321, .room = 60}};
  RandomFn *r = &v.r;
  LoopFn *fn = r->fn = loop_fn_new(m, LOOP_KERNEL, name);
  for (u32 i = 0; i < 5; i++) (void)draw(r);
  v.palette = below(r, 3);
  bool bytes = of_bytes(seed), of_i1 = bytes && chance(r, 30);
  if (of_conditions(seed) && !bytes) v.palette = CONDITIONS;
  v.strides = v.palette == 0 && chance(r, 40);
  v.maths = chance(r, 30);
  v.divides = seed % 7 == 3;
  v.checks = v.palette != CONDITIONS && chance(r, 25);
  for (u32 i = 0; i < RANDOM_IN; i++)
    r->in[i] = loop_param_buffer(fn, in_names[i], bytes ? (i == 3 ? LT_I32 : LT_U8)
                                                  : v.palette == CONDITIONS ? LT_I1 : random_in_types[i], LOOP_IN);
  for (u32 i = 0; i < RANDOM_OUT; i++)
    r->out[i] =
      loop_param_buffer(fn, out_names[i], bytes ? (i == 2 && of_i1 ? LT_I1 : i == 3 ? LT_I32 : LT_U8)
                                          : v.palette == CONDITIONS ? LT_I1 : random_out_types[i], LOOP_INOUT);
  r->n = loop_param(fn, "n", LT_I64);
  r->k = loop_param(fn, "k", LT_I64);
  r->stride = loop_param(fn, "stride", LT_I64);
  u32 ds = loop_param(fn, "ds", LT_F64), fs = keep(r, loop_param(fn, "fs", LT_F32)),
      is = keep(r, loop_param(fn, "is", LT_I32));
  (void)fs, (void)is;
  if (bytes) {
    bytes_kernel(&v);
    return fn;
  }
  if (v.palette != 1) keep(r, ds);
  if (v.palette == 0) keep(r, r->k);
  bool rows = chance(r, 50);
  u32 par = loop_begin_par(fn, "i", rows ? r->k : r->n, 1);
  if (!rows) {
    v.at = loop_index_of(par, 0);
    if (v.palette != 1 && chance(r, 30)) keep(r, v.at);
    bool columns = chance(r, 30);
    if (columns) v.strides = v.checks = false, v.turn = 0;
    for (u32 i = columns ? 1 + below(r, 2) : 0; i > 0; i--) vector_rows(&v);
    vector_body(&v, 1 + below(r, columns ? 6 : 25));
    for (u32 i = 0; i < RANDOM_OUT; i++) vector_store(&v);
  } else {
    v.row = loop_index_of(par, 0);
    u32 parts = 1 + below(r, 3);
    for (u32 i = 0; i < parts; i++) {
      if (chance(r, 50)) vector_folds(&v);
      else vector_for(&v);
      vector_body(&v, below(r, 3));
    }
    for (u32 i = 0; i < RANDOM_OUT; i++) vector_store(&v);
  }
  loop_end(fn);
  return fn;
}

static void vector_data(RandomData *d, u64 seed, bool conditions) {
  static const u32 sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 128, 129, 200,
                              256, 257, 290};
  random_data(d, seed);
  for (u32 b = 0; b < RANDOM_IN && conditions; b++)
    /* or nearly all the same */
    for (u32 i = 0; i < RANDOM_CELLS; i++)
      d->in[b][i] = seed % 2 ? d->in[b][i] & 1 : (seed / 2 + b) % 2 ^ (d->in[b][i] == 77);
  u64 *s = d->args + RANDOM_IN + RANDOM_OUT;
  s[0] = sizes[seed % COUNT_OF(sizes)];
  s[1] = seed / 31 % (ROWS_MOST + 1);
  s[2] = 1 + seed / 7 % 4;
}

#endif
