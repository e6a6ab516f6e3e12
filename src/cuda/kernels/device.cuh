/* SPDX-License-Identifier: Apache-2.0
 *
 * device.cuh - what C lacks on an NVIDIA GPU and more than one kernel needs: dependent launch, loads with a cache policy,
 * conversions, asynchronous copies, memory barriers, tensor maps. Each function is one instruction, or the loop that waits for
 * one. Included by every kernel. Invariant: each one that touches memory is volatile, so that it stays behind rft__pdl_wait where
 * the text has it behind; what runs on Hopper only is there only when compiled for it.
 */
#ifndef RFT_DEVICE_CUH
#define RFT_DEVICE_CUH

#define RFT_FN     static __device__ __forceinline__
#define RFT_UNROLL _Pragma("unroll")
#define RFT_HOPPER (__CUDA_ARCH__ >= 900)

#include "cuda_args.h"

/* ---- dependent launch ---- */

/* From here on this kernel may touch what the kernel before wrote or read. */
RFT_FN void rft__pdl_wait(void) {
#if RFT_HOPPER
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Lets blocks of the next kernel start where there is room. */
RFT_FN void rft__pdl_launch(void) {
#if RFT_HOPPER
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* ---- numbers ---- */

/* Within 1 ulp for a normal x; 0 where 1 / x is denormal or x is infinite. */
RFT_FN float rft__reciprocal(float x) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

/* 2^x within 2^-22.5 of it; 0 where that is denormal. */
RFT_FN float rft__exp2(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

/* NaN where either is. */
RFT_FN float rft__max_nan(float a, float b) {
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

RFT_FN float rft__min_nan(float a, float b) {
    float r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

RFT_FN float rft__widen_f16(unsigned bits) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"((unsigned short)bits));
    return f;
}

RFT_FN unsigned rft__pair_f16(float low, float high) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

RFT_FN unsigned rft__pair_bf16(float low, float high) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

/* ---- 16 bytes from global memory; p is aligned to 16 ---- */

RFT_FN uint4 rft__load16(const void *p) {
    uint4 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

/* For data that nobody writes during this kernel and nobody reads twice. */
RFT_FN unsigned long long rft__policy_stream(void) {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* For data that many blocks read. */
RFT_FN unsigned long long rft__policy_keep(void) {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* ---- shared memory ---- */

RFT_FN unsigned rft__shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

/* Four 8x8 matrices of 16-bit elements; row i of matrix j is at the address that lane 8 j + i gives. */
RFT_FN void rft__ldmatrix4(unsigned r[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

RFT_FN void rft__ldmatrix4_trans(unsigned r[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

/* Threads of some warps meet; id 1..15, since __syncthreads has 0. */
RFT_FN void rft__bar_sync(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
RFT_FN void rft__bar_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

/* ---- cp.async: global to shared by the threads themselves ---- */

/* The first `bytes` (0..16) are copied, the others become 0; both addresses are aligned to 16. */
RFT_FN void rft__cp_async16(unsigned to, const void *from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

RFT_FN void rft__cp_async16_policy(unsigned to, const void *from, int bytes, unsigned long long policy) {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(to), "l"(from), "r"(bytes), "l"(policy)
                 : "memory");
}

/* size 4 or 8, a constant; both addresses are aligned to it. */
#define RFT_CP_ASYNC(to, from, size, bytes)                                                                                      \
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(size), "r"(bytes) : "memory")

RFT_FN void rft__cp_async_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* Until at most `pending` (a constant) groups of this thread are under way. */
#define RFT_CP_ASYNC_WAIT(pending) asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

#if RFT_HOPPER
/* True in one lane of a converged warp; the compiler sees that it is one. */
RFT_FN bool rft__elect(void) {
    unsigned elected;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "elect.sync _|p, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(elected));
    return elected != 0;
}

/* ---- mbarrier; `barrier` is a shared address of 8 bytes ---- */

RFT_FN void rft__mbarrier_init(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/* Makes initialised barriers visible to the async proxy and the cluster; then threads still have to meet. */
RFT_FN void rft__mbarrier_init_fence(void) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

RFT_FN void rft__mbarrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

RFT_FN void rft__mbarrier_expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/* Under RFT_KERNEL_DEBUG a wait for a wrong barrier traps after seconds. */
#ifdef RFT_KERNEL_DEBUG
#define RFT_SPIN_START const long long since = clock64()
#define RFT_SPIN_CHECK                                                                                                           \
    if (clock64() - since > 4000000000ll)                                                                                        \
    __trap()
#else
#define RFT_SPIN_START (void)0
#define RFT_SPIN_CHECK (void)0
#endif

/* Until the phase of this parity is complete: a new barrier is in phase 0, so waiting for parity 1 returns at once. */
#define RFT_AWAIT(name, order)                                                                                                   \
    RFT_FN void name(unsigned barrier, unsigned parity) {                                                                        \
        RFT_SPIN_START;                                                                                                          \
        for (unsigned done = 0; !done;) {                                                                                        \
            asm volatile("{\n"                                                                                                   \
                         ".reg .pred p;\n"                                                                                       \
                         "mbarrier.try_wait.parity" order ".shared::cta.b64 p, [%1], %2;\n"                                      \
                         "selp.u32 %0, 1, 0, p;\n"                                                                               \
                         "}"                                                                                                     \
                         : "=r"(done)                                                                                            \
                         : "r"(barrier), "r"(parity)                                                                             \
                         : "memory");                                                                                            \
            RFT_SPIN_CHECK;                                                                                                      \
        }                                                                                                                        \
    }
RFT_AWAIT(rft__await, "")
/* The arrivals may be of other blocks of the cluster; what they wrote before is seen. */
RFT_AWAIT(rft__await_cluster, ".acquire.cluster")

/* ---- clusters ---- */

RFT_FN unsigned rft__cluster_rank(void) {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

RFT_FN void rft__cluster_arrive(void) { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
RFT_FN void rft__cluster_wait(void) { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

/* The address in block `rank` that corresponds to a shared address here. */
RFT_FN unsigned rft__cluster_map(unsigned address, unsigned rank) {
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    return remote;
}

/* ---- bulk copies: one thread asks, the barrier counts bytes ---- */

/* Addresses and bytes are multiples of 16. */
RFT_FN void rft__bulk_load(unsigned to, const void *from, unsigned bytes, unsigned barrier, unsigned long long policy) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
        : "memory");
}

/* Shared memory that threads wrote becomes visible to bulk and tensor copies and to wgmma: each writer, before they meet. */
RFT_FN void rft__fence_async(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* ---- tensor maps; coordinates fastest first ---- */

RFT_FN void rft__map_prefetch(const rft__cuda_map *map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

RFT_FN void rft__map_load2(unsigned to, const rft__cuda_map *map, int c0, int c1, unsigned barrier, unsigned long long policy) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
                 " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(c0), "r"(c1), "l"(policy)
                 : "memory");
}

RFT_FN void rft__map_load3(unsigned to, const rft__cuda_map *map, int c0, int c1, int c2, unsigned barrier,
                           unsigned long long policy) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
                 " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "l"(policy)
                 : "memory");
}

/* To the same place in every block of the cluster whose bit is set in `blocks`; each block's own barrier counts. */
RFT_FN void rft__map_load2_multicast(unsigned to, const rft__cuda_map *map, int c0, int c1, unsigned barrier,
                                     unsigned short blocks, unsigned long long policy) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint"
                 " [%0], [%1, {%3, %4}], [%2], %5, %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(c0), "r"(c1), "h"(blocks), "l"(policy)
                 : "memory");
}

RFT_FN void rft__map_load3_multicast(unsigned to, const rft__cuda_map *map, int c0, int c1, int c2, unsigned barrier,
                                     unsigned short blocks, unsigned long long policy) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint"
                 " [%0], [%1, {%3, %4, %5}], [%2], %6, %7;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "h"(blocks), "l"(policy)
                 : "memory");
}

/* ---- wgmma's own order ---- */

RFT_FN void rft__wgmma_fence(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
RFT_FN void rft__wgmma_commit(void) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
#define RFT_WGMMA_WAIT(pending) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory")
#endif

#endif
