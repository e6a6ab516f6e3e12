/* SPDX-License-Identifier: Apache-2.0
 *
 * test_quantize.c - rft_model_quantize from a checkpoint and from a GGUF file: what changes and what stays, names, rows and keys
 * of the new file, what is refused, and that a failure leaves the folder as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "meter.h"
#include "model_object.h"
#include "safetensors_builder.h"
#include "test_files.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <sys/stat.h>

static st_builder file;
static rft_error err;

static void write_config(const char *more) {
    char text[1024];
    snprintf(text, sizeof text, "{" ST_TINY_SIZES ",\"rms_norm_eps\":1e-5,\"rope_theta\":50000,\"_name_or_path\":\"tiny\"%s}",
             more);
    write_text("config.json", text);
}

static void write_checkpoint(void) {
    st_end(&file);
    write_file("model.safetensors", file.bytes, file.size);
}

static void begin_checkpoint(void) {
    st_begin(&file);
    st_tiny_block(&file, 0);
    st_tiny_block(&file, 1);
    st_tiny_ends(&file);
}

static rft_model *open_model(const char *name) {
    rft_model *model = NULL;
    if (rft_model_open(in_folder(name), &model, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    return model;
}

static rft_type type_named(const char *name) {
    rft_type type;
    for (uint32_t i = 0; (type = rft_quantize_type(i)) != (rft_type)0 && strcmp(rft_type_name(type), name) != 0; i++) {
    }
    assert_true(type != 0);
    return type;
}

static rft_quantize_options options_for(const char *type) {
    rft_quantize_options o = rft_quantize_options_init();
    o.to = type_named(type);
    o.threads = 2;
    return o;
}

static rft_status quantize(const char *in, const char *out, const rft_quantize_options *o) {
    char path[PATH_MAX];
    rft_model *model = open_model(in);
    snprintf(path, sizeof path, "%s", in_folder(out));
    memset(&err, 0, sizeof err);
    const rft_status status = rft_model_quantize(model, path, o, &err);
    rft_model_free(model);
    return status;
}

static void assert_done(rft_status status) {
    if (status != RFT_OK) {
        fail_msg("%s", err.message);
    }
}

static rft_tensor tensor_of(const rft_model *model, const char *name, int64_t *index) {
    rft_tensor t = rft_tensor_init();
    *index = rft_model_find_tensor(model, name);
    if (*index < 0) {
        fail_msg("no tensor '%s'", name);
    }
    assert_int_equal(rft_model_get_tensor(model, *index, &t, NULL), RFT_OK);
    return t;
}

static void values_of(const rft_model *model, const char *name, float *out, rft_tensor *t) {
    int64_t index;
    *t = tensor_of(model, name, &index);
    assert_int_equal(rft_model_decode(model, index, 0, t->dims[1], RFT_F32, out, 0, NULL), RFT_OK);
}

static int files_in_folder(void) {
    int count = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        count += e->d_name[0] != '.';
    }
    closedir(d);
    return count;
}

/* ---- what comes out ---- */

/* Row r of a head in the file is row r / 2, or r / 2 + half, of that head in the checkpoint. */
static int64_t old_row(int64_t row, int64_t head) { return row / head * head + row % 2 * (head / 2) + row % head / 2; }

