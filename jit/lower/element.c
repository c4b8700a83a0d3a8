/* element.c — what an operation of ops.def does to one element, as loop IR: the meaning of ir.md section 10. Kernels
 * and native functions both use it. The eager kernels' counterpart is stdlib/kernels/element.h. */
#include "jit/lower/compile.h"

#include <math.h>
#include <string.h>

LoopType loop_memory_of_dtype(u32 dtype) {
  static const u8 types[DT_COUNT] = {
#define DTYPE(name, bytes, kind, computes, sums, loops, doc) [DT_##name] = LT_##loops,
#include "lang/dtypes.def"
  };
  return (LoopType)types[dtype];
}

LoopType loop_type_of_dtype(u32 dtype) { return loop_value_type(loop_memory_of_dtype(dtype)); }

/* ---- which operations ------------------------------------------------------------------------------ */

typedef enum Rule {
  R_none,
  R_binary,  /* LoopOp on all dtypes that the dtype rule lets through */
  R_float,   /* LoopOp on floats; integers stay as they are */
  R_compare, /* LoopOp */
  R_math,    /* a call of the function of math.loops of its name */
  R_own,     /* a function below */
} Rule;

typedef struct Lowering {
  u8 rule;
  u8 op;            /* LoopOp */
  const char *math; /* the function of math.loops that `emit` calls for floats */
  u32 (*emit)(LoopFn *fn, LoopType t, const u32 *x);
} Lowering;

static u32 unary(LoopFn *fn, LoopOp op, u32 a) { return loop_emit(fn, op, LT_VOID, a, 0, 0); }
static u32 binary(LoopFn *fn, LoopOp op, u32 a, u32 b) { return loop_emit(fn, op, LT_VOID, a, b, 0); }
static u32 pick(LoopFn *fn, u32 c, u32 a, u32 b) { return loop_emit(fn, LOOP_SELECT, LT_VOID, c, a, b); }
static u32 number(LoopFn *fn, LoopType t, i64 v) {
  return t == LT_I1 ? loop_const(fn, t, v != 0) : loop_const_i(fn, t, v);
}

static u32 truth(LoopFn *fn, u32 v, LoopType t) { return t == LT_I1 ? v : binary(fn, LOOP_NE, v, number(fn, t, 0)); }

static u32 emit_positive(LoopFn *fn, LoopType t, const u32 *x) { return (void)fn, (void)t, x[0]; }
static u32 emit_square(LoopFn *fn, LoopType t, const u32 *x) { return (void)t, binary(fn, LOOP_MUL, x[0], x[0]); }
static u32 emit_reciprocal(LoopFn *fn, LoopType t, const u32 *x) {
  return binary(fn, LOOP_DIV, number(fn, t, 1), x[0]);
}
static u32 emit_relu(LoopFn *fn, LoopType t, const u32 *x) { return binary(fn, LOOP_MAX, x[0], number(fn, t, 0)); }

static u32 emit_sign(LoopFn *fn, LoopType t, const u32 *x) {
  u32 zero = number(fn, t, 0);
  u32 up = binary(fn, LOOP_GT, x[0], zero), down = binary(fn, LOOP_LT, x[0], zero);
  if (!loop_is_float(t))
    return binary(fn, LOOP_SUB, element_convert(fn, up, LT_I1, t), element_convert(fn, down, LT_I1, t));
  u32 rest = pick(fn, binary(fn, LOOP_EQ, x[0], zero), zero, x[0]); /* +0, or NaN */
  return pick(fn, up, number(fn, t, 1), pick(fn, down, number(fn, t, -1), rest));
}

static u32 emit_signbit(LoopFn *fn, LoopType t, const u32 *x) {
  if (t == LT_I1) return loop_const(fn, LT_I1, 0);
  if (!loop_is_float(t)) return binary(fn, LOOP_LT, x[0], number(fn, t, 0));
  LoopType bits = t == LT_F32 ? LT_I32 : LT_I64;
  u32 negative = binary(fn, LOOP_LT, loop_emit(fn, LOOP_BITCAST, bits, x[0], 0, 0), number(fn, bits, 0));
  return binary(fn, LOOP_AND, negative, binary(fn, LOOP_EQ, x[0], x[0])); /* NaN counts as positive */
}

