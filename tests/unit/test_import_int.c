/* SPDX-License-Identifier: Apache-2.0
 *
 * test_import_int.c - GPTQ, AWQ and pack-quantized compressed-tensors: golden words with values worked out on paper for the order
 * of nibbles, zero points and scales, then whole weights packed here, then what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "import_test.h"
#include "meter.h"

#define GPTQ(more) "{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":8" more "}"
#define AWQ(more)  "{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":8" more "}"
#define PACKED(bits, group)                                                                                                      \
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\",\"config_groups\":{\"group_0\":{\"weights\":"        \
    "{\"num_bits\":" #bits ",\"group_size\":" #group ",\"type\":\"int\"}}}}"

/* ---- GPTQ ---- */

/* Codes of one column in order from the lowest nibble; zeros of 8 columns likewise, stored less one. */
static void gptq_golden(void **state) {
    (void)state;
    static const uint32_t codes[8] = {0x76543210, 0xfedcba98, 0, 0xffffffff, 0x76543210, 0x00000001, 0x10000000, 0x88888888};
    static const uint32_t zeros[1] = {0x6543f217}; /* columns 0 .. 7: 7 1 2 15 3 4 5 6 */
    static const float scales[8] = {1, 2, 0.5f, 1, 1, 1, 1, 1};
    static const int zero[8] = {8, 2, 3, 0, 4, 5, 6, 7}; /* one more each; 15 is 0 less one */
    float want[64];
    begin();
    add_words("l.qweight", "[1,8]", codes, 8);
    add_words("l.qzeros", "[1,1]", zeros, 1);
    add_floats("l.scales", "[1,8]", scales, 8);
    add("l.bias", "F32", "[8]", 32);
    import_good(GPTQ(",\"sym\":false"));
    for (int n = 0; n < 8; n++) {
        for (int k = 0; k < 8; k++) {
            want[n * 8 + k] = (float)((int)(codes[n] >> 4 * k & 15u) - zero[n]) * scales[n];
        }
    }
    assert_weights("l.weight", "gptq 4-bit a row", 8, 8, want);
    assert_int_equal(low_bit, RFT_U4);
    assert_true(want[0] == -8 && want[1] == -7 && want[8] == 12 && want[3 * 8] == 15);
    assert_int_equal(imported.tensors.count, 2);
    assert_null(tensor_named("l.bias")->import);
    assert_int_equal(tensor_named("l.weight")->bytes, 32 + 4 + 32);
    drop();
}

