/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_gemm.c - the loops of one product, for any m from decode to prefill:
 *
 *     threads: a grid of row parts x panel parts x k parts, large ones in shares that threads take  (cpu_partition.c)
 *       batch, mc rows: pack X to row tiles [K][r]                      (L2; in place where one row is already that, or
 *                                                                        where the kernel reads rows: cpu_rows.c)
 *         nc panels: their partial sums stay in cache
 *           kc of K
 *             strips of NR columns: panels of W from memory, widened or packed here where the kernel wants it, or W as it lies
 *               row tiles: the micro-kernel; after the last kc the epilogue and the one store of y
 *
 * An epilogue that ends in quantize_rows leaves y as f32 in the workspace; one more pass finds the scales (cpu_quantise.c).
 * W is streamed once per mc rows. Where one pass covers K, sums never leave L1. Called by cpu_backend through rft__cpu_run.
 */
#include "cpu/cpu_ahead.h"
#include "cpu/cpu_choice.h"
#include "cpu/cpu_in_place.h"
#include "cpu/cpu_quantise.h"
#include "cpu/cpu_rows.h"
#include "cpu/cpu_workspace.h"
#include "cpu/cpu_x.h"

#include <stdatomic.h>
#include <string.h>

/* One run as its threads see it. */
typedef struct job {
    const rft__choice *choice;
    const rft__cpu_pick *pick;
    const rft_linear_args *args;
    rft__grid grid;
    rft__shares shares;      /* of the grid */
    atomic_int *taken;       /* of them, beside the threads' own */
    rft__x_source x_source;
    rft__pack_fn *pack_w;
    rft__decode_fn *decode;
    const rft__packing *packing; /* of a low-bit W, else NULL */
    int64_t w_row, w_k, w_batch; /* strides of an unpacked W, elements */
    const char *w;
    rft__x_rows rows;        /* X of a tile kernel */
    rft__y_rows y;
    int64_t panels;          /* of one batch */
    int64_t panel_stride;    /* of a packed W, bytes */
    char *workspace;
    size_t thread_bytes;
    float *partial;          /* sums of the k parts, [kk][batch * panels][m][16]; NULL without a k split */
    bool x_in_place;
} job;

/* A thread's share of the workspace. */
typedef struct buffers {
    rft__x_held x; /* mc rows */
    char *w;       /* one strip */
    float *acc;    /* sums: one tile, or mc rows x nc panels */
} buffers;

static buffers buffers_of(const job *j, int thread) {
    const rft__choice *c = j->choice;
    char *base = j->workspace + (size_t)thread * j->thread_bytes;
    char *w = base + rft__x_bytes(c, j->pick, j->args->m);
    return (buffers){{.rows = base}, w, (float *)(void *)(w + rft__w_bytes(c, j->pick))};
}

/* ---- W ---- */

typedef struct strip {
    rft__panels panels;
    rft__w_lines lines; /* where w is read in place */
    int64_t k;          /* of a packed strip that comes next: where it begins */
} strip;

static rft__w_place place_of(const job *j, int64_t b) {
    const int64_t size = (int64_t)rft__type_size(j->choice->p.w.elem);
    return (rft__w_place){j->w + b * j->w_batch * size, (j->w_k == 1 ? j->w_row : j->w_k) * size};
}

static void pack_strip(const job *j, int64_t b, int64_t panel, int panels, int64_t k0, int64_t kc, char *dst,
                       int64_t dst_stride) {
    const rft__matrix *w = &j->choice->p.w;
    const int64_t size = (int64_t)rft__type_size(w->elem);
    for (int p = 0; p < panels; p++) {
        int64_t first = 0, step = 0;
        int columns = 0;
        rft__cpu_panel_rows(w, panel + p, &first, &step, &columns);
        const char *source = j->w + (b * j->w_batch + first * j->w_row + k0 * j->w_k) * size;
        j->pack_w(source, step * j->w_row, j->w_k, columns, RFT__PANEL, kc, dst + p * dst_stride);
    }
}

static const char *packed_panel(const job *j, int64_t b, int64_t panel, int64_t k0) {
    const int64_t matrix = j->choice->p.w.batch == 1 ? 0 : b; /* one W may serve every batch */
    const int64_t before = j->packing != NULL ? rft__packing_bytes(j->packing, k0)
                                              : rft__panel_bytes(j->choice->p.w.elem, RFT__PANEL, k0);
    return j->w + (matrix * j->panels + panel) * j->panel_stride + before;
}

