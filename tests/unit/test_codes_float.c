/* SPDX-License-Identifier: Apache-2.0
 *
 * test_codes_float.c - low-bit weights whose codes or scales are floats (E4M3, E5M2, NF4, FP4, NVFP4 with a number of all), and
 * those whose groups are not in the order of k: unpacked and multiplied to the bit, at every ISA level of this machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "codes_run.h"
#include "format/format.h"
#include "problem/stored.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_N = 256, MOST_K = 601, MOST_M = 70, MOST_BATCH = 2, HEADER = 128 };

static const char *const levels[] = {"ref", "avx2", "avx512"};
enum { LEVELS = 3 };

static rft_ctx *ctx[LEVELS]; /* NULL where the level does not run here */
static rft_error err;
static unsigned char codes[MOST_BATCH * MOST_N * MOST_K];
static float scales[MOST_BATCH * MOST_N * MOST_K / 8];
static float wide[MOST_BATCH * MOST_N * MOST_K], unpacked[MOST_BATCH * MOST_N * MOST_K];
static float x[MOST_BATCH * MOST_M * MOST_K], y[MOST_BATCH * MOST_M * MOST_N], z[MOST_BATCH * MOST_M * MOST_N];

static int make_all(void **state) {
    (void)state;
    for (int i = 0; i < LEVELS; i++) {
        ctx[i] = run_context(levels[i], 3);
    }
    return ctx[0] != NULL ? 0 : -1;
}

static int free_all(void **state) {
    (void)state;
    for (int i = 0; i < LEVELS; i++) {
        rft_ctx_free(ctx[i]);
    }
    return 0;
}

static rft_weight_desc describe(rft_type elem, int64_t n, int64_t k, rft_type scale, int64_t group_n, int64_t group_k) {
    rft_weight_desc d = rft_weight_desc_init();
    d.elem = elem;
    d.n = n;
    d.k = k;
    d.scale = scale;
    d.group_n = group_n;
    d.group_k = group_k;
    return d;
}

static rft_weight_src source(const rft_weight_desc *d, const float *global, const int32_t *g_idx) {
    rft_weight_src s = rft_weight_src_init();
    s.q = codes;
    s.scale = d->scale != 0 ? scales : NULL;
    s.global_scale = global;
    s.g_idx = g_idx;
    return s;
}

static bool same(float a, float b) { return a == b || (isnan(a) && isnan(b)); }

/* The numbers of W by their definition, and that packing keeps them. */
static void decode(rft_ctx *c, const rft_weight_desc *d, const rft_weight_src *s) {
    rft__matrix w;
    rft_weight *weight = NULL, *again = NULL;
    size_t bytes = 0;
    assert_int_equal(rft__matrix_make(&w, d, "d", &err), RFT_OK);
    const rft__stored_w from = {s->q, s->scale, s->zero, s->global_scale, s->g_idx};
    for (int64_t row = 0; row < w.n * w.batch; row++) {
        rft__stored_row(&w, &from, row / w.n, row % w.n, false, wide + row * w.k);
    }
    assert_int_equal(rft_weight_bytes(c, d, &bytes, &err), RFT_OK);
    void *const storage = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(storage, 0xff, bytes);
    assert_int_equal(rft_weight_pack(c, d, s, storage, NULL, &weight, &err), RFT_OK);
    assert_int_equal(rft_weight_open(c, storage, bytes, &again, &err), RFT_OK);
    assert_int_equal(rft_weight_unpack(again, unpacked, 0, &err), RFT_OK);
    for (int64_t i = 0; i < w.n * w.batch * w.k; i++) {
        if (!same(unpacked[i], wide[i])) {
            fail_msg("%s [%lld][%lld] is %.9g, not %.9g", rft_type_name(d->elem), (long long)(i / w.k), (long long)(i % w.k),
                     (double)unpacked[i], (double)wide[i]);
        }
    }
    rft_weight_free(weight);
    rft_weight_free(again);
    free(storage);
}

