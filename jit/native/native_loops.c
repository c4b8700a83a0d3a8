/* native_loops.c — kernels that a native function calls: the elements of rows (native_rows.h) stored into a part of
 * an array, or reduced. They have no checks and take what they need as numbers: where the parts begin, sizes, and
 * what the trip computed. */
#include "jit/native/native_rows.h"

#include <stdio.h>
#include <string.h>

enum { WORDS = 64, SEEN = 48 };

typedef struct Seen {
  ValueId v;
  u32 rank, ix[TYPE_MAX_RANK], ir;
} Seen;

typedef struct Maker { /* of one kernel */
  Native *n;
  LoopFn *fn;
  u32 own[WORDS], there[WORDS], count; /* numbers and buffers of the function, and what they are in the kernel */
  Seen seen[SEEN];
  u32 nseen;
} Maker;

/* ---- the kernel's parameters ------------------------------------------------------------------------------- */

static u32 loops_word(Maker *m, u32 ir) {
  Native *n = m->n;
  if (!ir || n->fn->failed) return native_bail(n, n->fn->failed ? n->fn->failed : "a number that is not there"), 0;
  if (m->fn == n->fn) return ir;
  const LoopNode *x = loop_node(n->fn, ir);
  if (x->op == LOOP_CONST) return loop_const(m->fn, (LoopType)x->type, x->imm);
  for (u32 i = 0; i < m->count; i++)
    if (m->own[i] == ir) return m->there[i];
  if (m->count == WORDS) return native_bail(n, "a kernel of too many numbers"), 0;
  char name[16];
  snprintf(name, sizeof name, "s%u", m->count);
  m->own[m->count] = ir;
  return m->there[m->count++] = loop_param(m->fn, name, (LoopType)x->type);
}

/* What is stored to is another buffer to the kernel than what is read, though it may be the same memory: each
 * element is read, if at all, before it is written, so that trips need not keep their order. */
static u32 memory(Maker *m, u32 buffer, LoopDir dir) {
  Native *n = m->n;
  const NBuffer *b = &n->buffers.data[buffer];
  if (m->fn == n->fn) return b->ir;
  for (u32 i = 0; i < m->count; i++)
    if (m->own[i] == b->ir && loop_node(m->fn, m->there[i])->aux == dir) return m->there[i];
  if (m->count == WORDS) return native_bail(n, "a kernel of too many numbers"), 0;
  char name[16];
  snprintf(name, sizeof name, "x%u", m->count);
  m->own[m->count] = b->ir;
  return m->there[m->count++] = loop_param_buffer(m->fn, name, b->elem, dir);
}

static Maker *maker(Native *n) {
  Maker *m = arena_alloc(&n->c->arena, sizeof *m);
  char name[16];
  snprintf(name, sizeof name, "r%u", ++n->c->names);
  if (m) *m = (Maker){.n = n, .fn = loop_fn_new(&n->c->code->module, LOOP_KERNEL, name)};
  if (m && m->fn) return m;
  native_no_memory(n);
  return NULL;
}

/* The call, of all trips. */
static bool loops_call(Maker *m, u32 trips) {
  Native *n = m->n;
  Buf why;
  buf_init(&why, n->c->alloc);
  bool ok = !n->why && loop_fn_finish(m->fn, &why) == WEFT_OK && loops_verify(m->fn, &why) == WEFT_OK;
  if (!ok) native_bail(n, why.len ? arena_copy(&n->c->arena, why.data, why.len) : "a malformed kernel");
  buf_free(&why);
  u32 *values, count, exit = ok ? native_exit(n, n->c->exit, &values, &count) : 0; /* never taken */
  if (!exit) return false;
  u32 args[WORDS + 2];
  memcpy(args, m->own, sizeof *args * m->count);
  args[m->count] = loop_const_i(n->fn, LT_I64, 0);
  args[m->count + 1] = trips;
  loop_call(n->fn, m->fn, m->count + 2, args, exit, count, values);
  return vec_push(n->c->alloc, &n->kernels, m->fn) || native_no_memory(n);
}

/* ---- elements ------------------------------------------------------------------------------------------------ */

static u32 add(Native *n, u32 a, u32 b) { return a && b ? loop_emit(n->fn, LOOP_ADD, LT_VOID, a, b, 0) : a ? a : b; }

