/* SPDX-License-Identifier: Apache-2.0
 *
 * x8_body.h - activations in 8 bits to and from f32; text for the x8_<isa>.c of the ISA folders, which define RFT_X8_NAME, the
 * level's table. Loops of one expression each, which the compiler vectorises at the level's width.
 */
#include "cpu/cpu_kernel.h"
#include "epilogue/narrow8.h"

static void widen_i8(const signed char *restrict q, float scale, int64_t n, float *restrict out) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float)q[i] * scale;
    }
}

/* 2^-9 is the step of denormals, 120 the difference of the exponents' biases. */
static void widen_e4m3(const unsigned char *restrict q, float scale, int64_t n, float *restrict out) {
    for (int64_t i = 0; i < n; i++) {
        const unsigned code = q[i] & 127u, normal = (code << 20) + (120u << 23);
        const unsigned denormal = rft__as_bits((float)(int)code * 0x1p-9f);
        const unsigned number = code < 8 ? denormal : code < 127 ? normal : 0x7fc00000u;
        out[i] = rft__as_float((q[i] & 128u) << 24 | number) * scale;
    }
}

static void widen(rft_type type, const void *q, float scale, int64_t n, float *out) {
    if (type == RFT_I8) {
        widen_i8(q, scale, n, out);
    } else {
        widen_e4m3(q, scale, n, out);
    }
}

static inline uint32_t largest(const float *x, int64_t n) {
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t magnitude = rft__as_bits(x[i]) & 0x7fffffffu;
        most = magnitude > most ? magnitude : most;
    }
    return most;
}

#define NARROW(name, type, element, expression)                                                   \
    static void name##_##type(const float *restrict x, float by, int64_t n, void *out) {          \
        element *restrict q = out;                                                                \
        for (int64_t i = 0; i < n; i++) {                                                         \
            q[i] = rft__narrow_##type(expression);                                                \
        }                                                                                         \
    }
NARROW(multiply, i8, signed char, x[i] * by)
NARROW(multiply, e4m3, unsigned char, x[i] * by)
NARROW(divide, i8, signed char, x[i] / by)
NARROW(divide, e4m3, unsigned char, x[i] / by)
#undef NARROW

/* Groups of 32 at once: with a length that the compiler knows they overlap. */
#define GROUPS(type, element, top)                                                                \
    static void groups_##type(const float *restrict x, int64_t n, float *restrict scale, void *out) { \
        element *restrict q = out;                                                                \
        for (int64_t g = 0; g < n; g++, x += RFT__BLOCK, q += RFT__BLOCK) {                       \
            const float most = rft__as_float(largest(x, RFT__BLOCK));                             \
            scale[g] = rft__x8_scale(most, top);                                                  \
            const float by = scale[g] > 0.0f ? (top) / most : 0.0f;                               \
            for (int i = 0; i < RFT__BLOCK; i++) {                                                \
                q[i] = (element)(by > 0.0f ? rft__narrow_##type(x[i] * by) : 0);                  \
            }                                                                                     \
        }                                                                                         \
    }
GROUPS(i8, signed char, 127.0f)
GROUPS(e4m3, unsigned char, 448.0f)
#undef GROUPS

const rft__x8_ops RFT_X8_NAME = {.widen = widen,
                                 .largest = largest,
                                 .multiply = {multiply_i8, multiply_e4m3},
                                 .divide = {divide_i8, divide_e4m3},
                                 .groups = {groups_i8, groups_e4m3}};
