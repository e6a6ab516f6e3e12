/* SPDX-License-Identifier: Apache-2.0
 *
 * leave_child.h - the end of a forked child of a test: that of _exit, but lines that it ran are counted where lines are counted.
 */
#ifndef RFT_TESTS_LEAVE_CHILD_H
#define RFT_TESTS_LEAVE_CHILD_H

#include <unistd.h>

#ifdef RFT_COVERAGE
void __gcov_dump(void); /* of gcc's run time */
#endif

static inline void leave_child(int code) {
#ifdef RFT_COVERAGE
    __gcov_dump();
#endif
    _exit(code);
}

#endif
