/* dlpack.h — the structs of DLPack 1.0, by which array libraries in one process exchange arrays without copies.
 *
 * Layout and numbers as in the specification, https://dmlc.github.io/dlpack/latest/c_api.html; the words are ours. A
 * producer fills a managed tensor; who consumes it calls `deleter` once when it needs the data no more, in any
 * thread. */
#ifndef WEFT_API_DLPACK_H
#define WEFT_API_DLPACK_H

#include <stdint.h>

enum { /* DlDevice.type: where the data lies */
  DLPACK_CPU = 1,
  DLPACK_CUDA = 2,
  DLPACK_CUDA_HOST = 3 /* of the processor, pinned for copies to a GPU */
};

enum { /* DlType.code */
  DLPACK_INT = 0,
  DLPACK_UINT = 1,
  DLPACK_FLOAT = 2,
  DLPACK_BFLOAT = 4,
  DLPACK_COMPLEX = 5,
  DLPACK_BOOL = 6 /* a byte */
};

enum { /* of DLManagedTensorVersioned.flags */
  DLPACK_READ_ONLY = 1,
  DLPACK_COPIED = 2
};

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 0 };

typedef struct DlDevice {
  int32_t type, number;
} DlDevice;

typedef struct DlType {
  uint8_t code, bits; /* of a complex number both parts together */
  uint16_t lanes;     /* 1, but for vectors as elements */
} DlType;

typedef struct DlTensor {
  void *data;
  DlDevice device;
  int32_t rank;
  DlType type;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: dense row-major */
  uint64_t offset;  /* bytes from `data` to element (0, …, 0) */
} DlTensor;

struct DLManagedTensor { /* before version 1: it cannot say that its data must not be written */
  DlTensor tensor;
  void *manager;
  void (*deleter)(struct DLManagedTensor *self); /* may be NULL */
};

struct DLManagedTensorVersioned { /* the first four fields stay where they are in all versions to come */
  uint32_t major, minor;
  void *manager;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DlTensor tensor;
};

#endif
