/* The table of commands. Each cmd_NAME.c defines one. */
#ifndef GN_CLI_COMMANDS_H
#define GN_CLI_COMMANDS_H

#include "cli/args.h"

extern const gn_cli_command gn_cli_cmd_run;
extern const gn_cli_command gn_cli_cmd_serve;
extern const gn_cli_command gn_cli_cmd_tokenize;
extern const gn_cli_command gn_cli_cmd_embed;
extern const gn_cli_command gn_cli_cmd_logits;
extern const gn_cli_command gn_cli_cmd_template;
extern const gn_cli_command gn_cli_cmd_eval;
extern const gn_cli_command gn_cli_cmd_bench;
extern const gn_cli_command gn_cli_cmd_plan;
extern const gn_cli_command gn_cli_cmd_inspect;
extern const gn_cli_command gn_cli_cmd_pull;
extern const gn_cli_command gn_cli_cmd_grammar;

/* In the order of `ganglion --help`. */
extern const gn_cli_command *const gn_cli_commands[];
extern const size_t gn_cli_n_commands;

/* Text generated from the tables: a man page in roff (`command` NULL: of the whole program), or the
 * completion script for "bash", "zsh" or "fish". GN_E_ARG for another shell. */
GN_MUST_USE gn_status gn_cli_generate_man(const gn_cli_command *command, gn_buf *out);
GN_MUST_USE gn_status gn_cli_generate_completion(const char *shell, gn_buf *out);

#endif
