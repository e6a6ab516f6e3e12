/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_emulator_sm90.h - clusters of Hopper's blocks as fibers of one CPU thread: the text of a kernel with TMA, mbarriers, wgmma
 * and distributed shared memory runs where no GPU is. Compiled by cc in front of the kernel's text in place of device.cuh and
 * hopper.cuh. Fibers take turns in random order; copies, remote stores and remote arrivals come late and in random order, and
 * what copies will overwrite is NaN from when they are issued; wgmma reads shared memory as late as its wait allows.
 * Faults: a barrier that is arrived at too often or written over, memory beyond what the launch has, an address off its
 * alignment, X loaded before the wait for the kernel before, a finished block that is written to, a store by TMA of what a lane
 * wrote without a fence behind it. Not modelled: the memory order between barriers.
 */
#define RFT_DEVICE_CUH
#define RFT_CUDA_KERNELS_HOPPER_CUH

#include "cuda_args.h"
#include "emulated_map.h"
#include "emulated_words.h"

#include <stdlib.h>
#include <ucontext.h>

#define RFT_HOPPER 1
#define __shared__
#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline, unused))
#define __launch_bounds__(...)
#define __align__(n)

enum {
    BLOCKS_MOST = 8,
    THREADS_MOST = 416,
    WARPS_MOST = THREADS_MOST / 32,
    STACK = 64 << 10,
    SHARED = 232448,
    LATE_MOST = 32768
};
enum { QUEUE = 64, NAMED = 16, STUCK = 4000 /* rounds without progress */ };

typedef struct meeting {
    int arrived, generation;
} meeting;
typedef struct mbarrier {
    int count, pending;
    long bytes;
    unsigned phase;
} mbarrier;

typedef struct block {
    unsigned char memory[SHARED] __attribute__((aligned(1024)));
    mbarrier barrier[SHARED / 8];
    meeting all, warp[WARPS_MOST], named[NAMED];
    uint3 index;
    unsigned rank;
    int running;
} block;

typedef struct product {
    float *d;
    uint64_t a, b;
    int n, accumulate;
} product; /* a wgmma that was issued */

typedef struct store { /* of a box by TMA; group: how many were committed before */
    const emulated_map *map;
    int c[3];
    unsigned from;
    int group;
} store;

typedef struct fiber {
    ucontext_t context;
    uint3 thread;
    block *block;
    bool done, waited, unfenced; /* the last: wrote what TMA may not yet read */
    int generation; /* of the cluster's barrier, when this thread arrived */
    int n_product, group_end[QUEUE], groups;
    product product[QUEUE];
    int n_store, store_groups; /* stores by TMA that have not read yet; committed ones */
    store store[QUEUE];
} fiber;

typedef struct late {        /* something under way */
    const emulated_map *map; /* NULL: bytes of another block, or none and an arrival */
    const fiber *by;         /* who arrives */
    int c[3];
    block *from;
    unsigned source, bytes;
    block *to;
    unsigned address, barrier;
} late;

static block blocks[BLOCKS_MOST];
static fiber fibers[BLOCKS_MOST * THREADS_MOST];
static late lates[LATE_MOST];
static int n_late;
static fiber *now;
static ucontext_t scheduler;
static uint3 gridDim, blockDim;
static meeting cluster_meeting;
static long progress;
static uint64_t dice = 1;
static uint32_t shown[BLOCKS_MOST][WARPS_MOST][32];
int emulator_faults;               /* read by the test */
unsigned emulator_shared = SHARED; /* set by the test: bytes that the launch has */

#define threadIdx (now->thread)
#define blockIdx  (now->block->index)
#define shared    (now->block->memory)

static unsigned roll(unsigned n) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(dice >> 33) % n;
}

static void yield(void) { swapcontext(&now->context, &scheduler); }

/* The thread stays here, so that the cluster does not end well. */
static void __trap(void) {
    for (emulator_faults++;;) {
        yield();
    }
}

static void meet(meeting *m, int count) {
    const int generation = m->generation;
    if (++m->arrived == count) {
        m->arrived = 0, m->generation++, progress++;
    }
    while (m->generation == generation) {
        yield();
    }
}

static int warp_of(void) { return (int)now->thread.x / 32; }
static void __syncthreads(void) { meet(&now->block->all, (int)blockDim.x); }
static void __syncwarp(void) { meet(&now->block->warp[warp_of()], 32); }

