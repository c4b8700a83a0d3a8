/* host_run.c — a host function called in the middle of a region (see graph.h, vm.h Pending).
 *
 * The region may go on behind the call when nothing that it relies on can have changed: the host did not look at the
 * program (then it would have been left before), kept none of the arrays that it was given (they would be written in
 * place), the objects whose fields were read still say the same word, and the result is of the kind that was relied
 * on. */
#include "lang/mechanisms.h"
#include "tracer/tracer.h"

enum { ARGS_MOST = 64 };

bool graph_calls_host(const Graph *g) {
  for (u32 i = 1; i < g->hosts.count; i++)
    if (g->hosts.data[i].kind == HOST_function && g->hosts.data[i].fn) return true;
  return false;
}

static bool result_fits(const Graph *g, NodeId n, Value v) {
  const GraphNode *x = &g->nodes.data[n];
  if (x->result_count < 2) return !g->hosts.data[x->host].is_nil || v.kind == V_NIL;
  const ArrayType *t = value_type(g, x->result_first + 1);
  if (value_is_scalar(v)) return t->rank == 0 && v.dtype == t->dtype && ((v.flags & VF_WEAK) != 0) == t->weak;
  if (v.kind != V_ARRAY || !t->rank || array_rank(v.array) != t->rank || array_dtype(v.array) != t->dtype ||
      array_device(v.array) != t->device)
    return false;
  for (u32 d = 0; d < t->rank; d++) {
    i64 k;
    if (size_is_const(&g->sizes, t->dims[d], &k) && array_dims(v.array)[d] != k) return false;
  }
  return true;
}

static bool same(const Value *a, const Value *b) {
  return a && b && value_tag(*a) == value_tag(*b) && a->bits == b->bits;
}

/* Would the object say the fields that the region has read once more? What it says now is not kept: the region
 * lives on what it was given. */
static bool fields_hold(Vm *vm, const GuardSet *gs, SourceId of, Value v) {
  Value now;
  if (v.kind != V_HANDLE || !v.handle->type->flatten || !MECHANISM(vm, flattened_behind_calls)) return true;
  if (handle_flatten(vm, v.handle, &now) != WEFT_OK) return vm_error_forget(vm), false;
  bool holds = true;
  for (u32 i = 1; i < gs->sources.items.count && holds; i++) {
    const Source *s = &gs->sources.items.data[i];
    if (s->kind == SRC_field && s->parent == of) holds = same(value_field(now, s->index), value_field(v, s->index));
  }
  value_drop(vm, now);
  return holds;
}

/* The host guards of the region, once more. */
static bool words_hold(Vm *vm, const Graph *g) {
  const Frame *f = &vm->frames[vm->frame_count - 1];
  for (u32 i = 0; i < g->guards.guards.count; i++) {
    const Guard *x = &g->guards.guards.data[i];
    Value v;
    if (x->kind == GUARD_host && (!source_read(vm, &g->guards, f, x->source, &v) || !x->host(x->host_ctx, v, x->word) ||
                                  !fields_hold(vm, &g->guards, x->source, v)))
      return false;
  }
  return true;
}

static u32 refs_of(Value v) { return v.kind == V_ARRAY ? v.array->head.refs : 0; }

HostCallEnd host_call_in(Vm *vm, Region *region, NodeId n, Pending *p, const Value *args, u32 nargs, Value *out) {
  const Graph *g = region->graph;
  u32 before[ARGS_MOST];
  for (u32 i = 0; i < nargs && i < ARGS_MOST; i++) before[i] = refs_of(args[i]);
  p->outer = vm->pending;
  vm->pending = p;
  WeftStatus status = host_call(vm, g, g->nodes.data[n].host, args, nargs, out);
  vm->pending = p->outer;
  bool fits = status == WEFT_OK && result_fits(g, n, *out), kept = nargs > ARGS_MOST;
  for (u32 i = 0; i < nargs && i < ARGS_MOST && !p->left; i++) kept |= refs_of(args[i]) > before[i];
  if (fits && !p->left && !kept && words_hold(vm, g)) return HOST_CALL_KEPT;
  vm->hosted = (Hosted){.returned = status == WEFT_OK, .raised = status != WEFT_OK, .left = p->left,
                        .failed = p->failed,
                        .misfit = status == WEFT_OK && !fits, .value = status == WEFT_OK ? *out : value_nil()};
  *out = value_nil();
  return HOST_CALL_LEAVES;
}
