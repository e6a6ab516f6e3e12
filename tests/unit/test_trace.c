/* SPDX-License-Identifier: Apache-2.0
 *
 * test_trace.c - the readers of recorded runs: shapes, whose time is whose, and files that are damaged or mean harm; and how the
 * tool ends without memory.
 */
#include "cli/trace/json_cut.h"
#include "cli/trace/readers.h"
#include "cli/trace/torch_ops.h"
#include "cli/trace/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static trace read_data(const char *name) {
    char path[512];
    trace t;
    snprintf(path, sizeof path, "%s/%s", RFT_TEST_DATA_DIR, name);
    assert_int_equal(trace_open(path, &t), CLI_OK);
    return t;
}

/* The bytes end where the text does, so that a reader that looks further is seen by the sanitizer. */
static bool read_text(trace *t, const char *text, char why[CLI_WHY]) {
    const size_t size = strlen(text);
    char *bytes = malloc(size ? size : 1);
    memcpy(bytes, text, size);
    *t = (trace){.format = ""};
    *why = '\0';
    bool good = trace_read(t, bytes, size, why);
    free(bytes);
    return good;
}

static void refuses(const char *text, const char *says) {
    char why[CLI_WHY];
    trace t;
    assert_false(read_text(&t, text, why));
    if (!strstr(why, says))
        fail_msg("'%s' should say '%s'", why, says);
    trace_free(&t);
}

static const trace_row *find_row(const trace *t, trace_group group, int64_t m, int64_t n, int64_t k) {
    for (size_t i = 0; i < t->n; i++) {
        const trace_call *c = &t->rows[i].call;
        if (c->group == group && c->m == m && c->n == n && c->k == k)
            return &t->rows[i];
    }
    fail_msg("no row of group %d with %lld x %lld x %lld", (int)group, (long long)m, (long long)n, (long long)k);
    return NULL;
}

static void has(const trace_row *r, const char *types, const char *layout, const char *epi, const char *phase, int64_t calls,
                double us) {
    char have[64];
    snprintf(have, sizeof have, "%.20s %.20s %.20s", r->call.x, r->call.w, r->call.y);
    assert_string_equal(have, types);
    assert_string_equal(r->call.layout, layout);
    assert_string_equal(r->call.epi, epi);
    assert_string_equal(r->call.phase, phase);
    assert_int_equal(r->calls, calls);
    assert_float_equal(r->us, us, 0.01);
}

/* ---- torch.profiler ---- */

static void test_torch_on_cpu(void **state) {
    (void)state;
    trace t = read_data("trace_torch_cpu.json");
    assert_false(t.on_gpu);
    assert_int_equal(t.skipped, 0);
    has(find_row(&t, TRACE_GEMM, 1, 192, 64), "f32 f32 f32", "nt", "none", "decode", 1, 27.281);
    has(find_row(&t, TRACE_GEMM, 1, 160, 64), "f32 f32 f32", "nt", "none", "decode", 2, 14.862 + 10.095);
    has(find_row(&t, TRACE_GEMM, 1, 64, 64), "f32 f32 f32", "nt", "bias", "decode", 1, 18.688);
    has(find_row(&t, TRACE_GEMM, 64, 160, 48), "f32 f32 f32", "", "none", "backward", 1, 36.234);
    assert_float_equal(t.group_us[TRACE_ATTENTION], 32.138, 0.001); /* with the op within it */
    assert_float_equal(t.group_us[TRACE_NORM], 13.1 + 54.822 + 9.084, 0.001);
    assert_int_equal(t.group_calls[TRACE_GEMM], 7);
    trace_free(&t);
}

