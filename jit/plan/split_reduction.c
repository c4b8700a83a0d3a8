/* split_reduction.c — a kernel that is one long reduction, in two that threads can share (see split_reduction.h). */
#include "jit/plan/split_reduction.h"

#include <stdio.h>
#include <string.h>

#include "jit/plan/plan_inner.h"

typedef struct Split {
  const LoopFn *fn;
  LoopFn *to;
  u32 *map;   /* nodes of fn → nodes of to */
  u8 *late;   /* nodes of fn that need the result of a reduction */
  u32 par;
  u32 reduce[SPLIT_MOST], count; /* heads */
  u32 axes;
  u32 arrays[SPLIT_MOST], blocks; /* of to: parameters behind fn's */
  u32 head;   /* of fn: the reduction whose body is being copied; 0: none */
  u32 loads, work; /* in its bodies; operations, FAR for one that does not run beside another */
  u32 pair[2]; /* of to: indices of the blocks of a trip */
  /* of to: index of the block, its first element; of an element: in the block, among all (0: not made yet) */
  u32 block, base, inner, number;
  bool failed;
} Split;

static const LoopNode *node(const Split *c, u32 id) { return loop_node(c->fn, id); }

/* ---- does it qualify -------------------------------------------------------------------------------- */

static void is_late(void *ctx, u32 id) {
  Split *c = ctx;
  c->late[0] |= c->late[id];
}

static bool needs_result(Split *c, const LoopNode *n) {
  c->late[0] = 0;
  loop_each_operand(c->fn, n, is_late, c);
  return c->late[0];
}

static bool is_known(const Split *c, u32 id) { return node(c, id)->op == LOOP_PARAM || node(c, id)->op == LOOP_CONST; }

/* The same loops as the first reduction has? Lanes of one width too: blocks are of one size. */
static bool fits_first(const Split *c, u32 head) {
  const LoopNode *n = node(c, head);
  LoopType t = loop_type_of(c->fn, loop_result_of(c->fn, head, 0));
  if (c->count == SPLIT_MOST || n->mem != LOOP_ORDER_LANES || n->b) return false;
  for (u32 i = 0; i < n->a; i++) {
    if (!is_known(c, loop_trips_of(c->fn, head, i))) return false;
    if (c->count && (n->a != c->axes || loop_trips_of(c->fn, head, i) != loop_trips_of(c->fn, c->reduce[0], i)))
      return false;
  }
  return !c->count ||
         loop_type_bytes(t) == loop_type_bytes(loop_type_of(c->fn, loop_result_of(c->fn, c->reduce[0], 0)));
}

/* Does one step of an axis of the reduction count what its place in the numbering of elements says? `term` is of its
 * index. */
static bool in_step(const Split *c, u32 head, u32 axis, const LoopTerm *term, const LoopTerm *last) {
  i64 coef = last->coef;
  u32 stride[2] = {0, 0}, n = 0;
  for (u32 i = axis + 1; i < c->axes; i++) {
    const LoopNode *trips = node(c, loop_trips_of(c->fn, head, i));
    if (trips->op == LOOP_CONST) {
      if (__builtin_mul_overflow(coef, (i64)trips->imm, &coef)) return false;
    } else if (n == 2) {
      return false;
    } else {
      stride[n++] = loop_trips_of(c->fn, head, i);
    }
  }
  bool same = term->stride[0] == stride[0] && term->stride[1] == stride[1];
  return term->coef == coef && (same || (term->stride[0] == stride[1] && term->stride[1] == stride[0]));
}

/* Of several axes: every access goes by the number of the element alone, or by none of the axes. */
static bool is_linear(const Split *c, u32 head, const LoopNode *n) {
  const LoopTerm *t = loop_terms(c->fn, n), *of[4] = {NULL};
  if (c->axes == 1) return true;
  if (c->axes > COUNT_OF(of)) return false;
  u32 found = 0;
  for (u32 i = 0; i < n->count; i++)
    for (u32 axis = 0; axis < c->axes; axis++)
      if (t[i].var == loop_index_of(head, axis)) {
        if (of[axis]) return false;
        of[axis] = &t[i];
        found++;
      }
  if (!found) return true;
  if (found != c->axes || of[c->axes - 1]->stride[0] || of[c->axes - 1]->stride[1]) return false;
  for (u32 axis = 0; axis + 1 < c->axes; axis++)
    if (!in_step(c, head, axis, of[axis], of[c->axes - 1])) return false;
  return true;
}

