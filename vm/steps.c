/* steps.c — instructions that are functions: operators on any values, indices, updates, the heads of loops. */
#include "parser/parser.h"
#include "vm/index.h"
#include "vm/interp.h"
#include "vm/module.h"
#include "vm/operate.h"
#include "vm/scalar.h"

/* ---- operators ------------------------------------------------------------------------------------ */

/* Takes an operand for an operation that may reuse it: moved when it dies (the register is then empty). */
static inline Value take_operand(Value *base, const Value *consts, u32 k, bool dies) {
  if (k & INS_CONST) return value_keep(consts[k & ~(u32)INS_CONST]);
  Value v = base[k];
  if (dies) base[k] = value_nil();
  else value_keep(v);
  return v;
}

static __attribute__((noinline)) WeftStatus binary_values(Vm *vm, Ins ins, Value *base, const Value *consts) {
  u32 a = ins_a(ins), b = ins_b(ins), c = ins_c(ins), flags = ins_flags(ins);
  bool b_dies = (flags & INS_B_DIES) || (b == a && b != c); /* what is overwritten is not needed any more */
  bool c_dies = (flags & INS_C_DIES) || (c == a && b != c);
  if (b == c) b_dies = false;
  Value args[2], out;
  args[0] = take_operand(base, consts, b, b_dies);
  args[1] = take_operand(base, consts, c, c_dies);
  WeftStatus status = operate_binary(vm, ins_op(ins), args, &out);
  if (status != WEFT_OK) { /* operands stay as they were */
    if (b_dies && !(b & INS_CONST)) base[b] = args[0];
    else value_drop(vm, args[0]);
    if (c_dies && !(c & INS_CONST)) base[c] = args[1];
    else value_drop(vm, args[1]);
    return status;
  }
  value_drop(vm, args[0]);
  value_drop(vm, args[1]);
  set_register(vm, &base[a], out);
  return WEFT_OK;
}

/* What may be overwritten goes the long way. */
static inline bool is_pair(const Value *v, bool dies) { return v->kind == V_ARRAY && !(dies && v->obj->refs == 1); }

WeftStatus step_binary(Vm *vm, Ins ins, Value *base, const Value *consts) {
  static const u8 pairs[BC_COUNT] = {[BC_add] = OP_add, [BC_sub] = OP_subtract, [BC_mul] = OP_multiply,
                                     [BC_div] = OP_divide};
  u32 a = ins_a(ins), b = ins_b(ins), c = ins_c(ins), flags = ins_flags(ins), bc = ins_op(ins), op = pairs[bc];
  if (bc == BC_eq || bc == BC_ne) { /* with nil: no value of another kind is it */
    u32 x = operand(base, consts, b)->kind, y = operand(base, consts, c)->kind;
    if (x == V_NIL || y == V_NIL) {
      set_register(vm, &base[a], value_bool((x == y) == (bc == BC_eq)));
      kill_operands(vm, base, ins);
      return WEFT_OK;
    }
  }
  if (!op || !vm->pair || ((b | c) & INS_CONST) || !is_pair(&base[b], b == a || (flags & INS_B_DIES)) ||
      !is_pair(&base[c], c == a || (flags & INS_C_DIES)))
    return binary_values(vm, ins, base, consts);
  Value out;
  PairWent went = vm->pair(vm, op, base[b].array, base[c].array, &out);
  if (UNLIKELY(went != PAIR_DONE)) return went == PAIR_FAILED ? WEFT_ERROR : binary_values(vm, ins, base, consts);
  set_register(vm, &base[a], out);
  kill_operands(vm, base, ins);
  return WEFT_OK;
}

WeftStatus step_unary(Vm *vm, Ins ins, Value *base, const Value *consts) {
  u32 a = ins_a(ins), b = ins_b(ins);
  bool dies = ((ins_flags(ins) & INS_B_DIES) || a == b) && !(b & INS_CONST);
  Value args[2] = {take_operand(base, consts, b, dies), value_hole()}, out;
  WeftStatus status = operate_unary(vm, ins_op(ins), args, &out);
  if (status != WEFT_OK) {
    if (dies) base[b] = args[0];
    else value_drop(vm, args[0]);
    return status;
  }
  value_drop(vm, args[0]);
  set_register(vm, &base[a], out);
  return WEFT_OK;
}

