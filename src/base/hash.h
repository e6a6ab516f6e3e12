/* SPDX-License-Identifier: Apache-2.0
 *
 * hash.h - FNV-1a over bytes: identities of problems and layouts, checksums of headers. Not for hostile keys.
 */
#ifndef RFT_BASE_HASH_H
#define RFT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define RFT_HASH_SEED  0xcbf29ce484222325u
#define RFT_HASH_PRIME 0x100000001b3u
uint64_t rft__hash(uint64_t seed, const void *bytes, size_t n);

#endif