static int __shfl_sync(unsigned mask, int value, int lane) {
    (void)mask;
    uint32_t *const words = shown[now->block->rank][warp_of()];
    words[now->thread.x % 32] = (uint32_t)value;
    __syncwarp();
    const int read = (int)words[lane];
    __syncwarp();
    return read;
}

/* ---- numbers ---- */

#define min(a, b) ((a) < (b) ? (a) : (b))

/* ---- mbarriers ---- */

static void fault_unless(bool good) { emulator_faults += !good; }

/* What stands where a barrier is. */
static const uint64_t barrier_mark = 0x6261727269657221u;

static mbarrier *barrier_at(block *b, unsigned address) {
    fault_unless(address % 8 == 0 && address + 8 <= emulator_shared && b->running > 0);
    fault_unless(memcmp(b->memory + address, &barrier_mark, 8) == 0);
    return &b->barrier[address / 8];
}

static void barrier_step(mbarrier *b, int arrivals, long bytes) {
    b->pending -= arrivals;
    b->bytes += bytes;
    fault_unless(b->pending >= 0 && b->count > 0);
    if (b->pending == 0 && b->bytes == 0) {
        b->pending = b->count, b->phase++, progress++;
    }
}

RFT_FN void rft__mbarrier_init(unsigned address, int count) {
    memcpy(now->block->memory + address, &barrier_mark, 8);
    *barrier_at(now->block, address) = (mbarrier){count, count, 0, 0};
}
RFT_FN void rft__mbarrier_init_fence(void) {}
RFT_FN void rft__mbarrier_arrive(unsigned address) { barrier_step(barrier_at(now->block, address), 1, 0); }
RFT_FN void rft__mbarrier_expect(unsigned address, unsigned bytes) {
    mbarrier *const b = barrier_at(now->block, address);
    b->bytes += bytes;
    barrier_step(b, 1, 0);
}
RFT_FN void rft__await(unsigned address, unsigned parity) {
    while ((barrier_at(now->block, address)->phase & 1u) == parity) {
        yield();
    }
}
RFT_FN void rft__await_cluster(unsigned address, unsigned parity) { rft__await(address, parity); }

/* ---- block and cluster ---- */

RFT_FN bool rft__elect(void) { return now->thread.x % 32 == 5; }
RFT_FN void rft__pdl_launch(void) {}
RFT_FN void rft__pdl_wait(void) { now->waited = true; }
RFT_FN unsigned rft__shared(const void *p) { return (unsigned)((const unsigned char *)p - now->block->memory); }
RFT_FN void rft__bar_sync(int id, int threads) { meet(&now->block->named[id], threads); }
RFT_FN void rft__bar_arrive(int id, int threads) {
    meeting *const m = &now->block->named[id];
    if (++m->arrived == threads) {
        m->arrived = 0, m->generation++, progress++;
    }
}
#define RFT_REGISTERS_RAISE(n)
#define RFT_REGISTERS_LOWER(n)
RFT_FN unsigned rft__cluster_rank(void) { return now->block->rank; }
RFT_FN void rft__cluster_arrive_relaxed(void) {
    now->generation = cluster_meeting.generation;
    if (++cluster_meeting.arrived == (int)(blockDim.x * RFT_CLUSTER)) {
        cluster_meeting.arrived = 0, cluster_meeting.generation++, progress++;
    }
}
RFT_FN void rft__cluster_wait(void) {
    while (cluster_meeting.generation == now->generation) {
        yield();
    }
}
/* A release: what this thread has under way comes first. */
RFT_FN void rft__cluster_arrive(void) {
    for (int i = 0; i < n_late;) {
        if (lates[i].by == now) {
            yield();
            i = 0;
        } else {
            i++;
        }
    }
    rft__cluster_arrive_relaxed();
}
RFT_FN unsigned rft__cluster_map(unsigned address, unsigned rank) { return rank << 24 | address; }

static late *add_late(block *to, unsigned address, unsigned barrier, int bytes) {
    fault_unless(n_late < LATE_MOST && to->running > 0 && address + (unsigned)bytes <= emulator_shared);
    memset(to->memory + address, 0xff, (size_t)bytes);
    late *const l = &lates[n_late < LATE_MOST ? n_late++ : 0];
    *l = (late){.to = to, .address = address, .barrier = barrier};
    return l;
}

