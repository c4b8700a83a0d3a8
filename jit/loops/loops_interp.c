/* loops_interp.c — the reference interpreter of the loop IR: slow, and what the others are measured against.
 *
 * Values are 64-bit words, one per node. The body is run by position; heads, ELSE and END know each other's
 * positions. A frame is one activation of a function; calls between functions recurse in C, bounded by CALL_DEPTH. */
#include "jit/loops/loops.h"

#include <string.h>

enum { CALL_DEPTH = 20000, LEVELS = 32 };

/* One level of a reduction or scan: a block being filled. */
typedef struct Level {
  u64 *lanes; /* reduce LANES: W accumulators; else one */
  u64 count;  /* elements in the block so far */
  u64 before; /* scan: the scan up to the segment before this one */
  bool has_before;
} Level;

typedef struct Fold { /* state of a reduce or scan that runs */
  Level levels[LEVELS];
  u32 used;  /* levels that have lanes allocated */
  bool any;
  u64 total; /* scan: the latest value */
} Fold;

typedef struct Jump { /* per body position */
  u32 other; /* of a head: its ELSE or END; of an ELSE: its END; of an END: its head */
  u32 end;   /* of a head: its END */
} Jump;

typedef struct Interp {
  const LoopFn *fn;
  Allocator *alloc;
  u64 *values; /* those of constants from the start */
  u64 *trip;   /* per node: number of the current trip of a head, row-major over its axes */
  u64 *trips;  /* per node: how many in all */
  Fold **folds; /* per node: of reduce and scan heads */
  Jump *jumps;  /* per body position */
  u32 *where;   /* per node: position of a head */
  VEC(u32) open;
  const u64 *args;
  LoopCtx *ctx; /* native only */
  u64 key;
  u64 *steps;
  Buf *why;
  u32 depth;
  u32 exit;
  bool done;
  bool failed;
  i64 lo, hi; /* of the kernel's outermost par */
} Interp;

static WeftStatus run_function(const LoopFn *fn, const u64 *args, LoopCtx *ctx, i64 lo, i64 hi, u64 *steps, Buf *why,
                               u32 depth, u64 *result, u64 *key, u32 *exit);

static void stop(Interp *in, const char *why, const char *name) {
  if (in->failed) return;
  in->failed = true;
  if (in->why) buf_printf(in->why, "%s%s%s", why, *name ? " " : "", name);
}

static const LoopNode *interp_node(const Interp *in, u32 id) { return loop_node(in->fn, id); }
static u64 value(const Interp *in, u32 id) { return in->values[id]; }

/* ---- reductions and scans ------------------------------------------------------------------ */

static u64 combine(LoopReduce op, LoopType type, u64 a, u64 b) {
  u64 r = 0;
  (void)loop_eval(loop_reduce_op(op), type, type, a, b, 0, &r);
  return r;
}

typedef struct Shape {
  LoopReduce op;
  LoopType type;
  u32 lanes;
  u64 block;
} Shape;

static Shape shape_of(const Interp *in, u32 head) {
  const LoopNode *n = interp_node(in, head);
  LoopType type = loop_type_of(in->fn, loop_result_of(in->fn, head, 0));
  if (n->op == LOOP_SCAN) return (Shape){(LoopReduce)n->aux, type, 1, LOOP_SCAN_SEGMENT};
  if (n->mem == LOOP_ORDER_ROWS) return (Shape){(LoopReduce)n->aux, type, 1, LOOP_ROW_BLOCK};
  u32 lanes = loop_lanes(type);
  return (Shape){(LoopReduce)n->aux, type, lanes, (u64)lanes * LOOP_BLOCK_TRIPS};
}

static void fold_free(Interp *in, u32 head) {
  Fold *f = in->folds[head];
  if (!f) return;
  u32 lanes = shape_of(in, head).lanes;
  for (u32 l = 0; l < f->used; l++) mem_free(in->alloc, f->levels[l].lanes, sizeof(u64) * lanes);
  mem_free(in->alloc, f, sizeof *f);
  in->folds[head] = NULL;
}

static bool level_begin(Interp *in, Fold *f, Shape s, u32 l) {
  if (l == f->used) {
    f->levels[l].lanes = mem_alloc(in->alloc, sizeof(u64) * s.lanes);
    if (!f->levels[l].lanes) return stop(in, "out of memory", ""), false;
    f->levels[l].count = 0;
    f->levels[l].has_before = false;
    f->used++;
  }
  if (f->levels[l].count == 0)
    for (u32 i = 0; i < s.lanes; i++) f->levels[l].lanes[i] = loop_reduce_identity(s.op, s.type);
  return true;
}

