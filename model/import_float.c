/* SPDX-License-Identifier: Apache-2.0
 *
 * import_float.c - one code a weight, or four bits of E2M1 or a table: scaled FP8 and int8, MXFP4, NVFP4, bitsandbytes. See
 * import.h.
 *
 * Parts: codes, scales, and what each scheme adds. A weight is code * scale, with scales of scales multiplied first.
 */
#include "import.h"

#include "base/error.h"
#include "json_read.h"

#include "format/decode/decode_scalar.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CODES = RFT_PART_CODES, SCALES = RFT_PART_SCALES, TABLE, OUTER_SCALES, OUTER_TABLE };

/* ---- a code of 8 bits and a scale for group_n x group_k of them ---- */

static unsigned byte_code(const rft__import *im, int64_t row, int64_t k) { return im->part[CODES]->data[row * im->k + k]; }

static void decode_scaled(const rft__import *im, int64_t row, int64_t k0, int64_t n, float *dst) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t scale = row / im->group_n * im->groups + (k0 + i) / im->group_k;
        dst[i] = rft__import_value(im->part[CODES], row * im->k + k0 + i) * rft__import_value(im->part[SCALES], scale);
    }
}

/* Which part of the weight one scale covers: all, a row, part of a row, or a block; 0 where the shape fits none. */
static void find_groups(const rft__binder *b, const rft__tensor *scales, rft__import *im) {
    const int64_t count = scales->rows * scales->dims[0];
    int64_t block_n = b->config->block_n, block_k = b->config->block_k;
    im->group_n = im->group_k = 0;
    if (count == 1) {
        im->group_n = im->n, im->group_k = im->k;
        return;
    }
    if (count == im->n && (scales->dims[0] == 1 || scales->n_dims == 1)) {
        im->group_n = 1, im->group_k = im->k;
        return;
    }
    for (int i = 0; i < b->config->n_groups && im->group_n == 0; i++) {
        const rft__quant_group *g = &b->config->groups[i];
        const bool rows = g->group_k > 0 && scales->rows == im->n && scales->dims[0] == rft__ceil_div(im->k, g->group_k);
        im->group_n = rows ? 1 : 0;
        im->group_k = rows ? g->group_k : 0;
        block_n = g->block_n ? g->block_n : block_n;
        block_k = g->block_k ? g->block_k : block_k;
    }
    if (im->group_n == 0 && scales->rows == rft__ceil_div(im->n, block_n) && scales->dims[0] == rft__ceil_div(im->k, block_k)) {
        im->group_n = block_n, im->group_k = block_k;
    }
}

static void describe_scaled(rft__import *im) {
    const char *code = im->part[CODES]->format->type == RFT_I8 ? "int8" : "fp8";
    if (im->group_n == im->n && im->group_k == im->k) {
        snprintf(im->text, sizeof im->text, "%s a tensor", code);
    } else if (im->group_k == im->k) {
        snprintf(im->text, sizeof im->text, "%s a row", code);
    } else {
        snprintf(im->text, sizeof im->text, "%s %" PRId64 "x%" PRId64, code, im->group_n, im->group_k);
    }
}

/* Zero points may be written where all are 0. Of two values a byte none is read alone. */
static rft_status check_no_zeros(const rft__binder *b, const rft__tensor *zeros) {
    if (zeros && (!zeros->format->decode_blocks || zeros->format->block_elements != 1)) {
        RFT_FAIL(b->err, RFT_E_UNSUPPORTED, "tensor '%.120s' is %s, which its scheme does not store", zeros->name,
                 zeros->format->name);
    }
    for (int64_t i = 0; zeros && i < zeros->rows * zeros->dims[0]; i++) {
        if (rft__import_value(zeros, i) != 0) {
            RFT_FAIL(b->err, RFT_E_UNSUPPORTED, "tensor '%.120s': zero points of 8-bit weights are not read", zeros->name);
        }
    }
    return RFT_OK;
}

