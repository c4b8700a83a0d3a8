/* zlib.h — zlib, loaded when something compressed is first read or written (zlib.c). */
#ifndef WEFT_STDLIB_FILES_ZLIB_H
#define WEFT_STDLIB_FILES_ZLIB_H

#include "stdlib/files/files.h"

typedef enum ZlibForm { ZLIB_WRAPPED, ZLIB_RAW } ZlibForm; /* with zlib's head and check (PNG); without (zip) */

enum { DEFLATE_MOST = 1100 }; /* a byte of compressed data stands for fewer: what says more lies */

/* Is zlib there? Else an error of kind `unsupported` that names the package. */
WeftStatus zlib_need(Vm *vm, u32 op) MUST_USE;
/* After zlib_need. Exactly `size` bytes into `to`. NULL, or what is wrong with the data. *stopped: the VM says why. */
const char *zlib_inflate(Vm *vm, ZlibForm form, const char *from, size_t len, char *to, size_t size, bool *stopped);
/* After zlib_need. Appends to *out. */
WeftStatus zlib_deflate(Vm *vm, ZlibForm form, const char *from, size_t len, Buf *out) MUST_USE;

/* The check of zip and PNG, going on from `crc` (0 at first). Ours: needs no library. */
/* More bytes into *crc, which begins as 0. False: the program is to end (vm_ends); vm_error_buf raises that. */
bool crc32_of(const Vm *vm, u32 *crc, const char *s, size_t n) MUST_USE;

#endif
