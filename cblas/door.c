/* SPDX-License-Identifier: Apache-2.0
 *
 * door.c - the context of the process, its cached plans and its workspaces. See door.h.
 * Invariant: one lock guards all of it and is never held during a product. A plan that is lent stays until it comes back.
 */
#include "door.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 64, WAYS = 4, SPARE_BUFFERS = 16, ALIGN = 64 };

typedef struct key { /* all that a plan depends on; compared as bytes, so there is no padding */
    int64_t m, n, k, batch;
    float alpha, beta;
    uint16_t type, x_order, w_order, one_w;
} key; /* whether W is packed follows from these */
_Static_assert(sizeof(key) == 6 * sizeof(uint64_t), "a key has no padding");

struct rft__blas_plan {
    key key;
    rft_plan *plan;           /* NULL: a place that is free */
    size_t workspace, weight; /* bytes; weight: of the packed W */
    uint64_t last_use;
    uint32_t users;
    bool loose; /* not in the table, all of whose places were in use */
};

static struct {
    rft_ctx *ctx; /* NULL: it could not be made, because of `failure` */
    rft_error failure;
    pthread_mutex_t lock; /* of what follows */
    uint64_t clock;
    rft__blas_plan plans[SETS][WAYS];
    rft__blas_buffer spare[SPARE_BUFFERS]; /* the last one is the one used last, so the one in the caches */
    int spares;
} door = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t opened = PTHREAD_ONCE_INIT;

/* ---- the context; the child of a fork has it too, and none of the calls that were in flight ---- */

static void before_fork(void) { pthread_mutex_lock(&door.lock); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&door.lock); }

static void after_fork_in_child(void) {
    for (int i = 0; i < SETS * WAYS; i++) {
        door.plans[i / WAYS][i % WAYS].users = 0;
    }
    pthread_mutex_init(&door.lock, NULL);
}

