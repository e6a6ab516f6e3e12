/* SPDX-License-Identifier: Apache-2.0
 *
 * test_files.h - files in the folder of a test program, made whole or the test fails. Included behind cmocka.h.
 */
#ifndef RFT_TESTS_TEST_FILES_H
#define RFT_TESTS_TEST_FILES_H

#include "test_folder.h"

#include <string.h>

static inline void write_file(const char *name, const void *bytes, size_t size) {
    FILE *out = fopen(in_folder(name), "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

static inline void write_text(const char *name, const char *text) { write_file(name, text, strlen(text)); }

#endif
