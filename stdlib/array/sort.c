/* sort.c — what needs an order: sort argsort topk unique searchsorted isin median quantile. */
#include "stdlib/kernels/element.h"
#include "stdlib/array/order.h"
#include "stdlib/array/reduce.h"
#include "stdlib/array/walk.h"

#include <string.h>

enum { TOPK_SLACK = 64 }; /* entries that topk gathers beside twice as many as are asked for */

/* ---- sort and argsort along an axis -------------------------------------------------------------- */

/* `dense` along an axis, into `out` of the same shape: values, or (positions) where they stood. */
static WeftStatus sort_lanes(Vm *vm, Array *dense, u32 axis, bool descending, bool positions, void *out) {
  u32 dtype = array_dtype(dense), bytes = dtype_bytes(dtype);
  /* the stride of an axis of size 1 says nothing */
  i64 n = array_dims(dense)[axis], lanes = n ? dense->size / n : 0, inner = 1;
  for (u32 d = axis + 1; d < array_rank(dense); d++) inner *= array_dims(dense)[d];
  size_t size = (size_t)n * 2 * sizeof(Keyed) + (size_t)n * sizeof(u64);
  bool counted = false;
  if (dense->size == 0) return WEFT_OK;
  if (positions && lanes == 1) TRY(keys_count(vm, dense->data, n, inner, dtype, descending, out, &counted));
  if (counted) return kernel_poll(vm, n);
  char *memory = mem_alloc(&vm->alloc, size);
  if (!memory) return vm_error_memory(vm);
  Keyed *pairs = (Keyed *)memory, *spare = pairs + n;
  u64 *keys = (u64 *)(spare + n);
  WeftStatus status = WEFT_OK;
  for (i64 l = 0; l < lanes && status == WEFT_OK; l++) {
    i64 start = l / inner * n * inner + l % inner;
    const char *x = (const char *)dense->data + start * bytes;
    bool hidden;
    if ((status = keys_make(vm, keys, x, n, inner, dtype, descending, &hidden)) != WEFT_OK) break;
    const bool plain = !positions && !hidden;
    status = plain ? keys_sort(vm, keys, (u64 *)pairs, n) : keyed_order(vm, keys, pairs, spare, n);
    if (status != WEFT_OK) break;
    char *o = (char *)out + start * bytes;
    i64 *at = (i64 *)out + start;
    Polled p = parts_in(vm, n, PART_ELEMENTS);
    while (parts_next(&p)) {
      if (plain)
        for (i64 i = p.from; i < p.to; i++) keys_value(keys[i], dtype, descending, o + i * inner * bytes);
      else if (positions)
        for (i64 i = p.from; i < p.to; i++) at[i * inner] = pairs[i].at;
      else
        for (i64 i = p.from; i < p.to; i++) memcpy(o + i * inner * bytes, x + pairs[i].at * inner * bytes, bytes);
    }
    status = p.status == WEFT_OK ? kernel_poll(vm, n) : WEFT_ERROR;
  }
  mem_free(&vm->alloc, memory, size);
  return status;
}

/* A list of numbers, or of text, or of lists of them, or of anything with such keys: positions in order, in
 * at[0 … n). */
typedef struct ListOrder {
  Vm *vm;
  const Value *keys;
  bool descending;
  bool *mixed; /* what was compared has no order, or the program is to end */
} ListOrder;

enum { KEY_DEPTH = 8 }; /* of lists inside of each other */

/* Is it a number, a text, or a list of such keys? False also when an error stands. */
static bool is_key(Vm *vm, Value v, u32 depth) {
  v = value_untracked(v);
  if (v.kind == V_TEXT || (v.kind == V_NUM && dtype_kind(v.dtype) != DK_COMPLEX)) return true;
  if (v.kind != V_LIST || depth == KEY_DEPTH || vm_walk(vm) != WEFT_OK || !list_boxed(vm, v.list)) return false;
  for (u32 i = 0; i < v.list->count; i++)
    if (!is_key(vm, v.list->items[i], depth + 1)) return false;
  return true;
}

static bool key_less(const ListOrder *o, Value x, Value y) {
  if (*o->mixed) return false;
  x = value_untracked(x);
  y = value_untracked(y);
  if (x.kind != y.kind) {
    *o->mixed = true;
    return false;
  }
  if (x.kind == V_TEXT) {
    size_t n = x.text->len < y.text->len ? x.text->len : y.text->len;
    int c = memcmp(x.text->data, y.text->data, n); /* UTF-8 orders as its code points do */
    return c < 0 || (c == 0 && x.text->len < y.text->len);
  }
  if (x.kind == V_LIST) { /* the first items that differ decide, else the length */
    if (++o->vm->walked % 1024 == 0 && vm_ends(o->vm)) { /* lists that are shared have many paths */
      *o->mixed = true;
      return false;
    }
    for (u32 i = 0; i < x.list->count && i < y.list->count; i++) {
      if (key_less(o, x.list->items[i], y.list->items[i])) return true;
      if (key_less(o, y.list->items[i], x.list->items[i])) return false;
    }
    return x.list->count < y.list->count;
  }
  if (dtype_kind(x.dtype) <= DK_INT && dtype_kind(y.dtype) <= DK_INT)
    return num_is_huge(x) == num_is_huge(y) ? x.i < y.i : num_is_huge(y);
  f64 p = num_as_f64(x), q = num_as_f64(y);
  if (p != p || q != q) return o->descending ? p != p && q == q : p == p && q != q; /* NaN last, both ways */
  return p < q;
}

static bool list_less(const void *ctx, i64 a, i64 b) {
  const ListOrder *o = ctx;
  return key_less(o, o->keys[o->descending ? b : a], o->keys[o->descending ? a : b]);
}

