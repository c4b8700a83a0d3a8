/* loops.c — runs the programs of bench/loops as native functions compiled through MIR: loops NAME N prints the result and
 * seconds, as peers does; `loops compile` prints microseconds per function. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jit/loops.h"
#include "jit/mir_emit.h"

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static u32 poll_never(LoopCtx *ctx) {
  ctx->budget = 1 << 16;
  return 0;
}

static double x[5][3] = {{0, 0, 0},
                         {4.84143144246472090, -1.16032004402742839, -1.03622044471123109e-1},
                         {8.34336671824457987, 4.12479856412430479, -4.03523417114321381e-1},
                         {1.28943695621391310e1, -1.51111514016986312e1, -2.23307578892655734e-1},
                         {1.53796971148509165e1, -2.59193146099879641e1, 1.79258772950371181e-1}};
static double v[5][3] = {{0, 0, 0},
                         {1.66007664274403694e-3, 7.69901118419740425e-3, -6.90460016972063023e-5},
                         {-2.76742510726411e-3, 4.99852801234917238e-3, 2.30417297573763929e-5},
                         {2.96460137564761618e-3, 2.37847173959480950e-3, -2.96589568540237556e-5},
                         {2.68067772490389322e-3, 1.62824170038242295e-3, -9.51592254519715870e-5}};
static double m[5] = {1.0, 9.54791938424326609e-4, 2.85885980666130812e-4, 4.36624404335156298e-5, 5.15138902046611451e-5};

static double energy(void) {
  double e = 0;
  for (int i = 0; i < 5; i++) {
    e += 0.5 * m[i] * (v[i][0] * v[i][0] + v[i][1] * v[i][1] + v[i][2] * v[i][2]);
    for (int j = i + 1; j < 5; j++) {
      double dx = x[i][0] - x[j][0], dy = x[i][1] - x[j][1], dz = x[i][2] - x[j][2];
      e -= m[i] * m[j] / sqrt(dx * dx + dy * dy + dz * dz);
    }
  }
  return e;
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
  if (loop_module_init(module, allocator_system()) != WEFT_OK || loops_parse(module, text, strlen(text), &why) != WEFT_OK ||
      mir_compile(pool, (const LoopFn *const *)module->fns.data, module->fns.count, &code, &why) != WEFT_OK) {
    fprintf(stderr, "%s: %s\n", path, buf_text(&why));
    exit(1);
  }
  if (getenv("MIR_TEXT")) {
    mir_code_print(code, 0, &why);
    fputs(buf_text(&why), stderr);
  }
  if (getenv("MIR_CODE")) fwrite(mir_code_native(code, 0), 1, mir_code_bytes(code, 0) ? mir_code_bytes(code, 0) : 4096, stderr);
  buf_free(&why);
  free(text);
  return code;
}

int main(int argc, char **argv) {
  LoopCtx ctx = {.budget = 1 << 16, .depth = 100, .poll = poll_never};
  u64 results[4] = {0};
  MirPool *pool = mir_pool_new(allocator_system());
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
  for (int i = 0; i < 5; i++) {
    m[i] *= 4 * 3.141592653589793 * 3.141592653589793;
    for (int k = 0; k < 3; k++) v[i][k] *= 365.24;
  }
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
