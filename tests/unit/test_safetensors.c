/* SPDX-License-Identifier: Apache-2.0
 *
 * test_safetensors.c - the safetensors container: what a sound file yields, that every unsound field is refused with file, tensor
 * and value, and that memory and failing allocations are no trouble.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "meter.h"
#include "safetensors.h"
#include "safetensors_builder.h"

#include <jansson.h>
#include <stdlib.h>

static st_builder file;

/* Parses a copy of exactly `size` bytes, so that a sanitizer sees any read past them. */
static rft_status parse_copy(const rft__allocator *a, size_t size, rft_error *err) {
    rft__tensors t;
    unsigned char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, file.bytes, size);
    *err = (rft_error){0};
    const rft__shard shard = {"x.safetensors", copy, size};
    const rft_status status = rft__safetensors_parse(a, &shard, 1, &t, err);
    if (status == RFT_OK) {
        rft__tensors_free(a, &t);
    } else {
        assert_true(t.list == NULL && err->message[0] != 0);
    }
    free(copy);
    return status;
}

static rft_status parse(rft_error *err) {
    const rft__allocator a = rft__allocator_default();
    return parse_copy(&a, file.size, err);
}

static void sound_file_is_read(void **state) {
    (void)state;
    const rft__allocator a = rft__allocator_default();
    rft__tensors t;
    rft_error err;
    st_begin(&file);
    st_add(&file, "w", "BF16", "[3,64]", 384);
    st_add(&file, "scalar", "F32", "[]", 4);
    st_add(&file, "empty", "F16", "[0,7]", 0);
    st_add(&file, "deep", "U8", "[2,3,4,5,6]", 720);
    st_add(&file, "half bytes", "F4", "[2,6]", 6);
    st_end(&file);
    const rft__shard shard = {"x", file.bytes, file.size};
    assert_int_equal(rft__safetensors_parse(&a, &shard, 1, &t, &err), RFT_OK);
    assert_int_equal(t.count, 5);
    const rft__tensor *w = &t.list[rft__tensors_find(&t, "w")], *deep = &t.list[rft__tensors_find(&t, "deep")];
    assert_true(w->n_dims == 2 && w->dims[0] == 64 && w->dims[1] == 3 && w->rows == 3 && w->bytes == 384);
    assert_ptr_equal(w->data, file.bytes + 8 + file.header_size);
    assert_true(deep->n_dims == 4 && deep->dims[0] == 6 && deep->dims[1] == 5 && deep->dims[2] == 4 && deep->dims[3] == 6);
    assert_true(deep->rows == 120 && deep->format->type == RFT_U8);
    const rft__tensor *scalar = &t.list[rft__tensors_find(&t, "scalar")], *empty = &t.list[rft__tensors_find(&t, "empty")];
    assert_true(scalar->n_dims == 0 && scalar->rows == 1 && scalar->dims[0] == 1);
    assert_true(empty->rows == 0 && empty->bytes == 0 && empty->dims[0] == 7);
    assert_int_equal(rft__tensors_find(&t, "absent"), -1);
    rft__tensors_free(&a, &t);
}

static void all_dtypes(void **state) {
    (void)state;
    static const struct {
        const char *dtype;
        int bits;
    } rows[] = {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
                {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
                {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
                {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};
    rft_error err;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        st_begin(&file);
        st_add(&file, "w", rows[i].dtype, "[3,8]", 3 * (size_t)rows[i].bits);
        st_end(&file);
        if (parse(&err) != RFT_OK) {
            fail_msg("%s: %s", rows[i].dtype, err.message);
        }
    }
}

/* ---- unsound files ---- */

static void bad_headers(void **state) {
    (void)state;
    static const struct {
        const char *header, *part;
        size_t data;
    } rows[] = {
        {"[]", "no object", 0},
        {"{", "JSON line 1", 0},
        {"{\"a\":{},\"a\":{}}", "duplicate", 0},
        {"{\"__metadata__\":[]}", "__metadata__ is no object", 0},
        {"{\"__metadata__\":{\"a\":1}}", "not a string", 0},
        {"{\"w\":3}", "x.safetensors: tensor 'w' is described by no object", 0},
        {"{\"\":{}}", "name of 0 bytes", 0},
        {"{\"a\\nb\":{}}", "tensor 'a?b' has a control character", 0},
        {"{\"a\\u009bb\":{}}", "tensor 'a?b' has a control character", 0},
        {"{\"w\":{\"shape\":[],\"data_offsets\":[0,4]}}", "no dtype", 4},
        {"{\"w\":{\"dtype\":7,\"shape\":[],\"data_offsets\":[0,4]}}", "no dtype", 4},
        {"{\"w\":{\"dtype\":\"F99\",\"shape\":[],\"data_offsets\":[0,4]}}", "dtype 'F99', which is not known", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", "no shape", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1,-1],\"data_offsets\":[0,4]}}", "dimension 1 = -1", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", "dimension 0", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", "17 dimensions", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,4]}}", "rows of 4 f32", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,1],\"data_offsets\":[0,4]}}", "product is over", 4},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[65536,65536,65536,65536,1,1,1],\"data_offsets\":[0,4]}}", "too large", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}", "no data_offsets", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", "no data_offsets", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", "no data_offsets", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", "[4, 0], not ascending within the 4 bytes", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "[0, 8], not ascending within the 4 bytes", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", "4 bytes at data_offsets [0, 4]", 4},
        {"{\"w\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]}}", "2 rows of 3 e2m1", 3},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", "begins at offset 4", 8},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "the tensors end at 4", 8},
        {"{\"v\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
         "offsets\":"
         "[4,8]}}",
         "tensor 'w' begins at offset 4, but the one before it ends at 8: they overlap", 8},
    };
    rft_error err;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        st_raw(&file, rows[i].header, rows[i].data);
        const rft_status got = parse(&err);
        if (got != RFT_E_ARG || !strstr(err.message, rows[i].part)) {
            fail_msg("%s: status %d, '%s'; expected '%s'", rows[i].header, got, err.message, rows[i].part);
        }
    }
}

