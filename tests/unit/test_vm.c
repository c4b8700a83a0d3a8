/* test_vm.c — the interpreter: programs and the values, errors and counters that come of them. */
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stdlib/stdlib.h"
#include "vm/vm.h"

/* ---- a VM with the cells and lists that the programs below need, and a printer of values -------- */

static void show(Vm *vm, Value v, Buf *b);

static void show_number(Value v, Buf *b) {
  if (v.dtype == DT_bool) buf_puts(b, v.i ? "true" : "false");
  else if (dtype_kind(v.dtype) == DK_FLOAT)
    buf_printf(b, "%.15g%s", num_as_f64(v), num_as_f64(v) == (f64)(i64)num_as_f64(v) ? ".0" : "");
  else buf_printf(b, "%lld", (long long)v.i);
}

static void show_array(Vm *vm, Array *a, u32 axis, i64 at, Buf *b) {
  if (axis == array_rank(a)) {
    show_number(array_load(a, at), b);
    return;
  }
  buf_putc(b, '[');
  for (i64 i = 0; i < array_dims(a)[axis]; i++) {
    if (i) buf_puts(b, ", ");
    show_array(vm, a, axis + 1, at + i * array_strides(a)[axis], b);
  }
  buf_putc(b, ']');
}

static void show(Vm *vm, Value v, Buf *b) {
  switch (v.kind) {
    case V_NUM:
      show_number(v, b);
      if (!value_is_weak(v) && v.dtype != DT_bool) buf_printf(b, ":%s", dtype_name(v.dtype));
      break;
    case V_ARRAY:
      show_array(vm, v.array, 0, 0, b);
      if (v.dtype != DT_f64 && v.dtype != DT_bool) buf_printf(b, ":%s", dtype_name(v.dtype));
      break;
    case V_TEXT: buf_printf(b, "\"%s\"", v.text->data); break;
    case V_LIST:
      buf_putc(b, '(');
      for (u32 i = 0; i < v.list->count; i++) {
        if (i) buf_puts(b, ", ");
        show(vm, v.list->items[i], b);
      }
      buf_puts(b, v.list->count == 1 ? ",)" : ")");
      break;
    case V_RECORD:
      buf_putc(b, '{');
      for (u32 i = 0; i < v.record->shape->count; i++) {
        buf_printf(b, "%s%s: ", i ? ", " : "", name_text(&vm->names, v.record->shape->keys[i]));
        show(vm, v.record->items[i], b);
      }
      buf_putc(b, '}');
      break;
    case V_RANGE:
      buf_printf(b, "%lld..%lld by %lld", (long long)v.range->start, (long long)v.range->stop,
                 (long long)v.range->step);
      break;
    case V_DTYPE: buf_puts(b, dtype_name(v.dtype)); break;
    default: buf_puts(b, value_type_name(v)); break;
  }
}

typedef struct Host {
  Allocator base;
  size_t out;
  long asked, refuse_at;
} Host;

static void *host_resize(Allocator *self, void *p, size_t old_size, size_t new_size) {
  Host *h = (Host *)self;
  if (new_size > old_size && ++h->asked == h->refuse_at) return NULL;
  h->out += new_size - old_size;
  if (new_size) return realloc(p, new_size);
  free(p);
  return NULL;
}

static WeftStatus cell(Vm *vm, void *ctx, const Value *args, u32 nargs, Value *out) {
  (void)ctx;
  (void)nargs;
  return ref_new(vm, value_keep(args[0]), out) ? WEFT_OK : WEFT_ERROR;
}

static WeftStatus raise(Vm *vm, void *ctx, const Value *args, u32 nargs, Value *out) {
  (void)ctx;
  (void)out;
  if (nargs == 1 && args[0].kind == V_RECORD) return vm_raise_again(vm, args[0]);
  return vm_raise(vm, EK_user, value_keep(args[0]));
}

static WeftStatus apply(Vm *vm, void *ctx, const Value *args, u32 nargs, Value *out) { /* calls its first argument */
  (void)ctx;
  Value copy[4];
  for (u32 i = 1; i < nargs; i++) copy[i - 1] = value_keep(args[i]);
  return vm_call(vm, args[0], copy, nargs - 1, out);
}

static WeftStatus copies(Vm *vm, void *ctx, const Value *args, u32 nargs, Value *out) {
  (void)ctx;
  (void)args;
  (void)nargs;
  *out = value_weak_i64((i64)vm->stats.array_copies);
  return WEFT_OK;
}

static Module *new_module(Vm *vm) {
  static const HostFn fns[] = {{.name = "cell", .call = cell}, {.name = "raise", .call = raise},
                               {.name = "apply", .call = apply}, {.name = "copies", .call = copies}};
  Module *m = module_new(vm, "test", "");
  assert_non_null(m);
  for (u32 i = 0; i < COUNT_OF(fns); i++) {
    Value v;
    assert_true(fn_host(vm, &fns[i], &v));
    assert_int_equal(module_set(vm, m, name_cstr(&vm->names, fns[i].name), v), WEFT_OK);
  }
  return m;
}

static Host host;

static Vm *new_vm(void) {
  host = (Host){{host_resize}, 0, 0, 0};
  VmOptions options = {.alloc = &host.base, .limits = {.fuel = UINT64_MAX, .output = UINT64_MAX}};
  Vm *vm = vm_new(&options);
  assert_non_null(vm);
  assert_int_equal(stdlib_install(vm), WEFT_OK);
  assert_true(vm_at_free(vm, stdlib_remove));
  return vm;
}

static void free_vm(Vm *vm) {
  vm_free(vm);
  assert_int_equal(host.out, 0);
}

