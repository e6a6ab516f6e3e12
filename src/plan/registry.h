/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.h - the backends of this build: found by a device string, their kernels as one list. Called by api.
 */
#ifndef RFT_PLAN_REGISTRY_H
#define RFT_PLAN_REGISTRY_H

#include "problem/backend.h"

/* "cpu", "cuda", "cuda:N"; NULL: the best one present. */
rft_status rft__registry_find(const char *device, const rft__backend **backend, int *ordinal, rft_error *err);
uint32_t rft__registry_kernel_count(void);
rft_status rft__registry_kernel(uint32_t i, rft_kernel_info *info); /* i < count */
const char *rft__registry_isa_built(void);                          /* comma-separated, lowest first */
const char *rft__registry_isa_here(void);
const char *rft__registry_isa_missing(void);

#endif
