/* compile.h — facade of the compiler: an AST becomes the prototype of a module body; reading, proving, storing it.
 *
 *   Ast → scope.c (what a name means) + compile_*.c (code) → finish.c (last uses, writes, sites) → Proto
 *
 * May include parser/. Knows no VM: names of a module live in a ModuleScope, values are made by who runs the code. */
#ifndef WEFT_LANG_COMPILE_H
#define WEFT_LANG_COMPILE_H

#include "lang/bytecode.h"
#include "parser/ast.h"

/* How a name is mentioned. SCOPE_calls: behind a point, a.f(x), where it is what the name means unless `a` has such a
 * field. SCOPE_updates: `x = …` and `x[i] = …`. */
typedef enum ScopeUse { SCOPE_reads, SCOPE_updates, SCOPE_calls } ScopeUse;

/* Hears what names mean while a text is compiled: for editors. With a hook errors of names and types all go to
 * `problem`, compiling goes on behind each, and lang_compile gives WEFT_ERROR at the end. The same place may be told
 * more than once. A span of a function, parameter or import is that of its node, of all else that of its name. */
typedef struct ScopeHook {
  void *context;
  void (*local)(void *context, u32 id, Name name, Span at);  /* a variable of a function: ids count from 1 on */
  void (*module)(void *context, u32 slot, Name name, Span at);       /* a variable of the module is declared */
  void (*end)(void *context, u32 id, Span of);               /* the local cannot be named behind the end of `of` */
  void (*use)(void *context, u32 id, Name name, Span at, ScopeUse use); /* of a local */
  /* `builtin`: no text has declared it; it is the built-in of that name */
  void (*use_module)(void *context, u32 slot, Name name, bool builtin, Span at, ScopeUse use);
  void (*problem)(void *context, const Diag *diag); /* the message lies in diag_arena */
} ScopeHook;

typedef struct CompileOptions {
  Allocator *alloc;    /* of the prototypes */
  Names *names;        /* those of the AST */
  const Sources *sources;
  ModuleScope *scope;  /* of the module this text belongs to: grows. When compilation fails no name stays declared
                          that was not before */
  Arena *diag_arena;   /* of error messages */
  /* `x = e` on the top level declares; functions may name what no text has declared yet: its slot is empty and has no
   * flags */
  bool repl;
  /* a module of the library: a call at the end of a function keeps its frame, since errors name the function */
  bool library;
  const ScopeHook *hook; /* or NULL */
  Toil *toil; /* may be NULL; when it ends, so does compiling, as if memory were refused */
} CompileOptions;

/* The body of a module (or of one more entry at the REPL). Running it gives the value of its last statement.
 * Before it runs, every slot flagged MODVAR_BUILTIN that holds no value must get the built-in of its name.
 * *out: one count, owned by the caller. WEFT_ERROR: *diag is filled (kind limit when memory was refused). */
WeftStatus lang_compile(const Ast *ast, const CompileOptions *options, Proto **out, Diag *diag) MUST_USE;

/* Readable text: `0004  mul  r2 r0* k1(2.5)   ; 3:12-17`, extents, then the functions made inside.
 * `sources` and `scope` may be NULL. */
void proto_print(const Proto *p, const Names *names, const Sources *sources, const ModuleScope *scope, Buf *out);

/* Proves bounds, nesting, jump targets, and that no register is read after its death or before its birth on any
 * path, children included. `slots` and `names`: how many module slots and names there are. False: `why` tells
 * (or memory was refused, or `t` ended: why is empty). */
bool proto_verify(const Proto *p, u32 slots, u32 names, Allocator *scratch, Buf *why, Toil *t) MUST_USE;

bool bytes_are_utf8(const char *s, u32 len);
bool bytes_are_utf8_long(const char *s, u32 len, Toil *t); /* false also when `t` has ended */

/* Bytes: magic, version, names, module slots, then the tables in order. `shown`: with names of local variables and
 * texts of defaults, for messages, help and debuggers. `out->failed` tells of memory. */
void proto_save(const Proto *p, const Names *names, const ModuleScope *scope, bool shown, Buf *out);
/* Reads what proto_save wrote: interns names, finds or adds module slots, gives spans the id `file`, and verifies what
 * is not `trusted`. Only the library's own functions are: jit/host/gen_modules.c verified them when it wrote them.
 * WEFT_ERROR: `why` tells, or *missing is a variable flagged MODVAR_GIVEN when it was saved and not declared in `scope`
 * (neither: memory was refused, or `t` ended); then the scope may have grown by undeclared slots. */
WeftStatus proto_load(const char *bytes, size_t len, bool trusted, u32 file, Allocator *alloc, Names *names,
                      ModuleScope *scope, Proto **out, Name *missing, Buf *why, Toil *t) MUST_USE;
/* Another number for each set of tables that bytecode refers to by position: instructions, operations, dtypes,
 * modules. */
u64 proto_tables(void);

#endif
