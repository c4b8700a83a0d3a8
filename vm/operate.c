/* operate.c — operators on any values: numbers at once, arrays by kernels, texts and lists here. */
#include "vm/operate.h"

#include <string.h>

#include "vm/scalar.h"

static const struct {
  u16 op;
  const char *sign;
} operators[BC_COUNT] = {
    [BC_add] = {OP_add, "+"},
    [BC_sub] = {OP_subtract, "-"},
    [BC_mul] = {OP_multiply, "*"},
    [BC_div] = {OP_divide, "/"},
    [BC_floordiv] = {OP_floor_divide, "//"},
    [BC_mod] = {OP_remainder, "%"},
    [BC_matmul] = {OP_matmul, "@"},
    [BC_pow] = {OP_power, "**"},
    [BC_band] = {OP_bitwise_and, "&"},
    [BC_bor] = {OP_bitwise_or, "|"},
    [BC_bxor] = {OP_bitwise_xor, "^"},
    [BC_shl] = {OP_left_shift, "<<"},
    [BC_shr] = {OP_right_shift, ">>"},
    [BC_eq] = {OP_equal, "=="},
    [BC_ne] = {OP_not_equal, "!="},
    [BC_lt] = {OP_less, "<"},
    [BC_le] = {OP_less_equal, "<="},
    [BC_gt] = {OP_greater, ">"},
    [BC_ge] = {OP_greater_equal, ">="},
    [BC_neg] = {OP_negative, "-"},
    [BC_pos] = {OP_positive, "+"},
    [BC_bnot] = {OP_bitwise_not, "~"},
};

/* ---- the way to kernels ----------------------------------------------------------------------- */

/* Is a tracked number anywhere in a nested list that `array` takes? */
static bool tracked_within(Value v, u32 depth) {
  if (v.kind != V_LIST || depth > ARRAY_MAX_RANK) return v.kind == V_TRACKED;
  for (u32 k = 0; k < v.list->count; k++)
    if (tracked_within(v.list->items[k], depth + 1)) return true;
  return false;
}

/* Tapes and devices come before the eager kernel. */
static WeftStatus op_elsewhere(Vm *vm, u32 op, Value *args, u32 n, Value *out, bool *done) {
  *done = true;
  u32 device = DEV_CPU;
  /* whatever the items are, and they may be many, or lie in columns */
  if ((op == OP_len || op == OP_join) && args[0].kind == V_LIST) n = 0;
  for (u32 i = 0; i < n; i++) {
    if (args[i].kind == V_TRACKED && vm->tape) return vm->tape->op(vm, op, args, out);
    if (args[i].kind == V_ARRAY && array_device(args[i].array) != DEV_CPU) device = array_device(args[i].array);
    if (args[i].kind == V_LIST && vm->devices[DEV_GPU])
      for (u32 k = 0; k < args[i].list->count; k++)
        if (args[i].list->items[k].kind == V_ARRAY && array_device(args[i].list->items[k].array) != DEV_CPU)
          device = array_device(args[i].list->items[k].array);
    if (args[i].kind == V_LIST && vm->tape && vm->taped) { /* stack((a, b)): tracked items one level down */
      for (u32 k = 0; k < args[i].list->count; k++)
        if (args[i].list->items[k].kind == V_TRACKED) return vm->tape->op(vm, op, args, out);
      if (op == OP_array && tracked_within(args[i], 0)) return vm->tape->op(vm, op, args, out);
    }
  }
  if (device != DEV_CPU && !op_is_of_values(vm, op)) {
    if (op_shows(vm, op)) return op_by_processor(vm, op, args, DEV_CPU, out);
    if (device < DEVICE_MAX && vm->devices[device] && vm->devices[device]->op)
      return vm->devices[device]->op(vm, op, args, out);
    return vm_error(vm, EK_unsupported, "%s: this device is not supported", op_name(op));
  }
  *done = false;
  return WEFT_OK;
}

