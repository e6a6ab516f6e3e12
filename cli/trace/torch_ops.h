/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_ops.h - PyTorch's ops that are products of matrices: what their arguments say of the shape. Called by kineto.c and, for
 * ranges of NVTX that name ops, by nsight.c.
 */
#ifndef TORCH_OPS_H
#define TORCH_OPS_H

#include "trace/trace.h"

#include <jansson.h>

typedef struct torch_args { /* as the profiler records them; each may be NULL, or no list at all */
    const json_t *dims, *types, *strides, *values;
} torch_args;

/* Makes the call of an op: its group, and where that is a product, its shape as far as the arguments tell. */
trace_call torch_call(const char *name, const torch_args *args);

#endif
