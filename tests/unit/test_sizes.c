/* test_sizes.c — symbolic sizes: canonical form, ranges, proofs, substitution, rollback, postfix code; and a random
 * comparison of expressions with their plain evaluation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "guards/sizes.h"
#include "tests/unit/memory.h"

typedef struct Fixture {
  SizePool p;
  Dim n, m, k, u;
} Fixture;

static int setup(void **state) {
  static Fixture f;
  size_init(&f.p, allocator_system());
  f.n = size_sym(&f.p, "n", 1, 0, SIZE_LIMIT - 1, 64);
  f.m = size_sym(&f.p, "m", 2, 0, 1 << 20, 3);
  f.k = size_sym(&f.p, "k", 3, -100, 100, -7);
  f.u = size_unbacked(&f.p, NULL, 9, 0, 1000);
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  size_free(&((Fixture *)*state)->p);
  return 0;
}

static void expect_text(SizePool *p, Dim d, const char *want) {
  Buf b;
  buf_init(&b, allocator_system());
  size_print(p, d, &b);
  assert_string_equal(buf_text(&b), want);
  Dim back;
  const char *end = size_parse(p, b.data, b.data + b.len, &back);
  assert_ptr_equal(end, b.data + b.len);
  assert_true(back == d);
  buf_free(&b);
}

static void canonical_sums(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  assert_true(size_add(p, f->n, f->m) == size_add(p, f->m, f->n));
  assert_true(size_sub(p, size_add(p, f->n, 3), 3) == f->n);
  assert_true(size_sub(p, f->n, f->n) == 0);
  Dim a = size_mul(p, size_add(p, f->n, 1), size_add(p, f->n, -1 + 2)); /* (n + 1)^2 */
  Dim b = size_add(p, size_add(p, size_mul(p, f->n, f->n), size_mul(p, 2, f->n)), 1);
  assert_true(a == b);
  expect_text(p, a, "2*n + n*n + 1");
  expect_text(p, size_sub(p, size_mul(p, 2, f->n), size_mul(p, 3, f->m)), "2*n - 3*m");
  expect_text(p, size_sub(p, 0, f->n), "-n");
  expect_text(p, size_sub(p, -1 + 1, size_mul(p, f->n, f->m)), "-(n*m)");
  expect_text(p, size_const(p, -5), "-5");
  expect_text(p, size_add(p, f->u, 1), "u3 + 1");
}

static void division(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  assert_true(size_floordiv(p, size_mul(p, f->m, 6), 3) == size_mul(p, f->m, 2));
  assert_true(size_floordiv(p, size_add(p, size_mul(p, f->m, 6), 2), 3) == size_mul(p, f->m, 2));
  expect_text(p, size_ceildiv(p, f->m, 2048), "(m + 2047) // 2048");
  assert_true(size_floordiv(p, size_floordiv(p, f->n, 4), 3) == size_floordiv(p, f->n, 12));
  assert_true(size_floordiv(p, size_mul(p, 4, f->m), 6) == size_floordiv(p, size_mul(p, 2, f->m), 3));
  assert_true(size_mod(p, size_add(p, size_mul(p, f->m, 8), 5), 4) == 1);
  expect_text(p, size_mod(p, f->n, 4), "n % 4");
  assert_true(size_mod(p, size_mod(p, f->n, 4), 4) == size_mod(p, f->n, 4));
  /* nothing is simplified where the operand may leave i64 */
  expect_text(p, size_floordiv(p, size_mul(p, 4, f->n), 4), "(4*n) // 4");
  /* a divisor that may be zero is kept, one that may not cancels */
  expect_text(p, size_floordiv(p, size_mul(p, f->m, f->u), f->u), "(m*u3) // u3");
  assert_true(size_assume(p, REL_lt, 0, f->u));
  assert_true(size_floordiv(p, size_mul(p, f->m, f->u), f->u) == f->m);
  assert_true(size_floordiv(p, f->m, 0) == DIM_NONE);
  assert_true(size_floordiv(p, size_const(p, -7), 2) == size_const(p, -4));
  assert_true(size_mod(p, size_const(p, -7), 2) == 1);
  assert_true(size_mod(p, 7, size_const(p, -2)) == size_const(p, -1));
}

static void extremes(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  assert_true(size_max(p, f->n, 0) == f->n);
  assert_true(size_min(p, f->m, size_add(p, f->m, 1)) == f->m);
  assert_true(size_min(p, f->n, f->m) == size_min(p, f->m, f->n));
  expect_text(p, size_min(p, size_min(p, f->n, f->m), 9), "min(9, n, m)");
  expect_text(p, size_max(p, f->k, 0), "max(0, k)");
}

