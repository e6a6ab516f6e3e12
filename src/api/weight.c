/* SPDX-License-Identifier: Apache-2.0
 *
 * weight.c - packed weights: size, pack, open, unpack. The backend makes the data, this file the header before it.
 * Invariant: storage has a valid header only when all data behind it are written.
 */
#include "api/api.h"
#include "api/weight_header.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/sized.h"
#include "format/format.h"

#include <stddef.h>
#include <string.h>

enum { HEADER_BYTES = sizeof(rft__weight_header) };

static rft_status read_desc(rft__matrix *w, const rft_weight_desc *desc, rft_error *err) {
    rft_weight_desc own;
    RFT_TRY(rft__sized_read(&own, sizeof own, desc, "desc", err));
    return rft__matrix_make(w, &own, "desc", err);
}

/* Header and data; 0 for a view. */
static rft_status storage_bytes(const rft_ctx *ctx, const rft__matrix *w, size_t *bytes, rft_error *err) {
    *bytes = 0;
    if (w->view) {
        return RFT_OK;
    }
    size_t data = 0;
    RFT_TRY(ctx->backend->weight_bytes(w, &data, err));
    if (rft__add_size(data, HEADER_BYTES, bytes)) {
        RFT_FAIL(err, RFT_E_ARG, "desc: n = %lld, k = %lld, batch = %lld overflow the packed size", (long long)w->n,
                 (long long)w->k, (long long)w->batch);
    }
    return RFT_OK;
}

rft_status rft_weight_bytes(rft_ctx *ctx, const rft_weight_desc *desc, size_t *bytes, rft_error *err) {
    if (ctx == NULL || bytes == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", ctx == NULL ? "ctx" : "bytes");
    }
    *bytes = 0;
    rft__matrix w;
    RFT_TRY(read_desc(&w, desc, err));
    return storage_bytes(ctx, &w, bytes, err);
}

/* ---- the header ---- */

static uint64_t checksum(const rft__weight_header *h) {
    return rft__hash(RFT_HASH_SEED, h, offsetof(rft__weight_header, checksum));
}

static rft_status write_header(const rft_ctx *ctx, void *storage, const rft__matrix *w, uint64_t layout, size_t data_bytes,
                               rft_error *err) {
    rft__weight_header h = {.magic = RFT__WEIGHT_MAGIC,
                            .version = 1,
                            .header_bytes = HEADER_BYTES,
                            .layout = layout,
                            .n = w->n,
                            .k = w->k,
                            .batch = w->batch,
                            .elem = (uint32_t)w->elem,
                            .glu = (uint32_t)w->glu,
                            .data_bytes = data_bytes,
                            .scale = (uint32_t)w->scale,
                            .zero = (uint32_t)w->zero,
                            .group_n = w->group_n,
                            .group_k = w->group_k,
                            .global = (uint32_t)w->global,
                            .sorted = w->sorted};
    h.checksum = checksum(&h);
    return ctx->backend->memory_copy(ctx->device, storage, &h, sizeof h, RFT__TO_DEVICE, err);
}

/* What makes the header one of ours, before its fields mean anything. */
static rft_status check_identity(const rft__weight_header *h, rft_error *err) {
    if (memcmp(h->magic, RFT__WEIGHT_MAGIC, sizeof h->magic) != 0) {
        RFT_FAIL(err, RFT_E_LAYOUT, "storage does not begin with \"%s\", so it is no packed weight", RFT__WEIGHT_MAGIC);
    }
    if (h->version != 1) {
        RFT_FAIL(err, RFT_E_LAYOUT, "storage header: version = %u, this library reads version 1", h->version);
    }
    if (h->header_bytes != HEADER_BYTES) {
        RFT_FAIL(err, RFT_E_LAYOUT, "storage header: header_bytes = %u is not %d", h->header_bytes, HEADER_BYTES);
    }
    const uint64_t sum = checksum(h);
    if (h->checksum != sum) {
        RFT_FAIL(err, RFT_E_LAYOUT, "storage header: checksum = 0x%016llx, its bytes give 0x%016llx: it is damaged",
                 (unsigned long long)h->checksum, (unsigned long long)sum);
    }
    for (size_t i = 0; i < sizeof h->reserved / sizeof h->reserved[0]; i++) {
        if (h->reserved[i] != 0) {
            RFT_FAIL(err, RFT_E_LAYOUT, "storage header: reserved[%zu] = 0x%llx is not 0", i, (unsigned long long)h->reserved[i]);
        }
    }
    return RFT_OK;
}

