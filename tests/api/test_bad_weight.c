/* SPDX-License-Identifier: Apache-2.0
 *
 * test_bad_weight.c - weights: bad descriptors, sources, storage and destinations.
 */
#include "api_test.h"

static rft_ctx *ctx;
static float matrix[TEST_N * TEST_K];
static void *storage;

static int make_ctx(void **state) {
    (void)state;
    const rft_ctx_options o = rft_test_options(NULL);
    storage = rft_test_storage(1 << 20);
    return storage != NULL && rft_ctx_create("cpu", &o, &ctx, NULL) == RFT_OK ? 0 : -1;
}

static int free_ctx(void **state) {
    (void)state;
    rft_ctx_free(ctx);
    free(storage);
    return 0;
}

static rft_weight_src source(void) {
    rft_weight_src s = rft_weight_src_init();
    s.q = matrix;
    return s;
}

#define BAD_WEIGHT(status, part, change)                                                                                         \
    do {                                                                                                                         \
        rft_weight_desc d = rft_test_weight_desc();                                                                              \
        rft_weight_src s = source();                                                                                             \
        rft_weight *w = (rft_weight *)1;                                                                                         \
        change;                                                                                                                  \
        REFUSED(status, part, rft_weight_pack(ctx, &d, &s, storage, NULL, &w, &test_err));                                       \
        assert_null(w);                                                                                                          \
    } while (0)

static void test_null(void **state) {
    (void)state;
    const rft_weight_desc d = rft_test_weight_desc();
    const rft_weight_src s = source();
    size_t bytes = 0;
    rft_weight *w = NULL;
    REFUSED(RFT_E_ARG, "ctx is NULL", rft_weight_bytes(NULL, &d, &bytes, &test_err));
    REFUSED(RFT_E_ARG, "desc is NULL", rft_weight_bytes(ctx, NULL, &bytes, &test_err));
    REFUSED(RFT_E_ARG, "bytes is NULL", rft_weight_bytes(ctx, &d, NULL, &test_err));
    REFUSED(RFT_E_ARG, "ctx is NULL", rft_weight_pack(NULL, &d, &s, storage, NULL, &w, &test_err));
    REFUSED(RFT_E_ARG, "desc is NULL", rft_weight_pack(ctx, NULL, &s, storage, NULL, &w, &test_err));
    REFUSED(RFT_E_ARG, "src is NULL", rft_weight_pack(ctx, &d, NULL, storage, NULL, &w, &test_err));
    REFUSED(RFT_E_ARG, "storage is NULL", rft_weight_pack(ctx, &d, &s, NULL, NULL, &w, &test_err));
    REFUSED(RFT_E_ARG, "out is NULL", rft_weight_pack(ctx, &d, &s, storage, NULL, NULL, &test_err));
    REFUSED(RFT_E_ARG, "ctx is NULL", rft_weight_open(NULL, storage, 128, &w, &test_err));
    REFUSED(RFT_E_ARG, "storage is NULL", rft_weight_open(ctx, NULL, 128, &w, &test_err));
    REFUSED(RFT_E_ARG, "out is NULL", rft_weight_open(ctx, storage, 128, NULL, &test_err));
    REFUSED(RFT_E_ARG, "weight is NULL", rft_weight_unpack(NULL, matrix, 0, &test_err));
    rft_weight_free(NULL);
}

static void test_descriptors(void **state) {
    (void)state;
    BAD_WEIGHT(RFT_E_ARG, "desc", d.struct_size = 0);
    BAD_WEIGHT(RFT_E_ARG, "src", s.struct_size = 2);
    BAD_WEIGHT(RFT_E_ARG, "n = -1", d.n = -1);
    BAD_WEIGHT(RFT_E_ARG, "desc.ld = 3", d.ld = 3);
    BAD_WEIGHT(RFT_E_ARG, "overflow", d.n = INT64_MAX);
    BAD_WEIGHT(RFT_E_ARG, "overflow", d.batch = INT64_MAX);
    BAD_WEIGHT(RFT_E_ARG, "desc.elem = 0", d.elem = (rft_type)0);
    BAD_WEIGHT(RFT_E_UNSUPPORTED, "desc.elem = 13 (i32)", d.elem = RFT_I32);
    BAD_WEIGHT(RFT_E_ARG, "scales of elem e4m3 are", d.elem = RFT_E4M3);
    BAD_WEIGHT(RFT_E_ARG, "desc.order = -1", d.order = (rft_order)-1);
    BAD_WEIGHT(RFT_E_ARG, "desc.flags = 0x80", d.flags = 0x80);
    BAD_WEIGHT(RFT_E_ARG, "scale", d.scale = RFT_F32);
    size_t bytes = 1;
    rft_weight_desc d = rft_test_weight_desc();
    d.k = INT64_MAX / 4;
    REFUSED(RFT_E_ARG, "overflow", rft_weight_bytes(ctx, &d, &bytes, &test_err));
    assert_int_equal(bytes, 0);
}

