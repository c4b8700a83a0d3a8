/* args.c — reading the arguments of an operation (see args.h). */
#include "stdlib/args.h"

#include <stdio.h>
#include <string.h>

const char *param_name(u32 op, u32 param, char *buf) {
  const OpInfo *info = op_info(op);
  if (param >= info->nparams) return "argument";
  snprintf(buf, 32, "%.*s", (int)info->params[param].len, info->params[param].name);
  return buf;
}

ShapeText shape_text(const ArrayType *t) {
  ShapeText out;
  rule_shape_text(t, out.s, sizeof out.s);
  return out;
}

void type_of_value(Value v, ArrayType *out) {
  if (v.kind == V_NUM) {
    *out = (ArrayType){.dtype = v.dtype, .weak = value_is_weak(v)};
    return;
  }
  Array *a = v.array;
  out->dtype = (u8)array_dtype(a);
  out->weak = value_is_weak(v);
  out->rank = (u8)array_rank(a);
  out->device = (u8)array_device(a);
  memcpy(out->dims, array_dims(a), out->rank * sizeof(i64));
}

void args_describe(Value v, char *out, size_t cap) {
  if (value_is_numeric(v) && dtype_kind(v.dtype) == DK_COMPLEX && (v.kind == V_NUM || !array_rank(v.array))) {
    snprintf(out, cap, "a number of %s", dtype_name(v.dtype));
  } else if (v.kind == V_ARRAY) {
    ArrayType t;
    type_of_value(v, &t);
    snprintf(out, cap, "an array of %s and shape %s", dtype_name(t.dtype), shape_text(&t).s);
  } else if (v.kind == V_NUM) {
    if (v.dtype == DT_bool) snprintf(out, cap, "%s", v.i ? "true" : "false");
    else if (num_is_huge(v)) snprintf(out, cap, "%llu", (unsigned long long)v.u);
    else if (dtype_kind(v.dtype) == DK_INT) snprintf(out, cap, "%lld", (long long)v.i);
    else {
      char text[40];
      snprintf(text, sizeof text, "%.17g", num_as_f64(v));
      number_point(text);
      snprintf(out, cap, "%s %s", dtype_name(v.dtype), text);
    }
  } else {
    snprintf(out, cap, "%s%s", v.kind == V_NIL || v.kind == V_TEXT ? "" : "a ", value_type_name(v));
  }
}

WeftStatus args_error(Vm *vm, u32 op, u32 param, Value got, const char *needs) {
  char name[32], what[DESCRIBED];
  args_describe(got, what, sizeof what);
  return vm_error(vm, EK_type, "%s: %s must be %s, got %s", op_name(op), param_name(op, param, name), needs, what);
}

/* Is there nothing to read? nil stands for what was not given where the parameter has a default; else it is one of the
 * values that are refused. */
static bool is_absent(u32 op, u32 param, Value v) {
  return v.kind == V_HOLE || (v.kind == V_NIL && op_info(op)->params[param].has_default);
}

WeftStatus args_dtype_supported(Vm *vm, u32 op, u32 dtype) {
  if (op_takes(op, dtype)) return WEFT_OK;
  return vm_error(vm, EK_unsupported, "%s: not supported for %s", op_name(op), dtype_name(dtype));
}

WeftStatus args_array(Vm *vm, u32 op, u32 param, Value v) {
  char name[32];
  switch (v.kind) {
    case V_NUM: return args_dtype_supported(vm, op, v.dtype);
    case V_ARRAY:
      if (array_device(v.array) != DEV_CPU)
        return vm_error(vm, EK_unsupported,
                        "%s: not supported: %s lies on another device; to(x, \"cpu\") brings it back", op_name(op),
                        param_name(op, param, name));
      return args_dtype_supported(vm, op, array_dtype(v.array));
    case V_LIST:
      return vm_error(vm, EK_type, "%s: %s is a list, needs an array; array(…) makes one", op_name(op),
                      param_name(op, param, name));
    case V_RANGE:
      return vm_error(vm, EK_type, "%s: %s is a range, needs an array; arange(…) makes one", op_name(op),
                      param_name(op, param, name));
    default: return args_error(vm, op, param, v, "an array");
  }
}

/* A rank-0 array that is not unboxed counts as its number. */
static Value scalar_of(Value v) {
  if (v.kind == V_ARRAY && array_rank(v.array) == 0 && array_device(v.array) == DEV_CPU &&
      dtype_bytes(array_dtype(v.array)) <= 8)
    return array_load(v.array, 0);
  return v;
}

WeftStatus args_bool(Vm *vm, u32 op, u32 param, Value v, bool *out) {
  if (is_absent(op, param, v)) return WEFT_OK;
  v = scalar_of(v);
  if (v.kind != V_NUM || v.dtype != DT_bool) return args_error(vm, op, param, v, "true or false");
  *out = v.i != 0;
  return WEFT_OK;
}

