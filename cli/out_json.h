/* SPDX-License-Identifier: Apache-2.0
 *
 * out_json.h - JSON lines on stdout.
 */
#ifndef OUT_JSON_H
#define OUT_JSON_H

#include "bench_row.h"

#include <jansson.h>

/* Keys: device kernel m n k x w y compute layout epi phase flops min_bytes intensity us us_min spread call_us tflops gbps bound
 * bound_us pct_roof err err_limit cold threads peer[{name, version, us, ratio}]. */
json_t *json_of_row(const bench_row *row);
/* null where it is not known, or NaN or infinite, which have no JSON form. */
json_t *json_known(double v, bool is_known);
/* A string from outside, such as a file's name: bytes that are not UTF-8, which JSON cannot hold, become '?'. NULL: null. */
json_t *json_text(const char *text);
/* Adds the keys of `more`, which is freed. */
void json_extend(json_t *object, json_t *more);
/* Prints on one line and frees. */
void json_print(json_t *object);

#endif
