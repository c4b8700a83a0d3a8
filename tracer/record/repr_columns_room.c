/* repr_columns_room.c — lists that grow in a loop of a derivative, or of another body that cannot be left.
 *
 * Elsewhere a region is left where the room of a list is used up, and comes again with more. In the body of a construct
 * there is no way out, so the loop is recorded twice. The first recording has no room for anything; what it counts of
 * the lists is run on its own (Tracer.list_room) and tells how long they get. The second one begins with that much.
 * Example: in `for i in 0..n { if x[i] > 0 { out += (f(x[i]),) } }` a loop that only looks at x[i] counts first. */
#include "tracer/record/repr_columns_room.h"

#include <string.h>

#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_keyed.h"
#include "tracer/tracer.h"

/* ---- where lists stand ------------------------------------------------------------------------------------------- */

static u32 room_locs(const RecLoop *l) { return l->locs.count + l->inner_count; }
static RecLoc *room_loc(RecLoop *l, u32 i) {
  return i < l->locs.count ? &l->locs.data[i] : &l->inner[i - l->locs.count];
}

/* The list that stands there, or in what stands there. 0: none. */
static Av grown_list(Recorder *r, const RecLoc *loc) {
  Av a = *rec_loc_at(r, loc);
  for (u32 d = 0; d < loc->depth && a; d++) {
    a = av_force(r, a);
    a = a && av_is_open(r, a) && loc->path[d] < av_at(r, a)->count ? av_item(r, a, loc->path[d]) : 0;
  }
  a = a ? av_force(r, a) : 0;
  if (!a || !av_in_columns(r, a)) return 0;
  const Value kind = av_at(r, a)->konst;
  return kind.kind == V_TEXT || rows_ragged(kind) || rows_keyed(kind) ? 0 : a;
}

/* Depth is that of the path. */
static Av with_list(Recorder *r, Av tree, const RecLoc *loc, u32 depth, Av list) {
  if (depth == loc->depth) return list;
  Av *parts = (tree = av_force(r, tree)) ? rec_avs(r, av_at(r, tree)->count) : NULL;
  if (!parts) return 0;
  u32 n = av_at(r, tree)->count;
  for (u32 i = 0; i < n; i++) parts[i] = av_item(r, tree, i);
  Av *item = &parts[loc->path[depth]];
  return (*item = with_list(r, *item, loc, depth + 1, list)) ? rec_with_parts(r, tree, parts, n) : 0;
}

/* The outermost loop of this body that holds a list. */
static RecLoc *grows_at(Recorder *r, Av list) {
  RecLoc *found = NULL;
  for (RecLoop *l = r->loop; l; l = l->outer)
    for (u32 i = 0; i < room_locs(l); i++) {
      RecLoc *loc = room_loc(l, i);
      Av now = loc->cell ? r->cells.data[loc->index].value : r->frames.data[l->depth].regs[loc->index];
      for (u32 d = 0; d < loc->depth && now; d++)
        now = av_is_open(r, now) && loc->path[d] < av_at(r, now)->count ? av_item(r, now, loc->path[d]) : 0;
      if (now == list) found = loc;
    }
  return found;
}

/* ---- columns with more room -------------------------------------------------------------------------------------- */

/* Room for `more` items behind the room that there is; in all columns of a tree. */
static Outcome longer(Recorder *r, Av *columns, Dim more) {
  AvVec leaves = {0};
  Graph *g = r->g;
  bool ok = carry_leaves(r, *columns, &leaves);
  for (u32 i = 0; i < leaves.count && ok; i++) {
    ValueId both[2] = {av_value(r, leaves.data[i]), 0};
    ArrayType t = *value_type(g, both[0]);
    if (!t.rank) { /* of a range */
      vec_free(&r->vm->alloc, &leaves);
      return rec_stuck(r, REASON_loop_list, "a list that counts grows");
    }
    t.dims[0] = more;
    both[1] = graph_full(g, t.dtype, t.rank, t.dims, 0);
    GraphAttr attrs[2] = {attr_list(0, 2), attr_int(1, 0)};
    ValueId v = both[1] ? graph_op(g, OP_concat, both, 2, attrs, 2, NULL) : 0;
    ok = v && (leaves.data[i] = av_num(r, v));
  }
  u32 next = 0;
  if (ok) *columns = carry_rebuild(r, *columns, leaves.data, &next);
  vec_free(&r->vm->alloc, &leaves);
  return ok && *columns && !r->failed ? OUT_GO : OUT_FAIL;
}

