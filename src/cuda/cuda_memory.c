/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_memory.c - device memory, copies and time for tools and tests, and the current context. Called through the backend's
 * table. Invariant: the context that was current before a call is current after it.
 */
#include "base/clock.h"
#include "cuda/cuda_debug.h"

#include <string.h>
#include <unistd.h>

rft_status rft__cuda_enter(const rft__cuda_device *d, rft__cuda_scope *scope, rft_error *err) {
    *scope = (rft__cuda_scope){d->driver, false};
    if (d->driver == NULL) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "this context describes a GPU that is not here; nothing runs on it");
    }
    if ((long)getpid() != d->process) {
        RFT_FAIL(err, RFT_E_DEVICE, "this process was forked from the one that opened the GPU; the driver cannot follow");
    }
    CUcontext current = NULL;
    RFT_TRY(rft__driver_check(d->driver->cuCtxGetCurrent(&current), "asking for the current context", err));
    if (current == d->context) {
        return RFT_OK;
    }
    RFT_TRY(rft__driver_check(d->driver->cuCtxPushCurrent_v2(d->context), "making the context current", err));
    scope->pushed = true;
    return RFT_OK;
}

void rft__cuda_leave(const rft__cuda_scope *scope) {
    CUcontext popped = NULL;
    if (scope->pushed) {
        scope->driver->cuCtxPopCurrent_v2(&popped);
    }
}

bool rft__cuda_on_device(const rft__cuda_device *d, const void *p) {
    int type = 0;
    return d->driver->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)p) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_DEVICE;
}

static CUdeviceptr address(const void *p) { return (CUdeviceptr)(uintptr_t)p; }

rft_status rft__cuda_memory_alloc(rft__device *device, size_t bytes, void **p, rft_error *err) {
    const rft__cuda_device *const d = rft__cuda_of(device);
    rft__cuda_scope scope;
    CUdeviceptr got = 0;
    RFT_TRY(rft__cuda_enter(d, &scope, err));
    const CUresult result = d->driver->cuMemAlloc_v2(&got, bytes);
    rft__cuda_leave(&scope);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        RFT_FAIL(err, RFT_E_NOMEM, "no device memory for a buffer of %zu bytes", bytes);
    }
    *p = (void *)(uintptr_t)got;
    return rft__driver_check(result, "allocating device memory", err);
}

void rft__cuda_memory_free(rft__device *device, void *p, size_t bytes) {
    const rft__cuda_device *const d = rft__cuda_of(device);
    rft__cuda_scope scope;
    (void)bytes;
    if (rft__cuda_enter(d, &scope, NULL) == RFT_OK) {
        d->driver->cuMemFree_v2(address(p));
        rft__cuda_leave(&scope);
    }
}

/* The far side may be host memory too, such as a weight that is packed before it is uploaded. A copy from pageable memory
 * returns when its bytes are staged; streams that do not wait for the default one must find them on the device. */
rft_status rft__cuda_memory_copy(rft__device *device, void *dst, const void *src, size_t bytes, rft__direction direction,
                                 rft_error *err) {
    const rft__cuda_device *const d = rft__cuda_of(device);
    const bool out = direction == RFT__TO_DEVICE;
    rft__cuda_scope scope;
    RFT_TRY(rft__cuda_enter(d, &scope, err));
    CUresult result = CUDA_SUCCESS;
    if (!rft__cuda_on_device(d, out ? dst : src)) {
        memmove(dst, src, bytes);
    } else if (out) {
        result = d->driver->cuMemcpyHtoD_v2(address(dst), src, bytes);
        result = result == CUDA_SUCCESS ? d->driver->cuStreamSynchronize(NULL) : result;
    } else {
        result = d->driver->cuMemcpyDtoH_v2(dst, address(src), bytes);
    }
    rft__cuda_leave(&scope);
    return rft__cuda_check(d, result, out ? "copying to the device" : "copying from the device", err);
}

rft_status rft__cuda_memory_fill(rft__device *device, void *dst, int byte, size_t bytes, rft_error *err) {
    const rft__cuda_device *const d = rft__cuda_of(device);
    rft__cuda_scope scope;
    RFT_TRY(rft__cuda_enter(d, &scope, err));
    CUresult result = CUDA_SUCCESS;
    if (!rft__cuda_on_device(d, dst)) {
        memset(dst, byte, bytes);
    } else {
        result = d->driver->cuMemsetD8Async(address(dst), (unsigned char)byte, bytes, NULL);
        result = result == CUDA_SUCCESS ? d->driver->cuStreamSynchronize(NULL) : result;
    }
    rft__cuda_leave(&scope);
    return rft__cuda_check(d, result, "filling device memory", err);
}

/* Each GPU has a name of its own: an address that stands for its ordinal. */
static const char gpus[1024];

const void *rft__cuda_memory_read(const rft__device *device) { return &gpus[rft__cuda_of_const(device)->ordinal % 1024]; }

