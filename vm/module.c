/* module.c — modules: their variables, running them, importing them (see module.h). */
#include "vm/module.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parser/parser.h"
#include "vm/alloc.h"
#include "vm/code.h"
#include "vm/fp.h"
#include "vm/library.h"

/* ---- modules and their slots ------------------------------------------------------------------ */

Module *module_new(Vm *vm, const char *name, const char *path) {
  Name id = *name ? name_cstr(&vm->names, name) : 0, path_id = *path ? name_cstr(&vm->names, path) : 0;
  if ((*name && !id) || (*path && !path_id)) goto refused;
  if (!vec_reserve(&vm->alloc, (void **)&vm->modules, &vm->module_cap, vm->module_count + 1, sizeof *vm->modules))
    goto refused;
  Module *m = mem_alloc_zero(&vm->alloc, sizeof *m);
  if (!m) goto refused;
  m->head.refs = 1;
  m->name = id;
  m->path = name_text(&vm->names, path_id); /* names live as long as the VM */
  m->scope.alloc = &vm->alloc;
  vm->modules[vm->module_count++] = m;
  return m;
refused:
  (void)vm_error_memory(vm);
  return NULL;
}

void modules_free(Vm *vm) {
  for (u32 i = 0; i < vm->module_count; i++) {
    Module *m = vm->modules[i];
    for (u32 k = 0; k < m->slot_cap; k++) {
      Value old = m->slots[k].value;
      m->slots[k].value = value_hole();
      value_drop(vm, old);
    }
  }
  for (u32 i = 0; i < vm->module_count; i++) {
    Module *m = vm->modules[i];
    mem_free(&vm->alloc, m->slots, sizeof *m->slots * m->slot_cap);
    scope_free(&m->scope);
    mem_free(&vm->alloc, m, sizeof *m);
  }
  mem_free(&vm->alloc, vm->modules, sizeof *vm->modules * vm->module_cap);
  vm->modules = NULL;
  vm->module_count = vm->module_cap = 0;
}

static bool grow_slots(Vm *vm, Module *m) {
  u32 need = m->scope.slots.count, old = m->slot_cap;
  if (need <= old) return true;
  if (!vec_reserve(&vm->alloc, (void **)&m->slots, &m->slot_cap, need, sizeof *m->slots))
    return (void)vm_error_memory(vm), false;
  for (u32 i = old; i < m->slot_cap; i++) m->slots[i] = (ModuleSlot){value_hole(), 0};
  return true;
}

bool module_fill(Vm *vm, Module *m) {
  if (!grow_slots(vm, m)) return false;
  for (u32 i = 0; i < m->scope.slots.count; i++) {
    if (m->slots[i].value.kind != V_HOLE || !(m->scope.flags.data[i] & MODVAR_BUILTIN)) continue;
    Name name = m->scope.slots.data[i];
    Builtin b = builtin_find(name_text(&vm->names, name), name_len(&vm->names, name));
    if (b.kind != BUILTIN_NONE && !builtin_value(vm, b, &m->slots[i].value)) {
      m->slots[i].value = value_hole();
      return false;
    }
  }
  return true;
}

static bool is_code(Value v) { return v.kind == V_FN || v.kind == V_MODULE; }

void module_store(Vm *vm, ModuleSlot *slot, Value v) {
  Value old = slot->value;
  if (is_code(old) || is_code(v)) slot->version++;
  slot->value = v;
  value_drop(vm, old);
}

Value *module_var(Vm *vm, Module *m, Name name) {
  (void)vm;
  u32 slot;
  if (!scope_find(&m->scope, name, &slot) || slot >= m->slot_cap || m->slots[slot].value.kind == V_HOLE) return NULL;
  return &m->slots[slot].value;
}

WeftStatus module_set(Vm *vm, Module *m, Name name, Value v) {
  u32 slot;
  if (!scope_add(&m->scope, name, &slot)) {
    value_drop(vm, v);
    return vm_error_memory(vm);
  }
  if (!grow_slots(vm, m)) {
    value_drop(vm, v);
    return WEFT_ERROR;
  }
  m->scope.flags.data[slot] = MODVAR_DECLARED;
  module_store(vm, &m->slots[slot], v);
  return WEFT_OK;
}

WeftStatus module_ready(Vm *vm, Module *m, u32 slot) {
  Value v = m->slots[slot].value, fn;
  if (v.kind != V_FN || v.fn->kind != FN_BUILTIN || !library_has(vm, v.fn->op)) return WEFT_OK;
  if (!fn_builtin(vm, v.fn->op, &fn)) return WEFT_ERROR;
  module_store(vm, &m->slots[slot], fn);
  return WEFT_OK;
}

