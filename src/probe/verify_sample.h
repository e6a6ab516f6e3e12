/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_sample.h - which rows and columns of a large result are compared. Called by verify.c.
 */
#ifndef RFT_PROBE_VERIFY_SAMPLE_H
#define RFT_PROBE_VERIFY_SAMPLE_H

#include <stdint.h>

/* count of the numbers 0..total-1, ascending: all, or both ends, both sides of tile edges, and random others.
 * marks: total bytes, zero before and after. */
void rft__verify_sample(int64_t total, int64_t count, uint64_t seed, int64_t *index, uint8_t *marks);

#endif