/* Kernels belong to the op around their launch, even where another op has their id. */
static void test_torch_on_gpu(void **state) {
    (void)state;
    trace t = read_data("trace_torch_gpu.json");
    assert_true(t.on_gpu);
    assert_string_equal(t.device, "NVIDIA H200");
    has(find_row(&t, TRACE_GEMM, 512, 14336, 4096), "bf16 bf16 bf16", "nt", "bias@bf16", "prefill", 1, 100);
    has(find_row(&t, TRACE_GEMM, 8, 4096, 4096), "bf16 bf16 bf16", "nn", "none", "", 1, 12);
    assert_float_equal(t.group_us[TRACE_ATTENTION], 40, 0.001);
    assert_float_equal(t.group_us[TRACE_COLLECTIVE], 50, 0.001);
    assert_float_equal(t.group_us[TRACE_NORM], 3, 0.001);
    assert_float_equal(t.group_us[TRACE_OTHER], 2, 0.001);
    assert_float_equal(t.us, 207, 0.001);
    assert_string_equal(trace_phase(&find_row(&t, TRACE_GEMM, 8, 4096, 4096)->call), "decode?");
    trace_free(&t);
}

static trace_call op(const char *name, const char *dims, const char *types, const char *strides, const char *values) {
    json_t *d = json_loads(dims, 0, NULL), *ty = json_loads(types, 0, NULL), *s = json_loads(strides, 0, NULL);
    json_t *v = json_loads(values, 0, NULL);
    const torch_args args = {d, ty, s, v};
    const trace_call call = torch_call(name, &args);
    json_decref(d);
    json_decref(ty);
    json_decref(s);
    json_decref(v);
    return call;
}

static void is_product(const trace_call *c, int64_t batch, int64_t m, int64_t n, int64_t k, const char *layout, const char *epi) {
    assert_int_equal(c->group, TRACE_GEMM);
    assert_int_equal(c->batch, batch);
    assert_int_equal(c->m, m);
    assert_int_equal(c->n, n);
    assert_int_equal(c->k, k);
    assert_string_equal(c->layout, layout);
    assert_string_equal(c->epi, epi);
}

static void test_torch_shapes(void **state) {
    (void)state;
    trace_call c =
        op("aten::linear", "[[2,3,64],[8,64],[8]]", "[\"float\",\"float\",\"float\"]", "[[192,64,1],[64,1],[1]]", "[]");
    is_product(&c, 1, 6, 8, 64, "nt", "bias");
    c = op("aten::linear", "[[64],[8,64],[]]", "[]", "[]", "[]");
    is_product(&c, 1, 1, 8, 64, "", "none");
    assert_string_equal(c.x, "");
    c = op("aten::addmm", "[[4,8],[4,64],[64,8],[],[]]", "[]", "[[8,1],[1,4],[8,1],[],[]]", "[\"\",\"\",\"\",\"0.5\",\"1\"]");
    is_product(&c, 1, 4, 8, 64, "tn", "add");
    c = op("aten::addmm", "[[4,8],[4,64],[64,8],[],[]]", "[]", "[]", "[\"\",\"\",\"\",\"0\",\"1\"]");
    is_product(&c, 1, 4, 8, 64, "", "none");
    c = op("aten::_addmm_activation", "[[8],[4,64],[64,8],[],[],[]]", "[\"c10::Half\",\"c10::Half\",\"c10::Half\"]", "[]",
           "[\"\",\"\",\"\",\"1\",\"1\",\"True\"]");
    is_product(&c, 1, 4, 8, 64, "", "bias@f16:gelu_tanh");
    c = op("mkldnn::_linear_pointwise", "[[4,64],[8,64],[8]]", "[\"float\",\"float\",\"float\"]", "[]",
           "[\"\",\"\",\"\",\"swish\"]");
    is_product(&c, 1, 4, 8, 64, "", "bias:silu");
    c = op("aten::matmul", "[[2,3,5,7],[2,3,7,9]]", "[]", "[]", "[]");
    is_product(&c, 6, 5, 9, 7, "", "none");
    c = op("aten::matmul", "[[2,3,5,7],[7,9]]", "[]", "[]", "[]");
    is_product(&c, 1, 30, 9, 7, "", "none");
    c = op("aten::matmul", "[[5,7],[7]]", "[]", "[]", "[]");
    is_product(&c, 1, 5, 1, 7, "", "none");
    c = op("aten::mv", "[[9,7],[7]]", "[]", "[[7,1],[1]]", "[]");
    is_product(&c, 1, 1, 9, 7, "nt", "none");
    c = op("aten::baddbmm", "[[6,5,9],[6,5,7],[6,7,9],[],[]]", "[]", "[]", "[\"\",\"\",\"\",\"1\",\"1\"]");
    is_product(&c, 6, 5, 9, 7, "", "add");
    c = op("aten::mm", "[[1,1],[1,1]]", "[]", "[[1,1],[1,1]]", "[]"); /* any order */
    is_product(&c, 1, 1, 1, 1, "nt", "none");
}

