/* plan_run.c — runs a plan: one loop over its steps (see plan.h). */
#include <string.h>

#include "jit/plan/blocks.h"
#include "jit/plan/plan_run.h"
#include "lang/mechanisms.h"

/* ---- leaving ---------------------------------------------------------------------------------------- */

/* Leaves by an exit: slots that it binds keep their counts, the others are emptied. */
Went plan_leave(Run *r, u32 exit, WeftStatus status) {
  const Plan *p = r->p;
  const PlanSlot *types = p->slots.data;
  const RegionExit *e = exit < r->region->exit_count ? &r->region->exits[exit] : NULL;
  const RegionBind *binds = e ? r->region->binds + e->bind_first : NULL, *end = e ? binds + e->bind_count : NULL;
  u64 *slots = r->slots;
  r->exit = exit;
  r->status = status;
  if (r->spare) value_destroy(r->vm, array_value(r->spare));
  for (const RegionBind *b = binds; b < end; b++) { /* a borrowed input that is wanted gets a count, once */
    if (b->slot == BIND_NODE || !types[b->slot].borrowed || !types[b->slot].array || !slots[b->slot]) continue;
    bool again = false;
    for (const RegionBind *k = binds; k < b && !again; k++) again = k->slot == b->slot;
    if (!again) array_at(r, b->slot)->head.refs++;
  }
  for (const u32 *o = p->owned.data, *last = o + p->owned.count; o < last; o++) {
    if (!slots[*o]) continue;
    bool bound = false;
    for (const RegionBind *k = binds; k < end && !bound; k++) bound = k->slot == *o;
    if (!bound) set_array(r, *o, NULL);
  }
  if (exit == NO_EXIT && status == WEFT_OK) {
    r->status = vm_error(r->vm, EK_unsupported, "a compiled region has no way out");
    r->vm->error.final = true;
  }
  return GONE;
}

/* An error stands in the VM: one of the program's is raised again by the interpreter, so it only takes the exit. */
Went plan_leave_raised(Run *r, u32 exit) {
  if (!vm_error_catchable(r->vm)) return plan_leave(r, exit, WEFT_ERROR);
  vm_error_forget(r->vm);
  return plan_leave(r, exit, WEFT_OK);
}

/* ---- arguments -------------------------------------------------------------------------------------- */

static Value number_of(const Run *r, const PlanArg *a) {
  return a->kind == PA_slot || a->kind == PA_value ? slot_value(r, a->slot) : value_i64((i64)word_of(r, a));
}

/* A number that a kernel wrote as `dtype` at the beginning of a slot that was zero, extended to the slot. */
static void extend(u64 *slot, u32 dtype) {
  const u32 whole = 1u << DT_f64 | 1u << DT_i64 | 1u << DT_bool;
  if (!(whole >> dtype & 1)) *slot = num_load(slot, dtype).bits;
}

/* A result of eager code into a slot (consumed). False: it is not what the plan expects. */
bool plan_take_result(Run *r, u32 slot, Value v) {
  const PlanSlot *s = &r->p->slots.data[slot];
  if (s->array) {
    if (v.kind == V_ARRAY && array_dtype(v.array) == s->dtype && array_rank(v.array) == s->rank &&
        array_device(v.array) == s->device) {
      set_array(r, slot, v.array);
      return true;
    }
  } else if (v.kind == V_NUM && v.dtype == s->dtype) {
    r->slots[slot] = v.bits;
    return true;
  }
  value_drop(r->vm, v);
  return false;
}

/* ---- memory ----------------------------------------------------------------------------------------- */

enum { SMALL_RESULT = 1024 }; /* elements of a product: what is larger counts as fuel */

/* Another array, or none, takes a slot: what was in it, a small array, is kept for the next product. */
static void let_go(Run *r, u32 slot, Array *next) {
  Array *a = array_at(r, slot);
  if (!a || !r->p->products || a->head.refs != 1 || a->size >= SMALL_RESULT || a->head.flags & ARRAY_OWNER_ARRAY) {
    set_array(r, slot, next);
    return;
  }
  r->slots[slot] = (u64)(uintptr_t)next;
  if (r->spare) value_destroy(r->vm, array_value(r->spare));
  r->spare = a;
}

static Went new_array(Run *r, const PlanStep *s, const i64 *dims) {
  Value v;
  u32 device = r->p->slots.data[s->dst].device;
  WeftStatus status = device ? array_new_on(r->vm, device, s->dtype, s->nargs, dims, &v)
                             : array_new(r->vm, s->dtype, s->nargs, dims, &v);
  if (status != WEFT_OK) return plan_leave_raised(r, s->exit);
  set_array(r, s->dst, v.array);
  return GOES_ON;
}

/* May the memory of the array in `slot` become an array of this type, nobody else holding it? */
static bool fits(const Run *r, u32 slot, u32 device, u32 dtype, u32 rank, const i64 *dims) {
  Array *a = array_at(r, slot);
  if (!a || a->head.refs != 1 || is_borrowed(r, slot) || array_device(a) != device || array_dtype(a) != dtype ||
      array_rank(a) != rank || !array_dense(a))
    return false;
  for (u32 d = 0; d < rank; d++)
    if (array_dims(a)[d] != dims[d]) return false;
  return array_writable(a);
}

Went plan_make_array(Run *r, const PlanStep *s) {
  i64 dims[ARRAY_MAX_RANK];
  if (!dims_of(r, s, dims)) return plan_leave(r, s->exit, WEFT_OK);
  if (s->op != STEP_alloc && fits(r, s->src, r->p->slots.data[s->dst].device, s->dtype, s->nargs, dims)) {
    Array *a = array_at(r, s->src);
    if (s->op == STEP_reuse) r->slots[s->src] = 0;
    else a->head.refs++;
    set_array(r, s->dst, a);
    r->vm->counters.at[STAT_reused]++;
    return GOES_ON;
  }
  Went went = new_array(r, s, dims);
  if (went == GOES_ON && s->op == STEP_reuse) set_array(r, s->src, NULL);
  return went;
}

