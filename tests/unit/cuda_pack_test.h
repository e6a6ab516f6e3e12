/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_pack_test.h - packed weights of a GPU whose elements have RFT_ELEM_SIZE bytes, without a GPU: every byte of the host's
 * form is where cuda_pack.h says, unpacking is the inverse, and the kernel's text, compiled as C, writes the same bytes. Included
 * by one test a size. Operands are allocated to the element, so that a sanitizer sees an access beyond them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda/cuda_pack.h"
#include "device_words.h"

#include "cuda/kernels/pack.cuh"

#include <stdlib.h>

enum { GUARD = 0xa5, GUARD_BYTES = 16 };

/* ---- the kernel: what a grid does, all threads of a block up to each barrier ---- */

static void run_tiles(const rft__pack_args *a) {
    for (long long i = 0; i < rft__pack_tiles(a); i++) {
        rft__pack_tile tile;
        const rft__pack_place place = rft__pack_place_of(a, i);
        for (int thread = 0; thread < RFT_PACK_THREADS; thread++) {
            rft__pack_tile_load(a, place, tile, thread);
        }
        for (int thread = RFT_PACK_THREADS; thread-- > 0;) {
            rft__pack_tile_store(a, place, tile, thread);
        }
    }
}

static void run_granules(const rft__pack_args *a) {
    for (long long i = 0; i < a->batch * a->n * (a->pitch / RFT_PACK_GRANULE); i++) {
        rft__pack_row_granule(a, i);
    }
}

/* ---- one weight ---- */

static rft__matrix matrix_of(const rft_weight_desc *d) {
    rft__matrix w;
    rft_error err = {.message = ""};
    if (rft__matrix_make(&w, d, "w", &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return w;
}

static size_t packed_bytes(const rft__matrix *w) {
    size_t bytes = 0;
    assert_int_equal(rft__cuda_packed_bytes(w, &bytes, NULL), RFT_OK);
    return bytes;
}

static int64_t last_element(const rft__matrix *w) {
    return (w->batch - 1) * w->batch_stride + (w->n - 1) * w->n_stride + (w->k - 1) * w->k_stride;
}

/* Bytes that are no NaN in any type. */
static unsigned char *make_source(const rft__matrix *w) {
    const size_t bytes = (size_t)(last_element(w) + 1) * RFT_ELEM_SIZE;
    unsigned char *source = malloc(bytes);
    assert_non_null(source);
    for (size_t i = 0; i < bytes; i++) {
        source[i] = (unsigned char)((i * 2654435761u >> 7) % 97);
    }
    return source;
}

static unsigned char *make_data(size_t bytes) {
    unsigned char *data = aligned_alloc(GUARD_BYTES, bytes + GUARD_BYTES);
    assert_non_null(data);
    memset(data, GUARD, bytes + GUARD_BYTES);
    return data;
}

static void check_bytes(const rft__matrix *w, const unsigned char *source, const unsigned char *data, size_t bytes) {
    static const unsigned char zero[RFT_ELEM_SIZE];
    const int64_t ld = (w->k * RFT_ELEM_SIZE + 15) / 16 * 16 / RFT_ELEM_SIZE;
    assert_int_equal(bytes, w->batch * w->n * ld * RFT_ELEM_SIZE);
    for (int64_t i = 0; i < w->batch * w->n * ld; i++) {
        const int64_t row = i / ld, k = i % ld, b = row / w->n, n = row % w->n;
        const unsigned char *element = source + (b * w->batch_stride + n * w->n_stride + k * w->k_stride) * RFT_ELEM_SIZE;
        assert_memory_equal(data + i * RFT_ELEM_SIZE, k < w->k ? element : zero, RFT_ELEM_SIZE);
    }
    for (int i = 0; i < GUARD_BYTES; i++) {
        assert_int_equal(data[bytes + (size_t)i], GUARD);
    }
}

static void check_device(const rft__matrix *w, const unsigned char *source, const unsigned char *expected, size_t bytes) {
    unsigned char *data = make_data(bytes);
    const rft__cuda_pack_job job = rft__cuda_pack_job_of(&(rft__cuda_facts){.sms = 4}, w, source, data);
    assert_true(job.blocks > 0 && job.blocks <= 64);
    if (w->k_stride != 1) {
        run_tiles(&job.args);
    } else {
        run_granules(&job.args);
    }
    assert_memory_equal(data, expected, bytes + GUARD_BYTES);
    free(data);
}

static float value_at(const rft__matrix *w, const unsigned char *source, int64_t b, int64_t n, int64_t k) {
    unsigned bits = 0;
    memcpy(&bits, source + (b * w->batch_stride + n * w->n_stride + k * w->k_stride) * RFT_ELEM_SIZE, RFT_ELEM_SIZE);
    return w->elem == RFT_F32 ? __uint_as_float(bits) : w->elem == RFT_BF16 ? __uint_as_float(bits << 16) : rft__widen_f16(bits);
}

static void check_unpacked(const rft__matrix *w, const unsigned char *source, const rft__matrix *from, const void *data) {
    const int64_t ld = w->k + 2, count = w->batch * w->n * ld;
    float *out = malloc((size_t)count * sizeof *out);
    assert_non_null(out);
    memset(out, GUARD, (size_t)count * sizeof *out);
    rft__cuda_unpack_host(from, data, out, ld);
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = i / ld, k = i % ld;
        const float expected = k < w->k ? value_at(w, source, row / w->n, row % w->n, k) : __uint_as_float(GUARD * 0x01010101u);
        assert_memory_equal(&out[i], &expected, sizeof expected);
    }
    free(out);
}

static void check_weight(const rft_weight_desc *d) {
    const rft__matrix w = matrix_of(d), packed = rft__cuda_packed_matrix(&w);
    const size_t bytes = packed_bytes(&w);
    unsigned char *source = make_source(&w), *data = make_data(bytes);
    rft__cuda_pack_host(&w, source, data);
    check_bytes(&w, source, data, bytes);
    check_device(&w, source, data, bytes);
    check_unpacked(&w, source, &packed, data);
    check_unpacked(&w, source, &w, source);
    free(source);
    free(data);
}

static void all_shapes(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 7, 8, 9, 63, 64, 65, 130};
    static const rft_type types[] = {RFT_F32, RFT_F16, RFT_BF16};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < 3 * SIZES * SIZES * 2 * 4; i++) {
        rft_weight_desc d = rft_weight_desc_init();
        d.elem = types[i % 3];
        d.n = sizes[i / 3 % SIZES];
        d.k = sizes[i / 3 / SIZES % SIZES];
        d.order = (rft_order)(i / 3 / SIZES / SIZES % 2);
        d.batch = 1 + i / 3 / SIZES / SIZES / 2 % 2;
        if (i / 3 / SIZES / SIZES / 4 != 0) { /* strides wider than dense */
            d.ld = (d.order == RFT_K_CONTIGUOUS ? d.k : d.n) + 3;
            d.batch_stride = d.ld * (d.order == RFT_K_CONTIGUOUS ? d.n : d.k) + 5;
        }
        if (rft__type_size(d.elem) == RFT_ELEM_SIZE) {
            check_weight(&d);
        }
    }
}
