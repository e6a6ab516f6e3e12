/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_emulator.h - a GPU block as fibers of one CPU thread, so that the text of a kernel runs, and its edges are proved, where
 * no GPU is. Compiled by cc in front of a kernel's text (see cuda_emulate.h) in place of device.cuh and mma.cuh.
 * Faithful: barriers, warp collectives, fragments of ldmatrix and mma, cp.async whose bytes arrive no sooner than their wait.
 * Counted: bank conflicts of ldmatrix and unaligned copies. Not modelled: the memory order between barriers.
 */
#define RFT_DEVICE_CUH
#define RFT_MMA_CUH

#include "cuda_args.h"
#include "emulated_words.h"

#include <stdlib.h>
#include <ucontext.h>

#define RFT_HOPPER 0
#define __shared__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline, unused))
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

enum { MAX_THREADS = 512, STACK = 64 << 10, MAX_PENDING = 256, WARP = 32, SHARED = 232448 };

typedef struct pending_copy {
    unsigned to;
    const void *from;
    int size, bytes, group;
} pending_copy;

typedef struct fiber {
    ucontext_t context;
    uint3 thread;
    bool done;
    int n_pending, group;
    pending_copy pending[MAX_PENDING];
} fiber;

typedef struct meeting {
    int arrived, generation;
} meeting;

unsigned char shared_bytes[SHARED] __attribute__((aligned(1024)));
static fiber fibers[MAX_THREADS];
static fiber *now;
static ucontext_t scheduler;
static uint3 blockIdx, gridDim, blockDim;
static meeting block_meeting, warp_meeting[MAX_THREADS / WARP];
static uint32_t exchange[MAX_THREADS / WARP][WARP][12];
static long progress;
int emulator_conflicts, emulator_faults; /* read by the test */

#define threadIdx (now->thread)

static void yield(void) { swapcontext(&now->context, &scheduler); }

static void meet(meeting *m, int count) {
    const int generation = m->generation;
    if (++m->arrived == count) {
        m->arrived = 0, m->generation++, progress++;
        return;
    }
    while (m->generation == generation) {
        yield();
    }
}

static void __syncthreads(void) { meet(&block_meeting, (int)blockDim.x); }
/* The thread stays here, so that the block does not end well. */
static void __trap(void) {
    for (emulator_faults++;;) {
        yield();
    }
}
static int warp_of(void) { return (int)now->thread.x / WARP; }
static int lane_of(void) { return (int)now->thread.x % WARP; }
static void __syncwarp(void) { meet(&warp_meeting[warp_of()], WARP); }

/* Shows every lane's words to every lane of the warp. */
static uint32_t (*all_lanes(const uint32_t *words, int count))[12] {
    __syncwarp();
    memcpy(exchange[warp_of()][lane_of()], words, (size_t)count * sizeof *words);
    __syncwarp();
    return exchange[warp_of()];
}

/* ---- device.cuh ---- */

RFT_FN void rft__pdl_wait(void) {}
RFT_FN void rft__pdl_launch(void) {}
RFT_FN unsigned rft__shared(const void *p) { return (unsigned)((const unsigned char *)p - shared_bytes); }

static void count_conflicts(uint32_t (*address)[12]) {
    for (int phase = 0; phase < 4; phase++) {
        unsigned seen = 0;
        for (int i = 0; i < 8; i++) {
            const unsigned chunk = address[8 * phase + i][0] / 16;
            emulator_faults += address[8 * phase + i][0] % 16 != 0;
            emulator_conflicts += (seen >> chunk % 8 & 1u) != 0;
            seen |= 1u << chunk % 8;
        }
    }
}

static void ldmatrix(unsigned r[4], unsigned address, bool trans) {
    uint32_t(*all)[12] = all_lanes(&address, 1);
    const int lane = lane_of();
    if (lane == 0) {
        count_conflicts(all);
    }
    for (int j = 0; j < 4; j++) {
        uint16_t half[2];
        for (int i = 0; i < 2; i++) {
            const int row = trans ? 2 * (lane % 4) + i : lane / 4, column = trans ? lane / 4 : 2 * (lane % 4) + i;
            memcpy(&half[i], shared_bytes + all[8 * j + row][0] + 2 * column, 2);
        }
        r[j] = half[0] | (unsigned)half[1] << 16;
    }
    __syncwarp();
}

RFT_FN void rft__ldmatrix4(unsigned r[4], unsigned address) { ldmatrix(r, address, false); }
RFT_FN void rft__ldmatrix4_trans(unsigned r[4], unsigned address) { ldmatrix(r, address, true); }

static void copy_later(unsigned to, const void *from, int size, int bytes) {
    emulator_faults += to % (unsigned)size != 0 || (uintptr_t)from % (unsigned)size != 0 || bytes < 0 || bytes > size ||
                       now->n_pending == MAX_PENDING;
    now->pending[now->n_pending++ % MAX_PENDING] = (pending_copy){to, from, size, bytes, now->group};
    memset(shared_bytes + to, 0xff, (size_t)size); /* NaN until it is there */
}

