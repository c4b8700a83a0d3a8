/* pairs.c — texts packed by pairs of bytes (see pairs.h). */
#include "jit/host/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pairs_pack(u8 *bytes, size_t *len, size_t *starts, u32 count, u8 pairs[256][2]) {
  static u32 seen[65536];
  bool taken[256] = {true};
  for (size_t i = 0; i < *len; i++) taken[bytes[i]] = true;
  memset(pairs, 0, 512);
  u32 lengths[256];
  for (u32 i = 0; i < 256; i++) lengths[i] = 1;
  for (u32 p = 0; p < 256; p++) {
    u32 best = 0;
    if (taken[p]) continue;
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i + 1 < *len; i++)
      if (bytes[i] && bytes[i + 1] && lengths[bytes[i]] + lengths[bytes[i + 1]] <= TEXT_UNPACKED_MAX) seen[bytes[i] << 8 | bytes[i + 1]]++;
    for (u32 k = 1; k < 65536; k++)
      if (seen[k] > seen[best]) best = k;
    if (!best) return;
    pairs[p][0] = (u8)(best >> 8);
    pairs[p][1] = (u8)best;
    lengths[p] = lengths[best >> 8] + lengths[best & 255];
    size_t to = 0;
    u32 part = 0;
    for (size_t i = 0; i < *len; i++) {
      if (part < count && i == starts[part]) starts[part++] = to;
      bool pair = i + 1 < *len && bytes[i] == pairs[p][0] && bytes[i + 1] == pairs[p][1];
      bytes[to++] = pair ? (u8)p : bytes[i];
      i += pair;
    }
    *len = to;
  }
}

void pairs_write(const u8 pairs[256][2], const char *name, Buf *out) {
  buf_printf(out, "const u8 %s[256][2] = {", name);
  for (u32 i = 0; i < 256; i++) buf_printf(out, "{%u, %u},%s", pairs[i][0], pairs[i][1], i % 16 == 15 ? "\n  " : " ");
  buf_puts(out, "};\n");
}

void pairs_write_text(const u8 *bytes, size_t len, Buf *out) {
  for (size_t i = 0; i < len; i++) {
    if (i % 32 == 31) buf_puts(out, "\"\n    \"");
    u8 b = bytes[i];
    buf_printf(out, b >= 32 && b < 127 && b != '\\' && b != '"' && b != '?' ? "%c" : "\\%03o", b);
  }
}