static rft_status bind_scaled(const rft__binder *b, const char *suffix, rft__import *im, rft__tensor *out) {
    const rft__tensor *scales = rft__bind_optional(b, suffix), *zeros = rft__bind_optional(b, ".weight_zero_point");
    rft__bind_optional(b, ".input_scale"); /* of activations: nothing here multiplies by it */
    im->n = b->head->rows;
    im->k = b->head->dims[0];
    find_groups(b, scales, im);
    if (im->group_n == 0) {
        RFT_FAIL(b->err, RFT_E_ARG,
                 "tensor '%.120s' of %" PRId64 " x %" PRId64 " scales fits no part of %" PRId64 " x %" PRId64 " weights",
                 scales->name, scales->rows, scales->dims[0], im->n, im->k);
    }
    im->groups = rft__ceil_div(im->k, im->group_k);
    RFT_TRY(rft__bind_check(b, scales, rft__import_floats, scales->rows, scales->dims[0]));
    RFT_TRY(check_no_zeros(b, zeros));
    im->part[CODES] = b->head;
    im->part[SCALES] = scales;
    im->decode = decode_scaled;
    im->code = byte_code;
    im->elem = b->head->format->type;
    im->scale = scales->format->type;
    im->scale_n = im->groups;
    im->scale_k = 1;
    describe_scaled(im);
    rft__bind_shape(out, b->head->format->type, im->n, im->k);
    return RFT_OK;
}

rft_status rft__bind_scaled(const rft__binder *b, rft__import *im, rft__tensor *out) {
    return bind_scaled(b, ".weight_scale", im, out);
}

/* The inverse in the name is that of the scale by which weights were divided: one multiplies by it. */
rft_status rft__bind_scaled_inverse(const rft__binder *b, rft__import *im, rft__tensor *out) {
    return bind_scaled(b, ".weight_scale_inv", im, out);
}

/* ---- E2M1, two a byte, the first in the low nibble ---- */

static float e2m1_at(const rft__import *im, int64_t i) {
    return rft__e2m1_f32(rft__nibble(im->part[CODES]->data[i / 2], (unsigned)(i & 1)));
}

static unsigned e2m1_code(const rft__import *im, int64_t row, int64_t k) {
    return rft__nibble(im->part[CODES]->data[(row * im->k + k) / 2], (unsigned)(k & 1));
}

static void decode_mxfp4(const rft__import *im, int64_t row, int64_t k0, int64_t n, float *dst) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = row * im->k + k0 + i;
        dst[i] = e2m1_at(im, at) * rft__e8m0_f32(im->part[SCALES]->data[at / 32]);
    }
}

/* Codes with a scale of 8 bits for a few k. */
static void set_e2m1(const rft__binder *b, rft_type scale, int64_t group_k, rft__import *im) {
    im->part[CODES] = b->head;
    im->bits = 4;
    im->group_n = 1;
    im->group_k = group_k;
    im->groups = im->k / group_k;
    im->elem = RFT_E2M1;
    im->scale = scale;
    im->scale_n = im->groups;
    im->scale_k = 1;
    im->code = e2m1_code;
}

static void finish_mxfp4(const rft__binder *b, rft__import *im, rft__tensor *out) {
    set_e2m1(b, RFT_E8M0, 32, im);
    im->decode = decode_mxfp4;
    snprintf(im->text, sizeof im->text, "mxfp4");
    rft__bind_shape(out, RFT_E2M1, im->n, im->k);
}

/* Of rows of bytes that hold two codes each, in groups of so many bytes. */
static rft_status set_sizes(const rft__binder *b, int group_bytes, rft__import *im) {
    if (b->head->dims[0] % group_bytes != 0) {
        RFT_FAIL(b->err, RFT_E_ARG, "tensor '%.120s' has rows of %" PRId64 " bytes, no multiple of %d", b->head->name,
                 b->head->dims[0], group_bytes);
    }
    im->n = b->head->rows;
    im->k = 2 * b->head->dims[0];
    return RFT_OK;
}

