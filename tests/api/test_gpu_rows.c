/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gpu_rows.c - every row of the table gives the same bits each time; every Hopper row finishes, and is right, with each
 * number of tiles from 1 to 300, or to where it may refuse, in columns and in rows. Several threads take rows, each on a stream
 * of its own, so that kernels of different rows meet on the multiprocessors; a hang ends the program, which then says at which
 * problems.
 *
 * Right: x and W are -1, 0 or 1, so all sums are exact, and y v = x (W^T v) for a vector v of 1, 2 and 3. The left side is a
 * product of the FMA family; the right side is made on the host, a row of W at a time.
 */
#include "gpu_test.h"

#include <pthread.h>

enum { THREADS = 16, TILES = 300, MOST_ROWS = 256, WORKSPACE = 32 << 20 /* bytes, for any plan here */ };

typedef struct job {
    rft_kernel_info info;
    char failure[300]; /* empty: none */
} job;

typedef void work(int thread, job *j, void *stream);

static job jobs[MOST_ROWS];
static int n_jobs;
static atomic_int next_job;
static work *current;

/* cmocka's checks belong to the main thread. */
__attribute__((format(printf, 2, 3))) static bool failed(job *j, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(j->failure, sizeof j->failure, format, list);
    va_end(list);
    return true;
}

static void *take_jobs(void *arg) {
    const int thread = 1 + *(const int *)arg;
    void *stream = NULL;
    const bool open = cu.cuCtxSetCurrent(gpu_primary) == 0 && cu.cuStreamCreate(&stream, GPU_NON_BLOCKING) == 0;
    for (int i; (i = atomic_fetch_add(&next_job, 1)) < n_jobs;) {
        if (open) {
            current(thread, &jobs[i], stream);
        } else {
            failed(&jobs[i], "no stream");
        }
    }
    gpu_watch(thread, "%s", "");
    if (open) {
        cu.cuStreamDestroy_v2(stream);
    }
    return NULL;
}