/* Memory that the driver moves between GPUs and the host has no ordinal; any device reads it. */
const void *rft__cuda_memory_of(const rft__device *device, const void *p) {
    const rft__cuda_device *const d = rft__cuda_of_const(device);
    int ordinal = -1;
    if (d->driver == NULL || !rft__cuda_on_device(d, p)) {
        return NULL;
    }
    const CUresult asked = d->driver->cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address(p));
    return asked == CUDA_SUCCESS && ordinal >= 0 ? &gpus[ordinal % 1024] : rft__cuda_memory_read(device);
}

rft_status rft__cuda_sync(rft__device *device, void *stream, rft_error *err) {
    const rft__cuda_device *const d = rft__cuda_of(device);
    rft__cuda_scope scope;
    RFT_TRY(rft__cuda_enter(d, &scope, err));
    const CUresult result = d->driver->cuStreamSynchronize(stream);
    rft__cuda_leave(&scope);
    return rft__cuda_check(d, result, "waiting for the stream", err);
}

/* ---- time ---- */

typedef struct stopwatch {
    const rft__driver *driver;
    CUstream stream;
    CUevent begin, end;
    CUgraph graph;
    CUgraphExec exec;
} stopwatch;

static rft_status open_stopwatch(stopwatch *s, rft_error *err) {
    const rft__driver *const v = s->driver;
    RFT_TRY(rft__driver_check(v->cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING), "creating a stream", err));
    RFT_TRY(rft__driver_check(v->cuEventCreate(&s->begin, CU_EVENT_DEFAULT), "creating an event", err));
    return rft__driver_check(v->cuEventCreate(&s->end, CU_EVENT_DEFAULT), "creating an event", err);
}

static void close_stopwatch(const stopwatch *s) {
    const rft__driver *const v = s->driver;
    if (s->exec != NULL) {
        v->cuGraphExecDestroy(s->exec);
    }
    if (s->graph != NULL) {
        v->cuGraphDestroy(s->graph);
    }
    if (s->end != NULL) {
        v->cuEventDestroy_v2(s->end);
    }
    if (s->begin != NULL) {
        v->cuEventDestroy_v2(s->begin);
    }
    if (s->stream != NULL) {
        v->cuStreamDestroy_v2(s->stream);
    }
}

static rft_status enqueue(rft__timed_call *call, void *user, uint32_t count, CUstream stream, rft_error *err) {
    for (uint32_t i = 0; i < count; i++) {
        RFT_TRY(call(user, i, stream, err));
    }
    return RFT_OK;
}

static rft_status capture(stopwatch *s, rft__timed_call *call, void *user, uint32_t count, rft_error *err) {
    const rft__driver *const v = s->driver;
    RFT_TRY(rft__driver_check(v->cuStreamBeginCapture_v2(s->stream, CU_STREAM_CAPTURE_MODE_RELAXED), "beginning a graph", err));
    const rft_status called = enqueue(call, user, count, s->stream, err);
    const CUresult ended = v->cuStreamEndCapture(s->stream, &s->graph);
    RFT_TRY(called);
    RFT_TRY(rft__driver_check(ended, "ending a graph", err));
    return rft__driver_check(v->cuGraphInstantiateWithFlags(&s->exec, s->graph, 0), "instantiating a graph", err);
}

static rft_status replay(const stopwatch *s, double *seconds, rft_error *err) {
    const rft__driver *const v = s->driver;
    float milliseconds = 0.0f;
    CUresult result = v->cuGraphLaunch(s->exec, s->stream);
    result = result == CUDA_SUCCESS ? v->cuStreamSynchronize(s->stream) : result;
    result = result == CUDA_SUCCESS ? v->cuEventRecord(s->begin, s->stream) : result;
    result = result == CUDA_SUCCESS ? v->cuGraphLaunch(s->exec, s->stream) : result;
    result = result == CUDA_SUCCESS ? v->cuEventRecord(s->end, s->stream) : result;
    result = result == CUDA_SUCCESS ? v->cuEventSynchronize(s->end) : result;
    result = result == CUDA_SUCCESS ? v->cuEventElapsedTime(&milliseconds, s->begin, s->end) : result;
    *seconds = 1e-3 * (double)milliseconds;
    return rft__driver_check(result, "replaying a graph", err);
}

static rft_status measure(stopwatch *s, rft__timed_call *call, void *user, uint32_t count, rft_timing *timing, rft_error *err) {
    RFT_TRY(open_stopwatch(s, err));
    RFT_TRY(capture(s, call, user, count, err));
    RFT_TRY(replay(s, &timing->device_seconds, err));
    const double start = rft__now();
    RFT_TRY(enqueue(call, user, count, s->stream, err));
    timing->host_seconds = rft__now() - start;
    return rft__driver_check(s->driver->cuStreamSynchronize(s->stream), "waiting for the calls", err);
}

rft_status rft__cuda_measure(rft__device *device, rft__timed_call *call, void *user, uint32_t count, rft_timing *timing,
                             rft_error *err) {
    const rft__cuda_device *const d = rft__cuda_of(device);
    rft__cuda_scope scope;
    RFT_TRY(rft__cuda_enter(d, &scope, err));
    stopwatch s = {.driver = d->driver};
    const rft_status status = measure(&s, call, user, count, timing, err);
    close_stopwatch(&s);
    rft__cuda_leave(&scope);
    return status;
}