rft_status rft__bind_mxfp4_rows(const rft__binder *b, rft__import *im, rft__tensor *out) {
    static const rft_type scale_types[] = {RFT_U8, RFT_E8M0, (rft_type)0};
    RFT_TRY(set_sizes(b, 16, im));
    RFT_TRY(rft__bind_matrix(b, ".weight_scale", scale_types, im->n, im->k / 32, &im->part[SCALES]));
    finish_mxfp4(b, im, out);
    return RFT_OK;
}

/* Blocks of 16 bytes: [experts][rows][blocks][16], scales [experts][rows][blocks]. */
rft_status rft__bind_mxfp4_blocks(const rft__binder *b, rft__import *im, rft__tensor *out) {
    const rft__tensor *h = b->head;
    if (h->n_dims < 3 || h->dims[0] != 16) {
        RFT_FAIL(b->err, RFT_E_ARG,
                 "tensor '%.120s' has %" PRIu32 " dimensions, the last of %" PRId64 ": blocks of 16 are expected", h->name,
                 h->n_dims, h->dims[0]);
    }
    im->k = 32 * h->dims[1];
    im->n = h->dims[2] * h->dims[3];
    RFT_TRY(rft__bind_matrix(b, "_scales", rft__import_bytes, im->n, h->dims[1], &im->part[SCALES]));
    finish_mxfp4(b, im, out);
    out->n_dims = h->n_dims - 1;
    out->dims[1] = h->dims[2];
    out->dims[2] = h->dims[3];
    return RFT_OK;
}

static float e4m3_scale(const rft__import *im, int64_t at) { return rft__e4m3_f32(im->part[SCALES]->data[at / 16]); }

static void decode_multiplied(const rft__import *im, int64_t row, int64_t k0, int64_t n, float *dst) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = row * im->k + k0 + i;
        dst[i] = e2m1_at(im, at) * (e4m3_scale(im, at) * im->factor);
    }
}

static void decode_divided(const rft__import *im, int64_t row, int64_t k0, int64_t n, float *dst) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = row * im->k + k0 + i;
        dst[i] = e2m1_at(im, at) * (e4m3_scale(im, at) / im->factor);
    }
}

/* global: the suffix of the scale of all. */
static rft_status bind_nvfp4(const rft__binder *b, const char *global, rft__import *im, rft__tensor *out) {
    static const rft_type e4m3[] = {RFT_E4M3, (rft_type)0}, f32[] = {RFT_F32, (rft_type)0};
    const rft__tensor *whole;
    RFT_TRY(set_sizes(b, 8, im));
    RFT_TRY(rft__bind_matrix(b, ".weight_scale", e4m3, im->n, im->k / 16, &im->part[SCALES]));
    RFT_TRY(rft__bind_matrix(b, global, f32, 1, 1, &whole));
    rft__bind_optional(b, ".input_scale");
    rft__bind_optional(b, ".input_global_scale");
    set_e2m1(b, RFT_E4M3, 16, im);
    im->part[TABLE] = whole;
    im->factor = rft__import_value(whole, 0);
    snprintf(im->text, sizeof im->text, "nvfp4");
    rft__bind_shape(out, RFT_E2M1, im->n, im->k);
    return RFT_OK;
}

/* 448 * 6 over the largest weight, by which all were multiplied. */
rft_status rft__bind_nvfp4(const rft__binder *b, rft__import *im, rft__tensor *out) {
    im->decode = decode_divided;
    im->flags = RFT_WEIGHT_GLOBAL_OVER;
    return bind_nvfp4(b, ".weight_global_scale", im, out);
}

/* The same bits, but the scale is what one multiplies by. */
rft_status rft__bind_nvfp4_second(const rft__binder *b, rft__import *im, rft__tensor *out) {
    im->decode = decode_multiplied;
    im->flags = RFT_WEIGHT_GLOBAL_TIMES;
    return bind_nvfp4(b, ".weight_scale_2", im, out);
}

/* ---- bitsandbytes: a table of 16 values, flat, the first weight of a byte in its high nibble ---- */

