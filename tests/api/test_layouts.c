/* SPDX-License-Identifier: Apache-2.0
 *
 * test_layouts.c - how X, W and Y lie in memory changes no bit of y: each way to give W, both orders, strides that are powers
 * of two, and pointers aligned to an element only.
 */
#include "product.h"

enum { M = 19, N = 37, K = 75, MOST_LD = 1024, PADDED = (K + 2) * MOST_LD };

static levels l;
static float x[PADDED], w[PADDED], y[PADDED], want[PADDED];
static float dense_x[M * K], dense_w[N * K];

static int make_all(void **state) {
    (void)state;
    rft_test_levels(&l);
    return 0;
}

/* rows x K of dense elements, laid out in that order, `ld` apart, from element `at` on; all else is NaN. */
static void *lay_out(rft_type type, const void *dense, int64_t rows, rft_order order, int64_t ld, int64_t at, float *out) {
    memset(out, 0xff, PADDED * sizeof *out);
    char *const start = rft_test_at(type, out, at);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t k = 0; k < K; k++) {
            const int64_t i = order == RFT_K_CONTIGUOUS ? r * ld + k : k * ld + r;
            memcpy(rft_test_at(type, start, i), (const char *)dense + (r * K + k) * (int64_t)rft_test_size(type),
                   rft_test_size(type));
        }
    }
    return start;
}

typedef enum way { PACKED, VIEW, DYNAMIC, WAYS } way;

typedef struct layout {
    way w;
    rft_order x_order, w_order;
    int64_t ldx, ldw, ldy, at; /* at: first element of all three */
} layout;

/* The product of the dense operands through that layout; y comes out dense in out. */
static void run_layout(const product *base, const layout *lay, rft_type y_type, float *out) {
    product p = *base;
    p.desc.x_order = lay->x_order;
    p.desc.w.order = lay->w_order;
    p.desc.y = y_type;
    p.args.x = lay_out(p.desc.x, dense_x, M, lay->x_order, lay->ldx, lay->at, x);
    p.w = lay_out(p.desc.w.elem, dense_w, N, lay->w_order, lay->ldw, lay->at, w);
    p.args.ldx = lay->ldx;
    p.args.ldy = lay->ldy;
    p.args.y = rft_test_at(y_type, y, lay->at);
    p.desc.w.ld = lay->w == DYNAMIC ? 0 : lay->ldw;
    p.desc.w.flags = lay->w == VIEW ? RFT_WEIGHT_VIEW : 0;
    p.desc.flags = lay->w == DYNAMIC ? RFT_W_DYNAMIC : 0;
    p.args.w = lay->w == DYNAMIC ? p.w : NULL;
    p.args.ldw = lay->w == DYNAMIC ? lay->ldw : 0;
    rft_test_run(&p);
    for (int64_t m = 0; m < M; m++) {
        memcpy(rft_test_at(y_type, out, m * N), rft_test_at(y_type, p.args.y, m * lay->ldy), N * rft_test_size(y_type));
    }
}

static layout draw_layout(int i) {
    static const int64_t lds[] = {K, K + 3, 128, 256, 512, MOST_LD};
    return (layout){.w = (way)(i % WAYS),
                    .x_order = (rft_order)(i / 3 % 2),
                    .w_order = (rft_order)(i / 6 % 2),
                    .ldx = lds[i / 12 % 6],
                    .ldw = lds[i / 5 % 6],
                    .ldy = lds[i / 7 % 6],
                    .at = i % 4};
}

/* The order of W that a row reads where it lies, or -1. */
static int in_place(const rft_kernel_info *row) {
    return strncmp(row->name, "dot_", 4) == 0 ? RFT_K_CONTIGUOUS : strncmp(row->name, "axpy_", 5) == 0 ? RFT_MN_CONTIGUOUS : -1;
}

/* Rows that read 16-bit panels take packed W alone. */
static bool serves(const rft_kernel_info *row, rft_type type, way w_way, rft_order order) {
    if (in_place(row) >= 0) {
        return row->w == type && w_way != PACKED && in_place(row) == (int)order;
    }
    return row->x != RFT_F32 ? type == row->x : row->w == RFT_F32 || (row->w == type && w_way == PACKED);
}

static void each_layout(rft_ctx *ctx, const rft_kernel_info *row, rft_type type) {
    product p = rft_test_dense(ctx, type, M, N, K);
    p.kernel = row->name;
    rft_test_random(type, dense_x, M * K, 1);
    rft_test_random(type, dense_w, N * K, 2);
    for (int t = 0; t < TEST_TYPES; t++) {
        const rft_order order = in_place(row) == RFT_MN_CONTIGUOUS ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS;
        const layout dense = {.w = in_place(row) >= 0 ? DYNAMIC : PACKED, .w_order = order, .ldx = K, .ldw = K, .ldy = N};
        static float got[M * N];
        run_layout(&p, &dense, test_types[t], want);
        for (int i = 0; i < 72; i++) {
            const layout lay = draw_layout(i);
            if (serves(row, type, lay.w, lay.w_order)) {
                run_layout(&p, &lay, test_types[t], got);
                assert_memory_equal(got, want, M * N * rft_test_size(test_types[t]));
            }
        }
    }
}

static void test_bits_of_every_layout(void **state) {
    (void)state;
    for (uint32_t i = 0; i < rft_kernel_count(); i++) {
        rft_kernel_info row = {.struct_size = sizeof row};
        OK(rft_kernel_get(i, &row));
        for (int t = 0; t < TEST_TYPES && row.available; t++) {
            if (in_place(&row) >= 0 ? row.w == test_types[t] : serves(&row, test_types[t], PACKED, RFT_K_CONTIGUOUS)) {
                rft_ctx *const ctx = rft_test_context(row.isa, 2);
                each_layout(ctx, &row, test_types[t]);
                rft_ctx_free(ctx);
            }
        }
    }
}

/* Levels of f32 FMA add in the same order with the same roundings: their bits agree. */
static void test_fma_levels_agree(void **state) {
    (void)state;
    const layout lay = {.w = PACKED, .ldx = K, .ldw = K, .ldy = N};
    bool first = true;
    rft_test_random(RFT_F32, dense_x, M * K, 1);
    rft_test_random(RFT_F32, dense_w, N * K, 2);
    for (int i = 0; i < l.count; i++) {
        static float got[M * N];
        rft_ctx *const ctx = rft_test_context(l.name[i], 1);
        product p = rft_test_dense(ctx, RFT_F32, M, N, K);
        if (strcmp(l.name[i], "ref") != 0) {
            run_layout(&p, &lay, RFT_F32, first ? want : got);
            if (!first) {
                assert_memory_equal(got, want, M * N * sizeof *got);
            }
            first = false;
        }
        rft_ctx_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_every_layout),
        cmocka_unit_test(test_fma_levels_agree),
    };
    return cmocka_run_group_tests(tests, make_all, NULL);
}