static bool simple_form(const LoopNode *n) {
  LoopForm f = loop_op_form(n->op);
  return f == LOOP_FORM_UNARY || f == LOOP_FORM_BINARY || f == LOOP_FORM_TERNARY || f == LOOP_FORM_COMPARE ||
         f == LOOP_FORM_SELECT || f == LOOP_FORM_CONVERT || f == LOOP_FORM_MATH;
}

static bool reads_input(const Split *c, const LoopNode *n) {
  return n->op == LOOP_LOAD && node(c, n->a)->op == LOOP_PARAM && node(c, n->a)->aux == LOOP_IN;
}

static void is_index(void *ctx, u32 id) {
  Split *c = ctx;
  const LoopNode *n = node(c, id);
  if (n->op == LOOP_INDEX && node(c, n->a)->op == LOOP_REDUCE) c->late[0] = 1;
}

enum { NEAR = 8, FAR = 100 }; /* bodies of so many operations have room for as many again beside them */

/* Is it none that a loop over whole vectors, which follow each other in memory, does at once? */
static bool takes_long(const Split *c, u32 head, const LoopNode *n) {
  const LoopTerm *t = loop_terms(c->fn, n);
  if (n->op != LOOP_LOAD) return n->op == LOOP_CHECK || n->op == LOOP_MATH || n->op == LOOP_DIV || n->op == LOOP_SQRT;
  for (u32 i = 0; i < n->count; i++)
    if (t[i].var == loop_index_of(head, c->axes - 1) && t[i].coef == 1 && !t[i].stride[0]) return false;
  return true;
}

/* In the body of a reduction. */
static bool body_fits(Split *c, u32 head, const LoopNode *n) {
  if (n->op == LOOP_YIELD) return !c->late[loop_list(c->fn, n)[0]];
  if (needs_result(c, n)) return false;
  c->loads += n->op == LOOP_LOAD;
  c->work += takes_long(c, head, n) ? FAR : 1;
  if (reads_input(c, n)) return is_linear(c, head, n);
  if (!simple_form(n) && (n->op != LOOP_CHECK || n->count)) return false;
  c->late[0] = 0;
  loop_each_operand(c->fn, n, is_index, c);
  c->work += c->late[0] ? FAR : 0;
  return c->axes == 1 || !c->late[0];
}

static bool qualifies(Split *c) {
  u32 depth = 0, head = 0;
  for (u32 i = 0; i < c->fn->body.count; i++) {
    u32 id = c->fn->body.data[i];
    const LoopNode *n = node(c, id);
    if (n->op == LOOP_PAR && !c->par) {
      const LoopNode *trips = node(c, loop_trips_of(c->fn, id, 0));
      if (trips->op != LOOP_CONST || trips->imm != 1) return false;
      c->par = id;
      depth = 1;
    } else if (n->op == LOOP_REDUCE && depth == 1) {
      if (!fits_first(c, id)) return false;
      c->axes = n->a;
      c->reduce[c->count++] = head = id;
      c->late[loop_result_of(c->fn, id, 0)] = 1;
      depth = 2;
    } else if (n->op == LOOP_END) {
      depth--;
    } else if (depth == 2) {
      if (!body_fits(c, head, n)) return false;
    } else if (n->op == LOOP_STORE) {
      if (depth == 0) return false;
    } else if (simple_form(n) || reads_input(c, n)) {
      c->late[id] = needs_result(c, n);
    } else {
      return false;
    }
  }
  return c->count > 0;
}

/* ---- copying ---------------------------------------------------------------------------------------- */

static u32 copied(Split *c, u32 id) {
  const LoopNode *n = node(c, id);
  if (!id) return 0;
  if (n->op == LOOP_CONST) return loop_const(c->to, (LoopType)n->type, n->imm);
  if (n->op == LOOP_INDEX && c->head && n->a == c->head) {
    if (!c->number) c->number = loop_emit(c->to, LOOP_ADD, LT_I64, c->base, c->inner, 0);
    return c->number;
  }
  if (!c->map[id]) c->failed = true;
  return c->map[id];
}

