/* guards.h — hand-off format: where values come from (sources), what a region relies on (guards), and the
 * compiled walk that checks guards and fills the region's input slots in one pass, without allocation.
 * Described in docs/formats/guards.md.
 *
 * While tracing, a GuardSet collects sources, guards and inputs; each source exists once, so the same source
 * read twice is one input. `guard_compile` turns it into a GuardProg, which owns all it needs (no pointer
 * into the set, no user data: texts are copied, record shapes counted). A guard that fails never raises.
 *
 * What the recorder must do:
 *  - before it relies on a property of a sourced value, add the guard; before it descends to a part, add the
 *    guard that makes the descent safe (`tag` before .size, `shape` before .field, `len` before [item],
 *    `code` before .capture and .inner). guard_compile orders reads after such guards and refuses otherwise;
 *  - relations between sizes go through guard_relation, which also tells the SizePool. */
#ifndef WEFT_GUARDS_GUARDS_H
#define WEFT_GUARDS_GUARDS_H

#include "guards/sizes.h"
#include "vm/vm.h"

/* ---- sources ------------------------------------------------------------------------------------ */

typedef u32 SourceId; /* 0: none */

typedef enum SourceKind {
#define SOURCE(name, form, meaning) SRC_##name,
#include "guards/guards.def"
  SRC_COUNT
} SourceKind;

typedef struct Source {
  u8 kind;
  SourceId parent; /* 0 for roots */
  u32 index;       /* argument, register, capture, slot, Name of a field, item, axis, host id */
  u32 module;      /* global: index into SourceTree.modules */
  const char *label; /* of this step: "arg0", ".w", "[2]", "global \"k\"" */
  SourceId part, next; /* the last step from it; the step from its parent that came before. Roots: steps from entry 0 */
  u32 guards;      /* 1 + its last guard; 0: none */
} Source;

typedef struct SourceTree {
  Allocator *alloc;
  Arena arena;
  VEC(Source) items; /* entry 0: what has no parent, and guards of no source */
  VEC(struct Module *) modules; /* borrowed: the VM keeps modules; NULL after parsing text */
} SourceTree;

/* ---- guards ------------------------------------------------------------------------------------- */

typedef enum GuardKind {
#define GUARD(name, cost, meaning) GUARD_##name,
#include "guards/guards.def"
  GUARD_COUNT
} GuardKind;

/* Checks a value on a host's behalf; must not allocate, raise or change anything. */
typedef bool (*GuardHostFn)(void *ctx, Value v, u64 data);

typedef struct Guard {
  u8 kind;
  u8 rel;         /* size, len: SizeRel; ident: REL_eq or REL_ne; shape: 1 when all keys count, 0 the one read */
  u8 value_kind;  /* const: ValueKind of the constant; code: FnKind */
  SourceId source, second; /* second: ident */
  Dim a, b;       /* size */
  u64 word;       /* tag: expected word. const: payload. code: Code.id, OpId, transform. len: length.
                     cell: version. ambient: word. host: data */
  u64 mask;       /* tag: bits that count. const: the value's first word */
  const char *text; /* const of a text: its bytes; code: name for messages */
  u32 text_len;
  const Name *keys; /* shape: keys in order (all) or those read */
  u32 key_count;
  Shape *shape;   /* shape: borrowed while tracing, counted by the program; NULL when not interned */
  void *pointer;  /* code of a host function: its HostFn */
  GuardHostFn host;
  void *host_ctx;
  Span because;   /* what needed it */
  const char *what; /* name of the operation there ("matmul"), or NULL */
  SourceId subject; /* compiled: what a trace may leave open instead of relying on it; 0: none */
  u32 failures;   /* carried over from programs it replaced: orders the checks */
  u32 next;       /* 1 + the guard of its source that came before; 0: none */
} Guard;

/* What a source delivers into an input slot (8 bytes). Input i of the set lies in slot i of the region. */
typedef enum InputForm {
  IN_array,  /* Array *, borrowed, or owned when `donate` and the walk has passed */
  IN_scalar, /* payload bits of a V_NUM */
  IN_size,   /* i64: a dimension, an integer scalar, or a range's part */
  IN_object, /* Obj * of any other counted value, borrowed */
  /* Array *, owned: the numbers of a list, or of one column of it, the code points of a text (i64), in an array of 2 *
   * their count + ROWS_ROOM elements */
  IN_rows,
} InputForm;

/* an item of a tree takes so many times longer to pack than a number */
enum { ROWS_ROOM = 64, ROWS_MOST = 1 << 28, ROWS_DEEP = 8 };

