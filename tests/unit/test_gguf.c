/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gguf.c - the GGUF container: what a sound file yields, and that every unsound field is refused with its numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gguf.h"
#include "gguf_builder.h"
#include "meter.h"

#include <stdlib.h>

static builder file;

/* Parses a copy of exactly `size` bytes, so that a sanitizer sees any read past them. */
static rft_status parse_copy(size_t size, rft__gguf *g, rft_error *err) {
    const rft__allocator a = rft__allocator_default();
    unsigned char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, file.bytes, size);
    *err = (rft_error){0};
    const rft_status status = rft__gguf_parse(&a, copy, size, g, err);
    if (status == RFT_OK) {
        rft__gguf_free(g);
    }
    free(copy);
    return status;
}

static void assert_refused(rft_status want, const char *part) {
    rft__gguf g;
    rft_error err;
    const rft_status got = parse_copy(file.size, &g, &err);
    if (got != want || err.status != want || !strstr(err.message, part)) {
        fail_msg("status %d, message '%s'; expected status %d and '%s'", got, err.message, want, part);
    }
}

static void one_q4_0_tensor(uint64_t keys) { begin_file(&file, 1, keys); }

static void end_one_tensor(uint64_t k, uint64_t n) {
    put_tensor(&file, "w", 2, k, n, k / 32 * 18 * n);
    end_file(&file);
}

/* ---- sound files ---- */

static void sound_file_is_read(void **state) {
    (void)state;
    const rft__allocator a = rft__allocator_default();
    rft__gguf g;
    rft_error err;
    begin_file(&file, 2, 2);
    put_u32_key(&file, "b", 7);
    put_string_key(&file, "a", "text\n");
    put_tensor(&file, "weight", 2, 64, 3, 108);
    put_tensor(&file, "bias", 0, 5, 0, 20);
    end_file(&file);
    assert_int_equal(rft__gguf_parse(&a, file.bytes, file.size, &g, &err), RFT_OK);
    const int64_t bias = rft__tensors_find(&g.tensors, "bias");
    assert_int_equal(bias, 1);
    assert_int_equal(rft__tensors_find(&g.tensors, "weight"), 0);
    assert_int_equal(rft__tensors_find(&g.tensors, "absent"), -1);
    assert_int_equal(g.tensors.list[0].bytes, 108);
    assert_int_equal(g.tensors.list[0].dims[1], 3);
    assert_int_equal(g.tensors.list[1].rows, 1);
    assert_ptr_equal(g.tensors.list[1].data, file.bytes + file.size - 32);
    char text[8];
    int64_t value = -1;
    assert_int_equal(rft__gguf_string(&g, "a", text, sizeof text, &err), RFT_OK);
    assert_string_equal(text, "text?");
    assert_int_equal(rft__gguf_string(&g, "a", text, 3, &err), RFT_OK);
    assert_string_equal(text, "te");
    assert_int_equal(rft__gguf_integer(&g, "b", true, 0, 10, &value, &err), RFT_OK);
    assert_int_equal(value, 7);
    rft__gguf_free(&g);
}

static rft_status integer_of(uint32_t type, uint64_t raw, unsigned bytes, int64_t *out, rft_error *err) {
    const rft__allocator a = rft__allocator_default();
    rft__gguf g;
    begin_file(&file, 0, 1);
    put_string(&file, "i");
    put(&file, type, 4);
    put(&file, raw, bytes);
    assert_int_equal(rft__gguf_parse(&a, file.bytes, file.size, &g, err), RFT_OK);
    const rft_status status = rft__gguf_integer(&g, "i", true, 0, INT64_MAX, out, err);
    rft__gguf_free(&g);
    return status;
}

static void integers_of_all_widths(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        unsigned bytes;
        bool is_signed;
    } rows[] = {
        {GGUF_U8, 1, false},  {GGUF_I8, 1, true},  {GGUF_U16, 2, false}, {GGUF_I16, 2, true},
        {GGUF_U32, 4, false}, {GGUF_I32, 4, true}, {GGUF_U64, 8, false}, {GGUF_I64, 8, true},
    };
    rft_error err;
    int64_t value;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool fits = !rows[i].is_signed && rows[i].bytes < 8;
        assert_int_equal(integer_of(rows[i].type, 100, rows[i].bytes, &value, &err), RFT_OK);
        assert_int_equal(value, 100);
        assert_int_equal(integer_of(rows[i].type, UINT64_MAX, rows[i].bytes, &value, &err), fits ? RFT_OK : RFT_E_ARG);
    }
    assert_int_equal(integer_of(GGUF_F32, 0, 4, &value, &err), RFT_E_UNSUPPORTED);
    assert_int_equal(integer_of(GGUF_BOOL, 1, 1, &value, &err), RFT_E_UNSUPPORTED);
}

