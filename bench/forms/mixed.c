/* mixed.c — the hash FNV-1a of bytes, in u32. sizes: 200000 40 */
#include "bench/forms/form.h"
static u8 *p;
static u32 h;
static void set_up(i64 n) {
  p = ROOM(u8, n);
  for (i64 i = 0; i < n; i++) p[i] = (u8)noise(i, 1, 256);
}
static void work(i64 n) {
  h = 2166136261u;
  for (i64 i = 0; i < n; i++) h = (h ^ p[i]) * 16777619u;
}
static double result(i64 n) { return (void)n, (double)h; }
