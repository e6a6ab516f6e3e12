/* SPDX-License-Identifier: Apache-2.0
 *
 * ggml_api.h - the part of ggml's C interface that peer_ggml.c calls: one row a function, every object an opaque pointer.
 * Facts from ggml.h, ggml-alloc.h, ggml-backend.h and ggml-cpu.h of version 0.21.0; ggml_version came after type 39.
 * Numbers of types are those of GGUF files. ggml aborts on a call that it does not accept, so the caller asks first.
 */
#ifndef PEERS_GGML_API_H
#define PEERS_GGML_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGML_F32 = 0, GGML_F16 = 1, GGML_BF16 = 30, GGML_LAST = 39 /* MXFP4: every version that exports all below has it */ };

typedef struct ggml_arena { /* ggml_init_params */
    size_t bytes;
    void *memory; /* NULL: its own */
    bool no_alloc; /* descriptions alone */
} ggml_arena;

typedef struct ggml_pool_params { /* ggml_threadpool_params */
    bool cpu[512];
    int threads, priority;
    uint32_t poll; /* 1: idle workers spin for a few milliseconds, then sleep; 50: for fifty times that */
    bool strict_cpu, paused;
    char room[4096]; /* a version that has more of something writes in here, and `threads` is then not where it stands above */
} ggml_pool_params;

typedef void ggml_log(int level, const char *text, void *user);
typedef void **ggml_extra_types(void *device); /* by reg_get_proc_address; NULL at the end */

/* result, name behind "ggml_", parameters */
#define GGML_FUNCTIONS(F)                                                                                                  \
    F(const char *, version, (void))                                                                                       \
    F(void, log_set, (ggml_log * log, void *user))                                                                         \
    F(const char *, type_name, (int type))                                                                                 \
    F(size_t, row_size, (int type, int64_t elements))                                                                      \
    F(size_t, tensor_overhead, (void))                                                                                     \
    F(size_t, graph_overhead_custom, (size_t size, bool gradients))                                                        \
    F(void *, init, (ggml_arena arena))                                                                                    \
    F(void, free, (void *context))                                                                                         \
    F(void *, new_tensor_2d, (void *context, int type, int64_t columns, int64_t rows))                                     \
    F(void *, mul_mat, (void *context, void *w, void *x))                                                                  \
    F(void *, new_graph_custom, (void *context, size_t size, bool gradients))                                              \
    F(void, build_forward_expand, (void *graph, void *tensor))                                                             \
    F(void, threadpool_params_init, (ggml_pool_params * params, int threads))                                              \
    F(void *, threadpool_new, (ggml_pool_params * params))                                                                 \
    F(void, threadpool_free, (void *pool))                                                                                 \
    F(void *, backend_cpu_init, (void))                                                                                    \
    F(void, backend_cpu_set_n_threads, (void *backend, int threads))                                                       \
    F(void, backend_cpu_set_threadpool, (void *backend, void *pool))                                                       \
    F(void *, backend_cpu_buffer_type, (void))                                                                             \
    F(void *, backend_cpu_buffer_from_ptr, (void *memory, size_t bytes))                                                   \
    F(void, backend_free, (void *backend))                                                                                 \
    F(void *, backend_get_device, (void *backend))                                                                         \
    F(void *, backend_dev_backend_reg, (void *device))                                                                     \
    F(void *, backend_reg_get_proc_address, (void *registry, const char *name))                                            \
    F(bool, backend_dev_supports_op, (void *device, const void *tensor))                                                   \
    F(const char *, backend_buft_name, (void *buffer_type))                                                                \
    F(void *, backend_alloc_ctx_tensors_from_buft, (void *context, void *buffer_type))                                     \
    F(void *, backend_buffer_get_base, (void *buffer))                                                                     \
    F(size_t, backend_buffer_get_size, (void *buffer))                                                                     \
    F(void, backend_buffer_free, (void *buffer))                                                                           \
    F(int, backend_tensor_alloc, (void *buffer, void *tensor, void *memory))                                               \
    F(void, backend_tensor_set, (void *tensor, const void *from, size_t at, size_t bytes))                                 \
    F(int, backend_graph_compute, (void *backend, void *graph))

typedef struct ggml_api {
#define GGML_MEMBER(result, name, parameters) result(*name) parameters;
    GGML_FUNCTIONS(GGML_MEMBER)
#undef GGML_MEMBER
} ggml_api;

#endif
