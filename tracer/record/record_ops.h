/* record_ops.h — operators and array operations of the trace: folding, sizes, nodes with inferred types. */
#ifndef WEFT_TRACER_RECORD_OPS_H
#define WEFT_TRACER_RECORD_OPS_H

#include "tracer/record/record.h"

Outcome rec_binary(Recorder *r, u32 bc, Av a, Av b, Av *out);
u32 rec_operation_of(u32 bc); /* the operation of an operator; 0: it is none of two arrays */
/* Of two integers: the second is none that the operation refuses, else compiled code leaves by the safe exit. */
Outcome rec_integer_check(Recorder *r, u32 op, const GraphArg *args);
Outcome rec_unary(Recorder *r, u32 bc, Av a, Av *out);
Outcome rec_op(Recorder *r, u32 op, const Av *params, Av *out); /* params by signature; 0 or a hole: not given */
Av rec_listed(Recorder *r, Av a); /* an array that was just stacked of integers as the list of them; 0: out of memory */
Outcome rec_truth(Recorder *r, Av a, Av *out); /* a constant bool or a bool[] number */
/* A weak integer that takes a strong integer dtype: checked that it fits, and converted. Others stay. */
Outcome rec_fit_weak(Recorder *r, ValueId *v, u32 dtype);

#endif
