/* record_sizes.c — sizes that are known at run time only: symbols that a value carries, the checks that stand for
 * what is asked of them, masks as places, and what is known of integers. */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"

#include <string.h>

/* ---- symbols and their checks ------------------------------------------------------------------------- */

/* NULL: it has none. */
static const RecAnchor *anchor_of(const Recorder *r, u32 sym) {
  u32 at = sym < r->g->sizes.syms.count ? r->g->sizes.syms.data[sym].anchor : 0;
  return at && at <= r->anchored.count && r->anchored.data[at - 1].sym == sym ? &r->anchored.data[at - 1] : NULL;
}

enum { TWINS = 16 }; /* not a threshold: room; an expression of more symbols is not checked */
typedef struct Twins {
  SizePool *p;
  u32 from[TWINS], count;
  Dim to[TWINS];
  bool failed;
} Twins;

/* Another symbol for the same number: found equal to nothing, so a check of it looks. */
static void twin(void *ctx, u32 sym) {
  Twins *t = ctx;
  const SizeSym s = t->p->syms.data[sym];
  if (!s.unbacked || t->failed) return;
  for (u32 i = 0; i < t->count; i++)
    if (t->from[i] == sym) return;
  Dim d = DIM_NONE;
  for (u32 i = sym + 1; i < t->p->syms.count && d == DIM_NONE; i++) {
    const SizeSym *o = &t->p->syms.data[i];
    if (o->unbacked && o->source == s.source && o->axis == s.axis && o->same_as == DIM_NONE) d = o->dim;
  }
  if (d == DIM_NONE && (d = size_unbacked(t->p, NULL, s.source, s.lo, s.hi)) != DIM_NONE)
    t->p->syms.data[t->p->syms.count - 1].axis = s.axis;
  t->failed = t->count == TWINS || d == DIM_NONE;
  if (t->failed) return;
  t->from[t->count] = sym;
  t->to[t->count++] = d;
}

static bool emit_size_check(void *ctx, Dim a, Dim b) {
  Recorder *r = ctx;
  SizePool *p = &r->g->sizes;
  u32 x = 0, y = 0;
  if (r->safe_exit == UINT32_MAX) return false;
  bool in_a = size_last_unbacked(p, a, &x), in_b = size_last_unbacked(p, b, &y);
  if (!anchor_of(r, !in_a || (in_b && y > x) ? y : x)) return false;
  Twins t = {.p = p};
  size_symbols(p, a, twin, &t);
  size_symbols(p, b, twin, &t);
  if (t.failed) return false;
  Dim m = size_substitute(p, a, t.from, t.to, t.count), n = size_substitute(p, b, t.from, t.to, t.count);
  if (m == DIM_NONE || n == DIM_NONE) return false;
  ValueId operands[2] = {graph_size(r->g, m), graph_size(r->g, n)};
  return rec_check(r, CHECK_size, operands, 2) == OUT_GO;
}

void rec_dims_init(Recorder *r, GuardDims *d, const char *what) {
  const RecFrame *f = rec_top(r);
  guard_dims_init(d, &r->g->guards, &r->g->sizes, what, f->code->proto->spans[f->pc]);
  d->emit_check = emit_size_check;
  d->check_ctx = r;
}

Outcome rec_dims_no(Recorder *r, const GuardDims *d, const char *what, const RuleError *err) {
  if (r->g->failed || d->failed) return OUT_FAIL;
  if (d->unknown)
    return rec_stuck(r, REASON_data_dependent_shape, "%s: a size that is known only at run time decides", what);
  return rec_stuck(r, err->kind == EK_unsupported ? REASON_no_rule : REASON_raises, "%s: %s", what, err->text);
}

Outcome rec_anchor(Recorder *r, Dim d) {
  u32 sym;
  if (r->safe_exit == UINT32_MAX || !size_is_sym(&r->g->sizes, d, &sym) || anchor_of(r, sym)) return OUT_GO;
  ValueId operands[2] = {graph_size(r->g, d), graph_size(r->g, d)};
  if (!operands[0] || rec_check(r, CHECK_size, operands, 2) != OUT_GO) return OUT_FAIL;
  if (!vec_push(&r->vm->alloc, &r->anchored, (RecAnchor){sym, r->g->at})) return OUT_FAIL;
  r->g->sizes.syms.data[sym].anchor = r->anchored.count;
  return OUT_GO;
}

