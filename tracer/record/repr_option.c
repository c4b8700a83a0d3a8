/* repr_option.c — values that are nil on one way and something else on another: a search that finds nothing, the
 * nearest so far.
 *
 * An option has two items: a bool that says whether the value is there, and the value, whose leaves are zeros
 * where it is not. `== nil` asks the bool alone. What a value that may be nil is used for needs it to be there:
 * known by a branch on the bool around (facts), else a check asks. An exit hands it on as what it is. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_compare.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_names.h"
#include "tracer/record/repr_option.h"

static Av option(Recorder *r, bool known, bool there, Av flag, Av value) {
  Av parts[2] = {known ? av_const(r, value_bool(there)) : flag, value};
  r->options = true;
  return parts[0] && value ? av_items(r, AV_option, parts, 2) : 0;
}

static bool is_nil_value(Recorder *r, Av a) { return av_is_constant(r, a) && av_at(r, a)->konst.kind == V_NIL; }
static bool is_option(const Recorder *r, Av a) { return av_is_option(r, a); }

bool rec_has_option(Recorder *r, Av a) {
  const AbsVal v = *av_at(r, a);
  if (!a || !r->options || kind_is_option(v.kind)) return a && kind_is_option(v.kind);
  bool tree = kind_is_open(v.kind) || kind_is_transform(v.kind) ||
              (kind_is_closure(v.kind) && v.env == ENV_ITEMS), any = false;
  for (u32 i = 0; tree && i < v.count && !any; i++) any = rec_has_option(r, av_item(r, a, i));
  return any;
}

/* ---- facts --------------------------------------------------------------------------------------------------- */

/* What a value that a block has captured, open or closed, is outside. */
static ValueId option_outermost(const Graph *g, ValueId v) {
  for (bool more = true; more;) {
    more = false;
    const GraphValue *x = &g->values.data[v];
    if (x->origin != GV_param) break;
    const GraphBlock *b = &g->blocks.data[x->def];
    u32 first = 0;
    if (b->node) (void)node_captures(g, b->node, &first);
    for (u32 k = 0; k < b->captures.count && !more; k++)
      if (b->captures.data[k].inner == v)
        v = b->node ? node_operand(g, b->node, first + k) : b->captures.data[k].outer, more = true;
  }
  return v;
}

enum { FACT_DEPTH = 6 }; /* not a threshold: conditions in each other that are looked through */

/* Cannot the arm of a branch on `cond` yield this, when what it yields is `is`? */
static bool excludes(const Graph *g, ValueId yielded, ValueId cond, bool arm, bool is) {
  Value v;
  if (value_const(g, yielded, &v)) return (v.i != 0) != is;
  return option_outermost(g, yielded) == option_outermost(g, cond) && arm != is;
}

static void option_note(Recorder *r, ValueId v, bool is, u32 depth) {
  const Graph *g = r->g;
  v = option_outermost(g, v);
  if (!vec_push(&r->vm->alloc, &r->facts, (RecFact){v, g->at, is})) r->failed = true;
  NodeId n = value_node(g, v);
  if (!n || !depth || r->failed) return;
  const GraphNode *x = graph_node_at(g, n);
  if (x->kind == NODE_op && x->op == OP_logical_not) option_note(r, node_operand(g, n, 0), !is, depth - 1);
  if (x->kind == NODE_op && x->op == (is ? OP_logical_and : OP_logical_or))
    for (u32 i = 0; i < 2; i++) option_note(r, node_operand(g, n, i), is, depth - 1);
  if (x->kind != NODE_cond) return;
  for (u32 k = 0; k < 2; k++) { /* `and`, `or`: the one arm gives what the condition was */
    const GraphBlock *b = &g->blocks.data[x->sub[k]], *other = &g->blocks.data[x->sub[1 - k]];
    u32 at = 0;
    while (at < b->term_count && node_result(g, n, at) != v) at++;
    if (b->term != TERM_yield || other->term != TERM_yield || at == b->term_count) continue;
    if (!excludes(g, g->operands.data[b->term_first + at], node_operand(g, n, 0), k == 0, is)) continue;
    option_note(r, node_operand(g, n, 0), k != 0, depth - 1);
    option_note(r, g->operands.data[other->term_first + at], is, depth - 1);
    return;
  }
}