static void has_no_shape(const char *name, const char *dims) {
    const trace_call c = op(name, dims, "[]", "[]", "[]");
    assert_int_equal(c.group, TRACE_GEMM);
    assert_int_equal(c.batch, 0);
}

static void test_torch_bad_shapes(void **state) {
    (void)state;
    has_no_shape("aten::mm", "[[4,8],[9,4]]");
    has_no_shape("aten::mm", "[[4,8]]");
    has_no_shape("aten::mm", "[]");
    has_no_shape("aten::mm", "{}");
    has_no_shape("aten::mm", "[[],[]]");
    has_no_shape("aten::mm", "[[4,-8],[-8,4]]");
    has_no_shape("aten::mm", "[[4,\"8\"],[8,4]]");
    has_no_shape("aten::mm", "[[4,8.5],[8.5,4]]");
    has_no_shape("aten::mm", "[[1,1,1,1,1,1,1,4,8],[8,4]]");
    has_no_shape("aten::mm", "[[9223372036854775807,8],[8,4]]");
    has_no_shape("aten::linear", "[[4611686018427387904,4,8],[4,8]]");
    has_no_shape("aten::bmm", "[[4611686018427387904,4,2,8],[4611686018427387904,4,8,2]]");
}

/* Notes pass time through, launches count for none, and what nobody owns counts without what is within. */
static void test_nesting(void **state) {
    (void)state;
    char why[CLI_WHY];
    trace t;
    assert_true(
        read_text(&t,
                  "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"outer\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":100},"
                  "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"Prefill\",\"pid\":1,\"tid\":1,\"ts\":10,\"dur\":80},"
                  "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":20,\"dur\":30},"
                  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"l\",\"pid\":1,\"tid\":1,\"ts\":21,\"dur\":3,"
                  "\"args\":{\"correlation\":5}},"
                  "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::copy_\",\"pid\":1,\"tid\":1,\"ts\":22,\"dur\":5},"
                  "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":2,\"ts\":20,\"dur\":30},"
                  "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"after\",\"pid\":1,\"tid\":1,\"ts\":100,\"dur\":7}]",
                  why));
    assert_int_equal(t.n, 4);
    assert_float_equal(t.us, 137, 1e-9);
    assert_float_equal(t.group_us[TRACE_OTHER], 77, 1e-9);
    assert_float_equal(t.group_us[TRACE_GEMM], 60, 1e-9);
    assert_true(t.shapes_missing);
    trace_free(&t);
}

static void has_phase(const char *note, const char *phase) {
    char text[512], why[CLI_WHY];
    trace t;
    snprintf(text, sizeof text,
             "[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"%s\",\"ts\":0,\"dur\":9},"
             "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"ts\":1,\"dur\":2}]",
             note);
    assert_true(read_text(&t, text, why));
    assert_string_equal(t.rows[0].call.phase, phase);
    trace_free(&t);
}

static void test_phases(void **state) {
    (void)state;
    has_phase("step 3", "");
    has_phase("Decode of 4", "decode");
    has_phase("chunked_prefill", "prefill");
    has_phase("execute_context_0(0)_generation_8(8)", "decode");
    has_phase("step execute_context_2(512)_generation_0(0)", "prefill");
    has_phase("execute_context_2(512)_generation_8(8)", "mixed");
    has_phase("execute_context_x(512)", "");
    has_phase("autograd::engine::evaluate_function: MmBackward0", "backward");
}

#define OP(rest) "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\"," rest "}"

