/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_product.h - a recorded product as the options that plan, bound and run it. Called by trace and replay.
 */
#ifndef TRACE_PRODUCT_H
#define TRACE_PRODUCT_H

#include "options.h"
#include "trace/trace.h"

/* What the trace tells, and `base` where it does not: x of a product whose types are not known (none: it is refused), layout nt,
 * no epilogue. False: `why` says why it is no product that this library runs. */
bool trace_product(const trace_call *call, const run_options *base, run_options *out, char why[CLI_WHY]);

#endif
