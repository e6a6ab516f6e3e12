/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_kernels.c - the kernels that a device has loaded: one a text, shared by all plans that need it; and the launch of one.
 * Called by cuda_choose.c, cuda_run.c, cuda_weight.c and src/probe.
 * Invariant: a kernel in the list has a user; the lock is not held while anything compiles.
 */
#include "base/hash.h"
#include "cuda/cuda_debug.h"

#include <string.h>

enum { CARVEOUT_FROM = 32768 /* dynamic bytes from which a kernel wants all of an SM's shared memory */ };

static uint64_t hash_of(const rft__cuda_wanted *w) {
    const uint64_t seed = rft__hash(RFT_HASH_SEED, w->family->source, strlen(w->family->source));
    return rft__hash(seed, w->config, strlen(w->config));
}

/* With the lock held. */
static rft__cuda_kernel *take(rft__cuda_device *d, const rft__cuda_wanted *w, uint64_t hash) {
    for (rft__cuda_kernel *k = d->kernels; k != NULL; k = k->next) {
        if (k->hash == hash && strcmp(k->source, w->family->source) == 0 && strcmp(k->config, w->config) == 0) {
            k->users++;
            return k;
        }
    }
    return NULL;
}

static void destroy(rft__cuda_device *d, rft__cuda_kernel *k) {
    if (k->module != NULL) {
        d->driver->cuModuleUnload(k->module);
    }
    rft__release(&d->allocator, k->config, k->config_bytes);
    rft__release(&d->allocator, k, sizeof *k);
}

static rft_status allow_shared(const rft__cuda_device *d, const rft__cuda_kernel *k, const rft__cuda_wanted *w, rft_error *err) {
    int fixed = 0;
    const rft__driver *const driver = d->driver;
    RFT_TRY(rft__driver_check(driver->cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k->function),
                              "asking a kernel for its shared memory", err));
    const int dynamic = d->facts.shared_block - fixed;
    RFT_TRY(rft__driver_check(
        driver->cuFuncSetAttribute(k->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic),
        "allowing a kernel its shared memory", err));
    if (w->cluster > 8) {
        RFT_TRY(rft__driver_check(
            driver->cuFuncSetAttribute(k->function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
            "allowing a kernel its cluster", err));
    }
    if (w->shared < CARVEOUT_FROM) {
        return RFT_OK;
    }
    return rft__driver_check(
        driver->cuFuncSetAttribute(k->function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100),
        "asking for shared memory instead of cache", err);
}

static rft_status load(const rft__cuda_device *d, rft__cuda_kernel *k, const rft__cuda_wanted *w, const rft__cubin *cubin,
                       rft_error *err) {
    RFT_TRY(rft__driver_check(d->driver->cuModuleLoadData(&k->module, cubin->data), "loading a kernel", err));
    const CUresult found = d->driver->cuModuleGetFunction(&k->function, k->module, k->entry);
    RFT_TRY(rft__driver_check(found, "finding a kernel's entry", err));
    return allow_shared(d, k, w, err);
}

static rft_status make(rft__cuda_device *d, const rft__cuda_wanted *w, uint64_t hash, const rft__cubin *cubin,
                       rft__cuda_kernel **out, rft_error *err) {
    const size_t bytes = strlen(w->config) + 1;
    rft__cuda_kernel *const k = rft__alloc(&d->allocator, sizeof *k, _Alignof(rft__cuda_kernel));
    char *const config = rft__alloc(&d->allocator, bytes, _Alignof(void *));
    if (k == NULL || config == NULL) {
        rft__release(&d->allocator, k, sizeof *k);
        rft__release(&d->allocator, config, bytes);
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for a kernel (%zu bytes)", sizeof *k + bytes);
    }
    memcpy(config, w->config, bytes);
    *k = (rft__cuda_kernel){.hash = hash,
                            .config = config,
                            .config_bytes = bytes,
                            .source = w->family->source,
                            .entry = w->family->name,
                            .registers = cubin->registers,
                            .users = 1};
    const rft_status status = load(d, k, w, cubin, err);
    if (status != RFT_OK) {
        destroy(d, k);
        return status;
    }
    *out = k;
    return RFT_OK;
}

/* Puts a new kernel into the list, unless another thread was faster with an equal one. */
static rft__cuda_kernel *add(rft__cuda_device *d, const rft__cuda_wanted *w, rft__cuda_kernel *fresh) {
    pthread_mutex_lock(&d->lock);
    rft__cuda_kernel *found = take(d, w, fresh->hash);
    if (found == NULL) {
        fresh->next = d->kernels;
        d->kernels = fresh;
    }
    pthread_mutex_unlock(&d->lock);
    if (found != NULL) {
        destroy(d, fresh);
    }
    return found != NULL ? found : fresh;
}

