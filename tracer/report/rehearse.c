/* rehearse.c — verify: a region's work done again by the bytecode interpreter, and compared (see rehearse.h).
 *
 * The graph of a region may be wrong itself, so that comparing compiled code with the graph does not tell. So the
 * state at the entry is kept: registers of the frame, module variables, refs, the random stream. They are values,
 * kept by a count; what is updated in place is copied first, as somebody else holds it. Once the region was left,
 * the interpreter begins in a new frame with the old state, tier off, output kept back, and goes step by step. A
 * region may be left in the middle of a loop, at whatever trip: each time that the interpreter stands where the
 * region left, all that is alive there is compared. Once it is the same, the region did what it should. If the frame
 * ends without that, it did not, and the first difference seen is told. Then everything is put to what the region
 * left.
 *
 * Not compared, and counted (trace.stats: unrehearsed): regions that call a host, as it must not be called twice;
 * what would take an operation with effects beyond printing to be done again; more steps than STEPS_MOST; limits
 * that are reached on the way. */
#include "tracer/report/rehearse.h"
#include "tracer/tier/tier.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_MOST = 20000000, REFS_MOST = 4096, NESTED_MOST = 64 };

/* ---- are two values the same? ---------------------------------------------------------------------------- */

static bool is_nan(Value v) { return dtype_kind(v.dtype) == DK_FLOAT && isnan(num_as_f64(v)); }

/* Any NaN is like any other. */
static bool same_nan(Value a, Value b) { return is_nan(a) && is_nan(b); }

static bool same_number(u32 dtype, const void *a, const void *b) {
  if (memcmp(a, b, dtype_bytes(dtype)) == 0) return true;
  if (dtype_kind(dtype) == DK_COMPLEX) {
    const u32 part = dtype_real_of(dtype), bytes = dtype_bytes(part);
    return same_number(part, a, b) && same_number(part, (const char *)a + bytes, (const char *)b + bytes);
  }
  return dtype_kind(dtype) == DK_FLOAT && same_nan(num_load(a, dtype), num_load(b, dtype));
}

/* Their first `most` items along axis 0. */
static bool same_array(Array *a, Array *b, i64 most) {
  u32 rank = array_rank(a), dtype = array_dtype(a), bytes = dtype_bytes(dtype);
  if (array_rank(b) != rank || array_dtype(b) != dtype || array_device(a) != array_device(b)) return false;
  if (rank && memcmp(array_dims(a), array_dims(b), rank * sizeof(i64)) != 0) return false;
  if (array_device(a) != DEV_CPU) return true; /* the device's own tests look at what lies there */
  i64 at[ARRAY_MAX_RANK] = {0}, x = 0, y = 0, size = a->size;
  if (rank && most < array_dims(a)[0]) size = a->size / array_dims(a)[0] * most;
  for (i64 i = 0; i < size; i++) {
    if (!same_number(dtype, (const char *)a->data + x * bytes, (const char *)b->data + y * bytes)) return false;
    for (u32 d = rank; d-- > 0;) {
      x += array_strides(a)[d];
      y += array_strides(b)[d];
      if (++at[d] < array_dims(a)[d]) break;
      x -= at[d] * array_strides(a)[d];
      y -= at[d] * array_strides(b)[d];
      at[d] = 0;
    }
  }
  return true;
}

static bool same(Vm *vm, Value a, Value b, u32 depth);

static bool same_items(Vm *vm, const Value *a, const Value *b, u32 n, u32 depth) {
  for (u32 i = 0; i < n; i++)
    if (!same(vm, a[i], b[i], depth)) return false;
  return true;
}

static bool same_fn(Vm *vm, const Fn *a, const Fn *b, u32 depth) {
  if (a->kind != b->kind) return false;
  switch ((FnKind)a->kind) {
    case FN_BUILTIN: return a->op == b->op;
    case FN_HOST: return a->host == b->host;
    case FN_TRANSFORM:
      return a->transform == b->transform && same(vm, a->inner, b->inner, depth) &&
             same(vm, a->settings, b->settings, depth);
    default: break;
  }
  if (a->code != b->code) return false;
  if (a->env == b->env) return true;
  return a->env && b->env && a->env->count == b->env->count &&
         same_items(vm, a->env->slots, b->env->slots, a->env->count, depth);
}

