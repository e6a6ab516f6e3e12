/* SPDX-License-Identifier: Apache-2.0
 *
 * mlp.c - down(act(x * gate_up)): two plans, the first one's epilogue is the activation, and one workspace.
 * Workspace: the hidden activations, the scales of such in 8 bits, then what the larger of the two plans needs; the plans run one
 * after the other.
 */
#include "api/api.h"
#include "base/sized.h"

struct rft_mlp {
    rft_plan *up, *down;
    rft_type hidden;
    size_t hidden_bytes, scale_bytes; /* for m_max rows, multiples of the alignment */
    size_t workspace;
};

/* ---- the descriptor ---- */

static rft_status check_activation(const rft_mlp_desc *d, rft_error *err) {
    const bool paired = (d->up.flags & (RFT_WEIGHT_GLU_HALVES | RFT_WEIGHT_GLU_INTERLEAVED)) != 0;
    const bool glu = rft__epi_is_glu(d->activation);
    const bool plain = d->activation == RFT_EPI_RELU || d->activation == RFT_EPI_GELU || d->activation == RFT_EPI_GELU_TANH ||
                       d->activation == RFT_EPI_SILU;
    if (!glu && !plain) {
        RFT_FAIL(err, RFT_E_ARG, "desc.activation = %d is neither RELU, GELU, GELU_TANH, SILU nor SWIGLU, GEGLU, GEGLU_TANH",
                 (int)d->activation);
    }
    if (glu != paired) {
        RFT_FAIL(err, RFT_E_ARG, "desc.activation = %d %s, and desc.up.flags = 0x%x %s one", (int)d->activation,
                 glu ? "needs a GLU weight" : "needs a weight without GLU pairing", d->up.flags,
                 paired ? "names" : "does not name");
    }
    return RFT_OK;
}

static rft_status check_desc(rft_mlp_desc *d, rft_error *err) {
    RFT_TRY(rft__weight_desc_nested(&d->up, "desc.up", err));
    RFT_TRY(rft__weight_desc_nested(&d->down, "desc.down", err));
    RFT_TRY(check_activation(d, err));
    if (d->flags & ~(RFT_BATCH_INVARIANT | RFT_X_SCALED | RFT_X_STATIC)) {
        RFT_FAIL(err, RFT_E_ARG, "desc.flags = 0x%x: an MLP knows RFT_BATCH_INVARIANT, RFT_X_SCALED and RFT_X_STATIC alone",
                 d->flags);
    }
    if (d->hidden_group_k != 0 && !rft__type_is_8bit(d->hidden)) {
        RFT_FAIL(err, RFT_E_ARG, "desc.hidden_group_k = %lld, and hidden activations of %s have no scales",
                 (long long)d->hidden_group_k, rft__type_name(d->hidden));
    }
    if (d->hidden_group_k < 0 || d->hidden_group_k % RFT__X_GRANULE != 0) {
        RFT_FAIL(err, RFT_E_ARG, "desc.hidden_group_k = %lld is neither 0 nor a positive multiple of %d",
                 (long long)d->hidden_group_k, RFT__X_GRANULE);
    }
    if (d->up.batch > 1 || d->down.batch > 1) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "desc.up.batch = %lld, desc.down.batch = %lld: an MLP has one batch",
                 (long long)d->up.batch, (long long)d->down.batch);
    }
    return RFT_OK;
}

static rft_linear_desc layer(const rft_mlp_desc *d, const rft_weight_desc *w, rft_type x, rft_type y) {
    rft_linear_desc l = rft_linear_desc_init();
    l.x = x;
    l.y = y;
    l.w = *w;
    l.m_min = d->m_min;
    l.m_max = d->m_max;
    l.compute = d->compute;
    l.flags = d->flags & RFT_BATCH_INVARIANT;
    return l;
}

