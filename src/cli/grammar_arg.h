/* --schema, --regex and --gbnf of the commands that generate. */
#ifndef GN_CLI_GRAMMAR_ARG_H
#define GN_CLI_GRAMMAR_ARG_H

#include "cli/args.h"
#include "ganglion/grammar.h"

typedef struct gn_cli_grammar_args { /* zeroed: none */
    const char *schema;              /* file */
    const char *regex;               /* the expression itself */
    const char *gbnf;                /* file */
} gn_cli_grammar_args;

/* Rows of an option table; `T` is the options struct, which has a gn_cli_grammar_args named `grammar`. */
#define GN_CLI_GRAMMAR_OPTIONS(T)                                                                  \
    {.name = "schema",                                                                             \
     .kind = GN_CLI_TEXT,                                                                          \
     .offset = offsetof(T, grammar.schema),                                                        \
     .value = "FILE",                                                                              \
     .help = "The answer is JSON that fulfils this JSON Schema, whatever the limit."},             \
        {.name = "regex",                                                                          \
         .kind = GN_CLI_TEXT,                                                                      \
         .offset = offsetof(T, grammar.regex),                                                     \
         .value = "R",                                                                             \
         .help = "The answer matches this regular expression (RE2's syntax) as a whole."},         \
    {                                                                                              \
        .name = "gbnf", .kind = GN_CLI_TEXT, .offset = offsetof(T, grammar.gbnf), .value = "FILE", \
        .help = "The answer is a text of this grammar."                                            \
    }

/* GN_E_ARG: more than one is given. */
GN_MUST_USE gn_status gn_cli_grammar_check(const gn_cli_grammar_args *args);
/* *out is NULL where none is given; gn_grammar_release(). Faults name the file, and of a schema the place. */
GN_MUST_USE gn_status gn_cli_grammar_load(const gn_cli_grammar_args *args, gn_grammar **out);

#endif