static void test_torch_damage(void **state) {
    (void)state;
    char why[CLI_WHY];
    trace t;
    refuses("{\"traceEvents\": [" OP("\"ts\":1,\"dur\":1"), "cut off");
    refuses("{\"traceEvents\": [{\"a", "cut off");
    refuses("{\"traceEvents\": 5}", "no list");
    refuses("{\"other\": []}", "no traceEvents");
    refuses("{", "cut off");
    refuses("[", "cut off");
    refuses("[[[[[[", "cut off");
    refuses("{\"traceEvents\": []}", "nothing that was timed");
    refuses("", "no JSON of torch.profiler");
    refuses("\x1f\x8b\x08", "compressed");
    refuses("some text\nof others", "no JSON of torch.profiler");
    refuses("[" OP("\"ts\":1,\"dur\":-1") "]", "nothing that was timed");
    refuses("[" OP("\"ts\":1,\"dur\":1e999") "]", "nothing that was timed");
    refuses("[" OP("\"ts\":\"1\",\"dur\":1") "]", "nothing that was timed");
    assert_true(read_text(&t, " \r\n\t[" OP("\"ts\":1,\"dur\":1") "]", why)); /* blanks in front are JSON's */
    trace_free(&t);
    /* what is damaged is left out, the rest counts */
    assert_true(read_text(
        &t,
        "[" OP("\"ts\":1,\"dur\":1") ",{\"dur\" 5},{\"dur\":99999999999999999999},[\"dur\"],\"\\\"dur\\\"\","
                                     "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"dur\":1},{\"ph\":\"X\",\"cat\":[],\"name\":{},\"ts\":1,"
                                     "\"dur\":1}," OP("\"ts\":9,\"dur\":2,\"args\":{\"Input Dims\":[[1e5,2],[2,3]]}") "]",
        why));
    assert_float_equal(t.us, 3, 1e-9);
    assert_true(t.skipped >= 4);
    trace_free(&t);
}

/* Brackets are counted, not followed. */
static void test_deep_nesting(void **state) {
    (void)state;
    enum { DEPTH = 1 << 20 };
    char *deep = malloc(2 * DEPTH + 1), why[CLI_WHY] = "";
    trace t = {.format = ""};
    memset(deep, '[', DEPTH);
    memset(deep + DEPTH, ']', DEPTH);
    deep[2 * DEPTH] = '\0';
    assert_false(trace_read(&t, deep, 2 * DEPTH, why));
    trace_free(&t);
    t = (trace){.format = ""};
    assert_false(trace_read(&t, deep, DEPTH, why));
    trace_free(&t);
    free(deep);
}

static void test_cutting(void **state) {
    (void)state;
    const char text[] = "{\"a\" : \"x\\\"]}\" , \"b\":[1,{\"c\":2}],\"traceEvents\":-1.5e3}", *at = text;
    json_piece key, value;
    bool broken = true;
    assert_true(json_enter(&at, text + sizeof text - 1, '{'));
    assert_true(json_next_member(&at, text + sizeof text - 1, &key, &value, &broken));
    assert_int_equal(value.length, 7);
    assert_true(json_next_member(&at, text + sizeof text - 1, &key, &value, &broken));
    assert_int_equal(value.length, 11);
    assert_true(json_next_member(&at, text + sizeof text - 1, &key, &value, &broken));
    assert_true(json_is_key(&key, "traceEvents"));
    assert_int_equal(value.length, 6);
    assert_false(json_next_member(&at, text + sizeof text - 1, &key, &value, &broken));
    assert_false(broken);
}

/* ---- logs ---- */

static void test_onednn(void **state) {
    (void)state;
    trace t = read_data("trace_onednn.log");
    assert_int_equal(t.threads, 2);
    assert_int_equal(t.skipped, 0);
    has(find_row(&t, TRACE_GEMM, 4, 512, 256), "f32 f32 f32", "nt", "bias:gelu", "", 1, 2152.1);
    has(find_row(&t, TRACE_GEMM, 64, 512, 256), "f32 f32 f32", "nt", "bias:add", "", 1, 347.168);
    has(find_row(&t, TRACE_GEMM, 16, 512, 256), "f32 f32 f32", "nt", "bias:silu", "", 1, 54.9316);
    assert_true(find_row(&t, TRACE_GEMM, 16, 512, 256)->call.packed);
    has(find_row(&t, TRACE_GEMM, 48, 64, 64), "bf16 bf16 bf16", "nt", "add", "", 1, 6.83594);
    assert_int_equal(t.group_calls[TRACE_NORM], 1);
    assert_int_equal(t.group_calls[TRACE_OTHER], 3);
    trace_free(&t);
}

