/* files.h — whole files as bytes, with the capability checked and errors that name the path. */
#ifndef WEFT_STDLIB_FILES_H
#define WEFT_STDLIB_FILES_H

#include "stdlib/args.h"
#include "stdlib/stdlib.h"

/* Larger files are refused, by what reads them. */
#define TEXT_FILE_MOST ((u64)UINT32_MAX - 65)
#define NPY_FILE_MOST ((u64)1 << 34)

/* The text of parameter `param`, checked to be a path without NUL; errors: type, limit (files are not allowed). */
WeftStatus file_path(Vm *vm, u32 op, Value v, const char **out) MUST_USE;
/* Contents in memory of the VM's allocator: *cap bytes were taken, data[*len] is 0. A pipe is read to its end.
 * Errors: io, limit (more than `most` bytes). */
WeftStatus file_read(Vm *vm, u32 op, const char *path, u64 most, char **data, size_t *len, size_t *cap) MUST_USE;
/* file_put (stdlib.h). Errors: io. */
WeftStatus file_write(Vm *vm, u32 op, const char *path, const char *data, size_t len) MUST_USE;

/* "NAME: cannot read "PATH": why", of an errno. */
WeftStatus file_error(Vm *vm, u32 op, const char *path, const char *what, int code) MUST_USE;

/* The line of the first byte that is not UTF-8; 0: all is. */
u64 utf8_bad_line(const char *text, size_t n);

#endif
