/* SPDX-License-Identifier: Apache-2.0
 *
 * measure_cuda.h - the roofs of a GPU. Called by measure.c.
 */
#ifndef RFT_PROBE_MEASURE_CUDA_H
#define RFT_PROBE_MEASURE_CUDA_H

#include "api/api.h"

/* Fills the levels, peaks and launch times of a machine whose head is filled in. seconds bounds the time spent, once each roof
 * has been asked for in one way. */
rft_status rft__measure_cuda(rft_ctx *ctx, double seconds, void (*progress)(void *user, const char *what), void *user,
                             rft_machine *machine, rft_error *err);
/* Text of config.h of the i-th kernel that measuring this architecture compiles; false: there are fewer. */
bool rft__measure_cuda_config(int i, int arch, char *text, size_t cap);

#endif
