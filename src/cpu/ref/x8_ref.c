/* SPDX-License-Identifier: Apache-2.0
 *
 * x8_ref.c - activations in 8 bits, compiled for ref; the text is cpu/x8_body.h.
 */
#include "cpu/ref/pack_ref.h"

#define RFT_X8_NAME rft__x8_ref
#include "cpu/x8_body.h"