static __attribute__((noinline)) Went make_view(Run *r, const PlanStep *s) {
  i64 dims[ARRAY_MAX_RANK], strides[ARRAY_MAX_RANK];
  const PlanArg *a = &r->p->args.data[s->arg];
  u32 rank = s->aux;
  Value v;
  for (u32 d = 0; d < rank; d++) {
    dims[d] = (i64)word_of(r, &a[1 + d]);
    strides[d] = (i64)word_of(r, &a[1 + rank + d]);
  }
  if (array_view(r->vm, array_at(r, s->src), (i64)word_of(r, &a[0]), rank, dims, strides, &v) != WEFT_OK)
    return plan_leave_raised(r, s->exit);
  set_array(r, s->dst, v.array);
  return GOES_ON;
}

static i64 element_offset(const Run *r, const PlanStep *s, Array *a) {
  i64 at = 0;
  for (u32 d = 0; d < s->nargs; d++) at += (i64)word_of(r, &r->p->args.data[s->arg + d]) * array_strides(a)[d];
  return at;
}

/* Elements of an array on a device are read and written through its hooks. Only the array of the step: d of zero
 * and store, s of load and unbox. */
static __attribute__((noinline)) Went device_step(Run *r, const PlanStep *s, Array *a) {
  const DeviceHooks *hooks = r->vm->devices[array_device(a)];
  u32 bytes = dtype_bytes(array_dtype(a));
  WeftStatus status = WEFT_OK;
  u64 word[2] = {0, 0};
  char *at = a->data;
  if (!hooks) return plan_leave(r, s->exit, WEFT_OK);
  if (s->op == STEP_zero) {
    const char zeros[512] = {0};
    for (size_t left = (size_t)a->size * bytes, n; left && status == WEFT_OK; left -= n, at += n) {
      n = left < sizeof zeros ? left : sizeof zeros;
      status = hooks->from_host(r->vm, zeros, at, n);
    }
    return status == WEFT_OK ? GOES_ON : plan_leave_raised(r, s->exit);
  }
  if (s->op != STEP_unbox) at += element_offset(r, s, a) * (i64)bytes;
  if (s->op == STEP_store) {
    num_store(word, array_dtype(a), slot_value(r, s->src));
    status = hooks->from_host(r->vm, word, at, bytes);
  } else {
    status = hooks->to_host(r->vm, at, word, bytes);
    r->slots[s->dst] = num_load(word, array_dtype(a)).bits;
  }
  return status == WEFT_OK ? GOES_ON : plan_leave_raised(r, s->exit);
}

/* Of an input that a slot counts: does nobody else hold it but a module variable, or lists and records that only
 * that variable holds, and may it be written? */
static bool held_by_variable(const Run *r, SourceId source, Array *a) {
  const GuardSet *g = &r->p->graph->guards;
  if (a->head.refs != 2 || !array_dense(a)) return false;
  a->head.refs = 1;
  bool alone = array_writable(a);
  a->head.refs = 2;
  for (const Source *s; source && alone; source = s->parent) {
    Value v;
    s = &g->sources.items.data[source];
    if (s->kind == SRC_column) continue;
    alone = source_read(r->vm, g, NULL, source, &v) &&
            (v.kind == V_ARRAY ||
             (v.obj->refs == 1 && (v.kind == V_RECORD || (v.kind == V_LIST && list_is_packed(v.list)))));
  }
  return alone;
}

static __attribute__((noinline)) Went memory_step(Run *r, const PlanStep *s) {
  Vm *vm = r->vm;
  Value v;
  Array *a;
  if (s->op == STEP_zero || s->op == STEP_store || s->op == STEP_load || s->op == STEP_unbox) {
    a = array_at(r, s->op == STEP_zero || s->op == STEP_store ? s->dst : s->src);
    if (UNLIKELY(array_device(a) != DEV_CPU)) return device_step(r, s, a);
  }
  switch (s->op) {
    case STEP_zero:
      a = array_at(r, s->dst);
      if (a->size) memset(a->data, 0, (size_t)a->size * dtype_bytes(array_dtype(a)));
      return GOES_ON;
    case STEP_keep:
      a = array_at(r, s->src);
      a->head.refs++;
      set_array(r, s->dst, a);
      return GOES_ON;
    case STEP_move:
      if (s->dst == s->src) return GOES_ON;
      a = array_at(r, s->src);
      if (is_borrowed(r, s->src)) a->head.refs++;
      else r->slots[s->src] = 0;
      let_go(r, s->dst, a);
      return GOES_ON;
    case STEP_unique:
      v = array_value(array_at(r, s->dst));
      if (!MECHANISM(vm, stores_copy_shared) && array_dense(v.array)) return GOES_ON;
      if (s->donated && held_by_variable(r, s->index, v.array)) return GOES_ON;
      if (array_make_unique(vm, &v) != WEFT_OK) return plan_leave_raised(r, s->exit);
      r->slots[s->dst] = (u64)(uintptr_t)v.array;
      return GOES_ON;
    case STEP_dense:
      a = array_at(r, s->src);
      if (array_make_dense(vm, array_value(a), &v) != WEFT_OK) return plan_leave_raised(r, s->exit);
      set_array(r, s->dst, v.array);
      return GOES_ON;
    case STEP_view: return make_view(r, s);
    case STEP_load:
      a = array_at(r, s->src);
      r->slots[s->dst] = array_load(a, element_offset(r, s, a)).bits;
      return GOES_ON;
    case STEP_store:
      a = array_at(r, s->dst);
      num_store((char *)a->data + element_offset(r, s, a) * dtype_bytes(array_dtype(a)), array_dtype(a),
                slot_value(r, s->src));
      return GOES_ON;
    case STEP_box:
      if (array_new(vm, s->dtype, 0, NULL, &v) != WEFT_OK) return plan_leave_raised(r, s->exit);
      num_store(v.array->data, s->dtype, slot_value(r, s->src));
      set_array(r, s->dst, v.array);
      return GOES_ON;
    default: /* unbox */ r->slots[s->dst] = array_load(array_at(r, s->src), 0).bits; return GOES_ON;
  }
}

