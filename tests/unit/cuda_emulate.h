/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_emulate.h - compiles a kernel of the embedded texts with cc behind cuda_emulator.h, runs a product through its family's
 * launch, and compares it with sums of small integers, which f32 holds exactly in any order. Included by the unit tests of
 * tiled families; a test skips where no compiler is.
 * Invariant: every operand ends at a page that cannot be read, so one element too far is a crash.
 */
#ifndef RFT_TESTS_CUDA_EMULATE_H
#define RFT_TESTS_CUDA_EMULATE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "need_compiler.h"

#include "cuda/cuda_source.h"
#include "cuda/gemm_common.h"
#include "epilogue/epi_math.h"
#include "format/format.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef bool emulator_launch_fn(const rft__cuda_args *args, const unsigned grid[3], unsigned block);

typedef struct emulated { /* a kernel compiled for the CPU */
    char dir[128];
    void *library;
} emulated;

typedef struct product { /* what a test asks for */
    int64_t m, n, k, batch;
    rft_type x, w, y;
    bool x_mn, w_mn;
    rft__glu glu;
    bool curve;    /* a bias in f32, then gelu_tanh; not with glu */
    bool residual; /* behind it half of a matrix of bf16 is added; of Hopper's kernels, not with glu */
    int residual_pad;
    int64_t m_max; /* of the plan, where more than m */
    int pad;       /* elements between rows beyond their length */
    int offset;    /* elements by which x and w are off their alignment */
    int limit;     /* of multiprocessors; 0: none */
    int dump;      /* a debug build, with RFT_DUMP_... of cuda_args.h; 0: a debug build where RFT_TEST_KERNEL_DEBUG is set */
    float *dumped; /* [batch][m][n], for that */
} product;

static const char emulate_headers[] = "#define RFT_KERNEL_NAME %s\n"
                                      "#define RFT_KERNEL_DECLARATION static void %s(const rft__cuda_args args)\n"
                                      "#include \"cuda_emulator.h\"\n"
                                      "#define __global__\n";

