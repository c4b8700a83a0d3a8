/* pull_loop.h — a loop as its pullback sees it: what pull_control.c (reading loops) and pull_loop.c (the way back)
 * share. */
#ifndef WEFT_HOP_PULL_LOOP_H
#define WEFT_HOP_PULL_LOOP_H

#include "hop/walk.h"

/* `trips` times a body over carried values, items of xs, and the trip's number. */
typedef struct Loop {
  NodeId node;
  BlockId body;
  u32 carried, nxs, stacked, ncaps, first; /* first: operand of the first capture */
  bool reverse, index;
  Dim trips;
  u8 *needed;  /* per carried value: the way back needs what it was at the begin of each trip */
  u8 *reached; /* per carried value: its cotangent is not zero by structure */
  u8 *maybe;   /* per carried value: it is reached, but not in every trip */
  u8 *given;   /* per variable behind the carried ones: GIVEN_* to it by a trip */
  u8 *touched; /* per carried value: a trip adds to the cotangent of what it begins with */
  /* per carried value: in the first trip it is a value from outside whose cotangent others add to as well */
  u8 *alias;
  ValueVec saved; /* carried values that are needed, stacked; 0 where not; then those of `cut` */
  ValueVec cut;   /* results of nodes of the body that are saved as well: what is computed from them needs no others */
  bool missed;    /* what is in `cut` was not enough: carried values alone are saved */
  const ValueId *ct, *there; /* of the results, as in Walk */
} Loop;
enum { GIVEN_never, GIVEN_maybe, GIVEN_always };

/* Operand k of the loop as the walk knows it: the loop may have been made anew in a block inside of the walk's. */
static inline ValueId loop_operand(const Walk *w, const Loop *l, u32 k) {
  return pull_home(w, node_operand(w->r->g, l->node, k));
}

/* What block b computes, once more at the cursor: parameters as given, captures as they are outside. */
bool loop_run_again(Recorder *r, NodeId node, BlockId b, const ValueId *params, u32 nparams, ValueMap *map);
/* Parameters of the current block like those of the loop's body from `from` on. */
bool loop_params_like(Recorder *r, BlockId b, const Loop *l, u32 from, u32 count, ValueVec *out);

/* Which values of a trip are saved: l->needed and l->cut. The way back over it is `back`, where the trip is run once
 * more by the nodes up to `last`, with its values in the map and `params` for the carried ones. */
bool loop_choose_saved(Recorder *r, Loop *l, BlockId back, NodeId last, const ValueMap *map, const ValueId *params,
                       const u8 *live);
bool pull_holds_check(const Graph *g, NodeId n);
/* The values that sizes of a node, and of all within its blocks, are made of. */
void pull_size_values(const Graph *g, NodeId n, void (*each)(void *ctx, u32 value), void *ctx);

/* The scan back over the loop: carries the cotangents of the carried values and the sums of those of the captures, and
 * stacks those of the items. Every trip runs the body once more on what was saved. With `grown` it is a trial, of
 * which only needed, reached, maybe and given come; *grown: there is more reached, or maybe, than before. */
Outcome loop_back(Walk *w, Loop *l, bool *grown);

#endif
