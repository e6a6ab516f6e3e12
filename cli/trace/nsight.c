/* SPDX-License-Identifier: Apache-2.0
 *
 * nsight.c - the SQLite export of Nsight Systems: kernels and copies, the calls that launched them, and ranges of NVTX. Ranges
 * that PyTorch writes (torch.autograd.profiler.emit_nvtx) name ops and the sizes of their arguments. See readers.h. The database
 * is opened read only; what it calls tables must be stored ones, so that reading is all that it can make us do.
 */
#define _GNU_SOURCE
#include "trace/readers.h"

#include <stdio.h>

#if RFT_HAVE_SQLITE

#include "trace/json_cut.h"
#include "trace/timeline.h"
#include "trace/torch_ops.h"

#include <sqlite3.h>
#include <string.h>

#define MOST_TEXT  ((int)1 << 20)
#define PUSH_RANGE "59" /* of NVTX_EVENTS.eventType */

typedef struct nsight {
    sqlite3 *db;
    trace *t;
    timeline l;
} nsight;

typedef bool row_reader(nsight *n, sqlite3_stmt *s);

/* Times are in ns. */
static double us_between(sqlite3_stmt *s) { return 1e-3 * (sqlite3_column_double(s, 1) - sqlite3_column_double(s, 0)); }

/* Ids of calls are unique within a process; globalPid and globalTid have it from bit 24 on. */
static int64_t call_id(sqlite3_stmt *s) {
    const uint64_t process = (uint64_t)sqlite3_column_int64(s, 3) >> 24;
    return (int64_t)((uint64_t)sqlite3_column_int64(s, 2) + (process << 32));
}

static const char *text_at(sqlite3_stmt *s, int column) {
    const char *text = (const char *)sqlite3_column_text(s, column);
    return text ? text : "";
}

static bool read_kernel(nsight *n, sqlite3_stmt *s) {
    const char *name = text_at(s, 4);
    return timeline_kernel(&n->l, n->t, *name ? name : "(no name)", call_id(s), 0, us_between(s));
}

static bool read_launch(nsight *n, sqlite3_stmt *s) {
    const trace_call call = {.group = TRACE_OTHER, .name = "launch"};
    return timeline_host(&n->l, HOST_LAUNCH, (uint64_t)sqlite3_column_int64(s, 3), 1e-3 * sqlite3_column_double(s, 0),
                         us_between(s), call_id(s), trace_intern(n->t, &call));
}

/* "aten::addmm, seq = 5, op_id = 7, sizes = [[8], [4, 16], [16, 8]]". */
static trace_call call_of_range(const char *text, host_kind *kind) {
    const char *comma = strstr(text, ", seq = "), *id = strstr(text, ", op_id = "), *sizes = strstr(text, "sizes = ");
    const char *stop = comma ? comma : id ? id : sizes && sizes - text > 2 ? sizes - 2 : strchrnul(text, '\0');
    json_piece list = {0};
    char name[TRACE_NAME];
    const char *at = sizes ? sizes + 8 : "";
    json_t *dims = json_cut(&at, strchrnul(at, '\0'), &list) ? json_loadb(list.p, list.length, 0, NULL) : NULL;
    snprintf(name, sizeof name, "%.*s", (int)(stop - text < TRACE_NAME ? stop - text : TRACE_NAME - 1), text);
    const torch_args args = {.dims = dims};
    const trace_call call = torch_call(name, &args);
    *kind = strstr(name, "::") ? HOST_OP : HOST_NOTE;
    json_decref(dims);
    return call;
}

static bool read_range(nsight *n, sqlite3_stmt *s) {
    host_kind kind;
    const trace_call call = call_of_range(text_at(s, 4), &kind);
    return timeline_host(&n->l, kind, (uint64_t)sqlite3_column_int64(s, 3), 1e-3 * sqlite3_column_double(s, 0), us_between(s), 0,
                         trace_intern(n->t, &call));
}

static bool read_device(nsight *n, sqlite3_stmt *s) {
    if (!n->t->device[0])
        snprintf(n->t->device, sizeof n->t->device, "%s", text_at(s, 4));
    return true;
}

/* ---- queries ---- */

/* A stored table, no view and no module's. */
static bool has_table(nsight *n, const char *name) {
    sqlite3_stmt *s = NULL;
    bool found = sqlite3_prepare_v2(n->db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = ?", -1,
                                    &s, NULL) == SQLITE_OK &&
                 sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    return found;
}

/* False: the database is damaged, or a table that is needed lacks a column. Of the others versions differ; such a one is left
 * out. */
static bool read_table(nsight *n, const char *query, row_reader *read, bool needed, char why[CLI_WHY]) {
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(n->db, query, -1, &s, NULL);
    if (code == SQLITE_ERROR && !needed) {
        n->t->skipped++;
        return true;
    }
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(s);
        if (code == SQLITE_ROW)
            n->t->skipped += !read(n, s);
    }
    if (code != SQLITE_DONE)
        snprintf(why, CLI_WHY, "SQLite: %.120s", sqlite3_errmsg(n->db));
    sqlite3_finalize(s);
    return code == SQLITE_DONE;
}

