/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_linear.c - any bytes as the description and the arguments of a layer: a small good layer is drawn, then fields of its
 * descriptor and of its arguments are overwritten. What the library refuses must say why; what it accepts must explain itself,
 * and runs where its operands are small, each in memory of exactly the size that the arguments describe. Results are proven.
 */
#include "fuzz_library.h"

#include <math.h>

enum {
    LARGEST = 1 << 18 /* elements of an operand that runs */,
    ALIGN = 64,
    TAIL = 64 /* zero or fuzzed bytes behind a struct */
};

/* ---- memory of exact sizes ---- */

/* A piece that ends where its allocation ends; shift 1: not aligned. */
typedef struct piece {
    char *base, *p;
} piece;

static piece piece_make(size_t bytes, size_t shift) {
    char *const base = malloc(bytes + shift);
    require(base != NULL);
    memset(base, 0xff, bytes + shift);
    return (piece){base, base + shift};
}

static bool is_8bit(rft_type type) { return type == RFT_I8 || type == RFT_E4M3; }

static size_t element_bytes(rft_type type) { return type == RFT_F32 ? 4 : is_8bit(type) ? 1 : 2; }

static bool is_float(rft_type type) { return type == RFT_F32 || type == RFT_F16 || type == RFT_BF16; }

/* Elements from the first to the last of batch matrices of rows x row, 0 for sizes that the library must refuse; -1: too many.
 * Floating point cannot overflow, and small counts are exact in it. */
static int64_t span(int64_t rows, int64_t row, int64_t ld, int64_t batch, int64_t stride) {
    if (rows <= 0 || row <= 0 || batch <= 0 || ld < 0 || stride < 0) {
        return 0;
    }
    const double step = (double)(ld != 0 ? ld : row), matrix = stride != 0 ? (double)stride : (double)rows * step;
    const double all = (double)(batch - 1) * matrix + (double)(rows - 1) * step + (double)row;
    return all > LARGEST ? -1 : (int64_t)all;
}

static void fill(const piece *p, rft_type type, int64_t elements, uint64_t seed) {
    if ((uintptr_t)p->p % element_bytes(type) == 0) {
        require(rft_fill_random(type, p->p, elements, seed, NULL) == RFT_OK);
    }
}

/* ---- the layer ---- */

typedef struct layer {
    rft_linear_desc desc;
    unsigned char desc_tail[TAIL];
    rft_linear_args args;
    unsigned char args_tail[TAIL];
    rft_epi_op ops[RFT_MAX_EPI];
    rft_operand operands[RFT_MAX_OPERANDS];
    rft_linear_desc known; /* desc as a library sees it: zero behind struct_size */
    piece x, x_scale, w, y, packed, workspace, operand;
    rft_weight *weight;
} layer;

static void draw_desc(input *in, layer *f) {
    static const rft_type types[] = {RFT_F32, RFT_BF16, RFT_F16, RFT_I8, RFT_E4M3};
    rft_linear_desc *const d = &f->desc;
    *d = rft_linear_desc_init();
    d->x = types[take(in) % 5];
    d->y = types[take(in) % 5];
    d->w.elem = types[take(in) % 3];
    d->x_order = (rft_order)(take(in) % 2);
    d->w.order = (rft_order)(take(in) % 2);
    d->w.n = take(in) % 100;
    d->w.k = take(in) * 3 % 400;
    d->m_min = 0;
    d->m_max = take(in) % 80;
    d->batch = take(in) % 3;
    d->w.batch = take(in) % 2 != 0 ? d->batch : 0;
    d->w.flags = take(in) % 8;
    d->flags = take(in) % 32;
    if (is_8bit(d->x)) {
        d->x_order = RFT_K_CONTIGUOUS;
        d->x_group_k = d->flags & RFT_X_STATIC ? 0 : take(in) % 4 * 32;
        d->flags |= RFT_X_SCALED;
    } else if (d->compute == RFT_COMPUTE_I8) {
        d->x_group_k = take(in) % 4 * 200; /* some are the row */
    }
    d->alpha = d->flags & RFT_ALPHA ? (float)(take(in) % 4) : 0.0f;
    d->n_epi = take(in) % 4;
    for (uint32_t i = 0; i < d->n_epi; i++) {
        f->ops[i] = (rft_epi_op){.kind = (rft_epi_kind)(take(in) % 18),
                                 .type = types[take(in) % 3],
                                 .operand = take(in) % 4,
                                 .alpha = 0.25f,
                                 .beta = 0.5f};
    }
    if (is_8bit(d->y)) {
        f->ops[d->n_epi++] = (rft_epi_op){.kind = (rft_epi_kind)(RFT_EPI_QUANTIZE + take(in) % 2)};
    }
}

