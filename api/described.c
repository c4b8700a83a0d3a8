/* described.c — functions of the host with a signature and documentation (weft.h).
 *
 * Around the host's function stands one of the language, which gives parameters their names and defaults:
 *
 *     blur(img, radius=1)   =>   (_host) => {
 *                                ## the documentation
 *                                fn blur(img, radius=1)
 *                                { _host(img, radius) }
 *                                blur
 *                                }
 *
 * It is hidden, as what the VM puts around a call is: errors, traces and places look through it. Arguments by name,
 * defaults, `help`, completion and capture are those of any function. */
#include "api/inner.h"
#include "lang/bytecode.h"
#include "parser/parser.h"

#include <stdio.h>
#include <string.h>

#include "stdlib/stdlib.h"

typedef struct Signature {
  Name name;
  Buf args; /* "img, radius": what the host's function is called with */
  u32 count;
} Signature;

static WeftStatus refuse_signature(WeftVM *w, u32 file, u32 at, u32 len, const char *why) {
  return vm_error_at(w->vm, EK_syntax, (Span){file, at, len}, "the signature of a host function %s", why);
}

/* Of a text that is `fn `, the signature up to `end`, and an empty body. */
static WeftStatus look(WeftVM *w, const Ast *ast, u32 end, Signature *out) {
  const AstNode *root = ast_node(ast, ast->root), *fn = root->count ? ast_node(ast, ast_kid(ast, root, 0)) : root;
  const AstNode *body = fn->kind == AST_FN && fn->ref ? ast_node(ast, ast_fn_body(ast, fn)) : NULL;
  if (root->count != 1 || !body || body->kind != AST_BLOCK || body->count || body->span.start < end)
    return refuse_signature(w, ast->file, 0, end, "is a name and its parameters, as in \"blur(image, radius=1)\"");
  out->name = fn->ref;
  out->count = ast_fn_arity(fn);
  for (u32 i = 0; i < out->count; i++) {
    const AstNode *p = ast_node(ast, ast_fn_param(ast, fn, i));
    if (!p->ref) return refuse_signature(w, ast->file, p->span.start, p->span.len, "has a name for each parameter");
    buf_printf(&out->args, "%s%s", i ? ", " : "", name_text(&w->vm->names, p->ref));
  }
  return out->args.failed ? vm_error_memory(w->vm) : WEFT_OK;
}

static WeftStatus read_signature(WeftVM *w, const char *text, Signature *out) {
  Vm *vm = w->vm;
  Ast ast;
  Arena arena;
  Diag diag = {0};
  Buf whole;
  buf_init(&whole, &vm->alloc);
  buf_printf(&whole, "fn %s\n{}", text);
  const u32 file = whole.failed ? 0 : sources_add(&vm->sources, "<signature>", buf_text(&whole), whole.len);
  WeftStatus status = file ? WEFT_OK : vm_error_memory(vm);
  arena_init(&arena, &vm->alloc);
  if (file && parser_parse(&ast, &arena, &vm->names, &vm->sources, file, &diag, NULL) != WEFT_OK)
    status = diag.message ? vm_error_at(vm, (ErrorKind)diag.kind, diag.span, "%s", diag.message) : vm_error_memory(vm);
  if (status == WEFT_OK) status = look(w, &ast, (u32)(whole.len - strlen("\n{}")), out);
  arena_free(&arena);
  if (file) sources_drop(&vm->sources, file);
  buf_free(&whole);
  return status;
}

static void put_doc(Buf *b, const char *doc) {
  while (doc && *doc) {
    const size_t n = strcspn(doc, "\r\n");
    buf_puts(b, n ? "## " : "##");
    buf_put(b, doc, n);
    buf_putc(b, '\n');
    doc += n;
    doc += *doc == '\r' && doc[1] == '\n' ? 2 : *doc != 0;
  }
}

