/* SPDX-License-Identifier: Apache-2.0
 *
 * peer_read.c - "read" is no library: it only reads the packed bytes of W, with as many threads, in the same rounds. So its time
 * by ours is the share of the read bandwidth that memory gives in those very rounds, which a profile of another minute may not
 * know. The number of streams and the distance of prefetch are the fastest of some, tried for each row.
 */
#include "bench_timer.h"
#include "peers/peer.h"
#include "team.h"

#include <stdio.h>
#include <stdlib.h>

#define STEP    256 /* bytes of a stream at a time; packed copies are multiples */
#define STREAMS 8   /* at most */
#define TRIES   5

typedef uint64_t part __attribute__((vector_size(16), may_alias));

typedef struct read_way {
    int streams;
    size_t ahead; /* 0: no prefetch */
} read_way;

static const read_way ways[] = {{1, 0}, {1, 1024}, {1, 4096}, {2, 2048}, {4, 0}, {4, 1024}, {4, 4096}, {8, 0}, {8, 2048}};

#define N_WAYS (sizeof ways / sizeof ways[0])

typedef struct read_state {
    team *threads;
    const weight_set *set;
    read_way way;
    const char *from; /* of the sweep that runs now */
    uint64_t *checksum; /* a thread; what is read must be used */
} read_state;

static part read_step(part sum, const char *p, size_t ahead) {
    const part *v = (const part *)p;
    for (size_t line = 0; ahead && line < STEP; line += 64)
        __builtin_prefetch(p + ahead + line);
    for (int i = 0; i < STEP / 16; i += 4)
        sum ^= (v[i] ^ v[i + 1]) ^ (v[i + 2] ^ v[i + 3]);
    return sum;
}

/* Thread i's slab, as streams side by side. */
static void read_slab(void *arg, int i) {
    read_state *s = arg;
    const int64_t steps = (int64_t)(s->set->packed_stride / STEP), n = team_size(s->threads);
    const int64_t first = steps * i / n, count = steps * (i + 1) / n - first;
    const char *at[STREAMS + 1];
    part sum = {0};
    for (int j = 0; j <= s->way.streams; j++)
        at[j] = s->from + (first + count * j / s->way.streams) * STEP;
    for (int64_t k = 0; k <= count / s->way.streams; k++)
        for (int j = 0; j < s->way.streams; j++)
            if (at[j] + k * STEP < at[j + 1])
                sum = read_step(sum, at[j] + k * STEP, s->way.ahead);
    s->checksum[i] ^= sum[0] ^ sum[1];
}

static bool run_read(peer *p, int64_t i, void *stream) {
    (void)stream;
    read_state *s = p->state;
    s->from = (const char *)s->set->packed.p + (size_t)(i % s->set->copies) * s->set->packed_stride;
    team_for(s->threads, team_size(s->threads), read_slab, s);
    return true;
}

static double try_way(peer *p, read_way way, int64_t *call) {
    read_state *s = p->state;
    double least = 0;
    s->way = way;
    for (int i = 0; i < TRIES; i++) {
        double start = now_seconds();
        run_read(p, (*call)++, NULL);
        double seconds = now_seconds() - start;
        least = i == 0 || seconds < least ? seconds : least;
    }
    return least;
}

static bool prepare_read(peer *p, const peer_product *product, char why[CLI_WHY]) {
    read_state *s = p->state;
    s->set = product->weights;
    if (s->set->packed_bytes == 0) {
        snprintf(why, CLI_WHY, "no packed W is there to be read");
        return false;
    }
    read_way best = ways[0];
    double least = 0;
    int64_t call = 0;
    for (size_t i = 0; i < N_WAYS; i++) {
        double seconds = try_way(p, ways[i], &call);
        if (i == 0 || seconds < least) {
            least = seconds;
            best = ways[i];
        }
    }
    s->way = best;
    return true;
}

static bool open_read(peer *p, char why[CLI_WHY]) {
    read_state *s = cli_alloc(1, sizeof *s);
    s->threads = team_create(p->threads);
    s->checksum = cli_alloc(p->threads, sizeof *s->checksum);
    p->state = s;
    snprintf(p->version, sizeof p->version, "of packed W alone");
    if (s->threads)
        return true;
    snprintf(why, CLI_WHY, "%u threads cannot be started", p->threads);
    free(s->checksum);
    free(s);
    return false;
}

static void finish_read(peer *p) { (void)p; }

static void close_read(peer *p) {
    read_state *s = p->state;
    team_free(s->threads);
    free(s->checksum);
    free(s);
    p->state = NULL;
}

const peer_kind peer_read = {"read", false, NULL, NULL, open_read, prepare_read, run_read, finish_read, close_read};
