/* SPDX-License-Identifier: Apache-2.0
 *
 * x8_avx2.c - activations in 8 bits, compiled for avx2; the text is cpu/x8_body.h.
 */
#include "cpu/avx2/pack_avx2.h"

#define RFT_X8_NAME rft__x8_avx2
#include "cpu/x8_body.h"
