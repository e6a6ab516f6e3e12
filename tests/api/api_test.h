/* SPDX-License-Identifier: Apache-2.0
 *
 * api_test.h - what the tests of the public API share: a context whose memory is counted, a good layer to spoil,
 * and the check of a refusal. Included once by each test program; public headers only.
 */
#ifndef RFT_TESTS_API_API_TEST_H
#define RFT_TESTS_API_API_TEST_H

#include "rooftile.h"
#include "rooftile_analysis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory: counts what is held, and fails on request ---- */

typedef struct rft_test_memory {
    atomic_llong bytes, blocks; /* held now */
    atomic_int until_failure;   /* allocations that still succeed; below 0: all do */
} rft_test_memory;

static inline void *rft_test_alloc(void *user, size_t bytes, size_t align) {
    rft_test_memory *const memory = user;
    if (atomic_load(&memory->until_failure) == 0) {
        return NULL;
    }
    if (atomic_load(&memory->until_failure) > 0) {
        atomic_fetch_sub(&memory->until_failure, 1);
    }
    void *p = NULL;
    if (posix_memalign(&p, align, bytes) != 0) {
        return NULL;
    }
    memset(p, 0xa5, bytes); /* nothing may count on zeros */
    atomic_fetch_add(&memory->bytes, (long long)bytes);
    atomic_fetch_add(&memory->blocks, 1);
    return p;
}

static inline void rft_test_release(void *user, void *p, size_t bytes) {
    rft_test_memory *const memory = user;
    atomic_fetch_sub(&memory->bytes, (long long)bytes);
    atomic_fetch_sub(&memory->blocks, 1);
    free(p);
}

static inline rft_ctx_options rft_test_options(rft_test_memory *memory) {
    rft_ctx_options o = rft_ctx_options_init();
    o.threads = 2;
    o.cache_dir = "/nonexistent";
    if (memory != NULL) {
        atomic_store(&memory->until_failure, -1);
        o.alloc = rft_test_alloc;
        o.release = rft_test_release;
        o.user = memory;
    }
    return o;
}

/* ---- outcomes ---- */

static inline void rft_test_ok(rft_status status, const rft_error *err, const char *file, int line) {
    if (status != RFT_OK) {
        print_error("%s: %s\n", rft_status_name(status), err->message);
        _fail(file, line);
    }
}

/* A refusal has the status, the same one in err, and names what was wrong. */
static inline void rft_test_refused(rft_status want, const char *part, rft_status got, const rft_error *err, const char *file,
                                    int line) {
    if (got != want || err->status != want || strstr(err->message, part) == NULL || strlen(err->message) >= sizeof err->message) {
        print_error("got %s, \"%.239s\"; wanted %s with \"%s\"\n", rft_status_name(got), err->message, rft_status_name(want),
                    part);
        _fail(file, line);
    }
}

static rft_error test_err; /* of the call under test */

#define OK(call) rft_test_ok((call), &test_err, __FILE__, __LINE__)
#define REFUSED(want, part, call)                                                                                                \
    do {                                                                                                                         \
        memset(&test_err, 0x5a, sizeof test_err);                                                                                \
        const rft_status rft_test_got = (call);                                                                                  \
        rft_test_refused((want), (part), rft_test_got, &test_err, __FILE__, __LINE__);                                           \
    } while (0)

/* ---- a small layer ---- */

enum { TEST_M = 5, TEST_N = 48, TEST_K = 40 };

static inline rft_weight_desc rft_test_weight_desc(void) {
    rft_weight_desc w = rft_weight_desc_init();
    w.elem = RFT_F32;
    w.n = TEST_N;
    w.k = TEST_K;
    return w;
}

static inline rft_linear_desc rft_test_desc(void) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = d.y = RFT_F32;
    d.w = rft_test_weight_desc();
    d.m_min = 1;
    d.m_max = TEST_M;
    return d;
}

/* Small numbers of both signs, exact in every float type; the same for the same start. */
static inline void rft_test_fill(float *dst, size_t count, unsigned start) {
    for (size_t i = 0; i < count; i++) {
        start = start * 1664525u + 1013904223u;
        dst[i] = (float)((int)(start >> 24) - 128) / 64.0f;
    }
}

/* Y = X W^T by the definition, W[n][k] and all dense. */
static inline void rft_test_product(const float *x, const float *w, float *y, int64_t m, int64_t n, int64_t k) {
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++) {
                sum += (double)x[i * k + l] * (double)w[j * k + l];
            }
            y[i * n + j] = (float)sum;
        }
    }
}

static inline void *rft_test_storage(size_t bytes) { return aligned_alloc(64, (bytes + 64) / 64 * 64); }

/* A packed weight and the storage under it. */
typedef struct rft_test_packed {
    rft_weight *weight;
    void *storage;
    size_t bytes;
} rft_test_packed;

static inline rft_test_packed rft_test_pack(rft_ctx *ctx, const rft_weight_desc *desc, const void *q) {
    rft_test_packed p = {0};
    rft_weight_src src = rft_weight_src_init();
    src.q = q;
    OK(rft_weight_bytes(ctx, desc, &p.bytes, &test_err));
    p.storage = rft_test_storage(p.bytes);
    OK(rft_weight_pack(ctx, desc, &src, p.storage, NULL, &p.weight, &test_err));
    return p;
}

static inline void rft_test_unpack(rft_test_packed *p) {
    rft_weight_free(p->weight);
    free(p->storage);
}

static inline void rft_test_equal(const float *got, const float *want, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const double limit = 1e-4 + 1e-5 * (double)(want[i] < 0 ? -want[i] : want[i]);
        const double off = (double)got[i] - (double)want[i];
        if (!(off <= limit && off >= -limit)) {
            fail_msg("element %zu is %g, not %g", i, (double)got[i], (double)want[i]);
        }
    }
}

#endif
