/* blas.h — OpenBLAS and its LAPACK, loaded at first use: one handle for the process, never unloaded. Routines take
 * columns one after another (Fortran), and are found for f32 and f64 by the same index. */
#ifndef WEFT_STDLIB_BLAS_H
#define WEFT_STDLIB_BLAS_H

#include <stddef.h>

#include "parser/base.h"

/* Hidden lengths of the character arguments come last. */
typedef struct Lapack {
  void (*gemm)(const char *ta, const char *tb, const int *m, const int *n, const int *k, const void *alpha,
               const void *a, const int *lda, const void *b, const int *ldb, const void *beta, void *c, const int *ldc,
               size_t, size_t);
  void (*gemv)(const char *t, const int *m, const int *n, const void *alpha, const void *a, const int *lda,
               const void *x, const int *incx, const void *beta, void *y, const int *incy, size_t);
  void (*syevd)(const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w, void *work,
                const int *lwork, int *iwork, const int *liwork, int *info, size_t, size_t);
  void (*getrf)(const int *m, const int *n, void *a, const int *lda, int *ipiv, int *info);
  void (*getrs)(const char *trans, const int *n, const int *nrhs, const void *a, const int *lda, const int *ipiv,
                void *b, const int *ldb, int *info, size_t);
  void (*getri)(const int *n, void *a, const int *lda, const int *ipiv, void *work, const int *lwork, int *info);
  void (*potrf)(const char *uplo, const int *n, void *a, const int *lda, int *info, size_t);
  void (*geqrf)(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
                const int *lwork, int *info);
  void (*orgqr)(const int *m, const int *n, const int *k, void *a, const int *lda, const void *tau, void *work,
                const int *lwork, int *info);
  void (*gesdd)(const char *jobz, const int *m, const int *n, void *a, const int *lda, void *s, void *u, const int *ldu,
                void *vt, const int *ldvt, void *work, const int *lwork, int *iwork, int *info, size_t);
  void (*gelsd)(const int *m, const int *n, const int *nrhs, void *a, const int *lda, void *b, const int *ldb, void *s,
                const void *rcond, int *rank, void *work, const int *lwork, int *iwork, int *info);
  void (*geev)(const char *jobvl, const char *jobvr, const int *n, void *a, const int *lda, void *wr, void *wi,
               void *vl, const int *ldvl, void *vr, const int *ldvr, void *work, const int *lwork, int *info, size_t,
               size_t);
  /* of complex matrices alone, whose orgqr is called ungqr: these take a work space of real numbers too */
  void (*heevd)(const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w, void *work,
                const int *lwork, void *rwork, const int *lrwork, int *iwork, const int *liwork, int *info, size_t,
                size_t);
  void (*complex_gesdd)(const char *jobz, const int *m, const int *n, void *a, const int *lda, void *s, void *u,
                        const int *ldu, void *vt, const int *ldvt, void *work, const int *lwork, void *rwork,
                        int *iwork, int *info, size_t);
  void (*complex_gelsd)(const int *m, const int *n, const int *nrhs, void *a, const int *lda, void *b, const int *ldb,
                        void *s, const void *rcond, int *rank, void *work, const int *lwork, void *rwork, int *iwork,
                        int *info);
  void (*complex_geev)(const char *jobvl, const char *jobvr, const int *n, void *a, const int *lda, void *w, void *vl,
                       const int *ldvl, void *vr, const int *ldvr, void *work, const int *lwork, void *rwork,
                       int *info, size_t, size_t);
} Lapack;

/* The routines for f32 or f64; NULL when no OpenBLAS is installed. All of them are there, or none. */
const Lapack *blas_load(bool f64_wanted);
/* The same of c64 or c128: getrf getrs getri potrf geqrf orgqr, and those of complex matrices alone. */
const Lapack *blas_load_complex(bool c128_wanted);
/* From here on it works with that many threads; 0: as many as it began with. The process has one number. False: it
 * cannot be told. */
bool blas_use_threads(u32 count);
/* Name of the kernels that OpenBLAS chose; NULL when there is none. */
const char *blas_core(void);

#endif
