/* SPDX-License-Identifier: Apache-2.0
 *
 * ctx.c - contexts: checks the options, opens the device, reads the machine's profile.
 * Invariant: a context that could not be made leaves nothing behind.
 */
#include "api/api.h"
#include "base/env.h"
#include "base/pool.h"
#include "base/sized.h"
#include "plan/registry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

/* ---- options ---- */

static rft_status check_options(const rft_ctx_options *o, const rft__backend *backend, rft_error *err) {
    if (o->threads > RFT_MAX_THREADS) {
        RFT_FAIL(err, RFT_E_ARG, "options.threads = %u is more than %d", o->threads, RFT_MAX_THREADS);
    }
    if (o->flags & ~(RFT_CTX_HUGE_PAGES | RFT_CTX_STRICT)) {
        RFT_FAIL(err, RFT_E_ARG, "options.flags = 0x%x has bits that are no RFT_CTX_ flag", o->flags);
    }
    if ((o->alloc == NULL) != (o->release == NULL)) {
        RFT_FAIL(err, RFT_E_ARG, "options.%s is NULL and options.%s is not; give both or neither",
                 o->alloc == NULL ? "alloc" : "release", o->alloc == NULL ? "release" : "alloc");
    }
    if ((int)o->log_level < RFT_LOG_NONE || o->log_level > RFT_LOG_ALL) {
        RFT_FAIL(err, RFT_E_ARG, "options.log_level = %d is not an rft_log_level", (int)o->log_level);
    }
    if (o->cuda_context != NULL && strcmp(backend->name, "cuda") != 0) {
        RFT_FAIL(err, RFT_E_ARG, "options.cuda_context is set for device \"%s\", which has none", backend->name);
    }
    return RFT_OK;
}

static rft__allocator make_allocator(const rft_ctx_options *o) {
    rft__allocator a = rft__allocator_default();
    if (o->alloc != NULL) {
        a.alloc = o->alloc;
        a.release = o->release;
        a.user = o->user;
    }
    a.huge_pages = (o->flags & RFT_CTX_HUGE_PAGES) != 0;
    return a;
}

/* ---- profile ---- */

/* A profile that the caller named must be good; the one in the cache folder is a help that may be missing. */
static rft_status load_named(rft_ctx *ctx, const char *path, rft_error *err) {
    ctx->machine.struct_size = sizeof ctx->machine;
    RFT_TRY(rft_machine_load(path, &ctx->machine, err));
    if (strncmp(ctx->machine.device, ctx->backend->name, strlen(ctx->backend->name)) != 0) {
        RFT_FAIL(err, RFT_E_ARG, "options.profile = \"%s\" describes device \"%s\", the context's is \"%s\"", path,
                 ctx->machine.device, ctx->backend->name);
    }
    ctx->has_machine = true;
    return RFT_OK;
}

static void load_default(rft_ctx *ctx, const char *cache_dir) {
    char folder[PATH_BYTES], path[PATH_BYTES + 64];
    if (!rft__env_cache_dir(cache_dir, folder, sizeof folder)) {
        return;
    }
    snprintf(path, sizeof path, "%s/machine-%s.json", folder, ctx->backend->name);
    rft_error why;
    if (load_named(ctx, path, &why) != RFT_OK && !(why.status == RFT_E_IO && why.native == ENOENT)) {
        rft__log_event(&ctx->log, RFT_LOG_WARN, "profile", path, -1, "ignored: %s", why.message);
    }
}

static rft_status load_profile(rft_ctx *ctx, const rft_ctx_options *o, const rft__described *as, rft_error *err) {
    if (as != NULL) {
        ctx->machine = *as->machine;
        ctx->has_machine = true;
        return RFT_OK;
    }
    if (o->profile != NULL) {
        return load_named(ctx, o->profile, err);
    }
    load_default(ctx, o->cache_dir);
    return RFT_OK;
}

/* ---- life ---- */

static rft_status open_device(rft_ctx *ctx, const rft_ctx_options *o, int ordinal, const rft__described *as, rft_error *err) {
    rft__device_options options = {.ctx = o,
                                   .allocator = &ctx->allocator,
                                   .log = &ctx->log,
                                   .machine = ctx->has_machine ? &ctx->machine : NULL,
                                   .ordinal = ordinal,
                                   .strict = ctx->strict};
    if (as != NULL) {
        options.as = as->machine;
        options.as_threads = as->threads;
        options.compile = as->compile;
    }
    RFT_TRY(ctx->backend->open(&options, &ctx->device, err));
    rft_device_info info = {.struct_size = sizeof info};
    ctx->backend->describe(ctx->device, &info);
    ctx->threads = as != NULL ? as->threads : (uint32_t)info.threads;
    rft__log_event(&ctx->log, RFT_LOG_DISPATCH, "context", ctx->backend->name, -1, "%s; isa %s; %u threads", info.name, info.isa,
                   ctx->threads);
    return RFT_OK;
}

