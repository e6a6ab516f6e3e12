/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_debug.c - debug builds of kernels: in the emulator the sums of every family are dumped exactly, whole and in parts of
 * k that add up; an access outside of an operand is recorded and stopped; the host reads the environment, makes room for a dump
 * and says what a kernel recorded; and NVRTC compiles such builds.
 */
#include "cuda_emulate_sm90.h"
#include "h200_facts.h"
#include "jit_fixture.h"

#include "cuda/cuda_choice.h"
#include "cuda/cuda_debug.h"

#include <math.h>

/* ---- dumps ---- */

typedef struct scene {
    rft__cuda_row row;
    rft__cuda_config config; /* but for the row */
    int sms, parts;          /* of k: the most that a sum has */
    product p;
} scene;

#define ROW(family, x, w, compute, bm, bn, bk, warps) \
    {#family, &rft__cuda_##family, x, w, compute, bm, bn, bk, warps, 80, 1, 0}
#define CONFIG(m_, split_, cluster_, stages_, ...) \
    {.m = m_, .split = split_, .cluster = cluster_, .stages = stages_, .option = {__VA_ARGS__}}

static const scene scenes[] = {
    {ROW(gemv, RFT_BF16, RFT_BF16, RFT__CUDA_F32, 8, 8, 256, 8), CONFIG(3, 2, 1, 2, 4, 1, 2, 1), 4, 2,
     {.m = 3, .n = 21, .k = 1003, .batch = 2}},
    {ROW(gemv, RFT_BF16, RFT_BF16, RFT__CUDA_F32, 8, 8, 256, 8), CONFIG(1, 1, 1, 2, 4, 1, 1, 1), 4, 1,
     {.m = 1, .n = 58, .k = 808, .batch = 1, .glu = RFT__GLU_HALVES}},
    {ROW(gemv, RFT_F32, RFT_F32, RFT__CUDA_F32, 8, 8, 256, 8), CONFIG(0, 8, 1, 0, 1, 1, 0, 0), 4, 8,
     {.m = 2, .n = 70, .k = 65, .batch = 1, .m_max = 3, .w_mn = true, .glu = RFT__GLU_INTERLEAVED}},
    {ROW(gemm_simt, RFT_BF16, RFT_F32, RFT__CUDA_F32, 64, 64, 32, 8), CONFIG(0, 1, 1, 0, 1), 4, 4,
     {.m = 69, .n = 144, .k = 70, .batch = 1, .glu = RFT__GLU_HALVES}},
    {ROW(gemm_sm80, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 16, 32, 64, 4), CONFIG(0, 1, 1, 3, 16, 1, 0), 4, 4,
     {.m = 21, .n = 42, .k = 197, .batch = 2}},
    {ROW(gemm_sm80, RFT_F16, RFT_F16, RFT__CUDA_F16, 64, 64, 64, 4), CONFIG(0, 1, 1, 3, 16, 1, 1), 4, 1,
     {.m = 130, .n = 134, .k = 131, .batch = 1, .glu = RFT__GLU_INTERLEAVED}},
    {ROW(stream_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 16, 64, 64, 5), CONFIG(0, 2, 2, 3, 1, 16, 0), 4, 2,
     {.m = 15, .n = 210, .k = 192, .batch = 2, .glu = RFT__GLU_INTERLEAVED}},
    {ROW(stream_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 16, 64, 64, 5), CONFIG(0, 3, 3, 4, 1, 16, 1), 40, 3,
     {.m = 13, .n = 100, .k = 720, .batch = 1, .glu = RFT__GLU_HALVES}},
    {ROW(gemm_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 128, 128, 64, 12), CONFIG(0, 2, 2, 3, 0, 0, 0, 2), 8, 2,
     {.m = 130, .n = 136, .k = 520, .batch = 1}},
    {ROW(gemm_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 128, 128, 64, 12), CONFIG(0, 1, 2, 3, 1, 0, 1, 2), 6, 2,
     {.m = 250, .n = 400, .k = 600, .batch = 1, .y = RFT_BF16}},
    {ROW(gemm_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 128, 128, 64, 12), CONFIG(0, 1, 1, 3, 0, 0, 0, 2), 1, 1,
     {.m = 265, .n = 400, .k = 136, .batch = 1, .y = RFT_BF16, .glu = RFT__GLU_HALVES}},
    {ROW(gemm_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 128, 176, 64, 12), CONFIG(0, 1, 1, 3, 0, 1, 0, 2), 1, 1,
     {.m = 130, .n = 360, .k = 72, .batch = 1, .y = RFT_BF16, .curve = true}},
    {ROW(gemm_sm90, RFT_BF16, RFT_BF16, RFT__CUDA_BF16, 256, 64, 64, 12), CONFIG(0, 1, 1, 3, 0, 0, 0, 2), 1, 1,
     {.m = 270, .n = 136, .k = 136, .batch = 1, .y = RFT_BF16}},
};

static void run(const scene *s, int dump, float *dumped) {
    rft__cuda_config c = s->config;
    product p = s->p;
    c.row = &s->row;
    p.x = s->row.x, p.w = s->row.w, p.y = p.y == RFT_BF16 ? RFT_BF16 : RFT_F32;
    p.dump = dump, p.dumped = dumped;
    memset(dumped, 0xff, (size_t)(p.batch * p.m * p.n) * sizeof *dumped);
    if (s->row.family->maps != NULL) {
        rft__cuda_facts f = h200;
        f.sms = s->sms;
        emulate_product_sm90(s->row.family, &p, &c, &(run_sm90){&f, true, 1, true});
    } else {
        emulate_product(s->row.family, &p, &c, s->row.name);
    }
    assert_int_equal(emulate_fault.state, 0);
}

/* -777 where a part is not there. */
static void compare(const scene *s, const float *got, const char *what) {
    const product *const p = &s->p;
    for (int64_t i = 0; i < p->batch * p->m * p->n; i++) {
        const int64_t b = i / (p->m * p->n), m = i / p->n % p->m, n = i % p->n;
        const float want = emulate_sum(p, b, m, n);
        if (got[i] != want) {
            fail_msg("%s, %s: [%lld][%lld][%lld] is %g, not %g", s->row.name, what, (long long)b, (long long)m, (long long)n,
                     (double)got[i], (double)want);
        }
    }
}

/* The parts of a sum add up to it, and each is something else where there are several. */
static void check_parts(const scene *s) {
    const int64_t count = s->p.batch * s->p.m * s->p.n;
    float *const total = calloc((size_t)count, sizeof *total), *const part = malloc((size_t)count * sizeof *part);
    for (int i = 0; i < s->parts; i++) {
        int64_t there = 0, whole = 0;
        run(s, RFT_DUMP_PART(i), part);
        for (int64_t j = 0; j < count; j++) {
            there += !isnan(part[j]);
            total[j] += isnan(part[j]) ? 0.0f : part[j];
            whole += part[j] == emulate_sum(&s->p, j / (s->p.m * s->p.n), j / s->p.n % s->p.m, j % s->p.n);
        }
        if (there == 0 || (i == 0 && there < count) || (s->parts > 1 && whole == count)) {
            fail_msg("%s: part %d has %lld of %lld sums, %lld of them whole", s->row.name, i, (long long)there, (long long)count,
                     (long long)whole);
        }
    }
    compare(s, total, "all parts");
    run(s, RFT_DUMP_PART(s->parts), part);
    for (int64_t j = 0; j < count; j++) {
        assert_true(isnan(part[j])); /* there is no such part */
    }
    free(total);
    free(part);
}

static void sums_and_parts_are_dumped(void **state) {
    (void)state;
    need_compiler();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        const scene *const s = &scenes[i];
        float *const acc = malloc((size_t)(s->p.batch * s->p.m * s->p.n) * sizeof *acc);
        run(s, RFT_DUMP_ACC, acc);
        compare(s, acc, "acc");
        free(acc);
        if (s->parts < 8) {
            check_parts(s);
        }
    }
}