static void proofs(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  assert_int_equal(size_prove(p, REL_le, 0, f->n), TRUTH_always);
  assert_int_equal(size_prove(p, REL_lt, f->n, 0), TRUTH_never);
  assert_int_equal(size_prove(p, REL_eq, f->n, f->m), TRUTH_unknown);
  assert_int_equal(size_prove(p, REL_eq, f->m, size_add(p, f->m, 1)), TRUTH_never);
  assert_int_equal(size_prove(p, REL_lt, f->m, size_add(p, f->m, 1)), TRUTH_always);
  assert_int_equal(size_prove(p, REL_eq, size_add(p, size_mul(p, 2, f->m), 1), size_mul(p, 2, f->k)), TRUTH_never);
  assert_int_equal(size_prove(p, REL_le, f->k, 100), TRUTH_always);
  assert_int_equal(size_prove(p, REL_le, size_mul(p, f->k, f->k), 10000), TRUTH_always);
  assert_int_equal(size_prove(p, REL_le, 0, size_mul(p, f->k, f->k)), TRUTH_always);
  assert_int_equal(size_prove(p, REL_lt, size_mod(p, f->n, 7), 7), TRUTH_always);
  /* beyond i64 order proves nothing: the program's own integers wrap there */
  Dim wide = size_sym(p, "w", 0, INT64_MIN, INT64_MAX, 0);
  assert_int_equal(size_prove(p, REL_lt, wide, size_add(p, wide, 1)), TRUTH_unknown);
  assert_int_equal(size_prove(p, REL_eq, wide, size_add(p, wide, 1)), TRUTH_never);
  /* facts */
  assert_true(size_assume(p, REL_le, f->m, size_sub(p, f->k, 2)));
  assert_int_equal(size_prove(p, REL_lt, f->m, f->k), TRUTH_always);
  assert_int_equal(size_prove(p, REL_le, f->k, f->m), TRUTH_never);
  assert_int_equal(size_prove(p, REL_eq, f->k, f->m), TRUTH_never);
  assert_false(size_assume(p, REL_eq, f->k, f->m));
}

/* The number of items of [from:to], by the rules of slices: negative bounds count from the end, then both are
 * clamped. */
static Dim slice_size(SizePool *p, Dim n, Dim from, Dim to) {
  i64 c;
  if (size_is_const(p, from, &c) && c < 0) from = size_add(p, n, from);
  if (size_is_const(p, to, &c) && c < 0) to = size_add(p, n, to);
  from = size_min(p, n, size_max(p, 0, from));
  to = size_min(p, n, size_max(p, 0, to));
  return size_max(p, 0, size_sub(p, to, from));
}

static void slices(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim n = f->n, u = f->u;
#define CUT(k) size_max(p, 0, size_sub(p, n, k))
#define AT(c) size_const(p, c)
  assert_true(size_same(p, slice_size(p, n, 1, AT(-1)), CUT(2)));
  assert_true(size_same(p, slice_size(p, n, 2, AT(-2)), CUT(4)));
  assert_true(size_same(p, slice_size(p, n, 1, n), CUT(1)));
  assert_true(size_same(p, slice_size(p, n, 2, n), slice_size(p, n, 0, AT(-2))));
  assert_true(size_same(p, slice_size(p, n, 2, n), slice_size(p, n, 1, AT(-1))));
  assert_true(size_same(p, slice_size(p, n, 0, 3), size_min(p, n, 3)));
  assert_true(size_same(p, slice_size(p, n, AT(-3), n), size_min(p, n, 3)));
  assert_true(size_same(p, slice_size(p, n, AT(-3), AT(-1)), size_min(p, 2, CUT(1))));
  assert_true(size_same(p, slice_size(p, slice_size(p, n, 1, n), 0, AT(-1)), CUT(2)));
  assert_true(size_same(p, slice_size(p, slice_size(p, n, 1, AT(-1)), 1, AT(-1)), CUT(4)));
  assert_true(size_same(p, slice_size(p, n, 0, u), size_min(p, n, u)));
  assert_true(size_same(p, slice_size(p, n, u, n), size_max(p, 0, size_sub(p, n, u))));
  assert_true(size_same(p, size_add(p, slice_size(p, n, 0, u), slice_size(p, n, u, n)), n));
  assert_true(size_same(p, slice_size(p, n, u, size_add(p, u, 1)), size_min(p, 1, size_max(p, 0, size_sub(p, n, u)))));
  /* the graphs of the stencils had this one written in two ways */
  Dim text, plain = CUT(2);
  const char *form = "max(0, -min(1, n) + min(n, max(0, n - 1)))";
  assert_non_null(size_parse(p, form, form + strlen(form), &text));
  assert_true(size_same(p, text, plain));
  /* not so for every n, and for none */
  assert_int_equal(size_prove(p, REL_eq, slice_size(p, n, 1, AT(-1)), size_sub(p, n, 2)), TRUTH_unknown);
  assert_int_equal(size_prove(p, REL_eq, slice_size(p, n, 0, 3), size_min(p, n, 4)), TRUTH_unknown);
  assert_int_equal(size_prove(p, REL_eq, size_sub(p, n, slice_size(p, n, 1, n)), 2), TRUTH_never);
  assert_int_equal(size_prove(p, REL_ne, size_sub(p, n, slice_size(p, n, 1, n)), 2), TRUTH_always);
  assert_true(size_assume(p, REL_lt, u, n));
  assert_true(size_same(p, slice_size(p, n, u, size_add(p, u, 1)), 1));
#undef CUT
#undef AT
}

