/* SPDX-License-Identifier: Apache-2.0
 *
 * test_import_float.c - scaled FP8 and int8, MXFP4, NVFP4 and bitsandbytes: golden bytes with values worked out on paper, ragged
 * blocks, nested scales, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "import_test.h"

#include "format/decode/decode_scalar.h"

#define FP8      "{\"quant_method\":\"fp8\",\"fmt\":\"e4m3\",\"weight_block_size\":[2,4]}"
#define CT(more) "{\"quant_method\":\"compressed-tensors\"" more "}"
#define BNB      "{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true}"

/* ---- a scale for a block, a row, a tensor ---- */

/* 3 x 5 weights in blocks of 2 x 4: one multiplies by the "inverse" scale, and the last blocks are ragged. */
static void deepseek_blocks(void **state) {
    (void)state;
    static const unsigned char codes[15] = {0x38, 0x40, 0xb8, 0x00, 0x38, 0x08, 0x01, 0x7e,
                                            0x38, 0x44, 0x38, 0x38, 0x38, 0x38, 0x38};
    static const float scales[4] = {2, 10, 100, 1000};
    static const float want[15] = {2, 4, -2, 0, 10, 0.03125f, 0.00390625f, 896, 2, 30, 100, 100, 100, 100, 1000};
    begin();
    add_bytes("l.weight", "F8_E4M3", "[3,5]", codes, 15);
    add_floats("l.weight_scale_inv", "[2,2]", scales, 4);
    add("norm.weight", "BF16", "[5]", 10);
    import_good(FP8);
    assert_weights("l.weight", "fp8 2x4", 3, 5, want);
    assert_int_equal(low_bit, 0); /* groups of 4 */
    assert_int_equal(imported.tensors.count, 2);
    drop();
}

/* Blocks of DeepSeek's shape in its own file, ragged on both sides. */
static void deepseek_low_bit(void **state) {
    (void)state;
    enum { N = 19, K = 43 };
    unsigned char codes[N * K];
    float scales[2 * 3], want[N * K];
    for (int i = 0; i < N * K; i++) {
        codes[i] = (unsigned char)(i * 11 % 127 + i % 2 * 128);
    }
    for (int i = 0; i < 6; i++) {
        scales[i] = 0.001f * (float)(i + 1);
    }
    for (int i = 0; i < N * K; i++) {
        want[i] = rft__e4m3_f32(codes[i]) * scales[i / K / 16 * 3 + i % K / 16];
    }
    begin();
    add_bytes("l.weight", "F8_E4M3", "[19,43]", codes, sizeof codes);
    add_floats("l.weight_scale_inv", "[2,3]", scales, 6);
    import_good("{\"quant_method\":\"fp8\",\"fmt\":\"e4m3\",\"weight_block_size\":[16,16]}");
    assert_weights("l.weight", "fp8 16x16", N, K, want);
    assert_int_equal(low_bit, RFT_E4M3);
    drop();
}

static void e5m2_rows(void **state) {
    (void)state;
    static const unsigned char codes[8] = {0x3c, 0x40, 0xbc, 0x01, 0x7b, 0x04, 0x80, 0xc0};
    static const float scales[2] = {2, 0.5f};
    float want[8];
    for (int i = 0; i < 8; i++) {
        want[i] = rft__e5m2_f32(codes[i]) * scales[i / 4];
    }
    assert_true(want[0] == 2 && want[4] == 28672);
    begin();
    add_bytes("l.weight", "F8_E5M2", "[2,4]", codes, 8);
    add_floats("l.weight_scale", "[2,1]", scales, 2);
    import_good(CT());
    assert_weights("l.weight", "fp8 a row", 2, 4, want);
    assert_int_equal(low_bit, RFT_E5M2);
    drop();
}

