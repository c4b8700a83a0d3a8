/* compare.c — structural equality, the order of text, `in`, and the truth of conditions. */
#include <string.h>

#include "vm/operate.h"
#include "vm/scalar.h"

/* ---- equality --------------------------------------------------------------------------------- */

typedef struct Pair {
  Value a, b; /* borrowed from the values that are compared */
} Pair;
typedef VEC(Pair) Pairs;

enum { POLL_PAIRS = 1024, LONG = 1 << 16 };

static WeftStatus equal_arrays(Vm *vm, Value a, Value b, bool *out) {
  NumBox ba, bb;
  Array *x = array_of(a, &ba), *y = array_of(b, &bb);
  *out = array_rank(x) == array_rank(y) &&
         memcmp(array_dims(x), array_dims(y), sizeof(i64) * array_rank(x)) == 0;
  if (!*out) return WEFT_OK;
  if (a.kind == V_NUM && b.kind == V_NUM) {
    Value r;
    if (num_binary(BC_eq, a, b, &r)) {
      *out = r.i;
      return WEFT_OK;
    }
  }
  Value args[2] = {value_keep(a), value_keep(b)}, same, all;
  WeftStatus status = vm_op(vm, OP_equal, args, &same);
  value_drop(vm, args[0]);
  value_drop(vm, args[1]);
  if (status != WEFT_OK) return status;
  Value reduce[3] = {same, value_hole(), value_hole()};
  if (same.kind == V_NUM) {
    *out = same.i;
    return WEFT_OK;
  }
  status = vm_op(vm, OP_all, reduce, &all);
  value_drop(vm, reduce[0]);
  if (status != WEFT_OK) return status;
  status = vm_truth(vm, all, out);
  value_drop(vm, all);
  return status;
}

static bool equal_fns(const Fn *a, const Fn *b) {
  if (a == b) return true;
  if (a->kind != b->kind) return false;
  if (a->kind == FN_BUILTIN) return a->op == b->op;
  return a->kind == FN_CLOSURE && a->code == b->code && a->env == b->env;
}

/* One level: what is decided at once, else the parts are pushed. */
static WeftStatus equal_step(Vm *vm, Pairs *todo, Value a, Value b, bool *out) {
  int order;
  a = value_untracked(a);
  b = value_untracked(b);
  *out = true;
  if (value_is_numeric(a) && value_is_numeric(b)) return equal_arrays(vm, a, b, out);
  if (a.kind != b.kind) {
    *out = false;
    return WEFT_OK;
  }
  switch (a.kind) {
    case V_NIL: break;
    case V_TEXT:
      *out = a.text->len == b.text->len;
      if (!*out || a.text == b.text) break;
      if (text_compare(vm, a.text->data, b.text->data, a.text->len, &order) != WEFT_OK) return WEFT_ERROR;
      *out = order == 0;
      if (a.text->len >= LONG) return vm_look(vm);
      break;
    case V_DTYPE: *out = a.dtype == b.dtype; break;
    case V_FN: *out = equal_fns(a.fn, b.fn); break;
    case V_RANGE: {
      u64 n = range_count(a.range);
      *out = n == range_count(b.range) && (n == 0 || a.range->start == b.range->start) &&
             (n < 2 || a.range->step == b.range->step);
      break;
    }
    case V_LIST:
      *out = a.list->count == b.list->count;
      if (*out && (!list_boxed(vm, a.list) || !list_boxed(vm, b.list))) return WEFT_ERROR;
      for (u32 i = a.list->count; *out && i-- > 0;) { /* the first item first; the same list may hold NaN, and differ */
        if (!vec_push(&vm->alloc, todo, (Pair){a.list->items[i], b.list->items[i]})) return vm_error_memory(vm);
        if (i % LONG == LONG - 1 && vm_look(vm) != WEFT_OK) return WEFT_ERROR;
      }
      break;
    case V_RECORD: {
      const Shape *s = a.record->shape;
      *out = s->count == b.record->shape->count;
      for (u32 i = s->count; *out && i-- > 0;) {
        Value *other = record_find(b.record, s->keys[i]);
        *out = other != NULL;
        if (!vm_item(vm, i)) return WEFT_ERROR;
        if (other && !vec_push(&vm->alloc, todo, (Pair){a.record->items[i], *other})) return vm_error_memory(vm);
      }
      break;
    }
    default: *out = a.p == b.p; break;
  }
  return WEFT_OK;
}

WeftStatus value_equal(Vm *vm, Value a, Value b, bool *out) {
  Pairs todo = {0};
  WeftStatus status = equal_step(vm, &todo, a, b, out);
  for (u32 steps = 1; status == WEFT_OK && *out && todo.count; steps++) {
    Pair p = todo.data[--todo.count];
    status = steps % POLL_PAIRS ? WEFT_OK : vm_poll(vm, 1); /* lists of lists that are shared have many paths */
    if (status == WEFT_OK) status = equal_step(vm, &todo, p.a, p.b, out);
  }
  vec_free(&vm->alloc, &todo);
  return status;
}