/* The value as text, or "kind: message". */
static void result_of(Vm *vm, Module *m, const char *program, Buf *b) {
  Value v;
  b->len = 0;
  if (vm_eval(vm, m, "t.weft", program, strlen(program), false, &v) == WEFT_OK) {
    show(vm, v, b);
    value_drop(vm, v);
  } else {
    buf_printf(b, "%s: %s", error_kind_name(vm->error.kind), vm_error_message(vm, NULL));
    vm_error_clear(vm);
  }
}

static u32 failures;

static void check(const char *program, const char *expected) {
  Vm *vm = new_vm();
  Module *m = new_module(vm);
  Buf b;
  buf_init(&b, allocator_system());
  result_of(vm, m, program, &b);
  size_t n = strlen(expected);
  bool prefix = n > 1 && expected[n - 1] == '~'; /* "text~": begins with text */
  if (prefix ? strncmp(buf_text(&b), expected, n - 1) != 0 : strcmp(buf_text(&b), expected) != 0) {
    fprintf(stderr, "%s\n   gives    %s\n   expected %s\n", program, buf_text(&b), expected);
    failures++;
  }
  buf_free(&b);
  free_vm(vm);
}

static void done(void) {
  u32 n = failures;
  failures = 0;
  assert_int_equal(n, 0);
}

/* ---- programs --------------------------------------------------------------------------------- */

static void scalars(void **state) {
  (void)state;
  check("1 + 2 * 3", "7");
  check("2.5", "2.5");
  check("1 + 0.5", "1.5");
  check("i64(1) + 0.5", "1.5:f64");
  check("f32(1) * 2.5", "2.5:f32");
  check("i32(3) * 2", "6:i32");
  check("u8(200) + 100", "44:u8");
  check("u8(5) + 300", "value: ~");
  check("i32(1) + f32(2)", "3.0:f32");
  check("true + true", "2:i64");
  check("7 // 2", "3");
  check("-7 // 2", "-4");
  check("-7 % 2", "1");
  check("7 % -2", "-1");
  check("-7.5 // 2.0", "-4.0");
  check("let m = -9223372036854775807 - 1; m // -1", "-9223372036854775808");
  check("let m = -9223372036854775807 - 1; m % -1", "0");
  check("9223372036854775807 + 1", "-9223372036854775808");
  check("1 // 0", "zero_division: ~");
  check("1 % 0", "zero_division: ~");
  check("1 / 2", "0.5");
  check("2 ** 10", "1024");
  check("-2 ** 2", "-4");
  check("2 ** -1", "value: ~");
  check("1 << 70", "0");
  check("-1 >> 70", "-1");
  check("~5", "-6");
  check("~true", "false");
  check("6 & 3 | 8", "10");
  check("1 < 2", "true");
  check("1 < 2 < 3", "true");
  check("1 == 1.0", "true");
  check("not 0", "true");
  check("0.0 or 2", "true");
  check("nil and true", "type: ~");
  check("3.shape", "()");
  check("3.dtype == i64", "true");
  check("f64(7)", "7.0:f64");
  check("i64(2.9)", "2:i64");
  check("i64(-2.9)", "-2:i64");
  check("u8(-1)", "value: ~");
  check("u8(i64(-1))", "255:u8");
  check("i64(nan)", "value: ~");
  done();
}

static void texts(void **state) {
  (void)state;
  check("\"a\" + \"b\"", "\"ab\"");
  check("\"a\" < \"b\"", "true");
  check("\"abc\"[1]", "\"b\"");
  check("\"abc\"[-1]", "\"c\"");
  check("\"häß\"[1:]", "\"äß\"");
  check("\"häßx\"[::-1]", "\"xßäh\"");
  check("\"häßx\"[1::2]", "\"äx\"");
  check("\"abc\"[3]", "index: index 3 is out of bounds for a text with size 3");
  check("\"b\" in \"abc\"", "true");
  check("\"a\" + 1", "type: ~");
  check("let s = \"\"; let t = \"\"; for i in 0..3000 { s += \"ä\"; if i == 1500 { t = s } }; (s[2999], s[0:2], "
        "t == s[0:1501], len(s), len(t))", "(\"ä\", \"ää\", true, 3000, 1501)");
  check("let s = \"\"; for c in \"häß\" { s = c + s }; s", "\"ßäh\"");
  check("\"a\" == \"a\"", "true");
  check("\"a\" == 1", "false");
  check("let s = \"abc\"; s[0] = \"x\"", "type: text does not change~");
  done();
}

static void lists(void **state) {
  (void)state;
  check("(1, \"a\", [2.0])", "(1, \"a\", [2.0])");
  check("(1, 2) + (3,)", "(1, 2, 3)");
  check("let xs = (); for i in 0..5 { xs += (i,) }; xs", "(0, 1, 2, 3, 4)");
  check("let xs = (1, 2); let ys = xs; ys += (3,); (xs, ys)", "((1, 2), (1, 2, 3))");
  check("let xs = (1, 2, 3); let ys = xs; ys[0] = 9; (xs, ys)", "((1, 2, 3), (9, 2, 3))");
  check("(1, 2, 3, 4)[1:3]", "(2, 3)");
  check("(1, 2, 3, 4)[::-2]", "(4, 2)");
  check("(1, 2, 3, 4)[1..9]", "(2, 3, 4)");
  check("let xs = (1, 2, 3); xs[1:2] = (7, 8, 9); xs", "(1, 7, 8, 9, 3)");
  check("let xs = (1, 2, 3); xs[0:0] = (7,); xs", "(7, 1, 2, 3)");
  check("let xs = (1, 2, 3, 4); xs[::2] = (7, 8); xs", "(7, 2, 8, 4)");
  check("(1, 2)[2]", "index: index 2 is out of bounds for a list with size 2");
  check("(1, 2) + 1", "type: ~");
  check("2 in (1, 2)", "true");
  check("(1, (2, 3)) == (1, (2, 3))", "true");
  check("(1,) == (1.0,)", "true");
  check("([1, 2],) == ([1, 2],)", "true");
  check("([1, 2],) == ([1, 3],)", "false");
  check("([1, 2],) == ([1, 2, 3],)", "false");
  check("(...(1, 2), ...0..2, ...\"ab\", ...[5, 6])", "(1, 2, 0, 1, \"a\", \"b\", 5:i64, 6:i64)");
  done();
}

