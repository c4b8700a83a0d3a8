/* code_cache.h — inside gpu/: machine code of kernels, kept in a folder from one process to the next.
 *
 * An entry is a file that holds the text the code was made of, the code, and a checksum of both. Its name is a checksum
 * of the text, so that two texts may meet in one entry: the later one replaces it. Whatever goes wrong (no folder, a
 * full disk, an entry that is broken or is another's) means that the code is not there, and no more. */
#ifndef WEFT_GPU_CODE_CACHE_H
#define WEFT_GPU_CODE_CACHE_H

#include "parser/base.h"

typedef struct CodeCache {
  const char *folder; /* NULL: nothing is kept */
  u64 most;           /* bytes of all entries; of those beyond it the ones that were not used for longest go */
  u64 written;        /* bytes of entries made since the folder was last looked through */
  bool ready;         /* the folder is there, and is this user's alone to write */
  bool looked;        /* it was looked through */
} CodeCache;

enum { CODE_CACHE_MOST = 256 << 20 };

void code_cache_init(CodeCache *c, const char *folder, u64 most); /* borrows folder; NULL or "": nothing is kept */
/* True: *code, of *bytes bytes, was made of this text; owned, from `a`. Where memory is refused it is not there. */
bool code_cache_find(CodeCache *c, Allocator *a, const char *text, size_t length, void **code, size_t *bytes);
void code_cache_keep(CodeCache *c, Allocator *a, const char *text, size_t length, const void *code, size_t bytes);
void code_cache_drop(CodeCache *c, const char *text, size_t length); /* its code is of no use */

#endif
