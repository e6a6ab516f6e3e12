/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.c - opens libcuda, fills the table of its functions and initialises it, once a process.
 * Called by cuda_backend.c, and by nvrtc.c for the version. Invariant: the table is written once, before anyone gets it.
 */
#include "cuda/driver.h"

#include "base/dl.h"
#include "base/error.h"

#include <pthread.h>
#include <string.h>

#define LIBRARY "libcuda.so.1" /* the driver's package installs it under this name alone */

enum { REQUIRED = false, OPTIONAL = true };

static const rft__dl_row rows[] = {
#define RFT_DRIVER(need, symbol, parameters) {#symbol, offsetof(rft__driver, symbol), need},
#include "cuda/driver.def"
#undef RFT_DRIVER
};

static rft__driver driver;
static rft_error failure; /* status RFT_OK: driver is usable */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static rft_status check(const rft__driver *d, CUresult result, const char *what, rft_error *err) {
    if (result == CUDA_SUCCESS) {
        return RFT_OK;
    }
    const char *name = NULL, *text = NULL;
    d->cuGetErrorName(result, &name);
    d->cuGetErrorString(result, &text);
    return rft__error_set(err, RFT_E_DEVICE, result, "%s failed with %s (%d): %s", what, name != NULL ? name : "an unknown error",
                          result, text != NULL ? text : "the driver has no text for it");
}

static rft_status check_version(const rft__driver *d, const char *missing, rft_error *err) {
    const int version = d->version, least = RFT_DRIVER_LEAST;
    if (version < least) {
        RFT_FAIL(err, RFT_E_DEVICE, "the CUDA driver supports CUDA %d.%d; rooftile needs a driver for CUDA %d.%d or newer",
                 version / 1000, version % 1000 / 10, least / 1000, least % 1000 / 10);
    }
    if (missing != NULL) {
        RFT_FAIL(err, RFT_E_DEVICE, "the CUDA driver supports CUDA %d.%d, but lacks the function %s", version / 1000,
                 version % 1000 / 10, missing);
    }
    return RFT_OK;
}

rft_status rft__driver_load(const char *name, rft__driver *d, rft_error *err) {
    char reason[160];
    memset(d, 0, sizeof *d);
    void *library = rft__dl_open(name, false, reason, sizeof reason);
    if (library == NULL) {
        RFT_FAIL(err, RFT_E_DEVICE, "there is no CUDA driver: %s", reason);
    }
    const char *missing = rft__dl_bind(library, rows, sizeof rows / sizeof rows[0], d);
    if (d->cuDriverGetVersion == NULL || d->cuDriverGetVersion(&d->version) != CUDA_SUCCESS) {
        RFT_FAIL(err, RFT_E_DEVICE, "%s is no CUDA driver: it does not tell its version", name);
    }
    RFT_TRY(check_version(d, missing, err));
    return check(d, d->cuInit(0), "initialising the CUDA driver", err);
}

static void load(void) {
    rft__driver_load(LIBRARY, &driver, &failure);
}

const rft__driver *rft__driver_get(rft_error *err) {
    pthread_once(&once, load);
    if (failure.status != RFT_OK) {
        rft__error_set(err, failure.status, failure.native, "%s", failure.message);
        return NULL;
    }
    return &driver;
}

int rft__driver_version(void) {
    char reason[1];
    rft__driver d;
    void *library = rft__dl_open(LIBRARY, false, reason, sizeof reason);
    if (library == NULL) {
        return 0;
    }
    rft__dl_bind(library, rows, sizeof rows / sizeof rows[0], &d);
    int version = 0;
    return d.cuDriverGetVersion != NULL && d.cuDriverGetVersion(&version) == CUDA_SUCCESS ? version : 0;
}

rft_status rft__driver_check(CUresult result, const char *what, rft_error *err) {
    return check(&driver, result, what, err);
}
