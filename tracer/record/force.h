/* force.h — for tests: compiled code is left, refused, or recorded anew where it need not be. Results must not
 * change (but by `wrong`).
 *
 *   exits N      a trace ends in a break, or an arm in a cold exit, at the instruction that it meets as its N-th; 0:
 *                now here, now there
 *   misses N     an entry that was hit is refused once, as if its N-th guard had failed
 *   checks N     the N-th check of every graph fails whenever it is reached
 *   endless N    the N-th pass of every compilation never ends by itself
 *   wrong N      the N-th operation of every graph is another one: results do change, and WEFT_BACKEND=verify must
 *                say so
 *   rollback     every step of a trace is made, undone and made again; what it left behind is counted (`unclean`)
 */
#ifndef WEFT_TRACER_FORCE_H
#define WEFT_TRACER_FORCE_H

#include "tracer/record/record.h"

struct Tracer;

bool force_parse(Force *f, const char *text); /* "exits 3"; "" and NULL: nothing. False: it is none of these */
/* Before each step: OUT_GO, or what ends the step instead. `once` makes one step. */
Outcome force_step(Recorder *r, const Scope *s, Outcome (*once)(Recorder *r, const Scope *s));
void force_checks(struct Tracer *t, Graph *g, u64 region);
void force_wrong(const struct Tracer *t, Graph *g);
u32 force_endless(const struct Tracer *t); /* the pass of the compilation that begins which never ends; 0: none */
/* Is this look-up to miss? `prog` gets what seems to fail, `guard` counts from 0. */
bool force_miss(struct Tracer *t, GuardCache *c, const GuardProg **prog, u32 *guard);

#endif
