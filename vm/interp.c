/* interp.c — the opcode loop.
 *
 * One C function runs all frames above `floor`: calls push a frame and go on, they do not recurse. Scalars are
 * computed inline; arrays go through operate_binary, vm_index and vm_update. `f->pc` is brought up to date before
 * anything that may raise, so that errors, handlers and the tier see the instruction that runs. */
#include <string.h>

#include "parser/parser.h"
#include "vm/call.h"
#include "vm/code.h"
#include "vm/field.h"
#include "vm/index.h"
#include "vm/make.h"
#include "vm/module.h"
#include "vm/operate.h"
#include "vm/registers.h"
#include "vm/scalar.h"
#include "vm/stack.h"

/* most that the work of one trip adds to its loop's heat: what is between two runs of a loop counts for it as well */
enum { HEAT_OF_WORK = 15 };

/* ---- frames ----------------------------------------------------------------------------------- */

/* Pushes a frame whose parameters are still empty. */
static inline Frame *push_frame(Vm *vm, Value self, Code *code, u16 result, u16 flags) {
  const Proto *p = code->proto;
  if (UNLIKELY(vm->frame_count >= vm->frame_cap || vm->frame_count + vm->native_depth >= vm->limits.depth) &&
      !frames_grow(vm))
    return NULL;
  Value *base = stack_take(vm, p->nregs);
  if (UNLIKELY(!base)) return NULL;
  Frame *f = &vm->frames[vm->frame_count++];
  f->code = code;
  f->fn = self.kind == V_FN ? self.fn : NULL;
  f->base = base;
  f->pc = 0;
  f->result = result;
  f->flags = UNLIKELY(code->awaited) ? flags | FRAME_AWAITS : flags;
  f->tail_calls = 0;
  f->self = self;
  return f;
}

bool frame_push(Vm *vm, Value fn_kept, Code *code, u16 result, u16 flags) {
  if (vm->frame_count) flags |= vm->frames[vm->frame_count - 1].flags & FRAME_EAGER;
  Frame *f = push_frame(vm, fn_kept, code, result, flags);
  if (!f) {
    value_drop(vm, fn_kept);
    return false;
  }
  memset(f->base, 0, sizeof(Value) * code->proto->nregs);
  vm->stats.calls++;
  return true;
}

static inline void clear_registers(Vm *vm, Value *base, u32 n) {
  for (u32 i = 0; i < n; i++)
    if (base[i].flags & VF_COUNTED) value_drop(vm, base[i]);
}

static inline __attribute__((always_inline)) void pop_frame(Vm *vm) {
  Frame *f = &vm->frames[vm->frame_count - 1];
  Value *base = f->base, self = f->self;
  clear_registers(vm, base, f->code->proto->nregs);
  vm->frame_count--;
  stack_give_back(vm, base);
  value_drop(vm, self);
}

void frame_pop(Vm *vm) { pop_frame(vm); }

void vm_return(Vm *vm, Value v) {
  Frame *f = &vm->frames[vm->frame_count - 1];
  u16 result = f->result, flags = f->flags;
  if (UNLIKELY(flags & FRAME_WATCHED)) vm->tier->returns(vm);
  pop_frame(vm);
  if (flags & FRAME_NATIVE_CALL) {
    vm->native_result = v;
    return;
  }
  f = &vm->frames[vm->frame_count - 1];
  f->pc++;
  set_register(vm, &f->base[result], v);
}

bool vm_call_done(Vm *vm, Value v) {
  Frame *f = &vm->frames[vm->frame_count - 1];
  const Proto *p = f->code->proto;
  Ins i = p->code[f->pc];
  u32 op = ins_op(i), argc = op == BC_callx || op == BC_tailx ? p->descs[ins_c(i)].argc : ins_c(i);
  drop_run(vm, &f->base[ins_b(i)], argc + 1);
  if (op == BC_tail || op == BC_tailx) {
    vm_return(vm, v);
    return true;
  }
  set_register(vm, &f->base[ins_a(i)], v);
  f->pc++;
  return false;
}

/* ---- instructions that are functions: they report an error by WEFT_ERROR, the pc is set ---------- */

static inline const Value *operand(const Value *base, const Value *consts, u32 k) {
  return k & INS_CONST ? &consts[k & ~(u32)INS_CONST] : &base[k];
}

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

