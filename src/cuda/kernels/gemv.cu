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
 * In flight   a ring of STAGES steps a warp, that of the units to come as well: 8 warps * 3 stages * 4 rows * 2 lines * 512 B =
 *             96 KB on an SM, where an H200 needs 40 (4.3 TB/s / 132 SMs * 1.2 us). A ring is private to its warp, which waits
 *             for its bytes and for nothing else: no barrier of the block is in the loop.
 * Launch      the ring is filled before the dependency wait. A block takes less than half of an SM, and its last warp that
 *             asks for its last bytes lets the next kernel start: early enough to hide that kernel's start, late enough
 *             that its ring fills while this one drains and memory never idles.
 * x           is read anew for each unit, 16 bytes a lane, before the wait for W: from L1 but for the first time, so there is
 *             no copy in shared memory, no conversion pass and no limit on k.
 * Order       a lane sums its chunks in ascending k, lanes meet in a butterfly of fixed shape, parts in ascending order: the
 *             bits of a row depend on n, k, types and the config's parts and feed alone; not on the rows beside it.
 *
 * SASS (sm_90a, bf16, bulk, ROWS 4; a step of LINES 2, or 1 above M = 4), of 440 issue slots that the roof leaves for 2 KB:
 *     M                     1    2    4    8
 *     registers            48   64  108  128     of 128; no spills
 *     instructions a 2 KB 163  198  289  529     of which FFMA 32 M; 8 shared loads of 16 bytes for W, 1 global one a line
 *                                                and row for x; widening bf16 is one SHL or LOP3 an element
 * So M = 8 is bound by issue on an H200 (1.2 to 1.4 times the roof), though not on an A100 or RTX 4090; kernels with tensor
 * cores are the better ones there.
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

extern "C" __global__ void __launch_bounds__(RFT_WARPS * 32, RESIDENT) gemv(const __grid_constant__ rft__cuda_args a) { run(&a); }
