/* repr.h — representations: how the recorder keeps values while it traces, and what can be done with each.
 *
 * An abstract value (absval.h) is of one representation, a row of repr.def. Its table says what the program calls such
 * a value and has a function for each operation of repr_ops.def. Whoever wants the length of a value, an item, the
 * recipe of an exit, asks the table of the value; nobody asks which representation it is to choose what to do. An
 * empty cell is a break of the graph, whose reason stands in the same row. docs/representations.md shows all cells.
 *
 * A new representation is a row of repr.def and a file repr_NAME.c with its table, how it is made, and the
 * functions. */
#ifndef WEFT_TRACER_REPR_H
#define WEFT_TRACER_REPR_H

#include "tracer/record/record.h"

/* A value that is handed out in the midst of a region, to output or to a host function: recipes of the node's operands
 * (record_effects.c). */
typedef struct Handing {
  Recorder *r;
  ValueId *operands; /* in the graph's arena */
  u32 count, cap;
  bool host; /* for a host function: objects may go there as well */
} Handing;

/* A call: arguments, their names (NULL: none has one), the register of the caller that takes the result. */
typedef struct CallArgs {
  const Av *args;
  const Name *names;
  u32 count;
  u16 result;
} CallArgs;

typedef enum ReprOp {
#define REPR_OP(name, result, parameters, text) ROP_##name,
#include "tracer/record/repr_ops.def"
#undef REPR_OP
  ROP_COUNT,
} ReprOp;

/* Why a cell is empty. */
typedef struct ReprGap {
  u16 reason; /* of the break: lang/reasons.def */
  const char *why;
} ReprGap;

typedef enum ReprTrait {
  IS_NUMBER = 1 << 0,   /* a number or array of the graph, or a number that is known */
  IS_CONSTANT = 1 << 1, /* `konst` is the value */
  IS_TEXT = 1 << 2,
  IS_MADE = 1 << 3,     /* a text that is made of items where the region is left */
  IS_COLUMNS = 1 << 4,  /* items: columns, how many of their elements count */
  IS_FUNCTION = 1 << 5,
  IS_OBJECT = 1 << 9,   /* a path that is written through it changes its content, not the value */
  IS_OUTER = 1 << 6,    /* from outside, known by its source alone */
  IS_LIST = 1 << 11,    /* a list to the program */
  IS_CLOSED = 1 << 10,  /* no part of the tree that a program sees before it is opened */
  IS_TREE = 1 << 7,     /* its items count in AbsVal.parts */
  HAS_PARTS = 1 << 8,   /* what it is made of is carried from trip to trip: its items from first_part on */
} ReprTrait;

typedef struct Repr {
  const char *name; /* of the row */
  const char *type; /* what the program calls such a value; NULL: as `konst` says */
  u8 first_part;
#define REPR_OP(name, result, parameters, text) result(*name) parameters;
#include "tracer/record/repr_ops.def"
#undef REPR_OP
  ReprGap gap[ROP_COUNT];
} Repr;

#define REPR(name, traits) extern const Repr repr_##name;
#include "tracer/record/repr.def"
#undef REPR
extern const Repr *const reprs[AV_COUNT];
extern const u16 repr_traits[AV_COUNT]; /* ReprTrait */

#define MADE_HERE "a text that was made here" /* a reason */

/* In a table: no such operation, for this reason. */
#define NO(op, why_not, text) .gap[ROP_##op] = {REASON_##why_not, text}

static inline const Repr *av_repr(const Recorder *r, Av a) { return reprs[av_at(r, a)->kind]; }
Outcome repr_no(Recorder *r, Av a, ReprOp op); /* the break of an empty cell */

/* ---- asked of the table ------------------------------------------------------------------------------------------ */

Outcome rec_length(Recorder *r, Av a, Av *out);
Outcome rec_item(Recorder *r, Av a, Av at, Av *out);
Outcome rec_slice(Recorder *r, Av a, const Av *parts, Av *out);
Outcome rec_walk(Recorder *r, Av a, Av *out);
Outcome rec_at(Recorder *r, Av a, Av pos, Av *out);
Outcome rec_items(Recorder *r, Av a, AvVec *out);
Outcome rec_array(Recorder *r, Av a, Av dtype, bool leaf, Av *out);
Outcome rec_open_list(Recorder *r, Av a, Av *out);

/* ---- which one it is ----------------------------------------------------------------------------------------------
 * For those who know what they look for: the items of a list literal, an argument that was not given. What can be done
 * with a value is asked of its table. */

static inline bool kind_has(u8 kind, u32 traits) { return repr_traits[kind] & traits; }
static inline bool av_has(const Recorder *r, Av a, u32 traits) { return kind_has(av_at(r, a)->kind, traits); }

