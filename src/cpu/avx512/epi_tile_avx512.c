/* SPDX-License-Identifier: Apache-2.0
 *
 * epi_tile_avx512.c - the epilogue of tiles compiled for avx512; the text is epilogue/epi_tile_body.h.
 */
#define RFT_EPI_TILE_NAME rft__epi_tile_avx512
#include "epilogue/epi_tile_body.h"
