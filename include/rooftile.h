/* SPDX-License-Identifier: Apache-2.0
 *
 * rooftile.h - matrix products for the linear layers of language models.
 *
 *     Y[b][m][n] = epilogue( alpha * sum over k of X[b][m][k] * W[b][n][k] )
 *
 * Objects live in this order and each must outlive the next:
 *     rft_ctx     one device, its thread pool, kernel and tuning caches
 *     rft_weight  one matrix W packed for that device; immutable; its layout depends on the context and
 *                 its own description alone, so one packed W serves every m and every plan that names its layout
 *     rft_plan    one layer shape for m_min..m_max: a table from ranges of m to kernels, fixed and compiled here
 *
 * Errors.   A function that can fail returns rft_status and, when `err` is not
 *           NULL, writes the reason there. The library never exits, aborts or prints
 *           (RFT_VERBOSE asks it to write a log; see rft_log_level).
 * Threads.  Each function says [any]: may run at the same time on the same object,
 *           or [own]: the caller alone may use the object during the call.
 * Memory.   rft_linear_run allocates nothing. All sizes are bytes, all strides elements.
 * Numerics. f32 accumulation in ascending k; the error bound of a plan is in rft_plan_info. NaN and Inf
 *           propagate; alpha = 0 reads neither X nor W; an RFT_EPI_ADD with beta = 0 never reads its operand.
 */
#ifndef ROOFTILE_H
#define ROOFTILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RFT_VERSION_MAJOR 0 /* raised when a program must be recompiled or changed */
#define RFT_VERSION_MINOR 1
#define RFT_VERSION_PATCH 0
#define RFT_VERSION (RFT_VERSION_MAJOR * 10000 + RFT_VERSION_MINOR * 100 + RFT_VERSION_PATCH)

#ifndef RFT_API
#define RFT_API __attribute__((visibility("default")))
#endif

/* Values never change meaning once released; new ones are added at the end. */
typedef enum rft_status {
    RFT_OK = 0,
    RFT_E_ARG = 1,         /* a pointer, size or enum value is not allowed */
    RFT_E_UNSUPPORTED = 2, /* allowed, but no kernel here can do it */
    RFT_E_NOMEM = 3,
    RFT_E_LAYOUT = 4, /* this weight was packed for another plan, or its header is damaged */
    RFT_E_DEVICE = 5, /* native holds the CUresult */
    RFT_E_JIT = 6,    /* native holds the nvrtcResult */
    RFT_E_IO = 7,     /* native holds errno */
    RFT_E_COMM = 8    /* native holds the MPI or NCCL code */
} rft_status;

typedef struct rft_error {
    rft_status status;
    int32_t native;    /* code of the layer below, 0 if there is none */
    char message[240]; /* one sentence, English, always terminated */
} rft_error;

typedef enum rft_type { /* element types; quantised weights are an element type + scales, see rft_weight_desc */
                        RFT_F32 = 1,
                        RFT_F16 = 2,
                        RFT_BF16 = 3,
                        RFT_E4M3 = 4,
                        RFT_E5M2 = 5,
                        RFT_I8 = 6,
                        RFT_U8 = 7,
                        RFT_I4 = 8,
                        RFT_U4 = 9,
                        RFT_E2M1 = 10,
                        RFT_E8M0 = 11,
                        RFT_NF4 = 12, /* as bitsandbytes defines it: 16 quantiles of a normal distribution, -1 to 1 */
                        RFT_I32 = 13,
                        /* stored in safetensors, known by name and size only */
                        RFT_BOOL = 14,
                        RFT_U16 = 15,
                        RFT_U32 = 16,
                        RFT_U64 = 17,
                        RFT_C64 = 18,
                        RFT_E2M3 = 19,
                        RFT_E3M2 = 20,
                        RFT_E4M3FNUZ = 21,
                        RFT_E5M2FNUZ = 22,
                        RFT_FP4 = 23, /* as bitsandbytes defines it: 0 to 1 by sign, exponent and fraction, not E2M1 */
                        RFT_GGUF_Q4_0 = 258 /* ... 256 + the on-disk type number: block formats that carry their own scales */
} rft_type;

