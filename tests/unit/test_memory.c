/* test_memory.c — large freed storage: used again, within limits, given back before memory is refused. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "api/inner.h"
#include "tests/unit/programs.h"

#ifdef __SANITIZE_ADDRESS__
enum { KEEPS = 0 }; /* use after free is to be seen */
#else
enum { KEEPS = 1 };
#endif

enum { MIB = 1 << 20 };

typedef struct Heap { /* of a host that counts, and has only so much */
  size_t out, most, highest;
  int large; /* blocks of a megabyte and more that were asked for */
} Heap;

static void *heap_resize(void *context, void *p, size_t old_size, size_t new_size) {
  Heap *h = context;
  if (h->most && h->out - old_size + new_size > h->most) return NULL;
  if (new_size >= MIB) h->large++;
  void *q = NULL;
  if (new_size) {
    q = realloc(p, new_size);
    assert_non_null(q);
  } else {
    free(p);
  }
  h->out += new_size - old_size;
  if (h->out > h->highest) h->highest = h->out;
  return q;
}

static WeftVM *make(Heap *h, uint64_t memory, uint64_t keep) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.resize = heap_resize;
  o.resize_context = h;
  o.memory = memory;
  o.keep = keep;
  o.backend = "eager";
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  return vm;
}

static void run(WeftVM *vm, const char *text) {
  if (weft_eval(vm, text, "test", NULL) != WEFT_OK) fail_msg("%s", weft_error_text(vm));
}

static void E6_freed_storage_is_used_again(void **state) {
  (void)state;
  Heap h = {0};
  WeftVM *vm = make(&h, 0, 64 * MIB);
  run(vm, "let x = ones(1000000)\nfor i in 0..20 { let y = x + 1.0 }");
  if (KEEPS) {
    assert_true(h.large <= 3);
    assert_true(stat(vm, "recycled") >= 18);
    assert_true(stat(vm, "kept_now") >= 8e6);
  }
  assert_true(stat(vm, "bytes_now") < 8e6 + MIB * 4); /* what is kept is not held */
  assert_true(stat(vm, "peak") < 16e6 + MIB * 4);
  weft_free(vm);
  assert_int_equal(h.out, 0);
}

static void E6_a_host_can_keep_nothing(void **state) {
  (void)state;
  Heap h = {0};
  WeftVM *vm = make(&h, 0, 1);
  run(vm, "let x = ones(1000000)\nfor i in 0..20 { let y = x + 1.0 }");
  assert_true(h.large >= 20);
  assert_true(stat(vm, "kept_now") == 0);
  weft_free(vm);
  assert_int_equal(h.out, 0);
}

static void E6_what_is_kept_stays_below_its_limit(void **state) {
  (void)state;
  Heap h = {0};
  WeftVM *vm = make(&h, 0, 20 * MIB);
  run(vm, "let l = ()\nfor i in 0..9 { l += (ones(500000 + 200000 * i),) }\nl = ()");
  assert_true(stat(vm, "kept_now") <= 20 * MIB);
  assert_true(h.out < 30 * MIB);
  weft_free(vm);
  assert_int_equal(h.out, 0);
}

/* A limit that has room for what is held, not for what is kept besides. */
static void E6_kept_storage_goes_before_memory_is_refused(void **state) {
  (void)state;
  for (int by_host = 0; by_host < 2; by_host++) {
    Heap h = {.most = by_host ? 24 * MIB : 0};
    WeftVM *vm = make(&h, by_host ? 0 : 24 * MIB, 100 * MIB);
    run(vm, "for i in 0..6 { let y = ones(1000000 + 300000 * i)\n y = nil }");
    assert_true(h.highest <= 24 * MIB);
    assert_int_equal(weft_eval(vm, "let z = ones(4000000)", "test", NULL), WEFT_ERROR); /* 32 MB: too much */
    assert_string_equal(weft_error_kind(vm), "limit");
    run(vm, "let z = ones(2400000)");
    assert_true(h.highest <= 24 * MIB);
    if (!by_host) {
      run(vm, "z = nil");
      weft_set_limits(vm, 10 * MIB, 0, 0);
      assert_true(stat(vm, "kept_now") <= 10 * MIB);
    }
    weft_free(vm);
    assert_int_equal(h.out, 0);
  }
}

static void E6_what_nobody_asks_for_again_goes(void **state) {
  (void)state;
  Heap h = {0};
  WeftVM *vm = make(&h, 0, 200 * MIB);
  run(vm, "let big = ones(10000000)\nbig = nil\nlet l = ()\nfor i in 0..80 { l += (ones(40000),) }");
  assert_true(stat(vm, "kept_now") < 1e6);
  weft_free(vm);
  assert_int_equal(h.out, 0);
}