/* ---- bounds ---- */

/* number: what, and where. */
static const char reach[] = "#include \"config.h\"\n#include \"epilogue.cuh\"\n"
                            "extern \"C\" __global__ void reach(const __grid_constant__ rft__cuda_args args) {\n"
                            "    const int what = args.number[0], at = args.number[1], count = args.number[2];\n"
                            "    const float v[4] = {1, 2, 3, 4};\n"
                            "    rft__origin o = {&args, what, args.number[3]};\n"
                            "    rft__span s = {&args, args.number[3], at / 100, at % 100, 4, count, args.n};\n"
                            "    if (what <= RFT_AT_W) {\n"
                            "        rft__check_at(&o, (const char *)(what ? args.w : args.x) + at, count);\n"
                            "    } else if (what == RFT_AT_Y) {\n"
                            "        rft__store_span(&args, args.number[3], at / 100, at % 100, v, 4, count);\n"
                            "    } else {\n"
                            "        rft__check_operand(RFT_ACCESS_MATRIX, what - RFT_AT_OPERAND, &s);\n"
                            "    }\n"
                            "}\n";

typedef struct attempt {
    int number[4];
    bool good;
    int row, column;
} attempt;

/* x: 3 rows of 10 in rows of 13; w: 20 rows of 10; two batches; y: 3 x 20. */
static const attempt attempts[] = {
    {{RFT_AT_X, 0, 20, 0}, true, 0, 0},
    {{RFT_AT_X, 13 * 2 * 2, 20, 0}, true, 0, 0},
    {{RFT_AT_X, 13 * 2 * 3, 2, 0}, false, 3, 0},
    {{RFT_AT_X, 13 * 2 * 3, 2, 1}, true, 0, 0},
    {{RFT_AT_X, 2, 20, 0}, false, 0, 1},
    {{RFT_AT_X, 2, 0, 0}, true, 0, 0},
    {{RFT_AT_X, -2, 2, 0}, false, 0, -1},
    {{RFT_AT_X, 0, 2, 2}, false, 0, -78},
    {{RFT_AT_W, 13 * 2 * 19 + 18, 2, 0}, true, 0, 0},
    {{RFT_AT_W, 13 * 2 * 20, 2, 0}, false, 20, 0},
    {{RFT_AT_Y, 216, 4, 1}, true, 0, 0},
    {{RFT_AT_Y, 217, 4, 1}, false, 2, 17},
    {{RFT_AT_Y, 217, 3, 1}, true, 0, 0},
    {{RFT_AT_Y, 300, 1, 0}, false, 3, 0},
    {{RFT_AT_Y, 319, 0, 0}, true, 0, 0},
    {{RFT_AT_OPERAND + 3, 216, 4, 0}, true, 0, 0},
    {{RFT_AT_OPERAND + 3, 218, 4, 0}, false, 2, 18},
};

