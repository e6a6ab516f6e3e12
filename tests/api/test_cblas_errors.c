/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cblas_errors.c - what is refused, with which position, and that nothing is written then. The program's own cblas_xerbla is
 * the one that the library calls. Positions and their order are those of the reference CBLAS.
 */
#include "cblas_test.h"

#include <stdio.h>

static struct {
    int calls, position;
    char routine[40], reason[200];
} told;

void cblas_xerbla(int position, const char *routine, const char *form, ...) {
    va_list arguments;
    told.calls++;
    told.position = position;
    snprintf(told.routine, sizeof told.routine, "%s", routine);
    va_start(arguments, form);
    vsnprintf(told.reason, sizeof told.reason, form, arguments);
    va_end(arguments);
}

static float data[64], y[64];
static uint16_t data16[64];

static void expect(int position, const char *routine, const char *part) {
    if (told.calls != 1 || told.position != position || strcmp(told.routine, routine) != 0 || strstr(told.reason, part) == NULL) {
        fail_msg("%d calls; %s, %d, \"%s\" instead of %s, %d with \"%s\"", told.calls, told.routine, told.position, told.reason,
                 routine, position, part);
    }
    for (int i = 0; i < 64; i++) {
        assert_true(y[i] == 7);
    }
    told.calls = 0;
}

static int set_up(void **state) {
    (void)state;
    for (int i = 0; i < 64; i++) {
        y[i] = 7;
    }
    return 0;
}

/* A good call by rows: op(A) 2 x 4, op(B) 4 x 3. Each row of the table spoils it in one or two places. */
typedef struct gemm_case {
    int position;
    int layout, transa, transb, m, n, k, lda, ldb, ldc;
    const char *part;
} gemm_case;

static const gemm_case gemm_cases[] = {
    {1, 0, 111, 111, 2, 3, 4, 4, 3, 3, "layout = 0"},
    {2, 101, 0, 111, 2, 3, 4, 4, 3, 3, "transa = 0"},
    {2, 102, 114, 0, 2, 3, 4, 4, 3, 3, "transa = 114"},
    {3, 101, 111, 100, 2, 3, 4, 4, 3, 3, "transb = 100"},
    {4, 101, 111, 111, -1, 3, 4, 4, 3, 3, "m = -1"},
    {5, 101, 111, 111, 2, -2, 4, 4, 3, 3, "n = -2"},
    {6, 101, 111, 111, 2, 3, -3, 4, 3, 3, "k = -3"},
    {9, 101, 111, 111, 2, 3, 4, 3, 3, 3, "lda = 3 is less than 4"},
    {9, 101, 112, 111, 2, 3, 4, 1, 3, 3, "lda = 1 is less than 2"},
    {11, 101, 111, 111, 2, 3, 4, 4, 2, 3, "ldb = 2 is less than 3"},
    {11, 101, 111, 113, 2, 3, 4, 4, 3, 3, "ldb = 3 is less than 4"},
    {14, 101, 111, 111, 2, 3, 4, 4, 3, 2, "ldc = 2 is less than 3"},
    {4, 102, 111, 111, -1, 3, 4, 2, 4, 2, "m = -1"},
    {5, 102, 111, 111, 2, -2, 4, 2, 4, 2, "n = -2"},
    {6, 102, 111, 111, 2, 3, -3, 2, 4, 2, "k = -3"},
    {9, 102, 111, 111, 2, 3, 4, 1, 4, 2, "lda = 1 is less than 2"},
    {9, 102, 112, 111, 2, 3, 4, 3, 4, 2, "lda = 3 is less than 4"},
    {11, 102, 111, 111, 2, 3, 4, 2, 3, 2, "ldb = 3 is less than 4"},
    {11, 102, 111, 112, 2, 3, 4, 2, 2, 2, "ldb = 2 is less than 3"},
    {14, 102, 111, 111, 2, 3, 4, 2, 4, 1, "ldc = 1 is less than 2"},
    {9, 101, 111, 111, 0, 0, 0, 0, 1, 1, "lda = 0 is less than 1"},
    {14, 101, 111, 111, 2, 0, 4, 4, 1, 0, "ldc = 0 is less than 1"},
    {14, 102, 111, 111, 0, 3, 4, 1, 4, 0, "ldc = 0 is less than 1"},
    /* of two, the one that comes first for a column-major C, whose rows are n and whose left operand is B where C is row-major */
    {5, 101, 111, 111, -1, -1, 4, 4, 3, 3, "n = -1"},
    {4, 102, 111, 111, -1, -1, 4, 2, 4, 2, "m = -1"},
    {11, 101, 111, 111, 2, 3, 4, 1, 1, 1, "ldb = 1"},
    {9, 102, 111, 111, 2, 3, 4, 1, 1, 1, "lda = 1"},
};

