/* record_ops.c — operators and array operations of the trace: folding, sizes, nodes with inferred types. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_parts.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_whole.h"
#include "tracer/record/repr_option.h"
#include "tracer/record/repr_slice.h"

#include <stdlib.h>

#include <stdio.h>
#include <string.h>

static const u16 op_of_bc[BC_COUNT] = {
    [BC_add] = OP_add, [BC_sub] = OP_subtract, [BC_mul] = OP_multiply, [BC_div] = OP_divide,
    [BC_floordiv] = OP_floor_divide, [BC_mod] = OP_remainder, [BC_matmul] = OP_matmul, [BC_pow] = OP_power,
    [BC_band] = OP_bitwise_and, [BC_bor] = OP_bitwise_or, [BC_bxor] = OP_bitwise_xor, [BC_shl] = OP_left_shift,
    [BC_shr] = OP_right_shift, [BC_eq] = OP_equal, [BC_ne] = OP_not_equal, [BC_lt] = OP_less,
    [BC_le] = OP_less_equal, [BC_gt] = OP_greater, [BC_ge] = OP_greater_equal, [BC_neg] = OP_negative,
    [BC_pos] = OP_positive, [BC_bnot] = OP_bitwise_not,
};

u32 rec_operation_of(u32 bc) { return op_of_bc[bc]; }

/* ---- integers as sizes --------------------------------------------------------------------------- */

enum { DIM_HINT_LIMIT_BITS = 40 }; /* not a threshold: larger products stay ordinary wrapping arithmetic */

static bool sized(Recorder *r, ValueId v, Dim *d) {
  const ArrayType *t = value_type(r->g, v);
  return t->rank == 0 && t->dtype == DT_i64 && value_dim(r->g, v, d) && *d != DIM_NONE;
}

/* i64 + - * of numbers that are sizes is a size again. 0: not so, make a node. */
static ValueId size_arithmetic(Recorder *r, u32 bc, ValueId a, ValueId b) {
  Dim x, y, d;
  SizePool *p = &r->g->sizes;
  if (!sized(r, a, &x) || !sized(r, b, &y)) return 0;
  switch (bc) {
    case BC_add: d = size_add(p, x, y); break;
    case BC_sub: d = size_sub(p, x, y); break;
    case BC_mul: d = size_mul(p, x, y); break;
    case BC_floordiv:
    case BC_mod:
      if (y <= 0) return 0; /* a positive constant only */
      d = bc == BC_mod ? size_mod(p, x, y) : size_floordiv(p, x, y);
      break;
    default: return 0;
  }
  i64 hint;
  if (d == DIM_NONE) return 0;
  if (size_is_unbacked(p, d)) { /* no products: they could leave i64 */
    if (bc == BC_mul && !size_is_const(p, x, &hint) && !size_is_const(p, y, &hint)) return 0;
    if (!size_range(p, d).fits) return 0;
  } else if (!size_hint(p, d, &hint) || hint >> DIM_HINT_LIMIT_BITS != hint >> 63) {
    return 0;
  }
  bool weak = value_type(r->g, a)->weak && value_type(r->g, b)->weak;
  return graph_size_typed(r->g, d, DT_i64, weak);
}

/* ---- operators ------------------------------------------------------------------------------------ */

Outcome rec_binary(Recorder *r, u32 bc, Av a, Av b, Av *out) {
  if (bc == BC_add &&
      (rec_text_grows(r, a) || (a && b && rec_is_text(r, a) && rec_text_parts(r, a) && rec_text_grows(r, b))))
    return OUT_STUCK;
  a = bc == BC_add && a && b ? rec_text_part(r, a) : av_force(r, a);
  b = av_force(r, b);
  if (!a || !b) return OUT_FAIL;
  bool equality = bc == BC_eq || bc == BC_ne;
  Outcome there = equality ? rec_there_by_element(r, &a, &b) : rec_there(r, &a);
  if (there == OUT_GO && !equality) there = rec_there(r, &b);
  if (there != OUT_GO) return there;
  Value x, y;
  if (av_const_value(r, a, &x) && av_const_value(r, b, &y) && x.kind != V_FN && y.kind != V_FN) {
    Value v;
    if (vm_binary(r->vm, bc, x, y, &v) != WEFT_OK) {
      vm_error_forget(r->vm);
      return rec_stuck(r, REASON_raises, "`%s` raises an error", bc_info[bc].name);
    }
    Av c = av_const(r, v);
    value_drop(r->vm, v);
    return rec_made(r, c, out);
  }
  bool nx = av_is_number(r, a), ny = av_is_number(r, b);
  if (nx && ny && bc != BC_in) {
    ValueId d = size_arithmetic(r, bc, av_value(r, a), av_value(r, b));
    if (d) return rec_made(r, av_num(r, d), out);
    Av params[2] = {a, b};
    return rec_op(r, op_of_bc[bc], params, out);
  }
  if (bc == BC_add && !nx) {
    const Repr *p = av_repr(r, a);
    return p->add ? p->add(r, a, b, out) : repr_no(r, a, ROP_add);
  }
  if (equality) {
    Av same;
    ValueId weak = 0;
    Outcome o = rec_equal(r, a, b, &same);
    if (o == OUT_GO) o = rec_option_weak(r, a, b, &weak);
    if (o == OUT_GO) o = rec_unary(r, bc == BC_eq ? BC_truth : BC_not, same, out);
    if (o != OUT_GO || !weak) return o;
    ValueId is = av_value(r, *out);
    GraphAttr as_bool = attr_dtype(1, DT_bool);
    is = graph_op(r->g, OP_astype, &is, 1, &as_bool, 1, NULL); /* another value than the one that may be shared */
    return is && rec_weak_note(r, is, weak) ? rec_made(r, av_num(r, is), out) : OUT_FAIL;
  }
  bool in = bc == BC_in;
  if (in || bc == BC_lt || bc == BC_le || bc == BC_gt || bc == BC_ge) {
    Av is;
    Outcome o = in ? rec_member(r, a, b, &is) : rec_text_order(r, bc, a, b, &is);
    return o == OUT_GO ? rec_unary(r, BC_truth, is, out) : o; /* strong, whatever was compared for it */
  }
  return rec_stuck(r, REASON_no_rule, "`%s` of %s and %s", bc_info[bc].name, av_kind_text(r, a), av_kind_text(r, b));
}

Outcome rec_unary(Recorder *r, u32 bc, Av a, Av *out) {
  a = av_force(r, a);
  if (!a) return OUT_FAIL;
  Outcome there = rec_there(r, &a);
  if (there != OUT_GO) return there;
  if (bc == BC_not || bc == BC_truth) {
    Av t;
    Outcome o = rec_truth(r, a, &t);
    if (o != OUT_GO) return o;
    Value v;
    if (av_const_value(r, t, &v)) return rec_made(r, av_const(r, value_bool((v.i != 0) == (bc == BC_truth))), out);
    ValueId strong = rec_strengthen(r, av_value(r, t), DT_bool); /* whatever it is asked of */
    Av params[1] = {strong ? av_num(r, strong) : 0};
    if (bc == BC_truth || !params[0]) return rec_made(r, params[0], out);
    return rec_op(r, OP_logical_not, params, out);
  }
  if (!av_is_number(r, a)) return rec_stuck(r, REASON_raises, "`%s` of %s", bc_info[bc].name, av_kind_text(r, a));
  return rec_op(r, op_of_bc[bc], &a, out);
}

