/* value.c — counts and destruction of values; functions, ranges; names of types. */
#include "vm/value.h"

#include <string.h>

#include "vm/alloc.h"
#include "vm/code.h"
#include "vm/library.h"
#include "vm/ref.h"

/* ---- destruction ------------------------------------------------------------------------------
 * Dead objects that hold values form a stack linked through their heads (8 bytes: pointer in the low 56
 * bits, kind above), so destroying needs no memory and no recursion, however deep the data is. Where the program is to
 * end, what is left of many waits in Vm.dead for the next call of the host (values_settle). */

enum { DEAD_ENV = 64 };
enum { SOME_DEAD = 4096 }; /* values between two looks at the clock */
_Static_assert(sizeof(Obj) == 8, "a link fits the head");

static void link_dead(Vm *vm, u64 *dead, u32 kind, Obj *obj) {
  if (kind == V_REF) ref_unlink(vm, (Ref *)obj); /* who walks over the cells sees living ones alone */
  memcpy(obj, dead, sizeof *dead);
  *dead = (u64)kind << 56 | (u64)(uintptr_t)obj;
}

static void destroy_leaf(Vm *vm, Value v) {
  switch (v.kind) {
    case V_ARRAY: array_destroy(vm, v.array); break;
    case V_TEXT:
      text_unname(vm, v.text);
      text_forget(vm, v.text);
      obj_free(vm, v.text, sizeof(Text) + v.text->len + 1);
      break;
    case V_RANGE: obj_free(vm, v.range, sizeof(Range)); break;
    case V_TRACKED:
      if (vm->tape) vm->tape->destroy(vm, v.p);
      break;
    case V_HANDLE: {
      Handle *h = v.handle;
      vm->releasing++;
      if (h->type->release) h->type->release(h->object);
      vm->releasing--;
      value_drop(vm, h->fields); /* as deep as the host nests its objects */
      obj_free(vm, h, sizeof *h);
      break;
    }
    default: break; /* modules live as long as the VM */
  }
}

static void release(Vm *vm, u64 *dead, Value v) {
  if (!(v.flags & VF_COUNTED) || --v.obj->refs) return;
  if (v.kind == V_LIST || v.kind == V_RECORD || v.kind == V_FN || v.kind == V_REF) link_dead(vm, dead, v.kind, v.obj);
  else destroy_leaf(vm, v);
}

static void destroy_fn(Vm *vm, u64 *dead, Fn *f) {
  if (f->kind == FN_CLOSURE) {
    if (f->env && --f->env->head.refs == 0) link_dead(vm, dead, DEAD_ENV, &f->env->head);
    code_drop(vm, f->code);
  } else if (f->kind == FN_TRANSFORM) {
    release(vm, dead, f->inner);
    release(vm, dead, f->settings);
  } else if (f->kind == FN_HOST && f->host) {
    if (f->host->release) f->host->release(f->host->ctx);
    mem_free(&vm->alloc, f->host, sizeof *f->host);
  }
  obj_free(vm, f, sizeof *f);
}

static bool is_to_end(const Vm *vm) {
  return !vm->ending && (vm_ends(vm) || (vm->error.raised && vm->error.final));
}

/* Of the items of a dead list some, the last ones first. False: there are more. */
static bool release_items(Vm *vm, u64 *dead, List *l, u32 *some) {
  if (list_is_packed(l)) return true;
  if (l->count <= *some) {
    for (u32 i = 0; i < l->count; i++) release(vm, dead, l->items[i]);
    *some -= l->count;
    return true;
  }
  for (; *some; --*some) release(vm, dead, l->items[--l->count]);
  return false;
}

/* A dead record of many keys, without them, is a list. */
_Static_assert(sizeof(List) == sizeof(Record), "one becomes the other");
static void record_as_list(Vm *vm, u64 *dead, Record *r) {
  const u32 front = r->front, count = r->shape->count, cap = r->cap;
  Value *items = r->items - front;
  if (front) memset(items, 0, sizeof *items * front);
  shape_drop(vm, r->shape);
  List *l = (List *)(void *)r;
  *l = (List){.count = front + count, .cap = front + cap, .items = items};
  link_dead(vm, dead, V_LIST, &l->head);
}