/* ---- order ------------------------------------------------------------------------------------ */

int text_order(const Text *a, const Text *b) { /* UTF-8 bytes order as code points do */
  u32 n = a->len < b->len ? a->len : b->len;
  int c = memcmp(a->data, b->data, n);
  return c ? c : (a->len > b->len) - (a->len < b->len);
}

/* ---- in --------------------------------------------------------------------------------------- */

static bool in_range(Value item, const Range *r) {
  f64 f;
  if (item.kind != V_NUM) return false;
  if (dtype_kind(item.dtype) == DK_FLOAT) {
    f = num_as_f64(item);
    if (!(f >= -9.2e18 && f <= 9.2e18) || f != (f64)(i64)f) return false;
    item = value_i64((i64)f);
  }
  i64 i;
  if (!num_as_index(item, &i)) return false;
  if (r->step > 0 ? i < r->start || i >= r->stop : i > r->start || i <= r->stop) return false;
  u64 distance = r->step > 0 ? (u64)i - (u64)r->start : (u64)r->start - (u64)i;
  return distance % (r->step > 0 ? (u64)r->step : 0 - (u64)r->step) == 0;
}

WeftStatus value_in(Vm *vm, Value item, Value container, bool *out) {
  const char *hit;
  *out = false;
  container = value_untracked(container);
  switch (container.kind) {
    case V_LIST:
      if (!list_boxed(vm, container.list)) return WEFT_ERROR;
      for (u32 i = 0; i < container.list->count && !*out; i++) {
        if (value_equal(vm, item, container.list->items[i], out) != WEFT_OK) return WEFT_ERROR;
        if (i % POLL_PAIRS == POLL_PAIRS - 1 && vm_look(vm) != WEFT_OK) return WEFT_ERROR;
      }
      return WEFT_OK;
    case V_RANGE: *out = in_range(value_untracked(item), container.range); return WEFT_OK;
    case V_RECORD:
      if (item.kind != V_TEXT)
        return vm_error(vm, EK_type, "in: the keys of a record are text, got %s", value_type_name(item));
      *out = record_at(vm, container.record, item.text) != NULL;
      return WEFT_OK;
    case V_TEXT:
      if (item.kind != V_TEXT)
        return vm_error(vm, EK_type, "in: a part of a text is text, got %s", value_type_name(item));
      if (text_find(vm, container.text->data, container.text->len, item.text->data, item.text->len, &hit) != WEFT_OK)
        return WEFT_ERROR;
      *out = hit != NULL;
      return WEFT_OK;
    case V_NUM:
    case V_ARRAY:
      return vm_error(vm, EK_type, "in: asks lists, ranges, records and texts; for an array use any(a == x) or isin");
    default:
      return vm_error(vm, EK_type, "in: asks lists, ranges, records and texts, got %s", value_type_name(container));
  }
}

/* ---- truth ------------------------------------------------------------------------------------ */

WeftStatus vm_truth(Vm *vm, Value v, bool *out) {
  v = value_untracked(v);
  if (v.kind == V_NUM) {
    *out = dtype_kind(v.dtype) == DK_FLOAT ? num_as_f64(v) != 0 : num_convert_unchecked(v, DT_bool).i;
    return WEFT_OK;
  }
  if (v.kind == V_ARRAY && v.dtype == DT_c128 && !array_rank(v.array) && array_device(v.array) == DEV_CPU) {
    f64 re, im;
    num_parts(v, &re, &im);
    *out = re != 0 || im != 0;
    return WEFT_OK;
  }
  if (v.kind != V_ARRAY)
    return vm_error(vm, EK_type, "a condition is a number or bool of rank 0, got %s", value_type_name(v));
  if (array_rank(v.array) == 0 && array_device(v.array) != DEV_CPU) {
    const DeviceHooks *d = vm->devices[array_device(v.array)];
    u64 bits[2] = {0, 0};
    if (!d || !d->to_host) return vm_error(vm, EK_unsupported, "a condition on this device is not supported");
    if (d->to_host(vm, v.array->data, bits, dtype_bytes(v.dtype)) != WEFT_OK) return WEFT_ERROR;
    return vm_truth(vm, num_load(bits, v.dtype), out);
  }
  ArrayType t = {.rank = (u8)array_rank(v.array)};
  char shape[96];
  for (u32 d = 0; d < t.rank; d++) t.dims[d] = array_dims(v.array)[d];
  rule_shape_text(&t, shape, sizeof shape);
  return vm_error(vm, EK_type,
                  "a condition is a number or bool of rank 0, got an array of shape %s: use any(…) or all(…); "
                  "~a, a & b, a | b go element by element", shape);
}
