/* kernel_emit.c — placed tasks written out as a loop function, scope by scope (see kernel.h). */
#include "jit/lower/kernel.h"
#include "lang/mechanisms.h"

#include <stdio.h>
#include <string.h>

/* Two parameters that are always equal cost a parameter; to prove that they are costs more. */
static bool told_same(SizePool *p, Dim a, Dim b) { return size_resolve(p, a) == size_resolve(p, b); }

static u32 param_of(Kern *k, KernelArg a, LoopType type, LoopDir dir) {
  Kernel *out = k->out;
  if (k->failed) return 0;
  for (u32 i = 0; i < out->args.count; i++) {
    const KernelArg *b = &out->args.data[i];
    if (b->kind != a.kind || b->value != a.value) continue;
    if (b->dim == a.dim || (a.kind == KA_dim && told_same(&k->c->g->sizes, a.dim, b->dim))) return k->params.data[i];
  }
  a.same = true;
  char name[32];
  static const char letters[] = "snxyr";
  if (a.kind == KA_dim) snprintf(name, sizeof name, "n%u", out->args.count);
  else snprintf(name, sizeof name, "%c%u", letters[a.kind], a.value);
  u32 p = dir ? loop_param_buffer(out->fn, name, type, dir) : loop_param(out->fn, name, type);
  if (!vec_push(k->c->alloc, &out->args, a) || !vec_push(k->c->alloc, &k->params, p)) k->failed = true;
  return p;
}

static u32 dim_ir(Kern *k, Dim d) {
  i64 v;
  if (dim_is_const(k->c, d, &v)) return loop_const_i(k->out->fn, LT_I64, v);
  return param_of(k, (KernelArg){.kind = KA_dim, .dim = d}, LT_I64, 0);
}

static u32 var_ir(const Kern *k, u32 var) {
  const KVar *v = &k->vars.data[var];
  return v->scope == UINT32_MAX ? k->tasks.data[v->task].ir : v->ir;
}

/* The terms of an access. False: too many, which never happens for a form that was interned. */
static u32 terms_of(Kern *k, u32 aff, i64 *constant, LoopTerm *out, u32 cap) {
  const Aff *a = aff_at(&k->ax, aff);
  u32 n = 0;
  *constant = 0;
  if (!dim_is_const(k->c, a->c, constant)) out[n++] = (LoopTerm){.coef = 1, .var = dim_ir(k, a->c)};
  for (u32 i = 0; i < a->count && n < cap; i++) {
    AffTerm t = aff_terms(&k->ax, aff)[i];
    LoopTerm *to = &out[n++];
    *to = (LoopTerm){.coef = 1, .var = var_ir(k, t.var)};
    if (!dim_is_const(k->c, t.factor, &to->coef)) to->stride[0] = dim_ir(k, t.factor);
    const LoopNode *v = loop_node(k->out->fn, to->var);
    if (v->op != LOOP_CONST || (to->stride[0] && v->imm)) continue; /* known in a reduction without a loop */
    *constant += to->coef * (i64)v->imm;
    n--;
  }
  return n;
}

enum { MAX_TERMS = 2 * TYPE_MAX_RANK + 2, ROW_LEAST = 64 };

static u32 index_ir(Kern *k, u32 aff) {
  LoopFn *fn = k->out->fn;
  const Aff *a = aff_at(&k->ax, aff);
  u32 sum = 0;
  for (u32 i = 0; i < a->count; i++) {
    AffTerm t = aff_terms(&k->ax, aff)[i];
    u32 v = var_ir(k, t.var);
    if (t.factor != 1) v = loop_emit(fn, LOOP_MUL, LT_VOID, v, dim_ir(k, t.factor), 0);
    sum = sum ? loop_emit(fn, LOOP_ADD, LT_VOID, sum, v, 0) : v;
  }
  if (!sum) return dim_ir(k, a->c);
  return a->c == 0 ? sum : loop_emit(fn, LOOP_ADD, LT_VOID, sum, dim_ir(k, a->c), 0);
}

static void emit_scope(Kern *k, u32 scope);

static void note_by_row(Kern *k, NodeId n) {
  if (value_info(k->c, node_result(k->g, n, 0))->where == AT_USE && !vec_push(k->c->alloc, &k->out->by_row, n))
    k->failed = true;
}

/* ---- reductions of a few elements ---------------------------------------------------------------------------- */

enum { FEW_ELEMENTS = 32, FEW_APART = 4, FEW_TASKS = 128 };

