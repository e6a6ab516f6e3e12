/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_x.h - parts of X in the type that a kernel multiplies: floats as they are or widened, X in 8 bits widened by its scales,
 * and for kernels of codes X in 8 bits, rounded or as given. Beside a W that is sorted the k of X come in W's order. Called by
 * cpu_gemm.c and cpu_rows.c.
 * Invariant: a scale that is not finite makes all of its k NaN.
 */
#ifndef RFT_CPU_CPU_X_H
#define RFT_CPU_CPU_X_H

#include "cpu/cpu_choice.h"

/* X of one run. Strides in elements, of scales in scales. */
typedef struct rft__x_source {
    const rft__isa_ops *ops;
    const rft__packing *packing;    /* of a low-bit W */
    rft__pack_fn *pack;             /* floats to the kernel's type; of an X in 8 bits f32 to f32 */
    rft_type type;                  /* X's */
    bool scaled;                    /* X is of 8 bits */
    const char *x;
    int64_t size, row, k, batch;    /* size: bytes of an element */
    const float *scale;
    int64_t group;                  /* k of a scale; 0: one for all */
    int64_t scale_row, scale_batch;
    const rft_weight *sorted;       /* W, if its k are in an order of their own; else NULL */
    int64_t rounded_k;              /* of a row that is rounded by one scale; 0: in groups */
} rft__x_source;

rft__x_source rft__x_source_of(const rft__choice *c, const rft__cpu_kernel *kernel, const rft_linear_args *args);

static inline const char *rft__x_at(const rft__x_source *x, int64_t b, int64_t row, int64_t k) {
    return x->x + (b * x->batch + row * x->row + k * x->k) * x->size;
}

/* n of k from k0 on, contiguous in the kernel's float type; beside a sorted W n is at most 256. */
void rft__x_row(const rft__x_source *x, int64_t b, int64_t row, int64_t k0, int64_t n, void *dst);
/* rows x k as a tile of an f32 kernel. */
void rft__x_tile(const rft__x_source *x, int64_t b, int64_t row0, int rows, int64_t k0, int64_t k, char *dst);
/* Rows in 8 bits side by side, `stride` records from chunk to chunk; k0 is a multiple of 256. */
void rft__x_rows_8bit(const rft__x_source *x, int64_t b, int64_t row0, int64_t rows, int64_t k0, int64_t k, rft__x8 *dst,
                      int64_t stride);

#endif
