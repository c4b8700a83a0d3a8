/* tape_pull.c — the way back over a tape: the rules of deriv.h run on values. */
#include "hop/custom.h"
#include "hop/rules.h"
#include "hop/tape.h"

#include <math.h>
#include <string.h>

#include "tracer/record/record.h"

/* Handles are positions in `pool`, from 1. */
typedef struct ValueDeriv {
  Deriv head;
  Vm *vm;
  const Tape *tape;
  const TapeEntry *entry;
  VEC(Value) pool;
} ValueDeriv;

void tape_type(Value v, ArrayType *t) {
  bool weak;
  v = value_untracked(v);
  weak = value_is_weak(v);
  *t = (ArrayType){.dtype = v.dtype, .weak = weak};
  if (v.kind != V_ARRAY) return;
  t->dtype = (u8)array_dtype(v.array);
  t->rank = (u8)array_rank(v.array);
  t->device = t->rank ? (u8)array_device(v.array) : 0;
  memcpy(t->dims, array_dims(v.array), t->rank * sizeof t->dims[0]);
}

WeftStatus tape_zeros(Vm *vm, const ArrayType *t, Value *out) {
  if (array_new_zero(vm, t->dtype, t->rank, t->dims, out) != WEFT_OK) return WEFT_ERROR;
  *out = array_finish(vm, *out);
  if (!t->device) return WEFT_OK;
  Value here = *out;
  WeftStatus status = value_moved(vm, here, t->device, out);
  value_drop(vm, here);
  return status;
}

WeftStatus tape_sum(Vm *vm, Value a, Value b, Value *out) {
  if (a.kind == V_HOLE || b.kind == V_HOLE) {
    *out = a.kind == V_HOLE ? b : a;
    return WEFT_OK;
  }
  Value args[2] = {a, b};
  WeftStatus status = vm_op(vm, OP_add, args, out);
  value_drop(vm, args[0]);
  value_drop(vm, args[1]);
  return status;
}

/* ---- values for rules --------------------------------------------------------------------------------------- */

static Dv handle(ValueDeriv *d, Value v) { /* consumes v */
  if (vec_push(&d->vm->alloc, &d->pool, v)) return d->pool.count;
  value_drop(d->vm, v);
  (void)vm_error_memory(d->vm);
  d->head.failed = true;
  return 0;
}

/* The error stands in the VM. */
static Dv none(ValueDeriv *d) {
  d->head.failed = true;
  return 0;
}

static Value at(Deriv *d, Dv x) { /* borrowed; no value, after a refusal, stands as a number */
  if (x) return ((ValueDeriv *)d)->pool.data[x - 1];
  d->failed = true;
  return value_weak_f64(0);
}

/* A setting as its parameter takes it; a hole when memory was refused. */
static bool setting(Vm *vm, const GraphAttr *a, Value *out) {
  switch (a->kind) {
    case ATTR_nil: *out = value_nil(); return true;
    case ATTR_bool: *out = value_bool(a->i != 0); return true;
    case ATTR_int: *out = value_weak_i64(a->i); return true;
    case ATTR_dim: *out = value_weak_i64(a->dim); return true;
    case ATTR_float: *out = value_weak_f64(a->f); return true;
    case ATTR_dtype: *out = value_dtype((u32)a->i); return true;
    case ATTR_text: return text_new(vm, a->text, a->count, out);
    case ATTR_ints:
    case ATTR_dims: {
      u32 width = a->pairs ? 2 : 1;
      if (!list_new(vm, a->count / width, out)) return false;
      for (u32 i = 0; i < a->count; i += width) {
        Value item = value_weak_i64(a->ints[i]);
        if (a->pairs && !list_from(vm, (Value[]){item, value_weak_i64(a->ints[i + 1])}, 2, &item)) goto fail;
        if (list_push(vm, out, item)) continue;
      fail:
        value_drop(vm, *out);
        *out = value_hole();
        return false;
      }
      return true;
    }
    default: *out = value_hole(); return true;
  }
}

