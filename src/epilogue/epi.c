/* SPDX-License-Identifier: Apache-2.0
 *
 * epi.c - checks, canonical form, traffic and text of an epilogue. See epi.h; what an op needs is in epi_ops.def.
 */
#include "epilogue/epi.h"

#include "base/alloc.h"
#include "base/type.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RFT__EPI_ALPHA 1u
#define RFT__EPI_BETA 2u

/* The Philox counter holds element / 4 below bit 44 and the batch above it. */
#define RFT__DROPOUT_MAX_ELEMENTS ((int64_t)1 << 46)
#define RFT__DROPOUT_MAX_BATCH ((int64_t)1 << 16)

typedef struct op_info {
    const char *name;
    rft__epi_access access;
    unsigned parameters;
} op_info;

static const op_info infos[] = {
#define RFT_EPI_OP(kind, name, access, parameters, ...) [RFT_EPI_##kind] = {#name, RFT__EPI_##access, parameters},
#include "epilogue/epi_ops.def"
#undef RFT_EPI_OP
};

static const op_info *info_of(rft_epi_kind kind) {
    const unsigned i = (unsigned)kind;
    return i < sizeof infos / sizeof *infos && infos[i].name ? &infos[i] : NULL;
}

static bool quantizes(rft_epi_kind kind) { return kind == RFT_EPI_QUANTIZE || kind == RFT_EPI_QUANTIZE_ROWS; }

const char *rft__epi_name(rft_epi_kind kind) {
    const op_info *info = info_of(kind);
    return info ? info->name : kind == RFT_EPI_QUANTIZE ? "quantize" : kind == RFT_EPI_QUANTIZE_ROWS ? "quantize_rows" : NULL;
}

rft__epi_access rft__epi_access_of(rft_epi_kind kind) {
    const op_info *info = info_of(kind);
    return info ? info->access : RFT__EPI_NONE;
}

bool rft__epi_is_glu(rft_epi_kind kind) { return rft__epi_access_of(kind) == RFT__EPI_PAIR; }

static bool has_operand(rft__epi_access access) { return access != RFT__EPI_NONE && access != RFT__EPI_PAIR; }

static bool has_type(rft__epi_access access) {
    return access == RFT__EPI_MATRIX || access == RFT__EPI_ROW || access == RFT__EPI_COLUMN;
}

/* ---- the list ---- */

static rft_status check_operand_field(const rft_epi_op *op, const op_info *info, uint32_t i, rft_error *err) {
    if (has_type(info->access) && !rft__type_is_float(op->type)) {
        RFT_FAIL(err, RFT_E_ARG, "epi[%u].type is %d; the operand of %s must be f32, bf16 or f16", i, (int)op->type, info->name);
    }
    if (!has_type(info->access) && op->type != 0) {
        RFT_FAIL(err, RFT_E_ARG, "epi[%u].type is %s; %s has no typed operand, so it must be 0", i, rft__type_name(op->type),
                 info->name);
    }
    if (has_operand(info->access) && op->operand >= RFT_MAX_OPERANDS) {
        RFT_FAIL(err, RFT_E_ARG, "epi[%u].operand is %u; it must be below %d", i, op->operand, RFT_MAX_OPERANDS);
    }
    return RFT_OK;
}

static rft_status check_parameters(const rft_epi_op *op, uint32_t i, rft_error *err) {
    const double alpha = (double)op->alpha, beta = (double)op->beta;
    if (op->kind == RFT_EPI_CLAMP && !(alpha <= beta)) {
        RFT_FAIL(err, RFT_E_ARG, "epi[%u] clamps to %g..%g; alpha must not be above beta, neither NaN", i, alpha, beta);
    }
    if (op->kind == RFT_EPI_DROPOUT && !(alpha >= 0 && alpha < 1)) {
        RFT_FAIL(err, RFT_E_ARG, "epi[%u].alpha is %g; the probability of dropping must be at least 0 and below 1", i, alpha);
    }
    return RFT_OK;
}

