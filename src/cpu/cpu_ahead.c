/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_ahead.c - see cpu_ahead.h. All fetches go to L2: into L1 they cost up to 20 % on Zen 4. What a lone tile fetches of its own
 * panels gains 5 % at K = 576 there and 10 % on Emerald Rapids.
 */
#include "cpu/cpu_ahead.h"

#include "base/alloc.h"

/* k of the job from `from` on. */
static void multiply(const rft__tile_job *t, int64_t from, int64_t k, const rft__ahead *ahead) {
    const rft__cpu_kernel *kernel = t->kernel;
    const bool tiles = kernel->form == RFT__FORM_TILES, accumulate = t->accumulate || from > 0;
    const char *x = t->x + rft__panel_bytes(kernel->x, tiles ? 1 : t->rows, from);
    const char *w = t->w.w + rft__panel_bytes(kernel->w, RFT__PANEL, from);
    if (tiles) {
        kernel->tiles->multiply(t->rows, t->panels, k, x, t->x_stride, w, t->w.stride, t->acc, accumulate, ahead);
    } else {
        kernel->family->tile[t->panels - 1][t->rows - 1](k, x, w, t->w.stride, t->acc, accumulate, ahead);
    }
}

/* How far ahead of its use a line is fetched. Where memory sets the pace, far costs; where products do, a line must set out early
 * to be there in time. One Zen 4 core, f32, 4096 x 2048, 16, 32 and 64 lines ahead:
 *     GB/s      m = 1 6x64    34.4  33.4  28.5      m = 4   6x64  29.5  25.8  24.6
 *     GFLOP/s   m = 12 14x32   106   108   111      m = 16 28x16    69    94   109 */
static int64_t lead_k(const rft__tile_job *t) {
    enum { NEAR = 16, FAR = 64, TURN = 9 /* rows times k of a line */ };
    const int line_k = t->kernel->w == RFT_F32 ? 1 : 2;
    return (t->rows * line_k < TURN ? NEAR : FAR) * line_k;
}

void rft__tile_stream(const rft__tile_job *t, rft__panels next) {
    const rft__cpu_kernel *kernel = t->kernel;
    const int64_t near = rft__min(lead_k(t), t->k), body = (t->k - near) & -(int64_t)kernel->kr, lead = t->k - body;
    const rft__ahead own = {t->w.w + rft__panel_bytes(kernel->w, RFT__PANEL, lead), t->w.stride, 0};
    const rft__ahead after = {next.w, next.stride, 0};
    if (body > 0) {
        multiply(t, 0, body, &own);
    }
    multiply(t, body, lead, &after);
}

/* An equal share of the next strip, spread over all of k. */
static rft__ahead share_of(const rft__tile_job *t, rft__panels next, int64_t all, int64_t index, int64_t count) {
    const int64_t own = rft__panel_bytes(t->kernel->w, RFT__PANEL, t->k);
    int64_t every = 1;
    while (all > 0 && 2 * every * all <= count * own) {
        every *= 2;
    }
    const int64_t share = own / every;
    if (next.stride == 0 || index * share >= all) {
        return (rft__ahead){NULL, 0, -1};
    }
    return (rft__ahead){next.w + index * share, next.stride, every - 1};
}

void rft__tile_share(const rft__tile_job *t, rft__panels next, int64_t packed_bytes, int64_t index, int64_t count) {
    const rft__ahead ahead = share_of(t, next, packed_bytes, index, count);
    multiply(t, 0, t->k, &ahead);
}

/* Lines that each panel of the next strip is, spread over the blocks of all tiles of this one. */
static rft__fetch strip_share(const rft__codes8_job *j, rft__panels next, const rft__x8 *x_ahead, int64_t index, int64_t count) {
    const int64_t blocks = rft__ceil_div(j->k, RFT__BLOCK), lines = rft__packing_bytes(j->packing, j->k) / 64;
    const int each = (int)rft__ceil_div(lines, rft__max(1, blocks * count));
    return (rft__fetch){next.w + (size_t)(index * blocks * each * 64), next.stride, each, x_ahead};
}

void rft__codes8_multiply(const rft__codes8_job *j, rft__panels next, const rft__x8 *x_ahead, int64_t index, int64_t count) {
    rft__fetch fetch = strip_share(j, next, x_ahead, index, count);
    if (j->kernel->tiles != NULL) {
        j->kernel->tiles->multiply8(j->rows, j->panels, j->packing, j->k, j->x, j->x_stride, j->w.w, j->w.stride, j->acc,
                                    j->panels * RFT__PANEL, j->accumulate, fetch);
        return;
    }
    const rft__codes8_family *family = j->kernel->codes8 + (j->kernel->form == RFT__FORM_BYTES ? j->packing->offset : 0);
    for (int p = 0, width; p < j->panels; p += width) {
        width = j->panels - p;
        while (family->tile[width - 1][j->rows - 1] == NULL) {
            width--;
        }
        family->tile[width - 1][j->rows - 1](j->packing, j->k, j->x, j->x_stride, j->w.w + (size_t)p * j->w.stride, j->w.stride,
                                             j->acc + p * RFT__PANEL, j->panels * RFT__PANEL, j->accumulate, fetch);
        fetch.w += (size_t)width * next.stride;
    }
}
