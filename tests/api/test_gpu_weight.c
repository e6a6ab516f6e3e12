/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gpu_weight.c - packing on the device and on the host give the same bytes, header included, wherever source and storage
 * lie; what was packed on the host is uploaded, opened and runs; unpacking gives W back; damaged headers are refused.
 */
#include "gpu_test.h"

enum { MOST = 40000 /* elements of a source */ };

static const uint32_t glu_flags[] = {0, RFT_WEIGHT_GLU_HALVES, RFT_WEIGHT_GLU_INTERLEAVED};

static rft_weight_desc describe(rft_type type, rft_order order, int64_t n, int64_t k, int64_t batch) {
    rft_weight_desc d = rft_weight_desc_init();
    d.elem = type;
    d.order = order;
    d.n = n;
    d.k = k;
    d.batch = batch;
    d.ld = (order == RFT_K_CONTIGUOUS ? k : n) + 3;
    d.batch_stride = d.ld * (order == RFT_K_CONTIGUOUS ? n : k) + 5;
    return d;
}

static rft_weight *pack(const rft_weight_desc *d, const void *q, void *storage) {
    rft_weight *weight = NULL;
    rft_weight_src src = rft_weight_src_init();
    src.q = q;
    OK(rft_weight_pack(gpu, d, &src, storage, NULL, &weight, &test_err));
    return weight;
}

/* W as the descriptor and its source say, against what unpacking gives. */
static void assert_unpacked(const rft_weight *weight, const rft_weight_desc *d, const void *q) {
    const int64_t ld = d->k + 1;
    float *const w = rft_test_storage((size_t)(d->batch * d->n * ld) * sizeof *w);
    OK(rft_weight_unpack(weight, w, ld, &test_err));
    for (int64_t b = 0; b < d->batch; b++) {
        for (int64_t i = 0; i < d->n * d->k; i++) {
            const int64_t n = i / d->k, k = i % d->k;
            const int64_t at = b * d->batch_stride + (d->order == RFT_K_CONTIGUOUS ? n * d->ld + k : k * d->ld + n);
            if (w[(b * d->n + n) * ld + k] != rft_test_get(d->elem, q, at)) {
                fail_msg("w[%lld][%lld][%lld] came back otherwise", (long long)b, (long long)n, (long long)k);
            }
        }
    }
    free(w);
}

/* Host to host, host to device, device to device, and the first uploaded and opened. */
static void four_ways(const rft_weight_desc *d) {
    static uint32_t source[MOST];
    size_t bytes = 0;
    OK(rft_weight_bytes(gpu, d, &bytes, &test_err));
    rft_test_random(d->elem, source, MOST, 5);
    void *const q = gpu_upload(source, sizeof source), *const host = rft_test_storage(bytes);
    void *const mixed = gpu_filled(0xff, bytes), *const device = gpu_filled(0xee, bytes);
    memset(host, 0xdd, bytes);
    rft_weight *const weights[] = {pack(d, source, host), pack(d, source, mixed), pack(d, q, device), NULL};
    void *const mixed_bytes = gpu_fetch(mixed, bytes), *const device_bytes = gpu_fetch(device, bytes);
    assert_memory_equal(host, mixed_bytes, bytes);
    assert_memory_equal(host, device_bytes, bytes);
    rft_weight *opened = NULL;
    OK(rft_weight_open(gpu, gpu_upload(host, bytes), bytes, &opened, &test_err));
    for (int i = 0; i < 3; i++) {
        assert_unpacked(weights[i], d, source);
        rft_weight_free(weights[i]);
    }
    assert_unpacked(opened, d, source);
    rft_weight_free(opened);
    free(mixed_bytes);
    free(device_bytes);
    free(host);
    gpu_drop(NULL);
}

static void test_same_bytes(void **state) {
    static const int64_t shapes[][3] = {{38, 53, 1}, {64, 128, 2}, {2, 1, 3}, {130, 7, 2}, {6, 1030, 1}};
    (void)state;
    gpu_needed();
    for (int t = 0; t < TEST_TYPES; t++) {
        for (int order = RFT_K_CONTIGUOUS; order <= RFT_MN_CONTIGUOUS; order++) {
            for (int s = 0; s < 5; s++) {
                rft_weight_desc d = describe(test_types[t], order, shapes[s][0], shapes[s][1], shapes[s][2]);
                d.flags = glu_flags[s % 3];
                gpu_watch(0, "packing %s, order %d, shape %d", rft_type_name(d.elem), order, s);
                four_ways(&d);
            }
        }
    }
}

