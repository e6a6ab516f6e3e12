/* SPDX-License-Identifier: Apache-2.0
 *
 * test_codes.c - low-bit weights: unpacking gives the stored numbers to the bit for every format, bytes lie where
 * docs/formats/packed-weight.md says, damaged scales stay in their group, and descriptions that break a rule are refused by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "codes_run.h"
#include "cpu/packing.h"
#include "format/format.h"
#include "format/quant.h"
#include "problem/stored.h"
#include "rooftile_analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_N = 37, MOST_K = 768, HEADER = 128, MOST = MOST_N * MOST_K };

static rft_ctx *ctx;
static rft_error err;
static unsigned char codes[4 * MOST], scales[4 * MOST], zeros[MOST];
static float unpacked[MOST], stored[MOST_K];

static int make_all(void **state) {
    (void)state;
    rft_ctx_options o = rft_ctx_options_init();
    o.threads = 3;
    return rft_ctx_create("cpu", &o, &ctx, NULL) == RFT_OK ? 0 : -1;
}

static int free_all(void **state) {
    (void)state;
    rft_ctx_free(ctx);
    return 0;
}

static rft_weight_desc describe(rft_type elem, int64_t n, int64_t k) {
    rft_weight_desc d = rft_weight_desc_init();
    d.elem = elem;
    d.n = n;
    d.k = k;
    return d;
}

typedef struct packed {
    unsigned char *storage;
    size_t bytes;
    rft_weight *weight;
} packed;

static packed pack(const rft_weight_desc *d) {
    packed p = {0};
    rft_weight_src src = rft_weight_src_init();
    src.q = codes;
    src.scale = d->scale != 0 ? scales : NULL;
    src.zero = d->zero != 0 ? zeros : NULL;
    assert_int_equal(rft_weight_bytes(ctx, d, &p.bytes, &err), RFT_OK);
    p.storage = aligned_alloc(64, (p.bytes + 63) / 64 * 64);
    memset(p.storage, 0xff, p.bytes);
    assert_int_equal(rft_weight_pack(ctx, d, &src, p.storage, NULL, &p.weight, &err), RFT_OK);
    return p;
}

static void drop(packed *p) {
    rft_weight_free(p->weight);
    free(p->storage);
}

static bool same(float a, float b) { return a == b || (isnan(a) && isnan(b)); }

/* Every weight, packed and opened again, is what the format's own decoder makes of it. */
static void round_trip(const rft_weight_desc *d) {
    packed p = pack(d);
    rft_weight *again = NULL;
    assert_int_equal(rft_weight_open(ctx, p.storage, p.bytes, &again, &err), RFT_OK);
    assert_int_equal(rft_weight_unpack(again, unpacked, 0, &err), RFT_OK);
    rft__matrix w;
    assert_int_equal(rft__matrix_make(&w, d, "d", &err), RFT_OK);
    const rft__stored_w from = {.q = codes, .scale = scales, .zero = zeros};
    for (int64_t n = 0; n < d->n; n++) {
        rft__stored_row(&w, &from, 0, n, false, stored);
        for (int64_t k = 0; k < d->k; k++) {
            if (!same(unpacked[n * d->k + k], stored[k])) {
                fail_msg("%s n %lld k %lld: [%lld][%lld] is %.9g, not %.9g", rft_type_name(d->elem), (long long)d->n,
                         (long long)d->k, (long long)n, (long long)k, (double)unpacked[n * d->k + k], (double)stored[k]);
            }
        }
    }
    rft_weight_free(again);
    drop(&p);
}

static void test_every_block_format(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 15, 16, 17, 37};
    int formats = 0;
    for (uint32_t i = 0; rft__format_at(i) != NULL; i++) {
        const rft__format *const f = rft__format_at(i);
        if (rft__quant_find(f->type) == NULL || f->block_elements < 32) {
            continue;
        }
        formats++;
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            for (int64_t blocks = 1; blocks <= 3; blocks++) {
                const rft_weight_desc d = describe(f->type, rows[r], blocks * f->block_elements);
                assert_int_equal(rft_fill_random(f->type, codes, d.n * d.k, (uint64_t)(i + r), &err), RFT_OK);
                round_trip(&d);
            }
        }
    }
    assert_int_equal(formats, 14);
}

