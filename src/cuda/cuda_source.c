/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_source.c - finds a device text and what it includes. Called by jit.c, for the compiler's list of headers and for the
 * key of the cache. It reads #include "name" lines alone, so an include within a comment or an unmet #if counts too, which
 * costs nothing.
 */
#include "cuda/cuda_source.h"

#include "base/error.h"

#include <stdbool.h>
#include <string.h>

static const rft__cuda_text *find_text(const rft__cuda_source *set, const char *name, size_t length) {
    for (uint32_t i = 0; i < set->count; i++) {
        if (strlen(set->texts[i].name) == length && memcmp(set->texts[i].name, name, length) == 0) {
            return &set->texts[i];
        }
    }
    return NULL;
}

static bool holds(const rft__cuda_unit *unit, const rft__cuda_text *text) {
    for (uint32_t i = 0; i < unit->n_includes; i++) {
        if (unit->includes[i] == text) {
            return true;
        }
    }
    return text == unit->source;
}

/* The name within the quotes of an #include line, NULL for any other line. */
static const char *included_name(const char *line, size_t *length) {
    static const char word[] = "include";
    line += strspn(line, " \t");
    if (*line++ != '#') {
        return NULL;
    }
    line += strspn(line, " \t");
    if (strncmp(line, word, sizeof word - 1) != 0) {
        return NULL;
    }
    line += sizeof word - 1;
    line += strspn(line, " \t");
    if (*line++ != '"') {
        return NULL;
    }
    *length = strcspn(line, "\"\n");
    return line;
}

static rft_status add_includes(const rft__cuda_source *set, const rft__cuda_text *from, rft__cuda_unit *unit, rft_error *err) {
    for (const char *line = from->text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t length = 0;
        const char *name = included_name(line, &length);
        const rft__cuda_text *text = name != NULL ? find_text(set, name, length) : NULL;
        if (text == NULL || holds(unit, text)) {
            continue;
        }
        if (unit->n_includes == RFT_CUDA_MAX_INCLUDES) {
            RFT_FAIL(err, RFT_E_ARG, "the device text %s includes more than %d others", unit->source->name,
                     RFT_CUDA_MAX_INCLUDES);
        }
        unit->includes[unit->n_includes++] = text;
    }
    return RFT_OK;
}

rft_status rft__cuda_unit_find(const rft__cuda_source *set, const char *name, rft__cuda_unit *unit, rft_error *err) {
    unit->n_includes = 0;
    unit->source = find_text(set, name, strlen(name));
    if (unit->source == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "there is no device text called %s", name);
    }
    RFT_TRY(add_includes(set, unit->source, unit, err));
    for (uint32_t i = 0; i < unit->n_includes; i++) { /* grows within */
        RFT_TRY(add_includes(set, unit->includes[i], unit, err));
    }
    return RFT_OK;
}
