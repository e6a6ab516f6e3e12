/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_rows.c - see cpu_rows.h. A tile kernel loads 16 rows at once and each of their lines once a strip, so rows are best read
 * where they lie, aligned or not. The exception are rows a multiple of 2 KiB apart, as k of most layers makes them: their lines
 * meet in two sets of L1, which hold fewer than the 32 rows of a step, and in few of L2. The copy costs a hand-off and each
 * thread its share of the bytes; with few rows that is more than it saves. It holds 64 MiB at most.
 */
#include "cpu/cpu_rows.h"

#include <string.h>

enum { LINE = 64, PAIR = 2 * LINE, MEETING = 2048, FEW_ROWS = 16, MOST_BYTES = 64 << 20 };

/* Elements that are rounded to 8 bits in the time of a hand-off. */
enum { WORTH_SHARING = 32 << 10 };

int64_t rft__x_rows_stride(rft_type type, int64_t k) { return rft__round_up(rft__panel_bytes(type, 1, k), PAIR) + LINE; }

static bool is_straight(const rft__choice *c) { return c->p.x_order == RFT_K_CONTIGUOUS; }

static bool in_8_bits(const rft__cpu_pick *pick) { return pick->kernel->x == RFT_I8; }

/* Most rows of a batch that are copied for all: a plan for any m must not ask for memory by m. */
static int64_t most_rows(const rft__choice *c) { return MOST_BYTES / rft__x_rows_stride(c->p.x, c->p.w.k) / c->p.batch; }

bool rft__x_rows_own(const rft__choice *c, int64_t m) { return !is_straight(c) && m > most_rows(c); }

/* The same in 8 bits, which are shared by several threads. */
static int64_t most_x8_rows(const rft__choice *c) {
    const int64_t row = rft__panel_bytes(RFT_I8, 1, c->p.w.k);
    return c->device->threads > 1 && row > 0 ? MOST_BYTES / row / c->p.batch : 0;
}

/* Few rows take longer to hand over than to round once a thread. */
static bool shares_x8(const rft__choice *c, int64_t m) { return m <= most_x8_rows(c) && m * c->p.w.k >= WORTH_SHARING; }

int64_t rft__x_rows_bytes(const rft__choice *c, const rft__cpu_pick *pick, int64_t m) {
    if (in_8_bits(pick)) {
        return rft__min(m, most_x8_rows(c)) * c->p.batch * rft__panel_bytes(RFT_I8, 1, c->p.w.k);
    }
    const bool never = is_straight(c) && m <= FEW_ROWS;
    return pick->kernel->form != RFT__FORM_TILES || never
               ? 0
               : c->p.batch * rft__min(m, most_rows(c)) * rft__x_rows_stride(c->p.x, c->p.w.k);
}

rft__x_rows rft__x_rows_of(const rft__choice *c, const rft__cpu_pick *pick, const rft_linear_args *args, char *copy) {
    const int64_t size = (int64_t)rft__type_size(c->p.x), stride = args->ldx * size;
    const int64_t own = rft__x_rows_stride(c->p.x, c->p.w.k);
    const bool many = args->m > most_rows(c), apart = args->m <= FEW_ROWS || stride % MEETING != 0;
    if (in_8_bits(pick) && shares_x8(c, args->m)) {
        return (rft__x_rows){copy, copy, (int64_t)sizeof(rft__x8), args->m * rft__panel_bytes(RFT_I8, 1, c->p.w.k)};
    }
    if (pick->kernel->form != RFT__FORM_TILES) {
        return (rft__x_rows){0};
    }
    if (is_straight(c) && (apart || many)) {
        return (rft__x_rows){NULL, args->x, stride, args->x_batch_stride * size};
    }
    return many ? (rft__x_rows){.stride = own} : (rft__x_rows){copy, copy, own, args->m * own};
}

void rft__x_rows_copy(const rft__choice *c, const rft__cpu_pick *pick, const rft__x_source *x, int64_t m, const rft__x_rows *rows,
                      int i, int parts) {
    const int64_t all = c->p.batch * m, k = c->p.w.k;
    for (int64_t r = all * i / parts; r < all * (i + 1) / parts; r++) {
        const int64_t b = r / m, row = r % m;
        char *dst = rows->copy + b * rows->batch + row * rows->stride;
        if (in_8_bits(pick)) {
            rft__x_rows_8bit(x, b, row, 1, 0, k, (rft__x8 *)(void *)dst, m);
        } else {
            rft__x_row(x, b, row, 0, k, dst);
        }
    }
}

rft__x8_rows rft__x8_rows_of(const rft__x_rows *shared, const rft__x_source *x, int64_t m, int64_t b, int64_t row0, int64_t rows,
                             int64_t k0, int64_t k1, char *own) {
    if (shared->x != NULL) {
        const rft__x8 *all = (const rft__x8 *)(const void *)(shared->x + b * shared->batch);
        const rft__x8 *first = all + k0 / RFT__CHUNK * m + row0;
        return (rft__x8_rows){first, k0 > 0 ? first - m : NULL, m};
    }
    rft__x8 *const made = (rft__x8 *)(void *)own;
    rft__x_rows_8bit(x, b, row0, rows, k0, k1 - k0, made, rows);
    return (rft__x8_rows){made, NULL, rows};
}

/* A tile's rows over k, padded with zeros to the kernel's KR, since f32 rows meet W panels of pairs. */
static void pack_tiles(const rft__x_source *x, const rft__cpu_kernel *kernel, int64_t b, int64_t row0, const rft__tiling *t,
                       int64_t k0, int64_t k, char *dst) {
    const int64_t padded = rft__round_up(k, kernel->kr);
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t first = rft__tile_start(t, i);
        const int rows = (int)rft__tile_height(t, i);
        char *panel = dst + rft__panel_bytes(kernel->x, 1, padded) * first;
        rft__x_tile(x, b, row0 + first, rows, k0, k, panel);
        if (kernel->x == RFT_F32 && padded != k) {
            memset(panel + rft__panel_bytes(RFT_F32, rows, k), 0, (size_t)rft__panel_bytes(RFT_F32, rows, 1));
        }
    }
}

void rft__x_hold(rft__x_held *held, const rft__x_source *x, const rft__cpu_kernel *kernel, int64_t whole_k, int64_t b,
                 int64_t row0, const rft__tiling *t, int64_t k0, int64_t k) {
    if (held->b == b && held->row0 == row0 && held->count == t->rows) {
        return;
    }
    *held = (rft__x_held){held->rows, b, row0, t->rows};
    if (kernel->form != RFT__FORM_ROWS && kernel->form != RFT__FORM_TILES) {
        pack_tiles(x, kernel, b, row0, t, k0, k, held->rows);
        return;
    }
    const int64_t stride = rft__x_rows_stride(kernel->x, whole_k); /* k contiguous */
    for (int64_t i = 0; i < t->rows; i++) {
        rft__x_row(x, b, row0 + i, k0, k, held->rows + i * stride);
    }
}
