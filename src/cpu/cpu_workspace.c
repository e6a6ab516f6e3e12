/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_workspace.c - see cpu_workspace.h.
 */
#include "cpu/cpu_workspace.h"

#include "cpu/cpu_rows.h"

enum { LINE = 128 }; /* buffers start here: two cache lines, as prefetchers fetch pairs */

static int64_t aligned(int64_t bytes) { return rft__round_up(bytes, LINE); }

/* Rows of X held packed at a time, of `rows` to do. */
static int64_t held_rows(const rft__cpu_pick *pick, int64_t rows) { return rft__min(rows, pick->mc); }

int64_t rft__x_bytes(const rft__choice *c, const rft__cpu_pick *pick, int64_t rows) {
    const rft__cpu_kernel *kernel = pick->kernel;
    const int64_t k = c->p.w.k;
    if (kernel->form == RFT__FORM_TILES && !rft__x_rows_own(c, rows)) {
        return 0;
    }
    if (kernel->form == RFT__FORM_TILES || kernel->form == RFT__FORM_ROWS) {
        return aligned(rft__x_rows_stride(kernel->x, k) * held_rows(pick, rows));
    }
    return aligned(rft__panel_bytes(kernel->x, 1, rft__round_up(k, kernel->kr)) * held_rows(pick, rows));
}

int64_t rft__w_bytes(const rft__choice *c, const rft__cpu_pick *pick) {
    const bool as_it_is = pick->source == RFT__W_PANELS || pick->source == RFT__W_IN_PLACE;
    const int64_t panel = pick->source == RFT__W_UNPACK ? rft__strip_bytes(&c->packing, pick->kc)
                                                        : rft__panel_bytes(pick->kernel->w, RFT__PANEL, pick->kc);
    return as_it_is ? 0 : aligned(pick->panels * panel);
}

static int64_t acc_bytes(const rft__cpu_pick *pick, int64_t rows, int64_t panels, int64_t k) {
    const int64_t one_tile = (int64_t)pick->kernel->mr * pick->panels;
    const bool one_pass = k <= pick->kc && pick->kernel->form != RFT__FORM_COLUMNS;
    const int64_t sums = one_pass ? one_tile : held_rows(pick, rows) * rft__min(pick->nc, rft__round_up(panels, pick->panels));
    return aligned(rft__max(one_tile, sums) * RFT__PANEL * (int64_t)sizeof(float));
}

int64_t rft__thread_bytes(const rft__choice *c, const rft__cpu_pick *pick, int64_t m) {
    return rft__x_bytes(c, pick, m) + rft__w_bytes(c, pick) + acc_bytes(pick, m, rft__cpu_panels(&c->p.w), c->p.w.k);
}

int64_t rft__partial_sums(const rft__choice *c, int64_t m) { return c->p.batch * rft__cpu_panels(&c->p.w) * m * RFT__PANEL; }

int64_t rft__partial_bytes(const rft__choice *c, const rft__grid *g, int64_t m) {
    return g->kk == 1 ? 0 : aligned(g->kk * rft__partial_sums(c, m) * (int64_t)sizeof(float));
}

int64_t rft__y_rows_bytes(const rft__choice *c, int64_t m) {
    const rft__epi *epi = &c->p.epi;
    return epi->quantize.kind != RFT_EPI_QUANTIZE_ROWS ? 0 : aligned(c->p.batch * m * epi->n_out * (int64_t)sizeof(float));
}

/* Work too small to pay for a hand-off: about 2 us of one thread. */
static bool is_tiny(const rft__choice *c, int64_t m) {
    const double products = (double)m * (double)c->p.w.n * (double)c->p.w.k * (double)c->p.batch;
    return products < 1e5 && rft__matrix_bytes(&c->p.w) < 3e4;
}

rft__grid rft__cpu_grid(const rft__choice *c, const rft__cpu_pick *pick, int64_t m) {
    const int unit = rft__cpu_unit(&c->p.w);
    const bool split = !c->p.batch_invariant && m <= RFT__TABLE_M;
    /* Neither kernel nor packed W may be cut in a pair, nor a panel of codes inside a chunk. */
    const int kr = (int)rft__max(pick->kernel->kr, c->granule);
    return rft__grid_make(is_tiny(c, m) ? 1 : c->device->threads, m, pick->kernel->mr,
                          rft__cpu_panels(&c->p.w) / unit * c->p.batch, c->p.w.k, kr, 512, split);
}

static size_t workspace_at(const rft__choice *c, const rft__cpu_pick *pick, int64_t m) {
    const rft__grid g = rft__cpu_grid(c, pick, m);
    return (size_t)(c->device->threads * rft__thread_bytes(c, pick, m) + rft__partial_bytes(c, &g, m) +
                    rft__x_rows_bytes(c, pick, m) + rft__y_rows_bytes(c, m));
}

size_t rft__cpu_workspace(const rft__choice *c) {
    size_t most = 0;
    for (int64_t m = c->p.m_min; m <= rft__min(c->p.m_max, RFT__TABLE_M); m++) {
        const size_t bytes = workspace_at(c, rft__cpu_pick_at(c, m), m);
        most = bytes > most ? bytes : most;
    }
    const size_t last = workspace_at(c, rft__cpu_pick_at(c, c->p.m_max), c->p.m_max);
    return last > most ? last : most;
}
