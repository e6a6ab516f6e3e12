/* SPDX-License-Identifier: Apache-2.0
 *
 * test_jit_cache.c - cubins on disk: keys, damaged files, folders that cannot be used, and many processes at once.
 * What compiles needs NVRTC, else it is skipped.
 */
#define _GNU_SOURCE 1
#include "cuda/jit_cache.h"
#include "base/file.h"
#include "jit_fixture.h"
#include "leave_child.h"
#include "test_folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEADER_BYTES 64
#define PROCESSES 8
#define NOBODY 65534

static const rft__log quiet;

/* ---- keys ---- */

static rft__jit_key key_of(const char *first, const char *second) {
    rft__jit_key key = rft__jit_key_start();
    rft__jit_key_add_text(&key, first);
    rft__jit_key_add_text(&key, second);
    return key;
}

static void assert_keys_differ(rft__jit_key a, rft__jit_key b) {
    assert_true(a.word[0] != b.word[0]);
    assert_true(a.word[1] != b.word[1]);
}

static void keys_tell_parts_apart(void **state) {
    (void)state;
    const rft__jit_key key = key_of("ab", "c"), again = key_of("ab", "c");
    assert_memory_equal(&key, &again, sizeof key);
    assert_keys_differ(key, key_of("a", "bc"));
    assert_keys_differ(key, key_of("ab", "d"));
    assert_keys_differ(key, key_of("abc", ""));
    assert_true(key.word[0] != key.word[1]);
}

/* ---- files ---- */

static char some_code[1000];
static const rft__jit_key a_key = {{1, 2}};

static rft__cubin make_cubin(void) {
    for (size_t i = 0; i < sizeof some_code; i++) {
        some_code[i] = (char)(i * 7);
    }
    return (rft__cubin){.data = some_code,
                        .size = sizeof some_code,
                        .registers = 168,
                        .shared_bytes = 1024,
                        .spill_bytes = 8,
                        .stack_bytes = 16,
                        .serialized = true};
}

static const char *file_of(const rft__jit_key *key) {
    char name[64];
    snprintf(name, sizeof name, "cubin/%016llx%016llx.cubin", (unsigned long long)key->word[0], (unsigned long long)key->word[1]);
    return in_folder(name);
}

static void write_one(void) {
    const rft__allocator a = rft__allocator_default();
    const rft__cubin cubin = make_cubin();
    assert_int_equal(rft__jit_cache_write(&a, folder, &a_key, &cubin, NULL), RFT_OK);
}

static bool read_one(const rft__jit_key *key) {
    const rft__allocator a = rft__allocator_default();
    rft__cubin cubin;
    if (!rft__jit_cache_read(&a, folder, key, &cubin)) {
        return false;
    }
    rft__release(&a, cubin.data, cubin.size);
    return true;
}

static void what_is_written_is_read(void **state) {
    (void)state;
    const rft__allocator a = rft__allocator_default();
    const rft__cubin expected = make_cubin();
    rft__cubin cubin;
    assert_false(read_one(&a_key));
    write_one();
    assert_true(rft__jit_cache_read(&a, folder, &a_key, &cubin));
    assert_int_equal(cubin.size, expected.size);
    assert_memory_equal(cubin.data, expected.data, expected.size);
    assert_int_equal(cubin.registers, 168);
    assert_int_equal(cubin.shared_bytes, 1024);
    assert_int_equal(cubin.spill_bytes, 8);
    assert_int_equal(cubin.stack_bytes, 16);
    assert_true(cubin.serialized && cubin.cached);
    rft__release(&a, cubin.data, cubin.size);
}

/* Any byte of the header, and some of the code. */
static void changed_bytes_are_a_miss(void **state) {
    (void)state;
    for (long at = 0; at < HEADER_BYTES + (long)sizeof some_code; at += at < HEADER_BYTES ? 1 : 111) {
        write_one();
        FILE *f = fopen(file_of(&a_key), "r+b");
        assert_non_null(f);
        fseek(f, at, SEEK_SET);
        const int byte = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(byte ^ 0x10, f);
        fclose(f);
        if (read_one(&a_key)) {
            fail_msg("byte %ld was changed and nobody noticed", at);
        }
    }
}

static void other_lengths_are_a_miss(void **state) {
    (void)state;
    const long whole = HEADER_BYTES + (long)sizeof some_code;
    const long lengths[] = {0, 1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 1, whole - 1, whole + 1};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        write_one();
        assert_int_equal(truncate(file_of(&a_key), lengths[i]), 0);
        assert_false(read_one(&a_key));
    }
}