/* The text that is shown above. The host's function gets a name that stands nowhere in the signature. */
static void put_maker(const WeftVM *w, const Signature *s, const char *signature, const char *doc, Buf *b) {
  char inner[24] = "_host";
  for (u32 i = 1; strstr(signature, inner); i++) (void)snprintf(inner, sizeof inner, "_host%u", i);
  buf_printf(b, "(%s) => {\n", inner);
  put_doc(b, doc);
  buf_printf(b, "fn %s\n{ %s(%s) }\n%s\n}", signature, inner, s->args.len ? buf_text(&s->args) : "",
             name_text(&w->vm->names, s->name));
}

static void hide(Proto *p) {
  p->hidden = true;
  p->span = (Span){0};
  memset(p->spans, 0, sizeof *p->spans * p->ncode);
  for (u32 i = 0; i < p->nprotos; i++) hide(p->protos[i]);
}

/* A function of module `m` as a value. The host gives the context away by `*inner`'s release, when all is done. */
static WeftStatus make(WeftVM *w, Module *m, const char *signature, const char *doc, WeftHostFunction function,
                       void *context, Name *name, Value *inner, Value *out) {
  Signature s = {0};
  Buf text;
  Value maker = value_nil();
  buf_init(&s.args, &w->vm->alloc);
  buf_init(&text, &w->vm->alloc);
  WeftStatus status = read_signature(w, signature, &s);
  *name = s.name;
  if (status == WEFT_OK) {
    put_maker(w, &s, signature, doc, &text);
    if (text.failed) status = vm_error_memory(w->vm);
  }
  if (status == WEFT_OK) status = vm_eval(w->vm, m, "<signature>", buf_text(&text), text.len, false, &maker);
  if (status == WEFT_OK) {
    hide(maker.fn->code->proto);
    status = host_function_new(w, name_text(&w->vm->names, s.name), function, context, inner);
  }
  if (status == WEFT_OK) {
    value_keep(*inner); /* what is passed goes */
    status = vm_call(w->vm, maker, inner, 1, out);
    if (status != WEFT_OK) value_drop(w->vm, *inner);
  }
  value_drop(w->vm, maker);
  buf_free(&text);
  buf_free(&s.args);
  return status;
}

static bool asked_well(WeftVM *w, const char *signature, const char *doc, WeftHostFunction function) {
  return usable(w) && may_begin(w) && signature && utf8_valid(signature, strlen(signature)) && function &&
         (!doc || utf8_valid(doc, strlen(doc)));
}

WeftStatus weft_function_described(WeftVM *w, const char *signature, const char *doc, WeftHostFunction function,
                                   void *context, void (*release)(void *context), WeftValue **out) {
  if (!asked_well(w, signature, doc, function) || !out) return WEFT_MISUSE;
  *out = NULL;
  ON_STACK_OF(w);
  if (host_may_run(w) != WEFT_OK) return WEFT_ERROR;
  Name name;
  Value inner, fn;
  WeftValue *value = NULL; /* before the function: nothing may fail behind it */
  if (value_hand_over(w, value_nil(), &value) != WEFT_OK) return WEFT_ERROR;
  if (make(w, w->main, signature, doc, function, context, &name, &inner, &fn) != WEFT_OK) {
    weft_release(w, value);
    return WEFT_ERROR;
  }
  value->value = fn;
  host_function_release(inner, release);
  value_drop(w->vm, inner);
  *out = value;
  return WEFT_OK;
}

WeftStatus describe_in(WeftVM *w, Module *m, const char *signature, const char *doc, WeftHostFunction function,
                       void *context, void (*release)(void *context)) {
  if (!asked_well(w, signature, doc, function)) return WEFT_MISUSE;
  ON_STACK_OF(w);
  if (host_may_run(w) != WEFT_OK) return WEFT_ERROR;
  Name name;
  Value inner, fn;
  if (make(w, m, signature, doc, function, context, &name, &inner, &fn) != WEFT_OK) return WEFT_ERROR;
  const WeftStatus status = module_set(w->vm, m, name, fn);
  if (status == WEFT_OK) host_function_release(inner, release);
  value_drop(w->vm, inner);
  return status;
}

WeftStatus weft_define_described(WeftVM *w, const char *signature, const char *doc, WeftHostFunction function,
                                 void *context, void (*release)(void *context)) {
  return w ? describe_in(w, w->main, signature, doc, function, context, release) : WEFT_MISUSE;
}
