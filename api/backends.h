/* backends.h — what a host registers (see weft.h, WeftBackend, WeftDevice): what weft.c needs of it. */
#ifndef WEFT_API_BACKENDS_H
#define WEFT_API_BACKENDS_H

#include "api/inner.h"

/* false: memory, or not as weft.h says */
bool backends_add(WeftVM *w, const WeftBackend *given, size_t count) MUST_USE;
void backends_free(WeftVM *w); /* behind the VM */
bool device_add(WeftVM *w, const WeftDevice *d) MUST_USE; /* devices.c; NULL is fine. False: not as weft.h says */

#endif