/* Bits of any kind in codes and scales: NaN, Inf, negative scales, subnormals. */
static void test_any_bits(void **state) {
    (void)state;
    for (uint32_t i = 0; rft__format_at(i) != NULL; i++) {
        const rft__format *const f = rft__format_at(i);
        if (rft__quant_find(f->type) != NULL && f->block_elements >= 32) {
            const rft_weight_desc d = describe(f->type, 33, 512);
            assert_int_equal(rft_fill_random(RFT_U8, codes, (int64_t)sizeof codes, i, &err), RFT_OK);
            round_trip(&d);
        }
    }
}

static void test_scales_apart(void **state) {
    (void)state;
    static const rft_type elems[] = {RFT_I8, RFT_U8, RFT_I4, RFT_U4, RFT_E2M1, RFT_NF4, RFT_FP4, RFT_E4M3, RFT_E5M2};
    static const rft_type types[] = {RFT_F32, RFT_F16, RFT_BF16};
    static const int64_t depths[] = {1, 31, 32, 97, 256, 300, 513}, groups[] = {8, 16, 24, 32, 40, 64, 96, 128, 256, 0, 1000};
    for (int i = 0; i < 9 * 3 * 7 * 11 * 2; i++) {
        rft_weight_desc d = describe(elems[i % 9], 19, depths[i / 27 % 7]);
        const bool is_signed = d.elem == RFT_I8 || d.elem == RFT_I4, has_zero = is_signed || d.elem == RFT_U8 || d.elem == RFT_U4;
        d.scale = types[i / 9 % 3];
        d.group_k = groups[i / 189 % 11];
        d.group_n = i % 4;
        d.zero = i % 2 == 0 || !has_zero ? (rft_type)0 : is_signed ? RFT_I8 : RFT_U8;
        assert_int_equal(rft_fill_random(RFT_U8, codes, MOST, (uint64_t)i, &err), RFT_OK);
        assert_int_equal(rft_fill_random(RFT_U8, zeros, MOST, (uint64_t)i + 1, &err), RFT_OK);
        assert_int_equal(rft_fill_random(d.scale, scales, 19 * 128, (uint64_t)i + 2, &err), RFT_OK);
        round_trip(&d);
    }
}

/* q4_0, n = 17, k = 64: panel 1, column 0. */
static void test_documented_bytes(void **state) {
    (void)state;
    const rft_weight_desc d = describe(RFT_GGUF_Q4_0, 17, 64);
    assert_int_equal(rft_fill_random(RFT_GGUF_Q4_0, codes, 17 * 64, 5, &err), RFT_OK);
    packed p = pack(&d);
    assert_int_equal(p.bytes, HEADER + 2 * (64 + 2 * 256));
    const unsigned char *panel = p.storage + HEADER + 64 + 2 * 256, *row = codes + 16 * 36;
    for (int group = 0; group < 2; group++) {
        assert_memory_equal(panel + 32 * group, row + 18 * group, 2);
        for (int k = 0; k < 32; k++) {
            const unsigned char byte = panel[64 + 256 * group + 64 * (k / 8) + k % 4];
            const unsigned want = row[18 * group + 2 + k % 16] >> (k < 16 ? 0 : 4) & 15;
            assert_int_equal(byte >> (k / 4 % 2 != 0 ? 4 : 0) & 15, want);
        }
    }
    drop(&p);
}