void rec_carry(Recorder *r, Dim d, ValueId carrier, u32 axis) {
  u32 sym;
  if (!size_is_sym(&r->g->sizes, d, &sym)) return;
  r->g->sizes.syms.data[sym].source = carrier;
  r->g->sizes.syms.data[sym].axis = (u8)axis;
}

Outcome rec_freshen(Recorder *r, ArrayType *results, u32 count, Dim *d) {
  *d = 0;
  for (u32 i = 0; i < count; i++)
    for (u32 k = 0; k < results[i].rank; k++) {
      if (results[i].dims[k] != DIM_FRESH) continue;
      if (!MECHANISM(r->vm, sizes_of_data))
        return rec_stuck(r, REASON_data_dependent_shape, "a size that depends on data");
      if (!*d && (*d = size_unbacked(&r->g->sizes, NULL, 0, 0, SIZE_LIMIT - 1)) == DIM_NONE) return OUT_FAIL;
      results[i].dims[k] = *d;
    }
  return OUT_GO;
}

Outcome rec_settle(Recorder *r, NodeId node, Dim d) {
  u32 n = graph_node_at(r->g, node)->result_count;
  for (u32 i = 0; i < n; i++) {
    const ArrayType *t = value_type(r->g, node_result(r->g, node, i));
    for (u32 k = 0; k < t->rank; k++) {
      if (t->dims[k] != d) continue;
      rec_carry(r, d, node_result(r->g, node, i), k);
      return rec_anchor(r, d);
    }
  }
  return OUT_FAIL;
}

/* ---- masks ----------------------------------------------------------------------------------------------- */

/* Is block `outer` the cursor's, or around it? */
static bool encloses(const Graph *g, BlockId outer) {
  for (BlockId b = g->at; b; b = g->blocks.data[b].parent)
    if (b == outer) return true;
  return false;
}

bool rec_spoken_of(const Recorder *r, u32 sym) {
  const RecAnchor *a = anchor_of(r, sym);
  return !a || encloses(r->g, a->block);
}

typedef struct Scoped {
  Recorder *r;
  bool inside;
} Scoped;

static void made_inside(void *ctx, u32 sym) {
  Scoped *s = ctx;
  const SizeSym *x = &s->r->g->sizes.syms.data[sym];
  if (x->unbacked && x->source)
    s->inside |= !encloses(s->r->g, value_block(s->r->g, x->source)) || !rec_spoken_of(s->r, sym);
}

bool rec_inner_size(Recorder *r, ValueId v) {
  const ArrayType t = *value_type(r->g, v);
  Scoped s = {r, false};
  for (u32 d = 0; d < t.rank; d++)
    if (size_is_unbacked(&r->g->sizes, t.dims[d])) size_symbols(&r->g->sizes, t.dims[d], made_inside, &s);
  return s.inside;
}

Outcome rec_escape(Recorder *r, ValueId result, u32 free) {
  Graph *g = r->g;
  if (value_is_token(g, result)) return OUT_GO;
  ArrayType t = *value_type(g, result);
  Dim fresh[TYPE_MAX_RANK];
  u32 n = 0;
  for (u32 d = 0; d < t.rank; d++) {
    Scoped s = {r, false};
    if (size_is_unbacked(&g->sizes, t.dims[d])) size_symbols(&g->sizes, t.dims[d], made_inside, &s);
    if (!(free >> d & 1) && !s.inside) continue;
    Dim u = size_unbacked(&g->sizes, NULL, 0, 0, SIZE_LIMIT - 1);
    if (u == DIM_NONE) return OUT_FAIL;
    rec_carry(r, u, result, d);
    t.dims[d] = fresh[n++] = u;
  }
  if (!n) return OUT_GO;
  if (!(g->values.data[result].type = graph_type(g, &t))) return OUT_FAIL;
  Outcome o = OUT_GO;
  for (u32 i = 0; i < n && o == OUT_GO; i++) o = rec_anchor(r, fresh[i]);
  return o;
}

