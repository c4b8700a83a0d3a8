/* native_random.c — random draws within a native function: Philox 4x32-10 on numbers, as in stdlib/random/random.c, bit
 * for bit. */
#include "jit/native/native.h"

#include <string.h>

static u32 random_op2(Native *n, LoopOp op, u32 a, u32 b) { return loop_emit(n->fn, op, LT_VOID, a, b, 0); }
static u32 random_raw_word(Native *n, u64 bits) { return loop_const(n->fn, LT_U64, bits); }
static u32 low(Native *n, u32 x) { return random_op2(n, LOOP_AND, x, random_raw_word(n, UINT32_MAX)); }
static u32 high(Native *n, u32 x) { return random_op2(n, LOOP_SHR, x, random_raw_word(n, 32)); }

typedef struct DrawKey {
  u32 seed, stream; /* u64 */
} DrawKey;

/* Block `block` of a key: two words of 64 bits. The words of the cipher are u64 below 2^32. */
static void philox(Native *n, DrawKey k, u32 block, u32 out[2]) {
  u32 c0 = low(n, block), c1 = high(n, block), c2 = low(n, k.stream), c3 = high(n, k.stream), k0 = low(n, k.seed),
      k1 = high(n, k.seed);
  for (u32 round = 0; round < 10; round++) {
    u32 a = random_op2(n, LOOP_MUL, c0, random_raw_word(n, 0xD2511F53u)),
        b = random_op2(n, LOOP_MUL, c2, random_raw_word(n, 0xCD9E8D57u));
    u32 n0 = random_op2(n, LOOP_XOR, random_op2(n, LOOP_XOR, high(n, b), c1), k0),
        n2 = random_op2(n, LOOP_XOR, random_op2(n, LOOP_XOR, high(n, a), c3), k1);
    c1 = low(n, b);
    c3 = low(n, a);
    c0 = n0;
    c2 = n2;
    k0 = low(n, random_op2(n, LOOP_ADD, k0, random_raw_word(n, 0x9E3779B9u)));
    k1 = low(n, random_op2(n, LOOP_ADD, k1, random_raw_word(n, 0xBB67AE85u)));
  }
  out[0] = random_op2(n, LOOP_OR, c0, random_op2(n, LOOP_SHL, c1, random_raw_word(n, 32)));
  out[1] = random_op2(n, LOOP_OR, c2, random_op2(n, LOOP_SHL, c3, random_raw_word(n, 32)));
}

static DrawKey derived(Native *n, DrawKey k, u32 data) {
  u32 w[2];
  philox(n, k, random_op2(n, LOOP_OR, data, random_raw_word(n, (u64)1 << 63)), w);
  return (DrawKey){w[0], w[1]};
}

/* Derived once more where `c` holds. */
static DrawKey again_if(Native *n, DrawKey k, u32 c) {
  LoopType types[2] = {LT_U64, LT_U64};
  u32 head = loop_begin_if(n->fn, c, 2, types);
  if (!head) return k;
  DrawKey d = derived(n, k, random_raw_word(n, 0));
  loop_yield(n->fn, 2, (u32[2]){d.seed, d.stream});
  loop_else(n->fn);
  loop_yield(n->fn, 2, (u32[2]){k.seed, k.stream});
  loop_end(n->fn);
  return n->fn->failed ? k : (DrawKey){loop_result_of(n->fn, head, 0), loop_result_of(n->fn, head, 1)};
}

static bool key_of(Native *n, const GraphArg *a, DrawKey *out) {
  if (a->kind != ARG_value || value_type(n->g, a->value)->dtype != DT_i64) return native_bail(n, "a key that is none");
  const NSplit *s = native_split(n, a->value);
  if (!s || s->rank != 1 || s->count != 2) return native_bail(n, "a key that is none");
  *out = (DrawKey){element_convert(n->fn, s->ir[0], LT_I64, LT_U64), element_convert(n->fn, s->ir[1], LT_I64, LT_U64)};
  return true;
}

static bool give_key(Native *n, ValueId v, DrawKey k) {
  NSplit *s = native_split_new(n, 1, (i64[1]){2});
  if (!s) return false;
  s->ir[0] = element_convert(n->fn, k.seed, LT_U64, LT_I64);
  s->ir[1] = element_convert(n->fn, k.stream, LT_U64, LT_I64);
  return native_split_set(n, v, s);
}

/* An integer of rank 0; 0: it is none. */
static u32 integer(Native *n, const GraphArg *a) {
  if (a->kind == ARG_attr && a->attr->kind == ATTR_int) return loop_const_i(n->fn, LT_I64, a->attr->i);
  if (a->kind != ARG_value || value_type(n->g, a->value)->rank || value_type(n->g, a->value)->dtype != DT_i64)
    return native_bail(n, "a draw by something else than an integer"), 0;
  return native_number(n, a->value);
}