/* What multiplies. AUTO keeps f32 accuracy of the stored operands: 16-bit ones in 16-bit units, f32 ones in f32. TF32 allows f32
 * operands to be rounded to 11 significant bits where a unit is faster for it (tensor cores); a CPU multiplies in f32. I8 allows
 * x to be rounded to 8 bits in groups of 32 k, or of 64, 128 or 256 where a scale of W serves as many, or by one scale a row
 * (rft_linear_desc.x_group_k), for integer products with a low-bit W; see rft_plan_info.error_x. An x of RFT_I8 meets codes in 8
 * bits under AUTO too, as that loses nothing; F32 forbids it. */
typedef enum rft_compute {
    RFT_COMPUTE_AUTO = 0, RFT_COMPUTE_F32, RFT_COMPUTE_TF32, RFT_COMPUTE_16, RFT_COMPUTE_I8, RFT_COMPUTE_FP8, RFT_COMPUTE_FP8_FAST
} rft_compute;

typedef enum rft_order { RFT_K_CONTIGUOUS = 0, RFT_MN_CONTIGUOUS = 1 } rft_order;

/* The operand of an op is operand[m][n] unless its line says otherwise. y is the f32 value that travels
 * through the list. After SWIGLU, GEGLU and GEGLU_TANH the row has n/2 columns; ops behind them see those. */
typedef enum rft_epi_kind {
    RFT_EPI_SCALE = 1,       /* y *= alpha                                                          */
    RFT_EPI_BIAS = 2,        /* y += operand[n]                                                     */
    RFT_EPI_SILU = 3,        /* y = y / (1 + exp(-y))                                               */
    RFT_EPI_GELU = 4,        /* y = y * (1 + erf(y / sqrt 2)) / 2                                   */
    RFT_EPI_MUL = 5,         /* y *= operand[m][n], the gate of SwiGLU                              */
    RFT_EPI_ADD = 6,         /* y += beta * operand[m][n], the residual or C; beta = 0 reads nothing */
    RFT_EPI_RELU = 7,        /* y = y < 0 ? 0 : y                                                   */
    RFT_EPI_GELU_TANH = 8,   /* y = y * (1 + tanh(sqrt(2/pi) * (y + 0.044715 y^3))) / 2              */
    RFT_EPI_CLAMP = 9,       /* y = y < alpha ? alpha : y > beta ? beta : y                         */
    RFT_EPI_SWIGLU = 10,     /* y = silu(gate) * up; needs a weight packed with RFT_WEIGHT_GLU_*     */
    RFT_EPI_GEGLU = 11,      /* y = gelu(gate) * up                                                 */
    RFT_EPI_GEGLU_TANH = 12, /* y = gelu_tanh(gate) * up                                            */
    RFT_EPI_ROW_SCALE = 13,  /* y *= operand[m]                                                     */
    RFT_EPI_COL_SCALE = 14,  /* y *= operand[n]                                                     */
    RFT_EPI_MASK = 15,       /* y = bit ? y : 0; operand is bits, bit m*ld + n, least significant bit of a byte first */
    RFT_EPI_DROPOUT = 16,    /* y = kept ? y / (1 - alpha) : 0; alpha = probability of dropping; operand is two uint64_t,
                              * {seed, offset}: Philox4x32-10 with key = seed and counter = {offset, element/4} */
    /* Last in the list of a plan whose y is RFT_I8 or RFT_E4M3, codes times a scale, rounded as rft_quantize rounds. */
    RFT_EPI_QUANTIZE = 17,     /* the scale is given: operand[0], an f32 for all of y */
    RFT_EPI_QUANTIZE_ROWS = 18 /* scales are found and written: f32 operand[m][ceil(columns / alpha)]; alpha: columns of
                                * a scale, a multiple of 32, or 0: the row. Rows wait as f32 in the workspace to be complete */
} rft_epi_kind;

typedef struct rft_epi_op {
    rft_epi_kind kind;
    rft_type type;    /* of the operand: RFT_F32, RFT_BF16 or RFT_F16; 0 where the op has none or its own */
    uint32_t operand; /* index into rft_linear_args.operand */
    float alpha, beta; /* parameters of the op, such as clamp limits */
} rft_epi_op;

#define RFT_MAX_EPI 16     /* ops in one list */
#define RFT_MAX_OPERANDS 16
#define RFT_MAX_LIST 16    /* plans in one rft_run_list */