typedef struct GuardInput {
  SourceId source;
  u8 form;     /* InputForm */
  bool donate; /* roots arg and reg: the register dies here, so its count moves into the slot. rows: always */
  /* rows: they lay in columns when this was recorded; of a list that keeps them once they are made */
  bool given, keeps;
  u32 sym;     /* IN_size: the symbol it feeds (SizeSym index), else UINT32_MAX */
} GuardInput;

typedef struct GuardSet {
  Allocator *alloc;
  SourceTree sources;
  VEC(Guard) guards;
  VEC(GuardInput) inputs; /* each (source, form) once */
  /* Reads what `host` roots name; borrowed. Must not allocate or raise. NULL: there are none. */
  bool (*host_read)(Vm *vm, u32 id, Value *out);
  Switches switches; /* the VM's */
  const Code *code; /* of the frame that is entered, for the names in messages; NULL: arg0, reg3 */
  Names *names; /* borrowed; may be NULL */
  u32 pc;
  bool failed; /* memory was refused */
} GuardSet;

typedef struct GuardMark {
  u32 sources, modules, guards, inputs;
} GuardMark;

void guards_init(GuardSet *g, Allocator *alloc); /* allocates nothing */
void guards_free(GuardSet *g);
GuardMark guards_mark(const GuardSet *g);
void guards_rollback(GuardSet *g, GuardMark m);

/* Sources: found or made; 0 when memory was refused. */
SourceId source_root(GuardSet *g, SourceKind kind, u32 index);
SourceId source_global(GuardSet *g, struct Module *m, u32 slot, const char *name);
SourceId source_step(GuardSet *g, SourceId parent, SourceKind kind, u32 index, const char *name); /* name: .field */
void source_print(const GuardSet *g, SourceId s, Buf *out); /* `arg0.w[2]`, `size(arg0, 1)`, `global "k"` */
void source_say(const GuardSet *g, SourceId s, Buf *out); /* as the program says it: `params.w[2]`, `size(x, 1)`, `k` */
/* The value a source names, from a frame as it is now (borrowed; for exits, journals and tests). Sizes and
 * range parts come as weak i64. False: the path no longer exists. */
bool source_read(Vm *vm, const GuardSet *g, const Frame *f, SourceId s, Value *out);

/* Inputs: found or made; returns the index, UINT32_MAX when memory was refused. */
u32 guard_input(GuardSet *g, SourceId s, InputForm form);

/* Guards. Equal ones are kept once. False when memory was refused (or the relation cannot hold). */
/* the type of v, and its layout class if asked */
bool guard_tag(GuardSet *g, SourceId s, Value v, bool layout, Span because);
bool guard_const(GuardSet *g, SourceId s, Value v, Span because); /* nil, number, text, dtype, module, builtin */
bool guard_code(GuardSet *g, SourceId s, const Fn *fn, Span because);
bool guard_len(GuardSet *g, SourceId s, SizeRel rel, u64 n, Span because); /* lists; REL_eq or REL_le: at least n */
/* a list of numbers of the kind of item, or of trees like it; of a text: a text of ASCII alone */
bool guard_rows(GuardSet *g, SourceId s, Value item, Span because);
/* all keys in order, or this one */
bool guard_shape(GuardSet *g, SourceId s, const Record *r, bool all, Name key, Span because);
bool guard_cell(GuardSet *g, SourceId global, Span because); /* the slot's version as it is now */
bool guard_ambient(GuardSet *g, u64 word, Span because);
/* refs and handles: one object or two */
bool guard_ident(GuardSet *g, SourceId a, SourceId b, bool same, Span because);
bool guard_host(GuardSet *g, SourceId s, GuardHostFn fn, void *ctx, u64 data, Span because);
/* A relation over backed symbols. Proved ones add nothing; the SizePool learns it. */
bool guard_relation(GuardSet *g, SizePool *p, SizeRel rel, Dim a, Dim b, const char *what, Span because);

/* the step of a range goes up or down, or is 1, as it is now */
bool range_step_sign(GuardSet *g, SizePool *p, Dim step, i64 now, Span because);

/* ---- sizes while tracing ------------------------------------------------------------------------- */

/* The DimCtx of a trace: decides by proof, then by hints and a guard; for unbacked sizes by a check, which
 * `emit_check` adds to the graph (NULL: unbacked questions answer no). `failed` becomes true when memory was
 * refused or an expression got too large. */
