/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_case.c - see bench_case.h. Called by bench_run.c.
 */
#include "bench_case.h"

#include <math.h>

/* f64 work of one proof: on a GPU the processor would take longer for more than the GPU needs for all rows. */
#define GFLOP_CPU 0 /* the library's default */
#define GFLOP_GPU 2

static int no_memory(const bench_case *c) {
    cli_message("m %lld n %lld k %lld: no memory for the operands", (long long)c->m, (long long)c->n, (long long)c->k);
    return CLI_LIBRARY;
}

/* Elements of an op's operand, in `type`; bits and seeds count as bytes. */
static int64_t operand_elements(const rft_epi_op *op, int64_t m, int64_t columns, rft_type *type) {
    *type = op->type;
    switch (op->kind) {
    case RFT_EPI_BIAS:
    case RFT_EPI_COL_SCALE:
        return columns;
    case RFT_EPI_ROW_SCALE:
        return m;
    case RFT_EPI_MUL:
    case RFT_EPI_ADD:
        return m * columns;
    case RFT_EPI_MASK:
        *type = RFT_U8;
        return (m * columns + 7) / 8;
    case RFT_EPI_DROPOUT:
        *type = RFT_U8;
        return 16;
    case RFT_EPI_QUANTIZE:
        *type = RFT_F32;
        return 1;
    case RFT_EPI_QUANTIZE_ROWS:
        *type = RFT_F32;
        return m * scales_along(columns, (int64_t)op->alpha);
    default:
        return 0;
    }
}

static int fill(bench_case *c, buffer *b, rft_type type, int64_t elements, uint64_t seed) {
    size_t bytes;
    if (!cli_bytes(type, elements, &bytes) || buffer_make(b, c->ctx, bytes, &c->err) != RFT_OK)
        return no_memory(c);
    if (buffer_random(b, type, elements, seed, &c->err) != RFT_OK)
        return cli_failed(&c->err, "random data");
    return CLI_OK;
}

static double largest(const float *y, int64_t count) {
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        if (fabs((double)y[i]) > most)
            most = fabs((double)y[i]);
    return most;
}

/* The scale that calibration would give: with it the largest |y| of this very product is the largest code. */
static rft_status write_scale(bench_case *c, const bench_case *before, const buffer *scale) {
    const double most = largest(before->y.p, (int64_t)(before->y.bytes / sizeof(float)));
    const float one = most > 0 ? (float)(most / (c->o->y == RFT_I8 ? 127 : 448)) : 1;
    return buffer_write(scale, 0, &one, sizeof one, &c->err);
}

static int calibrate(bench_case *c, const buffer *scale) {
    run_options plain = *c->o;
    bench_case before;
    plain.kernel = NULL;
    plain.y = RFT_F32;
    plain.epi.n_op--;
    int code = case_make(&before, &plain, c->ctx, c->set, c->m);
    if (code != CLI_OK)
        return code;
    if (case_run(&before, 0, NULL, &c->err) != RFT_OK || write_scale(c, &before, scale) != RFT_OK)
        code = cli_failed(&c->err, "scale of y");
    case_free(&before);
    return code;
}

static int make_operands(bench_case *c) {
    int64_t columns = c->n;
    int code = CLI_OK;
    for (uint32_t i = 0; i < c->o->epi.n_op && code == CLI_OK; i++) {
        const rft_epi_op *op = &c->o->epi.op[i];
        rft_type type;
        int64_t elements = operand_elements(op, c->m, columns, &type);
        if (op_is_glu(op))
            columns /= 2;
        if (op->kind == RFT_EPI_QUANTIZE_ROWS) { /* written, so that each product of a batch has its own */
            c->operand[i].batch_stride = elements;
            elements *= c->o->batch; /* no more than y has */
        }
        if (elements)
            code = fill(c, &c->operand_data[i], type, elements, c->o->seed + 100 + i);
        c->operand[i].ptr = c->operand_data[i].p;
        if (code == CLI_OK && op->kind == RFT_EPI_QUANTIZE)
            code = calibrate(c, &c->operand_data[i]);
    }
    return code;
}

static rft_status round_x(bench_case *c, const buffer *floats) {
    rft_quantize_args q = rft_quantize_args_init();
    q.from = RFT_F32;
    q.to = c->o->x;
    q.m = c->m * c->o->batch;
    q.k = c->k;
    q.group_k = c->o->x_groups.k;
    q.x = floats->p;
    q.q = c->x.p;
    q.scale = c->x_scale.p;
    return rft_quantize(c->ctx, &q, &c->err);
}

