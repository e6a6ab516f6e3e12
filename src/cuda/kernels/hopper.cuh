/* SPDX-License-Identifier: Apache-2.0
 *
 * hopper.cuh - what only kernels of sm_90a need beside device.cuh: registers moved between warpgroups, bytes sent to another
 * block of the cluster, wgmma with both operands in shared memory.
 * Included by stream_sm90.cu, gemm_sm90.cu and probe.cu, after config.h, whose compute type is that of wgmma.
 *
 * A kernel may define before the include:
 *     RFT_WGMMA_A_MN, RFT_WGMMA_B_MN   1: that operand is M- or N-major in shared memory (16-bit types only); default 0
 */
#ifndef RFT_CUDA_KERNELS_HOPPER_CUH
#define RFT_CUDA_KERNELS_HOPPER_CUH

#include "device.cuh"
#include "hopper_layout.h"

#ifndef RFT_WGMMA_A_MN
#define RFT_WGMMA_A_MN 0
#endif
#ifndef RFT_WGMMA_B_MN
#define RFT_WGMMA_B_MN 0
#endif

/* Registers a thread, for the whole warpgroup: n is literal, a multiple of 8 in 24..256. */
#define RFT_REGISTERS_RAISE(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n))
#define RFT_REGISTERS_LOWER(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n))

/* ---- clusters: remote is from rft__cluster_map ---- */
/* Arrives by itself: the barrier, of the same block as remote, counts the bytes, a multiple of 16. */
RFT_FN void rft__cluster_copy(unsigned remote, unsigned from, unsigned bytes, unsigned remote_barrier) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(remote),
                 "r"(from), "r"(bytes), "r"(remote_barrier)
                 : "memory");
}
/* Tells block `rank` that this thread has read what it may now overwrite. It orders no write and waits for no fence. */
RFT_FN void rft__mbarrier_free_at(unsigned barrier, unsigned rank) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(rft__cluster_map(barrier, rank)) : "memory");
}
/* After rft__mbarrier_init_fence, where nothing else must be seen; rft__cluster_wait follows. */
RFT_FN void rft__cluster_arrive_relaxed(void) { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }

/* ---- wgmma: d (64 x N, f32) = a (64 x k) * b (N x k)^T + d, k = 32 bytes; both operands in shared memory ----
 * rft__wgmma_n<N>(d, a, b, accumulate): N / 2 registers d, descriptors a and b; accumulate 0: d starts at 0.
 * rft__wgmma_fence comes before the first one after other code touched d, rft__wgmma_commit closes a group, and d may be
 * touched again after RFT_WGMMA_WAIT. The B side takes the same kinds of descriptors, with N for M. */
#define RFT_TEXT(x)  RFT_TEXT_(x)
#define RFT_TEXT_(x) #x

#if RFT_COMPUTE_TYPE == 2
#define RFT_WGMMA_TYPES "k16.f32.f16.f16 "
#elif RFT_COMPUTE_TYPE == 3
#define RFT_WGMMA_TYPES "k16.f32.bf16.bf16 "
#else
#define RFT_WGMMA_TYPES "k8.f32.tf32.tf32 "
#endif
#if RFT_COMPUTE_TYPE == 4
#define RFT_WGMMA_MAJOR ""
#else
#define RFT_WGMMA_MAJOR ", " RFT_TEXT(RFT_WGMMA_A_MN) ", " RFT_TEXT(RFT_WGMMA_B_MN)
#endif

/* "%0, ..., %(n-1)" and the operands behind it, grown by 4 and 8 registers a row. */
#define RFT_D_4   "%0, %1, %2, %3"
#define RFT_D_8   RFT_D_4 ", %4, %5, %6, %7"
#define RFT_D_12  RFT_D_8 ", %8, %9, %10, %11"
#define RFT_D_16  RFT_D_12 ", %12, %13, %14, %15"
#define RFT_D_24  RFT_D_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define RFT_D_28  RFT_D_24 ", %24, %25, %26, %27"
#define RFT_D_32  RFT_D_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define RFT_D_40  RFT_D_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define RFT_D_48  RFT_D_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define RFT_D_56  RFT_D_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define RFT_D_64  RFT_D_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define RFT_D_72  RFT_D_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define RFT_D_80  RFT_D_72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define RFT_D_88  RFT_D_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define RFT_D_96  RFT_D_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define RFT_D_104 RFT_D_96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define RFT_D_112 RFT_D_104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define RFT_D_120 RFT_D_112 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define RFT_D_128 RFT_D_120 ", %120, %121, %122, %123, %124, %125, %126, %127"

