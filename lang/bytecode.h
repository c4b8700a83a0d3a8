/* bytecode.h — hand-off format: compiled functions. Immutable once built, shared by all that run them.
 * Described in docs/formats/bytecode.md.
 *
 * Instruction, 64 bits: op u8 | flags u8 | a u16 | b u16 | c u16. An operand of kind "k" is a register, or
 * a constant when its top bit is set. b:c together hold a wide number or a jump target.
 * Flags: bit 0 "b dies here", bit 1 "c dies here", bit 2 "a dies here" (where a is read), bit 3 METHOD.
 * A dying operand is moved out of its register, which then reads as empty. When b and c are the same register only
 * c is flagged. Runs of consecutive registers (arguments, items, keys and values) always die.
 * Every pc is a legal entry and exit: an instruction that fails leaves its operands as they were (a call that fails
 * may have consumed its arguments). Registers are empty when a frame begins. */
#ifndef WEFT_LANG_BYTECODE_H
#define WEFT_LANG_BYTECODE_H

#include "lang/dtypes.h"
#include "lang/errors.h"
#include "parser/base.h"

typedef u64 Ins;

typedef enum BcOp {
#define BC(name, form, effects, meaning) BC_##name,
#include "lang/bytecode.def"
#undef BC
  BC_COUNT
} BcOp;

enum { INS_B_DIES = 1, INS_C_DIES = 2, INS_A_DIES = 4, INS_METHOD = 8 };
enum { INS_CONST = 0x8000, MAX_REGISTERS = 0x7fff, MAX_CONSTS = 0x8000 };

static inline u32 ins_op(Ins i) { return (u8)i; }
static inline u32 ins_flags(Ins i) { return (u8)(i >> 8); }
static inline u32 ins_a(Ins i) { return (u16)(i >> 16); }
static inline u32 ins_b(Ins i) { return (u16)(i >> 32); }
static inline u32 ins_c(Ins i) { return (u16)(i >> 48); }
static inline u32 ins_x(Ins i) { return (u32)(i >> 32); }
static inline Ins ins_make(u32 op, u32 flags, u32 a, u32 b, u32 c) {
  return (Ins)op | (Ins)flags << 8 | (Ins)(u16)a << 16 | (Ins)(u16)b << 32 | (Ins)(u16)c << 48;
}
static inline Ins ins_make_x(u32 op, u32 flags, u32 a, u32 x) {
  return (Ins)op | (Ins)flags << 8 | (Ins)(u16)a << 16 | (Ins)x << 32;
}

typedef struct BcInfo {
  const char *name, *form, *effects, *meaning;
} BcInfo;
extern const BcInfo bc_info[BC_COUNT];

/* What an instruction reads and writes, descriptors and captures included. */
typedef struct InsUse {
  u32 reads[3], nreads;     /* single registers, in the order a, b, c */
  u32 run, run_count;       /* consecutive registers that are read and die */
  u32 write, write_count;   /* consecutive registers written; where an instruction may jump as well, on the
                               fall-through edge only */
  bool write_next;          /* fornext: register write + 2 (the item) is written too */
  const struct Capture *captures; /* closure, group: CAP_REGISTER entries are read */
  u32 ncaptures;
  const struct Desc *dims;  /* checkarg: dim_regs that it compares with are read */
} InsUse;

/* ---- constants ------------------------------------------------------------------------------ */

typedef enum ConstKind { CK_NIL, CK_BOOL, CK_INT /* weak */, CK_FLOAT /* weak */,
                         CK_IMAG /* weak c128, its imaginary part */, CK_TEXT, CK_BUILTIN /* OpId */,
                         CK_DTYPE, CK_MODULE /* of op_modules */, CK_HOLE, CK_U64 } ConstKind;

typedef struct Const {
  u8 kind;
  u32 len; /* CK_TEXT: bytes */
  union {
    i64 i; /* CK_BOOL, CK_INT, CK_U64, CK_BUILTIN, CK_DTYPE, CK_MODULE; else 0 */
    f64 f;
    const char *text;
  };
} Const;

