/* SPDX-License-Identifier: Apache-2.0
 *
 * cblas_product.c - runs the products of all functions: nothing to multiply, a few numbers, a large W that is packed first, or
 * plans for a list of products and one hand-off to the threads. Called with checked arguments.
 */
#include "door.h"

#include <string.h>

enum {
    TINY = 256,              /* multiplications that take less time here than a plan takes to run */
    SLAB_COLUMNS = 64,       /* whole panels of any level */
    SLAB_BYTES = 8 * 1048576 /* of W, packed at once */
};

/* ---- without a plan ---- */

static float *row_of(const rft__blas_product *p, int64_t b, int64_t i) { return p->y + b * p->y_stride + i * p->ldy; }

/* Y = beta * Y: what remains where nothing is multiplied. */
static void scale_y(const rft__blas_product *p) {
    for (int64_t i = 0; p->beta != 1.0f && i < p->batch * p->m; i++) {
        float *const y = row_of(p, i / p->m, i % p->m);
        for (int64_t j = 0; j < p->n; j++) {
            y[j] = p->beta == 0.0f ? 0.0f : p->beta * y[j];
        }
    }
}

static float element(rft_type type, const void *p, int64_t i) {
    float value;
    if (type == RFT_F32) {
        return ((const float *)p)[i];
    }
    const uint32_t bits = (uint32_t)((const uint16_t *)p)[i] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float sum_of(const rft__blas_product *p, int64_t x, int64_t w) {
    const int64_t x_step = p->x_order == RFT_K_CONTIGUOUS ? 1 : p->ldx, w_step = p->w_order == RFT_K_CONTIGUOUS ? 1 : p->ldw;
    float sum = 0;
    for (int64_t l = 0; l < p->k; l++) {
        sum += element(p->type, p->x, x + l * x_step) * element(p->type, p->w, w + l * w_step);
    }
    return sum;
}

static bool is_tiny(const rft__blas_product *p) {
    return p->batch <= TINY && p->m <= TINY && p->n <= TINY && p->k <= TINY && p->batch * p->m * p->n * p->k <= TINY;
}

/* By the definition, in the order of k. */
static void multiply_here(const rft__blas_product *p) {
    const int64_t x_step = p->x_order == RFT_K_CONTIGUOUS ? p->ldx : 1, w_step = p->w_order == RFT_K_CONTIGUOUS ? p->ldw : 1;
    for (int64_t i = 0; i < p->batch * p->m; i++) {
        const int64_t b = i / p->m, row = i % p->m;
        float *const y = row_of(p, b, row);
        for (int64_t j = 0; j < p->n; j++) {
            const float sum = p->alpha * sum_of(p, b * p->x_stride + row * x_step, b * p->w_stride + j * w_step);
            y[j] = p->beta == 0.0f ? sum : sum + p->beta * y[j];
        }
    }
}

/* A single column becomes a row: its X is then what is streamed once, where it lies. */
static void make_row(rft__blas_product *p) {
    if (p->n != 1 || p->m == 1 || p->ldy != 1 || p->batch != 1) {
        return;
    }
    const rft__blas_product t = *p;
    p->m = t.n, p->n = p->ldy = t.m;
    p->x = t.w, p->ldx = t.ldw, p->x_order = t.w_order;
    p->w = t.x, p->ldw = t.ldx, p->w_order = t.x_order;
}

/* ---- by plans ---- */

static void set_args(rft_linear_args *a, const rft__blas_product *p, const rft_operand *y, void *workspace, size_t bytes) {
    *a = rft_linear_args_init();
    a->m = p->m;
    a->x = p->x, a->ldx = p->ldx, a->x_batch_stride = p->x_stride;
    if (!rft__blas_packs(p)) {
        a->w = p->w, a->ldw = p->ldw, a->w_batch_stride = p->w_stride;
    }
    a->y = p->y, a->ldy = p->ldy, a->y_batch_stride = p->y_stride;
    a->operand = y, a->n_operand = p->beta != 0.0f;
    a->workspace = workspace, a->workspace_bytes = bytes;
}

static rft_status multiply(const rft__blas_product *products, uint32_t count, rft_error *err) {
    rft__blas_loan loan;
    rft_linear_args args[RFT_MAX_LIST];
    rft_operand y[RFT_MAX_LIST];
    rft_status status = rft__blas_lend(products, count, &loan, err);
    if (status != RFT_OK) {
        return status;
    }
    char *free_space = loan.buffer.p;
    for (uint32_t i = 0; i < count; i++) {
        const rft__blas_product *const p = products + i;
        y[i] = (rft_operand){p->y, p->ldy, p->y_stride};
        set_args(args + i, p, y + i, free_space, loan.workspace_bytes[i]);
        free_space += loan.workspace_bytes[i];
    }
    rft_weight *packed = NULL;
    if (rft__blas_packs(products)) {
        const rft_weight_desc w = rft__blas_weight(products);
        rft_weight_src source = rft_weight_src_init();
        source.q = products->w;
        status = rft_weight_pack(loan.ctx, &w, &source, free_space, NULL, &packed, err);
        args->weight = packed;
    }
    if (status == RFT_OK) {
        status = rft_run_list(loan.plan, args, count, err);
    }
    rft_weight_free(packed);
    rft__blas_return(&loan);
    return status;
}

/* Measured on Zen 4; rows of W that are contiguous in n are the costlier ones to pack strip by strip. */
bool rft__blas_packs(const rft__blas_product *p) {
    return p->batch == 1 && p->m >= (p->w_order == RFT_MN_CONTIGUOUS ? 128 : 256);
}

/* Slabs of columns, so that the packed W of the largest product is of a bounded size. */
static rft_status multiply_packed(const rft__blas_product *whole, rft_error *err) {
    const int64_t bytes = rft__blas_bytes(whole->type), step = whole->w_order == RFT_K_CONTIGUOUS ? whole->ldw : 1;
    const int64_t most = SLAB_BYTES / (whole->k * bytes) / SLAB_COLUMNS * SLAB_COLUMNS;
    const int64_t width = most > 0 ? most : SLAB_COLUMNS;
    rft__blas_product slab = *whole;
    rft_status status = RFT_OK;
    for (int64_t column = 0; column < whole->n && status == RFT_OK; column += width) {
        slab.n = width < whole->n - column ? width : whole->n - column;
        slab.w = (const char *)whole->w + column * step * bytes;
        slab.y = whole->y + column;
        status = multiply(&slab, 1, err);
    }
    return status;
}

/* ---- entry ---- */

bool rft__blas_run(const char *routine, const rft__blas_product *products, uint32_t count) {
    rft__blas_product list[RFT_MAX_LIST];
    rft_error err = {.status = RFT_OK};
    uint32_t n = 0;
    for (uint32_t i = 0; i < count && err.status == RFT_OK; i++) {
        rft__blas_product *const p = list + n;
        *p = products[i];
        make_row(p);
        if (p->m == 0 || p->n == 0 || p->batch == 0) {
            continue;
        }
        if (p->alpha == 0.0f || p->k == 0) {
            scale_y(p);
        } else if (is_tiny(p)) {
            multiply_here(p);
        } else if (rft__blas_packs(p)) {
            multiply_packed(p, &err);
        } else {
            n++;
        }
    }
    if (n > 0 && err.status == RFT_OK) {
        multiply(list, n, &err);
    }
    if (err.status != RFT_OK) {
        cblas_xerbla(0, routine, "%s\n", err.message);
    }
    return err.status == RFT_OK;
}