/* Is each element of the reduction read by the loop around it, one trip beside the other: vectors of trips then. */
static bool reads_beside(Kern *k, u32 scope) {
  u32 around = k->scopes.data[k->main_scopes - 1].var;
  for (u32 t = k->scopes.data[scope].first; t; t = k->tasks.data[t].next) {
    const Task *x = &k->tasks.data[t];
    const Aff *a = x->kind == TASK_load ? aff_at(&k->ax, x->aff) : NULL;
    for (u32 i = 0; a && i < a->count; i++) {
      AffTerm term = aff_terms(&k->ax, x->aff)[i];
      if (k->vars.data[term.var].scope == UINT32_MAX || (term.var == around && term.factor != 1)) return false;
    }
  }
  return true;
}

/* Elements of a reduction in the innermost loop of a kernel that is done without a loop of its own: a few, of a known
 * number. 0: it has one. */
static u32 few_elements(Kern *k, const Task *t) {
  u32 count = 1, tasks = 0;
  i64 around;
  if (dim_is_const(k->c, k->scopes.data[k->main_scopes - 1].trips, &around) && around == 1) return 0;
  if (k->c->device || k->checked || k->split.part || k->u->kind == UNIT_scan || t->scope + 1 != k->main_scopes ||
      t->scope == 0 || !MECHANISM(k->c->vm, few_written_out))
    return 0;
  bool beside = true;
  for (u32 i = 0; i < t->inner_count; i++) {
    i64 trips;
    if (!dim_is_const(k->c, k->scopes.data[t->inner + i].trips, &trips) || trips < 1 || trips > FEW_ELEMENTS) return 0;
    count *= (u32)trips;
    if (count > FEW_ELEMENTS) return 0;
    beside = beside && reads_beside(k, t->inner + i);
    for (u32 x = k->scopes.data[t->inner + i].first; x; x = k->tasks.data[x].next) {
      if (k->tasks.data[x].kind == TASK_reduce || k->tasks.data[x].kind == TASK_extreme) return 0;
      tasks++;
    }
  }
  return count * tasks > FEW_TASKS || (!beside && count > FEW_APART) ? 0 : count;
}

/* In the order of ir.md section 10: by halves of as many lanes as there are, of which those behind the last element
 * hold what changes nothing; or one after the other. */
static u32 emit_few(Kern *k, const Task *t, u32 count, LoopReduce reduce, LoopOrder order) {
  LoopFn *fn = k->out->fn;
  LoopOp op = loop_reduce_op(reduce);
  u32 v[FEW_ELEMENTS], half = loop_lanes((LoopType)t->type) / 2;
  for (u32 e = 0; e < count; e++) {
    u32 rest = e;
    for (u32 i = t->inner_count; i-- > 0;) {
      i64 trips = 1;
      (void)dim_is_const(k->c, k->scopes.data[t->inner + i].trips, &trips);
      k->vars.data[k->scopes.data[t->inner + i].var].ir = loop_const_i(fn, LT_I64, rest % (u32)trips);
      rest /= (u32)trips;
    }
    for (u32 i = 0; i < t->inner_count; i++) emit_scope(k, t->inner + i);
    v[e] = k->tasks.data[t->dep[0]].ir;
    if (e && order == LOOP_ORDER_ROWS) v[0] = loop_emit(fn, op, LT_VOID, v[0], v[e], 0);
  }
  for (; half && order != LOOP_ORDER_ROWS; half /= 2)
    for (u32 l = 0; l < half && l + half < count; l++) v[l] = loop_emit(fn, op, LT_VOID, v[l], v[l + half], 0);
  k->c->vm->counters.at[STAT_written_out]++;
  return v[0];
}

