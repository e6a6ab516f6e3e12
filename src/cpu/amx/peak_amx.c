/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_amx.c - the rates of TDPBF16PS and TDPBSUD on tiles in registers; called through cpu/peak.c. Not cpu/peak_body.h: tiles
 * are no values. Four sums, two X and two W as in gemm_amx.c: four products of 16 cycles hide the latency of one, 52. Operands
 * differ from element to element, as they do in use, since zeros and constants draw less power.
 */
#include "cpu/amx/shape_amx.h"
#include "cpu/amx/tile_amx.h"
#include "cpu/peak.h"

enum { ELEMENTS = RFT__TILE_ROWS * RFT__TILE_BYTES / 2, STEP_FLOPS = 4 * 2 * 16 * 16 };

/* bf16 of 0.5 to 1, signs in turn: bytes of all values too. */
static void fill(uint16_t *tile) {
    for (unsigned i = 0; i < ELEMENTS; i++) {
        tile[i] = (uint16_t)(0x3f00u + i * 37 % 128 + (i % 3 == 0 ? 0x8000u : 0u));
    }
}

static void load(void) {
    _Alignas(RFT__TILE_BYTES) uint16_t operand[ELEMENTS];
    fill(operand);
    rft__tiles_shape(2 * RFT__TILE_ROWS, RFT__TILE_BYTES);
    RFT_TILE_LOAD(4, operand, RFT__TILE_BYTES);
    RFT_TILE_LOAD(5, operand, RFT__TILE_BYTES);
    RFT_TILE_LOAD(6, operand, RFT__TILE_BYTES);
    RFT_TILE_LOAD(7, operand, RFT__TILE_BYTES);
}

#define PEAK(name, dot, k)                                  \
    void rft__peak_##name##_amx(int64_t iterations, double *flops) { \
        load();                                             \
        for (int64_t i = 0; i < iterations; i++) {          \
            dot(0, 4, 6);                                   \
            dot(1, 4, 7);                                   \
            dot(2, 5, 6);                                   \
            dot(3, 5, 7);                                   \
        }                                                   \
        rft__tiles_leave();                                 \
        *flops += (double)iterations * STEP_FLOPS * (k);    \
    }

PEAK(tile_bf16, RFT_TILE_DOT_BF16, RFT__TILE_BYTES / 2)
PEAK(tile_i8, RFT_TILE_DOT_I8, RFT__TILE_BYTES)
