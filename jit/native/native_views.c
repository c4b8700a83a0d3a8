/* native_views.c — operations that only move elements, on arrays that are split into numbers (native_small.c), and
 * elements of arrays that are not. Which element goes where is asked of the eager code: it moves the elements'
 * numbers, once, while the function is made. */
#include "jit/native/native.h"

#include <string.h>

enum { PICK_MOST = 16 /* elements among which a number that is known only in the trip may choose */ };

/* ---- asking the eager code ------------------------------------------------------------------------------- */

typedef struct Ask {
  Native *n;
  NodeId node;
  u32 chosen; /* operands that are integers known only in the trip: taken as 0 */
} Ask;

/* Eager code has failed: what is not the program's own error is not forgotten lightly. */
static bool refused(Native *n) {
  bool own = vm_error_own(n->c->vm);
  vm_error_forget(n->c->vm);
  return own ? native_bail(n, "an operation that does not lower") : native_no_memory(n);
}

/* A number that is known while the function is made. */
static bool known_number(Native *n, ValueId v, Value *out) {
  const ArrayType *t = value_type(n->g, v);
  Dim d;
  i64 k;
  if (t->rank) return false;
  if (value_const(n->g, v, out)) return true;
  if (t->dtype != DT_i64 || !value_dim(n->g, v, &d) || !native_dim(n, d, &k)) return false;
  *out = value_weak_i64(k);
  return true;
}

static WeftStatus ask_size(void *ctx, Dim d, u32 position, i64 *out) {
  const Ask *a = ctx;
  (void)position;
  return native_dim(a->n, d, out) ? WEFT_OK : vm_error(a->n->c->vm, EK_unsupported, "a size that is not known");
}

static WeftStatus ask_operand(void *ctx, u32 number, Value *out) {
  Ask *a = ctx;
  ValueId v = node_operand(a->n->g, a->node, number);
  const ArrayType *t = value_type(a->n->g, v);
  if (known_number(a->n, v, out)) return WEFT_OK;
  if (t->rank || t->dtype != DT_i64) return vm_error(a->n->c->vm, EK_unsupported, "an index that is not known");
  a->chosen++;
  *out = value_weak_i64(0);
  return WEFT_OK;
}

/* An array of the shape of s that holds first, first + 1 …; a number for rank 0. */
static bool numbered(Native *n, const NSplit *s, i64 first, Value *out) {
  if (s->rank == 0) {
    *out = value_i64(first);
    return true;
  }
  if (array_new(n->c->vm, DT_i64, s->rank, s->dims, out) != WEFT_OK) {
    *out = value_hole();
    return refused(n);
  }
  for (u32 i = 0; i < s->count; i++) ((i64 *)out->array->data)[i] = first + i;
  return true;
}

static Value views_element(Value v, u32 i) {
  if (v.kind != V_ARRAY) return v;
  i64 at = 0, rest = i;
  for (u32 d = array_rank(v.array); d-- > 0;) {
    at += rest % array_dims(v.array)[d] * array_strides(v.array)[d];
    rest /= array_dims(v.array)[d];
  }
  return array_load(v.array, at);
}

static NSplit *shape_of(Native *n, Value v) {
  if (v.kind == V_NUM) return native_split_new(n, 0, NULL);
  if (v.kind != V_ARRAY || array_device(v.array) != DEV_CPU) return native_bail(n, "a result that is no array"), NULL;
  for (u32 d = 0; d < array_rank(v.array); d++)
    if (array_dims(v.array)[d] == 0) return native_bail(n, "an empty array"), NULL;
  return native_split_new(n, array_rank(v.array), array_dims(v.array));
}

/* ---- views, makers --------------------------------------------------------------------------------------------- */

enum { MOST_PARTS = 64 };

typedef struct Parts { /* what a moved element may come from: part i holds the numbers from first[i] on */
  const NSplit *at[MOST_PARTS];
  LoopType type[MOST_PARTS];
  i64 first[MOST_PARTS];
  u32 count;
  i64 next;
} Parts;

static bool makes(u32 op) { return op_info(op)->lower == LOWER_make || op_fills(op); }

static bool add_part(Native *n, Parts *p, ValueId v, u32 to, Value *out) {
  if (p->count == MOST_PARTS || !element_weak_fits(n->c, v, to))
    return native_bail(n, "a join of many parts, or one that may fail");
  const NSplit *s = native_split(n, v);
  if (!s || !numbered(n, s, p->next, out)) return false;
  p->at[p->count] = s;
  p->type[p->count] = native_type(n, v);
  p->first[p->count++] = p->next;
  p->next += s->count;
  return true;
}

