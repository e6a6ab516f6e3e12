/* SPDX-License-Identifier: Apache-2.0
 *
 * nvrtc.h - NVIDIA's run-time compiler without its header: the table of its functions, filled from libnvrtc when the first
 * kernel must be compiled. It needs no GPU. Called by jit.c.
 * The file that RFT_NVRTC names, and no other; else one that the process has loaded already, the system's, the toolkit's
 * usual folder. One newer than the driver is passed over, since the driver might not load its code.
 */
#ifndef RFT_CUDA_NVRTC_H
#define RFT_CUDA_NVRTC_H

#include "rooftile.h"

#include <stdbool.h>

typedef int nvrtcResult;
typedef struct nvrtcProgram_st *nvrtcProgram;

enum { /* nvrtcResult */
    NVRTC_SUCCESS = 0,
    NVRTC_ERROR_OUT_OF_MEMORY = 1,
    NVRTC_ERROR_INVALID_OPTION = 5,
    NVRTC_ERROR_COMPILATION = 6
};

typedef struct rft__nvrtc {
#define RFT_NVRTC(type, symbol, parameters) type(*symbol) parameters;
#include "cuda/nvrtc.def"
#undef RFT_NVRTC
    int major, minor; /* version */
} rft__nvrtc;

/* NVRTC, opened once a process; from any thread. NULL: none is usable, and err says why (RFT_E_JIT), each time. */
const rft__nvrtc *rft__nvrtc_get(rft_error *err);
/* Whether it compiles for compute capability arch / 10 . arch % 10, such as 90. */
bool rft__nvrtc_knows(const rft__nvrtc *nvrtc, int arch);

#endif
