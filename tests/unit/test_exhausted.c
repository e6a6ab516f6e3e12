/* SPDX-License-Identifier: Apache-2.0
 *
 * test_exhausted.c - the n-th request for memory fails, for every n until the call succeeds: of each reader and writer of files,
 * and of contexts, plans and weights on the system's memory. The status says so, no refusal is passed over, nothing is leaked.
 *
 * The library asks the system through posix_memalign and mmap alone (src/base/alloc.c, model/mapping.c), which the link replaces
 * by the ones here (--wrap), and jansson has hooks. What the C library takes for itself (fopen, threads) is not refused.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rooftile_analysis.h"
#include "rooftile_model.h"
#include "safetensors_builder.h"
#include "test_files.h"

#include <errno.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { MANY = 20000 /* more requests than one call makes */, MOST_LIVE = 1 << 14 };

/* ---- memory that runs out ---- */

static atomic_long left = -1; /* requests that are granted; below 0: all */
static atomic_bool was_refused;
static atomic_flag locked = ATOMIC_FLAG_INIT;
static void *live[MOST_LIVE]; /* what was granted and not given back */
static int n_live, n_maps;

/* As malloc it says so in errno. */
static bool refused(void) {
    const bool none = atomic_load(&left) >= 0 && atomic_fetch_sub(&left, 1) <= 0;
    if (none) {
        errno = ENOMEM;
        atomic_store(&was_refused, true);
    }
    return none;
}

static void lock(void) {
    while (atomic_flag_test_and_set(&locked)) {
    }
}

static void unlock(void) { atomic_flag_clear(&locked); }

static void *note(void *p) {
    if (p != NULL) {
        lock();
        assert_true(n_live < MOST_LIVE);
        live[n_live++] = p;
        unlock();
    }
    return p;
}

static void forget(void *p) {
    lock();
    int i = n_live - 1;
    while (i >= 0 && live[i] != p) {
        i--;
    }
    if (i >= 0) {
        live[i] = live[--n_live];
    }
    unlock();
}

int __real_posix_memalign(void **p, size_t align, size_t bytes);
int __wrap_posix_memalign(void **p, size_t align, size_t bytes);
void __real_free(void *p);
void __wrap_free(void *p);
void *__real_mmap(void *p, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *p, size_t bytes, int protection, int flags, int fd, off_t offset);

int __wrap_posix_memalign(void **p, size_t align, size_t bytes) {
    if (refused()) {
        return ENOMEM;
    }
    const int status = __real_posix_memalign(p, align, bytes);
    note(status == 0 ? *p : NULL);
    return status;
}

void __wrap_free(void *p) {
    forget(p);
    __real_free(p);
}

void *__wrap_mmap(void *p, size_t bytes, int protection, int flags, int fd, off_t offset) {
    if (refused()) {
        return MAP_FAILED;
    }
    return __real_mmap(p, bytes, protection, flags, fd, offset);
}

static void *json_memory(size_t bytes) { return refused() ? NULL : note(malloc(bytes)); }

/* Mappings over files of the tests. */
static int count_maps(void) {
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        count += strstr(line, folder) != NULL;
    }
    fclose(f);
    return count;
}

/* ---- a call for every n ---- */

static rft_error err;

typedef struct object {
    rft_status (*make)(void);
    void (*drop)(void); /* of what was made; NULL: it leaves nothing */
} object;

static void assert_clean(int before, long n) {
    if (n_live != before || count_maps() != n_maps) {
        fail_msg("request %ld refused: %d pieces of memory and %d mappings are left", n, n_live - before, count_maps() - n_maps);
    }
}

static void exhaust(object o) {
    const int before = n_live;
    rft_status status = RFT_E_NOMEM;
    long n = 0;
    n_maps = count_maps();
    for (; n < MANY && status != RFT_OK; n++) {
        memset(&err, 0, sizeof err);
        atomic_store(&was_refused, false);
        atomic_store(&left, n);
        status = o.make();
        atomic_store(&left, -1);
        if (status == RFT_OK && atomic_load(&was_refused)) {
            fail_msg("request %ld refused: the call succeeded without it", n);
        }
        if (status == RFT_OK) {
            break;
        }
        if (status != RFT_E_NOMEM || err.status != status || strlen(err.message) < 6) {
            fail_msg("request %ld refused: %s, \"%s\"", n, rft_status_name(status), err.message);
        }
        assert_clean(before, n);
    }
    assert_int_equal(status, RFT_OK);
    assert_true(n > 0); /* it did ask */
    if (o.drop != NULL) {
        o.drop();
    }
    assert_clean(before, n);
}

