/* SPDX-License-Identifier: Apache-2.0
 *
 * test_log.c - the log of src/base: levels, quotes, cuts, files and callbacks. What reads the environment once (the sink) runs in
 * a forked child of its own.
 */
#define _GNU_SOURCE 1
#include "base/log.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <wchar.h>

#include <cmocka.h>

#include "leave_child.h"
#include "test_folder.h"

/* All of a file without zeros; "" where it is none or empty. The caller frees. */
static char *text_of(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    const bool read = file != NULL && getdelim(&text, &room, '\0', file) > 0;
    if (file != NULL) {
        fclose(file);
    }
    if (!read) {
        free(text);
    }
    return read ? text : strdup("");
}

/* Runs body in a process with these variables, whose messages go to a file of the folder. Its id. */
static pid_t run_logged(const char *verbose, const char *log_file, void (*body)(void)) {
    char messages[PATH_MAX];
    snprintf(messages, sizeof messages, "%s", in_folder("messages"));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("RFT_VERBOSE", verbose, 1);
        setenv("RFT_LOG_FILE", log_file, 1);
        const bool told = freopen(messages, "w", stderr) != NULL;
        body();
        leave_child(!told);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return child;
}

/* What body writes to RFT_LOG_FILE under RFT_VERBOSE. The caller frees. */
static char *log_of(const char *verbose, void (*body)(void)) {
    char pattern[PATH_MAX], path[PATH_MAX];
    snprintf(pattern, sizeof pattern, "%s/log-%%p-%%d", folder); /* %p is replaced, the rest is text */
    const pid_t child = run_logged(verbose, pattern, body);
    snprintf(path, sizeof path, "%s/log-%ld-%%d", folder, (long)child);
    return text_of(path);
}

static int count_of(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) {
        n++;
    }
    return n;
}

static void log_two(void) {
    rft__log_event(NULL, RFT_LOG_HINT, "plan", "gemm_f32", 12.5, "k = %d", 3);
    rft__log_event(NULL, RFT_LOG_EXEC, "run", "gemv", 1, "%s", "not asked for");
}

static void log_has_header_and_level(void **state) {
    (void)state;
    double when;
    char rest[200];
    char *text = log_of("dispatch", log_two);
    assert_int_equal(sscanf(text, "rooftile,time_s,level,event,what,detail,us\nrooftile,%lf,%199[^\n]", &when, rest), 2);
    assert_true(when >= 0 && when < 60);
    assert_string_equal(rest, "hint,plan,gemm_f32,k = 3,12.500");
    assert_null(strstr(text, "not asked for"));
    free(text);
}

static void log_is_off(void **state) {
    (void)state;
    const char *const off[] = {"none", ""};
    for (int i = 0; i < 2; i++) {
        char *text = log_of(off[i], log_two);
        assert_string_equal(text, "");
        free(text);
    }
}

static void log_says_what_it_does_not_know(void **state) {
    (void)state;
    char *text = log_of("verbose", log_two);
    assert_non_null(strstr(text, ",warn,environment,RFT_VERBOSE,\"verbose: not one of none, error"));
    assert_null(strstr(text, "gemm_f32"));
    free(text);
}

static void log_each_level(void) {
    for (int level = RFT_LOG_ERROR; level <= RFT_LOG_ALL; level++) {
        rft__log_event(NULL, (rft_log_level)level, "event", "what", -1, "text");
    }
}

static void levels_hold_those_above(void **state) {
    (void)state;
    static const char *const names[] = {"none", "error", "warn", "hint", "dispatch", "exec", "all"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        char *text = log_of(names[i], log_each_level), last[40];
        snprintf(last, sizeof last, ",%s,event,what,text,", names[i]);
        assert_int_equal(count_of(text, ",event,what,text,"), i);
        assert_int_equal(count_of(text, last), i > 0);
        free(text);
    }
}