static bool argument(Native *n, NodeId node, Parts *p, const GraphArg *a, bool data, Value *out) {
  u32 to = value_type(n->g, node_result(n->g, node, 0))->dtype;
  *out = value_hole();
  if (a->kind == ARG_hole) return true;
  if (a->kind == ARG_attr) {
    Ask ask = {.n = n, .node = node};
    if (attr_value(&(AttrSource){n->c->vm, ask_size, ask_operand, &ask}, a->attr, out) == WEFT_OK) return true;
    *out = value_hole();
    return refused(n);
  }
  if (a->kind == ARG_value && data) {
    if (add_part(n, p, a->value, to, out)) return true;
    *out = value_hole();
    return false;
  }
  if (a->kind == ARG_value)
    return known_number(n, a->value, out) || native_bail(n, "an operation whose form is known only in the trip");
  if (!list_new(n->c->vm, a->count, out)) {
    *out = value_hole();
    return refused(n);
  }
  bool ok = true;
  for (u32 i = 0; i < a->count && ok; i++) {
    Value part;
    ok = add_part(n, p, a->values[i], to, &part);
    if (ok && !list_push(n->c->vm, out, part)) ok = refused(n);
  }
  if (ok) return true;
  value_drop(n->c->vm, *out);
  *out = value_hole();
  return false;
}

/* The element of the parts with this number; 0 stands for what the operation puts there itself: a zero. */
static u32 part_element(Native *n, const Parts *p, i64 number, LoopType to) {
  u32 i = p->count;
  if (number == 0)
    return loop_const_i(n->fn, LT_I64, 0) ? element_convert(n->fn, loop_const_i(n->fn, LT_I64, 0), LT_I64, to) : 0;
  while (i > 0 && p->first[i - 1] > number) i--;
  return i ? element_convert(n->fn, p->at[i - 1]->ir[number - p->first[i - 1]], p->type[i - 1], to) : 0;
}

static u32 views_constant(Native *n, Value v, u32 dtype) {
  if (v.dtype != dtype) v = num_convert_unchecked(v, dtype);
  return loop_const(n->fn, loop_type_of_dtype(dtype), v.bits);
}

bool native_small_view(Native *n, NodeId node) {
  Graph *g = n->g;
  Vm *vm = n->c->vm;
  u32 op = graph_node_at(g, node)->op, nparams = op_info(op)->nparams, made = 0;
  ValueId v = node_result(g, node, 0);
  u32 to = value_type(g, v)->dtype;
  GraphArg args[OP_MAX_PARAMS];
  Value values[OP_MAX_PARAMS], out;
  Parts parts = {.next = 1};
  node_args(g, node, args);
  u32 filled = makes(op) ? op_param_of(op, PARAM_stored) : UINT32_MAX;
  if (!vm->ops[op].eager) return native_bail(n, "an operation that does not lower");
  bool ok = true;
  for (; made < nparams && ok; made++) {
    bool number = made == filled && args[made].kind == ARG_value; /* the element of all, whatever it is */
    if (number) values[made] = value_i64(0);
    else
      ok = argument(n, node, &parts, &args[made], made == 0 && args[made].kind == ARG_value &&
                                                  (!makes(op) || value_type(g, args[0].value)->rank), &values[made]);
  }
  if (ok && vm->ops[op].eager(vm, values, &out) != WEFT_OK) ok = refused(n);
  for (u32 i = 0; i < made; i++) value_drop(vm, values[i]);
  if (!ok) return false;
  NSplit *s = shape_of(n, out);
  u32 fill = s && filled != UINT32_MAX && args[filled].kind == ARG_value ? native_number(n, args[filled].value) : 0;
  for (u32 i = 0; s && i < s->count; i++) {
    if (fill) s->ir[i] = element_convert(n->fn, fill, native_type(n, args[filled].value), loop_type_of_dtype(to));
    else
      s->ir[i] = makes(op) ? views_constant(n, views_element(out, i), to)
                           : part_element(n, &parts, views_element(out, i).i, loop_type_of_dtype(to));
  }
  value_drop(vm, out);
  return s && native_split_set(n, v, s);
}

/* ---- indices --------------------------------------------------------------------------------- */

