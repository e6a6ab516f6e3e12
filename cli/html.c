/* SPDX-License-Identifier: Apache-2.0
 *
 * html.c - see html.h.
 */
#include "html.h"

#include <limits.h>
#include <stdbool.h>

#define REPLACEMENT "\357\277\275" /* U+FFFD */

/* That have no shape, are no character, or turn the direction of others. */
static bool is_control(uint32_t code) {
    bool turns = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0x200e || code == 0x200f ||
                 code == 0x061c;
    return code < ' ' || (code >= 0x7f && code < 0xa0) || (code & 0xfffe) == 0xfffe || turns;
}

/* Bytes of the character at s, 0: none begins there. No overlong forms, surrogates, or code points above U+10FFFF. */
static int character_bytes(const unsigned char *s) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
    uint32_t code = n == 1 ? *s : *s & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if (s[i] >> 6 != 2)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    bool whole = n > 0 && code >= least[n] && code <= 0x10ffff && (code < 0xd800 || code >= 0xe000);
    return whole && !is_control(code) ? n : 0;
}

static const char *entity_of(char c) {
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static const char *next(const char *text, int *bytes) {
    *bytes = character_bytes((const unsigned char *)text);
    return text + (*bytes ? *bytes : 1);
}

void html_short(FILE *f, const char *text, int most) {
    int bytes;
    for (const char *after; *text && most > 0; text = after, most--) {
        after = next(text, &bytes);
        const char *entity = entity_of(*text);
        if (most == 1 && *after)
            fputs("…", f);
        else if (entity || bytes == 0)
            fputs(entity ? entity : REPLACEMENT, f);
        else
            fwrite(text, 1, (size_t)bytes, f);
    }
}

void html_text(FILE *f, const char *text) { html_short(f, text, INT_MAX); }

int html_width(const char *text) {
    int width = 0, bytes;
    for (; *text; text = next(text, &bytes))
        width++;
    return width;
}

void html_element(FILE *f, const char *tag, const char *class, const char *text) {
    fprintf(f, class ? "<%s class=\"%s\">" : "<%s>", tag, class);
    html_text(f, text);
    fprintf(f, "</%s>", tag);
}
