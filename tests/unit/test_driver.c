/* SPDX-License-Identifier: Apache-2.0
 *
 * test_driver.c - the CUDA driver that is absent, too old or incomplete, played by libraries that the C compiler makes here;
 * and our declarations against cuda.h and nvrtc.h, where a toolkit is installed. Each part is skipped where it has nothing to
 * work with.
 */
#include "cuda/driver.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "need_compiler.h"
#include "test_files.h"

#define SOURCE_DIR RFT_TEST_DATA_DIR "/../../src"
#define TOOLKIT "/usr/local/cuda/include"

static void need_toolkit(const char *header) {
    char path[PATH_MAX];
    need_compiler();
    snprintf(path, sizeof path, "%s/%s", TOOLKIT, header);
    if (access(path, R_OK) != 0) {
        print_message("skipped: there is no %s\n", path);
        skip();
    }
}

/* Runs cc within folder. */
static void compile(const char *arguments) {
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "cd '%s' && cc -std=gnu11 -I'%s' -I'%s/../include' %s", folder, SOURCE_DIR, SOURCE_DIR,
             arguments);
    if (system(command) != 0) {
        fail_msg("failed: %s", command);
    }
}

/* ---- drivers that are none ---- */

static const char fake_defaults[] =
    "#ifdef LACKS\n#define cuMemAlloc_v2 cuMemAlloc_v1\n#endif\n"
    "#define RFT_DRIVER(need, symbol, parameters) __attribute__((weak)) int symbol(void) { return 0; }\n"
    "#include \"cuda/driver.def\"\n";
static const char fake_answers[] =
    "int cuDriverGetVersion(int *version) { *version = VERSION; return 0; }\n"
    "int cuInit(unsigned flags) { (void)flags; return INIT; }\n"
    "int cuGetErrorName(int r, const char **t) { *t = r == 100 ? \"NO_DEVICE\" : 0; return r != 100; }\n"
    "int cuGetErrorString(int r, const char **t) { *t = r == 100 ? \"no GPU\" : 0; return r != 100; }\n";

/* Loads a driver made with these macros. */
static rft_status load_fake(const char *name, const char *macros, rft__driver *driver, rft_error *err) {
    char arguments[256];
    need_compiler();
    write_text("defaults.c", fake_defaults);
    write_text("answers.c", fake_answers);
    snprintf(arguments, sizeof arguments, "-shared -fPIC %s -o %s defaults.c answers.c", macros, name);
    compile(arguments);
    return rft__driver_load(in_folder(name), driver, err);
}

static void assert_holds(const char *text, const char *part) {
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' does not hold '%s'", text, part);
    }
}

static void absent_driver_is_told(void **state) {
    (void)state;
    rft__driver driver;
    rft_error err = {.message = ""};
    assert_int_equal(rft__driver_load("librooftile_nowhere.so.1", &driver, &err), RFT_E_DEVICE);
    assert_holds(err.message, "there is no CUDA driver: librooftile_nowhere.so.1");
}

static void library_that_is_no_driver_is_told(void **state) {
    (void)state;
    rft__driver driver;
    rft_error err = {.message = ""};
    assert_int_equal(rft__driver_load("libm.so.6", &driver, &err), RFT_E_DEVICE);
    assert_string_equal(err.message, "libm.so.6 is no CUDA driver: it does not tell its version");
}

static void old_driver_is_told(void **state) {
    (void)state;
    rft__driver driver;
    rft_error err = {.message = ""};
    assert_int_equal(load_fake("old.so", "-DVERSION=11040 -DINIT=0 -DLACKS", &driver, &err), RFT_E_DEVICE);
    assert_string_equal(err.message, "the CUDA driver supports CUDA 11.4; rooftile needs a driver for CUDA 12.0 or newer");
}

static void incomplete_driver_is_told(void **state) {
    (void)state;
    rft__driver driver;
    rft_error err = {.message = ""};
    assert_int_equal(load_fake("lacks.so", "-DVERSION=12080 -DINIT=0 -DLACKS", &driver, &err), RFT_E_DEVICE);
    assert_string_equal(err.message, "the CUDA driver supports CUDA 12.8, but lacks the function cuMemAlloc_v2");
}

static void driver_without_gpu_is_told(void **state) {
    (void)state;
    rft__driver driver;
    rft_error err = {.message = ""};
    assert_int_equal(load_fake("empty.so", "-DVERSION=13000 -DINIT=100", &driver, &err), RFT_E_DEVICE);
    assert_int_equal(err.native, CUDA_ERROR_NO_DEVICE);
    assert_string_equal(err.message, "initialising the CUDA driver failed with NO_DEVICE (100): no GPU");
    assert_int_equal(load_fake("odd.so", "-DVERSION=13000 -DINIT=4711", &driver, &err), RFT_E_DEVICE);
    assert_holds(err.message, "failed with an unknown error (4711): the driver has no text for it");
}

static void good_driver_fills_the_table(void **state) {
    (void)state;
    rft__driver driver;
    rft_error err = {.message = ""};
    assert_int_equal(load_fake("good.so", "-DVERSION=12000 -DINIT=0", &driver, &err), RFT_OK);
    assert_int_equal(driver.version, 12000);
#define RFT_DRIVER(need, symbol, parameters) assert_true(driver.symbol != NULL);
#include "cuda/driver.def"
#undef RFT_DRIVER
}

