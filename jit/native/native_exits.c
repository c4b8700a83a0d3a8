/* native_exits.c — what a native function passes where it leaves (see native.h). */
#include "jit/native/native.h"

#include <string.h>

typedef struct ExitWalk {
  Native *n;
  NExit *exit;
  bool first; /* decides what is passed, and where it goes */
  bool failed;
  u32 depth; /* of rows within rows */
} ExitWalk;

static bool passed(const NExit *e, ValueId v) {
  for (u32 i = 0; i < e->binds.count; i++)
    if (e->binds.data[i].value == v) return true;
  return false;
}

/* The elements of an array go to memory that the plan makes; those of an exit that is not taken lie there too. */
static void pass_elements(Native *n, NExit *e, ValueId v, const NSplit *s) {
  Allocator *alloc = n->c->alloc;
  const ArrayType t = *value_type(n->g, v);
  u32 at = 0, number = (u32)(e - n->exits.data) + 1;
  for (; at < n->kept.count; at++) {
    const NKept *k = &n->kept.data[at];
    if (k->exit != number && k->type.dtype == t.dtype && k->shape->rank == s->rank &&
        memcmp(k->shape->dims, s->dims, sizeof *s->dims * s->rank) == 0)
      break;
  }
  if (at == n->kept.count &&
      !vec_push(alloc, &n->kept, (NKept){.slot = plan_slot_for(n->c->plan, v), .type = t, .shape = s})) {
    native_no_memory(n);
    return;
  }
  NKept *k = &n->kept.data[at];
  k->exit = number;
  bool ok = vec_push(alloc, &e->binds, (RegionBind){v, k->slot}) && vec_push(alloc, &e->passed, v);
  for (u32 i = 0; ok && i < s->count; i++) ok = vec_push(alloc, &e->slots, k->slot | PLAN_ELEMENT);
  if (!ok) native_no_memory(n);
}

static void exit_value(void *ctx, u32 v);

/* The graph interpreter makes it again, of what is passed. */
static void exit_row(ExitWalk *w, ValueId v) {
  Native *n = w->n;
  NodeId d = value_node(n->g, v);
  if (w->depth > 40 || !d || !native_rows_ready(n, v)) {
    w->failed = true;
    return;
  }
  if (w->first && passed(w->exit, v)) return;
  if (w->first && !vec_push(n->c->alloc, &w->exit->binds, (RegionBind){v, BIND_NODE})) native_no_memory(n);
  w->depth++;
  for (u32 i = 0; i < graph_node_at(n->g, d)->operand_count; i++) exit_value(w, node_operand(n->g, d, i));
  node_size_values(n->g, d, exit_value, w);
  w->depth--;
}

static void exit_value(void *ctx, u32 v) {
  ExitWalk *w = ctx;
  Native *n = w->n;
  u8 origin = n->g->values.data[v].origin;
  if (w->failed || origin == GV_const || origin == GV_size || value_is_token(n->g, v)) return;
  NValue *x = native_value(n, v);
  if ((x->row && !x->buffer) || (x->buffer && n->buffers.data[x->buffer - 1].loose)) {
    exit_row(w, v);
    return;
  }
  if (!x->ir && !x->buffer && !x->split && !native_force(n, v)) { /* it stands outside */
    const ValueInfo *info = value_info(n->c, v);
    if (info->slot == NO_SLOT && !(value_node(n->g, v) && native_outside(n, v))) {
      w->failed = true;
      return;
    }
    if (w->first && !vec_push(n->c->alloc, &w->exit->outer, v)) native_no_memory(n);
    return;
  }
  x = native_value(n, v);
  if (x->buffer) {
    NBuffer *b = &n->buffers.data[x->buffer - 1];
    /* as it was before the loop: a variable still has it */
    if (b->version != x->version && b->from == v && b->written && !b->temp && value_info(n->c, v)->slot != NO_SLOT) {
      b->from_stays = true;
      if (w->first && !vec_push(n->c->alloc, &w->exit->outer, v)) native_no_memory(n);
      return;
    }
    if (b->version != x->version) {
      w->failed = true;
      return;
    }
    for (u32 i = 0; i < w->exit->binds.count; i++) /* it lies elsewhere since the exit was decided */
      w->failed |= w->exit->binds.data[i].value == v && w->exit->binds.data[i].slot != b->slot;
    if (w->first && !passed(w->exit, v) && !vec_push(n->c->alloc, &w->exit->binds, (RegionBind){v, b->slot}))
      native_no_memory(n);
    return;
  }
  if (w->first && x->split) {
    if (!passed(w->exit, v)) pass_elements(n, w->exit, v, x->split);
    return;
  }
  if (w->first) {
    if (passed(w->exit, v)) return;
    u32 slot = plan_slot_for(n->c->plan, v);
    if (!vec_push(n->c->alloc, &w->exit->binds, (RegionBind){v, slot}) ||
        !vec_push(n->c->alloc, &w->exit->slots, slot) || !vec_push(n->c->alloc, &w->exit->passed, v))
      native_no_memory(n);
  }
}

