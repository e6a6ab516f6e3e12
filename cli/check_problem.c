/* SPDX-License-Identifier: Apache-2.0
 *
 * check_problem.c - what a problem says beside its fields: how numbers are drawn from its seed, the scales of its W
 * among them, and its command line. See check_core.h.
 */
#include "check_core.h"

#include <stdio.h>
#include <string.h>

uint64_t check_random_next(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

uint64_t check_roll(check_dice *d, uint64_t sides) { return check_random_next(&d->state) % sides; }

/* Kernels of codes with zero points say so; without a kernel half of the problems have them. */
static bool has_zero(const check_problem *p, uint64_t drawn) {
    if (p->w != RFT_I8 && p->w != RFT_I4 && p->w != RFT_U8 && p->w != RFT_U4)
        return false;
    if (!p->kernel || (!strstr(p->kernel, "_q4") && !strstr(p->kernel, "_q8")))
        return drawn % 2;
    return strstr(p->kernel, "_q4z_") || strstr(p->kernel, "_q8z_");
}

static rft_type scale_type(const check_problem *p, uint64_t drawn) {
    static const rft_type types[] = {RFT_F32, RFT_F16, RFT_BF16, RFT_E8M0, RFT_E4M3, RFT_E4M3};
    return types[drawn % (p->w == RFT_E2M1 ? 6 : p->w == RFT_E4M3 || p->w == RFT_E5M2 ? 4 : 3)];
}

weight_scales check_scales_of(const check_problem *p) {
    static const uint32_t global[] = {0, RFT_WEIGHT_GLOBAL_TIMES, RFT_WEIGHT_GLOBAL_OVER};
    static const int64_t groups_k[] = {32, 64, 128, 0, 16, 8, 96, 40}, groups_n[] = {1, 1, 0, 3, 1, 128};
    uint64_t state = p->seed / 2, drawn = check_random_next(&state);
    weight_scales s = p->scales;
    if (!scales_apart(p->w) || s.scale)
        return s;
    s.scale = scale_type(p, drawn % 60);
    s.group_k = groups_k[drawn / 64 % (p->compute == RFT_COMPUTE_I8 ? 5 : 8)];
    s.group_n = groups_n[drawn / 1024 % 6];
    s.flags = (s.scale == RFT_E4M3 ? global[drawn / 8192 % 3] : 0) | (drawn / 32768 % 3 == 0 ? RFT_WEIGHT_G_IDX : 0);
    if (has_zero(p, drawn / 256))
        s.zero = p->w == RFT_I8 || p->w == RFT_I4 ? RFT_I8 : RFT_U8;
    return s;
}

check_x_scales check_x_scales_of(const check_problem *p) {
    static const int64_t groups[] = {0, 0, -1, 32, 64, 96, 128, 256};
    uint64_t state = ~p->seed / 2;
    const int64_t drawn = groups[check_random_next(&state) % 8], group = p->x_groups.given ? p->x_groups.k : drawn;
    const int64_t row = group > 0 ? scales_along(p->k, group) : 1;
    if (!cli_8bit(p->x))
        return (check_x_scales){0};
    return (check_x_scales){group, group < 0 ? 1 : p->batch * p->m * row};
}

int64_t check_row_scales(const rft_epi_op *op, int64_t columns) { return scales_along(columns, (int64_t)op->alpha); }

int check_found_scales(const check_problem *p) {
    int last = (int)p->epi.n_op - 1;
    return last >= 0 && p->epi.op[last].kind == RFT_EPI_QUANTIZE_ROWS ? last : RFT_MAX_OPERANDS;
}

void check_repro(const check_problem *p, const char *device, char *buf, size_t cap) {
    char layout[3] = {p->x_order == RFT_K_CONTIGUOUS ? 'n' : 't', p->w_order == RFT_K_CONTIGUOUS ? 't' : 'n', '\0'};
    char threads[32] = "", x[X_TEXT], w[WEIGHT_TEXT];
    weight_scales scales = check_scales_of(p);
    x_text(p->x, &p->x_groups, x);
    weight_text(p->w, &scales, w);
    if (p->threads)
        snprintf(threads, sizeof threads, " --threads %u", p->threads);
    snprintf(
        buf, cap,
        "rooftile check%s%s -m %lld -n %lld -k %lld --x %s --w %s --y %s --layout %s --compute %s --epi %s --batch %lld%s "
        "--seed %llu%s%s%s%s%s%s",
        device ? " --device " : "", device ? device : "", (long long)p->m, (long long)p->n, (long long)p->k, x,
        w, rft_type_name(p->y), layout, compute_name(p->compute), p->epi.text,
        (long long)p->batch, threads, (unsigned long long)p->seed, p->kernel ? " --kernel " : "", p->kernel ? p->kernel : "",
        p->isa ? " --isa " : "", p->isa ? p->isa : "", p->dynamic ? " --dynamic" : "", p->view ? " --view" : "");
}
