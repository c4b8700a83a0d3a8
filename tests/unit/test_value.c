/* test_value.c — lists, records and their shapes, text, ranges, cells: counts, deep data, cycles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/memory.h"
#include "vm/ref.h"
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

static Name name_of(Vm *vm, int i) {
  char text[16];
  snprintf(text, sizeof text, "k%d", i);
  return name_cstr(&vm->names, text);
}

static void deep_lists(void **state) { /* destroyed and compared without recursion */
  Vm *vm = *state;
  Value a = value_nil(), b = value_nil(), next;
  for (int i = 0; i < 200000; i++) {
    assert_true(list_new(vm, 1, &next) && list_push(vm, &next, a));
    a = next;
    assert_true(list_new(vm, 1, &next) && list_push(vm, &next, b));
    b = next;
  }
  bool same;
  assert_int_equal(value_equal(vm, a, b, &same), WEFT_OK);
  assert_true(same);
  value_drop(vm, a);
  value_drop(vm, b);
}

static void lists_grow_in_place(void **state) {
  Vm *vm = *state;
  Value a, b;
  assert_true(list_new(vm, 0, &a));
  for (int i = 0; i < 1000; i++) assert_true(list_push(vm, &a, value_i64(i)));
  b = value_keep(a);
  assert_true(list_push(vm, &b, value_nil())); /* shared: a keeps its items */
  assert_int_equal(a.list->count, 1000);
  assert_int_equal(b.list->count, 1001);
  assert_true(list_extend(vm, &a, a.list->items, 1000)); /* itself */
  assert_int_equal(a.list->items[1999].i, 999);
  value_drop(vm, a);
  value_drop(vm, b);
}

static void shapes_are_shared(void **state) {
  Vm *vm = *state;
  Value a, b;
  assert_true(record_new(vm, &a) && record_new(vm, &b));
  for (int i = 0; i < 5; i++) {
    assert_true(record_set(vm, &a, name_of(vm, i), value_i64(i)));
    assert_true(record_set(vm, &b, name_of(vm, i), value_i64(-i)));
  }
  assert_ptr_equal(a.record->shape, b.record->shape);
  bool found;
  assert_true(record_remove(vm, &b, name_of(vm, 2), &found) && found);
  assert_ptr_not_equal(a.record->shape, b.record->shape);
  assert_int_equal(b.record->shape->count, 4);
  assert_null(record_find(b.record, name_of(vm, 2)));
  assert_int_equal(record_find(b.record, name_of(vm, 4))->i, -4);
  assert_true(record_remove(vm, &b, name_of(vm, 2), &found) && !found);
  value_drop(vm, a);
  value_drop(vm, b);
}

static void dictionaries(void **state) { /* many keys: found, kept in order, removed, copied */
  Vm *vm = *state;
  enum { N = 3000 };
  Value r, copy;
  bool found;
  assert_true(record_new(vm, &r));
  for (int i = 0; i < N; i++) assert_true(record_set(vm, &r, name_of(vm, i), value_i64(i)));
  assert_false(r.record->shape->shared);
  copy = value_keep(r);
  for (int i = 0; i < N; i += 3) assert_true(record_remove(vm, &r, name_of(vm, i), &found) && found);
  assert_int_equal(copy.record->shape->count, N);
  assert_int_equal(r.record->shape->count, N - N / 3);
  int last = -1;
  for (u32 i = 0; i < r.record->shape->count; i++) {
    int v = (int)r.record->items[i].i;
    assert_true(v > last && v % 3 != 0);
    assert_int_equal(shape_find(r.record->shape, name_of(vm, v)), i);
    last = v;
  }
  for (int i = 0; i < N; i++) assert_int_equal(record_find(r.record, name_of(vm, i)) != NULL, i % 3 != 0);
  for (int i = 0; i < N; i++) assert_true(record_remove(vm, &r, name_of(vm, i), &found));
  assert_int_equal(r.record->shape->count, 0);
  Value empty = value_keep(r);
  assert_true(record_set(vm, &empty, name_of(vm, 1), value_i64(1)));
  assert_int_equal(r.record->shape->count, 0);
  value_drop(vm, r);
  value_drop(vm, empty);
  value_drop(vm, copy);
}