/* ---- fuel ------------------------------------------------------------------------------------------- */

/* Units that were used without a poll: settled at the next safepoint. */
static void spend(Vm *vm, u64 units) {
  if (units < vm->poll_countdown) {
    vm->poll_countdown -= (u32)units;
    return;
  }
  u64 over = units - vm->poll_countdown + 1;
  vm->poll_batch += over > UINT32_MAX / 2 ? UINT32_MAX / 2 : (u32)over;
  vm->poll_countdown = 1;
}

/* ---- kernels ---------------------------------------------------------------------------------------- */

static u64 call_kernel(const Run *r, const PlanKernel *k, const u64 *args, i64 lo, i64 hi) {
  return k->fn ? k->fn(args, lo, hi) : k->call(k, r->vm, args, lo, hi);
}

static WeftStatus launch_kernel(const Run *r, const PlanStep *s, const PlanKernel *k, const u64 *words, i64 lo,
                                i64 hi, u64 *key) {
  Array *arrays[s->nargs + 1];
  for (u32 i = 2; i < s->nargs; i++) {
    const PlanArg *a = &r->p->args.data[s->arg + i];
    arrays[i - 2] = a->kind == PA_data && r->p->slots.data[a->slot].array ? array_at(r, a->slot) : NULL;
  }
  return k->launch(k, r->vm, words, arrays, s->nargs - 2, lo, hi, key);
}

/* Code for the processor and an array that lies elsewhere. */
static bool on_device(const Run *r, const PlanArg *a) {
  return a->kind == PA_data && r->p->slots.data[a->slot].array && array_device(array_at(r, a->slot)) != DEV_CPU;
}

/* The arguments of a kernel; false: code for the processor and an array that lies elsewhere. */
bool plan_words_of(Run *r, const PlanKernel *k, const PlanArg *a, u32 count, u64 *words) {
  for (u32 i = 0; i < count; i++, a++) switch (a->kind) {
      case PA_slot: words[i] = r->slots[a->slot]; break;
      case PA_out:
        r->slots[a->slot] = 0;
        words[i] = (u64)(uintptr_t)&r->slots[a->slot];
        break;
      case PA_data:
        if (r->p->slots.data[a->slot].array) {
          Array *x = array_at(r, a->slot);
          if (UNLIKELY(array_device(x) != DEV_CPU) && !k->launch) return false;
          words[i] = (u64)(uintptr_t)x->data;
        } else {
          words[i] = (u64)(uintptr_t)&r->slots[a->slot];
        }
        break;
      default: words[i] = word_of(r, a);
    }
  return true;
}

/* Enough for threads? An upper bound first, which costs next to nothing: each trip works on one array as a whole. */
bool plan_is_parallel(const Run *r, const PlanStep *s, const PlanKernel *k, const u64 *words, i64 lo, i64 hi,
                      u64 *work) {
  u64 least = (u64)r->vm->tunables.parallel_elements, most = k->grain > 1 ? 1 : 0;
  if (hi - lo < 2 || !k->fn || k->flags & PK_SERIAL) return false;
  for (u32 i = 2; i < s->nargs && !(k->grain > 1); i++) {
    const PlanArg *a = &r->p->args.data[s->arg + i];
    if (a->kind != PA_data || !r->p->slots.data[a->slot].array || !r->slots[a->slot]) continue;
    u64 size = (u64)array_at(r, a->slot)->size;
    if (size > most) most = size;
  }
  if ((f64)(hi - lo) * (f64)most < (f64)least || pool_threads(r->vm) < 2) return false;
  *work = plan_kernel_work(k, words, lo, hi);
  return *work >= least;
}

static Went check_failed(Run *r, const PlanStep *s, u64 key) {
  for (u32 i = 0; i < s->nlist; i++)
    if (r->p->checks.data[s->list + i].number == key >> 48)
      return plan_leave(r, r->p->checks.data[s->list + i].exit, WEFT_OK);
  return plan_leave(r, s->exit, WEFT_OK);
}

/* Elements of the longest array; of the second of two interleaved kernels the one between is not there. */
static i64 longest(const Run *r, const PlanStep *s) {
  const PlanArg *a = &r->p->args.data[s->arg] + 2;
  i64 most = 0;
  for (u32 i = 0; i < s->nargs - 2; i++) {
    const Array *x = a[i].kind == PA_data && r->p->slots.data[a[i].slot].array ? array_at(r, a[i].slot) : NULL;
    if (x && x->size > most) most = x->size;
  }
  return most;
}

static i64 row_of(const Run *r, const PlanStep *s, i64 trips) { return trips == 1 ? 0 : longest(r, s) / trips + 1; }