static bool does_nothing(const rft_epi_op *op) {
    return (op->kind == RFT_EPI_SCALE && op->alpha == 1.0f) || (op->kind == RFT_EPI_ADD && op->beta == 0.0f);
}

static rft_epi_op canonical(const rft_epi_op *op, const op_info *info) {
    return (rft_epi_op){
        .kind = op->kind,
        .type = op->type,
        .operand = has_operand(info->access) ? op->operand : 0,
        .alpha = info->parameters & RFT__EPI_ALPHA ? op->alpha : 0,
        .beta = info->parameters & RFT__EPI_BETA ? op->beta : 0,
    };
}

static void append(rft__epi *epi, rft_epi_op op) {
    const op_info *info = info_of(op.kind);
    if (does_nothing(&op)) {
        return;
    }
    if (has_operand(info->access) && op.operand >= epi->n_operand) {
        epi->n_operand = op.operand + 1;
    }
    if (info->access == RFT__EPI_PAIR) {
        epi->glu_at = epi->n_op;
    }
    epi->op[epi->n_op++] = op;
}

static rft_status add_op(rft__epi *epi, const rft_epi_op *op, uint32_t i, rft_error *err) {
    const op_info *info = info_of(op->kind);
    if (info == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "epi[%u].kind is %d, which is no epilogue op", i, (int)op->kind);
    }
    if (info->access == RFT__EPI_PAIR && epi->glu_at >= 0) {
        RFT_FAIL(err, RFT_E_ARG, "epi[%u] is %s, but a list may pair gate and up only once", i, info->name);
    }
    RFT_TRY(check_operand_field(op, info, i, err));
    RFT_TRY(check_parameters(op, i, err));
    append(epi, canonical(op, info));
    return RFT_OK;
}

/* Not an op on f32 numbers but the way in which they are stored. */
static rft_status set_quantize(rft__epi *epi, const rft_epi_op *op, uint32_t i, uint32_t count, rft_error *err) {
    enum { MOST = 1 << 24 }; /* whole numbers that a float holds */
    const char *const name = rft__epi_name(op->kind);
    if (i + 1 != count) {
        RFT_FAIL(err, RFT_E_ARG, "epi[%u] is %s, and epi[%u] follows; it must be the last of the list", i, name, i + 1);
    }
    if (op->type != 0 || op->operand >= RFT_MAX_OPERANDS) {
        RFT_FAIL(err, RFT_E_ARG, "epi[%u].type is %d, .operand %u; the operand of %s is f32, written as type 0, and below %d", i,
                 (int)op->type, op->operand, name, RFT_MAX_OPERANDS);
    }
    epi->quantize = (rft__epi_quantize){.kind = op->kind, .operand = op->operand};
    epi->n_operand = op->operand >= epi->n_operand ? op->operand + 1 : epi->n_operand;
    if (op->kind == RFT_EPI_QUANTIZE) {
        return RFT_OK;
    }
    if (!(op->alpha >= 0 && op->alpha <= MOST) || (int64_t)op->alpha % 32 != 0 || op->alpha != (float)(int64_t)op->alpha) {
        RFT_FAIL(err, RFT_E_ARG, "epi[%u].alpha is %g; the columns of a scale of %s must be a multiple of 32 up to 2^24, or 0", i,
                 (double)op->alpha, name);
    }
    epi->quantize.group = (int64_t)op->alpha;
    return RFT_OK;
}

static rft_status check_glu(const rft__epi *epi, int64_t n, bool glu, rft_error *err) {
    if (!glu && epi->glu_at >= 0) {
        RFT_FAIL(err, RFT_E_ARG,
                 "the epilogue holds %s, but the weight has neither RFT_WEIGHT_GLU_HALVES nor RFT_WEIGHT_GLU_INTERLEAVED",
                 rft__epi_name(epi->op[epi->glu_at].kind));
    }
    if (glu && epi->glu_at < 0) {
        RFT_FAIL(err, RFT_E_ARG,
                 "the weight pairs gate and up (RFT_WEIGHT_GLU_*), but the epilogue holds no swiglu, geglu or geglu_tanh");
    }
    if (glu && n % 2 != 0) {
        RFT_FAIL(err, RFT_E_ARG, "n is %lld; a weight that pairs gate and up needs an even n", (long long)n);
    }
    return RFT_OK;
}