static void run(rft_ctx *c, const rft_weight_desc *w, const rft_weight_src *s, int64_t m, rft_order x_order, const float *from,
                float *to) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = d.y = RFT_F32;
    d.x_order = x_order;
    d.w = *w;
    d.m_min = d.m_max = m;
    d.batch = w->batch;
    d.flags = RFT_BATCH_INVARIANT;
    codes_run(c, &d, s, m, from, to);
}

/* At every level and m the bits of y are those of the same weights stored as f32. */
static void prove(const rft_weight_desc *d, const float *global, const int32_t *g_idx) {
    static const int64_t rows[] = {1, 2, 5, 17, MOST_M};
    const rft_weight_src s = source(d, global, g_idx);
    for (int l = 0; l < LEVELS; l++) {
        if (ctx[l] == NULL) {
            continue;
        }
        decode(ctx[l], d, &s);
        rft_weight_desc plain = describe(RFT_F32, d->n, d->k, (rft_type)0, 0, 0);
        rft_weight_src p = rft_weight_src_init();
        plain.batch = d->batch;
        p.q = wide;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const rft_order order = i % 2 == 0 ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS;
            run(ctx[l], d, &s, rows[i], order, x, y);
            run(ctx[l], &plain, &p, rows[i], order, x, z);
            for (int64_t j = 0; j < rows[i] * d->n * (d->batch != 0 ? d->batch : 1); j++) {
                if (!same(y[j], z[j])) {
                    fail_msg("%s %s, m %lld: y[%lld] is %.9g, not %.9g", levels[l], rft_type_name(d->elem), (long long)rows[i],
                             (long long)j, (double)y[j], (double)z[j]);
                }
            }
        }
    }
}

static void fill_x(void) { assert_int_equal(rft_fill_random(RFT_F32, x, MOST_BATCH * MOST_M * MOST_K, 3, &err), RFT_OK); }

/* Row n is of code n throughout; x has no 0, so that Inf stays Inf. */
static void test_every_code(void **state) {
    (void)state;
    static const rft_type elems[] = {RFT_E4M3, RFT_E5M2};
    enum { N = 256, K = 40 };
    for (int i = 0; i < MOST_M * K; i++) {
        x[i] = 1.0f + (float)(i % 7) * 0.25f;
    }
    for (int e = 0; e < 2; e++) {
        const rft_weight_desc d = describe(elems[e], N, K, RFT_F32, 1, 0);
        for (int i = 0; i < N * K; i++) {
            codes[i] = (unsigned char)(i / K);
        }
        for (int n = 0; n < N; n++) {
            scales[n] = n % 3 == 0 ? 1.0f : n % 3 == 1 ? 0x1.234568p-30f : -0x1.fffffep+40f;
        }
        prove(&d, NULL, NULL);
    }
}

/* Of tensors, of rows, of groups of k, and of blocks as DeepSeek has them, with ragged edges. */
static void test_float_groups(void **state) {
    (void)state;
    static const rft_type elems[] = {RFT_E4M3, RFT_E5M2, RFT_NF4, RFT_FP4}, types[] = {RFT_F32, RFT_BF16, RFT_F16, RFT_E8M0};
    static const int64_t groups[][2] = {{0, 0}, {1, 0}, {1, 32}, {1, 64}, {128, 128}, {48, 96}};
    static const int64_t shapes[][2] = {{1, 31}, {150, 600}, {130, 129}, {37, 256}};
    fill_x();
    for (int i = 0; i < 4 * 6 * 4; i++) {
        const rft_type elem = elems[i % 4], scale = types[i % 2 + (i % 4 < 2 ? i / 4 % 2 * 2 : 0)];
        const rft_weight_desc d = describe(elem, shapes[i / 24][0], shapes[i / 24][1], scale, groups[i / 4 % 6][0],
                                           groups[i / 4 % 6][1]);
        assert_int_equal(rft_fill_random(elem, codes, (int64_t)sizeof codes, (uint64_t)i, &err), RFT_OK);
        const int64_t count = (int64_t)(sizeof scales / sizeof *scales);
        assert_int_equal(rft_fill_random(scale, scales, count, (uint64_t)i + 1, &err), RFT_OK);
        prove(&d, NULL, NULL);
    }
}