typedef struct Choice { /* an axis along which a number of the trip chooses */
  u32 index, stride, size;
} Choice;

typedef struct Places {
  Value numbers; /* owned: for each element of the region its number in x, counted from 0 */
  Choice choice[2];
  u32 choices;
} Places;

static const GraphAttr *index_attr(const Graph *g, NodeId node) {
  for (u32 i = 0; i < graph_node_at(g, node)->attr_count; i++)
    if (node_attr(g, node, i)->kind == ATTR_index) return node_attr(g, node, i);
  return NULL;
}

static bool add_choices(Native *n, NodeId node, const NSplit *x, Places *p) {
  IndexMap m;
  const ArrayType t = *value_type(n->g, node_operand(n->g, node, 0));
  Value k;
  if (!index_map(n->g, node, &t, &m)) return native_bail(n, "an index with bounds known only at run time");
  u32 all = 1;
  for (u32 i = 0; i < m.count; i++) {
    const IndexAxis *a = &m.axes[i];
    if (a->kind != INDEX_int || a->part != PART_operand || known_number(n, a->operand, &k)) continue;
    u32 stride = 1;
    for (u32 d = a->axis + 1; d < x->rank; d++) stride *= (u32)x->dims[d];
    all *= (u32)x->dims[a->axis];
    if (p->choices == COUNT_OF(p->choice) || all > PICK_MOST)
      return native_bail(n, "an index that chooses among many elements");
    u32 size = loop_const_i(n->fn, LT_I64, x->dims[a->axis]);
    p->choice[p->choices++] = (Choice){native_index(n, a->operand, size), stride, (u32)x->dims[a->axis]};
  }
  return !n->why;
}

/* Which elements of x, that is split, the index of the node names. */
static bool places(Native *n, NodeId node, const NSplit *x, Places *p) {
  const GraphAttr *a = index_attr(n->g, node);
  Vm *vm = n->c->vm;
  u8 items[INDEX_MAX_ITEMS];
  Value regs[INDEX_MAX_REGS], base;
  Ask ask = {.n = n, .node = node};
  *p = (Places){.numbers = value_hole()};
  if (!a) return native_bail(n, "no index");
  if (attr_index(&(AttrSource){vm, ask_size, ask_operand, &ask}, a, items, regs) != WEFT_OK) return refused(n);
  if (!numbered(n, x, 0, &base)) return false;
  bool ok = vm_index(vm, base, items, a->count, regs, &p->numbers) == WEFT_OK || refused(n);
  if (!ok) p->numbers = value_hole();
  value_drop(vm, base);
  return ok && (!ask.chosen || add_choices(n, node, x, p));
}

static bool may_pick(Native *n) {
  return n->picks++ < n->picks_most || native_bail(n, "numbers that are chosen among too often");
}

static u32 pick(Native *n, const NSplit *x, const Places *p, u32 at, u32 level) {
  if (level == p->choices) return x->ir[at];
  const Choice *c = &p->choice[level];
  u32 v = pick(n, x, p, at + (c->size - 1) * c->stride, level + 1);
  for (u32 k = c->size - 1; v && k-- > 0;) {
    u32 here = loop_emit(n->fn, LOOP_EQ, LT_VOID, c->index, loop_const_i(n->fn, LT_I64, k), 0),
        other = pick(n, x, p, at + k * c->stride, level + 1);
    v = other && may_pick(n) ? loop_emit(n->fn, LOOP_SELECT, LT_VOID, here, other, v) : 0;
  }
  return v;
}

static bool index_split(Native *n, NodeId node, const NSplit *x) {
  Places p;
  bool ok = places(n, node, x, &p);
  NSplit *s = ok ? shape_of(n, p.numbers) : NULL;
  for (u32 i = 0; s && i < s->count; i++) s->ir[i] = pick(n, x, &p, (u32)views_element(p.numbers, i).i, 0);
  value_drop(n->c->vm, p.numbers);
  return s && native_split_set(n, node_result(n->g, node, 0), s);
}

/* ---- elements of arrays in memory ------------------------------------------------------------ */

typedef struct Spot {
  i64 constant;
  LoopTerm terms[2 * TYPE_MAX_RANK];
  u32 count;
} Spot;

typedef struct Patch { /* of a buffer: integers and slices */
  IndexMap map;
  Dim strides[TYPE_MAX_RANK];
  u32 index[TYPE_MAX_RANK]; /* by item: the integer's value */
} Patch;