static u32 emit_reduce(Kern *k, u32 id) {
  const Task t = k->tasks.data[id];
  LoopFn *fn = k->out->fn;
  NodeId n = t.value;
  u32 trips[TYPE_MAX_RANK], mask = 0;
  note_by_row(k, n);
  if (t.inner_count == 0) return k->tasks.data[t.dep[0]].ir;
  GraphArg args[OP_MAX_PARAMS];
  node_args(k->g, n, args);
  u32 op = graph_node_at(k->g, n)->op, rank = value_type(k->g, node_operand(k->g, n, 0))->rank;
  (void)arg_axes(&args[op_param(op, "axis")], rank, &mask);
  for (u32 i = 0; i < t.inner_count; i++) trips[i] = dim_ir(k, k->scopes.data[t.inner + i].trips);
  LoopOrder order = mask >> (rank - 1) & 1 ? LOOP_ORDER_LANES : LOOP_ORDER_ROWS;
  u32 few = few_elements(k, &t);
  if (few) return emit_few(k, &t, few, element_reduce(op, (LoopType)t.type), order);
  u32 head = loop_begin_reduce(fn, element_reduce(op, (LoopType)t.type), (LoopType)t.type, order, t.inner_count, trips);
  if (!head) return 0;
  for (u32 i = 0; i < t.inner_count; i++) k->vars.data[k->scopes.data[t.inner + i].var].ir = loop_index_of(head, i);
  for (u32 i = 0; i < t.inner_count; i++) emit_scope(k, t.inner + i);
  loop_yield(fn, 1, &k->tasks.data[t.dep[0]].ir);
  loop_end(fn);
  return fn->failed ? 0 : loop_result_of(fn, head, 0);
}

/* One of two passes over a long row in memory: the best, then the first number that has it. */
static u32 emit_pass(Kern *k, const Task *t, LoopReduce reduce, LoopType type, u32 best) {
  LoopFn *fn = k->out->fn;
  u32 trips = dim_ir(k, k->scopes.data[t->inner].trips),
      head = loop_begin_reduce(fn, reduce, best ? LT_I64 : type, LOOP_ORDER_LANES, 1, &trips);
  if (!head) return 0;
  k->vars.data[k->scopes.data[t->inner].var].ir = loop_index_of(head, 0);
  emit_scope(k, t->inner);
  u32 v = k->tasks.data[t->dep[0]].ir, out = v;
  if (best) {
    u32 has = loop_emit(fn, LOOP_EQ, LT_VOID, v, best, 0);
    /* none is equal to NaN */
    if (loop_is_float(type)) has = loop_emit(fn, LOOP_OR, LT_VOID, has, loop_emit(fn, LOOP_NE, LT_VOID, v, v, 0), 0);
    out = loop_emit(fn, LOOP_SELECT, LT_VOID, has, k->tasks.data[t->dep[1]].ir, loop_const_i(fn, LT_I64, INT64_MAX));
  }
  loop_yield(fn, 1, &out);
  loop_end(fn);
  return fn->failed ? 0 : loop_result_of(fn, head, 0);
}

/* Two reductions are vectors where a loop that carries the best and its number is not; elements are read twice. */
static bool takes_passes(const Kern *k, const Task *t, LoopType type) {
  const Task *v = &k->tasks.data[t->dep[0]];
  i64 n;
  bool wide = type == LT_F64 || type == LT_F32 || type == LT_I64 || type == LT_I32;
  return t->inner_count == 1 && wide && v->kind == TASK_load &&
         size_hint(k->sizes, k->scopes.data[t->inner].trips, &n) && n >= ROW_LEAST;
}

/* argmin, argmax: (best so far, its number) through the loops of the reduced axes, which are not empty: begun with
 * the identity and 0, since only the first element can be the answer when none is better. NaN wins, the first of
 * ties. */
static u32 emit_extreme(Kern *k, u32 id) {
  const Task t = k->tasks.data[id];
  LoopFn *fn = k->out->fn;
  note_by_row(k, t.value);
  if (t.inner_count == 0) return loop_const_i(fn, LT_I64, 0);
  LoopType type = (LoopType)k->tasks.data[t.dep[0]].type;
  const OpInfo *info = op_info(graph_node_at(k->g, t.value)->op);
  LoopReduce reduce = info->folds == FOLD_argmin ? LOOP_REDUCE_MIN : LOOP_REDUCE_MAX;
  if (takes_passes(k, &t, type)) {
    u32 best = emit_pass(k, &t, reduce, type, 0);
    return best ? emit_pass(k, &t, LOOP_REDUCE_MIN, type, best) : 0;
  }
  u32 heads[TYPE_MAX_RANK],
      state[2] = {loop_const(fn, type, loop_reduce_identity(reduce, type)), loop_const_i(fn, LT_I64, 0)};
  for (u32 i = 0; i < t.inner_count; i++) {
    u32 scope = t.inner + i;
    heads[i] = loop_begin_for(fn, NULL, dim_ir(k, k->scopes.data[scope].trips), 2, state);
    if (!heads[i]) return 0;
    k->vars.data[k->scopes.data[scope].var].ir = loop_index_of(heads[i], 0);
    state[0] = loop_carry_of(fn, heads[i], 0);
    state[1] = loop_carry_of(fn, heads[i], 1);
    emit_scope(k, scope);
  }
  u32 v = k->tasks.data[t.dep[0]].ir, number = k->tasks.data[t.dep[1]].ir;
  LoopOp before = reduce == LOOP_REDUCE_MIN ? LOOP_LT : LOOP_GT;
  u32 take = loop_emit(fn, before, LT_VOID, v, state[0], 0);
  if (loop_is_float(type)) {
    u32 nan = loop_emit(fn, LOOP_NE, LT_VOID, v, v, 0), held = loop_emit(fn, LOOP_EQ, LT_VOID, state[0], state[0], 0);
    take = loop_emit(fn, LOOP_OR, LT_VOID, take, loop_emit(fn, LOOP_AND, LT_VOID, nan, held, 0), 0);
  }
  u32 next[2] = {loop_emit(fn, LOOP_SELECT, LT_VOID, take, v, state[0]),
                 loop_emit(fn, LOOP_SELECT, LT_VOID, take, number, state[1])};
  for (u32 i = t.inner_count; i-- > 0;) {
    loop_next(fn, 2, next);
    loop_end(fn);
    if (fn->failed) return 0;
    next[0] = loop_result_of(fn, heads[i], 0);
    next[1] = loop_result_of(fn, heads[i], 1);
  }
  return next[1];
}

