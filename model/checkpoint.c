/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.c - finds and maps the files of a checkpoint. See checkpoint.h.
 *
 * A folder holds config.json and either model.safetensors.index.json, which names the files, or model.safetensors.
 */
#define _GNU_SOURCE 1
#include "checkpoint.h"

#include "base/error.h"
#include "base/printable.h"
#include "json_read.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_INDEX  ((size_t)100 << 20)
#define INDEX_NAME "model.safetensors.index.json"
#define INDEX_END  ".index.json"

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool rft__checkpoint_is(const char *path, const rft__mapping *file) {
    return file->bytes ? ends_with(path, INDEX_END) || rft__safetensors_begins(file->bytes, file->size) : is_folder(path);
}

/* ---- names of files ---- */

static rft_status check_file_name(const char *name, rft_error *err) {
    const size_t length = strlen(name);
    if (length == 0 || length >= RFT_SHARD_NAME || name[0] == '.' || strchr(name, '/') || !rft__is_printable(name, length)) {
        char text[80];
        rft__copy_printable(text, sizeof text, name, length);
        RFT_FAIL(err, RFT_E_ARG, INDEX_NAME ": '%s' is no plain file name of 1 to %d bytes", text, RFT_SHARD_NAME - 1);
    }
    return RFT_OK;
}

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

static const char *name_at(const rft__checkpoint *c, size_t i) { return c->names + i * RFT_SHARD_NAME; }

static rft_status make_room(const rft__allocator *a, size_t count, rft__checkpoint *c, rft_error *err) {
    c->count = count;
    c->files = rft__alloc(a, count * sizeof *c->files, sizeof(void *));
    c->shards = rft__alloc(a, count * sizeof *c->shards, sizeof(void *));
    c->names = rft__alloc(a, count * RFT_SHARD_NAME, sizeof(void *));
    if (!c->files || !c->shards || !c->names) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for %zu files", count);
    }
    return RFT_OK;
}

/* The distinct values of a weight map, into names of RFT_SHARD_NAME bytes; NULL: they are counted only, with repeats that do not
 * follow each other. */
static rft_status list_files(json_t *map, char *names, size_t *count, rft_error *err) {
    const char *tensor, *last = NULL;
    json_t *value;
    *count = 0;
    json_object_foreach(map, tensor, value) {
        const char *file = json_string_value(value);
        if (!file) {
            RFT_FAIL(err, RFT_E_ARG, INDEX_NAME ": the file of a tensor is not a string");
        }
        if (!last || strcmp(file, last) != 0) {
            RFT_TRY(check_file_name(file, err));
            if (names) {
                memcpy(names + *count * RFT_SHARD_NAME, file, strlen(file) + 1);
            }
            *count += 1;
            last = file;
        }
    }
    return RFT_OK;
}

static size_t drop_repeats(char *names, size_t count) {
    size_t kept = 0;
    if (count > 0) {
        qsort(names, count, RFT_SHARD_NAME, compare_names);
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = names + i * RFT_SHARD_NAME;
        if (kept == 0 || strcmp(names + (kept - 1) * RFT_SHARD_NAME, name) != 0) {
            memmove(names + kept++ * RFT_SHARD_NAME, name, RFT_SHARD_NAME);
        }
    }
    return kept;
}

static rft_status load_map(const void *text, size_t size, json_t **root, json_t **map, rft_error *err) {
    RFT_TRY(rft__json_load(INDEX_NAME, text, size, MAX_INDEX, root, err));
    *map = json_object_get(*root, "weight_map");
    if (!json_is_object(*map)) {
        json_decref(*root);
        RFT_FAIL(err, RFT_E_ARG, INDEX_NAME ": the key 'weight_map' is missing, or no object");
    }
    return RFT_OK;
}

static rft_status names_from_map(const rft__allocator *a, json_t *map, rft__checkpoint *c, rft_error *err) {
    size_t count;
    RFT_TRY(list_files(map, NULL, &count, err));
    char *names = rft__alloc(a, count * RFT_SHARD_NAME, sizeof(void *));
    if (!names) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for %zu file names", count);
    }
    rft_status status = list_files(map, names, &count, err);
    const size_t distinct = drop_repeats(names, count);
    if (status == RFT_OK && (distinct < 1 || distinct > RFT_MAX_SHARDS)) {
        status = rft__error_set(err, RFT_E_ARG, 0, INDEX_NAME ": %zu files, not 1 to %d", distinct, RFT_MAX_SHARDS);
    }
    if (status == RFT_OK) {
        status = make_room(a, distinct, c, err);
    }
    if (status == RFT_OK) {
        memcpy(c->names, names, distinct * RFT_SHARD_NAME);
    }
    rft__release(a, names, count * RFT_SHARD_NAME);
    return status;
}

static rft_status names_from_index(const rft__allocator *a, rft__checkpoint *c, rft_error *err) {
    json_t *root, *map;
    RFT_TRY(load_map(c->index.bytes, c->index.size, &root, &map, err));
    const rft_status status = names_from_map(a, map, c, err);
    json_decref(root);
    return status;
}

static rft_status names_from_file(const rft__allocator *a, const char *name, rft__checkpoint *c, rft_error *err) {
    if (strlen(name) >= RFT_SHARD_NAME) {
        RFT_FAIL(err, RFT_E_ARG, "the file name '%.60s' has %zu bytes, more than %d", name, strlen(name), RFT_SHARD_NAME - 1);
    }
    RFT_TRY(make_room(a, 1, c, err));
    memcpy(c->names, name, strlen(name) + 1);
    return RFT_OK;
}