static void what_lies_outside_is_recorded(void **state) {
    (void)state;
    need_compiler();
    static const rft__cuda_row row = ROW(gemm_simt, RFT_BF16, RFT_BF16, RFT__CUDA_F32, 32, 64, 32, 8);
    static const rft__cuda_config c = {.row = &row, .split = 1, .cluster = 1};
    static float y[2 * 3 * 20];
    static const unsigned grid[3] = {1, 1, 1};
    const product p = {
        .m = 3, .n = 20, .k = 10, .batch = 2, .x = RFT_BF16, .w = RFT_BF16, .y = RFT_F32, .pad = 3, .dump = RFT_DUMP_ACC};
    operand x = emulate_operand(&p, p.x, false, p.m, 1), w = emulate_operand(&p, p.w, false, p.n, 2);
    emulator_launch_fn *launch;
    emulated e;
    emulate_texts(&e);
    emulate_write_kernel(e.dir, "reach", reach);
    emulate_config(e.dir, &p, &c, false);
    emulate_build(&e, &p);
    *(void **)&launch = emulate_symbol(&e, "emulator_launch");
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        const attempt *const a = &attempts[i];
        rft__cuda_launch l = {.cluster = 1};
        memcpy(l.number, a->number, sizeof l.number);
        const rft__cuda_args args = emulate_args(&p, &x, &w, y, p.n, &l);
        assert_int_equal(launch(&args, grid, 32), a->good);
        const rft__cuda_fault *const f = &emulate_fault;
        if (a->good ? f->state != 0
                    : f->state != RFT_FAULT_COMPLETE || f->what != a->number[0] || f->row != a->row || f->column != a->column) {
            fail_msg("attempt %zu: state %u, %d[%d][%lld][%lld]", i, f->state, f->what, f->batch, f->row, f->column);
        }
    }
    emulate_close(&e);
    emulate_release(&x);
    emulate_release(&w);
}

