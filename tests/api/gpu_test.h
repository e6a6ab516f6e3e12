/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_test.h - what the tests on a GPU share: one context (none: every test skips and says why), buffers that a test's teardown
 * frees, a layer whose operands lie on the device, and the driver's own streams and graphs. Included once by each test program.
 * Kernels are kept in the default cache folder (RFT_CACHE_DIR), since compiling them is most of the time that these tests take.
 */
#ifndef RFT_TESTS_API_GPU_TEST_H
#define RFT_TESTS_API_GPU_TEST_H

#include "product.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* ---- a watchdog: a kernel that hangs ends the program, which then says what each of its threads was at ---- */

enum { GPU_WATCHED = 33, GPU_PATIENCE = 40 /* seconds for one problem, compilation included */ };
static char gpu_at[GPU_WATCHED][160]; /* by thread, the test's own first */

static inline void gpu_bark(int signal_number) {
    static const char head[] = "no progress; the threads were at:\n";
    (void)signal_number;
    ssize_t written = write(STDERR_FILENO, head, sizeof head - 1);
    for (int i = 0; i < GPU_WATCHED; i++) {
        const size_t length = strnlen(gpu_at[i], sizeof gpu_at[i]);
        written += length > 0 ? write(STDERR_FILENO, gpu_at[i], length) + write(STDERR_FILENO, "\n", 1) : 0;
    }
    _exit(written > 0 ? 1 : 2);
}

/* At the head of each problem. */
__attribute__((format(printf, 2, 3))) static inline void gpu_watch(int thread, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(gpu_at[thread], sizeof gpu_at[thread], format, list);
    va_end(list);
    alarm(GPU_PATIENCE);
}

/* ---- the context ---- */

static rft_ctx *gpu; /* NULL: there is no GPU, or no usable one */
static char gpu_reason[sizeof test_err.message];

static inline rft_ctx_options gpu_options(rft_test_memory *memory) {
    rft_ctx_options o = rft_test_options(memory);
    o.threads = 0;
    o.cache_dir = NULL;
    return o;
}

static inline int gpu_open(void **state) {
    (void)state;
    const rft_ctx_options o = gpu_options(NULL);
    signal(SIGALRM, gpu_bark);
    if (rft_ctx_create("cuda:0", &o, &gpu, &test_err) != RFT_OK) {
        snprintf(gpu_reason, sizeof gpu_reason, "%s", test_err.message);
    }
    return 0;
}

static inline int gpu_close(void **state) {
    (void)state;
    rft_ctx_free(gpu);
    return 0;
}

/* At the head of every test. */
static inline void gpu_needed(void) {
    if (gpu == NULL) {
        print_message("skipped: %s\n", gpu_reason);
        skip();
    }
    gpu_watch(0, "the beginning of a test");
}

/* ---- memory: of `gpu`, freed behind each test, also behind one that failed ---- */

enum { GPU_BUFFERS = 512 };
static struct {
    void *p;
    size_t bytes;
} gpu_held[GPU_BUFFERS];
static int gpu_n_held;

static inline void *gpu_alloc(size_t bytes) {
    assert_true(gpu_n_held < GPU_BUFFERS);
    OK(rft_memory_alloc(gpu, bytes, &gpu_held[gpu_n_held].p, &test_err));
    gpu_held[gpu_n_held].bytes = bytes;
    return gpu_held[gpu_n_held++].p;
}

static inline int gpu_drop(void **state) {
    (void)state;
    while (gpu_n_held > 0) {
        gpu_n_held--;
        rft_memory_free(gpu, gpu_held[gpu_n_held].p, gpu_held[gpu_n_held].bytes);
    }
    return 0;
}

static inline void gpu_write(void *p, const void *host, size_t bytes) { OK(rft_memory_write(gpu, p, host, bytes, &test_err)); }
static inline void gpu_read(void *host, const void *p, size_t bytes) { OK(rft_memory_read(gpu, host, p, bytes, &test_err)); }
static inline void gpu_fill(void *p, int byte, size_t bytes) { OK(rft_memory_fill(gpu, p, byte, bytes, &test_err)); }
static inline void gpu_sync(void *stream) { OK(rft_ctx_sync(gpu, stream, &test_err)); }

static inline void *gpu_upload(const void *host, size_t bytes) {
    void *const p = gpu_alloc(bytes);
    gpu_write(p, host, bytes);
    return p;
}

static inline void *gpu_filled(int byte, size_t bytes) {
    void *const p = gpu_alloc(bytes);
    gpu_fill(p, byte, bytes);
    return p;
}

static inline void *gpu_random(rft_type type, int64_t count, uint64_t seed) {
    const size_t bytes = (size_t)count * rft_test_size(type);
    void *const host = rft_test_storage(bytes);
    rft_test_random(type, host, count, seed);
    void *const p = gpu_upload(host, bytes);
    free(host);
    return p;
}

/* What lies at p, for the caller to free. */
static inline void *gpu_fetch(const void *p, size_t bytes) {
    void *const host = rft_test_storage(bytes);
    gpu_read(host, p, bytes);
    return host;
}