/* Lanes combine as l with l + W/2, then W/4 … 1. */
static u64 block_result(Level *level, Shape s) {
  for (u32 half = s.lanes / 2; half; half /= 2)
    for (u32 i = 0; i < half; i++) level->lanes[i] = combine(s.op, s.type, level->lanes[i], level->lanes[i + half]);
  return level->lanes[0];
}

static void reduce_element(Interp *in, Fold *f, Shape s, u64 v) {
  for (u32 l = 0; l < LEVELS; l++) {
    if (!level_begin(in, f, s, l)) return;
    Level *level = &f->levels[l];
    u64 *lane = &level->lanes[level->count % s.lanes];
    *lane = combine(s.op, s.type, *lane, v);
    if (++level->count < s.block) return;
    v = block_result(level, s);
    level->count = 0;
  }
}

static u64 reduce_result(Interp *in, Fold *f, Shape s) {
  u32 highest = 0;
  for (u32 l = 0; l < f->used; l++)
    if (f->levels[l].count) highest = l;
  if (!f->any) return loop_reduce_empty(s.op, s.type);
  for (u32 l = 0; l < highest; l++) {
    if (!f->levels[l].count) continue;
    u64 v = block_result(&f->levels[l], s);
    f->levels[l].count = 0;
    Level *up = &f->levels[l + 1];
    if (!level_begin(in, f, s, l + 1)) return 0;
    u64 *lane = &up->lanes[up->count++ % s.lanes]; /* a level above is never full here: it would have been emptied */
    *lane = combine(s.op, s.type, *lane, v);
    if (l + 1 > highest) highest = l + 1;
  }
  return block_result(&f->levels[highest], s);
}

/* The scan's value at this element; segment totals go up the levels. */
static u64 scan_element(Interp *in, Fold *f, Shape s, u64 v) {
  u64 locals[LEVELS];
  bool full[LEVELS];
  u32 l = 0;
  for (;; l++) {
    if (!level_begin(in, f, s, l)) return 0;
    Level *level = &f->levels[l];
    level->lanes[0] = combine(s.op, s.type, level->lanes[0], v);
    v = locals[l] = level->lanes[0];
    full[l] = ++level->count == s.block;
    if (!full[l]) break;
    level->count = 0;
  }
  /* From the top down: the scan's value at this element of level l is what came before its segment, then its local. */
  u64 scanned = 0;
  for (u32 k = l + 1; k-- > 0;) {
    Level *level = &f->levels[k];
    u64 out = level->has_before ? combine(s.op, s.type, level->before, locals[k]) : locals[k];
    if (full[k]) level->before = scanned, level->has_before = true;
    scanned = out;
  }
  return scanned;
}

/* ---- loops --------------------------------------------------------------------------------- */

/* Sets the indices of a head for trip number t. */
static void set_indices(Interp *in, u32 head, u64 t) {
  const LoopNode *n = interp_node(in, head);
  in->trip[head] = t;
  if (n->a == 1) {
    in->values[loop_index_of(head, 0)] = t;
    return;
  }
  for (u32 axis = n->a; axis-- > 0;) {
    u64 size = value(in, loop_trips_of(in->fn, head, axis));
    in->values[loop_index_of(head, axis)] = t % size;
    t /= size;
  }
}

static u64 trip_count(const Interp *in, u32 head) {
  const LoopNode *n = interp_node(in, head);
  u64 total = 1;
  for (u32 axis = 0; axis < n->a; axis++) {
    u64 size = value(in, loop_trips_of(in->fn, head, axis));
    if (size == 0) return 0;
    total *= size;
  }
  return total;
}

static void finish_loop(Interp *in, u32 head) {
  const LoopNode *n = interp_node(in, head);
  if (n->op == LOOP_REDUCE)
    in->values[loop_result_of(in->fn, head, 0)] = reduce_result(in, in->folds[head], shape_of(in, head));
  if (n->op == LOOP_SCAN) {
    Fold *f = in->folds[head];
    Shape s = shape_of(in, head);
    in->values[loop_result_of(in->fn, head, 0)] = f->any ? f->total : loop_reduce_empty(s.op, s.type);
  }
  fold_free(in, head);
}

