/* launch.c — kernels of plans on the device: rendered, loaded and launched (the JitDevice of jit/jit.h).
 *
 * An argument that is an array on the device is passed as it is. One that lies on the processor is copied there for
 * the launch, and back when the kernel writes it, so that a plan runs wherever its arrays are; a number that a
 * kernel reads or writes lies in a cell. Launches are not waited for, but for checks and for what is copied back. */
#include "gpu/launch.h"

#include <string.h>

#include "gpu/matmul.h"
#include "gpu/ptx.h"

typedef struct LoadedKernel {
  /* NULL: the kernel has none */
  CuFunction function, tiled, rows, lengthy, team, part, join, rest, scan, pieces, columns;
  PtxSplit split;
  PtxNest nest;
  PtxTile tile;
  PtxRows row;
  PtxScan along;
  bool checks, warps;
  /* with a product in front of it, which is its argument `epilogue_word` (1 + its number; 0: not known yet) */
  PtxEpilogue epilogue;
  u32 epilogue_word;
  bool no_epilogue;
  DeviceOwn products[MMA_KINDS];
} LoadedKernel;

typedef struct Loaded {
  CuModule module;
  u32 count;
  LoadedKernel kernels[];
} Loaded;

static bool has_checks(const LoopFn *fn) {
  for (u32 i = 0; i < fn->body.count; i++)
    if (loop_node(fn, fn->body.data[i])->op == LOOP_CHECK) return true;
  return false;
}

/* ---- arguments ------------------------------------------------------------------------------------------ */

typedef struct Copied {
  char *host;      /* first byte of what was copied */
  CuPointer at;
  size_t bytes;
  bool back, owned;
} Copied;

typedef struct Launch {
  Device *d;
  Copied *copies;
  u32 count;
  u32 cells;       /* used, the key's included */
  CuResult error;
} Launch;

/* The device address of an array on the processor; what two arguments share is copied once. */
static WeftStatus copy_there(Launch *l, Array *a, bool back, u64 *word) {
  Device *d = l->d;
  i64 low, high;
  if (a->size == 0) {
    *word = 0;
    return WEFT_OK;
  }
  device_reach(a, &low, &high);
  Copied c = {.host = (char *)a->data + low, .bytes = (size_t)(high - low), .back = back, .owned = true};
  for (u32 i = 0; i < l->count; i++) {
    if (l->copies[i].host != c.host || l->copies[i].bytes != c.bytes) continue;
    l->copies[i].back |= back;
    *word = l->copies[i].at - (u64)low;
    return WEFT_OK;
  }
  void *at;
  if (device_alloc(d->vm, c.bytes, &at) != WEFT_OK) return WEFT_ERROR;
  c.at = (CuPointer)(uintptr_t)at;
  l->copies[l->count++] = c;
  *word = c.at - (u64)low;
  return device_from_host(d->vm, c.host, at, c.bytes);
}

static WeftStatus copy_cell(Launch *l, u64 *cell, bool back, u64 *word) {
  Device *d = l->d;
  if (l->cells == DEVICE_CELLS)
    return vm_error(d->vm, EK_unsupported, "a kernel with too many numbers is not supported on a GPU");
  CuPointer at = d->cells + 8 * (u64)l->cells++;
  l->copies[l->count++] = (Copied){.host = (char *)cell, .at = at, .bytes = 8, .back = back};
  *word = at;
  return device_from_host(d->vm, cell, (void *)(uintptr_t)at, 8);
}

static WeftStatus finish(Launch *l, WeftStatus status) {
  Device *d = l->d;
  for (u32 i = 0; i < l->count; i++) {
    Copied *c = &l->copies[i];
    if (c->back && status == WEFT_OK) status = device_to_host(d->vm, (void *)(uintptr_t)c->at, c->host, c->bytes);
    if (c->owned) device_free(d->vm, (void *)(uintptr_t)c->at, c->bytes);
  }
  return status;
}

/* ---- reductions over the whole grid ------------------------------------------------------------------------ */

/* How a launch is split (ptx_split.c): elements of each reduction, and blocks that they make. */
typedef struct Spread {
  u64 total, blocks;
} Spread;

static u64 blocks_of(const PtxSplit *s, u64 elements) { return (elements + s->block - 1) / s->block; }

