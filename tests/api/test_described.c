/* SPDX-License-Identifier: Apache-2.0
 *
 * test_described.c - GPUs that are not here, from the profiles of bench/machines: what serves a layer there and why the rest does
 * not; kernels compiled ahead into a cache folder, found there the next time; memory that runs out at each allocation in turn.
 * Compiling needs NVRTC and skips where there is none.
 */
#define _GNU_SOURCE 1
#include "api_test.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

enum { MACHINES = 5, TARGETS = 3 /* the first ones: each of another architecture */, TEXT = 1 << 16, MANY = 200 };

static const char *const names[MACHINES] = {"h200", "a100", "rtx4090", "h100", "l40s"};
static rft_machine machines[MACHINES];
static char text[TEXT];

static int load_all(void **state) {
    (void)state;
    for (int i = 0; i < MACHINES; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/../../bench/machines/%s.json", RFT_TEST_DATA_DIR, names[i]);
        machines[i].struct_size = sizeof machines[i];
        OK(rft_machine_load(path, &machines[i], &test_err));
    }
    return 0;
}

static rft_linear_desc layer(rft_type type, int64_t m_max, int64_t n, int64_t k) {
    rft_linear_desc d = rft_linear_desc_init();
    d.x = d.y = d.w.elem = type;
    d.w.n = n;
    d.w.k = k;
    d.m_min = 1;
    d.m_max = m_max;
    return d;
}

/* ---- explain ---- */

static const char *explain(const rft_machine *machine, const rft_linear_desc *d, int64_t m, uint32_t sms) {
    size_t length = 0;
    OK(rft_explain_machine(machine, d, m, sms, text, sizeof text, &length, &test_err));
    assert_true(length > 0 && length < sizeof text);
    assert_int_equal(strlen(text), length);
    return text;
}

static void assert_has(const char *part) {
    if (strstr(text, part) == NULL) {
        fail_msg("no \"%s\" in\n%s", part, text);
    }
}

static void assert_lacks(const char *part) {
    if (strstr(text, part) != NULL) {
        fail_msg("\"%s\" is in\n%s", part, text);
    }
}

