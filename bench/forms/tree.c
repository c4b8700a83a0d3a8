/* tree.c — makes a binary tree and sums it. sizes: 12 4 */
#include "bench/forms/form.h"
typedef struct Tree {
  struct Tree *left, *right;
  i64 value;
} Tree;
static i64 total;
static void set_up(i64 n) { (void)n; }
static Tree *make(i64 depth, i64 value) {
  Tree *t = malloc(sizeof *t);
  if (!t) exit(1);
  *t = (Tree){.value = value};
  if (depth > 0) t->left = make(depth - 1, 2 * value % 1009), t->right = make(depth - 1, (2 * value + 1) % 1009);
  return t;
}
static i64 add(const Tree *t) { return t ? t->value + add(t->left) + add(t->right) : 0; }
static void drop(Tree *t) {
  if (t) drop(t->left), drop(t->right), free(t);
}
static void work(i64 n) {
  Tree *t = make(n, 1);
  total = add(t);
  drop(t);
}
static double result(i64 n) { return (void)n, (double)total; }
