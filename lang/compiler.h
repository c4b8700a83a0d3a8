/* compiler.h — inside the compiler: the state of one compilation and of one function under construction.
 *
 * Errors are sticky: the first one fills the Diag and sets `failed`; from then on nothing is emitted, and the walk
 * over the (finite, depth-bounded) tree runs out. So no function here returns a status.
 *
 * Registers: variables and temporaries share one stack. `top` is the next free one; who allocates temporaries
 * saves `top` and puts it back. A variable is born where its value is made and dies at its last use (finish.c). */
#ifndef WEFT_LANG_COMPILER_H
#define WEFT_LANG_COMPILER_H

#include "lang/compile.h"

typedef struct Compiler Compiler;
typedef struct FnState FnState;

typedef struct Local {
  Name name;
  u32 reg;
  u32 entry; /* of FnState.local_names */
  u32 id; /* for the hook, else 0 */
} Local;

/* fn declarations that stand next to each other: one environment, so one capture list. */
typedef struct FnGroup {
  const Name *names;
  const u32 *ids; /* for the hook; NULL without one */
  u32 count;
  VEC(Capture) captures;
} FnGroup;

typedef struct LoopState {
  struct LoopState *outer;
  u32 breaks;    /* chain of jumps to its end, through their target fields; NO_JUMP ends it */
  u32 continues; /* chain of jumps to its back-edge */
  u32 locals;    /* variables outside its body */
} LoopState;

enum { NO_JUMP = 0xffffffffu, ANY = 0xffffffffu };

/* Finds equal entries of a growing table: slot = id + 1. */
typedef struct IdTable {
  u32 *slots;
  u32 count, used;
} IdTable;

struct FnState {
  Compiler *c;
  FnState *parent;    /* NULL: the module's body */
  FnGroup *group;     /* captures of this function; members by name unless it stands alone */
  Proto *proto;       /* under construction; its arena holds what descriptors point to */
  LoopState *loop;
  bool top_level;     /* the statement being compiled stands on the top level of a module */
  u32 try_depth;      /* bodies of try around here: no tail calls */
  u32 extent;         /* innermost open extent */
  u32 top;            /* next free register */
  u32 param_count;    /* registers of parameters */
  VEC(Local) locals;  /* innermost last */
  VEC(LocalName) local_names;
  VEC(Ins) code;
  VEC(Span) spans;
  VEC(Const) consts;
  VEC(Desc) descs;
  VEC(Extent) extents;
  VEC(Proto *) protos;
  IdTable const_ids, name_ids;
};

typedef struct SlotFlags {
  u32 slot;
  u8 flags;
} SlotFlags;

struct Compiler {
  const Ast *ast;
  const CompileOptions *o;
  Diag *diag;
  bool failed;
  bool faulty;        /* the hook was told of errors */
  u32 locals;         /* ids that the hook has heard */
  u8 *assigns;        /* node -> does it assign a variable, outside inner functions? */
  u32 piped_call;     /* the call that takes a piped value, until it is met */
  u32 piped_value;    /* node of that value */
  VEC(SlotFlags) undo; /* flags of module slots before this compilation */
  Name assert_name, value_name;
};

/* ---- errors (scope.c) ------------------------------------------------------------------------ */

