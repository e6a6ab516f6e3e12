/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign.c - see foreign.h.
 */
#define _GNU_SOURCE
#include "foreign.h"

#include <dlfcn.h>

#define FILL_BYTES ((size_t)1 << 20)

static void *symbol(const char *name) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver ? dlsym(driver, name) : NULL;
}

bool foreign_enter(int ordinal) {
    int (*get)(int *device, int ordinal), (*retain)(void **context, int device), (*set)(void *context);
    void *context;
    int device;
    *(void **)&get = symbol("cuDeviceGet");
    *(void **)&retain = symbol("cuDevicePrimaryCtxRetain");
    *(void **)&set = symbol("cuCtxSetCurrent");
    return get && retain && set && get(&device, ordinal) == 0 && retain(&context, device) == 0 && set(context) == 0;
}

rft_status foreign_make(foreign_kernel *f, rft_ctx *ctx, rft_error *err) {
    *(void **)&f->fill = symbol("cuMemsetD32Async");
    if (f->fill)
        return buffer_make(&f->target, ctx, FILL_BYTES, err);
    *err = (rft_error){.status = RFT_E_UNSUPPORTED, .message = "the driver's fill is not to be found"};
    return err->status;
}

void foreign_free(foreign_kernel *f) { buffer_free(&f->target); }

rft_status foreign_run(const foreign_kernel *f, void *stream, rft_error *err) {
    if (f->fill((unsigned long long)(uintptr_t)f->target.p, 0, FILL_BYTES / 4, stream) == 0)
        return RFT_OK;
    *err = (rft_error){.status = RFT_E_DEVICE, .message = "the driver's fill failed"};
    return err->status;
}