/* Copies values into the carried ones or the results of a head; all are read before any is written. */
static bool interp_assign(Interp *in, const u32 *from, u32 first, u32 count) {
  u64 few[32], *copy = few;
  if (count > COUNT_OF(few) && !(copy = mem_alloc(in->alloc, sizeof *copy * count)))
    return stop(in, "out of memory", ""), false;
  for (u32 i = 0; i < count; i++) copy[i] = value(in, from[i]);
  for (u32 i = 0; i < count; i++) in->values[first + i] = copy[i];
  if (copy != few) mem_free(in->alloc, copy, sizeof *copy * count);
  return true;
}

static void interp_results_from_carried(Interp *in, u32 head) {
  u32 count = interp_node(in, head)->b;
  for (u32 i = 0; i < count; i++)
    in->values[loop_result_of(in->fn, head, i)] = in->values[loop_carry_of(in->fn, head, i)];
}

/* Enters a head at position pc; gives the next position. */
static u32 enter(Interp *in, u32 pc, u32 head) {
  const LoopNode *n = interp_node(in, head);
  Jump j = in->jumps[pc];
  if (n->op == LOOP_IF) {
    bool taken = value(in, loop_cond_of(in->fn, head)) != 0;
    if (!taken && in->jumps[j.other].end == j.other) return j.end + 1; /* no else */
    if (!vec_push(in->alloc, &in->open, head)) return stop(in, "out of memory", ""), 0;
    return taken ? pc + 1 : j.other + 1;
  }
  bool outermost = in->fn->kind == LOOP_KERNEL && in->open.count == 0;
  u64 first = outermost ? (u64)in->lo : 0;
  in->trips[head] = outermost ? (u64)in->hi : trip_count(in, head);
  if (n->b && !interp_assign(in, loop_list(in->fn, n) + n->a, loop_carry_of(in->fn, head, 0), n->b)) return 0;
  if (n->op == LOOP_REDUCE || n->op == LOOP_SCAN) {
    in->folds[head] = mem_alloc_zero(in->alloc, sizeof(Fold));
    if (!in->folds[head]) return stop(in, "out of memory", ""), 0;
  }
  if (n->op != LOOP_WHILE && first >= in->trips[head]) {
    interp_results_from_carried(in, head);
    finish_loop(in, head);
    return j.end + 1;
  }
  if (!vec_push(in->alloc, &in->open, head)) return stop(in, "out of memory", ""), 0;
  if (n->op != LOOP_WHILE) set_indices(in, head, first);
  return pc + 1;
}

/* The trip of the innermost loop at `depth` is over: the next trip's position, or the one behind the loop. */
static u32 next_trip(Interp *in, u32 depth) {
  u32 head = in->open.data[depth];
  const LoopNode *n = interp_node(in, head);
  u32 pc = in->where[head];
  in->open.count = depth + 1;
  if (n->op == LOOP_WHILE) return pc + 1;
  u64 t = in->trip[head] + 1;
  if (t < in->trips[head]) {
    set_indices(in, head, t);
    return pc + 1;
  }
  interp_results_from_carried(in, head);
  finish_loop(in, head);
  in->open.count = depth;
  return in->jumps[pc].end + 1;
}

static u32 leave_loop(Interp *in, u32 depth) {
  u32 head = in->open.data[depth];
  in->open.count = depth;
  return in->jumps[in->where[head]].end + 1;
}

static u32 innermost_loop(const Interp *in) { /* depth of the innermost open head that is no if */
  u32 d = in->open.count;
  while (d-- > 0 && interp_node(in, in->open.data[d])->op == LOOP_IF) continue;
  return d;
}

/* ---- leaving ------------------------------------------------------------------------------- */

static void interp_leave(Interp *in, u32 exit, const u32 *ids, u32 count) {
  u64 few[32], *words = few;
  if (count > COUNT_OF(few) && !(words = mem_alloc(in->alloc, sizeof *words * count))) {
    stop(in, "out of memory", "");
    return;
  }
  for (u32 i = 0; i < count; i++) words[i] = value(in, ids[i]);
  if (in->ctx->frame) in->ctx->frame(in->ctx, in->fn->tag, exit, words, count);
  if (words != few) mem_free(in->alloc, words, sizeof *words * count);
  in->done = true;
}

static u64 element_number(const Interp *in) {
  u64 e = 0;
  for (u32 i = 0; i < in->open.count; i++) {
    u32 head = in->open.data[i];
    u8 op = interp_node(in, head)->op;
    if (op == LOOP_IF || op == LOOP_WHILE) continue;
    bool outermost = in->fn->kind == LOOP_KERNEL && i == 0;
    e = e * (outermost ? 1 : in->trips[head]) + in->trip[head];
  }
  return e;
}