RFT_FN void rft__mbarrier_free_at(unsigned address, unsigned rank) { add_late(&blocks[rank], 0, address, 0)->by = now; }
RFT_FN void rft__fence_async(void) { now->unfenced = false; }
RFT_FN void rft__cluster_copy(unsigned remote, unsigned from, unsigned bytes, unsigned remote_barrier) {
    fault_unless(remote % 16 == 0 && from % 16 == 0 && bytes % 16 == 0 && remote >> 24 == remote_barrier >> 24);
    late *const l = add_late(&blocks[remote >> 24], remote & 0xffffffu, remote_barrier & 0xffffffu, (int)bytes);
    l->from = now->block, l->source = from, l->bytes = bytes;
}

RFT_FN void rft__prefetch_l2(const void *p) { fault_unless(*(const volatile char *)p || true); }
RFT_FN float4 rft__cluster_load4(unsigned remote) {
    float4 v;
    fault_unless(remote % 16 == 0 && blocks[remote >> 24].running > 0);
    memcpy(&v, blocks[remote >> 24].memory + (remote & 0xffffffu), sizeof v);
    return v;
}

/* The addresses that the lanes of this warp give to a load or store of matrices, which begins. */
static const uint32_t *show_rows(unsigned address) {
    uint32_t *const rows = shown[now->block->rank][warp_of()];
    fault_unless(address % 16 == 0);
    rows[now->thread.x % 32] = address;
    __syncwarp();
    return rows;
}

static const uint32_t *show_stored_rows(unsigned address) {
    now->unfenced = true;
    return show_rows(address);
}

/* Word j of a lane belongs to matrix j, row lane / 4, whose address lane 8 j + lane / 4 gives. */
RFT_FN void rft__ldmatrix4(unsigned *v, unsigned address) {
    const unsigned lane = now->thread.x % 32, *const rows = show_rows(address);
    for (unsigned j = 0; j < 4; j++) {
        memcpy(&v[j], now->block->memory + rows[8 * j + lane / 4] + lane % 4 * 4, 4);
    }
    __syncwarp();
}

RFT_FN void rft__stmatrix4(unsigned address, const unsigned *v) {
    const unsigned lane = now->thread.x % 32, *const rows = show_stored_rows(address);
    for (unsigned j = 0; j < 4; j++) {
        memcpy(now->block->memory + rows[8 * j + lane / 4] + lane % 4 * 4, &v[j], 4);
    }
    __syncwarp();
}

/* Word j of a lane belongs to columns lane / 4 of rows lane % 4 * 2 and the next. */
RFT_FN void rft__stmatrix4_turned(unsigned address, const unsigned *v) {
    const unsigned lane = now->thread.x % 32, *const rows = show_stored_rows(address);
    for (unsigned i = 0; i < 8; i++) {
        memcpy(now->block->memory + rows[i / 2 * 8 + lane % 4 * 2 + i % 2] + lane / 4 * 2, (const char *)v + 2 * i, 2);
    }
    __syncwarp();
}

/* ---- TMA: a map's first word is the address of its description ---- */

RFT_FN unsigned long long rft__policy_stream(void) { return 0; }
RFT_FN unsigned long long rft__policy_keep(void) { return 0; }
RFT_FN unsigned long long rft__policy_normal(void) { return 0; }
RFT_FN void rft__map_prefetch(const rft__cuda_map *map) { (void)map; }

static int box_bytes(const emulated_map *m) { return (int)(m->box[0] * m->box[1] * m->size); }

static void load_later(unsigned to, const rft__cuda_map *map, int c0, int c1, int c2, int rank, unsigned barrier,
                       unsigned mask) {
    const emulated_map *const m = (const emulated_map *)(uintptr_t)map->word[0];
    fault_unless(to % 1024 == 0 && m->rank == rank && (now->waited || (m->early && RFT_W_EARLY)));
    fault_unless(c0 * (int)m->size % 16 == 0); /* an illegal instruction to an H200 */
    for (unsigned r = 0; r < RFT_CLUSTER; r++) {
        if (mask >> r & 1u) {
            late *const l = add_late(&blocks[r], to, barrier, box_bytes(m));
            l->map = m, l->c[0] = c0, l->c[1] = c1, l->c[2] = c2;
        }
    }
}