/* Codes and scales, as a layer in front would hand them on. */
static int make_codes(bench_case *c, int64_t elements) {
    buffer floats = {0};
    int64_t scales;
    size_t bytes;
    if (!cli_product(c->m, c->o->batch, scales_along(c->k, c->o->x_groups.k), &scales) || !cli_bytes(RFT_F32, scales, &bytes) ||
        buffer_make(&c->x, c->ctx, (size_t)elements, &c->err) != RFT_OK ||
        buffer_make(&c->x_scale, c->ctx, bytes, &c->err) != RFT_OK)
        return no_memory(c);
    int code = fill(c, &floats, RFT_F32, elements, c->o->seed + 1);
    if (code == CLI_OK && round_x(c, &floats) != RFT_OK)
        code = cli_failed(&c->err, "x in 8 bits");
    buffer_free(&floats);
    return code;
}

static int make_data(bench_case *c) {
    int64_t elements;
    size_t bytes;
    if (!cli_product(c->m, c->k, c->o->batch, &elements))
        return no_memory(c);
    int code = cli_8bit(c->o->x) ? make_codes(c, elements) : fill(c, &c->x, c->o->x, elements, c->o->seed + 1);
    if (code != CLI_OK)
        return code;
    if (!cli_product(c->m, c->columns, c->o->batch, &elements) || !cli_bytes(c->o->y, elements, &bytes) ||
        buffer_make(&c->y, c->ctx, bytes, &c->err) != RFT_OK)
        return no_memory(c);
    return make_operands(c);
}

static int make_plan(bench_case *c) {
    rft_work work = {.struct_size = sizeof work};
    if (options_plan(c->o, c->ctx, &c->desc, &c->plan, &c->err) != RFT_OK)
        return cli_failed(&c->err, "plan");
    c->info = rft_plan_info_init();
    if (rft_plan_get_info(c->plan, c->m, &c->info) != RFT_OK ||
        buffer_make(&c->workspace, c->ctx, c->info.workspace, &c->err) != RFT_OK)
        return no_memory(c);
    if (rft_work_of(&c->desc, c->m, &work, &c->err) != RFT_OK)
        return cli_failed(&c->err, "work");
    c->w_bytes = work.w_bytes;
    return CLI_OK;
}

int case_make(bench_case *c, const run_options *o, rft_ctx *ctx, const weight_set *set, int64_t m) {
    *c = (bench_case){.o = o, .ctx = ctx, .set = set, .m = m, .n = set->desc.n, .k = set->desc.k};
    c->desc = options_desc(o, c->n, c->k, m, m);
    c->desc.w.flags = set->desc.flags;
    c->columns = options_columns(o, c->n);
    int code = make_plan(c);
    if (code == CLI_OK)
        code = make_data(c);
    if (code != CLI_OK)
        case_free(c);
    return code;
}

void case_free(bench_case *c) {
    rft_plan_free(c->plan);
    c->plan = NULL;
    buffer_free(&c->x);
    buffer_free(&c->x_scale);
    buffer_free(&c->y);
    buffer_free(&c->workspace);
    for (int i = 0; i < RFT_MAX_OPERANDS; i++)
        buffer_free(&c->operand_data[i]);
}

static rft_linear_args make_args(const bench_case *c, int64_t i, void *stream) {
    rft_linear_args a = rft_linear_args_init();
    a.m = c->m;
    a.x = c->x.p;
    a.x_scale = c->x_scale.p;
    a.y = c->y.p;
    a.operand = c->operand;
    a.n_operand = c->o->epi.n_op;
    a.workspace = c->workspace.p;
    a.workspace_bytes = c->info.workspace;
    a.stream = stream;
    if (c->set->weight)
        a.weight = weight_set_at(c->set, i);
    else
        a.w = weight_set_raw(c->set, i);
    return a;
}

rft_status case_run(bench_case *c, int64_t i, void *stream, rft_error *err) {
    rft_linear_args args = make_args(c, i, stream);
    return rft_linear_run(c->plan, &args, err);
}

int case_verify(bench_case *c) {
    rft_linear_args args = make_args(c, 0, NULL);
    rft_weight_src src = weight_set_source(c->set, 0);
    double most = on_host(c->ctx) ? GFLOP_CPU : GFLOP_GPU;
    if (buffer_set(&c->y, 0xff, &c->err) != RFT_OK || rft_linear_run(c->plan, &args, &c->err) != RFT_OK ||
        rft_ctx_sync(c->ctx, NULL, &c->err) != RFT_OK)
        return cli_failed(&c->err, "run");
    c->proof = (rft_verify_result){.struct_size = sizeof c->proof};
    if (rft_verify_source(c->plan, &args, &src, most, c->o->seed, &c->proof, &c->err) != RFT_OK)
        return cli_failed(&c->err, "verify");
    return c->proof.worst <= 1 ? CLI_OK : CLI_FAILED;
}