static void test_gemm(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof gemm_cases / sizeof *gemm_cases; i++) {
        const gemm_case *const g = gemm_cases + i;
        const CBLAS_LAYOUT layout = (CBLAS_LAYOUT)g->layout;
        const CBLAS_TRANSPOSE ta = (CBLAS_TRANSPOSE)g->transa, tb = (CBLAS_TRANSPOSE)g->transb;
        cblas_sgemm(layout, ta, tb, g->m, g->n, g->k, 1, data, g->lda, data, g->ldb, 1, y, g->ldc);
        expect(g->position, "cblas_sgemm", g->part);
        cblas_sbgemm(layout, ta, tb, g->m, g->n, g->k, 1, data16, g->lda, data16, g->ldb, 0, y, g->ldc);
        expect(g->position, "cblas_sbgemm", g->part);
    }
}

/* The same products as batches, where the strides move some positions. */
static void test_batches(void **state) {
    (void)state;
    const float *as[] = {data}, *bs[] = {data}, one = 1;
    const uint16_t *as16[] = {data16}, *bs16[] = {data16};
    float *cs[] = {y};
    const int size = 1;
    for (size_t i = 0; i < sizeof gemm_cases / sizeof *gemm_cases; i++) {
        const gemm_case *const g = gemm_cases + i;
        const CBLAS_LAYOUT layout = (CBLAS_LAYOUT)g->layout;
        const CBLAS_TRANSPOSE ta = (CBLAS_TRANSPOSE)g->transa, tb = (CBLAS_TRANSPOSE)g->transb;
        const int strided = g->position == 11 ? 12 : g->position == 14 ? 16 : g->position;
        cblas_sgemm_batch(layout, &ta, &tb, &g->m, &g->n, &g->k, &one, as, &g->lda, bs, &g->ldb, &one, cs, &g->ldc, 1, &size);
        expect(g->position, "cblas_sgemm_batch", g->part);
        cblas_sbgemm_batch(layout, &ta, &tb, &g->m, &g->n, &g->k, &one, as16, &g->lda, bs16, &g->ldb, &one, cs, &g->ldc, 1,
                           &size);
        expect(g->position, "cblas_sbgemm_batch", g->part);
        cblas_sgemm_batch_strided(layout, ta, tb, g->m, g->n, g->k, 1, data, g->lda, 8, data, g->ldb, 12, 1, y, g->ldc, 6, 2);
        expect(strided, "cblas_sgemm_batch_strided", g->part);
        cblas_sbgemm_batch_strided(layout, ta, tb, g->m, g->n, g->k, 1, data16, g->lda, 8, data16, g->ldb, 12, 1, y, g->ldc, 6,
                                   2);
        expect(strided, "cblas_sbgemm_batch_strided", g->part);
    }
}