static void emit_stores(Kern *k, u32 until);

static void emit_check(Kern *k, const Task *t) {
  const GraphNode *node = graph_node_at(k->g, t->value);
  u32 number = k->out->checks.count;
  emit_stores(k, (u32)t->imm - 1);
  if (!vec_push(k->c->alloc, &k->out->checks, (KernelCheck){t->value})) k->failed = true;
  const Task *a = &k->tasks.data[t->dep[0]];
  u32 b = t->deps > 1 ? k->tasks.data[t->dep[1]].ir : 0, dtype = DT_NONE;
  if (node->op == CHECK_cast_range && node->operand_count > 1)
    dtype = value_type(k->g, node_operand(k->g, t->value, 1))->dtype;
  if (!element_check(k->out->fn, (CheckKind)node->op, (LoopType)a->type, dtype, a->ir, b, number, 0, NULL))
    k->why = "an unknown check";
}

/* Does the load read the element that the trip computes, or a part of it? */
static bool is_own_element(Kern *k, const Task *t) {
  if (!dtype_is_pair(value_type(k->g, t->value)->dtype) || k->own == UINT32_MAX) return t->aff == k->own;
  return t->aff == kern_place_of_part(k, k->own, PART_RE) || t->aff == kern_place_of_part(k, k->own, PART_IM);
}

static void emit_task(Kern *k, u32 id) {
  LoopFn *fn = k->out->fn;
  Task t = k->tasks.data[id];
  u32 x[4] = {0}, ir = 0;
  for (u32 i = 0; i < t.deps; i++) x[i] = t.dep[i] ? k->tasks.data[t.dep[i]].ir : 0;
  switch ((TaskKind)t.kind) {
    case TASK_const: return;
    case TASK_word: ir = loop_const(fn, (LoopType)t.type, t.imm); break;
    case TASK_dim: ir = dim_ir(k, t.dim); break;
    case TASK_number: ir = param_of(k, (KernelArg){.kind = KA_number, .value = t.value}, (LoopType)t.type, 0); break;
    case TASK_load: {
      LoopTerm terms[MAX_TERMS];
      i64 constant;
      u32 buffer = param_of(k, (KernelArg){.kind = KA_in, .value = t.value},
                            loop_memory_of_dtype(dtype_real_of(value_type(k->g, t.value)->dtype)), LOOP_IN);
      if (aff_at(&k->ax, t.aff)->count + 1 > MAX_TERMS) {
        k->why = "an index of too many terms";
        return;
      }
      if (!is_own_element(k, &t))
        for (u32 i = 0; i < k->out->args.count; i++)
          if (k->out->args.data[i].kind == KA_in && k->out->args.data[i].value == t.value)
            k->out->args.data[i].same = false;
      u32 n = terms_of(k, t.aff, &constant, terms, MAX_TERMS);
      ir = loop_load(fn, buffer, constant, terms, n);
      break;
    }
    case TASK_index: ir = index_ir(k, t.aff); break;
    case TASK_convert: ir = element_convert(fn, x[0], (LoopType)k->tasks.data[t.dep[0]].type, (LoopType)t.type); break;
    case TASK_op: ir = loop_emit(fn, (LoopOp)t.op, (LoopType)t.type, x[0], x[1], x[2]); break;
    case TASK_wrap: ir = element_wrap_index(fn, x[0], x[1]); break;
    case TASK_element:
      ir = element_emit(fn, graph_node_at(k->g, t.value)->op, (LoopType)t.from,
                        value_type(k->g, node_result(k->g, t.value, 0))->dtype, x);
      break;
    case TASK_reduce: ir = emit_reduce(k, id); break;
    case TASK_extreme: ir = emit_extreme(k, id); break;
    case TASK_check: emit_check(k, &t); return;
  }
  k->tasks.data[id].ir = ir;
}