static rft_status make_problems(const rft_mlp_desc *d, rft__problem *up, rft__problem *down, rft_error *err) {
    const bool scaled = rft__type_is_8bit(d->hidden);
    const int64_t group = d->hidden_group_k < d->down.k ? d->hidden_group_k : 0; /* of 2^24 at most, for alpha */
    const rft_epi_op tail[] = {{.kind = d->activation}, {.kind = RFT_EPI_QUANTIZE_ROWS, .alpha = (float)group}};
    rft_linear_desc l = layer(d, &d->up, d->x, d->hidden);
    l.epi = tail;
    l.n_epi = scaled ? 2 : 1;
    l.flags = d->flags;
    l.x_group_k = d->x_group_k;
    RFT_TRY(rft__status_in("desc, up projection", rft__problem_make(up, &l, err), err));
    l = layer(d, &d->down, d->hidden, d->y);
    l.flags |= scaled ? RFT_X_SCALED : 0;
    l.x_group_k = group;
    l.epi = d->epi;
    l.n_epi = d->n_epi;
    RFT_TRY(rft__status_in("desc, down projection", rft__problem_make(down, &l, err), err));
    if (up->epi.n_out != down->w.k) {
        RFT_FAIL(err, RFT_E_ARG, "desc.down.k = %lld differs from the %lld hidden columns that desc.up gives",
                 (long long)down->w.k, (long long)up->epi.n_out);
    }
    return RFT_OK;
}

/* ---- life ---- */

static void mlp_free(rft_ctx *ctx, rft_mlp *mlp) {
    if (mlp->up != NULL) {
        rft__plan_drop(mlp->up);
    }
    if (mlp->down != NULL) {
        rft__plan_drop(mlp->down);
    }
    rft__release(&ctx->allocator, mlp, sizeof *mlp);
}

/* The problem's own checks keep m_max * k below 2^63 / 16. */
static rft_status size_workspace(rft_mlp *mlp, rft_error *err) {
    const rft__problem *const down = &mlp->down->problem;
    const int64_t hidden = down->m_max * down->w.k * (int64_t)rft__type_size(mlp->hidden);
    const size_t plans = mlp->up->workspace > mlp->down->workspace ? mlp->up->workspace : mlp->down->workspace;
    const int64_t scales = down->m_max * rft__problem_x_scales(down) * (int64_t)sizeof(float);
    mlp->hidden_bytes = (size_t)rft__round_up(hidden, RFT__STORAGE_ALIGN);
    mlp->scale_bytes = (size_t)rft__round_up(scales, RFT__STORAGE_ALIGN);
    if (rft__add_size(mlp->hidden_bytes + mlp->scale_bytes, plans, &mlp->workspace)) {
        RFT_FAIL(err, RFT_E_ARG, "desc.m_max = %lld: the workspace overflows", (long long)down->m_max);
    }
    return RFT_OK;
}

static rft_status fill(rft_mlp *mlp, rft_ctx *ctx, const rft_mlp_desc *d, rft_error *err) {
    rft__problem up, down;
    RFT_TRY(make_problems(d, &up, &down, err));
    mlp->hidden = d->hidden;
    RFT_TRY(rft__plan_make(ctx, &up, NULL, &mlp->up, err));
    RFT_TRY(rft__plan_make(ctx, &down, NULL, &mlp->down, err));
    return size_workspace(mlp, err);
}

rft_status rft_mlp_create(rft_ctx *ctx, const rft_mlp_desc *desc, rft_mlp **out, rft_error *err) {
    if (ctx == NULL || out == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", ctx == NULL ? "ctx" : "out");
    }
    *out = NULL;
    rft_mlp_desc own;
    RFT_TRY(rft__sized_read(&own, sizeof own, desc, "desc", err));
    RFT_TRY(check_desc(&own, err));
    rft_mlp *const mlp = rft__alloc(&ctx->allocator, sizeof *mlp, _Alignof(rft_mlp));
    if (mlp == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for an MLP (%zu bytes)", sizeof *mlp);
    }
    const rft_status status = fill(mlp, ctx, &own, err);
    if (status != RFT_OK) {
        mlp_free(ctx, mlp);
        return status;
    }
    *out = mlp;
    return RFT_OK;
}

void rft_mlp_free(rft_mlp *mlp) {
    if (mlp != NULL) {
        mlp_free(mlp->up->ctx, mlp);
    }
}

