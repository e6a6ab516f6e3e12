/* SPDX-License-Identifier: Apache-2.0
 *
 * epi_tile_ref.c - the epilogue of tiles compiled for ref; the text is epilogue/epi_tile_body.h.
 */
#define RFT_EPI_TILE_NAME rft__epi_tile_ref
#include "epilogue/epi_tile_body.h"