static void records(void **state) {
  (void)state;
  check("{w: 1, \"b c\": 2}", "{w: 1, b c: 2}");
  check("let r = {a: 1}; r.b = 2; r[\"c\"] = 3; r", "{a: 1, b: 2, c: 3}");
  check("let r = {a: 1}; let q = r; q.a = 5; (r, q)", "({a: 1}, {a: 5})");
  check("{a: 1}.b", "key: the record has no key 'b'~");
  check("{alpha: 1}.alpah", "key: the record has no key 'alpah'; did you mean 'alpha'?");
  check("{a: 1, b: 2} == {b: 2, a: 1}", "true");
  check("\"a\" in {a: 1}", "true");
  check("\"zz\" in {a: 1}", "false");
  check("let r = {a: {b: [1.0, 2.0]}}; r.a.b[1] += 5; r", "{a: {b: [1.0, 7.0]}}");
  check("let r = {a: {b: 1}}; let q = r; q.a.b = 2; (r.a.b, q.a.b)", "(1, 2)");
  check("let r = {a: 1}; {...r, b: 2, ...{a: 3}}", "{a: 3, b: 2}");
  check("let s = 0; let k = \"\"; for (key, v) in {a: 1, b: 2} { k += key; s += v }; (k, s)", "(\"ab\", 3)");
  check("let {a, b: x} = {a: 1, b: 2, c: 3}; (a, x)", "(1, 2)");
  check("let {a, ...rest} = {a: 1, b: 2, c: 3}; rest", "{b: 2, c: 3}");
  check("let {zz} = {a: 1}", "key: ~");
  check("let r = {}; for i in 0..100 { r[\"k\" + \"abcdefghij\"[i // 10] + \"abcdefghij\"[i % 10]] = i }; (r.kaa, "
        "r.kjj, r.kba)", "(0, 99, 10)");
  check("let r = {\"\": 1}; r[\"\"] = 2; (r, r[\"\"])", "({: 2}, 2)");
  check("let r = {n: 1}; r.n += 1; r.n", "2");
  check("let r = {n: 1}; r.m += 1", "key: ~");
  done();
}

static void control(void **state) {
  (void)state;
  check("if 1 < 2 { 5 } else { 6 }", "5");
  check("if false { 5 }", "nil");
  check("let i = 0; while i < 10 { i += 3 }; i", "12");
  check("let s = 0; for i in 0..10 { if i == 3 { continue }; if i == 6 { break }; s += i }; s", "12");
  check("let s = 0; for i in 10..0 by -3 { s = s * 100 + i }; s", "10070401");
  check("let s = 0; for x in [[1, 2], [3, 4]] { s += x[1] }; s", "6:i64");
  check("let s = 0; for (a, b) in ((1, 2), (3, 4)) { s += a * b }; s", "14");
  check("for i in 5 { }", "type: cannot walk over a number~");
  check("if [1, 2] { 1 }",
        "type: a condition is a number or bool of rank 0, got an array of shape (2,): use any(…) or all(…); "
        "~a, a & b, a | b go element by element");
  check("std([1.0, 2.0], ddof=1)", "type: std: there is no parameter 'ddof'; did you mean 'correction'?");
  check("fn f(axis) = 1; f(dim=1)", "type: f: there is no parameter 'dim'; did you mean 'axis'?");
  check("fn f(x) = 1; f(dim=1)", "type: f: there is no parameter 'dim'; there are x");
  check("\"%d\" % 3", "type: %: cannot take text and number; values stand in a text as f\"{x:.2f}\"");
  check("let (a, ...b) = (1, 2, 3); (a, b)", "(1, (2, 3))");
  check("let (a, b) = [1.5, 2.5]; a + b", "4.0:f64");
  check("let (a, b) = (1, 2, 3)", "value: ~");
  check("let a = 1; let b = 2; (a, b) = (b, a); (a, b)", "(2, 1)");
  check("0..4 == 0..4", "true");
  check("3 in 0..10 by 3", "true");
  check("4 in 0..10 by 3", "false");
  check("0..3 + 1", "0..4 by 1");
  check("(0..3) + 1", "type: +: a range is no array; arange~");
  check("0..5 by 0", "value: the step of a range is 0");
  check("(0..10 by 2)[1]", "2");
  check("(0..10)[2:5]", "2..5 by 1");
  done();
}

