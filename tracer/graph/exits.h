/* exits.h — hand-off format: how a region is left, and what has to be rebuilt then; what a region is to the
 * rooms that enter it, and what a backend is.
 * Described in docs/formats/exits.md.
 *
 * An exit names the frames to rebuild, outermost first, and per frame which registers hold what. Contents are
 * recipes: a pool of small immutable expressions over values of the graph, sources and constants; a recipe
 * used twice by one exit is built once. Recipes speak of graph values throughout; where a value lies when the
 * exit is taken (a slot), or that it has to be computed first, is the plan's business (RegionBind
 * below).
 *
 * The journal lists what the region has to write back: module variables, ref cells, host fields. It is a tree
 * of entries linked to their parents; an exit replays from the root to its own position, last write wins.
 *
 * Everything here is owned by the ExitTable and freed with it; constants hold no VM values. */
#ifndef WEFT_TRACER_EXITS_H
#define WEFT_TRACER_EXITS_H

#include "guards/guards.h"

typedef struct Graph Graph;
typedef u32 RecipeId;  /* 0: none */
typedef u32 JournalId; /* 0: the empty journal */

typedef enum RecipeKind {
  RCP_none,
  RCP_const,  /* constant */
  RCP_value,  /* ValueId `a` of the graph */
  RCP_complex, /* the complex number whose parts the values `a` and `b` are; constant = 1: it is weak */
  RCP_size,   /* weak i64 of a size expression */
  RCP_list,   /* items */
  RCP_record, /* keys and items */
  RCP_range,  /* items: start, stop, step */
  RCP_fn,     /* closure of `code`; items: captures. `a` = 1: member b of a group, the items are the group's */
  RCP_transform, /* `a` = TransformKind; items: inner, settings */
  RCP_source, /* the object that SourceId `a` names, unchanged */
  /* item 0, a tree of lists and records over `items` and ranges, up to the end of the shortest, as the list of such
   * trees of their items */
  RCP_zip,
  /* ValueId `a`, stacked along axis 0, as the list of its items; appended to list b if b. items: how many of them count
   * (absent: all). constant = 1: the numbers are weak, 2: they are those of texts */
  RCP_items,
  /* `a` = 0: the text of item 0 by the format spec item 1 (text or nil); 1: the items, texts, joined; 2: of the code
   * point that item 0 is; 3: of the code points in item 0, a list; 4: the text whose number item 0 is; 5: of the text
   * item 0 the part from character item 1 on, of item 2 characters; 6: the text item 0 from its end */
  RCP_text,
  /* item 0, a number, weak when each other item is a bool that is true, or an integer that is 0; or lists of such, the
   * flags bools */
  RCP_weak,
  RCP_option, /* item 1, a bool, true: item 0; else nil */
  RCP_item,   /* of item 0, a list, the item whose position (counted from 0, in bounds) item 1 is */
  RCP_split,  /* lists of item 2, a list: each from the place in item 0 on as many as item 1 says, lists of integers */
  /* a record: its keys are the characters whose code points item 0 lists, its items those of item 1, a list, at these
   * places */
  RCP_keyed,
  RCP_ref,    /* a ref that the region made; items: its content */
  RCP_arg,    /* of what a host node is given alone: its operand number `a`, the token not counted */
  RCP_COUNT
} RecipeKind;

/* A constant without a VM: what bytecode constants can be, plus strong numbers. */
typedef struct ExitConst {
  u8 kind;  /* ValueKind: V_NIL V_NUM V_TEXT V_DTYPE V_FN (builtin) V_HOLE */
  u8 dtype;
  bool weak;
  u32 len;          /* text bytes */
  const char *text; /* in the table's arena */
  u64 bits;         /* number's payload; builtin: OpId */
} ExitConst;