enum { LEVELS_MOST = 64 };

static bool is_reduction(const Task *t) { return t->kind == TASK_reduce || t->kind == TASK_extreme; }

static void emit_tasks(Kern *k, u32 scope, u32 level, bool reductions) {
  for (u32 t = k->scopes.data[scope].first; t && !k->failed && !k->why && !k->out->fn->failed;
       t = k->tasks.data[t].next)
    if (level == UINT32_MAX || (k->tasks.data[t].level == level && is_reduction(&k->tasks.data[t]) == reductions))
      emit_task(k, t);
}

/* Level by level, so that reductions that do not need each other stand next to each other: one read serves them all. */
static void emit_scope(Kern *k, u32 scope) {
  u32 levels = 0;
  for (u32 t = k->scopes.data[scope].first; t; t = k->tasks.data[t].next)
    if (k->tasks.data[t].level > levels) levels = k->tasks.data[t].level;
  if (k->checked || levels > LEVELS_MOST) {
    emit_tasks(k, scope, UINT32_MAX, false);
    return;
  }
  for (u32 level = 0; level <= levels; level++) {
    emit_tasks(k, scope, level, true);
    emit_tasks(k, scope, level, false);
  }
}

static void emit_store(Kern *k, ValueId v, u32 ix, u32 part, u32 value) {
  const ArrayType t = *value_type(k->g, v);
  LoopTerm terms[MAX_TERMS];
  i64 constant = 0;
  u32 n = 0;
  KernelArg arg = {.kind = t.rank ? KA_out : KA_out_number, .value = v};
  u32 buffer = param_of(k, arg, loop_memory_of_dtype(dtype_real_of(t.dtype)), LOOP_OUT);
  if (t.rank) {
    Dim strides[TYPE_MAX_RANK];
    dims_strides(k->c, t.rank, t.dims, strides);
    u32 aff = ix_at(&k->ax, ix)->linear ? ix_item(&k->ax, ix, 0) : ix_offset(&k->ax, ix, strides);
    if (part) aff = kern_place_of_part(k, aff, part);
    if (k->ax.failed || k->ax.too_big || aff_at(&k->ax, aff)->count + 1 > MAX_TERMS) {
      k->why = "an index of too many terms";
      return;
    }
    n = terms_of(k, aff, &constant, terms, MAX_TERMS);
  }
  loop_store(k->out->fn, buffer, constant, terms, n, value);
}

/* Stores of the roots before number `until` that are not stored yet. */
static void emit_stores(Kern *k, u32 until) {
  for (; k->stored < until; k->stored++) {
    NodeId n = k->u->nodes.data[k->stored];
    if (graph_node_at(k->g, n)->kind == NODE_check) continue;
    ValueId v = node_result(k->g, n, 0);
    if (!value_info(k->c, v)->wanted) continue;
    bool pair = dtype_is_pair(value_type(k->g, v)->dtype);
    u32 ix = k->store[k->stored];
    emit_store(k, v, ix, pair ? PART_RE : 0, k->tasks.data[k->roots[k->stored]].ir);
    if (pair) emit_store(k, v, ix, PART_IM, k->tasks.data[k->roots[k->u->nodes.count + k->stored]].ir);
  }
}

/* The value before the first element: what the operation leaves as it is. */
static u32 scan_identity(Kern *k, LoopReduce op, LoopType t) {
  LoopFn *fn = k->out->fn;
  return op == LOOP_REDUCE_ADD ? loop_const_i(fn, t, 0) : loop_const(fn, t, loop_reduce_empty(op, t));
}

