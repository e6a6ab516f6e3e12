/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_epilogue.c - one OP(...) for each op of a list. See cuda_epilogue.h.
 */
#include "cuda/cuda_epilogue.h"
#include "epilogue/epi_math.h"

#include <math.h>

static const struct {
    const char *kind, *access;
} names[] = {
#define RFT_EPI_OP(kind, name, access, ...) [RFT_EPI_##kind] = {#kind, #access},
#include "epilogue/epi_ops.def"
#undef RFT_EPI_OP
};

/* Exact: hexadecimal, or the bits of what has no literal. */
static void add_float(rft__text *t, float value) {
    if (isfinite(value)) {
        rft__text_add(t, "%af", (double)value);
    } else {
        rft__text_add(t, "rft__as_float(0x%08xu)", rft__as_bits(value));
    }
}

static void add_op(rft__text *t, const rft_epi_op *op) {
    rft__text_add(t, " OP(%s, %s, %d, %u, ", names[op->kind].kind, names[op->kind].access, (int)op->type, op->operand);
    add_float(t, op->alpha);
    rft__text_add(t, ", ");
    add_float(t, op->beta);
    rft__text_add(t, ")");
}

void rft__cuda_epilogue_text(const rft__epi *epi, rft__text *t) {
    rft__text_add(t, "#define RFT_EPI_COUNT %d\n#define RFT_EPI(OP)", epi->n_op);
    for (int i = 0; i < epi->n_op; i++) {
        add_op(t, &epi->op[i]);
    }
    rft__text_add(t, "\n");
}