/* Uploaded, opened, run: the bits of the weight that was packed on the device. */
static void test_uploaded_runs(void **state) {
    const rft_linear_desc d = gpu_desc(RFT_BF16, 20, 136, 72);
    size_t bytes = 0;
    (void)state;
    gpu_needed();
    gpu_layer l = gpu_make(&d, NULL, 20, 1), other = l;
    gpu_run(&l);
    gpu_prove(&l, 0);
    OK(rft_weight_bytes(gpu, &d.w, &bytes, &test_err));
    void *const source = gpu_fetch(l.w, 136 * 72 * 2), *const host = rft_test_storage(bytes);
    rft_weight *const on_host = pack(&d.w, source, host);
    rft_linear_args args = l.args;
    args.weight = on_host;
    REFUSED(RFT_E_LAYOUT, "in host memory", rft_linear_run(l.plan, &args, &test_err));
    rft_weight_free(on_host);
    OK(rft_weight_open(gpu, gpu_upload(host, bytes), bytes, &other.weight, &test_err));
    other.args.weight = other.weight;
    other.args.y = gpu_filled(0xff, l.y_bytes);
    gpu_run(&other);
    gpu_assert_equal(l.args.y, other.args.y, l.y_bytes);
    rft_weight_free(other.weight);
    gpu_free(&l);
    free(source);
    free(host);
}

static void test_damaged(void **state) {
    static const size_t places[] = {0, 8, 16, 24, 32, 63, 100, 127};
    const rft_weight_desc d = describe(RFT_BF16, RFT_K_CONTIGUOUS, 38, 53, 1);
    rft_weight *weight = NULL;
    size_t bytes = 0;
    static uint16_t source[MOST];
    (void)state;
    gpu_needed();
    OK(rft_weight_bytes(gpu, &d, &bytes, &test_err));
    unsigned char *const storage = gpu_alloc(bytes);
    rft_test_random(RFT_BF16, source, MOST, 5);
    rft_weight_free(pack(&d, source, storage));
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        unsigned char old = 0, bad = 0;
        gpu_read(&old, storage + places[i], 1);
        bad = old ^ 0x10;
        gpu_write(storage + places[i], &bad, 1);
        REFUSED(RFT_E_LAYOUT, "storage", rft_weight_open(gpu, storage, bytes, &weight, &test_err));
        assert_null(weight);
        gpu_write(storage + places[i], &old, 1);
    }
    REFUSED(RFT_E_LAYOUT, "bytes = ", rft_weight_open(gpu, storage, bytes - 1, &weight, &test_err));
    REFUSED(RFT_E_ARG, "aligned", rft_weight_open(gpu, storage + 32, bytes - 32, &weight, &test_err));
    OK(rft_weight_open(gpu, storage, bytes, &weight, &test_err));
    rft_weight_free(weight);
}

static void test_refusals(void **state) {
    const rft_weight_desc d = describe(RFT_BF16, RFT_K_CONTIGUOUS, 38, 53, 1);
    rft_weight *weight = NULL;
    rft_weight_src src = rft_weight_src_init();
    size_t bytes = 0;
    (void)state;
    gpu_needed();
    OK(rft_weight_bytes(gpu, &d, &bytes, &test_err));
    void *const host = rft_test_storage(bytes);
    src.q = gpu_random(RFT_BF16, MOST, 5);
    REFUSED(RFT_E_ARG, "is device memory and storage", rft_weight_pack(gpu, &d, &src, host, NULL, &weight, &test_err));
    assert_null(weight);
    REFUSED(RFT_E_LAYOUT, "storage", rft_weight_open(gpu, host, bytes, &weight, &test_err)); /* its header was wiped */
    free(host);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_same_bytes, gpu_drop),
        cmocka_unit_test_teardown(test_uploaded_runs, gpu_drop),
        cmocka_unit_test_teardown(test_damaged, gpu_drop),
        cmocka_unit_test_teardown(test_refusals, gpu_drop),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