/* A number as f64, or what it is when it is not given. */
static u32 limit(Native *n, const GraphArg *a, f64 otherwise) {
  if (a->kind == ARG_hole) return loop_const_f(n->fn, LT_F64, otherwise);
  if (a->kind == ARG_attr && a->attr->kind == ATTR_int) return loop_const_f(n->fn, LT_F64, (f64)a->attr->i);
  if (a->kind == ARG_attr && a->attr->kind == ATTR_float) return loop_const_f(n->fn, LT_F64, a->attr->f);
  if (a->kind != ARG_value || value_type(n->g, a->value)->rank) return native_bail(n, "a limit that is no number"), 0;
  u32 ir = native_number(n, a->value);
  return ir ? element_convert(n->fn, ir, native_type(n, a->value), LT_F64) : 0;
}

static NSplit *drawn(Native *n, const GraphArg *shape) {
  i64 dims[TYPE_MAX_RANK];
  u32 rank = 0;
  if (shape->kind == ARG_attr && shape->attr->kind == ATTR_int) dims[rank++] = shape->attr->i;
  else if (shape->kind == ARG_attr && (shape->attr->kind == ATTR_dims || shape->attr->kind == ATTR_ints)) {
    for (; rank < shape->attr->count && rank < TYPE_MAX_RANK; rank++)
      if (shape->attr->kind == ATTR_ints) dims[rank] = shape->attr->ints[rank];
      else if (!native_dim(n, shape->attr->ints[rank], &dims[rank]))
        return native_bail(n, "a shape that is not known"), NULL;
  } else if (shape->kind == ARG_attr && shape->attr->kind == ATTR_dim) {
    if (!native_dim(n, shape->attr->dim, &dims[rank++])) return native_bail(n, "a shape that is not known"), NULL;
  } else if (shape->kind != ARG_hole && !(shape->kind == ARG_attr && shape->attr->kind == ATTR_nil)) {
    return native_bail(n, "a shape that is not known"), NULL;
  }
  return native_split_new(n, rank, dims);
}

/* The first numbers of the key, 64 bits each. */
static void words(Native *n, DrawKey k, u32 count, u32 *out) {
  for (u32 i = 0; i < count; i += 2) {
    u32 w[2];
    philox(n, k, random_raw_word(n, i / 2), w);
    out[i] = w[0];
    if (i + 1 < count) out[i + 1] = w[1];
  }
}

/* The same in [0, 1): the upper 53 bits, scaled. */
static void units(Native *n, DrawKey k, u32 count, u32 *out) {
  words(n, k, count, out);
  for (u32 i = 0; i < count; i++) {
    u32 bits = element_convert(n->fn, random_op2(n, LOOP_SHR, out[i], random_raw_word(n, 11)), LT_U64, LT_I64);
    out[i] = random_op2(n, LOOP_MUL, element_convert(n->fn, bits, LT_I64, LT_F64),
                        loop_const_f(n->fn, LT_F64, 0x1p-53));
  }
}

static bool uniform(Native *n, ValueId v, const GraphArg *args) {
  DrawKey k;
  u32 lo = limit(n, &args[2], 0), hi = limit(n, &args[3], 1);
  NSplit *s = drawn(n, &args[1]);
  if (!s || !lo || !hi || !key_of(n, &args[0], &k)) return false;
  LoopFn *fn = n->fn;
  u32 span = random_op2(n, LOOP_SUB, hi, lo), one = loop_const_f(fn, LT_F64, 1), half = loop_const_f(fn, LT_F64, 0.5);
  units(n, k, s->count, s->ir);
  if (args[2].kind == ARG_hole && args[3].kind == ARG_hole) return native_split_set(n, v, s);
  /* as the eager code has it: see uniform_at in stdlib/random/random.c */
  u32 finite = random_op2(n, LOOP_EQ, random_op2(n, LOOP_SUB, span, span), loop_const_f(fn, LT_F64, 0)),
      upwards = random_op2(n, LOOP_LT, lo, hi);
  u32 scale = loop_emit(fn, LOOP_SELECT, LT_VOID, finite, one, half),
      back = loop_emit(fn, LOOP_SELECT, LT_VOID, finite, one, loop_const_f(fn, LT_F64, 2));
  u32 from = random_op2(n, LOOP_MUL, lo, scale),
      wide = random_op2(n, LOOP_SUB, random_op2(n, LOOP_MUL, hi, scale), from),
      last = loop_math(fn, "nextafter", hi, lo, 0);
  for (u32 i = 0; i < s->count; i++) {
    u32 x = random_op2(n, LOOP_MUL, random_op2(n, LOOP_ADD, from, random_op2(n, LOOP_MUL, s->ir[i], wide)), back);
    u32 inside = loop_emit(fn, LOOP_SELECT, LT_VOID, upwards, random_op2(n, LOOP_LT, x, hi),
                           random_op2(n, LOOP_GT, x, hi));
    s->ir[i] = loop_emit(fn, LOOP_SELECT, LT_VOID, inside, x, last);
  }
  return native_split_set(n, v, s);
}

