/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_ahead.c - see cpu_ahead.h. All fetches go to L2: into L1 they cost up to 20 % on Zen 4. What a lone tile fetches of its own
 * panels gains 5 % at K = 576 there and 10 % on Emerald Rapids.
 */
#include "cpu/cpu_ahead.h"

#include "base/alloc.h"

static rft__tile_fn *tile_of(const rft__tile_job *t) { return t->kernel->family->tile[t->panels - 1][t->rows - 1]; }

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
    const int64_t lead = rft__min(lead_k(t), t->k), body = t->k - lead;
    const rft__ahead own = {t->w.w + rft__panel_bytes(kernel->w, RFT__PANEL, lead), t->w.stride, 0};
    const rft__ahead after = {next.w, next.stride, 0};
    const char *x = t->x + rft__panel_bytes(kernel->x, t->rows, body);
    const char *w = t->w.w + rft__panel_bytes(kernel->w, RFT__PANEL, body);
    tile_of(t)(body, t->x, t->w.w, t->w.stride, t->acc, t->accumulate, &own);
    tile_of(t)(lead, x, w, t->w.stride, t->acc, true, &after);
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
    tile_of(t)(t->k, t->x, t->w.w, t->w.stride, t->acc, t->accumulate, &ahead);
}
