/* deadlines.c — long single operations end soon after the program's deadline, and after an interrupt from another
 * thread, interpreted and compiled.
 *
 *   deadlines [--large] [--moments COUNT SEED] [NAME]
 *
 * Each operation is repeated until it is stopped. Its lateness is the processor time that the VM's thread takes from
 * the moment of the deadline or the interrupt on, so that a busy machine does not count. Without --large those run that
 * need a few hundred MB at most. The same VM goes on behind each error. With NAME: those that begin so.
 * Behind them programs of all kinds are interrupted at COUNT random moments each ("at any moment"; 2). */
#define _GNU_SOURCE
#include "tests/support/stopping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* weft.h promises 20 ms; one match of a pattern may take 0.1 s, a part of a product by OpenBLAS 13 ms on a core that it
 * has for itself. Under load the thread's own time is longer, too (caches,
 * the other half of a core): what is late is tried again, and late by itself each time. */
enum { WAIT_MS = 100, LATE_MS = 20, LIBRARY_LATE_MS = 120, TRIES = 12 };

typedef struct Long {
  const char *name, *setup, *body; /* the body needs what it makes, which compiled code could leave out otherwise */
  bool large; /* more than a few hundred MB, some seconds to set up, or one more of a kind */
} Long;

static const Long longs[] = {
    {"random.uniform", "", "s += sum(random.uniform(random.key(1), 40000000))", false},
    {"random.normal of f32", "", "s += sum(random.normal(random.key(1), 40000000, dtype=f32))", false},
    {"random.randint", "", "s += sum(random.randint(random.key(1), 0, 9, 40000000))", false},
    {"random.bernoulli", "", "s += sum(random.bernoulli(random.key(1), 0.5, 200000000))", false},
    {"random.exponential", "", "s += sum(random.exponential(random.key(1), 40000000))", false},
    {"random.permutation", "", "s += random.permutation(random.key(1), 20000000)[7]", false},
    {"rand", "", "s += rand(30000000)[7]", false},
    {"zeros", "", "s += zeros(30000000)[7]", false},
    {"full", "", "s += full(30000000, 2.5)[7]", false},
    {"arange", "", "s += arange(30000000)[7]", false},
    {"linspace", "", "s += linspace(0.0, 1.0, 20000000)[7]", false},
    {"conversion", "let x = rand(20000000)", "s += f32(x)[7]", false},
    {"stats.bootstrap", "", "s += stats.bootstrap(random.key(0), rand(10000), median, n=4000).low", false},
    {"convolve", "let x = rand(500000)", "s += convolve(x, x)[7]", false},
    {"a loop over whole arrays", "let x = rand(500000)\nlet y = x * 2.0",
     "for i in 0..500000 { y += x[i] * x }\ns += y[0]", false},
    {"regex.find", "", "try { regex.find(\"a\" * 40 + \"b\", \"(a+)+$\") } catch e { s += 1.0 }", false},
    {"table.codes", "let t = {a: list(0..2000000)}", "s += table.codes(t, \"a\")[7]", false},
    {"product of integers", "let x = i64(rand((1500, 1500)) * 9.0)", "s += (x @ x)[0, 0]", false},
    {"product", "let x = rand((3000, 3000))", "s += (x @ x)[0, 0]", false},
    {"product of f32", "let x = f32(rand((4000, 4000)))", "s += (x @ x)[0, 0]", false},
    {"products, many", "let x = rand((200, 200, 200))", "s += (x @ x)[0, 0, 0]", false},
    {"matrix and vector", "let x = rand((5000, 5000))\nlet v = rand(5000)", "s += (x @ v)[0] + (v @ x)[0]", false},
    {"sort", "let x = rand(4000000)", "s += sort(x)[7]", false},
    {"sort along columns", "let x = rand((2000, 2000))", "s += sort(x, axis=0)[7, 7]", false},
    {"argsort", "let x = rand(4000000)", "s += argsort(x)[7]", false},
    {"sort of texts", "let x = map(i => str(i * 7919 % 100003), 0..200000)", "s += len(sort(x))", false},
    {"topk", "let x = rand(4000000)", "s += topk(x, 10)[0][0]", false},
    {"median", "let x = rand(6000000)", "s += median(x)", false},
    {"quantile", "let x = rand(6000000)", "s += quantile(x, 0.3)", false},
    {"unique", "let x = rand(4000000)", "s += unique(x)[7]", false},
    {"unique of rows", "let x = i64(rand((400000, 3)) * 9.0)", "s += unique(x, axis=0)[0, 0]", false},
    {"searchsorted", "let x = sort(rand(1000000))\nlet y = rand(2000000)", "s += searchsorted(x, y)[7]", false},
    {"isin", "let x = rand(2000000)", "s += isin(x, x[0:1000000])[7]", false},
    {"concat of rows", "let rows = unstack(rand((200000, 8)))", "s += concat(rows)[7]", false},
    {"stack of rows", "let rows = unstack(rand((200000, 8)))", "s += stack(rows)[7, 7]", false},
    {"unstack", "let x = rand((300000, 8))", "s += len(unstack(x))", false},
    {"split of an array", "let x = rand(600000)", "s += len(split(x, 300000))", false},
    {"split of a text", "let t = \"ab cd \" * 400000", "s += len(split(t, \" \"))", false},
    {"join", "let t = split(\"ab cd \" * 400000, \" \")", "s += len(join(t, \"-\"))", false},
    {"take_along_axis", "let x = rand((3000, 3000))\nlet i = argsort(x)", "s += take_along_axis(x, i)[7, 7]", false},
    {"take", "let x = rand(8000000)\nlet i = i64(x * 8e6)", "s += x[i][7]", false},
    {"tile", "let x = rand(1000)", "s += tile(x, 10000)[7]", false},
    {"repeat", "let x = rand(1000)", "s += repeat(x, 10000)[7]", false},
    {"transposed copy", "let x = rand((3000, 3000))", "s += ravel(x.T)[7]", false},
    {"pad", "let x = rand((4000, 4000))", "s += pad(x, 3)[7, 7]", false},
    {"roll", "let x = rand(8000000)", "s += roll(x, 7)[7]", false},
    {"cumsum", "let x = rand(4000000)", "s += cumsum(x)[7]", false},
    {"cumprod of c128", "let x = c128(rand(5000000))", "s += abs(cumprod(x)[7])", false},
    {"where", "let x = rand(20000000)", "s += where(x > 0.5, x, -x)[7]", false},
    {"nonzero", "let x = rand(20000000)", "s += nonzero(x > 0.5)[0][7]", false},
    {"by truth", "let x = rand(20000000)", "s += x[x > 0.5][7]", false},
    {"by places, into small", "let x = rand(50)\nlet i = i64(rand(8000000) * 50.0)", "s += x[i][7]", false},
    {"by truth, few", "let x = rand(20000000)\nlet m = x > 2.0", "s += f64(len(x[m]))", false},
    {"store by truth", "let x = rand(20000000)\nlet m = x > 2.0", "x[m] = 0.0\ns += x[7]", false},
    {"store of a part", "let x = rand(20000000)\nlet y = rand(10000000)", "x[::2] = y\ns += x[7]", false},
    {"store at places", "let x = rand(8000000)\nlet i = i64(x * 8e6)", "x[i] = 0.5\ns += x[7]", false},
    {"added at places", "let x = rand(8000000)\nlet i = i64(x * 8e6)", "x[i] += 0.5\ns += x[7]", false},
    {"in place", "let x = rand(20000000)", "x += 0.5\ns += x[7]", false},
    {"text, found", "let t = \"ab cd \" * 4000000", "s += find(t, \"abx\")", false},
    {"text, compared", "let t = \"ab cd \" * 9000000\nlet u = t + \"a\"\nlet v = t + \"b\"",
     "if u < v { s += 1.0 }", false},
    {"text, made", "let t = \"ab cd \" * 4000000", "s += f64(len(t + \"x\"))", false},
    {"text, found in", "let t = \"ab\" * 30000000", "if \"ba b\" in t { s += 1 }", false},
    {"text, replaced", "let t = \"a\" * 8000000", "s += f64(len(replace(t, \"a\", \"bcdefgh\")))", false},
    {"text, trimmed", "let t = \" \" * 60000000", "s += f64(len(trim(t)) + len(split(t)))", false},
    {"text, in upper case", "let t = \"ß\" * 10000000", "s += f64(len(upper(t)))", false},
    {"text, every second", "let t = \"ßa\" * 10000000", "s += f64(len(t[::2]))", true},
    {"text, its codes", "let t = \"ß\" * 20000000", "s += f64(codes(t)[7])", true},
    {"text, padded", "", "s += f64(len(pad_left(\"a\", 100000000)))", true},
    {"text of a shared tree", "let a = (1, 1)\nfor i in 0..60 { a = {x: a, y: (a, ref(a))} }", "s += f64(len(str(a)))",
     false},
    {"text of a shared tree, in an f-string", "let a = (1, 1)\nfor i in 0..60 { a = (a, a) }",
     "s += f64(len(f\"{a:>9}\"))", false},
    {"text of a shared tree, as an error", "let a = (1, 1)\nfor i in 0..60 { a = (a, a) }", "error(a)", true},
    {"text of a shared tree, of an assertion",
     "let a = (1, 1)\nfor i in 0..60 { a = (a, a) }", "assert(s > 0, a)", true},
    {"text of a list of long texts", "let a = (\"a\\n\" * 9000000,)", "s += f64(len(str(a)))", true},
    {"text of an array by a spec", "let x = rand(300000)", "s += f64(len(f\"{x:.30f}\"))", true},
    {"json.text of a long text", "let a = \"a\\n\" * 9000000", "s += f64(len(json.text(a)))", false},
    {"json.parse of blanks", "let t = \" \" * 60000000 + \"1\"", "s += json.parse(t)", true},
    {"json.parse of digits", "let t = \"[\" + \"1\" * 30000000 + \"]\"",
     "try { json.parse(t) } catch e { s += 1 }", false},
    {"json.parse of a long text", "let t = \"\\\"\" + \"a\" * 60000000 + \"\\\"\"",
     "s += f64(len(json.parse(t)))", true},
    {"lists of long texts, compared",
     "let t = \"a\" * 3000000\nlet u = t + \"b\"\nlet v = t + \"b\"\n"
     "let a = map(i => u, 0..1000)\nlet b = map(i => v, 0..1000)",
     "if a == b { s += 1 }", false},
    {"source, one function of many statements",
     "let t = \"let f = x => {\\n\" + \"let y = x\\n\" * 100000 + \"y }\"",
     "eval(t)", false},
    {"source, many branches",
     "let t = \"fn f(x) {\\n\" + \"if x > 1 { x = x + 1 } else { x = 0 }\\n\" * 30000 + \"}\"",
     "eval(t)", false},
    {"source, a long literal", "let t = \"[\" + \"1.5, \" * 500000 + \"1]\"", "eval(t)", true},
    {"source, an error at its end",
     "let t = \"fn f(x) {\\n\" + \"f(f(x, 1), x)\\n\" * 60000 + \")\"",
     "try { eval(t) } catch e { s += 1 }", false},
    {"leaves of a shared tree", "let a = ()\nfor i in 0..60 { a = (a, a) }", "s += f64(len(tree_leaves(a)))", false},
    {"map of a shared tree", "let a = ()\nfor i in 0..60 { a = (a, {x: a}) }", "tree_map(x => x, a)", false},
    {"a shared tree under vmap", "let a = ()\nfor i in 0..60 { a = (a, a) }", "vmap(x => 1.0)(a)", false},
    {"a shared tree under grad", "let a = ()\nfor i in 0..60 { a = (a, a) }", "grad(x => 1.0)(a)", false},
    {"a shared tree, its gradient stopped", "let a = ()\nfor i in 0..60 { a = (a, a) }",
     "grad(x => checkpoint((p, t) => p)(x, a))(1.0)", true},
    {"a shared tree as a state", "let a = ()\nfor i in 0..60 { a = (a, a) }", "scan((c, x) => (c, x), a, arange(3.0))",
     true},
    {"a shared tree as an argument of cond", "let a = ()\nfor i in 0..60 { a = (a, a) }",
     "cond(s < 1, x => x, x => x, a)", true},
    {"axes that are a shared tree", "let a = 0\nfor i in 0..60 { a = (a, a) }", "vmap(x => 1.0, in_axes=a)", true},
    {"an array of shared lists", "let a = list(0..30)\nfor i in 0..9 { a = map(j => a, 0..30) }",
     "s += array(a)[0]", true},
    {"order of shared lists", "let a = list(0..30)\nfor i in 0..6 { a = map(j => a, 0..30) }", "s += len(sort((a, a)))",
     false},
    {"a record, spread", "let r = {}\nfor i in 0..600000 { r[str(i)] = i }", "s += f64(len({...r, x: 1}))", false},
    {"a record, copied", "let r = {}\nfor i in 0..600000 { r[str(i)] = i }", "let q = r\nq.x = 1\ns += f64(len(q))",
     true},
    {"a list, spread", "let l = arange(10000000)", "s += f64(len((...l, 1)))", false},
    {"arguments, spread", "let l = list(0..4000000)\nfn f(...r) = len(r)", "s += f64(f(...l))", true},
    {"a list, taken apart", "let l = list(0..10000000)", "let (a, ...b) = l\ns += f64(len(b))", true},
    {"a list, copied", "let l = list(0..10000000)", "let m = l\nm[3] = 1\ns += f64(len(m))", true},
    {"zip", "let l = list(0..4000000)", "s += f64(len(zip(l, l)))", false},
    {"text, compared by ==", "let t = \"ab cd \" * 9000000\nlet u = t + \"a\"\nlet v = t + \"a\"",
     "if u == v { s += 1 }", false},
    {"text, a long key", "let t = \"ab cd \" * 9000000\nlet r = {a: 1}", "if t in r { s += 1 }", false},
    {"source, many functions declared again",
     "let t = join(map(i => f\"fn f{i}(x) = x\", 0..20000), \"\\n\")", "eval(t)", false},
    {"text, equal at its end", "let t = \"ab cd \" * 30000000\nlet u = t + \"a\"\nlet v = t + \"a\"",
     "if u == v and ends_with(u, v) and not (u < v) { s += 1 }", true},
    {"text, a part far inside", "let t = \"ß\" * 50000000", "s += f64(len(t[3:40000000]) + len(t[49000000:]))", true},
    {"text, found behind letters of two bytes", "let t = \"ß\" * 50000000 + \"x\"", "s += f64(find(t, \"x\"))", false},
    {"regex.find behind letters of two bytes", "let t = \"ß\" * 50000000 + \"x\"",
     "s += f64(regex.find(t, \"x\").start)", false},
    {"regex.find from far inside", "let t = \"ß\" * 50000000 + \"x\"",
     "let u = t + \"y\"\ns += f64(regex.find(u, \"y\", 49999999).stop)", true},
    {"regex.find of all", "let t = \"ß\" * 50000000", "s += f64(len(regex.find(t, \"(?s).*\").text))", true},
    {"text of codes", "let c = full(20000000, 65)", "s += f64(len(text(c)))", false},
    {"text of codes, of two bytes", "let c = full(20000000, 223)", "s += f64(len(text(c)))", true},
    {"source, a long name", "let t = \"\" + \"a\" * 100000000", "try { eval(t) } catch e { s += 1 }", false},
    {"source, a long number", "let t = \"1\" + \"0\" * 100000000 + \".5\"", "try { eval(t) } catch e { s += 1 }",
     true},
    {"source, a long text", "let t = \"\\\"\" + \"a\" * 100000000 + \"\\\"\"", "eval(t)", true},
    {"source, a long f-string", "let t = \"f\\\"\" + \"a\" * 100000000 + \"{1}\\\"\"", "eval(t)", true},
    {"source, a long comment", "let t = \"#\" + \"a\" * 100000000", "eval(t)", false},
    {"source, blanks", "let t = \" \" * 100000000", "eval(t)", true},
    {"source, empty lines", "let t = \"\\n\" * 50000000", "eval(t)", true},
    {"source, documentation", "let t = \"## a\\n\" * 20000000", "eval(t)", true},
    {"compiled bytes", "keep(\"(\" + join(map(i => f\"\\\"text {i}\\\"\", 0..300000), \", \") + \")\")",
     "load()", false},
    {"compiled bytes of one long text", "keep(\"\\\"\" + \"a\" * 100000000 + \"\\\"\")", "load()", true},
    {"save_npz", "let x = rand(20000000)", "save_npz(\"x.npz\", {x: x})", false},
    {"save_npy", "let x = rand(30000000)", "save_npy(\"x.npy\", x)", true},
    {"save_image", "let x = rand((5000, 5000, 3))", "save_image(\"x.ppm\", x)", false},
    {"load_image", "save_image(\"y.png\", zeros((4000, 4000, 3)))", "s += load_image(\"y.png\")[7, 7, 0]", true},
    {"lists, joined", "let l = list(0..3000000)", "s += f64(len(l + l))", false},
    {"lists, compared", "let l = map(i => str(i), 0..1000000)\nlet m = map(i => str(i), 0..1000000)",
     "if l == m { s += 1.0 }", false},
    {"part of a list", "let l = map(i => str(i), 0..1000000)", "s += f64(len(l[1:]))", false},
    {"items of a list by truth", "let l = map(i => str(i), 0..1000000)\nlet m = rand(1000000) > 2.0",
     "s += f64(len(l[m]))", false},
    {"slow behind fast trips", "let x = rand(8000000)\nlet i = i64(x * 8e6)\nlet n = 0",
     "n += 1\nif n > 300000 { s += x[i][7] }", false},
    {"histogram", "let x = rand(10000000)", "s += histogram(x, bins=100)[0][7]", false},
    {"bincount", "let x = i64(rand(10000000) * 1e5)", "s += bincount(x)[7]", false},
    {"scatter", "let x = i64(rand(4000000) * 1e5)\nlet u = rand(4000000)",
     "s += scatter(zeros(100000), x, u, reduce=\"add\")[7]", false},
    {"var", "let x = rand((3000, 5000))", "s += var(x, axis=0)[7]", false},
    {"fft", "let x = rand(1 << 22)", "s += abs(fft.fft(x)[7])", false},
    {"svd", "let x = rand((900, 900))", "s += linalg.svd(x)[1][0]", false},
    {"eigh", "let x = rand((1000, 1000))", "s += linalg.eigh(x)[0][0]", false},
    {"eig", "let x = rand((500, 500))", "s += abs(linalg.eigvals(x)[0])", false},
    {"qr", "let x = rand((1500, 1500))", "s += linalg.qr(x)[0][0, 0]", false},
    {"inv", "let x = rand((1500, 1500))", "s += linalg.inv(x)[0, 0]", false},
    {"solve", "let x = rand((2000, 2000))", "s += linalg.solve(x, x)[0, 0]", false},
    {"det", "let x = rand((2000, 2000))", "s += linalg.slogdet(x)[1]", false},
    {"cholesky", "let x = rand((2000, 50))\nlet p = x @ x.T + eye(2000)", "s += linalg.cholesky(p)[0, 0]", false},
    {"lstsq", "let x = rand((800, 800))", "s += linalg.lstsq(x, x)[0, 0]", false},
    {"pinv", "let x = rand((600, 600))", "s += linalg.pinv(x)[0, 0]", false},
    {"small decompositions, many", "let x = rand((20000, 20, 20))", "s += linalg.svdvals(x)[0, 0]", false},
    {"rand of GB", "", "s += rand(200000000)[7]", true},
    {"zeros of GB", "", "s += zeros(300000000)[7]", true},
    {"concat of GB", "let x = zeros(100000000)", "s += concat((x, x, x))[7]", true},
    {"sort of GB", "let x = rand(30000000)", "s += sort(x)[7]", true},
    {"unique of GB", "let x = rand(20000000)", "s += unique(x)[7]", true},
    {"tile of GB", "let x = rand(1000)", "s += tile(x, 300000)[7]", true},
    {"svd, large", "let x = rand((2000, 2000))", "s += linalg.svd(x)[1][0]", true},
};

