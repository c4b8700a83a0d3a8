/* device.h — inside gpu/: the device of one VM: its context, memory, modules and launches.
 *
 * Memory is taken from the driver in sizes of powers of two up to a megabyte and exactly above; what is freed is
 * kept by size and used again, since one stream runs everything in order. When the driver refuses, what is kept is
 * given back and it is asked once more. Every call that touches the driver makes the context current for its own
 * time only: a host may use CUDA itself. */
#ifndef WEFT_GPU_DEVICE_H
#define WEFT_GPU_DEVICE_H

#include "gpu/code_cache.h"
#include "gpu/driver.h"
#include "vm/vm.h"

enum { DEVICE_CLASSES = 12, DEVICE_LEAST = 512 /* bytes; doubled from class to class */, DEVICE_BLOCK = 256,
       DEVICE_BLOCKS_PER_SM = 16 };

typedef struct FreeBlock {
  CuPointer at;
  size_t bytes;
} FreeBlock;

/* Kernels that no program gives (own.c); function NULL: not loaded yet. */
typedef enum DeviceOwnKernel {
  DEVICE_MATMUL, /* + number in matmul_types of matmul.h */
  DEVICE_NONZERO = DEVICE_MATMUL + 5, DEVICE_MMA_PACK,
  DEVICE_MMA, /* + mma_number of matmul.h */
  DEVICE_OWN_KERNELS = DEVICE_MMA + 16
} DeviceOwnKernel;
typedef struct DeviceOwn {
  CuModule module;
  CuFunction function;
} DeviceOwn;

struct Product; /* matmul.h */

typedef struct Device {
  Vm *vm;
  const char *path;  /* of the driver; NULL: the system's */
  CodeCache cache;   /* what the driver made of kernels, from one process to the next */
  Driver driver;
  bool open;
  CuDevice id;
  CuContext context;
  char name[96];
  int sms, major, minor;
  VEC(FreeBlock) kept;
  u64 live, kept_bytes; /* bytes with arrays; bytes kept for later */
  CuPointer cells;   /* the key, then one word for each number that a kernel gives */
  Names op_texts; /* ops.c: the source of each operation's function … */
  VEC(Value) op_fns; /* … and the function, at its name - 1; borrowed from a variable of the module */
  struct Module *module; /* … made in it; the VM's */
  u32 op_depth;
  struct Product *waiting; /* a product that the next kernel may make with its own work; NULL */
  DeviceOwn own[DEVICE_OWN_KERNELS];
} Device;

enum { DEVICE_CELLS = 1024 };

/* The device of the VM, opened when this is first asked. NULL: the error stands in the VM. */
Device *device_of(Vm *vm);
bool device_enter(Device *d);
void device_leave(Device *d);

/* The bytes that an array of any strides reaches, relative to its element 0. */
void device_reach(Array *a, i64 *low, i64 *high);
WeftStatus device_alloc(Vm *vm, size_t bytes, void **out);
void device_free(Vm *vm, void *data, size_t bytes);
WeftStatus device_to_host(Vm *vm, const void *device, void *host, size_t bytes);
WeftStatus device_from_host(Vm *vm, const void *host, void *device, size_t bytes);

/* The driver compiles the text, or did so earlier. */
WeftStatus device_load(Device *d, const char *ptx, CuModule *out, Buf *why) MUST_USE;
CuFunction device_own_kernel(Device *d, DeviceOwnKernel which); /* NULL: the error stands in the VM */
void device_end_own_kernels(Device *d); /* in its context */
WeftStatus device_failed(Device *d, const char *what, CuResult error); /* raises it; WEFT_ERROR */

#endif
