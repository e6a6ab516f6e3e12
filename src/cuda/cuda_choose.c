/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_choose.c - which kernel serves each m: every row of kernels_cuda.def is refused with a reason or gets the seconds of its
 * family's cost model; the least wins. Each m up to 64 is judged on its own, then ranges that grow; a range keeps the config of
 * the one before where that costs at most 2 % more, so that a plan compiles few kernels.
 */
#include "cuda/cuda_choice.h"
#include "cuda/cuda_debug.h"
#include "format/format.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 256, CONFIG_TEXT = 4096, KEEP_PERCENT = 102, WORKSPACE_ALIGN = 256 };

/* ---- one row ---- */

static const char *compute_name(rft__cuda_compute c) {
    static const char *const names[] = {"f32", "tf32", "f16", "bf16"};
    return names[c];
}

static bool multiplies(const rft__problem *p) { return p->w.k != 0 && p->alpha != 0.0f && p->w.n != 0 && p->batch != 0; }

/* Whether a row is out of the question at every m; why, where reason is not NULL. */
static bool refuse_row(const rft__cuda_device *d, const rft__problem *p, const rft__cuda_row *r, char *reason) {
    const bool rounds = r->compute == RFT__CUDA_TF32 && (p->x == RFT_F32 || p->w.elem == RFT_F32);
    if (r->x != p->x || r->w != p->w.elem) {
        rft__cuda_refuse(reason, "reads x of %s and w of %s; they are %s and %s", rft__type_name(r->x), rft__type_name(r->w),
                         rft__type_name(p->x), rft__format_name(p->w.elem));
    } else if (r->arch == 90 ? d->facts.arch != 90 : d->facts.arch < r->arch) {
        rft__cuda_refuse(reason, "needs compute capability %d.%d; this is %d.%d", r->arch / 10, r->arch % 10, d->facts.arch / 10,
                         d->facts.arch % 10);
    } else if (p->compute == RFT_COMPUTE_F32 && r->compute != RFT__CUDA_F32) {
        rft__cuda_refuse(reason, "multiplies in %s; RFT_COMPUTE_F32 asks for f32", compute_name(r->compute));
    } else if (rounds && p->compute != RFT_COMPUTE_TF32) {
        rft__cuda_refuse(reason, "rounds f32 operands to tf32, which only RFT_COMPUTE_TF32 allows");
    } else if (!multiplies(p) && r->family != &rft__cuda_gemm_simt) {
        rft__cuda_refuse(reason, "multiplies; there is nothing to multiply");
    } else if (p->batch_invariant && !r->family->any_m) {
        rft__cuda_refuse(reason, "sums differently at other m; RFT_BATCH_INVARIANT forbids that");
    } else {
        return false;
    }
    return true;
}

/* Arguments that a plan must reckon with: those that suit everything but for what is known of a view's strides, or, with
 * `any`, pointers that are aligned to their elements alone and odd strides. */
static rft__cuda_args expected_args(const rft__problem *p, bool any) {
    const bool view = p->w.view && !any;
    const long long dense = any ? 1048577 : 1048576;
    const long long ldw = p->w.order == RFT_K_CONTIGUOUS ? p->w.n_stride : p->w.k_stride;
    rft__cuda_args a = {.m = (int)p->m_max,
                        .n = (int)p->w.n,
                        .k = (int)p->w.k,
                        .batch = (int)p->batch,
                        .ldx = dense,
                        .ldw = view ? ldw : dense,
                        .ldy = dense,
                        .x_batch_stride = dense,
                        .w_batch_stride = p->w.batch == 1 ? 0 : view ? p->w.batch_stride : dense,
                        .y_batch_stride = dense};
    const uintptr_t base = 4096;
    a.x = (const void *)(base + (any ? rft__type_size(p->x) : 0));
    a.w = (const void *)(base + (any ? rft__type_size(p->w.elem) : 0));
    a.y = (void *)(base + (any ? rft__type_size(p->y) : 0));
    return a;
}

static const char *unsuited(const rft__problem *p, const rft__cuda_config *c, const rft__cuda_args *expected) {
    return c->row->family->unsuited != NULL ? c->row->family->unsuited(p, c, expected) : NULL;
}

/* ---- the search at one m ---- */

typedef struct search {
    const rft__cuda_device *d;
    const rft__problem *p;
    bool any; /* only configs that take every pointer and stride, and have no rows compiled in */
    rft__cuda_args expected;
    int n;
    const rft__cuda_row *row[MAX_ROWS]; /* those that are not refused at every m */
} search;

static bool is_named(const rft__cuda_row *r, const char *forced) { return forced == NULL || strcmp(forced, r->name) == 0; }