static void emulate_write(const char *dir, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* The kernel's text as C: its linkage is the only word of C++ in it. */
static void emulate_write_kernel(const char *dir, const char *entry, const char *text) {
    static const char linkage[] = "extern \"C\"";
    const size_t size = strlen(text) + sizeof emulate_headers + 256;
    char *copy = malloc(size), head[512];
    assert_non_null(copy);
    snprintf(head, sizeof head, emulate_headers, entry, entry);
    snprintf(copy, size, "%s%s", head, text);
    char *at = strstr(copy, linkage);
    assert_non_null(at);
    memcpy(at, "static    ", sizeof linkage - 1);
    emulate_write(dir, "kernel.c", copy);
    free(copy);
}

static rft__problem emulate_problem(const product *p);

/* early: W may be read before the wait for the kernel before. */
static void emulate_config(const char *dir, const product *p, const rft__cuda_config *c, bool early) {
    const rft__problem q = emulate_problem(p);
    char text[4096];
    const rft__cuda_row *r = c->row;
    const int compute[] = {1, 4, 2, 3}; /* of RFT__CUDA_F32, TF32, F16, BF16 */
    const char *const curve = p->curve ? "OP(BIAS, COLUMN, 1, 0, 0.0f, 0.0f) OP(GELU_TANH, NONE, 0, 0, 0.0f, 0.0f) " : "";
    const char *const residual = p->residual ? "OP(ADD, MATRIX, 3, 1, 1.0f, 0.5f)" : "";
    const char *const gated = p->glu != RFT__GLU_NONE ? "OP(SWIGLU, PAIR, 0, 0, 0.0f, 0.0f)" : "";
    snprintf(
        text, sizeof text,
        "#pragma once\n#define RFT_X_TYPE %d\n#define RFT_W_TYPE %d\n#define RFT_Y_TYPE %d\n#define RFT_COMPUTE_TYPE %d\n"
        "#define RFT_X_MN %d\n#define RFT_W_MN %d\n#define RFT_GLU %d\n#define RFT_BATCHED %d\n#define RFT_W_EARLY %d\n"
        "#define RFT_BM %d\n#define RFT_BN %d\n#define RFT_BK %d\n#define RFT_WARPS %d\n#define RFT_M %d\n"
        "#define RFT_SPLIT %d\n#define RFT_CLUSTER %d\n#define RFT_STAGES %d\n#define RFT_OPTION0 %d\n#define RFT_OPTION1 %d\n"
        "#define RFT_OPTION2 %d\n#define RFT_OPTION3 %d\n#define RFT_EPI_COUNT %d\n#define RFT_EPI(OP) %s%s%s\n",
        p->x, p->w, p->y, compute[r->compute], p->x_mn, p->w_mn, (int)p->glu, p->batch > 1, early, r->bm, r->bn, r->bk, r->warps,
        c->m, c->split, c->cluster, c->stages, c->option[0], c->option[1], c->option[2], c->option[3],
        q.epi.n_op, gated, curve, residual);
    rft__text t = {text, sizeof text, strlen(text)};
    if (r->family->text != NULL) {
        r->family->text(&q, c, &t);
    }
    emulate_write(dir, "config.h", text);
}

/* A folder with all texts but those of formats. */
static void emulate_texts(emulated *e) {
    char command[256];
    const char *const tmp = getenv("TMPDIR");
    snprintf(e->dir, sizeof e->dir, "%s/rft_emulate_XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(e->dir));
    snprintf(command, sizeof command, "mkdir %s/epilogue", e->dir);
    assert_int_equal(system(command), 0);
    for (uint32_t i = 0; i < rft__cuda_embedded.count; i++) {
        const rft__cuda_text *const t = &rft__cuda_embedded.texts[i];
        if (strncmp(t->name, "format/", 7) != 0) {
            emulate_write(e->dir, t->name, t->text);
        }
    }
}

static const char *emulate_text_of(const char *source) {
    for (uint32_t i = 0; i < rft__cuda_embedded.count; i++) {
        if (strcmp(rft__cuda_embedded.texts[i].name, source) == 0) {
            return rft__cuda_embedded.texts[i].text;
        }
    }
    fail_msg("there is no text %s", source);
    return NULL;
}

/* Compiles the folder's kernel.c. */
static void emulate_build(emulated *e, const product *p) {
    char command[1024], library[160], debug[64] = "";
    if (p->dump != 0 || getenv("RFT_TEST_KERNEL_DEBUG") != NULL) {
        snprintf(debug, sizeof debug, "-DRFT_KERNEL_DEBUG=1 -DRFT_KERNEL_DUMP=%d", p->dump);
    }
    snprintf(library, sizeof library, "%s/kernel.so", e->dir);
    snprintf(command, sizeof command,
             "cc -O1 -std=gnu11 -w -Wno-psabi -shared -fPIC -ffp-contract=off %s -I%s -I%s -o %s %s/kernel.c -lm", debug, e->dir,
             RFT_TEST_DATA_DIR "/../unit", library, e->dir);
    assert_int_equal(system(command), 0);
    e->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (e->library == NULL) {
        fail_msg("%s", dlerror());
    }
}

static void *emulate_symbol(const emulated *e, const char *name) {
    void *const symbol = dlsym(e->library, name);
    assert_non_null(symbol);
    return symbol;
}

static void emulate_close(emulated *e) {
    char command[160];
    dlclose(e->library);
    snprintf(command, sizeof command, "rm -r %s", e->dir);
    assert_int_equal(system(command), 0);
}

/* ---- operands ---- */

typedef struct operand {
    void *pages;
    size_t size;                             /* of pages */
    char *data;                              /* ends at the guard page */
    int64_t ld, batch_stride, rows, columns; /* as stored */
    rft_type type;
} operand;

static int emulate_value(int64_t row, int64_t k, int64_t batch, int seed) {
    const uint64_t h =
        ((uint64_t)row * 2654435761u + (uint64_t)k * 40503u + (uint64_t)(batch * 7 + seed) * 97u) * 0x9e3779b97f4a7c15u;
    return (int)(h >> 61) - 3;
}

static void emulate_put(char *at, rft_type t, int value) {
    const float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (t == RFT_F32) {
        memcpy(at, &bits, 4);
        return;
    }
    const uint16_t f16 =
        (uint16_t)(value == 0 ? 0 : (bits >> 16 & 0x8000u) | (((bits >> 23 & 255u) - 112u) << 10) | (bits >> 13 & 1023u));
    const uint16_t half = t == RFT_BF16 ? (uint16_t)(bits >> 16) : f16;
    memcpy(at, &half, 2);
}

/* rows x k elements a batch, K-contiguous or not; what lies between rows is NaN. */
static operand emulate_operand(const product *p, rft_type t, bool mn, int64_t rows, int seed) {
    operand o = {.type = t, .rows = mn ? p->k : rows, .columns = mn ? rows : p->k};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)rft__cuda_size(t);
    o.ld = (p->pad || p->offset ? o.columns : rft__round_up(o.columns, 8)) + p->pad;
    o.batch_stride = o.ld * o.rows;
    const size_t used = (size_t)(o.batch_stride * (p->batch - 1) + o.ld * (o.rows - 1) + o.columns) * size;
    const size_t room = (size_t)rft__round_up((int64_t)used + 64, (int64_t)page);
    o.size = room + page;
    o.pages = mmap(NULL, o.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(o.pages != MAP_FAILED);
    assert_int_equal(mprotect((char *)o.pages + room, page, PROT_NONE), 0);
    memset(o.pages, 0xff, room);
    /* An aligned operand cannot end at the page unless its length is a multiple of 16 bytes: it ends less than 16 before. */
    const size_t end = p->offset ? room : room - (16 - used % 16) % 16;
    o.data = (char *)o.pages + end - used;
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t i = 0; i < o.rows * o.columns; i++) {
            const int64_t r = i / o.columns, c = i % o.columns;
            emulate_put(o.data + (size_t)(b * o.batch_stride + r * o.ld + c) * size, t,
                        emulate_value(mn ? c : r, mn ? r : c, b, seed));
        }
    }
    return o;
}

