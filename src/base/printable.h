/* SPDX-License-Identifier: Apache-2.0
 *
 * printable.h - text from files on its way to terminals and logs. Called by error.c and by all readers of files.
 * Control characters are those below U+0020, U+007F, and in UTF-8 those from U+0080 to U+009F, which terminals act on too.
 */
#ifndef RFT_BASE_PRINTABLE_H
#define RFT_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* No control characters. */
bool rft__is_printable(const char *text, size_t length);
/* Copies text, cut to cap - 1 bytes, each control character as '?', and terminates it. out may be text itself. */
void rft__copy_printable(char *out, size_t cap, const char *text, size_t length);

#endif
