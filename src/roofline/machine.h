/* SPDX-License-Identifier: Apache-2.0
 *
 * machine.h - the rules of a machine profile, the same for one read from a file, given by a caller, or measured.
 * Called by every function that takes an rft_machine.
 */
#ifndef RFT_ROOFLINE_MACHINE_H
#define RFT_ROOFLINE_MACHINE_H

#include "rooftile_analysis.h"

/* where: the file or argument, for messages; status: what a broken rule returns. */
rft_status rft__machine_check(const rft_machine *mach, const char *where, rft_status status, rft_error *err);
/* A profile's JSON text, not terminated by size; where: its file, for messages. */
rft_status rft__machine_parse(const char *text, size_t size, const char *where, rft_machine *mach, rft_error *err);

#endif
