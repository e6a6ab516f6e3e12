/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_input.h - what the targets that build structs share: numbers taken from the input, and structs overwritten by it.
 */
#ifndef RFT_FUZZ_INPUT_H
#define RFT_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool condition) {
    if (!condition) {
        abort();
    }
}

typedef struct input {
    const uint8_t *data;
    size_t left;
} input;

static inline unsigned take(input *in) {
    if (in->left == 0) {
        return 0;
    }
    in->left--;
    return *in->data++;
}

static inline uint64_t take_word(input *in) {
    uint64_t word = 0;
    for (int i = 0; i < 8; i++) {
        word |= (uint64_t)take(in) << (8 * i);
    }
    return word;
}

/* Overwrites 1, 4 or 8 bytes at some multiple of their count, up to four times. */
static inline void patch(input *in, void *p, size_t bytes) {
    for (unsigned count = take(in) % 5; count > 0; count--) {
        const size_t width = (size_t[]){1, 4, 8}[take(in) % 3], at = take(in) * width % (bytes - 8);
        const uint64_t word = take_word(in);
        memcpy((char *)p + at / width * width, &word, width);
    }
}

#endif
