/* Commands and their options as tables. A command states its options once; parsing, checks of range, the
 * text of --help, the man page and the shell completions all come from that table. One thread. */
#ifndef GN_CLI_ARGS_H
#define GN_CLI_ARGS_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gn_cli_kind {
    GN_CLI_FLAG,   /* bool: no value */
    GN_CLI_INT,    /* int64_t in [min, max] */
    GN_CLI_REAL,   /* double in [min, max] */
    GN_CLI_SIZE,   /* uint64_t bytes: "512M", "2G" (1024-based) or plain bytes */
    GN_CLI_TEXT,   /* const char * into argv */
    GN_CLI_CHOICE, /* int: index in `choices`, "a|b|c" */
    GN_CLI_INTS,   /* gn_cli_ints: "1,8", each in [min, max]; a repeated option replaces */
    GN_CLI_LIST    /* gn_cli_list: one text more each time the option is given */
} gn_cli_kind;

#define GN_CLI_MAX_INTS 32

typedef struct gn_cli_ints {
    int64_t v[GN_CLI_MAX_INTS];
    size_t n;
} gn_cli_ints;

typedef struct gn_cli_list {
    const char **v; /* the array belongs to the parser, the texts to argv */
    size_t n;
} gn_cli_list;

typedef struct gn_cli_option {
    char letter;      /* 0: none */
    const char *name; /* without dashes; NULL: letter only */
    gn_cli_kind kind;
    size_t offset;       /* where the value goes in the command's options struct */
    const char *value;   /* "FILE"; NULL for a flag */
    const char *help;    /* one sentence, with the default */
    double min, max;     /* GN_CLI_INT, GN_CLI_INTS, GN_CLI_REAL */
    const char *choices; /* GN_CLI_CHOICE */
    bool more;           /* for few users: in the man page, not in --help */
} gn_cli_option;

typedef struct gn_cli_command {
    const char *name;
    const char *summary; /* one line, lower case, no full stop */
    const char *usage;   /* what follows the name: "-m MODEL [options] FILE" */
    const char *details; /* more lines for --help; NULL: none */
    const char *example; /* one command a line */
    const gn_cli_option *options;
    size_t n_options;
    size_t options_bytes;      /* sizeof the options struct */
    const void *defaults;      /* an options struct to start from; NULL: zeroed */
    size_t min_args, max_args; /* positional arguments */
    bool
        has_config; /* the file of the option "config" is read before all other options (cli/config.h) */
    /* Does the work. A failure is reported by the caller as `ganglion NAME: gn_error_message()` with
     * the exit code of gn_cli_exit_code(); an empty message prints nothing. */
    gn_status (*run)(const void *options, const gn_cli_list *args);
} gn_cli_command;

/* Fill `options` (options_bytes, set to the defaults by the callee) from argv[0 .. argc), which starts
 * after the command's name. An option may be given as --name VALUE, --name=VALUE, -l VALUE or -lVALUE;
 * `--` ends options. *help is set, and the rest left, where -h or --help is found.
 * GN_E_ARG names option, what was found and what is expected. `args` and lists in `options` are given
 * back with gn_cli_args_fini() after success and after failure. */
GN_MUST_USE gn_status gn_cli_args_parse(const gn_cli_command *command, int argc, char **argv,
                                        void *options, gn_cli_list *args, bool *help);
void gn_cli_args_fini(const gn_cli_command *command, void *options, gn_cli_list *args);

/* Set one option by its long name, as if it had been given; a flag's value is "true" or "false". `value` is borrowed
 * where the option is a text. GN_E_ARG. */
GN_MUST_USE gn_status gn_cli_args_set(const gn_cli_command *command, const char *name,
                                      const char *value, void *options);

/* The text of `ganglion NAME --help`. */
GN_MUST_USE gn_status gn_cli_args_help(const gn_cli_command *command, gn_buf *out);

/* The name of names[0 .. n) nearest to `found` in edits, or NULL where none is near. */
const char *gn_cli_args_nearest(const char *found, const char *const *names, size_t n);

#endif