/* ---- readers of models ---- */

static st_builder file;
static rft_model *model;
static const char *path; /* in the folder */

static rft_status open_model(void) { return rft_model_open(in_folder(path), &model, &err); }

static void drop_model(void) { rft_model_free(model); }

static void write_config(void) { write_text("config.json", "{" ST_TINY_SIZES "}"); }

static void write_checkpoint(void) {
    write_config();
    st_begin(&file);
    st_tiny_block(&file, 0);
    st_tiny_block(&file, 1);
    st_tiny_ends(&file);
    st_end(&file);
    write_file("model.safetensors", file.bytes, file.size);
}

static void quantize(rft_type to, const char *out) {
    rft_quantize_options o = rft_quantize_options_init();
    path = "model.safetensors";
    o.to = to;
    o.threads = 1;
    o.group_k = to == RFT_I4 ? 32 : 0;
    assert_int_equal(open_model(), RFT_OK);
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/%s", folder, out);
    if (rft_model_quantize(model, name, &o, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    drop_model();
}

static void readers_of_models(void **state) {
    static const char *const paths[] = {"config.json", "model.safetensors", "packed", "out.gguf", "."};
    (void)state;
    write_checkpoint();
    quantize((rft_type)(256 + 8), "out.gguf");
    quantize(RFT_I4, "packed");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        path = paths[i];
        exhaust((object){open_model, drop_model});
    }
}

static void reader_of_an_index(void **state) {
    (void)state;
    static const char head[] = "{\"weight_map\":{";
    char text[8192];
    size_t at = (size_t)snprintf(text, sizeof text, "%s", head);
    for (int part = 0; part < 2; part++) {
        st_begin(&file);
        st_tiny_block(&file, part);
        for (int i = 0; i < ST_TINY_PARTS; i++) {
            at += (size_t)snprintf(text + at, sizeof text - at, "\"model.layers.%d.%s.weight\":\"part%d.safetensors\",", part,
                                   st_tiny_parts[i].name, part);
        }
        if (part == 1) {
            st_tiny_ends(&file);
        }
        st_end(&file);
        write_file(part ? "part1.safetensors" : "part0.safetensors", file.bytes, file.size);
    }
    snprintf(text + at, sizeof text - at,
             "\"model.embed_tokens.weight\":\"part1.safetensors\",\"model.norm.weight\":\"part1.safetensors\","
             "\"lm_head.weight\":\"part1.safetensors\"}}");
    write_text("model.safetensors.index.json", text);
    path = "model.safetensors.index.json";
    exhaust((object){open_model, drop_model});
    remove(in_folder(path));
}

static rft_weight_desc desc;
static int64_t tensor;

static rft_status describe_weight(void) { return rft_model_describe_weight(model, tensor, &desc, &err); }

/* Into buffers that the caller has. */
static rft_status read_weight(void) {
    static unsigned char q[128 * 128], scale[4 * 128 * 128];
    rft_weight_parts p = rft_weight_parts_init();
    p.q = q;
    p.scale = desc.scale != 0 ? scale : NULL;
    return rft_model_read_weight(model, tensor, &p, &err);
}

static rft_status decode_tensor(void) {
    static float row[128];
    return rft_model_decode(model, tensor, 0, 1, RFT_F32, row, 0, &err);
}

static void weights_of_models(void **state) {
    static const char *const paths[] = {"packed", "out.gguf"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        path = paths[i];
        assert_int_equal(open_model(), RFT_OK);
        const rft_phase phase = {RFT_PHASE_DECODE, 1, 1};
        rft_layer layer = rft_layer_init();
        assert_int_equal(rft_model_get_layer(model, 0, &phase, &layer, &err), RFT_OK);
        tensor = layer.tensor;
        desc = rft_weight_desc_init();
        assert_int_equal(describe_weight(), RFT_OK);
        for (long n = 0; n < 8; n++) { /* calls that may ask for nothing */
            rft_status (*const calls[])(void) = {describe_weight, read_weight, decode_tensor};
            for (int c = 0; c < 3; c++) {
                const int before = n_live;
                atomic_store(&left, n);
                const rft_status status = calls[c]();
                atomic_store(&left, -1);
                assert_true(status == RFT_OK || status == RFT_E_NOMEM);
                assert_int_equal(n_live, before);
            }
        }
        drop_model();
    }
}

/* ---- writers ---- */

static rft_quantize_options how;

static rft_status write_model(void) {
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/written", folder);
    return rft_model_quantize(model, name, &how, &err);
}

static void remove_written(void) {
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -r '%s/written'", folder);
    assert_int_equal(system(command), 0);
}

static void writers_of_models(void **state) {
    static const rft_type types[] = {RFT_GGUF_Q4_0, RFT_I4, RFT_E4M3};
    (void)state;
    write_checkpoint();
    path = "model.safetensors";
    assert_int_equal(open_model(), RFT_OK);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        how = rft_quantize_options_init();
        how.to = types[i];
        how.threads = 2;
        how.group_k = how.to == RFT_I4 ? 32 : 0;
        exhaust((object){write_model, remove_written});
    }
    drop_model();
}