static void arrays_are_skipped(void **state) {
    (void)state;
    const rft__allocator a = rft__allocator_default();
    rft__gguf g;
    rft_error err;
    int64_t value = -1;
    begin_file(&file, 0, 3);
    put_string(&file, "tokens");
    put(&file, GGUF_ARRAY, 4), put(&file, GGUF_STRING, 4), put(&file, 2, 8);
    put_string(&file, "one"), put_string(&file, "");
    put_string(&file, "scores");
    put(&file, GGUF_ARRAY, 4), put(&file, GGUF_F32, 4), put(&file, 2, 8), put(&file, 0, 8);
    put_u32_key(&file, "last", 5);
    assert_int_equal(rft__gguf_parse(&a, file.bytes, file.size, &g, &err), RFT_OK);
    assert_int_equal(rft__gguf_integer(&g, "last", true, 0, 9, &value, &err), RFT_OK);
    assert_int_equal(value, 5);
    assert_int_equal(rft__gguf_integer(&g, "scores", true, 0, 9, &value, &err), RFT_E_UNSUPPORTED);
    rft__gguf_free(&g);
}

/* ---- unsound files ---- */

static void truncation_at_every_byte(void **state) {
    (void)state;
    rft__gguf g;
    rft_error err;
    tiny_model(&file, &(tiny_options){.biases = true});
    file.size -= file.data_bytes;
    const size_t header = file.size;
    for (size_t size = 0; size < header; size++) {
        assert_int_not_equal(parse_copy(size, &g, &err), RFT_OK);
        assert_true(err.message[0] != 0);
    }
    assert_int_not_equal(parse_copy(header + file.data_bytes - 1, &g, &err), RFT_OK);
    assert_int_equal(parse_copy(header + file.data_bytes, &g, &err), RFT_OK);
}