/* ---- descriptors ---------------------------------------------------------------------------- */

typedef enum IndexItemKind {
  IX_VALUE,    /* one register: integer, array, mask, range, text key */
  IX_SLICE,    /* three registers: start, stop, step (nil when absent) */
  IX_NEWAXIS,  /* none */
  IX_ELLIPSIS, /* none */
} IndexItemKind;

typedef enum DescKind { DESC_NAME, DESC_KEYS, DESC_CALL, DESC_INDEX, DESC_PATH, DESC_UNPACK, DESC_ANNOT } DescKind;

typedef enum PathStepKind { STEP_FIELD, STEP_INDEX } PathStepKind;
typedef struct PathStep {
  u8 kind;
  Name field;                 /* STEP_FIELD */
  u32 item_first, item_count; /* STEP_INDEX: into Desc.items (IndexItemKind each) */
} PathStep;

enum {
  ROOT_REGISTER, /* register a is the variable: read, updated, rebound */
  ROOT_MODULE,   /* module slot `root_slot` is; register a is unused */
  ROOT_FIXED,    /* register a is no variable (a captured value, a call's result): only read. The path must pass
                    through a ref, else a type error says that a captured variable cannot be assigned: ref */
};

typedef struct Desc {
  u8 kind; /* DescKind */
  /* NAME: name. KEYS: names[name_count] */
  Name name;
  u32 name_count;
  const Name *names;
  /* CALL: argc registers after the function; arg_names[i] = 0 positional, else the keyword; spread[i] */
  u32 argc;
  const u8 *spread;
  /* INDEX and PATH: items in order */
  u32 item_count;
  const u8 *items;
  /* PATH: steps; op = BcOp of a compound assignment, or BC_move for plain; root.
   * A path that passes through `.value` of a ref changes the cell from there on, and rebinds nothing. */
  u32 step_count;
  const PathStep *steps;
  u8 op;
  u8 root; /* ROOT_* */
  u32 root_slot; /* module slot when root is ROOT_MODULE */
  /* UNPACK of a list or array: `before` parts, then the rest when has_rest, then `after` parts;
   * of a record: names (and the rest as a record when has_rest) */
  u32 before, after;
  bool has_rest;
  /* ANNOT: type name (dtype, text, list, record, range, fn …; 0 any), dims: rank, per axis a constant, a
   * name that is bound here, or a name bound before. A dtype without dims means rank 0. */
  Name type_name;
  u8 dtype;   /* DT_NONE when it is no dtype */
  bool has_dims;
  u32 rank;
  const i64 *dim_consts; /* >= 0 a constant, -1 a name, -2 any size */
  const Name *dim_names;
  const u16 *dim_regs;   /* register of the name: a size, or an earlier parameter */
  const u8 *dim_binds;   /* 1: this occurrence binds, 0: compares (also with one bound earlier in this list) */
  Name param;            /* for the error text */
} Desc;

/* ---- extents -------------------------------------------------------------------------------- */

typedef enum ExtentKind { EXT_FN, EXT_IF, EXT_WHILE, EXT_FOR, EXT_TRY } ExtentKind;

/* Properly nested, parents before children, in the order of begin.
 * IF: begin = its jump (jnot, jif, jgiven), head = begin + 1 = the arm that falls through, els = first pc of the
 * other arm (== end when there is none). and, or, chained comparisons and parameter defaults are IF extents.
 * Loops: begin = forprep, or the condition; head = pc that `loop` jumps to (condition or fornext); els = pc of the
 * one `loop` instruction, to which `continue` goes; end = els + 1, to which `break` goes.
 * TRY: body [begin, head), handler [head, end): an error raised inside the body, when it can be caught, continues at
 * head, after the registers that are not live there were emptied.
 * Jumps go to els or end of an extent around them; `loop` goes to head. */