static void widen_panel(const job *j, const char *panel, int64_t kc, float *dst) {
    if (j->packing != NULL) {
        j->choice->device->ops.widen(j->packing, panel, kc, dst);
    } else {
        j->decode(panel, kc, dst);
    }
}

static strip strip_of(const job *j, const buffers *buf, int64_t b, int64_t panel, int panels, int64_t k0, int64_t kc) {
    if (j->pick->source == RFT__W_PANELS) {
        return (strip){.panels = {packed_panel(j, b, panel, k0), (size_t)j->panel_stride}};
    }
    if (j->pick->source == RFT__W_IN_PLACE) {
        return (strip){.lines = rft__in_place_lines(&j->choice->p.w, place_of(j, b), panel, k0)};
    }
    const bool unpacks = j->pick->source == RFT__W_UNPACK;
    const int64_t stride = unpacks ? rft__strip_bytes(j->packing, kc) : rft__panel_bytes(j->pick->kernel->w, RFT__PANEL, kc);
    if (j->pick->source == RFT__W_PACK) {
        pack_strip(j, b, panel, panels, k0, kc, buf->w, stride);
    } else if (unpacks) {
        for (int p = 0; p < panels; p++) {
            j->choice->device->ops.unpack(j->packing, packed_panel(j, b, panel + p, k0), kc, buf->w + p * stride);
        }
    } else {
        for (int p = 0; p < panels; p++) {
            widen_panel(j, packed_panel(j, b, panel + p, k0), kc, (float *)(void *)(buf->w + p * stride));
        }
    }
    return (strip){.panels = {buf->w, (size_t)stride}};
}

/* ---- the loops ---- */

/* What one thread works on inside its part: rows of X that are packed, and the k it sums. */
typedef struct block {
    const job *j;
    buffers *buf;
    const char *x;      /* packed tiles, or rows */
    rft__x8_rows x8;    /* rows in 8 bits */
    rft__tiling tiles;
    int64_t b, row0;    /* batch and first row */
    int64_t k0, k1;
    float *partial;     /* of this k part, or NULL */
} block;

static void finish_tile(const block *bl, float *acc, int rows, int panels, int64_t row, int64_t panel) {
    const rft__choice *c = bl->j->choice;
    const rft__y_rows *y = &bl->j->y;
    const rft__epi_tile tile = {.acc = acc,
                                .rows = rows,
                                .segments = panels,
                                .b = bl->b,
                                .m = row,
                                .panel = panel,
                                .glu_interleaved = c->p.w.glu == RFT__GLU_INTERLEAVED,
                                .epi = &c->p.epi,
                                .operands = bl->j->args->operand,
                                .y = (char *)y->p + bl->b * y->batch * (int64_t)rft__type_size(y->type),
                                .ldy = y->row,
                                .y_type = y->type};
    c->device->ops.epilogue(&tile);
}

/* Sums of a k part: [panel][row][16]. */
static void keep_partial(const block *bl, const float *acc, int64_t rows, int panels, int64_t row, int64_t panel) {
    const int64_t m = bl->j->args->m;
    for (int p = 0; p < panels; p++) {
        float *dst = bl->partial + ((bl->b * bl->j->panels + panel + p) * m + row) * RFT__PANEL;
        for (int64_t r = 0; r < rows; r++) {
            for (int i = 0; i < RFT__PANEL; i++) {
                dst[r * RFT__PANEL + i] = acc[(r * panels + p) * RFT__PANEL + i];
            }
        }
    }
}

/* Sums of words become numbers. */
static void settle_tile(const block *bl, float *acc, int64_t rows, int panels, int64_t first, int64_t panel) {
    const job *j = bl->j;
    const int64_t last = (bl->k1 - bl->k0 - 1) / RFT__CHUNK;
    const rft__x8 *x = bl->x8.x + last * bl->x8.stride + first, *before = bl->x8.before != NULL ? bl->x8.before + first : NULL;
    for (int p = 0; p < panels; p++) {
        const char *head = packed_panel(j, bl->b, panel + p, bl->k0 + last * RFT__CHUNK);
        j->choice->device->ops.settle(j->packing, head, (int)rows, x, before, acc + p * RFT__PANEL, panels * RFT__PANEL);
    }
}

