/* SPDX-License-Identifier: Apache-2.0
 *
 * test_machine.c - machine profiles: exact round trip, and a clear refusal of each kind of damage.
 */
#define _POSIX_C_SOURCE 200809L
#include "roofline/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/rft_test_machine_XXXXXX";
static char path[64];

static rft_machine example(void) {
    rft_machine m = {
        .struct_size = sizeof m, .n_counts = 2, .n_levels = 2, .n_peaks = 2, .counts = {1, 2}, .launch_us = 2.0 / 3.0};
    strcpy(m.name, "Some CPU \xc2\xb5 \"quoted\"");
    strcpy(m.device, "cpu");
    strcpy(m.isa, "avx512bf16");
    strcpy(m.date, "2026-01-31T23:59:59Z");
    strcpy(m.source, "measured");
    m.levels[0] = (rft_machine_level){.name = "L1", .bytes = 16384, .read_gbps = {242.0, 1.0 / 3.0}, .copy_gbps = {388.5, 0.0}};
    m.levels[1] = (rft_machine_level){.name = "DRAM", .bytes = INT64_MAX, .read_gbps = {16.2, 32.6}, .copy_gbps = {13.7, 1e12}};
    m.peaks[0] = (rft_machine_peak){.isa = "avx512", .op = "fma_f32", .type = RFT_F32, .gflops = {178.0, 353.0}};
    m.peaks[1] =
        (rft_machine_peak){.isa = "avx512bf16", .op = "dot_bf16", .type = RFT_BF16, .gflops = {87.0, nextafter(175.0, 0.0)}};
    return m;
}

