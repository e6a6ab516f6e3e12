/* SPDX-License-Identifier: Apache-2.0
 *
 * activations.c - rft_quantize: every argument checked, defaults filled in, then the backend.
 */
#include "api/api.h"
#include "base/sized.h"

static rft_status check_types(const rft_quantize_args *a, rft_error *err) {
    if (!rft__type_is_float(a->from)) {
        RFT_FAIL(err, RFT_E_ARG, "args.from = %d (%s): x is f32, f16 or bf16", (int)a->from, rft__type_name(a->from));
    }
    if (!rft__type_is_8bit(a->to)) {
        RFT_FAIL(err, RFT_E_ARG, "args.to = %d (%s): codes are i8 or e4m3", (int)a->to, rft__type_name(a->to));
    }
    return RFT_OK;
}

static rft_status fill_ld(const rft_quantize_args *a, const char *name, int64_t *ld, rft_error *err) {
    int64_t elements = 0, bytes = 0;
    if (*ld < 0 || (*ld != 0 && *ld < a->k)) {
        RFT_FAIL(err, RFT_E_ARG, "args.%s = %lld is less than args.k = %lld", name, (long long)*ld, (long long)a->k);
    }
    *ld = *ld != 0 ? *ld : rft__max(a->k, 1);
    if (rft__mul_overflows(a->m, *ld, &elements) || rft__mul_overflows(elements, 4, &bytes)) {
        RFT_FAIL(err, RFT_E_ARG, "args.m = %lld, args.%s = %lld: the matrix overflows 2^63 bytes", (long long)a->m, name,
                 (long long)*ld);
    }
    return RFT_OK;
}

static rft_status check_shape(rft_quantize_args *a, rft_error *err) {
    if (a->m < 0 || a->k < 0) {
        RFT_FAIL(err, RFT_E_ARG, "args.m = %lld, args.k = %lld: neither may be negative", (long long)a->m, (long long)a->k);
    }
    if (a->group_k < 0 || a->group_k % RFT__X_GRANULE != 0) {
        RFT_FAIL(err, RFT_E_ARG, "args.group_k = %lld is neither 0 nor a positive multiple of %d", (long long)a->group_k,
                 RFT__X_GRANULE);
    }
    RFT_TRY(fill_ld(a, "ldx", &a->ldx, err));
    return fill_ld(a, "ldq", &a->ldq, err);
}

static rft_status check_pointer(const void *p, size_t size, const char *name, rft_error *err) {
    if (p == NULL || (uintptr_t)p % size != 0) {
        RFT_FAIL(err, RFT_E_ARG, "args.%s = %p is NULL or not aligned to %zu bytes", name, p, size);
    }
    return RFT_OK;
}

static rft_status check_scales(const rft_quantize_args *a, rft_error *err) {
    if (a->static_scale == NULL) {
        return check_pointer(a->scale, sizeof *a->scale, "scale", err);
    }
    if (a->scale != NULL || a->group_k != 0) {
        RFT_FAIL(err, RFT_E_ARG, "args.static_scale is set: no scales are written, so args.scale = %p must be NULL and "
                                 "args.group_k = %lld 0",
                 (void *)a->scale, (long long)a->group_k);
    }
    return check_pointer(a->static_scale, sizeof *a->static_scale, "static_scale", err);
}

rft_status rft_quantize(rft_ctx *ctx, const rft_quantize_args *args, rft_error *err) {
    if (ctx == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "ctx is NULL");
    }
    rft_quantize_args a;
    RFT_TRY(rft__sized_read(&a, sizeof a, args, "args", err));
    RFT_TRY(check_types(&a, err));
    RFT_TRY(check_shape(&a, err));
    if (ctx->backend->quantize == NULL) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "ctx is of device \"%s\", which has no kernel that quantises", ctx->backend->name);
    }
    if (a.m == 0 || a.k == 0) {
        return RFT_OK;
    }
    RFT_TRY(check_scales(&a, err));
    RFT_TRY(check_pointer(a.x, rft__type_size(a.from), "x", err));
    RFT_TRY(check_pointer(a.q, 1, "q", err));
    return ctx->backend->quantize(ctx->device, &a, err);
}
