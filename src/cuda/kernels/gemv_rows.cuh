/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv_rows.cuh - gemv.cu for a W of K-contiguous rows: the walk of a warp over its units, the sums, their reduction.
 * Shared memory of a block: rings of all warps, their barriers, partial sums of the parts, twice, so that a unit's are read
 * while the next one's are written.
 */
#include "gemv_feed.cuh"

enum {
    PARTS = RFT_SPLIT,
    GROUPS = RFT_WARPS / PARTS,
    M2 = M <= 2 ? M : M <= 4 ? 4 : 8,
    SUMS = ROWS * M2,
    SPACING = LANES / SUMS, /* lanes that hold one sum when a warp is reduced, */
    END_SPACING = PARTS > 1 ? 1 : SPACING, /* and when the parts have met */
    OPERANDS_EARLY = M <= 4 && RFT_EPI_COUNT <= 4, /* the epilogue's, read before the sums: they stay in registers */
    X_BYTES = CHUNK * X_SIZE,
    X_AHEAD = IN_SHARED && LINES * M * X_BYTES <= (W_SIZE == 4 ? 128 : 112), /* where registers have room for two steps of x */
    /* blocks that registers leave room for: this kernel's and its successor's */
    RESIDENT = (RFT_HOPPER || !IN_SHARED) && (M <= 4 || !RFT_BATCHED) ? 2 : 1
};

typedef struct x_chunk {
    unsigned word[X_BYTES < 4 ? 1 : X_BYTES / 4];
} x_chunk;

typedef struct walk { /* of one warp; the same in all lanes */
    const rft__cuda_args *args;
    int part, group, m;          /* m: rows of x that exist */
    int first;                   /* chunk of this part; its steps a unit: */
    int steps;
    unit_index slot, slots, units;
} walk;

typedef struct place { /* of a unit */
    int batch, column;
} place;

RFT_FN place place_of(const walk *w, unit_index unit) {
    const unsigned per_batch = w->args->number[0], batch = RFT_BATCHED ? (unsigned)(unit / per_batch) : 0;
    const place p = {(int)batch, (int)(unit - (unit_index)batch * per_batch) * COLUMNS};
    return p;
}

/* Bytes from W to the first row that makes a column of y. */
RFT_FN long long w_offset(const walk *w, place p) {
    const long long row = (RFT_GLU == 2 ? 2 : 1) * (long long)p.column;
    return (row * w->args->ldw + (RFT_BATCHED ? p.batch * w->args->w_batch_stride : 0)) * W_SIZE;
}

/* ---- the cursor ---- */

RFT_FN void cursor_enter(const walk *w, cursor *c) {
    const place p = place_of(w, c->unit);
    c->at = (const char *)w->args->w + w_offset(w, p) + (long long)w->first * CHUNK_BYTES;
    c->chunk = w->first;
    c->step = 0;
    c->columns = columns_of(w->args) - p.column;
    RFT_ORIGIN_SET(c->origin, w->args, RFT_AT_W, p.batch);
}

RFT_FN void cursor_advance(const walk *w, cursor *c) {
    c->at += LINES * LINE_BYTES;
    c->chunk += STEP_CHUNKS;
    if (++c->step < w->steps) {
        return;
    }
    c->unit += w->slots;
    if (c->unit < w->units) {
        cursor_enter(w, c);
    }
}

/* Asks for the next step, if there is one, into a stage that was read. */
RFT_FN void refill(const walk *w, feed *f, int stage, cursor *c) {
    if (c->unit < w->units) {
        feed_issue(f, stage, c);
        cursor_advance(w, c);
    }
    feed_commit();
}

/* ---- x ---- */

RFT_FN x_chunk x_load(x_place p, int m, int chunk) {
    const char *const from = p.x + m * p.row + (long long)chunk * CHUNK * p.next;
    x_chunk c;
#if RFT_GEMV_X_VECTORS
    RFT_CHECK_AT(p.origin, from, X_BYTES);
    RFT_UNROLL
    for (int i = 0; i < X_BYTES / 16; i++) {
        const uint4 v = rft__load16(from + 16 * i);
        c.word[4 * i] = v.x, c.word[4 * i + 1] = v.y, c.word[4 * i + 2] = v.z, c.word[4 * i + 3] = v.w;
    }
    if (X_BYTES == 8) {
        const uint2 v = *(const uint2 *)from;
        c.word[0] = v.x, c.word[X_BYTES == 8] = v.y;
    }
#else
    RFT_UNROLL
    for (int i = 0; i < CHUNK; i++) {
        RFT_CHECK_AT(p.origin, from + i * p.next, X_SIZE);
        const unsigned bits = x_element(from + i * p.next);
        if (X_SIZE == 4 || i % 2 == 0) {
            c.word[i * X_SIZE / 4] = bits;
        } else {
            c.word[i / 2] |= bits << 16;
        }
    }
#endif
    return c;
}

