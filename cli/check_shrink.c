/* SPDX-License-Identifier: Apache-2.0
 *
 * check_shrink.c - see check_shrink.h. Greedy: each step is kept where the smaller problem fails too, in the same way.
 */
#include "check_shrink.h"
#include "check_formats.h"

#define MOST_TRIES 200 /* a product is small, and a plan on a GPU may be compiled for it */

typedef struct shrinker {
    checker *c;
    check_problem *p;
    check_result *r;
    int tries;
} shrinker;

/* Becomes q where that fails as the problem did. */
static bool take(shrinker *s, const check_problem *q) {
    check_result r;
    if (s->tries++ >= MOST_TRIES)
        return false;
    check_run(s->c, q, &r);
    if (r.verdict != s->r->verdict)
        return false;
    *s->p = *q;
    *s->r = r;
    return true;
}

/* A number of the problem halved, or one less. */
static bool shrink_number(shrinker *s, int64_t *number, int64_t least) {
    const int64_t was = *number, smaller[] = {was / 2, was - 1};
    for (int i = 0; i < 2; i++) {
        const int64_t k = s->p->k;
        check_problem q;
        *number = smaller[i];
        q = *s->p;
        *number = was;
        check_low_bit(&q); /* may round k up again */
        if (smaller[i] >= least && (q.k < k || number != &s->p->k) && take(s, &q))
            return true;
    }
    return false;
}

static bool drop_op(shrinker *s) {
    for (uint32_t drop = 0; drop < s->p->epi.n_op; drop++) {
        check_problem q = *s->p;
        q.epi.n_op = 0;
        for (uint32_t i = 0; i < s->p->epi.n_op; i++)
            if (i != drop)
                epilogue_add(&q.epi, s->p->epi.op[i]);
        epilogue_text(&q.epi);
        if (take(s, &q))
            return true;
    }
    return false;
}

static bool drop_threads(shrinker *s) {
    check_problem q = *s->p;
    q.threads = 1;
    return s->p->threads > 1 && take(s, &q);
}

void check_shrink(checker *c, check_problem *p, check_result *r) {
    shrinker s = {c, p, r, 0};
    while (drop_threads(&s) || drop_op(&s) || shrink_number(&s, &p->batch, 1) || shrink_number(&s, &p->m, 0) ||
           shrink_number(&s, &p->n, 0) || shrink_number(&s, &p->k, 0))
        ;
}
