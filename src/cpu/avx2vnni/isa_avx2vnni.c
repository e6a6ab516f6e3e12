/* SPDX-License-Identifier: Apache-2.0
 *
 * isa_avx2vnni.c - the table of the avx2vnni level: products in 8 bits; all else is avx2's.
 */
#define RFT_ISA avx2vnni
#define RFT_KERNELS "cpu/avx2vnni/kernels_avx2vnni.def"
#include "cpu/kernel_rows.h"

#include "cpu/avx2vnni/pack_avx2vnni.h"

extern const rft__isa rft__isa_avx2vnni;

const rft__isa rft__isa_avx2vnni = {
    "avx2vnni",
    kernels,
    sizeof kernels / sizeof *kernels,
    {.unpack = rft__unpack_avx2vnni,
     .quantise = rft__quantise_avx2vnni,
     .record = rft__record_avx2vnni,
     .settle = rft__settle_avx2vnni},
};