/* A scale of NaN, Inf or 0 does to y what it does to the weights, in both ways to multiply. */
static void damaged(rft_compute compute, uint16_t scale, double want) {
    enum { N = 20, K = 256 };
    rft_linear_desc d = rft_linear_desc_init();
    static float x[K], y[N], z[N];
    static unsigned char blocks[N * K / 32 * 34];
    d.x = d.y = RFT_F32;
    d.w = describe((rft_type)(256 + 8), N, K);
    d.m_min = d.m_max = 1;
    d.compute = compute;
    for (int i = 0; i < K; i++) {
        x[i] = 1.0f + (float)i;
    }
    memset(blocks, 1, sizeof blocks);
    for (int b = 0; b < N * K / 32; b++) {
        memcpy(blocks + 34 * b, &(uint16_t){0x3c00}, 2);
    }
    for (int pass = 0; pass < 2; pass++) {
        memcpy(codes, blocks, sizeof blocks);
        if (pass == 1) {
            memcpy(codes + (7 * (K / 32) + 3) * 34, &scale, 2);
        }
        packed p = pack(&d.w);
        rft_plan *plan = NULL;
        rft_plan_info info = rft_plan_info_init();
        assert_int_equal(rft_plan_create(ctx, &d, &plan, &err), RFT_OK);
        assert_int_equal(rft_plan_get_info(plan, 1, &info), RFT_OK);
        rft_linear_args a = rft_linear_args_init();
        a.m = 1;
        a.x = x;
        a.y = pass == 0 ? z : y;
        a.weight = p.weight;
        a.workspace = aligned_alloc(64, (info.workspace + 63) / 64 * 64 + 64);
        a.workspace_bytes = info.workspace;
        assert_int_equal(rft_linear_run(plan, &a, &err), RFT_OK);
        free(a.workspace);
        rft_plan_free(plan);
        drop(&p);
    }
    for (int n = 0; n < N; n++) {
        assert_true(n == 7 ? same(y[n], (float)want) : y[n] == z[n]);
    }
}

static void test_damaged_scales(void **state) {
    (void)state;
    damaged(RFT_COMPUTE_AUTO, 0x7c00, (double)INFINITY);
    damaged(RFT_COMPUTE_AUTO, 0xfc00, (double)-INFINITY);
    damaged(RFT_COMPUTE_AUTO, 0x7e00, (double)NAN);
    damaged(RFT_COMPUTE_AUTO, 0x0000, 32896.0 - (97 + 128) * 16);
    damaged(RFT_COMPUTE_I8, 0x7c00, (double)INFINITY);
    damaged(RFT_COMPUTE_I8, 0x7e00, (double)NAN);
}

static void run(const rft_weight_desc *w, rft_compute compute, uint32_t flags, const void *q, int64_t m, const float *x,
                float *y) {
    rft_linear_desc d = rft_linear_desc_init();
    rft_weight_src src = rft_weight_src_init();
    d.x = d.y = RFT_F32;
    d.w = *w;
    d.m_min = d.m_max = m;
    d.compute = compute;
    d.flags = flags;
    src.q = q;
    src.scale = w->scale != 0 ? scales : NULL;
    src.zero = w->zero != 0 ? zeros : NULL;
    codes_run(ctx, &d, &src, m, x, y);
}

/* What a kernel reads of its stack before it wrote there is NaN, if this was called last. */
static __attribute__((noinline)) void spoil_stack(void) {
    volatile unsigned char junk[64 << 10];
    for (size_t i = 0; i < sizeof junk; i++) {
        junk[i] = 0xff;
    }
}

/* Groups of 16 k and a last block of 32 of which less than half is there: its second half has no scale. Sums are whole
 * numbers, as every x is 127 or -127 and scales are 1. */
