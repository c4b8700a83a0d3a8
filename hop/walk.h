/* walk.h — the way back over the nodes of a block: what the derivative of graphs and of their control nodes share. */
#ifndef WEFT_HOP_WALK_H
#define WEFT_HOP_WALK_H

#include "hop/deriv.h"
#include "tracer/record/record.h"

typedef struct GraphDeriv {
  Deriv head;
  Graph *g;
} GraphDeriv;

/* By ValueId. Values made on the way back are beyond `count`.
 * A cotangent that came out of one arm of a branch, or of the trips of a loop, is there only where that ran: on the
 * tape nothing is pulled from a value that got none, and zero times infinity is not zero. So it is kept with a bool;
 * its number counts only where that is true, and is taken so where it is added to another or leaves.
 *
 * The tape knows no branches and no loops: what comes out of an arm, or goes into a loop, is there the value that it
 * was before. A cotangent of such a value is at once one of what it stands for, under the condition that it does
 * (Alias): contributions are then added one by one in the reverse order of use, as on the tape. */
typedef struct Alias {
  ValueId source, when; /* when: of rank 0; 0: always */
  u32 arm;              /* of a cond: which one gives it */
  u32 next;             /* of the same value: Walk.aliases + 1, 0: no more */
} Alias;

/* What a number is where its cotangent is not there: of sums that a loop carries. NOTHING is -0.0, to which
 * anything may be added; ZERO is 0.0, where items are added in place. */
typedef enum Filled { FILLED_no, FILLED_nothing, FILLED_zero } Filled;

typedef struct Walk {
  Recorder *r;
  GraphDeriv d;
  VEC(NodeId) nodes;
  u8 *active; /* depends on a variable */
  ValueId *ct;
  ValueId *there; /* of rank 0; 0: always */
  u8 *filled;     /* Filled */
  u32 *alias;     /* the first one of a value, Walk.aliases + 1 */
  VEC(Alias) aliases;
  u32 count;
  /* it walks what ran before as it stands, in a trip: what runs once more in blocks inside of it needs no checks, and
   * takes from the results of branches what these gave */
  bool again;
  BlockId home;   /* whose nodes are walked; what is made on the way back may stand in a block inside of it */
} Walk;

static inline bool pull_is_float(const Graph *g, ValueId v) {
  return !value_is_token(g, v) && deriv_dtype(value_type(g, v)->dtype);
}
static inline bool pull_is_active(const Walk *w, ValueId v) { return v < w->count && w->active[v]; }

/* What v, of a block inside of the walk's, is there. */
ValueId pull_home(const Walk *w, ValueId v);

/* The nodes of the cursor's block behind `after` (0: all), and what of them depends on the variables. */
bool pull_walk_init(Walk *w, Recorder *r, BlockId b, NodeId after, const ValueId *variables, u32 nvariables);
void pull_walk_free(Walk *w);
void pull_give(Walk *w, ValueId to, Dv ct); /* adds to the cotangent of a value, if it depends on a variable */
void pull_give_if(Walk *w, ValueId to, Dv ct, ValueId there);
void pull_give_filled(Walk *w, ValueId to, Dv ct, ValueId there, bool zeros); /* zeros: it is 0 where it is not there */
Dv pull_only_if(Walk *w, ValueId there, Dv ct, f64 otherwise); /* ct itself when there is 0 */
ValueId pull_or(Graph *g, ValueId a, ValueId b);               /* of two bools, 0: always */
ValueId pull_and(Graph *g, ValueId a, ValueId b);
enum { ARM_none = 2 };
bool pull_alias(Walk *w, ValueId of, ValueId source, ValueId when, u32 arm); /* false: memory was refused */
bool pull_arm_is_source(const Walk *w, ValueId of, u32 arm); /* does that arm of a cond give a source of the value */
static inline ValueId pull_bool(Graph *g, bool b) { return graph_const(g, value_bool(b)); }
ValueId pull_is_there(const Walk *w, ValueId v); /* is its cotangent there: as a value of the graph */
Outcome pull_walk_back(Walk *w);
ValueId pull_zeros(Graph *g, const ArrayType *t);
ValueId pull_fill(Graph *g, const ArrayType *t, f64 with);

/* The leaves of an argument as variables (appended), the opened tree on these in *out. */
Outcome pull_variables(Recorder *r, Av arg, ValueVec *variables, Av *out);

/* The gradients of the variables as the opened tree `like`. */
Av pull_gradients(Recorder *r, Walk *w, Av like, const ValueId *variables, u32 count);

/* Aliases of values of a block around, in block b: among `outside` are those values and all that they stand for,
 * `inside` what b has for them. */
bool pull_lift_aliases(Walk *inner, const Walk *w, BlockId b, const ValueVec *outside, const ValueId *inside);

/* Control nodes (pull_control.c). */
Outcome pull_cond(Walk *w, NodeId node);
Outcome pull_loop(Walk *w, NodeId node);

#endif
