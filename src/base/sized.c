/* SPDX-License-Identifier: Apache-2.0
 *
 * sized.c - copies between a caller's version of a struct and ours. See sized.h.
 */
#include "base/sized.h"

#include "base/error.h"

#include <string.h>

/* No struct of ours will outgrow it; a larger size is memory that was never initialised, and its tail must not be read. */
#define MAX_STRUCT_SIZE 65536u

/* Each of these structs holds a pointer or a number of 8 bytes, so any version's sizeof is a multiple of a pointer's size. No
 * such size cuts a number in two. */
static uint32_t size_of(const void *given) {
    uint32_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

rft_status rft__sized_check(const void *given, const char *name, rft_error *err) {
    if (given == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", name);
    }
    const uint32_t size = size_of(given);
    if (size == 0 || size % sizeof(void *) != 0 || size > MAX_STRUCT_SIZE) {
        RFT_FAIL(err, RFT_E_ARG, "%s.struct_size = %u is no size of this struct; set it to sizeof", name, size);
    }
    return RFT_OK;
}

rft_status rft__sized_read(void *own, size_t own_size, const void *given, const char *name, rft_error *err) {
    RFT_TRY(rft__sized_check(given, name, err));
    const size_t size = size_of(given);
    const unsigned char *bytes = given;
    for (size_t i = own_size; i < size; i++) {
        if (bytes[i] != 0) {
            RFT_FAIL(err, RFT_E_ARG, "%s.struct_size = %zu: the byte at %zu, which this library does not know, is not zero", name,
                     size, i);
        }
    }
    memset(own, 0, own_size);
    memcpy(own, given, size < own_size ? size : own_size);
    return RFT_OK;
}

void rft__sized_write(void *given, const void *own, size_t own_size) {
    const uint32_t size = size_of(given);
    memset(given, 0, size);
    memcpy(given, own, size < own_size ? size : own_size);
    memcpy(given, &size, sizeof size);
}
