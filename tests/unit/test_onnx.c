/* SPDX-License-Identifier: Apache-2.0
 *
 * test_onnx.c - ONNX graphs: which side and which way a weight lies, where its numbers are, what its codes mean, what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx_builder.h"
#include "rooftile_model.h"
#include "test_files.h"

static pb_builder b;
static rft_error err;

static rft_status open_file(rft_model **model) {
    err = (rft_error){0};
    *model = NULL;
    return rft_model_open_memory(b.bytes, b.size, model, &err);
}

static rft_model *open_good(void) {
    rft_model *model;
    onnx_end(&b);
    if (open_file(&model) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return model;
}

static void assert_refused(rft_status status, const char *says) {
    rft_model *model;
    onnx_end(&b);
    if (open_file(&model) != status || !strstr(err.message, says)) {
        fail_msg("%d, '%s', not '%s'", (int)err.status, err.message, says);
    }
}

static rft_layer row_of(const rft_model *model, int64_t row) {
    rft_layer layer = rft_layer_init();
    assert_int_equal(rft_model_get_layer(model, row, &(rft_phase){RFT_PHASE_PREFILL, 2, 3}, &layer, NULL), RFT_OK);
    return layer;
}

/* Six numbers, as [2][3] or otherwise. */
static const float six[6] = {1, 2, 3, 4, 5, 6};

static void assert_row(const rft_model *model, int64_t row, int64_t n, int64_t k, rft_order x, rft_order w,
                       const char *epilogue) {
    const rft_layer l = row_of(model, row);
    if (l.n != n || l.k != k || l.m != 6 || l.x_order != x || l.order != w || strcmp(l.epilogue, epilogue) != 0 || l.unknown) {
        fail_msg("%s: %lld x %lld of %lld rows, orders %d %d, %s", l.name, (long long)l.n, (long long)l.k, (long long)l.m,
                 (int)l.x_order, (int)l.order, l.epilogue);
    }
}

#define K_FIRST RFT_K_CONTIGUOUS
#define N_FIRST RFT_MN_CONTIGUOUS

static void begin_gemm(int trans_a, int trans_b, const char *inputs) {
    onnx_begin(&b);
    onnx_begin_node(&b, "Gemm", inputs, "y");
    onnx_number(&b, "transA", trans_a);
    onnx_number(&b, "transB", trans_b);
    pb_end(&b);
    onnx_initializer(&b, "w", ONNX_FLOAT, 2, 3, six, sizeof six);
}

/* w is [2][3]: on the right k = 2, on the left k = 3; turned the other way round. */
static void sides_are_told_apart(void **state) {
    (void)state;
    static const struct {
        const char *inputs;
        int trans_a, trans_b;
        int64_t n, k;
        rft_order x, w;
    } cases[] = {
        {"x w", 0, 0, 3, 2, K_FIRST, N_FIRST}, {"x w", 0, 1, 2, 3, K_FIRST, K_FIRST}, {"x w", 1, 0, 3, 2, N_FIRST, N_FIRST},
        {"x w", 1, 1, 2, 3, N_FIRST, K_FIRST}, {"w x", 0, 0, 2, 3, N_FIRST, K_FIRST}, {"w x", 1, 0, 3, 2, N_FIRST, N_FIRST},
        {"w x", 0, 1, 2, 3, K_FIRST, K_FIRST},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_gemm(cases[i].trans_a, cases[i].trans_b, cases[i].inputs);
        rft_model *model = open_good();
        assert_row(model, 0, cases[i].n, cases[i].k, cases[i].x, cases[i].w, "none");
        rft_model_free(model);
    }
}

static void epilogues_are_found(void **state) {
    (void)state;
    begin_gemm(0, 0, "x w c");
    onnx_initializer(&b, "c", ONNX_FLOAT, 0, 3, six, 12);
    rft_model *model = open_good();
    assert_row(model, 0, 3, 2, K_FIRST, N_FIRST, "bias");
    assert_string_equal(row_of(model, 0).name, "w");
    assert_true(row_of(model, 0).bias_tensor == rft_model_find_tensor(model, "c"));
    rft_model_free(model);
    begin_gemm(0, 0, "x w x");
    model = open_good();
    assert_row(model, 0, 3, 2, K_FIRST, N_FIRST, "add");
    rft_model_free(model);
    begin_gemm(0, 0, "x w");
    onnx_node(&b, "Add", "c y", "z"); /* of as many as y has columns */
    onnx_initializer(&b, "c", ONNX_FLOAT, 1, 3, six, 12);
    model = open_good();
    assert_row(model, 0, 3, 2, K_FIRST, N_FIRST, "bias");
    rft_model_free(model);
    begin_gemm(0, 0, "x w");
    onnx_node(&b, "Add", "y c", "z");
    onnx_initializer(&b, "c", ONNX_FLOAT, 0, 1, six, 4); /* a number for all is none */
    model = open_good();
    assert_row(model, 0, 3, 2, K_FIRST, N_FIRST, "none");
    rft_model_free(model);
}

