/* repr_digits.c — the text of an integer, `str(n)` or `f"{n}"`, as what it is read for: how many characters it has,
 * and which one stands at a place, both computed from the number. Its items are the number and a format spec, a text
 * or nil, which may be any spec; where its digits are asked for more than once (a loop that walks over it) it has
 * further items, which say what is computed of the number alone. No text is made before the region is left.
 *
 * It serves any loop that looks at the digits of a number: their sum (`for c in str(n) { s += parse_int(c) }`), their
 * count (`len(str(n))`), palindromes and parts (`let t = str(n); t == t[::-1]`, `t[i]`, `t[1:]`). */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_digits.h"
#include "tracer/record/repr_slice.h"

enum { TEXT_NUMBER, TEXT_SPEC, DIGITS_SIZE, DIGITS_LEAST, DIGITS_MINUS, DIGITS_COUNT, DIGITS_POWERS, DIGITS_PARTS,
       POWERS = 20 };

bool rec_is_digits(Recorder *r, Av a) {
  const AbsVal *v = a ? av_at(r, a) : NULL;
  Value spec;
  if (!v || !kind_is_formatted(v->kind) || !av_is_number(r, av_item(r, a, TEXT_NUMBER)) ||
      !av_const_value(r, av_item(r, a, TEXT_SPEC), &spec))
    return false;
  if (spec.kind != V_NIL && (spec.kind != V_TEXT || spec.text->len)) return false;
  ValueId n = av_value(r, av_item(r, a, TEXT_NUMBER));
  const ArrayType *t = n ? value_type(r->g, n) : NULL;
  return t && !t->rank && !t->device && dtype_kind(t->dtype) == DK_INT && t->dtype != DT_u64;
}

static ValueId int_of(Recorder *r, i64 i) { return graph_const(r->g, value_i64(i)); }
static ValueId int_op2(Recorder *r, u32 op, ValueId a, ValueId b) { return a && b ? graph_op2(r->g, op, a, b) : 0; }
static ValueId pick(Recorder *r, ValueId is, ValueId a, ValueId b) {
  return is && a && b ? graph_op(r->g, OP_where, (ValueId[]){is, a, b}, 3, NULL, 0, NULL) : 0;
}

ValueId rec_digits_number(Recorder *r, Av text) {
  return graph_convert(r->g, av_value(r, av_item(r, text, TEXT_NUMBER)), DT_i64);
}

static ValueId power(Recorder *r, ValueId powers, ValueId at) {
  const IndexItem item = {.kind = INDEX_int, .part = {PART_operand}, .at = {1}};
  const ArrayType t = {.dtype = DT_i64};
  return powers && at ? graph_index(r->g, powers, &at, 1, &item, 1, graph_type(r->g, &t)) : 0;
}

static bool are_powers(const Recorder *r, ValueId v, BlockId root) {
  const Graph *g = r->g;
  Value most;
  NodeId n = v && v < g->values.count && value_block(g, v) == root ? value_node(g, v) : 0;
  if (!n || graph_node_at(g, n)->op != OP_stack || graph_node_at(g, n)->operand_count != POWERS) return false;
  return value_const(g, node_operand(g, n, POWERS - 2), &most) && most.i == 1000000000000000000;
}

/* The powers of ten, once for the region, in front of what is being recorded; the last one is none, for the place
 * of a sign before 19 digits. */
static ValueId powers_of_ten(Recorder *r) {
  Graph *g = r->g;
  const BlockId at = g->at;
  const NodeId before = g->before;
  BlockId root = at;
  Av all[POWERS], joined = 0;
  i64 p = 1;
  while (g->blocks.data[root].parent) root = g->blocks.data[root].parent;
  if (are_powers(r, r->powers, root)) return r->powers;
  for (u32 i = 0; i < POWERS; i++, p = i < POWERS - 1 ? p * 10 : 1)
    if (!(all[i] = av_const(r, value_i64(p)))) return 0;
  Av params[OP_MAX_PARAMS] = {av_list(r, all, POWERS), av_const(r, value_weak_i64(0))};
  if (root != at) g->at = root, g->before = 0;
  bool ok = params[0] && params[1] && rec_op(r, OP_stack, params, &joined) == OUT_GO;
  g->at = at;
  g->before = before;
  return r->powers = ok ? av_value(r, joined) : 0;
}

