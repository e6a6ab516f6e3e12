/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_amx.c - the rate of TDPBF16PS on tiles in registers; called through cpu/peak.c. Not cpu/peak_body.h: tiles are no values.
 * Four sums, two X and two W as in gemm_amx.c: four products of 16 cycles hide the latency of one, 52. Operands differ from
 * element to element, as they do in use, since zeros and constants draw less power.
 */
#include "cpu/amx/tile_amx.h"
#include "cpu/peak.h"

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64, STEP_FLOPS = 4 * 2 * 16 * 16 * 32 };

/* bf16 of 0.5 to 1, signs in turn. */
static void fill(uint16_t *tile) {
    for (unsigned i = 0; i < ROWS * ROW_BYTES / 2; i++) {
        tile[i] = (uint16_t)(0x3f00u + i * 37 % 128 + (i % 3 == 0 ? 0x8000u : 0u));
    }
}

static void configure(void) {
    _Alignas(ROW_BYTES) uint8_t config[64] = {1}; /* palette; bytes of a row from 16 on, rows from 48 on */
    for (int tile = 0; tile < TILES; tile++) {
        config[16 + 2 * tile] = ROW_BYTES;
        config[48 + tile] = ROWS;
    }
    RFT_TILE_CONFIGURE(config);
}

void rft__peak_tile_bf16_amx(int64_t iterations, double *flops) {
    _Alignas(ROW_BYTES) uint16_t operand[ROWS * ROW_BYTES / 2];
    uint8_t before[64]; /* of the thread that measures */
    fill(operand);
    RFT_TILE_CONFIG_READ(before);
    configure();
    RFT_TILE_LOAD(4, operand, ROW_BYTES);
    RFT_TILE_LOAD(5, operand, ROW_BYTES);
    RFT_TILE_LOAD(6, operand, ROW_BYTES);
    RFT_TILE_LOAD(7, operand, ROW_BYTES);
    for (int64_t i = 0; i < iterations; i++) {
        RFT_TILE_DOT_BF16(0, 4, 6);
        RFT_TILE_DOT_BF16(1, 4, 7);
        RFT_TILE_DOT_BF16(2, 5, 6);
        RFT_TILE_DOT_BF16(3, 5, 7);
    }
    if (before[0] != 0) {
        RFT_TILE_CONFIGURE(before);
    } else {
        RFT_TILE_RELEASE();
    }
    *flops += (double)iterations * STEP_FLOPS;
}
