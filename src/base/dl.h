/* SPDX-License-Identifier: Apache-2.0
 *
 * dl.h - shared libraries loaded at run time, with the reason where one is missing. Called by cuda/ and by the tool's peers.
 */
#ifndef RFT_BASE_DL_H
#define RFT_BASE_DL_H

#include "rooftile.h"

/* The first of names (ended by NULL) that loads. NULL: RFT_E_UNSUPPORTED in err, with the loader's reason for the first name. */
void *rft__dl_open(const char *const *names, rft_error *err);
/* NULL: RFT_E_UNSUPPORTED in err. C has no cast from this to a function pointer: copy it with memcpy. */
void *rft__dl_symbol(void *library, const char *name, rft_error *err);
void rft__dl_close(void *library); /* NULL is allowed */

#endif
