/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c - rooftile COMMAND: finds the command and hands over.
 */
#include "cli.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} command;

static const command commands[] = {
    {"info", cmd_info, "the build, this machine, kernels, environment variables"},
    {"roofline", cmd_roofline, "measure this machine's roofs and save its profile"},
    {"model", cmd_model, "a model file as its list of matrix products"},
    {"quantize", cmd_quantize, "a model file with its weights in a smaller type"},
    {"bench", cmd_bench, "time shapes against the roof and other libraries"},
    {"explain", cmd_explain, "which kernel runs a shape, and why"},
    {"trace", cmd_trace, "what a recorded run spent its time on, and its bounds"},
    {"replay", cmd_replay, "the products of a recorded run as lines for bench, or run here"},
    {"why", cmd_why, "what decides the speed of one layer, and what to do"},
    {"regret", cmd_regret, "what a library's default choice costs on a model"},
    {"jit", cmd_jit, "compile a model's GPU kernels ahead of time"},
    {"check", cmd_check, "prove every kernel here against a reference"},
};

#define N_COMMANDS (sizeof commands / sizeof commands[0])

static void print_help(FILE *out) {
    fputs("Usage: rooftile COMMAND [OPTION...]\n"
          "Matrix products of language models: how fast, how right, and why.\n\n",
          out);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].what);
    fputs("\n  rooftile COMMAND --help   the options of a command\n"
          "  rooftile --version\n\n"
          "Exit codes: 0 success, 1 a check failed or a result lies above its roof,\n"
          "2 usage, 3 the library failed, 4 a file could not be read or written.\n",
          out);
}

static int print_version(void) {
    rft_build_info info = rft_build_info_init();
    if (rft_get_build_info(&info) != RFT_OK)
        return CLI_LIBRARY;
    printf("rooftile %s\n", info.version);
    return CLI_OK;
}

static const command *find_command(const char *name) {
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int flush_output(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    perror("rooftile: cannot write the output");
    return CLI_IO;
}

/* argp names the program in messages by argv[0]. */
static int run_command(const command *c, int argc, char **argv) {
    static char name[64];
    snprintf(name, sizeof name, "rooftile %s", c->name);
    argv[1] = name;
    return flush_output(c->run(argc - 1, argv + 1));
}

int main(int argc, char **argv) {
    argp_err_exit_status = CLI_USAGE;
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return flush_output(CLI_OK);
    }
    if (strcmp(argv[1], "--version") == 0)
        return flush_output(print_version());
    const command *c = find_command(argv[1]);
    if (!c) {
        cli_message("'%s' is no command; rooftile --help lists them", argv[1]);
        return CLI_USAGE;
    }
    return run_command(c, argc, argv);
}
