/* pairs.h — build tools: texts packed by pairs of bytes (parser/base.h takes them apart). */
#ifndef WEFT_JIT_HOST_PAIRS_H
#define WEFT_JIT_HOST_PAIRS_H

#include "parser/base.h"

/* The pair that is most frequent becomes one byte that the text has not, and so on. Zeros end texts: no pair has one. starts: places
 * in the text that move with it. */
void pairs_pack(u8 *bytes, size_t *len, size_t *starts, u32 count, u8 pairs[256][2]);

/* The same as C: the table of pairs under a name, and bytes as string literals in lines. */
void pairs_write(const u8 pairs[256][2], const char *name, Buf *out);
void pairs_write_text(const u8 *bytes, size_t len, Buf *out);

#endif
