/* SPDX-License-Identifier: Apache-2.0
 *
 * rooftile_model.h - model files as lists of matrix products.
 *
 * A model (a GGUF v3 file, a Hugging Face checkpoint in safetensors files, its config.json alone, or an ONNX file) is opened once
 * and is immutable from then on. It answers three questions: which tensors it holds, which linear layers they form, and what one
 * phase costs in them.
 *
 *     rft_model_open ┬ rft_model_get_layer(model, i, &phase, …)   one row a distinct linear: count, m, n, k, type, epilogue
 *                    ├ rft_model_get_cost(model, &phase, …)       FLOPs, weight bytes, parameters
 *                    ├ rft_model_decode(model, tensor, …)           rows of a stored weight as f32 or bf16
 *                    └ rft_model_read_weight(model, tensor, …)      all of it as rft_weight_pack takes it, low-bit as stored
 *
 * Unknown architectures. Every tensor of two dimensions that can be a weight is a row, marked as of unknown role; one of three
 *           dimensions, none of which is small, as many W as its outermost says.
 * ONNX.     A row is what the nodes of the graph multiply by: their products are known, what the model does with them is not.
 * Mixtures. A row of experts counts each W; `runs` says how many of them a phase reads.
 * Input.    Files are not trusted: every length, count, offset and product is checked before it is used, and memory
 *           stays within a small multiple of the header. A file must not change while it is open (it is mapped).
 * Errors, threads, memory and struct_size: as in rooftile.h.
 */
#ifndef ROOFTILE_MODEL_H
#define ROOFTILE_MODEL_H

#include "rooftile.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RFT_TENSOR_MAX_DIMS 4
#define RFT_LAYER_MAX_EPI 4

typedef struct rft_model rft_model;

typedef enum rft_model_format {
    RFT_MODEL_GGUF = 1,       /* tensors with data */
    RFT_MODEL_CONFIG = 2,     /* config.json: shapes only, no tensors */
    RFT_MODEL_SAFETENSORS = 3, /* a checkpoint: config.json, and tensors with data in one or more files */
    RFT_MODEL_ONNX = 4        /* a graph, and tensors with data in the file and in others beside it */
} rft_model_format;

typedef enum rft_phase_kind {
    RFT_PHASE_DECODE = 1, /* one new token for each of `batch` sequences */
    RFT_PHASE_PREFILL = 2, /* `tokens` new tokens for each of `batch` sequences; logits for the last one of each */
    RFT_PHASE_VERIFY = 3, /* as prefill, with logits for every token: speculated tokens behind a context */
    RFT_PHASE_OFFLINE = 4, /* all tokens of whole texts in one pass, logits for every one: scoring; nothing is kept */
    RFT_PHASE_TRAIN = 5    /* a step of training on whole texts: forward as offline, and both gradients of each layer */
} rft_phase_kind;

/* The products of one layer in a step of training, whose forward rows are T = batch * tokens. */
typedef enum rft_pass {
    RFT_PASS_FORWARD = 1, /* Y[T][N] = X W^T: all that other phases have */
    RFT_PASS_DGRAD = 2,   /* dX[T][K] = dY W: n and k change places, and the stored W is read in its other order */
    RFT_PASS_WGRAD = 3    /* dW += dY^T X, f32, as W is stored: k is T, both operands are activations, none K-contiguous */
} rft_pass;

typedef struct rft_phase {
    rft_phase_kind kind;
    int64_t batch;  /* sequences, >= 1 */
    int64_t tokens; /* of each sequence, >= 1; 1 in decode; batch * tokens <= 2^30 */
} rft_phase;

