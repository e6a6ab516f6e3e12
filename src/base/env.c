/* SPDX-License-Identifier: Apache-2.0
 *
 * env.c - environment variables. secure_getenv: a set-user-id program does not let its caller name our files.
 */
#define _GNU_SOURCE 1
#include "base/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rft__env_text(const char *name) {
    const char *text = secure_getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* Digits, with blanks around them, up to end or a character of stop. */
static bool parse_count(const char *text, const char *stop, int64_t max, int64_t *out) {
    int64_t value = 0;
    text += strspn(text, " ");
    for (; *text >= '0' && *text <= '9'; text++) {
        value = value * 10 + (*text - '0');
        if (value > max) {
            return false;
        }
    }
    text += strspn(text, " ");
    if (value < 1 || (*text != '\0' && strchr(stop, *text) == NULL)) {
        return false;
    }
    *out = value;
    return true;
}

bool rft__env_count(const char *name, int64_t max, int64_t *out) {
    const char *text = rft__env_text(name);
    return text != NULL && parse_count(text, "", max, out);
}

bool rft__env_first_count(const char *name, int64_t max, int64_t *out) {
    const char *text = rft__env_text(name);
    return text != NULL && parse_count(text, ",", max, out);
}

bool rft__env_flag(const char *name) {
    const char *text = rft__env_text(name);
    return text != NULL && strcmp(text, "1") == 0;
}

static bool join(char *buf, size_t cap, const char *folder, const char *rest) {
    const int length = snprintf(buf, cap, "%s%s", folder, rest);
    return length >= 0 && (size_t)length < cap;
}

bool rft__env_cache_dir(const char *option, char *buf, size_t cap) {
    const char *folder = option != NULL && option[0] != '\0' ? option : rft__env_text("RFT_CACHE_DIR");
    if (folder != NULL) {
        return join(buf, cap, folder, "");
    }
    folder = rft__env_text("XDG_CACHE_HOME");
    if (folder != NULL && folder[0] == '/') { /* the XDG specification: a relative path counts as unset */
        return join(buf, cap, folder, "/rooftile");
    }
    folder = rft__env_text("HOME");
    return folder != NULL && join(buf, cap, folder, "/.cache/rooftile");
}
