/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gpu_order.c - a kernel begins while the one in front of it drains. Two calls on one stream read what the other wrote, as
 * x, as an operand of the epilogue or as W, thousands of times without a wait between them; the bits are those of the same
 * calls with a wait behind each. A clamp bounds the values and large weights keep them chaotic, so one stale element changes all.
 */
#include "gpu_test.h"

enum { SEGMENTS = 20, ROUNDS = 500 /* of a segment */, WIDTH = 264, ROWS = 2 /* of a family */ };

static const char *const families[] = {"gemv_", "stream_sm90_", "gemm_sm90_", "gemm_sm80_", "gemm_simt_"};
enum { FAMILIES = sizeof families / sizeof families[0] };

static const rft_epi_op clamp = {.kind = RFT_EPI_CLAMP, .alpha = -1, .beta = 1};
static const rft_epi_op add_clamp[] = {{.kind = RFT_EPI_ADD, .type = RFT_BF16, .beta = 1},
                                       {.kind = RFT_EPI_CLAMP, .alpha = -1, .beta = 1}};

typedef struct chain { /* a reads x and writes h; b reads h and writes x */
    gpu_layer a, b;
    void *x, *h;
    size_t x_bytes, h_bytes;
    rft_operand operand; /* of b */
    char name[100];
} chain;

static rft_linear_desc layer(int64_t m, int64_t n, int64_t k, const rft_epi_op *epi, uint32_t n_epi) {
    rft_linear_desc d = gpu_desc(RFT_BF16, m, n, k);
    d.epi = epi;
    d.n_epi = n_epi;
    return d;
}

static void link_ends(chain *c) {
    c->x = c->b.args.y;
    c->x_bytes = c->b.y_bytes;
    c->h = c->a.args.y;
    c->h_bytes = c->a.y_bytes;
    c->a.args.x = c->x;
}

/* The same start each time. */
static void reset(const chain *c, void *stream) {
    unsigned char *const x = rft_test_storage(c->x_bytes);
    rft_test_random(RFT_BF16, x, (int64_t)c->x_bytes / 2, 7);
    gpu_sync(stream);
    gpu_write(c->x, x, c->x_bytes);
    gpu_fill(c->h, 0, c->h_bytes);
    free(x);
}

static void segment(const chain *c, bool wait) {
    for (int i = 0; i < ROUNDS; i++) {
        OK(rft_linear_run(c->a.plan, &c->a.args, &test_err));
        if (wait) {
            gpu_sync(c->a.args.stream);
        }
        OK(rft_linear_run(c->b.plan, &c->b.args, &test_err));
        if (wait) {
            gpu_sync(c->a.args.stream);
        }
    }
    gpu_sync(c->a.args.stream);
}

/* What x and h are behind each segment, one after the other. */
static void trace(const chain *c, bool wait, unsigned char *out) {
    reset(c, c->a.args.stream);
    for (int i = 0; i < SEGMENTS; i++) {
        gpu_watch(0, "%s, %s a wait, segment %d", c->name, wait ? "with" : "without", i);
        segment(c, wait);
        gpu_read(out, c->x, c->x_bytes);
        gpu_read(out + c->x_bytes, c->h, c->h_bytes);
        out += c->x_bytes + c->h_bytes;
    }
}

static void compare(chain *c, void *stream) {
    const size_t state = c->x_bytes + c->h_bytes;
    unsigned char *const want = rft_test_storage(SEGMENTS * state), *const got = rft_test_storage(SEGMENTS * state);
    c->a.args.stream = c->b.args.stream = stream;
    trace(c, true, want);
    trace(c, false, got);
    assert_int_not_equal(memcmp(want, want + state, c->x_bytes), 0); /* x moves: a stale one would be seen */
    assert_int_not_equal(memcmp(want + (SEGMENTS - 2) * state, want + (SEGMENTS - 1) * state, c->x_bytes), 0);
    for (int i = 0; i < SEGMENTS; i++) {
        if (memcmp(want + (size_t)i * state, got + (size_t)i * state, state) != 0) {
            fail_msg("%s: other bits within the first %d rounds", c->name, (i + 1) * ROUNDS);
        }
    }
    free(want);
    free(got);
    gpu_free(&c->a);
    gpu_free(&c->b);
}

