/* SPDX-License-Identifier: Apache-2.0
 *
 * test_partition.c - the division of a product over 1..256 threads: every (row, unit, k) lies in exactly one part, no part is
 * much longer than its share, and K is cut only on request. The functions are pure, so the test is a sweep.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cpu/cpu_partition.h"

#include <stdbool.h>

enum { MOST_THREADS = 256, ROW_STEP = 14, K_STEP = 2, MIN_K = 512 };

static const int64_t all_rows[] = {0, 1, 2, 13, 14, 15, 29, 64, 65, 127, 1000, 4096},
                     all_units[] = {1, 2, 3, 7, 16, 37, 256, 896, 4001}, all_k[] = {1, 2, 511, 1024, 1025, 4096, 14337};

#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef void check_fn(const rft__grid *g, int threads);

static void each_grid(int k_split, check_fn *check) {
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        for (size_t r = 0; r < COUNT(all_rows); r++) {
            for (size_t u = 0; u < COUNT(all_units); u++) {
                const int64_t k = all_k[((size_t)threads + r + u) % COUNT(all_k)];
                const rft__grid g = rft__grid_make(threads, all_rows[r], ROW_STEP, all_units[u], k, K_STEP, MIN_K, k_split);
                check(&g, threads);
            }
        }
    }
}

static void fail_at(const rft__grid *g, int threads, const char *what) {
    fail_msg("%s: %d threads, %lld rows x %lld units x %lld k as %d x %d x %d", what, threads, (long long)g->rows,
             (long long)g->units, (long long)g->k, g->m, g->n, g->kk);
}

static bool on_step(int64_t at, int64_t step, int64_t end) { return at % step == 0 || at == end; }

static int64_t volume(const rft__part *p) { return (p->row1 - p->row0) * (p->unit1 - p->unit0) * (p->k1 - p->k0); }

static bool inside(const rft__grid *g, const rft__part *p) {
    return 0 <= p->row0 && p->row0 <= p->row1 && p->row1 <= g->rows && 0 <= p->unit0 && p->unit0 <= p->unit1 &&
           p->unit1 <= g->units && 0 <= p->k0 && p->k0 <= p->k1 && p->k1 <= g->k;
}

static bool overlap(const rft__part *a, const rft__part *b) {
    return a->row0 < b->row1 && b->row0 < a->row1 && a->unit0 < b->unit1 && b->unit0 < a->unit1 && a->k0 < b->k1 && b->k0 < a->k1;
}

/* Boxes inside the whole that do not overlap and together have its volume cover each point once. */
static void check_cover(const rft__grid *g, int threads) {
    static rft__part parts[MOST_THREADS];
    const int count = rft__grid_parts(g);
    if (count < 1 || count > threads) {
        fail_at(g, threads, "parts");
    }
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        parts[i] = rft__grid_part(g, i);
        if (!inside(g, &parts[i]) || !on_step(parts[i].row0, ROW_STEP, g->rows) || !on_step(parts[i].k0, K_STEP, g->k)) {
            fail_at(g, threads, "a part's bounds");
        }
        sum += volume(&parts[i]);
        for (int j = 0; j < i; j++) {
            if (overlap(&parts[i], &parts[j])) {
                fail_at(g, threads, "parts overlap");
            }
        }
    }
    if (sum != g->rows * g->units * g->k) {
        fail_at(g, threads, "parts leave something out");
    }
}

/* A part is never empty where the grid says that it works; its length is its share but for the smallest piece. */
static void check_balance(const rft__grid *g, int threads) {
    const int count = rft__grid_parts(g);
    const int64_t grain = rft__min(ROW_STEP, g->rows) * (g->k / g->kk + K_STEP);
    const double share = (double)g->rows * (double)g->units * (double)g->k / threads;
    for (int i = 0; i < count; i++) {
        const rft__part p = rft__grid_part(g, i);
        if ((double)volume(&p) > 1.5 * share + (double)grain) {
            fail_at(g, threads, "a part is too long");
        }
        if (volume(&p) == 0 && g->rows > 0) {
            fail_at(g, threads, "a part is empty");
        }
    }
}

static void check_whole_k(const rft__grid *g, int threads) {
    if (g->kk != 1) {
        fail_at(g, threads, "K is cut");
    }
}

/* Only where at least half of the threads would have nothing, and into parts worth a hand-off. */
static void check_k_parts(const rft__grid *g, int threads) {
    if (g->kk > 1 && (g->m * g->n * 2 > threads || g->k / g->kk < MIN_K)) {
        fail_at(g, threads, "K is cut needlessly");
    }
    if (g->kk == 1 && g->m * g->n * 2 <= threads && g->k >= 2 * MIN_K) {
        fail_at(g, threads, "K is not cut");
    }
}

