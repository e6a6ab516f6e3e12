/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_cache.c - one file a cubin, written under another name and renamed. Called by jit.c.
 * Invariant: a file is used only if every byte of it was hashed and its header says the key that was asked for.
 */
#define _GNU_SOURCE 1
#include "cuda/jit_cache.h"

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MAGIC "RFTCUBIN"
#define VERSION 2u /* of the header */
#define MAX_FILE ((size_t)64 << 20)
#define CODE_ALIGN 64

typedef struct header { /* no padding: all of it is hashed */
    char magic[8];
    uint32_t version, serialized;
    int32_t registers, shared_bytes, spill_bytes, stack_bytes;
    uint64_t size; /* of the code, which follows */
    rft__jit_key key;
    uint64_t check; /* of the header with check = 0, and the code */
} header;
_Static_assert(sizeof(header) == 64, "padding would be hashed");

/* ---- keys ---- */

rft__jit_key rft__jit_key_start(void) {
    return (rft__jit_key){{RFT_HASH_SEED, RFT_HASH_SEED ^ 0x9e3779b97f4a7c15u}};
}

void rft__jit_key_add(rft__jit_key *key, const void *bytes, size_t size) {
    const uint64_t length = size;
    for (int i = 0; i < 2; i++) {
        key->word[i] = rft__hash(rft__hash(key->word[i], &length, sizeof length), bytes, size);
    }
}

void rft__jit_key_add_text(rft__jit_key *key, const char *text) {
    rft__jit_key_add(key, text, strlen(text));
}

/* ---- files ---- */

static bool file_path(const char *cache_dir, const rft__jit_key *key, char path[PATH_MAX]) {
    const int length =
        snprintf(path, PATH_MAX, "%s/cubin/%016" PRIx64 "%016" PRIx64 ".cubin", cache_dir, key->word[0], key->word[1]);
    return length >= 0 && length < PATH_MAX;
}

/* FNV-1a by words, in an eighth of the time; the shift lets a word's high bits reach the low ones. */
static uint64_t add_words(uint64_t sum, const char *bytes, size_t size) {
    const size_t whole = size / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        sum = (sum ^ word) * RFT_HASH_PRIME;
        sum ^= sum >> 32;
    }
    return rft__hash(sum, bytes + whole, size - whole);
}

static uint64_t checksum(header h, const void *code) {
    h.check = 0;
    return add_words(rft__hash(RFT_HASH_SEED, &h, sizeof h), code, h.size);
}

static bool is_sound(const header *h, const rft__jit_key *key, const char *code, size_t size) {
    return memcmp(h->magic, MAGIC, sizeof h->magic) == 0 && h->version == VERSION && h->size == size &&
           memcmp(&h->key, key, sizeof *key) == 0 && h->check == checksum(*h, code);
}

static bool take(const rft__allocator *a, const header *h, const char *code, rft__cubin *cubin) {
    void *data = rft__alloc(a, h->size, CODE_ALIGN);
    if (data == NULL) {
        return false;
    }
    *cubin = (rft__cubin){.data = memcpy(data, code, h->size),
                          .size = h->size,
                          .registers = h->registers,
                          .shared_bytes = h->shared_bytes,
                          .spill_bytes = h->spill_bytes,
                          .stack_bytes = h->stack_bytes,
                          .serialized = h->serialized != 0,
                          .cached = true};
    return true;
}

bool rft__jit_cache_read(const rft__allocator *a, const char *cache_dir, const rft__jit_key *key, rft__cubin *cubin) {
    char path[PATH_MAX], *bytes;
    size_t size;
    if (!file_path(cache_dir, key, path) || rft__file_read(a, path, MAX_FILE, &bytes, &size, NULL) != RFT_OK) {
        return false;
    }
    header h;
    bool found = false;
    if (size > sizeof h) {
        memcpy(&h, bytes, sizeof h);
        found = is_sound(&h, key, bytes + sizeof h, size - sizeof h) && take(a, &h, bytes + sizeof h, cubin);
    }
    rft__release(a, bytes, size + 1);
    return found;
}

static header make_header(const rft__jit_key *key, const rft__cubin *cubin) {
    header h = {.version = VERSION,
                .serialized = cubin->serialized,
                .registers = cubin->registers,
                .shared_bytes = cubin->shared_bytes,
                .spill_bytes = cubin->spill_bytes,
                .stack_bytes = cubin->stack_bytes,
                .size = cubin->size,
                .key = *key};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    h.check = checksum(h, cubin->data);
    return h;
}

rft_status rft__jit_cache_write(const rft__allocator *a, const char *cache_dir, const rft__jit_key *key, const rft__cubin *cubin,
                                rft_error *err) {
    char path[PATH_MAX];
    if (!file_path(cache_dir, key, path)) {
        RFT_FAIL(err, RFT_E_IO, "the name of the cache folder %s is too long", cache_dir);
    }
    const header h = make_header(key, cubin);
    size_t size;
    char *bytes = rft__add_size(sizeof h, cubin->size, &size) ? NULL : rft__alloc(a, size, CODE_ALIGN);
    if (bytes == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for the %zu bytes of %s", cubin->size, path);
    }
    memcpy(bytes, &h, sizeof h);
    memcpy(bytes + sizeof h, cubin->data, cubin->size);
    const rft_status status = rft__file_replace(path, bytes, size, err);
    rft__release(a, bytes, size);
    return status;
}
