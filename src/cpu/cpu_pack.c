/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_pack.c - packed weights: panels of 16 columns, [ceil(k / KR)][16][KR] elements or codes (packing.c), batch after batch.
 * Each slab is packed, and so first touched, by the thread that will read it. See docs/formats/packed-weight.md.
 */
#include "cpu/cpu_choice.h"
#include "cpu/cpuid.h"
#include "format/format.h"

#include <string.h>

void rft__cpu_panel_rows(const rft__matrix *w, int64_t panel, int64_t *first, int64_t *step, int *columns) {
    int64_t column = panel * RFT__PANEL, width = w->n;
    *first = column;
    *step = 1;
    if (w->glu != RFT__GLU_NONE) {
        const int64_t up = panel % 2;
        column = panel / 2 * RFT__PANEL;
        width = w->n / 2;
        *first = w->glu == RFT__GLU_HALVES ? up * width + column : 2 * column + up;
        *step = w->glu == RFT__GLU_HALVES ? 1 : 2;
    }
    *columns = (int)rft__max(0, rft__min(RFT__PANEL, width - column));
}

static int64_t panels_bytes(const rft__matrix *w) { return rft__cpu_panels(w) * w->batch * rft__cpu_panel_stride(w); }

int64_t rft__cpu_packed_bytes(const rft__matrix *w) {
    const int64_t panels = panels_bytes(w), order = w->sorted && panels != 0 ? 4 * w->k * w->batch : 0;
    return panels + rft__round_up(order, 64);
}

/* ---- the order of k where groups are not as they lie ---- */

const int32_t *rft__cpu_order(const rft__matrix *w, const void *data, int64_t b) {
    return w->sorted ? (const int32_t *)(const void *)((const char *)data + panels_bytes(w)) + b * w->k : NULL;
}

static rft_status pack_order(rft__device *device, const rft__matrix *w, const rft__stored_w *from, char *data, rft_error *err) {
    const size_t bytes = (size_t)rft__ceil_div(w->k, w->group_k) * sizeof(int64_t);
    int32_t *const order = (int32_t *)(void *)(data + panels_bytes(w));
    int64_t *const next = rft__alloc(&device->allocator, bytes, _Alignof(int64_t));
    if (next == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory to sort k (%zu bytes)", bytes);
    }
    rft_status status = RFT_OK;
    memset(order, 0, (size_t)(rft__cpu_packed_bytes(w) - panels_bytes(w)));
    for (int64_t b = 0; b < w->batch && status == RFT_OK; b++) {
        status = rft__stored_order(w, from, b, next, order + b * w->k, err);
    }
    rft__release(&device->allocator, next, bytes);
    return status;
}

/* ---- panels ---- */

typedef struct pack_job {
    const rft__device *device;
    int parts;
    const rft__matrix *w;
    const rft__stored_w *from;
    char *data;
} pack_job;

static void pack_panel(const pack_job *job, int64_t index) {
    const rft__matrix *w = job->w;
    const int64_t panels = rft__cpu_panels(w), size = (int64_t)rft__type_size(w->elem);
    int64_t first = 0, step = 0;
    int columns = 0;
    rft__cpu_panel_rows(w, index % panels, &first, &step, &columns);
    const int64_t stride = rft__cpu_panel_stride(w), bytes = rft__cpu_panel_bytes(w);
    char *panel = job->data + index * stride;
    if (rft__matrix_is_low_bit(w)) {
        const int64_t b = index / panels;
        rft__cpu_pack_codes(w, job->from, rft__cpu_order(w, job->data, b), b, first, step, columns, panel);
    } else {
        const char *source = (const char *)job->from->q + (index / panels * w->batch_stride + first * w->n_stride) * size;
        job->device->ops.to_same[w->elem](source, step * w->n_stride, w->k_stride, columns, RFT__PANEL, w->k, panel);
    }
    memset(panel + bytes, 0, (size_t)(stride - bytes));
}

static void pack_slab(void *arg, int i) {
    const pack_job *job = arg;
    const int unit = rft__cpu_unit(job->w);
    const int64_t units = rft__cpu_panels(job->w) / unit * job->w->batch;
    const rft__grid g = rft__grid_of_units(units, job->parts);
    const rft__part part = rft__grid_part(&g, i);
    for (int64_t p = part.unit0 * unit; p < part.unit1 * unit; p++) {
        pack_panel(job, p);
    }
}

rft_status rft__cpu_pack(rft__device *device, const rft__matrix *w, const rft__stored_w *from, void *data, rft_error *err) {
    const int64_t bytes = rft__cpu_packed_bytes(w);
    if (bytes == 0) {
        return RFT_OK; /* without K any number of panels, up to 2^63 columns' worth, takes no bytes */
    }
    if (w->sorted) {
        RFT_TRY(pack_order(device, w, from, data, err));
    }
    enum { WORTH_THREADS = 64 << 10 };
    pack_job job = {device, bytes < WORTH_THREADS ? 1 : device->threads, w, from, data};
    rft__pool_run(device->pool, job.parts, pack_slab, &job);
    return RFT_OK;
}

/* A view is W as its owner stores it. */
static void unpack_view(const rft__matrix *w, const char *data, float *out, int64_t ld) {
    const rft__format *format = rft__format_find(w->elem);
    for (int64_t row = 0; row < w->n * w->batch; row++) {
        const int64_t start = row / w->n * w->batch_stride + row % w->n * w->n_stride;
        for (int64_t k = 0; k < w->k; k++) {
            format->decode_blocks((const unsigned char *)data + (start + k * w->k_stride) * format->block_bytes, 1,
                                  &out[row * ld + k]);
        }
    }
}

/* Some k of one panel, widened by the portable level. */
static void widen_some(const rft__matrix *w, const rft__packing *packing, const char *panel, int64_t k, int64_t count,
                       float *wide) {
    const rft__isa_ops *ops = &rft__isa_at(0)->ops;
    if (packing != NULL) {
        ops->widen(packing, panel + rft__packing_bytes(packing, k), count, wide);
    } else {
        ops->decode[w->elem](panel + rft__panel_bytes(w->elem, RFT__PANEL, k), count, wide);
    }
}

void rft__cpu_unpack(const rft__matrix *w, const void *data, float *out, int64_t ld) {
    if (w->k == 0) {
        return;
    }
    if (w->view) {
        unpack_view(w, data, out, ld);
        return;
    }
    const bool low_bit = rft__matrix_is_low_bit(w);
    const rft__packing packing = low_bit ? rft__packing_of(w) : (rft__packing){.bits = 0};
    const int64_t panels = rft__cpu_panels(w);
    float wide[RFT__CHUNK * RFT__PANEL];
    for (int64_t index = 0; index < panels * w->batch; index++) {
        int64_t first = 0, step = 0;
        int columns = 0;
        rft__cpu_panel_rows(w, index % panels, &first, &step, &columns);
        const char *panel = (const char *)data + index * rft__cpu_panel_stride(w);
        float *rows = out + (index / panels * w->n + first) * ld;
        const int32_t *order = rft__cpu_order(w, data, index / panels);
        for (int64_t k = 0; k < w->k; k += RFT__CHUNK) {
            const int64_t count = rft__min(RFT__CHUNK, w->k - k);
            widen_some(w, low_bit ? &packing : NULL, panel, k, count, wide);
            for (int64_t i = 0; i < count * RFT__PANEL; i++) {
                if (i % RFT__PANEL < columns) {
                    rows[i % RFT__PANEL * step * ld + rft__cpu_order_at(order, k + i / RFT__PANEL, w->k)] = wide[i];
                }
            }
        }
    }
}
