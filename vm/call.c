/* call.c — binding arguments to parameters, and calls of what is no closure (see call.h). */
#include "vm/call.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "parser/parser.h"
#include "vm/elsewhere.h"
#include "vm/fp.h"
#include "vm/registers.h"
#include "vm/scalar.h"
#include "vm/stack.h"


static Value call_take(Value *v) {
  Value r = *v;
  *v = value_nil();
  return r;
}

/* ---- what was called -------------------------------------------------------------------------- */

/* The identifier that stands before the parenthesis of the call whose span is the current instruction's. */
static u32 called_name(const Vm *vm, char *out, u32 cap) {
  const Frame *f = &vm->frames[vm->frame_count - 1];
  const Proto *p = f->code->proto;
  if (f->pc >= p->ncode) return 0;
  Span at = p->spans[f->pc];
  const SourceFile *file = sources_get(&vm->sources, at.file);
  if (!file || at.start + at.len > file->len) return 0;
  const char *s = file->text + at.start;
  u32 end = 0;
  while (end < at.len && (isalnum((u8)s[end]) || s[end] == '_' || s[end] == '.')) end++;
  u32 begin = end;
  while (begin > 0 && s[begin - 1] != '.') begin--;
  if (end == at.len || s[end] != '(' || end - begin >= cap || end == begin) return 0;
  memcpy(out, s + begin, end - begin);
  out[end - begin] = 0;
  return end - begin;
}

/* A built-in calls what it was given. */
static WeftStatus given_no_function(Vm *vm, Value v) {
  char name[64];
  const u32 len = vm->frame_count ? called_name(vm, name, sizeof name) : 0;
  return vm_error(vm, EK_type, "%s%sneeds a function, got %s", len ? name : "", len ? ": " : "",
                  value_type_phrase(v));
}

WeftStatus call_not_function(Vm *vm, Value v) {
  char name[64];
  u32 len = vm->frame_count ? called_name(vm, name, sizeof name) : 0;
  const char *type = value_type_phrase(v);
  if (len && op_by_name(name, len) != OP_none)
    return vm_error(vm, EK_type, "'%s' is %s here, not a function: it hides the built-in '%s'", name, type,
                    name);
  if (len) return vm_error(vm, EK_type, "'%s' is %s, not a function", name, type);
  return vm_error(vm, EK_type, "this is %s, not a function", type);
}

/* ---- closures --------------------------------------------------------------------------------- */

static const char *proto_name(const Vm *vm, const Proto *p) {
  return p->name ? name_text(&vm->names, p->name) : "the function";
}

/* What a call may name, for its error: "x, axis". */
typedef struct ParamList {
  char text[160];
  size_t len;
  bool full;
} ParamList;

static void list_param(Vm *vm, ParamList *l, Name name) {
  enum { REST = 8 }; /* room for ", …" */
  const char *text = name_text(&vm->names, name);
  if (!*text || *text == '_' || l->full) return;
  const char *comma = l->len ? ", " : "";
  l->full = l->len + strlen(comma) + strlen(text) + REST > sizeof l->text;
  l->len += (size_t)snprintf(l->text + l->len, sizeof l->text - l->len, "%s%s", comma, l->full ? "…" : text);
}

static WeftStatus unknown_keyword(Vm *vm, const char *fn, Name name, const char *nearest, const ParamList *params) {
  const char *text = name_text(&vm->names, name);
  if (nearest) return vm_error(vm, EK_type, "%s: there is no parameter '%s'; did you mean '%s'?", fn, text, nearest);
  return vm_error(vm, EK_type, "%s: there is no parameter '%s'%s%s", fn, text, params->len ? "; there are " : "",
                  params->text);
}