/* The sums of a tile are complete, of this part's k at least. */
static void end_tile(const block *bl, float *acc, int64_t rows, int panels, int64_t first, int64_t panel) {
    if (bl->j->pick->kernel->x == RFT_I8 && bl->j->packing->one_sum && bl->k1 > bl->k0) {
        settle_tile(bl, acc, rows, panels, first, panel);
    }
    if (bl->partial != NULL) {
        keep_partial(bl, acc, rows, panels, bl->row0 + first, panel);
    } else {
        finish_tile(bl, acc, (int)rows, panels, bl->row0 + first, panel);
    }
}

/* Row tile t over kc of packed panels. */
static void multiply_panels(const block *bl, const strip *s, int64_t t, int panels, int64_t k, int64_t kc, float *acc,
                            const strip *next) {
    const job *j = bl->j;
    const rft__cpu_kernel *kernel = j->pick->kernel;
    const bool in_rows = kernel->form == RFT__FORM_TILES;
    const int rows = (int)rft__tile_height(&bl->tiles, t);
    const int64_t stride = in_rows ? j->rows.stride : rft__panel_bytes(kernel->x, 1, rft__round_up(bl->k1 - bl->k0, kernel->kr));
    const char *x = bl->x + stride * rft__tile_start(&bl->tiles, t);
    const rft__tile_job tile = {.kernel = kernel,
                                .rows = rows,
                                .panels = panels,
                                .k = in_rows ? kc : rft__round_up(kc, kernel->kr),
                                .x = x + rft__panel_bytes(kernel->x, in_rows ? 1 : rows, k - bl->k0),
                                .x_stride = stride,
                                .w = s->panels,
                                .acc = acc,
                                .accumulate = k > bl->k0};
    if (j->pick->source == RFT__W_PANELS && bl->tiles.count == 1) {
        rft__tile_stream(&tile, next->panels);
    } else {
        const int64_t packed = j->packing != NULL ? rft__packing_bytes(j->packing, kc)
                                                  : rft__panel_bytes(j->choice->p.w.elem, RFT__PANEL, tile.k);
        rft__tile_share(&tile, next->panels, packed, t, bl->tiles.count);
    }
}

/* The same of panels of codes: few rows beside several panels at once, else one panel after the other. */
static void multiply_codes(const block *bl, const strip *s, int64_t t, int panels, int64_t k, int64_t kc, float *acc) {
    const job *j = bl->j;
    const rft__cpu_kernel *kernel = j->pick->kernel;
    const int rows = (int)rft__tile_height(&bl->tiles, t), stride = panels * RFT__PANEL;
    const char *x = bl->x + rft__panel_bytes(kernel->x, 1, bl->k1 - bl->k0) * rft__tile_start(&bl->tiles, t) +
                    rft__panel_bytes(kernel->x, rows, k - bl->k0);
    const bool wide = panels == kernel->codes->panels && kernel->codes->wide[rows - 1] != NULL;
    rft__codes_fn *const multiply = wide ? kernel->codes->wide[rows - 1] : kernel->codes->one[rows - 1];
    for (int p = 0; p < panels; p += wide ? panels : 1) {
        multiply(j->packing, kc, x, s->panels.w + (size_t)p * s->panels.stride, s->panels.stride, acc + p * RFT__PANEL, stride,
                 k > bl->k0);
    }
}

/* The same in 8 bits. */
static void multiply_codes8(const block *bl, const strip *s, int64_t t, int panels, int64_t k, int64_t kc, float *acc,
                            const strip *next) {
    const job *j = bl->j;
    const int rows = (int)rft__tile_height(&bl->tiles, t);
    const rft__x8 *x = bl->x8.x + (k - bl->k0) / RFT__CHUNK * bl->x8.stride + rft__tile_start(&bl->tiles, t);
    const rft__codes8_job tile = {j->pick->kernel, j->packing, rows, panels, kc, x, bl->x8.stride, s->panels, acc, k > bl->k0};
    const rft__x8 *x_ahead = next->k > k && next->k < bl->k1 ? x + kc / RFT__CHUNK * bl->x8.stride : NULL;
    rft__codes8_multiply(&tile, next->panels, x_ahead, t, bl->tiles.count);
}