/* ---- flags ---- */
#define RFT_CTX_HUGE_PAGES 1u          /* ask the kernel for 2 MiB pages behind the library's own large buffers */
#define RFT_CTX_STRICT 2u              /* a plan that would run a fallback kernel is an error (RFT_STRICT=1 does the same) */
#define RFT_WEIGHT_VIEW 1u             /* use W in place where a kernel can, no packed copy; W must outlive the weight */
#define RFT_WEIGHT_GLU_HALVES 2u       /* rows 0..n/2-1 are the gate, n/2..n-1 the up projection */
#define RFT_WEIGHT_GLU_INTERLEAVED 4u  /* even rows are the gate, odd rows the up projection */
#define RFT_WEIGHT_GLOBAL_TIMES 8u     /* scales are multiplied by src.global_scale ... */
#define RFT_WEIGHT_GLOBAL_OVER 16u     /* ... or divided by it: NVFP4 is stored in both ways */
#define RFT_WEIGHT_G_IDX 32u           /* src.g_idx says which group a k belongs to */
#define RFT_W_DYNAMIC 1u               /* rft_linear_desc.flags: W is given unpacked at each run */
#define RFT_BATCH_INVARIANT 2u         /* a row's bits depend on neither m, the other rows nor the thread count */
#define RFT_X_SCALED 4u                /* x of RFT_I8 or RFT_E4M3 has scales, args.x_scale: x = code * scale */
#define RFT_ALPHA 8u                   /* rft_linear_desc.alpha counts; without it alpha is 1 */
#define RFT_X_STATIC 16u               /* beside RFT_X_SCALED: one scale serves all of x */

typedef enum rft_log_level {
    RFT_LOG_NONE = 0,
    RFT_LOG_ERROR,
    RFT_LOG_WARN,
    RFT_LOG_HINT,
    RFT_LOG_DISPATCH,
    RFT_LOG_EXEC,
    RFT_LOG_ALL
} rft_log_level;

/* A struct that may grow begins with its size, so that an old program can meet a new
 * library and the reverse: fields behind the size are zero, and a size that cuts a field in two is an error.
 * Start from <type>_init(); zero in a field means the default. */
typedef struct rft_ctx_options {
    uint32_t struct_size, threads; /* 0: RFT_NUM_THREADS, else OMP_NUM_THREADS, else all cores (affinity, cgroup) */
    uint32_t sm_limit, flags;      /* multiprocessors of a GPU, 0: all; RFT_CTX_HUGE_PAGES, ... */
    /* Instead of an own pool: calls task(arg, i) once for each i in 0..n-1, in any order, and returns when all have returned.
     * n is at most `threads`. A serial loop is allowed. */
    void (*parallel_for)(void *user, int n, void (*task)(void *arg, int i), void *arg);
    void *user;                    /* for parallel_for, alloc, release and log */
    const char *cache_dir;         /* NULL: RFT_CACHE_DIR, else $XDG_CACHE_HOME/rooftile, else ~/.cache/rooftile */
    const char *profile;           /* a file of `rooftile roofline`; NULL: this machine's in cache_dir, if any */
    void *cuda_context;            /* CUcontext, or NULL for the primary one */
    void *(*alloc)(void *user, size_t bytes, size_t align);       /* NULL result: RFT_E_NOMEM; both or neither */
    void (*release)(void *user, void *p, size_t bytes);
    void (*log)(void *user, rft_log_level level, const char *line); /* events up to log_level, a CSV line each, no newline */
    rft_log_level log_level;
    const char *max_isa;           /* cap, such as "avx2"; NULL: RFT_MAX_ISA, else none */
} rft_ctx_options;

typedef struct rft_weight_desc {
    uint32_t struct_size;
    /* As stored: f32, f16, bf16; on the CPU also GGUF blocks, which carry their scales, and i8, u8, i4, u4, e4m3, e5m2, e2m1,
     * nf4, fp4 (of two in a byte the first in the low bits; rows begin at bytes) with scales of f32, f16 or bf16, for e4m3, e5m2
     * and e2m1 also of e8m0, for e2m1 of e4m3 too. w = (element - zero) * scale. */
    rft_type elem;
    int64_t n, k, ld, batch, batch_stride; /* ld 0: k (or n), in whole bytes or blocks; batch 0: 1 */
    rft_order order;            /* RFT_K_CONTIGUOUS: W[n][k], as torch.nn.Linear stores it */
    rft_type scale, zero;       /* 0: none; zero points are i8 beside i8 and i4, u8 beside u8 and u4 */
    int64_t group_n, group_k;   /* one scale covers group_n x group_k; 0 is the whole extent; ragged last groups allowed. group_k
                                 * is a multiple of 8, or not less than k */
    uint32_t flags;             /* RFT_WEIGHT_* */
} rft_weight_desc;