#define RFT_C_4(i)   "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define RFT_C_8(i)   RFT_C_4(i), RFT_C_4(i + 4)
#define RFT_C_16(i)  RFT_C_8(i), RFT_C_8(i + 8)
#define RFT_C_24(i)  RFT_C_16(i), RFT_C_8(i + 16)
#define RFT_C_28(i)  RFT_C_24(i), RFT_C_4(i + 24)
#define RFT_C_32(i)  RFT_C_16(i), RFT_C_16(i + 16)
#define RFT_C_40(i)  RFT_C_32(i), RFT_C_8(i + 32)
#define RFT_C_48(i)  RFT_C_32(i), RFT_C_16(i + 32)
#define RFT_C_56(i)  RFT_C_48(i), RFT_C_8(i + 48)
#define RFT_C_64(i)  RFT_C_32(i), RFT_C_32(i + 32)
#define RFT_C_72(i)  RFT_C_64(i), RFT_C_8(i + 64)
#define RFT_C_80(i)  RFT_C_64(i), RFT_C_16(i + 64)
#define RFT_C_88(i)  RFT_C_80(i), RFT_C_8(i + 80)
#define RFT_C_96(i)  RFT_C_64(i), RFT_C_32(i + 64)
#define RFT_C_112(i) RFT_C_96(i), RFT_C_16(i + 96)
#define RFT_C_128(i) RFT_C_64(i), RFT_C_64(i + 64)

/* R = N / 2 registers; a, b, s: the numbers behind theirs. */
#define RFT_WGMMA(N, R, a_, b_, s_)                                                                                              \
    RFT_FN void rft__wgmma_n##N(float *d, unsigned long long a, unsigned long long b, int accumulate) {                          \
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" #s_ ", 0;\n\t"                                                     \
                     "wgmma.mma_async.sync.aligned.m64n" #N RFT_WGMMA_TYPES "{" RFT_D_##R "}, %" #a_ ", %" #b_                   \
                                                                                          ", p, 1, 1" RFT_WGMMA_MAJOR ";\n\t}"   \
                     : RFT_C_##R(0)                                                                                              \
                     : "l"(a), "l"(b), "r"(accumulate));                                                                         \
    }
RFT_WGMMA(8, 4, 4, 5, 6)
RFT_WGMMA(16, 8, 8, 9, 10)
RFT_WGMMA(32, 16, 16, 17, 18)
RFT_WGMMA(48, 24, 24, 25, 26)
RFT_WGMMA(56, 28, 28, 29, 30)
RFT_WGMMA(64, 32, 32, 33, 34)
RFT_WGMMA(80, 40, 40, 41, 42)
RFT_WGMMA(96, 48, 48, 49, 50)
RFT_WGMMA(112, 56, 56, 57, 58)
RFT_WGMMA(128, 64, 64, 65, 66)
RFT_WGMMA(144, 72, 72, 73, 74)
RFT_WGMMA(176, 88, 88, 89, 90)
RFT_WGMMA(192, 96, 96, 97, 98)
RFT_WGMMA(224, 112, 112, 113, 114)
RFT_WGMMA(256, 128, 128, 129, 130)

/* The one of N = n, where n is a macro. */
#define RFT_WGMMA_N(n)  RFT_WGMMA_N_(n)
#define RFT_WGMMA_N_(n) rft__wgmma_n##n

/* ---- what only gemm_sm90.cu needs ---- */
RFT_FN unsigned long long rft__policy_normal(void) {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
RFT_FN void rft__prefetch_l2(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
RFT_FN float4 rft__cluster_load4(unsigned remote) {
    float4 v;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(remote)
                 : "memory");
    return v;
}
/* Four 8x8 matrices of 16-bit elements, a word a lane; row i of matrix j goes to the address that lane 8 j + i gives. */
RFT_FN void rft__stmatrix4(unsigned address, const unsigned *v) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v[0]), "r"(v[1]),
                 "r"(v[2]), "r"(v[3])
                 : "memory");
}
/* The same matrices transposed. */
RFT_FN void rft__stmatrix4_turned(unsigned address, const unsigned *v) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v[0]), "r"(v[1]),
                 "r"(v[2]), "r"(v[3])
                 : "memory");
}

/* ---- stores of a box by TMA, in groups, each of one thread; elements outside of the tensor are left alone ---- */
RFT_FN void rft__map_store2(const rft__cuda_map *map, unsigned from, int c0, int c1) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from), "r"(c0),
                 "r"(c1)
                 : "memory");
}
RFT_FN void rft__map_store3(const rft__cuda_map *map, unsigned from, int c0, int c1, int c2) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map), "r"(from), "r"(c0),
                 "r"(c1), "r"(c2)
                 : "memory");
}
RFT_FN void rft__bulk_commit(void) { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* But for so many groups, what they store has been read from shared memory. */
#define RFT_BULK_WAIT_READ(pending) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory")

#endif
