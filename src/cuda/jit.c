/* SPDX-License-Identifier: Apache-2.0
 *
 * jit.c - requests become cubins: look each up in the cache, compile what is missing on several threads, keep the new ones.
 * Called by the CUDA backend when it makes plans. Invariant: all that a cubin depends on is in its key.
 */
#include "cuda/jit.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/pool.h"
#include "cuda/jit_cache.h"
#include "cuda/jit_log.h"
#include "cuda/nvrtc.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define CONFIG "config.h"
#define CODE_ALIGN 64
#define MAX_OPTIONS 9

struct rft__jit {
    rft__allocator allocator;
    rft__log log;
    const rft__cuda_source *source;
    int threads;
    bool debug;
    int dump;
    atomic_flag complained; /* that the cache cannot be written */
    size_t cache_size;      /* of cache_dir with its end; 0: no cache */
    char cache_dir[];
};

typedef struct options {
    char arch[40], dump[32];
    const char *text[MAX_OPTIONS];
    int count;
} options;

typedef struct job {
    const rft__jit_request *request;
    rft__cubin *out;
    rft__cuda_unit unit;
    rft__jit_key key;
    options options;
    rft_status status;
    rft_error err;
} job;

typedef struct batch {
    const rft__jit *jit;
    const rft__nvrtc *nvrtc;
    job *jobs; /* those to compile */
    uint32_t count;
    _Atomic uint32_t next;
} batch;

/* ---- the object ---- */

rft_status rft__jit_create(const rft__jit_options *o, rft__jit **out, rft_error *err) {
    const size_t cache_size = o->cache_dir != NULL ? strlen(o->cache_dir) + 1 : 0;
    rft__jit *jit = rft__alloc(&o->allocator, sizeof *jit + cache_size, _Alignof(max_align_t));
    if (jit == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a kernel compiler (%zu bytes)", sizeof *jit + cache_size);
    }
    jit->allocator = o->allocator;
    jit->log = o->log;
    jit->source = o->source != NULL ? o->source : &rft__cuda_embedded;
    jit->threads = o->threads > 0 && o->threads <= RFT_MAX_THREADS ? (int)o->threads : rft__pool_default_threads();
    jit->debug = o->debug;
    jit->dump = o->dump;
    atomic_flag_clear(&jit->complained);
    jit->cache_size = cache_size;
    if (cache_size > 0) {
        memcpy(jit->cache_dir, o->cache_dir, cache_size);
    }
    *out = jit;
    return RFT_OK;
}

void rft__jit_free(rft__jit *jit) {
    if (jit != NULL) {
        const rft__allocator a = jit->allocator;
        rft__release(&a, jit, sizeof *jit + jit->cache_size);
    }
}

void rft__cubin_release(const rft__jit *jit, rft__cubin *cubin) {
    rft__release(&jit->allocator, cubin->data, cubin->size);
    *cubin = (rft__cubin){.data = NULL};
}

/* ---- what a request depends on ---- */

/* sm_90a has wgmma and setmaxnreg, sm_90 has not. */
static const char *arch_letter(int arch) {
    return arch == 90 ? "a" : "";
}

/* No --restrict: y may be an operand of the epilogue. No source folder: an include never reaches the user's files. */
static void make_options(const rft__jit *jit, int arch, options *o) {
    snprintf(o->dump, sizeof o->dump, "-DRFT_KERNEL_DUMP=%d", jit->dump);
    snprintf(o->arch, sizeof o->arch, "--gpu-architecture=sm_%d%s", arch, arch_letter(arch));
    const char *const all[] = {o->arch,
                               "--std=c++17",
                               "--fmad=false",
                               "--device-as-default-execution-space",
                               "--no-source-include",
                               "--ptxas-options=-v",
                               "-DRFT_KERNEL_DEBUG=1",
                               o->dump,
                               "--generate-line-info"};
    o->count = jit->debug ? 9 : 6;
    memcpy(o->text, all, sizeof all);
}

/* The digest stands for the text: all of it would take longer to hash than a cubin to read. */
static void add_text(rft__jit_key *key, const rft__cuda_text *t) {
    rft__jit_key_add_text(key, t->name);
    rft__jit_key_add_text(key, t->digest != NULL ? t->digest : t->text);
}

static rft__jit_key make_key(const rft__nvrtc *nvrtc, const job *j) {
    const int version[] = {nvrtc->major, nvrtc->minor};
    rft__jit_key key = rft__jit_key_start();
    rft__jit_key_add(&key, version, sizeof version);
    for (int i = 0; i < j->options.count; i++) {
        rft__jit_key_add_text(&key, j->options.text[i]);
    }
    rft__jit_key_add_text(&key, j->request->entry);
    rft__jit_key_add_text(&key, j->request->config);
    add_text(&key, j->unit.source);
    for (uint32_t i = 0; i < j->unit.n_includes; i++) {
        add_text(&key, j->unit.includes[i]);
    }
    return key;
}