static void assert_values(const rft_model *model, const char *name, int64_t rows, int64_t columns, const float *wanted) {
    float got[64];
    const int64_t at = rft_model_find_tensor(model, name);
    assert_true(at >= 0 && rows * columns <= 64);
    if (rft_model_decode(model, at, 0, rows, RFT_F32, got, 0, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    for (int64_t i = 0; i < rows * columns; i++) {
        if (got[i] != wanted[i]) {
            fail_msg("%s[%lld] is %g, not %g", name, (long long)i, (double)got[i], (double)wanted[i]);
        }
    }
}

/* The same numbers as packed floats, as one float a field, and as 16-bit integers. */
static void numbers_are_found(void **state) {
    (void)state;
    static const uint16_t halves[6] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};
    onnx_begin(&b);
    onnx_node(&b, "MatMul", "x a", "y");
    onnx_begin_tensor(&b, 5, "a", ONNX_FLOAT, 2, 3);
    pb_data(&b, 4, six, sizeof six);
    pb_end(&b);
    onnx_begin_tensor(&b, 5, "b", ONNX_FLOAT, 2, 3);
    for (int i = 0; i < 6; i++) {
        pb_varint(&b, 4 << 3 | 5);
        memcpy(b.bytes + b.size, &six[i], 4);
        b.size += 4;
    }
    pb_end(&b);
    onnx_begin_tensor(&b, 5, "c", ONNX_FLOAT16, 2, 3);
    for (int i = 0; i < 6; i++) {
        pb_number(&b, 5, halves[i]);
    }
    pb_end(&b);
    onnx_initializer(&b, "d", ONNX_FLOAT16, 2, 3, halves, sizeof halves);
    onnx_begin_tensor(&b, 5, "shape", ONNX_INT64, 0, 2); /* int64_data: no weight */
    pb_number(&b, 7, 5);
    pb_number(&b, 7, 6);
    pb_end(&b);
    rft_model *model = open_good();
    rft_model_info info = rft_model_info_init();
    assert_int_equal(rft_model_get_info(model, &info, NULL), RFT_OK);
    assert_true(info.format == RFT_MODEL_ONNX && info.unknown && info.n_tensors == 4 && info.parameters == 24);
    assert_string_equal(info.architecture, "onnx");
    assert_string_equal(info.name, "graph");
    for (const char *name = "abcd"; *name; name++) {
        assert_values(model, (const char[2]){*name, 0}, 2, 3, six);
    }
    rft_model_free(model);
}

static void codes_have_scales(void **state) {
    (void)state;
    static const signed char codes[6] = {10, 20, 30, -10, -20, -30};
    static const float scales[3] = {1, 0.5f, 0.25f}, turned[6] = {10, -10, 10, -10, 7.5f, -7.5f};
    onnx_begin(&b);
    onnx_begin_node(&b, "DequantizeLinear", "w s z", "d");
    onnx_number(&b, "axis", 1);
    pb_end(&b);
    onnx_node(&b, "MatMul", "x d", "y");
    onnx_initializer(&b, "w", ONNX_INT8, 2, 3, codes, 6);
    onnx_initializer(&b, "s", ONNX_FLOAT, 0, 3, scales, 12);
    onnx_initializer(&b, "z", ONNX_INT8, 0, 3, "\0\0\0", 3);
    rft_model *model = open_good();
    const rft_layer l = row_of(model, 0);
    assert_true(l.n == 3 && l.k == 2 && l.order == K_FIRST && l.weight_bytes == 6 + 12 + 3);
    assert_string_equal(l.scheme, "onnx int8");
    assert_values(model, "w", 3, 2, turned);
    rft_model_free(model);
}

/* A Transpose of 2 numbers; perm NULL: it says nothing. Numbers one a field, or packed. */
static void turn(const char *from, const char *to, const unsigned char *perm, bool packed) {
    onnx_begin_node(&b, "Transpose", from, to);
    if (perm) {
        pb_begin(&b, 5);
        pb_text(&b, 1, "perm");
        if (packed) {
            pb_data(&b, 8, perm, 2);
        }
        for (int i = 0; i < 2 && !packed; i++) {
            pb_number(&b, 8, perm[i]);
        }
        pb_end(&b);
    }
    pb_end(&b);
}

/* What hands a constant on is followed, and a Transpose of it exchanges its sides. */
static void constants_are_followed(void **state) {
    (void)state;
    static const unsigned char exchange[] = {1, 0}, keep[] = {0, 1};
    const unsigned char *const perms[] = {NULL, exchange, exchange};
    for (int i = 0; i < 3; i++) {
        onnx_begin(&b);
        onnx_node(&b, "Cast", "w", "c");
        turn("c", "t", perms[i], i == 2);
        onnx_node(&b, "MatMul", "x t", "y");
        onnx_initializer(&b, "w", ONNX_FLOAT, 2, 3, six, sizeof six);
        rft_model *model = open_good();
        assert_row(model, 0, 2, 3, K_FIRST, K_FIRST, "none");
        rft_model_free(model);
    }
    onnx_begin(&b);
    turn("w", "t", keep, false); /* exchanges nothing: not what is read here */
    onnx_node(&b, "MatMul", "x t", "y");
    onnx_initializer(&b, "w", ONNX_FLOAT, 2, 3, six, sizeof six);
    assert_refused(RFT_E_UNSUPPORTED, "no node of the graph multiplies by a constant matrix");
}

/* A matrix within a node. */
static void constants_are_found(void **state) {
    (void)state;
    onnx_begin(&b);
    onnx_begin_node(&b, "Constant", "", "w");
    pb_begin(&b, 5);
    pb_text(&b, 1, "value");
    onnx_begin_tensor(&b, 5, "", ONNX_FLOAT, 2, 3);
    pb_data(&b, 9, six, sizeof six);
    pb_end(&b);
    pb_end(&b);
    pb_end(&b);
    onnx_node(&b, "MatMul", "x w", "y");
    rft_model *model = open_good();
    assert_row(model, 0, 3, 2, K_FIRST, N_FIRST, "none");
    assert_values(model, "w", 2, 3, six);
    rft_model_free(model);
}

/* Dimensions and whole numbers that are packed; of more dimensions than a tensor has the outermost become one. */
static void packed_numbers_are_found(void **state) {
    (void)state;
    onnx_begin(&b);
    onnx_node(&b, "MatMul", "x a", "y");
    pb_begin(&b, 5);
    pb_data(&b, 1, "\2\3", 2);
    pb_number(&b, 2, ONNX_FLOAT16);
    pb_text(&b, 8, "a");
    pb_data(&b, 5, "\x80\x78\x80\x80\1\x80\x84\1\x80\x88\1\x80\x8a\1\x80\x8c\1", 17); /* 1.0 to 6.0 as varints */
    pb_end(&b);
    pb_begin(&b, 5);
    pb_data(&b, 1, "\1\2\1\1\3", 5);
    pb_number(&b, 2, ONNX_FLOAT);
    pb_text(&b, 8, "deep");
    pb_data(&b, 9, six, sizeof six);
    pb_end(&b);
    rft_model *model = open_good();
    rft_tensor deep = rft_tensor_init();
    assert_values(model, "a", 2, 3, six);
    assert_int_equal(rft_model_get_tensor(model, rft_model_find_tensor(model, "deep"), &deep, NULL), RFT_OK);
    assert_true(deep.n_dims == 4 && deep.dims[0] == 3 && deep.dims[3] == 2);
    rft_model_free(model);
}

/* Codes with a scale of two k each, as stored [k][n], and as stored [n][k] and turned; with a scale of each k. */
static void scales_lie_along_k(void **state) {
    (void)state;
    static const signed char codes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const float scales[4] = {1, 0.5f, 2, 0.25f};
    static const float plain[8] = {1, 3, 10, 14, 1, 2, 1.5f, 2}, turned[8] = {1, 2, 1.5f, 2, 10, 12, 1.75f, 2};
    static const float each[8] = {1, 1.5f, 10, 1.75f, 2, 2, 12, 2};
    for (int i = 0; i < 3; i++) {
        onnx_begin(&b);
        onnx_begin_node(&b, "DequantizeLinear", "w s", "d");
        onnx_number(&b, "axis", i == 1 ? -1 : 0);
        if (i < 2) {
            onnx_number(&b, "block_size", 2);
        }
        pb_end(&b);
        turn("d", "t", NULL, false);
        onnx_node(&b, "MatMul", i == 1 ? "x t" : "x d", "y");
        onnx_initializer(&b, "w", ONNX_INT8, i == 1 ? 2 : 4, i == 1 ? 4 : 2, codes, 8);
        onnx_initializer(&b, "s", ONNX_FLOAT, i < 2 ? 2 : 0, i < 2 ? 2 : 4, scales, sizeof scales);
        rft_model *model = open_good();
        assert_row(model, 0, 2, 4, K_FIRST, K_FIRST, "none");
        assert_values(model, "w", 2, 4, i == 0 ? plain : i == 1 ? turned : each);
        rft_model_free(model);
    }
}

/* One row of 12 in blocks of 8: 4-bit codes, low nibble first, the second block padded. */
static void begin_blocks(int64_t n, int64_t k, int64_t block, size_t codes) {
    static const unsigned char bytes[64] = {0x98, 0xba, 0xdc, 0xfe, 0x10, 0x32};
    onnx_begin(&b);
    onnx_begin_node(&b, "MatMulNBits", "x w s z", "y");
    pb_text(&b, 7, "com.microsoft");
    onnx_number(&b, "N", n);
    onnx_number(&b, "K", k);
    onnx_number(&b, "bits", 4);
    onnx_number(&b, "block_size", block);
    pb_end(&b);
    onnx_initializer(&b, "w", ONNX_UINT8, 0, (int64_t)codes, bytes, codes);
}

static void blocks_are_read(void **state) {
    (void)state;
    static const float scales[2] = {2, 0.5f}, wanted[12] = {-2, 0, 2, 4, 6, 8, 10, 12, -1, -0.5f, 0, 0.5f};
    begin_blocks(1, 12, 8, 8);
    onnx_initializer(&b, "s", ONNX_FLOAT, 0, 2, scales, 8);
    onnx_initializer(&b, "z", ONNX_UINT8, 0, 1, "\x29", 1); /* 9 and 2 */
    rft_model *model = open_good();
    const rft_layer l = row_of(model, 0);
    rft_weight_desc desc = rft_weight_desc_init();
    assert_true(l.n == 1 && l.k == 12 && l.weight_bytes == 8 + 8 + 1 && l.type == RFT_U4);
    assert_string_equal(l.scheme, "nbits uint4 g8");
    assert_values(model, "w", 1, 12, wanted);
    assert_int_equal(rft_model_describe_weight(model, l.tensor, &desc, NULL), RFT_OK);
    assert_true(desc.group_k == 8 && desc.scale == RFT_F32 && desc.zero == RFT_U8);
    rft_model_free(model);
}

static void branches_count_once(void **state) {
    (void)state;
    onnx_begin(&b);
    onnx_begin_node(&b, "If", "c", "y");
    for (int i = 0; i < 2; i++) {
        pb_begin(&b, 5);
        pb_text(&b, 1, i ? "then_branch" : "else_branch");
        pb_begin(&b, 6);
        onnx_node(&b, "MatMul", "x w", "y");
        onnx_node(&b, "MatMul", "x own", "y");
        onnx_initializer(&b, "own", ONNX_FLOAT, 2, 3, six, sizeof six);
        pb_end(&b);
        pb_end(&b);
    }
    pb_end(&b);
    onnx_initializer(&b, "w", ONNX_FLOAT, 2, 3, six, sizeof six);
    rft_model *model = open_good();
    assert_int_equal(rft_model_layer_count(model), 3); /* w of both, and own of each */
    assert_true(row_of(model, 0).count == 1);
    assert_string_equal(row_of(model, 1).name, "#1/own");
    assert_string_equal(row_of(model, 2).name, "#2/own");
    rft_shard shard = rft_shard_init();
    assert_int_equal(rft_model_get_shard(model, 0, &(rft_phase){RFT_PHASE_DECODE, 1, 1}, &(rft_ranks){.tp = 2}, &shard, NULL),
                     RFT_E_UNSUPPORTED);
    assert_int_equal(rft_model_part_count(model), 0);
    rft_model_free(model);
}

/* ---- files beside ---- */

static void add_entry(const char *key, const char *value) {
    pb_begin(&b, 13);
    pb_text(&b, 1, key);
    pb_text(&b, 2, value);
    pb_end(&b);
}

static void put_external(const char *location, const char *offset, const char *length) {
    onnx_begin(&b);
    onnx_node(&b, "MatMul", "x w", "y");
    onnx_begin_tensor(&b, 5, "w", ONNX_FLOAT, 2, 3);
    add_entry("location", location);
    if (offset) {
        add_entry("offset", offset);
    }
    if (length) {
        add_entry("length", length);
    }
    pb_number(&b, 14, 1);
    pb_end(&b);
    onnx_end(&b);
    write_file("model.onnx", b.bytes, b.size);
}

static void assert_external(rft_status status, const char *says) {
    rft_model *model = NULL;
    err = (rft_error){0};
    if (rft_model_open(in_folder("model.onnx"), &model, &err) != status || !strstr(err.message, says)) {
        fail_msg("%d, '%s', not '%s'", (int)err.status, err.message, says);
    }
    if (model) {
        assert_values(model, "w", 2, 3, six);
    }
    rft_model_free(model);
}

static void data_may_lie_beside(void **state) {
    (void)state;
    rft_model *model;
    float padded[8] = {0};
    memcpy(padded + 1, six, sizeof six);
    write_file("weights.bin", padded, sizeof padded);
    put_external("weights.bin", "4", "24");
    assert_external(RFT_OK, "");
    assert_int_equal(open_file(&model), RFT_E_UNSUPPORTED); /* in memory there is nothing beside */
    assert_non_null(strstr(err.message, "tensor 'w' lies in another file"));
    put_external("./weights.bin", "4", NULL);
    assert_external(RFT_OK, "");
    put_external("weights.bin", "9", "24");
    assert_external(RFT_E_ARG, "tensor 'w' of 24 bytes at offset 9 ends past the 32 bytes of 'weights.bin'");
    put_external("weights.bin", "18446744073709551615", NULL);
    assert_external(RFT_E_ARG, "the offset of a tensor in another file is no whole number");
    put_external("weights.bin", "18446744073709551600", NULL);
    assert_external(RFT_E_ARG, "ends past");
    put_external("weights.bin", "4", "20");
    assert_external(RFT_E_ARG, "takes 24 bytes, but its length is 20");
    put_external("weights.bin", "-4", NULL);
    assert_external(RFT_E_ARG, "no whole number");
    put_external("none.bin", NULL, NULL);
    assert_external(RFT_E_IO, "none.bin");
}

static void several_files_may_lie_beside(void **state) {
    (void)state;
    static const char *const files[] = {"m.bin", "a.bin", "z.bin", "m.bin", "b.bin"};
    onnx_begin(&b);
    onnx_node(&b, "MatMul", "x w0", "y");
    for (int i = 0; i < 5; i++) {
        const char name[] = {'w', (char)('0' + i), '\0'};
        write_file(files[i], six, sizeof six);
        onnx_begin_tensor(&b, 5, name, ONNX_FLOAT, 2, 3);
        add_entry("location", files[i]);
        pb_number(&b, 14, 1);
        pb_end(&b);
    }
    onnx_end(&b);
    write_file("model.onnx", b.bytes, b.size);
    rft_model *model = NULL;
    assert_int_equal(rft_model_open(in_folder("model.onnx"), &model, &err), RFT_OK);
    for (int i = 0; i < 5; i++) {
        assert_values(model, (const char[]){'w', (char)('0' + i), '\0'}, 2, 3, six);
    }
    rft_model_free(model);
}

static void files_elsewhere_stay_closed(void **state) {
    (void)state;
    static const char *const outside[] = {"/etc/passwd", "..", "../weights.bin", "a/../../weights.bin", "a/..", "", "a\nb"};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        put_external(outside[i], NULL, NULL);
        assert_external(RFT_E_ARG, "which is no path of 1 to 255 bytes inside of the model's folder");
    }
}