/* Every two slices with small bounds: proved the same exactly where they are, whatever the length. */
/* What was known of a part's size while little was known of the whole is known of the simpler form, too. */
static void equal_parts_of_a_size_that_narrows(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim all = size_add(p, size_mul(p, 2, f->n), 1), part = size_max(p, 0, size_sub(p, all, 8));
  assert_int_equal(size_prove(p, REL_eq, part, f->m), TRUTH_unknown);
  assert_true(size_assume(p, REL_eq, size_mul(p, 3, part), size_mul(p, 2, size_mul(p, f->m, f->m))));
  assert_true(size_assume(p, REL_le, 20, f->n));
  Dim simple = size_max(p, 0, size_sub(p, all, 8));
  assert_true(simple != part);
  assert_int_equal(size_prove(p, REL_eq, size_mul(p, 3, simple), size_mul(p, 2, size_mul(p, f->m, f->m))),
                   TRUTH_always);
}

static void slices_beside_each_other(void **state) {
  SizePool *p = &((Fixture *)*state)->p;
  Dim n = ((Fixture *)*state)->n, made[36];
  u32 count = 0;
  for (i64 from = -2; from <= 3; from++)
    for (i64 to = -2; to <= 3; to++) made[count++] = slice_size(p, n, size_const(p, from), size_const(p, to));
  for (u32 i = 0; i < count; i++)
    for (u32 k = 0; k < i; k++) {
      bool same = true;
      for (i64 len = 0; len < 12; len++) {
        i64 a, b = 0, syms[] = {len, 0, 0, 0};
        assert_true(size_eval(p, made[i], syms, &a) && size_eval(p, made[k], syms, &b));
        same &= a == b;
      }
      assert_int_equal(size_same(p, made[i], made[k]), same);
    }
}

/* A fact that says a range of the replaced symbol already does not keep the range from its replacement. */
/* n < m, and m turns out to be 1: n is 0. A check at run time says nothing of sizes that are there on entry. */
static void a_known_order_narrows(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  assert_true(size_assume(p, REL_lt, f->n, f->m));
  SizeMark before = size_mark(p);
  assert_true(size_assume(p, REL_eq, f->m, 1));
  assert_int_equal(size_range(p, f->n).hi, 0);
  assert_int_equal(size_prove(p, REL_eq, f->n, 0), TRUTH_always);
  size_rollback(p, before);
  assert_true(size_range(p, f->n).hi > 1);
  Dim v = size_unbacked(p, NULL, 10, 0, 1000);
  assert_true(size_assume(p, REL_le, size_add(p, v, f->n), 5));
  assert_true(size_assume(p, REL_eq, v, 2));
  assert_true(size_range(p, f->n).hi > 5);
}

static void an_equation_that_one_case_has(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim tail = size_max(p, 0, size_sub(p, f->n, size_min(p, 1, f->n)));
  assert_true(size_assume(p, REL_eq, tail, f->n));
  assert_int_equal(size_prove(p, REL_eq, f->n, 0), TRUTH_always);
  assert_int_equal(size_prove(p, REL_eq, tail, 0), TRUTH_always);
  Dim v = size_unbacked(p, NULL, 10, 0, 1000), low = size_min(p, v, f->m);
  assert_true(size_assume(p, REL_eq, low, size_const(p, 3))); /* either may be 3 */
  assert_int_equal(size_range(p, f->m).hi, 1 << 20);
}

static void a_remainder_of_a_size_that_narrows(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim m = size_mod(p, size_sub(p, f->k, 2), 7);
  Dim a = size_max(p, 0, size_sub(p, size_min(p, 3, m), 2)), b = size_max(p, 0, size_sub(p, m, 2));
  assert_true(size_prove(p, REL_eq, a, b) == TRUTH_unknown);
  assert_true(size_assume(p, REL_le, 2, f->k) && size_assume(p, REL_le, f->k, 5));
  assert_int_equal(size_prove(p, REL_eq, a, b), TRUTH_always);
}

