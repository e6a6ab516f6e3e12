/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_activations.c - any bytes as the arguments of rft_quantize, as the description of an MLP, and as the options of a context.
 * What is refused says why; what is accepted runs in memory of exactly the sizes that the arguments describe.
 */
#include "fuzz_library.h"

#include <math.h>
#include <stdio.h>

enum { MOST = 1 << 16 };

/* Elements of rows that lie ld apart; -1: too many to run. */
static int64_t span(int64_t rows, int64_t row, int64_t ld) {
    const double all = rows > 0 && row > 0 ? (double)(rows - 1) * (double)(ld != 0 ? ld : row) + (double)row : 0;
    return all > MOST || ld < 0 ? -1 : (int64_t)all;
}

/* ---- rft_quantize ---- */

static void quantize(input *in) {
    static const rft_type from[] = {RFT_F32, RFT_F16, RFT_BF16}, to[] = {RFT_I8, RFT_E4M3};
    rft_quantize_args a = rft_quantize_args_init();
    const bool is_static = take(in) % 4 == 0;
    a.from = from[take(in) % 3];
    a.to = to[take(in) % 2];
    a.m = take(in) % 20;
    a.k = take(in) * 2;
    a.group_k = is_static ? 0 : take(in) % 5 * 32;
    patch(in, &a, sizeof a);
    a.struct_size = sizeof a;
    const size_t size = a.from == RFT_F32 ? 4 : 2;
    const int64_t x = span(a.m, a.k, a.ldx), q = span(a.m, a.k, a.ldq);
    const int64_t groups = a.group_k > 0 && a.group_k < a.k ? (a.k - 1) / a.group_k + 1 : a.k > 0;
    const int64_t count = span(a.m, groups, 0);
    if (x < 0 || q < 0 || count < 0) {
        return;
    }
    char *const values = malloc((size_t)x * size + 1), *const codes = malloc((size_t)q + 1);
    float *const scales = malloc((size_t)count * sizeof *scales + 1), one = 0.25f;
    rft_error err = {0};
    memset(values, (int)take(in), (size_t)x * size);
    a.x = take(in) % 32 == 31 ? NULL : values;
    a.q = codes;
    a.scale = is_static ? NULL : scales;
    a.static_scale = is_static ? &one : NULL;
    a.stream = NULL;
    judge(rft_quantize(context(), &a, &err), &err);
    free(values), free(codes), free(scales);
}

/* ---- rft_mlp ---- */

static void draw_mlp(input *in, rft_mlp_desc *d, rft_epi_op ops[RFT_MAX_EPI]) {
    static const rft_type types[] = {RFT_F32, RFT_BF16, RFT_F16, RFT_I8, RFT_E4M3};
    *d = rft_mlp_desc_init();
    d->x = types[take(in) % 5];
    d->hidden = types[take(in) % 5];
    d->y = types[take(in) % 5];
    d->up = d->down = rft_weight_desc_init();
    d->up.elem = types[take(in) % 3];
    d->down.elem = types[take(in) % 3];
    d->up.n = take(in) % 64 * 2;
    d->up.k = take(in);
    d->up.flags = take(in) % 8;
    d->down.n = take(in) % 100;
    d->down.k = d->up.flags & (RFT_WEIGHT_GLU_HALVES | RFT_WEIGHT_GLU_INTERLEAVED) ? d->up.n / 2 : d->up.n;
    d->activation = (rft_epi_kind)(take(in) % 18);
    d->m_max = take(in) % 20;
    d->flags = take(in) % 32;
    d->x_group_k = take(in) % 3 * 32;
    d->hidden_group_k = take(in) % 3 * 32;
    d->n_epi = take(in) % 3;
    for (uint32_t i = 0; i < d->n_epi; i++) {
        ops[i] = (rft_epi_op){.kind = (rft_epi_kind)(take(in) % 19), .type = types[take(in) % 3], .alpha = 0.5f, .beta = 1};
    }
    patch(in, d, sizeof *d);
    patch(in, ops, RFT_MAX_EPI * sizeof *ops);
    d->struct_size = sizeof *d;
    d->up.struct_size = d->down.struct_size = sizeof d->up;
    d->n_epi %= RFT_MAX_EPI + 1;
    d->epi = ops;
}

static void describe_mlp(input *in) {
    rft_epi_op ops[RFT_MAX_EPI] = {{.alpha = 0}};
    rft_mlp_desc d;
    rft_mlp *mlp = NULL;
    rft_error err = {0};
    draw_mlp(in, &d, ops);
    if (judge(rft_mlp_create(context(), &d, &mlp, &err), &err) == RFT_OK) {
        const int64_t m[] = {d.m_min, d.m_max, -1};
        for (int i = 0; i < 3; i++) {
            rft_plan_info info = rft_plan_info_init();
            require(rft_mlp_get_info(mlp, m[i], &info) != RFT_OK || (info.kernel != NULL && info.threads >= 1));
        }
        rft_mlp_args a = rft_mlp_args_init(); /* without operands: refused, or nothing to do */
        a.m = d.m_max;
        judge(rft_mlp_run(mlp, &a, &err), &err);
    }
    rft_mlp_free(mlp);
}

/* ---- contexts ---- */

static void take_text(input *in, char *text, size_t cap) {
    size_t length = take(in) % cap, i = 0;
    for (; i < length; i++) {
        text[i] = (char)take(in);
    }
    text[i] = '\0';
}

static void open_context(input *in) {
    static const char *const names[] = {"cpu", "cuda:0", "cuda", "gpu"}, *const levels[] = {"ref", "avx2", "avx512", "amx"};
    char device[24], isa[24];
    rft_ctx_options o = rft_ctx_options_init();
    rft_ctx *ctx = NULL;
    rft_error err = {0};
    take_text(in, device, sizeof device);
    take_text(in, isa, sizeof isa);
    o.threads = take(in) % 4;
    o.flags = take(in);
    o.sm_limit = take(in) % 2;
    o.log_level = (rft_log_level)(take(in) % 8);
    o.max_isa = take(in) % 4 ? levels[take(in) % 4] : isa;
    o.profile = "/no/such/profile.json";
    if (take(in) % 8) {
        o.profile = NULL;
    }
    const rft_status status = judge(rft_ctx_create(take(in) % 4 ? names[take(in) % 4] : device, &o, &ctx, &err), &err);
    require((status == RFT_OK) == (ctx != NULL));
    rft_ctx_free(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    const unsigned which = take(&in);
    if (which % 16 == 15) {
        open_context(&in);
    } else if (which % 2) {
        describe_mlp(&in);
    } else {
        quantize(&in);
    }
    return 0;
}
