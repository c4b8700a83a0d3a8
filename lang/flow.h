/* flow.h — inside lang/: the blocks and live sets of a function, as live.c makes them. */
#ifndef WEFT_LANG_FLOW_H
#define WEFT_LANG_FLOW_H

#include "lang/bytecode.h"

struct Liveness {
  const Proto *p;
  Allocator *alloc;
  u32 ncode;
  u32 words;     /* u64 words of a set of registers */
  u32 nblocks;
  u32 *starts;   /* first pc of each block, then ncode */
  u32 *block_of; /* pc -> block */
  u32 *handler;  /* block -> pc of the handler that guards it, or UINT32_MAX */
  u64 *in;       /* per block: live before its first pc */
  u64 *work;     /* one set */
};

/* liveness_new, which ends with the compilation it is part of; NULL then, too. */
Liveness *liveness_within(const Proto *p, Allocator *alloc, Toil *t);

#endif