/* Keeps the parameter that the wrong name is likeliest to mean: its word in other languages, else the nearest one. */
static void consider_parameter(Vm *vm, Name wrong, Name parameter, u32 *best, const char **nearest) {
  const char *text = name_text(&vm->names, wrong), *other = name_text(&vm->names, parameter);
  u32 len = name_len(&vm->names, wrong);
  const char *meant = parser_foreign_keyword(text, len);
  u32 d = meant && strcmp(meant, other) == 0 ? 0
                                             : name_distance(text, len, other, name_len(&vm->names, parameter), *best);
  if (d >= *best) return;
  *best = d;
  *nearest = other;
}

/* Above every distance that is near: a word of other languages is taken whatever its length is. */
static u32 start_best(Vm *vm, Name wrong) {
  u32 near = name_near(name_len(&vm->names, wrong));
  return near ? near : 1;
}

static WeftStatus bind_name(Vm *vm, const Proto *p, Name name, Value *arg, Value *params) {
  const char *nearest = NULL;
  ParamList names = {.len = 0};
  u32 best = start_best(vm, name);
  for (u32 k = 0; k < p->nparams; k++) {
    if ((i32)k == p->rest_index || !p->params[k].name) continue;
    if (p->params[k].name != name) {
      list_param(vm, &names, p->params[k].name);
      consider_parameter(vm, name, p->params[k].name, &best, &nearest);
      continue;
    }
    if (params[k].kind != V_HOLE)
      return vm_error(vm, EK_type, "%s: '%s' is given twice", proto_name(vm, p), name_text(&vm->names, name));
    params[k] = call_take(arg);
    return WEFT_OK;
  }
  return unknown_keyword(vm, proto_name(vm, p), name, nearest, &names);
}

static WeftStatus too_many(Vm *vm, u32 op, u32 given) {
  const OpInfo *info = &vm->op_table[op];
  u32 n = 0;
  while (n < info->nparams && !info->params[n].keyword_only) n++;
  return vm_error(vm, EK_type, "%s: takes %s%u argument%s, got %u%s", info->name,
                  n && info->params[n - 1].has_default ? "at most " : "", n, n == 1 ? "" : "s", given,
                  op_takes_shape(op) ? "; a shape is one argument, as (3, 4)" : "");
}

static WeftStatus missing_param(Vm *vm, const Proto *p, const Value *params, u32 k) {
  if (k == 1 && p->nparams == 2 && p->params[0].name && p->params[1].name && params[0].kind == V_LIST &&
      params[0].list->count == 2)
    return vm_error(vm, EK_type, "%s: the argument '%s' is missing; a list of two is taken apart by ((%s, %s)) => …",
                    proto_name(vm, p), name_text(&vm->names, p->params[1].name),
                    name_text(&vm->names, p->params[0].name), name_text(&vm->names, p->params[1].name));
  if (p->params[k].name)
    return vm_error(vm, EK_type, "%s: the argument '%s' is missing", proto_name(vm, p),
                    name_text(&vm->names, p->params[k].name));
  return vm_error(vm, EK_type, "%s: argument %u is missing", proto_name(vm, p), k + 1);
}

WeftStatus bind_closure(Vm *vm, const Proto *p, Args args, Value *params) {
  for (u32 k = 0; k < p->nparams; k++) params[k] = value_hole();
  u32 positional = 0;
  Value rest = value_nil();
  if (p->rest_index >= 0 && !list_new(vm, 0, &rest)) goto fail;
  for (u32 i = 0; i < args.count; i++) {
    if (args.names && args.names[i]) continue;
    if (positional < p->npositional) {
      params[positional++] = call_take(&args.values[i]);
    } else if (p->rest_index >= 0) {
      if (!value_boxed(vm, args.values[i]) || !list_push(vm, &rest, call_take(&args.values[i]))) goto fail;
    } else {
      u32 given = 0;
      for (u32 k = 0; k < args.count; k++) given += !(args.names && args.names[k]);
      if (p->op) (void)too_many(vm, p->op, given);
      else
        (void)vm_error(vm, EK_type, "%s: takes %u argument%s, got %u", proto_name(vm, p), p->npositional,
                       p->npositional == 1 ? "" : "s", given);
      goto fail;
    }
  }
  for (u32 i = 0; args.names && i < args.count; i++)
    if (args.names[i] && bind_name(vm, p, args.names[i], &args.values[i], params) != WEFT_OK) goto fail;
  for (u32 k = 0; k < p->nparams; k++) {
    if (params[k].kind != V_HOLE || p->params[k].has_default || (i32)k == p->rest_index) continue;
    (void)missing_param(vm, p, params, k);
    goto fail;
  }
  if (p->rest_index >= 0) params[p->rest_index] = rest;
  return WEFT_OK;
fail:
  value_drop(vm, rest);
  drop_run(vm, args.values, args.count);
  drop_run(vm, params, p->nparams);
  return WEFT_ERROR;
}