Outcome rec_mask_places(Recorder *r, ValueId mask, ValueId *places) {
  Graph *g = r->g;
  u32 rank = value_type(g, mask)->rank;
  NodeId node = 0;
  for (u32 i = r->masks.count; i-- > 0 && !node;)
    if (r->masks.data[i].mask == mask && encloses(g, graph_node_at(g, r->masks.data[i].node)->block))
      node = r->masks.data[i].node;
  if (!node) {
    ArrayType types[TYPE_MAX_RANK];
    TypeId ids[TYPE_MAX_RANK];
    Dim d;
    const u8 device = value_type(g, mask)->device;
    for (u32 i = 0; i < rank; i++)
      types[i] = (ArrayType){.dtype = DT_i64, .rank = 1, .device = device, .dims = {DIM_FRESH}};
    Outcome o = rec_freshen(r, types, rank, &d);
    if (o != OUT_GO) return o;
    for (u32 i = 0; i < rank; i++) ids[i] = graph_type(g, &types[i]);
    node = graph_node(g, NODE_op, OP_nonzero, &mask, 1, NULL, 0, ids, rank);
    if (!node || !vec_push(&r->vm->alloc, &r->masks, (RecMask){mask, node})) return OUT_FAIL;
    if ((o = rec_settle(r, node, d)) != OUT_GO) return o;
  }
  for (u32 i = 0; i < rank; i++) places[i] = node_result(g, node, i);
  return OUT_GO;
}

/* ---- what is known of integers ----------------------------------------------------------------------------- */

/* How much of a graph is looked through for one answer: so many operations in each other, so many in all. */
enum { RANGE_DEPTH = 12, RANGE_NODES = 256 }; /* not a threshold: more of it hardly ever says more */

static IntRange range_of(Recorder *r, ValueId v, u32 depth, u32 *left);

static IntRange of_node(Recorder *r, NodeId n, u32 dtype, u32 depth, u32 *left) {
  enum { MOST = 3 };
  const GraphNode *x = graph_node_at(r->g, n);
  IntRange xs[MOST];
  if (x->kind != NODE_op || x->operand_count == 0 || x->operand_count > MOST || x->result_count != 1 ||
      dtype == DT_bool || *left == 0)
    return int_range_of(dtype);
  --*left;
  const u32 count = x->operand_count, op = x->op;
  for (u32 i = 0; i < count; i++) {
    ValueId v = node_operand(r->g, n, i);
    if (value_is_token(r->g, v)) return int_range_of(dtype);
    const u32 own = value_type(r->g, v)->dtype;
    const bool known = dtype_kind(own) == DK_INT && own != DT_u64;
    xs[i] = known ? range_of(r, v, depth, left) : int_range_of(own == DT_bool ? own : DT_i64);
  }
  return rule_range(op, dtype, xs, count);
}

static IntRange range_of(Recorder *r, ValueId v, u32 depth, u32 *left) {
  const Graph *g = r->g;
  const GraphValue *x = &g->values.data[v];
  const ArrayType *t = value_type(g, v);
  Value known;
  Dim d;
  i64 i;
  if (value_const(g, v, &known) && num_as_index(known, &i)) return (IntRange){i, i};
  if (x->origin == GV_size && value_dim(r->g, v, &d) && d != DIM_NONE) {
    SizeRange s = size_range(&g->sizes, d);
    return s.fits ? (IntRange){s.lo, s.hi} : int_range_of(t->dtype);
  }
  for (u32 k = 0; k < r->positions.count; k++)
    if (r->positions.data[k].value == v) return (IntRange){0, SIZE_LIMIT};
  if (depth == 0) return int_range_of(t->dtype);
  if (x->origin == GV_result) return of_node(r, x->def, t->dtype, depth - 1, left);
  if (x->origin == GV_param) { /* captured: as it is outside */
    const GraphBlock *b = &g->blocks.data[x->def];
    for (u32 k = 0; k < b->captures.count; k++)
      if (b->captures.data[k].inner == v && !b->node) return range_of(r, b->captures.data[k].outer, depth - 1, left);
  }
  return int_range_of(t->dtype);
}

