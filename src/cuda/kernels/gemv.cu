/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv.cu - Y = epilogue(X * W^T) for 1 to 8 rows of X, on the FMA units: W is streamed once, at the speed of memory.
 * Host half: gemv.c, which says what its macros (RFT_GEMV_...) may be. Runs on sm_80 and newer; bulk copies on sm_90.
 *
 *            k  0        512 B      1 KB
 *     row n     |  line  |  line  | ...       A warp takes a unit, ROWS rows of W, in steps of LINES lines; a line is 512 bytes
 *     row n + 1 |  line  |  line  |           of each row, 16 a lane. A block has 8 warps: GROUPS units at a time, the k of each
 *     row n + 2 |  line  |  line  |           cut into PARTS runs of lines. A block stays for the whole run, one on an SM, and
 *     row n + 3 |  line  |  line  |           its groups take unit = slot, slot + slots, ...
 *
 * In flight   a ring of STAGES steps a warp, that of the units to come as well: 8 warps * 2 stages * 8 rows * 512 B = 64 KB on
 *             an SM, where an H200 needs 40 (4.3 TB/s / 132 SMs * 1.2 us). A ring is private to its warp, which waits for its
 *             bytes and for nothing else: no barrier of the block is in the loop.
 * Launch      the next kernel may start at once: its blocks fill their rings, all before they wait for this one, while this one
 *             drains. 64 KB and 85 registers let three kernels in a row stay on an SM. So memory never idles between launches;
 *             a trigger after a block's last request was slower with 266 of 280 configs, with the best of each 1 to 7 %.
 * x           is read anew for each unit, 16 bytes a lane, a step ahead: from L1, of which 28 KB remain, else from L2. There is
 *             no copy in shared memory, no conversion pass and no limit on k. Without the step ahead M = 4 took 1.11 to 1.17
 *             times as long.
 * Order       a lane sums its chunks in ascending k, lanes meet in a butterfly of fixed shape, parts in ascending order: the
 *             bits of a row depend on n, k, types and the config's parts and feed alone; not on the rows beside it.
 *
 * SASS (sm_90a, bulk; a step of 4 KB, ROWS 8, or above M = 4 two of 2 KB, ROWS 4), of 880 issue slots that the roof leaves:
 *     M                            1    2    4    8
 *     registers       bf16, f16   56   71  109  128     of 128; no spills
 *                     f32         62   76   96  127
 *     instructions    bf16, f16  300  386  548 1038     FFMA: 64 M; widening is one SHL, LOP3 or HADD2 an element
 *                     f32        196  242  308  672     FFMA: 32 M
 *
 * One H200, 2026-11-29, launches in a graph, weights cold; microseconds. cuBLASLt bf16 M = 1: 12.6, 12.3, 54.8 at best.
 *     M                            1     2     4     8
 *     2112 x 7168     bf16       8.1   8.2   8.6  14.3
 *     4096 x 4096     bf16       8.3   8.9   9.3  16.3
 *     28672 x 4096    bf16      53.3  53.5  57.3   105      4.41 TB/s at M = 1
 *     28672 x 4096    f32        105   107   110   142
 * x was a step ahead in the bf16 rows up to M = 4 alone; now it is in all but M = 8 of 16-bit types, not measured since.
 * M = 8 of 16-bit types is bound by issue; of f32, by x: 128 KB a unit from L2. Kernels with tensor cores are the better ones
 * there. Scalar x costs 1 % at M = 1 and 1.7 times at M = 8; single elements of W, 4 times.
 */
#include "config.h"

#include "device.cuh"
#include "epilogue.cuh"

enum {
    LANES = 32,
    M = RFT_GEMV_M, /* rows of x compiled in; RFT_M 0: those from args.m on do not exist */
    X_SIZE = RFT_X_TYPE == 1 ? 4 : 2,
    W_SIZE = RFT_W_TYPE == 1 ? 4 : 2
};

/* Element k of row m of x lies at x + m * row + k * next bytes. */
typedef struct x_place {
    const char *x;
    long long row, next;
    RFT_ORIGIN(origin)
} x_place;

RFT_FN x_place x_of(const rft__cuda_args *a, int batch) {
    const long long ld = a->ldx * X_SIZE;
    x_place p = {(const char *)a->x + (RFT_BATCHED ? batch * a->x_batch_stride * X_SIZE : 0), RFT_X_MN ? X_SIZE : ld,
                 RFT_X_MN ? ld : X_SIZE};
    RFT_ORIGIN_SET(p.origin, a, RFT_AT_X, batch);
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

extern "C" __global__ void __launch_bounds__(RFT_WARPS * 32, RESIDENT) gemv(const __grid_constant__ rft__cuda_args a) { run(&a); }
