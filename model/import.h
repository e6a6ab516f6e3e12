/* SPDX-License-Identifier: Apache-2.0
 *
 * import.h - weights that a file stores as several tensors (codes, scales, zero points, …) as one tensor each, which is decoded,
 * or handed on in low-bit form (native.c).
 *
 * Called by model.c, and by onnx_quant.c, which fills imports of its own. One row of imports.def is one way that a checkpoint
 * stores; its bind function proves every type, shape and index that its decode function relies on, so that decoding cannot fail.
 * Facts: docs/formats/quantised.md.
 */
#ifndef RFT_MODEL_IMPORT_H
#define RFT_MODEL_IMPORT_H

#include "quant_config.h"
#include "safetensors.h"

enum { RFT_IMPORT_PARTS = 6, RFT_PART_CODES = 0, RFT_PART_SCALES = 1 };

typedef struct rft__import rft__import;

/* Writes elements k0 .. k0+n-1 of a row. */
typedef void rft__decode_part(const rft__import *import, int64_t row, int64_t k0, int64_t n, float *dst);

struct rft__import {
    char text[32]; /* the public name of the scheme, such as "gptq 4-bit g128" */
    rft__decode_part *decode;
    const rft__tensor *part[RFT_IMPORT_PARTS]; /* what each scheme's file says */
    int64_t n, k;                              /* rows and their length */
    int64_t bits, group_n, group_k, groups;    /* groups: along k */
    int64_t per_word;                          /* codes of a word of 32 bits, the rest padding; 0: no padding between words */
    int64_t nested;                            /* scales under one scale of theirs; 0: they are plain */
    int zero_offset;                           /* of gptq added to a stored zero point, of ONNX half the range of signed codes */
    float factor;                              /* what all scales are multiplied or divided by, or what is added to them */
    const rft__tensor *index;                  /* of act-order, or NULL */
    /* As rft_weight_pack takes it. elem 0: it does not, and the weight is decoded. */
    rft_type elem, scale, zero;
    uint32_t flags;                            /* RFT_WEIGHT_GLOBAL_* */
    int bias;                                  /* what codes and zero points are stored higher than those of elem */
    int64_t scale_n, scale_k;                  /* steps between stored scales along rows of them and groups */
    unsigned (*code)(const rft__import *import, int64_t row, int64_t k);
    int (*zero_at)(const rft__import *import, int64_t row, int64_t group);   /* NULL: bias everywhere */
    float (*scale_at)(const rft__import *import, int64_t row, int64_t group); /* NULL: scales as they are stored */
};

typedef struct rft__binder { /* what a bind function works on */
    const rft__tensors *stored;
    const rft__quant_config *config;
    const rft__tensor *head; /* the tensor that begins a weight */
    const char *prefix;      /* its name without the suffix */
    bool *taken;             /* of each stored tensor: is it a part? */
    rft_error *err;
} rft__binder;

/* Fills the import and the shape and type of the new tensor. */
typedef rft_status rft__bind(const rft__binder *b, rft__import *import, rft__tensor *out);

/* ---- for bind functions ---- */

/* The tensor `prefix + suffix`, which becomes a part; NULL: there is none. */
const rft__tensor *rft__bind_optional(const rft__binder *b, const char *suffix);
/* It must be there, of one of the types (ended by 0) and as many rows and columns (dims[0]). */
rft_status rft__bind_matrix(const rft__binder *b, const char *suffix, const rft_type *types, int64_t rows, int64_t columns,
                            const rft__tensor **out);
rft_status rft__bind_check(const rft__binder *b, const rft__tensor *t, const rft_type *types, int64_t rows, int64_t columns);
/* The group of each k, or NULL where it is absent, unset, or what the place says anyway. */
rft_status rft__bind_index(const rft__binder *b, const char *suffix, const rft__import *import, const rft__tensor **out);
/* The new tensor: n rows of k, of this type. */
void rft__bind_shape(rft__tensor *out, rft_type type, int64_t n, int64_t k);

/* Of integers, once codes, scales and zero points are known: the rest of the import, and the new tensor. as_signed: zero points
 * are numbers about half the range too. */
void rft__import_finish_ints(rft__import *import, bool as_signed, rft__tensor *out);

extern const rft_type rft__import_floats[], rft__import_words[], rft__import_bytes[];

/* ---- for decode functions ---- */

/* Element i of a tensor of a type with a decoder. */
float rft__import_value(const rft__tensor *t, int64_t i);
/* The 32-bit word at index i. */
uint32_t rft__import_word(const rft__tensor *t, int64_t i);
/* Value `index` of `bits` each, lowest bits first, in words that lie `stride` apart from `first` on. */
unsigned rft__import_bits(const rft__tensor *t, int64_t first, int64_t stride, int64_t index, int64_t bits);
/* The group of element k: by the act-order index, or by its place. */
int64_t rft__import_group(const rft__import *import, const rft__tensor *index, int64_t k);

/* ---- the low-bit form ---- */

/* RFT_E_UNSUPPORTED: there is none. t: the new tensor of this import. */
rft_status rft__import_describe(const rft__allocator *a, const rft__tensor *t, rft_weight_desc *desc, rft_error *err);
/* Writes what the description has. */
void rft__import_read(const rft__import *import, const rft_weight_desc *desc, const rft_weight_parts *parts);

/* ---- the whole ---- */

typedef struct rft__imported {
    rft__tensors tensors; /* whole weights, and all that was plain before */
    rft__import *imports;
    size_t room;
} rft__imported;

rft_status rft__import_all(const rft__allocator *a, const rft__tensors *stored, const rft__quant_config *config,
                           rft__imported *out, rft_error *err);
void rft__import_free(const rft__allocator *a, rft__imported *imported);

#define RFT_IMPORT(method, head, companion, type, tail, scheme) rft__bind rft__bind_##scheme;
#include "imports.def"
#undef RFT_IMPORT

#endif