/* The handlers behind those of the context, whose locks this one precedes. */
static void open_door(void) {
    if (rft_ctx_create("cpu", NULL, &door.ctx, &door.failure) == RFT_OK) {
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
}

/* ---- plans ---- */

static bool shares_w(const rft__blas_product *p) { return p->batch > 1 && p->w_stride == 0; }

static key key_of(const rft__blas_product *p) {
    return (key){p->m, p->n, p->k, p->batch, p->alpha, p->beta, (uint16_t)p->type, p->x_order, p->w_order, shares_w(p)};
}

static uint64_t hash(const key *k) {
    uint64_t word[6], h = 0;
    memcpy(word, k, sizeof word);
    for (int i = 0; i < 6; i++) {
        h = (h ^ word[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

rft_weight_desc rft__blas_weight(const rft__blas_product *p) {
    rft_weight_desc w = rft_weight_desc_init();
    w.elem = p->type;
    w.order = p->w_order;
    w.n = p->n;
    w.k = p->k;
    w.ld = rft__blas_packs(p) ? p->ldw : 0; /* a plan of an unpacked W takes it at each run */
    w.batch = shares_w(p) ? 1 : p->batch;
    return w;
}

static size_t padded(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

static rft_status make_plan(const rft__blas_product *p, rft__blas_plan *out, rft_error *err) {
    const rft_epi_op add_y = {.kind = RFT_EPI_ADD, .type = RFT_F32, .beta = p->beta};
    const bool packs = rft__blas_packs(p);
    rft_linear_desc d = rft_linear_desc_init();
    d.x = p->type;
    d.y = RFT_F32;
    d.w = rft__blas_weight(p);
    d.x_order = p->x_order;
    d.batch = p->batch;
    d.m_min = d.m_max = p->m;
    d.alpha = p->alpha;
    d.flags = packs ? RFT_ALPHA : RFT_ALPHA | RFT_W_DYNAMIC;
    d.epi = &add_y;
    d.n_epi = p->beta != 0.0f;
    size_t weight = 0;
    rft_plan *plan = NULL;
    rft_plan_info info = rft_plan_info_init();
    rft_status status = packs ? rft_weight_bytes(door.ctx, &d.w, &weight, err) : RFT_OK;
    if (status == RFT_OK) {
        status = rft_plan_create(door.ctx, &d, &plan, err);
    }
    if (status == RFT_OK) {
        rft_plan_get_info(plan, p->m, &info);
        *out = (rft__blas_plan){.key = key_of(p), .plan = plan, .workspace = padded(info.workspace), .weight = padded(weight)};
    }
    return status;
}

/* A free place of the set, else the one that waits longest, else one that goes when it comes back. */
static rft__blas_plan *place_in(rft__blas_plan set[WAYS]) {
    rft__blas_plan *oldest = NULL;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].users == 0 && (oldest == NULL || set[i].last_use < oldest->last_use)) {
            oldest = set + i;
        }
    }
    return oldest != NULL ? oldest : calloc(1, sizeof *oldest);
}

static rft_status add_plan(const rft__blas_product *p, rft__blas_plan set[WAYS], rft__blas_plan **out, rft_error *err) {
    rft__blas_plan made = {.plan = NULL};
    const rft_status status = make_plan(p, &made, err);
    if (status != RFT_OK) {
        return status;
    }
    rft__blas_plan *const place = place_in(set);
    if (place == NULL) {
        rft_plan_free(made.plan);
        *err = (rft_error){RFT_E_NOMEM, 0, "no memory for one more plan in use"};
        return RFT_E_NOMEM;
    }
    made.loose = place < set || place >= set + WAYS;
    rft_plan_free(place->plan);
    *place = made;
    *out = place;
    return RFT_OK;
}

static rft_status take_plan(const rft__blas_product *p, rft__blas_plan **out, rft_error *err) {
    const key k = key_of(p);
    rft__blas_plan *const set = door.plans[hash(&k) % SETS];
    *out = NULL;
    for (int i = 0; i < WAYS && *out == NULL; i++) {
        *out = set[i].plan != NULL && memcmp(&set[i].key, &k, sizeof k) == 0 ? set + i : NULL;
    }
    const rft_status status = *out != NULL ? RFT_OK : add_plan(p, set, out, err);
    if (status == RFT_OK) {
        (*out)->users++;
        (*out)->last_use = ++door.clock;
    }
    return status;
}

static void give_plan(rft__blas_plan *plan) {
    if (--plan->users == 0 && plan->loose) {
        rft_plan_free(plan->plan);
        free(plan);
    }
}

/* ---- loans ---- */

static rft_status take_plans(const rft__blas_product *products, uint32_t count, rft__blas_loan *loan, size_t *bytes,
                             rft_error *err) {
    pthread_mutex_lock(&door.lock);
    rft_status status = RFT_OK;
    for (loan->count = 0; loan->count < count && status == RFT_OK;) {
        rft__blas_plan *taken = NULL;
        status = take_plan(products + loan->count, &taken, err);
        if (status == RFT_OK) {
            loan->plan[loan->count] = taken->plan;
            loan->workspace_bytes[loan->count] = taken->workspace;
            loan->entry[loan->count++] = taken;
            *bytes += taken->workspace + taken->weight;
        }
    }
    loan->buffer = door.spares > 0 ? door.spare[--door.spares] : (rft__blas_buffer){NULL, 0};
    pthread_mutex_unlock(&door.lock);
    return status;
}

static rft_status grow(rft__blas_buffer *buffer, size_t bytes, rft_error *err) {
    if (buffer->bytes >= bytes) {
        return RFT_OK;
    }
    free(buffer->p);
    *buffer = (rft__blas_buffer){aligned_alloc(ALIGN, bytes), bytes};
    if (buffer->p == NULL) {
        buffer->bytes = 0;
        *err = (rft_error){RFT_E_NOMEM, 0, "no memory for a workspace"};
        return RFT_E_NOMEM;
    }
    return RFT_OK;
}

rft_status rft__blas_lend(const rft__blas_product *products, uint32_t count, rft__blas_loan *loan, rft_error *err) {
    pthread_once(&opened, open_door);
    if (door.ctx == NULL) {
        *err = door.failure;
        return err->status;
    }
    size_t bytes = 0;
    loan->ctx = door.ctx;
    rft_status status = take_plans(products, count, loan, &bytes, err);
    if (status == RFT_OK) {
        status = grow(&loan->buffer, bytes, err);
    }
    if (status != RFT_OK) {
        rft__blas_return(loan);
    }
    return status;
}

void rft__blas_return(rft__blas_loan *loan) {
    pthread_mutex_lock(&door.lock);
    for (uint32_t i = 0; i < loan->count; i++) {
        give_plan(loan->entry[i]);
    }
    const bool kept = door.spares < SPARE_BUFFERS;
    if (kept) {
        door.spare[door.spares++] = loan->buffer;
    }
    pthread_mutex_unlock(&door.lock);
    if (!kept) {
        free(loan->buffer.p);
    }
}