static rft_status header_matrix(const rft__weight_header *h, rft__matrix *w, rft_error *err) {
    static const uint32_t glu_flag[] = {0, RFT_WEIGHT_GLU_HALVES, RFT_WEIGHT_GLU_INTERLEAVED};
    static const uint32_t global_flag[] = {0, RFT_WEIGHT_GLOBAL_TIMES, RFT_WEIGHT_GLOBAL_OVER};
    if (h->glu >= sizeof glu_flag / sizeof glu_flag[0]) {
        RFT_FAIL(err, RFT_E_LAYOUT, "storage header: glu = %u is not 0, 1 or 2", h->glu);
    }
    if (h->global >= sizeof global_flag / sizeof global_flag[0] || h->sorted > 1) {
        RFT_FAIL(err, RFT_E_LAYOUT, "storage header: global = %u is not 0, 1 or 2, or sorted = %u not 0 or 1", h->global,
                 h->sorted);
    }
    if (h->batch < 1) {
        RFT_FAIL(err, RFT_E_LAYOUT, "storage header: batch = %lld is less than 1", (long long)h->batch);
    }
    rft_weight_desc desc = rft_weight_desc_init();
    desc.elem = (rft_type)h->elem;
    desc.n = h->n;
    desc.k = h->k;
    desc.batch = h->batch;
    desc.flags = glu_flag[h->glu] | global_flag[h->global] | (h->sorted ? RFT_WEIGHT_G_IDX : 0);
    desc.scale = (rft_type)h->scale;
    desc.zero = (rft_type)h->zero;
    desc.group_n = h->group_n;
    desc.group_k = h->group_k;
    rft_error why = {0};
    if (rft__matrix_make(w, &desc, "storage header", &why) != RFT_OK) {
        RFT_FAIL(err, RFT_E_LAYOUT, "%s", why.message);
    }
    return RFT_OK;
}

static rft_status check_data(const rft_ctx *ctx, const rft__weight_header *h, const rft__matrix *w, size_t bytes,
                             rft_error *err) {
    const uint64_t layout = ctx->backend->weight_layout(w);
    if (h->layout != layout || layout == 0) {
        RFT_FAIL(err, RFT_E_LAYOUT, "storage header: layout = 0x%llx, device \"%s\" packs this weight as 0x%llx",
                 (unsigned long long)h->layout, ctx->backend->name, (unsigned long long)layout);
    }
    size_t total = 0;
    rft_error why = {0};
    if (storage_bytes(ctx, w, &total, &why) != RFT_OK) {
        RFT_FAIL(err, RFT_E_LAYOUT, "storage header: %s", why.message);
    }
    if (h->data_bytes != total - HEADER_BYTES) {
        RFT_FAIL(err, RFT_E_LAYOUT, "storage header: data_bytes = %llu, its shape takes %zu", (unsigned long long)h->data_bytes,
                 total - HEADER_BYTES);
    }
    if (bytes < total) {
        RFT_FAIL(err, RFT_E_LAYOUT, "bytes = %zu is less than the %zu that the storage's header tells of", bytes, total);
    }
    return RFT_OK;
}

/* ---- objects ---- */

static rft_status weight_make(const rft_ctx *ctx, const rft__matrix *w, uint64_t layout, const void *data, rft_weight **out,
                              rft_error *err) {
    rft_weight *const weight = rft__alloc(&ctx->allocator, sizeof *weight, _Alignof(rft_weight));
    if (weight == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a weight (%zu bytes)", sizeof *weight);
    }
    const rft__backend *const backend = ctx->backend;
    const bool empty = w->n == 0 || w->k == 0; /* data is then where the storage ends */
    const void *const memory = empty ? backend->memory_read(ctx->device) : backend->memory_of(ctx->device, data);
    *weight = (rft_weight){.w = *w, .layout = layout, .data = data, .memory = memory, .ctx = ctx};
    *out = weight;
    return RFT_OK;
}

