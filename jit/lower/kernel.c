/* kernel.c — tasks of a loop nest: which elements are needed, in which loop each is computed (see kernel.h). */
#include "jit/lower/kernel.h"
#include "lang/mechanisms.h"

#include <string.h>

enum { MAX_TASKS = 20000, MAX_WANT_DEPTH = 40 };

/* ---- tasks, each once ------------------------------------------------------------------------------- */

static u32 task_hash(const Task *t) {
  u64 h = (u64)t->kind | (u64)t->type << 8 | (u64)t->op << 16 | (u64)t->value << 24;
  h = (h ^ t->ix) * 0x9E3779B97F4A7C15u ^ t->aff;
  h = (h ^ (u64)t->dim ^ t->imm) * 0x9E3779B97F4A7C15u;
  bool own = t->kind == TASK_convert || t->kind == TASK_op || t->kind == TASK_wrap;
  for (u32 i = 0; own && i < t->deps; i++) h = (h ^ t->dep[i]) * 0x9E3779B97F4A7C15u;
  return (u32)(h >> 32);
}

static bool task_equal(const Task *a, const Task *b) {
  if (a->kind != b->kind || a->type != b->type || a->op != b->op || a->value != b->value || a->ix != b->ix ||
      a->aff != b->aff || a->imm != b->imm || a->dim != b->dim)
    return false;
  /* its needs follow from the rest */
  if (a->kind != TASK_convert && a->kind != TASK_op && a->kind != TASK_wrap) return true;
  return a->deps == b->deps && memcmp(a->dep, b->dep, sizeof a->dep) == 0;
}

static bool table_grow(Kern *k) {
  u32 n = k->table_size * 2, *table = mem_alloc_zero(k->c->alloc, sizeof *table * n);
  if (!table) return false;
  for (u32 i = 1; i < k->tasks.count; i++) {
    u32 at = task_hash(&k->tasks.data[i]) & (n - 1);
    while (table[at]) at = (at + 1) & (n - 1);
    table[at] = i;
  }
  mem_free(k->c->alloc, k->table, sizeof *table * k->table_size);
  k->table = table;
  k->table_size = n;
  return true;
}

static u32 task(Kern *k, Task t) {
  if (k->failed) return 0;
  u32 at = task_hash(&t) & (k->table_size - 1);
  for (; k->table[at]; at = (at + 1) & (k->table_size - 1))
    if (task_equal(&k->tasks.data[k->table[at]], &t)) return k->table[at];
  if (k->tasks.count > MAX_TASKS) {
    k->why = "a loop nest that gets too large";
    return 0;
  }
  if (4 * k->tasks.count >= 3 * k->table_size) {
    if (!table_grow(k)) {
      k->failed = true;
      return 0;
    }
    at = task_hash(&t) & (k->table_size - 1);
    while (k->table[at]) at = (at + 1) & (k->table_size - 1);
  }
  u32 id = k->tasks.count;
  if (!vec_push(k->c->alloc, &k->tasks, t)) {
    k->failed = true;
    return 0;
  }
  k->table[at] = id;
  return id;
}

static u8 type_of_task(const Kern *k, u32 t) { return k->tasks.data[t].type; }

u32 kern_word(Kern *k, LoopType type, u64 bits) {
  return task(k, (Task){.kind = TASK_word, .type = (u8)type, .imm = bits});
}

u32 kern_dim(Kern *k, Dim d) {
  i64 v;
  if (d == DIM_NONE) k->ax.too_big = true;
  if (dim_is_const(k->c, d, &v)) return kern_word(k, LT_I64, (u64)v);
  return task(k, (Task){.kind = TASK_dim, .type = LT_I64, .dim = d});
}

u32 kern_convert(Kern *k, u32 from, LoopType to) {
  if (!from || type_of_task(k, from) == to) return from;
  const Task *f = &k->tasks.data[from];
  u64 bits;
  if (f->kind == TASK_word && to != LT_I1 && loop_eval(LOOP_CONVERT, to, (LoopType)f->type, f->imm, 0, 0, &bits))
    return kern_word(k, to, bits);
  return task(k, (Task){.kind = TASK_convert, .type = (u8)to, .dep = {from}, .deps = 1});
}

u32 kern_op(Kern *k, LoopOp op, LoopType type, u32 a, u32 b, u32 c) {
  if (!a || k->failed) return 0;
  return task(k, (Task){.kind = TASK_op, .op = (u8)op, .type = (u8)type, .dep = {a, b, c}, .deps = c ? 3 : b ? 2 : 1});
}

u32 kern_index(Kern *k, u32 aff) {
  i64 v;
  const Aff *a = aff_at(&k->ax, aff);
  if (a->count == 0 && dim_is_const(k->c, a->c, &v)) return kern_word(k, LT_I64, (u64)v);
  return task(k, (Task){.kind = TASK_index, .type = LT_I64, .aff = aff});
}

u32 kern_wrap(Kern *k, u32 index, Dim n) {
  u32 size = kern_dim(k, n);
  if (!index || !size) return 0;
  return task(k, (Task){.kind = TASK_wrap, .type = LT_I64, .dep = {index, size}, .deps = 2});
}

static u32 new_var(Kern *k, u32 scope, u32 t) {
  u32 id = k->vars.count;
  if (!vec_push(k->c->alloc, &k->vars, (KVar){.scope = scope, .task = t})) k->failed = true;
  return k->failed ? 0 : id;
}

