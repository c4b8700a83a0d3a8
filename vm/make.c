/* make.c — instructions that make values of registers or take them apart (see make.h). */
#include "vm/make.h"

#include <string.h>

#include "vm/code.h"
#include "vm/field.h"
#include "vm/registers.h"

/* ---- closures --------------------------------------------------------------------------------- */

static bool make_env(Vm *vm, const Frame *f, const Proto *p, Env **out) {
  *out = NULL;
  if (!p->ncaptures) return true;
  Env *e = env_new(vm, p->ncaptures);
  if (!e) return false;
  for (u32 i = 0; i < p->ncaptures; i++) {
    const Capture *c = &p->captures[i];
    if (c->kind == CAP_REGISTER && !value_boxed(vm, f->base[c->index])) {
      env_drop(vm, e);
      return false;
    }
    if (c->kind == CAP_REGISTER) e->slots[i] = value_keep(f->base[c->index]);
    else if (c->kind == CAP_CAPTURE) e->slots[i] = value_keep(f->fn->env->slots[c->index]);
    else {
      Env *own = f->fn->env;
      if (own) own->head.refs++;
      if (fn_closure(vm, code_sibling(f->code, c->index), own, &e->slots[i])) continue;
      e->slots[i] = value_nil();
      env_drop(vm, e);
      return false;
    }
  }
  *out = e;
  return true;
}

WeftStatus make_closure(Vm *vm, const Frame *f, u32 a, u32 proto) {
  Code *code = code_child(vm, f->code, proto);
  Env *env;
  Value v;
  if (!code || !make_env(vm, f, code->proto, &env) || !fn_closure(vm, code, env, &v)) return WEFT_ERROR;
  set_register(vm, &f->base[a], v);
  return WEFT_OK;
}

WeftStatus make_group(Vm *vm, const Frame *f, u32 a, u32 first, u32 count) {
  Env *env;
  Code *code = code_child(vm, f->code, first);
  if (!code || !make_env(vm, f, code->proto, &env)) return WEFT_ERROR;
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < count && status == WEFT_OK; i++) {
    Value v;
    code = code_child(vm, f->code, first + i);
    if (env) env->head.refs++;
    if (!code) {
      env_drop(vm, env);
      status = WEFT_ERROR;
    } else if (fn_closure(vm, code, env, &v)) {
      set_register(vm, &f->base[a + i], v);
    } else {
      status = WEFT_ERROR;
    }
  }
  env_drop(vm, env);
  return status;
}

WeftStatus make_sibling(Vm *vm, const Frame *f, u32 a, u32 index) {
  Env *env = f->fn->env;
  Value v;
  if (env) env->head.refs++;
  if (!fn_closure(vm, code_sibling(f->code, index), env, &v)) return WEFT_ERROR;
  set_register(vm, &f->base[a], v);
  return WEFT_OK;
}

/* ---- making values ---------------------------------------------------------------------------- */

WeftStatus make_list(Vm *vm, Value *base, Ins ins) {
  u32 b = ins_b(ins), n = ins_c(ins);
  Value v;
  if (!values_boxed(vm, base + b, n) || !list_new(vm, n, &v)) return WEFT_ERROR;
  if (n) memcpy(v.list->items, base + b, sizeof(Value) * n);
  if (n) memset(base + b, 0, sizeof(Value) * n);
  v.list->count = n;
  set_register(vm, &base[ins_a(ins)], v);
  return WEFT_OK;
}

WeftStatus make_array(Vm *vm, Value *base, Ins ins) {
  Value v;
  if (vm_array_literal(vm, base + ins_b(ins), ins_c(ins), &v) != WEFT_OK) return WEFT_ERROR;
  drop_run(vm, base + ins_b(ins), ins_c(ins));
  set_register(vm, &base[ins_a(ins)], v);
  return WEFT_OK;
}

WeftStatus make_record(Vm *vm, const Frame *f, Ins ins) {
  Value *base = f->base, *items = base + ins_b(ins), v;
  u32 desc = ins_c(ins);
  const Desc *d = &f->code->proto->descs[desc];
  if (!values_boxed(vm, items, d->name_count)) return WEFT_ERROR;
  Shape *shape;
  if (!code_shape(vm, f->code, desc, &shape)) return WEFT_ERROR;
  if (shape) {
    if (!record_new_shape(vm, shape, &v)) return WEFT_ERROR;
    if (d->name_count) memcpy(v.record->items, items, sizeof(Value) * d->name_count);
    if (d->name_count) memset(items, 0, sizeof(Value) * d->name_count);
  } else {
    if (!record_new(vm, &v)) return WEFT_ERROR;
    for (u32 i = 0; i < d->name_count; i++) {
      if (record_set(vm, &v, d->names[i], value_keep(items[i]))) continue;
      value_drop(vm, v);
      return WEFT_ERROR;
    }
    drop_run(vm, items, d->name_count);
  }
  set_register(vm, &base[ins_a(ins)], v);
  return WEFT_OK;
}