/* How late the program ended, in milliseconds of the thread; below 0: it did not end as it should. */
static double stopped(WeftVM *vm, const char *program, bool interrupt) {
  const Stopped s = stopping_run(vm, program, "deadlines", WAIT_MS * 1e-3, interrupt);
  const WeftLimit limit = interrupt ? WEFT_LIMIT_INTERRUPT : WEFT_LIMIT_DEADLINE;
  return s.status == WEFT_ERROR && s.limit == limit ? s.late_ms : -1;
}

/* Two functions of the host: a program as bytes, which are kept, and its run. */
static void *program_bytes;
static size_t program_size;

static WeftStatus host_keep(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  const char *text;
  const void *bytes;
  size_t length;
  (void)context;
  (void)result;
  if (count != 1 || weft_as_text(vm, args[0], &text, &length) != WEFT_OK ||
      weft_compile(vm, NULL, text, length, "kept", 0, &bytes, &program_size) != WEFT_OK)
    return WEFT_ERROR;
  free(program_bytes);
  if (!(program_bytes = malloc(program_size))) return weft_fail(vm, "limit", "no memory");
  memcpy(program_bytes, bytes, program_size);
  return WEFT_OK;
}

static WeftStatus host_load(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  (void)context;
  (void)args;
  return count ? WEFT_MISUSE : weft_load_compiled(vm, NULL, program_bytes, program_size, NULL, result);
}