/* Every byte as a scale of E4M3: signed, NaN too; alone, under a number that multiplies, and one that divides. */
static void test_e4m3_scales(void **state) {
    (void)state;
    static const uint32_t flags[] = {0, RFT_WEIGHT_GLOBAL_TIMES, RFT_WEIGHT_GLOBAL_OVER};
    const float global[] = {0x1.6a09e6p-7f, 2688.0f / 0.7f};
    fill_x();
    assert_int_equal(rft_fill_random(RFT_U8, codes, (int64_t)sizeof codes, 5, &err), RFT_OK);
    for (size_t i = 0; i < sizeof scales; i++) {
        ((unsigned char *)scales)[i] = (unsigned char)(i * 37);
    }
    for (int i = 0; i < 3; i++) {
        rft_weight_desc d = describe(RFT_E2M1, 50, 592, RFT_E4M3, 1, 16);
        d.flags = flags[i];
        d.batch = 2;
        prove(&d, i != 0 ? global : NULL, NULL);
    }
}

/* The number of all stands at the beginning of each head, once a column; the bytes of the scales follow. */
static void test_documented_global(void **state) {
    (void)state;
    enum { N = 16, K = 320, GROUPS = K / 16 };
    const float global = 0.75f;
    rft_weight_desc d = describe(RFT_E2M1, N, K, RFT_E4M3, 1, 16);
    d.flags = RFT_WEIGHT_GLOBAL_OVER;
    for (int i = 0; i < N * GROUPS; i++) {
        ((unsigned char *)scales)[i] = (unsigned char)(i * 3);
    }
    const rft_weight_src s = source(&d, &global, NULL);
    rft_weight *w = NULL;
    size_t bytes = 0;
    const size_t chunk = 64 + 256 + 8 * 256;
    assert_int_equal(rft_weight_bytes(ctx[0], &d, &bytes, &err), RFT_OK);
    assert_int_equal(bytes, HEADER + chunk + 64 + 64 + 2 * 256);
    unsigned char *const storage = aligned_alloc(64, bytes);
    assert_int_equal(rft_weight_pack(ctx[0], &d, &s, storage, NULL, &w, &err), RFT_OK);
    assert_int_equal(storage[88], 2);
    for (int c = 0; c < 2; c++) {
        const unsigned char *const head = storage + HEADER + (size_t)c * chunk;
        for (int j = 0; j < 16; j++) {
            assert_memory_equal(head + 4 * j, &global, 4);
            for (int g = 0; g < (c == 0 ? 16 : 4); g++) {
                assert_int_equal(head[64 + 16 * g + j], (unsigned char)((j * GROUPS + 16 * c + g) * 3));
            }
        }
    }
    rft_weight_free(w);
    free(storage);
}

/* ---- groups in another order than k ---- */

/* Of k, a permutation that no stride explains: group i / group_k for the i-th of the steps through it. */
static void shuffle(int32_t *g_idx, int64_t k, int64_t group_k, int64_t step) {
    for (int64_t i = 0; i < k; i++) {
        g_idx[i * step % k] = (int32_t)(i / group_k);
    }
}

