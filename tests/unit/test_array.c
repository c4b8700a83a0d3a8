/* test_array.c — arrays and their storage: geometry, views, uniqueness, memory that hosts lend, conversions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/memory.h"
#include "vm/strided.h"
#include "vm/vm.h"


static TestMemory memory;

static int begin(void **state) {
  memory = test_memory(-1);
  VmOptions options = {.alloc = &memory.base, .limits = {.fuel = UINT64_MAX, .output = UINT64_MAX}};
  *state = vm_new(&options);
  return *state ? 0 : -1;
}
static int end(void **state) {
  vm_free(*state);
  return memory.held == 0 ? 0 : -1;
}

static Value count_up(Vm *vm, u32 rank, const i64 *dims) { /* f64: 0, 1, 2, … */
  Value v;
  assert_int_equal(array_new(vm, DT_f64, rank, dims, &v), WEFT_OK);
  for (i64 i = 0; i < v.array->size; i++) ((f64 *)v.array->data)[i] = (f64)i;
  return v;
}

static void sizes(void **state) {
  (void)state;
  i64 big[] = {(i64)1 << 40, (i64)1 << 30}, empty[] = {(i64)1 << 61, (i64)1 << 61, 0}, negative[] = {2, -1},
      three[] = {2, 3, 4};
  assert_int_equal(dims_size(3, three), 24);
  assert_int_equal(dims_size(0, NULL), 1);
  assert_int_equal(dims_size(2, big), -1);
  assert_int_equal(dims_size(3, empty), 0);
  assert_int_equal(dims_size(2, negative), -1);
}

static void layouts(void **state) {
  (void)state;
  i64 dims[] = {2, 3}, dense[] = {3, 1}, rows[] = {10, 1}, columns[] = {1, 2}, stretched[] = {0, 1},
      backwards[] = {-3, 1};
  assert_int_equal(layout_of(2, dims, dense), LAY_DENSE);
  assert_int_equal(layout_of(2, dims, rows), LAY_ROWS);
  assert_int_equal(layout_of(2, dims, backwards), LAY_ROWS);
  assert_int_equal(layout_of(2, dims, columns), LAY_STRIDED);
  assert_int_equal(layout_of(2, dims, stretched), LAY_BROADCAST);
  i64 ones[] = {1, 3}, odd[] = {77, 1}, none[] = {0, 3};
  assert_int_equal(layout_of(2, ones, odd), LAY_DENSE); /* strides of axes of size 1 do not count */
  assert_int_equal(layout_of(2, none, odd), LAY_DENSE);
}

static void inline_and_stored(void **state) {
  Vm *vm = *state;
  i64 small[] = {ARRAY_INLINE_MAX / 8}, large[] = {ARRAY_INLINE_MAX / 8 + 1};
  Value a = count_up(vm, 1, small), b = count_up(vm, 1, large);
  assert_null(a.array->owner);
  assert_non_null(b.array->owner);
  assert_int_equal((uintptr_t)b.array->data % STORAGE_ALIGN, 0);
  assert_int_equal((uintptr_t)a.array->data % 16, 0);
  assert_true(array_writable(a.array));
  assert_true(array_writable(b.array));
  assert_int_equal(a.array->tag, ARRAY_TAG(DT_f64, 1, DEV_CPU, LAY_DENSE));
  value_drop(vm, a);
  value_drop(vm, b);
}

static void large_ones_begin_at_different_places_of_a_page(void **state) {
#ifndef __SANITIZE_ADDRESS__ /* nothing is kept, so nothing is counted */
  Vm *vm = *state;
  i64 large[] = {1 << 17};
  Value v[8];
  for (u32 i = 0; i < 8; i++) v[i] = count_up(vm, 1, large);
  for (u32 i = 0; i < 8; i++) {
    const char *data = v[i].array->data;
    assert_int_equal((uintptr_t)data % STORAGE_ALIGN, 0);
    assert_true(data - (const char *)v[i].array->owner <= 4096 + 2 * STORAGE_ALIGN);
    if (i)
      assert_true((data - (const char *)v[i].array->owner) / STORAGE_ALIGN !=
                  ((const char *)v[i - 1].array->data - (const char *)v[i - 1].array->owner) / STORAGE_ALIGN);
  }
  for (u32 i = 0; i < 8; i++) value_drop(vm, v[i]);
#else
  (void)state;
#endif
}

