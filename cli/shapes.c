/* SPDX-License-Identifier: Apache-2.0
 *
 * shapes.c - reads a shapes file: text, one W a line, so that lists of real shapes are data. Called by options.c.
 */
#define _GNU_SOURCE
#include "cli_parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const int_list *m_override;
    int_list m; /* of the last "m" line, or the default */
    shape_list *out;
} reader;

static bool add_shape(reader *r, const char *n, const char *k, const char *m, char why[CLI_WHY]) {
    shape s = {0};
    if (!parse_int(n, 0, INT64_MAX, &s.n, why) || !parse_int(k, 0, INT64_MAX, &s.k, why))
        return false;
    if (r->m_override)
        s.m = list_copy(r->m_override);
    else if (!m)
        s.m = list_copy(&r->m);
    else if (!parse_list(m, 0, &s.m, why))
        return false;
    r->out->v = cli_grow(r->out->v, r->out->n + 1, sizeof *r->out->v);
    r->out->v[r->out->n++] = s;
    return true;
}

static bool set_m(reader *r, const char *text, char why[CLI_WHY]) {
    int_list m;
    if (!parse_list(text, 0, &m, why))
        return false;
    list_free(&r->m);
    r->m = m;
    return true;
}

/* "m 1,16", "x bf16": what holds for more than one shape. */
static bool set_default(reader *r, const char *key, const char *value, char why[CLI_WHY]) {
    switch (key[0]) {
    case 'x':
        return parse_x(value, &r->out->x, &r->out->x_groups, why);
    case 'w':
        return parse_weight(value, &r->out->w, &r->out->w_scales, why);
    case 'y':
        return parse_type(value, &r->out->y, why);
    default:
        return set_m(r, value, why);
    }
}

static bool read_line(reader *r, char *line, char why[CLI_WHY]) {
    char *word[4] = {0}, *rest = line, *w;
    int n = 0;
    line[strcspn(line, "#\n")] = '\0';
    while ((w = strsep(&rest, " \t\r")) != NULL)
        if (*w && n < 4)
            word[n++] = w;
    if (n == 0)
        return true;
    if (n == 2 && strchr("mxwy", word[0][0]) && word[0][1] == '\0')
        return set_default(r, word[0], word[1], why);
    if (n == 2 || n == 3)
        return add_shape(r, word[0], word[1], word[2], why);
    snprintf(why, CLI_WHY, "a line is 'N K [M-LIST]', 'm M-LIST', 'x TYPE' (or w, y) or a comment");
    return false;
}

static bool read_all(FILE *file, reader *r, const char *path, char why[CLI_WHY]) {
    char *line = NULL, reason[CLI_WHY];
    size_t cap = 0;
    int number = 0;
    bool good = true;
    while (good && getline(&line, &cap, file) >= 0) {
        number++;
        good = read_line(r, line, reason);
    }
    if (!good)
        snprintf(why, CLI_WHY, "%.50s:%d: %.90s", path, number, reason);
    else if (r->out->n == 0)
        snprintf(why, CLI_WHY, "%.100s holds no shape", path);
    free(line);
    return good && r->out->n > 0;
}

int read_shapes(const char *path, const int_list *m_override, const int_list *m_default, shape_list *out, char why[CLI_WHY]) {
    reader r = {.m_override = m_override, .m = list_copy(m_default), .out = out};
    FILE *file = fopen(path, "r");
    int code = file && read_all(file, &r, path, why) ? CLI_OK : CLI_USAGE;
    if (!file || ferror(file)) { /* a folder opens, and fails at the first read */
        snprintf(why, CLI_WHY, "cannot read '%.80s': %s", path, strerror(errno));
        code = CLI_IO;
    }
    if (file)
        fclose(file);
    list_free(&r.m);
    return code;
}

void shapes_free(shape_list *list) {
    for (size_t i = 0; i < list->n; i++)
        list_free(&list->v[i].m);
    free(list->v);
    *list = (shape_list){0};
}
