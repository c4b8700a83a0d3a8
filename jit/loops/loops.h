/* loops.h — the loop IR: what kernels, native functions and math functions are before they become machine code.
 * Described in docs/formats/loops.md.
 *
 *   graph passes ──builder──▶ LoopFn ──▶ loops_verify ──▶ interpreter · MIR · vector code · PTX · C text
 *   text ─loops_parse─▶ LoopFn ─loops_print─▶ text
 *
 * A function is an array of nodes and a body. Node ids are u32, 0 is none; a node is an SSA value, a statement, or
 * both. The body is one flat array of node ids in program order; heads (par for while if reduce scan) and their END
 * bracket it, so every consumer is one loop over `body` with a stack, never a recursion. Leaves (parameters,
 * constants, indices, carried values, results) are not in the body: a leaf is valid wherever what it belongs to is.
 * Nodes are not changed once built; a pass builds a new function or reorders `body`.
 *
 * Text, one statement per line or not (newlines are blanks, `;` begins a comment up to the line's end):
 *
 *   kernel k1 (x: in f64, y: out f64, n: i64, sx: i64, s: f64) {
 *     par i in 0..n grain 2048 {
 *       %1 = load x[i*sx] f64
 *       %2 = mul %1 s
 *       %3 = math exp %2
 *       store y[i] %3
 *     }
 *   }
 *   kernel k2 (x: in f64, q: in i64, y: out f64, r: i64, m: i64, n: i64) {
 *     par i in 0..r grain 1 {
 *       %t = reduce add f64 j in 0..m {
 *         %1 = load q[i*m + j] i64
 *         check index %1 n #0
 *         %2 = load x[%1] f64
 *         yield %2
 *       }
 *       store y[i] %t
 *     }
 *   }
 *   native w1 (x: in f64, n: i64) -> (f64, i64) {
 *     %s %i = while (%a: f64 = 0.0, %k: i64 = 0) {
 *       poll #1 (%a, %k)
 *       %c = lt %k n
 *       if %c {
 *         %v = load x[%k] f64
 *         %a2 = add %a %v
 *         %k2 = add %k 1
 *         next %a2 %k2
 *       }
 *       break %a %k
 *     }
 *     return %s %i
 *   }
 *   table exp_tab f64 [0x1p+0, 0x1.02c9a3e778061p+0]
 *   math exp f64 (x: f64) -> f64 {
 *     %k = convert i64 x
 *     %j = and %k 1
 *     %t = load exp_tab[%j] f64
 *     %r = mul %t x
 *     return %r
 *   }
 *
 * - Kinds. `kernel`: `u64 k(const u64 *args, i64 lo, i64 hi)`. Its body is one outermost `par`, after pure
 *   statements and loads if any; it runs the trips lo .. hi-1 of that `par`, and nothing at all when lo >= hi.
 *   `native`: `u32 f(LoopCtx *, args…)`. `math NAME TYPE`: the scalar C function `TYPE wm_NAME_TYPE(TYPE…)`: scalar
 *   float parameters, one result, values, `if`, `for`, `while`, tables; it may use
 *   `math` of functions defined before it. Its name in the module is NAME with its type, so exp f64 and exp f32 are
 *   two. `extern native f (f64, i64) -> (f64)` and `extern kernel …` declare a function that is called and linked by
 *   address.
 * - Operands are %names, parameter and index names, or literals (`3 -1 0x1F 2.5 0x1.8p+3 inf -inf nan true false`).
 *   A literal takes the type of the operation's other operand or of what it is stored to; standing alone, i64 or
 *   f64, unless it is written
 *   `2.5:f32`. `%a %b = …` names several results. A name is visible to the end of its
 *   block and is not defined again while it is visible; what a head leaves is visible after its `}`.
 * - Access `b[e]`: e is a sum of terms; a term is a product of an optional integer literal, optional strides
 *   (parameters) and at most one other i64 value: `x[i*sx + 2*j + %k + off - 1]`, `x[%1]`, `x[0]`. Affine when every
 *   variable is a loop index or a parameter; else a gather or scatter. Unit: elements. The caller guarantees that
 *   affine accesses are in bounds.
 * - if: `%a %b = if %c -> (f64, i64) { … yield %1 %2 } else { … yield %3 %4 }`; an arm that ends by next, break,
 *   return or exit gives no results. Without results: `if %c { … }`, `if %c { … } else { … }`.
 * - for: `for i in 0..n { … }` or `%s = for i in 0..n (%a: f64 = 0.0) { … next %b }`; `break` and `next` reach
 *   through `if`s to the nearest `for` or `while`, never out of a par, reduce or scan. Trip counts are read as u64.
 * - reduce: `%r = reduce add f64 j in 0..m, k in 0..n { … yield %v }`: elements numbered row-major over its axes,
 *   combined in the order LANES; `reduce add f64 rows j in 0..m {…}`: in the order ROWS. The body has no stores to
 *   what it reads.
 * - scan: `%total = scan add f64 j in 0..n { … %p = prefix %v … store y[j] %p }`, in segments of 16.
 * - check in a kernel: when it fails, the key (number in the top 16 bits, element in the low 48, saturating) joins the
 *   kernel's least key and the rest of the innermost loop's trip is skipped: a `reduce` or `scan` goes on without
 *   that element, a `for` keeps its carried values, a `while` ends with them. The element is the row-major number
 *   over the axes of the enclosing par, for, reduce and scan loops. What a kernel wrote is unspecified once its key
 *   is not ~0; memory safety holds.
 * - check in a native: `check index %1 n #3 (%a, %b)`: leaves with exit number 3 and the values its recipe needs.
 * - call: `%a %b = call f (x, %1) #2 (%k)`, exit 2 with its values in parentheses when f left by an exit. Of a kernel,
 *   `%ok = call k (x, 0, n) #0` takes no exit: %ok says that all its checks held. */