static void file_of_another_key_is_a_miss(void **state) {
    (void)state;
    const rft__jit_key other = {{1, 3}};
    char from[PATH_MAX];
    write_one();
    snprintf(from, sizeof from, "%s", file_of(&a_key));
    assert_int_equal(rename(from, file_of(&other)), 0);
    assert_false(read_one(&other));
    assert_false(read_one(&a_key));
}

/* ---- with the compiler ---- */

static rft__cubin get(rft__jit *jit, const char *config) {
    const rft__jit_request request = tiny_request(80, config);
    rft__cubin cubin;
    rft_error err = {.message = ""};
    if (rft__jit_get(jit, &request, 1, &cubin, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return cubin;
}

/* What a cache gives at its first and second use; true: the second was a hit. */
static bool second_is_cached(rft__jit *jit, const char *config) {
    rft__cubin first = get(jit, config), second = get(jit, config);
    const bool cached = second.cached;
    assert_false(first.cached);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    assert_int_equal(first.registers, second.registers);
    rft__cubin_release(jit, &first);
    rft__cubin_release(jit, &second);
    return cached;
}

static void second_request_is_a_hit(void **state) {
    (void)state;
    need_nvrtc();
    rft__jit *jit = make_jit(&tiny_source, in_folder("new/missing"), quiet);
    assert_true(second_is_cached(jit, "#define SCALE 1.0f\n"));
    assert_true(second_is_cached(jit, "#define SCALE 2.0f\n")); /* another config is another kernel */
    double best = 1e9;
    for (int i = 0; i < 10; i++) {
        rft__cubin cubin = get(jit, "#define SCALE 1.0f\n");
        best = cubin.milliseconds < best ? cubin.milliseconds : best;
        rft__cubin_release(jit, &cubin);
    }
    assert_true(best < 5);
    rft__jit_free(jit);
}

/* Each text that a kernel is made of, and each part of a request, changes the key. */
static void what_code_depends_on_is_in_the_key(void **state) {
    (void)state;
    need_nvrtc();
    static const char config[] = "#define SCALE 1.0f\n";
    const char *cache_dir = in_folder("parts");
    for (int changed = -1; changed < 3; changed++) {
        rft__cuda_text texts[3];
        char text[512];
        memcpy(texts, tiny_texts, sizeof texts);
        if (changed >= 0) {
            snprintf(text, sizeof text, "%s\n", texts[changed].text);
            texts[changed].text = text;
        }
        const rft__cuda_source set = {texts, 3};
        rft__jit *jit = make_jit(&set, cache_dir, quiet);
        assert_true(second_is_cached(jit, config));
        rft__jit_free(jit);
    }
    rft__jit *jit = make_jit(&tiny_source, cache_dir, quiet);
    const rft__jit_request other = tiny_request(89, config);
    rft__cubin cubin = get(jit, config);
    assert_true(cubin.cached);
    rft__cubin_release(jit, &cubin);
    assert_int_equal(rft__jit_get(jit, &other, 1, &cubin, NULL), RFT_OK);
    assert_false(cubin.cached);
    rft__cubin_release(jit, &cubin);
    rft__jit_free(jit);
}

static int files_in(const char *path, const char *end) {
    DIR *d = opendir(path);
    int count = 0;
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        const size_t length = strlen(e->d_name), tail = strlen(end);
        count += length > 2 && length >= tail && strcmp(e->d_name + length - tail, end) == 0;
    }
    closedir(d);
    return count;
}

static void damaged_entries_are_compiled_again(void **state) {
    (void)state;
    need_nvrtc();
    char command[PATH_MAX + 128];
    rft__jit *jit = make_jit(&tiny_source, in_folder("damage"), quiet);
    assert_true(second_is_cached(jit, "#define SCALE 1.0f\n"));
    static const char *const harms[] = {"truncate -s 100", "truncate -s 0", "sed -i s/ELF/FLE/", "cp /bin/true"};
    for (size_t i = 0; i < sizeof harms / sizeof harms[0]; i++) {
        snprintf(command, sizeof command, "for f in '%s'/cubin/*.cubin; do %s \"$f\"; done", in_folder("damage"), harms[i]);
        assert_int_equal(system(command), 0);
        assert_true(second_is_cached(jit, "#define SCALE 1.0f\n"));
        assert_int_equal(files_in(in_folder("damage/cubin"), ""), 1);
    }
    rft__jit_free(jit);
}

static void count_hints(void *user, rft_log_level level, const char *line) {
    int *hints = user;
    *hints += level == RFT_LOG_HINT && strstr(line, "compiled kernels are not kept: cannot create") != NULL;
}

static void cannot_keep(const char *cache_dir) {
    int hints = 0;
    rft__jit *jit = make_jit(&tiny_source, cache_dir, (rft__log){.callback = count_hints, .user = &hints, .level = RFT_LOG_HINT});
    assert_false(second_is_cached(jit, "#define SCALE 1.0f\n"));
    assert_false(second_is_cached(jit, "#define SCALE 2.0f\n"));
    assert_int_equal(hints, 1);
    rft__jit_free(jit);
}

static void folder_that_cannot_be_made_is_tolerated(void **state) {
    (void)state;
    need_nvrtc();
    assert_int_equal(rft__file_replace(in_folder("file"), "x", 1, NULL), RFT_OK);
    cannot_keep(in_folder("file/cache"));
}

static void read_only_folder_is_tolerated(void **state) {
    (void)state;
    need_nvrtc();
    const bool root = geteuid() == 0; /* who may write anywhere, so another user does it */
    rft__jit *jit = make_jit(&tiny_source, in_folder("fixed"), quiet);
    assert_true(second_is_cached(jit, "#define SCALE 3.0f\n"));
    assert_int_equal(chmod(in_folder("fixed/cubin"), 0555), 0);
    if (root) {
        assert_int_equal(chmod(folder, 0755), 0);
        assert_int_equal(seteuid(NOBODY), 0);
    }
    cannot_keep(in_folder("fixed"));
    rft__cubin cubin = get(jit, "#define SCALE 3.0f\n");
    assert_true(cubin.cached);
    if (root) {
        assert_int_equal(seteuid(0), 0);
    }
    rft__cubin_release(jit, &cubin);
    rft__jit_free(jit);
}

/* ---- processes ---- */

/* The child's exit code: 0 when it got all kernels. */
static int cold_start(const char *cache_dir) {
    rft__jit *jit = make_jit(&tiny_source, cache_dir, quiet);
    const rft__jit_request requests[2] = {tiny_request(80, "#define SCALE 1.0f\n"), tiny_request(80, "#define SCALE 2.0f\n")};
    rft__cubin cubins[2];
    const rft_status status = rft__jit_get(jit, requests, 2, cubins, NULL);
    return status == RFT_OK && memcmp(cubins[0].data, "\x7f" "ELF", 4) == 0 ? 0 : 1;
}

/* Children open NVRTC themselves, so this one process must not have opened it: 1 is a failed child, 2 no NVRTC. */
static int run_children(const char *cache_dir) {
    pid_t children[PROCESSES];
    int bad = 0;
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            leave_child(rft__nvrtc_get(NULL) == NULL ? 2 : cold_start(cache_dir));
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int code = -1;
        waitpid(children[i], &code, 0);
        bad = WIFEXITED(code) && WEXITSTATUS(code) <= bad ? bad : WIFEXITED(code) ? WEXITSTATUS(code) : 1;
    }
    return bad;
}