static Dv tape_run(Deriv *deriv, u32 op, const Dv *operands, u32 count, const GraphAttr *attrs, u32 nattrs) {
  ValueDeriv *d = (ValueDeriv *)deriv;
  Vm *vm = d->vm;
  Value args[OP_MAX_PARAMS], out;
  u32 n = op_info(op)->nparams, next = 0;
  bool ok = true;
  for (u32 p = 0; p < n; p++) {
    const GraphAttr *a = NULL;
    args[p] = value_hole();
    for (u32 i = 0; i < nattrs && !a; i++)
      if (attrs[i].param == p) a = &attrs[i];
    if (!ok) continue;
    if (a && a->kind == ATTR_list) {
      ok = list_new(vm, a->count, &args[p]);
      for (u32 i = 0; i < a->count && ok; i++) ok = list_push(vm, &args[p], value_keep(at(deriv, operands[next++])));
    } else if (a) {
      ok = setting(vm, a, &args[p]);
    } else if (next < count) {
      args[p] = value_keep(at(deriv, operands[next++]));
    }
  }
  ok = ok && op_of_graph(vm, op, args, &out) == WEFT_OK;
  for (u32 p = 0; p < n; p++) value_drop(vm, args[p]);
  return ok ? handle(d, out) : none(d);
}

static ArrayType tape_type_of(Deriv *d, Dv x) {
  ArrayType t;
  tape_type(at(d, x), &t);
  return t;
}

static Dv tape_number(Deriv *d, f64 v) { return handle((ValueDeriv *)d, value_weak_f64(v)); }
static Dv tape_size(Deriv *d, Dim n) { return handle((ValueDeriv *)d, value_weak_i64(n)); }

static Dv tape_make_zeros(Deriv *d, const ArrayType *t) {
  Value v;
  return tape_zeros(((ValueDeriv *)d)->vm, t, &v) == WEFT_OK ? handle((ValueDeriv *)d, v) : none((ValueDeriv *)d);
}

static bool tape_known(Deriv *d, Dv x, f64 *out) {
  Value v = value_untracked(at(d, x));
  if (v.kind != V_NUM) return false;
  *out = num_as_f64(v);
  return true;
}

static bool tape_same(Deriv *d, Dim a, Dim b) {
  (void)d;
  return a == b;
}
static f64 tape_about(Deriv *d, Dim n) {
  (void)d;
  return n > 0 ? (f64)n : 1;
}

static Dim tape_dim(Deriv *d, char op, Dim a, Dim b) {
  (void)d;
  return dim_binary(NULL, op, a, b);
}

/* ---- indices --------------------------------------------------------------------------------- */

enum { AXIS_REGISTERS = 3 * ARRAY_MAX_RANK };

static u32 along(u32 axis, u8 *items, Value *regs) { /* whole axes before it; registers used */
  for (u32 i = 0; i < axis; i++) items[i] = IX_SLICE;
  for (u32 i = 0; i < 3 * axis; i++) regs[i] = value_nil();
  return 3 * axis;
}

static Dv read_items(ValueDeriv *d, Dv x, const u8 *items, u32 n, const Value *regs) {
  Value out;
  if (!x || vm_index(d->vm, at(&d->head, x), items, n, regs, &out) != WEFT_OK) return none(d);
  return handle(d, out);
}

/* Uses x up: what it stands for is written in place when nobody else holds it. */
static Dv write_items(ValueDeriv *d, u32 combine, Dv x, const u8 *items, u32 n, const Value *regs, Dv v) {
  u32 op = combine == OP_add ? BC_add : combine == OP_multiply ? BC_mul : combine == OP_divide ? BC_div : BC_move;
  if (!x || !v) return none(d);
  Value made = d->pool.data[x - 1], given = value_keep(at(&d->head, v));
  d->pool.data[x - 1] = value_nil();
  WeftStatus status = tape_write(d->vm, &made, items, n, regs, op, given);
  value_drop(d->vm, given);
  if (status == WEFT_OK) return handle(d, made);
  value_drop(d->vm, made);
  return none(d);
}

static Dv tape_part(Deriv *d, Dv x, u32 axis, Dim start, Dim stop) {
  u8 items[ARRAY_MAX_RANK];
  Value regs[AXIS_REGISTERS];
  u32 n = along(axis, items, regs);
  items[axis] = IX_SLICE;
  regs[n] = value_weak_i64(start);
  regs[n + 1] = value_weak_i64(stop);
  regs[n + 2] = value_nil();
  return read_items((ValueDeriv *)d, x, items, axis + 1, regs);
}

static Dv tape_add_at(Deriv *d, Dv x, u32 axis, Dv indices, Dv v) {
  u8 items[ARRAY_MAX_RANK];
  Value regs[AXIS_REGISTERS];
  u32 n = along(axis, items, regs);
  items[axis] = IX_VALUE;
  regs[n] = value_untracked(at(d, indices));
  return write_items((ValueDeriv *)d, OP_add, x, items, axis + 1, regs, v);
}