/* Where a row lies: `*first` is a number of the function, or 0, and each axis of the row a term. */
static bool place(Native *n, const NRow *r, u32 *first, i64 *constant, i64 *coef, u32 *stride) {
  const ArrayType t = n->buffers.data[r->buffer].type;
  Dim strides[TYPE_MAX_RANK];
  *first = 0;
  *constant = 0;
  memset(coef, 0, sizeof *coef * TYPE_MAX_RANK);
  memset(stride, 0, sizeof *stride * TYPE_MAX_RANK);
  dims_strides(n->c, t.rank, t.dims, strides);
  for (u32 k = 0; k < r->axes && !n->why; k++) {
    const NAxis *a = &r->axis[k];
    i64 by = 0, at = 0;
    bool even = dim_is_const(n->c, strides[k], &by), known = dim_is_const(n->c, a->at, &at);
    u32 begin = known ? 0 : native_size_ir(n, a->at), size = even ? 0 : native_dim_ir(n, strides[k]);
    if (a->by_ir) begin = add(n, begin, a->by_ir);
    if (known && at && !even) begin = add(n, begin, loop_const_i(n->fn, LT_I64, at));
    else *constant += at * by;
    if (begin) {
      if (!even || by != 1)
        begin = loop_emit(n->fn, LOOP_MUL, LT_VOID, begin, even ? loop_const_i(n->fn, LT_I64, by) : size, 0);
      *first = add(n, *first, begin);
    }
    if (!a->slice) continue;
    coef[a->to] = even ? a->step * by : a->step;
    stride[a->to] = size;
  }
  return !n->why;
}

static u32 access_terms(Maker *m, const NRow *r, const u32 *ix, LoopTerm *terms, i64 *constant) {
  i64 coef[TYPE_MAX_RANK];
  u32 first, stride[TYPE_MAX_RANK], count = 0;
  if (!place(m->n, r, &first, constant, coef, stride)) return UINT32_MAX;
  if (first) terms[count++] = (LoopTerm){.coef = 1, .var = loops_word(m, first)};
  for (u32 d = 0; d < r->rank; d++)
    if (ix[d] && coef[d])
      terms[count++] = (LoopTerm){.coef = coef[d], .stride = {stride[d] ? loops_word(m, stride[d]) : 0}, .var = ix[d]};
  return m->n->why ? UINT32_MAX : count;
}

/* The element of v at ix (0: the first), in v's type; 0 with `why`. */
static u32 loops_element(Maker *m, ValueId v, const u32 *ix, u32 depth);

static u32 operation(Maker *m, const NRow *r, const u32 *ix, u32 depth) {
  Native *n = m->n;
  Graph *g = n->g;
  u32 op = graph_node_at(g, r->node)->op, compute, x[3] = {0};
  ValueId operands[3], v = node_result(g, r->node, 0);
  LoopType to = native_type(n, v);
  if (op_fills(op)) {
    const u8 number = op_info(op)->fill;
    return to == LT_I1 || !number ? loop_const(m->fn, to, number) : loop_const_i(m->fn, to, number);
  }
  u32 count = element_operands(g, r->node, operands);
  if (!element_lowers(n->c, r->node, &compute)) return native_bail(n, "an operation that does not lower"), 0;
  LoopType t = loop_type_of_dtype(compute);
  for (u32 i = 0; i < count; i++) {
    if (!operands[i]) continue;
    const ArrayType own = *value_type(g, operands[i]);
    u32 at[TYPE_MAX_RANK];
    for (u32 d = 0; d < own.rank; d++) at[d] = dim_is(n->c, own.dims[d], 1) ? 0 : ix[r->rank - own.rank + d];
    x[i] = loops_element(m, operands[i], at, depth);
    if (!x[i]) return 0;
    x[i] = element_convert(m->fn, x[i], native_type(n, operands[i]), element_operand_type(op, i, compute, own.dtype));
  }
  return element_emit(m->fn, op, t, value_type(g, v)->dtype, x);
}

/* An element at a place that a row gives, counted from the end where that is negative. */
static u32 gathered(Maker *m, const NRow *r, const u32 *ix, u32 depth) {
  Native *n = m->n;
  ValueId x = node_operand(n->g, r->node, 0), places = native_places(n, r->node);
  const NRow *from = native_row(n, x);
  LoopTerm terms[TYPE_MAX_RANK + 1];
  i64 constant;
  if (!from || from->node || n->buffers.data[from->buffer].version != from->version)
    return native_bail(n, "an old version of an array is used"), 0;
  u32 at = loops_element(m, places, ix, depth);
  u32 size = at ? loops_word(m, native_dim_ir(n, value_type(n->g, x)->dims[0])) : 0;
  if (!size) return 0;
  at = element_convert(m->fn, at, native_type(n, places), LT_I64);
  u32 negative = loop_emit(m->fn, LOOP_LT, LT_VOID, at, loop_const_i(m->fn, LT_I64, 0), 0);
  at = loop_emit(m->fn, LOOP_SELECT, LT_VOID, negative, loop_emit(m->fn, LOOP_ADD, LT_VOID, at, size, 0), at);
  u32 count = access_terms(m, from, &at, terms, &constant);
  return count == UINT32_MAX ? 0 : loop_load(m->fn, memory(m, from->buffer, LOOP_IN), constant, terms, count);
}

