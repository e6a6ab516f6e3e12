/* SPDX-License-Identifier: Apache-2.0
 *
 * cli.h - what every command of the tool shares: exit codes, messages, progress and memory that cannot fail.
 * The tool includes public headers only, as any other program that uses the library does.
 */
#ifndef CLI_H
#define CLI_H

#include "rooftile.h"
#include "rooftile_analysis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1, /* a check failed, or a result lies above its roof */
    CLI_USAGE = 2,
    CLI_LIBRARY = 3, /* the library refused or failed */
    CLI_IO = 4
};

/* Whether the next row is run: a failed check stops none. */
static inline bool cli_goes_on(int code) { return code == CLI_OK || code == CLI_FAILED; }
/* Of two exit codes: what the library, a flag or a file failed at beats a failed check. */
static inline int cli_worse(int a, int b) { return a > b ? a : b; }

/* Messages go to stderr as "rooftile: ...". */
void cli_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The message of a failed call; the exit code that belongs to it. */
int cli_failed(const rft_error *err, const char *doing);
/* One line that overwrites itself, on a terminal only. */
void cli_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_progress_end(void);

/* Never NULL: out of memory ends the tool. Zeroed. */
void *cli_alloc(size_t count, size_t size);
void *cli_grow(void *old, size_t count, size_t size);

/* Bytes for whole huge pages, zeroed, or NULL; for weights, activations and outputs. */
void *cli_map(size_t bytes);
void cli_unmap(void *p, size_t bytes);

/* count elements of a type as stored, in whole blocks; false when the type is unknown or the product overflows. */
bool cli_bytes(rft_type type, int64_t count, size_t *bytes);
int64_t cli_block(rft_type type); /* elements that are stored together */
bool cli_low_bit(rft_type type);  /* codes with scales, as weights alone are */
bool cli_8bit(rft_type type); /* of x or y: activations with scales */
const char *cli_file_name(const char *path); /* without its folders */
/* How many bytes of a text, at most `most`, hold whole characters of UTF-8: where it may be cut. */
size_t cli_whole(const char *text, size_t most);
struct argp_state;
/* Keeps the argument of a command that takes one file. */
void cli_take_file(const struct argp_state *state, const char **file, const char *arg);
/* a * b * c of sizes, or false. */
bool cli_product(int64_t a, int64_t b, int64_t c, int64_t *out);

int cmd_info(int argc, char **argv);
int cmd_roofline(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_jit(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_model(int argc, char **argv);
int cmd_quantize(int argc, char **argv);
int cmd_regret(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_trace(int argc, char **argv);

#endif
