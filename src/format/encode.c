/* SPDX-License-Identifier: Apache-2.0
 *
 * encode.c - the table of encoders.def, the check of inputs, and the formats that are plain numbers. See encode.h.
 */
#include "format/encode.h"

#include "format/encode_blocks.h"

#include <math.h>
#include <string.h>

#define RFT_GGUF(number) ((rft_type)(256 + (number)))

#define RFT_ENCODER(type, name, limit, fallback, file_type)                                                                      \
    {type, #name, limit, (rft_type)(fallback), file_type, rft__encode_##name},
static const rft__encoder encoders[] = {
#include "format/encoders.def"
};
#undef RFT_ENCODER

#define N_ENCODERS (sizeof encoders / sizeof encoders[0])

const rft__encoder *rft__encoder_at(uint32_t index) { return index < N_ENCODERS ? &encoders[index] : NULL; }

const rft__encoder *rft__encoder_find(rft_type type) {
    for (size_t i = 0; i < N_ENCODERS; i++) {
        if (encoders[i].type == type) {
            return &encoders[i];
        }
    }
    return NULL;
}

int64_t rft__encode_check(float limit, const float *src, int64_t n) {
    limit = limit > 0 ? limit : HUGE_VALF;
    for (int64_t i = 0; i < n; i++) {
        if (!(fabsf(src[i]) <= limit) || isinf(src[i])) {
            return i;
        }
    }
    return -1;
}

/* ---- plain numbers ---- */

void rft__encode_f32(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    (void)fit;
    memcpy(dst, src, (size_t)blocks * sizeof *src);
}

void rft__encode_f16(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    (void)fit;
    for (int64_t i = 0; i < blocks; i++) {
        rft__store_u16(dst + 2 * i, rft__f16_from_f32(src[i]));
    }
}

void rft__encode_bf16(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    (void)fit;
    for (int64_t i = 0; i < blocks; i++) {
        rft__store_u16(dst + 2 * i, rft__bf16_from_f32(src[i]));
    }
}
