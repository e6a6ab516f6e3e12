/* SPDX-License-Identifier: Apache-2.0
 *
 * narrow8.h - f32 to the codes of activations in 8 bits: to nearest even, saturated. Without branches, tables or library calls,
 * so that loops over it vectorise at every width (gcc 12 makes branches of some choices, hence masks). Called by the store of a
 * tile and by cpu/x8_body.h.
 */
#ifndef RFT_EPILOGUE_NARROW8_H
#define RFT_EPILOGUE_NARROW8_H

#include "epilogue/epi_math.h"

/* -128 to 127; NaN is 0. Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits. */
static inline signed char rft__narrow_i8(float value) {
    const float number = value == value ? value : 0.0f, cut = rft__at_most(rft__at_least(number, -128.0f), 127.0f);
    return (signed char)(unsigned char)rft__as_bits(cut + 12582912.0f);
}

/* OCP E4M3 up to 448; NaN stays one. Adding 2^14 rounds a magnitude below 2^-6 to a multiple of 2^-9; 120 is the difference of
 * the exponents' biases. */
static inline unsigned char rft__narrow_e4m3(float value) {
    enum { LARGEST = 0x7e, IS_NAN = 0x7f };
    const unsigned bits = rft__as_bits(value), a = bits & 0x7fffffffu;
    const unsigned normal = (a - (120u << 23) + 0x7ffffu + (a >> 20 & 1u)) >> 20;
    const unsigned denormal = rft__as_bits(rft__as_float(a) + 16384.0f) - rft__as_bits(16384.0f);
    const unsigned small = 0u - (a < 0x3c800000u), nan = 0u - (a > 0x7f800000u);
    const unsigned code = (denormal & small) | (normal & ~small), cut = code < LARGEST ? code : LARGEST;
    return (unsigned char)((bits >> 24 & 0x80u) | cut | (nan & IS_NAN));
}

#endif