static void emulate_release(operand *o) { munmap(o->pages, o->size); }

/* ---- a product ---- */

static float emulate_sum(const product *p, int64_t b, int64_t m, int64_t n) {
    int sum = 0;
    for (int64_t k = 0; k < p->k; k++) {
        sum += emulate_value(m, k, b, 1) * emulate_value(n, k, b, 2);
    }
    return (float)sum;
}

static float emulate_bias(int64_t n) { return (float)(n % 64) * 0.25f - 8.0f; }

static float emulate_expected(const product *p, int64_t b, int64_t m, int64_t n) {
    if (p->glu == RFT__GLU_NONE) {
        const float sum = emulate_sum(p, b, m, n), own = p->curve ? rft__gelu_tanh(sum + emulate_bias(n)) : sum;
        return p->residual ? own + 0.5f * (float)emulate_value(m, n, b, 3) : own;
    }
    const bool halves = p->glu == RFT__GLU_HALVES;
    return rft__silu(emulate_sum(p, b, m, halves ? n : 2 * n)) * emulate_sum(p, b, m, halves ? n + p->n / 2 : 2 * n + 1);
}

static rft__problem emulate_problem(const product *p) {
    rft__problem q = {.x = p->x,
                      .y = p->y,
                      .x_order = p->x_mn ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS,
                      .m_min = 1,
                      .m_max = p->m_max > p->m ? p->m_max : p->m,
                      .batch = p->batch,
                      .alpha = 1,
                      .w_dynamic = true};
    q.w = (rft__matrix){.elem = p->w,
                        .order = p->w_mn ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS,
                        .glu = p->glu,
                        .n = p->n,
                        .k = p->k,
                        .batch = p->batch};
    q.epi.n_in = p->n;
    q.epi.n_out = p->glu == RFT__GLU_NONE ? p->n : p->n / 2;
    q.epi.glu_at = p->glu == RFT__GLU_NONE ? -1 : 0;
    if (p->glu != RFT__GLU_NONE) {
        q.epi.op[q.epi.n_op++] = (rft_epi_op){.kind = RFT_EPI_SWIGLU};
    }
    if (p->curve) {
        q.epi.op[q.epi.n_op++] = (rft_epi_op){.kind = RFT_EPI_BIAS, .type = RFT_F32};
        q.epi.op[q.epi.n_op++] = (rft_epi_op){.kind = RFT_EPI_GELU_TANH};
    }
    if (p->residual) {
        q.epi.op[q.epi.n_op++] = (rft_epi_op){.kind = RFT_EPI_ADD, .type = RFT_BF16, .operand = 1, .beta = 0.5f};
    }
    return q;
}

/* As y has it. */
static float emulate_rounded(const product *p, float v) {
    return p->y == RFT_BF16 ? rft__as_float((unsigned)rft__bf16_from_f32(v) << 16) : v;
}

