/* SPDX-License-Identifier: Apache-2.0
 *
 * type.h - names and sizes of element types. Called by every layer.
 */
#ifndef RFT_BASE_TYPE_H
#define RFT_BASE_TYPE_H

#include "rooftile.h"

#include <stdbool.h>

const char *rft__type_name(rft_type type); /* "f32"; "?" for an unknown one */
size_t rft__type_size(rft_type type);      /* bytes of one element; 0 for block and sub-byte types and unknown ones */
bool rft__type_is_float(rft_type type);    /* f32, f16, bf16 */
bool rft__type_is_8bit(rft_type type);     /* i8, e4m3: of activations with scales */

#endif
