/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_facts.c - what choosing needs to know of a GPU: from the driver where it is present, its roofs from the machine
 * profile, else from clocks and widths; or all from a profile. Called when a device is opened.
 *
 * A profile of a GPU counts multiprocessors where a CPU's counts threads. Its isa is "sm_90"; op names are wgmma_<type>,
 * mma_<type> and ffma_f32; the last level is the device memory, the one before L2.
 */
#include "cuda/cuda_device.h"
#include "roofline/bound.h"

#include <stdlib.h>
#include <string.h>

/* Of one architecture: shared memory a block may ask for and an SM has, and multiply-adds a clock and SM with f32 sums. */
typedef struct architecture {
    int arch, shared_block, shared_sm, fma_16, fma_tf32, fma_f32;
} architecture;

/* CUDA C++ Programming Guide, technical specifications for each compute capability; data sheets for the rates. */
static const architecture architectures[] = {
    {80, 166912, 167936, 1024, 512, 64},   {86, 101376, 102400, 256, 128, 128},  {87, 166912, 167936, 512, 256, 128},
    {89, 101376, 102400, 256, 128, 128},   {90, 232448, 233472, 2048, 1024, 128}, {100, 232448, 233472, 4096, 2048, 128},
    {120, 101376, 102400, 256, 128, 128},
};

/* The newest that is not newer; what comes after the last row has at least its rates. */
static const architecture *architecture_of(int arch) {
    const architecture *best = NULL;
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++) {
        best = architectures[i].arch <= arch ? &architectures[i] : best;
    }
    return best;
}

/* H200: 1.755 of 1.98 GHz under load; products reach 84 % of the tensor cores' rate then, reads 88 % of the memory's (90 % of the
 * data sheet's). */
enum { LOADED_PERCENT = 89, SUSTAINED_PERCENT = 84, READ_PERCENT = 88, SPEC_PERCENT = 90, L2_BYTES_CLOCK = 40 /* an SM */ };
static const double USUAL_HERTZ = 1.98e9; /* of a GPU that a profile describes */

static void rates_from_clock(rft__cuda_facts *f, const architecture *a, double boost) {
    const double hertz = boost * LOADED_PERCENT / 100.0, fma = 2.0 * f->sms * hertz * SUSTAINED_PERCENT / 100.0;
    f->flops_16 = fma * a->fma_16;
    f->flops_tf32 = fma * a->fma_tf32;
    f->flops_f32 = fma * a->fma_f32;
    f->l2_bps = L2_BYTES_CLOCK * (double)f->sms * hertz;
}

static void replace(double *value, double measured) { *value = measured > 0.0 ? measured : *value; }

/* Roofs of a profile at the multiprocessors in use; memory needs only a few of them, so its roof is that of all. A data sheet's
 * are what nothing reaches. */
static void rates_from_profile(rft__cuda_facts *f, const rft_machine *m) {
    const bool spec = strcmp(m->source, "spec") == 0;
    const double share = 1e9 * (spec ? LOADED_PERCENT * SUSTAINED_PERCENT / 1e4 : 1.0);
    const double memory = spec ? SPEC_PERCENT / 100.0 : 1.0;
    const uint32_t sms = (uint32_t)f->sms;
    const double bf16 = rft__peak_of_type(m, "bf16", sms), f16 = rft__peak_of_type(m, "f16", sms);
    replace(&f->flops_16, share * (bf16 > f16 ? bf16 : f16));
    replace(&f->flops_tf32, share * rft__peak_of_type(m, "tf32", sms));
    replace(&f->flops_f32, share * rft__peak_of_type(m, "f32", sms));
    replace(&f->read_bps, memory * rft__roof_at(m, m->levels[m->n_levels - 1].read_gbps, 0) * 1e9);
    for (uint32_t i = 0; i < m->n_levels; i++) {
        if (strcmp(m->levels[i].name, "L2") == 0) {
            replace(&f->l2_bps, share * rft__roof_at(m, m->levels[i].read_gbps, sms));
        }
    }
}

static rft_status unsupported(int arch, rft_error *err) {
    RFT_FAIL(err, RFT_E_UNSUPPORTED, "this GPU has compute capability %d.%d; kernels need 8.0 or newer", arch / 10, arch % 10);
}

static rft_status attribute(const rft__driver *driver, CUdevice ordinal, CUdevice_attribute which, int *value, rft_error *err) {
    return rft__driver_check(driver->cuDeviceGetAttribute(value, which, ordinal), "asking the GPU for an attribute", err);
}

rft_status rft__cuda_facts_here(const rft__driver *driver, CUdevice ordinal, const rft_machine *machine, uint32_t sm_limit,
                                rft__cuda_facts *f, rft_error *err) {
    int major = 0, minor = 0, l2 = 0, kilohertz = 0, memory_kilohertz = 0, bus = 0;
    RFT_TRY(attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major, err));
    RFT_TRY(attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor, err));
    RFT_TRY(attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &f->sms, err));
    RFT_TRY(attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &f->shared_block, err));
    RFT_TRY(attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &f->shared_sm, err));
    RFT_TRY(attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2, err));
    RFT_TRY(attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &kilohertz, err));
    RFT_TRY(attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &memory_kilohertz, err));
    RFT_TRY(attribute(driver, ordinal, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &bus, err));
    f->arch = 10 * major + minor;
    f->l2 = l2;
    const architecture *const a = architecture_of(f->arch);
    if (a == NULL) {
        return unsupported(f->arch, err);
    }
    f->limited = sm_limit != 0 && sm_limit < (uint32_t)f->sms;
    f->sms = f->limited ? (int)sm_limit : f->sms;
    f->read_bps = 2.0 * 1e3 * memory_kilohertz * bus / 8.0 * READ_PERCENT / 100.0;
    rates_from_clock(f, a, 1e3 * kilohertz);
    if (machine != NULL) {
        rates_from_profile(f, machine);
    }
    return RFT_OK;
}

rft_status rft__cuda_facts_of(const rft_machine *machine, uint32_t sms, rft__cuda_facts *f, rft_error *err) {
    const char *const isa = machine->isa;
    const int arch = strncmp(isa, "sm_", 3) == 0 ? (int)strtol(isa + 3, NULL, 10) : 0;
    const architecture *const a = architecture_of(arch);
    if (a == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "profile: isa \"%s\" of a GPU must be \"sm_80\" or newer", isa);
    }
    const uint32_t all = machine->counts[machine->n_counts - 1];
    const bool limited = sms != 0 && sms < all;
    *f = (rft__cuda_facts){.arch = arch,
                           .sms = (int)(limited ? sms : all),
                           .limited = limited,
                           .shared_block = a->shared_block,
                           .shared_sm = a->shared_sm,
                           .l2 = 32 << 20,
                           .read_bps = 1e12};
    for (uint32_t i = 0; i < machine->n_levels; i++) {
        if (strcmp(machine->levels[i].name, "L2") == 0) {
            f->l2 = (int64_t)(2 * machine->levels[i].bytes); /* a working set is half of its level */
        }
    }
    rates_from_clock(f, a, USUAL_HERTZ);
    rates_from_profile(f, machine);
    return RFT_OK;
}
