/* grad.c — derivative rules against finite differences, driven by the table of operations: an operation whose row says
 * `rule` must have a point in points.def, where its first and second derivatives are right, and its
 * batched derivative is that of each lane, eagerly and compiled. */
#include <stdio.h>
#include <string.h>

#include "lang/ops.h"
#include "tests/support/host.h"

typedef struct Point {
  const char *op, *fn, *at;
  bool first; /* the first derivative alone */
} Point;

static const Point points[] = {
#define POINT(op, fn, at) {#op, fn, at, false},
#define FIRST(op, fn, at) {#op, fn, at, true},
#include "tests/grad/points.def"
#undef POINT
#undef FIRST
};

static const char *const ids[] = {
    "",
#define OP(name, ...) #name,
#include "lang/ops.def"
#undef OP
};

static const char prelude[] =
    "let v = [1.5, -0.7, 2.25, 0.4, -1.1, 3.0]\n"
    "let m = v.reshape((2, 3))\n"
    "let p = abs(v)\n"
    "let u = v * 0.3\n"
    "let z = [1.5, -0.7, 0.0, 0.4, 0.0, 3.0]\n"
    "fn w(y) = sum(y * cos(arange(y.size).reshape(y.shape) * 1.0 + 1.0))\n"
    "fn differences(f, x) {\n"
    "  let flat = ravel(x)\n"
    "  let out = zeros(len(flat))\n"
    "  for i in 0..len(flat) {\n"
    "    let a = flat; a[i] += 1e-5\n"
    "    let b = flat; b[i] -= 1e-5\n"
    "    out[i] = (f(a.reshape(x.shape)) - f(b.reshape(x.shape))) / 2e-5\n"
    "  }\n"
    "  out.reshape(x.shape)\n"
    "}\n"
    "fn far(f, x) { let d = differences(f, x); max(abs(grad(f)(x) - d) / (1.0 + abs(d))) }\n";

/* What is wrong, or NULL; text in static memory. */
static const char *check(const Point *p, const char *backend, int hot) {
  static char why[400];
  char program[4000];
  snprintf(program, sizeof program,
           "%slet f = %s\n"
           "let g = y => %s\n"
           "for i in 0..2 { far(f, %s); far(g, %s) }\n"
           "fn lanes(b) = vmap(grad(f))(b)\n"
           "let lane = %s\n"
           "let two = stack((lane, lane * 1.01))\n"
           "lanes(two)\n"
           "let apart = abs(lanes(two) - stack((grad(f)(lane), grad(f)(lane * 1.01))))\n"
           "(far(f, %s) < 1e-6, far(g, %s) < 1e-5, max(apart) < 1e-9)",
           prelude, p->fn, p->first ? "f(y)" : "sum(grad(f)(y) * sin(1.0 + arange(y.size)).reshape(y.shape))", p->at, p->at, p->at, p->at, p->at);
  HostRun run = host_run(&(HostSetup){.backend = backend, .hot = hot}, p->op, program);
  const char *bad = NULL;
  if (run.end != HOST_VALUE) {
    snprintf(why, sizeof why, "%s: %s", run.kind ? run.kind : "no VM", run.message ? run.message : "");
    bad = why;
  } else if (strcmp(run.value, "(true, true, true)") != 0) {
    snprintf(why, sizeof why, "first and second derivative, and those of lanes right: %s, in %s", run.value, backend);
    bad = why;
  }
  host_run_free(&run);
  return bad;
}

int main(void) {
  int failures = 0;
  for (u32 op = 1; op < OP_COUNT; op++) {
    const OpInfo *info = op_info(op);
    if (strcmp(info->deriv, "rule") != 0 || info->family == FAM_control) continue;
    const char *bad = NULL, *at = NULL;
    u32 found = 0;
    for (u32 i = 0; i < sizeof points / sizeof points[0] && !bad; i++) {
      if (strcmp(points[i].op, ids[op]) != 0) continue;
      found++;
      at = points[i].fn;
      bad = check(&points[i], "eager", -1);
      if (!bad) bad = check(&points[i], "mir", 0);
    }
    if (!found) bad = "ops.def says that it has a rule, points.def has no point for it";
    if (bad) {
      printf("not ok grad/%s: %s (%s)\n", info->name, bad, at ? at : "");
      failures++;
    } else {
      printf("ok grad/%s\n", info->name);
    }
  }
  return failures != 0;
}