/* Integers alone, or floats alone, are ordered as an array of them is. *done: they are. */
static WeftStatus order_numbers(Vm *vm, const List *keys, bool descending, Value *positions, bool *done) {
  i64 n = keys->count;
  bool floats = n && dtype_kind(keys->items[0].dtype) == DK_FLOAT;
  *done = false;
  for (i64 i = 0; i < n; i++)
    if (keys->items[i].kind != V_NUM || (dtype_kind(keys->items[i].dtype) == DK_FLOAT) != floats ||
        num_is_huge(keys->items[i]))
      return WEFT_OK;
  Value x;
  TRY(array_new(vm, floats ? DT_f64 : DT_i64, 1, &n, &x));
  WeftStatus status = array_new(vm, DT_i64, 1, &n, positions);
  if (status == WEFT_OK) {
    void *data = x.array->data;
    for (i64 i = 0; i < n; i++) {
      if (floats) ((f64 *)data)[i] = num_as_f64(keys->items[i]);
      else ((i64 *)data)[i] = keys->items[i].i;
    }
    status = sort_lanes(vm, x.array, 0, descending, true, positions->array->data);
    if (status != WEFT_OK) value_drop(vm, *positions);
  }
  value_drop(vm, x);
  *done = status == WEFT_OK;
  return status;
}

WeftStatus order_list(Vm *vm, u32 op, Value list, Value key, bool descending, Value *positions) {
  u32 n = list.list->count;
  Value keys = value_keep(list);
  WeftStatus status = WEFT_OK;
  if (args_given(key)) {
    value_drop(vm, keys);
    if (!list_new(vm, n, &keys)) return WEFT_ERROR;
    for (u32 i = 0; i < n; i++) {
      Value arg[1] = {value_keep(list.list->items[i])}, own;
      status = vm_call(vm, key, arg, 1, &own);
      if (status != WEFT_OK) {
        value_drop(vm, keys);
        return status;
      }
      TRY(list_add(vm, &keys, own));
    }
  }
  for (u32 i = 0; i < n && status == WEFT_OK; i++) {
    Value k = keys.list->items[i];
    if (is_key(vm, k, 0)) continue;
    if (vm->error.raised) {
      status = WEFT_ERROR;
      break;
    }
    char what[DESCRIBED];
    args_describe(k, what, sizeof what);
    status = vm_error(vm, EK_type, "%s: items of a list are numbers, text or lists of them, got %s%s", op_name(op),
                      what, op == OP_sort || op == OP_argsort ? "; key= gives one for each" : "");
  }
  i64 count = n;
  bool done = false;
  Value spare = value_hole();
  if (status == WEFT_OK) status = order_numbers(vm, keys.list, descending, positions, &done);
  if (status == WEFT_OK && !done) status = array_new(vm, DT_i64, 1, &count, &spare);
  if (status == WEFT_OK && !done) status = array_new(vm, DT_i64, 1, &count, positions);
  if (status == WEFT_OK && !done) {
    i64 *at = positions->array->data;
    bool mixed = false;
    ListOrder order = {vm, keys.list->items, descending, &mixed};
    for (i64 i = 0; i < count; i++) at[i] = i;
    status = positions_sort(vm, at, spare.array->data, count, list_less, &order);
    if (status == WEFT_OK && mixed && (status = vm_look(vm)) == WEFT_OK)
      status = vm_error(vm, EK_type, op == OP_sort || op == OP_argsort
                                         ? "%s: numbers, text and lists have no order among each other"
                                         : "%s: items are all numbers, all text or all lists, not some of each",
                        op_name(op));
    if (status != WEFT_OK) value_drop(vm, *positions);
  }
  value_drop(vm, spare);
  value_drop(vm, keys);
  return status;
}

/* Fewer checks than arg_axis: nil flattens. *x: dense, owned. */
static WeftStatus sort_operand(Vm *vm, u32 op, Value v, u32 param, Value axis_arg, Value *x, u32 *axis) {
  RuleError err;
  ArrayType type;
  i64 given = -1;
  TRY(args_array(vm, op, 0, v));
  TRY(args_int(vm, op, param, axis_arg, &given));
  Value own = value_keep(v);
  if (axis_arg.kind == V_NIL) {
    Value one[1] = {own};
    TRY(run_op(vm, OP_ravel, one, 1, &own));
  }
  type_of_value(own, &type);
  WeftStatus status = rule_axis(given, type.rank, axis, &err) ? dense_as(vm, op, own, type.dtype, x)
                                                              : vm_error_rule(vm, op, &err);
  value_drop(vm, own);
  return status;
}

static WeftStatus sort_any(Vm *vm, u32 op, bool positions, Value *args, Value *out) {
  bool descending = false, stable = true;
  TRY(args_bool(vm, op, 2, args[2], &descending));
  TRY(args_bool(vm, op, 4, args[4], &stable)); /* it always is */
  if (args[0].kind == V_LIST) {
    Value at;
    i64 given = -1;
    u32 along;
    RuleError err;
    if (args[1].kind != V_NIL) TRY(args_int(vm, op, 1, args[1], &given));
    if (!rule_axis(given, 1, &along, &err)) return vm_error_rule(vm, op, &err);
    TRY(order_list(vm, op, args[0], args[3], descending, &at));
    if (positions) {
      *out = at;
      return WEFT_OK;
    }
    WeftStatus status = list_new(vm, args[0].list->count, out) ? WEFT_OK : WEFT_ERROR;
    const i64 *p = at.array->data;
    for (u32 i = 0; i < args[0].list->count && status == WEFT_OK; i++)
      status = list_add(vm, out, value_keep(args[0].list->items[p[i]]));
    value_drop(vm, at);
    return status;
  }
  if (args_given(args[3]))
    return vm_error(vm, EK_type, "%s: key= goes with a list; an array is sorted by argsort of its keys", op_name(op));
  Value x;
  u32 axis;
  TRY(sort_operand(vm, op, args[0], 1, args[1], &x, &axis));
  WeftStatus status = array_new(vm, positions ? DT_i64 : array_dtype(x.array), array_rank(x.array),
                                array_dims(x.array), out);
  if (status == WEFT_OK) {
    status = sort_lanes(vm, x.array, axis, descending, positions, out->array->data);
    if (status != WEFT_OK) value_drop(vm, *out);
  }
  value_drop(vm, x);
  return status;
}
WeftStatus eager_sort(Vm *vm, Value *args, Value *out) { return sort_any(vm, OP_sort, false, args, out); }
WeftStatus eager_argsort(Vm *vm, Value *args, Value *out) { return sort_any(vm, OP_argsort, true, args, out); }

