/* record_jacobian.c — Jacobians and jvp in a trace. jacrev: the way back, once for each row of a unit matrix, as
 * the body of a scan over its rows. jacfwd and jvp: the way back is linear in its cotangents, so the way back over
 * it is the way forward. */
#include <string.h>

#include "hop/jacobian.h"
#include "hop/rules.h"
#include "hop/symmetric.h"
#include "hop/walk.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_tree.h"

/* f recorded on fresh variables. */
typedef struct Forward {
  BlockId block;
  NodeId before;
  ValueVec x, y; /* leaves of what is varied, and of the result */
  Av tree;       /* the result */
} Forward;

static Outcome forward(Recorder *r, Av fn, Av *args, u32 nargs, const u32 *varied, u32 nvaried, Forward *f) {
  Graph *g = r->g;
  AvVec leaves = {0};
  Outcome o = OUT_GO;
  f->block = g->at;
  f->before = g->blocks.data[g->at].last;
  for (u32 i = 0; i < nvaried && o == OUT_GO; i++) o = pull_variables(r, args[varied[i]], &f->x, &args[varied[i]]);
  for (u32 i = 0; i < f->x.count && o == OUT_GO; i++)
    if (dtype_kind(value_type(g, f->x.data[i])->dtype) == DK_COMPLEX)
      o = rec_stuck(r, REASON_raises, "a Jacobian by complex numbers");
  if (o == OUT_GO) {
    r->differentiating++;
    o = rec_call(r, fn, args, NULL, nargs, &f->tree);
    r->differentiating--;
  }
  if (o == OUT_GO) o = rec_tree(r, f->tree, &f->tree);
  if (o == OUT_GO && g->at != f->block)
    o = rec_stuck(r, REASON_construct_body, "the derivative of a function that ends elsewhere");
  if (o == OUT_GO) o = rec_tree_leaves(r, f->tree, &leaves);
  if (o == OUT_GO && leaves.count == 0)
    o = rec_stuck(r, REASON_raises, "the derivative of %s", av_kind_text(r, f->tree));
  for (u32 i = 0; i < leaves.count && o == OUT_GO; i++) {
    ValueId v = av_value(r, leaves.data[i]);
    if (!v || !vec_push(&r->vm->alloc, &f->y, v)) o = OUT_FAIL;
    else if (dtype_kind(value_type(g, v)->dtype) == DK_COMPLEX)
      o = rec_stuck(r, REASON_raises, "a Jacobian of complex numbers");
  }
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

static ArrayType float_type(Graph *g, ValueId v) {
  ArrayType t = *value_type(g, v);
  t.weak = false;
  if (dtype_kind(t.dtype) < DK_FLOAT) t.dtype = DT_f64;
  return t;
}

static ValueId cotangent(Recorder *r, Walk *w, ValueId of) {
  ArrayType t = float_type(r->g, of);
  ValueId v = of < w->count ? pull_only_if(w, w->there[of], w->ct[of], 0) : 0;
  return v ? deriv_fit(&w->d.head, v, &t) : pull_zeros(r->g, &t);
}

static Dim size_of(Graph *g, const ArrayType *t) {
  Dim n = 1;
  for (u32 i = 0; i < t->rank; i++) n = size_mul(&g->sizes, n, t->dims[i]);
  return n;
}

/* not a threshold of when: elements of a value in all rows that stay in a cache near the processor; larger ones are
 * computed row by row */
enum { TOGETHER_MOST = 1 << 16 };

/* Are all rows at once better than one after the other? */
static bool are_small(const Graph *g, BlockId body, Dim rows) {
  i64 n;
  if (!size_hint(&g->sizes, rows, &n)) return false;
  for (NodeId at = block_first(g, body); at; at = node_next(g, at))
    for (u32 i = 0; i < graph_node_at(g, at)->result_count; i++) {
      const ArrayType *t = value_type(g, node_result(g, at, i));
      i64 all = n, size;
      for (u32 d = 0; d < t->rank; d++)
        if (!size_hint(&g->sizes, t->dims[d], &size) || __builtin_mul_overflow(all, size, &all)) return false;
      if (all > TOGETHER_MOST) return false;
    }
  return true;
}

/* The way back over the nodes behind `before`, seeded at `from` with each unit of its type, read at the leaves
 * `to`: rows, one array for each, their axis first. A number has one row and no axis. */
static Outcome rows(Recorder *r, BlockId block, NodeId before, const ValueVec *variables, ValueId from,
                    const ValueVec *to, ValueVec *out) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  ArrayType t = float_type(g, from);
  ValueVec next = {0};
  Walk w = {.r = r};
  Outcome o = pull_walk_init(&w, r, block, before, variables->data, variables->count) ? OUT_GO : OUT_FAIL;
  bool active = o == OUT_GO && pull_is_active(&w, from);
  Dim n = size_of(g, &t);
  BlockId body = 0;
  ValueId units = 0, seed = 0;
  if (o == OUT_GO && t.rank) {
    GraphAttr attrs[3] = {attr_dim(0, n), attr_dtype(3, t.dtype), attr_int(4, t.device)};
    units = dv_op(&w.d.head, OP_eye, NULL, 0, attrs, t.device ? 3 : 2);
    ArrayType row = {.dtype = t.dtype, .rank = 1, .device = t.device};
    row.dims[0] = n;
    body = units ? graph_open(g) : 0;
    seed = body ? graph_param(g, body, graph_type(g, &row)) : 0;
    if (seed) seed = dv_reshape(&w.d.head, seed, t.rank, t.dims);
  } else if (o == OUT_GO) {
    seed = graph_const_f64(g, t.dtype, 1);
  }
  if (o == OUT_GO && !seed) o = OUT_FAIL;
  if (active && o == OUT_GO) {
    w.ct[from] = seed;
    o = pull_walk_back(&w);
  }
  for (u32 i = 0; i < to->count && o == OUT_GO; i++) {
    ValueId v = cotangent(r, &w, to->data[i]);
    if (!v || !vec_push(alloc, &next, v)) o = OUT_FAIL;
  }
  NodeId node = 0;
  if (o == OUT_GO && t.rank) {
    if (!graph_close(g, TERM_next, next.data, next.count, 0)) o = OUT_FAIL;
    graph_at_end(g, block);
    node = o == OUT_GO ? graph_scan(g, NULL, 0, &units, 1, n, false, false, body) : 0;
    if (!node) o = OUT_FAIL;
    else if (are_small(g, body, n)) g->nodes.data[node].lanes = r->lanes = true; /* record_lanes.c */
  }
  for (u32 i = 0; i < to->count && o == OUT_GO; i++)
    if (!vec_push(alloc, out, node ? node_result(g, node, i) : next.data[i])) o = OUT_FAIL;
  pull_walk_free(&w);
  vec_free(alloc, &next);
  return o;
}

