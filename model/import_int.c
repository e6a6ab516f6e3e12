/* SPDX-License-Identifier: Apache-2.0
 *
 * import_int.c - packed integers with scales along k: GPTQ, AWQ and pack-quantized compressed-tensors. See import.h.
 *
 * Parts: codes, scales, zero points (or NULL), act-order index (or NULL). A weight is (code - zero) * scale, in that order. A
 * scheme brings where its codes and zero points are; where these are all half the range the low-bit form leaves them out.
 */
#include "import.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { CODES = RFT_PART_CODES, SCALES = RFT_PART_SCALES, ZEROS, INDEX };

static void describe(rft__import *im, const char *scheme) {
    char group[24] = "a row";
    if (im->groups > 1) {
        snprintf(group, sizeof group, "g%" PRId64, im->group_k);
    }
    snprintf(im->text, sizeof im->text, "%s %d-bit %s%s", scheme, (int)im->bits, group, im->part[INDEX] ? " act" : "");
}

static void set_groups(rft__import *im, int64_t group_k) {
    im->group_k = group_k > 0 && group_k < im->k ? group_k : im->k;
    im->groups = rft__ceil_div(im->k, im->group_k);
}

static rft_status check_bits(const rft__binder *b, int64_t bits, const char *allowed) {
    if (bits < 1 || bits > 9 || !strchr(allowed, '0' + (int)bits)) {
        RFT_FAIL(b->err, RFT_E_UNSUPPORTED, "tensor '%.120s': %" PRId64 " bits a code are not read", b->head->name, bits);
    }
    return RFT_OK;
}

static void decode_ints(const rft__import *im, int64_t row, int64_t k0, int64_t n, float *dst) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t group = rft__import_group(im, im->index, k0 + i);
        const int zero = im->zero_at ? im->zero_at(im, row, group) : im->bias;
        const float scale = rft__import_value(im->part[SCALES], row * im->scale_n + group * im->scale_k);
        dst[i] = (float)((int)im->code(im, row, k0 + i) - zero) * scale;
    }
}

static bool zeros_are_half(const rft__import *im) {
    const int half = 1 << (im->bits - 1);
    for (int64_t i = 0; im->zero_at && i < im->n * im->groups; i++) {
        if (im->zero_at(im, i / im->groups, i % im->groups) != half) {
            return false;
        }
    }
    return true;
}

void rft__import_finish_ints(rft__import *im, bool as_signed, rft__tensor *out) {
    const bool half = zeros_are_half(im), wide = im->bits > 4;
    as_signed = as_signed || half;
    im->decode = decode_ints;
    im->group_n = 1;
    im->index = im->part[INDEX];
    im->bias = as_signed ? 1 << (im->bits - 1) : 0;
    im->elem = as_signed ? (wide ? RFT_I8 : RFT_I4) : (wide ? RFT_U8 : RFT_U4);
    im->scale = im->part[SCALES]->format->type;
    im->zero = half ? (rft_type)0 : as_signed ? RFT_I8 : RFT_U8;
    rft__bind_shape(out, im->elem, im->n, im->k);
}

/* ---- GPTQ: codes [k * bits / 32][n], packed along k; zeros [groups][n * bits / 32], packed along n ---- */

static unsigned gptq_code(const rft__import *im, int64_t row, int64_t k) {
    return rft__import_bits(im->part[CODES], row, im->n, k, im->bits);
}

static int gptq_zero(const rft__import *im, int64_t row, int64_t group) {
    const rft__tensor *zeros = im->part[ZEROS];
    const unsigned mask = (1u << im->bits) - 1;
    return (int)((rft__import_bits(zeros, group * zeros->dims[0], 1, row, im->bits) + (unsigned)im->zero_offset) & mask);
}

/* Files of version 1 store a zero point less one, and "gptq" is also what some writers call files of version 2. Symmetric weights
 * have half the range as their zero point, which tells which it is; all else goes by the name. */
static int gptq_zero_offset(const rft__binder *b, const rft__import *im) {
    const unsigned half = 1u << (im->bits - 1);
    bool plain = true, less = true;
    if (strcmp(b->config->version, "gptq_v2") == 0) {
        return 0;
    }
    for (int64_t i = 0; i < im->groups * im->n && b->config->symmetric && (plain || less); i++) {
        const rft__tensor *zeros = im->part[ZEROS];
        const unsigned zero = rft__import_bits(zeros, i / im->n * zeros->dims[0], 1, i % im->n, im->bits);
        plain = plain && zero == half;
        less = less && zero == half - 1;
    }
    return b->config->symmetric && plain && !less ? 0 : 1;
}

