/* SPDX-License-Identifier: Apache-2.0
 *
 * test_base.c - errors, memory, hash, environment, files and CPU quota of src/base.
 */
#define _GNU_SOURCE 1
#include "base/alloc.h"
#include "base/clock.h"
#include "base/cpus.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "emulated.h"
#include "test_folder.h"

/* ---- errors ---- */

static void status_names(void **state) {
    (void)state;
    assert_string_equal(rft_status_name(RFT_OK), "RFT_OK");
    assert_string_equal(rft_status_name(RFT_E_COMM), "RFT_E_COMM");
    for (int i = 0; i <= RFT_E_COMM; i++) {
        assert_string_not_equal(rft_status_name((rft_status)i), "unknown status");
    }
    assert_string_equal(rft_status_name((rft_status)999), "unknown status");
}

static void error_is_filled(void **state) {
    (void)state;
    rft_error err;
    assert_int_equal(rft__error_set(NULL, RFT_E_ARG, 0, "x"), RFT_E_ARG);
    assert_int_equal(rft__error_set(&err, RFT_E_IO, 5, "k = %d", 7), RFT_E_IO);
    assert_int_equal(err.status, RFT_E_IO);
    assert_int_equal(err.native, 5);
    assert_string_equal(err.message, "k = 7");
    rft__error_set(&err, RFT_E_IO, 0, "in front: %s", err.message);
    assert_string_equal(err.message, "in front: k = 7");
}

static void errors_hold_no_control_characters(void **state) {
    (void)state;
    rft_error err;
    rft__error_set(&err, RFT_E_ARG, 0, "name = '%s'", "a\x1b[31m\nb\x7f");
    assert_string_equal(err.message, "name = 'a?[31m?b?'");
    /* U+009B, U+0085 and U+009F are such, U+00A0 and U+00DB not. */
    rft__error_set(&err, RFT_E_ARG, 0, "'%s'", "\xc2\x9b" "31m\xc2\x85\xc2\x9f\xc2\xa0\xc3\x9b\xc2");
    assert_string_equal(err.message, "'?31m??\xc2\xa0\xc3\x9b\xc2'");
}

static void text_is_made_printable(void **state) {
    (void)state;
    char text[8] = "\xc2\x80" "a\x1f" "b\x7f";
    assert_false(rft__is_printable(text, strlen(text)));
    assert_false(rft__is_printable("\xc2\x9f", 2));
    assert_true(rft__is_printable("\xc2\x9f", 1)); /* cut */
    assert_true(rft__is_printable("\xe2\x82\xac \xc2\xa0 \xc4\x80", 8));
    rft__copy_printable(text, sizeof text, text, strlen(text));
    assert_string_equal(text, "?a?b?");
    rft__copy_printable(text, 4, "abcdef", 6);
    assert_string_equal(text, "abc");
    rft__copy_printable(text, 1, "abc", 3);
    assert_string_equal(text, "");
}

static void long_error_is_cut(void **state) {
    (void)state;
    rft_error err;
    rft__error_set(&err, RFT_E_ARG, 0, "%0500d", 1);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_string_equal(err.message + sizeof err.message - 4, "...");
    rft__error_set(&err, RFT_E_ARG, 0, "%0239d", 1);
    assert_string_equal(err.message + 236, "001");
}

/* ---- sizes ---- */

static void overflow_is_seen(void **state) {
    (void)state;
    int64_t v;
    size_t s;
    assert_false(rft__mul_overflows(1 << 20, 1 << 20, &v));
    assert_int_equal(v, (int64_t)1 << 40);
    assert_true(rft__mul_overflows((int64_t)1 << 32, (int64_t)1 << 31, &v));
    assert_true(rft__mul_overflows(-1, 2, &v));
    assert_true(rft__mul_overflows(-2, -2, &v));
    assert_true(rft__mul_overflows(0, -1, &v));
    assert_false(rft__add_overflows(INT64_MAX - 1, 1, &v));
    assert_int_equal(v, INT64_MAX);
    assert_true(rft__add_overflows(INT64_MAX, 1, &v));
    assert_true(rft__add_overflows(3, -1, &v));
    assert_false(rft__mul_size(3, 5, &s));
    assert_int_equal(s, 15);
    assert_true(rft__mul_size(SIZE_MAX / 2, 3, &s));
    assert_true(rft__add_size(SIZE_MAX, 1, &s));
    assert_int_equal(rft__ceil_div(7, 4), 2);
    assert_int_equal(rft__round_up(8, 4), 8);
}

/* ---- memory ---- */

static void check_zeroed(const unsigned char *p, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (p[i] != 0) {
            fail_msg("byte %zu of %zu is %d", i, bytes, p[i]);
        }
    }
}

