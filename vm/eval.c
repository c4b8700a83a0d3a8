/* eval.c — source text to result: parse, compile, run (see vm_eval in vm.h). */
#include "lang/compile.h"
#include "parser/parser.h"
#include "vm/module.h"

#include <stdio.h>
#include <string.h>

static WeftStatus raise_diag(Vm *vm, const Diag *d) {
  if (!d->message) return vm_error_memory(vm);
  return vm_error_at(vm, (ErrorKind)d->kind, d->span, "%s", d->message);
}

/* ---- the log -------------------------------------------------------------------------------------- */

static bool has_word(const char *words, const char *word) {
  size_t n = strlen(word);
  for (const char *s = words; *s; s += strcspn(s, ",") , s += *s == ',')
    if (strcspn(s, ",") == n && strncmp(s, word, n) == 0) return true;
  return false;
}

static void log_copy(Vm *vm) {
  Span at = vm_span(vm);
  const SourceFile *f = sources_get(&vm->sources, at.file);
  u32 line, column;
  sources_locate(&vm->sources, at, &line, &column);
  if (f) vm_tell(vm, "%s: copied because shared, line %u\n", f->path, line);
}

void vm_log(Vm *vm, const char *words) {
  vm->on_copy = has_word(words, "copies") ? log_copy : NULL;
  vm->log = (has_word(words, "ast") ? VM_LOG_AST : 0) | (has_word(words, "bytecode") ? VM_LOG_BYTECODE : 0);
}

static void log_ast(Vm *vm, const Ast *ast) {
  Buf b;
  buf_init(&b, &vm->alloc);
  AstPrint how = {.names = &vm->names, .where = &vm->sources};
  if (vm->log & VM_LOG_AST) ast_print(ast, ast->root, &how, &b);
  if (b.len) buf_putc(&b, '\n');
  vm_tell_text(vm, buf_text(&b), b.len);
  buf_free(&b);
}

static void log_bytecode(Vm *vm, const ModuleScope *scope, const Proto *p) {
  Buf b;
  buf_init(&b, &vm->alloc);
  if (vm->log & VM_LOG_BYTECODE) proto_print(p, &vm->names, &vm->sources, scope, &b);
  vm_tell_text(vm, buf_text(&b), b.len);
  buf_free(&b);
}

/* ---- sources ------------------------------------------------------------------------------------- */

/* Texts that no code is left of go, now and then, unless an error or the log of capture points into them. */
void vm_sweep_sources(Vm *vm) {
  Sources *s = &vm->sources;
  if (!sources_sweep_due(s)) return;
  if (vm->error.raised) sources_point(s, vm->error.span.file);
  for (u32 i = 0; i < vm->error.trace.count; i++) sources_point(s, vm->error.trace.data[i].span.file);
  if (vm->caught.kind == V_RECORD) sources_point(s, vm->caught_span.file);
  for (u32 i = 0; i < vm->caught_trace.count; i++) sources_point(s, vm->caught_trace.data[i].span.file);
  if (vm->tier && vm->tier->point) vm->tier->point(vm);
  sources_sweep(s);
}

u32 vm_add_source(Vm *vm, const char *path, const char *text, size_t len) {
  Toil work;
  vm_sweep_sources(vm);
  vm_toil_begin(vm, &work);
  const u32 file = sources_add_long(&vm->sources, path, text, len, &work);
  if (!file) (void)vm_error_buf(vm);
  return file;
}

/* ---- eval ----------------------------------------------------------------------------------------- */