static void checkpoint_becomes_gguf(void **state) {
    (void)state;
    static float old[128 * 64], new[128 * 64];
    const rft_quantize_options o = options_for("f32");
    rft_tensor t, u;
    write_config("");
    begin_checkpoint();
    write_checkpoint();
    assert_done(quantize(".", "out.gguf", &o));
    rft_model *before = open_model("."), *after = open_model("out.gguf");
    rft_model_info info = rft_model_info_init();
    assert_int_equal(rft_model_get_info(after, &info, NULL), RFT_OK);
    assert_true(info.format == RFT_MODEL_GGUF && info.layers == 2 && info.hidden == 64 && info.heads == 4 && info.kv_heads == 2);
    assert_true(info.head_dim == 16 && info.ffn == 96 && info.vocab == 128 && info.tied == 0 && info.n_tensors == 21);
    assert_string_equal(info.architecture, "llama");
    assert_string_equal(info.name, "tiny");
    assert_int_equal(rft_model_layer_count(after), 8);
    values_of(before, "model.layers.1.self_attn.k_proj.weight", old, &t);
    values_of(after, "blk.1.attn_k.weight", new, &u);
    assert_true(t.dims[0] == u.dims[0] && t.dims[1] == u.dims[1]);
    for (int64_t r = 0; r < 32; r++) {
        assert_memory_equal(new + r * 64, old + old_row(r, 16) * 64, 64 * sizeof(float));
    }
    values_of(before, "model.layers.1.mlp.down_proj.weight", old, &t);
    values_of(after, "blk.1.ffn_down.weight", new, &u);
    assert_memory_equal(new, old, 64 * 96 * sizeof(float));
    values_of(before, "model.norm.weight", old, &t);
    values_of(after, "output_norm.weight", new, &u);
    assert_memory_equal(new, old, 64 * sizeof(float));
    rft_model_free(before);
    rft_model_free(after);
}

static void qwen_keeps_its_rows_and_biases(void **state) {
    (void)state;
    static float old[64 * 64], new[64 * 64];
    rft_tensor t;
    rft_quantize_options o = options_for("q8_0");
    const char *const keep[] = {"*attn_q.weight"};
    char text[512];
    snprintf(text, sizeof text, "{" ST_TINY_SIZES "}");
    memcpy(strstr(text, "llama"), "qwen2", 5);
    write_text("config.json", text);
    begin_checkpoint();
    uint16_t *bias = st_add(&file, "model.layers.0.self_attn.q_proj.bias", "BF16", "[64]", 128);
    for (unsigned i = 0; i < 64; i++) {
        bias[i] = (uint16_t)(0x3f80 + i);
    }
    write_checkpoint();
    o.keep = keep;
    o.n_keep = 1;
    assert_done(quantize(".", "out.gguf", &o));
    rft_model *before = open_model("."), *after = open_model("out.gguf");
    values_of(before, "model.layers.0.self_attn.q_proj.weight", old, &t);
    values_of(after, "blk.0.attn_q.weight", new, &t);
    assert_int_equal(t.type, RFT_F32);
    assert_memory_equal(new, old, sizeof new);
    values_of(after, "blk.0.attn_q.bias", new, &t);
    assert_int_equal(t.type, RFT_F32);
    assert_true(new[0] == 1 && new[64 - 1] == 1 + 63 / 128.0f);
    rft_model_free(before);
    rft_model_free(after);
    write_config("");
    assert_done(quantize(".", "out.gguf", &o));
    after = open_model("out.gguf");
    values_of(after, "blk.0.attn_q.bias", new, &t);
    assert_true(new[1] == 1 + 8 / 128.0f && new[2] == 1 + 1 / 128.0f); /* a llama's halves are interleaved */
    rft_model_free(after);
}

typedef struct heard {
    int calls, quantised, stop_at;
    double worst_rms;
    char why[96];
} heard;

static int listen(void *user, const rft_quantized *q) {
    heard *h = user;
    assert_true(q->index >= 0 && q->index < q->count && q->done <= q->n);
    if (q->done == q->n && strncmp(q->name, "blk.", 4) == 0 && strstr(q->name, "_norm") == NULL) {
        h->quantised += q->from != q->to;
        h->worst_rms = fmax(h->worst_rms, q->rel_rms);
        assert_true(q->cosine > 0.98 && q->max_error > 0 && q->bytes > 0);
        snprintf(h->why, sizeof h->why, "%s", q->why);
    }
    return ++h->calls == h->stop_at;
}

