/* SPDX-License-Identifier: Apache-2.0
 *
 * quant.c - the table of quants.def: codes and scale parts of each format, out of its stored block. See quant.h.
 */
#include "format/quant.h"

#include "format/decode/decode_scalar.h"

#include "format/decode/decode_q.h"

#include "format/decode/decode_k.h"

#include <stddef.h>

/* ---- codes, unsigned ---- */

static unsigned code_i8(const unsigned char *b, unsigned i) { return b[i] ^ 128u; }
static unsigned code_u8(const unsigned char *b, unsigned i) { return b[i]; }
static unsigned code_i4(const unsigned char *b, unsigned i) { return rft__nibble(b[i >> 1], i & 1u) ^ 8u; }
static unsigned code_u4(const unsigned char *b, unsigned i) { return rft__nibble(b[i >> 1], i & 1u); }
static unsigned code_f8(const unsigned char *b, unsigned i) { return b[i]; }
static unsigned code_q4_0(const unsigned char *b, unsigned i) { return rft__halves(b + 2, i); }
static unsigned code_q4_1(const unsigned char *b, unsigned i) { return rft__halves(b + 4, i); }
static unsigned code_q5_0(const unsigned char *b, unsigned i) { return rft__halves(b + 6, i) | rft__fifth_bit(b + 2, i); }
static unsigned code_q5_1(const unsigned char *b, unsigned i) { return rft__halves(b + 8, i) | rft__fifth_bit(b + 4, i); }
static unsigned code_q8_0(const unsigned char *b, unsigned i) { return b[2 + i] ^ 128u; }
static unsigned code_q2_k(const unsigned char *b, unsigned i) { return rft__k_two_bits(b + 16, i); }

static unsigned code_q3_k(const unsigned char *b, unsigned i) {
    return rft__k_two_bits(b + 32, i) | (b[i & 31u] >> (i >> 5) & 1u) << 2;
}

static unsigned code_q4_k(const unsigned char *b, unsigned i) { return rft__k_four_bits(b + 16, i); }

static unsigned code_q5_k(const unsigned char *b, unsigned i) {
    return rft__k_four_bits(b + 48, i) | (b[16 + (i & 31u)] >> (i >> 5) & 1u) << 4;
}

static unsigned code_q6_k(const unsigned char *b, unsigned i) {
    const unsigned half = i >> 7, plane = i >> 5 & 3u, l = i & 31u;
    const unsigned low = rft__nibble(b[half * 64 + (plane & 1u) * 32 + l], plane >> 1);
    return low | (b[128 + half * 32 + l] >> 2 * plane & 3u) << 4;
}

static unsigned code_iq4_xs(const unsigned char *b, unsigned i) { return rft__halves(b + 8 + 16 * (i >> 5), i & 31u); }
static unsigned code_mxfp4(const unsigned char *b, unsigned i) { return rft__halves(b + 1, i); }

static unsigned code_nvfp4(const unsigned char *b, unsigned i) {
    return rft__nibble(b[4 + 8 * (i >> 4) + (i & 7u)], i >> 3 & 1u);
}

/* ---- bytes of groups under the scale of a block ---- */

static int part_q2_k(const unsigned char *b, unsigned g) { return b[g] & 15; }
static int minimum_q2_k(const unsigned char *b, unsigned g) { return b[g] >> 4; }
static int part_q3_k(const unsigned char *b, unsigned g) { return rft__q3_k_scale(b + 96, g); }
static int part_k(const unsigned char *b, unsigned g) { return (int)rft__k_scale(b + 4, g); }
static int minimum_k(const unsigned char *b, unsigned g) { return (int)rft__k_min(b + 4, g); }
static int part_q6_k(const unsigned char *b, unsigned g) { return rft__load_i8(b + 192 + g); }

static int part_iq4_xs(const unsigned char *b, unsigned g) {
    return (int)(rft__nibble(b[4 + (g >> 1)], g & 1u) | (rft__load_u16(b + 2) >> 2 * g & 3u) << 4) - 32;
}

/* ---- the table ---- */

static const signed char e2m1_doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
static const signed char iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

#define RFT_GGUF(number) ((rft_type)(256 + (number)))
#define RFT_QUANT(elem, codes, n_bits, k, kind, offset_kind, zero, values, unit, of, minimum_of, at, min_at)                     \
    {.type = elem, .bits = n_bits, .group = k, .scale = RFT__SCALE_##kind, .offset = RFT__OFFSET_##offset_kind, .bias = zero,    \
     .table = values, .factor = unit, .code = code_##codes, .part = of, .minimum_part = minimum_of, .scale_at = at,              \
     .minimum_at = min_at},
#define RFT_QUANT_FLOAT(elem, codes, n_bits, offset_kind, decode)                                                               \
    {.type = elem, .bits = n_bits, .offset = RFT__OFFSET_##offset_kind, .factor = 1.0f, .value = decode, .code = code_##codes},
static const rft__quant quants[] = {
#include "format/quants.def"
};
#undef RFT_QUANT
#undef RFT_QUANT_FLOAT

const rft__quant *rft__quant_find(rft_type type) {
    for (size_t i = 0; i < sizeof quants / sizeof *quants; i++) {
        if (quants[i].type == type) {
            return &quants[i];
        }
    }
    return NULL;
}

float rft__quant_value(const rft__quant *q, unsigned code) {
    return q->value != NULL   ? q->value(code)
           : q->table != NULL ? q->factor * (float)q->table[code]
                              : (float)((int)code - q->bias);
}
