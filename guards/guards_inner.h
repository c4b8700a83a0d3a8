/* guards_inner.h — what the files of guards share: the compiled program, and reading a source safely. */
#ifndef WEFT_GUARDS_GUARDS_INNER_H
#define WEFT_GUARDS_GUARDS_INNER_H

#include "guards/guards.h"

/* One step of the walk. `to`, `from`, `second` are places in scratch. */
typedef enum WalkOp {
  WALK_READ,       /* scratch[to] = part `index` of scratch[from], by `kind` (SourceKind) */
  WALK_TAG_ARRAY,  /* array word */
  WALK_TAG,        /* value word */
  WALK_CONST,      /* first word and payload */
  WALK_TEXT,       /* bytes */
  WALK_CODE,       /* kind = FnKind */
  WALK_LEN,        /* kind = SizeRel */
  WALK_ROWS,       /* a list whose items are laid out as the guard says */
  WALK_SHAPE,      /* all keys in order */
  WALK_KEY,        /* this key */
  WALK_CELL,
  WALK_AMBIENT,
  WALK_IDENT,      /* kind = SizeRel */
  WALK_SIZE,       /* kind = SizeRel; from, second: two numbers */
  WALK_SIZE_CONST, /* from: a number, word: the constant */
  WALK_SIZE_CODE,  /* codes word and word + 1 */
  WALK_HOST,
} WalkOp;

typedef struct Walk {
  u8 op, kind;
  u16 rank;     /* read of a size: axis */
  u32 to, from, second;
  u32 index;
  u32 guard;    /* position in GuardProg.guards + 1; 0 for reads */
  u64 word, mask;
  void *pointer; /* module, host function, text, keys */
} Walk;

/* What the items of a list have in common, in the order of a walk: a number's first word; of a list or record its
 * kind, with the number of its parts in the upper half, and of a record its keys; of an array its kind and dtype,
 * with its rank there, and its sizes. */
enum { ROW_WORDS = 40, ROW_DEPTH = 4 };
#define ROW_MIXED (UINT64_C(1) << 32) /* in the word of a number that is weak in some items: Value.aux */
#define ROW_RAGGED (V_LIST | UINT64_C(0xffffffff) << 32) /* lists of any length; how their items look follows */
#define ROW_FLAGS (UINT64_C(1) << 33) /* in a fill's: the column that says where */
typedef struct RowLayout {
  u64 words[ROW_WORDS];
  u32 count;
} RowLayout;

/* the last three: of a record; of lists of any length: where each begins, how many items it has, or their items one
 * behind the other */
typedef enum RowPart { ROW_ALL, ROW_STARTS, ROW_COUNTS, ROW_FLAT, ROW_KEY_ORDER, ROW_KEY_THERE,
                       ROW_KEY_NUMBER } RowPart;

typedef struct Fill { /* an input's slot */
  u32 from;
  bool donate;
  bool rows; /* packed from the numbers with the first word `tag` that stand at `path` in the items of a list */
  u8 depth, path[ROW_DEPTH], dims[ROW_RANK]; /* dims: of an array */
  u8 part; /* RowPart */
  u32 reg;
  u64 tag;
} Fill;

/* What guard_run does in one go: a read and the check behind it, where that is common. */
typedef enum RunOp {
  RUN_root_array,     /* scratch[to] = the register `from`, an array with word, mask */
  RUN_root_value,     /* the same, a value with word */
  RUN_root,           /* the same, unchecked */
  RUN_size,           /* scratch[to] = size of the array scratch[from] along `axis` */
  RUN_size_same,      /* the same, and it is the number `second` */
  RUN_relation,       /* kind = SizeRel; from, second: two numbers */
  RUN_relation_const, /* the same of a number and word */
  RUN_ambient,        /* word */
  RUN_item,           /* scratch[to] = item `second` of the list scratch[from], which is as long as that */
  RUN_item_value,     /* the same, a value with word */
  RUN_item_const,     /* the same, the value of mask and word */
  RUN_length,         /* scratch[from] is a list of `word` items */
  RUN_walk,           /* what stands at `from` of the walk */
  RUN_end,
} RunOp;

enum { NO_SLOT = UINT32_MAX };

/* Places are offsets in bytes: of Values, of numbers those of their payloads. */
typedef struct GuardStep {
  u8 op, kind, axis;
  u32 guard;            /* what a miss says */
  u32 to, from, second;
  u32 slot;             /* takes the payload that was read; NO_SLOT: none */
  u64 word, mask;
} GuardStep;

typedef struct Donated {
  u32 slot, reg; /* reg: offset of the register */
} Donated;

struct GuardProg {
  Vm *vm;
  Arena arena;   /* walk, fills, codes, texts */
  GuardSet set;  /* own copy of the sources, for dumps and misses; guards in the order they are checked */
  const char **texts; /* parallel to set.guards */
  Walk *walk;
  u32 nwalk;
  Fill *fills;
  u32 nfills, ndonated, nrows;
  u64 *packed; /* elements that the last walk packed */
  GuardStep *steps; /* what runs */
  u32 nsteps;
  u32 *late; /* fills that no step does */
  u32 nlate;
  Donated *donated;
  SizeCode *codes; /* of size guards: two each */
  u32 scratch;
};

/* Reads a part of a value if it is there. Borrowed. */
bool looked_into(Vm *vm, List *l); /* a list that is packed is boxed; false: memory was refused */
bool part_read(Vm *vm, SourceKind kind, u32 index, Value of, Value *out);
bool root_read(Vm *vm, const GuardSet *g, const Source *s, const Frame *f, Value *out);
/* a step WALK_READ; false: it is not there */
bool walk_read(Vm *vm, const GuardProg *p, const Frame *f, const Walk *w, Value *scratch);
bool guard_fuse(GuardProg *p, Arena *temp); /* makes the steps of walk and fills; false: memory was refused */
bool size_code_value(const SizeCode *c, const Value *scratch, i64 *out);
bool keys_in_order(const Shape *s, const Name *keys, u32 count);

bool rows_layout(Value item, RowLayout *out); /* false: not of numbers alone, or too large */
bool rows_fit(const Value *items, u32 count, const void *layout);
bool rows_column(const void *layout, u32 column, Fill *out); /* its tag and path */
bool rows_fill(Vm *vm, const GuardProg *p, const Value *scratch, u64 *slots);
void rows_give_back(Vm *vm, u64 *slot);

void guard_describe(const GuardSet *g, const SizePool *p, const Guard *x, const Names *names, Buf *out);
void guard_because(Span at, const char *what, const Sources *sources, Buf *out);
u32 guard_cost(u32 kind);
const char *guard_kind_name(u32 kind);

#endif
