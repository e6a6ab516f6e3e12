/* SPDX-License-Identifier: Apache-2.0
 *
 * out_json.c - one JSON object a line for programs. Called by every command that has --json.
 * Keys never change meaning; a value that is not known is null.
 */
#include "out_json.h"

#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *json_known(double v, bool is_known) {
    json_t *number = is_known ? json_real(v) : NULL;
    return number ? number : json_null();
}

json_t *json_text(const char *text) {
    json_t *string = text ? json_string(text) : json_null();
    if (string)
        return string;
    char *copy = cli_alloc(strlen(text) + 1, 1);
    for (size_t i = 0; text[i]; i++)
        copy[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    string = json_string(copy);
    free(copy);
    return string;
}

void json_extend(json_t *object, json_t *more) {
    json_object_update(object, more);
    json_decref(more);
}

static json_t *peers_of(const bench_row *row) {
    json_t *list = json_array();
    for (int i = 0; i < row->n_peer; i++) {
        const row_peer *p = &row->peer[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o}", "name", p->name, "version", p->version, "us",
                                              json_known(p->us, true), "ratio", json_known(p->ratio, true)));
    }
    return list;
}

json_t *json_of_row(const bench_row *r) {
    bool roof = r->bound_us > 0, timed = r->us > 0;
    json_t *object = json_pack("{s:s, s:s, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "device", r->device, "kernel",
                               r->kernel, "m", (json_int_t)r->m, "n", (json_int_t)r->n, "k", (json_int_t)r->k, "x", r->x, "w",
                               r->w, "y", r->y, "compute", r->compute, "layout", r->layout, "epi", r->epi, "phase", r->phase);
    json_t *numbers = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:b, s:i, s:o}", "flops",
                                json_known(r->flops, true), "min_bytes", json_known(r->min_bytes, true), "intensity",
                                json_known(r->intensity, true), "us", json_known(r->us, timed), "us_min",
                                json_known(r->us_min, timed), "spread", json_known(r->spread, timed), "call_us",
                                json_known(r->call_us, timed), "tflops", json_known(r->tflops, timed), "gbps",
                                json_known(r->gbps, timed), "bound", r->bound, "bound_us", json_known(r->bound_us, roof),
                                "pct_roof", json_known(r->pct_roof, roof && timed), "err", json_known(r->err, timed), "err_limit",
                                json_known(r->err_limit, timed), "cold", r->cold, "threads", r->threads, "peer", peers_of(r));
    json_t *shares = json_pack("{s:o, s:o, s:o}", "packed_bytes", json_known(r->packed_bytes, r->packed_bytes > 0), "pct_read",
                               json_known(r->pct_read, r->pct_read > 0), "pct_peak", json_known(r->pct_peak, r->pct_peak > 0));
    json_extend(object, numbers);
    json_extend(object, shares);
    return object;
}

void json_print(json_t *object) {
    json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(7));
    putchar('\n');
    fflush(stdout);
    json_decref(object);
}

void json_bench_row(const bench_row *row) { json_print(json_of_row(row)); }