static float bnb_scale(const rft__import *im, int64_t block) {
    const rft__tensor *scales = im->part[SCALES];
    if (im->nested == 0) {
        return rft__import_value(scales, block);
    }
    return rft__import_value(im->part[OUTER_TABLE], scales->data[block]) *
               rft__import_value(im->part[OUTER_SCALES], block / im->nested) +
           im->factor;
}

static void decode_bnb(const rft__import *im, int64_t row, int64_t k0, int64_t n, float *dst) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = row * im->k + k0 + i;
        const unsigned code = rft__nibble(im->part[CODES]->data[at / 2], at % 2 == 0);
        dst[i] = rft__import_value(im->part[TABLE], code) * bnb_scale(im, at / im->group_k);
    }
}

static unsigned bnb_code(const rft__import *im, int64_t row, int64_t k) {
    const int64_t at = row * im->k + k;
    return rft__nibble(im->part[CODES]->data[at / 2], at % 2 == 0);
}

static float bnb_scale_at(const rft__import *im, int64_t row, int64_t group) {
    return bnb_scale(im, (row * im->k) / im->group_k + group);
}

/* The low-bit form has the tables that the library writes, and scales that no two rows share. */
static void set_bnb(rft__import *im, rft_type type) {
    const rft__format *format = rft__format_find(type);
    bool known = im->k % im->group_k == 0;
    for (unsigned i = 0; i < 16; i++) {
        const unsigned char code[1] = {(unsigned char)i};
        float pair[2];
        format->decode_blocks(code, 1, pair);
        known = known && pair[0] == rft__import_value(im->part[TABLE], i);
    }
    im->code = bnb_code;
    im->elem = known ? type : (rft_type)0;
    im->scale = RFT_F32;
    im->scale_at = bnb_scale_at;
    im->group_n = 1;
}

/* What quant_state, a JSON text in a tensor of bytes, says of shape and blocks. */
static rft_status read_state(const rft__binder *b, const json_t *state, rft__import *im) {
    const json_t *shape = json_object_get(state, "shape");
    double offset = 0;
    int64_t nested = 256;
    im->group_k = 64;
    RFT_TRY(rft__json_size(state, "blocksize", false, &im->group_k, b->err));
    RFT_TRY(rft__json_size(state, "nested_blocksize", false, &nested, b->err));
    RFT_TRY(rft__json_number(state, "nested_offset", &offset, b->err));
    im->n = json_integer_value(json_array_get(shape, 0));
    im->k = json_integer_value(json_array_get(shape, 1));
    im->factor = (float)offset;
    im->nested = nested;
    const int64_t limit = INT32_MAX;
    if (json_array_size(shape) != 2 || im->n < 1 || im->k < 1 || im->n > limit || im->k > limit || im->group_k < 1 ||
        im->group_k > limit || nested < 1 || nested > limit) {
        RFT_FAIL(b->err, RFT_E_ARG, "the quant_state of '%.120s' has no shape of two sizes, or a block size of 0", b->prefix);
    }
    return RFT_OK;
}

static rft_status bind_state(const rft__binder *b, const char *kind, const rft__tensor *t, rft__import *im) {
    json_t *state;
    if (t->format->type != RFT_U8) {
        RFT_FAIL(b->err, RFT_E_ARG, "tensor '%.120s' is %s, not bytes of JSON", t->name, t->format->name);
    }
    RFT_TRY(rft__json_load("quant_state", t->data, (size_t)t->bytes, 65536, &state, b->err));
    const rft_status status = read_state(b, state, im);
    json_decref(state);
    snprintf(im->text, sizeof im->text, "%s %" PRId64, kind, im->group_k);
    return status;
}

