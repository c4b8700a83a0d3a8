/* test_ptx.c — kernels as PTX while memory is refused: the n-th allocation, for every n. Each kernel takes another file
 * of gpu/: by fours, rows, tiles, sums over the grid, rows that are read once, scans, argmax, products, masks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "gpu/matmul.h"
#include "gpu/nonzero.h"
#include "gpu/ptx.h"

typedef struct Refusing {
  Allocator base;
  long left;   /* allocations until one is refused; negative: none is */
  size_t live; /* bytes */
} Refusing;

static void *refusing_resize(Allocator *self, void *p, size_t old_size, size_t new_size) {
  Refusing *r = (Refusing *)self;
  if (new_size && r->left >= 0 && r->left-- == 0) return NULL;
  r->live += new_size - old_size;
  if (new_size) return realloc(p, new_size);
  free(p);
  return NULL;
}

/* Its name in the module ends so where that file has taken it. */
static const struct {
  const char *text, *entry;
} kernels[] = {
  {"kernel k (x: in f32, y: out f32, n: i64) { par i in 0..n grain 1 { %1 = load x[i] f32 %2 = mul %1 3.0 "
   "store y[i] %2 } }", "ld.global.v4"},
  {"kernel k (x: in f64, y: out f64, n: i64) { par i in 0..1 grain 1 { %1 = reduce add f64 j in 0..n { "
   "%2 = load x[j] f64 yield %2 } store y[0] %1 } }", "k_rest"},
  {"kernel k (x: in f32, y: out f32, n: i64, m: i64) { par i in 0..m grain 1 { %1 = reduce add f32 rows j in 0..n { "
   "%2 = load x[j*m + i] f32 yield %2 } store y[i] %1 } }", "k_join"},
  {"kernel k (x: in f32, y: out f32, n: i64, m: i64) { par i in 0..m grain 1 { for j in 0..n { "
   "%1 = load x[j*m + i] f32 store y[i*n + j] %1 } } }", "k_tile"},
  {"kernel k (x: in f32, y: out f32, n: i64, m: i64) { par i in 0..m grain 1 { %1 = reduce max f32 j in 0..n { "
   "%2 = load x[i*n + j] f32 yield %2 } %3 = reduce add f32 j in 0..n { %4 = load x[i*n + j] f32 %5 = sub %4 %1 "
   "%6 = math exp %5 yield %6 } for j in 0..n { %7 = load x[i*n + j] f32 %8 = sub %7 %1 %9 = math exp %8 "
   "%10 = div %9 %3 store y[i*n + j] %10 } } }", "k_rows"},
  {"kernel k (x: in f32, y: out f32, n: i64, m: i64) { par i in 0..m grain 1 { %1 = scan add f32 j in 0..n { "
   "%2 = load x[i*n + j] f32 %3 = prefix %2 store y[i*n + j] %3 } } }", "k_pieces"},
  {"kernel k (x: in f32, y: out f32, n: i64, m: i64) { par i in 0..m grain 1 { %1 = scan add f32 j in 0..n { "
   "%2 = load x[j*m + i] f32 %3 = prefix %2 store y[j*m + i] %3 } } }", "k_columns"},
  {"kernel k (x: in f32, y: out i64, n: i64) { par i in 0..1 grain 1 { %1 = reduce max f32 j in 0..n { "
   "%2 = load x[j] f32 yield %2 } %3 = reduce min i64 j in 0..n { %4 = load x[j] f32 %5 = eq %4 %1 %6 = ne %4 %4 "
   "%7 = or %5 %6 %8 = select %7 j 9223372036854775807 yield %8 } store y[0] %3 } }", "k_rest"},
};

/* `make` with the n-th allocation refused, for every n; `entry` stands in what it makes. */
static void refuse_each(WeftStatus (*make)(const void *what, Buf *out), const void *what, const char *entry) {
  Refusing r = {.base = {refusing_resize}, .left = -1};
  size_t whole = 0;
  long n = -1;
  for (bool refused = true; refused; n++) {
    Buf out;
    r.left = n;
    buf_init(&out, &r.base);
    WeftStatus status = make(what, &out);
    refused = n < 0 || r.left < 0; /* of the first run: none, and there is a next one */
    if (n < 0) {
      assert_int_equal(status, WEFT_OK);
      assert_non_null(strstr(buf_text(&out), entry));
      whole = out.len;
    }
    /* what is refused is an error, or a kernel that does without */
    if (status == WEFT_OK && refused) assert_true(out.len <= whole);
    if (!refused) assert_int_equal(out.len, whole);
    buf_free(&out);
    assert_int_equal(r.live, 0);
  }
  assert_true(n > 10);
}

static WeftStatus make_module(const void *what, Buf *out) {
  const LoopFn *fn = what;
  return ptx_module(&fn, NULL, 1, out, NULL);
}

static WeftStatus make_nonzero(const void *what, Buf *out) {
  (void)what;
  return nonzero_ptx(out);
}

static WeftStatus make_epilogue(const void *what, Buf *out) {
  const LoopFn *fn = what;
  PtxEpilogue e;
  assert_true(ptx_epilogue(fn, 0, &e));
  return ptx_product_module(fn, NULL, &e, 0, out, NULL);
}

static WeftStatus make_product(const void *what, Buf *out) { return matmul_ptx(*(const LoopType *)what, out); }

static void memory_is_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    LoopModule m;
    assert_int_equal(loop_module_init(&m, allocator_system()), WEFT_OK);
    assert_int_equal(loops_parse(&m, kernels[i].text, strlen(kernels[i].text), NULL), WEFT_OK);
    refuse_each(make_module, loop_module_find(&m, "k"), kernels[i].entry);
    loop_module_free(&m);
  }
  static const char epilogue[] = "kernel k (x: in f32, b: in f32, y: out f32, n: i64, m: i64) { par i in 0..n "
                                 "grain 1 { for j in 0..m { %1 = load x[i*m + j] f32 %2 = load b[j] f32 %3 = add %1 %2 "
                                 "%4 = math exp %3 store y[i*m + j] %4 } } }";
  LoopModule m;
  assert_int_equal(loop_module_init(&m, allocator_system()), WEFT_OK);
  assert_int_equal(loops_parse(&m, epilogue, strlen(epilogue), NULL), WEFT_OK);
  refuse_each(make_epilogue, loop_module_find(&m, "k"), "k_product");
  loop_module_free(&m);
  refuse_each(make_nonzero, NULL, "atom.global.add");
  static const char *const sums[MATMUL_TYPES] = {"fma.rn.f32", "fma.rn.f64", "st.global.u8", "mad.lo.u32",
                                                 "mad.lo.u64"};
  for (u32 k = 0; k < MATMUL_TYPES; k++) {
    LoopType type = matmul_type(k);
    refuse_each(make_product, &type, sums[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(memory_is_refused)};
  return cmocka_run_group_tests_name("ptx", tests, NULL, NULL);
}