/* The trips of an axis, which is a constant or a parameter. */
static u64 trips_of(const LoopFn *fn, u32 head, u32 axis, const u64 *words) {
  u32 id = loop_trips_of(fn, head, axis), p = 0;
  if (loop_node(fn, id)->op != LOOP_PARAM) return loop_node(fn, id)->imm;
  while (fn->params.data[p] != id) p++;
  return words[p];
}

/* The elements of a trip's reduction; 0: they cannot be told. */
static u64 elements_of(const LoopFn *fn, u32 head, const u64 *words) {
  u64 total = 1;
  for (u32 axis = 0; axis < loop_node(fn, head)->a; axis++)
    if (__builtin_mul_overflow(total, trips_of(fn, head, axis, words), &total)) return 0;
  return total;
}

/* Items of a launch: trips of the outermost loop times those of the loops that are dealt with it. */
static u64 items_of(const LoadedKernel *k, const LoopFn *fn, const u64 *words, u64 trips) {
  u64 items = trips;
  for (u32 i = 0; i < k->nest.count; i++)
    if (__builtin_mul_overflow(items, trips_of(fn, k->nest.heads[i], 0, words), &items)) return UINT32_MAX;
  return items ? items : 1; /* what has no item is launched, too: checks are read behind it */
}

/* Whether its trips alone leave most of the device without work, and blocks do not. */
static bool is_worth_splitting(const Device *d, const LoadedKernel *k, const LoopFn *fn, const u64 *words, u64 trips,
                               Spread *out) {
  enum { WARPS_PER_SM = 32, THREADS_PER_SM = 1024, LEAST_BLOCKS = 4 };
  u64 sms = d->sms > 0 ? (u64)d->sms : 1;
  if (!k->part || trips >= sms * (k->warps ? WARPS_PER_SM : THREADS_PER_SM)) return false;
  out->total = elements_of(fn, k->split.heads[0], words);
  out->blocks = blocks_of(&k->split, out->total);
  return out->blocks >= LEAST_BLOCKS;
}

static CuResult start_blocks(const Device *d, CuFunction f, u64 blocks, u64 shared, void **params) {
  u64 most = (u64)(d->sms > 0 ? d->sms : 1) * DEVICE_BLOCKS_PER_SM;
  if (blocks > most) blocks = most;
  d->vm->counters.at[STAT_launches]++;
  return d->driver.LaunchKernel(f, (unsigned)blocks, 1, 1, DEVICE_BLOCK, 1, 1, (unsigned)shared, NULL, params, NULL);
}

static CuResult start(const Device *d, CuFunction f, bool warps, u64 items, void **params) {
  u64 threads = items * (warps ? 32 : 1);
  return start_blocks(d, f, (threads + DEVICE_BLOCK - 1) / DEVICE_BLOCK, 0, params);
}

/* A kernel that has tiles: one block for each. False: the array is too narrow for them. */
static bool start_tiled(const Device *d, const LoadedKernel *k, const LoopFn *fn, const u64 *words, u64 trips,
                        void **params, CuResult *error) {
  u64 inner = k->tiled ? trips_of(fn, k->tile.inner, 0, words) : 0, side = PTX_TILE_SIDE, tiles;
  if (!inner) return false;
  u32 outermost = fn->body.data[k->tile.first];
  u64 outer = k->tile.outer == outermost ? trips : trips_of(fn, k->tile.outer, 0, words);
  if (outer < side / 2 || inner < side / 2 || outer > UINT32_MAX || inner > UINT32_MAX) return false;
  tiles = ((outer + side - 1) / side) * ((inner + side - 1) / side);
  for (u32 i = 0; i < k->tile.rests; i++) {
    u64 more = k->tile.rest[i] == outermost ? trips : trips_of(fn, k->tile.rest[i], 0, words);
    if (__builtin_mul_overflow(tiles, more, &tiles)) return false;
  }
  if (tiles > UINT32_MAX / 2) return false; /* a block's number and the step to its next one are 32 bits */
  *error = start_blocks(d, k->tiled, tiles ? tiles : 1, 0, params);
  return true;
}

/* A kernel that goes over rows several times: a block for each row. False: a row is short, so that most threads of a
 * block would wait, or too long for shared memory; `lengthy`: for a block. */