static void wrong_shapes(void **state) {
  Vm *vm = *state;
  i64 negative[] = {-1}, huge[] = {(i64)1 << 50, 2}, many[20] = {0};
  Value v;
  assert_int_equal(array_new(vm, DT_f64, 1, negative, &v), WEFT_ERROR);
  assert_int_equal(vm->error.kind, EK_value);
  assert_int_equal(array_new(vm, DT_f64, 2, huge, &v), WEFT_ERROR);
  assert_int_equal(vm->error.kind, EK_limit);
  assert_int_equal(array_new(vm, DT_f64, 20, many, &v), WEFT_ERROR);
  assert_int_equal(vm->error.kind, EK_shape);
  vm_error_clear(vm);
}

static void views_pin(void **state) {
  Vm *vm = *state;
  for (i64 n = 10; n <= 1000; n += 990) { /* inline, then stored */
    i64 dims[] = {n}, part[] = {4}, strides[] = {2};
    Value a = count_up(vm, 1, dims), v, w;
    assert_int_equal(array_view(vm, a.array, 1, 1, part, strides, &v), WEFT_OK);
    assert_false(array_writable(a.array)); /* the view would see it */
    assert_false(array_writable(v.array));
    assert_int_equal(array_view(vm, v.array, 3, 1, (i64[]){2}, (i64[]){-2}, &w), WEFT_OK);
    value_drop(vm, a);
    value_drop(vm, v);
    assert_true(array_load(w.array, 0).f == 4);
    assert_true(array_load(w.array, -2).f == 2);
    assert_true(array_writable(w.array)); /* the last to see the data */
    value_drop(vm, w);
  }
}

static void windows_are_never_written(void **state) {
  Vm *vm = *state;
  i64 dims[] = {100}, window[] = {98, 3}, strides[] = {1, 1};
  Value a = count_up(vm, 1, dims), v;
  assert_int_equal(array_view(vm, a.array, 0, 2, window, strides, &v), WEFT_OK);
  value_drop(vm, a);
  assert_false(array_writable(v.array));
  assert_int_equal(array_make_unique(vm, &v), WEFT_OK);
  assert_true(array_writable(v.array));
  assert_true(array_load(v.array, 3).f == 1);
  value_drop(vm, v);
}

static void copies_are_counted(void **state) {
  Vm *vm = *state;
  Value a = count_up(vm, 1, (i64[]){5}), b = value_keep(a);
  u64 before = vm->stats.array_copies;
  assert_int_equal(array_make_unique(vm, &b), WEFT_OK);
  assert_int_equal(vm->stats.array_copies, before + 1);
  assert_ptr_not_equal(a.array, b.array);
  assert_int_equal(array_make_unique(vm, &b), WEFT_OK);
  assert_int_equal(vm->stats.array_copies, before + 1);
  value_drop(vm, a);
  value_drop(vm, b);
  Value n = value_i64(7);
  assert_int_equal(array_make_unique(vm, &n), WEFT_OK);
  assert_int_equal(n.kind, V_ARRAY);
  n = array_finish(vm, n);
  assert_int_equal(n.kind, V_NUM);
  assert_int_equal(n.i, 7);
}

static int released;
static void on_release(void *ctx, void *data, size_t bytes) {
  (void)data;
  released += (int)bytes + *(int *)ctx;
}

static void lent_memory(void **state) {
  Vm *vm = *state;
  f64 data[6] = {1, 2, 3, 4, 5, 6};
  int ctx = 1000;
  Value a, v;
  released = 0;
  assert_int_equal(array_external(vm, DT_f64, 2, (i64[]){2, 3}, NULL, data, sizeof data, on_release, &ctx, &a),
                   WEFT_OK);
  assert_ptr_equal(a.array->data, data);
  assert_false(array_writable(a.array));
  assert_int_equal(array_view(vm, a.array, 3, 1, (i64[]){3}, (i64[]){1}, &v), WEFT_OK);
  value_drop(vm, a);
  assert_int_equal(released, 0);
  assert_int_equal(array_make_unique(vm, &v), WEFT_OK); /* a copy: the host's data stays as it is */
  assert_int_equal(released, 1000 + (int)sizeof data);
  ((f64 *)v.array->data)[0] = 9;
  assert_true(data[3] == 4);
  value_drop(vm, v);
}

