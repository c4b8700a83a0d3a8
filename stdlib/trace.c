/* trace.c — the module `trace`: capture explained and counted; jit and eager as function values. */
#include "stdlib/args.h"
#include "stdlib/stdlib.h"
#include "tracer/tracer.h"

static WeftStatus need_fn(Vm *vm, u32 op, Value f) { return f.kind == V_FN ? WEFT_OK : args_error(vm, op, 0, f, "a function"); }

WeftStatus eager_trace_explain(Vm *vm, Value *args, Value *out) {
  TRY(need_fn(vm, OP_trace_explain, args[0]));
  if (!tracer_of(vm)) return vm_error(vm, EK_unsupported, "trace.explain: not supported: this VM has no tracer");
  const List *xs = args[1].list;
  return tracer_explain(vm, args[0], xs->items, xs->count, out);
}

WeftStatus eager_trace_stats(Vm *vm, Value *args, Value *out) { return tracer_stats(vm, args[0], out); }

static WeftStatus wrap(Vm *vm, u32 op, TransformKind kind, Value *args, Value settings, Value *out) { /* consumes settings */
  if (need_fn(vm, op, args[0]) != WEFT_OK) {
    value_drop(vm, settings);
    return WEFT_ERROR;
  }
  return fn_transform(vm, kind, value_keep(args[0]), settings, out) ? WEFT_OK : WEFT_ERROR;
}

WeftStatus eager_eager(Vm *vm, Value *args, Value *out) { return wrap(vm, OP_eager, TF_eager, args, value_nil(), out); }

WeftStatus eager_jit(Vm *vm, Value *args, Value *out) {
  if (args_given(args[2])) return vm_error(vm, EK_unsupported, "jit: not supported: device=");
  Value settings;
  bool whole = false;
  TRY(args_bool(vm, OP_jit, 1, args[1], &whole));
  if (!list_new(vm, 1, &settings)) return WEFT_ERROR;
  if (!list_push(vm, &settings, value_bool(whole))) {
    value_drop(vm, settings);
    return WEFT_ERROR;
  }
  return wrap(vm, OP_jit, TF_jit, args, settings, out);
}
