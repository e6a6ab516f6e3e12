/* SPDX-License-Identifier: Apache-2.0
 *
 * onednn_api.h - the part of oneDNN's C interface (version 3) that peer_onednn.c calls: one row a function. Values are those of
 * dnnl_types.h and dnnl_common_types.h.
 */
#ifndef PEERS_ONEDNN_API_H
#define PEERS_ONEDNN_API_H

#include <stddef.h>
#include <stdint.h>

typedef int64_t dnn_dims[12];
typedef struct dnn_arg {
    int arg;
    void *memory;
} dnn_arg;

typedef struct dnn_version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
} dnn_version;

enum { DNN_CPU = 1, DNN_IN_ORDER = 1, DNN_TAG_ANY = 1 };
enum { DNN_F16 = 1, DNN_BF16 = 2, DNN_F32 = 3, DNN_S32 = 4, DNN_S8 = 5, DNN_U8 = 6, DNN_S4 = 11, DNN_U4 = 12 };
enum { DNN_E8M0 = 13, DNN_E2M1 = 14 };
enum { DNN_MATH_STRICT, DNN_MATH_BF16, DNN_MATH_F16 };
enum { DNN_ATTR_SCALES = 4096, DNN_ATTR_ZERO_POINTS = 8192 }; /* with the argument that they are of */
enum { DNN_ARG_SRC = 1, DNN_ARG_SRC_1 = 2, DNN_ARG_DST = 17, DNN_ARG_WEIGHTS = 33, DNN_ARG_BIAS = 41, DNN_ARG_POST_OP = 32768 };
enum { DNN_QUERY_IMPL_INFO = 8, DNN_QUERY_WEIGHTS_MD = 131 };
enum { DNN_RELU = 0x20, DNN_LINEAR = 0x26, DNN_GELU_TANH = 0x2b, DNN_SWISH = 0x2c, DNN_CLIP = 0x2e, DNN_GELU_ERF = 0x31 };
enum { DNN_BINARY_ADD = 0x1fff0, DNN_BINARY_MUL = 0x1fff1 };

/* result, name behind "dnnl_", parameters */
#define DNN_FUNCTIONS(F)                                                                                                   \
    F(const dnn_version *, version, (void))                                                                                \
    F(int, engine_create, (void **engine, int kind, size_t index))                                                         \
    F(int, engine_destroy, (void *engine))                                                                                 \
    F(int, stream_create, (void **stream, void *engine, unsigned flags))                                                   \
    F(int, stream_destroy, (void *stream))                                                                                 \
    F(int, stream_wait, (void *stream))                                                                                    \
    F(int, memory_desc_create_with_strides, (void **md, int n, const dnn_dims dims, int type, const dnn_dims strides))     \
    F(int, memory_desc_create_with_tag, (void **md, int n, const dnn_dims dims, int type, int tag))                        \
    F(int, memory_desc_destroy, (void *md))                                                                                \
    F(size_t, memory_desc_get_size, (const void *md))                                                                      \
    F(int, memory_create, (void **memory, const void *md, void *engine, void *handle))                                     \
    F(int, memory_destroy, (void *memory))                                                                                 \
    F(int, primitive_attr_create, (void **attr))                                                                           \
    F(int, primitive_attr_destroy, (void *attr))                                                                           \
    F(int, primitive_attr_set_post_ops, (void *attr, const void *post_ops))                                                \
    F(int, post_ops_create, (void **post_ops))                                                                             \
    F(int, post_ops_destroy, (void *post_ops))                                                                             \
    F(int, post_ops_append_eltwise, (void *post_ops, int alg, float alpha, float beta))                                    \
    F(int, post_ops_append_binary, (void *post_ops, int alg, const void *md))                                              \
    F(int, matmul_primitive_desc_create,                                                                                   \
      (void **pd, void *engine, const void *src, const void *weights, const void *bias, const void *dst, const void *attr)) \
    F(int, reorder_primitive_desc_create,                                                                                  \
      (void **pd, const void *src, void *src_engine, const void *dst, void *dst_engine, const void *attr))                 \
    F(int, primitive_desc_destroy, (void *pd))                                                                             \
    F(const void *, primitive_desc_query_md, (const void *pd, int what, int index))                                        \
    F(int, primitive_desc_query, (const void *pd, int what, int index, void *result))                                      \
    F(int, primitive_create, (void **primitive, const void *pd))                                                           \
    F(int, primitive_destroy, (void *primitive))                                                                           \
    F(int, primitive_execute, (const void *primitive, void *stream, int n, const dnn_arg *args))

/* Of codes: from version 3.5 on; NULL in an older library. */
#define DNN_CODE_FUNCTIONS(F)                                                                                              \
    F(int, primitive_attr_set_scales,                                                                                      \
      (void *attr, int arg, int mask, int n, const dnn_dims group, int type))                                              \
    F(int, primitive_attr_set_zero_points,                                                                                 \
      (void *attr, int arg, int mask, int n, const dnn_dims group, int type))                                              \
    F(int, primitive_attr_set_fpmath_mode_v2, (void *attr, int mode, int of_integers))

typedef struct dnn_api {
#define DNN_MEMBER(result, name, parameters) result(*name) parameters;
    DNN_FUNCTIONS(DNN_MEMBER)
    DNN_CODE_FUNCTIONS(DNN_MEMBER)
#undef DNN_MEMBER
} dnn_api;

#endif
