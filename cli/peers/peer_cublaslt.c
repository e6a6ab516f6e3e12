/* SPDX-License-Identifier: Apache-2.0
 *
 * peer_cublaslt.c - cuBLASLt: the fastest of its heuristic list for each product, found here with cold weights before the row
 * is timed, or (cublaslt-first) the one that it puts first, and its own epilogues where it has them. Its result is column-major,
 * so Y[m][n] is its n x m matrix and W its A. GELU is its tanh form; a residual is its C.
 */
#include "foreign.h"
#include "peers/cublaslt_api.h"
#include "peers/peer.h"

#include <stdio.h>
#include <stdlib.h>

#define WORKSPACE   ((size_t)32 << 20)
#define CANDIDATES  32
#define FINALISTS   4   /* timed a second time, more calls each */
#define TRIAL_CALLS 256 /* most in one trial */

typedef struct lt_state {
    lt_api f;
    void *handle;
    buffer workspace;
    peer_product product;
    void *desc, *a, *b, *c, *preference;
    const void *residual; /* C, or NULL */
    float beta;
    lt_candidate chosen;
    const lt_candidate *trial; /* what run takes */
} lt_state;

/* ---- library ---- */

static const char *find_functions(const peer *p, lt_api *f) {
#define LT_FIND(result, name, parameters)                                                                                        \
    *(void **)&f->name = peer_symbol(p, "cublasLt" #name);                                                                       \
    if (!f->name)                                                                                                                \
        return "cublasLt" #name;
    LT_FUNCTIONS(LT_FIND)
#undef LT_FIND
    return NULL;
}

static bool open_cublaslt(peer *p, char why[CLI_WHY]) {
    lt_state *s = cli_alloc(1, sizeof *s);
    rft_error err = {0};
    const char *missing = find_functions(p, &s->f);
    p->state = s;
    if (missing)
        snprintf(why, CLI_WHY, "it does not export %s", missing);
    else if (!foreign_enter(p->ordinal)) /* it works in the context that is current */
        snprintf(why, CLI_WHY, "the device's context cannot be made current");
    else if (s->f.Create(&s->handle))
        snprintf(why, CLI_WHY, "it makes no handle here");
    else if (buffer_make(&s->workspace, p->ctx, WORKSPACE, &err) != RFT_OK)
        snprintf(why, CLI_WHY, "%.140s", err.message);
    else
        return true;
    free(s);
    return false;
}

static void close_cublaslt(peer *p) {
    lt_state *s = p->state;
    buffer_free(&s->workspace);
    s->f.Destroy(s->handle);
    free(s);
    p->state = NULL;
}

/* ---- one product ---- */

static int type_of(rft_type type) { return type == RFT_F32 ? LT_R_32F : type == RFT_F16 ? LT_R_16F : LT_R_16BF; }

static bool set_desc(lt_state *s, int attribute, const void *value, size_t size) {
    return s->f.MatmulDescSetAttribute(s->desc, attribute, value, size) == 0;
}

static bool add_bias(lt_state *s, const rft_epi_op *op) {
    const void *bias = s->product.operand[op->operand].ptr;
    int32_t type = type_of(op->type);
    return set_desc(s, LT_DESC_BIAS_POINTER, &bias, sizeof bias) && set_desc(s, LT_DESC_BIAS_TYPE, &type, sizeof type);
}

static bool add_residual(lt_state *s, const rft_epi_op *op) {
    bool can = !s->residual && op->type == s->product.y;
    s->residual = s->product.operand[op->operand].ptr;
    s->beta = op->beta;
    return can;
}

/* Bias and residual in any order, then at most one activation. */
static bool add_op(lt_state *s, const rft_epi_op *op, int32_t *mode) {
    bool open = !(*mode & (LT_EPILOGUE_RELU | LT_EPILOGUE_GELU));
    switch (op->kind) {
    case RFT_EPI_BIAS:
        open = open && !(*mode & LT_EPILOGUE_BIAS) && add_bias(s, op);
        *mode |= LT_EPILOGUE_BIAS;
        return open;
    case RFT_EPI_ADD:
        return open && add_residual(s, op);
    case RFT_EPI_RELU:
        *mode |= LT_EPILOGUE_RELU;
        return open;
    case RFT_EPI_GELU_TANH:
        *mode |= LT_EPILOGUE_GELU;
        return open;
    default:
        return false;
    }
}

static bool make_epilogue(lt_state *s, const epilogue *epi) {
    int32_t mode = 0;
    for (uint32_t i = 0; i < epi->n_op; i++)
        if (!add_op(s, &epi->op[i], &mode))
            return false;
    mode = mode ? mode : LT_EPILOGUE_DEFAULT;
    return set_desc(s, LT_DESC_EPILOGUE, &mode, sizeof mode);
}

static bool make_layout(lt_state *s, void **layout, rft_type type, int64_t rows, int64_t columns) {
    return s->f.MatrixLayoutCreate(layout, type_of(type), (uint64_t)rows, (uint64_t)columns, rows) == 0;
}

/* Column-major: W[n][k] is k x n and enters transposed, X[m][k] is k x m and enters as it is. */
static bool make_descriptors(lt_state *s) {
    const peer_product *q = &s->product;
    bool xk = q->x_order == RFT_K_CONTIGUOUS, wk = q->w_order == RFT_K_CONTIGUOUS, tf32 = q->compute == RFT_COMPUTE_TF32;
    int32_t ta = wk ? LT_OP_T : LT_OP_N, tb = xk ? LT_OP_N : LT_OP_T;
    size_t most = WORKSPACE;
    return s->f.MatmulDescCreate(&s->desc, tf32 ? LT_COMPUTE_32F_FAST_TF32 : LT_COMPUTE_32F, LT_R_32F) == 0 &&
           set_desc(s, LT_DESC_TRANSA, &ta, sizeof ta) && set_desc(s, LT_DESC_TRANSB, &tb, sizeof tb) &&
           make_layout(s, &s->a, q->w, wk ? q->k : q->n, wk ? q->n : q->k) &&
           make_layout(s, &s->b, q->x, xk ? q->k : q->m, xk ? q->m : q->k) && make_layout(s, &s->c, q->y, q->n, q->m) &&
           s->f.MatmulPreferenceCreate(&s->preference) == 0 &&
           s->f.MatmulPreferenceSetAttribute(s->preference, LT_PREF_WORKSPACE, &most, sizeof most) == 0;
}

static bool run_cublaslt(peer *p, int64_t i, void *stream) {
    lt_state *s = p->state;
    const peer_product *q = &s->product;
    const float alpha = 1;
    return s->f.Matmul(s->handle, s->desc, &alpha, weight_set_raw(q->weights, i), s->a, q->x_data, s->b, &s->beta,
                       s->residual ? s->residual : q->y_data, s->c, q->y_data, s->c, &s->trial->algo, s->workspace.p, WORKSPACE,
                       stream) == 0;
}

/* ---- the fastest of the list ---- */

static rft_status trial_call(void *user, uint32_t i, void *stream, rft_error *err) {
    if (run_cublaslt(user, i, stream))
        return RFT_OK;
    *err = (rft_error){.status = RFT_E_DEVICE, .message = "the candidate failed"};
    return err->status;
}

/* Outside a graph first, since a kernel may be loaded at its first launch. */
static bool runs_once(peer *p) { return run_cublaslt(p, 0, NULL) && rft_ctx_sync(p->ctx, NULL, NULL) == RFT_OK; }

/* Seconds of a call, every copy of the weights met once where there are not too many; negative: it cannot run. */
static double try_candidate(peer *p, const lt_candidate *candidate, int64_t times) {
    lt_state *s = p->state;
    rft_timing t = {.struct_size = sizeof t};
    rft_error err = {0};
    int64_t calls = times * (s->product.weights->copies < TRIAL_CALLS ? s->product.weights->copies : TRIAL_CALLS);
    s->trial = candidate;
    if (candidate->state != 0 || !runs_once(p) || rft_measure_calls(p->ctx, trial_call, p, (uint32_t)calls, &t, &err) != RFT_OK)
        return -1;
    return t.device_seconds / (double)calls;
}

typedef struct trial {
    double seconds;
    int index;
} trial;

static int by_seconds(const void *a, const void *b) {
    double x = ((const trial *)a)->seconds, y = ((const trial *)b)->seconds;
    return (x > y) - (x < y);
}

/* Times each, then the best ones again. */
static bool choose_candidate(peer *p, const lt_candidate *list, int n) {
    lt_state *s = p->state;
    trial trials[CANDIDATES];
    int good = 0;
    for (int i = 0; i < n; i++) {
        trials[good] = (trial){try_candidate(p, &list[i], 1), i};
        good += trials[good].seconds > 0;
    }
    qsort(trials, (size_t)good, sizeof *trials, by_seconds);
    int last = good < FINALISTS ? good : FINALISTS;
    for (int i = 0; i < last; i++)
        trials[i].seconds = try_candidate(p, &list[trials[i].index], 3);
    qsort(trials, (size_t)last, sizeof *trials, by_seconds);
    int best = 0;
    while (best < last && trials[best].seconds <= 0)
        best++;
    if (best == last)
        return false;
    s->chosen = list[trials[best].index];
    s->trial = &s->chosen;
    return true;
}

static int config_of(const lt_state *s, int attribute) {
    int32_t value = -1;
    size_t written;
    s->f.MatmulAlgoConfigGetAttribute(&s->chosen.algo, attribute, &value, sizeof value, &written);
    return value;
}

/* A program that does not time the list asks for one and runs it. */
static int wanted(const peer *p) { return p->kind == &peer_cublaslt_first ? 1 : CANDIDATES; }

static bool find_algorithm(peer *p, char why[CLI_WHY]) {
    lt_state *s = p->state;
    lt_candidate list[CANDIDATES];
    int n = 0;
    if (s->f.MatmulAlgoGetHeuristic(s->handle, s->desc, s->a, s->b, s->c, s->c, s->preference, wanted(p), list, &n) || n == 0) {
        snprintf(why, CLI_WHY, "its list for this product is empty");
        return false;
    }
    if (!choose_candidate(p, list, n)) {
        snprintf(why, CLI_WHY, "none of the %d algorithms of its list runs", n);
        return false;
    }
    size_t v = s->f.GetVersion();
    snprintf(p->version, sizeof p->version, "%zu.%zu.%zu algorithm %d tile %d stages %d split %d, best of %d", v / 10000,
             v / 100 % 100, v % 100, config_of(s, LT_CONFIG_ID), config_of(s, LT_CONFIG_TILE), config_of(s, LT_CONFIG_STAGES),
             config_of(s, LT_CONFIG_SPLITK), n);
    return true;
}

static void finish_cublaslt(peer *p) {
    lt_state *s = p->state;
    s->f.MatmulPreferenceDestroy(s->preference);
    s->f.MatrixLayoutDestroy(s->a);
    s->f.MatrixLayoutDestroy(s->b);
    s->f.MatrixLayoutDestroy(s->c);
    s->f.MatmulDescDestroy(s->desc);
    *s = (lt_state){.f = s->f, .handle = s->handle, .workspace = s->workspace};
}

static bool prepare_cublaslt(peer *p, const peer_product *product, char why[CLI_WHY]) {
    lt_state *s = p->state;
    s->product = *product;
    if (product->x != product->w || (product->x == RFT_F32 && product->y != RFT_F32))
        snprintf(why, CLI_WHY, "it has no product of %s x %s to %s", rft_type_name(product->x), rft_type_name(product->w),
                 rft_type_name(product->y));
    else if (product->m == 0 || product->n == 0 || product->k == 0)
        snprintf(why, CLI_WHY, "a size is 0");
    else if (!make_descriptors(s))
        snprintf(why, CLI_WHY, "it refuses the matrices");
    else if (!make_epilogue(s, product->epi))
        snprintf(why, CLI_WHY, "it cannot say epilogue %.100s", product->epi->text);
    else if (!weight_set_need_raw(product->weights))
        snprintf(why, CLI_WHY, "no memory for copies of the weights");
    else if (find_algorithm(p, why))
        return true;
    finish_cublaslt(p);
    return false;
}

static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so", NULL};

const peer_kind peer_cublaslt = {"cublaslt",       true,         files,           NULL,          open_cublaslt,
                                 prepare_cublaslt, run_cublaslt, finish_cublaslt, close_cublaslt};
const peer_kind peer_cublaslt_first = {"cublaslt-first", true,         files,           NULL,          open_cublaslt,
                                       prepare_cublaslt, run_cublaslt, finish_cublaslt, close_cublaslt};