/* Deeper than that nothing is looked at: refs may lead in circles. */
static bool same(Vm *vm, Value a, Value b, u32 depth) {
  if (a.kind == V_NUM && b.kind == V_NUM)
    return a.dtype == b.dtype && (a.flags & VF_WEAK) == (b.flags & VF_WEAK) &&
           (a.bits == b.bits || same_nan(a, b) || (a.dtype == DT_c64 && same_number(DT_c64, &a.bits, &b.bits)));
  if (a.kind != b.kind || (a.flags ^ b.flags) & VF_WEAK) return false;
  if (a.bits == b.bits || depth > NESTED_MOST) return true;
  depth++;
  switch (a.kind) {
    case V_ARRAY: return same_array(a.array, b.array, INT64_MAX);
    case V_TEXT: return a.text->len == b.text->len && memcmp(a.text->data, b.text->data, a.text->len) == 0;
    case V_RANGE:
      return a.range->start == b.range->start && a.range->stop == b.range->stop && a.range->step == b.range->step;
    case V_REF: return same(vm, a.ref->value, b.ref->value, depth);
    case V_FN: return same_fn(vm, a.fn, b.fn, depth);
    case V_LIST:
      if (!value_boxed(vm, a) || !value_boxed(vm, b)) return true; /* memory: not compared */
      return a.list->count == b.list->count && same_items(vm, a.list->items, b.list->items, a.list->count, depth);
    case V_RECORD: {
      const Record *x = a.record, *y = b.record;
      if (x->shape->count != y->shape->count) return false;
      for (u32 i = 0; i < x->shape->count; i++)
        if (x->shape->keys[i] != y->shape->keys[i] || !same(vm, x->items[i], y->items[i], depth)) return false;
      return true;
    }
    default: return a.kind == V_NIL || a.kind == V_HOLE;
  }
}

bool values_same(Vm *vm, Value a, Value b) { return same(vm, a, b, 0); }
bool values_same_to(Vm *vm, Value a, Value b, i64 most) {
  bool arrays = a.kind == V_ARRAY && b.kind == V_ARRAY && a.array != b.array && most >= 0;
  return arrays ? same_array(a.array, b.array, most) : same(vm, a, b, 0);
}

/* ---- the state -------------------------------------------------------------------------------------------- */

typedef struct RefState {
  Ref *ref; /* kept */
  Value value;
} RefState;

/* All that a region may change beside its frames. */
typedef struct State {
  Value *slots; /* of the program's modules, one after the other */
  u32 *of;      /* how many of them are a module's */
  u32 modules;  /* of the VM: those made later are not among them */
  RefState *refs;
  u32 slot_count, ref_count;
  u64 random_key, random_counter, unseen;
  bool taped;
} State;

struct Rehearsal {
  Tracer *t;
  Vm *vm;
  char name[96];
  Code *code; /* kept */
  Value self; /* kept */
  Value *regs;
  u32 pc, root; /* root: the frame that enters */
  u16 flags, result;
  State before;
  Buf printed[2]; /* by the region, by the interpreter */
  u32 on;         /* which of these */
  WeftStatus (*output)(void *ctx, const char *text, size_t len);
  void *output_ctx;
  OpHook hooks[OP_COUNT]; /* while the interpreter works: those with effects refuse */
};

static void free_state(Vm *vm, State *s) {
  for (u32 i = 0; i < s->slot_count && s->slots; i++) value_drop(vm, s->slots[i]);
  mem_free(&vm->alloc, s->slots, sizeof *s->slots * (s->slot_count + 1));
  mem_free(&vm->alloc, s->of, sizeof *s->of * (s->modules + 1));
  for (u32 i = 0; i < s->ref_count && s->refs; i++) {
    value_drop(vm, s->refs[i].value);
    value_drop(vm, value_obj(V_REF, s->refs[i].ref));
  }
  mem_free(&vm->alloc, s->refs, sizeof *s->refs * (s->ref_count + 1));
  *s = (State){0};
}

/* Not one that only the library reads and writes. */
static bool is_programs(const Vm *vm, const struct Module *m) {
  if (m->path[0]) return true;
  for (u32 i = 0; i < vm->frame_count; i++)
    if (vm->frames[i].code->module == m) return true;
  return false;
}

/* before: the state at the entry, of the same modules; NULL: this is it. A module without a path is one of the
 * program's by its frames, and the last of them may be gone where the region was left. */