Outcome rec_truth(Recorder *r, Av a, Av *out) {
  if (!(a = av_force(r, a))) return OUT_FAIL;
  const Repr *p = av_repr(r, a);
  return p->truth ? p->truth(r, a, out) : repr_no(r, a, ROP_truth);
}

/* ---- operations of ops.def ------------------------------------------------------------------------ */

/* A known size that kernels refuse. Rules need not look at it: what has the size 1 goes with any. */
static bool refused_size(Recorder *r, Av size) {
  i64 known;
  return av_known_int(r, size, &known) && known < 0;
}

/* The size that a layout leaves open. */
static bool is_open_size(Recorder *r, const OpParam *p, Av size) {
  i64 known;
  return p->kind == PARAM_layout && av_known_int(r, size, &known) && known == -1;
}

/* A list of integers as an attribute: constants, else sizes. */
static Outcome list_setting(Recorder *r, u32 op, u32 param, Av a, GraphAttr *out) {
  const OpParam *p = &op_info(op)->params[param];
  const bool shape = param_is_shape(p), literal = param_is_axis(p);
  u32 n = av_at(r, a)->count;
  i64 ints[2 * TYPE_MAX_RANK];
  Dim dims[TYPE_MAX_RANK];
  bool pairs = false, known = true;
  if (n > TYPE_MAX_RANK) return rec_stuck(r, REASON_raises, "too many axes");
  for (u32 i = 0; i < n; i++) {
    Av item = av_force(r, av_item(r, a, i));
    if (!item) return OUT_FAIL;
    if (av_is_list(r, item) && av_at(r, item)->count == 2 && (i == 0 || pairs)) {
      pairs = true;
      if (!av_known_int(r, av_item(r, item, 0), &ints[2 * i]) ||
          !av_known_int(r, av_item(r, item, 1), &ints[2 * i + 1]))
        return rec_stuck(r, REASON_literal_needed, "pairs of sizes must be known");
      continue;
    }
    if (pairs) return rec_stuck(r, REASON_data_dependent_shape, "a list of sizes holds %s", av_kind_text(r, item));
    if (is_open_size(r, p, item)) {
      dims[i] = DIM_INFER;
      known = false;
      continue;
    }
    if (shape) {
      Outcome o = rec_size(r, item, &dims[i]);
      if (o != OUT_GO) return o;
      if (p->kind != PARAM_layout && refused_size(r, item))
        return rec_stuck(r, REASON_raises, "%s: a size below 0", op_name(op));
    } else if (!av_dim(r, item, &dims[i])) {
      return rec_stuck(r, REASON_data_dependent_shape, "a list of sizes holds %s", av_kind_text(r, item));
    }
    known &= literal ? rec_literal(r, item, "axis", &ints[i]) : av_known_int(r, item, &ints[i]);
  }
  if (pairs || (known && !shape)) *out = attr_ints(r->g, param, ints, pairs ? 2 * n : n, pairs);
  else *out = attr_dims(r->g, param, dims, n);
  return r->g->failed ? OUT_FAIL : OUT_GO;
}

/* Would the kernel take a constant of this kind? Rules of types read an attribute of another kind as one that was not
 * given. */
static bool fits(const OpParam *p, const Value *v) {
  if (v->kind == V_NIL && param_is_axis(p) && !p->nil_default) return false; /* the kernel refuses it, or goes flat */
  if (p->kind == PARAM_flag) return v->kind == V_NIL || (v->kind == V_NUM && v->dtype == DT_bool);
  if (p->kind == PARAM_dtype) return v->kind == V_NIL || v->kind == V_DTYPE;
  return !param_is_shape(p) || (v->kind == V_NUM && v->dtype != DT_bool);
}

/* What the array was stacked from just now along its first axis, and of how many; 0: it was not. */
static u32 stacked_from(const Graph *g, ValueId x, GraphArg *list) {
  NodeId made = value_node(g, x);
  GraphArg args[OP_MAX_PARAMS];
  i64 axis;
  if (!made || graph_node_at(g, made)->kind != NODE_op || graph_node_at(g, made)->op != OP_stack) return 0;
  node_args(g, made, args);
  if (args[0].kind != ARG_list || !arg_int(&args[1], 0, &axis) || axis != 0) return 0;
  *list = args[0];
  return list->count;
}

/* A shape or axes that are written as an array of integers, `zeros([n, m])`: the list of them. */
Av rec_listed(Recorder *r, Av a) {
  const Graph *g = r->g;
  GraphArg list;
  Av items[TYPE_MAX_RANK];
  u32 n = av_is_value(r, a) ? stacked_from(g, av_value(r, a), &list) : 0;
  if (n == 0 || n > TYPE_MAX_RANK || value_type(g, av_value(r, a))->rank != 1) return a;
  for (u32 i = 0; i < n; i++)
    if (dtype_kind(value_type(g, list.values[i])->dtype) != DK_INT) return a;
  for (u32 i = 0; i < n; i++) {
    Value known;
    if (!(items[i] = value_const(g, list.values[i], &known) ? av_const(r, known) : av_num(r, list.values[i]))) return 0;
  }
  return av_list(r, items, n);
}