IntRange rec_range(Recorder *r, ValueId v) {
  u32 left = RANGE_NODES;
  return range_of(r, v, RANGE_DEPTH, &left);
}

/* ---- bounds of slices --------------------------------------------------------------------------------------- */

typedef struct LikeSizes {
  Recorder *r;
  bool failed;
} LikeSizes;

static void like_size(void *ctx, u32 sym) {
  enum { SUMS_BITS = 4 }; /* not a threshold: sums of 16 sizes stay below 2^62 */
  LikeSizes *o = ctx;
  SizePool *p = &o->r->g->sizes;
  GuardSet *gs = &o->r->g->guards;
  const SizeSym s = p->syms.data[sym];
  const i64 most = SIZE_LIMIT >> SUMS_BITS;
  if (s.unbacked || s.hint < 0 || s.hint > most || o->failed) return;
  Dim limit = size_const(p, most);
  if (s.lo < 0) o->failed |= !guard_relation(gs, p, REL_le, 0, s.dim, "slice", rec_here(o->r));
  if (s.hi > most)
    o->failed |= limit == DIM_NONE || !guard_relation(gs, p, REL_le, s.dim, limit, "slice", rec_here(o->r));
}

/* What ends of slices are made of is hardly ever negative or huge: with that as guards, sums of them stay numbers, and
 * lengths are formulas without cases. */
bool rec_like_sizes(Recorder *r, Dim d) {
  LikeSizes o = {r, false};
  size_symbols(&r->g->sizes, d, like_size, &o);
  return !o.failed;
}

typedef struct Holds {
  u32 sym;
  bool found;
} Holds;

static void look_for(void *ctx, u32 sym) {
  Holds *h = ctx;
  h->found |= h->sym == sym;
}

static bool holds_symbol(const SizePool *p, Dim d, u32 sym) {
  Holds h = {sym, false};
  size_symbols(p, d, look_for, &h);
  return h.found;
}

/* Of an end that stays the same in the loop: guarded, if it is so now. */
static bool stays_in_axis(Recorder *r, Dim end, Dim axis) {
  SizePool *p = &r->g->sizes;
  i64 x, n;
  if (!r->loop || end >= 0 || size_is_unbacked(p, axis) || size_prove(p, REL_le, end, axis) != TRUTH_unknown)
    return true;
  if (!size_hint(p, end, &x) || !size_hint(p, axis, &n) || x > n) return true;
  return guard_relation(&r->g->guards, p, REL_le, end, axis, "slice", rec_here(r));
}

bool rec_in_axis(Recorder *r, Dim end, Dim axis) {
  SizePool *p = &r->g->sizes;
  if (!size_is_unbacked(p, end)) return stays_in_axis(r, end, axis);
  for (u32 k = 0; k < r->positions.count; k++) {
    RecPosition at = r->positions.data[k];
    u32 sym = UINT32_MAX;
    for (u32 i = 0; i < p->syms.count && sym == UINT32_MAX; i++)
      if (p->syms.data[i].unbacked && p->syms.data[i].source == at.value) sym = i;
    if (at.bound == DIM_NONE || sym == UINT32_MAX || !holds_symbol(p, end, sym)) continue;
    Dim rest = size_sub(p, end, p->syms.data[sym].dim); /* once in the sum: it grows with the position */
    Dim last = rest == DIM_NONE || holds_symbol(p, rest, sym) ? DIM_NONE : size_sub(p, size_add(p, rest, at.bound), 1);
    if (last == DIM_NONE || size_prove(p, REL_le, end, axis) != TRUTH_unknown) continue;
    SizeTruth t = size_prove(p, REL_le, last, axis);
    i64 x, n;
    bool now = t == TRUTH_unknown && !size_is_unbacked(p, last) && !size_is_unbacked(p, axis) &&
               size_hint(p, last, &x) && size_hint(p, axis, &n) && x <= n;
    if (now && !guard_relation(&r->g->guards, p, REL_le, last, axis, "slice", rec_here(r))) return false;
    if ((now || t == TRUTH_always) && !size_assume(p, REL_le, end, axis) && p->failed) return false;
  }
  return !p->failed;
}