Value *module_member(Vm *vm, Module *m, Name name) {
  const char *text = name_text(&vm->names, name), *module = name_text(&vm->names, m->name);
  u32 slot;
  bool found = scope_find(&m->scope, name, &slot) && (m->scope.flags.data[slot] & MODVAR_DECLARED) &&
               slot < m->slot_cap && m->slots[slot].value.kind != V_HOLE;
  if (found && text[0] != '_') return module_ready(vm, m, slot) == WEFT_OK ? &m->slots[slot].value : NULL;
  if (found) {
    (void)vm_error(vm, EK_name, "'%s' is private to module '%s'", text, module);
    return NULL;
  }
  const char *nearest = NULL;
  u32 best = name_near(name_len(&vm->names, name));
  for (u32 i = 0; i < m->scope.slots.count; i++) {
    Name other = m->scope.slots.data[i];
    if (!(m->scope.flags.data[i] & MODVAR_DECLARED) || name_text(&vm->names, other)[0] == '_') continue;
    u32 d = name_distance(text, name_len(&vm->names, name), name_text(&vm->names, other),
                          name_len(&vm->names, other), best);
    if (d < best) {
      best = d;
      nearest = name_text(&vm->names, other);
    }
  }
  Builtin global = builtin_find(text, name_len(&vm->names, name));
  const char *meant = *m->path ? NULL : parser_foreign_member(module, text);
  if (meant) (void)vm_error(vm, EK_name, "module '%s' has no '%s'; write '%s'", module, text, meant);
  else if (global.kind == BUILTIN_OP)
    (void)vm_error(vm, EK_name, "module '%s' has no '%s'; the global function '%s' is called without a module", module,
                   text, text);
  else if (nearest) (void)vm_error(vm, EK_name, "module '%s' has no '%s'; did you mean '%s'?", module, text, nearest);
  else {
    const char *foreign = parser_foreign_word(text, name_len(&vm->names, name));
    (void)vm_error(vm, EK_name, "module '%s' has no '%s'%s%s%s", module, text, foreign ? "; write '" : "",
                   foreign ? foreign : "", foreign ? "'" : "");
  }
  return NULL;
}

/* ---- built-ins -------------------------------------------------------------------------------- */

/* linalg, nn … : a module whose variables are the operations "linalg.…". */
static Module *standard_module(Vm *vm, const char *name) {
  size_t len = strlen(name);
  for (u32 i = 0; i < vm->module_count; i++)
    if (!*vm->modules[i]->path && strcmp(name_text(&vm->names, vm->modules[i]->name), name) == 0) return vm->modules[i];
  Module *m = module_new(vm, name, "");
  if (!m) return NULL;
  for (u32 op = 1; op < OP_COUNT; op++) {
    const char *shown = op_name(op);
    const OpInfo *info = op_info(op);
    /* products are global, and in linalg too */
    bool product = info->family == FAM_linalg && info->lower != LOWER_weft && !strchr(shown, '.') &&
                   strcmp(name, "linalg") == 0;
    if (!product && (strncmp(shown, name, len) != 0 || shown[len] != '.')) continue;
    Name member = name_cstr(&vm->names, product ? shown : shown + len + 1);
    Value fn;
    bool made = member && (library_has(vm, op) ? fn_named(vm, op, &fn) : fn_builtin(vm, op, &fn));
    if (!member) (void)vm_error_memory(vm);
    if (!made || module_set(vm, m, member, fn) != WEFT_OK) {
      m->name = 0; /* half made: never found again */
      return NULL;
    }
  }
  m->state = MODULE_DONE;
  return m;
}

bool builtin_value(Vm *vm, Builtin b, Value *out) {
  switch (b.kind) {
    case BUILTIN_OP: return fn_builtin(vm, b.id, out);
    case BUILTIN_DTYPE: *out = value_dtype(b.id); return true;
    case BUILTIN_CONST: *out = value_weak_f64(b.id == 0 ? M_PI : b.id == 1 ? INFINITY : NAN); return true;
    case BUILTIN_MODULE: {
      Module *m = standard_module(vm, b.name);
      if (m) *out = value_keep(value_obj(V_MODULE, m));
      return m != NULL;
    }
    default: *out = value_hole(); return true;
  }
}

/* ---- running ---------------------------------------------------------------------------------- */

