/* SPDX-License-Identifier: Apache-2.0
 *
 * isa_avx2.c - the table of the avx2 level. Packing is the portable one.
 */
#define RFT_ISA avx2
#define RFT_KERNELS "cpu/avx2/kernels_avx2.def"
#include "cpu/kernel_rows.h"

rft__epi_tile_fn rft__epi_tile_avx2;
extern const rft__isa rft__isa_avx2;

const rft__isa rft__isa_avx2 = {.name = "avx2", .kernels = kernels, .n_kernels = sizeof kernels / sizeof *kernels, .ops = {.epilogue = rft__epi_tile_avx2}};