void rec_note_truth(Recorder *r, ValueId cond, bool is) {
  if (r->options && cond) option_note(r, cond, is, FACT_DEPTH);
}

static bool within(const Graph *g, BlockId b) {
  BlockId at = g->at;
  while (at && at != b) at = g->blocks.data[at].parent;
  return at == b;
}

static bool option_known(Recorder *r, Av flag, bool *is) {
  Value c;
  ValueId v = av_value(r, flag);
  if (av_const_value(r, flag, &c)) return *is = c.i != 0, true;
  for (u32 i = r->facts.count; i-- > 0;)
    if (r->facts.data[i].value == v && within(r->g, r->facts.data[i].block)) return *is = r->facts.data[i].is, true;
  return false;
}

Av rec_sure(Recorder *r, Av a) {
  bool is;
  if (!(a = av_force(r, a)) || !is_option(r, a) || !option_known(r, av_item(r, a, 0), &is)) return a;
  return is ? av_item(r, a, 1) : av_const(r, value_nil());
}

Outcome rec_there(Recorder *r, Av *a) {
  if (!*a || !r->options) return OUT_GO;
  Av v = rec_sure(r, *a);
  if (!v) return OUT_FAIL;
  if (!is_option(r, v)) {
    if (is_option(r, av_force(r, *a))) *a = v;
    return OUT_GO;
  }
  ValueId flag = av_value(r, av_item(r, v, 0));
  Outcome o = flag ? rec_check(r, CHECK_assertion, &flag, 1) : OUT_FAIL;
  if (o != OUT_GO) return o;
  rec_note_truth(r, flag, true);
  *a = av_item(r, v, 1);
  return r->failed ? OUT_FAIL : OUT_GO;
}

/* `==` of arrays is by element, and one bool where one of them is nil. */
Outcome rec_there_by_element(Recorder *r, Av *a, Av *b) {
  if (!r->options) return OUT_GO;
  Av *both[2] = {a, b};
  u32 ranks = 0;
  for (u32 k = 0; k < 2; k++) {
    if (!(*both[k] = rec_sure(r, *both[k]))) return OUT_FAIL;
    Av v = is_option(r, *both[k]) ? av_item(r, *both[k], 1) : *both[k];
    if (!av_is_number(r, v)) return OUT_GO;
    ranks += value_type(r->g, av_value(r, v))->rank;
  }
  Outcome o = ranks ? rec_there(r, a) : OUT_GO;
  return ranks && o == OUT_GO ? rec_there(r, b) : o;
}

bool rec_option_equal(Recorder *r, Av a, Av b, Av *out, Outcome *o) {
  if (!r->options) return false;
  bool pa = is_option(r, a), pb = is_option(r, b);
  if (!pa && !pb) return false;
  Av x = rec_sure(r, a), y = rec_sure(r, b);
  if (!x || !y) return *o = OUT_FAIL, true;
  pa = is_option(r, x), pb = is_option(r, y);
  if (pa && pb) return *o = rec_stuck(r, REASON_no_rule, "`==` of values that may be nil"), true;
  if (!pa && !pb) return *o = rec_equal(r, x, y, out), true;
  Av may = pa ? x : y, other = pa ? y : x, flag = av_item(r, may, 0), same;
  if (is_nil_value(r, other)) return *o = rec_unary(r, BC_not, flag, out), true;
  if ((*o = rec_equal(r, av_item(r, may, 1), other, &same)) != OUT_GO) return true;
  Av params[OP_MAX_PARAMS] = {flag, same};
  *o = rec_op(r, OP_logical_and, params, out);
  return true;
}

Outcome rec_option_weak(Recorder *r, Av a, Av b, ValueId *flag) {
  *flag = 0;
  Av x = r->options ? rec_sure(r, a) : 0, y = x ? rec_sure(r, b) : 0;
  if (!r->options) return OUT_GO;
  if (!x || !y) return OUT_FAIL;
  if (is_option(r, x) == is_option(r, y)) return OUT_GO;
  Av may = is_option(r, x) ? x : y, numbers[2] = {av_item(r, may, 1), may == x ? y : x}, weak = av_item(r, may, 0);
  for (u32 i = 0; i < 2; i++) {
    if (!av_is_number(r, numbers[i])) return OUT_GO;
    ValueId v = av_value(r, numbers[i]), also = rec_weak_flag(r, v);
    if (value_type(r->g, v)->rank || !(also || value_type(r->g, v)->weak)) return OUT_GO;
    Av params[OP_MAX_PARAMS] = {weak, also ? av_num(r, also) : 0};
    Outcome o = also ? rec_op(r, OP_logical_and, params, &weak) : OUT_GO;
    if (o != OUT_GO) return o;
  }
  *flag = rec_strengthen(r, av_value(r, weak), DT_bool);
  return *flag ? OUT_GO : OUT_FAIL;
}