/* ---- sums: of row r of the unit and row m of x at m * ROWS + r ---- */

RFT_FN float chunk_element(int type, const unsigned *word, int i) {
    return type == RFT_TYPE_F32 ? __uint_as_float(word[i])
           : i % 2              ? rft__widen_high(type, word[i / 2])
                                : rft__widen_low(type, word[i / 2]);
}

RFT_FN void multiply(const chunk *w, const x_chunk *x, float *sum) {
    RFT_UNROLL
    for (int i = 0; i < CHUNK; i++) {
        float wide[ROWS];
        RFT_UNROLL
        for (int r = 0; r < ROWS; r++) {
            wide[r] = chunk_element(RFT_W_TYPE, w[r].word, i);
        }
        RFT_UNROLL
        for (int m = 0; m < M; m++) {
            const float xv = chunk_element(RFT_X_TYPE, x[m].word, i);
            RFT_UNROLL
            for (int r = 0; r < ROWS; r++) {
                sum[m * ROWS + r] = __fmaf_rn(wide[r], xv, sum[m * ROWS + r]);
            }
        }
    }
}

typedef struct x_step {
    x_chunk chunk[LINES][M];
} x_step;

/* x of one step of the part; chunks beyond it stay as they are. */
RFT_FN void load_x(const walk *w, const feed *f, int step, x_place xp, x_step *x) {
    const int first = w->first + step * STEP_CHUNKS + f->lane;
    RFT_UNROLL
    for (int line = 0; line < LINES; line++) {
        RFT_UNROLL
        for (int m = 0; m < M; m++) {
            if (first + line * LANES < f->end && (RFT_M || m < w->m)) {
                x->chunk[line][m] = x_load(xp, m, first + line * LANES);
            }
        }
    }
}

/* One step: x is asked for first, its own or the next one's, so that both latencies pass together. */
RFT_FN void turn(const walk *w, const feed *f, int stage, int step, x_place xp, x_step *ahead, float *sum) {
    const int first = w->first + step * STEP_CHUNKS + f->lane;
    x_step x;
    if (X_AHEAD) {
        x = *ahead;
        load_x(w, f, step + 1, xp, ahead);
    } else {
        load_x(w, f, step, xp, &x);
    }
    feed_await(f, stage);
    RFT_UNROLL
    for (int line = 0; line < LINES; line++) {
        if (first + line * LANES < f->end) {
            chunk rows[ROWS];
            RFT_UNROLL
            for (int r = 0; r < ROWS; r++) {
                rows[r] = feed_take(f, stage, line, r);
            }
            multiply(rows, x.chunk[line], sum);
        }
    }
}

/* The elements behind the last whole chunk, one a lane; the last part's. */
RFT_FN void add_tail(const walk *w, const feed *f, place p, x_place xp, float *sum) {
    int k = w->args->k / CHUNK * CHUNK;
    asm volatile("" : "+r"(k)); /* or k takes a register through the loop of the sums */
    k += f->lane;
    const int columns = columns_of(w->args) - p.column;
    if (CHUNK == 1 || w->part != PARTS - 1 || k >= w->args->k) {
        return;
    }
    const char *const at = (const char *)w->args->w + w_offset(w, p) + (long long)k * W_SIZE;
    RFT_ORIGIN(origin)
    RFT_ORIGIN_SET(origin, w->args, RFT_AT_W, p.batch);
    for (int r = 0; r < ROWS; r++) {
        if (r % COLUMNS < columns) {
            const char *const from = at + row_offset(f, r);
            RFT_CHECK_AT(origin, from, W_SIZE);
            const float wide = rft__widen(RFT_W_TYPE, w_element(from));
            RFT_UNROLL
            for (int i = 0; i < SUMS; i++) {
                const bool mine = i % ROWS == r && i / ROWS < (RFT_M ? M : w->m);
                RFT_CHECK_AT(xp.origin, xp.x + i / ROWS * xp.row + k * xp.next, mine ? X_SIZE : 0);
                const float xv = mine ? rft__widen(RFT_X_TYPE, x_element(xp.x + i / ROWS * xp.row + k * xp.next)) : 0;
                sum[i] = mine ? __fmaf_rn(wide, xv, sum[i]) : sum[i];
            }
        }
    }
}

