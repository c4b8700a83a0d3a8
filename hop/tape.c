/* tape.c — recording on the gradient tape (see tape.h). */
#include "hop/tape.h"

#include <string.h>

#include "hop/tree.h"
#include "lang/mechanisms.h"
#include "tracer/record/record.h"
#include "tracer/record/record_ops.h"

/* ---- tapes and their values ------------------------------------------------------------------------------ */

Tape *tape_open(Vm *vm) {
  u32 level = (u32)(vm->ambient & AMBIENT_TAPE) + 1;
  if (level >= AMBIENT_TAPE) {
    (void)vm_error(vm, EK_limit, "grad: derivatives are nested more than %d deep", AMBIENT_TAPE - 1);
    return NULL;
  }
  Tape *t = mem_alloc_zero(&vm->alloc, sizeof *t);
  if (!t) {
    (void)vm_error_memory(vm);
    return NULL;
  }
  *t = (Tape){.refs = 1, .level = level, .live = true, .stand_in = value_hole()};
  vm->ambient++;
  vm->taped = true;
  return t;
}

void tape_close(Vm *vm, Tape *t) {
  if (!t->live) return;
  t->live = false;
  if (MECHANISM(vm, tape_levels_end)) vm->ambient--;
}

void tape_drop(Vm *vm, Tape *t) {
  if (--t->refs) return;
  for (u32 i = 0; i < t->entries.count; i++) mem_free(&vm->alloc, t->entries.data[i].items, t->entries.data[i].nitems);
  for (u32 i = 0; i < t->values.count; i++) value_drop(vm, t->values.data[i]);
  value_drop(vm, t->stand_in);
  vec_free(&vm->alloc, &t->entries);
  vec_free(&vm->alloc, &t->values);
  vec_free(&vm->alloc, &t->parents);
  mem_free(&vm->alloc, t, sizeof *t);
}

static void destroy(Vm *vm, void *tracked) {
  TapeValue *v = tracked;
  value_drop(vm, v->head.value);
  tape_drop(vm, v->tape);
  mem_free(&vm->alloc, v, sizeof *v);
}

static WeftStatus wrap(Vm *vm, Tape *t, Value v, u32 node, Value *out) { /* consumes v */
  TapeValue *w = mem_alloc_zero(&vm->alloc, sizeof *w);
  if (!w) {
    value_drop(vm, v);
    return vm_error_memory(vm);
  }
  *w = (TapeValue){.head = {.head = {.refs = 1}, .value = v}, .tape = t, .node = node};
  t->refs++;
  *out = value_obj(V_TRACKED, w);
  out->dtype = v.dtype;
  return WEFT_OK;
}

WeftStatus tape_variable(Vm *vm, Tape *t, Value v, Value *out) { return wrap(vm, t, v, ++t->nodes, out); }

/* The value of a dead tape stands for what it holds. */
static Value live_value(Value v) {
  while (v.kind == V_TRACKED && !((TapeValue *)v.p)->tape->live) v = ((TapeValue *)v.p)->head.value;
  return v;
}

void tape_split(Tape *t, Value v, Value *out, u32 *node) {
  *node = 0;
  while (v.kind == V_TRACKED) {
    TapeValue *w = v.p;
    if (w->tape == t) {
      *node = w->node;
      v = w->head.value;
    } else if (w->tape->live) {
      break;
    } else {
      v = w->head.value;
    }
  }
  *out = value_keep(v);
}

enum { STRIP_DEPTH = 1000 };

static WeftStatus strip(Vm *vm, Value v, u32 depth, Value *out) {
  if (v.kind == V_TRACKED) v = value_untracked(v);
  if (v.kind != V_LIST && v.kind != V_RECORD) {
    *out = value_keep(v);
    return WEFT_OK;
  }
  if (!cstack_has(CSTACK_CALL)) return vm_error_stack(vm);
  if (vm_walk(vm) != WEFT_OK) return WEFT_ERROR;
  if (depth > STRIP_DEPTH)
    return vm_error(vm, EK_limit, "a derivative: lists and records nested more than %d deep", STRIP_DEPTH);
  u32 n = v.kind == V_LIST ? v.list->count : v.record->shape->count;
  Value made;
  if (v.kind == V_LIST ? !list_new(vm, n, &made) : !record_new(vm, &made)) return WEFT_ERROR;
  for (u32 i = 0; i < n; i++) {
    Value item;
    bool ok = strip(vm, v.kind == V_LIST ? v.list->items[i] : v.record->items[i], depth + 1, &item) == WEFT_OK;
    if (ok) ok = v.kind == V_LIST ? list_push(vm, &made, item) : record_set(vm, &made, v.record->shape->keys[i], item);
    if (!ok) {
      value_drop(vm, made);
      return WEFT_ERROR;
    }
  }
  *out = made;
  return WEFT_OK;
}

WeftStatus tape_strip(Vm *vm, Value v, Value *out) { return strip(vm, v, 0, out); }

