/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_sample.c - a sample that looks where kernels fail: at the first and last tiles and on both sides of tile edges.
 * See verify_sample.h. Half of the sample at most is edges; the rest is spread evenly at random.
 */
#include "probe/verify_sample.h"

#include "base/alloc.h"
#include "probe/random.h"

#include <string.h>

/* Heights and widths of register tiles and panels. */
static const int64_t tiles[] = {14, 16, 32, 48, 64};
enum { N_TILES = sizeof tiles / sizeof *tiles };

typedef struct sampler {
    uint8_t *marks;
    int64_t total, left; /* left: numbers still to be taken */
} sampler;

static void take(sampler *s, int64_t i) {
    if (i >= 0 && i < s->total && s->left > 0 && !s->marks[i]) {
        s->marks[i] = 1;
        s->left--;
    }
}

static void take_edge(sampler *s, int64_t edge) {
    take(s, edge - 1);
    take(s, edge);
}

static void take_ends(sampler *s) {
    take(s, 0);
    take(s, s->total - 1);
    for (int t = 0; t < N_TILES; t++) {
        take_edge(s, (s->total - 1) / tiles[t] * tiles[t]);
        take_edge(s, tiles[t]);
    }
}

static void take_edges(sampler *s, int64_t budget, uint64_t seed) {
    for (int64_t i = 0; i < budget / 2; i++) {
        const int64_t tile = tiles[i % N_TILES], edges = rft__ceil_div(s->total, tile);
        take_edge(s, (int64_t)(rft__random_at(seed, (uint64_t)i) % (uint64_t)edges) * tile);
    }
}

/* A number that is taken already is replaced by the next free one. */
static void take_others(sampler *s, uint64_t seed) {
    for (uint64_t i = 0; s->left > 0; i++) {
        int64_t at = (int64_t)(rft__random_at(~seed, i) % (uint64_t)s->total);
        while (s->marks[at]) {
            at = at + 1 < s->total ? at + 1 : 0;
        }
        take(s, at);
    }
}

void rft__verify_sample(int64_t total, int64_t count, uint64_t seed, int64_t *index, uint8_t *marks) {
    if (count >= total) {
        for (int64_t i = 0; i < total; i++) {
            index[i] = i;
        }
        return;
    }
    sampler s = {.marks = marks, .total = total, .left = count};
    take_ends(&s);
    take_edges(&s, s.left / 2, seed);
    take_others(&s, seed);
    for (int64_t i = 0, n = 0; n < count; i++) {
        if (marks[i]) {
            index[n++] = i;
        }
    }
    memset(marks, 0, (size_t)total);
}
