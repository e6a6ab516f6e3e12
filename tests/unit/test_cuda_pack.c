/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_pack.c - packed weights of a GPU with elements of 2 bytes (see cuda_pack_test.h), and what does not depend on those:
 * layout ids, sizes that overflow, empty weights, the grid.
 */
#define RFT_ELEM_SIZE 2
#include "cuda_pack_test.h"

static rft__matrix small(rft_type elem, rft__glu glu, int64_t n, int64_t k) {
    return (rft__matrix){
        .elem = elem, .glu = glu, .n = n, .k = k, .batch = 1, .n_stride = k, .k_stride = 1, .batch_stride = n * k};
}

static void layouts_tell_what_differs(void **state) {
    (void)state;
    const rft__matrix ways[] = {small(RFT_F32, RFT__GLU_NONE, 4, 4), small(RFT_F16, RFT__GLU_NONE, 4, 4),
                                small(RFT_BF16, RFT__GLU_NONE, 4, 4), small(RFT_BF16, RFT__GLU_HALVES, 4, 4),
                                small(RFT_BF16, RFT__GLU_INTERLEAVED, 4, 4)};
    for (int i = 0; i < 5; i++) {
        assert_true(rft__cuda_weight_layout(&ways[i]) != 0);
        for (int j = 0; j < i; j++) {
            assert_true(rft__cuda_weight_layout(&ways[i]) != rft__cuda_weight_layout(&ways[j]));
        }
    }
    rft__matrix other = small(RFT_F32, RFT__GLU_NONE, 64, 32);
    other.order = RFT_MN_CONTIGUOUS;
    assert_true(rft__cuda_weight_layout(&other) == rft__cuda_weight_layout(&ways[0]));
    other.elem = RFT_GGUF_Q4_0;
    assert_true(rft__cuda_weight_layout(&other) == 0);
}

static void sizes_that_overflow_are_refused(void **state) {
    (void)state;
    rft__matrix w = small(RFT_F32, RFT__GLU_NONE, 4, 4);
    size_t bytes = 0;
    rft_error err = {.message = ""};
    w.n = INT64_MAX / 32;
    w.k = 5;
    assert_int_equal(rft__cuda_packed_bytes(&w, &bytes, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "k = 5"));
    w.n = 4;
    w.k = INT64_MAX - 3;
    assert_int_equal(rft__cuda_packed_bytes(&w, &bytes, NULL), RFT_E_ARG);
    w.k = 4;
    w.batch = INT64_MAX / 2;
    assert_int_equal(rft__cuda_packed_bytes(&w, &bytes, NULL), RFT_E_ARG);
    assert_int_equal(bytes, 0);
}

static void empty_weights_take_nothing(void **state) {
    (void)state;
    const rft__matrix ways[] = {small(RFT_BF16, RFT__GLU_NONE, 0, 8), small(RFT_BF16, RFT__GLU_NONE, 1 << 20, 0)};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(packed_bytes(&ways[i]), 0);
        assert_int_equal(rft__cuda_pack_job_of(&(rft__cuda_facts){.sms = 132}, &ways[i], NULL, NULL).blocks, 0);
        rft__cuda_pack_host(&ways[i], NULL, NULL);
        rft__cuda_unpack_host(&ways[i], NULL, NULL, 0);
    }
}

static void config_says_how_w_lies(void **state) {
    (void)state;
    char text[128];
    rft__text t = {text, sizeof text, 0};
    rft__matrix w = small(RFT_F32, RFT__GLU_NONE, 4, 6);
    rft__cuda_pack_text(&w, &t);
    assert_string_equal(text, "#define RFT_ELEM_SIZE 4\n#define RFT_W_MN 0\n");
    w.elem = RFT_BF16;
    w.k_stride = 4;
    w.n_stride = 1;
    t.length = 0;
    rft__cuda_pack_text(&w, &t);
    assert_string_equal(text, "#define RFT_ELEM_SIZE 2\n#define RFT_W_MN 1\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_shapes),
        cmocka_unit_test(layouts_tell_what_differs),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(empty_weights_take_nothing),
        cmocka_unit_test(config_says_how_w_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
