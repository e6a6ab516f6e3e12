/* SPDX-License-Identifier: Apache-2.0
 *
 * test_folder.h - a folder for the files of one test program: made and removed by cmocka around its tests, as
 * cmocka_run_group_tests(tests, make_folder, remove_folder).
 */
#ifndef RFT_TESTS_TEST_FOLDER_H
#define RFT_TESTS_TEST_FOLDER_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static char folder[] = "/tmp/rooftile_test_XXXXXX";

static inline int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

/* Also where a test took the right to write. */
static inline int remove_folder(void **state) {
    char command[PATH_MAX];
    (void)state;
    snprintf(command, sizeof command, "chmod -R u+w '%s'; rm -rf '%s'", folder, folder);
    return system(command);
}

/* Until the next call. */
static inline const char *in_folder(const char *name) {
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

#endif