/* ---- entries ----------------------------------------------------------------------------------------------- */

static bool save(Vm *vm, Tape *t, Value v) {
  if (!vec_push(&vm->alloc, &t->values, v)) return false;
  value_keep(v);
  return true;
}

static bool save_own(Vm *vm, Tape *t, Value v) { /* consumes v */
  if (vec_push(&vm->alloc, &t->values, v)) return true;
  value_drop(vm, v);
  return false;
}

/* Does an array keep more than twice as much as it shows? Saved as it is it would also stand in the way of stores into
 * the whole. */
static bool is_small_part(const Array *a) {
  size_t own = (size_t)a->size * dtype_bytes(array_dtype(a));
  if (!a->owner || array_device(a) != DEV_CPU || array_layout(a) == LAY_BROADCAST) return false;
  size_t whole = a->head.flags & ARRAY_OWNER_ARRAY ? (size_t)a->base->size * dtype_bytes(array_dtype(a->base))
                                                   : a->storage->bytes;
  return whole / 2 > own + ARRAY_INLINE_MAX;
}

/* Saves v for a rule that reads it. */
static bool save_read(Vm *vm, Tape *t, Value v) {
  Value copy;
  if (v.kind != V_ARRAY || !is_small_part(v.array)) return save(vm, t, v);
  if (array_copy(vm, v.array, &copy) != WEFT_OK) return false;
  copy.flags |= v.flags & VF_WEAK; /* of c128 */
  return save_own(vm, t, copy);
}

/* Saves the type of v. */
static bool save_type(Vm *vm, Tape *t, Value v) {
  ArrayType want, have;
  Value plain = value_untracked(v), made;
  if (v.kind == V_LIST) {
    u32 first = t->values.count;
    bool ok = true;
    for (u32 i = 0; i < v.list->count && ok; i++) ok = save_type(vm, t, v.list->items[i]);
    ok = ok && list_from(vm, t->values.data + first, t->values.count - first, &made);
    while (t->values.count > first) value_drop(vm, t->values.data[--t->values.count]);
    return ok && save_own(vm, t, made);
  }
  if (plain.kind != V_ARRAY || array_device(plain.array) != DEV_CPU) return save(vm, t, plain);
  tree_leaf_type(plain, &want);
  tree_leaf_type(t->stand_in, &have);
  bool same = t->stand_in.kind == V_ARRAY && have.dtype == want.dtype && have.rank == want.rank &&
              memcmp(have.dims, want.dims, want.rank * sizeof want.dims[0]) == 0;
  if (!same) {
    if (tree_zero(vm, &want, &made) != WEFT_OK) return false;
    value_drop(vm, t->stand_in);
    t->stand_in = made;
  }
  return save(vm, t, t->stand_in);
}

static void tape_forget(Vm *vm, Tape *t, const TapeEntry *e) { /* what was saved for an entry that is not to be */
  while (t->values.count > e->first) value_drop(vm, t->values.data[--t->values.count]);
  t->parents.count = e->parents;
  mem_free(&vm->alloc, e->items, e->nitems);
}

static Tape *highest(Tape *best, Value v) {
  v = live_value(v);
  if (v.kind != V_TRACKED) return best;
  Tape *t = ((TapeValue *)v.p)->tape;
  return !best || t->level > best->level ? t : best;
}

/* Gives the results of an entry their nodes: *out (owned) is replaced by tracked values where there is a derivative. */
static WeftStatus track(Vm *vm, Tape *t, TapeEntry *e, bool read, Value *out) {
  bool list = out->kind == V_LIST;
  u32 n = list ? out->list->count : 1;
  bool any = false;
  e->library = (u16)library_op(vm);
  for (u32 i = 0; i < n; i++) {
    Value v = value_untracked(list ? out->list->items[i] : *out);
    any |= value_is_numeric(v) && deriv_dtype(v.dtype);
  }
  u32 values = t->values.count;
  if (!any) { /* constant */
    tape_forget(vm, t, e);
    return WEFT_OK;
  }
  e->result = t->nodes + 1;
  e->nresults = n;
  bool ok = true;
  for (u32 i = 0; i < n && ok; i++) ok = (read ? save_read : save_type)(vm, t, list ? out->list->items[i] : *out);
  e->count = t->values.count - e->first;
  if (!ok || !vec_push(&vm->alloc, &t->entries, *e)) {
    while (t->values.count > values) value_drop(vm, t->values.data[--t->values.count]);
    goto fail;
  }
  t->nodes += n;
  vm->counters.at[STAT_tape_nodes]++;
  if (!list) {
    Value v = *out;
    *out = value_hole();
    return wrap(vm, t, v, e->result, out);
  }
  Value made;
  if (!list_new(vm, n, &made)) goto dropped;
  for (u32 i = 0; i < n; i++) {
    Value w;
    if (wrap(vm, t, value_keep(out->list->items[i]), e->result + i, &w) == WEFT_OK && list_push(vm, &made, w)) continue;
    value_drop(vm, made);
    goto dropped;
  }
  value_drop(vm, *out);
  *out = made;
  return WEFT_OK;
fail:
  mem_free(&vm->alloc, e->items, e->nitems);
  (void)vm_error_memory(vm);
dropped:
  value_drop(vm, *out);
  *out = value_hole();
  return WEFT_ERROR;
}