static void dense_versions(void **state) {
  Vm *vm = *state;
  Value a = count_up(vm, 2, (i64[]){3, 4}), t, d;
  assert_int_equal(array_view(vm, a.array, 0, 2, (i64[]){4, 3}, (i64[]){1, 4}, &t), WEFT_OK);
  assert_int_equal(array_make_dense(vm, t, &d), WEFT_OK);
  const f64 *x = d.array->data;
  for (i64 i = 0; i < 4; i++)
    for (i64 k = 0; k < 3; k++) assert_true(x[i * 3 + k] == (f64)(k * 4 + i));
  value_drop(vm, d);
  assert_int_equal(array_make_dense(vm, a, &d), WEFT_OK);
  assert_ptr_equal(d.array, a.array);
  value_drop(vm, d);
  value_drop(vm, a);
  value_drop(vm, t);
}

static void every_width(void **state) { /* strided copies and fills against a loop, for each element size */
  (void)state;
  static const u32 widths[] = {1, 2, 4, 8, 16};
  u8 from[16 * 64], to[16 * 64];
  for (u32 w = 0; w < COUNT_OF(widths); w++) {
    u32 n = widths[w];
    for (u32 i = 0; i < sizeof from; i++) from[i] = (u8)(i * 7 + 3);
    i64 dims[] = {2, 1, 3, 4}, ds[] = {12, 5, 4, 1}, ss[] = {1, 99, -16, 2};
    memset(to, 0, sizeof to);
    const u8 *origin = from + (size_t)40 * n;
    strided_copy(NULL, n, 4, dims, to, ds, origin, ss);
    for (i64 a = 0; a < 2; a++)
      for (i64 b = 0; b < 3; b++)
        for (i64 c = 0; c < 4; c++) {
          i64 s = (a - 16 * b + 2 * c) * (i64)n, d = (12 * a + 4 * b + c) * (i64)n;
          assert_memory_equal(to + d, origin + s, n);
        }
    strided_fill(n, 2, (i64[]){3, 2}, to, (i64[]){2, 1}, from);
    for (u32 i = 0; i < 6; i++) assert_memory_equal(to + (size_t)i * n, from, n);
  }
}

/* Transposes of all sorts of sizes, into rows that begin anywhere; the largest by non-temporal stores. */
static void transposed_copies(void **state) {
  (void)state;
  static const i64 sizes[][3] = {{8, 3, 40}, {8, 40, 64}, {8, 33, 77}, {8, 16, 200}, {8, 131, 90}, {8, 1501, 1103},
                                 {8, 1600, 1000}, {8, 1508, 1088}, {8, 8, 200000}, {8, 12, 131072}, {8, 20, 80009},
                                 {4, 67, 45}, {4, 70, 129}, {4, 2201, 1503}, {1, 50, 300}, {1, 4001, 3303}};
  for (u32 k = 0; k < COUNT_OF(sizes); k++)
    for (i64 shift = 0; shift < 2; shift++) {
      i64 bytes = sizes[k][0], r = sizes[k][1], c = sizes[k][2], pitch = c + 3 * shift, apart = r + 5 * shift,
          all = ((c - 1) * apart + r) * bytes;
      u8 *from = malloc((size_t)all), *room = aligned_alloc(64, (size_t)((r * pitch + 80) * bytes + 63) / 64 * 64),
          *to = room + shift * bytes;
      assert_true(from && room);
      memset(room, 0, (size_t)((r * pitch + 80) * bytes));
      for (i64 i = 0; i < all; i++) from[i] = (u8)(i * 131 + (i >> 8) * 7);
      strided_copy(NULL, (u32)bytes, 2, (i64[]){r, c}, to, (i64[]){pitch, 1}, from, (i64[]){1, apart});
      bool same = true;
      for (i64 i = 0; i < r; i++) {
        for (i64 j = 0; j < c; j++)
          same &= memcmp(to + (i * pitch + j) * bytes, from + (i + j * apart) * bytes, (size_t)bytes) == 0;
        for (i64 j = c; j < pitch; j++) same &= to[(i * pitch + j) * bytes] == 0; /* between the rows */
      }
      assert_true(same);
      free(from);
      free(room);
    }
}

