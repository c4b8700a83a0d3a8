/* library.c — functions of the standard library that are written in Weft (see library.h).
 *
 * A module holds declarations of functions alone (the build sees to that), so nothing runs when it is loaded: a
 * trace may load one as well. Each function that a row of ops.def names becomes the value of its operation. */
#include "vm/library.h"

#include <string.h>

#include "lang/compile.h"
#include "vm/module.h"

/* The same module again when an earlier attempt was refused memory. No other module has such a name. */
static Module *module_at(Vm *vm, const LibraryModule *l) {
  Name name = name_find(&vm->names, l->path, strlen(l->path));
  for (u32 i = 0; name && i < vm->module_count; i++)
    if (vm->modules[i]->name == name && !*vm->modules[i]->path) return vm->modules[i];
  return module_new(vm, l->path, "");
}

static void mark(Proto *p) {
  p->library = true;
  for (u32 i = 0; i < p->nprotos; i++) mark(p->protos[i]);
}

static void own(Proto *p, u32 op) {
  p->owner = (u16)op;
  for (u32 i = 0; i < p->nprotos; i++) own(p->protos[i], op);
}

/* The operation of this module that is called so, whole or behind its last point; 0: none. */
static u32 op_called_in(const Vm *vm, u32 module, const char *name) {
  for (u32 op = 1; op < OP_COUNT; op++) {
    if (vm->library->module_of[op] != module) continue;
    const char *shown = op_name(op), *dot = strrchr(shown, '.');
    const size_t front = dot ? (size_t)(dot - shown) : 0;
    if (strcmp(dot ? dot + 1 : shown, name) == 0) return op;
    if (dot && strncmp(name, shown, front) == 0 && name[front] == '_' && strcmp(name + front + 1, dot + 1) == 0)
      return op; /* table_where: table.where */
  }
  return 0;
}

/* The functions as variables of the module, those of operations under their full names. */
static WeftStatus declare(Vm *vm, Module *m, Code *body, u32 module) {
  const Proto *p = body->proto;
  for (u32 i = 0; i < p->nprotos; i++) {
    Proto *f = p->protos[i];
    Name name = f->name;
    u32 op = op_called_in(vm, module, name_text(&vm->names, name));
    Name full = op ? name_cstr(&vm->names, op_name(op)) : name;
    Value fn;
    if (!full) return vm_error_memory(vm);
    f->op = (u16)op;
    own(f, op);
    f->name = full;
    Code *code = code_child(vm, body, i);
    if (!code || !fn_closure(vm, code, NULL, &fn)) return WEFT_ERROR;
    if (op) vm->builtins[op] = value_keep(fn);
    if (module_set(vm, m, name, fn) != WEFT_OK) return WEFT_ERROR;
  }
  return WEFT_OK;
}

static WeftStatus library_load_module(Vm *vm, const LibraryModule *l, Proto **p, Module **m) {
  Buf why;
  Name missing;
  *m = module_at(vm, l);
  if (!*m) return WEFT_ERROR;
  u32 file = sources_add(&vm->sources, l->path, l->text, l->text_len);
  if (!file) return vm_error_memory(vm);
  buf_init(&why, &vm->alloc);
  WeftStatus status = proto_load(l->code, l->code_len, true, file, &vm->alloc, &vm->names, &(*m)->scope, p, &missing,
                                 &why, NULL);
  if (status != WEFT_OK)
    status = why.len ? vm_error(vm, EK_unsupported, "%s: %s", l->path, buf_text(&why)) : vm_error_memory(vm);
  buf_free(&why);
  if (status != WEFT_OK) sources_drop(&vm->sources, file); /* else it is held until its functions do */
  return status;
}

WeftStatus library_load(Vm *vm, u32 op) {
  u32 module = vm->library->module_of[op];
  Module *m;
  Proto *p;
  if (library_load_module(vm, &vm->library->modules[module - 1], &p, &m) != WEFT_OK) return WEFT_ERROR;
  mark(p);
  Code *body = code_of(vm, p, m);
  /* what they name comes last: modules may name each other */
  WeftStatus status = body && declare(vm, m, body, module) == WEFT_OK && module_fill(vm, m) ? WEFT_OK : WEFT_ERROR;
  code_drop(vm, body);
  sources_drop(&vm->sources, p->file);
  proto_drop(p);
  for (u32 i = 1; status != WEFT_OK && i < OP_COUNT; i++) {
    if (vm->library->module_of[i] != module) continue;
    Value half = vm->builtins[i];
    vm->builtins[i] = (Value){0};
    value_drop(vm, half);
  }
  if (status == WEFT_OK) vm->counters.at[STAT_modules_loaded]++;
  return status;
}
