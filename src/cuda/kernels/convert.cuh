/* SPDX-License-Identifier: Apache-2.0
 *
 * convert.cuh - element types to f32, exactly, and back, rounded to nearest even; a value beyond the largest of a type
 * becomes Inf, and a NaN stays one. Included by kernels and epilogue.cuh; a type is a constant, so each call is one
 * instruction an element or less. A 16-bit pair is one word, the element of the lower address in its low half.
 */
#ifndef RFT_CONVERT_CUH
#define RFT_CONVERT_CUH

#include "device.cuh"

enum { RFT_TYPE_F32 = 1, RFT_TYPE_F16 = 2, RFT_TYPE_BF16 = 3 }; /* rft_type */

RFT_FN int rft__size_of(int type) { return type == RFT_TYPE_F32 ? 4 : 2; }

/* bits: of one element, those above it are ignored. */
RFT_FN float rft__widen(int type, unsigned bits) {
    return type == RFT_TYPE_F32    ? __uint_as_float(bits)
           : type == RFT_TYPE_BF16 ? __uint_as_float(bits << 16)
                                   : rft__widen_f16(bits);
}

/* A pair of f16 or bf16. */
RFT_FN float rft__widen_low(int type, unsigned pair) { return rft__widen(type, pair); }

RFT_FN float rft__widen_high(int type, unsigned pair) {
    return type == RFT_TYPE_BF16 ? __uint_as_float(pair & 0xffff0000u) : rft__widen_f16(pair >> 16);
}

/* type f16 or bf16. */
RFT_FN unsigned rft__narrow_pair(int type, float low, float high) {
    return type == RFT_TYPE_BF16 ? rft__pair_bf16(low, high) : rft__pair_f16(low, high);
}

RFT_FN unsigned rft__narrow(int type, float value) {
    return type == RFT_TYPE_F32 ? __float_as_uint(value) : rft__narrow_pair(type, value, 0) & 0xffffu;
}

#endif