static void test_sources(void **state) {
    (void)state;
    static const int32_t order[TEST_K];
    BAD_WEIGHT(RFT_E_ARG, "src.q is NULL", s.q = NULL);
    BAD_WEIGHT(RFT_E_ARG, "src.q = 0x", s.q = (const char *)matrix + 2);
    BAD_WEIGHT(RFT_E_ARG, "scale", s.scale = matrix);
    BAD_WEIGHT(RFT_E_ARG, "zero", s.zero = matrix);
    BAD_WEIGHT(RFT_E_ARG, "global_scale", s.global_scale = matrix);
    BAD_WEIGHT(RFT_E_ARG, "g_idx", s.g_idx = order);
    BAD_WEIGHT(RFT_E_ARG, "src.scale is NULL, and by desc it is of f32", d.elem = RFT_I8; d.scale = RFT_F32);
    BAD_WEIGHT(RFT_E_ARG, "is not aligned to the 4 bytes of f32",
               d.elem = RFT_I8; d.scale = RFT_F32; s.scale = (const char *)matrix + 2);
}

static void test_storage(void **state) {
    (void)state;
    const rft_weight_desc d = rft_test_weight_desc();
    const rft_weight_src s = source();
    rft_weight *w = NULL;
    REFUSED(RFT_E_ARG, "not aligned to 64", rft_weight_pack(ctx, &d, &s, (char *)storage + 32, NULL, &w, &test_err));
    REFUSED(RFT_E_ARG, "not aligned to 64", rft_weight_open(ctx, (char *)storage + 8, 4096, &w, &test_err));
    REFUSED(RFT_E_LAYOUT, "bytes = 127", rft_weight_open(ctx, storage, 127, &w, &test_err));
    memset(storage, 0, 4096);
    REFUSED(RFT_E_LAYOUT, "does not begin with \"RFTWGT01\"", rft_weight_open(ctx, storage, 4096, &w, &test_err));
}

static void test_unpack(void **state) {
    (void)state;
    const rft_weight_desc d = rft_test_weight_desc();
    rft_test_packed p = rft_test_pack(ctx, &d, matrix);
    REFUSED(RFT_E_ARG, "w = ", rft_weight_unpack(p.weight, NULL, 0, &test_err));
    REFUSED(RFT_E_ARG, "not aligned", rft_weight_unpack(p.weight, (float *)(void *)((char *)matrix + 1), 0, &test_err));
    REFUSED(RFT_E_ARG, "ld = 39", rft_weight_unpack(p.weight, matrix, TEST_K - 1, &test_err));
    REFUSED(RFT_E_ARG, "ld = -1", rft_weight_unpack(p.weight, matrix, -1, &test_err));
    REFUSED(RFT_E_ARG, "overflow", rft_weight_unpack(p.weight, matrix, INT64_MAX, &test_err));
    rft_test_unpack(&p);
}

static void test_empty_weights(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        rft_weight_desc d = rft_test_weight_desc();
        d.n = i == 1 ? TEST_N : 0;
        d.k = i == 2 ? TEST_K : 0;
        rft_test_packed p = rft_test_pack(ctx, &d, NULL);
        OK(rft_weight_unpack(p.weight, NULL, 0, &test_err));
        rft_weight *again = NULL;
        OK(rft_weight_open(ctx, p.storage, p.bytes, &again, &test_err));
        rft_weight_free(again);
        rft_test_unpack(&p);
    }
}

static void test_view_takes_no_storage(void **state) {
    (void)state;
    rft_weight_desc d = rft_test_weight_desc();
    d.flags = RFT_WEIGHT_VIEW;
    const rft_weight_src s = source();
    size_t bytes = 1;
    rft_weight *w = NULL;
    OK(rft_weight_bytes(ctx, &d, &bytes, &test_err));
    assert_int_equal(bytes, 0);
    OK(rft_weight_pack(ctx, &d, &s, NULL, NULL, &w, &test_err));
    rft_weight_free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_storage),
        cmocka_unit_test(test_unpack),
        cmocka_unit_test(test_empty_weights),
        cmocka_unit_test(test_view_takes_no_storage),
    };
    return cmocka_run_group_tests(tests, make_ctx, free_ctx);
}