rft_status rft__bind_gptq(const rft__binder *b, rft__import *im, rft__tensor *out) {
    im->bits = b->config->bits;
    im->code = gptq_code;
    im->zero_at = gptq_zero;
    im->n = b->head->dims[0];
    RFT_TRY(check_bits(b, im->bits, "2348"));
    if (b->head->rows > INT64_MAX / 32 || b->head->rows * 32 % im->bits != 0 || im->n * im->bits % 32 != 0) {
        RFT_FAIL(b->err, RFT_E_ARG,
                 "tensor '%.120s': %" PRId64 " rows of %" PRId64 " words do not hold whole %" PRId64 "-bit codes", b->head->name,
                 b->head->rows, im->n, im->bits);
    }
    im->k = b->head->rows * 32 / im->bits;
    set_groups(im, b->config->group_k);
    im->part[CODES] = b->head;
    RFT_TRY(rft__bind_matrix(b, ".scales", rft__import_floats, im->groups, im->n, &im->part[SCALES]));
    RFT_TRY(rft__bind_matrix(b, ".qzeros", rft__import_words, im->groups, im->n * im->bits / 32, &im->part[ZEROS]));
    RFT_TRY(rft__bind_index(b, ".g_idx", im, &im->part[INDEX]));
    im->zero_offset = gptq_zero_offset(b, im);
    im->scale_n = 1;
    im->scale_k = im->n;
    describe(im, "gptq");
    rft__import_finish_ints(im, false, out);
    return RFT_OK;
}

/* ---- AWQ: codes [k][n / 8] and zeros [groups][n / 8], columns 0 2 4 6 1 3 5 7 from the lowest nibble up ---- */

