/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx_quant.c - binds codes, scales and zero points of ONNX. See onnx_quant.h.
 *
 * A weight is (code - zero) * scale, as of the other integer schemes (import_int.c); here codes are bytes or nibbles, lower one
 * first, in rows along k or along n. zero_offset of an import is half the range where they are signed: what makes them unsigned.
 */
#include "onnx_quant.h"

#include "base/error.h"
#include "base/type.h"

#include <inttypes.h>
#include <stdio.h>

enum { CODES = RFT_PART_CODES, SCALES = RFT_PART_SCALES, ZEROS };

/* ---- values ---- */

/* Value i of `bits` (1 to 8, a divisor of 8) in bytes, lowest bits first, from a byte on. */
static unsigned packed(const rft__tensor *t, int64_t first, int64_t i, int64_t bits) {
    const int64_t at = i * bits;
    return (unsigned)t->data[first + at / 8] >> at % 8 & ((1u << bits) - 1);
}

static unsigned code_k_inner(const rft__import *im, int64_t row, int64_t k) {
    return packed(im->part[CODES], 0, row * im->k + k, im->bits) ^ (unsigned)im->zero_offset;
}

static unsigned code_n_inner(const rft__import *im, int64_t row, int64_t k) {
    return packed(im->part[CODES], 0, k * im->n + row, im->bits) ^ (unsigned)im->zero_offset;
}

static int scaled_zero(const rft__import *im, int64_t row, int64_t group) {
    const int64_t i = row * im->scale_n + group * im->scale_k;
    return im->part[ZEROS] ? (int)(packed(im->part[ZEROS], 0, i, im->bits) ^ (unsigned)im->zero_offset) : im->zero_offset;
}

/* Bytes that the codes of a block take; the last one of a row is padded. */
static int64_t block_bytes(const rft__import *im) { return im->group_k * im->bits / 8; }

static unsigned block_code(const rft__import *im, int64_t row, int64_t k) {
    const int64_t group = k / im->group_k;
    return packed(im->part[CODES], (row * im->groups + group) * block_bytes(im), k % im->group_k, im->bits);
}

static int block_zero(const rft__import *im, int64_t row, int64_t group) {
    return (int)packed(im->part[ZEROS], row * rft__ceil_div(im->groups * im->bits, 8), group, im->bits);
}

/* ---- binding ---- */

static int64_t elements(const rft__tensor *t) { return t->rows * t->dims[0]; }

static bool is_float(const rft__tensor *t) { return rft__type_is_float(t->format->type); }

/* Its parts are copies, as the tensor of the codes becomes the whole weight. NULL: one of them already did. */
static rft__onnx_weight *begin(rft__onnx *o, const rft__onnx_value *v) {
    rft__onnx_weight *w = &o->weights[o->n_weights];
    const int64_t from[RFT_ONNX_PARTS] = {v->tensor, v->scale, v->zero};
    if (o->n_weights == o->weights_room) {
        return NULL;
    }
    *w = (rft__onnx_weight){0};
    for (int i = 0; i < RFT_ONNX_PARTS; i++) {
        if (from[i] >= 0 && o->tensors.list[from[i]].import) {
            return NULL;
        }
        if (from[i] >= 0) {
            w->parts[i] = o->tensors.list[from[i]];
            w->import.part[i] = &w->parts[i];
        }
    }
    return w;
}

static void finish(rft__onnx *o, const rft__onnx_value *v, rft__onnx_weight *w, const char *scheme, bool blocks) {
    rft__import *im = &w->import;
    rft__tensor *t = &o->tensors.list[v->tensor];
    const bool as_signed = im->zero_offset != 0;
    char group[24] = "";
    if (blocks && im->groups > 1) {
        snprintf(group, sizeof group, " g%" PRId64, im->group_k);
    }
    const char *kind = as_signed || !im->zero_at ? "int" : "uint";
    snprintf(im->text, sizeof im->text, "%s %s%d%s", scheme, kind, (int)im->bits, group);
    rft__import_finish_ints(im, as_signed, t);
    t->import = im;
    t->data = NULL;
    t->bytes = 0;
    for (int i = 0; i < RFT_ONNX_PARTS; i++) {
        t->bytes += im->part[i] ? im->part[i]->bytes : 0;
    }
    o->n_weights++;
}

/* ---- MatMulNBits ---- */

