/* SPDX-License-Identifier: Apache-2.0
 *
 * file.h - whole files: read with a size cap, replaced atomically (temporary file in the same folder, fsync, rename).
 */
#ifndef RFT_BASE_FILE_H
#define RFT_BASE_FILE_H

#include "base/alloc.h"
#include "rooftile.h"

/* *data gets size + 1 bytes, the last 0; the caller releases size + 1. RFT_E_IO with errno in native. */
rft_status rft__file_read(const rft__allocator *a, const char *path, size_t cap, char **data, size_t *size, rft_error *err);
/* Creates missing folders of path. */
rft_status rft__file_replace(const char *path, const void *data, size_t size, rft_error *err);

/* The same for a file that is written in pieces. Until commit there is no file at `path` that was not there before; where the
 * file system can, what is written has no name either, so that nothing is left of a process that is killed. */
typedef struct rft__writer {
    int fd;
    char *path, *temporary; /* temporary "": without a name */
} rft__writer;

rft_status rft__writer_open(const rft__allocator *a, const char *path, rft__writer *out, rft_error *err);
rft_status rft__writer_put(rft__writer *writer, const void *data, size_t size, rft_error *err);
/* Synchronises and takes the place of what was at `path`. The writer is closed in any case. */
rft_status rft__writer_commit(const rft__allocator *a, rft__writer *writer, rft_error *err);
void rft__writer_abandon(const rft__allocator *a, rft__writer *writer);

#endif