/* ---- refusals ---- */

static void begin_tensor(int64_t rows, int64_t columns) {
    onnx_begin(&b);
    onnx_node(&b, "MatMul", "x w", "y");
    onnx_begin_tensor(&b, 5, "w", ONNX_FLOAT, rows, columns);
}

static void bad_tensors_are_refused(void **state) {
    (void)state;
    begin_tensor(2, 3);
    pb_data(&b, 9, six, 20);
    pb_end(&b);
    assert_refused(RFT_E_ARG, "tensor 'w' of 6 f32 has 20 bytes of data, not 24");
    begin_tensor(INT64_MAX, 3);
    pb_end(&b);
    assert_refused(RFT_E_ARG, "a tensor has the dimension 3");
    begin_tensor(2, 3);
    pb_end(&b);
    assert_refused(RFT_E_UNSUPPORTED, "no node"); /* without data */
    begin_tensor(2, 3);
    pb_data(&b, 4, six, 23);
    pb_end(&b);
    assert_refused(RFT_E_ARG, "23 bytes of packed numbers of 4");
    onnx_begin(&b);
    onnx_begin_tensor(&b, 5, "w", ONNX_FLOAT16, 1, 2);
    pb_data(&b, 4, six, 4);
    pb_data(&b, 4, six, 4);
    pb_end(&b);
    assert_refused(RFT_E_ARG, "tensor 'w' is f16, but its numbers are of another width");
    onnx_begin(&b);
    onnx_initializer(&b, "", ONNX_FLOAT, 2, 3, six, sizeof six);
    assert_refused(RFT_E_ARG, "the tensor name of 0 bytes is empty");
    onnx_begin(&b);
    onnx_initializer(&b, "w", ONNX_FLOAT, 2, 3, six, sizeof six);
    onnx_initializer(&b, "w", ONNX_FLOAT, 2, 3, six, sizeof six);
    assert_refused(RFT_E_ARG, "the tensor 'w' occurs twice");
}