typedef struct Extent {
  u8 kind;
  u32 begin, head, els, end; /* pcs; end is exclusive */
  u32 parent;                /* index, UINT32_MAX for the function itself */
  u32 write_first, write_count; /* into Proto.writes, sorted: registers, then module slots with WRITE_MODULE */
} Extent;
#define WRITE_MODULE 0x80000000u

/* ---- functions ------------------------------------------------------------------------------ */

/* sites[0] is the function's entry (pc 0). The others are sorted by pc and have distinct pcs; that of a loop is at
 * its `loop` instruction, that of a branch at jif or jnot, module accesses at getmod, setmod, setpath. */
typedef enum SiteKind { SITE_ENTRY, SITE_LOOP, SITE_BRANCH, SITE_CALL, SITE_MODULE } SiteKind;
typedef struct Site {
  u8 kind;
  u32 pc;
} Site;

/* Members of a group have equal capture lists, since they share one environment. */
typedef enum CaptureKind { CAP_REGISTER, CAP_CAPTURE, CAP_GROUP } CaptureKind;
typedef struct Capture {
  u8 kind;
  u16 index; /* register or capture of the enclosing function, or index in its group */
  Name name;
} Capture;

typedef struct Param {
  Name name;          /* 0 for a pattern parameter */
  bool has_default;   /* the body begins with jgiven over the code of the default */
  bool keyword_only;  /* stands after ...rest */
  const char *initial; /* the default as it is written; NULL where that is long, or was not stored */
} Param;

/* Where a variable lies. For messages: from the place in the source where it is declared, until the register's next.
 * For who looks at frames: it is in scope from one pc on until before another. */
typedef struct LocalName {
  Name name;
  u32 reg;
  u32 at;          /* byte in the source; 0: from the beginning */
  u32 from, until; /* pcs */
} LocalName;

typedef struct Proto Proto;
struct Proto {
  u32 refs;
  Name name;            /* 0 for a lambda */
  Span span;            /* of the whole function */
  const char *doc;      /* "##" lines, or NULL */
  Param *params;        /* parameters are registers 0 … nparams-1, the rest list included at rest_index */
  u32 nparams;
  u32 npositional;      /* parameters before ...rest */
  i32 rest_index;       /* -1 without rest */
  u32 nregs;
  Ins *code;
  Span *spans;          /* parallel to code */
  u32 ncode;
  Const *consts;
  u32 nconsts;
  Desc *descs;
  u32 ndescs;
  Extent *extents;      /* extents[0] is EXT_FN */
  u32 nextents;
  u32 *writes;
  u32 nwrites;
  Capture *captures;    /* of a closure: copied into its Env in this order */
  u32 ncaptures;
  LocalName *locals;    /* in the order of the source; none where they were not stored */
  u32 nlocals;
  Proto **protos;       /* functions made inside, owned */
  u32 nprotos;
  u32 group_index;      /* position in its group */
  u32 group_size;       /* 1 for a lone function or lambda */
  Proto **group;        /* members of its group (borrowed: they are siblings in the parent's protos) */
  Site *sites;          /* the entry, then sorted by pc */
  u32 nsites;
  u16 op;               /* OpId of the operation whose body it is (vm/library.c), 0: none */
  u16 owner;            /* OpId of the operation in whose body it is made, such as `pdf` of stats.normal, 0: none */
  bool library;         /* of the standard library: errors name the program's call, the trace this function's line */
  /* made by the VM to stand around a call (vm_caller): errors, traces and spans look through it */
  bool hidden;
  u32 file;
  Arena arena;          /* everything above lies here */
};

void proto_drop(Proto *p); /* consumes one count; frees children */

/* The name of what register r holds before pc, 0: none that is known. */
Name proto_local(const Proto *p, u32 r, u32 pc);

