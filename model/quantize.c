/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize.c - rft_model_quantize: header, then tensor after tensor in pieces of rows, encoded by several threads and measured
 * against what they were made from.
 */
#define _GNU_SOURCE 1
#include "quantize_packed.h"

#include "base/error.h"
#include "base/pool.h"
#include "base/sized.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20 }; /* weights of one piece and thread */

typedef struct errors { /* of new values against old */
    double ee, xx, yy, xy, most;
} errors;

typedef struct worker { /* one thread's part of a piece */
    int64_t row0, rows;
    float *old, *back; /* one row each */
    errors sum;
    int64_t bad_row, bad_k; /* the first weight that cannot be stored; bad_row -1: none */
    float bad;
    rft_status status;
    rft_error err;
} worker;

typedef struct job {
    const rft_model *model;
    const rft_quantize_options *o;
    rft__quantize_plan plan;
    rft__gguf_out out;
    rft__pool *pool;
    worker *workers;
    int threads;
    int64_t longest;      /* row of any tensor */
    unsigned char *piece; /* new bytes */
    size_t piece_bytes;
    const rft__planned *tensor;
    int64_t row0; /* of the piece */
    rft_error *err;
} job;

rft_type rft_quantize_type(uint32_t index) {
    static const rft_type packed[] = {RFT_I4, RFT_I8, RFT_E4M3};
    uint32_t n = 0;
    for (; rft__encoder_at(n); n++) {
        if (n == index) {
            return rft__encoder_at(n)->type;
        }
    }
    return index - n < sizeof packed / sizeof packed[0] ? packed[index - n] : (rft_type)0;
}

static bool is_folder(const job *j) { return rft__packing_is(j->o->to); }

/* ---- header ---- */

static int compare_places(const void *a, const void *b) {
    const rft__gguf_key *const *x = a, *const *y = b;
    return ((*x)->name > (*y)->name) - ((*x)->name < (*y)->name);
}

static bool is_replaced(const rft__gguf_key *key) {
    static const char *const names[] = {"general.file_type", "general.quantization_version"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (key->length == strlen(names[i]) && memcmp(key->name, names[i], key->length) == 0) {
            return true;
        }
    }
    return false;
}

/* The records of the source as they are, in its order, and the keys that say what the new file is. */
static rft_status put_old_keys(const job *j, uint32_t file_type, rft__gguf_out *out) {
    const rft__gguf *g = &j->model->gguf;
    const rft__allocator *a = &j->model->allocator;
    const rft__gguf_key **order = rft__alloc(a, g->n_keys * sizeof *order, sizeof(void *));
    if (!order) {
        RFT_FAIL(j->err, RFT_E_NOMEM, "no memory for %zu keys", g->n_keys);
    }
    for (size_t i = 0; i < g->n_keys; i++) {
        order[i] = &g->keys[i];
    }
    qsort(order, g->n_keys, sizeof *order, compare_places);
    for (size_t i = 0; i < g->n_keys; i++) {
        if (!is_replaced(order[i])) {
            rft__out_bytes(out, order[i]->name - 8, order[i]->record);
            out->n_keys++;
        }
    }
    rft__out_key_u32(out, "general.file_type", file_type);
    rft__out_key_u32(out, "general.quantization_version", 2);
    rft__release(a, order, g->n_keys * sizeof *order);
    return RFT_OK;
}

static rft_status put_keys(const job *j, rft__gguf_out *out) {
    const uint32_t file_type = (uint32_t)rft__encoder_find(j->o->to)->file_type;
    return j->model->format == RFT_MODEL_GGUF ? put_old_keys(j, file_type, out)
                                              : rft__hf_gguf_keys(j->model, file_type, out, j->err);
}