static Outcome check_places(Recorder *r, Av columns, Av last) {
  AvVec leaves = {0};
  Dim checked = DIM_NONE;
  Outcome o = carry_leaves(r, columns, &leaves) ? OUT_GO : OUT_FAIL;
  for (u32 i = 0; i < leaves.count && o == OUT_GO; i++) {
    Dim room = value_type(r->g, av_value(r, leaves.data[i]))->dims[0];
    if (checked != DIM_NONE && size_same(&r->g->sizes, checked, room)) continue;
    ValueId operands[2] = {av_value(r, last), graph_size(r->g, checked = room)};
    o = operands[0] && operands[1] ? rec_check(r, CHECK_index, operands, 2) : OUT_FAIL;
  }
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

Outcome rec_room_take(Recorder *r, Av rows, Av *columns, u32 k, Av last) {
  if (r->abstract || r->recur || !r->tracer->list_room || !MECHANISM(r->vm, lists_have_room))
    return rec_stuck(r, REASON_construct_body, "a list that grows in the body of a construct");
  RecLoc *loc = grows_at(r, rows);
  if (!loc) return longer(r, columns, k);
  loc->grows = true;
  return loc->sized ? check_places(r, *columns, last) : OUT_GO;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static bool unsized(const RecLoc *loc) { return loc->grows && !loc->sized; }

static u32 carried_result(const Graph *g, NodeId loop, ValueId v) {
  const GraphNode *x = graph_node_at(g, loop);
  return v >= x->result_first && v - x->result_first < x->carried ? v - x->result_first : UINT32_MAX;
}

static Outcome read_lists(Recorder *r, RecLoop *l, ListRoom *q) {
  Graph *g = r->g;
  Outcome o = OUT_GO;
  for (u32 i = 0; i < room_locs(l) && o == OUT_GO; i++) {
    if (!unsized(room_loc(l, i))) continue;
    AvVec leaves = {0};
    Av list = grown_list(r, room_loc(l, i));
    u32 at = list ? carried_result(g, q->loop, av_value(r, av_item(r, list, 1))) : UINT32_MAX;
    if (at == UINT32_MAX) {
      o = rec_stuck(r, REASON_construct_body, "a list that grows in the body of a construct");
    } else if (!vec_push(&r->vm->alloc, &q->counts, at) || !carry_leaves(r, av_item(r, list, 0), &leaves)) {
      o = OUT_FAIL;
    }
    for (u32 k = 0; k < leaves.count && o == OUT_GO; k++)
      if ((at = carried_result(g, q->loop, av_value(r, leaves.data[k]))) != UINT32_MAX) q->items[at] = 1;
    vec_free(&r->vm->alloc, &leaves);
  }
  return o;
}

Outcome rec_room_ask(Recorder *r, RecLoop *l, NodeId made, bool *again) {
  u32 lists = 0, carried = graph_node_at(r->g, made)->carried, next = 0;
  for (u32 i = 0; i < room_locs(l); i++) lists += unsized(room_loc(l, i));
  *again = lists > 0;
  if (!lists) return OUT_GO;
  ListRoom q = {.loop = made, .items = mem_alloc_zero(&r->vm->alloc, carried)};
  Outcome o = q.items ? read_lists(r, l, &q) : OUT_FAIL;
  if (o == OUT_GO) o = r->tracer->list_room(r, &q);
  for (u32 i = 0; i < room_locs(l) && o == OUT_GO; i++) {
    RecLoc *loc = room_loc(l, i);
    if (!unsized(loc)) continue;
    loc->sized = true;
    loc->always = q.always.data[next];
    loc->room = q.grows.data[next++];
  }
  if (q.items) mem_free(&r->vm->alloc, q.items, carried);
  vec_free(&r->vm->alloc, &q.counts);
  vec_free(&r->vm->alloc, &q.grows);
  vec_free(&r->vm->alloc, &q.always);
  return o;
}

static Outcome put_list(Recorder *r, const RecLoc *loc, Av columns, Av count, Value kind) {
  Av list = columns && count ? rec_new_rows(r, columns, count, kind) : 0;
  Av *at = rec_loc_at(r, loc), tree = list ? with_list(r, *at, loc, 0, list) : 0;
  if (!tree || r->failed) return OUT_FAIL;
  *at = tree;
  return OUT_GO;
}

Outcome rec_room_make(Recorder *r, RecLoop *l) {
  Outcome o = OUT_GO;
  for (u32 i = 0; i < room_locs(l) && o == OUT_GO; i++) {
    RecLoc *loc = room_loc(l, i);
    if (!loc->sized) continue;
    Av list = grown_list(r, loc);
    i64 n;
    if (!list) return rec_stuck(r, REASON_construct_body, "a list that grows in the body of a construct");
    Av columns = av_item(r, list, 0), count = av_item(r, list, 1);
    Value kind = av_at(r, list)->konst;
    Dim room;
    if (!av_known_int(r, count, &n) || n) {
      if ((o = av_dim(r, count, &room) ? longer(r, &columns, loc->room) : OUT_FAIL) != OUT_GO) break;
      loc->total = loc->always ? size_add(&r->g->sizes, room, loc->room) : DIM_NONE;
    } else {
      room = size_add(&r->g->sizes, loc->room, ROWS_ROOM);
      columns = room == DIM_NONE ? 0 : rec_columns_new(r, kind, room);
      loc->total = loc->always ? loc->room : DIM_NONE;
    }
    o = columns ? put_list(r, loc, columns, count, kind) : OUT_FAIL;
  }
  return o;
}

Outcome rec_room_tell(Recorder *r, RecLoop *l) {
  Outcome o = OUT_GO;
  for (u32 i = 0; i < room_locs(l) && o == OUT_GO; i++) {
    const RecLoc *loc = room_loc(l, i);
    Av list = loc->sized && loc->always && loc->total != DIM_NONE ? grown_list(r, loc) : 0;
    if (!list) continue;
    ValueId n = graph_size(r->g, loc->total);
    o = n ? put_list(r, loc, av_item(r, list, 0), av_num(r, n), av_at(r, list)->konst) : OUT_FAIL;
  }
  return o;
}
