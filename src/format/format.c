/* SPDX-License-Identifier: Apache-2.0
 *
 * format.c - the table of formats.def, its look-ups, exact storage, and a block decoder made from each decode function.
 *
 * Called through format.h. Invariant: all sizes from outside pass the overflow checks here.
 */
#include "format/format.h"

#include "base/alloc.h"
#include "base/error.h"
#include "format/decode/decode_scalar.h"

#include "format/decode/decode_q.h"

#include "format/decode/decode_fp4.h"
#include "format/decode/decode_iq4.h"
#include "format/decode/decode_k.h"

#include <inttypes.h>
#include <string.h>

#define RFT_GGUF(number) ((rft_type)(256 + (number)))

#define RFT_FORMAT(type, gguf, name, elements, bytes)                                                                            \
    static void decode_blocks_##name(const unsigned char *restrict src, int64_t blocks, float *restrict dst) {                   \
        for (int64_t b = 0; b < blocks; b++, src += (bytes), dst += (elements)) {                                                \
            for (unsigned i = 0; i < (elements); i++) {                                                                          \
                dst[i] = rft__decode_##name(src, i);                                                                             \
            }                                                                                                                    \
        }                                                                                                                        \
    }
#define RFT_FORMAT_NAMED(type, gguf, name, elements, bytes)
#include "format/formats.def"
#undef RFT_FORMAT
#undef RFT_FORMAT_NAMED

#define RFT_FORMAT(type, gguf, name, elements, bytes)       {type, gguf, #name, elements, bytes, decode_blocks_##name},
#define RFT_FORMAT_NAMED(type, gguf, name, elements, bytes) {type, gguf, #name, elements, bytes, NULL},
static const rft__format formats[] = {
#include "format/formats.def"
};
#undef RFT_FORMAT
#undef RFT_FORMAT_NAMED

#define N_FORMATS (sizeof formats / sizeof formats[0])

const rft__format *rft__format_at(uint32_t index) { return index < N_FORMATS ? &formats[index] : NULL; }

const rft__format *rft__format_find(rft_type type) {
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (formats[i].type == type) {
            return &formats[i];
        }
    }
    return NULL;
}

const rft__format *rft__format_find_gguf(uint32_t number) {
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (formats[i].gguf >= 0 && (uint32_t)formats[i].gguf == number) {
            return &formats[i];
        }
    }
    return NULL;
}

const char *rft__format_name(rft_type type) {
    const rft__format *format = rft__format_find(type);
    return format ? format->name : "?";
}

static rft_status check_k(const rft__format *format, int64_t k, rft_error *err) {
    if (k < 0) {
        RFT_FAIL(err, RFT_E_ARG, "k = %" PRId64 " is negative", k);
    }
    if (k % format->block_elements != 0) {
        RFT_FAIL(err, RFT_E_ARG, "k = %" PRId64 " is not a multiple of %" PRIu32 ", the block of %s", k, format->block_elements,
                 format->name);
    }
    return RFT_OK;
}

rft_status rft__format_bytes(rft_type type, int64_t n, int64_t k, int64_t *bytes, rft_error *err) {
    const rft__format *format = rft__format_find(type);
    if (!format) {
        RFT_FAIL(err, RFT_E_ARG, "type = %d is not a known rft_type", (int)type);
    }
    RFT_TRY(check_k(format, k, err));
    int64_t row;
    if (n < 0 || rft__mul_overflows(k / format->block_elements, format->block_bytes, &row) || rft__mul_overflows(n, row, bytes)) {
        RFT_FAIL(err, RFT_E_ARG, "n = %" PRId64 " rows of k = %" PRId64 " %s: n is negative or the bytes exceed 2^63 - 1", n, k,
                 format->name);
    }
    return RFT_OK;
}

uint16_t rft__bf16_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(bits >> 16 | 0x40u); /* rounding could turn a NaN into infinity */
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Bits of a finite magnitude in a float with `dropped` bits less of a fraction, whose least normal number has the bits `normal`
 * in f32. Below that a step is as large as that of f32 at a power of two 2^dropped above, which rounds when it is added. */
static uint32_t narrow(uint32_t magnitude, uint32_t normal, int dropped) {
    if (magnitude < normal) {
        const uint32_t anchor = normal + ((uint32_t)dropped << 23);
        float at, sum;
        memcpy(&at, &magnitude, sizeof at);
        memcpy(&sum, &anchor, sizeof sum);
        sum += at;
        memcpy(&magnitude, &sum, sizeof magnitude);
        return magnitude - anchor;
    }
    const uint32_t half = (1u << (dropped - 1)) - 1;
    return (magnitude - (normal - 0x00800000u) + half + (magnitude >> dropped & 1u)) >> dropped;
}

uint16_t rft__f16_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (magnitude >= 0x477ff000u) { /* 65520: halfway to what would be the next one */
        return (uint16_t)(sign | 0x7c00u);
    }
    return (uint16_t)(sign | narrow(magnitude, 0x38800000u, 13)); /* 2^-14 */
}

uint8_t rft__e4m3_from_f32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return (uint8_t)(sign | 0x7fu);
    }
    if (magnitude >= 0x43e00000u) { /* 448 */
        return (uint8_t)(sign | 0x7eu);
    }
    return (uint8_t)(sign | narrow(magnitude, 0x3c800000u, 20)); /* 2^-6 */
}
