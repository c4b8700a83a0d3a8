/* generate.h — random Weft programs: typed, so that most run to their end, and made of what tracing finds hard. */
#ifndef WEFT_TESTS_GENERATE_H
#define WEFT_TESTS_GENERATE_H

#include <stdint.h>

/* The program of a seed; the same for the same seed. malloc'ed. Its value is a list of all that it computed. */
char *generate_program(uint64_t seed);

#endif