static void put_tensor_info(rft__gguf_out *out, const rft__quantize_plan *plan, const rft__planned *p) {
    const int64_t freqs[1] = {plan->n_freqs};
    const int64_t *dims = p->source ? p->source->dims : freqs;
    const uint32_t n_dims = p->source ? (p->source->n_dims ? p->source->n_dims : 1) : 1;
    rft__out_text(out, p->name);
    rft__out_u32(out, n_dims);
    for (uint32_t i = 0; i < n_dims; i++) {
        rft__out_u64(out, (uint64_t)dims[i]);
    }
    rft__out_u32(out, (uint32_t)p->to->gguf);
    rft__out_u64(out, p->offset);
}

static rft_status put_header(job *j) {
    rft__gguf_out count = {.dry = true};
    RFT_TRY(put_keys(j, &count));
    rft__out_bytes(&j->out, "GGUF", 4);
    rft__out_u32(&j->out, 3);
    rft__out_u64(&j->out, j->plan.count);
    rft__out_u64(&j->out, count.n_keys);
    RFT_TRY(put_keys(j, &j->out));
    for (size_t i = 0; i < j->plan.count; i++) {
        put_tensor_info(&j->out, &j->plan, &j->plan.list[i]);
    }
    rft__out_pad(&j->out, j->plan.alignment);
    return RFT_OK;
}

/* ---- one row ---- */

static void compare(const float *old, const float *back, int64_t n, errors *sum) {
    for (int64_t i = 0; i < n; i++) {
        const double x = old[i], y = back[i], e = y - x;
        sum->ee += e * e;
        sum->xx += x * x;
        sum->yy += y * y;
        sum->xy += x * y;
        sum->most = fmax(sum->most, fabs(e));
    }
}

/* A vector's own elements stand for rows. */
static void permute_vector(const rft__planned *p, float *row, float *scratch) {
    const int64_t n = p->source->dims[0];
    for (int64_t i = 0; i < n; i++) {
        scratch[i] = row[rft__hf_gguf_row(i, n, p->heads)];
    }
    memcpy(row, scratch, (size_t)n * sizeof *row);
}

static rft_status read_row(const job *j, int64_t row, worker *w) {
    const rft__planned *p = j->tensor;
    const bool vector = p->source->n_dims < 2;
    const int64_t from = vector ? row : rft__hf_gguf_row(row, p->source->rows, p->heads);
    RFT_TRY(rft_model_decode(j->model, p->index, from, 1, RFT_F32, w->old, 0, &w->err));
    if (vector && p->heads > 0) {
        permute_vector(p, w->old, w->back);
    }
    return RFT_OK;
}

static float limit_of(const rft__planned *p) { return p->packed ? rft__packing_limit(&p->packing) : p->encoder->limit; }

static void encode(const rft__planned *p, rft__fit fit, int64_t row, worker *w, unsigned char *dst) {
    const int64_t blocks = p->source->dims[0] / p->to->block_elements;
    if (p->packed) {
        rft__pack_row(&p->packing, w->old, fit, dst, p->scales + row * rft__packing_scale_bytes(&p->packing), w->back);
    } else {
        p->encoder->encode_blocks(w->old, blocks, fit, dst);
        p->to->decode_blocks(dst, blocks, w->back);
    }
}

static rft_status encode_row(const job *j, int64_t row, worker *w) {
    const rft__planned *p = j->tensor;
    const int64_t k = p->source->dims[0];
    RFT_TRY(read_row(j, row, w));
    const int64_t bad = rft__encode_check(limit_of(p), w->old, k);
    if (bad >= 0) {
        w->bad_row = row;
        w->bad_k = bad;
        w->bad = w->old[bad];
        return RFT_E_ARG;
    }
    encode(p, j->o->flags & RFT_QUANTIZE_NEAREST ? RFT_FIT_NEAREST : RFT_FIT_SEARCH, row, w,
           j->piece + (row - j->row0) * (p->bytes / p->source->rows));
    compare(w->old, w->back, k, &w->sum);
    return RFT_OK;
}