static Outcome setting(Recorder *r, u32 op, u32 param, Av a, GraphAttr *out) {
  const OpParam *p = &op_info(op)->params[param];
  const bool shape = param_is_shape(p), size = param_is_size(p);
  const i64 least = p->kind == PARAM_window;
  a = av_force(r, a);
  if (a && p->kind != PARAM_axis_list) a = rec_listed(r, a);
  if (!a) return OUT_FAIL;
  if (av_is_list(r, a)) return list_setting(r, op, param, a, out);
  Value v;
  Dim d;
  if (av_const_value(r, a, &v)) {
    i64 known;
    if (size && av_known_int(r, a, &known) && known < least && p->kind != PARAM_layout)
      return rec_stuck(r, REASON_raises, "%s: `%.*s` is %lld", op_name(op), (int)p->len, p->name, (long long)known);
    if (!fits(p, &v))
      return rec_stuck(r, REASON_raises, "%s: `%.*s` is %s", op_name(op), (int)p->len, p->name, value_type_name(v));
    switch (v.kind) {
      case V_NIL: *out = attr_nil(param); return OUT_GO;
      case V_TEXT: *out = attr_text(r->g, param, v.text->data, v.text->len); return r->g->failed ? OUT_FAIL : OUT_GO;
      case V_DTYPE: *out = attr_dtype(param, v.dtype); return OUT_GO;
      case V_NUM:
        if (shape) break;
        if (v.dtype == DT_bool) *out = attr_bool(param, v.i != 0);
        else if (dtype_kind(v.dtype) == DK_INT) *out = attr_int(param, v.i);
        else *out = attr_float(param, num_as_f64(v));
        return OUT_GO;
      default: break;
    }
  }
  if ((p->kind == PARAM_dtype || p->kind == PARAM_device) && av_is_number(r, a))
    return rec_stuck(r, REASON_raises, "%s: `%.*s` is a number", op_name(op), (int)p->len, p->name);
  const bool inferred = is_open_size(r, p, a);
  if (size && !inferred && av_is_number(r, a) && value_type(r->g, av_value(r, a))->rank == 0) {
    Outcome o = rec_size_from(r, a, least, &d);
    if (o != OUT_GO) return o;
  }
  if (p->kind != PARAM_flag && av_is_number(r, a) && value_type(r->g, av_value(r, a))->rank == 0 && av_dim(r, a, &d)) {
    if (shape) {
      if (inferred) d = DIM_INFER;
      if (p->kind != PARAM_layout && refused_size(r, a))
        return rec_stuck(r, REASON_raises, "%s: a size below 0", op_name(op));
      *out = attr_dims(r->g, param, &d, 1);
      return r->g->failed ? OUT_FAIL : OUT_GO;
    }
    i64 now;
    *out = param_is_axis(p) && rec_literal(r, a, "axis", &now) ? attr_int(param, now) : attr_dim(param, d);
    return OUT_GO;
  }
  return rec_stuck(r, REASON_literal_needed, "%s: `%.*s` must be known while tracing", op_name(op),
                   (int)p->len, p->name);
}

/* Is it a node of a graph? Lists and ranges become arrays elsewhere (rec_array). */
static bool on_numbers(u32 op) { return op_is_pure(op) && graph_has_rule(op) && op != OP_array; }

/* All operands known: the eager kernel says what it gives. */
static bool fold(Recorder *r, u32 op, const Av *params, Av *out, Outcome *o) {
  const OpInfo *info = op_info(op);
  if (info->family != FAM_elementwise) return false;
  Value args[OP_MAX_PARAMS];
  for (u32 i = 0; i < info->nparams; i++) {
    args[i] = value_hole();
    if (!params[i] || av_is_hole(r, params[i])) continue;
    if (!av_const_value(r, params[i], &args[i])) return false;
  }
  for (u32 i = 0; i < info->nparams; i++) value_keep(args[i]);
  Value v;
  bool ok = vm_op(r->vm, op, args, &v) == WEFT_OK;
  for (u32 i = 0; i < info->nparams; i++) value_drop(r->vm, args[i]);
  if (!ok) {
    vm_error_forget(r->vm);
    *o = rec_stuck(r, REASON_raises, "%s raises an error", op_name(op));
    return true;
  }
  *o = rec_made(r, av_const(r, v), out);
  value_drop(r->vm, v);
  return true;
}

static Outcome index_check(Recorder *r, u32 op, ValueId index, Dim n) {
  if (dtype_kind(value_type(r->g, index)->dtype) != DK_INT)
    return rec_stuck(r, REASON_raises, "%s: indices are no integers", op_name(op));
  ValueId operands[2] = {index, graph_size(r->g, n)};
  return rec_check(r, CHECK_index, operands, 2);
}

/* What is written must broadcast to its places, and be of no higher kind than the array. */
static Outcome written_checks(Recorder *r, u32 op, DimCtx *dims, const GraphArg *args) {
  const GraphArg *places = &args[op_param_of(op, PARAM_places)], *written = &args[op_param_of(op, PARAM_written)];
  const u32 at = op_param(op, "axis");
  if (places->kind != ARG_value || written->kind != ARG_value) return rec_stuck(r, REASON_no_rule, "%s", op_name(op));
  const ArrayType x = *value_type(r->g, args[0].value), index = *value_type(r->g, places->value),
      v = *value_type(r->g, written->value);
  i64 axis;
  ArrayType place, joint;
  RuleError err;
  if (!arg_int(&args[at], 0, &axis))
    return rec_stuck(r, REASON_literal_needed, "%s: `axis` must be known", op_name(op));
  if (!shape_take(dims, &x, &index, false, axis, &place, &err))
    return rec_stuck(r, REASON_raises, "%s: %s", op_name(op), err.text);
  /* not a threshold: bytes */
  bool narrows = v.weak && dtype_kind(v.dtype) == DK_INT && dtype_bytes(x.dtype) < 8;
  if (narrows || dtype_kind(v.dtype) > dtype_kind(x.dtype) || x.dtype == DT_bool)
    return rec_stuck(r, REASON_no_rule, "%s of %s into %s", op_name(op), dtype_name(v.dtype), dtype_name(x.dtype));
  const ArrayType *pair[2] = {&place, &v};
  if (!rule_broadcast(dims, 2, pair, &joint, &err))
    return rec_stuck(r, REASON_raises, "%s: %s", op_name(op), err.text);
  bool fits = joint.rank == place.rank;
  for (u32 d = 0; d < joint.rank && fits; d++) fits = size_same(&r->g->sizes, joint.dims[d], place.dims[d]);
  return fits ? OUT_GO : rec_stuck(r, REASON_raises, "%s: the updates are larger than their places", op_name(op));
}

/* A reduction that must choose from something: no reduced axis is empty. */
static Outcome not_empty(Recorder *r, u32 op, const GraphArg *args) {
  const ArrayType t = *value_type(r->g, args[0].value);
  const RecFrame *f = rec_top(r);
  u32 mask;
  if (!arg_axes(&args[op_param(op, "axis")], t.rank, &mask)) return OUT_GO;
  for (u32 d = 0; d < t.rank; d++) {
    i64 hint;
    if (!(mask >> d & 1) || size_prove(&r->g->sizes, REL_lt, 0, t.dims[d]) == TRUTH_always) continue;
    if (size_is_unbacked(&r->g->sizes, t.dims[d])) {
      ValueId n = graph_size(r->g, t.dims[d]);
      Outcome o = rec_check(r, CHECK_empty, &n, 1);
      if (o != OUT_GO) return o;
      continue;
    }
    if (!size_hint(&r->g->sizes, t.dims[d], &hint) || hint <= 0)
      return rec_stuck(r, REASON_raises, "%s of no elements", op_name(op));
    if (!guard_relation(&r->g->guards, &r->g->sizes, REL_lt, 0, t.dims[d], op_name(op), f->code->proto->spans[f->pc]))
      return OUT_FAIL;
  }
  return OUT_GO;
}

/* An integer operand that is not known to be one which the check lets pass; floats have no such error. */
Outcome rec_integer_check(Recorder *r, u32 op, const GraphArg *args) {
  CheckKind check = (CheckKind)op_info(op)->check;
  if (check != CHECK_zero_div && check != CHECK_neg_power) return OUT_GO;
  const ArrayType *x = value_type(r->g, args[0].value), *y = value_type(r->g, args[1].value);
  Value known;
  if (dtype_kind(x->dtype) >= DK_FLOAT || dtype_kind(y->dtype) >= DK_FLOAT) return OUT_GO;
  if (value_const(r->g, args[1].value, &known) && (check == CHECK_zero_div ? known.i != 0 : (i64)known.i >= 0))
    return OUT_GO;
  return rec_check(r, check, &args[1].value, 1);
}

