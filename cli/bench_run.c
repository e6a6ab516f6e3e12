/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_run.c - see bench_run.h. Contender 0 is the cold run of the library; behind it stand the warm run, the separate
 * passes and the peers, each where asked for.
 */
#include "bench_run.h"
#include "bench_case.h"
#include "bench_timer.h"
#include "machine_files.h"
#include "unfused.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOF_LIMIT 1.03
#define AGREEMENT  0.02 /* relative root-mean-square difference of two right results, roundings to bf16 included */
#define CONTENDERS (4 + ROW_PEERS)

typedef struct line_up {
    contender c[CONTENDERS];
    const char *name[CONTENDERS]; /* NULL: one of ours */
    const char *version[CONTENDERS];
    int n, warm;    /* warm: its index, or 0 */
    int idle;       /* index of the foreign kernel alone, or -1 */
    int64_t copies; /* of the weights */
    foreign_kernel foreign;
    unfused passes;
    weight_set bare_set; /* of the passes behind a gated unit */
} line_up;

int bench_open(bench_job *job, const run_options *o) {
    rft_error err = {0};
    rft_device_info device = {.struct_size = sizeof device};
    job->o = o;
    if (o->between && strncmp(o->device, "cpu", 3) == 0)
        cli_message("--between: calls on the CPU do not overlap, so nothing is run between them");
    if (o->unfused && strncmp(o->device, "cpu", 3) != 0)
        cli_message("--unfused: the separate passes run on the CPU alone");
    else if (o->unfused && !(job->threads = team_create(o->threads))) {
        cli_message("--threads %u: cannot start the threads", o->threads);
        return CLI_LIBRARY;
    }
    uint32_t threads = job->threads ? (uint32_t)team_size(job->threads) : o->threads;
    run_options with_threads = *o;
    with_threads.threads = threads;
    int code = options_context(&with_threads, job->threads ? team_for : NULL, job->threads, &job->ctx);
    if (code != CLI_OK)
        return code;
    job->machine.struct_size = sizeof job->machine;
    job->has_machine = rft_ctx_get_machine(job->ctx, &job->machine, &err) == RFT_OK;
    if (!job->has_machine)
        cli_message("no machine profile, so no roof is shown; `rooftile roofline` measures one");
    if (rft_ctx_get_device(job->ctx, &device) == RFT_OK)
        job->context_threads = device.threads;
    return o->peers ? peers_open(o->peers, job->ctx, o->device, (uint32_t)job->context_threads, &job->peers) : CLI_OK;
}

void bench_describe(bench_job *job, const run_options *o, const rft_machine *machine) {
    job->o = o;
    job->machine = *machine;
    job->has_machine = true;
    job->context_threads = (int)(o->threads ? o->threads : machine->counts[machine->n_counts - 1]);
}

void bench_close(bench_job *job) {
    peers_close(&job->peers);
    rft_ctx_free(job->ctx);
    team_free(job->threads);
    job->ctx = NULL;
    job->threads = NULL;
}

int bench_weights(const bench_job *job, int64_t n, int64_t k, const rft_weight_src *source, weight_set *set) {
    rft_linear_desc d = options_desc(job->o, n, k, 1, 1);
    rft_work work = {.struct_size = sizeof work};
    rft_error err = {0};
    if (rft_work_of(&d, 1, &work, &err) != RFT_OK) /* refused before any data is made */
        return cli_failed(&err, "work");
    cli_progress("n %lld k %lld: weights", (long long)n, (long long)k);
    return weight_set_make(set, job->ctx, &d.w, source, job->o->dynamic, job->o->seed);
}

static rft_status run_cold(void *self, int64_t i, void *stream, rft_error *err) { return case_run(self, i, stream, err); }

static rft_status run_warm(void *self, int64_t i, void *stream, rft_error *err) {
    (void)i;
    return case_run(self, 0, stream, err);
}

static rft_status run_nothing(void *self, int64_t i, void *stream, rft_error *err) {
    (void)self, (void)i, (void)stream, (void)err;
    return RFT_OK;
}