static void copy_row(const job *j, int64_t row) {
    const rft__tensor *t = j->tensor->source;
    const int64_t bytes = t->bytes / t->rows;
    const int64_t from = rft__hf_gguf_row(row, t->rows, j->tensor->heads);
    memcpy(j->piece + (row - j->row0) * bytes, t->data + from * bytes, (size_t)bytes);
}

static void run_worker(void *arg, int i) {
    const job *j = arg;
    worker *w = &j->workers[i];
    w->status = RFT_OK;
    w->bad_row = -1;
    for (int64_t row = w->row0; row < w->row0 + w->rows && w->status == RFT_OK; row++) {
        if (j->tensor->encoder || j->tensor->packed) {
            w->status = encode_row(j, row, w);
        } else {
            copy_row(j, row);
        }
    }
}

/* ---- one tensor ---- */

static rft_status report_worker(const job *j, const worker *w) {
    if (w->bad_row < 0) {
        return rft__error_set(j->err, w->status, w->err.native, "%.200s", w->err.message);
    }
    const float limit = limit_of(j->tensor);
    RFT_FAIL(j->err, RFT_E_ARG, "tensor '%.99s' has %g at row %" PRId64 ", k = %" PRId64 ": %s holds finite numbers up to %g",
             j->tensor->name, (double)w->bad, w->bad_row, w->bad_k, j->tensor->to->name,
             limit > 0 ? (double)limit : 3.4028234663852886e38);
}

static rft_status run_piece(job *j, int64_t rows) {
    const int64_t share = rft__ceil_div(rows, j->threads);
    int n = 0;
    for (int64_t at = 0; at < rows; at += share, n++) {
        j->workers[n].row0 = j->row0 + at;
        j->workers[n].rows = rft__min(share, rows - at);
    }
    rft__pool_run(j->pool, n, run_worker, j);
    for (int i = 0; i < n; i++) {
        if (j->workers[i].status != RFT_OK) {
            return report_worker(j, &j->workers[i]);
        }
    }
    return RFT_OK;
}

static errors sum_up(job *j) {
    errors sum = {0};
    for (int i = 0; i < j->threads; i++) {
        const errors *w = &j->workers[i].sum;
        sum.ee += w->ee, sum.xx += w->xx, sum.yy += w->yy, sum.xy += w->xy;
        sum.most = fmax(sum.most, w->most);
    }
    return sum;
}

static rft_status tell(job *j, int64_t rows, int64_t k, int64_t done) {
    const rft__planned *p = j->tensor;
    const errors sum = sum_up(j);
    rft_quantized q = rft_quantized_init();
    q.name = p->name;
    q.why = p->why;
    q.scheme = p->source && p->source->import ? p->source->import->text : "";
    q.from = p->source ? p->source->format->type : RFT_F32;
    q.to = p->to->type;
    q.n = rows, q.k = k, q.done = done;
    q.bytes = (uint64_t)p->bytes;
    q.index = p - j->plan.list;
    q.count = (int64_t)j->plan.count;
    q.rel_rms = sum.xx > 0 ? sqrt(sum.ee / sum.xx) : 0;
    q.max_error = sum.most;
    q.cosine = sum.xx > 0 && sum.yy > 0 ? sum.xy / sqrt(sum.xx * sum.yy) : 1;
    if (j->o->progress && j->o->progress(j->o->user, &q) != 0) {
        return rft__error_set(j->err, RFT_E_IO, EINTR, "stopped at tensor '%.99s', before the file was whole", p->name);
    }
    return RFT_OK;
}

static int64_t rows_of_piece(const job *j, int64_t k) { return rft__max(j->threads, j->threads * (PIECE / rft__max(k, 1))); }

static rft_status put_tensor(job *j) {
    const rft__tensor *t = j->tensor->source;
    const int64_t piece = rows_of_piece(j, t->dims[0]), row_bytes = j->tensor->bytes / t->rows;
    for (int i = 0; i < j->threads; i++) {
        j->workers[i].sum = (errors){0};
    }
    for (j->row0 = 0; j->row0 < t->rows; j->row0 += piece) {
        const int64_t rows = rft__min(piece, t->rows - j->row0);
        RFT_TRY(run_piece(j, rows));
        rft__out_bytes(&j->out, j->piece, (size_t)(rows * row_bytes));
        RFT_TRY(j->out.status);
        RFT_TRY(tell(j, t->rows, t->dims[0], j->row0 + rows));
    }
    return RFT_OK;
}