/* A struct_size beyond the tail would have the library read what is not there: that is the caller's promise. */
static uint32_t bounded(uint32_t size, size_t known) { return size <= known + TAIL ? size : (uint32_t)known; }

static void spoil_desc(input *in, layer *f) {
    patch(in, &f->desc, sizeof f->desc + TAIL);
    patch(in, f->ops, sizeof f->ops);
    f->desc.struct_size = bounded(f->desc.struct_size, sizeof f->desc);
    f->desc.epi = take(in) % 16 == 15 ? NULL : f->ops;
    f->known = f->desc;
    if (f->desc.struct_size < sizeof f->known) {
        memset((char *)&f->known + f->desc.struct_size, 0, sizeof f->known - f->desc.struct_size);
    }
    if (f->known.w.struct_size < sizeof f->known.w) {
        memset((char *)&f->known.w + f->known.w.struct_size, 0, sizeof f->known.w - f->known.w.struct_size);
    }
}

static int64_t batch_of(const rft_linear_desc *d) { return d->batch != 0 ? d->batch : d->w.batch != 0 ? d->w.batch : 1; }

static int64_t w_span(const rft_linear_desc *d, int64_t ld, int64_t stride) {
    const bool by_k = d->w.order == RFT_K_CONTIGUOUS;
    const int64_t batch = d->w.batch != 0 ? d->w.batch : 1;
    return span(by_k ? d->w.n : d->w.k, by_k ? d->w.k : d->w.n, ld != 0 ? ld : d->w.ld, batch,
                stride != 0 ? stride : d->w.batch_stride);
}

/* ---- what is accepted explains itself ---- */

static void check_plan(const rft_plan *plan, const layer *f) {
    rft_plan_info info = rft_plan_info_init();
    char text[4096];
    const int64_t m[] = {f->known.m_min, f->known.m_max, 1, -1};
    for (int i = 0; i < 4; i++) {
        if (rft_plan_get_info(plan, m[i], &info) == RFT_OK) {
            require(info.kernel != NULL && info.error_c >= 0 && info.error_eta >= 0 && info.threads >= 1);
        }
        require(rft_plan_explain(plan, m[i], text, sizeof text) == rft_plan_explain(plan, m[i], NULL, 0));
    }
    rft_work work = {.struct_size = sizeof work};
    require(rft_work_of(&f->desc, f->known.m_max, &work, NULL) == RFT_OK && work.flops >= 0);
}

/* ---- the run ---- */

static bool make_weight(input *in, rft_ctx *ctx, layer *f) {
    const int64_t elements = w_span(&f->known, 0, 0);
    size_t bytes = 0;
    rft_error err = {0};
    rft_weight_src src = rft_weight_src_init();
    if (elements < 0 || !is_float(f->known.w.elem) || rft_weight_bytes(ctx, &f->known.w, &bytes, &err) != RFT_OK ||
        bytes > 8 * (size_t)LARGEST) {
        return false;
    }
    f->w = piece_make((size_t)elements * element_bytes(f->known.w.elem), take(in) % 8 == 7 ? 1 : 0);
    fill(&f->w, f->known.w.elem, elements, 2);
    f->packed = (piece){aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN), NULL};
    src.q = f->w.p;
    const rft_status status = rft_weight_pack(ctx, &f->known.w, &src, f->packed.base, NULL, &f->weight, &err);
    require(status == RFT_OK || err.message[0] != '\0');
    return status == RFT_OK;
}

static void draw_args(input *in, layer *f) {
    rft_linear_args *const a = &f->args;
    *a = rft_linear_args_init();
    a->m = f->known.m_max;
    a->n_operand = RFT_MAX_OPERANDS;
    patch(in, a, sizeof *a + TAIL);
    patch(in, f->operands, sizeof f->operands);
    a->struct_size = bounded(a->struct_size, sizeof *a);
    a->struct_size = a->struct_size < sizeof *a ? sizeof *a : a->struct_size; /* of shorter ones the spans are others */
}

/* Upper bound of what any op may read, in elements of 4 bytes. */
static int64_t operand_span(const layer *f) {
    int64_t most = 16;
    for (int i = 0; i < RFT_MAX_OPERANDS; i++) {
        const rft_operand *o = &f->operands[i];
        const int64_t ld = o->ld > f->known.w.n ? o->ld : f->known.w.n;
        const int64_t one = o->ld < 0 || o->batch_stride < 0 ? 0
                                                             : span(f->args.m + 1, f->known.w.n, ld, batch_of(&f->known),
                                                                    o->batch_stride != 0 ? o->batch_stride : 1);
        if (one < 0) {
            return -1;
        }
        most = one > most ? one : most;
    }
    return most;
}

