/* SPDX-License-Identifier: Apache-2.0
 *
 * html.h - text into HTML and SVG. Every string that a file or a user brought goes through html_text: names of models and
 * tensors are hostile input, and a page is opened far from where it was made. Called by report_*.c.
 */
#ifndef HTML_H
#define HTML_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Escaped for contents and for quoted attributes; bytes that are no UTF-8 and control characters, those
 * of direction among them, become U+FFFD. */
void html_text(FILE *f, const char *text);
/* The same, cut to that many characters with an ellipsis. */
void html_short(FILE *f, const char *text, int most);
int html_width(const char *text); /* characters */
/* "<tag class>text</tag>"; class NULL: none. */
void html_element(FILE *f, const char *tag, const char *class, const char *text);

#endif
