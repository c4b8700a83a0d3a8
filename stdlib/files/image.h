/* image.h — pictures between files and arrays (image.c, png.c). */
#ifndef WEFT_STDLIB_FILES_IMAGE_H
#define WEFT_STDLIB_FILES_IMAGE_H

#include "stdlib/files/files.h"

/* Samples in rows from the top, channels side by side, each of 8 bits or of 16 with the high byte first. */
typedef struct Image {
  u32 width, height, channels; /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA */
  u32 bits;                    /* 8 or 16 */
  u8 *samples;                 /* memory of the VM's, image_bytes of it */
} Image;

enum { IMAGE_SIDE_MOST = 1 << 20 };
#define IMAGE_MOST ((u64)1 << 32) /* bytes of samples */

static inline u64 image_row(const Image *m) { return (u64)m->width * m->channels * (m->bits / 8); }
static inline u64 image_bytes(const Image *m) { return image_row(m) * m->height; }

/* Memory for the samples; *why: the picture is too large, or has no pixels. Error: memory. */
WeftStatus image_room(Vm *vm, Image *m, const char **why) MUST_USE;

/* The file's bytes. *why: what is wrong with them; m->samples is to be freed in any case. Errors: memory, zlib is not
 * there, the VM was stopped. */
WeftStatus png_decode(Vm *vm, const char *data, size_t len, Image *m, const char **why) MUST_USE;
WeftStatus png_encode(Vm *vm, const Image *m, Buf *out) MUST_USE;

#endif