RFT_FN void rft__map_load2(unsigned to, const rft__cuda_map *map, int c0, int c1, unsigned barrier, unsigned long long policy) {
    (void)policy;
    load_later(to, map, c0, c1, 0, 2, barrier, 1u << now->block->rank);
}
RFT_FN void rft__map_load3(unsigned to, const rft__cuda_map *map, int c0, int c1, int c2, unsigned barrier,
                           unsigned long long policy) {
    (void)policy;
    load_later(to, map, c0, c1, c2, 3, barrier, 1u << now->block->rank);
}

RFT_FN void rft__map_load2_multicast(unsigned to, const rft__cuda_map *map, int c0, int c1, unsigned barrier,
                                     unsigned short to_blocks, unsigned long long policy) {
    (void)policy;
    load_later(to, map, c0, c1, 0, 2, barrier, to_blocks);
}
RFT_FN void rft__map_load3_multicast(unsigned to, const rft__cuda_map *map, int c0, int c1, int c2, unsigned barrier,
                                     unsigned short to_blocks, unsigned long long policy) {
    (void)policy;
    load_later(to, map, c0, c1, c2, 3, barrier, to_blocks);
}

/* One 16-byte piece of a box, elements outside of the tensor as zeros. */
static void load_piece(const emulated_map *m, const late *l, unsigned row, unsigned piece, unsigned char *to) {
    const unsigned per = 16 / m->size;
    for (unsigned i = 0; i < per; i++) {
        const int64_t c[3] = {l->c[0] + (int64_t)(piece * per + i), l->c[1] + (int64_t)row, l->c[2]};
        bool inside = true;
        for (int d = 0; d < m->rank; d++) {
            inside = inside && c[d] >= 0 && (uint64_t)c[d] < m->dim[d];
        }
        const uint64_t offset =
            (uint64_t)c[0] * m->size + (uint64_t)c[1] * m->stride[1] + (m->rank > 2 ? (uint64_t)c[2] * m->stride[2] : 0);
        memset(to + i * m->size, 0, m->size);
        if (inside) {
            memcpy(to + i * m->size, (const unsigned char *)m->address + offset, m->size);
        }
    }
}

/* ---- stores by TMA: shared memory is read as late as the wait allows ---- */

static void store_later(const rft__cuda_map *map, unsigned from, int c0, int c1, int c2, int rank) {
    const emulated_map *const m = (const emulated_map *)(uintptr_t)map->word[0];
    fault_unless(from % 1024 == 0 && m->rank == rank && now->waited && now->n_store < QUEUE);
    const fiber *const first = now - now->thread.x % 32;
    for (int i = 0; i < 32; i++) {
        fault_unless(!first[i].unfenced);
    }
    now->store[now->n_store++ % QUEUE] = (store){m, {c0, c1, c2}, from, now->store_groups};
}
RFT_FN void rft__map_store2(const rft__cuda_map *map, unsigned from, int c0, int c1) { store_later(map, from, c0, c1, 0, 2); }
RFT_FN void rft__map_store3(const rft__cuda_map *map, unsigned from, int c0, int c1, int c2) {
    store_later(map, from, c0, c1, c2, 3);
}
RFT_FN void rft__bulk_commit(void) { now->store_groups++; }

static void store_now(const store *s) {
    const emulated_map *const m = s->map;
    for (unsigned i = 0; i < m->box[0] * m->box[1]; i++) {
        const unsigned column = i % m->box[0], row = i / m->box[0];
        const uint64_t c[3] = {(uint64_t)s->c[0] + column, (uint64_t)s->c[1] + row, (uint64_t)s->c[2]};
        const bool piece_begins = c[0] * m->size / 16 * 16 < m->dim[0] * m->size; /* a piece of 16 bytes is stored whole */
        if (piece_begins && c[1] < m->dim[1] && (m->rank < 3 || c[2] < m->dim[2])) {
            const uint64_t offset = c[0] * m->size + c[1] * m->stride[1] + (m->rank > 2 ? c[2] * m->stride[2] : 0);
            unsigned char *const to = (unsigned char *)(uintptr_t)m->address + offset;
            memcpy(to, now->block->memory + s->from + row * 128 + (column * m->size ^ row % 8 * 16), m->size);
        }
    }
}

