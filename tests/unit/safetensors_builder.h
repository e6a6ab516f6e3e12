/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors_builder.h - writes safetensors files into memory: a header of any text, and data behind it.
 *
 * Used by test_safetensors.c, test_checkpoint.c and others. Tensors added by st_add lie end to end, as the format wants.
 */
#ifndef RFT_TESTS_SAFETENSORS_BUILDER_H
#define RFT_TESTS_SAFETENSORS_BUILDER_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct st_builder {
    char header[1 << 16];
    size_t header_size;
    unsigned char data[1 << 20];
    size_t data_size;
    _Alignas(8) unsigned char bytes[(1 << 20) + (1 << 16) + 64];
    size_t size; /* of bytes, after st_end */
} st_builder;

static inline void st_begin(st_builder *b) {
    memset(b, 0, sizeof *b);
    b->header_size = (size_t)snprintf(b->header, sizeof b->header, "{\"__metadata__\":{\"format\":\"pt\"}");
}

/* shape: "[2,3]". Returns where the data go, zeroed. */
static inline void *st_add(st_builder *b, const char *name, const char *dtype, const char *shape, size_t bytes) {
    void *place = b->data + b->data_size;
    b->header_size += (size_t)snprintf(b->header + b->header_size, sizeof b->header - b->header_size,
                                       ",\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}", name, dtype, shape,
                                       b->data_size, b->data_size + bytes);
    b->data_size += bytes;
    return place;
}

/* A header as it stands, and `data` zero bytes behind it. */
static inline void st_raw(st_builder *b, const char *header, size_t data) {
    const uint64_t length = strlen(header);
    memset(b->bytes, 0, sizeof b->bytes);
    for (unsigned i = 0; i < 8; i++) {
        b->bytes[i] = (unsigned char)(length >> 8 * i);
    }
    memcpy(b->bytes + 8, header, length);
    b->size = 8 + length + data;
}

/* pad: the header ends on a multiple of 8, as the format's own library writes it. */
static inline void st_finish(st_builder *b, int pad) {
    b->header[b->header_size++] = '}';
    while (pad && b->header_size % 8 != 0) {
        b->header[b->header_size++] = ' ';
    }
    b->header[b->header_size] = 0;
    st_raw(b, b->header, b->data_size);
    memcpy(b->bytes + 8 + b->header_size, b->data, b->data_size);
}

static inline void st_end(st_builder *b) { st_finish(b, 1); }

/* ---- a whole small model: hidden 64, heads 4 of 16, kv heads 2, ffn 96, vocabulary 128 ---- */

#define ST_TINY_SIZES                                                                                                            \
    "\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,\"intermediate_size\":96,\"vocab_size\":128,"           \
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"torch_dtype\":\"float32\""

/* Deterministic values in -1..1. */
static inline float st_value(unsigned i) { return (float)((int)(i * 2654435761u >> 16 & 0xffffu) - 32768) / 32768.0f; }

static inline void st_add_f32(st_builder *b, const char *name, int n, int k) {
    char shape[32];
    snprintf(shape, sizeof shape, n ? "[%d,%d]" : "[%d]", n ? n : k, k);
    const int count = (n ? n : 1) * k;
    float *data = st_add(b, name, "F32", shape, (size_t)count * sizeof(float));
    for (int i = 0; i < count; i++) {
        const float value = st_value((unsigned)i + (unsigned)b->data_size);
        memcpy(data + i, &value, sizeof value);
    }
}

static const struct {
    const char *name;
    int n, k;
} st_tiny_parts[] = {{"self_attn.q_proj", 64, 64}, {"self_attn.k_proj", 32, 64}, {"self_attn.v_proj", 32, 64},
                     {"self_attn.o_proj", 64, 64}, {"mlp.gate_proj", 96, 64},    {"mlp.up_proj", 96, 64},
                     {"mlp.down_proj", 64, 96},    {"input_layernorm", 0, 64},   {"post_attention_layernorm", 0, 64}};

enum { ST_TINY_PARTS = sizeof st_tiny_parts / sizeof st_tiny_parts[0] };

static inline void st_tiny_block(st_builder *b, int block) {
    for (int i = 0; i < ST_TINY_PARTS; i++) {
        char name[96];
        snprintf(name, sizeof name, "model.layers.%d.%s.weight", block, st_tiny_parts[i].name);
        st_add_f32(b, name, st_tiny_parts[i].n, st_tiny_parts[i].k);
    }
}

static inline void st_tiny_ends(st_builder *b) {
    st_add_f32(b, "model.embed_tokens.weight", 128, 64);
    st_add_f32(b, "model.norm.weight", 0, 64);
    st_add_f32(b, "lm_head.weight", 128, 64);
}

#endif
