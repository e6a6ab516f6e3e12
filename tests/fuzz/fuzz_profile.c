/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_profile.c - any bytes as a machine profile: no crash, and what loads obeys the rules and bounds a layer.
 */
#include "fuzz_input.h"

#include "roofline/bound.h"
#include "roofline/machine.h"

#include <math.h>

static void check_bound(const rft_machine *machine) {
    rft_linear_desc desc = rft_linear_desc_init();
    desc.x = desc.y = desc.w.elem = RFT_BF16;
    desc.w.n = desc.w.k = 4096;
    desc.m_max = 1;
    for (uint32_t threads = 0; threads < 20; threads++) {
        rft_bound bound = {.struct_size = sizeof bound};
        require(rft_machine_bound(machine, &desc, 1, threads, &bound, NULL) == RFT_OK);
        require(isfinite(bound.seconds) && bound.seconds >= 0.0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rft_machine machine;
    rft_error err = {0};
    const rft_status status = rft__machine_parse((const char *)data, size, "fuzz.json", &machine, &err);
    require(status == err.status && (status == RFT_OK || err.message[0] != '\0'));
    if (status == RFT_OK) {
        check_bound(&machine);
    }
    return 0;
}