static void bad_lengths(void **state) {
    (void)state;
    rft_error err;
    st_raw(&file, "{}", 0);
    assert_int_equal(parse(&err), RFT_OK);
    file.bytes[0] = 3;
    assert_int_equal(parse(&err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "a header of 3 bytes"));
    memset(file.bytes, 0xff, 8);
    assert_int_equal(parse(&err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "18446744073709551615"));
}

static void small_model(void) {
    st_begin(&file);
    st_add(&file, "weight", "BF16", "[3,64]", 384);
    st_add(&file, "bias", "F32", "[5]", 20);
    st_end(&file);
}

static void truncation_at_every_byte(void **state) {
    (void)state;
    const rft__allocator a = rft__allocator_default();
    rft_error err;
    small_model();
    for (size_t size = 0; size < file.size; size++) {
        assert_int_equal(parse_copy(&a, size, &err), RFT_E_ARG);
    }
    assert_int_equal(parse_copy(&a, file.size, &err), RFT_OK);
}

/* Whatever a byte is changed to, the parser must end with an answer; sanitizers watch it. */
static void any_byte_may_lie(void **state) {
    (void)state;
    static const unsigned char lies[] = {0x00, 0x01, '0', '9', '"', '}', 0x7f, 0x80, 0xff};
    rft_error err;
    small_model();
    for (size_t at = 0; at < 8 + file.header_size; at++) {
        const unsigned char truth = file.bytes[at];
        for (size_t i = 0; i < sizeof lies; i++) {
            file.bytes[at] = lies[i];
            parse(&err);
        }
        file.bytes[at] = truth;
    }
    assert_int_equal(parse(&err), RFT_OK);
}

static void names_of_two_files_differ(void **state) {
    (void)state;
    const rft__allocator a = rft__allocator_default();
    rft__tensors t;
    rft_error err;
    small_model();
    const rft__shard shards[] = {{"a", file.bytes, file.size}, {"b", file.bytes, file.size}};
    assert_int_equal(rft__safetensors_parse(&a, shards, 2, &t, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "occurs twice"));
}

static void beginnings(void **state) {
    (void)state;
    small_model();
    assert_true(rft__safetensors_begins(file.bytes, file.size));
    assert_false(rft__safetensors_begins(file.bytes, 8));
    file.bytes[7] = 1;
    assert_false(rft__safetensors_begins(file.bytes, file.size));
}

/* ---- memory ---- */

static size_t json_calls, json_fail_at;

static void *json_alloc(size_t bytes) { return ++json_calls == json_fail_at ? NULL : malloc(bytes); }

static void failing_allocations(void **state) {
    (void)state;
    rft_error err;
    small_model();
    for (size_t at = 1; at <= 4; at++) {
        meter m = {.fail_at = at};
        const rft__allocator a = {meter_alloc, meter_release, &m, false};
        assert_int_equal(parse_copy(&a, file.size, &err), RFT_E_NOMEM);
        assert_int_equal(m.live, 0);
    }
    const rft__allocator a = rft__allocator_default();
    rft_status status = RFT_E_NOMEM;
    json_set_alloc_funcs(json_alloc, free);
    for (json_fail_at = 1; status != RFT_OK && json_fail_at < 1000; json_fail_at++) {
        json_calls = 0;
        status = parse_copy(&a, file.size, &err);
        assert_true(status == RFT_OK || status == RFT_E_NOMEM || status == RFT_E_ARG);
    }
    json_set_alloc_funcs(malloc, free);
    assert_int_equal(status, RFT_OK);
    assert_true(json_fail_at > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_file_is_read),
        cmocka_unit_test(all_dtypes),
        cmocka_unit_test(bad_headers),
        cmocka_unit_test(bad_lengths),
        cmocka_unit_test(truncation_at_every_byte),
        cmocka_unit_test(any_byte_may_lie),
        cmocka_unit_test(names_of_two_files_differ),
        cmocka_unit_test(beginnings),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