static WeftStatus highest_of(Vm *vm, Tape **best, Value v, u32 depth) {
  *best = highest(*best, v);
  u32 n = v.kind == V_LIST ? v.list->count : v.kind == V_RECORD ? v.record->shape->count : 0;
  for (u32 i = 0; i < n && depth < 200; i++) {
    if (vm_walk(vm) != WEFT_OK) return WEFT_ERROR;
    if (highest_of(vm, best, v.kind == V_LIST ? v.list->items[i] : v.record->items[i], depth + 1) != WEFT_OK)
      return WEFT_ERROR;
  }
  return WEFT_OK;
}

WeftStatus tape_highest(Vm *vm, Tape **best, Value v) { return highest_of(vm, best, v, 0); }

WeftStatus tape_entry(Vm *vm, Tape *t, EntryKind kind, const Value *saved, u32 nsaved, const u32 *parents, u32 nparents,
                      Value *leaves) {
  TapeEntry e = {.kind = (u8)kind, .first = t->values.count, .parents = t->parents.count, .nparents = nparents};
  bool ok = true;
  for (u32 i = 0; i < nsaved && ok; i++) ok = save(vm, t, saved[i]);
  for (u32 i = 0; i < nparents && ok; i++) ok = vec_push(&vm->alloc, &t->parents, parents[i]);
  if (ok) return track(vm, t, &e, true, leaves);
  while (t->values.count > e.first) value_drop(vm, t->values.data[--t->values.count]);
  t->parents.count = e.parents;
  value_drop(vm, *leaves);
  *leaves = value_hole();
  return vm_error_memory(vm);
}

static WeftStatus fresh_leaf(Vm *vm, Value v, Value *out) {
  u32 node;
  Value x;
  v = live_value(v);
  if (v.kind != V_TRACKED) {
    *out = value_keep(v);
    return WEFT_OK;
  }
  Tape *t = ((TapeValue *)v.p)->tape;
  tape_split(t, v, &x, &node);
  WeftStatus status = fresh_leaf(vm, x, out);
  TapeEntry e = {.kind = ENTRY_op, .op = OP_positive, .first = t->values.count, .parents = t->parents.count,
                 .nparents = 1};
  if (status == WEFT_OK && save_type(vm, t, x) && vec_push(&vm->alloc, &t->parents, node)) {
    status = track(vm, t, &e, false, out);
  } else if (status == WEFT_OK) {
    value_drop(vm, *out);
    tape_forget(vm, t, &e);
    status = vm->error.raised ? WEFT_ERROR : vm_error_memory(vm);
  }
  value_drop(vm, x);
  return status;
}

WeftStatus tape_fresh(Vm *vm, Value *tree) {
  Leaves leaves = {0}, made = {0};
  u32 next = 0;
  Value out;
  Tape *highest = NULL;
  if (tape_highest(vm, &highest, *tree) != WEFT_OK) return WEFT_ERROR;
  if (!highest) return WEFT_OK;
  WeftStatus status = tree_leaves_of(vm, *tree, &leaves);
  for (u32 i = 0; i < leaves.count && status == WEFT_OK; i++) {
    Value v;
    status = fresh_leaf(vm, leaves.data[i], &v);
    if (status != WEFT_OK || vec_push(&vm->alloc, &made, v)) continue;
    value_drop(vm, v);
    status = vm_error_memory(vm);
  }
  if (status == WEFT_OK) status = tree_with(vm, *tree, made.data, &next, &out);
  if (status == WEFT_OK) {
    value_drop(vm, *tree);
    *tree = out;
  }
  for (u32 i = 0; i < made.count; i++) value_drop(vm, made.data[i]);
  leaves_free(vm, &made);
  leaves_free(vm, &leaves);
  return status;
}

/* ---- operations ----------------------------------------------------------------------------------------------- */

/* Operations on structure, which leave leaves alone, and constructs: their kernels take tracked values as they are. */
static bool passes_through(u32 op) {
  return op_info(op)->family == FAM_control || op_info(op)->family == FAM_tree;
}

/* diff of an array with another in front or behind: its kernel calls operations on tracked values. */
static bool is_joined(const Value *args) {
  for (u32 i = 3; i < 5; i++)
    if (args[i].kind != V_HOLE && args[i].kind != V_NIL) return true;
  return false;
}

static bool only_reads(u32 op) {
  u32 family = op_info(op)->family;
  return family == FAM_tree || family == FAM_data || family == FAM_text || family == FAM_io || !op_is_pure(op);
}