WeftStatus make_put(Vm *vm, Value *rec, Value item, Value key) {
  if (key.kind != V_TEXT) return vm_error(vm, EK_type, "the keys of a record are text, got %s", value_type_name(key));
  Name name;
  return text_name_of(vm, key.text, &name) && value_boxed(vm, item) &&
         record_set(vm, rec, name, value_keep(item)) ? WEFT_OK : WEFT_ERROR;
}

WeftStatus make_spread(Vm *vm, Value *rec, Value from) {
  if (from.kind != V_RECORD)
    return vm_error(vm, EK_type, "a record takes in the fields of a record, got %s", value_type_name(from));
  Value work = value_keep(*rec); /* on error nothing has changed */
  for (u32 i = 0; i < from.record->shape->count; i++) {
    if (vm_item(vm, i) && record_set(vm, &work, from.record->shape->keys[i], value_keep(from.record->items[i])))
      continue;
    value_drop(vm, work);
    return WEFT_ERROR;
  }
  value_drop(vm, *rec);
  *rec = work;
  return WEFT_OK;
}

WeftStatus make_extend(Vm *vm, Value *list, Value v) {
  u64 count, pos = 0;
  if (v.kind == V_LIST)
    return list_boxed(vm, v.list) && list_extend(vm, list, v.list->items, v.list->count) ? WEFT_OK : WEFT_ERROR;
  if (v.kind == V_RECORD)
    return vm_error(vm, EK_type, "a list takes in items of a list, array, range or text, got record");
  if (vm_seq_open(vm, v, &count) != WEFT_OK) return WEFT_ERROR;
  u32 before = list->list->count;
  while (pos < count) {
    Value item;
    if (vm_item(vm, list->list->count) && vm_seq_next(vm, v, &pos, &item) == WEFT_OK && list_push(vm, list, item))
      continue;
    if (list->list->count > before) list_shorten(vm, list->list, 0, before);
    return WEFT_ERROR;
  }
  return WEFT_OK;
}

/* A whole number that is no view of anything, far from where ranges end. */
static inline bool is_small(Value v) {
  const i64 most = ARRAY_MAX_SIZE / 4;
  return v.kind == V_NUM && v.dtype == DT_i64 && v.i >= -most && v.i <= most;
}

WeftStatus make_range(Vm *vm, Value *base, Ins ins) {
  Value *r = base + ins_b(ins);
  if (LIKELY(ins_c(ins) == 2 && is_small(r[0]) && is_small(r[1]))) {
    Value plain;
    if (!range_new(vm, r[0].i, r[1].i, 1, &plain)) return WEFT_ERROR;
    r[0] = r[1] = value_nil();
    set_register(vm, &base[ins_a(ins)], plain);
    return WEFT_OK;
  }
  i64 part[3] = {0, 0, 1};
  for (u32 k = 0; k < ins_c(ins); k++) {
    Value v = value_untracked(r[k]);
    if (!num_as_index(v, &part[k]) || v.dtype == DT_bool)
      return vm_error(vm, EK_type, "a range is made of integers, got %s",
                      v.kind == V_NUM || (v.kind == V_ARRAY && !array_rank(v.array)) ? dtype_name(v.dtype)
                                                                                     : value_type_name(v));
  }
  if (part[2] == 0) return vm_error(vm, EK_value, "the step of a range is 0");
  Range probe = {.start = part[0], .stop = part[1], .step = part[2]};
  if (range_count(&probe) >= (u64)ARRAY_MAX_SIZE) return vm_error(vm, EK_value, "a range has fewer than 2 ** 62 items");
  Value v;
  if (!range_new(vm, part[0], part[1], part[2], &v)) return WEFT_ERROR;
  drop_run(vm, base + ins_b(ins), ins_c(ins));
  set_register(vm, &base[ins_a(ins)], v);
  return WEFT_OK;
}

u64 vm_maps(const Value *base, Ins call) {
  const Value *win = base + ins_b(call);
  bool map = ins_op(call) == BC_call && ins_c(call) == 2 && win->kind == V_FN && win->fn->kind == FN_BUILTIN &&
             win->fn->op == OP_map;
  return map && win[2].kind == V_RANGE ? range_count(win[2].range) : 0;
}