WeftStatus args_int(Vm *vm, u32 op, u32 param, Value v, i64 *out) {
  if (is_absent(op, param, v)) return WEFT_OK;
  v = scalar_of(v);
  if (v.kind != V_NUM || v.dtype == DT_bool || !num_as_index(v, out)) return args_error(vm, op, param, v, "an integer");
  return WEFT_OK;
}

WeftStatus args_size(Vm *vm, u32 op, u32 param, Value v, i64 *out) {
  char name[32];
  TRY(args_int(vm, op, param, v, out));
  if (*out >= 0) return WEFT_OK;
  return vm_error(vm, EK_value, "%s: %s is %lld, needs 0 or more", op_name(op), param_name(op, param, name),
                  (long long)*out);
}

WeftStatus args_f64(Vm *vm, u32 op, u32 param, Value v, f64 *out) {
  if (is_absent(op, param, v)) return WEFT_OK;
  v = scalar_of(v);
  if (v.kind != V_NUM || dtype_kind(v.dtype) == DK_COMPLEX)
    return args_error(vm, op, param, v,
                      value_is_numeric(v) && dtype_kind(v.dtype) == DK_COMPLEX ? "a real number" : "a number");
  *out = num_as_f64(v);
  return WEFT_OK;
}

WeftStatus args_dtype(Vm *vm, u32 op, u32 param, Value v, u32 *out) {
  if (is_absent(op, param, v)) return WEFT_OK;
  if (v.kind == V_NUM && op_takes_shape(op))
    return args_error(vm, op, param, v, "a dtype (a shape is one argument, as (3, 4))");
  if (v.kind != V_DTYPE) return args_error(vm, op, param, v, "a dtype");
  *out = v.dtype;
  return args_dtype_supported(vm, op, v.dtype);
}

WeftStatus args_device(Vm *vm, u32 op, u32 param, Value v) {
  if (is_absent(op, param, v)) return WEFT_OK;
  if (v.kind != V_TEXT) return args_error(vm, op, param, v, "text");
  if (device_by_name(vm, v.text->data) < DEVICE_MAX) return WEFT_OK; /* op_called takes the array there */
  return vm_error(vm, EK_value, "%s: there is no device \"%s\"", op_name(op), v.text->data);
}

static const char ints_needed[] = "an integer or a list of integers";

/* How many integers the argument gives; *v becomes what read_ints reads. */
static WeftStatus count_ints(Vm *vm, u32 op, u32 param, Value *v, u64 *count) {
  *v = scalar_of(*v);
  switch (v->kind) {
    case V_NUM: *count = 1; return WEFT_OK;
    case V_LIST: *count = v->list->count; return WEFT_OK;
    case V_RANGE: *count = range_count(v->range); return WEFT_OK;
    case V_ARRAY:
      if (array_rank(v->array) != 1 || dtype_kind(array_dtype(v->array)) != DK_INT || array_device(v->array) != DEV_CPU)
        break;
      *count = (u64)v->array->size;
      return WEFT_OK;
    default: break;
  }
  return args_error(vm, op, param, *v, ints_needed);
}

static WeftStatus read_ints(Vm *vm, u32 op, u32 param, Value v, i64 *out, u32 n) {
  for (u32 i = 0; i < n; i++) {
    if (v.kind == V_RANGE) {
      out[i] = v.range->start + (i64)i * v.range->step;
      continue;
    }
    Value item = v.kind == V_LIST ? scalar_of(v.list->items[i])
                                  : v.kind == V_ARRAY ? array_load(v.array, (i64)i * array_strides(v.array)[0]) : v;
    if (item.kind != V_NUM || item.dtype == DT_bool || !num_as_index(item, &out[i]))
      return args_error(vm, op, param, item, ints_needed);
  }
  return WEFT_OK;
}

WeftStatus args_ints(Vm *vm, u32 op, u32 param, Value v, i64 *out, u32 cap, u32 *n, bool *single) {
  char name[32];
  u64 count;
  TRY(count_ints(vm, op, param, &v, &count));
  if (count > cap)
    return vm_error(vm, EK_value, "%s: %s has %llu entries, at most %u fit", op_name(op), param_name(op, param, name),
                    (unsigned long long)count, cap);
  *n = (u32)count;
  *single = v.kind == V_NUM;
  return read_ints(vm, op, param, v, out, *n);
}