/* Whatever this machine has: both answers are whole, and the same each time. */
static void driver_of_this_machine(void **state) {
    (void)state;
    rft_error err = {.message = ""}, again = {.message = ""};
    const rft__driver *driver = rft__driver_get(&err);
    assert_ptr_equal(rft__driver_get(&again), driver);
    assert_string_equal(err.message, again.message);
    if (driver == NULL) {
        print_message("here %s\n", err.message);
        assert_int_equal(err.status, RFT_E_DEVICE);
        assert_true(strlen(err.message) > 0);
        return;
    }
    assert_true(driver->version >= RFT_DRIVER_LEAST);
    assert_int_equal(rft__driver_version(), driver->version);
    assert_int_equal(rft__driver_check(CUDA_SUCCESS, "nothing", &err), RFT_OK);
    assert_int_equal(rft__driver_check(CUDA_ERROR_OUT_OF_MEMORY, "taking memory", &err), RFT_E_DEVICE);
    assert_holds(err.message, "taking memory failed with CUDA_ERROR_OUT_OF_MEMORY (2)");
}

/* ---- declarations ---- */

/* A program that prints what it knows; OURS: by our header, else by cuda.h. */
static const char layout_program[] =
    "#include <stddef.h>\n#include <stdio.h>\n"
    "#ifdef OURS\n#include \"cuda/driver.h\"\n#else\n#include <cuda.h>\n#endif\n"
    "#define SHOW(value) printf(\"%s %lld\\n\", #value, (long long)(value));\n"
    "#define FIELD(type, field) SHOW(offsetof(type, field)) SHOW(sizeof ((type *)0)->field)\n"
    "int main(void) {\n"
    "SHOW(sizeof(CUresult)) SHOW(sizeof(CUdevice)) SHOW(sizeof(CUdeviceptr)) SHOW(sizeof(CUstream))\n"
    "SHOW(sizeof(CUlaunchConfig)) SHOW(_Alignof(CUlaunchConfig)) SHOW(sizeof(CUlaunchAttribute))\n"
    "SHOW(_Alignof(CUlaunchAttribute)) SHOW(sizeof(CUlaunchAttributeValue)) SHOW(sizeof(CUtensorMap))\n"
    "FIELD(CUlaunchConfig, gridDimX) FIELD(CUlaunchConfig, gridDimY) FIELD(CUlaunchConfig, gridDimZ)\n"
    "FIELD(CUlaunchConfig, blockDimX) FIELD(CUlaunchConfig, blockDimY) FIELD(CUlaunchConfig, blockDimZ)\n"
    "FIELD(CUlaunchConfig, sharedMemBytes) FIELD(CUlaunchConfig, hStream) FIELD(CUlaunchConfig, attrs)\n"
    "FIELD(CUlaunchConfig, numAttrs) FIELD(CUlaunchAttribute, id) FIELD(CUlaunchAttribute, value)\n"
    "FIELD(CUlaunchAttributeValue, cooperative) FIELD(CUlaunchAttributeValue, clusterDim)\n"
    "FIELD(CUlaunchAttributeValue, clusterDim.y) FIELD(CUlaunchAttributeValue, clusterDim.z)\n"
    "FIELD(CUlaunchAttributeValue, programmaticStreamSerializationAllowed) FIELD(CUlaunchAttributeValue, priority)\n"
    "FIELD(CUlaunchAttributeValue, programmaticEvent.flags)\n"
    "FIELD(CUlaunchAttributeValue, programmaticEvent.triggerAtBlockStart)\n"
    "#include \"constants.inc\"\n"
    "return 0; }\n";

/* constants.inc: SHOW(name) for each enumerator of driver.h. */
static void extract_constants(void) {
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command, "sed -nE 's/^    (CU[A-Z0-9_]+) = [0-9]+.*/SHOW(\\1)/p' '%s' >'%s/constants.inc'",
             SOURCE_DIR "/cuda/driver.h", folder);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "test $(wc -l <'%s/constants.inc') -gt 80", folder);
    assert_int_equal(system(command), 0);
}

static void layout_is_that_of_cuda_h(void **state) {
    (void)state;
    char command[2 * PATH_MAX];
    need_toolkit("cuda.h");
    write_text("layout.c", layout_program);
    extract_constants();
    compile("-DOURS -o ours layout.c");
    compile("-isystem " TOOLKIT " -o theirs layout.c");
    snprintf(command, sizeof command, "cd '%s' && ./ours >ours.txt && ./theirs >theirs.txt && diff ours.txt theirs.txt", folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(_Alignof(CUtensorMap), 64);
}

/* A pointer of our type takes the toolkit's function without a warning. Enumerations are ints to us; here they are theirs. */
static void signatures_are_those_of_the_toolkit(void **state) {
    (void)state;
    need_toolkit("cuda.h");
    write_text("driver_signatures.c",
               "#include <cuda.h>\n#include <stdint.h>\n"
               "#define RFT_DRIVER(need, symbol, parameters) CUresult (*check_##symbol) parameters = symbol;\n"
               "#include \"cuda/driver.def\"\n");
    compile("-isystem " TOOLKIT " -Werror -fsyntax-only driver_signatures.c");
    need_toolkit("nvrtc.h");
    write_text("nvrtc_signatures.c",
               "#include <nvrtc.h>\n"
               "#define RFT_NVRTC(type, symbol, parameters) type (*check_##symbol) parameters = symbol;\n"
               "#include \"cuda/nvrtc.def\"\n");
    compile("-isystem " TOOLKIT " -Werror -fsyntax-only nvrtc_signatures.c");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_driver_is_told),
        cmocka_unit_test(library_that_is_no_driver_is_told),
        cmocka_unit_test(old_driver_is_told),
        cmocka_unit_test(incomplete_driver_is_told),
        cmocka_unit_test(driver_without_gpu_is_told),
        cmocka_unit_test(good_driver_fills_the_table),
        cmocka_unit_test(driver_of_this_machine),
        cmocka_unit_test(layout_is_that_of_cuda_h),
        cmocka_unit_test(signatures_are_those_of_the_toolkit),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