bool plan_is_streamed(const Run *r, const PlanStep *s, const PlanKernel *k, const u64 *words, i64 trips,
                      struct Blocks *b) {
  const PlanArg *a = &r->p->args.data[s->arg] + 2;
  if (longest(r, s) < LONG_UNITS || !blocks_of(b, k, words, s->nargs - 2, true)) return false;
  bool pays = false;
  for (u32 i = 0; i < b->outs; i++) {
    BlockOut *o = &b->out[i];
    if (!r->p->slots.data[a[o->word].slot].array) return false;
    i64 size = array_at(r, a[o->word].slot)->size;
    if (size != trips * o->each) return false;
    for (u32 j = 0; j < s->nargs - 2; j++)
      if (j != o->word && words[j] == words[o->word]) return false; /* donated: what is read there is in the cache */
    o->row = o->apart = size;
    o->to = (char *)(uintptr_t)words[o->word];
    o->stream = stream_worth(size * (i64)o->bytes, true);
    pays |= o->stream;
  }
  if (pays) b->past = blocks_past(b);
  r->vm->counters.at[STAT_past] += b->past != NULL;
  return pays && (b->past || b->block);
}

static __attribute__((noinline)) Went run_kernel(Run *r, const PlanStep *s) {
  const Plan *p = r->p;
  const PlanKernel *k = &p->kernels.data[s->index];
  const PlanArg *a = &p->args.data[s->arg];
  PlanKernel streamed, ahead;
  Blocks blocks;
  u64 words[s->nargs + 1], key = LOOP_KEY_NONE, work;
  i64 lo = (i64)word_of(r, &a[0]), hi = (i64)word_of(r, &a[1]);
  if (!plan_words_of(r, k, a + 2, s->nargs - 2, words)) return plan_leave(r, s->exit, WEFT_OK);
  bool done = false;
  u64 units = hi > lo ? (u64)(hi - lo) * (k->bytes_per_trip / 8 + 1) : 0; /* elements, about */
  r->vm->counters.at[STAT_kernel_runs]++;
  if (UNLIKELY(units >= LONG_UNITS || (k->grain == 1 && hi > 1)) && !lo && k->fn &&
      plan_is_streamed(r, s, k, words, hi, &blocks)) {
    if (!blocks.past) blocks.kernel = plan_long(r->vm, k, row_of(r, s, hi), &ahead);
    streamed = *k;
    streamed.blocks = &blocks;
    k = &streamed;
  } else if (units >= LONG_UNITS / 4 && (k->make_ahead || k->ahead) && longest(r, s) >= LONG_UNITS / 4) {
    k = plan_long(r->vm, k, row_of(r, s, hi - lo), &streamed);
  }
  if (UNLIKELY(r->vm->log & VM_LOG_PROFILE)) plan_count_run(&((Plan *)p)->kernels.data[s->index], words, lo, hi);
  if (k->launch) {
    if (vm_poll(r->vm, units >> 10) != WEFT_OK) return plan_leave(r, s->exit, WEFT_ERROR);
    /* a device that fails is told */
    if (launch_kernel(r, s, k, words, lo, hi, &key) != WEFT_OK) return plan_leave(r, s->exit, WEFT_ERROR);
  } else if (UNLIKELY(k->reductions) && hi > lo && !plan_run_blocks(r->vm, p, k, words, s->nargs - 2, &key, &done)) {
    return plan_leave(r, s->exit, WEFT_ERROR);
  } else if (done) {
  } else if ((k->grain <= 1 || hi - lo >= (i64)r->vm->tunables.parallel_elements) &&
             plan_is_parallel(r, s, k, words, lo, hi, &work)) {
    if (!plan_run_threads(r->vm, k, words, lo, hi, work, &key)) return plan_leave(r, s->exit, WEFT_ERROR);
  } else if (units <= (u64)r->vm->tunables.poll_elements) {
    if (units >> 10) spend(r->vm, units >> 10);
    key = call_kernel(r, k, words, lo, hi);
  } else if (!plan_run_polled(r->vm, k, words, lo, hi, &key)) {
    return plan_leave(r, s->exit, WEFT_ERROR);
  }
  for (u32 i = 2; i < s->nargs; i++)
    if (a[i].kind == PA_out) extend(&r->slots[a[i].slot], a[i].dtype);
  return LIKELY(key == LOOP_KEY_NONE) ? GOES_ON : check_failed(r, s, key);
}

/* A short run of a kernel, as most are: nothing but its arguments and the call. False: it is not so plain, nothing was
 * done. */
static inline __attribute__((always_inline)) bool run_plain(Run *r, const PlanStep *s, u64 *key) {
  const Vm *vm = r->vm;
  const PlanKernel *k = &r->p->kernels.data[s->index];
  const PlanArg *args = &r->p->args.data[s->arg], *a = args + 2, *end = args + s->nargs;
  u64 words[PLAIN_WORDS], *slots = r->slots, *w = words;
  i64 hi = args[1].kind == PA_slot ? (i64)slots[args[1].slot] : args[1].imm;
  bool out = false;
  if (!s->plain || hi > k->plain_trips || vm->tunables.parallel_elements < PLAIN_UNITS ||
      vm->tunables.poll_elements < PLAIN_UNITS || vm->log & VM_LOG_PROFILE)
    return false;
  for (; a < end; a++, w++) {
    u64 *slot = &slots[a->slot];
    if (a->kind == PA_data) {
      const Array *x = (const Array *)(uintptr_t)*slot;
      if (UNLIKELY(array_device(x) != DEV_CPU)) return false;
      *w = (u64)(uintptr_t)x->data;
    } else if (a->kind == PA_slot) {
      *w = *slot;
    } else if (a->kind == PA_out) {
      *w = (u64)(uintptr_t)slot;
      *slot = 0;
      out = true;
    } else {
      *w = (u64)a->imm;
    }
  }
  r->vm->counters.at[STAT_kernel_runs]++;
  *key = k->fn(words, 0, hi);
  for (a = args + 2; out && a < end; a++)
    if (a->kind == PA_out) extend(&slots[a->slot], a->dtype);
  return true;
}

/* Calls of functions by themselves inside each other: they stand on the C stack, each with a frame of a word or two for
 * each value at most. How large it is is known once that many stood inside each other. */