typedef struct rft_model_info {
    uint32_t struct_size;
    rft_model_format format;
    const char *architecture; /* such as "llama"; strings live as long as the model, never NULL */
    const char *name;         /* the file's own title, "" if it has none */
    int64_t hidden, layers, heads, kv_heads, head_dim, ffn, vocab;
    int64_t context;          /* longest sequence that the file declares, 0 if it does not say */
    int32_t tied;             /* 1: lm_head multiplies by the token embedding */
    int64_t n_tensors;        /* 0 for config.json */
    int64_t parameters;       /* of the whole model, a tied embedding once */
    uint64_t file_bytes;      /* of a checkpoint: of its safetensors files */
    int64_t experts, experts_used; /* 0: no mixture of experts */
    int64_t active_parameters; /* `parameters` without the experts that a token does not meet */
    int32_t unknown;          /* 1: the library does not know the architecture; sizes are 0, and rows are all matrices, of an ONNX
                               * file its products by constants */
    int64_t source_layers, source_positions; /* of an encoder beside the decoder, which all other sizes are of; 0: it has none */
    int64_t window, windowed_layers; /* positions that a token sees, itself among them, in so many layers; 0: all in each */
} rft_model_info;

typedef struct rft_tensor {
    uint32_t struct_size;
    rft_type type;
    const char *name;                     /* lives as long as the model */
    int32_t n_dims;
    int64_t dims[RFT_TENSOR_MAX_DIMS];    /* dims[0] is the contiguous one (K of a weight, dims[1] its N); 1 past n_dims */
    const void *data;                     /* in the mapping of its file, or in the model's memory where an ONNX file scatters it;
                                           * aligned to its element (GGUF: usually to 32 bytes); NULL where a safetensors or ONNX
                                           * file keeps it off that alignment: rft_model_decode reads it anyway */
    uint64_t bytes;                       /* exact storage */
    const char *scheme; /* of a weight that several stored tensors make: "gptq 4-bit g128"; `type` is that of its
                         * codes, `bytes` those of all parts, `data` NULL. "" for all others */
} rft_tensor;

/* One distinct linear layer of the model: Y[m][n] = epilogue(X[m][k] * W[n][k]), found `count` times. */
typedef struct rft_layer {
    uint32_t struct_size;
    rft_type type;          /* of W, as stored */
    const char *name;       /* attn_q attn_k attn_v attn_output ffn_up ffn_gate ffn_down lm_head; attn_qkv, ffn_gate_up: joined;
                             * attn_q_a attn_q_b attn_kv_a attn_kv_b, or attn_k_b attn_v_b: of latent attention; router
                             * expert_* shared_*; pooler; enc_*: of an encoder beside the decoder; cross_*: of what the decoder
                             * sees of it. Of an ONNX file its weight's, or its node's where that tells more, with `*` for each
                             * number between . _ / and : */
    int64_t count;          /* layers of the model with this name, shape, type and epilogue; of experts each W of each block */
    int64_t m, n, k;        /* m: rows of X in the phase asked for; of experts those of one that runs, as expected, rounded up;
                             * of enc_* and of keys and values of cross_* B times the encoder's positions */
    uint64_t weight_bytes;  /* exact storage of one W */
    const char *epilogue;   /* what follows the product, in the order of `epi`: "none", "bias", "add", "silu,mul", "bias,add" */
    uint32_t n_epi;
    rft_epi_kind epi[RFT_LAYER_MAX_EPI];
    int64_t tensor;         /* index of the first such W, or -1 (config.json) */
    int64_t bias_tensor;    /* index of its bias vector, or -1 */
    const char *scheme;     /* as in rft_tensor */
    rft_order order;        /* of the stored W: RFT_K_CONTIGUOUS is [out, in], RFT_MN_CONTIGUOUS [in, out] */
    const char *parts;      /* what W joins, in the order of its columns: "q+k+v", "gate+up", ...; "" for one product */
    int64_t experts, experts_used; /* W of a block, of which each token takes so many; 0: not routed */
    double runs;            /* how many of the `count` are read in the phase: of experts the expected number where all are as
                             * likely, E (1 - (1 - used / E)^tokens) a block; 0 of what is done when a text begins, in decode and
                             * verify */
    double runs_min, runs_max; /* all tokens take the same experts; no two, as far as there are experts */
    double flops;           /* of all of them together */
    int32_t unknown;        /* 1: of an unknown architecture, so its role is not known: it may be no linear layer. `name` is that
                             * of its tensor, each number between dots as `*`; m is B*T, the order taken for [out, in] */
    rft_pass pass;          /* m, n, k and orders are those of this pass' product; in wgrad tensor is -1 and weight_bytes 0 */
    rft_order x_order;      /* of its X: RFT_MN_CONTIGUOUS in wgrad, and where a graph of ONNX has it turned */
} rft_layer;