u32 kern_task_var(Kern *k, u32 t) {
  if (!t) return 0;
  const Task *of = &k->tasks.data[t];
  if (of->kind == TASK_word) return aff_const(&k->ax, size_const(k->sizes, (i64)of->imm));
  if (of->kind == TASK_dim) return aff_const(&k->ax, of->dim);
  for (u32 i = 1; i < k->vars.count; i++) /* few: gathers and divisions only */
    if (k->vars.data[i].task == t) return aff_var(&k->ax, i);
  u32 var = new_var(k, UINT32_MAX, t);
  return var ? aff_var(&k->ax, var) : 0;
}

/* ---- indices ---------------------------------------------------------------------------------------- */

u32 kern_vector(Kern *k, const ArrayType *t, const u32 *affs) { return ix_make(&k->ax, t->rank, affs); }

bool kern_axes(Kern *k, const ArrayType *t, u32 ix, u32 *affs) {
  const Ix *x = ix_at(&k->ax, ix);
  if (!x->linear) {
    for (u32 d = 0; d < t->rank; d++) affs[d] = d < x->count ? ix_item(&k->ax, ix, d) : 0;
    return true;
  }
  if (t->rank <= 1) {
    if (t->rank) affs[0] = ix_item(&k->ax, ix, 0);
    return true;
  }
  if (k->linear || k->numbers) {
    k->unlinear = true;
    k->unnumbered = k->numbers;
    return false;
  }
  /* taken apart by division; sizes that are 0 leave no trips in which it would be done */
  Dim strides[TYPE_MAX_RANK];
  dims_strides(k->c, t->rank, t->dims, strides);
  u32 left = kern_index(k, ix_item(&k->ax, ix, 0));
  for (u32 d = 0; d < t->rank; d++) {
    if (t->dims[d] == 1) {
      affs[d] = 0;
      continue;
    }
    u32 part = strides[d] == 1 ? left : kern_op(k, LOOP_DIV, LT_I64, left, kern_dim(k, strides[d]), 0);
    if (strides[d] != 1) left = kern_op(k, LOOP_REM, LT_I64, left, kern_dim(k, strides[d]), 0);
    affs[d] = kern_task_var(k, part);
  }
  return true;
}

u32 kern_broadcast(Kern *k, const ArrayType *t, const ArrayType *out, u32 ix) {
  u32 from[TYPE_MAX_RANK], to[TYPE_MAX_RANK];
  if (t->rank == 0) return 0;
  if (ix_at(&k->ax, ix)->linear && t->rank == out->rank && dims_same(k->c, t->rank, t->dims, out->dims)) return ix;
  if (!kern_axes(k, out, ix, from)) return 0;
  u32 shift = out->rank - t->rank;
  for (u32 d = 0; d < t->rank; d++) to[d] = dim_is(k->c, t->dims[d], 1) ? 0 : from[d + shift];
  return kern_vector(k, t, to);
}

/* ---- wanting ---------------------------------------------------------------------------------------- */

u32 kern_place_of_part(Kern *k, u32 aff, u32 part) {
  return aff_add(&k->ax, aff_scale(&k->ax, aff, 2), aff_const(&k->ax, part - PART_RE));
}

static u32 want_stored(Kern *k, ValueId v, u32 ix, u32 part) {
  const ArrayType t = *value_type(k->g, v);
  LoopType type = loop_type_of_dtype(dtype_real_of(t.dtype));
  if (dtype_is_pair(t.dtype) && (!part || !t.rank)) {
    k->why = "a complex number that is not taken by its parts";
    return 0;
  }
  ValueInfo *info = value_info(k->c, v);
  if (t.rank == 0) {
    info->wanted = true;
    return task(k, (Task){.kind = TASK_number, .type = (u8)type, .value = v});
  }
  Dim strides[TYPE_MAX_RANK];
  u32 offset;
  info->wanted = true;
  if (ix_at(&k->ax, ix)->linear && !info->strides) {
    offset = ix_item(&k->ax, ix, 0);
  } else {
    u32 affs[TYPE_MAX_RANK];
    if (!kern_axes(k, &t, ix, affs)) return 0;
    if (info->strides) memcpy(strides, k->c->strides.data + info->strides, t.rank * sizeof *strides);
    else dims_strides(k->c, t.rank, t.dims, strides);
    offset = ix_offset(&k->ax, kern_vector(k, &t, affs), strides);
  }
  if (part) offset = kern_place_of_part(k, offset, part);
  return task(k, (Task){.kind = TASK_load, .type = (u8)type, .value = v, .aff = offset});
}

u32 kern_want(Kern *k, ValueId v, u32 ix) { return kern_want_part(k, v, ix, 0); }