/* One operation in one tier; how many tests failed. */
static int run(const Long *l, const char *backend) {
  WeftOptions options = WEFT_OPTIONS_INIT;
  char program[512];
  int failures = 0;
  options.backend = backend;
  options.hot = strcmp(backend, "mir") == 0;
  options.allow_files = true; /* the current folder is a temporary one */
  options.threads = 1;
  WeftVM *vm = weft_new(&options);
  snprintf(program, sizeof program, "let s = 0.0\n%s", l->setup);
  if (!vm || weft_define(vm, "eval", stopping_eval, NULL, NULL) != WEFT_OK ||
      weft_define(vm, "keep", host_keep, NULL, NULL) != WEFT_OK ||
      weft_define(vm, "load", host_load, NULL, NULL) != WEFT_OK ||
      weft_eval(vm, program, "deadlines", NULL) != WEFT_OK) {
    printf("not ok deadlines/%s, %s: %s\n", l->name, backend, vm ? weft_error_message(vm) : "no VM");
    weft_free(vm);
    return 1;
  }
  snprintf(program, sizeof program, "while true {\n%s\n}", l->body);
  for (int interrupt = 0; interrupt < 2; interrupt++) {
    /* A virtual machine that stood still counts as time of the thread. What is late by itself is late again. */
    double late = stopped(vm, program, interrupt);
    const bool library = strcmp(l->name, "regex.find") == 0 || strncmp(l->name, "product", 7) == 0;
    const double most = library ? LIBRARY_LATE_MS : LATE_MS;
    for (int again = 1; again < TRIES && late >= most; again++) late = stopped(vm, program, interrupt);
    const char *what = interrupt ? "interrupt" : "deadline";
    const char *said = weft_error_message(vm);
    if (late < 0) printf("not ok deadlines/%s, %s, %s: %s\n", l->name, backend, what, *said ? said : "it ended");
    else printf("%sok deadlines/%s, %s, %s: %.0f ms late\n", late < most ? "" : "not ", l->name, backend, what,
                late);
    failures += late < 0 || late >= most;
    (void)fflush(stdout);
  }
  weft_free(vm);
  return failures;
}

