/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_compile.c - every epilogue op alone and every ordered pair of ops through NVRTC, and the packing kernel: no spills,
 * no stack, which an index that is no constant would cost. Types of y and of operands, pairings and architectures take turns.
 */
#include "jit_fixture.h"

#include "cuda/cuda_epilogue.h"
#include "cuda/cuda_pack.h"

enum { KINDS = RFT_EPI_DROPOUT, CONFIG = 1024, MOST_REGISTERS = 128 };

static const char finish[] = "#include \"epilogue.cuh\"\n"
                             "extern \"C\" __global__ void finish(const __grid_constant__ rft__cuda_args a) {\n"
                             "    rft__pdl_wait();\n"
                             "    const int n = threadIdx.x * 8, left = (RFT_GLU ? a.n / 2 : a.n) - n;\n"
                             "    const float4 *x = (const float4 *)a.x + threadIdx.x * 4;\n"
                             "    const float4 v0 = x[0], v1 = x[1], u0 = x[2], u1 = x[3];\n"
                             "    float v[8] = {v0.x, v0.y, v0.z, v0.w, v1.x, v1.y, v1.z, v1.w};\n"
                             "    const float u[8] = {u0.x, u0.y, u0.z, u0.w, u1.x, u1.y, u1.z, u1.w};\n"
                             "    rft__finish_span(&a, blockIdx.z, blockIdx.x, n, v, u, 8, left < 8 ? left : 8);\n"
                             "}\n";

typedef struct batch { /* of requests */
    char config[RFT_JIT_MAX][CONFIG];
    rft__jit_request requests[RFT_JIT_MAX];
    uint32_t count;
} batch;

static batch now;
static const int archs[] = {90, 80, 89};

static rft__jit *make_finish_jit(void) {
    static rft__cuda_text texts[128];
    static rft__cuda_source source = {texts, 0};
    assert_true(rft__cuda_embedded.count < 128);
    memcpy(texts, rft__cuda_embedded.texts, rft__cuda_embedded.count * sizeof *texts);
    texts[rft__cuda_embedded.count] = (rft__cuda_text){.name = "finish.cu", .text = finish};
    source.count = rft__cuda_embedded.count + 1;
    return make_jit(&source, NULL, (rft__log){.level = RFT_LOG_NONE});
}

static rft_epi_op op_of(int kind, uint32_t operand, unsigned turn) {
    const rft__epi_access access = rft__epi_access_of((rft_epi_kind)kind);
    const bool typed = access == RFT__EPI_MATRIX || access == RFT__EPI_ROW || access == RFT__EPI_COLUMN;
    return (rft_epi_op){.kind = (rft_epi_kind)kind,
                        .type = typed ? (rft_type)(1 + turn % 3) : (rft_type)0,
                        .operand = operand,
                        .alpha = 0.25f,
                        .beta = 0.5f};
}

static void add_list(const rft_epi_op *ops, uint32_t count, bool paired, rft_type y, unsigned turn) {
    rft__epi epi;
    rft__text t = {now.config[now.count], CONFIG, 0};
    assert_int_equal(rft__epi_make(&epi, ops, count, 64, paired, 1.0f, NULL), RFT_OK);
    rft__text_add(&t, "#define RFT_Y_TYPE %d\n#define RFT_BATCHED %u\n#define RFT_GLU %d\n", (int)y, turn / 2 % 2,
                  paired ? (int)(1 + turn % 2) : 0);
    rft__cuda_epilogue_text(&epi, &t);
    assert_true(t.length < CONFIG);
    now.requests[now.count] = (rft__jit_request){"finish.cu", "finish", now.config[now.count], archs[turn % 3]};
    now.count++;
}

static void compile_all(void) {
    static rft__cubin cubins[RFT_JIT_MAX];
    rft__jit *jit = make_finish_jit();
    rft_error err = {.message = ""};
    if (rft__jit_get(jit, now.requests, now.count, cubins, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    for (uint32_t i = 0; i < now.count; i++) {
        const rft__cubin *const c = &cubins[i];
        if (c->spill_bytes != 0 || c->stack_bytes != 0 || c->registers == 0 || c->registers > MOST_REGISTERS) {
            fail_msg("sm_%d: %d registers, %d bytes spilled, %d of stack for\n%s", now.requests[i].arch, c->registers,
                     c->spill_bytes, c->stack_bytes, now.requests[i].config);
        }
        rft__cubin_release(jit, &cubins[i]);
    }
    rft__jit_free(jit);
}

static void each_op_compiles(void **state) {
    (void)state;
    need_nvrtc();
    now.count = 0;
    for (unsigned i = 0; i < 3 * KINDS; i++) {
        const rft_epi_op op = op_of(1 + (int)(i / 3), 0, i / 3 + i);
        add_list(&op, 1, rft__epi_is_glu(op.kind), (rft_type)(1 + i % 3), i / 3 + i);
    }
    compile_all();
}

static void each_pair_of_ops_compiles(void **state) {
    (void)state;
    need_nvrtc();
    now.count = 0;
    for (unsigned i = 0; i < KINDS * KINDS; i++) {
        const unsigned turn = i + i / KINDS;
        const rft_epi_op ops[] = {op_of(1 + (int)(i / KINDS), 0, turn), op_of(1 + (int)(i % KINDS), 1, turn / 3)};
        const bool first = rft__epi_is_glu(ops[0].kind), second = rft__epi_is_glu(ops[1].kind);
        if (!(first && second)) { /* a list pairs gate and up once */
            add_list(ops, 2, first || second, (rft_type)(1 + turn % 3), turn);
        }
    }
    compile_all();
}

static void packing_compiles(void **state) {
    (void)state;
    need_nvrtc();
    now.count = 0;
    for (int i = 0; i < 12; i++) {
        const rft__matrix w = {.elem = i % 2 ? RFT_F32 : RFT_BF16, .n = 4, .k = 4, .k_stride = i / 2 % 2 ? 4 : 1};
        rft__text t = {now.config[now.count], CONFIG, 0};
        rft__cuda_pack_text(&w, &t);
        now.requests[now.count] =
            (rft__jit_request){rft__cuda_pack_family.source, rft__cuda_pack_family.name, now.config[now.count], archs[i / 4]};
        now.count++;
    }
    compile_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_op_compiles),
        cmocka_unit_test(each_pair_of_ops_compiles),
        cmocka_unit_test(packing_compiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