static bool start_rows(const Device *d, const LoadedKernel *k, const LoopFn *fn, const u64 *words, u64 trips,
                       void **params, bool lengthy, CuResult *error) {
  enum { LEAST = 128, MOST = 48 << 10 };
  u64 length = k->rows ? trips_of(fn, k->row.heads[0], 0, words) : 0;
  if (length < LEAST || length > k->row.longest) return false;
  u64 shared = PTX_ROW_PARTIAL_BYTES + length * ptx_rows_bytes(&k->row);
  if (!lengthy && shared > MOST) return false;
  *error = start_blocks(d, lengthy ? k->lengthy : k->rows, trips, lengthy ? PTX_ROW_PARTIAL_BYTES : shared, params);
  return true;
}

/* A kernel whose blocks wait for one another (ptx_chain.c): `rows` of so many pieces each, a block for each piece;
 * each row has so many bytes of scratch memory. False: that was refused, or there are too many. */
static bool start_chained(Device *d, CuFunction f, u64 rows, u64 pieces, u64 each, u32 threads, u32 shared,
                          void **params, u32 count, CuResult *error) {
  enum { COUNTER = 256 /* bytes; what lies behind it is aligned */, MOST = INT32_MAX /* blocks of a launch */ };
  u64 blocks, bytes, from, to;
  void *memory;
  if (!each || __builtin_mul_overflow(rows, pieces, &blocks) || blocks > MOST ||
      __builtin_mul_overflow(rows, each, &bytes) || bytes > SIZE_MAX - COUNTER ||
      device_alloc(d->vm, (size_t)bytes + COUNTER, &memory) != WEFT_OK) {
    vm_error_forget(d->vm);
    return false;
  }
  from = (u64)(uintptr_t)memory;
  to = from + COUNTER;
  void *more[] = {&from, &to, &each, &pieces};
  memcpy(params + count, more, sizeof more);
  d->vm->counters.at[STAT_launches]++;
  *error = d->driver.MemsetD8(from, 0, (size_t)bytes + COUNTER);
  if (!*error)
    *error = d->driver.LaunchKernel(f, (unsigned)blocks, 1, 1, threads, 1, 1, shared, NULL, params, NULL);
  device_free(d->vm, memory, (size_t)bytes + COUNTER);
  return true;
}

/* Scans along rows: a block for each row; of few and long rows a block for each piece. Down columns: a block for each
 * piece of a few of them. False: rows or columns are short, or scratch memory was refused: a thread does each. */
static bool start_scan(Device *d, const LoadedKernel *k, const LoopFn *fn, const u64 *words, u64 trips, void **params,
                       u32 count, CuResult *error) {
  enum { LEAST = 256, LEAST_ROWS = 65, COLUMN_THREADS = PTX_COLUMN_PIECE / LOOP_SCAN_SEGMENT };
  const PtxScan *s = &k->along;
  u64 length = k->scan || k->columns ? trips_of(fn, s->head, 0, words) : 0;
  if (length < (k->columns ? LEAST_ROWS : LEAST)) return false;
  if (k->columns) {
    u64 side = ptx_scan_columns(s), across = s->inner ? trips_of(fn, s->inner, 0, words) : trips;
    u64 tiles = across / side + (across % side != 0), scans = tiles;
    if (!across || (s->inner && __builtin_mul_overflow(tiles, trips, &scans))) return false;
    u64 pieces = length / PTX_COLUMN_PIECE + (length % PTX_COLUMN_PIECE != 0);
    return start_chained(d, k->columns, scans, pieces, ptx_scan_scratch(s, pieces), (u32)side * COLUMN_THREADS,
                         ptx_scan_bytes(s), params, count, error);
  }
  u64 pieces = length / PTX_SCAN_PIECE + (length % PTX_SCAN_PIECE != 0);
  if (pieces == 1 || trips >= 2 * (u64)(d->sms > 0 ? d->sms : 1)) {
    *error = start_blocks(d, k->scan, trips, ptx_scan_bytes(s), params);
    return true;
  }
  return start_chained(d, k->pieces, trips, pieces, ptx_scan_scratch(s, pieces), DEVICE_BLOCK, ptx_scan_bytes(s),
                       params, count, error);
}

