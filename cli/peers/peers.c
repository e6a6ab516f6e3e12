/* SPDX-License-Identifier: Apache-2.0
 *
 * peers.c - opens peers by name or path and compares their results with ours. Called by bench_run.c.
 * Thread counts and spinning times of the usual run-time libraries are set before the first dlopen, since most read them once.
 */
#define _GNU_SOURCE
#include "peers/peer.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PEERS 8

static const peer_kind *const kinds[] = {&peer_openblas,  &peer_blis,         &peer_mkl,      &peer_onednn,
                                        &peer_onednn_u8, &peer_onednn_plain, &peer_cublaslt, &peer_cublaslt_first,
                                        &peer_ggml,      &peer_ggml_plain,   &peer_read};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

static const peer_kind *find_kind(const char *name) {
    for (size_t i = 0; i < N_KINDS; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

static const char *known_names(char text[N_KINDS * PEER_NAME]) {
    int at = 0;
    for (size_t i = 0; i < N_KINDS; i++)
        at += snprintf(text + at, PEER_NAME, "%s %s", i ? "," : "", kinds[i]->name);
    return text;
}

/* Workers that spin for seconds would take our cores in our turns; a few milliseconds still bridge calls back to back. */
static void set_environment(uint32_t threads) {
    static const char *const counts[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS"};
    char text[16];
    snprintf(text, sizeof text, "%u", threads);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        setenv(counts[i], text, 1);
    setenv("MKL_DYNAMIC", "FALSE", 1);
    setenv("KMP_BLOCKTIME", "5", 1);
    setenv("OPENBLAS_THREAD_TIMEOUT", "24", 1);
    unsetenv("OPENBLAS_L2_SIZE");
    unsetenv("OMP_WAIT_POLICY");
}

void *peer_symbol(const peer *p, const char *name) {
    static const char *const forms[] = {"%s", "scipy_%s", "%s64_", "scipy_%s64_"};
    char full[96];
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const char *hole = strstr(forms[i], "%s");
        snprintf(full, sizeof full, "%.*s%s%s", (int)(hole - forms[i]), forms[i], name, hole + 2);
        void *found = dlsym(p->library, full);
        if (found)
            return found;
    }
    return NULL;
}

void *peer_load(const peer_kind *kind, const char *path) {
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (int i = 0; !path && !library && kind->files[i]; i++)
        library = dlopen(kind->files[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void add_peer(const peer *like, const peer_kind *kind, const char *path, peer_list *out) {
    char why[CLI_WHY] = "";
    peer p = *like;
    p.kind = kind;
    if (kind->gpu == on_host(p.ctx)) {
        cli_message("--vs %s: left out: it runs on %s", kind->name, kind->gpu ? "GPUs (--device cuda:N)" : "the CPU");
        return;
    }
    if (kind->before_load)
        kind->before_load(kind, path);
    p.library = kind->files ? peer_load(kind, path) : NULL;
    snprintf(p.name, sizeof p.name, "%s", kind->name);
    if (kind->files && !p.library) {
        const char *text = dlerror();
        cli_message("--vs %s: cannot open %s: %s", kind->name, path ? path : "its library; give it as NAME=PATH",
                    text ? text : "?");
        return;
    }
    if (kind->open(&p, why)) {
        out->v[out->n++] = p;
        return;
    }
    cli_message("--vs %s: left out: %s", kind->name, why);
    if (p.library)
        dlclose(p.library);
}

int peers_open(const char *list, rft_ctx *ctx, const char *device, uint32_t threads, peer_list *out) {
    const char *ordinal = strchr(device, ':');
    const peer like = {.ctx = ctx, .threads = threads, .ordinal = ordinal ? atoi(ordinal + 1) : 0};
    char *copy = strdup(list), *rest = copy, *item, names[N_KINDS * PEER_NAME] = "";
    int code = CLI_OK;
    out->v = cli_alloc(MOST_PEERS, sizeof *out->v);
    set_environment(threads);
    while (copy && code == CLI_OK && (item = strsep(&rest, ",")) != NULL && out->n < MOST_PEERS) {
        char *path = strchr(item, '=');
        if (path)
            *path++ = '\0';
        const peer_kind *kind = find_kind(item);
        if (kind) {
            add_peer(&like, kind, path, out);
        } else {
            cli_message("--vs %s: no such library; known are%s", item, known_names(names));
            code = CLI_USAGE;
        }
    }
    free(copy);
    return code;
}

/* Libraries stay loaded: their threads may still run. */
void peers_close(peer_list *list) {
    for (int i = 0; i < list->n; i++)
        list->v[i].kind->close(&list->v[i]);
    free(list->v);
    *list = (peer_list){0};
}

static double half_value(uint16_t h) {
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double v = exponent == 31 ? NAN : exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return h >> 15 ? -v : v;
}

double peer_value(rft_type type, const void *p, int64_t i) {
    if (type == RFT_F32)
        return (double)((const float *)p)[i];
    uint16_t h = ((const uint16_t *)p)[i];
    if (type == RFT_F16)
        return half_value(h);
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return (double)f;
}

double peer_difference(rft_type type, const void *ours, const void *theirs, int64_t count) {
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        double a = peer_value(type, ours, i), d = peer_value(type, theirs, i) - a;
        difference += d * d;
        norm += a * a;
    }
    return count == 0 ? 0 : sqrt(difference / (norm > 0 ? norm : 1));
}
