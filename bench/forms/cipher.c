/* cipher.c — shifts the letters of a text by three. sizes: 60000 50 */
#include "bench/forms/form.h"
static char *t, *u;
static void set_up(i64 n) {
  t = ROOM(char, n), u = ROOM(char, n);
  for (i64 i = 0; i < n; i++) t[i] = (char)(noise(i, 1, 6) ? 'a' + noise(i, 2, 26) : ' ');
}
static void work(i64 n) {
  for (i64 i = 0; i < n; i++) u[i] = (char)(t[i] >= 'a' && t[i] <= 'z' ? (t[i] - 'a' + 3) % 26 + 'a' : t[i]);
}
static double result(i64 n) {
  double s = 0;
  CHECK(s, u, n);
  return s;
}