WeftStatus step_unassigned(Vm *vm, const Code *code, u32 slot) {
  const ModuleScope *scope = &code->module->scope;
  Name name = scope->slots.data[slot];
  const char *text = name_text(&vm->names, name);
  if (scope->flags.data[slot]) return vm_error(vm, EK_name, "'%s' is used before it has a value", text);
  const char *foreign = parser_foreign_word(text, name_len(&vm->names, name)),
      *near = scope_nearest(scope, &vm->names, name);
  if (!foreign) foreign = scope_in_module(text, name_len(&vm->names, name));
  if (parser_foreign_prefix(text, name_len(&vm->names, name)))
    return vm_error(vm, EK_name, "%s is not declared; built-in functions stand without it: sum(x), not %s.sum(x)", text,
                    text);
  if (foreign) return vm_error(vm, EK_name, "%s is not declared; write '%s'", text, foreign);
  if (near) return vm_error(vm, EK_name, "%s is not declared; did you mean %s?", text, near);
  return vm_error(vm, EK_name, "%s is not declared", text);
}

/* ---- indexing ---------------------------------------------------------------------------------- */

static const u8 one_value[1] = {IX_VALUE};

WeftStatus step_index(Vm *vm, Value *base, Ins ins, Value obj, Value key) {
  Value v;
  if (obj.kind == V_ARRAY && key.kind == V_NUM && array_rank(obj.array) > 1) { /* a row */
    Array *a = obj.array;
    i64 i = key.i, n = array_dims(a)[0];
    if (dtype_kind(key.dtype) == DK_INT && !num_is_huge(key) && i >= -n && i < n) {
      u32 rank = array_rank(a);
      if (array_view(vm, a, (i < 0 ? i + n : i) * array_strides(a)[0], rank - 1, array_dims(a) + 1,
                     array_strides(a) + 1, &v) != WEFT_OK)
        return WEFT_ERROR;
      set_register(vm, &base[ins_a(ins)], v);
      return WEFT_OK;
    }
  }
  if (vm_index(vm, obj, one_value, 1, &key, &v) != WEFT_OK) return WEFT_ERROR;
  set_register(vm, &base[ins_a(ins)], v);
  return WEFT_OK;
}

static u32 desc_registers(const Desc *d) {
  u32 n = 0;
  for (u32 i = 0; i < d->item_count; i++) n += d->items[i] == IX_VALUE ? 1 : d->items[i] == IX_SLICE ? 3 : 0;
  return n;
}

/* Does nobody else hold the list or record, but for the module's variable that the next instruction writes the result
 * to? */
static bool gives_up(const Frame *f, Ins ins, bool once, Value v, ModuleSlot **slot) {
  *slot = NULL;
  if (v.obj->refs != 2 || once) return v.obj->refs == 1;
  Ins next = f->code->proto->code[f->pc + 1];
  if (ins_op(next) != BC_setmod || ins_a(next) != ins_a(ins) || !(ins_flags(next) & INS_A_DIES)) return false;
  *slot = &f->code->module->slots[ins_x(next)];
  return (*slot)->value.kind == v.kind && (*slot)->value.obj == v.obj;
}

/* xs[a:b] in place, so that `xs = xs[:-1]` takes constant time. */
static WeftStatus shorten_list(Vm *vm, const Frame *f, Ins ins, bool once, Value *regs, bool *done) {
  ModuleSlot *slot;
  List *l = regs[0].list;
  i64 start, count, step;
  if (!gives_up(f, ins, once, regs[0], &slot)) return WEFT_OK;
  if (index_slice(vm, regs + 1, l->count, &start, &count, &step) != WEFT_OK) return WEFT_ERROR;
  if (step != 1 || (list_is_packed(l) && start && count)) return WEFT_OK;
  if (slot) {
    slot->value = value_nil();
    l->head.refs = 1;
  }
  list_shorten(vm, l, (u32)start, (u32)count);
  *done = true;
  return WEFT_OK;
}