#define MATMUL(memory, attributes, sizes, ms)                                                                                    \
    "onednn_verbose,v1,primitive,exec,cpu,matmul,x,undef," memory "," attributes ",," sizes "," ms "\n"
#define PLAIN "src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 dst:f32::blocked:ab::f0"

static trace_row onednn_row(const char *line) {
    char why[CLI_WHY];
    trace t;
    assert_true(read_text(&t, line, why));
    const trace_row row = t.rows[0];
    trace_free(&t);
    return row;
}

static void test_onednn_lines(void **state) {
    (void)state;
    trace_row r = onednn_row(MATMUL(PLAIN, "", "4x8:8x16", "0.5"));
    has(&r, "f32 f32 f32", "nn", "none", "", 1, 500);
    r = onednn_row("onednn_verbose,1690000000.5,primitive,exec,gpu:0,matmul,x,undef," PLAIN ",,,4x8:8x16:4x16,1\r\n");
    is_product(&r.call, 1, 4, 16, 8, "nn", "none");
    r = onednn_row(MATMUL("src:s8::blocked:ab::f0 wei:s4::blocked:ba::f0 dst:f16::blocked:ab::f0 bia:bf16::blocked:ab::f0_mask2",
                          "attr-scales:src:0:f32+wei:3:bf16:32x1 attr-zero-points:wei:3:s8:32x1 "
                          "attr-post-ops:binary_mul:f32:3:ab+eltwise_clip:0:6",
                          "4x64:64x16", "1"));
    has(&r, "i8 i4:g32:bf16:zero f16", "nt", "bias@bf16:mul:eltwise_clip:0:6", "", 1, 1000);
    r = onednn_row(MATMUL(PLAIN, "attr-post-ops:binary_add:f32:1:ab", "4x8:8x16", "1")); /* one number a row: no op of ours */
    is_product(&r.call, 1, 4, 16, 8, "nn", "binary_add:f32:1:ab");
    r = onednn_row(MATMUL("src:f32::blocked:abc::f0 wei:f32::blocked:acb::f0 dst:f32::blocked:abc::f0", "", "6x5x7:6x7x9", "1"));
    is_product(&r.call, 6, 5, 9, 7, "nt", "none");
    r = onednn_row(MATMUL("src:f32::blocked:abc::f0 wei:f32::blocked:abc::f0 dst:f32::blocked:abc::f0", "", "6x5x7:1x7x9", "1"));
    is_product(&r.call, 1, 30, 9, 7, "nn", "none");
    r = onednn_row("dnnl_verbose,exec,cpu,inner_product,x,backward_weights,src_f32::blocked:ab:f0 diff_wei_f32::blocked:ab:f0 "
                   "diff_dst_f32::blocked:ab:f0,,,mb16ic256ih2iw2oc10,1\n");
    is_product(&r.call, 1, 10, 1024, 16, "", "none");
    assert_string_equal(r.call.phase, "backward");
}

static void test_onednn_damage(void **state) {
    (void)state;
    refuses("onednn_verbose,exec\n", "nothing that was timed");
    refuses("onednn_verbose,v1,primitive,exec,cpu,matmul\n", "nothing that was timed");
    refuses(MATMUL(PLAIN, "", "4x8:8x16", "nan"), "nothing that was timed");
    refuses(MATMUL(PLAIN, "", "4x8:8x16", "-1"), "nothing that was timed");
    refuses("onednn_verbose,v1,graph,exec,cpu,100002,sdp,x,x,x,x,x,x,1\n", "nothing that was timed");
    static const char *const sizes[] = {"4x8:9x16", "4x8",       "",
                                        "4x:8x16",  "x",         "99999999999999999999x8:8x16",
                                        "4x8x:",    "-4x8:8x16", "1x1x1x1x1x1x1x1x1x1x1x1x1x1:1x1",
                                        "4294967296x4294967296x4x8:1x1x8x16"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char line[512];
        snprintf(line, sizeof line, "onednn_verbose,v1,primitive,exec,cpu,matmul,x,undef," PLAIN ",,,%s,1\n", sizes[i]);
        const trace_row r = onednn_row(line);
        assert_int_equal(r.call.batch, 0);
    }
    const trace_row r = onednn_row("onednn_verbose,exec,cpu,inner_product,x,forward_inference,src_f32::blocked:ab:f0 "
                                   "wei_f32::blocked:ab:f0 dst_f32::blocked:ab:f0,,,mb1ic4294967296ih4294967296oc2,1\n");
    assert_int_equal(r.call.batch, 0);
}