typedef struct Recipe {
  u8 kind;
  u32 a, b;
  u32 first, count; /* ExitTable.ids: items */
  u32 key_first;    /* record: ExitTable.names */
  Dim dim;          /* size */
  u32 constant;     /* const: ExitTable.consts */
  u32 weight;       /* recipes in it, counting repetitions: bounds the time of walks */
  u8 depth;
  u32 memo;         /* 1 + its place among those that are built once per exit; 0: a leaf, made each time */
  struct Code *code; /* fn: borrowed; guarded by id through the region's guards */
} Recipe;

typedef struct JournalEntry {
  JournalId parent;
  SourceId target; /* a global, or a ref (its content is written), or a host value */
  RecipeId ref;    /* target 0: a ref the region made */
  RecipeId value;
} JournalEntry;

typedef enum ExitKind { EXIT_return, EXIT_break, EXIT_check, EXIT_cold, EXIT_limit, EXIT_KIND_COUNT } ExitKind;

enum { REG_RESULT = 0xffff }; /* the frame returns this value instead of holding it */

typedef struct ExitReg {
  u16 reg;
  RecipeId recipe;
} ExitReg;

typedef struct ExitFrame {
  u32 frame;    /* Graph.frames: code, function, call site */
  u32 pc;       /* the instruction to run next; of an outer frame: its call instruction */
  u16 result;   /* register of the caller that takes the result (innermost but the first frame) */
  u16 flags;    /* vm.h FRAME_* */
  u32 tail_calls;
  RecipeId self; /* the function that runs; 0 for the region's own frame */
  u32 first, count; /* ExitTable.regs, sorted by register */
} ExitFrame;

typedef struct Exit {
  u8 kind;     /* ExitKind */
  u16 reason;  /* reasons.def: break, cold, limit */
  u16 check;   /* errors.def: check */
  JournalId journal;
  u32 frame_first, frame_count; /* ExitTable.frames */
  Span span;   /* what it exits for */
  u32 copy_of; /* 1 + the exit that this one is a copy of, with values that lie elsewhere (exit_copy); or 0 */
} Exit;

enum { EXIT_LEAVES = 256 };

typedef struct ExitTable {
  Allocator *alloc;
  Arena arena;
  VEC(Exit) exits;
  VEC(ExitFrame) frames;
  VEC(ExitReg) regs;
  VEC(Recipe) recipes;       /* entry 0 unused */
  VEC(JournalEntry) journal; /* entry 0 unused */
  VEC(u32) ids;
  VEC(Name) names;
  VEC(ExitConst) consts;
  u32 memos;                 /* recipes that are built once per exit, at most */
  u32 leaves[EXIT_LEAVES];   /* recipes by what they are, the last of each slot; may be gone */
  bool sized;  /* there has been a recipe of a size */
  bool failed; /* memory was refused */
} ExitTable;

typedef struct ExitMark {
  u32 exits, frames, regs, recipes, journal, ids, names, consts;
} ExitMark;

void exits_init(ExitTable *t, Allocator *alloc);
void exits_free(ExitTable *t);
ExitMark exits_mark(const ExitTable *t);
void exits_rollback(ExitTable *t, ExitMark m);

/* How a text is put together of the items of its recipe. */
typedef enum TextForm {
  TEXT_formatted, /* a value by a format spec, which is a text or nil */
  TEXT_joined,    /* texts one behind the other */
  TEXT_character, /* of a code point */
  TEXT_points,    /* of the code points that a list holds */
  TEXT_numbered,  /* the one that has this number in the VM (text_number) */
  TEXT_part,      /* of a text: where it begins, how many characters it has */
  TEXT_reversed,  /* a text from its end */
} TextForm;

/* What the numbers of a list of numbers are to the program. */
typedef enum ItemForm { ITEMS_strong, ITEMS_weak, ITEMS_texts } ItemForm;

enum { ZIP_LEAVES = ROW_LEAVES };
enum { RECIPE_MAX_DEPTH = 64, RECIPE_MAX_WEIGHT = 1 << 16 };

/* Recipes: equal const, value, size and source recipes are shared. 0 when memory was refused (`failed`), a part is
 * 0, or the recipe would exceed the limits above (the tracer then breaks). A recipe's parts are older than it. */
