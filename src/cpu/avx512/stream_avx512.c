/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_avx512.c - memory loops with loads of 64 bytes. See cpu/stream_body.h; called through cpu/peak.c.
 */
#include <immintrin.h>

#define STREAM_NAME(x)      x##_avx512
#define STREAM_BYTES        64
#define STREAM_BYPASS(p, v) _mm512_stream_si512((__m512i *)(p), (__m512i)(v))
#define STREAM_FENCE()      _mm_sfence()
#include "cpu/stream_body.h"
