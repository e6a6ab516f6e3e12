/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv_feed.cuh - how W comes to the lanes of one warp: a ring of steps, each a line or more of ROWS rows. One of
 *     ELEMENT     single elements in registers: any pointer and stride
 *     ASYNC       16 bytes a lane into shared memory, copied by the lane that will read them
 *     BULK        whole lines into shared memory, copied by the copy engine, counted by one barrier a stage
 * Included by gemv_rows.cuh. A turn is feed_await, feed_take for each chunk, then feed_issue into the same stage. All lanes of
 * a warp call each function together. A row that does not exist is not read; what feed_take gives for it is undefined.
 */
enum { FEED_ELEMENT, FEED_ASYNC, FEED_BULK };

enum {
    FEED = RFT_GEMV_FEED,
    STAGES = RFT_STAGES,
    LINES = RFT_GEMV_LINES,
    ROWS = RFT_GEMV_ROWS,
    COLUMNS = RFT_GLU ? ROWS / 2 : ROWS, /* of y that a unit makes */
    CHUNK = FEED == FEED_ELEMENT ? 1 : 16 / W_SIZE, /* elements that a lane takes at once */
    CHUNK_BYTES = CHUNK * W_SIZE,
    LINE_BYTES = LANES * CHUNK_BYTES,
    STEP_CHUNKS = LINES * LANES,
    IN_SHARED = FEED >= FEED_ASYNC,
    TURNS = IN_SHARED ? 1 : STAGES, /* that the loop is unrolled by: registers have no index */
    STAGE_BYTES = ROWS * LINES * LINE_BYTES,
    RING_BYTES = IN_SHARED ? STAGES * STAGE_BYTES : 0, /* of a warp */
    BARRIER_BYTES = FEED == FEED_BULK ? 8 * STAGES : 0
};

typedef struct chunk {
    unsigned word[CHUNK_BYTES < 4 ? 1 : CHUNK_BYTES / 4];
} chunk;

#if RFT_BATCHED
typedef unsigned long long unit_index;
#else
typedef unsigned unit_index; /* of two registers less */
#endif

/* Where the next step to be asked for lies. */
typedef struct cursor {
    const char *at;  /* first row of the unit, first chunk of the step */
    unit_index unit;
    int chunk, step; /* that chunk */
    int columns;     /* from the unit's first one to the last of y */
    RFT_ORIGIN(origin)
} cursor;

/* Offsets of the rows of a unit from its first one. */
typedef struct stride {
    long long column, up; /* bytes from one column to the next, and from a gate row to its up row */
} stride;

typedef struct feed {
    stride stride;
    int lane, end; /* chunks of this warp's part end there */
    unsigned long long policy;
    unsigned parity;
    char *ring;
    unsigned barriers;
    chunk held[IN_SHARED ? 1 : STAGES][LINES][ROWS];
} feed;

RFT_FN long long row_offset(const feed *f, int row) { return row % COLUMNS * f->stride.column + row / COLUMNS * f->stride.up; }

RFT_FN bool row_exists(const cursor *c, int row) { return row % COLUMNS < c->columns; }

#if RFT_GEMV_FEED == 2

RFT_FN void feed_start(feed *f) {
    if (f->lane < STAGES) {
        rft__mbarrier_init(f->barriers + 8 * f->lane, 1);
        rft__mbarrier_init_fence();
        rft__fence_async();
    }
    __syncwarp();
}

RFT_FN void feed_await(const feed *f, int stage) { rft__await(f->barriers + 8 * stage, f->parity); }

/* One lane asks for all rows. The warp has read this stage: the meeting of lanes comes before what overwrites it. */
RFT_FN void feed_issue(feed *f, int stage, const cursor *c) {
    const int chunks = min(f->end - c->chunk, (int)STEP_CHUNKS), rows = (RFT_GLU ? 2 : 1) * min(c->columns, (int)COLUMNS);
    const unsigned barrier = f->barriers + 8 * stage, bytes = chunks * CHUNK_BYTES;
    const unsigned to = rft__shared(f->ring) + stage * STAGE_BYTES;
    __syncwarp();
    if (rft__elect()) {
        rft__mbarrier_expect(barrier, rows * bytes);
        if (c->columns >= COLUMNS) {
            RFT_UNROLL
            for (int r = 0; r < ROWS; r++) {
                RFT_CHECK_AT(c->origin, c->at + row_offset(f, r), bytes);
                rft__bulk_load(to + r * (LINES * LINE_BYTES), c->at + row_offset(f, r), bytes, barrier, f->policy);
            }
        } else {
            _Pragma("unroll 1")
            for (int r = 0; r < ROWS; r++) {
                if (row_exists(c, r)) {
                    RFT_CHECK_AT(c->origin, c->at + row_offset(f, r), bytes);
                    rft__bulk_load(to + r * (LINES * LINE_BYTES), c->at + row_offset(f, r), bytes, barrier, f->policy);
                }
            }
        }
    }
}

#elif RFT_GEMV_FEED == 1

RFT_FN void feed_start(const feed *f) { (void)f; }

RFT_FN void feed_await(const feed *f, int stage) {
    (void)f, (void)stage;
    RFT_CP_ASYNC_WAIT(RFT_STAGES - 1);
}

RFT_FN void feed_issue(feed *f, int stage, const cursor *c) {
    const unsigned to = rft__shared(f->ring) + stage * STAGE_BYTES + f->lane * CHUNK_BYTES;
    RFT_UNROLL
    for (int i = 0; i < ROWS * LINES; i++) {
        const int row = i / LINES, chunk = i % LINES * LANES + f->lane;
        if (row_exists(c, row) && c->chunk + chunk < f->end) {
            RFT_CHECK_AT(c->origin, c->at + row_offset(f, row) + chunk * CHUNK_BYTES, 16);
            rft__cp_async16_policy(to + i * LINE_BYTES, c->at + row_offset(f, row) + chunk * CHUNK_BYTES, 16, f->policy);
        }
    }
}

#else

RFT_FN void feed_start(const feed *f) { (void)f; }

RFT_FN void feed_await(const feed *f, int stage) { (void)f, (void)stage; }

RFT_FN void feed_issue(feed *f, int stage, const cursor *c) {
    RFT_UNROLL
    for (int i = 0; i < ROWS * LINES; i++) {
        const int row = i / LINES, line = i % LINES, chunk = line * LANES + f->lane;
        if (row_exists(c, row) && c->chunk + chunk < f->end) {
            RFT_CHECK_AT(c->origin, c->at + row_offset(f, row) + chunk * CHUNK_BYTES, W_SIZE);
            f->held[stage][line][row].word[0] = w_element(c->at + row_offset(f, row) + chunk * CHUNK_BYTES);
        }
    }
}

#endif

RFT_FN chunk feed_take(const feed *f, int stage, int line, int row) {
    chunk c;
    if (IN_SHARED) {
        const int at = stage * STAGE_BYTES + (row * LINES + line) * LINE_BYTES + f->lane * CHUNK_BYTES;
        const uint4 v = *(const uint4 *)(f->ring + at);
        const unsigned word[4] = {v.x, v.y, v.z, v.w};
        RFT_UNROLL
        for (int i = 0; i < CHUNK_BYTES / 4; i++) {
            c.word[i] = word[i];
        }
        return c;
    }
    return f->held[stage][line][row];
}

/* Closes what was issued for one step; also where there was none, so that steps can be counted. */
RFT_FN void feed_commit(void) {
    if (FEED == FEED_ASYNC) {
        rft__cp_async_commit();
    }
}
