/* SPDX-License-Identifier: Apache-2.0
 *
 * cublaslt_api.h - the part of cuBLASLt's C interface (versions 12 and 13) that peer_cublaslt.c calls: one row a function.
 * Descriptors are opaque; sizes and values are those of its reference.
 */
#ifndef PEERS_CUBLASLT_API_H
#define PEERS_CUBLASLT_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct lt_algo {
    uint64_t data[8];
} lt_algo;

typedef struct lt_candidate { /* of the heuristic list */
    lt_algo algo;
    size_t workspace;
    int state; /* 0: usable */
    float waves;
    int reserved[4];
} lt_candidate;

enum { LT_R_32F = 0, LT_R_16F = 2, LT_R_16BF = 14 };
enum { LT_COMPUTE_32F = 68, LT_COMPUTE_32F_FAST_TF32 = 77 };
enum { LT_OP_N = 0, LT_OP_T = 1 };
enum { LT_DESC_TRANSA = 3, LT_DESC_TRANSB = 4, LT_DESC_EPILOGUE = 7, LT_DESC_BIAS_POINTER = 8, LT_DESC_BIAS_TYPE = 26 };
enum { LT_EPILOGUE_DEFAULT = 1, LT_EPILOGUE_RELU = 2, LT_EPILOGUE_BIAS = 4, LT_EPILOGUE_GELU = 32 };
enum { LT_PREF_WORKSPACE = 1 };
enum { LT_CONFIG_ID = 0, LT_CONFIG_TILE = 1, LT_CONFIG_SPLITK = 2, LT_CONFIG_STAGES = 6 };

/* result, name behind "cublasLt", parameters */
#define LT_FUNCTIONS(F)                                                                                                    \
    F(size_t, GetVersion, (void))                                                                                          \
    F(int, Create, (void **handle))                                                                                        \
    F(int, Destroy, (void *handle))                                                                                        \
    F(int, MatmulDescCreate, (void **desc, int compute, int scale))                                                        \
    F(int, MatmulDescDestroy, (void *desc))                                                                                \
    F(int, MatmulDescSetAttribute, (void *desc, int attribute, const void *value, size_t size))                            \
    F(int, MatrixLayoutCreate, (void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld))                     \
    F(int, MatrixLayoutDestroy, (void *layout))                                                                            \
    F(int, MatmulPreferenceCreate, (void **preference))                                                                    \
    F(int, MatmulPreferenceDestroy, (void *preference))                                                                    \
    F(int, MatmulPreferenceSetAttribute, (void *preference, int attribute, const void *value, size_t size))                \
    F(int, MatmulAlgoGetHeuristic,                                                                                         \
      (void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference, int requested, lt_candidate *list,  \
       int *returned))                                                                                                     \
    F(int, MatmulAlgoConfigGetAttribute,                                                                                   \
      (const lt_algo *algo, int attribute, void *value, size_t size, size_t *written))                                     \
    F(int, Matmul,                                                                                                         \
      (void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout,          \
       const void *beta, const void *c, void *c_layout, void *d, void *d_layout, const lt_algo *algo, void *workspace,     \
       size_t workspace_bytes, void *stream))

typedef struct lt_api {
#define LT_MEMBER(result, name, parameters) result(*name) parameters;
    LT_FUNCTIONS(LT_MEMBER)
#undef LT_MEMBER
} lt_api;

#endif
