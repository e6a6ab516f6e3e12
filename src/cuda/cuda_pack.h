/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_pack.h - packed weights of a GPU: K-contiguous rows in W's order and type, each padded with zeros to a multiple of 16
 * bytes, batch after batch. So packing only straightens rows: kernels read a packed W and a view with the same code.
 * Called by cuda_weight.c, for bytes and strides also by cuda_backend.c and cuda_run.c. Packed on the device or, with the same
 * bytes, on the host.
 */
#ifndef RFT_CUDA_CUDA_PACK_H
#define RFT_CUDA_CUDA_PACK_H

#include "cuda/cuda_family.h"
#include "cuda/kernels/pack_args.h"

uint64_t rft__cuda_weight_layout(const rft__matrix *w); /* 0: no packed form */
rft_status rft__cuda_packed_bytes(const rft__matrix *w, size_t *bytes, rft_error *err);
/* What the packed data of w is: the same elements with other strides. */
rft__matrix rft__cuda_packed_matrix(const rft__matrix *w);

/* ---- on the host ---- */

void rft__cuda_pack_host(const rft__matrix *w, const void *source, void *data);
/* w: a view or the packed matrix; element (n, k) of batch b goes to out[(b * w->n + n) * ld + k]. */
void rft__cuda_unpack_host(const rft__matrix *w, const void *data, float *out, int64_t ld);

/* ---- on the device ---- */

extern const rft__cuda_family rft__cuda_pack_family; /* only name and source: it serves no product */

typedef struct rft__cuda_pack_job {
    rft__pack_args args; /* the kernel's argument */
    unsigned blocks;     /* 0: nothing to pack */
} rft__cuda_pack_job;

void rft__cuda_pack_text(const rft__matrix *w, rft__text *t); /* config.h of the kernel */
rft__cuda_pack_job rft__cuda_pack_job_of(const rft__cuda_facts *f, const rft__matrix *w, const void *source, void *data);

#endif
