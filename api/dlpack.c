/* dlpack.c — arrays from and to other array libraries without copies, by DLPack (see weft.h, dlpack.h). */
#include "api/dlpack.h"

#include <string.h>

#include "api/inner.h"

/* ---- dtypes --------------------------------------------------------------------------------------------- */

static const DlType types[DT_COUNT] = {
  [DT_bool] = {DLPACK_BOOL, 8, 1},     [DT_u8] = {DLPACK_UINT, 8, 1},       [DT_i32] = {DLPACK_INT, 32, 1},
  [DT_i64] = {DLPACK_INT, 64, 1},      [DT_u32] = {DLPACK_UINT, 32, 1},     [DT_u64] = {DLPACK_UINT, 64, 1},
  [DT_f16] = {DLPACK_FLOAT, 16, 1},    [DT_bf16] = {DLPACK_BFLOAT, 16, 1},  [DT_f32] = {DLPACK_FLOAT, 32, 1},
  [DT_f64] = {DLPACK_FLOAT, 64, 1},    [DT_c64] = {DLPACK_COMPLEX, 64, 1},  [DT_c128] = {DLPACK_COMPLEX, 128, 1},
};

static u32 dtype_of(DlType t) { /* DT_NONE: Weft has none such */
  for (u32 d = 1; d < DT_COUNT; d++)
    if (types[d].code == t.code && types[d].bits == t.bits) return d;
  return DT_NONE;
}

/* ---- in --------------------------------------------------------------------------------------------------- */

static WeftStatus refuse(WeftVM *w, const char *why) {
  return vm_error(w->vm, EK_unsupported, "not supported: a DLPack tensor %s", why);
}