static void test_half_a_block(void **state) {
    (void)state;
    enum { N = 33, K = 70, GROUPS = 5 };
    static float x[K], y[N];
    rft_linear_desc d = rft_linear_desc_init();
    d.x = d.y = RFT_F32;
    d.w = describe(RFT_I4, N, K);
    d.w.scale = RFT_F16, d.w.zero = RFT_I8, d.w.group_n = 1, d.w.group_k = 16;
    d.m_min = d.m_max = 1;
    d.compute = RFT_COMPUTE_I8;
    for (int i = 0; i < N * K / 2; i++) {
        codes[i] = (unsigned char)(i * 37 + 11);
    }
    for (int i = 0; i < N * GROUPS; i++) {
        memcpy(scales + 2 * i, &(uint16_t){0x3c00}, 2);
        zeros[i] = (unsigned char)(i % 16 - 8);
    }
    for (int i = 0; i < K; i++) {
        x[i] = i % 3 == 0 ? -127.0f : 127.0f;
    }
    packed p = pack(&d.w);
    rft_plan *plan = NULL;
    rft_linear_args a = rft_linear_args_init();
    rft_plan_info info = rft_plan_info_init();
    assert_int_equal(rft_plan_create(ctx, &d, &plan, &err), RFT_OK);
    assert_int_equal(rft_plan_get_info(plan, 1, &info), RFT_OK);
    a.m = 1, a.x = x, a.y = y, a.weight = p.weight;
    a.workspace = aligned_alloc(64, (info.workspace + 63) / 64 * 64 + 64);
    a.workspace_bytes = info.workspace;
    spoil_stack();
    assert_int_equal(rft_linear_run(plan, &a, &err), RFT_OK);
    for (int n = 0; n < N; n++) {
        int sum = 0;
        for (int k = 0; k < K; k++) {
            const int code = codes[(n * K + k) / 2] >> (k % 2 * 4) & 15, value = code < 8 ? code : code - 16;
            sum += (int)x[k] * (value - (signed char)zeros[n * GROUPS + k / 16]);
        }
        assert_true(y[n] == (float)sum);
    }
    free(a.workspace);
    rft_plan_free(plan);
    drop(&p);
}

/* In batch-invariant plans the bits at every m are those of the same weights stored as f32. */
static void test_bits_of_f32(void **state) {
    (void)state;
    enum { N = 33, K = 768, M = 70 };
    static float x[M * K], wide[N * K], y[M * N], z[M * N];
    static const int numbers[] = {2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 20, 23, 39, 40};
    static const int64_t rows[] = {1, 3, 5, 17, 29, 70};
    assert_int_equal(rft_fill_random(RFT_F32, x, M * K, 3, &err), RFT_OK);
    for (size_t f = 0; f < sizeof numbers / sizeof *numbers; f++) {
        const rft_weight_desc d = describe((rft_type)(256 + numbers[f]), N, K), plain = describe(RFT_F32, N, K);
        assert_int_equal(rft_fill_random(d.elem, codes, N * K, f, &err), RFT_OK);
        packed p = pack(&d);
        assert_int_equal(rft_weight_unpack(p.weight, wide, 0, &err), RFT_OK);
        drop(&p);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            run(&d, RFT_COMPUTE_AUTO, RFT_BATCH_INVARIANT, codes, rows[i], x, y);
            run(&plain, RFT_COMPUTE_AUTO, RFT_BATCH_INVARIANT, wide, rows[i], x, z);
            assert_memory_equal(y, z, (size_t)(rows[i] * N) * sizeof *y);
        }
    }
}

/* k of X under one scale, as the plan says. */
static int64_t group_of_x(const rft_weight_desc *w) {
    rft_linear_desc d = rft_linear_desc_init();
    rft_plan_info info = rft_plan_info_init();
    rft_plan *plan = NULL;
    d.x = d.y = RFT_F32;
    d.w = *w;
    d.m_min = d.m_max = 3;
    d.compute = RFT_COMPUTE_I8;
    assert_int_equal(rft_plan_create(ctx, &d, &plan, &err), RFT_OK);
    assert_int_equal(rft_plan_get_info(plan, 3, &info), RFT_OK);
    rft_plan_free(plan);
    return info.group_x;
}

static rft_weight_desc grouped(rft_type elem, int64_t n, int64_t k, int64_t group) {
    rft_weight_desc d = describe(elem, n, k);
    d.scale = RFT_F16, d.group_n = 1, d.group_k = group;
    return d;
}

/* X is rounded by one scale for as many k as a scale of W serves, 32 to 256: one 127 in each of them makes whole numbers of
 * all, and y a whole number, exact at every m. */