/* The same of rows of W; one of the tiles has the time to fetch the next strip. */
static void multiply_rows(const block *bl, const strip *s, int64_t t, int panels, int64_t k, int64_t kc, float *acc,
                          const strip *next) {
    const rft__cpu_kernel *kernel = bl->j->pick->kernel;
    const int64_t stride = rft__x_rows_stride(kernel->x, bl->j->choice->p.w.k);
    const char *x = bl->x + rft__tile_start(&bl->tiles, t) * stride + rft__panel_bytes(kernel->x, 1, k - bl->k0);
    const rft__w_lines *ahead = t == bl->tiles.count - 1 ? &next->lines : &s->lines;
    kernel->direct->tile[panels - 1][rft__tile_height(&bl->tiles, t) - 1](kc, x, stride, &s->lines, ahead, acc, k > bl->k0);
}

/* One strip over kc: every row tile. sums: the strip's partial sums when K takes several passes, else NULL. next: what the next
 * strip reads, fetched while the tiles work. */
static void run_strip(const block *bl, int64_t panel, int panels, int64_t k, int64_t kc, float *sums, const strip *next) {
    const strip s = strip_of(bl->j, bl->buf, bl->b, panel, panels, k, kc);
    for (int64_t t = 0; t < bl->tiles.count; t++) {
        const int64_t first = rft__tile_start(&bl->tiles, t), rows = rft__tile_height(&bl->tiles, t);
        float *acc = sums != NULL ? sums + first * panels * RFT__PANEL : bl->buf->acc;
        if (bl->j->pick->kernel->form == RFT__FORM_ROWS) {
            multiply_rows(bl, &s, t, panels, k, kc, acc, next);
        } else if (bl->j->pick->kernel->x == RFT_I8) {
            multiply_codes8(bl, &s, t, panels, k, kc, acc, next);
        } else if (bl->j->pick->kernel->form == RFT__FORM_CODES) {
            multiply_codes(bl, &s, t, panels, k, kc, acc);
        } else {
            multiply_panels(bl, &s, t, panels, k, kc, acc, next);
        }
        if (k + kc == bl->k1) {
            end_tile(bl, acc, rows, panels, first, panel);
        }
    }
}

/* W that the next strip reads; where W is packed at run time there is none, and the buffer stands in. */
static strip strip_ahead(const block *bl, int64_t panel, int64_t k) {
    const job *j = bl->j;
    switch (j->pick->source) {
    case RFT__W_PACK:
        return (strip){.panels = {bl->buf->w, 0}};
    case RFT__W_IN_PLACE:
        return (strip){.lines = rft__in_place_lines(&j->choice->p.w, place_of(j, bl->b), panel, k)};
    default:
        return (strip){.panels = {packed_panel(j, bl->b, panel, k), (size_t)j->panel_stride}, .k = k};
    }
}

/* kc of k over the strips of a chunk. */
static void pass_strips(const block *bl, int64_t panel0, int64_t panel1, int64_t k, int64_t kc) {
    const int width = bl->j->pick->panels;
    const bool one_pass = bl->k1 - bl->k0 <= bl->j->pick->kc;
    for (int64_t panel = panel0; panel < panel1; panel += width) {
        const int panels = (int)rft__min(width, panel1 - panel);
        const bool end = panel + panels >= panel1;
        const strip next = strip_ahead(bl, end ? panel0 : panel + panels, end ? k + kc : k);
        float *sums = one_pass ? NULL : bl->buf->acc + (panel - panel0) * RFT__PANEL * bl->tiles.rows;
        run_strip(bl, panel, panels, k, kc, sums, &next);
    }
}

/* Every row tile of a strip of columns. */
static void run_columns(const block *bl, int64_t panel, int panels, int64_t k, int64_t kc, const rft__w_lines *w,
                        const rft__w_lines *ahead, float *acc) {
    const rft__direct_family *family = bl->j->pick->kernel->direct;
    for (int64_t t = 0, first = 0; t < bl->tiles.count; t++) {
        const int64_t rows = rft__tile_height(&bl->tiles, t);
        const float *x = (const float *)(const void *)bl->x + (bl->k1 - bl->k0) * first + rows * (k - bl->k0);
        family->tile[panels - 1][rows - 1](kc, x, 0, w, ahead, acc, k > bl->k0);
        if (k + kc == bl->k1) {
            rft__in_place_settle(&bl->j->choice->p.w, panel, panels, rows, acc);
            end_tile(bl, acc, rows, panels, first, panel);
        }
        first += rows;
        acc += rows * panels * RFT__PANEL;
    }
}

