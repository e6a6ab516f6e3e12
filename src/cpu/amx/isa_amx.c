/* SPDX-License-Identifier: Apache-2.0
 *
 * isa_amx.c - the table of the amx level: kernels of tile registers for packed bf16; all else is that of the levels below.
 */
#define RFT_ISA amx
#define RFT_TILES
#define RFT_KERNELS "cpu/amx/kernels_amx.def"
#include "cpu/kernel_rows.h"

extern const rft__isa rft__isa_amx;

const rft__isa rft__isa_amx = {.name = "amx", .kernels = kernels, .n_kernels = sizeof kernels / sizeof *kernels};
