/* values.c — values, arrays and host functions across the API (see weft.h). */
#include "api/inner.h"

#include <string.h>

#include "stdlib/stdlib.h"

Value weft_value_of(const WeftValue *value) { return value->value; }

const char *text_hold(WeftVM *w, const char *s, size_t len) {
  u64 before = overdraft_begin(w->vm); /* an error must be told when memory is short */
  w->text.len = 0;
  w->text.failed = false;
  buf_put(&w->text, s, len);
  overdraft_end(w->vm, before);
  return w->text.failed ? "" : buf_text(&w->text);
}

bool value_refuse(WeftVM *w, const WeftValue *value) {
  if (value && !w->vm->error.raised)
    (void)vm_error_at(w->vm, EK_host, (Span){0}, "the host gives a value of another VM, or one that it released");
  return false;
}

WeftStatus value_hand_over(WeftVM *w, Value v, WeftValue **out) {
  if (v.kind == V_TRACKED && !(w->vm->ambient & AMBIENT_TAPE)) { /* of a tape that has ended: what it holds */
    Value plain = value_keep(value_untracked(v));
    value_drop(w->vm, v);
    v = plain;
  }
  WeftValue *value = value_boxed(w->vm, v) ? vm_small_alloc(w->vm, sizeof *value) : NULL;
  if (!value) {
    value_drop(w->vm, v);
    return vm_error_memory(w->vm);
  }
  value->value = v; /* one by one: a whole one is zeroed first, which takes as long as the rest */
  value->count = 1;
  value->vm = w;
  value->prev = NULL;
  value->next = w->values;
  if (w->values) w->values->prev = value;
  w->values = value;
  *out = value;
  return WEFT_OK;
}

void weft_release_all(WeftVM *w, WeftValue *value) {
  if (value->prev) value->prev->next = value->next;
  else w->values = value->next;
  if (value->next) value->next->prev = value->prev;
  value->vm = NULL;
  value_drop(w->vm, value->value);
  vm_small_free(w->vm, value, sizeof *value);
}

WeftValue *weft_retain(WeftVM *w, WeftValue *value) {
  if (!w || !value_ok(w, value)) return NULL;
  value->count++;
  return value;
}

void weft_release(WeftVM *w, WeftValue *value) {
  if (w && value && value_ok(w, value) && --value->count == 0) weft_release_all(w, value);
}

/* ---- text of values ------------------------------------------------------------------------------------- */

/* No text is longer, and a tree that is shared has more leaves than anybody waits for. */
static bool shown_ends(void *ctx) {
  const WeftVM *w = ctx;
  return w->text.len > UINT32_MAX || vm_ends(w->vm);
}

/* What came before, where no program runs, is meant for the next one: only what comes meanwhile ends the text, and
 * that, too, is left to the next one. */
static void show_until_ended(WeftVM *w, Value v) {
  Vm *vm = w->vm;
  const bool idle = !vm->frame_count, earlier = idle && vm->interrupted;
  const f64 deadline = vm->limits.deadline;
  if (earlier) vm->interrupted = 0;
  if (idle) vm->limits.deadline = 0;
  w->text.ends = shown_ends;
  w->text.ctx = w;
  format_value(vm, v, false, &w->text);
  w->text.ends = NULL;
  if (earlier) vm->interrupted = 1;
  vm->limits.deadline = deadline;
}

const char *weft_show(WeftVM *w, WeftValue *value) {
  if (!usable(w) || (value && !value_ok(w, value))) return "";
  ON_STACK_OF(w);
  w->text.len = 0;
  w->text.failed = false;
  bool plain = value && (value->value.kind <= V_NUM || value->value.kind == V_ARRAY || value->value.kind == V_TEXT);
  if (value && !plain && vm_catch_up(w->vm) != WEFT_OK) return ""; /* a ref may be in it */
  if (value) show_until_ended(w, value->value);
  return w->text.failed ? "" : buf_text(&w->text);
}

const char *weft_type(WeftVM *w, WeftValue *value) {
  return usable(w) && value_ok(w, value) ? value_type_name(value->value) : "";
}