/* Scales that are codes of 8 bits themselves, under scales and a table of their own. */
static rft_status bind_nested(const rft__binder *b, int64_t blocks, rft__import *im) {
    static const rft_type f32[] = {RFT_F32, (rft_type)0};
    if (im->part[SCALES]->format->type != RFT_U8) {
        im->nested = 0;
        return rft__bind_check(b, im->part[SCALES], f32, 1, blocks);
    }
    RFT_TRY(rft__bind_check(b, im->part[SCALES], rft__import_bytes, 1, blocks));
    RFT_TRY(rft__bind_matrix(b, ".weight.nested_absmax", f32, 1, rft__ceil_div(blocks, im->nested), &im->part[OUTER_SCALES]));
    RFT_TRY(rft__bind_matrix(b, ".weight.nested_quant_map", f32, 1, 256, &im->part[OUTER_TABLE]));
    strncat(im->text, " nested", sizeof im->text - strlen(im->text) - 1);
    return RFT_OK;
}

rft_status rft__bind_bitsandbytes(const rft__binder *b, rft__import *im, rft__tensor *out) {
    static const rft_type f32[] = {RFT_F32, (rft_type)0};
    const rft__tensor *nf4 = rft__bind_optional(b, ".weight.quant_state.bitsandbytes__nf4");
    const rft__tensor *fp4 = rft__bind_optional(b, ".weight.quant_state.bitsandbytes__fp4");
    if (!nf4 && !fp4) {
        RFT_FAIL(b->err, RFT_E_ARG, "tensor '%.120s' has no quant_state of nf4 or fp4", b->head->name);
    }
    RFT_TRY(bind_state(b, nf4 ? "nf4" : "fp4", nf4 ? nf4 : fp4, im));
    const int64_t weights = im->n * im->k, held = b->head->rows * b->head->dims[0];
    if (held != weights / 2 + weights % 2) {
        RFT_FAIL(b->err, RFT_E_ARG, "tensor '%.120s' has %" PRId64 " bytes; %" PRId64 " x %" PRId64 " weights take %" PRId64,
                 b->head->name, held, im->n, im->k, weights / 2 + weights % 2);
    }
    im->bits = 4;
    im->decode = decode_bnb;
    im->part[CODES] = b->head;
    im->part[SCALES] = rft__bind_optional(b, ".weight.absmax");
    RFT_TRY(rft__bind_matrix(b, ".weight.quant_map", f32, 1, 16, &im->part[TABLE]));
    RFT_TRY(bind_nested(b, rft__ceil_div(weights, im->group_k), im));
    set_bnb(im, nf4 ? RFT_NF4 : RFT_FP4);
    rft__bind_shape(out, nf4 ? RFT_NF4 : RFT_FP4, im->n, im->k);
    return RFT_OK;
}

static float bnb_int8_scale(const rft__import *im, int64_t row, int64_t group) {
    return rft__import_value(im->part[SCALES], row + group) / 127; /* group: 0, a row has one */
}

static void decode_bnb_int8(const rft__import *im, int64_t row, int64_t k0, int64_t n, float *dst) {
    const float scale = bnb_int8_scale(im, row, 0);
    for (int64_t i = 0; i < n; i++) {
        dst[i] = rft__import_value(im->part[CODES], row * im->k + k0 + i) * scale;
    }
}

/* Rows under their largest magnitude, which stands for 127. */
rft_status rft__bind_bnb_int8(const rft__binder *b, rft__import *im, rft__tensor *out) {
    static const rft_type f32[] = {RFT_F32, (rft_type)0};
    im->n = b->head->rows;
    im->k = b->head->dims[0];
    im->part[CODES] = b->head;
    im->decode = decode_bnb_int8;
    im->code = byte_code;
    im->elem = RFT_I8;
    im->scale = RFT_F32;
    im->scale_at = bnb_int8_scale;
    im->group_n = 1;
    im->group_k = im->k;
    rft__bind_optional(b, ".weight_format");
    RFT_TRY(rft__bind_matrix(b, ".SCB", f32, 1, im->n, &im->part[SCALES]));
    snprintf(im->text, sizeof im->text, "int8 a row");
    rft__bind_shape(out, RFT_I8, im->n, im->k);
    return RFT_OK;
}
