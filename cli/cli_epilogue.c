/* SPDX-License-Identifier: Apache-2.0
 *
 * cli_epilogue.c - the text form of an epilogue: names joined by ':', parameters behind '=', an operand's type behind '@'.
 * One row an op; the ops and their meaning are those of rooftile.h.
 */
#define _GNU_SOURCE
#include "cli_parse.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct epi_name {
    rft_epi_kind kind;
    const char *name;
    bool operand;      /* reads f32, bf16 or f16 */
    int parameters;    /* 0: none, 1: alpha, 2: alpha/beta, -1: beta alone */
    float alpha, beta; /* where none are given */
} epi_name;

static const epi_name epi_names[] = {
    {RFT_EPI_SCALE, "scale", false, 1, 0.5F, 0},
    {RFT_EPI_BIAS, "bias", true, 0, 0, 0},
    {RFT_EPI_SILU, "silu", false, 0, 0, 0},
    {RFT_EPI_GELU, "gelu", false, 0, 0, 0},
    {RFT_EPI_MUL, "mul", true, 0, 0, 0},
    {RFT_EPI_ADD, "add", true, -1, 0, 1},
    {RFT_EPI_RELU, "relu", false, 0, 0, 0},
    {RFT_EPI_GELU_TANH, "gelu_tanh", false, 0, 0, 0},
    {RFT_EPI_CLAMP, "clamp", false, 2, -1, 1},
    {RFT_EPI_SWIGLU, "swiglu", false, 0, 0, 0},
    {RFT_EPI_GEGLU, "geglu", false, 0, 0, 0},
    {RFT_EPI_GEGLU_TANH, "geglu_tanh", false, 0, 0, 0},
    {RFT_EPI_ROW_SCALE, "row_scale", true, 0, 0, 0},
    {RFT_EPI_COL_SCALE, "col_scale", true, 0, 0, 0},
    {RFT_EPI_MASK, "mask", false, 0, 0, 0},
    {RFT_EPI_DROPOUT, "dropout", false, 1, 0.1F, 0},
    {RFT_EPI_QUANTIZE, "quantize", false, 0, 0, 0},
    {RFT_EPI_QUANTIZE_ROWS, "quantize_rows", false, 1, 0, 0},
};

#define N_NAMES (sizeof epi_names / sizeof epi_names[0])

static const epi_name *find_name(const char *name) {
    for (size_t i = 0; i < N_NAMES; i++)
        if (strcmp(epi_names[i].name, name) == 0)
            return &epi_names[i];
    return NULL;
}

static const epi_name *find_kind(rft_epi_kind kind) {
    for (size_t i = 0; i < N_NAMES; i++)
        if (epi_names[i].kind == kind)
            return &epi_names[i];
    return NULL;
}

static bool scan_float(const char **text, float *out) {
    double number = 0;
    bool good = scan_number(text, &number) && fabs(number) <= (double)FLT_MAX;
    *out = good ? (float)number : 0;
    return good;
}

/* "0.5" or "-1/6"; text NULL keeps the defaults. */
static bool read_parameters(const epi_name *name, const char *text, rft_epi_op *op) {
    op->alpha = name->alpha;
    op->beta = name->beta;
    if (!text)
        return true;
    if (name->parameters == 0 || !scan_float(&text, name->parameters < 0 ? &op->beta : &op->alpha))
        return false;
    if (name->parameters == 2 && *text == '/') {
        text++;
        if (!scan_float(&text, &op->beta))
            return false;
    }
    return *text == '\0';
}

static bool read_op(char *text, uint32_t index, rft_epi_op *op, char why[CLI_WHY]) {
    char *type = strchr(text, '@'), *value = strchr(text, '=');
    if (type)
        *type++ = '\0';
    if (value)
        *value++ = '\0';
    const epi_name *name = find_name(text);
    if (!name || !read_parameters(name, value, op) || (type && !name->operand)) {
        snprintf(why, CLI_WHY,
                 "'%.40s' is no epilogue op, or its parameter does not fit; ops are such as bias:gelu_tanh:add=0.5@bf16", text);
        return false;
    }
    op->kind = name->kind;
    op->operand = index;
    op->type = name->operand ? RFT_F32 : (rft_type)0;
    return !type || parse_type(type, &op->type, why);
}

bool parse_epilogue(const char *text, epilogue *out, char why[CLI_WHY]) {
    char copy[CLI_EPI_TEXT], *rest, *item;
    *out = (epilogue){0};
    if (strlen(text) >= sizeof copy) {
        snprintf(why, CLI_WHY, "the list is longer than %d characters", CLI_EPI_TEXT - 1);
        return false;
    }
    strcpy(copy, text);
    rest = *text == '\0' || strcmp(text, "none") == 0 ? NULL : copy;
    while ((item = strsep(&rest, ":,")) != NULL) {
        if (out->n_op == RFT_MAX_EPI) {
            snprintf(why, CLI_WHY, "more than %d ops", RFT_MAX_EPI);
            return false;
        }
        if (!read_op(item, out->n_op, &out->op[out->n_op], why))
            return false;
        out->n_op++;
    }
    epilogue_text(out);
    return true;
}

#define NUMBER 20 /* characters of a float */

/* The fewest digits that read back as the same number. */
static const char *write_number(char text[NUMBER], float value) {
    int digits = 6;
    do
        snprintf(text, NUMBER, "%.*g", digits, (double)value);
    while (digits++ < 9 && strtof(text, NULL) != value);
    return text;
}

static int write_op(char *buf, size_t cap, const rft_epi_op *op) {
    const epi_name *name = find_kind(op->kind);
    char parameter[2 * NUMBER + 2] = "", type[16] = "", first[NUMBER], second[NUMBER];
    if (name && name->parameters == 2)
        snprintf(parameter, sizeof parameter, "=%s/%s", write_number(first, op->alpha), write_number(second, op->beta));
    else if (name && name->parameters == 1)
        snprintf(parameter, sizeof parameter, "=%s", write_number(first, op->alpha));
    else if (name && name->parameters < 0 && op->beta != 1)
        snprintf(parameter, sizeof parameter, "=%s", write_number(first, op->beta));
    if (name && name->operand && op->type != RFT_F32)
        snprintf(type, sizeof type, "@%s", rft_type_name(op->type));
    return snprintf(buf, cap, "%s%s%s", name ? name->name : "?", parameter, type);
}

void epilogue_text(epilogue *e) {
    size_t length = 0;
    strcpy(e->text, "none");
    for (uint32_t i = 0; i < e->n_op && length + 1 < sizeof e->text; i++) {
        if (i)
            e->text[length++] = ':';
        length += (size_t)write_op(e->text + length, sizeof e->text - length, &e->op[i]);
    }
}

bool epilogue_add(epilogue *e, rft_epi_op op) {
    if (e->n_op == RFT_MAX_EPI)
        return false;
    op.operand = e->n_op;
    e->op[e->n_op++] = op;
    epilogue_text(e);
    return true;
}

bool op_quantizes(const rft_epi_op *op) {
    return op->kind == RFT_EPI_QUANTIZE || op->kind == RFT_EPI_QUANTIZE_ROWS;
}

bool op_is_glu(const rft_epi_op *op) {
    return op->kind == RFT_EPI_SWIGLU || op->kind == RFT_EPI_GEGLU || op->kind == RFT_EPI_GEGLU_TANH;
}

bool epilogue_is_glu(const epilogue *e) {
    for (uint32_t i = 0; i < e->n_op; i++)
        if (op_is_glu(&e->op[i]))
            return true;
    return false;
}