static void every_type_is_read_back(void **state) {
    (void)state;
    rft_type type;
    write_config("");
    begin_checkpoint();
    write_checkpoint();
    for (uint32_t i = 0; (type = rft_quantize_type(i)) != (rft_type)0; i++) {
        heard h = {0};
        rft_quantize_options o = options_for(rft_type_name(type));
        o.progress = listen;
        o.user = &h;
        if (type == RFT_F32 || type == RFT_I4 || type == RFT_I8 || type == RFT_E4M3) {
            continue;
        }
        assert_done(quantize(".", "out.gguf", &o));
        assert_int_equal(h.quantised, 14);
        assert_true(h.worst_rms < 0.13);
        rft_model *model = open_model("out.gguf");
        int64_t index;
        const rft_tensor q = tensor_of(model, "blk.0.attn_q.weight", &index);
        const rft_tensor e = tensor_of(model, "token_embd.weight", &index);
        assert_true(e.type == RFT_F32 && (q.type == type || strstr(h.why, "is not a multiple of 256")));
        rft_model_free(model);
    }
}

static void gguf_becomes_gguf(void **state) {
    (void)state;
    static float old[128 * 64], new[128 * 64];
    rft_quantize_options o = options_for("bf16");
    rft_tensor t;
    write_config("");
    begin_checkpoint();
    write_checkpoint();
    assert_done(quantize(".", "first.gguf", &o));
    o = options_for("q8_0");
    o.flags = RFT_QUANTIZE_EMBEDDINGS | RFT_QUANTIZE_NEAREST;
    assert_done(quantize("first.gguf", "second.gguf", &o));
    rft_model *first = open_model("first.gguf"), *second = open_model("second.gguf");
    rft_model_info a = rft_model_info_init(), b = rft_model_info_init();
    assert_int_equal(rft_model_get_info(first, &a, NULL), RFT_OK);
    assert_int_equal(rft_model_get_info(second, &b, NULL), RFT_OK);
    assert_true(a.n_tensors == b.n_tensors && a.heads == b.heads && a.context == b.context && a.parameters == b.parameters);
    values_of(first, "blk.0.attn_q.weight", old, &t);
    values_of(second, "blk.0.attn_q.weight", new, &t);
    for (int i = 0; i < 64 * 64; i++) {
        assert_true(fabsf(new[i] - old[i]) < 0.006f); /* rows are in their final order already */
    }
    values_of(second, "token_embd.weight", new, &t);
    assert_string_equal(rft_type_name(t.type), "q8_0");
    rft_model_free(first);
    rft_model_free(second);
    o = options_for("q4_0");
    assert_int_equal(quantize("second.gguf", "third.gguf", &o), RFT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "is q8_0 already"));
    o.flags = RFT_QUANTIZE_AGAIN;
    assert_done(quantize("second.gguf", "third.gguf", &o));
    remove(in_folder("third.gguf"));
    remove(in_folder("second.gguf"));
    remove(in_folder("first.gguf"));
}

static void tied_and_scaled_checkpoints(void **state) {
    (void)state;
    const rft_quantize_options o = options_for("q8_0");
    float freqs[8];
    rft_tensor t;
    write_config(
        ",\"tie_word_embeddings\":true,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
        "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8192}");
    begin_checkpoint();
    write_checkpoint();
    assert_done(quantize(".", "out.gguf", &o));
    rft_model *model = open_model("out.gguf");
    assert_int_equal(rft_model_find_tensor(model, "output.weight"), -1);
    values_of(model, "rope_freqs.weight", freqs, &t);
    assert_true(t.dims[0] == 8 && freqs[0] == 1 && freqs[7] == 8 && freqs[5] >= freqs[4]);
    rft_model_free(model);
    write_config(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":64}");
    assert_done(quantize(".", "out.gguf", &o));
    write_config(",\"rope_scaling\":{\"type\":\"longrope\"}");
    assert_int_equal(quantize(".", "out.gguf", &o), RFT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "'longrope'"));
}