/* The same for kernels of columns. Calls are many and short here, hence pointers that move on. The kc rows of W that come next
 * are fetched meanwhile in runs along the rows: each strip fetches what kc strips of one row hold. */
static void pass_columns(const block *bl, int64_t panel0, int64_t panel1, int64_t k, int64_t kc) {
    const rft__matrix *w = &bl->j->choice->p.w;
    const rft__w_place at = place_of(bl->j, bl->b);
    const int width = bl->j->pick->panels;
    const int64_t step = rft__in_place_step(w, width), strips = rft__ceil_div(panel1 - panel0, width);
    const bool runs = strips >= kc; /* else rows are too short */
    rft__w_lines lines = rft__in_place_lines(w, at, panel0, k), ahead = rft__in_place_lines(w, at, panel0, k + kc);
    ahead.stride = runs ? step : at.stride;
    float *acc = bl->buf->acc;
    int64_t fetched = 0; /* strips of the row that `ahead` is in */
    for (int64_t panel = panel0; panel < panel1; panel += width) {
        const int panels = (int)rft__min(width, panel1 - panel);
        if (panel + panels == bl->j->panels) {
            lines = rft__in_place_lines(w, at, panel, k);
        }
        run_columns(bl, panel, panels, k, kc, &lines, &ahead, acc);
        acc += bl->tiles.rows * panels * RFT__PANEL;
        rft__in_place_move(&lines, step);
        fetched += runs ? kc : 1;
        const bool next_row = fetched >= strips;
        rft__in_place_move(&ahead, (runs ? kc : 1) * step + (next_row ? at.stride - strips * step : 0));
        fetched -= next_row ? strips : 0;
    }
}

/* A chunk of nc panels over all of the block's k. */
static void run_chunk(const block *bl, int64_t panel0, int64_t panel1) {
    const rft__cpu_pick *pick = bl->j->pick;
    int64_t k = bl->k0;
    do {
        const int64_t kc = rft__min(pick->kc, bl->k1 - k);
        if (pick->kernel->form == RFT__FORM_COLUMNS) {
            pass_columns(bl, panel0, panel1, k, kc);
        } else {
            pass_strips(bl, panel0, panel1, k, kc);
        }
        k += kc;
    } while (k < bl->k1);
}

static void run_block(block *bl, int64_t panel0, int64_t panel1) {
    const job *j = bl->j;
    if (j->pick->kernel->x == RFT_I8) {
        bl->x8 = rft__x8_rows_of(&j->rows, &j->x_source, j->args->m, bl->b, bl->row0, bl->tiles.rows, bl->k0, bl->k1,
                                 bl->buf->x.rows);
    } else if (j->rows.x != NULL) {
        bl->x = j->rows.x + bl->b * j->rows.batch + bl->row0 * j->rows.stride + rft__panel_bytes(j->pick->kernel->x, 1, bl->k0);
    } else if (j->x_in_place) {
        bl->x = rft__x_at(&j->x_source, bl->b, bl->row0, bl->k0);
    } else {
        rft__x_hold(&bl->buf->x, &j->x_source, j->pick->kernel, j->choice->p.w.k, bl->b, bl->row0, &bl->tiles, bl->k0,
                    bl->k1 - bl->k0);
        bl->x = bl->buf->x.rows;
    }
    for (int64_t panel = panel0; panel < panel1; panel += j->pick->nc) {
        run_chunk(bl, panel, rft__min(panel + j->pick->nc, panel1));
    }
}

/* Rows row0..row1 and panels panel0..panel1 of batch b. */
static void run_matrix(const job *j, buffers *buf, const rft__part *part, int64_t b, int64_t panel0, int64_t panel1,
                       float *partial) {
    /* W is streamed once for each block of at most mc rows. */
    const rft__tiling blocks = rft__tile_rows(part->row1 - part->row0, j->pick->mc);
    for (int64_t i = 0; i < blocks.count; i++) {
        block bl = {.j = j,
                    .buf = buf,
                    .tiles = rft__tile_rows(rft__tile_height(&blocks, i), j->pick->kernel->mr),
                    .b = b,
                    .row0 = part->row0 + rft__tile_start(&blocks, i),
                    .k0 = part->k0,
                    .k1 = part->k1,
                    .partial = partial};
        run_block(&bl, panel0, panel1);
    }
}

