/* SPDX-License-Identifier: Apache-2.0
 *
 * packing.c - panels of codes: their geometry from a description, and their bytes from a stored W. See packing.h.
 * Called by cpu_pack.c on the thread that will read the panel.
 */
#include "cpu/cpu_choice.h"
#include "format/decode/decode_scalar.h"
#include "format/format.h"

#include <string.h>

/* ---- geometry ---- */

/* The largest step that cuts at every boundary of groups; 256 where a chunk has one scale. */
static int step_of(const rft__matrix *w, const rft__quant *q) {
    const int64_t group = q->group != 0 ? q->group : w->group_k >= w->k ? RFT__CHUNK : w->group_k;
    int step = RFT__CHUNK;
    while (step > RFT__SLICE && group % step != 0) {
        step /= 2;
    }
    return step;
}

static rft__scale_kind kind_of(const rft__matrix *w, const rft__quant *q) {
    return q->group != 0          ? q->scale
           : w->scale == RFT_F16  ? RFT__SCALE_F16
           : w->scale == RFT_BF16 ? RFT__SCALE_BF16
           : w->scale == RFT_E8M0 ? RFT__SCALE_E8M0
           : w->scale == RFT_E4M3 ? (rft__scale_kind)(RFT__SCALE_E4M3 + w->global)
                                  : RFT__SCALE_F32;
}

/* Signed values of a table become unsigned bytes. */
static void set_table(rft__packing *p, const signed char *table) {
    int least = 0;
    for (int i = 0; i < 16; i++) {
        least = table[i] < least ? table[i] : least;
    }
    p->has_table = true;
    p->i8_bias = -least;
    for (int i = 0; i < 16; i++) {
        p->i8_table[i] = (unsigned char)(table[i] - least);
        p->i8_wide = p->i8_wide || p->i8_table[i] > 127;
    }
}

rft__packing rft__packing_of(const rft__matrix *w) {
    const rft__quant *q = rft__quant_find(w->elem);
    rft__packing p = {.type = w->elem,
                      .bits = q->bits,
                      .scale = kind_of(w, q),
                      .offset = w->zero != 0 ? RFT__OFFSET_ZERO : q->offset,
                      .step = step_of(w, q),
                      .bias = q->bias,
                      .i8_exact = q->value == NULL,
                      .i8_wide = q->bits == 8,
                      .i8_bias = w->zero != 0 ? 0 : q->bias,
                      .i8_factor = q->factor};
    while (RFT__SLICE << p.step_shift < p.step) {
        p.step_shift++;
    }
    p.x_group = (int)rft__max(RFT__BLOCK, rft__min(p.step, RFT__MOST_SUM));
    for (unsigned i = 0; i < 16 && p.bits == 4; i++) {
        p.i8_table[i] = (unsigned char)i;
        p.lut[i] = p.offset == RFT__OFFSET_ZERO ? (float)(int)i : rft__quant_value(q, i);
    }
    if (q->table != NULL) {
        set_table(&p, q->table);
    }
    if (p.offset == RFT__OFFSET_FLOAT) {
        p.f8 = rft__f8_of(p.type == RFT_E4M3);
    }
    return p;
}

int64_t rft__cpu_panel_bytes(const rft__matrix *w) {
    if (!rft__matrix_is_low_bit(w)) {
        return rft__panel_bytes(w->elem, RFT__PANEL, w->k);
    }
    const rft__packing p = rft__packing_of(w);
    return rft__packing_bytes(&p, w->k);
}

int rft__panel_granule(const rft__matrix *w) {
    return rft__matrix_is_low_bit(w) ? RFT__CHUNK : rft__panel_kr(w->elem);
}

/* ---- bytes ---- */

typedef struct column { /* of one chunk, as stored */
    const rft__matrix *w;
    const rft__stored_w *from;
    const rft__quant *q;
    const rft__packing *p;
    const int32_t *order; /* of k, or NULL */
    int64_t b, n, k0, k; /* batch and row of W; first k and how many */
    int j;               /* where it stands in the panel */
} column;

static void put_u16(char *p, unsigned value) {
    p[0] = (char)(value & 255);
    p[1] = (char)(value >> 8);
}

/* Code of k in a block of 32, into its planes. */
static void put_code(int bits, unsigned char *block, int j, int k, unsigned code) {
    const int t = k / 4, byte = 4 * j + k % 4;
    if (bits == 8) {
        block[64 * t + byte] = (unsigned char)code;
        return;
    }
    if (bits >= 4) {
        block[64 * (t / 2) + byte] |= (unsigned char)((code & 15) << 4 * (t % 2));
        block += 256;
        code >>= 4;
    }
    if (bits != 4 && bits != 5) {
        block[64 * (t / 4) + byte] |= (unsigned char)((code & 3) << 2 * (t % 4));
        block += 128;
        code >>= 2;
    }
    if (bits % 2 != 0) {
        block[byte] |= (unsigned char)((code & 1) << t);
    }
}

