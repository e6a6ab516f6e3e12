/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx_builder.h - writes ONNX files into memory: messages inside of each other, begun and ended, with any fields.
 *
 * Used by test_onnx.c and test_wire.c. A length takes five bytes, so that it can be filled in when its message ends.
 */
#ifndef RFT_TESTS_ONNX_BUILDER_H
#define RFT_TESTS_ONNX_BUILDER_H

#include <stdint.h>
#include <string.h>

enum { PB_VARINT = 0, PB_BYTES = 2, PB_LENGTH = 5, PB_DEEP = 16 };

typedef struct pb_builder {
    _Alignas(8) unsigned char bytes[1 << 16];
    size_t size, open[PB_DEEP]; /* where the lengths of messages that have begun stand */
    int depth;
} pb_builder;

static inline void pb_varint(pb_builder *b, uint64_t value) {
    do {
        b->bytes[b->size++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value > 0);
}

static inline void pb_number(pb_builder *b, uint32_t field, uint64_t value) {
    pb_varint(b, field << 3 | PB_VARINT);
    pb_varint(b, value);
}

static inline void pb_data(pb_builder *b, uint32_t field, const void *bytes, size_t size) {
    pb_varint(b, field << 3 | PB_BYTES);
    pb_varint(b, size);
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

static inline void pb_text(pb_builder *b, uint32_t field, const char *text) { pb_data(b, field, text, strlen(text)); }

static inline void pb_begin(pb_builder *b, uint32_t field) {
    pb_varint(b, field << 3 | PB_BYTES);
    b->open[b->depth++] = b->size;
    b->size += PB_LENGTH;
}

static inline void pb_end(pb_builder *b) {
    const size_t at = b->open[--b->depth], length = b->size - at - PB_LENGTH;
    for (int i = 0; i < PB_LENGTH; i++) {
        b->bytes[at + (size_t)i] = (unsigned char)((length >> 7 * i & 0x7f) | (i + 1 < PB_LENGTH ? 0x80 : 0));
    }
}

/* ---- ONNX ---- */

enum { ONNX_FLOAT = 1, ONNX_UINT8 = 2, ONNX_INT8 = 3, ONNX_INT64 = 7, ONNX_FLOAT16 = 10, ONNX_BFLOAT16 = 16, ONNX_INT4 = 22 };

static inline void onnx_begin(pb_builder *b) {
    b->size = 0;
    b->depth = 0;
    pb_number(b, 1, 9); /* ir_version */
    pb_begin(b, 7);
    pb_text(b, 2, "graph");
}

static inline void onnx_end(pb_builder *b) { pb_end(b); }

/* dims end with 0; rows 0: one dimension. data NULL: the caller adds it before onnx_end_tensor. */
static inline void onnx_begin_tensor(pb_builder *b, uint32_t field, const char *name, int type, int64_t rows, int64_t columns) {
    pb_begin(b, field);
    if (rows > 0) {
        pb_number(b, 1, (uint64_t)rows);
    }
    pb_number(b, 1, (uint64_t)columns);
    pb_number(b, 2, (uint64_t)type);
    pb_text(b, 8, name);
}

static inline void onnx_initializer(pb_builder *b, const char *name, int type, int64_t rows, int64_t columns, const void *data,
                                    size_t size) {
    onnx_begin_tensor(b, 5, name, type, rows, columns);
    pb_data(b, 9, data, size);
    pb_end(b);
}

/* inputs: names with spaces between. The caller may add attributes before pb_end. */
static inline void onnx_begin_node(pb_builder *b, const char *op, const char *inputs, const char *output) {
    pb_begin(b, 1);
    for (const char *from = inputs; *from; from += strspn(from, " ")) {
        const size_t length = strcspn(from, " ");
        pb_data(b, 1, from, *from == '-' ? 0 : length); /* "-": it is left out */
        from += length;
    }
    pb_text(b, 2, output);
    pb_text(b, 4, op);
}

static inline void onnx_number(pb_builder *b, const char *name, int64_t value) {
    pb_begin(b, 5);
    pb_text(b, 1, name);
    pb_number(b, 3, (uint64_t)value);
    pb_end(b);
}

static inline void onnx_node(pb_builder *b, const char *op, const char *inputs, const char *output) {
    onnx_begin_node(b, op, inputs, output);
    pb_end(b);
}

#endif
