/* SPDX-License-Identifier: Apache-2.0
 *
 * type.c - names and sizes of element types. See type.h.
 */
#include "base/type.h"

const char *rft__type_name(rft_type type) {
    static const char *const names[] = {"?",  "f32", "f16", "bf16", "e4m3", "e5m2", "i8", "u8",
                                        "i4", "u4",  "e2m1", "e8m0", "nf4",  "i32"};
    const unsigned i = (unsigned)type;
    return i < sizeof names / sizeof *names ? names[i] : "?";
}

size_t rft__type_size(rft_type type) {
    switch (type) {
    case RFT_F32:
    case RFT_I32:
        return 4;
    case RFT_F16:
    case RFT_BF16:
        return 2;
    case RFT_E4M3:
    case RFT_E5M2:
    case RFT_I8:
    case RFT_U8:
    case RFT_E8M0:
        return 1;
    default:
        return 0;
    }
}

bool rft__type_is_float(rft_type type) { return type == RFT_F32 || type == RFT_F16 || type == RFT_BF16; }

bool rft__type_is_8bit(rft_type type) { return type == RFT_I8 || type == RFT_E4M3; }