static void emit_scan(Kern *k, u32 root) {
  LoopFn *fn = k->out->fn;
  NodeId n = k->u->node;
  ValueId v = node_result(k->g, n, 0);
  LoopType t = loop_type_of_dtype(value_type(k->g, v)->dtype);
  LoopReduce op = element_reduce(graph_node_at(k->g, n)->op, t);
  u32 scope = k->main_scopes, trips = dim_ir(k, k->scopes.data[scope].trips);
  if (k->u->initial) emit_store(k, v, k->scan_last, 0, scan_identity(k, op, t));
  u32 head = loop_begin_scan(fn, op, t, 1, &trips);
  if (!head) return;
  k->vars.data[k->scopes.data[scope].var].ir = loop_index_of(head, 0);
  emit_scope(k, scope);
  u32 sum = loop_emit(fn, LOOP_PREFIX, t, k->tasks.data[root].ir, 0, 0);
  emit_store(k, v, k->store[0], 0, sum);
  loop_end(fn);
}

static u64 hinted(const Kern *k, u32 scope) {
  i64 n;
  return size_hint(k->sizes, k->scopes.data[scope].trips, &n) && n > 0 ? (u64)n : 16;
}

/* Elements that one trip of the outermost loop touches, by the hints of sizes. */
static u64 work_of(Kern *k) {
  u64 work = 1, more = 0;
  for (u32 s = 2; s < k->main_scopes; s++) work = work > UINT32_MAX ? work : work * hinted(k, s);
  for (u32 s = k->main_scopes; s < k->scopes.count; s++) {
    u64 m = hinted(k, s);
    for (u32 up = k->scopes.data[s].parent; up >= k->main_scopes && m < UINT32_MAX; up = k->scopes.data[up].parent)
      m *= hinted(k, up);
    more += m;
  }
  return more ? work < UINT32_MAX ? work * more : more : work;
}

/* The parts of the innermost loop, one behind the other. */
static void emit_parts(Kern *k) {
  u32 *store = k->store;
  for (u32 part = 0; part < SPLIT_PARTS; part++) {
    u32 scope = k->split.scope + part,
        head = loop_begin_for(k->out->fn, NULL, dim_ir(k, k->scopes.data[scope].trips), 0, NULL);
    if (!head) break;
    k->vars.data[k->scopes.data[scope].var].ir = loop_index_of(head, 0);
    k->own = k->split.own[part];
    k->store = k->split.store[part];
    k->roots = k->split.roots[part];
    k->stored = 0;
    emit_scope(k, scope);
    emit_stores(k, k->u->nodes.count);
    loop_end(k->out->fn);
  }
  k->store = store;
}

bool kern_emit(Kern *k, const u32 *roots) {
  Compiler *c = k->c;
  Kernel *out = k->out;
  char name[32];
  snprintf(name, sizeof name, "k%u", ++c->names);
  out->fn = loop_fn_new(&c->code->module, LOOP_KERNEL, name);
  if (!out->fn) {
    k->failed = true;
    return false;
  }
  out->trips = k->scopes.data[1].trips;
  out->grain = k->main_scopes == 2 && k->scopes.count == 2 ? 2048 : 1;
  out->work_per_trip = work_of(k);
  LoopFn *fn = out->fn;
  k->roots = roots;
  k->stored = 0;
  emit_scope(k, 0);
  for (u32 s = 1; s < k->main_scopes; s++) {
    u32 trips = dim_ir(k, k->scopes.data[s].trips);
    u32 head = s == 1 ? loop_begin_par(fn, NULL, trips, (u64)out->grain) : loop_begin_for(fn, NULL, trips, 0, NULL);
    if (!head) break;
    k->vars.data[k->scopes.data[s].var].ir = loop_index_of(head, 0);
    emit_scope(k, s);
  }
  if (k->split.part) {
    emit_parts(k);
  } else if (k->u->kind == UNIT_scan) {
    emit_scan(k, roots[0]);
  } else if (k->u->kind == UNIT_join) {
    for (u32 i = 0; i < k->parts; i++)
      emit_store(k, node_result(k->g, k->u->node, 0), k->store[i], 0, k->tasks.data[roots[i]].ir);
  } else {
    emit_stores(k, k->u->nodes.count);
  }
  for (u32 s = 1; s < k->main_scopes; s++) loop_end(fn);
  if (k->failed || k->why) return false;
  Buf why;
  buf_init(&why, c->alloc);
  bool ok = loop_fn_finish(fn, &why) == WEFT_OK && loops_verify(fn, &why) == WEFT_OK;
  if (!ok) k->why = why.len ? arena_copy(&c->arena, why.data, why.len) : "a malformed loop function";
  buf_free(&why);
  return ok;
}