#ifndef WEFT_JIT_LOOPS_H
#define WEFT_JIT_LOOPS_H

#include "parser/base.h"

/* ---- tables -------------------------------------------------------------------------------- */

typedef enum LoopType {
#define LOOP_TYPE(NAME, text, bytes, cls) LT_##NAME,
#include "jit/loops/loops.def"
  LT_COUNT
} LoopType;

typedef enum LoopOp {
#define LOOP_OP(NAME, text, form, types, doc) LOOP_##NAME,
#include "jit/loops/loops.def"
  LOOP_OP_COUNT
} LoopOp;

typedef enum LoopCheck {
#define LOOP_CHECK(NAME, text, args, doc) LOOP_CHECK_##NAME,
#include "jit/loops/loops.def"
  LOOP_CHECK_COUNT
} LoopCheck;

typedef enum LoopReduce {
#define LOOP_REDUCE(NAME, text, types, doc) LOOP_REDUCE_##NAME,
#include "jit/loops/loops.def"
  LOOP_REDUCE_COUNT
} LoopReduce;

typedef enum LoopOrder {
#define LOOP_ORDER(NAME, text, doc) LOOP_ORDER_##NAME,
#include "jit/loops/loops.def"
  LOOP_ORDER_COUNT
} LoopOrder;

/* How a node uses a, b, c, list, imm. */
typedef enum LoopForm {
  LOOP_FORM_LEAF,    /* see loops.def */
  LOOP_FORM_UNARY,   /* a */
  LOOP_FORM_BINARY,  /* a b */
  LOOP_FORM_TERNARY, /* a b c */
  LOOP_FORM_COMPARE, /* a b; result i1 */
  LOOP_FORM_SELECT,  /* a = condition, b, c */
  LOOP_FORM_CONVERT, /* a; type = the new one */
  LOOP_FORM_MATH,    /* a b c (0 when absent); imm = Name */
  LOOP_FORM_ACCESS,  /* a = buffer, b = value (store); index = imm + sum of terms[list .. list+count) */
  LOOP_FORM_PREFIX,  /* a */
  LOOP_FORM_CHECK,   /* a b; aux = kind; imm = number; list = exit values */
  LOOP_FORM_CALL,    /* imm = Name; list = arguments (a of them), then exit values; b = results; c = exit number */
  LOOP_FORM_EXIT,    /* imm = exit number; list = exit values */
  LOOP_FORM_HEAD,    /* a = axes, b = carried, c = results; list = trip counts or condition, then initial values */
  LOOP_FORM_MARK,    /* a = head */
  LOOP_FORM_TERM,    /* list = values; a = the head it belongs to (0: the function) */
} LoopForm;

typedef enum LoopDir { LOOP_IN = 1, LOOP_OUT = 2, LOOP_INOUT = 3 } LoopDir;
typedef enum LoopKind { LOOP_KERNEL, LOOP_NATIVE, LOOP_MATH_FN } LoopKind;

