/* SPDX-License-Identifier: Apache-2.0
 *
 * rooftile_analysis.h - what performance engineers ask of rooftile: the kernel list, single kernels on request,
 * the work of a call, measured roofs, and proof of a result against an f64 reference.
 *
 * Everything here uses rooftile.h's rules for errors, threads and struct_size. An engine does not need this header.
 */
#ifndef ROOFTILE_ANALYSIS_H
#define ROOFTILE_ANALYSIS_H

#include "rooftile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- kernels: one entry a row of the kernel tables ---- */
typedef struct rft_kernel_info {
    uint32_t struct_size;
    const char *name, *isa;    /* static strings */
    rft_type x, w, acc;        /* x and w as the inner loop reads them; of codes (q4, q4m, ... in the name) one type of several */
    int32_t mr, nr, kr;        /* largest register tile and K granule */
    int32_t available;         /* 1: this machine can run it */
    double error_gamma, error_eta; /* of one product: |err| <= error_gamma * k * 2^-24 * sum|x||w| + error_eta, and 2^-10 *
                                    * sum|x||w| more for each f32 operand that a tf32 kernel rounds */
} rft_kernel_info;

RFT_API uint32_t rft_kernel_count(void);                                          /* [any] */
RFT_API rft_status rft_kernel_get(uint32_t i, rft_kernel_info *info);             /* [any] */
/* As rft_plan_create, but only the named kernel may serve it; a refusal is RFT_E_UNSUPPORTED with the reason. */
RFT_API rft_status rft_plan_create_forced(rft_ctx *ctx, const rft_linear_desc *desc, const char *kernel, rft_plan **out,
                                          rft_error *err);                        /* [any] */

/* ---- the device behind a context ---- */
typedef struct rft_device_info {
    uint32_t struct_size;
    int32_t threads, nodes;    /* threads of the pool; NUMA nodes */
    char name[64], isa[16];    /* of the CPU; level in use */
    uint64_t l1d, l2, l3;      /* bytes a core, a core, shared; 0: unknown */
    uint64_t memory;           /* bytes of the machine, or of the cgroup where that is less; of a GPU its own */
    int32_t sms, arch;         /* GPU: multiprocessors in use; compute capability times ten; 0 on the CPU */
} rft_device_info;

RFT_API rft_status rft_ctx_get_device(const rft_ctx *ctx, rft_device_info *info); /* [any] */

/* ---- memory and time of the device: for tools and tests; an engine has its own allocator and streams ----
 * On the CPU this is plain memory. Copies are complete on return. */
RFT_API rft_status rft_memory_alloc(rft_ctx *ctx, size_t bytes, void **p, rft_error *err); /* aligned to 256 bytes */ /* [any] */
RFT_API void rft_memory_free(rft_ctx *ctx, void *p, size_t bytes); /* NULL is allowed */                       /* [any] */
RFT_API rft_status rft_memory_write(rft_ctx *ctx, void *dst, const void *src, size_t bytes, rft_error *err);   /* [any] */
RFT_API rft_status rft_memory_read(rft_ctx *ctx, void *dst, const void *src, size_t bytes, rft_error *err);    /* [any] */
RFT_API rft_status rft_memory_fill(rft_ctx *ctx, void *dst, int byte, size_t bytes, rft_error *err);           /* [any] */
/* Waits for what was enqueued on stream (NULL: the default one). */
RFT_API rft_status rft_ctx_sync(rft_ctx *ctx, void *stream, rft_error *err);                                   /* [any] */

typedef struct rft_timing {
    uint32_t struct_size;
    double device_seconds; /* of all calls together: between events around one replay of a graph of them; CPU: as host_seconds */
    double host_seconds;   /* that enqueuing them took the calling thread; CPU: that they ran */
} rft_timing;

/* Runs call(user, i, stream) for i in 0..count-1, three times: captured into a graph, replayed once to warm up and once more
 * timed, and enqueued plainly for the host's time. On the CPU once, timed. call returns what rft_linear_run did. */
RFT_API rft_status rft_measure_calls(rft_ctx *ctx, rft_status (*call)(void *user, uint32_t i, void *stream, rft_error *err),
                                     void *user, uint32_t count, rft_timing *timing, rft_error *err);        /* [own] */

/* ---- work and bound ---- */
typedef struct rft_work {
    uint32_t struct_size;
    double flops;                        /* 2 m n k batch */
    double x_bytes, w_bytes, y_bytes, operand_bytes; /* each operand once, exact storage bytes */
    double bytes;                        /* their sum */
    double intensity;                    /* flops / bytes */
} rft_work;

RFT_API rft_status rft_work_of(const rft_linear_desc *desc, int64_t m, rft_work *work, rft_error *err); /* [any] */

/* ---- machine profile: roofs of one machine, measured or from a data sheet ---- */
#define RFT_MACHINE_COUNTS 16  /* thread counts measured */
#define RFT_MACHINE_LEVELS 6   /* memory levels, fastest first; the last is DRAM (or HBM) */
#define RFT_MACHINE_PEAKS 32

typedef struct rft_machine_level {
    char name[16];                          /* "L1", "L2", "L3", "DRAM", "HBM" */
    uint64_t bytes;                         /* working set measured, all threads together */
    double read_gbps[RFT_MACHINE_COUNTS];   /* at each thread count, 10^9 bytes a second */
    double copy_gbps[RFT_MACHINE_COUNTS];   /* bytes read plus bytes written */
} rft_machine_level;