typedef struct GuardDims {
  DimCtx base;
  GuardSet *set; /* NULL: proofs only, nothing is recorded (verifier, graph rewrites) */
  SizePool *sizes;
  const char *what;
  Span because;
  bool (*emit_check)(void *ctx, Dim a, Dim b);
  void *check_ctx;
  bool exact;  /* a no is guarded too: for rules whose result depends on it (squeeze without axes) */
  bool failed;
  bool unknown; /* the rule asks what is known at run time only: its answer does not count */
} GuardDims;
void guard_dims_init(GuardDims *d, GuardSet *set, SizePool *sizes, const char *what, Span because);

/* ---- compiled guards ------------------------------------------------------------------------------ */

typedef struct GuardProg GuardProg;

/* Orders reads and checks by cost and failures. Sizes are compiled, so the pool may go afterwards. NULL:
 * memory was refused, or a source is read without a guard that makes it safe (`*bad` names it, else 0). */
GuardProg *guard_compile(Vm *vm, const GuardSet *g, const SizePool *p, SourceId *bad);
void guard_prog_free(Vm *vm, GuardProg *p);
u32 guard_prog_scratch(const GuardProg *p); /* Values of scratch that guard_run needs */

enum { GUARD_PASS = 0 };
/* GUARD_PASS, or 1 + the index of the first guard that failed. On a pass the slots of all inputs are filled,
 * and donated registers hold V_HOLE while their slots own the count. On a miss nothing has changed.
 * `f`: arguments and registers are f->base, captures those of f->fn. */
u32 guard_run(Vm *vm, Frame *f, const GuardProg *p, u64 *slots, Value *scratch);
/* Elements that the last walk packed for inputs of form IN_rows, those of trees ROWS_DEEP times. */
u64 guard_rows_packed(const GuardProg *p);
/* Are these numbers of rank 0 of one kind, or trees of such of one shape? *kind: the first, borrowed. */
bool rows_kind(Vm *vm, const Value *items, u32 count, Value *kind); /* owned; false: none, or memory was refused */
/* A number of a kind of which some items are weak and some strong: two columns, the second says which are weak. */
enum { ROW_RANK = 4, ROW_ARRAY = 64 }; /* arrays in items that are packed: their rank and their elements, at most */
bool rows_small(Value v); /* such an array */
/* What lists of any length look like: a list of a nil that no program can make, and an item of theirs. Owned;
 * false: their items are not of one kind, there are none, or memory was refused. */
bool rows_ragged_kind(Vm *vm, const Value *items, u32 count, Value *kind);
bool rows_ragged(Value kind);
/* Records of numbers of one kind whose keys are single characters of ASCII: three columns
 * (tracer/record/repr_keyed.c). */
enum { KEYS_ROOM = 0x80 + 1 };
static inline Value rows_keyed_of(u32 dtype, bool weak) {
  return (Value){.kind = V_DTYPE, .dtype = (u8)dtype, .flags = weak ? VF_WEAK : 0};
}
static inline bool rows_keyed(Value kind) { return kind.kind == V_DTYPE; }
bool rows_keyed_kind(const Vm *vm, const Record *r, Value *kind); /* false: no such record, or one without keys */
bool rows_keyed_fit(const Vm *vm, const Record *r, Value kind);
/* The columns of a list, packed or beside its items, if these look like that: lists of any length or not. NULL: it has
 * none. */
struct Packed *rows_given(const List *l, bool ragged);
/* The same; a long list whose items are of one kind then keeps columns, of which none is made yet. */
struct Packed *rows_known(Vm *vm, List *l, bool ragged);
/* how many items lists have; false: not lists alone, or more than ROWS_MOST */
bool rows_total(const Value *items, u32 count, u64 *out);
static inline bool rows_mixed(Value kind) { return kind.kind == V_NUM && kind.aux; }
bool rows_widen(Value *kind, Value other); /* so that items of both kinds fit; false: they have too little in common */
bool rows_alike(Value a, Value b); /* items of one kind */
bool rows_take(Value kind, Value other); /* items of the other kind fit as well */
/* Gives donated inputs back to their registers (a region that leaves before it began). */
void guard_undonate(Frame *f, const GuardProg *p, u64 *slots);

u32 guard_prog_count(const GuardProg *p); /* guards, in the order they are checked */
void guard_print(const GuardProg *p, u32 index, Buf *out); /* `size(arg0, 1) == size(arg1, 0)` */
void guard_prog_print(const GuardProg *p, const Sources *sources, Buf *out); /* one line per guard, then inputs */
void guard_set_print(const GuardSet *g, const SizePool *p, const Sources *sources, Buf *out);

