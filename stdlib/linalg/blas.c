/* blas.c — OpenBLAS and its LAPACK, loaded at first use (see blas.h). */
#include "stdlib/linalg/blas.h"
#include "stdlib/stdlib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Library handles are the one kind of state a process has. */
static struct {
  pthread_once_t once;
  bool there, complex_there;
  Lapack routines[2], complex_routines[2];
  const char *(*corename)(void);
  void (*set_threads)(int count);
  u32 threads, own; /* as it has been told; as it began */
} library = {.once = PTHREAD_ONCE_INIT};

static void load(void) {
  /* the plain name belongs to development packages */
  static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
  void *handle = NULL;
  for (u32 i = 0; i < COUNT_OF(names) && !handle; i++) handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!handle) return;
  static const struct {
    const char *name;
    size_t offset;
  } wanted[] = {
#define ROUTINE(name) {#name, offsetof(Lapack, name)}
      ROUTINE(gemm), ROUTINE(gemv), ROUTINE(syevd), ROUTINE(getrf), ROUTINE(getrs), ROUTINE(getri),
      ROUTINE(potrf), ROUTINE(geqrf), ROUTINE(orgqr), ROUTINE(gesdd), ROUTINE(gelsd), ROUTINE(geev),
#undef ROUTINE
  };
  bool all = true;
  for (u32 type = 0; type < 2; type++)
    for (u32 i = 0; i < COUNT_OF(wanted); i++) {
      char symbol[32];
      snprintf(symbol, sizeof symbol, "%c%s_", type ? 'd' : 's', wanted[i].name);
      void *at = dlsym(handle, symbol);
      all &= at != NULL;
      *(void **)((char *)&library.routines[type] + wanted[i].offset) = at;
    }
  static const struct {
    const char *name;
    size_t offset;
  } of_complex[] = {
      {"getrf", offsetof(Lapack, getrf)}, {"getrs", offsetof(Lapack, getrs)}, {"getri", offsetof(Lapack, getri)},
      {"potrf", offsetof(Lapack, potrf)}, {"geqrf", offsetof(Lapack, geqrf)}, {"ungqr", offsetof(Lapack, orgqr)},
      {"heevd", offsetof(Lapack, heevd)}, {"gesdd", offsetof(Lapack, complex_gesdd)},
      {"gelsd", offsetof(Lapack, complex_gelsd)}, {"geev", offsetof(Lapack, complex_geev)},
  };
  library.complex_there = true;
  for (u32 type = 0; type < 2; type++)
    for (u32 i = 0; i < COUNT_OF(of_complex); i++) {
      char symbol[32];
      snprintf(symbol, sizeof symbol, "%c%s_", type ? 'z' : 'c', of_complex[i].name);
      void *at = dlsym(handle, symbol);
      library.complex_there &= at != NULL;
      *(void **)((char *)&library.complex_routines[type] + of_complex[i].offset) = at;
    }
  *(void **)&library.corename = dlsym(handle, "openblas_get_corename");
  *(void **)&library.set_threads = dlsym(handle, "openblas_set_num_threads");
  int (*get_threads)(void);
  *(void **)&get_threads = dlsym(handle, "openblas_get_num_threads");
  if (!get_threads) library.set_threads = NULL;
  else library.threads = library.own = (u32)get_threads();
  library.there = all;
}

const Lapack *blas_load(bool f64_wanted) {
  pthread_once(&library.once, load);
  return library.there ? &library.routines[f64_wanted] : NULL;
}

const Lapack *blas_load_complex(bool c128_wanted) {
  pthread_once(&library.once, load);
  return library.there && library.complex_there ? &library.complex_routines[c128_wanted] : NULL;
}

bool blas_use_threads(u32 count) {
  if (!library.set_threads) return false;
  if (!count) count = library.own;
  if (__atomic_exchange_n(&library.threads, count, __ATOMIC_RELAXED) != count) library.set_threads((int)count);
  return true;
}

const char *blas_core(void) {
  pthread_once(&library.once, load);
  return library.there && library.corename ? library.corename() : NULL;
}

void stdlib_choose_blas_core(void) {
#ifdef __x86_64__
  /* 0.3.21 takes Haswell's kernels on processors that it does not know, 1.6 to 1.9 times slower; but on Zen 4 (of
   * those with AVX-512 the one without CPU_BESIDE), whose 512 bits take two turns, they are 3 to 6 % faster in f32,
   * 3 to 8 % slower in large f64 */
  if (cpu_has(CPU_AVX512)) (void)setenv("OPENBLAS_CORETYPE", cpu_has(CPU_BESIDE) ? "SkylakeX" : "Haswell", 0);
#endif
}
