/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cblas_batch.c - batches in groups and by strides against the definition of each product: even and uneven distances, shared
 * A or B, C behind each other and side by side, tiny and large products, f32 and bf16.
 */
#include "cblas_test.h"

enum { MOST = 40, GROUPS = 6 };

typedef struct product {
    shape s;
    float *a, *b, *c, *old; /* matrices of their own */
    uint16_t *a16, *b16;
} product;

static product make_product(const shape *s) {
    product p = {.s = *s, .c = make_c(s)};
    p.a = make_matrix(s, s->transa, s->m, s->k);
    p.b = make_matrix(s, s->transb, s->k, s->n);
    p.a16 = to_bf16(p.a, size_of(s, s->transa, s->m, s->k));
    p.b16 = to_bf16(p.b, size_of(s, s->transb, s->k, s->n));
    p.old = copy_of(p.c, size_of(s, CblasNoTrans, s->m, s->n));
    return p;
}

static void check_product(product *p) {
    assert_product(&p->s, p->a, p->b, p->old, p->c);
    assert_padding(&p->s, p->old, p->c);
    free(p->a);
    free(p->b);
    free(p->a16);
    free(p->b16);
    free(p->c);
    free(p->old);
}

/* Matrices from everywhere: the distances are what malloc made them. */
static void run_groups(CBLAS_LAYOUT layout, bool bf16) {
    static const int sizes[GROUPS] = {1, 3, 0, 20, 2, 7};
    static const shape shapes[GROUPS] = {
        {0, CblasNoTrans, CblasNoTrans, 5, 6, 7, 1, 1, 0}, {0, CblasTrans, CblasNoTrans, 33, 20, 41, 0, 0.5f, 2},
        {0, CblasNoTrans, CblasTrans, 4, 4, 4, 0, 1, 1},   {0, CblasNoTrans, CblasTrans, 3, 4, 5, 0, 1, 1},
        {0, CblasTrans, CblasTrans, 270, 9, 12, 2, -1, 1}, {0, CblasNoTrans, CblasConjTrans, 16, 1, 16, 0, 1, 0},
    };
    product products[MOST];
    CBLAS_TRANSPOSE ta[GROUPS], tb[GROUPS];
    int m[GROUPS], n[GROUPS], k[GROUPS], lda[GROUPS], ldb[GROUPS], ldc[GROUPS], count = 0;
    float alpha[GROUPS], beta[GROUPS], *c[MOST];
    const float *a[MOST], *b[MOST];
    const uint16_t *a16[MOST], *b16[MOST];
    for (int g = 0; g < GROUPS; g++) {
        shape s = shapes[g];
        s.layout = layout;
        ta[g] = s.transa, tb[g] = s.transb, m[g] = s.m, n[g] = s.n, k[g] = s.k, alpha[g] = s.alpha, beta[g] = s.beta;
        lda[g] = ld_of(&s, s.transa, s.m, s.k), ldb[g] = ld_of(&s, s.transb, s.k, s.n);
        ldc[g] = ld_of(&s, CblasNoTrans, s.m, s.n);
        for (int i = 0; i < sizes[g]; i++, count++) {
            const product p = products[count] = make_product(&s);
            a[count] = p.a, b[count] = p.b, a16[count] = p.a16, b16[count] = p.b16, c[count] = p.c;
        }
    }
    if (bf16) {
        cblas_sbgemm_batch(layout, ta, tb, m, n, k, alpha, a16, lda, b16, ldb, beta, c, ldc, GROUPS, sizes);
    } else {
        cblas_sgemm_batch(layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, GROUPS, sizes);
    }
    for (int i = 0; i < count; i++) {
        check_product(products + i);
    }
}

static void test_groups(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        run_groups(i % 2 == 0 ? CblasRowMajor : CblasColMajor, i / 2 == 1);
    }
}