const char *weft_describe(WeftVM *w, WeftValue *value) {
  if (!usable(w) || !value_ok(w, value)) return "";
  w->text.len = 0;
  w->text.failed = false;
  Value v = value->value;
  if (v.kind == V_NUM) buf_printf(&w->text, "%s%s[]", value_is_weak(v) ? "weak " : "", dtype_name(v.dtype));
  else if (v.kind == V_ARRAY) {
    Array *a = v.array;
    buf_printf(&w->text, "%s%s[", value_is_weak(v) ? "weak " : "", dtype_name(array_dtype(a)));
    for (u32 d = 0; d < array_rank(a); d++) buf_printf(&w->text, "%s%lld", d ? ", " : "", (long long)array_dims(a)[d]);
    buf_puts(&w->text, "]");
  } else {
    buf_puts(&w->text, value_type_name(v));
  }
  return w->text.failed ? "" : buf_text(&w->text);
}

/* ---- making ------------------------------------------------------------------------------------------------ */

WeftStatus weft_nil(WeftVM *w, WeftValue **out) {
  return usable(w) && out ? value_hand_over(w, value_nil(), out) : WEFT_MISUSE;
}
WeftStatus weft_bool(WeftVM *w, bool b, WeftValue **out) {
  return usable(w) && out ? value_hand_over(w, value_bool(b), out) : WEFT_MISUSE;
}
WeftStatus weft_int(WeftVM *w, int64_t i, WeftValue **out) {
  return usable(w) && out ? value_hand_over(w, value_i64(i), out) : WEFT_MISUSE;
}
WeftStatus weft_float(WeftVM *w, double f, WeftValue **out) {
  return usable(w) && out ? value_hand_over(w, value_f64(f), out) : WEFT_MISUSE;
}

WeftStatus weft_text(WeftVM *w, const char *utf8, size_t length, WeftValue **out) {
  if (!usable(w) || !out || (!utf8 && length)) return WEFT_MISUSE;
  make_room(w);
  Value v;
  if (!utf8_valid(utf8, length)) return vm_error(w->vm, EK_value, "the host's text is not UTF-8");
  if (!text_new(w->vm, utf8 ? utf8 : "", length, &v)) return WEFT_ERROR;
  return value_hand_over(w, v, out);
}

WeftStatus weft_list(WeftVM *w, WeftValue *const *items, size_t count, WeftValue **out) {
  if (!usable(w) || !out || (!items && count) || count > UINT32_MAX || !values_ok(w, items, count)) return WEFT_MISUSE;
  make_room(w);
  Value v;
  if (!list_new(w->vm, (u32)count, &v)) return WEFT_ERROR;
  for (size_t i = 0; i < count; i++)
    if (!list_push(w->vm, &v, value_keep(items[i]->value))) {
      value_drop(w->vm, v);
      return WEFT_ERROR;
    }
  return value_hand_over(w, v, out);
}

