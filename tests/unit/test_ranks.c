/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ranks.c - experts dealt out over ranks: what a rank holds, runs and sends, by numbers worked out by hand from the sizes of
 * bench/models, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rooftile_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static rft_model *open_file(const char *name) {
    char path[512];
    rft_model *model = NULL;
    rft_error err = {0};
    snprintf(path, sizeof path, "%s/../../bench/models/%s.json", RFT_TEST_DATA_DIR, name);
    if (rft_model_open(path, &model, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return model;
}

/* ---- what a rank holds and runs ---- */

typedef struct wanted { /* the row of a name, one at least */
    const char *file, *name;
    int64_t batch;
    rft_ranks ranks;
    const char *split;
    int64_t m, n, k, count;
    double runs, runs_min, runs_max;
    const char *collective;
    double collective_bytes, sent_bytes;
    const char *note;
} wanted;

static rft_shard shard_of(const rft_model *model, const wanted *w) {
    const rft_phase phase = {RFT_PHASE_DECODE, w->batch, 1};
    for (int64_t row = 0; row < rft_model_layer_count(model); row++) {
        rft_layer layer = rft_layer_init();
        rft_shard shard = rft_shard_init();
        assert_int_equal(rft_model_get_layer(model, row, &phase, &layer, NULL), RFT_OK);
        assert_int_equal(rft_model_get_shard(model, row, &phase, &w->ranks, &shard, NULL), RFT_OK);
        if (strcmp(layer.name, w->name) == 0) {
            return shard;
        }
    }
    fail_msg("%s has no row %s", w->file, w->name);
    return (rft_shard){0};
}

/* To the last digit but the powers of the routing. */
static void assert_shard(const wanted *w) {
    rft_model *model = open_file(w->file);
    const rft_shard s = shard_of(model, w);
    if (strcmp(s.split, w->split) != 0 || s.m != w->m || s.n != w->n || s.k != w->k || s.count != w->count ||
        fabs(s.runs - w->runs) > 1e-9 * w->runs || s.runs_min != w->runs_min || s.runs_max != w->runs_max ||
        strcmp(s.collective, w->collective) != 0 || s.collective_bytes != w->collective_bytes ||
        s.sent_bytes != w->sent_bytes || strcmp(s.note, w->note) != 0 || s.divides != (w->note[0] == 0) ||
        s.weight_bytes != 2.0 * (double)(w->n * w->k)) {
        fail_msg("%s %s, %lld of %lld ranks: '%s' %lld x %lld x %lld, %lld held, %.9g (%g to %g) run, '%s' %.0f, %.0f sent, '%s'",
                 w->file, w->name, (long long)w->ranks.tp, (long long)w->ranks.ep, s.split, (long long)s.m, (long long)s.n,
                 (long long)s.k, (long long)s.count, s.runs, s.runs_min, s.runs_max, s.collective, s.collective_bytes,
                 s.sent_bytes, s.note);
    }
    rft_model_free(model);
}

#define V3 "deepseek-v3" /* 256 experts of 2048, 8 a token, and one of them beside, in 58 of 61 blocks; hidden 7168 */

static void experts_are_dealt_out(void **state) {
    (void)state;
    const double met64 = 1 - pow(31.0 / 32, 64), met8 = 1 - pow(0.75, 8);
    const wanted rows[] = {
        /* 64 tokens of all ranks, 2 for each expert, of those that any meets 64 * 8 / 256 / 0.869 */
        {V3, "expert_up", 64, {.tp = 1, .ep = 8}, "experts", 3, 2048, 7168, 58 * 32, 58 * 32 * met64, 0, 58 * 32, "", 0, 0, ""},
        {V3, "expert_down", 64, {.tp = 1, .ep = 64}, "experts", 3, 7168, 2048, 58 * 4, 58 * 4 * met64, 0, 58 * 4, "", 0, 0, ""},
        {V3, "expert_up", 64, {.tp = 4, .ep = 8}, "experts", 3, 2048, 7168, 58 * 32, 58 * 32 * met64, 0, 58 * 32, "", 0, 0, ""},
        {V3, "expert_up", 64, {.tp = 1, .ep = 1}, "", 3, 2048, 7168, 58 * 256, 58 * 256 * met64, 58 * 8, 58 * 256, "", 0, 0, ""},
        /* all else is whole on ranks with 8 tokens each, or cut over 4 with 32 */
        {V3, "attn_output", 64, {.tp = 1, .ep = 8}, "", 8, 7168, 16384, 61, 61, 61, 61, "", 0, 0, ""},
        {V3, "shared_down", 64, {.tp = 1, .ep = 8}, "", 8, 7168, 2048, 58, 58, 58, 58, "", 0, 0, ""},
        {V3, "router", 64, {.tp = 4, .ep = 8}, "", 32, 256, 7168, 58, 58, 58, 58, "", 0, 0, ""},
        {V3, "attn_output", 64, {.tp = 4, .ep = 8}, "K", 32, 7168, 4096, 61, 61, 61, 61, "all-reduce", 32 * 7168 * 2 * 61.0,
         1.5 * 32 * 7168 * 2 * 61, ""},
        {V3, "shared_down", 64, {.tp = 4, .ep = 8}, "K", 32, 7168, 512, 58, 58, 58, 58, "all-reduce", 32 * 7168 * 2 * 58.0,
         1.5 * 32 * 7168 * 2 * 58, ""},
        {"mixtral-8x7b", "expert_gate", 8, {.tp = 1, .ep = 8}, "experts", 3, 14336, 4096, 32, 32 * met8, 0, 32, "", 0, 0, ""},
        {"mixtral-8x7b", "attn_k", 20, {.tp = 1, .ep = 8}, "", 3, 1024, 4096, 32, 32, 32, 32, "", 0, 0, ""},
        /* four of eight experts: any two that a token takes, or none */
        {"mixtral-8x7b", "expert_down", 1, {.tp = 1, .ep = 2}, "experts", 1, 4096, 14336, 32 * 4, 32, 0, 64, "", 0, 0, ""},
        {"qwen3-30b-a3b", "expert_up", 1, {.tp = 1, .ep = 6}, "experts", 1, 768, 2048, 48 * 22, 48 * 22 / 16.0, 0, 48 * 8, "", 0,
         0, "128 experts do not divide by 6"},
        {"qwen1.5-moe-a2.7b", "expert_up", 1, {.tp = 1, .ep = 8}, "experts", 1, 1408, 2048, 24 * 8, 24 * 8 / 15.0, 0, 24 * 4, "",
         0, 0, "60 experts do not divide by 8"},
        {"gpt-oss-20b", "expert_down", 1, {.tp = 1, .ep = 64}, "experts", 1, 2880, 2880, 24, 24 / 8.0, 0, 24, "", 0, 0,
         "32 experts do not divide by 64"},
        {"deepseek-v2-lite", "expert_up", 1, {.tp = 2, .ep = 4}, "experts", 1, 1408, 2048, 26 * 16, 26 * 16 * 6 / 64.0, 0,
         26 * 6, "", 0, 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_shard(&rows[i]);
    }
}

/* Together ranks do what one would, where all divides. */
static void ranks_share_the_work(void **state) {
    (void)state;
    const rft_phase phase = {RFT_PHASE_PREFILL, 16, 100};
    const rft_ranks ranks = {.tp = 2, .ep = 16};
    rft_model *model = open_file(V3);
    double whole = 0, rank = 0;
    for (int64_t row = 0; row < rft_model_layer_count(model); row++) {
        rft_layer layer = rft_layer_init();
        rft_shard shard = rft_shard_init();
        assert_int_equal(rft_model_get_layer(model, row, &phase, &layer, NULL), RFT_OK);
        assert_int_equal(rft_model_get_shard(model, row, &phase, &ranks, &shard, NULL), RFT_OK);
        const double times = shard.split[0] ? 1 : 2; /* what is whole is done by both ranks of a group */
        whole += layer.flops;
        rank += shard.flops / times;
    }
    assert_true(fabs(16 * rank - whole) < 1e-9 * whole);
    rft_model_free(model);
}

/* ---- training ---- */

typedef struct wanted_pass {
    const char *file, *name;
    rft_ranks ranks;
    rft_pass pass;
    int64_t m, n, k;
    double collective_bytes; /* of an all-reduce */
    const char *note;
} wanted_pass;

static void assert_pass(const wanted_pass *w) {
    const rft_phase phase = {RFT_PHASE_TRAIN, 4, 100};
    rft_model *model = open_file(w->file);
    rft_layer layer = rft_layer_init();
    rft_shard s = rft_shard_init();
    for (int64_t row = 0; !layer.name || strcmp(layer.name, w->name) != 0; row++) {
        assert_int_equal(rft_model_get_layer(model, row, &phase, &layer, NULL), RFT_OK);
        assert_int_equal(rft_model_get_pass_shard(model, row, &phase, w->pass, &w->ranks, &s, NULL), RFT_OK);
    }
    const double sent = 2 * w->collective_bytes * (double)(w->ranks.tp - 1) / (double)w->ranks.tp;
    if (s.m != w->m || s.n != w->n || s.k != w->k || s.collective_bytes != w->collective_bytes || s.sent_bytes != sent ||
        strcmp(s.note, w->note) != 0 || strcmp(s.collective, w->collective_bytes > 0 ? "all-reduce" : "") != 0 ||
        (s.weight_bytes == 0) != (w->pass == RFT_PASS_WGRAD)) {
        fail_msg("%s %s, pass %d: %lld x %lld x %lld, '%s' %.0f, '%s'", w->file, w->name, (int)w->pass, (long long)s.m,
                 (long long)s.n, (long long)s.k, s.collective, s.collective_bytes, s.note);
    }
    rft_model_free(model);
}

/* 400 tokens, or 200 of a group where there are two. Back, what is cut along N sums where forward what is cut along K does. */
static void gradients_are_summed(void **state) {
    (void)state;
    static const wanted_pass rows[] = {
        {"llama-3.1-8b", "attn_q", {.tp = 4}, RFT_PASS_FORWARD, 400, 1024, 4096, 0, ""},
        {"llama-3.1-8b", "attn_q", {.tp = 4}, RFT_PASS_DGRAD, 400, 4096, 1024, 400 * 4096 * 2 * 32.0, ""},
        {"llama-3.1-8b", "attn_k", {.tp = 4}, RFT_PASS_DGRAD, 400, 4096, 256, 0, "summed with attn_q"},
        {"llama-3.1-8b", "attn_v", {.tp = 4}, RFT_PASS_DGRAD, 400, 4096, 256, 0, "summed with attn_k"},
        {"llama-3.1-8b", "attn_k", {.tp = 4}, RFT_PASS_WGRAD, 256, 4096, 400, 0, ""},
        {"llama-3.1-8b", "attn_output", {.tp = 4}, RFT_PASS_FORWARD, 400, 4096, 1024, 400 * 4096 * 2 * 32.0, ""},
        {"llama-3.1-8b", "attn_output", {.tp = 4}, RFT_PASS_DGRAD, 400, 1024, 4096, 0, ""},
        {"llama-3.1-8b", "ffn_gate", {.tp = 4}, RFT_PASS_DGRAD, 400, 4096, 3584, 0, "summed with ffn_up"},
        {"llama-3.1-8b", "lm_head", {.tp = 4}, RFT_PASS_FORWARD, 400, 32064, 4096, 0, ""},
        {"llama-3.1-8b", "lm_head", {.tp = 4}, RFT_PASS_DGRAD, 400, 4096, 32064, 400 * 4096 * 2, ""},
        {"gpt2", "attn_qkv", {.tp = 4}, RFT_PASS_WGRAD, 768, 576, 400, 0, ""}, /* [in, out] as stored */
        {"deepseek-v3", "attn_q_b", {.tp = 4}, RFT_PASS_DGRAD, 400, 1536, 6144, 400 * 1536 * 2 * 61.0, ""},
        {"deepseek-v3", "attn_kv_b", {.tp = 4}, RFT_PASS_DGRAD, 400, 512, 8192, 400 * 512 * 2 * 61.0, ""},
        {"deepseek-v3", "attn_q_a", {.tp = 4}, RFT_PASS_DGRAD, 400, 7168, 1536, 0, ""},
        {"deepseek-v3", "expert_up", {.tp = 4}, RFT_PASS_DGRAD, 13, 7168, 512, 400 * 7168 * 2 * 58.0, ""},
        {"deepseek-v3", "expert_gate", {.tp = 4}, RFT_PASS_DGRAD, 13, 7168, 512, 0, "summed with expert_up"},
        {"deepseek-v3", "shared_up", {.tp = 4}, RFT_PASS_DGRAD, 400, 7168, 512, 0, "summed with the experts"},
        {"deepseek-v3", "expert_up", {.tp = 4, .ep = 8}, RFT_PASS_DGRAD, 13, 7168, 2048, 0, ""},
        {"deepseek-v3", "shared_up", {.tp = 4, .ep = 8}, RFT_PASS_DGRAD, 200, 7168, 512, 200 * 7168 * 2 * 58.0, ""},
        {"whisper-large-v3", "cross_attn_q", {.tp = 4}, RFT_PASS_DGRAD, 400, 1280, 320, 400 * 1280 * 2 * 32.0, ""},
        {"whisper-large-v3", "cross_attn_k", {.tp = 4}, RFT_PASS_DGRAD, 6000, 1280, 320, 6000 * 1280 * 2 * 32.0, ""},
        {"whisper-large-v3", "cross_attn_v", {.tp = 4}, RFT_PASS_DGRAD, 6000, 1280, 320, 0, "summed with cross_attn_k"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_pass(&rows[i]);
    }
}

/* ---- what ranks send ---- */

typedef struct wanted_exchange {
    const char *file;
    int64_t batch;
    rft_ranks ranks;
    double values, bytes; /* of a token in all blocks; all that is dispatched in 16 bits, in units of them */
    double sent[3], back[3]; /* expected, least, most */
} wanted_exchange;

static rft_exchange exchange_of(const rft_model *model, rft_exchange_kind kind, const wanted_exchange *w) {
    const rft_phase phase = {RFT_PHASE_DECODE, w->batch, 1};
    rft_exchange e = rft_exchange_init();
    assert_int_equal(rft_model_get_exchange(model, kind, &phase, &w->ranks, &e, NULL), RFT_OK);
    return e;
}

static void assert_exchange(const rft_exchange *e, const char *name, double all, const double sent[3], double unit) {
    if (strcmp(e->name, name) != 0 || e->bytes != all * unit || fabs(e->sent_bytes - sent[0] * unit) > 1e-12 * sent[0] * unit ||
        e->sent_bytes_min != sent[1] * unit || e->sent_bytes_max != sent[2] * unit) {
        fail_msg("%s: %.0f bytes, %.3f (%.0f to %.0f) sent, not %.3f (%.0f to %.0f)", e->name, e->bytes, e->sent_bytes,
                 e->sent_bytes_min, e->sent_bytes_max, sent[0] * unit, sent[1] * unit, sent[2] * unit);
    }
}

static void tokens_meet_their_experts(void **state) {
    (void)state;
    const wanted_exchange rows[] = {
        /* 64 tokens on a rank, 8 copies of each: 7 of 8 leave, all or none at the ends; 448 others may all want this rank */
        {V3, 512, {.tp = 1, .ep = 8}, 7168 * 58, 4096, {448, 0, 512}, {448, 0, 3584}},
        /* 8 tokens on a rank with 4 experts: at least 4 copies of each leave */
        {V3, 512, {.tp = 1, .ep = 64}, 7168 * 58, 4096, {63, 32, 64}, {63, 0, 504 * 4}},
        {V3, 512, {.tp = 4, .ep = 64}, 7168 * 58, 4096, {63, 32, 64}, {63, 0, 504 * 4}}, /* 32 tokens of a group, 8 on a rank */
        {V3, 512, {.tp = 1, .ep = 64, .dispatch_bytes = 1 + 4 / 128.0}, 7168 * 58, 4096, {63, 32, 64}, {63, 0, 504 * 4}},
        {V3, 1, {.tp = 1, .ep = 1}, 7168 * 58, 8, {0, 0, 0}, {0, 0, 0}},
        {"mixtral-8x7b", 8, {.tp = 1, .ep = 8}, 4096 * 32, 16, {1.75, 1, 2}, {1.75, 0, 7}},
        {"mixtral-8x7b", 1, {.tp = 1, .ep = 8}, 4096 * 32, 2, {1.75, 1, 2}, {1.75 / 8, 0, 1}}, /* one rank has the token */
        {"mixtral-8x7b", 1, {.tp = 8, .ep = 8}, 4096 * 32, 2, {1.75, 1, 2}, {1.75 / 8, 0, 1}},
        /* 22 of 128 experts on the fullest rank, 21 on others */
        {"qwen3-30b-a3b", 6, {.tp = 1, .ep = 6}, 2048 * 48, 48, {8 * 5 / 6.0, 0, 8}, {48 * 22 / 128.0 * 5 / 6, 0, 40}},
        {"qwen3-30b-a3b", 256, {.tp = 2, .ep = 32}, 2048 * 48, 2048, {62, 32, 64}, {62, 0, 248 * 4}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rft_model *model = open_file(rows[i].file);
        const double to = rows[i].ranks.dispatch_bytes > 0 ? rows[i].ranks.dispatch_bytes : 2;
        const rft_exchange there = exchange_of(model, RFT_EXCHANGE_DISPATCH, &rows[i]);
        const rft_exchange back = exchange_of(model, RFT_EXCHANGE_COMBINE, &rows[i]);
        assert_exchange(&there, "dispatch", rows[i].bytes, rows[i].sent, rows[i].values * to);
        assert_exchange(&back, "combine", rows[i].bytes, rows[i].back, rows[i].values * 2);
        rft_model_free(model);
    }
}

/* Those of results to the experts, those of what experts read to the tokens' ranks. */
static void gradients_go_back(void **state) {
    (void)state;
    const rft_phase phase = {RFT_PHASE_TRAIN, 8, 64};
    const rft_ranks ranks = {.tp = 1, .ep = 8, .dispatch_bytes = 1 + 4 / 128.0};
    rft_exchange there = rft_exchange_init(), back = rft_exchange_init();
    rft_model *model = open_file(V3);
    assert_int_equal(rft_model_get_exchange(model, RFT_EXCHANGE_DISPATCH, &phase, &ranks, &there, NULL), RFT_OK);
    assert_int_equal(rft_model_get_exchange(model, RFT_EXCHANGE_COMBINE, &phase, &ranks, &back, NULL), RFT_OK);
    assert_true(there.sent_bytes == 448.0 * 7168 * 58 * (1 + 4 / 128.0 + 2) && back.sent_bytes == 448.0 * 7168 * 58 * 4);
    rft_model_free(model);
}

/* A group keeps the cache of its own sequences; latent ones are whole on each rank of it. */
static void groups_keep_their_cache(void **state) {
    (void)state;
    const rft_phase phase = {RFT_PHASE_DECODE, 20, 1};
    double share;
    rft_model *model = open_file("mixtral-8x7b");
    assert_int_equal(rft_model_cache_share(model, &phase, &(rft_ranks){.tp = 2, .ep = 8}, &share, NULL), RFT_OK);
    assert_true(share == 0.5 * 5 / 20);
    assert_int_equal(rft_model_cache_share(model, &phase, &(rft_ranks){.tp = 1, .ep = 8}, &share, NULL), RFT_OK);
    assert_true(share == 3.0 / 20);
    rft_model_free(model);
    model = open_file(V3);
    assert_int_equal(rft_model_cache_share(model, &phase, &(rft_ranks){.tp = 2, .ep = 8}, &share, NULL), RFT_OK);
    assert_true(share == 5.0 / 20);
    rft_model_free(model);
}

/* ---- refused ---- */

static void assert_refused(const char *file, rft_ranks ranks, rft_status status, const char *why) {
    const rft_phase phase = {RFT_PHASE_DECODE, 2, 1};
    rft_shard shard = rft_shard_init();
    rft_exchange exchange = rft_exchange_init();
    rft_model *model = open_file(file);
    double share;
    rft_error err = {0};
    assert_int_equal(rft_model_get_shard(model, 0, &phase, &ranks, &shard, &err), status);
    assert_int_equal(rft_model_cache_share(model, &phase, &ranks, &share, &err), status);
    assert_int_equal(rft_model_get_exchange(model, RFT_EXCHANGE_COMBINE, &phase, &ranks, &exchange, &err), status);
    if (!strstr(err.message, why)) {
        fail_msg("'%s' lacks '%s'", err.message, why);
    }
    rft_model_free(model);
}

static void wrong_ranks_are_refused(void **state) {
    (void)state;
    assert_refused(V3, (rft_ranks){.tp = 0, .ep = 8}, RFT_E_ARG, "ranks.tp = 0 is not in 1..1024");
    assert_refused(V3, (rft_ranks){.tp = 1, .ep = -8}, RFT_E_ARG, "ranks.ep = -8 is not in 0..1024");
    assert_refused(V3, (rft_ranks){.tp = 1, .ep = 1025}, RFT_E_ARG, "ranks.ep = 1025");
    assert_refused(V3, (rft_ranks){.tp = 3, .ep = 8}, RFT_E_ARG, "8 is no multiple of ranks.tp = 3");
    assert_refused(V3, (rft_ranks){1, 8, -1}, RFT_E_ARG, "ranks.dispatch_bytes = -1");
    assert_refused(V3, (rft_ranks){1, 8, NAN}, RFT_E_ARG, "ranks.dispatch_bytes = ");
    assert_refused("llama-3.1-8b", (rft_ranks){1, 8, 0}, RFT_E_UNSUPPORTED, "llama has no experts");
}

static void wrong_exchanges_are_refused(void **state) {
    (void)state;
    const rft_phase phase = {RFT_PHASE_DECODE, 2, 1};
    const rft_ranks cut = {.tp = 8}, dealt = {.tp = 1, .ep = 8};
    rft_exchange exchange = rft_exchange_init();
    rft_model *model = open_file(V3);
    rft_error err = {0};
    assert_int_equal(rft_model_get_exchange(model, RFT_EXCHANGE_DISPATCH, &phase, &cut, &exchange, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "ranks.ep = 0"));
    assert_int_equal(rft_model_get_exchange(model, (rft_exchange_kind)3, &phase, &dealt, &exchange, &err), RFT_E_ARG);
    assert_non_null(strstr(err.message, "kind = 3"));
    assert_int_equal(rft_model_get_exchange(model, RFT_EXCHANGE_COMBINE, &phase, NULL, &exchange, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_exchange(model, RFT_EXCHANGE_COMBINE, NULL, &dealt, &exchange, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_exchange(model, RFT_EXCHANGE_COMBINE, &phase, &dealt, NULL, &err), RFT_E_ARG);
    assert_int_equal(rft_model_get_exchange(NULL, RFT_EXCHANGE_COMBINE, &phase, &dealt, &exchange, &err), RFT_E_ARG);
    rft_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_are_dealt_out),   cmocka_unit_test(ranks_share_the_work),
        cmocka_unit_test(tokens_meet_their_experts), cmocka_unit_test(groups_keep_their_cache),
        cmocka_unit_test(gradients_are_summed),    cmocka_unit_test(gradients_go_back),
        cmocka_unit_test(wrong_ranks_are_refused), cmocka_unit_test(wrong_exchanges_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
