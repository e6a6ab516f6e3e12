/* SPDX-License-Identifier: Apache-2.0
 *
 * gnuplot.c - see gnuplot.h.
 */
#define _GNU_SOURCE
#include "gnuplot.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_COLUMNS = 100, TEXT_LINES = 32, LEAST_COLUMNS = 40 };

extern char **environ;

bool gnuplot_form(const char *path, plot_form *form) {
    const char *dot = strrchr(path, '.');
    *form = strcmp(path, "-") == 0 ? PLOT_TEXT : dot && strcmp(dot, ".png") == 0 ? PLOT_PNG : PLOT_SVG;
    return *form != PLOT_SVG || (dot && strcmp(dot, ".svg") == 0);
}

/* Nothing has a meaning between single quotes but the quote itself; control characters would end the line. */
void gnuplot_quote(FILE *script, const char *text) {
    fputc('\'', script);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', script);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, script);
    }
    fputc('\'', script);
}

/* Colours that keep apart for most eyes, dark enough on white. */
static void write_colours(FILE *script) {
    static const char *const colours[] = {"#0969da", "#bc4c00", "#1a7f37", "#8250df", "#9a6700", "#bf3989", "#0b7285", "#57606a"};
    enum { N = sizeof colours / sizeof *colours };
    for (int i = 0; i < N; i++)
        fprintf(script, "set linetype %d linecolor rgb '%s' pointtype %d\n", i + 1, colours[i], 4 + i);
    fprintf(script, "set linetype cycle %d\n", N);
}

static void write_terminal(FILE *script, plot_form form, int plots) {
    struct winsize w;
    int columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= LEAST_COLUMNS ? w.ws_col : TEXT_COLUMNS;
    int width = plots > 1 ? 1860 : 820;
    fputs("set encoding utf8\n", script);
    write_colours(script);
    if (form == PLOT_SVG)
        fprintf(script, "set terminal svg size %d,540 dynamic noenhanced font 'sans,13' background '#ffffff'\n", width);
    else if (form == PLOT_PNG)
        fprintf(script,
                "if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) { set terminal pngcairo size %d,810 noenhanced font 'sans,12' } "
                "else { set terminal png size %d,810 noenhanced }\n",
                width * 3 / 2, width * 3 / 2);
    else
        fprintf(script, "set terminal dumb size %d,%d noenhanced\n", columns, TEXT_LINES);
    fprintf(script, "side_by_side = %d\n", form != PLOT_TEXT);
    if (plots > 1 && form != PLOT_TEXT)
        fputs("set multiplot\n", script);
}

/* posix_spawnp as it reports: an errno. */
static int start(int script, int picture, pid_t *child) {
    char name[] = "gnuplot", no_startup_files[] = "--default-settings";
    char *argv[] = {name, no_startup_files, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, script, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, picture, STDOUT_FILENO);
    int error = posix_spawnp(child, name, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static bool succeeded(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int report_start(int error) {
    if (error == ENOENT)
        cli_message("--plot: gnuplot, which draws the plots, is not installed (Debian: apt install gnuplot-nox)");
    else
        cli_message("--plot: cannot start gnuplot: %s", strerror(error));
    return CLI_IO;
}

/* A gnuplot that ended early shows in its status, so its pipe may break in silence. */
static int feed(int picture, const char *text, size_t bytes) {
    int ends[2];
    pid_t child;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return report_start(errno);
    int error = start(ends[0], picture, &child);
    close(ends[0]);
    if (error != 0) {
        close(ends[1]);
        return report_start(error);
    }
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    size_t written = 0;
    for (ssize_t n = 1; written < bytes && n > 0; written += n > 0 ? (size_t)n : 0)
        n = write(ends[1], text + written, bytes - written);
    close(ends[1]);
    signal(SIGPIPE, before);
    if (succeeded(child) && written == bytes)
        return CLI_OK;
    cli_message("--plot: gnuplot failed");
    return CLI_IO;
}

static int draw(const char *path, plot_form form, const char *text, size_t bytes) {
    int picture = form == PLOT_TEXT ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (picture < 0) {
        cli_message("--plot %s: %s", path, strerror(errno));
        return CLI_IO;
    }
    fflush(stdout);
    int code = feed(picture, text, bytes);
    if (picture != STDOUT_FILENO && close(picture) != 0 && code == CLI_OK) {
        cli_message("--plot %s: %s", path, strerror(errno));
        code = CLI_IO;
    }
    return code;
}

int gnuplot_run(const char *path, int plots, void (*write_script)(FILE *script, const void *what), const void *what) {
    char *text = NULL;
    size_t bytes = 0;
    plot_form form;
    FILE *script = open_memstream(&text, &bytes);
    gnuplot_form(path, &form);
    if (script) {
        write_terminal(script, form, plots);
        write_script(script, what);
    }
    bool whole = script && fclose(script) == 0;
    int code = whole ? draw(path, form, text, bytes) : CLI_LIBRARY;
    if (!whole)
        cli_message("--plot %s: no memory for the script of gnuplot", path);
    free(text);
    return code;
}
