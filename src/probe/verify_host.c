/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_host.c - see verify_host.h. A copy has the layout of its operand, so that one text compares both; pages that no row
 * is copied to cost nothing.
 */
#include "probe/verify_host.h"

#include <string.h>

typedef struct matrix { /* batch times rows x columns */
    const void *data;
    int64_t bits; /* of an element */
    int64_t rows, columns, ld, batch, batch_stride;
} matrix;

static int64_t elements_of(const matrix *m) { return (m->batch - 1) * m->batch_stride + (m->rows - 1) * m->ld + m->columns; }

static size_t bytes_of(const matrix *m, int64_t elements) { return ((size_t)elements * (size_t)m->bits + 7) / 8; }

static rft_status add_copy(rft__verify_host *h, size_t bytes, void **p, rft_error *err) {
    *p = rft__alloc(&h->ctx->allocator, bytes, 64);
    if (*p == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a copy of %zu bytes of a device's operand", bytes);
    }
    h->copy[h->n_copies].p = *p;
    h->copy[h->n_copies++].bytes = bytes;
    return RFT_OK;
}

static rft_status fetch_all(rft__verify_host *h, const matrix *m, const void **out, rft_error *err) {
    const size_t bytes = bytes_of(m, elements_of(m));
    void *copy = NULL;
    RFT_TRY(add_copy(h, bytes, &copy, err));
    *out = copy;
    return rft_memory_read(h->ctx, copy, m->data, bytes, err);
}

/* Rows first to last of one batch, with what lies between them. */
static rft_status fetch_run(const rft__verify_host *h, const matrix *m, int64_t b, int64_t first, int64_t last, char *copy,
                            rft_error *err) {
    const size_t at = bytes_of(m, b * m->batch_stride + first * m->ld);
    return rft_memory_read(h->ctx, copy + at, (const char *)m->data + at, bytes_of(m, (last - first) * m->ld + m->columns), err);
}

static rft_status fetch_rows(rft__verify_host *h, const matrix *m, const void **out, rft_error *err) {
    void *copy = NULL;
    RFT_TRY(add_copy(h, bytes_of(m, elements_of(m)), &copy, err));
    *out = copy;
    for (int64_t b = 0; b < h->n_batches; b++) {
        for (int64_t i = 0, end; i < h->n_rows; i = end) {
            for (end = i + 1; end < h->n_rows && h->rows[end] == h->rows[end - 1] + 1; end++) {
            }
            RFT_TRY(fetch_run(h, m, h->batches[b], h->rows[i], h->rows[end - 1], copy, err));
        }
    }
    return RFT_OK;
}

static int64_t bits_of(rft_type type) { return 8 * (int64_t)rft__type_size(type); }

static rft_status fetch_x(rft__verify_host *h, const rft__problem *p, rft_linear_args *a, rft_error *err) {
    const bool by_k = p->x_order == RFT_K_CONTIGUOUS;
    const matrix x = {a->x, bits_of(p->x), by_k ? a->m : p->w.k, by_k ? p->w.k : a->m, a->ldx, p->batch, a->x_batch_stride};
    return by_k ? fetch_rows(h, &x, &a->x, err) : fetch_all(h, &x, &a->x, err);
}

static rft_status fetch_y(rft__verify_host *h, const rft__problem *p, rft_linear_args *a, rft_error *err) {
    const matrix y = {a->y, bits_of(p->y), a->m, p->epi.n_out, a->ldy, p->batch, a->y_batch_stride};
    const void *copy = NULL;
    const rft_status status = fetch_rows(h, &y, &copy, err);
    a->y = (void *)(uintptr_t)copy;
    return status;
}

/* ---- operands of the epilogue ---- */

/* What op i reads of its operand. */
static matrix operand_matrix(const rft__problem *p, int i, const rft_operand *o, int64_t m) {
    const rft_epi_op *op = &p->epi.op[i];
    const int64_t columns = i < p->epi.glu_at ? p->epi.n_in : p->epi.n_out, ld = o->ld != 0 ? o->ld : columns;
    switch (rft__epi_access_of(op->kind)) {
    case RFT__EPI_SEED:
        return (matrix){o->ptr, 64, 1, 2, 2, 1, 0};
    case RFT__EPI_BITS:
        return (matrix){o->ptr, 1, m, columns, ld, p->batch, o->batch_stride};
    case RFT__EPI_MATRIX:
        return (matrix){o->ptr, bits_of(op->type), m, columns, ld, p->batch, o->batch_stride};
    case RFT__EPI_ROW:
        return (matrix){o->ptr, bits_of(op->type), 1, m, m, p->batch, o->batch_stride};
    case RFT__EPI_COLUMN:
        return (matrix){o->ptr, bits_of(op->type), 1, columns, columns, p->batch, o->batch_stride};
    default:
        return (matrix){0};
    }
}

/* An operand that several ops read is as large as the largest of them needs. */
static rft_status fetch_operand(rft__verify_host *h, const rft__problem *p, uint32_t index, int64_t m, rft_error *err) {
    const rft_operand *const o = &h->operand[index];
    size_t bytes = 0;
    for (int i = 0; i < p->epi.n_op; i++) {
        const matrix one = operand_matrix(p, i, o, m);
        if (one.data != NULL && p->epi.op[i].operand == index && bytes_of(&one, elements_of(&one)) > bytes) {
            bytes = bytes_of(&one, elements_of(&one));
        }
    }
    if (bytes == 0) {
        return RFT_OK;
    }
    const void *const device = o->ptr;
    RFT_TRY(add_copy(h, bytes, &h->operand[index].ptr, err));
    return rft_memory_read(h->ctx, h->operand[index].ptr, device, bytes, err);
}

rft_status rft__verify_host_make(rft__verify_host *h, const rft__problem *p, rft_linear_args *args, const void **w,
                                 int64_t w_row_stride, int64_t w_batch_stride, rft_error *err) {
    if (strcmp(h->ctx->backend->name, "cpu") == 0) {
        return RFT_OK;
    }
    if (p->alpha != 0.0f && p->w.k > 0) {
        const bool by_k = p->w.order == RFT_K_CONTIGUOUS;
        const matrix all = {*w,           bits_of(p->w.elem), by_k ? p->w.n : p->w.k, by_k ? p->w.k : p->w.n,
                            w_row_stride, p->batch,           w_batch_stride};
        RFT_TRY(fetch_x(h, p, args, err));
        RFT_TRY(fetch_all(h, &all, w, err));
    }
    for (uint32_t i = 0; i < p->epi.n_operand; i++) {
        h->operand[i] = args->operand[i];
        RFT_TRY(fetch_operand(h, p, i, args->m, err));
    }
    args->operand = h->operand;
    return fetch_y(h, p, args, err);
}

void rft__verify_host_free(rft__verify_host *h) {
    for (int i = 0; i < h->n_copies; i++) {
        rft__release(&h->ctx->allocator, h->copy[i].p, h->copy[i].bytes);
    }
    h->n_copies = 0;
}