static void scales_of_all_kinds(void **state) {
    (void)state;
    static const unsigned char codes[8] = {0x38, 0x40, 0x48, 0x38, 0x38, 0x38, 0xc0, 0x38};
    static const int8_t bytes[8] = {1, -2, 127, -128, 0, 3, 4, 5};
    static const float one = 0.5f, two[2] = {2, 3}, four[4] = {1, 2, 3, 4};
    static const float whole[8] = {0.5f, 1, 2, 0.5f, 0.5f, 0.5f, -1, 0.5f}, row[8] = {2, 4, 8, 2, 3, 3, -6, 3},
                       int_row[8] = {2, -4, 254, -256, 0, 9, 12, 15}, group[8] = {1, 2, 8, 2, 3, 3, -8, 4};
    begin();
    add_bytes("a.weight", "F8_E4M3", "[2,4]", codes, 8);
    add_floats("a.weight_scale", "[1]", &one, 1);
    add_floats("a.input_scale", "[1]", &one, 1);
    add_bytes("b.weight", "F8_E4M3", "[2,4]", codes, 8);
    add_floats("b.weight_scale", "[2,1]", two, 2);
    add_bytes("c.weight", "I8", "[2,4]", bytes, 8);
    add_floats("c.weight_scale", "[2]", two, 2);
    add_bytes("d.weight", "F8_E4M3", "[2,4]", codes, 8);
    add_floats("d.weight_scale", "[2,2]", four, 4);
    import_good(CT(",\"config_groups\":{\"g\":{\"weights\":{\"num_bits\":8,\"group_size\":2}}}"));
    assert_weights("a.weight", "fp8 a tensor", 2, 4, whole);
    assert_int_equal(low_bit, RFT_E4M3);
    assert_weights("b.weight", "fp8 a row", 2, 4, row);
    assert_int_equal(low_bit, RFT_E4M3);
    assert_weights("c.weight", "int8 a row", 2, 4, int_row);
    assert_int_equal(low_bit, RFT_I8);
    assert_weights("d.weight", "fp8 1x2", 2, 4, group);
    assert_int_equal(imported.tensors.count, 4);
    drop();
}

static void bad_scales(void **state) {
    (void)state;
    static const int8_t zero = 1;
    begin();
    add("l.weight", "F8_E4M3", "[3,5]", 15);
    add("l.weight_scale_inv", "F32", "[3,2]", 24);
    assert_refused(FP8, RFT_E_ARG, "3 x 2 scales fits no part of 3 x 5 weights");
    begin();
    add("l.weight", "F8_E4M3", "[3,5]", 15);
    add("l.weight_scale_inv", "U8", "[2,2]", 4);
    assert_refused(FP8, RFT_E_UNSUPPORTED, "'l.weight_scale_inv' is u8");
    begin();
    add("l.weight", "I8", "[1,4]", 4);
    add("l.weight_scale", "F32", "[1,1]", 4);
    add_bytes("l.weight_zero_point", "I8", "[1,1]", &zero, 1);
    assert_refused(CT(), RFT_E_UNSUPPORTED, "zero points of 8-bit weights");
    begin();
    add("l.weight", "I8", "[1,4]", 4);
    add("l.weight_scale", "F32", "[1,1]", 4);
    add("l.weight_zero_point", "F4", "[1,2]", 1);
    assert_refused(CT(), RFT_E_UNSUPPORTED, "'l.weight_zero_point' is e2m1");
}

/* ---- E2M1 ---- */

static const float e2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};

/* Neighbours in one byte, the first low; each 16 bytes under a power of two, of which the least is 2^-127. */
static void mxfp4_golden(void **state) {
    (void)state;
    unsigned char codes[2][2][2][16];
    static const unsigned char scales[8] = {127, 128, 126, 130, 127, 127, 0, 120};
    float want[4 * 64];
    for (int i = 0; i < 128; i++) {
        ((unsigned char *)codes)[i] = (unsigned char)(0x21 + 7 * i);
    }
    for (int i = 0; i < 256; i++) {
        const unsigned byte = ((unsigned char *)codes)[i / 2];
        want[i] = e2m1[i % 2 ? byte >> 4 : byte & 15u] * ldexpf(1, (int)scales[i / 32] - 127);
    }
    assert_true(want[0] == 0.5f && want[1] == 1);
    begin();
    add_bytes("m.gate_up_proj_blocks", "U8", "[2,2,2,16]", codes, 128);
    add_bytes("m.gate_up_proj_scales", "U8", "[2,2,2]", scales, 8);
    add("m.gate_up_proj_bias", "BF16", "[2,2]", 8);
    import_good("{\"quant_method\":\"mxfp4\"}");
    assert_weights("m.gate_up_proj", "mxfp4", 4, 64, want);
    assert_int_equal(low_bit, RFT_E2M1);
    const rft__tensor *t = tensor_named("m.gate_up_proj");
    assert_true(t->n_dims == 3 && t->dims[1] == 2 && t->dims[2] == 2 && t->bytes == 136);
    drop();
    begin();
    add_bytes("l.weight_packed", "U8", "[4,32]", codes, 128);
    add_bytes("l.weight_scale", "U8", "[4,2]", scales, 8);
    import_good(CT(",\"format\":\"mxfp4-pack-quantized\""));
    assert_weights("l.weight", "mxfp4", 4, 64, want);
    assert_int_equal(low_bit, RFT_E2M1);
    drop();
}