static rft_status run_peer(void *self, int64_t i, void *stream, rft_error *err) {
    peer *p = self;
    if (p->kind->run(p, i, stream))
        return RFT_OK;
    *err = (rft_error){.status = RFT_E_DEVICE, .message = "its call failed"};
    return err->status;
}

typedef rft_status contender_call(void *self, int64_t i, void *stream, rft_error *err);

static void enlist(line_up *l, contender_call *call, void *self, const char *name, const char *version) {
    l->c[l->n] = (contender){.call = call, .self = self, .spread_over = l->copies};
    l->name[l->n] = name;
    l->version[l->n++] = version;
}

/* A gated unit pairs columns of W; the bare product reads the same W without the pairing. */
static int bare_weights(bench_job *job, const bench_case *c, line_up *l) {
    rft_weight_desc d = c->set->desc;
    const rft_weight_src source = weight_set_source(c->set, 0);
    d.flags &= ~(RFT_WEIGHT_GLU_HALVES | RFT_WEIGHT_GLU_INTERLEAVED);
    return weight_set_make(&l->bare_set, job->ctx, &d, &source, job->o->dynamic, job->o->seed);
}

/* A contender that computes something else is no comparison. What it rounded beforehand may show in its result. */
static bool agrees(const char *name, double difference, double rounding) {
    if (difference >= 0 && difference <= AGREEMENT + 2 * rounding)
        return true;
    cli_message("%s: its result differs from the proven one by %.2g (relative rms); left out", name, difference);
    return false;
}

static const char *refuses_unfused(const run_options *o) {
    if (o->y == RFT_F16 || cli_8bit(o->y) || o->batch > 1)
        return "output in f16 or 8 bits and batches have no separate pass here";
    return unfused_refuses(&o->epi);
}

static int enlist_unfused(bench_job *job, bench_case *c, const void *ours, line_up *l) {
    const char *refusal = refuses_unfused(job->o);
    if (refusal) {
        cli_message("--unfused: %s", refusal);
        return CLI_OK;
    }
    bool glu = epilogue_is_glu(&job->o->epi);
    int code = glu ? bare_weights(job, c, l) : CLI_OK;
    if (code == CLI_OK)
        code = unfused_make(&l->passes, c, glu ? &l->bare_set : c->set, job->threads);
    bool ran = code == CLI_OK && unfused_run(&l->passes, 0, NULL, &c->err) == RFT_OK;
    if (code == CLI_OK && agrees("unfused", ran ? unfused_difference(&l->passes, ours) : -1, 0))
        enlist(l, unfused_run, &l->passes, "unfused", "separate passes");
    return code;
}

static peer_product product_of(bench_case *c, weight_set *set) {
    const run_options *o = c->o;
    return (peer_product){.x = o->x,
                          .w = o->w,
                          .y = o->y,
                          .x_order = o->x_order,
                          .w_order = o->w_order,
                          .compute = o->compute,
                          .m = c->m,
                          .n = c->n,
                          .k = c->k,
                          .x_data = c->x.p,
                          .x_scale = c->x_scale.p,
                          .x_groups = cli_8bit(o->x) ? scales_along(c->k, o->x_groups.k) : 0,
                          .y_data = c->y.p,
                          .ctx = c->ctx,
                          .weights = set,
                          .epi = &o->epi,
                          .operand = c->operand};
}

/* Runs the peer once on the weights that made `ours`. */
static bool peer_agrees(peer *p, bench_case *c, const void *ours) {
    void *theirs = cli_map(c->y.bytes);
    bool ran = theirs && buffer_set(&c->y, 0xff, &c->err) == RFT_OK && p->kind->run(p, 0, NULL) &&
               rft_ctx_sync(c->ctx, NULL, &c->err) == RFT_OK && buffer_read(&c->y, 0, theirs, c->y.bytes, &c->err) == RFT_OK;
    bool good = agrees(p->name, ran ? peer_difference(c->o->y, ours, theirs, c->m * c->columns) : -1, p->rounding);
    cli_unmap(theirs, c->y.bytes);
    return good;
}

