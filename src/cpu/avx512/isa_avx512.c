/* SPDX-License-Identifier: Apache-2.0
 *
 * isa_avx512.c - the table of the avx512 level.
 */
#define RFT_ISA avx512
#define RFT_KERNELS "cpu/avx512/kernels_avx512.def"
#include "cpu/kernel_rows.h"

#include "cpu/avx512/pack_avx512.h"

rft__epi_tile_fn rft__epi_tile_avx512;
extern const rft__isa rft__isa_avx512;

const rft__isa rft__isa_avx512 = {
    "avx512",
    kernels,
    sizeof kernels / sizeof *kernels,
    {.to_f32 = {[RFT_F32] = rft__pack_f32_avx512, [RFT_F16] = rft__pack_f16_avx512, [RFT_BF16] = rft__pack_bf16_avx512},
     .to_same = {[RFT_F32] = rft__pack_f32_avx512, [RFT_BF16] = rft__pack_same_bf16_avx512},
     .decode = {[RFT_F16] = rft__decode_f16_avx512, [RFT_BF16] = rft__decode_bf16_avx512},
     .widen = rft__widen_avx512,
     .unpack = rft__unpack_avx512,
     .quantise = rft__quantise_avx512,
     .record = rft__record_avx512,
     .settle = rft__settle_avx512,
     .x8 = &rft__x8_avx512,
     .epilogue = rft__epi_tile_avx512},
};
