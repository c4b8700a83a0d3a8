/* eval.c — source text to result: parse, compile, run (see vm_eval in vm.h). */
#include "lang/compile.h"
#include "parser/parser.h"
#include "vm/module.h"

static WeftStatus raise_diag(Vm *vm, const Diag *d) {
  if (!d->message) return vm_error_memory(vm);
  return vm_error_at(vm, (ErrorKind)d->kind, d->span, "%s", d->message);
}

static WeftStatus compile(Vm *vm, Module *m, Arena *arena, u32 file, bool repl, Proto **out) {
  Ast ast;
  Diag diag = {0};
  ParseOptions parse = {.repl = repl};
  WeftStatus status = parser_parse(&ast, arena, &vm->names, &vm->sources, file, &diag, &parse);
  if (status == WEFT_INCOMPLETE) return status;
  if (status != WEFT_OK) return raise_diag(vm, &diag);
  CompileOptions options = {.alloc = &vm->alloc, .names = &vm->names, .sources = &vm->sources, .scope = &m->scope,
                            .diag_arena = arena, .repl = repl};
  if (lang_compile(&ast, &options, out, &diag) != WEFT_OK) return raise_diag(vm, &diag);
  return WEFT_OK;
}

WeftStatus vm_eval(Vm *vm, Module *m, const char *path, const char *text, size_t len, bool repl, Value *out) {
  if (len > (1u << 30)) return vm_error(vm, EK_limit, "%s: a source text has at most 2 ** 30 bytes", path);
  u32 file = sources_add(&vm->sources, path, text, len);
  if (!file) return vm_error_memory(vm);
  Arena arena;
  Proto *proto = NULL;
  arena_init(&arena, &vm->alloc);
  WeftStatus status = compile(vm, m, &arena, file, repl, &proto);
  arena_free(&arena);
  if (status != WEFT_OK) return status;
  status = module_run(vm, m, proto, out);
  proto_drop(proto);
  return status;
}
