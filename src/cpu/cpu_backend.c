/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_backend.c - the CPU as a backend: opens a device, and hands plan and api the functions of this folder.
 */
#include "base/env.h"
#include "base/hash.h"
#include "cpu/cpu_choice.h"
#include "cpu/cpu_memory.h"
#include "cpu/cpu_quantise.h"
#include "cpu/cpuid.h"

#include <stdio.h>
#include <string.h>

static const rft__isa_ops none = {0};

/* The best of each entry over the levels in use. */
static rft__isa_ops merged_ops(const rft__device *d) {
    rft__isa_ops ops = {0};
    for (int l = 0; l <= d->level; l++) {
        const rft__isa_ops *own = rft__device_uses(d, l) ? &rft__isa_at(l)->ops : &none;
        for (int t = 0; t <= RFT_BF16; t++) {
            ops.to_f32[t] = own->to_f32[t] != NULL ? own->to_f32[t] : ops.to_f32[t];
            ops.to_same[t] = own->to_same[t] != NULL ? own->to_same[t] : ops.to_same[t];
            ops.decode[t] = own->decode[t] != NULL ? own->decode[t] : ops.decode[t];
        }
        ops.widen = own->widen != NULL ? own->widen : ops.widen;
        ops.unpack = own->unpack != NULL ? own->unpack : ops.unpack;
        ops.quantise = own->quantise != NULL ? own->quantise : ops.quantise;
        ops.record = own->record != NULL ? own->record : ops.record;
        ops.settle = own->settle != NULL ? own->settle : ops.settle;
        ops.x8 = own->x8 != NULL ? own->x8 : ops.x8;
        ops.epilogue = own->epilogue != NULL ? own->epilogue : ops.epilogue;
    }
    return ops;
}

/* Peak of an op in a profile at its highest thread count, or 0. */
static double profile_peak(const rft_machine *m, const char *op) {
    double best = 0.0;
    for (uint32_t i = 0; i < m->n_peaks && m->n_counts > 0; i++) {
        const double peak = strcmp(m->peaks[i].op, op) == 0 ? m->peaks[i].gflops[m->n_counts - 1] : 0.0;
        best = peak > best ? peak : best;
    }
    return best;
}

static rft_status set_level(rft__device *d, const rft__device_options *o, rft_error *err) {
    if (o->as != NULL) {
        d->level = rft__isa_find(o->as->isa);
        d->levels = UINT32_MAX;
        const double fma = profile_peak(o->as, "fma_f32"), dot = profile_peak(o->as, "dot_bf16");
        d->dot_rate = fma > 0.0 && dot > 0.0 ? dot / fma : 1.0;
        if (d->level < 0) {
            RFT_FAIL(err, RFT_E_ARG, "profile: isa \"%s\" is none of this build's levels (%s)", o->as->isa, rft__cpu_isa_built());
        }
        return RFT_OK;
    }
    d->level = rft__isa_cap(o->ctx->max_isa);
    if (d->level < 0) {
        const bool option = o->ctx->max_isa != NULL;
        RFT_FAIL(err, RFT_E_ARG, "%s = \"%s\" is none of this build's levels (%s)", option ? "options.max_isa" : "RFT_MAX_ISA",
                 option ? o->ctx->max_isa : rft__env_text("RFT_MAX_ISA"), rft__cpu_isa_built());
    }
    for (int l = 0; l < rft__isa_count(); l++) {
        d->levels |= (uint32_t)rft__isa_runs(l) << l;
    }
    d->dot_rate = d->level >= rft__isa_find("avx512bf16") && rft__isa_find("avx512bf16") >= 0 ? rft__dot_rate_here() : 1.0;
    return RFT_OK;
}

