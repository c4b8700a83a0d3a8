/* launch.h — inside gpu/: the backend's device (see launch.c). */
#ifndef WEFT_GPU_LAUNCH_H
#define WEFT_GPU_LAUNCH_H

#include "gpu/device.h"
#include "gpu/gpu.h"
#include "jit/plan/plan.h"

#endif