/* All matrices in three blocks; strides may be 0 for A and B, and C may lie side by side in wide rows. */
static void run_strided(const shape *one, int count, int stridea, int strideb, int stridec, int ldc, bool table, bool bf16) {
    const int64_t size_a = size_of(one, one->transa, one->m, one->k), size_b = size_of(one, one->transb, one->k, one->n);
    const int lda = ld_of(one, one->transa, one->m, one->k), ldb = ld_of(one, one->transb, one->k, one->n);
    const int lines = one->layout == CblasRowMajor ? one->m : one->n, line = one->layout == CblasRowMajor ? one->n : one->m;
    const int64_t size_c = (int64_t)(count - 1) * stridec + (int64_t)(lines - 1) * ldc + line;
    float *const a = malloc((size_t)((count - 1) * stridea + size_a) * sizeof *a);
    float *const b = malloc((size_t)((count - 1) * strideb + size_b) * sizeof *b);
    float *const c = malloc((size_t)size_c * sizeof *c);
    for (int i = 0; i < count; i++) {
        float *const from_a = make_matrix(one, one->transa, one->m, one->k), *const from_b =
                                                                                 make_matrix(one, one->transb, one->k, one->n);
        memcpy(a + (int64_t)i * stridea, from_a, (size_t)size_a * sizeof *a);
        memcpy(b + (int64_t)i * strideb, from_b, (size_t)size_b * sizeof *b);
        free(from_a);
        free(from_b);
    }
    for (int64_t i = 0; i < size_c; i++) {
        c[i] = test_number();
    }
    float *const old = copy_of(c, size_c);
    uint16_t *const a16 = to_bf16(a, (count - 1) * stridea + size_a), *const b16 = to_bf16(b, (count - 1) * strideb + size_b);
    const float *as[MOST], *bs[MOST];
    float *cs[MOST];
    for (int i = 0; i < count; i++) {
        as[i] = a + (int64_t)i * stridea, bs[i] = b + (int64_t)i * strideb, cs[i] = c + (int64_t)i * stridec;
    }
    if (table) {
        cblas_sgemm_batch(one->layout, &one->transa, &one->transb, &one->m, &one->n, &one->k, &one->alpha, as, &lda, bs, &ldb,
                          &one->beta, cs, &ldc, 1, &count);
    } else if (bf16) {
        cblas_sbgemm_batch_strided(one->layout, one->transa, one->transb, one->m, one->n, one->k, one->alpha, a16, lda, stridea,
                                   b16, ldb, strideb, one->beta, c, ldc, stridec, count);
    } else {
        cblas_sgemm_batch_strided(one->layout, one->transa, one->transb, one->m, one->n, one->k, one->alpha, a, lda, stridea, b,
                                  ldb, strideb, one->beta, c, ldc, stridec, count);
    }
    float *const got = malloc((size_t)(lines * line) * sizeof *got), *const before = malloc((size_t)(lines * line) * sizeof *got);
    for (int i = 0; i < count; i++) {
        for (int l = 0; l < lines; l++) { /* a dense copy, as the definition takes C */
            memcpy(got + l * line, c + (int64_t)i * stridec + (int64_t)l * ldc, (size_t)line * sizeof *got);
            memcpy(before + l * line, old + (int64_t)i * stridec + (int64_t)l * ldc, (size_t)line * sizeof *got);
        }
        assert_product(one, as[i], bs[i], before, got);
    }
    free(a), free(b), free(c), free(old), free(a16), free(b16), free(got), free(before);
}

