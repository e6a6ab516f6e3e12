/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_out.h - the fields of a GGUF v3 file, one behind the other, into a file that is replaced as a whole.
 *
 * Called by quantize.c and hf_gguf.c. The first failure sticks: later calls do nothing, and rft__gguf_out_end returns it.
 */
#ifndef RFT_MODEL_GGUF_OUT_H
#define RFT_MODEL_GGUF_OUT_H

#include "base/file.h"

#define RFT_GGUF_OUT_BUFFER ((size_t)1 << 16)

typedef struct rft__gguf_out {
    const rft__allocator *allocator;
    rft__writer writer;
    unsigned char *buffer;
    size_t held;     /* bytes in the buffer */
    uint64_t at;     /* bytes of the file so far */
    uint64_t n_keys; /* put so far */
    bool dry;        /* only n_keys counts; no file */
    rft_status status;
    rft_error *err;
} rft__gguf_out;

/* Opens the file. On failure there is nothing to end. */
rft_status rft__gguf_out_begin(const rft__allocator *a, const char *path, rft__gguf_out *out, rft_error *err);
/* Commits the file, or gives it up where status or an earlier call failed. */
rft_status rft__gguf_out_end(rft__gguf_out *out, rft_status status);

void rft__out_bytes(rft__gguf_out *out, const void *bytes, size_t size);
void rft__out_u32(rft__gguf_out *out, uint32_t value);
void rft__out_u64(rft__gguf_out *out, uint64_t value);
void rft__out_text(rft__gguf_out *out, const char *text); /* its length, then the bytes */
void rft__out_pad(rft__gguf_out *out, uint64_t alignment);

/* Keys with values. */
void rft__out_key_u32(rft__gguf_out *out, const char *key, uint32_t value);
void rft__out_key_f32(rft__gguf_out *out, const char *key, float value);
void rft__out_key_text(rft__gguf_out *out, const char *key, const char *text);

#endif