/* Box–Muller on pairs of uniform numbers. */
static bool normal(Native *n, ValueId v, const GraphArg *args) {
  DrawKey k;
  LoopFn *fn = n->fn;
  NSplit *s = drawn(n, &args[1]);
  u32 u[2 * SMALL_CARRIED];
  if (!s || s->count > SMALL_CARRIED || !key_of(n, &args[0], &k)) return native_bail(n, "a draw of many numbers");
  units(n, k, 2 * s->count, u);
  for (u32 i = 0; i < s->count; i++) {
    u32 log = loop_math(fn, "log", random_op2(n, LOOP_SUB, loop_const_f(fn, LT_F64, 1), u[2 * i]), 0, 0);
    u32 cos = loop_math(fn, "cos",
                        random_op2(n, LOOP_MUL, loop_const_f(fn, LT_F64, 6.283185307179586), u[2 * i + 1]), 0, 0);
    s->ir[i] = random_op2(n, LOOP_MUL, loop_emit(fn, LOOP_SQRT, LT_VOID,
                                             random_op2(n, LOOP_MUL, loop_const_f(fn, LT_F64, -2), log), 0, 0), cos);
  }
  return native_split_set(n, v, s);
}

static bool bernoulli(Native *n, ValueId v, const GraphArg *args) {
  DrawKey k;
  u32 p = limit(n, &args[1], 0.5);
  NSplit *s = drawn(n, &args[2]);
  if (!s || !p || !key_of(n, &args[0], &k)) return false;
  units(n, k, s->count, s->ir);
  for (u32 i = 0; i < s->count; i++) s->ir[i] = random_op2(n, LOOP_LT, s->ir[i], p);
  return native_split_set(n, v, s);
}

/* Integers between limits that are known: others may be refused by the eager code. */
static bool below(Native *n, ValueId v, const GraphArg *args) {
  DrawKey k;
  Value lo, hi;
  NSplit *s = drawn(n, &args[3]);
  if (!s || !key_of(n, &args[0], &k)) return false;
  if (args[1].kind != ARG_value || args[2].kind != ARG_value || !value_const(n->g, args[1].value, &lo) ||
      !value_const(n->g, args[2].value, &hi) || lo.dtype != DT_i64 || hi.dtype != DT_i64 || lo.i >= hi.i)
    return native_bail(n, "integers between limits known only at run time");
  words(n, k, s->count, s->ir);
  for (u32 i = 0; i < s->count; i++)
    s->ir[i] = element_convert(n->fn, random_op2(n, LOOP_ADD, random_raw_word(n, lo.u),
                                                 random_op2(n, LOOP_MULHI, s->ir[i], random_raw_word(n, hi.u - lo.u))),
                               LT_U64, LT_I64);
  return native_split_set(n, v, s);
}

bool native_small_draw(Native *n, NodeId node, bool *known) {
  Graph *g = n->g;
  GraphArg args[OP_MAX_PARAMS];
  ValueId v = node_result(g, node, 0);
  DrawKey k;
  u32 data;
  u64 plain = ~((u64)1 << 63);
  node_args(g, node, args);
  *known = true;
  switch (graph_node_at(g, node)->op) {
    case OP_random_key:
      if (!(data = integer(n, &args[0]))) return false;
      return give_key(n, v, (DrawKey){element_convert(n->fn, data, LT_I64, LT_U64), random_raw_word(n, 0)});
    case OP_random_stream:
      k.stream = random_raw_word(n, 1);
      k.seed = integer(n, &args[0]);
      data = integer(n, &args[1]);
      if (!k.seed || !data) return false;
      k.seed = element_convert(n->fn, k.seed, LT_I64, LT_U64);
      return give_key(n, v, derived(n, k, random_op2(n, LOOP_AND, element_convert(n->fn, data, LT_I64, LT_U64),
                                                     random_raw_word(n, plain))));
    case OP_random_fold_in: {
      if (!key_of(n, &args[0], &k) || !(data = integer(n, &args[1]))) return false;
      k = derived(n, k, random_raw_word(n, 0x9E3779B97F4A7C15u >> 1));
      u32 negative = random_op2(n, LOOP_LT, data, loop_const_i(n->fn, LT_I64, 0));
      k = derived(n, k,
                  random_op2(n, LOOP_AND, element_convert(n->fn, data, LT_I64, LT_U64), random_raw_word(n, plain)));
      return give_key(n, v, again_if(n, k, negative));
    }
    case OP_random_randint: *known = value_type(g, v)->dtype == DT_i64; return *known && below(n, v, args);
    case OP_random_uniform: *known = value_type(g, v)->dtype == DT_f64; return *known && uniform(n, v, args);
    case OP_random_normal: *known = value_type(g, v)->dtype == DT_f64; return *known && normal(n, v, args);
    case OP_random_bernoulli: return bernoulli(n, v, args);
    default: *known = false; return false;
  }
}
