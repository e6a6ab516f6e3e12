/* SPDX-License-Identifier: Apache-2.0
 *
 * h200_facts.h - an H200 as rft__cuda_facts tells of one that was measured: for unit tests of what kernels choose and cost.
 */
#ifndef RFT_TESTS_H200_FACTS_H
#define RFT_TESTS_H200_FACTS_H

#include "cuda/cuda_family.h"

static const rft__cuda_facts h200 = {.arch = 90,
                                     .sms = 132,
                                     .shared_block = 232448,
                                     .shared_sm = 233472,
                                     .l2 = 60 << 20,
                                     .read_bps = 4.3e12,
                                     .l2_bps = 9e12,
                                     .flops_16 = 790e12,
                                     .flops_tf32 = 390e12,
                                     .flops_f32 = 60e12};

#endif