/* ---- built-ins -------------------------------------------------------------------------------- */

static const Name *param_names(Vm *vm, u32 op) {
  if (!vm->op_params) {
    vm->op_params = mem_alloc_zero(&vm->alloc, sizeof(Name) * OP_COUNT * OP_MAX_PARAMS);
    if (!vm->op_params) return NULL;
  }
  Name *names = vm->op_params + (size_t)op * OP_MAX_PARAMS;
  const OpInfo *info = &vm->op_table[op];
  for (u32 k = 0; k < info->nparams && !names[k]; k++)
    if (!(names[k] = name_intern(&vm->names, info->params[k].name, info->params[k].len))) return NULL;
  return names;
}

static WeftStatus bind_op_name(Vm *vm, u32 op, Name name, Value *arg, Value *params) {
  const OpInfo *info = &vm->op_table[op];
  const Name *names = param_names(vm, op);
  if (!names) return vm_error_memory(vm);
  for (u32 k = 0; k < info->nparams; k++) {
    if (names[k] != name || info->params[k].rest) continue;
    if (params[k].kind != V_HOLE)
      return vm_error(vm, EK_type, "%s: '%s' is given twice", info->name, name_text(&vm->names, name));
    params[k] = call_take(arg);
    return WEFT_OK;
  }
  const char *nearest = NULL;
  ParamList list = {.len = 0};
  u32 best = start_best(vm, name);
  for (u32 k = 0; k < info->nparams; k++) {
    if (info->params[k].rest) continue;
    consider_parameter(vm, name, names[k], &best, &nearest);
    list_param(vm, &list, names[k]);
  }
  return unknown_keyword(vm, info->name, name, nearest, &list);
}

/* Arguments in the order of the signature; params has room for all. */
static WeftStatus bind_builtin(Vm *vm, u32 op, Args args, Value *params) {
  const OpInfo *info = &vm->op_table[op];
  u32 at = 0, positional = 0;
  for (u32 k = 0; k < info->nparams; k++) params[k] = value_hole();
  for (u32 i = 0; i < args.count; i++) {
    if (args.names && args.names[i]) continue;
    positional++;
    if (at < info->nparams && info->params[at].rest) {
      if (params[at].kind == V_HOLE && !list_new(vm, 4, &params[at])) goto fail;
      if (!list_push(vm, &params[at], call_take(&args.values[i]))) goto fail;
    } else if (at < info->nparams && !info->params[at].keyword_only) {
      params[at++] = call_take(&args.values[i]);
    } else {
      for (u32 k = i + 1; k < args.count; k++) positional += !(args.names && args.names[k]);
      (void)too_many(vm, op, positional);
      goto fail;
    }
  }
  for (u32 i = 0; args.names && i < args.count; i++)
    if (args.names[i] && bind_op_name(vm, op, args.names[i], &args.values[i], params) != WEFT_OK) goto fail;
  for (u32 k = 0; k < info->nparams; k++) {
    if (params[k].kind != V_HOLE || info->params[k].has_default) continue;
    if (info->params[k].rest) {
      if (!list_new(vm, 0, &params[k])) goto fail;
      continue;
    }
    (void)vm_error(vm, EK_type, "%s: the argument '%.*s' is missing", info->name, (int)info->params[k].len,
                   info->params[k].name);
    goto fail;
  }
  return WEFT_OK;
fail:
  drop_run(vm, args.values, args.count);
  drop_run(vm, params, info->nparams);
  return WEFT_ERROR;
}