RFT_FN void rft__cp_async16(unsigned to, const void *from, int bytes) { copy_later(to, from, 16, bytes); }
RFT_FN void rft__cp_async16_policy(unsigned to, const void *from, int bytes, unsigned long long policy) {
    (void)policy;
    copy_later(to, from, 16, bytes);
}
RFT_FN unsigned long long rft__policy_stream(void) { return 0; }
RFT_FN unsigned long long rft__policy_keep(void) { return 0; }
#define RFT_CP_ASYNC(to, from, size, bytes) copy_later(to, from, size, bytes)
RFT_FN void rft__cp_async_commit(void) { now->group++; }

static void copies_done(int pending) {
    int kept = 0;
    for (int i = 0; i < now->n_pending; i++) {
        const pending_copy *c = &now->pending[i];
        if (c->group >= now->group - pending) {
            now->pending[kept++] = *c;
            continue;
        }
        memset(shared_bytes + c->to, 0, (size_t)c->size);
        memcpy(shared_bytes + c->to, c->from, (size_t)c->bytes);
    }
    now->n_pending = kept;
}
#define RFT_CP_ASYNC_WAIT(pending) copies_done(pending)

#include "cuda_emulator_warp.h"

/* ---- mma.cuh ---- */

#include "convert.cuh"

/* D = A B + D with A 16 x k, B k x 8 as the fragments of PTX hold them: `per` elements a word, k = 8 * per. */
static void mma(float d[4], const unsigned a[4], const unsigned b[2], int type, int per) {
    uint32_t words[12] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    uint32_t(*all)[12] = all_lanes(words, 6);
    const int lane = lane_of();
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4 + e / 2 * 8, column = 2 * (lane % 4) + e % 2;
        double sum = d[e];
        for (int k = 0; k < 8 * per; k++) {
            const int quarter = k % (4 * per) / per, high = k / (4 * per), shift = k % per * 16;
            const uint32_t x = all[row % 8 * 4 + quarter][row / 8 + 2 * high] >> shift,
                           w = all[column * 4 + quarter][4 + high] >> shift;
            sum += (double)rft__widen(type, x) * (double)rft__widen(type, w);
        }
        d[e] = (float)sum;
    }
    __syncwarp();
}

RFT_FN void rft__mma_bf16(float d[4], const unsigned a[4], const unsigned b[2]) { mma(d, a, b, RFT_TYPE_BF16, 2); }
RFT_FN void rft__mma_f16(float d[4], const unsigned a[4], const unsigned b[2]) { mma(d, a, b, RFT_TYPE_F16, 2); }
RFT_FN void rft__mma_tf32(float d[4], const unsigned a[4], const unsigned b[2]) { mma(d, a, b, RFT_TYPE_F32, 1); }
RFT_FN unsigned rft__round_tf32(float v) { return (__float_as_uint(v) + 0x1000u) & 0xffffe000u; }

/* ---- a launch ---- */

static const rft__cuda_args *launch_args;
RFT_KERNEL_DECLARATION;

static void fiber_main(void) {
    RFT_KERNEL_NAME(*launch_args);
    now->done = true;
    progress++;
    swapcontext(&now->context, &scheduler);
}

static bool run_block(char *stacks) {
    block_meeting = (meeting){0};
    memset(warp_meeting, 0, sizeof warp_meeting);
    memset(shared_bytes, 0xff, sizeof shared_bytes);
    for (unsigned t = 0; t < blockDim.x; t++) {
        memset(&fibers[t], 0, sizeof fibers[t]);
        fibers[t].thread.x = t;
        getcontext(&fibers[t].context);
        fibers[t].context.uc_stack.ss_sp = stacks + (size_t)t * STACK;
        fibers[t].context.uc_stack.ss_size = STACK;
        makecontext(&fibers[t].context, fiber_main, 0);
    }
    for (unsigned left = blockDim.x; left > 0;) {
        const long before = progress;
        left = 0;
        for (unsigned i = 0; i < blockDim.x; i++) { /* alternately up and down, so that no order is relied on */
            const unsigned t = before % 2 ? blockDim.x - 1 - i : i;
            if (!fibers[t].done) {
                now = &fibers[t];
                swapcontext(&scheduler, &now->context);
                left += !fibers[t].done;
            }
        }
        if (left > 0 && progress == before) {
            return false; /* all wait for each other */
        }
    }
    return true;
}

/* Runs the grid; false: a block hung, or copies were at fault. */
bool emulator_launch(const rft__cuda_args *args, const unsigned grid[3], unsigned block) {
    char *stacks = malloc((size_t)MAX_THREADS * STACK);
    bool ok = stacks != NULL && block <= MAX_THREADS;
    launch_args = args, blockDim = (uint3){block, 1, 1}, gridDim = (uint3){grid[0], grid[1], grid[2]};
    emulator_conflicts = emulator_faults = 0;
    for (blockIdx.y = 0; ok && blockIdx.y < grid[1]; blockIdx.y++) {
        for (blockIdx.x = 0; ok && blockIdx.x < grid[0]; blockIdx.x++) {
            ok = run_block(stacks);
        }
    }
    free(stacks);
    return ok && emulator_faults == 0;
}
