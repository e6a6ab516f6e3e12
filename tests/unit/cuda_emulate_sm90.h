/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_emulate_sm90.h - compiles the text of a Hopper kernel with cc behind cuda_emulator_sm90.h and runs a product through its
 * family's launch and maps; operands and judgement are those of cuda_emulate.h. Included by the unit tests of such families.
 */
#ifndef RFT_TESTS_CUDA_EMULATE_SM90_H
#define RFT_TESTS_CUDA_EMULATE_SM90_H

#include "cuda_emulate.h"
#include "emulated_map.h"

typedef bool emulator_sm90_fn(const rft__cuda_args *args, const rft__cuda_map maps[3], unsigned grid, unsigned threads,
                              uint64_t seed);

typedef struct emulated_sm90 {
    emulated files; /* its launch is not used */
    emulator_sm90_fn *launch;
    int *faults;
} emulated_sm90;

static const char emulate_call[] =
    "\nstatic void call_kernel(void) { %s(*launch_args, launch_maps[0], launch_maps[1], launch_maps[2]); }\n";

/* Blanks what is C++ or stands for the block's memory, which the emulator's macro is. */
static void emulate_blank(char *text, const char *from, const char *to) {
    char *const at = strstr(text, from);
    assert_non_null(at);
    char *const end = strstr(at, to) + strlen(to);
    memset(at, ' ', (size_t)(end - at));
}

static void emulate_write_sm90(const char *dir, const char *entry, const char *text) {
    const size_t size = strlen(text) + 1024;
    char *const copy = malloc(size), call[256];
    assert_non_null(copy);
    snprintf(copy, size, "#include \"config.h\"\n#include \"cuda_emulator_sm90.h\"\n%s", text);
    emulate_blank(copy, "extern __shared__", ";");
    emulate_blank(copy, "extern \"C\"", "\"C\"");
    snprintf(call, sizeof call, emulate_call, entry);
    strcat(copy, call);
    emulate_write(dir, "kernel.c", copy);
    free(copy);
}

static void emulate_config_sm90(const char *dir, const product *p, const rft__cuda_config *c, bool early) {
    char path[256];
    emulate_config(dir, p, c);
    snprintf(path, sizeof path, "%s/config.h", dir);
    FILE *const f = fopen(path, "a");
    assert_non_null(f);
    fprintf(f, "#undef RFT_CLUSTER\n#define RFT_CLUSTER %d\n#undef RFT_W_EARLY\n#define RFT_W_EARLY %d\n", c->cluster, early);
    fclose(f);
}

static void emulate_texts(const char *dir) {
    char command[256];
    snprintf(command, sizeof command, "mkdir %s/epilogue", dir);
    assert_int_equal(system(command), 0);
    for (uint32_t i = 0; i < rft__cuda_embedded.count; i++) {
        const rft__cuda_text *const t = &rft__cuda_embedded.texts[i];
        if (strncmp(t->name, "format/", 7) != 0) {
            emulate_write(dir, t->name, t->text);
        }
    }
}