u32 kern_want_part(Kern *k, ValueId v, u32 ix, u32 part) {
  const u32 given = part;
  const LoopType wanted = loop_type_of_dtype(dtype_real_of(value_type(k->g, v)->dtype));
  if (k->failed || k->why || k->unlinear) return 0;
  if (++k->depth > MAX_WANT_DEPTH) k->why = "indices nested too deep";
  u32 made = 0;
  while (!k->why) {
    const GraphValue *gv = &k->g->values.data[v];
    LoopType type = loop_type_of_dtype(value_type(k->g, v)->dtype);
    if (gv->origin == GV_const) {
      made = part ? kern_word(k, LT_F32, part == PART_RE ? (u32)gv->bits : gv->bits >> 32) /* of c64 */
                  : kern_word(k, type, gv->bits);
      break;
    }
    if (gv->origin == GV_size) {
      made = kern_convert(k, kern_dim(k, gv->dim), type);
      break;
    }
    const ValueInfo *info = value_info(k->c, v);
    NodeId n = value_node(k->g, v);
    bool through = info->view && view_maps(k->g, n); /* of something stored: that is read, as it lies */
    if (!n || (info->where == AT_SLOT && info->unit != k->unit && !through)) {
      made = want_stored(k, v, ix, part);
      break;
    }
    if (view_maps(k->g, n)) {
      if (!kern_view(k, n, &v, &ix, &part, &made)) {
        if (k->why && !k->out->bad) k->out->bad = n;
        made = 0;
        break;
      }
      if (made) break;
      continue;
    }
    const GraphNode *node = graph_node_at(k->g, n);
    u32 kind = node->kind != NODE_op                     ? TASK_const
               : op_info(node->op)->family != FAM_reduce ? TASK_element
               : op_folds_place(node->op)                ? TASK_extreme
                                                         : TASK_reduce;
    if (kind == TASK_const) {
      k->why = "a value of a node that is no operation";
      break;
    }
    made = task(k, (Task){.kind = (u8)kind, .type = (u8)type, .value = n, .ix = ix});
    break;
  }
  k->depth--;
  if (given && made) made = kern_convert(k, made, wanted); /* complex(1, x) has a part that is an integer */
  return made;
}

u32 kern_want_as(Kern *k, ValueId v, u32 ix, LoopType type) { return kern_convert(k, kern_want(k, v, ix), type); }

/* ---- what a task needs -------------------------------------------------------------------------------- */

static void need_element(Kern *k, u32 id) {
  NodeId n = k->tasks.data[id].value;
  u32 ix = k->tasks.data[id].ix, compute;
  ValueId operands[3];
  u32 count = element_operands(k->g, n, operands), op = graph_node_at(k->g, n)->op;
  const ArrayType out = *value_type(k->g, node_result(k->g, n, 0));
  if (!element_lowers(k->c, n, &compute)) {
    k->why = "an operation that does not lower";
    k->out->bad = n;
    return;
  }
  LoopType t = loop_type_of_dtype(compute);
  u32 dep[3] = {0};
  for (u32 i = 0; i < count; i++) {
    if (!operands[i]) continue;
    const ArrayType own = *value_type(k->g, operands[i]);
    dep[i] = kern_want_as(k, operands[i], kern_broadcast(k, &own, &out, ix),
                          element_operand_type(op, i, compute, own.dtype));
    if (!dep[i]) return;
  }
  Task *made = &k->tasks.data[id];
  memcpy(made->dep, dep, sizeof dep);
  made->deps = count;
  made->from = (u8)t;
}

/* One scope for all reduced axes, where these are the last ones: elements that lie side by side are one run, whatever
 * sizes the axes have. Axes of known sizes may be few elements, and are told apart by the vector code. */
static bool open_numbered(Kern *k, u32 id, u32 mask, u32 *ix) {
  NodeId n = k->tasks.data[id].value;
  const ArrayType x = *value_type(k->g, node_operand(k->g, n, 0)), r = *value_type(k->g, node_result(k->g, n, 0));
  u32 lead = 0, loops = 0, from[TYPE_MAX_RANK], number = 0, result = k->tasks.data[id].ix;
  Dim total = 1, strides[TYPE_MAX_RANK];
  i64 known;
  bool sized = true;
  while (lead < x.rank && !(mask >> lead & 1)) lead++;
  if (!k->numbered || mask >> lead != ((u64)1 << (x.rank - lead)) - 1) return false;
  for (u32 d = lead; d < x.rank; d++) {
    loops += !dim_is(k->c, x.dims[d], 1);
    sized = sized && dim_is_const(k->c, x.dims[d], &known);
    total = size_mul(k->sizes, total, x.dims[d]);
    if (total == DIM_NONE) return false;
  }
  if (loops < 2 || sized || !MECHANISM(k->c->vm, axes_numbered)) return false;
  if (ix_at(&k->ax, result)->linear) {
    number = ix_item(&k->ax, result, 0);
  } else if (lead) {
    if (!kern_axes(k, &r, result, from)) return false;
    dims_strides(k->c, lead, x.dims, strides);
    number = ix_offset(&k->ax, ix_make(&k->ax, lead, from), strides);
  }
  u32 scope = k->scopes.count, var = new_var(k, scope, 0);
  if (!var || !vec_push(k->c->alloc, &k->scopes, (KScope){.trips = total, .var = var})) {
    k->failed = true;
    return false;
  }
  *ix = ix_linear(&k->ax, aff_add(&k->ax, aff_scale(&k->ax, number, total), aff_var(&k->ax, var)));
  k->tasks.data[id].inner = scope;
  k->tasks.data[id].inner_count = 1;
  k->numbers = true;
  k->c->vm->counters.at[STAT_axes_numbered]++;
  return true;
}