static bool take_state(Vm *vm, const State *before, State *s) {
  *s = (State){.random_key = vm->random_key, .random_counter = vm->random_counter, .unseen = vm->unseen,
               .taped = vm->taped};
  u32 refs = 0, at = 0;
  for (const Ref *r = vm->refs; r && refs <= REFS_MOST; r = r->next) refs++;
  if (refs > REFS_MOST) return false;
  s->modules = before ? before->modules : vm->module_count;
  s->of = mem_alloc_zero(&vm->alloc, sizeof *s->of * (s->modules + 1));
  for (u32 m = 0; m < s->modules && s->of; m++) {
    s->of[m] = before ? before->of[m] : is_programs(vm, vm->modules[m]) ? vm->modules[m]->slot_cap : 0;
    s->slot_count += s->of[m];
  }
  s->ref_count = refs;
  s->slots = s->of ? mem_alloc(&vm->alloc, sizeof *s->slots * (s->slot_count + 1)) : NULL;
  s->refs = s->slots ? mem_alloc(&vm->alloc, sizeof *s->refs * (refs + 1)) : NULL;
  if (!s->refs) {
    mem_free(&vm->alloc, s->slots, sizeof *s->slots * (s->slot_count + 1));
    mem_free(&vm->alloc, s->of, sizeof *s->of * (s->modules + 1));
    *s = (State){0};
    return false;
  }
  for (u32 m = 0; m < s->modules; m++)
    for (u32 i = 0; i < s->of[m]; i++) s->slots[at++] = value_keep(vm->modules[m]->slots[i].value);
  at = 0;
  for (Ref *r = vm->refs; r; r = r->next) {
    r->head.refs++;
    s->refs[at++] = (RefState){r, value_keep(r->value)};
  }
  return true;
}

static bool is_filled_in(Value v) {
  if (v.kind != V_FN) return v.kind == V_MODULE || v.kind == V_DTYPE;
  return v.fn->kind == FN_BUILTIN || (v.fn->kind == FN_CLOSURE && v.fn->code->proto->library);
}

/* The modules of the program do not grow while a region runs. */
static void put_state(Vm *vm, const State *s) {
  u32 at = 0;
  for (u32 m = 0; m < s->modules; m++)
    for (u32 i = 0; i < s->of[m]; i++) {
      Value *slot = &vm->modules[m]->slots[i].value, old = *slot;
      /* a name of the language, which was filled in meanwhile */
      if (s->slots[at].kind == V_HOLE && is_filled_in(old)) {
        at++;
        continue;
      }
      *slot = value_keep(s->slots[at++]);
      value_drop(vm, old);
    }
  for (u32 i = 0; i < s->ref_count; i++) {
    Value old = s->refs[i].ref->value;
    s->refs[i].ref->value = value_keep(s->refs[i].value);
    value_drop(vm, old);
  }
  vm->random_key = s->random_key;
  vm->random_counter = s->random_counter;
  vm->unseen = s->unseen;
  vm->taped = s->taped;
}

/* ---- output -------------------------------------------------------------------------------------------------- */

static WeftStatus tee(void *ctx, const char *text, size_t len) {
  Rehearsal *r = ctx;
  buf_put(&r->printed[r->on], text, len);
  if (r->on) return WEFT_OK;
  if (r->output) return r->output(r->output_ctx, text, len);
  return fwrite(text, 1, len, stdout) == len ? WEFT_OK : WEFT_ERROR;
}

static void end_output(Rehearsal *r) {
  r->vm->output = r->output;
  r->vm->output_ctx = r->output_ctx;
}

/* ---- before ---------------------------------------------------------------------------------------------------- */

static Rehearsal *not_compared(Tracer *t) {
  t->vm->counters.at[STAT_unrehearsed]++;
  return NULL;
}

Rehearsal *rehearsal_begin(Tracer *t, const Region *region) {
  Vm *vm = t->vm;
  const Frame *f = &vm->frames[vm->frame_count - 1];
  if (graph_calls_host(region->graph) || vm->pending) return not_compared(t);
  Rehearsal *r = mem_alloc_zero(&vm->alloc, sizeof *r);
  u32 nregs = f->code->proto->nregs;
  Value *regs = r ? mem_alloc(&vm->alloc, sizeof *regs * (nregs + 1)) : NULL;
  if (!regs || !take_state(vm, NULL, &r->before)) {
    if (regs) mem_free(&vm->alloc, regs, sizeof *regs * (nregs + 1));
    mem_free(&vm->alloc, r, sizeof *r);
    return not_compared(t);
  }
  r->t = t;
  r->vm = vm;
  log_copy(r->name, sizeof r->name, region->name);
  r->code = code_keep(f->code);
  r->self = value_keep(f->self);
  r->regs = regs;
  for (u32 i = 0; i < nregs; i++) regs[i] = value_keep(f->base[i]);
  r->pc = f->pc;
  r->root = vm->frame_count - 1;
  r->flags = f->flags;
  r->result = f->result;
  buf_init(&r->printed[0], &vm->alloc);
  buf_init(&r->printed[1], &vm->alloc);
  r->output = vm->output;
  r->output_ctx = vm->output_ctx;
  vm->output = tee;
  vm->output_ctx = r;
  return r;
}

