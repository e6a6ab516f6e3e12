/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_trace.c - any bytes as a recorded run of any format: its rows are sound, and what they name is a product or refused.
 */
#include "fuzz_input.h"

#include "cli/trace/readers.h"
#include "cli/trace_product.h"

static void check_row(const trace_row *row) {
    const run_options base = {.device = "cpu", .batch = 1, .x = RFT_F32};
    const trace_call *c = &row->call;
    run_options o;
    char why[CLI_WHY] = "";
    require(row->calls >= 0 && row->us >= 0 && c->group < TRACE_GROUPS);
    require(memchr(c->name, 0, sizeof c->name) && memchr(c->w, 0, sizeof c->w) && memchr(c->epi, 0, sizeof c->epi));
    require(c->batch >= 0 && c->m >= 0 && c->n >= 0 && c->k >= 0 && trace_phase(c) != NULL);
    if (!trace_product(c, &base, &o, why)) {
        require(why[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned char *bytes = malloc(size ? size : 1); /* not a byte more that a reader could touch unseen */
    trace t = {.format = ""};
    char why[CLI_WHY] = "";
    if (!bytes) {
        return 0;
    }
    memcpy(bytes, data, size);
    const bool database = size >= 16 && memcmp(bytes, "SQLite format 3", 16) == 0;
    const bool good = database ? trace_read_nsight_bytes(&t, bytes, size, why) : trace_read(&t, (const char *)bytes, size, why);
    require(good || why[0] != '\0');
    for (size_t i = 0; i < t.n; i++) {
        check_row(&t.rows[i]);
    }
    trace_free(&t);
    free(bytes);
    return 0;
}
