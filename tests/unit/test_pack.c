/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pack.c - packed weights: every byte of the data lies where docs/formats/packed-weight.md says, padding is zero, unpacking
 * is the inverse; for all types, orders, pairings, batches and ragged sizes, packed by several threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/type.h"
#include "rooftile_analysis.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 128, MOST = 400000 };

static rft_ctx *ctx;
static unsigned char source[MOST], expected[MOST];
static float unpacked[MOST];

static int make_all(void **state) {
    (void)state;
    rft_ctx_options o = rft_ctx_options_init();
    o.threads = 3;
    return rft_ctx_create("cpu", &o, &ctx, NULL) == RFT_OK ? 0 : -1;
}

static int free_all(void **state) {
    (void)state;
    rft_ctx_free(ctx);
    return 0;
}

/* ---- the document's tables ---- */

static int64_t panel_size(rft_type elem, int64_t k) {
    return elem == RFT_F32 ? 64 * k : elem == RFT_F16 ? 32 * k : 64 * ((k + 1) / 2);
}

/* From panel to panel. */
static int64_t panel_stride(rft_type elem, int64_t k) {
    const int64_t bytes = panel_size(elem, k);
    return bytes > 0 && bytes % 65536 == 0 ? bytes + 1024 : bytes;
}

static int64_t panel_count(const rft_weight_desc *d) { return d->flags != 0 ? 2 * ((d->n / 2 + 15) / 16) : (d->n + 15) / 16; }

static int64_t place_in_panel(rft_type elem, int64_t j, int64_t k) {
    return elem == RFT_F32 ? 64 * k + 4 * j : elem == RFT_F16 ? 32 * k + 2 * j : 64 * (k / 2) + 4 * j + 2 * (k % 2);
}

/* Panel and column of row n of W. */
static void place_of_row(const rft_weight_desc *d, int64_t n, int64_t *panel, int64_t *column) {
    const bool pairs = (d->flags & RFT_WEIGHT_GLU_INTERLEAVED) != 0;
    if (d->flags == 0) {
        *panel = n / 16;
        *column = n % 16;
        return;
    }
    const int64_t h = pairs ? n / 2 : n % (d->n / 2), up = pairs ? n % 2 : n / (d->n / 2);
    *panel = 2 * (h / 16) + up;
    *column = h % 16;
}

static int64_t place_in_source(const rft_weight_desc *d, int64_t b, int64_t n, int64_t k) {
    return b * d->batch_stride + (d->order == RFT_K_CONTIGUOUS ? n * d->ld + k : k * d->ld + n);
}

static int64_t expect(const rft_weight_desc *d) {
    const int64_t size = (int64_t)rft__type_size(d->elem), stride = panel_stride(d->elem, d->k), panels = panel_count(d);
    memset(expected, 0, sizeof expected);
    for (int64_t b = 0; b < d->batch && d->k > 0; b++) {
        for (int64_t n = 0; n < d->n; n++) {
            int64_t panel, column;
            place_of_row(d, n, &panel, &column);
            for (int64_t k = 0; k < d->k; k++) {
                memcpy(expected + (b * panels + panel) * stride + place_in_panel(d->elem, column, k),
                       source + place_in_source(d, b, n, k) * size, (size_t)size);
            }
        }
    }
    return d->batch * panels * stride;
}

/* ---- */