static void functions(void **state) {
  (void)state;
  check("fn f(x) = x + 1; f(2)", "3");
  check("let f = x => x * 2; f(4)", "8");
  check("fn f(a, b=10, ...rest, key=5) = (a, b, rest, key); (f(1), f(1, 2, 3, 4), f(1, key=7), f(b=3, a=2))",
        "((1, 10, (), 5), (1, 2, (3, 4), 5), (1, 10, (), 7), (2, 3, (), 5))");
  check("fn f(a, b=a + 1) = b; f(5)", "6");
  check("fn f(axis) = 1; f(axsi=1)", "type: f: there is no parameter 'axsi'; did you mean 'axis'?");
  check("fn f(a, b) = a; f(1)", "type: f: the argument 'b' is missing");
  check("fn f(a) = a; f(1, 2)", "type: f: takes 1 argument, got 2");
  check("fn f(a) = a; f(1, a=2)", "type: f: 'a' is given twice");
  check("fn f(a, b, c) = (a, b, c); let xs = (1, 2); f(...xs, 3)", "(1, 2, 3)");
  check("fn f((a, b), {x}) = a + b + x; f((1, 2), {x: 3})", "6");
  check("fn fact(n) = if n < 2 { 1 } else { n * fact(n - 1) }; fact(10)", "3628800");
  check("{ fn even(n) = if n == 0 { true } else { odd(n - 1) }\n fn odd(n) = if n == 0 { false } else { even(n - 1) }\n"
        " even(101) }", "false");
  check("fn make() { fn even(n) = if n == 0 { true } else { odd(n - 1) }\n"
        " fn odd(n) = if n == 0 { false } else { even(n - 1) }\n even }\nlet e = make(); e(100)", "true");
  check("fn loop(n, s) = if n == 0 { s } else { loop(n - 1, s + n) }; loop(100000, 0)", "5000050000");
  check("fn deep(n) = 1 + deep(n + 1); deep(0)", "limit: too deep a recursion~");
  check("{ let x = 1; let f = () => x; x = 2; (f(), x) }", "(1, 2)");
  check("let x = 1; let f = () => x; x = 2; f()", "2");
  check("let x = 3; fn set() { x = 9 }; set(); x", "9");
  check("3 |> (x => x + 1)", "4");
  check("fn f(a, b) = a - b; 5 |> f(3)", "2");
  check("fn f(a, b) = a - b; 5 |> f(3, _)", "-2");
  check("fn f(a, b) = a - b; 5.f(3)", "2");
  check("let r = {f: x => x * 10}; r.f(4)", "40");
  check("fn f(a) = 7; let r = {g: 1}; r.f()", "7");
  check("let r = {a: 1}; r.nofn(2)", "key: ~");
  check("let g = 3; g(1)", "type: 'g' is a number, not a function");
  check("let sum = 3; sum([1])", "type: 'sum' is a number here, not a function: it hides the built-in 'sum'");
  check("[1, 2].sum", "name: 'sum' is a function; write .sum()");
  check("sum([1, 2], axsi=0)", "type: sum: there is no parameter 'axsi'; did you mean 'axis'?");
  check("sum()", "type: sum: the argument 'x' is missing");
  check("sum([1, 2, 3])", "6:i64");
  check("[1, 2, 3].sum()", "6:i64");
  check("apply(x => x + 1, 4)", "5");
  check("eager(x => x + 1)(2)", "3");
  check("fn f(n) = if n == 0 { 0 } else { eager(f)(n - 1) }; f(3)", "0");
  done();
}

static void annotations(void **state) {
  (void)state;
  check("fn f(x: f64[n, d], y: f64[k, d]) = (n, d, k); f(zeros((2, 3)), zeros((4, 3)))", "(2, 3, 4)");
  check("fn f(x: f64[n, d], y: f64[k, d]) = (n, d, k); f(zeros((2, 3)), zeros((4, 5)))",
        "shape: f: 'y' must be f64[k, d], got f64 of shape (4, 5)~");
  check("fn f(x: f64) = x; f(1)", "1");
  check("fn f(x: f64) = x; f(i64(1))", "dtype: ~");
  check("fn f(x: text) = x; f(1)", "type: f: 'x' must be text, got i64 of shape ()");
  check("fn f(x: i64[3]) = x; f([1, 2])", "shape: ~");
  done();
}

static void errors(void **state) {
  (void)state;
  check("try { raise(\"no\") } catch e { (e.message, e.kind) }", "(\"no\", \"user\")");
  check("try { [1, 2][5] } catch e { e.kind }", "\"index\"");
  check("let x = 1; try { x = 2; raise(\"a\") } catch e { x += 10 }; x", "12");
  check("try { try { raise(\"a\") } catch e { raise(e.message + \"b\") } } catch e { e.message }", "\"ab\"");
  check("fn f() = raise(\"deep\"); try { f() } catch e { e.trace[0] }", "\"t.weft:1:10\"");
  check("fn f() { let x = raise(\"deep\"); x }; try { f() } catch e { e.trace[1] }", "\"in f, called at t.weft:1:44\"");
  check("try { 5 } catch e { 6 }", "5");
  check("fn f() { try { return 3 } catch e { 4 } }; f()", "3");
  check("let n = 0; for i in 0..5 { try { if i == 2 { continue }; if i == 4 { break }; "
        "raise(\"x\") } catch e { n += 1 } }; n", "3");
  check("apply(() => raise(\"through\"))", "user: through");
  check("try { apply(() => raise(\"through\")) } catch e { e.message }", "\"through\"");
  check("try { raise(\"a\") } catch e { try { raise(e) } catch g { g.trace[0] } }", "\"t.weft:1:7\"");
  done();
}

static void cells(void **state) {
  (void)state;
  check("let n = cell(0); n.value += 1; n.value", "1");
  check("{ let n = cell(0); let inc = () => { n.value += 1 }; inc(); inc(); n.value }", "2");
  check("let n = cell([1, 2]); n.value[0] = 9; n.value", "[9, 2]:i64");
  check("let xs = (cell(1), 2); let ys = xs; xs[0].value = 5; ys[0].value", "5");
  check("let r = {c: cell({d: 1})}; r.c.value.d = 2; r.c.value", "{d: 2}");
  check("let n = cell(nil); n.value = (n, 1); 3", "3");
  check("let n = cell(1); n == n", "true");
  check("cell(1) == cell(1)", "false");
  check("cell(1).x", "name: a ref has no 'x'; its content is .value");
  done();
}

