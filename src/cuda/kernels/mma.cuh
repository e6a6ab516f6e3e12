/* SPDX-License-Identifier: Apache-2.0
 *
 * mma.cuh - the tensor core instructions of sm_80, one warp each: d += a * b with a 16 x k, b k x 8 and d 16 x 8 in f32. Lane l
 * holds of a rows l / 4 and l / 4 + 8, of b column l / 4, of d rows l / 4 and l / 4 + 8, columns 2 (l % 4) and one more.
 * Included by gemm_sm80.cu and probe.cu. Products are exact, sums are f32.
 */
#ifndef RFT_MMA_CUH
#define RFT_MMA_CUH

#include "device.cuh"

#define RFT_MMA(name, shape_and_types)                                                                          \
    RFT_FN void name(float d[4], const unsigned a[4], const unsigned b[2]) {                                    \
        asm volatile("mma.sync.aligned." shape_and_types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "               \
            "{%0, %1, %2, %3};"                                                                                 \
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                    \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                \
    }

RFT_MMA(rft__mma_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
RFT_MMA(rft__mma_f16, "m16n8k16.row.col.f32.f16.f16.f32")
RFT_MMA(rft__mma_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")

/* To the nearest tf32: ties to even on Hopper, which has an instruction for it, else away from zero. */
RFT_FN unsigned rft__round_tf32(float v) {
    unsigned bits;
#if RFT_HOPPER
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
#else
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
#endif
    return bits;
}

#endif
