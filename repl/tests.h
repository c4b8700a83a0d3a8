/* tests.h — `weft test FILE…` and `weft doc NAME|FILE`. */
#ifndef WEFT_REPL_TESTS_H
#define WEFT_REPL_TESTS_H

#include "api/weft.h"

typedef WeftVM *(*MakeVm)(void *context); /* what Ctrl-C stops; NULL, said: there is none */

/* Runs the functions of each file whose names begin with `test_`, and the examples in its `##` lines. The exit status:
 * 1 when one fails, or there is none. */
int test_files(int argc, char **argv, MakeVm make, void *context);
/* Tells of functions of the library, or of a file. The exit status: 1 when a name is not known. */
int tell_docs(int argc, char **argv, MakeVm make, void *context);

#endif