static void eight_processes_start_cold(void **state) {
    (void)state;
    const int bad = run_children(in_folder("cold"));
    if (bad == 2) {
        need_nvrtc();
    }
    assert_int_equal(bad, 0);
    assert_int_equal(files_in(in_folder("cold/cubin"), ".cubin"), 2);
    assert_int_equal(files_in(in_folder("cold/cubin"), ".tmp"), 0);
    rft__jit *jit = make_jit(&tiny_source, in_folder("cold"), quiet);
    rft__cubin cubin = get(jit, "#define SCALE 2.0f\n");
    assert_true(cubin.cached);
    rft__cubin_release(jit, &cubin);
    rft__jit_free(jit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_processes_start_cold), /* before any other opens NVRTC */
        cmocka_unit_test(keys_tell_parts_apart),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(changed_bytes_are_a_miss),
        cmocka_unit_test(other_lengths_are_a_miss),
        cmocka_unit_test(file_of_another_key_is_a_miss),
        cmocka_unit_test(second_request_is_a_hit),
        cmocka_unit_test(what_code_depends_on_is_in_the_key),
        cmocka_unit_test(damaged_entries_are_compiled_again),
        cmocka_unit_test(folder_that_cannot_be_made_is_tolerated),
        cmocka_unit_test(read_only_folder_is_tolerated),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