/* Rows along the elements of `whole` as shape whole + row, or row + whole. */
static ValueId assemble(Recorder *r, ValueId stacked, const ArrayType *whole, const ArrayType *row, bool behind) {
  Graph *g = r->g;
  Dim dims[TYPE_MAX_RANK];
  u32 n = 0;
  if (whole->rank + row->rank > TYPE_MAX_RANK || !stacked) return 0;
  if (whole->rank == 0) return stacked;
  if (!row->rank) stacked = graph_moved(g, stacked, whole->device ? whole->device : row->device);
  if (behind && row->rank) {
    GraphAttr attrs[2] = {attr_int(1, 0), attr_int(2, row->rank)};
    stacked = graph_op(g, OP_moveaxis, &stacked, 1, attrs, 2, NULL);
  }
  for (u32 part = 0; part < 2; part++) {
    const ArrayType *t = (part == 0) != behind ? whole : row;
    for (u32 i = 0; i < t->rank; i++) dims[n++] = t->dims[i];
  }
  return stacked ? graph_reshape(g, stacked, n, dims) : 0;
}

/* The way back on cotangents that are variables: u for the results, b what they give for the arguments. Nodes of it
 * stand behind *from. */
static Outcome linear(Recorder *r, const Forward *f, ValueVec *u, ValueVec *b, NodeId *from) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  Walk w = {.r = r};
  Outcome o = OUT_GO;
  for (u32 i = 0; i < f->y.count && o == OUT_GO; i++) {
    ArrayType t = float_type(g, f->y.data[i]);
    ValueId v = graph_op1(g, OP_positive, pull_zeros(g, &t));
    if (!v || !vec_push(alloc, u, v)) o = OUT_FAIL;
  }
  if (o == OUT_GO && !pull_walk_init(&w, r, f->block, f->before, f->x.data, f->x.count)) o = OUT_FAIL;
  *from = g->blocks.data[f->block].last;
  for (u32 i = 0; i < f->y.count && o == OUT_GO; i++) pull_give(&w, f->y.data[i], u->data[i]);
  if (o == OUT_GO) o = pull_walk_back(&w);
  for (u32 i = 0; i < f->x.count && o == OUT_GO; i++) {
    ValueId v = cotangent(r, &w, f->x.data[i]);
    if (v) v = graph_op1(g, OP_positive, v); /* one of its own for each */
    if (!v || !vec_push(alloc, b, v)) o = OUT_FAIL;
  }
  pull_walk_free(&w);
  return o;
}

static void forward_free(Recorder *r, Forward *f) {
  vec_free(&r->vm->alloc, &f->x);
  vec_free(&r->vm->alloc, &f->y);
}

