/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv_columns.cuh - gemv.cu for a W whose columns are contiguous: element (n, k) at k * ldw + n. A lane owns one column of y
 * (with a gated unit two rows of W), so a warp reads 32 neighbours; the warps of a block cut k and meet in shared memory, in
 * ascending order. Any pointer and stride. For products of two activations and views; packed weights never come here.
 */
enum { RESIDENT = 2, GATES = RFT_GLU ? 2 : 1, KS = GATES * M > 8 ? 4 : 8 /* elements of k asked for at once */ };

typedef struct lane_rows { /* of W that a lane owns, gate and up */
    const char *at[GATES];
    RFT_ORIGIN(origin)
} lane_rows;

RFT_FN lane_rows rows_of(const rft__cuda_args *a, int batch, int column) {
    const char *const w = (const char *)a->w + (RFT_BATCHED ? batch * a->w_batch_stride * W_SIZE : 0);
    lane_rows r;
    r.at[0] = w + (long long)column * (RFT_GLU == 2 ? 2 : 1) * W_SIZE;
    r.at[GATES - 1] = r.at[0] + (RFT_GLU == 2 ? 1 : RFT_GLU == 1 ? a->n / 2 : 0) * (long long)W_SIZE;
    RFT_ORIGIN_SET(r.origin, a, RFT_AT_W, batch);
    return r;
}

/* Up to KS steps of k. */
RFT_FN void step(const rft__cuda_args *a, const lane_rows *rows, x_place x, int rows_of_x, int k, int count,
                 float sum[GATES][M]) {
    const long long next = a->ldw * W_SIZE;
    float w[KS][GATES];
    RFT_UNROLL
    for (int i = 0; i < KS * GATES; i++) {
        const int j = i / GATES, gate = i % GATES;
        RFT_CHECK_AT(rows->origin, rows->at[gate] + (k + j) * next, j < count ? W_SIZE : 0);
        w[j][gate] = j < count ? rft__widen(RFT_W_TYPE, w_element(rows->at[gate] + (k + j) * next)) : 0;
    }
    RFT_UNROLL
    for (int i = 0; i < KS * M; i++) {
        const int m = i % M, j = i / M;
        if (j < count && m < rows_of_x) {
            RFT_CHECK_AT(x.origin, x.x + m * x.row + (k + j) * x.next, X_SIZE);
            const float xv = rft__widen(RFT_X_TYPE, x_element(x.x + m * x.row + (k + j) * x.next));
            sum[0][m] = __fmaf_rn(w[j][0], xv, sum[0][m]);
            if (GATES == 2) {
                sum[GATES - 1][m] = __fmaf_rn(w[j][GATES - 1], xv, sum[GATES - 1][m]);
            }
        }
    }
}

RFT_FN void add_part(const rft__cuda_args *a, int batch, int column, int warp, float sum[GATES][M]) {
    const int begin = (int)((long long)a->k * warp / RFT_WARPS), end = (int)((long long)a->k * (warp + 1) / RFT_WARPS);
    const lane_rows rows = rows_of(a, batch, column);
    const x_place x = x_of(a, batch);
    const int rows_of_x = RFT_M ? RFT_M : a->m;
    int k = begin;
    for (; k + KS <= end; k += KS) {
        step(a, &rows, x, rows_of_x, k, KS, sum);
    }
    if (k < end) {
        step(a, &rows, x, rows_of_x, k, end - k, sum);
    }
}

/* A debug build: a warp's sums. */
RFT_FN void dump_part(const rft__cuda_args *a, int batch, int column, int warp, float sum[GATES][M]) {
    RFT_UNROLL
    for (int m = 0; m < M && RFT_DUMPS(RFT_DUMP_PART(warp)); m++) {
        RFT_DUMP_SPAN(a, batch, m, column, &sum[0][m], &sum[GATES - 1][m], 1, m < (RFT_M ? RFT_M : a->m));
    }
    (void)a, (void)batch, (void)column, (void)sum;
}

/* partial: [warp][gate][m][lane]. */
RFT_FN float total_of(const float *partial, int gate, int m, int lane) {
    float total = 0;
    RFT_UNROLL
    for (int warp = 0; warp < RFT_WARPS; warp++) {
        const float part = partial[((warp * GATES + gate) * M + m) * LANES + lane];
        total = warp == 0 ? part : total + part;
    }
    return total;
}

RFT_FN void finish(const rft__cuda_args *a, int batch, int column, int m, int lane, const float *partial) {
    if (column < columns_of(a) && m < (RFT_M ? RFT_M : a->m)) {
        float v = total_of(partial, 0, m, lane);
        const float up = total_of(partial, GATES - 1, m, lane);
        rft__finish_span(a, batch, m, column, &v, &up, 1, 1);
    }
}

RFT_FN void run(const rft__cuda_args *a) {
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    float *const partial = (float *)shared_bytes; /* RFT_WARPS * GATES * M * LANES */
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, per_batch = a->number[0];
    const long long units = (long long)per_batch * a->batch;
    rft__pdl_launch();
    rft__pdl_wait();
    for (long long unit = blockIdx.x; unit < units; unit += gridDim.x) {
        const int batch = RFT_BATCHED ? (int)(unit / per_batch) : 0;
        const int column = (int)(unit - (long long)batch * per_batch) * LANES + lane;
        float sum[GATES][M] = {{0}};
        if (column < columns_of(a)) {
            add_part(a, batch, column, warp, sum);
            dump_part(a, batch, column, warp, sum);
        }
        RFT_UNROLL
        for (int i = 0; i < GATES * M; i++) {
            partial[(warp * GATES * M + i) * LANES + lane] = sum[i / M][i % M];
        }
        __syncthreads();
        for (int m = warp; m < M; m += RFT_WARPS) {
            finish(a, batch, column, m, lane, partial);
        }
        __syncthreads();
    }
}