RecipeId recipe_const(ExitTable *t, Value v); /* V_NIL V_NUM V_TEXT V_DTYPE V_HOLE, builtin V_FN; else 0 */
RecipeId recipe_exit_const(ExitTable *t, ExitConst c); /* copies the text */
RecipeId recipe_value(ExitTable *t, u32 value);
RecipeId recipe_complex(ExitTable *t, u32 re, u32 im, bool weak);
RecipeId recipe_size(ExitTable *t, Dim d);
RecipeId recipe_source(ExitTable *t, SourceId s);
RecipeId recipe_arg(ExitTable *t, u32 number);
RecipeId recipe_list(ExitTable *t, const RecipeId *items, u32 count);
RecipeId recipe_record(ExitTable *t, const Name *keys, const RecipeId *items, u32 count);
RecipeId recipe_range(ExitTable *t, RecipeId start, RecipeId stop, RecipeId step);
RecipeId recipe_weak(ExitTable *t, RecipeId number, RecipeId flag);
RecipeId recipe_weak_all(ExitTable *t, const RecipeId *ids, u32 count); /* the number, then what has to hold */
RecipeId recipe_option(ExitTable *t, RecipeId value, RecipeId there);
RecipeId recipe_item(ExitTable *t, RecipeId list, RecipeId at);
RecipeId recipe_split(ExitTable *t, const RecipeId parts[3]);
RecipeId recipe_keyed(ExitTable *t, const RecipeId parts[2]);
RecipeId recipe_zip(ExitTable *t, RecipeId tree);
RecipeId recipe_text(ExitTable *t, TextForm how, const RecipeId *items, u32 count);
RecipeId recipe_fn(ExitTable *t, struct Code *code, const RecipeId *captures, u32 count);
RecipeId recipe_group_fn(ExitTable *t, struct Code *code, u32 member, const RecipeId *members_captures, u32 count);
RecipeId recipe_transform(ExitTable *t, u32 transform, RecipeId inner, RecipeId settings);
/* before: the list it was appended to, or 0; count: the number of items, or 0 */
RecipeId recipe_items(ExitTable *t, u32 value, RecipeId before, RecipeId count, ItemForm form);
RecipeId recipe_ref(ExitTable *t, RecipeId content); /* each call is a new identity */

JournalId journal_write(ExitTable *t, JournalId parent, SourceId target, RecipeId made_ref, RecipeId value);
/* Entries from the root to `at`, oldest first, into `out` (room for journal_depth). */
u32 journal_depth(const ExitTable *t, JournalId at);
void journal_path(const ExitTable *t, JournalId at, JournalId *out);
/* The entry that says what is written to the target; 0: none. */
JournalId journal_last(const ExitTable *t, JournalId at, SourceId target);

/* Exits: begin, then one frame after the other outermost first, each with its registers; a new exit_begin ends the
 * one before. exit_begin gives the number, NO_EXIT when memory was refused; the others are false then, when they are
 * called out of this order, or for recipe 0. */
u32 exit_begin(ExitTable *t, ExitKind kind, u32 reason_or_check, JournalId journal, Span span);
bool exit_frame(ExitTable *t, u32 exit, u32 frame, u32 pc, u16 result, u16 flags, u32 tail_calls, RecipeId self);
bool exit_reg(ExitTable *t, u32 exit, u16 reg, RecipeId recipe); /* of the frame added last */

/* Every value of the graph that the exit (its registers, selves and journal) needs; `each` may see one twice. */
void exit_values(const ExitTable *t, u32 exit, void (*each)(void *ctx, u32 value), void *ctx);
/* Likewise, with the recipe that says how many of its items are read, from the first on; 0: all of it is. */
void exit_counted(const ExitTable *t, u32 exit, void (*each)(void *ctx, u32 value, RecipeId count), void *ctx);
/* Every size expression likewise. */
void exit_sizes(const ExitTable *t, u32 exit, void (*each)(void *ctx, Dim d), void *ctx);
/* Does some exit read the source anew? */
bool exits_read(const ExitTable *t, SourceId source);
/* A copy of an exit with values renamed by map (map[v] == 0: v stays); the exit itself when none of its values
 * are renamed. UINT32_MAX when memory was refused. */