/* cells: of a gradient's leaves by those of the argument; the gradient has a leaf for each of x, for each result. */
static Outcome both_halves_of(Recorder *r, const ValueVec *x, u32 ny, ValueId *cells) {
  u32 *ranks = arena_alloc(&r->g->arena, sizeof *ranks * (x->count + 1));
  if (!ranks) return OUT_FAIL;
  for (u32 i = 0; i < x->count; i++) ranks[i] = value_type(r->g, x->data[i])->rank;
  for (u32 i = 0; i < ny && x->count; i += x->count)
    if (!symmetric_values(r->g, cells + i * x->count, x->count, ranks)) return OUT_FAIL;
  return OUT_GO;
}

/* hessian: fn is a gradient. */
static Outcome jacobian(Recorder *r, u32 transform, Av fn, u32 at, const Av *args, u32 nargs, Av *out) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  bool reverse = transform == TF_jacrev;
  Av *passed = rec_avs(r, nargs);
  Forward f = {0};
  ValueVec u = {0}, b = {0}, got = {0}, cells = {0};
  AvVec parts = {0};
  NodeId from = 0;
  if (!passed) return OUT_FAIL;
  memcpy(passed, args, sizeof *args * nargs);
  Outcome o = forward(r, fn, passed, nargs, &at, 1, &f);
  if (o == OUT_GO && !reverse) o = linear(r, &f, &u, &b, &from);
  u32 nx = f.x.count, ny = f.y.count;
  for (u32 i = 0; i < (reverse ? ny : nx) && o == OUT_GO; i++) /* all rows from one leaf */
    o = reverse ? rows(r, f.block, f.before, &f.x, f.y.data[i], &f.x, &got)
                : rows(r, f.block, from, &u, b.data[i], &u, &got);
  for (u32 i = 0; i < ny && o == OUT_GO; i++)
    for (u32 j = 0; j < nx && o == OUT_GO; j++) {
      ArrayType ty = float_type(g, f.y.data[i]), tx = float_type(g, f.x.data[j]);
      ValueId v = reverse ? assemble(r, got.data[i * nx + j], &ty, &tx, false)
                          : assemble(r, got.data[j * ny + i], &tx, &ty, true);
      if (!v || !vec_push(alloc, &cells, v))
        o = g->failed || r->failed ? OUT_FAIL : rec_stuck(r, REASON_raises, "a Jacobian of many axes");
    }
  if (o == OUT_GO && transform == TF_hessian) o = both_halves_of(r, &f.x, ny, cells.data);
  for (u32 i = 0; i < ny && o == OUT_GO; i++) { /* a tree like the argument in each leaf of the result */
    AvVec leaves = {0};
    for (u32 j = 0; j < nx && o == OUT_GO; j++) {
      Av a = av_num(r, cells.data[i * nx + j]);
      if (!a || !vec_push(alloc, &leaves, a)) o = OUT_FAIL;
    }
    u32 next = 0;
    Av tree = o == OUT_GO ? rec_tree_rebuild(r, passed[at], leaves.data, &next) : 0;
    if (o == OUT_GO && (!tree || !vec_push(alloc, &parts, tree))) o = OUT_FAIL;
    vec_free(alloc, &leaves);
  }
  u32 next = 0;
  if (o == OUT_GO) o = rec_made(r, rec_tree_rebuild(r, f.tree, parts.data, &next), out);
  forward_free(r, &f);
  vec_free(alloc, &u);
  vec_free(alloc, &b);
  vec_free(alloc, &got);
  vec_free(alloc, &cells);
  vec_free(alloc, &parts);
  return o;
}

/* Runs a recording that leaves the trace as it was when it fails. */
static Outcome undone(Recorder *r, const RecMark *mark, const RecState *state, Outcome o) {
  if (o != OUT_GO && o != OUT_FAIL) {
    u16 reason = r->reason;
    rec_rollback(r, mark);
    rec_restore(r, state);
    r->reason = reason;
  }
  return o;
}

Outcome record_jacobian(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out) {
  RecState state;
  i64 at;
  u32 kind = av_at(r, transform)->op;
  Av fn = av_item(r, transform, 0), argnum = av_item(r, transform, 1);
  if (!rec_literal(r, argnum, "argnum", &at)) return rec_stuck(r, REASON_literal_needed, "argnum must be known");
  if (at < -(i64)nargs || at >= nargs) return rec_stuck(r, REASON_raises, "argnum");
  if (at < 0) at += nargs;
  if (kind == TF_hessian && !(fn = av_transform(r, TF_jacrev, fn, argnum))) return OUT_FAIL; /* jacfwd of jacrev */
  RecMark mark = rec_mark(r);
  if (!rec_save(r, &state)) return OUT_FAIL;
  Outcome o = undone(r, &mark, &state, jacobian(r, kind, fn, (u32)at, args, nargs, out));
  rec_state_free(r, &state);
  return o;
}

