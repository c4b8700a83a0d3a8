/* interp.c — the opcode loop.
 *
 * One C function runs all frames above `floor`: calls push a frame and go on, they do not recurse. Scalars are
 * computed inline; arrays go through operate_binary, vm_index and vm_update. `f->pc` is brought up to date before
 * anything that may raise, so that errors, handlers and the tier see the instruction that runs. */
#include <string.h>

#include "vm/call.h"
#include "vm/field.h"
#include "vm/interp.h"
#include "vm/make.h"
#include "vm/module.h"
#include "vm/operate.h"
#include "vm/scalar.h"

/* most that the work of one trip adds to its loop's heat: what is between two runs of a loop counts for it as well */
enum { HEAT_OF_WORK = 15 };

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

/* Texts that are compared at once; longer ones with looks at the clock. */
static inline bool texts_short(const Text *x, const Text *y) {
  return LIKELY(x->len < TEXT_PART) || y->len < TEXT_PART;
}
static inline bool text_same(Vm *vm, const Text *x, const Text *y) {
  if (x == y) return true;
  if (x->len != y->len || x->data[0] != y->data[0]) return false;
  vm_worked(vm, x->len);
  return memcmp(x->data, y->data, x->len) == 0;
}
static inline int text_differs(Vm *vm, const Text *x, const Text *y) {
  vm_worked(vm, x->len < y->len ? x->len : y->len);
  return text_order(x, y);
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

/* Is the tier asked when the call at that pc is over? */
static inline bool is_awaited(const Frame *f, u32 pc) {
  u32 site = f->code->site_of_pc[pc];
  return site && f->code->sites[site - 1].flags & SITE_AWAITED;
}

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

/* once: one instruction of the top frame, errors not unwound; a return goes through vm_return. While there is a hook
 * all instructions go through `told`; whether there is one is looked at where large_left says so. */
static WeftStatus run(Vm *vm, u32 floor, bool once, Value *out) {
  static const void *const labels[BC_COUNT] = {
#define BC(name, form, effects, meaning) &&op_##name,
#include "lang/bytecode.def"
#undef BC
  };
  static const void *const hooked[BC_COUNT] = {
#define BC(name, form, effects, meaning) &&told,
#include "lang/bytecode.def"
#undef BC
  };
  static const void *const stops[BC_COUNT] = {
#define BC(name, form, effects, meaning) &&stepped,
#include "lang/bytecode.def"
#undef BC
  };
  const void *const *next_label = once ? stops : hook_on(vm) ? hooked : labels;
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

told: /* to the hook; operands stay in their registers, so that it finds the variables */
  if (UNLIKELY(!hook_on(vm))) next_label = labels;
  else TRY(hook_step(vm));
  ins &= ~((Ins)(INS_A_DIES | INS_B_DIES | INS_C_DIES) << 8);
  goto *labels[ins_op(ins)];

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
      (void)step_unassigned(vm, f->code, ins_x(ins));
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
    TRY_LARGE(step_binary(vm, ins, base, consts));                                          \
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
  TRY_LARGE(step_binary(vm, ins, base, consts));
}
op_floordiv: {
  const Value *x = BK, *y = CK;
  u64 tx = value_tag(*x), ty = value_tag(*y);
  if (((tx | TAG_WEAK) == (TAG_I64 | TAG_WEAK)) & ((ty | TAG_WEAK) == (TAG_I64 | TAG_WEAK)) && y->i > 0) {
    i64 n = x->i, d = y->i, q = n / d;
    put_bits(vm, A, tx & ty, (u64)(q - (n % d < 0)));
    NEXT();
  }
  TRY_LARGE(step_binary(vm, ins, base, consts));
}
op_mod: {
  const Value *x = BK, *y = CK;
  u64 tx = value_tag(*x), ty = value_tag(*y);
  if (((tx | TAG_WEAK) == (TAG_I64 | TAG_WEAK)) & ((ty | TAG_WEAK) == (TAG_I64 | TAG_WEAK)) && y->i > 0) {
    i64 r = x->i % y->i;
    put_bits(vm, A, tx & ty, (u64)(r < 0 ? r + y->i : r));
    NEXT();
  }
  TRY_LARGE(step_binary(vm, ins, base, consts));
}
op_matmul:
op_pow:
op_band:
op_bor:
op_bxor:
op_shl:
op_shr: TRY_LARGE(step_binary(vm, ins, base, consts));

/* NILS: two values, one of them nil; else a constant that is false where that is an error */
#define COMPARISON(name, OPERATOR, TEXTS, NILS)                                            \
  op_##name: {                                                                             \
    const Value *x = BK, *y = CK;                                                          \
    u64 tx = value_tag(*x), ty = value_tag(*y);                                            \
    f64 fx, fy;                                                                            \
    bool r;                                                                                \
    if (((tx | TAG_WEAK) == (TAG_I64 | TAG_WEAK)) & ((ty | TAG_WEAK) == (TAG_I64 | TAG_WEAK))) \
      r = x->i OPERATOR y->i;                                                              \
    else if (as_floats(x, y, tx, ty, &fx, &fy)) r = fx OPERATOR fy;                        \
    else if (tx == TAG_TEXT && ty == TAG_TEXT && texts_short(x->text, y->text)) {               \
      put_bits(vm, A, TAG_BOOL, TEXTS);                                                    \
      KILL_NEXT();                                                                         \
    }                                                                                      \
    else if (NILS) {                                                                       \
      put_bits(vm, A, TAG_BOOL, x->kind OPERATOR y->kind);                                 \
      KILL_NEXT();                                                                         \
    }                                                                                      \
    else TRY_LARGE(step_binary(vm, ins, base, consts));                                     \
    put_bits(vm, A, TAG_BOOL | (tx & ty & TAG_WEAK), r);                                   \
    NEXT();                                                                                \
  }
  COMPARISON(eq, ==, text_same(vm, x->text, y->text), x->kind == V_NIL || y->kind == V_NIL)
  COMPARISON(ne, !=, !text_same(vm, x->text, y->text), x->kind == V_NIL || y->kind == V_NIL)
  COMPARISON(lt, <, text_differs(vm, x->text, y->text) < 0, false)
  COMPARISON(le, <=, text_differs(vm, x->text, y->text) <= 0, false)
  COMPARISON(gt, >, text_differs(vm, x->text, y->text) > 0, false)
  COMPARISON(ge, >=, text_differs(vm, x->text, y->text) >= 0, false)

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
  TRY_LARGE(step_unary(vm, ins, base, consts));
}
op_pos:
op_bnot: TRY_LARGE(step_unary(vm, ins, base, consts));
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
  TRY(step_index(vm, base, ins, *x, *y));
  KILL_NEXT();
}
op_indexn: TRY_NEXT(step_index_many(vm, f, ins, once));
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
op_setpath: TRY_NEXT(step_set_path(vm, f, ins));

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
      if (UNLIKELY(fn.fn->op == OP_remove && argc == 2)) step_give_up_record(vm, f, ins, once, win + 1);
      if (UNLIKELY(call_builtin(vm, fn.fn->op, win + 1, argc, &result) != WEFT_OK)) goto raised;
      f = &vm->frames[vm->frame_count - 1];
      win[0] = value_nil();
      value_drop(vm, fn);
      set_register(vm, A, result);
      goto called;
    }
  }
  switch (call_window(vm, win, argc, (u16)ins_a(ins), false, &result)) {
    case CALL_RAISED: goto raised;
    case CALL_PUSHED: LOAD_FRAME(); goto entered;
    default: break;
  }
  f = &vm->frames[vm->frame_count - 1];
  set_register(vm, A, result);
}
called: /* without a frame of its own: by a built-in, a transform, the host */
  if (UNLIKELY(f->flags & FRAME_AWAITS) && !once && is_awaited(f, (u32)(ip - code))) {
    SAVE();
    goto resumed;
  }
  NEXT_LARGE();
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
  goto called;
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
  if (UNLIKELY(next_label != labels)) {
    if (once) {
      vm_return(vm, result);
      return WEFT_OK;
    }
    SAVE();
    if (hook_on(vm) && hook_returns(vm, &result) != WEFT_OK) {
      value_drop(vm, result);
      goto raised;
    }
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
  resumed: /* compiled code may lead from here to here again, over calls and trips that it has inside */
    if (UNLIKELY(vm_safepoint(vm) != WEFT_OK)) goto raised;
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
  if (UNLIKELY(next_label != labels) && !once && hook_on(vm)) TRY(hook_entered(vm));
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
  if (UNLIKELY(hook_on(vm)) && !once) next_label = hooked;
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
  if (UNLIKELY(hook_on(vm))) next_label = hooked;
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
  TRY(step_for_begin(vm, base, ins, *BK));
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
  TRY_NEXT(step_for_item(vm, at));
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
  if (UNLIKELY(hook_on(vm)) && !vm->suspends) hook_raised(vm);
  if (!frames_unwind(vm, floor)) return WEFT_ERROR;
  LOAD_FRAME();
  DISPATCH();
}

WeftStatus vm_run(Vm *vm, u32 floor, Value *out) {
  WeftStatus status = run(vm, floor, false, out);
  if (UNLIKELY(vm->hook.call != NULL)) vm->large_left = -1; /* set inside of it: the loop around looks, too */
  if (status != WEFT_OK) return WEFT_ERROR;
  if (LIKELY(value_boxed(vm, *out))) return WEFT_OK;
  value_drop(vm, *out);
  return WEFT_ERROR;
}

WeftStatus vm_step(Vm *vm) { return run(vm, 0, true, NULL); }