static WeftStatus import(WeftVM *w, const DlTensor *t, void (*release)(void *, void *), void *managed,
                         WeftValue **out) {
  static const char *const kinds[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  if (t->device.type != DLPACK_CPU && t->device.type != DLPACK_CUDA_HOST)
    return vm_error(w->vm, EK_unsupported, "not supported: a DLPack tensor on a device (type %d): copy it to the "
                    "processor first", (int)t->device.type);
  if (t->type.lanes != 1) return refuse(w, "whose elements are vectors (lanes is not 1)");
  u32 dtype = dtype_of(t->type);
  if (dtype == DT_NONE) {
    if (t->type.code < COUNT_OF(kinds))
      return vm_error(w->vm, EK_unsupported, "not supported: a DLPack tensor of dtype %s%d", kinds[t->type.code],
                      (int)t->type.bits);
    return vm_error(w->vm, EK_unsupported, "not supported: a DLPack tensor of dtype code %d, %d bits",
                    (int)t->type.code, (int)t->type.bits);
  }
  if (t->rank < 0 || t->rank > WEFT_MAX_RANK)
    return vm_error(w->vm, EK_unsupported, "not supported: a DLPack tensor of rank %d; the highest is %d",
                    (int)t->rank, WEFT_MAX_RANK);
  const char *data = (const char *)t->data + t->offset;
  u32 bytes = dtype_bytes(dtype), unit = bytes < 8 ? bytes : 8;
  if ((uintptr_t)data % unit)
    return vm_error(w->vm, EK_unsupported, "not supported: a DLPack tensor whose data is not aligned to %d bytes",
                    (int)unit);
  WeftStatus status = weft_array_lend_strided(w, (WeftDType)dtype, t->rank, t->shape, t->strides, data, release,
                                              managed, out);
  return status == WEFT_MISUSE ? refuse(w, "with a negative size, or sizes and no data") : status;
}

static void drop_old(void *managed, void *data) {
  (void)data;
  struct DLManagedTensor *m = managed;
  if (m->deleter) m->deleter(m);
}

static void drop_versioned(void *managed, void *data) {
  (void)data;
  struct DLManagedTensorVersioned *m = managed;
  if (m->deleter) m->deleter(m);
}

WeftStatus weft_dlpack_import(WeftVM *w, struct DLManagedTensorVersioned *m, WeftValue **out) {
  if (!usable(w) || !m || !out) return WEFT_MISUSE;
  if (m->major != DLPACK_MAJOR)
    return vm_error(w->vm, EK_unsupported, "not supported: DLPack %u.%u; this is version %d", (unsigned)m->major,
                    (unsigned)m->minor, DLPACK_MAJOR);
  return import(w, &m->tensor, drop_versioned, m, out);
}

WeftStatus weft_dlpack_import_unversioned(WeftVM *w, struct DLManagedTensor *m, WeftValue **out) {
  if (!usable(w) || !m || !out) return WEFT_MISUSE;
  return import(w, &m->tensor, drop_old, m, out);
}

/* ---- out ---------------------------------------------------------------------------------------------------- */

typedef struct Exported {
  struct Exported *next; /* in WeftVM.dropped */
  WeftVM *w;
  Value array; /* owned */
  union {
    struct DLManagedTensor old;
    struct DLManagedTensorVersioned versioned;
  };
  i64 geometry[2 * WEFT_MAX_RANK];
} Exported;

static void give_back_export(WeftVM *w, Exported *e) {
  value_drop(w->vm, e->array);
  mem_free(&w->vm->alloc, e, sizeof *e);
}

static u32 give_back_all(WeftVM *w) { /* how many */
  Exported *e = __atomic_exchange_n(&w->dropped, NULL, __ATOMIC_ACQUIRE);
  u32 n = 0;
  for (Exported *next; e; e = next, n++) {
    next = e->next;
    give_back_export(w, e);
  }
  return n;
}

void exports_collect(WeftVM *w) {
  u32 n = give_back_all(w);
  (void)pthread_mutex_lock(&w->export_lock);
  w->exported -= n;
  (void)pthread_mutex_unlock(&w->export_lock);
}

bool exports_end(WeftVM *w) {
  (void)pthread_mutex_lock(&w->export_lock);
  if (w->exported) w->exported -= give_back_all(w);
  bool free_now = w->exported == 0;
  w->orphan = !free_now;
  (void)pthread_mutex_unlock(&w->export_lock);
  return free_now;
}

/* The consumer's end, in any thread. While the VM lives, its own thread gives the array back: counts are not atomic.
 * Afterwards the lock stands for that thread. */
static void dropped(Exported *e) {
  WeftVM *w = e->w;
  bool last = false;
  (void)pthread_mutex_lock(&w->export_lock);
  if (w->orphan) {
    give_back_export(w, e);
    last = --w->exported == 0;
  } else {
    e->next = w->dropped;
    while (!__atomic_compare_exchange_n(&w->dropped, &e->next, e, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) continue;
  }
  (void)pthread_mutex_unlock(&w->export_lock);
  if (last) weft_free_memory(w);
}

static void delete_old(struct DLManagedTensor *m) { dropped(m->manager); }
static void delete_versioned(struct DLManagedTensorVersioned *m) { dropped(m->manager); }

/* An export of `value`; *tensor says where the data lies. */
static WeftStatus export(WeftVM *w, WeftValue *value, bool copy, Exported **out, DlTensor *tensor) {
  make_room(w);
  Value v = value->value, array;
  exports_look(w);
  if (!value_is_numeric(v)) return value_wrong(w, "a number or array", v);
  if (v.kind == V_ARRAY && array_device(v.array) != DEV_CPU && !copy)
    return vm_error(w->vm, EK_unsupported, "not supported: DLPack of an array on a device; to(x, \"cpu\") copies it");
  Exported *e = mem_alloc(&w->vm->alloc, sizeof *e);
  if (!e) return vm_error_memory(w->vm);
  WeftStatus status = WEFT_OK;
  if (v.kind == V_NUM) status = array_make_dense(w->vm, v, &array);
  else if (array_device(v.array) != DEV_CPU) status = array_from_device(w->vm, v.array, &array);
  else if (copy) status = array_copy(w->vm, v.array, &array);
  else array = value_keep(v);
  if (status != WEFT_OK) {
    mem_free(&w->vm->alloc, e, sizeof *e);
    return WEFT_ERROR;
  }
  Array *a = array.array;
  u32 rank = array_rank(a);
  e->next = NULL;
  e->w = w;
  e->array = array;
  memcpy(e->geometry, a->geometry, sizeof(i64) * 2 * rank);
  *tensor = (DlTensor){.data = a->data, .device = {DLPACK_CPU, 0}, .rank = (int32_t)rank,
                       .type = types[array_dtype(a)], .shape = e->geometry, .strides = e->geometry + rank};
  (void)pthread_mutex_lock(&w->export_lock);
  w->exported++;
  (void)pthread_mutex_unlock(&w->export_lock);
  *out = e;
  return WEFT_OK;
}

WeftStatus weft_dlpack_export(WeftVM *w, WeftValue *value, bool copy, struct DLManagedTensorVersioned **out) {
  if (!usable(w) || !value_ok(w, value) || !out) return WEFT_MISUSE;
  Exported *e;
  DlTensor t;
  *out = NULL;
  if (export(w, value, copy, &e, &t) != WEFT_OK) return WEFT_ERROR;
  bool own = copy || value->value.kind == V_NUM;
  e->versioned = (struct DLManagedTensorVersioned){.major = DLPACK_MAJOR, .minor = DLPACK_MINOR, .manager = e,
                                                   .deleter = delete_versioned, .tensor = t};
  e->versioned.flags = own ? DLPACK_COPIED : DLPACK_READ_ONLY;
  *out = &e->versioned;
  return WEFT_OK;
}

WeftStatus weft_dlpack_export_unversioned(WeftVM *w, WeftValue *value, bool copy, struct DLManagedTensor **out) {
  if (!usable(w) || !value_ok(w, value) || !out) return WEFT_MISUSE;
  Exported *e;
  DlTensor t;
  *out = NULL;
  if (!copy && value->value.kind == V_ARRAY && array_device(value->value.array) == DEV_CPU &&
      !weft_array_unshared(w, value))
    return vm_error(w->vm, EK_unsupported, "not supported: DLPack before version 1 of an array that something else "
                    "holds: it cannot say that the data must not be written; ask for a copy");
  if (export(w, value, copy, &e, &t) != WEFT_OK) return WEFT_ERROR;
  e->old = (struct DLManagedTensor){.tensor = t, .manager = e, .deleter = delete_old};
  *out = &e->old;
  return WEFT_OK;
}
