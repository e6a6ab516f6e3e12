/* SPDX-License-Identifier: Apache-2.0
 *
 * emulated.h - tests of the process itself, which skip where RFT_TEST_EMULATED says that qemu-user runs them: there a child of a
 * process with threads cannot start any, and the emulator's own memory counts as the program's.
 */
#ifndef RFT_TEST_EMULATED_H
#define RFT_TEST_EMULATED_H

#include <stdlib.h>

#define SKIP_WHERE_EMULATED()                   \
    do {                                        \
        if (getenv("RFT_TEST_EMULATED") != NULL) \
            skip();                             \
    } while (0)

#endif