/* Work, traffic and time add up; error constants and groups are the larger, since both products keep to them. */
static void add_info(rft_plan_info *sum, const rft_plan_info *down) {
    sum->bound = down->bound_seconds > sum->bound_seconds ? down->bound : sum->bound;
    sum->flops += down->flops;
    sum->bytes += down->bytes;
    sum->bound_seconds += down->bound_seconds;
    sum->error_c = down->error_c > sum->error_c ? down->error_c : sum->error_c;
    sum->error_eta = down->error_eta > sum->error_eta ? down->error_eta : sum->error_eta;
    sum->error_x = down->error_x > sum->error_x ? down->error_x : sum->error_x;
    sum->minimum_apart = down->minimum_apart > sum->minimum_apart ? down->minimum_apart : sum->minimum_apart;
    sum->group_x = down->group_x > sum->group_x ? down->group_x : sum->group_x;
    sum->threads = down->threads > sum->threads ? down->threads : sum->threads;
}

rft_status rft_mlp_get_info(const rft_mlp *mlp, int64_t m, rft_plan_info *info) {
    if (mlp == NULL || m < mlp->up->problem.m_min || m > mlp->up->problem.m_max) {
        return RFT_E_ARG;
    }
    RFT_TRY(rft__sized_check(info, "info", NULL));
    rft_plan_info own, down;
    rft__plan_info(mlp->up, m, &own);
    rft__plan_info(mlp->down, m, &down);
    add_info(&own, &down);
    own.workspace = mlp->workspace;
    own.workspace_align = RFT__STORAGE_ALIGN;
    rft__sized_write(info, &own, sizeof own);
    return RFT_OK;
}

/* ---- run ---- */

static rft_linear_args common_args(const rft_mlp *mlp, const rft_mlp_args *a) {
    rft_linear_args l = rft_linear_args_init();
    l.m = a->m;
    l.stream = a->stream;
    if (mlp->workspace > 0) {
        const size_t used = mlp->hidden_bytes + mlp->scale_bytes;
        l.workspace = (unsigned char *)a->workspace + used;
        l.workspace_bytes = a->workspace_bytes - used;
    }
    return l;
}

/* Of hidden activations in 8 bits, else NULL. */
static void *hidden_scales(const rft_mlp *mlp, const rft_mlp_args *a) {
    return mlp->scale_bytes != 0 ? (unsigned char *)a->workspace + mlp->hidden_bytes : NULL;
}

/* scales: of hidden activations in 8 bits; lives as long as call. */
static rft_status make_up(const rft_mlp *mlp, const rft_mlp_args *a, const rft_operand *scales, rft__call *call, rft_error *err) {
    rft_linear_args l = common_args(mlp, a);
    l.x = a->x;
    l.x_scale = a->x_scale;
    l.operand = scales;
    l.n_operand = 1;
    l.ldx = a->ldx;
    l.weight = a->up;
    l.y = a->workspace;
    return rft__status_in("up projection", rft__call_make(call, mlp->up, &l, err), err);
}

static rft_status make_down(const rft_mlp *mlp, const rft_mlp_args *a, rft__call *call, rft_error *err) {
    rft_linear_args l = common_args(mlp, a);
    l.x = a->workspace;
    l.x_scale = hidden_scales(mlp, a);
    l.weight = a->down;
    l.y = a->y;
    l.ldy = a->ldy;
    l.operand = a->operand;
    l.n_operand = a->n_operand;
    return rft__status_in("down projection", rft__call_make(call, mlp->down, &l, err), err);
}

rft_status rft_mlp_run(const rft_mlp *mlp, const rft_mlp_args *args, rft_error *err) {
    if (mlp == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "mlp is NULL");
    }
    rft_mlp_args own;
    RFT_TRY(rft__sized_read(&own, sizeof own, args, "args", err));
    RFT_TRY(rft__workspace_check(own.workspace, own.workspace_bytes, mlp->workspace, "MLP", err));
    rft__call up, down;
    const rft_operand scales = {.ptr = hidden_scales(mlp, &own)};
    RFT_TRY(make_up(mlp, &own, &scales, &up, err));
    RFT_TRY(make_down(mlp, &own, &down, err));
    const rft_plan *plan = mlp->up;
    RFT_TRY(rft__call_run(&plan, &up, 1, err));
    plan = mlp->down;
    return rft__call_run(&plan, &down, 1, err);
}
