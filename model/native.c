/* SPDX-License-Identifier: Apache-2.0
 *
 * native.c - an imported weight as rft_weight_pack takes it: codes along k in rows, scales and zero points in rows of groups, the
 * index of act-order. Scales of scales are multiplied out; else every part has the bits of the file. See import.h.
 */
#include "import.h"

#include "base/error.h"
#include "format/decode/decode_scalar.h"

#include <inttypes.h>
#include <string.h>

/* Act-order gives each group as many k as it has without; where an index does not, k cannot be sorted into panels. */
static rft_status check_index(const rft__allocator *a, const rft__import *im, const char *name, rft_error *err) {
    const size_t bytes = (size_t)im->groups * sizeof(int64_t);
    int64_t *const count = rft__alloc(a, bytes, sizeof(int64_t));
    bool even = true;
    if (!count) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory to count %" PRId64 " groups", im->groups);
    }
    memset(count, 0, bytes);
    for (int64_t k = 0; k < im->k; k++) {
        const int64_t g = rft__import_group(im, im->index, k), most = rft__min(im->group_k, im->k - g * im->group_k);
        even = even && ++count[g] <= most;
    }
    rft__release(a, count, bytes);
    if (!even) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "tensor '%.120s': its act-order makes groups of other sizes than %" PRId64, name,
                 im->group_k);
    }
    return RFT_OK;
}

rft_status rft__import_describe(const rft__allocator *a, const rft__tensor *t, rft_weight_desc *desc, rft_error *err) {
    enum { GRANULE = 8 }; /* of groups, see rft_weight_desc */
    const rft__import *im = t->import;
    if (im->elem == 0 || (im->group_k % GRANULE != 0 && im->group_k < im->k)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "tensor '%.120s' is %s: its table or its groups have no low-bit form here", t->name,
                 im->text);
    }
    if (im->index) {
        RFT_TRY(check_index(a, im, t->name, err));
    }
    *desc = rft_weight_desc_init();
    desc->elem = im->elem;
    desc->n = t->dims[1];
    desc->k = im->k;
    desc->batch = im->n / t->dims[1];
    desc->scale = im->scale;
    desc->zero = im->zero;
    desc->group_n = im->group_n;
    desc->group_k = im->group_k;
    desc->flags = im->flags | (im->index ? RFT_WEIGHT_G_IDX : 0);
    return RFT_OK;
}

static void put_codes(const rft__import *im, int64_t row, unsigned char *to) {
    const bool pairs = rft__format_find(im->elem)->block_elements == 2;
    const unsigned mask = pairs ? 15 : 255;
    for (int64_t k = 0; k < im->k; k++) {
        const unsigned code = (im->code(im, row, k) - (unsigned)im->bias) & mask;
        if (!pairs) {
            to[k] = (unsigned char)code;
        } else if (k % 2 == 0) {
            to[k / 2] = (unsigned char)code;
        } else {
            to[k / 2] |= (unsigned char)(code << 4);
        }
    }
}

static void put_scale(const rft__import *im, int64_t row, int64_t group, unsigned char *to) {
    const rft__tensor *scales = im->part[RFT_PART_SCALES];
    const size_t size = rft__format_find(im->scale)->block_bytes;
    if (im->scale_at) {
        const float scale = im->scale_at(im, row, group);
        memcpy(to, &scale, sizeof scale);
    } else {
        memcpy(to, scales->data + (row / im->group_n * im->scale_n + group * im->scale_k) * (int64_t)size, size);
    }
}

void rft__import_read(const rft__import *im, const rft_weight_desc *desc, const rft_weight_parts *parts) {
    const int64_t bytes = rft__ceil_div(im->k, rft__format_find(im->elem)->block_elements);
    const int64_t groups = rft__ceil_div(im->k, im->group_k), size = rft__format_find(im->scale)->block_bytes;
    for (int64_t row = 0; row < im->n; row++) {
        put_codes(im, row, (unsigned char *)parts->q + row * bytes);
    }
    for (int64_t i = 0; i < rft__ceil_div(im->n, im->group_n) * groups; i++) {
        const int64_t row = i / groups * im->group_n, group = i % groups;
        put_scale(im, row, group, (unsigned char *)parts->scale + i * size);
        if (desc->zero != 0) {
            ((unsigned char *)parts->zero)[i] = (unsigned char)(im->zero_at(im, row, group) - im->bias);
        }
    }
    if (desc->flags & (RFT_WEIGHT_GLOBAL_TIMES | RFT_WEIGHT_GLOBAL_OVER)) {
        *parts->global_scale = im->factor; /* one matrix */
    }
    for (int64_t k = 0; im->index && k < im->k; k++) {
        parts->g_idx[k] = (int32_t)rft__import_word(im->index, k);
    }
}
