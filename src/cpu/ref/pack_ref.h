/* SPDX-License-Identifier: Apache-2.0
 *
 * pack_ref.h - portable packing and widening, which faster levels use for the cases they do not speed up.
 */
#ifndef RFT_CPU_REF_PACK_REF_H
#define RFT_CPU_REF_PACK_REF_H

#include "cpu/cpu_kernel.h"

rft__pack_fn rft__pack_f32_ref, rft__pack_f16_ref, rft__pack_bf16_ref;  /* to f32 */
rft__pack_fn rft__pack_same_f16_ref, rft__pack_same_bf16_ref;           /* kept; bf16 in pairs */
rft__decode_fn rft__decode_f32_ref, rft__decode_f16_ref, rft__decode_bf16_ref;

/* Of codes_ref.c and codes8_ref.c. */
rft__widen_fn rft__widen_ref;
rft__quantise_fn rft__quantise_ref;
rft__record_fn rft__record_ref;
rft__settle_fn rft__settle_ref;
rft__unpack_fn rft__unpack_ref;

extern const rft__x8_ops rft__x8_ref; /* of x8_ref.c */

#endif