/* The first of the stack. */
static inline void destroy_next(Vm *vm, u64 *dead, u32 *some) {
  const u32 kind = (u32)(*dead >> 56);
  Obj *obj = (Obj *)(uintptr_t)(*dead & (((u64)1 << 56) - 1));
  memcpy(dead, obj, sizeof *dead);
  switch (kind) {
    case V_LIST: {
      List *l = (List *)obj;
      if (UNLIKELY(!release_items(vm, dead, l, some))) {
        link_dead(vm, dead, V_LIST, obj);
        return;
      }
      if (l->packed) packed_free(vm, l->packed);
      items_free(vm, l->items, l->cap);
      obj_free(vm, l, sizeof *l);
      break;
    }
    case V_RECORD: {
      Record *r = (Record *)obj;
      if (UNLIKELY(r->shape->count > SOME_DEAD)) {
        record_as_list(vm, dead, r);
        return;
      }
      for (u32 i = 0; i < r->shape->count; i++) release(vm, dead, r->items[i]);
      if (r->items) items_free(vm, r->items - r->front, r->cap + r->front);
      shape_drop(vm, r->shape);
      obj_free(vm, r, sizeof *r);
      break;
    }
    case V_REF: {
      Ref *r = (Ref *)obj;
      release(vm, dead, r->value);
      obj_free(vm, r, sizeof *r);
      break;
    }
    case V_FN: destroy_fn(vm, dead, (Fn *)obj); break;
    default: {
      Env *e = (Env *)obj;
      for (u32 i = 0; i < e->count; i++) release(vm, dead, e->slots[i]);
      obj_free(vm, e, sizeof *e + sizeof(Value) * e->count);
      break;
    }
  }
  if (*some) --*some;
}

/* In front of those that wait. */
static void leave_dead(Vm *vm, u64 dead) {
  if (vm->dead) { /* behind a handle whose fields held many */
    u64 last = dead, next;
    while (memcpy(&next, (Obj *)(uintptr_t)(last & (((u64)1 << 56) - 1)), sizeof next), next) last = next;
    memcpy((Obj *)(uintptr_t)(last & (((u64)1 << 56) - 1)), &vm->dead, sizeof vm->dead);
  }
  vm->dead = dead;
}

/* Where many are dead, the others wait when the program is to end. */
static void destroy_all(Vm *vm, u64 dead) {
  u32 some = SOME_DEAD;
  while (dead) {
    destroy_next(vm, &dead, &some);
    if (LIKELY(some)) continue;
    if (dead && is_to_end(vm)) {
      leave_dead(vm, dead);
      return;
    }
    some = SOME_DEAD;
  }
}

void values_go_on(Vm *vm) {
  const u64 dead = vm->dead;
  vm->dead = 0;
  destroy_all(vm, dead);
}

void values_settle(Vm *vm) {
  u32 some = UINT32_MAX;
  for (u64 dead; (dead = vm->dead);)
    for (vm->dead = 0; dead; some = UINT32_MAX) destroy_next(vm, &dead, &some);
}

void value_destroy(Vm *vm, Value v) {
  if (LIKELY(v.kind == V_ARRAY)) {
    array_destroy(vm, v.array);
    return;
  }
  u64 dead = 0;
  if (v.kind == V_LIST || v.kind == V_RECORD || v.kind == V_FN || v.kind == V_REF) {
    link_dead(vm, &dead, v.kind, v.obj);
    destroy_all(vm, dead);
  } else {
    destroy_leaf(vm, v);
  }
}

void env_drop(Vm *vm, Env *e) {
  if (!e || --e->head.refs) return;
  u64 dead = 0;
  link_dead(vm, &dead, DEAD_ENV, &e->head);
  destroy_all(vm, dead);
}

/* ---- ranges ----------------------------------------------------------------------------------- */

bool range_new(Vm *vm, i64 start, i64 stop, i64 step, Value *out) {
  Range *r = obj_alloc(vm, sizeof *r);
  if (!r) return (void)vm_error_memory(vm), false;
  *r = (Range){{1, 0}, start, stop, step};
  *out = value_obj(V_RANGE, r);
  return true;
}

