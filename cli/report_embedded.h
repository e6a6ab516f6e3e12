/* SPDX-License-Identifier: Apache-2.0
 *
 * report_embedded.h - cli/report/report.css and report.js as text within the tool; cmake/embed_text.cmake makes them so.
 */
#ifndef REPORT_EMBEDDED_H
#define REPORT_EMBEDDED_H

extern const char report_css[], report_js[];

#endif
