/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_rows.c - every row of kernels_cuda.def compiles for every architecture that it runs on, without spills, stack or
 * wgmma that waits. Layouts, gated units, types of y and epilogues go round from row to row. Needs NVRTC, else it is skipped; no
 * GPU.
 */
#include "cuda/cuda_choice.h"
#include "jit_fixture.h"

enum { MOST = 96, TEXT = 8192 };

typedef struct batch { /* requests that are compiled together */
    rft__jit *jit;
    uint32_t n, total;
    rft__jit_request request[MOST];
    char text[MOST][TEXT];
    char what[MOST][160];
} batch;

static void flush(batch *b) {
    static rft__cubin cubin[MOST];
    rft_error err = {.message = ""};
    if (b->n == 0) {
        return;
    }
    if (rft__jit_get(b->jit, b->request, b->n, cubin, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    for (uint32_t i = 0; i < b->n; i++) {
        if (cubin[i].spill_bytes != 0 || cubin[i].stack_bytes != 0 || cubin[i].serialized) {
            fail_msg("%s: %d bytes spilled, %d bytes of stack%s", b->what[i], cubin[i].spill_bytes, cubin[i].stack_bytes,
                     cubin[i].serialized ? ", wgmma serialized" : "");
        }
        rft__cubin_release(b->jit, &cubin[i]);
    }
    b->total += b->n;
    b->n = 0;
}

static bool known(const batch *b, const char *text, const char *source, int arch) {
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->request[i].arch == arch && strcmp(b->request[i].source, source) == 0 && strcmp(b->text[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static void add(batch *b, const rft__problem *p, const rft__cuda_config *c, int arch) {
    const rft__cuda_row *const r = c->row;
    rft__text t = {b->text[b->n], TEXT, 0};
    rft__cuda_config_text(p, c, &t);
    assert_true(t.length < TEXT);
    if (known(b, b->text[b->n], r->family->source, arch)) {
        return;
    }
    snprintf(b->what[b->n], sizeof b->what[0], "%s for sm_%d, y %s, m %d, split %d, options %d %d %d %d", r->name, arch,
             rft__type_name(p->y), c->m, c->split, c->option[0], c->option[1], c->option[2], c->option[3]);
    b->request[b->n] = (rft__jit_request){r->family->source, r->family->name, b->text[b->n], arch};
    if (++b->n == MOST) {
        flush(b);
    }
}

/* One of them with a limit of multiprocessors, where blocks take tiles in turn. */
static rft__cuda_facts facts_of(int arch) {
    return (rft__cuda_facts){.arch = arch,
                             .sms = 132,
                             .limited = arch == 89,
                             .shared_block = arch == 90 ? 232448 : arch == 89 ? 101376 : 166912,
                             .shared_sm = arch == 90 ? 233472 : arch == 89 ? 102400 : 167936,
                             .l2 = 50 << 20,
                             .read_bps = 4e12,
                             .l2_bps = 7e12,
                             .flops_16 = 750e12,
                             .flops_tf32 = 375e12,
                             .flops_f32 = 51e12};
}

typedef struct shape { /* of problem: one row of the grid */
    rft_type y;
    rft_order x_order, w_order;
    uint32_t glu;
    int64_t m;
    const rft_epi_op *epi;
    uint32_t n_epi;
} shape;

static const rft_epi_op bias_gelu[] = {{.kind = RFT_EPI_BIAS, .type = RFT_BF16, .operand = 0}, {.kind = RFT_EPI_GELU_TANH}};
static const rft_epi_op bias_gelu_add[] = {{.kind = RFT_EPI_BIAS, .type = RFT_BF16, .operand = 0},
                                           {.kind = RFT_EPI_GELU},
                                           {.kind = RFT_EPI_ADD, .type = RFT_F16, .operand = 1, .beta = 0.5f}};
static const rft_epi_op swiglu[] = {{.kind = RFT_EPI_SWIGLU}};
static const shape shapes[] = {
    {RFT_F32, RFT_K_CONTIGUOUS, RFT_K_CONTIGUOUS, 0, 1, NULL, 0},
    {RFT_BF16, RFT_K_CONTIGUOUS, RFT_K_CONTIGUOUS, 0, 8, bias_gelu, 2},
    {RFT_F16, RFT_K_CONTIGUOUS, RFT_K_CONTIGUOUS, RFT_WEIGHT_GLU_HALVES, 32, swiglu, 1},
    {RFT_BF16, RFT_K_CONTIGUOUS, RFT_K_CONTIGUOUS, RFT_WEIGHT_GLU_INTERLEAVED, 300, swiglu, 1},
    {RFT_BF16, RFT_MN_CONTIGUOUS, RFT_MN_CONTIGUOUS, 0, 300, NULL, 0},
    {RFT_F16, RFT_K_CONTIGUOUS, RFT_K_CONTIGUOUS, 0, 2048, bias_gelu_add, 3},
};

enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static rft__problem problem_of(const shape *s, const rft__cuda_row *r) {
    rft_linear_desc d = rft_linear_desc_init();
    rft__problem p;
    rft_error err = {.message = ""};
    d.x = r->x;
    d.y = s->y;
    d.x_order = s->x_order;
    d.w.elem = r->w;
    d.w.order = s->w_order;
    d.w.flags = s->glu | (s->w_order == RFT_MN_CONTIGUOUS ? RFT_WEIGHT_VIEW : 0);
    d.w.n = 4096;
    d.w.k = 4096;
    d.m_min = d.m_max = s->m;
    d.epi = s->epi;
    d.n_epi = s->n_epi;
    d.compute = r->compute == RFT__CUDA_TF32 ? RFT_COMPUTE_TF32 : RFT_COMPUTE_AUTO;
    if (rft__problem_make(&p, &d, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return p;
}

/* The first and the last config of the row for this shape: between them lie the same options in other numbers. */
static void add_row(batch *b, const rft__cuda_row *r, const shape *s, int arch) {
    const rft__cuda_facts f = facts_of(arch);
    const rft__problem p = problem_of(s, r);
    rft__cuda_config list[RFT__CUDA_CONFIGS];
    char reason[RFT__CUDA_REASON] = "";
    const int n = r->family->configs(&f, &p, s->m, r, list, reason);
    assert_true(n > 0 || reason[0] != '\0');
    assert_true(n <= RFT__CUDA_CONFIGS);
    for (int i = 0; i < n; i += n > 1 ? n - 1 : 1) {
        add(b, &p, &list[i], arch);
    }
}

static void every_row_compiles(void **state) {
    (void)state;
    static const int architectures[] = {90, 80, 89};
    static batch b;
    need_nvrtc();
    b.jit = make_jit(NULL, NULL, (rft__log){NULL, NULL, RFT_LOG_NONE});
    for (int i = 0; i < rft__cuda_row_count; i++) {
        const rft__cuda_row *const r = &rft__cuda_rows[i];
        for (size_t a = 0; a < (r->arch == 90 ? 1u : 3u); a++) {
            add_row(&b, r, &shapes[((size_t)i + a) % SHAPES], architectures[a]);
        }
    }
    flush(&b);
    print_message("%u kernels compiled\n", b.total);
    rft__jit_free(b.jit);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_compiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