/* ---- the files ---- */

static const rft__shard *find_shard(const rft__shard *shards, size_t count, const char *name) {
    for (size_t low = 0, high = count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(name, shards[middle].name);
        if (order == 0) {
            return &shards[middle];
        }
        *(order < 0 ? &high : &low) = order < 0 ? middle : middle + 1;
    }
    return NULL;
}

static rft_status check_place(const char *name, const char *file, const rft__shard *shards, size_t count,
                              const rft__tensors *tensors, rft_error *err) {
    const rft__shard *s = find_shard(shards, count, file);
    const int64_t at = rft__tensors_find(tensors, name);
    if (!s || at < 0 || tensors->list[at].data < s->bytes || tensors->list[at].data > s->bytes + s->size) {
        char text[80];
        rft__copy_printable(text, sizeof text, name, strlen(name));
        RFT_FAIL(err, RFT_E_ARG, INDEX_NAME ": tensor '%s' is not in '%.60s', where the index has it", text, file);
    }
    return RFT_OK;
}

rft_status rft__checkpoint_check_index(const void *text, size_t size, const rft__shard *shards, size_t count,
                                       const rft__tensors *tensors, rft_error *err) {
    json_t *root, *map, *value;
    const char *name;
    rft_status status = RFT_OK;
    RFT_TRY(load_map(text, size, &root, &map, err));
    json_object_foreach(map, name, value) {
        if (status == RFT_OK) {
            status = json_is_string(value)
                         ? check_place(name, json_string_value(value), shards, count, tensors, err)
                         : rft__error_set(err, RFT_E_ARG, 0, INDEX_NAME ": the file of a tensor is not a string");
        }
    }
    json_decref(root);
    return status;
}

static rft_status map_files(const rft__allocator *a, const char *folder, rft__checkpoint *c, rft_error *err) {
    char path[PATH_MAX];
    for (size_t i = 0; i < c->count; i++) {
        RFT_TRY(rft__path_join(folder, name_at(c, i), path, err));
        RFT_TRY(rft__map_file(path, &c->files[i], err));
        c->shards[i] = (rft__shard){name_at(c, i), c->files[i].bytes, c->files[i].size};
    }
    return rft__safetensors_parse(a, c->shards, c->count, &c->tensors, err);
}

static bool exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

static rft_status map_config(const char *folder, rft__checkpoint *c, rft_error *err) {
    char path[PATH_MAX];
    RFT_TRY(rft__path_join(folder, "config.json", path, err));
    const rft_status status = rft__map_file(path, &c->config, err);
    if (status == RFT_E_IO && err) {
        char reason[160];
        snprintf(reason, sizeof reason, "%.159s", err->message);
        rft__error_set(err, RFT_E_IO, err->native, "the model is a folder with config.json: %s", reason);
    }
    return status;
}

static rft_status map_quantize_config(const char *folder, rft__checkpoint *c, rft_error *err) {
    char path[PATH_MAX];
    RFT_TRY(rft__path_join(folder, "quantize_config.json", path, err));
    return exists(path) ? rft__map_file(path, &c->quantize, err) : RFT_OK;
}

/* name NULL: a whole folder. */
static rft_status open_in(const rft__allocator *a, const char *folder, const char *name, rft__checkpoint *c, rft_error *err) {
    char index[PATH_MAX];
    const bool given = name && ends_with(name, INDEX_END);
    RFT_TRY(map_config(folder, c, err));
    RFT_TRY(map_quantize_config(folder, c, err));
    RFT_TRY(rft__path_join(folder, given ? name : INDEX_NAME, index, err));
    if (given || (!name && exists(index))) {
        RFT_TRY(rft__map_file(index, &c->index, err));
        RFT_TRY(names_from_index(a, c, err));
    } else {
        RFT_TRY(names_from_file(a, name ? name : "model.safetensors", c, err));
    }
    RFT_TRY(map_files(a, folder, c, err));
    return c->index.bytes ? rft__checkpoint_check_index(c->index.bytes, c->index.size, c->shards, c->count, &c->tensors, err)
                          : RFT_OK;
}

rft_status rft__checkpoint_open(const rft__allocator *a, const char *path, rft__checkpoint *out, rft_error *err) {
    char folder[PATH_MAX];
    const char *name = NULL;
    rft_status status = RFT_OK;
    *out = (rft__checkpoint){0};
    if (!is_folder(path)) {
        RFT_TRY(rft__path_split(path, folder, &name, err));
    }
    status = open_in(a, name ? folder : path, name, out, err);
    if (status != RFT_OK) {
        rft__checkpoint_free(a, out);
    }
    return status;
}

void rft__checkpoint_free(const rft__allocator *a, rft__checkpoint *c) {
    rft__tensors_free(a, &c->tensors);
    for (size_t i = 0; i < c->count && c->files; i++) {
        rft__unmap_file(&c->files[i]);
    }
    rft__release(a, c->files, c->count * sizeof *c->files);
    rft__release(a, c->shards, c->count * sizeof *c->shards);
    rft__release(a, c->names, c->count * RFT_SHARD_NAME);
    rft__unmap_file(&c->quantize);
    rft__unmap_file(&c->index);
    rft__unmap_file(&c->config);
    *c = (rft__checkpoint){0};
}

uint64_t rft__checkpoint_bytes(const rft__checkpoint *c) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->count; i++) {
        bytes += c->files[i].size;
    }
    return bytes;
}