/* False where an operand is too large to run. */
static bool place(input *in, layer *f) {
    const rft_linear_desc *const d = &f->known;
    rft_linear_args *const a = &f->args;
    const bool by_k = d->x_order == RFT_K_CONTIGUOUS, dynamic = (d->flags & RFT_W_DYNAMIC) != 0;
    const int64_t x = span(by_k ? a->m : d->w.k, by_k ? d->w.k : a->m, a->ldx, batch_of(d), a->x_batch_stride);
    const int64_t y = span(a->m, d->w.n, a->ldy > d->w.n ? a->ldy : d->w.n, batch_of(d), a->y_batch_stride);
    const int64_t w = dynamic ? w_span(d, a->ldw, a->w_batch_stride) : 0, operand = operand_span(f);
    const int64_t scales = is_8bit(d->x) ? span(a->m, d->w.k / 32 + 1, 0, batch_of(d), 0) : 0;
    const unsigned odd = take(in);
    if (scales < 0 || x < 0 || y < 0 || w < 0 || operand < 0) {
        return false;
    }
    f->x = piece_make((size_t)x * element_bytes(d->x), odd == 1);
    f->y = piece_make((size_t)y * element_bytes(d->y), odd == 2);
    f->operand = piece_make((size_t)operand * 4, 0);
    f->x_scale = piece_make((size_t)scales * sizeof(float), odd == 8);
    fill(&f->x, d->x, x, 1);
    fill(&f->x_scale, RFT_F32, scales, 4);
    fill(&f->operand, RFT_BF16, operand * 2, 3);
    if (dynamic) {
        f->w = piece_make((size_t)w * element_bytes(d->w.elem), odd == 3);
        fill(&f->w, d->w.elem, w, 2);
    }
    a->x = odd == 4 ? NULL : f->x.p;
    a->y = odd == 5 ? NULL : f->y.p;
    a->w = dynamic && odd != 6 ? f->w.p : NULL;
    a->weight = dynamic ? NULL : f->weight;
    a->operand = odd == 7 ? NULL : f->operands;
    for (int i = 0; i < RFT_MAX_OPERANDS; i++) {
        f->operands[i].ptr = f->operand.p;
    }
    a->x_scale = is_8bit(d->x) != (odd == 9) ? f->x_scale.p : NULL;
    a->m_device = NULL;
    a->group_offset = NULL;
    a->row_index = NULL;
    a->stream = NULL;
    return true;
}

/* Parameters of a size that keeps f32 and f64 alike, and no scales written over an operand that others read. */
static bool is_tame(const layer *f) {
    const uint32_t n = f->known.n_epi;
    bool tame = fabsf(f->known.alpha) <= 16.0f && (n < 2 || f->ops[n - 1].kind != RFT_EPI_QUANTIZE_ROWS);
    for (uint32_t i = 0; i < f->known.n_epi; i++) {
        tame = tame && fabsf(f->ops[i].alpha) <= 16.0f && fabsf(f->ops[i].beta) <= 16.0f;
    }
    return tame;
}

static void run(const rft_plan *plan, layer *f) {
    rft_plan_info info = rft_plan_info_init();
    rft_error err = {0};
    if (rft_plan_get_info(plan, f->args.m, &info) != RFT_OK || info.workspace > 64 * (size_t)LARGEST) {
        return;
    }
    f->workspace = (piece){aligned_alloc(ALIGN, (info.workspace + ALIGN - 1) / ALIGN * ALIGN + ALIGN), NULL};
    f->args.workspace = f->workspace.base;
    f->args.workspace_bytes = info.workspace;
    const rft_status status = judge(rft_linear_run(plan, &f->args, &err), &err);
    rft_verify_result v = {.struct_size = sizeof v};
    if (status == RFT_OK && is_tame(f)) {
        require(rft_verify(plan, &f->args, f->w.p, 0.01, 1, &v, &err) == RFT_OK && v.worst <= 1.0);
    }
}

static void run_layer(input *in, rft_ctx *ctx, const rft_plan *plan, layer *f) {
    const bool dynamic = (f->known.flags & RFT_W_DYNAMIC) != 0;
    draw_args(in, f);
    if ((dynamic || make_weight(in, ctx, f)) && place(in, f)) {
        run(plan, f);
    }
}

static void free_layer(layer *f) {
    rft_weight_free(f->weight);
    free(f->x.base);
    free(f->x_scale.base);
    free(f->w.base);
    free(f->y.base);
    free(f->packed.base);
    free(f->workspace.base);
    free(f->operand.base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    layer f = {.weight = NULL};
    rft_plan *plan = NULL;
    rft_error err = {0};
    draw_desc(&in, &f);
    spoil_desc(&in, &f);
    if (judge(rft_plan_create(context(), &f.desc, &plan, &err), &err) == RFT_OK) {
        require(plan != NULL);
        check_plan(plan, &f);
        run_layer(&in, context(), plan, &f);
    }
    free_layer(&f);
    rft_plan_free(plan);
    return 0;
}