/* y is that of W and x with their k in the order of groups, to the bit. */
static void prove_sorted(rft_ctx *c, const rft_weight_desc *d, const rft_weight_src *s, int64_t m) {
    static float w2[MOST_BATCH * MOST_N * MOST_K], x2[MOST_BATCH * MOST_M * MOST_K];
    const int64_t k = d->k, group = d->group_k != 0 ? d->group_k : k;
    int64_t place[MOST_K / 8 + 1];
    for (int64_t b = 0; b < d->batch; b++) {
        for (int64_t g = 0; g * group < k; g++) {
            place[g] = g * group;
        }
        for (int64_t from = 0; from < k; from++) {
            const int64_t to = place[s->g_idx[b * k + from]]++;
            for (int64_t n = 0; n < d->n; n++) {
                w2[(b * d->n + n) * k + to] = wide[(b * d->n + n) * k + from];
            }
            for (int64_t i = 0; i < m; i++) {
                x2[(b * m + i) * k + to] = x[(b * m + i) * k + from];
            }
        }
    }
    rft_weight_desc plain = describe(RFT_F32, d->n, k, (rft_type)0, 0, 0);
    rft_weight_src p = rft_weight_src_init();
    plain.batch = d->batch;
    p.q = w2;
    run(c, d, s, m, RFT_K_CONTIGUOUS, x, y);
    run(c, &plain, &p, m, RFT_K_CONTIGUOUS, x2, z);
    assert_memory_equal(y, z, (size_t)(d->batch * m * d->n) * sizeof *y);
}

static void test_sorted_groups(void **state) {
    (void)state;
    static int32_t g_idx[2 * MOST_K];
    static const struct {
        rft_type elem;
        int64_t n, k, group_k, batch;
    } cases[] = {{RFT_I4, 19, 256, 64, 1}, {RFT_U4, 40, 601, 128, 2}, {RFT_I8, 33, 300, 32, 1}, {RFT_E4M3, 17, 512, 0, 1}};
    fill_x();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rft_weight_desc d = describe(cases[i].elem, cases[i].n, cases[i].k, RFT_F16, 1, cases[i].group_k);
        d.flags = RFT_WEIGHT_G_IDX;
        d.batch = cases[i].batch;
        for (int64_t b = 0; b < d.batch; b++) {
            shuffle(g_idx + b * d.k, d.k, d.group_k != 0 ? d.group_k : d.k, 157 + 2 * b);
        }
        assert_int_equal(rft_fill_random(d.elem, codes, d.batch * d.n * (d.k + d.k % 2), i, &err), RFT_OK);
        assert_int_equal(rft_fill_random(RFT_F16, scales, (int64_t)(sizeof scales / 2), i + 1, &err), RFT_OK);
        const rft_weight_src s = source(&d, NULL, g_idx);
        for (int l = 0; l < LEVELS; l++) {
            if (ctx[l] != NULL) {
                decode(ctx[l], &d, &s);
                prove_sorted(ctx[l], &d, &s, 1);
                prove_sorted(ctx[l], &d, &s, 7);
                prove_sorted(ctx[l], &d, &s, MOST_M);
            }
        }
    }
}

/* The order of k and the codes are where docs/formats/packed-weight.md says. */
static void test_documented_order(void **state) {
    (void)state;
    enum { N = 17, K = 64 };
    static int32_t g_idx[K];
    rft_weight_desc d = describe(RFT_I8, N, K, RFT_F16, 1, 32);
    d.flags = RFT_WEIGHT_G_IDX;
    for (int k = 0; k < K; k++) {
        g_idx[k] = (k + 1) % 2;
    }
    for (int i = 0; i < N * K; i++) {
        codes[i] = (unsigned char)i;
    }
    memset(scales, 0, sizeof scales);
    const rft_weight_src s = source(&d, NULL, g_idx);
    rft_weight *w = NULL;
    size_t bytes = 0;
    assert_int_equal(rft_weight_bytes(ctx[0], &d, &bytes, &err), RFT_OK);
    const size_t panel = 64 + 2 * 512;
    assert_int_equal(bytes, HEADER + 2 * panel + 4 * K);
    unsigned char *const storage = aligned_alloc(64, bytes);
    assert_int_equal(rft_weight_pack(ctx[0], &d, &s, storage, NULL, &w, &err), RFT_OK);
    assert_int_equal(storage[92], 1);
    int32_t order[K];
    memcpy(order, storage + HEADER + 2 * panel, sizeof order);
    for (int i = 0; i < K; i++) {
        assert_int_equal(order[i], i < 32 ? 2 * i + 1 : 2 * (i - 32));
        const unsigned char got = storage[HEADER + 64 + 512 * (i / 32) + 64 * (i % 32 / 4) + 4 * 3 + i % 4];
        assert_int_equal(got, (unsigned char)(3 * K + order[i]) ^ 128);
    }
    rft_weight_free(w);
    free(storage);
}

