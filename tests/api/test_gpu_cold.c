/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gpu_cold.c - 8 processes start at once on one empty kernel cache: all compile, load and run the same kernels and are
 * right; behind them a ninth finds every kernel there and compiles nothing. Each is this program again, with a folder's name.
 */
#define _GNU_SOURCE 1
#include "gpu_test.h"

#include <ftw.h>
#include <sys/wait.h>

enum { PROCESSES = 8 };

static const char *program;
static char folder[] = "/tmp/rft_cold_XXXXXX";

/* ---- one of the processes ---- */

static atomic_int compiled;

static void count_compiled(void *user, rft_log_level level, const char *line) {
    (void)user;
    (void)level;
    if (strstr(line, "compiled") != NULL) {
        atomic_fetch_add(&compiled, 1);
    }
}

static int open_in(const char *cache_dir) {
    rft_ctx_options o = gpu_options(NULL);
    o.cache_dir = cache_dir;
    o.threads = 2;
    o.log = count_compiled;
    o.log_level = RFT_LOG_DISPATCH;
    return rft_ctx_create("cuda:0", &o, &gpu, &test_err) == RFT_OK ? 0 : -1;
}

static void layers(void **state) {
    static const int64_t rows[] = {1, 16, 130};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const rft_linear_desc d = gpu_desc(RFT_BF16, rows[i], 264, 200);
        gpu_layer l = gpu_make(&d, NULL, rows[i], 1);
        gpu_run(&l);
        gpu_prove(&l, 0);
        gpu_free(&l);
    }
}

/* Exit code 0: right; 2: right, and nothing was compiled. */
static int be_one(const char *cache_dir) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(layers, gpu_drop)};
    alarm(120);
    if (open_in(cache_dir) != 0 || cmocka_run_group_tests(tests, NULL, gpu_close) != 0) {
        return 1;
    }
    return atomic_load(&compiled) == 0 ? 2 : 0;
}

/* ---- all of them ---- */

static pid_t start(void) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", program, folder, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static int result_of(pid_t pid) {
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at) {
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

static void test_eight_cold(void **state) {
    pid_t pid[PROCESSES];
    (void)state;
    gpu_needed();
    alarm(0); /* each process has its own */
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < PROCESSES; i++) {
        pid[i] = start();
    }
    int wrong = 0;
    for (int i = 0; i < PROCESSES; i++) {
        const int result = result_of(pid[i]);
        wrong += result != 0 && result != 2;
    }
    const int ninth = result_of(start());
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(wrong, 0);
    assert_int_equal(ninth, 2);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_eight_cold)};
    program = argv[0];
    return argc > 1 ? be_one(argv[1]) : cmocka_run_group_tests(tests, gpu_open, gpu_close);
}