WeftStatus module_compile(Vm *vm, ModuleScope *scope, Arena *arena, u32 file, bool repl, Proto **out) {
  Ast ast;
  Diag diag = {0};
  Toil work; /* a long text is not begun, or left, where the program is to end */
  vm_toil_begin(vm, &work);
  ParseOptions parse = {.repl = repl, .toil = &work};
  WeftStatus status = parser_parse(&ast, arena, &vm->names, &vm->sources, file, &diag, &parse);
  if (status == WEFT_INCOMPLETE) return status;
  if (status != WEFT_OK) return toil_ended(&work) ? vm_error_buf(vm) : raise_diag(vm, &diag);
  log_ast(vm, &ast);
  CompileOptions options = {.alloc = &vm->alloc, .names = &vm->names, .sources = &vm->sources, .scope = scope,
                            .diag_arena = arena, .repl = repl, .toil = &work};
  if (lang_compile(&ast, &options, out, &diag) != WEFT_OK)
    return toil_ended(&work) ? vm_error_buf(vm) : raise_diag(vm, &diag);
  log_bytecode(vm, scope, *out);
  return WEFT_OK;
}

WeftStatus vm_layout(Vm *vm, const char *path, const char *text, size_t len, Buf *out) {
  if (len > SOURCE_MOST) return vm_error(vm, EK_limit, "%s: a source text has at most 2 ** 30 bytes", path);
  u32 file = vm_add_source(vm, path, text, len), at = 0;
  if (!file) return WEFT_ERROR;
  Ast ast;
  Diag diag = {0};
  Arena arena;
  const char *why = NULL;
  arena_init(&arena, &vm->alloc);
  WeftStatus status = parser_parse(&ast, &arena, &vm->names, &vm->sources, file, &diag, NULL);
  if (status != WEFT_OK) status = raise_diag(vm, &diag);
  else if (parser_format(out, text, (u32)len, &why, &at) != WEFT_OK)
    status = out->failed ? vm_error_memory(vm) : vm_error_at(vm, EK_unsupported, (Span){file, at, 0}, "%s", why);
  arena_free(&arena);
  sources_drop(&vm->sources, file);
  return status;
}

static void caller_text(Vm *vm, const Name *names, u32 nargs, Buf *out) {
  buf_puts(out, "f => (");
  for (u32 i = 0; i < nargs; i++) buf_printf(out, "%s%c%u", i ? ", " : "", names && names[i] ? 'k' : 'p', i);
  buf_puts(out, ") => f(");
  for (u32 i = 0; i < nargs; i++) {
    if (names && names[i]) buf_printf(out, "%s%s=k%u", i ? ", " : "", name_text(&vm->names, names[i]), i);
    else buf_printf(out, "%sp%u", i ? ", " : "", i);
  }
  buf_puts(out, ")");
}

Code *vm_caller(Vm *vm, Module *m, const Name *names, u32 nargs) {
  Buf text;
  Arena arena;
  Proto *all = NULL;
  Code *code = NULL;
  buf_init(&text, &vm->alloc);
  arena_init(&arena, &vm->alloc);
  caller_text(vm, names, nargs, &text);
  u32 file = text.failed ? 0 : sources_add(&vm->sources, "", buf_text(&text), text.len);
  if (!file) (void)vm_error_memory(vm);
  else if (module_compile(vm, &m->scope, &arena, file, false, &all) == WEFT_OK) {
    Proto *p = all->protos[0]->protos[0];
    p->hidden = true;
    p->span = (Span){0};
    memset(p->spans, 0, sizeof *p->spans * p->ncode);
    code = code_of(vm, p, m);
    proto_drop(all);
  }
  sources_drop(&vm->sources, file);
  arena_free(&arena);
  buf_free(&text);
  return code;
}

WeftStatus vm_eval(Vm *vm, Module *m, const char *path, const char *text, size_t len, bool repl, Value *out) {
  if (len > SOURCE_MOST) return vm_error(vm, EK_limit, "%s: a source text has at most 2 ** 30 bytes", path);
  const u32 file = vm_add_source(vm, path, text, len);
  if (!file) return WEFT_ERROR;
  Arena arena;
  Proto *proto = NULL;
  arena_init(&arena, &vm->alloc);
  WeftStatus status = module_compile(vm, &m->scope, &arena, file, repl, &proto);
  arena_free(&arena);
  if (status == WEFT_OK) {
    status = module_run(vm, m, proto, out);
    proto_drop(proto);
  }
  sources_drop(&vm->sources, file);
  return status;
}
