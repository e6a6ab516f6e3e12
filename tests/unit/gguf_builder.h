/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_builder.h - writes GGUF files into memory: sound ones, and by overriding single fields, unsound ones.
 *
 * Used by test_gguf.c, test_model_layers.c. Fields are appended in file order; the caller patches bytes afterwards.
 */
#ifndef RFT_TESTS_GGUF_BUILDER_H
#define RFT_TESTS_GGUF_BUILDER_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64
};

typedef struct builder {
    _Alignas(8) unsigned char bytes[1 << 19];
    size_t size;
    uint64_t data_bytes; /* of the tensors described so far */
} builder;

static inline void put(builder *b, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) {
        b->bytes[b->size++] = (unsigned char)(value >> 8 * i);
    }
}

static inline void put_string(builder *b, const char *text) {
    put(b, strlen(text), 8);
    memcpy(b->bytes + b->size, text, strlen(text));
    b->size += strlen(text);
}

static inline void begin_file(builder *b, uint64_t tensors, uint64_t keys) {
    memset(b, 0, sizeof *b);
    put(b, 0x46554747, 4);
    put(b, 3, 4);
    put(b, tensors, 8);
    put(b, keys, 8);
}

static inline void put_u32_key(builder *b, const char *name, uint32_t value) {
    put_string(b, name);
    put(b, GGUF_U32, 4);
    put(b, value, 4);
}

static inline void put_string_key(builder *b, const char *name, const char *value) {
    put_string(b, name);
    put(b, GGUF_STRING, 4);
    put_string(b, value);
}

/* A matrix of n rows of k, or with n = 0 a vector of k; `bytes` of data, at the next multiple of 32. */
static inline void put_tensor(builder *b, const char *name, uint32_t type, uint64_t k, uint64_t n, uint64_t bytes) {
    put_string(b, name);
    put(b, n ? 2 : 1, 4);
    put(b, k, 8);
    if (n) {
        put(b, n, 8);
    }
    put(b, type, 4);
    put(b, b->data_bytes, 8);
    b->data_bytes += (bytes + 31) / 32 * 32;
}

/* Zeros to the alignment and for all data. */
static inline void end_file(builder *b) { b->size = (b->size + 31) / 32 * 32 + b->data_bytes; }

/* ---- a whole small model: hidden 64, heads 4 of 16, kv heads 2, ffn 96, vocabulary 128, 2 blocks ---- */

typedef struct tiny_options {
    const char *arch; /* NULL: llama */
    bool untied, biases;
    uint32_t second_type; /* GGUF type of block 1's ffn_down: 0 (f32) or 30 (bf16) */
    uint64_t second_ffn;  /* ffn size of block 1; 0: 96 */
    uint32_t experts;     /* > 0: one more key */
    uint32_t window;      /* the same */
} tiny_options;

static inline void put_tiny_matrix(builder *b, unsigned block, const char *part, uint32_t type, uint64_t k, uint64_t n) {
    char name[64];
    snprintf(name, sizeof name, "blk.%u.%s.weight", block, part);
    put_tensor(b, name, type, k, n, k * n * (type == 0 ? 4 : 2));
}

static inline void put_tiny_block(builder *b, const tiny_options *o, unsigned block) {
    const uint64_t ffn = block == 1 && o->second_ffn ? o->second_ffn : 96;
    put_tiny_matrix(b, block, "attn_q", 0, 64, 64);
    put_tiny_matrix(b, block, "attn_k", 0, 64, 32);
    put_tiny_matrix(b, block, "attn_v", 0, 64, 32);
    put_tiny_matrix(b, block, "attn_output", 0, 64, 64);
    put_tiny_matrix(b, block, "ffn_gate", 0, 64, ffn);
    put_tiny_matrix(b, block, "ffn_up", 0, 64, ffn);
    put_tiny_matrix(b, block, "ffn_down", block == 1 ? o->second_type : 0, ffn, 64);
    if (o->biases) {
        char name[64];
        snprintf(name, sizeof name, "blk.%u.attn_q.bias", block);
        put_tensor(b, name, 0, 64, 0, 256);
        snprintf(name, sizeof name, "blk.%u.attn_output.bias", block);
        put_tensor(b, name, 0, 64, 0, 256);
    }
}

static inline void put_tiny_size(builder *b, const char *arch, const char *suffix, uint32_t value) {
    char name[96];
    snprintf(name, sizeof name, "%s.%s", arch, suffix);
    put_u32_key(b, name, value);
}

static inline void tiny_model(builder *b, const tiny_options *o) {
    const char *arch = o->arch ? o->arch : "llama";
    begin_file(b, 1 + 14 + (o->untied ? 1 : 0) + (o->biases ? 4 : 0), 7 + (o->experts ? 1 : 0) + (o->window ? 1 : 0));
    put_string_key(b, "general.architecture", arch);
    put_string_key(b, "general.name", "tiny\033model");
    put_tiny_size(b, arch, "block_count", 2);
    put_tiny_size(b, arch, "embedding_length", 64);
    put_tiny_size(b, arch, "attention.head_count", 4);
    put_tiny_size(b, arch, "attention.head_count_kv", 2);
    put_tiny_size(b, arch, "context_length", 256);
    if (o->experts) {
        put_tiny_size(b, arch, "expert_count", o->experts);
    }
    if (o->window) {
        put_tiny_size(b, arch, "attention.sliding_window", o->window);
    }
    put_tensor(b, "token_embd.weight", 0, 64, 128, 64 * 128 * 4);
    put_tiny_block(b, o, 0);
    put_tiny_block(b, o, 1);
    if (o->untied) {
        put_tensor(b, "output.weight", 30, 64, 128, 64 * 128 * 2);
    }
    end_file(b);
}

#endif