static rft_status prepare(const rft__jit *jit, const rft__nvrtc *nvrtc, const rft__jit_request *request, rft__cubin *out, job *j,
                          rft_error *err) {
    if (!rft__nvrtc_knows(nvrtc, request->arch)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "NVRTC %d.%d cannot compile for compute capability %d.%d", nvrtc->major, nvrtc->minor,
                 request->arch / 10, request->arch % 10);
    }
    j->request = request;
    j->out = out;
    RFT_TRY(rft__cuda_unit_find(jit->source, request->source, &j->unit, err));
    make_options(jit, request->arch, &j->options);
    j->key = make_key(nvrtc, j);
    return RFT_OK;
}

/* ---- events ---- */

static void log_cubin(const rft__jit *jit, const rft__jit_request *r, const rft__cubin *c) {
    const bool bad = c->spill_bytes > 0 || c->serialized;
    const rft_log_level level = bad ? RFT_LOG_HINT : RFT_LOG_DISPATCH;
    if (!rft__log_enabled(&jit->log, level)) {
        return;
    }
    char what[128];
    snprintf(what, sizeof what, "%s:%s", r->source, r->entry);
    rft__log_event(&jit->log, level, "jit", what, c->milliseconds * 1e3,
                   "%s; sm_%d%s; %d registers; %d bytes of shared memory; %d bytes spilled%s", c->cached ? "cached" : "compiled",
                   r->arch, arch_letter(r->arch), c->registers, c->shared_bytes, c->spill_bytes,
                   c->serialized ? "; wgmma serialised" : "");
}

static void log_lines(const rft__jit *jit, const char *what, const char *text) {
    for (size_t length; *text != '\0'; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        if (length > 0) {
            rft__log_event(&jit->log, RFT_LOG_ERROR, "jit", what, -1, "%.*s", (int)(length < 2000 ? length : 2000), text);
        }
    }
}

static void log_cache_failure(rft__jit *jit, const rft_error *why) {
    if (!atomic_flag_test_and_set(&jit->complained)) {
        rft__log_event(&jit->log, RFT_LOG_HINT, "jit", "cache", -1, "compiled kernels are not kept: %s", why->message);
    }
}

/* ---- one compilation ---- */

static rft_status check(const rft__nvrtc *nvrtc, nvrtcResult result, const char *what, const job *j, rft_error *err) {
    if (result == NVRTC_SUCCESS) {
        return RFT_OK;
    }
    return rft__error_set(err, RFT_E_JIT, result, "NVRTC cannot %s %s: %s", what, j->request->source,
                          nvrtc->nvrtcGetErrorString(result));
}

static rft_status create_program(const rft__nvrtc *nvrtc, const job *j, nvrtcProgram *program, rft_error *err) {
    const char *texts[RFT_CUDA_MAX_INCLUDES + 1], *names[RFT_CUDA_MAX_INCLUDES + 1];
    int count = 0;
    for (; count < (int)j->unit.n_includes; count++) {
        texts[count] = j->unit.includes[count]->text;
        names[count] = j->unit.includes[count]->name;
    }
    texts[count] = j->request->config;
    names[count++] = CONFIG;
    const nvrtcResult result =
        nvrtc->nvrtcCreateProgram(program, j->unit.source->text, j->request->source, count, texts, names);
    return check(nvrtc, result, "take", j, err);
}

/* *log: size bytes to release. */
static rft_status get_log(const rft__jit *jit, const rft__nvrtc *nvrtc, nvrtcProgram program, const job *j, char **log,
                          size_t *size, rft_error *err) {
    RFT_TRY(check(nvrtc, nvrtc->nvrtcGetProgramLogSize(program, size), "size the log of", j, err));
    *size += 1; /* an end of our own */
    *log = rft__alloc(&jit->allocator, *size, sizeof(void *));
    if (*log == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for the %zu bytes of the log of kernel %s", *size, j->request->entry);
    }
    return check(nvrtc, nvrtc->nvrtcGetProgramLog(program, *log), "give the log of", j, err);
}

static rft_status explain_failure(const rft__jit *jit, const job *j, nvrtcResult result, const char *log, rft_error *err) {
    char line[200];
    rft__jit_log_error(log, line, sizeof line);
    log_lines(jit, j->request->source, log);
    return rft__error_set(err, RFT_E_JIT, result, "kernel %s for sm_%d%s does not compile: %s", j->request->entry,
                          j->request->arch, arch_letter(j->request->arch), line);
}

static rft_status get_cubin(const rft__jit *jit, const rft__nvrtc *nvrtc, nvrtcProgram program, const job *j, rft_error *err) {
    size_t size = 0;
    RFT_TRY(check(nvrtc, nvrtc->nvrtcGetCUBINSize(program, &size), "size the code of", j, err));
    void *data = rft__alloc(&jit->allocator, size, CODE_ALIGN);
    if (data == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for the %zu bytes of kernel %s", size, j->request->entry);
    }
    j->out->data = data;
    j->out->size = size;
    return check(nvrtc, nvrtc->nvrtcGetCUBIN(program, data), "give the code of", j, err);
}

