/* SPDX-License-Identifier: Apache-2.0
 *
 * peer_openblas.c - OpenBLAS: cblas_sgemm and, where built in, cblas_sbgemm. It packs W inside every call.
 * Its detection may miss the best kernels for a CPU, so each kernel set is timed in a child process before the library is
 * loaded; OPENBLAS_CORETYPE in the environment overrides that. The version names the set.
 */
#define _GNU_SOURCE
#include "bench_timer.h"
#include "peers/cblas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_SIZE  768
#define PROBE_CALLS 4

typedef char *get_text(void);
typedef void set_threads(int n);

static void describe(peer *p) {
    get_text *core, *config;
    char version[32] = "";
    *(void **)&core = peer_symbol(p, "openblas_get_corename");
    *(void **)&config = peer_symbol(p, "openblas_get_config");
    if (config)
        sscanf(config(), "OpenBLAS %31s", version);
    snprintf(p->version, sizeof p->version, "%s %s", version, core ? core() : "");
}

/* Seconds of the fastest of a few products with this kernel set; never returns to the caller's program. */
static double probe_core(const peer_kind *kind, const char *path, const char *core) {
    char why[CLI_WHY];
    peer p = {.kind = kind};
    size_t count = PROBE_SIZE * PROBE_SIZE;
    float *data = cli_alloc(3 * count, sizeof *data);
    double best = 0;
    if (*core)
        setenv("OPENBLAS_CORETYPE", core, 1);
    p.library = peer_load(kind, path);
    if (!p.library || !cblas_open(&p, why))
        return 0;
    const cblas_state *s = p.state;
    for (int i = 0; i < PROBE_CALLS; i++) {
        double start = now_seconds();
        if (s->sgemm64)
            s->sgemm64(CBLAS_ROW_MAJOR, CBLAS_NO_TRANS, CBLAS_TRANS, PROBE_SIZE, PROBE_SIZE, PROBE_SIZE, 1, data, PROBE_SIZE,
                       data + count, PROBE_SIZE, 0, data + 2 * count, PROBE_SIZE);
        else
            s->sgemm(CBLAS_ROW_MAJOR, CBLAS_NO_TRANS, CBLAS_TRANS, PROBE_SIZE, PROBE_SIZE, PROBE_SIZE, 1, data, PROBE_SIZE,
                     data + count, PROBE_SIZE, 0, data + 2 * count, PROBE_SIZE);
        double seconds = now_seconds() - start;
        best = i == 0 || seconds < best ? seconds : best;
    }
    return best;
}

/* In a child, so that a kernel set that this CPU cannot run kills only the child. 0: it did not run. */
static double time_core(const peer_kind *kind, const char *path, const char *core) {
    int ends[2], status;
    double seconds = 0;
    if (pipe(ends) != 0)
        return 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        seconds = probe_core(kind, path, core);
        _exit(write(ends[1], &seconds, sizeof seconds) == sizeof seconds ? 0 : 1);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &seconds, sizeof seconds) != sizeof seconds)
        seconds = 0;
    close(ends[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    return seconds;
}

/* The default stays unless another set is 2 % faster. */
static void choose_core(const peer_kind *kind, const char *path) {
    static const char *const cores[] = {"SapphireRapids", "Cooperlake", "SkylakeX", "Zen", "Haswell"};
    const char *best = NULL, *given = getenv("OPENBLAS_CORETYPE");
    if (given && *given)
        return;
    double least = time_core(kind, path, "");
    for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++) {
        double seconds = time_core(kind, path, cores[i]);
        if (seconds > 0 && (least == 0 || seconds < 0.98 * least)) {
            least = seconds;
            best = cores[i];
        }
    }
    if (best)
        setenv("OPENBLAS_CORETYPE", best, 1);
}

static bool open_openblas(peer *p, char why[CLI_WHY]) {
    set_threads *set;
    if (!cblas_open(p, why))
        return false;
    *(void **)&set = peer_symbol(p, "openblas_set_num_threads");
    if (set)
        set((int)p->threads);
    describe(p);
    return true;
}

static const char *const files[] = {"libopenblas.so.0",
                                    "libopenblas.so",
                                    "libscipy_openblas.so",
                                    "libscipy_openblas64_.so",
                                    "openblas-pthread/libopenblas.so.0",
                                    NULL};

const peer_kind peer_openblas = {"openblas",    false,     files,        choose_core, open_openblas,
                                 cblas_prepare, cblas_run, cblas_finish, cblas_close};