static u32 emit_copysign(LoopFn *fn, LoopType t, const u32 *x) {
  (void)t;
  return pick(fn, binary(fn, LOOP_EQ, x[1], x[1]), binary(fn, LOOP_COPYSIGN, x[0], x[1]), unary(fn, LOOP_ABS, x[0]));
}

static u32 emit_real(LoopFn *fn, LoopType t, const u32 *x) { return (void)fn, (void)t, x[0]; }
static u32 emit_conj(LoopFn *fn, LoopType t, const u32 *x) { return (void)fn, (void)t, x[0]; }
static u32 emit_imag(LoopFn *fn, LoopType t, const u32 *x) { return (void)x, number(fn, t, 0); }
/* 0 or pi */
static u32 emit_angle(LoopFn *fn, LoopType t, const u32 *x) {
  u32 turned = pick(fn, emit_signbit(fn, t, x), loop_const_f(fn, t, t == LT_F32 ? 0x1.921fb6p1 : 0x1.921fb54442d18p1),
                    number(fn, t, 0));
  return pick(fn, binary(fn, LOOP_EQ, x[0], x[0]), turned, x[0]);
}

static u32 emit_floor_divide(LoopFn *fn, LoopType t, const u32 *x) {
  if (!loop_is_float(t)) return binary(fn, LOOP_FLOORDIV, x[0], x[1]);
  u32 p = x[0], q = x[1], zero = number(fn, t, 0), one = number(fn, t, 1);
  u32 plain = binary(fn, LOOP_DIV, p, q), r = loop_math(fn, "fmod", p, q, 0);
  u32 d = binary(fn, LOOP_DIV, binary(fn, LOOP_SUB, p, r), q);
  u32 apart = binary(fn, LOOP_NE, binary(fn, LOOP_LT, r, zero), binary(fn, LOOP_LT, q, zero));
  u32 over = binary(fn, LOOP_AND, binary(fn, LOOP_NE, r, zero), apart);
  d = pick(fn, over, binary(fn, LOOP_SUB, d, one), d);
  u32 f = unary(fn, LOOP_FLOOR, d);
  u32 far = binary(fn, LOOP_GT, binary(fn, LOOP_SUB, d, f), loop_const_f(fn, t, 0.5));
  u32 whole = pick(fn, far, binary(fn, LOOP_ADD, f, one), f);
  whole = pick(fn, binary(fn, LOOP_EQ, d, zero), binary(fn, LOOP_COPYSIGN, zero, plain), whole);
  return pick(fn, binary(fn, LOOP_EQ, q, zero), plain, whole);
}

static u32 emit_remainder(LoopFn *fn, LoopType t, const u32 *x) {
  return loop_is_float(t) ? loop_math(fn, "remainder", x[0], x[1], 0) : binary(fn, LOOP_MOD, x[0], x[1]);
}

static u32 emit_fmod(LoopFn *fn, LoopType t, const u32 *x) {
  return loop_is_float(t) ? loop_math(fn, "fmod", x[0], x[1], 0) : binary(fn, LOOP_REM, x[0], x[1]);
}

static u32 make_node(void *fn, LoopNode n) { return loop_emit(fn, (LoopOp)n.op, (LoopType)n.type, n.a, n.b, n.c); }
static u32 make_number(void *fn, LoopType t, f64 v) { return loop_const_f(fn, t, v); }

