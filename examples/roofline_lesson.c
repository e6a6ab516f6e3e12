/* SPDX-License-Identifier: Apache-2.0
 *
 * roofline_lesson.c - the classic roofline experiment: one weight of 4096 x 4096, multiplied by 1, 16 and 512 rows.
 *     roofline_lesson [f32|bf16|f16] [cpu|cuda:0]
 * FLOPs grow with the rows, bytes hardly do: intensity decides whether memory or arithmetic sets the time. Each result is
 * proved against an f64 reference before it is timed, and the weight comes from memory, not from a cache, at each call.
 * On a GPU a time is that of the device; the last column is what the host spends on a call.
 */
#define _POSIX_C_SOURCE 200809L
#include "rooftile.h"
#include "rooftile_analysis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIDE = 4096, M_MOST = 512, COPIES_MOST = 256, SAMPLES_MOST = 201, SEED = 1 };
#define LEAST_SPAN      ((uint64_t)400 << 20) /* bytes of all copies on a GPU, whose cache is hard to empty */
#define PROFILE_SECONDS 4.0
#define TIMED_SECONDS   1.0

typedef struct lesson {
    rft_type type;
    const char *where; /* the device's name */
    rft_ctx *ctx;
    rft_machine machine; /* the roofs */
    rft_device_info device;
    void *x, *w, *y;                 /* device memory, as all that a run reads and writes */
    rft_weight *weight[COPIES_MOST]; /* equal ones, that together fit no cache */
    void *packed[COPIES_MOST];
    size_t packed_bytes;
    int copies;
    int impossible; /* a call took less time than its roof allows */
    rft_error err;
} lesson;

static void check(const lesson *l, rft_status status, const char *what) {
    if (status == RFT_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, rft_status_name(status), l->err.message);
    exit(1);
}

static void *buffer(lesson *l, size_t bytes) {
    void *p = NULL;
    check(l, rft_memory_alloc(l->ctx, bytes, &p, &l->err), "memory");
    return p;
}

static size_t element_size(const lesson *l) { return l->type == RFT_F32 ? 4 : 2; }