/* Lanes at a distance add their sums: while a lane has more than one, each keeps one half of them and gives the other. A pair
 * of lanes adds the same two numbers either way, so the shape of each sum is that of a plain butterfly. */
RFT_FN void fold(float *sum, int width, bool upper, int distance) {
    if (width < 2) {
        sum[0] += __shfl_xor_sync(~0u, sum[0], distance);
        return;
    }
    RFT_UNROLL
    for (int i = 0; i < width / 2; i++) {
        const float low = sum[i], high = sum[i + width / 2];
        sum[i] = (upper ? high : low) + __shfl_xor_sync(~0u, upper ? low : high, distance);
    }
}

/* Sums over the lanes: lane l gets sum l / SPACING. */
RFT_FN float reduce(int lane, float *sum) {
    fold(sum, SUMS, lane & 16, 16);
    fold(sum, SUMS / 2, lane & 8, 8);
    fold(sum, SUMS / 4, lane & 4, 4);
    fold(sum, SUMS / 8, lane & 2, 2);
    fold(sum, SUMS / 16, lane & 1, 1);
    return sum[0];
}

/* ---- the end of a unit ---- */

/* The element of y that a lane finishes: that of sum lane / END_SPACING, in the one warp whose turn it is. */
typedef struct target {
    int batch, m, column;
    bool valid;
    rft__epi_operands operands;
} target;

RFT_FN target target_of(const walk *w, place p, int lane, int count) {
    const int i = lane / END_SPACING, r = i % ROWS;
    target t;
    t.batch = p.batch;
    t.m = i / ROWS; /* no row of x where i >= SUMS */
    t.column = p.column + r;
    t.valid = lane % END_SPACING == 0 && w->part == count % PARTS && t.m < w->m && r < COLUMNS && t.column < columns_of(w->args);
    if (OPERANDS_EARLY && t.valid) {
        rft__epi_fetch(w->args, t.batch, t.m, t.column, 1, 1, &t.operands);
    }
    return t;
}

RFT_FN void finish(const walk *w, target *t, float v) {
    const float up = RFT_GLU ? __shfl_down_sync(~0u, v, COLUMNS * END_SPACING) : 0;
    if (t->valid) {
        if (RFT_DUMPS(RFT_DUMP_ACC)) {
            RFT_DUMP_SPAN(w->args, t->batch, t->m, t->column, &v, &up, 1, 1);
        }
        if (!OPERANDS_EARLY) {
            rft__epi_fetch(w->args, t->batch, t->m, t->column, 1, 1, &t->operands);
        }
        rft__epi_apply(w->args, t->batch, t->m, t->column, &t->operands, &v, &up, 1, 1);
        rft__store_span(w->args, t->batch, t->m, t->column, &v, 1, 1);
    }
}

/* A debug build: the sum that a lane holds before the parts meet. */
RFT_FN void dump_part(const walk *w, place p, int lane, float v) {
    const int i = lane / SPACING, r = i % ROWS, m = i / ROWS, n = p.column + r % COLUMNS, up = r / COLUMNS;
    const bool exists = lane % SPACING == 0 && m < w->m && n < columns_of(w->args);
    if (exists && RFT_DUMPS(RFT_DUMP_PART(w->part))) {
        RFT_DUMP(w->args, p.batch, m, RFT_GLU == 2 ? 2 * n + up : n + up * (w->args->n / 2), v);
    }
    (void)v, (void)m, (void)n, (void)up;
}

/* The parts of a unit meet; the turn of the last warp goes round. */
RFT_FN void finish_parts(const walk *w, target *t, int lane, int count, float v, float *partial) {
    float *const set = partial + (w->group * 2 + count % 2) * PARTS * SUMS;
    if (lane % SPACING == 0) {
        set[w->part * SUMS + lane / SPACING] = v;
    }
    rft__bar_sync(1 + w->group, PARTS * LANES);
    if (w->part == count % PARTS) {
        float total = set[lane % SUMS];
        RFT_UNROLL
        for (int i = 1; i < PARTS; i++) {
            total += set[i * SUMS + lane % SUMS];
        }
        finish(w, t, total);
    }
}

