/* A YAML file with a command's options under their long names: scalars, and for options that may be given more than once
 * lists of them. Values are checked as on the command line. One thread. */
#ifndef GN_CLI_CONFIG_H
#define GN_CLI_CONFIG_H

#include "cli/args.h"

/* Set what the file says. Texts live until gn_cli_config_release(). GN_E_NOT_FOUND, GN_E_IO; GN_E_FORMAT: file, line, what
 * was found and what is expected. */
GN_MUST_USE gn_status gn_cli_config_read(const gn_cli_command *command, const char *path,
                                         void *options);
void gn_cli_config_release(void);

#endif