WeftStatus args_ints_all(Vm *vm, u32 op, u32 param, Value v, i64 **out, u32 *n, bool *single) {
  char name[32];
  u64 count;
  TRY(count_ints(vm, op, param, &v, &count));
  if (count > INT32_MAX)
    return vm_error(vm, EK_limit, "%s: %s has %llu entries", op_name(op), param_name(op, param, name),
                    (unsigned long long)count);
  *n = (u32)count;
  *single = v.kind == V_NUM;
  if (!(*out = mem_alloc(&vm->alloc, sizeof **out * (count + 1)))) return vm_error_memory(vm);
  if (read_ints(vm, op, param, v, *out, *n) == WEFT_OK) return WEFT_OK;
  mem_free(&vm->alloc, *out, sizeof **out * (count + 1));
  return WEFT_ERROR;
}

WeftStatus args_shape(Vm *vm, u32 op, u32 param, Value v, u32 *rank, i64 *dims) {
  bool single;
  char name[32];
  TRY(args_ints(vm, op, param, v, dims, ARRAY_MAX_RANK, rank, &single));
  for (u32 d = 0; d < *rank; d++)
    if (dims[d] < 0)
      return vm_error(vm, EK_value, "%s: %s has the size %lld, needs 0 or more", op_name(op),
                      param_name(op, param, name), (long long)dims[d]);
  return WEFT_OK;
}

WeftStatus args_axes(Vm *vm, u32 op, u32 param, Value v, u32 rank, u32 *mask) {
  i64 axes[ARRAY_MAX_RANK];
  u32 n;
  bool single;
  RuleError err;
  if (is_absent(op, param, v)) {
    *mask = (1u << rank) - 1;
    return WEFT_OK;
  }
  TRY(args_ints(vm, op, param, v, axes, ARRAY_MAX_RANK, &n, &single));
  TRY_RULE(vm, op, &err, rule_axes(n, axes, rank, mask, &err));
  return WEFT_OK;
}

WeftStatus args_choice(Vm *vm, u32 op, u32 param, Value v, const char *const *words, u32 *out) {
  if (is_absent(op, param, v)) return WEFT_OK;
  char name[32], all[160];
  size_t len = 0;
  for (u32 i = 0; words[i]; i++) {
    if (v.kind == V_TEXT && strcmp(v.text->data, words[i]) == 0) {
      *out = i;
      return WEFT_OK;
    }
    len += (size_t)snprintf(all + len, sizeof all - len, "%s\"%s\"",
                            i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
  }
  if (v.kind != V_TEXT) return args_error(vm, op, param, v, all);
  return vm_error(vm, EK_value, "%s: %s must be %s, got \"%s\"", op_name(op), param_name(op, param, name), all,
                  v.text->data);
}

WeftStatus args_list(Vm *vm, u32 op, u32 param, Value v, const Value **items, u32 *n) {
  if (v.kind != V_LIST) return args_error(vm, op, param, v, "a list of arrays");
  *items = v.list->items;
  *n = v.list->count;
  for (u32 i = 0; i < *n; i++) TRY(args_array(vm, op, param, v.list->items[i]));
  return WEFT_OK;
}

WeftStatus args_walked(Vm *vm, u32 op, u32 param, Value v, u64 *count) {
  v = value_untracked(v);
  switch (v.kind) {
    case V_ARRAY:
      if (!array_rank(v.array)) break;
      /* fall through */
    case V_LIST:
    case V_RANGE:
    case V_TEXT:
    case V_RECORD: return vm_seq_open(vm, v, count);
    case V_HANDLE:
      if (!v.handle->stream) break;
      return vm_seq_open(vm, v, count);
    default: break;
  }
  return args_error(vm, op, param, v, "a list, an array of rank 1 or more, a range, a text or a record");
}

WeftStatus args_function(Vm *vm, u32 op, u32 param, Value v) {
  return v.kind == V_FN || v.kind == V_DTYPE ? WEFT_OK : args_error(vm, op, param, v, "a function");
}

WeftStatus num_fit(Vm *vm, u32 op, Value v, u32 dtype, Value *out) {
  if (v.dtype == dtype) {
    *out = v;
    return WEFT_OK;
  }
  if (value_is_weak(v) && !num_fits(v, dtype))
    return vm_error(vm, EK_value, "%s: the number %lld does not fit %s",
                    op == OP_astype ? dtype_name(dtype) : op_name(op), (long long)v.i, dtype_name(dtype));
  *out = dtype == DT_c128 ? v : num_convert_unchecked(v, dtype);
  return WEFT_OK;
}

WeftStatus copy_polled(Vm *vm, void *to, const void *from, size_t bytes) {
  Polled p = parts_in(vm, (i64)bytes, PART_ELEMENTS * (i64)sizeof(u64));
  while (parts_next(&p)) memcpy((char *)to + p.from, (const char *)from + p.from, (size_t)(p.to - p.from));
  return p.status;
}