static u32 run_check(Interp *in, u32 pc, const LoopNode *n) {
  if (loop_check_holds((LoopCheck)n->aux, loop_type_of(in->fn, n->a), value(in, n->a), n->b ? value(in, n->b) : 0))
    return pc + 1;
  if (in->fn->kind == LOOP_NATIVE) {
    in->exit = (u32)n->imm;
    interp_leave(in, in->exit, loop_list(in->fn, n), n->count);
    return pc;
  }
  u64 key = loop_key((u32)n->imm, element_number(in));
  if (key < in->key) in->key = key;
  u32 depth = innermost_loop(in);
  if (interp_node(in, in->open.data[depth])->op == LOOP_WHILE) {
    interp_results_from_carried(in, in->open.data[depth]);
    return leave_loop(in, depth);
  }
  return next_trip(in, depth);
}

static void run_call(Interp *in, u32 id, const LoopNode *n) {
  const char *name = name_text(&in->fn->module->names, (Name)n->imm);
  const LoopFn *callee = loop_module_find(in->fn->module, name);
  const u32 *list = loop_list(in->fn, n);
  u64 *args = mem_alloc(in->alloc, sizeof(u64) * (n->a + 1)), key = LOOP_KEY_NONE;
  u32 code = 0;
  if (!args) {
    stop(in, "out of memory", "");
    return;
  }
  for (u32 i = 0; i < n->a; i++) args[i] = value(in, list[i]);
  if (callee->kind == LOOP_KERNEL) {
    i64 lo = (i64)args[n->a - 2], hi = (i64)args[n->a - 1];
    if (!callee->is_extern) {
      if (run_function(callee, args, NULL, lo, hi, in->steps, in->why, in->depth + 1, NULL, &key, NULL) != WEFT_OK)
        in->failed = true;
    } else if (callee->address) {
      key = ((LoopKernelFn)callee->address)(args, lo, hi);
    } else {
      stop(in, "no definition of", name);
    }
    code = key != LOOP_KEY_NONE;
    if (!n->c) in->values[loop_result_of(in->fn, id, 0)] = !code, code = 0;
  } else if (callee->is_extern) {
    stop(in, "no definition of", name);
  } else {
    if (--in->ctx->depth < 0) in->ctx->budget = 0;
    if (run_function(callee, args, in->ctx, 0, 0, in->steps, in->why, in->depth + 1, NULL, NULL, &code) != WEFT_OK)
      in->failed = true;
    in->ctx->depth++;
    for (u32 i = 0; !code && i < n->b; i++) in->values[loop_result_of(in->fn, id, i)] = in->ctx->results[i];
  }
  mem_free(in->alloc, args, sizeof(u64) * (n->a + 1));
  if (in->failed || !code) return;
  in->exit = callee->kind == LOOP_KERNEL ? n->c : code;
  interp_leave(in, n->c, list + n->a, n->count - n->a);
}

/* ---- values -------------------------------------------------------------------------------- */

static void run_math(Interp *in, u32 id, const LoopNode *n) {
  LoopType type = (LoopType)n->type;
  const LoopModule *m = in->fn->module;
  const char *name = name_text(&m->names, (Name)n->imm);
  u64 args[3] = {value(in, n->a), n->b ? value(in, n->b) : 0, n->c ? value(in, n->c) : 0};
  const LoopFn *fn = loop_module_find_math(m, name, type);
  if (fn) {
    if (run_function(fn, args, NULL, 0, 0, in->steps, in->why, in->depth + 1, &in->values[id], NULL, NULL) != WEFT_OK)
      in->failed = true;
    return;
  }
  const LoopMath *c = loop_module_math(m, name, type);
  if (!c) {
    stop(in, "no definition of math", name);
    return;
  }
  if (type == LT_F64) {
    f64 x[3], r;
    memcpy(x, args, sizeof x);
    if (c->arity == 1) r = ((f64(*)(f64))c->fn)(x[0]);
    else if (c->arity == 2) r = ((f64(*)(f64, f64))c->fn)(x[0], x[1]);
    else r = ((f64(*)(f64, f64, f64))c->fn)(x[0], x[1], x[2]);
    memcpy(&in->values[id], &r, sizeof r);
  } else {
    f32 x[3], r;
    for (u32 i = 0; i < 3; i++) memcpy(&x[i], &args[i], sizeof x[i]);
    if (c->arity == 1) r = ((f32(*)(f32))c->fn)(x[0]);
    else if (c->arity == 2) r = ((f32(*)(f32, f32))c->fn)(x[0], x[1]);
    else r = ((f32(*)(f32, f32, f32))c->fn)(x[0], x[1], x[2]);
    in->values[id] = 0;
    memcpy(&in->values[id], &r, sizeof r);
  }
}

