/* SPDX-License-Identifier: Apache-2.0
 *
 * test_measure_cuda.c - the kernels that measure a GPU's roofs: each compiles for each architecture, keeps its sums in registers,
 * and its wgmma overlap. Needs NVRTC, no GPU.
 */
#include "base/alloc.h"
#include "cuda/jit.h"
#include "cuda/nvrtc.h"
#include "probe/measure_cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

enum { MOST = 32 };

static rft__jit *jit;

static void compile_all(int arch) {
    static char text[MOST][200];
    rft__jit_request request[MOST];
    rft__cubin cubin[MOST];
    rft_error err = {0};
    uint32_t n = 0;
    for (; n < MOST && rft__measure_cuda_config((int)n, arch, text[n], sizeof text[n]); n++) {
        request[n] = (rft__jit_request){.source = "probe.cu", .entry = "probe", .config = text[n], .arch = arch};
    }
    assert_in_range(n, 10, MOST - 1);
    if (rft__jit_get(jit, request, n, cubin, &err) != RFT_OK) {
        fail_msg("sm_%d: %s", arch, err.message);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (cubin[i].spill_bytes != 0 || cubin[i].stack_bytes != 0 || cubin[i].serialized) {
            fail_msg("sm_%d: %d bytes spilled, %d of stack, serialized %d, with\n%s", arch, cubin[i].spill_bytes,
                     cubin[i].stack_bytes, cubin[i].serialized, text[i]);
        }
        rft__cubin_release(jit, &cubin[i]);
    }
}

static void test_every_architecture(void **state) {
    rft_error err = {0};
    (void)state;
    if (rft__nvrtc_get(&err) == NULL) {
        print_message("skipped: %s\n", err.message);
        skip();
    }
    compile_all(80);
    compile_all(89);
    compile_all(90);
}

static int open_jit(void **state) {
    (void)state;
    const rft__jit_options options = {.allocator = rft__allocator_default()};
    return rft__jit_create(&options, &jit, NULL) == RFT_OK ? 0 : -1;
}

static int close_jit(void **state) {
    (void)state;
    rft__jit_free(jit);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_architecture)};
    return cmocka_run_group_tests(tests, open_jit, close_jit);
}