/* Random elements, made here and copied to the device. */
static void *random_matrix(lesson *l, int64_t rows, uint64_t seed) {
    const size_t bytes = (size_t)rows * SIDE * element_size(l);
    void *const values = malloc(bytes), *const p = buffer(l, bytes);
    if (values == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    check(l, rft_fill_random(l->type, values, rows * SIDE, seed, &l->err), "random data");
    check(l, rft_memory_write(l->ctx, p, values, bytes, &l->err), "copy");
    free(values);
    return p;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the machine ---- */

static void show_progress(void *user, const char *what) {
    (void)user;
    fprintf(stderr, "\r\033[Kmeasuring %s", what);
}

/* The saved profile of this machine, else a short measurement. */
static void find_roofs(lesson *l) {
    l->machine.struct_size = sizeof l->machine;
    if (rft_ctx_get_machine(l->ctx, &l->machine, &l->err) == RFT_OK)
        return;
    const int terminal = isatty(STDERR_FILENO);
    printf("No saved profile (`rooftile roofline --device %s` makes one): measuring the roofs for %.0f s.\n", l->where,
           PROFILE_SECONDS);
    check(l, rft_machine_measure(l->ctx, PROFILE_SECONDS, terminal ? show_progress : NULL, NULL, &l->machine, &l->err), "roofs");
    if (terminal)
        fprintf(stderr, "\r\033[K");
}

/* ---- the layer ---- */

static rft_linear_desc layer_of(const lesson *l) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = d.w.elem = l->type;
    d.y = RFT_F32;
    d.w.n = d.w.k = SIDE;
    d.m_min = 1;
    d.m_max = M_MOST;
    return d;
}

static void pack_copy(lesson *l, const rft_weight_desc *d, int i) {
    rft_weight_src source = rft_weight_src_init();
    source.q = l->w;
    l->packed[i] = buffer(l, l->packed_bytes);
    check(l, rft_weight_pack(l->ctx, d, &source, l->packed[i], NULL, &l->weight[i], &l->err), "pack");
}

/* Four times the last-level cache, but no more than a quarter of memory. */
static int copies_of(const lesson *l) {
    const uint64_t cache = 4 * (l->device.l3 != 0 ? l->device.l3 : l->device.l2), most = l->device.memory / 4;
    const uint64_t wanted = l->device.arch != 0 && cache < LEAST_SPAN ? LEAST_SPAN : cache;
    const uint64_t span = wanted < most || most == 0 ? wanted : most, copies = span / l->packed_bytes + 1;
    return copies < 2 ? 2 : copies < COPIES_MOST ? (int)copies : COPIES_MOST;
}

static void make_data(lesson *l) {
    const rft_linear_desc d = layer_of(l);
    l->x = random_matrix(l, M_MOST, SEED);
    l->w = random_matrix(l, SIDE, SEED + 1);
    l->y = buffer(l, (size_t)M_MOST * SIDE * sizeof(float));
    check(l, rft_weight_bytes(l->ctx, &d.w, &l->packed_bytes, &l->err), "weight");
    l->copies = copies_of(l);
    for (int i = 0; i < l->copies; i++)
        pack_copy(l, &d.w, i);
    check(l, rft_ctx_sync(l->ctx, NULL, &l->err), "pack");
}

static void free_all(lesson *l) {
    for (int i = 0; i < l->copies; i++) {
        rft_weight_free(l->weight[i]);
        rft_memory_free(l->ctx, l->packed[i], l->packed_bytes);
    }
    rft_memory_free(l->ctx, l->x, (size_t)M_MOST * SIDE * element_size(l));
    rft_memory_free(l->ctx, l->w, (size_t)SIDE * SIDE * element_size(l));
    rft_memory_free(l->ctx, l->y, (size_t)M_MOST * SIDE * sizeof(float));
    rft_ctx_free(l->ctx);
}

/* ---- one row of the table ---- */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct timed {
    lesson *l;
    const rft_plan *plan;
    rft_linear_args args;
    uint32_t first; /* copy of the weights that the next call reads */
} timed;

static rft_status call(void *user, uint32_t i, void *stream, rft_error *err) {
    timed *t = user;
    rft_linear_args args = t->args;
    args.weight = t->l->weight[(t->first + i) % (uint32_t)t->l->copies];
    args.stream = stream;
    return rft_linear_run(t->plan, &args, err);
}

/* Medians of many samples: one call each, on a GPU a graph of calls that reads every copy of the weights. */
static void time_calls(lesson *l, const rft_plan *plan, const rft_linear_args *args, double *seconds, double *host_seconds) {
    double samples[SAMPLES_MOST], host[SAMPLES_MOST];
    timed t = {.l = l, .plan = plan, .args = *args};
    const uint32_t calls = l->device.arch != 0 ? (uint32_t)l->copies : 1;
    const double end = now() + TIMED_SECONDS;
    int n = 0;
    check(l, call(&t, 0, NULL, &l->err), "run"); /* warms up */
    for (; n < SAMPLES_MOST && (n < 5 || now() < end); n++) {
        rft_timing timing = {.struct_size = sizeof timing};
        t.first += calls;
        check(l, rft_measure_calls(l->ctx, call, &t, calls, &timing, &l->err), "run");
        samples[n] = timing.device_seconds / calls;
        host[n] = timing.host_seconds / calls;
    }
    qsort(samples, (size_t)n, sizeof *samples, compare);
    qsort(host, (size_t)n, sizeof *host, compare);
    *seconds = samples[n / 2];
    *host_seconds = host[n / 2];
}

static void print_row(const rft_work *work, const rft_bound *bound, double seconds, double host, int64_t m, double worst) {
    printf("%5lld  %9.1f  %7.2f  %9.2f  %9.2f  %9.2f  %6.0f %%  %-8s %9.1f  %8.1f  %9.3f  %9.2f\n", (long long)m,
           1e-6 * work->flops, 1e-6 * work->bytes, work->intensity, 1e6 * seconds, 1e6 * bound->seconds,
           100 * bound->seconds / seconds, bound->what, 1e-9 * work->flops / seconds, 1e-9 * work->bytes / seconds, worst,
           1e6 * host);
}

/* False: the result was wrong. */
static int experiment(lesson *l, const rft_plan *plan, rft_linear_args *args) {
    const rft_linear_desc d = layer_of(l);
    rft_work work = {.struct_size = sizeof work};
    rft_bound bound = {.struct_size = sizeof bound};
    rft_verify_result proof = {.struct_size = sizeof proof};
    args->weight = l->weight[0];
    check(l, rft_linear_run(plan, args, &l->err), "run");
    check(l, rft_ctx_sync(l->ctx, NULL, &l->err), "run");
    check(l, rft_verify(plan, args, l->w, 1, SEED, &proof, &l->err), "verify");
    check(l, rft_work_of(&d, args->m, &work, &l->err), "work");
    check(l, rft_machine_bound(&l->machine, &d, args->m, (uint32_t)l->device.threads, &bound, &l->err), "bound");
    double seconds = 0, host = 0;
    time_calls(l, plan, args, &seconds, &host);
    l->impossible |= bound.seconds > 1.03 * seconds;
    print_row(&work, &bound, seconds, host, args->m, proof.worst);
    return proof.worst <= 1;
}

/* Where the two roofs meet, from the times of any one call: FLOPs / compute time over bytes / memory time. */
static void print_lesson(const lesson *l) {
    const rft_linear_desc d = layer_of(l);
    rft_work work = {.struct_size = sizeof work};
    rft_bound bound = {.struct_size = sizeof bound};
    if (rft_work_of(&d, M_MOST, &work, NULL) != RFT_OK ||
        rft_machine_bound(&l->machine, &d, M_MOST, (uint32_t)l->device.threads, &bound, NULL) != RFT_OK)
        return;
    const double peak = work.flops / bound.compute_seconds, read = work.bytes / bound.memory_seconds;
    printf("\nRoofs here: %.0f GFLOP/s and %.1f GB/s. They meet at %.1f FLOP/byte: below it memory sets the time, above it\n"
           "arithmetic. A layer of few rows is below, because each weight that is read is used once a row.\n",
           1e-9 * peak, 1e-9 * read, peak / read);
    if (l->impossible)
        puts("No call can beat its roof: the machine was busy while the roofs were measured. Repeat it when idle.");
}

static int run_lesson(lesson *l) {
    static const int64_t rows[] = {1, 16, 512};
    const rft_linear_desc d = layer_of(l);
    rft_plan_info info = rft_plan_info_init();
    rft_linear_args args = rft_linear_args_init();
    rft_plan *plan = NULL;
    int right = 1;
    check(l, rft_plan_create(l->ctx, &d, &plan, &l->err), "plan");
    check(l, rft_plan_get_info(plan, M_MOST, &info), "info");
    args.x = l->x;
    args.y = l->y;
    args.workspace_bytes = info.workspace;
    args.workspace = buffer(l, info.workspace);
    printf("Y[M][%d] = X[M][%d] * W[%d][%d], %s · %s, %d %s\n\n", SIDE, SIDE, SIDE, SIDE, rft_type_name(l->type), l->device.name,
           l->device.threads, l->device.arch != 0 ? "multiprocessors" : "threads");
    puts("    M      MFLOP  MB, least  FLOP/byte   time, us  bound, us   roof  bound by   GFLOP/s      GB/s  err/bound   call, "
         "us");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        args.m = rows[i];
        right &= experiment(l, plan, &args);
    }
    print_lesson(l);
    rft_plan_free(plan);
    rft_memory_free(l->ctx, args.workspace, info.workspace);
    return right;
}

static rft_type type_of(const char *name) {
    static const rft_type types[] = {RFT_F32, RFT_BF16, RFT_F16};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(name, rft_type_name(types[i])) == 0)
            return types[i];
    fprintf(stderr, "usage: roofline_lesson [f32|bf16|f16] [cpu|cuda:0]\n");
    exit(2);
}

int main(int argc, char **argv) {
    static lesson l;
    l.type = type_of(argc > 1 ? argv[1] : "f32");
    l.where = argc > 2 ? argv[2] : "cpu";
    l.device.struct_size = sizeof l.device;
    check(&l, rft_ctx_create(l.where, NULL, &l.ctx, &l.err), "context");
    check(&l, rft_ctx_get_device(l.ctx, &l.device), "device");
    find_roofs(&l);
    make_data(&l);
    const int right = run_lesson(&l);
    free_all(&l);
    return right ? 0 : 1;
}