static rft_status check_blocks(const rft__onnx_weight *w, const rft__onnx_node *n, rft_error *err) {
    const rft__import *im = &w->import;
    const rft__tensor *codes = &w->parts[CODES], *scales = im->part[SCALES], *zeros = im->part[ZEROS];
    int64_t scale_count = 0, code_bytes = 0;
    const bool bits = im->bits == 2 || im->bits == 4 || im->bits == 8;
    const bool sizes = im->n >= 1 && im->k >= 1 && im->n <= INT32_MAX && im->k <= INT32_MAX && im->group_k >= 8 &&
                       im->group_k % 8 == 0 && im->group_k <= INT32_MAX;
    if (!bits || !sizes || rft__mul_overflows(im->n, im->groups, &scale_count) ||
        rft__mul_overflows(scale_count, block_bytes(im), &code_bytes)) {
        RFT_FAIL(err, RFT_E_ARG,
                 "MatMulNBits of '%.80s': N = %" PRId64 ", K = %" PRId64 ", %" PRId64 " bits in blocks of %" PRId64
                 " are no weight: 2, 4 or 8 bits, blocks of a multiple of 8", codes->name, n->n, n->k, im->bits, n->block_size);
    }
    const bool zeros_fit = !zeros || (zeros->format->type == RFT_U8 &&
                                      zeros->bytes == im->n * rft__ceil_div(im->groups * im->bits, 8));
    if (codes->format->type != RFT_U8 || codes->bytes != code_bytes || !scales || !is_float(scales) ||
        elements(scales) != scale_count || !zeros_fit) {
        RFT_FAIL(err, zeros && is_float(zeros) ? RFT_E_UNSUPPORTED : RFT_E_ARG,
                 "MatMulNBits of '%.80s': %" PRId64 " blocks of %" PRId64 " demand %" PRId64
                 " u8 codes, as many scales as blocks and packed zero points or none",
                 codes->name, scale_count, im->group_k, code_bytes);
    }
    return RFT_OK;
}

rft_status rft__onnx_bind_blocks(rft__onnx *o, const rft__onnx_node *n, const rft__onnx_value *v, rft_error *err) {
    rft__onnx_weight *w = begin(o, v);
    if (!w) {
        return RFT_OK;
    }
    if (n->n_inputs > 4 && n->inputs[4].size > 0) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "MatMulNBits of '%.80s' has an order of groups (g_idx), which is not read",
                 w->parts[CODES].name);
    }
    rft__import *im = &w->import;
    im->n = n->n;
    im->k = n->k;
    im->bits = n->bits ? n->bits : 4;
    im->group_k = n->block_size;
    im->groups = im->group_k > 0 && im->k > 0 ? rft__ceil_div(im->k, im->group_k) : 0;
    im->scale_n = im->groups;
    im->scale_k = 1;
    im->code = block_code;
    im->zero_at = im->part[ZEROS] ? block_zero : NULL;
    RFT_TRY(check_blocks(w, n, err));
    finish(o, v, w, "nbits", true);
    return RFT_OK;
}

/* ---- matrices with scales ---- */

/* Where scales lie; false: in a way that is not read. */
static bool place_scales(rft__import *im, const rft__onnx_value *v, bool k_inner) {
    const rft__tensor *codes = im->part[CODES], *scales = im->part[SCALES];
    const int64_t count = elements(scales), axis = v->axis < 0 ? v->axis + 2 : v->axis;
    const bool inner = (axis == 1) != v->scaled_turned, along_k = inner == k_inner; /* the axis, in what is stored */
    im->group_k = im->k;
    im->groups = 1;
    if (count == 1) {
        return true;
    }
    if (v->block == 0) {
        if (along_k) {
            im->group_k = 1;
            im->groups = im->k;
        }
        *(along_k ? &im->scale_k : &im->scale_n) = 1;
        return count == (along_k ? im->k : im->n);
    }
    im->group_k = rft__min(v->block, im->k);
    im->groups = rft__ceil_div(im->k, im->group_k);
    im->scale_n = k_inner ? im->groups : 1;
    im->scale_k = k_inner ? 1 : im->n;
    return v->block > 0 && along_k && !v->scaled_turned && scales->n_dims == 2 &&
           scales->dims[0] == (k_inner ? im->groups : codes->dims[0]) &&
           scales->dims[1] == (k_inner ? codes->dims[1] : im->groups);
}

static int64_t bits_of(const rft__tensor *t) {
    const rft_type type = t->format->type;
    return type == RFT_I8 || type == RFT_U8 ? 8 : type == RFT_I4 || type == RFT_U4 ? 4 : 0;
}

void rft__onnx_bind_scaled(rft__onnx *o, const rft__onnx_value *v, bool k_inner) {
    rft__onnx_weight *w = begin(o, v);
    if (!w || v->scale < 0 || w->parts[CODES].n_dims != 2 || bits_of(&w->parts[CODES]) == 0 || !is_float(&w->parts[SCALES])) {
        return;
    }
    rft__import *im = &w->import;
    const rft__tensor *codes = &w->parts[CODES], *zeros = im->part[ZEROS];
    const rft_type type = codes->format->type;
    im->bits = bits_of(codes);
    im->n = codes->dims[k_inner ? 1 : 0];
    im->k = codes->dims[k_inner ? 0 : 1];
    im->zero_offset = type == RFT_I8 || type == RFT_I4 ? 1 << (im->bits - 1) : 0;
    im->code = k_inner ? code_k_inner : code_n_inner;
    im->zero_at = zeros || im->zero_offset == 0 ? scaled_zero : NULL;
    const bool zeros_fit = !zeros || (zeros->format->type == type && elements(zeros) == elements(&w->parts[SCALES]));
    if (place_scales(im, v, k_inner) && zeros_fit) {
        finish(o, v, w, "onnx", v->block > 0);
    }
}