WeftStatus step_index_many(Vm *vm, const Frame *f, Ins ins, bool once) {
  const Desc *d = &f->code->proto->descs[ins_c(ins)];
  Value *regs = f->base + ins_b(ins), obj = regs[0], v;
  i64 i, k;
  if (obj.kind == V_LIST && d->item_count == 1 && d->items[0] == IX_SLICE) {
    bool done = false;
    if (shorten_list(vm, f, ins, once, regs, &done) != WEFT_OK) return WEFT_ERROR;
    if (done) {
      regs[0] = value_nil();
      drop_run(vm, regs + 1, 3);
      set_register(vm, &f->base[ins_a(ins)], obj);
      return WEFT_OK;
    }
  }
  if (d->item_count == 2 && d->items[0] == IX_VALUE && d->items[1] == IX_VALUE &&
      obj.kind == V_ARRAY && array_rank(obj.array) == 2 && array_device(obj.array) == DEV_CPU && obj.dtype != DT_c128 &&
      in_bounds(regs[1], array_dims(obj.array)[0], &i) && in_bounds(regs[2], array_dims(obj.array)[1], &k)) {
    v = array_load(obj.array, i * array_strides(obj.array)[0] + k * array_strides(obj.array)[1]);
    regs[0] = value_nil();
    value_drop(vm, obj);
  } else {
    if (vm_index(vm, obj, d->items, d->item_count, regs + 1, &v) != WEFT_OK) return WEFT_ERROR;
    drop_run(vm, regs, 1 + desc_registers(d));
  }
  set_register(vm, &f->base[ins_a(ins)], v);
  return WEFT_OK;
}

/* a[i] = v, a[i, k] = v, and the same with op=, into an array that nobody else holds. */
static inline bool set_element(const Desc *d, const Value *root, const Value *keys) {
  if (d->step_count != 1 || d->steps[0].kind != STEP_INDEX || root->kind != V_ARRAY) return false;
  Array *a = root->array;
  u32 n = d->item_count, rank = array_rank(a), dtype = array_dtype(a);
  if (n != rank || n > 2 || n == 0 || d->items[0] != IX_VALUE || d->items[n - 1] != IX_VALUE ||
      array_device(a) != DEV_CPU || dtype == DT_c128)
    return false;
  Value v = keys[n];
  if (v.kind != V_NUM || !array_writable(a)) return false;
  i64 i, k = 0;
  if (!in_bounds(keys[0], array_dims(a)[0], &i)) return false;
  if (n == 2 && !in_bounds(keys[1], array_dims(a)[1], &k)) return false;
  i64 at = i * array_strides(a)[0] + (n == 2 ? k * array_strides(a)[1] : 0);
  if (d->op != BC_move && !num_binary(d->op, array_load(a, at), v, &v)) return false;
  if (v.dtype != dtype && (dtype_kind(v.dtype) > dtype_kind(dtype) || !num_store_convert(v, dtype, &v))) return false;
  switch (dtype_bytes(dtype)) {
    case 8: ((u64 *)a->data)[at] = v.u; return true;
    case 4: ((u32 *)a->data)[at] = (u32)v.u; return true;
    case 1: ((u8 *)a->data)[at] = (u8)v.u; return true;
    case 2: num_store((u16 *)a->data + at, dtype, v); return true;
    default: return false;
  }
}

/* xs[i] = v into a list that nobody else holds; v is moved. */
static inline bool set_item(Vm *vm, const Desc *d, const Value *root, Value *keys) {
  i64 i;
  if (d->step_count != 1 || d->op != BC_move || d->item_count != 1 || d->items[0] != IX_VALUE || root->kind != V_LIST)
    return false;
  List *l = root->list;
  if (l->head.refs != 1 || !in_bounds(keys[0], l->count, &i)) return false;
  if (keys[1].kind == V_LIST && UNLIKELY(list_is_packed(keys[1].list))) return false; /* it is boxed first */
  bool packed = UNLIKELY(list_is_packed(l));
  if (packed && !packed_set(vm, l, (u32)i, keys[1])) return false;
  Value v = keys[1];
  keys[1] = value_nil();
  if (packed) {
    value_drop(vm, v);
    return true;
  }
  list_forget(vm, l);
  set_register(vm, &l->items[i], v);
  return true;
}