static void E6_small_blocks_serve_the_next_of_their_size(void **state) {
  (void)state;
  static Blocks b;
  char *p = blocks_resize(&b, NULL, 0, 33), *q = blocks_resize(&b, NULL, 0, 2000);
  strcpy(p, "what is in a block stays there");
  p = blocks_resize(&b, p, 33, 1000);
  p = blocks_resize(&b, p, 1000, 5000);
  p = blocks_resize(&b, p, 5000, 40);
  assert_string_equal(p, "what is in a block stays there");
  assert_null(blocks_resize(&b, p, 40, 0));
  assert_null(blocks_resize(&b, q, 2000, 0));
  if (KEEPS) {
    assert_int_equal(b.bytes, 48 + 1008 + 2000);
    assert_ptr_equal(blocks_resize(&b, NULL, 0, 47), p);
    assert_ptr_equal(blocks_resize(&b, NULL, 0, 1990), q);
    assert_int_equal(b.bytes, 1008);
    (void)blocks_resize(&b, q, 1990, 0);
    (void)blocks_resize(&b, p, 47, 0);
  }
  enum { MANY = 1000 };
  static void *many[MANY];
  for (int i = 0; i < MANY; i++) assert_non_null(many[i] = blocks_resize(&b, NULL, 0, 2048));
  for (int i = 0; i < MANY; i++) (void)blocks_resize(&b, many[i], 2048, 0);
  assert_in_range(b.bytes, KEEPS ? 200 << 10 : 0, 256 << 10);
  blocks_free(&b);
  assert_int_equal(b.bytes, 0);
}

/* A limit counts what is held: nothing else is kept. */
static void E6_small_blocks_go_when_memory_is_limited(void **state) {
  (void)state;
  WeftVM *vm = weft_new(NULL);
  assert_non_null(vm);
  run(vm, "let s = 0\nfor i in 0..300 { s = s + len(str(i)) }\ns");
  if (KEEPS) assert_true(vm->blocks.bytes > 0);
  weft_set_limits(vm, 64 * MIB, 0, 0);
  assert_int_equal(vm->blocks.bytes, 0);
  run(vm, "s = 0\nfor i in 0..300 { s = s + len(str(i)) }\ns");
  assert_int_equal(vm->blocks.bytes, 0);
  weft_set_limits(vm, 0, 0, 0);
  run(vm, "fn f(x) { x * 2 }\nf(s)");
  weft_free(vm);
}

/* Blocks of a page and more end where no memory is. */
static void *fenced_resize(void *context, void *p, size_t old_size, size_t new_size) {
  enum { PAGE = 4096 };
  (void)context;
  char *q = NULL;
  if (new_size) {
    const size_t pages = (new_size + PAGE - 1) / PAGE * PAGE, shift = (pages - new_size) & ~(size_t)15;
    char *m = mmap(NULL, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED || mprotect(m + pages, PAGE, PROT_NONE) != 0) return NULL;
    q = m + shift;
  }
  if (q && p) memcpy(q, p, old_size < new_size ? old_size : new_size);
  if (p) munmap((char *)((uintptr_t)p & ~(uintptr_t)(PAGE - 1)), (old_size + PAGE - 1) / PAGE * PAGE + PAGE);
  return q;
}

/* The complex gemv of OpenBLAS 0.3.21 reads behind its vector, which in LAPACK is a row of a matrix. */
static void decompositions_read_what_is_there(void **state) {
  (void)state;
  static const char *const calls[] = {
      "linalg.svd(x)", "linalg.svd(x, full_matrices=false)", "linalg.svdvals(x)", "linalg.qr(x)", "linalg.pinv(x)",
      "linalg.lstsq(x, x)", "linalg.eig(x[:m, :m])", "linalg.eigvals(x[:m, :m])", "linalg.eigh(x[:m, :m])",
      "linalg.solve(x[:m, :m], x[:m])", "linalg.inv(x[:m, :m])", "linalg.det(x[:m, :m])", "x @ conj(x).T",
      "x @ x[0, :]", "x[:, 0] @ x"};
  static const int sizes[][2] = {{100, 100}, {61, 100}, {100, 61}, {7, 7}, {17, 16}, {300, 40}};
  WeftOptions o = WEFT_OPTIONS_INIT;
  o.resize = fenced_resize;
  WeftVM *vm = weft_new(&o);
  assert_non_null(vm);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
      for (int narrow = 0; narrow < 2; narrow++) {
        char program[300];
        const int rows = sizes[i][0], cols = sizes[i][1];
        snprintf(program, sizeof program,
                 "let m = %d; let x = %s(complex(sin(reshape(arange(%d) * 1.7, [%d, %d])), "
                 "cos(reshape(arange(%d) * 2.3, [%d, %d])))); let y = %s; 0",
                 rows < cols ? rows : cols, narrow ? "c64" : "c128", rows * cols, rows, cols, rows * cols, rows, cols,
                 calls[k]);
        WeftValue *v = NULL;
        const WeftStatus status = weft_eval(vm, program, "test", &v);
        if (status != WEFT_OK && !strstr(weft_error_message(vm), "is not installed"))
          assert_true(strstr(weft_error_message(vm), "singular") || strstr(weft_error_message(vm), "shapes"));
        weft_release(vm, v);
      }
  weft_free(vm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(E6_freed_storage_is_used_again),
      cmocka_unit_test(E6_a_host_can_keep_nothing),
      cmocka_unit_test(E6_what_is_kept_stays_below_its_limit),
      cmocka_unit_test(E6_kept_storage_goes_before_memory_is_refused),
      cmocka_unit_test(E6_what_nobody_asks_for_again_goes),
      cmocka_unit_test(E6_small_blocks_serve_the_next_of_their_size),
      cmocka_unit_test(E6_small_blocks_go_when_memory_is_limited),
      cmocka_unit_test(decompositions_read_what_is_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