u32 exit_clone_sized(ExitTable *t, u32 exit, const u32 *map, u32 count, Dim (*size)(void *ctx, Dim d), void *ctx);
u32 exit_clone(ExitTable *t, u32 exit, const u32 *map, u32 count);
/* An exit of its own that says the same. NO_EXIT: memory was refused. */
u32 exit_copy(ExitTable *t, u32 exit);
static inline u32 exit_original(const ExitTable *t, u32 exit) {
  return exit < t->exits.count && t->exits.data[exit].copy_of ? t->exits.data[exit].copy_of - 1 : exit;
}
/* Renames the values of all recipes (passes that replace values); map[v] == 0 leaves v. */
void exits_remap(ExitTable *t, const u32 *map, u32 count);

typedef struct RecipeMade {
  Value value;
  u32 memo;
} RecipeMade;

/* Builds values from recipes after a region was left: each recipe once, graph values through `value`. */
typedef struct RecipeBuild {
  Vm *vm;
  const Graph *graph;
  const Frame *frame; /* the frame that entered the region, still as it was: RCP_source reads it */
  WeftStatus (*value)(void *ctx, u32 value, Value *out); /* owned. For a host node: operand number `value` */
  WeftStatus (*size)(void *ctx, Dim d, i64 *out);
  void *ctx;
  RecipeMade few[12]; /* what was made, in an exit that makes no more */
  u32 used;
  Value *made;        /* else of all recipes of the graph, by Recipe.memo; V_HOLE: not yet */
  bool packs; /* what is built now may be a packed list (vm/packed.h) */
} RecipeBuild;
/* value, size, ctx are set by the caller */
WeftStatus build_init(RecipeBuild *b, Vm *vm, const Graph *g, const Frame *f) MUST_USE;
void build_free(RecipeBuild *b);
WeftStatus build_recipe(RecipeBuild *b, RecipeId r, Value *out) MUST_USE; /* *out owned */
/* of recipes that are more than a value, a size or a source */
WeftStatus build_parts(RecipeBuild *b, const Recipe *r, Value *out) MUST_USE;

/* ---- regions and backends ------------------------------------------------------------------------- */

#define NO_EXIT UINT32_MAX
#define BIND_NODE UINT32_MAX /* the value is not in a slot: the graph interpreter computes it (run_value) */

/* Where a value that an exit needs lies when that exit is taken. */
typedef struct RegionBind {
  u32 value; /* ValueId */
  u32 slot;  /* or BIND_NODE */
} RegionBind;

typedef struct RegionExit {
  u32 bind_first, bind_count; /* Region.binds */
  u64 taken;
  u64 failures; /* checks: times eager found nothing wrong */
  u8 quick;     /* the tracer's: 1 returns one value that lies in a slot, 2 does not, 0 not looked at yet */
  u32 slot;     /* quick: that slot, and the value but for its bits */
  Value returned;
  void *link;   /* the tracer's: continuation entered here */
} RegionExit;

/* A compiled piece of code: graph, compiled form, exits, counters. Owned by a GuardCache entry.
 *
 * Slots are 8 bytes each, on the VM's stack: input i of the graph's GuardSet in slot i, then the backend's.
 * What a slot holds follows from the type of its value: rank 0 on the CPU (not c128) the payload bits as in
 * Value, else an Array *. `run` gets the inputs filled and the rest zero, and returns
 *   WEFT_OK     *exit is taken: every bound slot of it is filled; slots of arrays own one count each (inputs
 *               only when donated). All other counts are given up.
 *   WEFT_ERROR  fuel, deadline, interrupt or memory: the error stands in the VM; *exit tells the state to
 *               restore before it is raised. */