static u32 loops_element(Maker *m, ValueId v, const u32 *ix, u32 depth) {
  Native *n = m->n;
  u32 rank = value_type(n->g, v)->rank, ir;
  if (!rank) return loops_word(m, native_number(n, v));
  for (u32 i = 0; i < m->nseen; i++)
    if (m->seen[i].v == v && memcmp(m->seen[i].ix, ix, sizeof *ix * rank) == 0) return m->seen[i].ir;
  const NRow *r = native_row(n, v);
  if (!r || depth > ROW_DEPTH) return native_bail(n, "an expression that is too deep"), 0;
  if (r->node) {
    bool index = graph_node_at(n->g, r->node)->kind == NODE_index;
    ir = index ? gathered(m, r, ix, depth + 1) : operation(m, r, ix, depth + 1);
  } else {
    LoopTerm terms[TYPE_MAX_RANK + 1];
    i64 constant;
    if (n->buffers.data[r->buffer].version != r->version)
      return native_bail(n, "an old version of an array is used"), 0;
    u32 count = access_terms(m, r, ix, terms, &constant);
    if (count == UINT32_MAX) return 0;
    ir = loop_load(m->fn, memory(m, r->buffer, LOOP_IN), constant, terms, count);
  }
  if (!ir || m->fn->failed)
    return native_bail(n, m->fn->failed ? m->fn->failed : "an operation that does not lower"), 0;
  if (m->nseen < SEEN) {
    Seen *s = &m->seen[m->nseen++];
    s->v = v;
    s->ir = ir;
    memcpy(s->ix, ix, sizeof *ix * rank);
  }
  return ir;
}

/* ---- stores ---------------------------------------------------------------------------------------------------- */

static ValueId loops_origin_of(Native *n, ValueId v) {
  ValueId s = v ? native_value(n, v)->same_as : 0;
  return s ? s : v;
}

/* Two parts of one buffer, read and written at the same element of a loop nest: is each element that is read that
 * which is written then, or written never? Integers may differ, and then the parts have nothing in common. */
static bool in_step(Native *n, const NRow *to, const NRow *from, u32 shift) {
  for (u32 k = 0; k < to->axes; k++) {
    const NAxis *a = &to->axis[k], *b = &from->axis[k];
    if (a->slice != b->slice) return false;
    if (!a->slice) continue;
    if (a->at != b->at || loops_origin_of(n, a->by) != loops_origin_of(n, b->by) || a->step != b->step ||
        a->to != b->to + shift)
      return false;
    if (!dims_same(n->c, 1, &to->dims[a->to], &from->dims[b->to])) return false;
  }
  return true;
}

/* How v reads the buffer of `to`: not, in step with the stores, or otherwise. `from`: axes of `to` before v's. */
typedef enum Overlap { APART, IN_STEP, OVERLAPS } Overlap;

static Overlap overlap(Native *n, const NRow *to, ValueId v, u32 from, u32 depth) {
  if (!value_type(n->g, v)->rank) return APART;
  const NRow *r = native_row(n, v);
  if (!r || depth > ROW_DEPTH) return OVERLAPS;
  if (!r->node) return r->buffer != to->buffer ? APART : in_step(n, to, r, from) ? IN_STEP : OVERLAPS;
  Overlap most = APART;
  const GraphNode *x = graph_node_at(n->g, r->node);
  if (x->kind == NODE_index) { /* at places that lie anywhere */
    const NRow *whole = native_row(n, node_operand(n->g, r->node, 0));
    if (!whole || whole->node || whole->buffer == to->buffer) return OVERLAPS;
    return overlap(n, to, native_places(n, r->node), from, depth + 1);
  }
  for (u32 i = 0; i < x->operand_count && most != OVERLAPS; i++) {
    ValueId o = node_operand(n->g, r->node, i);
    u32 rank = value_type(n->g, o)->rank;
    Overlap one = !rank ? APART : overlap(n, to, o, from + r->rank - rank, depth + 1);
    if (one > most) most = one;
  }
  return most;
}