static void memory_is_zeroed_and_aligned(void **state) {
    (void)state;
    const size_t mib = (size_t)1 << 20;
    const size_t sizes[] = {0, 1, 100, 4096, 2 * mib - 1, 2 * mib, 2 * mib + 1, 5 * mib};
    const size_t aligns[] = {sizeof(void *), 64, 4096, 4 * mib};
    rft__allocator a = rft__allocator_default();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t j = 0; j < sizeof aligns / sizeof *aligns; j++) {
            for (int again = 0; again < 2; again++) { /* the second meets memory that the first made dirty */
                a.huge_pages = again;
                unsigned char *p = rft__alloc(&a, sizes[i], aligns[j]);
                assert_non_null(p);
                assert_int_equal((uintptr_t)p % aligns[j], 0);
                check_zeroed(p, sizes[i]);
                memset(p, 0xff, sizes[i]);
                rft__release(&a, p, sizes[i]);
            }
        }
    }
    rft__release(&a, NULL, 10);
}

static void impossible_sizes_are_refused(void **state) {
    (void)state;
    const rft__allocator a = rft__allocator_default();
    assert_null(rft__alloc(&a, SIZE_MAX, 64));
    assert_null(rft__alloc(&a, SIZE_MAX - 100, 64));
    assert_null(rft__alloc(&a, SIZE_MAX / 2, 64));
    assert_null(rft__alloc(&a, (size_t)1 << 60, 64));
}

static long virtual_pages(void) {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld", &pages), 1);
    fclose(f);
    return pages;
}

static void large_memory_is_returned(void **state) {
    (void)state;
    SKIP_WHERE_EMULATED();
    const rft__allocator a = rft__allocator_default();
    const size_t bytes = ((size_t)64 << 20) + 12345;
    const long before = virtual_pages();
    for (int i = 0; i < 200; i++) {
        void *p = rft__alloc(&a, bytes, 64);
        assert_non_null(p);
        rft__release(&a, p, bytes);
    }
    assert_true(virtual_pages() - before < (8 << 20) / 4096);
}

typedef struct hook {
    int live;
    size_t bytes, shift;
    bool fail;
} hook;

static void *hook_alloc(void *user, size_t bytes, size_t align) {
    hook *h = user;
    void *p = NULL;
    if (h->fail || posix_memalign(&p, align, bytes + align) != 0) {
        return NULL;
    }
    memset(p, 0xaa, bytes + align);
    h->live++;
    h->bytes += bytes;
    return (char *)p + h->shift;
}

static void hook_release(void *user, void *p, size_t bytes) {
    hook *h = user;
    h->live--;
    h->bytes -= bytes;
    free((char *)p - h->shift);
}

static void hooks_are_used(void **state) {
    (void)state;
    hook h = {0};
    const rft__allocator a = {.alloc = hook_alloc, .release = hook_release, .user = &h};
    unsigned char *p = rft__alloc(&a, 3 << 20, 64);
    assert_non_null(p);
    assert_int_equal(h.live, 1);
    check_zeroed(p, 3 << 20);
    rft__release(&a, p, 3 << 20);
    p = rft__alloc(&a, 0, 64);
    assert_non_null(p);
    rft__release(&a, p, 0);
    assert_int_equal(h.live, 0);
    assert_int_equal(h.bytes, 0);
    h.fail = true;
    assert_null(rft__alloc(&a, 100, 64));
    h = (hook){.shift = 8};
    assert_null(rft__alloc(&a, 100, 64)); /* misaligned: given back */
    assert_int_equal(h.live, 0);
}

/* ---- hash and clock ---- */

static void hash_is_fnv1a(void **state) {
    (void)state;
    assert_true(rft__hash(RFT_HASH_SEED, "", 0) == 0xcbf29ce484222325u);
    assert_true(rft__hash(RFT_HASH_SEED, "a", 1) == 0xaf63dc4c8601ec8cu);
    assert_true(rft__hash(RFT_HASH_SEED, "foobar", 6) == 0x85944171f73967e8u);
    assert_true(rft__hash(rft__hash(RFT_HASH_SEED, "foo", 3), "bar", 3) == 0x85944171f73967e8u);
}

static void clock_counts_seconds(void **state) {
    (void)state;
    const double start = rft__now();
    const struct timespec rest = {.tv_nsec = 5000000};
    nanosleep(&rest, NULL);
    const double passed = rft__now() - start;
    assert_true(passed >= 0.005 && passed < 5);
}

/* ---- environment ---- */

