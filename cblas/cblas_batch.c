/* SPDX-License-Identifier: Apache-2.0
 *
 * cblas_batch.c - the batches. Matrices of one shape at even distances are one plan with a batch, all other products go in lists,
 * so that in both cases many products take one hand-off to the threads.
 * Invariant: every argument is checked before the first product runs.
 */
#include "door.h"

#include <string.h>

/* Products of one shape. Operand i lies i strides (bytes) behind the first one, or where the i-th pointer of a table says. */
typedef struct operands {
    const char *first;
    int64_t stride;
    bool table;
} operands;

typedef struct series {
    rft__blas_product shape;
    operands x, w, y;
    int64_t count;
} series;

static const char *operand_at(const operands *o, int64_t i) {
    const char *p = o->first + i * o->stride;
    if (o->table) {
        memcpy(&p, o->first + i * (int64_t)sizeof p, sizeof p);
    }
    return p;
}

/* The same operands without a table, where that is possible. */
static operands as_strided(operands o, int64_t count) {
    const operands strided = {operand_at(&o, 0), operand_at(&o, 1) - operand_at(&o, 0), false};
    for (int64_t i = 2; i < count; i++) {
        if (operand_at(&o, i) != operand_at(&strided, i)) {
            return o;
        }
    }
    return strided;
}

/* No C overlaps the next: they lie behind each other, or side by side in rows that are long enough. */
static bool apart(const rft__blas_product *p, int64_t stride, int64_t count) {
    return stride >= (p->m - 1) * p->ldy + p->n || (stride >= p->n && p->ldy >= (count - 1) * stride + p->n);
}

/* All of a series as one product with a batch. */
static bool as_batch(const series *s, rft__blas_product *out) {
    const operands x = as_strided(s->x, s->count), w = as_strided(s->w, s->count), y = as_strided(s->y, s->count);
    const int64_t bytes = rft__blas_bytes(s->shape.type);
    if (x.table || w.table || y.table || x.stride <= 0 || w.stride < 0 || x.stride % bytes != 0 || w.stride % bytes != 0 ||
        y.stride % 4 != 0 || !apart(&s->shape, y.stride / 4, s->count)) {
        return false;
    }
    *out = s->shape;
    out->x = x.first, out->w = w.first, out->y = (float *)(uintptr_t)y.first;
    out->x_stride = x.stride / bytes, out->w_stride = w.stride / bytes, out->y_stride = y.stride / 4;
    out->batch = s->count;
    return true;
}

/* Products that wait for a full list. */
typedef struct queue {
    const char *routine;
    rft__blas_product list[RFT_MAX_LIST];
    uint32_t count;
} queue;

static void flush(queue *q) {
    rft__blas_run(q->routine, q->list, q->count);
    q->count = 0;
}

static void push(queue *q, const rft__blas_product *p) {
    q->list[q->count++] = *p;
    if (q->count == RFT_MAX_LIST) {
        flush(q);
    }
}

static void push_series(queue *q, const series *s) {
    rft__blas_product p = s->shape;
    if (s->count > 1 && !rft__blas_packs(&p) && as_batch(s, &p)) {
        push(q, &p);
        return;
    }
    for (int64_t i = 0; i < s->count; i++) {
        p.x = operand_at(&s->x, i), p.w = operand_at(&s->w, i);
        p.y = (float *)(uintptr_t)operand_at(&s->y, i);
        push(q, &p);
    }
}

/* A and B as the product takes them. */
static series series_of(const rft__blas_product *shape, CBLAS_LAYOUT layout, operands a, operands b, operands c, int64_t count) {
    const bool by_rows = layout == CblasRowMajor;
    return (series){*shape, by_rows ? a : b, by_rows ? b : a, c, count};
}

/* ---- groups ---- */

typedef struct groups { /* the arguments of both functions */
    const char *routine;
    rft_type type;
    CBLAS_LAYOUT layout;
    const CBLAS_TRANSPOSE *transa, *transb;
    const int *m, *n, *k;
    const float *alpha, *beta;
    const char *a, *b, *c; /* tables of pointers */
    const int *lda, *ldb, *ldc;
    int count;
    const int *size;
} groups;

static bool group_shape(const groups *s, int i, rft__blas_product *shape) {
    const rft__blas_gemm g = {.routine = s->routine,
                              .type = s->type,
                              .layout = s->layout,
                              .transa = s->transa[i],
                              .transb = s->transb[i],
                              .m = s->m[i],
                              .n = s->n[i],
                              .k = s->k[i],
                              .alpha = s->alpha[i],
                              .beta = s->beta[i],
                              .lda = s->lda[i],
                              .ldb = s->ldb[i],
                              .ldc = s->ldc[i]};
    return rft__blas_product_of(&g, shape);
}

