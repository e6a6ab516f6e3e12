/* SPDX-License-Identifier: Apache-2.0
 *
 * need_compiler.h - skips a test that compiles C where no cc is. Included after cmocka.h.
 */
#ifndef RFT_TESTS_NEED_COMPILER_H
#define RFT_TESTS_NEED_COMPILER_H

#include <stdlib.h>

static inline void need_compiler(void) {
    if (system("cc --version >/dev/null 2>&1") != 0) {
        print_message("skipped: there is no C compiler called cc\n");
        skip();
    }
}

#endif
