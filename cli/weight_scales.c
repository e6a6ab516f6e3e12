/* SPDX-License-Identifier: Apache-2.0
 *
 * weight_scales.c - the scales of low-bit weights which lie apart from the codes: their place in --w, such as
 * i4:g128:f16:zero, and in a descriptor. Declared in cli_parse.h; called by options.c, shapes.c and check_problem.c.
 */
#define _GNU_SOURCE
#include "cli_parse.h"

#include <stdio.h>
#include <string.h>

bool scales_apart(rft_type type) { return cli_low_bit(type) && (int)type < 256; }

weight_scales scales_by_row(void) { return (weight_scales){.scale = RFT_F32, .group_n = 1}; }

static rft_type zero_of(rft_type elem) {
    return elem == RFT_I8 || elem == RFT_I4 ? RFT_I8 : elem == RFT_U8 || elem == RFT_U4 ? RFT_U8 : (rft_type)0;
}

/* "128" or "1x128": of k alone, or of n and k; 0 is the whole extent. */
static bool parse_group(const char *text, weight_scales *s) {
    char n[24] = "1", why[CLI_WHY];
    const char *by = strchr(text, 'x');
    if (by)
        snprintf(n, sizeof n, "%.*s", (int)(by - text), text);
    return parse_int(n, 0, INT64_MAX, &s->group_n, why) && parse_int(by ? by + 1 : text, 0, INT64_MAX, &s->group_k, why);
}

static const struct {
    const char *name;
    uint32_t flag;
} flags[] = {{"times", RFT_WEIGHT_GLOBAL_TIMES}, {"over", RFT_WEIGHT_GLOBAL_OVER}, {"act", RFT_WEIGHT_G_IDX}};

enum { FLAGS = sizeof flags / sizeof *flags };

static uint32_t flag_of(const char *name) {
    for (int i = 0; i < FLAGS; i++)
        if (strcmp(name, flags[i].name) == 0)
            return flags[i].flag;
    return 0;
}

/* What a part says, told apart by how it begins. */
typedef enum part_kind { PART_GROUP, PART_FLAG, PART_ZERO, PART_SCALE } part_kind;

static part_kind kind_of(const char *part) {
    return part[0] == 'g' ? PART_GROUP : flag_of(part) ? PART_FLAG : strcmp(part, "zero") == 0 ? PART_ZERO : PART_SCALE;
}

static bool parse_part(const char *part, rft_type elem, weight_scales *s, char why[CLI_WHY]) {
    const part_kind kind = kind_of(part);
    char unused[CLI_WHY];
    s->flags |= flag_of(part);
    if (kind == PART_ZERO && !(s->zero = zero_of(elem))) {
        snprintf(why, CLI_WHY, "%s has no zero points; i8, u8, i4 and u4 have", rft_type_name(elem));
        return false;
    }
    if ((kind == PART_GROUP && !parse_group(part + 1, s)) || (kind == PART_SCALE && !parse_type(part, &s->scale, unused))) {
        snprintf(why, CLI_WHY, "'%.40s' is neither the type of scales nor g<k>, g<n>x<k>, zero, times, over or act", part);
        return false;
    }
    return true;
}

/* Each kind of part at most once, and each flag. */
static bool is_again(const char *part, uint32_t *seen, char why[CLI_WHY]) {
    const part_kind kind = kind_of(part);
    const uint32_t bit = kind == PART_FLAG ? flag_of(part) << 8 : 1u << kind;
    const bool again = (*seen & bit) != 0;
    *seen |= bit;
    if (again)
        snprintf(why, CLI_WHY, "'%.40s' comes after another that says the same of the scales", part);
    return again;
}

bool parse_weight(const char *text, rft_type *type, weight_scales *scales, char why[CLI_WHY]) {
    char copy[WEIGHT_TEXT], *rest = copy, *part;
    uint32_t seen = 0;
    bool good = snprintf(copy, sizeof copy, "%s", text) < WEIGHT_TEXT;
    part = strsep(&rest, ":");
    good = parse_type(good ? part : text, type, why); /* what is longer is no type */
    *scales = (weight_scales){0};
    if (good && scales_apart(*type))
        *scales = scales_by_row();
    else if (good && rest) {
        snprintf(why, CLI_WHY, "'%.60s': %s has no scales apart from it", text, rft_type_name(*type));
        good = false;
    }
    while (good && (part = strsep(&rest, ":")) != NULL)
        good = !is_again(part, &seen, why) && parse_part(part, *type, scales, why);
    return good;
}

void weight_text(rft_type type, const weight_scales *s, char text[WEIGHT_TEXT]) {
    int at = snprintf(text, WEIGHT_TEXT, "%s", rft_type_name(type));
    if (s->scale && s->group_n != 1)
        at += snprintf(text + at, WEIGHT_TEXT - (size_t)at, ":g%lldx%lld", (long long)s->group_n, (long long)s->group_k);
    else if (s->scale && s->group_k)
        at += snprintf(text + at, WEIGHT_TEXT - (size_t)at, ":g%lld", (long long)s->group_k);
    if (s->scale && s->scale != RFT_F32)
        at += snprintf(text + at, WEIGHT_TEXT - (size_t)at, ":%s", rft_type_name(s->scale));
    if (s->zero)
        at += snprintf(text + at, WEIGHT_TEXT - (size_t)at, ":zero");
    for (int i = 0; i < FLAGS; i++)
        if (s->flags & flags[i].flag)
            at += snprintf(text + at, WEIGHT_TEXT - (size_t)at, ":%s", flags[i].name);
}

void scales_describe(const weight_scales *s, rft_weight_desc *d) {
    d->scale = s->scale;
    d->zero = s->zero;
    d->group_n = s->group_n;
    d->group_k = s->group_k;
    d->flags |= s->flags;
}

void scales_index(const weight_scales *s, int64_t k, uint64_t seed, int32_t *to) {
    const int64_t group = s->group_k ? s->group_k : k;
    for (int64_t i = 0; i < k; i++) { /* each new one changes places with one before it */
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        const int64_t j = (int64_t)((seed >> 33) % (uint64_t)(i + 1));
        to[i] = to[j];
        to[j] = (int32_t)(i / group);
    }
}

int64_t scales_along(int64_t extent, int64_t group) {
    return group && group < extent ? extent / group + (extent % group != 0) : extent > 0;
}

bool scales_global(uint32_t weight_flags) { return weight_flags & (RFT_WEIGHT_GLOBAL_TIMES | RFT_WEIGHT_GLOBAL_OVER); }

int64_t scales_count(const rft_weight_desc *d) {
    return d->scale ? d->batch * scales_along(d->n, d->group_n) * scales_along(d->k, d->group_k) : 0;
}
