/* jit_graphs.h — graphs for test_jit.c: text, arguments (N: a size), and what each becomes. */
#ifndef WEFT_TESTS_JIT_GRAPHS_H
#define WEFT_TESTS_JIT_GRAPHS_H

#include "parser/base.h"

typedef struct GraphCase {
  const char *text;
  const char *args;
  u32 kernels, natives, externs;
  i64 least; /* size from which on it runs */
} GraphCase;

#define N "sym n = size(arg0, 0) in [0, 2^62)\n"
#define X N "in %x: f64[n] = arg0\n"
#define XY X "in %y: f64[n] = arg1\n"
#define END(values) "out -> 0\nexit 0 return { f: ret = " values " }\nexit 1 limit { f pc 0: r0 = %x }\nentry -> 1\n"

static const GraphCase elementwise_graphs[] = {
    {XY "in %z: f64[n] = arg2\nin %w: f64[] = arg3\n%1 = add %x %y : f64[n]\n%2 = multiply %1 %z : f64[n]\n%3 = subtract %2 %w : f64[n]\n" END("%3"),
     "arange(N) * 0.5; arange(N) - 3.0; arange(N) * 0.25; f64(1.5)", 1, 0, 0, 0},
    {X "%1 = exp %x : f64[n]\n%2 = add %1 1.0 : f64[n]\n%3 = multiply %1 2.0 : f64[n]\n" END("list(%2, %3)"), "arange(N) * 0.001", 1, 0, 0, 0},
    {N "in %x: i64[n] = arg0\nin %y: i64[n] = arg1\ncheck zero_div %y -> 1\n%1 = floor_divide %x %y : i64[n]\n%2 = remainder %x %y : i64[n]\n" END("list(%1, %2)"),
     "arange(N) - 5; arange(N) - 2", 1, 0, 0, 0},
};

static const GraphCase reduction_graphs[] = {
    {X "%1 = exp %x : f64[n]\n%2 = multiply %1 2.0 : f64[n]\n%3 = subtract %2 %x : f64[n]\n%4 = sum %3 : f64[]\n" END("%4"), "arange(N) * 0.001", 1, 0, 0, 0},
};

static const GraphCase view_graphs[] = {
    {N "in %x: f64[n, 3] = arg0\n%1 = transpose %x : f64[3, n]\n%2 = add %1 1.0 : f64[3, n]\n" END("list(%1, %2)"), "reshape(arange(3 * N) * 1.0, (N, 3))", 1, 0, 0, 0},
};

static const GraphCase control_graphs[] = {
    {"in %x: i64[] = arg0\n%n %k = while (%x 0:i64) () {\n cond (%v: i64[], %c: i64[]) { %p = greater %v 1 : bool[] yield %p }\n"
     " body (%v: i64[], %c: i64[]) {\n  %r = remainder %v 2 : i64[]\n  %e = equal %r 0 : bool[]\n"
     "  %m = cond %e (%v) {\n   then (%a: i64[]) { %h = floor_divide %a 2 : i64[] yield %h }\n"
     "   else (%a: i64[]) { %t = multiply %a 3 : i64[] %u = add %t 1 : i64[] yield %u }\n  } : i64[]\n  %d = add %c 1 : i64[]\n  next %m %d }\n} : i64[] i64[]\n" END("list(%n, %k)"),
     "i64(27)", 0, 1, 0, 0},
};

#undef N
#endif
