/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_fixture.h - what the tests of the kernel compiler share: device texts of a few lines, and skipping where no NVRTC is.
 */
#ifndef RFT_TESTS_JIT_FIXTURE_H
#define RFT_TESTS_JIT_FIXTURE_H

#include "base/env.h"
#include "cuda/jit.h"
#include "cuda/nvrtc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const rft__cuda_text tiny_texts[] = {
    {.name = "tiny.cu",
     .text = "#include \"tiny.cuh\"\n#include \"config.h\"\n"
             "extern \"C\" __global__ void tiny(float *y, const float *x) {\n"
             "    __shared__ float part[256];\n"
             "    part[threadIdx.x] = twice(x[threadIdx.x]);\n"
             "    __syncthreads();\n"
             "    y[threadIdx.x] = part[255 - threadIdx.x] + SCALE;\n"
             "}\n"},
    {.name = "tiny.cuh", .text = "# include \"deep.cuh\"\nstatic inline float twice(float x) { return TWO * x; }\n"},
    {.name = "deep.cuh", .text = "#define TWO 2.0f\n"},
    {.name = "wrong.cu", .text = "extern \"C\" __global__ void wrong(float *y) {\n    *y = nowhere;\n}\n"},
};
static const rft__cuda_source tiny_source = {tiny_texts, sizeof tiny_texts / sizeof tiny_texts[0]};

static inline rft__jit_request tiny_request(int arch, const char *config) {
    return (rft__jit_request){.source = "tiny.cu", .entry = "tiny", .config = config, .arch = arch};
}

static inline rft__jit *make_jit(const rft__cuda_source *source, const char *cache_dir, rft__log log) {
    rft__jit *jit = NULL;
    rft_error err = {.message = ""};
    const rft__jit_options options = {
        .allocator = rft__allocator_default(), .log = log, .cache_dir = cache_dir, .source = source, .threads = 4};
    if (rft__jit_create(&options, &jit, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return jit;
}

/* tools/check.sh sets RFT_NVRTC where it could fetch one: then its absence is a failure. */
static inline void need_nvrtc(void) {
    rft_error err = {.message = ""};
    if (rft__nvrtc_get(&err) == NULL) {
        print_message("skipped: %s\n", err.message);
        assert_null(rft__env_text("RFT_NVRTC"));
        skip();
    }
}

#endif
