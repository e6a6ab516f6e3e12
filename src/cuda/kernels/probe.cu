/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.cu - what a GPU can do at most: bytes read or copied, multiply-adds from registers and from shared memory, a kernel
 * that does nothing. Launched by src/probe/measure_cuda.c, which counts; no other kernel is like these.
 *
 * config.h: RFT_PROBE (one of the names below), RFT_COMPUTE_TYPE, RFT_THREADS of a block, RFT_LOADS in flight of a thread.
 * Data of the multiply-adds is random, since zeros cost less power and so run at higher clocks than any real product. Results
 * are stored where they equal a number that they never do, so that nothing is left out.
 */
#define RFT_PROBE_READ  1
#define RFT_PROBE_COPY  2
#define RFT_PROBE_EMPTY 3
#define RFT_PROBE_FFMA  4
#define RFT_PROBE_MMA   5
#define RFT_PROBE_WGMMA 6

#include "config.h"
#include "device.cuh"

#define NEVER 0x1234567u

/* ---- memory: blocks stride through `count` pieces of 16 bytes; another block takes another part in each pass ---- */

/* Through L2 alone. */
RFT_FN uint4 load(const uint4 *p) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

RFT_FN void store(uint4 *p, uint4 v) {
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

RFT_FN long long first_of(int pass) {
    const unsigned block = (blockIdx.x + (unsigned)pass * 37u) % gridDim.x;
    return (long long)block * (RFT_THREADS * RFT_LOADS) + threadIdx.x;
}

#if RFT_PROBE == RFT_PROBE_READ || RFT_PROBE == RFT_PROBE_COPY
RFT_FN void work(const uint4 *from, uint4 *to, long long count, int passes) {
    const long long stride = (long long)gridDim.x * (RFT_THREADS * RFT_LOADS);
    unsigned sum = 0;
    for (int pass = 0; pass < passes; pass++) {
        for (long long i = first_of(pass); i + (RFT_LOADS - 1) * RFT_THREADS < count; i += stride) {
            uint4 v[RFT_LOADS];
            RFT_UNROLL
            for (int j = 0; j < RFT_LOADS; j++) {
                v[j] = load(from + i + j * RFT_THREADS);
            }
            RFT_UNROLL
            for (int j = 0; j < RFT_LOADS; j++) {
                if (RFT_PROBE == RFT_PROBE_COPY) {
                    store(to + i + j * RFT_THREADS, v[j]);
                } else {
                    sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
                }
            }
        }
    }
    if (sum == NEVER) {
        to[0].x = sum;
    }
}

#elif RFT_PROBE == RFT_PROBE_EMPTY
RFT_FN void work(const uint4 *from, uint4 *to, long long count, int passes) {}

#else
/* ---- arithmetic: each thread or warpgroup repeats its step `count` times ---- */

RFT_FN unsigned hash(unsigned i) {
    i = (i ^ i >> 16) * 0x7feb352du;
    i = (i ^ i >> 15) * 0x846ca68bu;
    return i ^ i >> 16;
}

/* Elements of either sign with magnitudes from 1/2 to 1: two of 16 bits, or one tf32. */
RFT_FN unsigned element(unsigned i) {
    const unsigned h = hash(i + 1);
#if RFT_COMPUTE_TYPE == 2
    return (h & 0x83ff83ffu) | 0x38003800u;
#elif RFT_COMPUTE_TYPE == 3
    return (h & 0x807f807fu) | 0x3f003f00u;
#else
    return (h & 0x807fe000u) | 0x3f000000u;
#endif
}

RFT_FN void keep(uint4 *to, const float *sums, int n) {
    float sum = 0.0f;
    RFT_UNROLL
    for (int i = 0; i < n; i++) {
        sum += sums[i];
    }
    if (__float_as_uint(sum) == NEVER) {
        to[0].x = NEVER;
    }
}

#if RFT_PROBE == RFT_PROBE_FFMA
#define SUMS  8
#define STEPS 16
RFT_FN void work(const uint4 *from, uint4 *to, long long count, int passes) {
    const float a = 0.5f * __uint_as_float(element(threadIdx.x)), b = __uint_as_float(element(threadIdx.x + 999));
    float sum[SUMS];
    RFT_UNROLL
    for (int i = 0; i < SUMS; i++) {
        sum[i] = __uint_as_float(element(threadIdx.x * SUMS + i));
    }
    for (long long n = 0; n < count; n++) {
        RFT_UNROLL
        for (int i = 0; i < SUMS * STEPS; i++) {
            sum[i % SUMS] = __fmaf_rn(sum[i % SUMS], a, b);
        }
    }
    keep(to, sum, SUMS);
}

#elif RFT_PROBE == RFT_PROBE_MMA
#include "mma.cuh"
#define SUMS  8
#define STEPS 4
#if RFT_COMPUTE_TYPE == 2
#define MMA rft__mma_f16
#elif RFT_COMPUTE_TYPE == 3
#define MMA rft__mma_bf16
#else
#define MMA rft__mma_tf32
#endif
RFT_FN void work(const uint4 *from, uint4 *to, long long count, int passes) {
    unsigned a[SUMS][4], b[2];
    float sum[4 * SUMS];
    RFT_UNROLL
    for (int i = 0; i < 4 * SUMS; i++) {
        a[i / 4][i % 4] = element(threadIdx.x * 64 + i);
        sum[i] = 0.0f;
    }
    b[0] = element(threadIdx.x * 64 + 62);
    b[1] = element(threadIdx.x * 64 + 63);
    for (long long n = 0; n < count; n++) {
        RFT_UNROLL
        for (int i = 0; i < SUMS * STEPS; i++) {
            MMA(&sum[4 * (i % SUMS)], a[i % SUMS], b);
        }
    }
    keep(to, sum, 4 * SUMS);
}

#else
#include "hopper.cuh"
/* Two warpgroups, each with its own 64 rows of A, share 256 rows of B: 128 bytes of k a row, four wgmma a step. */
#define A_BYTES (64 * RFT_SWIZZLE_ROW)
#define B_BYTES (256 * RFT_SWIZZLE_ROW)
#define STEPS   (RFT_SWIZZLE_ROW / 32)
RFT_FN void work(const uint4 *from, uint4 *to, long long count, int passes) {
    static __shared__ __align__(RFT_SWIZZLE_ATOM) unsigned tile[(2 * A_BYTES + B_BYTES) / 4];
    const unsigned base = rft__shared(tile);
    const unsigned long long a = rft__descriptor_k_major(base + threadIdx.x / 128 * A_BYTES),
                             b = rft__descriptor_k_major(base + 2 * A_BYTES);
    float d[128];
    for (unsigned i = threadIdx.x; i < sizeof tile / 4; i += RFT_THREADS) {
        tile[i] = element(i);
    }
    RFT_UNROLL
    for (int i = 0; i < 128; i++) {
        d[i] = 0.0f;
    }
    rft__fence_async();
    __syncthreads();
    rft__wgmma_fence();
    for (long long n = 0; n < count; n++) {
        RFT_UNROLL
        for (int i = 0; i < STEPS; i++) {
            rft__wgmma_n256(d, rft__descriptor_add(a, RFT_DESCRIPTOR_STEP_K * i),
                            rft__descriptor_add(b, RFT_DESCRIPTOR_STEP_K * i), 1);
        }
        rft__wgmma_commit();
        RFT_WGMMA_WAIT(1);
    }
    RFT_WGMMA_WAIT(0);
    keep(to, d, 128);
}
#endif
#endif

extern "C" __global__ void __launch_bounds__(RFT_THREADS) probe(const uint4 *from, uint4 *to, long long count, int passes) {
    work(from, to, count, passes);
}
