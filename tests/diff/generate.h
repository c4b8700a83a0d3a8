/* generate.h — random Weft programs: typed, so that most run to their end, and made of what tracing finds hard. */
#ifndef WEFT_TESTS_GENERATE_H
#define WEFT_TESTS_GENERATE_H

#include <stdbool.h>
#include <stdint.h>

/* The program of a seed; the same for the same seed. malloc'ed. Its value is a list of all that it computed. */
char *generate_program(uint64_t seed, bool probes); /* probes: of calls of every built-in under transforms, too */

#endif