/* Programs of all kinds, which a watchdog ends at moments that nobody chose: while they are read, recorded, compiled,
 * while they compute, and while what they made is freed. */
static const struct { const char *name, *program; } mixed[] = {
    {"sorts", "while true { sort(rand(300000)); sort(map(i => str(i), 0..20000)) }"},
    {"vmap", "while true { vmap(x => vmap(y => sum(sin(x * y)))(x))(rand((60, 200))) }"},
    {"grad", "fn f(x) { let s = 0.0\nfor i in 0..60 { s += sum(sin(x * i)) }\ns }\nwhile true { grad(f)(rand(500)) }"},
    {"regex", "let t = \"ab1 cd22 \" * 30000\nwhile true { len(regex.find_all(t, \"[a-z]+(\\\\d+)\")) }"},
    {"json", "let v = map(i => {a: i, b: str(i), c: (1.5, i)}, 0..20000)\nwhile true { json.parse(json.text(v)) }"},
    {"fft", "while true { sum(abs(fft.fft(rand(1 << 20)))) }"},
    {"einsum", "let a = rand((120, 130, 14))\nwhile true { einsum(\"ijk,jlk->il\", a, rand((130, 90, 14))) }"},
    {"svd", "while true { linalg.svd(rand((250, 250))) }"},
    {"conv", "while true { nn.conv(rand((4, 8, 40, 40)), rand((16, 8, 3, 3)), padding=1) }"},
    {"quantile", "while true { quantile(rand((400, 3000)), 0.3, axis=0) }"},
    {"join", "let t = {k: i64(rand(40000) * 900), v: arange(40000)}\n"
             "let u = {k: arange(900), w: rand(900)}\nwhile true { table.join(t, u, \"k\") }"},
    {"group", "let t = {k: map(i => str(i % 900), 0..60000), v: rand(60000)}\n"
              "while true { table.group(t, \"k\", {s: g => sum(g.v)}) }"},
    {"plots", "while true { plot.svg(plot.line(arange(3000.0), rand(3000))) }"},
    {"npz", "while true { save_npz(\"x.npz\", {a: rand(300000)})\nload_npz(\"x.npz\") }"},
    {"source", "let t = \"fn f(x) {\\n\" + \"if x > 1 { x = x + 1 } else { x = 0 }\\n\" * 3000 + \"}\"\n"
               "while true { eval(t) }"},
    {"new functions", "let i = 0\nwhile true { i += 1\n"
                      "eval(f\"jit(x => \" + join(map(k => f\"sin(x + {i + k})\", 0..200), \" + \")"
                      " + \")(ones(9))\") }"},
    {"numbers", "fn fib(n) { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }\nwhile true { fib(27) }"},
    {"texts", "while true { let t = replace(\"aß→\" * 300000, \"ß\", \"xy\")\nlen(upper(t)) + len(split(t, \"→\")) }"},
    {"scans", "while true { scan((c, x) => (c * 0.9 + x, c), 0.0, rand(200000)) }"},
    {"solvers", "while true { ode.solve((t, y) => [y[1], -y[0]], [1.0, 0.0], linspace(0.0, 300.0, 100)) }"},
};

