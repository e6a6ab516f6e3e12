/* SPDX-License-Identifier: Apache-2.0
 *
 * test_glu.c - gate and up in one weight: halves and interleaved rows give the same bits, every width of the pair, with ops
 * before and behind, packed, viewed and at run time, and all of it as the definition says.
 */
#include "product.h"

enum { M = 17, K = 40, MOST_H = 101 };

static levels l;
static float x[M * K], halves[2 * MOST_H * K], interleaved[2 * MOST_H * K], bias[2 * MOST_H], bias_interleaved[2 * MOST_H],
    gate[M * MOST_H];
static float y[M * MOST_H], again[M * MOST_H];

static const rft_epi_kind kinds[] = {RFT_EPI_SWIGLU, RFT_EPI_GEGLU, RFT_EPI_GEGLU_TANH};

static int make_all(void **state) {
    (void)state;
    rft_test_levels(&l);
    rft_test_random(RFT_F32, x, M * K, 1);
    rft_test_random(RFT_F32, halves, 2 * MOST_H * K, 2);
    rft_test_random(RFT_F32, bias, 2 * MOST_H, 3);
    rft_test_random(RFT_F32, gate, M * MOST_H, 4);
    return 0;
}

/* Row 2 h is gate h, row 2 h + 1 up h: of W, and of what is added to its columns. */
static void interleave(int64_t h) {
    for (int64_t i = 0; i < h; i++) {
        memcpy(interleaved + 2 * i * K, halves + i * K, K * sizeof *halves);
        memcpy(interleaved + (2 * i + 1) * K, halves + (h + i) * K, K * sizeof *halves);
        bias_interleaved[2 * i] = bias[i];
        bias_interleaved[2 * i + 1] = bias[h + i];
    }
}

/* bias on all columns, the pair's op, then * gate and * 0.5 on the h columns that are left. */
static void run(rft_ctx *ctx, int64_t h, rft_epi_kind kind, uint32_t flags, bool dynamic, float *out) {
    const bool pairs = (flags & RFT_WEIGHT_GLU_INTERLEAVED) != 0;
    const rft_epi_op ops[] = {{.kind = RFT_EPI_BIAS, .type = RFT_F32},
                              {.kind = kind},
                              {.kind = RFT_EPI_MUL, .type = RFT_F32, .operand = 1},
                              {.kind = RFT_EPI_SCALE, .alpha = 0.5f}};
    const rft_operand operands[] = {{.ptr = pairs ? bias_interleaved : bias}, {.ptr = gate, .ld = MOST_H}};
    product p = rft_test_dense(ctx, RFT_F32, M, 2 * h, K);
    p.desc.w.flags = flags;
    p.desc.flags = RFT_BATCH_INVARIANT | (dynamic ? RFT_W_DYNAMIC : 0); /* the same bits however W is given */
    p.desc.epi = ops;
    p.desc.n_epi = 4;
    p.w = pairs ? interleaved : halves;
    p.args.w = dynamic ? p.w : NULL;
    p.args.x = x;
    p.args.y = out;
    p.args.operand = operands;
    p.args.n_operand = 2;
    memset(out, 0xff, sizeof y);
    rft_test_prove(&p);
}

static double activation(rft_epi_kind kind, double v) {
    const double inner = 0.79788456080286535588 * (v + 0.044715 * v * v * v);
    return kind == RFT_EPI_SWIGLU  ? v / (1 + exp(-v))
           : kind == RFT_EPI_GEGLU ? v * (1 + erf(v * 0.70710678118654752440)) / 2
                                   : v * (1 + tanh(inner)) / 2;
}

static void assert_definition(int64_t h, rft_epi_kind kind) {
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < h; n++) {
            double sums[2] = {bias[n], bias[h + n]};
            for (int64_t k = 0; k < K; k++) {
                sums[0] += (double)x[m * K + k] * (double)halves[n * K + k];
                sums[1] += (double)x[m * K + k] * (double)halves[(h + n) * K + k];
            }
            const double want = activation(kind, sums[0]) * sums[1] * (double)gate[m * MOST_H + n] * 0.5;
            assert_true(fabs((double)y[m * h + n] - want) <= 1e-4 * (1 + fabs(want)));
        }
    }
}

static void test_every_width(void **state) {
    (void)state;
    static const int64_t widths[] = {1, 2, 7, 15, 16, 17, 24, 31, 33, 48, 65, MOST_H};
    static const uint32_t ways[] = {RFT_WEIGHT_GLU_HALVES, RFT_WEIGHT_GLU_INTERLEAVED};
    for (int i = 0; i < l.count; i++) {
        rft_ctx *const ctx = rft_test_context(l.name[i], 3);
        for (int c = 0; c < 12 * 3; c++) {
            const int64_t h = widths[c / 3];
            const rft_epi_kind kind = kinds[c % 3];
            interleave(h);
            run(ctx, h, kind, ways[0], false, y);
            assert_definition(h, kind);
            for (int way = 1; way < 6; way++) {
                run(ctx, h, kind, ways[way % 2] | (way / 2 == 1 ? RFT_WEIGHT_VIEW : 0), way / 2 == 2, again);
                assert_memory_equal(again, y, (size_t)(M * h) * sizeof *y);
            }
        }
        rft_ctx_free(ctx);
    }
}

/* A K split keeps gate and up of a column together. */
static void test_with_split_k(void **state) {
    (void)state;
    enum { H = 9, DEPTH = 4096 };
    static float long_x[3 * DEPTH], long_w[2 * H * DEPTH];
    static const uint32_t ways[] = {RFT_WEIGHT_GLU_HALVES, RFT_WEIGHT_GLU_INTERLEAVED};
    const rft_epi_op op = {.kind = RFT_EPI_SWIGLU};
    rft_ctx *const ctx = rft_test_context(NULL, 8);
    rft_test_random(RFT_F32, long_x, 3 * DEPTH, 1);
    rft_test_random(RFT_F32, long_w, 2 * H * DEPTH, 2);
    for (int i = 0; i < 2; i++) {
        product p = rft_test_dense(ctx, RFT_F32, 3, 2 * H, DEPTH);
        p.desc.w.flags = ways[i];
        p.desc.epi = &op;
        p.desc.n_epi = 1;
        p.w = long_w;
        p.args.x = long_x;
        p.args.y = y;
        rft_test_prove(&p);
    }
    rft_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_width),
        cmocka_unit_test(test_with_split_k),
    };
    return cmocka_run_group_tests(tests, make_all, NULL);
}