/* Squaring; a negative exponent was checked, and counts as a great one so that the loop ends in any case. */
static u32 emit_power(LoopFn *fn, LoopType t, const u32 *x) {
  if (loop_is_float(t)) {
    u32 known = loop_known_power(&(LoopMaker){fn, make_node, make_number}, t, x[0], loop_node(fn, x[1]));
    return known ? known : loop_math(fn, "pow", x[0], x[1], 0);
  }
  const LoopNode *whole = loop_node(fn, x[1]);
  if (whole->op == LOOP_CONST && whole->imm <= 64) { /* the same products as below */
    u32 left = (u32)whole->imm, result = number(fn, t, 1), square = x[0];
    for (; left; left >>= 1) {
      if (left & 1) result = result == number(fn, t, 1) ? square : binary(fn, LOOP_MUL, result, square);
      if (left > 1) square = binary(fn, LOOP_MUL, square, square);
    }
    return result;
  }
  u32 exponent = loop_emit(fn, LOOP_CONVERT, LT_U64, x[1], 0, 0);
  if (t == LT_U64) exponent = x[1];
  u32 init[3] = {number(fn, t, 1), x[0], exponent};
  u32 w = loop_begin_while(fn, 3, init);
  if (!w) return 0;
  u32 r = loop_carry_of(fn, w, 0), b = loop_carry_of(fn, w, 1), e = loop_carry_of(fn, w, 2);
  u32 more = binary(fn, LOOP_NE, e, number(fn, LT_U64, 0));
  u32 again = loop_begin_if(fn, more, 0, NULL);
  (void)again;
  u32 odd = binary(fn, LOOP_NE, binary(fn, LOOP_AND, e, number(fn, LT_U64, 1)), number(fn, LT_U64, 0));
  u32 next[3] = {pick(fn, odd, binary(fn, LOOP_MUL, r, b), r), binary(fn, LOOP_MUL, b, b),
                 binary(fn, LOOP_SHR, e, number(fn, LT_U64, 1))};
  loop_next(fn, 3, next);
  loop_end(fn);
  u32 done[3] = {r, b, e};
  loop_break(fn, 3, done);
  loop_end(fn);
  return fn->failed ? 0 : loop_result_of(fn, w, 0);
}

static u32 emit_minimum(LoopFn *fn, LoopType t, const u32 *x) {
  return binary(fn, t == LT_I1 ? LOOP_AND : LOOP_MIN, x[0], x[1]);
}
static u32 emit_maximum(LoopFn *fn, LoopType t, const u32 *x) {
  return binary(fn, t == LT_I1 ? LOOP_OR : LOOP_MAX, x[0], x[1]);
}
static u32 emit_where(LoopFn *fn, LoopType t, const u32 *x) { return (void)t, pick(fn, x[0], x[1], x[2]); }

static u32 emit_clip(LoopFn *fn, LoopType t, const u32 *x) {
  u32 v = x[0];
  if (x[1]) v = emit_maximum(fn, t, (u32[2]){v, x[1]});
  if (x[2]) v = emit_minimum(fn, t, (u32[2]){v, x[2]});
  return v;
}

static u32 emit_isnan(LoopFn *fn, LoopType t, const u32 *x) {
  return loop_is_float(t) ? binary(fn, LOOP_NE, x[0], x[0]) : loop_const(fn, LT_I1, 0);
}
static u32 emit_isinf(LoopFn *fn, LoopType t, const u32 *x) {
  if (!loop_is_float(t)) return loop_const(fn, LT_I1, 0);
  return binary(fn, LOOP_EQ, unary(fn, LOOP_ABS, x[0]), loop_const_f(fn, t, (f64)__builtin_inf()));
}
static u32 emit_isfinite(LoopFn *fn, LoopType t, const u32 *x) {
  if (!loop_is_float(t)) return loop_const(fn, LT_I1, 1);
  return binary(fn, LOOP_LT, unary(fn, LOOP_ABS, x[0]), loop_const_f(fn, t, (f64)__builtin_inf()));
}

static u32 emit_bit_count(LoopFn *fn, LoopType t, const u32 *x) {
  bool wide = t == LT_I64 || t == LT_U64;
  LoopType u = wide ? LT_U64 : LT_U32;
  u64 ones = wide ? UINT64_MAX : UINT32_MAX;
  u32 v = t == u ? x[0] : loop_emit(fn, LOOP_CONVERT, u, x[0], 0, 0);
  if (t == LT_I1 || t == LT_U8) v = loop_emit(fn, LOOP_CONVERT, u, x[0], 0, 0);
#define MASK(m) loop_const(fn, u, (m) & ones)
#define SHR(a, n) binary(fn, LOOP_SHR, a, number(fn, u, n))
  v = binary(fn, LOOP_SUB, v, binary(fn, LOOP_AND, SHR(v, 1), MASK(0x5555555555555555u)));
  v = binary(fn, LOOP_ADD, binary(fn, LOOP_AND, v, MASK(0x3333333333333333u)),
             binary(fn, LOOP_AND, SHR(v, 2), MASK(0x3333333333333333u)));
  v = binary(fn, LOOP_AND, binary(fn, LOOP_ADD, v, SHR(v, 4)), MASK(0x0f0f0f0f0f0f0f0fu));
  v = SHR(binary(fn, LOOP_MUL, v, MASK(0x0101010101010101u)), wide ? 56 : 24);
#undef MASK
#undef SHR
  return t == u ? v : loop_emit(fn, LOOP_CONVERT, t, v, 0, 0);
}

