/* SPDX-License-Identifier: Apache-2.0
 *
 * unfused_pass.c - the loops of the separate passes, compiled for three instruction levels from one text.
 * exp is 2^n times a polynomial of degree 6, erf is formula 7.1.26 of Abramowitz and Stegun: short, branch-free and
 * accurate to 2e-7, so that the passes cost what a vectorised framework's cost. -O3 lets gcc vectorise them; clang does at -O2.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
#include "unfused_pass.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

INLINE float from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

INLINE uint32_t to_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

INLINE float fast_exp(float x) {
    float v = x < -87.0F ? -87.0F : x > 88.0F ? 88.0F : x;
    float t = v * 1.44269504F;
    int32_t n = (int32_t)(t + (t < 0 ? -0.5F : 0.5F));
    float r = v - (float)n * 0.693359375F + (float)n * 2.12194440e-4F;
    float p = 1.0F + r * (1.0F + r * (0.5F + r * (1.6666667e-1F + r * (4.1666668e-2F + r * (8.333334e-3F + r * 1.388889e-3F)))));
    return p * from_bits((uint32_t)(n + 127) << 23);
}

INLINE float silu(float y) {
    return y / (1.0F + fast_exp(-y));
}

INLINE float gelu_tanh(float y) {
    float u = 1.59576912F * (y + 0.044715F * y * y * y);
    return y / (1.0F + fast_exp(-u));
}

INLINE float gelu_erf(float y) {
    float x = y * 0.70710678F, a = x < 0 ? -x : x, t = 1.0F / (1.0F + 0.3275911F * a);
    float p = t * (0.254829592F + t * (-0.284496736F + t * (1.421413741F + t * (-1.453152027F + t * 1.061405429F))));
    float erf_a = 1.0F - p * fast_exp(-a * a);
    return 0.5F * y * (1.0F + (x < 0 ? -erf_a : erf_a));
}

INLINE float load(const row_pass *p, int64_t i) {
    if (p->operand_type == RFT_BF16)
        return from_bits((uint32_t)((const uint16_t *)p->operand)[i] << 16);
    return ((const float *)p->operand)[i];
}

INLINE uint16_t to_bf16(float f) {
    uint32_t u = to_bits(f);
    return (uint16_t)((u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
}

#define EACH(expression)                      \
    for (int64_t i = 0; i < count; i++)       \
        y[i] = (expression);                  \
    break

/* The operand's type is settled outside the loop. */
INLINE void with_operand(const row_pass *p, rft_type type) {
    row_pass q = *p;
    float *restrict y = p->y;
    int64_t count = p->count;
    q.operand_type = type;
    switch (p->kind) {
    case RFT_EPI_BIAS: EACH(y[i] + load(&q, i));
    case RFT_EPI_ADD: EACH(y[i] + q.beta * load(&q, i));
    case RFT_EPI_MUL:
    case RFT_EPI_COL_SCALE: EACH(y[i] * load(&q, i));
    default: EACH(y[i] * load(&q, 0)); /* RFT_EPI_ROW_SCALE */
    }
}

INLINE void convert(const row_pass *p) {
    uint16_t *restrict out = p->out;
    for (int64_t i = 0; p->out_type == RFT_BF16 && i < p->count; i++)
        out[i] = to_bf16(p->y[i]);
}

INLINE void pass_body(const row_pass *p) {
    float *restrict y = p->y;
    const float *restrict up = p->up;
    float alpha = p->alpha, beta = p->beta;
    int64_t count = p->count;
    switch (p->kind) {
    case RFT_EPI_SCALE: EACH(y[i] * alpha);
    case RFT_EPI_SILU: EACH(silu(y[i]));
    case RFT_EPI_GELU: EACH(gelu_erf(y[i]));
    case RFT_EPI_GELU_TANH: EACH(gelu_tanh(y[i]));
    case RFT_EPI_RELU: EACH(y[i] < 0 ? 0 : y[i]);
    case RFT_EPI_CLAMP: EACH(y[i] < alpha ? alpha : y[i] > beta ? beta : y[i]);
    case RFT_EPI_SWIGLU: EACH(silu(y[i]) * up[i]);
    case RFT_EPI_GEGLU: EACH(gelu_erf(y[i]) * up[i]);
    case RFT_EPI_GEGLU_TANH: EACH(gelu_tanh(y[i]) * up[i]);
    case RFT_EPI_BIAS:
    case RFT_EPI_ADD:
    case RFT_EPI_MUL:
    case RFT_EPI_COL_SCALE:
    case RFT_EPI_ROW_SCALE:
        if (p->operand_type == RFT_BF16)
            with_operand(p, RFT_BF16);
        else
            with_operand(p, RFT_F32);
        break;
    default:
        convert(p);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma"))) static void pass_avx512(const row_pass *p) { pass_body(p); }
__attribute__((target("avx2,fma"))) static void pass_avx2(const row_pass *p) { pass_body(p); }
#endif

static void pass_any(const row_pass *p) { pass_body(p); }

void run_row_pass(const row_pass *p) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        pass_avx512(p);
    else if (__builtin_cpu_supports("avx2"))
        pass_avx2(p);
    else
#endif
        pass_any(p);
}
