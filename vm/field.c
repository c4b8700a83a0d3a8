/* field.c — names behind a dot, and annotations (see field.h). */
#include "vm/field.h"

#include <stdio.h>
#include <string.h>

#include "parser/parser.h"
#include "vm/module.h"

Name record_nearest(const Vm *vm, const Record *r, Name name) {
  Name nearest = 0;
  u32 best = name_near(name_len(&vm->names, name));
  for (u32 i = 0; i < r->shape->count; i++) {
    Name key = r->shape->keys[i];
    u32 d = name_distance(name_text(&vm->names, name), name_len(&vm->names, name), name_text(&vm->names, key),
                          name_len(&vm->names, key), best);
    if (d < best) {
      best = d;
      nearest = key;
    }
  }
  return nearest;
}

WeftStatus field_missing(Vm *vm, const Record *r, Name name) {
  Name near = record_nearest(vm, r, name);
  const char *text = name_text(&vm->names, name);
  if (near)
    return vm_error(vm, EK_key, "the record has no key '%s'; did you mean '%s'?", text, name_text(&vm->names, near));
  return vm_error(vm, EK_key, "the record has no key '%s'", text);
}

/* ---- properties of arrays --------------------------------------------------------------------- */

static WeftStatus shape_list(Vm *vm, Value v, Value *out) {
  u32 rank = v.kind == V_ARRAY ? array_rank(v.array) : 0;
  if (!list_new(vm, rank, out)) return WEFT_ERROR;
  for (u32 d = 0; d < rank; d++) out->list->items[d] = value_weak_i64(array_dims(v.array)[d]);
  out->list->count = rank;
  return WEFT_OK;
}