static int awq_nibble(const rft__tensor *t, int64_t row, int64_t column) {
    static const unsigned char place[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return (int)(rft__import_word(t, row * t->dims[0] + column / 8) >> 4 * place[column % 8] & 15u);
}

static unsigned awq_code(const rft__import *im, int64_t row, int64_t k) { return (unsigned)awq_nibble(im->part[CODES], k, row); }

static int awq_zero(const rft__import *im, int64_t row, int64_t group) { return awq_nibble(im->part[ZEROS], group, row); }

rft_status rft__bind_awq(const rft__binder *b, rft__import *im, rft__tensor *out) {
    if (b->config->version[0] && strcasecmp(b->config->version, "gemm") != 0) {
        RFT_FAIL(b->err, RFT_E_UNSUPPORTED, "awq of version '%s': only gemm is read", b->config->version);
    }
    RFT_TRY(check_bits(b, b->config->bits, "4"));
    if (b->head->dims[0] > INT64_MAX / 8) {
        RFT_FAIL(b->err, RFT_E_ARG, "tensor '%.120s' is too large", b->head->name);
    }
    im->bits = 4;
    im->code = awq_code;
    im->zero_at = awq_zero;
    im->n = b->head->dims[0] * 8;
    im->k = b->head->rows;
    set_groups(im, b->config->group_k);
    im->part[CODES] = b->head;
    RFT_TRY(rft__bind_matrix(b, ".scales", rft__import_floats, im->groups, im->n, &im->part[SCALES]));
    RFT_TRY(rft__bind_matrix(b, ".qzeros", rft__import_words, im->groups, im->n / 8, &im->part[ZEROS]));
    im->scale_n = 1;
    im->scale_k = im->n;
    describe(im, "awq");
    rft__import_finish_ints(im, false, out);
    return RFT_OK;
}

/* ---- compressed-tensors: codes [n][k * bits / 32], packed along k; zeros [n * bits / 32][groups], packed along n, or int8 ----
 */

/* Libraries before 0.18 began each word with a whole code, where 32 is no multiple of the bits. */
static int packed_code(const rft__import *im, const rft__tensor *t, int64_t first, int64_t stride, int64_t index) {
    if (im->per_word == 0) {
        return (int)rft__import_bits(t, first, stride, index, im->bits);
    }
    const uint32_t word = rft__import_word(t, first + index / im->per_word * stride);
    return (int)(word >> index % im->per_word * im->bits & ((1u << im->bits) - 1));
}

static int64_t packed_words(const rft__import *im, int64_t codes) {
    return im->per_word ? rft__ceil_div(codes, im->per_word) : rft__ceil_div(codes * im->bits, 32);
}

static unsigned packed_weight(const rft__import *im, int64_t row, int64_t k) {
    const rft__tensor *codes = im->part[CODES];
    return (unsigned)packed_code(im, codes, row * codes->dims[0], 1, k);
}

/* Codes are stored with half the range added, packed zero points too. */
static int packed_zero(const rft__import *im, int64_t row, int64_t group) {
    const rft__tensor *zeros = im->part[ZEROS];
    const int half = 1 << (im->bits - 1);
    return zeros->format->type == RFT_I8 ? half + (int)rft__import_value(zeros, row * im->groups + group)
                                         : packed_code(im, zeros, group, im->groups, row);
}

static rft_status read_shape(const rft__binder *b, rft__import *im) {
    const rft__tensor *shape = rft__bind_optional(b, ".weight_shape");
    const bool wide = shape && shape->format->type == (rft_type)(256 + 27);
    if (!shape || shape->rows * shape->dims[0] != 2 || !(wide || shape->format->type == RFT_I32)) {
        RFT_FAIL(b->err, RFT_E_ARG, "tensor '%.120s.weight_shape' is not two integers", b->prefix);
    }
    const int64_t step = wide ? 2 : 1; /* words */
    if (wide && (rft__import_word(shape, 1) != 0 || rft__import_word(shape, 3) != 0)) {
        RFT_FAIL(b->err, RFT_E_ARG, "tensor '%.120s' holds a size over 2^32 - 1", shape->name);
    }
    im->n = rft__import_word(shape, 0);
    im->k = rft__import_word(shape, step);
    if (im->n < 1 || im->k < 1 || im->n > INT32_MAX || im->k > INT32_MAX) {
        RFT_FAIL(b->err, RFT_E_ARG, "tensor '%.120s' holds %" PRId64 " x %" PRId64 ": sizes are 1 to 2^31 - 1", shape->name,
                 im->n, im->k);
    }
    return RFT_OK;
}

/* The first of the config's groups whose numbers agree with the tensors. */
static bool fits(const rft__quant_group *g, const rft__binder *b, rft__import *im, const rft__tensor *scales) {
    im->bits = g->bits;
    im->per_word = 0;
    set_groups(im, g->group_k);
    if (packed_words(im, im->k) != b->head->dims[0]) {
        im->per_word = 32 / g->bits;
    }
    return g->bits <= 8 && packed_words(im, im->k) == b->head->dims[0] && scales->dims[0] == im->groups;
}

rft_status rft__bind_packed_int(const rft__binder *b, rft__import *im, rft__tensor *out) {
    static const rft_type zero_types[] = {RFT_I32, RFT_I8, (rft_type)0};
    RFT_TRY(read_shape(b, im));
    const rft__tensor *scales = rft__bind_optional(b, ".weight_scale");
    int at = 0;
    while (scales && at < b->config->n_groups && !fits(&b->config->groups[at], b, im, scales)) {
        at++;
    }
    if (!scales || at == b->config->n_groups || b->head->rows != im->n) {
        RFT_FAIL(b->err, RFT_E_ARG,
                 "tensor '%.99s' of %" PRId64 " rows of %" PRId64 " words fits no config_group for %" PRId64 " x %" PRId64
                 " weights",
                 b->head->name, b->head->rows, b->head->dims[0], im->n, im->k);
    }
    RFT_TRY(check_bits(b, im->bits, "2345678"));
    RFT_TRY(rft__bind_check(b, scales, rft__import_floats, im->n, im->groups));
    im->code = packed_weight;
    im->part[CODES] = b->head;
    im->part[SCALES] = scales;
    im->part[ZEROS] = rft__bind_optional(b, ".weight_zero_point");
    if (im->part[ZEROS]) {
        const bool packed = im->part[ZEROS]->format->type == RFT_I32;
        const int64_t zero_rows = packed ? packed_words(im, im->n) : im->n;
        RFT_TRY(rft__bind_check(b, im->part[ZEROS], zero_types, zero_rows, im->groups));
        im->zero_at = packed_zero;
    }
    RFT_TRY(rft__bind_index(b, ".weight_g_idx", im, &im->part[INDEX]));
    im->scale_n = im->groups;
    im->scale_k = 1;
    describe(im, im->part[ZEROS] ? "uint" : "int");
    rft__import_finish_ints(im, true, out);
    return RFT_OK;
}