WeftStatus module_run(Vm *vm, Module *m, Proto *p, Value *out) {
  if (!cstack_has(CSTACK_CALL)) return vm_error_stack(vm);
  if (!module_fill(vm, m)) return WEFT_ERROR;
  Code *code = code_of(vm, p, m);
  Value body;
  if (!code) return WEFT_ERROR;
  bool ok = fn_closure(vm, code, NULL, &body); /* keeps the code while the frame runs */
  code_drop(vm, code);
  if (!ok) return WEFT_ERROR;
  u32 floor = vm->frame_count;
  if (!frame_push(vm, body, code, 0, FRAME_NATIVE_CALL | FRAME_MODULE)) return WEFT_ERROR;
  u64 fp = fp_enter(vm);
  vm->native_depth++;
  WeftStatus status = vm_run(vm, floor, out);
  vm->native_depth--;
  fp_leave(fp);
  return status;
}

/* ---- importing -------------------------------------------------------------------------------- */

static WeftStatus read_file(Vm *vm, const char *path, char **text, size_t *len, size_t *cap) {
  int code = vm_read_visible(vm, path, SOURCE_MOST, text, len, cap);
  if (code == 0) return WEFT_OK;
  if (code < 0) return WEFT_ERROR;
  if (code == ENOMEM) return vm_error_memory(vm);
  return vm_error(vm, EK_io, "import: cannot read '%s': %s", path, strerror(code));
}

/* `path` beside the file `from`, made canonical when the file exists. In the arena `a`. */
static char *resolve(Vm *vm, Arena *a, const Module *from, const char *path) {
  const char *slash = path[0] == '/' ? NULL : strrchr(from->path, '/');
  char *joined = arena_printf(a, "%.*s%s", slash ? (int)(slash - from->path + 1) : 0, from->path, path);
  if (!joined) {
    (void)vm_error_memory(vm);
    return NULL;
  }
  if (vm->resolve_module || vm->files) return joined;
  char *real = realpath(joined, NULL);
  if (!real) return joined;
  char *copy = arena_copy(a, real, strlen(real));
  free(real);
  if (!copy) (void)vm_error_memory(vm);
  return copy;
}

static Module *find_module(Vm *vm, const char *path) {
  for (u32 i = 0; i < vm->module_count; i++)
    if (*vm->modules[i]->path && strcmp(vm->modules[i]->path, path) == 0) return vm->modules[i];
  return NULL;
}

static WeftStatus module_load(Vm *vm, Module *m) {
  size_t len = 0, cap = 0;
  char *text;
  if (vm->resolve_module) {
    text = vm->resolve_module(vm->resolver_ctx, m->path);
    if (!text) return vm_error(vm, EK_io, "import: there is no module '%s'", m->path);
    len = strlen(text);
  } else {
    if (!vm->limits.allow_imports) {
      (void)vm_error(vm, EK_io, "import: this program may not read modules from files");
      vm->error.limit = LIMIT_imports;
      return WEFT_ERROR;
    }
    if (read_file(vm, m->path, &text, &len, &cap) != WEFT_OK) return WEFT_ERROR;
  }
  Value ignored;
  m->state = MODULE_RUNNING;
  WeftStatus status = !vm->resolve_module && vm_is_compiled(text, len)
                          ? vm_run_compiled(vm, m, m->path, text, len, &ignored)
                          : vm_eval(vm, m, m->path, text, len, false, &ignored);
  if (vm->resolve_module) free(text);
  else mem_free(&vm->alloc, text, cap);
  m->state = status == WEFT_OK ? MODULE_DONE : MODULE_FAILED;
  if (status == WEFT_OK) value_drop(vm, ignored);
  return status;
}

WeftStatus module_import(Vm *vm, Module *from, Value path, Value *out) {
  if (path.kind != V_TEXT) return vm_error(vm, EK_type, "import needs the text of a path");
  Builtin b = builtin_find(path.text->data, path.text->len);
  if (b.kind == BUILTIN_MODULE) return builtin_value(vm, b, out) ? WEFT_OK : WEFT_ERROR;
  Arena a;
  arena_init(&a, &vm->alloc);
  char *full = resolve(vm, &a, from, path.text->data);
  WeftStatus status = WEFT_ERROR;
  if (full) {
    Module *m = find_module(vm, full);
    if (!m) {
      const char *base = strrchr(full, '/') ? strrchr(full, '/') + 1 : full;
      const char *dot = strrchr(base, '.');
      char *name = arena_copy(&a, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
      m = name ? module_new(vm, name, full) : NULL;
      if (!name) (void)vm_error_memory(vm);
    }
    if (!m) status = WEFT_ERROR;
    else if (m->state == MODULE_RUNNING)
      status = vm_error(vm, EK_name, "import: '%s' imports itself, directly or through others", path.text->data);
    else if (m->state == MODULE_DONE) status = WEFT_OK;
    else status = module_load(vm, m);
    if (status == WEFT_OK) *out = value_keep(value_obj(V_MODULE, m));
  }
  arena_free(&a);
  return status;
}