static WeftStatus run_stripped(Vm *vm, u32 op, Value *args, Value *out) {
  Value plain[OP_MAX_PARAMS];
  u32 n = op_info(op)->nparams, made = 0;
  WeftStatus status = WEFT_OK;
  for (; made < n && status == WEFT_OK; made++) {
    plain[made] = value_hole();
    status = tape_strip(vm, args[made], &plain[made]);
  }
  if (status == WEFT_OK) status = vm_op(vm, op, plain, out);
  for (u32 i = 0; i < made; i++) value_drop(vm, plain[i]);
  return status;
}

/* A nested list with tracked numbers in it as an array. */
static WeftStatus array_of_lists(Vm *vm, Value v, u32 depth, Value *out) {
  if (v.kind == V_RANGE) {
    Value args[OP_MAX_PARAMS] = {v, value_hole()};
    return vm_op(vm, OP_array, args, out);
  }
  if (v.kind != V_LIST) {
    *out = value_keep(v);
    return WEFT_OK;
  }
  if (vm_walk(vm) != WEFT_OK) return WEFT_ERROR;
  if (depth > ARRAY_MAX_RANK) return vm_error(vm, EK_shape, "array: more than %d axes", ARRAY_MAX_RANK);
  Value rows;
  if (!list_new(vm, v.list->count, &rows)) return WEFT_ERROR;
  for (u32 i = 0; i < v.list->count; i++) {
    Value row;
    if (array_of_lists(vm, v.list->items[i], depth + 1, &row) == WEFT_OK && list_push(vm, &rows, row)) continue;
    value_drop(vm, rows);
    return WEFT_ERROR;
  }
  WeftStatus status = vm_array_literal(vm, rows.list->items, rows.list->count, out);
  value_drop(vm, rows);
  return status;
}

bool tape_is_setting(u32 op, u32 param, Value v) {
  const OpParam *p = &op_info(op)->params[param];
  v = value_untracked(v);
  return v.kind == V_ARRAY && array_rank(v.array) > 0 ? param_keeps_arrays(p) : param_is_setting(p);
}

/* Does the parameter hold operands? An argument that is a list of them (concat) holds several. */
static bool holds_operands(u32 op, u32 param, Value v) {
  if (tape_is_setting(op, param, v)) return false;
  if (v.kind == V_LIST) return param_joins(&op_info(op)->params[param]);
  return value_is_numeric(value_untracked(v));
}

/* Does v, or what is in it, depend on this tape by a number that can change by little? */
static bool depends(Tape *t, Value v, u32 depth) {
  v = live_value(v);
  if (v.kind == V_TRACKED) return ((TapeValue *)v.p)->tape == t && deriv_dtype(value_untracked(v).dtype);
  for (u32 i = 0; v.kind == V_LIST && depth < ARRAY_MAX_RANK && i < v.list->count; i++)
    if (depends(t, v.list->items[i], depth + 1)) return true;
  return false;
}

/* v without the tape, and the node of each operand in it. */
static bool split_argument(Vm *vm, Tape *t, Value v, bool operands, Value *out) {
  u32 node;
  if (v.kind != V_LIST) {
    tape_split(t, v, out, &node);
    return !operands || vec_push(&vm->alloc, &t->parents, node) || vm_error_memory(vm) == WEFT_OK;
  }
  if (!list_new(vm, v.list->count, out)) return false;
  for (u32 i = 0; i < v.list->count; i++) {
    Value item;
    tape_split(t, v.list->items[i], &item, &node);
    if (!list_push(vm, out, item)) return false;
    if (operands && !vec_push(&vm->alloc, &t->parents, node)) return vm_error_memory(vm) == WEFT_OK;
  }
  return true;
}

/* What the rule of the entry needs of its arguments. */
static bool save_arguments(Vm *vm, Tape *t, const TapeEntry *e, const Value *args, const bool *wants) {
  u32 at = 0;
  bool ok = true;
  for (u32 p = 0; p < op_info(e->op)->nparams && ok; p++) {
    Value v = args[p];
    bool operands = holds_operands(e->op, p, v);
    if (!operands) {
      ok = save(vm, t, v);
      continue;
    }
    bool list = v.kind == V_LIST, reads = false;
    for (u32 i = 0; i < (list ? v.list->count : 1); i++) reads |= deriv_reads(e->op, at++, wants, e->nparents);
    ok = list && reads ? save(vm, t, v) : (reads ? save_read : save_type)(vm, t, v);
  }
  return ok;
}