#define REPR_IS(name, is)                                                   \
  static inline bool kind_is_##is(u8 kind) { return kind == AV_##name; }    \
  static inline bool av_is_##is(const Recorder *r, Av a) { return av_at(r, a)->kind == AV_##name; }
REPR_IS(list, list)
REPR_IS(record, record)
REPR_IS(hole, hole)
REPR_IS(range, range)
REPR_IS(option, option)
REPR_IS(queue, queue)
REPR_IS(stacked, stacked)
REPR_IS(window, window)
REPR_IS(row, row)
REPR_IS(keyed, keyed)
REPR_IS(ragged, ragged)
REPR_IS(packed_text, packed_text)
REPR_IS(ref, made_ref)
REPR_IS(outer_ref, outer_ref)
REPR_IS(module, module)
REPR_IS(handle, handle)
REPR_IS(closure, closure)
REPR_IS(transform, transform)
REPR_IS(builtin, builtin)
REPR_IS(function, function)
REPR_IS(lazy, lazy)
REPR_IS(number, value) /* of the graph, whether or not its value is known */
REPR_IS(character, character)
REPR_IS(formatted, formatted)
REPR_IS(joined, joined)
REPR_IS(numbered, numbered)
REPR_IS(part, part)
REPR_IS(reversed, reversed)
REPR_IS(outer_list, outer_list)
REPR_IS(outer_record, outer_record)
REPR_IS(outer_text, outer_text)
#undef REPR_IS

/* a list or record that is known item by item */
static inline bool kind_is_open(u8 kind) { return kind == AV_list || kind == AV_record; }
static inline bool av_is_open(const Recorder *r, Av a) { return kind_is_open(av_at(r, a)->kind); }
/* a function that calls can go into: not the host's */
static inline bool av_is_callable(const Recorder *r, Av a) {
  return av_has(r, a, IS_FUNCTION) && !av_has(r, a, IS_OUTER);
}
static inline bool rec_is_plain_columns(const Recorder *r, Av a) { return av_at(r, a)->kind == AV_columns; }
static inline bool kind_in_columns(u8 kind) { return kind_has(kind, IS_COLUMNS); }
static inline bool av_in_columns(const Recorder *r, Av a) { return av_has(r, a, IS_COLUMNS); }
static inline bool kind_is_constant(u8 kind) { return kind_has(kind, IS_CONSTANT); }
static inline bool av_is_constant(const Recorder *r, Av a) { return av_has(r, a, IS_CONSTANT); }
static inline bool kind_is_made_text(u8 kind) { return kind_has(kind, IS_MADE); }
static inline bool av_is_made_text(const Recorder *r, Av a) { return av_has(r, a, IS_MADE); }

/* ---- cells that several representations share -------------------------------------------------------------------- */

Outcome repr_itself(Recorder *r, Av a, Av *out);
Outcome repr_count_length(Recorder *r, Av a, Av *out); /* of columns */
Outcome repr_items_length(Recorder *r, Av a, Av *out); /* known item by item */
Outcome repr_known_truth(Recorder *r, Av a, Value v, Av *out); /* of what is known */
Outcome repr_constant_truth(Recorder *r, Av a, Av *out);
Outcome repr_known_format(Recorder *r, Value v, Av spec, Av *out);
Outcome repr_constant_format(Recorder *r, Av a, Av spec, bool plain, Av *out);
Outcome repr_text_format(Recorder *r, Av a, Av spec, bool plain, Av *out);
bool repr_same_parts(Recorder *r, Av a, Av b); /* alike part by part */
bool repr_same_source(Recorder *r, Av a, Av b); /* from one place outside */
bool repr_same_value(Recorder *r, Av a, Av b); /* constants that are equal */
bool repr_same_leaf(Recorder *r, Av a, Av b); /* numbers: what they are is carried */
RecipeId repr_source_recipe(Recorder *r, Av a); /* what stands at its source; 0: it has none */
RecipeId repr_constant_recipe(Recorder *r, Av a);
/* Of the items, by what puts their recipes together. */
typedef RecipeId (*RecipeMaker)(ExitTable *t, const AbsVal *v, const RecipeId *items, u32 count);
RecipeId repr_recipe_of(Recorder *r, Av a, const Av *items, u32 count, RecipeMaker make); /* of these */
RecipeId repr_items_recipe(Recorder *r, Av a, u32 count, RecipeMaker make); /* its own, unless it has a source */
RecipeId repr_items_hand(Handing *h, Av a, u32 count, u32 depth, RecipeMaker make);
RecipeId repr_source_hand(Handing *h, Av a, u32 depth); /* to a host function alone */
RecipeId repr_constant_hand(Handing *h, Av a, u32 depth);
bool repr_constant_example(Recorder *r, Av a, u32 depth, Value *out);
bool repr_source_example(Recorder *r, Av a, u32 depth, Value *out); /* the value that stands there now */

#endif