static inline void gpu_assert_equal(const void *p, const void *q, size_t bytes) {
    void *const a = gpu_fetch(p, bytes), *const b = gpu_fetch(q, bytes);
    const int differs = memcmp(a, b, bytes);
    free(a);
    free(b);
    assert_int_equal(differs, 0);
}

/* ---- a layer: plan, weight, and args whose pointers are of the device ---- */

typedef struct gpu_layer {
    rft_plan *plan;
    rft_weight *weight;   /* NULL with RFT_W_DYNAMIC */
    const void *w;        /* as the descriptor says, on the device */
    rft_linear_args args; /* x random, y full of NaN, all dense */
    size_t y_bytes;
} gpu_layer;

static inline rft_linear_desc gpu_desc(rft_type type, int64_t m, int64_t n, int64_t k) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = d.y = d.w.elem = type;
    d.w.n = n;
    d.w.k = k;
    d.m_min = d.m_max = m;
    return d;
}

static inline rft_weight *gpu_weight(rft_ctx *ctx, const rft_weight_desc *desc, const void *w) {
    rft_weight *weight = NULL;
    rft_weight_src src = rft_weight_src_init();
    size_t bytes = 0;
    src.q = w;
    OK(rft_weight_bytes(ctx, desc, &bytes, &test_err));
    OK(rft_weight_pack(ctx, desc, &src, bytes != 0 ? gpu_alloc(bytes) : NULL, NULL, &weight, &test_err));
    return weight;
}

static inline void gpu_args(gpu_layer *l, const rft_linear_desc *d, int64_t m, uint64_t seed) {
    rft_plan_info info = rft_plan_info_init();
    OK(rft_plan_get_info(l->plan, m, &info));
    l->args = rft_linear_args_init();
    l->args.m = m;
    l->args.x = gpu_random(d->x, m * d->w.k, seed);
    l->y_bytes = (size_t)(m * d->w.n) * rft_test_size(d->y);
    l->args.y = gpu_filled(0xff, l->y_bytes);
    l->args.workspace = info.workspace != 0 ? gpu_filled(0xff, info.workspace) : NULL;
    l->args.workspace_bytes = info.workspace;
}

/* kernel: the only one that may serve, or NULL. The buffers are the test's, the rest is gpu_free's. */
static inline gpu_layer gpu_make(const rft_linear_desc *d, const char *kernel, int64_t m, uint64_t seed) {
    gpu_layer l = {.w = gpu_random(d->w.elem, d->w.n * d->w.k, seed + 1)};
    OK(kernel != NULL ? rft_plan_create_forced(gpu, d, kernel, &l.plan, &test_err) : rft_plan_create(gpu, d, &l.plan, &test_err));
    gpu_args(&l, d, m, seed);
    if (d->flags & RFT_W_DYNAMIC) {
        l.args.w = l.w;
    } else {
        l.args.weight = l.weight = gpu_weight(gpu, &d->w, l.w);
    }
    return l;
}

static inline void gpu_free(gpu_layer *l) {
    rft_plan_free(l->plan);
    rft_weight_free(l->weight);
}

static inline void gpu_run(const gpu_layer *l) {
    OK(rft_linear_run(l->plan, &l->args, &test_err));
    gpu_sync(l->args.stream);
}

/* y is right within the plan's bound. max_gflop 0: all of it, or a large sample. */
static inline void gpu_prove(const gpu_layer *l, double max_gflop) {
    rft_verify_result v = {.struct_size = sizeof v};
    OK(rft_verify(l->plan, &l->args, l->w, max_gflop, 1, &v, &test_err));
    if (!(v.worst <= 1)) {
        fail_msg("y[%lld][%lld][%lld] = %g, reference %g, %g of the bound", (long long)v.worst_b, (long long)v.worst_m,
                 (long long)v.worst_n, v.worst_y, v.worst_ref, v.worst);
    }
}

/* ---- rows of the kernel table ---- */

/* The next row of a GPU from *i on that runs here; false: there is none. */
static inline bool gpu_next_kernel(uint32_t *i, rft_kernel_info *info) {
    while (*i < rft_kernel_count()) {
        *info = (rft_kernel_info){.struct_size = sizeof *info};
        assert_int_equal(rft_kernel_get((*i)++, info), RFT_OK);
        if (strncmp(info->isa, "sm_", 3) == 0 && info->available) {
            return true;
        }
    }
    return false;
}

static inline bool gpu_is_family(const rft_kernel_info *info, const char *family) {
    return strncmp(info->name, family, strlen(family)) == 0;
}

/* Rows of x that the kernel takes at most; the others take any number. */
static inline int64_t gpu_most_m(const rft_kernel_info *info) {
    return gpu_is_family(info, "gemv") || gpu_is_family(info, "stream") ? info->mr : INT32_MAX;
}

