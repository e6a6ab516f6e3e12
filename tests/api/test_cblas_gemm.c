/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cblas_gemm.c - cblas_sgemm and cblas_sbgemm against their definition: layouts, transposes, leading dimensions, classes of
 * alpha and beta, sizes of each way that a product may take, and nothing read or written beyond the matrices.
 */
#include "cblas_test.h"

static const CBLAS_LAYOUT layouts[] = {CblasRowMajor, CblasColMajor};
static const CBLAS_TRANSPOSE transposes[] = {CblasNoTrans, CblasTrans, CblasConjTrans};
static const float scales[][2] = {{1, 0}, {1, 1}, {-1, 1}, {0.75f, 0}, {0.75f, -1.25f}, {0, 0}, {0, 1}, {0, 0.5f}};
enum { SCALES = sizeof scales / sizeof *scales };

static void run(const shape *s, bool bf16) {
    const int lda = ld_of(s, s->transa, s->m, s->k), ldb = ld_of(s, s->transb, s->k, s->n);
    const int ldc = ld_of(s, CblasNoTrans, s->m, s->n);
    const int64_t size_a = size_of(s, s->transa, s->m, s->k), size_b = size_of(s, s->transb, s->k, s->n);
    float *const a = make_matrix(s, s->transa, s->m, s->k), *const b = make_matrix(s, s->transb, s->k, s->n);
    float *const c = make_c(s), *const old = copy_of(c, size_of(s, CblasNoTrans, s->m, s->n));
    if (bf16) {
        uint16_t *const a16 = to_bf16(a, size_a), *const b16 = to_bf16(b, size_b);
        cblas_sbgemm(s->layout, s->transa, s->transb, s->m, s->n, s->k, s->alpha, a16, lda, b16, ldb, s->beta, c, ldc);
        free(a16);
        free(b16);
    } else {
        cblas_sgemm(s->layout, s->transa, s->transb, s->m, s->n, s->k, s->alpha, a, lda, b, ldb, s->beta, c, ldc);
    }
    assert_product(s, a, b, old, c);
    assert_padding(s, old, c);
    free(a);
    free(b);
    free(c);
    free(old);
}

/* Each layout and pair of transposes; padded or dense, in turn. */
static void run_forms(int m, int n, int k, float alpha, float beta) {
    static int turn;
    for (int i = 0; i < 18; i++) {
        const shape s = {layouts[i / 9], transposes[i / 3 % 3], transposes[i % 3], m, n, k, turn++ % 4 == 0 ? 3 : 0, alpha, beta};
        run(&s, false);
        run(&s, true);
    }
}

static void test_scales(void **state) {
    (void)state;
    for (int i = 0; i < SCALES; i++) {
        run_forms(2, 3, 5, scales[i][0], scales[i][1]);
        run_forms(19, 34, 23, scales[i][0], scales[i][1]);
    }
}

/* By the definition, rows alone, columns alone, plans, packed W. */
static void test_sizes(void **state) {
    (void)state;
    static const int sizes[][3] = {{1, 1, 1},     {1, 1, 300},   {1, 50, 70},   {50, 1, 70},  {3, 1, 90},
                                   {6, 6, 7},     {16, 16, 16},  {70, 33, 1},   {65, 64, 63}, {127, 17, 9},
                                   {128, 31, 33}, {33, 128, 31}, {260, 20, 40}, {20, 260, 40}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        run_forms(sizes[i][0], sizes[i][1], sizes[i][2], 1, 0);
        run_forms(sizes[i][0], sizes[i][1], sizes[i][2], 0.5f, 2);
    }
}

static void test_empty(void **state) {
    (void)state;
    run_forms(0, 4, 5, 1, 2);
    run_forms(4, 0, 5, 1, 0);
    run_forms(4, 5, 0, 1, 0);
    run_forms(4, 5, 0, 1, 0.5f);
    run_forms(40, 50, 0, 1, 1);
    run_forms(0, 0, 0, 1, 1);
}

/* W larger than what is packed at once. Few numbers are compared, as the definition takes its time. */
static void test_slabs(void **state) {
    (void)state;
    enum { M = 256, N = 130, K = 33000 };
    const shape whole = {CblasRowMajor, CblasNoTrans, CblasTrans, M, N, K, 0, 1, 1};
    for (int order = 0; order < 2; order++) {
        shape s = whole;
        s.transb = transposes[order];
        float *const a = make_matrix(&s, s.transa, M, K), *const b = make_matrix(&s, s.transb, K, N), *const c = make_c(&s);
        float *const old = copy_of(c, M * N), *const row = malloc(N * sizeof *row), *const old_row = malloc(N * sizeof *row);
        cblas_sgemm(s.layout, s.transa, s.transb, M, N, K, 1, a, K, b, ld_of(&s, s.transb, K, N), 1, c, N);
        s.m = 1;
        for (int i = 0; i < M; i += 85) {
            memcpy(row, c + i * N, N * sizeof *row);
            memcpy(old_row, old + i * N, N * sizeof *row);
            assert_product(&s, a + (int64_t)i * K, b, old_row, row);
        }
        free(a);
        free(b);
        free(c);
        free(old);
        free(row);
        free(old_row);
    }
}

/* alpha = 0 reads neither A nor B, beta = 0 no C; what is read and is NaN comes out, also times 0. */
static void test_nan(void **state) {
    (void)state;
    float a[2 * 40], b[40 * 3], c[6];
    for (int i = 0; i < 120; i++) {
        b[i] = 0;
        a[i % 80] = 1;
    }
    for (int i = 0; i < 6; i++) {
        c[i] = NAN;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 3, 40, 0, NULL, 40, NULL, 3, 0, c, 3);
    for (int i = 0; i < 6; i++) {
        assert_true(c[i] == 0);
    }
    for (int k = 2; k <= 40; k += 38) { /* by the definition, and by a plan */
        a[1] = NAN;
        a[k + 1] = INFINITY;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 3, k, 1, a, k, b, 3, 0, c, 3);
        for (int i = 0; i < 6; i++) {
            assert_true(isnan(c[i]));
        }
        a[1] = a[k + 1] = 1;
    }
    c[4] = NAN;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 3, 40, 1, a, 40, b, 3, 1, c, 3);
    assert_true(isnan(c[4]));
}

/* More products than plans are kept, twice. */
static void test_many_shapes(void **state) {
    (void)state;
    for (int i = 0; i < 2 * 400; i++) {
        const shape s = {layouts[i % 2], CblasNoTrans, CblasTrans, 9, 5 + i % 400 / 20, 7 + i % 20, 0, 1, 0};
        run(&s, false);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scales), cmocka_unit_test(test_sizes), cmocka_unit_test(test_empty),
        cmocka_unit_test(test_slabs),  cmocka_unit_test(test_nan),   cmocka_unit_test(test_many_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