static inline bool is_plain(Vm *vm, u32 op) {
  OpHook *h = &vm->ops[op];
  const OpInfo *info = &vm->op_table[op];
  if (UNLIKELY(!h->plain)) {
    h->plain = 1;
    for (u32 k = 0; k < info->nparams; k++)
      if (info->params[k].rest || info->params[k].keyword_only) h->plain = 2;
  }
  return h->plain == 1;
}

/* `array(l)` of numbers in a column is the column. */
static bool take_column(Vm *vm, Value *list) {
  const Packed *p = list->kind == V_LIST && list_is_packed(list->list) ? list->list->packed : NULL;
  Value column;
  if (!p || p->kind.kind != V_NUM || p->kind.aux || device_default(vm) != DEV_CPU) return true;
  if (!packed_column(vm, list->list, 0, list->list->count, &column)) return false;
  value_drop(vm, *list);
  column.flags &= (u8)~VF_WEAK;
  *list = column;
  return true;
}

/* Does it look at a list in columns itself? */
static inline bool takes_columns(u32 op, u32 count) { return (op == OP_len && count == 1) || op == OP_join; }

WeftStatus call_builtin(Vm *vm, u32 op, Value *args, u32 count, Value *out) {
  const OpInfo *info = &vm->op_table[op];
  WeftStatus status;
  if (op == OP_array && count == 1 && UNLIKELY(!take_column(vm, args))) {
    drop_run(vm, args, count);
    return WEFT_ERROR;
  }
  if (UNLIKELY(!takes_columns(op, count) && !values_boxed(vm, args, count))) {
    drop_run(vm, args, count);
    return WEFT_ERROR;
  }
  if (count == info->nparams && LIKELY(is_plain(vm, op))) { /* straight from the window */
    status = op_called(vm, op, args, out);
    drop_run(vm, args, count);
    return status;
  }
  Value params[OP_MAX_PARAMS];
  if (bind_builtin(vm, op, (Args){args, NULL, count}, params) != WEFT_OK) return WEFT_ERROR;
  status = op_called(vm, op, params, out);
  drop_run(vm, params, info->nparams);
  return status;
}

/* ---- dtypes as functions ---------------------------------------------------------------------- */

static bool convert_number(Value v, u32 dtype, Value *out) {
  if (v.kind != V_NUM || dtype_kind(v.dtype) > DK_FLOAT || dtype_kind(dtype) > DK_FLOAT) return false;
  if (dtype_bytes(dtype) == 2 || dtype_bytes(v.dtype) == 2) return false; /* f16, bf16: by the kernel */
  if (dtype_kind(dtype) == DK_INT) {
    if (value_is_weak(v) && !num_fits(v, dtype)) return false;
    if (dtype_kind(v.dtype) == DK_FLOAT) {
      f64 f = num_as_f64(v);
      if (!(f > -2147483648.0 && f < 2147483648.0) || (dtype != DT_i64 && dtype != DT_i32)) return false;
    }
  }
  *out = num_convert_unchecked(v, dtype);
  out->flags = 0;
  return true;
}