/* Element e of a block lies where element e of all lies, and the blocks before it further on. */
static u32 copy_terms(Split *c, const LoopNode *n, LoopTerm *out) {
  const LoopTerm *t = loop_terms(c->fn, n);
  u32 count = 0;
  for (u32 i = 0; i < n->count; i++) {
    LoopTerm x = t[i];
    const LoopNode *v = node(c, x.var);
    for (u32 k = 0; k < 2; k++) x.stride[k] = copied(c, x.stride[k]);
    if (x.var && v->op == LOOP_INDEX && c->head && v->a == c->head) {
      if (v->b + 1 < c->axes) continue;
      u32 block = loop_lanes(loop_type_of(c->fn, loop_result_of(c->fn, c->head, 0))) * LOOP_BLOCK_TRIPS;
      x.var = c->inner;
      out[count++] = x;
      x.var = c->block;
      if (__builtin_mul_overflow(x.coef, (i64)block, &x.coef)) c->failed = true;
    } else {
      x.var = copied(c, x.var);
    }
    out[count++] = x;
  }
  return count;
}

static void copy_node(Split *c, u32 id) {
  LoopFn *to = c->to;
  const LoopNode *n = node(c, id);
  enum { TERMS_MOST = 16 };
  LoopTerm terms[2 * TERMS_MOST];
  if (n->op == LOOP_LOAD || n->op == LOOP_STORE) {
    if (n->count > TERMS_MOST) {
      c->failed = true;
      return;
    }
    u32 count = copy_terms(c, n, terms);
    c->map[id] = n->op == LOOP_LOAD ? loop_load(to, copied(c, n->a), (i64)n->imm, terms, count)
                                    : loop_store(to, copied(c, n->a), (i64)n->imm, terms, count, copied(c, n->b));
  } else if (n->op == LOOP_CHECK) {
    loop_check(to, (LoopCheck)n->aux, (u32)n->imm, copied(c, n->a), copied(c, n->b), 0, NULL);
  } else if (loop_op_form(n->op) == LOOP_FORM_MATH) {
    c->map[id] = loop_math(to, name_text(&c->fn->module->names, (Name)n->imm), copied(c, n->a), copied(c, n->b),
                           copied(c, n->c));
  } else {
    c->map[id] = loop_emit(to, (LoopOp)n->op, (LoopType)n->type, copied(c, n->a), copied(c, n->b), copied(c, n->c));
  }
}

static bool begin(Split *c, LoopModule *m, const char *suffix, LoopDir dir) {
  char name[64];
  snprintf(name, sizeof name, "%s%s", name_text(&c->fn->module->names, c->fn->name), suffix);
  c->to = loop_fn_new(m, LOOP_KERNEL, name);
  if (!c->to) return false;
  memset(c->map, 0, sizeof *c->map * c->fn->nodes.count);
  for (u32 i = 0; i < c->fn->params.count; i++) {
    u32 id = c->fn->params.data[i];
    const LoopNode *n = node(c, id);
    const char *text = name_text(&c->fn->module->names, (Name)n->list);
    c->map[id] = n->type == LT_PTR ? loop_param_buffer(c->to, text, (LoopType)n->mem, (LoopDir)n->aux)
                                   : loop_param(c->to, text, (LoopType)n->type);
  }
  for (u32 i = 0; i < c->count; i++) {
    snprintf(name, sizeof name, "part%u", i);
    c->arrays[i] = loop_param_buffer(c->to, name, loop_type_of(c->fn, loop_result_of(c->fn, c->reduce[i], 0)), dir);
  }
  c->blocks = loop_param(c->to, "blocks", LT_I64);
  return true;
}

static u32 block_of(const Split *c) {
  return loop_lanes(loop_type_of(c->fn, loop_result_of(c->fn, c->reduce[0], 0))) * LOOP_BLOCK_TRIPS;
}