/* A damaged order gives other numbers and touches nothing else. */
static void test_damaged_order(void **state) {
    (void)state;
    enum { N = 16, K = 64 };
    static int32_t g_idx[K];
    static float small[N * K], out[N];
    rft_weight_desc d = describe(RFT_I8, N, K, RFT_F16, 1, 32);
    rft_linear_desc l = rft_linear_desc_init();
    rft_plan_info info = rft_plan_info_init();
    rft_plan *plan = NULL;
    rft_weight *w = NULL;
    size_t bytes = 0;
    d.flags = RFT_WEIGHT_G_IDX;
    shuffle(g_idx, K, 32, 7);
    const rft_weight_src s = source(&d, NULL, g_idx);
    assert_int_equal(rft_weight_bytes(ctx[0], &d, &bytes, &err), RFT_OK);
    unsigned char *const storage = aligned_alloc(64, bytes);
    assert_int_equal(rft_weight_pack(ctx[0], &d, &s, storage, NULL, &w, &err), RFT_OK);
    memset(storage + bytes - 4 * K, 0xfe, 4 * K);
    assert_int_equal(rft_weight_unpack(w, small, 0, &err), RFT_OK);
    l.x = l.y = RFT_F32;
    l.w = d;
    l.m_min = l.m_max = 1;
    assert_int_equal(rft_plan_create(ctx[0], &l, &plan, &err), RFT_OK);
    assert_int_equal(rft_plan_get_info(plan, 1, &info), RFT_OK);
    rft_linear_args a = rft_linear_args_init();
    float *const row = malloc(K * sizeof *row);
    a.m = 1, a.x = memcpy(row, x, K * sizeof *row), a.y = out, a.weight = w;
    a.workspace = aligned_alloc(64, (info.workspace + 63) / 64 * 64 + 64);
    a.workspace_bytes = info.workspace;
    assert_int_equal(rft_linear_run(plan, &a, &err), RFT_OK);
    free(a.workspace);
    free(row);
    rft_plan_free(plan);
    rft_weight_free(w);
    free(storage);
}

/* ---- refusals ---- */

#define REFUSED_DESC(part, change)                                                   \
    do {                                                                             \
        rft_weight_desc d = describe(RFT_E2M1, 8, 64, RFT_E4M3, 1, 16);              \
        size_t bytes = 0;                                                            \
        change;                                                                      \
        assert_int_equal(rft_weight_bytes(ctx[0], &d, &bytes, &err), RFT_E_ARG);     \
        if (strstr(err.message, part) == NULL) {                                     \
            fail_msg("\"%s\" lacks \"%s\"", err.message, part);                      \
        }                                                                            \
    } while (0)

#define REFUSED_SOURCE(part, change)                                                              \
    do {                                                                                          \
        rft_weight_desc d = describe(RFT_I4, 8, 64, RFT_F16, 1, 32);                              \
        d.flags = RFT_WEIGHT_G_IDX;                                                               \
        rft_weight_src s = source(&d, NULL, g_idx);                                               \
        rft_weight *w = NULL;                                                                     \
        change;                                                                                   \
        assert_int_equal(rft_weight_pack(ctx[0], &d, &s, room, NULL, &w, &err), RFT_E_ARG);       \
        if (strstr(err.message, part) == NULL) {                                                  \
            fail_msg("\"%s\" lacks \"%s\"", err.message, part);                                   \
        }                                                                                         \
    } while (0)