static inline rft_linear_desc gpu_desc_of(const rft_kernel_info *info, int64_t m, int64_t n, int64_t k) {
    rft_linear_desc d = gpu_desc(info->x, m, n, k);
    d.w.elem = info->w;
    d.compute = strstr(info->name, "_tf32_") != NULL ? RFT_COMPUTE_TF32 : RFT_COMPUTE_AUTO;
    return d;
}

/* ---- compilation ahead, several kernels at once: into the cache folder, where the plans that follow find them ---- */

typedef struct gpu_ahead {
    rft_linear_desc desc;
    const char *kernel; /* forced, or NULL */
} gpu_ahead;

/* What fails here fails again, and is seen, in the test. */
static inline void *gpu_compile_one(void *arg) {
    const gpu_ahead *const a = arg;
    rft_plan *plan = NULL;
    if (a->kernel != NULL) {
        rft_plan_create_forced(gpu, &a->desc, a->kernel, &plan, NULL);
    } else {
        rft_plan_create(gpu, &a->desc, &plan, NULL);
    }
    rft_plan_free(plan);
    return NULL;
}

enum { GPU_AHEAD = 64 };
static inline void gpu_compile(gpu_ahead *list, int count) {
    pthread_t thread[GPU_AHEAD];
    assert_true(count <= GPU_AHEAD);
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, gpu_compile_one, &list[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
}

/* ---- the driver, for what an engine does beside the library: streams, graphs, contexts ---- */

typedef struct gpu_driver {
    int (*cuInit)(unsigned flags);
    int (*cuDeviceGet)(int *device, int ordinal);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuDevicePrimaryCtxRelease_v2)(int device);
    int (*cuCtxCreate_v2)(void **context, unsigned flags, int device);
    int (*cuCtxDestroy_v2)(void *context);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuCtxGetCurrent)(void **context);
    int (*cuMemGetInfo_v2)(size_t *free_bytes, size_t *total_bytes);
    int (*cuStreamCreate)(void **stream, unsigned flags);
    int (*cuStreamDestroy_v2)(void *stream);
    int (*cuStreamBeginCapture_v2)(void *stream, int mode);
    int (*cuStreamEndCapture)(void *stream, void **graph);
    int (*cuGraphInstantiateWithFlags)(void **exec, void *graph, unsigned long long flags);
    int (*cuGraphLaunch)(void *exec, void *stream);
    int (*cuGraphExecDestroy)(void *exec);
    int (*cuGraphDestroy)(void *graph);
} gpu_driver;

enum { GPU_NON_BLOCKING = 1, GPU_CAPTURE_GLOBAL = 0 };
static gpu_driver cu;
static void *gpu_primary; /* context, current on the test's thread */

#define CU(call)         assert_int_equal((call), 0)
#define GPU_BIND(symbol) gpu_bind(library, #symbol, &cu.symbol, sizeof cu.symbol)

static inline void gpu_bind(void *library, const char *name, void *field, size_t size) {
    void *const symbol = dlsym(library, name);
    if (symbol == NULL) {
        fail_msg("the driver lacks %s", name);
    }
    memcpy(field, &symbol, size);
}

static inline void gpu_bind_all(void) {
    void *const library = dlopen("libcuda.so.1", RTLD_NOW);
    assert_non_null(library);
    GPU_BIND(cuInit);
    GPU_BIND(cuDeviceGet);
    GPU_BIND(cuDevicePrimaryCtxRetain);
    GPU_BIND(cuDevicePrimaryCtxRelease_v2);
    GPU_BIND(cuCtxCreate_v2);
    GPU_BIND(cuCtxDestroy_v2);
    GPU_BIND(cuCtxSetCurrent);
    GPU_BIND(cuCtxGetCurrent);
    GPU_BIND(cuMemGetInfo_v2);
    GPU_BIND(cuStreamCreate);
    GPU_BIND(cuStreamDestroy_v2);
    GPU_BIND(cuStreamBeginCapture_v2);
    GPU_BIND(cuStreamEndCapture);
    GPU_BIND(cuGraphInstantiateWithFlags);
    GPU_BIND(cuGraphLaunch);
    GPU_BIND(cuGraphExecDestroy);
    GPU_BIND(cuGraphDestroy);
}

/* Makes the primary context current on this thread for the rest of the program. */
static inline void gpu_driver_needed(void) {
    int device = 0;
    gpu_needed();
    if (gpu_primary != NULL) {
        return;
    }
    gpu_bind_all();
    CU(cu.cuInit(0));
    CU(cu.cuDeviceGet(&device, 0));
    CU(cu.cuDevicePrimaryCtxRetain(&gpu_primary, device));
    CU(cu.cuCtxSetCurrent(gpu_primary));
}

static inline void *gpu_stream(void) {
    void *stream = NULL;
    CU(cu.cuStreamCreate(&stream, GPU_NON_BLOCKING));
    return stream;
}

static inline size_t gpu_memory_free(void) {
    size_t free_bytes = 0, total = 0;
    CU(cu.cuMemGetInfo_v2(&free_bytes, &total));
    return free_bytes;
}

#endif
