/* SPDX-License-Identifier: Apache-2.0
 *
 * codes_ref.c - panels of codes times x in portable C, in f32; see cpu/codes_body.h.
 */
#include "cpu/ref/codes_ref_body.h"

#include "cpu/codes_body.h"

#include "cpu/ref/pack_ref.h"

CODES_FAMILY(rft__codes_f32_q2m_ref, q2m, 1, 0, 2)
CODES_FAMILY(rft__codes_f32_q3_ref, q3, 1, 0, 2)
CODES_FAMILY(rft__codes_f32_q4_ref, q4, 1, 0, 2)
CODES_FAMILY(rft__codes_f32_q4m_ref, q4m, 1, 0, 2)
CODES_FAMILY(rft__codes_f32_q4z_ref, q4z, 1, 0, 2)
CODES_FAMILY(rft__codes_f32_q5_ref, q5, 1, 0, 2)
CODES_FAMILY(rft__codes_f32_q5m_ref, q5m, 1, 0, 2)
CODES_FAMILY(rft__codes_f32_q6_ref, q6, 1, 0, 2)
CODES_FAMILY(rft__codes_f32_q8_ref, q8, 1, 0, 2)
CODES_FAMILY(rft__codes_f32_q8z_ref, q8z, 1, 0, 2)
CODES_FAMILY(rft__codes_f32_f8_ref, f8, 1, 0, 2)

void rft__widen_ref(const rft__packing *packing, const char *w, int64_t k, float *dst) { widen(packing, w, k, dst); }
