/* SPDX-License-Identifier: Apache-2.0
 *
 * pack_rows.h - rows of weights as codes beside their scales, as compressed-tensors stores them: int4 in groups along k, int8 and
 * FP8 with one scale a row. Called by model/quantize.c; the inverse of model/import_int.c and import_float.c.
 */
#ifndef RFT_FORMAT_PACK_ROWS_H
#define RFT_FORMAT_PACK_ROWS_H

#include "format/encode.h"

typedef struct rft__packing {
    rft_type code;      /* RFT_I4, RFT_I8 or RFT_E4M3 */
    rft_type scale;     /* RFT_F32, RFT_F16 or RFT_BF16 */
    int64_t k, group_k; /* group_k: 32, 64 or 128 in int4, else k */
} rft__packing;

bool rft__packing_is(rft_type code);
int64_t rft__packing_code_bytes(const rft__packing *p);  /* of a row; words of 32 bits but for FP8 */
int64_t rft__packing_scale_bytes(const rft__packing *p); /* of a row */
float rft__packing_limit(const rft__packing *p);         /* as rft__encoder.limit */

/* x: finite weights. back: what the codes and scales stand for. */
void rft__pack_row(const rft__packing *p, const float *x, rft__fit fit, unsigned char *codes, unsigned char *scales, float *back);

#endif