/* What was made before it was known: `x[n % 5 - 1:]` may tell that n % 5 is 0. */
static void a_part_that_facts_make_one_number(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim rest = size_mod(p, f->n, 5), low = size_min(p, f->m, f->k);
  Dim a = size_max(p, 0, size_sub(p, low, size_min(p, f->m, rest)));
  Dim quotient = size_floordiv(p, f->k, 3), product = size_mul(p, f->k, f->m);
  Dim b = size_add(p, size_min(p, f->m, quotient), size_max(p, f->k, product));
  assert_true(size_prove(p, REL_eq, a, low) == TRUTH_unknown);
  assert_true(size_assume(p, REL_le, 0, f->k) && size_assume(p, REL_le, 0, f->m));
  assert_true(size_assume(p, REL_lt, size_sub(p, rest, size_const(p, 1)), 0));
  assert_int_equal(size_prove(p, REL_eq, a, low), TRUTH_always);
  assert_int_equal(size_prove(p, REL_eq, a, size_add(p, low, 1)), TRUTH_never);
  assert_true(size_assume(p, REL_eq, quotient, 0) && size_assume(p, REL_eq, product, 0));
  assert_int_equal(size_prove(p, REL_eq, b, f->k), TRUTH_always);
}

static void a_range_goes_along(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  assert_true(size_assume(p, REL_le, size_const(p, 17), size_max(p, 0, f->k))); /* a fact, and k's range */
  assert_true(size_assume(p, REL_eq, f->k, f->m));
  assert_int_equal(size_range(p, f->m).lo, 17);
  assert_int_equal(size_range(p, f->m).hi, 100);
  assert_int_equal(size_range(p, size_resolve(p, f->k)).lo, 17);
}

/* A case that what is known rules out says nothing. */
static void slices_where_a_case_cannot_be(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim tail = size_max(p, 0, size_sub(p, f->n, size_min(p, 1, f->n))),
      head = size_min(p, f->n, size_max(p, 0, size_sub(p, f->n, 1)));
  assert_int_equal(size_prove(p, REL_eq, tail, head), TRUTH_always);
  assert_true(size_assume(p, REL_le, 0, size_sub(p, size_mod(p, f->n, 5), 1))); /* so n is not 0 */
  assert_int_equal(size_prove(p, REL_eq, tail, head), TRUTH_always);
  assert_int_equal(size_prove(p, REL_eq, tail, size_add(p, head, 1)), TRUTH_never);
}

static void substitution(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim e = size_add(p, f->m, f->k);
  assert_true(size_assume(p, REL_eq, f->m, f->n));
  assert_true(size_same(p, f->m, f->n));
  assert_true(size_resolve(p, f->m) == f->n); /* the earlier symbol stays */
  assert_true(size_add(p, f->m, f->k) == size_add(p, f->n, f->k));
  assert_true(size_resolve(p, e) == size_add(p, f->n, f->k));
  assert_int_equal(size_prove(p, REL_le, f->n, 1 << 20), TRUTH_always); /* n has m's range now */
  assert_true(size_assume(p, REL_eq, size_mul(p, 2, f->u), size_mul(p, 4, f->n)));
  assert_true(size_resolve(p, f->u) == size_mul(p, 2, f->n)); /* the unbacked one goes */
  assert_true(size_assume(p, REL_eq, f->n, 5));
  assert_true(size_resolve(p, f->u) == 10);
  assert_true(size_resolve(p, f->m) == 5);
  assert_int_equal(size_prove(p, REL_eq, f->m, 6), TRUTH_never);
  i64 v;
  assert_true(size_hint(p, f->u, &v));
  assert_int_equal(v, 10);
}

static void equations_without_symbol(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim a = size_mul(p, f->n, f->m), b = size_mul(p, f->k, f->u);
  assert_true(size_assume(p, REL_eq, a, b));
  assert_int_equal(size_prove(p, REL_eq, b, a), TRUTH_always);
  assert_int_equal(size_prove(p, REL_eq, size_add(p, b, 1), a), TRUTH_never);
}

static void narrowing(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  assert_true(size_assume(p, REL_ne, f->n, 0));
  assert_int_equal(size_prove(p, REL_le, 1, f->n), TRUTH_always);
  assert_true(size_assume(p, REL_le, size_mul(p, 3, f->k), 10));
  assert_int_equal(size_prove(p, REL_le, f->k, 3), TRUTH_always);
  assert_true(size_assume(p, REL_lt, size_mul(p, -1 + 0, 0), size_add(p, f->k, 4)));
  assert_int_equal(size_range(p, f->k).lo, -3);
  assert_int_equal(size_range(p, f->k).hi, 3);
  assert_false(size_assume(p, REL_lt, 3, f->k));
}

