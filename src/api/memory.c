/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c - the public calls for a device's memory and time. The work is the backend's.
 */
#include "api/api.h"
#include "base/sized.h"

/* What every copy and fill needs; bytes = 0 touches nothing, so any pointers will do. */
static rft_status check(const rft_ctx *ctx, const void *dst, const void *src, size_t bytes, rft_error *err) {
    if (ctx == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "ctx is NULL");
    }
    if (bytes != 0 && (dst == NULL || src == NULL)) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL and bytes = %zu", dst == NULL ? "dst" : "src", bytes);
    }
    return RFT_OK;
}

rft_status rft_memory_alloc(rft_ctx *ctx, size_t bytes, void **p, rft_error *err) {
    if (ctx == NULL || p == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", ctx == NULL ? "ctx" : "p");
    }
    *p = NULL;
    return ctx->backend->memory_alloc(ctx->device, bytes != 0 ? bytes : 1, p, err);
}

void rft_memory_free(rft_ctx *ctx, void *p, size_t bytes) {
    if (ctx != NULL && p != NULL) {
        ctx->backend->memory_free(ctx->device, p, bytes != 0 ? bytes : 1);
    }
}

rft_status rft_memory_write(rft_ctx *ctx, void *dst, const void *src, size_t bytes, rft_error *err) {
    RFT_TRY(check(ctx, dst, src, bytes, err));
    return bytes == 0 ? RFT_OK : ctx->backend->memory_copy(ctx->device, dst, src, bytes, RFT__TO_DEVICE, err);
}

rft_status rft_memory_read(rft_ctx *ctx, void *dst, const void *src, size_t bytes, rft_error *err) {
    RFT_TRY(check(ctx, dst, src, bytes, err));
    return bytes == 0 ? RFT_OK : ctx->backend->memory_copy(ctx->device, dst, src, bytes, RFT__TO_HOST, err);
}

rft_status rft_memory_fill(rft_ctx *ctx, void *dst, int byte, size_t bytes, rft_error *err) {
    RFT_TRY(check(ctx, dst, dst, bytes, err));
    return bytes == 0 ? RFT_OK : ctx->backend->memory_fill(ctx->device, dst, byte, bytes, err);
}

rft_status rft_ctx_sync(rft_ctx *ctx, void *stream, rft_error *err) {
    if (ctx == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "ctx is NULL");
    }
    return ctx->backend->sync(ctx->device, stream, err);
}

rft_status rft_measure_calls(rft_ctx *ctx, rft_status (*call)(void *user, uint32_t i, void *stream, rft_error *err), void *user,
                             uint32_t count, rft_timing *timing, rft_error *err) {
    if (ctx == NULL || call == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", ctx == NULL ? "ctx" : "call");
    }
    RFT_TRY(rft__sized_check(timing, "timing", err));
    rft_timing own = {.struct_size = sizeof own};
    if (count != 0) {
        RFT_TRY(ctx->backend->measure(ctx->device, call, user, count, &own, err));
    }
    rft__sized_write(timing, &own, sizeof own);
    return RFT_OK;
}