static Outcome astype_check(Recorder *r, const GraphArg *args) {
  u32 to = arg_dtype(&args[1]);
  if (dtype_kind(value_type(r->g, args[0].value)->dtype) != DK_FLOAT || dtype_kind(to) != DK_INT) return OUT_GO;
  ValueId operands[2] = {args[0].value, graph_const_f64(r->g, to, 0)};
  return rec_check(r, CHECK_cast_range, operands, 2);
}

/* Places along an axis of the first operand, or of the result, lie on that axis. */
static Outcome places_check(Recorder *r, u32 op, DimCtx *dims, const GraphArg *args, const ArrayType *result) {
  const OpInfo *info = op_info(op);
  const u32 classes = op_param_of(op, PARAM_classes), places = op_param_of(op, PARAM_places),
            p = classes != UINT32_MAX ? classes : places, at = op_param(op, "axis");
  if (p == UINT32_MAX) return OUT_GO; /* the kernel looks */
  if (op_param_of(op, PARAM_written) != UINT32_MAX) {
    Outcome o = written_checks(r, op, dims, args);
    if (o != OUT_GO) return o;
  }
  const ArrayType *t = classes != UINT32_MAX ? result : value_type(r->g, args[0].value);
  i64 axis = -1;
  if (at != UINT32_MAX && !arg_int(&args[at], atoi(info->params[at].initial), &axis))
    return rec_stuck(r, REASON_literal_needed, "%s: `axis` must be known", op_name(op));
  if (args[p].kind != ARG_value) return rec_stuck(r, REASON_no_rule, "%s", op_name(op));
  Outcome o = index_check(r, op, args[p].value, t->dims[axis < 0 ? axis + t->rank : axis]);
  return o == OUT_GO && classes != UINT32_MAX ? rec_check(r, CHECK_nonneg, &args[p].value, 1) : o;
}

/* Run-time conditions of an operation, as checks that leave by the safe exit. */
static Outcome op_checks(Recorder *r, u32 op, DimCtx *dims, const GraphArg *args, const ArrayType *result) {
  CheckKind check = (CheckKind)op_info(op)->check;
  switch (check) {
    case CHECK_index: return places_check(r, op, dims, args, result);
    case CHECK_zero_div:
    case CHECK_neg_power: return rec_integer_check(r, op, args);
    case CHECK_cast_range: return astype_check(r, args);
    case CHECK_empty: return not_empty(r, op, args);
    default: return OUT_GO;
  }
}

/* ---- arrays that no machine has memory for ------------------------------------------------------------ */

/* Compiled code need not make every array that the program makes, and must not go on where the program ends: an
 * array of so many elements is refused while tracing, and where its sizes may be others later they are guarded, or
 * checked. */
enum { ROOM_BITS = 40 }; /* not a threshold: no machine has so much memory */
static const i64 room = (i64)1 << ROOM_BITS;

/* Are the sizes of t all sizes of one operand, which is there already? */
static bool has_sizes_of(const ArrayType *t, const ArrayType *operand) {
  u32 used = 0;
  for (u32 d = 0; d < t->rank; d++) {
    u32 k = 0;
    while (k < operand->rank && (used >> k & 1 || operand->dims[k] != t->dims[d])) k++;
    if (k == operand->rank && t->dims[d] != 1) return false;
    if (k < operand->rank) used |= 1u << k;
  }
  return true;
}

static Outcome size_has_room(Recorder *r, u32 op, Dim d) {
  SizePool *p = &r->g->sizes;
  i64 now;
  if (d == DIM_NONE || size_prove(p, REL_lt, d, room) == TRUTH_always) return OUT_GO;
  if (size_is_unbacked(p, d)) {
    Dim rest = size_sub(p, room - 1, d);
    if (rest == DIM_NONE || r->safe_exit == UINT32_MAX) return OUT_GO;
    ValueId v = graph_size(r->g, rest);
    return v ? rec_check(r, CHECK_nonneg, &v, 1) : OUT_FAIL;
  }
  if (!size_hint(p, d, &now) || now >= room)
    return rec_stuck(r, REASON_raises, "%s: an array of more than 2 ** %d elements", op_name(op), ROOM_BITS);
  return guard_relation(&r->g->guards, p, REL_lt, d, room, op_name(op), rec_here(r)) ? OUT_GO : OUT_FAIL;
}

static Outcome result_has_room(Recorder *r, u32 op, const ValueId *operands, u32 n, const ArrayType *result) {
  Dim all = 1;
  bool unbacked = false;
  for (u32 i = 0; i < n; i++)
    if (has_sizes_of(result, value_type(r->g, operands[i]))) return OUT_GO;
  for (u32 d = 0; d < result->rank; d++) {
    unbacked |= size_is_unbacked(&r->g->sizes, result->dims[d]);
    Outcome o = size_has_room(r, op, result->dims[d]);
    if (o != OUT_GO) return o;
    all = size_mul(&r->g->sizes, all, result->dims[d]);
  }
  return unbacked || result->rank < 2 ? OUT_GO : size_has_room(r, op, all);
}

Outcome rec_fit_weak(Recorder *r, ValueId *v, u32 dtype) {
  const ArrayType t = *value_type(r->g, *v);
  if (!t.weak || t.dtype != DT_i64 || dtype_kind(dtype) != DK_INT || dtype == DT_i64) return OUT_GO;
  Value known;
  if (value_const(r->g, *v, &known))
    return num_fits(known, dtype) ? OUT_GO : rec_stuck(r, REASON_raises, "%lld does not fit %s", (long long)known.i,
                                                       dtype_name(dtype));
  if (r->safe_exit == UINT32_MAX) return OUT_GO; /* the eager kernel looks */
  ValueId operands[2] = {*v, graph_const_f64(r->g, dtype, 0)};
  Outcome o = rec_check(r, CHECK_cast_range, operands, 2);
  if (o == OUT_GO && !(*v = graph_convert(r->g, *v, dtype))) o = OUT_FAIL;
  return o;
}

/* A weak integer is compared by its value, also where it does not fit the other's dtype: then both are taken as
 * wider numbers. Of an array that is so where it is known; else the number is checked to fit, and where it does not
 * the interpreter compares. */
static Outcome compare_wide(Recorder *r, ValueId *operands) {
  for (u32 i = 0; i < 2; i++) {
    const ArrayType w = *value_type(r->g, operands[i]), x = *value_type(r->g, operands[1 - i]);
    Value known;
    if (!w.weak || w.dtype != DT_i64 || x.weak || dtype_kind(x.dtype) != DK_INT || x.dtype == DT_i64) continue;
    const bool is = value_const(r->g, operands[i], &known);
    if (is ? num_fits(known, x.dtype) : x.rank > 0 || x.dtype == DT_u64) continue;
    if (!(operands[1 - i] = graph_convert(r->g, operands[1 - i], x.dtype == DT_u64 ? DT_f64 : DT_i64))) return OUT_FAIL;
  }
  return OUT_GO;
}