typedef struct rft_machine_peak {
    char isa[16];                           /* level whose instructions were timed */
    char op[16];                            /* "fma_f32", "dot_bf16", "wgmma_bf16", ... */
    rft_type type;                          /* of the operands multiplied */
    double gflops[RFT_MACHINE_COUNTS];
} rft_machine_peak;

typedef struct rft_machine {
    uint32_t struct_size;
    char name[64], device[16], isa[16], date[32], source[16]; /* date: ISO 8601; source: "measured" or "spec" */
    uint32_t n_counts, n_levels, n_peaks;
    uint32_t counts[RFT_MACHINE_COUNTS];    /* thread counts, ascending; of a GPU its multiprocessors */
    rft_machine_level levels[RFT_MACHINE_LEVELS];
    rft_machine_peak peaks[RFT_MACHINE_PEAKS];
    double launch_us, enqueue_us; /* GPU: from one kernel of a graph to the next; what a launch takes the host; 0: unknown */
} rft_machine;

RFT_API rft_status rft_machine_load(const char *path, rft_machine *machine, rft_error *err);        /* [any] */
RFT_API rft_status rft_machine_save(const rft_machine *machine, const char *path, rft_error *err);  /* [any] atomic */
/* Measures this machine's roofs with the context's threads; seconds bounds the time spent (0: 10). progress may be NULL. */
RFT_API rft_status rft_machine_measure(rft_ctx *ctx, double seconds, void (*progress)(void *user, const char *what), void *user,
                                       rft_machine *machine, rft_error *err);     /* [own] */
/* One of its arrays of roofs (read_gbps, copy_gbps, gflops) at a thread count: linear between those measured and from zero to the
 * first, constant beyond the last; 0: at the last. */
RFT_API double rft_machine_roof(const rft_machine *machine, const double *roofs, uint32_t threads); /* [any] */
/* Seconds that no kernel can beat: max(flops / peak, bytes / DRAM read), and which of the two it is. */
typedef struct rft_bound {
    uint32_t struct_size;
    double seconds, compute_seconds, memory_seconds;
    const char *what;                       /* "compute" or "memory" */
} rft_bound;
RFT_API rft_status rft_machine_bound(const rft_machine *machine, const rft_linear_desc *desc, int64_t m, uint32_t threads,
                                     rft_bound *bound, rft_error *err);           /* [any] */
/* The profile that the context uses (its option, else this machine's in the cache folder). RFT_E_UNSUPPORTED when it has none. */
RFT_API rft_status rft_ctx_get_machine(const rft_ctx *ctx, rft_machine *machine, rft_error *err); /* [any] */
/* Explain for a machine that is not here: the candidates, the choice and the bound, from its profile. Length as snprintf. */
RFT_API rft_status rft_explain_machine(const rft_machine *machine, const rft_linear_desc *desc, int64_t m, uint32_t threads,
                                       char *buf, size_t cap, size_t *length, rft_error *err); /* [any] */
/* Compiles what a plan of desc needs on a GPU of that profile into the kernel cache of options (NULL: the default one), so that
 * making the plan there finds it. Needs NVRTC and no GPU; does nothing for a CPU. */
RFT_API rft_status rft_prebuild(const rft_machine *machine, const rft_ctx_options *options, const rft_linear_desc *desc,
                                rft_error *err);                                                  /* [any] */

/* ---- proof ---- */
typedef struct rft_verify_result {
    uint32_t struct_size;
    int64_t checked;                        /* elements of y compared */
    double max_error, limit;                /* the largest |error| and the bound at that element */
    double worst;                           /* max of |error| / bound: a result is right when <= 1 */
    int64_t worst_b, worst_m, worst_n;
    double worst_y, worst_ref;              /* y in 8 bits: what its code stands for */
} rft_verify_result;

/* Compares y with an f64 reference over the stored operands (w: as rft_weight_src.q of the descriptor), epilogue included,
 * within the bound |error| <= c * sum|x||w| + eta + epilogue term + half an ulp of y; c and eta come from the plan.
 * An epilogue operand must still hold what the run read (so none may alias y). max_gflop bounds the reference's cost: above it
 * the elements at all tile edges and a random sample of the others are compared (0: 10). RFT_OK means compared, not right: see
 * worst. */
RFT_API rft_status rft_verify(const rft_plan *plan, const rft_linear_args *args, const void *w, double max_gflop, uint64_t seed,
                              rft_verify_result *result, rft_error *err);         /* [any] */

/* The same where scales and zero points of w lie apart from its elements: src as rft_weight_pack had it. A kernel that rounds x
 * to 8 bits (rft_plan_info.error_x) is judged by the product of the rounded x, and where minimum_apart says so |w| of the bound
 * is |code * scale| + |minimum|. */
RFT_API rft_status rft_verify_source(const rft_plan *plan, const rft_linear_args *args, const rft_weight_src *src,
                                     double max_gflop, uint64_t seed, rft_verify_result *result, rft_error *err); /* [any] */

/* Bytes of a row of k elements as stored, in whole blocks; 0 where k is negative or too large, or the type unknown. */
RFT_API size_t rft_type_bytes(rft_type type, int64_t k); /* [any] */

/* Fills count elements of a type with values of both signs in about [-1, 1), some outliers; the same for the same seed. GGUF
 * blocks get random codes and small scales. */
RFT_API rft_status rft_fill_random(rft_type type, void *dst, int64_t count, uint64_t seed, rft_error *err); /* [any] */

#ifdef __cplusplus
}
#endif
#endif
