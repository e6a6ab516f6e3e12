/* SPDX-License-Identifier: Apache-2.0
 *
 * identity.c - when two problems are the same, and how one is written. Called by plan (cache, log, explain).
 * Invariant: every field of rft__problem that a backend may look at is in the key, padding is not.
 */
#include "base/hash.h"
#include "format/format.h"
#include "problem/backend.h"

#include <string.h>

enum { PROBLEM_FIELDS = 30, OP_FIELDS = 5, KEY_WORDS = PROBLEM_FIELDS + OP_FIELDS * (RFT_MAX_EPI + 1) };

typedef struct key {
    int64_t word[KEY_WORDS];
    size_t count;
} key;

static void put(key *k, int64_t value) { k->word[k->count++] = value; }

/* By bits: a NaN equals itself and -0 differs from 0, so equal keys run alike. */
static void put_float(key *k, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put(k, bits);
}

static void put_matrix(key *k, const rft__matrix *w) {
    put(k, w->elem);
    put(k, w->scale);
    put(k, w->zero);
    put(k, w->group_n);
    put(k, w->group_k);
    put(k, w->global);
    put(k, w->sorted);
    put(k, w->order);
    put(k, w->glu);
    put(k, w->view);
    put(k, w->n);
    put(k, w->k);
    put(k, w->batch);
    put(k, w->n_stride);
    put(k, w->k_stride);
    put(k, w->batch_stride);
}

static void put_op(key *k, const rft_epi_op *op) {
    put(k, op->kind);
    put(k, op->type);
    put(k, op->operand);
    put_float(k, op->alpha);
    put_float(k, op->beta);
}

static key make_key(const rft__problem *p) {
    key k = {.count = 0};
    put_matrix(&k, &p->w);
    put(&k, p->x);
    put(&k, p->y);
    put(&k, p->x_order);
    put(&k, p->x_group_k);
    put(&k, p->m_min);
    put(&k, p->m_max);
    put(&k, p->batch);
    put(&k, p->w_dynamic);
    put(&k, p->batch_invariant);
    put(&k, p->compute);
    put_float(&k, p->alpha);
    put(&k, p->epi.quantize.kind);
    put(&k, p->epi.quantize.operand);
    put(&k, p->epi.quantize.group);
    for (int i = 0; i < p->epi.n_op; i++) {
        put_op(&k, &p->epi.op[i]);
    }
    return k;
}

uint64_t rft__problem_hash(const rft__problem *p) {
    const key k = make_key(p);
    return rft__hash(RFT_HASH_SEED, k.word, k.count * sizeof k.word[0]);
}

bool rft__problem_equal(const rft__problem *a, const rft__problem *b) {
    const key ka = make_key(a);
    const key kb = make_key(b);
    return ka.count == kb.count && memcmp(ka.word, kb.word, ka.count * sizeof ka.word[0]) == 0;
}

/* As BLAS names it for row-major X[m][k], W: n or t of each operand; W[n][k] is the transposed one. */
static const char *layout_name(const rft__problem *p) {
    static const char *const names[2][2] = {{"nt", "nn"}, {"tt", "tn"}};
    return names[p->x_order == RFT_MN_CONTIGUOUS][p->w.order == RFT_MN_CONTIGUOUS];
}

static void add_rows(rft__text *t, const rft__problem *p) {
    rft__text_add(t, "m=%lld", (long long)p->m_min);
    if (p->m_max != p->m_min) {
        rft__text_add(t, "..%lld", (long long)p->m_max);
    }
}

/* What most layers lack is only said where it is there. */
static void add_extras(rft__text *t, const rft__problem *p) {
    static const char *const global[] = {"", " global=times", " global=over"};
    static const char *const glu[] = {"", " glu=halves", " glu=interleaved"};
    static const char *const compute[] = {"", " compute=f32", " compute=tf32", " compute=16", " compute=i8"};
    if (p->batch != 1) {
        rft__text_add(t, " batch=%lld", (long long)p->batch);
    }
    if (p->w.batch != p->batch) {
        rft__text_add(t, " w.batch=%lld", (long long)p->w.batch);
    }
    if (p->w.scale != 0) {
        rft__text_add(t, " scale=%s/%lldx%lld%s%s%s", rft__type_name(p->w.scale), (long long)p->w.group_n,
                      (long long)p->w.group_k, p->w.zero != 0 ? " zero" : "", global[p->w.global],
                      p->w.sorted ? " g_idx" : "");
    }
    if (rft__type_is_8bit(p->x) && p->x_group_k == 0) {
        rft__text_add(t, " x_scale=static");
    } else if (p->x_group_k != 0) {
        rft__text_add(t, " x_scale=f32/%lld", (long long)p->x_group_k);
    }
    if (p->alpha == 0.0f) {
        rft__text_add(t, " alpha=0");
    }
    rft__text_add(t, "%s%s%s%s%s", glu[p->w.glu], p->compute <= RFT_COMPUTE_I8 ? compute[p->compute] : "",
                  p->w.view ? " view" : "", p->w_dynamic ? " dynamic" : "", p->batch_invariant ? " batch-invariant" : "");
}

size_t rft__problem_text(const rft__problem *p, char *buf, size_t cap) {
    char epi[256];
    rft__epi_text(&p->epi, epi, sizeof epi);
    rft__text t = {buf, cap, 0};
    add_rows(&t, p);
    rft__text_add(&t, " n=%lld k=%lld x=%s w=%s y=%s layout=%s epi=%s", (long long)p->w.n, (long long)p->w.k,
                  rft__type_name(p->x), rft__format_name(p->w.elem), rft__type_name(p->y), layout_name(p), epi);
    add_extras(&t, p);
    return t.length;
}
