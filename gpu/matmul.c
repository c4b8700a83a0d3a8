/* matmul.c — products of matrices on the device (see matmul.h).
 *
 * Of stacks of matrices a launch takes as many as lie equally far apart in both operands; axes of the stack that do not
 * join so are gone through here. */
#include "gpu/matmul.h"

#include <string.h>

typedef struct Side {
  u64 at;                            /* of the matrix at work */
  i64 across, along;                 /* strides: of the axis that the result has, too; of the inner one */
  i64 count;                         /* elements of the first */
  i64 apart[ARRAY_MAX_RANK];         /* of each axis of the stack */
} Side;

typedef struct Product Product;
struct Product {
  Device *d;
  u32 dtype, axes;
  i64 m, n, k, size[ARRAY_MAX_RANK]; /* of the axes of the stack; the last one is the launch's */
  Side s[2];
  u64 to;
  void *packed[2];                   /* copies of operands that are no pieces of 16 bytes */
  size_t packed_bytes[2];
  const ProductEnd *end;             /* the kernel behind it; NULL */
  Value args[2];                     /* of one that waits: held */
};

static bool is_half(u32 dtype) { return dtype == DT_f16 || dtype == DT_bf16; }
/* The number of its type in matmul_type; MATMUL_TYPES: it has none. */
static u32 own_of(u32 dtype) {
  switch (dtype) {
    case DT_f32: return 0;
    case DT_f64: return 1;
    case DT_u8: return 2;
    case DT_i32:
    case DT_u32: return 3;
    case DT_i64:
    case DT_u64: return 4;
    default: return MATMUL_TYPES;
  }
}

static i64 in_eights(i64 n) { return (n + 7) & ~(i64)7; }

static ArrayType type_of(Array *a) {
  ArrayType t = {.dtype = (u8)array_dtype(a), .rank = (u8)array_rank(a)};
  memcpy(t.dims, array_dims(a), t.rank * sizeof *t.dims);
  return t;
}

/* Axes of the stack, those joined that lie one behind the other in both operands. */
static void put_stack(Product *p, const ArrayType *shape, Array *const *arrays) {
  p->axes = 0;
  for (u32 d = 0; d + 2 < shape->rank; d++) {
    i64 size = shape->dims[d], apart[2] = {0, 0};
    if (size == 1) continue;
    for (u32 which = 0; which < 2; which++) {
      u32 rank = array_rank(arrays[which]), back = shape->rank - d;
      if (back <= rank && array_dims(arrays[which])[rank - back] != 1)
        apart[which] = array_strides(arrays[which])[rank - back];
    }
    u32 last = p->axes - 1;
    bool joins = p->axes && p->s[0].apart[last] == apart[0] * size && p->s[1].apart[last] == apart[1] * size;
    if (joins) p->size[last] *= size;
    else p->size[last = p->axes++] = size;
    for (u32 which = 0; which < 2; which++) p->s[which].apart[last] = apart[which];
  }
  if (p->axes) return;
  p->axes = 1;
  p->size[0] = 1;
  p->s[0].apart[0] = p->s[1].apart[0] = 0;
}

/* The stride that is not 1 lets every row begin at a multiple of 16 bytes; *across: it is the inner axis'. */
static bool in_pieces(const Product *p, const Side *s, bool *across) {
  bool along = s->along == 1 && (s->across % 8 == 0 || s->count == 1);
  *across = !along;
  return s->at % 16 == 0 && s->apart[p->axes - 1] % 8 == 0 &&
         (along || (s->across == 1 && (s->along % 8 == 0 || p->k == 1)));
}

/* Elements of the copy of an operand that the launch's matrices have; its rows go along the axis whose stride is 1. */
static bool packed_size(const Product *p, const Side *s, i64 *rows, i64 *inner, i64 *total) {
  bool across = s->across == 1 && s->along != 1;
  i64 stack = s->apart[p->axes - 1] ? p->size[p->axes - 1] : 1;
  *rows = across ? p->k : s->count;
  *inner = across ? s->count : p->k;
  return !__builtin_mul_overflow(*rows, in_eights(*inner), total) && !__builtin_mul_overflow(*total, stack, total) &&
         *total <= INT32_MAX;
}