/* The oldest groups are read; this thread's own alone. */
static void bulk_wait(int pending) {
    int done = 0;
    while (done < now->n_store && now->store[done].group < now->store_groups - pending) {
        store_now(&now->store[done++]);
    }
    memmove(now->store, now->store + done, (size_t)(now->n_store - done) * sizeof(store));
    now->n_store -= done;
}
#define RFT_BULK_WAIT_READ(pending) bulk_wait(pending)

static void arrive_late(int i) {
    const late l = lates[i];
    lates[i] = lates[--n_late];
    fault_unless(l.to->running > 0);
    if (l.by != NULL) {
        barrier_step(barrier_at(l.to, l.barrier), 1, 0);
        return;
    }
    if (l.map == NULL) {
        fault_unless(l.from->running > 0);
        memcpy(l.to->memory + l.address, l.from->memory + l.source, l.bytes);
        barrier_step(barrier_at(l.to, l.barrier), 0, -(long)l.bytes);
        return;
    }
    for (unsigned r = 0; r < l.map->box[1]; r++) {
        for (unsigned piece = 0; piece < 8; piece++) {
            load_piece(l.map, &l, r, piece, l.to->memory + l.address + r * 128 + (piece ^ (r & 7u)) * 16);
        }
    }
    barrier_step(barrier_at(l.to, l.barrier), 0, -box_bytes(l.map));
}

/* ---- wgmma: rows of 128 bytes, swizzled, of k or of the operand's own side ---- */

static float operand_at(uint64_t descriptor, int row, int k, bool mn) {
    const unsigned size = RFT_X_TYPE == 1 ? 4 : 2, stride = (unsigned)(descriptor >> 32 & 0x3fffu) << 4;
    const unsigned leading = (unsigned)(descriptor >> 16 & 0x3fffu) << 4, start = (unsigned)(descriptor & 0x3fffu) << 4;
    const unsigned of_k = (unsigned)row / 8 * stride + (unsigned)row % 8 * 128 + (unsigned)k * size;
    const unsigned of_mn =
        (unsigned)row / 64 * leading + (unsigned)k / 8 * stride + (unsigned)k % 8 * 128 + (unsigned)row % 64 * size;
    const unsigned linear = start + (mn ? of_mn : of_k);
    const unsigned char *const p = shared + (linear ^ ((linear >> 7 & 7u) << 4));
    uint32_t bits = 0;
    memcpy(&bits, p, size);
    return RFT_X_TYPE == 1 ? __uint_as_float(bits) : RFT_X_TYPE == 3 ? __uint_as_float(bits << 16) : rft__widen_f16(bits);
}

#if RFT_TURNED
#define A_MN RFT_W_MN
#define B_MN RFT_X_MN
#else
#define A_MN RFT_X_MN
#define B_MN RFT_W_MN
#endif

static void multiply_now(const product *p) {
    const int t = (int)now->thread.x % 128, depth = RFT_X_TYPE == 1 ? 8 : 16;
    fault_unless(p->a >> 62 == 1 && p->b >> 62 == 1 && (p->a >> 49 & 7u) == 0);
    for (int r = 0; r < p->n / 2; r++) {
        double sum = p->accumulate ? p->d[r] : 0;
        for (int k = 0; k < depth; k++) {
            sum += (double)operand_at(p->a, t / 32 * 16 + t % 32 / 4 + r / 2 % 2 * 8, k, A_MN) *
                   (double)operand_at(p->b, r / 4 * 8 + t % 4 * 2 + r % 2, k, B_MN);
        }
        p->d[r] = (float)sum;
    }
}

static int wgmma_n;
static void multiply_later(float *d, unsigned long long a, unsigned long long b, int accumulate) {
    fault_unless(now->n_product < QUEUE);
    now->product[now->n_product++ % QUEUE] = (product){d, a, b, wgmma_n, accumulate};
}
#define RFT_WGMMA_N(n) (wgmma_n = (n), multiply_later)

RFT_FN void rft__wgmma_fence(void) {}
RFT_FN void rft__wgmma_commit(void) { now->group_end[now->groups++] = now->n_product; }