/* Reads of the tables. */
extern const u8 loop_type_sizes[LT_COUNT], loop_op_forms[LOOP_OP_COUNT];
const char *loop_type_text(LoopType t);
static inline u32 loop_type_bytes(LoopType t) { return loop_type_sizes[t]; }
LoopType loop_type_find(const char *s, size_t n); /* LT_VOID when there is none */
const char *loop_op_text(LoopOp op);
static inline LoopForm loop_op_form(LoopOp op) { return (LoopForm)loop_op_forms[op]; }
const char *loop_op_doc(LoopOp op);
const char *loop_check_text(LoopCheck k);
u32 loop_check_args(LoopCheck k);
const char *loop_reduce_text(LoopReduce r);
static inline bool loop_is_float(LoopType t) { return t == LT_F32 || t == LT_F64; }
static inline bool loop_is_int(LoopType t) { return t >= LT_U8 && t <= LT_U64; }
static inline bool loop_is_signed(LoopType t) { return t == LT_I32 || t == LT_I64; }
/* Type of the value that a load from memory of type `mem` gives: f16 and bf16 give f32. */
static inline LoopType loop_value_type(LoopType mem) { return mem == LT_F16 || mem == LT_BF16 ? LT_F32 : mem; }

/* ---- functions ----------------------------------------------------------------------------- */

typedef struct LoopNode {
  u8 op;   /* LoopOp */
  u8 type; /* LoopType of the value; VOID when it has none */
  u8 mem;  /* element type of a buffer, table, load, store; LoopOrder of reduce and scan */
  u8 aux;  /* LoopDir, LoopCheck, LoopReduce */
  u32 a, b, c;
  u32 list, count; /* a run in fn->list, or in fn->terms for accesses */
  u64 imm;
} LoopNode;
_Static_assert(sizeof(LoopNode) == 32, "a loop node is half a cache line");

/* One term of an access's index: coef * strides * var. */
typedef struct LoopTerm {
  i64 coef;
  u32 stride[2]; /* parameters of type i64; 0 = none */
  u32 var;       /* i64 value; 0 = none (a constant offset by parameters) */
} LoopTerm;

typedef struct LoopModule LoopModule;

typedef struct LoopFn {
  LoopModule *module;
  LoopKind kind;
  bool is_extern; /* declared only: no body; `address` is what is called */
  Name name;
  LoopType math_type; /* of `math` functions: the TYPE in wm_NAME_TYPE */
  void *address;      /* of extern functions, when the host knows it */
  u64 tag;            /* the compiler's own number: natives hand it on with their exit frames */
  VEC(LoopNode) nodes; /* node 0 unused */
  VEC(u32) body;
  VEC(u32) list;
  VEC(LoopTerm) terms;
  VEC(u32) params;  /* node ids, in order */
  VEC(u8) results;  /* LoopTypes: native and math */
  /* builder state */
  u32 *const_slots; /* open addressing: ids of the constants; power of two or 0 */
  u32 const_slot_count, const_count;
  VEC(u32) open;      /* heads whose END is not written yet */
  const char *failed; /* first misuse or refused memory; later calls do nothing; checked by loop_fn_finish */
} LoopFn;

typedef struct LoopTable {
  Name name;
  LoopType type;
  u32 count;
  u64 *bits; /* one per element, as CONST has them; in the module's arena */
} LoopTable;

/* A scalar math function of C, as generated from lang/math.loops. */
typedef struct LoopMath {
  const char *name; /* "exp" */
  const char *symbol; /* "wm_exp_f64" */
  u8 type;          /* LoopType */
  u8 arity;         /* 1 .. 3 */
  void (*fn)(void); /* f64 (*)(f64…) or f32 (*)(f32…) */
  /* out[i] = fn(x[i]) or fn(x[i], y[i]), faster; NULL: none */
  u32 (*strip)(void *out, const void *x, const void *y, i64 n);
} LoopMath;

/* Owns its functions, names and tables. `math` is what `math NAME` means to the interpreter and the emitters when the
 * module itself defines no such function; borrowed, may be NULL. Functions point to their module: it must not move. */
struct LoopModule {
  Allocator *alloc;
  Arena arena;
  Names names;
  VEC(LoopFn *) fns;
  VEC(LoopTable) tables;
  const LoopMath *math;
  u32 math_count;
  Toil *toil; /* borrowed: of the compilation that works on its functions; may be NULL */
  bool loads_stay; /* loops_simplify lets loops load what they could carry: */
  u32 carried;     /* else so many were carried */
  bool divisions_stay; /* code divides integers by constants: */
  u32 products;        /* else so many divisions are products */
  bool powers_stay; /* loops_simplify leaves `math pow` by constants: */
  u32 powers;       /* else so many are products and roots */
  bool bytes_stay; /* vector code reads bytes a few apart one by one: */
  u32 shuffled;    /* else so many loops shuffle them */
  bool lanes_stay;     /* vector code computes integers in lanes of their types: */
  u32 narrowed;        /* else so many loops have narrower ones */
};

