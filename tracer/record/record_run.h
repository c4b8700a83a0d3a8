/* record_run.h — the recorder's loop: one step per instruction, speculation, and whole traces. */
#ifndef WEFT_TRACER_RECORD_RUN_H
#define WEFT_TRACER_RECORD_RUN_H

#include "tracer/record/record.h"

Outcome rec_stuck(Recorder *r, u32 reason, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Stuck: `what` has more than a row of tunables.def allows, which the text names. */
#define rec_over(r, row, reason, what) rec_over_row(r, #row, (r)->vm->tunables.row, reason, what)
Outcome rec_over_row(Recorder *r, const char *row, i64 limit, u32 reason, const char *what);
bool rec_is_late(Recorder *r); /* its time is used up: it fails */
RecMark rec_mark(Recorder *r);
void rec_rollback(Recorder *r, const RecMark *m);
bool rec_save(Recorder *r, RecState *s);
void rec_restore(Recorder *r, const RecState *s); /* frames above are dropped */
/* undoes what got stuck, keeps its reason; frees s */
void rec_end_try(Recorder *r, const RecMark *m, RecState *s, Outcome o);
void rec_state_free(Recorder *r, RecState *s);
Outcome rec_run(Recorder *r, const Scope *s);
void recorder_free(Recorder *r); /* all but the graph */
u32 rec_loop_extent(const Proto *p, u32 head); /* the loop whose head this is, 0: none */
Outcome rec_do_return(Recorder *r, const Scope *s, Av v);
WeftStatus record_trace(Vm *vm, Frame *frame, RecordStart start, const char *name, RecordResult *out) MUST_USE;

#endif
