/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.h - monotonic time in seconds.
 */
#ifndef RFT_BASE_CLOCK_H
#define RFT_BASE_CLOCK_H

double rft__now(void);

#endif
