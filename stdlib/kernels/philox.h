/* philox.h — the block function Philox 4x32-10 (Salmon et al., SC 2011; constants from its table 2). */
#ifndef WEFT_STDLIB_PHILOX_H
#define WEFT_STDLIB_PHILOX_H

#include "parser/base.h"

static inline void philox_words(const u32 counter[4], const u32 key[2], u32 out[4]) {
  u32 c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
  for (u32 round = 0; round < 10; round++) {
    u64 a = (u64)0xD2511F53u * c0, b = (u64)0xCD9E8D57u * c2;
    u32 n0 = (u32)(b >> 32) ^ c1 ^ k0, n2 = (u32)(a >> 32) ^ c3 ^ k1;
    c1 = (u32)b;
    c3 = (u32)a;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

/* Block `block` of the stream of a seed. */
static inline void philox(u64 seed, u64 stream, u64 block, u32 out[4]) {
  const u32 counter[4] = {(u32)block, (u32)(block >> 32), (u32)stream, (u32)(stream >> 32)};
  const u32 key[2] = {(u32)seed, (u32)(seed >> 32)};
  philox_words(counter, key, out);
}

#endif
