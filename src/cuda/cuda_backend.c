/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_backend.c - NVIDIA GPUs as a backend: opens a device, and hands plan and api the functions of this folder.
 * Invariant: the primary context is retained while a device of ours lives, never reset; a caller's context is only used.
 */
#include "base/env.h"
#include "cuda/cuda_choice.h"
#include "cuda/cuda_debug.h"
#include "cuda/cuda_pack.h"
#include "cuda/cuda_weight.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* ---- opening ---- */

static bool cuda_present(void) { return rft__driver_get(NULL) != NULL; }

static rft_status find_ordinal(rft__cuda_device *d, int ordinal, rft_error *err) {
    int count = 0;
    RFT_TRY(rft__driver_check(d->driver->cuDeviceGetCount(&count), "counting GPUs", err));
    if (ordinal >= count) {
        RFT_FAIL(err, RFT_E_DEVICE, "device = \"cuda:%d\": there %s %d GPU%s here", ordinal, count == 1 ? "is" : "are", count,
                 count == 1 ? "" : "s");
    }
    return rft__driver_check(d->driver->cuDeviceGet(&d->ordinal, ordinal), "finding the GPU", err);
}

/* A caller's context decides the GPU; else it is the primary one of the ordinal. */
static rft_status open_context(rft__cuda_device *d, void *given, rft_error *err) {
    if (given == NULL) {
        const CUresult retained = d->driver->cuDevicePrimaryCtxRetain(&d->context, d->ordinal);
        RFT_TRY(rft__driver_check(retained, "retaining the primary context", err));
        d->primary = true;
        return RFT_OK;
    }
    d->context = given;
    rft__cuda_scope scope;
    CUdevice device = 0;
    RFT_TRY(rft__cuda_enter(d, &scope, err));
    const CUresult result = d->driver->cuCtxGetDevice(&device);
    rft__cuda_leave(&scope);
    RFT_TRY(rft__driver_check(result, "asking options.cuda_context for its GPU", err));
    if (device != d->ordinal) {
        RFT_FAIL(err, RFT_E_ARG, "options.cuda_context belongs to GPU %d, the device string names %d", device, d->ordinal);
    }
    return RFT_OK;
}

static rft_status open_debug(rft__cuda_device *d, rft_error *err) {
    rft__cuda_scope scope;
    RFT_TRY(rft__cuda_enter(d, &scope, err));
    const rft_status status = rft__cuda_debug_open(d, err);
    rft__cuda_leave(&scope);
    return status;
}

static rft_status open_jit(rft__cuda_device *d, const rft_ctx_options *o, rft_error *err) {
    char folder[PATH_BYTES];
    const bool cached = rft__env_cache_dir(o->cache_dir, folder, sizeof folder);
    const rft__jit_options options = {.allocator = d->allocator,
                                      .log = d->log,
                                      .cache_dir = cached ? folder : NULL,
                                      .threads = o->threads,
                                      .debug = d->debug,
                                      .dump = d->dump};
    return rft__jit_create(&options, &d->jit, err);
}

static rft_status open_here(rft__cuda_device *d, const rft__device_options *o, rft_error *err) {
    d->driver = rft__driver_get(err);
    if (d->driver == NULL) {
        return RFT_E_DEVICE;
    }
    d->process = (long)getpid();
    d->strict = o->strict;
    RFT_TRY(find_ordinal(d, o->ordinal, err));
    RFT_TRY(rft__cuda_facts_here(d->driver, d->ordinal, o->machine, o->ctx->sm_limit, &d->facts, err));
    size_t memory = 0;
    RFT_TRY(rft__driver_check(d->driver->cuDeviceGetName(d->name, sizeof d->name, d->ordinal), "asking the GPU's name", err));
    RFT_TRY(rft__driver_check(d->driver->cuDeviceTotalMem_v2(&memory, d->ordinal), "asking the GPU's memory", err));
    d->memory = memory;
    RFT_TRY(open_context(d, o->ctx->cuda_context, err));
    RFT_TRY(open_debug(d, err));
    return open_jit(d, o->ctx, err);
}

static rft_status open_described(rft__cuda_device *d, const rft__device_options *o, rft_error *err) {
    snprintf(d->name, sizeof d->name, "%s", o->as->name);
    RFT_TRY(rft__cuda_facts_of(o->as, o->as_threads, &d->facts, err));
    return o->compile ? open_jit(d, o->ctx, err) : RFT_OK;
}

