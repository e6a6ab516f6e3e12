/* SPDX-License-Identifier: Apache-2.0
 *
 * quant.h - the parts of each low-bit format: unsigned codes of a few bits, and the scales that make numbers of them.
 *
 *     w = value(code) * scale                    RFT__OFFSET_NONE
 *     w = value(code) * scale + minimum          RFT__OFFSET_MINIMUM
 *     w = (value(code) - zero) * scale           RFT__OFFSET_ZERO
 *     w = value(code) * scale                    RFT__OFFSET_FLOAT: the code is itself a float of 8 bits
 *
 * value(code) is code - bias, or factor * table[code], or what a function says. Packing reads formats through this table
 * (quants.def), so that kernels meet bits, offsets and scales and never a format. Invariant: the same numbers as decode/ gives,
 * to the bit.
 */
#ifndef RFT_FORMAT_QUANT_H
#define RFT_FORMAT_QUANT_H

#include "rooftile.h"

#include <stdbool.h>

typedef enum rft__scale_kind {
    RFT__SCALE_F32,
    RFT__SCALE_F16,
    RFT__SCALE_BF16,
    RFT__SCALE_E8M0,
    RFT__SCALE_UE4M3, /* as GGUF reads it: no sign, and the code of NaN is 0 */
    RFT__SCALE_SUPER, /* a signed byte a group times an f16 of the whole block; a minimum likewise, negated */
    RFT__SCALE_E4M3,
    RFT__SCALE_E4M3_TIMES, /* times one f32 of the whole matrix, rounded to f32 */
    RFT__SCALE_E4M3_OVER   /* divided by it */
} rft__scale_kind;

typedef enum rft__offset_kind { RFT__OFFSET_NONE, RFT__OFFSET_MINIMUM, RFT__OFFSET_ZERO, RFT__OFFSET_FLOAT } rft__offset_kind;

typedef struct rft__quant {
    rft_type type;
    int bits;            /* of a code: 2, 3, 4, 5, 6 or 8 */
    int group;           /* weights of a scale; 0: the descriptor says, and scales lie apart */
    rft__scale_kind scale;
    rft__offset_kind offset;
    int bias;
    const signed char *table; /* of 16, or NULL */
    float factor;
    float (*value)(unsigned code); /* NULL: bias or table say; such values are no integers times a factor */
    unsigned (*code)(const unsigned char *block, unsigned i);
    int (*part)(const unsigned char *block, unsigned group);         /* of SCALE_SUPER: the group's byte */
    int (*minimum_part)(const unsigned char *block, unsigned group); /* and of its minimum */
    unsigned scale_at, minimum_at; /* bytes in a block; scales of one byte lie side by side */
} rft__quant;

const rft__quant *rft__quant_find(rft_type type); /* NULL: no low-bit weight format */
/* value(code) of the format, exact. */
float rft__quant_value(const rft__quant *q, unsigned code);

#endif