/* Rows that are too long for the shared memory of a block, by several blocks each. All of a row run at once: every
 * multiprocessor has 64 KB of shared memory and holds two blocks, or one that takes more than half of that. */
static bool start_team(Device *d, const LoadedKernel *k, const LoopFn *fn, const u64 *words, u64 trips, void **params,
                       u32 count, CuResult *error) {
  enum { MOST = 48 << 10, HALF = 31 << 10 };
  u64 length = k->team ? trips_of(fn, k->row.heads[0], 0, words) : 0, part = k->team ? ptx_rows_part(&k->row) : 1;
  u64 parts = length / part + (length % part != 0), sms = (u64)(d->sms > 0 ? d->sms : 1);
  u32 shared = k->team ? ptx_rows_shared(&k->row) : 0, each = k->team ? ptx_rows_scratch(&k->row) : 0;
  if (parts < 2 || parts > PTX_ROW_PARTIALS || parts > sms * (shared <= HALF ? 2 : 1) || shared > MOST ||
      length > k->row.longest)
    return false;
  return start_chained(d, k->team, trips, parts, each, DEVICE_BLOCK, shared, params, count, error);
}

/* Results of blocks that the last entry takes in of each trip; more are joined first, by the whole grid. Up to
 * PTX_ROW_PARTIALS blocks of them are left to a block of threads, which is done with them in the time of a launch or
 * two. A small device joins earlier; so does the stand-in of the tests, which could not hold the arrays for which a
 * large one joins. */
static u64 few_blocks(const Device *d, const LoadedKernel *k) {
  u64 most = k->split.rows ? 16 : PTX_ROW_PARTIALS, few = (u64)(d->sms > 0 ? d->sms : 1) / 4,
      each = k->split.rows ? k->split.block : k->split.rest;
  if (d->sms <= 8) return k->split.rows ? each : each + each / 4;
  return each * (few < most ? few : most);
}

/* The entries of a split kernel, one behind the other; `params` has room for four more behind its `count`. False:
 * scratch memory was refused, and nothing was launched. */
static bool start_split(Device *d, const LoadedKernel *k, Spread s, u64 trips, void **params, u32 count,
                        CuResult *error) {
  size_t words = 8 * (size_t)k->split.count * trips;
  u64 left = s.blocks, next = blocks_of(&k->split, left), from = 0, to, total = s.total, blocks = s.blocks;
  u64 few = few_blocks(d, k);
  void *one, *two = NULL;
  if (s.blocks > SIZE_MAX / 2 / words || device_alloc(d->vm, words * s.blocks, &one) != WEFT_OK) {
    vm_error_forget(d->vm);
    return false;
  }
  if (left > few && device_alloc(d->vm, words * next, &two) != WEFT_OK) {
    vm_error_forget(d->vm);
    device_free(d->vm, one, words * s.blocks);
    return false;
  }
  to = (u64)(uintptr_t)one;
  void *more[] = {&from, &to, &total, &blocks};
  u32 own = count - 3; /* all but lo, hi and the key */
  memcpy(params + count, more, sizeof more);
  *error = start(d, k->part, k->warps, trips * blocks, params);
  while (!*error && left > few) {
    from = to;
    to = (u64)(uintptr_t)(to == (u64)(uintptr_t)one ? two : one);
    total = left;
    left = blocks = blocks_of(&k->split, left);
    *error = start(d, k->join, k->warps, trips * blocks, params + own);
  }
  from = to;
  total = left;
  blocks = 0;
  if (!*error)
    *error = k->split.rows ? start(d, k->rest, false, trips, params)
                           : start_blocks(d, k->rest, trips, PTX_ROW_PARTIAL_BYTES, params);
  device_free(d->vm, one, words * s.blocks);
  device_free(d->vm, two, words * next);
  return true;
}