static void test_own_log(void **state) {
    (void)state;
    trace t = read_data("trace_own.log");
    assert_string_equal(t.device, "AMD EPYC");
    assert_int_equal(t.threads, 2);
    assert_false(t.enqueued);
    has(find_row(&t, TRACE_GEMM, 4, 4096, 256), "bf16 bf16 f32", "nt", "bias:gelu_tanh", "", 2, 10654.697 + 103.133);
    bool codes = false, eight = false;
    for (size_t i = 0; i < t.n; i++) {
        codes = codes || strcmp(t.rows[i].call.w, "i4:g32:zero") == 0;
        eight = eight || (strcmp(t.rows[i].call.x, "i8:g128") == 0 && strcmp(t.rows[i].call.compute, "i8") == 0);
    }
    assert_true(codes);
    assert_true(eight);
    assert_int_equal(t.group_calls[TRACE_OTHER], 1);
    trace_free(&t);
}

#define RUN(what, detail, us) "rooftile,1.0,exec,run," what "," detail "," us "\n"
#define GOOD                  "m=4 n=8 k=16 x=f32 w=f32 y=f32 layout=nt epi=none"

/* Scales of all k: codes have them unsaid, floats are rounded by them on request. */
static void test_own_rows(void **state) {
    static const char *const types[] = {"f32", "i8"}, *const want[] = {"f32:g0", "i8"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[256], why[CLI_WHY];
        trace t;
        snprintf(text, sizeof text, RUN("m=4 n=8 k=64 x=%s w=i8 y=f32 layout=nt epi=none scale=f32/1x64 x_scale=f32/64",
                                        "m=4 gemv_x; 2 threads; 1 in the list", "5"), types[i]);
        assert_true(read_text(&t, text, why));
        assert_string_equal(t.rows[0].call.x, want[i]);
        trace_free(&t);
    }
}

static const trace_call *only_call(trace *t, const char *text) {
    char why[CLI_WHY];
    assert_true(read_text(t, text, why));
    assert_int_equal(t->n, 1);
    return &t->rows[0].call;
}

/* All that a problem's text says of scales, and a name with a quote. */
static void test_own_scales(void **state) {
    (void)state;
    trace t;
    const trace_call *c = only_call(&t, RUN("m=4 n=8 k=64 x=f32 w=e2m1 y=f32 layout=nt epi=none scale=e4m3/1x16 global=over "
                                            "g_idx", "\"m=4 a\"\"b; 2 threads; 1 in the list\"", "5"));
    assert_string_equal(c->w, "e2m1:g16:e4m3:over:act");
    assert_string_equal(c->name, "a\"b");
    trace_free(&t);
    c = only_call(&t, RUN("m=4 n=8 k=64 x=i8 w=i4 y=f32 layout=nt epi=none scale=f16/3x64 global=times x_scale=f32/64",
                          "m=4 k; 2 threads; 1 in the list", "5"));
    assert_string_equal(c->w, "i4:g3x64:f16:times");
    assert_string_equal(c->x, "i8");
    trace_free(&t);
    refuses(RUN("m=4 n=8 k=64 x=f32 w=i4 y=f32 scale=f16", "m=4 k; 2 threads; 1 in the list", "5"), "nothing that was timed");
}

