/* record_sizes.h — sizes that are known at run time only: symbols that a value carries, the checks that stand for
 * what is asked of them, masks as places, and what is known of integers. */
#ifndef WEFT_TRACER_RECORD_SIZES_H
#define WEFT_TRACER_RECORD_SIZES_H

#include "lang/ranges.h"
#include "tracer/record/record.h"

/* The DimCtx of the instruction that is recorded: what it asks of sizes becomes guards, of unbacked ones checks. */
void rec_dims_init(Recorder *r, GuardDims *d, const char *what);
/* What to do when a rule said no: out of memory, not known, or an error of the program. */
Outcome rec_dims_no(Recorder *r, const GuardDims *d, const char *what, const RuleError *err);
void rec_carry(Recorder *r, Dim d, ValueId carrier, u32 axis);
Outcome rec_anchor(Recorder *r, Dim d); /* marks where checks of an unbacked symbol will stand */
/* where what checks say of it holds: what is made in an arm is another symbol beside the arm */
bool rec_spoken_of(const Recorder *r, u32 sym);
/* DIM_FRESH among the dimensions of an operation's results becomes one new size, *d (0: there was none). The anchor
 * comes when the node stands: rec_freshen, graph_node, rec_settle. */
Outcome rec_freshen(Recorder *r, ArrayType *results, u32 count, Dim *d);
Outcome rec_settle(Recorder *r, NodeId node, Dim d);
/* A result of a construct: sizes of the axes in `free`, and those made inside it, become ones that the result
 * carries. */
Outcome rec_escape(Recorder *r, ValueId result, u32 free);
/* its type speaks of a size that is made inside a block that the cursor is not in */
bool rec_inner_size(Recorder *r, ValueId v);
/* The places where a mask is true, one array for each of its axes; asked again, the same ones. */
Outcome rec_mask_places(Recorder *r, ValueId mask, ValueId *places);
/* What is known of a rank-0 integer. */
IntRange rec_range(Recorder *r, ValueId v);
/* An end of a slice with a positive step over an axis of size n, as a size that is negative for certain or never. */
/* Guards: the integers of the program in d are like sizes, neither negative nor huge, if they are now. False: memory
 * was refused. */
bool rec_like_sizes(Recorder *r, Dim d);
/* An end that moves with a loop stays within an axis if it does in the last trip: proved, or by a guard that holds now.
 * False: memory was refused. */
bool rec_in_axis(Recorder *r, Dim end, Dim axis);
Outcome rec_bound(Recorder *r, Av a, Dim n, Dim *out);
/* An integer where a size is asked for: checked to be none below 0. */
Outcome rec_size_from(Recorder *r, Av a, i64 least, Dim *out); /* guarded to be no less */
Outcome rec_size(Recorder *r, Av a, Dim *out);

#endif