/* Scopes of the reduced axes, nested; the index of the operand. */
static bool open_reduction(Kern *k, u32 id, u32 mask, bool keep, u32 *ix) {
  NodeId n = k->tasks.data[id].value;
  const ArrayType x = *value_type(k->g, node_operand(k->g, n, 0)), r = *value_type(k->g, node_result(k->g, n, 0));
  u32 from[TYPE_MAX_RANK], to[TYPE_MAX_RANK], at = 0, first = k->scopes.count, count = 0;
  if (open_numbered(k, id, mask, ix)) return true;
  if (k->failed || !kern_axes(k, &r, k->tasks.data[id].ix, from)) return false;
  for (u32 d = 0; d < x.rank; d++) {
    if (!(mask >> d & 1)) {
      to[d] = from[at++];
      continue;
    }
    at += keep;
    u32 scope = k->scopes.count, var = new_var(k, scope, 0);
    if (!var ||
        !vec_push(k->c->alloc, &k->scopes, (KScope){.parent = count ? scope - 1 : 0, .trips = x.dims[d], .var = var})) {
      k->failed = true;
      return false;
    }
    to[d] = aff_var(&k->ax, var);
    count++;
  }
  *ix = kern_vector(k, &x, to);
  k->tasks.data[id].inner = first;
  k->tasks.data[id].inner_count = count;
  return true;
}

static void need_reduction(Kern *k, u32 id) {
  Task t = k->tasks.data[id];
  NodeId n = t.value;
  u32 op = graph_node_at(k->g, n)->op, mask, ix;
  GraphArg args[OP_MAX_PARAMS];
  node_args(k->g, n, args);
  ValueId x = node_operand(k->g, n, 0);
  const ArrayType xt = *value_type(k->g, x);
  u32 keep = op_param(op, "keepdims");
  if (!arg_axes(&args[op_param(op, "axis")], xt.rank, &mask)) {
    k->why = "axes known only at run time";
    k->out->bad = n;
    return;
  }
  if (!open_reduction(k, id, mask, arg_bool(&args[keep], false), &ix)) return;
  LoopType from = loop_type_of_dtype(xt.dtype), acc = (LoopType)t.type;
  u32 dep[2] = {0};
  if (op_folds_truth(op))
    dep[0] = kern_convert(k, kern_want_as(k, x, ix, LT_I1), acc);
  else if (t.kind == TASK_extreme) dep[0] = kern_want_as(k, x, ix, from == LT_I1 ? LT_U8 : from);
  else dep[0] = kern_want_as(k, x, ix, acc);
  if (t.kind == TASK_extreme && dep[0]) {
    Dim sizes[TYPE_MAX_RANK], strides[TYPE_MAX_RANK];
    u32 count = k->tasks.data[id].inner_count, number = 0;
    for (u32 i = 0; i < count; i++) sizes[i] = k->scopes.data[k->tasks.data[id].inner + i].trips;
    dims_strides(k->c, count, sizes, strides);
    for (u32 i = 0; i < count; i++)
      number = aff_add(&k->ax, number,
                       aff_scale(&k->ax, aff_var(&k->ax, k->scopes.data[k->tasks.data[id].inner + i].var), strides[i]));
    dep[1] = kern_index(k, number);
  }
  Task *made = &k->tasks.data[id];
  made->dep[0] = dep[0];
  made->dep[1] = dep[1];
  made->deps = t.kind == TASK_extreme ? 2 : 1;
}

/* The variables of a form that are values of tasks: needed like operands. */
static u32 aff_dep(const Kern *k, u32 aff, u32 i) {
  u32 t = k->vars.data[aff_terms(&k->ax, aff)[i].var].task;
  return t;
}

static u32 dep_count(const Kern *k, const Task *t) {
  bool affine = t->kind == TASK_load || t->kind == TASK_index;
  return affine ? aff_at(&k->ax, t->aff)->count : t->deps;
}
static u32 dep_at(const Kern *k, const Task *t, u32 i) {
  bool affine = t->kind == TASK_load || t->kind == TASK_index;
  return affine ? aff_dep(k, t->aff, i) : t->dep[i];
}

static u32 deeper(const Kern *k, u32 a, u32 b) {
  (void)k;
  return a > b ? a : b; /* scopes are numbered outer before inner, and no task lies in two reductions */
}

/* The scope that holds the loops of a reduction: the deepest of the main nest that it depends on. */
static u32 main_scope(const Kern *k, u32 ix) {
  u32 s = 1;
  const Ix *x = ix_at(&k->ax, ix);
  for (u32 i = 0; i < x->count; i++) {
    u32 aff = ix_item(&k->ax, ix, i);
    for (u32 t = 0; t < aff_at(&k->ax, aff)->count; t++) {
      const KVar *v = &k->vars.data[aff_terms(&k->ax, aff)[t].var];
      u32 own = v->scope == UINT32_MAX ? k->tasks.data[v->task].scope : v->scope;
      if (own > s) s = own;
    }
  }
  return s;
}

/* A check that fails skips the rest of its trip, and its exit wants what stands before it in the program: that is
 * stored first, which can be done in the innermost loop only. */
static bool check_follows_store(const Kern *k, const Task *check) {
  for (u32 i = 0; i + 1 < check->imm; i++) {
    NodeId n = k->u->nodes.data[i];
    if (graph_node_at(k->g, n)->kind != NODE_check && value_info(k->c, node_result(k->g, n, 0))->wanted) return true;
  }
  return false;
}

