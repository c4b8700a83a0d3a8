/* crc.c — a checksum of bytes by a table (CRC-32). sizes: 100000 50 */
#include "bench/forms/form.h"
static u8 *x;
static u32 table[256], sum;
static void set_up(i64 n) {
  x = ROOM(u8, n);
  for (i64 i = 0; i < n; i++) x[i] = (u8)noise(i, 1, 256);
}
static void work(i64 n) {
  for (u32 i = 0; i < 256; i++) {
    u32 c = i;
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
    table[i] = c;
  }
  u32 c = 0xffffffffu;
  for (i64 i = 0; i < n; i++) c = table[(c ^ x[i]) & 255] ^ c >> 8;
  sum = ~c;
}
static double result(i64 n) { (void)n; return (double)sum; }