static void test_own_damage(void **state) {
    (void)state;
    char why[CLI_WHY];
    trace t;
    refuses("rooftile,", "no JSON");
    refuses("rooftile,1.0\n", "nothing that was timed");
    refuses(RUN(GOOD, "m=4 k; 2 threads", "5"), "nothing that was timed");
    refuses(RUN(GOOD, "m=-4 k; 2 threads; 1 in the list", "5"), "nothing that was timed");
    refuses(RUN(GOOD, "m=4 k; 2 threads; 1 in the list", ""), "nothing that was timed");
    refuses(RUN("m=4 n=99999999999999999999 k=1", "m=4 k; 2 threads; 1 in the list", "5"), "nothing that was timed");
    refuses(RUN("n=4 k=1 layout=nttt", "m=4 k; 2 threads; 1 in the list", "5"), "nothing that was timed");
    refuses(RUN("\"n=4 k=1", "m=4 k; 2 threads; 1 in the list", "5"), "nothing that was timed");
    assert_true(read_text(&t, RUN(GOOD, "m=4 gemm_sm90_x; 132 threads; 1 in the list", "5") "rooftile,1.0,exec,run,a,b\n", why));
    assert_true(t.enqueued);
    assert_int_equal(t.skipped, 1);
    trace_free(&t);
    assert_true(read_text(&t, RUN(GOOD, "m=4 gemv_x; 2 threads; 3 in the list", "5"), why));
    assert_int_equal(t.rows[0].call.batch, 0); /* the log tells the first of the list alone */
    trace_free(&t);
}

/* alpha = 0 reads neither X nor W: the epilogue of a product of no k. */
static void test_own_without_product(void **state) {
    (void)state;
    static const char log[] = RUN("m=4 n=8 k=64 x=f32 w=i4 y=f32 layout=nt epi=bias scale=f32/1x32 alpha=0",
                                  "m=4 gemv_x; 2 threads; 1 in the list", "5");
    char why[CLI_WHY];
    trace t;
    assert_true(read_text(&t, log, why));
    assert_int_equal(t.skipped, 0);
    has(find_row(&t, TRACE_GEMM, 4, 8, 0), "f32 i4:g32 f32", "nt", "bias", "", 1, 5);
    trace_free(&t);
}

/* A file of nothing but new names keeps to its bound of rows. */
static void test_many_kinds(void **state) {
    (void)state;
    trace t = {.format = ""};
    for (int i = 0; i < 70000; i++) {
        trace_call call = {.group = TRACE_OTHER};
        snprintf(call.name, sizeof call.name, "op %d", i);
        trace_count(&t, trace_intern(&t, &call), 1, 1);
    }
    assert_true(t.n <= (1 << 16) + TRACE_GROUPS);
    trace_free(&t);
}

static void test_whole_characters(void **state) {
    (void)state;
    static const char text[] = "a\xc3\xa4\xe2\x86\x92\xf0\x9f\x8c\xb3"; /* of 1, 2, 3 and 4 bytes */
    static const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
    for (size_t most = 0; most < sizeof whole / sizeof *whole; most++)
        assert_int_equal(cli_whole(text, most), whole[most]);
    assert_int_equal(cli_whole("\x80\x80\x80", 2), 2); /* no UTF-8: cut anywhere */
    trace_call call;
    char name[TRACE_NAME + 4];
    for (size_t more = 0; more < 3; more++) { /* a character across the end, cut here or by who hands the name over */
        memset(name, 'x', sizeof name);
        memcpy(name + TRACE_NAME - 2 - more, "\xe2\x86\x92", 4);
        trace_set_name(&call, name);
        assert_int_equal(strlen(call.name), more == 2 ? TRACE_NAME - 1 : TRACE_NAME - 2 - more);
        name[TRACE_NAME - 1] = '\0';
        trace_set_name(&call, name);
        assert_int_equal(strlen(call.name), more == 2 ? TRACE_NAME - 1 : TRACE_NAME - 2 - more);
    }
}

/* ---- memory ---- */

static bool refuse_next; /* of the requests for memory */
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);

static bool refuses_this(void) {
    const bool refused = refuse_next;
    refuse_next = false;
    return refused;
}

void *__wrap_calloc(size_t count, size_t size) { return refuses_this() ? NULL : __real_calloc(count, size); }
void *__wrap_reallocarray(void *old, size_t count, size_t size) {
    return refuses_this() ? NULL : __real_reallocarray(old, count, size);
}

static void take_new(void) { cli_alloc(1, 1); }
static void take_more(void) { cli_grow(NULL, 1, 1); }

