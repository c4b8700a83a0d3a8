/* tape.h — the eager gradient tape: values that remember how they were made.
 *
 * A tape has a level, 1 for the outermost; a tracked value holds the value of the level below, which may be tracked
 * there. An operation goes to the tape of the highest level among its arguments and is run one level down, so that
 * derivatives of derivatives need nothing else. A tape that records no more is constant: its values stand for what
 * they hold. */
#ifndef WEFT_HOP_TAPE_H
#define WEFT_HOP_TAPE_H

#include "hop/deriv.h"

/* custom: a function with a derivative of its own; checkpoint: one that runs again; hook: x, whose cotangent goes
 * through h. They save: the rule, what it was given, the list of arguments, the tree of results (see custom.c). */
typedef enum EntryKind { ENTRY_op, ENTRY_index, ENTRY_update, ENTRY_custom, ENTRY_checkpoint, ENTRY_hook } EntryKind;

typedef struct TapeEntry {
  u8 kind; /* EntryKind */
  u16 op;  /* op; update: BcOp that combines */
  /* op: 1 + a parameter that is no operand of rules and depends on the tape: there is no derivative by it. 0: none */
  u8 setting;
  u8 handed;   /* in a function of the library: 1 + its parameter that the setting came from. 0: none */
  u16 library; /* the operation whose function of the library ran it; 0: none */
  /* Tape.values: what was saved: arguments (index, update: operands, then keys), then results. What the rule does not
   * read (deriv_reads) stands there by its type alone: zeros that share one element */
  u32 first, count;
  u32 parents, nparents;  /* Tape.parents: node of each operand, 0 constant */
  u32 result, nresults;   /* nodes */
  u8 *items;              /* index, update */
  u32 nitems;
} TapeEntry;

typedef struct Tape {
  u32 refs;
  u32 level;
  bool live;  /* records */
  u32 nodes;  /* 1 … nodes */
  VEC(TapeEntry) entries;
  VEC(Value) values;
  VEC(u32) parents;
  Value stand_in; /* the latest one of an array that is saved by its type */
} Tape;

typedef struct TapeValue {
  Tracked head;
  Tape *tape; /* counted */
  u32 node;
} TapeValue;

extern const TapeHooks tape_hooks;

/* A tape that records from now on, at the next level. NULL: memory was refused, or tapes are nested too deep. */
Tape *tape_open(Vm *vm);
void tape_close(Vm *vm, Tape *t); /* records no more; its count stays with the caller */
void tape_drop(Vm *vm, Tape *t);

/* A new variable of the tape that stands for v (consumed). */
WeftStatus tape_variable(Vm *vm, Tape *t, Value v, Value *out) MUST_USE;
/* v (borrowed) without this tape: *out owned. *node: 0 when it does not depend on the tape. */
void tape_split(Tape *t, Value v, Value *out, u32 *node);
/* v (borrowed) with every tracked value in it, of whatever level, replaced by what it stands for: *out owned. */
WeftStatus tape_strip(Vm *vm, Value v, Value *out) MUST_USE;

/* *best becomes the tape of the highest level among the leaves of v, if that is higher. NULL: nothing is tracked. */
WeftStatus tape_highest(Vm *vm, Tape **best, Value v) MUST_USE;
/* The list *leaves (owned, replaced) as results of an entry of one of the kinds above. saved and parents are
 * borrowed. */
WeftStatus tape_entry(Vm *vm, Tape *t, EntryKind kind, const Value *saved, u32 nsaved, const u32 *parents, u32 nparents,
                      Value *leaves) MUST_USE;

/* Pulls cotangents back. grads[1 … t->nodes] holds those of the results (owned; a hole: zero) and then those of the
 * variables; all others are holes afterwards. `who` names the construct in errors. */
WeftStatus tape_pull(Vm *vm, Tape *t, const char *who, Value *grads) MUST_USE;
/* a (consumed) + b (consumed); a hole counts as 0. */
WeftStatus tape_sum(Vm *vm, Value a, Value b, Value *out) MUST_USE;
/* Is the argument v of the parameter a setting of the operation: no operand of its rules. */
bool tape_is_setting(u32 op, u32 param, Value v);
/* Operations that give parts (tape_parts.c): is this one recorded as views? `plain` is what it gives without tapes. */
bool tape_has_parts(u32 op, const Value *args);
WeftStatus tape_parts(Vm *vm, u32 op, Value *args, const Value *plain, Value *out) MUST_USE;
/* The leaves of *tree (owned, replaced) that depend on a tape as new values of it, which are the same numbers: what
 * is added to the cotangent of such a leaf afterwards is added up before it goes on. */
WeftStatus tape_fresh(Vm *vm, Value *tree) MUST_USE;
/* x[items] op= v for a rule: one entry, whatever the items are. x (owned) is replaced; v is borrowed. */
WeftStatus tape_write(Vm *vm, Value *x, const u8 *items, u32 nitems, const Value *keys, u32 op, Value v) MUST_USE;
void tape_type(Value v, ArrayType *t); /* of a number, array or tracked value */
WeftStatus tape_zeros(Vm *vm, const ArrayType *t, Value *out) MUST_USE;

#endif
