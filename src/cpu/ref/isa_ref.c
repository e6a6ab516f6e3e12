/* SPDX-License-Identifier: Apache-2.0
 *
 * isa_ref.c - the table of the portable level, which has every entry.
 */
#define RFT_ISA ref
#define RFT_KERNELS "cpu/ref/kernels_ref.def"
#include "cpu/kernel_rows.h"

#include "cpu/ref/pack_ref.h"

rft__epi_tile_fn rft__epi_tile_ref;
extern const rft__isa rft__isa_ref;

const rft__isa rft__isa_ref = {
    "ref",
    kernels,
    sizeof kernels / sizeof *kernels,
    {.to_f32 = {[RFT_F32] = rft__pack_f32_ref, [RFT_F16] = rft__pack_f16_ref, [RFT_BF16] = rft__pack_bf16_ref},
     .to_same = {[RFT_F32] = rft__pack_f32_ref, [RFT_F16] = rft__pack_same_f16_ref, [RFT_BF16] = rft__pack_same_bf16_ref},
     .decode = {[RFT_F32] = rft__decode_f32_ref, [RFT_F16] = rft__decode_f16_ref, [RFT_BF16] = rft__decode_bf16_ref},
     .widen = rft__widen_ref,
     .unpack = rft__unpack_ref,
     .quantise = rft__quantise_ref,
     .record = rft__record_ref,
     .settle = rft__settle_ref,
     .x8 = &rft__x8_ref,
     .epilogue = rft__epi_tile_ref},
};
