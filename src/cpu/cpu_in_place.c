/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_in_place.c - see cpu_in_place.h. Kernels of columns read 16 columns a panel and nothing else, so the last panel is read
 * from the 16 columns that end W (32 of an interleaved GLU pair), and gate and up columns that alternate are read as they come:
 * sums lie in lanes of their own, and the few that are read twice are dropped when the rest moves to its place.
 */
#include "cpu/cpu_in_place.h"

#include "cpu/cpu_choice.h"

#include <string.h>

enum { PAIR = 2 * RFT__PANEL };

/* First column that a kernel of columns reads for a panel. */
static int64_t column_read(const rft__matrix *w, int64_t panel) {
    switch (w->glu) {
    case RFT__GLU_NONE:
        return rft__min(panel * RFT__PANEL, w->n - RFT__PANEL);
    case RFT__GLU_HALVES:
        return panel % 2 * (w->n / 2) + rft__min(panel / 2 * RFT__PANEL, w->n / 2 - RFT__PANEL);
    default:
        return rft__min(panel / 2 * PAIR, w->n - PAIR) + panel % 2 * RFT__PANEL;
    }
}

rft__w_lines rft__in_place_lines(const rft__matrix *w, rft__w_place at, int64_t panel, int64_t k0) {
    const int64_t size = (int64_t)rft__type_size(w->elem), last = rft__cpu_panels(w) - 1;
    rft__w_lines lines = {.stride = at.stride};
    for (int p = 0; p < RFT__MAX_PANELS; p++) {
        const int64_t index = rft__min(panel + p, last);
        int64_t first = 0, step = 0;
        rft__cpu_panel_rows(w, index, &first, &step, &lines.columns[p]);
        if (w->order == RFT_K_CONTIGUOUS) {
            lines.panel[p] = at.w + first * at.stride + k0 * size;
            lines.stride = step * at.stride;
        } else {
            lines.panel[p] = at.w + k0 * at.stride + column_read(w, index) * size;
        }
    }
    return lines;
}

int64_t rft__in_place_step(const rft__matrix *w, int panels) {
    return panels * RFT__PANEL * (int64_t)rft__type_size(w->elem) / (w->glu == RFT__GLU_HALVES ? 2 : 1);
}

/* Where column j of 16 or of 32 lies in what was read, `shift` columns earlier. */
static void settle_pair(float *gate, float *up, int64_t shift) {
    float read[PAIR];
    memcpy(read, gate, RFT__PANEL * sizeof *read);
    memcpy(read + RFT__PANEL, up, RFT__PANEL * sizeof *read);
    for (int64_t i = 0; i < RFT__PANEL && shift + 2 * i < PAIR; i++) {
        gate[i] = read[shift + 2 * i];
        up[i] = read[shift + 2 * i + 1];
    }
}

void rft__in_place_settle(const rft__matrix *w, int64_t panel, int panels, int64_t rows, float *acc) {
    const bool alternate = w->glu == RFT__GLU_INTERLEAVED;
    for (int p = 0; p < panels; p += alternate ? 2 : 1) {
        int64_t first = 0, step = 0;
        int columns = 0;
        rft__cpu_panel_rows(w, panel + p, &first, &step, &columns);
        const int shift = (RFT__PANEL - columns) * (alternate ? 2 : 1);
        for (int64_t r = 0; r < rows && (alternate || shift > 0); r++) {
            float *sums = acc + (r * panels + p) * RFT__PANEL;
            if (alternate) {
                settle_pair(sums, sums + RFT__PANEL, shift);
            } else {
                memmove(sums, sums + shift, (size_t)columns * sizeof *sums);
            }
        }
    }
}