static void test_cover(void **state) {
    (void)state;
    each_grid(0, check_cover);
    each_grid(1, check_cover);
}

static void test_balance(void **state) {
    (void)state;
    each_grid(0, check_balance);
    each_grid(1, check_balance);
}

static void test_k_is_cut_on_request(void **state) {
    (void)state;
    each_grid(0, check_whole_k);
    each_grid(1, check_k_parts);
}

/* The shares of a part are it, in the order of their sizes, cut at steps; a part that is not cut is one share. */
static void check_shares_of(const rft__shares *s, int threads, int i) {
    enum { MOST_SHARES = 8 };
    const rft__part part = rft__grid_part(&s->grid, i);
    const int parts = rft__grid_parts(&s->grid), count = s->count / parts;
    rft__part shares[MOST_SHARES];
    int64_t sum = 0;
    for (int k = 0; k < count && k < MOST_SHARES; k++) {
        shares[k] = rft__share(s, i + k * parts);
        const rft__part *p = shares + k;
        const bool in_part = part.row0 <= p->row0 && p->row1 <= part.row1 && part.unit0 <= p->unit0 && p->unit1 <= part.unit1;
        const bool at_steps = on_step(p->row0, ROW_STEP, s->grid.rows) && (p->unit0 - part.unit0) % s->unit_step == 0;
        if (!in_part || !at_steps || volume(p) == 0) {
            fail_at(&s->grid, threads, "a share's bounds");
        }
        sum += volume(p);
        for (int l = 0; l < k; l++) {
            if (overlap(p, shares + l)) {
                fail_at(&s->grid, threads, "shares overlap");
            }
        }
    }
    if (s->count % parts != 0 || count > MOST_SHARES || sum != volume(&part)) {
        fail_at(&s->grid, threads, "shares leave something out");
    }
    if (count > 1 && volume(shares) * 3 > volume(&part) * 2) {
        fail_at(&s->grid, threads, "a thread's own share is too long");
    }
}

static void check_shares(const rft__grid *g, int threads) {
    static const int64_t steps[] = {1, 2, 4}, rereads[] = {12, 320};
    for (size_t i = 0; i < COUNT(steps) && g->rows > 0; i++) {
        for (size_t r = 0; r < COUNT(rereads); r++) {
            const rft__blocking b = {.rows = 256, .unit_step = steps[i], .columns = 16, .reread = rereads[r]};
            const rft__shares s = rft__shares_of(g, &b);
            if (s.cut != RFT__CUT_NONE && (rft__grid_parts(g) == 1 || g->kk > 1 || g->rows < 64)) {
                fail_at(g, threads, "shares where memory sets the pace");
            }
            for (int part = 0; part < rft__grid_parts(g); part++) {
                check_shares_of(&s, threads, part);
            }
        }
    }
}

static void test_shares(void **state) {
    (void)state;
    each_grid(0, check_shares);
    each_grid(1, check_shares);
}

/* Which way parts are cut: the one that reads less again. */
static void test_cut(void **state) {
    (void)state;
    const struct {
        int64_t rows, row_step, units, k, reread;
        rft__cut cut;
    } wanted[] = {
        {512, 32, 256, 14336, 12, RFT__CUT_ROWS},   /* 512 x 256 a part: 192 eighths of a row against 512 */
        {512, 32, 256, 14336, 320, RFT__CUT_UNITS}, /* strips are unpacked again */
        {128, 32, 256, 2048, 12, RFT__CUT_UNITS},   /* rows too few to be cut */
        {128, 32, 64, 14336, 12, RFT__CUT_NONE},    /* units too */
        {32, 1, 4096, 14336, 12, RFT__CUT_NONE},    /* memory sets the pace */
        {512, 32, 256, 64, 12, RFT__CUT_NONE},      /* too short */
    };
    for (size_t i = 0; i < COUNT(wanted); i++) {
        const rft__grid g = {.rows = wanted[i].rows, .units = wanted[i].units, .k = wanted[i].k, .row_step = wanted[i].row_step,
                             .k_step = 1, .m = 1, .n = 16, .kk = 1};
        const rft__blocking b = {.rows = 256, .unit_step = 2, .columns = 16, .reread = wanted[i].reread};
        assert_int_equal(rft__shares_of(&g, &b).cut, wanted[i].cut);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cover),
        cmocka_unit_test(test_balance),
        cmocka_unit_test(test_k_is_cut_on_request),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