u64 range_count(const Range *r) {
  u64 start = (u64)r->start, stop = (u64)r->stop;
  if (LIKELY(r->step == 1)) return r->start < r->stop ? stop - start : 0; /* without a division */
  if (r->step > 0) return r->start < r->stop ? (stop - start - 1) / (u64)r->step + 1 : 0;
  return r->start > r->stop ? (start - stop - 1) / (0 - (u64)r->step) + 1 : 0;
}

/* ---- functions -------------------------------------------------------------------------------- */

static Fn *new_fn(Vm *vm, FnKind kind, Value *out) {
  Fn *f = obj_alloc(vm, sizeof *f);
  if (!f) {
    (void)vm_error_memory(vm);
    return NULL;
  }
  *f = (Fn){.head = {1, 0}, .kind = (u8)kind};
  *out = value_obj(V_FN, f);
  return f;
}

bool fn_named(Vm *vm, u32 op, Value *out) {
  Fn *f = new_fn(vm, FN_BUILTIN, out);
  if (f) f->op = (u16)op;
  return f != NULL;
}

bool fn_builtin(Vm *vm, u32 op, Value *out) {
  if (!vm->builtins[op].kind) {
    bool ok = library_has(vm, op) ? library_load(vm, op) == WEFT_OK : fn_named(vm, op, &vm->builtins[op]);
    if (!ok) return false;
  }
  *out = value_keep(vm->builtins[op]);
  return true;
}

bool fn_transform(Vm *vm, u32 transform, Value inner, Value settings, Value *out) {
  Fn *f = new_fn(vm, FN_TRANSFORM, out);
  if (!f) {
    value_drop(vm, inner);
    value_drop(vm, settings);
    return false;
  }
  f->transform = (u8)transform;
  f->inner = inner;
  f->settings = settings;
  return true;
}

bool fn_closure(Vm *vm, Code *code, Env *env, Value *out) {
  Fn *f = new_fn(vm, FN_CLOSURE, out);
  if (!f) {
    env_drop(vm, env);
    return false;
  }
  f->code = code_keep(code);
  f->env = env;
  return true;
}

bool fn_host(Vm *vm, const HostFn *host, Value *out) {
  HostFn *copy = mem_alloc(&vm->alloc, sizeof *copy);
  Fn *f = copy ? new_fn(vm, FN_HOST, out) : NULL;
  if (!f) {
    mem_free(&vm->alloc, copy, sizeof *copy);
    return (void)vm_error_memory(vm), false;
  }
  *copy = *host;
  f->host = copy;
  return true;
}

Env *env_new(Vm *vm, u32 count) {
  Env *e = obj_alloc(vm, sizeof *e + sizeof(Value) * count);
  if (!e) {
    (void)vm_error_memory(vm);
    return NULL;
  }
  memset(e, 0, sizeof *e + sizeof(Value) * count);
  e->head.refs = 1;
  e->count = count;
  return e;
}

const char *value_type_name(Value v) {
  switch (v.kind) {
    case V_NIL: return "nil";
    case V_NUM:
    case V_ARRAY:
    case V_TRACKED: return "array";
    case V_TEXT: return "text";
    case V_LIST: return "list";
    case V_RECORD: return "record";
    case V_RANGE: return "range";
    case V_FN: return "fn";
    case V_REF: return "ref";
    case V_MODULE: return "module";
    case V_DTYPE: return "dtype";
    case V_HANDLE: return "handle";
    default: return "nothing";
  }
}

const char *value_type_phrase(Value v) {
  switch (v.kind) {
    case V_NIL: return "nil";
    case V_NUM: return "a number";
    case V_ARRAY:
    case V_TRACKED: return "an array";
    case V_TEXT: return "a text";
    case V_LIST: return "a list";
    case V_RECORD: return "a record";
    case V_RANGE: return "a range";
    case V_FN: return "a fn";
    case V_REF: return "a ref";
    case V_MODULE: return "a module";
    case V_DTYPE: return "a dtype";
    case V_HANDLE: return "a handle";
    default: return "nothing";
  }
}
