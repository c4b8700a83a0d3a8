/* words.c — how many words a text has, and how often it has each letter. sizes: 60000 50 */
#include "bench/forms/form.h"
static char *t;
static i64 c[27];
static void set_up(i64 n) {
  t = ROOM(char, n);
  for (i64 i = 0; i < n; i++) t[i] = (char)(noise(i, 1, 6) ? 'a' + noise(i, 2, 26) : ' ');
}
static void work(i64 n) {
  memset(c, 0, sizeof c);
  int inside = 0;
  for (i64 i = 0; i < n; i++) {
    if (t[i] == ' ') inside = 0;
    else c[26] += !inside, inside = 1, c[t[i] - 'a']++;
  }
}
static double result(i64 n) {
  (void)n;
  double s = 0;
  CHECK(s, c, 27);
  return s;
}