/* ---- compressed-tensors ---- */

static void remove_packed(void) {
    remove(in_folder("packed/model.safetensors"));
    remove(in_folder("packed/config.json"));
    remove(in_folder("packed"));
}

static void checkpoint_becomes_packed(void **state) {
    (void)state;
    static const struct {
        const char *type, *scheme;
        double rms;
    } rows[] = {{"i4", "int 4-bit g32", 0.12}, {"i8", "int 8-bit a row", 0.006}, {"e4m3", "fp8 a row", 0.035}};
    static float old[128 * 64], new[128 * 64];
    rft_tensor t;
    write_config("");
    begin_checkpoint();
    write_checkpoint();
    for (size_t i = 0; i < 3; i++) {
        heard h = {0};
        rft_quantize_options o = options_for(rows[i].type);
        o.group_k = i == 0 ? 32 : 0;
        o.progress = listen;
        o.user = &h;
        assert_done(quantize(".", "packed", &o));
        rft_model *before = open_model("."), *after = open_model("packed");
        double ee = 0, xx = 0;
        values_of(before, "model.layers.1.self_attn.q_proj.weight", old, &t);
        values_of(after, "model.layers.1.self_attn.q_proj.weight", new, &t);
        assert_string_equal(t.scheme, rows[i].scheme);
        for (int k = 0; k < 64 * 64; k++) {
            ee += ((double)new[k] - old[k]) * ((double)new[k] - old[k]);
            xx += (double)old[k] * old[k];
        }
        assert_true(ee > 0 && sqrt(ee / xx) < rows[i].rms);
        values_of(before, "lm_head.weight", old, &t);
        values_of(after, "lm_head.weight", new, &t);
        assert_memory_equal(new, old, sizeof new);
        assert_int_equal(rft_model_layer_count(after), 8);
        rft_model_free(before);
        rft_model_free(after);
        remove_packed();
    }
}

static void failures_leave_no_folder(void **state) {
    (void)state;
    rft_quantize_options o = options_for("i8");
    const int files = files_in_folder();
    heard h = {.stop_at = 3};
    const uint32_t nan_bits = 0x7fc00000;
    o.progress = listen;
    o.user = &h;
    assert_int_equal(quantize(".", "packed", &o), RFT_E_IO);
    assert_int_equal(err.native, EINTR);
    assert_int_equal(files_in_folder(), files);
    begin_checkpoint();
    memcpy(file.data + 4 * 65, &nan_bits, 4);
    write_checkpoint();
    o.progress = NULL;
    assert_int_equal(quantize(".", "packed", &o), RFT_E_ARG);
    assert_non_null(strstr(err.message, "'model.layers.0.self_attn.q_proj.weight' has nan at row 1, k = 1: i8 holds finite"));
    assert_int_equal(files_in_folder(), files);
    o.group_k = 32;
    assert_int_equal(quantize(".", "packed", &o), RFT_E_ARG);
    assert_non_null(strstr(err.message, "group_k = 32 with i8"));
    o = options_for("i4");
    assert_int_equal(quantize(".", "packed", &o), RFT_OK); /* K of 64 and 96 is no multiple of 128: all stay */
    remove_packed();
    begin_checkpoint();
    write_checkpoint();
}

/* ---- failures ---- */

static void assert_left_alone(const char *text) {
    char got[16] = {0};
    FILE *in = fopen(in_folder("out.gguf"), "rb");
    assert_non_null(in);
    assert_true(fread(got, 1, sizeof got - 1, in) == strlen(text));
    fclose(in);
    assert_string_equal(got, text);
}

