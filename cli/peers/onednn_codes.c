/* SPDX-License-Identifier: Apache-2.0
 *
 * onednn_codes.c - oneDNN beside a W of codes: integers with scales of groups, which its matmul turns into floats (weight
 * decompression), and an x in 8 bits, given or with --compute i8. See onednn_state.h; called by peer_onednn.c.
 * Floats are rounded beforehand with one scale, as its interface takes it, and that is not timed.
 */
#include "peers/onednn_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- scales and zero points ---- */

/* oneDNN's order is [group of k][n], a checkpoint's and ours [n][group of k]. */
static void *transposed(const void *from, int64_t n, int64_t groups, size_t size) {
    const char *source = from;
    char *to = cli_alloc((size_t)(n * groups), size);
    for (int64_t i = 0; i < n; i++)
        for (int64_t g = 0; g < groups; g++)
            memcpy(to + (size_t)(g * n + i) * size, source + (size_t)(i * groups + g) * size, size);
    return to;
}

static bool make_part(dnn_state *s, int which, const void *from, rft_type type, int64_t groups) {
    const rft_weight_desc *w = &s->product.weights->desc;
    dnn_part *part = &s->part[which];
    size_t size = rft_type_bytes(type, 1);
    part->arg = (which == DNN_SCALES ? DNN_ATTR_SCALES : DNN_ATTR_ZERO_POINTS) | DNN_ARG_WEIGHTS;
    part->bytes = (size_t)(w->n * groups) * size;
    part->data = transposed(from, w->n, groups, size);
    if (groups > 1)
        return dnn_make_md(s, &part->md, dnn_type(type), groups, w->n, w->n, 1);
    return s->f.memory_desc_create_with_strides(&part->md, 1, (dnn_dims){w->n}, dnn_type(type), (dnn_dims){1}) == 0;
}

/* One a row and group; a row of one group has the simpler form. */
static bool set_scales(dnn_state *s, const weight_set *set, int64_t group, int64_t groups) {
    const rft_type scale = set->desc.scale, zero = set->desc.zero;
    const dnn_dims dims = {group, 1};
    int mask = (groups > 1 ? 3 : 2) << s->lead, n_dims = groups > 1 ? 2 : 0;
    if (s->f.primitive_attr_set_scales(s->attr, DNN_ARG_WEIGHTS, mask, n_dims, n_dims ? dims : NULL, dnn_type(scale)))
        return false;
    if (zero && s->f.primitive_attr_set_zero_points(s->attr, DNN_ARG_WEIGHTS, mask, n_dims, n_dims ? dims : NULL, dnn_type(zero)))
        return false;
    return make_part(s, DNN_SCALES, set->parts.scale, scale, groups) &&
           (!zero || make_part(s, DNN_ZEROS, set->parts.zero, zero, groups));
}

/* Integers become floats of x's type and are multiplied so; in 8 bits they stay what they are. */
static bool set_mode(dnn_state *s) {
    if (dnn_in_8_bits(s))
        return true;
    int mode = s->x_type == DNN_BF16 ? DNN_MATH_BF16 : s->x_type == DNN_F16 ? DNN_MATH_F16 : DNN_MATH_STRICT;
    return s->f.primitive_attr_set_fpmath_mode_v2(s->attr, mode, 1) == 0;
}

bool dnn_in_8_bits(const dnn_state *s) {
    const peer_product *q = &s->product;
    return cli_low_bit(q->w) && (q->x == RFT_I8 || q->compute == RFT_COMPUTE_I8);
}

bool dnn_codes_make(dnn_state *s, char why[CLI_WHY]) {
    const weight_set *set = s->product.weights;
    const rft_weight_desc *w = &set->desc;
    if (!s->f.primitive_attr_set_scales || !s->f.primitive_attr_set_zero_points || !s->f.primitive_attr_set_fpmath_mode_v2) {
        snprintf(why, CLI_WHY, "it has no scales of groups (version 3.5 is needed)");
        return false;
    }
    int64_t group = w->group_k && w->group_k < w->k ? w->group_k : w->k;
    bool whole = group > 0 && w->k % group == 0 && w->k % cli_block(w->elem) == 0; /* its rows need not begin at bytes */
    bool sound = w->group_n == 1 && w->n > 0 && whole && dnn_type(w->scale);
    if (sound && set_mode(s) && set_scales(s, set, group, w->k / group))
        return true;
    snprintf(why, CLI_WHY, "it has no such scales; those of whole groups of one row are what it takes");
    return false;
}

/* ---- x in 8 bits ---- */

static double largest(const peer_product *q, int64_t count) {
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(peer_value(q->x, q->x_data, i)));
    return most;
}

/* In x's own order. The relative error is what a comparison of results has to allow. */
static void round_all(peer *p, dnn_state *s, int64_t count) {
    const peer_product *q = &s->product;
    double most = largest(q, count), scale = most > 0 ? most / 127 : 1, error = 0, norm = 0;
    s->x8 = cli_alloc((size_t)count, 1);
    s->x_scale = (float)scale;
    for (int64_t i = 0; i < count; i++) {
        double x = peer_value(q->x, q->x_data, i), code = nearbyint(x / scale), off = code * scale - x;
        s->x8[i] = (uint8_t)((int)code + s->x_zero);
        error += off * off;
        norm += x * x;
    }
    p->rounding = norm > 0 ? sqrt(error / norm) : 0;
}

static void copy_codes(dnn_state *s, int64_t count) {
    const int8_t *code = s->product.x_data;
    s->x8 = cli_alloc((size_t)count, 1);
    for (int64_t i = 0; i < count; i++)
        s->x8[i] = (uint8_t)(code[i] + s->x_zero);
}

static bool add_one(dnn_state *s, int arg, int type, void *data) {
    void *md;
    if (s->f.memory_desc_create_with_strides(&md, 1, (dnn_dims){1}, type, (dnn_dims){1}))
        return false;
    bool good = dnn_add_arg(s, arg, md, data);
    s->f.memory_desc_destroy(md);
    return good;
}

bool dnn_x_make(peer *p, dnn_state *s, char why[CLI_WHY]) {
    const int64_t count = s->product.m * s->product.k;
    const bool given = s->product.x == RFT_I8;
    s->x_type = s->x_is_u8 ? DNN_U8 : DNN_S8;
    s->x_zero = s->x_is_u8 ? 128 : 0;
    if (given)
        copy_codes(s, count);
    else
        round_all(p, s, count);
    s->x_data = s->x8;
    if ((given || (s->f.primitive_attr_set_scales(s->attr, DNN_ARG_SRC, 0, 0, NULL, DNN_F32) == 0 &&
                   add_one(s, DNN_ATTR_SCALES | DNN_ARG_SRC, DNN_F32, &s->x_scale))) &&
        (!s->x_zero || (s->f.primitive_attr_set_zero_points(s->attr, DNN_ARG_SRC, 0, 0, NULL, DNN_S32) == 0 &&
                        add_one(s, DNN_ATTR_ZERO_POINTS | DNN_ARG_SRC, DNN_S32, &s->x_zero))))
        return true;
    snprintf(why, CLI_WHY, "it does not take x in 8 bits");
    return false;
}

void dnn_codes_free(dnn_state *s) {
    for (int i = DNN_SCALES; i < DNN_PARTS; i++) {
        s->f.memory_desc_destroy(s->part[i].md);
        free(s->part[i].data);
    }
    free(s->x8);
}
