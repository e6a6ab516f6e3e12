/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign.h - the few calls of the CUDA driver that the tool makes itself, without a toolkit: they stand for the code of other
 * libraries. bench puts a kernel that is not ours between calls; a peer needs the device's context to be current.
 */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "buffer.h"

/* Makes the primary context of a GPU current in this thread. */
bool foreign_enter(int ordinal);

typedef struct foreign_kernel { /* the driver's own fill of a megabyte: about what an elementwise kernel of one token writes */
    int (*fill)(unsigned long long to, unsigned value, size_t count, void *stream);
    buffer target;
} foreign_kernel;

rft_status foreign_make(foreign_kernel *f, rft_ctx *ctx, rft_error *err);
void foreign_free(foreign_kernel *f);
rft_status foreign_run(const foreign_kernel *f, void *stream, rft_error *err);

#endif
