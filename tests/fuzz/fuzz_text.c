/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_text.c - any text as what the tool's flags take: numbers, lists, types with scales, layouts, epilogues, a shapes file. The
 * first byte says which. What is refused says why; what is read is written again as a text that reads the same.
 */
#define _GNU_SOURCE
#include "fuzz_input.h"

#include "cli/cli_parse.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static char why[CLI_WHY];

static bool judge(bool good) {
    require(good || (why[0] != '\0' && memchr(why, '\0', sizeof why) != NULL));
    return good;
}

static void read_number(const char *text) {
    int64_t whole;
    double number;
    if (judge(parse_int(text, -100, INT64_MAX, &whole, why))) {
        char again[32];
        snprintf(again, sizeof again, "%lld", (long long)whole);
        require(whole >= -100 && (strcmp(text, again) == 0 || strcmp(text, "-0") == 0));
    }
    require(!judge(parse_number(text, -1e9, 1e9, &number, why)) || (number >= -1e9 && number <= 1e9));
}

static void read_list(const char *text) {
    int_list list;
    if (judge(parse_list(text, 0, &list, why))) {
        require(list.n > 0);
        for (size_t i = 0; i < list.n; i++) {
            require(list.v[i] >= 0);
        }
        list_free(&list);
    }
}

static void read_x(const char *text) {
    rft_type type, type_again;
    x_groups groups, groups_again;
    char again[X_TEXT];
    if (judge(parse_x(text, &type, &groups, why))) {
        x_text(type, &groups, again);
        require(parse_x(again, &type_again, &groups_again, why) && type == type_again && groups.k == groups_again.k);
    }
}

static void read_weight(const char *text) {
    rft_type type, type_again;
    weight_scales s, t;
    char again[WEIGHT_TEXT];
    if (judge(parse_weight(text, &type, &s, why))) {
        weight_text(type, &s, again);
        require(parse_weight(again, &type_again, &t, why) && type == type_again && s.scale == t.scale && s.zero == t.zero &&
                s.group_n == t.group_n && s.group_k == t.group_k && s.flags == t.flags);
    }
}

static void read_epilogue(const char *text) {
    epilogue e, again;
    if (judge(parse_epilogue(text, &e, why))) {
        require(e.n_op <= RFT_MAX_EPI && memchr(e.text, '\0', sizeof e.text) != NULL);
        if (strlen(e.text) + 1 < sizeof e.text) { /* else it may be cut */
            require(parse_epilogue(e.text, &again, why) && again.n_op == e.n_op &&
                    memcmp(e.op, again.op, e.n_op * sizeof *e.op) == 0);
        }
    }
}

static void read_layout(const char *text) {
    rft_order x, w;
    rft_compute compute;
    judge(parse_layout(text, &x, &w, why));
    require(!judge(parse_compute(text, &compute, why)) || strcmp(compute_name(compute), text) == 0);
}

static void read_shapes_file(const char *text) {
    char path[40];
    shape_list shapes = {0};
    int_list m = {0};
    const int file = memfd_create("shapes", 0);
    require(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text) && parse_list("1", 0, &m, why));
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    require(read_shapes(path, NULL, &m, &shapes, why) == CLI_OK || why[0] != '\0');
    shapes_free(&shapes);
    list_free(&m);
    close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const readers[])(const char *text) = {read_number,   read_list,   read_x,          read_weight,
                                                        read_epilogue, read_layout, read_shapes_file};
    char *const text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    why[0] = '\0';
    if (size > 0) {
        readers[data[0] % (sizeof readers / sizeof *readers)](text + 1);
    }
    free(text);
    return 0;
}