static void counts_are_parsed(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t whole, first; /* 0: counts as unset */
    } rows[] = {{"4", 4, 4},          {" 12 ", 12, 12}, {"4,2", 0, 4}, {"4 , 2", 0, 4}, {"", 0, 0},
                {"0", 0, 0},          {"-1", 0, 0},     {"4x", 0, 0},  {"x4", 0, 0},    {",4", 0, 0},
                {"1024", 1024, 1024}, {"1025", 0, 0},   {"4.5", 0, 0}, {"99999999999999999999", 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t whole = 0, first = 0;
        setenv("RFT_TEST_COUNT", rows[i].text, 1);
        assert_int_equal(rft__env_count("RFT_TEST_COUNT", 1024, &whole), rows[i].whole != 0);
        assert_int_equal(rft__env_first_count("RFT_TEST_COUNT", 1024, &first), rows[i].first != 0);
        assert_int_equal(whole, rows[i].whole);
        assert_int_equal(first, rows[i].first);
    }
    int64_t untouched = 77;
    unsetenv("RFT_TEST_COUNT");
    assert_false(rft__env_count("RFT_TEST_COUNT", 1024, &untouched));
    assert_int_equal(untouched, 77);
}

static void flags_are_one(void **state) {
    (void)state;
    setenv("RFT_TEST_FLAG", "1", 1);
    assert_true(rft__env_flag("RFT_TEST_FLAG"));
    setenv("RFT_TEST_FLAG", "0", 1);
    assert_false(rft__env_flag("RFT_TEST_FLAG"));
    setenv("RFT_TEST_FLAG", "", 1);
    assert_null(rft__env_text("RFT_TEST_FLAG"));
    unsetenv("RFT_TEST_FLAG");
    assert_false(rft__env_flag("RFT_TEST_FLAG"));
}

static void cache_dir_in_order(void **state) {
    (void)state;
    char dir[64];
    setenv("HOME", "/home/me", 1);
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    setenv("RFT_CACHE_DIR", "/mine", 1);
    assert_true(rft__env_cache_dir("/given", dir, sizeof dir));
    assert_string_equal(dir, "/given");
    assert_true(rft__env_cache_dir(NULL, dir, sizeof dir));
    assert_string_equal(dir, "/mine");
    unsetenv("RFT_CACHE_DIR");
    assert_true(rft__env_cache_dir("", dir, sizeof dir));
    assert_string_equal(dir, "/xdg/rooftile");
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_true(rft__env_cache_dir(NULL, dir, sizeof dir));
    assert_string_equal(dir, "/home/me/.cache/rooftile");
    assert_false(rft__env_cache_dir(NULL, dir, strlen("/home/me/.cache/rooftile")));
    assert_true(rft__env_cache_dir(NULL, dir, strlen("/home/me/.cache/rooftile") + 1));
    unsetenv("HOME");
    assert_false(rft__env_cache_dir(NULL, dir, sizeof dir));
    unsetenv("XDG_CACHE_HOME");
}

/* ---- files ---- */

