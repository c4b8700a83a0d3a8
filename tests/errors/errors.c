/* errors.c — errors of functions of the library that are written in Weft: whatever goes wrong inside is said by the
 * function that the program called, where it called it, interpreted and compiled. */
#include "tests/support/calls.h"
#include "tests/support/host.h"

static const char *const values[] = {"\"a\"", "nil", "{a: 1}", "x => x", "(1, \"b\")", "(1.0, 2.0)", "1..3", "2.0",
                                     "-7", "1.5", "nan", "zeros(0)", "zeros((2, 3, 4, 5))", "[true, false, true]",
                                     "u8([1, 2, 3])", "[[1, 2, 3], [4, 5, 6]]", "f32"};

static const char prelude[] = "let q = [[1.5, 0.7], [0.7, 1.1]]\nlet v = [1.5, -0.7, 2.25, 0.4, -1.1, 3.0]\n";
enum { LINE = 3, COLUMN = 10 };

/* What is wrong, or NULL; text in static memory. */
static const char *check(const OpInfo *info, const char *call, const char *backend, int hot, int *refused) {
  static char why[600];
  char program[2000];
  size_t len = strlen(info->name);
  snprintf(program, sizeof program, "%sfn f() = %s\nlet out = f()\nout", prelude, call);
  HostRun run = host_run(&(HostSetup){.backend = backend, .hot = hot}, "errors", program);
  const char *bad = NULL, *said = run.message ? run.message : "no VM";
  *refused += run.end == HOST_ERROR;
  bool named = strncmp(said, info->name, len) == 0 && said[len] == ':';
  bool here = run.line == LINE && run.column == COLUMN;
  if (run.end != HOST_VALUE && !(named && here)) {
    snprintf(why, sizeof why, "%s, %s: \"%s\" at %d:%d", call, backend, said, run.line, run.column);
    bad = why;
  }
  host_run_free(&run);
  return bad;
}

int main(void) {
  int failures = 0;
  for (u32 op = 1; op < OP_COUNT; op++) {
    const OpInfo *info = op_info(op);
    if (info->lower != LOWER_weft) continue;
    const char *bad = NULL;
    int refused = 0;
    for (u32 p = 0; p < info->nparams && !bad; p++)
      for (u32 i = 0; i < sizeof values / sizeof values[0] && !bad; i++) {
        char call[600];
        call_text(op, (int)p, values[i], call, sizeof call);
        bad = check(info, call, "eager", -1, &refused);
        if (!bad) bad = check(info, call, "mir", 0, &refused);
      }
    /* one on other things than arrays may take them all: it gives a function, or looks at nothing yet */
    if (!bad && call_is_on_arrays(info) && info->nparams && !refused) bad = "none of these values is refused";
    if (bad) printf("not ok errors/%s: %s\n", info->name, bad);
    else printf("ok errors/%s\n", info->name);
    failures += bad != NULL;
  }
  return failures != 0;
}