static bool find_entry(Device *d, CuModule module, const LoopFn *fn, const char *suffix, CuFunction *out, Buf *why) {
  Buf name;
  buf_init(&name, why->alloc);
  buf_printf(&name, "%s%s", name_text(&fn->module->names, fn->name), suffix);
  bool entered = !name.failed && device_enter(d);
  if (!entered) buf_puts(why, name.failed ? "out of memory" : "the GPU failed: its context cannot be entered");
  CuResult error = entered ? d->driver.ModuleGetFunction(out, module, buf_text(&name)) : 0;
  if (entered) device_leave(d);
  if (error) buf_printf(why, "the CUDA driver does not find %s: %s", buf_text(&name), driver_error(&d->driver, error));
  buf_free(&name);
  return entered && !error;
}

/* ---- with the product in front of it -------------------------------------------------------------------------- */

typedef struct Finding {
  Device *d;
  LoadedKernel *k;
  const LoopFn *fn;
} Finding;

/* The entry for products of this kind, rendered and loaded when it is first asked for. */
static CuFunction find_product(void *ctx, u32 kind) {
  enum { STATIC_MOST = 48 << 10 };
  Finding *x = ctx;
  Device *d = x->d;
  DeviceOwn *p = &x->k->products[kind];
  Buf text, why;
  if (p->function || x->k->no_epilogue) return p->function;
  buf_init(&text, &d->vm->alloc);
  buf_init(&why, &d->vm->alloc);
  bool halves = x->k->epilogue.type == LT_F16 || x->k->epilogue.type == LT_BF16;
  u32 shared = halves ? mma_shared(mma_kind(kind)) : 0;
  bool ok = ptx_product_module(x->fn, NULL, &x->k->epilogue, kind, &text, &why) == WEFT_OK &&
            device_load(d, buf_text(&text), &p->module, &why) == WEFT_OK;
  if (ok) ok = find_entry(d, p->module, x->fn, "_product", &p->function, &why);
  if (ok && (ok = device_enter(d))) {
    int spilled = 0; /* in the loop over sums, perhaps: then two launches are faster */
    CuResult error = d->driver.FuncGetAttribute(&spilled, CU_FUNCTION_LOCAL, p->function);
    if (!error && shared > STATIC_MOST)
      error = d->driver.FuncSetAttribute(p->function, CU_FUNCTION_SHARED, (int)shared);
    if (error || spilled) p->function = NULL;
    device_leave(d);
  }
  buf_free(&text);
  buf_free(&why);
  if (!p->function) x->k->no_epilogue = true; /* it stays as it is: two launches */
  return p->function;
}

/* A kernel that does something to each element of a product that waits: both in one launch. False: nothing was done. */
static bool start_with_product(Device *d, const PlanKernel *plan, const u64 *words, Array *const *arrays, u32 count,
                               u64 trips, void **params, CuResult *error) {
  LoadedKernel *k = plan->launched;
  const LoopFn *fn = plan->self;
  ProductShape p;
  if (!plan->product || k->no_epilogue || !product_waiting(d, &p)) return false;
  u32 word = plan->product - 1;
  if (k->epilogue_word != plan->product) {
    if (k->epilogue_word || !ptx_epilogue(fn, word, &k->epilogue)) {
      k->no_epilogue = true;
      return false;
    }
    k->epilogue_word = plan->product;
  }
  const PtxEpilogue *e = &k->epilogue;
  bool fours = e->type == LT_F16 || e->type == LT_BF16;
  u64 columns = e->inner ? trips_of(fn, e->inner, 0, words) : p.columns;
  if (words[word] != (u64)(uintptr_t)p.to || columns != p.columns || words[count] != 0 ||
      trips != (e->inner ? p.rows : p.rows * p.columns) ||
      (fours && (columns % 8 || !ptx_epilogue_fits(fn, e, words))))
    return false;
  for (u32 i = 0; i < count; i++) {
    const LoopNode *n = loop_node(fn, fn->params.data[i]);
    if (n->type == LT_PTR && (!arrays[i] || array_device(arrays[i]) != DEV_GPU ||
                              (n->aux != LOOP_IN && product_reads(d, arrays[i]))))
      return false;
  }
  Finding found = {d, k, fn};
  ProductEnd end = {.find = find_product, .ctx = &found, .params = params, .count = count + 3};
  return product_fuse(d, &end, error);
}

/* ---- launching --------------------------------------------------------------------------------------------- */

