/* module.h — modules: their variables, running them, importing them. */
#ifndef WEFT_VM_MODULE_H
#define WEFT_VM_MODULE_H

#include "vm/vm.h"

void modules_free(Vm *vm);
/* Slots for all names of the scope; those of built-ins get their values. After compiling into a module. */
bool module_fill(Vm *vm, Module *m) MUST_USE;
/* The value a global built-in name stands for; standard modules are made when first asked for. */
bool builtin_value(Vm *vm, Builtin b, Value *out) MUST_USE;
/* Rebinds a slot. Consumes v. */
void module_store(Vm *vm, ModuleSlot *slot, Value v);
/* Runs a compiled module body. *out: value of its last statement. Borrows p. */
WeftStatus module_run(Vm *vm, Module *m, Proto *p, Value *out) MUST_USE;
/* Parses and compiles the source text `file` into `scope`. Errors are raised; WEFT_INCOMPLETE only with `repl`.
 * *out: one count. */
WeftStatus module_compile(Vm *vm, ModuleScope *scope, Arena *arena, u32 file, bool repl, Proto **out) MUST_USE;
/* A text of the program's, of 2^30 bytes at most. Its id, which the caller holds; 0: an error was raised. */
u32 vm_add_source(Vm *vm, const char *path, const char *text, size_t len) MUST_USE;
void vm_sweep_sources(Vm *vm); /* before a text is added: those that no code is left of go, now and then */
/* BC_import: path as written in the file of `from`. *out owned. */
WeftStatus module_import(Vm *vm, Module *from, Value path, Value *out) MUST_USE;
/* m.name: the variable, NULL (error raised) when private or absent. */
Value *module_member(Vm *vm, Module *m, Name name);

#endif