static bool read_product(Device *d, const Value *args, Product *p, ArrayType *shape) {
  if (args[0].kind != V_ARRAY || args[1].kind != V_ARRAY) return false;
  Array *arrays[2] = {args[0].array, args[1].array};
  RuleError err;
  *p = (Product){.d = d, .dtype = array_dtype(arrays[0])};
  for (u32 which = 0; which < 2; which++)
    if (array_device(arrays[which]) != DEV_GPU || array_rank(arrays[which]) < 2 ||
        array_dtype(arrays[which]) != p->dtype)
      return false;
  if (own_of(p->dtype) == MATMUL_TYPES && !(is_half(p->dtype) && d->major >= 8)) return false;
  ArrayType x = type_of(arrays[0]), y = type_of(arrays[1]);
  if (!shape_matmul(NULL, &x, &y, shape, &err)) return false;
  shape->dtype = (u8)p->dtype;
  p->m = x.dims[x.rank - 2], p->k = x.dims[x.rank - 1], p->n = y.dims[y.rank - 1];
  if (p->m > INT32_MAX || p->n > INT32_MAX || p->k > INT32_MAX) return false;
  for (u32 which = 0; which < 2; which++) {
    Side *s = &p->s[which];
    const i64 *strides = array_strides(arrays[which]) + array_rank(arrays[which]) - 2;
    s->at = (u64)(uintptr_t)arrays[which]->data;
    s->across = strides[which], s->along = strides[!which];
    s->count = which ? p->n : p->m;
  }
  put_stack(p, shape, arrays);
  i64 rows, inner, total;
  for (u32 which = 0; which < 2; which++)
    if (is_half(p->dtype) && !packed_size(p, &p->s[which], &rows, &inner, &total)) return false;
  return true;
}

static CuResult launch_product(Product *p, CuFunction f, u64 blocks, u32 threads, u32 shared, u64 *words, u32 count,
                               const ProductEnd *end) {
  void *own[MATMUL_PARAMS], **params = end ? end->params : own;
  for (u32 i = 0; i < count; i++) params[(end ? end->count : 0) + i] = &words[i];
  p->d->vm->counters.at[STAT_launches]++;
  return p->d->driver.LaunchKernel(f, (unsigned)blocks, 1, 1, threads, 1, 1, shared, NULL, params, NULL);
}

/* A copy of an operand whose rows begin at multiples of 16 bytes; *s is where it lies. */
static WeftStatus pack(Product *p, u32 which, Side *s, bool *across, CuResult *error) {
  Device *d = p->d;
  i64 rows, inner, total, lead;
  CuFunction f = device_own_kernel(d, DEVICE_MMA_PACK);
  if (!f || !packed_size(p, s, &rows, &inner, &total)) return WEFT_ERROR;
  *across = s->across == 1 && s->along != 1;
  lead = in_eights(inner);
  if (!p->packed[which]) {
    p->packed_bytes[which] = 2 * (size_t)total + 16; /* never nothing */
    if (device_alloc(d->vm, p->packed_bytes[which], &p->packed[which]) != WEFT_OK) return WEFT_ERROR;
  }
  u64 words[MMA_PACK_PARAMS] = {s->at, (u64)(uintptr_t)p->packed[which], (u64)total, (u64)rows, (u64)inner, (u64)lead,
                                (u64)(*across ? s->across : s->along), (u64)(*across ? s->along : s->across),
                                (u64)s->apart[p->axes - 1]};
  u64 most = (u64)(d->sms > 0 ? d->sms : 1) * DEVICE_BLOCKS_PER_SM;
  u64 blocks = ((u64)total + DEVICE_BLOCK - 1) / DEVICE_BLOCK;
  if (!device_enter(d)) return vm_error(d->vm, EK_host, "the GPU failed: its context cannot be entered");
  if (blocks > most) blocks = most;
  if (total) *error = launch_product(p, f, blocks, DEVICE_BLOCK, 0, words, MMA_PACK_PARAMS, NULL);
  device_leave(d);
  s->at = words[1];
  s->across = *across ? 1 : lead;
  s->along = *across ? lead : 1;
  if (s->apart[p->axes - 1]) s->apart[p->axes - 1] = rows * lead;
  return WEFT_OK;
}

