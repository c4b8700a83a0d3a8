/* absval.h — abstract values: what the recorder knows of a value while it runs bytecode on types.
 *
 * Immutable and named by ids (Av, 0 = dead or unknown), so a register file is an array of ids and a snapshot
 * is a copy of it. Numbers and arrays are values of the graph; lists, records, ranges and functions exist here
 * only, item by item. What came from outside knows its source and is read (guarded, made an input) when first
 * looked at: until then it is LAZY. */
#ifndef WEFT_TRACER_ABSVAL_H
#define WEFT_TRACER_ABSVAL_H

#include "lang/reasons.h"
#include "lang/tunables.h"
#include "tracer/graph/graph.h"
#include "vm/vm.h"

typedef u32 Av;

typedef enum AvKind {
  AV_NONE,
  AV_CONST,     /* nil, text, dtype, built-in, number: `konst` */
  AV_NUM,       /* `value` of the graph */
  AV_LIST,      /* items */
  /* a list of numbers of one kind, or of trees of such, or a text in a loop (record_rows.c); items: columns, count;
   * `konst`: an item; `op` 1: a known text, of ASCII alone */
  AV_ROWS,
  /* a list that a loop cuts off at its head (record_queue.c); items: the AV_ROWS, where it begins, count */
  AV_QUEUE,
  /* a list among lists of any length (record_ragged.c); items: the AV_ROWS that has them, the number of this one, where
   * it begins, count, the number as the program has it */
  AV_ROW,
  AV_RECORD,    /* items, keys in `shape` */
  AV_RANGE,     /* items: start, stop, step */
  AV_CLOSURE,   /* `code`; captures: items, or read through `env` */
  AV_TRANSFORM, /* `op` = TransformKind; items: inner, settings */
  /* ref, module, handle, host function: known by its source, or a module by `konst`; `op` 1: a function, which one is
   * not asked */
  AV_OBJECT,
  AV_REF,       /* a ref that the trace made; `value` = its number in Recorder.cells */
  /* a text that will be made: op 0: of items 0 by the format spec items 1 (text or nil), op 1: items joined, op 2: of
   * the code point item 0, op 5: a part, 6: from its end (record_slice.c) */
  AV_TEXT,
  AV_OPTION,    /* nil, or a value (record_option.c); items: a bool that says whether it is there, the value */
  AV_LAZY,      /* not read yet: `source`, `konst` = the value it has now (borrowed) */
  AV_HOLE,      /* an argument that was not given */
} AvKind;

/* Where the captures of a closure are found. */
typedef enum EnvKind { ENV_ITEMS, ENV_SOURCE, ENV_ROOT } EnvKind;

/* larger trees are not traced: a list that holds one list twice, 30 times over, has 2^30 leaves */
enum { PARTS_MAX = 4096 };

typedef struct AbsVal {
  u8 kind;
  u8 env;        /* EnvKind */
  u16 op;        /* TransformKind */
  ValueId value; /* CLOSURE of items, TRANSFORM: its recipe in the exit that konst.bits counts */
  SourceId source; /* what this value is, unchanged; 0: none */
  SourceId env_source; /* ENV_SOURCE: the function whose captures these are */
  u32 first, count; /* Recorder.items */
  u32 parts;     /* this and all below it, as often as they stand there; at most PARTS_MAX + 1 */
  Shape *shape;  /* kept by the recorder */
  Code *code;    /* kept by the recorder */
  Value konst;   /* CONST: kept by the recorder; LAZY, OBJECT: borrowed for the trace */
} AbsVal;

#endif