/* ---- where ways meet ----------------------------------------------------------------------------------------- */

/* The same tree of zeros. 0: it has sizes that are not known before the region runs, or memory was refused. */
static Av zeros_like(Recorder *r, Av a) {
  AvVec leaves = {0};
  bool ok = carry_leaves(r, a, &leaves);
  for (u32 i = 0; i < leaves.count && ok; i++) {
    ArrayType t = *value_type(r->g, av_value(r, leaves.data[i]));
    for (u32 d = 0; d < t.rank; d++) ok &= !size_is_unbacked(&r->g->sizes, t.dims[d]);
    if (!ok || t.device) ok = false;
    else if (t.rank) leaves.data[i] = av_num(r, graph_full(r->g, t.dtype, t.rank, t.dims, 0));
    else leaves.data[i] = av_const(r, (Value){.kind = V_NUM, .dtype = t.dtype, .flags = t.weak ? VF_WEAK : 0});
    ok = ok && leaves.data[i];
  }
  u32 next = 0;
  Av made = ok ? carry_rebuild(r, a, leaves.data, &next) : 0;
  vec_free(&r->vm->alloc, &leaves);
  return made;
}

bool rec_option_meet(Recorder *r, Av *a, Av *b) {
  Av both[2] = {av_force(r, *a), av_force(r, *b)}, flag[2] = {0}, value[2] = {0};
  if (!both[0] || !both[1]) return false;
  bool nil[2], may[2];
  for (u32 k = 0; k < 2; k++) {
    nil[k] = is_nil_value(r, both[k]);
    may[k] = is_option(r, both[k]);
    if (!nil[k]) value[k] = may[k] ? av_item(r, both[k], 1) : both[k];
    if (may[k]) flag[k] = av_item(r, both[k], 0);
  }
  if (!(nil[0] || nil[1] || may[0] || may[1]) || (nil[0] && nil[1])) return false;
  for (u32 k = 0; k < 2; k++)
    if (nil[k] && !(value[k] = zeros_like(r, value[1 - k]))) return false;
  if (!carry_same(r, value[0], value[1]) && !rec_names_meet(r, &value[0], &value[1])) return false;
  Av x = option(r, !may[0], !nil[0], flag[0], value[0]), y = option(r, !may[1], !nil[1], flag[1], value[1]);
  if (!x || !y) return false;
  *a = x;
  *b = y;
  return true;
}

/* Zeros of a kind, numbers of which some are weak as strong ones. */
static Av zeros_of(Recorder *r, Value kind) {
  if (kind.kind == V_NUM)
    return av_const(r, (Value){.kind = V_NUM, .dtype = kind.dtype, .flags = kind.aux ? 0 : kind.flags & VF_WEAK});
  if (rec_is_name(kind)) return rec_name(r, graph_const(r->g, value_i64(0)));
  if (kind.kind == V_ARRAY) {
    ArrayType t = rec_column_type(kind, 0);
    return av_num(r, graph_full(r->g, t.dtype, t.rank - 1u, t.dims + 1, 0));
  }
  Av parts[ZIP_LEAVES];
  u32 n = kind.kind == V_LIST ? kind.list->count : kind.record->shape->count;
  const Value *items = kind.kind == V_LIST ? kind.list->items : kind.record->items;
  for (u32 i = 0; i < n && i < ZIP_LEAVES; i++)
    if (!(parts[i] = zeros_of(r, items[i]))) return 0;
  return kind.kind == V_LIST ? av_list(r, parts, n) : av_record(r, kind.record->shape->keys, parts, n);
}