static bool region_of(Native *n, NodeId node, Patch *r) {
  const ArrayType t = *value_type(n->g, node_operand(n->g, node, 0));
  if (!index_map(n->g, node, &t, &r->map)) return native_bail(n, "an index with bounds known only at run time");
  dims_strides(n->c, t.rank, t.dims, r->strides);
  for (u32 i = 0; i < r->map.count; i++) {
    const IndexAxis *a = &r->map.axes[i];
    r->index[i] = 0;
    if (a->kind == INDEX_array) return native_bail(n, "an index by an array");
    if (a->kind == INDEX_int && a->part == PART_operand)
      r->index[i] = native_index(n, a->operand, native_dim_ir(n, t.dims[a->axis]));
  }
  return !n->why;
}

static bool add_term(Native *n, Spot *s, i64 times, u32 var, Dim by) {
  i64 k;
  if (native_dim_known(n, by, &k)) {
    if (!var) s->constant += times * k;
    else s->terms[s->count++] = (LoopTerm){.coef = times * k, .var = var};
  } else if (times) {
    u32 size = native_dim_ir(n, by);
    s->terms[s->count++] = var ? (LoopTerm){.coef = times, .var = var, .stride = {size}}
                               : (LoopTerm){.coef = times, .var = size};
  }
  return !n->why;
}

/* Where the element of the region with these indices lies. */
static bool spot_of(Native *n, const Patch *r, const i64 *index, Spot *s) {
  *s = (Spot){0};
  for (u32 i = 0; i < r->map.count; i++) {
    const IndexAxis *a = &r->map.axes[i];
    Dim by = r->strides[a->axis];
    i64 at = 0;
    if (a->kind == INDEX_int && a->part == PART_operand) {
      if (!add_term(n, s, 1, r->index[i], by)) return false;
      continue;
    }
    if (!native_dim_known(n, a->at, &at)) { /* a window: its beginning is a number of the trip, or from outside */
      u32 var = native_dim_ir(n, a->at);
      at = 0;
      if (!var || !add_term(n, s, 1, var, by)) return false;
    }
    if (a->kind == INDEX_slice) at += index[a->result] * a->step;
    if (!add_term(n, s, at, 0, by)) return false;
  }
  return true;
}

static void indices_of(const NSplit *s, u32 at, i64 *index) {
  i64 rest = at;
  for (u32 d = s->rank; d-- > 0;) {
    index[d] = rest % s->dims[d];
    rest /= s->dims[d];
  }
}

static bool type_shape(Native *n, const ArrayType *t, NSplit **out) {
  i64 dims[TYPE_MAX_RANK];
  for (u32 d = 0; d < t->rank; d++)
    if (!native_dim(n, t->dims[d], &dims[d]) || dims[d] < 1) return native_bail(n, "a size that is not known");
  *out = native_split_new(n, t->rank, dims);
  return *out != NULL;
}

bool native_small_index(Native *n, NodeId node) {
  ValueId x = node_operand(n->g, node, 0), v = node_result(n->g, node, 0);
  if (native_value(n, x)->split) return index_split(n, node, native_value(n, x)->split);
  const ArrayType t = *value_type(n->g, v);
  u32 at = native_buffer(n, x);
  Patch r;
  NSplit *s;
  if (at == UINT32_MAX || !dtype_in_loops(t.dtype) || !type_shape(n, &t, &s) || !region_of(n, node, &r)) return false;
  for (u32 i = 0; i < s->count; i++) {
    i64 index[TYPE_MAX_RANK];
    Spot spot;
    indices_of(s, i, index);
    if (!spot_of(n, &r, index, &spot)) return false;
    s->ir[i] = loop_load(n->fn, n->buffers.data[at].ir, spot.constant, spot.terms, spot.count);
  }
  return native_split_set(n, v, s);
}

/* ---- updates --------------------------------------------------------------------------------- */

/* Does a shape spread over another? */
static bool goes_into(Native *n, const NSplit *x, const NSplit *to) {
  bool ok = x->rank <= to->rank;
  for (u32 d = 0; ok && d < x->rank; d++) {
    i64 mine = x->dims[x->rank - 1 - d], theirs = to->dims[to->rank - 1 - d];
    ok = mine == 1 || mine == theirs;
  }
  return ok || native_bail(n, "shapes that do not go together");
}

