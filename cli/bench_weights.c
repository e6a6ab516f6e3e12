/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_weights.c - see bench_weights.h.
 * Sizes: 4 times the last-level cache, 256 MB at least (400 MB on a GPU), a quarter of memory at most.
 */
#include "bench_weights.h"
#include "cli_parse.h"

#include <stdlib.h>

#define LEAST_SPAN     ((uint64_t)256 << 20)
#define LEAST_SPAN_GPU ((uint64_t)400 << 20)
#define MOST_COPIES    65536
#define MOST_COPIES_GPU 4096 /* one replay reads each of them, and a graph of more calls takes seconds to make */
#define LINE           256

static size_t round_up(size_t bytes) { return (bytes + LINE - 1) & ~(size_t)(LINE - 1); }

/* Bytes that all copies together should span. */
static uint64_t wanted_span(const rft_device_info *device, bool *reached) {
    uint64_t cache = device->l3 ? device->l3 : device->l2, want = 4 * cache;
    uint64_t least = device->arch ? LEAST_SPAN_GPU : LEAST_SPAN, most = device->memory ? device->memory / 4 : UINT64_MAX;
    want = want < least ? least : want;
    *reached = want <= most;
    return *reached ? want : most;
}

static int64_t count_copies(weight_set *set) {
    rft_device_info device = {.struct_size = sizeof device};
    rft_ctx_get_device(set->ctx, &device);
    uint64_t span = wanted_span(&device, &set->cold), limit = device.arch ? MOST_COPIES_GPU : MOST_COPIES;
    uint64_t one = set->raw_bytes ? set->raw_bytes : 1, copies = (span + one - 1) / one;
    if (copies > limit) {
        copies = limit;
        set->cold = false;
    }
    return copies < 1 ? 1 : (int64_t)copies;
}

/* Elements of one copy, each row in whole bytes or blocks; false: too many. */
static bool count_elements(const rft_weight_desc *d, int64_t *elements) {
    const bool by_k = d->order == RFT_K_CONTIGUOUS;
    const int64_t unit = cli_block(d->elem), row = by_k ? d->k : d->n;
    return unit > 0 && row <= INT64_MAX - unit &&
           cli_product((row + unit - 1) / unit * unit, by_k ? d->n : d->k, d->batch, elements);
}

static int fill_first(weight_set *set, const rft_weight_src *source, int64_t elements, uint64_t seed) {
    rft_error err = {0};
    rft_status status = source ? buffer_write(&set->raw, 0, source->q, set->raw_bytes, &err)
                               : buffer_random(&set->raw, set->desc.elem, elements, seed, &err);
    return status == RFT_OK ? CLI_OK : cli_failed(&err, "weights");
}

static rft_status make_apart(buffer *b, rft_ctx *ctx, rft_type type, int64_t count, uint64_t seed, rft_error *err) {
    rft_status status = buffer_make(b, ctx, rft_type_bytes(type, count), err);
    return status == RFT_OK ? buffer_random(b, type, count, seed, err) : status;
}

static rft_status make_index(weight_set *set, uint64_t seed, rft_error *err) {
    const rft_weight_desc *d = &set->desc;
    const weight_scales scales = {.group_k = d->group_k};
    const size_t bytes = (size_t)(d->batch * d->k) * sizeof(int32_t);
    int32_t *index = cli_alloc(bytes, 1);
    for (int64_t b = 0; b < d->batch; b++)
        scales_index(&scales, d->k, seed + (uint64_t)b, index + b * d->k);
    rft_status status = buffer_make(&set->index, set->ctx, bytes, err);
    if (status == RFT_OK)
        status = buffer_write(&set->index, 0, index, bytes, err);
    free(index);
    return status;
}

/* What lies apart. X has seed + 1. */
static int make_scales(weight_set *set, uint64_t seed) {
    const rft_weight_desc *d = &set->desc;
    const int64_t count = scales_count(d);
    rft_error err = {0};
    rft_status status = count ? make_apart(&set->scale, set->ctx, d->scale, count, seed + 2, &err) : RFT_OK;
    if (status == RFT_OK && d->zero)
        status = make_apart(&set->zero, set->ctx, d->zero, count, seed + 3, &err);
    if (status == RFT_OK && scales_global(d->flags))
        status = make_apart(&set->global, set->ctx, RFT_F32, d->batch, seed + 4, &err);
    if (status == RFT_OK && count && d->flags & RFT_WEIGHT_G_IDX)
        status = make_index(set, seed + 5, &err);
    set->parts.scale = set->scale.p, set->parts.zero = set->zero.p;
    set->parts.global_scale = set->global.p, set->parts.g_idx = set->index.p;
    return status == RFT_OK ? CLI_OK : cli_failed(&err, "scales of weights");
}