void ins_uses(const Proto *p, u32 pc, InsUse *out);
bool ins_reads_dim(const InsUse *u, u32 i); /* checkarg: is the register of dimension i read, not bound here? */
bool ins_jumps(Ins i, u32 *target); /* has it a jump target (loop included)? */

/* Liveness of a whole function (lang/live.c): a register is live before a pc when its value may still be read. Edges
 * into handlers are included. Made by one backward pass, then read by pc. */
typedef struct Liveness Liveness;
Liveness *liveness_new(const Proto *p, Allocator *alloc); /* NULL when refused */
void liveness_free(Liveness *l);
u32 liveness_words(const Liveness *l); /* u64 words of a set */
void liveness_at(const Liveness *l, u32 pc, u64 *bits); /* live before pc, before the instruction began */
/* while a call at pc runs: what is read when it has returned or failed */
void liveness_behind(const Liveness *l, u32 pc, u32 result, u64 *bits);

/* All pcs from the last to the first. `after`: live behind pc on the edges it takes when it does not fail. */
typedef struct LiveWalk {
  const Liveness *l;
  u32 pc;
  u64 *bits, *after;
} LiveWalk;
void liveness_walk(const Liveness *l, LiveWalk *w, u64 *after, u64 *scratch); /* two sets */
bool liveness_back(LiveWalk *w); /* false: there was no further pc */

/* The same for one pc: a bit set of (nregs + 63) / 64 words; false when memory was refused. */
int site_kind(const Proto *p, u32 pc); /* SiteKind of the instruction, -1: none */
bool proto_sites(Proto *p) MUST_USE; /* makes the table of sites from the code; false when memory was refused */
/* Makes the lists of what extents write, `writes` of the function, from the code and its extents, which are sound. */
bool proto_writes(Proto *p, Allocator *alloc) MUST_USE;
bool proto_live(const Proto *p, u32 pc, u64 *bits, Allocator *scratch) MUST_USE;
u32 proto_extent_at(const Proto *p, u32 pc);          /* innermost extent */
const Site *proto_site_at(const Proto *p, u32 pc);    /* never the entry; NULL when there is none */

/* Top-level names of one module and their slots. Grows while a REPL adds to it; slots never move. */
typedef struct ModuleScope {
  Allocator *alloc;
  VEC(Name) slots;   /* slot -> name */
  u32 *index;        /* open addressing on Name; slot+1 */
  u32 index_count;
  VEC(u8) flags;     /* MODVAR_* */
} ModuleScope;
enum {
  MODVAR_DECLARED = 1, /* by let, fn or import in this module */
  MODVAR_BUILTIN = 2,  /* pre-filled with the built-in of this name, nothing declared it (yet) */
  MODVAR_GIVEN = 8,    /* beside DECLARED, while a text is compiled to be stored: not the text declares it */
};
/* The names bound in every module unless shadowed: operations without a module, dtypes, constants, modules. */
typedef enum BuiltinKind { BUILTIN_NONE, BUILTIN_OP /* OpId */, BUILTIN_DTYPE /* DType */,
                           BUILTIN_CONST /* 0 pi, 1 inf, 2 nan */, BUILTIN_MODULE } BuiltinKind;
typedef struct Builtin {
  u8 kind; /* BuiltinKind */
  u16 id;
  const char *name;
} Builtin;
Builtin builtin_find(const char *s, size_t len); /* kind BUILTIN_NONE when there is none */
u32 builtin_count(void);
Builtin builtin_at(u32 i);

bool scope_find(const ModuleScope *s, Name name, u32 *slot);
bool scope_add(ModuleScope *s, Name name, u32 *slot) MUST_USE; /* finds or adds */
/* what a name that is not declared may be a slip for; NULL: nothing */
const char *scope_nearest(const ModuleScope *s, const Names *names, Name name);
const char *scope_in_module(const char *name, size_t len); /* `linalg.inv` of `inv`; NULL: no standard module has it */
void scope_free(ModuleScope *s);

#endif
