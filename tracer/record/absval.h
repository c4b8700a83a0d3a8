/* absval.h — abstract values: what the recorder knows of a value while it runs bytecode on types.
 *
 * Immutable and named by ids (Av, 0 = dead or unknown), so a register file is an array of ids and a snapshot
 * is a copy of it. Numbers and arrays are values of the graph; lists, records, ranges and functions exist here
 * only, item by item. What came from outside knows its source and is read (guarded, made an input) when first
 * looked at: until then it is `lazy`. How each is kept is a representation (repr.h). */
#ifndef WEFT_TRACER_ABSVAL_H
#define WEFT_TRACER_ABSVAL_H

#include "lang/reasons.h"
#include "lang/tunables.h"
#include "tracer/graph/graph.h"
#include "vm/vm.h"

typedef u32 Av;

/* Rows of repr.def: what each holds is said in the file of its table. */
typedef enum AvKind {
#define REPR(name, traits) AV_##name,
#include "tracer/record/repr.def"
#undef REPR
  AV_COUNT,
} AvKind;

/* Where the captures of a closure are found. */
typedef enum EnvKind { ENV_ITEMS, ENV_SOURCE, ENV_ROOT } EnvKind;

typedef struct AbsVal {
  u8 kind;       /* AvKind */
  u8 env;        /* closure: EnvKind */
  u16 op;        /* transform: TransformKind; others: see their files */
  ValueId value; /* number: of the graph. ref: in Recorder.cells. closure, transform: see repr_function.c */
  SourceId source; /* what this value is, unchanged; 0: none */
  SourceId env_source; /* closure, ENV_SOURCE: the function whose captures these are */
  u32 first, count; /* Recorder.items */
  u32 parts;     /* this and all below it, as often as they stand there; at most value_parts + 1 */
  Shape *shape;  /* record: its keys; kept by the recorder */
  Code *code;    /* kept by the recorder */
  Value konst;   /* constants: kept by the recorder; from outside: the value it has now, borrowed for the trace */
} AbsVal;

#endif
