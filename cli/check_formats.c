/* SPDX-License-Identifier: Apache-2.0
 *
 * check_formats.c - see check_formats.h.
 */
#include "check_formats.h"

#include <string.h>

#define COUNT(a)     (sizeof(a) / sizeof((a)[0]))
#define GGUF(number) ((rft_type)(256 + (number)))

/* Formats that kernels of codes read, by the name of the codes. */
static const struct {
    const char *codes;
    rft_type w[10];
} code_formats[] = {
    {"_q2m_", {GGUF(10)}},
    {"_q3_", {GGUF(11)}},
    {"_q4_", {RFT_GGUF_Q4_0, GGUF(20), GGUF(23), GGUF(39), GGUF(40), RFT_I4, RFT_E2M1, RFT_U4, RFT_NF4, RFT_FP4}},
    {"_q4m_", {GGUF(3), GGUF(12)}},
    {"_q4z_", {RFT_I4, RFT_U4}},
    {"_q5_", {GGUF(6)}},
    {"_q5m_", {GGUF(7), GGUF(13)}},
    {"_q6_", {GGUF(14)}},
    {"_q8_", {GGUF(8), RFT_I8, RFT_U8}},
    {"_q8z_", {RFT_I8, RFT_U8}},
    {"_f8_", {RFT_E4M3, RFT_E5M2}},
};

rft_type check_any_float(check_dice *d) {
    static const rft_type types[] = {RFT_F32, RFT_BF16, RFT_F16};
    return types[check_roll(d, COUNT(types))];
}

rft_type check_any_format(uint64_t drawn) {
    const rft_type *w = code_formats[drawn % COUNT(code_formats)].w;
    rft_type chosen = w[drawn / COUNT(code_formats) % COUNT(code_formats[0].w)];
    return chosen ? chosen : w[0];
}

rft_type check_code_format(const rft_kernel_info *kernel, uint64_t drawn) {
    for (size_t i = 0; kernel && i < COUNT(code_formats); i++) {
        if (!strstr(kernel->name, code_formats[i].codes))
            continue;
        size_t n = 0;
        while (n < COUNT(code_formats[i].w) && code_formats[i].w[n])
            n++;
        return code_formats[i].w[drawn % n];
    }
    return kernel && strstr(kernel->name, "_bytes_") ? check_any_format(drawn) : (rft_type)0;
}

void check_low_bit(check_problem *p) {
    if (!cli_low_bit(p->w))
        return;
    p->w_order = RFT_K_CONTIGUOUS;
    p->dynamic = p->view = false;
    if ((int)p->w >= 256)
        p->k = (p->k + cli_block(p->w) - 1) / cli_block(p->w) * cli_block(p->w);
}

void check_draw_8bit(check_problem *p, const rft_kernel_info *kernel, uint64_t drawn) {
    bool often = kernel && kernel->x == RFT_I8, never = kernel && kernel->x == RFT_BF16;
    if (!never && drawn % (often ? 2 : 8) == 0)
        p->x = drawn / 8 % (often ? 4 : 2) ? RFT_I8 : RFT_E4M3;
    if (drawn / 32 % 6 == 0)
        p->y = drawn / 192 % 2 ? RFT_I8 : RFT_E4M3;
}

static void end_in_quantize(check_problem *p, uint64_t drawn) {
    static const float groups[] = {0, 32, 64, 128};
    rft_epi_op op = {.kind = drawn % 3 ? RFT_EPI_QUANTIZE_ROWS : RFT_EPI_QUANTIZE};
    if (op.kind == RFT_EPI_QUANTIZE_ROWS)
        op.alpha = groups[drawn / 3 % COUNT(groups)];
    if (cli_8bit(p->y) && !(p->epi.n_op && op_quantizes(&p->epi.op[p->epi.n_op - 1])))
        epilogue_add(&p->epi, op);
}

void check_8bit(check_problem *p, uint64_t drawn) {
    if (cli_8bit(p->x))
        p->x_order = RFT_K_CONTIGUOUS;
    else if (p->compute == RFT_COMPUTE_I8)
        p->x_groups.given = drawn / 12 % 3 == 0;
    end_in_quantize(p, drawn);
}