static int make_folder(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(path, sizeof path, "%s/profile.json", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static char *read_whole(void) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static void write_whole(const char *text, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

static void test_round_trip(void **state) {
    (void)state;
    const rft_machine saved = example();
    rft_machine loaded = {.struct_size = sizeof loaded};
    rft_error err = {0};
    assert_int_equal(rft_machine_save(&saved, path, &err), RFT_OK);
    assert_int_equal(rft_machine_load(path, &loaded, &err), RFT_OK);
    assert_memory_equal(&saved, &loaded, sizeof saved);
}

static void test_text_is_readable(void **state) {
    (void)state;
    rft_machine m = example();
    m.levels[0].read_gbps[1] = 484.25;
    m.peaks[1].gflops[1] = 175.0;
    assert_int_equal(rft_machine_save(&m, path, NULL), RFT_OK);
    char *text = read_whole();
    assert_non_null(strstr(text, "\"rooftile_profile\": 1"));
    assert_non_null(strstr(text, " 32.6\n"));
    assert_int_equal(text[strlen(text) - 1], '\n');
    free(text);
}

/* The saved example with the first `from` replaced by `to`. */
static rft_status load_damaged(const char *from, const char *to, rft_error *err) {
    const rft_machine m = example();
    assert_int_equal(rft_machine_save(&m, path, NULL), RFT_OK);
    char *text = read_whole(), *at = strstr(text, from);
    assert_non_null(at);
    char *damaged = calloc(1, strlen(text) + strlen(to) + 1);
    assert_non_null(damaged);
    memcpy(damaged, text, (size_t)(at - text));
    strcat(strcat(damaged, to), at + strlen(from));
    write_whole(damaged, strlen(damaged));
    free(text);
    free(damaged);
    rft_machine loaded = {.struct_size = sizeof loaded};
    *err = (rft_error){0};
    return rft_machine_load(path, &loaded, err);
}

static void test_damage_is_named(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *says;
    } damages[] = {
        {"\"rooftile_profile\": 1", "\"rooftile_profile\": 2", "rooftile_profile = 2: version 1"},
        {"\"rooftile_profile\": 1,", "", "rooftile_profile is missing"},
        {"\"date\": ", "\"when\": ", "date is missing"},
        {"\"cpu\"", "7", "device = 7"},
        {"\"cpu\"", "\"\"", "device"},
        {"\"cpu\"", "\"c\\u0007u\"", "device"},
        {"\"cpu\"", "\"c\\u0000u\"", "line"},
        {"\"cpu\"", "\"c\xffu\"", "line"},
        {"\"cpu\"", "\"a device name of more than fifteen bytes\"", "device = \"a device name"},
        {"\"measured\"", "\"guessed\"", "source = \"guessed\""},
        {"\"fma_f32\"", "\"an op of more than fifteen bytes\"", "peaks[0].op"},
        {"\"type\": \"bf16\"", "\"type\": \"bf17\"", "peaks[1].type = \"bf17\""},
        {"\"type\": \"bf16\"", "\"type\": null", "peaks[1].type = null"},
        {"\"bytes\": 16384", "\"bytes\": -1", "levels[0].bytes = -1"},
        {"\"bytes\": 16384", "\"bytes\": 0.5", "levels[0].bytes = 0.5"},
        {"\"bytes\": 16384", "\"bytes\": 9223372036854775808", "line"},
        {"178.0", "-178.0", "peaks[0].gflops[0] = -178"},
        {"178.0", "1e300", "peaks[0].gflops[0] = 1e+300"},
        {"178.0", "1e999", "line"},
        {"178.0", "NaN", "line"},
        {"178.0", "\"fast\"", "peaks[0].gflops = \"fast\""},
        {"178.0", "178.0, 1", "peaks[0].gflops: 3 entries"},
        {"\"threads\": [\n    1,", "\"threads\": [\n    2,", "threads[1] = 2"},
        {"\"threads\": [\n    1,", "\"threads\": [\n    0,", "threads[0] = 0"},
        {"\"threads\": [\n    1,", "\"threads\": [\n    -1,", "threads = -1"},
        {"\"threads\": [\n    1,", "\"threads\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,", "threads: 17 entries, 1 to 16"},
        {"\"threads\": [", "\"threads\": {}, \"more\": [", "threads = an object"},
        {"\"levels\": [", "\"levels\": [], \"more\": [", "levels: 0 entries, 1 to 6"},
        {"\"levels\": [", "\"levels\": [{},{},{},{},{},{},", "levels: 8 entries"},
        {"\"levels\": [", "\"levels\": [5,", "levels = 5"},
        {"\"isa\"", "\"name\": \"again\", \"isa\"", "duplicate"},
        {"Some CPU", "Some \\u001b[31m", "name must be text without control characters"},
        {"Some CPU", "Some \\u009b31m", "name must be text without control characters"},
        {"{", "", "line"},
        {"{", "[[[[[{", "line"},
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        rft_error err;
        assert_int_equal(load_damaged(damages[i].from, damages[i].to, &err), RFT_E_IO);
        assert_int_equal(err.status, RFT_E_IO);
        if (strstr(err.message, damages[i].says) == NULL || strstr(err.message, path) == NULL) {
            fail_msg("%s -> %s says: %s", damages[i].from, damages[i].to, err.message);
        }
    }
}

static void test_unknown_key_is_skipped(void **state) {
    (void)state;
    rft_error err;
    assert_int_equal(load_damaged("\"date\"", "\"comment\": {\"by\": [1, null]}, \"date\"", &err), RFT_OK);
    assert_int_equal(load_damaged("178.0", "178", &err), RFT_OK);
}

/* No prefix of a profile is a profile, and none crashes the reader. */
static void test_truncation(void **state) {
    (void)state;
    const rft_machine m = example();
    assert_int_equal(rft_machine_save(&m, path, NULL), RFT_OK);
    char *text = read_whole();
    for (size_t size = 0; size + 2 < strlen(text); size++) {
        rft_machine loaded;
        assert_int_equal(rft__machine_parse(text, size, "test", &loaded, NULL), RFT_E_IO);
    }
    free(text);
}

static void test_files(void **state) {
    (void)state;
    rft_machine m = {.struct_size = sizeof m};
    rft_error err = {0};
    assert_int_equal(rft_machine_load("/nonexistent/profile.json", &m, &err), RFT_E_IO);
    assert_int_not_equal(err.native, 0);
    assert_int_equal(rft_machine_load(folder, &m, &err), RFT_E_IO);
    char *big = malloc((1 << 20) + 1);
    assert_non_null(big);
    memset(big, ' ', (1 << 20) + 1);
    write_whole(big, (1 << 20) + 1);
    free(big);
    assert_int_equal(rft_machine_load(path, &m, &err), RFT_E_IO);
    assert_non_null(strstr(err.message, "1048577"));
    write_whole("", 0);
    assert_int_equal(rft_machine_load(path, &m, &err), RFT_E_IO);
    write_whole("[1]", 3);
    assert_int_equal(rft_machine_load(path, &m, &err), RFT_E_IO);
    assert_non_null(strstr(err.message, "a profile is a JSON object"));
}

static void test_arguments(void **state) {
    (void)state;
    rft_machine m = example();
    rft_error err = {0};
    assert_int_equal(rft_machine_load(NULL, &m, &err), RFT_E_ARG);
    assert_int_equal(rft_machine_load(path, NULL, &err), RFT_E_ARG);
    assert_int_equal(rft_machine_save(NULL, path, &err), RFT_E_ARG);
    assert_int_equal(rft_machine_save(&m, NULL, &err), RFT_E_ARG);
    m.struct_size = 0;
    assert_int_equal(rft_machine_save(&m, path, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "struct_size = 0"));
    m = example();
    m.levels[1].read_gbps[0] = NAN;
    assert_int_equal(rft_machine_save(&m, path, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "levels[1].read_gbps[0]"));
    m = example();
    memset(m.name, 'x', sizeof m.name);
    assert_int_equal(rft_machine_save(&m, path, &err), RFT_E_ARG);
    m = example();
    m.n_peaks = 33;
    assert_int_equal(rft_machine_save(&m, path, &err), RFT_E_ARG);
    m = example();
    strcpy(m.name, "not \xff UTF-8");
    assert_int_equal(rft_machine_save(&m, path, &err), RFT_E_ARG);
    m = example();
    m.levels[0].bytes = (uint64_t)INT64_MAX + 1;
    assert_int_equal(rft_machine_save(&m, path, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "levels[0].bytes = 9223372036854775808: at most 2^63 - 1"));
    m = example();
    m.peaks[1].type = (rft_type)999;
    assert_int_equal(rft_machine_save(&m, path, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "peaks[1].type = 999 is not an rft_type"));
    m = example();
    m.launch_us = -1;
    assert_int_equal(rft_machine_save(&m, path, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "launch_us = -1: a number from 0"));
}

/* A failed save leaves the profile that was there. */
static void test_save_is_atomic(void **state) {
    (void)state;
    rft_machine m = example(), loaded = {.struct_size = sizeof loaded};
    assert_int_equal(rft_machine_save(&m, path, NULL), RFT_OK);
    m.n_levels = 0;
    assert_int_equal(rft_machine_save(&m, path, NULL), RFT_E_ARG);
    assert_int_equal(rft_machine_load(path, &loaded, NULL), RFT_OK);
    assert_int_equal(loaded.n_levels, 2);
    assert_int_equal(rft_machine_save(&loaded, "/proc/no/such/place", NULL), RFT_E_IO);
}

/* A program built against a shorter struct gets what it knows and nothing beyond. */
static void test_short_struct(void **state) {
    (void)state;
    const rft_machine saved = example();
    assert_int_equal(rft_machine_save(&saved, path, NULL), RFT_OK);
    rft_machine loaded;
    memset(&loaded, 0x5a, sizeof loaded);
    loaded.struct_size = offsetof(rft_machine, levels);
    assert_int_equal(rft_machine_load(path, &loaded, NULL), RFT_OK);
    assert_string_equal(loaded.name, saved.name);
    assert_int_equal(loaded.levels[0].name[0], 0x5a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_text_is_readable),
        cmocka_unit_test(test_damage_is_named), cmocka_unit_test(test_unknown_key_is_skipped),
        cmocka_unit_test(test_truncation),      cmocka_unit_test(test_files),
        cmocka_unit_test(test_arguments),       cmocka_unit_test(test_save_is_atomic),
        cmocka_unit_test(test_short_struct),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