typedef struct Region Region;
typedef struct Backend Backend;

/* A kernel of a region, and what its runs did while profiles were asked for. */
typedef struct KernelProfile {
  const char *name;
  u64 runs, trips, bytes, flops;
  u64 written; /* of the bytes */
  u64 ns;
  u32 node; /* NodeId of the first operation in it, 0: not known */
  u32 nodes; /* operations in it */
} KernelProfile;
struct Region {
  u64 id;
  const char *name;  /* the graph's */
  Graph *graph;      /* owned; exits, sizes and nodes are needed to leave */
  const Backend *backend;
  const GuardProg *guards; /* borrowed from the cache entry */
  void *code;        /* the backend's; jit: Plan * */
  void *host;        /* of a backend that the host registered (api/backends.c) */
  u32 nslots;
  WeftStatus (*run)(Vm *vm, Region *r, u64 *slots, u32 *exit);
  WeftStatus (*checked)(Vm *vm, Region *r, u64 *slots, u32 *exit); /* verify: what `run` compares with the graph */
  void (*print)(const Region *r, Buf *out); /* the compiled form as text */
  void (*destroy)(Vm *vm, Region *r);       /* frees `code` */
  bool (*kernel)(const Region *r, u32 index, KernelProfile *out); /* false: there is none of that number. May be NULL */
  RegionExit *exits; /* parallel to graph->exits.exits */
  u32 exit_count;
  RegionBind *binds;
  u32 bind_count, bind_cap;
  u64 *codes;        /* ids of the codes it runs (inlined ones too) */
  u32 code_count;
  u64 entered, compile_ns;
  u64 run_ns;        /* estimated from the runs that were timed */
  u64 last_ns;       /* of the last run that was timed */
  u64 least_ns;      /* to find its entry, run and leave it, at least; 0: not timed */
  u64 packed;        /* elements of lists and texts, at all entries */
  u64 eager_ns;      /* what its operations cost the interpreter, about; 0: more than can be told */
  u64 bytes;         /* of generated code and plan */
  u32 kernels, natives, externs;
};
/* consumes g, also when it fails; exits counted, binds empty. NULL when refused */
Region *region_new(Vm *vm, Graph *g);
void region_free(Vm *vm, Region *r);
/* each exit once, in any order */
bool region_bind(Vm *vm, Region *r, u32 exit, const RegionBind *binds, u32 count) MUST_USE;

typedef enum BackendResult {
  BACKEND_ok,
  BACKEND_restart,     /* trace again: an assumption was too narrow (reason) */
  BACKEND_skip,        /* not worth compiling */
  BACKEND_unsupported, /* something in it does not lower (reason names it) */
  BACKEND_fatal,       /* memory was refused, or a defect: this location stays eager */
} BackendResult;

typedef struct CompileLimits {
  u32 nodes;      /* at most that many */
  u64 ns;         /* about that long */
  u64 (*clock)(void *context); /* by which that is counted, nanoseconds; NULL: vm_clock */
  void *clock_context;
  bool forced;    /* jit(f), explain: heat and cost do not matter */
  bool exact;     /* code leaves where the graph does: not earlier, at an exit that it has passed */
  u8 device;
} CompileLimits;

struct Backend {
  const char *name; /* WEFT_BACKEND */
  /* Fills code, nslots, run, print, destroy, binds and counters of the region, whose graph it may rewrite.
   * When it says no, `why` holds a line for the user and the region is freed by the caller. */
  BackendResult (*compile)(Vm *vm, const Backend *self, Region *r, const CompileLimits *limits, Buf *why);
  void *state;
  bool hosts;   /* the host registered it: what it refuses counts as a warning, as it is news to the host */
  bool weighed; /* its regions are meant to be fast: those that the interpreter would beat are given up */
  void (*remove)(Vm *vm, const Backend *self); /* the VM ends; its regions are gone. May be NULL */
};

#endif