WeftStatus weft_record(WeftVM *w, const char *const *keys, WeftValue *const *items, size_t count, WeftValue **out) {
  if (!usable(w) || !out || ((!items || !keys) && count) || !values_ok(w, items, count)) return WEFT_MISUSE;
  make_room(w);
  for (size_t i = 0; i < count; i++)
    if (!keys[i] || !*keys[i] || !utf8_valid(keys[i], strlen(keys[i]))) return WEFT_MISUSE;
  Value v;
  if (!record_new(w->vm, &v)) return WEFT_ERROR;
  for (size_t i = 0; i < count; i++) {
    Name key = name_counted(&w->vm->names, keys[i], strlen(keys[i]));
    if (!key) (void)vm_error_memory(w->vm);
    const bool set = key && record_set(w->vm, &v, key, value_keep(items[i]->value));
    if (key) name_drop(&w->vm->names, key);
    if (!set) {
      value_drop(w->vm, v);
      return WEFT_ERROR;
    }
  }
  return value_hand_over(w, v, out);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

WeftStatus value_wrong(WeftVM *w, const char *needs, Value v) {
  if (v.kind == V_TRACKED)
    return vm_error(w->vm, EK_unsupported,
                    "not supported: a host function reads a value while a derivative is taken of it; stop_gradient(x) "
                    "says that it has none, custom_vjp gives a rule");
  return vm_error(w->vm, EK_type, "the host needs %s, got %s", needs, value_type_name(v));
}

WeftStatus weft_as_int(WeftVM *w, WeftValue *value, int64_t *out) {
  if (!usable(w) || !value_ok(w, value) || !out) return WEFT_MISUSE;
  if (value->value.kind == V_NUM && num_as_index(value->value, out)) return WEFT_OK;
  return value_wrong(w, "an integer", value->value);
}

WeftStatus weft_as_float(WeftVM *w, WeftValue *value, double *out) {
  if (!usable(w) || !value_ok(w, value) || !out) return WEFT_MISUSE;
  if (value->value.kind != V_NUM || dtype_kind(value->value.dtype) == DK_COMPLEX)
    return value_wrong(w, "a number", value->value);
  *out = num_as_f64(value->value);
  return WEFT_OK;
}

WeftStatus weft_as_text(WeftVM *w, WeftValue *value, const char **utf8, size_t *length) {
  if (!usable(w) || !value_ok(w, value) || !utf8) return WEFT_MISUSE;
  if (value->value.kind != V_TEXT) return value_wrong(w, "a text", value->value);
  *utf8 = value->value.text->data;
  if (length) *length = value->value.text->len;
  return WEFT_OK;
}

WeftStatus weft_length(WeftVM *w, WeftValue *value, size_t *out) {
  if (!usable(w) || !value_ok(w, value) || !out) return WEFT_MISUSE;
  Value v = value->value;
  if (v.kind != V_LIST && v.kind != V_RECORD) return value_wrong(w, "a list or record", v);
  *out = v.kind == V_LIST ? v.list->count : v.record->shape->count;
  return WEFT_OK;
}

WeftStatus weft_item(WeftVM *w, WeftValue *value, size_t index, WeftValue **out) {
  size_t n;
  if (!out) return WEFT_MISUSE;
  WeftStatus status = weft_length(w, value, &n);
  if (status != WEFT_OK) return status;
  if (index >= n) return WEFT_MISUSE;
  Value v = value->value;
  return value_hand_over(w, value_keep(v.kind == V_LIST ? v.list->items[index] : v.record->items[index]), out);
}

WeftStatus weft_key(WeftVM *w, WeftValue *value, size_t index, const char **out) {
  if (!usable(w) || !value_ok(w, value) || !out) return WEFT_MISUSE;
  if (value->value.kind != V_RECORD) return value_wrong(w, "a record", value->value);
  const Shape *s = value->value.record->shape;
  if (index >= s->count) return WEFT_MISUSE;
  *out = name_text(&w->vm->names, s->keys[index]);
  return WEFT_OK;
}

WeftStatus weft_field(WeftVM *w, WeftValue *value, const char *key, WeftValue **out) {
  if (!usable(w) || !value_ok(w, value) || !key || !out) return WEFT_MISUSE;
  if (value->value.kind != V_RECORD) return value_wrong(w, "a record", value->value);
  Name name;
  Value *v = name_known(&w->vm->names, key, strlen(key), &name) ? record_find(value->value.record, name) : NULL;
  if (!v) return vm_error(w->vm, EK_key, "the record has no key \"%s\"", key);
  return value_hand_over(w, value_keep(*v), out);
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

bool geometry_ok(WeftDType dtype, int rank, const int64_t *shape, const void *data) {
  if ((int)dtype < 1 || dtype >= (WeftDType)DT_COUNT || rank < 0 || rank > WEFT_MAX_RANK || (rank && !shape))
    return false;
  for (int d = 0; d < rank; d++)
    if (shape[d] < 0) return false;
  return data || dims_size((u32)rank, shape) == 0;
}

bool has_dtype(WeftVM *w, WeftDType dtype) {
  if (dtype_can(dtype, NEED_store) != CAN_none) return true;
  (void)vm_error_at(w->vm, EK_unsupported, (Span){0}, "arrays of dtype %s are not supported", dtype_name(dtype));
  return false;
}

WeftStatus weft_array(WeftVM *w, WeftDType dtype, int rank, const int64_t *shape, const void *data, WeftValue **out) {
  if (!usable(w) || !out || !geometry_ok(dtype, rank, shape, data)) return WEFT_MISUSE;
  make_room(w);
  if (!has_dtype(w, dtype)) return WEFT_ERROR;
  Value v;
  if (array_new(w->vm, dtype, (u32)rank, shape, &v) != WEFT_OK) return WEFT_ERROR;
  if (v.array->size) memcpy(v.array->data, data, (size_t)v.array->size * dtype_bytes(dtype));
  return value_hand_over(w, array_finish(w->vm, v), out);
}

WeftStatus weft_array_view(WeftVM *w, WeftValue *value, WeftArray *out) {
  if (!usable(w) || !value_ok(w, value) || !out) return WEFT_MISUSE;
  Value v = value->value;
  if (v.kind == V_NUM) {
    num_store(&value->element, v.dtype, v);
    *out = (WeftArray){.dtype = (WeftDType)v.dtype, .size = 1, .data = &value->element};
    return WEFT_OK;
  }
  if (v.kind != V_ARRAY || array_device(v.array) != DEV_CPU) return value_wrong(w, "an array on the CPU", v);
  Array *a = v.array;
  *out = (WeftArray){.dtype = (WeftDType)array_dtype(a), .rank = (int)array_rank(a), .size = a->size, .data = a->data};
  memcpy(out->shape, array_dims(a), sizeof(i64) * array_rank(a));
  memcpy(out->strides, array_strides(a), sizeof(i64) * array_rank(a));
  return WEFT_OK;
}

/* ---- host functions -------------------------------------------------------------------------- */

typedef struct Defined {
  WeftVM *w;
  WeftHostFunction call;
  void *context;
  void (*release)(void *context);
  Value rule; /* owned */
  bool suspends;
  char name[];
} Defined;

static WeftStatus call_host(Vm *vm, void *ctx, const Value *args, u32 nargs, Value *out) {
  Defined *d = ctx;
  WeftValue *few[8] = {NULL}, *result = NULL,
      **wrapped = nargs <= COUNT_OF(few) ? few : mem_alloc(&vm->alloc, sizeof *wrapped * nargs);
  if (!wrapped) return vm_error_memory(vm);
  u32 n = 0;
  WeftStatus status = WEFT_OK;
  for (; n < nargs && status == WEFT_OK; n++) {
    status = value_hand_over(d->w, value_keep(args[n]), &wrapped[n]);
    if (status != WEFT_OK) break;
  }
  if (status == WEFT_OK) status = d->call(d->w, d->context, wrapped, nargs, &result);
  /* a borrowed argument as the result, without a count of its own: that is what it would be */
  for (u32 i = 0; i < n && result; i++)
    if (result == wrapped[i] && result->vm == d->w && result->count == 1) result->count++;
  for (u32 i = 0; i < n; i++) weft_release(d->w, wrapped[i]);
  if (status == WEFT_SUSPENDED && d->suspends) { /* what it gave, or an error that it went on after, is not looked at */
    if (result && result->vm == d->w) weft_release(d->w, result);
    result = NULL;
    if (vm->error.raised) vm_error_clear(vm);
  }
  if (wrapped != few) mem_free(&vm->alloc, wrapped, sizeof *wrapped * nargs);
  vm->host_epoch++;
  if (status == WEFT_OK && result && result->vm != d->w) {
    vm_error_clear(vm);
    return vm_error(vm, EK_host, "%s: the host function gives a value of another VM, or one that it released", d->name);
  }
  if (status == WEFT_SUSPENDED && d->suspends) return status;
  if (status == WEFT_SUSPENDED && !vm->error.raised)
    return vm_error(vm, EK_host, "%s: the host function gives WEFT_SUSPENDED, and weft_define_suspending did not "
                    "declare it", d->name);
  if (status != WEFT_OK) {
    if (result && result->vm == d->w) weft_release(d->w, result);
    return vm->error.raised ? WEFT_ERROR : vm_error(vm, EK_host, "%s: the host function failed", d->name);
  }
  if (vm->error.raised) vm_error_clear(vm); /* it went on after an error: then there is none */
  *out = result ? value_keep(result->value) : value_nil();
  if (result) weft_release(d->w, result);
  if (LIKELY(vm_look(vm) == WEFT_OK)) return WEFT_OK; /* it may have taken long */
  value_drop(vm, *out);
  *out = value_hole();
  return WEFT_ERROR;
}

static void drop_host(void *ctx) {
  Defined *d = ctx;
  d->w->vm->releasing++;
  if (d->release) d->release(d->context);
  d->w->vm->releasing--;
  value_drop(d->w->vm, d->rule);
  mem_free(&d->w->vm->alloc, d, sizeof *d + strlen(d->name) + 1);
}

/* A function of the host as a value; `*made` (may be NULL) is what stands behind it. */
static WeftStatus make_host(WeftVM *w, const char *name, WeftHostFunction function, void *context,
                            void (*release)(void *context), Value rule, Value *out, Defined **made) {
  size_t n = strlen(name);
  Defined *d = mem_alloc_zero(&w->vm->alloc, sizeof *d + n + 1);
  if (!d) return vm_error_memory(w->vm);
  *d = (Defined){.w = w, .call = function, .context = context, .release = release, .rule = value_keep(rule)};
  memcpy(d->name, name, n + 1);
  const HostFn fn = {.name = d->name, .call = call_host, .ctx = d, .release = drop_host, .rule = rule,
                     .catches_up = true};
  if (!fn_host(w->vm, &fn, out)) {
    value_drop(w->vm, rule);
    mem_free(&w->vm->alloc, d, sizeof *d + n + 1);
    return WEFT_ERROR;
  }
  if (made) *made = d;
  return WEFT_OK;
}

WeftStatus define_in(WeftVM *w, struct Module *m, const char *name, WeftHostFunction function, void *context,
                     void (*release)(void *context), Value rule) {
  if (!usable(w) || !api_is_name(name) || !function) return WEFT_MISUSE;
  if (vm_catch_up(w->vm) != WEFT_OK) return WEFT_ERROR;
  Name key = name_cstr(&w->vm->names, name);
  Value v;
  Defined *d;
  if (!key) return vm_error_memory(w->vm);
  if (make_host(w, name, function, context, release, rule, &v, &d) != WEFT_OK) return WEFT_ERROR;
  d->release = NULL; /* a name that cannot be declared drops the function */
  if (module_set(w->vm, m, key, v) != WEFT_OK) return WEFT_ERROR;
  d->release = release;
  return WEFT_OK;
}

WeftStatus host_function_new(WeftVM *w, const char *name, WeftHostFunction function, void *context, Value *out) {
  return make_host(w, name, function, context, NULL, value_nil(), out, NULL);
}

void host_function_release(Value fn, void (*release)(void *context)) {
  ((Defined *)fn.fn->host->ctx)->release = release;
}

void host_function_suspends(Value fn) {
  fn.fn->host->suspends = true;
  ((Defined *)fn.fn->host->ctx)->suspends = true;
}

WeftStatus weft_function(WeftVM *w, const char *name, WeftHostFunction function, void *context,
                         void (*release)(void *context), WeftValue **out) {
  if (!usable(w) || !name || !utf8_valid(name, strlen(name)) || !function || !out) return WEFT_MISUSE;
  *out = NULL;
  if (vm_catch_up(w->vm) != WEFT_OK) return WEFT_ERROR;
  WeftValue *value = NULL; /* before the function: nothing may fail behind it */
  if (value_hand_over(w, value_nil(), &value) != WEFT_OK) return WEFT_ERROR;
  Value v;
  if (make_host(w, name, function, context, release, value_nil(), &v, NULL) != WEFT_OK) {
    weft_release(w, value);
    return WEFT_ERROR;
  }
  value->value = v;
  *out = value;
  return WEFT_OK;
}

WeftStatus weft_define(WeftVM *w, const char *name, WeftHostFunction function, void *context,
                       void (*release)(void *context)) {
  return w ? define_in(w, w->main, name, function, context, release, value_nil()) : WEFT_MISUSE;
}

WeftStatus weft_define_traced(WeftVM *w, const char *name, WeftHostFunction function, void *context,
                              void (*release)(void *context), WeftValue *rule) {
  if (!usable(w) || !value_ok(w, rule) || rule->value.kind != V_FN || rule->value.fn->kind != FN_CLOSURE ||
      (rule->value.fn->env && rule->value.fn->env->count))
    return WEFT_MISUSE;
  return define_in(w, w->main, name, function, context, release, rule->value);
}

/* ---- host objects ---------------------------------------------------------------------------------------- */

_Static_assert(sizeof(WeftHandleType) == sizeof(HandleType) &&
               offsetof(WeftHandleType, flatten) == offsetof(HandleType, flatten), "one struct under two names");
_Static_assert(sizeof(WeftPromise) == sizeof(HandlePromise) &&
               offsetof(WeftPromise, shape) == offsetof(HandlePromise, shape), "one struct under two names");

/* Vm.flatten: asks the object; its record, owned. */
static WeftStatus flatten(void *ctx, const Handle *h, Value *out) {
  WeftVM *w = ctx;
  WeftValue *fields = NULL;
  WeftStatus status = h->type->flatten(w, h->object, &fields);
  bool ours = fields && value_ok(w, fields), record = status == WEFT_OK && ours && fields->value.kind == V_RECORD;
  if (record) *out = value_keep(fields->value);
  if (ours) weft_release(w, fields);
  if (record) {
    if (w->vm->error.raised) vm_error_clear(w->vm);
    return WEFT_OK;
  }
  return status != WEFT_OK &&
         w->vm->error.raised ? WEFT_ERROR : vm_error(w->vm, EK_host, "<%s> does not say its fields", h->type->name);
}

WeftStatus weft_handle(WeftVM *w, const WeftHandleType *type, void *object, WeftValue *fields, WeftValue **out) {
  if (!usable(w) || !out || !type || type->size != sizeof *type || !type->name) return WEFT_MISUSE;
  *out = NULL;
  if (fields && !value_ok(w, fields)) return WEFT_MISUSE;
  if (fields && (fields->value.kind != V_RECORD || type->flatten)) return WEFT_MISUSE;
  if (type->flatten) w->vm->flatten = flatten, w->vm->flatten_ctx = w;
  Value v;
  if (!handle_new(w->vm, (const HandleType *)type, object, fields ? value_keep(fields->value) : value_nil(), &v)) {
    if (type->release) type->release(object);
    return WEFT_ERROR;
  }
  return value_hand_over(w, v, out);
}

WeftStatus weft_handle_object(WeftVM *w, WeftValue *value, const WeftHandleType *type, void **object) {
  if (!usable(w) || !value_ok(w, value) || !type || !object) return WEFT_MISUSE;
  if (value->value.kind != V_HANDLE || value->value.handle->type != (const HandleType *)type)
    return vm_error(w->vm, EK_type, "a handle of type <%s> is wanted, got %s", type->name,
                    value_type_name(value->value));
  *object = value->value.handle->object;
  return WEFT_OK;
}

WeftStatus weft_handle_set(WeftVM *w, WeftValue *handle, const char *field, WeftValue *value) {
  if (!usable(w) || !value_ok(w, handle) || !value_ok(w, value) || !api_is_name(field) ||
      handle->value.kind != V_HANDLE || handle->value.handle->type->flatten)
    return WEFT_MISUSE;
  if (vm_catch_up(w->vm) != WEFT_OK) return WEFT_ERROR;
  Value *fields = &handle->value.handle->fields;
  if (fields->kind != V_RECORD && !record_new(w->vm, fields)) {
    *fields = value_nil();
    return WEFT_ERROR;
  }
  Name key = name_counted(&w->vm->names, field, strlen(field));
  if (!key) return vm_error_memory(w->vm);
  const bool set = record_set(w->vm, fields, key, value_keep(value->value));
  name_drop(&w->vm->names, key);
  return set ? WEFT_OK : WEFT_ERROR;
}

WeftStatus weft_fail(WeftVM *w, const char *kind, const char *message) {
  if (!usable(w) || !message || !utf8_valid(message, strlen(message))) return WEFT_MISUSE;
  int k = kind ? error_kind_by_name(kind, strlen(kind)) : EK_host;
  return vm_error(w->vm, k < 0 ? EK_host : (ErrorKind)k, "%s", message);
}
