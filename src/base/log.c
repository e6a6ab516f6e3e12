/* SPDX-License-Identifier: Apache-2.0
 *
 * log.c - makes CSV lines and hands them to the context's callback and to the sink of RFT_VERBOSE.
 * Invariant: a line is one write() of at most RFT_LINE bytes on an append-only file, so lines of threads do not mix;
 * a line that would be longer loses text, never a quote or a field.
 */
#define _GNU_SOURCE 1
#include "base/log.h"

#include "base/clock.h"
#include "base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RFT_LINE 2048
#define RFT_TAIL 64 /* kept free by the texts, for what follows them: quotes, commas, a number, newline */
#define RFT_NUMBER 40
#define HEADER "rooftile,time_s,level,event,what,detail,us\n"
#define LEVELS "none, error, warn, hint, dispatch, exec, all"

static const char *const level_names[] = {"none", "error", "warn", "hint", "dispatch", "exec", "all"};

static struct sink {
    rft_log_level level;
    int fd;
    double start;
    locale_t c_locale; /* a decimal comma would break the columns */
} sink;
static pthread_once_t sink_once = PTHREAD_ONCE_INIT;

/* ---- one line ---- */

typedef struct line {
    char text[RFT_LINE];
    size_t length;
} line;

static void put_char(line *l, char c) {
    if (l->length < RFT_LINE - 1) {
        l->text[l->length++] = c;
    }
}

/* A field in quotes where it holds a comma or a quote. Control characters become blanks: an event stays one line. */
static void put_text(line *l, const char *text) {
    const bool quoted = strpbrk(text, ",\"") != NULL;
    if (quoted) {
        put_char(l, '"');
    }
    for (; *text != '\0' && l->length < RFT_LINE - RFT_TAIL; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"') {
            put_char(l, '"');
        }
        put_char(l, c < ' ' ? ' ' : *text);
    }
    if (quoted) {
        put_char(l, '"');
    }
}

static void put_number(line *l, const char *format, double value) {
    char text[RFT_NUMBER];
    snprintf(text, sizeof text, format, value);
    for (const char *p = text; *p != '\0'; p++) {
        put_char(l, *p);
    }
}

static void make_line(line *l, rft_log_level level, const char *event, const char *what, double us, const char *detail) {
    l->length = 0;
    put_text(l, "rooftile");
    put_char(l, ',');
    put_number(l, "%.6f", rft__now() - sink.start);
    const char *const texts[] = {level_names[level], event, what, detail};
    for (int i = 0; i < 4; i++) {
        put_char(l, ',');
        put_text(l, texts[i] != NULL ? texts[i] : "");
    }
    put_char(l, ',');
    if (us >= 0) {
        put_number(l, "%.3f", us);
    }
    l->text[l->length] = '\0';
}

/* ---- the sink of RFT_VERBOSE ---- */

/* The log has nobody to tell that it cannot write, so failures are dropped. */
static void sink_write(const char *text, size_t length) {
    while (write(sink.fd, text, length) < 0 && errno == EINTR) {
    }
}

static bool parse_level(const char *text, rft_log_level *level) {
    for (int i = RFT_LOG_NONE; i <= RFT_LOG_ALL; i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *level = (rft_log_level)i;
            return true;
        }
    }
    return false;
}

/* RFT_LOG_FILE with each %p replaced by the process id. */
static bool file_name(const char *pattern, char path[PATH_MAX]) {
    size_t length = 0;
    for (; *pattern != '\0' && length < PATH_MAX; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'p') {
            length += (size_t)snprintf(path + length, PATH_MAX - length, "%ld", (long)getpid());
            pattern++;
        } else {
            path[length++] = *pattern;
        }
    }
    if (length >= PATH_MAX) {
        return false;
    }
    path[length] = '\0';
    return true;
}

static int open_file(const char *pattern) {
    char path[PATH_MAX];
    if (!file_name(pattern, path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static bool has_header(void) {
    struct stat info; /* a file that an earlier process began */
    return fstat(sink.fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 && sink.fd != STDERR_FILENO;
}

/* Within sink_open: rft__log_event would ask for the sink again. */
static void sink_complain(const char *variable, const char *value, const char *rule) {
    line l;
    char detail[RFT_LINE];
    snprintf(detail, sizeof detail, "%s: %s", value, rule);
    make_line(&l, RFT_LOG_WARN, "environment", variable, -1, detail);
    l.text[l.length++] = '\n';
    sink_write(l.text, l.length);
}

static void sink_open(void) {
    const char *level = rft__env_text("RFT_VERBOSE");
    sink.start = rft__now();
    sink.c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    sink.fd = STDERR_FILENO;
    const bool known = level == NULL || parse_level(level, &sink.level);
    if (!known) {
        sink.level = RFT_LOG_WARN;
    }
    if (sink.level == RFT_LOG_NONE) {
        return;
    }
    const char *pattern = rft__env_text("RFT_LOG_FILE");
    const int file = pattern != NULL ? open_file(pattern) : STDERR_FILENO;
    const int code = errno;
    if (file >= 0) {
        sink.fd = file;
    }
    if (!has_header()) {
        sink_write(HEADER, sizeof HEADER - 1);
    }
    if (file < 0) {
        sink_complain("RFT_LOG_FILE", pattern, strerrordesc_np(code));
    }
    if (!known) {
        sink_complain("RFT_VERBOSE", level, "not one of " LEVELS);
    }
}

/* ---- events ---- */

static bool wants_callback(const rft__log *log, rft_log_level level) {
    return log != NULL && log->callback != NULL && level <= log->level;
}

bool rft__log_enabled(const rft__log *log, rft_log_level level) {
    pthread_once(&sink_once, sink_open);
    return wants_callback(log, level) || level <= sink.level;
}

void rft__log_event(const rft__log *log, rft_log_level level, const char *event, const char *what, double us,
                    const char *detail_format, ...) {
    if (!rft__log_enabled(log, level)) {
        return;
    }
    line l;
    char detail[RFT_LINE];
    const locale_t caller_locale = uselocale(sink.c_locale); /* changes nothing where newlocale failed and gave 0 */
    va_list args;
    va_start(args, detail_format);
    if (vsnprintf(detail, sizeof detail, detail_format, args) < 0) {
        detail[0] = '\0';
    }
    va_end(args);
    make_line(&l, level, event, what, us, detail);
    uselocale(caller_locale);
    if (wants_callback(log, level)) {
        log->callback(log->user, level, l.text);
    }
    if (level <= sink.level) {
        l.text[l.length++] = '\n';
        sink_write(l.text, l.length);
    }
}