static WeftStatus launch(const PlanKernel *k, Vm *vm, const u64 *given, Array *const *arrays, u32 count, i64 lo,
                         i64 hi, u64 *key) {
  const LoadedKernel *loaded = k->launched;
  const LoopFn *fn = k->self;
  Device *d = device_of(vm);
  *key = LOOP_KEY_NONE;
  if (!d) return WEFT_ERROR;
  if (lo >= hi) return WEFT_OK;
  if (!d->cells) {
    void *cells;
    if (device_alloc(vm, 8 * DEVICE_CELLS, &cells) != WEFT_OK) return WEFT_ERROR;
    d->cells = (CuPointer)(uintptr_t)cells;
  }
  u64 words[count + 3];
  void *params[count + 3 + MATMUL_PARAMS];
  Copied copies[count + 1];
  Launch l = {.d = d, .copies = copies, .cells = 1};
  WeftStatus status = WEFT_OK;
  CuResult error = 0;
  if (d->waiting) {
    memcpy(words, given, sizeof *words * count);
    words[count] = (u64)lo;
    words[count + 1] = (u64)hi;
    words[count + 2] = d->cells;
    for (u32 i = 0; i < count + 3; i++) params[i] = &words[i];
    if (start_with_product(d, k, words, arrays, count, (u64)(hi - lo), params, &error))
      return error ? device_failed(d, k->name, error) : WEFT_OK;
    if (product_flush(d) != WEFT_OK) return WEFT_ERROR;
  }
  for (u32 i = 0; i < count && status == WEFT_OK; i++) {
    const LoopNode *p = loop_node(fn, fn->params.data[i]);
    words[i] = given[i];
    if (p->type != LT_PTR) continue;
    bool back = p->aux != LOOP_IN;
    if (!arrays[i]) status = copy_cell(&l, (u64 *)(uintptr_t)given[i], back, &words[i]);
    else if (array_device(arrays[i]) != DEV_GPU) status = copy_there(&l, arrays[i], back, &words[i]);
  }
  words[count] = (u64)lo;
  words[count + 1] = (u64)hi;
  words[count + 2] = d->cells;
  for (u32 i = 0; i < count + 3; i++) params[i] = &words[i];
  if (status == WEFT_OK && loaded->checks) status = device_from_host(vm, key, (void *)(uintptr_t)d->cells, 8);
  if (status == WEFT_OK && !device_enter(d))
    status = vm_error(vm, EK_host, "the GPU failed: its context cannot be entered");
  else if (status == WEFT_OK) {
    u64 trips = (u64)(hi - lo);
    Spread s;
    bool started = start_tiled(d, loaded, fn, words, trips, params, &error) ||
                   start_rows(d, loaded, fn, words, trips, params, false, &error) ||
                   start_team(d, loaded, fn, words, trips, params, count + 3, &error) ||
                   start_scan(d, loaded, fn, words, trips, params, count + 3, &error) ||
                   (is_worth_splitting(d, loaded, fn, words, trips, &s) &&
                    start_split(d, loaded, s, trips, params, count + 3, &error)) ||
                   start_rows(d, loaded, fn, words, trips, params, true, &error);
    if (!started) error = start(d, loaded->function, loaded->warps, items_of(loaded, fn, words, trips), params);
    device_leave(d);
    if (error) status = device_failed(d, k->name, error);
  }
  if (status == WEFT_OK && loaded->checks) status = device_to_host(vm, (void *)(uintptr_t)d->cells, key, 8);
  return finish(&l, status);
}

/* ---- linking --------------------------------------------------------------------------------------------------- */

static void unlink_kernels(Vm *vm, void *linked) {
  Loaded *l = linked;
  Device *d = vm->device_state[DEV_GPU];
  if (!l) return;
  if (d && d->open && l->module && device_enter(d)) {
    (void)d->driver.ModuleUnload(l->module);
    for (u32 i = 0; i < l->count; i++)
      for (u32 kind = 0; kind < MMA_KINDS; kind++)
        if (l->kernels[i].products[kind].module) (void)d->driver.ModuleUnload(l->kernels[i].products[kind].module);
    device_leave(d);
  }
  for (u32 i = 0; i < l->count; i++) {
    if (l->kernels[i].split.late) ptx_split_free(&l->kernels[i].split);
    if (l->kernels[i].row.same) ptx_rows_free(&l->kernels[i].row);
    if (l->kernels[i].along.before) ptx_scan_free(&l->kernels[i].along);
  }
  mem_free(&vm->alloc, l, sizeof *l + sizeof *l->kernels * l->count);
}