/* What an extreme is told holds for the operands that it speaks of. */
static void extremes_narrow(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim seventeen = size_const(p, 17), longest = size_max(p, 0, f->k), least = size_min(p, f->m, size_const(p, 50));
  /* of before more was known */
  Dim rows = size_sub(p, size_floordiv(p, size_add(p, f->n, 15), 16), 1), made = size_max(p, 0, rows);
  assert_true(size_assume(p, REL_le, seventeen, f->n));
  assert_true(size_assume(p, REL_eq, f->n, longest)); /* n >= 17, so k is */
  assert_int_equal(size_range(p, f->k).lo, 17);
  assert_true(size_same(p, f->n, f->k));
  assert_true(size_same(p, made, rows));
  assert_true(size_same(p, size_max(p, 0, rows), rows));
  assert_false(size_assume(p, REL_lt, f->k, seventeen));
  assert_true(size_assume(p, REL_lt, least, 9)); /* 50 is not what is less than 9 */
  assert_int_equal(size_range(p, f->m).hi, 8);
  assert_true(size_assume(p, REL_le, size_max(p, f->m, f->k), 40)); /* both are */
  assert_int_equal(size_range(p, f->k).hi, 40);
  assert_true(size_assume(p, REL_le, size_max(p, f->k, f->u), 30)); /* a check at run time: of u alone */
  assert_int_equal(size_range(p, f->k).hi, 40);
  assert_int_equal(size_range(p, f->u).hi, 30);
  Dim floor = size_min(p, size_add(p, f->k, 1), f->m);
  assert_true(size_assume(p, REL_lt, size_const(p, 2), floor));
  assert_int_equal(size_range(p, f->m).lo, 3);
}

static void rollback(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim before = size_add(p, f->n, 1);
  SizeMark mark = size_mark(p);
  Dim x = size_sym(p, "n", 5, 0, 10, 1);
  expect_text(p, x, "n_2");
  for (i64 i = 0; i < 200; i++) assert_true(size_add(p, size_mul(p, f->n, i), x) != DIM_NONE); /* grows the table */
  assert_true(size_assume(p, REL_eq, f->m, x));
  assert_true(size_assume(p, REL_lt, size_mul(p, f->n, f->k), f->m));
  assert_true(size_assume(p, REL_le, f->n, 50));
  size_rollback(p, mark);
  SizeMark now = size_mark(p);
  assert_memory_equal(&mark, &now, sizeof mark);
  assert_true(size_resolve(p, f->m) == f->m);
  assert_true(size_sym(p, "n", 5, 0, 10, 1) == x); /* the ids come again */
  assert_int_equal(size_prove(p, REL_le, f->n, 50), TRUTH_unknown);
  assert_true(size_add(p, f->n, 1) == before);
  SizePool copy;
  assert_true(size_clone(&copy, p, allocator_system()));
  assert_true(size_add(&copy, f->n, 1) == before);
  expect_text(&copy, before, "n + 1");
  size_free(&copy);
}

static void answers(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim inner = size_max(p, 0, size_sub(p, f->n, 2));
  assert_int_equal(size_prove(p, REL_eq, inner, f->m), TRUTH_unknown);
  u32 asked = p->proofs;
  /* remembered, the other way round and denied as well */
  assert_int_equal(size_prove(p, REL_eq, inner, f->m), TRUTH_unknown);
  assert_int_equal(size_prove(p, REL_eq, f->m, inner), TRUTH_unknown);
  assert_int_equal(size_prove(p, REL_ne, inner, f->m), TRUTH_unknown);
  assert_int_equal(p->proofs, asked);
  SizeMark mark = size_mark(p);
  assert_true(size_assume(p, REL_lt, f->m, inner));
  assert_int_equal(size_prove(p, REL_eq, inner, f->m), TRUTH_never); /* more is known */
  assert_int_equal(size_prove(p, REL_ne, f->m, inner), TRUTH_always);
  size_rollback(p, mark);
  assert_int_equal(size_prove(p, REL_eq, inner, f->m), TRUTH_unknown); /* not any more */
  mark = size_mark(p);
  assert_true(size_assume(p, REL_eq, f->m, size_add(p, inner, 1)));
  assert_int_equal(size_prove(p, REL_eq, inner, f->m), TRUTH_never); /* not what was known the other time */
  size_rollback(p, mark);
  mark = size_mark(p);
  Dim made = size_add(p, f->n, 77);
  assert_int_equal(size_prove(p, REL_eq, made, f->n), TRUTH_never);
  assert_int_equal(size_prove(p, REL_eq, inner, f->m), TRUTH_unknown);
  size_rollback(p, mark);
  Dim again = size_mul(p, f->n, 3);
  assert_true(again == made); /* its number goes to another expression, */
  assert_int_equal(size_prove(p, REL_eq, again, f->n), TRUTH_unknown); /* which is asked about for the first time */
  asked = p->proofs;
  assert_int_equal(size_prove(p, REL_eq, f->n, again), TRUTH_unknown);
  assert_int_equal(p->proofs, asked);
}