/* Cache sizes from the working sets of a profile: half of L1 and of L2 for each thread, half of L3 for all. */
static rft__topology topology_of(const rft_machine *as) {
    const uint64_t threads = as->n_counts > 0 ? as->counts[as->n_counts - 1] : 1;
    rft__topology t = {.nodes = 1};
    for (uint32_t i = 0; i < as->n_levels; i++) {
        const uint64_t bytes = 2 * as->levels[i].bytes;
        t.l1d = strcmp(as->levels[i].name, "L1") == 0 ? bytes / threads : t.l1d;
        t.l2 = strcmp(as->levels[i].name, "L2") == 0 ? bytes / threads : t.l2;
        t.l3 = strcmp(as->levels[i].name, "L3") == 0 ? bytes : t.l3;
    }
    return t;
}

static void cpu_close(rft__device *d) {
    const rft__allocator a = d->allocator;
    if (d->pool != NULL) {
        rft__pool_free(d->pool);
    }
    rft__release(&a, d, sizeof *d);
}

static rft_status set_up(rft__device *d, const rft__device_options *o, rft_error *err) {
    RFT_TRY(set_level(d, o, err));
    d->ops = merged_ops(d);
    if (o->as != NULL) {
        d->topology = topology_of(o->as);
        d->threads = (int)(o->as_threads != 0 ? o->as_threads : 1);
        return RFT_OK;
    }
    d->topology = rft__topology_here();
    d->threads = o->ctx->threads != 0 ? (int)o->ctx->threads : rft__pool_default_threads();
    return rft__pool_create(&d->allocator, d->threads, o->ctx->parallel_for, o->ctx->user, &d->pool, err);
}

static bool cpu_present(void) { return true; }

static rft_status cpu_open(const rft__device_options *o, rft__device **out, rft_error *err) {
    rft__device *d = rft__alloc(o->allocator, sizeof *d, _Alignof(rft__device));
    if (d == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a device (%zu bytes)", sizeof *d);
    }
    d->allocator = *o->allocator;
    const rft_status s = set_up(d, o, err);
    if (s != RFT_OK) {
        cpu_close(d);
        return s;
    }
    *out = d;
    return RFT_OK;
}

static void cpu_describe(const rft__device *d, rft_device_info *info) {
    info->threads = d->threads;
    info->nodes = d->topology.nodes;
    info->l1d = d->topology.l1d;
    info->l2 = d->topology.l2;
    info->l3 = d->topology.l3;
    info->memory = rft__memory_bytes();
    rft__cpu_name(info->name, sizeof info->name);
    snprintf(info->isa, sizeof info->isa, "%s", rft__isa_at(d->level)->name);
}

/* What a packed weight's bytes depend on, besides n, k and batch. */
static uint64_t cpu_weight_layout(const rft__matrix *w) {
    if (rft__matrix_is_low_bit(w)) {
        const rft__packing p = rft__packing_of(w);
        const uint32_t facts[] = {2 /* version */,  (uint32_t)w->elem, (uint32_t)p.scale, (uint32_t)p.offset,
                                  (uint32_t)p.step, (uint32_t)w->glu,  (uint32_t)w->sorted};
        return rft__hash(rft__hash(RFT_HASH_SEED, "cpu codes", 9), facts, sizeof facts);
    }
    const uint32_t facts[] = {1 /* version */, RFT__PANEL, (uint32_t)rft__panel_kr(w->elem), (uint32_t)w->elem, (uint32_t)w->glu};
    return rft__hash(rft__hash(RFT_HASH_SEED, "cpu panels", 10), facts, sizeof facts);
}

static rft_status cpu_weight_bytes(const rft__matrix *w, size_t *bytes, rft_error *err) {
    (void)err;
    *bytes = (size_t)rft__cpu_packed_bytes(w);
    return RFT_OK;
}

static rft_status cpu_weight_pack(rft__device *d, const rft__matrix *w, const rft__stored_w *from, void *data, void *stream,
                                  rft_error *err) {
    (void)stream;
    return rft__cpu_pack(d, w, from, data, err);
}

static rft_status cpu_weight_unpack(rft__device *d, const rft__matrix *w, const void *data, float *out, int64_t ld,
                                    rft_error *err) {
    (void)d;
    (void)err;
    rft__cpu_unpack(w, data, out, ld);
    return RFT_OK;
}

