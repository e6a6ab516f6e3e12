/* SPDX-License-Identifier: Apache-2.0
 *
 * peer.h - other libraries as contenders, by dlopen of their C APIs: nothing of theirs is needed to build.
 * bench opens the peers once, prepares each for every row and calls run. One peer_kind a library; peers.c lists them.
 */
#ifndef PEER_H
#define PEER_H

#include "bench_weights.h"
#include "cli_parse.h"

#define PEER_NAME    32
#define PEER_VERSION 96

typedef struct peer_product { /* what a row asks of a peer; X and Y are dense, all data in the memory of ctx */
    rft_ctx *ctx;
    rft_type x, w, y;
    rft_order x_order, w_order;
    rft_compute compute;
    int64_t m, n, k;
    const void *x_data;
    const float *x_scale; /* of an x in 8 bits, x_groups a row */
    int64_t x_groups;
    void *y_data;
    weight_set *weights;
    const epilogue *epi;
    const rft_operand *operand;
} peer_product;

typedef struct peer peer;

typedef struct peer_kind peer_kind;
struct peer_kind {
    const char *name;
    bool gpu; /* it runs where a GPU's contexts run, else where the CPU's do */
    const char *const *files; /* library names to try, NULL at the end; NULL: it is none, and makes no y */
    /* Sets what the library reads from its environment while it loads; may be NULL. */
    void (*before_load)(const peer_kind *kind, const char *path);
    /* Looks its functions up in p->library and fills in p->version. */
    bool (*open)(peer *p, char why[CLI_WHY]);
    /* Readies one row, weights packed where the library can; false with the reason when it cannot do the row. */
    bool (*prepare)(peer *p, const peer_product *product, char why[CLI_WHY]);
    bool (*run)(peer *p, int64_t i, void *stream); /* on copy i of the weights; on a GPU enqueued on the stream */
    void (*finish)(peer *p);         /* undoes prepare */
    void (*close)(peer *p);
};

struct peer {
    const peer_kind *kind;
    void *library, *state;
    rft_ctx *ctx; /* of ours, on whose device the peer runs */
    uint32_t threads;
    int ordinal; /* of the device */
    char name[PEER_NAME], version[PEER_VERSION];
    double rounding; /* relative root-mean-square error of what the peer has rounded beforehand for the row it is ready for */
    char refusal[CLI_WHY]; /* reported last, so that each reason is said once */
};

typedef struct peer_list {
    peer *v;
    int n;
} peer_list;

/* Opens "openblas,onednn=/path/libdnnl.so.3"; a library that cannot be opened is reported and left out. An exit code. */
int peers_open(const char *list, rft_ctx *ctx, const char *device, uint32_t threads, peer_list *out);
void peers_close(peer_list *list);
/* dlopen of a path, or of the first of the kind's own files that is found. */
void *peer_load(const peer_kind *kind, const char *path);
/* A symbol under its plain name or one of the prefixes and suffixes that distributions add. */
void *peer_symbol(const peer *p, const char *name);
double peer_value(rft_type type, const void *p, int64_t i); /* element i of f32, bf16 or f16 ones */
/* Whether y agrees with `ours` as two correct products would: the relative root-mean-square difference. */
double peer_difference(rft_type type, const void *ours, const void *theirs, int64_t count);

extern const peer_kind peer_openblas, peer_blis, peer_mkl, peer_onednn, peer_onednn_u8, peer_onednn_plain, peer_cublaslt,
    peer_cublaslt_first, peer_ggml, peer_ggml_plain, peer_read;

#endif