static WeftStatus record_op(Vm *vm, Tape *t, u32 op, Value *args, Value *out) {
  u32 n = op_info(op)->nparams, made = 0;
  Value inner[OP_MAX_PARAMS];
  TapeEntry e = {.kind = ENTRY_op, .op = (u16)op, .first = t->values.count, .parents = t->parents.count};
  bool ok = true, few[8], *wants = few;
  for (; made < n && ok; made++) {
    bool operands = holds_operands(op, made, args[made]);
    inner[made] = value_hole();
    if (!operands && depends(t, args[made], 0)) {
      e.setting = (u8)(made + 1);
      e.handed = (u8)(library_param(vm, op, made) + 1);
    }
    ok = split_argument(vm, t, args[made], operands, &inner[made]);
  }
  e.nparents = t->parents.count - e.parents;
  if (ok && e.nparents > COUNT_OF(few))
    ok = (wants = mem_alloc(&vm->alloc, e.nparents)) || vm_error_memory(vm) == WEFT_OK;
  for (u32 i = 0; i < e.nparents && ok; i++) wants[i] = t->parents.data[e.parents + i] != 0;
  WeftStatus status = ok ? vm_op(vm, op, inner, out) : WEFT_ERROR;
  if (status == WEFT_OK && !save_arguments(vm, t, &e, inner, wants)) {
    value_drop(vm, *out);
    *out = value_hole();
    status = vm->error.raised ? WEFT_ERROR : vm_error_memory(vm);
  }
  for (u32 i = 0; i < made; i++) value_drop(vm, inner[i]);
  if (status == WEFT_OK) status = track(vm, t, &e, deriv_reads_results(op, wants, e.nparents), out);
  else tape_forget(vm, t, &e);
  if (wants != few) mem_free(&vm->alloc, wants, e.nparents);
  return status;
}