/* The error of the VM as a reason. */
static void move_error(Vm *vm, Buf *why) {
  size_t len;
  const char *text = vm_error_message(vm, &len);
  buf_put(why, text, len);
  vm_error_forget(vm);
}

static bool link_kernels(Vm *vm, PlanKernel *kernels, u32 count, void **linked, Buf *why) {
  *linked = NULL;
  if (!count) return true;
  Device *d = device_of(vm);
  if (!d) {
    move_error(vm, why);
    return false;
  }
  Loaded *l = mem_alloc_zero(&vm->alloc, sizeof *l + sizeof *l->kernels * count);
  const LoopFn **fns = mem_alloc(&vm->alloc, sizeof *fns * count);
  Buf text;
  buf_init(&text, &vm->alloc);
  bool ok = l && fns;
  if (!ok) buf_puts(why, "out of memory");
  if (l) l->count = count;
  for (u32 i = 0; ok && i < count; i++) fns[i] = kernels[i].self;
  ok = ok && ptx_module(fns, NULL, count, &text, why) == WEFT_OK &&
       device_load(d, buf_text(&text), &l->module, why) == WEFT_OK;
  for (u32 i = 0; ok && i < count; i++) {
    LoadedKernel *k = &l->kernels[i];
    ok = find_entry(d, l->module, fns[i], "", &k->function, why);
    if (ok && ptx_split(fns[i], &vm->alloc, &k->split))
      ok = find_entry(d, l->module, fns[i], "_part", &k->part, why) &&
           find_entry(d, l->module, fns[i], "_join", &k->join, why) &&
           find_entry(d, l->module, fns[i], "_rest", &k->rest, why);
    if (ok && ptx_rows(fns[i], &vm->alloc, &k->row))
      ok = find_entry(d, l->module, fns[i], "_rows", &k->rows, why) &&
           find_entry(d, l->module, fns[i], "_team", &k->team, why) &&
           find_entry(d, l->module, fns[i], "_long", &k->lengthy, why);
    if (ok && ptx_scan(fns[i], &vm->alloc, &k->along))
      ok = k->along.across ? find_entry(d, l->module, fns[i], "_columns", &k->columns, why)
                           : find_entry(d, l->module, fns[i], "_scan", &k->scan, why) &&
                               find_entry(d, l->module, fns[i], "_pieces", &k->pieces, why);
    (void)ptx_nest(fns[i], &k->nest);
    if (ok && ptx_tile(fns[i], &k->tile)) ok = find_entry(d, l->module, fns[i], "_tile", &k->tiled, why);
    k->checks = has_checks(fns[i]);
    k->warps = ptx_spread(fns[i]) == PTX_WARPS;
  }
  for (u32 i = 0; ok && i < count; i++) {
    kernels[i].launch = launch;
    kernels[i].launched = &l->kernels[i];
  }
  buf_free(&text);
  if (fns) mem_free(&vm->alloc, fns, sizeof *fns * count);
  if (ok) *linked = l;
  else unlink_kernels(vm, l);
  return ok;
}

static void remove_device(Vm *vm) {
  Device *d = vm->device_state[DEV_GPU];
  if (!d) return;
  if (d->open) {
    product_end(d);
    if (device_enter(d)) {
      for (u32 i = 0; i < d->kept.count; i++) (void)d->driver.MemFree(d->kept.data[i].at);
      if (d->cells) (void)d->driver.MemFree(d->cells);
      device_end_own_kernels(d);
      device_leave(d);
    }
    (void)d->driver.DevicePrimaryCtxRelease(d->id);
    driver_close(&d->driver);
  }
  vec_free(&vm->alloc, &d->kept);
  vec_free(&vm->alloc, &d->op_fns);
  if (d->op_texts.alloc) names_free(&d->op_texts);
  vm->device_state[DEV_GPU] = NULL;
  mem_free(&vm->alloc, d, sizeof *d);
}

const JitDevice gpu_device = {.name = "ptx", .device = DEV_GPU, .link = link_kernels, .unlink = unlink_kernels,
                              .remove = remove_device};