/* ---- the host ---- */

static rft_status read_debug(rft__cuda_device *d, const char *debug, const char *dump, rft_error *err) {
    *d = (rft__cuda_device){.allocator = rft__allocator_default(), .facts = h200};
    setenv("RFT_KERNEL_DEBUG", debug, 1);
    setenv("RFT_KERNEL_DUMP", dump, 1);
    const rft_status status = rft__cuda_debug_read(d, err);
    unsetenv("RFT_KERNEL_DEBUG");
    unsetenv("RFT_KERNEL_DUMP");
    return status;
}

static void the_environment_names_a_dump(void **state) {
    (void)state;
    rft__cuda_device d;
    rft_error err;
    assert_int_equal(read_debug(&d, "0", "", &err), RFT_OK);
    assert_true(!d.debug && d.dump == 0);
    assert_int_equal(read_debug(&d, "1", "", &err), RFT_OK);
    assert_true(d.debug && d.dump == 0);
    assert_int_equal(read_debug(&d, "1", "acc", &err), RFT_OK);
    assert_int_equal(d.dump, RFT_DUMP_ACC);
    assert_int_equal(read_debug(&d, "1", "part7", &err), RFT_OK);
    assert_int_equal(d.dump, RFT_DUMP_PART(7));
    assert_int_equal(read_debug(&d, "1", "part8", &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "part8 names no intermediate"));
    assert_int_equal(read_debug(&d, "0", "acc", &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "needs RFT_KERNEL_DEBUG=1"));
}

static void a_plan_has_room_for_a_dump(void **state) {
    (void)state;
    rft__cuda_device d;
    rft_error err = {.message = ""};
    rft_linear_desc desc = rft_linear_desc_init();
    rft__problem p;
    rft__choice *c = NULL;
    rft_plan_info info = {.struct_size = sizeof info};
    char text[65536];
    rft__text t = {text, sizeof text, 0};
    desc.x = desc.y = desc.w.elem = RFT_BF16;
    desc.w.n = 300, desc.w.k = 200, desc.m_min = 1, desc.m_max = 70, desc.batch = 2;
    for (int dumps = 0; dumps < 2; dumps++) {
        assert_int_equal(read_debug(&d, "1", dumps ? "part1" : "", &err), RFT_OK);
        assert_int_equal(rft__problem_make(&p, &desc, &err), RFT_OK);
        assert_int_equal(rft__cuda_choose((rft__device *)(void *)&d, &p, NULL, &c, &err), RFT_OK);
        rft__cuda_choice_info(c, 5, &info);
        assert_int_equal(info.workspace, dumps ? 2 * 70 * 300 * 4 : 0);
        rft__cuda_explain(c, 5, &t);
        assert_int_equal(strstr(text, "a debug build; part1 is in the workspace from byte 0 on") != NULL, dumps);
        rft__cuda_choice_free((rft__device *)(void *)&d, c);
    }
}