/* The first k positions of each lane in the order of sort_lanes, into `out`, whose axis has the size k. What may be
 * among them is gathered, and cut to the k least whenever the room is full: n log k steps, whatever the order. */
static WeftStatus topk_lanes(Vm *vm, Array *dense, u32 axis, i64 k, bool largest, i64 *out) {
  u32 dtype = array_dtype(dense), bytes = dtype_bytes(dtype);
  i64 n = array_dims(dense)[axis], lanes = n ? dense->size / n : 0, inner = 1;
  for (u32 d = axis + 1; d < array_rank(dense); d++) inner *= array_dims(dense)[d];
  if (dense->size == 0 || k == 0) return WEFT_OK;
  i64 room = k > (n - TOPK_SLACK) / 2 ? n : 2 * k + TOPK_SLACK;
  size_t size = (size_t)room * 2 * sizeof(Keyed) + (size_t)n * sizeof(u64);
  char *memory = mem_alloc(&vm->alloc, size);
  if (!memory) return vm_error_memory(vm);
  Keyed *pairs = (Keyed *)memory, *spare = pairs + room;
  u64 *keys = (u64 *)(spare + room);
  WeftStatus status = WEFT_OK;
  for (i64 l = 0; l < lanes && status == WEFT_OK; l++) {
    const char *lane = (const char *)dense->data + (l / inner * n * inner + l % inner) * bytes;
    if ((status = keys_make(vm, keys, lane, n, inner, dtype, largest, &(bool){false})) != WEFT_OK) break;
    i64 have = 0;
    bool full = false; /* k are known: an equal key that comes later is behind all of them */
    u64 last = 0;
    Polled p = parts_in(vm, n, PART_ELEMENTS);
    while (status == WEFT_OK && parts_next(&p))
      for (i64 i = p.from; i < p.to && status == WEFT_OK; i++) {
        if (full && keys[i] >= last) continue;
        pairs[have++] = (Keyed){keys[i], i};
        if (have < room || i + 1 == n) continue;
        status = keyed_sort(vm, pairs, spare, have);
        have = k;
        last = pairs[k - 1].key;
        full = true;
      }
    if (status == WEFT_OK) status = p.status == WEFT_OK ? keyed_sort(vm, pairs, spare, have) : WEFT_ERROR;
    if (status != WEFT_OK) break;
    i64 *o = out + l / inner * k * inner + l % inner;
    for (i64 i = 0; i < k; i++) o[i * inner] = pairs[i].at;
    status = kernel_poll(vm, n);
  }
  mem_free(&vm->alloc, memory, size);
  return status;
}

__attribute__((cold)) WeftStatus eager_topk(Vm *vm, Value *args, Value *out) {
  i64 k = 0;
  bool largest = true;
  Value x, first, values;
  u32 axis;
  TRY(args_size(vm, OP_topk, 1, args[1], &k));
  TRY(args_bool(vm, OP_topk, 3, args[3], &largest));
  TRY(args_array(vm, OP_topk, 0, args[0]));
  TRY(sort_operand(vm, OP_topk, args[0], 2, args[2], &x, &axis));
  i64 dims[ARRAY_MAX_RANK], size = array_dims(x.array)[axis];
  u32 rank = array_rank(x.array);
  if (k > size) {
    value_drop(vm, x);
    return vm_error(vm, EK_value, "topk: k is %lld, axis %u has the size %lld", (long long)k, axis, (long long)size);
  }
  memcpy(dims, array_dims(x.array), rank * sizeof *dims);
  dims[axis] = k;
  WeftStatus status = array_new(vm, DT_i64, rank, dims, &first);
  if (status == WEFT_OK) {
    status = topk_lanes(vm, x.array, axis, k, largest, first.array->data);
    if (status != WEFT_OK) value_drop(vm, first);
  }
  if (status != WEFT_OK) {
    value_drop(vm, x);
    return status;
  }
  Value at[3] = {x, value_keep(first), value_i64(axis)};
  status = run_op(vm, OP_take_along_axis, at, 3, &values);
  if (status == WEFT_OK && !list_new(vm, 2, out)) {
    value_drop(vm, values);
    status = WEFT_ERROR;
  }
  if (status == WEFT_OK) status = list_add(vm, out, values);
  if (status != WEFT_OK) {
    value_drop(vm, first);
    return status;
  }
  return list_add(vm, out, first);
}

/* ---- searching ----------------------------------------------------------------------------------- */

/* How many of the n numbers of `a` the place of v lies behind, in steps without branches: behind those that are less,
 * of side right those that are equal as well. */
#define PLACE(dt)                                                                                             \
  static inline i64 place_##dt(const T_##dt *a, i64 n, T_##dt v, bool right) {                                \
    const T_##dt *at = a;                                                                                     \
    while (n > 1) {                                                                                           \
      const i64 half = n / 2;                                                                                 \
      at += half & -(i64)(right ? at[half - 1] <= v : at[half - 1] < v);                                      \
      n -= half;                                                                                              \
    }                                                                                                         \
    return at - a + (n == 1 && (right ? *at <= v : *at < v));                                                 \
  }

enum { GUESSES = 64, WRONG = 4 /* a wrong guess counts as so many right ones; so many more end guessing */,
       TOGETHER = 8 /* places looked for at once: the loads of one wait for each other. TRIED: unrolled by gcc, no
                        * faster, it spills */ };

/* Where numbers are spread evenly, as those of linspace are, a line through the first and the last of them leads to the
 * place or beside it. NaN stands after everything: no number is behind it, and all numbers are before it. */
