/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_weights.c - see bench_weights.h.
 * Sizes: 4 times the last-level cache, 256 MB at least, a quarter of memory at most.
 */
#include "bench_weights.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_SPAN  ((uint64_t)256 << 20)
#define MOST_COPIES 65536
#define LINE        64

static size_t round_up(size_t bytes) { return (bytes + LINE - 1) & ~(size_t)(LINE - 1); }

/* Bytes that all copies together should span. */
static uint64_t wanted_span(rft_ctx *ctx, bool *reached) {
    rft_device_info device = {.struct_size = sizeof device};
    if (rft_ctx_get_device(ctx, &device) != RFT_OK)
        return LEAST_SPAN;
    uint64_t cache = device.l3 ? device.l3 : device.l2, want = 4 * cache;
    uint64_t most = device.memory ? device.memory / 4 : UINT64_MAX;
    want = want < LEAST_SPAN ? LEAST_SPAN : want;
    *reached = want <= most;
    return *reached ? want : most;
}

static int64_t count_copies(weight_set *set) {
    uint64_t span = wanted_span(set->ctx, &set->cold);
    uint64_t one = set->raw_bytes ? set->raw_bytes : 1, copies = (span + one - 1) / one;
    if (copies > MOST_COPIES) {
        copies = MOST_COPIES;
        set->cold = false;
    }
    return copies < 1 ? 1 : (int64_t)copies;
}

static int fill_first(weight_set *set, const void *source, uint64_t seed) {
    rft_error err = {0};
    int64_t elements = set->desc.n * set->desc.k * set->desc.batch;
    if (source)
        memcpy(set->raw, source, set->raw_bytes);
    else if (rft_fill_random(set->desc.elem, set->raw, elements, seed, &err) != RFT_OK)
        return cli_failed(&err, "random weights");
    return CLI_OK;
}

static int map_raw(weight_set *set, int64_t copies) {
    set->raw_stride = round_up(set->raw_bytes);
    set->raw_total = set->raw_stride * (size_t)copies;
    set->raw = cli_map(set->raw_total);
    set->raw_copies = copies;
    if (set->raw)
        return CLI_OK;
    cli_message("no memory for %lld copies of a weight of %zu bytes", (long long)copies, set->raw_bytes);
    return CLI_LIBRARY;
}

bool weight_set_need_raw(weight_set *set) {
    char *first = set->raw;
    size_t first_total = set->raw_total;
    if (set->raw_copies == set->copies)
        return true;
    if (map_raw(set, set->copies) != CLI_OK) {
        set->raw = first;
        set->raw_total = first_total;
        set->raw_copies = 1;
        return false;
    }
    for (int64_t i = 0; i < set->copies; i++)
        memcpy(set->raw + (size_t)i * set->raw_stride, first, set->raw_bytes);
    cli_unmap(first, first_total);
    return true;
}

static rft_status pack_one(weight_set *set, int64_t i, rft_error *err) {
    rft_weight_src src = rft_weight_src_init();
    src.q = weight_set_raw(set, i);
    return rft_weight_pack(set->ctx, &set->desc, &src, set->packed + (size_t)i * set->packed_stride, NULL, &set->weight[i], err);
}

static int pack_all(weight_set *set) {
    rft_error err = {0};
    if (rft_weight_bytes(set->ctx, &set->desc, &set->packed_bytes, &err) != RFT_OK)
        return cli_failed(&err, "weight");
    set->packed_stride = round_up(set->packed_bytes ? set->packed_bytes : 1);
    set->packed_total = set->packed_stride * (size_t)set->copies;
    set->packed = cli_map(set->packed_total);
    set->weight = cli_alloc((size_t)set->copies, sizeof(rft_weight *));
    if (!set->packed) {
        cli_message("no memory for %lld packed copies of %zu bytes", (long long)set->copies, set->packed_bytes);
        return CLI_LIBRARY;
    }
    for (int64_t i = 0; i < set->copies; i++)
        if (pack_one(set, i, &err) != RFT_OK)
            return cli_failed(&err, "weight");
    return CLI_OK;
}

int weight_set_make(weight_set *set, rft_ctx *ctx, const rft_weight_desc *desc, const void *source, bool dynamic, uint64_t seed) {
    int64_t elements;
    *set = (weight_set){.ctx = ctx, .desc = *desc};
    if (!cli_product(desc->n, desc->k, desc->batch, &elements) || !cli_bytes(desc->elem, elements, &set->raw_bytes)) {
        cli_message("-n %lld -k %lld: a weight of that size and type %s cannot be made here", (long long)desc->n,
                    (long long)desc->k, rft_type_name(desc->elem));
        return CLI_USAGE;
    }
    set->copies = count_copies(set);
    int code = map_raw(set, 1);
    if (code == CLI_OK)
        code = fill_first(set, source, seed);
    if (code == CLI_OK && (dynamic || desc->flags & RFT_WEIGHT_VIEW) && !weight_set_need_raw(set))
        code = CLI_LIBRARY;
    return code == CLI_OK && !dynamic ? pack_all(set) : code;
}

void weight_set_free(weight_set *set) {
    for (int64_t i = 0; set->weight && i < set->copies; i++)
        rft_weight_free(set->weight[i]);
    free(set->weight);
    cli_unmap(set->packed, set->packed_total);
    cli_unmap(set->raw, set->raw_total);
    *set = (weight_set){0};
}

const void *weight_set_raw(const weight_set *set, int64_t i) {
    return set->raw + (size_t)(i % set->raw_copies) * set->raw_stride;
}

const rft_weight *weight_set_at(const weight_set *set, int64_t i) { return set->weight[i % set->copies]; }