/* 32 codes lie in one stored block, or side by side where a block has less. */
static void put_codes(const column *c, char *codes) {
    const int64_t elements = rft__format_find(c->w->elem)->block_elements;
    for (int64_t i = 0; i < c->k; i += RFT__BLOCK, codes += rft__packing_block_bytes(c->p)) {
        const unsigned char *from = rft__stored_block(c->w, c->from, c->b, c->n, c->k0 + i);
        unsigned at = (unsigned)((c->k0 + i) % elements);
        const int n = (int)rft__min(RFT__BLOCK, c->k - i);
        for (int k = 0; k < n; k++, at++) {
            if (c->order != NULL) {
                from = rft__stored_block(c->w, c->from, c->b, c->n, c->order[c->k0 + i + k]);
                at = (unsigned)(c->order[c->k0 + i + k] % elements);
            }
            put_code(c->p->bits, (unsigned char *)codes, c->j, k, c->q->code(from, at));
        }
    }
}

/* Where a scale and what goes with it lie in a head that has n of each. */
static void put_scale(const column *c, char *head, int64_t n, int64_t i, const unsigned char *scale,
                      const unsigned char *minimum) {
    const int64_t size = rft__packing_scale_bytes(c->p->scale), at = (i * RFT__COLUMNS + c->j) * size;
    memcpy(head + at, scale, (size_t)size);
    if (c->p->scale == RFT__SCALE_UE4M3) { /* GGUF reads no sign, and the code of NaN as 0 */
        head[at] = (char)((*scale & 127) == 127 ? 0 : *scale & 127);
    }
    if (minimum != NULL) {
        memcpy(head + n * RFT__COLUMNS * size + at, minimum, (size_t)size);
    }
}

/* Scales that lie apart from the codes. */
static void put_apart(const column *c, char *head, int64_t n, int64_t i) {
    if (rft__packing_has_global(c->p->scale)) {
        memcpy(head + 4 * c->j, c->from->global + c->b, 4);
        head += 4 * RFT__COLUMNS;
    }
    const rft__format *const f = rft__format_find(c->w->scale);
    const int64_t g = (c->k0 + i * c->p->step) / c->w->group_k, columns = rft__ceil_div(c->w->k, c->w->group_k);
    const int64_t row = c->b * rft__ceil_div(c->w->n, c->w->group_n) + c->n / c->w->group_n;
    put_scale(c, head, n, i, (const unsigned char *)c->from->scale + (row * columns + g) * f->block_bytes, NULL);
    if (c->p->offset == RFT__OFFSET_ZERO) {
        const int zero = c->p->bias + rft__stored_zero(c->w, c->from, c->b, c->n, g);
        const int64_t at = n * RFT__COLUMNS * rft__packing_scale_bytes(c->p->scale) + 2 * (i * RFT__COLUMNS + c->j);
        put_u16(head + at, (unsigned)zero & 0xffff);
    }
}

/* The f16 of a block, and a byte for each of its groups. */
static void put_super(const column *c, char *head, int64_t n, int64_t i, const unsigned char *block, unsigned group) {
    const bool minimum = c->p->offset == RFT__OFFSET_MINIMUM;
    char *parts = head + (minimum ? 4 : 2) * RFT__COLUMNS;
    memcpy(head + 2 * c->j, block + c->q->scale_at, 2);
    parts[i * RFT__COLUMNS + c->j] = (char)c->q->part(block, group);
    if (minimum) {
        memcpy(head + 2 * RFT__COLUMNS + 2 * c->j, block + c->q->minimum_at, 2);
        parts[(n + i) * RFT__COLUMNS + c->j] = (char)c->q->minimum_part(block, group);
    }
}

static void put_scales(const column *c, char *head) {
    const int64_t n = rft__packing_scales(c->p, c->k), elements = rft__format_find(c->w->elem)->block_elements;
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = c->k0 + i * c->p->step;
        if (c->q->group == 0) {
            put_apart(c, head, n, i);
            continue;
        }
        const unsigned char *block = rft__stored_block(c->w, c->from, c->b, c->n, k);
        const unsigned group = (unsigned)(k % elements) / (unsigned)c->q->group;
        if (c->p->scale == RFT__SCALE_SUPER) {
            put_super(c, head, n, i, block, group);
        } else {
            const unsigned char *minimum = c->p->offset == RFT__OFFSET_MINIMUM ? block + c->q->minimum_at : NULL;
            put_scale(c, head, n, i, block + c->q->scale_at + group * rft__packing_scale_bytes(c->p->scale), minimum);
        }
    }
}

void rft__cpu_pack_codes(const rft__matrix *w, const rft__stored_w *from, const int32_t *order, int64_t b, int64_t first,
                         int64_t step, int columns, char *panel) {
    const rft__packing p = rft__packing_of(w);
    memset(panel, 0, (size_t)rft__packing_bytes(&p, w->k));
    for (int64_t k = 0; k < w->k; k += RFT__CHUNK) {
        char *head = panel + rft__packing_bytes(&p, k);
        column c = {.w = w, .from = from, .q = rft__quant_find(w->elem), .p = &p, .order = order, .b = b, .k0 = k};
        c.k = rft__min(RFT__CHUNK, w->k - k);
        for (c.j = 0; c.j < columns; c.j++) {
            c.n = first + c.j * step;
            put_scales(&c, head);
            put_codes(&c, head + rft__packing_head_bytes(&p, c.k));
        }
    }
}
