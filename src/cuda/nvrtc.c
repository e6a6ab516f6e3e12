/* SPDX-License-Identifier: Apache-2.0
 *
 * nvrtc.c - opens libnvrtc and fills the table of its functions, once a process. Called by jit.c.
 * Invariant: the table is written once, before anyone gets it; a library that is refused leaves no trace in it.
 */
#include "cuda/nvrtc.h"

#include "base/dl.h"
#include "base/env.h"
#include "base/error.h"
#include "cuda/driver.h"

#include <limits.h>
#include <pthread.h>

#define MAX_ARCHS 256

static const rft__dl_row rows[] = {
#define RFT_NVRTC(type, symbol, parameters) {#symbol, offsetof(rft__nvrtc, symbol), false},
#include "cuda/nvrtc.def"
#undef RFT_NVRTC
};

typedef struct place {
    const char *name;
    bool loaded_only;
} place;

/* PyTorch loads the one of its own wheels, which lies in no folder that the loader searches. */
static const place places[] = {
    {"libnvrtc.so.13", true},
    {"libnvrtc.so.12", true},
    {"libnvrtc.so.13", false},
    {"libnvrtc.so.12", false},
    {"/usr/local/cuda/lib64/libnvrtc.so.13", false},
    {"/usr/local/cuda/lib64/libnvrtc.so.12", false},
    {"/usr/local/cuda/lib64/libnvrtc.so", false},
};

static rft__nvrtc nvrtc;
static rft_error failure; /* status RFT_OK: nvrtc is usable */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* max_major: of the driver, INT_MAX where there is none to fit. */
static rft_status use(void *library, const char *name, int max_major, rft_error *err) {
    rft__nvrtc n = {0};
    const char *missing = rft__dl_bind(library, rows, sizeof rows / sizeof rows[0], &n);
    if (missing != NULL) {
        RFT_FAIL(err, RFT_E_JIT, "%s is no usable NVRTC: it lacks the function %s", name, missing);
    }
    const nvrtcResult result = n.nvrtcVersion(&n.major, &n.minor);
    if (result != NVRTC_SUCCESS) {
        return rft__error_set(err, RFT_E_JIT, result, "%s does not tell its version: %s", name, n.nvrtcGetErrorString(result));
    }
    if (n.major > max_major) {
        RFT_FAIL(err, RFT_E_JIT, "NVRTC %d.%d is too new for this CUDA driver; install NVRTC %d or a newer driver", n.major,
                 n.minor, max_major);
    }
    nvrtc = n;
    return RFT_OK;
}

static rft_status load_given(const char *name, rft_error *err) {
    char reason[160];
    void *library = rft__dl_open(name, false, reason, sizeof reason);
    if (library == NULL) {
        RFT_FAIL(err, RFT_E_JIT, "RFT_NVRTC = %s cannot be loaded: %s", name, reason);
    }
    return use(library, name, INT_MAX, err);
}

/* One that is there and refused tells more than the absence of the others. */
static rft_status load_any(rft_error *err) {
    char reason[1];
    const int version = rft__driver_version();
    rft_error refusal = {.status = RFT_OK};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const place *p = &places[i];
        void *library = rft__dl_open(p->name, p->loaded_only, reason, sizeof reason);
        if (library != NULL && use(library, p->name, version > 0 ? version / 1000 : INT_MAX, &refusal) == RFT_OK) {
            return RFT_OK;
        }
    }
    if (refusal.status != RFT_OK) {
        return rft__error_set(err, refusal.status, refusal.native, "%s", refusal.message);
    }
    RFT_FAIL(err, RFT_E_JIT,
             "there is no NVRTC to compile CUDA kernels: libnvrtc.so.13 and libnvrtc.so.12 are neither loaded, nor among the "
             "system's libraries, nor in /usr/local/cuda/lib64; RFT_NVRTC may name one");
}

static void load(void) {
    const char *given = rft__env_text("RFT_NVRTC");
    if (given != NULL) {
        load_given(given, &failure);
    } else {
        load_any(&failure);
    }
}

const rft__nvrtc *rft__nvrtc_get(rft_error *err) {
    pthread_once(&once, load);
    if (failure.status != RFT_OK) {
        rft__error_set(err, failure.status, failure.native, "%s", failure.message);
        return NULL;
    }
    return &nvrtc;
}

bool rft__nvrtc_knows(const rft__nvrtc *n, int arch) {
    int count = 0, archs[MAX_ARCHS];
    if (n->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count > MAX_ARCHS ||
        n->nvrtcGetSupportedArchs(archs) != NVRTC_SUCCESS) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (archs[i] == arch) {
            return true;
        }
    }
    return false;
}
