/* SPDX-License-Identifier: Apache-2.0
 *
 * decode_scalar.h - single stored numbers as f32: the floats and integers that stand alone and as scales in blocks.
 *
 * The decode headers are ONE text for the C compiler and for NVRTC: u32, int and float arithmetic, no tables, no
 * includes, no library. Include this one first; format.c and the device kernels do. Bytes may lie at any address.
 * Invariant: every conversion but that of f64 is exact. Where a block multiplies, the order of roundings is written out, so
 * compile without contraction (-ffp-contract=off, --fmad=false) and both compilers give the same bits.
 */
#ifndef RFT_DECODE_SCALAR_H
#define RFT_DECODE_SCALAR_H

#ifndef RFT_FN
#define RFT_FN static inline
#endif

RFT_FN unsigned rft__load_u16(const unsigned char *p) { return p[0] | (unsigned)p[1] << 8; }

RFT_FN unsigned rft__load_u32(const unsigned char *p) { return rft__load_u16(p) | rft__load_u16(p + 2) << 16; }

RFT_FN int rft__load_i8(const unsigned char *p) { return (int)(*p ^ 128u) - 128; }

RFT_FN unsigned rft__nibble(unsigned byte, unsigned high) { return byte >> (high ? 4 : 0) & 15u; }

RFT_FN float rft__bits_f32(unsigned bits) {
    union {
        unsigned u;
        float f;
    } v;
    v.u = bits;
    return v.f;
}

RFT_FN float rft__f16_f32(unsigned h) {
    const unsigned sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 0x3ffu;
    const float subnormal = (float)(int)fraction * 5.9604644775390625e-8f; /* 2^-24; no f32 subnormal on the way */
    if (exponent == 0) {
        return sign ? -subnormal : subnormal;
    }
    return rft__bits_f32(sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13);
}

RFT_FN float rft__bf16_f32(unsigned h) { return rft__bits_f32(h << 16); }

/* OCP E4M3: no infinity, 0x7f and 0xff are NaN. */
RFT_FN float rft__e4m3_f32(unsigned b) {
    const unsigned sign = (b & 128u) << 24, exponent = b >> 3 & 15u, fraction = b & 7u;
    const float subnormal = (float)(int)fraction * 0.001953125f; /* 2^-9 */
    if (exponent == 0) {
        return sign ? -subnormal : subnormal;
    }
    return rft__bits_f32((b & 127u) == 127u ? 0x7fc00000u : sign | (exponent + 120u) << 23 | fraction << 20);
}

RFT_FN float rft__e5m2_f32(unsigned b) { return rft__f16_f32(b << 8); }

/* A power of two, 2^(b - 127); 0 is the f32 subnormal 2^-127, 255 is NaN. */
RFT_FN float rft__e8m0_f32(unsigned b) { return rft__bits_f32(b == 0 ? 0x00400000u : b == 255u ? 0x7fc00000u : b << 23); }

/* Magnitudes 0 .5 1 1.5 2 3 4 6, held doubled as the nibbles of one word. */
RFT_FN float rft__e2m1_f32(unsigned b) {
    const float magnitude = 0.5f * (float)(int)(0xc8643210u >> 4 * (b & 7u) & 15u);
    return b & 8u ? -magnitude : magnitude;
}

/* Quantiles of a normal distribution, scaled to -1 .. 1: the constants of bitsandbytes, as f32. */
RFT_FN float rft__nf4_f32(unsigned b) {
    switch (b & 15u) {
    case 0: return -1.0f;
    case 1: return -0.69619280099868774f;
    case 2: return -0.52507305145263672f;
    case 3: return -0.39491748809814453f;
    case 4: return -0.28444138169288635f;
    case 5: return -0.18477343022823334f;
    case 6: return -0.091050036251544952f;
    case 7: return 0.0f;
    case 8: return 0.079580299556255341f;
    case 9: return 0.16093020141124725f;
    case 10: return 0.24611230194568634f;
    case 11: return 0.33791524171829224f;
    case 12: return 0.44070982933044434f;
    case 13: return 0.56261700391769409f;
    case 14: return 0.72295683622360229f;
    default: return 1.0f;
    }
}

/* Magnitudes 0 1/192 2/3 1 1/3 1/2 1/6 1/4, rounded to f32, held as 192nds, a byte each; bit 3 is the sign. */
RFT_FN float rft__fp4_f32(unsigned b) {
    const unsigned parts = (b & 4u ? 0x30206040u : 0xc0800100u) >> 8 * (b & 3u) & 255u;
    const float magnitude = (float)(int)parts / 192.0f;
    return b & 8u ? -magnitude : magnitude;
}

/* As formats of one or two weights a block: weight i of the block. */
RFT_FN float rft__decode_f32(const unsigned char *block, unsigned i) { return rft__bits_f32(rft__load_u32(block + 4 * i)); }

RFT_FN float rft__decode_f64(const unsigned char *block, unsigned i) {
    union {
        unsigned long long u;
        double d;
    } v;
    v.u = rft__load_u32(block + 8 * i) | (unsigned long long)rft__load_u32(block + 8 * i + 4) << 32;
    return (float)v.d;
}

RFT_FN float rft__decode_f16(const unsigned char *block, unsigned i) { return rft__f16_f32(rft__load_u16(block + 2 * i)); }

RFT_FN float rft__decode_bf16(const unsigned char *block, unsigned i) { return rft__bf16_f32(rft__load_u16(block + 2 * i)); }

RFT_FN float rft__decode_e4m3(const unsigned char *block, unsigned i) { return rft__e4m3_f32(block[i]); }

RFT_FN float rft__decode_e5m2(const unsigned char *block, unsigned i) { return rft__e5m2_f32(block[i]); }

RFT_FN float rft__decode_e8m0(const unsigned char *block, unsigned i) { return rft__e8m0_f32(block[i]); }

RFT_FN float rft__decode_i8(const unsigned char *block, unsigned i) { return (float)rft__load_i8(block + i); }

RFT_FN float rft__decode_u8(const unsigned char *block, unsigned i) { return (float)(int)block[i]; }

RFT_FN float rft__decode_u4(const unsigned char *block, unsigned i) { return (float)(int)rft__nibble(block[i >> 1], i & 1u); }

RFT_FN float rft__decode_nf4(const unsigned char *block, unsigned i) {
    return rft__nf4_f32(rft__nibble(block[i >> 1], i & 1u));
}

RFT_FN float rft__decode_fp4(const unsigned char *block, unsigned i) {
    return rft__fp4_f32(rft__nibble(block[i >> 1], i & 1u));
}

RFT_FN float rft__decode_i4(const unsigned char *block, unsigned i) {
    return (float)((int)(rft__nibble(block[i >> 1], i & 1u) ^ 8u) - 8);
}

RFT_FN float rft__decode_e2m1(const unsigned char *block, unsigned i) {
    return rft__e2m1_f32(rft__nibble(block[i >> 1], i & 1u));
}

#endif