/* The items of a list, as they are, in the order of what they stand for. */
static WeftStatus sorted_list(Vm *vm, Value *args, Value *out) {
  Value order;
  if (run_stripped(vm, OP_argsort, args, &order) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = vm_index(vm, args[0], (u8[]){IX_VALUE}, 1, &order, out);
  value_drop(vm, order);
  return status;
}

static WeftStatus on_op(Vm *vm, u32 op, Value *args, Value *out) {
  u32 n = op_info(op)->nparams;
  if (passes_through(op) || (op == OP_diff && is_joined(args))) {
    if (!vm->ops[op].eager) return vm_error(vm, EK_unsupported, "%s: not supported", op_name(op));
    return vm->ops[op].eager(vm, args, out);
  }
  if (op == OP_array && args[0].kind == V_LIST) {
    Value plain, params[OP_MAX_PARAMS] = {value_nil(), value_nil()};
    /* says what is wrong, and the dtype of all items together */
    if (run_stripped(vm, op, args, &plain) != WEFT_OK) return WEFT_ERROR;
    u32 dtype = plain.kind == V_ARRAY ? array_dtype(plain.array) : plain.dtype;
    value_drop(vm, plain);
    if (array_of_lists(vm, args[0], 0, &params[0]) != WEFT_OK) return WEFT_ERROR;
    if (value_untracked(params[0]).kind == V_ARRAY && array_dtype(value_untracked(params[0]).array) == dtype) {
      *out = params[0];
      return WEFT_OK;
    }
    params[1] = value_dtype(dtype);
    WeftStatus status = vm_op(vm, OP_astype, params, out);
    value_drop(vm, params[0]);
    return status;
  }
  if (op == OP_sort && args[0].kind == V_LIST) return sorted_list(vm, args, out);
  if ((op == OP_concat || op == OP_stack) && args[0].kind == V_TRACKED) { /* its rows */
    Value rows, params[OP_MAX_PARAMS];
    Value from[2] = {value_keep(args[0]), value_hole()};
    if (vm_op(vm, OP_unstack, from, &rows) != WEFT_OK) {
      value_drop(vm, from[0]);
      return WEFT_ERROR;
    }
    value_drop(vm, from[0]);
    memcpy(params, args, sizeof *params * n);
    params[0] = rows;
    WeftStatus status = vm_op(vm, op, params, out);
    value_drop(vm, params[0]);
    return status;
  }
  Tape *t = NULL;
  for (u32 i = 0; i < n; i++) {
    t = highest(t, args[i]);
    if (args[i].kind != V_LIST) continue;
    for (u32 k = 0; k < args[i].list->count; k++) t = highest(t, args[i].list->items[k]);
  }
  if (!t || only_reads(op) || deriv_is_zero(op, value_untracked(args[0]).dtype)) return run_stripped(vm, op, args, out);
  if (tape_has_parts(op, args)) {
    Value plain;
    if (run_stripped(vm, op, args, &plain) != WEFT_OK) return WEFT_ERROR; /* says what is wrong */
    WeftStatus status = tape_parts(vm, op, args, &plain, out);
    value_drop(vm, plain);
    return status;
  }
  return record_op(vm, t, op, args, out);
}

/* ---- indexing --------------------------------------------------------------------------------------------------- */

static u32 registers_of(const u8 *items, u32 count) {
  u32 n = 0;
  for (u32 i = 0; i < count; i++) n += items[i] == IX_VALUE ? 1 : items[i] == IX_SLICE ? 3 : 0;
  return n;
}

static bool save_items(Vm *vm, TapeEntry *e, const u8 *items, u32 count) {
  if (count == 0) return true;
  e->items = mem_alloc(&vm->alloc, count);
  if (!e->items) return false;
  memcpy(e->items, items, count);
  e->nitems = count;
  return true;
}

enum { INDEX_REGISTERS = 3 * ARRAY_MAX_RANK };

static WeftStatus too_many_items(Vm *vm) {
  return vm_error(vm, EK_index, "an index has more items than an array has axes");
}

static WeftStatus on_index(Vm *vm, Value obj, const Desc *d, const Value *regs, Value *out) {
  Value plain[INDEX_REGISTERS], x;
  u32 n = registers_of(d->items, d->item_count), node;
  obj = live_value(obj);
  if (n > COUNT_OF(plain)) return too_many_items(vm);
  for (u32 i = 0; i < n; i++) plain[i] = value_untracked(regs[i]);
  if (obj.kind != V_TRACKED) return vm_index(vm, obj, d->items, d->item_count, plain, out);
  Tape *t = ((TapeValue *)obj.p)->tape;
  tape_split(t, obj, &x, &node);
  if (vm_index(vm, x, d->items, d->item_count, plain, out) != WEFT_OK) {
    value_drop(vm, x);
    return WEFT_ERROR;
  }
  TapeEntry e = {.kind = ENTRY_index, .first = t->values.count, .parents = t->parents.count, .nparents = 1};
  bool ok = save_type(vm, t, x) && vec_push(&vm->alloc, &t->parents, node);
  for (u32 i = 0; i < n && ok; i++) ok = save(vm, t, plain[i]);
  ok = ok && save_items(vm, &e, d->items, d->item_count);
  value_drop(vm, x);
  if (ok) return track(vm, t, &e, false, out);
  tape_forget(vm, t, &e);
  value_drop(vm, *out);
  return vm->error.raised ? WEFT_ERROR : vm_error_memory(vm);
}

/* The value of *root without the tape (NULL: without those that have ended), for a store into it. Where nobody else
 * holds it, it is taken out, and the store happens in place; put_back undoes that. */
static Value take_out(Tape *t, Value *root, u32 *node) {
  Value x = *root;
  TapeValue *w = x.kind == V_TRACKED ? x.p : NULL;
  *node = 0;
  if (w && (!w->tape->live || (w->tape == t && w->head.head.refs > 1))) {
    tape_split(t, *root, &x, node);
  } else if (w && w->tape == t) {
    *node = w->node;
    x = w->head.value;
    w->head.value = value_hole();
  } else { /* constant for this tape */
    *root = value_hole();
  }
  return x;
}

static void put_back(Vm *vm, Value *root, Value x) { /* consumes x */
  TapeValue *w = root->kind == V_TRACKED ? root->p : NULL;
  if (root->kind == V_HOLE) *root = x;
  else if (w && w->head.value.kind == V_HOLE) w->head.value = x;
  else value_drop(vm, x);
}

/* root[items] = value, or combined by `op` (BcOp), as one entry. Borrows value. */
static WeftStatus assign(Vm *vm, Value *root, const u8 *items, u32 nitems, const Value *keys, u32 op, Value value) {
  Value plain[INDEX_REGISTERS], v;
  u32 n = registers_of(items, nitems), nx, nv;
  Tape *t = highest(highest(NULL, *root), value);
  if (n > COUNT_OF(plain)) return too_many_items(vm);
  for (u32 i = 0; i < n; i++) plain[i] = value_untracked(keys[i]);
  PathStep step = {.kind = STEP_INDEX, .item_count = nitems};
  Desc d = {.kind = DESC_PATH, .items = items, .item_count = nitems, .step_count = 1, .steps = &step, .op = (u8)op,
            .root = ROOT_REGISTER};
  if (!t) { /* tapes that have ended at most */
    Value whole = take_out(NULL, root, &nx);
    WeftStatus status = vm_update(vm, &whole, &d, plain, value_keep(live_value(value)));
    if (status != WEFT_OK) {
      put_back(vm, root, whole);
      return status;
    }
    value_drop(vm, *root);
    *root = whole;
    return WEFT_OK;
  }
  TapeEntry e = {.kind = ENTRY_update, .op = (u16)op, .first = t->values.count, .parents = t->parents.count,
                 .nparents = 2};
  bool reads = op == BC_mul || op == BC_div;
  Value made = take_out(t, root, &nx);
  tape_split(t, value, &v, &nv);
  bool ok = (reads ? save : save_type)(vm, t, made) && (reads ? save_read : save_type)(vm, t, v);
  ok = ok && vec_push(&vm->alloc, &t->parents, nx) && vec_push(&vm->alloc, &t->parents, nv);
  for (u32 i = 0; i < n && ok; i++) ok = save(vm, t, plain[i]);
  ok = ok && save_items(vm, &e, items, nitems);
  WeftStatus status = ok ? assign(vm, &made, items, nitems, plain, op, v) : vm->error.raised ? WEFT_ERROR
                         : vm_error_memory(vm);
  value_drop(vm, v);
  if (status != WEFT_OK) {
    tape_forget(vm, t, &e);
    put_back(vm, root, made);
    return status;
  }
  Value written = value_keep(made);
  status = track(vm, t, &e, reads, &made);
  if (status != WEFT_OK) {
    put_back(vm, root, written);
    return status;
  }
  value_drop(vm, written);
  value_drop(vm, *root);
  *root = made;
  return WEFT_OK;
}

WeftStatus tape_write(Vm *vm, Value *x, const u8 *items, u32 nitems, const Value *keys, u32 op, Value v) {
  return assign(vm, x, items, nitems, keys, op, v);
}

static bool by_arrays(const u8 *items, u32 nitems, const Value *keys) {
  u32 n = registers_of(items, nitems);
  for (u32 i = 0; i < n; i++) {
    u8 kind = value_untracked(keys[i]).kind;
    if (kind == V_ARRAY || kind == V_LIST) return true;
  }
  return false;
}

/* x with another shape, by reshape or broadcast_to. */
static WeftStatus with_shape(Vm *vm, u32 op, Value x, const ArrayType *t, Value *out) {
  Value args[OP_MAX_PARAMS];
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) args[i] = value_hole();
  args[0] = value_keep(x);
  bool ok = list_new(vm, t->rank, &args[1]);
  for (u32 i = 0; i < t->rank && ok; i++) ok = list_push(vm, &args[1], value_weak_i64(t->dims[i]));
  WeftStatus status = ok ? vm_op(vm, op, args, out) : WEFT_ERROR;
  value_drop(vm, args[0]);
  value_drop(vm, args[1]);
  return status;
}

