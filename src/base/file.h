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

#endif