static Dv tape_add_items(Deriv *d, Dv x, const Dv *indices, u32 n, Dv v) {
  u8 items[ARRAY_MAX_RANK];
  Value regs[ARRAY_MAX_RANK];
  for (u32 i = 0; i < n; i++) {
    items[i] = IX_VALUE;
    regs[i] = value_untracked(at(d, indices[i]));
  }
  return write_items((ValueDeriv *)d, OP_add, x, items, n, regs, v);
}

static const Value *keys_of(const ValueDeriv *d) {
  return d->tape->values.data + d->entry->first + (d->entry->kind == ENTRY_update ? 2 : 1);
}

static bool tape_repeats(Deriv *deriv, const DerivNode *n) {
  const ValueDeriv *d = (const ValueDeriv *)deriv;
  const Value *key = keys_of(d);
  (void)n;
  for (u32 i = 0; i < d->entry->nitems; i++) {
    if (d->entry->items[i] == IX_VALUE && key->kind == V_ARRAY && array_dtype(key->array) != DT_bool) return true;
    key += d->entry->items[i] == IX_VALUE ? 1 : d->entry->items[i] == IX_SLICE ? 3 : 0;
  }
  return false;
}

static Dv tape_index_again(Deriv *deriv, const DerivNode *n, Dv x) {
  ValueDeriv *d = (ValueDeriv *)deriv;
  (void)n;
  Dv v = read_items(d, x, d->entry->items, d->entry->nitems, keys_of(d));
  if (!v) return 0;
  Value *part = &d->pool.data[v - 1]; /* no view: what it was read from is written to next */
  while (part->kind == V_TRACKED) part = &((Tracked *)part->p)->value;
  if (part->kind == V_ARRAY && array_device(part->array) == DEV_CPU && !array_writable(part->array) &&
      array_make_unique(d->vm, part) != WEFT_OK)
    return none(d);
  return v;
}

static Dv tape_update_again(Deriv *deriv, const DerivNode *n, u32 combine, Dv x, Dv v) {
  ValueDeriv *d = (ValueDeriv *)deriv;
  (void)n;
  return write_items(d, combine, x, d->entry->items, d->entry->nitems, keys_of(d), v);
}

static Dv tape_item(Deriv *deriv, Dv list, u32 k) {
  return handle((ValueDeriv *)deriv, value_keep(at(deriv, list).list->items[k]));
}

static Dv tape_top(Deriv *d, Dv x, u32 mask) {
  ArrayType t = tape_type_of(d, x);
  bool empty = false;
  for (u32 i = 0; i < t.rank; i++) empty |= mask >> i & 1 && t.dims[i] == 0;
  if (!empty) return dv_reduce(d, OP_max, x, mask, true);
  return dv2(d, OP_subtract, dv_reduce(d, OP_sum, x, mask, true), dv_num(d, INFINITY));
}

static const DerivOps value_ops = {tape_run, tape_type_of, tape_number, tape_size, tape_make_zeros, tape_known,
                                   tape_same, tape_about, tape_dim, tape_part, tape_add_at, tape_add_items,
                                   tape_repeats, tape_index_again, tape_update_again, tape_item, tape_top};

/* ---- back over the tape ---------------------------------------------------------------------- */

typedef struct Settings { /* of one entry, as attributes */
  GraphAttr attrs[OP_MAX_PARAMS];
} Settings;

/* Integers, or pairs of them; they lie in the room. */
static bool tape_ints_of(ValueDeriv *d, Value v, GraphAttr *a) {
  u64 n = v.kind == V_RANGE ? range_count(v.range) : v.list->count;
  i64 *out = n <= UINT32_MAX / 2 ? deriv_room(&d->head, (u32)(2 * n), sizeof *out) : NULL;
  a->kind = ATTR_ints;
  a->ints = out;
  a->count = 0;
  if (!out) return false;
  if (v.kind == V_RANGE) {
    for (u64 i = 0; i < n; i++) out[a->count++] = v.range->start + (i64)i * v.range->step;
    return true;
  }
  for (u32 i = 0; i < v.list->count; i++) {
    Value item = v.list->items[i];
    bool pair = item.kind == V_LIST && item.list->count == 2 && (i == 0 || a->pairs);
    if (!pair && a->pairs) return false;
    a->pairs = pair;
    for (u32 k = 0; k < (pair ? 2u : 1u); k++)
      if (!num_as_index(pair ? item.list->items[k] : item, &out[a->count++])) return false;
  }
  return true;
}

