/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_config.h - the quantization_config of a checkpoint: by which method its weights are stored, and with which numbers.
 *
 * Read by hparams_config.c, used by import.c and import_*.c. Invariant: bits are 1..16, sizes 0..2^31-1.
 */
#ifndef RFT_MODEL_QUANT_CONFIG_H
#define RFT_MODEL_QUANT_CONFIG_H

#include "json_read.h"

#define RFT_MAX_QUANT_GROUPS 8

typedef struct rft__quant_group {            /* of compressed-tensors: how some of the layers are stored */
    int64_t bits, group_k, block_n, block_k; /* 0: not given; group_k 0: a row */
} rft__quant_group;

typedef struct rft__quant_config {
    char method[32];  /* "": nothing is quantised */
    char version[32]; /* awq: gemm, …; gptq: checkpoint_format; compressed-tensors: format */
    int64_t bits;
    int64_t group_k; /* 0: a row */
    bool symmetric;
    int64_t block_n, block_k;
    rft__quant_group groups[RFT_MAX_QUANT_GROUPS];
    int n_groups;
} rft__quant_config;

/* config: the object behind "quantization_config". A method that no importer knows is RFT_E_UNSUPPORTED. */
rft_status rft__quant_config_read(const json_t *config, rft__quant_config *out, rft_error *err);
/* A file of its own, quantize_config.json: that of GPTQ, unless it names another method. */
rft_status rft__quant_config_file(const void *text, size_t size, rft__quant_config *out, rft_error *err);

#endif