static void bad_graphs_are_refused(void **state) {
    (void)state;
    rft_model *model;
    onnx_begin(&b);
    onnx_node(&b, "MatMul", "x x", "y");
    assert_refused(RFT_E_UNSUPPORTED, "no node of the graph multiplies by a constant matrix");
    b.size = b.depth = 0;
    pb_number(&b, 1, 9);
    pb_text(&b, 2, "a producer");
    assert_int_equal(open_file(&model), RFT_E_ARG);
    assert_non_null(strstr(err.message, "no field 7, the graph"));
    begin_blocks(1, 12, 4, 8);
    assert_refused(RFT_E_ARG, "MatMulNBits of 'w': N = 1, K = 12, 4 bits in blocks of 4 are no weight");
    begin_blocks(1, 12, 8, 7);
    assert_refused(RFT_E_ARG, "2 blocks of 8 demand 8 u8 codes");
    onnx_begin(&b);
    onnx_begin_node(&b, "MatMulNBits", "x w s z g", "y");
    pb_text(&b, 7, "com.microsoft");
    pb_end(&b);
    onnx_initializer(&b, "w", ONNX_UINT8, 0, 3, six, 3);
    onnx_initializer(&b, "s", ONNX_FLOAT, 0, 1, six, 4);
    assert_refused(RFT_E_UNSUPPORTED, "MatMulNBits of 'w' has an order of groups (g_idx)");
    begin_blocks(INT64_MAX, 12, 8, 8);
    assert_refused(RFT_E_ARG, "are no weight");
}

