/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv.cu - Y = epilogue(X * W^T) for 1 to 8 rows of X, on the FMA units: W is streamed once, at the speed of memory.
 * Host half: gemv.c, which says what its macros (RFT_GEMV_...) may be. Runs on sm_80 and newer; bulk copies on sm_90.
 *
 *          k  0        512 B      1 KB                      A warp takes a unit, ROWS rows of W, in steps of LINES lines;
 *     row n   |  line  |  line  | ...                       a line is 512 bytes of each row, 16 a lane.
 *     row n+1 |  line  |  line  |       ROWS = 4, LINES = 1 A block has 8 warps: GROUPS units at a time, the k of each
 *     row n+2 |  line  |  line  |       a step is 2 KB      cut into PARTS runs of lines. Blocks stay for the whole run,
 *     row n+3 |  line  |  line  |                           one on an SM: unit = slot, slot + slots, ...
 *
 * In flight   a ring of STAGES steps a warp, filled for the units to come as well: 8 warps * 6 stages * 2 KB = 96 KB on an SM,
 *             where 40 KB feed an H200 (4.3 TB/s / 132 SMs * 1.2 us). The ring is private to its warp, so a warp waits for
 *             its bytes and for nothing else; no barrier of the block is in the loop.
 * Launch      the first STAGES steps are asked for before the dependency wait. A block takes less than half of an SM, and lets
 *             the next kernel start when it has asked for its last bytes: early enough to hide that kernel's start, late
 *             enough that its ring fills while this one drains.
 * Order       a lane sums its chunks in ascending k, lanes meet in a butterfly of fixed shape, parts in ascending order: bits
 *             of a row depend on n, k, types, strides' alignment and the config, never on the number of rows or run.
 */
#include "config.h"

#include "device.cuh"
#include "epilogue.cuh"

enum {
    LANES = 32,
    M = RFT_M ? RFT_M : 8, /* rows of x compiled in */
    X_SIZE = RFT_X_TYPE == 1 ? 4 : 2,
    W_SIZE = RFT_W_TYPE == 1 ? 4 : 2
};

/* Element k of row m of x lies at x + m * row + k * next bytes. */
typedef struct x_place {
    const char *x;
    long long row, next;
} x_place;

RFT_FN x_place x_of(const rft__cuda_args *a, int batch) {
    const long long ld = a->ldx * X_SIZE;
    const x_place p = {(const char *)a->x + (RFT_BATCHED ? batch * a->x_batch_stride * X_SIZE : 0), RFT_X_MN ? X_SIZE : ld,
                       RFT_X_MN ? ld : X_SIZE};
    return p;
}

RFT_FN unsigned x_element(const char *p) { return X_SIZE == 4 ? *(const unsigned *)p : *(const unsigned short *)p; }

RFT_FN unsigned w_element(const char *p) { return W_SIZE == 4 ? *(const unsigned *)p : *(const unsigned short *)p; }

RFT_FN int columns_of(const rft__cuda_args *a) { return RFT_GLU ? a->n / 2 : a->n; }

#if RFT_W_MN
#include "gemv_columns.cuh"
#else
#include "gemv_rows.cuh"
#endif

extern "C" __global__ void __launch_bounds__(RFT_WARPS * 32, 2) gemv(const __grid_constant__ rft__cuda_args a) { run(&a); }
