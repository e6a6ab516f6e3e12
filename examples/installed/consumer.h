/* SPDX-License-Identifier: Apache-2.0
 *
 * consumer.h - one layer y = x W^T in f32, between the two files of the example.
 */
#ifndef CONSUMER_H
#define CONSUMER_H

#include <rooftile.h>

/* m rows of k floats by W[n][k]; W is given as it is stored, and used without a packed copy. */
rft_status consumer_run(const float *x, const float *w, float *y, int64_t m, int64_t n, int64_t k, rft_error *err);

#endif