static void warn_of_threads(const rft_ctx *ctx) {
    const char *const text = rft__env_text("RFT_NUM_THREADS");
    int64_t threads = 0;
    if (text != NULL && !rft__env_count("RFT_NUM_THREADS", RFT_MAX_THREADS, &threads)) {
        rft__log_event(&ctx->log, RFT_LOG_WARN, "environment", "RFT_NUM_THREADS", -1,
                       "ignored: %s is not a whole number in 1..%d", text, RFT_MAX_THREADS);
    }
}

static rft_status fill(rft_ctx *ctx, const rft_ctx_options *o, int ordinal, const rft__described *as, rft_error *err) {
    ctx->log = (rft__log){.callback = o->log, .user = o->user, .level = o->log_level};
    ctx->strict = (o->flags & RFT_CTX_STRICT) || (as == NULL && rft__env_flag("RFT_STRICT"));
    if (o->threads == 0 && as == NULL) {
        warn_of_threads(ctx);
    }
    RFT_TRY(load_profile(ctx, o, as, err));
    RFT_TRY(open_device(ctx, o, ordinal, as, err));
    if (!rft__plan_cache_init(&ctx->cache)) {
        ctx->backend->close(ctx->device);
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for the plan cache's lock");
    }
    return RFT_OK;
}

rft_status rft__ctx_open(const char *device, const rft_ctx_options *options, const rft__described *as, rft_ctx **out,
                         rft_error *err) {
    rft_ctx_options o = rft_ctx_options_init();
    if (options != NULL) {
        RFT_TRY(rft__sized_read(&o, sizeof o, options, "options", err));
    }
    const rft__backend *backend = NULL;
    int ordinal = 0;
    RFT_TRY(rft__registry_find(device, &backend, &ordinal, err));
    RFT_TRY(check_options(&o, backend, err));
    const rft__allocator allocator = make_allocator(&o);
    rft_ctx *const ctx = rft__alloc(&allocator, sizeof *ctx, _Alignof(rft_ctx));
    if (ctx == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a context (%zu bytes)", sizeof *ctx);
    }
    ctx->allocator = allocator;
    ctx->backend = backend;
    const rft_status status = fill(ctx, &o, ordinal, as, err);
    if (status != RFT_OK) {
        rft__release(&allocator, ctx, sizeof *ctx);
        return status;
    }
    *out = ctx;
    return RFT_OK;
}

rft_status rft_ctx_create(const char *device, const rft_ctx_options *options, rft_ctx **out, rft_error *err) {
    if (out == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "out is NULL");
    }
    *out = NULL;
    return rft__ctx_open(device, options, NULL, out, err);
}

void rft_ctx_free(rft_ctx *ctx) {
    if (ctx == NULL) {
        return;
    }
    rft__plan_cache_destroy(&ctx->cache);
    ctx->backend->close(ctx->device);
    const rft__allocator allocator = ctx->allocator;
    rft__release(&allocator, ctx, sizeof *ctx);
}

rft_status rft_ctx_get_device(const rft_ctx *ctx, rft_device_info *info) {
    if (ctx == NULL) {
        return RFT_E_ARG;
    }
    RFT_TRY(rft__sized_check(info, "info", NULL));
    rft_device_info own = {.struct_size = sizeof own};
    ctx->backend->describe(ctx->device, &own);
    rft__sized_write(info, &own, sizeof own);
    return RFT_OK;
}

rft_status rft_ctx_get_machine(const rft_ctx *ctx, rft_machine *machine, rft_error *err) {
    if (ctx == NULL) {
        RFT_FAIL(err, RFT_E_ARG, "ctx is NULL");
    }
    RFT_TRY(rft__sized_check(machine, "machine", err));
    if (!ctx->has_machine) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "ctx has no machine profile; `rooftile roofline` measures one");
    }
    rft__sized_write(machine, &ctx->machine, sizeof ctx->machine);
    return RFT_OK;
}
