/* SPDX-License-Identifier: Apache-2.0
 *
 * machine_files.c - see machine_files.h. The folder is found from where the tool lies, so that an installed tree may move.
 */
#define _GNU_SOURCE
#include "machine_files.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".json"
#define LIST   1024

/* Relative to the tool: where it is installed, and in a build folder. */
static const char *const folders[] = {RFT_MACHINES_DIR, "machines"};

static DIR *open_folder(char path[PATH_MAX]) {
    char tool[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", tool, sizeof tool - 1);
    if (length <= 0)
        return NULL;
    tool[length] = '\0';
    *strrchr(tool, '/') = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        int written = snprintf(path, PATH_MAX, "%s/%s", tool, folders[i]);
        DIR *folder = written > 0 && written < PATH_MAX ? opendir(path) : NULL;
        if (folder)
            return folder;
    }
    return NULL;
}

/* The next profile's name without its suffix; NULL: no more. */
static const char *next_name(DIR *folder, char name[NAME_MAX + 1]) {
    for (struct dirent *entry; (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name), tail = strlen(SUFFIX);
        if (length <= tail || strcmp(entry->d_name + length - tail, SUFFIX) != 0)
            continue;
        snprintf(name, NAME_MAX + 1, "%.*s", (int)(length - tail), entry->d_name);
        return name;
    }
    return NULL;
}

static bool file_of(const char *folder, const char *name, char path[PATH_MAX]) {
    int written = snprintf(path, PATH_MAX, "%s/%s" SUFFIX, folder, name);
    return written > 0 && written < PATH_MAX;
}

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

static void list_names(DIR *folder, char list[LIST]) {
    char names[64][NAME_MAX + 1];
    size_t n = 0, at = 0;
    list[0] = '\0';
    while (n < sizeof names / sizeof *names && next_name(folder, names[n]))
        n++;
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 0; i < n && at < LIST; i++)
        at += (size_t)snprintf(list + at, LIST - at, "%s%s", i ? ", " : "", names[i]);
}

static int unknown_name(const char *flag, const char *name, DIR *folder) {
    char list[LIST] = "none, as their folder is missing";
    if (folder) {
        rewinddir(folder);
        list_names(folder, list);
    }
    cli_message("%s: no machine is named '%s'; there are: %s; a profile by its file: ./FILE" SUFFIX, flag, name, list);
    return CLI_USAGE;
}

static bool is_path(const char *text) {
    size_t length = strlen(text), tail = strlen(SUFFIX);
    return strchr(text, '/') || (length > tail && strcmp(text + length - tail, SUFFIX) == 0);
}

static int load_file(const char *flag, const char *path, rft_machine *out) {
    rft_error err = {0};
    out->struct_size = sizeof *out;
    return rft_machine_load(path, out, &err) == RFT_OK ? CLI_OK : cli_failed(&err, flag);
}

int machine_load(const char *flag, const char *name, rft_machine *out) {
    char path[PATH_MAX], file[PATH_MAX], found[NAME_MAX + 1];
    if (is_path(name))
        return load_file(flag, name, out);
    DIR *folder = open_folder(path);
    bool known = false;
    while (folder && !known && next_name(folder, found))
        known = strcmp(found, name) == 0;
    int code = known && file_of(path, found, file) ? load_file(flag, file, out) : unknown_name(flag, name, folder);
    if (folder)
        closedir(folder);
    return code;
}

int machine_check(const run_options *o) {
    if (!o->machine || !o->profile)
        return CLI_OK;
    cli_message("--machine %s --profile %s: one of them says which machine is meant", o->machine, o->profile);
    return CLI_USAGE;
}

bool machine_described(const run_options *o, rft_machine *out, int *code) {
    const char *flag = o->machine ? "--machine" : "--profile";
    *code = machine_check(o);
    if (!o->machine && !o->profile)
        return false;
    if (*code == CLI_OK && (o->kernel || o->isa)) {
        cli_message("%s: with %s the choice is that machine's own", o->kernel ? "--kernel" : "--isa", flag);
        *code = CLI_USAGE;
    } else if (*code == CLI_OK) {
        *code = o->machine ? machine_load(flag, o->machine, out) : load_file(flag, o->profile, out);
    }
    return true;
}

rft_status machine_explain(const rft_machine *m, const rft_linear_desc *desc, int64_t rows, uint32_t threads, char *text,
                           size_t cap, char kernel[ROW_NAME], rft_error *err) {
    size_t length;
    kernel[0] = '\0';
    rft_status status = rft_explain_machine(m, desc, rows, threads, text, cap, &length, err);
    const char *taken = status == RFT_OK ? strstr(text, "\ntaken ") : NULL;
    if (taken)
        sscanf(taken, " taken %95s", kernel);
    return status;
}

rft_status machine_kernel(const rft_machine *m, const rft_linear_desc *desc, int64_t rows, uint32_t threads,
                          char kernel[ROW_NAME], rft_error *err) {
    enum { TEXT = 1 << 16 };
    char *text = cli_alloc(TEXT, 1);
    rft_status status = machine_explain(m, desc, rows, threads, text, TEXT, kernel, err);
    free(text);
    return status;
}

bool machine_spec(const rft_machine *measured, rft_machine *out) {
    char path[PATH_MAX], file[PATH_MAX], name[NAME_MAX + 1];
    bool found = false;
    DIR *folder = open_folder(path);
    out->struct_size = sizeof *out;
    while (folder && !found && next_name(folder, name))
        found = file_of(path, name, file) && rft_machine_load(file, out, NULL) == RFT_OK &&
                strcmp(out->name, measured->name) == 0 && strcmp(out->source, "spec") == 0;
    if (folder)
        closedir(folder);
    return found;
}