/* The deepest level among what task `id` needs of scope `scope`. */
static u32 level_of_needs(const Kern *k, u32 id, u32 scope) {
  const Task *t = &k->tasks.data[id];
  u32 level = 0;
  for (u32 i = dep_count(k, t); i-- > 0;) {
    u32 d = dep_at(k, t, i);
    if (d && k->tasks.data[d].scope == scope && k->tasks.data[d].level > level) level = k->tasks.data[d].level;
  }
  return level;
}

/* A reduction stands behind what its loops need. */
static u32 level_of(const Kern *k, u32 id) {
  const Task *t = &k->tasks.data[id];
  u32 level = level_of_needs(k, id, t->scope);
  if (t->kind != TASK_reduce && t->kind != TASK_extreme) return level;
  for (u32 i = 0; i < t->inner_count; i++)
    for (u32 in = k->scopes.data[t->inner + i].first; in; in = k->tasks.data[in].next) {
      u32 own = level_of_needs(k, in, t->scope);
      if (own > level) level = own;
    }
  return level + 1;
}

/* All needs are placed: the scope follows. */
static void place(Kern *k, u32 id) {
  Task *t = &k->tasks.data[id];
  u32 scope = 0;
  if (t->kind == TASK_load || t->kind == TASK_index) {
    const AffTerm *terms = aff_terms(&k->ax, t->aff);
    for (u32 i = 0; i < aff_at(&k->ax, t->aff)->count; i++) {
      const KVar *v = &k->vars.data[terms[i].var];
      scope = deeper(k, scope, v->scope == UINT32_MAX ? k->tasks.data[v->task].scope : v->scope);
      /* behind the check of its index */
      if (t->kind == TASK_load && v->scope == UINT32_MAX) scope = deeper(k, scope, 1);
    }
  } else if (t->kind == TASK_reduce || t->kind == TASK_extreme) {
    scope = main_scope(k, t->ix);
    for (u32 i = 0; i < t->inner_count; i++) k->scopes.data[t->inner + i].parent = i ? t->inner + i - 1 : scope;
  } else {
    for (u32 i = 0; i < t->deps; i++)
      if (t->dep[i]) scope = deeper(k, scope, k->tasks.data[t->dep[i]].scope);
    if (t->kind == TASK_check) scope = check_follows_store(k, t) ? k->main_scopes - 1 : deeper(k, scope, 1);
    /* integer powers hold a loop, which has no place before the par */
    if (t->kind == TASK_element && !loop_is_float((LoopType)t->from)) {
      u32 op = graph_node_at(k->g, t->value)->op;
      if (op == OP_power || op == OP_pow) scope = deeper(k, scope, 1);
    }
  }
  t->scope = scope;
  t->state = 2;
  t->level = level_of(k, id);
  k->checked |= t->kind == TASK_check;
  KScope *s = &k->scopes.data[scope];
  if (s->last) k->tasks.data[s->last].next = id;
  else s->first = id;
  s->last = id;
}

static bool finish_task(Kern *k, u32 root) {
  Allocator *a = k->c->alloc;
  k->stack.count = 0;
  if (!root || !vec_push(a, &k->stack, root)) return false;
  while (k->stack.count) {
    u32 id = k->stack.data[k->stack.count - 1];
    u8 state = k->tasks.data[id].state, kind = k->tasks.data[id].kind;
    if (state == 2) {
      k->stack.count--;
      continue;
    }
    if (state == 0) {
      k->tasks.data[id].state = 1;
      if (kind == TASK_element) need_element(k, id);
      if (kind == TASK_reduce || kind == TASK_extreme) need_reduction(k, id);
      if (k->failed || k->why || k->unlinear || k->ax.failed) return false;
      for (u32 i = dep_count(k, &k->tasks.data[id]); i-- > 0;) {
        u32 d = dep_at(k, &k->tasks.data[id], i);
        if (d && k->tasks.data[d].state == 0 && !vec_push(a, &k->stack, d)) {
          k->failed = true;
          return false;
        }
      }
      continue;
    }
    place(k, id);
    k->stack.count--;
  }
  return true;
}

/* ---- the nest --------------------------------------------------------------------------------------------- */

static void reset(Kern *k) {
  affines_clear(&k->ax);
  k->tasks.count = k->scopes.count = k->stack.count = 0;
  k->vars.count = 0;
  memset(k->table, 0, sizeof *k->table * k->table_size);
  k->unlinear = k->unnumbered = k->numbers = false;
  k->checked = false;
  k->why = NULL;
  k->depth = 0;
  k->split = (IndexSplit){0};
  k->out->bad = 0;
  if (!vec_push(k->c->alloc, &k->tasks, (Task){0}) || !vec_push(k->c->alloc, &k->vars, (KVar){0}) ||
      !vec_push(k->c->alloc, &k->scopes, (KScope){.trips = 1}))
    k->failed = true;
}

static u32 open_main(Kern *k, Dim trips) {
  u32 scope = k->scopes.count, var = new_var(k, scope, 0);
  if (!var || !vec_push(k->c->alloc, &k->scopes, (KScope){.parent = scope - 1, .trips = trips, .var = var})) {
    k->failed = true;
    return 0;
  }
  return aff_var(&k->ax, var);
}