/* Two lists of as many integers, one behind the other. */
static bool two_lists(ValueDeriv *d, Value v, GraphAttr *a) {
  if (v.kind != V_LIST || v.list->count != 2 || v.list->items[0].kind != V_LIST) return false;
  i64 *out = deriv_room(&d->head, 2 * v.list->items[0].list->count, sizeof *out);
  a->count = 0;
  a->pairs = 1;
  a->ints = out;
  for (u32 i = 0; i < 2 && out; i++) {
    Value part = v.list->items[i];
    if (part.kind != V_LIST || part.list->count != v.list->items[0].list->count) return false;
    for (u32 k = 0; k < part.list->count; k++)
      if (!num_as_index(part.list->items[k], &out[a->count++])) return false;
  }
  return out != NULL;
}

static void read_setting(ValueDeriv *d, Value v, u32 param, Settings *s, GraphArg *out) {
  GraphAttr *a = &s->attrs[param];
  *a = (GraphAttr){.kind = ATTR_nil, .param = (u8)param};
  *out = (GraphArg){.kind = ARG_attr, .attr = a};
  switch (v.kind) {
    case V_HOLE: out->kind = ARG_hole; return;
    case V_NIL: return;
    case V_DTYPE: *a = attr_dtype(param, v.dtype); return;
    case V_TEXT:
      a->kind = ATTR_text;
      a->text = v.text->data;
      a->count = v.text->len;
      return;
    case V_NUM:
      if (v.dtype == DT_bool) *a = attr_bool(param, v.i != 0);
      else if (dtype_kind(v.dtype) == DK_INT) *a = attr_int(param, v.i);
      else *a = attr_float(param, num_as_f64(v));
      return;
    case V_LIST:
    case V_RANGE:
      if (!tape_ints_of(d, v, a) && !two_lists(d, v, a)) a->kind = ATTR_hole;
      return;
    default: a->kind = ATTR_hole; return; /* not known: rules that need it give up */
  }
}

/* The entry as rules see it; operands and results become handles. */
static bool load(ValueDeriv *d, DerivNode *n, DerivLists *l, Settings *s) {
  const TapeEntry *e = d->entry;
  if (!deriv_lists(&d->head, e->nparents, e->nresults, l)) return false;
  Dv *operands = l->operands, *results = l->results;
  const Value *saved = d->tape->values.data + e->first;
  *n = (DerivNode){.kind = e->kind == ENTRY_index ? DERIV_index : e->kind == ENTRY_update ? DERIV_update : DERIV_op,
                   .op = e->op, .operands = operands, .results = results};
  if (e->kind == ENTRY_op) {
    for (u32 p = 0; p < op_info(e->op)->nparams; p++) {
      Value v = saved[p], plain = value_untracked(v);
      GraphArg *a = &n->args[p];
      bool is_set = tape_is_setting(e->op, p, plain);
      if (!is_set && v.kind == V_LIST && param_joins(&op_info(e->op)->params[p])) {
        *a = (GraphArg){.kind = ARG_list, .values = operands + n->count, .count = v.list->count};
        for (u32 i = 0; i < v.list->count; i++) operands[n->count++] = handle(d, value_keep(v.list->items[i]));
      } else if (!is_set && value_is_numeric(plain)) {
        operands[n->count] = handle(d, value_keep(v));
        *a = (GraphArg){.kind = ARG_value, .value = operands[n->count++]};
      } else {
        read_setting(d, plain, p, s, a);
      }
    }
  } else {
    for (; n->count < e->nparents; n->count++) operands[n->count] = handle(d, value_keep(saved[n->count]));
    static const u16 combines[][2] = {{BC_move, OP_none}, {BC_add, OP_add}, {BC_sub, OP_subtract},
                                      {BC_mul, OP_multiply}, {BC_div, OP_divide}};
    n->op = OP_power; /* of no rule */
    for (u32 i = 0; i < COUNT_OF(combines); i++)
      if (combines[i][0] == e->op) n->op = combines[i][1];
  }
  for (; n->nresults < e->nresults; n->nresults++)
    results[n->nresults] = handle(d, value_keep(saved[e->count - e->nresults + n->nresults]));
  return !d->head.failed;
}

static WeftStatus tape_give(Vm *vm, Value *slot, Value ct) { /* consumes ct */
  Value sum = value_hole(), before = *slot;
  *slot = value_hole();
  if (tape_sum(vm, before, ct, &sum) != WEFT_OK) return WEFT_ERROR;
  *slot = sum;
  return WEFT_OK;
}

