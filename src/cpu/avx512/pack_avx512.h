/* SPDX-License-Identifier: Apache-2.0
 *
 * pack_avx512.h - what pack_avx512.c offers to the level's table.
 */
#ifndef RFT_CPU_AVX512_PACK_AVX512_H
#define RFT_CPU_AVX512_PACK_AVX512_H

#include "cpu/cpu_kernel.h"

rft__pack_fn rft__pack_f32_avx512, rft__pack_f16_avx512, rft__pack_bf16_avx512, rft__pack_same_bf16_avx512;
rft__decode_fn rft__decode_f16_avx512, rft__decode_bf16_avx512;

/* Of codes_avx512.c and codes8_avx512.c. */
rft__widen_fn rft__widen_avx512;
rft__quantise_fn rft__quantise_avx512;
rft__record_fn rft__record_avx512;
rft__settle_fn rft__settle_avx512;
rft__unpack_fn rft__unpack_avx512;

extern const rft__x8_ops rft__x8_avx512; /* of x8_avx512.c */

#endif