static void indexing(void **state) {
  (void)state;
  check("[1.5, 2.5][0]", "1.5:f64");
  check("[1, 2, 3][-1]", "3:i64");
  check("[1, 2, 3][3]", "index: index 3 is out of bounds for axis 0 with size 3");
  check("[[1, 2], [3, 4]][1]", "[3, 4]:i64");
  check("[[1, 2], [3, 4]][1, 0]", "3:i64");
  check("[[1, 2], [3, 4]][0, 2]", "index: index 2 is out of bounds for axis 1 with size 2");
  check("[[1, 2], [3, 4]][:, 1]", "[2, 4]:i64");
  check("[[1, 2], [3, 4]][..., 0]", "[1, 3]:i64");
  check("[1, 2][nil, :]", "[[1, 2]]:i64");
  check("[1, 2][:, nil]", "[[1], [2]]:i64");
  check("[0, 1, 2, 3, 4][::2]", "[0, 2, 4]:i64");
  check("[0, 1, 2, 3, 4][::-1]", "[4, 3, 2, 1, 0]:i64");
  check("[0, 1, 2, 3, 4][3:1:-1]", "[3, 2]:i64");
  check("[0, 1, 2, 3, 4][-2:]", "[3, 4]:i64");
  check("[0, 1, 2, 3, 4][1..3]", "[1, 2]:i64");
  check("[0, 1, 2, 3, 4][-2..3]", "[0, 1, 2]:i64");
  check("[0, 1, 2, 3, 4][10..0 by -2]", "[4, 2]:i64");
  check("[0, 1, 2, 3, 4][3..100]", "[3, 4]:i64");
  check("[5, 6, 7][[2, 0, -1]]", "[7, 5, 7]:i64");
  check("[5, 6, 7][[3]]", "index: index 3 is out of bounds for axis 0 with size 3");
  check("[5, 6, 7][[true, false, true]]", "[5, 7]:i64");
  check("[5, 6, 7][[true, false]]", "index: ~");
  check("[[1, 2], [3, 4]][[[true, false], [true, true]]]", "[1, 3, 4]:i64");
  check("[[1, 2, 3], [4, 5, 6]][[0, 1], [2, 0]]", "[3, 4]:i64");
  check("[[1, 2, 3], [4, 5, 6]][:, [2, 0]]", "[[3, 1], [6, 4]]:i64");
  check("[[1, 2, 3], [4, 5, 6]][1, [2, 0]]", "[6, 4]:i64");
  check("[[1, 2, 3], [4, 5, 6]][[[0], [1]], [[0, 1]]]", "[[1, 2], [4, 5]]:i64");
  check("zeros((2, 3, 4))[0, :, [1, 2]].shape", "(2, 3)");
  check("zeros((2, 3, 4))[:, [0, 1], [1, 2]].shape", "(2, 2)");
  check("zeros((2, 3, 4))[[0, 1], :, [1, 2]].shape", "(2, 3)");
  check("zeros((2, 3, 4))[..., [0, 1, 0]].shape", "(2, 3, 3)");
  check("zeros((2, 3))[[1.5]]", "index: ~");
  check("[1, 2][(0, 1)]", "index: an index into an array is no list; array(…)~");
  check("[1, 2][0, 0]", "index: too many indices for an array of shape (2,)");
  check("3[...]", "3:i64");
  check("zeros((2, 3)).T.shape", "(3, 2)");
  check("arange(6)[2:].shape", "(4,)");
  done();
}

static void updating(void **state) {
  (void)state;
  check("let a = [1, 2, 3]; a[1] = 9; a", "[1, 9, 3]:i64");
  check("let a = [1, 2, 3]; let b = a; b[0] = 9; (a, b)", "([1, 2, 3]:i64, [9, 2, 3]:i64)");
  check("let a = [1, 2]; a[0] = 2.5", "dtype: a store keeps the array's dtype: f64 does not go into i64~");
  check("let a = [1, 2]; a[0] += 0.5", "dtype: ~");
  check("let a = [1.0, 2.0]; a[0] = 7; a", "[7.0, 2.0]");
  check("let a = f32([1.0, 2.0]); a[0] = f64(0.1); a.dtype", "f32");
  check("let a = u8([1, 2]); a[0] = 300", "value: 300 does not fit u8");
  check("let a = [1, 2]; a[5] = 1", "index: ~");
  check("let a = [1, 2]; a += 0.5; a", "[1.5, 2.5]");
  check("let a = [[1, 2], [3, 4]]; a[0] = 9; a", "[[9, 9], [3, 4]]:i64");
  check("let a = [[1, 2], [3, 4]]; a[:, 1] = [7, 8]; a", "[[1, 7], [3, 8]]:i64");
  check("let a = [[1, 2], [3, 4]]; a[0, 1] += 10; a", "[[1, 12], [3, 4]]:i64");
  check("let a = [[1, 2], [3, 4]]; a[0][1] = 5; a", "[[1, 5], [3, 4]]:i64");
  check("let a = [[1, 2], [3, 4]]; a[1, :] *= 2; a", "[[1, 2], [6, 8]]:i64");
  check("let a = [1, 2, 3, 4]; a[1:] = a[:-1]; a", "[1, 1, 2, 3]:i64");
  check("let a = [1, 2, 3, 4]; a[::2] = 0; a", "[0, 2, 0, 4]:i64");
  check("let a = [1, 2, 3]; a[[0, 0, 2]] = [7, 8, 9]; a", "[8, 2, 9]:i64");
  check("let a = [1, 2, 3]; a[[0, 0, 2]] += 1; a", "[3, 2, 4]:i64");
  check("let a = [1, 2, 3]; a[[0, 0, 2]] *= 3; a", "[9, 2, 9]:i64");
  check("let a = [1, 2, 3]; a[[0, 1]] *= 3; a", "[3, 6, 3]:i64");
  check("let a = [1, 2, 3]; a[[0, 0]] -= [1, 5]; a", "[-5, 2, 3]:i64");
  check("let a = zeros((2, 2)); a[[0, 0]] += [[1.0, 2.0], [3.0, 4.0]]; a", "[[4.0, 6.0], [0.0, 0.0]]");
  check("let a = [1, 2, 3]; a[[true, false, true]] = 0; a", "[0, 2, 0]:i64");
  check("let a = [1, 2, 3]; a[a > 1] = [8, 9]; a", "[1, 8, 9]:i64");
  check("let a = [1, 2, 3]; a[[0, 1, 2]] = [1, 2]", "shape: a value of shape (2,) does not fit a place of shape (3,)");
  check("let a = zeros((2, 3)); a[:, [0, 2]] = [[1.0, 2.0], [3.0, 4.0]]; a", "[[1.0, 0.0, 2.0], [3.0, 0.0, 4.0]]");
  check("let a = [1, 2]; a[0] = \"x\"", "type: ~");
  check("let a = [1, 2]; a.T = 3", "type: ~");
  check("let a = 5; a[...] = 7; a", "7:i64");
  check("let a = [1, 2, 3]; try { a[[0, 7]] += 1 } catch e { }; a", "[1, 2, 3]:i64");
  check("{ let a = [1, 2]; let f = () => a; a[0] = 5; (a, f()) }", "([5, 2]:i64, [1, 2]:i64)");
  done();
}