static void limits(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim d = f->n, last = f->n;
  for (u32 i = 0; i < 500 && d != DIM_NONE; i++) {
    last = d;
    d = size_floordiv(p, size_add(p, size_mul(p, d, f->k), 1), f->m);
  }
  assert_true(d == DIM_NONE && last != DIM_NONE);
  assert_false(p->failed);
  assert_true(size_mul(p, size_const(p, INT64_MIN), 2) == DIM_NONE);
  Dim sum = 0;
  for (u32 i = 0; i < 100 && sum != DIM_NONE; i++) sum = size_add(p, sum, size_sym(p, NULL, 0, 0, 9, 1));
  assert_true(sum == DIM_NONE);
  Dim out;
  const char *bad[] = {"", "n +", "(n", "n n", "q", "min(n", "99999999999999999999",
                       "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((n"};
  for (u32 i = 0; i < COUNT_OF(bad); i++) {
    const char *end = bad[i] + strlen(bad[i]);
    assert_true(size_parse(p, bad[i], end, &out) != end || i == 0);
  }
  assert_null(size_parse(p, "", "", &out));
}

/* A size that is equated makes what was known of it something that cannot be. */
static void equating_contradicts_facts(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim even = size_mul(p, 2, size_floordiv(p, f->u, 2));
  assert_true(size_assume(p, REL_eq, even, f->u));
  SizeMark m = size_mark(p);
  assert_false(size_assume(p, REL_eq, f->u, 3));
  size_rollback(p, m);
  assert_true(size_assume(p, REL_eq, f->u, 4));
  size_rollback(p, m);
  assert_true(size_assume(p, REL_ne, size_mul(p, f->u, f->u), 16));
  assert_false(size_assume(p, REL_eq, f->u, 4));
}

/* Of two sizes that are no more than each other one is left, and a fact holds of multiples too. */
static void equal_by_both_orders_and_by_a_factor(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim least = size_min(p, f->n, f->m), even = size_mul(p, 2, size_floordiv(p, f->u, 2));
  assert_true(size_assume(p, REL_eq, least, f->m)); /* m <= n */
  assert_int_equal(size_prove(p, REL_eq, f->n, f->m), TRUTH_unknown);
  assert_true(size_assume(p, REL_eq, least, f->n)); /* n <= m */
  assert_int_equal(size_prove(p, REL_eq, f->n, f->m), TRUTH_always);
  assert_int_equal(size_prove(p, REL_eq, size_mul(p, 3, f->n), size_mul(p, 3, least)), TRUTH_always);
  assert_true(size_assume(p, REL_eq, even, f->u));
  assert_int_equal(size_prove(p, REL_eq, size_mul(p, 3, even), size_mul(p, 3, f->u)), TRUTH_always);
  assert_int_equal(size_prove(p, REL_eq, size_mul(p, 3, even), size_add(p, size_mul(p, 3, f->u), 1)), TRUTH_never);
  Dim r = size_sym(p, "r", 5, 0, 1 << 20, 3), s = size_sym(p, "s", 6, 0, 1 << 20, 3);
  assert_true(size_assume(p, REL_eq, size_mul(p, r, s), size_mul(p, 3, f->k)));
  assert_true(size_assume(p, REL_eq, s, 3)); /* so the factor comes later */
  assert_int_equal(size_prove(p, REL_eq, size_mul(p, 6, r), size_mul(p, 6, f->k)), TRUTH_always);
  assert_int_equal(size_prove(p, REL_le, size_mul(p, 2, r), size_mul(p, 2, f->k)), TRUTH_always);
  assert_int_equal(size_prove(p, REL_lt, size_mul(p, 2, r), size_mul(p, 2, f->k)), TRUTH_never);
  Dim a = size_sym(p, "a", 7, INT64_MIN, INT64_MAX, 1), b = size_sym(p, "b", 8, INT64_MIN, INT64_MAX, 2);
  assert_true(size_assume(p, REL_ne, size_add(p, a, size_mul(p, b, b)), 0));
  Dim twice = size_mul(p, 2, size_add(p, a, size_mul(p, b, b))); /* may wrap to 0 */
  assert_int_equal(size_prove(p, REL_eq, twice, 0), TRUTH_unknown);
}

/* ---- random expressions ---------------------------------------------------------------------------- */

static u64 seed;
static u32 rnd(u32 below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (u32)(seed >> 33) % below;
}

enum { SYMS = 4, KEPT = 24, SAMPLES = 12 };
typedef struct Known { /* an expression and its values by wrapping integers; ok: nothing divided by zero */
  Dim d;
  i64 value[SAMPLES];
  bool ok[SAMPLES];
} Known;