/* The size of the number (of the least integer, whose size is none, the one below: `least` is 1, and its last digit
 * one more), whether it is below 0, how many characters it has. */
Outcome rec_digits_of(Recorder *r, Av text, Av *out) {
  static const u8 steps[] = {9, 5, 2, 1, 1}; /* where among 18 powers the size lies */
  Av parts[DIGITS_PARTS] = {av_item(r, text, TEXT_NUMBER), av_item(r, text, TEXT_SPEC)};
  if (av_at(r, text)->count == DIGITS_PARTS) return rec_made(r, text, out);
  Graph *g = r->g;
  ValueId n = rec_digits_number(r, text), zero = int_of(r, 0), powers = powers_of_ten(r), at = zero;
  ValueId minus = int_op2(r, OP_less, n, zero), size = n ? graph_op1(g, OP_abs, n) : 0,
      least = graph_convert(g, int_op2(r, OP_less, size, zero), DT_i64);
  size = int_op2(r, OP_subtract, size, least);
  for (u32 i = 0; i < COUNT_OF(steps); i++) {
    ValueId next = int_op2(r, OP_add, at, int_of(r, steps[i]));
    at = pick(r, int_op2(r, OP_greater_equal, size, power(r, powers, next)), next, at);
  }
  ValueId count = int_op2(r, OP_add, int_op2(r, OP_add, at, graph_convert(g, minus, DT_i64)), int_of(r, 1));
  const ValueId made[] = {size, least, minus, graph_weaken(g, count), powers};
  for (u32 i = DIGITS_SIZE; i < DIGITS_PARTS; i++)
    if (!made[i - DIGITS_SIZE] || !(parts[i] = av_num(r, made[i - DIGITS_SIZE]))) return OUT_FAIL;
  return rec_made(r, av_items(r, AV_formatted, parts, DIGITS_PARTS), out);
}

Outcome rec_digits_count(Recorder *r, Av text, Av *out) {
  Av digits;
  Outcome o = rec_digits_of(r, text, &digits);
  return o == OUT_GO ? rec_made(r, av_item(r, digits, DIGITS_COUNT), out) : o;
}

/* The code point at a place; of one behind the end any. */
Outcome rec_digits_at(Recorder *r, Av text, Av place, Av *out) {
  Av digits;
  Outcome o = rec_digits_of(r, text, &digits);
  if (o != OUT_GO) return o;
  ValueId v[DIGITS_PARTS], zero = int_of(r, 0), at = graph_convert(r->g, av_value(r, place), DT_i64);
  for (u32 i = DIGITS_SIZE; i < DIGITS_PARTS; i++) v[i] = av_value(r, av_item(r, digits, i));
  ValueId last = int_op2(r, OP_subtract, graph_convert(r->g, v[DIGITS_COUNT], DT_i64), int_of(r, 1));
  ValueId k = int_op2(r, OP_maximum, int_op2(r, OP_subtract, last, at), zero);
  ValueId digit = int_op2(r, OP_remainder, int_op2(r, OP_floor_divide, v[DIGITS_SIZE], power(r, v[DIGITS_POWERS], k)),
                      int_of(r, 10));
  digit = int_op2(r, OP_add, digit, pick(r, int_op2(r, OP_equal, k, zero), v[DIGITS_LEAST], zero));
  ValueId sign = int_op2(r, OP_logical_and, v[DIGITS_MINUS], int_op2(r, OP_equal, at, zero));
  ValueId point = pick(r, sign, int_of(r, '-'), int_op2(r, OP_add, digit, int_of(r, '0')));
  return point ? rec_made(r, av_num(r, point), out) : OUT_FAIL;
}