/* r.name = v, r[key] = v, and the same with op= of numbers, where there is such a key in a record that nobody else
 * holds. */
static inline bool set_field(Vm *vm, const Desc *d, const Value *root, Value *keys) {
  if (root->kind != V_RECORD || d->step_count != 1 || root->record->head.refs != 1 || d->root == ROOT_FIXED)
    return false;
  bool named = d->steps[0].kind == STEP_FIELD;
  if (!named &&
      (d->steps[0].kind != STEP_INDEX || d->item_count != 1 || d->items[0] != IX_VALUE || keys[0].kind != V_TEXT))
    return false;
  Value *at = named ? record_find(root->record, d->steps[0].field) : record_at(vm, root->record, keys[0].text),
      *from = keys + !named;
  if (!at) return false;
  if (d->op != BC_move) {
    Value r;
    if (at->kind != V_NUM || from->kind != V_NUM || !num_binary(d->op, *at, *from, &r)) return false;
    *at = r;
  } else {
    if (from->kind == V_LIST && UNLIKELY(list_is_packed(from->list))) return false; /* it is boxed first */
    Value v = *from;
    *from = value_nil();
    set_register(vm, at, v);
  }
  if (!named) drop_run(vm, keys, 1);
  return true;
}

WeftStatus step_set_path(Vm *vm, const Frame *f, Ins ins) {
  const Desc *d = &f->code->proto->descs[ins_c(ins)];
  Value *keys = f->base + ins_b(ins);
  Value *root = d->root == ROOT_MODULE ? &f->code->module->slots[d->root_slot].value : &f->base[ins_a(ins)];
  if (LIKELY(set_element(d, root, keys))) return WEFT_OK; /* keys and value are numbers: nothing to drop */
  if (set_item(vm, d, root, keys) || set_field(vm, d, root, keys)) return WEFT_OK;
  if (root->kind == V_HOLE) return step_unassigned(vm, f->code, d->root_slot);
  u32 n = desc_registers(d);
  Value value = keys[n];
  keys[n] = value_nil();
  if (vm_update(vm, root, d, keys, value) != WEFT_OK) return WEFT_ERROR;
  drop_run(vm, keys, n);
  return WEFT_OK;
}

/* ---- for -------------------------------------------------------------------------------------- */

WeftStatus step_for_begin(Vm *vm, Value *base, Ins ins, Value seq) {
  u64 count;
  if (vm_seq_open(vm, seq, &count) != WEFT_OK) return WEFT_ERROR;
  u32 a = ins_a(ins), b = ins_b(ins);
  if ((ins_flags(ins) & INS_B_DIES) && !(b & INS_CONST) && b != a) base[b] = value_nil();
  else value_keep(seq);
  set_register(vm, &base[a], seq);
  set_register(vm, &base[a + 1], value_weak_i64(0)); /* weak, as the items of a range are */
  set_register(vm, &base[a + 2], value_weak_i64((i64)count));
  return WEFT_OK;
}

WeftStatus step_for_item(Vm *vm, Value *at) {
  u64 pos = at[1].u;
  Value v;
  if (vm_seq_next(vm, at[0], &pos, &v) != WEFT_OK) return WEFT_ERROR;
  at[1].u = pos;
  set_register(vm, &at[3], v);
  return WEFT_OK;
}

/* ---- what the next instruction gives up ------------------------------------------------------------ */

void step_give_up_record(Vm *vm, const Frame *f, Ins ins, bool once, Value *args) {
  ModuleSlot *slot;
  if (args[0].kind != V_RECORD || args[1].kind != V_TEXT || args[0].record->shape->shared ||
      !gives_up(f, ins, once, args[0], &slot) || !slot)
    return;
  if (!record_at(vm, args[0].record, args[1].text)) return;
  slot->value = value_nil();
  args[0].obj->refs = 1;
}