/* root[items] = root[items] op value */
static WeftStatus combine_at(Vm *vm, Value *root, const u8 *items, u32 nitems, const Value *keys, u32 op, Value value) {
  Value old, next;
  if (vm_index(vm, *root, items, nitems, keys, &old) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = vm_binary(vm, op, old, value, &next);
  value_drop(vm, old);
  if (status != WEFT_OK) return status;
  status = assign(vm, root, items, nitems, keys, BC_move, next);
  value_drop(vm, next);
  return status;
}

/* Those of `places` that were named `round` times before, and which of them they are: vectors of their own. `seen` is
 * how often each place was named. */
static WeftStatus of_round(Vm *vm, Value places, u32 round, u32 *seen, i64 size, Value *at, Value *which, i64 *left) {
  const i64 *p = places.array->data;
  i64 n = 0, most = places.array->size;
  memset(seen, 0, sizeof *seen * (size_t)size);
  for (i64 k = 0; k < most; k++) n += seen[p[k]]++ == round;
  memset(seen, 0, sizeof *seen * (size_t)size);
  if (array_new(vm, DT_i64, 1, &n, at) != WEFT_OK) return WEFT_ERROR;
  if (array_new(vm, DT_i64, 1, &n, which) != WEFT_OK) {
    value_drop(vm, *at);
    return WEFT_ERROR;
  }
  i64 *to = at->array->data, *of = which->array->data;
  for (i64 k = 0, i = 0; k < most; k++) {
    if (seen[p[k]]++ != round) continue;
    to[i] = p[k];
    of[i++] = k;
  }
  *left -= n;
  return WEFT_OK;
}

/* root[items] op= value at places given by arrays, which may name a place twice: operators that have no rule of
 * their own for that are applied in rounds, in each to every place once. Borrows value. */
static WeftStatus combine_in_rounds(Vm *vm, Value *root, const u8 *items, u32 nitems, const Value *keys, u32 op,
                                    Value value) {
  Value whole = value_untracked(*root), number, shaped, places, flat, wide, line, made;
  ArrayType t, selected, one = {.rank = 1};
  tape_type(whole, &t);
  one.dims[0] = 1;
  for (u32 i = 0; i < t.rank; i++) one.dims[0] *= t.dims[i];
  i64 size = one.dims[0];
  Value args[OP_MAX_PARAMS] = {value_weak_i64(size), value_nil(), value_weak_i64(1), value_nil(), value_nil()};
  if (vm_op(vm, OP_arange, args, &number) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = with_shape(vm, OP_reshape, number, &t, &shaped);
  value_drop(vm, number);
  if (status != WEFT_OK) return status;
  status = vm_index(vm, shaped, items, nitems, keys, &places);
  value_drop(vm, shaped);
  if (status != WEFT_OK) return status;
  if (places.kind != V_ARRAY || !array_dense(places.array)) { /* by a mask of rank 0: no place twice */
    value_drop(vm, places);
    return combine_at(vm, root, items, nitems, keys, op, value);
  }
  tape_type(places, &selected);
  i64 left = one.dims[0] = places.array->size;
  u32 *seen = mem_alloc(&vm->alloc, sizeof *seen * (size_t)(size + 1));
  status = seen ? with_shape(vm, OP_broadcast_to, value, &selected, &wide) : vm_error_memory(vm);
  if (status == WEFT_OK) {
    status = with_shape(vm, OP_reshape, wide, &one, &line);
    value_drop(vm, wide);
    one.dims[0] = size;
    if (status == WEFT_OK && (status = with_shape(vm, OP_reshape, *root, &one, &flat)) != WEFT_OK) value_drop(vm, line);
  }
  if (status == WEFT_OK) {
    for (u32 round = 0; left && status == WEFT_OK; round++) {
      Value at, which, part;
      status = of_round(vm, places, round, seen, size, &at, &which, &left);
      if (status != WEFT_OK) break;
      status = vm_index(vm, line, (u8[]){IX_VALUE}, 1, &which, &part);
      if (status == WEFT_OK) {
        status = combine_at(vm, &flat, (u8[]){IX_VALUE}, 1, &at, op, part);
        value_drop(vm, part);
      }
      value_drop(vm, at);
      value_drop(vm, which);
    }
    if (status == WEFT_OK && (status = with_shape(vm, OP_reshape, flat, &t, &made)) == WEFT_OK) {
      value_drop(vm, *root);
      *root = made;
    }
    value_drop(vm, flat);
    value_drop(vm, line);
  }
  if (seen) mem_free(&vm->alloc, seen, sizeof *seen * (size_t)(size + 1));
  value_drop(vm, places);
  return status;
}

/* root[items] op= value without tapes: says what is wrong with it. */
static WeftStatus try_without(Vm *vm, Value root, const u8 *items, u32 nitems, const Value *keys, u32 op,
                              Value value) {
  Value whole, plain[INDEX_REGISTERS], given;
  u32 n = registers_of(items, nitems);
  PathStep step = {.kind = STEP_INDEX, .item_count = nitems};
  Desc d = {.kind = DESC_PATH, .items = items, .item_count = nitems, .step_count = 1, .steps = &step, .op = (u8)op,
            .root = ROOT_REGISTER};
  if (n > COUNT_OF(plain)) return too_many_items(vm);
  for (u32 i = 0; i < n; i++) plain[i] = value_untracked(keys[i]);
  if (tape_strip(vm, root, &whole) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = tape_strip(vm, value, &given);
  if (status == WEFT_OK) status = vm_update(vm, &whole, &d, plain, given);
  value_drop(vm, whole);
  return status;
}

/* The same for a program's statement. `root[items] op= value` at plain places reads, computes and writes, as compiled
 * code has it. */
static WeftStatus assign_statement(Vm *vm, Value *root, const u8 *items, u32 nitems, const Value *keys, u32 op,
                                   Value value) {
  Value whole = value_untracked(*root);
  u32 dtype = whole.kind == V_ARRAY ? array_dtype(whole.array) : whole.dtype;
  bool arrays = by_arrays(items, nitems, keys), ruled = op == BC_add || op == BC_sub || op == BC_mul || op == BC_div;
  if (op == BC_move || (arrays && ruled) || !deriv_dtype(dtype) || !value_is_numeric(value_untracked(value)))
    return assign(vm, root, items, nitems, keys, op, value);
  if (!arrays) return combine_at(vm, root, items, nitems, keys, op, value);
  if (try_without(vm, *root, items, nitems, keys, op, value) != WEFT_OK) return WEFT_ERROR;
  return combine_in_rounds(vm, root, items, nitems, keys, op, value);
}

/* Steps from `first` on, all of them indices into the array and its parts. Borrows value. */
static WeftStatus update_steps(Vm *vm, Value *root, const Desc *d, u32 first, const Value *keys, Value value,
                               u32 depth) {
  const PathStep *s = &d->steps[first];
  const u8 *items = d->items + s->item_first;
  if (s->kind != STEP_INDEX)
    return vm_error(vm, EK_type, "the property '%s' of an array cannot be assigned", name_text(&vm->names, s->field));
  if (first + 1 == d->step_count) return assign_statement(vm, root, items, s->item_count, keys, d->op, value);
  Value part;
  if (depth > ARRAY_MAX_RANK) return too_many_items(vm);
  if (vm_index(vm, *root, items, s->item_count, keys, &part) != WEFT_OK) return WEFT_ERROR;
  WeftStatus status = update_steps(vm, &part, d, first + 1, keys + registers_of(items, s->item_count),
                                   value, depth + 1);
  if (status == WEFT_OK) status = assign(vm, root, items, s->item_count, keys, BC_move, part);
  value_drop(vm, part);
  return status;
}

static WeftStatus on_update(Vm *vm, Value *root, const Desc *d, u32 first_step, const Value *keys, Value value) {
  WeftStatus status = update_steps(vm, root, d, first_step, keys, value, 0);
  value_drop(vm, value);
  return status;
}

const TapeHooks tape_hooks = {.op = on_op, .index = on_index, .update = on_update, .destroy = destroy};
