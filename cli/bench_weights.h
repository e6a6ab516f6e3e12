/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_weights.h - many copies of one W, so that each call can read a copy that no cache holds.
 * bench and model make one set for each W; contenders take copy i modulo the number of copies.
 */
#ifndef BENCH_WEIGHTS_H
#define BENCH_WEIGHTS_H

#include "buffer.h"

typedef struct weight_set {
    rft_ctx *ctx;
    rft_weight_desc desc;
    size_t raw_bytes, packed_bytes; /* of one copy, scales that lie apart not among raw ones; packed_bytes 0: none is packed */
    int64_t serial; /* from 1; no two sets have the same */
    int64_t copies;
    bool cold;   /* the copies span 4 times the last-level cache */
    buffer scale, zero, global, index; /* that lie apart and were drawn: one copy, the same for all */
    rft_weight_src parts;              /* what lies apart from the codes; q is not used */
    buffer raw;  /* copy 0 as stored, then the others once weight_set_raw has been asked for them */
    size_t raw_stride;
    int64_t raw_copies;
    buffer packed;
    size_t packed_stride;
    rft_weight **weight; /* one a copy; NULL when dynamic */
} weight_set;

/* Takes W from `source` (as stored; what it has beside q must outlive the set), or fills it with random values when that is
 * NULL. An exit code. */
int weight_set_make(weight_set *set, rft_ctx *ctx, const rft_weight_desc *desc, const rft_weight_src *source, bool dynamic,
                    uint64_t seed);
void weight_set_free(weight_set *set);
/* Makes all copies as stored, for views, runs that get W unpacked, and libraries that pack inside their calls. */
bool weight_set_need_raw(weight_set *set);
/* Of copy i, in the memory of the context; alone, and with all that goes with it. */
const void *weight_set_raw(const weight_set *set, int64_t i);
/* Copy i as a library call takes it, with its scales. */
rft_weight_src weight_set_source(const weight_set *set, int64_t i);
const rft_weight *weight_set_at(const weight_set *set, int64_t i);

#endif
