/* SPDX-License-Identifier: Apache-2.0
 *
 * out_text.c - see out_text.h. Widths count characters of UTF-8, not bytes.
 */
#include "out_text.h"
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool styled(void) {
    const char *off = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(off && *off);
}

static const char *style(const char *code) { return styled() ? code : ""; }

const char *text_bold(void) { return style("\033[1m"); }
const char *text_red(void) { return style("\033[31m"); }
const char *text_dim(void) { return style("\033[2m"); }
const char *text_plain(void) { return style("\033[0m"); }

static int width_of(const char *s) {
    int width = 0;
    for (; *s; s++)
        width += ((unsigned char)*s & 0xc0) != 0x80;
    return width;
}

static void put(const column *c, const char *text, bool first, bool last) {
    int pad = c->width - width_of(text);
    if (!first)
        fputs("  ", stdout);
    if (!c->left)
        printf("%*s", pad > 0 ? pad : 0, "");
    fputs(text, stdout);
    if (c->left && !last)
        printf("%*s", pad > 0 ? pad : 0, "");
}

void text_header(const column *columns, int n) {
    fputs(text_bold(), stdout);
    for (int i = 0; i < n; i++)
        put(&columns[i], columns[i].title, i == 0, i == n - 1);
    printf("%s\n", text_plain());
}

void text_row(const column *columns, cell *cells, int n) {
    for (int i = 0; i < n; i++)
        put(&columns[i], cells[i], i == 0, i == n - 1);
    putchar('\n');
}

void text_table(column *columns, int n, cell *cells, size_t rows) {
    for (int i = 0; i < n; i++) {
        int width = width_of(columns[i].title);
        columns[i].width = columns[i].width > width ? columns[i].width : width;
        for (size_t r = 0; r < rows; r++) {
            width = width_of(cells[r * (size_t)n + (size_t)i]);
            columns[i].width = columns[i].width > width ? columns[i].width : width;
        }
    }
    text_header(columns, n);
    for (size_t r = 0; r < rows; r++)
        text_row(columns, cells + r * (size_t)n, n);
}

void format_text(cell out, const char *text, size_t most) {
    size_t n = 0;
    for (size_t characters = 0; text[n]; n++) {
        characters += ((unsigned char)text[n] & 0xc0) != 0x80;
        if (characters > most)
            break;
    }
    snprintf(out, CELL, "%.*s", (int)cli_whole(text, n < CELL ? n : CELL - 1), text);
}

/* `digits` significant ones, never in scientific form. */
static void format_digits(cell out, double v, int digits) {
    int before = v >= 1 ? (int)log10(v) + 1 : 1;
    snprintf(out, CELL, "%.*f", before >= digits ? 0 : digits - before, v);
}

void format_us(cell out, double us) { format_digits(out, us, 4); }

void format_3(cell out, double v) {
    if (v == 0)
        strcpy(out, "-");
    else
        format_digits(out, v, 3);
}

void format_si(cell out, double v, const char *unit) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    cell digits;
    int prefix = 0;
    for (; v >= 1000 && prefix < 5; prefix++)
        v /= 1000;
    format_digits(digits, v, 4);
    snprintf(out, CELL, "%.16s %s%.16s", digits, prefixes[prefix], unit);
}

void format_bytes(cell out, double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    snprintf(out, CELL, bytes == floor(bytes) || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}