static void report_refusal(peer *p, const char *why) {
    if (strcmp(p->refusal, why) == 0)
        return;
    snprintf(p->refusal, sizeof p->refusal, "%s", why);
    cli_message("%s: left out: %s", p->name, why);
}

/* One without files reads W alone. */
static const char *refuses_peer(const run_options *o, const peer *p) {
    if (o->batch > 1)
        return "a batch is not offered to other libraries";
    if (p->kind->files && cli_8bit(o->y))
        return "y in 8 bits is not offered to other libraries";
    return NULL;
}

static void enlist_peer(bench_job *job, peer *p, bench_case *c, weight_set *set, const void *ours, line_up *l) {
    peer_product product = product_of(c, set);
    const char *refusal = refuses_peer(job->o, p);
    char why[CLI_WHY] = "";
    p->rounding = 0;
    if (refusal || !p->kind->prepare(p, &product, why))
        report_refusal(p, refusal ? refusal : why);
    else if (!p->kind->files || peer_agrees(p, c, ours))
        enlist(l, run_peer, p, p->name, p->version);
    else
        p->kind->finish(p);
}

/* Everyone who runs beside the library, each compared with its proven result first. */
static int enlist_others(bench_job *job, bench_case *c, weight_set *set, line_up *l) {
    if (job->peers.n == 0 && !job->threads)
        return CLI_OK;
    void *ours = cli_map(c->y.bytes);
    if (!ours || buffer_read(&c->y, 0, ours, c->y.bytes, &c->err) != RFT_OK)
        return CLI_LIBRARY;
    int code = job->threads ? enlist_unfused(job, c, ours, l) : CLI_OK;
    for (int i = 0; code == CLI_OK && i < job->peers.n && l->n < CONTENDERS; i++)
        enlist_peer(job, &job->peers.v[i], c, set, ours, l);
    cli_unmap(ours, c->y.bytes);
    return code;
}

static void dismiss(line_up *l) {
    for (int i = 1; i < l->n; i++)
        if (l->c[i].call == run_peer) {
            peer *p = l->c[i].self;
            p->kind->finish(p);
        }
    unfused_free(&l->passes);
    weight_set_free(&l->bare_set);
    foreign_free(&l->foreign);
}

/* Everyone has the foreign kernel behind each call, and it runs once by itself. */
static int add_foreign(const bench_job *job, line_up *l) {
    rft_error err = {0};
    if (!job->o->between || on_host(job->ctx))
        return CLI_OK;
    if (foreign_make(&l->foreign, job->ctx, &err) != RFT_OK)
        return cli_failed(&err, "--between");
    l->idle = l->n;
    enlist(l, run_nothing, NULL, NULL, NULL);
    for (int i = 0; i < l->n; i++)
        l->c[i].between = &l->foreign;
    return CLI_OK;
}

/* cold false: the weights may come from a cache, so that the memory roof does not hold. */
static void add_bound(const bench_job *job, const rft_linear_desc *desc, bool cold, bench_row *r) {
    rft_bound b = {.struct_size = sizeof b};
    r->bound = "unknown";
    if (!job->has_machine || rft_machine_bound(&job->machine, desc, r->m, (uint32_t)job->context_threads, &b, NULL) != RFT_OK)
        return;
    r->bound = cold ? b.what : "compute";
    r->bound_us = 1e6 * (cold ? b.seconds : b.compute_seconds);
    if (r->us <= 0)
        return;
    r->pct_roof = 100 * r->bound_us / r->us;
    r->pct_peak = 100 * 1e6 * b.compute_seconds / r->us;
    if (cold && r->min_bytes > 0)
        r->pct_read = 100 * 1e6 * b.memory_seconds * (r->packed_bytes / r->min_bytes) / r->us;
}

static void add_work(const rft_plan_info *info, bench_row *r) {
    snprintf(r->kernel, sizeof r->kernel, "%s", info->kernel);
    r->flops = info->flops;
    r->min_bytes = info->bytes;
    r->intensity = r->min_bytes > 0 ? r->flops / r->min_bytes : 0;
    r->tflops = r->us > 0 ? r->flops / r->us * 1e-6 : 0;
    r->gbps = r->us > 0 ? r->min_bytes / r->us * 1e-3 : 0;
}