static void run_share(const job *j, buffers *buf, int share) {
    const rft__part part = rft__share(&j->shares, share);
    const int unit = rft__cpu_unit(&j->choice->p.w);
    const int64_t panel1 = part.unit1 * unit;
    float *partial = j->partial != NULL ? j->partial + part.kk * rft__partial_sums(j->choice, j->args->m) : NULL;
    for (int64_t panel = part.unit0 * unit; panel < panel1;) {
        const int64_t b = panel / j->panels, end = rft__min(panel1, (b + 1) * j->panels);
        run_matrix(j, buf, &part, b, panel - b * j->panels, end - b * j->panels, partial);
        panel = end;
    }
}

/* ---- K split: the second hand-off adds the parts in ascending k and finishes the tiles ---- */

static void reduce_panels(const job *j, const buffers *buf, int64_t b, int64_t panel, int panels) {
    const int64_t m = j->args->m, all = rft__partial_sums(j->choice, m);
    const int step = j->pick->kernel->mr;
    const block bl = {.j = j, .b = b};
    for (int64_t row = 0; row < m; row += step) {
        const int rows = (int)rft__min(step, m - row);
        for (int p = 0; p < panels; p++) {
            const float *part = j->partial + ((b * j->panels + panel + p) * m + row) * RFT__PANEL;
            for (int i = 0; i < rows * RFT__PANEL; i++) {
                float sum = part[i];
                for (int kk = 1; kk < j->grid.kk; kk++) {
                    sum += part[kk * all + i];
                }
                buf->acc[(i / RFT__PANEL * panels + p) * RFT__PANEL + i % RFT__PANEL] = sum;
            }
        }
        finish_tile(&bl, buf->acc, rows, panels, row, panel);
    }
}

static void reduce_part(const job *j, int i) {
    const int unit = rft__cpu_unit(&j->choice->p.w);
    const rft__grid g = rft__grid_of_units(j->grid.units, rft__grid_parts(&j->grid));
    const rft__part part = rft__grid_part(&g, i);
    const buffers buf = buffers_of(j, i);
    for (int64_t u = part.unit0; u < part.unit1; u++) {
        const int64_t panel = u * unit;
        reduce_panels(j, &buf, panel / j->panels, panel % j->panels, unit);
    }
}

/* ---- entry ---- */

typedef enum phase {
    COPY_X, /* that all threads then read */
    MULTIPLY,
    REDUCE, /* the k parts */
    QUANTISE, /* complete rows of y */
    PHASES
} phase;

typedef struct job_list {
    job jobs[RFT_MAX_LIST];
    uint32_t count;
    phase phase;
    _Alignas(128) atomic_int taken[RFT_MAX_LIST]; /* apart from what all threads read */
} job_list;

static bool has_phase(const job *j, phase p) {
    return p == MULTIPLY || (p == COPY_X ? j->rows.copy != NULL : p == REDUCE ? j->partial != NULL : j->y.quantise);
}

static int next_share(const job *j) {
    const bool left = j->shares.cut != RFT__CUT_NONE;
    return left ? rft__grid_parts(&j->grid) + atomic_fetch_add_explicit(j->taken, 1, memory_order_relaxed) : j->shares.count;
}

static void multiply_part(const job *j, int i) {
    const rft__cpu_kernel *kernel = j->pick->kernel;
    buffers buf = buffers_of(j, i);
    for (int share = i; share < j->shares.count; share = next_share(j)) {
        run_share(j, &buf, share);
    }
    if (kernel->tiles != NULL) {
        kernel->tiles->leave();
    }
}

static void run_item(void *arg, int i) {
    const job_list *list = arg;
    for (uint32_t l = 0; l < list->count; l++) {
        const job *j = list->jobs + l;
        const int parts = rft__grid_parts(&j->grid);
        if (i >= parts || !has_phase(j, list->phase)) {
            continue;
        }
        if (list->phase == COPY_X) {
            rft__x_rows_copy(j->choice, j->pick, &j->x_source, j->args->m, &j->rows, i, parts);
        } else if (list->phase == MULTIPLY) {
            multiply_part(j, i);
        } else if (list->phase == REDUCE) {
            reduce_part(j, i);
        } else {
            rft__y_rows_quantise(j->choice, j->args, &j->y, i, parts);
        }
    }
}