/* Every row that wanted() takes, by all threads; prints each failure. */
static void run_all(bool (*wanted)(const rft_kernel_info *info), work *what) {
    pthread_t thread[THREADS];
    int number[THREADS], bad = 0;
    gpu_driver_needed();
    n_jobs = 0;
    atomic_store(&next_job, 0);
    current = what;
    for (uint32_t i = 0; gpu_next_kernel(&i, &jobs[n_jobs].info);) {
        jobs[n_jobs].failure[0] = '\0';
        n_jobs += wanted(&jobs[n_jobs].info);
        assert_true(n_jobs < MOST_ROWS);
    }
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&thread[i], NULL, take_jobs, &number[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    for (int i = 0; i < n_jobs; i++) {
        if (jobs[i].failure[0] != '\0') {
            print_error("%s: %s\n", jobs[i].info.name, jobs[i].failure);
            bad++;
        }
    }
    print_message("%d rows\n", n_jobs);
    assert_int_equal(bad, 0);
}

/* ---- buffers of one thread ---- */

typedef struct buffer {
    void *p;
    size_t bytes;
} buffer;

static bool get(job *j, buffer *b, size_t bytes, const void *host) {
    rft_error err;
    b->bytes = bytes;
    if (rft_memory_alloc(gpu, bytes, &b->p, &err) != RFT_OK ||
        (host != NULL && rft_memory_write(gpu, b->p, host, bytes, &err) != RFT_OK)) {
        return !failed(j, "%s", err.message);
    }
    return true;
}

static void drop(const buffer *b) { rft_memory_free(gpu, b->p, b->bytes); }

/* ---- the same bits each time ---- */

enum { REPEATS = 30, N = 392, K = 1040 };

static bool any_row(const rft_kernel_info *info) {
    (void)info;
    return true;
}

static bool repeat(job *j, const rft_plan *plan, rft_linear_args *a, unsigned char *first, unsigned char *again, size_t bytes) {
    rft_error err = {.message = ""};
    for (int i = 0; i < REPEATS; i++) {
        unsigned char *const y = i == 0 ? first : again;
        if (rft_memory_fill(gpu, a->y, 0xff, bytes, &err) != RFT_OK || rft_linear_run(plan, a, &err) != RFT_OK ||
            rft_ctx_sync(gpu, a->stream, &err) != RFT_OK || rft_memory_read(gpu, y, a->y, bytes, &err) != RFT_OK) {
            return !failed(j, "%s", err.message);
        }
        if (memcmp(first, y, bytes) != 0) {
            return !failed(j, "run %d of m=%lld has other bits than run 0", i, (long long)a->m);
        }
    }
    return true;
}

static void prove(job *j, const rft_plan *plan, const rft_linear_args *a) {
    rft_verify_result v = {.struct_size = sizeof v};
    rft_error err;
    if (rft_verify(plan, a, a->w, 0, 1, &v, &err) != RFT_OK) {
        failed(j, "%s", err.message);
    } else if (!(v.worst <= 1)) {
        failed(j, "m=%lld: %g of the bound", (long long)a->m, v.worst);
    }
}

static void same_bits(int thread, job *j, void *stream) {
    const int64_t most = gpu_most_m(&j->info), m = most < 200 ? most : 200;
    rft_linear_desc d = gpu_desc_of(&j->info, m, N, K);
    const size_t y_bytes = (size_t)(m * N) * rft_test_size(d.y), x_bytes = (size_t)(m * K) * 4, w_bytes = (size_t)N * K * 4;
    buffer x = {0}, w = {0}, y = {0}, workspace = {0};
    rft_plan *plan = NULL;
    rft_error err;
    rft_linear_args a = rft_linear_args_init();
    void *const random = rft_test_storage(w_bytes > x_bytes ? w_bytes : x_bytes);
    unsigned char *const first = rft_test_storage(y_bytes), *const again = rft_test_storage(y_bytes);
    d.flags = RFT_W_DYNAMIC;
    gpu_watch(thread, "%s m=%lld n=%d k=%d", j->info.name, (long long)m, N, K);
    bool good = rft_fill_random(d.x, random, m * K, 1, &err) == RFT_OK && get(j, &x, x_bytes, random) &&
                rft_fill_random(d.w.elem, random, N * K, 2, &err) == RFT_OK && get(j, &w, w_bytes, random) &&
                get(j, &y, y_bytes, NULL) && get(j, &workspace, WORKSPACE, NULL);
    if (good && rft_plan_create_forced(gpu, &d, j->info.name, &plan, &err) != RFT_OK) {
        good = !failed(j, "%s", err.message);
    }
    a.m = m;
    a.x = x.p;
    a.w = w.p;
    a.y = y.p;
    a.workspace = workspace.p;
    a.workspace_bytes = WORKSPACE;
    a.stream = stream;
    if (good && repeat(j, plan, &a, first, again, y_bytes)) {
        prove(j, plan, &a);
    }
    rft_plan_free(plan);
    drop(&x);
    drop(&w);
    drop(&y);
    drop(&workspace);
    free(random);
    free(first);
    free(again);
}

static void test_same_bits(void **state) {
    (void)state;
    run_all(any_row, same_bits);
}

/* ---- 1 to 300 tiles ---- */

enum { SUM_ROWS = 8 /* of v, all alike: what the checking kernel takes at least */ };

typedef struct grid { /* one row of the table, one k; x and W as large as the most tiles need */
    job *j;
    int thread;
    void *stream;
    int64_t m, n, k; /* the most */
    signed char *x_host, *w_host;
    int *u; /* W^T v of the rows so far */
    buffer x, w, y, v, sum, workspace;
    float *got;
    rft_plan *keeper; /* of the checking kernel: it stays loaded */
} grid;

/* -1, 0 or 1 of element i: so well mixed that y stays far below the 256 to which bf16 is exact. */
static int small(uint64_t i) {
    i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
    i = (i ^ i >> 27) * 0x94d049bb133111ebu;
    return (int)((i ^ i >> 31) % 3) - 1;
}

static int weight_of(int64_t n) { return 1 + (int)(n % 3); }

static bool upload(grid *g, rft_type type, int64_t rows, uint64_t seed, signed char *host, buffer *b) {
    const int64_t count = rows * g->k;
    void *const typed = rft_test_storage((size_t)count * rft_test_size(type));
    for (int64_t i = 0; i < count; i++) {
        host[i] = (signed char)small((uint64_t)i * 0x9e3779b97f4a7c15u + seed);
        rft_test_set(type, typed, i, (float)host[i]);
    }
    const bool good = get(g->j, b, (size_t)count * rft_test_size(type), typed);
    free(typed);
    return good;
}

/* sum[m][8] = y v by the FMA family, for a y of n columns. */
static rft_status plan_sum(const grid *g, int64_t m, int64_t n, rft_plan **plan, rft_error *err) {
    static const char *const kernels[] = {"gemm_simt_f32_f32_f32_16x64", "gemm_simt_f16_f16_f32_16x64",
                                          "gemm_simt_bf16_bf16_f32_16x64"};
    const rft_type t = g->j->info.x;
    rft_linear_desc d = gpu_desc(t, m, SUM_ROWS, n);
    d.y = RFT_F32;
    d.flags = RFT_W_DYNAMIC;
    d.w.ld = g->n;
    return rft_plan_create_forced(gpu, &d, kernels[t - RFT_F32], plan, err);
}

static bool keep(grid *g) {
    rft_error err;
    return plan_sum(g, 1, g->n, &g->keeper, &err) == RFT_OK || !failed(g->j, "%s", err.message);
}

static bool open_grid(grid *g) {
    const rft_type t = g->j->info.x;
    g->x_host = malloc((size_t)(g->m * g->k));
    g->w_host = malloc((size_t)(g->n * g->k));
    g->u = calloc((size_t)g->k, sizeof *g->u);
    g->got = malloc((size_t)g->m * SUM_ROWS * sizeof *g->got);
    void *const v = rft_test_storage((size_t)(SUM_ROWS * g->n) * rft_test_size(t));
    for (int64_t i = 0; i < SUM_ROWS * g->n; i++) {
        rft_test_set(t, v, i, (float)weight_of(i % g->n));
    }
    const bool good = upload(g, t, g->m, 1, g->x_host, &g->x) && upload(g, t, g->n, 77777777, g->w_host, &g->w) &&
                      get(g->j, &g->y, (size_t)(g->m * g->n) * rft_test_size(t), NULL) &&
                      get(g->j, &g->v, (size_t)(SUM_ROWS * g->n) * rft_test_size(t), v) &&
                      get(g->j, &g->sum, (size_t)g->m * SUM_ROWS * sizeof *g->got, NULL) &&
                      get(g->j, &g->workspace, WORKSPACE, NULL) && keep(g);
    free(v);
    return good;
}

static void close_grid(const grid *g) {
    rft_plan_free(g->keeper);
    drop(&g->x);
    drop(&g->w);
    drop(&g->y);
    drop(&g->v);
    drop(&g->sum);
    drop(&g->workspace);
    free(g->x_host);
    free(g->w_host);
    free(g->u);
    free(g->got);
}

/* Adds rows first..last-1 of W to W^T v. */
static void extend(const grid *g, int64_t first, int64_t last) {
    for (int64_t n = first; n < last; n++) {
        for (int64_t k = 0; k < g->k; k++) {
            g->u[k] += weight_of(n) * g->w_host[n * g->k + k];
        }
    }
}

/* W is read early, before the kernel in front has ended. */
static rft_linear_desc product_of(const grid *g, int64_t m, int64_t n) {
    rft_linear_desc d = gpu_desc_of(&g->j->info, m, n, g->k);
    d.w.flags = RFT_WEIGHT_VIEW;
    return d;
}

/* y = x W^T by the row under test, from NaN. */
static rft_status multiply(const grid *g, int64_t m, int64_t n, const rft_plan *plan, rft_weight **weight, rft_error *err) {
    const rft_linear_desc d = product_of(g, m, n);
    rft_weight_src src = rft_weight_src_init();
    rft_linear_args a = rft_linear_args_init();
    src.q = g->w.p;
    a.m = m;
    a.x = g->x.p;
    a.y = g->y.p;
    a.workspace = g->workspace.p;
    a.workspace_bytes = WORKSPACE;
    a.stream = g->stream;
    rft_status status = rft_weight_pack(gpu, &d.w, &src, NULL, NULL, weight, err);
    a.weight = *weight;
    status = status == RFT_OK ? rft_memory_fill(gpu, g->y.p, 0xff, (size_t)(m * n) * rft_test_size(d.y), err) : status;
    return status == RFT_OK ? rft_linear_run(plan, &a, err) : status;
}

/* With y where the row under test left it, and no wait between. */
static rft_status add_up(const grid *g, int64_t m, int64_t n, rft_error *err) {
    const size_t bytes = (size_t)m * SUM_ROWS * sizeof *g->got;
    rft_linear_args a = rft_linear_args_init();
    rft_plan *plan = NULL;
    a.m = m;
    a.x = g->y.p;
    a.w = g->v.p;
    a.ldw = g->n;
    a.y = g->sum.p;
    a.workspace = g->workspace.p;
    a.workspace_bytes = WORKSPACE;
    a.stream = g->stream;
    rft_status status = plan_sum(g, m, n, &plan, err);
    status = status == RFT_OK ? rft_linear_run(plan, &a, err) : status;
    status = status == RFT_OK ? rft_ctx_sync(gpu, g->stream, err) : status;
    rft_plan_free(plan);
    return status == RFT_OK ? rft_memory_read(gpu, g->got, g->sum.p, bytes, err) : status;
}

/* The first row of y whose sum is wrong; m: none is. */
static int64_t wrong_row(const grid *g, int64_t m) {
    for (int64_t i = 0; i < m; i++) {
        int want = 0;
        for (int64_t k = 0; k < g->k; k++) {
            want += g->u[k] * g->x_host[i * g->k + k];
        }
        if (g->got[i * SUM_ROWS] != (float)want) {
            return i;
        }
    }
    return m;
}

/* Rows of stream_sm90 with more sums than stay in registers beside those that are finished take no more tiles than there are
 * multiprocessors: from there on, and not before, they may say so. */
static bool may_refuse(const grid *g, int64_t tiles, const rft_error *err) {
    rft_device_info device = {.struct_size = sizeof device};
    const bool says_so = err->status == RFT_E_UNSUPPORTED && strstr(err->message, "for so many tiles") != NULL;
    return says_so && gpu_is_family(&g->j->info, "stream") && rft_ctx_get_device(gpu, &device) == RFT_OK && tiles > device.sms;
}

/* Plans of a row are kept, so that its kernels stay loaded. False: there is none, a failure unless the row may refuse. */
static bool plan_tiles(const grid *g, int64_t tiles, int64_t m, int64_t n, rft_plan **plan) {
    const rft_linear_desc d = product_of(g, m, n);
    rft_error err = {.message = ""};
    gpu_watch(g->thread, "plan of %s m=%lld n=%lld k=%lld", g->j->info.name, (long long)m, (long long)n, (long long)g->k);
    if (rft_plan_create_forced(gpu, &d, g->j->info.name, plan, &err) == RFT_OK) {
        return true;
    }
    if (!may_refuse(g, tiles, &err)) {
        failed(g->j, "plan of %lld tiles, m=%lld n=%lld k=%lld: %s", (long long)tiles, (long long)m, (long long)n,
               (long long)g->k, err.message);
    }
    return false;
}

static bool at(const grid *g, int64_t m, int64_t n, const rft_plan *plan) {
    rft_error err = {.message = ""};
    rft_weight *weight = NULL;
    gpu_watch(g->thread, "%s m=%lld n=%lld k=%lld", g->j->info.name, (long long)m, (long long)n, (long long)g->k);
    rft_status status = multiply(g, m, n, plan, &weight, &err);
    status = status == RFT_OK ? add_up(g, m, n, &err) : status;
    rft_weight_free(weight);
    if (status != RFT_OK) {
        return !failed(g->j, "m=%lld n=%lld k=%lld: %s", (long long)m, (long long)n, (long long)g->k, err.message);
    }
    const int64_t wrong = wrong_row(g, m);
    return wrong == m || !failed(g->j, "m=%lld n=%lld k=%lld: row %lld of y is wrong", (long long)m, (long long)n,
                                 (long long)g->k, (long long)wrong);
}

/* t tiles, the last of them ragged: t in columns, else t in rows; until the row refuses where it may. */
static void grow(const grid *g, bool columns, rft_plan **plans) {
    const int64_t bm = g->j->info.mr, bn = g->j->info.nr;
    bool good = true;
    for (int64_t t = 1, had = 0; t <= TILES && good; t++) {
        const int64_t m = columns ? bm : t * bm - t % 5, n = columns ? t * bn - t % 7 * 8 : bn;
        extend(g, had, n);
        had = n;
        good = plan_tiles(g, t, m, n, &plans[t - 1]) && at(g, m, n, plans[t - 1]);
    }
}

static void one_grid(int thread, job *j, void *stream, int64_t k, bool columns) {
    rft_plan *plans[TILES] = {NULL};
    grid g = {.j = j, .thread = thread, .stream = stream, .k = k};
    g.m = columns ? j->info.mr : TILES * j->info.mr;
    g.n = columns ? TILES * j->info.nr : j->info.nr;
    gpu_watch(thread, "%s k=%lld begins", j->info.name, (long long)k);
    if (open_grid(&g)) {
        grow(&g, columns, plans);
    }
    close_grid(&g);
    for (int i = 0; i < TILES; i++) {
        rft_plan_free(plans[i]);
    }
}

/* In columns; and in rows, where the row takes more than one tile of them. */
static void every_count(int thread, job *j, void *stream) {
    static const int64_t ks[] = {72, 584}; /* less than a ring, and enough to be cut; off every step, rows of 16 bytes */
    for (int i = 0; i < 4 && j->failure[0] == '\0'; i++) {
        const bool columns = i % 2 == 0;
        if (columns || gpu_most_m(&j->info) == INT32_MAX) {
            one_grid(thread, j, stream, ks[i / 2], columns);
        }
    }
}

static bool hopper_row(const rft_kernel_info *info) { return strcmp(info->isa, "sm_90a") == 0; }

static void test_tile_counts(void **state) {
    (void)state;
    run_all(hopper_row, every_count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_same_bits, gpu_drop),
        cmocka_unit_test_teardown(test_tile_counts, gpu_drop),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