/* The cotangent of an item, added where the array's own cotangent stands already: nothing as large as the array is
 * made. */
static bool adds_in_place(ValueDeriv *d, const DerivLists *l, Value *grads) {
  Value *sum = &grads[d->tape->parents.data[d->entry->parents]];
  ArrayType whole, item;
  if (sum->kind == V_HOLE) return false;
  tape_type(*sum, &whole);
  tape_type(at(&d->head, l->ct[0]), &item);
  if (whole.dtype != item.dtype) return false;
  Dv x = handle(d, *sum);
  *sum = value_hole();
  if (x) x = write_items(d, OP_add, x, d->entry->items, d->entry->nitems, keys_of(d), l->ct[0]);
  if (!x) return true;
  *sum = d->pool.data[x - 1];
  d->pool.data[x - 1] = value_nil();
  return true;
}

static WeftStatus pull_entry(ValueDeriv *d, const char *who, Value *grads) {
  const TapeEntry *e = d->entry;
  Vm *vm = d->vm;
  DerivNode n;
  Settings s;
  DerivLists l;
  const char *why = "";
  if (e->setting) {
    bool own = !e->library || e->handed;
    u32 of = e->handed ? e->library : e->op;
    const OpParam *p = &op_info(of)->params[(e->handed ? e->handed : e->setting) - 1];
    return vm_error(vm, EK_unsupported, "%s: no derivative of %s by its parameter `%.*s`%s%s", who, op_name(of),
                    (int)p->len, p->name, own ? "" : ", in ", own ? "" : op_name(e->library));
  }
  if (!load(d, &n, &l, &s)) goto failed;
  for (u32 i = 0; i < e->nresults; i++) {
    Value g = grads[e->result + i];
    grads[e->result + i] = value_hole();
    l.ct[i] = g.kind == V_HOLE ? 0 : handle(d, g);
  }
  if (d->head.failed) return WEFT_ERROR;
  for (u32 i = 0; i < n.count; i++)
    l.wants[i] = d->tape->parents.data[e->parents + i] && deriv_dtype(tape_type_of(&d->head, l.operands[i]).dtype);
  if (n.kind == DERIV_index && l.wants[0] && adds_in_place(d, &l, grads)) return d->head.failed ? WEFT_ERROR : WEFT_OK;
  if (!deriv_pull(&d->head, &n, l.ct, l.wants, l.out, &why) || d->head.failed) goto failed;
  for (u32 i = 0; i < n.count; i++)
    if (l.wants[i] && l.out[i] &&
        tape_give(vm, &grads[d->tape->parents.data[e->parents + i]], value_keep(at(&d->head, l.out[i]))) != WEFT_OK)
      return WEFT_ERROR;
  return WEFT_OK;
failed:
  if (vm->error.raised) return WEFT_ERROR;
  if (d->head.refused) return vm_error_memory(vm);
  const char *instead = n.kind == DERIV_op ? op_info(e->op)->instead : "";
  return vm_error(vm, EK_unsupported, "%s: no derivative rule for %s%s%s%s%s", who, why, e->library ? ", in " : "",
                  e->library ? op_name(e->library) : "", *instead ? "; " : "", instead);
}

WeftStatus tape_pull(Vm *vm, Tape *t, const char *who, Value *grads) {
  ValueDeriv d = {.head = {.to = &value_ops}, .vm = vm, .tape = t};
  arena_init(&d.head.room, &vm->alloc);
  /* a first piece stays, so that the entries behind it need no memory of their own */
  WeftStatus status = deriv_room(&d.head, 1, 1) ? WEFT_OK : vm_error_memory(vm);
  ArenaMark empty = arena_mark(&d.head.room);
  for (u32 i = t->entries.count; i-- > 0 && status == WEFT_OK;) {
    d.entry = &t->entries.data[i];
    bool reached = false;
    for (u32 k = 0; k < d.entry->nresults; k++) reached |= grads[d.entry->result + k].kind != V_HOLE;
    if (!reached) continue;
    status = vm_poll(vm, 1);
    if (status == WEFT_OK)
      status = d.entry->kind >= ENTRY_custom ? custom_pull(vm, t, d.entry, who, grads) : pull_entry(&d, who, grads);
    while (d.pool.count) value_drop(vm, d.pool.data[--d.pool.count]);
    arena_rewind(&d.head.room, empty);
  }
  arena_free(&d.head.room);
  vec_free(&vm->alloc, &d.pool);
  return status;
}