/* Products of the matrices of one launch. */
static WeftStatus multiply(Product *p, CuResult *error) {
  Device *d = p->d;
  Side s[2] = {p->s[0], p->s[1]};
  u32 last = p->axes - 1, threads = DEVICE_BLOCK, shared = 0;
  u32 own = DEVICE_MATMUL + own_of(p->dtype);
  u64 rows = MATMUL_SIDE, columns = MATMUL_SIDE, stack = (u64)p->size[last], tiles;
  if (is_half(p->dtype)) {
    MmaKind kind = {.brain = p->dtype == DT_bf16, .tile = MMA_LARGE};
    for (u32 which = 0; which < 2 && !*error; which++)
      if (!in_pieces(p, &s[which], &kind.across[which]) &&
          pack(p, which, &s[which], &kind.across[which], error) != WEFT_OK)
        return WEFT_ERROR;
    mma_sides(MMA_LARGE, &rows, &columns);
    tiles = (((u64)p->m + rows - 1) / rows) * (((u64)p->n + columns - 1) / columns);
    if (p->m <= 64 || p->n <= 64 || tiles < (u64)d->sms / stack) kind.tile = MMA_SMALL;
    mma_sides(kind.tile, &rows, &columns);
    threads = mma_threads(kind.tile);
    shared = mma_shared(kind);
    own = DEVICE_MMA + mma_number(kind);
  }
  for (u32 which = 0; which < 2; which++) { /* a step that is not taken may be no multiple of 16 bytes */
    if (s[which].count == 1) s[which].across = 0;
    if (p->k == 1) s[which].along = 0;
  }
  tiles = (((u64)p->m + rows - 1) / rows) * (((u64)p->n + columns - 1) / columns);
  CuFunction f = p->end ? p->end->find(p->end->ctx, own >= DEVICE_MMA ? own - DEVICE_MMA : 0)
                        : device_own_kernel(d, (DeviceOwnKernel)own);
  if (!f) return WEFT_ERROR; /* with an end: no error was raised */
  u64 each = INT32_MAX / tiles; /* matrices of a launch */
  if (!each) return vm_error(d->vm, EK_unsupported, "matmul: not supported on a GPU: more than 2^31 tiles");
  if (!device_enter(d)) return vm_error(d->vm, EK_host, "the GPU failed: its context cannot be entered");
  for (u64 from = 0, some; from < stack && !*error; from += some) {
    some = stack - from < each ? stack - from : each;
    u64 bytes = dtype_bytes(p->dtype), words[MATMUL_PARAMS] = {
      s[0].at + from * (u64)s[0].apart[last] * bytes, s[1].at + from * (u64)s[1].apart[last] * bytes,
      p->to + from * (u64)p->m * (u64)p->n * bytes, (u64)p->m, (u64)p->n, (u64)p->k, (u64)s[0].across, (u64)s[0].along,
      (u64)s[1].across, (u64)s[1].along, (u64)s[0].apart[last], (u64)s[1].apart[last]};
    *error = launch_product(p, f, tiles * some, threads, shared, words, MATMUL_PARAMS, p->end);
  }
  device_leave(d);
  return WEFT_OK;
}

/* All launches: one for each place in the axes of the stack before the last. */
static WeftStatus multiply_all(Product *p, CuResult *error) {
  i64 index[ARRAY_MAX_RANK] = {0}, bytes = dtype_bytes(p->dtype);
  for (;;) {
    if (multiply(p, error) != WEFT_OK) return WEFT_ERROR;
    if (*error) return WEFT_OK;
    p->to += (u64)(p->size[p->axes - 1] * p->m * p->n * bytes);
    u32 d = p->axes - 1;
    while (d-- > 0) {
      bool wraps = ++index[d] == p->size[d];
      i64 move = wraps ? 1 - p->size[d] : 1;
      for (u32 which = 0; which < 2; which++) p->s[which].at += (u64)(move * p->s[which].apart[d] * bytes);
      if (!wraps) break;
      index[d] = 0;
    }
    if (d == UINT32_MAX) return WEFT_OK;
    if (vm_poll(p->d->vm, 0) != WEFT_OK) return WEFT_ERROR;
  }
}