/* The columns of each: start, end, id of the call, process or thread, name. Texts are found by rowid, which their id is: so each
 * has one at most, and a table with ids of its own cannot multiply the rows. */
static const struct {
    const char *table, *query;
    row_reader *read;
    bool needed;
} tables[] = {
    {"StringIds", "SELECT 0, 0, 0, 0, '' FROM StringIds LIMIT 0", read_device, true},
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     "SELECT e.start, e.end, e.correlationId, e.globalPid, coalesce(l.value, s.value) FROM CUPTI_ACTIVITY_KIND_KERNEL e "
     "LEFT JOIN StringIds l ON l.rowid = e.demangledName LEFT JOIN StringIds s ON s.rowid = e.shortName",
     read_kernel, true},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", "SELECT start, end, correlationId, globalPid, 'memcpy' FROM CUPTI_ACTIVITY_KIND_MEMCPY",
     read_kernel, false},
    {"CUPTI_ACTIVITY_KIND_MEMSET", "SELECT start, end, correlationId, globalPid, 'memset' FROM CUPTI_ACTIVITY_KIND_MEMSET",
     read_kernel, false},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
     "SELECT start, end, correlationId, globalPid, 'CUDA graph, recorded as a whole' FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
     read_kernel, false},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", "SELECT start, end, correlationId, globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME", read_launch,
     false},
    {"NVTX_EVENTS",
     "SELECT e.start, e.end, 0, e.globalTid, coalesce(nullif(e.text, ''), s.value) FROM NVTX_EVENTS e "
     "LEFT JOIN StringIds s ON s.rowid = e.textId WHERE e.end IS NOT NULL AND e.eventType = " PUSH_RANGE,
     read_range, false},
    {"TARGET_INFO_GPU", "SELECT 0, 0, 0, 0, name FROM TARGET_INFO_GPU", read_device, false},
};

static bool read_all(nsight *n, char why[CLI_WHY]) {
    sqlite3_limit(n->db, SQLITE_LIMIT_LENGTH, MOST_TEXT);
    sqlite3_db_config(n->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(n->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (has_table(n, tables[i].table)) {
            if (!read_table(n, tables[i].query, tables[i].read, tables[i].needed, why))
                return false;
        } else if (tables[i].needed) {
            const int code = sqlite3_errcode(n->db);
            if (code == SQLITE_OK || code == SQLITE_DONE)
                snprintf(why, CLI_WHY, "a database without the table %s, so no export of Nsight Systems with kernels in it",
                         tables[i].table);
            else
                snprintf(why, CLI_WHY, "SQLite: %s", sqlite3_errstr(code));
            return false;
        }
    }
    return true;
}

static bool read_and_close(trace *t, sqlite3 *db, bool opened, char why[CLI_WHY]) {
    nsight n = {.db = db, .t = t};
    t->format = "Nsight Systems export";
    if (!opened)
        snprintf(why, CLI_WHY, "SQLite: %.120s", db ? sqlite3_errmsg(db) : "out of memory");
    bool good = opened && read_all(&n, why);
    if (good && n.l.n_gpu == 0) { /* its ranges alone are the host's time, which such a recording is not about */
        snprintf(why, CLI_WHY, "an export of Nsight Systems with no kernel in it");
        good = false;
    }
    if (good)
        timeline_settle(&n.l, t);
    timeline_free(&n.l);
    sqlite3_close(db);
    return good;
}

bool trace_read_nsight(trace *t, const char *path, char why[CLI_WHY]) {
    sqlite3 *db = NULL;
    const bool opened = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK;
    return read_and_close(t, db, opened, why);
}

bool trace_read_nsight_bytes(trace *t, unsigned char *bytes, size_t size, char why[CLI_WHY]) {
    sqlite3 *db = NULL;
    const bool opened = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK &&
                        sqlite3_deserialize(db, "main", bytes, (sqlite3_int64)size, (sqlite3_int64)size,
                                            SQLITE_DESERIALIZE_READONLY) == SQLITE_OK;
    return read_and_close(t, db, opened, why);
}

#else

static bool refuse(trace *t, char why[CLI_WHY]) {
    t->format = "SQLite database";
    snprintf(why, CLI_WHY, "exports of Nsight Systems need SQLite, and this rooftile was built without it (libsqlite3-dev)");
    return false;
}

bool trace_read_nsight(trace *t, const char *path, char why[CLI_WHY]) {
    (void)path;
    return refuse(t, why);
}

bool trace_read_nsight_bytes(trace *t, unsigned char *bytes, size_t size, char why[CLI_WHY]) {
    (void)bytes, (void)size;
    return refuse(t, why);
}

#endif
