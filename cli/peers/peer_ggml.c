/* SPDX-License-Identifier: Apache-2.0
 *
 * peer_ggml.c - ggml's CPU backend: a product with x and y in f32 and W in floats or in GGUF blocks, which it multiplies in 8
 * bits. W lies in the first of its extra buffer types that takes the product (repacked), as its own programs place it, or as
 * stored where none does; "ggml-plain" always takes it as stored. Packed copies live until the weights change.
 */
#define _GNU_SOURCE
#include "peers/ggml_api.h"
#include "peers/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

#define GRAPH_SIZE  8 /* of one node and two leaves */
#define HUGE_PAGE   ((uintptr_t)2 << 20)
#define SHORT_SPIN  1

typedef struct ggml_state {
    ggml_api f;
    void *backend, *pool, *device;
    ggml_extra_types *extra_types;
    bool plain;
    peer_product product;
    int type;
    int64_t serial, copies; /* of the weights that are packed; serial 0: none are */
    void *w_context, *w_buffer, **w;
    const char *place;
    void *context, *x_buffer, *y_buffer, **graph; /* of the row; a graph a copy */
} ggml_state;

static const char *find_functions(const peer *p, ggml_api *f) {
#define GGML_FIND(result, name, parameters)                                                                                      \
    *(void **)&f->name = peer_symbol(p, "ggml_" #name);                                                                          \
    if (!f->name)                                                                                                                \
        return "ggml_" #name;
    GGML_FUNCTIONS(GGML_FIND)
#undef GGML_FIND
    return NULL;
}

/* Own threads, that a build with OpenMP leaves unused. */
static bool make_pool(ggml_state *s, int threads) {
    ggml_pool_params params = {.threads = 0};
    s->f.threadpool_params_init(&params, threads);
    if (params.threads != threads || params.poll > 100) /* another layout */
        return false;
    params.poll = SHORT_SPIN;
    s->pool = s->f.threadpool_new(&params);
    return s->pool != NULL;
}

static bool make_backend(ggml_state *s, int threads) {
    s->backend = s->f.backend_cpu_init();
    if (!s->backend || !make_pool(s, threads))
        return false;
    s->f.backend_cpu_set_n_threads(s->backend, threads);
    s->f.backend_cpu_set_threadpool(s->backend, s->pool);
    s->device = s->f.backend_get_device(s->backend);
    void *registry = s->f.backend_dev_backend_reg(s->device);
    *(void **)&s->extra_types = s->f.backend_reg_get_proc_address(registry, "ggml_backend_dev_get_extra_bufts");
    return true;
}

static void stay_silent(int level, const char *text, void *user) { (void)level, (void)text, (void)user; }

static void close_ggml(peer *p);

static bool open_ggml(peer *p, char why[CLI_WHY]) {
    ggml_state *s = cli_alloc(1, sizeof *s);
    const char *missing = find_functions(p, &s->f);
    p->state = s;
    s->plain = p->kind == &peer_ggml_plain;
    if (missing) {
        snprintf(why, CLI_WHY, "it does not export %s", missing);
        free(s);
        return false;
    }
    s->f.log_set(stay_silent, NULL);
    if (make_backend(s, (int)p->threads))
        return true;
    snprintf(why, CLI_WHY, "it makes no CPU backend with a thread pool of %u", p->threads);
    close_ggml(p);
    return false;
}

/* The number in a GGUF file, or -1; where the library's type of that number has another name or size, it is not the same type. */
static int type_of(const ggml_state *s, rft_type type, int64_t k) {
    int number = type == RFT_F32 ? GGML_F32 : type == RFT_F16 ? GGML_F16 : type == RFT_BF16 ? GGML_BF16 : (int)type - 256;
    if (number < 0 || number > GGML_LAST)
        return -1;
    const char *name = s->f.type_name(number);
    bool same = name && strcasecmp(name, rft_type_name(type)) == 0;
    return same && k % cli_block(type) == 0 && s->f.row_size(number, k) == rft_type_bytes(type, k) ? number : -1;
}

static void *make_context(const ggml_state *s, int64_t tensors, int64_t graphs) {
    size_t of_graph = s->f.graph_overhead_custom(GRAPH_SIZE, false);
    size_t bytes = (size_t)(tensors + 1) * s->f.tensor_overhead() + (size_t)graphs * of_graph;
    return s->f.init((ggml_arena){bytes, NULL, true});
}

/* ---- W ---- */

static void drop_weights(ggml_state *s) {
    if (s->w_buffer)
        s->f.backend_buffer_free(s->w_buffer);
    if (s->w_context)
        s->f.free(s->w_context);
    free(s->w);
    s->w_context = s->w_buffer = NULL;
    s->w = NULL;
    s->serial = 0;
}

/* The same pages as every contender's weights have. */
static void ask_huge_pages(const ggml_state *s) {
    uintptr_t base = (uintptr_t)s->f.backend_buffer_get_base(s->w_buffer), end = base + s->f.backend_buffer_get_size(s->w_buffer);
    uintptr_t first = (base + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    if (first < end)
        madvise((void *)first, end - first, MADV_HUGEPAGE);
}

/* Whether the backend multiplies a W that lies there; asked of a product that is described, not run. */
static bool takes_product(const ggml_state *s) {
    const peer_product *q = &s->product;
    void *context = make_context(s, 2, 0);
    void *x = context ? s->f.new_tensor_2d(context, GGML_F32, q->k, q->m) : NULL;
    bool good = x && s->f.backend_dev_supports_op(s->device, s->f.mul_mat(context, s->w[0], x));
    if (context)
        s->f.free(context);
    return good;
}

static bool place_weights(ggml_state *s, void *buffer_type) {
    const peer_product *q = &s->product;
    s->copies = q->weights->copies;
    s->w = cli_alloc((size_t)s->copies, sizeof *s->w);
    s->w_context = make_context(s, s->copies, 0);
    for (int64_t i = 0; s->w_context && i < s->copies; i++)
        s->w[i] = s->f.new_tensor_2d(s->w_context, s->type, q->k, q->n);
    s->w_buffer = s->w_context ? s->f.backend_alloc_ctx_tensors_from_buft(s->w_context, buffer_type) : NULL;
    if (s->w_buffer && takes_product(s)) {
        s->place = s->f.backend_buft_name(buffer_type);
        return true;
    }
    drop_weights(s);
    return false;
}

static bool choose_place(ggml_state *s) {
    void **extra = s->extra_types && !s->plain ? s->extra_types(s->device) : NULL;
    for (; extra && *extra; extra++)
        if (place_weights(s, *extra))
            return true;
    return place_weights(s, s->f.backend_cpu_buffer_type());
}

static bool pack_weights(ggml_state *s) {
    const weight_set *set = s->product.weights;
    if (s->serial == set->serial)
        return true;
    drop_weights(s);
    if (!choose_place(s))
        return false;
    ask_huge_pages(s);
    for (int64_t i = 0; i < s->copies; i++)
        s->f.backend_tensor_set(s->w[i], weight_set_raw(set, 0), 0, set->raw_bytes);
    s->serial = set->serial;
    return true;
}

/* ---- one row ---- */

static void finish_ggml(peer *p) {
    ggml_state *s = p->state;
    if (s->x_buffer)
        s->f.backend_buffer_free(s->x_buffer);
    if (s->y_buffer)
        s->f.backend_buffer_free(s->y_buffer);
    if (s->context)
        s->f.free(s->context);
    free(s->graph);
    s->context = s->x_buffer = s->y_buffer = NULL;
    s->graph = NULL;
}

static bool make_graphs(ggml_state *s) {
    const peer_product *q = &s->product;
    s->context = make_context(s, 1 + s->copies, s->copies);
    s->graph = cli_alloc((size_t)s->copies, sizeof *s->graph);
    s->x_buffer = s->f.backend_cpu_buffer_from_ptr((void *)(uintptr_t)q->x_data, (size_t)(q->m * q->k) * sizeof(float));
    s->y_buffer = s->f.backend_cpu_buffer_from_ptr(q->y_data, (size_t)(q->m * q->n) * sizeof(float));
    if (!s->context || !s->x_buffer || !s->y_buffer)
        return false;
    void *x = s->f.new_tensor_2d(s->context, GGML_F32, q->k, q->m);
    bool good = s->f.backend_tensor_alloc(s->x_buffer, x, (void *)(uintptr_t)q->x_data) == 0;
    for (int64_t i = 0; good && i < s->copies; i++) {
        void *y = s->f.mul_mat(s->context, s->w[i], x);
        good = s->f.backend_tensor_alloc(s->y_buffer, y, q->y_data) == 0;
        s->graph[i] = s->f.new_graph_custom(s->context, GRAPH_SIZE, false);
        s->f.build_forward_expand(s->graph[i], y);
    }
    return good;
}

static bool prepare_ggml(peer *p, const peer_product *product, char why[CLI_WHY]) {
    ggml_state *s = p->state;
    s->product = *product;
    s->type = type_of(s, product->w, product->k);
    if (product->x != RFT_F32 || product->y != RFT_F32 || s->type < 0)
        snprintf(why, CLI_WHY, "it has no product of %s and %s in rows of %lld to %s", rft_type_name(product->x),
                 rft_type_name(product->w), (long long)product->k, rft_type_name(product->y));
    else if (product->x_order != RFT_K_CONTIGUOUS || product->w_order != RFT_K_CONTIGUOUS || product->epi->n_op)
        snprintf(why, CLI_WHY, "it multiplies layout nt alone, without an epilogue");
    else if (product->m < 1 || product->n < 1 || product->k < 1)
        snprintf(why, CLI_WHY, "it has no empty products");
    else if (!pack_weights(s) || !make_graphs(s))
        snprintf(why, CLI_WHY, "it has no memory for copies of the weights, or does not multiply them");
    else {
        snprintf(p->version, sizeof p->version, "%s %s", s->f.version(), s->place);
        return true;
    }
    finish_ggml(p);
    return false;
}

static bool run_ggml(peer *p, int64_t i, void *stream) {
    (void)stream;
    ggml_state *s = p->state;
    return s->f.backend_graph_compute(s->backend, s->graph[i % s->copies]) == 0;
}

static void close_ggml(peer *p) {
    ggml_state *s = p->state;
    drop_weights(s);
    if (s->backend)
        s->f.backend_free(s->backend);
    if (s->pool)
        s->f.threadpool_free(s->pool);
    free(s);
    p->state = NULL;
}

static const char *const files[] = {"libggml-cpu.so", "libggml-cpu.so.0", "libggml.so", "libggml.so.0", NULL};

const peer_kind peer_ggml = {"ggml", false, files, NULL, open_ggml, prepare_ggml, run_ggml, finish_ggml, close_ggml};
const peer_kind peer_ggml_plain = {"ggml-plain", false,    files,       NULL,      open_ggml,
                                   prepare_ggml, run_ggml, finish_ggml, close_ggml};