/* The name behind "taken". */
static void taken(char name[64]) {
    const char *const at = strstr(text, "taken ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "taken %63s", name), 1);
}

static void test_every_machine(void **state) {
    static const int64_t rows[] = {1, 8, 64, 512, 4096};
    static const rft_type types[] = {RFT_BF16, RFT_F16, RFT_F32};
    (void)state;
    for (int i = 0; i < MACHINES; i++) {
        for (int t = 0; t < 3; t++) {
            const rft_linear_desc d = layer(types[t], 4096, 6144, 4096);
            for (int m = 0; m < 5; m++) {
                explain(&machines[i], &d, rows[m], 0);
                assert_has("taken ");
                assert_has("expected ");
                assert_has("multiprocessors");
                assert_has("refused ");
            }
        }
    }
}

static void test_choices(void **state) {
    const rft_linear_desc d = layer(RFT_BF16, 4096, 6144, 4096);
    char name[64];
    (void)state;
    explain(&machines[0], &d, 1, 0);
    taken(name);
    assert_true(strncmp(name, "gemv_", 5) == 0 || strncmp(name, "stream_sm90_", 12) == 0);
    assert_has("reads x of f32 and w of f32; they are bf16 and bf16");
    explain(&machines[0], &d, 4096, 0);
    taken(name);
    assert_int_equal(strncmp(name, "gemm_sm90_", 10), 0);
    assert_has("takes fewer tokens");
    assert_has("takes at most 8 rows of x; m = 4096");
    explain(&machines[1], &d, 4096, 0);
    taken(name);
    assert_int_equal(strncmp(name, "gemm_sm80_", 10), 0);
    assert_has("needs compute capability 9.0; this is 8.0");
    explain(&machines[2], &d, 4096, 0);
    taken(name);
    assert_int_equal(strncmp(name, "gemm_sm80_", 10), 0);
    assert_has("needs compute capability 9.0; this is 8.9");
}

static void test_precision_is_asked_for(void **state) {
    rft_linear_desc d = layer(RFT_F32, 1024, 4096, 4096);
    char name[64];
    (void)state;
    explain(&machines[0], &d, 1024, 0);
    taken(name);
    assert_int_equal(strncmp(name, "gemm_simt_", 10), 0);
    assert_has("which only RFT_COMPUTE_TF32 allows");
    d.compute = RFT_COMPUTE_TF32;
    explain(&machines[0], &d, 1024, 0);
    taken(name);
    assert_non_null(strstr(name, "_tf32_"));
    d = layer(RFT_BF16, 1024, 4096, 4096);
    d.compute = RFT_COMPUTE_F32;
    explain(&machines[0], &d, 1024, 0);
    assert_has("RFT_COMPUTE_F32 asks for f32");
}

/* Twice the work takes longer, and a roof is named where rft_machine_bound gives one. */
static void test_bounds(void **state) {
    (void)state;
    for (int i = 0; i < MACHINES; i++) {
        const rft_linear_desc d = layer(RFT_BF16, 8192, 8192, 8192);
        rft_bound few = {.struct_size = sizeof few}, many = few;
        OK(rft_machine_bound(&machines[i], &d, 1, 0, &few, &test_err));
        OK(rft_machine_bound(&machines[i], &d, 8192, 0, &many, &test_err));
        assert_string_equal(few.what, "memory");
        assert_string_equal(many.what, "compute");
        assert_true(few.seconds > 0 && few.seconds < many.seconds);
        explain(&machines[i], &d, 1, 0);
        assert_has("memory");
    }
}

/* Any number of multiprocessors: no kernel's model divides by what is left of them, and a cluster fits on them. */
static void test_few_multiprocessors(void **state) {
    static const int64_t rows[] = {1, 33, 300, 5000};
    (void)state;
    for (uint32_t sms = 1; sms <= 132; sms = sms < 9 ? sms + 1 : 2 * sms - 3) {
        for (int m = 0; m < 4; m++) {
            const rft_linear_desc d = layer(RFT_BF16, rows[m], 5000, 1000);
            explain(&machines[0], &d, rows[m], sms);
            char part[64];
            snprintf(part, sizeof part, "on %u multiprocessors", sms);
            assert_has(part);
            for (uint32_t cluster = sms + 1; cluster <= 8; cluster++) {
                snprintf(part, sizeof part, "clusters of %u", cluster);
                assert_lacks(part);
            }
        }
    }
}

/* One shape at every m of the list, with each way to lie and to gate. */
static void every_form(const rft_machine *machine, int64_t n, int64_t k, int64_t batch) {
    static const int64_t rows[] = {0, 1, 9, 1000};
    static const uint32_t gates[] = {0, RFT_WEIGHT_GLU_HALVES, RFT_WEIGHT_GLU_INTERLEAVED};
    const rft_epi_op swiglu = {.kind = RFT_EPI_SWIGLU};
    for (int form = 0; form < 12; form++) {
        rft_linear_desc d = layer(form % 4 == 3 ? RFT_F32 : RFT_BF16, 1000, n, k);
        d.m_min = 0;
        d.batch = d.w.batch = batch;
        d.x_order = form / 2 % 2;
        d.w.order = form % 2;
        d.compute = form % 4 == 3 ? RFT_COMPUTE_TF32 : RFT_COMPUTE_AUTO;
        d.flags = (form % 3 == 0 ? RFT_W_DYNAMIC : 0) | (form % 5 == 0 ? RFT_BATCH_INVARIANT : 0);
        d.w.flags = n % 2 == 0 ? gates[form % 3] : 0;
        d.epi = &swiglu;
        d.n_epi = d.w.flags != 0;
        for (int i = 0; i < 4; i++) {
            explain(machine, &d, rows[i], 0);
            assert_has("taken ");
        }
    }
}

/* Sizes of nothing, of one, and off every edge: something serves them, and no model divides by them. */
static void test_odd_sizes(void **state) {
    static const int64_t sizes[] = {0, 1, 2, 7, 64, 1001};
    (void)state;
    for (int i = 0; i < 2; i++) {
        for (int n = 0; n < 6; n++) {
            for (int k = 0; k < 6; k++) {
                every_form(&machines[i], sizes[n], sizes[k], 1 + 2 * (n == k));
            }
        }
    }
}

/* What is taken, and what stands in where pointers do not suit it, is the same for each range of m. */
static void test_batch_invariant_choice(void **state) {
    static const int64_t most[] = {1, 16, 100, 5000};
    char first[2][200] = {"", ""};
    (void)state;
    for (int i = 0; i < 4; i++) {
        rft_linear_desc d = layer(RFT_BF16, most[i], 4096, 4096);
        d.flags = RFT_BATCH_INVARIANT;
        explain(&machines[0], &d, 1, 0);
        char now[2][200];
        taken(now[0]);
        const char *const other = strstr(text, "do not suit it: ");
        snprintf(now[1], sizeof now[1], "%.*s", other != NULL ? (int)strcspn(other, "\n") : 0, other != NULL ? other : "");
        if (i == 0) {
            memcpy(first, now, sizeof first);
        }
        assert_string_equal(now[0], first[0]);
        assert_string_equal(now[1], first[1]);
    }
}

static void test_refusals(void **state) {
    rft_linear_desc d = layer(RFT_BF16, (int64_t)1 << 31, 64, 64);
    rft_machine old = machines[1];
    (void)state;
    REFUSED(RFT_E_UNSUPPORTED, "desc.m_max = 2147483648", rft_explain_machine(&machines[0], &d, 1, 0, NULL, 0, NULL, &test_err));
    d.m_max = 8;
    REFUSED(RFT_E_ARG, "m = 9", rft_explain_machine(&machines[0], &d, 9, 0, NULL, 0, NULL, &test_err));
    strcpy(old.isa, "sm_75");
    REFUSED(RFT_E_ARG, "sm_75", rft_explain_machine(&old, &d, 1, 0, NULL, 0, NULL, &test_err));
    REFUSED(RFT_E_ARG, "machine", rft_explain_machine(NULL, &d, 1, 0, NULL, 0, NULL, &test_err));
    REFUSED(RFT_E_ARG, "machine", rft_prebuild(NULL, NULL, &d, &test_err));
    REFUSED(RFT_E_ARG, "desc", rft_prebuild(&machines[0], NULL, NULL, &test_err));
}

/* ---- compiled ahead ---- */

typedef struct events { /* of one rft_prebuild */
    atomic_int compiled, cached;
} events;

typedef struct user { /* of the hooks */
    rft_test_memory memory; /* first: the allocator's hooks take it for the user */
    events events;
} user;

static user hooks;
static char folder[] = "/tmp/rft_described_XXXXXX";

static void count_events(void *p, rft_log_level level, const char *line) {
    events *const e = &((user *)p)->events;
    (void)level;
    atomic_fetch_add(&e->compiled, strstr(line, "compiled") != NULL);
    atomic_fetch_add(&e->cached, strstr(line, "cached;") != NULL);
}

static rft_ctx_options options(const char *cache_dir) {
    rft_ctx_options o = rft_test_options(&hooks.memory);
    o.cache_dir = cache_dir;
    o.log = count_events;
    o.log_level = RFT_LOG_DISPATCH;
    atomic_store(&hooks.events.compiled, 0);
    atomic_store(&hooks.events.cached, 0);
    return o;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at) {
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

static int remove_folder(void **state) {
    (void)state;
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    return 0;
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

/* Skips where there is no compiler, which is RFT_E_JIT with the reason. */
static void prebuild(const rft_machine *machine, const char *cache_dir, const rft_linear_desc *d) {
    const rft_ctx_options o = options(cache_dir);
    const rft_status status = rft_prebuild(machine, &o, d, &test_err);
    assert_int_equal(atomic_load(&hooks.memory.blocks), 0);
    if (status == RFT_E_JIT && atomic_load(&hooks.events.compiled) == 0) {
        print_message("skipped: %s\n", test_err.message);
        skip();
    }
    OK(status);
}

static void test_prebuilt_is_found(void **state) {
    const rft_linear_desc d = layer(RFT_F16, 1, 200, 264);
    (void)state;
    for (int i = 0; i < TARGETS; i++) {
        prebuild(&machines[i], folder, &d);
        const int compiled = atomic_load(&hooks.events.compiled);
        assert_true(compiled > 0); /* also for sm_89 behind sm_80: another target, another key */
        assert_int_equal(atomic_load(&hooks.events.cached), 0);
        prebuild(&machines[i], folder, &d);
        assert_int_equal(atomic_load(&hooks.events.compiled), 0);
        assert_int_equal(atomic_load(&hooks.events.cached), compiled);
    }
    prebuild(&machines[0], "/dev/null/folder", &d); /* that no one can make: it costs time alone */
    assert_true(atomic_load(&hooks.events.compiled) > 0);
}

/* ---- memory that runs out ---- */

/* A cache that cannot be read for want of memory is a miss, so some failures end well. Nothing is ever left behind. */
static void test_no_memory(void **state) {
    const rft_linear_desc d = layer(RFT_F16, 1, 200, 264);
    int failures = 0, n = 0;
    (void)state;
    prebuild(&machines[1], folder, &d);
    for (bool used_up = true; n < MANY && used_up; n++) {
        const rft_ctx_options o = options(folder);
        atomic_store(&hooks.memory.until_failure, n);
        memset(&test_err, 0, sizeof test_err);
        const rft_status status = rft_prebuild(&machines[1], &o, &d, &test_err);
        used_up = atomic_load(&hooks.memory.until_failure) == 0;
        assert_int_equal(atomic_load(&hooks.memory.bytes), 0);
        assert_int_equal(atomic_load(&hooks.memory.blocks), 0);
        assert_true(status == RFT_OK || status == RFT_E_NOMEM);
        assert_int_equal(status, status == RFT_OK ? RFT_OK : test_err.status);
        failures += status == RFT_E_NOMEM;
        assert_true(used_up || status == RFT_OK);
    }
    atomic_store(&hooks.memory.until_failure, -1);
    assert_true(n < MANY);
    assert_true(failures >= 4);
}

/* Where there is no GPU, and where there is one but no memory. */
static void test_no_memory_for_a_context(void **state) {
    (void)state;
    for (int n = 0; n < 4; n++) {
        const rft_ctx_options o = options("/dev/null/folder");
        rft_ctx *ctx = NULL;
        atomic_store(&hooks.memory.until_failure, n);
        const rft_status status = rft_ctx_create("cuda:0", &o, &ctx, &test_err);
        atomic_store(&hooks.memory.until_failure, -1);
        assert_true(n > 0 || status == RFT_E_NOMEM);
        assert_true((status == RFT_OK) == (ctx != NULL));
        rft_ctx_free(ctx);
        assert_int_equal(atomic_load(&hooks.memory.bytes), 0);
        assert_int_equal(atomic_load(&hooks.memory.blocks), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_machine),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_precision_is_asked_for),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_few_multiprocessors),
        cmocka_unit_test(test_odd_sizes),
        cmocka_unit_test(test_batch_invariant_choice),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test_setup_teardown(test_prebuilt_is_found, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_no_memory, make_folder, remove_folder),
        cmocka_unit_test(test_no_memory_for_a_context),
    };
    return cmocka_run_group_tests(tests, load_all, NULL);
}