WeftStatus vm_text(Vm *vm, Value v, Value spec, Value *out) {
  if (spec.kind == V_TEXT && spec.text->len) {
    if (!value_boxed(vm, v)) return WEFT_ERROR;
    if (!vm->format) return vm_error(vm, EK_unsupported, "format specifications are not supported");
    return vm->format(vm, v, spec.text->data, spec.text->len, out);
  }
  if (v.kind == V_TEXT) {
    *out = value_keep(v);
    return WEFT_OK;
  }
  if (v.kind == V_NUM && dtype_kind(v.dtype) == DK_INT) {
    char digits[NUMBER_DIGITS];
    return text_new(vm, digits, number_digits(v, digits), out) ? WEFT_OK : WEFT_ERROR;
  }
  if (!value_boxed(vm, v)) return WEFT_ERROR;
  Value args[1] = {value_keep(v)};
  WeftStatus status = vm_op(vm, OP_str, args, out);
  value_drop(vm, args[0]);
  return status;
}

/* ---- taking apart ----------------------------------------------------------------------------- */

WeftStatus unpack_sequence(Vm *vm, const Frame *f, Ins ins, Value v) {
  const Desc *d = &f->code->proto->descs[ins_c(ins)];
  Value *to = f->base + ins_a(ins), parts, part;
  u64 count, pos = 0;
  u32 fixed = d->before + d->after;
  Value plain = value_untracked(v);
  if (plain.kind == V_TEXT || plain.kind == V_RECORD || plain.kind == V_HANDLE)
    return vm_error(vm, EK_type, "a pattern (…) takes a list or an array apart, got %s", value_type_name(plain));
  if (vm_seq_open(vm, v, &count) != WEFT_OK) return WEFT_ERROR;
  if (count < fixed || (!d->has_rest && count > fixed))
    return vm_error(vm, EK_value, "a pattern of %u parts%s does not fit %llu items", fixed,
                    d->has_rest ? " and a rest" : "", (unsigned long long)count);
  u32 total = fixed + d->has_rest;
  if (v.kind == V_LIST && v.list->items && !d->has_rest) {
    value_keep(v); /* one of the registers may be where v lies */
    kill_operands(vm, f->base, ins);
    for (u32 k = 0; k < total; k++) set_register(vm, &to[k], value_keep(v.list->items[k]));
    value_drop(vm, v);
    return WEFT_OK;
  }
  if (!list_new(vm, total, &parts)) return WEFT_ERROR;
  for (u32 k = 0; k < total; k++) {
    bool ok = true;
    if (d->has_rest && k == d->before) {
      ok = list_new(vm, 4, &part);
      for (u64 stop = count - d->after; ok && pos < stop;) {
        Value item;
        ok = vm_item(vm, pos) && vm_seq_next(vm, v, &pos, &item) == WEFT_OK && list_push(vm, &part, item);
        if (!ok) value_drop(vm, part);
      }
    } else {
      ok = vm_seq_next(vm, v, &pos, &part) == WEFT_OK;
    }
    if (!ok) {
      value_drop(vm, parts);
      return WEFT_ERROR;
    }
    parts.list->items[parts.list->count++] = part;
  }
  value_keep(v); /* one of the registers may be where v lies */
  kill_operands(vm, f->base, ins);
  for (u32 k = 0; k < total; k++) set_register(vm, &to[k], value_keep(parts.list->items[k]));
  value_drop(vm, v);
  value_drop(vm, parts);
  return WEFT_OK;
}

WeftStatus unpack_record(Vm *vm, const Frame *f, Ins ins, Value v) {
  const Desc *d = &f->code->proto->descs[ins_c(ins)];
  Value *to = f->base + ins_a(ins), rest = value_nil();
  if (v.kind != V_RECORD)
    return vm_error(vm, EK_type, "a pattern {…} takes a record apart, got %s", value_type_name(v));
  for (u32 k = 0; k < d->name_count; k++)
    if (!record_find(v.record, d->names[k])) return field_missing(vm, v.record, d->names[k]);
  if (d->has_rest) {
    rest = value_keep(v);
    for (u32 k = 0; k < d->name_count; k++) {
      bool found;
      if (record_remove(vm, &rest, d->names[k], &found)) continue;
      value_drop(vm, rest);
      return WEFT_ERROR;
    }
  }
  value_keep(v);
  kill_operands(vm, f->base, ins);
  for (u32 k = 0; k < d->name_count; k++) set_register(vm, &to[k], value_keep(*record_find(v.record, d->names[k])));
  if (d->has_rest) set_register(vm, &to[d->name_count], rest);
  value_drop(vm, v);
  return WEFT_OK;
}