static int make_raw(weight_set *set, int64_t copies) {
    rft_error err = {0};
    set->raw_stride = round_up(set->raw_bytes);
    set->raw_copies = copies;
    if (buffer_make(&set->raw, set->ctx, set->raw_stride * (size_t)copies, &err) == RFT_OK)
        return CLI_OK;
    cli_message("%lld copies of a weight of %zu bytes: %s", (long long)copies, set->raw_bytes, err.message);
    return CLI_LIBRARY;
}

/* Every copy becomes what copy 0 of `from` is. */
static bool replicate(weight_set *set, const buffer *from) {
    rft_error err = {0};
    void *first = cli_map(set->raw_bytes);
    bool good = first && buffer_read(from, 0, first, set->raw_bytes, &err) == RFT_OK;
    for (int64_t i = 0; good && i < set->copies; i++)
        good = buffer_write(&set->raw, (size_t)i * set->raw_stride, first, set->raw_bytes, &err) == RFT_OK;
    cli_unmap(first, set->raw_bytes);
    return good;
}

bool weight_set_need_raw(weight_set *set) {
    buffer first = set->raw;
    if (set->raw_copies == set->copies)
        return true;
    if (make_raw(set, set->copies) == CLI_OK && replicate(set, &first)) {
        buffer_free(&first);
        return true;
    }
    buffer_free(&set->raw);
    set->raw = first;
    set->raw_copies = 1;
    return false;
}

static rft_status pack_one(weight_set *set, int64_t i, rft_error *err) {
    rft_weight_src src = weight_set_source(set, i);
    char *storage = (char *)set->packed.p + (size_t)i * set->packed_stride;
    return rft_weight_pack(set->ctx, &set->desc, &src, storage, NULL, &set->weight[i], err);
}

static int pack_all(weight_set *set) {
    rft_error err = {0};
    rft_status status = rft_weight_bytes(set->ctx, &set->desc, &set->packed_bytes, &err);
    set->packed_stride = round_up(set->packed_bytes ? set->packed_bytes : 1);
    set->weight = cli_alloc((size_t)set->copies, sizeof(rft_weight *));
    if (status == RFT_OK)
        status = buffer_make(&set->packed, set->ctx, set->packed_stride * (size_t)set->copies, &err);
    for (int64_t i = 0; status == RFT_OK && i < set->copies; i++)
        status = pack_one(set, i, &err);
    if (status == RFT_OK)
        status = rft_ctx_sync(set->ctx, NULL, &err);
    return status == RFT_OK ? CLI_OK : cli_failed(&err, "packed weights");
}

int weight_set_make(weight_set *set, rft_ctx *ctx, const rft_weight_desc *desc, const rft_weight_src *source, bool dynamic,
                    uint64_t seed) {
    static int64_t made;
    int64_t elements;
    *set = (weight_set){.ctx = ctx, .desc = *desc, .serial = ++made, .parts = source ? *source : rft_weight_src_init()};
    if (!count_elements(desc, &elements) || !cli_bytes(desc->elem, elements, &set->raw_bytes)) {
        cli_message("-n %lld -k %lld: a weight of that size and type %s cannot be made here", (long long)desc->n,
                    (long long)desc->k, rft_type_name(desc->elem));
        return CLI_USAGE;
    }
    set->copies = count_copies(set);
    int code = make_raw(set, 1);
    if (code == CLI_OK)
        code = fill_first(set, source, elements, seed);
    if (code == CLI_OK && !source)
        code = make_scales(set, seed);
    if (code == CLI_OK && (dynamic || desc->flags & RFT_WEIGHT_VIEW) && !weight_set_need_raw(set))
        code = CLI_LIBRARY;
    return code == CLI_OK && !dynamic ? pack_all(set) : code;
}

void weight_set_free(weight_set *set) {
    for (int64_t i = 0; set->weight && i < set->copies; i++)
        rft_weight_free(set->weight[i]);
    free(set->weight);
    buffer_free(&set->packed);
    buffer_free(&set->scale);
    buffer_free(&set->zero);
    buffer_free(&set->global);
    buffer_free(&set->index);
    buffer_free(&set->raw);
    *set = (weight_set){0};
}

rft_weight_src weight_set_source(const weight_set *set, int64_t i) {
    rft_weight_src src = set->parts;
    src.q = weight_set_raw(set, i);
    return src;
}

const void *weight_set_raw(const weight_set *set, int64_t i) {
    return (const char *)set->raw.p + (size_t)(i % set->raw_copies) * set->raw_stride;
}

const rft_weight *weight_set_at(const weight_set *set, int64_t i) { return set->weight[i % set->copies]; }