static search search_of(const rft__cuda_device *d, const rft__problem *p, const char *forced, bool any) {
    search s = {.d = d, .p = p, .any = any, .expected = expected_args(p, any)};
    for (int i = 0; i < rft__cuda_row_count && s.n < MAX_ROWS; i++) {
        const rft__cuda_row *const r = &rft__cuda_rows[i];
        if (is_named(r, forced) && !refuse_row(d, p, r, NULL)) {
            s.row[s.n++] = r;
        }
    }
    return s;
}

static const char *refuse_config(const search *s, const rft__cuda_config *c) {
    if (c->cluster > s->d->facts.sms) {
        return "has clusters of more blocks than there are multiprocessors";
    }
    if (s->p->batch_invariant && c->m != 0) {
        return "has its rows compiled in; RFT_BATCH_INVARIANT asks for one kernel at every m";
    }
    if (s->any && c->m != 0) {
        return "has its rows compiled in";
    }
    return unsuited(s->p, c, &s->expected);
}

/* The row's cheapest config and its seconds; negative where it has none, and why, where reason is not NULL. */
static double take_best(const search *s, const rft__cuda_row *r, int64_t m, rft__cuda_config *best, char *reason) {
    rft__cuda_config list[RFT__CUDA_CONFIGS];
    const rft__cuda_facts *const f = &s->d->facts;
    const char *why = NULL;
    const int n = r->family->configs(f, s->p, m, r, list, reason);
    double least = -1.0;
    for (int i = 0; i < n; i++) {
        const char *const bad = refuse_config(s, &list[i]);
        const double seconds = bad == NULL ? r->family->seconds(f, s->p, m, &list[i]) : -1.0;
        why = bad != NULL ? bad : why;
        if (seconds >= 0.0 && (least < 0.0 || seconds < least)) {
            least = seconds;
            *best = list[i];
        }
    }
    if (least < 0.0 && why != NULL) {
        rft__cuda_refuse(reason, "%s", why);
    }
    return least;
}

/* The cheapest config of all rows; its seconds, negative where there is none. */
static double cheapest(const search *s, int64_t m, rft__cuda_config *best) {
    double least = -1.0;
    for (int i = 0; i < s->n; i++) {
        rft__cuda_config one;
        const double seconds = take_best(s, s->row[i], m, &one, NULL);
        if (seconds >= 0.0 && (least < 0.0 || seconds < least)) {
            least = seconds;
            *best = one;
        }
    }
    return least;
}

int rft__cuda_judge(const rft__cuda_device *d, const rft__problem *p, const char *forced, int64_t m, rft__cuda_candidate *list,
                    int cap) {
    const search s = search_of(d, p, forced, false);
    int n = 0;
    for (int i = 0; i < rft__cuda_row_count && n < cap; i++) {
        const rft__cuda_row *const r = &rft__cuda_rows[i];
        if (is_named(r, forced)) {
            rft__cuda_candidate *const c = &list[n++];
            *c = (rft__cuda_candidate){.config = {.row = r}, .seconds = -1.0};
            c->seconds = refuse_row(d, p, r, c->reason) ? -1.0 : take_best(&s, r, m, &c->config, c->reason);
        }
    }
    return n;
}

int rft__cuda_refuse(char *reason, const char *format, ...) {
    if (reason != NULL) {
        va_list values;
        va_start(values, format);
        vsnprintf(reason, RFT__CUDA_REASON, format, values);
        va_end(values);
    }
    return 0;
}

/* ---- the table ---- */

static bool same_config(const rft__cuda_config *a, const rft__cuda_config *b) {
    return a->row == b->row && a->m == b->m && a->split == b->split && a->cluster == b->cluster && a->stages == b->stages &&
           memcmp(a->option, b->option, sizeof a->option) == 0;
}

/* Whether a config of an earlier range is still one of its row's at m. */
static bool still_serves(const search *s, int64_t m, const rft__cuda_config *c) {
    rft__cuda_config list[RFT__CUDA_CONFIGS];
    const int n = c->m != 0 && c->m != m ? 0 : c->row->family->configs(&s->d->facts, s->p, m, c->row, list, NULL);
    for (int i = 0; i < n; i++) {
        if (same_config(&list[i], c)) {
            return true;
        }
    }
    return false;
}

/* The last m of the range that begins at m. */
static int64_t range_end(const rft__problem *p, int64_t m) {
    int64_t step = 1;
    while (m > RFT__CUDA_TABLE_M && step * 16 < m) {
        step *= 2;
    }
    const int64_t end = m <= RFT__CUDA_TABLE_M ? m : rft__round_up(m, rft__max(step, 32));
    return p->batch_invariant ? p->m_max : rft__min(end, p->m_max);
}