WeftStatus loop_module_init(LoopModule *m, Allocator *alloc) MUST_USE;
void loop_module_free(LoopModule *m);
/* frees the functions and forgets the tables added since */
void loop_module_truncate(LoopModule *m, u32 fns, u32 tables);
LoopFn *loop_module_find(const LoopModule *m, const char *name);                         /* kernel or native; NULL */
/* defined in the module; NULL */
LoopFn *loop_module_find_math(const LoopModule *m, const char *name, LoopType t);
const LoopMath *loop_module_math(const LoopModule *m, const char *name, LoopType t);     /* of C; NULL */

/* ---- builder ------------------------------------------------------------------------------- */
/* Every call returns a node id, 0 after a failure; the failure sticks, so only loop_fn_finish need be checked.
 * Arrays passed in are borrowed for the call. Constants are shared within a function. */

/* Owned by the module. NULL when memory was refused. `name` is interned. */
LoopFn *loop_fn_new(LoopModule *m, LoopKind kind, const char *name);
LoopFn *loop_math_new(LoopModule *m, const char *name, LoopType type);
/* Closes the function: every head is closed, nothing failed. On error writes the reason to `why` (may be NULL). */
WeftStatus loop_fn_finish(LoopFn *fn, Buf *why) MUST_USE;

u32 loop_param_buffer(LoopFn *fn, const char *name, LoopType elem, LoopDir dir);
u32 loop_param(LoopFn *fn, const char *name, LoopType type);
void loop_result(LoopFn *fn, LoopType type); /* one more result of a native or math function */
u32 loop_table_new(LoopModule *m, const char *name, LoopType type, u32 count, const u64 *bits); /* id; 0 refused */
u32 loop_table_ref(LoopFn *fn, u32 table);

u32 loop_const(LoopFn *fn, LoopType type, u64 bits); /* normalised by type */
u32 loop_const_i(LoopFn *fn, LoopType type, i64 v);  /* v converts to type, floats included */
u32 loop_const_f(LoopFn *fn, LoopType type, f64 v);

/* UNARY BINARY TERNARY COMPARE SELECT CONVERT PREFIX. `type` is used by CONVERT forms only; b, c are 0 when unused. */
u32 loop_emit(LoopFn *fn, LoopOp op, LoopType type, u32 a, u32 b, u32 c);
u32 loop_math(LoopFn *fn, const char *name, u32 a, u32 b, u32 c);

/* Index = constant + sum of terms. */
u32 loop_load(LoopFn *fn, u32 buffer, i64 constant, const LoopTerm *terms, u32 count);
u32 loop_store(LoopFn *fn, u32 buffer, i64 constant, const LoopTerm *terms, u32 count, u32 value);
u32 loop_load_at(LoopFn *fn, u32 buffer, u32 index); /* index: any i64 value */
u32 loop_store_at(LoopFn *fn, u32 buffer, u32 index, u32 value);

u32 loop_check(LoopFn *fn, LoopCheck kind, u32 number, u32 a, u32 b, u32 count, const u32 *values);
u32 loop_poll(LoopFn *fn, u32 exit, u32 count, const u32 *values);
/* The callee must be in the module (defined or extern). Results: loop_result_of(fn, call, i). */
u32 loop_call(LoopFn *fn, LoopFn *callee, u32 argc, const u32 *args, u32 exit, u32 count, const u32 *values);

/* Heads return their node id; their indices, carried values and results have the ids below. A name that is NULL, or
 * not asked for, becomes i, j, k or l by depth; the printer keeps names apart. */
u32 loop_begin_par(LoopFn *fn, const char *index, u32 trips, u64 grain);
u32 loop_begin_for(LoopFn *fn, const char *index, u32 trips, u32 carried, const u32 *init);
u32 loop_begin_while(LoopFn *fn, u32 carried, const u32 *init);
u32 loop_begin_if(LoopFn *fn, u32 cond, u32 results, const LoopType *types);
u32 loop_begin_reduce(LoopFn *fn, LoopReduce op, LoopType type, LoopOrder order, u32 axes, const u32 *trips);
u32 loop_begin_scan(LoopFn *fn, LoopReduce op, LoopType type, u32 axes, const u32 *trips);
void loop_else(LoopFn *fn);
void loop_end(LoopFn *fn);

