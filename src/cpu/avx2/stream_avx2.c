/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_avx2.c - memory loops with loads of 32 bytes. See cpu/stream_body.h; called through cpu/peak.c.
 */
#include <immintrin.h>

#define STREAM_NAME(x)      x##_avx2
#define STREAM_BYTES        32
#define STREAM_BYPASS(p, v) _mm256_stream_si256((__m256i *)(p), (__m256i)(v))
#define STREAM_FENCE()      _mm_sfence()
#include "cpu/stream_body.h"