static void add_range(rft__cuda_choice *c, int64_t end, const rft__cuda_config *config) {
    const bool same = c->n_range > 0 && same_config(&c->range[c->n_range - 1].pick.config, config);
    if (same || c->n_range == RFT__CUDA_RANGES) {
        c->range[c->n_range - 1].m_last = end;
        return;
    }
    c->range[c->n_range++] = (rft__cuda_range){end, {*config, NULL}};
}

static rft_status no_kernel(const rft__cuda_choice *c, const char *forced, int64_t m, rft_error *err) {
    rft__cuda_candidate first;
    const int n = rft__cuda_judge(c->device, &c->p, forced, m, &first, 1);
    if (n == 0) {
        RFT_FAIL(err, RFT_E_ARG, "kernel %s is no row of the CUDA kernels", forced);
    }
    RFT_FAIL(err, RFT_E_UNSUPPORTED, "%s%s %s", forced != NULL ? "kernel " : "no kernel serves: ", first.config.row->name,
             first.reason);
}

/* At m that of the range before, if it costs little more, else the cheapest. False: no row serves. */
static bool config_at(const search *s, const rft__cuda_choice *c, int64_t m, rft__cuda_config *config) {
    const rft__cuda_config *const last = c->n_range > 0 ? &c->range[c->n_range - 1].pick.config : NULL;
    const double least = cheapest(s, m, config);
    if (least >= 0.0 && last != NULL && still_serves(s, m, last) &&
        last->row->family->seconds(&s->d->facts, s->p, m, last) * 100.0 <= least * KEEP_PERCENT) {
        *config = *last;
    }
    return least >= 0.0;
}

static rft_status fill_ranges(rft__cuda_choice *c, const char *forced, rft_error *err) {
    const search s = search_of(c->device, &c->p, forced, false);
    for (int64_t m = c->p.m_min; m <= c->p.m_max;) {
        const int64_t end = range_end(&c->p, m), judged = c->p.batch_invariant ? RFT__CUDA_INVARIANT_M : rft__max(end, 1);
        rft__cuda_config config;
        if (!config_at(&s, c, judged, &config)) {
            return no_kernel(c, forced, judged, err);
        }
        add_range(c, end, &config);
        m = end + 1;
    }
    return RFT_OK;
}

/* A config for operands that some range's kernel does not take. A forced kernel has none: such operands are then an error. */
static void fill_any(rft__cuda_choice *c, const char *forced) {
    const search s = search_of(c->device, &c->p, forced, true);
    const int64_t judged = c->p.batch_invariant ? RFT__CUDA_INVARIANT_M : rft__max(c->p.m_max, 1);
    bool needed = false;
    for (int i = 0; i < c->n_range; i++) {
        needed = needed || unsuited(&c->p, &c->range[i].pick.config, &s.expected) != NULL;
    }
    c->has_any = needed && cheapest(&s, judged, &c->any.config) >= 0.0;
}

static size_t workspace_at(const rft__cuda_choice *c, const rft__cuda_pick *pick, int64_t m) {
    rft__cuda_launch l = {.cluster = 1};
    pick->config.row->family->launch(&c->device->facts, &c->p, &pick->config, rft__max(m, 1), &l);
    return l.workspace;
}

/* What kernels need, and a dump behind it. */
static rft_status fill_workspace(rft__cuda_choice *c, rft_error *err) {
    for (int i = 0; i < c->n_range; i++) {
        const size_t bytes = workspace_at(c, &c->range[i].pick, c->range[i].m_last);
        c->workspace = bytes > c->workspace ? bytes : c->workspace;
    }
    const size_t bytes = c->has_any ? workspace_at(c, &c->any, c->p.m_max) : 0;
    size_t dump = 0;
    c->workspace = bytes > c->workspace ? bytes : c->workspace;
    c->dump_at = (size_t)rft__round_up((int64_t)c->workspace, WORKSPACE_ALIGN);
    RFT_TRY(rft__cuda_dump_bytes(c->device, &c->p, &dump, err));
    c->workspace = dump != 0 ? c->dump_at + dump : c->workspace;
    return RFT_OK;
}

/* ---- kernels ---- */

typedef struct request {
    rft__cuda_pick *pick;
    char text[CONFIG_TEXT];
} request;

static rft_status write_text(const rft__cuda_choice *c, request *r, rft_error *err) {
    rft__text t = {r->text, CONFIG_TEXT, 0};
    rft__cuda_config_text(&c->p, &r->pick->config, &t);
    if (t.length >= CONFIG_TEXT) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "the macros of kernel %s take %zu bytes, %d are allowed", r->pick->config.row->name,
                 t.length, CONFIG_TEXT - 1);
    }
    return RFT_OK;
}

static rft__cuda_wanted wanted_of(const rft__cuda_choice *c, const request *r) {
    const rft__cuda_family *const family = r->pick->config.row->family;
    rft__cuda_launch l = {.cluster = 1};
    family->launch(&c->device->facts, &c->p, &r->pick->config, rft__max(c->p.m_max, 1), &l);
    return (rft__cuda_wanted){family, r->text, l.shared, l.cluster};
}