static void add_proof(const rft_verify_result *v, bench_row *r) {
    double error = v->worst_y - v->worst_ref;
    r->err = error < 0 ? -error : error;
    r->err_limit = v->worst > 0 ? r->err / v->worst : v->limit;
}

static bench_row blank_row(const bench_job *job, int64_t m, int64_t n, int64_t k) {
    const run_options *o = job->o;
    bench_row r = {.device = o->device,
                   .layout = o->layout,
                   .epi = o->epi.text,
                   .phase = job->phase,
                   .y = rft_type_name(o->y),
                   .compute = compute_name(o->compute),
                   .m = m,
                   .n = n,
                   .k = k,
                   .on_gpu = job->ctx ? !on_host(job->ctx) : strncmp(o->device, "cuda", 4) == 0,
                   .threads = job->context_threads};
    x_text(o->x, &o->x_groups, r.x);
    if (job->w_name)
        snprintf(r.w, sizeof r.w, "%s", job->w_name);
    else
        weight_text(o->w, &o->w_scales, r.w);
    r.low_bit = cli_low_bit(o->w) && !r.on_gpu;
    return r;
}

static bench_row make_row(const bench_job *job, const bench_case *c, const contender *t, bool cold) {
    bench_row r = blank_row(job, c->m, c->n, c->k);
    r.us = t->us;
    r.call_us = t->call_us;
    r.us_min = t->us_min;
    r.spread = t->spread;
    r.cold = cold;
    r.packed_bytes = (double)c->set->packed_bytes;
    add_work(&c->info, &r);
    add_bound(job, &c->desc, cold, &r);
    add_proof(&c->proof, &r);
    return r;
}

/* The plan that would be made, or what is known of it where the machine is described and not here. */
static int plan_info(const bench_job *job, const rft_linear_desc *desc, int64_t m, char kernel[ROW_NAME], rft_plan_info *info) {
    rft_error err = {0};
    rft_plan *plan;
    if (options_plan(job->o, job->ctx, desc, &plan, &err) != RFT_OK)
        return cli_failed(&err, "plan");
    rft_status status = rft_plan_get_info(plan, m, info);
    if (status == RFT_OK)
        snprintf(kernel, ROW_NAME, "%s", info->kernel);
    rft_plan_free(plan);
    return status == RFT_OK ? CLI_OK : CLI_LIBRARY;
}

static int described_info(const bench_job *job, const rft_linear_desc *desc, int64_t m, char kernel[ROW_NAME],
                          rft_plan_info *info) {
    rft_error err = {0};
    rft_work work = {.struct_size = sizeof work};
    if (rft_work_of(desc, m, &work, &err) != RFT_OK)
        return cli_failed(&err, "work");
    rft_status status = machine_kernel(&job->machine, desc, m, (uint32_t)job->context_threads, kernel, &err);
    info->flops = work.flops;
    info->bytes = work.bytes;
    return status == RFT_OK ? CLI_OK : cli_failed(&err, "explain");
}

int bench_plan(const bench_job *job, int64_t n, int64_t k, int64_t m, bench_row *row) {
    char kernel[ROW_NAME];
    rft_plan_info info = rft_plan_info_init();
    rft_linear_desc desc = options_desc(job->o, n, k, m, m);
    *row = blank_row(job, m, n, k);
    row->cold = true;
    int code = job->ctx ? plan_info(job, &desc, m, kernel, &info) : described_info(job, &desc, m, kernel, &info);
    info.kernel = kernel;
    if (code == CLI_OK)
        add_work(&info, row);
    add_bound(job, &desc, true, row);
    return code;
}

static void add_peers(const line_up *l, bench_row *r) {
    for (int i = 1; i < l->n && r->n_peer < ROW_PEERS; i++) {
        if (!l->name[i] || l->c[i].failed)
            continue;
        row_peer *p = &r->peer[r->n_peer++];
        snprintf(p->name, sizeof p->name, "%s", l->name[i]);
        snprintf(p->version, sizeof p->version, "%s", l->version[i]);
        p->us = l->c[i].us;
        p->ratio = l->c[i].ratio;
    }
}

