/* SPDX-License-Identifier: Apache-2.0
 *
 * hash.c - FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv). A hash of parts is the hash of their concatenation.
 */
#include "base/hash.h"

uint64_t rft__hash(uint64_t seed, const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        seed = (seed ^ p[i]) * RFT_HASH_PRIME;
    }
    return seed;
}