static inline WeftStatus op_here(Vm *vm, u32 op, Value *args, Value *out) {
  EagerFn eager = vm->ops[op].eager;
  if (UNLIKELY(!eager)) return vm_error(vm, EK_unsupported, "%s: not supported", vm->op_table[op].name);
  WeftStatus status = eager(vm, args, out);
  if (UNLIKELY(status != WEFT_OK)) {
    vm_error_name_op(vm, op);
    return status;
  }
  if (out->kind == V_ARRAY && out->array->size >= 1024) { /* fuel: elements / 1024 */
    u64 units = (u64)out->array->size >> 10;
    if (vm->large_left >= 0) vm->large_left -= (i64)units;
    if (units >= vm->poll_countdown) {
      vm->poll_batch +=
          (u32)(units - vm->poll_countdown + 1 > UINT32_MAX / 2 ? UINT32_MAX / 2 : units - vm->poll_countdown + 1);
      vm->poll_countdown = 1; /* the next safepoint settles it */
    } else {
      vm->poll_countdown -= (u32)units;
    }
  }
  if (UNLIKELY(vm->limits.deadline > 0) && vm->op_table[op].family >= FAM_make && vm_look(vm) != WEFT_OK) {
    value_drop(vm, *out);
    *out = value_hole();
    return WEFT_ERROR;
  }
  return status;
}

WeftStatus vm_op(Vm *vm, u32 op, Value *args, Value *out) {
  bool done;
  WeftStatus status = op_elsewhere(vm, op, args, vm->op_table[op].nparams, out, &done);
  return done ? status : op_here(vm, op, args, out);
}

/* Neither a tape nor another device has a say in it. */
static inline bool is_here(const Value *v) {
  return v->kind == V_ARRAY ? array_device(v->array) == DEV_CPU : v->kind == V_NUM;
}

/* ---- what is no number ------------------------------------------------------------------------ */

/* As type() says, but what has no axes is a number to who reads the message. */
static const char *operand_name(Value v) {
  v = value_untracked(v);
  return v.kind == V_NUM || (v.kind == V_ARRAY && !array_rank(v.array)) ? "number" : value_type_name(v);
}

static WeftStatus bad_operands(Vm *vm, u32 bc, Value a, Value b) {
  const char *sign = operators[bc].sign, *left = operand_name(a), *right = operand_name(b);
  Value odd = value_is_numeric(value_untracked(a)) ? b : a;
  if (a.kind == V_RANGE || b.kind == V_RANGE)
    return vm_error(vm, EK_type, "%s: a range is no array; arange(start, stop, step) or array(r) makes one", sign);
  if (odd.kind == V_LIST && a.kind != V_TEXT && b.kind != V_TEXT)
    return vm_error(vm, EK_type, "%s: cannot take %s and %s; array(…) makes an array of a list", sign, left, right);
  if (odd.kind == V_TEXT && bc == BC_add)
    return vm_error(vm, EK_type, "+: cannot take %s and %s; str(…) makes text of a value", left, right);
  if (a.kind == V_TEXT && bc == BC_mod)
    return vm_error(vm, EK_type, "%%: cannot take %s and %s; values stand in a text as f\"{x:.2f}\"", left, right);
  return vm_error(vm, EK_type, "%s: cannot take %s and %s", sign, left, right);
}

static WeftStatus join_lists(Vm *vm, Value *args, Value *out) {
  List *b = args[1].list;
  if (!list_boxed(vm, b)) return WEFT_ERROR;
  if (value_unique(args[0])) {
    if (!list_extend(vm, &args[0], b->items, b->count)) return WEFT_ERROR;
    *out = args[0];
    args[0] = value_hole();
    return WEFT_OK;
  }
  List *a = args[0].list;
  u64 need = (u64)a->count + b->count;
  if (need > UINT32_MAX / 2)
    return vm_error(vm, EK_limit, "a list of %llu items is too long", (unsigned long long)need);
  Value made;
  if (list_is_packed(a) ? !packed_copy(vm, a, &made) : !list_new(vm, (u32)need, &made)) return WEFT_ERROR;
  if ((!list_is_packed(a) && !list_extend(vm, &made, a->items, a->count)) ||
      !list_extend(vm, &made, b->items, b->count)) {
    value_drop(vm, made);
    return WEFT_ERROR;
  }
  *out = made;
  return WEFT_OK;
}

/* text * n, list * n; fewer than one time is none. */
static WeftStatus repeat_sequence(Vm *vm, Value seq, Value times, Value *out) {
  i64 n;
  times = value_untracked(times);
  if (!num_as_index(times, &n) || times.dtype == DT_bool)
    return vm_error(vm, EK_type, "*: %s is repeated an integer number of times, got %s", value_type_name(seq),
                    dtype_name(times.dtype));
  if (n < 0) n = 0;
  if (seq.kind == V_TEXT) return text_repeat(vm, seq.text, (u64)n, out) ? WEFT_OK : WEFT_ERROR;
  u64 most = UINT32_MAX / 2;
  const u32 count = seq.list->count;
  if (count && (u64)n > most / count)
    return vm_error(vm, EK_limit, "a list of %u items, %lld times, is too long", count, (long long)n);
  if (!list_boxed(vm, seq.list) || vm_poll(vm, (u64)n * count >> 10) != WEFT_OK ||
      !list_new(vm, (u32)((u64)n * count), out))
    return WEFT_ERROR;
  for (i64 i = 0; i < n && count; i++)
    if (!vm_item(vm, (u64)i) || !list_extend(vm, out, seq.list->items, count)) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  return WEFT_OK;
}

