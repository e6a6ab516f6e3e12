/* SPDX-License-Identifier: Apache-2.0
 *
 * out_text.h - aligned tables for people, units in the headers, colour on a terminal only.
 */
#ifndef OUT_TEXT_H
#define OUT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CELL 176 /* the notes of shards are the longest */

typedef struct column {
    const char *title;
    int width; /* at least; wider cells push the rest of their line */
    bool left;
} column;

typedef char cell[CELL];

void text_header(const column *columns, int n);
void text_row(const column *columns, cell *cells, int n);
/* Widens the columns to what rows (n cells each) hold, then prints all. */
void text_table(column *columns, int n, cell *cells, size_t rows);

/* Styles are empty strings where stdout is no terminal or NO_COLOR is set. */
const char *text_bold(void);
const char *text_red(void);
const char *text_dim(void);
const char *text_plain(void);

void format_text(cell out, const char *text, size_t most); /* so many characters, or what fits, never a part of one */
void format_us(cell out, double us); /* four digits: 8.99, 109.4, 70213 */
void format_3(cell out, double v);   /* three digits: 16.4, 353; "-" for 0 */
/* "13.21 GB": four digits and a decimal prefix. */
void format_si(cell out, double v, const char *unit);
void format_bytes(cell out, double bytes); /* "48 KiB", "1.4 GiB" */

#endif