enum { NATIVE_WORK = 1 << 22 /* elements: trips, times what the largest array holds, until the clock is looked at */ };
enum { NATIVE_CALLS = 1900, NATIVE_FRAME = 512, NATIVE_VALUE = 16, NATIVE_SPARE = 32, MEASURED_CALLS = 500 };

static __attribute__((noinline)) Went kernel_step(Run *r, const PlanStep *s) {
  u64 key;
  if (LIKELY(run_plain(r, s, &key))) return LIKELY(key == LOOP_KEY_NONE) ? GOES_ON : check_failed(r, s, key);
  if (LIKELY(!(r->vm->log & VM_LOG_PROFILE))) return run_kernel(r, s);
  f64 begin = vm_clock();
  Went went = run_kernel(r, s);
  ((Plan *)r->p)->kernels.data[s->index].ns += (u64)((vm_clock() - begin) * 1e9);
  return went;
}

/* ---- native functions ------------------------------------------------------------------------------- */

typedef struct NativeRun {
  LoopCtx ctx;
  Run *r;
  const PlanNative *n;
  i64 granted;   /* the budget as it was last filled, */
  i64 most;      /* and what it may be: fewer trips where one may work on a large array */
  f64 polled;    /* when it was filled; 0: not yet */
  i64 depth;     /* calls of functions by themselves that it may nest */
  bool stopped;  /* a poll said so: the error stands in the VM */
  u32 plan_exit;
} NativeRun;

/* What a call of a function by itself takes of the C stack: the frames since the native began, by its calls. */
static void note_frame(const NativeRun *n) {
  const u8 *here = __builtin_frame_address(0), *begin = (const u8 *)n;
  const u32 each = (u32)((begin > here ? begin - here : here - begin) / (n->depth + 1)) + 1;
  PlanNative *f = &((Plan *)n->r->p)->natives.data[n->n - n->r->p->natives.data];
  if (each > f->frame) f->frame = each;
}

/* How many calls of functions by themselves may stand inside each other. */
static i64 native_depth(const Vm *vm, const PlanNative *f) {
  i64 depth = (i64)vm->limits.depth - vm->frame_count - vm->native_depth - 1;
  depth = (depth - 1) / (f->levels ? f->levels : 1); /* and one that is no call */
  const size_t left = cstack_left(), guessed = NATIVE_FRAME + NATIVE_VALUE * (size_t)f->values,
               each = f->frame ? f->frame + f->frame / 4 + NATIVE_SPARE : guessed;
  const i64 fits = left > CSTACK_CALL ? (i64)((left - CSTACK_CALL) / each) : 0;
  if (fits < depth) depth = fits;
  return !f->frame && depth > NATIVE_CALLS ? NATIVE_CALLS : depth;
}

/* Units of fuel a native may use before it polls. */
static i64 grant(const Vm *vm, i64 most) {
  if (vm->limits.fuel == UINT64_MAX) return most;
  return vm->poll_countdown < most ? vm->poll_countdown : most;
}

static u32 native_poll(LoopCtx *ctx) {
  NativeRun *n = ctx->owner;
  Vm *vm = n->r->vm;
  if (ctx->depth < 0) { /* deeper than it may nest here: eager code finds out what that means */
    if (n->depth >= MEASURED_CALLS && n->n->recursions == 1) note_frame(n);
    return 1;
  }
  if (vm_poll(vm, (u64)n->granted) != WEFT_OK) {
    n->stopped = true;
    return 1;
  }
  if (n->most < vm->tunables.poll_trips) { /* a trip takes as long as it takes: the clock tells */
    const f64 now = vm_clock(), took = now - n->polled;
    if (n->polled > 0 && took < 0.005) n->most *= 4;
    else if (n->polled > 0 && took > 0.02) n->most = n->most / 2 > 1 ? n->most / 2 : 1;
    if (n->most > vm->tunables.poll_trips) n->most = vm->tunables.poll_trips;
    n->polled = now;
  }
  ctx->budget = n->granted = grant(vm, n->most);
  return 0;
}

static void exit_words(Run *r, const PlanNativeExit *e, const u64 *values, u32 count) {
  const u32 *ids = r->p->ids.data + e->slot_first;
  u32 element = 0;
  for (u32 k = 0; k < e->slot_count && k < count; k++) {
    u32 slot = ids[k] & ~PLAN_ELEMENT;
    if (!(ids[k] & PLAN_ELEMENT)) {
      r->slots[slot] = values[k];
      continue;
    }
    element = k && ids[k - 1] == ids[k] ? element + 1 : 0;
    Array *a = array_at(r, slot);
    u32 dtype = array_dtype(a);
    num_store((char *)a->data + element * dtype_bytes(dtype), dtype,
              (Value){.kind = V_NUM, .dtype = (u8)dtype, .bits = values[k]});
  }
}

static void native_frame(LoopCtx *ctx, u64 tag, u32 exit, const u64 *values, u32 count) {
  NativeRun *n = ctx->owner;
  const Plan *p = n->r->p;
  n->plan_exit = NO_EXIT; /* the outermost function comes last: functions that it calls are pure */
  for (u32 i = 0; i < n->n->exit_count; i++) {
    const PlanNativeExit *e = &p->native_exits.data[n->n->exit_first + i];
    if (e->tag != tag || e->exit != exit) continue;
    n->plan_exit = e->plan_exit;
    exit_words(n->r, e, values, count);
  }
}

static i64 *written_of(Run *r, const PlanUndo *u) { return (i64 *)(void *)array_at(r, u->count)->data; }

