/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_rate.c - the one thing about a CPU that its feature bits do not tell: whether vdpbf16ps is faster than widening bf16
 * and multiplying in f32. Zen 4 issues it at twice the FMA rate a product, Emerald Rapids at half of it. Timed once a
 * process on register tiles in L1 (about 0.1 ms), when the first context opens.
 */
#include "base/clock.h"
#include "cpu/cpu_device.h"
#include "cpu/cpuid.h"

#include <pthread.h>
#include <stdlib.h>

enum { RATE_K = 128, RATE_ROUNDS = 16, RATE_CALLS = 4 };

/* The largest tile over that pair of panel types, the first of equals, or NULL. */
static const rft__cpu_kernel *largest(rft_type x, rft_type w) {
    const rft__cpu_kernel *best = NULL;
    for (int level = 0; level < rft__isa_count(); level++) {
        const rft__isa *isa = rft__isa_at(level);
        for (int i = 0; i < isa->n_kernels && rft__isa_runs(level); i++) {
            const rft__cpu_kernel *k = isa->kernels + i;
            if (k->form == RFT__FORM_PANELS && k->x == x && k->w == w && (best == NULL || k->mr * k->nr > best->mr * best->nr)) {
                best = k;
            }
        }
    }
    return best;
}

/* Multiplications a second: the best of some rounds, since only interruptions add time. */
static double rate(const rft__cpu_kernel *kernel, float *x, float *w, float *acc) {
    rft__tile_fn *tile = kernel->family->tile[kernel->nr / RFT__PANEL - 1][kernel->mr - 1];
    const size_t stride = (size_t)rft__panel_bytes(kernel->w, RFT__PANEL, RATE_K);
    double best = 1e9;
    for (int round = 0; round < RATE_ROUNDS; round++) {
        const double start = rft__now();
        for (int call = 0; call < RATE_CALLS; call++) {
            tile(RATE_K, x, w, stride, acc, true, &(rft__ahead){(const char *)w, 0, -1});
        }
        const double seconds = rft__now() - start;
        best = seconds < best ? seconds : best;
    }
    return (double)RATE_K * RATE_CALLS * kernel->mr * kernel->nr / best;
}

static double measured = 0.0;
static pthread_once_t measured_once = PTHREAD_ONCE_INIT;

static void measure(void) {
    static _Alignas(64) float x[RATE_K * RFT__MAX_ROWS], w[RATE_K * RFT__PANEL * RFT__MAX_PANELS],
        acc[RFT__MAX_ROWS * RFT__PANEL * RFT__MAX_PANELS];
    const rft__cpu_kernel *dot = largest(RFT_BF16, RFT_BF16), *fma = largest(RFT_F32, RFT_F32);
    measured = dot != NULL ? rate(dot, x, w, acc) / rate(fma, x, w, acc) : 0.0;
}

double rft__dot_rate_here(void) {
    pthread_once(&measured_once, measure);
    return measured;
}
