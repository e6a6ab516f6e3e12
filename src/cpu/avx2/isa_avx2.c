/* SPDX-License-Identifier: Apache-2.0
 *
 * isa_avx2.c - the table of the avx2 level.
 */
#define RFT_ISA avx2
#define RFT_KERNELS "cpu/avx2/kernels_avx2.def"
#include "cpu/kernel_rows.h"

#include "cpu/avx2/pack_avx2.h"

rft__epi_tile_fn rft__epi_tile_avx2;
extern const rft__isa rft__isa_avx2;

const rft__isa rft__isa_avx2 = {
    "avx2",
    kernels,
    sizeof kernels / sizeof *kernels,
    {.to_f32 = {[RFT_F32] = rft__pack_f32_avx2, [RFT_F16] = rft__pack_f16_avx2, [RFT_BF16] = rft__pack_bf16_avx2},
     .to_same = {[RFT_F32] = rft__pack_f32_avx2, [RFT_F16] = rft__pack_same_f16_avx2, [RFT_BF16] = rft__pack_same_bf16_avx2},
     .decode = {[RFT_F16] = rft__decode_f16_avx2, [RFT_BF16] = rft__decode_bf16_avx2},
     .widen = rft__widen_avx2,
     .unpack = rft__unpack_avx2,
     .quantise = rft__quantise_avx2,
     .record = rft__record_avx2,
     .settle = rft__settle_avx2,
     .x8 = &rft__x8_avx2,
     .epilogue = rft__epi_tile_avx2},
};