static int run_mixed(size_t program, const char *backend, int moments, unsigned seed) {
  double latest = 0;
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.backend = backend;
  options.hot = strcmp(backend, "mir") == 0;
  options.allow_files = true;
  options.threads = 1;
  for (int i = 0; i < moments && latest >= 0; i++) {
    double late = LATE_MS;
    for (int again = 0; again < TRIES && late >= LATE_MS; again++) {
      WeftVM *vm = weft_new(&options);
      if (!vm || weft_define(vm, "eval", stopping_eval, NULL, NULL) != WEFT_OK) return 1;
      seed = seed * 1664525u + 1013904223u;
      const Stopped s = stopping_run(vm, mixed[program].program, "mixed", 0.001 + (seed >> 8) % 120 * 1e-3, true);
      late = s.status == WEFT_ERROR && s.limit == WEFT_LIMIT_INTERRUPT ? s.late_ms : -1;
      if (late < 0) printf("# %s\n", weft_error_message(vm));
      weft_free(vm);
    }
    latest = late < 0 ? -1 : late > latest ? late : latest;
  }
  const bool ok = latest >= 0 && latest < LATE_MS;
  printf("%sok deadlines/at any moment, %s, %s: %.0f ms late at most\n", ok ? "" : "not ", mixed[program].name, backend,
         latest);
  (void)fflush(stdout);
  return !ok;
}