static WeftStatus call_dtype(Vm *vm, u32 dtype, Args args, Value *out) {
  if (args.count != 1 || (args.names && args.names[0])) {
    drop_run(vm, args.values, args.count);
    return vm_error(vm, EK_type, "%s: takes 1 argument, got %u", dtype_name(dtype), args.count);
  }
  if (convert_number(args.values[0], dtype, out)) return WEFT_OK;
  Value plain = value_untracked(args.values[0]);
  if (!value_is_numeric(plain) && plain.kind != V_TEXT && plain.kind != V_LIST && plain.kind != V_RANGE) {
    const char *got = value_type_name(plain);
    drop_run(vm, args.values, 1);
    return vm_error(vm, EK_type, "%s: needs a number, an array or a list of numbers, got %s", dtype_name(dtype), got);
  }
  Value params[2] = {call_take(&args.values[0]), value_dtype(dtype)};
  bool sequence = params[0].kind == V_LIST || params[0].kind == V_RANGE;
  WeftStatus status = vm_op(vm, sequence ? OP_array : OP_astype, params, out);
  drop_run(vm, params, 2);
  return status;
}

/* ---- everything but closures ------------------------------------------------------------------ */

u64 host_word(Value v) {
  u64 word = (u64)v.kind + 1;
  if (v.kind == V_NUM) word |= (u64)v.dtype << 8 | (u64)((v.flags & VF_WEAK) != 0) << 16;
  if (v.kind == V_ARRAY)
    word |= (u64)array_dtype(v.array) << 8 | (u64)array_rank(v.array) << 24 | (u64)array_device(v.array) << 32;
  return word;
}

/* Is the program called from outside, and this function by its bytecode? Then nothing of it is on the C stack. */
static bool can_wait(const Vm *vm) { return vm->native_depth == 1 && vm->frame_count && !vm->pending; }

static WeftStatus call_host(Vm *vm, HostFn *host, Args args, Value *out) {
  for (u32 i = 0; args.names && i < args.count; i++)
    if (args.names[i]) return vm_error(vm, EK_type, "%s: takes no arguments by name", host->name);
  if (UNLIKELY(vm->rehearses)) return vm_error(vm, EK_limit, "%s: not called twice", host->name);
  if (UNLIKELY(!cstack_has(CSTACK_CALL))) return vm_error_stack(vm);
  if (UNLIKELY(host->suspends) && !can_wait(vm))
    return vm_error(vm, EK_unsupported, "%s: a program cannot wait inside of what a built-in function, an import or "
                    "the host calls", host->name);
  *out = value_nil();
  vm->native_depth++;
  CStack stack = cstack_now(); /* the host may go on on another stack meanwhile */
  WeftStatus status = host->call(vm, host->ctx, args.values, args.count, out);
  cstack_leave(stack);
  vm->native_depth--;
  /* nobody knows how long the host took: the next safepoint looks at the clock */
  if (vm->limits.deadline > 0) vm_poll_soon(vm);
  if (UNLIKELY(status == WEFT_SUSPENDED) && host->suspends) {
    vm->suspends = true;
    return WEFT_ERROR;
  }
  if (status != WEFT_OK && !vm->error.raised) return vm_error(vm, EK_host, "%s failed", host->name);
  if (status != WEFT_OK) return WEFT_ERROR;
  if (host->gives != host_word(*out)) host->gives = host->gives ? HOST_GIVES_VARIES : host_word(*out);
  return WEFT_OK;
}

static WeftStatus call_transform(Vm *vm, Fn *f, Args args, Value *out) {
  static const char *const names[TF_COUNT] = {"grad", "value_and_grad", "vmap", "jit", "eager", "checkpoint",
                                              "custom_vjp", "vjp", "jacfwd", "jacrev", "hessian", "trace.strict"};
  TransformFn call = vm->transforms[f->transform];
  if (!call)
    return vm_error(vm, EK_unsupported, "%s: not supported", names[f->transform] ? names[f->transform] : "transform");
  return call(vm, f, args.values, args.names, args.count, out);
}

