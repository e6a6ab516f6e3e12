/* SPDX-License-Identifier: Apache-2.0
 *
 * amx_standin.h - the tile instructions in plain C, with the names of src/cpu/amx/tile_amx.h, whose guard it takes: a file that
 * includes it first and then src/cpu/amx/gemm_amx.c runs that very text on any machine. Each thread has tiles of its own.
 * Where the CPU would fault (no configuration, shapes that do not fit) the program ends with a message.
 * Meaning by the manual (Intel SDM 2, TDPBF16PS, TDPBSUD): see rft__standin_dot and rft__standin_dot_i8.
 */
#ifndef RFT_CPU_AMX_TILE_AMX_H
#define RFT_CPU_AMX_TILE_AMX_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RFT__STANDIN_TILES = 8, RFT__STANDIN_ROWS = 16, RFT__STANDIN_BYTES = 64 };

typedef struct rft__standin {
    unsigned char config[64]; /* all zero: none */
    unsigned char tile[RFT__STANDIN_TILES][RFT__STANDIN_ROWS][RFT__STANDIN_BYTES];
    long products;
} rft__standin;

static _Thread_local rft__standin rft__standin_here;

static inline void rft__standin_check(bool right, const char *what) {
    if (!right) {
        fprintf(stderr, "tiles: %s\n", what);
        abort();
    }
}

static inline int rft__standin_rows(int t) { return rft__standin_here.config[48 + t]; }
static inline int rft__standin_bytes(int t) {
    return rft__standin_here.config[16 + 2 * t] | rft__standin_here.config[17 + 2 * t] << 8;
}

static inline void rft__standin_configure(const void *p) {
    rft__standin *s = &rft__standin_here;
    memset(s->tile, 0, sizeof s->tile);
    memcpy(s->config, p, sizeof s->config);
    rft__standin_check(s->config[0] == 1 && s->config[1] == 0, "palette or start row of the configuration");
    for (int i = 2; i < 16; i++) {
        rft__standin_check(s->config[i] == 0, "reserved bytes of the configuration");
    }
    for (int t = 0; t < RFT__STANDIN_TILES; t++) {
        const int rows = rft__standin_rows(t), bytes = rft__standin_bytes(t);
        rft__standin_check(rows <= RFT__STANDIN_ROWS && bytes <= RFT__STANDIN_BYTES, "size of a tile");
        rft__standin_check((rows == 0) == (bytes == 0), "a tile without rows has no bytes");
    }
}

static inline void rft__standin_release(void) { memset(&rft__standin_here, 0, offsetof(rft__standin, products)); }

static inline void rft__standin_zero(int t) {
    rft__standin_check(rft__standin_rows(t) > 0, "a tile without a shape is zeroed");
    memset(rft__standin_here.tile[t], 0, sizeof rft__standin_here.tile[t]);
}

static inline void rft__standin_load(int t, const void *p, int64_t stride) {
    rft__standin_check(rft__standin_rows(t) > 0, "a tile without a shape is loaded");
    memset(rft__standin_here.tile[t], 0, sizeof rft__standin_here.tile[t]);
    for (int r = 0; r < rft__standin_rows(t); r++) {
        memcpy(rft__standin_here.tile[t][r], (const char *)p + r * stride, (size_t)rft__standin_bytes(t));
    }
}

static inline void rft__standin_store(int t, void *p, int64_t stride) {
    rft__standin_check(rft__standin_rows(t) > 0, "a tile without a shape is stored");
    for (int r = 0; r < rft__standin_rows(t); r++) {
        memcpy((char *)p + r * stride, rft__standin_here.tile[t][r], (size_t)rft__standin_bytes(t));
    }
}

/* Denormals in and out are zeros of their sign, whatever MXCSR says. */
static inline float rft__standin_flush(float v) { return fabsf(v) < 0x1p-126f ? copysignf(0.0f, v) : v; }

static inline float rft__standin_bf16(const unsigned char *p) {
    const uint32_t bits = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 24;
    float v;
    memcpy(&v, &bits, sizeof v);
    return rft__standin_flush(v);
}

