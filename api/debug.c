/* debug.c — the hook of the host, and frames as it sees them (weft.h). */
#include "api/inner.h"

#include <string.h>

#include "lang/bytecode.h"

_Static_assert((int)WEFT_HOOK_CALL == (int)HOOK_CALL && (int)WEFT_HOOK_RETURN == (int)HOOK_RETURN &&
                 (int)WEFT_HOOK_LINE == (int)HOOK_LINE && (int)WEFT_HOOK_ERROR == (int)HOOK_ERROR,
               "weft.h numbers the events as vm.h does");

static WeftStatus tell_host(void *ctx, u32 event) {
  WeftVM *w = ctx;
  CStack stack = cstack_now(); /* the host may go on on another stack meanwhile */
  WeftStatus status = w->hook(w, w->hook_context, (WeftHookEvent)event);
  cstack_leave(stack);
  w->vm->host_epoch++;
  if (w->vm->limits.deadline > 0) vm_poll_soon(w->vm); /* nobody knows how long it took */
  return status == WEFT_OK ? WEFT_OK : WEFT_ERROR;
}

WeftStatus weft_set_hook(WeftVM *w, WeftHook hook, void *context, unsigned mask) {
  if (!usable(w) || mask & ~(unsigned)HOOK_ALL || w->compiling) return WEFT_MISUSE;
  if (vm_catch_up(w->vm) != WEFT_OK) return WEFT_ERROR;
  w->hook = hook;
  w->hook_context = context;
  vm_set_hook(w->vm, hook ? tell_host : NULL, w, mask);
  return WEFT_OK;
}

/* ---- frames --------------------------------------------------------------------------------------------- */

/* NULL: there is none, or the VM may not be looked at; *status says which. */
static const Frame *frame_at(WeftVM *w, size_t index, WeftStatus *status) {
  *status = WEFT_MISUSE;
  if (!usable(w) || index > UINT32_MAX) return NULL;
  if (vm_catch_up(w->vm) != WEFT_OK) *status = WEFT_ERROR;
  else return hook_frame(w->vm, (u32)index);
  return NULL;
}

size_t weft_frame_count(WeftVM *w) {
  return usable(w) && w->vm->frame_count && vm_catch_up(w->vm) == WEFT_OK ? hook_frames(w->vm) : 0;
}

WeftStatus weft_frame(WeftVM *w, size_t index, WeftFrame *out) {
  WeftStatus status;
  const Frame *f = frame_at(w, index, &status);
  if (!f) return status;
  const Vm *vm = w->vm;
  const Proto *p = f->code->proto;
  const Span at = hook_span(f);
  const SourceFile *file = sources_get(&vm->sources, at.file);
  u32 line = 0, column = 0;
  sources_locate(&vm->sources, at, &line, &column);
  WeftFrame frame = {.size = sizeof frame, .function = p->name ? name_text(&vm->names, p->name) : "",
                     .file = file ? file->path : "", .line = (int)line, .column = (int)column,
                     .body = f->flags & FRAME_MODULE};
  return struct_give(out, &frame, sizeof frame, BYTES_TO(WeftFrame, body)) ? WEFT_OK : WEFT_MISUSE;
}

/* ---- variables ------------------------------------------------------------------------------------------ */

typedef struct Variable {
  Name name;
  const Value *value; /* NULL: it has none */
} Variable;

static const Value *assigned(const Value *v) { return v->kind == V_HOLE ? NULL : v; }

/* The same of a register; NULL too where it is empty since nothing reads it any more. */
static const Value *kept(Vm *vm, const Frame *f, u32 reg) {
  const Value *v = assigned(&f->base[reg]);
  if (!v || v->kind != V_NIL) return v;
  Liveness *l = liveness_new(f->code->proto, &vm->alloc);
  const u32 words = l ? liveness_words(l) : 0;
  u64 *bits = l ? mem_alloc_zero(&vm->alloc, sizeof *bits * words) : NULL;
  if (bits) {
    const Ins ins = f->code->proto->code[f->pc];
    if (ins_op(ins) == BC_call || ins_op(ins) == BC_callx) liveness_behind(l, f->pc, ins_a(ins), bits);
    else liveness_at(l, f->pc, bits);
    if (!(bits[reg >> 6] >> (reg & 63) & 1)) v = NULL;
  }
  mem_free(&vm->alloc, bits, sizeof *bits * words);
  liveness_free(l);
  return v;
}