#define SEARCH(dt, is_nan, top)                                                                               \
  PLACE(dt)                                                                                                   \
  static inline i64 behind_##dt(const T_##dt *a, i64 n, T_##dt x, bool right) {                               \
    return !(is_nan) ? place_##dt(a, n, x, right) : right ? n : place_##dt(a, n, top, true);                  \
  }                                                                                                           \
  static inline __attribute__((always_inline)) void together_##dt(const T_##dt *a, i64 n, const T_##dt *v,    \
                                                                  bool right, i64 *out) {                     \
    const T_##dt *at[TOGETHER];                                                                               \
    i64 left = n;                                                                                             \
    bool odd = n == 0;                                                                                        \
    for (u32 k = 0; k < TOGETHER; k++) {                                                                      \
      const T_##dt x = v[k];                                                                                  \
      (void)x;                                                                                                \
      at[k] = a;                                                                                              \
      odd |= is_nan;                                                                                          \
    }                                                                                                         \
    for (u32 k = 0; odd && k < TOGETHER; k++) out[k] = behind_##dt(a, n, v[k], right);                        \
    if (odd) return;                                                                                          \
    for (; left > 1; left -= left / 2)                                                                        \
      for (u32 k = 0; k < TOGETHER; k++)                                                                      \
        at[k] += left / 2 & -(i64)(right ? at[k][left / 2 - 1] <= v[k] : at[k][left / 2 - 1] < v[k]);         \
    for (u32 k = 0; k < TOGETHER; k++) out[k] = at[k] - a + (right ? *at[k] <= v[k] : *at[k] < v[k]);         \
  }                                                                                                           \
  static inline __attribute__((always_inline)) void places_##dt(const T_##dt *a, i64 n, const T_##dt *v,      \
                                                                i64 count, bool right, i64 *out) {            \
    i64 wrong = 0, most = n - 1, i = 0;                                                                       \
    const f64 first = n ? (f64)a[0] : 0, slope = n ? (f64)most / ((f64)a[n - 1] - first) : 0;                 \
    if (!(slope > 0 && slope < INFINITY)) wrong = GUESSES;                                                    \
    for (; i < count && wrong < GUESSES; i++) {                                                               \
      const T_##dt x = v[i];                                                                                  \
      const f64 on = ((f64)x - first) * slope;                                                                \
      if (on >= 0 && on < (f64)most) {                                                                        \
        const i64 near = (i64)on;                                                                             \
        const i64 at = right ? near + (a[near] <= x) + (a[near + 1] <= x)                                     \
                             : near + (a[near] < x) + (a[near + 1] < x);                                      \
        if ((at == 0 || (right ? a[at - 1] <= x : a[at - 1] < x)) &&                                          \
            (at == n || !(right ? a[at] <= x : a[at] < x))) {                                                 \
          out[i] = at;                                                                                        \
          wrong -= wrong > 0;                                                                                 \
          continue;                                                                                           \
        }                                                                                                     \
        wrong += WRONG;                                                                                       \
      }                                                                                                       \
      out[i] = behind_##dt(a, n, x, right);                                                                   \
    }                                                                                                         \
    for (; i + TOGETHER <= count; i += TOGETHER) together_##dt(a, n, v + i, right, out + i);                  \
    for (; i < count; i++) out[i] = behind_##dt(a, n, v[i], right);                                           \
  }                                                                                                           \
  static void search_##dt(const void *a, i64 n, const void *v, i64 count, bool right, i64 *out) {             \
    if (right) places_##dt(a, n, v, count, true, out);                                                        \
    else places_##dt(a, n, v, count, false, out);                                                             \
  }
SEARCH(u8, false, 0)
SEARCH(i32, false, 0)
SEARCH(i64, false, 0)
SEARCH(u64, false, 0)
SEARCH(f32, x != x, (f32)INFINITY)
SEARCH(f64, x != x, INFINITY)

static void search(u32 dtype, const void *a, i64 n, const void *v, i64 count, bool right, i64 *out) {
  switch (dtype) {
    case DT_i32: search_i32(a, n, v, count, right, out); break;
    case DT_i64: search_i64(a, n, v, count, right, out); break;
    case DT_u64: search_u64(a, n, v, count, right, out); break;
    case DT_f32: search_f32(a, n, v, count, right, out); break;
    case DT_f64: search_f64(a, n, v, count, right, out); break;
    default: search_u8(a, n, v, count, right, out);
  }
}

/* The dtype in which two arguments are compared. A weak integer that the other's dtype does not hold is compared by its
 * value, as `==` and `<` do. */
static u32 compared_dtype(const Value *pair) {
  const u32 joint = joint_dtype(pair, 2);
  Value as[2] = {pair[0], pair[1]};
  for (u32 i = 0; i < 2; i++)
    if (value_is_weak(as[i]) && !num_fits(as[i], joint)) as[i].flags &= (u8)~VF_WEAK;
  return joint_dtype(as, 2);
}

WeftStatus eager_searchsorted(Vm *vm, Value *args, Value *out) {
  static const char *const sides[] = {"left", "right", NULL};
  u32 side = 0;
  ArrayType shape;
  Value a, v;
  if (args_given(args[3])) { /* in the order of its places */
    Value now[4] = {value_hole(), args[1], args[2], value_hole()}, part[2] = {value_keep(args[0]), value_keep(args[3])};
    TRY(run_op(vm, OP_take, part, 2, &now[0]));
    WeftStatus status = eager_searchsorted(vm, now, out);
    value_drop(vm, now[0]);
    return status;
  }
  TRY(args_array(vm, OP_searchsorted, 0, args[0]));
  TRY(args_array(vm, OP_searchsorted, 1, args[1]));
  TRY(args_choice(vm, OP_searchsorted, 2, args[2], sides, &side));
  if (args[0].kind != V_ARRAY || array_rank(args[0].array) != 1)
    return args_error(vm, OP_searchsorted, 0, args[0], "a sorted array of rank 1");
  u32 dtype = compared_dtype(args);
  type_of_value(args[1], &shape);
  TRY(dense_as(vm, OP_searchsorted, args[0], dtype, &a));
  WeftStatus status = dense_as(vm, OP_searchsorted, args[1], dtype, &v);
  if (status == WEFT_OK) {
    void *data;
    status = kernel_poll(vm, v.array->size);
    if (status == WEFT_OK) status = result_new(vm, DT_i64, &shape, out, &data);
    if (status == WEFT_OK) {
      const u32 bytes = dtype_bytes(dtype);
      Polled p = parts_in(vm, v.array->size, PART_ELEMENTS / 8);
      while (parts_next(&p))
        search(dtype, a.array->data, a.array->size, (const char *)v.array->data + p.from * bytes, p.to - p.from,
               side == 1, (i64 *)data + p.from);
      status = p.status;
      if (status == WEFT_OK) result_finish(vm, out);
      else value_drop(vm, *out);
    }
    value_drop(vm, v);
  }
  value_drop(vm, a);
  return status;
}

