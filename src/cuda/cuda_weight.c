/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_weight.c - packs and unpacks weights of a GPU, wherever source and storage lie. Called by cuda_backend.c.
 *
 *     source   storage
 *     device   device    a kernel
 *     host     device    packed on the host, then copied
 *     host     host      packed on the host, to be uploaded by the caller
 * Invariant: packed data are complete on return, on whatever stream the next run is.
 */
#include "cuda/cuda_weight.h"

#include "cuda/cuda_pack.h"

enum { TEXT_BYTES = 1024 };

static rft_status pack_kernel(rft__cuda_device *d, const rft__matrix *w, rft__cuda_kernel **kernel, rft_error *err) {
    char text[TEXT_BYTES];
    rft__text t = {text, sizeof text, 0};
    rft__cuda_pack_text(w, &t);
    const rft__cuda_wanted wanted = {&rft__cuda_pack_family, text, 0, 1};
    return rft__cuda_kernels_get(d, &wanted, 1, kernel, err);
}

static rft_status launch(const rft__cuda_device *d, const rft__cuda_kernel *kernel, const rft__cuda_pack_job *job,
                         CUstream stream, rft_error *err) {
    rft__pack_args args = job->args;
    void *parameters[] = {&args};
    const rft__cuda_launch l = {.grid = {job->blocks, 1, 1}, .block = RFT_PACK_THREADS, .cluster = 1};
    RFT_TRY(rft__cuda_enqueue(d, kernel, &l, false, parameters, stream, "packing a weight", err));
    return rft__driver_check(d->driver->cuStreamSynchronize(stream), "packing a weight", err);
}

static rft_status pack_on_device(rft__cuda_device *d, const rft__matrix *w, const void *source, void *data, CUstream stream,
                                 rft_error *err) {
    const rft__cuda_pack_job job = rft__cuda_pack_job_of(&d->facts, w, source, data);
    if (job.blocks == 0) {
        return RFT_OK;
    }
    rft__cuda_kernel *kernel = NULL;
    RFT_TRY(pack_kernel(d, w, &kernel, err));
    const rft_status status = launch(d, kernel, &job, stream, err);
    rft__cuda_kernel_drop(d, kernel);
    return status;
}

static rft_status buffer_for(const rft__cuda_device *d, const rft__matrix *w, void **buffer, size_t *bytes, rft_error *err) {
    RFT_TRY(rft__cuda_packed_bytes(w, bytes, err));
    *buffer = rft__alloc(&d->allocator, *bytes, 64);
    if (*buffer == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no host memory for a weight on its way (%zu bytes)", *bytes);
    }
    return RFT_OK;
}

static rft_status pack_and_copy(rft__cuda_device *d, const rft__matrix *w, const void *source, void *data, rft_error *err) {
    void *buffer = NULL;
    size_t bytes = 0;
    RFT_TRY(buffer_for(d, w, &buffer, &bytes, err));
    rft__cuda_pack_host(w, source, buffer);
    const rft_status status =
        bytes == 0 ? RFT_OK
                   : rft__cuda_memory_copy((rft__device *)(void *)d, data, buffer, bytes, RFT__TO_DEVICE, err);
    rft__release(&d->allocator, buffer, bytes);
    return status;
}

static rft_status pack(rft__cuda_device *d, const rft__matrix *w, const void *source, void *data, void *stream, rft_error *err) {
    if (w->n == 0 || w->k == 0 || w->batch == 0) {
        return RFT_OK; /* no data: `data` is where the storage ends */
    }
    const bool from_device = rft__cuda_on_device(d, source), to_device = rft__cuda_on_device(d, data);
    if (from_device && !to_device) {
        RFT_FAIL(err, RFT_E_ARG, "src.q = %p is device memory and storage = %p is not", source, data);
    }
    if (!to_device) {
        rft__cuda_pack_host(w, source, data);
        return RFT_OK;
    }
    return from_device ? pack_on_device(d, w, source, data, stream, err) : pack_and_copy(d, w, source, data, err);
}

rft_status rft__cuda_weight_pack(rft__device *device, const rft__matrix *w, const rft__stored_w *from, void *data, void *stream,
                                 rft_error *err) {
    rft__cuda_device *const d = rft__cuda_of(device);
    rft__cuda_scope scope;
    RFT_TRY(rft__cuda_enter(d, &scope, err));
    const rft_status status = pack(d, w, from->q, data, stream, err);
    rft__cuda_leave(&scope);
    return status;
}

rft_status rft__cuda_weight_unpack(rft__device *device, const rft__matrix *w, const void *data, float *out, int64_t ld,
                                   rft_error *err) {
    rft__cuda_device *const d = rft__cuda_of(device);
    const rft__matrix packed = rft__cuda_packed_matrix(w);
    void *buffer = NULL;
    size_t bytes = 0;
    RFT_TRY(buffer_for(d, w, &buffer, &bytes, err));
    const rft_status status =
        bytes == 0 ? RFT_OK : rft__cuda_memory_copy(device, buffer, data, bytes, RFT__TO_HOST, err);
    if (status == RFT_OK) {
        rft__cuda_unpack_host(&packed, buffer, out, ld);
    }
    rft__release(&d->allocator, buffer, bytes);
    return status;
}