static void run_access(Interp *in, u32 id, const LoopNode *n) {
  const LoopTerm *t = loop_terms(in->fn, n);
  u64 index = n->imm;
  for (u32 i = 0; i < n->count; i++) {
    u64 term = (u64)t[i].coef * value(in, t[i].var);
    for (u32 k = 0; k < 2; k++)
      if (t[i].stride[k]) term *= value(in, t[i].stride[k]);
    index += term;
  }
  const LoopNode *b = interp_node(in, n->a);
  if (b->op == LOOP_TABLE) {
    const LoopTable *table = &in->fn->module->tables.data[b->a];
    if (index >= table->count) stop(in, "index outside the table", name_text(&in->fn->module->names, table->name));
    else in->values[id] = table->bits[index];
    return;
  }
  char *at = (char *)(uintptr_t)value(in, n->a) + index * loop_type_bytes((LoopType)n->mem);
  if (n->op == LOOP_LOAD) in->values[id] = loop_load_memory((LoopType)n->mem, at);
  else loop_store_memory((LoopType)n->mem, at, value(in, n->b));
}

/* ---- one statement ------------------------------------------------------------------------- */

static u32 run_end(Interp *in, u32 pc, const LoopNode *n) {
  if (interp_node(in, n->a)->op == LOOP_IF) {
    in->open.count--;
    return pc + 1;
  }
  return next_trip(in, in->open.count - 1);
}

static u32 run_terminator(Interp *in, u32 pc, const LoopNode *n) {
  const u32 *list = loop_list(in->fn, n);
  u32 depth = in->open.count;
  switch (n->op) {
    case LOOP_YIELD: {
      u32 head = n->a;
      if (interp_node(in, head)->op == LOOP_IF) {
        (void)interp_assign(in, list, loop_result_of(in->fn, head, 0), n->count);
        return leave_loop(in, depth - 1);
      }
      in->folds[head]->any = true;
      reduce_element(in, in->folds[head], shape_of(in, head), value(in, list[0]));
      return next_trip(in, depth - 1);
    }
    case LOOP_RETURN:
      for (u32 i = 0; i < n->count; i++) in->ctx->results[i] = value(in, list[i]);
      in->done = true;
      return pc;
    default: break;
  }
  do depth--;
  while (in->open.data[depth] != n->a);
  bool next = n->op == LOOP_NEXT;
  if (!interp_assign(in, list, next ? loop_carry_of(in->fn, n->a, 0) : loop_result_of(in->fn, n->a, 0), n->count))
    return pc;
  return next ? next_trip(in, depth) : leave_loop(in, depth);
}

static u32 step(Interp *in, u32 pc) {
  u32 id = in->fn->body.data[pc];
  const LoopNode *n = interp_node(in, id);
  switch (loop_op_form((LoopOp)n->op)) {
    case LOOP_FORM_HEAD: return enter(in, pc, id);
    case LOOP_FORM_TERM: return run_terminator(in, pc, n);
    case LOOP_FORM_CHECK: return run_check(in, pc, n);
    case LOOP_FORM_MARK:
      if (n->op == LOOP_END) return run_end(in, pc, n);
      in->open.count--; /* the first arm is done */
      return in->jumps[pc].end + 1;
    case LOOP_FORM_EXIT:
      if (n->op == LOOP_POLL && (--in->ctx->budget >= 0 || !in->ctx->poll || !in->ctx->poll(in->ctx))) return pc + 1;
      in->exit = (u32)n->imm;
      interp_leave(in, in->exit, loop_list(in->fn, n), n->count);
      return pc;
    case LOOP_FORM_CALL: run_call(in, id, n); return pc + 1;
    case LOOP_FORM_MATH: run_math(in, id, n); return pc + 1;
    case LOOP_FORM_ACCESS: run_access(in, id, n); return pc + 1;
    case LOOP_FORM_PREFIX: {
      u32 head = in->open.data[in->open.count - 1];
      Fold *f = in->folds[head];
      f->any = true;
      in->values[id] = f->total = scan_element(in, f, shape_of(in, head), value(in, n->a));
      return pc + 1;
    }
    default:
      (void)loop_eval((LoopOp)n->op, (LoopType)n->type, loop_type_of(in->fn, n->a), value(in, n->a),
                      n->b ? value(in, n->b) : 0, n->c ? value(in, n->c) : 0, &in->values[id]);
      return pc + 1;
  }
}