static u32 emit_compare(LoopFn *fn, LoopOp op, LoopType t, u32 a, u32 b) {
  if (t != LT_I1 || op == LOOP_EQ || op == LOOP_NE) return binary(fn, op, a, b);
  return binary(fn, op, element_convert(fn, a, LT_I1, LT_U8), element_convert(fn, b, LT_I1, LT_U8));
}

static u32 emit_logical_and(LoopFn *fn, LoopType t, const u32 *x) { return (void)t, binary(fn, LOOP_AND, x[0], x[1]); }
static u32 emit_logical_or(LoopFn *fn, LoopType t, const u32 *x) { return (void)t, binary(fn, LOOP_OR, x[0], x[1]); }
static u32 emit_logical_xor(LoopFn *fn, LoopType t, const u32 *x) { return (void)t, binary(fn, LOOP_XOR, x[0], x[1]); }
static u32 emit_not(LoopFn *fn, LoopType t, const u32 *x) { return (void)t, unary(fn, LOOP_NOT, x[0]); }

static const Lowering lower_add = {.rule = R_binary, .op = LOOP_ADD};
static const Lowering lower_subtract = {.rule = R_binary, .op = LOOP_SUB};
static const Lowering lower_multiply = {.rule = R_binary, .op = LOOP_MUL};
static const Lowering lower_divide = {.rule = R_binary, .op = LOOP_DIV};
static const Lowering lower_floor_divide = {.rule = R_own, .emit = emit_floor_divide, .math = "fmod"};
static const Lowering lower_remainder = {.rule = R_own, .emit = emit_remainder, .math = "remainder"};
static const Lowering lower_fmod = {.rule = R_own, .emit = emit_fmod, .math = "fmod"};
static const Lowering lower_power = {.rule = R_own, .emit = emit_power, .math = "pow"};
static const Lowering lower_negative = {.rule = R_binary, .op = LOOP_NEG};
static const Lowering lower_positive = {.rule = R_own, .emit = emit_positive};
static const Lowering lower_equal = {.rule = R_compare, .op = LOOP_EQ};
static const Lowering lower_not_equal = {.rule = R_compare, .op = LOOP_NE};
static const Lowering lower_less = {.rule = R_compare, .op = LOOP_LT};
static const Lowering lower_less_equal = {.rule = R_compare, .op = LOOP_LE};
static const Lowering lower_greater = {.rule = R_compare, .op = LOOP_GT};
static const Lowering lower_greater_equal = {.rule = R_compare, .op = LOOP_GE};
static const Lowering lower_logical_and = {.rule = R_own, .emit = emit_logical_and};
static const Lowering lower_logical_or = {.rule = R_own, .emit = emit_logical_or};
static const Lowering lower_logical_xor = {.rule = R_own, .emit = emit_logical_xor};
static const Lowering lower_bitwise_and = {.rule = R_binary, .op = LOOP_AND};
static const Lowering lower_bitwise_or = {.rule = R_binary, .op = LOOP_OR};
static const Lowering lower_bitwise_xor = {.rule = R_binary, .op = LOOP_XOR};
static const Lowering lower_not = {.rule = R_own, .emit = emit_not};
static const Lowering lower_left_shift = {.rule = R_binary, .op = LOOP_SHL};
static const Lowering lower_right_shift = {.rule = R_binary, .op = LOOP_SHR};
static const Lowering lower_abs = {.rule = R_binary, .op = LOOP_ABS};
static const Lowering lower_sign = {.rule = R_own, .emit = emit_sign};
static const Lowering lower_square = {.rule = R_own, .emit = emit_square};
static const Lowering lower_floor = {.rule = R_float, .op = LOOP_FLOOR};
static const Lowering lower_ceil = {.rule = R_float, .op = LOOP_CEIL};
static const Lowering lower_trunc = {.rule = R_float, .op = LOOP_TRUNC};
static const Lowering lower_round = {.rule = R_float, .op = LOOP_RINT};
static const Lowering lower_signbit = {.rule = R_own, .emit = emit_signbit};
static const Lowering lower_real = {.rule = R_own, .emit = emit_real};
static const Lowering lower_imag = {.rule = R_own, .emit = emit_imag};
static const Lowering lower_conj = {.rule = R_own, .emit = emit_conj};
static const Lowering lower_angle = {.rule = R_own, .emit = emit_angle};
static const Lowering lower_sqrt = {.rule = R_binary, .op = LOOP_SQRT};
static const Lowering lower_reciprocal = {.rule = R_own, .emit = emit_reciprocal};
static const Lowering lower_relu = {.rule = R_own, .emit = emit_relu};
static const Lowering lower_copysign = {.rule = R_own, .emit = emit_copysign};
static const Lowering lower_minimum = {.rule = R_own, .emit = emit_minimum};
static const Lowering lower_maximum = {.rule = R_own, .emit = emit_maximum};
static const Lowering lower_clip = {.rule = R_own, .emit = emit_clip};
static const Lowering lower_where = {.rule = R_own, .emit = emit_where};
static const Lowering lower_isnan = {.rule = R_own, .emit = emit_isnan};
static const Lowering lower_isinf = {.rule = R_own, .emit = emit_isinf};
static const Lowering lower_isfinite = {.rule = R_own, .emit = emit_isfinite};
static const Lowering lower_bit_count = {.rule = R_own, .emit = emit_bit_count};
static const Lowering math_call = {.rule = R_math}, no_lowering = {.rule = R_none};