static bool plain(char op, i64 a, i64 b, i64 *out) {
  i64 q, r;
  switch (op) {
    case '+': __builtin_add_overflow(a, b, out); return true;
    case '-': __builtin_sub_overflow(a, b, out); return true;
    case '*': __builtin_mul_overflow(a, b, out); return true;
    case 'm': *out = a < b ? a : b; return true;
    case 'M': *out = a > b ? a : b; return true;
    default:
      if (b == 0) return false;
      q = b == -1 ? (i64)(0 - (u64)a) : a / b;
      r = b == -1 ? 0 : a % b;
      if (r && (r < 0) != (b < 0)) {
        q--;
        r += b;
      }
      *out = op == '/' ? q : r;
      return true;
  }
}

static void check_code(SizePool *p, Dim d, const i64 *syms, bool ok, i64 want) {
  Arena arena;
  arena_init(&arena, allocator_system());
  u32 slot_of[SYMS] = {3, 2, 1, 0};
  u64 slots[SYMS];
  for (u32 i = 0; i < SYMS; i++) slots[slot_of[i]] = (u64)syms[i];
  SizeCode code;
  if (size_compile(p, d, slot_of, &arena, &code)) {
    i64 got;
    bool fine = size_run(&code, slots, &got);
    assert_int_equal(fine, ok);
    if (fine) assert_true(got == want);
  }
  arena_free(&arena);
}

/* What a symbol was equated with was made before the order of the ends of a slice was known. */
static void an_equated_symbol_is_older_than_a_fact(void **state) {
  Fixture *f = *state;
  SizePool *p = &f->p;
  Dim from = size_sym(p, "from", 20, 0, 1 << 20, 2), to = size_sym(p, "to", 21, 0, 1 << 20, 9);
  Dim size = size_sym(p, "size", 22, 0, SIZE_LIMIT - 1, 7);
  Dim slice = size_sub(p, size_min(p, f->n, to), size_min(p, f->n, from));
  assert_true(size_assume(p, REL_eq, size, size_max(p, 0, slice)));
  assert_false(size_same(p, size, slice));
  assert_true(size_assume(p, REL_le, 0, slice));
  assert_true(size_same(p, size, slice));
}

static void random_expressions(void **state) {
  (void)state;
  static const i64 los[SYMS] = {0, 0, -20, INT64_MIN}, his[SYMS] = {SIZE_LIMIT - 1, 30, 20, INT64_MAX};
  u32 evaluated = 0, proved = 0;
  for (u32 round = 0; round < 150; round++) {
    seed = round + 1;
    SizePool pool, *p = &pool;
    size_init(p, allocator_system());
    Known e[KEPT];
    i64 syms[SAMPLES][SYMS];
    for (u32 s = 0; s < SAMPLES; s++)
      for (u32 i = 0; i < SYMS; i++) {
        u32 how = rnd(5);
        i64 v = how == 0 ? los[i] : how == 1 ? his[i] : how == 2 ? (i64)rnd(7) : (i64)rnd(1u << 30) - (1 << 29);
        syms[s][i] = v < los[i] ? los[i] : v > his[i] ? his[i] : v;
      }
    for (u32 i = 0; i < KEPT; i++) {
      if (i < SYMS) {
        e[i].d = size_sym(p, NULL, i, los[i], his[i], syms[0][i]);
        for (u32 s = 0; s < SAMPLES; s++) {
          e[i].value[s] = syms[s][i];
          e[i].ok[s] = true;
        }
        continue;
      }
      char op = "+-*/%mM"[rnd(7)];
      u32 x = rnd(i);
      Known by = e[rnd(i)];
      if (rnd(3) == 0) { /* by a constant */
        i64 c = (i64)rnd(9) - 2;
        by.d = size_const(p, c);
        for (u32 s = 0; s < SAMPLES; s++) {
          by.value[s] = c;
          by.ok[s] = true;
        }
      }
      e[i].d = size_binary(p, op, e[x].d, by.d);
      if (e[i].d == DIM_NONE) { /* too large: take a symbol instead */
        e[i] = e[rnd(SYMS)];
        continue;
      }
      for (u32 s = 0; s < SAMPLES; s++)
        e[i].ok[s] = e[x].ok[s] && by.ok[s] && plain(op, e[x].value[s], by.value[s], &e[i].value[s]);
    }
    for (u32 i = 0; i < KEPT; i++) {
      SizeRange range = size_range(p, e[i].d);
      for (u32 s = 0; s < SAMPLES; s++) {
        i64 v;
        bool ok = size_eval(p, e[i].d, syms[s], &v);
        if (ok && e[i].ok[s]) { /* what the canonical form gives, wrapping evaluation gives */
          assert_true(v == e[i].value[s]);
          evaluated++;
        }
        if (range.fits) assert_true(ok);
        if (ok) assert_true(v >= range.lo && v <= range.hi);
        check_code(p, e[i].d, syms[s], ok, v);
      }
      for (u32 t = 0; t < 6; t++) { /* a proof holds for every sample where both sides have a value */
        u32 k = rnd(KEPT);
        SizeRel rel = (SizeRel)rnd(4);
        SizeTruth truth = size_prove(p, rel, e[i].d, e[k].d);
        if (truth == TRUTH_unknown) continue;
        for (u32 s = 0; s < SAMPLES; s++)
          if (e[i].ok[s] && e[k].ok[s]) {
            assert_int_equal(rel_holds(rel, e[i].value[s], e[k].value[s]), truth == TRUTH_always);
            proved++;
          }
      }
    }
    /* what a guard would find for one sample may be assumed: conclusions then hold for that sample */
    for (u32 t = 0; t < 4; t++) {
      u32 i = rnd(KEPT), k = rnd(KEPT);
      SizeRel rel = (SizeRel)rnd(4);
      i64 a, b;
      if (e[i].ok[0] && e[k].ok[0] && size_eval(p, e[i].d, syms[0], &a) && size_eval(p, e[k].d, syms[0], &b) &&
          rel_holds(rel, a, b))
        assert_true(size_assume(p, rel, e[i].d, e[k].d));
    }
    for (u32 i = 0; i < KEPT; i++) {
      Dim d = size_resolve(p, e[i].d);
      i64 v;
      if (e[i].ok[0] && d != DIM_NONE && size_eval(p, d, syms[0], &v)) assert_true(v == e[i].value[0]);
      u32 k = rnd(KEPT);
      SizeRel rel = (SizeRel)rnd(4);
      SizeTruth truth = size_prove(p, rel, e[i].d, e[k].d);
      if (truth != TRUTH_unknown && e[i].ok[0] && e[k].ok[0])
        assert_int_equal(rel_holds(rel, e[i].value[0], e[k].value[0]), truth == TRUTH_always);
    }
    size_free(p);
  }
  assert_true(evaluated > 10000 && proved > 2000);
}