static void test_refusals(void **state) {
    (void)state;
    static int32_t g_idx[64];
    static _Alignas(64) unsigned char room[4096];
    REFUSED_DESC("desc.scale = 4 (e4m3): scales of elem nf4 are f32, f16 or bf16", d.elem = RFT_NF4);
    REFUSED_DESC("desc.scale = 4 (e4m3): scales of elem e4m3 are f32, f16 or bf16, or e8m0", d.elem = RFT_E4M3);
    REFUSED_DESC("desc.zero = 7 (u8): zero points of elem e2m1 are 0, it has none", d.zero = RFT_U8);
    REFUSED_DESC("desc.zero = 6 (i8): zero points of elem e5m2", (d.elem = RFT_E5M2, d.scale = RFT_F32, d.zero = RFT_I8));
    REFUSED_DESC("one of RFT_WEIGHT_GLOBAL_TIMES", (d.scale = RFT_E8M0, d.flags = RFT_WEIGHT_GLOBAL_TIMES));
    REFUSED_DESC("one of RFT_WEIGHT_GLOBAL_TIMES", d.flags = RFT_WEIGHT_GLOBAL_TIMES | RFT_WEIGHT_GLOBAL_OVER);
    REFUSED_DESC("elem q4_0 has none", (d = describe(RFT_GGUF_Q4_0, 8, 64, (rft_type)0, 0, 0), d.flags = RFT_WEIGHT_G_IDX));
    REFUSED_DESC("desc.k = 2147483648 is above 2^31 - 1", (d.k = (int64_t)1 << 31, d.flags = RFT_WEIGHT_G_IDX));
    REFUSED_SOURCE("src.g_idx is NULL", s.g_idx = NULL);
    REFUSED_SOURCE("src.global_scale is set", s.global_scale = scales);
    REFUSED_SOURCE("src.g_idx: more than 32", g_idx[0] = 0);
    REFUSED_SOURCE("src.g_idx[63] = 2 is not in 0..1", g_idx[63] = 2);
    REFUSED_SOURCE("src.g_idx[63] = -1 is not in 0..1", g_idx[63] = -1);
    REFUSED_SOURCE("src.global_scale is NULL", (d = describe(RFT_E2M1, 8, 64, RFT_E4M3, 1, 16),
                                                d.flags = RFT_WEIGHT_GLOBAL_OVER, s.g_idx = NULL));
}

/* Values that are no integers multiply in f32 whatever is asked for, and explain says why. */
static void test_8_bits_do_not_serve(void **state) {
    (void)state;
    static const rft_type elems[] = {RFT_E4M3, RFT_E5M2, RFT_NF4, RFT_FP4};
    for (int i = 0; i < 4; i++) {
        rft_linear_desc d = rft_linear_desc_init();
        rft_plan_info info = rft_plan_info_init();
        rft_plan *plan = NULL;
        char text[65536], why[128];
        d.x = d.y = RFT_F32;
        d.w = describe(elems[i], 64, 256, RFT_F32, 1, 64);
        d.m_min = d.m_max = 4;
        d.compute = RFT_COMPUTE_I8;
        assert_int_equal(rft_plan_create(ctx[0], &d, &plan, &err), RFT_OK);
        assert_int_equal(rft_plan_get_info(plan, 4, &info), RFT_OK);
        assert_true(info.error_x == 0.0);
        assert_true(rft_plan_explain(plan, 4, text, sizeof text) < sizeof text);
        snprintf(why, sizeof why, "values of %s are none, so f32 multiplies them", rft_type_name(elems[i]));
        assert_non_null(strstr(text, why));
        rft_plan_free(plan);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code),       cmocka_unit_test(test_float_groups),
        cmocka_unit_test(test_e4m3_scales),      cmocka_unit_test(test_sorted_groups),
        cmocka_unit_test(test_documented_global),
        cmocka_unit_test(test_documented_order), cmocka_unit_test(test_damaged_order),
        cmocka_unit_test(test_refusals),         cmocka_unit_test(test_8_bits_do_not_serve),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