Outcome record_make_jacobian(Recorder *r, u32 op, const Av *params, Av *out) {
  Av parts[2] = {av_force(r, params[0]), params[1] ? av_force(r, params[1]) : 0};
  if (!parts[0]) return OUT_FAIL;
  if (!parts[1] || av_is_hole(r, parts[1])) parts[1] = av_const(r, value_weak_i64(0));
  i64 at;
  if (!rec_literal(r, parts[1], "argnum", &at)) return rec_stuck(r, REASON_literal_needed, "argnum must be known");
  if (!av_is_callable(r, parts[0]))
    return rec_stuck(r, REASON_raises, "%s of %s", op_name(op), av_kind_text(r, parts[0]));
  const TransformKind made = op == OP_jacrev ? TF_jacrev : op == OP_jacfwd ? TF_jacfwd : TF_hessian;
  return rec_made(r, av_transform(r, made, parts[0], parts[1]), out);
}

static Outcome push_forward(Recorder *r, Av fn, Av xs, Av ts, Av *out) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  u32 n = av_at(r, xs)->count, *varied = arena_alloc(&g->arena, sizeof *varied * (n + 1));
  Av *passed = rec_avs(r, n);
  Forward f = {0};
  ValueVec u = {0}, b = {0};
  AvVec t = {0}, dy = {0};
  NodeId from = 0;
  Walk w = {.r = r};
  if (!varied || !passed) return OUT_FAIL;
  for (u32 i = 0; i < n; i++) {
    passed[i] = av_item(r, xs, i);
    varied[i] = i;
  }
  Outcome o = rec_tree_same(r, xs, ts) ? rec_tree_leaves(r, ts, &t)
                                       : rec_stuck(r, REASON_raises, "jvp: ts has another structure than xs");
  if (o == OUT_GO) o = forward(r, fn, passed, n, varied, n, &f);
  if (o == OUT_GO) o = linear(r, &f, &u, &b, &from);
  if (o == OUT_GO && !pull_walk_init(&w, r, f.block, from, u.data, u.count)) o = OUT_FAIL;
  for (u32 i = 0; i < t.count && o == OUT_GO; i++) {
    ArrayType want = float_type(g, f.x.data[i]);
    ValueId v = av_value(r, t.data[i]);
    const ArrayType *have = v ? value_type(g, v) : NULL;
    bool same = have && have->rank == want.rank;
    for (u32 d = 0; same && d < want.rank; d++) {
      i64 a, c;
      Dim m = value_type(g, v)->dims[d];
      if (size_same(&g->sizes, m, want.dims[d])) continue;
      same = size_hint(&g->sizes, m, &a) && size_hint(&g->sizes, want.dims[d], &c) && a == c &&
             guard_relation(&g->guards, &g->sizes, REL_eq, m, want.dims[d], "jvp", rec_here(r));
    }
    if (!same) o = rec_stuck(r, REASON_raises, "jvp: a tangent has not the shape of its argument");
    else if (!(v = graph_convert(g, v, want.dtype))) o = OUT_FAIL;
    else pull_give(&w, b.data[i], v);
  }
  if (o == OUT_GO) o = pull_walk_back(&w);
  for (u32 i = 0; i < u.count && o == OUT_GO; i++) {
    ValueId v = cotangent(r, &w, u.data[i]);
    Av a = v ? av_num(r, v) : 0;
    if (!a || !vec_push(alloc, &dy, a)) o = OUT_FAIL;
  }
  u32 next = 0;
  if (o == OUT_GO) {
    Av pair[2] = {f.tree, rec_tree_rebuild(r, f.tree, dy.data, &next)};
    o = pair[1] ? rec_made(r, av_list(r, pair, 2), out) : OUT_FAIL;
  }
  pull_walk_free(&w);
  forward_free(r, &f);
  vec_free(alloc, &u);
  vec_free(alloc, &b);
  vec_free(alloc, &t);
  vec_free(alloc, &dy);
  return o;
}

Outcome record_jvp(Recorder *r, u32 op, const Av *params, Av *out) {
  RecState state;
  Av xs, ts;
  (void)op;
  Outcome opened = rec_tree(r, params[1], &xs);
  if (opened == OUT_GO) opened = rec_tree(r, params[2], &ts);
  if (opened != OUT_GO) return opened;
  if (!av_is_list(r, xs) || !av_is_list(r, ts) || av_at(r, xs)->count == 0)
    return rec_stuck(r, REASON_raises, "jvp: xs and ts must be lists");
  RecMark mark = rec_mark(r);
  if (!rec_save(r, &state)) return OUT_FAIL;
  Outcome o = undone(r, &mark, &state, push_forward(r, params[0], xs, ts, out));
  rec_state_free(r, &state);
  return o;
}
