/* SPDX-License-Identifier: Apache-2.0
 *
 * hparams.h - the architectures whose linear layers are known, and the sizes that fix those layers.
 *
 * Rows stand in archs.c; sizes are filled by hparams_gguf.c and hparams_config.c, and used by layers.c. Invariant after
 * rft__hparams_check: every size is in 0..RFT_MAX_SIZE (layers 1..RFT_MAX_LAYERS, experts up to RFT_MAX_EXPERTS).
 */
#ifndef RFT_MODEL_HPARAMS_H
#define RFT_MODEL_HPARAMS_H

#include "gguf.h"
#include "quant_config.h"

#define RFT_MAX_SIZE    ((int64_t)1 << 22)
#define RFT_MAX_LAYERS  4096
#define RFT_MAX_EXPERTS 4096
#define RFT_MAX_WINDOW  ((int64_t)1 << 30)

typedef enum rft__extent { /* N or K of a product, as a rule over sizes; 0: the model lacks the product */
    RFT_EXT_HIDDEN,
    RFT_EXT_Q,        /* all heads */
    RFT_EXT_KV,       /* heads of keys, or of values */
    RFT_EXT_QKV,
    RFT_EXT_FFN,
    RFT_EXT_FFN_PAIR, /* gate and up */
    RFT_EXT_VOCAB,
    RFT_EXT_EXPERTS,
    RFT_EXT_EXPERT_FFN,
    RFT_EXT_EXPERT_PAIR,
    RFT_EXT_SHARED_FFN,
    RFT_EXT_SHARED_ONE, /* 1 where there is a shared expert */
    RFT_EXT_Q_RANK,     /* latent queries */
    RFT_EXT_Q_LATENT,   /* heads of queries, behind latent ones */
    RFT_EXT_Q_DIRECT,   /* the same where queries have no latent form */
    RFT_EXT_KV_LATENT,  /* latent keys and values, and the rotary key that heads share */
    RFT_EXT_KV_RANK,
    RFT_EXT_KV_HEADS,   /* keys and values of all heads from the latent ones */
    RFT_EXT_NOPE,       /* of one head: queries and keys without rotation */
    RFT_EXT_V_HEAD,     /* of one head: values */
    RFT_EXT_V,          /* values of all heads */
    RFT_EXT_SOURCE_FFN, /* of the encoder beside a decoder */
} rft__extent;

/* What stands behind a product and its bias. */
typedef enum rft__tail { RFT_TAIL_NONE, RFT_TAIL_ADD, RFT_TAIL_ACT, RFT_TAIL_ACT_MUL } rft__tail;
typedef enum rft__where { RFT_IN_BLOCKS, RFT_IN_DENSE, RFT_IN_SPARSE, RFT_IN_SOURCE, RFT_ONCE } rft__where;
/* Blocks whose tokens see the last positions alone, as config.json has a window. */
typedef enum rft__windows {
    RFT_WINDOWS_NONE,
    RFT_WINDOWS_ALL,
    RFT_WINDOWS_BETWEEN, /* all but each so many */
    RFT_WINDOWS_LATE,    /* from a block on, where a switch is on */
} rft__windows;
typedef enum rft__bias { RFT_BIAS_NONE, RFT_BIAS_QKV, RFT_BIAS_OUTPUT, RFT_BIAS_MLP, RFT_BIAS_ALWAYS } rft__bias;

typedef struct rft__product {
    const char *name;      /* public */
    const char *hf, *gguf; /* of its tensor in a block, without ".weight", NULL: such files lack it; `*` is an expert's number */
    const char *parts;     /* what the tensor joins, "" for one product */
    rft__extent n, k;
    rft__tail tail;
    rft__bias bias; /* as config.json has it; of tensors, it is there or not */
    rft__where where;
    bool in_out; /* a checkpoint has it as [in, out] */
    bool routed; /* one W an expert */
    bool heads;  /* one W a head */
    bool optional;      /* a GGUF file may lack it */
    const char *unless; /* a GGUF file lacks it where it has this tensor */
    bool source; /* its rows are positions of the source, in the phases that begin a text */
} rft__product;

typedef struct rft__group { /* products of a part of the block */
    const rft__product *list;
    size_t count;
} rft__group;

enum { RFT_ARCH_GROUPS = 5, RFT_HPARAM_KEYS = 32 };

