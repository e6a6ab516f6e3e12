/* SPDX-License-Identifier: Apache-2.0
 *
 * test_training.c - phase train: the three products of each layer, their sum, and what stands beside them on the way back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rooftile_model.h"

#include <string.h>

#define SIZES "\"hidden_size\":64,\"num_hidden_layers\":2,\"intermediate_size\":96,\"vocab_size\":128,\"num_attention_heads\":4"

static const rft_phase train = {RFT_PHASE_TRAIN, 2, 8};

static rft_model *open_text(const char *text) {
    _Alignas(8) static char copy[1024];
    rft_model *model = NULL;
    rft_error err = {0};
    strncpy(copy, text, sizeof copy - 1);
    if (rft_model_open_memory(copy, strlen(copy), &model, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return model;
}

static rft_model *open_llama(void) { return open_text("{\"model_type\":\"llama\"," SIZES ",\"torch_dtype\":\"bfloat16\"}"); }

static rft_layer get(const rft_model *model, int64_t row, rft_pass pass) {
    rft_layer layer = rft_layer_init();
    rft_error err = {0};
    if (rft_model_get_pass(model, row, &train, pass, &layer, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return layer;
}

static void assert_product(const rft_layer *l, int64_t m, int64_t n, int64_t k, rft_order x, rft_order w, const char *epilogue) {
    if (l->m != m || l->n != n || l->k != k || l->x_order != x || l->order != w || strcmp(l->epilogue, epilogue) != 0) {
        fail_msg("%s, pass %d: m %lld n %lld k %lld, orders %d %d, %s", l->name, (int)l->pass, (long long)l->m, (long long)l->n,
                 (long long)l->k, (int)l->x_order, (int)l->order, l->epilogue);
    }
}

#define K_FIRST RFT_K_CONTIGUOUS
#define N_FIRST RFT_MN_CONTIGUOUS

enum { UP = 4, HEAD = 7 };

static void a_layer_has_three_products(void **state) {
    (void)state;
    rft_model *model = open_llama();
    const rft_layer y = get(model, UP, RFT_PASS_FORWARD), dx = get(model, UP, RFT_PASS_DGRAD);
    const rft_layer dw = get(model, UP, RFT_PASS_WGRAD);
    assert_product(&y, 16, 96, 64, K_FIRST, K_FIRST, "none");
    assert_product(&dx, 16, 64, 96, K_FIRST, N_FIRST, "none");
    assert_product(&dw, 96, 64, 16, N_FIRST, N_FIRST, "add");
    assert_true(y.flops == dx.flops && y.flops == dw.flops && y.flops == 2.0 * 2 * 16 * 96 * 64);
    assert_true(dx.weight_bytes == 96 * 64 * 2 && dw.weight_bytes == 0);
    assert_true(dx.n_epi == 0 && dw.n_epi == 1 && dw.epi[0] == RFT_EPI_ADD && dw.tensor == -1);
    const rft_layer gate = get(model, UP + 1, RFT_PASS_DGRAD), head = get(model, HEAD, RFT_PASS_FORWARD);
    assert_string_equal(gate.epilogue, "none"); /* the activation is of the forward product alone */
    assert_string_equal(head.name, "lm_head");
    assert_true(head.m == 16); /* every token has a loss */
    rft_model_free(model);
}

/* [in, out] as stored: the gradient lies as W does. */
static void turned_weights_turn_back(void **state) {
    (void)state;
    rft_model *model =
        open_text("{\"model_type\":\"gpt2\",\"n_embd\":64,\"n_layer\":2,\"n_head\":4,\"vocab_size\":101,\"n_positions\":32}");
    const rft_layer y = get(model, 0, RFT_PASS_FORWARD), dx = get(model, 0, RFT_PASS_DGRAD), dw = get(model, 0, RFT_PASS_WGRAD);
    assert_product(&y, 16, 192, 64, K_FIRST, N_FIRST, "bias");
    assert_product(&dx, 16, 64, 192, K_FIRST, K_FIRST, "none");
    assert_product(&dw, 64, 192, 16, N_FIRST, N_FIRST, "add");
    assert_true(dw.bias_tensor == -1);
    rft_model_free(model);
}

static void experts_take_their_own_rows(void **state) {
    (void)state;
    rft_model *model = open_text("{\"model_type\":\"mixtral\"," SIZES ",\"num_local_experts\":4,\"num_experts_per_tok\":2}");
    const rft_layer y = get(model, UP + 1, RFT_PASS_FORWARD), dw = get(model, UP + 1, RFT_PASS_WGRAD);
    assert_string_equal(y.name, "expert_up");
    assert_true(dw.k == y.m && dw.runs == y.runs && dw.m == y.n && dw.n == y.k);
    rft_model_free(model);
}

