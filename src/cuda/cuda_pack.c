/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_pack.c - layout, size, packing and unpacking of a GPU's weights. See cuda_pack.h; the device's half is kernels/pack.cuh.
 */
#include "cuda/cuda_pack.h"

#include "base/hash.h"
#include "format/format.h"

#include <string.h>

enum { BLOCKS_AN_SM = 8 };

const rft__cuda_family rft__cuda_pack_family = {.name = "pack", .source = "pack.cu"};

static int64_t size_of(const rft__matrix *w) { return (int64_t)rft__type_size(w->elem); }

/* Elements from row to row of packed data. */
static int64_t packed_ld(const rft__matrix *w) { return rft__round_up(w->k, RFT_PACK_GRANULE / size_of(w)); }

/* What a packed weight's bytes depend on, besides n, k and batch. */
uint64_t rft__cuda_weight_layout(const rft__matrix *w) {
    if (!rft__type_is_float(w->elem)) {
        return 0;
    }
    const uint32_t facts[] = {1 /* version */, RFT_PACK_GRANULE, (uint32_t)w->elem, (uint32_t)w->glu};
    return rft__hash(rft__hash(RFT_HASH_SEED, "cuda rows", 9), facts, sizeof facts);
}

rft_status rft__cuda_packed_bytes(const rft__matrix *w, size_t *bytes, rft_error *err) {
    int64_t k = 0, rows = 0, total = 0;
    if (rft__add_overflows(w->k, RFT_PACK_GRANULE, &k) || rft__mul_overflows(k, size_of(w), &k) ||
        rft__mul_overflows(w->n, w->batch, &rows) || rft__mul_overflows(rows, k, &total)) {
        RFT_FAIL(err, RFT_E_ARG, "n = %lld, k = %lld, batch = %lld: the packed weight overflows 2^63 bytes", (long long)w->n,
                 (long long)w->k, (long long)w->batch);
    }
    *bytes = (size_t)(rows * packed_ld(w) * size_of(w));
    return RFT_OK;
}

rft__matrix rft__cuda_packed_matrix(const rft__matrix *w) {
    rft__matrix packed = *w;
    packed.order = RFT_K_CONTIGUOUS;
    packed.view = false;
    packed.n_stride = packed_ld(w);
    packed.k_stride = 1;
    packed.batch_stride = w->n * packed.n_stride;
    return packed;
}

/* ---- on the host ---- */

/* The first byte of a row, counted through all batches. */
static int64_t row_offset(const rft__matrix *w, int64_t row) {
    return (row / w->n * w->batch_stride + row % w->n * w->n_stride) * size_of(w);
}

static void pack_row(const rft__matrix *w, const char *source, char *row) {
    const int64_t size = size_of(w), used = w->k * size;
    for (int64_t k = 0; k < w->k && w->k_stride != 1; k++) {
        memcpy(row + k * size, source + k * w->k_stride * size, (size_t)size);
    }
    if (w->k_stride == 1) {
        memcpy(row, source, (size_t)used);
    }
    memset(row + used, 0, (size_t)(packed_ld(w) * size - used));
}

void rft__cuda_pack_host(const rft__matrix *w, const void *source, void *data) {
    const rft__matrix packed = rft__cuda_packed_matrix(w);
    for (int64_t row = 0; row < w->n * w->batch && w->k > 0; row++) {
        pack_row(w, (const char *)source + row_offset(w, row), (char *)data + row_offset(&packed, row));
    }
}

void rft__cuda_unpack_host(const rft__matrix *w, const void *data, float *out, int64_t ld) {
    const rft__format *const format = rft__format_find(w->elem);
    const int64_t run = w->k_stride == 1 ? w->k : 1;
    for (int64_t row = 0; row < w->n * w->batch && w->k > 0; row++) {
        const unsigned char *const source = (const unsigned char *)data + row_offset(w, row);
        for (int64_t k = 0; k < w->k; k += run) {
            format->decode_blocks(source + k * w->k_stride * size_of(w), run, &out[row * ld + k]);
        }
    }
}

/* ---- on the device ---- */

void rft__cuda_pack_text(const rft__matrix *w, rft__text *t) {
    rft__text_add(t, "#define RFT_ELEM_SIZE %d\n#define RFT_W_MN %d\n", (int)size_of(w), w->k_stride != 1);
}

/* Blocks that have something to do, up to a few for each SM. */
static unsigned blocks_for(const rft__cuda_facts *f, const rft__matrix *w) {
    const int64_t tiles = rft__ceil_div(w->n, RFT_PACK_TILE) * rft__ceil_div(w->k, RFT_PACK_TILE);
    const int64_t granules = rft__ceil_div(w->n * (packed_ld(w) * size_of(w) / RFT_PACK_GRANULE), RFT_PACK_THREADS);
    const int64_t most = (int64_t)f->sms * BLOCKS_AN_SM;
    return (unsigned)rft__min(w->batch * (w->k_stride != 1 ? tiles : granules), most);
}

rft__cuda_pack_job rft__cuda_pack_job_of(const rft__cuda_facts *f, const rft__matrix *w, const void *source, void *data) {
    return (rft__cuda_pack_job){
        .args = {.source = source,
                 .data = data,
                 .n = w->n,
                 .k = w->k,
                 .batch = w->batch,
                 .ld = w->k_stride != 1 ? w->k_stride : w->n_stride,
                 .batch_stride = w->batch_stride,
                 .pitch = packed_ld(w) * size_of(w)},
        .blocks = blocks_for(f, w),
    };
}