static inline float rft__standin_fma(float a, float b, float sum) { return rft__standin_flush(fmaf(a, b, sum)); }

/* Row m, column n of the sums: products of even k and those of odd k are FMA chains of their own, from 0 on; their two sums are
 * added, and then added to what was there. */
static inline float rft__standin_element(float sum, int x, int w, int m, int n) {
    float even = 0.0f, odd = 0.0f;
    for (int k = 0; k < rft__standin_bytes(x) / 4; k++) {
        const unsigned char *xk = rft__standin_here.tile[x][m] + 4 * k, *wk = rft__standin_here.tile[w][k] + 4 * n;
        even = rft__standin_fma(rft__standin_bf16(xk), rft__standin_bf16(wk), even);
        odd = rft__standin_fma(rft__standin_bf16(xk + 2), rft__standin_bf16(wk + 2), odd);
    }
    return rft__standin_flush(rft__standin_flush(sum) + rft__standin_flush(even + odd));
}

static inline void rft__standin_check_shapes(int sums, int x, int w) {
    const int rows = rft__standin_rows(sums);
    rft__standin_check(rows > 0 && rows == rft__standin_rows(x) && rft__standin_bytes(sums) == rft__standin_bytes(w) &&
                           rft__standin_bytes(x) / 4 == rft__standin_rows(w) && rft__standin_bytes(x) % 4 == 0 && sums != x &&
                           sums != w && x != w,
                       "shapes of a product");
}

static inline void rft__standin_dot(int sums, int x, int w) {
    const int rows = rft__standin_rows(sums), columns = rft__standin_bytes(sums) / 4;
    rft__standin_check_shapes(sums, x, w);
    for (int m = 0; m < rows; m++) {
        for (int n = 0; n < columns; n++) {
            float v;
            memcpy(&v, rft__standin_here.tile[sums][m] + 4 * n, sizeof v);
            v = rft__standin_element(v, x, w, m, n);
            memcpy(rft__standin_here.tile[sums][m] + 4 * n, &v, sizeof v);
        }
    }
    rft__standin_here.products++;
}

/* Sums wrap. */
static inline void rft__standin_dot_i8(int sums, int x, int w) {
    const int rows = rft__standin_rows(sums), columns = rft__standin_bytes(sums) / 4;
    rft__standin_check_shapes(sums, x, w);
    for (int m = 0; m < rows; m++) {
        for (int n = 0; n < columns; n++) {
            uint32_t sum;
            memcpy(&sum, rft__standin_here.tile[sums][m] + 4 * n, sizeof sum);
            for (int k = 0; k < rft__standin_bytes(x); k++) {
                const signed char xk = (signed char)rft__standin_here.tile[x][m][k];
                sum += (uint32_t)(xk * rft__standin_here.tile[w][k / 4][4 * n + k % 4]);
            }
            memcpy(rft__standin_here.tile[sums][m] + 4 * n, &sum, sizeof sum);
        }
    }
    rft__standin_here.products++;
}

#define RFT_TILE_CONFIGURE(p)         rft__standin_configure(p)
#define RFT_TILE_CONFIG_READ(p)       memcpy(p, rft__standin_here.config, sizeof rft__standin_here.config)
#define RFT_TILE_RELEASE()            rft__standin_release()
#define RFT_TILE_ZERO(t)              rft__standin_zero(t)
#define RFT_TILE_LOAD(t, p, bytes)    rft__standin_load(t, p, bytes)
#define RFT_TILE_STORE(t, p, bytes)   rft__standin_store(t, p, bytes)
#define RFT_TILE_DOT_BF16(sums, x, w) rft__standin_dot(sums, x, w)
#define RFT_TILE_DOT_I8(sums, x, w)   rft__standin_dot_i8(sums, x, w)

static inline void rft__tile_pad(void *dst, const void *src, int bytes) {
    memset(dst, 0, RFT__STANDIN_BYTES);
    memcpy(dst, src, (size_t)bytes);
}

#endif