/* ---- the kernel ---- */

RFT_FN walk walk_of(const rft__cuda_args *a, int warp) {
    const int lines = (a->k / CHUNK + LANES - 1) / LANES, part = warp % PARTS, group = warp / PARTS;
    const int begin = (int)((long long)lines * part / PARTS), end = (int)((long long)lines * (part + 1) / PARTS);
    const int steps = (end - begin + LINES - 1) / LINES;
    const walk w = {a,
                    part,
                    group,
                    RFT_M ? RFT_M : a->m,
                    begin * LANES,
                    (steps + TURNS - 1) / TURNS * TURNS,
                    (unit_index)group * gridDim.x + blockIdx.x,
                    (unit_index)GROUPS * gridDim.x,
                    (unit_index)a->number[0] * (RFT_BATCHED ? a->batch : 1)};
    return w;
}

RFT_FN feed feed_of(const rft__cuda_args *a, const walk *w, int warp, char *shared) {
    const int lines = (a->k / CHUNK + LANES - 1) / LANES, end = (int)((long long)lines * (w->part + 1) / PARTS) * LANES;
    const long long pitch = a->ldw * W_SIZE;
    feed f;
    f.stride.column = RFT_GLU == 2 ? 2 * pitch : pitch;
    f.stride.up = RFT_GLU == 1 ? a->n / 2 * pitch : pitch;
    f.lane = threadIdx.x % LANES;
    f.end = min(end, a->k / CHUNK);
    f.policy = FEED == FEED_ELEMENT ? 0 : rft__policy_stream();
    f.parity = 0;
    f.ring = shared + warp * RING_BYTES;
    f.barriers = rft__shared(shared + RFT_WARPS * RING_BYTES + warp * BARRIER_BYTES);
    return f;
}

RFT_FN void fill_ring(const walk *w, feed *f, cursor *c) {
    _Pragma("unroll (RFT_GEMV_FEED >= 1 ? 1 : RFT_STAGES)")
    for (int i = 0; i < STAGES; i++) {
        refill(w, f, i, c);
    }
}

RFT_FN void run(const rft__cuda_args *a) {
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    char *const shared = (char *)shared_bytes;
    const int warp = __shfl_sync(~0u, threadIdx.x / LANES, 0);
    float *const partial = (float *)(shared + RFT_WARPS * (RING_BYTES + BARRIER_BYTES));
    const walk w = walk_of(a, warp);
    feed f = feed_of(a, &w, warp, shared);
    cursor next = {0, w.steps > 0 ? w.slot : w.units, 0, 0, 0};
    rft__pdl_launch();
    feed_start(&f);
    if (next.unit < w.units) {
        cursor_enter(&w, &next);
    }
    if (RFT_W_EARLY) {
        fill_ring(&w, &f, &next);
    }
    rft__pdl_wait();
    if (!RFT_W_EARLY) {
        fill_ring(&w, &f, &next);
    }
    int stage = 0, count = 0;
    for (unit_index unit = w.slot; unit < w.units; unit += w.slots, count++) {
        const place p = place_of(&w, unit);
        const x_place xp = x_of(a, p.batch);
        target t = target_of(&w, p, f.lane, count);
        float sum[SUMS] = {0};
        x_step ahead;
        if (X_AHEAD) {
            load_x(&w, &f, 0, xp, &ahead);
        }
        _Pragma("unroll 1")
        for (int step = 0; step < w.steps; step += TURNS) {
            RFT_UNROLL
            for (int i = 0; i < TURNS; i++) {
                turn(&w, &f, stage + i, step + i, xp, &ahead, sum);
                refill(&w, &f, stage + i, &next);
            }
            stage = IN_SHARED && stage + 1 < STAGES ? stage + 1 : 0;
            f.parity ^= stage == 0;
        }
        add_tail(&w, &f, p, xp, sum);
        const float v = reduce(f.lane, sum);
        dump_part(&w, p, f.lane, v);
        if (PARTS == 1) {
            finish(&w, &t, v);
        } else {
            finish_parts(&w, &t, f.lane, count, v, partial);
        }
    }
}