static bool few(Native *n, u32 rank, const Dim *dims) {
  SizePool *p = &n->g->sizes;
  i64 *hints = arena_alloc(&n->c->arena, sizeof *hints * (p->syms.count + 1)), most = 1, k;
  if (!hints) return native_no_memory(n);
  for (u32 i = 0; i < p->syms.count; i++) hints[i] = p->syms.data[i].hint;
  for (u32 d = 0; d < rank; d++)
    if (!size_eval(p, dims[d], hints, &k) || (k > 1 && (most *= k) > ROW_ELEMENTS) || k > ROW_ELEMENTS)
      return native_bail(n, "long rows");
  return true;
}

/* Opens loops over `dims` in the kernel; their indices go to ix, the outermost trip count, in the function, to
 * *trips. */
static bool open_nest(Maker *m, u32 rank, const Dim *dims, u32 *ix, u32 *trips) {
  Native *n = m->n;
  for (u32 d = 0; d < rank; d++) {
    u32 size = native_dim_ir(n, dims[d]), own = loops_word(m, size);
    if (d == 0) *trips = size;
    u32 head = !own ? 0 : d == 0 ? loop_begin_par(m->fn, NULL, own, 1) : loop_begin_for(m->fn, NULL, own, 0, NULL);
    if (!head) return native_bail(n, "a malformed kernel");
    ix[d] = loop_index_of(head, 0);
  }
  return true;
}