static __attribute__((noinline)) WeftStatus binary_slow(Vm *vm, Ins ins, Value *base, const Value *consts) {
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

static __attribute__((noinline)) WeftStatus unary_slow(Vm *vm, Ins ins, Value *base, const Value *consts) {
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

static WeftStatus unassigned(Vm *vm, const Code *code, u32 slot) {
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

static __attribute__((noinline)) WeftStatus index_one(Vm *vm, Value *base, Ins ins, Value obj, Value key) {
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

static inline bool in_bounds(Value key, i64 n, i64 *i) {
  if (key.kind != V_NUM || key.dtype != DT_i64) return false;
  *i = key.i < 0 ? key.i + n : key.i;
  return (u64)*i < (u64)n;
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

static WeftStatus index_many(Vm *vm, const Frame *f, Ins ins, bool once) {
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

static WeftStatus set_path(Vm *vm, const Frame *f, Ins ins) {
  const Desc *d = &f->code->proto->descs[ins_c(ins)];
  Value *keys = f->base + ins_b(ins);
  Value *root = d->root == ROOT_MODULE ? &f->code->module->slots[d->root_slot].value : &f->base[ins_a(ins)];
  if (LIKELY(set_element(d, root, keys))) return WEFT_OK; /* keys and value are numbers: nothing to drop */
  if (set_item(vm, d, root, keys) || set_field(vm, d, root, keys)) return WEFT_OK;
  if (root->kind == V_HOLE) return unassigned(vm, f->code, d->root_slot);
  u32 n = desc_registers(d);
  Value value = keys[n];
  keys[n] = value_nil();
  if (vm_update(vm, root, d, keys, value) != WEFT_OK) return WEFT_ERROR;
  drop_run(vm, keys, n);
  return WEFT_OK;
}

/* ---- for -------------------------------------------------------------------------------------- */

static WeftStatus for_begin(Vm *vm, Value *base, Ins ins, Value seq) {
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

static __attribute__((noinline)) WeftStatus for_item(Vm *vm, Value *at) {
  u64 pos = at[1].u;
  Value v;
  if (vm_seq_next(vm, at[0], &pos, &v) != WEFT_OK) return WEFT_ERROR;
  at[1].u = pos;
  set_register(vm, &at[3], v);
  return WEFT_OK;
}

/* ---- calls ------------------------------------------------------------------------------------ */

/* len and type of what neither a tape nor another device has a say in. False: the usual way. */
static inline bool asks_shape(Vm *vm, u32 op, Value v, Value *out) {
  if (v.kind == V_ARRAY && array_device(v.array) != DEV_CPU) return false;
  if (op == OP_len) {
    if (v.kind == V_LIST) *out = value_weak_i64(v.list->count);
    else if (v.kind == V_TEXT) *out = value_weak_i64(v.text->count);
    else if (v.kind == V_RECORD) *out = value_weak_i64(v.record->shape->count);
    else if (v.kind == V_ARRAY && array_rank(v.array)) *out = value_weak_i64(array_dims(v.array)[0]);
    else return false;
    return true;
  }
  if (op != OP_type || v.kind >= V_TRACKED || vm->types[v.kind].kind == V_NIL) return false;
  *out = value_keep(vm->types[v.kind]);
  return true;
}

/* Replaces eager(f) by f; the frame then runs eagerly. */
static Value unwrap_eager(Vm *vm, Value fn, u16 *flags) {
  while (fn.kind == V_FN && fn.fn->kind == FN_TRANSFORM && fn.fn->transform == TF_eager) {
    Value inner = value_keep(fn.fn->inner);
    value_drop(vm, fn);
    fn = inner;
    *flags |= FRAME_EAGER;
  }
  return fn;
}

/* remove(r, k) of a record that keeps its own keys, in place, so that `r = remove(r, k)` does not copy it; nothing
 * that can fail is left to do then. args: r and k. */
static void give_up_record(Vm *vm, const Frame *f, Ins ins, bool once, Value *args) {
  ModuleSlot *slot;
  if (args[0].kind != V_RECORD || args[1].kind != V_TEXT || args[0].record->shape->shared ||
      !gives_up(f, ins, once, args[0], &slot) || !slot)
    return;
  if (!record_at(vm, args[0].record, args[1].text)) return;
  slot->value = value_nil();
  args[0].obj->refs = 1;
}

/* Has every parameter from number n on a default? False when there are fewer. */
static bool has_defaults(const Proto *p, u32 n) {
  if (n > p->nparams) return false;
  while (n < p->nparams && p->params[n].has_default) n++;
  return n == p->nparams;
}

typedef enum CallEnd { CALL_RAISED, CALL_PUSHED, CALL_DONE } CallEnd;

/* Replaces the top frame by one of `code` with these parameters (moved). */
static bool replace_frame(Vm *vm, Value self, Code *code, const Value *params, u16 flags) {
  Frame *f = &vm->frames[vm->frame_count - 1];
  const Proto *p = code->proto;
  Value *base = f->base, old_self = f->self;
  u32 old = f->code->proto->nregs;
  /* no room where it stands: find it first, so that failure changes nothing */
  if (vm->stack_end - base < (i64)p->nregs) {
    Value *fresh = stack_take(vm, p->nregs);
    if (!fresh) return false;
    /* The old registers stay below as dead space until this frame returns; it cannot pile up, since the new
     * segment is empty but for this frame. */
    clear_registers(vm, base, old);
    memset(base, 0, sizeof(Value) * old);
    f->base = base = fresh;
  } else {
    clear_registers(vm, base, old);
    vm->stack_top = base + p->nregs;
  }
  if (p->nparams) memcpy(base, params, sizeof(Value) * p->nparams);
  memset(base + p->nparams, 0, sizeof(Value) * (p->nregs - p->nparams));
  f->code = code;
  f->fn = self.fn;
  f->self = self;
  f->pc = 0;
  f->flags = (u16)((f->flags & ~(FRAME_MODULE | FRAME_AWAITS)) | flags | (code->awaited ? FRAME_AWAITS : 0));
  f->tail_calls++;
  value_drop(vm, old_self);
  return true;
}

/* Calls fn (consumed) with args (moved). tail: in place of the top frame. CALL_DONE: *out is the result. */
static CallEnd call_any(Vm *vm, Value fn, Args args, u16 result, bool tail, Value *out) {
  u16 flags = 0;
  fn = unwrap_eager(vm, fn, &flags);
  if (fn.kind != V_FN || fn.fn->kind != FN_CLOSURE) {
    WeftStatus status = call_native(vm, fn, args, out);
    value_drop(vm, fn);
    return status == WEFT_OK ? CALL_DONE : CALL_RAISED;
  }
  Code *code = fn.fn->code;
  const Proto *p = code->proto;
  Value small[16], *params = p->nparams <= COUNT_OF(small) ? small : mem_alloc(&vm->alloc, sizeof *params * p->nparams);
  CallEnd end = CALL_RAISED;
  if (!params) {
    (void)vm_error_memory(vm);
    value_drop(vm, fn);
    return CALL_RAISED;
  }
  if (bind_closure(vm, p, args, params) != WEFT_OK) {
    value_drop(vm, fn);
  } else if (tail) {
    vm->stats.calls++;
    if (replace_frame(vm, fn, code, params, flags)) end = CALL_PUSHED;
    else {
      drop_run(vm, params, p->nparams);
      value_drop(vm, fn);
    }
  } else if (frame_push(vm, fn, code, result, flags)) {
    if (p->nparams) memcpy(vm->frames[vm->frame_count - 1].base, params, sizeof(Value) * p->nparams);
    end = CALL_PUSHED;
  } else {
    drop_run(vm, params, p->nparams);
  }
  if (params != small) mem_free(&vm->alloc, params, sizeof *params * p->nparams);
  return end;
}

static __attribute__((noinline)) CallEnd call_window(Vm *vm, Value *win, u32 argc, u16 result, bool tail, Value *out) {
  Value fn = win[0];
  win[0] = value_nil();
  return call_any(vm, fn, (Args){win + 1, NULL, argc}, result, tail, out);
}

static __attribute__((noinline)) CallEnd call_described(Vm *vm, const Desc *d, Value *win, bool skip, u16 result,
                                                        bool tail, Value *out) {
  Gathered g;
  Value fn = win[0];
  CallEnd end = CALL_RAISED;
  win[0] = value_nil();
  if (args_gather(vm, d, win, skip, &g) == WEFT_OK) end = call_any(vm, fn, args_of(&g), result, tail, out);
  else value_drop(vm, fn);
  args_free(vm, &g);
  return end;
}

/* ---- errors ----------------------------------------------------------------------------------- */

/* Pops frames until one has a handler for the error; its pc then stands at the handler. False: none above floor. */
static bool unwind(Vm *vm, u32 floor) {
  while (vm->frame_count > floor) {
    Frame *f = &vm->frames[vm->frame_count - 1];
    const Proto *p = f->code->proto;
    const Extent *handler = NULL;
    for (u32 i = 1; i < p->nextents && vm_error_catchable(vm); i++) { /* inner extents stand behind outer ones */
      const Extent *e = &p->extents[i];
      if (e->kind == EXT_TRY && e->begin <= f->pc && f->pc < e->head) handler = e;
    }
    if (handler) {
      u64 before = overdraft_begin(vm);
      code_clear_dead(vm, f->code, f->base, handler->head);
      overdraft_end(vm, before);
      f->pc = handler->head;
      return true;
    }
    vm_error_leave_frame(vm);
    frame_pop(vm);
  }
  return false;
}

/* ---- the loop --------------------------------------------------------------------------------- */

#define TAG_WEAK ((u64)VF_WEAK << 16)
#define TAG_NUM(dtype) ((u64)V_NUM | (u64)(dtype) << 8)
#define TAG_I64 TAG_NUM(DT_i64)
#define TAG_F64 TAG_NUM(DT_f64)
#define TAG_BOOL TAG_NUM(DT_bool)
#define TAG_TEXT ((u64)V_TEXT | (u64)VF_COUNTED << 16)

static inline void put_bits(Vm *vm, Value *at, u64 tag, u64 bits) {
  if (UNLIKELY(at->flags & VF_COUNTED)) value_drop(vm, *at);
  memcpy(at, &tag, 8);
  at->bits = bits;
}
static inline u64 float_bits(f64 f) {
  u64 u;
  memcpy(&u, &f, 8);
  return u;
}

/* The text of the ASCII character at this byte; NULL: it is none, or was not made yet. */
static inline const Value *letter_at(const Vm *vm, const Text *t, u64 at) {
  u8 c = (u8)t->data[at];
  return c < COUNT_OF(vm->letters) && vm->letters[c].kind ? &vm->letters[c] : NULL;
}

static inline bool text_same(const Text *x, const Text *y) {
  return x == y || (x->len == y->len && x->data[0] == y->data[0] && memcmp(x->data, y->data, x->len) == 0);
}

/* Both operands as f64 when one is f64 and the other f64 or i64. */
static inline bool as_floats(const Value *x, const Value *y, u64 tx, u64 ty, f64 *fx, f64 *fy) {
  tx &= ~TAG_WEAK;
  ty &= ~TAG_WEAK;
  if (tx == TAG_F64) {
    *fx = x->f;
    if (ty == TAG_F64) *fy = y->f;
    else if (ty == TAG_I64) *fy = (f64)y->i;
    else return false;
    return true;
  }
  if (ty != TAG_F64 || tx != TAG_I64) return false;
  *fx = (f64)x->i;
  *fy = y->f;
  return true;
}

/* once: one instruction of the top frame, errors not unwound; a return goes through vm_return. */
static WeftStatus run(Vm *vm, u32 floor, bool once, Value *out) {
  static const void *const labels[BC_COUNT] = {
#define BC(name, form, effects, meaning) &&op_##name,
#include "lang/bytecode.def"
#undef BC
  };
  static const void *const stops[BC_COUNT] = {
#define BC(name, form, effects, meaning) &&stepped,
#include "lang/bytecode.def"
#undef BC
  };
  const void *const *next_label = once ? stops : labels;
  Frame *f;
  Value *base;
  const Value *consts;
  const Ins *code, *ip;
  Ins ins;
  Value result;
  const Value *found;

#define LOAD_FRAME()                                              \
  (f = &vm->frames[vm->frame_count - 1], base = f->base,          \
   consts = f->code->consts, code = f->code->proto->code, ip = code + f->pc)
#define DISPATCH() do { ins = *ip; goto *next_label[ins_op(ins)]; } while (0)
#define NEXT() do { ip++; DISPATCH(); } while (0)
#define SAVE() (f->pc = (u32)(ip - code))
#define A (&base[ins_a(ins)])
#define AK operand(base, consts, ins_a(ins))
#define BK operand(base, consts, ins_b(ins))
#define CK operand(base, consts, ins_c(ins))
/* The vector of frames may have moved when the instruction called back. */
#define TRY(call) \
  do { SAVE(); if (UNLIKELY((call) != WEFT_OK)) goto raised; f = &vm->frames[vm->frame_count - 1]; } while (0)
#define TRY_NEXT(call) do { TRY(call); NEXT(); } while (0)
/* Behind what may have worked on a large array. */
#define NEXT_LARGE() do { ip++; if (UNLIKELY(vm->large_left < 0)) goto large; DISPATCH(); } while (0)
#define TRY_LARGE(call) do { TRY(call); NEXT_LARGE(); } while (0)
#define KILL_NEXT() do { kill_operands(vm, base, ins); NEXT(); } while (0)

  LOAD_FRAME();
  if (once) {
    ins = *ip;
    goto *labels[ins_op(ins)];
  }
  if (f->pc == 0 && !(f->flags & FRAME_MODULE)) goto entered;
  DISPATCH();

stepped:
  SAVE();
  return WEFT_OK;

  /* ---- moving ---- */
op_move: {
  u32 b = ins_b(ins);
  Value v = *operand(base, consts, b);
  if ((ins_flags(ins) & INS_B_DIES) && !(b & INS_CONST)) base[b] = value_nil();
  else value_keep(v);
  set_register(vm, A, v);
  NEXT();
}
op_loadk:
  set_register(vm, A, value_keep(consts[ins_x(ins)]));
  NEXT();
op_getmod: {
  Value v = f->code->module->slots[ins_x(ins)].value;
  if (UNLIKELY(v.kind == V_HOLE)) {
    if (!(ins_flags(ins) & INS_METHOD)) {
      SAVE();
      (void)unassigned(vm, f->code, ins_x(ins));
      goto raised;
    }
    v = value_nil();
  }
  set_register(vm, A, value_keep(v));
  NEXT();
}
op_setmod: {
  u32 a = ins_a(ins);
  Value v = *AK;
  if ((ins_flags(ins) & INS_A_DIES) && !(a & INS_CONST)) base[a] = value_nil();
  else value_keep(v);
  module_store(vm, &f->code->module->slots[ins_x(ins)], v);
  NEXT();
}
op_getcap:
  set_register(vm, A, value_keep(f->fn->env->slots[ins_b(ins)]));
  NEXT();
op_groupfn: TRY_NEXT(make_sibling(vm, f, ins_a(ins), ins_b(ins)));
op_closure: TRY_NEXT(make_closure(vm, f, ins_a(ins), ins_b(ins)));
op_group: TRY_NEXT(make_group(vm, f, ins_a(ins), ins_b(ins), ins_c(ins)));

  /* ---- arithmetic ---- */
#define ARITHMETIC(name, INT_EXPR, FLOAT_EXPR)                                             \
  op_##name: {                                                                             \
    const Value *x = BK, *y = CK;                                                          \
    u64 tx = value_tag(*x), ty = value_tag(*y);                                            \
    f64 fx, fy;                                                                            \
    if (((tx | TAG_WEAK) == (TAG_I64 | TAG_WEAK)) & ((ty | TAG_WEAK) == (TAG_I64 | TAG_WEAK))) { \
      u64 r = INT_EXPR;                                                                    \
      put_bits(vm, A, tx & ty, r);                                                         \
      NEXT();                                                                              \
    }                                                                                      \
    if (as_floats(x, y, tx, ty, &fx, &fy)) {                                               \
      f64 r = FLOAT_EXPR;                                                                  \
      put_bits(vm, A, TAG_F64 | (tx & ty & TAG_WEAK), float_bits(r));                      \
      NEXT();                                                                              \
    }                                                                                      \
    TRY_LARGE(binary_slow(vm, ins, base, consts));                                          \
  }
  ARITHMETIC(add, x->u + y->u, fx + fy)
  ARITHMETIC(sub, x->u - y->u, fx - fy)
  ARITHMETIC(mul, x->u * y->u, fx * fy)

op_div: {
  const Value *x = BK, *y = CK;
  u64 tx = value_tag(*x), ty = value_tag(*y);
  f64 fx, fy;
  if (as_floats(x, y, tx, ty, &fx, &fy)) {
    put_bits(vm, A, TAG_F64 | (tx & ty & TAG_WEAK), float_bits(fx / fy));
    NEXT();
  }
  TRY_LARGE(binary_slow(vm, ins, base, consts));
}
op_floordiv: {
  const Value *x = BK, *y = CK;
  u64 tx = value_tag(*x), ty = value_tag(*y);
  if (((tx | TAG_WEAK) == (TAG_I64 | TAG_WEAK)) & ((ty | TAG_WEAK) == (TAG_I64 | TAG_WEAK)) && y->i > 0) {
    i64 n = x->i, d = y->i, q = n / d;
    put_bits(vm, A, tx & ty, (u64)(q - (n % d < 0)));
    NEXT();
  }
  TRY_LARGE(binary_slow(vm, ins, base, consts));
}
op_mod: {
  const Value *x = BK, *y = CK;
  u64 tx = value_tag(*x), ty = value_tag(*y);
  if (((tx | TAG_WEAK) == (TAG_I64 | TAG_WEAK)) & ((ty | TAG_WEAK) == (TAG_I64 | TAG_WEAK)) && y->i > 0) {
    i64 r = x->i % y->i;
    put_bits(vm, A, tx & ty, (u64)(r < 0 ? r + y->i : r));
    NEXT();
  }
  TRY_LARGE(binary_slow(vm, ins, base, consts));
}
op_matmul:
op_pow:
op_band:
op_bor:
op_bxor:
op_shl:
op_shr: TRY_LARGE(binary_slow(vm, ins, base, consts));

#define COMPARISON(name, OPERATOR, TEXTS)                                                  \
  op_##name: {                                                                             \
    const Value *x = BK, *y = CK;                                                          \
    u64 tx = value_tag(*x), ty = value_tag(*y);                                            \
    f64 fx, fy;                                                                            \
    bool r;                                                                                \
    if (((tx | TAG_WEAK) == (TAG_I64 | TAG_WEAK)) & ((ty | TAG_WEAK) == (TAG_I64 | TAG_WEAK))) \
      r = x->i OPERATOR y->i;                                                              \
    else if (as_floats(x, y, tx, ty, &fx, &fy)) r = fx OPERATOR fy;                        \
    else if (tx == TAG_TEXT && ty == TAG_TEXT) {                                           \
      put_bits(vm, A, TAG_BOOL, TEXTS);                                                    \
      KILL_NEXT();                                                                         \
    }                                                                                      \
    else TRY_LARGE(binary_slow(vm, ins, base, consts));                                     \
    put_bits(vm, A, TAG_BOOL | (tx & ty & TAG_WEAK), r);                                   \
    NEXT();                                                                                \
  }
  COMPARISON(eq, ==, text_same(x->text, y->text))
  COMPARISON(ne, !=, !text_same(x->text, y->text))
  COMPARISON(lt, <, text_order(x->text, y->text) < 0)
  COMPARISON(le, <=, text_order(x->text, y->text) <= 0)
  COMPARISON(gt, >, text_order(x->text, y->text) > 0)
  COMPARISON(ge, >=, text_order(x->text, y->text) >= 0)

op_in: {
  bool is_in;
  if (CK->kind == V_RECORD && BK->kind == V_TEXT) is_in = record_at(vm, CK->record, BK->text) != NULL;
  else TRY(value_in(vm, *BK, *CK, &is_in));
  set_register(vm, A, value_bool(is_in)); /* when a is b or c, the operand goes with it */
  KILL_NEXT();
}
op_neg: {
  const Value *x = BK;
  u64 tx = value_tag(*x);
  if ((tx | TAG_WEAK) == (TAG_F64 | TAG_WEAK)) {
    put_bits(vm, A, tx, float_bits(-x->f));
    NEXT();
  }
  if ((tx | TAG_WEAK) == (TAG_I64 | TAG_WEAK)) {
    put_bits(vm, A, tx, 0 - x->u);
    NEXT();
  }
  TRY_LARGE(unary_slow(vm, ins, base, consts));
}
op_pos:
op_bnot: TRY_LARGE(unary_slow(vm, ins, base, consts));
op_not:
op_truth: {
  const Value *x = BK;
  bool t;
  if (LIKELY((value_tag(*x) | TAG_WEAK) == (TAG_BOOL | TAG_WEAK))) t = x->i;
  else TRY(vm_truth(vm, *x, &t));
  put_bits(vm, A, TAG_BOOL, ins_op(ins) == BC_not ? !t : t);
  KILL_NEXT();
}

  /* ---- making values ---- */
op_array: TRY_NEXT(make_array(vm, base, ins));
op_list: {
  u32 to = ins_a(ip[1]);
  /* xs += (x,): no list of one item is made for it. */
  if (ins_c(ins) == 1 && ins_op(ip[1]) == BC_add && ins_b(ip[1]) == to && ins_c(ip[1]) == ins_a(ins) &&
      ins_flags(ip[1]) & INS_C_DIES && base[to].kind == V_LIST && base[to].list->head.refs == 1 &&
      to != ins_a(ins) && !once) {
    Value *at = &base[ins_b(ins)], item = *at;
    SAVE();
    if (UNLIKELY(!value_boxed(vm, item))) goto raised;
    *at = value_nil();
    set_register(vm, A, value_nil());
    if (UNLIKELY(!list_push(vm, &base[to], item))) goto raised;
    ip++;
    NEXT();
  }
  TRY_NEXT(make_list(vm, base, ins));
}
op_append:
  SAVE();
  if (UNLIKELY(!value_boxed(vm, *BK)) || UNLIKELY(!list_push(vm, A, value_keep(*BK)))) goto raised;
  KILL_NEXT();
op_extend:
  TRY(make_extend(vm, A, *BK));
  KILL_NEXT();
op_toarray: {
  Value v;
  TRY(list_boxed(vm, A->list) ? vm_array_literal(vm, A->list->items, A->list->count, &v) : WEFT_ERROR);
  set_register(vm, A, v);
  NEXT();
}
op_record: TRY_NEXT(make_record(vm, f, ins));
op_recput:
  TRY(make_put(vm, A, *BK, *CK));
  KILL_NEXT();
op_recspread:
  TRY(make_spread(vm, A, *BK));
  KILL_NEXT();
op_range:
  TRY(make_range(vm, base, ins));
  if (UNLIKELY(ins_op(ip[1]) == BC_call && vm_maps(base, ip[1]) >= (u64)vm->tunables.map_items)) vm->large_left = -1;
  NEXT_LARGE();
op_fmt: {
  Value v;
  TRY(vm_text(vm, *BK, *CK, &v));
  set_register(vm, A, v);
  KILL_NEXT();
}
op_join: {
  Value v;
  u32 b = ins_b(ins);
  SAVE();
  if (UNLIKELY(!text_concat(vm, base + b, ins_c(ins), &v))) goto raised;
  drop_run(vm, base + b, ins_c(ins));
  set_register(vm, A, v);
  NEXT();
}

  /* ---- reading parts ---- */
op_index: {
  const Value *x = BK, *y = CK;
  i64 i;
  if (LIKELY(x->kind == V_ARRAY) && array_rank(x->array) == 1 && array_device(x->array) == DEV_CPU &&
      x->dtype != DT_c128 && in_bounds(*y, array_dims(x->array)[0], &i)) {
    const Array *a = x->array;
    i64 at = i * a->geometry[1];
    u32 dtype = array_dtype(a);
    if (dtype == DT_f64 || dtype == DT_i64) put_bits(vm, A, TAG_NUM(dtype), ((const u64 *)a->data)[at]);
    else set_register(vm, A, array_load(a, at));
    KILL_NEXT();
  }
  if (x->kind == V_LIST && LIKELY(x->list->items != NULL) && in_bounds(*y, x->list->count, &i)) {
    found = &x->list->items[i];
    goto found_one;
  }
  if (x->kind == V_TEXT && x->text->len == x->text->count && in_bounds(*y, x->text->len, &i)) {
    if (LIKELY((found = letter_at(vm, x->text, (u64)i)) != NULL)) goto found_one;
  } else if (x->kind == V_RECORD && y->kind == V_TEXT) {
    if (LIKELY((found = record_at(vm, x->record, y->text)) != NULL)) goto found_one;
  }
  TRY(index_one(vm, base, ins, *x, *y));
  KILL_NEXT();
}
op_indexn: TRY_NEXT(index_many(vm, f, ins, once));
op_field: {
  const Value *x = BK;
  Name name = f->code->proto->descs[ins_c(ins)].name;
  Value v;
  if (x->kind == V_RECORD) {
    if (LIKELY((found = record_find(x->record, name)) != NULL)) goto found_one;
  }
  TRY(vm_field(vm, *x, name, &v));
  set_register(vm, A, v);
  KILL_NEXT();
}
found_one:
  set_register(vm, A, value_keep(*found));
  KILL_NEXT();
op_method: {
  Value *at = A, v;
  bool has;
  Name name = f->code->proto->descs[ins_b(ins)].name;
  TRY(field_method(vm, at[1], name, &has, &v));
  if (has) {
    set_register(vm, &at[0], v);
    set_register(vm, &at[1], value_hole());
  } else if (UNLIKELY(at[0].kind == V_NIL)) {
    (void)field_no_method(vm, at[1], name);
    goto raised;
  }
  NEXT();
}
op_unpack: TRY_NEXT(unpack_sequence(vm, f, ins, *BK));
op_unpackrec: TRY_NEXT(unpack_record(vm, f, ins, *BK));
op_setpath: TRY_NEXT(set_path(vm, f, ins));

  /* ---- calls ---- */
op_call: {
  Value *win = base + ins_b(ins);
  u32 argc = ins_c(ins);
  TRY(vm_safepoint(vm));
  if ((ins_flags(ins) & INS_METHOD) && win[1].kind == V_HOLE) {
    win[1] = win[0];
    win[0] = value_nil();
    win++;
    argc--;
  }
  Value fn = win[0];
  if (LIKELY(fn.kind == V_FN)) {
    if (fn.fn->kind == FN_CLOSURE) {
      Code *callee = fn.fn->code;
      const Proto *p = callee->proto;
      if (LIKELY(p->rest_index < 0 && (argc == p->nparams || has_defaults(p, argc)))) {
        u16 flags = f->flags & FRAME_EAGER;
        Frame *g = push_frame(vm, fn, callee, (u16)ins_a(ins), flags);
        if (UNLIKELY(!g)) goto raised;
        Value *to = g->base;
        for (u32 i = 0; i < argc; i++) to[i] = win[1 + i];
        for (u32 i = argc; i < p->nparams; i++) to[i] = value_hole();
        memset(to + p->nparams, 0, sizeof(Value) * (p->nregs - p->nparams));
        memset(win, 0, sizeof(Value) * (argc + 1));
        vm->stats.calls++;
        LOAD_FRAME();
        goto entered;
      }
    } else if (fn.fn->kind == FN_BUILTIN) {
      if (argc == 1 && asks_shape(vm, fn.fn->op, win[1], &result)) {
        drop_run(vm, win, 2);
        set_register(vm, A, result);
        NEXT();
      }
      if (UNLIKELY(fn.fn->op == OP_remove && argc == 2)) give_up_record(vm, f, ins, once, win + 1);
      if (UNLIKELY(call_builtin(vm, fn.fn->op, win + 1, argc, &result) != WEFT_OK)) goto raised;
      f = &vm->frames[vm->frame_count - 1];
      win[0] = value_nil();
      value_drop(vm, fn);
      set_register(vm, A, result);
      NEXT_LARGE();
    }
  }
  switch (call_window(vm, win, argc, (u16)ins_a(ins), false, &result)) {
    case CALL_RAISED: goto raised;
    case CALL_PUSHED: LOAD_FRAME(); goto entered;
    default: break;
  }
  f = &vm->frames[vm->frame_count - 1];
  set_register(vm, A, result);
  NEXT_LARGE();
}
op_callx: {
  Value *win = base + ins_b(ins);
  TRY(vm_safepoint(vm));
  bool skip = (ins_flags(ins) & INS_METHOD) && win[1].kind == V_HOLE;
  switch (call_described(vm, &f->code->proto->descs[ins_c(ins)], win, skip, (u16)ins_a(ins), false, &result)) {
    case CALL_RAISED: goto raised;
    case CALL_PUSHED: LOAD_FRAME(); goto entered;
    default: break;
  }
  f = &vm->frames[vm->frame_count - 1];
  set_register(vm, A, result);
  NEXT_LARGE();
}
op_tail: {
  Value *win = base + ins_b(ins);
  u32 argc = ins_c(ins);
  TRY(vm_safepoint(vm));
  if ((ins_flags(ins) & INS_METHOD) && win[1].kind == V_HOLE) {
    win[1] = win[0];
    win[0] = value_nil();
    win++;
    argc--;
  }
  switch (call_window(vm, win, argc, 0, true, &result)) {
    case CALL_RAISED: goto raised;
    case CALL_PUSHED: LOAD_FRAME(); goto entered;
    default: goto returning;
  }
}
op_tailx: {
  Value *win = base + ins_b(ins);
  TRY(vm_safepoint(vm));
  bool skip = (ins_flags(ins) & INS_METHOD) && win[1].kind == V_HOLE;
  switch (call_described(vm, &f->code->proto->descs[ins_c(ins)], win, skip, 0, true, &result)) {
    case CALL_RAISED: goto raised;
    case CALL_PUSHED: LOAD_FRAME(); goto entered;
    default: goto returning;
  }
}
op_ret: {
  u32 a = ins_a(ins);
  if (a & INS_CONST) {
    result = value_keep(consts[a & ~(u32)INS_CONST]);
  } else { /* the frame ends: its registers die */
    result = base[a];
    base[a] = value_nil();
  }
}
returning: /* result goes to the caller */
  if (UNLIKELY(once)) {
    vm_return(vm, result);
    return WEFT_OK;
  }
  {
  f = &vm->frames[vm->frame_count - 1];
  if (UNLIKELY(f->flags & FRAME_WATCHED)) vm->tier->returns(vm);
  u32 n = f->code->proto->nregs;
  Value self = f->self;
  u16 to = f->result;
  base = f->base;
  clear_registers(vm, base, n);
  vm->frame_count--;
  stack_give_back(vm, base);
  value_drop(vm, self);
  if (vm->frame_count == floor) {
    *out = result;
    return WEFT_OK;
  }
  LOAD_FRAME();
  set_register(vm, &base[to], result);
  if (UNLIKELY(f->flags & (FRAME_RESUME | FRAME_AWAITS))) {
    f->pc++;
    switch (vm->tier->resume(vm, f)) {
      case TIER_STAY: LOAD_FRAME(); DISPATCH();
      case TIER_RAN: goto tier_ran;
      default: goto raised;
    }
  }
  NEXT();
}

entered: /* a frame was just pushed: f, base, ip stand at its first instruction */
  if (vm->tier && !once && !(f->flags & (FRAME_EAGER | FRAME_MODULE)) && f->code->proto->nsites) {
    SiteState *s = &f->code->sites[0];
    if (LIKELY(s->count != INT32_MAX)) s->count++;
    /* it is looked at from its second call on */
    bool heavy = !s->entry && s->count > 1 && (u32)vm->work - s->work >= (u64)vm->tunables.hot_work;
    s->work = (u32)vm->work;
    if ((s->count >= vm->tunables.warm_calls || heavy || !vm->tunables.hot_calls) && !(s->flags & SITE_COLD)) {
      switch (vm->tier->site(vm, f, 0)) {
        case TIER_STAY: LOAD_FRAME(); break;
        case TIER_RAN: goto tier_ran;
        default: goto raised;
      }
    }
  }
  if (UNLIKELY(vm->large_left < 0)) goto large;
  DISPATCH();

large:
  vm->large_left = vm->tunables.large_units;
  if (vm->tier && !once && !(f->flags & FRAME_EAGER)) {
    SAVE();
    switch (vm->tier->large(vm, f)) {
      case TIER_STAY: LOAD_FRAME(); break;
      case TIER_RAN: goto tier_ran;
      default: goto raised;
    }
  }
  DISPATCH();

tier_ran: /* frames were changed */
  if (vm->frame_count <= floor) {
    *out = vm->native_result;
    vm->native_result = value_nil();
    return WEFT_OK;
  }
  LOAD_FRAME();
  DISPATCH();

  /* ---- control ---- */
op_jump:
  ip = code + ins_x(ins);
  DISPATCH();
op_jif:
op_jnot: {
  const Value *x = AK;
  bool t;
  if (LIKELY((value_tag(*x) | TAG_WEAK) == (TAG_BOOL | TAG_WEAK))) t = x->i;
  else TRY(vm_truth(vm, *x, &t));
  if (vm->tier) {
    u32 site = f->code->site_of_pc[ip - code];
    if (site) {
      SiteState *s = &f->code->sites[site - 1];
      s->taken = (u16)(s->taken << 1 | t | (s->taken & TAKEN_FULL));
    }
  }
  if (UNLIKELY(x->flags & VF_COUNTED) && (ins_flags(ins) & INS_A_DIES)) set_register(vm, A, value_nil());
  if (t == (ins_op(ins) == BC_jif)) {
    ip = code + ins_x(ins);
    DISPATCH();
  }
  NEXT();
}
op_jgiven:
  if (A->kind != V_HOLE) {
    ip = code + ins_x(ins);
    DISPATCH();
  }
  NEXT();
op_loop: {
  TRY(vm_safepoint(vm));
  const Ins *head = code + ins_x(ins);
  if (vm->tier && !(f->flags & FRAME_EAGER)) {
    u32 site = once ? 0 : f->code->site_of_pc[ip - code];
    if (site) {
      SiteState *s = &f->code->sites[site - 1];
      u32 work = (u32)vm->work - s->work;
      i32 heat = 1;
      if (UNLIKELY(work)) {
        u64 more = s->count > 0 ? work / (u64)vm->tunables.hot_work : 0;
        heat += more < HEAT_OF_WORK ? (i32)more : HEAT_OF_WORK;
        s->work = (u32)vm->work;
      }
      s->count = s->count < INT32_MAX - HEAT_OF_WORK ? s->count + heat : INT32_MAX;
      if ((s->count >= vm->tunables.warm_trips || !vm->tunables.hot_trips) && !(s->flags & SITE_COLD)) {
        f->pc = ins_x(ins); /* the back-edge is behind us: state is that of the loop's head */
        switch (vm->tier->site(vm, f, site - 1)) {
          case TIER_STAY:
            LOAD_FRAME();
            DISPATCH();
          case TIER_RAN: goto tier_ran;
          default: goto raised;
        }
      }
    }
  }
  ip = head;
  DISPATCH();
}
op_forprep: {
  TRY(for_begin(vm, base, ins, *BK));
  u32 site = vm->tier && !once && !(f->flags & FRAME_EAGER) ? f->code->site_of_pc[ip - code] : 0;
  if (site && f->code->sites[site - 1].flags & SITE_STARTS && A[2].u > 1) {
    f->pc++;
    switch (vm->tier->start(vm, f, site - 1)) {
      case TIER_STAY: LOAD_FRAME(); DISPATCH();
      case TIER_RAN: goto tier_ran;
      default: goto raised;
    }
  }
  NEXT();
}
op_fornext: {
  Value *at = A;
  if (at[1].u >= at[2].u) {
    set_register(vm, &at[0], value_nil()); /* an array walked over may be updated in place again */
    ip = code + ins_x(ins);
    DISPATCH();
  }
  if (LIKELY(at[0].kind == V_RANGE)) {
    const Range *r = at[0].range;
    put_bits(vm, &at[3], TAG_I64 | TAG_WEAK, (u64)r->start + at[1].u * (u64)r->step);
    at[1].u++;
    NEXT();
  }
  found = at[0].kind == V_LIST && LIKELY(at[0].list->items != NULL) ? &at[0].list->items[at[1].u] : at[0].kind ==
          V_TEXT ? letter_at(vm, at[0].text, at[1].u) : NULL;
  if (LIKELY(found != NULL)) {
    at[1].u++;
    set_register(vm, &at[3], value_keep(*found));
    NEXT();
  }
  TRY_NEXT(for_item(vm, at));
}
op_catch: {
  Value v;
  SAVE();
  if (UNLIKELY(!vm_error_record(vm, &v))) goto raised;
  set_register(vm, A, v);
  NEXT();
}

  /* ---- the rest ---- */
op_import: {
  Value v;
  TRY(module_import(vm, f->code->module, *BK, &v));
  f = &vm->frames[vm->frame_count - 1];
  set_register(vm, A, v);
  NEXT();
}
op_checkarg: {
  Value bound[ARRAY_MAX_RANK];
  const Desc *d = &f->code->proto->descs[ins_c(ins)];
  TRY(annot_check(vm, f->code->proto->name, d, *BK, base, bound));
  u32 n = 0;
  for (u32 i = 0; d->has_dims && i < d->rank; i++)
    if (d->dim_consts[i] == -1 && d->dim_binds[i]) set_register(vm, A + n, bound[n]), n++;
  NEXT();
}

raised:
  if (once) return WEFT_ERROR;
  if (!unwind(vm, floor)) return WEFT_ERROR;
  LOAD_FRAME();
  DISPATCH();
}

WeftStatus vm_run(Vm *vm, u32 floor, Value *out) {
  if (run(vm, floor, false, out) != WEFT_OK) return WEFT_ERROR;
  if (LIKELY(value_boxed(vm, *out))) return WEFT_OK;
  value_drop(vm, *out);
  return WEFT_ERROR;
}

WeftStatus vm_step(Vm *vm) { return run(vm, 0, true, NULL); }