Outcome rec_bound(Recorder *r, Av a, Dim n, Dim *out) {
  ValueId v = av_value(r, a);
  const ArrayType *t = value_type(r->g, v);
  if (t->rank || dtype_kind(t->dtype) != DK_INT) return rec_stuck(r, REASON_raises, "a slice bound is no integer");
  if (t->dtype != DT_i64) {
    Outcome o = rec_place(r, &v);
    if (o != OUT_GO) return o;
    if (!(v = graph_convert(r->g, v, DT_i64)) || !(a = av_num(r, v))) return OUT_FAIL;
  }
  IntRange s = rec_range(r, v);
  if (s.lo < 0 && s.hi >= 0) { /* a negative one counts from the end; before the beginning there is nothing */
    Av size = av_num(r, graph_size(r->g, n)), zero = av_const(r, value_weak_i64(0)), below = 0, less = 0, at = 0;
    if (!size || !zero) return OUT_FAIL;
    Outcome o = rec_binary(r, BC_lt, a, zero, &below);
    if (o == OUT_GO) o = rec_binary(r, BC_add, a, size, &less);
    Av choice[OP_MAX_PARAMS] = {below, less, a};
    if (o == OUT_GO) o = rec_op(r, OP_where, choice, &at);
    Av both[OP_MAX_PARAMS] = {at, zero};
    if (o == OUT_GO) o = rec_op(r, OP_maximum, both, &a);
    if (o != OUT_GO) return o;
  }
  return av_dim(r, a, out) ? OUT_GO : OUT_FAIL;
}

/* Guarded: an operation that nobody needs would raise all the same. Constants are left to the rules. */
static Outcome not_below(Recorder *r, Dim d, i64 least) {
  SizePool *p = &r->g->sizes;
  Dim low = size_const(p, least);
  i64 now;
  if (size_is_const(p, d, &now) && now < least) return rec_stuck(r, REASON_raises, "a size is %lld", (long long)now);
  if (size_is_const(p, d, &now) || low == DIM_NONE || size_prove(p, REL_le, low, d) == TRUTH_always ||
      !size_hint(p, d, &now))
    return OUT_GO;
  if (now < least) return rec_stuck(r, REASON_raises, "a size is %lld", (long long)now);
  return guard_relation(&r->g->guards, p, REL_le, low, d, "a size", rec_here(r)) ? OUT_GO : OUT_FAIL;
}

Outcome rec_size_from(Recorder *r, Av a, i64 least, Dim *out) {
  Outcome o = rec_size(r, a, out);
  return o == OUT_GO && !size_is_unbacked(&r->g->sizes, *out) ? not_below(r, *out, least) : o;
}

Outcome rec_size(Recorder *r, Av a, Dim *out) {
  SizePool *p = &r->g->sizes;
  u32 sym;
  if (!av_dim(r, a, out)) return rec_stuck(r, REASON_data_dependent_shape, "a size is %s", av_kind_text(r, a));
  if (!size_is_unbacked(p, *out)) return not_below(r, *out, 0);
  if (size_prove(p, REL_le, 0, *out) == TRUTH_always) return OUT_GO;
  if (r->safe_exit == UINT32_MAX) return OUT_GO; /* the eager kernel looks */
  ValueId n = graph_size(r->g, *out);
  Outcome o = n ? rec_check(r, CHECK_nonneg, &n, 1) : OUT_FAIL;
  /* an arm says nothing of what is beside it */
  bool everywhere = size_is_sym(p, *out, &sym) && value_block(r->g, p->syms.data[sym].source) == r->g->at;
  return o != OUT_GO || !everywhere || size_assume(p, REL_le, 0, *out) ? o : OUT_FAIL;
}