static const void *w_of(const rft_linear_args *args, const rft__cpu_pick *pick) {
    const bool packed = pick->source == RFT__W_PANELS || pick->source == RFT__W_DECODE || pick->source == RFT__W_UNPACK;
    return packed && args->weight != NULL ? args->weight->data : args->w;
}

/* X and W may be NULL where alpha or K is 0: the loops walk over the workspace instead, in steps of 0, and read nothing. */
static void read_nothing(job *j) {
    j->grid.k = 0;
    j->grid.kk = 1;
    j->x_source.x = j->w = j->workspace;
    j->rows = (rft__x_rows){.x = j->workspace};
    j->x_source.row = j->x_source.k = j->x_source.batch = 0;
    j->x_source.sorted = NULL;
    j->w_row = j->w_k = j->w_batch = j->panel_stride = 0;
}

/* A strip of codes takes as long to unpack as some 40 rows of its product by tiles, and other panels a row and a half to read or
 * widen. */
static rft__shares shares_of(const job *j) {
    enum { READ = 12, UNPACK = 8 * 40 };
    const int unit = rft__cpu_unit(&j->choice->p.w);
    const rft__blocking b = {.rows = j->pick->mc,
                             .unit_step = rft__max(1, j->pick->panels / unit),
                             .columns = unit * RFT__PANEL,
                             .reread = j->pick->source == RFT__W_UNPACK ? UNPACK : READ};
    return rft__shares_of(&j->grid, &b);
}

static job make_job(const rft__run *run) {
    const rft__choice *c = run->choice;
    const rft_linear_args *args = run->args;
    const rft__problem *p = &c->p;
    const rft__cpu_pick *pick = rft__cpu_pick_at(c, args->m);
    const rft__isa_ops *ops = &c->device->ops;
    const bool w_rows = p->w.order == RFT_K_CONTIGUOUS;
    job j = {.choice = c,
             .pick = pick,
             .args = args,
             .grid = rft__cpu_grid(c, pick, args->m),
             .x_source = rft__x_source_of(c, pick->kernel, args),
             .packing = c->low_bit ? &c->packing : NULL,
             .w_row = w_rows ? args->ldw : 1,
             .w_k = w_rows ? 1 : args->ldw,
             .w_batch = args->w_batch_stride,
             .w = w_of(args, pick),
             .panels = rft__cpu_panels(&p->w),
             .panel_stride = c->panel_stride,
             .workspace = args->workspace,
             .thread_bytes = (size_t)rft__thread_bytes(c, pick, args->m)};
    char *behind = j.workspace + (size_t)c->device->threads * j.thread_bytes;
    if (!c->low_bit) {
        j.pack_w = pick->kernel->w == RFT_F32 ? ops->to_f32[p->w.elem] : ops->to_same[p->w.elem];
        j.decode = ops->decode[p->w.elem];
    }
    char *const rows = behind + rft__partial_bytes(c, &j.grid, args->m);
    j.rows = rft__x_rows_of(c, pick, args, rows);
    j.y = rft__y_rows_of(c, args, rows + rft__x_rows_bytes(c, pick, args->m));
    j.x_in_place = args->m == 1 && j.x_source.k == 1 && pick->kernel->x == p->x && p->w.k % pick->kernel->kr == 0 &&
                   !j.x_source.scaled && !p->w.sorted;
    if (p->alpha == 0.0f || p->w.k == 0) {
        read_nothing(&j);
    }
    j.shares = shares_of(&j);
    if (j.grid.kk > 1) {
        j.partial = (float *)(void *)behind;
    }
    return j;
}

rft_status rft__cpu_run(rft__device *device, const rft__run *runs, uint32_t count, rft_error *err) {
    (void)err;
    job_list list;
    list.count = count;
    int items = 1;
    bool wanted[PHASES] = {false};
    for (uint32_t i = 0; i < count; i++) {
        list.jobs[i] = make_job(runs + i);
        list.jobs[i].taken = list.taken + i;
        atomic_init(list.taken + i, 0);
        const int parts = rft__grid_parts(&list.jobs[i].grid);
        items = parts > items ? parts : items;
        for (phase p = COPY_X; p < PHASES; p++) {
            wanted[p] = wanted[p] || has_phase(list.jobs + i, p);
        }
    }
    for (list.phase = COPY_X; list.phase < PHASES; list.phase++) {
        if (wanted[list.phase]) {
            rft__pool_run(device->pool, items, run_item, &list);
        }
    }
    return RFT_OK;
}