rft_status rft__epi_make(rft__epi *epi, const rft_epi_op *ops, uint32_t count, int64_t n, bool glu, float alpha, rft_error *err) {
    memset(epi, 0, sizeof *epi);
    epi->glu_at = -1;
    if (count > RFT_MAX_EPI) {
        RFT_FAIL(err, RFT_E_ARG, "n_epi is %u; an epilogue holds at most %d ops", count, RFT_MAX_EPI);
    }
    if (count > 0 && ops == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "epi is NULL, but n_epi is %u", count);
    }
    if (alpha != 0.0f) {
        append(epi, (rft_epi_op){.kind = RFT_EPI_SCALE, .alpha = alpha});
    }
    for (uint32_t i = 0; i < count; i++) {
        RFT_TRY(quantizes(ops[i].kind) ? set_quantize(epi, ops + i, i, count, err) : add_op(epi, ops + i, i, err));
    }
    RFT_TRY(check_glu(epi, n, glu, err));
    epi->n_in = n;
    epi->n_out = glu ? n / 2 : n;
    if (epi->quantize.kind == RFT_EPI_QUANTIZE_ROWS) {
        const int64_t row = rft__max(epi->n_out, 1);
        epi->quantize.group = epi->quantize.group == 0 ? row : rft__min(epi->quantize.group, row);
    }
    return RFT_OK;
}

int64_t rft__epi_row_scales(const rft__epi *epi) {
    return epi->quantize.kind == RFT_EPI_QUANTIZE_ROWS ? rft__ceil_div(epi->n_out, epi->quantize.group) : 0;
}

int64_t rft__epi_row_scales_ld(const rft__epi *epi, const rft_operand *operands) {
    const int64_t ld = operands[epi->quantize.operand].ld;
    return ld != 0 ? ld : rft__epi_row_scales(epi);
}

/* ---- the operands of a run ---- */

/* Columns that op i sees. */
static int64_t columns_at(const rft__epi *epi, int i) { return i < epi->glu_at ? epi->n_in : epi->n_out; }

static bool has_rows(const rft_epi_op *op) {
    const rft__epi_access access = rft__epi_access_of(op->kind);
    return access == RFT__EPI_MATRIX || access == RFT__EPI_BITS;
}

int64_t rft__epi_row_columns(const rft__epi *epi, uint32_t operand) {
    int i = 0;
    while (i < epi->n_op && !(has_rows(&epi->op[i]) && epi->op[i].operand == operand)) {
        i++;
    }
    return columns_at(epi, i);
}

static size_t alignment_of(const rft_epi_op *op) {
    switch (rft__epi_access_of(op->kind)) {
    case RFT__EPI_BITS:
        return 1;
    case RFT__EPI_SEED:
        return sizeof(uint64_t);
    default:
        return rft__type_size(op->type);
    }
}

static rft_status check_pointer(const rft_epi_op *op, const rft_operand *operand, bool empty, rft_error *err) {
    const size_t alignment = alignment_of(op);
    if (operand->ptr == NULL && !empty) {
        RFT_FAIL(err, RFT_E_ARG, "operand[%u].ptr is NULL, but %s reads it", op->operand, rft__epi_name(op->kind));
    }
    if ((uintptr_t)operand->ptr % alignment != 0) {
        RFT_FAIL(err, RFT_E_ARG, "operand[%u].ptr is %p; for %s it must be aligned to %zu bytes", op->operand, operand->ptr,
                 rft__epi_name(op->kind), alignment);
    }
    return RFT_OK;
}

