/* SPDX-License-Identifier: Apache-2.0
 *
 * onednn_state.h - what the files of the oneDNN peer share: one open library and the row that it is ready for.
 */
#ifndef PEERS_ONEDNN_STATE_H
#define PEERS_ONEDNN_STATE_H

#include "peers/onednn_api.h"
#include "peers/peer.h"

#define DNN_MOST_ARGS (8 + RFT_MAX_OPERANDS) /* x, y, its scale and zero, parts of W, operands */

/* A part of each copy of W: the codes or values, their scales, their zero points. All copies are alike, so one is made and the
 * others are bytes of it. */
typedef struct dnn_part {
    void *md;     /* its own, but that of the weights belongs to the primitive's descriptor */
    void *data;   /* of one copy; NULL: the weights, which are reordered in place */
    size_t bytes; /* 0: there is no such part */
    size_t at;    /* in a copy */
    int arg;
    void **memory; /* a memory object a copy */
} dnn_part;

enum { DNN_W, DNN_SCALES, DNN_ZEROS, DNN_PARTS };

typedef struct dnn_state {
    dnn_api f;
    void *engine, *stream;
    peer_product product;
    bool x_is_u8;      /* in 8 bits: u8 with the zero point 128, else s8 */
    int x_type, w_type; /* as executed */
    int lead; /* dimensions of 1 in front of all: its kernels then take a number a row in a post-op, else its reference alone */
    const void *x_data;
    void *src_md, *any_md, *raw_md, *dst_md, *attr, *post_ops, *pd, *reorder_pd, *primitive;
    dnn_arg arg[DNN_MOST_ARGS]; /* those of the parts of W stand behind them in a run */
    int n_arg, n_post_op;
    dnn_part part[DNN_PARTS];
    char *copies;
    size_t stride, total;
    int64_t n_copy;
    uint8_t *x8; /* x rounded to 8 bits, in its own order, or NULL */
    float x_scale;
    int32_t x_zero;
} dnn_state;

/* 0: oneDNN has no such type. */
int dnn_type(rft_type type);
bool dnn_make_md(dnn_state *s, void **md, int type, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride);
bool dnn_add_arg(dnn_state *s, int arg, const void *md, void *data);

/* Sets what a W of codes needs in the attributes, and makes its scales and zero points as oneDNN orders them. */
bool dnn_codes_make(dnn_state *s, char why[CLI_WHY]);
/* Codes multiply what is in 8 bits; else they become floats. */
bool dnn_in_8_bits(const dnn_state *s);
/* Takes x in 8 bits as it is given, whose scales are a post-op, or rounds it to them. */
bool dnn_x_make(peer *p, dnn_state *s, char why[CLI_WHY]);
void dnn_codes_free(dnn_state *s);

#endif
