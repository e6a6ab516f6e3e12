/* SPDX-License-Identifier: Apache-2.0
 *
 * check_fault.h - what a signal handler says about the problem that ran. Written by check_core.c.
 */
#ifndef CHECK_FAULT_H
#define CHECK_FAULT_H

#define CHECK_LINE 768

extern _Thread_local char check_current[CHECK_LINE]; /* repro line of the problem that this thread runs */
extern char check_on_device[CHECK_LINE];             /* of the one that is on the device */

#endif
