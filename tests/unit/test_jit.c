/* SPDX-License-Identifier: Apache-2.0
 *
 * test_jit.c - the kernel compiler without a GPU and without a cache: code and figures for each architecture, includes, several
 * at once, and what a failure says. Needs NVRTC, else most of it is skipped.
 */
#include "cuda/jit_log.h"
#include "jit_fixture.h"
#include "leave_child.h"

#include <sys/wait.h>
#include <unistd.h>

static const char scale_one[] = "#define SCALE 1.0f\n";
static const rft__log quiet;

static void get_one(rft__jit *jit, const rft__jit_request *request, rft__cubin *cubin) {
    rft_error err = {.message = ""};
    if (rft__jit_get(jit, request, 1, cubin, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
}

/* ---- the compiler's log ---- */

static const char log_text[] = "ptxas info    : 0 bytes gmem\n"
                               "ptxas info    : Compiling entry function 'gemv_other' for 'sm_90a'\n"
                               "ptxas info    : Used 255 registers, used 1 barriers, 99 bytes smem\n"
                               "ptxas info    : Compiling entry function 'gemv' for 'sm_90a'\n"
                               "ptxas info    : Function properties for gemv\n"
                               "ptxas         .     160 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
                               "ptxas info    : Used 32 registers, used 1 barriers, 160 bytes cumulative stack size, "
                               "1024 bytes smem\n"
                               "ptxas info    : Function properties for helper\n"
                               "ptxas         .     8 bytes stack frame, 1 bytes spill stores, 0 bytes spill loads\n";

static void figures_come_from_the_log(void **state) {
    (void)state;
    rft__cubin c;
    rft__jit_log_figures(log_text, "gemv", &c);
    assert_int_equal(c.registers, 32);
    assert_int_equal(c.shared_bytes, 1024);
    assert_int_equal(c.stack_bytes, 168);
    assert_int_equal(c.spill_bytes, 21);
    assert_false(c.serialized);
    rft__jit_log_figures(log_text, "gemv_other", &c);
    assert_int_equal(c.registers, 255);
    assert_int_equal(c.spill_bytes, 0);
    rft__jit_log_figures(log_text, "gem", &c);
    assert_int_equal(c.registers, 0);
    rft__jit_log_figures("", "gemv", &c);
    assert_int_equal(c.registers, 0);
}

static void warnings_of_wgmma_are_seen(void **state) {
    (void)state;
    static const char *const codes[] = {"C7508", "C7510", "C7517"};
    for (int i = 0; i < 3; i++) {
        char log[1024];
        rft__cubin c;
        snprintf(log, sizeof log, "ptxas info    : (%s) Potential Performance Loss: ...\n%s", codes[i], log_text);
        rft__jit_log_figures(log, "gemv", &c);
        assert_true(c.serialized);
    }
}

static void first_error_line_is_found(void **state) {
    (void)state;
    char line[40];
    rft__jit_log_error("a.cu(1): warning #1\na.cu(2): error: no x\na.cu(3): error: no y\n", line, sizeof line);
    assert_string_equal(line, "a.cu(2): error: no x");
    rft__jit_log_error("something else\nmore", line, sizeof line);
    assert_string_equal(line, "something else");
    rft__jit_log_error("", line, sizeof line);
    assert_string_equal(line, "");
    rft__jit_log_error("a.cu(2): error: a line that is longer than the room for it", line, sizeof line);
    assert_int_equal(strlen(line), sizeof line - 1);
}

/* ---- texts ---- */

static void includes_are_followed(void **state) {
    (void)state;
    rft__cuda_unit unit;
    rft_error err = {.message = ""};
    assert_int_equal(rft__cuda_unit_find(&tiny_source, "tiny.cu", &unit, &err), RFT_OK);
    assert_string_equal(unit.source->name, "tiny.cu");
    assert_int_equal(unit.n_includes, 2);
    assert_string_equal(unit.includes[0]->name, "tiny.cuh");
    assert_string_equal(unit.includes[1]->name, "deep.cuh");
    assert_int_equal(rft__cuda_unit_find(&tiny_source, "tiny", &unit, &err), RFT_E_ARG);
    assert_string_equal(err.message, "there is no device text called tiny");
}

static void circular_includes_end(void **state) {
    (void)state;
    static const rft__cuda_text texts[] = {{.name = "a", .text = "#include \"b\"\n#include \"a\""},
                                           {.name = "b", .text = "#include\t\"a\"\n  #  include \"b"}};
    const rft__cuda_source set = {texts, 2};
    rft__cuda_unit unit;
    assert_int_equal(rft__cuda_unit_find(&set, "a", &unit, NULL), RFT_OK);
    assert_int_equal(unit.n_includes, 1);
}

static void too_many_includes_are_refused(void **state) {
    (void)state;
    enum { TEXTS = RFT_CUDA_MAX_INCLUDES + 2, NAME = 16 };
    static char names[TEXTS][NAME], main_text[TEXTS * 32];
    rft__cuda_text texts[TEXTS];
    const rft__cuda_source set = {texts, TEXTS};
    rft__cuda_unit unit;
    for (int i = 0; i < TEXTS; i++) {
        snprintf(names[i], NAME, "text%d", i);
        texts[i] = (rft__cuda_text){.name = names[i], .text = ""};
        snprintf(main_text + strlen(main_text), sizeof main_text - strlen(main_text), "#include \"text%d\"\n", i);
    }
    texts[0].text = main_text;
    assert_int_equal(rft__cuda_unit_find(&set, "text0", &unit, NULL), RFT_E_ARG);
}

static void shared_texts_are_embedded(void **state) {
    (void)state;
    rft__cuda_unit unit;
    assert_int_equal(rft__cuda_unit_find(&rft__cuda_embedded, "epilogue/epi_math.h", &unit, NULL), RFT_OK);
    assert_non_null(strstr(unit.source->text, "rft__gelu_tanh"));
    assert_int_equal(rft__cuda_unit_find(&rft__cuda_embedded, "epilogue/epi_ops.def", &unit, NULL), RFT_OK);
    assert_int_equal(rft__cuda_unit_find(&rft__cuda_embedded, "format/decode/decode_scalar.h", &unit, NULL), RFT_OK);
    assert_int_equal(rft__cuda_unit_find(&rft__cuda_embedded, "cuda_args.h", &unit, NULL), RFT_OK);
}

/* The cache's key has a text's digest in place of the text. */
static void embedded_texts_have_digests_of_their_own(void **state) {
    (void)state;
    for (uint32_t i = 0; i < rft__cuda_embedded.count; i++) {
        assert_non_null(rft__cuda_embedded.texts[i].digest);
        assert_int_equal(strlen(rft__cuda_embedded.texts[i].digest), 64);
        for (uint32_t j = 0; j < i; j++) {
            assert_string_not_equal(rft__cuda_embedded.texts[i].digest, rft__cuda_embedded.texts[j].digest);
        }
    }
}

/* ---- code ---- */

static void each_architecture_compiles(void **state) {
    (void)state;
    need_nvrtc();
    static const int archs[] = {80, 86, 89, 90};
    rft__jit *jit = make_jit(&tiny_source, NULL, quiet);
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        rft__cubin c;
        const rft__jit_request request = tiny_request(archs[i], scale_one);
        get_one(jit, &request, &c);
        assert_memory_equal(c.data, "\x7f" "ELF", 4);
        assert_in_range(c.registers, 4, 64);
        assert_int_equal(c.shared_bytes, 1024);
        assert_int_equal(c.spill_bytes, 0);
        assert_false(c.serialized || c.cached);
        assert_true(c.milliseconds > 0);
        rft__cubin_release(jit, &c);
        assert_null(c.data);
    }
    rft__jit_free(jit);
}

/* sm_90 alone knows no wgmma: the fence shows that the `a` is asked for. */
static void hopper_gets_its_own_instructions(void **state) {
    (void)state;
    need_nvrtc();
    static const rft__cuda_text text = {.name = "fence.cu",
                                        .text = "extern \"C\" __global__ void fence() {\n"
                                                "    asm volatile(\"wgmma.fence.sync.aligned;\");\n}\n"};
    const rft__cuda_source set = {&text, 1};
    const rft__jit_request request = {.source = "fence.cu", .entry = "fence", .config = "", .arch = 90};
    rft__jit *jit = make_jit(&set, NULL, quiet);
    rft__cubin c;
    get_one(jit, &request, &c);
    rft__cubin_release(jit, &c);
    rft__jit_free(jit);
}

/* Values that live across a barrier in more registers than a thread of so large a block has. */
static void spills_are_counted(void **state) {
    (void)state;
    need_nvrtc();
    static const rft__cuda_text text = {
        .name = "spill.cu",
        .text = "extern \"C\" __global__ void __launch_bounds__(1024) spill(float *y) {\n"
                "    float v[128];\n"
                "#pragma unroll\n    for (int i = 0; i < 128; i++) v[i] = y[i * 1024 + threadIdx.x];\n"
                "    __syncthreads();\n"
                "#pragma unroll\n"
                "    for (int i = 0; i < 128; i++) y[i * 1024 + 1023 - threadIdx.x] = v[i] * v[127 - i];\n}\n"};
    const rft__cuda_source set = {&text, 1};
    const rft__jit_request request = {.source = "spill.cu", .entry = "spill", .config = "", .arch = 80};
    rft__jit *jit = make_jit(&set, NULL, quiet);
    rft__cubin c;
    get_one(jit, &request, &c);
    assert_int_equal(c.registers, 64);
    assert_true(c.spill_bytes > 0);
    rft__cubin_release(jit, &c);
    rft__jit_free(jit);
}

static void shared_texts_compile(void **state) {
    (void)state;
    need_nvrtc();
    enum { MAX_TEXTS = 256 };
    static rft__cuda_text texts[MAX_TEXTS];
    assert_true(rft__cuda_embedded.count < MAX_TEXTS);
    memcpy(texts + 1, rft__cuda_embedded.texts, rft__cuda_embedded.count * sizeof texts[0]);
    texts[0] = (rft__cuda_text){
        .name = "use.cu",
        .text = "#include \"epilogue/epi_math.h\"\n"
                "#include \"format/decode/decode_scalar.h\"\n"
                "#include \"format/decode/decode_q.h\"\n"
                "extern \"C\" __global__ void use(float *y, const unsigned char *w) {\n"
                "    *y = rft__gelu(*y) + rft__silu(rft__tanh(*y)) + rft__f16_f32(rft__load_u16(w));\n"
                "}\n"};
    const rft__cuda_source set = {texts, rft__cuda_embedded.count + 1};
    const rft__jit_request request = {.source = "use.cu", .entry = "use", .config = "", .arch = 80};
    rft__jit *jit = make_jit(&set, NULL, quiet);
    rft__cubin c;
    get_one(jit, &request, &c);
    assert_int_equal(c.spill_bytes, 0);
    rft__cubin_release(jit, &c);
    rft__jit_free(jit);
}

static void several_compile_at_once(void **state) {
    (void)state;
    need_nvrtc();
    static const char *const configs[] = {"#define SCALE 1.0f\n", "#define SCALE 2.0f\n", "#define SCALE 3.0f\n",
                                          "#define SCALE 4.0f\n"};
    rft__jit *jit = make_jit(&tiny_source, NULL, quiet);
    rft__jit_request requests[4];
    rft__cubin together[4], alone;
    rft_error err = {.message = ""};
    for (int i = 0; i < 4; i++) {
        requests[i] = tiny_request(90, configs[i]);
    }
    assert_int_equal(rft__jit_get(jit, requests, 4, together, &err), RFT_OK);
    for (int i = 0; i < 4; i++) {
        get_one(jit, &requests[i], &alone);
        assert_int_equal(alone.size, together[i].size);
        assert_memory_equal(alone.data, together[i].data, alone.size);
        rft__cubin_release(jit, &alone);
        rft__cubin_release(jit, &together[i]);
    }
    rft__jit_free(jit);
}

/* ---- events ---- */

typedef struct heard {
    int lines;
    rft_log_level level;
    char line[512];
} heard;

static void hear(void *user, rft_log_level level, const char *line) {
    heard *h = user;
    h->lines++;
    h->level = level;
    snprintf(h->line, sizeof h->line, "%s", line);
}

static void each_compile_is_an_event(void **state) {
    (void)state;
    need_nvrtc();
    heard h = {.lines = 0};
    rft__jit *jit = make_jit(&tiny_source, NULL, (rft__log){.callback = hear, .user = &h, .level = RFT_LOG_DISPATCH});
    const rft__jit_request request = tiny_request(90, scale_one);
    rft__cubin c;
    get_one(jit, &request, &c);
    char expected[128];
    snprintf(expected, sizeof expected, "jit,tiny.cu:tiny,compiled; sm_90a; %d registers; 1024 bytes of shared memory; 0 bytes",
             c.registers);
    assert_int_equal(h.lines, 1);
    assert_int_equal(h.level, RFT_LOG_DISPATCH);
    assert_non_null(strstr(h.line, expected));
    rft__cubin_release(jit, &c);
    rft__jit_free(jit);
}

/* ---- failures ---- */

typedef struct budget { /* of an allocator that fails from some call on */
    int left, held;
} budget;

static void *spend(void *user, size_t bytes, size_t align) {
    budget *b = user;
    void *p = NULL;
    if (b->left-- <= 0 || posix_memalign(&p, align, bytes) != 0) {
        return NULL;
    }
    b->held++;
    return p;
}

static void give_back(void *user, void *p, size_t bytes) {
    budget *b = user;
    (void)bytes;
    b->held--;
    free(p);
}

/* At each allocation in turn: either the kernel, or RFT_E_NOMEM and nothing kept. */
static void failing_memory_is_told(void **state) {
    (void)state;
    need_nvrtc();
    const rft__jit_request request = tiny_request(80, scale_one);
    rft_status status = RFT_E_NOMEM;
    int failures = -1;
    for (; status != RFT_OK; failures++) {
        assert_true(failures < 20);
        budget b = {.left = failures + 1};
        const rft__allocator limited = {.alloc = spend, .release = give_back, .user = &b};
        const rft__jit_options options = {.allocator = limited, .source = &tiny_source};
        rft__jit *jit = NULL;
        rft__cubin c = {.data = NULL};
        status = rft__jit_create(&options, &jit, NULL);
        if (status == RFT_OK) {
            status = rft__jit_get(jit, &request, 1, &c, NULL);
            rft__cubin_release(jit, &c);
        }
        assert_true(status == RFT_OK || status == RFT_E_NOMEM);
        rft__jit_free(jit);
        assert_int_equal(b.held, 0);
    }
    assert_true(failures >= 3);
}

static void count_errors(void *user, rft_log_level level, const char *line) {
    int *errors = user;
    *errors += level == RFT_LOG_ERROR && strstr(line, "nowhere") != NULL;
}

static void compile_error_is_told(void **state) {
    (void)state;
    need_nvrtc();
    int errors = 0;
    rft__jit *jit = make_jit(&tiny_source, NULL, (rft__log){.callback = count_errors, .user = &errors, .level = RFT_LOG_ERROR});
    const rft__jit_request requests[2] = {tiny_request(80, scale_one),
                                          {.source = "wrong.cu", .entry = "wrong", .config = "", .arch = 80}};
    rft__cubin cubins[2];
    rft_error err = {.message = ""};
    assert_int_equal(rft__jit_get(jit, requests, 2, cubins, &err), RFT_E_JIT);
    assert_int_equal(err.native, NVRTC_ERROR_COMPILATION);
    assert_non_null(strstr(err.message, "kernel wrong for sm_80 does not compile: wrong.cu(2): error: identifier \"nowhere\""));
    assert_true(errors > 0);
    assert_null(cubins[0].data);
    assert_null(cubins[1].data);
    rft__jit_free(jit);
}

static void refused(const rft__jit_request *request, rft_status status, const char *text) {
    rft__jit *jit = make_jit(&tiny_source, NULL, quiet);
    rft__cubin cubin;
    rft_error err = {.message = ""};
    assert_int_equal(rft__jit_get(jit, request, 1, &cubin, &err), status);
    if (strstr(err.message, text) == NULL) {
        fail_msg("'%s' does not hold '%s'", err.message, text);
    }
    rft__jit_free(jit);
}

static void bad_requests_are_refused(void **state) {
    (void)state;
    need_nvrtc();
    refused(&(rft__jit_request){.source = "none.cu", .entry = "x", .config = "", .arch = 80}, RFT_E_ARG, "none.cu");
    refused(&(rft__jit_request){.source = "tiny.cu", .entry = "tiny", .config = scale_one, .arch = 35}, RFT_E_UNSUPPORTED,
            "cannot compile for compute capability 3.5");
    refused(&(rft__jit_request){.source = "tiny.cu", .entry = "tiny", .config = "", .arch = 80}, RFT_E_JIT, "SCALE");
}

static void too_many_requests_are_refused(void **state) {
    (void)state;
    static rft__cubin cubins[RFT_JIT_MAX + 1];
    static rft__jit_request requests[RFT_JIT_MAX + 1];
    rft__jit *jit = make_jit(&tiny_source, NULL, quiet);
    assert_int_equal(rft__jit_get(jit, requests, RFT_JIT_MAX + 1, cubins, NULL), RFT_E_ARG);
    rft__jit_free(jit);
}

static void nothing_asked_nothing_done(void **state) {
    (void)state;
    need_nvrtc();
    rft__jit *jit = make_jit(&tiny_source, NULL, quiet);
    assert_int_equal(rft__jit_get(jit, NULL, 0, NULL, NULL), RFT_OK);
    rft__jit_free(jit);
    rft__jit_free(NULL);
}

/* The library is looked for once a process, so in one of its own. Exit code 0: told as it should be. */
static void nvrtc_that_cannot_be_loaded_is_named(void **state) {
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        rft_error err = {.message = ""};
        setenv("RFT_NVRTC", "/nowhere/libnvrtc.so", 1);
        const bool none = rft__nvrtc_get(&err) == NULL && err.status == RFT_E_JIT;
        leave_child(none && strstr(err.message, "RFT_NVRTC = /nowhere/libnvrtc.so cannot be loaded: ") != NULL ? 0 : 1);
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvrtc_that_cannot_be_loaded_is_named), /* before any other opens it */
        cmocka_unit_test(figures_come_from_the_log),
        cmocka_unit_test(warnings_of_wgmma_are_seen),
        cmocka_unit_test(first_error_line_is_found),
        cmocka_unit_test(includes_are_followed),
        cmocka_unit_test(circular_includes_end),
        cmocka_unit_test(too_many_includes_are_refused),
        cmocka_unit_test(shared_texts_are_embedded),
        cmocka_unit_test(embedded_texts_have_digests_of_their_own),
        cmocka_unit_test(each_architecture_compiles),
        cmocka_unit_test(hopper_gets_its_own_instructions),
        cmocka_unit_test(spills_are_counted),
        cmocka_unit_test(shared_texts_compile),
        cmocka_unit_test(several_compile_at_once),
        cmocka_unit_test(each_compile_is_an_event),
        cmocka_unit_test(failing_memory_is_told),
        cmocka_unit_test(compile_error_is_told),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(too_many_requests_are_refused),
        cmocka_unit_test(nothing_asked_nothing_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