static WeftStatus reversed_axes(Vm *vm, Value obj, Value *out) {
  if (obj.kind == V_ARRAY && array_device(obj.array) == DEV_CPU && array_rank(obj.array) > 1) {
    Array *a = obj.array;
    u32 rank = array_rank(a);
    i64 dims[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
    for (u32 d = 0; d < rank; d++) {
      dims[d] = array_dims(a)[rank - 1 - d];
      strides[d] = array_strides(a)[rank - 1 - d];
    }
    return array_view(vm, a, 0, rank, dims, strides, out);
  }
  Value plain = value_untracked(obj);
  if (plain.kind == V_NUM || array_rank(plain.array) < 2) {
    *out = value_keep(obj);
    return WEFT_OK;
  }
  Value args[2] = {value_keep(obj), value_hole()};
  WeftStatus status = vm_op(vm, OP_transpose, args, out);
  value_drop(vm, args[0]);
  return status;
}

static WeftStatus device_text(Vm *vm, Value v, Value *out) {
  const char *name = vm->device_names[v.kind == V_ARRAY ? array_device(v.array) : DEV_CPU];
  return text_new(vm, name, strlen(name), out) ? WEFT_OK : WEFT_ERROR;
}

static WeftStatus no_property(Vm *vm, Value v, Name name) {
  const char *text = name_text(&vm->names, name), *type = value_type_name(v);
  OpId op = op_by_name(text, name_len(&vm->names, name));
  if (op != OP_none) return vm_error(vm, EK_name, "'%s' is a function; write .%s()", text, text);
  if (value_is_numeric(v))
    return vm_error(vm, EK_name, "an array has no property '%s'; it has shape, dtype, ndim, size, T and device", text);
  if (v.kind == V_REF) return vm_error(vm, EK_name, "a ref has no '%s'; its content is .value", text);
  return vm_error(vm, EK_name, "%s has no field '%s'", type, text);
}

WeftStatus vm_field(Vm *vm, Value obj, Name name, Value *out) {
  Value v = value_untracked(obj);
  const Name *known = vm->known;
  switch (v.kind) {
    case V_RECORD: {
      Value *at = record_find(v.record, name);
      if (!at) return field_missing(vm, v.record, name);
      *out = value_keep(*at);
      return WEFT_OK;
    }
    case V_MODULE: {
      Value *at = module_member(vm, v.module, name);
      if (!at) return WEFT_ERROR;
      *out = value_keep(*at);
      return WEFT_OK;
    }
    case V_HANDLE: {
      if (handle_refresh(vm, v.handle) != WEFT_OK) return WEFT_ERROR;
      const Value *at = value_field(v, name);
      if (!at) return no_property(vm, v, name);
      *out = value_keep(*at);
      return WEFT_OK;
    }
    case V_REF:
      if (name != known[KN_value]) return no_property(vm, v, name);
      *out = value_keep(v.ref->value);
      return WEFT_OK;
    case V_NUM:
    case V_ARRAY:
      if (name == known[KN_shape]) return shape_list(vm, v, out);
      if (name == known[KN_dtype]) *out = value_dtype(v.dtype);
      else if (name == known[KN_ndim]) *out = value_weak_i64(v.kind == V_ARRAY ? array_rank(v.array) : 0);
      else if (name == known[KN_size]) *out = value_weak_i64(v.kind == V_ARRAY ? v.array->size : 1);
      else if (name == known[KN_T]) return reversed_axes(vm, obj, out);
      else if (name == known[KN_device]) return device_text(vm, v, out);
      else return no_property(vm, v, name);
      return WEFT_OK;
    default: return no_property(vm, v, name);
  }
}

WeftStatus field_no_method(Vm *vm, Value obj, Name name) {
  Value v = value_untracked(obj);
  const char *text = name_text(&vm->names, name);
  const char *foreign = parser_foreign_word(text, strlen(text));
  if (v.kind == V_RECORD && foreign && !record_nearest(vm, v.record, name))
    return vm_error(vm, EK_key, "the record has no key '%s'; write '%s'", text, foreign);
  if (v.kind == V_RECORD) return field_missing(vm, v.record, name);
  const Name *known = vm->known;
  bool property = name == known[KN_shape] || name == known[KN_dtype] || name == known[KN_ndim] ||
                  name == known[KN_size] || name == known[KN_T] || name == known[KN_device];
  if (property && value_is_numeric(v))
    return vm_error(vm, EK_type, "'%s' is a property: write .%s without parentheses", text, text);
  return vm_error(vm, EK_name, "there is no function '%s', and %s has no such field%s%s%s", text, value_type_name(v),
                  foreign ? "; write '" : "", foreign ? foreign : "", foreign ? "'" : "");
}

WeftStatus field_method(Vm *vm, Value obj, Name name, bool *found, Value *out) {
  *found = false;
  if (obj.kind == V_RECORD) {
    Value *at = record_find(obj.record, name);
    *found = at != NULL;
    if (at) *out = value_keep(*at);
  } else if (obj.kind == V_MODULE) {
    Value *at = module_member(vm, obj.module, name); /* what a module lacks is an error, not a global function */
    if (!at) return WEFT_ERROR;
    *found = true;
    *out = value_keep(*at);
  } else if (value_is_numeric(value_untracked(obj)) && name == vm->known[KN_dtype]) { /* x.dtype(v) converts v */
    *found = true;
    *out = value_dtype(value_untracked(obj).dtype);
  } else if (obj.kind == V_REF && name == vm->known[KN_value]) {
    *found = true;
    *out = value_keep(obj.ref->value);
  }
  return WEFT_OK;
}

/* ---- annotations ------------------------------------------------------------------------------ */

static void annot_text(const Vm *vm, const Desc *d, Buf *b) {
  buf_puts(b,
           d->type_name ? name_text(&vm->names, d->type_name) : d->dtype != DT_NONE ? dtype_name(d->dtype) : "array");
  if (!d->has_dims) return;
  buf_putc(b, '[');
  for (u32 i = 0; i < d->rank; i++) {
    if (i) buf_puts(b, ", ");
    if (d->dim_consts[i] >= 0) buf_printf(b, "%lld", (long long)d->dim_consts[i]);
    else buf_puts(b, d->dim_consts[i] == -1 ? name_text(&vm->names, d->dim_names[i]) : "_");
  }
  buf_putc(b, ']');
}

static WeftStatus annot_fail(Vm *vm, ErrorKind kind, Name fn, const Desc *d, Value v, const char *why) {
  Buf want;
  buf_init(&want, &vm->alloc);
  annot_text(vm, d, &want);
  char got[128] = "";
  if (value_is_numeric(v)) {
    ArrayType t = {.rank = v.kind == V_ARRAY ? (u8)array_rank(v.array) : 0};
    for (u32 i = 0; i < t.rank; i++) t.dims[i] = array_dims(v.array)[i];
    char shape[96];
    rule_shape_text(&t, shape, sizeof shape);
    snprintf(got, sizeof got, "%s of shape %s", dtype_name(v.dtype), shape);
  } else {
    snprintf(got, sizeof got, "%s", value_type_name(v));
  }
  const char *name = fn ? name_text(&vm->names, fn) : "function", *param = name_text(&vm->names, d->param);
  WeftStatus status = vm_error(vm, kind, "%s: '%s' must be %s, got %s%s", name, param, buf_text(&want), got, why);
  buf_free(&want);
  return status;
}

static bool dtype_fits(const Desc *d, Value v) {
  if (d->dtype == DT_NONE || d->dtype == v.dtype) return true;
  return v.kind == V_NUM && value_is_weak(v) && dtype_kind(v.dtype) <= dtype_kind(d->dtype);
}

WeftStatus annot_check(Vm *vm, Name fn, const Desc *d, Value v, const Value *regs, Value *bound) {
  v = value_untracked(v);
  bool numeric = d->dtype != DT_NONE || d->has_dims;
  if (!numeric) {
    const char *want = d->type_name ? name_text(&vm->names, d->type_name) : NULL;
    if (!want || strcmp(want, value_type_name(v)) == 0) return WEFT_OK;
    return annot_fail(vm, EK_type, fn, d, v, "");
  }
  if (!value_is_numeric(v)) return annot_fail(vm, EK_type, fn, d, v, "");
  if (!dtype_fits(d, v)) return annot_fail(vm, EK_dtype, fn, d, v, "");
  u32 rank = v.kind == V_ARRAY ? array_rank(v.array) : 0;
  if (rank != (d->has_dims ? d->rank : 0)) return annot_fail(vm, EK_shape, fn, d, v, "");
  u32 n = 0;
  for (u32 i = 0; i < rank; i++) {
    i64 size = array_dims(v.array)[i], want = d->dim_consts[i];
    if (want == -2) continue;
    if (want == -1 && d->dim_binds[i]) {
      bound[n++] = value_weak_i64(size);
      continue;
    }
    i64 known = want;
    if (want == -1) { /* a name bound by an earlier parameter, or earlier in this one */
      bool here = false;
      for (u32 k = 0, at = 0; k < i; k++) {
        if (d->dim_consts[k] != -1 || !d->dim_binds[k]) continue;
        if (d->dim_names[k] == d->dim_names[i]) known = bound[at].i, here = true;
        at++;
      }
      if (!here && !num_as_index(value_untracked(regs[d->dim_regs[i]]), &known))
        return annot_fail(vm, EK_type, fn, d, v, ": a size is given by a parameter that is no integer");
    }
    if (known == size) continue;
    char why[96];
    if (want == -1)
      snprintf(why, sizeof why, ": %.40s is %lld", name_text(&vm->names, d->dim_names[i]), (long long)known);
    else why[0] = 0;
    return annot_fail(vm, EK_shape, fn, d, v, why);
  }
  return WEFT_OK;
}