/* Arrays that calls inside had changed, as they were in front of the outermost one. */
static __attribute__((noinline)) void put_back(Run *r, const PlanNative *f) {
  for (u32 k = 0; k < f->undo_count; k++) {
    const PlanUndo *u = &r->p->undos.data[f->undo_first + k];
    const Array *a = array_at(r, u->array);
    const size_t size = dtype_bytes(array_dtype(a));
    const u8 *old = array_at(r, u->old)->data;
    const i64 *places = (const i64 *)(const void *)array_at(r, u->places)->data;
    i64 n = *written_of(r, u);
    r->vm->counters.at[STAT_undo_full] += u->whole == UINT32_MAX && n == array_at(r, u->places)->size;
    if (u->whole != UINT32_MAX && n > a->size) memcpy(a->data, array_at(r, u->whole)->data, size * (size_t)a->size);
    else
      while (n-- > 0) memcpy(a->data + size * (size_t)places[n], old + size * (size_t)n, size);
  }
}

static __attribute__((noinline)) Went native_step(Run *r, const PlanStep *s) {
  const Plan *p = r->p;
  const PlanNative *f = &p->natives.data[s->index];
  u64 words[s->nargs + 1], results[p->max_results + 1];
  NativeRun n = {.r = r, .n = f, .plan_exit = NO_EXIT, .most = r->vm->tunables.poll_trips};
  Vm *vm = r->vm;
  i64 largest = 1;
  for (u32 i = 0; i < s->nargs; i++) {
    if (UNLIKELY(on_device(r, &p->args.data[s->arg + i]))) return plan_leave(r, s->exit, WEFT_OK);
    const PlanArg *a = &p->args.data[s->arg + i];
    words[i] = word_of(r, a);
    if (a->kind == PA_data && array_at(r, a->slot)->size > largest) largest = array_at(r, a->slot)->size;
  }
  if (NATIVE_WORK / largest < n.most) n.most = NATIVE_WORK / largest + 1;
  n.granted = grant(vm, n.most);
  n.depth = native_depth(vm, f);
  n.ctx = (LoopCtx){.results = results, .budget = n.granted, .depth = n.depth, .poll = native_poll,
                    .frame = native_frame, .owner = &n};
  for (u32 k = 0; k < f->undo_count; k++) *written_of(r, &p->undos.data[f->undo_first + k]) = 0;
  u32 exit = f->call(f, &n.ctx, words);
  if (!n.stopped && n.granted > n.ctx.budget) spend(vm, (u64)(n.granted - n.ctx.budget));
  if (LIKELY(exit == 0)) {
    for (u32 i = 0; i < s->nlist; i++) r->slots[p->ids.data[s->list + i]] = results[i];
    return GOES_ON;
  }
  if (f->undo_count) put_back(r, f);
  u32 to = n.plan_exit != NO_EXIT ? n.plan_exit : s->exit;
  return plan_leave(r, to, n.stopped ? WEFT_ERROR : WEFT_OK);
}

/* ---- eager code ------------------------------------------------------------------------------------- */

WeftStatus plan_attr_size(void *ctx, Dim d, u32 position, i64 *out) {
  const AttrRun *x = ctx;
  if (size_is_const(&x->r->p->graph->sizes, d, out)) return WEFT_OK;
  for (u32 i = 0; i < x->nsizes; i++)
    if (x->sizes[i].position == position) {
      if (size_run(&x->r->p->codes.data[x->sizes[i].code], x->r->slots, out)) return WEFT_OK;
      return vm_error(x->r->vm, EK_value, "a size is out of range");
    }
  return vm_error(x->r->vm, EK_unsupported, "a size has no slot");
}

WeftStatus plan_attr_operand(void *ctx, u32 number, Value *out) {
  const AttrRun *x = ctx;
  *out = number_of(x->r, &x->r->p->args.data[x->step->arg + number - 1]);
  return WEFT_OK;
}

