/* SPDX-License-Identifier: Apache-2.0
 *
 * pack_avx2.h - what pack_avx2.c offers to the level's table.
 */
#ifndef RFT_CPU_AVX2_PACK_AVX2_H
#define RFT_CPU_AVX2_PACK_AVX2_H

#include "cpu/cpu_kernel.h"

rft__pack_fn rft__pack_f32_avx2, rft__pack_f16_avx2, rft__pack_bf16_avx2; /* to f32 */
rft__pack_fn rft__pack_same_f16_avx2, rft__pack_same_bf16_avx2;           /* kept; bf16 in pairs */
rft__decode_fn rft__decode_f16_avx2, rft__decode_bf16_avx2;

/* Of codes_avx2.c and codes8_avx2.c. */
rft__widen_fn rft__widen_avx2;
rft__quantise_fn rft__quantise_avx2;
rft__record_fn rft__record_avx2;
rft__settle_fn rft__settle_avx2;
rft__unpack_fn rft__unpack_avx2;

extern const rft__x8_ops rft__x8_avx2; /* of x8_avx2.c */

#endif