static void cpu_choice_info(const rft__choice *c, int64_t m, rft_plan_info *info) {
    const rft__cpu_pick *pick = rft__cpu_pick_at(c, m);
    const rft__grid g = rft__cpu_grid(c, pick, m);
    const double k = (double)c->p.w.k;
    info->kernel = pick->kernel->name;
    info->workspace = rft__cpu_workspace(c);
    info->workspace_align = 64;
    /* With X in 8 bits: its rounding to f32 in the reference and W's, or a scaled sum's, the product of scales, the last FMA. One
     * sum over all k is rounded once instead of a chain. Sums of 32 k in f32: W's rounding in the reference, a scaled sum, two
     * more additions where there is a minimum. */
    const bool in_8_bits = pick->kernel->x == RFT_I8, rounds_x = in_8_bits && c->p.x != RFT_I8;
    const bool sums = in_8_bits || pick->kernel->sums;
    const double chain = in_8_bits && c->packing.one_sum ? 1.0 : k;
    info->error_c = (pick->kernel->gamma * chain + (sums ? 4 : 0) + g.kk - 1) * 0x1p-24 * (1.0 + k * 0x1p-23);
    info->minimum_apart = sums && c->packing.offset == RFT__OFFSET_MINIMUM;
    info->error_x = rounds_x ? 1.0 / 254.0 : 0.0;
    info->group_x = !rounds_x ? 0 : rft__problem_rounds_rows(&c->p) ? c->p.x_group_k : c->packing.x_group;
    info->error_eta = pick->kernel->eta_lane * (k + g.kk);
    info->threads = rft__grid_parts(&g);
}

static const char *cpu_choice_fallback(const rft__choice *c) { return c->fallback[0] != '\0' ? c->fallback : NULL; }

uint32_t rft__cpu_kernel_count(void) {
    int n = 0;
    for (int level = 0; level < rft__isa_count(); level++) {
        n += rft__isa_at(level)->n_kernels;
    }
    return (uint32_t)n;
}

rft_status rft__cpu_kernel_get(uint32_t i, rft_kernel_info *info) {
    int level = 0;
    while (i >= (uint32_t)rft__isa_at(level)->n_kernels) {
        i -= (uint32_t)rft__isa_at(level++)->n_kernels;
    }
    const rft__cpu_kernel *k = rft__isa_at(level)->kernels + i;
    info->name = k->name;
    info->isa = k->isa;
    info->x = k->x;
    info->w = k->w;
    info->acc = k->acc;
    info->mr = k->mr;
    info->nr = k->nr;
    info->kr = k->kr;
    info->available = rft__isa_runs(level);
    info->error_gamma = k->gamma;
    info->error_eta = k->eta_lane;
    return RFT_OK;
}

const rft__backend rft__backend_cpu = {
    .name = "cpu",
    .present = cpu_present,
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .memory_alloc = rft__cpu_memory_alloc,
    .memory_free = rft__cpu_memory_free,
    .memory_copy = rft__cpu_memory_copy,
    .memory_fill = rft__cpu_memory_fill,
    .memory_of = rft__cpu_memory_of,
    .memory_read = rft__cpu_memory_read,
    .sync = rft__cpu_sync,
    .measure = rft__cpu_measure,
    .weight_layout = cpu_weight_layout,
    .weight_bytes = cpu_weight_bytes,
    .weight_pack = cpu_weight_pack,
    .weight_unpack = cpu_weight_unpack,
    .choose = rft__cpu_choose,
    .choice_free = rft__cpu_choice_free,
    .choice_info = cpu_choice_info,
    .choice_fallback = cpu_choice_fallback,
    .choice_explain = rft__cpu_explain,
    .run = rft__cpu_run,
    .quantize = rft__cpu_quantize,
    .kernel_count = rft__cpu_kernel_count,
    .kernel_get = rft__cpu_kernel_get,
};
