/* trace.c — the module `trace`: capture explained and counted; jit and eager as function values. */
#include "stdlib/args.h"
#include "stdlib/stdlib.h"
#include "tracer/tracer.h"

static WeftStatus need_fn(Vm *vm, u32 op, Value f) {
  return f.kind == V_FN ? WEFT_OK : args_error(vm, op, 0, f, "a function");
}

WeftStatus eager_trace_explain(Vm *vm, Value *args, Value *out) {
  TRY(need_fn(vm, OP_trace_explain, args[0]));
  if (!tracer_of(vm)) return vm_error(vm, EK_unsupported, "trace.explain: not supported: this VM has no tracer");
  const List *xs = args[1].list;
  return tracer_explain(vm, args[0], xs->items, xs->count, out);
}

WeftStatus eager_trace_stats(Vm *vm, Value *args, Value *out) { return tracer_stats(vm, args[0], out); }

/* consumes settings */
static WeftStatus wrap(Vm *vm, u32 op, TransformKind kind, Value *args, Value settings, Value *out) {
  if (need_fn(vm, op, args[0]) != WEFT_OK) {
    value_drop(vm, settings);
    return WEFT_ERROR;
  }
  return fn_transform(vm, kind, value_keep(args[0]), settings, out) ? WEFT_OK : WEFT_ERROR;
}

WeftStatus eager_eager(Vm *vm, Value *args, Value *out) { return wrap(vm, OP_eager, TF_eager, args, value_nil(), out); }

WeftStatus eager_jit(Vm *vm, Value *args, Value *out) {
  Value settings;
  bool whole = false;
  u32 device = 0;
  TRY(args_bool(vm, OP_jit, 1, args[1], &whole));
  if (args_given(args[2])) TRY(args_choice(vm, OP_jit, 2, args[2], vm->device_names, &device));
  if (!list_new(vm, 2, &settings)) return WEFT_ERROR;
  if (!list_push(vm, &settings, value_bool(whole)) ||
      !list_push(vm, &settings, args_given(args[2]) ? value_keep(args[2]) : value_nil())) {
    value_drop(vm, settings);
    return WEFT_ERROR;
  }
  return wrap(vm, OP_jit, TF_jit, args, settings, out);
}

WeftStatus eager_trace_strict(Vm *vm, Value *args, Value *out) {
  return wrap(vm, OP_trace_strict, TF_strict, args, value_nil(), out);
}

WeftStatus eager_trace_export(Vm *vm, Value *args, Value *out) {
  TRY(need_fn(vm, OP_trace_export, args[0]));
  return tracer_export(vm, args[0], args[1].list->items, args[1].list->count, out);
}

/* The parameter that a position or a name means. */
static WeftStatus parameter(Vm *vm, u32 op, const Fn *f, Value arg, u32 *out) {
  const Proto *p = f->code->proto;
  i64 at = -1;
  if (arg.kind == V_TEXT) {
    Name name = name_find(&vm->names, arg.text->data, arg.text->len);
    for (u32 i = 0; i < p->nparams && at < 0; i++)
      if (name && p->params[i].name == name) at = i;
    if (at < 0) return vm_error(vm, EK_value, "%s: %s is no parameter of the function", op_name(op), arg.text->data);
  } else {
    TRY(args_int(vm, op, 1, arg, &at));
    if (at < 0 || at >= p->nparams)
      return vm_error(vm, EK_value, "%s: the function has no parameter %lld: it has %u", op_name(op), (long long)at,
                      p->nparams);
  }
  *out = (u32)at;
  return WEFT_OK;
}

static WeftStatus mark(Vm *vm, u32 op, Value *args, bool dynamic, Value *out) {
  TRY(need_fn(vm, op, args[0]));
  if (args[0].fn->kind != FN_CLOSURE) return args_error(vm, op, 0, args[0], "a function written in Weft");
  i64 axis = 0;
  u32 arg = 0;
  TRY(parameter(vm, op, args[0].fn, args[1], &arg));
  TRY(args_int(vm, op, 2, args[2], &axis));
  if (axis < -16 || axis >= 16)
    return vm_error(vm, EK_value, "%s: axis %lld: arrays have at most 16", op_name(op), (long long)axis);
  TRY(tracer_mark(vm, args[0].fn, arg, (i32)axis, dynamic));
  *out = value_keep(args[0]);
  return WEFT_OK;
}

WeftStatus eager_trace_mark_static(Vm *vm, Value *args, Value *out) {
  return mark(vm, OP_trace_mark_static, args, false, out);
}
WeftStatus eager_trace_mark_dynamic(Vm *vm, Value *args, Value *out) {
  return mark(vm, OP_trace_mark_dynamic, args, true, out);
}
