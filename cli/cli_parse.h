/* SPDX-License-Identifier: Apache-2.0
 *
 * cli_parse.h - the small languages of the command line: number lists, types, layouts, epilogues, shapes files.
 * Every parser writes one sentence into `why` when it returns false; options.c puts the flag in front of it.
 */
#ifndef CLI_PARSE_H
#define CLI_PARSE_H

#include "cli.h"

#define CLI_WHY      160
#define CLI_EPI_TEXT 256
#define WEIGHT_TEXT  80
#define X_TEXT       40

typedef struct int_list {
    int64_t *v;
    size_t n;
} int_list;

typedef struct shape { /* one W and the numbers of rows that meet it */
    int64_t n, k;
    int_list m;
} shape;

typedef struct weight_scales { /* as in rft_weight_desc; scale 0: none lie apart */
    rft_type scale, zero;
    int64_t group_n, group_k;
    uint32_t flags; /* RFT_WEIGHT_GLOBAL_*, RFT_WEIGHT_G_IDX */
} weight_scales;

typedef struct x_groups { /* of an x in 8 bits; of floats 0, if given */
    int64_t k; /* of a scale; 0: one scale a row */
    bool given;
} x_groups;

typedef struct shape_list {
    shape *v;
    size_t n;
    rft_type x, w, y; /* 0: the file does not say */
    weight_scales w_scales;
    x_groups x_groups;
} shape_list;

typedef struct epilogue { /* op i that has an operand uses operand i of the run */
    uint32_t n_op;
    rft_epi_op op[RFT_MAX_EPI];
    char text[CLI_EPI_TEXT]; /* "none", "bias:gelu_tanh", ... */
} epilogue;

#define CLI_MAX_THREADS 1024 /* of a context */
bool parse_int(const char *text, int64_t min, int64_t max, int64_t *out, char why[CLI_WHY]);
/* Reads one finite number and moves past it; no blanks in front. */
bool scan_number(const char **text, double *out);
bool parse_number(const char *text, double min, double max, double *out, char why[CLI_WHY]);
/* "1,16,512", "1..64", and mixtures. */
bool parse_list(const char *text, int64_t min, int_list *out, char why[CLI_WHY]);
bool parse_type(const char *text, rft_type *out, char why[CLI_WHY]);
/* A type, and behind one of 8 bits how many k a scale serves: "i8" and "i8:g0" are one a row, "e4m3:g128" one for 128 k of it.
 * "f32:g0": floats that --compute i8 shall round by one a row. */
bool parse_x(const char *text, rft_type *type, x_groups *groups, char why[CLI_WHY]);
void x_text(rft_type type, const x_groups *groups, char text[X_TEXT]); /* that parse_x would read */
/* A type, and behind it what types that are neither floats of 16 bits and more nor GGUF's have apart: "i4:g128" is one scale in
 * f32 for 128 k of a row, "i8" one a row, "g3x40" one for 3 rows by 40 k (0: all), "e2m1:g32:e8m0" of that type, "u4:g128:zero"
 * with zero points, "i4:g128:act" with groups of k in any order; "times" or "over" a global scale. */
bool parse_weight(const char *text, rft_type *type, weight_scales *scales, char why[CLI_WHY]);
void weight_text(rft_type type, const weight_scales *scales, char text[WEIGHT_TEXT]); /* that parse_weight would read */
bool scales_apart(rft_type type);
weight_scales scales_by_row(void); /* what a type whose scales lie apart has where nothing else is said */
int64_t scales_along(int64_t extent, int64_t group); /* scales that serve `group` each, 0: all */
void scales_describe(const weight_scales *scales, rft_weight_desc *desc);
/* The group of each of k: as many in each as without RFT_WEIGHT_G_IDX, in an order by the seed. */
void scales_index(const weight_scales *scales, int64_t k, uint64_t seed, int32_t *to);
bool scales_global(uint32_t weight_flags);         /* there is a number of all */
int64_t scales_count(const rft_weight_desc *desc); /* of a matrix with its batch; 0 where none lie apart */
/* "nt": X as stored row by row, W as torch.nn.Linear stores it, W[n][k]. */
bool parse_layout(const char *text, rft_order *x, rft_order *w, char why[CLI_WHY]);
/* "auto", "f32", "tf32", "16": 16-bit operands on tensor cores. */
bool parse_compute(const char *text, rft_compute *out, char why[CLI_WHY]);
const char *compute_name(rft_compute compute);
/* "bias:gelu_tanh", "scale=0.5:add=2@bf16", "clamp=-1/6", "none". */
bool parse_epilogue(const char *text, epilogue *out, char why[CLI_WHY]);
/* Makes the text of a list that parse_epilogue would read. */
void epilogue_text(epilogue *e);
/* One more op with the next operand; false: the list is full. */
bool epilogue_add(epilogue *e, rft_epi_op op);
bool op_quantizes(const rft_epi_op *op); /* makes y one of 8 bits */
bool op_is_glu(const rft_epi_op *op); /* halves the columns */
bool epilogue_is_glu(const epilogue *e);
/* Lines of "N K [M-LIST]", "m M-LIST" for the lines that follow, "x TYPE", "w TYPE" and "y TYPE" for the whole file, and
 * "# comment". m_default serves where a line names no m. The result is an exit code; `why` says what is wrong. */
int read_shapes(const char *path, const int_list *m_override, const int_list *m_default, shape_list *out, char why[CLI_WHY]);
void shapes_free(shape_list *list);
void list_free(int_list *list);
int_list list_copy(const int_list *list);

#endif
