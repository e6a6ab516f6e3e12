/* SPDX-License-Identifier: Apache-2.0
 *
 * epi_ref.c - the meaning of an epilogue in f64, with a bound of what f32 evaluation may add. Called by the checks of
 * kernels and by unit tests. The expressions come from epi_ops.def; operands are converted here on their own, so that
 * an error in a tile's conversions shows. Invariant: value and error are NaN or Inf only where f32 may be so too.
 */
#include "epilogue/epi.h"
#include "epilogue/epi_math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RFT_UNIT_ROUNDOFF 0x1p-24
#define RFT_EPI_TINY 0x1p-119 /* results that f32 rounds to denormals or flushes in the tails of the activations */

typedef struct bounded {
    double value, error;
} bounded;

static double exact_silu(double y) { return y < -800 ? -0.0 : y / (1 + exp(-y)); }

static double exact_gelu(double y) { return y < -40 ? -0.0 : y * erfc(-y * 0.70710678118654752440) / 2; }

/* (1 + tanh z) / 2 = 1 / (1 + exp(-2 z)) */
static double exact_gelu_tanh(double y) {
    const double z = 0.79788456080286535588 * (y + 0.044715 * y * y * y);
    return y < -40 ? -0.0 : y / (1 + exp(-2 * z));
}

static double read_f32(const void *base, int64_t index) { return (double)((const float *)base)[index]; }

static double read_bf16(const void *base, int64_t index) {
    const uint32_t bits = (uint32_t)((const uint16_t *)base)[index] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double read_f16(const void *base, int64_t index) {
    const unsigned h = ((const uint16_t *)base)[index], exponent = h >> 10 & 31u, fraction = h & 0x3ffu;
    const double sign = h & 0x8000u ? -1 : 1;
    if (exponent == 31) {
        return fraction ? (double)NAN : sign * (double)INFINITY;
    }
    return sign * (exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24));
}

static double read_element(rft_type type, const void *base, int64_t index) {
    return type == RFT_F32 ? read_f32(base, index) : type == RFT_BF16 ? read_bf16(base, index) : read_f16(base, index);
}

static double read_bit(const void *base, int64_t index) { return ((const unsigned char *)base)[index / 8] >> (index % 8) & 1; }

/* The number in [0, 1) that DROPOUT compares: 24 bits of one Philox word, exact in f32. */
static double read_uniform(const void *base, int64_t b, int64_t element) {
    const uint64_t *seed = base, counter = (uint64_t)element / 4 + ((uint64_t)b << 44);
    unsigned x[4] = {(unsigned)seed[1], (unsigned)(seed[1] >> 32), (unsigned)counter, (unsigned)(counter >> 32)};
    rft__philox(x, (unsigned)seed[0], (unsigned)(seed[0] >> 32));
    return ldexp(x[element % 4] >> 8, -24);
}

static double read_operand(const rft_epi_op *op, const rft_operand *operands, int64_t b, int64_t m, int64_t column,
                           int64_t columns) {
    const rft__epi_access access = rft__epi_access_of(op->kind);
    if (access == RFT__EPI_NONE || access == RFT__EPI_PAIR) {
        return 0;
    }
    const rft_operand *o = &operands[op->operand];
    const int64_t ld = o->ld ? o->ld : columns, base = b * o->batch_stride;
    switch (access) {
    case RFT__EPI_BITS:
        return read_bit(o->ptr, base + m * ld + column);
    case RFT__EPI_SEED:
        return read_uniform(o->ptr, b, m * columns + column);
    case RFT__EPI_ROW:
        return read_element(op->type, o->ptr, base + m);
    case RFT__EPI_COLUMN:
        return read_element(op->type, o->ptr, base + column);
    default:
        return read_element(op->type, o->ptr, base + m * ld + column);
    }
}

/* 0 even where the slope is infinite: an exact input has nothing to propagate. */
static double propagate(double slope, double error) { return error == 0 ? 0 : slope * error; }

static bounded apply(const rft_epi_op *op, bounded in, bounded operand) {
    const double y = in.value, o = operand.value, alpha = (double)op->alpha, beta = (double)op->beta;
    const double ay = fabs(y) + in.error, ao = fabs(o) + operand.error;
    double value = y, slope_y = 1, slope_o = 0, rounding = 0, av = ay;
    switch (op->kind) {
#define FN(f) exact_##f
#define RFT_EPI_OP(kind, name, access, parameters, expression, dy, d_o, units)                     \
    case RFT_EPI_##kind:                                                                          \
        value = (expression);                                                                     \
        slope_y = (dy);                                                                           \
        slope_o = (d_o);                                                                          \
        av = fabs(value) + propagate(slope_y, in.error) + propagate(slope_o, operand.error);      \
        rounding = (units);                                                                       \
        break;
#include "epilogue/epi_ops.def"
#undef RFT_EPI_OP
#undef FN
    case RFT_EPI_QUANTIZE: /* how y is stored, no op of the list */
    case RFT_EPI_QUANTIZE_ROWS:
        break;
    }
    const double propagated = av - fabs(value), tiny = RFT_EPI_TINY * (1 + ao);
    return (bounded){value, (propagated + rounding * RFT_UNIT_ROUNDOFF) * (1 + 0x1p-20) + (rounding > 0 ? tiny : 0)};
}

/* The column of the product that lane (0: gate, 1: up) of output column n comes from. */
static int64_t source_column(const rft__epi *epi, int64_t n, int lane, bool interleaved) {
    return interleaved ? 2 * n + lane : n + lane * epi->n_out;
}

void rft__epi_reference(const rft__epi *epi, const rft_operand *operands, int64_t b, int64_t m, int64_t n, bool glu_interleaved,
                        double value[2], double error[2]) {
    bounded lane[2] = {{value[0], error[0]}, {value[1], error[1]}};
    for (int i = 0; i < epi->n_op; i++) {
        const rft_epi_op *op = &epi->op[i];
        if (i == epi->glu_at) {
            lane[0] = apply(op, lane[0], lane[1]);
            continue;
        }
        const bool paired = i < epi->glu_at;
        for (int l = 0; l < (paired ? 2 : 1); l++) {
            const int64_t column = paired ? source_column(epi, n, l, glu_interleaved) : n;
            const double o = read_operand(op, operands, b, m, column, paired ? epi->n_in : epi->n_out);
            lane[l] = apply(op, lane[l], (bounded){o, 0});
        }
    }
    value[0] = lane[0].value;
    error[0] = lane[0].error;
}