int main(int argc, char **argv) {
  bool large = false;
  int moments = 2;
  unsigned seed = 1;
  const char *prefix = "";
  int failures = 0;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--large") == 0) large = true;
    else if (strcmp(argv[i], "--moments") == 0 && i + 2 < argc)
      moments = atoi(argv[i + 1]), seed = (unsigned)atoi(argv[i + 2]), i += 2;
    else prefix = argv[i];
  }
  char folder[] = "/tmp/weft-deadlines-XXXXXX", *before = getcwd(NULL, 0);
  if (!before || !mkdtemp(folder) || chdir(folder) != 0) return 1;
  /* OpenBLAS, which takes some ten milliseconds, is loaded once in a process */
  WeftVM *vm = weft_new(NULL);
  if (vm) (void)weft_eval(vm, "sum(linalg.inv(eye(300)) @ rand((300, 300)))", "deadlines", NULL);
  weft_free(vm);
  for (size_t i = 0; i < sizeof longs / sizeof longs[0]; i++) {
    if ((longs[i].large && !large) || strncmp(longs[i].name, prefix, strlen(prefix)) != 0) continue;
    failures += run(&longs[i], "eager");
    failures += run(&longs[i], "mir");
  }
  for (size_t i = 0; i < sizeof mixed / sizeof mixed[0]; i++) {
    if (strncmp("at any moment", prefix, strlen(prefix)) != 0) continue;
    failures += run_mixed(i, "eager", moments, seed);
    failures += run_mixed(i, "mir", moments, seed);
  }
  (void)!chdir(before);
  free(before);
  static const char *const made[] = {"x.npz", "x.npy", "x.ppm", "y.png", ""};
  for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, made[i]);
    (void)remove(path);
  }
  return failures != 0;
}