/* Why an entry did not fit: kept for explain, :guards and the recompile log. Texts are owned. */
typedef struct GuardMiss {
  u32 guard;      /* index in its program */
  u8 kind;        /* GuardKind */
  char *text;     /* `size(arg0, 1) == size(arg1, 0)` */
  char *expected, *got;
  char *subject;  /* the source that another trace need not rely on, or NULL */
  Span because;
  const char *what;
} GuardMiss;
/* Looks at the values again to say what was wanted and what was there. `index` counts from 0 (guard_run's result
 * less one). */
bool guard_miss_make(Vm *vm, const Frame *f, const GuardProg *p, u32 index, GuardMiss *out) MUST_USE;
/* `size(arg0, 1) == size(arg1, 0)  wanted 64, got 65  because matmul @12:9` */
void guard_miss_print(const GuardMiss *m, const Sources *sources, Buf *out);
void guard_miss_free(Vm *vm, GuardMiss *m);

/* ---- cache of entries at one code location --------------------------------------------------------- */

typedef struct GuardEntry {
  GuardProg *prog; /* owned */
  void *region;    /* owned through GuardCache.destroy */
  u64 hits, misses;
  u32 id;          /* counts up within its cache: names the entry in dumps */
  bool refused_once; /* for tests: it was refused though it fits */
  bool general;    /* it relies on less than others do: looked at behind those that were made for one kind */
  bool invalid;    /* its code went away or it was demoted: skipped, freed when not running */
  bool packs;      /* inputs are of form IN_rows */
  u32 running;     /* activations on the stack; never freed while > 0 */
  u32 filled;      /* slots that its guards fill */
} GuardEntry;

typedef struct GuardCache {
  VEC(GuardEntry *) entries; /* most recently hit first */
  u32 limit;      /* entries kept (tunables.def: cache_limit) */
  u32 next_id;
  u32 need_slots, need_scratch; /* the most that any entry's guards needed so far */
  u32 told_entry, told_guard;   /* what last_miss is about */
  u64 lookups, hits, misses;
  VEC(u32) guard_failures; /* per GuardKind: which kind keeps failing */
  bool storm;     /* the limit was reached: the tracer generalises or stays eager, and warned once */
  /* of the most recently hit entry, at a lookup that found none: the first in a row for one guard */
  GuardMiss last_miss;
  bool has_miss;
  void (*destroy)(Vm *vm, void *region);
  bool (*runs_code)(const void *region, u64 code_id); /* may be NULL: guards alone name codes */
} GuardCache;

void cache_init(GuardCache *c, u32 limit, void (*destroy)(Vm *vm, void *region));
void cache_free(Vm *vm, GuardCache *c); /* no entry may be running */
/* cache_lookup behind its first entry, or all of it. `failed`: by which guard that was refused, GUARD_PASS: it was not
 * asked. */
GuardEntry *cache_look_further(Vm *vm, GuardCache *c, Frame *f, u64 *slots, Value *scratch, u32 failed);
/* The first entry whose guards pass, moved to the front, inputs in `slots`; NULL on a miss (last_miss is then
 * set when there was an entry). `slots` and `scratch` hold at least need_slots and need_scratch. */
static inline GuardEntry *cache_lookup(Vm *vm, GuardCache *c, Frame *f, u64 *slots, Value *scratch) {
  GuardEntry *e = c->entries.count ? c->entries.data[0] : NULL;
  u32 failed = GUARD_PASS;
  c->lookups++;
  if (LIKELY(e && !e->invalid) && LIKELY((failed = guard_run(vm, f, e->prog, slots, scratch)) == GUARD_PASS)) {
    c->hits++;
    e->hits++;
    return e;
  }
  return cache_look_further(vm, c, f, slots, scratch, failed);
}
/* last_miss as it is now, for the frame whose lookup found nothing. */
void cache_tell_miss(Vm *vm, GuardCache *c, const Frame *f);
/* Guards of a set that failed in the cache's entries count those failures as their own: they will be checked first. */
void cache_teach(const GuardCache *c, const Names *names, const SizePool *sizes, GuardSet *set);
/* Consumes prog and region, also when it fails. Evicts the least recently hit entry that is not running
 * when the limit is reached, and sets `storm`. NULL when memory was refused. `general`: as GuardEntry's. */
GuardEntry *cache_add(Vm *vm, GuardCache *c, GuardProg *prog, void *region, bool general);
void cache_invalidate(Vm *vm, GuardCache *c, GuardEntry *e);
void cache_invalidate_code(Vm *vm, GuardCache *c, u64 code_id); /* entries that guard on this code, or run it */
bool guard_prog_names_code(const GuardProg *p, u64 code_id);
void cache_print(const GuardCache *c, const Sources *sources, Buf *out); /* entries with hits, then the last miss */

#endif