/* The same bits: by one file's scale one divides, by the other's one multiplies. */
static void nvfp4_golden(void **state) {
    (void)state;
    static const unsigned char codes[16] = {0x21, 0x43, 0x65, 0x87, 0xa9, 0xcb, 0xed, 0x0f, 0x77, 0, 0, 0, 0, 0, 0, 0xf0};
    static const unsigned char scales[2] = {0x38, 0x40};
    static const float half = 0.5f, twice = 2;
    float want[32];
    for (int i = 0; i < 32; i++) {
        want[i] = e2m1[codes[i / 2] >> 4 * (i % 2) & 15] * (i < 16 ? 1.0f : 2.0f) * 0.5f;
    }
    assert_true(want[0] == 0.25f && want[1] == 0.5f && want[16] == 6 && want[31] == -6);
    begin();
    add_bytes("l.weight_packed", "U8", "[1,16]", codes, 16);
    add_bytes("l.weight_scale", "F8_E4M3", "[1,2]", scales, 2);
    add_floats("l.weight_global_scale", "[1]", &twice, 1);
    add_floats("l.input_global_scale", "[1]", &twice, 1);
    import_good(CT(",\"format\":\"nvfp4-pack-quantized\""));
    assert_weights("l.weight", "nvfp4", 1, 32, want);
    assert_true(low_bit == RFT_E2M1 && tensor_named("l.weight")->import->flags == RFT_WEIGHT_GLOBAL_OVER);
    assert_int_equal(imported.tensors.count, 1);
    drop();
    begin();
    add_bytes("l.weight", "U8", "[1,16]", codes, 16);
    add_bytes("l.weight_scale", "F8_E4M3", "[1,2]", scales, 2);
    add_floats("l.weight_scale_2", "[]", &half, 1);
    import_good("{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\"}");
    assert_weights("l.weight", "nvfp4", 1, 32, want);
    assert_true(low_bit == RFT_E2M1 && tensor_named("l.weight")->import->flags == RFT_WEIGHT_GLOBAL_TIMES);
    drop();
}

static void bad_fp4(void **state) {
    (void)state;
    begin();
    add("x_blocks", "U8", "[2,2,8]", 32);
    add("x_scales", "U8", "[2,2]", 4);
    assert_refused("{\"quant_method\":\"mxfp4\"}", RFT_E_ARG, "blocks of 16 are expected");
    begin();
    add("x_blocks", "U8", "[2,2,16]", 64);
    add("x_scales", "U8", "[2,3]", 6);
    assert_refused("{\"quant_method\":\"mxfp4\"}", RFT_E_ARG, "'x_scales' has 2 rows of 3; its weight demands 2 rows of 2");
    begin();
    add("l.weight_packed", "U8", "[1,12]", 12);
    add("l.weight_scale", "U8", "[1,1]", 1);
    assert_refused(CT(), RFT_E_ARG, "no multiple of 16");
    begin();
    add("l.weight_packed", "U8", "[1,16]", 16);
    add("l.weight_scale", "F8_E4M3", "[1,2]", 2);
    add("l.weight_global_scale", "F32", "[2]", 8);
    assert_refused(CT(), RFT_E_ARG, "'l.weight_global_scale' has 1 rows of 2");
}

/* ---- bitsandbytes ---- */

static const float table[16] = {-1,    -0.7f, -0.5f, -0.4f, -0.3f, -0.2f, -0.1f, 0,
                                0.08f, 0.16f, 0.25f, 0.34f, 0.44f, 0.56f, 0.72f, 1};

