/* SPDX-License-Identifier: Apache-2.0
 *
 * problem.h - the canonical form of one linear layer: every default filled in, every size checked, the epilogue canonical.
 * api makes it once from the caller's descriptor; plan, backends, roofline and verify read it and check nothing again.
 */
#ifndef RFT_PROBLEM_PROBLEM_H
#define RFT_PROBLEM_PROBLEM_H

#include "base/type.h"
#include "epilogue/epi.h"

typedef enum rft__glu { RFT__GLU_NONE, RFT__GLU_HALVES, RFT__GLU_INTERLEAVED } rft__glu;

/* What goes with scales of e4m3: nothing, or one number of all that multiplies or divides them, which rounds to f32. */
typedef enum rft__global { RFT__GLOBAL_NONE, RFT__GLOBAL_TIMES, RFT__GLOBAL_OVER } rft__global;

/* One W: n x k elements a batch, the element (n, k) of batch b at
 * b * batch_stride + n * n_stride + k * k_stride elements; one of the two strides is 1. */
typedef struct rft__matrix {
    rft_type elem;
    rft_type scale, zero;    /* of scales that lie apart, [batch][ceil(n / group_n)][ceil(k / group_k)]; 0: there are none */
    int64_t group_n, group_k; /* of these: 1..n and 1..k, else 0 */
    rft__global global;
    bool sorted; /* k are packed in the order of their groups, of which each k has an index */
    rft_order order;
    rft__glu glu;
    bool view;
    int64_t n, k, batch, n_stride, k_stride, batch_stride;
} rft__matrix;

/* Checks a weight descriptor (which: the argument's name in messages) and fills in defaults. */
rft_status rft__matrix_make(rft__matrix *w, const rft_weight_desc *desc, const char *which, rft_error *err);
/* Storage bytes of all elements, their scales and zero points. */
double rft__matrix_bytes(const rft__matrix *w);
/* Whether W is of codes with scales (format/quant.h), not of floats. */
bool rft__matrix_is_low_bit(const rft__matrix *w);

/* k of a scale of activations in 8 bits: a multiple of this, or all. */
enum { RFT__X_GRANULE = 32 };

typedef struct rft__problem {
    rft__matrix w;
    rft_type x, y;
    rft_order x_order;
    int64_t x_group_k;         /* of an x in 8 bits: k of one of a row's scales; 0: one scale for all of x. Of floats the row
                                * where RFT_COMPUTE_I8 rounds it by one scale, else 0 */
    int64_t m_min, m_max, batch; /* w.batch is batch, or 1: one W for every batch */
    float alpha;               /* as given; alpha = 0 reads neither X nor W */
    bool w_dynamic, batch_invariant;
    rft_compute compute;
    rft__epi epi;              /* holds alpha as its first SCALE when it is neither 0 nor 1 */
} rft__problem;

/* Checks a whole descriptor (struct_size is api's business) and makes its canonical form. */
rft_status rft__problem_make(rft__problem *p, const rft_linear_desc *desc, rft_error *err);
/* The same for a descriptor as the caller gave it: of any version's size, or NULL, which is an error. */
rft_status rft__problem_read(rft__problem *p, const rft_linear_desc *desc, rft_error *err);
/* A weight descriptor inside another struct: its size must be one that fits there. name: the argument's. */
rft_status rft__weight_desc_nested(rft_weight_desc *desc, const char *name, rft_error *err);
/* Scales of a row of an x in 8 bits. */
int64_t rft__problem_x_scales(const rft__problem *p);
/* x rounded to 8 bits, or given so, may meet the codes of a low-bit W in integers. */
bool rft__problem_takes_i8(const rft__problem *p);
/* Floats that are rounded so have one scale a row, not the groups of W. */
bool rft__problem_rounds_rows(const rft__problem *p);
/* Equal problems have equal hashes; the text is one line for logs:
 * "m=1..16 n=4096 k=4096 x=bf16 w=bf16 y=f32 layout=nt epi=bias:gelu". */
uint64_t rft__problem_hash(const rft__problem *p);
size_t rft__problem_text(const rft__problem *p, char *buf, size_t cap);
bool rft__problem_equal(const rft__problem *a, const rft__problem *b);

#endif