/* Complex numbers have no order: they are numbered, equal ones alike, and the numbers looked up. */
static WeftStatus isin_by_number(Vm *vm, Value x, Value values, u32 dtype, Value *out) {
  Value parts[2] = {value_hole(), value_hole()}, sides[2] = {value_hole(), value_hole()};
  Value list = value_hole(), all, found;
  ArrayType type;
  type_of_value(x, &type);
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < 2 && status == WEFT_OK; i++) {
    status = convert_value(vm, OP_isin, i ? values : x, dtype, &parts[i]);
    if (status == WEFT_OK) status = run_op(vm, OP_ravel, (Value[]){parts[i]}, 1, &parts[i]);
    if (status != WEFT_OK) parts[i] = value_hole();
  }
  if (status == WEFT_OK && !list_from(vm, parts, 2, &list)) status = WEFT_ERROR;
  const i64 size = dims_size(type.rank, type.dims), one = 1;
  for (u32 i = 0; i < 2; i++) value_drop(vm, parts[i]);
  TRY(status);
  TRY(run_op(vm, OP_concat, (Value[]){list, value_i64(0)}, 2, &all));
  TRY(run_op(vm, OP_unique, (Value[]){all, value_bool(false), value_bool(true), value_bool(false), value_hole()}, 5,
             &found));
  Array *numbers = found.list->items[1].array;
  const i64 rest = numbers->size - size;
  i64 strides[ARRAY_MAX_RANK];
  dense_strides(type.rank, type.dims, strides);
  status = array_view(vm, numbers, 0, type.rank, type.dims, strides, &sides[0]);
  if (status == WEFT_OK) status = array_view(vm, numbers, size, 1, &rest, &one, &sides[1]);
  if (status == WEFT_OK) status = eager_isin(vm, sides, out);
  for (u32 i = 0; i < 2; i++) value_drop(vm, sides[i]);
  value_drop(vm, found);
  return status;
}

/* An array is looked for among numbers, a list among the items of a list. */
static WeftStatus isin_sides(Vm *vm, Value x, Value values) {
  char what[DESCRIBED];
  args_describe(values, what, sizeof what);
  if (x.kind == V_LIST)
    return vm_error(vm, EK_type, "isin: x is a list, so values must be one, got %s; array(…) makes an array of a list "
                                 "of numbers", what);
  if (x.kind == V_TEXT)
    return vm_error(vm, EK_type, "isin: x must be an array or a list, got text; `in` looks for one");
  TRY(args_array(vm, OP_isin, 0, x));
  for (u32 i = 0; values.kind == V_LIST && i < values.list->count; i++) {
    const Value item = values.list->items[i];
    if (item.kind == V_TEXT || item.kind == V_RECORD)
      return vm_error(vm, EK_type, "isin: values hold %s, x is an array of numbers; x may be a list of such items, too",
                      value_type_name(item));
  }
  return WEFT_OK;
}

WeftStatus eager_isin(Vm *vm, Value *args, Value *out) {
  enum { SOUGHT = 256 };
  ArrayType shape;
  Value x, flat, sorted;
  if (args[0].kind == V_LIST && args[1].kind == V_LIST) return isin_list(vm, args[0], args[1], out);
  TRY(isin_sides(vm, args[0], args[1]));
  Value made[1] = {value_keep(args[1])};
  if (made[0].kind == V_LIST || made[0].kind == V_RANGE) {
    TRY(run_op(vm, OP_array, made, 1, &made[0]));
  }
  WeftStatus status = args_array(vm, OP_isin, 1, made[0]);
  u32 dtype = DT_NONE;
  if (status == WEFT_OK) {
    Value both[2] = {args[0], made[0]};
    dtype = compared_dtype(both);
    if (dtype_kind(dtype) == DK_COMPLEX) {
      status = isin_by_number(vm, args[0], made[0], dtype, out);
      value_drop(vm, made[0]);
      return status;
    }
    status = dense_as(vm, OP_isin, made[0], dtype, &flat);
  }
  value_drop(vm, made[0]);
  TRY(status);
  Value one[1] = {flat};
  TRY(run_op(vm, OP_ravel, one, 1, &flat));
  i64 n = flat.array->size;
  status = array_new(vm, dtype, 1, &n, &sorted);
  if (status == WEFT_OK) {
    status = sort_lanes(vm, flat.array, 0, false, false, sorted.array->data);
    if (status == WEFT_OK) status = dense_as(vm, OP_isin, args[0], dtype, &x);
    if (status == WEFT_OK) {
      void *data;
      type_of_value(args[0], &shape);
      status = result_new(vm, DT_bool, &shape, out, &data);
      if (status == WEFT_OK) {
        u32 bytes = dtype_bytes(dtype);
        const char *p = x.array->data, *s = sorted.array->data;
        StripFn equal = stdlib_of(vm)->strips->ops[OP_equal][dtype];
        u8 *o = data;
        Polled parts = parts_in(vm, x.array->size, PART_ELEMENTS / 8);
        while (parts_next(&parts))
          for (i64 i = parts.from, some; i < parts.to; i += some) {
            i64 at[SOUGHT];
            some = parts.to - i < SOUGHT ? parts.to - i : SOUGHT;
            search(dtype, s, n, p + i * bytes, some, false, at);
            for (i64 k = 0; k < some; k++) {
              u8 same = 0;
              if (at[k] < n) (void)equal(&same, p + (i + k) * bytes, s + at[k] * bytes, 1);
              o[i + k] = same;
            }
          }
        status = parts.status;
        if (status == WEFT_OK) result_finish(vm, out);
        else value_drop(vm, *out);
      }
      value_drop(vm, x);
    }
    value_drop(vm, sorted);
  }
  value_drop(vm, flat);
  return status;
}