static rft_status put_one(job *j) {
    if (!j->tensor->source) {
        rft__out_bytes(&j->out, j->plan.freqs, (size_t)j->tensor->bytes);
        return tell(j, 1, j->plan.n_freqs, 1);
    }
    return j->tensor->source->rows > 0 ? put_tensor(j) : tell(j, 0, j->tensor->source->dims[0], 0);
}

/* Packed tensors come first, and then their scales. */
static rft_status put_tensors(job *j) {
    bool scales = j->plan.scale_bytes == 0; /* are written */
    for (size_t i = 0; i < j->plan.count; i++) {
        j->tensor = &j->plan.list[i];
        if (!j->tensor->packed && !scales) {
            rft__packed_put_scales(&j->plan, &j->out);
            scales = true;
        }
        RFT_TRY(put_one(j));
        rft__out_pad(&j->out, j->plan.alignment);
    }
    if (!scales) {
        rft__packed_put_scales(&j->plan, &j->out);
    }
    return RFT_OK;
}

/* ---- the whole ---- */

static rft_status make_room(job *j) {
    const rft__allocator *a = &j->model->allocator;
    for (size_t i = 0; i < j->plan.count; i++) {
        const rft__planned *p = &j->plan.list[i];
        if (p->source) {
            const size_t bytes =
                (size_t)(rft__min(rows_of_piece(j, p->source->dims[0]), p->source->rows) * (p->bytes / p->source->rows));
            j->piece_bytes = bytes > j->piece_bytes ? bytes : j->piece_bytes;
            j->longest = rft__max(j->longest, p->source->dims[0]);
        }
    }
    j->piece = rft__alloc(a, j->piece_bytes, 64);
    j->workers = rft__alloc(a, (size_t)j->threads * sizeof *j->workers, sizeof(void *));
    bool whole = j->piece && j->workers;
    for (int i = 0; i < j->threads && whole; i++) {
        j->workers[i].old = rft__alloc(a, (size_t)j->longest * sizeof(float), 64);
        j->workers[i].back = rft__alloc(a, (size_t)j->longest * sizeof(float), 64);
        whole = j->workers[i].old && j->workers[i].back;
    }
    if (!whole) {
        RFT_FAIL(j->err, RFT_E_NOMEM, "no memory for pieces of %zu bytes", j->piece_bytes);
    }
    return rft__pool_create(a, j->threads, NULL, NULL, &j->pool, j->err);
}

static void drop_room(job *j) {
    const rft__allocator *a = &j->model->allocator;
    for (int i = 0; i < j->threads && j->workers; i++) {
        rft__release(a, j->workers[i].old, (size_t)j->longest * sizeof(float));
        rft__release(a, j->workers[i].back, (size_t)j->longest * sizeof(float));
    }
    rft__release(a, j->workers, (size_t)j->threads * sizeof *j->workers);
    rft__release(a, j->piece, j->piece_bytes);
    rft__pool_free(j->pool);
}

static rft_status write_file(job *j, const char *path) {
    RFT_TRY(make_room(j));
    RFT_TRY(rft__gguf_out_begin(&j->model->allocator, path, &j->out, j->err));
    rft_status status = is_folder(j) ? rft__packed_put_head(&j->plan, &j->out, j->err) : put_header(j);
    if (status == RFT_OK) {
        status = put_tensors(j);
    }
    return rft__gguf_out_end(&j->out, status);
}

/* ---- a folder ---- */

static rft_status folder_error(const job *j, const char *what, const char *path) {
    const int code = errno;
    return rft__error_set(j->err, RFT_E_IO, code, "cannot %s '%.120s': %s", what, path, strerrordesc_np(code));
}

