/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cblas_beside.c - the library in one process with another BLAS of the same names: each handle gives its own functions,
 * whichever was opened first and for all to see; both compute; closing and opening again does no harm. Skipped where there is no
 * other BLAS.
 */
#include "cblas_test.h"

#include <dlfcn.h>
#include <stdio.h>

typedef void gemm(int layout, int transa, int transb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                  int ldb, float beta, float *c, int ldc);
typedef void strided(int layout, int transa, int transb, int m, int n, int k, float alpha, const float *a, int lda, int stridea,
                     const float *b, int ldb, int strideb, float beta, float *c, int ldc, int stridec, int count);

static void *open_other(void) {
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so", "libblis.so.4", "libcblas.so.3", "libblas.so.3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *const library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
        if (library != NULL && dlsym(library, "cblas_sgemm") != NULL) {
            return library;
        }
    }
    return NULL;
}

static gemm *gemm_of(void *library) {
    gemm *f;
    *(void **)&f = dlsym(library, "cblas_sgemm");
    assert_non_null(f);
    return f;
}

static void assert_computes(gemm *f) {
    const shape s = {CblasColMajor, CblasNoTrans, CblasTrans, 20, 30, 40, 0, 1, 0};
    float *const a = make_matrix(&s, s.transa, 20, 40), *const b = make_matrix(&s, s.transb, 40, 30), *const c = make_c(&s);
    float *const old = copy_of(c, 600);
    f(s.layout, s.transa, s.transb, 20, 30, 40, 1, a, 20, b, 30, 0, c, 20);
    assert_product(&s, a, b, old, c);
    free(a), free(b), free(c), free(old);
}

/* Its own functions call each other, not those of the library that stands first in the process. */
static void assert_batch_computes(void *library) {
    strided *f;
    *(void **)&f = dlsym(library, "cblas_sgemm_batch_strided");
    assert_non_null(f);
    float a[2 * 40], b[2 * 40], c[2];
    for (int i = 0; i < 80; i++) {
        a[i] = 1, b[i] = (float)(1 + i / 40);
    }
    f(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 40, 1, a, 40, 40, b, 1, 40, 0, c, 1, 1, 2);
    assert_true(c[0] == 40 && c[1] == 80);
}

static void test_beside(void **state) {
    (void)state;
    void *const other = open_other();
    if (other == NULL) {
        print_message("skipped: no other BLAS with cblas_sgemm is here\n");
        skip();
    }
    gemm *const theirs = gemm_of(other);
    for (int i = 0; i < 3; i++) {
        void *const ours = dlopen(RFT_TEST_CBLAS, RTLD_NOW | (i == 1 ? RTLD_GLOBAL : RTLD_LOCAL));
        if (ours == NULL) {
            fail_msg("%s", dlerror());
        }
        assert_true(gemm_of(ours) != theirs);
        assert_true(gemm_of(other) == theirs);
        assert_computes(gemm_of(ours));
        assert_computes(theirs);
        assert_batch_computes(ours);
        assert_int_equal(dlclose(ours), 0);
    }
    dlclose(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
