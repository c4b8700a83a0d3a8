/* defaults.c — the defaults of built-ins fit every dtype that the function takes, and are what its signature says. */
#include "tests/support/calls.h"
#include "tests/support/host.h"

/* The default of a parameter as the signature writes it, with `'` for `"`. */
static void default_of(const OpParam *p, char *out, size_t cap) {
  size_t n = 0;
  for (const char *from = p->initial; *from && n + 1 < cap; from++) out[n++] = *from == '\'' ? '"' : *from;
  out[n] = 0;
}

/* Three calls for each parameter with a default: without it, with the default written out, and with it in the dtype of
 * the data. */
int main(void) {
  static const char *const dtypes[] = {"bool", "u8", "i32", "i64", "f32", "f64"};
  int failures = 0;
  for (u32 op = 1; op < OP_COUNT; op++) {
    const OpInfo *info = op_info(op);
    if (!call_is_on_arrays(info) || !op_is_pure(op)) continue;
    bool good = true;
    for (u32 t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++) {
      char program[8000], plain[600], call[600], value[200];
      call_text(op, -1, "", plain, sizeof plain);
      size_t n = (size_t)snprintf(program, sizeof program,
                                  "let q = array(((1, 0), (0, 1)), %s)\nlet v = array((1, 0, 1, 1, 0, 1), %s)\n"
                                  "fn t(f) { try { f() } catch e { f\"error {e.kind}\" } }\n"
                                  "fn failed(x) = type(x) == \"text\"\n"
                                  "fn same(a, b) = str(a) == str(b)\n"
                                  "let bad = ()\nlet plain = t(() => %s)\n",
                                  dtypes[t], dtypes[t], plain);
      for (u32 p = 0; p < info->nparams; p++) {
        const OpParam *param = &info->params[p];
        if (!param->has_default || param->rest || call_argument(op, p, value, sizeof value)) continue;
        default_of(param, value, sizeof value);
        call_text(op, (int)p, value, call, sizeof call);
        n += (size_t)snprintf(program + n, sizeof program - n,
                              "let said = t(() => %s)\nif not failed(plain) and not failed(said) and not same(plain, "
                              "said) { bad += ((\"%.*s\", plain, said),) }\n", call, (int)param->len, param->name);
        if (strspn(value, "0123456789.") != strlen(value)) continue;
        char typed[300];
        snprintf(typed, sizeof typed, "%s(%s)", dtypes[t], value);
        call_text(op, (int)p, typed, call, sizeof call);
        n += (size_t)snprintf(program + n, sizeof program - n,
                              "let typed = t(() => %s)\n"
                              "if failed(plain) and not failed(typed) { bad += ((\"%.*s\", plain, typed),) }\n", call,
                              (int)param->len, param->name);
      }
      snprintf(program + n, sizeof program - n, "bad");
      HostRun run = host_run(&(HostSetup){.backend = "eager", .hot = -1}, "defaults", program);
      bool fits = run.end == HOST_VALUE && strcmp(run.value, "()") == 0;
      if (!fits && run.end == HOST_VALUE)
        printf("not ok defaults/%s: %s of %s: (parameter, without it, with it) %s\n", info->name, plain,
               dtypes[t], run.value);
      else if (!fits)
        printf("not ok defaults/%s: %s of %s: %s\n", info->name, plain, dtypes[t], run.message ? run.message : "no VM");
      good &= fits;
      host_run_free(&run);
    }
    if (good) printf("ok defaults/%s\n", info->name);
    failures += !good;
  }
  return failures != 0;
}