typedef struct rft__arch {
    const char *name;   /* model_type in config.json; of files without experts general.architecture too */
    const char *gguf;   /* general.architecture of a GGUF file, NULL: it has none */
    const char *blocks, *embedding; /* in a checkpoint, behind its prefix */
    const char *source; /* blocks of the encoder beside the decoder, NULL: it has none */
    rft__group groups[RFT_ARCH_GROUPS];
    rft_epi_kind act;   /* where config.json does not say */
    bool tied;          /* where config.json does not say */
    bool moe, mla;
    bool qkv_bias;      /* always has biases behind q, k and v */
    bool qk_norm;       /* a norm of head_dim behind q and behind k: parameters, no product */
    bool permuted;      /* a GGUF file has the halves of each q and k head interleaved, row by row */
    bool convertible;   /* a checkpoint can be written as GGUF */
    bool sinks;         /* one parameter a head */
    bool router_bias;   /* one parameter an expert beside the router's product */
    bool encoder;       /* every token sees all of its text, and there is no cache */
    bool norm_bias;     /* norms have two vectors, else one */
    int norms, end_norms; /* parameters of a block's norms, and of those outside, in units of the hidden size */
    int source_norms, source_end_norms; /* the same of the encoder beside the decoder */
    bool positions;     /* a table of them; and of token types */
    int64_t heads, kv_heads, head_dim, vocab; /* where config.json does not say; 0: it must, or they follow from others */
    rft__windows windows;
    int64_t window, full_every; /* where config.json does not say: positions, and of RFT_WINDOWS_BETWEEN blocks that see all */
    int64_t ffn_times;  /* the same for the ffn size, in units of the hidden size */
    const char *nested; /* key of the object with the sizes, NULL: the root */
} rft__arch;

typedef struct rft__hparams {
    const rft__arch *arch;
    char name[128];
    char prefix[64]; /* of the keys of a GGUF file; of every file the name of an unknown architecture */
    int64_t hidden, layers, heads, kv_heads, head_dim, ffn, vocab, context;
    int64_t experts, used, expert_ffn, shared, shared_ffn, dense_first; /* of mixtures; shared: how many */
    int64_t q_rank, kv_rank, nope, rope, v_dim;                         /* of latent attention */
    int64_t types;                                                      /* token types that have an embedding */
    int64_t source_layers, source_heads, source_ffn, source; /* of the encoder beside the decoder; source: its positions */
    int64_t bands;                                           /* of a position of sound */
    int64_t window, windowed; /* positions that a token sees, itself among them, in so many blocks; 0: all, and none */
    int64_t sparse_step;                                                /* every so many blocks have experts; 1 is supported */
    const char *keys[RFT_HPARAM_KEYS]; /* of the file, or its tensor, of each size by its place behind `hidden`; NULL: it
                                        * follows from others */
    bool tied, qkv_bias, output_bias, mlp_bias;
    rft_epi_kind act;
    rft_type type; /* of the weights; config.json only */
} rft__hparams;

/* Of one of the sizes above. */
static inline const char **rft__hparams_key(rft__hparams *h, const int64_t *size) { return &h->keys[size - &h->hidden]; }

/* name: model_type, or with gguf general.architecture, where experts tell rows of one name apart. NULL: it has no row. */
const rft__arch *rft__arch_find(const char *name, bool gguf, bool moe);
/* Stands for an architecture without a row: nothing is known of it, and all sizes are 0. */
extern const rft__arch rft__arch_unknown;
static inline bool rft__hparams_unknown(const rft__hparams *h) { return h->arch == &rft__arch_unknown; }
rft_status rft__arch_refuse(const char *name, const char *why, rft_error *err);
/* Its products in the order of execution; NULL behind the last. */
const rft__product *rft__arch_product(const rft__arch *arch, size_t i);

int64_t rft__extent_of(const rft__hparams *h, rft__extent extent);
/* Blocks that hold a product, and whether one does; a number counts blocks of the decoder and of the encoder. */
int64_t rft__product_blocks(const rft__hparams *h, const rft__product *product);
bool rft__product_in(const rft__hparams *h, const rft__product *product, int64_t block);
/* Blocks with a window, by the rule of the architecture: each full_every-th sees all, or all before `first` do. */
int64_t rft__windowed_blocks(const rft__hparams *h, int64_t full_every, int64_t first);
int64_t rft__hparams_blocks(const rft__hparams *h); /* of the longer of the two */
/* The product that widens to the ffn size. */
const rft__product *rft__arch_up(const rft__arch *arch);

rft_status rft__hparams_from_gguf(const rft__gguf *gguf, rft__hparams *h, rft_error *err);
/* text: config.json. quant: how weights are quantised, NULL: such a model is refused. */
rft_status rft__hparams_from_config(const void *text, size_t size, rft__hparams *h, rft__quant_config *quant, rft_error *err);

/* Parameters beside the products and their biases: embeddings, norms. */
int64_t rft__hparams_others(const rft__hparams *h);

/* Defaults that follow from other sizes (kv_heads, head_dim; 0 where the file is silent), then every rule. */
rft_status rft__hparams_check(rft__hparams *h, rft_error *err);

#endif