/* Weak integers among the operands take the dtype that the operation computes in, or stores them in; they must fit. */
static Outcome fit_operands(Recorder *r, u32 op, ValueId *operands, u32 n, const GraphArg *args,
                            const ArrayType *result) {
  const OpInfo *info = op_info(op);
  bool any = false;
  if (op_compares(op) && n == 2) {
    Outcome o = compare_wide(r, operands);
    if (o != OUT_GO) return o;
  }
  for (u32 i = 0; i < n && !any; i++) any = value_type(r->g, operands[i])->weak;
  if (!any) return OUT_GO;
  const ArrayType *types[3];
  DTypeResult computed;
  RuleError err;
  bool computes = info->family == FAM_elementwise && !op_converts(op) && n <= COUNT_OF(types);
  for (u32 i = 0; i < n && computes; i++) types[i] = value_type(r->g, operands[i]);
  if (computes) computes = rule_dtype(op, n, types, &computed, &err);
  for (u32 p = 0, i = 0; p < info->nparams; p++) {
    const u8 kind = info->params[p].kind;
    bool stores = kind == PARAM_stored || kind == PARAM_joined;
    for (u32 behind = i + arg_operands(&args[p]); i < behind; i++) {
      if (!stores && (!computes || kind == PARAM_condition)) continue;
      Outcome o = rec_fit_weak(r, &operands[i], stores ? result->dtype : computed.compute);
      if (o != OUT_GO) return o;
    }
  }
  return OUT_GO;
}

/* The numbers that fill an array of integers are of its dtype, or bool: the interpreter looks whether others fit. */
static Outcome fills_fit(Recorder *r, u32 op, const ValueId *operands, const GraphArg *args, const ArrayType *result) {
  const OpInfo *info = op_info(op);
  if (info->lower != LOWER_make || dtype_kind(result->dtype) != DK_INT) return OUT_GO;
  for (u32 p = 0, i = 0; p < info->nparams; p++)
    for (u32 behind = i + arg_operands(&args[p]); i < behind; i++) {
      u32 dtype = value_type(r->g, operands[i])->dtype;
      if (info->params[p].kind != PARAM_like && dtype != result->dtype && dtype != DT_bool)
        return rec_stuck(r, REASON_no_rule, "%s of %s as %s", op_name(op), dtype_name(dtype),
                         dtype_name(result->dtype));
    }
  return OUT_GO;
}

/* take(x, indices, axis) is x[:, …, indices], and indices into the flat array without an axis. */
static Outcome take(Recorder *r, const Av *params, Av *out) {
  Av x = av_force(r, params[0]), index = av_force(r, params[1]), axis = params[2] ? av_force(r, params[2]) : 0,
      regs[3 * TYPE_MAX_RANK];
  u8 items[TYPE_MAX_RANK];
  u32 n = 0, nregs = 0;
  i64 at = 0;
  Value v;
  if (!x || !index) return OUT_FAIL;
  if (!av_is_number(r, x) || !av_is_number(r, index))
    return rec_stuck(r, REASON_no_rule, "take of %s at %s", av_kind_text(r, x), av_kind_text(r, index));
  if (dtype_kind(value_type(r->g, av_value(r, index))->dtype) != DK_INT)
    return rec_stuck(r, REASON_raises, "take: indices are no integers");
  if (!axis || av_is_hole(r, axis) || (av_const_value(r, axis, &v) && v.kind == V_NIL)) {
    Outcome o = rec_op(r, OP_ravel, &x, &x);
    if (o != OUT_GO) return o;
  } else {
    u32 rank = value_type(r->g, av_value(r, x))->rank;
    if (!rec_literal(r, axis, "axis", &at)) return rec_stuck(r, REASON_literal_needed, "take: `axis` must be known");
    if (at < -(i64)rank || at >= (i64)rank) return rec_stuck(r, REASON_raises, "take: the axis is out of range");
    if (at < 0) at += rank;
  }
  Av nil = av_const(r, value_nil());
  if (!nil) return OUT_FAIL;
  for (; n < (u32)at; n++) {
    items[n] = IX_SLICE;
    for (u32 k = 0; k < 3; k++) regs[nregs++] = nil;
  }
  items[n++] = IX_VALUE;
  regs[nregs] = index;
  return rec_index(r, x, items, n, regs, out);
}

/* The rows of an array that was just stacked, as `concat([a, b])` does, are what it was stacked from: it need not be
 * made. */
static bool stacked_rows(Recorder *r, ValueId x, Av *items, u32 count) {
  const Graph *g = r->g;
  GraphArg list;
  if (stacked_from(g, x, &list) != count) return false;
  for (u32 i = 0; i < count; i++)
    if (value_type(g, list.values[i])->dtype != value_type(g, x)->dtype || value_type(g, list.values[i])->weak)
      return false;
  for (u32 i = 0; i < count; i++)
    if (!(items[i] = av_num(r, list.values[i]))) return false;
  return true;
}

/* concat and stack join the rows of an array as they join the items of a list. The number of rows must be known. */
static Outcome rows(Recorder *r, u32 op, Av x, Av *out) {
  const ArrayType *t = value_type(r->g, av_value(r, x));
  if (t->rank == 0) return rec_stuck(r, REASON_raises, "%s of a number", op_name(op));
  i64 n = t->dims[0];
  if (n < 0)
    return rec_stuck(r, REASON_literal_needed, "%s of an array: its number of rows must be known", op_name(op));
  if (n > r->vm->tunables.array_parts) return rec_over(r, array_parts, REASON_graph_size, op_name(op));
  Av *items = rec_avs(r, (u32)n + 1);
  if (!items) return OUT_FAIL;
  bool there = n && stacked_rows(r, av_value(r, x), items, (u32)n);
  for (i64 i = 0; i < n && !there; i++) {
    Av at = av_const(r, value_i64(i));
    u8 kind = IX_VALUE;
    if (!at) return OUT_FAIL;
    Outcome o = rec_index(r, x, &kind, 1, &at, &items[i]);
    if (o != OUT_GO) return o;
  }
  return rec_made(r, av_list(r, items, (u32)n), out);
}

static bool is_given(Recorder *r, Av a) {
  Value v;
  a = a ? av_force(r, a) : 0;
  return a && !av_is_hole(r, a) && !(av_const_value(r, a, &v) && v.kind == V_NIL);
}