/* Element `at` of x, and those that a number of the trip may choose instead, take the value. */
static bool views_put(Native *n, NodeId node, NSplit *x, const Places *p, u32 at, u32 level, u32 chosen, u32 value) {
  if (level < p->choices) {
    const Choice *c = &p->choice[level];
    for (u32 k = 0; k < c->size; k++) {
      u32 here = loop_emit(n->fn, LOOP_EQ, LT_VOID, c->index, loop_const_i(n->fn, LT_I64, k), 0);
      if (chosen) here = loop_emit(n->fn, LOOP_AND, LT_VOID, chosen, here, 0);
      if (!views_put(n, node, x, p, at + k * c->stride, level + 1, here, value)) return false;
    }
    return true;
  }
  u32 v = native_stored(n, node, value_type(n->g, node_operand(n->g, node, 0)), x->ir[at], value);
  if (!v || (chosen && !may_pick(n))) return false;
  x->ir[at] = chosen ? loop_emit(n->fn, LOOP_SELECT, LT_VOID, chosen, v, x->ir[at]) : v;
  return true;
}

bool native_small_update(Native *n, NodeId node) {
  Graph *g = n->g;
  const NSplit *x = native_split(n, node_operand(g, node, 0));
  const NSplit *v = x ? native_split(n, node_operand(g, node, graph_node_at(g, node)->operand_count - 1)) : NULL;
  NSplit *s = v ? native_split_new(n, x->rank, x->dims) : NULL;
  if (!s) return false;
  if (x->count) memcpy(s->ir, x->ir, sizeof *s->ir * x->count);
  Places p;
  bool ok = places(n, node, x, &p);
  NSplit *region = ok ? shape_of(n, p.numbers) : NULL;
  ok = region && goes_into(n, v, region);
  for (u32 i = 0; ok && i < region->count; i++)
    ok = views_put(n, node, s, &p, (u32)views_element(p.numbers, i).i, 0, 0, v->ir[native_broadcast_at(v, region, i)]);
  value_drop(n->c->vm, p.numbers);
  return ok && native_split_set(n, node_result(g, node, 0), s);
}

bool native_small_store(Native *n, NodeId node) {
  Graph *g = n->g;
  const GraphNode *x = graph_node_at(g, node);
  const ArrayType t = *value_type(g, node_operand(g, node, 0));
  u32 op = x->op, at = native_buffer(n, node_operand(g, node, 0));
  ArrayType part = {.dtype = t.dtype};
  Patch r;
  NSplit *s;
  const NSplit *v;
  if (at == UINT32_MAX || !n->buffers.data[at].written)
    return native_bail(n, "an array that is not the loop's own is updated");
  if (!region_of(n, node, &r)) return false;
  for (u32 i = 0; i < r.map.count; i++) {
    const IndexAxis *a = &r.map.axes[i];
    if (a->kind == INDEX_int) continue;
    if (a->at != 0 || a->step != 1 || a->result != part.rank) return native_bail(n, "a slice is stored");
    part.dims[part.rank++] = t.dims[a->axis];
  }
  for (u32 i = 0; i < index_attr(g, node)->count; i++) {
    const IndexItem *it = &index_attr(g, node)->items[i];
    if (it->kind == INDEX_slice && (it->part[0] || it->part[1] || it->part[2]))
      return native_bail(n, "a slice is stored");
  }
  if (!type_shape(n, &part, &s) ||
      !(v = native_split(n, node_operand(g, node, graph_node_at(g, node)->operand_count - 1))) || !goes_into(n, v, s))
    return false;
  for (u32 i = 0; i < s->count; i++) {
    i64 index[TYPE_MAX_RANK];
    Spot spot;
    indices_of(s, i, index);
    if (!spot_of(n, &r, index, &spot)) return false;
    u32 buffer = n->buffers.data[at].ir,
        old = op == OP_none ? 0 : loop_load(n->fn, buffer, spot.constant, spot.terms, spot.count);
    u32 value = native_stored(n, node, &t, old, v->ir[native_broadcast_at(v, s, i)]);
    if (!value) return false;
    loop_store(n->fn, buffer, spot.constant, spot.terms, spot.count, value);
  }
  n->buffers.data[at].version = ++n->versions;
  *native_value(n, node_result(g, node, 0)) = (NValue){.stamp = n->stamp, .buffer = at + 1, .version = n->versions};
  return true;
}
