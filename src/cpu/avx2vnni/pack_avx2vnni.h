/* SPDX-License-Identifier: Apache-2.0
 *
 * pack_avx2vnni.h - what codes8_avx2vnni.c offers to the level's table beside kernels.
 */
#ifndef RFT_CPU_AVX2VNNI_PACK_AVX2VNNI_H
#define RFT_CPU_AVX2VNNI_PACK_AVX2VNNI_H

#include "cpu/cpu_kernel.h"

rft__quantise_fn rft__quantise_avx2vnni;
rft__record_fn rft__record_avx2vnni;
rft__settle_fn rft__settle_avx2vnni;
rft__unpack_fn rft__unpack_avx2vnni;

#endif