static void bad_weights_are_named(void **state) {
    (void)state;
    static const struct {
        uint32_t bits;
        const char *text;
    } rows[] = {{0x7fc00000, "nan"}, {0x7f800000, "inf"}, {0xff800000, "-inf"}, {0x47800000, "65536"}};
    const rft_quantize_options o = options_for("q4_0");
    write_config("");
    write_text("out.gguf", "old");
    const int files = files_in_folder();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char want[128];
        begin_checkpoint();
        unsigned char *at = file.data + 4 * (64 * 64 + 2 * 32 * 64 + 64 * 64 + 7 * 64 + 11); /* block 0, gate_proj, row 7, k 11 */
        memcpy(at, &rows[i].bits, 4);
        write_checkpoint();
        assert_int_equal(quantize(".", "out.gguf", &o), RFT_E_ARG);
        snprintf(want, sizeof want, "tensor 'blk.0.ffn_gate.weight' has %s at row 7, k = 11: q4_0 holds", rows[i].text);
        if (!strstr(err.message, want)) {
            fail_msg("'%s' should say '%s'", err.message, want);
        }
        assert_left_alone("old");
        assert_int_equal(files_in_folder(), files);
    }
}

static void stopping_leaves_nothing(void **state) {
    (void)state;
    write_config("");
    begin_checkpoint();
    write_checkpoint();
    write_text("out.gguf", "old");
    const int files = files_in_folder();
    for (int at = 1; at <= 21; at += 5) {
        heard h = {.stop_at = at};
        rft_quantize_options o = options_for("q4_1");
        o.progress = listen;
        o.user = &h;
        assert_int_equal(quantize(".", "out.gguf", &o), RFT_E_IO);
        assert_int_equal(err.native, EINTR);
        assert_int_equal(h.calls, at);
        assert_left_alone("old");
        assert_int_equal(files_in_folder(), files);
    }
}

/* A failure at each allocation in turn: an error, nothing leaked, nothing written. */
static void failing_allocations(void **state) {
    (void)state;
    char path[PATH_MAX];
    write_text("out.gguf", "old");
    snprintf(path, sizeof path, "%s", in_folder("out.gguf"));
    rft_model *model = open_model(".");
    const int files = files_in_folder();
    rft_quantize_options o = options_for("q8_0");
    rft_status status = RFT_E_NOMEM;
    size_t at = 1;
    for (; status != RFT_OK && at < 100; at++) {
        meter m = {.fail_at = at};
        rft_model copy = *model;
        copy.allocator = (rft__allocator){meter_alloc, meter_release, &m, false};
        memset(&err, 0, sizeof err);
        status = rft_model_quantize(&copy, path, &o, &err);
        assert_int_equal(m.live, 0);
        if (status != RFT_OK) {
            assert_int_equal(status, RFT_E_NOMEM);
            assert_left_alone("old");
            assert_int_equal(files_in_folder(), files);
        }
    }
    assert_int_equal(status, RFT_OK);
    assert_true(at > 10);
    rft_model_free(model);
}

static void places_that_cannot_be_written(void **state) {
    (void)state;
    const rft_quantize_options o = options_for("q8_0");
    write_config("");
    begin_checkpoint();
    write_checkpoint();
    const int files = files_in_folder();
    assert_int_equal(quantize(".", "config.json/x.gguf", &o), RFT_E_IO);
    assert_int_equal(mkdir(in_folder("taken"), 0755), 0);
    assert_int_equal(quantize(".", "taken", &o), RFT_E_IO);
    assert_int_equal(err.native, EISDIR);
    assert_int_equal(files_in_folder(), files + 1);
}

