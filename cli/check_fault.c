/* SPDX-License-Identifier: Apache-2.0
 *
 * check_fault.c - a fault or a hang while a problem runs: its repro line, and the end. See check_core.h and check_fault.h.
 */
#define _GNU_SOURCE
#include "check_fault.h"
#include "check_core.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

_Thread_local char check_current[CHECK_LINE];
char check_on_device[CHECK_LINE];

static void write_text(const char *s) {
    size_t left = strlen(s);
    while (left > 0) {
        ssize_t n = write(STDERR_FILENO, s, left);
        if (n <= 0)
            return;
        s += n;
        left -= (size_t)n;
    }
}

static void on_fault(int number) {
    write_text(number == SIGALRM  ? "\nrooftile: no end in sight of:\n  "
               : number == SIGILL ? "\nrooftile: illegal instruction in:\n  "
                                  : "\nrooftile: memory fault in:\n  ");
    write_text(number == SIGALRM ? check_on_device : check_current);
    write_text("\n");
    _exit(CLI_FAILED);
}

void check_catch_faults(void) {
    struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
}