static void in_place(void **state) {
  (void)state;
  check("let a = zeros(1000); let n = copies(); for i in 0..1000 { a[i] = i }; copies() - n", "0");
  check("let a = zeros(1000); let b = a; let n = copies(); for i in 0..1000 { a[i] = i }; copies() - n", "1");
  check("fn f() { let a = zeros(100); let n = copies(); for i in 0..100 { a[i] += i }; a[1:3] = 7; a[[1, 2]] *= 2; "
        "copies() - n }; f()", "0");
  check("fn set(a) { a[0] = 1; a }; let x = set(zeros(100)); copies()", "0");
  check("fn set(a) { a[0] = 1; a }; let x = zeros(100); let n = copies(); x = set(x); copies() - n", "1");
  check("let r = {w: zeros(100)}; let n = copies(); for i in 0..10 { r.w[i] = 1; r.w += 1 }; copies() - n", "0");
  check("let xs = (zeros(9), zeros(9)); let n = copies(); xs[1][3] = 2; copies() - n", "0");
  check("let a = zeros(100); for x in a { }; let n = copies(); a[0] = 1; copies() - n", "0");
  check("let n = cell(zeros(100)); n.value[3] = 1; n.value += 1; copies()", "0");
  done();
}

static void formats(void **state) {
  (void)state;
  check("[]", "[]");
  check("[1, 2.5]", "[1.0, 2.5]");
  check("[true, 2]", "[1, 2]:i64");
  check("[f32(1), 2.5].dtype", "f32");
  check("[u8(1), 300]", "value: array literal: 300 does not fit u8");
  check("[[1, 2], [3.5, 4]]", "[[1.0, 2.0], [3.5, 4.0]]");
  check("[[1, 2], [3]]",
        "shape: array literal: element 0 has shape (2,) and element 1 has shape (1,); a list, (a, b), may hold both");
  check("[1, \"a\"]", "type: array literal: element 1 is text~");
  check("[[1, 2], 3]", "shape: ~");
  done();
}

static void safepoints(void **state) {
  (void)state;
  Vm *vm = new_vm();
  Module *m = new_module(vm);
  Buf b;
  buf_init(&b, allocator_system());
  vm->limits.fuel = 5000;
  vm_poll_reset(vm);
  result_of(vm, m, "while true { try { while true { } } catch e { } }", &b);
  assert_string_equal(buf_text(&b), "limit: the fuel is used up");
  result_of(vm, m, "fn f() = 1\nf()", &b);
  assert_string_equal(buf_text(&b), "limit: the fuel is used up");
  vm->limits.fuel = 10; /* exactly: ten calls go, the eleventh does not */
  vm_poll_reset(vm);
  result_of(vm, m, "fn g() { let x = 1; x }\ng(); g(); g(); g(); g(); g(); g(); g(); g(); g()", &b);
  assert_string_equal(buf_text(&b), "1");
  result_of(vm, m, "g()", &b);
  assert_string_equal(buf_text(&b), "limit: the fuel is used up");
  vm->limits.fuel = UINT64_MAX;
  vm->limits.deadline = vm_clock() + 0.05;
  vm_poll_reset(vm);
  result_of(vm, m, "while true { }", &b);
  assert_string_equal(buf_text(&b), "limit: the deadline has passed");
  vm->limits.deadline = 0;
  vm->interrupted = 1;
  result_of(vm, m, "while true { }", &b);
  assert_string_equal(buf_text(&b), "interrupt: interrupted");
  result_of(vm, m, "1 + 1", &b);
  assert_string_equal(buf_text(&b), "2");
  vm->interrupted = 1; /* seen by work that the program did not ask for: the program is interrupted all the same */
  assert_int_equal(vm_poll(vm, 0), WEFT_ERROR);
  vm_error_forget(vm);
  assert_false(vm->error.raised);
  result_of(vm, m, "while true { }", &b);
  assert_string_equal(buf_text(&b), "interrupt: interrupted");
  (void)vm_error(vm, EK_value, "another one");
  vm_error_forget(vm);
  assert_int_equal(vm->interrupted, 0);
  vm->limits.bytes = vm->stats.bytes_now + 100000;
  result_of(vm, m, "let a = zeros(1000000)", &b);
  assert_string_equal(buf_text(&b), "limit: zeros: an array of 1000000 f64, shape (1000000,), takes 7.6 MiB: "
                                    "the memory limit is reached");
  result_of(vm, m, "try { let c = zeros(1000000) } catch e { e.kind }", &b);
  assert_string_equal(buf_text(&b), "\"limit\"");
  vm->limits.bytes = 0;
  result_of(vm, m, "1 + 1", &b);
  assert_string_equal(buf_text(&b), "2");
  buf_free(&b);
  free_vm(vm);
}

