/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_choice.h - a plan's table from ranges of m to kernels and blocking, and how it is made, explained and run.
 * cpu_choose.c makes it, cpu_gemm.c runs it, cpu_backend.c hands both to plan and api. Immutable once made.
 */
#ifndef RFT_CPU_CPU_CHOICE_H
#define RFT_CPU_CPU_CHOICE_H

#include "cpu/cpu_device.h"
#include "cpu/cpu_partition.h"
#include "problem/stored.h"

/* Where the kernel's W comes from. */
typedef enum rft__w_source {
    RFT__W_PANELS, /* packed W as it is */
    RFT__W_DECODE, /* packed W, a strip at a time widened to f32 panels that all row tiles then share */
    RFT__W_UNPACK, /* packed W of codes, a strip at a time unpacked to bytes that all row tiles then share */
    RFT__W_PACK,   /* a view or dynamic W, a strip at a time packed into panels of the kernel's type */
    RFT__W_IN_PLACE /* a view or dynamic W, read where it lies */
} rft__w_source;

typedef struct rft__cpu_pick {
    const rft__cpu_kernel *kernel;
    rft__w_source source;
    int panels;      /* of a strip: nr / 16 */
    int64_t kc;      /* k of one pass over the register tiles */
    int64_t mc;      /* most rows of X packed at a time */
    int64_t nc;      /* panels whose partial sums stay in cache between passes; a multiple of `panels` */
} rft__cpu_pick;

typedef struct rft__cpu_range {
    int64_t m_last;
    rft__cpu_pick pick;
} rft__cpu_range;

enum { RFT__MAX_RANGES = 72, RFT__TABLE_M = 64 }; /* beyond TABLE_M rows one pick serves all */
enum { RFT__MAX_CANDIDATES = 256 };               /* kernels of all levels together */

struct rft__choice {
    rft__device *device;
    rft__problem p;
    bool low_bit;
    rft__packing packing; /* of a low-bit W */
    int64_t panel_stride; /* of a packed W: rft__cpu_panel_stride */
    int granule;          /* rft__panel_granule */
    int n_range;
    rft__cpu_range range[RFT__MAX_RANGES];
    bool forced;
    char fallback[160]; /* why a portable kernel serves, or empty */
};

static inline const rft__cpu_pick *rft__cpu_pick_at(const rft__choice *c, int64_t m) {
    int i = 0;
    while (i < c->n_range - 1 && m > c->range[i].m_last) {
        i++;
    }
    return &c->range[i].pick;
}

/* Panels of 16 columns a batch; a GLU W has its gate and up panels in pairs. */
static inline int64_t rft__cpu_panels(const rft__matrix *w) {
    return w->glu == RFT__GLU_NONE ? rft__ceil_div(w->n, RFT__PANEL) : 2 * rft__ceil_div(w->n / 2, RFT__PANEL);
}

/* Of a low-bit W. */
rft__packing rft__packing_of(const rft__matrix *w);
int64_t rft__cpu_panel_bytes(const rft__matrix *w);
/* A packed panel may be cut at multiples of so many k. */
int rft__panel_granule(const rft__matrix *w);

/* Bytes from one packed panel to the next. Streams that lie a multiple of 64 KiB apart meet in the same cache sets and memory
 * channels, so such a panel is followed by 1 KiB of zeros (Emerald Rapids, f32, K = 4096, m = 1, 2 threads: 19.3 -> 25.0
 * GB/s). */
static inline int64_t rft__cpu_panel_stride(const rft__matrix *w) {
    const int64_t bytes = rft__cpu_panel_bytes(w);
    return bytes != 0 && bytes % 65536 == 0 ? bytes + 1024 : bytes;
}

static inline int rft__cpu_unit(const rft__matrix *w) { return w->glu == RFT__GLU_NONE ? 1 : 2; }

rft_status rft__cpu_choose(rft__device *device, const rft__problem *p, const char *forced, rft__choice **out, rft_error *err);
void rft__cpu_choice_free(rft__device *device, rft__choice *choice);
void rft__cpu_explain(const rft__choice *choice, int64_t m, rft__text *text);

/* The threads' grid at m, and the workspace in bytes. */
rft__grid rft__cpu_grid(const rft__choice *c, const rft__cpu_pick *pick, int64_t m);
size_t rft__cpu_workspace(const rft__choice *c);
rft_status rft__cpu_run(rft__device *device, const rft__run *runs, uint32_t count, rft_error *err);

/* Packed weights: data bytes, packing by the threads that will read, and back. */
int64_t rft__cpu_packed_bytes(const rft__matrix *w);
rft_status rft__cpu_pack(rft__device *device, const rft__matrix *w, const rft__stored_w *from, void *data, rft_error *err);
void rft__cpu_unpack(const rft__matrix *w, const void *data, float *out, int64_t ld);
/* One panel of codes: its columns are rows first, first + step, ... of batch b, its k those of `order` (NULL: as stored).
 * cpu_pack.c calls it. */
void rft__cpu_pack_codes(const rft__matrix *w, const rft__stored_w *from, const int32_t *order, int64_t b, int64_t first,
                         int64_t step, int columns, char *panel);
/* Behind the panels of a sorted W: which k stands where in those of batch b. NULL: every k stands in its place. */
const int32_t *rft__cpu_order(const rft__matrix *w, const void *data, int64_t b);
/* The k at a place; whatever a damaged order holds, it is below w->k. */
static inline int64_t rft__cpu_order_at(const int32_t *order, int64_t place, int64_t k) {
    return order == NULL ? place : rft__min((uint32_t)order[place], k - 1);
}
/* Panel's source: its first row in W, the step from column to column in rows, and how many of the 16 columns exist. */
void rft__cpu_panel_rows(const rft__matrix *w, int64_t panel, int64_t *first, int64_t *step, int *columns);

#endif
