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
    return (rft__fetch){next.w + (size_t)(index * blocks * each * 64), next.stride, 0, each, x_ahead};
}

/* Of panels as they lie: some lines of each block. */
static rft__fetch panel_share(const rft__codes8_job *j, rft__panels next, int64_t index, int64_t count) {
    const int64_t bits = j->packing->bits, each = rft__ceil_div(bits, count), first = rft__min(index * each, bits);
    return (rft__fetch){next.w, next.stride, (int)first, (int)rft__min(each, bits - first), NULL};
}

/* Beside as many panels at once as there is a tile for. */
static void multiply_codes8(const rft__codes8_job *j, const rft__codes8_family *family, rft__fetch fetch) {
    const int stride = j->panels * RFT__PANEL;
    for (int p = 0, width; p < j->panels; p += width) {
        width = j->panels - p;
        while (family->tile[width - 1][j->rows - 1] == NULL) {
            width--;
        }
        family->tile[width - 1][j->rows - 1](j->packing, j->k, j->x, j->x_stride, j->w.w + (size_t)p * j->w.stride, j->w.stride,
                                             j->acc + p * RFT__PANEL, stride, j->accumulate, &fetch);
        fetch.w += (size_t)width * fetch.stride;
    }
}

/* How far ahead of its use a lone tile fetches a line, as lead_k says: two chunks, one panel beside many rows four, and 1024
 * bytes where memory alone sets the pace. One Zen 4 core, K = 4096, GB/s with 1024 bytes and two chunks, at m = 8 two and four:
 *     m = 1  q4_0 27.5 26.5  q4_k 26.5 22.9  i4 in groups of 128 29.8 26.0  i8 33.6 29.7  q5_0 20.7 25.1  q6_k 21.3 25.9
 *     m = 4  q4_0 17.8 18.8  q4_k 17.9 19.0  i4 in groups of 128 23.0 24.3  i8 33.0 29.1
 *     m = 8  q4_0 10.4 11.6  q8_0 19.8 21.1  i8 20.2 21.0 */
static int64_t lead8(const rft__codes8_job *j, int64_t *bytes) {
    enum { NEAR_BYTES = 1024, FEW_ROWS = 6 };
    const bool few_scales = rft__packing_sum(j->packing) > RFT__BLOCK;
    const bool near = j->packing->bits == 8 ? j->rows <= (few_scales ? 4 : 2) : j->packing->bits == 4 && j->rows == 1;
    const int64_t lead = (near ? 1 : j->rows <= FEW_ROWS ? 2 : 4) * RFT__CHUNK;
    *bytes = near ? NEAR_BYTES : rft__packing_bytes(j->packing, lead);
    return lead;
}

/* The only tile of panels: it fetches what it will read, and at its end the first chunks of the next ones. */
static void stream_codes8(const rft__codes8_job *j, rft__panels next) {
    int64_t bytes;
    const int64_t lead = lead8(j, &bytes), body = rft__round_up(rft__max(0, j->k - lead), RFT__CHUNK);
    rft__codes8_job part = *j;
    if (body > 0) {
        part.k = body;
        multiply_codes8(&part, j->kernel->codes8, panel_share(j, (rft__panels){j->w.w + bytes, j->w.stride}, 0, 1));
        part.accumulate = true;
    }
    part.k = j->k - body;
    part.x += body / RFT__CHUNK * j->x_stride;
    part.w.w += rft__packing_bytes(j->packing, body);
    multiply_codes8(&part, j->kernel->codes8, panel_share(j, next, 0, 1));
}

void rft__codes8_multiply(const rft__codes8_job *j, rft__panels next, const rft__x8 *x_ahead, int64_t index, int64_t count) {
    if (j->kernel->tiles != NULL) {
        const rft__fetch fetch = strip_share(j, next, x_ahead, index, count);
        j->kernel->tiles->multiply8(j->rows, j->panels, j->packing, j->k, j->x, j->x_stride, j->w.w, j->w.stride, j->acc,
                                    j->panels * RFT__PANEL, j->accumulate, &fetch);
    } else if (j->kernel->form == RFT__FORM_BYTES) {
        multiply_codes8(j, j->kernel->codes8 + j->packing->offset, strip_share(j, next, x_ahead, index, count));
    } else if (count == 1) {
        stream_codes8(j, next);
    } else {
        multiply_codes8(j, j->kernel->codes8, panel_share(j, next, index, count));
    }
}
