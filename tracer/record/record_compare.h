/* record_compare.h — comparisons of what is no number in the trace: trees, texts and their characters, `in`. */
#ifndef WEFT_TRACER_RECORD_COMPARE_H
#define WEFT_TRACER_RECORD_COMPARE_H

#include "tracer/record/record.h"

/* cells of the tables of representations */
Outcome rec_text_equal(Recorder *r, Av a, Av b, Av *out);
Outcome rec_itself_equal(Recorder *r, Av a, Av b, Av *out);
Outcome rec_columns_equal(Recorder *r, Av a, Av b, Av *out);
Outcome rec_text_contains(Recorder *r, Av a, Av x, Av *out);
Outcome rec_text_add(Recorder *r, Av a, Av b, Av *out);
/* what they are made of */
Outcome rec_equal_part(Recorder *r, Av a, Av b, Av *all);
Outcome rec_and_also(Recorder *r, Av *acc, Av x);
Outcome rec_or_else(Recorder *r, Av *acc, Av x); /* of bools */
Outcome rec_in_keys(Recorder *r, Av a, const Shape *s, Av *out); /* a text that has a number, among keys */
Av rec_text_number(Recorder *r, Av a); /* a number that two texts share when they are equal alone; 0: unknown */
Outcome rec_equal(Recorder *r, Av a, Av b, Av *out); /* structural, as `==` is of anything but two arrays */
Outcome rec_text_order(Recorder *r, u32 bc, Av a, Av b, Av *out);
Outcome rec_member(Recorder *r, Av a, Av b, Av *out);

#endif