static void a_step_costs_six_flops_a_weight(void **state) {
    (void)state;
    rft_model *model = open_llama();
    rft_model_cost step = rft_model_cost_init(), scoring = rft_model_cost_init();
    assert_int_equal(rft_model_get_cost(model, &train, &step, NULL), RFT_OK);
    assert_int_equal(rft_model_get_cost(model, &(rft_phase){RFT_PHASE_OFFLINE, 2, 8}, &scoring, NULL), RFT_OK);
    assert_true(step.flops_per_token == 6.0 * (double)step.linear_parameters);
    assert_true(step.flops == 3 * scoring.flops && step.read_bytes == 2 * scoring.read_bytes);
    assert_true(step.weight_bytes == scoring.weight_bytes && step.tokens == 16);
    rft_model_free(model);
}

static rft_part part(const rft_model *model, int64_t index, rft_phase_kind kind) {
    rft_part p = rft_part_init();
    assert_int_equal(rft_model_get_part(model, index, &(rft_phase){kind, 2, 8}, 0, &p, NULL), RFT_OK);
    return p;
}

/* Two blocks of 4 heads of 16 on two texts of 8 tokens, which see 36 pairs each. */
static void attention_goes_back(void **state) {
    (void)state;
    rft_model *model = open_llama();
    const double product = 2.0 * 2 * 36 * 64 * 2, side = 16 * 64 * 2 * 2;
    const rft_part scores = part(model, 0, RFT_PHASE_TRAIN), values = part(model, 1, RFT_PHASE_TRAIN);
    assert_true(scores.flops == 4 * product && values.flops == 3 * product); /* forward 1 + 1, back 3 + 2 */
    assert_true(scores.read_bytes == 4 * side && scores.write_bytes == 2 * side);
    assert_true(values.read_bytes == 4 * side && values.write_bytes == 2 * side);
    const rft_part cache = part(model, 2, RFT_PHASE_TRAIN);
    assert_true(cache.read_bytes == 0 && cache.write_bytes == 0);
    /* Norms: 2 a block and 1, each reads x again and its gradient, and adds to a gradient of f32. */
    const rft_part norms = part(model, 3, RFT_PHASE_TRAIN);
    const double vectors = 5 * 64;
    assert_true(norms.read_bytes == vectors * (3 * 16 * 2 + 2 * 2 + 4));
    assert_true(norms.write_bytes == vectors * (2 * 16 * 2 + 4));
    rft_model_free(model);
}

static void latent_attention_is_not_absorbed(void **state) {
    (void)state;
    rft_model *model = open_text("{\"model_type\":\"deepseek_v3\"," SIZES
                                 ",\"n_routed_experts\":4,\"num_experts_per_tok\":2,\"n_shared_experts\":2,"
                                 "\"moe_intermediate_size\":48,\"first_k_dense_replace\":1,\"q_lora_rank\":24,"
                                 "\"kv_lora_rank\":32,\"qk_nope_head_dim\":16,\"qk_rope_head_dim\":8,\"v_head_dim\":16}");
    assert_true(part(model, 0, RFT_PHASE_OFFLINE).flops == 2.0 * 2 * 36 * 4 * (32 + 8) * 2);
    assert_true(part(model, 0, RFT_PHASE_TRAIN).flops == 4 * 2.0 * 2 * 36 * 4 * (16 + 8) * 2);
    assert_true(part(model, 1, RFT_PHASE_TRAIN).flops == 3 * 2.0 * 2 * 36 * 4 * 16 * 2);
    rft_model_free(model);
}

static void wrong_questions_are_refused(void **state) {
    (void)state;
    rft_model *model = open_llama();
    rft_layer layer = rft_layer_init();
    rft_shard shard = rft_shard_init();
    rft_part p = rft_part_init();
    rft_error err = {0};
    const rft_phase decode = {RFT_PHASE_DECODE, 1, 1};
    assert_int_equal(rft_model_get_pass(model, 0, &decode, RFT_PASS_FORWARD, &layer, &err), RFT_OK);
    assert_int_equal(rft_model_get_pass(model, 0, &decode, RFT_PASS_WGRAD, &layer, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "pass = 3"));
    assert_int_equal(rft_model_get_pass(model, 0, &train, (rft_pass)4, &layer, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_pass(model, 0, &train, (rft_pass)0, &layer, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_pass_shard(model, 0, &decode, RFT_PASS_DGRAD, &(rft_ranks){.tp = 2}, &shard, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_part(model, 0, &train, 5, &p, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "context = 5: phase train has no cache"));
    rft_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_has_three_products),      cmocka_unit_test(turned_weights_turn_back),
        cmocka_unit_test(experts_take_their_own_rows),     cmocka_unit_test(a_step_costs_six_flops_a_weight),
        cmocka_unit_test(attention_goes_back),             cmocka_unit_test(latent_attention_is_not_absorbed),
        cmocka_unit_test(wrong_questions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
