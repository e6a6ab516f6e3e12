/* SPDX-License-Identifier: Apache-2.0
 *
 * test_wire.c - fields of Protocol Buffers: every kind, and every way in which bytes can lie about them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire.h"

#include <string.h>

static rft_error err;

static rft__wire over(const void *bytes, size_t size) {
    err = (rft_error){0};
    return (rft__wire){.bytes = bytes, .size = size, .file = bytes, .err = &err};
}

static void every_kind_is_read(void **state) {
    (void)state;
    static const unsigned char bytes[] = {0x08, 0xac, 0x02, 0x11, 1, 0, 0, 0, 0, 0, 0, 0x80, 0x1a, 2, 'a', 'b', 0x25, 1, 2, 3, 4,
                                          0xfa, 0xff, 0xff, 0xff, 0x0f, 0};
    rft__wire w = over(bytes, sizeof bytes);
    rft__field f;
    assert_true(rft__wire_more(&w));
    assert_int_equal(rft__wire_next(&w, &f), RFT_OK);
    assert_true(f.number == 1 && f.kind == RFT_WIRE_VARINT && f.value == 300);
    assert_int_equal(rft__wire_next(&w, &f), RFT_OK);
    assert_true(f.number == 2 && f.kind == RFT_WIRE_FIXED64 && f.value == 0x8000000000000001u);
    assert_int_equal(rft__wire_next(&w, &f), RFT_OK);
    assert_true(f.number == 3 && f.kind == RFT_WIRE_BYTES && rft__span_is(f.bytes, "ab") && !rft__span_is(f.bytes, "abc"));
    assert_int_equal(rft__wire_next(&w, &f), RFT_OK);
    assert_true(f.number == 4 && f.kind == RFT_WIRE_FIXED32 && f.value == 0x04030201);
    assert_int_equal(rft__wire_next(&w, &f), RFT_OK);
    assert_true(f.number == (1u << 29) - 1 && f.kind == RFT_WIRE_BYTES && f.bytes.size == 0);
    assert_false(rft__wire_more(&w));
}

static void lies_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *says;
    } lies[] = {
        {"\x08", 1, "the number at offset 1 does not end"},
        {"\x08\x80\x80", 3, "the number at offset 1 does not end within its message of 3 bytes and 64 bits"},
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "does not end"}, /* bit 64 */
        {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12, "does not end"},
        {"\x12\x05" "abcd", 6, "a field at offset 2 claims 5 bytes, but its message ends after 4"},
        {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "claims 18446744073709551615 bytes"},
        {"\x11\x01\x02\x03", 4, "a field at offset 1 claims 8 bytes"},
        {"\x25\x01\x02\x03", 4, "a field at offset 1 claims 4 bytes"},
        {"\x02\x00", 2, "the tag 0x2 at offset 0 has no field number"},
        {"\x82\x80\x80\x80\x10\x00", 6, "has no field number in 1..536870911"},
        {"\x0b", 1, "field 1 at offset 0 has wire type 3, which is not used"},
        {"\x0f", 1, "has wire type 7"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        rft__wire w = over(lies[i].bytes, lies[i].size);
        rft__field f;
            if (rft__wire_next(&w, &f) != RFT_E_ARG || !strstr(err.message, lies[i].says)) {
            fail_msg("%zu: '%s', not '%s'", i, err.message, lies[i].says);
        }
    }
}

static void messages_end_where_they_say(void **state) {
    (void)state;
    static const unsigned char bytes[] = {0x12, 2, 0x08, 0x85, 0x01};
    rft__wire w = over(bytes, sizeof bytes);
    rft__field f;
    assert_int_equal(rft__wire_next(&w, &f), RFT_OK);
    rft__wire inner = rft__wire_open(&w, f.bytes);
    assert_int_equal(rft__wire_next(&inner, &f), RFT_E_ARG); /* its number would end behind it */
    assert_non_null(strstr(err.message, "offset 3"));
    const rft__field number = {.number = 5, .kind = RFT_WIRE_VARINT};
    assert_int_equal(rft__wire_expect(&w, &number, RFT_WIRE_BYTES, "a name"), RFT_E_ARG);
    assert_non_null(strstr(err.message, "a name (field 5) before offset 4 has wire type 0, not 2"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_read),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(messages_end_where_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