static void write_file(const char *path, const char *text) {
    rft_error err;
    if (rft__file_replace(path, text, strlen(text), &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
}

static char *read_file(const char *path) { /* the caller frees */
    const rft__allocator a = rft__allocator_default();
    rft_error err;
    char *data;
    size_t size;
    if (rft__file_read(&a, path, 1 << 20, &data, &size, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(data[size], 0);
    char *copy = strdup(data);
    rft__release(&a, data, size + 1);
    return copy;
}

static void files_are_replaced(void **state) {
    (void)state;
    const char *path = in_folder("a/b/c.json");
    write_file(path, "first");
    write_file(path, "second, longer");
    write_file(path, "third");
    char *text = read_file(path);
    assert_string_equal(text, "third");
    free(text);
    char command[PATH_MAX];
    snprintf(command, sizeof command, "test \"$(ls -A '%s/a/b')\" = c.json", folder); /* no temporary file stays */
    assert_int_equal(system(command), 0);
    write_file(in_folder("empty"), "");
    text = read_file(in_folder("empty"));
    assert_string_equal(text, "");
    free(text);
}

static void expect_read_error(const char *path, size_t cap, int native) {
    const rft__allocator a = rft__allocator_default();
    rft_error err;
    char *data = NULL;
    size_t size;
    assert_int_equal(rft__file_read(&a, path, cap, &data, &size, &err), RFT_E_IO);
    assert_int_equal(err.native, native);
    assert_non_null(strstr(err.message, path));
    assert_null(data);
}

static void unreadable_files_have_a_reason(void **state) {
    (void)state;
    write_file(in_folder("ten"), "0123456789");
    expect_read_error(in_folder("ten"), 9, EFBIG);
    expect_read_error(in_folder("missing"), 9, ENOENT);
    expect_read_error(folder, 9, EISDIR);
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    expect_read_error(in_folder("fifo"), 9, EINVAL); /* and does not wait for a writer */
    hook h = {.fail = true};
    const rft__allocator none = {.alloc = hook_alloc, .release = hook_release, .user = &h};
    rft_error err;
    char *data;
    size_t size;
    assert_int_equal(rft__file_read(&none, in_folder("ten"), 10, &data, &size, &err), RFT_E_NOMEM);
}

static void unwritable_paths_have_a_reason(void **state) {
    (void)state;
    rft_error err;
    write_file(in_folder("plain"), "x");
    assert_int_equal(rft__file_replace(in_folder("plain/below"), "y", 1, &err), RFT_E_IO);
    assert_int_equal(err.native, ENOTDIR);
    mkdir(in_folder("taken"), 0700);
    assert_int_equal(rft__file_replace(in_folder("taken"), "y", 1, &err), RFT_E_IO); /* a folder stands there: rename fails */
    assert_int_equal(err.native, EISDIR);
    char command[PATH_MAX];
    snprintf(command, sizeof command, "test -z \"$(find '%s' -name '*.tmp')\"", folder);
    assert_int_equal(system(command), 0);
    char name[PATH_MAX + 10];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(rft__file_replace(name, "y", 1, &err), RFT_E_IO);
    assert_int_equal(err.native, ENAMETOOLONG);
}

/* ---- CPU quota ---- */

static int quota_of(const char *membership) {
    char file[PATH_MAX], mount[PATH_MAX];
    snprintf(file, sizeof file, "%s/membership", folder);
    snprintf(mount, sizeof mount, "%s/cg", folder);
    write_file(file, membership);
    return rft__cpus_quota(file, mount);
}

static void quota_is_the_least_above(void **state) {
    (void)state;
    write_file(in_folder("cg/v2/cpu.max"), "400000 100000\n");
    write_file(in_folder("cg/v2/tight/cpu.max"), "150000 100000\n");
    write_file(in_folder("cg/v2/tight/open/cpu.max"), "max 100000\n");
    assert_int_equal(quota_of("0::/v2\n"), 4);
    assert_int_equal(quota_of("0::/v2/tight\n"), 2); /* 1.5, rounded up */
    assert_int_equal(quota_of("0::/v2/tight/open\n"), 2);
    assert_int_equal(quota_of("0::/v2/not/mounted/here\n"), 4);
    assert_int_equal(quota_of("0::/\n"), 0);
    assert_int_equal(quota_of("no such format\n"), 0);
    assert_int_equal(rft__cpus_quota("/nonexistent", "/nonexistent"), 0);
}

static void old_quota_is_read(void **state) {
    (void)state;
    write_file(in_folder("cg/cpu,cpuacct/box/cpu.cfs_quota_us"), "300000\n");
    write_file(in_folder("cg/cpu,cpuacct/box/cpu.cfs_period_us"), "100000\n");
    write_file(in_folder("cg/cpu,cpuacct/free/cpu.cfs_quota_us"), "-1\n");
    write_file(in_folder("cg/cpu,cpuacct/free/cpu.cfs_period_us"), "100000\n");
    write_file(in_folder("cg/cpuset/box/cpu.cfs_quota_us"), "100000\n"); /* another controller's folder */
    write_file(in_folder("cg/cpuset/box/cpu.cfs_period_us"), "100000\n");
    assert_int_equal(quota_of("5:cpuset:/box\n4:cpu,cpuacct:/box\n0::/\n"), 3);
    assert_int_equal(quota_of("4:cpu,cpuacct:/free\n"), 0);
}

static void some_cpu_is_available(void **state) {
    (void)state;
    const int cpus = rft__cpus_available();
    assert_true(cpus >= 1 && cpus <= sysconf(_SC_NPROCESSORS_CONF));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_names),
        cmocka_unit_test(error_is_filled),
        cmocka_unit_test(errors_hold_no_control_characters),
        cmocka_unit_test(text_is_made_printable),
        cmocka_unit_test(long_error_is_cut),
        cmocka_unit_test(overflow_is_seen),
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(large_memory_is_returned),
        cmocka_unit_test(hooks_are_used),
        cmocka_unit_test(hash_is_fnv1a),
        cmocka_unit_test(clock_counts_seconds),
        cmocka_unit_test(counts_are_parsed),
        cmocka_unit_test(flags_are_one),
        cmocka_unit_test(cache_dir_in_order),
        cmocka_unit_test(files_are_replaced),
        cmocka_unit_test(unreadable_files_have_a_reason),
        cmocka_unit_test(unwritable_paths_have_a_reason),
        cmocka_unit_test(quota_is_the_least_above),
        cmocka_unit_test(old_quota_is_read),
        cmocka_unit_test(some_cpu_is_available),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