void compile_error(Compiler *c, u32 kind, Span at, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The same for what is too large: nothing more is compiled, whoever listens. */
void compile_limit(Compiler *c, u32 kind, Span at, const char *fmt, ...) PRINTF_LIKE(4, 5);
void compile_refused(Compiler *c); /* memory */

/* ---- names (scope.c) ------------------------------------------------------------------------- */

typedef enum RefKind { REF_NONE, REF_LOCAL, REF_CAPTURE, REF_GROUP, REF_MODULE } RefKind;
typedef struct NameRef {
  u8 kind;   /* RefKind */
  u32 index; /* register, capture, group member, module slot */
} NameRef;

NameRef scope_read(FnState *fs, Name name);   /* REF_NONE when it is not declared */
NameRef scope_assign(FnState *fs, Name name); /* module names: declared ones only; makes no capture */
void scope_not_declared(FnState *fs, Name name, Span at, bool assigning); /* raises, with the nearest name */
void scope_captured(FnState *fs, Name name, Span at);                     /* raises: assigned inside a closure */
void scope_local(FnState *fs, Name name, u32 reg, Span at); /* at: of the declaration, for the hook */
/* Tells the hook what the name means here; nothing where it means nothing. */
void scope_mention(FnState *fs, Name name, Span at, ScopeUse use);
void scope_kill(FnState *fs, u32 locals, Span at);  /* empties the variables behind the first `locals` */
void scope_forget(FnState *fs, u32 locals, Span of); /* they cannot be named behind `of` */
void scope_close(FnState *fs, u32 locals, Span at); /* both */
u32 scope_declare(FnState *fs, Name name, Span at); /* on the top level of the module: its slot */
void scope_member(FnState *fs, const FnGroup *group, u32 i, u32 reg); /* a function of a group, in its register */
u32 scope_new_id(FnState *fs, Name name, Span at); /* of a local that the hook is told of; 0 without one */
void scope_expect(FnState *fs, Name name); /* it will be declared further down the top level */
void scope_settle(Compiler *c);            /* end of compilation: nothing is expected any more, or all undone */

/* ---- emission (emit.c) ------------------------------------------------------------------------ */

void fn_open(FnState *fs, Compiler *c, FnState *parent, FnGroup *group, Name name, Span span);
Proto *fn_close(FnState *fs); /* finishes; NULL when failed. Frees the state */
bool proto_finish(FnState *fs); /* finish.c: last uses, writes, sites; tables into the prototype's arena */

u32 emit(FnState *fs, Ins ins, Span at); /* its pc */
static inline u32 here(const FnState *fs) { return fs->code.count; }
u32 reg_take(FnState *fs, u32 count); /* consecutive registers on top of the stack */
u32 const_operand(FnState *fs, Const k, Span at); /* an operand; may load a far constant into a register */
void emit_const(FnState *fs, u32 reg, Const k, Span at);
void emit_move(FnState *fs, u32 reg, u32 operand, Span at);
void emit_nil(FnState *fs, u32 reg, Span at);
enum { INS_KILL = 0x80 }; /* flag inside the compiler only */
void emit_kill(FnState *fs, u32 reg, Span at); /* empties it; left out where it is empty already (finish.c) */
u32 desc_add(FnState *fs, Desc d);
u32 desc_name(FnState *fs, Name name);
void *proto_room(FnState *fs, size_t n); /* in the prototype's arena; NULL for n == 0 or when failed */
void *proto_copy(FnState *fs, const void *data, size_t n);
u32 emit_jump(FnState *fs, u32 op, u32 flags, u32 a, u32 chain, Span at); /* pc; target field holds `chain` */
void patch(FnState *fs, u32 chain, u32 target); /* all jumps of a chain */
u32 extent_open(FnState *fs, u32 kind);
void extent_close(FnState *fs, u32 extent);
static inline Const const_nil(void) { return (Const){.kind = CK_NIL}; }
static inline Const const_text(const char *s, u32 len) { return (Const){.kind = CK_TEXT, .len = len, .text = s}; }

/* ---- code (compile_*.c) ----------------------------------------------------------------------- */

/* Every node can be compiled for its value, for its effect, or as the last thing a function does.
 * expr: puts the value into register `want`, which nothing in the node reads, and returns it; or, for ANY, returns
 * an operand: a constant, the register of a variable, or a new temporary on top of the stack. */
u32 expr(FnState *fs, u32 id, u32 want);
void effect(FnState *fs, u32 id);
void tail(FnState *fs, u32 id); /* returns its value */

u32 expr_register(FnState *fs, u32 id);            /* like ANY, never a constant */
u32 expr_kept(FnState *fs, u32 id, bool assigned); /* like ANY; a copy when what follows assigns variables */
u32 result_register(FnState *fs, u32 save, u32 want); /* frees temporaries above `save`; where the result goes */
/* Items of an index node: their kinds, how many registers they take, and their values from `base` on. */
u32 index_items(FnState *fs, const AstNode *n, u8 *kinds);
void index_values(FnState *fs, const AstNode *n, u32 base);
u32 call(FnState *fs, u32 id, u32 want, bool is_tail); /* call and pipe (compile_call.c) */
/* Does the program name an operation that is written in Weft? Then this is no tail call: the caller's frame stays,
 * and errors show the call as they do for one that is written in C. */
bool is_library(FnState *fs, u32 callee);
u32 binary_op(u32 ast_op); /* BcOp */

void block_value(FnState *fs, u32 id, u32 want); /* want ANY: returns it */
void block_effect(FnState *fs, u32 id);
void module_body(FnState *fs); /* the root block: its names are module variables */
u32 control(FnState *fs, u32 id, u32 want); /* if while for try and or, chained comparisons (compile_control.c) */
void control_effect(FnState *fs, u32 id);
void control_tail(FnState *fs, u32 id);     /* if */

void let_statement(FnState *fs, const AstNode *n);
void assign_statement(FnState *fs, const AstNode *n);
void each_name(FnState *fs, u32 pattern, void (*visit)(FnState *, Name, Span)); /* the variables of a pattern */
/* Binds the names of a pattern as locals: the value lies in register `reg`, which becomes the variable of a name. */
void bind_pattern(FnState *fs, u32 pattern, u32 reg);

/* Functions (compile_fn.c): a lambda into `want`; `count` declarations that stand together. */
void lambda(FnState *fs, u32 id, u32 want);
u32 declare_functions(FnState *fs, const u32 *ids, u32 count); /* register of the last one */

#endif