/* Elements from an operand's first to its last, so that no index overflows later. */
static bool extent_overflows(int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t batch_stride) {
    int64_t all, last, bytes;
    return rft__mul_overflows(rows, ld, &all) || rft__mul_overflows(batch, batch_stride, &last) ||
           rft__add_overflows(all, last, &last) || rft__add_overflows(last, columns, &last) ||
           rft__mul_overflows(last, (int64_t)sizeof(float), &bytes);
}

static rft_status check_extent(const rft_epi_op *op, const rft_operand *operand, int64_t columns, int64_t m, int64_t batch,
                               rft_error *err) {
    const rft__epi_access access = rft__epi_access_of(op->kind);
    const bool rows = has_rows(op);
    const int64_t ld = operand->ld ? operand->ld : columns;
    if (rows && ld < columns) {
        RFT_FAIL(err, RFT_E_ARG, "operand[%u].ld is %lld; %s reads rows of %lld elements", op->operand, (long long)operand->ld,
                 rft__epi_name(op->kind), (long long)columns);
    }
    if (operand->batch_stride < 0) {
        RFT_FAIL(err, RFT_E_ARG, "operand[%u].batch_stride is %lld; it must not be negative", op->operand,
                 (long long)operand->batch_stride);
    }
    if (extent_overflows(rows ? m : 1, access == RFT__EPI_ROW ? m : columns, rows ? ld : 0, batch, operand->batch_stride)) {
        RFT_FAIL(err, RFT_E_ARG, "operand[%u] spans more than 2^63 bytes (ld %lld, batch_stride %lld)", op->operand,
                 (long long)ld, (long long)operand->batch_stride);
    }
    return RFT_OK;
}

static rft_status check_dropout(int64_t columns, int64_t m, int64_t batch, rft_error *err) {
    if (columns > 0 && m > RFT__DROPOUT_MAX_ELEMENTS / columns) {
        RFT_FAIL(err, RFT_E_ARG, "m is %lld; dropout numbers at most 2^46 elements a matrix, here of %lld columns", (long long)m,
                 (long long)columns);
    }
    if (batch > RFT__DROPOUT_MAX_BATCH) {
        RFT_FAIL(err, RFT_E_ARG, "batch is %lld; dropout numbers at most 2^16 matrices", (long long)batch);
    }
    return RFT_OK;
}

static rft_status check_op_operand(const rft__epi *epi, int i, const rft_operand *operands, int64_t m, int64_t batch,
                                   rft_error *err) {
    const rft_epi_op *op = &epi->op[i];
    const int64_t columns = columns_at(epi, i);
    const rft_operand *operand = &operands[op->operand];
    if (!has_operand(rft__epi_access_of(op->kind))) {
        return RFT_OK;
    }
    RFT_TRY(check_pointer(op, operand, m == 0 || columns == 0 || batch == 0, err));
    if (op->kind == RFT_EPI_DROPOUT) {
        return check_dropout(columns, m, batch, err);
    }
    if (has_rows(op) && operand->ld == 0 && columns != rft__epi_row_columns(epi, op->operand)) {
        RFT_FAIL(err, RFT_E_ARG, "operand[%u].ld is 0; read before and behind a gated unit, it needs one", op->operand);
    }
    return check_extent(op, operand, columns, m, batch, err);
}