/* ---- unique -------------------------------------------------------------------------------------- */

/* Rows of `width` keys each. */
typedef struct RowOrder {
  const u64 *keys;
  i64 width;
} RowOrder;

static bool row_less(const void *ctx, i64 a, i64 b) {
  const RowOrder *o = ctx;
  const u64 *p = o->keys + a * o->width, *q = o->keys + b * o->width;
  for (i64 i = 0; i < o->width; i++)
    if (p[i] != q[i]) return p[i] < q[i];
  return false;
}

/* NaN is no other NaN. */
static bool row_same(const RowOrder *o, u32 dtype, i64 a, i64 b) {
  const u64 *p = o->keys + a * o->width, *q = o->keys + b * o->width;
  for (i64 i = 0; i < o->width; i++)
    if (p[i] != q[i] || key_is_nan(p[i], dtype)) return false;
  return true;
}

/* The values alone of n elements in a row, from their keys: of integers that lie close together by a mark for each
 * value, of others by sorting the keys without their positions. *done false: -0 or NaN are among them, whose keys do
 * not tell which they are. */
static WeftStatus unique_values(Vm *vm, const Array *x, u32 dtype, Value *out, bool *done) {
  enum { MARKS_EACH = 8 /* bytes of marks for an element at most, as many as its key has */ };
  const i64 n = x->size;
  const size_t size = 2 * (size_t)n * sizeof(u64);
  u64 *keys = mem_alloc(&vm->alloc, size), least = UINT64_MAX, most = 0;
  bool hidden = false;
  i64 count = 0;
  if (!keys) return vm_error_memory(vm);
  u64 *spare = keys + n;
  WeftStatus status = keys_make(vm, keys, x->data, n, 1, dtype, false, &hidden);
  Polled p = parts_in(vm, status == WEFT_OK ? n : 0, PART_ELEMENTS);
  while (parts_next(&p))
    for (i64 i = p.from; i < p.to; i++) {
      least = keys[i] < least ? keys[i] : least;
      most = keys[i] > most ? keys[i] : most;
    }
  if (status == WEFT_OK) status = p.status;
  *done = status != WEFT_OK || (!hidden && !key_is_nan(most, dtype));
  if (status == WEFT_OK && *done && most - least < MARKS_EACH * (u64)n) {
    u8 *marks = (u8 *)spare; /* values in order come behind the keys that were read */
    const i64 values = (i64)(most - least) + 1;
    p = parts_in(vm, values, PART_ELEMENTS);
    while (parts_next(&p)) memset(marks + p.from, 0, (size_t)(p.to - p.from));
    if (p.status == WEFT_OK) p = parts_in(vm, n, PART_ELEMENTS);
    while (p.status == WEFT_OK && parts_next(&p))
      for (i64 i = p.from; i < p.to; i++) marks[keys[i] - least] = 1;
    if (p.status == WEFT_OK) p = parts_in(vm, values, PART_ELEMENTS);
    while (p.status == WEFT_OK && parts_next(&p))
      for (i64 i = p.from; i < p.to; i++) {
        keys[count] = least + (u64)i; /* the last of them is marked: there are no more than n */
        count += marks[i];
      }
    status = p.status;
  } else if (status == WEFT_OK && *done) {
    status = keys_sort(vm, keys, spare, n);
    p = parts_in(vm, status == WEFT_OK ? n : 0, PART_ELEMENTS);
    while (parts_next(&p))
      for (i64 i = p.from; i < p.to; i++)
        if (i == 0 || keys[i] != keys[count - 1]) keys[count++] = keys[i];
    if (status == WEFT_OK) status = p.status;
  }
  if (status == WEFT_OK && *done) status = array_new(vm, dtype, 1, &count, out);
  if (status == WEFT_OK && *done) {
    char *o = out->array->data;
    const u32 bytes = dtype_bytes(dtype);
    p = parts_in(vm, count, PART_ELEMENTS);
    while (parts_next(&p))
      for (i64 i = p.from; i < p.to; i++) keys_value(keys[i], dtype, false, o + i * bytes);
    status = p.status;
    if (status != WEFT_OK) value_drop(vm, *out);
  }
  mem_free(&vm->alloc, keys, size);
  return status;
}

