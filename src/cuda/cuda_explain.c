/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_explain.c - a CUDA choice in words and numbers: the config taken, what each other row would cost or why it is refused,
 * and the error constants for plan info. Called by plan through the backend's table.
 */
#include "cuda/cuda_choice.h"
#include "cuda/cuda_debug.h"

#include <math.h>
#include <string.h>

enum { MAX_ROWS = 256 };

static void add_config(rft__text *t, const rft__cuda_config *c) {
    if (c->m != 0) {
        rft__text_add(t, "; m = %d compiled in", c->m);
    }
    if (c->split > 1) {
        rft__text_add(t, "; k in %d parts", c->split);
    }
    if (c->cluster > 1) {
        rft__text_add(t, "; clusters of %d", c->cluster);
    }
    if (c->stages != 0) {
        rft__text_add(t, "; %d stages", c->stages);
    }
}

static void add_launch(const rft__cuda_choice *c, const rft__cuda_config *config, int64_t m, rft__text *t) {
    const rft__cuda_facts *const f = &c->device->facts;
    rft__cuda_launch l = {.cluster = 1};
    config->row->family->launch(f, &c->p, config, rft__max(m, 1), &l);
    rft__text_add(t, "         %u x %u x %u blocks of %u threads, %u bytes of shared memory, on %d multiprocessors\n", l.grid[0],
                  l.grid[1], l.grid[2], l.block, l.shared, f->sms);
}

static void add_taken(const rft__cuda_choice *c, const rft__cuda_pick *pick, int64_t m, rft__text *t) {
    const rft__cuda_family *const family = pick->config.row->family;
    const double seconds = family->seconds(&c->device->facts, &c->p, rft__max(m, 1), &pick->config);
    rft__text_add(t, "taken    %-42s expected %.2f us", pick->config.row->name, seconds * 1e6);
    add_config(t, &pick->config);
    if (pick->kernel != NULL) {
        rft__text_add(t, "; %d registers", pick->kernel->registers);
    }
    rft__text_add(t, "\n");
    add_launch(c, &pick->config, m, t);
    char dump[16];
    if (c->device->dump != 0) {
        rft__text_add(t, "         a debug build; %s is in the workspace from byte %zu on\n",
                      rft__cuda_dump_name(c->device->dump, dump), c->dump_at);
    }
    if (c->has_any) {
        rft__text_add(t, "         where pointers or strides do not suit it: %s\n", c->any.config.row->name);
    }
}

void rft__cuda_explain(const rft__choice *choice, int64_t m, rft__text *t) {
    const rft__cuda_choice *const c = rft__cuda_choice_of(choice);
    const rft__cuda_pick *const pick = rft__cuda_pick_at(c, m);
    rft__cuda_candidate list[MAX_ROWS];
    add_taken(c, pick, m, t);
    const char *const forced = c->forced ? pick->config.row->name : NULL;
    const int n = rft__cuda_judge(c->device, &c->p, forced, rft__max(m, 1), list, MAX_ROWS);
    for (int refused = 0; refused < 2; refused++) {
        for (int i = 0; i < n; i++) {
            const rft__cuda_candidate *const one = &list[i];
            if (one->config.row == pick->config.row || (one->reason[0] != '\0') != (refused != 0)) {
                continue;
            }
            rft__text_add(t, "%s  %-42s ", refused ? "refused" : "slower ", one->config.row->name);
            if (refused) {
                rft__text_add(t, "%s", one->reason);
            } else {
                rft__text_add(t, "expected %.2f us", one->seconds * 1e6);
                add_config(t, &one->config);
            }
            rft__text_add(t, "\n");
        }
    }
}

/* Of each f32 operand a tf32 keeps 10 bits behind the point; what reads it from shared memory cuts off the others. */
static double input_rounding(const rft__problem *p, const rft__cuda_row *r) {
    const int rounded = r->compute != RFT__CUDA_TF32 ? 0 : (p->x == RFT_F32) + (p->w.elem == RFT_F32);
    return rounded * 0x1p-10;
}

void rft__cuda_choice_info(const rft__choice *choice, int64_t m, rft_plan_info *info) {
    const rft__cuda_choice *const c = rft__cuda_choice_of(choice);
    const rft__cuda_pick *const pick = rft__cuda_pick_at(c, m);
    const rft__cuda_row *const row = pick->config.row, *const any = c->has_any ? c->any.config.row : row;
    const double k = (double)c->p.w.k, parts = pick->config.split > 1 ? pick->config.split : 1;
    const double gamma = row->gamma > any->gamma ? row->gamma : any->gamma, eta = row->eta > any->eta ? row->eta : any->eta;
    info->kernel = row->name;
    info->workspace = c->workspace;
    info->workspace_align = 256;
    const double rounding = fmax(input_rounding(&c->p, row), input_rounding(&c->p, any));
    info->error_c = (gamma * k + parts - 1) * 0x1p-24 * (1.0 + k * 0x1p-23) + rounding;
    info->error_eta = eta * (k + parts);
    info->threads = c->device->facts.sms;
}