/* Without memory the tool says so and ends. */
static void test_exhausted(void **state) {
    (void)state;
    void (*const takes[])(void) = {take_new, take_more};
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++) {
        char text[64] = "";
        int ends[2], status = 0;
        assert_int_equal(pipe(ends), 0);
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            dup2(ends[1], STDERR_FILENO);
            refuse_next = true;
            takes[i]();
            _exit(0);
        }
        close(ends[1]);
        assert_true(child > 0 && waitpid(child, &status, 0) == child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == CLI_LIBRARY);
        assert_true(read(ends[0], text, sizeof text - 1) > 0);
        assert_string_equal(text, "rooftile: out of memory\n");
        close(ends[0]);
    }
}

/* Of no text of a file a terminal takes orders: names, types, layouts, lists, the device. */
static void test_control_characters(void **state) {
    static const char log[] = "rooftile,0,dispatch,context,cpu,A\x1b[2J; isa,\n"
                              "rooftile,0,exec,run,m=4 n=8 k=8 x=\x1b[3m w=f32 y=f32 layout=nt epi=\xc2\x9b"
                              "31m compute=\b,m=4 k\x1bi; 2 threads; 1 in the list,9\n";
    char why[CLI_WHY];
    trace t;
    (void)state;
    assert_true(read_text(&t, log, why));
    assert_int_equal(t.n, 1);
    assert_string_equal(t.device, "A [2J");
    assert_string_equal(t.rows->call.name, "k i");
    assert_string_equal(t.rows->call.x, " [3m");
    assert_string_equal(t.rows->call.epi, "  31m");
    assert_string_equal(t.rows->call.compute, " ");
    trace_free(&t);
    assert_true(read_text(&t,
                          "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"ts\": 1, \"dur\": 2,"
                          " \"args\": {\"Input Dims\": [[2, 3], [3, 4]], \"Input type\": [\"a\\u001b[31m\", \"\\u009b\\n\"]}}]}",
                          why));
    assert_string_equal(t.rows->call.x, "a [31m");
    assert_string_equal(t.rows->call.w, "   ");
    trace_free(&t);
}

static void test_groups(void **state) {
    (void)state;
    assert_int_equal(trace_group_of("ncclDevKernel_AllReduce"), TRACE_COLLECTIVE);
    assert_int_equal(trace_group_of("void vllm::cross_device_reduce_1stage<bf16>"), TRACE_COLLECTIVE);
    assert_int_equal(trace_group_of("aten::_flash_attention_forward"), TRACE_ATTENTION);
    assert_int_equal(trace_group_of("aten::_native_multi_head_attention"), TRACE_OTHER);
    assert_int_equal(trace_group_of("void rms_norm_kernel"), TRACE_NORM);
    assert_int_equal(trace_group_of("aten::normal_"), TRACE_OTHER);
    assert_int_equal(trace_group_of("sm90_xmma_gemm_bf16"), TRACE_GEMM);
    assert_int_equal(trace_group_of("fbgemm::permute_sparse_features"), TRACE_OTHER);
    assert_int_equal(trace_group_of("autograd::engine::evaluate_function: NativeLayerNormBackward0"), TRACE_OTHER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch_on_cpu), cmocka_unit_test(test_torch_on_gpu), cmocka_unit_test(test_torch_shapes),
        cmocka_unit_test(test_torch_bad_shapes), cmocka_unit_test(test_nesting), cmocka_unit_test(test_phases),
        cmocka_unit_test(test_torch_damage), cmocka_unit_test(test_deep_nesting), cmocka_unit_test(test_cutting),
        cmocka_unit_test(test_onednn), cmocka_unit_test(test_onednn_lines), cmocka_unit_test(test_onednn_damage),
        cmocka_unit_test(test_own_log), cmocka_unit_test(test_own_rows), cmocka_unit_test(test_own_scales),
        cmocka_unit_test(test_own_damage), cmocka_unit_test(test_own_without_product), cmocka_unit_test(test_many_kinds),
        cmocka_unit_test(test_control_characters), cmocka_unit_test(test_whole_characters), cmocka_unit_test(test_exhausted),
        cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
