/* SPDX-License-Identifier: Apache-2.0
 *
 * shape_amx.c - see shape_amx.h. LDTILECFG takes about 200 cycles, hence only where the shape changes.
 */
#include "cpu/amx/shape_amx.h"

#include "cpu/amx/tile_amx.h"

/* What LDTILECFG reads: palette 1; per tile bytes of a row and rows. */
typedef struct config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} config;

/* This thread's tiles: what they are shaped for, rows 0 outside of a run, and what was configured before. By the ABI tile
 * registers are scratch, like zmm; but a program that configures once and calls us in between should find its shapes again. */
static _Thread_local struct {
    int rows, k_bytes;
    _Alignas(RFT__TILE_BYTES) config before;
} own;

static void shape(config *c, int tile, int rows, int bytes) {
    c->rows[tile] = (uint8_t)rows;
    c->row_bytes[tile] = (uint16_t)(rows > 0 ? bytes : 0);
}

void rft__tiles_shape(int rows, int k_bytes) {
    if (own.rows == rows && own.k_bytes == k_bytes) {
        return;
    }
    const int r0 = rft__tiles_first(rows), r1 = rows > RFT__TILE_ROWS ? rows - r0 : r0;
    _Alignas(RFT__TILE_BYTES) config c = {.palette = 1};
    if (own.rows == 0) {
        RFT_TILE_CONFIG_READ(&own.before);
    }
    for (int tile = 0; tile < 4; tile++) {
        shape(&c, tile, tile < 2 ? r0 : r1, RFT__TILE_BYTES);
    }
    shape(&c, 4, r0, k_bytes);
    shape(&c, 5, r1, k_bytes);
    shape(&c, 6, k_bytes / 4, RFT__TILE_BYTES);
    shape(&c, 7, k_bytes / 4, RFT__TILE_BYTES);
    RFT_TILE_CONFIGURE(&c);
    own.rows = rows;
    own.k_bytes = k_bytes;
}

void rft__tiles_leave(void) {
    if (own.rows == 0) {
        return;
    }
    if (own.before.palette != 0) {
        RFT_TILE_CONFIGURE(&own.before);
    } else {
        RFT_TILE_RELEASE(); /* else each switch of threads would save 8 KiB, and the core could not sleep */
    }
    own.rows = 0;
}