static void error_text(void **state) {
  (void)state;
  Vm *vm = new_vm();
  Module *m = new_module(vm);
  Value v;
  Buf b;
  buf_init(&b, allocator_system());
  const char *program = "fn inner(x) {\n  let y = x[9]\n  y\n}\nfn outer(x) {\n  let y = inner(x)\n  y\n}\nouter([1])";
  assert_int_equal(vm_eval(vm, m, "t.weft", program, strlen(program), false, &v), WEFT_ERROR);
  vm_error_text(vm, &b);
  assert_string_equal(buf_text(&b),
                      "error: index 9 is out of bounds for axis 0 with size 1\n"
                      "  --> t.weft:2:11\n"
                      "  |\n"
                      "2 |   let y = x[9]\n"
                      "  |           ^^^^\n"
                      "  in inner, called at t.weft:6:11\n"
                      "  in outer, called at t.weft:9:1\n");
  buf_free(&b);
  free_vm(vm);
}

/* Every allocation refused once: the program ends as it would, or with a limit error; nothing is lost. */
static void refused_memory(void **state) {
  (void)state;
  static const char *const programs[] = {
      "fn f(a, b=2, ...rest, key=1) = (a, b, rest, key); f(1, ...(2, 3, 4), key=5)",
      "let r = {a: {b: (1, 2)}}; let q = r; q.a.b += (3,); q.c = 1; r[\"zz\"] = 2; {...r, ...q}",
      "let a = zeros((40, 40)); let b = a; b[3, :] = 1; a[[1, 1, 2]] += 1; b[b > 0] = 5; a[:, [1, 2]] *= 2; a[0]",
      "let s = 0; for (k, v) in {a: 1, b: 2} { s += v }; for c in \"abc\" { s += 1 }; s",
      ("fn make(n) { fn a(x) = if x == 0 { n } else { b(x - 1) }\n fn b(x) = a(x)\n let f = x => a(x) + n\n"
       " f }; make(3)(4)"),
      "try { [1, 2][7] } catch e { e.message }",
      "let n = cell(1); let xs = (n, n); xs[0].value += 2; n.value",
      "let {a, ...rest} = {a: 1, b: 2, c: 3}; let (x, ...y) = (1, 2, 3); (rest, y, [[1, 2], [3, 4]].T)",
  };
  Buf expected, got;
  buf_init(&expected, allocator_system());
  buf_init(&got, allocator_system());
  for (u32 p = 0; p < COUNT_OF(programs); p++) {
    Vm *vm = new_vm();
    Module *m = new_module(vm);
    long before = host.asked;
    result_of(vm, m, programs[p], &expected);
    long asked = host.asked - before;
    free_vm(vm);
    assert_true(asked > 0);
    for (long n = 1; n <= asked; n++) {
      vm = new_vm();
      m = new_module(vm);
      host.refuse_at = host.asked + n;
      result_of(vm, m, programs[p], &got);
      bool caught = strcmp(buf_text(&got), "\"out of memory\"") == 0; /* by the program's own try */
      if (strcmp(buf_text(&got), buf_text(&expected)) != 0 && strncmp(buf_text(&got), "limit: ", 7) != 0 && !caught)
        fail_msg("%s\nallocation %ld refused: %s", programs[p], n, buf_text(&got));
      host.refuse_at = 0;
      result_of(vm, m, "1 + 1", &got); /* the VM goes on */
      assert_string_equal(buf_text(&got), "2");
      free_vm(vm);
    }
  }
  buf_free(&expected);
  buf_free(&got);
}

/* A tier that answers for functions: 42 at the entry of `answer`, an error at that of `fail`; it notes loops. */
typedef struct Tier {
  u32 entries, heads;
  u32 head_pc;
} Tier;

static TierResult at_site(Vm *vm, Frame *f, u32 site) {
  Tier *t = vm->tier_state;
  const Proto *p = f->code->proto;
  if (p->sites[site].kind == SITE_LOOP) {
    t->heads++;
    t->head_pc = f->pc;
    return TIER_STAY;
  }
  t->entries++;
  assert_int_equal(f->pc, 0);
  const char *name = name_text(&vm->names, p->name);
  if (strcmp(name, "answer") == 0) {
    vm_return(vm, value_i64(42));
    return TIER_RAN;
  }
  if (strcmp(name, "fail") == 0) {
    (void)vm_error(vm, EK_user, "from the tier");
    return TIER_RAISED;
  }
  return TIER_STAY;
}

static void tier(void **state) {
  (void)state;
  static const TierHooks hooks = {.site = at_site};
  Vm *vm = new_vm();
  Module *m = new_module(vm);
  Tier t = {0};
  Buf b;
  buf_init(&b, allocator_system());
  vm->tier = &hooks;
  vm->tier_state = &t;
  vm->tunables.hot_calls = vm->tunables.warm_calls = 3;
  vm->tunables.hot_trips = vm->tunables.warm_trips = 5;
  result_of(vm, m, "fn answer(x) = x\nlet xs = (); for i in 0..4 { xs += (answer(i),) }; xs", &b);
  assert_string_equal(buf_text(&b), "(0, 1, 42:i64, 42:i64)");
  assert_int_equal(t.entries, 2);
  assert_int_equal(t.heads, 0);
  result_of(vm, m, "let s = 0; for i in 0..10 { s += apply(answer, i) }; s", &b); /* called from C */
  assert_string_equal(buf_text(&b), "420:i64");
  assert_int_equal(t.heads, 6); /* the fifth trip and those behind it */
  result_of(vm, m,
            "fn fail(x) = x\nfail(1); fail(1); let r = try { fail(1) } catch e { e.message + e.trace[0] }; r", &b);
  assert_string_equal(buf_text(&b), "\"from the tiert.weft:1:14\"");
  result_of(vm, m, "fn other(n) { let i = 0; while i < n { i += 1 }; i }\nother(7)", &b);
  assert_string_equal(buf_text(&b), "7");
  assert_int_equal(t.heads, 9);
  buf_free(&b);
  free_vm(vm);
}

