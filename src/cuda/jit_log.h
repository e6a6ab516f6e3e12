/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_log.h - what the compiler's log says of a kernel: resources and warnings of ptxas, and the line that tells why there is
 * none. Called by jit.c. Invariant: a log of any text is read safely; what it does not say counts as 0.
 */
#ifndef RFT_CUDA_JIT_LOG_H
#define RFT_CUDA_JIT_LOG_H

#include "cuda/jit.h"

/* Fills registers, shared_bytes, spill_bytes, stack_bytes and serialized for the kernel called entry. */
void rft__jit_log_figures(const char *log, const char *entry, rft__cubin *cubin);
/* The first line with an error, else the first line, cut to cap. */
void rft__jit_log_error(const char *log, char *line, size_t cap);

#endif