static void free_rehearsal(Rehearsal *r) {
  Vm *vm = r->vm;
  u32 nregs = r->code->proto->nregs;
  for (u32 i = 0; i < nregs; i++) value_drop(vm, r->regs[i]);
  mem_free(&vm->alloc, r->regs, sizeof *r->regs * (nregs + 1));
  free_state(vm, &r->before);
  value_drop(vm, r->self);
  code_drop(vm, r->code);
  buf_free(&r->printed[0]);
  buf_free(&r->printed[1]);
  mem_free(&vm->alloc, r, sizeof *r);
}

void rehearsal_drop(Rehearsal *r) {
  if (!r) return;
  end_output(r);
  free_rehearsal(r);
}

void rehearsal_raised(Rehearsal *r) {
  Vm *vm = r->vm;
  const ErrorState *e = &vm->error;
  char text[200], name[sizeof r->name];
  if (e->raised && !e->final && e->kind != EK_limit && e->kind != EK_interrupt && e->kind != EK_host) {
    size_t len;
    log_copy(text, sizeof text, vm_error_message(vm, &len));
    log_copy(name, sizeof name, r->name);
    vm_error_forget(vm);
    vm->counters.at[STAT_rehearsed]++;
    vm->counters.at[STAT_refuted]++;
    (void)vm_error(vm, EK_assert, "verify: region %s: compiled code raises by itself: %s", name, text);
    vm->error.final = true;
  }
  rehearsal_drop(r);
}

/* ---- effects ---------------------------------------------------------------------------------------------------- */

static WeftStatus refuse(Vm *vm, Value *args, Value *out) {
  (void)args;
  *out = value_nil();
  return vm_error(vm, EK_limit, "verify: not done twice");
}

static bool may_repeat(u32 op) {
  const OpInfo *info = op_info(op);
  return !op_acts(op) || info->effect == EFF_output || info->effect == EFF_process || op == OP_ref ||
         op == OP_trace_strict;
}

static void hold_effects(Rehearsal *r, bool hold) {
  Vm *vm = r->vm;
  vm->rehearses = hold;
  for (u32 op = 1; op < OP_COUNT; op++) {
    if (may_repeat(op)) continue;
    if (hold) r->hooks[op] = vm->ops[op], vm->ops[op].eager = refuse;
    else vm->ops[op] = r->hooks[op];
  }
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

void value_show(Vm *vm, Value v, char out[SHOWN]) {
  Value args[OP_MAX_PARAMS], text;
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) args[i] = value_hole();
  args[0] = v;
  log_copy(out, SHOWN, "?");
  if (v.kind == V_HOLE || v.kind == V_TRACKED || vm_op(vm, OP_str, args, &text) != WEFT_OK) return vm_error_forget(vm);
  if (text.kind == V_TEXT) log_copy(out, SHOWN, text.text->data);
  value_drop(vm, text);
}

/* A weak number and a strong one look the same. */
static bool only_weak(Value a, Value b) {
  return a.kind == V_NUM && b.kind == V_NUM && a.dtype == b.dtype && a.bits == b.bits;
}

static void tell(Rehearsal *r, Buf *why, const char *what, Value compiled, Value interpreted) {
  char a[SHOWN], b[SHOWN];
  if (why->len) return; /* the first is told */
  if (only_weak(compiled, interpreted)) {
    buf_printf(why, "%s: %s compiled, %s interpreted", what, compiled.flags & VF_WEAK ? "weak" : "strong",
               interpreted.flags & VF_WEAK ? "weak" : "strong");
    return;
  }
  value_show(r->vm, compiled, a);
  value_show(r->vm, interpreted, b);
  buf_printf(why, "%s: compiled %s, interpreted %s", what, a, b);
}

/* The frame that the region left, and the interpreter's: alive are what is read from the pc on, or, of a caller, behind
 * its call. */