WeftStatus eager_unique(Vm *vm, Value *args, Value *out) {
  bool want[3] = {false, false, false}; /* index, inverse, counts */
  ArrayType type, inverse_shape;
  RuleError err;
  u32 axis = 0;
  i64 given = 0;
  bool flat = !args_given(args[4]);
  Value x;
  for (u32 i = 0; i < 3; i++) TRY(args_bool(vm, OP_unique, i + 1, args[i + 1], &want[i]));
  TRY(args_int(vm, OP_unique, 4, args[4], &given));
  if (args[0].kind == V_LIST) {
    if (!rule_axis(given, 1, &axis, &err)) return vm_error_rule(vm, OP_unique, &err);
    return unique_list(vm, args[0], want, out);
  }
  TRY(args_array(vm, OP_unique, 0, args[0]));
  type_of_value(args[0], &inverse_shape);
  Value one[1] = {value_keep(args[0])};
  if (flat) TRY(run_op(vm, OP_ravel, one, 1, &x));
  else x = one[0];
  type_of_value(x, &type);
  if (!rule_axis(given, type.rank, &axis, &err)) {
    value_drop(vm, x);
    return vm_error_rule(vm, OP_unique, &err);
  }
  /* the axis first, each of its slices one row */
  Value swap[3] = {x, value_i64(axis), value_i64(0)}, rows, dense;
  TRY(run_op(vm, OP_moveaxis, swap, 3, &rows));
  WeftStatus status = dense_as(vm, OP_unique, rows, type.dtype, &dense);
  value_drop(vm, rows);
  TRY(status);
  /* complex numbers by their real parts, then the imaginary ones */
  const u32 real = dtype_real_of(type.dtype), parts = dtype_bytes(type.dtype) / dtype_bytes(real);
  const i64 n = type.dims[axis], keyed = dense.array->size * parts, width = n ? keyed / n : 0;
  if (type.rank == 1 && width == 1 && real == type.dtype && !want[0] && !want[1] && !want[2]) {
    bool done = false;
    status = unique_values(vm, dense.array, real, out, &done);
    if (done || status != WEFT_OK) {
      value_drop(vm, dense);
      return status;
    }
  }
  size_t key_bytes = (size_t)keyed * sizeof(u64), at_bytes = (size_t)n * sizeof(i64);
  size_t pair_bytes = width == 1 ? 2 * (size_t)n * sizeof(Keyed) : 0,
      size = key_bytes + 4 * at_bytes + pair_bytes + sizeof(Keyed);
  char *memory = mem_alloc(&vm->alloc, size);
  if (!memory) {
    value_drop(vm, dense);
    return vm_error_memory(vm);
  }
  Keyed *pairs = (Keyed *)memory;
  u64 *keys = (u64 *)(memory + pair_bytes);
  i64 *at = (i64 *)(keys + keyed), *spare = at + n, *group = spare + n, *first = group + n;
  RowOrder order = {keys, width};
  i64 count = 0;
  status = kernel_poll(vm, dense.array->size);
  if (n && status == WEFT_OK) {
    status = keys_make(vm, keys, dense.array->data, keyed, 1, real, false, &(bool){false});
    bool counted = false; /* integers that lie close together */
    if (status == WEFT_OK && width == 1)
      status = keys_count(vm, dense.array->data, n, 1, real, false, at, &counted);
    if (status == WEFT_OK && width == 1 && !counted) status = keyed_order(vm, keys, pairs, pairs + n, n);
    Polled p = parts_in(vm, status == WEFT_OK && !counted ? n : 0, PART_ELEMENTS);
    while (parts_next(&p))
      for (i64 i = p.from; i < p.to; i++) at[i] = width == 1 ? pairs[i].at : i;
    if (status == WEFT_OK) status = p.status;
    if (status == WEFT_OK && width != 1) status = positions_sort(vm, at, spare, n, row_less, &order);
    p = parts_in(vm, status == WEFT_OK ? n : 0, width ? PART_ELEMENTS / width : n);
    while (parts_next(&p))
      for (i64 i = p.from; i < p.to; i++) {
        if (i == 0 || !row_same(&order, real, at[i - 1], at[i])) first[count++] = i;
        group[at[i]] = count - 1;
      }
    if (status == WEFT_OK) status = p.status;
  }
  /* results: values, and what was asked for */
  Value results[4] = {value_hole(), value_hole(), value_hole(), value_hole()};
  if (status == WEFT_OK) status = array_new(vm, DT_i64, 1, &count, &results[1]);
  if (status == WEFT_OK) {
    i64 *p = results[1].array->data;
    for (i64 k = 0; k < count; k++) p[k] = at[first[k]];
    status = take_positions(vm, dense, 0, p, count, &results[0]);
  }
  if (status == WEFT_OK && want[1]) {
    ArrayType shape = {.rank = 1, .dims = {n}};
    void *data;
    status = result_new(vm, DT_i64, flat ? &inverse_shape : &shape, &results[2], &data);
    const bool ready = status == WEFT_OK;
    if (ready && n) status = copy_polled(vm, data, group, at_bytes);
    if (ready) result_finish(vm, &results[2]);
  }
  if (status == WEFT_OK && want[2]) {
    status = array_new(vm, DT_i64, 1, &count, &results[3]);
    i64 *p = status == WEFT_OK ? results[3].array->data : NULL;
    for (i64 k = 0; k < count && p; k++) p[k] = (k + 1 < count ? first[k + 1] : n) - first[k];
  }
  mem_free(&vm->alloc, memory, size);
  value_drop(vm, dense);
  if (status == WEFT_OK && !flat && axis != 0) {
    Value back[3] = {results[0], value_i64(0), value_i64(axis)};
    results[0] = value_hole();
    status = run_op(vm, OP_moveaxis, back, 3, &results[0]);
  }
  if (status == WEFT_OK && !want[0] && !want[1] && !want[2]) {
    *out = results[0];
    value_drop(vm, results[1]);
    return WEFT_OK;
  }
  if (status == WEFT_OK && !list_new(vm, 4, out)) status = WEFT_ERROR;
  for (u32 i = 0; i < 4; i++) {
    if (status == WEFT_OK && (i == 0 || want[i - 1])) status = list_add(vm, out, results[i]);
    else value_drop(vm, results[i]);
  }
  return status;
}

/* ---- quantiles ----------------------------------------------------------------------------------- */

/* What lies between p and v, p <= v, at t of the way: p at 0, v at 1, from the nearer end, so that both ends are met
 * exactly. It is p where both are equal, infinities too; between a number and an infinity it is that infinity, between
 * two infinities of different signs NaN. It is finite where p and v are, though their distance may not be. */
#define BETWEEN(T)                                                        \
  static T between_##T(T p, T v, T t) {                                   \
    T gap = v - p;                                                        \
    if (p == v || t == 0) return p;                                       \
    if (isfinite(gap)) return t >= (T)0.5 ? v - gap * (1 - t) : p + gap * t; \
    return isfinite(p) && isfinite(v) ? p * (1 - t) + v * t : p + v;      \
  }
BETWEEN(f32)
BETWEEN(f64)
#undef BETWEEN

