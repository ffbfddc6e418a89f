/* What `ganglion serve --dry-run` prints: the memory that the models would take. One thread. */
#ifndef GN_CLI_SERVE_PLAN_H
#define GN_CLI_SERVE_PLAN_H

#include "ganglion/server.h"

/* Opens each model in turn. GN_E_REFUSED without a message: it does not fit what is free. */
GN_MUST_USE gn_status gn_cli_serve_plan(const gn_server_options *options, bool json);

#endif