/* Opens the loops over a shape; the index of an element in `*ix`. `skip`: an axis without a loop here (of a scan). */
static void open_nest(Kern *k, u32 rank, const Dim *dims, u32 skip, u32 *ix) {
  u32 affs[TYPE_MAX_RANK] = {0};
  if (k->linear) {
    Dim total = 1;
    for (u32 d = 0; d < rank; d++) total = size_mul(k->sizes, total, dims[d]);
    if (total == DIM_NONE) k->ax.too_big = true;
    *ix = ix_linear(&k->ax, open_main(k, total));
  } else {
    for (u32 d = 0; d < rank; d++)
      if (d != skip && !dim_is(k->c, dims[d], 1)) affs[d] = open_main(k, dims[d]);
    if (k->scopes.count == 1) (void)open_main(k, 1);
    *ix = ix_make(&k->ax, rank, affs);
  }
  k->main_scopes = k->scopes.count;
  k->own = UINT32_MAX;
  if (k->linear) {
    k->own = ix_item(&k->ax, *ix, 0);
  } else if (skip == UINT32_MAX) {
    Dim strides[TYPE_MAX_RANK];
    dims_strides(k->c, rank, dims, strides);
    k->own = ix_offset(&k->ax, *ix, strides);
  }
}

/* Opens the loops over a shape with the innermost one in parts (kernel_index_split.c), each a scope beside the
 * others; a single loop stands in one of one trip. Gives the axes' forms but for the last. */
static void open_parts(Kern *k, u32 rank, const Dim *dims, u32 *affs) {
  k->split.scope = 0;
  if (rank == 1) (void)open_main(k, 1);
  for (u32 d = 0; d + 1 < rank; d++) affs[d] = open_main(k, dims[d]);
  k->main_scopes = k->split.scope = k->scopes.count;
}

/* One part: its loop, and the index of an element in it. */
static u32 open_part(Kern *k, u32 part, u32 rank, const Dim *dims, u32 *affs) {
  Dim from, to, strides[TYPE_MAX_RANK];
  kern_split_bounds(k, part, dims[rank - 1], &from, &to);
  u32 scope = k->scopes.count, aff = open_main(k, size_sub(k->sizes, to, from));
  if (k->failed) return 0;
  k->scopes.data[scope].parent = k->split.scope - 1;
  k->split.part = part;
  k->split.var = k->scopes.data[scope].var;
  affs[rank - 1] = aff_add(&k->ax, aff, aff_const(&k->ax, from));
  u32 ix = ix_make(&k->ax, rank, affs);
  dims_strides(k->c, rank, dims, strides);
  k->split.own[part - 1] = ix_offset(&k->ax, ix, strides);
  return ix;
}

/* The element of a root that a trip computes; the nest has no loops for axes of size 1. */
static u32 root_index(Kern *k, const ArrayType *t, u32 nest) {
  u32 affs[TYPE_MAX_RANK], at = 0;
  if (ix_at(&k->ax, nest)->linear) return kern_renumbered(k, t, ix_item(&k->ax, nest, 0));
  for (u32 d = 0; d < t->rank; d++) affs[d] = dim_is(k->c, t->dims[d], 1) ? 0 : ix_item(&k->ax, nest, at++);
  return kern_vector(k, t, affs);
}

static bool want_roots(Kern *k, u32 nest, u32 *roots) {
  for (u32 i = 0; i < k->u->nodes.count; i++) {
    NodeId n = k->u->nodes.data[i];
    const GraphNode *node = graph_node_at(k->g, n);
    roots[i] = 0;
    /* only inside, if at all */
    if (node->kind != NODE_check && !value_info(k->c, node_result(k->g, n, 0))->wanted) continue;
    ArrayType shape;
    if (node->kind != NODE_check) shape = *value_type(k->g, node_result(k->g, n, 0));
    else if (!check_shape(k->c, n, &shape)) return false;
    u32 ix = root_index(k, &shape, nest);
    k->store[i] = ix;
    if (node->kind == NODE_check) {
      Task t = {.kind = TASK_check, .value = n, .ix = ix, .deps = node->operand_count};
      t.imm = i + 1; /* each check is its own */
      u32 id = task(k, t);
      if (!id) return false;
      for (u32 j = 0; j < node->operand_count && j < 2; j++) {
        ValueId v = node_operand(k->g, n, j);
        const ArrayType own = *value_type(k->g, v);
        bool index = node->op == CHECK_index;
        u32 at = kern_broadcast(k, &own, &shape, ix);
        u32 d = index ? kern_want_as(k, v, at, LT_I64) : kern_want(k, v, at);
        if (!d) return false;
        k->tasks.data[id].dep[j] = d;
      }
      k->tasks.data[id].deps = node->operand_count < 2 ? node->operand_count : 2;
      roots[i] = id;
    } else {
      bool pair = dtype_is_pair(shape.dtype);
      roots[i] = kern_want_part(k, node_result(k->g, n, 0), ix, pair ? PART_RE : 0);
      if (pair) {
        u32 *im = &roots[k->u->nodes.count + i];
        *im = roots[i] ? kern_want_part(k, node_result(k->g, n, 0), ix, PART_IM) : 0;
        if (!finish_task(k, *im)) return false;
      }
    }
    if (!finish_task(k, roots[i])) return false;
  }
  return true;
}

