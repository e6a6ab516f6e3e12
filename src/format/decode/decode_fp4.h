/* SPDX-License-Identifier: Apache-2.0
 *
 * decode_fp4.h - GGUF blocks of E2M1 codes: MXFP4 (32 weights, a power-of-two scale) and NVFP4 (64, an unsigned E4M3
 * scale for each 16; the scale of the whole tensor is a tensor of its own and not applied here).
 *
 * Called as decode_scalar.h says, after it and decode_q.h. Layouts with offsets: docs/formats/gguf.md.
 */
#ifndef RFT_DECODE_FP4_H
#define RFT_DECODE_FP4_H

RFT_FN float rft__decode_mxfp4(const unsigned char *block, unsigned i) {
    return rft__e2m1_f32(rft__halves(block + 1, i)) * rft__e8m0_f32(block[0]);
}

/* The code of NaN means 0 in a scale without sign. */
RFT_FN float rft__nvfp4_scale(unsigned b) { return (b & 127u) == 127u ? 0.0f : rft__e4m3_f32(b & 127u); }

RFT_FN float rft__decode_nvfp4(const unsigned char *block, unsigned i) {
    const unsigned sub = i >> 4;
    const unsigned code = rft__nibble(block[4 + 8 * sub + (i & 7u)], i >> 3 & 1u);
    return rft__e2m1_f32(code) * rft__nvfp4_scale(block[sub]);
}

#endif