static void test_groups_of_x(void **state) {
    (void)state;
    enum { N = 33, K = 300, M = 41 };
    static const int64_t groups[][2] = {{16, 32}, {32, 32}, {64, 64}, {96, 32}, {128, 128}, {256, 256}, {0, 256}};
    static const int64_t rows[] = {1, 2, 3, 5, 8, 9, 17, 41};
    static float x[M * K], y[M * N];
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        const rft_weight_desc d = grouped(RFT_I4, N, K, groups[i][0]);
        assert_int_equal(group_of_x(&d), groups[i][1]);
    }
    assert_int_equal(rft_fill_random(RFT_U8, codes, N * K, 9, &err), RFT_OK);
    for (int i = 0; i < N * 3; i++) {
        memcpy(scales + 2 * i, &(uint16_t){0x3c00}, 2);
    }
    for (int i = 0; i < M * K; i++) {
        x[i] = i % K % 128 == 40 ? 127.0f : (float)(i % 23 - 11);
    }
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        const rft_weight_desc d = grouped(RFT_I8, N, K, i % 2 ? 128 : 256);
        const int64_t m = rows[i / 2];
        run(&d, RFT_COMPUTE_I8, 0, codes, m, x, y);
        for (int64_t at = 0; at < m * N; at++) {
            int sum = 0;
            for (int k = 0; k < K; k++) {
                sum += (int)x[at / N * K + k] * (signed char)codes[at % N * K + k];
            }
            assert_true(y[at] == (float)sum);
        }
    }
}

/* In 8 bits too a row's bits depend on no other row, whether panels or strips serve, and one thread or three round X. */
static void test_bits_of_rows(void **state) {
    (void)state;
    enum { N = 49, K = 1280, M = 70 };
    static float x[M * K], y[M * N], z[N];
    const rft_weight_desc kinds[] = {describe(RFT_GGUF_Q4_0, N, K),         describe((rft_type)(256 + 12), N, K),
                                     describe((rft_type)(256 + 14), N, K),  describe((rft_type)(256 + 40), N, K),
                                     grouped(RFT_U4, N, K, 32),             grouped(RFT_I8, N, K, 64),
                                     grouped(RFT_I4, N, K, 128)};
    static const int64_t rows[] = {2, 4, 7, 16, 33, 70};
    assert_int_equal(rft_fill_random(RFT_F32, x, M * K, 3, &err), RFT_OK);
    for (size_t f = 0; f < sizeof kinds / sizeof *kinds; f++) {
        rft_weight_desc d = kinds[f];
        d.zero = d.elem == RFT_U4 ? RFT_U8 : (rft_type)0;
        assert_int_equal(rft_fill_random(d.elem, codes, N * K, f, &err), RFT_OK);
        assert_int_equal(rft_fill_random(RFT_F16, scales, N * K / 32, f + 1, &err), RFT_OK);
        memset(zeros, 9, N * K / 32);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            run(&d, RFT_COMPUTE_I8, 0, codes, rows[i], x, y);
            const int64_t row = rows[i] - 1;
            run(&d, RFT_COMPUTE_I8, 0, codes, 1, x + row * K, z);
            assert_memory_equal(y + row * N, z, sizeof z);
        }
    }
}

/* A plan's workspace is enough for each of its m, whether X in 8 bits is shared by all threads (from m = 512 on) or not. */
static void test_workspace_of_every_m(void **state) {
    (void)state;
    enum { N = 64, K = 64, M = 520, GUARD = 256 };
    static float x[M * K], y[M * N];
    rft_linear_desc d = rft_linear_desc_init();
    rft_linear_args a = rft_linear_args_init();
    rft_plan_info info = rft_plan_info_init();
    rft_plan *plan = NULL;
    d.x = d.y = RFT_F32;
    d.w = describe(RFT_GGUF_Q4_0, N, K);
    d.m_min = 1, d.m_max = M;
    d.compute = RFT_COMPUTE_I8;
    assert_int_equal(rft_fill_random(RFT_F32, x, M * K, 3, &err), RFT_OK);
    assert_int_equal(rft_fill_random(RFT_GGUF_Q4_0, codes, N * K, 4, &err), RFT_OK);
    packed p = pack(&d.w);
    assert_int_equal(rft_plan_create(ctx, &d, &plan, &err), RFT_OK);
    assert_int_equal(rft_plan_get_info(plan, M, &info), RFT_OK);
    unsigned char *const workspace = aligned_alloc(64, (info.workspace + 63) / 64 * 64 + GUARD);
    memset(workspace, 0x5a, info.workspace + GUARD);
    a.x = x, a.y = y, a.weight = p.weight, a.workspace = workspace, a.workspace_bytes = info.workspace;
    for (a.m = 1; a.m <= M; a.m += a.m < 500 ? 37 : 1) {
        assert_int_equal(rft_linear_run(plan, &a, &err), RFT_OK);
        for (int i = 0; i < GUARD; i++) {
            assert_int_equal(workspace[info.workspace + (size_t)i], 0x5a);
        }
    }
    free(workspace);
    rft_plan_free(plan);
    drop(&p);
}