/* Without a file that can be opened the log goes to stderr, and says why. */
static void logs_without_a_file_go_to_stderr(void **state) {
    (void)state;
    char long_name[2 * PATH_MAX];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const struct {
        const char *log_file, *complaint;
    } rows[] = {{"", NULL},
                {"/nowhere/log", ",warn,environment,RFT_LOG_FILE,/nowhere/log: No such file or directory,"},
                {long_name, "aaa"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_logged("hint", rows[i].log_file, log_two);
        char *text = text_of(in_folder("messages"));
        assert_int_equal(count_of(text, "rooftile,time_s,level,event,what,detail,us\n"), 1);
        assert_int_equal(count_of(text, ",hint,plan,gemm_f32,k = 3,12.500\n"), 1);
        assert_int_equal(count_of(text, ",warn,environment,RFT_LOG_FILE,"), rows[i].complaint != NULL);
        assert_true(rows[i].complaint == NULL || strstr(text, rows[i].complaint) != NULL);
        free(text);
    }
}

static void a_log_that_was_begun_goes_on(void **state) {
    (void)state;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", in_folder("log-of-two"));
    run_logged("hint", path, log_two);
    run_logged("hint", path, log_two);
    char *text = text_of(path);
    assert_int_equal(count_of(text, "rooftile,time_s,"), 1);
    assert_int_equal(count_of(text, ",hint,plan,"), 2);
    free(text);
}

static void log_what_cannot_be_written(void) {
    static const wchar_t none[] = {(wchar_t)0x7fffffff, 0}; /* no character of any locale */
    rft__log_event(NULL, RFT_LOG_ERROR, "event", "what", 1, "%ls", none);
}

static void a_detail_that_is_no_text_is_left_out(void **state) {
    (void)state;
    char *text = log_of("error", log_what_cannot_be_written);
    assert_int_equal(count_of(text, ",error,event,what,,1.000\n"), 1);
    free(text);
}

static void log_odd_texts(void) {
    rft__log_event(NULL, RFT_LOG_ERROR, "open", NULL, -1, "a \"b\", c\nd");
    rft__log_event(NULL, RFT_LOG_ERROR, "\"", "\"", 1e300, "%05000d,", 1);
    char quotes[4000];
    memset(quotes, '"', sizeof quotes - 1);
    quotes[sizeof quotes - 1] = '\0';
    rft__log_event(NULL, RFT_LOG_ERROR, quotes, quotes, 1e300, "%s", quotes);
}

static void log_quotes_and_cuts(void **state) {
    (void)state;
    char *text = log_of("all", log_odd_texts);
    assert_non_null(strstr(text, ",error,open,,\"a \"\"b\"\", c d\",\n"));
    int lines = 0;
    for (char *l = strtok(text, "\n"); l != NULL; l = strtok(NULL, "\n"), lines++) {
        int quotes = 0, commas = 0;
        for (char *p = l; *p != '\0'; p++) {
            quotes += *p == '"';
            commas += *p == ',' && quotes % 2 == 0;
        }
        assert_int_equal(quotes % 2, 0);
        assert_int_equal(commas, 6);
        assert_true(strlen(l) < 2048);
    }
    assert_int_equal(lines, 4);
    free(text);
}

static int heard;

static void listen(void *user, rft_log_level level, const char *line) {
    heard++;
    assert_ptr_equal(user, &heard);
    assert_int_equal(level, RFT_LOG_WARN);
    assert_non_null(strstr(line, ",warn,e,w,text,"));
    assert_null(strchr(line, '\n'));
}

static void callback_hears_its_level(void **state) {
    (void)state;
    unsetenv("RFT_VERBOSE");
    const rft__log log = {.callback = listen, .user = &heard, .level = RFT_LOG_WARN};
    assert_true(rft__log_enabled(&log, RFT_LOG_WARN));
    assert_false(rft__log_enabled(&log, RFT_LOG_HINT));
    assert_false(rft__log_enabled(NULL, RFT_LOG_ERROR));
    rft__log_event(&log, RFT_LOG_WARN, "e", "w", 0, "text");
    rft__log_event(&log, RFT_LOG_HINT, "e", "w", 0, "text");
    assert_int_equal(heard, 1);
}

static void log_to_both(void) {
    const rft__log log = {.callback = listen, .user = &heard, .level = RFT_LOG_WARN};
    heard = 0;
    rft__log_event(&log, RFT_LOG_WARN, "e", "w", 0, "text");
    rft__log_event(NULL, RFT_LOG_ERROR, "heard", heard == 1 ? "once" : "", -1, "%s", "");
}

static void callback_and_sink_hear_the_same(void **state) {
    (void)state;
    char *text = log_of("warn", log_to_both);
    assert_int_equal(count_of(text, ",warn,e,w,text,0.000\n"), 1);
    assert_int_equal(count_of(text, ",error,heard,once,,\n"), 1);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_has_header_and_level),
        cmocka_unit_test(log_is_off),
        cmocka_unit_test(log_says_what_it_does_not_know),
        cmocka_unit_test(levels_hold_those_above),
        cmocka_unit_test(logs_without_a_file_go_to_stderr),
        cmocka_unit_test(a_log_that_was_begun_goes_on),
        cmocka_unit_test(a_detail_that_is_no_text_is_left_out),
        cmocka_unit_test(log_quotes_and_cuts),
        cmocka_unit_test(callback_and_sink_hear_the_same),
        cmocka_unit_test(callback_hears_its_level), /* last: it opens the sink here */
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
