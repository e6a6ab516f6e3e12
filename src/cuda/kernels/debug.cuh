/* SPDX-License-Identifier: Apache-2.0
 *
 * debug.cuh - what RFT_KERNEL_DEBUG adds to a kernel: each access of a thread to x, w, y or an operand is held against what the
 * arguments describe, and RFT_KERNEL_DUMP names an intermediate that goes to args.debug.dump. Included by epilogue.cuh.
 * Invariant: without RFT_KERNEL_DEBUG nothing here leaves an instruction. Copies by tensor maps are not seen: the copy engine
 * checks those itself.
 *
 * A dump has a float for each sum of the product, [batch][m][n] with n rows of W: RFT_DUMP_ACC the sums before the epilogue,
 * RFT_DUMP_PART(i) the part of each that has the i-th piece of k; what is not cut is part 0. A part that a kernel has not, and
 * columns beyond n, are left as they were.
 */
#ifndef RFT_DEBUG_CUH
#define RFT_DEBUG_CUH

#include "convert.cuh"

#ifdef RFT_KERNEL_DEBUG

/* ---- bounds ---- */

/* Keeps the first fault, and traps when it is complete. */
RFT_FN void rft__fault(const rft__cuda_args *a, int what, int batch, long long row, long long column, int count, long long rows,
                       long long columns) {
    volatile rft__cuda_fault *const f = a->debug.fault;
    if (atomicCAS((unsigned *)&f->state, 0u, 1u) == 0u) {
        f->kernel = a->debug.kernel, f->what = what, f->count = count;
        f->block = (int)blockIdx.x, f->thread = (int)threadIdx.x;
        f->batch = batch, f->batches = a->batch;
        f->row = row, f->rows = rows, f->column = column, f->columns = columns;
        __threadfence_system();
        f->state = RFT_FAULT_COMPLETE;
        __threadfence_system();
    }
    while (f->state != RFT_FAULT_COMPLETE) {
    }
    __trap();
}

/* `count` elements of a row, of rows x columns a batch. */
RFT_FN void rft__check(const rft__cuda_args *a, int what, int batch, long long row, long long column, int count, long long rows,
                       long long columns) {
    const bool inside = batch >= 0 && batch < a->batch && row >= 0 && row < rows && column >= 0 && column + count <= columns;
    if (count > 0 && !inside) {
        rft__fault(a, what, batch, row, column, count, rows, columns);
    }
}

RFT_FN void rft__check_y(const rft__cuda_args *a, int batch, int m, int n, int count) {
    rft__check(a, RFT_AT_Y, batch, m, n, count, a->m, RFT_GLU ? a->n / 2 : a->n);
}

typedef struct rft__origin { /* of an address: x or w, and the batch */
    const rft__cuda_args *args;
    int what, batch;
} rft__origin;

/* Bytes from p on, which are whole elements of one row of x or w as it is stored. A call: with the divisions in place a gemv
 * of 8 rows took ten seconds to compile. Kernels with wgmma, which a call would serialise, have no use for it. */
static __device__ __noinline__ void rft__check_at(const rft__origin *o, const char *p, int bytes) {
    const rft__cuda_args *const a = o->args;
    const bool x = o->what == RFT_AT_X, mn = x ? RFT_X_MN : RFT_W_MN;
    const long long outer = x ? a->m : a->n, rows = mn ? a->k : outer, columns = mn ? outer : a->k, ld = x ? a->ldx : a->ldw;
    const int size = rft__size_of(x ? RFT_X_TYPE : RFT_W_TYPE), count = (bytes + size - 1) / size;
    const long long from = (long long)(p - (const char *)(x ? a->x : a->w)) / size;
    const long long element = from - o->batch * (x ? a->x_batch_stride : a->w_batch_stride);
    const long long row = rows > 1 && element >= 0 ? element / ld : 0;
    rft__check(a, o->what, o->batch, row, element - row * ld, count, rows, columns);
}

#define RFT_ORIGIN(name) rft__origin name;
#define RFT_ORIGIN_SET(o, a, w, b) ((o).args = (a), (o).what = (w), (o).batch = (b))
#define RFT_CHECK_AT(o, p, bytes) rft__check_at(&(o), p, bytes)
#define RFT_CHECK_Y(a, batch, m, n, count) rft__check_y(a, batch, m, n, count)
#define RFT_CHECK(a, what, batch, row, column, count, rows, columns)                                                            \
    rft__check(a, what, batch, row, column, count, rows, columns)

/* ---- dumps ---- */

/* column: of the product, a row of W. */
RFT_FN void rft__dump(const rft__cuda_args *a, int batch, int m, int column, float value) {
    if (m < a->m && column < a->n) {
        a->debug.dump[((long long)batch * a->m + m) * a->n + column] = value;
    }
}

/* Columns n, n + 1, ... of y: those of the product behind them; a gated unit's up rows as well. */
RFT_FN void rft__dump_span(const rft__cuda_args *a, int batch, int m, int n, const float *v, const float *up, int count,
                           int valid) {
    RFT_UNROLL
    for (int j = 0; j < count; j++) {
        if (j < valid) {
            rft__dump(a, batch, m, RFT_GLU == 2 ? 2 * (n + j) : n + j, v[j]);
            if (RFT_GLU) {
                rft__dump(a, batch, m, RFT_GLU == 2 ? 2 * (n + j) + 1 : n + j + a->n / 2, up[j]);
            }
        }
    }
}

#define RFT_DUMPS(name) ((name) == RFT_KERNEL_DUMP)
#define RFT_DUMP(a, batch, m, column, value) rft__dump(a, batch, m, column, value)
#define RFT_DUMP_SPAN(a, batch, m, n, v, up, count, valid) rft__dump_span(a, batch, m, n, v, up, count, valid)

#else

#define RFT_ORIGIN(name)
#define RFT_ORIGIN_SET(o, a, w, b) ((void)0)
#define RFT_CHECK_AT(o, p, bytes) ((void)0)
#define RFT_CHECK_Y(a, batch, m, n, count) ((void)0)
#define RFT_CHECK(a, what, batch, row, column, count, rows, columns) ((void)0)
#define RFT_DUMPS(name) false
#define RFT_DUMP(a, batch, m, column, value) ((void)0)
#define RFT_DUMP_SPAN(a, batch, m, n, v, up, count, valid) ((void)0)

#endif

#endif
