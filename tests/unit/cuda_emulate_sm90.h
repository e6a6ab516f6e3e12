/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_emulate_sm90.h - compiles the text of a Hopper kernel with cc behind cuda_emulator_sm90.h and runs a product through its
 * family's launch and maps; operands and judgement are those of cuda_emulate.h. Included by the unit tests of such families.
 */
#ifndef RFT_TESTS_CUDA_EMULATE_SM90_H
#define RFT_TESTS_CUDA_EMULATE_SM90_H

#include "cuda_emulate.h"
#include "emulated_map.h"

typedef bool emulator_sm90_fn(const rft__cuda_args *args, const rft__cuda_map maps[RFT_CUDA_MAPS], unsigned grid,
                              unsigned threads, uint64_t seed);

static const char emulate_call[] =
    "\nstatic void call_kernel(void) { %s(*launch_args, launch_maps[0], launch_maps[1], launch_maps[2]%s); }\n";

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
    snprintf(call, sizeof call, emulate_call, entry,
             strstr(text, " x_last,") ? ", launch_maps[3], launch_maps[4], launch_maps[5]" : "");
    strcat(copy, call);
    emulate_write(dir, "kernel.c", copy);
    free(copy);
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
    bool aligned; /* rows of y, to 16 bytes */
} run_sm90;

static operand emulate_residual(const product *p, int64_t n_out) {
    product like = *p;
    like.k = n_out, like.pad = p->residual_pad;
    return emulate_operand(&like, RFT_BF16, false, p->m, 3);
}

static void emulate_product_sm90(const rft__cuda_family *f, const product *p, const rft__cuda_config *c, const run_sm90 *how) {
    const rft__problem q = emulate_problem(p);
    operand x = emulate_operand(p, p->x, p->x_mn, p->m, 1), w = emulate_operand(p, p->w, p->w_mn, p->n, 2);
    const int64_t ldy = how->aligned ? rft__round_up(q.epi.n_out, 8) + 8 : q.epi.n_out + 3, count = p->batch * p->m * ldy;
    float *const y = malloc((size_t)count * sizeof *y);
    uint16_t *const half = malloc((size_t)count * sizeof *half);
    rft__cuda_launch l;
    rft__cuda_map_spec spec[RFT_CUDA_MAPS] = {{0}};
    emulator_sm90_fn *launch;
    emulated e;
    f->launch(how->facts, &q, c, p->m, &l);
    rft__cuda_args a = emulate_args(p, &x, &w, p->y == RFT_F32 ? (void *)y : half, ldy, &l);
    operand residual = emulate_residual(p, q.epi.n_out);
    a.operand[1] = (rft__cuda_operand){residual.data, residual.ld, residual.batch_stride};
    const char *const rule = f->unsuited(&q, c, &a);
    if (rule != NULL) {
        fail_msg("%s: %s", c->row->name, rule);
    }
    f->maps(&q, c, &a, spec);
    emulated_map described[RFT_CUDA_MAPS];
    rft__cuda_map maps[RFT_CUDA_MAPS];
    for (int i = 0; i < RFT_CUDA_MAPS; i++) {
        described[i] = emulate_map(&spec[i], i == 1 || i == 4); /* W may come early */
        maps[i] = (rft__cuda_map){{(uintptr_t)&described[i]}};
    }
    emulate_texts(&e);
    emulate_write_sm90(e.dir, f->name, emulate_text_of(f->source));
    emulate_config(e.dir, p, c, how->early);
    emulate_build(&e, p);
    *(void **)&launch = emulate_symbol(&e, "emulator_launch");
    const int *const faults = emulate_symbol(&e, "emulator_faults");
    *(unsigned *)emulate_symbol(&e, "emulator_shared") = l.shared;
    for (int seed = 1; seed <= how->seeds; seed++) {
        for (int64_t i = 0; i < count; i++) {
            y[i] = -777.0f, half[i] = EMULATE_BLANK;
        }
        if (!launch(&a, maps, l.grid[0], l.block, (uint64_t)seed)) {
            fail_msg("%s split %d stages %d: m=%lld n=%lld k=%lld seed %d: %s (%d faults)", c->row->name, c->split, c->stages,
                     (long long)p->m, (long long)p->n, (long long)p->k, seed, *faults ? "at fault" : "hangs", *faults);
        }
        for (int64_t i = 0; p->y == RFT_BF16 && i < count; i++) {
            y[i] = half[i] == EMULATE_BLANK ? -777.0f : rft__as_float((unsigned)half[i] << 16);
        }
        emulate_check(p, y, ldy, q.epi.n_out, c->row->name);
    }
    emulate_close(&e);
    free(y);
    free(half);
    emulate_release(&x);
    emulate_release(&w);
    emulate_release(&residual);
}

#endif
