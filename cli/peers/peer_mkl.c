/* SPDX-License-Identifier: Apache-2.0
 *
 * peer_mkl.c - MKL: f32, bf16 and f16 products with f32 results, W packed beforehand by its own pack calls.
 * Declarations follow its public reference; the three families differ in types and in that f32 packs alpha in.
 */
#define _GNU_SOURCE
#include "peers/cblas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MKL_B_MATRIX = 162, MKL_PACKED = 151 };

typedef size_t pack_size(int which, int m, int n, int k);
typedef void pack_f32(int order, int which, int trans, int m, int n, int k, float alpha, const void *w, int ld, void *packed);
typedef void pack_16(int order, int which, int trans, int m, int n, int k, const void *w, int ld, void *packed);
typedef void compute_f32(int order, int ta, int tb, int m, int n, int k, const void *x, int ldx, const void *w, int ldw,
                         float beta, float *y, int ldy);
typedef void compute_16(int order, int ta, int tb, int m, int n, int k, float alpha, const void *x, int ldx, const void *w,
                        int ldw, float beta, float *y, int ldy);
typedef void get_version(char *buf, int length);
typedef void set_threads(int n);

typedef struct mkl_state {
    cblas_state blas; /* first: cblas_suits fills it */
    pack_size *size;
    pack_f32 *pack;
    compute_f32 *compute;
    pack_16 *pack16;
    compute_16 *compute16;
    char *packed;
    size_t stride, total;
    int64_t copies;
} mkl_state;

static bool open_mkl(peer *p, char why[CLI_WHY]) {
    char text[256] = "";
    get_version *version;
    set_threads *set;
    *(void **)&version = peer_symbol(p, "mkl_get_version_string");
    if (!version)
        *(void **)&version = peer_symbol(p, "MKL_Get_Version_String");
    *(void **)&set = peer_symbol(p, "MKL_Set_Num_Threads");
    if (!peer_symbol(p, "cblas_sgemm_compute")) {
        snprintf(why, CLI_WHY, "it does not export cblas_sgemm_compute");
        return false;
    }
    if (set)
        set((int)p->threads);
    if (version)
        version(text, (int)sizeof text);
    const char *number = strstr(text, "Version ");
    snprintf(p->version, sizeof p->version, "%.*s", (int)strcspn(number ? number + 8 : "", " "), number ? number + 8 : "");
    p->state = cli_alloc(1, sizeof(mkl_state));
    return true;
}

/* The three functions of one family, such as cblas_gemm_bf16bf16f32 with _pack_get_size, _pack and _compute behind it. */
static bool find_family(const peer *p, mkl_state *s, const char *family, bool f32) {
    char name[96];
    snprintf(name, sizeof name, "%s_pack_get_size", family);
    *(void **)&s->size = peer_symbol(p, name);
    snprintf(name, sizeof name, "%s_pack", family);
    void *pack = peer_symbol(p, name);
    snprintf(name, sizeof name, "%s_compute", family);
    void *compute = peer_symbol(p, name);
    *(void **)&s->pack = f32 ? pack : NULL;
    *(void **)&s->compute = f32 ? compute : NULL;
    *(void **)&s->pack16 = f32 ? NULL : pack;
    *(void **)&s->compute16 = f32 ? NULL : compute;
    return s->size && pack && compute;
}

static bool choose_family(const peer *p, mkl_state *s, const peer_product *q) {
    if (q->x != q->w)
        return false;
    switch (q->x) {
    case RFT_F32:
        return find_family(p, s, "cblas_sgemm", true);
    case RFT_BF16:
        return find_family(p, s, "cblas_gemm_bf16bf16f32", false);
    case RFT_F16:
        return find_family(p, s, "cblas_gemm_f16f16f32", false);
    default:
        return false;
    }
}

static bool pack_copies(mkl_state *s, const peer_product *q) {
    int m = (int)q->m, n = (int)q->n, k = (int)q->k, ldw = (int)s->blas.ldb;
    const void *w = weight_set_raw(q->weights, 0);
    s->stride = (s->size(MKL_B_MATRIX, m, n, k) + 63) & ~(size_t)63;
    s->copies = q->weights->copies;
    s->total = s->stride * (size_t)s->copies;
    s->packed = cli_map(s->total);
    for (int64_t i = 0; s->packed && i < s->copies; i++) {
        char *to = s->packed + (size_t)i * s->stride;
        if (s->pack)
            s->pack(CBLAS_ROW_MAJOR, MKL_B_MATRIX, s->blas.tb, m, n, k, 1, w, ldw, to);
        else
            s->pack16(CBLAS_ROW_MAJOR, MKL_B_MATRIX, s->blas.tb, m, n, k, w, ldw, to);
    }
    return s->packed != NULL;
}

static bool prepare_mkl(peer *p, const peer_product *product, char why[CLI_WHY]) {
    mkl_state *s = p->state;
    if (!cblas_suits(&s->blas, product, why))
        return false;
    if (!choose_family(p, s, product))
        snprintf(why, CLI_WHY, "it has no packed product of %s and %s", rft_type_name(product->x), rft_type_name(product->w));
    else if (!pack_copies(s, product))
        snprintf(why, CLI_WHY, "no memory for packed copies of the weights");
    else
        return true;
    return false;
}

static bool run_mkl(peer *p, int64_t i, void *stream) {
    (void)stream;
    const mkl_state *s = p->state;
    const peer_product *q = &s->blas.product;
    const char *w = s->packed + (size_t)(i % s->copies) * s->stride;
    int m = (int)q->m, n = (int)q->n, k = (int)q->k, ldx = (int)s->blas.lda, ldw = (int)s->blas.ldb;
    if (s->compute)
        s->compute(CBLAS_ROW_MAJOR, s->blas.ta, MKL_PACKED, m, n, k, q->x_data, ldx, w, ldw, 0, q->y_data, n);
    else
        s->compute16(CBLAS_ROW_MAJOR, s->blas.ta, MKL_PACKED, m, n, k, 1, q->x_data, ldx, w, ldw, 0, q->y_data, n);
    return true;
}

static void finish_mkl(peer *p) {
    mkl_state *s = p->state;
    cli_unmap(s->packed, s->total);
    s->packed = NULL;
}

/* Its loader picks a threading library by itself; GNU's is the one most machines have. */
static void choose_threading(const peer_kind *kind, const char *path) {
    (void)kind;
    (void)path;
    setenv("MKL_THREADING_LAYER", "GNU", 0);
    setenv("MKL_INTERFACE_LAYER", "LP64", 0);
}

static const char *const files[] = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so", NULL};

const peer_kind peer_mkl = {"mkl", false, files, choose_threading, open_mkl, prepare_mkl, run_mkl, finish_mkl, cblas_close};
