/* SPDX-License-Identifier: Apache-2.0
 *
 * cli_parse.c - numbers, number lists, types and layouts of the command line. Called by options.c and shapes.c.
 */
#define _GNU_SOURCE
#include "cli_parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 65536

/* Reads one whole number and moves past it: digits alone, behind a minus at most, as %lld would write them. */
static bool scan_int(const char **text, int64_t *out) {
    const char *digits = *text + (**text == '-');
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)*digits) || (*digits == '0' && isdigit((unsigned char)digits[1])))
        return false;
    long long value = strtoll(*text, &end, 10);
    if (errno == ERANGE)
        return false;
    *text = end;
    *out = value;
    return true;
}

bool parse_int(const char *text, int64_t min, int64_t max, int64_t *out, char why[CLI_WHY]) {
    const char *at = text;
    if (scan_int(&at, out) && *at == '\0' && *out >= min && *out <= max)
        return true;
    snprintf(why, CLI_WHY, "'%.40s' is not a whole number in %lld..%lld", text, (long long)min, (long long)max);
    return false;
}

bool scan_number(const char **text, double *out) {
    static const char first[] = "+-.0123456789";
    const char *begin = *text;
    char *end;
    if (*begin == '\0' || !strchr(first, *begin))
        return false;
    *out = strtod(begin, &end);
    *text = end;
    return end != begin && isfinite(*out);
}

bool parse_number(const char *text, double min, double max, double *out, char why[CLI_WHY]) {
    const char *at = text;
    if (scan_number(&at, out) && *at == '\0' && *out >= min && *out <= max)
        return true;
    snprintf(why, CLI_WHY, "'%.40s' is not a number in %g..%g", text, min, max);
    return false;
}

static bool list_add_range(int_list *list, int64_t first, int64_t last) {
    if (last < first || last - first >= LIST_MAX || list->n + (size_t)(last - first) >= LIST_MAX)
        return false;
    list->v = cli_grow(list->v, list->n + (size_t)(last - first) + 1, sizeof *list->v);
    for (int64_t i = first; i <= last; i++)
        list->v[list->n++] = i;
    return true;
}

static bool scan_range(const char **at, int64_t min, int_list *list) {
    int64_t first, last;
    if (!scan_int(at, &first))
        return false;
    last = first;
    if (strncmp(*at, "..", 2) == 0) {
        *at += 2;
        if (!scan_int(at, &last))
            return false;
    }
    return first >= min && list_add_range(list, first, last);
}

bool parse_list(const char *text, int64_t min, int_list *out, char why[CLI_WHY]) {
    const char *at = text;
    *out = (int_list){0};
    while (scan_range(&at, min, out)) {
        if (*at == '\0')
            return true;
        if (*at++ != ',')
            break;
    }
    list_free(out);
    snprintf(why, CLI_WHY, "'%.60s' is not a list such as 1,16,512 or 1..64 of numbers >= %lld", text, (long long)min);
    return false;
}

void list_free(int_list *list) {
    free(list->v);
    *list = (int_list){0};
}

int_list list_copy(const int_list *list) {
    int_list copy = {cli_alloc(list->n, sizeof *list->v), list->n};
    if (list->n)
        memcpy(copy.v, list->v, list->n * sizeof *list->v);
    return copy;
}

bool parse_type(const char *text, rft_type *out, char why[CLI_WHY]) {
    for (int t = RFT_F32; t < 512; t++)
        if (strcmp(text, rft_type_name((rft_type)t)) == 0 && text[0] != '?') {
            *out = (rft_type)t;
            return true;
        }
    snprintf(why, CLI_WHY, "'%.40s' is no type; f32, bf16 and f16 are, and of weights q4_0, q4_k, q8_0, i4 and more", text);
    return false;
}

bool parse_x(const char *text, rft_type *type, x_groups *groups, char why[CLI_WHY]) {
    const char *colon = strchrnul(text, ':');
    char name[X_TEXT], unused[CLI_WHY];
    *groups = (x_groups){.given = *colon != '\0'};
    snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
    if (!parse_type(name, type, why))
        return false;
    if (groups->given && (colon[1] != 'g' || !parse_int(colon + 2, 0, INT64_MAX, &groups->k, unused) || groups->k % 32))
        snprintf(why, CLI_WHY, "'%.40s' is not g<k> with a multiple of 32, or g0: one scale a row", colon + 1);
    else if (groups->k && !cli_8bit(*type))
        snprintf(why, CLI_WHY, "'%.40s': %s has no scales; g0 rounds it by one a row with --compute i8", text,
                 rft_type_name(*type));
    else
        return true;
    return false;
}

void x_text(rft_type type, const x_groups *groups, char text[X_TEXT]) {
    const int at = snprintf(text, X_TEXT, "%s", rft_type_name(type));
    if (groups->given)
        snprintf(text + at, X_TEXT - (size_t)at, ":g%lld", (long long)groups->k);
}

bool parse_layout(const char *text, rft_order *x, rft_order *w, char why[CLI_WHY]) {
    bool sound = strlen(text) == 2 && strchr("nt", text[0]) && strchr("nt", text[1]);
    if (!sound) {
        snprintf(why, CLI_WHY, "'%.40s' is none of nt, nn, tn, tt", text);
        return false;
    }
    *x = text[0] == 'n' ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS;
    *w = text[1] == 't' ? RFT_K_CONTIGUOUS : RFT_MN_CONTIGUOUS;
    return true;
}

static const char *const compute_names[] = {[RFT_COMPUTE_AUTO] = "auto", [RFT_COMPUTE_F32] = "f32",
                                            [RFT_COMPUTE_TF32] = "tf32", [RFT_COMPUTE_16] = "16", [RFT_COMPUTE_I8] = "i8"};

#define N_COMPUTE ((int)(sizeof compute_names / sizeof compute_names[0]))

bool parse_compute(const char *text, rft_compute *out, char why[CLI_WHY]) {
    for (int i = 0; i < N_COMPUTE; i++)
        if (strcmp(text, compute_names[i]) == 0) {
            *out = (rft_compute)i;
            return true;
        }
    snprintf(why, CLI_WHY, "'%.40s' is none of auto, f32, tf32, 16, i8", text);
    return false;
}

const char *compute_name(rft_compute compute) { return (int)compute < N_COMPUTE ? compute_names[compute] : "?"; }