static bool in_scope(const LocalName *v, u32 pc) { return v->from <= pc && pc < v->until; }

/* Of a module's body the module's variables follow those in registers. The next variable behind *at. */
static bool next_variable(Vm *vm, const Frame *f, u32 *at, Variable *out) {
  const Proto *p = f->code->proto;
  const Module *m = f->code->module;
  for (; *at < p->nlocals; ++*at) {
    const LocalName *v = &p->locals[*at];
    bool hidden = !v->name || !in_scope(v, f->pc);
    for (u32 i = *at + 1; i < p->nlocals && !hidden; i++)
      hidden = p->locals[i].name == v->name && in_scope(&p->locals[i], f->pc);
    if (hidden) continue;
    *out = (Variable){v->name, kept(vm, f, v->reg)};
    ++*at;
    return true;
  }
  if (!(f->flags & FRAME_MODULE)) return false;
  for (; *at - p->nlocals < m->scope.slots.count; ++*at) {
    const u32 slot = *at - p->nlocals;
    bool hidden = !(m->scope.flags.data[slot] & MODVAR_DECLARED);
    for (u32 i = 0; i < p->nlocals && !hidden; i++)
      hidden = p->locals[i].name == m->scope.slots.data[slot] && in_scope(&p->locals[i], f->pc);
    if (hidden) continue;
    *out = (Variable){m->scope.slots.data[slot], slot < m->slot_cap ? assigned(&m->slots[slot].value) : NULL};
    ++*at;
    return true;
  }
  return false;
}

WeftStatus weft_frame_locals(WeftVM *w, size_t index, size_t *count) {
  WeftStatus status;
  const Frame *f = frame_at(w, index, &status);
  if (!f || !count) return f ? WEFT_MISUSE : status;
  Variable v;
  u32 at = 0;
  for (*count = 0; next_variable(w->vm, f, &at, &v);) ++*count;
  return WEFT_OK;
}

WeftStatus weft_frame_local(WeftVM *w, size_t index, size_t local, const char **name, WeftValue **value) {
  WeftStatus status;
  const Frame *f = frame_at(w, index, &status);
  if (!f || !name || !value) return f ? WEFT_MISUSE : status;
  Variable v;
  u32 at = 0;
  *value = NULL;
  while (next_variable(w->vm, f, &at, &v))
    if (local-- == 0) {
      *name = name_text(&w->vm->names, v.name);
      return v.value ? value_hand_over(w, value_keep(*v.value), value) : WEFT_OK;
    }
  return WEFT_MISUSE;
}

static const Value *captured(const Frame *f, Name name) {
  const Proto *p = f->code->proto;
  for (u32 i = 0; f->fn && f->fn->env && i < p->ncaptures; i++)
    if (p->captures[i].name == name) return assigned(&f->fn->env->slots[i]);
  return NULL;
}

WeftStatus weft_frame_get(WeftVM *w, size_t index, const char *name, WeftValue **value) {
  WeftStatus status;
  const Frame *f = frame_at(w, index, &status);
  if (!f || !name || !value) return f ? WEFT_MISUSE : status;
  *value = NULL;
  Name n;
  const Value *found = NULL;
  if (name_known(&w->vm->names, name, strlen(name), &n)) {
    Variable v;
    bool is = false;
    for (u32 at = 0; !is && next_variable(w->vm, f, &at, &v);) is = v.name == n;
    if (is) found = v.value;
    else if (!(found = captured(f, n))) found = module_var(w->vm, f->code->module, n);
  }
  if (!found) return vm_error(w->vm, EK_name, "%s is not declared here, or has no value yet", name);
  return value_hand_over(w, value_keep(*found), value);
}

WeftStatus weft_frame_result(WeftVM *w, WeftValue **value) {
  if (!usable(w) || !value || !w->vm->hook.result) return WEFT_MISUSE;
  return value_hand_over(w, value_keep(*w->vm->hook.result), value);
}
