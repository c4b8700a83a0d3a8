/* modules.c — modules of the host: programs with variables of their own, and namespaces of host functions (weft.h).
 *
 * The VM keeps a Module as long as it lives, since code refers to it. One that the host has given back is used for the
 * next one, when no code of it is left. */
#include "api/inner.h"
#include "lang/bytecode.h"

#include <string.h>

/* The module behind a value; NULL: it is none of the host's. */
static Module *own_module(WeftVM *w, const WeftValue *value) {
  if (!usable(w) || !value_ok(w, value) || value->value.kind != V_MODULE) return NULL;
  Module *m = value->value.module;
  for (u32 i = 0; i < w->modules.count; i++)
    if (w->modules.data[i] == m) return m;
  return NULL;
}

Module *module_of_host(WeftVM *w, const WeftValue *value) {
  Module *m = own_module(w, value);
  return m && m->state == MODULE_DONE ? m : NULL;
}

static bool is_spare(const WeftVM *w, const Module *m) {
  if (m->state != MODULE_FAILED || m->head.refs > 1) return false;
  for (const Code *c = w->vm->codes; c; c = c->next)
    if (c->module == m) return false;
  return true;
}

/* The variables go, their slots stay; `all`: the built-ins that its programs name, too. */
static bool clear_variables(Vm *vm, Module *m, bool all) {
  bool ok = true;
  for (u32 i = 0; i < m->scope.slots.count; i++)
    if (all || m->scope.flags.data[i] & MODVAR_DECLARED)
      ok &= module_set(vm, m, m->scope.slots.data[i], value_hole()) == WEFT_OK;
  return ok;
}

/* One that was given back, emptied: its slots begin anew, their versions go on. */
static Module *spare_module(WeftVM *w, const char *name) {
  for (u32 i = 0; i < w->modules.count; i++) {
    Module *m = w->modules.data[i];
    if (!is_spare(w, m)) continue;
    const Name id = name_cstr(&w->vm->names, name);
    if (!id) return NULL;
    if (!clear_variables(w->vm, m, true)) return NULL;
    scope_free(&m->scope);
    m->scope = (ModuleScope){.alloc = &w->vm->alloc};
    m->name = id;
    m->state = MODULE_NEW;
    return m;
  }
  return NULL;
}

WeftStatus weft_module_new(WeftVM *w, const char *name, WeftValue **out) {
  if (!usable(w) || !out || !api_is_name(name) || builtin_find(name, strlen(name)).kind == BUILTIN_MODULE)
    return WEFT_MISUSE;
  *out = NULL;
  if (vm_catch_up(w->vm) != WEFT_OK) return WEFT_ERROR;
  Module *m = spare_module(w, name);
  if (!m) {
    if (!vec_push(&w->vm->alloc, &w->modules, (Module *)NULL)) return vm_error_memory(w->vm);
    m = module_new(w->vm, name, "");
    if (!m) {
      w->modules.count--;
      return WEFT_ERROR;
    }
    w->modules.data[w->modules.count - 1] = m;
  }
  WeftStatus status = value_hand_over(w, value_keep(value_obj(V_MODULE, m)), out);
  m->state = status == WEFT_OK ? MODULE_DONE : MODULE_FAILED;
  return status;
}

WeftStatus weft_module_run(WeftVM *w, WeftValue *module, const char *text, size_t length, const char *name,
                           WeftValue **out) {
  Module *m = own_module(w, module);
  if (!m || m->state != MODULE_DONE || (!text && length) || !name_ok(name)) return WEFT_MISUSE;
  WeftStatus status = evaluate_in(w, m, text ? text : "", length, name, FORM_TEXT, out);
  return status == WEFT_INCOMPLETE ? WEFT_ERROR : status;
}

WeftStatus weft_module_get(WeftVM *w, WeftValue *module, const char *name, WeftValue **out) {
  Module *m = own_module(w, module);
  return m && m->state == MODULE_DONE && name && out ? get_in(w, m, name, out) : WEFT_MISUSE;
}

WeftStatus weft_module_set(WeftVM *w, WeftValue *module, const char *name, WeftValue *value) {
  Module *m = own_module(w, module);
  return m && m->state == MODULE_DONE && api_is_name(name) && value_ok(w, value) ? set_in(w, m, name, value)
                                                                                 : WEFT_MISUSE;
}

WeftStatus weft_module_define(WeftVM *w, WeftValue *module, const char *name, WeftHostFunction function,
                              void *context, void (*release)(void *context)) {
  Module *m = own_module(w, module);
  return m && m->state == MODULE_DONE ? define_in(w, m, name, function, context, release, value_nil()) : WEFT_MISUSE;
}

WeftStatus weft_module_define_described(WeftVM *w, WeftValue *module, const char *signature, const char *doc,
                                        WeftHostFunction function, void *context, void (*release)(void *context)) {
  Module *m = own_module(w, module);
  return m && m->state == MODULE_DONE ? describe_in(w, m, signature, doc, function, context, release) : WEFT_MISUSE;
}

WeftStatus weft_module_free(WeftVM *w, WeftValue *module) {
  Module *m = own_module(w, module);
  if (!m || m->state != MODULE_DONE || w->vm->frame_count || w->vm->native_depth) return WEFT_MISUSE;
  ON_STACK_OF(w);
  m->state = MODULE_FAILED;
  const bool cleared = clear_variables(w->vm, m, false);
  weft_release(w, module);
  return cleared ? WEFT_OK : WEFT_ERROR;
}

void modules_forget(WeftVM *w) { vec_free(&w->vm->alloc, &w->modules); }
