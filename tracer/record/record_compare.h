/* record_compare.h — comparisons of what is no number in the trace: trees, texts and their characters, `in`. */
#ifndef WEFT_TRACER_RECORD_COMPARE_H
#define WEFT_TRACER_RECORD_COMPARE_H

#include "tracer/record/record.h"

Outcome rec_equal(Recorder *r, Av a, Av b, Av *out); /* structural, as `==` is of anything but two arrays */
Outcome rec_text_order(Recorder *r, u32 bc, Av a, Av b, Av *out);
Outcome rec_member(Recorder *r, Av a, Av b, Av *out);

#endif