static double value_of(rft_type elem, const unsigned char *p) {
    float value;
    uint32_t bits = 0;
    memcpy(&bits, p, rft__type_size(elem));
    if (elem == RFT_F16) {
        const double magnitude = bits & 0x7fff, sign = (bits & 0x8000) != 0 ? -1 : 1;
        if (magnitude < 0x400) {
            return sign * magnitude * 0x1p-24;
        }
        bits = (bits & 0x8000) << 16 | (((bits & 0x7fff) << 13) + (112u << 23));
    } else if (elem == RFT_BF16) {
        bits <<= 16;
    }
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static void check_unpacked(const rft_weight_desc *d, const rft_weight *weight) {
    const int64_t ld = d->k + 3;
    assert_int_equal(rft_weight_unpack(weight, unpacked, ld, NULL), RFT_OK);
    for (int64_t b = 0; b < d->batch && d->k > 0; b++) {
        for (int64_t n = 0; n < d->n; n++) {
            for (int64_t k = 0; k < d->k; k++) {
                const unsigned char *p = source + place_in_source(d, b, n, k) * (int64_t)rft__type_size(d->elem);
                assert_true((double)unpacked[(b * d->n + n) * ld + k] == value_of(d->elem, p));
            }
        }
    }
}

static void check(const rft_weight_desc *d) {
    rft_weight_src src = rft_weight_src_init();
    rft_weight *weight = NULL;
    size_t bytes = 0;
    src.q = source;
    assert_int_equal(rft_weight_bytes(ctx, d, &bytes, NULL), RFT_OK);
    const int64_t data = expect(d);
    assert_int_equal(bytes, HEADER + data);
    unsigned char *const storage = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(storage, 0xff, bytes);
    assert_int_equal(rft_weight_pack(ctx, d, &src, storage, NULL, &weight, NULL), RFT_OK);
    assert_memory_equal(storage + HEADER, expected, (size_t)data);
    check_unpacked(d, weight);
    rft_weight_free(weight);
    free(storage);
}

static void test_every_byte(void **state) {
    (void)state;
    static const rft_type elems[] = {RFT_F32, RFT_F16, RFT_BF16};
    static const uint32_t pairings[] = {0, RFT_WEIGHT_GLU_HALVES, RFT_WEIGHT_GLU_INTERLEAVED};
    static const int64_t widths[] = {2, 16, 18, 30, 32, 34, 66, 100}, depths[] = {0, 1, 2, 15, 16, 17, 33, 50};
    for (int i = 0; i < 3 * 3 * 8 * 8 * 2; i++) {
        rft_weight_desc d = rft_weight_desc_init();
        d.elem = elems[i % 3];
        d.flags = pairings[i / 3 % 3];
        d.n = widths[i / 9 % 8] - (d.flags == 0 ? i / 9 % 2 : 0);
        d.k = depths[i / 72 % 8];
        d.order = (rft_order)(i / 576);
        d.ld = (d.order == RFT_K_CONTIGUOUS ? d.k : d.n) + 1 + i % 5;
        d.batch = 1 + i % 2;
        d.batch_stride = d.ld * (d.n + d.k) + i % 7;
        assert_int_equal(rft_fill_random(d.elem, source, MOST / 4, (uint64_t)i, NULL), RFT_OK);
        check(&d);
    }
}

/* Panels of a multiple of 64 KiB are followed by a gap. */
static void test_gap(void **state) {
    (void)state;
    static const rft_type elems[] = {RFT_F32, RFT_F16, RFT_BF16};
    for (int i = 0; i < 3; i++) {
        for (int64_t more = -1; more <= 1; more++) {
            rft_weight_desc d = rft_weight_desc_init();
            d.elem = elems[i];
            d.n = 18;
            d.k = d.ld = (elems[i] == RFT_F32 ? 1024 : 2048) + more;
            d.batch = 2;
            d.batch_stride = d.n * d.k;
            assert_int_equal(rft_fill_random(d.elem, source, 2 * d.batch_stride, 1, NULL), RFT_OK);
            check(&d);
        }
    }
}

/* No k is no byte, however many rows: the call ends at once. */
static void test_no_k(void **state) {
    (void)state;
    rft_weight_desc d = rft_weight_desc_init();
    d.elem = RFT_BF16;
    d.n = d.batch = (int64_t)1 << 24;
    d.batch_stride = d.ld = 1;
    check(&d);
}

/* The worked example of the document. */
static void test_example(void **state) {
    (void)state;
    static uint16_t w[20 * 3];
    static _Alignas(64) unsigned char storage[384];
    rft_weight_desc d = rft_weight_desc_init();
    rft_weight_src src = rft_weight_src_init();
    rft_weight *weight = NULL;
    size_t bytes = 0;
    d.elem = RFT_BF16;
    d.n = 20;
    d.k = 3;
    w[17 * 3 + 2] = 0x3f80;
    src.q = w;
    assert_int_equal(rft_weight_bytes(ctx, &d, &bytes, NULL), RFT_OK);
    assert_int_equal(bytes, sizeof storage);
    assert_int_equal(rft_weight_pack(ctx, &d, &src, storage, NULL, &weight, NULL), RFT_OK);
    assert_true(storage[324] == 0x80 && storage[325] == 0x3f && storage[326] == 0 && storage[327] == 0);
    rft_weight_free(weight);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_no_k),
        cmocka_unit_test(test_example),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
