/* SPDX-License-Identifier: Apache-2.0
 *
 * mapping.h - a regular file as read-only memory. Called by model.c, which holds it as long as the model lives.
 */
#ifndef RFT_MODEL_MAPPING_H
#define RFT_MODEL_MAPPING_H

#include "rooftile.h"

typedef struct rft__mapping {
    void *bytes; /* NULL: none */
    size_t size;
} rft__mapping;

rft_status rft__map_file(const char *path, rft__mapping *out, rft_error *err);
void rft__unmap_file(rft__mapping *mapping);

#endif
