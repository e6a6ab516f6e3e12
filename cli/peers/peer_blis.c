/* SPDX-License-Identifier: Apache-2.0
 *
 * peer_blis.c - BLIS through its CBLAS interface: f32 only; it packs W inside every call.
 */
#include "peers/cblas.h"

#include <stdio.h>

typedef const char *get_text(void);
typedef void set_threads(int64_t n);
typedef int query_arch(void);
typedef const char *arch_name(int id);

static void describe(peer *p) {
    get_text *version;
    query_arch *arch;
    arch_name *name;
    *(void **)&version = peer_symbol(p, "bli_info_get_version_str");
    *(void **)&arch = peer_symbol(p, "bli_arch_query_id");
    *(void **)&name = peer_symbol(p, "bli_arch_string");
    snprintf(p->version, sizeof p->version, "%s %s", version ? version() : "", arch && name ? name(arch()) : "");
}

static bool open_blis(peer *p, char why[CLI_WHY]) {
    set_threads *set;
    if (!cblas_open(p, why))
        return false;
    *(void **)&set = peer_symbol(p, "bli_thread_set_num_threads");
    if (set)
        set((int64_t)p->threads);
    describe(p);
    return true;
}

static const char *const files[] = {"libblis.so.4", "libblis.so", "libblis-mt.so", NULL};

const peer_kind peer_blis = {"blis", false, files, NULL, open_blis, cblas_prepare, cblas_run, cblas_finish, cblas_close};
