/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_rows.c - the table of kernels, made of kernels_cuda.def. Read by cuda_choose.c and cuda_backend.c.
 */
#include "cuda/cuda_device.h"

#define TYPE_f32     RFT_F32
#define TYPE_f16     RFT_F16
#define TYPE_bf16    RFT_BF16
#define COMPUTE_f32  RFT__CUDA_F32
#define COMPUTE_tf32 RFT__CUDA_TF32
#define COMPUTE_f16  RFT__CUDA_F16
#define COMPUTE_bf16 RFT__CUDA_BF16

#define RFT_CUDA_ROW(kernels, x_, w_, compute_, bm_, bn_, bk_, warps_, arch_, gamma_, eta_) \
    {.name = #kernels "_" #x_ "_" #w_ "_" #compute_ "_" #bm_ "x" #bn_,                     \
     .family = &rft__cuda_##kernels,                                                       \
     .x = TYPE_##x_,                                                                       \
     .w = TYPE_##w_,                                                                       \
     .compute = COMPUTE_##compute_,                                                        \
     .bm = bm_,                                                                            \
     .bn = bn_,                                                                            \
     .bk = bk_,                                                                            \
     .warps = warps_,                                                                      \
     .arch = arch_,                                                                        \
     .gamma = gamma_,                                                                      \
     .eta = eta_},

const rft__cuda_row rft__cuda_rows[] = {
#include "cuda/kernels_cuda.def"
};
const int rft__cuda_row_count = (int)(sizeof rft__cuda_rows / sizeof rft__cuda_rows[0]);
