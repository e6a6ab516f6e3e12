/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gpu_streams.c - one plan and one weight on two streams from two threads; calls captured into a graph whose plans never ran
 * before; both with the bits of plain calls. A run allocates nothing, on the host or on the device. Time by rft_measure_calls.
 */
#include "gpu_test.h"

#include <pthread.h>

enum { THREADS = 2, RUNS = 1000, INPUTS = 4, CHECK_EVERY = 50, N = 520, K = 264, CALLS = 100 };

static rft_test_memory memory;

static int open_counted(void **state) {
    const rft_ctx_options o = gpu_options(&memory);
    (void)state;
    signal(SIGALRM, gpu_bark);
    if (rft_ctx_create("cuda:0", &o, &gpu, &test_err) != RFT_OK) {
        snprintf(gpu_reason, sizeof gpu_reason, "%s", test_err.message);
    }
    return 0;
}

static int close_counted(void **state) {
    gpu_close(state);
    return atomic_load(&memory.blocks) == 0 && atomic_load(&memory.bytes) == 0 ? 0 : -1;
}

/* ---- two threads ---- */

typedef struct worker {
    const gpu_layer *layer;
    rft_linear_args args[INPUTS];
    unsigned char *want[INPUTS], *got;
    bool wrong;
} worker;

static bool all_equal(const worker *w) {
    for (int i = 0; i < INPUTS; i++) {
        if (rft_memory_read(gpu, w->got, w->args[i].y, w->layer->y_bytes, NULL) != RFT_OK ||
            memcmp(w->got, w->want[i], w->layer->y_bytes) != 0 ||
            rft_memory_fill(gpu, w->args[i].y, 0xff, w->layer->y_bytes, NULL) != RFT_OK) {
            return false;
        }
    }
    return true;
}

/* cmocka's checks belong to the main thread. */
static void *work(void *arg) {
    worker *const w = arg;
    for (int i = 1; i <= RUNS && !w->wrong; i++) {
        w->wrong = rft_linear_run(w->layer->plan, &w->args[i % INPUTS], NULL) != RFT_OK;
        if (!w->wrong && (i % CHECK_EVERY == 0 || i == RUNS)) {
            w->wrong = rft_ctx_sync(gpu, w->args[0].stream, NULL) != RFT_OK || !all_equal(w);
        }
    }
    return NULL;
}

/* What each input gives when nothing else runs. */
static void prepare(worker *w, const gpu_layer *l, void *stream) {
    *w = (worker){.layer = l, .got = rft_test_storage(l->y_bytes)};
    for (int i = 0; i < INPUTS; i++) {
        w->args[i] = l->args;
        w->args[i].x = gpu_random(RFT_BF16, l->args.m * K, (uint64_t)i);
        w->args[i].y = gpu_filled(0xff, l->y_bytes);
        w->args[i].workspace = l->args.workspace_bytes != 0 ? gpu_alloc(l->args.workspace_bytes) : NULL;
        OK(rft_linear_run(l->plan, &w->args[i], &test_err));
        gpu_sync(NULL);
        w->want[i] = gpu_fetch(w->args[i].y, l->y_bytes);
        gpu_fill(w->args[i].y, 0xff, l->y_bytes);
        w->args[i].stream = stream;
    }
}

static void dispose(worker *w) {
    for (int i = 0; i < INPUTS; i++) {
        free(w->want[i]);
    }
    free(w->got);
    CU(cu.cuStreamDestroy_v2(w->args[0].stream));
}

static void two_threads(int64_t m) {
    const rft_linear_desc d = gpu_desc(RFT_BF16, m, N, K);
    pthread_t thread[THREADS];
    static worker workers[THREADS];
    gpu_watch(0, "two threads m=%lld", (long long)m);
    gpu_layer l = gpu_make(&d, NULL, m, 1);
    for (int i = 0; i < THREADS; i++) {
        prepare(&workers[i], &l, gpu_stream());
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_false(workers[i].wrong);
        dispose(&workers[i]);
    }
    gpu_free(&l);
}

static void test_two_threads(void **state) {
    static const int64_t rows[] = {1, 8, 16, 130};
    (void)state;
    gpu_driver_needed();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        two_threads(rows[i]);
    }
}

/* ---- graphs ---- */

typedef struct pair { /* x -> h -> y */
    gpu_layer up, down;
} pair;

static pair make_pair(int64_t m) {
    const rft_linear_desc up = gpu_desc(RFT_BF16, m, N, K), down = gpu_desc(RFT_BF16, m, K, N);
    pair p = {.up = gpu_make(&up, NULL, m, 1), .down = gpu_make(&down, NULL, m, 3)};
    p.down.args.x = p.up.args.y;
    return p;
}

