/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_epilogue.h - an epilogue list as the macros of config.h that kernels/epilogue.cuh reads. Called by cuda_text.c.
 * Invariant: the text carries every bit of alpha and beta, so equal lists, and only those, have equal texts.
 */
#ifndef RFT_CUDA_CUDA_EPILOGUE_H
#define RFT_CUDA_CUDA_EPILOGUE_H

#include "problem/backend.h"

/* Adds RFT_EPI_COUNT and RFT_EPI(OP), which calls OP(KIND, ACCESS, type, operand, alpha, beta) for each op in order. */
void rft__cuda_epilogue_text(const rft__epi *epi, rft__text *t);

#endif