static rft_status compile_program(const rft__jit *jit, const rft__nvrtc *nvrtc, nvrtcProgram program, job *j, rft_error *err) {
    const nvrtcResult result = nvrtc->nvrtcCompileProgram(program, j->options.count, j->options.text);
    size_t log_size = 0;
    char *log = NULL;
    rft_status status = get_log(jit, nvrtc, program, j, &log, &log_size, err);
    if (status == RFT_OK && result == NVRTC_SUCCESS) {
        rft__jit_log_figures(log, j->request->entry, j->out);
        status = get_cubin(jit, nvrtc, program, j, err);
    } else if (status == RFT_OK) {
        status = explain_failure(jit, j, result, log, err);
    }
    rft__release(&jit->allocator, log, log_size);
    return status;
}

static rft_status compile(const rft__jit *jit, const rft__nvrtc *nvrtc, job *j, rft_error *err) {
    const double start = rft__now();
    nvrtcProgram program = NULL;
    RFT_TRY(create_program(nvrtc, j, &program, err));
    const rft_status status = compile_program(jit, nvrtc, program, j, err);
    nvrtc->nvrtcDestroyProgram(&program);
    j->out->milliseconds = (rft__now() - start) * 1e3;
    return status;
}

/* ---- all of them ---- */

static void compile_next(void *arg, int thread) {
    batch *b = arg;
    (void)thread;
    for (uint32_t i; (i = atomic_fetch_add(&b->next, 1)) < b->count;) {
        job *j = &b->jobs[i];
        j->status = compile(b->jit, b->nvrtc, j, &j->err);
    }
}

static void compile_all(batch *b) {
    const int threads = b->jit->threads < (int)b->count ? b->jit->threads : (int)b->count;
    rft__pool *pool;
    if (threads <= 1 || rft__pool_create(&b->jit->allocator, threads, NULL, NULL, &pool, NULL) != RFT_OK) {
        compile_next(b, 0);
        return;
    }
    rft__pool_run(pool, threads, compile_next, b);
    rft__pool_free(pool);
}

static bool read_cached(const rft__jit *jit, const job *j) {
    const double start = rft__now();
    if (jit->cache_size == 0 || !rft__jit_cache_read(&jit->allocator, jit->cache_dir, &j->key, j->out)) {
        return false;
    }
    j->out->milliseconds = (rft__now() - start) * 1e3;
    log_cubin(jit, j->request, j->out);
    return true;
}

static void keep(rft__jit *jit, const job *j) {
    rft_error why;
    log_cubin(jit, j->request, j->out);
    if (jit->cache_size > 0 && rft__jit_cache_write(&jit->allocator, jit->cache_dir, &j->key, j->out, &why) != RFT_OK) {
        log_cache_failure(jit, &why);
    }
}

/* Keeps what compiled even where another request failed. */
static rft_status finish(rft__jit *jit, const batch *b, rft_error *err) {
    const job *failed = NULL;
    for (uint32_t i = 0; i < b->count; i++) {
        const job *j = &b->jobs[i];
        if (j->status == RFT_OK) {
            keep(jit, j);
        } else if (failed == NULL) {
            failed = j;
        }
    }
    return failed == NULL ? RFT_OK : rft__error_set(err, failed->status, failed->err.native, "%s", failed->err.message);
}

static rft_status get_all(rft__jit *jit, const rft__nvrtc *nvrtc, const rft__jit_request *requests, uint32_t count, job *jobs,
                          rft__cubin *out, rft_error *err) {
    batch b = {.jit = jit, .nvrtc = nvrtc, .jobs = jobs};
    atomic_init(&b.next, 0);
    for (uint32_t i = 0; i < count; i++) {
        job *j = &jobs[b.count];
        RFT_TRY(prepare(jit, nvrtc, &requests[i], &out[i], j, err));
        b.count += !read_cached(jit, j);
    }
    compile_all(&b);
    return finish(jit, &b, err);
}

rft_status rft__jit_get(rft__jit *jit, const rft__jit_request *requests, uint32_t count, rft__cubin *out, rft_error *err) {
    if (count > RFT_JIT_MAX) {
        RFT_FAIL(err, RFT_E_ARG, "%u kernels are asked for at once, at most %d are allowed", count, RFT_JIT_MAX);
    }
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (rft__cubin){.data = NULL};
    }
    const rft__nvrtc *nvrtc = rft__nvrtc_get(err);
    if (nvrtc == NULL) {
        return RFT_E_JIT;
    }
    job *jobs = rft__alloc(&jit->allocator, count * sizeof *jobs, _Alignof(job));
    if (jobs == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory to compile %u kernels (%zu bytes)", count, count * sizeof *jobs);
    }
    const rft_status status = get_all(jit, nvrtc, requests, count, jobs, out, err);
    rft__release(&jit->allocator, jobs, count * sizeof *jobs);
    for (uint32_t i = 0; status != RFT_OK && i < count; i++) {
        rft__cubin_release(jit, &out[i]);
    }
    return status;
}
