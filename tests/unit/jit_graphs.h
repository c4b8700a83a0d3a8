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

#define SIZE "sym n = size(arg0, 0) in [0, 2^62)\n"
#define X SIZE "in %x: f64[n] = arg0\n"
#define XY X "in %y: f64[n] = arg1\n"
#define OUT(values) "out -> 0\nexit 0 return { f: ret = " values " }\nexit 1 limit { f pc 0: r0 = %x }\nentry -> 1\n"
#define RAMP "arange(N) * 0.5 - 3.0"

static const GraphCase elementwise_graphs[] = {
    {XY "in %z: f64[n] = arg2\nin %w: f64[] = arg3\n%1 = add %x %y : f64[n]\n%2 = multiply %1 %z : f64[n]\n"
     "%3 = subtract %2 %w : f64[n]\n" OUT("%3"),
     "arange(N) * 0.5; arange(N) - 3.0; arange(N) * 0.25; f64(1.5)", 1, 0, 0, 0},
    {X "%1 = exp %x : f64[n]\n%2 = add %1 1.0 : f64[n]\n%3 = multiply %1 2.0 : f64[n]\n" OUT("list(%2, %3)"),
     "arange(N) * 0.001", 1, 0, 0, 0},
    /* integers: floor, sign of the divisor, wrapping */
    {SIZE "in %x: i64[n] = arg0\nin %y: i64[n] = arg1\ncheck zero_div %y -> 1\n%1 = floor_divide %x %y : i64[n]\n"
     "%2 = remainder %x %y : i64[n]\n" OUT("list(%1, %2)"),
     "arange(N) - 5; arange(N) - 2", 1, 0, 0, 0},
    {SIZE "in %x: i64[n] = arg0\n%1 = multiply %x 6148914691236517205 : i64[n]\n"
     "%2 = floor_divide %1 -1 : i64[n]\n%3 = left_shift %1 %x : i64[n]\n%4 = right_shift %1 %x : i64[n]\n"
     "%5 = bitwise_xor %3 %4 : i64[n]\n%6 = bit_count %5 : i64[n]\n%7 = sign %1 : i64[n]\n"
     "%8 = abs %1 : i64[n]\n" OUT("list(%1, %2, %3, %4, %5, %6, %7, %8)"),
     "arange(N) * 3 - 9", 1, 0, 0, 0},
    {SIZE "in %x: i64[n] = arg0\n%1 = square %x : i64[n]\ncheck neg_power %1 -> 1\n"
     "%2 = power %x %1 : i64[n]\n%3 = bitwise_not %2 : i64[n]\n%4 = equal %3 %x : bool[n]\n"
     "%5 = logical_not %4 : bool[n]\n%6 = add %5 %4 : i64[n]\n" OUT("list(%2, %5, %6)"), "arange(N) - 3", 1, 0, 0, 0},
    /* floats at their edges */
    {X "%y = reciprocal %x : f64[n]\n%1 = floor_divide %x %y : f64[n]\n"
     "%2 = remainder %x 0.3 : f64[n]\n%3 = minimum %x %y : f64[n]\n%4 = maximum %y 0.25 : f64[n]\n"
     "%5 = sign %x : f64[n]\n%6 = signbit %x : bool[n]\n%7 = copysign %y %x : f64[n]\n%8 = round %x : f64[n]\n"
     "%9 = floor %x : f64[n]\n" OUT("list(%1, %2, %3, %4, %5, %6, %7, %8, %9)"),
     RAMP, 1, 0, 0, 0},
    {X "%1 = divide %x 0.0 : f64[n]\n%2 = isnan %1 : bool[n]\n%3 = isinf %1 : bool[n]\n"
     "%4 = isfinite %1 : bool[n]\n%5 = where %2 -1.0 %1 : f64[n]\n%6 = clip %5 -2.0 2.0 : f64[n]\n"
     "%7 = relu %6 : f64[n]\n%8 = negative %7 : f64[n]\n"
     "%9 = minimum %8 %7 : f64[n]\n" OUT("list(%1, %3, %4, %6, %8, %9)"), RAMP, 1, 0, 0, 0},
    {X "%1 = sin %x : f64[n]\n%2 = tanh %1 : f64[n]\n%3 = log1p %2 : f64[n]\n%4 = power %x 2.5 : f64[n]\n"
     "%5 = atan2 %1 %2 : f64[n]\n%6 = sqrt %4 : f64[n]\n%7 = erf %3 : f64[n]\n"
     OUT("list(%3, %4, %5, %6, %7)"), "arange(N) * 0.01", 1, 0, 0, 0},
    /* dtypes: conversion on the way in and out */
    {SIZE "in %x: i32[n] = arg0\nin %y: f32[n] = arg1\n%1 = add %x %y : f32[n]\n"
     "%2 = multiply %1 0.1 : f32[n]\n%3 = astype %2 {dtype=f64} : f64[n]\n%4 = add %x 7 : i32[n]\n"
     "%5 = greater %y %x : bool[n]\n%6 = astype %5 {dtype=u8} : u8[n]\n%7 = add %6 255 : u8[n]\n"
     OUT("list(%2, %3, %4, %5, %7)"), "i32(arange(N)) - i32(4); f32(arange(N) * 0.3)", 1, 0, 0, 0},
    {X "check cast_range %x 0:i32 -> 1\n%1 = astype %x {dtype=i32} : i32[n]\n%2 = divide %1 3 : f64[n]\n"
     "%3 = logical_and %1 %x : bool[n]\n" OUT("list(%1, %2, %3)"), RAMP, 1, 0, 0, 0},
    /* leaves from 257 elements on */
    {X "check cast_range %x 0:u8 -> 1\n%1 = astype %x {dtype=u8} : u8[n]\n" OUT("%1"), "arange(N) * 1.0", 1, 0, 0, 0},
    /* broadcasting */
    {SIZE "sym m = size(arg1, 0) in [0, 2^62)\nin %x: f64[n] = arg0\n"
     "in %y: f64[m] = arg1\n%1 = expand_dims %x {axis=1} : f64[n, 1]\n%2 = multiply %1 %y : f64[n, m]\n"
     "%3 = add %2 %y : f64[n, m]\n" OUT("list(%2, %3)"), "arange(N) * 0.5; arange(5.0)", 1, 0, 0, 0},
    {SIZE "in %x: f64[n, 3] = arg0\nin %y: f64[3] = arg1\nin %z: f64[n, 1] = arg2\n%1 = add %x %y : f64[n, 3]\n"
     "%2 = multiply %1 %z : f64[n, 3]\n" OUT("%2"),
     "reshape(arange(3.0 * N), (N, 3)); [1.0, 2.0, 3.0]; reshape(arange(1.0 * N), (N, 1))", 1, 0, 0, 0},
    /* numbers alone */
    {"in %x: f64[] = arg0\nin %k: i64[] = arg1\n%1 = multiply %x %x : f64[]\n%2 = add %1 %k : f64[]\n"
     "%3 = sqrt %2 : f64[]\n%4 = add %k 1 : i64[]\n" OUT("list(%3, %4)"), "f64(1.5); i64(4)", 1, 0, 0, 0},
    /* an or of bits that the code generator would move behind its mark */
    {SIZE "in %x: f64[n, 3] = arg0\nin %w: f64[] = arg1\n"
     "in %y: f32[3, n] = arg2\n%1 = copysign %x %x : f64[n, 3]\n%4 = astype %w {dtype=f32} : f32[]\n"
     "%5 = divide %4 %y : f32[3, n]\n%2 = tanh %1 : f64[n, 3]\n%6 = transpose %5 : f32[n, 3]\n"
     "%3 = divide %1 %2 : f64[n, 3]\n" OUT("list(%3, %6)"),
     "reshape(cos(arange(3.0 * N)), (N, 3)); f64(0.75); reshape(f32(arange(3.0 * N) * 0.1 - 2.0), (3, N))", 1, 0, 0, 0},
    /* a number computed once, used by many elements */
    {X "in %w: f64[] = arg1\n%1 = exp %w : f64[]\n%2 = multiply %x %1 : f64[n]\n" OUT("%2"), RAMP "; f64(0.5)",
     1, 0, 0, 0},
    /* views of inputs that are not dense */
    {SIZE "in %x: f64[n, n] = arg0\n%1 = add %x 1.0 : f64[n, n]\n%2 = transpose %x : f64[n, n]\n"
     "%3 = multiply %1 %2 : f64[n, n]\n" OUT("%3"), "reshape(arange(49.0), (7, 7)).T", 1, 0, 0, 0},
};

