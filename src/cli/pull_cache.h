/* `ganglion pull --cache`: the files of packed weights. One thread. */
#ifndef GN_CLI_PULL_CACHE_H
#define GN_CLI_PULL_CACHE_H

#include "cli/args.h"

/* args: nothing or "list": print them; "rm" and file names, models' paths or file names, or "all". */
GN_MUST_USE gn_status gn_cli_cache_command(const gn_cli_list *args, bool as_json);

#endif
