/* SPDX-License-Identifier: Apache-2.0
 *
 * info.c - what this build is and which kernels it has.
 */
#include "api/api.h"
#include "base/sized.h"
#include "base/type.h"
#include "format/format.h"
#include "plan/registry.h"
#include "rft_build_info.h"

#define STRING(x)                   #x
#define DOTTED(major, minor, patch) STRING(major) "." STRING(minor) "." STRING(patch)

int rft_version(void) { return RFT_VERSION; }

const char *rft_type_name(rft_type t) { return rft__format_name(t); }

size_t rft_type_bytes(rft_type type, int64_t k) {
    const rft__format *const f = rft__format_find(type);
    int64_t bytes = 0;
    if (f == NULL || k < 0 || k > INT64_MAX - f->block_elements ||
        rft__mul_overflows(rft__ceil_div(k, f->block_elements), f->block_bytes, &bytes)) {
        return 0;
    }
    return (size_t)bytes;
}

rft_status rft_get_build_info(rft_build_info *info) {
    RFT_TRY(rft__sized_check(info, "info", NULL));
    const rft_build_info own = {.struct_size = sizeof own,
                                .version = DOTTED(RFT_VERSION_MAJOR, RFT_VERSION_MINOR, RFT_VERSION_PATCH),
                                .commit = RFT_BUILD_COMMIT,
                                .compiler = RFT_BUILD_COMPILER,
                                .build_type = RFT_BUILD_TYPE,
                                .isa_built = rft__registry_isa_built(),
                                .isa_here = rft__registry_isa_here(),
                                .isa_missing = rft__registry_isa_missing()};
    rft__sized_write(info, &own, sizeof own);
    return RFT_OK;
}

uint32_t rft_kernel_count(void) { return rft__registry_kernel_count(); }

rft_status rft_kernel_get(uint32_t i, rft_kernel_info *info) {
    if (i >= rft__registry_kernel_count()) {
        return RFT_E_ARG;
    }
    RFT_TRY(rft__sized_check(info, "info", NULL));
    rft_kernel_info own = {.struct_size = sizeof own};
    RFT_TRY(rft__registry_kernel(i, &own));
    rft__sized_write(info, &own, sizeof own);
    return RFT_OK;
}