/* compress(x, mask, axis) is take(x, nonzero(mask), axis). */
static Outcome compress(Recorder *r, const Av *params, Av *out) {
  Av x = av_force(r, params[0]), mask = av_force(r, params[1]), axis = params[2] ? av_force(r, params[2]) : 0;
  if (!x || !mask) return OUT_FAIL;
  ValueId m = av_value(r, mask), v = av_value(r, x);
  i64 at = 0;
  u32 a;
  RuleError err = {0};
  if (!v || !m || value_type(r->g, m)->dtype != DT_bool || value_type(r->g, m)->rank != 1)
    return rec_stuck(r, REASON_raises, "compress by %s", av_kind_text(r, mask));
  bool flat = axis && !av_is_hole(r, axis) && !is_given(r, axis);
  if (flat) {
    Av one[OP_MAX_PARAMS] = {x};
    Outcome o = rec_op(r, OP_ravel, one, &x);
    if (o != OUT_GO) return o;
    v = av_value(r, x);
  } else if (is_given(r, axis) && !rec_literal(r, axis, "axis", &at)) {
    return rec_stuck(r, REASON_literal_needed, "compress: `axis` must be known");
  }
  if (!rule_axis(at, value_type(r->g, v)->rank, &a, &err)) return rec_stuck(r, REASON_raises, "compress: %s", err.text);
  GuardDims dims;
  rec_dims_init(r, &dims, "compress");
  if (!dim_equal(&dims.base, value_type(r->g, m)->dims[0], value_type(r->g, v)->dims[a]))
    return rec_dims_no(r, &dims, "compress", &err);
  ValueId places;
  Outcome o = rec_mask_places(r, m, &places);
  if (o != OUT_GO) return o;
  Av take_params[OP_MAX_PARAMS] = {x, av_num(r, places), av_const(r, value_weak_i64(a))};
  return take_params[1] && take_params[2] ? take(r, take_params, out) : OUT_FAIL;
}

/* x, or what came of it, in the dtype that a parameter names; `wide`: in the one that it computes in. */
static Outcome in_dtype(Recorder *r, Av x, Av dtype, bool wide, Av *out) {
  Av params[OP_MAX_PARAMS] = {x, dtype};
  Value v;
  if (!av_const_value(r, dtype, &v) || v.kind != V_DTYPE)
    return rec_stuck(r, REASON_literal_needed, "a dtype must be known");
  if (wide && dtype_can(v.dtype, NEED_reduce) == CAN_wide) params[1] = av_const(r, value_dtype(dtype_compute(v.dtype)));
  return params[1] ? rec_op(r, OP_astype, params, out) : OUT_FAIL;
}

static Outcome two(Recorder *r, u32 op, Av a, Av b, Av *out) {
  Av params[OP_MAX_PARAMS] = {a, b};
  return a && b ? rec_op(r, op, params, out) : OUT_FAIL;
}

/* round(x, decimals), as eager_round has it. */
static Outcome rounded(Recorder *r, Av x, Av given, Av *out) {
  i64 decimals;
  Value v;
  x = av_force(r, x);
  if (!x) return OUT_FAIL;
  if (!av_is_number(r, x) || (av_const_value(r, given, &v) && (v.kind != V_NUM || dtype_kind(v.dtype) != DK_INT)))
    return rec_stuck(r, REASON_raises, "round to %s decimals", av_kind_text(r, given));
  if (!rec_literal(r, given, "decimals", &decimals))
    return rec_stuck(r, REASON_literal_needed, "round: `decimals` must be known");
  if (!rule_decimals(decimals)) return rec_stuck(r, REASON_raises, "round to %lld decimals", (long long)decimals);
  const u32 dtype = value_type(r->g, av_value(r, x))->dtype;
  const bool whole = dtype_kind(dtype) <= DK_INT, wide = !whole && dtype_can(dtype, NEED_compute) == CAN_wide;
  if (decimals == 0 || (whole && decimals > 0)) return two(r, OP_round, x, av_const(r, value_hole()), out);
  Av scale = av_const(r, value_weak_f64(rule_power_of_ten(decimals))), y = 0, ends = 0;
  Outcome o = OUT_GO;
  if (whole || wide) o = in_dtype(r, x, av_const(r, value_dtype(whole ? DT_f64 : dtype_compute(dtype))), false, &x);
  if (o == OUT_GO) o = two(r, decimals > 0 ? OP_multiply : OP_divide, x, scale, &ends);
  if (o == OUT_GO) o = two(r, OP_round, ends, av_const(r, value_hole()), &y);
  if (o == OUT_GO) o = two(r, decimals > 0 ? OP_divide : OP_multiply, y, scale, out);
  if (o == OUT_GO && decimals > 0) {
    Av choice[OP_MAX_PARAMS] = {0, *out, x}, test[OP_MAX_PARAMS] = {ends};
    o = rec_op(r, OP_isfinite, test, &choice[0]);
    if (o == OUT_GO) o = rec_op(r, OP_where, choice, out);
  }
  if (o != OUT_GO || !(whole || wide)) return o;
  return in_dtype(r, *out, av_const(r, value_dtype(dtype == DT_bool ? DT_i64 : dtype)), false, out);
}

/* A number in front of x or behind it: an array of x's shape, of one element along the axis. */
static Outcome end_of(Recorder *r, const ArrayType *x, Av end, u32 axis, Av *out) {
  Av dims[TYPE_MAX_RANK];
  ValueId v = av_value(r, end);
  if (!v || !av_is_number(r, end)) return rec_stuck(r, REASON_raises, "diff with %s", av_kind_text(r, end));
  const ArrayType t = *value_type(r->g, v);
  if (t.rank) return rec_made(r, end, out);
  if (t.weak && dtype_kind(t.dtype) <= dtype_kind(x->dtype)) {
    Outcome o = in_dtype(r, end, av_const(r, value_dtype(x->dtype)), false, &end);
    if (o != OUT_GO) return o;
  }
  for (u32 i = 0; i < x->rank; i++)
    if (!(dims[i] = i == axis ? av_const(r, value_i64(1)) : av_num(r, graph_size(r->g, x->dims[i])))) return OUT_FAIL;
  return two(r, OP_broadcast_to, end, av_list(r, dims, x->rank), out);
}

/* diff of x with an array in front or behind: of all of them together. */
static Outcome joined(Recorder *r, const Av *params, Av *out) {
  static const u8 order[] = {3, 0, 4};
  Av parts[COUNT_OF(order)], now[OP_MAX_PARAMS] = {0, params[1], params[2]}, x = av_force(r, params[0]);
  i64 given = -1;
  u32 axis, n = 0;
  RuleError err;
  if (!x) return OUT_FAIL;
  if (!av_is_number(r, x)) return rec_stuck(r, REASON_raises, "diff of %s", av_kind_text(r, x));
  if (is_given(r, params[2]) && !rec_literal(r, params[2], "axis", &given))
    return rec_stuck(r, REASON_literal_needed, "diff: `axis` must be known");
  const ArrayType type = *value_type(r->g, av_value(r, x));
  if (!rule_axis(given, type.rank, &axis, &err)) return rec_stuck(r, REASON_raises, "diff: %s", err.text);
  for (u32 i = 0; i < COUNT_OF(order); i++) {
    Av part = order[i] ? params[order[i]] : x;
    if (order[i] && !is_given(r, part)) continue;
    Outcome o = order[i] ? end_of(r, &type, av_force(r, part), axis, &part) : OUT_GO;
    if (o != OUT_GO) return o;
    parts[n++] = part;
  }
  Outcome o = two(r, OP_concat, av_list(r, parts, n), av_const(r, value_weak_i64(axis)), &now[0]);
  return o == OUT_GO ? rec_op(r, OP_diff, now, out) : o;
}