typedef struct rft_weight_src { /* pointers as the checkpoint holds them */
    uint32_t struct_size;
    const void *q, *scale, *zero, *global_scale; /* scale, zero: dense [batch][ceil(n / group_n)][ceil(k / group_k)];
                                                  * global_scale: f32 [batch], beside scales of e4m3 */
    /* [batch][k], act-order: the group of each k, in place of k / group_k; each group as large as that makes it. Packing sorts k
     * by it and runs take x in that order, so x and everything else stay as they are. */
    const int32_t *g_idx;
} rft_weight_src;

typedef struct rft_linear_desc {
    uint32_t struct_size;
    rft_type x, y;
    rft_weight_desc w;          /* the W that runs; RFT_W_DYNAMIC in flags: given unpacked at each run */
    rft_order x_order;          /* RFT_K_CONTIGUOUS: X[m][k]; x in 8 bits always is */
    int64_t m_min, m_max, batch, n_group;
    rft_compute compute;
    int64_t x_group_k;          /* of x in 8 bits: k of a scale, a multiple of 32; 0: one a row, or with RFT_X_STATIC for all. Of
                                 * floats that RFT_COMPUTE_I8 rounds: 0 the plan's groups, w.k or more one scale a row */
    const rft_epi_op *epi;      /* copied; applied in order, in f32, before the one store of y */
    uint32_t n_epi, flags;      /* RFT_W_DYNAMIC, RFT_BATCH_INVARIANT, RFT_X_SCALED, ... */
    float alpha;                /* RFT_ALPHA in flags makes 0 mean 0 */
} rft_linear_desc;

typedef struct rft_operand { /* of an epilogue op; written where the op writes (quantised output's scales) */
    void *ptr;
    int64_t ld, batch_stride; /* ld: 0 is the row's length, n before a gated unit and n/2 behind it; batch_stride 0: the same
                               * operand for every batch */
} rft_operand;

typedef struct rft_ctx rft_ctx;
typedef struct rft_plan rft_plan;
typedef struct rft_weight rft_weight;
typedef struct rft_mlp rft_mlp;

typedef struct rft_plan_info { /* at one m */
    uint32_t struct_size;
    const char *kernel; /* such as gemm_bf16_bf16_f32_14x32_avx512bf16; lives as long as the plan */
    uint64_t weight_layout;
    size_t workspace, workspace_align; /* for any m of the plan; contents need no initialisation */
    double flops, bytes, bound_seconds; /* roofline; bytes: the least traffic, each operand once; bound_seconds 0: no profile */
    double error_c, error_eta;          /* |error| <= error_c * sum|x||w| + error_eta, before the epilogue and y's rounding */
    const char *bound;                  /* "compute", "memory" or "unknown" (no profile) */
    int32_t threads;                    /* that take part at this m */
    double error_x;                     /* not 0: the kernel rounds x to 8 bits, and the product is that of the rounded x. Against
                                         * x itself |error| grows by up to error_x * sum over k of |w| (most |x| in its group) */
    int64_t group_x;                    /* k of such a group, which one scale serves; 0 where the kernel does not round x */
    int32_t minimum_apart;              /* 1: the kernel sums a minimum apart from code * scale, and |w| in the bound is
                                         * |code * scale| + |minimum| */
} rft_plan_info;

typedef struct rft_linear_args {
    uint32_t struct_size;
    uint32_t n_operand;
    int64_t m, ldx, ldy, x_batch_stride, y_batch_stride; /* 0: dense */
    const void *x, *x_scale;        /* x_scale: dense f32 [batch][m][ceil(k / x_group_k)], or one number with RFT_X_STATIC */
    const rft_weight *weight;       /* or, with RFT_W_DYNAMIC, the next three */
    const void *w;
    int64_t ldw, w_batch_stride;    /* 0: as the plan's w says */
    void *y;
    const rft_operand *operand;
    const int32_t *m_device;        /* rows counted on the device, <= m; graph-safe */
    const int64_t *group_offset;    /* n_group + 1 row offsets, host or device as the plan says */
    const int32_t *row_index;       /* gather of x rows, or NULL */
    void *workspace; /* rft_plan_info.workspace bytes, not shared between calls in flight */
    size_t workspace_bytes; /* what `workspace` holds */
    void *stream;    /* CUstream, or NULL on the CPU */
} rft_linear_args;