/* The oldest groups are done; a warp waits as one. */
static void wgmma_wait(int pending) {
    __syncwarp();
    if (now->groups > pending) {
        const int done = now->group_end[now->groups - pending - 1];
        for (int i = 0; i < done; i++) {
            multiply_now(&now->product[i]);
        }
        memmove(now->product, now->product + done, (size_t)(now->n_product - done) * sizeof(product));
        for (int g = 0; g < pending; g++) {
            now->group_end[g] = now->group_end[now->groups - pending + g] - done;
        }
        now->groups = pending, now->n_product -= done;
    }
    __syncwarp();
}
#define RFT_WGMMA_WAIT(pending) wgmma_wait(pending)

/* ---- a launch ---- */

static const rft__cuda_args *launch_args;
static const rft__cuda_map *launch_maps;
static void call_kernel(void);

static void fiber_main(void) {
    call_kernel();
    fault_unless(now->n_store == 0); /* shared memory goes with the block */
    now->done = true;
    now->block->running--;
    progress++;
    swapcontext(&now->context, &scheduler);
}

static void start_cluster(unsigned first, char *stacks) {
    memset(&cluster_meeting, 0, sizeof cluster_meeting);
    n_late = 0;
    for (unsigned b = 0; b < RFT_CLUSTER; b++) {
        memset(&blocks[b], 0, sizeof blocks[b]);
        memset(blocks[b].memory, 0xff, SHARED);
        blocks[b].index.x = first + b, blocks[b].rank = b, blocks[b].running = (int)blockDim.x;
        for (unsigned t = 0; t < blockDim.x; t++) {
            const unsigned i = b * blockDim.x + t;
            memset(&fibers[i], 0, sizeof fibers[i]);
            fibers[i].thread.x = t, fibers[i].block = &blocks[b];
            getcontext(&fibers[i].context);
            fibers[i].context.uc_stack.ss_sp = stacks + (size_t)i * STACK;
            fibers[i].context.uc_stack.ss_size = STACK;
            makecontext(&fibers[i].context, fiber_main, 0);
        }
    }
}

/* Everybody's turn, from a random thread on, upwards or downwards; then some of what is under way arrives. */
static int one_round(unsigned count) {
    const unsigned from = roll(count), down = roll(2);
    int left = 0;
    for (unsigned i = 0; i < count; i++) {
        now = &fibers[(from + (down ? count - i : i)) % count];
        if (!now->done) {
            swapcontext(&scheduler, &now->context);
            left += !now->done;
        }
    }
    for (int tries = n_late; tries > 0 && n_late > 0; tries--) {
        if (roll(3) == 0) {
            arrive_late((int)roll((unsigned)n_late));
            progress++;
        }
    }
    return left;
}

/* Whether what the launch does not have is as it was. */
static bool nothing_beyond(void) {
    bool same = true;
    for (unsigned b = 0; b < RFT_CLUSTER; b++) {
        for (unsigned i = emulator_shared; i < SHARED; i++) {
            same = same && blocks[b].memory[i] == 0xff;
        }
    }
    fault_unless(same);
    return same;
}

static bool run_cluster(void) {
    int idle = 0;
    for (int left = 1; left > 0;) {
        const long before = progress;
        left = one_round(blockDim.x * RFT_CLUSTER);
        idle = progress == before ? idle + 1 : 0;
        if (idle == STUCK) {
            return false;
        }
    }
    return n_late == 0 && nothing_beyond();
}

/* Runs the grid, for even seeds from its end; false: a cluster hung, or something was at fault. */
bool emulator_launch(const rft__cuda_args *args, const rft__cuda_map maps[RFT_CUDA_MAPS], unsigned grid, unsigned threads,
                     uint64_t seed) {
    char *stacks = malloc((size_t)BLOCKS_MOST * THREADS_MOST * STACK);
    bool ok = stacks != NULL && threads <= THREADS_MOST && grid % RFT_CLUSTER == 0;
    launch_args = args, launch_maps = maps, blockDim.x = threads, gridDim.x = grid, dice = seed;
    emulator_faults = 0;
    for (unsigned done = 0; ok && done < grid; done += RFT_CLUSTER) {
        start_cluster(seed % 2 ? done : grid - RFT_CLUSTER - done, stacks);
        ok = run_cluster();
    }
    free(stacks);
    return ok && emulator_faults == 0;
}
