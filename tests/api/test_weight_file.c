/* SPDX-License-Identifier: Apache-2.0
 *
 * test_weight_file.c - a packed weight goes through a file and comes back the same; a damaged header never opens.
 */
#define _GNU_SOURCE 1
#include "api_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEADER = 128 };

static rft_ctx *ctx;
static float matrix[TEST_N * TEST_K], back[TEST_N * TEST_K];
static rft_test_packed packed;

static int make_all(void **state) {
    (void)state;
    const rft_ctx_options o = rft_test_options(NULL);
    OK(rft_ctx_create("cpu", &o, &ctx, &test_err));
    rft_weight_desc d = rft_test_weight_desc();
    rft_test_fill(matrix, TEST_N * TEST_K, 3);
    packed = rft_test_pack(ctx, &d, matrix);
    return 0;
}

static int free_all(void **state) {
    (void)state;
    rft_test_unpack(&packed);
    rft_ctx_free(ctx);
    return 0;
}

static void assert_holds_matrix(const rft_weight *w) {
    memset(back, 0xff, sizeof back);
    OK(rft_weight_unpack(w, back, 0, &test_err));
    assert_memory_equal(back, matrix, sizeof matrix);
}

static int write_file(const char *path) {
    const int fd = open(path, O_CREAT | O_RDWR | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, packed.storage, packed.bytes), (ssize_t)packed.bytes);
    return fd;
}

static void test_a_mapped_file_is_a_weight(void **state) {
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/rft_test_weight_%ld", (long)getpid());
    const int fd = write_file(path);
    void *const map = mmap(NULL, packed.bytes, PROT_READ, MAP_PRIVATE, fd, 0); /* opening writes nothing */
    assert_true(map != MAP_FAILED);
    rft_weight *w = NULL;
    OK(rft_weight_open(ctx, map, packed.bytes, &w, &test_err));
    assert_holds_matrix(w);
    rft_weight_free(w);
    munmap(map, packed.bytes);
    close(fd);
    unlink(path);
}

static void test_packing_twice_gives_the_same_bytes(void **state) {
    (void)state;
    const rft_weight_desc d = rft_test_weight_desc();
    rft_test_packed again = rft_test_pack(ctx, &d, matrix);
    assert_int_equal(again.bytes, packed.bytes);
    assert_memory_equal(again.storage, packed.storage, packed.bytes);
    rft_test_unpack(&again);
}

static void test_strides_leave_no_trace(void **state) {
    (void)state;
    static float transposed[TEST_K * (TEST_N + 3)];
    for (int n = 0; n < TEST_N; n++) {
        for (int k = 0; k < TEST_K; k++) {
            transposed[k * (TEST_N + 3) + n] = matrix[n * TEST_K + k];
        }
    }
    rft_weight_desc d = rft_test_weight_desc();
    d.order = RFT_MN_CONTIGUOUS;
    d.ld = TEST_N + 3;
    rft_test_packed other = rft_test_pack(ctx, &d, transposed);
    assert_int_equal(other.bytes, packed.bytes);
    assert_memory_equal(other.storage, packed.storage, packed.bytes);
    rft_test_unpack(&other);
}

static void test_unpack_into_long_rows(void **state) {
    (void)state;
    enum { LD = TEST_K + 7 };
    static float wide[TEST_N * LD];
    memset(wide, 0x11, sizeof wide);
    OK(rft_weight_unpack(packed.weight, wide, LD, &test_err));
    for (int n = 0; n < TEST_N; n++) {
        assert_memory_equal(wide + n * LD, matrix + n * TEST_K, TEST_K * sizeof(float));
        for (size_t i = 0; i < 7 * sizeof(float); i++) {
            assert_int_equal(((unsigned char *)(wide + n * LD + TEST_K))[i], 0x11);
        }
    }
}

static void test_view_unpacks(void **state) {
    (void)state;
    rft_weight_desc d = rft_test_weight_desc();
    d.flags = RFT_WEIGHT_VIEW;
    rft_weight_src src = rft_weight_src_init();
    src.q = matrix;
    rft_weight *w = NULL;
    OK(rft_weight_pack(ctx, &d, &src, NULL, NULL, &w, &test_err));
    assert_holds_matrix(w);
    rft_weight_free(w);
}

/* ---- damage ---- */

static rft_status open_status(void *storage, size_t bytes) {
    rft_weight *w = NULL;
    memset(&test_err, 0, sizeof test_err);
    const rft_status status = rft_weight_open(ctx, storage, bytes, &w, &test_err);
    assert_true((status == RFT_OK) == (w != NULL));
    rft_weight_free(w);
    return status;
}