/* Nothing of a batch runs where a later group is not allowed. */
static void test_groups(void **state) {
    (void)state;
    const float *as[] = {data, data}, *bs[] = {data, data}, scale[] = {1, 1};
    float *cs[] = {y, y + 6};
    const CBLAS_TRANSPOSE none[] = {CblasNoTrans, CblasNoTrans};
    const int m[] = {2, 2}, n[] = {3, 3}, k[] = {4, 4}, lda[] = {4, 4}, ldb[] = {3, 3}, ldc[] = {3, 2}, good[] = {3, 3};
    const int one[] = {1, 1}, negative[] = {1, -1};
    cblas_sgemm_batch(CblasRowMajor, none, none, m, n, k, scale, as, lda, bs, ldb, scale, cs, ldc, 2, one);
    expect(14, "cblas_sgemm_batch", "ldc = 2 is less than 3");
    cblas_sgemm_batch(CblasRowMajor, none, none, m, n, k, scale, as, lda, bs, ldb, scale, cs, good, 2, negative);
    expect(16, "cblas_sgemm_batch", "group_size = -1");
    cblas_sgemm_batch(CblasRowMajor, none, none, m, n, k, scale, as, lda, bs, ldb, scale, cs, good, -1, one);
    expect(15, "cblas_sgemm_batch", "group_count = -1");
    cblas_sgemm_batch((CBLAS_LAYOUT)7, none, none, m, n, k, scale, as, lda, bs, ldb, scale, cs, good, 0, one);
    expect(1, "cblas_sgemm_batch", "layout = 7");
    cblas_sgemm_batch_strided(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 3, 4, 1, data, 4, 8, data, 3, 12, 1, y, 3, 6, -1);
    expect(18, "cblas_sgemm_batch_strided", "batch_size = -1");
}

static void test_gemv(void **state) {
    (void)state;
    static const struct {
        int position, layout, trans, m, n, lda, incx, incy;
        const char *part;
    } cases[] = {
        {1, 103, 111, 2, 3, 3, 1, 1, "layout = 103"},    {2, 101, 110, 2, 3, 3, 1, 1, "trans = 110"},
        {2, 102, 110, 2, 3, 3, 1, 1, "trans = 110"},     {3, 101, 111, -1, 3, 3, 1, 1, "m = -1"},
        {4, 101, 111, 2, -1, 3, 1, 1, "n = -1"},         {3, 102, 111, -1, 3, 3, 1, 1, "m = -1"},
        {4, 102, 111, 2, -1, 3, 1, 1, "n = -1"},         {4, 101, 111, -1, -1, 3, 1, 1, "n = -1"},
        {3, 102, 111, -1, -1, 3, 1, 1, "m = -1"},        {7, 101, 111, 2, 3, 2, 1, 1, "lda = 2 is less than 3"},
        {7, 101, 112, 2, 3, 2, 1, 1, "lda = 2 is less"}, {7, 102, 111, 2, 3, 1, 1, 1, "lda = 1 is less than 2"},
        {7, 102, 111, 0, 0, 0, 1, 1, "lda = 0 is less"}, {9, 101, 111, 2, 3, 3, 0, 1, "incx = 0"},
        {12, 101, 111, 2, 3, 3, 1, 0, "incy = 0"},       {9, 102, 113, 2, 3, 3, 0, 0, "incx = 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cblas_sgemv((CBLAS_LAYOUT)cases[i].layout, (CBLAS_TRANSPOSE)cases[i].trans, cases[i].m, cases[i].n, 1, data, cases[i].lda,
                    data, cases[i].incx, 1, y, cases[i].incy);
        expect(cases[i].position, "cblas_sgemv", cases[i].part);
    }
}

/* Not an argument by its number, and still told: a product that the library cannot run. */
static void test_failure(void **state) {
    (void)state;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 3, 64, 1, NULL, 64, data, 3, 1, y, 3);
    expect(0, "cblas_sgemm", "args.");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm), cmocka_unit_test(test_batches), cmocka_unit_test(test_groups),
        cmocka_unit_test(test_gemv), cmocka_unit_test(test_failure),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