/* Where the parts of a weight go: rft_weight_src that can be written, each NULL where the description lacks it. */
typedef struct rft_weight_parts {
    uint32_t struct_size;
    void *q, *scale, *zero;
    float *global_scale;
    int32_t *g_idx;
} rft_weight_parts;

/* What a step does beside its linear layers, of all blocks together: the least traffic of a pass that reads and writes each value
 * once, with activations, norms and cache in 16 bits. `context` positions of each sequence lie in the cache before; every
 * token sees all before it and itself (an encoder's: all of its text), or the last ones of a window. In training the way
 * back is counted too: attention computes its scores anew, gradients of weights are f32, read and written. Bias gradients,
 * derivatives of activations and the optimiser are not. */
typedef struct rft_part {
    uint32_t struct_size;
    const char *name; /* attn_scores (queries by keys), attn_values (their weights by values), kv_cache, norms, embedding */
    double flops;     /* of the two products of attention, 0 of all others */
    double read_bytes, write_bytes;
} rft_part;

/* Ranks that run one step together, in groups of `tp`. Every rank of a group has all tokens of the group: heads, hidden neurons
 * and words are cut over it (tensor parallelism). With ep = 0 there is one group, over which experts are cut too.
 *
 * With ep > 0 (expert parallelism) there are ep ranks, in ep / tp groups. Experts are dealt out whole over all of them,
 * ceil(E / ep) to the fullest. Groups are alike in all else and have tokens of their own (data parallelism); shared experts are
 * cut over a group. So the DeepSeek-V3 report deploys its model (section 3.4: attention TP4 and DP8 beside EP32), and vLLM with
 * EP = TP x DP.
 *
 * The phase is that of all ranks together: of its `batch` sequences a group has ceil(batch / (ep / tp)), so that decode:512 on 64
 * ranks is 8 tokens for each. An expert meets tokens of all ranks. */
typedef struct rft_ranks {
    int64_t tp;            /* 1..1024 */
    int64_t ep;            /* 0..1024, a multiple of tp */
    double dispatch_bytes; /* of a value on its way to an expert; 0 stands for 2; 1 + 4 / 128 is FP8 with a scale for 128 */
} rft_ranks;

/* A layer on one rank. Attention is cut by heads, feed-forward parts and experts that are not dealt out by hidden neurons,
 * lm_head by words; routers, latent projections and poolers are whole on each rank. Where something does not divide, this is the
 * fullest rank. In training m, n and k are those of the pass, `split` that of the forward product; the gradient of X is summed
 * where W is cut along N, once for all layers of that X (`note` says with which), and logits stay cut. What groups sum of the
 * gradients of W is not counted. */
typedef struct rft_shard {
    uint32_t struct_size;
    int32_t divides;         /* 0: heads, neurons, words, experts or blocks under one scale do not; `note` names them */
    const char *split;       /* "N", "K", "heads" or "experts" (a rank has the W of its own), "": each rank has all of W */
    int64_t n, k;            /* of a rank */
    double weight_bytes;     /* of one W of a rank, its share of the stored bytes; 0 in wgrad */
    const char *collective;  /* behind it, in its group: "all-reduce", "all-gather" or "" */
    double collective_bytes; /* of the group's results in 16 bits, of all `count` in the phase */
    double sent_bytes;       /* by each rank over a ring: 2 (tp - 1) / tp of them to reduce, (tp - 1) / tp to gather */
    char note[160];          /* "" where all divides and nothing is repeated */
    int64_t m, count;        /* rows of X, and how many W the rank holds */
    double runs, runs_min, runs_max; /* how many of them it reads, as in rft_layer; where e experts of a block are the rank's:
                                      * e (1 - (1 - used / E)^tokens), at least used - (E - e), of the tokens of all ranks */
    double flops;            /* of all that it runs, as expected */
} rft_shard;

