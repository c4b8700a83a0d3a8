/* backends.h — backends that a host registers (see weft.h, WeftBackend): what weft.c needs of them. */
#ifndef WEFT_API_BACKENDS_H
#define WEFT_API_BACKENDS_H

#include "api/inner.h"

bool backends_add(WeftVM *w, const WeftBackend *given, size_t count) MUST_USE; /* false: memory, or not as weft.h says */
void backends_free(WeftVM *w); /* behind the VM */

#endif
