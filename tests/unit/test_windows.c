/* SPDX-License-Identifier: Apache-2.0
 *
 * test_windows.c - windows of attention: which layers have one, by every way in which files say so, and what a step then sees and
 * reads, against pairs counted one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gguf_builder.h"
#include "rooftile_model.h"

#define SIZES                                                                                                                 \
    "\"hidden_size\":64,\"num_hidden_layers\":7,\"intermediate_size\":96,\"vocab_size\":128,\"num_attention_heads\":4,"        \
    "\"num_experts_per_tok\":2"

static rft_status open_text(const char *type, const char *more, rft_model **out, rft_error *err) {
    _Alignas(8) static char text[1024];
    *err = (rft_error){0};
    snprintf(text, sizeof text, "{\"model_type\":\"%s\"," SIZES "%s}", type, more);
    return rft_model_open_memory(text, strlen(text), out, err);
}

static rft_model *open_good(const char *type, const char *more) {
    rft_model *model = NULL;
    rft_error err;
    if (open_text(type, more, &model, &err) != RFT_OK) {
        fail_msg("%s: %s", type, err.message);
    }
    return model;
}

static rft_model_info info_of(const rft_model *model) {
    rft_model_info info = rft_model_info_init();
    assert_int_equal(rft_model_get_info(model, &info, NULL), RFT_OK);
    return info;
}

static void layers_have_windows(void **state) {
    (void)state;
    static const struct {
        const char *type, *more;
        int64_t window, layers;
    } rows[] = {
        {"mistral", "", 0, 0},
        {"mistral", ",\"sliding_window\":null", 0, 0},
        {"mistral", ",\"sliding_window\":16", 16, 7},
        {"phi3", ",\"sliding_window\":16", 16, 7},
        {"llama", ",\"sliding_window\":16", 0, 0},
        {"gemma2", "", 4096, 4}, /* layers 0, 2, 4 and 6 */
        {"gemma2", ",\"sliding_window\":null", 0, 0},
        {"gemma3_text", ",\"sliding_window\":16", 16, 6},
        {"gemma3_text", ",\"sliding_window\":16,\"sliding_window_pattern\":3", 16, 5},
        {"qwen2", ",\"sliding_window\":16", 0, 0},
        {"qwen2", ",\"use_sliding_window\":true,\"sliding_window\":16,\"max_window_layers\":4", 16, 3},
        {"qwen2", ",\"use_sliding_window\":true,\"sliding_window\":16,\"max_window_layers\":9", 16, 0},
        {"qwen3", ",\"use_sliding_window\":false,\"sliding_window\":16,\"max_window_layers\":4", 0, 0},
        {"gpt_oss", ",\"num_local_experts\":4", 128, 4},
        {"gpt_oss",
         ",\"num_local_experts\":4,\"sliding_window\":16,\"layer_types\":[\"full_attention\",\"sliding_attention\","
         "\"full_attention\",\"full_attention\",\"full_attention\",\"full_attention\",\"sliding_attention\"]",
         16, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rft_model *model = open_good(rows[i].type, rows[i].more);
        const rft_model_info info = info_of(model);
        if (info.window != rows[i].window || info.windowed_layers != rows[i].layers) {
            fail_msg("%s%s: %lld positions in %lld layers", rows[i].type, rows[i].more, (long long)info.window,
                     (long long)info.windowed_layers);
        }
        rft_model_free(model);
    }
}

static void bad_windows_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *more, *says;
    } rows[] = {
        {",\"sliding_window\":-1", "sliding_window = -1 is negative"},
        {",\"sliding_window\":\"16\"", "'sliding_window' is not a whole number"},
        {",\"sliding_window\":1099511627776", "'sliding_window': window of attention = 1099511627776 is not in 0..1073741824"},
        {",\"layer_types\":[\"full_attention\"]", "layer_types names 1 blocks, not num_hidden_layers = 7"},
        {",\"layer_types\":{}", "layer_types names 0 blocks"},
        {",\"layer_types\":[1,2,3,4,5,6,7]", "layer_types[0] is neither"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rft_model *model = NULL;
        rft_error err;
        if (open_text("gemma2", rows[i].more, &model, &err) == RFT_OK || !strstr(err.message, rows[i].says)) {
            fail_msg("%s: '%s'", rows[i].more, err.message);
        }
    }
}

/* Of one text, one layer: each new token and each position that it sees; and positions before that any of them sees. */
static void count(int64_t tokens, int64_t context, int64_t window, double *pairs, double *read) {
    int64_t least = context;
    *pairs = 0;
    for (int64_t at = context; at < context + tokens; at++) {
        for (int64_t seen = 0; seen <= at; seen++) {
            const bool sees = window == 0 || at - seen < window;
            *pairs += sees;
            least = sees && seen < least ? seen : least;
        }
    }
    *read = (double)(context - least);
}

static rft_part part(const rft_model *model, int64_t index, int64_t tokens, int64_t context) {
    rft_part p = rft_part_init();
    const rft_phase phase = {RFT_PHASE_VERIFY, 3, tokens};
    assert_int_equal(rft_model_get_part(model, index, &phase, context, &p, NULL), RFT_OK);
    return p;
}

/* Seven layers of 4 heads of 16, four of them with a window; three texts. */
static void parts_see_the_window(void **state) {
    (void)state;
    static const int64_t windows[] = {1, 2, 7, 8, 9, 30};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        char more[48];
        snprintf(more, sizeof more, ",\"sliding_window\":%d", (int)windows[i]);
        rft_model *model = open_good("gemma2", more);
        for (int64_t tokens = 1; tokens <= 12; tokens++) {
            for (int64_t context = 0; context <= 12; context++) {
                double all, some, read_all, read_some;
                count(tokens, context, 0, &all, &read_all);
                count(tokens, context, windows[i], &some, &read_some);
                const rft_part scores = part(model, 0, tokens, context), cache = part(model, 2, tokens, context);
                const double kept = 3.0 * (double)tokens + 4.0 * (double)(tokens < windows[i] ? tokens : windows[i]);
                if (scores.flops != 3 * (3 * all + 4 * some) * 2 * 64 ||
                    cache.read_bytes != 3 * (3 * read_all + 4 * read_some) * 2 * 64 * 2 ||
                    cache.write_bytes != 3 * kept * 2 * 64 * 2) {
                    fail_msg("window %d, %d tokens behind %d: %g FLOP, %g and %g bytes", (int)windows[i], (int)tokens,
                             (int)context, scores.flops, cache.read_bytes, cache.write_bytes);
                }
            }
        }
        rft_model_free(model);
    }
}

static builder gguf;

static void gguf_has_a_key(void **state) {
    (void)state;
    rft_model *model = NULL;
    rft_error err = {0};
    tiny_model(&gguf, &(tiny_options){.arch = "gemma2", .window = 16});
    if (rft_model_open_memory(gguf.bytes, gguf.size, &model, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    assert_true(info_of(model).window == 16 && info_of(model).windowed_layers == 1);
    rft_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_have_windows),
        cmocka_unit_test(bad_windows_are_refused),
        cmocka_unit_test(parts_see_the_window),
        cmocka_unit_test(gguf_has_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
