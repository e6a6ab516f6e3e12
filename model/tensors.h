/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.h - the tensors of a model file, whatever container they came in: in file order, and found by name.
 *
 * Filled by gguf.c, safetensors.c, onnx.c and import.c, read by everything above. Invariant once sorted: names are unique,
 * terminated and printable; data, where not NULL, lies with its whole extent in the mapping of a file, or in memory that goes
 * with the table.
 */
#ifndef RFT_MODEL_TENSORS_H
#define RFT_MODEL_TENSORS_H

#include "base/alloc.h"
#include "format/format.h"
#include "rooftile_model.h"

typedef struct rft__tensor {
    const char *name; /* in the table's pool */
    const rft__format *format;
    uint32_t n_dims;
    int64_t dims[RFT_TENSOR_MAX_DIMS]; /* dims[0] is contiguous; 1 past n_dims */
    uint64_t offset;                   /* in the data section of its file; gguf.c's and safetensors.c's, who check it, else 0 */
    const unsigned char *data;
    int64_t rows, bytes; /* rows: product of dims[1..] */
    const struct rft__import
        *import; /* how several stored tensors make this one, which has no data then; NULL: stored as it is */
} rft__tensor;

typedef struct rft__tensors {
    rft__tensor *list; /* in file order */
    const rft__tensor **by_name;
    char *names; /* the pool */
    size_t count, name_bytes, names_used;
} rft__tensors;

/* Room for `count` tensors whose names take name_bytes with their terminators. */
rft_status rft__tensors_reserve(const rft__allocator *a, size_t count, size_t name_bytes, rft__tensors *out, rft_error *err);
void rft__tensors_free(const rft__allocator *a, rft__tensors *tensors);
/* A terminated copy in the pool, which was reserved for it. */
const char *rft__tensors_keep_name(rft__tensors *tensors, const char *name, size_t length);
/* Fills by_name; a name that occurs twice is an error. */
rft_status rft__tensors_sort(rft__tensors *tensors, rft_error *err);
int64_t rft__tensors_find(const rft__tensors *tensors, const char *name); /* -1: none */

#endif
