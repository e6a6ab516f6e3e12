/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cblas_gemv.c - cblas_sgemv against its definition: layouts, transposes, increments of both signs, leading dimensions,
 * classes of alpha and beta; what lies between the elements of y stays.
 */
#include "cblas_test.h"

static const float scales[][2] = {{1, 0}, {1, 1}, {0.75f, -1.25f}, {0, 0}, {0, 1}, {0, 0.5f}, {-1, 0}};
static const int increments[] = {1, 2, -1, -3};

static int64_t element(int count, int inc, int i) { return inc > 0 ? (int64_t)i * inc : (int64_t)(i - (count - 1)) * inc; }

static float *make_vector(int count, int inc) {
    const int64_t size = count > 0 ? (int64_t)(count - 1) * abs(inc) + 1 : 0;
    float *const v = malloc((size_t)size * sizeof *v + 1);
    for (int64_t i = 0; i < size; i++) {
        v[i] = i % abs(inc) == 0 ? test_number() : 1e30f;
    }
    return v;
}

static void run(const shape *s, int incx, int incy) {
    const bool transposed = s->transa != CblasNoTrans;
    const int nx = transposed ? s->m : s->n, ny = transposed ? s->n : s->m;
    float *const a = make_matrix(s, CblasNoTrans, s->m, s->n), *const x = make_vector(nx, incx), *const y = make_vector(ny, incy);
    const int64_t size = ny > 0 ? (int64_t)(ny - 1) * abs(incy) + 1 : 0;
    if (s->beta == 0 && nx > 0) {
        for (int i = 0; i < ny; i++) {
            y[element(ny, incy, i)] = NAN;
        }
    }
    float *const old = copy_of(y, size);
    cblas_sgemv(s->layout, s->transa, s->m, s->n, s->alpha, a, ld_of(s, CblasNoTrans, s->m, s->n), x, incx, s->beta, y, incy);
    for (int i = 0; i < ny && nx > 0; i++) {
        double sum = 0, all = 0;
        for (int j = 0; j < nx && s->alpha != 0; j++) {
            const int64_t at = transposed ? place(s, CblasNoTrans, s->m, s->n, j, i) : place(s, CblasNoTrans, s->m, s->n, i, j);
            sum += (double)a[at] * x[element(nx, incx, j)];
            all += fabs((double)a[at] * x[element(nx, incx, j)]);
        }
        const int64_t at = element(ny, incy, i);
        const double add = s->beta == 0 ? 0 : (double)s->beta * old[at], want = s->alpha * sum + add;
        if (!(fabs(y[at] - want) <= (nx + 4) * 0x1p-23 * (fabs(s->alpha * all) + fabs(add)) + 0x1p-120)) {
            fail_msg("layout %d, transpose %d, %d x %d, increments %d %d, alpha %g, beta %g: y[%d] = %g, not %g", (int)s->layout,
                     (int)s->transa, s->m, s->n, incx, incy, (double)s->alpha, (double)s->beta, i, (double)y[at], want);
        }
    }
    for (int64_t i = 0; i < size; i++) { /* an empty matrix leaves y as it is, as the reference does */
        assert_true((i % abs(incy) == 0 && nx > 0) || memcmp(y + i, old + i, sizeof *y) == 0);
    }
    free(a);
    free(x);
    free(y);
    free(old);
}

static void run_forms(int m, int n, float alpha, float beta) {
    for (int i = 0; i < 2 * 3 * 16; i++) {
        const shape s = {i % 2 ? CblasRowMajor : CblasColMajor,
                         (CBLAS_TRANSPOSE)(CblasNoTrans + i / 2 % 3),
                         CblasNoTrans,
                         m,
                         n,
                         0,
                         i % 4 == 0 ? 5 : 0,
                         alpha,
                         beta};
        run(&s, increments[i / 6 % 4], increments[i / 24]);
    }
}

static void test_scales(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        run_forms(4, 7, scales[i][0], scales[i][1]);
        run_forms(33, 41, scales[i][0], scales[i][1]);
    }
}

static void test_sizes(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {1, 400}, {400, 1}, {17, 300}, {300, 17}, {129, 131}, {0, 5}, {5, 0}, {0, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        run_forms(sizes[i][0], sizes[i][1], 1, 0);
        run_forms(sizes[i][0], sizes[i][1], 0.5f, 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scales), cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
