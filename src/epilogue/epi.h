/* SPDX-License-Identifier: Apache-2.0
 *
 * epi.h - the epilogue: an ordered list of ops applied in f32 to the tile of accumulators before the one store of y.
 * api checks and canonicalises a list once (rft__epi_make); backends apply it to tiles; epi_ref gives its meaning in f64.
 * Invariant: a rft__epi has passed every check, so appliers validate nothing.
 */
#ifndef RFT_EPILOGUE_EPI_H
#define RFT_EPILOGUE_EPI_H

#include "base/error.h"
#include "rooftile.h"

#include <stdbool.h>

/* How an op finds its operand: the third column of epi_ops.def. */
typedef enum rft__epi_access {
    RFT__EPI_NONE,    /* no operand */
    RFT__EPI_MATRIX,  /* operand[m][n] */
    RFT__EPI_ROW,     /* operand[m] */
    RFT__EPI_COLUMN,  /* operand[n] */
    RFT__EPI_BITS,    /* bit m*ld + n */
    RFT__EPI_SEED,    /* two uint64_t: a uniform number in [0, 1) for each element */
    RFT__EPI_PAIR     /* no operand: the up column that belongs to a gate column */
} rft__epi_access;

/* How y becomes one of 8 bits when all ops are done. */
typedef struct rft__epi_quantize {
    rft_epi_kind kind;    /* QUANTIZE, QUANTIZE_ROWS; 0: y is none */
    uint32_t operand;
    int64_t group;        /* QUANTIZE_ROWS: columns of a scale, at least 1 */
} rft__epi_quantize;

typedef struct rft__epi {
    int n_op;
    rft_epi_op op[RFT_MAX_EPI + 1]; /* + 1: the plan's alpha; fields that an op does not use are 0 */
    rft__epi_quantize quantize;
    uint32_t n_operand;   /* operands that a run must bring: 1 + the largest index named, or 0 */
    int glu_at;           /* index of the SWIGLU/GEGLU op, or -1 */
    int64_t n_in, n_out;  /* columns before and after that op */
} rft__epi;

/* Checks a list against a product of n columns and canonicalises it (drops SCALE by 1 and ADD with beta 0, keeps order).
 * glu: the weight pairs gate and up (RFT_WEIGHT_GLU_*). alpha becomes a leading SCALE unless it is 1, or 0, which is
 * the caller's business. */
rft_status rft__epi_make(rft__epi *epi, const rft_epi_op *ops, uint32_t count, int64_t n, bool glu, float alpha, rft_error *err);
/* Elements of a row of this operand, which an ld of 0 stands for: what the first op sees that reads rows of it. */
int64_t rft__epi_row_columns(const rft__epi *epi, uint32_t operand);
/* Checks the operands of one run: count, NULL, ld, alignment of the element type, overflow of m * ld. */
rft_status rft__epi_check_operands(const rft__epi *epi, const rft_operand *operands, uint32_t count, int64_t m, int64_t batch,
                                   rft_error *err);
/* Least bytes that the operands of m rows take, each once. */
double rft__epi_bytes(const rft__epi *epi, int64_t m, int64_t batch);
/* "bias:gelu_tanh:add" for logs, explain and JSON; "none" for an empty list. Length as snprintf. */
size_t rft__epi_text(const rft__epi *epi, char *buf, size_t cap);
/* Scales that QUANTIZE_ROWS writes for a row, and elements from one row's to the next's. */
int64_t rft__epi_row_scales(const rft__epi *epi);
int64_t rft__epi_row_scales_ld(const rft__epi *epi, const rft_operand *operands);
const char *rft__epi_name(rft_epi_kind kind); /* "bias", ...; NULL for an unknown kind */
rft__epi_access rft__epi_access_of(rft_epi_kind kind);
bool rft__epi_is_glu(rft_epi_kind kind);

/* The f64 meaning of the list at one element, with the error that f32 evaluation may add. In: value[0] the product (gate),
 * value[1] the up product for a GLU list, error[] their bounds. m, n: row and output column. Out: value[0], error[0].
 * Where the value is not finite the error says nothing. */
void rft__epi_reference(const rft__epi *epi, const rft_operand *operands, int64_t b, int64_t m, int64_t n, bool glu_interleaved,
                        double value[2], double error[2]);

#endif