/* At the head of the loop over blocks: how many elements this one has. */
static u32 open_block(Split *c, bool pairs) {
  LoopFn *to = c->to;
  u32 size = loop_const_i(to, LT_I64, block_of(c)), all = 0;
  c->block = c->pair[0] = loop_index_of(loop_begin_par(to, NULL, c->blocks, 1), 0);
  if (pairs) {
    c->pair[1] = loop_emit(to, LOOP_ADD, LT_I64, c->block, c->blocks, 0);
    return size;
  }
  c->base = loop_emit(to, LOOP_MUL, LT_I64, c->block, size, 0);
  for (u32 i = 0; i < c->axes; i++) {
    u32 trips = copied(c, loop_trips_of(c->fn, c->reduce[0], i));
    all = all ? loop_emit(to, LOOP_MUL, LT_I64, all, trips, 0) : trips;
  }
  return loop_emit(to, LOOP_MIN, LT_I64, loop_emit(to, LOOP_SUB, LT_I64, all, c->base, 0), size, 0);
}

static u32 which(const Split *c, u32 head) {
  u32 i = 0;
  while (c->reduce[i] != head) i++;
  return i;
}

static u32 open_reduce(Split *c, u32 head, u32 trips) {
  LoopType t = loop_type_of(c->fn, loop_result_of(c->fn, head, 0));
  return loop_begin_reduce(c->to, (LoopReduce)node(c, head)->aux, t, LOOP_ORDER_LANES, 1, &trips);
}

/* The reduction of the block at hand. *at: of its head in fn's body; behind that, of its end. The result. */
static u32 copy_reduction(Split *c, u32 *at, u32 trips) {
  u32 head = c->fn->body.data[*at], made = open_reduce(c, head, trips);
  c->inner = loop_index_of(made, 0);
  c->head = head;
  c->number = 0;
  for (;;) {
    u32 id = c->fn->body.data[++*at];
    const LoopNode *n = node(c, id);
    if (n->op == LOOP_END) break;
    if (n->op == LOOP_YIELD) {
      u32 v = copied(c, loop_list(c->fn, n)[0]);
      loop_yield(c->to, 1, &v);
    } else {
      copy_node(c, id);
    }
  }
  loop_end(c->to);
  c->head = 0;
  return loop_result_of(c->to, made, 0);
}

static void store_results(Split *c, u32 block, const u32 *results) {
  LoopTerm at = {.coef = 1, .var = block};
  for (u32 k = 0; k < c->count; k++) loop_store(c->to, c->arrays[k], 0, &at, 1, results[k]);
}

/* All but what needs results. Those are stored at the end of a block, when all are there: reductions next to each
 * other then read memory once. In pairs, those of the block `blocks` behind it follow. */
static void write_partial(Split *c, bool pairs) {
  u32 trips = 0, results[2][SPLIT_MOST], done = 0;
  for (u32 i = 0; i < c->fn->body.count; i++) {
    u32 id = c->fn->body.data[i];
    const LoopNode *n = node(c, id);
    if (n->op == LOOP_PAR) {
      trips = open_block(c, pairs);
    } else if (n->op == LOOP_REDUCE) {
      results[0][which(c, id)] = copy_reduction(c, &i, trips);
      if (!pairs || ++done < c->count) continue;
      c->block = c->pair[1];
      for (u32 k = 0; k < c->count; k++) {
        u32 at = 0;
        while (c->fn->body.data[at] != c->reduce[k]) at++;
        results[1][k] = copy_reduction(c, &at, trips);
      }
    } else if (n->op == LOOP_END) {
      for (u32 k = 0; k <= pairs; k++) store_results(c, c->pair[k], results[k]);
      loop_end(c->to);
    } else if (n->op != LOOP_STORE && !c->late[id]) {
      copy_node(c, id);
    }
  }
}

static void write_rest(Split *c) {
  bool inside = false;
  for (u32 i = 0; i < c->fn->body.count; i++) {
    u32 id = c->fn->body.data[i];
    const LoopNode *n = node(c, id);
    if (n->op == LOOP_PAR) {
      loop_begin_par(c->to, NULL, loop_const_i(c->to, LT_I64, 1), 1);
    } else if (n->op == LOOP_REDUCE) {
      u32 made = open_reduce(c, id, c->blocks);
      LoopTerm at = {.coef = 1, .var = loop_index_of(made, 0)};
      u32 v = loop_load(c->to, c->arrays[which(c, id)], 0, &at, 1);
      loop_yield(c->to, 1, &v);
      loop_end(c->to);
      c->map[loop_result_of(c->fn, id, 0)] = loop_result_of(c->to, made, 0);
      inside = true;
    } else if (n->op == LOOP_END) {
      if (!inside) loop_end(c->to);
      inside = false;
    } else if (!inside) {
      copy_node(c, id);
    }
  }
}