void rft_weight_free(rft_weight *weight) {
    if (weight != NULL) {
        rft__release(&weight->ctx->allocator, weight, sizeof *weight);
    }
}

static rft_status check_storage(const void *storage, rft_error *err) {
    if (storage == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "storage is NULL");
    }
    if ((uintptr_t)storage % RFT__STORAGE_ALIGN != 0) {
        RFT_FAIL(err, RFT_E_ARG, "storage = %p is not aligned to %d bytes", storage, RFT__STORAGE_ALIGN);
    }
    return RFT_OK;
}

/* What goes with the codes, where the description has it and nowhere else. */
static rft_status check_apart(const void *p, const char *name, rft_type type, const rft__matrix *w, rft_error *err) {
    if (type == 0 && p != NULL) {
        RFT_FAIL(err, RFT_E_ARG, "src.%s is set, and desc says nothing of it for the weight of elem %s", name,
                 rft__format_name(w->elem));
    }
    if (type != 0 && p == NULL && w->n != 0 && w->k != 0) {
        RFT_FAIL(err, RFT_E_ARG, "src.%s is NULL, and by desc it is of %s", name, rft__format_name(type));
    }
    if (type != 0 && (uintptr_t)p % rft__type_size(type) != 0) {
        RFT_FAIL(err, RFT_E_ARG, "src.%s = %p is not aligned to the %zu bytes of %s", name, p, rft__type_size(type),
                 rft__format_name(type));
    }
    return RFT_OK;
}

static rft_status check_source(const rft__matrix *w, const rft_weight_src *src, rft_error *err) {
    RFT_TRY(check_apart(src->scale, "scale", w->scale, w, err));
    RFT_TRY(check_apart(src->zero, "zero", w->zero, w, err));
    RFT_TRY(check_apart(src->global_scale, "global_scale", w->global != RFT__GLOBAL_NONE ? RFT_F32 : (rft_type)0, w, err));
    RFT_TRY(check_apart(src->g_idx, "g_idx", w->sorted ? RFT_I32 : (rft_type)0, w, err));
    if (src->q == NULL && w->n != 0 && w->k != 0) {
        RFT_FAIL(err, RFT_E_ARG, "src.q is NULL, and the weight has %lld x %lld elements", (long long)w->n, (long long)w->k);
    }
    const size_t align = rft__matrix_is_low_bit(w) ? 1 : rft__type_size(w->elem);
    if ((uintptr_t)src->q % align != 0) {
        RFT_FAIL(err, RFT_E_ARG, "src.q = %p is not aligned to the %zu bytes of %s", src->q, align, rft__format_name(w->elem));
    }
    return RFT_OK;
}

/* ---- pack, open, unpack ---- */

static void log_pack(const rft_ctx *ctx, const rft__matrix *w, size_t bytes, double start) {
    if (rft__log_enabled(&ctx->log, RFT_LOG_EXEC)) {
        rft__log_event(&ctx->log, RFT_LOG_EXEC, "pack", rft__format_name(w->elem), (rft__now() - start) * 1e6,
                       "n=%lld k=%lld batch=%lld %zu bytes", (long long)w->n, (long long)w->k, (long long)w->batch, bytes);
    }
}

/* The old header goes first, the new one comes last: storage whose packing failed does not open. */
static rft_status pack_data(const rft_ctx *ctx, const rft__matrix *w, const rft__stored_w *from, void *storage, void *stream,
                            rft_error *err) {
    const double start = rft__now();
    size_t bytes = 0;
    RFT_TRY(storage_bytes(ctx, w, &bytes, err));
    RFT_TRY(ctx->backend->memory_fill(ctx->device, storage, 0, HEADER_BYTES, err));
    RFT_TRY(ctx->backend->weight_pack(ctx->device, w, from, (unsigned char *)storage + HEADER_BYTES, stream, err));
    RFT_TRY(write_header(ctx, storage, w, ctx->backend->weight_layout(w), bytes - HEADER_BYTES, err));
    log_pack(ctx, w, bytes, start);
    return RFT_OK;
}