bool rec_want_option(Recorder *r, RecLoop *l, RecLoc *loc, Av now) {
  Av before = loc->before ? av_force(r, loc->before) : 0;
  if (loc->rows || !before || !(now = av_force(r, now))) return false;
  bool nil = is_nil_value(r, before);
  Av value = nil ? now : before;
  if (is_option(r, value)) value = av_item(r, value, 1);
  Value kind;
  if ((!nil && !is_nil_value(r, now) && !is_option(r, now)) || !rec_kind_of(r, value, &kind)) return false;
  loc->kind = kind;
  loc->kind_known = loc->option = true;
  r->lacks = l;
  r->lacks_rows = loc;
  return true;
}

Outcome rec_make_option(Recorder *r, const RecLoc *loc, Av *at) {
  Av now = av_force(r, *at);
  if (now && is_option(r, now)) return OUT_GO;
  bool nil = now && is_nil_value(r, now);
  Av value = !now ? 0 : nil ? zeros_of(r, loc->kind) : now;
  return rec_made(r, value ? option(r, true, !nil, 0, value) : 0, at);
}

Outcome rec_into_option(Recorder *r, Av before, Av *now) {
  if (!before || !*now || !av_is_option(r, before)) return OUT_GO;
  if (!(*now = av_force(r, *now))) return OUT_FAIL;
  if (is_option(r, *now)) return OUT_GO;
  bool nil = is_nil_value(r, *now);
  Av value = nil ? zeros_like(r, av_item(r, before, 1)) : *now;
  if (!value) return r->failed || r->g->failed ? OUT_FAIL : OUT_GO;
  return rec_made(r, option(r, true, !nil, 0, value), now);
}

/* ---- its table --------------------------------------------------------------------------------------------------- */

/* What it is used for needs the value to be there. */
static Outcome option_length(Recorder *r, Av a, Av *out) {
  Outcome o = rec_there(r, &a);
  return o == OUT_GO ? rec_length(r, a, out) : o;
}

static Outcome option_item(Recorder *r, Av a, Av at, Av *out) {
  Outcome o = rec_there(r, &a);
  return o == OUT_GO ? rec_item(r, a, at, out) : o;
}

static Outcome option_slice(Recorder *r, Av a, const Av *parts, Av *out) {
  Outcome o = rec_there(r, &a);
  return o == OUT_GO ? rec_slice(r, a, parts, out) : o;
}

static RecipeId option_recipe(Recorder *r, Av a) {
  RecipeId value = rec_recipe(r, av_item(r, a, 1));
  return value ? recipe_option(&r->g->exits, value, rec_recipe(r, av_item(r, a, 0))) : 0;
}

static Outcome option_walk(Recorder *r, Av a, Av *out) {
  Outcome o = rec_there(r, &a);
  return o == OUT_GO ? rec_walk(r, a, out) : o;
}

static Outcome option_contains(Recorder *r, Av a, Av x, Av *out) {
  Outcome o = rec_there(r, &a);
  return o == OUT_GO ? rec_member(r, x, a, out) : o;
}

#define ASKED "whether it is there is asked before, and then the value"
const Repr repr_option = {
    .name = "option",
    .type = "a value or nil",
    .same = repr_same_parts,
    .recipe = option_recipe,
    NO(hand, effect_host, "nil on one way alone"),
    NO(example, no_rule, "nil on one way alone"),
    NO(input, no_rule, "the trace makes it"),
    .length = option_length,
    .item = option_item,
    .slice = option_slice,
    NO(field, no_rule, ASKED),
    NO(put_field, no_rule, ASKED),
    NO(update, no_rule, ASKED),
    NO(assign, no_rule, ASKED),
    NO(store, no_rule, ASKED),
    NO(before_store, no_rule, ASKED),
    NO(add, no_rule, ASKED),
    NO(equal, no_rule, "rec_option_equal is asked before"),
    .contains = option_contains,
    .walk = option_walk,
    NO(at, no_rule, ASKED),
    NO(items, no_rule, "nil on one way alone"),
    NO(array, no_rule, "nil on one way alone"),
    NO(open, no_rule, "nil on one way alone"),
    NO(call, no_rule, ASKED),
    NO(truth, no_rule, ASKED),
    NO(format, text_value, "nil on one way alone"),
    NO(layout, loop_list, "nil on one way alone"),
    NO(name_of, no_rule, "nil on one way alone"),
    NO(widen, loop_types, "rec_want_option does it"),
    NO(take_back, no_rule, "rec_into_option does it"),
    NO(unpack, no_rule, ASKED),
};