/* A slash at the folder's end does not count. */
static bool join(const char *folder, const char *name, char out[PATH_MAX]) {
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/') {
        n--;
    }
    const int length = snprintf(out, PATH_MAX, "%.*s%s", (int)rft__min((int64_t)n, PATH_MAX), folder, name);
    return length > 0 && length < PATH_MAX;
}

static rft_status write_both(job *j, const char *tensors, const char *config) {
    char *text;
    RFT_TRY(write_file(j, tensors));
    RFT_TRY(rft__packed_config(j->model, j->o, &j->plan, &text, j->err));
    const rft_status status = rft__file_replace(config, text, strlen(text), j->err);
    free(text);
    return status;
}

/* Made under another name, which it loses once it is whole. */
static rft_status write_folder(job *j, const char *path) {
    char folder[PATH_MAX], tensors[PATH_MAX], config[PATH_MAX], suffix[32];
    snprintf(suffix, sizeof suffix, ".%ld.tmp", (long)getpid());
    if (!join(path, suffix, folder) || !join(folder, "/model.safetensors", tensors) || !join(folder, "/config.json", config)) {
        RFT_FAIL(j->err, RFT_E_ARG, "a path of %zu bytes is too long", strlen(path));
    }
    if (access(path, F_OK) == 0) {
        errno = EEXIST;
        return folder_error(j, "make the folder", path);
    }
    if (mkdir(folder, 0777) != 0) {
        return folder_error(j, "make the folder", folder);
    }
    rft_status status = write_both(j, tensors, config);
    if (status == RFT_OK && rename(folder, path) != 0) {
        status = folder_error(j, "make the folder", path);
    }
    if (status != RFT_OK) {
        unlink(tensors);
        unlink(config);
        rmdir(folder);
    }
    return status;
}

/* ---- the call ---- */

static rft_status check_options(const rft_model *m, const char *path, const rft_quantize_options *o, rft_error *err) {
    if (!m || !path || (o->n_keep > 0 && !o->keep)) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", !m ? "model" : !path ? "path" : "options.keep");
    }
    if (m->tensors->count == 0) {
        RFT_FAIL(err, RFT_E_ARG, "the model has no tensors: a config.json alone cannot be quantised");
    }
    if (!rft__encoder_find(o->to) && !rft__packing_is(o->to)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "options.to = %d (%s) is no type that can be written", (int)o->to,
                 rft__format_name(o->to));
    }
    const uint32_t known = RFT_QUANTIZE_NEAREST | RFT_QUANTIZE_EMBEDDINGS | RFT_QUANTIZE_AGAIN;
    if ((o->flags & ~known) != 0 || o->threads > RFT_MAX_THREADS) {
        RFT_FAIL(err, RFT_E_ARG, "options.flags = %" PRIu32 " or options.threads = %" PRIu32 " is not allowed", o->flags,
                 o->threads);
    }
    return RFT_OK;
}

rft_status rft_model_quantize(const rft_model *m, const char *path, const rft_quantize_options *given, rft_error *err) {
    rft_quantize_options o;
    RFT_TRY(rft__sized_read(&o, sizeof o, given, "options", err));
    RFT_TRY(check_options(m, path, &o, err));
    job *j = rft__alloc(&m->allocator, sizeof *j, sizeof(void *));
    if (!j) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory to quantise a model");
    }
    *j = (job){.model = m, .o = &o, .err = err, .threads = o.threads ? (int)o.threads : rft__pool_default_threads()};
    rft_status status = (is_folder(j) ? rft__packed_plan_make : rft__quantize_plan_make)(m, &o, &j->plan, err);
    if (status == RFT_OK) {
        status = (is_folder(j) ? write_folder : write_file)(j, path);
        drop_room(j);
        rft__quantize_plan_free(&m->allocator, &j->plan);
    }
    rft__release(&m->allocator, j, sizeof *j);
    return status;
}
