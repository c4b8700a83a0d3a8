/* record_vjp.c — vjp in a trace: the function is recorded on variables, and its pullback is a way back over those
 * nodes, recorded where it is called. Such a pullback lives in the trace alone: where it would have to leave it,
 * the trace is made again with vjp as a break (Recorder.pulls). */
#include <string.h>

#include "hop/grad.h"
#include "hop/walk.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"
#include "tracer/record/record_tree.h"

static Outcome vjp_forward(Recorder *r, Av fn, Av xs, Av *out) {
  Graph *g = r->g;
  u32 n = av_at(r, xs)->count;
  BlockId block = g->at;
  NodeId before = g->blocks.data[block].last;
  Av *args = rec_avs(r, n), y = 0;
  ValueVec variables = {0};
  AvVec leaves = {0};
  Outcome o = args ? OUT_GO : OUT_FAIL;
  for (u32 i = 0; i < n && o == OUT_GO; i++) o = pull_variables(r, av_item(r, xs, i), &variables, &args[i]);
  Av varied = o == OUT_GO ? av_list(r, args, n) : 0;
  if (o == OUT_GO && !varied) o = OUT_FAIL;
  if (o == OUT_GO) {
    r->differentiating++;
    o = rec_call(r, fn, args, NULL, n, &y);
    r->differentiating--;
  }
  if (o == OUT_GO) o = rec_tree(r, y, &y);
  if (o == OUT_GO && g->at != block)
    o = rec_stuck(r, REASON_construct_body, "the derivative of a function that ends elsewhere");
  if (o == OUT_GO) o = rec_tree_leaves(r, y, &leaves);
  if (o == OUT_GO && leaves.count == 0)
    o = rec_stuck(r, REASON_raises, "vjp of a function that gives %s", av_kind_text(r, y));
  if (o == OUT_GO) {
    Av trees[2] = {y, varied}, place[2] = {av_const(r, value_i64(block)), av_const(r, value_i64(before))};
    Av parts[2] = {av_list(r, trees, 2), place[0] && place[1] ? av_list(r, place, 2) : 0};
    Av pair[2] = {y, av_transform(r, TF_pullback, parts[0], parts[1])};
    o = pair[1] ? rec_made(r, av_list(r, pair, 2), out) : OUT_FAIL;
    r->pulls = true;
  }
  vec_free(&r->vm->alloc, &variables);
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

Outcome record_vjp(Recorder *r, u32 op, const Av *params, Av *out) {
  RecState state;
  Av xs = av_force(r, params[1]);
  (void)op;
  if (!xs || !av_is_list(r, xs)) return rec_stuck(r, REASON_raises, "vjp");
  u32 n = av_at(r, xs)->count;
  if (n == 0) return rec_stuck(r, REASON_raises, "vjp of %u arguments", n);
  if (r->no_pulls) return rec_stuck(r, REASON_no_rule, "vjp whose pullback leaves the graph");
  RecMark mark = rec_mark(r);
  if (!rec_save(r, &state)) return OUT_FAIL;
  Outcome o = vjp_forward(r, params[0], xs, out);
  rec_end_try(r, &mark, &state, o);
  return o;
}

/* A cotangent must have the shape of its result. */
static Outcome seed(Recorder *r, Walk *w, ValueId y, ValueId ct) {
  Graph *g = r->g;
  const ArrayType want = *value_type(g, y), have = *value_type(g, ct);
  GuardDims dims;
  RuleError err = {.text = "the cotangent has another shape than the result"};
  rec_dims_init(r, &dims, "vjp");
  bool same = want.rank == have.rank;
  for (u32 d = 0; same && d < want.rank; d++) same = dim_equal(&dims.base, have.dims[d], want.dims[d]);
  if (!same) return rec_dims_no(r, &dims, "vjp", &err);
  if (!pull_is_active(w, y)) return OUT_GO;
  if (dtype_kind(have.dtype) > dtype_kind(want.dtype))
    return rec_stuck(r, REASON_no_rule, "vjp: a cotangent of %s", dtype_name(have.dtype));
  if (!(ct = graph_convert(g, ct, want.dtype))) return OUT_FAIL;
  pull_give(w, y, ct);
  return OUT_GO;
}

static Outcome pull(Recorder *r, Av transform, Av ct, Av *out) {
  Av trees = av_item(r, transform, 0), place = av_item(r, transform, 1), y = av_item(r, trees, 0),
      varied = av_item(r, trees, 1);
  i64 block = 0, before = 0;
  ValueVec variables = {0};
  AvVec leaves = {0}, cts = {0};
  Walk w = {.r = r};
  u32 n = av_at(r, varied)->count, first = 0;
  Av *grads = rec_avs(r, n);
  if (!grads || !av_known_int(r, av_item(r, place, 0), &block) || !av_known_int(r, av_item(r, place, 1), &before))
    return OUT_FAIL;
  Outcome o = rec_tree(r, ct, &ct);
  if (o != OUT_GO) return o;
  if (!rec_tree_same(r, y, ct))
    return rec_stuck(r, REASON_raises, "vjp: the cotangent has another structure than the result");
  o = rec_tree_leaves(r, varied, &leaves);
  bool ok = o == OUT_GO;
  for (u32 i = 0; i < leaves.count && ok; i++) ok = vec_push(&r->vm->alloc, &variables, av_value(r, leaves.data[i]));
  leaves.count = 0;
  if (o == OUT_GO) o = rec_tree_leaves(r, y, &leaves);
  if (o == OUT_GO) o = rec_tree_leaves(r, ct, &cts);
  ok = ok && o == OUT_GO && pull_walk_init(&w, r, (BlockId)block, (NodeId)before, variables.data, variables.count);
  if (o == OUT_GO && !ok) o = OUT_FAIL;
  for (u32 i = 0; i < leaves.count && o == OUT_GO; i++)
    o = seed(r, &w, av_value(r, leaves.data[i]), av_value(r, cts.data[i]));
  if (o == OUT_GO) o = pull_walk_back(&w);
  for (u32 i = 0; i < n && o == OUT_GO; i++) {
    leaves.count = 0;
    o = rec_tree_leaves(r, av_item(r, varied, i), &leaves);
    if (o == OUT_GO && !(grads[i] = pull_gradients(r, &w, av_item(r, varied, i), variables.data + first, leaves.count)))
      o = OUT_FAIL;
    first += leaves.count;
  }
  if (o == OUT_GO) o = rec_made(r, av_list(r, grads, n), out);
  pull_walk_free(&w);
  vec_free(&r->vm->alloc, &variables);
  vec_free(&r->vm->alloc, &leaves);
  vec_free(&r->vm->alloc, &cts);
  return o;
}

Outcome record_pull(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out) {
  RecState state;
  Av place = av_force(r, av_item(r, transform, 1));
  if (!place) return OUT_FAIL;
  if (av_at(r, transform)->source || !av_is_list(r, place))
    return rec_stuck(r, REASON_no_rule, "a pullback that was made outside the graph");
  if (nargs != 1) return rec_stuck(r, REASON_raises, "a pullback of %u arguments", nargs);
  RecMark mark = rec_mark(r);
  if (!rec_save(r, &state)) return OUT_FAIL;
  Outcome o = pull(r, transform, args[0], out);
  rec_end_try(r, &mark, &state, o);
  return o;
}
