/* abstract.c — calls on types alone: the recorder runs a function on values of the right types and its graph is thrown
 * away. The constructs ask so, before they run, what their functions give. */
#include <stdio.h>
#include <string.h>

#include "tracer/record/abstract.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_run.h"

/* A zero of the type; arrays are stretched from one element. False: not known (no error) or memory (error). */
bool abstract_number(Recorder *r, const ArrayType *t, Value *out) {
  Vm *vm = r->vm;
  i64 dims[TYPE_MAX_RANK], strides[TYPE_MAX_RANK] = {0};
  for (u32 d = 0; d < t->rank; d++)
    if (!size_hint(&r->g->sizes, t->dims[d], &dims[d]) || dims[d] < 0) return false;
  if (t->rank == 0 && t->dtype != DT_c128) {
    *out = num_convert_unchecked(value_i64(0), t->dtype);
    out->flags = t->weak ? VF_WEAK : 0;
    return true;
  }
  Value one;
  if (array_new_zero(vm, t->dtype, 0, dims, &one) != WEFT_OK) return false;
  bool ok = array_view(vm, one.array, 0, t->rank, dims, strides, out) == WEFT_OK;
  if (ok && t->weak) out->flags |= VF_WEAK;
  value_drop(vm, one);
  return ok;
}

bool abstract_value(Recorder *r, Av a, u32 depth, Value *out) {
  if (depth > (u32)r->vm->tunables.trace_nest || !a || !(a = av_force(r, a))) return false;
  const Repr *p = av_repr(r, a);
  return p->example && p->example(r, a, depth, out);
}

WeftStatus record_abstract(Vm *vm, Value f, const Value *args, u32 nargs, AbstractCall *out) {
  *out = (AbstractCall){.result = value_hole()};
  if (!vm->frame_count || !vm->tier_state) {
    snprintf(out->why, sizeof out->why, "the host calls it");
    return WEFT_OK;
  }
  Value *values = mem_alloc(&vm->alloc, sizeof *values * (nargs + 1));
  if (!values) return vm_error_memory(vm);
  Frame origin = vm->frames[vm->frame_count - 1];
  values[0] = f;
  for (u32 i = 0; i < nargs; i++) values[i + 1] = args[i];
  origin.base = values;
  Recorder rec = {.vm = vm, .origin = &origin, .tracer = vm->tier_state, .abstract = true};
  Recorder *r = &rec;
  bool raised = vm->error.raised;
  r->g = graph_new(&vm->alloc, "abstract");
  if (!r->g) {
    mem_free(&vm->alloc, values, sizeof *values * (nargs + 1));
    return vm_error_memory(vm);
  }
  r->g->names = &vm->names;
  r->g->ambient = vm->ambient;
  Outcome o = OUT_FAIL;
  Av result = 0;
  (void)av_new(r, (AbsVal){0});
  if (r->failed || !rec_push(r, origin.code, 0, 0)) goto done;
  rec_top(r)->pc = origin.pc;
  if (exit_begin(&r->g->exits, EXIT_return, 0, 0, (Span){0}) != 0) { /* where checks would go */
    r->failed = true;
    goto done;
  }
  r->safe_exit = r->g->entry_exit = 0;
  Av *params = rec_avs(r, nargs + 1);
  for (u32 i = 0; i <= nargs; i++) {
    SourceId s = params ? source_root(&r->g->guards, SRC_reg, i) : 0;
    if (!params) goto done;
    params[i] = s ? av_lazy(r, s, values[i]) : 0;
    if (!params[i]) goto done;
  }
  o = rec_call(r, params[0], params + 1, NULL, nargs, &result);
done:
  if (o == OUT_GO) {
    out->known = abstract_value(r, result, 0, &out->result);
    if (!out->known) snprintf(out->why, sizeof out->why, "sizes of what it gives depend on data");
  } else {
    memcpy(out->why, r->why, sizeof out->why);
  }
  if (!out->known) out->result = value_hole();
  const Graph *g = r->g;
  bool refused = r->failed || g->failed || g->guards.failed || g->exits.failed || g->sizes.failed ||
                 (o == OUT_FAIL && !r->why[0]);
  if (refused && !vm->error.raised) (void)vm_error_memory(vm);
  if (vm->error.raised && !raised) {
    value_drop(vm, out->result);
    *out = (AbstractCall){.result = value_hole()};
  }
  recorder_free(r);
  graph_free(r->g);
  mem_free(&vm->alloc, values, sizeof *values * (nargs + 1));
  return vm->error.raised && !raised ? WEFT_ERROR : WEFT_OK;
}