static bool is_array(Recorder *r, Av a) {
  a = a ? av_force(r, a) : 0;
  return a && av_is_number(r, a) && value_type(r->g, av_value(r, a))->rank > 0;
}

/* random.bernoulli with a probability for each element, as bernoulli_each of random.c has it. */
static Outcome drawn_each(Recorder *r, const Av *params, Av *out) {
  Av draw[OP_MAX_PARAMS] = {params[0], params[2]}, p = av_force(r, params[1]), dims[TYPE_MAX_RANK];
  if (!p) return OUT_FAIL;
  const ArrayType t = *value_type(r->g, av_value(r, p));
  if (!is_given(r, params[2])) {
    for (u32 i = 0; i < t.rank; i++)
      if (!(dims[i] = av_num(r, graph_size(r->g, t.dims[i])))) return OUT_FAIL;
    draw[1] = av_list(r, dims, t.rank);
  }
  Av u;
  Outcome o = draw[1] ? rec_op(r, OP_random_uniform, draw, &u) : OUT_FAIL;
  if (o == OUT_GO) o = two(r, OP_less, u, p, out);
  if (o != OUT_GO) return o;
  const ArrayType *drawn = value_type(r->g, av_value(r, u)), *made = value_type(r->g, av_value(r, *out));
  bool fits = made->rank == drawn->rank;
  for (u32 i = 0; i < made->rank && fits; i++) fits = made->dims[i] == drawn->dims[i];
  return fits ? OUT_GO : rec_stuck(r, REASON_raises, "random.bernoulli: shapes of p and of what is drawn");
}

static Outcome compose_round(Recorder *r, const Av *params, Av *out, bool *done) {
  if (!(*done = is_given(r, params[1]))) return OUT_GO;
  Av decimals = av_force(r, params[1]);
  return decimals ? rounded(r, params[0], decimals, out) : OUT_FAIL;
}

static Outcome compose_diff(Recorder *r, const Av *params, Av *out, bool *done) {
  return (*done = is_given(r, params[3]) || is_given(r, params[4])) ? joined(r, params, out) : OUT_GO;
}

static Outcome compose_bernoulli(Recorder *r, const Av *params, Av *out, bool *done) {
  return (*done = is_array(r, params[1])) ? drawn_each(r, params, out) : OUT_GO;
}

/* Numbers between bounds that are arrays are drawn by the interpreter. */
static Outcome compose_drawn(Recorder *r, u32 op, const Av *params, u32 lo, bool *done) {
  *done = is_array(r, params[lo]) || is_array(r, params[lo + 1]);
  return *done ? rec_stuck(r, REASON_no_lowering, "%s: bounds that are arrays", op_name(op)) : OUT_GO;
}
static Outcome compose_uniform(Recorder *r, const Av *params, Av *out, bool *done) {
  (void)out;
  return compose_drawn(r, OP_random_uniform, params, 2, done);
}
static Outcome compose_randint(Recorder *r, const Av *params, Av *out, bool *done) {
  (void)out;
  return compose_drawn(r, OP_random_randint, params, 1, done);
}

static Outcome compose_take(Recorder *r, const Av *params, Av *out, bool *done) {
  *done = true;
  return take(r, params, out);
}

static Outcome compose_compress(Recorder *r, const Av *params, Av *out, bool *done) {
  return (*done = !is_given(r, params[3])) ? compress(r, params, out) : OUT_GO;
}

/* Operations that are others, or are with some arguments, for whatever follows the recorder: *done. */
typedef Outcome (*ComposeFn)(Recorder *r, const Av *params, Av *out, bool *done);
static const ComposeFn composed[OP_COUNT] = {
    [OP_round] = compose_round, [OP_diff] = compose_diff,         [OP_random_bernoulli] = compose_bernoulli,
    [OP_take] = compose_take,   [OP_compress] = compose_compress,
    [OP_random_uniform] = compose_uniform, [OP_random_randint] = compose_randint,
};

/* Parameters that other operations say, so that graphs know nothing of them: the order in which the first operand is
 * read, the dtype that sums and their kind are made in. *done. */
static Outcome by_others(Recorder *r, u32 op, const Av *params, Av *out, bool *done) {
  const OpInfo *info = op_info(op);
  const bool sums = info->family == FAM_reduce || info->family == FAM_scan;
  const u32 order = op_param_of(op, PARAM_order), at = sums ? op_param_of(op, PARAM_dtype) : order;
  if (composed[op]) {
    Outcome o = composed[op](r, params, out, done);
    if (*done) return o;
  }
  if (!(*done = at != UINT32_MAX && is_given(r, params[at]))) return OUT_GO;
  Av now[OP_MAX_PARAMS], given = av_force(r, params[at]);
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) now[i] = i < info->nparams && i != at ? params[i] : 0;
  if (!given) return OUT_FAIL;
  if (at == order) {
    Av part[OP_MAX_PARAMS] = {params[0], given};
    Outcome o = take(r, part, &now[0]);
    return o == OUT_GO ? rec_op(r, op, now, out) : o;
  }
  Outcome o = in_dtype(r, params[0], given, true, &now[0]);
  if (o == OUT_GO) o = rec_op(r, op, now, out);
  return o == OUT_GO ? in_dtype(r, *out, given, false, out) : o;
}

/* The dtype of the result is that of its numbers: a setting has none, and so stands for i64 or f64. */
static Outcome setting_has_dtype(Recorder *r, u32 op, Av a) {
  Value known;
  if (av_const_value(r, a, &known))
    return known.kind != V_NUM || value_is_weak(known) || known.dtype == DT_i64 || known.dtype == DT_f64
               ? OUT_GO
               : rec_stuck(r, REASON_no_rule, "%s of a constant %s", op_name(op), dtype_name(known.dtype));
  if (!av_is_number(r, a)) return OUT_GO;
  const ArrayType *t = value_type(r->g, av_value(r, a));
  return t->weak || t->dtype == DT_i64 || dtype_kind(t->dtype) != DK_INT
             ? OUT_GO
             : rec_stuck(r, REASON_no_rule, "%s of %s", op_name(op), dtype_name(t->dtype));
}