static void cuda_close(rft__device *device) {
    rft__cuda_device *const d = rft__cuda_of(device);
    rft__jit_free(d->jit);
    rft__cuda_debug_close(d);
    if (d->primary && (long)getpid() == d->process) {
        d->driver->cuDevicePrimaryCtxRelease_v2(d->ordinal);
    }
    pthread_mutex_destroy(&d->lock);
    const rft__allocator a = d->allocator;
    rft__release(&a, d, sizeof *d);
}

static rft_status cuda_open(const rft__device_options *o, rft__device **out, rft_error *err) {
    rft__cuda_device *const d = rft__alloc(o->allocator, sizeof *d, _Alignof(rft__cuda_device));
    if (d == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a device (%zu bytes)", sizeof *d);
    }
    d->allocator = *o->allocator;
    d->log = *o->log;
    if (pthread_mutex_init(&d->lock, NULL) != 0) {
        rft__release(o->allocator, d, sizeof *d);
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a device's lock");
    }
    rft_status status = rft__cuda_debug_read(d, err);
    if (status == RFT_OK) {
        status = o->as != NULL ? open_described(d, o, err) : open_here(d, o, err);
    }
    if (status != RFT_OK) {
        cuda_close((rft__device *)(void *)d);
        return status;
    }
    *out = (rft__device *)(void *)d;
    return RFT_OK;
}

static void cuda_describe(const rft__device *device, rft_device_info *info) {
    const rft__cuda_device *const d = rft__cuda_of_const(device);
    info->threads = d->facts.sms;
    info->nodes = 1;
    info->l2 = (uint64_t)d->facts.l2;
    info->memory = d->memory;
    info->sms = d->facts.sms;
    info->arch = d->facts.arch;
    memcpy(info->name, d->name, sizeof info->name);
    snprintf(info->isa, sizeof info->isa, "sm_%d", d->facts.arch);
}

/* ---- kernels ---- */

static uint32_t cuda_kernel_count(void) { return (uint32_t)rft__cuda_row_count; }

/* Of the first GPU here, 0: there is none. */
static int arch_here(void) {
    const rft__driver *const driver = rft__driver_get(NULL);
    CUdevice gpu = 0;
    int major = 0, minor = 0;
    if (driver == NULL || driver->cuDeviceGet(&gpu, 0) != CUDA_SUCCESS ||
        driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu) != CUDA_SUCCESS ||
        driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu) != CUDA_SUCCESS) {
        return 0;
    }
    return 10 * major + minor;
}

static rft_status cuda_kernel_get(uint32_t i, rft_kernel_info *info) {
    const rft__cuda_row *const r = &rft__cuda_rows[i];
    const int arch = arch_here();
    info->name = r->name;
    info->isa = r->arch == 90 ? "sm_90a" : "sm_80";
    info->x = r->x;
    info->w = r->w;
    info->acc = RFT_F32;
    info->mr = r->bm;
    info->nr = r->bn;
    info->kr = r->bk;
    info->available = r->arch == 90 ? arch == 90 : arch >= r->arch;
    info->error_gamma = r->gamma;
    info->error_eta = r->eta;
    return RFT_OK;
}

const rft__backend rft__backend_cuda = {
    .name = "cuda",
    .present = cuda_present,
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .memory_alloc = rft__cuda_memory_alloc,
    .memory_free = rft__cuda_memory_free,
    .memory_copy = rft__cuda_memory_copy,
    .memory_fill = rft__cuda_memory_fill,
    .memory_of = rft__cuda_memory_of,
    .memory_read = rft__cuda_memory_read,
    .sync = rft__cuda_sync,
    .measure = rft__cuda_measure,
    .weight_layout = rft__cuda_weight_layout,
    .weight_bytes = rft__cuda_packed_bytes,
    .weight_pack = rft__cuda_weight_pack,
    .weight_unpack = rft__cuda_weight_unpack,
    .choose = rft__cuda_choose,
    .choice_free = rft__cuda_choice_free,
    .choice_info = rft__cuda_choice_info,
    .choice_fallback = NULL, /* 16-bit operands always have a row on tensor cores; FMA units serve where they are faster */
    .choice_explain = rft__cuda_explain,
    .run = rft__cuda_run,
    .kernel_count = cuda_kernel_count,
    .kernel_get = cuda_kernel_get,
};
