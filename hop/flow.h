/* flow.h — how control leaves the blocks of a graph, and loops without such places: what batching and derivatives
 * ask. */
#ifndef WEFT_HOP_FLOW_H
#define WEFT_HOP_FLOW_H

#include "tracer/record/record.h"

/* Does some block in node n, however deep, end otherwise than blocks of its kind do: an arm by next, break or exit,
 * the body of a loop by break or exit? */
bool flow_leaves(const Graph *g, NodeId n);
/* The same of the arms of a cond, but not of what loops inside of them hold: it ends the block around, or the
 * region. */
bool flow_arms_leave(const Graph *g, NodeId cond);
/* The same of the body of a loop: its trips end, or the loop is left, in arms. */
bool flow_body_leaves(const Graph *g, NodeId loop);
/* A while loop that comes to its end whatever it begins with: it counts up to what does not change, if it is not left
 * before. */
bool flow_counts(const Graph *g, NodeId n);

/* Stands where nobody asks what it is. */
ValueId flow_nothing(Graph *g, const ArrayType *like);

/* The loop n once more at the cursor, of which no arm ends by next or break: its results are those of n in their
 * order, and behind them, if n can be left by break, whether it was. What an arm that exits would give is nothing:
 * for places that are reached only where n ran to its end.
 *
 * Invariant: every way through the body gives all that a trip gives, as values of the body's own block. Where no
 * more than one arm leads on behind a branch, what follows moves to the end of that arm. Where both do, the branch
 * gives a bool that says whether the trip goes on there, its own results, and what the trip gives if not; a second
 * branch on that bool holds what follows. So nothing is repeated, and what did not run stays in an arm that was not
 * taken. */
Outcome flow_regular(Recorder *r, NodeId n, NodeId *made);

#endif