/* ---- what b reads of a's ---- */

typedef enum way { THROUGH_X, THROUGH_OPERAND, THROUGH_W /* h is b's W: m rows of it */ } way;

static void describe(way through, int64_t m, rft_linear_desc *a, rft_linear_desc *b) {
    const bool w = through == THROUGH_W;
    *a = layer(m, WIDTH, w ? m : WIDTH, &clamp, 1);
    *b = through == THROUGH_OPERAND ? layer(m, WIDTH, WIDTH, add_clamp, 2) : layer(m, w ? m : WIDTH, WIDTH, &clamp, 1);
    b->flags = w ? RFT_W_DYNAMIC : 0;
}

static void make(chain *c, way through, const char *kernel, int64_t m) {
    rft_linear_desc a, b;
    describe(through, m, &a, &b);
    *c = (chain){.a = gpu_make(&a, kernel, m, 1), .b = gpu_make(&b, kernel, m, 3)};
    snprintf(c->name, sizeof c->name, "%s m=%lld", kernel, (long long)m);
    link_ends(c);
    if (through == THROUGH_X) {
        c->b.args.x = c->h;
    } else if (through == THROUGH_W) {
        c->b.args.w = c->h;
    } else {
        c->operand = (rft_operand){.ptr = c->h};
        c->b.args.operand = &c->operand;
        c->b.args.n_operand = 1;
    }
}

/* ---- rows ---- */

/* The first and the last row of bf16 of each family that runs here. */
static int list_rows(rft_kernel_info *rows) {
    int n = 0;
    for (int f = 0; f < FAMILIES; f++) {
        rft_kernel_info info;
        int of_family = 0;
        for (uint32_t i = 0; gpu_next_kernel(&i, &info);) {
            if (gpu_is_family(&info, families[f]) && info.x == RFT_BF16 && info.w == RFT_BF16) {
                n -= of_family == ROWS;
                of_family -= of_family == ROWS;
                rows[n++] = info;
                of_family++;
            }
        }
    }
    return n;
}

/* Of x, a multiple of 8. */
static int64_t rows_of_x(const rft_kernel_info *info) { return gpu_most_m(info) < 1000 ? gpu_most_m(info) : info->mr + 8; }

static void compile_ahead(way through, const rft_kernel_info *rows, int n) {
    gpu_ahead list[2 * FAMILIES * ROWS];
    for (int i = 0; i < n; i++) {
        list[2 * i].kernel = list[2 * i + 1].kernel = rows[i].name;
        describe(through, rows_of_x(&rows[i]), &list[2 * i].desc, &list[2 * i + 1].desc);
    }
    gpu_compile(list, 2 * n);
}

static void every_row(way through) {
    rft_kernel_info rows[FAMILIES * ROWS];
    gpu_driver_needed();
    const int n = list_rows(rows);
    compile_ahead(through, rows, n);
    for (int i = 0; i < n; i++) {
        gpu_watch(0, "%s", rows[i].name);
        void *const stream = gpu_stream();
        chain c;
        make(&c, through, rows[i].name, rows_of_x(&rows[i]));
        compare(&c, stream);
        CU(cu.cuStreamDestroy_v2(stream));
        gpu_drop(NULL);
    }
    print_message("%d rows\n", n);
}

static void test_x(void **state) {
    (void)state;
    every_row(THROUGH_X);
}

static void test_operand(void **state) {
    (void)state;
    every_row(THROUGH_OPERAND);
}

static void test_w(void **state) {
    (void)state;
    every_row(THROUGH_W);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_x, gpu_drop),
        cmocka_unit_test_teardown(test_operand, gpu_drop),
        cmocka_unit_test_teardown(test_w, gpu_drop),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