static void bad_options_are_refused(void **state) {
    (void)state;
    rft_model *model = open_model(".");
    rft_quantize_options o = options_for("q8_0");
    assert_int_equal(rft_model_quantize(NULL, "x", &o, &err), RFT_E_ARG);
    assert_int_equal(rft_model_quantize(model, NULL, &o, &err), RFT_E_ARG);
    assert_int_equal(rft_model_quantize(model, "x", NULL, &err), RFT_E_ARG);
    o.flags = 8;
    assert_int_equal(rft_model_quantize(model, "x", &o, &err), RFT_E_ARG);
    o = options_for("q8_0");
    o.n_keep = 1;
    assert_int_equal(rft_model_quantize(model, "x", &o, &err), RFT_E_ARG);
    o = options_for("q8_0");
    o.to = RFT_I32;
    assert_int_equal(rft_model_quantize(model, "x", &o, &err), RFT_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "i32"));
    rft_model_free(model);
    assert_int_equal(quantize("config.json", "x", &(rft_quantize_options){.struct_size = sizeof o, .to = RFT_BF16}), RFT_E_ARG);
    assert_non_null(strstr(err.message, "no tensors"));
}

static void strange_tensors_are_refused(void **state) {
    (void)state;
    const rft_quantize_options o = options_for("q8_0");
    static const char *const names[] = {"visual.patch", "model.layers. 1.mlp.up_proj.weight",
                                        "model.layers.01.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.scale"};
    write_config("");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        begin_checkpoint();
        st_add(&file, names[i], "F32", "[2]", 8);
        write_checkpoint();
        assert_int_equal(quantize(".", "out.gguf", &o), RFT_E_UNSUPPORTED);
        assert_non_null(strstr(err.message, "has no place in a GGUF file"));
    }
    begin_checkpoint();
    write_checkpoint();
}

static void strange_rotations_are_refused(void **state) {
    (void)state;
    const rft_quantize_options o = options_for("q8_0");
    static const struct {
        const char *scaling, *says;
    } rows[] = {{"\"factor\":\"8\"", "the value of 'factor' is not a number"},
                {"\"factor\":-1", "factor -1, low_freq_factor 1, high_freq_factor 4 make no sense"},
                {"\"low_freq_factor\":4", "make no sense"}};
    begin_checkpoint();
    write_checkpoint();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char more[128];
        snprintf(more, sizeof more, ",\"rope_scaling\":{\"rope_type\":\"llama3\",%s}", rows[i].scaling);
        write_config(more);
        assert_int_equal(quantize(".", "out.gguf", &o), RFT_E_ARG);
        if (strstr(err.message, rows[i].says) == NULL) {
            fail_msg("%s: %s", rows[i].scaling, err.message);
        }
    }
    write_config("");
}

/* What a pattern keeps, and a head that is the embedding, are no packed modules. */
static void packed_models_keep_what_is_asked(void **state) {
    (void)state;
    static const char *const keep[] = {"*q_proj*"};
    rft_quantize_options o = options_for("i8");
    o.keep = keep;
    o.n_keep = 1;
    write_config(",\"tie_word_embeddings\":true");
    assert_done(quantize(".", "packed", &o));
    rft_model *after = open_model("packed");
    static float values[128 * 64];
    rft_tensor t;
    values_of(after, "model.layers.1.self_attn.q_proj.weight", values, &t);
    assert_string_equal(t.scheme, "");
    values_of(after, "model.layers.1.self_attn.o_proj.weight", values, &t);
    assert_string_equal(t.scheme, "int 8-bit a row");
    rft_model_free(after);
    remove_packed();
    write_config("");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoint_becomes_gguf),       cmocka_unit_test(qwen_keeps_its_rows_and_biases),
        cmocka_unit_test(every_type_is_read_back),       cmocka_unit_test(gguf_becomes_gguf),
        cmocka_unit_test(tied_and_scaled_checkpoints),   cmocka_unit_test(checkpoint_becomes_packed),
        cmocka_unit_test(failures_leave_no_folder),      cmocka_unit_test(bad_weights_are_named),
        cmocka_unit_test(stopping_leaves_nothing),       cmocka_unit_test(failing_allocations),
        cmocka_unit_test(places_that_cannot_be_written), cmocka_unit_test(strange_tensors_are_refused),
        cmocka_unit_test(bad_options_are_refused),       cmocka_unit_test(strange_rotations_are_refused),
        cmocka_unit_test(packed_models_keep_what_is_asked),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