static rft_status pack(const rft_ctx *ctx, const rft__matrix *w, const rft__stored_w *from, void *storage, void *stream,
                       rft_weight **out, rft_error *err) {
    const uint64_t layout = ctx->backend->weight_layout(w);
    if (layout == 0) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "desc: device \"%s\" cannot pack elem %s", ctx->backend->name,
                 rft__format_name(w->elem));
    }
    RFT_TRY(check_storage(storage, err));
    rft_weight *weight = NULL;
    RFT_TRY(weight_make(ctx, w, layout, (unsigned char *)storage + HEADER_BYTES, &weight, err));
    const rft_status status = pack_data(ctx, w, from, storage, stream, err);
    if (status != RFT_OK) {
        rft_weight_free(weight);
        return status;
    }
    *out = weight;
    return RFT_OK;
}

rft_status rft_weight_pack(rft_ctx *ctx, const rft_weight_desc *desc, const rft_weight_src *src, void *storage, void *stream,
                           rft_weight **out, rft_error *err) {
    if (ctx == NULL || out == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", ctx == NULL ? "ctx" : "out");
    }
    *out = NULL;
    rft__matrix w;
    rft_weight_src own;
    RFT_TRY(read_desc(&w, desc, err));
    RFT_TRY(rft__sized_read(&own, sizeof own, src, "src", err));
    RFT_TRY(check_source(&w, &own, err));
    const rft__stored_w from = {own.q, own.scale, own.zero, own.global_scale, own.g_idx};
    RFT_TRY(rft__stored_check_groups(&w, &from, err));
    return w.view ? weight_make(ctx, &w, 0, own.q, out, err) : pack(ctx, &w, &from, storage, stream, out, err);
}

rft_status rft_weight_open(rft_ctx *ctx, void *storage, size_t bytes, rft_weight **out, rft_error *err) {
    if (ctx == NULL || out == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", ctx == NULL ? "ctx" : "out");
    }
    *out = NULL;
    RFT_TRY(check_storage(storage, err));
    if (bytes < HEADER_BYTES) {
        RFT_FAIL(err, RFT_E_LAYOUT, "bytes = %zu is less than the %d of a weight's header", bytes, HEADER_BYTES);
    }
    rft__weight_header h;
    RFT_TRY(ctx->backend->memory_copy(ctx->device, &h, storage, sizeof h, RFT__TO_HOST, err));
    rft__matrix w;
    RFT_TRY(check_identity(&h, err));
    RFT_TRY(header_matrix(&h, &w, err));
    RFT_TRY(check_data(ctx, &h, &w, bytes, err));
    return weight_make(ctx, &w, h.layout, (unsigned char *)storage + HEADER_BYTES, out, err);
}

rft_status rft_weight_unpack(const rft_weight *weight, float *w, int64_t ld, rft_error *err) {
    if (weight == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "weight is NULL");
    }
    const rft__matrix *const m = &weight->w;
    if (ld < 0 || (ld != 0 && ld < m->k)) {
        RFT_FAIL(err, RFT_E_ARG, "ld = %lld is less than the row length k = %lld", (long long)ld, (long long)m->k);
    }
    if (m->n == 0 || m->k == 0) {
        return RFT_OK;
    }
    if (w == NULL || (uintptr_t)w % sizeof *w != 0) {
        RFT_FAIL(err, RFT_E_ARG, "w = %p is NULL or not aligned to 4 bytes", (void *)w);
    }
    const int64_t row = ld != 0 ? ld : m->k;
    int64_t rows = 0, bytes = 0;
    if (rft__mul_overflows(m->n, m->batch, &rows) || rft__mul_overflows(rows, row, &bytes) ||
        rft__mul_overflows(bytes, 4, &bytes)) {
        RFT_FAIL(err, RFT_E_ARG, "ld = %lld: %lld rows overflow 2^63 bytes", (long long)ld, (long long)rows);
    }
    return weight->ctx->backend->weight_unpack(weight->ctx->device, m, weight->data, w, row, err);
}