/* For each result the elements under the axes of `mask`, as `dtype` (a float), sorted: writes one quantile per q.
 * out: [q][result]. A NaN among the elements is the result. */
__attribute__((cold)) static WeftStatus quantiles(Vm *vm, u32 op, Value x, u32 mask, u32 dtype, bool median,
                                                  const f64 *q, i64 nq, void *out) {
  NumBox box;
  Array *a = array_of(x, &box);
  Split s;
  split_axes(a, mask, &s);
  if (s.results == 0 || nq == 0) return WEFT_OK;
  u32 bytes = dtype_bytes(dtype);
  i64 n = s.count;
  size_t size = (size_t)n * (bytes + 2 * sizeof(u64));
  char *memory = mem_alloc(&vm->alloc, size);
  if (!memory) return vm_error_memory(vm);
  u64 *keys = (u64 *)memory, *spare = keys + n;
  char *lane = (char *)(spare + n);
  Reader r;
  reader_start_raw(&r, stdlib_of(vm)->strips, a->data, array_dtype(a), s.kept + s.reduced, s.dims, s.strides, dtype);
  WeftStatus status = WEFT_OK;
  for (i64 k = 0; k < s.results && status == WEFT_OK; k++) {
    Polled read = parts_in(vm, n, PART_ELEMENTS);
    while (parts_next(&read)) reader_read(&r, lane + read.from * bytes, read.to - read.from);
    status = read.status == WEFT_OK ? keys_make(vm, keys, lane, n, 1, dtype, false, &(bool){false}) : WEFT_ERROR;
    if (status == WEFT_OK) status = keys_sort(vm, keys, spare, n);
    if (status != WEFT_OK) break;
    bool has_nan = key_is_nan(keys[n - 1], dtype);
    for (i64 j = 0; j < nq; j++) {
      f64 place = median ? 0.5 * (f64)(n - 1) : q[j] * (f64)(n - 1);
      i64 lo = has_nan ? n - 1 : (i64)place, hi = has_nan || lo + 1 >= n ? lo : lo + 1;
      f64 t = place - (f64)lo;
      char *o = (char *)out + (j * s.results + k) * bytes;
      /* the median is the mean of two */
#define PUT(T)                                                                               \
  {                                                                                          \
    T p, v, sum;                                                                             \
    keys_value(keys[lo], dtype, false, &p);                                                  \
    keys_value(keys[hi], dtype, false, &v);                                                  \
    sum = p + v;                                                                             \
    *(T *)o = has_nan ? (T)NAN : lo == hi ||                                                 \
              t == 0 ? p : median && isfinite(sum) ? sum * (T)0.5 : between_##T(p, v, (T)t); \
  }
      if (dtype == DT_f32) PUT(f32)
      else PUT(f64)
#undef PUT
    }
    status = kernel_poll(vm, n);
  }
  mem_free(&vm->alloc, memory, size);
  (void)op;
  return status;
}

WeftStatus eager_median(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape;
  u32 mask;
  bool keep = false;
  void *data;
  TRY(args_array(vm, OP_median, 0, args[0]));
  type_of_value(args[0], &type);
  TRY(args_axes(vm, OP_median, 1, args[1], type.rank, &mask));
  TRY(args_bool(vm, OP_median, 2, args[2], &keep));
  rule_reduce(&type, mask, keep, &shape);
  TRY(reduce_some(vm, OP_median, &type, mask));
  u32 dtype = dtype_float_of(type.dtype);
  TRY(result_new(vm, dtype, &shape, out, &data));
  if (quantiles(vm, OP_median, args[0], mask, dtype, true, NULL, 1, data) != WEFT_OK) {
    value_drop(vm, *out);
    return WEFT_ERROR;
  }
  result_finish(vm, out);
  return WEFT_OK;
}

WeftStatus eager_quantile(Vm *vm, Value *args, Value *out) {
  ArrayType type, shape, q_type, reduced;
  u32 mask;
  bool keep = false;
  void *data;
  Value q;
  TRY(args_array(vm, OP_quantile, 0, args[0]));
  type_of_value(args[0], &type);
  TRY(args_axes(vm, OP_quantile, 2, args[2], type.rank, &mask));
  TRY(args_bool(vm, OP_quantile, 3, args[3], &keep));
  TRY(reduce_some(vm, OP_quantile, &type, mask));
  TRY(args_array(vm, OP_quantile, 1, args[1]));
  type_of_value(args[1], &q_type);
  if (q_type.rank > 1) return args_error(vm, OP_quantile, 1, args[1], "a number or an array of rank 1");
  TRY(dense_as(vm, OP_quantile, args[1], DT_f64, &q));
  const f64 *p = q.array->data;
  WeftStatus status = WEFT_OK;
  for (i64 i = 0; i < q.array->size && status == WEFT_OK; i++)
    if (!(p[i] >= 0 && p[i] <= 1))
      status = vm_error(vm, EK_value, "quantile: q holds %g, needs 0 to 1", args_shown(p[i]));
  rule_reduce(&type, mask, keep, &reduced);
  shape.rank = (u8)(q_type.rank + reduced.rank);
  if (status == WEFT_OK && shape.rank > ARRAY_MAX_RANK)
    status = vm_error(vm, EK_shape, "quantile: the result has rank %u; the limit is %d", shape.rank, ARRAY_MAX_RANK);
  if (status == WEFT_OK) {
    u32 dtype = dtype_float_of(type.dtype);
    memcpy(shape.dims, q_type.dims, q_type.rank * sizeof(i64));
    memcpy(shape.dims + q_type.rank, reduced.dims, reduced.rank * sizeof(i64));
    status = result_new(vm, dtype, &shape, out, &data);
    if (status == WEFT_OK) {
      status = quantiles(vm, OP_quantile, args[0], mask, dtype, false, p, q.array->size, data);
      if (status == WEFT_OK) result_finish(vm, out);
      else value_drop(vm, *out);
    }
  }
  value_drop(vm, q);
  return status;
}