/* down( act( x * gate_up ) ): with a GLU weight the activation is RFT_EPI_SWIGLU, GEGLU or GEGLU_TANH, else RELU, GELU,
 * GELU_TANH or SILU. */
typedef struct rft_mlp_desc {
    uint32_t struct_size;
    rft_type x, hidden, y;       /* hidden: type of the activations between the two products */
    rft_weight_desc up, down;
    rft_epi_kind activation;
    int64_t m_min, m_max;
    const rft_epi_op *epi;       /* behind the down projection */
    uint32_t n_epi, flags;       /* RFT_BATCH_INVARIANT, RFT_X_SCALED, RFT_X_STATIC */
    rft_compute compute;         /* of both products */
    int64_t x_group_k;           /* as in rft_linear_desc */
    int64_t hidden_group_k;      /* the same of hidden activations of RFT_I8 or RFT_E4M3, whose scales lie in the workspace */
} rft_mlp_desc;

typedef struct rft_mlp_args {
    uint32_t struct_size;
    uint32_t n_operand;
    int64_t m, ldx, ldy;
    const void *x;
    const rft_weight *up, *down;
    void *y;
    const rft_operand *operand;  /* of the down projection's epilogue */
    void *workspace;
    size_t workspace_bytes;
    void *stream;
    const void *x_scale;         /* as in rft_linear_args */
} rft_mlp_args;

/* x[m][k] in 8 bits, for plans that share it: x = code * scale. A scale is found for each row, or for each group_k of its k:
 *     scale = (largest |x|) / top        code = x * (top / largest |x|)        top = 127 for RFT_I8, 448 for RFT_E4M3
 * in f32, codes to nearest even. Where the largest |x| is below 2^-110 scale and codes are 0; with a NaN or an Inf the scale is
 * NaN and codes are 0. Or one scale is given: code = x / scale, to nearest even, saturated at -128 and 127, or at -448 and 448; a
 * NaN is 0 in RFT_I8 and NaN in RFT_E4M3. q must not overlap x. */
typedef struct rft_quantize_args {
    uint32_t struct_size;
    rft_type from, to;           /* f32, f16 or bf16; RFT_I8 or RFT_E4M3 */
    int64_t m, k, ldx, ldq;      /* ld 0: k */
    int64_t group_k;             /* k of a scale: a multiple of 32, or 0: one scale a row */
    const void *x;
    void *q;
    float *scale;                /* written: dense [m][ceil(k / group_k)]; NULL where a scale is given */
    const float *static_scale;   /* NULL, or one scale for all of x; group_k is 0 then */
    void *stream;
} rft_quantize_args;

typedef struct rft_build_info {
    uint32_t struct_size;
    const char *version, *commit, *compiler, *build_type;
    const char *isa_built; /* comma-separated levels compiled in, lowest first */
    const char *isa_here;  /* highest level that this machine and RFT_MAX_ISA allow */
    const char *isa_missing; /* why the next level is not used, as "level: reason"; empty where there is none */
} rft_build_info;

#ifdef __cplusplus
#define RFT_ZERO {}
#else
#define RFT_ZERO {0}
#endif
#define RFT_DEFINE_INIT(type)                  \
    static inline type type##_init(void) {     \
        type s = RFT_ZERO;                     \
        s.struct_size = (uint32_t)sizeof s;    \
        return s;                              \
    }
RFT_DEFINE_INIT(rft_ctx_options)
RFT_DEFINE_INIT(rft_weight_desc)
RFT_DEFINE_INIT(rft_weight_src)
RFT_DEFINE_INIT(rft_linear_args)
RFT_DEFINE_INIT(rft_plan_info)
RFT_DEFINE_INIT(rft_mlp_desc)
RFT_DEFINE_INIT(rft_mlp_args)
RFT_DEFINE_INIT(rft_quantize_args)
RFT_DEFINE_INIT(rft_build_info)
#undef RFT_DEFINE_INIT

static inline rft_linear_desc rft_linear_desc_init(void) {
    rft_linear_desc s = RFT_ZERO;
    s.struct_size = (uint32_t)sizeof s;
    s.w = rft_weight_desc_init();
    return s;
}
#undef RFT_ZERO