Outcome rec_op(Recorder *r, u32 op, const Av *params, Av *out) {
  const OpInfo *info = op_info(op);
  Outcome folded;
  bool done;
  for (u32 i = 0; i < info->nparams && !r->abstract; i++) {
    const ArrayType *t = params[i] && av_is_number(r, params[i]) ? value_type(r->g, av_value(r, params[i])) : NULL;
    if (t && !op_takes(op, t->dtype))
      return rec_stuck(r, REASON_no_rule, "%s of %s", op_name(op), dtype_name(t->dtype));
  }
  folded = by_others(r, op, params, out, &done);
  if (done) return folded;
  if (graph_has_parts(op)) return rec_parts(r, op, params, out);
  if (!on_numbers(op)) return rec_stuck(r, REASON_no_rule, "%s", op_name(op));
  Av forced[OP_MAX_PARAMS];
  for (u32 i = 0; i < info->nparams; i++) {
    forced[i] = av_force(r, params[i]);
    if (params[i] && !forced[i]) return OUT_FAIL;
  }
  params = forced;
  Value axis;
  const bool joins = info->lower == LOWER_join;
  if (op == OP_concat && forced[1] && !av_is_hole(r, forced[1]) && av_const_value(r, forced[1], &axis) &&
      axis.kind == V_NIL)
    /* in graphs an axis that is not given is axis 0 */
    return rec_stuck(r, REASON_no_rule, "concat of all elements, in one row");
  if (joins && rec_is_listed(r, forced[0])) return rec_rows_joined(r, op, forced, out);
  if (op == OP_sort && rec_is_listed(r, forced[0]) && !is_given(r, forced[3]))
    return rec_rows_sorted(r, forced, info->nparams, out);
  if (joins && forced[0] && av_is_number(r, forced[0])) {
    Outcome o = rows(r, op, forced[0], &forced[0]);
    if (o != OUT_GO) return o;
  }
  if (fold(r, op, params, out, &folded)) return folded;
  if (!r->vm->ops[op].eager) return rec_stuck(r, REASON_raises, "%s is not supported", op_name(op));
  GraphAttr attrs[OP_MAX_PARAMS + 1];
  u32 n = 0, na = 0, most = 0;
  const u32 dtype_at = op_param_of(op, PARAM_dtype);
  const bool by_settings = info->family == FAM_make && dtype_at != UINT32_MAX && info->params[dtype_at].nil_default &&
                           !is_given(r, params[dtype_at]);
  for (u32 i = 0; i < info->nparams; i++)
    most += params[i] && av_is_list(r, params[i]) ? av_at(r, params[i])->count : 1;
  ValueId few[32], *operands = most <= COUNT_OF(few) ? few : arena_alloc(&r->g->arena, sizeof *operands * most);
  if (!operands) return OUT_FAIL;
  for (u32 i = 0; i < info->nparams; i++) {
    Av a = params[i];
    const OpParam *p = &info->params[i];
    if (!a || av_is_hole(r, a)) {
      if (!p->has_default && !p->rest)
        return rec_stuck(r, REASON_raises, "%s: `%.*s` is missing", op_name(op), (int)p->len, p->name);
      attrs[na++] = attr_hole(i);
      continue;
    }
    const bool array = av_is_number(r, a) && value_type(r->g, av_value(r, a))->rank > 0;
    if (by_settings && p->kind == PARAM_setting) {
      Outcome o = setting_has_dtype(r, op, a);
      if (o != OUT_GO) return o;
    }
    if (array ? param_keeps_arrays(p) : param_is_setting(p)) {
      Outcome o = setting(r, op, i, a, &attrs[na++]);
      if (o != OUT_GO) return o;
      continue;
    }
    if (av_is_list(r, a)) {
      u32 count = av_at(r, a)->count;
      if (!param_joins(p)) return rec_stuck(r, REASON_raises, "%s of a list", op_name(op));
      attrs[na++] = attr_list(i, count);
      for (u32 k = 0; k < count; k++) {
        ValueId v = av_value(r, av_item(r, a, k));
        if (!v)
          return rec_stuck(r, REASON_no_rule, "%s of a list of %s", op_name(op), av_kind_text(r, av_item(r, a, k)));
        operands[n++] = v;
      }
      continue;
    }
    Value v;
    if (av_const_value(r, a, &v) && v.kind == V_NIL) {
      if (!p->nil_default) return rec_stuck(r, REASON_raises, "%s: `%.*s` is nil", op_name(op), (int)p->len, p->name);
      attrs[na++] = attr_nil(i);
      continue;
    }
    ValueId value = av_value(r, a);
    if (!value) return rec_stuck(r, REASON_no_rule, "%s of %s", op_name(op), av_kind_text(r, a));
    operands[n++] = value;
  }
  GuardDims dims;
  rec_dims_init(r, &dims, op_name(op));
  dims.exact = op == OP_squeeze;
  ArrayType results[16];
  u32 nresults = COUNT_OF(results);
  RuleError err = {0};
  if (!graph_infer(r->g, &dims.base, op, operands, n, attrs, na, results, &nresults, &err)) {
    return rec_dims_no(r, &dims, op_name(op), &err);
  }
  if (dims.unknown) return rec_dims_no(r, &dims, op_name(op), &err);
  for (u32 i = 0; i < n + nresults && !r->abstract; i++) {
    u32 dtype = i < n ? value_type(r->g, operands[i])->dtype : results[i - n].dtype;
    if (!op_takes(op, dtype) && !(i >= n && op_info(op)->dtype == DTYPE_RULE_complex_of))
      return rec_stuck(r, REASON_no_rule, "%s of %s", op_name(op), dtype_name(dtype));
  }
  GraphArg args[OP_MAX_PARAMS];
  bind_args(op, operands, n, attrs, na, args);
  Dim fresh;
  ValueId weak = 0;
  Outcome o = fills_fit(r, op, operands, args, &results[0]);
  if (o == OUT_GO)
    o = op_converts(op) ? rec_strong_or_fits(r, operands[0], results[0].dtype)
                        : rec_weak_operands(r, op, operands, n, &weak);
  if (o == OUT_GO) o = rec_freshen(r, results, nresults, &fresh);
  if (o == OUT_GO) o = fit_operands(r, op, operands, n, args, &results[0]);
  if (o != OUT_GO) return o;
  bind_args(op, operands, n, attrs, na, args);
  o = op_checks(r, op, &dims.base, args, results);
  /* sizes that only the result tells need its being made */
  for (u32 i = 0; i < nresults && o == OUT_GO && !r->abstract && !fresh && info->family != FAM_view; i++)
    o = result_has_room(r, op, operands, n, &results[i]);
  if (o != OUT_GO) return o;
  TypeId types[16];
  for (u32 i = 0; i < nresults; i++) types[i] = graph_type(r->g, &results[i]);
  NodeId node = graph_node(r->g, NODE_op, op, operands, n, attrs, na, types, nresults);
  if (!node || (weak && !rec_weak_note(r, node_result(r->g, node, 0), weak))) return OUT_FAIL;
  if (fresh && (o = rec_settle(r, node, fresh)) != OUT_GO) return o;
  bool list = info->gives_list || nresults != 1;
  if (!list) return rec_made(r, av_num(r, node_result(r->g, node, 0)), out);
  Av items[16];
  for (u32 i = 0; i < nresults; i++) items[i] = av_num(r, node_result(r->g, node, i));
  return rec_made(r, av_list(r, items, nresults), out);
}
