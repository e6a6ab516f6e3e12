/* SPDX-License-Identifier: Apache-2.0
 *
 * random.h - random bits by position: SplitMix64 (Steele, Lea, Flood 2014) read as a counter, so that number i is a
 * function of (seed, i) alone. Used by fill.c and verify_sample.c. Not for secrets.
 */
#ifndef RFT_PROBE_RANDOM_H
#define RFT_PROBE_RANDOM_H

#include <stdint.h>

static inline uint64_t rft__random_at(uint64_t seed, uint64_t i) {
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