/* Which integer has this text? false: none. */
static bool integer_of(const Text *t, i64 *out) {
  u32 i = t->len && t->data[0] == '-';
  u64 size = 0, most = (u64)INT64_MAX + i;
  if (i == t->len || t->len - i > POWERS - 1 || (t->data[i] == '0' && t->len > 1)) return false;
  for (const u32 end = t->len; i < end; i++) {
    if (t->data[i] < '0' || t->data[i] > '9') return false;
    size = size * 10 + (u64)(t->data[i] - '0');
  }
  *out = (i64)(t->data[0] == '-' ? 0 - size : size);
  return size <= most;
}

/* Is it the text of the other one, an integer too, or one that is known? OUT_STUCK without a reason: the other one is
 * neither. */
Outcome rec_digits_same(Recorder *r, Av text, Av other, Av *out) {
  Value v;
  i64 number;
  ValueId y = 0;
  if (av_const_value(r, other, &v) && v.kind == V_TEXT) {
    if (!integer_of(v.text, &number)) return rec_made(r, av_const(r, value_bool(false)), out);
    y = int_of(r, number);
  } else if (!rec_is_digits(r, other)) {
    return OUT_STUCK;
  } else {
    y = rec_digits_number(r, other);
  }
  ValueId same = int_op2(r, OP_equal, rec_digits_number(r, text), y);
  return same ? rec_made(r, av_num(r, same), out) : OUT_FAIL;
}

/* ---- its table --------------------------------------------------------------------------------------------------- */

Av av_formatted(Recorder *r, Av value, Av spec) {
  Av parts[2] = {value, spec};
  return value && spec ? av_items(r, AV_formatted, parts, 2) : 0;
}

static RecipeId make_formatted(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count) {
  (void)v;
  return recipe_text(t, TEXT_formatted, items, count);
}

static RecipeId formatted_recipe(Recorder *r, Av a) { return repr_items_recipe(r, a, DIGITS_SIZE, make_formatted); }
static RecipeId formatted_hand(Handing *h, Av a, u32 depth) {
  return repr_items_hand(h, a, DIGITS_SIZE, depth, make_formatted);
}

/* Of the text of an integer; that of another value is not read. */
static Outcome digits_item(Recorder *r, Av a, Av at, Av *out) {
  return rec_is_digits(r, a) ? rec_read_get(r, a, at, out)
                             : rec_stuck(r, REASON_no_rule, "the text of a number that is no integer is indexed");
}

static Outcome digits_walk(Recorder *r, Av a, Av *out) {
  return rec_is_digits(r, a) ? rec_digits_of(r, a, out)
                             : rec_stuck(r, REASON_loop_sequence, "a loop over " MADE_HERE);
}

static Outcome digits_slice(Recorder *r, Av a, const Av *parts, Av *out) {
  return rec_is_digits(r, a) ? rec_text_slice(r, a, parts, out)
                             : rec_stuck(r, REASON_no_rule, "a slice of the text of a number that is no integer");
}

const Repr repr_formatted = {
    .name = "formatted",
    .type = "text",
    .same = repr_same_parts,
    .recipe = formatted_recipe,
    .hand = formatted_hand,
    NO(example, no_rule, "a text of no known length"),
    NO(input, no_rule, "the trace makes it"),
    .length = rec_text_length,
    .item = digits_item,
    .slice = digits_slice,
    .add = rec_text_add,
    .equal = rec_text_equal,
    .contains = rec_text_contains,
    NO(field, raises, "a text has no fields"),
    NO(put_field, raises, "a text has no fields"),
    NO(update, no_rule, "texts are not written"),
    NO(assign, raises, "texts are not written"),
    NO(store, raises, "texts are not written"),
    NO(before_store, raises, "texts are not written"),
    .format = repr_text_format,
    .walk = digits_walk,
    .at = rec_read_at,
    NO(truth, raises, "a text is no condition"),
    .open = repr_itself,
    NO(items, no_rule, "a text is walked over by a loop"),
    NO(array, raises, "a text is no array"),
    NO(call, raises, "a text is no function"),
    NO(layout, loop_list, "a text that is not made yet"),
    NO(name_of, no_rule, "it may be any text"),
    .widen = rec_into_columns,
    NO(take_back, no_rule, "it lies nowhere"),
    NO(unpack, raises, "a text has no parts"),
};