static void test_each_bit_of_the_header_counts(void **state) {
    (void)state;
    unsigned char *const s = packed.storage;
    for (int bit = 0; bit < HEADER * 8; bit++) {
        s[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(open_status(s, packed.bytes), RFT_E_LAYOUT);
        assert_true(strlen(test_err.message) > 10);
        s[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_int_equal(open_status(s, packed.bytes), RFT_OK);
}

/* The checksum as docs/formats/packed-weight.md gives it: FNV-1a of the first 120 bytes. */
static void seal(unsigned char *header) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < 120; i++) {
        h = (h ^ header[i]) * 0x100000001b3u;
    }
    memcpy(header + 120, &h, sizeof h);
}

/* A forger who knows the checksum: each field is still checked by itself. */
static void forged(size_t offset, uint64_t value, size_t bytes, const char *part) {
    unsigned char *const s = packed.storage;
    unsigned char saved[HEADER];
    memcpy(saved, s, HEADER);
    memcpy(s + offset, &value, bytes);
    seal(s);
    const rft_status status = open_status(s, packed.bytes);
    memcpy(s, saved, HEADER);
    if (status != RFT_E_LAYOUT || strstr(test_err.message, part) == NULL) {
        fail_msg("offset %zu: %s, \"%s\", wanted \"%s\"", offset, rft_status_name(status), test_err.message, part);
    }
}

static void test_each_field_is_checked(void **state) {
    (void)state;
    forged(0, 'X', 1, "RFTWGT01");
    forged(8, 2, 4, "version = 2");
    forged(12, 64, 4, "header_bytes = 64");
    forged(16, 0, 8, "layout = 0x0");
    forged(16, 12345, 8, "layout = 0x3039");
    forged(24, (uint64_t)-1, 8, "n = -1");
    forged(24, INT64_MAX, 8, "overflow");
    forged(24, TEST_N * 4, 8, "data_bytes");
    forged(32, (uint64_t)INT64_MIN, 8, "k = -9223372036854775808");
    forged(32, INT64_MAX / 2, 8, "overflow");
    forged(40, 0, 8, "batch = 0");
    forged(40, (uint64_t)-5, 8, "batch = -5");
    forged(40, 1u << 30, 8, "data_bytes");
    forged(48, 0, 4, "elem = 0");
    forged(48, 0xffffffff, 4, "elem = -1");
    forged(52, 3, 4, "glu = 3");
    forged(56, 1, 8, "data_bytes = 1");
    forged(56, UINT64_MAX, 8, "data_bytes = 18446744073709551615");
    forged(64, 1, 4, "scale");
    forged(68, 7, 4, "zero");
    forged(80, 32, 8, "group_k");
    forged(88, 1, 4, "flags = 0x8");
    forged(88, 3, 4, "global = 3");
    forged(92, 1, 4, "flags = 0x20");
    forged(92, 2, 4, "sorted = 2");
    forged(96, 1, 8, "reserved[0]");
    forged(112, 1, 8, "reserved[2]");
}

static void test_odd_glu_header(void **state) {
    (void)state;
    unsigned char saved[HEADER];
    memcpy(saved, packed.storage, HEADER);
    const uint32_t glu = 1;
    memcpy((unsigned char *)packed.storage + 52, &glu, sizeof glu);
    forged(24, 47, 8, "n = 47 is odd");
    memcpy(packed.storage, saved, HEADER);
}

static void test_short_storage(void **state) {
    (void)state;
    assert_int_equal(open_status(packed.storage, packed.bytes - 1), RFT_E_LAYOUT);
    assert_non_null(strstr(test_err.message, "bytes = "));
    assert_int_equal(open_status(packed.storage, HEADER), RFT_E_LAYOUT);
    assert_int_equal(open_status(packed.storage, 0), RFT_E_LAYOUT);
}

/* Damaged numbers are numbers. */
static void test_damaged_data_runs(void **state) {
    (void)state;
    const rft_weight_desc d = rft_test_weight_desc();
    rft_test_packed p = rft_test_pack(ctx, &d, matrix);
    memset((unsigned char *)p.storage + HEADER, 0xff, p.bytes - HEADER);
    OK(rft_weight_unpack(p.weight, back, 0, &test_err));
    assert_true(back[0] != back[0]);
    rft_test_unpack(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_mapped_file_is_a_weight),
        cmocka_unit_test(test_packing_twice_gives_the_same_bytes),
        cmocka_unit_test(test_strides_leave_no_trace),
        cmocka_unit_test(test_unpack_into_long_rows),
        cmocka_unit_test(test_view_unpacks),
        cmocka_unit_test(test_each_bit_of_the_header_counts),
        cmocka_unit_test(test_each_field_is_checked),
        cmocka_unit_test(test_odd_glu_header),
        cmocka_unit_test(test_short_storage),
        cmocka_unit_test(test_damaged_data_runs),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