/* ---- profiles ---- */

static rft_machine machine;

static rft_status save_profile(void) { return rft_machine_save(&machine, in_folder("machine.json"), &err); }

static rft_status load_profile(void) {
    machine = (rft_machine){.struct_size = sizeof machine};
    return rft_machine_load(in_folder("machine.json"), &machine, &err);
}

static void profiles(void **state) {
    (void)state;
    machine = (rft_machine){.struct_size = sizeof machine, .n_counts = 2, .n_levels = 1, .n_peaks = 1, .counts = {1, 64}};
    strcpy(machine.name, "Some CPU");
    strcpy(machine.device, "cpu");
    strcpy(machine.isa, "ref");
    strcpy(machine.date, "2026-01-31");
    strcpy(machine.source, "spec");
    machine.launch_us = 2.5;
    machine.levels[0] = (rft_machine_level){.name = "DRAM", .bytes = 1u << 30, .read_gbps = {10, 200}, .copy_gbps = {10, 200}};
    machine.peaks[0] = (rft_machine_peak){.isa = "ref", .op = "fma_f32", .type = RFT_F32, .gflops = {100, 6400}};
    exhaust((object){save_profile, NULL});
    exhaust((object){load_profile, NULL});
    assert_true(machine.launch_us == 2.5);
}

/* ---- the life of a layer, on the system's memory ---- */

static rft_status use(rft_ctx *ctx) {
    static float w[64 * 64];
    static _Alignas(64) unsigned char storage[1 << 16];
    rft_linear_desc d = rft_linear_desc_init();
    rft_weight_src src = rft_weight_src_init();
    rft_weight *weight = NULL;
    rft_plan *plan = NULL;
    d.x = d.y = d.w.elem = RFT_F32;
    d.w.n = d.w.k = 64;
    d.m_max = 70;
    src.q = w;
    rft_status status = rft_weight_pack(ctx, &d.w, &src, storage, NULL, &weight, &err);
    if (status == RFT_OK) {
        status = rft_plan_create(ctx, &d, &plan, &err);
    }
    rft_plan_free(plan);
    rft_weight_free(weight);
    return status;
}

static rft_status live_once(void) {
    char profile[PATH_MAX];
    rft_ctx_options o = rft_ctx_options_init();
    rft_ctx *ctx = NULL;
    snprintf(profile, sizeof profile, "%s/machine.json", folder);
    o.profile = profile;
    o.threads = 2;
    o.flags = RFT_CTX_HUGE_PAGES;
    rft_status status = rft_ctx_create("cpu", &o, &ctx, &err);
    if (status == RFT_OK) {
        status = use(ctx);
    }
    rft_ctx_free(ctx);
    return status;
}

static void contexts(void **state) {
    (void)state;
    exhaust((object){live_once, NULL});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_of_models), cmocka_unit_test(reader_of_an_index), cmocka_unit_test(weights_of_models),
        cmocka_unit_test(writers_of_models), cmocka_unit_test(profiles),           cmocka_unit_test(contexts),
    };
    json_set_alloc_funcs(json_memory, free);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