static void free_packed(Product *p) {
  for (u32 which = 0; which < 2; which++) {
    device_free(p->d->vm, p->packed[which], p->packed_bytes[which]);
    p->packed[which] = NULL;
  }
}

/* ---- a product that waits -------------------------------------------------------------------------------------- */

/* One launch makes it, of an inner axis: of few elements it is rather the kernel's work. */
static bool may_wait(const Product *p) {
  return p->d->vm->hands_on && p->axes == 1 && p->k > 0 && (u64)p->m * (u64)p->n < INT32_MAX / (u64)p->size[0];
}

static bool wait_for_kernel(const Product *p, const Value *args) {
  Product *kept = mem_alloc(&p->d->vm->alloc, sizeof *kept);
  if (!kept) return false;
  *kept = *p;
  for (u32 which = 0; which < 2; which++) kept->args[which] = value_keep(args[which]);
  p->d->waiting = kept;
  return true;
}

static void end_waiting(Device *d) {
  Product *p = d->waiting;
  Vm *vm = d->vm;
  d->waiting = NULL;
  free_packed(p);
  for (u32 which = 0; which < 2; which++) value_drop(vm, p->args[which]);
  mem_free(&vm->alloc, p, sizeof *p);
}

WeftStatus product_flush(Device *d) {
  Product *p = d->waiting;
  CuResult error = 0;
  if (!p) return WEFT_OK;
  d->waiting = NULL; /* what it launches does not wait for it */
  WeftStatus status = multiply_all(p, &error);
  d->waiting = p;
  end_waiting(d);
  return status == WEFT_OK && error ? device_failed(d, "matmul", error) : status;
}

void product_forget(Device *d, const void *memory) {
  if (d->waiting && d->waiting->to == (u64)(uintptr_t)memory) end_waiting(d);
}

void product_end(Device *d) {
  if (d->waiting) end_waiting(d);
}

bool product_waiting(const Device *d, ProductShape *shape) {
  const Product *p = d->waiting;
  if (!p) return false;
  *shape = (ProductShape){(const void *)(uintptr_t)p->to, p->dtype, (u64)p->m * (u64)p->size[0], (u64)p->n};
  return true;
}

bool product_reads(const Device *d, Array *a) {
  i64 low, high, from, end;
  device_reach(a, &low, &high);
  for (u32 which = 0; which < 2; which++) {
    Array *x = d->waiting->args[which].array;
    device_reach(x, &from, &end);
    if ((const char *)a->data + low < (const char *)x->data + end &&
        (const char *)x->data + from < (const char *)a->data + high)
      return true;
  }
  return false;
}

bool product_fuse(Device *d, const ProductEnd *end, CuResult *error) {
  Product *p = d->waiting;
  *error = 0;
  d->waiting = NULL;
  p->end = end;
  bool made = multiply(p, error) == WEFT_OK;
  p->end = NULL;
  d->waiting = p;
  if (made) end_waiting(d);
  else vm_error_forget(d->vm);
  return made;
}

bool device_product(Device *d, const Value *args, WeftStatus *status, Value *out) {
  Product p;
  ArrayType shape;
  CuResult error = 0;
  if (!read_product(d, args, &p, &shape)) return false;
  *status = array_new_on(d->vm, DEV_GPU, p.dtype, shape.rank, shape.dims, out);
  if (*status != WEFT_OK || !out->array->size) return true;
  p.to = (u64)(uintptr_t)out->array->data;
  if (may_wait(&p) && wait_for_kernel(&p, args)) return true;
  *status = multiply_all(&p, &error);
  free_packed(&p);
  if (*status == WEFT_OK && error) *status = device_failed(d, "matmul", error);
  if (*status == WEFT_OK) return true;
  value_drop(d->vm, *out);
  *out = value_hole();
  return true;
}
