/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_run.c - runs plans: the arguments of each kernel, its tensor maps, one launch each on the caller's stream.
 * Called by api. Invariant: nothing here allocates, compiles, waits or locks, so a run may be captured into a graph.
 */
#include "cuda/cuda_choice.h"
#include "cuda/cuda_debug.h"
#include "cuda/cuda_pack.h"

#include <stdint.h>

_Static_assert(sizeof(rft__cuda_map) == sizeof(CUtensorMap), "one tensor map, two names");
_Static_assert(RFT_CUDA_OPERANDS == RFT_MAX_OPERANDS, "as many operands as a list may name");

static void fill_w(const rft__problem *p, const rft_linear_args *from, rft__cuda_args *a) {
    if (from->w != NULL) {
        a->w = from->w;
        a->ldw = from->ldw;
        a->w_batch_stride = from->w_batch_stride;
    } else if (from->weight != NULL) {
        const rft__matrix packed = rft__cuda_packed_matrix(&p->w);
        a->w = from->weight->data;
        a->ldw = packed.n_stride;
        a->w_batch_stride = p->w.batch < p->batch ? 0 : packed.batch_stride;
    }
}

static void fill_args(const rft__problem *p, const rft_linear_args *from, rft__cuda_args *a) {
    const bool product = p->alpha != 0.0f && p->w.k != 0;
    *a = (rft__cuda_args){.y = from->y,
                          .workspace = from->workspace,
                          .ldx = from->ldx,
                          .ldy = from->ldy,
                          .x_batch_stride = from->x_batch_stride,
                          .y_batch_stride = from->y_batch_stride,
                          .m = (int)from->m,
                          .n = (int)p->w.n,
                          .k = product ? (int)p->w.k : 0,
                          .batch = (int)p->batch};
    if (product) {
        a->x = from->x;
        fill_w(p, from, a);
    }
    for (uint32_t i = 0; i < p->epi.n_operand; i++) {
        const rft_operand *const o = &from->operand[i];
        a->operand[i] = (rft__cuda_operand){o->ptr, o->ld != 0 ? o->ld : rft__epi_row_columns(&p->epi, i), o->batch_stride};
    }
}

/* ---- tensor maps ---- */

static CUtensorMapDataType map_type(rft_type t) {
    return t == RFT_F32 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
           : t == RFT_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                          : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

static CUtensorMapSwizzle map_swizzle(int bytes) {
    return bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
           : bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
           : bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                         : CU_TENSOR_MAP_SWIZZLE_NONE;
}

static rft_status encode(const rft__driver *driver, const rft__cuda_map_spec *spec, rft__cuda_map *map, rft_error *err) {
    static const uint32_t one[5] = {1, 1, 1, 1, 1};
    if (driver->cuTensorMapEncodeTiled == NULL) {
        RFT_FAIL(err, RFT_E_DEVICE, "this driver has no cuTensorMapEncodeTiled, which kernels for sm_90 need");
    }
    const CUresult result = driver->cuTensorMapEncodeTiled(
        (CUtensorMap *)map, map_type(spec->elem), (unsigned)spec->rank, (void *)(uintptr_t)spec->address, spec->dim,
        spec->stride + 1, spec->box, one, CU_TENSOR_MAP_INTERLEAVE_NONE, map_swizzle(spec->swizzle),
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return rft__driver_check(result, "describing an operand to the copy engine", err);
}

static rft_status encode_all(const rft__driver *driver, const rft__problem *p, const rft__cuda_config *config,
                             const rft__cuda_args *a, rft__cuda_map map[RFT_CUDA_MAPS], rft_error *err) {
    rft__cuda_map_spec spec[RFT_CUDA_MAPS] = {{0}};
    config->row->family->maps(p, config, a, spec);
    for (int i = 0; i < RFT_CUDA_MAPS; i++) {
        if (spec[i].rank != 0) {
            RFT_TRY(encode(driver, &spec[i], &map[i], err));
        }
    }
    return RFT_OK;
}

/* ---- launch ---- */

/* A run whose pointers or strides its kernel does not take goes to the plan's kernel for any: said once, forbidden by strict. */
static rft_status take_any(const rft__cuda_device *d, const rft__cuda_choice *c, const char *kernel, const char *why,
                           rft_error *err) {
    if (!c->has_any || d->strict) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "kernel %s: %s%s", kernel, why,
                 c->has_any ? "; RFT_CTX_STRICT forbids a slower one" : "");
    }
    atomic_bool *const said = (atomic_bool *)(uintptr_t)&c->said;
    if (rft__log_enabled(&d->log, RFT_LOG_HINT) && !atomic_exchange(said, true)) {
        rft__log_event(&d->log, RFT_LOG_HINT, "fallback", kernel, -1, "%s; %s runs", why, c->any.config.row->name);
    }
    return RFT_OK;
}

static rft_status pick_for(const rft__cuda_device *d, const rft__cuda_choice *c, const rft__cuda_args *a,
                           const rft__cuda_pick **pick, rft_error *err) {
    *pick = rft__cuda_pick_at(c, a->m);
    const rft__cuda_family *const family = (*pick)->config.row->family;
    const char *const why = family->unsuited != NULL ? family->unsuited(&c->p, &(*pick)->config, a) : NULL;
    if (why != NULL) {
        RFT_TRY(take_any(d, c, (*pick)->config.row->name, why, err));
        *pick = &c->any;
    }
    return RFT_OK;
}

static rft_status run_one(const rft__cuda_device *d, const rft__run *run, rft_error *err) {
    const rft__cuda_choice *const c = rft__cuda_choice_of(run->choice);
    rft__cuda_args args;
    rft__cuda_map map[RFT_CUDA_MAPS];
    fill_args(&c->p, run->args, &args);
    const rft__cuda_pick *pick = NULL;
    RFT_TRY(pick_for(d, c, &args, &pick, err));
    const rft__cuda_family *const family = pick->config.row->family;
    rft__cuda_launch l = {.cluster = 1};
    family->launch(&d->facts, &c->p, &pick->config, args.m, &l);
    for (int i = 0; i < RFT_CUDA_NUMBERS; i++) {
        args.number[i] = l.number[i];
    }
    if (family->maps != NULL) {
        RFT_TRY(encode_all(d->driver, &c->p, &pick->config, &args, map, err));
    }
    rft__cuda_debug_fill(d, pick->config.row, c->dump_at, &args);
    void *parameters[] = {&args, &map[0], &map[1], &map[2], &map[3], &map[4], &map[5]};
    const bool dependent = d->facts.arch >= 90;
    return rft__cuda_enqueue(d, pick->kernel, &l, dependent, parameters, run->args->stream, pick->config.row->name, err);
}

rft_status rft__cuda_run(rft__device *device, const rft__run *runs, uint32_t count, rft_error *err) {
    const rft__cuda_device *const d = rft__cuda_of(device);
    rft__cuda_scope scope;
    RFT_TRY(rft__cuda_enter(d, &scope, err));
    rft_status status = RFT_OK;
    for (uint32_t i = 0; i < count && status == RFT_OK; i++) {
        status = run_one(d, &runs[i], err);
    }
    rft__cuda_leave(&scope);
    return status;
}