static void a_trap_is_told(void **state) {
    (void)state;
    rft__cuda_fault f = {.kernel = 0, .what = RFT_AT_OPERAND + 2, .count = 4, .block = 7, .thread = 33, .batch = 1, .batches = 2,
                         .row = 5, .rows = 5, .column = 8, .columns = 12};
    const rft__cuda_device d = {.fault = &f, .debug = true};
    rft_error err;
    assert_int_equal(rft__cuda_check(&d, CUDA_SUCCESS, "waiting", &err), RFT_OK);
    f.state = RFT_FAULT_COMPLETE;
    assert_int_equal(rft__cuda_check(&d, CUDA_SUCCESS, "waiting", &err), RFT_OK);
    assert_int_equal(rft__cuda_check(&d, 719, "waiting", &err), RFT_E_DEVICE);
    assert_int_equal(err.native, 719);
    assert_non_null(strstr(err.message, rft__cuda_rows[0].name));
    assert_non_null(strstr(err.message, "thread 33 of block 7 reached for 4 elements of operand 2 at [1][5][8]"));
    assert_non_null(strstr(err.message, ", outside of 2 x 5 x 12"));
}

/* ---- NVRTC ---- */

/* What a kernel is compiled from for a layer with two operands. */
static rft__jit_request request_of(const char *kernel, int64_t m, char *text, size_t cap) {
    static const rft_epi_op ops[] = {{.kind = RFT_EPI_BIAS, .type = RFT_BF16},
                                     {.kind = RFT_EPI_ADD, .type = RFT_BF16, .operand = 1, .beta = 1}};
    rft__cuda_device d = {.allocator = rft__allocator_default(), .facts = h200};
    rft_linear_desc desc = rft_linear_desc_init();
    rft__problem p;
    rft__choice *c = NULL;
    rft__text t = {text, cap, 0};
    desc.x = desc.y = desc.w.elem = RFT_BF16;
    desc.w.n = desc.w.k = 4096, desc.m_min = desc.m_max = m, desc.epi = ops, desc.n_epi = 2;
    assert_int_equal(rft__problem_make(&p, &desc, NULL), RFT_OK);
    assert_int_equal(rft__cuda_choose((rft__device *)(void *)&d, &p, kernel, &c, NULL), RFT_OK);
    const rft__cuda_config *const config = &rft__cuda_choice_of(c)->range[0].pick.config;
    const rft__cuda_family *const family = config->row->family;
    rft__cuda_config_text(&p, config, &t);
    rft__cuda_choice_free((rft__device *)(void *)&d, c);
    return (rft__jit_request){family->source, family->name, text, 90};
}

/* One kernel of each family; spills are allowed, a wgmma that waits is not. */
static void debug_builds_compile(void **state) {
    (void)state;
    need_nvrtc();
    static const char *const kernels[] = {"gemv_bf16_bf16_f32_8x8", "stream_sm90_bf16_bf16_bf16_16x64",
                                          "gemm_sm90_bf16_bf16_bf16_128x128", "gemm_sm80_bf16_bf16_bf16_64x64",
                                          "gemm_simt_bf16_bf16_f32_64x64"};
    static char text[5][8192];
    rft__jit_request requests[5];
    rft__cubin cubins[5];
    rft__jit *jit = NULL;
    rft_error err = {.message = ""};
    const rft__jit_options options = {.allocator = rft__allocator_default(), .threads = 4, .debug = true, .dump = RFT_DUMP_ACC};
    for (int i = 0; i < 5; i++) {
        requests[i] = request_of(kernels[i], i == 0 ? 2 : 16, text[i], sizeof text[i]);
    }
    assert_int_equal(rft__jit_create(&options, &jit, &err), RFT_OK);
    if (rft__jit_get(jit, requests, 5, cubins, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    for (int i = 0; i < 5; i++) {
        assert_false(cubins[i].serialized);
        rft__cubin_release(jit, &cubins[i]);
    }
    rft__jit_free(jit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_parts_are_dumped),    cmocka_unit_test(what_lies_outside_is_recorded),
        cmocka_unit_test(the_environment_names_a_dump), cmocka_unit_test(a_plan_has_room_for_a_dump),
        cmocka_unit_test(a_trap_is_told),               cmocka_unit_test(debug_builds_compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