static bool same_frame(Rehearsal *r, const Frame *left, const Frame *now, bool top, Buf *why) {
  Vm *vm = r->vm;
  Code *code = left->code;
  if (!code->live) code->live = liveness_new(code->proto, &vm->alloc);
  u64 few[8], *bits = few;
  u32 words = code->live ? liveness_words(code->live) : 0;
  if (!words) return true;
  if (words > COUNT_OF(few) && !(bits = mem_alloc(&vm->alloc, sizeof *bits * words))) return true;
  memset(bits, 0, sizeof *bits * words);
  if (top) liveness_at(code->live, left->pc, bits);
  else liveness_behind(code->live, left->pc, vm->frames[left - vm->frames + 1].result, bits);
  bool ok = true;
  for (u32 i = 0; i < code->proto->nregs && ok; i++) {
    if (!(bits[i / 64] >> (i % 64) & 1)) continue;
    ok = same(vm, left->base[i], now->base[i], 0);
    if (ok) continue;
    Name name = proto_local(code->proto, i, left->pc);
    char what[96];
    if (name) snprintf(what, sizeof what, "variable %s", name_text(&vm->names, name));
    else snprintf(what, sizeof what, "register %u", i);
    tell(r, why, what, left->base[i], now->base[i]);
  }
  if (bits != few) mem_free(&vm->alloc, bits, sizeof *bits * words);
  return ok;
}

/* Everything but the frames: `after` is what the region left. */
static bool same_state(Rehearsal *r, const State *after, Buf *why) {
  Vm *vm = r->vm;
  u32 at = 0;
  for (u32 m = 0; m < after->modules; m++)
    for (u32 i = 0; i < after->of[m]; i++, at++) {
      Value now = vm->modules[m]->slots[i].value;
      if (same(vm, after->slots[at], now, 0)) continue;
      char what[96];
      snprintf(what, sizeof what, "module variable %s",
               i < vm->modules[m]->scope.slots.count ? name_text(&vm->names, vm->modules[m]->scope.slots.data[i])
                                                     : "?");
      tell(r, why, what, after->slots[at], now);
      return false;
    }
  /* those that were there before; new ones are part of what is compared */
  for (u32 i = 0; i < r->before.ref_count; i++) {
    const RefState *x = &r->before.refs[i];
    Value left = value_hole();
    for (u32 k = 0; k < after->ref_count; k++)
      if (after->refs[k].ref == x->ref) left = after->refs[k].value;
    if (left.kind == V_HOLE || same(vm, left, x->ref->value, 0)) continue;
    tell(r, why, "a ref", left, x->ref->value);
    return false;
  }
  if (after->random_key != vm->random_key || after->random_counter != vm->random_counter) {
    if (!why->len)
      buf_printf(why, "the random stream: compiled at %llu, interpreted at %llu",
                 (unsigned long long)after->random_counter, (unsigned long long)vm->random_counter);
    return false;
  }
  if (after->unseen > r->before.unseen) return true; /* what was printed will be done again */
  const Buf *a = &r->printed[0], *b = &r->printed[1];
  if (a->len == b->len && memcmp(buf_text(a), buf_text(b), a->len) == 0) return true;
  if (!why->len)
    buf_printf(why, "output: compiled %llu bytes, interpreted %llu bytes that are not the same",
               (unsigned long long)a->len, (unsigned long long)b->len);
  return false;
}

typedef enum Rehearsed { REHEARSED_same, REHEARSED_other, REHEARSED_unknown } Rehearsed;

/* `base`: frames that stood before the interpreter's. */
static bool stands_there(const Rehearsal *r, u32 base) {
  const Vm *vm = r->vm;
  u32 depth = base - r->root;
  if (vm->frame_count - base != depth) return false;
  for (u32 i = 0; i < depth; i++)
    if (vm->frames[r->root + i].code != vm->frames[base + i].code ||
        vm->frames[r->root + i].pc != vm->frames[base + i].pc)
      return false;
  return true;
}

static bool same_frames(Rehearsal *r, u32 base, Buf *why) {
  const Vm *vm = r->vm;
  for (u32 i = r->root; i < base; i++)
    if (!same_frame(r, &vm->frames[i], &vm->frames[i - r->root + base], i + 1 == base, why)) return false;
  return true;
}