typedef enum rft_exchange_kind {
    RFT_EXCHANGE_DISPATCH = 1, /* each token goes to the ranks of its experts */
    RFT_EXCHANGE_COMBINE = 2   /* the results come back, in 16 bits */
} rft_exchange_kind;

/* What ranks among which experts are dealt out send each other in a step, of all blocks together: a token once for each of its
 * experts, as kernels of low latency do; those that send it once a rank send less. Tokens of a group are dealt over its ranks
 * before (sequence parallelism), so that each leaves from one. Of N = ep ranks, E experts, e of them on a rank, t tokens, own of
 * them on a rank, and u experts a token:
 *   bytes     t u hidden b, where b is dispatch_bytes, or 2
 *   dispatch  own u (N - 1) / N hidden b          min own max(0, u - e)              max own min(u, E - e)
 *   combine   t u (e / E) (N - 1) / N hidden 2    min (t - own) max(0, u - (E - e))  max (t - own) min(u, e)
 * expected where every choice is as likely. What a rank sends to combine is what was dispatched to it. In training both go once
 * more for the gradients of the other, in 16 bits: b and 2 become b + 2 and 4. */
typedef struct rft_exchange {
    uint32_t struct_size;
    const char *name;                                  /* "dispatch", "combine" */
    double bytes;                                      /* of all ranks, with what stays on its rank */
    double sent_bytes, sent_bytes_min, sent_bytes_max; /* to other ranks, by that with the most tokens, or experts */
} rft_exchange;

typedef struct rft_model_cost { /* of the linear layers of one phase */
    uint32_t struct_size;
    int64_t tokens;             /* new tokens: batch * tokens */
    double flops;               /* 2 m n k, summed; in training of all passes */
    double flops_per_token;
    uint64_t weight_bytes;      /* of all W, exact storage; equal in all phases */
    int64_t linear_parameters;  /* n k, summed; a tied lm_head counts here */
    double read_bytes, read_bytes_min, read_bytes_max; /* of the W that the phase reads, once each: see rft_layer.runs; in
                                                        * training once more on the way back */
} rft_model_cost;

/* ---- writing ---- */

#define RFT_QUANTIZE_NEAREST    1u /* round to nearest; without it scales of the least squared error are searched for */
#define RFT_QUANTIZE_EMBEDDINGS 2u /* the token embedding too, which a tied lm_head multiplies by */
#define RFT_QUANTIZE_AGAIN      4u /* weights that are quantised already too: their new error adds to the old one */

typedef struct rft_quantized { /* one tensor of the new file */
    uint32_t struct_size;
    const char *name; /* in that file; strings live until the call returns */
    const char *why;  /* why `to` is not the type that was asked for, "" where it is */
    const char *scheme; /* of `from`, as in rft_tensor */
    rft_type from, to;
    int64_t n, k, done;                /* rows, their length, and rows written so far */
    uint64_t bytes;                    /* exact storage */
    int64_t index, count;              /* of the file's tensors */
    double rel_rms, max_error, cosine; /* new values against old, once done = n: sqrt(sum e^2 / sum x^2), max |e|, angle */
} rft_quantized;

typedef struct rft_quantize_options {
    uint32_t struct_size;
    rft_type to;             /* one of rft_quantize_type */
    uint32_t flags, threads; /* RFT_QUANTIZE_*; 0 threads: as rft_ctx_options.threads */
    int64_t group_k;         /* of RFT_I4: 32, 64 or 128 weights under one scale; 0: 128 */
    const char *const *keep; /* fnmatch(3) patterns of names in the new file that stay as they are */
    uint32_t n_keep;
    /* After each piece of a tensor, at least once a tensor, in the caller's thread; not 0: stop, and no file is written. */
    int (*progress)(void *user, const rft_quantized *tensor);
    void *user;
} rft_quantize_options;

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
RFT_DEFINE_INIT(rft_model_info)
RFT_DEFINE_INIT(rft_tensor)
RFT_DEFINE_INIT(rft_layer)
RFT_DEFINE_INIT(rft_weight_parts)
RFT_DEFINE_INIT(rft_part)
RFT_DEFINE_INIT(rft_shard)
RFT_DEFINE_INIT(rft_exchange)
RFT_DEFINE_INIT(rft_model_cost)
RFT_DEFINE_INIT(rft_quantized)
RFT_DEFINE_INIT(rft_quantize_options)
#undef RFT_DEFINE_INIT
#undef RFT_ZERO