static bool find_jumps(Interp *in) {
  for (u32 pc = 0; pc < in->fn->body.count; pc++) {
    const LoopNode *n = interp_node(in, in->fn->body.data[pc]);
    if (loop_is_head(n)) {
      in->where[in->fn->body.data[pc]] = pc;
      if (!vec_push(in->alloc, &in->open, pc)) return false;
      continue;
    }
    if (n->op != LOOP_ELSE && n->op != LOOP_END) continue;
    u32 head = in->open.data[in->open.count - 1];
    if (n->op == LOOP_ELSE) {
      in->jumps[head].other = pc;
      continue;
    }
    if (in->jumps[head].other) in->jumps[in->jumps[head].other].end = pc; /* the ELSE */
    else in->jumps[head].other = pc;
    in->jumps[head].end = pc;
    in->jumps[pc] = (Jump){head, pc};
    in->open.count--;
  }
  return true;
}

static WeftStatus run_function(const LoopFn *fn, const u64 *args, LoopCtx *ctx, i64 lo, i64 hi, u64 *steps, Buf *why,
                               u32 depth, u64 *result, u64 *key, u32 *exit) {
  u32 nodes = fn->nodes.count;
  LoopCtx math = {.results = result}; /* a math function returns through this */
  Interp in = {.fn = fn, .alloc = fn->module->alloc, .args = args, .ctx = ctx ? ctx : &math, .key = LOOP_KEY_NONE,
               .steps = steps,
    .why = why, .depth = depth, .lo = lo, .hi = hi};
  if (depth > CALL_DEPTH) {
    stop(&in, "calls nest too deeply", "");
    return WEFT_ERROR;
  }
  /* one piece: much of what runs is short */
  const size_t words = (size_t)nodes * 4 + fn->body.count + 1, bytes = words * sizeof(u64) + nodes * sizeof(u32);
  _Static_assert(sizeof(Jump) == sizeof(u64) && sizeof(Fold *) == sizeof(u64), "all but `where` are words");
  in.values = mem_alloc_zero(in.alloc, bytes);
  if (in.values) {
    in.trip = in.values + nodes;
    in.trips = in.trip + nodes;
    in.folds = (Fold **)(in.trips + nodes);
    in.jumps = (Jump *)(in.folds + nodes);
    in.where = (u32 *)(in.jumps + fn->body.count + 1);
    for (u32 id = 0; id < nodes; id++)
      if (interp_node(&in, id)->op == LOOP_CONST) in.values[id] = interp_node(&in, id)->imm;
  }
  if (!in.values || !find_jumps(&in)) stop(&in, "out of memory", "");
  in.open.count = 0;
  for (u32 i = 0; !in.failed && i < fn->params.count; i++) in.values[fn->params.data[i]] = args[i];
  bool empty = fn->kind == LOOP_KERNEL && lo >= hi;
  for (u32 pc = 0; !in.failed && !in.done && !empty && pc < fn->body.count;) {
    if (steps && (*steps)-- == 0) stop(&in, "out of steps", "");
    else pc = step(&in, pc);
  }
  for (u32 id = 0; in.folds && id < nodes; id++)
    if (in.folds[id]) fold_free(&in, id);
  mem_free(in.alloc, in.values, bytes);
  vec_free(in.alloc, &in.open);
  if (key) *key = in.key;
  if (exit) *exit = in.exit;
  return in.failed ? WEFT_ERROR : WEFT_OK;
}

WeftStatus loops_interp_kernel(const LoopFn *fn, const u64 *args, i64 lo, i64 hi, u64 *key, u64 *steps, Buf *why) {
  return run_function(fn, args, NULL, lo, hi, steps, why, 0, NULL, key, NULL);
}

WeftStatus loops_interp_native(const LoopFn *fn, LoopCtx *ctx, const u64 *args, u32 *exit, u64 *steps, Buf *why) {
  return run_function(fn, args, ctx, 0, 0, steps, why, 0, NULL, NULL, exit);
}

WeftStatus loops_interp_math(const LoopFn *fn, const u64 *args, u64 *result, u64 *steps, Buf *why) {
  return run_function(fn, args, NULL, 0, 0, steps, why, 0, result, NULL, NULL);
}