/* The nest again, with its innermost loop split where rolls wrap around. Unit.dims have no axes of size 1. */
static bool want_in_parts(Kern *k, u32 *roots) {
  u32 affs[TYPE_MAX_RANK], *store = k->store, count = k->u->nodes.count;
  bool ok = true;
  IndexSplit found = k->split;
  reset(k);
  k->split = found;
  k->split.collect = false;
  if (k->failed || k->ax.failed) return false;
  open_parts(k, k->u->rank, k->u->dims, affs);
  for (u32 part = 1; ok && part <= SPLIT_PARTS; part++) {
    k->store = k->split.store[part - 1] = arena_alloc(&k->c->arena, sizeof *store * count);
    u32 *own = k->split.roots[part - 1] = part == 1 ? roots : arena_alloc(&k->c->arena, sizeof *roots * 2 * count);
    if (!k->store || !own) k->failed = true;
    u32 ix = k->failed ? 0 : open_part(k, part, k->u->rank, k->u->dims, affs);
    ok = !k->failed && !k->ax.failed && want_roots(k, ix, own);
  }
  k->store = store;
  return ok;
}

/* concat, stack: operands of one shape (k->parts of them from `part` on), stored where they belong in the result. */
static bool want_parts(Kern *k, u32 part, u32 ix, u32 *roots) {
  NodeId n = k->u->node;
  Graph *g = k->g;
  const GraphNode *node = graph_node_at(g, n);
  const ArrayType rt = *value_type(g, node_result(g, n, 0));
  u32 axis = k->u->axis;
  for (u32 i = 0; i < k->parts; i++) {
    ValueId v = node_operand(g, n, part + i);
    const ArrayType pt = *value_type(g, v);
    u32 affs[TYPE_MAX_RANK], at[TYPE_MAX_RANK] = {0};
    if (!kern_axes(k, &pt, ix, affs)) return false;
    if (node->op == OP_stack) {
      for (u32 d = 0; d < rt.rank; d++) at[d] = d == axis ? aff_const(&k->ax, part + i) : affs[d - (d > axis)];
    } else {
      Dim before = 0;
      for (u32 p = 0; p < part + i; p++)
        before = size_add(k->sizes, before, value_type(g, node_operand(g, n, p))->dims[axis]);
      memcpy(at, affs, sizeof at);
      at[axis] = aff_add(&k->ax, affs[axis], aff_const(&k->ax, before));
    }
    k->store[i] = kern_vector(k, &rt, at);
    roots[i] = kern_want_as(k, v, ix, loop_type_of_dtype(rt.dtype));
    if (!finish_task(k, roots[i])) return false;
  }
  return true;
}

/* Operands from `part` on that have its shape, and so are written by one nest. */
u32 join_run(Compiler *c, NodeId n, u32 part) {
  Graph *g = c->g;
  u32 count = graph_node_at(g, n)->operand_count, end = part + 1;
  const ArrayType *t = value_type(g, node_operand(g, n, part));
  while (end < count && end - part < JOIN_RUN &&
         dims_same(c, t->rank, t->dims, value_type(g, node_operand(g, n, end))->dims))
    end++;
  return end - part;
}

static bool want_scan(Kern *k, u32 ix, u32 *roots) {
  NodeId n = k->u->node;
  Graph *g = k->g;
  const Unit *u = k->u;
  ValueId x = node_operand(g, n, 0);
  const ArrayType xt = *value_type(g, x), rt = *value_type(g, node_result(g, n, 0));
  u32 affs[TYPE_MAX_RANK], scope = k->scopes.count, var = new_var(k, scope, 0);
  Dim count = u->dims[u->axis], last = size_sub(k->sizes, count, 1), minus = size_const(k->sizes, -1);
  if (!var || !vec_push(k->c->alloc, &k->scopes, (KScope){.parent = scope - 1, .trips = count, .var = var})) {
    k->failed = true;
    return false;
  }
  for (u32 d = 0; d < u->rank; d++) affs[d] = ix_item(&k->ax, ix, d);
  u32 j = aff_var(&k->ax, var);
  if (u->reverse) j = aff_add(&k->ax, aff_const(&k->ax, last), aff_scale(&k->ax, j, minus));
  affs[u->axis] = j;
  u32 from = u->flat ? kern_renumbered(k, &xt, j) : kern_vector(k, &xt, affs);
  affs[u->axis] = u->initial && !u->reverse ? aff_add(&k->ax, j, aff_const(&k->ax, 1)) : j;
  k->store[0] = kern_vector(k, &rt, affs);
  affs[u->axis] = u->reverse ? aff_const(&k->ax, count) : 0;
  k->scan_last = kern_vector(k, &rt, affs);
  roots[0] = kern_want_as(k, x, from, loop_type_of_dtype(rt.dtype));
  return finish_task(k, roots[0]);
}

void kernel_free(Compiler *c, Kernel *k) {
  vec_free(c->alloc, &k->args);
  vec_free(c->alloc, &k->checks);
  vec_free(c->alloc, &k->by_row);
}

static bool kern_init(Kern *k, Compiler *c, const Unit *u, u32 unit, Kernel *out) {
  *k = (Kern){.c = c, .g = c->g, .sizes = &c->g->sizes, .u = u, .unit = unit, .out = out, .table_size = 256};
  memset(out, 0, sizeof *out);
  bool ok = affines_init(&k->ax, c->alloc, k->sizes);
  k->table = mem_alloc_zero(c->alloc, sizeof *k->table * k->table_size);
  return ok && k->table;
}