/* The number by which the function leaves for a graph exit, and what it passes. 0: that cannot be done here. */
u32 native_exit(Native *n, u32 graph_exit, u32 **values, u32 *count) {
  if (n->self) { /* pure: its outermost call leaves */
    *values = NULL;
    *count = 0;
    return 1;
  }
  NExit *e = NULL;
  u32 number = 0;
  for (u32 i = 0; i < n->exits.count && !number; i++)
    if (n->exits.data[i].exit == graph_exit) number = i + 1;
  bool first = !number;
  if (first) {
    if (!vec_push(n->c->alloc, &n->exits, (NExit){.exit = graph_exit})) return native_no_memory(n), 0;
    number = n->exits.count;
  }
  e = &n->exits.data[number - 1];
  *count = 0;
  *values = NULL;
  /* the region as a whole may have taken what the plan's exit names */
  if (graph_exit != NO_EXIT && (graph_exit != n->c->exit || !n->node)) {
    ExitWalk w = {.n = n, .exit = e, .first = first};
    graph_exit_values(n->g, graph_exit, exit_value, &w);
    if (w.failed || n->why) return native_bail(n, "an exit needs a value that is not there any more"), 0;
    *count = e->slots.count;
    *values = arena_alloc(&n->c->arena, sizeof **values * (*count + 1));
    if (!*values) return native_no_memory(n), 0;
    u32 at = 0;
    for (u32 i = 0; i < e->passed.count; i++) {
      const NValue *x = native_value(n, e->passed.data[i]);
      u32 words = x->split ? x->split->count : 1;
      if ((!x->split && !x->ir) || at + words > *count)
        return native_bail(n, "an exit needs a value that is not there yet"), 0;
      for (u32 k = 0; k < words; k++) (*values)[at++] = x->split ? x->split->ir[k] : x->ir;
    }
    if (at != *count) return native_bail(n, "an exit needs an array of another size"), 0;
  }
  return number;
}

/* Can the exit be taken here: are its arrays as they are now, its numbers known? Without adding anything. */
typedef struct ReadyWalk {
  Native *n;
  bool ready;
} ReadyWalk;

static void exit_ready(void *ctx, u32 v) {
  ReadyWalk *w = ctx;
  Native *n = w->n;
  u8 origin = n->g->values.data[v].origin;
  if (!w->ready || origin == GV_const || origin == GV_size || value_is_token(n->g, v)) return;
  const NValue *x = native_value(n, v);
  if (x->row && !x->buffer) w->ready = native_rows_ready(n, v);
  else if (x->buffer) w->ready = n->buffers.data[x->buffer - 1].version == x->version;
  else if (!x->ir && !x->split) w->ready = native_outside(n, v) || native_force(n, v);
}

bool native_exit_ready(Native *n, u32 graph_exit) {
  ReadyWalk w = {n, true};
  if (graph_exit != NO_EXIT && (graph_exit != n->c->exit || !n->node))
    exit_values(&n->g->exits, graph_exit, exit_ready, &w);
  return w.ready;
}