WeftStatus call_native(Vm *vm, Value fn, Args args, Value *out) {
  WeftStatus status;
  const bool builtin = fn.kind == V_FN && fn.fn->kind == FN_BUILTIN, one = args.count == 1;
  const bool makes = one && (fn.kind == V_DTYPE || (builtin && fn.fn->op == OP_array)),
             takes = builtin && takes_columns(fn.fn->op, args.count);
  if (UNLIKELY((makes && !take_column(vm, args.values)) || (!takes && !values_boxed(vm, args.values, args.count)))) {
    drop_run(vm, args.values, args.count);
    return WEFT_ERROR;
  }
  if (fn.kind == V_DTYPE) return call_dtype(vm, fn.dtype, args, out);
  if (fn.kind != V_FN) {
    status = call_not_function(vm, fn);
  } else if (fn.fn->kind == FN_BUILTIN) {
    Value params[OP_MAX_PARAMS];
    if (!args.names) return call_builtin(vm, fn.fn->op, args.values, args.count, out);
    if (bind_builtin(vm, fn.fn->op, args, params) != WEFT_OK) return WEFT_ERROR;
    status = op_called(vm, fn.fn->op, params, out);
    drop_run(vm, params, vm->op_table[fn.fn->op].nparams);
    return status;
  } else if (fn.fn->kind == FN_HOST) {
    status = call_host(vm, fn.fn->host, args, out);
  } else {
    status = call_transform(vm, fn.fn, args, out);
  }
  drop_run(vm, args.values, args.count);
  return status;
}

WeftStatus vm_call_native(Vm *vm, Value fn, Value *args, u32 nargs, Value *out) {
  return call_native(vm, fn, (Args){args, NULL, nargs}, out);
}

/* ---- gathering spreads ------------------------------------------------------------------------ */

static WeftStatus push_arg(Vm *vm, Gathered *g, Value v, Name name) {
  if (vec_push(&vm->alloc, &g->names, name)) {
    if (vec_push(&vm->alloc, &g->values, v)) return WEFT_OK;
    g->names.count--;
  }
  value_drop(vm, v);
  return vm_error_memory(vm);
}

static WeftStatus spread_arg(Vm *vm, Gathered *g, Value seq) {
  if (seq.kind == V_RECORD) { /* fields become arguments by name */
    for (u32 i = 0; i < seq.record->shape->count; i++)
      if (!vm_item(vm, i) ||
          push_arg(vm, g, value_keep(seq.record->items[i]), seq.record->shape->keys[i]) != WEFT_OK) return WEFT_ERROR;
    return WEFT_OK;
  }
  u64 count, pos = 0;
  if (vm_seq_open(vm, seq, &count) != WEFT_OK) return WEFT_ERROR;
  while (pos < count) {
    Value item;
    if (!vm_item(vm, g->values.count) || vm_seq_next(vm, seq, &pos, &item) != WEFT_OK ||
        push_arg(vm, g, item, 0) != WEFT_OK)
      return WEFT_ERROR;
  }
  return WEFT_OK;
}

