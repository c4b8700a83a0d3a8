/* checked.c — a small table of what was checked before (see checked.h). */
#include "hop/checked.h"

enum { CHECKED_SLOTS = 512, KEY_DEPTH = 6, KEY_NODES = 1 << 16 };

typedef struct Checked {
  u64 keys[CHECKED_SLOTS];
} Checked;

static u64 mix(u64 h, u64 word) {
  h = (h ^ word) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

/* *left: of values that it looks at, so many more. */
static u64 key_of(u64 h, Value v, u32 depth, u32 *left) {
  if (!*left || !--*left) return h;
  v = value_untracked(v);
  h = mix(h, (u64)v.kind << 8 | (v.kind == V_NUM || v.kind == V_DTYPE ? (u64)v.dtype << 16 | (v.flags & VF_WEAK) : 0));
  if (depth > KEY_DEPTH) return h;
  switch (v.kind) {
    case V_ARRAY:
      h = mix(h, (u64)array_dtype(v.array) << 8 | array_rank(v.array));
      for (u32 d = 0; d < array_rank(v.array); d++) h = mix(h, (u64)array_dims(v.array)[d]);
      return h;
    case V_TEXT:
      for (u32 i = 0; i < v.text->len && *left; i++) h = mix(h, (u8)v.text->data[i]), *left -= i % 64 == 63;
      return h;
    case V_LIST:
      h = mix(h, v.list->count);
      for (u32 i = 0; i < v.list->count; i++) h = key_of(h, v.list->items[i], depth + 1, left);
      return h;
    case V_RECORD:
      for (u32 i = 0; i < v.record->shape->count; i++)
        h = key_of(mix(h, v.record->shape->keys[i]), v.record->items[i], depth + 1, left);
      return h;
    case V_FN: {
      const Fn *f = v.fn;
      h = mix(h, (u64)f->kind << 32 | (u64)f->transform << 16 | f->op);
      if (f->kind == FN_CLOSURE) {
        h = mix(h, f->code->id);
        for (u32 i = 0; f->env && i < f->env->count; i++) h = key_of(h, f->env->slots[i], depth + 1, left);
      } else if (f->kind == FN_TRANSFORM) {
        h = key_of(key_of(h, f->inner, depth + 1, left), f->settings, depth + 1, left);
      }
      return h;
    }
    default: return h;
  }
}

u64 checked_key(u64 construct, const Value *values, u32 count) {
  u64 h = mix(0x243f6a8885a308d3u, construct);
  u32 left = KEY_NODES;
  for (u32 i = 0; i < count; i++) h = key_of(h, values[i], 0, &left);
  return left ? h | 1 : 0;
}

bool checked_before(const Vm *vm, u64 key) {
  const Checked *c = vm->tape_state;
  return key && c && c->keys[key >> 1 & (CHECKED_SLOTS - 1)] == key;
}

static void checked_forget(Vm *vm) {
  if (vm->tape_state) mem_free(&vm->alloc, vm->tape_state, sizeof(Checked));
  vm->tape_state = NULL;
}

void checked_now(Vm *vm, u64 key) {
  Checked *c = vm->tape_state;
  if (!key) return;
  if (!c) {
    c = mem_alloc_zero(&vm->alloc, sizeof *c);
    if (!c) return;
    if (!vm_at_free(vm, checked_forget)) {
      mem_free(&vm->alloc, c, sizeof *c);
      return;
    }
    vm->tape_state = c;
  }
  c->keys[key >> 1 & (CHECKED_SLOTS - 1)] = key;
}
