/* driver.h — inside gpu/: the CUDA driver, loaded when it is first needed; nothing of CUDA is needed to build.
 *
 * Functions are asked for by cuGetProcAddress with the version that the prototypes below were written for, never the
 * driver's own: later drivers give other functions under some of these names. */
#ifndef WEFT_GPU_DRIVER_H
#define WEFT_GPU_DRIVER_H

#include "parser/base.h"

typedef int CuResult;  /* 0: all is well */
typedef int CuDevice;
typedef struct CuContextOpaque *CuContext;
typedef struct CuModuleOpaque *CuModule;
typedef struct CuFunctionOpaque *CuFunction;
typedef struct CuStreamOpaque *CuStream;
typedef struct CuLinkOpaque *CuLink;
typedef unsigned long long CuPointer; /* an address on the device */
_Static_assert(sizeof(CuPointer) == 8 && sizeof(void *) == 8 && sizeof(CuResult) == 4, "the driver's binary interface");

enum {
  CU_INTERFACE = 12000, /* the version of these prototypes */
  CU_OUT_OF_MEMORY = 2,
  CU_NO_DEVICE = 100,
  CU_ATTRIBUTE_SM_COUNT = 16,
  CU_ATTRIBUTE_MAJOR = 75,
  CU_ATTRIBUTE_MINOR = 76,
  CU_FUNCTION_LOCAL = 3, /* bytes of a thread that do not fit its registers */
  CU_FUNCTION_SHARED = 8, /* the most bytes of shared memory that a launch may give */
  CU_JIT_ERROR_LOG = 5,
  CU_JIT_ERROR_LOG_BYTES = 6,
  CU_JIT_PTX = 1, /* of what is given to a link */
};

/* CU(name, parameters): the driver's cu<name>. */
#define CU_FUNCTIONS(CU) \
  CU(Init, (unsigned flags)) \
  CU(DriverGetVersion, (int *version)) \
  CU(GetErrorString, (CuResult error, const char **text)) \
  CU(DeviceGetCount, (int *count)) \
  CU(DeviceGet, (CuDevice * device, int ordinal)) \
  CU(DeviceGetName, (char *name, int length, CuDevice device)) \
  CU(DeviceGetAttribute, (int *value, int attribute, CuDevice device)) \
  CU(DevicePrimaryCtxRetain, (CuContext * context, CuDevice device)) \
  CU(DevicePrimaryCtxRelease, (CuDevice device)) \
  CU(CtxPushCurrent, (CuContext context)) \
  CU(CtxPopCurrent, (CuContext * context)) \
  CU(CtxSynchronize, (void)) \
  CU(MemAlloc, (CuPointer * out, size_t bytes)) \
  CU(MemFree, (CuPointer p)) \
  CU(MemGetInfo, (size_t * free_bytes, size_t *total)) \
  CU(MemcpyHtoD, (CuPointer to, const void *from, size_t bytes)) \
  CU(MemcpyDtoH, (void *to, CuPointer from, size_t bytes)) \
  CU(MemsetD8, (CuPointer to, unsigned char value, size_t bytes)) \
  CU(ModuleLoadDataEx, (CuModule * module, const void *image, unsigned count, int *options, void **values)) \
  CU(LinkCreate, (unsigned count, int *options, void **values, CuLink *link)) \
  CU(LinkAddData, (CuLink link, int kind, void *data, size_t bytes, const char *name, unsigned count, int *options, \
                   void **values)) \
  CU(LinkComplete, (CuLink link, void **code, size_t *bytes)) \
  CU(LinkDestroy, (CuLink link)) \
  CU(ModuleUnload, (CuModule module)) \
  CU(ModuleGetFunction, (CuFunction * function, CuModule module, const char *name)) \
  CU(FuncGetAttribute, (int *value, int attribute, CuFunction f)) \
  CU(FuncSetAttribute, (CuFunction f, int attribute, int value)) \
  CU(LaunchKernel, (CuFunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
                    unsigned shared, CuStream stream, void **params, void **extra))

typedef struct Driver {
  void *library;
#define CU(name, params) CuResult(*name) params;
  CU_FUNCTIONS(CU)
#undef CU
} Driver;

/* Loads the driver from `path` (NULL: libcuda.so.1) and starts it. On false `why` holds a line that says what is
 * missing. */
bool driver_open(Driver *d, const char *path, Buf *why) MUST_USE;
void driver_close(Driver *d);
const char *driver_error(const Driver *d, CuResult error); /* text of the driver's */

#endif