static rft_status get_kernels(const rft__cuda_choice *c, request *requests, uint32_t n, rft_error *err) {
    rft__cuda_wanted wanted[RFT__CUDA_RANGES + 1] = {{0}};
    rft__cuda_kernel *kernels[RFT__CUDA_RANGES + 1] = {NULL};
    for (uint32_t i = 0; i < n; i++) {
        RFT_TRY(write_text(c, &requests[i], err));
        wanted[i] = wanted_of(c, &requests[i]);
    }
    RFT_TRY(rft__cuda_kernels_get(c->device, wanted, n, kernels, err));
    for (uint32_t i = 0; i < n; i++) {
        requests[i].pick->kernel = kernels[i];
    }
    return RFT_OK;
}

static uint32_t list_requests(rft__cuda_choice *c, request *requests) {
    uint32_t n = 0;
    for (int i = 0; i < c->n_range; i++) {
        requests[n++].pick = &c->range[i].pick;
    }
    if (c->has_any) {
        requests[n++].pick = &c->any;
    }
    return n;
}

/* A device that is only described has a compiler where it fills the cache, and none where it only explains. */
static rft_status compile(rft__cuda_choice *c, rft_error *err) {
    if (c->device->jit == NULL) {
        return RFT_OK;
    }
    const size_t bytes = ((size_t)c->n_range + 1) * sizeof(request);
    request *const requests = rft__alloc(&c->device->allocator, bytes, _Alignof(request));
    if (requests == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for the macros of a plan's kernels (%zu bytes)", bytes);
    }
    rft__cuda_scope scope = {0};
    rft_status status = c->device->driver != NULL ? rft__cuda_enter(c->device, &scope, err) : RFT_OK;
    if (status == RFT_OK) {
        status = get_kernels(c, requests, list_requests(c, requests), err);
        rft__cuda_leave(&scope);
    }
    rft__release(&c->device->allocator, requests, bytes);
    return status;
}

/* ---- the choice ---- */

static rft_status check_sizes(const rft__problem *p, rft_error *err) {
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"desc.m_max", p->m_max}, {"desc.w.n", p->w.n}, {"desc.w.k", p->w.k}, {"desc.batch", p->batch}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i].value > INT_MAX - 1024) {
            RFT_FAIL(err, RFT_E_UNSUPPORTED, "%s = %lld: kernels on a GPU count to %d", sizes[i].name, (long long)sizes[i].value,
                     INT_MAX - 1024);
        }
    }
    return RFT_OK;
}

static rft_status check_types(const rft__problem *p, rft_error *err) {
    if (rft__type_is_8bit(p->x) || rft__type_is_8bit(p->y)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "desc.x = %s, desc.y = %s: activations in 8 bits have no kernel on a GPU",
                 rft__type_name(p->x), rft__type_name(p->y));
    }
    return RFT_OK;
}

static rft_status fill(rft__cuda_choice *c, const char *forced, rft_error *err) {
    RFT_TRY(check_types(&c->p, err));
    RFT_TRY(check_sizes(&c->p, err));
    RFT_TRY(fill_ranges(c, forced, err));
    fill_any(c, forced);
    RFT_TRY(fill_workspace(c, err));
    return compile(c, err);
}

rft_status rft__cuda_choose(rft__device *device, const rft__problem *p, const char *forced, rft__choice **out, rft_error *err) {
    rft__cuda_device *const d = rft__cuda_of(device);
    rft__cuda_choice *const c = rft__alloc(&d->allocator, sizeof *c, _Alignof(rft__cuda_choice));
    if (c == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a plan (%zu bytes)", sizeof *c);
    }
    c->device = d;
    c->p = *p;
    c->forced = forced != NULL;
    const rft_status status = fill(c, forced, err);
    if (status != RFT_OK) {
        rft__cuda_choice_free(device, (rft__choice *)(void *)c);
        return status;
    }
    *out = (rft__choice *)(void *)c;
    return RFT_OK;
}

void rft__cuda_choice_free(rft__device *device, rft__choice *choice) {
    rft__cuda_device *const d = rft__cuda_of(device);
    rft__cuda_choice *const c = (rft__cuda_choice *)(void *)choice;
    rft__cuda_scope scope = {0};
    const bool here = d->driver != NULL && rft__cuda_enter(d, &scope, NULL) == RFT_OK;
    for (int i = 0; here && i < c->n_range; i++) {
        rft__cuda_kernel_drop(d, c->range[i].pick.kernel);
    }
    if (here) {
        rft__cuda_kernel_drop(d, c->any.kernel);
        rft__cuda_leave(&scope);
    }
    rft__release(&d->allocator, c, sizeof *c);
}