static const GraphCase reduction_graphs[] = {
    {X "%1 = exp %x : f64[n]\n%2 = multiply %1 2.0 : f64[n]\n%3 = subtract %2 %x : f64[n]\n"
     "%4 = sum %3 : f64[]\n" OUT("%4"), "arange(N) * 0.001", 1, 0, 0, 0},
    {X "%1 = sum %x : f64[]\n%2 = prod %x : f64[]\n%3 = divide %1 %2 : f64[]\n%4 = any %x : bool[]\n"
     "%5 = all %x : bool[]\n%6 = count_nonzero %x : i64[]\n" OUT("list(%1, %3, %4, %5, %6)"),
     "arange(N) * 0.01 + 0.5", 1, 0, 0, 0},
    {X "%1 = min %x : f64[]\n%2 = max %x : f64[]\n%3 = argmin %x : i64[]\n%4 = argmax %x : i64[]\n"
     "%5 = subtract %2 %1 : f64[]\n" OUT("list(%1, %2, %3, %4, %5)"), "sin(arange(N) * 0.7)", 1, 0, 0, 0},
    {SIZE "in %x: f64[n, 7] = arg0\n%1 = sum %x {axis=0} : f64[7]\n%2 = sum %x {axis=1} : f64[n]\n"
     "%3 = max %x {axis=1, keepdims=true} : f64[n, 1]\n%4 = argmax %x {axis=1} : i64[n]\n"
     "%5 = sum %x {axis=[0, 1]} : f64[]\n" OUT("list(%1, %2, %3, %4, %5)"), "reshape(sin(arange(7.0 * N)), (N, 7))",
     3, 0, 0, 0},
    {SIZE "in %x: i32[n] = arg0\n%1 = sum %x : i64[]\n%2 = max %x : i32[]\n%3 = mean %x : f64[]\n"
     "%4 = var %x : f64[]\n" OUT("list(%1, %2, %3, %4)"), "i32(arange(N) * 7 % 13)", 2, 0, 0, 1},
    {SIZE "in %x: f32[n] = arg0\n%1 = sum %x : f32[]\n%2 = std %x : f32[]\n"
     "%3 = norm %x : f32[]\n" OUT("list(%1, %2, %3)"), "f32(sin(arange(N) * 0.1))", 2, 0, 0, 0},
    {SIZE "in %x: f64[n, 5] = arg0\n%1 = nn.softmax %x : f64[n, 5]\n%2 = logsumexp %x {axis=1} : f64[n]\n"
     "%3 = nn.log_softmax %x : f64[n, 5]\n%4 = nn.layer_norm %x : f64[n, 5]\n"
     OUT("list(%1, %2, %3, %4)"), "reshape(sin(arange(5.0 * N)), (N, 5))", 5, 0, 0, 0},
    /* what is reduced along the last axes is computed before each row that it is used in */
    {SIZE "in %x: f64[n, 5] = arg0\n%1 = nn.softmax %x : f64[n, 5]\n" OUT("%1"),
     "reshape(sin(arange(5.0 * N)), (N, 5))", 2, 0, 0, 0},
    {SIZE "in %x: f64[n, 2, 3] = arg0\n"
     "%1 = sum %x {axis=[1, 2], keepdims=true} : f64[n, 1, 1]\n%2 = divide %x %1 : f64[n, 2, 3]\n"
     "%3 = max %2 {axis=[2], keepdims=true} : f64[n, 2, 1]\n%4 = subtract %2 %3 : f64[n, 2, 3]\n" OUT("%4"),
     "reshape(cos(arange(6.0 * N)), (N, 2, 3))", 1, 0, 0, 0},
    {SIZE "in %x: f64[n, 5] = arg0\n%1 = argmax %x {axis=1, keepdims=true} : i64[n, 1]\n"
     "%2 = multiply %x %1 : f64[n, 5]\n%3 = transpose %2 : f64[5, n]\n" OUT("%3"),
     "reshape(sin(arange(5.0 * N)), (N, 5))", 2, 0, 0, 0},
    {SIZE "in %x: f64[n, 5] = arg0\n%1 = sum %x {axis=[0], keepdims=true} : f64[1, 5]\n"
     "%2 = divide %x %1 : f64[n, 5]\n%3 = sum %2 {axis=[0, 1], keepdims=true} : f64[1, 1]\n"
     "%4 = subtract %2 %3 : f64[n, 5]\n" OUT("%4"), "reshape(sin(arange(5.0 * N)) + 2, (N, 5))", 3, 0, 0, 0},
    {SIZE "in %x: bool[n] = arg0\n%1 = sum %x : i64[]\n%2 = min %x : bool[]\n"
     "%3 = argmax %x : i64[]\n" OUT("list(%1, %2, %3)"), "arange(N) % 3 == 1", 1, 0, 0, 1},
    /* the maximum of nothing leaves */
    {X "%1 = max %x : f64[]\n" OUT("%1"), RAMP, 1, 0, 0, 0},
    /* what is not reduced belongs to the kernel of what is */
    {SIZE "in %x: f64[n, 4] = arg0\n%1 = sum %x {axis=1} : f64[n]\n%2 = sqrt %1 : f64[n]\n"
     "%3 = add %2 1.0 : f64[n]\n" OUT("%3"), "reshape(arange(4.0 * N), (N, 4))", 1, 0, 0, 0},
    {X "%1 = cumsum %x : f64[n]\n%2 = cumsum %x {reverse=true} : f64[n]\n%3 = cummax %x : f64[n]\n"
     "%4 = cumprod %x {include_initial=true} : f64[<n + 1>]\n" OUT("list(%1, %2, %3, %4)"),
     "sin(arange(N) * 0.3)", 4, 0, 0, 0},
    {SIZE "in %x: i64[n, 3] = arg0\n%1 = cumsum %x {axis=0} : i64[n, 3]\n"
     "%2 = cumsum %1 {axis=1, reverse=true} : i64[n, 3]\n" OUT("list(%1, %2)"),
     "reshape(arange(3 * N), (N, 3))", 2, 0, 0, 0},
};

