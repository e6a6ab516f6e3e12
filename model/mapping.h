/* SPDX-License-Identifier: Apache-2.0
 *
 * mapping.h - a regular file as read-only memory, and paths of files. Called by model.c, checkpoint.c and onnx.c, which hold what
 * they map as long as the model lives.
 */
#ifndef RFT_MODEL_MAPPING_H
#define RFT_MODEL_MAPPING_H

#include "rooftile.h"

typedef struct rft__mapping {
    void *bytes; /* NULL: none */
    size_t size;
} rft__mapping;

/* The folder of a file (capacity PATH_MAX), and the file's name in it. */
rft_status rft__path_split(const char *path, char *folder, const char **name, rft_error *err);
/* "folder/name" (capacity PATH_MAX). */
rft_status rft__path_join(const char *folder, const char *name, char *out, rft_error *err);
rft_status rft__map_file(const char *path, rft__mapping *out, rft_error *err);
void rft__unmap_file(rft__mapping *mapping);

#endif