/* With every allocation of the context's failing. */
static void call_all(pair *p, void *stream) {
    rft_status status = RFT_OK;
    p->up.args.stream = p->down.args.stream = stream;
    atomic_store(&memory.until_failure, 0);
    for (int i = 0; i < CALLS && status == RFT_OK; i++) {
        status = rft_linear_run(p->up.plan, &p->up.args, &test_err);
        status = status == RFT_OK ? rft_linear_run(p->down.plan, &p->down.args, &test_err) : status;
    }
    atomic_store(&memory.until_failure, -1);
    OK(status);
}

static void *capture(pair *p, void *stream) {
    void *graph = NULL;
    const size_t before = gpu_memory_free();
    const long long blocks = atomic_load(&memory.blocks);
    CU(cu.cuStreamBeginCapture_v2(stream, GPU_CAPTURE_GLOBAL));
    call_all(p, stream);
    CU(cu.cuStreamEndCapture(stream, &graph));
    assert_int_equal(gpu_memory_free(), before);
    assert_int_equal(atomic_load(&memory.blocks), blocks);
    return graph;
}

static void replay(void *graph, void *stream) {
    void *exec = NULL;
    CU(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        CU(cu.cuGraphLaunch(exec, stream));
    }
    gpu_sync(stream);
    CU(cu.cuGraphExecDestroy(exec));
    CU(cu.cuGraphDestroy(graph));
}

static void graph_at(int64_t m) {
    gpu_watch(0, "a graph m=%lld", (long long)m);
    pair p = make_pair(m);
    void *const stream = gpu_stream(), *const graph = capture(&p, stream);
    const size_t bytes = p.down.y_bytes;
    replay(graph, stream);
    unsigned char *const replayed = gpu_fetch(p.down.args.y, bytes);
    gpu_fill(p.up.args.y, 0xff, p.up.y_bytes);
    gpu_fill(p.down.args.y, 0xff, bytes);
    call_all(&p, stream);
    gpu_sync(stream);
    const size_t before = gpu_memory_free();
    call_all(&p, stream);
    gpu_sync(stream);
    assert_int_equal(gpu_memory_free(), before);
    unsigned char *const direct = gpu_fetch(p.down.args.y, bytes);
    assert_memory_equal(replayed, direct, bytes);
    free(replayed);
    free(direct);
    gpu_prove(&p.up, 0);
    gpu_prove(&p.down, 0);
    CU(cu.cuStreamDestroy_v2(stream));
    gpu_free(&p.up);
    gpu_free(&p.down);
}

static void test_graph(void **state) {
    static const int64_t rows[] = {1, 16, 200};
    (void)state;
    gpu_driver_needed();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graph_at(rows[i]);
    }
}

/* ---- time ---- */

static rft_status timed(void *user, uint32_t i, void *stream, rft_error *err) {
    gpu_layer *const l = user;
    (void)i;
    l->args.stream = stream;
    return rft_linear_run(l->plan, &l->args, err);
}

static rft_status refusing(void *user, uint32_t i, void *stream, rft_error *err) {
    rft_linear_args bad = ((gpu_layer *)user)->args;
    bad.stream = stream;
    bad.x = i == 3 ? NULL : bad.x;
    return rft_linear_run(((gpu_layer *)user)->plan, &bad, err);
}

/* A call that fails ends the capture; the context goes on. */
static void test_measure(void **state) {
    const rft_linear_desc d = gpu_desc(RFT_BF16, 4, N, K);
    rft_timing t = {.struct_size = sizeof t};
    (void)state;
    gpu_needed();
    gpu_layer l = gpu_make(&d, NULL, 4, 1);
    OK(rft_measure_calls(gpu, timed, &l, CALLS, &t, &test_err));
    assert_true(t.device_seconds > 0 && t.device_seconds < 1);
    assert_true(t.host_seconds > 0 && t.host_seconds < 1);
    gpu_prove(&l, 0);
    REFUSED(RFT_E_ARG, "args.x is NULL", rft_measure_calls(gpu, refusing, &l, CALLS, &t, &test_err));
    gpu_fill(l.args.y, 0xff, l.y_bytes);
    OK(rft_measure_calls(gpu, timed, &l, 1, &t, &test_err));
    gpu_prove(&l, 0);
    gpu_free(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_two_threads, gpu_drop),
        cmocka_unit_test_teardown(test_graph, gpu_drop),
        cmocka_unit_test_teardown(test_measure, gpu_drop),
    };
    return cmocka_run_group_tests(tests, open_counted, close_counted);
}
