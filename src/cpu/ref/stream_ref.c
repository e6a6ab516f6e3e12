/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_ref.c - memory loops with the widest loads that the baseline of x86-64 and of aarch64 has, and plain stores.
 * See cpu/stream_body.h; called through cpu/peak.c.
 */
#define STREAM_NAME(x)      x##_ref
#define STREAM_BYTES        16
#define STREAM_BYPASS(p, v) (*(vector *)(p) = (v))
#define STREAM_FENCE()      ((void)0)
#include "cpu/stream_body.h"
