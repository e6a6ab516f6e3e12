/* SPDX-License-Identifier: Apache-2.0
 *
 * x8_avx512.c - activations in 8 bits, compiled for avx512; the text is cpu/x8_body.h.
 */
#include "cpu/avx512/pack_avx512.h"

#define RFT_X8_NAME rft__x8_avx512
#include "cpu/x8_body.h"