static void add_gptq_zeros(uint32_t zeros) {
    static const uint32_t codes[8] = {0x76543210};
    static const float scales[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    begin();
    add_words("l.qweight", "[1,8]", codes, 8);
    add_words("l.qzeros", "[1,1]", &zeros, 1);
    add_floats("l.scales", "[1,8]", scales, 8);
}

/* Stored 7 is version 1 and stored 8 is version 2, whatever the file calls itself; other zero points go by its name. */
static void gptq_versions_are_told_apart(void **state) {
    (void)state;
    static const struct {
        uint32_t zeros;
        const char *config;
        int zero;
    } rows[] = {
        {0x77777777, GPTQ(",\"sym\":true"), 8},
        {0x88888888, GPTQ(",\"sym\":true"), 8},
        {0x88888888, GPTQ(",\"sym\":true,\"checkpoint_format\":\"gptq\""), 8},
        {0x88888888, GPTQ(",\"sym\":true,\"checkpoint_format\":\"gptq_v2\""), 8},
        {0x88888888, GPTQ(",\"sym\":false,\"checkpoint_format\":\"gptq\""), 9},
        {0x88888888, GPTQ(",\"sym\":false,\"checkpoint_format\":\"gptq_v2\""), 8},
        {0xffffffff, GPTQ(",\"sym\":false"), 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float first[8];
        add_gptq_zeros(rows[i].zeros);
        import_good(rows[i].config);
        const rft__tensor *t = tensor_named("l.weight");
        t->import->decode(t->import, 0, 0, 8, first);
        if (first[3] != (float)(3 - rows[i].zero)) {
            fail_msg("zeros %08x under %s: zero point %g, not %d", rows[i].zeros, rows[i].config, 3 - (double)first[3],
                     rows[i].zero);
        }
        drop();
    }
}

/* Packs code `value` of `bits` as number `index` of a stream of words `stride` apart. */
static void put_bits(uint32_t *words, int64_t stride, int64_t index, int bits, unsigned value) {
    for (int b = 0; b < bits; b++) {
        const int64_t at = index * bits + b;
        words[at / 32 * stride] |= (value >> b & 1u) << at % 32;
    }
}

enum { N = 32, K = 96 };

static unsigned code_at(int n, int k, int bits) { return (unsigned)(n * 31 + k * 7 + n * k) % (1u << bits); }

static float scale_at(int n, int g) { return 0.25f * (float)(1 + (n + 3 * g) % 5); }

/* All widths and a ragged last group; with act-order k jumps between groups. */
static void gptq_whole(void **state) {
    (void)state;
    static const int widths[] = {2, 3, 4, 8};
    for (int w = 0; w < 4; w++) {
        for (int act = 0; act < 2; act++) {
            enum { GROUP = 40, G = 3 };
            const int bits = widths[w];
            uint32_t codes[K * N] = {0}, zeros[G * N] = {0}, index[K];
            float scales[G * N], want[N * K];
            char shape[32], config[128], scheme[32];
            for (int k = 0; k < K; k++) {
                index[k] = (uint32_t)(act ? k * 5 % G : k / GROUP);
            }
            for (int n = 0; n < N; n++) {
                for (int g = 0; g < G; g++) {
                    scales[g * N + n] = scale_at(n, g);
                    put_bits(zeros + g * N * bits / 32, 1, n, bits, (unsigned)(n + g) % (1u << bits));
                }
                for (int k = 0; k < K; k++) {
                    const int g = (int)index[k], zero = (int)(((unsigned)(n + g) + 1) % (1u << bits));
                    put_bits(codes + n, N, k, bits, code_at(n, k, bits));
                    want[n * K + k] = (float)((int)code_at(n, k, bits) - zero) * scale_at(n, g);
                }
            }
            begin();
            snprintf(shape, sizeof shape, "[%d,%d]", K * bits / 32, N);
            add_words("a.b.qweight", shape, codes, (size_t)(K * bits / 32 * N));
            snprintf(shape, sizeof shape, "[%d,%d]", G, N * bits / 32);
            add_words("a.b.qzeros", shape, zeros, (size_t)(G * N * bits / 32));
            add_floats("a.b.scales", "[3,32]", scales, G * N);
            if (act) {
                add_words("a.b.g_idx", "[96]", index, K);
            }
            snprintf(config, sizeof config, "{\"quant_method\":\"gptq\",\"bits\":%d,\"group_size\":40,\"sym\":false}", bits);
            snprintf(scheme, sizeof scheme, "gptq %d-bit g40%s", bits, act ? " act" : "");
            import_good(config);
            assert_weights("a.b.weight", scheme, N, K, want);
            assert_int_equal(low_bit, act ? 0 : bits > 4 ? RFT_U8 : RFT_U4); /* the last group is too large */
            drop();
        }
    }
}

/* Groups of act-order that are even are sorted when packed; zero points of half the range are left out. */
static void gptq_act_order(void **state) {
    (void)state;
    enum { G = 3 };
    for (int bits = 4; bits <= 8; bits += 4) {
        uint32_t codes[K * N] = {0}, zeros[G * N] = {0}, index[K];
        float scales[G * N], want[N * K];
        char shape[32], config[128];
        const int half = 1 << (bits - 1);
        for (int k = 0; k < K; k++) {
            index[k] = (uint32_t)(k * 5 % G);
        }
        for (int n = 0; n < N; n++) {
            for (int g = 0; g < G; g++) {
                scales[g * N + n] = scale_at(n, g);
                put_bits(zeros + g * N * bits / 32, 1, n, bits, (unsigned)half - 1);
            }
            for (int k = 0; k < K; k++) {
                put_bits(codes + n, N, k, bits, code_at(n, k, bits));
                want[n * K + k] = (float)((int)code_at(n, k, bits) - half) * scale_at(n, (int)index[k]);
            }
        }
        begin();
        snprintf(shape, sizeof shape, "[%d,%d]", K * bits / 32, N);
        add_words("l.qweight", shape, codes, (size_t)(K * bits / 32 * N));
        snprintf(shape, sizeof shape, "[%d,%d]", G, N * bits / 32);
        add_words("l.qzeros", shape, zeros, (size_t)(G * N * bits / 32));
        add_floats("l.scales", "[3,32]", scales, G * N);
        add_words("l.g_idx", "[96]", index, K);
        snprintf(config, sizeof config, "{\"quant_method\":\"gptq\",\"bits\":%d,\"group_size\":32,\"desc_act\":true}", bits);
        import_good(config);
        assert_weights("l.weight", bits == 4 ? "gptq 4-bit g32 act" : "gptq 8-bit g32 act", N, K, want);
        assert_int_equal(low_bit, bits == 4 ? RFT_I4 : RFT_I8);
        assert_int_equal(tensor_named("l.weight")->import->zero, 0);
        drop();
    }
}

static void bad_gptq(void **state) {
    (void)state;
    static const float scales[16] = {0};
    static const uint32_t index[8] = {0, 0, 0, 1, 0, 0, 0, 0}, negative[8] = {0, 0xffffffff};
    add_gptq_zeros(0);
    assert_refused("{\"quant_method\":\"gptq\",\"bits\":5}", RFT_E_UNSUPPORTED, "5 bits a code");
    add_gptq_zeros(0);
    assert_refused("{\"quant_method\":\"gptq\",\"bits\":3}", RFT_E_ARG, "do not hold whole 3-bit codes");
    add_gptq_zeros(0);
    assert_refused("{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":4}", RFT_E_ARG,
                   "'l.scales' has 1 rows of 8; its weight demands 2 rows of 8");
    add_gptq_zeros(0);
    add_words("l.g_idx", "[8]", index, 8);
    assert_refused(GPTQ(), RFT_E_ARG, "group 1 at k = 3, of 1 groups");
    add_gptq_zeros(0);
    add_words("l.g_idx", "[8]", negative, 8);
    assert_refused(GPTQ(), RFT_E_ARG, "gives no group to 1 of 8 elements");
    add_gptq_zeros(0);
    add_words("l.g_idx", "[4]", index, 4);
    assert_refused(GPTQ(), RFT_E_ARG, "'l.g_idx' has 1 rows of 4");
    add_gptq_zeros(0);
    add("l.weight", "F32", "[1]", 4);
    assert_refused(GPTQ(), RFT_E_ARG, "'l.weight' occurs twice");
    begin();
    add("l.qweight", "I32", "[1,8]", 32);
    add_floats("l.scales", "[1,8]", scales, 8);
    assert_refused(GPTQ(), RFT_E_ARG, "'l.qzeros' is missing");
    begin();
    add("l.qweight", "I32", "[1,8]", 32);
    add("l.qzeros", "I32", "[1,1]", 4);
    add("l.scales", "I64", "[1,8]", 64);
    assert_refused(GPTQ(), RFT_E_UNSUPPORTED, "'l.scales' is i64");
    begin();
    add("l.qweight", "I32", "[0,8]", 0);
    add("l.scales", "F32", "[0,8]", 0);
    assert_refused(GPTQ(), RFT_E_ARG, "'l.qweight' is empty");
}

/* ---- AWQ ---- */

/* A word's nibbles, from the lowest, are columns 0 2 4 6 1 3 5 7. */
static void awq_golden(void **state) {
    (void)state;
    static const uint32_t codes[2] = {0x76543210, 0x00000f00}, zeros[1] = {0x00000030};
    static const float scales[8] = {1, 1, 1, 1, 1, 1, 1, 2};
    static const float row0[8] = {0, 4, 1, 5, 2, 6, 3, 7}, zero[8] = {0, 0, 3, 0, 0, 0, 0, 0};
    float want[16];
    begin();
    add_words("l.qweight", "[2,1]", codes, 2);
    add_words("l.qzeros", "[1,1]", zeros, 1);
    add_floats("l.scales", "[1,8]", scales, 8);
    import_good(AWQ(",\"version\":\"gemm\""));
    for (int n = 0; n < 8; n++) {
        want[n * 2] = (row0[n] - zero[n]) * scales[n];
        want[n * 2 + 1] = ((n == 4 ? 15.0f : 0.0f) - zero[n]) * scales[n];
    }
    assert_weights("l.weight", "awq 4-bit a row", 8, 2, want);
    drop();
}

static void awq_whole(void **state) {
    (void)state;
    static const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    enum { GROUP = 32, G = 3 };
    uint32_t codes[K * N / 8] = {0}, zeros[G * N / 8] = {0};
    float scales[G * N], want[N * K];
    for (int k = 0; k < K; k++) {
        for (int n = 0; n < N; n++) {
            codes[k * N / 8 + n / 8] |= code_at(n / 8 * 8 + order[n % 8], k, 4) << 4 * (n % 8);
            want[n * K + k] = (float)((int)code_at(n, k, 4) - (n + k / GROUP) % 16) * scale_at(n, k / GROUP);
        }
    }
    for (int g = 0; g < G; g++) {
        for (int n = 0; n < N; n++) {
            zeros[g * N / 8 + n / 8] |= (uint32_t)((n / 8 * 8 + order[n % 8] + g) % 16) << 4 * (n % 8);
            scales[g * N + n] = scale_at(n, g);
        }
    }
    begin();
    add_words("l.qweight", "[96,4]", codes, K * N / 8);
    add_words("l.qzeros", "[3,4]", zeros, G * N / 8);
    add_floats("l.scales", "[3,32]", scales, G * N);
    import_good("{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":32,\"version\":\"gemm\"}");
    assert_weights("l.weight", "awq 4-bit g32", N, K, want);
    assert_int_equal(low_bit, RFT_U4);
    drop();
}

static void bad_awq(void **state) {
    (void)state;
    begin();
    add("l.qweight", "I32", "[8,1]", 32);
    add("l.qzeros", "I32", "[1,1]", 4);
    add("l.scales", "F16", "[1,8]", 16);
    assert_refused(AWQ(",\"version\":\"gemv\""), RFT_E_UNSUPPORTED, "'gemv'");
    begin();
    add("l.qweight", "I32", "[8,1]", 32);
    add("l.qzeros", "I32", "[2,1]", 8);
    add("l.scales", "F16", "[1,8]", 16);
    assert_refused(AWQ(), RFT_E_ARG, "'l.qzeros' has 2 rows of 1");
}

/* ---- compressed-tensors ---- */

/* Codes in order from the lowest nibble, 8 added to each. */
static void packed_golden(void **state) {
    (void)state;
    static const uint32_t codes[2] = {0x76543210, 0x00000fed}, shape[2] = {1, 11};
    static const float scale = 0.5f;
    static const float want[11] = {-4, -3.5f, -3, -2.5f, -2, -1.5f, -1, -0.5f, 2.5f, 3, 3.5f};
    begin();
    add_words("l.weight_packed", "[1,2]", codes, 2);
    add_words("l.weight_shape", "[2]", shape, 2);
    add_floats("l.weight_scale", "[1,1]", &scale, 1);
    import_good(PACKED(4, -1));
    assert_weights("l.weight", "int 4-bit a row", 1, 11, want);
    assert_true(low_bit == RFT_I4 && tensor_named("l.weight")->import->zero == 0);
    drop();
}

static void add_packed(int bits, int groups, const char *zero_dtype, float *want) {
    uint32_t codes[N * K] = {0}, packed_zeros[N * 8] = {0}, shape[4] = {N, 0, K, 0};
    int8_t zeros[N * 8];
    float scales[N * 8];
    char text[32];
    const int words = (K * bits + 31) / 32, half = 1 << (bits - 1), group = K / groups;
    for (int n = 0; n < N; n++) {
        for (int g = 0; g < groups; g++) {
            zeros[n * groups + g] = (int8_t)((n + g) % 5 - 2);
            put_bits(packed_zeros + g, groups, n, bits, (unsigned)(zeros[n * groups + g] + half));
            scales[n * groups + g] = scale_at(n, g);
        }
        for (int k = 0; k < K; k++) {
            const int zero = zero_dtype ? zeros[n * groups + k / group] : 0;
            put_bits(codes + n * words, 1, k, bits, code_at(n, k, bits));
            want[n * K + k] = (float)((int)code_at(n, k, bits) - half - zero) * scale_at(n, k / group);
        }
    }
    begin();
    snprintf(text, sizeof text, "[%d,%d]", N, words);
    add_words("l.weight_packed", text, codes, (size_t)(N * words));
    add_bytes("l.weight_shape", "I64", "[2]", shape, 16);
    snprintf(text, sizeof text, "[%d,%d]", N, groups);
    add_floats("l.weight_scale", text, scales, (size_t)(N * groups));
    if (zero_dtype && strcmp(zero_dtype, "I8") == 0) {
        add_bytes("l.weight_zero_point", "I8", text, zeros, (size_t)(N * groups));
    } else if (zero_dtype) {
        snprintf(text, sizeof text, "[%d,%d]", N * bits / 32, groups);
        add_words("l.weight_zero_point", text, packed_zeros, (size_t)(N * bits / 32 * groups));
    }
}

static void packed_whole(void **state) {
    (void)state;
    float want[N * K];
    add_packed(4, 3, NULL, want);
    import_good(PACKED(4, 32));
    assert_weights("l.weight", "int 4-bit g32", N, K, want);
    drop();
    add_packed(4, 3, "I32", want);
    import_good(PACKED(4, 32));
    assert_weights("l.weight", "uint 4-bit g32", N, K, want);
    assert_true(low_bit == RFT_I4 && tensor_named("l.weight")->import->zero == RFT_I8);
    drop();
    add_packed(3, 1, "I8", want);
    import_good(PACKED(3, null));
    assert_weights("l.weight", "uint 3-bit a row", N, K, want);
    assert_int_equal(low_bit, RFT_I4);
    drop();
    add_packed(8, 2, "I32", want);
    import_good(PACKED(8, 48));
    assert_weights("l.weight", "uint 8-bit g48", N, K, want);
    assert_int_equal(low_bit, RFT_I8);
    drop();
}

/* Three bits, ten codes a word, as older libraries packed them: code 10 begins the second word. */
static void packed_with_padding(void **state) {
    (void)state;
    enum { COUNT = 64 };
    uint32_t codes[7] = {0}, zeros[4] = {0}, shape[2] = {1, COUNT};
    float want[COUNT];
    const float scale = 2;
    for (int k = 0; k < COUNT; k++) {
        codes[k / 10] |= code_at(3, k, 3) << 3 * (k % 10);
        want[k] = 2 * (float)((int)code_at(3, k, 3) - 5);
    }
    zeros[0] = 5;
    begin();
    add_words("l.weight_packed", "[1,7]", codes, 7);
    add_words("l.weight_shape", "[2]", shape, 2);
    add_floats("l.weight_scale", "[1,1]", &scale, 1);
    add_words("l.weight_zero_point", "[1,1]", zeros, 1);
    import_good(PACKED(3, -1));
    assert_weights("l.weight", "uint 3-bit a row", 1, COUNT, want);
    drop();
}

static void bad_packed(void **state) {
    (void)state;
    static const uint32_t shape[2] = {1, 8}, other[2] = {1, 80}, none[2] = {1, 0};
    float want[N * K];
    add_packed(4, 3, NULL, want);
    assert_refused(PACKED(8, 32), RFT_E_ARG, "fits no config_group for 32 x 96 weights");
    add_packed(4, 3, NULL, want);
    assert_refused(PACKED(4, 16), RFT_E_ARG, "fits no config_group");
    begin();
    add("l.weight_packed", "I32", "[1,1]", 4);
    add_words("l.weight_shape", "[2]", other, 2);
    add("l.weight_scale", "F32", "[1,1]", 4);
    assert_refused(PACKED(4, -1), RFT_E_ARG, "1 rows of 1 words fits no config_group for 1 x 80");
    begin();
    add("l.weight_packed", "I32", "[1,1]", 4);
    add_words("l.weight_shape", "[2]", none, 2);
    assert_refused(PACKED(4, -1), RFT_E_ARG, "holds 1 x 0: sizes are 1 to");
    begin();
    add("l.weight_packed", "I32", "[1,1]", 4);
    add_words("l.weight_shape", "[1]", shape, 1);
    assert_refused(PACKED(4, -1), RFT_E_ARG, "not two integers");
    begin();
    add("l.weight_packed", "I32", "[1,1]", 4);
    add_words("l.weight_shape", "[2]", shape, 2);
    add("l.weight_scale", "F32", "[1,1]", 4);
    add("l.weight_zero_point", "F32", "[1,1]", 4);
    assert_refused(PACKED(4, -1), RFT_E_UNSUPPORTED, "'l.weight_zero_point' is f32");
}

/* ---- memory ---- */

static void failing_allocations(void **state) {
    (void)state;
    float want[N * K];
    const rft__quant_config config = {.method = "compressed-tensors", .groups = {{.bits = 4, .group_k = 32}}, .n_groups = 1};
    rft__imported other;
    add_packed(4, 3, NULL, want);
    import_good(PACKED(4, 32));
    rft_status status = RFT_E_NOMEM;
    size_t at = 1;
    for (; status != RFT_OK && at < 20; at++) {
        meter m = {.fail_at = at};
        const rft__allocator a = {meter_alloc, meter_release, &m, false};
        status = rft__import_all(&a, &stored, &config, &other, &err);
        assert_true(status == RFT_OK || status == RFT_E_NOMEM);
        if (status == RFT_OK) {
            rft__import_free(&a, &other);
        }
        assert_int_equal(m.live, 0);
    }
    assert_int_equal(status, RFT_OK);
    assert_int_equal(at, 7); /* five allocations, each of which failed once */
    drop();
}

static void configs(void **state) {
    (void)state;
    static const struct {
        rft_status status;
        const char *text, *part;
    } rows[] = {
        {RFT_E_UNSUPPORTED, "{}", "method 'unnamed'"},
        {RFT_E_UNSUPPORTED, "{\"quant_method\":\"aqlm\"}", "method 'aqlm'"},
        {RFT_E_ARG, "{\"quant_method\":7}", "'quant_method' is not a string"},
        {RFT_E_ARG, "{\"quant_method\":\"gptq\",\"bits\":0}", "bits = 0 is not in 1..16"},
        {RFT_E_ARG, "{\"quant_method\":\"gptq\",\"bits\":4.5}", "'bits' is not a whole number"},
        {RFT_E_ARG, "{\"quant_method\":\"gptq\",\"group_size\":-2}", "group_size is no whole number"},
        {RFT_E_ARG, "{\"quant_method\":\"gptq\",\"group_size\":4294967296}", "group_size is no whole number"},
        {RFT_E_ARG, "{\"quant_method\":\"fp8\",\"weight_block_size\":[128]}", "weight_block_size is no pair"},
        {RFT_E_ARG, "{\"quant_method\":\"fp8\",\"weight_block_size\":[128,0]}", "weight_block_size is no pair"},
        {RFT_E_ARG, PACKED(17, 1), "num_bits = 17"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        assert_refused(rows[i].text, rows[i].status, rows[i].part);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gptq_golden),
        cmocka_unit_test(gptq_versions_are_told_apart),
        cmocka_unit_test(gptq_whole),
        cmocka_unit_test(gptq_act_order),
        cmocka_unit_test(bad_gptq),
        cmocka_unit_test(awq_golden),
        cmocka_unit_test(awq_whole),
        cmocka_unit_test(bad_awq),
        cmocka_unit_test(packed_golden),
        cmocka_unit_test(packed_whole),
        cmocka_unit_test(packed_with_padding),
        cmocka_unit_test(bad_packed),
        cmocka_unit_test(configs),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
