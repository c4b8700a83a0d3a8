/* repr_window.h — parts of an array that a function which calls itself is given. */
#ifndef WEFT_TRACER_REPR_WINDOW_H
#define WEFT_TRACER_REPR_WINDOW_H

#include "tracer/record/record.h"

Outcome rec_window_of(Recorder *r, Av array, Av *out); /* all of an array of one axis */
bool rec_is_window_base(Recorder *r, Av a); /* an array of one axis, which parts can be of */

#endif
