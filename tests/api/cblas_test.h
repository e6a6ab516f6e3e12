/* SPDX-License-Identifier: Apache-2.0
 *
 * cblas_test.h - what the tests of librooftile_cblas share: matrices whose padding is NaN, and products by their definition in
 * f64, in the words of the CBLAS interface. Include it once; public headers only.
 */
#ifndef RFT_TESTS_API_CBLAS_TEST_H
#define RFT_TESTS_API_CBLAS_TEST_H

#include "rooftile_cblas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    CBLAS_LAYOUT layout;
    CBLAS_TRANSPOSE transa, transb;
    int m, n, k, pad; /* pad: elements between rows or columns, of all three */
    float alpha, beta;
} shape;

/* Rows of its storage, and how long one is, without pad. */
static inline bool by_rows(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans) {
    return (layout == CblasRowMajor) != (trans != CblasNoTrans);
}

/* The leading dimension of an operand op(M) of rows x columns. */
static inline int ld_of(const shape *s, CBLAS_TRANSPOSE trans, int rows, int columns) {
    const int row = by_rows(s->layout, trans) ? columns : rows;
    return (row > 1 ? row : 1) + s->pad;
}

static inline int64_t size_of(const shape *s, CBLAS_TRANSPOSE trans, int rows, int columns) {
    return (int64_t)ld_of(s, trans, rows, columns) * (by_rows(s->layout, trans) ? rows : columns);
}

static inline int64_t place(const shape *s, CBLAS_TRANSPOSE trans, int rows, int columns, int i, int j) {
    const int64_t ld = ld_of(s, trans, rows, columns);
    return by_rows(s->layout, trans) ? i * ld + j : j * ld + i;
}

/* Numbers of both signs that bf16 holds exactly. */
static inline float test_number(void) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)((int)(state >> 24) - 128) / 64.0f;
}

/* op(M) of random numbers, NaN between its rows; exactly as long as it must be, so that a sanitizer sees any step beyond. */
static inline float *make_matrix(const shape *s, CBLAS_TRANSPOSE trans, int rows, int columns) {
    const int64_t size = size_of(s, trans, rows, columns);
    float *const m = malloc((size_t)size * sizeof *m + 1);
    for (int64_t i = 0; i < size; i++) {
        m[i] = NAN;
    }
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            m[place(s, trans, rows, columns, i, j)] = test_number();
        }
    }
    return m;
}

static inline uint16_t *to_bf16(const float *from, int64_t count) {
    uint16_t *const to = malloc((size_t)count * sizeof *to + 1);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        to[i] = (uint16_t)(bits >> 16);
    }
    return to;
}

/* got is C after, old C before the call; a and b what f32 holds. What lies between the columns of C must be as it was. */
static inline void assert_product(const shape *s, const float *a, const float *b, const float *old, const float *got) {
    for (int i = 0; i < s->m; i++) {
        for (int j = 0; j < s->n; j++) {
            double sum = 0, size = 0;
            for (int l = 0; l < s->k && s->alpha != 0; l++) {
                const double t = (double)a[place(s, s->transa, s->m, s->k, i, l)] * b[place(s, s->transb, s->k, s->n, l, j)];
                sum += t;
                size += fabs(t);
            }
            const int64_t at = place(s, CblasNoTrans, s->m, s->n, i, j);
            const double add = s->beta == 0 ? 0 : (double)s->beta * old[at], want = s->alpha * sum + add;
            const double limit = (s->k + 4) * 0x1p-23 * (fabs(s->alpha * size) + fabs(add)) + 0x1p-120;
            if (!(fabs(got[at] - want) <= limit)) {
                fail_msg("layout %d, transposes %d %d, %d x %d x %d, pad %d, alpha %g, beta %g: C[%d][%d] = %g, not %g",
                         (int)s->layout, (int)s->transa, (int)s->transb, s->m, s->n, s->k, s->pad, (double)s->alpha,
                         (double)s->beta, i, j, (double)got[at], want);
            }
        }
    }
}

static inline void assert_padding(const shape *s, const float *old, const float *got) {
    const bool rows = s->layout == CblasRowMajor;
    const int lines = rows ? s->m : s->n, line = rows ? s->n : s->m, ld = ld_of(s, CblasNoTrans, s->m, s->n);
    for (int i = 0; i < lines && line < ld; i++) {
        assert_memory_equal(got + (int64_t)i * ld + line, old + (int64_t)i * ld + line, (size_t)(ld - line) * sizeof *got);
    }
}

/* C of numbers, or of NaN where beta says that nobody reads it. */
static inline float *make_c(const shape *s) {
    float *const c = make_matrix(s, CblasNoTrans, s->m, s->n);
    const int64_t size = size_of(s, CblasNoTrans, s->m, s->n);
    for (int64_t i = 0; i < size && s->beta == 0; i++) {
        c[i] = NAN;
    }
    return c;
}

static inline float *copy_of(const float *from, int64_t count) {
    float *const to = malloc((size_t)count * sizeof *to + 1);
    memcpy(to, from, (size_t)count * sizeof *to);
    return to;
}

#endif