static const GraphCase view_graphs[] = {
    /* views alone are no kernels */
    {SIZE "in %x: f64[n, 6] = arg0\n%1 = reshape %x {shape=(n, 2, 3)} : f64[n, 2, 3]\n"
     "%2 = permute_dims %1 {axes=[2, 0, 1]} : f64[3, n, 2]\n%3 = flip %2 {axis=0} : f64[3, n, 2]\n"
     "%4 = transpose %x : f64[6, n]\n" OUT("list(%3, %4)"), "reshape(arange(6.0 * N), (N, 6))", 0, 0, 0, 0},
    {SIZE "in %x: f64[n, 3] = arg0\n%1 = transpose %x : f64[3, n]\n%2 = add %1 1.0 : f64[3, n]\n" OUT("list(%1, %2)"),
     "reshape(arange(3.0 * N), (N, 3))", 1, 0, 0, 0},
    {X "%1 = index %x[1:] : f64[<max(n - min(1, n), 0)>]\n%2 = multiply %1 2.0 : f64[<max(n - min(1, n), 0)>]\n"
     "%3 = flip %x : f64[n]\n%4 = subtract %3 %x : f64[n]\n" OUT("list(%2, %4)"), RAMP, 2, 0, 0, 0},
    {X "%1 = exp %x : f64[n]\n%2 = reshape %1 {shape=(n, 1)} : f64[n, 1]\n%3 = broadcast_to %2 {shape=(n, 4)} : f64[n, "
     "4]\n%4 = sum %3 {axis=0} : f64[4]\n" OUT("list(%3, %4)"), "arange(N) * 0.001", 2, 0, 0, 0},
    {XY "%1 = add %x 1.0 : f64[n]\n%2 = concat %1 %y %x {xs=*3} : f64[<3*n>]\n"
     "%3 = stack %x %y {xs=*2, axis=1} : f64[n, 2]\n" OUT("list(%2, %3)"), RAMP "; arange(1.0 * N)", 2, 0, 0, 0},
    {SIZE "in %x: f64[n] = arg0\nin %i: i64[3] = arg1\ncheck index %i n -> 1\n%1 = index %x[@%i] : f64[3]\n"
     "%2 = multiply %1 2.0 : f64[3]\n" OUT("%2"), RAMP "; [0, -1, 3]", 1, 0, 0, 0},
    {SIZE "in %x: f64[n, 4] = arg0\nin %i: i64[] = arg1\ncheck index %i n -> 1\n%1 = index %x[%i] : f64[4]\n"
     "%2 = index %x[%i, 2] : f64[]\n%3 = add %1 %2 : f64[4]\n" OUT("list(%2, %3)"),
     "reshape(arange(4.0 * N), (N, 4)); i64(-1)", 2, 0, 0, 0},
    {SIZE "in %x: f64[n, 4] = arg0\nin %i: i64[2, 1] = arg1\nin %j: i64[3] = arg2\ncheck index %i n -> 1\n"
     "check index %j 4 -> 1\n%1 = index %x[@%i, @%j] : f64[2, 3]\n" OUT("%1"),
     "reshape(arange(4.0 * N), (N, 4)); [[0], [-1]]; [3, 0, 1]", 3, 0, 0, 0},
    {X "%1 = zeros {shape=(n, 2)} : f64[n, 2]\n%2 = arange n : i64[n]\n%3 = multiply %2 %x : f64[n]\n"
     "%4 = eye 3 : f64[3, 3]\n%5 = full 2.5 {shape=(n)} : f64[n]\n%6 = linspace 0.0 1.0 {num=<n>} : f64[n]\n"
     OUT("list(%1, %3, %4, %5, %6)"), RAMP, 3, 0, 0, 0},
    {SIZE "in %x: f64[n, 3] = arg0\n%1 = tril %x : f64[n, 3]\n%2 = triu %x {k=1} : f64[n, 3]\n"
     "%3 = roll %x {shift=2, axis=0} : f64[n, 3]\n%4 = tile %x {reps=(2, 1)} : f64[<2*n>, 3]\n"
     OUT("list(%1, %2, %3, %4)"), "reshape(arange(3.0 * N), (N, 3))", 2, 0, 0, 1},
    {SIZE "in %x: f64[n, 3] = arg0\n%1 = repeat %x {n=2, axis=1} : f64[n, 6]\n%2 = moveaxis %x {source=0, "
     "destination=1} : f64[3, n]\n%3 = ravel %x : f64[<3*n>]\n%4 = add %3 1.0 : f64[<3*n>]\n"
     "%5 = squeeze %x {axis=[]} : f64[n, 3]\n" OUT("list(%1, %2, %4, %5)"), "reshape(arange(3.0 * N), (N, 3))",
     2, 0, 0, 0},
    {X "%1 = diff %x : f64[<max(n - 1, 0)>]\n" OUT("%1"), RAMP, 0, 0, 1, 0},
    /* what the eager code does */
    {SIZE "in %x: f64[n, n] = arg0\n%1 = add %x 1.0 : f64[n, n]\n%2 = matmul %1 %x : f64[n, n]\n"
     "%3 = sum %2 : f64[]\n" OUT("%3"), "reshape(arange(49.0), (7, 7))", 2, 0, 1, 0},
    {X "%1 = sort %x : f64[n]\n%2 = multiply %1 2.0 : f64[n]\n"
     "%3 %4 = topk %x {k=1} : f64[1] i64[1]\n" OUT("list(%2, %3, %4)"), "sin(arange(N) * 1.7)", 1, 0, 2, 1},
    {X "%1 = update %x[0] set 9.0 : f64[n]\n%2 = add %x %1 : f64[n]\n"
     "%3 = update %2[1:] add 1.0 : f64[n]\n" OUT("list(%2, %3)"), RAMP, 1, 0, 2, 1},
};

