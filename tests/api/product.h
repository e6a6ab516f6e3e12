/* SPDX-License-Identifier: Apache-2.0
 *
 * product.h - runs one product from descriptor to y for the tests of numbers: plan, packed W, a workspace full of NaN, run.
 * Also the ISA levels of this machine, and elements of the three types by their bits. Include it behind api_test.h.
 */
#ifndef RFT_TESTS_API_PRODUCT_H
#define RFT_TESTS_API_PRODUCT_H

#include "api_test.h"

#include <math.h>
#include <stdio.h>

static const rft_type test_types[] = {RFT_F32, RFT_BF16, RFT_F16};
enum { TEST_TYPES = 3, TEST_LEVELS = 16 };

/* ---- elements ---- */

static inline size_t rft_test_size(rft_type type) { return type == RFT_F32 ? 4 : 2; }

static inline void *rft_test_at(rft_type type, void *p, int64_t i) { return (char *)p + i * (int64_t)rft_test_size(type); }

/* A value that the type holds exactly; normal in it, 0, Inf or NaN. */
static inline void rft_test_set(rft_type type, void *p, int64_t i, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == RFT_F32) {
        memcpy(rft_test_at(type, p, i), &bits, sizeof bits);
        return;
    }
    uint16_t half = (uint16_t)(bits >> 16);
    if (type == RFT_F16) {
        const uint32_t magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
        half = (uint16_t)(sign | (magnitude == 0            ? 0
                                  : magnitude >= 0x7f800000 ? 0x7c00 | (magnitude >> 13 & 0x3ff)
                                                            : (magnitude >> 13) - (112 << 10)));
    }
    memcpy(rft_test_at(type, p, i), &half, sizeof half);
}

static inline float rft_test_get(rft_type type, const void *p, int64_t i) {
    float value;
    uint32_t bits = 0;
    memcpy(&bits, (const char *)p + i * (int64_t)rft_test_size(type), rft_test_size(type));
    if (type == RFT_F16) {
        const uint32_t magnitude = bits & 0x7fff;
        if (magnitude < 0x400) {
            return ((bits & 0x8000) != 0 ? -1.0f : 1.0f) * (float)magnitude * 0x1p-24f;
        }
        bits =
            (bits & 0x8000) << 16 | (magnitude >= 0x7c00 ? (magnitude << 13) + (224u << 23) : (magnitude << 13) + (112u << 23));
    } else if (type == RFT_BF16) {
        bits <<= 16;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void rft_test_random(rft_type type, void *p, int64_t count, uint64_t seed) {
    OK(rft_fill_random(type, p, count, seed, &test_err));
}

/* ---- contexts ---- */

static inline rft_ctx *rft_test_context(const char *isa, uint32_t threads) {
    rft_ctx_options o = rft_test_options(NULL);
    rft_ctx *ctx = NULL;
    o.max_isa = isa;
    o.threads = threads;
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    return ctx;
}

typedef struct levels { /* of this machine, lowest first */
    char text[256];
    const char *name[TEST_LEVELS];
    int count;
} levels;

static inline void rft_test_levels(levels *l) {
    rft_build_info build = rft_build_info_init();
    OK(rft_get_build_info(&build));
    snprintf(l->text, sizeof l->text, "%s", build.isa_built);
    l->count = 0;
    for (char *name = strtok(l->text, ","); name != NULL; name = strtok(NULL, ",")) {
        l->name[l->count++] = name;
        if (strcmp(name, build.isa_here) == 0) {
            return;
        }
    }
    fail_msg("isa_here = %s is not in isa_built = %s", build.isa_here, build.isa_built);
}

/* ---- one product ---- */

typedef struct product {
    rft_ctx *ctx;
    const char *kernel;   /* the only one that may serve, or NULL */
    rft_linear_desc desc; /* m_min..m_max: 0..0 stands for args.m alone */
    rft_linear_args args; /* but weight and workspace; w is for RFT_W_DYNAMIC */
    const void *w;        /* as desc.w says */
} product;

static inline product rft_test_dense(rft_ctx *ctx, rft_type type, int64_t m, int64_t n, int64_t k) {
    product p = {.ctx = ctx, .desc = rft_linear_desc_init(), .args = rft_linear_args_init()};
    p.desc.x = p.desc.w.elem = type;
    p.desc.y = RFT_F32;
    p.desc.w.n = n;
    p.desc.w.k = k;
    p.args.m = m;
    return p;
}

/* A plan, its weight and its workspace, ready for many runs. */
typedef struct prepared {
    rft_plan *plan;
    rft_test_packed packed;
    rft_linear_args args;
} prepared;

static inline prepared rft_test_prepare(const product *p) {
    prepared r = {.args = p->args};
    rft_linear_desc d = p->desc;
    rft_plan_info info = rft_plan_info_init();
    if (d.m_max == 0) {
        d.m_min = d.m_max = p->args.m;
    }
    OK(p->kernel != NULL ? rft_plan_create_forced(p->ctx, &d, p->kernel, &r.plan, &test_err)
                         : rft_plan_create(p->ctx, &d, &r.plan, &test_err));
    OK(rft_plan_get_info(r.plan, p->args.m, &info));
    r.args.workspace = rft_test_storage(info.workspace);
    r.args.workspace_bytes = info.workspace;
    memset(r.args.workspace, 0xff, info.workspace);
    if ((d.flags & RFT_W_DYNAMIC) == 0) {
        r.packed = rft_test_pack(p->ctx, &d.w, p->w);
        r.args.weight = r.packed.weight;
    }
    return r;
}

static inline void rft_test_discard(prepared *r) {
    rft_test_unpack(&r->packed);
    free(r->args.workspace);
    rft_plan_free(r->plan);
}

static inline void rft_test_run(const product *p) {
    prepared r = rft_test_prepare(p);
    OK(rft_linear_run(r.plan, &r.args, &test_err));
    rft_test_discard(&r);
}

/* Runs it and asks rft_verify. */
static inline void rft_test_prove(const product *p) {
    rft_verify_result v = {.struct_size = sizeof v};
    prepared r = rft_test_prepare(p);
    OK(rft_linear_run(r.plan, &r.args, &test_err));
    OK(rft_verify(r.plan, &r.args, p->w, 0, 1, &v, &test_err));
    rft_test_discard(&r);
    if (!(v.worst <= 1)) {
        fail_msg("y[%lld][%lld][%lld] = %g, reference %g, %g of the bound", (long long)v.worst_b, (long long)v.worst_m,
                 (long long)v.worst_n, v.worst_y, v.worst_ref, v.worst);
    }
}

#endif