void loop_yield(LoopFn *fn, u32 count, const u32 *values);
void loop_next(LoopFn *fn, u32 count, const u32 *values);
void loop_break(LoopFn *fn, u32 count, const u32 *values);
void loop_return(LoopFn *fn, u32 count, const u32 *values);
void loop_exit(LoopFn *fn, u32 exit, u32 count, const u32 *values);

/* ---- reader -------------------------------------------------------------------------------- */

static inline const LoopNode *loop_node(const LoopFn *fn, u32 id) { return &fn->nodes.data[id]; }
static inline LoopType loop_type_of(const LoopFn *fn, u32 id) { return (LoopType)fn->nodes.data[id].type; }
static inline const u32 *loop_list(const LoopFn *fn, const LoopNode *n) { return fn->list.data + n->list; }
static inline const LoopTerm *loop_terms(const LoopFn *fn, const LoopNode *n) { return fn->terms.data + n->list; }
static inline bool loop_is_head(const LoopNode *n) { return n->op >= LOOP_PAR && n->op <= LOOP_SCAN; }
static inline bool loop_is_terminator(const LoopNode *n) { return n->op >= LOOP_YIELD; }
/* Ids that belong to a head: its indices come right behind it, then its carried values, then its results. */
static inline u32 loop_index_of(u32 head, u32 axis) { return head + 1 + axis; }
static inline u32 loop_carry_of(const LoopFn *fn, u32 head, u32 i) { return head + 1 + loop_node(fn, head)->a + i; }
static inline u32 loop_result_of(const LoopFn *fn, u32 head, u32 i) {
  const LoopNode *n = loop_node(fn, head);
  return n->op == LOOP_CALL ? head + 1 + i : head + 1 + n->a + n->b + i;
}
/* Of a head: trip count of an axis, condition of an `if`, initial value of a carried one. */
static inline u32 loop_trips_of(const LoopFn *fn, u32 head, u32 axis) {
  return loop_list(fn, loop_node(fn, head))[axis];
}
static inline u32 loop_cond_of(const LoopFn *fn, u32 head) { return loop_list(fn, loop_node(fn, head))[0]; }
static inline u32 loop_init_of(const LoopFn *fn, u32 head, u32 i) {
  const LoopNode *n = loop_node(fn, head);
  return loop_list(fn, n)[n->a + i];
}
static inline bool loop_terms_equal(const LoopTerm *a, const LoopTerm *b) {
  return a->coef == b->coef && a->var == b->var && a->stride[0] == b->stride[0] && a->stride[1] == b->stride[1];
}
/* True when every variable of the access is a loop index or a parameter. */
bool loop_access_is_affine(const LoopFn *fn, const LoopNode *access);
/* Calls `visit` with every value the node reads, in order (terms' strides and variables included). */
void loop_each_operand(const LoopFn *fn, const LoopNode *n, void (*visit)(void *ctx, u32 id), void *ctx);

/* The value of a pure operation (forms UNARY to CONVERT) on words; `from` is the type of a. The one place where
 * their meaning is written in C. False for any other operation. */
bool loop_eval(LoopOp op, LoopType type, LoopType from, u64 a, u64 b, u64 c, u64 *out);
u64 loop_normal(LoopType type, u64 bits);               /* the word form of `bits` */
u64 loop_load_memory(LoopType mem, const void *at);     /* as LOAD gives it */
void loop_store_memory(LoopType mem, void *at, u64 word);
bool loop_check_holds(LoopCheck kind, LoopType type, u64 a, u64 b);
u64 loop_reduce_identity(LoopReduce op, LoopType type); /* the start of a lane: -0.0, 1, … */
u64 loop_reduce_empty(LoopReduce op, LoopType type);    /* the result without elements: 0, 1, … */
LoopOp loop_reduce_op(LoopReduce op);                   /* its combining operation */

/* Lanes and block length of the order LANES for an accumulator type; trips of a block of ROWS and of a scan's
 * segment. */
static inline u32 loop_lanes(LoopType t) { return 256 / loop_type_bytes(t); }
enum { LOOP_BLOCK_TRIPS = 64, LOOP_ROW_BLOCK = 64, LOOP_SCAN_SEGMENT = 16 };