/* Opens a file, told apart by its first bytes, or a checkpoint by its folder (config.json, and model.safetensors or the files
 * that model.safetensors.index.json names), by that index, or by a .safetensors file with config.json beside it. Files that an
 * ONNX file names for its data are opened too, inside of its folder. RFT_E_IO: cannot
 * be read (native is errno); RFT_E_ARG: damaged; RFT_E_UNSUPPORTED: sound, but of an architecture, version or kind that is not
 * supported. */
RFT_API rft_status rft_model_open(const char *path, rft_model **out, rft_error *err);            /* [any] */
/* The same over bytes of one GGUF file, ONNX file with all of its data inside, or config.json that the caller keeps, 8-byte
 * aligned, until rft_model_free. */
RFT_API rft_status rft_model_open_memory(const void *bytes, size_t size, rft_model **out, rft_error *err); /* [any] */
RFT_API void rft_model_free(rft_model *model); /* NULL is allowed */                             /* [own] */

/* Each writes *info (tensor, layer, cost) up to the struct_size that it comes with. */
RFT_API rft_status rft_model_get_info(const rft_model *model, rft_model_info *info, rft_error *err); /* [any] */
RFT_API rft_status rft_model_get_tensor(const rft_model *model, int64_t index, rft_tensor *tensor, rft_error *err); /* [any] */
RFT_API int64_t rft_model_find_tensor(const rft_model *model, const char *name); /* -1: none */   /* [any] */

/* Reads "decode:B" (m = B), "prefill:BxT" (m = B*T, lm_head m = B), "verify:BxK", "offline:BxT" or "train:BxT" (m of all B*T
 * tokens, lm_head too). */
RFT_API rft_status rft_phase_parse(const char *text, rft_phase *out, rft_error *err);             /* [any] */

/* Rows come in the order of execution, such as attn_q attn_k attn_v attn_output ffn_up ffn_gate ffn_down lm_head, and where
 * the blocks differ in type or shape, one row for each kind, first block first. ffn_gate comes after ffn_up because its
 * epilogue silu(gate) * up needs it. */
RFT_API int64_t rft_model_layer_count(const rft_model *model); /* rows, 0 for NULL */             /* [any] */
RFT_API rft_status rft_model_get_layer(const rft_model *model, int64_t row, const rft_phase *phase, rft_layer *layer,
                                       rft_error *err);                                           /* [any] */
/* A row in one pass; all but RFT_PASS_FORWARD are of phase train. The epilogue of dgrad is "none", that of wgrad "add" with
 * beta = 1, for which y may be the operand. */
RFT_API rft_status rft_model_get_pass(const rft_model *model, int64_t row, const rft_phase *phase, rft_pass pass,
                                      rft_layer *layer, rft_error *err);                          /* [any] */
RFT_API rft_status rft_model_get_cost(const rft_model *model, const rft_phase *phase, rft_model_cost *cost,
                                      rft_error *err);                                            /* [any] */

/* A row on one rank. RFT_E_ARG: ranks out of range, or ep no multiple of tp; RFT_E_UNSUPPORTED: its role is not known, or
 * ep > 0 and there are no experts. The same of the next three. */
RFT_API rft_status rft_model_get_shard(const rft_model *model, int64_t row, const rft_phase *phase, const rft_ranks *ranks,
                                       rft_shard *shard, rft_error *err);                         /* [any] */