/* Graphs in graphs, without end. */
static void depth_is_bounded(void **state) {
    (void)state;
    enum { GRAPHS = 10 };
    static unsigned char inner[1 << 12], outer[1 << 12];
    size_t size = 0;
    for (int i = 0; i < GRAPHS; i++) { /* from the inside out: node { attribute { graph } } */
        b.size = b.depth = 0;
        pb_begin(&b, 1);
        pb_begin(&b, 5);
        pb_data(&b, 6, inner, size);
        pb_end(&b);
        pb_end(&b);
        memcpy(outer, b.bytes, b.size);
        memcpy(inner, outer, size = b.size);
    }
    b.size = b.depth = 0;
    pb_number(&b, 1, 9);
    pb_data(&b, 7, inner, size);
    rft_model *model;
    assert_int_equal(open_file(&model), RFT_E_ARG);
    assert_non_null(strstr(err.message, "graphs lie over 8 deep in each other"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides_are_told_apart),    cmocka_unit_test(epilogues_are_found),
        cmocka_unit_test(numbers_are_found),       cmocka_unit_test(codes_have_scales),
        cmocka_unit_test(blocks_are_read),         cmocka_unit_test(branches_count_once),
        cmocka_unit_test(data_may_lie_beside),     cmocka_unit_test(files_elsewhere_stay_closed),
        cmocka_unit_test(bad_tensors_are_refused), cmocka_unit_test(bad_graphs_are_refused),
        cmocka_unit_test(depth_is_bounded),        cmocka_unit_test(constants_are_followed),
        cmocka_unit_test(constants_are_found),     cmocka_unit_test(packed_numbers_are_found),
        cmocka_unit_test(scales_lie_along_k),      cmocka_unit_test(several_files_may_lie_beside),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