static rft__cuda_fault emulate_fault; /* of the last run */
static float emulate_column[4096];    /* the bias, at the end */

static rft__cuda_args emulate_args(const product *p, const operand *x, const operand *w, void *y, int64_t ldy,
                                   const rft__cuda_launch *l) {
    rft__cuda_args a = {.x = x->data,
                        .w = w->data,
                        .y = y,
                        .ldx = x->ld,
                        .ldw = w->ld,
                        .ldy = ldy,
                        .x_batch_stride = x->batch_stride,
                        .w_batch_stride = w->batch_stride,
                        .y_batch_stride = p->m * ldy,
                        .m = (int)p->m,
                        .n = (int)p->n,
                        .k = (int)p->k,
                        .batch = (int)p->batch,
                        .debug = {&emulate_fault, p->dumped, 0}};
    emulate_fault = (rft__cuda_fault){.state = 0};
    float *const bias = emulate_column + sizeof emulate_column / sizeof *emulate_column - p->n;
    for (int64_t n = 0; n < p->n; n++) {
        bias[n] = emulate_bias(n);
    }
    a.operand[0] = (rft__cuda_operand){.ptr = bias};
    memcpy(a.number, l->number, sizeof a.number);
    return a;
}

static void emulate_check(const product *p, const float *y, int64_t ldy, int64_t n_out, const char *what) {
    for (int64_t i = 0; i < p->batch * p->m * ldy; i++) {
        const int64_t b = i / (p->m * ldy), m = i / ldy % p->m, n = i % ldy;
        const float want = n < n_out ? emulate_rounded(p, emulate_expected(p, b, m, n)) : -777.0f;
        if (memcmp(&y[i], &want, sizeof want) != 0 && y[i] != want) {
            fail_msg("%s: m=%lld n=%lld k=%lld x_mn=%d w_mn=%d glu=%d: y[%lld][%lld][%lld] is %g, not %g", what, (long long)p->m,
                     (long long)p->n, (long long)p->k, p->x_mn, p->w_mn, (int)p->glu, (long long)b, (long long)m, (long long)n,
                     (double)y[i], (double)want);
        }
    }
}

/* Runs p (y in f32) with the config; what: for messages. */
__attribute__((unused)) static void emulate_product(const rft__cuda_family *f, const product *p, const rft__cuda_config *c,
                                                    const char *what) {
    const rft__cuda_facts facts = {.arch = 80,
                                   .sms = p->limit ? p->limit : 4,
                                   .limited = p->limit != 0,
                                   .shared_block = 232448,
                                   .shared_sm = 233472,
                                   .l2 = 1 << 20,
                                   .read_bps = 1e12,
                                   .l2_bps = 2e12,
                                   .flops_16 = 1e14,
                                   .flops_tf32 = 5e13,
                                   .flops_f32 = 1e13};
    const rft__problem q = emulate_problem(p);
    operand x = emulate_operand(p, p->x, p->x_mn, p->m, 1), w = emulate_operand(p, p->w, p->w_mn, p->n, 2);
    const int64_t ldy = q.epi.n_out + 3, count = p->batch * p->m * ldy;
    float *y = malloc((size_t)count * sizeof *y);
    rft__cuda_launch l;
    emulator_launch_fn *launch;
    emulated e;
    for (int64_t i = 0; i < count; i++) {
        y[i] = -777.0f;
    }
    f->launch(&facts, &q, c, p->m, &l);
    assert_true(!p->limit || l.grid[0] * l.grid[1] * l.grid[2] <= (unsigned)p->limit);
    const rft__cuda_args a = emulate_args(p, &x, &w, y, ldy, &l);
    const char *rule = f->unsuited ? f->unsuited(&q, c, &a) : NULL;
    if (rule != NULL) {
        fail_msg("%s: %s", what, rule);
    }
    emulate_texts(&e);
    emulate_write_kernel(e.dir, f->name, emulate_text_of(f->source));
    emulate_config(e.dir, p, c, false);
    emulate_build(&e, p);
    *(void **)&launch = emulate_symbol(&e, "emulator_launch");
    assert_true(launch(&a, l.grid, l.block));
    assert_int_equal(*(int *)emulate_symbol(&e, "emulator_conflicts"), 0);
    emulate_check(p, y, ldy, q.epi.n_out, what);
    emulate_close(&e);
    free(y);
    emulate_release(&x);
    emulate_release(&w);
}

#endif
