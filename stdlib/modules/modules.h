/* modules.h — functions of the library that are written in Weft: the .weft files of this folder, compiled by the
 * build. */
#ifndef WEFT_STDLIB_MODULES_MODULES_H
#define WEFT_STDLIB_MODULES_MODULES_H

#include "stdlib/stdlib.h"

extern const Library library_modules; /* build/gen/modules.c */

#endif