static void letters_are_made_once(void **state) {
  Vm *vm = *state;
  Value t, u, part;
  assert_true(text_new(vm, "x", 1, &t) && text_new(vm, "wxyz", 4, &u) && text_slice(vm, u, 1, 2, 1, &part));
  assert_ptr_equal(t.text, part.text);
  assert_true(text_append(vm, &part, u.text)); /* which never is the only one */
  assert_string_equal(part.text->data, "xwxyz");
  assert_string_equal(t.text->data, "x");
  value_drop(vm, t);
  value_drop(vm, u);
  value_drop(vm, part);
}

static void small_texts_grow_in_their_step(void **state) {
  Vm *vm = *state;
  Value t, more, held;
  assert_true(text_new(vm, "ab", 2, &t) && text_new(vm, "\xC3\xA4z", 3, &more));
  const Text *was = t.text;
  assert_true(text_append(vm, &t, more.text));
  assert_int_equal(t.text->count, 4);
  assert_int_equal(t.text->len, 5);
#ifndef __SANITIZE_ADDRESS__
  assert_ptr_equal(t.text, was);
#else
  (void)was;
#endif
  held = value_keep(t);
  assert_true(text_append(vm, &t, more.text)); /* shared: the other one stays */
  assert_string_equal(held.text->data, "ab\xC3\xA4z");
  for (int i = 0; i < 500; i++) {
    u32 len = t.text->len;
    assert_true(text_append(vm, &t, more.text));
    assert_int_equal(t.text->len, len + 3);
    assert_int_equal(t.text->data[len + 3], 0);
    assert_memory_equal(t.text->data + len, "\xC3\xA4z", 3);
  }
  value_drop(vm, held);
  value_drop(vm, t);
  value_drop(vm, more);
}

static void texts_know_their_names(void **state) {
  Vm *vm = *state;
  Value r, t, more;
  assert_true(record_new(vm, &r) && record_set(vm, &r, name_of(vm, 1), value_i64(7)));
  assert_true(text_new(vm, "k1", 2, &t) && text_new(vm, "2", 1, &more));
  assert_int_equal(t.text->head.flags, 0);
  assert_int_equal(record_at(vm, r.record, t.text)->i, 7);
  assert_int_equal(t.text->head.flags, name_of(vm, 1));
  assert_true(text_append(vm, &t, more.text)); /* it is another one then */
  assert_null(record_at(vm, r.record, t.text));
  assert_true(record_set(vm, &r, name_of(vm, 12), value_i64(8)));
  assert_int_equal(record_at(vm, r.record, t.text)->i, 8);
  value_drop(vm, t);
  value_drop(vm, r);
  value_drop(vm, more);
}

static void ranges(void **state) {
  (void)state;
  assert_int_equal(range_count(&(Range){.start = 0, .stop = 10, .step = 3}), 4);
  assert_int_equal(range_count(&(Range){.start = 10, .stop = 0, .step = -3}), 4);
  assert_int_equal(range_count(&(Range){.start = 5, .stop = 5, .step = 1}), 0);
  assert_true(range_count(&(Range){.start = INT64_MIN, .stop = INT64_MAX, .step = 1}) == UINT64_MAX);
  assert_true(range_count(&(Range){.start = INT64_MAX, .stop = INT64_MIN, .step = INT64_MIN}) == 2);
}

static void utf8(void **state) {
  Vm *vm = *state;
  assert_true(text_valid("a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", 10));
  assert_false(text_valid("\xC0\x80", 2));         /* too long a form */
  assert_false(text_valid("\xED\xA0\x80", 3));     /* half of a surrogate pair */
  assert_false(text_valid("\xF4\x90\x80\x80", 4)); /* beyond U+10FFFF */
  assert_false(text_valid("\xE2\x82", 2));         /* cut off */
  assert_false(text_valid("\x80", 1));
  Value v, part;
  assert_true(text_new(vm, "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z", 11, &v));
  assert_int_equal(v.text->count, 5);
  assert_int_equal(text_offset(v.text, 3), 6);
  assert_true(text_slice(vm, v, 1, 3, 1, &part));
  assert_string_equal(part.text->data, "\xC3\xA4\xE2\x82\xAC");
  value_drop(vm, part);
  assert_true(text_slice(vm, v, 4, -1, -2, &part));
  assert_string_equal(part.text->data, "z\xE2\x82\xAC" "a");
  value_drop(vm, part);
  value_drop(vm, v);
}