static void kern_done(Kern *k) {
  Allocator *a = k->c->alloc;
  affines_free(&k->ax);
  vec_free(a, &k->tasks);
  vec_free(a, &k->vars);
  vec_free(a, &k->scopes);
  vec_free(a, &k->stack);
  vec_free(a, &k->params);
  if (k->table) mem_free(a, k->table, sizeof *k->table * k->table_size);
}

bool kernel_build(Compiler *c, const Unit *u, u32 unit, u32 part, Kernel *out) {
  Kern k;
  u32 *roots = NULL, ix = 0, count = u->nodes.count + JOIN_RUN, loops = 0, rank = u->rank;
  const Dim *dims = u->dims;
  bool ok = kern_init(&k, c, u, unit, out), built = false;
  ArrayType of_part;
  if (u->kind == UNIT_join) {
    of_part = *value_type(c->g, node_operand(c->g, u->node, part));
    rank = of_part.rank;
    dims = of_part.dims;
    k.parts = join_run(c, u->node, part);
  }
  if (ok) {
    roots = mem_alloc_zero(c->alloc, sizeof *roots * 2 * count);
    k.store = mem_alloc_zero(c->alloc, sizeof *k.store * count);
    ok = roots && k.store;
  }
  for (u32 d = 0; d < rank; d++) loops += !dim_is(c, dims[d], 1);
  for (u32 form = u->kind == UNIT_kernel && loops > 1 ? 0 : 1; ok && !built && form < 2; form++) {
    k.linear = form == 0;
    k.numbered = !k.unnumbered;
    reset(&k);
    ok = !k.failed && !k.ax.failed;
    if (!ok) break;
    open_nest(&k, rank, dims, u->kind == UNIT_scan ? u->axis : UINT32_MAX, &ix);
    ok = !k.failed && !k.ax.failed;
    if (!ok) break;
    k.split.collect = u->kind == UNIT_kernel && rank && !k.linear && c->code->target->splits_rolls;
    k.split.var = k.scopes.data[k.main_scopes - 1].var;
    built = u->kind == UNIT_scan ? want_scan(&k, ix, roots) : u->kind == UNIT_join ? want_parts(&k, part, ix, roots)
                                 : want_roots(&k, ix, roots);
    if (built && kern_is_split(&k)) built = want_in_parts(&k, roots);
    ok = !k.failed && !k.ax.failed;
    if (k.ax.too_big) {
      built = false;
      k.why = "a size expression that gets too large";
    }
    if (!built && !k.unlinear) break;
    if (!built && k.unnumbered) form--; /* once more, with loops for the axes of reductions */
  }
  if (ok && built) built = kern_emit(&k, roots);
  if (k.failed || k.ax.failed || !ok) compile_no_memory(c);
  else if (!built) out->why = k.why ? k.why : "a loop nest that cannot be built";
  if (roots) mem_free(c->alloc, roots, sizeof *roots * 2 * count);
  if (k.store) mem_free(c->alloc, k.store, sizeof *k.store * count);
  kern_done(&k);
  return built && !compile_stopped(c);
}

bool kernel_view_strides(Compiler *c, NodeId n, Dim *offset, Dim *strides, const char **why) {
  Kern k;
  Kernel none;
  Unit u = {0};
  const ArrayType t = *value_type(c->g, node_result(c->g, n, 0));
  bool ok = kern_init(&k, c, &u, UINT32_MAX, &none);
  *why = NULL;
  if (ok) {
    u32 ix = 0, affs[TYPE_MAX_RANK], task_made = 0, part = 0;
    ValueId v = node_result(c->g, n, 0);
    reset(&k);
    for (u32 d = 0; d < t.rank && !k.failed; d++) {
      u32 var = new_var(&k, 1, 0);
      affs[d] = var ? aff_var(&k.ax, var) : 0;
    }
    ok = !k.failed && !k.ax.failed;
    if (ok) ix = kern_vector(&k, &t, affs);
    ok = ok && !k.ax.failed && kern_view(&k, n, &v, &ix, &part, &task_made) && !task_made;
    if (ok) {
      const ArrayType bt = *value_type(c->g, v);
      const ValueInfo *info = value_info(c, v);
      Dim own[TYPE_MAX_RANK];
      u32 sum;
      if (info->strides) memcpy(own, c->strides.data + info->strides, bt.rank * sizeof *own);
      else dims_strides(c, bt.rank, bt.dims, own);
      if (ix_at(&k.ax, ix)->linear) sum = ix_item(&k.ax, ix, 0);
      else sum = ix_offset(&k.ax, ix, own);
      *offset = aff_at(&k.ax, sum)->c;
      memset(strides, 0, sizeof *strides * t.rank);
      for (u32 i = 0; i < aff_at(&k.ax, sum)->count; i++)
        strides[aff_terms(&k.ax, sum)[i].var - 1] = aff_terms(&k.ax, sum)[i].factor;
    }
  }
  if (k.failed || k.ax.failed) compile_no_memory(c);
  if (k.ax.too_big) ok = false;
  if (!ok) *why = k.why ? k.why : "a view that is no pattern of strides";
  kern_done(&k);
  return ok && !compile_stopped(c);
}
