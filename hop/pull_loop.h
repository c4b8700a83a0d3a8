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
  /* of each value in `cut`: where the part of each trip begins in `saved`, one array for all; 0: it is stacked */
  ValueVec starts;
  bool unsaved;   /* nothing at all is saved: nothing says that the way back comes behind the loop */
  bool missed;    /* what is in `cut` was not enough: carried values alone are saved */
  const ValueId *ct, *there; /* of the results, as in Walk */
  const u8 *filled;
} Loop;
enum { GIVEN_never, GIVEN_maybe, GIVEN_always };

/* Is stacked result k the value v of the body, but for being strong. */
static inline bool loop_stacks(const Graph *g, const Loop *l, u32 k, ValueId v) {
  ValueId given = block_result(g, l->body, l->carried + k);
  NodeId n = given == v ? 0 : value_node(g, given);
  return given == v || (n && graph_node_at(g, n)->kind == NODE_op && graph_node_at(g, n)->op == OP_astype &&
                        node_operand(g, n, 0) == v && value_type(g, v)->dtype == value_type(g, given)->dtype);
}

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
/* Bytes of a value, sizes that the code serves all of counted alike; PULL_ENDLESS: it cannot be saved. */
u64 pull_bytes(const Graph *g, ValueId v, bool carried);
#define PULL_ENDLESS ((u64)1 << 60)

/* Fills l->saved with what l->needed and l->cut ask for, and l->starts (pull_save.c). */
bool loop_save(Recorder *r, Loop *l);
bool pull_ragged(const Graph *g, ValueId v); /* its length, and nothing else of its type, is known in the trip alone */
/* What a trip saved at `at` of `all`, of that type, at the cursor. */
ValueId loop_saved_part(Graph *g, ValueId all, ValueId at, TypeId type);

/* Do blocks inside of a loop's body read parts of arrays; the loop once more at the cursor, whose branches and loops
 * give these as results (pull_reads.c), or 0. */
bool loop_reads_inside(const Graph *g, BlockId body);
NodeId loop_read_inside(Recorder *r, NodeId n);

/* How often a loop goes round (pull_trips.c). */
void loop_read(const Graph *g, Loop *l, NodeId node); /* what the node says of it */
/* Of a while loop that counts up to what is known; else DIM_NONE. */
Dim loop_trips(Graph *g, NodeId n);
/* Of any while loop, by nodes at the cursor: from its ends, or by running once more what its test needs. DIM_NONE:
 * memory was refused. */
Dim loop_count(Recorder *r, const Loop *l);

/* The number `n`, which counts something, as a size: at least 0, which what it comes from may not show. */
bool loop_counted_dim(Recorder *r, ValueId n, Dim *out);
/* A while loop that also ends at a number that is known becomes a scan of so many trips, some of which do nothing. Any
 * other stays as it is. False: memory was refused. */
bool loop_bound(Recorder *r, Loop *l);

/* By how much lists grow in a loop, told before it (list_room.c): Tracer.list_room. */
struct ListRoom;
Outcome record_list_room(Recorder *r, struct ListRoom *q);

/* What of a loop has to run once more so that values of its body are there, and its test, if it is given one. */
typedef struct LoopKept {
  u8 *live; /* per value */
  u32 count;
  VEC(TypeId) with; /* what is carried beside carried values of the loop: types */
  ValueVec given;   /* and the parameters for it, in the block that was made last */
} LoopKept;
bool loop_keep(Recorder *r, const Loop *l, BlockId test, const ValueVec *wanted, LoopKept *k);
void loop_keep_free(Recorder *r, LoopKept *k);
bool loop_keeps(const Recorder *r, const Loop *l, const LoopKept *k, u32 i); /* carried value i */
bool loop_kept_init(Recorder *r, const Loop *l, const LoopKept *k, ValueVec *init);
/* The nodes of its body that are kept, or all of its test, in the current block, behind their parameters. */
bool loop_run_kept(Recorder *r, const Loop *l, LoopKept *k, BlockId of, ValueMap *map);
bool loop_kept_next(Recorder *r, const Loop *l, const LoopKept *k, const ValueMap *map, ValueVec *next);

/* What runs once more (pull_dead.c): the nodes of block b up to `last`. `passed`: they ran before as they stand, so
 * that their checks are needless; but those of sizes tell what holds of them. */
bool pull_must_stay(const Graph *g, NodeId n, bool passed);
/* The values that sizes of a node, and of all within its blocks, are made of. */
void pull_size_values(const Graph *g, NodeId n, void (*each)(void *ctx, u32 value), void *ctx);
/* One byte for each value: b's results and what must stay need it, sizes too. NULL: memory was refused. */
u8 *pull_live(Recorder *r, BlockId b, NodeId last, bool passed);
void pull_drop_dead(Recorder *r, BlockId b, NodeId last, bool passed, const u8 *live);
/* The captures of a control node that no block of it uses; false: memory was refused. */
bool pull_drop_captures(Recorder *r, NodeId n);

/* The scan back over the loop: carries the cotangents of the carried values and the sums of those of the captures, and
 * stacks those of the items. Every trip runs the body once more on what was saved. With `grown` it is a trial, of
 * which only needed, reached, maybe and given come; *grown: there is more reached, or maybe, than before. */
Outcome loop_back(Walk *w, Loop *l, bool *grown);

#endif