/* One parameter of an extern operation, from argument *at on. *out owned. */
WeftStatus plan_parameter(Run *r, const PlanStep *s, u32 *at, Value *out) {
  const PlanArg *a = &r->p->args.data[s->arg + (*at)++];
  if (a->kind == PA_hole) {
    *out = value_hole();
    return WEFT_OK;
  }
  if (a->kind == PA_attr) {
    AttrRun x = {r, r->p->attr_sizes.data + a->slot, a->axis, s};
    return attr_value(&(AttrSource){r->vm, plan_attr_size, plan_attr_operand, &x},
                      &r->p->graph->attrs.data[a->imm], out);
  }
  if (a->kind != PA_list) {
    *out = value_keep(number_of(r, a));
    return WEFT_OK;
  }
  if (!list_new(r->vm, (u32)a->imm, out)) return WEFT_ERROR;
  for (i64 i = 0; i < a->imm; i++) {
    Value item = value_keep(number_of(r, &r->p->args.data[s->arg + (*at)++]));
    if (!list_push(r->vm, out, item)) {
      value_drop(r->vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

/* A product of two matrices, straight from their slots. */
static __attribute__((noinline)) Went product_step(Run *r, const PlanStep *s, const Array *x, const Array *y,
                                                   bool *done) {
  *done = false;
  if (array_rank(x) != 2 || array_rank(y) != 2 || x->geometry[0] >= SMALL_RESULT ||
      y->geometry[1] >= SMALL_RESULT / (x->geometry[0] | 1))
    return GOES_ON;
  Value out = r->spare ? array_value(r->spare) : value_hole();
  PairWent went = r->vm->product(r->vm, s->aux, x, y, &out);
  *done = went != PAIR_OTHER;
  if (went == PAIR_FAILED) return plan_leave_raised(r, s->exit);
  if (went == PAIR_OTHER) return GOES_ON;
  if (out.array == r->spare) r->spare = NULL;
  return plan_take_result(r, s->dst, out) ? GOES_ON : plan_leave(r, s->exit, WEFT_OK);
}

static __attribute__((noinline)) Went extern_step(Run *r, const PlanStep *s) {
  Vm *vm = r->vm;
  Value values[OP_MAX_PARAMS], out = value_hole();
  const PlanArg *a = &r->p->args.data[s->arg];
  /* it keeps neither, and slots hold both meanwhile */
  bool held = s->aux == OP_matmul && s->nargs == 2 && a[0].kind == PA_value && a[1].kind == PA_value;
  if (held && r->p->slots.data[a[0].slot].array && r->p->slots.data[a[1].slot].array && vm->product) {
    bool done;
    Went went = product_step(r, s, array_at(r, a[0].slot), array_at(r, a[1].slot), &done);
    if (done) return went;
  }
  u32 n = op_info(s->aux)->nparams, made = 0, at = 0;
  WeftStatus status = WEFT_OK;
  if (held) values[0] = number_of(r, &a[0]), values[1] = number_of(r, &a[1]);
  for (; made < n && status == WEFT_OK && !held; made++) {
    values[made] = value_hole();
    if (at < s->nargs) status = plan_parameter(r, s, &at, &values[made]);
  }
  vm->hands_on = s->handed_on;
  if (status == WEFT_OK) status = op_of_graph(vm, s->aux, values, &out);
  vm->hands_on = false;
  for (u32 i = 0; i < made; i++) value_drop(vm, values[i]);
  if (status != WEFT_OK) return plan_leave_raised(r, s->exit);
  if (s->nlist == 0) return plan_take_result(r, s->dst, out) ? GOES_ON : plan_leave(r, s->exit, WEFT_OK);
  bool ok = out.kind == V_LIST && out.list->count == s->nlist;
  for (u32 i = 0; i < s->nlist && ok; i++)
    ok = plan_take_result(r, r->p->ids.data[s->list + i], value_keep(out.list->items[i]));
  value_drop(vm, out);
  return ok ? GOES_ON : plan_leave(r, s->exit, WEFT_OK);
}

/* One element of an array that nobody else holds, set to a number of its dtype: without the way through an index
 * that may be anything. False: not so simple, nothing has changed. */
static bool set_element(Run *r, const PlanStep *s, const GraphAttr *a, AttrRun *x) {
  Value base = slot_value(r, s->src), v = number_of(r, &r->p->args.data[s->arg + s->nargs - 1]);
  if (base.kind != V_ARRAY || v.kind != V_NUM) return false;
  Array *to = base.array;
  u32 dtype = array_dtype(to);
  i64 offset = 0;
  if (!may_update(r, s, to) || array_device(to) != DEV_CPU || v.dtype != dtype || a->count != array_rank(to))
    return false;
  for (u32 i = 0; i < a->count; i++) {
    const IndexItem *it = &a->items[i];
    i64 at, size = array_dims(to)[i];
    Value n;
    if (it->kind != INDEX_int) return false;
    if (it->part[0] == PART_dim) {
      if (plan_attr_size(x, it->at[0], 3 * i, &at) != WEFT_OK) {
        vm_error_forget(r->vm);
        return false;
      }
    } else if (plan_attr_operand(x, (u32)it->at[0], &n) != WEFT_OK || n.kind != V_NUM || n.dtype != DT_i64) {
      return false;
    } else {
      at = n.i;
    }
    if (at < 0) at += size;
    if (at < 0 || at >= size) return false;
    offset += at * array_strides(to)[i];
  }
  num_store((char *)to->data + offset * dtype_bytes(dtype), dtype, v);
  return updated(r, s, to) == GOES_ON;
}

static __attribute__((noinline)) Went index_step(Run *r, const PlanStep *s) {
  const GraphAttr *a = &r->p->graph->attrs.data[s->index];
  AttrRun x = {r, r->p->attr_sizes.data + s->list, s->nlist, s};
  if (s->op == STEP_update && !s->aux && set_element(r, s, a, &x)) return GOES_ON;
  u8 items[INDEX_MAX_ITEMS];
  Value regs[INDEX_MAX_REGS], out;
  if (attr_index(&(AttrSource){r->vm, plan_attr_size, plan_attr_operand, &x}, a, items, regs) != WEFT_OK)
    return plan_leave_raised(r, s->exit);
  if (s->op == STEP_index) {
    if (vm_index(r->vm, slot_value(r, s->src), items, a->count, regs, &out) != WEFT_OK)
      return plan_leave_raised(r, s->exit);
    return plan_take_result(r, s->dst, out) ? GOES_ON : plan_leave(r, s->exit, WEFT_OK);
  }
  Value base = slot_value(r, s->src), v = value_keep(number_of(r, &r->p->args.data[s->arg + s->nargs - 1]));
  if (is_borrowed(r, s->src)) base = value_keep(base);
  else if (base.kind == V_ARRAY) r->slots[s->src] = 0;
  if (attr_update(r->vm, s->aux, base, items, a->count, regs, v, &out) != WEFT_OK) {
    if (is_borrowed(r, s->src) || out.kind != V_ARRAY) value_drop(r->vm, out);
    else r->slots[s->src] = (u64)(uintptr_t)out.array; /* as it was */
    return plan_leave_raised(r, s->exit);
  }
  return plan_take_result(r, s->dst, out) ? GOES_ON : plan_leave(r, s->exit, WEFT_OK);
}

typedef struct StepPending {
  Pending base;
  Run *r;
  u32 exit;
} StepPending;

static WeftStatus step_leave(Pending *p) {
  const StepPending *x = (const StepPending *)p;
  plan_leave(x->r, x->exit, WEFT_OK);
  return region_leave_early(x->r->vm, x->r->region, x->exit, x->r->slots);
}

static Went host_step(Run *r, const PlanStep *s, const Value *args) {
  StepPending p = {.base = {.leave = step_leave}, .r = r, .exit = s->exit};
  Value out;
  if (host_call_in(r->vm, r->region, s->node, &p.base, args, s->nargs, &out) == HOST_CALL_LEAVES)
    return p.base.left ? GONE : plan_leave(r, s->exit, WEFT_OK);
  if (r->p->graph->nodes.data[s->node].result_count > 1)
    return plan_take_result(r, s->dst, out) ? GOES_ON : plan_leave(r, s->exit, WEFT_OK);
  value_drop(r->vm, out);
  return GOES_ON;
}

static __attribute__((noinline)) Went effect_step(Run *r, const PlanStep *s) {
  Value args[s->nargs + 1], out;
  for (u32 i = 0; i < s->nargs; i++) args[i] = number_of(r, &r->p->args.data[s->arg + i]);
  const GraphHost *host = &r->p->graph->hosts.data[s->index];
  if (host->kind == HOST_function && host->fn) return host_step(r, s, args);
  if (host_call(r->vm, r->p->graph, s->index, args, s->nargs, &out) != WEFT_OK) return plan_leave_raised(r, s->exit);
  if (r->p->graph->nodes.data[s->node].result_count < 2) {
    value_drop(r->vm, out);
    return GOES_ON;
  }
  return plan_take_result(r, s->dst, out) ? GOES_ON : plan_leave(r, s->exit, WEFT_OK);
}

static u64 number_step(const Run *r, const PlanStep *s) {
  const PlanArg *a = &r->p->args.data[s->arg];
  u64 x = a[0].kind == PA_slot ? r->slots[a[0].slot] : (u64)a[0].imm,
      y = a[1].kind == PA_slot ? r->slots[a[1].slot] : (u64)a[1].imm;
  switch (s->aux) {
#define OPERATION(name, result) case OP_##name: return result;
    PLAN_NUMBER_OPS(OPERATION)
#undef OPERATION
    default: return 0; /* no such step: plan_print.c */
  }
}

static Went check_step(Run *r, const PlanStep *s) {
  const PlanArg *a = &r->p->args.data[s->arg];
  Value x = number_of(r, &a[0]), y = s->nargs > 1 ? number_of(r, &a[1]) : value_i64(0);
  if (LIKELY(check_holds(s->aux, x, y))) return GOES_ON;
  return plan_leave(r, s->exit, WEFT_OK);
}

/* ---- the loop ---------------------------------------------------------------------------------------
 * What is not small stands in functions that are not inlined: the loop keeps its registers. */

WeftStatus plan_run(Vm *vm, Region *region, const Plan *p, u64 *slots, u32 *exit) {
  Run run = {.vm = vm, .region = region, .p = p, .slots = slots, .exit = NO_EXIT}, *r = &run;
  const PlanStep *steps = p->steps.data;
  i64 n;
  for (const PlanStep *s = steps, *end = steps + p->steps.count; s < end; s++) {
    Went went = GOES_ON;
    switch ((PlanOp)s->op) {
      case STEP_none:
      case STEP_loop:
      case STEP_end: break;
      case STEP_size:
        if (LIKELY(size_run(&p->codes.data[s->index], slots, &n))) slots[s->dst] = (u64)n;
        else went = plan_leave(r, s->exit, WEFT_OK);
        break;
      case STEP_const: slots[s->dst] = s->bits; break;
      case STEP_copy: slots[s->dst] = slots[s->src]; break;
      case STEP_number: slots[s->dst] = number_step(r, s); break;
      case STEP_kernel: went = kernel_step(r, s); break;
      case STEP_native: went = native_step(r, s); break;
      case STEP_counts:
      case STEP_part:
      case STEP_interleave:
      case STEP_transpose: {
        bool done = false;
        went = s->op == STEP_interleave ? plan_interleave_step(r, s, &done) : s->op ==
               STEP_part ? plan_part_step(r, s, &done) : s->op == STEP_transpose ? plan_transpose_step(r, s, &done)
                                        : plan_counts_step(r, s, &done);
        if (done) s += 3 + (s->op == STEP_interleave);
        break;
      }
      case STEP_dim: slots[s->dst] = (u64)((const Array *)(uintptr_t)slots[s->src])->geometry[s->aux]; break;
      case STEP_extern: went = extern_step(r, s); break;
      case STEP_index:
      case STEP_update: went = index_step(r, s); break;
      case STEP_effect: went = effect_step(r, s); break;
      case STEP_check: went = check_step(r, s); break;
      case STEP_if:
        if (!slots[s->src]) s = &steps[s->jump]; /* the step behind its else or end */
        break;
      case STEP_else: s = &steps[s->jump]; break;
      case STEP_while:
        if (!slots[s->src]) s = &steps[s->jump];
        break;
      case STEP_until:
        if (slots[s->src]) s = &steps[s->jump];
        break;
      case STEP_again:
        if (vm_safepoint(vm) != WEFT_OK) went = plan_leave(r, s->exit, WEFT_ERROR);
        else s = &steps[s->jump];
        break;
      case STEP_poll:
        if (vm_safepoint(vm) != WEFT_OK) went = plan_leave(r, s->exit, WEFT_ERROR);
        break;
      case STEP_exit: went = plan_leave(r, s->exit, WEFT_OK); break;
      case STEP_free: let_go(r, s->dst, NULL); break;
      case STEP_dense:
        if (UNLIKELY(s->dst != s->src || !array_dense(array_at(r, s->src)))) went = memory_step(r, s);
        break;
      case STEP_alloc:
      case STEP_reuse:
      case STEP_donate: went = plan_make_array(r, s); break;
      default: went = memory_step(r, s);
    }
    if (UNLIKELY(went == GONE)) {
      *exit = r->exit;
      return r->status;
    }
  }
  plan_leave(r, p->entry_exit, WEFT_OK);
  *exit = r->exit;
  return r->status;
}