/* Two transposes side by side in each row of the result, of which the second begins within a line: many rows, past the
 * caches. */
static void transposed_copies_side_by_side(void **state) {
  (void)state;
  enum { ROWS = 8000 };
  for (i64 c = 96; c <= 104; c += 4) {
    i64 n = 2 * ROWS * c;
    f64 *from = malloc((size_t)n * sizeof *from), *to = aligned_alloc(64, (size_t)n * sizeof *to);
    assert_true(from && to);
    for (i64 i = 0; i < n; i++) from[i] = (f64)i;
    strided_copy(NULL, 8, 3, (i64[]){2, ROWS, c}, to, (i64[]){c, 2 * c, 1}, from, (i64[]){ROWS * c, 1, ROWS});
    bool same = true;
    for (i64 k = 0; k < 2; k++)
      for (i64 i = 0; i < ROWS; i++)
        for (i64 j = 0; j < c; j++) same &= to[k * c + i * 2 * c + j] == from[k * ROWS * c + i + j * ROWS];
    assert_true(same);
    free(from);
    free(to);
  }
}

static void conversions(void **state) {
  (void)state;
  assert_int_equal(num_convert_unchecked(value_i64(-1), DT_u8).i, 255);
  assert_int_equal(num_convert_unchecked(value_i64((i64)1 << 40), DT_i32).i, 0);
  assert_int_equal(num_convert_unchecked(value_f64(-2.9), DT_i64).i, -2);
  assert_int_equal(num_convert_unchecked(value_f64(0.5), DT_bool).i, 1);
  assert_true(num_convert_unchecked(value_i64(16777217), DT_f32).s == 16777216.0f);
  i64 i;
  assert_false(num_as_index(value_f64(1), &i));
  assert_true(num_as_index(value_bool(true), &i) && i == 1);
  for (u32 d = DT_bool; d <= DT_f64; d++) { /* what is stored reads back */
    u64 place = ~(u64)0;
    Value v = num_convert_unchecked(value_i64(1), d);
    num_store(&place, d, v);
    assert_true(num_load(&place, d).bits == v.bits);
  }
}

/* An element of dtype s at `from` as one of dtype d. */
static void converted(const void *from, u32 s, u32 d, void *to) {
  f64 parts[2];
  if (s != DT_c128) {
    num_store_as(to, d, num_load(from, s));
    return;
  }
  memcpy(parts, from, sizeof parts);
  if (d == DT_c128) memcpy(to, parts, sizeof parts);
  else memcpy(to, (f32[2]){(f32)parts[0], (f32)parts[1]}, sizeof(f32[2]));
}

/* Rows of more elements than are converted at a time, backwards and some elements apart; u64 beyond i64 too; complex
 * numbers to complex ones. */
static void conversions_between_places(void **state) {
  enum { ROWS = 3, N = 150, APART = 2 };
  static u64 from[2 * ROWS * N], to[2 * ROWS * N * APART];
  (void)state;
  for (u32 s = DT_bool; s <= DT_c128; s++)
    for (u32 d = DT_bool; d <= DT_c128; d++) {
      if (dtype_kind(s) == DK_COMPLEX && dtype_kind(d) != DK_COMPLEX) continue;
      i64 fb = dtype_bytes(s), tb = dtype_bytes(d);
      bool huge = s == DT_u64 && (d == DT_u64 || dtype_kind(d) >= DK_FLOAT);
      memset(to, 0, sizeof to);
      for (i64 i = 0; i < ROWS * N; i++) {
        void *at = (char *)from + i * fb;
        num_store_as(at, s, value_i64(dtype_kind(s) == DK_BOOL ? i % 2 : i % 251));
        if (huge) ((u64 *)at)[0] = 0x8000000000000401u + (u64)i * 977;
        if (s == DT_c64) ((f32 *)at)[1] = -(f32)i;
        if (s == DT_c128) ((f64 *)at)[1] = 0.1 * (f64)i;
      }
      strided_convert(2, (i64[]){ROWS, N}, d, to, (i64[]){N * APART, APART}, s, (char *)from + (N - 1) * fb,
                      (i64[]){N, -1});
      for (i64 i = 0; i < ROWS * N; i++) {
        u64 want[2] = {0, 0}, between[2] = {0, 0};
        converted((char *)from + (i / N * N + N - 1 - i % N) * fb, s, d, want);
        assert_memory_equal((char *)to + i * APART * tb, want, (size_t)tb);
        assert_memory_equal((char *)to + (i * APART + 1) * tb, between, (size_t)tb);
      }
    }
}