static void emulate_open_sm90(emulated_sm90 *e, const rft__cuda_family *f, const product *p, const rft__cuda_config *c,
                              bool early) {
    char command[1024], library[256];
    const char *const tmp = getenv("TMPDIR");
    snprintf(e->files.dir, sizeof e->files.dir, "%s/rft_emulate_XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(e->files.dir));
    emulate_texts(e->files.dir);
    for (uint32_t i = 0; i < rft__cuda_embedded.count; i++) {
        if (strcmp(rft__cuda_embedded.texts[i].name, f->source) == 0) {
            emulate_write_sm90(e->files.dir, f->name, rft__cuda_embedded.texts[i].text);
        }
    }
    emulate_config_sm90(e->files.dir, p, c, early);
    snprintf(library, sizeof library, "%s/kernel.so", e->files.dir);
    snprintf(command, sizeof command,
             "cc -O1 -std=gnu11 -w -Wno-psabi -shared -fPIC -ffp-contract=off -I%s -I%s -o %s %s/kernel.c -lm", e->files.dir,
             RFT_TEST_DATA_DIR "/../unit", library, e->files.dir);
    assert_int_equal(system(command), 0);
    e->files.library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (e->files.library == NULL) {
        fail_msg("%s", dlerror());
    }
    *(void **)&e->launch = dlsym(e->files.library, "emulator_launch");
    e->faults = dlsym(e->files.library, "emulator_faults");
    assert_true(e->launch != NULL && e->faults != NULL);
}

static emulated_map emulate_map(const rft__cuda_map_spec *s, bool early) {
    emulated_map m = {
        .address = s->address, .rank = s->rank, .early = early, .size = (unsigned)(s->rank ? rft__cuda_size(s->elem) : 0)};
    for (int i = 0; i < 3 && i < s->rank; i++) {
        m.dim[i] = s->dim[i], m.stride[i] = s->stride[i], m.box[i] = s->box[i];
        assert_true(s->dim[i] > 0 && s->box[i] > 0 && s->box[i] <= 256 && (i == 0 || s->stride[i] % 16 == 0));
    }
    assert_true(s->rank == 0 || ((uintptr_t)s->address % 16 == 0 && s->swizzle == 128 && m.box[0] * m.size == 128));
    return m;
}

enum { EMULATE_BLANK = 0x7fc1 }; /* of bf16: a NaN that no sum is */

typedef struct run_sm90 { /* how to run a product */
    const rft__cuda_facts *facts;
    bool early;
    int seeds;
} run_sm90;

static void emulate_product_sm90(const rft__cuda_family *f, const product *p, const rft__cuda_config *c, const run_sm90 *how) {
    rft__problem q = emulate_problem(p);
    operand x = emulate_operand(p, p->x, p->x_mn, p->m, 1), w = emulate_operand(p, p->w, p->w_mn, p->n, 2);
    const int64_t ldy = q.epi.n_out + 3, count = p->batch * p->m * ldy;
    float *const y = malloc((size_t)count * sizeof *y);
    uint16_t *const half = malloc((size_t)count * sizeof *half);
    rft__cuda_launch l;
    rft__cuda_map_spec spec[3];
    emulated_sm90 e;
    q.epi.glu_at = p->glu == RFT__GLU_NONE ? -1 : 0;
    f->launch(how->facts, &q, c, p->m, &l);
    rft__cuda_args a = {.x = x.data,
                        .w = w.data,
                        .y = p->y == RFT_F32 ? (void *)y : half,
                        .ldx = x.ld,
                        .ldw = w.ld,
                        .ldy = ldy,
                        .x_batch_stride = x.batch_stride,
                        .w_batch_stride = w.batch_stride,
                        .y_batch_stride = p->m * ldy,
                        .m = (int)p->m,
                        .n = (int)p->n,
                        .k = (int)p->k,
                        .batch = (int)p->batch};
    memcpy(a.number, l.number, sizeof a.number);
    const char *const rule = f->unsuited(&q, c, &a);
    if (rule != NULL) {
        fail_msg("%s: %s", c->row->name, rule);
    }
    f->maps(&q, c, &a, spec);
    const emulated_map described[3] = {emulate_map(&spec[0], false), emulate_map(&spec[1], true), emulate_map(&spec[2], false)};
    const rft__cuda_map maps[3] = {{{(uintptr_t)&described[0]}}, {{(uintptr_t)&described[1]}}, {{(uintptr_t)&described[2]}}};
    emulate_open_sm90(&e, f, p, c, how->early);
    for (int seed = 1; seed <= how->seeds; seed++) {
        for (int64_t i = 0; i < count; i++) {
            y[i] = -777.0f, half[i] = EMULATE_BLANK;
        }
        if (!e.launch(&a, maps, l.grid[0], l.block, (uint64_t)seed)) {
            fail_msg("%s split %d stages %d: m=%lld n=%lld k=%lld seed %d: %s (%d faults)", c->row->name, c->split, c->stages,
                     (long long)p->m, (long long)p->n, (long long)p->k, seed, *e.faults ? "at fault" : "hangs", *e.faults);
        }
        for (int64_t i = 0; p->y == RFT_BF16 && i < count; i++) {
            y[i] = half[i] == EMULATE_BLANK ? -777.0f : rft__as_float((unsigned)half[i] << 16);
        }
        emulate_check(p, y, ldy, q.epi.n_out, c->row->name);
    }
    emulate_close(&e.files);
    free(y);
    free(half);
    emulate_release(&x);
    emulate_release(&w);
}

#endif