static void test_strided(void **state) {
    (void)state;
    static const shape shapes[] = {{CblasRowMajor, CblasNoTrans, CblasTrans, 3, 4, 2, 0, 1, 0},
                                   {CblasColMajor, CblasTrans, CblasNoTrans, 17, 9, 30, 0, 0.5f, 1},
                                   {CblasRowMajor, CblasTrans, CblasNoTrans, 12, 33, 8, 0, 1, 2},
                                   {CblasColMajor, CblasNoTrans, CblasNoTrans, 6, 300, 10, 0, 1, 1},
                                   {CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 40, 64, 0, -1, 0},
                                   {CblasRowMajor, CblasNoTrans, CblasTrans, 17, 1, 30, 0, 1, 1}};
    for (int i = 0; i < 6 * 3; i++) {
        const shape *const s = shapes + i / 3;
        const bool rows = s->layout == CblasRowMajor, table = i % 3 == 1, bf16 = i % 3 == 2;
        const int size_a = s->m * s->k, size_b = s->k * s->n, line = rows ? s->n : s->m, count = 21;
        run_strided(s, count, size_a, size_b, s->m * s->n, line, table, bf16);
        run_strided(s, 4, size_a + 1, size_b + 2, s->m * s->n, line, table, bf16);
        run_strided(s, count, size_a + 3, size_b + 1, s->m * s->n + 5, line, table, bf16);
        run_strided(s, count, size_a, 0, s->m * s->n, line, table, bf16);
        run_strided(s, count, 0, size_b, s->m * s->n, line, table, bf16);
        run_strided(s, count, size_a, size_b, line + 1, count * (line + 1), table, bf16); /* side by side */
        run_strided(s, 1, 0, 0, 0, line, table, bf16);
    }
}

/* From the last to the first, which no plan's batch takes. */
static void test_backwards(void **state) {
    (void)state;
    enum { COUNT = 19, N = 9 };
    float a[COUNT * N * N], b[COUNT * N * N], c[COUNT * N * N], old[COUNT * N * N];
    for (int layout = CblasRowMajor; layout <= CblasColMajor; layout++) {
        const shape s = {(CBLAS_LAYOUT)layout, CblasNoTrans, CblasNoTrans, N, N, N, 0, 1, 1};
        for (int i = 0; i < COUNT * N * N; i++) {
            a[i] = test_number(), b[i] = test_number(), c[i] = old[i] = test_number();
        }
        cblas_sgemm_batch_strided(s.layout, s.transa, s.transb, N, N, N, 1, a + (COUNT - 1) * N * N, N, -N * N, b, N, N * N, 1, c,
                                  N, N * N, COUNT);
        for (int i = 0; i < COUNT; i++) {
            assert_product(&s, a + (COUNT - 1 - i) * N * N, b + i * N * N, old + i * N * N, c + i * N * N);
        }
    }
}

/* Distances that are even until the last. */
static void test_uneven(void **state) {
    (void)state;
    enum { N = 9 };
    static const int place_of[] = {0, 1, 3}, count = 3, n = N;
    const shape s = {CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 0, 1, 0};
    float a[4 * N * N], b[4 * N * N], c[4 * N * N];
    const float *as[3], *bs[3];
    float *cs[3];
    for (int i = 0; i < 4 * N * N; i++) {
        a[i] = test_number(), b[i] = test_number();
    }
    for (int which = 0; which < 3; which++) {
        for (int i = 0; i < count; i++) {
            as[i] = a + N * N * (which == 0 ? place_of[i] : i);
            bs[i] = b + N * N * (which == 1 ? place_of[i] : i);
            cs[i] = c + N * N * (which == 2 ? place_of[i] : i);
        }
        cblas_sgemm_batch(s.layout, &s.transa, &s.transb, &n, &n, &n, &s.alpha, as, &n, bs, &n, &s.beta, cs, &n, 1, &count);
        for (int i = 0; i < count; i++) {
            assert_product(&s, as[i], bs[i], cs[i], cs[i]);
        }
    }
}

static void test_nothing(void **state) {
    (void)state;
    float c[4] = {1, 2, 3, 4};
    cblas_sgemm_batch(CblasRowMajor, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL);
    cblas_sgemm_batch_strided(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1, NULL, 2, 4, NULL, 2, 4, 0, c, 2, 4, 0);
    assert_true(c[0] == 1 && c[3] == 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_groups), cmocka_unit_test(test_strided),
                                       cmocka_unit_test(test_backwards), cmocka_unit_test(test_uneven),
                                       cmocka_unit_test(test_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