static void add_bnb(const char *state_text, const char *kind) {
    static const unsigned char codes[8] = {0x0f, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde};
    char name[64], shape[32];
    begin();
    add_bytes("l.weight", "U8", "[8,1]", codes, 8);
    add_floats("l.weight.quant_map", "[16]", table, 16);
    snprintf(name, sizeof name, "l.weight.quant_state.bitsandbytes__%s", kind);
    snprintf(shape, sizeof shape, "[%zu]", strlen(state_text));
    add_bytes(name, "U8", shape, state_text, strlen(state_text));
}

/* The first weight of a byte is in its high nibble; blocks run over the flat weights, across rows. */
static void bnb_golden(void **state) {
    (void)state;
    static const int code[16] = {0, 15, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    static const float absmax[4] = {1, 2, 4, 8};
    float want[16];
    for (int i = 0; i < 16; i++) {
        want[i] = table[code[i]] * absmax[i / 4];
    }
    add_bnb("{\"quant_type\":\"nf4\",\"blocksize\":4,\"dtype\":\"bfloat16\",\"shape\":[2,8]}", "nf4");
    add_floats("l.weight.absmax", "[4]", absmax, 4);
    import_good(BNB);
    assert_weights("l.weight", "nf4 4", 2, 8, want);
    assert_int_equal(low_bit, 0); /* a table of its own */
    assert_true(want[0] == -1 && want[1] == 1);
    assert_int_equal(imported.tensors.count, 1);
    drop();
    add_bnb("{\"quant_type\":\"fp4\",\"blocksize\":4,\"shape\":[2,8]}", "fp4");
    add_floats("l.weight.absmax", "[4]", absmax, 4);
    import_good(BNB);
    assert_weights("l.weight", "fp4 4", 2, 8, want);
    drop();
}

/* Scales are codes too: table[code] * scale of scales + offset. */
static void bnb_nested(void **state) {
    (void)state;
    static const int code[16] = {0, 15, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    static const unsigned char absmax[4] = {0, 128, 255, 64};
    static const float outer[2] = {3, 5};
    float outer_table[256], want[16];
    for (int i = 0; i < 256; i++) {
        outer_table[i] = (float)(i - 128) / 128;
    }
    for (int i = 0; i < 16; i++) {
        want[i] = table[code[i]] * (outer_table[absmax[i / 4]] * outer[i / 8] + 0.25f);
    }
    add_bnb("{\"quant_type\":\"nf4\",\"blocksize\":4,\"shape\":[2,8],\"nested_blocksize\":2,\"nested_offset\":0.25}", "nf4");
    add_bytes("l.weight.absmax", "U8", "[4]", absmax, 4);
    add_floats("l.weight.nested_absmax", "[2]", outer, 2);
    add_floats("l.weight.nested_quant_map", "[256]", outer_table, 256);
    import_good(BNB);
    assert_weights("l.weight", "nf4 4 nested", 2, 8, want);
    assert_int_equal(imported.tensors.count, 1);
    drop();
}

/* With the library's own tables, and blocks inside rows, the codes stay. */
static void bnb_low_bit(void **state) {
    (void)state;
    enum { N = 3, K = 24, BLOCK = 8 };
    for (int kind = 0; kind < 3; kind++) {
        unsigned char codes[N * K / 2], absmax[N * K / BLOCK];
        float map[16], outer_map[256], outer[3] = {0.5f, 3, 1}, plain[N * K / BLOCK], want[N * K];
        const char *const text = "{\"blocksize\":8,\"shape\":[3,24],\"nested_blocksize\":4,\"nested_offset\":0.125}";
        char shape[16];
        for (unsigned i = 0; i < 16; i++) {
            map[i] = kind == 1 ? rft__fp4_f32(i) : rft__nf4_f32(i);
        }
        for (int i = 0; i < 256; i++) {
            outer_map[i] = (float)i / 255;
        }
        for (int i = 0; i < N * K / BLOCK; i++) {
            absmax[i] = (unsigned char)(i * 29 + 5);
            plain[i] = kind == 2 ? outer_map[absmax[i]] * outer[i / 4] + 0.125f : 0.3f * (float)(i + 1);
        }
        for (int i = 0; i < N * K; i++) {
            const unsigned code = (unsigned)(i * 7 + i / 16) % 16;
            codes[i / 2] = (unsigned char)(i % 2 == 0 ? code << 4 : codes[i / 2] | code);
            want[i] = map[code] * plain[i / BLOCK];
        }
        begin();
        add_bytes("l.weight", "U8", "[36,1]", codes, sizeof codes);
        add_floats("l.weight.quant_map", "[16]", map, 16);
        snprintf(shape, sizeof shape, "[%zu]", strlen(text));
        add_bytes(kind == 1 ? "l.weight.quant_state.bitsandbytes__fp4" : "l.weight.quant_state.bitsandbytes__nf4", "U8", shape,
                  text, strlen(text));
        if (kind == 2) {
            add_bytes("l.weight.absmax", "U8", "[9]", absmax, 9);
            add_floats("l.weight.nested_absmax", "[3]", outer, 3);
            add_floats("l.weight.nested_quant_map", "[256]", outer_map, 256);
        } else {
            add_floats("l.weight.absmax", "[9]", plain, 9);
        }
        import_good(BNB);
        assert_weights("l.weight", kind == 2 ? "nf4 8 nested" : kind == 1 ? "fp4 8" : "nf4 8", N, K, want);
        assert_int_equal(low_bit, kind == 1 ? RFT_FP4 : RFT_NF4);
        drop();
    }
}

static void bnb_int8(void **state) {
    (void)state;
    static const int8_t codes[6] = {127, -127, 0, 64, 1, -128};
    static const float largest[2] = {254, 12.7f};
    float want[6];
    for (int i = 0; i < 6; i++) {
        want[i] = (float)codes[i] * (largest[i / 3] / 127);
    }
    assert_true(want[0] == 254);
    begin();
    add_bytes("l.weight", "I8", "[2,3]", codes, 6);
    add_floats("l.SCB", "[2]", largest, 2);
    add("l.weight_format", "U8", "[]", 1);
    import_good(BNB);
    assert_weights("l.weight", "int8 a row", 2, 3, want);
    assert_int_equal(low_bit, RFT_I8);
    assert_int_equal(imported.tensors.count, 1);
    drop();
}

static void bad_bnb(void **state) {
    (void)state;
    static const float absmax[4] = {0};
    static const struct {
        const char *text, *part;
        rft_status status;
    } rows[] = {
        {"{\"blocksize\":4,\"shape\":[2,9]}", "'l.weight' has 8 bytes; 2 x 9 weights take 9", RFT_E_ARG},
        {"{\"blocksize\":8,\"shape\":[2,8]}", "'l.weight.absmax' has 1 rows of 4; its weight demands 1 rows of 2", RFT_E_ARG},
        {"{\"blocksize\":0,\"shape\":[2,8]}", "block size of 0", RFT_E_ARG},
        {"{\"blocksize\":4,\"shape\":[16]}", "no shape of two sizes", RFT_E_ARG},
        {"{\"blocksize\":4,\"shape\":[4294967296,8]}", "no shape of two sizes", RFT_E_ARG},
        {"{\"blocksize\":\"4\",\"shape\":[2,8]}", "'blocksize' is not a whole number", RFT_E_ARG},
        {"{\"blocksize\":4,\"shape\":[2,8]", "quant_state: JSON line 1", RFT_E_ARG},
        {"7", "quant_state: ", RFT_E_ARG},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        add_bnb(rows[i].text, "nf4");
        add_floats("l.weight.absmax", "[4]", absmax, 4);
        assert_refused(BNB, rows[i].status, rows[i].part);
    }
    add_bnb("{}", "int9");
    add_floats("l.weight.absmax", "[4]", absmax, 4);
    assert_refused(BNB, RFT_E_ARG, "no quant_state of nf4 or fp4");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deepseek_blocks), cmocka_unit_test(scales_of_all_kinds), cmocka_unit_test(bad_scales),
        cmocka_unit_test(mxfp4_golden),    cmocka_unit_test(nvfp4_golden),        cmocka_unit_test(bad_fp4),
        cmocka_unit_test(bnb_golden),      cmocka_unit_test(bnb_nested),          cmocka_unit_test(bnb_int8),
        cmocka_unit_test(bad_bnb),         cmocka_unit_test(deepseek_low_bit),    cmocka_unit_test(e5m2_rows),
        cmocka_unit_test(bnb_low_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