/* The elements of v, stretched to the part `to`: all of them stored. `update`: the node that stores, or 0. */
static bool store_row(Native *n, const NRow *to, ValueId v, NodeId update) {
  const ArrayType t = *value_type(n->g, v);
  bool compound = update && graph_node_at(n->g, update)->op != OP_none;
  u32 ix[TYPE_MAX_RANK], at[TYPE_MAX_RANK], trips = 0;
  i64 constant;
  LoopTerm terms[TYPE_MAX_RANK + 1];
  if (!to->rank || t.rank > to->rank) return native_bail(n, "a store of another rank");
  if (!few(n, to->rank, to->bound)) return false;
  Maker *m = maker(n);
  if (!m || !open_nest(m, to->rank, to->dims, ix, &trips)) return false;
  for (u32 d = 0; d < t.rank; d++) at[d] = dim_is(n->c, t.dims[d], 1) ? 0 : ix[to->rank - t.rank + d];
  u32 value = loops_element(m, v, at, 0), count = value ? access_terms(m, to, ix, terms, &constant) : UINT32_MAX;
  if (count == UINT32_MAX) return false;
  u32 buffer = memory(m, to->buffer, LOOP_OUT);
  LoopType elem = n->buffers.data[to->buffer].elem;
  if (update) {
    u32 old = compound ? loop_load(m->fn, memory(m, to->buffer, LOOP_IN), constant, terms, count) : 0;
    const ArrayType array = *value_type(n->g, node_operand(n->g, update, 0));
    LoopFn *fn = n->fn;
    n->fn = m->fn;
    value = native_stored(n, update, &array, old, value);
    n->fn = fn;
  } else {
    value = element_convert(m->fn, value, native_type(n, v), loop_value_type(elem));
  }
  if (!value) return native_bail(n, "a store that may fail");
  loop_store(m->fn, buffer, constant, terms, count, value);
  for (u32 d = 0; d < to->rank; d++) loop_end(m->fn);
  return loops_call(m, trips);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

/* Each place that an array gives, in loops of the function itself. */
bool native_rows_check(Native *n, NodeId node, u32 exit, u32 count, const u32 *values) {
  ValueId places = node_operand(n->g, node, 0), all = node_operand(n->g, node, 1);
  const ArrayType t = *value_type(n->g, places);
  const NRow *r = t.rank && !value_type(n->g, all)->rank ? native_row(n, places) : NULL;
  if (!r) return n->why ? false : native_bail(n, "a check of an array");
  Maker *m = few(n, t.rank, r->bound) ? arena_alloc(&n->c->arena, sizeof *m) : NULL;
  if (!m) return n->why ? false : native_no_memory(n);
  *m = (Maker){.n = n, .fn = n->fn};
  u32 ix[TYPE_MAX_RANK], size = native_number(n, all);
  if (!size) return false;
  size = element_convert(n->fn, size, native_type(n, all), LT_I64);
  for (u32 d = 0; d < t.rank; d++) {
    u32 trips = native_dim_ir(n, t.dims[d]), head = trips ? loop_begin_for(n->fn, NULL, trips, 0, NULL) : 0;
    if (!head) return native_bail(n, "a malformed loop");
    ix[d] = loop_index_of(head, 0);
  }
  u32 at = loops_element(m, places, ix, 0);
  if (!at) return false;
  at = element_convert(n->fn, at, native_type(n, places), LT_I64);
  if (!element_check(n->fn, CHECK_index, LT_I64, DT_NONE, at, size, exit, count, values))
    return native_bail(n, "an unknown check");
  for (u32 d = 0; d < t.rank; d++) loop_end(n->fn);
  return !n->why;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

u32 native_temp(Native *n, ValueId v, const NRow *r) {
  ArrayType t = *value_type(n->g, v);
  if (!native_row_type(n, &t)) return UINT32_MAX;
  for (u32 d = 0; d < t.rank; d++)
    if (native_size_own(n, r->bound[d])) return native_bail(n, "a size that is known only in the trip"), UINT32_MAX;
  NBuffer b = {.value = v, .temp = true, .written = true, .elem = loop_memory_of_dtype(t.dtype),
               .version = ++n->versions};
  for (u32 d = 0; d < t.rank; d++) {
    b.loose |= r->bound[d] != t.dims[d];
    t.dims[d] = r->bound[d];
  }
  b.type = t;
  b.cell = t.rank == 0;
  b.slot = plan_slot_for(n->c->plan, v);
  b.ir = native_buffer_param(n, b.elem, LOOP_INOUT);
  if (!vec_push(n->c->alloc, &n->buffers, b)) return native_no_memory(n), UINT32_MAX;
  return n->buffers.count - 1;
}

/* All of a buffer of the function's own, as sizes of v have it. */
static NRow whole_temp(Native *n, ValueId v, u32 at) {
  const ArrayType t = *value_type(n->g, v);
  NRow to = {.rank = t.rank, .buffer = at, .version = n->buffers.data[at].version, .axes = t.rank};
  memcpy(to.dims, t.dims, sizeof *to.dims * t.rank);
  memcpy(to.bound, n->buffers.data[at].type.dims, sizeof *to.bound * t.rank);
  for (u32 d = 0; d < t.rank; d++) to.axis[d] = (NAxis){.slice = true, .to = d, .step = 1};
  return to;
}

bool native_fill(Native *n, ValueId v) {
  const NRow *r = native_row(n, v);
  u32 at = r ? native_temp(n, v, r) : UINT32_MAX;
  if (at == UINT32_MAX) return false;
  const NRow to = whole_temp(n, v, at);
  if (!few(n, to.rank, to.bound) || !store_row(n, &to, v, 0)) return false;
  NRow *own = arena_alloc(&n->c->arena, sizeof *own);
  if (!own) return native_no_memory(n);
  *own = to;
  *native_value(n, v) = (NValue){.stamp = n->stamp, .buffer = at + 1, .version = to.version, .row = own};
  return true;
}

bool native_row_element(Native *n, NodeId node) {
  ValueId x = node_operand(n->g, node, 0);
  const NRow *from = native_row(n, x);
  NRow r;
  i64 coef[TYPE_MAX_RANK], constant;
  u32 first, stride[TYPE_MAX_RANK];
  if (from && from->node && !native_fill(n, x)) return false;
  if (!from || !native_row_part(n, node, x, &r) || !place(n, &r, &first, &constant, coef, stride)) return false;
  if (n->buffers.data[r.buffer].version != r.version) return native_bail(n, "an old version of an array is used");
  u32 ir = loop_load(n->fn, n->buffers.data[r.buffer].ir, constant, &(LoopTerm){.coef = 1, .var = first}, first != 0);
  native_value(n, node_result(n->g, node, 0))->ir = ir;
  return ir != 0;
}

enum { THIN = 4 };
typedef struct Thin { /* overlapping parts that are stretched: far smaller than what they are stored to */
  ValueId v[THIN];
  NValue was[THIN];
  u32 count;
} Thin;

/* Gathers them. False: another part overlaps. */
static bool all_thin(Native *n, const NRow *to, ValueId v, u32 from, Thin *t, u32 depth) {
  if (overlap(n, to, v, from, depth) != OVERLAPS) return true;
  const NRow *r = native_row(n, v);
  if (!r || depth > ROW_DEPTH) return false;
  if (!r->node) {
    bool stretched = r->rank < to->rank, again = false;
    for (u32 d = 0; d < r->rank; d++) stretched |= dim_is(n->c, r->dims[d], 1);
    for (u32 i = 0; i < t->count; i++) again |= t->v[i] == v;
    if (stretched && !again && t->count < THIN) t->v[t->count++] = v;
    else if (!again) return false;
    return stretched;
  }
  const GraphNode *x = graph_node_at(n->g, r->node);
  if (x->kind == NODE_index) return false;
  for (u32 i = 0; i < x->operand_count; i++) {
    ValueId o = node_operand(n->g, r->node, i);
    u32 rank = value_type(n->g, o)->rank;
    if (rank && !all_thin(n, to, o, from + r->rank - rank, t, depth + 1)) return false;
  }
  return true;
}

/* What overlaps with the stores, and not in step, is read before anything is written. */
static bool loops_put(Native *n, const NRow *to, ValueId v, NodeId update) {
  u32 from = to->rank - value_type(n->g, v)->rank;
  Overlap o = overlap(n, to, v, from, 0);
  Thin t = {.count = 0};
  if (n->why) return false;
  bool thin = o == OVERLAPS && all_thin(n, to, v, from, &t, 0);
  if (o == OVERLAPS && !thin && !native_fill(n, v)) return false;
  bool ok = true;
  for (u32 i = 0; i < t.count && thin && ok; i++) {
    t.was[i] = *native_value(n, t.v[i]);
    ok = native_fill(n, t.v[i]);
  }
  ok = ok && store_row(n, to, v, update);
  /* what is made of it here is gone with it elsewhere */
  for (u32 i = 0; i < t.count && thin && ok; i++) *native_value(n, t.v[i]) = t.was[i];
  return ok;
}

static bool used_later(const Graph *g, NodeId node, ValueId v) {
  const GraphBlock *b = &g->blocks.data[graph_node_at(g, node)->block];
  for (NodeId k = node_next(g, node); k; k = node_next(g, k))
    for (u32 i = 0; i < graph_node_at(g, k)->operand_count; i++)
      if (node_operand(g, k, i) == v) return true;
  for (u32 i = 0; i < b->term_count; i++)
    if (g->operands.data[b->term_first + i] == v) return true;
  return false;
}

typedef struct Named {
  ValueId v;
  bool found;
} Named;

static void is_named(void *ctx, u32 v) {
  Named *x = ctx;
  x->found |= x->v == v;
}

/* By the exits of a node and of what is inside of it. */
static bool exits_name(const Graph *g, NodeId node, ValueId v) {
  const GraphNode *x = graph_node_at(g, node);
  Named named = {.v = v};
  if (x->exit != NO_EXIT) graph_exit_values(g, x->exit, is_named, &named);
  for (u32 i = 0; i < node_subs(g, node) && !named.found; i++) {
    const GraphBlock *b = &g->blocks.data[x->sub[i]];
    if (b->term == TERM_exit) graph_exit_values(g, b->exit, is_named, &named);
    for (NodeId k = block_first(g, x->sub[i]); k && !named.found; k = node_next(g, k))
      named.found = exits_name(g, k, v);
  }
  return named.found;
}

static bool loops_stays(const Graph *g, NodeId node, ValueId v) {
  const GraphNode *x = graph_node_at(g, node);
  u32 uses = 0;
  for (u32 i = 0; i < x->operand_count; i++) uses += node_operand(g, node, i) == v;
  return uses > 1 || used_later(g, node, v) || (x->kind == NODE_while && exits_name(g, node, v));
}

u32 native_own(Native *n, NodeId node, ValueId v) {
  u32 at = native_buffer(n, v);
  if (at == UINT32_MAX) return at;
  if (n->buffers.data[at].written) return !loops_stays(n->g, node, v) || native_fill(n, v) ? at : UINT32_MAX;
  const NValue was = *native_value(n, v);
  if (!native_fill(n, v)) return UINT32_MAX;
  at = native_value(n, v)->buffer - 1;
  *native_value(n, v) = was;
  if (n->buffers.data[at].loose) native_bail(n, "an array whose size is known only in the trip");
  return n->why ? UINT32_MAX : at;
}

bool native_rows_store(Native *n, NodeId node) {
  Graph *g = n->g;
  ValueId array = node_operand(g, node, 0), v = node_operand(g, node, graph_node_at(g, node)->operand_count - 1);
  u32 at = native_buffer(n, array);
  NRow to;
  if (at == UINT32_MAX || !native_row_part(n, node, array, &to)) return false;
  if (!n->buffers.data[at].written) return native_bail(n, "an array that is not the loop's own is updated");
  if (used_later(g, node, array) && !native_fill(n, array)) return false; /* as it was */
  if (!loops_put(n, &to, v, node)) return false;
  n->buffers.data[at].version = ++n->versions;
  *native_value(n, node_result(g, node, 0)) = (NValue){.stamp = n->stamp, .buffer = at + 1, .version = n->versions};
  return true;
}

/* A carried array that the trip computed: it goes where the loop has it. */
static bool moves(const Native *n, const NLoop *l, u32 i, const NValue *x) {
  if (!l->buffer[i] || x->buffer == l->buffer[i]) return false;
  return x->buffer ? n->buffers.data[x->buffer - 1].temp : x->row != NULL;
}

bool native_rows_carry(Native *n, BlockId b) {
  const NLoop *l = n->loop;
  const GraphBlock *block = &n->g->blocks.data[b];
  u32 moved = 0;
  for (u32 i = 0; i < block->term_count && l; i++) {
    const NValue *x = native_value(n, block_result(n->g, b, i));
    moved += moves(n, l, i, x);
  }
  for (u32 i = 0; i < block->term_count && moved; i++) {
    ValueId v = block_result(n->g, b, i);
    const NValue *x = native_value(n, v);
    /* others may read what it replaces */
    if (moves(n, l, i, x) && moved > 1 && !x->buffer && !native_fill(n, v)) return false;
  }
  for (u32 i = 0; i < block->term_count && moved; i++) {
    ValueId v = block_result(n->g, b, i);
    const NValue *x = native_value(n, v);
    if (!moves(n, l, i, x)) continue;
    u32 at = l->buffer[i] - 1;
    NRow to = whole_temp(n, v, at);
    if (!dims_same(n->c, to.rank, to.dims, n->buffers.data[at].type.dims))
      return native_bail(n, "an array of another size in each trip");
    if (!loops_put(n, &to, v, 0)) return false;
    n->buffers.data[at].version = ++n->versions;
    *native_value(n, v) = (NValue){.stamp = n->stamp, .buffer = at + 1, .version = n->versions};
  }
  return true;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

/* An empty `min` or `argmax` is an error, which the eager code raises. */
static bool not_empty(Native *n, u32 op, const ArrayType *t, u32 mask) {
  if (op_info(op)->check != CHECK_empty) return true;
  for (u32 d = 0; d < t->rank; d++) {
    if (!(mask >> d & 1) || size_prove(&n->g->sizes, REL_lt, 0, t->dims[d]) == TRUTH_always) continue;
    u32 *values, count,
        exit = n->now != NO_EXIT && native_exit_ready(n, n->now) ? native_exit(n, n->now, &values, &count) : 0;
    if (!exit) return native_bail(n, "a reduction of nothing");
    loop_check(n->fn, LOOP_CHECK_INDEX, exit, loop_const_i(n->fn, LT_I64, 0), native_dim_ir(n, t->dims[d]),
               count, values);
  }
  return !n->why;
}

/* argmin, argmax along one axis: NaN wins, the first of ties. */
static u32 loops_extreme(Maker *m, u32 op, ValueId x, u32 trips, u32 axis, u32 *ix) {
  LoopFn *fn = m->fn;
  LoopType own = native_type(m->n, x), type = own == LT_I1 ? LT_U8 : own;
  u32 state[2] = {loop_const_i(fn, type, 0), loop_const_i(fn, LT_I64, -1)},
      head = loop_begin_for(fn, NULL, trips, 2, state);
  if (!head) return 0;
  ix[axis] = loop_index_of(head, 0);
  u32 best = loop_carry_of(fn, head, 0), number = loop_carry_of(fn, head, 1), v = loops_element(m, x, ix, 0);
  if (!v) return 0;
  v = element_convert(fn, v, own, type);
  u32 take = loop_emit(fn, op_info(op)->folds == FOLD_argmin ? LOOP_LT : LOOP_GT, LT_VOID, v, best, 0);
  if (loop_is_float(type)) {
    u32 nan = loop_emit(fn, LOOP_NE, LT_VOID, v, v, 0), held = loop_emit(fn, LOOP_EQ, LT_VOID, best, best, 0);
    take = loop_emit(fn, LOOP_OR, LT_VOID, take, loop_emit(fn, LOOP_AND, LT_VOID, nan, held, 0), 0);
  }
  take = loop_emit(fn, LOOP_OR, LT_VOID, take,
                   loop_emit(fn, LOOP_LT, LT_VOID, number, loop_const_i(fn, LT_I64, 0), 0), 0);
  u32 next[2] = {loop_emit(fn, LOOP_SELECT, LT_VOID, take, v, best),
                 loop_emit(fn, LOOP_SELECT, LT_VOID, take, ix[axis], number)};
  loop_next(fn, 2, next);
  loop_end(fn);
  return fn->failed ? 0 : loop_result_of(fn, head, 1);
}

static u32 combine(Maker *m, u32 op, ValueId x, LoopType acc, bool lanes, u32 axes, const u32 *trips,
                   const u32 *axis, u32 *ix) {
  LoopFn *fn = m->fn;
  u32 head = loop_begin_reduce(fn, element_reduce(op, acc), acc, lanes ? LOOP_ORDER_LANES : LOOP_ORDER_ROWS,
                               axes, trips);
  if (!head) return 0;
  for (u32 i = 0; i < axes; i++) ix[axis[i]] = loop_index_of(head, i);
  u32 v = loops_element(m, x, ix, 0);
  LoopType own = native_type(m->n, x);
  if (!v) return 0;
  if (op_folds_truth(op)) v = element_convert(fn, v, own, LT_I1), own = LT_I1;
  v = element_convert(fn, v, own, acc);
  loop_yield(fn, 1, &v);
  loop_end(fn);
  return fn->failed ? 0 : loop_result_of(fn, head, 0);
}

bool native_reduce(Native *n, NodeId node) {
  Graph *g = n->g;
  u32 op = graph_node_at(g, node)->op, mask, ix[TYPE_MAX_RANK] = {0}, axis[TYPE_MAX_RANK], own[TYPE_MAX_RANK], axes = 0;
  GraphArg args[OP_MAX_PARAMS];
  node_args(g, node, args);
  ValueId v = node_result(g, node, 0), x = args[0].value;
  bool extremes = op_folds_place(op);
  if (op_info(op)->lower != LOWER_reduce) return native_bail(n, "a reduction that does not lower");
  const ArrayType t = args[0].kind == ARG_value ? *value_type(g, x) : (ArrayType){0}, rt = *value_type(g, v);
  if (!t.rank || !arg_axes(&args[op_param(op, "axis")], t.rank, &mask) || !mask ||
      arg_bool(&args[op_param(op, "keepdims")], false))
    return native_bail(n, "axes known only at run time");
  const NRow *r = native_row(n, x);
  if (!r || !few(n, r->rank, r->bound) || !not_empty(n, op, &t, mask)) return false;
  NRow to = {.rank = rt.rank};
  for (u32 d = 0, k = 0; d < t.rank; d++)
    if (mask >> d & 1) axis[axes++] = d;
    else to.bound[k++] = r->bound[d];
  if (extremes && axes > 1) return native_bail(n, "a reduction that does not lower");
  u32 at = native_temp(n, v, &to), trips = loop_const_i(n->fn, LT_I64, 1), kept[TYPE_MAX_RANK];
  Maker *m = at == UINT32_MAX ? NULL : maker(n);
  if (!m) return false;
  bool single = rt.rank == 0;
  if (single) loop_begin_par(m->fn, NULL, loop_const_i(m->fn, LT_I64, 1), 1);
  else if (!open_nest(m, rt.rank, rt.dims, kept, &trips)) return false;
  for (u32 d = 0, k = 0; d < t.rank; d++)
    if (!(mask >> d & 1)) ix[d] = kept[k++];
  for (u32 i = 0; i < axes; i++) own[i] = loops_word(m, native_dim_ir(n, t.dims[axis[i]]));
  u32 result = n->why ? 0 : extremes ? loops_extreme(m, op, x, own[0], axis[0], ix)
                      : combine(m, op, x, native_type(n, v), mask >> (t.rank - 1) & 1, axes, own, axis, ix);
  if (!result) return native_bail(n, m->fn->failed ? m->fn->failed : "a reduction that does not lower");
  NRow whole = whole_temp(n, v, at);
  LoopTerm terms[TYPE_MAX_RANK + 1];
  i64 constant = 0;
  u32 count = single ? 0 : access_terms(m, &whole, kept, terms, &constant);
  if (count == UINT32_MAX) return false;
  loop_store(m->fn, memory(m, at, LOOP_OUT), constant, terms, count, result);
  for (u32 d = 0; d < rt.rank || (single && d == 0); d++) loop_end(m->fn);
  if (!loops_call(m, trips)) return false;
  *native_value(n, v) = (NValue){.stamp = n->stamp};
  if (single) {
    native_value(n, v)->ir = loop_load(n->fn, n->buffers.data[at].ir, 0, NULL, 0);
  } else {
    native_value(n, v)->buffer = at + 1;
    native_value(n, v)->version = n->buffers.data[at].version;
  }
  return true;
}