/* A new array takes a shape, not a layout: of views, of what has no elements, of what has too many to lie inside. */
static void of_the_shape_of_another(void **state) {
  Vm *vm = *state;
  i64 dims[] = {5, 1, 6}, odd[] = {6, 77, 1}, none[] = {0, 3}, large[] = {ARRAY_INLINE_MAX + 1};
  Value of = count_up(vm, 2, (i64[]){5, 6}), view, v;
  assert_int_equal(array_view(vm, of.array, 0, 3, dims, odd, &view), WEFT_OK);
  assert_int_equal(array_layout(view.array), LAY_DENSE);
  assert_int_equal(array_new_like(vm, DT_i32, view.array, &v), WEFT_OK);
  assert_true(v.array->tag == ARRAY_TAG(DT_i32, 3, DEV_CPU, LAY_DENSE) && v.dtype == DT_i32 && v.array->size == 30 &&
              !v.array->owner);
  assert_memory_equal(array_dims(v.array), dims, sizeof dims);
  assert_memory_equal(array_strides(v.array), ((i64[]){6, 6, 1}), sizeof dims);
  value_drop(vm, v);
  value_drop(vm, view);
  value_drop(vm, of);
  for (u32 i = 0; i < 2; i++) {
    u64 before = vm->stats.array_allocs;
    assert_int_equal(array_new(vm, DT_u8, i ? 1 : 2, i ? large : none, &of), WEFT_OK);
    assert_int_equal(array_new_like(vm, DT_f64, of.array, &v), WEFT_OK);
    assert_true(v.array->size == of.array->size && array_dims(v.array)[0] == array_dims(of.array)[0] &&
                !v.array->owner == !i);
    assert_int_equal(vm->stats.array_allocs - before, 2);
    value_drop(vm, v);
    value_drop(vm, of);
  }
}

static void the_limit(void **state) {
  Vm *vm = *state;
  Value v;
  vm->limits.bytes = vm->stats.bytes_now + 1000000;
  assert_int_equal(array_new(vm, DT_f64, 1, (i64[]){1000000}, &v), WEFT_ERROR);
  assert_int_equal(vm->error.kind, EK_limit);
  assert_string_equal(vm_error_message(vm, NULL),
                      "an array of 1000000 f64, shape (1000000,), takes 7.6 MiB: the memory limit is reached");
  vm_error_clear(vm);
  for (int i = 0; i < 100; i++) { /* what is freed may be taken again */
    assert_int_equal(array_new(vm, DT_f64, 1, (i64[]){100000}, &v), WEFT_OK);
    value_drop(vm, v);
  }
  vm->limits.bytes = 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes),
      cmocka_unit_test(layouts),
      cmocka_unit_test_setup_teardown(inline_and_stored, begin, end),
      cmocka_unit_test_setup_teardown(large_ones_begin_at_different_places_of_a_page, begin, end),
      cmocka_unit_test_setup_teardown(wrong_shapes, begin, end),
      cmocka_unit_test_setup_teardown(views_pin, begin, end),
      cmocka_unit_test_setup_teardown(windows_are_never_written, begin, end),
      cmocka_unit_test_setup_teardown(copies_are_counted, begin, end),
      cmocka_unit_test_setup_teardown(lent_memory, begin, end),
      cmocka_unit_test_setup_teardown(dense_versions, begin, end),
      cmocka_unit_test(every_width), cmocka_unit_test(transposed_copies),
      cmocka_unit_test(transposed_copies_side_by_side),
      cmocka_unit_test(conversions),
      cmocka_unit_test(conversions_between_places),
      cmocka_unit_test_setup_teardown(of_the_shape_of_another, begin, end),
      cmocka_unit_test_setup_teardown(the_limit, begin, end),
  };
  return cmocka_run_group_tests_name("array", tests, NULL, NULL);
}
