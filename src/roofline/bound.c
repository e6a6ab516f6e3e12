/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.c - seconds that no kernel can beat. See bound.h for the model.
 */
#include "roofline/bound.h"

#include "base/sized.h"
#include "roofline/machine.h"
#include "roofline/work.h"

#include <math.h>
#include <string.h>

double rft__roof_at(const rft_machine *mach, const double *roofs, uint32_t threads) {
    uint32_t count0 = 0;
    double roof0 = 0.0;
    for (uint32_t i = 0; i < mach->n_counts && threads != 0; i++) {
        if (threads <= mach->counts[i]) {
            return roof0 + (roofs[i] - roof0) * (double)(threads - count0) / (double)(mach->counts[i] - count0);
        }
        count0 = mach->counts[i];
        roof0 = roofs[i];
    }
    return roofs[mach->n_counts - 1];
}

double rft_machine_roof(const rft_machine *machine, const double *roofs, uint32_t threads) {
    const bool sound = machine != NULL && roofs != NULL && machine->n_counts >= 1 && machine->n_counts <= RFT_MACHINE_COUNTS;
    return sound ? rft__roof_at(machine, roofs, threads) : 0.0;
}

double rft__peak_of_type(const rft_machine *mach, const char *type, uint32_t threads) {
    double best = 0.0;
    for (uint32_t i = 0; i < mach->n_peaks; i++) {
        const char *const op = mach->peaks[i].op, *const underscore = strrchr(op, '_');
        if (strcmp(underscore != NULL ? underscore + 1 : op, type) == 0) {
            best = fmax(best, rft__roof_at(mach, mach->peaks[i].gflops, threads));
        }
    }
    return best;
}

/* tf32 holds every f16 and bf16; f32 operands are rounded to it on request alone. */
double rft__peak_at(const rft_machine *mach, const rft__problem *p, uint32_t threads) {
    const bool tf32 = (p->x != RFT_F32 && p->w.elem != RFT_F32) || p->compute == RFT_COMPUTE_TF32;
    double best = rft__peak_of_type(mach, "f32", threads);
    if (p->compute == RFT_COMPUTE_F32) {
        return best;
    }
    if (rft__problem_takes_i8(p) && rft__matrix_is_low_bit(&p->w)) {
        /* Where no profile tells: vpdpbusd multiplies four bytes for each float of an FMA. */
        const double measured = rft__peak_of_type(mach, "i8", threads);
        return measured > 0.0 ? fmax(best, measured) : 4.0 * best;
    }
    if (tf32) {
        best = fmax(best, rft__peak_of_type(mach, "tf32", threads));
    }
    return p->x == p->w.elem ? fmax(best, rft__peak_of_type(mach, rft__type_name(p->x), threads)) : best;
}

static double seconds_at(double amount, double giga_per_second) {
    return giga_per_second > 0.0 ? amount / (giga_per_second * 1e9) : 0.0;
}

void rft__bound(const rft_machine *mach, const rft__problem *p, int64_t m, uint32_t threads, rft_bound *out) {
    rft_work work;
    rft__work(p, m, &work);
    const double *dram = mach->levels[mach->n_levels - 1].read_gbps;
    const double compute = seconds_at(work.flops, rft__peak_at(mach, p, threads));
    const double memory = seconds_at(work.bytes, rft__roof_at(mach, dram, threads));
    *out = (rft_bound){.struct_size = (uint32_t)sizeof *out,
                       .seconds = compute > memory ? compute : memory,
                       .compute_seconds = compute,
                       .memory_seconds = memory,
                       .what = compute > memory ? "compute" : "memory"};
}

rft_status rft_machine_bound(const rft_machine *machine, const rft_linear_desc *desc, int64_t m, uint32_t threads,
                             rft_bound *bound, rft_error *err) {
    rft_machine own;
    RFT_TRY(rft__sized_read(&own, sizeof own, machine, "machine", err));
    RFT_TRY(rft__machine_check(&own, "machine", RFT_E_ARG, err));
    RFT_TRY(rft__sized_check(bound, "bound", err));
    rft__problem p;
    RFT_TRY(rft__work_read(&p, desc, m, err));
    rft_bound result;
    rft__bound(&own, &p, m, threads, &result);
    rft__sized_write(bound, &result, sizeof result);
    return RFT_OK;
}