/* Writes operations into a function that is built or rewritten; each call gives the id of the value. */
typedef struct LoopMaker {
  void *ctx;
  u32 (*node)(void *ctx, LoopNode n); /* op, type and operands of a pure operation */
  u32 (*number)(void *ctx, LoopType t, f64 v);
} LoopMaker;
/* x to the power of a constant, by products and roots, with the bits that `math pow` gives; 0: an exponent for which
 * that has no such steps, or that is no constant. */
u32 loop_known_power(const LoopMaker *m, LoopType t, u32 x, const LoopNode *exponent);

/* ---- text, verifier ------------------------------------------------------------------------ */

/* Adds the functions and tables of the text to the module; they are verified. On error the module is unchanged in
 * what it finds by name and `why` holds "line:column: reason". */
WeftStatus loops_parse(LoopModule *m, const char *text, size_t len, Buf *why) MUST_USE;
void loops_print(const LoopFn *fn, Buf *out);
void loops_print_module(const LoopModule *m, Buf *out); /* tables, then functions */
/* Types, scopes, dominance, nesting, buffer directions, access terms, what each kind of function may hold. */
WeftStatus loops_verify(const LoopFn *fn, Buf *why) MUST_USE;

/* Folding, common values, invariants moved out of loops, dead code: a new function with the same results, bit for
 * bit, for emitters that do not do this themselves. Owned by the caller (loop_fn_free), in no module's list; NULL
 * when memory was refused. */
LoopFn *loops_simplify(const LoopFn *fn);
bool loops_drop_dead(LoopFn *fn) MUST_USE; /* false: memory refused */
void loop_fn_free(LoopFn *fn); /* only of functions that are in no module's list */

/* ---- ABI and the reference interpreter ----------------------------------------------------- */

/* What a native function gets besides its arguments. Owned by the caller of the outermost one. */
typedef struct LoopCtx LoopCtx;
struct LoopCtx {
  u64 *results; /* room for the results of every native in the call graph; read right after a call returned 0 */
  i64 budget;   /* units left until `poll` must be called; one per poll statement */
  i64 depth;    /* calls that may still nest; below 0 the callee's first poll calls `poll` */
  /* Called when the budget is used up; refills it. Not 0: leave by the poll's exit. */
  u32 (*poll)(LoopCtx *ctx);
  /* A function leaves by exit `exit` (or passes its callee's exit on): frames arrive innermost first. `values` are its
   * exit values, one word each, valid during the call only. */
  void (*frame)(LoopCtx *ctx, u64 tag, u32 exit, const u64 *values, u32 count);
  void *owner;
};

/* Words: integers extended to 64 bits by their type, i1 0 or 1, f64 its bits, f32 its bits in the low half and
 * zeros above, a buffer the address of its element 0. */
typedef u64 (*LoopKernelFn)(const u64 *args, i64 lo, i64 hi);
#define LOOP_KEY_NONE UINT64_MAX
static inline u64 loop_key(u32 check, u64 element) {
  u64 low = ((u64)1 << 48) - 1;
  return (u64)check << 48 | (element < low ? element : low);
}

/* Defines the meaning; slow. WEFT_ERROR only when memory was refused, a callee or math function has no definition,
 * or `*steps` (may be NULL) ran out: `why` (may be NULL) says which. */
WeftStatus loops_interp_kernel(const LoopFn *fn, const u64 *args, i64 lo, i64 hi, u64 *key, u64 *steps,
                               Buf *why) MUST_USE;
WeftStatus loops_interp_native(const LoopFn *fn, LoopCtx *ctx, const u64 *args, u32 *exit, u64 *steps,
                               Buf *why) MUST_USE;
WeftStatus loops_interp_math(const LoopFn *fn, const u64 *args, u64 *result, u64 *steps, Buf *why) MUST_USE;

/* ---- C text -------------------------------------------------------------------------------- */

/* Writes one function as gnu11 (compile with -ffp-contract=off -fno-math-errno): kernels and natives with the ABI
 * above under `symbol`, or lw_NAME when it is NULL; math functions always as `TYPE wm_NAME_TYPE(TYPE…)`.
 * loops_c_prelude comes first in the file, once; then loops_c_tables; then functions in the module's order.
 * `linkage` is "" or "static " or so. Math that the module does not define is called by its C name; the file must
 * declare it. */
void loops_c_prelude(Buf *out);
void loops_c_tables(const LoopModule *m, Buf *out);
/* error: memory refused */
WeftStatus loops_c(const LoopFn *fn, const char *symbol, const char *linkage, Buf *out) MUST_USE;

#endif
