/* loops.c — runs the programs of bench/loops as native functions compiled through MIR: loops NAME N prints the
 * result and seconds, as peers does; `loops compile` prints microseconds per function. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/planets.h"
#include "jit/loops/loops.h"
#include "jit/scalar/mir_emit.h"

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static u32 poll_never(LoopCtx *ctx) {
  ctx->budget = 1 << 16;
  return 0;
}

static char *read_file(const char *path) {
  FILE *file = fopen(path, "r");
  char *text = calloc(1, 1 << 16);
  if (!file || !text || !fread(text, 1, (1 << 16) - 1, file)) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(1);
  }
  fclose(file);
  return text;
}

static MirCode *compile(MirPool *pool, LoopModule *module, const char *name) {
  char path[128];
  Buf why;
  MirCode *code;
  snprintf(path, sizeof path, "bench/loops/%s.loops", name);
  char *text = read_file(path);
  buf_init(&why, allocator_system());
  if (loop_module_init(module, allocator_system()) != WEFT_OK ||
      loops_parse(module, text, strlen(text), &why) != WEFT_OK ||
      mir_compile(pool, (const LoopFn *const *)module->fns.data, module->fns.count, &code, &why) != WEFT_OK) {
    fprintf(stderr, "%s: %s\n", path, buf_text(&why));
    exit(1);
  }
  if (getenv("MIR_TEXT")) {
    mir_print(pool, (const LoopFn *const *)module->fns.data, module->fns.count, 0, &why);
    fputs(buf_text(&why), stderr);
  }
  if (getenv("MIR_CODE"))
    fwrite(mir_code_native(code, 0), 1, mir_code_bytes(code, 0) ? mir_code_bytes(code, 0) : 4096, stderr);
  buf_free(&why);
  free(text);
  return code;
}

int main(int argc, char **argv) {
  LoopCtx ctx = {.budget = 1 << 16, .depth = 100, .poll = poll_never};
  u64 results[4] = {0};
  MirPool *pool = mir_pool_new(allocator_system(), NULL);
  LoopModule module;
  ctx.results = results;
  if (argc == 2 && strcmp(argv[1], "compile") == 0) {
    static const char *const names[] = {"mandelbrot", "sieve", "nbody"};
    loop_module_free(&(LoopModule){0});
    for (int i = 0; i < 3; i++) {
      double best = 1e9;
      for (int k = 0; k < 50; k++) {
        MirCode *code = compile(pool, &module, names[i]), *again;
        const LoopFn *fn = module.fns.data[0];
        double t0 = seconds();
        if (mir_compile(pool, &fn, 1, &again, NULL) != WEFT_OK) return 1;
        double t = seconds() - t0;
        if (t < best) best = t;
        mir_code_free(again);
        mir_code_free(code);
        loop_module_free(&module);
      }
      printf("%-12s %.0f us\n", names[i], best * 1e6);
    }
    mir_pool_free(pool);
    return 0;
  }
  if (argc != 3) return 2;
  i64 n = atol(argv[2]);
  planets_begin();
  MirCode *code = compile(pool, &module, argv[1]);
  void *fn = mir_code_native(code, 0);
  double t0;
  u32 left = 0;
  if (strcmp(argv[1], "mandelbrot") == 0) {
    u32 (*run)(LoopCtx *, i64, i64);
    *(void **)&run = fn;
    t0 = seconds();
    left = run(&ctx, n, 50);
    printf("%lld %.9f\n", (long long)results[0], seconds() - t0);
  } else if (strcmp(argv[1], "sieve") == 0) {
    u32 (*run)(LoopCtx *, u8 *, i64, i64);
    *(void **)&run = fn;
    u8 *prime = malloc((size_t)n);
    t0 = seconds();
    left = run(&ctx, prime, n, n);
    printf("%lld %.9f\n", (long long)results[0], seconds() - t0);
    free(prime);
  } else {
    u32 (*run)(LoopCtx *, double *, double *, const double *, i64, i64);
    *(void **)&run = fn;
    t0 = seconds();
    left = run(&ctx, &x[0][0], &v[0][0], m, n, 5);
    t0 = seconds() - t0;
    printf("%.17g %.9f\n", energy(), t0);
  }
  mir_code_free(code);
  mir_pool_free(pool);
  loop_module_free(&module);
  return left != 0;
}
