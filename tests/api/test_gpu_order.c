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

static chain through_x(const char *kernel, int64_t m) {
    const rft_linear_desc d = layer(m, WIDTH, WIDTH, &clamp, 1);
    chain c = {.a = gpu_make(&d, kernel, m, 1), .b = gpu_make(&d, kernel, m, 3)};
    link_ends(&c);
    c.b.args.x = c.h;
    return c;
}

static chain through_operand(const char *kernel, int64_t m) {
    const rft_linear_desc d = layer(m, WIDTH, WIDTH, &clamp, 1), e = layer(m, WIDTH, WIDTH, add_clamp, 2);
    chain c = {.a = gpu_make(&d, kernel, m, 1), .b = gpu_make(&e, kernel, m, 3)};
    link_ends(&c);
    c.operand = (rft_operand){.ptr = c.h};
    return c;
}

/* h is b's W: m rows of it. */
static chain through_w(const char *kernel, int64_t m) {
    const rft_linear_desc d = layer(m, WIDTH, m, &clamp, 1);
    rft_linear_desc e = layer(m, m, WIDTH, &clamp, 1);
    e.flags = RFT_W_DYNAMIC;
    chain c = {.a = gpu_make(&d, kernel, m, 1), .b = gpu_make(&e, kernel, m, 3)};
    link_ends(&c);
    c.b.args.w = c.h;
    return c;
}

typedef chain make_chain(const char *kernel, int64_t m);

static void one_row(const rft_kernel_info *info, make_chain *make) {
    const int64_t m = gpu_most_m(info) < 1000 ? gpu_most_m(info) : info->mr + 8; /* a multiple of 8 */
    gpu_watch(0, "%s", info->name);
    void *const stream = gpu_stream();
    chain c = make(info->name, m);
    snprintf(c.name, sizeof c.name, "%s m=%lld", info->name, (long long)m);
    if (c.operand.ptr != NULL) {
        c.b.args.operand = &c.operand;
        c.b.args.n_operand = 1;
    }
    compare(&c, stream);
    CU(cu.cuStreamDestroy_v2(stream));
    gpu_drop(NULL);
}

/* The first and the last row of bf16 of each family that runs here. */
static void every_family(make_chain *make) {
    gpu_driver_needed();
    for (int f = 0; f < FAMILIES; f++) {
        rft_kernel_info row[ROWS], info;
        int n = 0;
        for (uint32_t i = 0; gpu_next_kernel(&i, &info);) {
            if (gpu_is_family(&info, families[f]) && info.x == RFT_BF16 && info.w == RFT_BF16) {
                row[n == 0 ? 0 : 1] = info;
                n = n < ROWS ? n + 1 : n;
            }
        }
        for (int i = 0; i < n; i++) {
            one_row(&row[i], make);
        }
    }
}

static void test_x(void **state) {
    (void)state;
    every_family(through_x);
}

static void test_operand(void **state) {
    (void)state;
    every_family(through_operand);
}

static void test_w(void **state) {
    (void)state;
    every_family(through_w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_x, gpu_drop),
        cmocka_unit_test_teardown(test_operand, gpu_drop),
        cmocka_unit_test_teardown(test_w, gpu_drop),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
