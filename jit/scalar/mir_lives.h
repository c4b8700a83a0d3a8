/* mir_lives.h — where the values of a loop IR function live, and which of them share a register. */
#ifndef WEFT_JIT_MIR_LIVES_H
#define WEFT_JIT_MIR_LIVES_H

#include "jit/loops/loops.h"

typedef struct LiveSpan { /* body positions; touching spans do not collide */
  u32 from, to;
  u32 next; /* of the same class; 0 ends */
} LiveSpan;

typedef struct Lives {
  const LoopFn *fn;
  Allocator *alloc;
  u32 *where;    /* per node: position in the body (heads, statements), of leaves their head's */
  u32 *end;      /* per node: position of a head's END */
  u32 *other;    /* per node: of an `if`: position of its ELSE, or of its END */
  u32 *last;     /* per node: last position it is read at, loops it is read in counted to their END */
  u32 *uses;     /* per node: how often it is read */
  u32 *loop;     /* per body position: innermost open loop head, 0 = none; an `if` is none */
  u32 *call;     /* per body position: the next one from there on that calls; NULL: none does */
  u8 *deferred;  /* per node: an i1 that is computed where it is branched on, and only there */
  /* per node: a constant that is read inside a loop, to be kept in a register all through: none where there are too
   * many */
  u8 *in_loop;
  u32 *class_of; /* per node: the node whose register it shares; itself when alone */
  u8 *shared;    /* per node: others have its register too */
  u32 *spans;    /* per class: its first span */
  VEC(LiveSpan) span; /* 0 unused */
} Lives;

WeftStatus lives_init(Lives *l, const LoopFn *fn, Allocator *alloc) MUST_USE; /* error: memory refused */
void lives_free(Lives *l);
/* Is the statement at `at` a select of `i + n` where i is negative, else i, with the check that follows that it is
 * an index of n? These are one comparison where i is an index already. */
bool lives_wraps(const Lives *l, u32 at);
/* An `if` of which only the first result is read, by the `if` right behind it, which asks for it: its arms go on to
 * that one's. Gives that one; 0: it is none. */
u32 lives_threads(const Lives *l, u32 head);
/* An `and` whose second operand is a `not` that only it reads: that is made with it, by a mask. */
bool lives_excludes(const Lives *l, u32 id);
/* A select that is made by masks, of a condition that is a number. */
bool lives_masks(const Lives *l, const LoopNode *select);
/* What MIR will take for the function, in nanoseconds, roughly: it cannot be stopped on the way. */
u64 lives_cost(const Lives *l);
/* Does the class of a node hold a value across position p (values last read at p included). */
bool lives_across(const Lives *l, u32 class_node, u32 p);

#endif