static bool groups_allowed(const groups *s) {
    rft__blas_product shape;
    bool allowed = rft__blas_is_layout(s->routine, (int)s->layout) &&
                   rft__blas_at_least(s->routine, (rft__blas_argument){"group_count", 15, s->count}, 0);
    for (int i = 0; i < s->count && allowed; i++) {
        allowed =
            group_shape(s, i, &shape) && rft__blas_at_least(s->routine, (rft__blas_argument){"group_size", 16, s->size[i]}, 0);
    }
    return allowed;
}

static void run_groups(const groups *s) {
    if (!groups_allowed(s)) {
        return;
    }
    queue q = {.routine = s->routine};
    int64_t before = 0;
    for (int i = 0; i < s->count; i++) {
        rft__blas_product shape;
        const int64_t skip = before * (int64_t)sizeof(void *);
        if (group_shape(s, i, &shape)) {
            const series r = series_of(&shape, s->layout, (operands){s->a + skip, 0, true}, (operands){s->b + skip, 0, true},
                                       (operands){s->c + skip, 0, true}, s->size[i]);
            push_series(&q, &r);
        }
        before += s->size[i];
    }
    flush(&q);
}

void cblas_sgemm_batch(CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE *transa, const CBLAS_TRANSPOSE *transb, const int *m,
                       const int *n, const int *k, const float *alpha, const float **a, const int *lda, const float **b,
                       const int *ldb, const float *beta, float **c, const int *ldc, int group_count, const int *group_size) {
    run_groups(&(groups){"cblas_sgemm_batch", RFT_F32, layout, transa, transb, m, n, k, alpha, beta, (const char *)a,
                         (const char *)b, (const char *)c, lda, ldb, ldc, group_count, group_size});
}

void cblas_sbgemm_batch(CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE *transa, const CBLAS_TRANSPOSE *transb, const int *m,
                        const int *n, const int *k, const float *alpha, const uint16_t **a, const int *lda, const uint16_t **b,
                        const int *ldb, const float *beta, float **c, const int *ldc, int group_count, const int *group_size) {
    run_groups(&(groups){"cblas_sbgemm_batch", RFT_BF16, layout, transa, transb, m, n, k, alpha, beta, (const char *)a,
                         (const char *)b, (const char *)c, lda, ldb, ldc, group_count, group_size});
}

/* ---- strides ---- */

static void run_strided(const rft__blas_gemm *g, int stridea, int strideb, int stridec, int count) {
    const int64_t bytes = rft__blas_bytes(g->type);
    rft__blas_product shape;
    if (!rft__blas_product_of(g, &shape) || !rft__blas_at_least(g->routine, (rft__blas_argument){"batch_size", 18, count}, 0)) {
        return;
    }
    const series s =
        series_of(&shape, g->layout, (operands){g->a, stridea * bytes, false}, (operands){g->b, strideb * bytes, false},
                  (operands){(const char *)g->c, stridec * (int64_t)4, false}, count);
    queue q = {.routine = g->routine};
    push_series(&q, &s);
    flush(&q);
}

void cblas_sgemm_batch_strided(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transa, CBLAS_TRANSPOSE transb, int m, int n, int k,
                               float alpha, const float *a, int lda, int stridea, const float *b, int ldb, int strideb,
                               float beta, float *c, int ldc, int stridec, int batch_size) {
    run_strided(&(rft__blas_gemm){"cblas_sgemm_batch_strided", RFT_F32, layout, transa, transb, m, n, k, alpha, beta, a, b, c,
                                  lda, ldb, ldc, true},
                stridea, strideb, stridec, batch_size);
}

void cblas_sbgemm_batch_strided(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transa, CBLAS_TRANSPOSE transb, int m, int n, int k,
                                float alpha, const uint16_t *a, int lda, int stridea, const uint16_t *b, int ldb, int strideb,
                                float beta, float *c, int ldc, int stridec, int batch_size) {
    run_strided(&(rft__blas_gemm){"cblas_sbgemm_batch_strided", RFT_BF16, layout, transa, transb, m, n, k, alpha, beta, a, b, c,
                                  lda, ldb, ldc, true},
                stridea, strideb, stridec, batch_size);
}