/* The cell `lower` of each row of ops.def. A lowering that is named and not there does not compile. */
#define CELL_element ~, OWN, 0
#define CELL_by(lowering) ~, SHARED, lowering
#define CELL_math ~, MATH, 0
#define CELL_math_by(lowering) ~, SHARED, lowering
#define CELL_math_or_compose ~, MATH, 0 /* gelu: the exact one, see gelu_is_exact */
#define OWN(name, lowering) [OP_##name] = &lower_##name,
#define SHARED(name, lowering) [OP_##name] = &lower_##lowering,
#define MATH(name, lowering) [OP_##name] = &math_call,
static const Lowering *const lowerings[OP_COUNT] = {
#define OP(name, signature, family, dtype, shape, needs, check, effect, agree, kernel, lower, ...) \
  OP_CELL(name, CELL_##lower)
#include "lang/ops.def"
#undef OP
};

static const Lowering *lowering_of(u32 op) { return lowerings[op] ? lowerings[op] : &no_lowering; }

static bool math_known(const Compiler *c, const char *name, LoopType t) {
  return loop_module_math(&c->code->module, name, t) || loop_module_find_math(&c->code->module, name, t);
}

/* What operand i of an operation on elements holds. */
static u8 operand_kind(u32 op, u32 i) { return op_info(op)->params[i].kind; }

u32 element_operands(const Graph *g, NodeId n, ValueId out[3]) {
  GraphArg args[OP_MAX_PARAMS];
  u32 op = graph_node_at(g, n)->op, count = 0, params = op_info(op)->nparams;
  node_args(g, n, args);
  out[0] = out[1] = out[2] = 0;
  for (u32 i = 0; i < params && i < 3; i++)
    if (args[i].kind == ARG_value) {
      out[i] = args[i].value;
      count = i + 1;
    }
  return count;
}

u32 element_flops(const Graph *g, NodeId n) {
  const GraphNode *x = graph_node_at(g, n);
  return x->kind == NODE_op ? op_info(x->op)->flops : 1;
}

bool element_weak_fits(Compiler *c, ValueId v, u32 to) {
  const ArrayType *t = value_type(c->g, v);
  if (!t->weak || t->dtype != DT_i64 || dtype_kind(to) != DK_INT || to == DT_i64 || to == DT_u64) return true;
  Value k;
  if (value_const(c->g, v, &k)) return k.i >= dtype_int_min(to) && k.i <= (i64)dtype_int_max(to);
  for (NodeId n = 1; n < c->g->nodes.count; n++) { /* the recorder puts the check right before the conversion */
    const GraphNode *x = graph_node_at(c->g, n);
    if (x->kind == NODE_check && x->op == CHECK_cast_range && x->block && node_operand(c->g, n, 0) == v &&
        value_type(c->g, node_operand(c->g, n, 1))->dtype == to)
      return true;
  }
  return false;
}

/* The approximation is composed of other operations, by the eager kernel. */
static bool gelu_is_exact(const Graph *g, NodeId n) {
  GraphArg args[OP_MAX_PARAMS];
  node_args(g, n, args);
  return args[1].kind == ARG_hole || (args[1].kind == ARG_attr && args[1].attr->kind == ATTR_nil);
}

static bool lowers(Compiler *c, NodeId n, u32 *compute) {
  const Graph *g = c->g;
  const GraphNode *x = graph_node_at(g, n);
  if (x->kind != NODE_op || x->result_count != 1) return false;
  ValueId operands[3];
  const ArrayType *types[3];
  u32 used = 0, count = element_operands(g, n, operands);
  u32 result = value_type(g, node_result(g, n, 0))->dtype;
  if (!dtype_in_loops(result) || count == 0 || (x->op == OP_gelu && !gelu_is_exact(g, n))) return false;
  for (u32 i = 0; i < count; i++) {
    if (!operands[i]) continue;
    if (value_is_token(g, operands[i])) return false;
    types[used] = value_type(g, operands[i]);
    if (!type_in_loops(c, types[used])) return false;
    used++;
  }
  if (op_converts(x->op)) {
    *compute = result;
    return element_weak_fits(c, operands[0], result);
  }
  const Lowering *l = lowering_of(x->op);
  if (l->rule == R_none) return false;
  if (x->op == OP_stop_gradient) {
    *compute = result;
    return true;
  }
  DTypeResult r;
  RuleError err;
  if (!rule_dtype(x->op, used, types, &r, &err) || !dtype_in_loops(r.compute)) return false;
  *compute = r.compute;
  for (u32 i = 0; i < count; i++)
    if (operands[i] && operand_kind(x->op, i) != PARAM_condition && !element_weak_fits(c, operands[i], r.compute))
      return false;
  return element_op_lowers(c, x->op, r.compute);
}

/* Asked several times of each node; the graph stays as it is once the tables are there. */
bool element_lowers(Compiler *c, NodeId n, u32 *compute) {
  if (c->lowers && c->lowers[n]) return *compute = c->lowers[n] - 1u, true;
  if (!lowers(c, n, compute)) return false;
  if (c->lowers) c->lowers[n] = (u8)(*compute + 1);
  return true;
}

bool element_op_lowers(Compiler *c, u32 op, u32 compute) {
  const Lowering *l = lowering_of(op);
  LoopType t = loop_type_of_dtype(compute);
  switch (l->rule) {
    case R_none: return false;
    case R_math: return loop_is_float(t) && math_known(c, op_name(op), t);
    case R_own: return !l->math || !loop_is_float(t) || math_known(c, l->math, t);
    case R_binary:
      if (t == LT_I1) return op == OP_bitwise_and || op == OP_bitwise_or || op == OP_bitwise_xor;
      return loop_is_float(t) || (op != OP_sqrt && op != OP_divide);
    default: return true;
  }
}

LoopType element_operand_type(u32 op, u32 i, u32 compute, u32 own) {
  if (operand_kind(op, i) == PARAM_condition) return LT_I1;
  return loop_type_of_dtype(op_converts(op) && dtype_compute(compute) != compute ? own : compute);
}

u32 element_emit(LoopFn *fn, u32 op, LoopType compute, u32 dtype, const u32 *x) {
  LoopType result = loop_type_of_dtype(dtype);
  if (op_converts(op)) return element_as(fn, x[0], dtype);
  const Lowering *l = lowering_of(op);
  u32 v = 0;
  LoopType made = compute;
  switch (l->rule) {
    case R_binary:
      v = loop_emit(fn, (LoopOp)l->op, LT_VOID, x[0], loop_op_form((LoopOp)l->op) == LOOP_FORM_UNARY ? 0 : x[1], 0);
      break;
    case R_float: v = loop_is_float(compute) ? unary(fn, (LoopOp)l->op, x[0]) : x[0]; break;
    case R_compare:
      v = emit_compare(fn, (LoopOp)l->op, compute, x[0], x[1]);
      made = LT_I1;
      break;
    case R_math: v = loop_math(fn, op_name(op), x[0], x[1], 0); break;
    case R_own:
      v = l->emit(fn, compute, x);
      if (op == OP_signbit || op == OP_isnan || op == OP_isinf || op == OP_isfinite) made = LT_I1;
      break;
    default: break;
  }
  return made == result ? v : element_convert(fn, v, made, result);
}

u32 element_convert(LoopFn *fn, u32 value, LoopType from, LoopType to) {
  if (from == to) return value;
  if (to == LT_I1) return truth(fn, value, from);
  const LoopNode *n = loop_node(fn, value);
  if (value && n->op == LOOP_CONST) { /* constants are converted here, once */
    u64 bits;
    if (loop_eval(LOOP_CONVERT, to, from, n->imm, 0, 0, &bits)) return loop_const(fn, to, bits);
  }
  return loop_emit(fn, LOOP_CONVERT, to, value, 0, 0);
}

/* The odd f32 beside an f64 that is none: what is rounded once more is then rounded as from the f64 (lang/halves.h). */
static u32 odd_f32(LoopFn *fn, u32 v) {
  u32 near = loop_emit(fn, LOOP_CONVERT, LT_F32, v, 0, 0), back = loop_emit(fn, LOOP_CONVERT, LT_F64, near, 0, 0);
  u32 bits = loop_emit(fn, LOOP_BITCAST, LT_U32, near, 0, 0), one = number(fn, LT_U32, 1);
  u32 even = binary(fn, LOOP_EQ, binary(fn, LOOP_AND, bits, one), number(fn, LT_U32, 0));
  u32 over = binary(fn, LOOP_GT, unary(fn, LOOP_ABS, back), unary(fn, LOOP_ABS, v));
  u32 under = binary(fn, LOOP_LT, unary(fn, LOOP_ABS, back), unary(fn, LOOP_ABS, v));
  u32 moved = pick(fn, over, binary(fn, LOOP_SUB, bits, one), pick(fn, under, binary(fn, LOOP_ADD, bits, one), bits));
  return loop_emit(fn, LOOP_BITCAST, LT_F32, pick(fn, even, moved, bits), 0, 0);
}

/* An integer as f64; where it has too many digits, the last one stands for those behind it. */
static u32 odd_f64(LoopFn *fn, u32 v, LoopType t) {
  if (t == LT_I64 || t == LT_U64) {
    i64 most = (i64)1 << 53;
    u32 few = binary(fn, LOOP_LE, v, number(fn, t, most)), low = binary(fn, LOOP_AND, v, number(fn, t, 0x7FF));
    if (t == LT_I64) few = binary(fn, LOOP_AND, few, binary(fn, LOOP_GE, v, number(fn, t, -most)));
    u32 rest = pick(fn, binary(fn, LOOP_NE, low, number(fn, t, 0)), number(fn, t, 0x800), number(fn, t, 0));
    v = pick(fn, few, v, binary(fn, LOOP_OR, binary(fn, LOOP_SUB, v, low), rest));
  }
  return loop_emit(fn, LOOP_CONVERT, LT_F64, v, 0, 0);
}

u32 element_as(LoopFn *fn, u32 value, u32 dtype) {
  LoopType from = (LoopType)loop_node(fn, value)->type, memory = loop_memory_of_dtype(dtype);
  if (memory == loop_value_type(memory)) return element_convert(fn, value, from, memory);
  if (loop_is_int(from) && loop_type_bytes(from) > 1) value = odd_f64(fn, value, from), from = LT_F64;
  if (from == LT_F64) value = odd_f32(fn, value);
  else value = element_convert(fn, value, from, LT_F32);
  return unary(fn, memory == LT_F16 ? LOOP_ROUND_F16 : LOOP_ROUND_BF16, value);
}

u32 element_wrap_index(LoopFn *fn, u32 index, u32 n) {
  u32 negative = binary(fn, LOOP_LT, index, number(fn, LT_I64, 0));
  return pick(fn, negative, binary(fn, LOOP_ADD, index, n), index);
}

LoopReduce element_reduce(u32 op, LoopType t) {
  switch ((OpFold)op_info(op)->folds) {
    case FOLD_mul: return LOOP_REDUCE_MUL;
    case FOLD_min: return t == LT_I1 ? LOOP_REDUCE_AND : LOOP_REDUCE_MIN;
    case FOLD_max: return t == LT_I1 ? LOOP_REDUCE_OR : LOOP_REDUCE_MAX;
    case FOLD_all: return LOOP_REDUCE_AND;
    case FOLD_any: return LOOP_REDUCE_OR;
    default: return LOOP_REDUCE_ADD;
  }
}

bool element_check(LoopFn *fn, CheckKind kind, LoopType type, u32 dtype, u32 a, u32 b, u32 num, u32 count,
                   const u32 *values) {
  u32 holds;
  switch (kind) {
    case CHECK_index: /* a, b are i64 */
      loop_check(fn, LOOP_CHECK_INDEX, num, element_wrap_index(fn, a, b), b, count, values);
      return true;
    case CHECK_zero_div:
      if (loop_is_float(type)) return true;
      if (type == LT_I1) break;
      loop_check(fn, LOOP_CHECK_ZERO_DIV, num, a, 0, count, values);
      return true;
    case CHECK_cast_range:
      if (!loop_is_float(type)) {
        if (dtype_kind(dtype) != DK_INT || type != LT_I64 || dtype == DT_i64) return true;
        holds = binary(fn, LOOP_GE, a, loop_const_i(fn, LT_I64, dtype_int_min(dtype)));
        if (dtype != DT_u64)
          holds = binary(fn, LOOP_AND, holds,
                         binary(fn, LOOP_LE, a, loop_const_i(fn, LT_I64, (i64)dtype_int_max(dtype))));
        loop_check(fn, LOOP_CHECK_ASSERT, num, holds, 0, count, values);
        return true;
      }
      switch (dtype) {
        case DT_u8: loop_check(fn, LOOP_CHECK_FIT_U8, num, a, 0, count, values); return true;
        case DT_i32: loop_check(fn, LOOP_CHECK_FIT_I32, num, a, 0, count, values); return true;
        case DT_u32: loop_check(fn, LOOP_CHECK_FIT_U32, num, a, 0, count, values); return true;
        case DT_i64: loop_check(fn, LOOP_CHECK_FIT_I64, num, a, 0, count, values); return true;
        case DT_u64: loop_check(fn, LOOP_CHECK_FIT_U64, num, a, 0, count, values); return true;
        default: return true; /* no range to leave */
      }
    case CHECK_neg_power:
    case CHECK_nonneg:
      if (type == LT_I1) return true;
      holds = binary(fn, LOOP_GE, a, number(fn, type, 0));
      loop_check(fn, LOOP_CHECK_ASSERT, num, holds, 0, count, values);
      return true;
    case CHECK_empty:
      holds = binary(fn, LOOP_NE, a, number(fn, type, 0));
      loop_check(fn, LOOP_CHECK_ASSERT, num, holds, 0, count, values);
      return true;
    case CHECK_size:
      holds = binary(fn, LOOP_EQ, a, b);
      loop_check(fn, LOOP_CHECK_ASSERT, num, holds, 0, count, values);
      return true;
    case CHECK_assertion:
    case CHECK_truth: break;
    default: return false;
  }
  loop_check(fn, LOOP_CHECK_ASSERT, num, truth(fn, a, type), 0, count, values);
  return true;
}