/* Whatever a byte is changed to, the parser must end with an answer; sanitizers watch it. */
static void any_byte_may_lie(void **state) {
    (void)state;
    static const unsigned char lies[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    rft__gguf g;
    rft_error err;
    begin_file(&file, 2, 2);
    put_u32_key(&file, "general.alignment", 32);
    put_string_key(&file, "a", "text");
    put_tensor(&file, "weight", 2, 64, 3, 108);
    put_tensor(&file, "bias", 0, 5, 0, 20);
    end_file(&file);
    for (size_t at = 0; at < file.size; at++) {
        const unsigned char truth = file.bytes[at];
        for (size_t i = 0; i < sizeof lies; i++) {
            file.bytes[at] = lies[i];
            parse_copy(file.size, &g, &err);
        }
        file.bytes[at] = truth;
    }
    assert_int_equal(parse_copy(file.size, &g, &err), RFT_OK);
}

static void bad_heads(void **state) {
    (void)state;
    begin_file(&file, 0, 0);
    file.bytes[3] = 'g';
    assert_refused(RFT_E_ARG, "begin with GGUF");
    begin_file(&file, 0, 0);
    file.bytes[4] = 2;
    assert_refused(RFT_E_UNSUPPORTED, "version = 2");
    file.bytes[4] = 0, file.bytes[7] = 3;
    assert_refused(RFT_E_UNSUPPORTED, "big-endian");
    begin_file(&file, UINT64_C(1) << 63, 0);
    assert_refused(RFT_E_ARG, "the file ends at 24");
    begin_file(&file, 0, UINT64_MAX);
    assert_refused(RFT_E_ARG, "the file ends at 24");
}

static void bad_keys(void **state) {
    (void)state;
    begin_file(&file, 0, 1);
    put(&file, UINT64_C(1) << 63, 8);
    assert_refused(RFT_E_ARG, "a key needs 9223372036854775808 bytes at offset 32");
    begin_file(&file, 0, 1);
    put_string(&file, "k");
    put(&file, 13, 4);
    assert_refused(RFT_E_ARG, "value type = 13");
    begin_file(&file, 0, 1);
    put_u32_key(&file, "new\nline", 0);
    assert_refused(RFT_E_ARG, "control characters");
    begin_file(&file, 0, 1);
    put_u32_key(&file, "\xc2\x9b" "0m", 0);
    assert_refused(RFT_E_ARG, "control characters");
    begin_file(&file, 0, 2);
    put_u32_key(&file, "twice", 0);
    put_string_key(&file, "twice", "");
    assert_refused(RFT_E_ARG, "'twice' occurs twice");
    begin_file(&file, 0, 1);
    put_string(&file, "k");
    put(&file, GGUF_STRING, 4), put(&file, UINT64_MAX, 8);
    assert_refused(RFT_E_ARG, "a string needs 18446744073709551615 bytes");
}

static void begin_array(uint32_t type, uint64_t count) {
    begin_file(&file, 0, 1);
    put_string(&file, "k");
    put(&file, GGUF_ARRAY, 4), put(&file, type, 4), put(&file, count, 8);
}

static void bad_arrays(void **state) {
    (void)state;
    begin_array(GGUF_ARRAY, 1);
    assert_refused(RFT_E_ARG, "one level is allowed");
    begin_array(99, 1);
    assert_refused(RFT_E_ARG, "value type = 99");
    begin_array(GGUF_U64, UINT64_C(1) << 61); /* the product is 2^64 */
    assert_refused(RFT_E_ARG, "an array claims 2305843009213693952 elements of 8 bytes");
    begin_array(GGUF_STRING, UINT64_C(1) << 63);
    assert_refused(RFT_E_ARG, "an array claims");
    begin_array(GGUF_STRING, 1);
    put(&file, 1, 8);
    assert_refused(RFT_E_ARG, "a string in an array needs 1 bytes");
}

static void begin_tensor(const char *name, uint32_t n_dims, uint64_t k, uint64_t n) {
    begin_file(&file, 1, 0);
    put_string(&file, name);
    put(&file, n_dims, 4), put(&file, k, 8), put(&file, n, 8);
}

static void end_tensor(uint32_t type, uint64_t offset) {
    put(&file, type, 4), put(&file, offset, 8);
    file.size = (file.size + 31) / 32 * 32 + 128;
}

static void bad_tensors(void **state) {
    (void)state;
    char name[66];
    memset(name, 'n', sizeof name - 1);
    name[64] = 0;
    begin_tensor(name, 2, 8, 4), end_tensor(0, 0);
    assert_refused(RFT_E_ARG, "name of 64 bytes");
    begin_tensor("", 2, 8, 4), end_tensor(0, 0);
    assert_refused(RFT_E_ARG, "the tensor name of 0 bytes before offset 32 is empty");
    begin_tensor("w", 5, 8, 4), end_tensor(0, 0);
    assert_refused(RFT_E_ARG, "5 dimensions");
    begin_tensor("w", 2, 8, 0), end_tensor(0, 0);
    assert_refused(RFT_E_ARG, "dimension 1 of tensor 'w' is 0");
    begin_tensor("w", 2, UINT64_C(1) << 63, 1), end_tensor(0, 0);
    assert_refused(RFT_E_ARG, "dimension 0 of tensor 'w' is 9223372036854775808");
    begin_tensor("w", 2, INT64_MAX, INT64_MAX), end_tensor(0, 0);
    assert_refused(RFT_E_ARG, "tensor 'w' of 9223372036854775807 rows of 9223372036854775807 f32 is too large");
    for (size_t cut = 1; cut <= 32; cut++) { /* within its dimensions, its type or its offset */
        begin_tensor("w", 2, 8, 4);
        put(&file, 0, 4), put(&file, 0, 8);
        file.size -= cut;
        assert_refused(RFT_E_ARG, cut <= 8    ? "tensor 'w': an offset needs 8 bytes"
                                  : cut <= 12 ? "tensor 'w': a type needs 4 bytes"
                                  : cut <= 28 ? "tensor 'w': a dimension needs 8 bytes"
                                              : "tensor 'w': a dimension count needs 4 bytes");
    }
    begin_tensor("w", 2, 8, 4), end_tensor(43, 0);
    assert_refused(RFT_E_UNSUPPORTED, "'w' has type 43");
    begin_tensor("w", 2, 8, 4), end_tensor(2, 0);
    assert_refused(RFT_E_ARG, "not a multiple of 32, the block of q4_0");
}

static void bad_places(void **state) {
    (void)state;
    begin_tensor("w", 2, 8, 4), end_tensor(0, 0); /* 128 bytes: fits */
    rft__gguf g;
    rft_error err;
    assert_int_equal(parse_copy(file.size, &g, &err), RFT_OK);
    begin_tensor("w", 2, 8, 4), end_tensor(0, 32);
    assert_refused(RFT_E_ARG, "ends past the 128 bytes of data");
    begin_tensor("w", 2, 8, 4), end_tensor(0, 8);
    assert_refused(RFT_E_ARG, "not a multiple of the alignment 32");
    begin_tensor("w", 2, 8, 4), end_tensor(0, UINT64_MAX - 31);
    assert_refused(RFT_E_ARG, "ends past");
    begin_file(&file, 2, 0);
    put_tensor(&file, "a", 0, 64, 0, 256);
    file.data_bytes = 32;
    put_tensor(&file, "b", 0, 64, 0, 256);
    end_file(&file);
    assert_refused(RFT_E_ARG, "'b' at offset 32 starts before the end 256");
    begin_file(&file, 2, 0);
    put_tensor(&file, "a", 0, 64, 0, 256);
    put_tensor(&file, "a", 0, 64, 0, 256);
    end_file(&file);
    assert_refused(RFT_E_ARG, "'a' occurs twice");
}

static void alignment_is_a_power_of_two(void **state) {
    (void)state;
    static const struct {
        uint32_t value;
        bool good;
    } rows[] = {{8, true}, {32, true}, {0, false}, {4, false}, {48, false}, {0x80000000u, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rft__gguf g;
        rft_error err;
        one_q4_0_tensor(1);
        put_u32_key(&file, "general.alignment", rows[i].value);
        end_one_tensor(64, 2);
        assert_int_equal(parse_copy(file.size, &g, &err), rows[i].good ? RFT_OK : RFT_E_ARG);
    }
    one_q4_0_tensor(1);
    put_string_key(&file, "general.alignment", "32");
    end_one_tensor(64, 2);
    assert_refused(RFT_E_UNSUPPORTED, "general.alignment");
}

/* ---- memory ---- */

static void memory_follows_the_file(void **state) {
    (void)state;
    meter m = {0};
    const rft__allocator a = {meter_alloc, meter_release, &m, false};
    rft__gguf g;
    rft_error err;
    tiny_model(&file, &(tiny_options){0});
    assert_int_equal(rft__gguf_parse(&a, file.bytes, file.size, &g, &err), RFT_OK);
    assert_true(m.peak < 8 * (file.size - file.data_bytes));
    rft__gguf_free(&g);
    assert_int_equal(m.live, 0);
    m.peak = 0;
    begin_file(&file, 1000000, 1000000); /* lies */
    file.size += 4096;
    assert_int_not_equal(rft__gguf_parse(&a, file.bytes, file.size, &g, &err), RFT_OK);
    assert_int_equal(m.peak, 0);
}

static void failing_allocations(void **state) {
    (void)state;
    tiny_model(&file, &(tiny_options){0});
    for (size_t at = 1; at <= 3; at++) {
        meter m = {.fail_at = at};
        const rft__allocator a = {meter_alloc, meter_release, &m, false};
        rft__gguf g;
        rft_error err;
        assert_int_equal(rft__gguf_parse(&a, file.bytes, file.size, &g, &err), RFT_E_NOMEM);
        assert_int_equal(m.live, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_file_is_read),
        cmocka_unit_test(integers_of_all_widths),
        cmocka_unit_test(arrays_are_skipped),
        cmocka_unit_test(truncation_at_every_byte),
        cmocka_unit_test(any_byte_may_lie),
        cmocka_unit_test(bad_heads),
        cmocka_unit_test(bad_keys),
        cmocka_unit_test(bad_arrays),
        cmocka_unit_test(bad_tensors),
        cmocka_unit_test(bad_places),
        cmocka_unit_test(alignment_is_a_power_of_two),
        cmocka_unit_test(memory_follows_the_file),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