/* ---- refused memory -------------------------------------------------------------------------------- */

static void refused_memory(void **state) {
  (void)state;
  bool done = false;
  for (u32 limit = 0; limit < 200 && !done; limit++) {
    TestMemory l = test_memory(limit);
    SizePool p;
    size_init(&p, &l.base);
    Dim n = size_sym(&p, "n", 0, 0, 100, 1), m = size_sym(&p, "m", 0, 0, 100, 1), x = n;
    for (i64 i = 0; i < 40; i++) x = size_add(&p, size_floordiv(&p, x, 2), size_mul(&p, m, i));
    bool learned = size_assume(&p, REL_eq, n, m) && size_assume(&p, REL_lt, size_mul(&p, n, n), 50);
    done = !p.failed;
    if (done) assert_true(learned && n != DIM_NONE);
    size_free(&p);
  }
  assert_true(done);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(canonical_sums, setup, teardown),
      cmocka_unit_test_setup_teardown(equating_contradicts_facts, setup, teardown),
      cmocka_unit_test_setup_teardown(equal_by_both_orders_and_by_a_factor, setup, teardown),
      cmocka_unit_test_setup_teardown(division, setup, teardown),
      cmocka_unit_test_setup_teardown(extremes, setup, teardown),
      cmocka_unit_test_setup_teardown(proofs, setup, teardown),
      cmocka_unit_test_setup_teardown(slices, setup, teardown),
      cmocka_unit_test_setup_teardown(slices_beside_each_other, setup, teardown),
      cmocka_unit_test_setup_teardown(equal_parts_of_a_size_that_narrows, setup, teardown),
      cmocka_unit_test_setup_teardown(a_known_order_narrows, setup, teardown),
      cmocka_unit_test_setup_teardown(an_equation_that_one_case_has, setup, teardown),
      cmocka_unit_test_setup_teardown(a_remainder_of_a_size_that_narrows, setup, teardown),
      cmocka_unit_test_setup_teardown(a_part_that_facts_make_one_number, setup, teardown),
      cmocka_unit_test_setup_teardown(a_range_goes_along, setup, teardown),
      cmocka_unit_test_setup_teardown(slices_where_a_case_cannot_be, setup, teardown),
      cmocka_unit_test_setup_teardown(substitution, setup, teardown),
      cmocka_unit_test_setup_teardown(equations_without_symbol, setup, teardown),
      cmocka_unit_test_setup_teardown(narrowing, setup, teardown),
      cmocka_unit_test_setup_teardown(extremes_narrow, setup, teardown),
      cmocka_unit_test_setup_teardown(rollback, setup, teardown),
      cmocka_unit_test_setup_teardown(answers, setup, teardown),
      cmocka_unit_test_setup_teardown(limits, setup, teardown),
      cmocka_unit_test_setup_teardown(an_equated_symbol_is_older_than_a_fact, setup, teardown),
      cmocka_unit_test(random_expressions),
      cmocka_unit_test(refused_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