static void rounding(void **state) { /* the host's rounding mode neither matters nor changes */
  (void)state;
  Vm *vm = new_vm();
  Module *m = new_module(vm);
  Buf b;
  buf_init(&b, allocator_system());
  fesetround(FE_UPWARD);
  result_of(vm, m, "let x = 0.1; x + 0.2 == 0.30000000000000004 and 1.0 / 3 * 3 == 1", &b);
  int after = fegetround();
  fesetround(FE_TONEAREST);
  assert_string_equal(buf_text(&b), "true");
  assert_int_equal(after, FE_UPWARD);
  buf_free(&b);
  free_vm(vm);
}

static char *resolve(void *ctx, const char *path) {
  static const struct {
    const char *path, *text;
  } files[] = {
      {"m.weft", "let count = 0\nlet _secret = 1\nfn up() { count += 1; count }\nfn twice(x) = x * 2"},
      {"a.weft", "import \"b.weft\" as b\nlet x = 1"},
      {"b.weft", "import \"a.weft\" as a\nlet y = 1"},
      {"bad.weft", "let x = (1 +"},
      {"fails.weft", "let x = [1][5]"},
  };
  ++*(int *)ctx;
  for (u32 i = 0; i < COUNT_OF(files); i++)
    if (strcmp(files[i].path, path) == 0) return strdup(files[i].text);
  return NULL;
}

static void modules(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"import \"m.weft\" as m; import \"m.weft\" as n; m.up(); n.up(); (m.count, n == m, m.twice(4))", "(2, true, 8)"},
      {"import \"m.weft\" as m; m._secret", "name: '_secret' is private to module 'm'"},
      {"import \"m.weft\" as m; m.twcie(1)", "name: module 'm' has no 'twcie'; did you mean 'twice'?"},
      {"import \"m.weft\" as m; m.count = 3", "type: a module's variables are not assigned from outside"},
      {"import \"a.weft\" as a", "name: import: 'a.weft' imports itself~"},
      {"import \"none.weft\" as a", "io: import: there is no module 'none.weft'"},
      {"import \"bad.weft\" as a", "syntax: ~"},
      {"import \"fails.weft\" as a", "index: ~"},
      {"import linalg; linalg.trace([[1.0, 2.0], [3.0, 4.0]])", "5.0:f64"},
      {"linalg.trce", "name: module 'linalg' has no 'trce'; did you mean 'trace'?"},
      {"nn == nn", "true"},
  };
  Buf b;
  buf_init(&b, allocator_system());
  for (u32 i = 0; i < COUNT_OF(cases); i++) {
    Vm *vm = new_vm();
    Module *m = new_module(vm);
    int asked = 0;
    vm->resolve_module = resolve;
    vm->resolver_ctx = &asked;
    result_of(vm, m, cases[i][0], &b);
    size_t n = strlen(cases[i][1]);
    bool prefix = cases[i][1][n - 1] == '~';
    if (strncmp(buf_text(&b), cases[i][1], prefix ? n - 1 : n + 1) != 0) {
      fprintf(stderr, "%s\n   gives    %s\n   expected %s\n", cases[i][0], buf_text(&b), cases[i][1]);
      failures++;
    }
    assert_true(asked <= 2);
    free_vm(vm);
  }
  buf_free(&b);
  done();
}

static void repl_state(void **state) { /* globals stay, redefinition is seen, an error leaves the rest */
  (void)state;
  Vm *vm = new_vm();
  Module *m = new_module(vm);
  Buf b;
  buf_init(&b, allocator_system());
  result_of(vm, m, "fn f(x) = g(x) + 1\nfn g(x) = x * 10\nlet a = 5", &b);
  result_of(vm, m, "f(a)", &b);
  assert_string_equal(buf_text(&b), "51");
  result_of(vm, m, "fn g(x) = x * 100", &b);
  result_of(vm, m, "f(a)", &b);
  assert_string_equal(buf_text(&b), "501");
  result_of(vm, m, "let q = a + nothing_here", &b);
  assert_int_equal(strncmp(buf_text(&b), "name: ", 6), 0);
  result_of(vm, m, "a", &b);
  assert_string_equal(buf_text(&b), "5");
  buf_free(&b);
  free_vm(vm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scalars),   cmocka_unit_test(texts),      cmocka_unit_test(lists),     cmocka_unit_test(records),
      cmocka_unit_test(control), cmocka_unit_test(functions), cmocka_unit_test(annotations), cmocka_unit_test(errors),
      cmocka_unit_test(cells), cmocka_unit_test(indexing), cmocka_unit_test(updating), cmocka_unit_test(in_place),
      cmocka_unit_test(formats), cmocka_unit_test(safepoints), cmocka_unit_test(error_text),
      cmocka_unit_test(repl_state), cmocka_unit_test(tier), cmocka_unit_test(modules), cmocka_unit_test(rounding),
      cmocka_unit_test(refused_memory),
  };
  return cmocka_run_group_tests_name("vm", tests, NULL, NULL);
}