/* A cell that holds a list with the cell itself. */
static Value cycle(Vm *vm) {
  Value cell, list;
  assert_true(ref_new(vm, value_nil(), &cell));
  assert_true(list_new(vm, 1, &list) && list_push(vm, &list, value_keep(cell)));
  cell.ref->value = list;
  return cell;
}

static void cycles(void **state) {
  Vm *vm = *state;
  Value kept = cycle(vm), inner, outer;
  for (int i = 0; i < 100; i++) value_drop(vm, cycle(vm));
  assert_int_equal(vm->ref_count, 101);
  assert_int_equal(ref_collect(vm), 100);
  assert_int_equal(vm->ref_count, 1);
  /* What hangs on a live cell lives, though it is part of a cycle itself. */
  inner = cycle(vm);
  assert_true(list_push(vm, &kept.ref->value, inner));
  assert_int_equal(ref_collect(vm), 0);
  assert_int_equal(vm->ref_count, 2);
  value_drop(vm, kept);
  assert_int_equal(ref_collect(vm), 2);
  /* A cell held from outside through a record is no garbage. */
  assert_true(record_new(vm, &outer) && record_set(vm, &outer, name_of(vm, 0), cycle(vm)));
  assert_int_equal(ref_collect(vm), 0);
  value_drop(vm, outer);
  assert_int_equal(ref_collect(vm), 1);
  /* Chains in either direction take one pass. */
  Value chain = value_nil(), first;
  for (int i = 0; i < 50000; i++) assert_true(ref_new(vm, chain, &chain));
  assert_true(ref_new(vm, value_nil(), &first));
  assert_int_equal(ref_collect(vm), 0);
  value_drop(vm, chain);
  value_drop(vm, first);
  assert_int_equal(vm->ref_count, 0);
  value_drop(vm, cycle(vm)); /* what is left goes with the VM */
}

static void equality(void **state) {
  Vm *vm = *state;
  Value a, b = value_nil(), t, u = value_nil();
  bool same;
  assert_true(text_new(vm, "x", 1, &t) && text_new(vm, "x", 1, &u));
  assert_true(value_equal(vm, t, u, &same) == WEFT_OK && same);
  assert_true(value_equal(vm, t, value_nil(), &same) == WEFT_OK && !same);
  assert_true(value_equal(vm, value_i64(2), value_f64(2), &same) == WEFT_OK && same);
  assert_true(range_new(vm, 0, 10, 3, &a) && range_new(vm, 0, 12, 3, &b));
  assert_true(value_equal(vm, a, b, &same) == WEFT_OK && same); /* the same items */
  value_drop(vm, a);
  value_drop(vm, b);
  value_drop(vm, t);
  value_drop(vm, u);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(deep_lists, begin, end),
      cmocka_unit_test_setup_teardown(lists_grow_in_place, begin, end),
      cmocka_unit_test_setup_teardown(shapes_are_shared, begin, end),
      cmocka_unit_test_setup_teardown(dictionaries, begin, end),
      cmocka_unit_test_setup_teardown(letters_are_made_once, begin, end),
      cmocka_unit_test_setup_teardown(small_texts_grow_in_their_step, begin, end),
      cmocka_unit_test_setup_teardown(texts_know_their_names, begin, end),
      cmocka_unit_test(ranges),
      cmocka_unit_test_setup_teardown(utf8, begin, end),
      cmocka_unit_test_setup_teardown(cycles, begin, end),
      cmocka_unit_test_setup_teardown(equality, begin, end),
  };
  return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