#define REFUSED(status, part, change)                                             \
    do {                                                                          \
        rft_weight_desc d = describe(RFT_I4, 8, 64);                              \
        d.scale = RFT_F16;                                                        \
        d.group_n = 1;                                                            \
        d.group_k = 32;                                                           \
        size_t bytes = 0;                                                         \
        change;                                                                   \
        assert_int_equal(rft_weight_bytes(ctx, &d, &bytes, &err), status);        \
        if (strstr(err.message, part) == NULL) {                                  \
            fail_msg("\"%s\" lacks \"%s\"", err.message, part);                   \
        }                                                                         \
    } while (0)

static void test_refusals(void **state) {
    (void)state;
    REFUSED(RFT_E_ARG, "desc.scale = 0 (?)", d.scale = (rft_type)0);
    REFUSED(RFT_E_ARG, "desc.scale = 6 (i8): scales of elem i4 are f32, f16 or bf16", d.scale = RFT_I8);
    REFUSED(RFT_E_ARG, "desc.zero = 7 (u8): zero points of elem i4 are i8", d.zero = RFT_U8);
    REFUSED(RFT_E_ARG, "desc.group_k = 12 is not a multiple of 8 and less than k = 64", d.group_k = 12);
    REFUSED(RFT_E_ARG, "desc.group_n = -1", d.group_n = -1);
    REFUSED(RFT_E_ARG, "ld = 65", d.ld = 65);
    REFUSED(RFT_E_UNSUPPORTED, "order = 1", d.order = RFT_MN_CONTIGUOUS);
    REFUSED(RFT_E_UNSUPPORTED, "must be K-contiguous and packed", d.flags = RFT_WEIGHT_VIEW);
    REFUSED(RFT_E_ARG, "has no scales", d.elem = RFT_GGUF_Q4_0);
    REFUSED(RFT_E_ARG, "k = 48", (d = describe(RFT_GGUF_Q4_0, 8, 48)));
    REFUSED(RFT_E_UNSUPPORTED, "weights here are", (d = describe((rft_type)(256 + 16), 8, 256)));
    rft_weight_desc d = describe(RFT_I4, 8, 64);
    d.scale = RFT_F16;
    d.zero = RFT_I8;
    rft_weight_src src = rft_weight_src_init();
    rft_weight *w = NULL;
    src.q = codes;
    assert_int_equal(rft_weight_pack(ctx, &d, &src, codes, NULL, &w, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "src.scale is NULL"));
    src.scale = scales;
    assert_int_equal(rft_weight_pack(ctx, &d, &src, codes, NULL, &w, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "src.zero is NULL"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_block_format), cmocka_unit_test(test_any_bits),       cmocka_unit_test(test_scales_apart),
        cmocka_unit_test(test_documented_bytes),   cmocka_unit_test(test_damaged_scales), cmocka_unit_test(test_bits_of_f32),
        cmocka_unit_test(test_groups_of_x),        cmocka_unit_test(test_bits_of_rows),
        cmocka_unit_test(test_workspace_of_every_m),
        cmocka_unit_test(test_half_a_block),       cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
