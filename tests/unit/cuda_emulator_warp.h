/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_emulator_warp.h - the part of cuda_emulator.h that kernels without tiles use: shuffles, barriers of some warps, loads of
 * 16 bytes, bulk copies that barriers count. A bulk copy's bytes arrive when somebody looks at its barrier, NaN until then.
 */
#define min(a, b) ((a) < (b) ? (a) : (b))

static meeting named_meeting[16];

RFT_FN void rft__bar_sync(int id, int threads) { meet(&named_meeting[id], threads); }

static uint32_t shuffle(uint32_t word, int lane) { return all_lanes(&word, 1)[lane >= 0 && lane < WARP ? lane : lane_of()][0]; }

static float shuffle_float(float v, int lane) { return __uint_as_float(shuffle(__float_as_uint(v), lane)); }

static int __shfl_sync(unsigned mask, int v, int lane) { return mask == ~0u ? (int)shuffle((uint32_t)v, lane) : 0; }
static float __shfl_xor_sync(unsigned mask, float v, int distance) {
    return mask == ~0u ? shuffle_float(v, lane_of() ^ distance) : NAN;
}
static float __shfl_down_sync(unsigned mask, float v, int distance) {
    return mask == ~0u ? shuffle_float(v, lane_of() + distance) : NAN;
}

static int atomicSub(int *p, int v) {
    const int before = *p;
    *p -= v;
    return before;
}

RFT_FN bool rft__elect(void) { return lane_of() == 0; }

/* ---- loads ---- */

RFT_FN uint4 rft__load16(const void *p) {
    uint4 v;
    emulator_faults += (uintptr_t)p % 16 != 0;
    memcpy(&v, p, sizeof v);
    return v;
}

/* ---- barriers and bulk copies ---- */

typedef struct counter { /* an mbarrier */
    int arrivals, pending, bytes, phase;
} counter;

typedef struct bulk_copy { unsigned to, bytes, barrier; const void *from; } bulk_copy;

enum { MAX_BULK = 4096 };

static counter counters[SHARED / 8];
static bulk_copy bulk[MAX_BULK];
static int n_bulk;

static void counter_advance(counter *c) {
    if (c->pending == 0 && c->bytes == 0) {
        c->pending = c->arrivals;
        c->phase++;
        progress++;
    }
}

RFT_FN void rft__mbarrier_init(unsigned barrier, int arrivals) { counters[barrier / 8] = (counter){arrivals, arrivals, 0, 0}; }
RFT_FN void rft__mbarrier_init_fence(void) {}
RFT_FN void rft__fence_async(void) {}

RFT_FN void rft__mbarrier_expect(unsigned barrier, unsigned bytes) {
    counter *const c = &counters[barrier / 8];
    emulator_faults += barrier % 8 != 0 || c->pending == 0;
    c->bytes += (int)bytes;
    c->pending--;
    counter_advance(c);
}

RFT_FN void rft__bulk_load(unsigned to, const void *from, unsigned bytes, unsigned barrier, unsigned long long policy) {
    emulator_faults += to % 16 != 0 || (uintptr_t)from % 16 != 0 || bytes % 16 != 0 || bytes == 0;
    emulator_faults += policy != 0 || n_bulk == MAX_BULK;
    bulk[n_bulk++ % MAX_BULK] = (bulk_copy){to, bytes, barrier, from};
    memset(shared_bytes + to, 0xff, bytes);
}

static void bulk_arrive(unsigned barrier) {
    int kept = 0;
    for (int i = 0; i < n_bulk; i++) {
        if (bulk[i].barrier == barrier) {
            memcpy(shared_bytes + bulk[i].to, bulk[i].from, bulk[i].bytes);
            counters[barrier / 8].bytes -= (int)bulk[i].bytes;
        } else {
            bulk[kept++] = bulk[i];
        }
    }
    if (kept < n_bulk) {
        counter_advance(&counters[barrier / 8]);
    }
    n_bulk = kept;
}

RFT_FN void rft__await(unsigned barrier, unsigned parity) {
    bulk_arrive(barrier);
    while ((unsigned)counters[barrier / 8].phase % 2 == parity) {
        yield();
        bulk_arrive(barrier);
    }
}
