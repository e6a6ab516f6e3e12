/* SPDX-License-Identifier: Apache-2.0
 *
 * isa_avx512bf16.c - the table of the avx512bf16 level: vdpbf16ps kernels; all else is avx512's.
 */
#define RFT_ISA avx512bf16
#define RFT_KERNELS "cpu/avx512bf16/kernels_avx512bf16.def"
#include "cpu/kernel_rows.h"

extern const rft__isa rft__isa_avx512bf16;

const rft__isa rft__isa_avx512bf16 = {.name = "avx512bf16", .kernels = kernels, .n_kernels = sizeof kernels / sizeof *kernels};