/* A row in one pass, as rft_model_get_pass has it. */
RFT_API rft_status rft_model_get_pass_shard(const rft_model *model, int64_t row, const rft_phase *phase, rft_pass pass,
                                            const rft_ranks *ranks, rft_shard *shard, rft_error *err); /* [any] */
/* Of ranks with ep > 0. */
RFT_API rft_status rft_model_get_exchange(const rft_model *model, rft_exchange_kind kind, const rft_phase *phase,
                                          const rft_ranks *ranks, rft_exchange *exchange, rft_error *err); /* [any] */
/* How much of the cache of keys and values the fullest rank holds: of its group's sequences that of the kv heads which its heads
 * read, all of it where it is latent. */
RFT_API rft_status rft_model_cache_share(const rft_model *model, const rft_phase *phase, const rft_ranks *ranks, double *share,
                                         rft_error *err);                                         /* [any] */

/* Parts by index; the count is 0 for NULL and for an unknown architecture. context: 0 .. 2^30, 0 in phases offline and train
 * and for encoders, which have no cache. Latent attention is taken in its absorbed form: keys and values are the latent ones. */
RFT_API int64_t rft_model_part_count(const rft_model *model);                                     /* [any] */
RFT_API rft_status rft_model_get_part(const rft_model *model, int64_t index, const rft_phase *phase, int64_t context,
                                      rft_part *part, rft_error *err);                            /* [any] */

/* Writes rows row0 .. row0+rows-1 of a tensor (a row is dims[0] elements; rows run over all other dims) as `to`
 * (RFT_F32, RFT_BF16 rounded to nearest even, or RFT_F16 where it is stored so) with `ld` elements from row to row, 0 meaning
 * dims[0]. Several threads may decode different rows of one tensor at once. Types that are only named are RFT_E_UNSUPPORTED. */
RFT_API rft_status rft_model_decode(const rft_model *model, int64_t tensor, int64_t row0, int64_t rows, rft_type to,
                                    void *dst, int64_t ld, rft_error *err);                       /* [any] */

/* How rft_weight_pack takes a tensor as it is stored: f32, f16, bf16 and GGUF blocks as they are, and weights that several stored
 * tensors make in an element type with scales: the codes of the file, in rows along k. RFT_E_UNSUPPORTED: it has no such form (a
 * GGUF type that is only named, bitsandbytes blocks that cross rows, act-order with groups of uneven sizes) or is a vector. */
RFT_API rft_status rft_model_describe_weight(const rft_model *model, int64_t tensor, rft_weight_desc *desc,
                                             rft_error *err);                                     /* [any] */
/* Writes the parts that the description has: q dense, scale and zero [batch][ceil(n / group_n)][ceil(k / group_k)], global_scale
 * [batch], g_idx [batch][k]. */
RFT_API rft_status rft_model_read_weight(const rft_model *model, int64_t tensor, const rft_weight_parts *parts,
                                         rft_error *err);                                         /* [any] */

/* The types that can be written, by index; 0 past the last. */
RFT_API rft_type rft_quantize_type(uint32_t index); /* [any] */
/* Writes the model as a GGUF file at `path`: the weights of its linear layers as o->to, all else as it is. Vectors of a
 * checkpoint become f32, as readers of GGUF expect; K that is no multiple of the type's block takes its fallback or stays. Keys
 * of a GGUF file are carried over, those of a checkpoint come from config.json (no tokenizer). A file at `path` is replaced once
 * the new one is whole and synchronised; on failure it is as before. A weight that is not finite or too large for the type is
 * RFT_E_ARG and named.
 * RFT_I4, RFT_I8 and RFT_E4M3, which GGUF lacks, make a folder at `path` from a checkpoint: config.json and model.safetensors
 * with the layers of all blocks as compressed-tensors has them (int4 in groups, int8 and FP8 with a scale a row). It must not be
 * there before, and is there only once it is whole. */
RFT_API rft_status rft_model_quantize(const rft_model *model, const char *path, const rft_quantize_options *o,
                                      rft_error *err); /* [any] */

#ifdef __cplusplus
}
#endif
#endif
