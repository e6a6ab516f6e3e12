/* SPDX-License-Identifier: Apache-2.0
 *
 * fast_math.cuh - what the activations of epi_math.h compute with on a GPU: FMA, and the approximations of ex2 and rcp, one
 * instruction each. IEEE's division and a polynomial for exp took 59 instructions a column of a list with bias and gelu_tanh,
 * and a tenth of the time of a product with k = 4096.
 * Error bounds against f64, which tests/unit/test_fast_math.c asserts with ex2 and rcp off by what PTX allows (2^-22.5 and 1
 * ulp), and test_cuda_texts.c on the GPU for all floats: silu 8 * 2^-24 * |value| or 2^-119; gelu 4.5 and gelu_tanh 3.5 *
 * 2^-24 * |y|. An H200 reaches 5.75, 4.08 and 2.90.
 */
#ifndef RFT_FAST_MATH_CUH
#define RFT_FAST_MATH_CUH

/* 2^(x / ln 2): the product is split, as its rounding would be an error of |x| * 2^-24. Inf where 2^t is. */
RFT_FN float rft__exp_fast(float x) {
    const float t = x * 1.44269504f, rest = __fmaf_rn(x, 1.92596299e-8f, __fmaf_rn(x, 1.44269504f, -t));
    return rft__exp2(t) * __fmaf_rn(rest, 0.693147181f, 1.0f);
}

#define RFT_DIVIDE(a, b)          ((a) * rft__reciprocal(b))
#define RFT_MULTIPLY_ADD(a, b, c) __fmaf_rn(a, b, c)
#define RFT_EXP_NEAR(x)           rft__exp_fast(x)
#define RFT_AT_LEAST(x, low)      rft__max_nan(x, low)
#define RFT_AT_MOST(x, high)      rft__min_nan(x, high)

#endif