/* `base`: frames that stood before the interpreter's. */
static Rehearsed go(Rehearsal *r, u32 base, bool returned, Value value, const State *after, Buf *why) {
  Vm *vm = r->vm;
  for (u32 steps = 0; steps < STEPS_MOST; steps++) {
    if (!returned && stands_there(r, base) && same_frames(r, base, why) && same_state(r, after, why))
      return REHEARSED_same;
    const Frame *f = &vm->frames[vm->frame_count - 1];
    if (f->pc < f->code->proto->ncode && ins_op(f->code->proto->code[f->pc]) == BC_import) return REHEARSED_unknown;
    if (vm_step(vm) != WEFT_OK) {
      bool unknown = vm->error.final || vm->error.kind == EK_limit || vm->error.kind == EK_interrupt;
      if (!unknown && !why->len)
        buf_printf(why, "compiled code goes on, the interpreter raises: %s", vm_error_message(vm, &(size_t){0}));
      return unknown ? REHEARSED_unknown : REHEARSED_other;
    }
    if (vm->frame_count > base) continue;
    Value got = vm->native_result;
    vm->native_result = value_nil();
    bool ok = returned && same(vm, value, got, 0);
    if (returned && !ok) tell(r, why, "the value returned", value, got);
    if (!returned && !why->len) buf_puts(why, "the interpreter never comes where compiled code left");
    ok = ok && same_state(r, after, why);
    value_drop(vm, got);
    return ok ? REHEARSED_same : REHEARSED_other;
  }
  return REHEARSED_unknown;
}

/* A frame like the one that entered, on top of those that the region left. */
static bool begin_again(Rehearsal *r) {
  Vm *vm = r->vm;
  u16 flags = FRAME_NATIVE_CALL | FRAME_EAGER | (r->flags & FRAME_MODULE);
  if (!frame_push(vm, value_keep(r->self), r->code, 0, flags)) return false;
  Frame *f = &vm->frames[vm->frame_count - 1];
  for (u32 i = 0; i < r->code->proto->nregs; i++) f->base[i] = value_keep(r->regs[i]);
  f->pc = r->pc;
  return true;
}

WeftStatus rehearsal_compare(Rehearsal *r, bool returned) {
  Vm *vm = r->vm;
  Tracer *t = r->t;
  State after;
  Buf why;
  end_output(r);
  if (!take_state(vm, &r->before, &after)) {
    free_rehearsal(r);
    (void)not_compared(t);
    return WEFT_OK;
  }
  buf_init(&why, &vm->alloc);
  Value held = vm->native_result, value = value_nil();
  if (returned) value = r->flags & FRAME_NATIVE_CALL ? held : vm->frames[r->root - 1].base[r->result];
  value = value_keep(value);
  vm->native_result = value_nil();
  Stats counters = vm->counters;
  VmLimits limits = vm->limits;
  u32 batch = vm->poll_batch, countdown = vm->poll_countdown, base = vm->frame_count;
  u64 work = vm->work;
  i64 large = vm->large_left;
  vm->limits.fuel = UINT64_MAX;
  vm->limits.output = UINT64_MAX;
  vm_poll_reset(vm);
  put_state(vm, &r->before);
  r->on = 1;
  vm->output = tee;
  vm->output_ctx = r;
  hold_effects(r, true);
  Rehearsed went = begin_again(r) ? go(r, base, returned, value, &after, &why) : REHEARSED_unknown;
  while (vm->frame_count > base) frame_pop(vm);
  if (vm->error.raised) vm_error_forget(vm);
  hold_effects(r, false);
  end_output(r);
  put_state(vm, &after);
  vm->limits = limits;
  vm->poll_batch = batch;
  vm->poll_countdown = countdown;
  vm->work = work;
  vm->large_left = large;
  vm->counters = counters;
  value_drop(vm, value);
  vm->native_result = held;
  vm->counters.at[went == REHEARSED_unknown ? STAT_unrehearsed : STAT_rehearsed]++;
  WeftStatus status = WEFT_OK;
  if (went == REHEARSED_other) {
    if (returned && r->flags & FRAME_NATIVE_CALL) { /* nobody takes what it returned */
      value_drop(vm, held);
      vm->native_result = value_nil();
    }
    vm->counters.at[STAT_refuted]++;
    status = vm_error(vm, EK_assert, "verify: region %s: %s", r->name, why.failed ? "?" : buf_text(&why));
    vm->error.final = true;
  }
  buf_free(&why);
  free_state(vm, &after);
  free_rehearsal(r);
  return status;
}