static bool is_number(Value v) { return v.kind == V_NUM || v.kind == V_ARRAY || v.kind == V_TRACKED; }

static __attribute__((noinline)) WeftStatus binary_other(Vm *vm, u32 bc, Value *args, Value *out) {
  Value a = args[0], b = args[1];
  if (a.kind == V_NUM && b.kind == V_NUM && num_binary(bc, a, b, out)) return WEFT_OK;
  if (is_number(a) && is_number(b)) return vm_op(vm, operators[bc].op, args, out);
  if (bc == BC_eq || bc == BC_ne) {
    bool same;
    if (value_equal(vm, a, b, &same) != WEFT_OK) return WEFT_ERROR;
    *out = value_bool(same == (bc == BC_eq));
    return WEFT_OK;
  }
  if (a.kind == V_TEXT && b.kind == V_TEXT) {
    if (bc == BC_add && !value_unique(a)) return text_concat(vm, args, 2, out) ? WEFT_OK : WEFT_ERROR;
    if (bc == BC_add) {
      if (!text_append(vm, &args[0], b.text)) return WEFT_ERROR;
      *out = args[0];
      args[0] = value_hole();
      return WEFT_OK;
    }
    if (bc >= BC_lt && bc <= BC_ge) {
      const u32 least = a.text->len < b.text->len ? a.text->len : b.text->len;
      int c;
      if (text_compare(vm, a.text->data, b.text->data, least, &c) != WEFT_OK) return WEFT_ERROR;
      if (!c) c = (a.text->len > b.text->len) - (a.text->len < b.text->len);
      *out = value_bool(bc == BC_lt ? c < 0 : bc == BC_le ? c <= 0 : bc == BC_gt ? c > 0 : c >= 0);
      return WEFT_OK;
    }
  }
  if (a.kind == V_LIST && b.kind == V_LIST && bc == BC_add) return join_lists(vm, args, out);
  if (bc == BC_mul && (a.kind == V_TEXT || a.kind == V_LIST) && value_untracked(b).kind == V_NUM)
    return repeat_sequence(vm, a, b, out);
  if (bc == BC_mul && (b.kind == V_TEXT || b.kind == V_LIST) && value_untracked(a).kind == V_NUM)
    return repeat_sequence(vm, b, a, out);
  return bad_operands(vm, bc, a, b);
}

WeftStatus operate_binary(Vm *vm, u32 bc, Value *args, Value *out) {
  if ((args[0].kind == V_ARRAY || args[1].kind == V_ARRAY) && is_here(&args[0]) && is_here(&args[1]))
    return op_here(vm, operators[bc].op, args, out);
  return binary_other(vm, bc, args, out);
}

WeftStatus operate_unary(Vm *vm, u32 bc, Value *args, Value *out) {
  if (args[0].kind == V_NUM && num_unary(bc, args[0], out)) return WEFT_OK;
  if (is_number(args[0])) return vm_op(vm, operators[bc].op, args, out);
  if (args[0].kind == V_RANGE)
    return vm_error(vm, EK_type, "%s: a range is no array; arange(start, stop, step) or array(r) makes one",
                    operators[bc].sign);
  return vm_error(vm, EK_type, "%s: cannot take %s", operators[bc].sign, value_type_name(args[0]));
}

WeftStatus vm_binary(Vm *vm, u32 bc, Value a, Value b, Value *out) {
  if (bc == BC_in) {
    bool found = false;
    WeftStatus asked = value_in(vm, a, b, &found);
    *out = value_bool(found);
    return asked;
  }
  Value args[2] = {value_keep(a), value_keep(b)};
  WeftStatus status = bc == BC_neg || bc == BC_pos || bc == BC_bnot ? operate_unary(vm, bc, args, out)
                                                                   : operate_binary(vm, bc, args, out);
  value_drop(vm, args[0]);
  value_drop(vm, args[1]);
  return status;
}