RFT_API int rft_version(void);                                              /* [any] */
RFT_API rft_status rft_get_build_info(rft_build_info *info);                /* [any] strings are static */
RFT_API const char *rft_status_name(rft_status s); /* static, never NULL */ /* [any] */
RFT_API const char *rft_type_name(rft_type t);     /* static, never NULL: "f32", "bf16", ..., "?" */ /* [any] */

/* device: "cpu", "cuda:0", or NULL for the best one present; options may be NULL. */
RFT_API rft_status rft_ctx_create(const char *device, const rft_ctx_options *options, rft_ctx **out, rft_error *err); /* [any] */
RFT_API void rft_ctx_free(rft_ctx *ctx); /* NULL is allowed */                       /* [own] */

/* Packs a stored W into storage that the caller keeps; size from rft_weight_bytes. storage must be aligned to 64 bytes and
 * outlive the weight; the bytes may be written to a file and opened later. The weight is complete on return.
 * CUDA: storage is device memory, src.q host or device memory; with both on the host the same bytes are made there, to be
 * uploaded and opened. A run may read W before the kernel enqueued in front of it has ended, so a view's bytes must be complete
 * when a run is enqueued (a W that a kernel writes each time is for RFT_W_DYNAMIC). */
RFT_API rft_status rft_weight_bytes(rft_ctx *ctx, const rft_weight_desc *desc, size_t *bytes, rft_error *err); /* [any] */
RFT_API rft_status rft_weight_pack(rft_ctx *ctx, const rft_weight_desc *desc, const rft_weight_src *src, void *storage,
                                   void *stream, rft_weight **out, rft_error *err);   /* [any] */
/* Storage that is packed already, such as a mapped file. */
RFT_API rft_status rft_weight_open(rft_ctx *ctx, void *storage, size_t bytes, rft_weight **out, rft_error *err); /* [any] */
/* Writes W[n][k] (batch after batch) as f32, rows ld apart; ld 0: k. */
RFT_API rft_status rft_weight_unpack(const rft_weight *weight, float *w, int64_t ld, rft_error *err); /* [any] */
RFT_API void rft_weight_free(rft_weight *weight);                             /* [own] */

/* Chooses and compiles a kernel for each range of m. Equal descriptors share one cached choice. */
RFT_API rft_status rft_plan_create(rft_ctx *ctx, const rft_linear_desc *desc,
                                   rft_plan **out, rft_error *err);           /* [any] */
RFT_API void rft_plan_free(rft_plan *plan);                                   /* [own] */
RFT_API rft_status rft_plan_get_info(const rft_plan *plan, int64_t m, rft_plan_info *info); /* [any] */

/* Writes, one line a candidate, why each was taken or refused at this m.
 * Returns the length the text needs, like snprintf. */
RFT_API size_t rft_plan_explain(const rft_plan *plan, int64_t m, char *buf, size_t cap); /* [any] */

/* On CUDA this enqueues on args->stream and returns before y is ready. */
RFT_API rft_status rft_linear_run(const rft_plan *plan, const rft_linear_args *args, rft_error *err); /* [any] */

/* Runs count plans of one context with one hand-off to its threads (q, k and v of one layer). Each has its own args
 * and its own workspace; no y may overlap another's operands. */
RFT_API rft_status rft_run_list(const rft_plan *const *plans, const rft_linear_args *args, uint32_t count,
                                rft_error *err); /* [any] */

/* Layers with the same input (q, k and v; gate and up) quantise it once, here, and take it with RFT_X_SCALED. CPU alone. */
RFT_API rft_status rft_quantize(rft_ctx *ctx, const rft_quantize_args *args, rft_error *err); /* [any] */

/* Two plans that share one workspace. The info's kernel is the up projection's. */
RFT_API rft_status rft_mlp_create(rft_ctx *ctx, const rft_mlp_desc *desc, rft_mlp **out, rft_error *err); /* [any] */
RFT_API void rft_mlp_free(rft_mlp *mlp);                                      /* [own] */
RFT_API rft_status rft_mlp_get_info(const rft_mlp *mlp, int64_t m, rft_plan_info *info); /* [any] */
RFT_API rft_status rft_mlp_run(const rft_mlp *mlp, const rft_mlp_args *args, rft_error *err); /* [any] */

#ifdef __cplusplus
}
#endif
#endif
