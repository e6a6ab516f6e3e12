/* SPDX-License-Identifier: Apache-2.0
 *
 * check_core.h - proves one product: guarded operands, NaN in every gap and in the workspace, a result within its bound.
 * rooftile check and tests/check drive it; it uses public headers only. A problem and its seed say everything about a run.
 */
#ifndef CHECK_CORE_H
#define CHECK_CORE_H

#include "cli_parse.h"

#define CHECK_MESSAGE 400
#define CHECK_STYLE   24
#define CHECK_ALIGNED ((uint64_t)1 << 23) /* bit of a seed: pointers and rows begin at multiples of 16 bytes */

typedef struct check_problem {
    const char *kernel; /* the only one that may serve, or NULL: the library chooses */
    const char *isa;    /* highest level, or NULL */
    uint32_t threads;   /* 0: the default */
    int64_t m, n, k, batch;
    rft_type x, w, y;
    weight_scales scales; /* of a W whose scales lie apart; scale 0: drawn from the seed */
    x_groups x_groups;    /* of an x in 8 bits; not given: drawn too, one scale for all among them. Of floats given or not */
    rft_order x_order, w_order;
    epilogue epi;
    bool dynamic, view;
    rft_compute compute;
    /* Of data, gaps and sides of the guard pages; 2 i and 2 i + 1 differ in all the sides alone. The bits from CHECK_STYLE on are
     * of what reaches a kernel's text on a GPU (scale, flags), so that problems of one style share a compiled kernel. */
    uint64_t seed;
} check_problem;

typedef struct check_x_scales { /* of an x in 8 bits */
    int64_t group; /* k of a scale; 0: a row, below 0: one for all */
    int64_t count; /* 0: x is of floats */
} check_x_scales;

typedef enum check_verdict {
    CHECK_RIGHT,
    CHECK_REFUSED, /* no kernel for it, said so */
    CHECK_WRONG,   /* result, gap, bytes beside an operand, or bits that differ from run to run */
    CHECK_ERROR,   /* a call failed that should not */
    CHECK_ILLEGAL, /* no layer at all: an argument is wrong */
    CHECK_TOO_LARGE, /* for the memory that there is */
    CHECK_SKIPPED  /* another problem has broken the device */
} check_verdict;

typedef struct check_result {
    check_verdict verdict;
    double worst;      /* |error| / bound of the worst element */
    char kernel[96];   /* that ran */
    char message[CHECK_MESSAGE]; /* of a failure */
} check_result;

typedef struct checker checker;

/* On a GPU, or with `copies` anywhere, the operands are copied to the device's memory, and each product runs twice. */
checker *checker_create(const char *device, bool copies);
/* Opens the context that problems without a level or thread count take, so that a device that is not here is one message. */
rft_status checker_open(checker *c, rft_error *err);
/* One more for another thread; contexts are shared. Freed before the first. */
checker *checker_beside(checker *first);
bool checker_lost(const checker *c); /* a kernel broke the device: nothing runs any more */
void checker_free(checker *c);
void check_run(checker *c, const check_problem *p, check_result *result);
/* The next number of a generator whose whole state is one number: splitmix64 (Steele, Lea, Flood 2014). */
uint64_t check_random_next(uint64_t *state);
typedef struct check_dice {
    uint64_t state;
} check_dice;
uint64_t check_roll(check_dice *d, uint64_t sides); /* 0..sides - 1 */
/* Functions of the problem; how many scales there are. */
weight_scales check_scales_of(const check_problem *p);
check_x_scales check_x_scales_of(const check_problem *p);
/* Scales that quantize_rows writes for a row; the operand that it writes, RFT_MAX_OPERANDS where there is none. */
int64_t check_row_scales(const rft_epi_op *op, int64_t columns);
int check_found_scales(const check_problem *p);
/* The command line that runs a problem again; device: a GPU's, or NULL. */
void check_repro(const check_problem *p, const char *device, char *buf, size_t cap);
/* From now on a fault prints the repro line of the problem that ran and ends the program with code 1. */
void check_catch_faults(void);

#endif