/* Scales are read, or written row after row and batch after batch. */
static rft_status check_scales(const rft__epi *epi, const rft_operand *operands, int64_t m, int64_t batch, rft_error *err) {
    const uint32_t index = epi->quantize.operand;
    const rft_operand *const o = operands + index;
    const char *const name = rft__epi_name(epi->quantize.kind);
    const int64_t row = rft__epi_row_scales(epi), ld = rft__epi_row_scales_ld(epi, operands);
    if (o->ptr == NULL || (uintptr_t)o->ptr % sizeof(float) != 0) {
        RFT_FAIL(err, RFT_E_ARG, "operand[%u].ptr is %p; %s needs f32 scales there", index, o->ptr, name);
    }
    if (epi->quantize.kind == RFT_EPI_QUANTIZE) {
        return RFT_OK;
    }
    if (ld < row || o->batch_stride < 0) {
        RFT_FAIL(err, RFT_E_ARG, "operand[%u].ld is %lld, .batch_stride %lld; %s writes rows of %lld scales", index,
                 (long long)o->ld, (long long)o->batch_stride, name, (long long)row);
    }
    if (extent_overflows(m, row, ld, batch, o->batch_stride)) {
        RFT_FAIL(err, RFT_E_ARG, "operand[%u] spans more than 2^63 bytes (ld %lld, batch_stride %lld)", index, (long long)ld,
                 (long long)o->batch_stride);
    }
    if (batch > 1 && o->batch_stride < (m - 1) * ld + row) {
        RFT_FAIL(err, RFT_E_ARG, "operand[%u].batch_stride is %lld; %s would write the scales of %lld batches over each other",
                 index, (long long)o->batch_stride, name, (long long)batch);
    }
    return RFT_OK;
}

rft_status rft__epi_check_operands(const rft__epi *epi, const rft_operand *operands, uint32_t count, int64_t m, int64_t batch,
                                   rft_error *err) {
    if (count < epi->n_operand) {
        RFT_FAIL(err, RFT_E_ARG, "n_operand is %u; the plan's epilogue names operand %u", count, epi->n_operand - 1);
    }
    if (epi->n_operand > 0 && operands == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "operand is NULL; the plan's epilogue needs %u", epi->n_operand);
    }
    for (int i = 0; i < epi->n_op && epi->n_operand > 0; i++) {
        RFT_TRY(check_op_operand(epi, i, operands, m, batch, err));
    }
    return epi->quantize.kind != 0 ? check_scales(epi, operands, m, batch, err) : RFT_OK;
}

/* ---- traffic and text ---- */

static double operand_bytes(const rft__epi *epi, int i, int64_t m, int64_t batch) {
    const rft_epi_op *op = &epi->op[i];
    const double rows = (double)m * (double)batch, columns = (double)columns_at(epi, i), size = (double)rft__type_size(op->type);
    switch (rft__epi_access_of(op->kind)) {
    case RFT__EPI_MATRIX:
        return rows * columns * size;
    case RFT__EPI_ROW:
        return rows * size;
    case RFT__EPI_COLUMN:
        return columns * size;
    case RFT__EPI_BITS:
        return rows * ceil(columns / 8);
    case RFT__EPI_SEED:
        return 2 * sizeof(uint64_t);
    default:
        return 0;
    }
}

static bool read_before(const rft__epi *epi, int i) {
    for (int j = 0; j < i; j++) {
        if (has_operand(rft__epi_access_of(epi->op[j].kind)) && epi->op[j].operand == epi->op[i].operand) {
            return true;
        }
    }
    return false;
}

double rft__epi_bytes(const rft__epi *epi, int64_t m, int64_t batch) {
    double bytes = 0;
    for (int i = 0; i < epi->n_op; i++) {
        bytes += read_before(epi, i) ? 0 : operand_bytes(epi, i, m, batch);
    }
    if (epi->quantize.kind != 0) {
        const double scales = (double)m * (double)batch * (double)rft__epi_row_scales(epi);
        bytes += (epi->quantize.kind == RFT_EPI_QUANTIZE ? 1 : scales) * sizeof(float);
    }
    return bytes;
}

size_t rft__epi_text(const rft__epi *epi, char *buf, size_t cap) {
    size_t length = 0;
    const int last = epi->quantize.kind != 0, n = epi->n_op + last;
    if (n == 0) {
        return (size_t)snprintf(buf, cap, "none");
    }
    for (int i = 0; i < n; i++) {
        const bool room = length < cap;
        length += (size_t)snprintf(room ? buf + length : NULL, room ? cap - length : 0, "%s%s", i ? ":" : "",
                                   rft__epi_name(i < epi->n_op ? epi->op[i].kind : epi->quantize.kind));
    }
    return length;
}
