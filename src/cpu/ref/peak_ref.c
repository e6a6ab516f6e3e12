/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_ref.c - the f32 rate of portable C: a multiplication and an addition, since the baseline of x86-64 has no FMA.
 * See cpu/peak_body.h; called through cpu/peak.c. Vectors of four, as the baselines of x86-64 and aarch64 have.
 */
typedef float vector __attribute__((vector_size(16)));

#define PEAK_NAME       rft__peak_fma_f32_ref
#define PEAK_CHAINS     12
#define PEAK_FLOPS      (4 * 2)
#define PEAK_SUM        vector
#define PEAK_ELEM       float
#define PEAK_X          vector
#define PEAK_HALF       ((vector){0.5f, 0.5f, 0.5f, 0.5f})
#define PEAK_STEP(s, x) ((s) * (x) + (x))
#include "cpu/peak_body.h"