#define COLLATZ                                                                                 \
  "in %x: i64[] = arg0\n%n %k = while (%x 0:i64) () {\n"                                        \
  " cond (%v: i64[], %c: i64[]) { %p = greater %v 1 : bool[] yield %p }\n"                      \
  " body (%v: i64[], %c: i64[]) {\n  %r = remainder %v 2 : i64[]\n  %e = equal %r 0 : bool[]\n" \
  "  %m = cond %e (%v) {\n   then (%a: i64[]) { %h = floor_divide %a 2 : i64[] yield %h }\n"    \
  "   else (%a: i64[]) { %t = multiply %a 3 : i64[] %u = add %t 1 : i64[] yield %u }\n"         \
  "  } : i64[]\n  %d = add %c 1 : i64[]\n"                                                      \
  "  next %m %d }\n} : i64[] i64[]\n"

static const GraphCase control_graphs[] = {
    {COLLATZ OUT("list(%n, %k)"), "i64(27)", 0, 1, 0, 0},
    {COLLATZ OUT("list(%n, %k)"), "i64(1)", 0, 1, 0, 0},
    /* an array in place; counters; a check that is proved and one that fails */
    {SIZE "in %x: i64[n] = arg0\n%y %i = while (%x 0) () {\n"
     " cond (%a: i64[n], %k: weak i64[]) { %p = less %k n : weak bool[] yield %p }\n"
     " body (%a: i64[n], %k: weak i64[]) {\n  check index %k n -> 2\n"
     "  %v = index %a[%k] : i64[]\n  %w = multiply %v %v : i64[]\n  %b = update %a[%k] set %w : i64[n]\n"
     "  %j = add %k 1 : weak i64[]\n  next %b %j }\n} -> 2 : i64[n] weak i64[]\n%s = sum %y : i64[]\n"
     "out -> 0\nexit 0 return { f: ret = list(%y, %s, %x) }\nexit 1 limit { f pc 0: r0 = %x }\n"
     "exit 2 check index { f pc 4: r0 = %a, r1 = %k }\nentry -> 1\n",
     "arange(N) - 3", 2, 1, 0, 0},
    {SIZE "in %x: i64[n] = arg0\nin %q: i64[n] = arg1\n%y %i = while (%x 0) (%q) {\n"
     " cond (%f: i64[n], %a: i64[n], %k: weak i64[]) { %p = less %k n : weak bool[] yield %p }\n"
     " body (%g: i64[n], %a: i64[n], %k: weak i64[]) {\n"
     "  %t = index %g[%k] : i64[]\n  check index %t n -> 2\n  %b = update %a[%t] add 1 : i64[n]\n"
     "  %j = add %k 1 : weak i64[]\n  next %b %j }\n} -> 2 : i64[n] weak i64[]\n"
     "out -> 0\nexit 0 return { f: ret = %y }\nexit 1 limit { f pc 0: r0 = %x }\n"
     "exit 2 check index { f pc 4: r0 = %a, r1 = %k }\nentry -> 1\n",
     "arange(N) * 0; (arange(N) * 3) % maximum(1, N - 1) - 1", 0, 1, 0, 0},
    {SIZE "in %x: i64[n] = arg0\nin %q: i64[n] = arg1\n%y %i = while (%x 0) (%q) {\n"
     " cond (%f: i64[n], %a: i64[n], %k: weak i64[]) { %p = less %k n : weak bool[] yield %p }\n"
     " body (%g: i64[n], %a: i64[n], %k: weak i64[]) {\n"
     "  %t = index %g[%k] : i64[]\n  check index %t n -> 2\n  %b = update %a[%t] add 1 : i64[n]\n"
     "  %j = add %k 1 : weak i64[]\n  next %b %j }\n} -> 2 : i64[n] weak i64[]\n"
     "out -> 0\nexit 0 return { f: ret = %y }\nexit 1 limit { f pc 0: r0 = %x }\n"
     "exit 2 check index { f pc 4: r0 = %a, r1 = %k }\nentry -> 1\n",
     "arange(7) * 0; [1, 1, 2, 9, 3, 1, 0]", 0, 1, 0, 0},
    /* two updates in a trip, checks of the second before the first */
    {SIZE "in %x: f64[n] = arg0\n%y %i = while (%x 1) () {\n"
     " cond (%a: f64[n], %k: weak i64[]) { %p = less %k n : weak bool[] yield %p }\n"
     " body (%a: f64[n], %k: weak i64[]) {\n  %h = subtract %k 1 : weak i64[]\n"
     "  check index %k n -> 2\n  %v = index %a[%k] : f64[]\n  %b = update %a[%k] set 0.5 : f64[n]\n"
     "  check index %h n -> 2\n  %w = index %b[%h] : f64[]\n  %s = add %v %w : f64[]\n"
     "  %c = update %b[%h] set %s : f64[n]\n  %j = add %k 1 : weak i64[]\n  next %c %j }\n} -> 2 : f64[n] weak i64[]\n"
     "out -> 0\nexit 0 return { f: ret = %y }\nexit 1 limit { f pc 0: r0 = %x }\n"
     "exit 2 check index { f pc 4: r0 = %a, r1 = %k }\nentry -> 1\n",
     RAMP, 0, 1, 0, 0},
    /* arms that leave, break and go on */
    {SIZE "in %x: f64[n] = arg0\n%s %i = while (0.0:f64 0) (%x) {\n"
     " cond (%f: f64[n], %a: f64[], %k: weak i64[]) { %p = less %k n : weak bool[] yield %p }\n"
     " body (%g: f64[n], %a: f64[], %k: weak i64[]) {\n  %v = index %g[%k] : f64[]\n"
     "  %j = add %k 1 : weak i64[]\n  %o = less %v -2.5 : bool[]\n  cond %o (%a %j) {\n"
     "   then (%b: f64[], %l: weak i64[]) { next %b %l }\n   else (%b: f64[], %l: weak i64[]) { yield }\n  }\n"
     "  %big = greater %v 20.0 : bool[]\n  cond %big (%a %k) {\n"
     "   then (%b: f64[], %l: weak i64[]) { break %b %l }\n   else (%b: f64[], %l: weak i64[]) { yield }\n  }\n"
     "  %c = add %a %v : f64[]\n  next %c %j }\n} -> 2 : f64[] weak i64[]\n"
     "out -> 0\nexit 0 return { f: ret = list(%s, %i) }\nexit 1 limit { f pc 0: r0 = %x }\n"
     "exit 2 check index { f pc 4: r0 = %a, r1 = %k }\nentry -> 1\n",
     RAMP, 0, 1, 0, 0},
    {SIZE "in %x: f64[n] = arg0\n%s %i = while (0.0:f64 0) (%x) {\n"
     " cond (%f: f64[n], %a: f64[], %k: weak i64[]) { %p = less %k n : weak bool[] yield %p }\n"
     " body (%g: f64[n], %a: f64[], %k: weak i64[]) {\n  %v = index %g[%k] : f64[]\n"
     "  %z = multiply %v 2.0 : f64[]\n  %o = greater %z 1.5 : bool[]\n  cond %o () {\n"
     "   then () { exit 3 }\n   else () { yield }\n  }\n  %c = add %a %v : f64[]\n"
     "  %j = add %k 1 : weak i64[]\n  next %c %j }\n} -> 2 : f64[] weak i64[]\n"
     "out -> 0\nexit 0 return { f: ret = list(%s, %i) }\nexit 1 limit { f pc 0: r0 = %x }\nexit 2 check index { f pc "
     "4: r0 = %a, r1 = %k }\nexit 3 cold arm_output { f pc 6: r0 = %a, r1 = %k, r2 = %z }\nentry -> 1\n",
     RAMP, 0, 1, 0, 0},
    /* bodies of arrays: as numbers for few elements, by kernels that are called for other sizes, or as steps of the
     * plan */
    {X "%y %i = while (%x 0) () {\n cond (%a: f64[n], %k: weak i64[]) { %p = less %k 5 : weak bool[] yield %p }\n"
     " body (%a: f64[n], %k: weak i64[]) {\n  %b = multiply %a 1.5 : f64[n]\n  %c = add %b %k : f64[n]\n"
     "  %j = add %k 1 : weak i64[]\n  next %c %j }\n} : f64[n] weak i64[]\n" OUT("list(%y, %i)"),
     RAMP, 1, 2, 0, 0},
    {X "in %w: f64[] = arg1\n%p = greater %w 0.0 : bool[]\n"
     "%y = cond %p (%x %w) {\n then (%a: f64[n], %b: f64[]) { %1 = multiply %a %b : f64[n] yield %1 }\n"
     " else (%a: f64[n], %b: f64[]) { yield %a }\n} : f64[n]\n%s = sum %y : f64[]\n" OUT("list(%y, %s)"),
     RAMP "; f64(-2.5)", 3, 0, 0, 0},
    {XY "%a %b %i = while (%x %y 0) () {\n"
     " cond (%a: f64[n], %b: f64[n], %k: weak i64[]) { %p = less %k 3 : weak bool[] yield %p }\n"
     " body (%a: f64[n], %b: f64[n], %k: weak i64[]) {\n  %c = add %a 1.0 : f64[n]\n  %j = add %k 1 : weak i64[]\n"
     "  next %b %c %j }\n} : f64[n] f64[n] weak i64[]\n" OUT("list(%a, %b, %x)"),
     RAMP "; arange(1.0 * N)", 1, 1, 0, 0},
    /* scan: numbers, and rows */
    {X "%c %ys = scan (0.0:f64) (%x) () length n {\n body (%a: f64[], %v: f64[]) { %b = add %a %v : "
     "f64[] %d = multiply %b 0.5 : f64[] next %b %d }\n} : f64[] f64[n]\n" OUT("list(%c, %ys)"), RAMP, 1, 1, 0, 0},
    {X "%c %ys = scan (0.0:f64) (%x) () length n reverse {\n body (%a: f64[], %v: f64[]) { %b = multiply %a 0.5 : "
     "f64[] %d = add %b %v : f64[] next %d %d }\n} : f64[] f64[n]\n" OUT("list(%c, %ys)"), RAMP, 1, 1, 0, 0},
    {SIZE "in %x: f64[n, 2] = arg0\nin %h: f64[2] = arg1\n%c %ys = scan (%h) (%x) () length n {\n"
     " body (%a: f64[2], %v: f64[2]) { %b = add %a %v : f64[2] %d = multiply %b 0.5 : f64[2] next %b %d }\n"
     "} : f64[2] f64[n, 2]\n" OUT("list(%c, %ys)"), "reshape(arange(2.0 * N), (N, 2)); [0.5, 1.5]", 3, 2, 0, 0},
    /* calls and checkpoints become their bodies */
    {"fn @g (%a: f64[]) { %1 = multiply %a %a : f64[] yield %1 }\nin %x: f64[] = arg0\n%1 = call @g (%x) : f64[]\n"
     "%2 = call @g (%1) : f64[]\n" OUT("list(%1, %2)"), "f64(1.5)", 1, 0, 0, 0},
};

/* Texts of plans, kernels included, as the whole of the compiler makes them. */
typedef struct PlanText {
  const char *text, *plan;
} PlanText;

#endif