WeftStatus args_gather(Vm *vm, const Desc *d, Value *window, bool skip, Gathered *out) {
  *out = (Gathered){0};
  for (u32 i = skip; i < d->argc; i++) {
    Value v = call_take(&window[1 + i]);
    if (d->spread && d->spread[i]) {
      WeftStatus status = spread_arg(vm, out, v);
      value_drop(vm, v);
      if (status != WEFT_OK) return status;
    } else if (push_arg(vm, out, v, d->names ? d->names[i] : 0) != WEFT_OK) {
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

void args_free(Vm *vm, Gathered *g) {
  for (u32 i = 0; i < g->values.count; i++) value_drop(vm, g->values.data[i]);
  vec_free(&vm->alloc, &g->values);
  vec_free(&vm->alloc, &g->names);
}

/* ---- calls from C ----------------------------------------------------------------------------- */

/* One argument for each parameter, in their order? */
static bool binds_plainly(const Proto *p, Args args) {
  if (args.names || p->rest_index >= 0 || args.count != p->nparams || args.count != p->npositional) return false;
  for (u32 i = 0; i < args.count; i++)
    if (args.values[i].kind == V_HOLE) return false;
  return true;
}

static WeftStatus call_closure(Vm *vm, Value fn, Args args, u16 flags, Value *out) {
  const Proto *p = fn.fn->code->proto;
  u32 floor = vm->frame_count;
  if (LIKELY(binds_plainly(p, args))) {
    if (!frame_push(vm, value_keep(fn), fn.fn->code, 0, flags)) {
      drop_run(vm, args.values, args.count);
      return WEFT_ERROR;
    }
    Value *base = vm->frames[vm->frame_count - 1].base;
    for (u32 i = 0; i < args.count; i++) base[i] = args.values[i];
    return vm_run(vm, floor, out);
  }
  Value small[8], *params = p->nparams <= COUNT_OF(small) ? small : mem_alloc(&vm->alloc, sizeof *params * p->nparams);
  if (!params) {
    drop_run(vm, args.values, args.count);
    return vm_error_memory(vm);
  }
  WeftStatus status = bind_closure(vm, p, args, params);
  if (status == WEFT_OK) {
    if (frame_push(vm, value_keep(fn), fn.fn->code, 0, flags)) {
      memcpy(vm->frames[vm->frame_count - 1].base, params, sizeof *params * p->nparams);
      status = vm_run(vm, floor, out);
    } else {
      drop_run(vm, params, p->nparams);
      status = WEFT_ERROR;
    }
  }
  if (params != small) mem_free(&vm->alloc, params, sizeof *params * p->nparams);
  return status;
}

WeftStatus vm_call_named(Vm *vm, Value fn, Value *args, const Name *names, u32 nargs, Value *out) {
  u16 flags = FRAME_NATIVE_CALL;
  Args a = {args, names, nargs};
  if (UNLIKELY(!cstack_has(CSTACK_CALL))) {
    drop_run(vm, args, nargs);
    return vm_error_stack(vm);
  }
  if (vm->native_depth >= vm->limits.depth) {
    drop_run(vm, args, nargs);
    return vm_limit(vm, LIMIT_depth, "too deep a recursion: %u calls stand inside each other", vm->limits.depth);
  }
  if (vm_safepoint(vm) != WEFT_OK) { /* what calls a function for each item has no other one */
    drop_run(vm, args, nargs);
    return WEFT_ERROR;
  }
  while (fn.kind == V_FN && fn.fn->kind == FN_TRANSFORM && fn.fn->transform == TF_eager) {
    flags |= FRAME_EAGER;
    fn = fn.fn->inner;
  }
  if (fn.kind != V_FN && fn.kind != V_DTYPE && vm->frame_count) {
    drop_run(vm, args, nargs);
    return given_no_function(vm, fn);
  }
  u64 fp = fp_enter(vm);
  vm->native_depth++;
  WeftStatus status = fn.kind == V_FN &&
                      fn.fn->kind == FN_CLOSURE ? call_closure(vm, fn, a, flags, out) : call_native(vm, fn, a, out);
  vm->native_depth--;
  fp_leave(fp);
  return status;
}

WeftStatus vm_call(Vm *vm, Value fn, Value *args, u32 nargs, Value *out) {
  return vm_call_named(vm, fn, args, NULL, nargs, out);
}

WeftStatus vm_call_kept(Vm *vm, Value fn, const Value *args, const Name *names, u32 nargs, Value *out) {
  Value few[8], *held = nargs <= COUNT_OF(few) ? few : mem_alloc(&vm->alloc, sizeof *held * nargs);
  if (!held) return vm_error_memory(vm);
  for (u32 i = 0; i < nargs; i++) held[i] = value_keep(args[i]);
  WeftStatus status = vm_call_named(vm, fn, held, names, nargs, out);
  if (held != few) mem_free(&vm->alloc, held, sizeof *held * nargs);
  return status;
}