static bool same_text(const rft__cuda_wanted *a, const rft__cuda_wanted *b) {
    return a->family == b->family && strcmp(a->config, b->config) == 0;
}

/* Whether an earlier request of the list asks for the same kernel. */
static bool repeats(const rft__cuda_wanted *wanted, const uint32_t *missing, uint32_t n, uint32_t i) {
    uint32_t j = 0;
    while (j < n && !same_text(&wanted[missing[j]], &wanted[i])) {
        j++;
    }
    return j < n;
}

/* Fills in what is loaded already and lists the rest, each text once. hash: of each text, filled in as well. */
static uint32_t find_loaded(rft__cuda_device *d, const rft__cuda_wanted *wanted, uint32_t count, rft__cuda_kernel **out,
                            uint64_t *hash, rft__jit_request *requests, uint32_t *missing) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        hash[i] = hash_of(&wanted[i]);
    }
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = take(d, &wanted[i], hash[i]);
        if (out[i] == NULL && !repeats(wanted, missing, n, i)) {
            requests[n] = (rft__jit_request){.source = wanted[i].family->source,
                                             .entry = wanted[i].family->name,
                                             .config = wanted[i].config,
                                             .arch = d->facts.arch};
            missing[n++] = i;
        }
    }
    pthread_mutex_unlock(&d->lock);
    return n;
}

static rft_status load_missing(rft__cuda_device *d, const rft__cuda_wanted *wanted, const uint64_t *hash, const uint32_t *missing,
                               uint32_t n, rft__cubin *cubins, rft__cuda_kernel **out, rft_error *err) {
    rft_status status = RFT_OK;
    for (uint32_t i = 0; i < n; i++) {
        const rft__cuda_wanted *const w = &wanted[missing[i]];
        rft__cuda_kernel *fresh = NULL;
        if (status == RFT_OK && d->driver != NULL) {
            status = make(d, w, hash[missing[i]], &cubins[i], &fresh, err);
        }
        out[missing[i]] = fresh != NULL ? add(d, w, fresh) : NULL;
        rft__cubin_release(d->jit, &cubins[i]);
    }
    return status;
}

rft_status rft__cuda_kernels_get(rft__cuda_device *d, const rft__cuda_wanted *wanted, uint32_t count, rft__cuda_kernel **out,
                                 rft_error *err) {
    rft__jit_request requests[RFT_JIT_MAX];
    rft__cubin cubins[RFT_JIT_MAX];
    uint64_t hash[RFT_JIT_MAX];
    uint32_t missing[RFT_JIT_MAX];
    const uint32_t n = find_loaded(d, wanted, count, out, hash, requests, missing);
    rft_status status = n == 0 ? RFT_OK : rft__jit_get(d->jit, requests, n, cubins, err);
    if (status == RFT_OK && n != 0) {
        status = load_missing(d, wanted, hash, missing, n, cubins, out, err);
    }
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < count && status == RFT_OK; i++) { /* the repetitions */
        out[i] = out[i] != NULL ? out[i] : take(d, &wanted[i], hash[i]);
    }
    pthread_mutex_unlock(&d->lock);
    for (uint32_t i = 0; i < count && status != RFT_OK; i++) {
        rft__cuda_kernel_drop(d, out[i]);
    }
    return status;
}

void rft__cuda_kernel_drop(rft__cuda_device *d, rft__cuda_kernel *kernel) {
    if (kernel == NULL) {
        return;
    }
    pthread_mutex_lock(&d->lock);
    const bool last = --kernel->users == 0;
    for (rft__cuda_kernel **at = &d->kernels; last && *at != NULL; at = &(*at)->next) {
        if (*at == kernel) {
            *at = kernel->next;
            break;
        }
    }
    pthread_mutex_unlock(&d->lock);
    if (last) {
        destroy(d, kernel);
    }
}

rft_status rft__cuda_enqueue(const rft__cuda_device *d, const rft__cuda_kernel *kernel, const rft__cuda_launch *l, bool dependent,
                             void **parameters, CUstream stream, const char *what, rft_error *err) {
    CUlaunchAttribute attribute[2];
    unsigned n = 0;
    if (dependent) {
        attribute[n++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                             .value.programmaticStreamSerializationAllowed = 1};
    }
    if (l->cluster > 1) {
        attribute[n++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {l->cluster, 1, 1}};
    }
    const CUlaunchConfig config = {.gridDimX = l->grid[0],
                                   .gridDimY = l->grid[1],
                                   .gridDimZ = l->grid[2],
                                   .blockDimX = l->block,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .sharedMemBytes = l->shared,
                                   .hStream = stream,
                                   .attrs = attribute,
                                   .numAttrs = n};
    return rft__cuda_check(d, d->driver->cuLaunchKernelEx(&config, kernel->function, parameters, NULL), what, err);
}
