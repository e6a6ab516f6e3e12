/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_out.c - see gguf_out.h. Small fields meet in a buffer; large ones go straight to the file.
 */
#include "gguf_out.h"

#include "base/error.h"

#include <string.h>

enum { KEY_U32 = 4, KEY_F32 = 6, KEY_TEXT = 8 };

rft_status rft__gguf_out_begin(const rft__allocator *a, const char *path, rft__gguf_out *out, rft_error *err) {
    *out = (rft__gguf_out){.allocator = a, .err = err};
    out->buffer = rft__alloc(a, RFT_GGUF_OUT_BUFFER, sizeof(void *));
    if (!out->buffer) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory to write '%.99s'", path);
    }
    const rft_status status = rft__writer_open(a, path, &out->writer, err);
    if (status != RFT_OK) {
        rft__release(a, out->buffer, RFT_GGUF_OUT_BUFFER);
    }
    return status;
}

static void flush(rft__gguf_out *out) {
    if (out->status == RFT_OK && out->held > 0) {
        out->status = rft__writer_put(&out->writer, out->buffer, out->held, out->err);
    }
    out->held = 0;
}

rft_status rft__gguf_out_end(rft__gguf_out *out, rft_status status) {
    flush(out);
    status = status != RFT_OK ? status : out->status;
    if (status == RFT_OK) {
        status = rft__writer_commit(out->allocator, &out->writer, out->err);
    } else {
        rft__writer_abandon(out->allocator, &out->writer);
    }
    rft__release(out->allocator, out->buffer, RFT_GGUF_OUT_BUFFER);
    return status;
}

void rft__out_bytes(rft__gguf_out *out, const void *bytes, size_t size) {
    if (out->dry) {
        return;
    }
    out->at += size;
    if (size > RFT_GGUF_OUT_BUFFER - out->held) {
        flush(out);
    }
    if (size <= RFT_GGUF_OUT_BUFFER) {
        memcpy(out->buffer + out->held, bytes, size);
        out->held += size;
    } else if (out->status == RFT_OK) {
        out->status = rft__writer_put(&out->writer, bytes, size, out->err);
    }
}

static void put_integer(rft__gguf_out *out, uint64_t value, unsigned bytes) {
    unsigned char field[8];
    for (unsigned i = 0; i < bytes; i++) {
        field[i] = (unsigned char)(value >> 8 * i);
    }
    rft__out_bytes(out, field, bytes);
}

void rft__out_u32(rft__gguf_out *out, uint32_t value) { put_integer(out, value, 4); }

void rft__out_u64(rft__gguf_out *out, uint64_t value) { put_integer(out, value, 8); }

void rft__out_text(rft__gguf_out *out, const char *text) {
    rft__out_u64(out, strlen(text));
    rft__out_bytes(out, text, strlen(text));
}

void rft__out_pad(rft__gguf_out *out, uint64_t alignment) {
    while (out->at % alignment != 0) {
        put_integer(out, 0, 1);
    }
}

static void begin_key(rft__gguf_out *out, const char *key, uint32_t type) {
    rft__out_text(out, key);
    rft__out_u32(out, type);
    out->n_keys++;
}

void rft__out_key_u32(rft__gguf_out *out, const char *key, uint32_t value) {
    begin_key(out, key, KEY_U32);
    rft__out_u32(out, value);
}

void rft__out_key_f32(rft__gguf_out *out, const char *key, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    begin_key(out, key, KEY_F32);
    rft__out_u32(out, bits);
}

void rft__out_key_text(rft__gguf_out *out, const char *key, const char *text) {
    begin_key(out, key, KEY_TEXT);
    rft__out_text(out, text);
}