/* Arithmetic and the cold weights cannot beat their roofs; activations may come from a cache, so their bytes do not count. */
static int judge(const bench_job *job, const bench_case *c, const bench_row *r) {
    rft_bound b = {.struct_size = sizeof b};
    if (!job->has_machine || rft_machine_bound(&job->machine, &c->desc, c->m, (uint32_t)job->context_threads, &b, NULL) != RFT_OK)
        return CLI_OK;
    double memory = c->set->cold && r->min_bytes > 0 ? b.memory_seconds * c->w_bytes / r->min_bytes : 0;
    double roof = 1e6 * (memory > b.compute_seconds ? memory : b.compute_seconds);
    if (r->us * ROOF_LIMIT >= roof)
        return CLI_OK;
    cli_message("m %lld n %lld k %lld: error: %.1f us is %.0f %% of the %s roof; above 103 %% either the profile is stale "
                "(rooftile roofline) or the measurement is wrong",
                (long long)r->m, (long long)r->n, (long long)r->k, r->us, 100 * roof / r->us,
                memory > b.compute_seconds ? "memory" : "compute");
    return CLI_FAILED;
}

/* Ours must run; another that fails leaves the row without it. */
static int check_calls(const line_up *l) {
    for (int i = 1; i < l->n; i++)
        if (l->c[i].failed && l->name[i])
            cli_message("%s: failed while it was timed, so left out: %s", l->name[i], l->c[i].err.message);
    return l->c[0].failed ? cli_failed(&l->c[0].err, "run") : CLI_OK;
}

static int time_case(bench_job *job, bench_case *c, weight_set *set) {
    line_up l = {.copies = set->copies, .idle = -1};
    enlist(&l, run_cold, c, NULL, NULL);
    if (job->o->warm) {
        l.warm = l.n;
        enlist(&l, run_warm, c, NULL, NULL);
    }
    int code = enlist_others(job, c, set, &l);
    if (code == CLI_OK)
        code = add_foreign(job, &l);
    if (code == CLI_OK) {
        cli_progress("m %lld n %lld k %lld: timing", (long long)c->m, (long long)c->n, (long long)c->k);
        measure(job->ctx, l.c, l.n, l.idle, job->o->rounds, job->o->seconds);
        code = check_calls(&l);
    }
    if (code == CLI_OK) {
        bench_row row = make_row(job, c, &l.c[0], set->cold);
        add_peers(&l, &row);
        cli_progress_end();
        job->emit(job->user, &row);
        code = judge(job, c, &row);
    }
    if (code != CLI_LIBRARY && l.warm) {
        bench_row row = make_row(job, c, &l.c[l.warm], false);
        row.beside = true;
        job->emit(job->user, &row);
    }
    dismiss(&l);
    return code;
}

static void report_wrong(const bench_case *c) {
    const rft_verify_result *v = &c->proof;
    cli_message(
        "m %lld n %lld k %lld: wrong result of %s: y[%lld][%lld] = %.9g, reference %.9g, |error| is %.3g of its bound; not timed",
        (long long)c->m, (long long)c->n, (long long)c->k, c->info.kernel, (long long)v->worst_m, (long long)v->worst_n,
        v->worst_y, v->worst_ref, v->worst);
}

int bench_one(bench_job *job, weight_set *set, int64_t m) {
    bench_case *c = cli_alloc(1, sizeof *c);
    cli_progress("m %lld n %lld k %lld: proving", (long long)m, (long long)set->desc.n, (long long)set->desc.k);
    int code = case_make(c, job->o, job->ctx, set, m);
    if (code == CLI_OK) {
        code = case_verify(c);
        if (code == CLI_FAILED)
            report_wrong(c);
        else if (code == CLI_OK)
            code = time_case(job, c, set);
        case_free(c);
    }
    free(c);
    return code;
}
