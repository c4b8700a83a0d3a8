/* checksum.c — the sum CRC-32 of bytes, by a table. sizes: 100000 40 */
#include "bench/forms/form.h"
static u8 *p;
static u32 table[256], c;
static void set_up(i64 n) {
  p = ROOM(u8, n);
  for (i64 i = 0; i < n; i++) p[i] = (u8)noise(i, 1, 256);
}
static void work(i64 n) {
  for (u32 i = 0; i < 256; i++) {
    u32 t = i;
    for (int k = 0; k < 8; k++) t = t & 1 ? t >> 1 ^ 0xedb88320u : t >> 1;
    table[i] = t;
  }
  c = 0xffffffffu;
  for (i64 i = 0; i < n; i++) c = table[(c ^ p[i]) & 255] ^ c >> 8;
}
static double result(i64 n) { return (void)n, (double)(c ^ 0xffffffffu); }