/* 0: it is none, or memory was refused. */
static u32 finish(Split *c, Plan *p, LoopModule *m, const PlanKernel *of, u32 fns) {
  if (!c->failed && loop_fn_finish(c->to, NULL) == WEFT_OK && loops_verify(c->to, NULL) == WEFT_OK) {
    PlanKernel k = *of;
    k.self = c->to;
    k.name = name_text(&c->to->module->names, c->to->name);
    k.grain = 1;
    k.flags = 0;
    return plan_kernel(p, &k, NULL, 0) + 1;
  }
  c->failed = true;
  loop_module_truncate(m, fns, m->tables.count);
  return 0;
}

static bool split_kernel(Plan *p, LoopModule *m, u32 at, bool threads, u32 abreast) {
  PlanKernel k = p->kernels.data[at];
  Split c = {.fn = k.self};
  u32 nodes = c.fn->nodes.count, fns = m->fns.count;
  c.map = mem_alloc(p->alloc, sizeof *c.map * nodes);
  c.late = mem_alloc_zero(p->alloc, nodes);
  bool ok = c.map && c.late, fits = ok && qualifies(&c);
  bool paired = abreast >= c.count && c.loads == c.count && c.work <= NEAR;
  if (fits && (threads || paired)) {
    u32 made[3] = {0, 0, 0}, kernels = p->kernels.count;
    ok = begin(&c, m, "_parts", LOOP_OUT);
    if (ok) write_partial(&c, false);
    if (ok) made[0] = finish(&c, p, m, &k, fns);
    if (ok && made[0]) {
      ok = begin(&c, m, "_rest", LOOP_IN);
      if (ok) write_rest(&c);
      if (ok) made[1] = finish(&c, p, m, &k, fns);
    }
    if (ok && made[1] && paired) {
      ok = begin(&c, m, "_pairs", LOOP_OUT);
      if (ok) write_partial(&c, true);
      if (ok) made[2] = finish(&c, p, m, &k, fns + 2);
    }
    if (ok && !made[1]) {
      p->kernels.count = kernels;
    } else if (ok) {
      p->hidden += 2 + (made[2] > 0);
      p->kernels.data[at].partial = made[0] - 1;
      p->kernels.data[at].rest = made[1] - 1;
      p->kernels.data[at].pairs = made[2] ? made[2] - 1 : 0;
      p->kernels.data[at].pairs_far = abreast > 1;
      p->kernels.data[at].reductions = c.count;
      p->kernels.data[at].reduce = c.reduce[0];
    }
  }
  mem_free(p->alloc, c.map, sizeof *c.map * nodes);
  mem_free(p->alloc, c.late, nodes);
  return ok && !p->failed;
}

bool plan_split_reductions(Vm *vm, Plan *p, LoopModule *m, u32 abreast) {
  bool threads = pool_threads(vm) > 1;
  u64 least = threads ? (u64)vm->tunables.parallel_elements / 4 : LONG_UNITS;
  for (u32 i = 0, count = p->kernels.count; i < count && (threads || abreast); i++)
    if (p->kernels.data[i].bytes_per_trip / 8 > least && !split_kernel(p, m, i, threads, abreast)) return false;
  return true;
}

u64 split_elements(const PlanKernel *k, const u64 *words, u32 *block) {
  const LoopFn *fn = k->self;
  const LoopNode *head = loop_node(fn, k->reduce);
  f64 all = 1; /* too many are no number for an array */
  *block = loop_lanes(loop_type_of(fn, loop_result_of(fn, k->reduce, 0))) * LOOP_BLOCK_TRIPS;
  for (u32 i = 0; i < head->a; i++) {
    u32 id = loop_trips_of(fn, k->reduce, i), at = 0;
    while (at < fn->params.count && fn->params.data[at] != id) at++;
    all *= (f64)(at < fn->params.count ? words[at] : loop_node(fn, id)->imm);
  }
  return all < 1e15 ? (u64)all : 0;
}
