/* The models folder as `pull list` and `pull rm` see it: a folder for each model. One thread. */
#ifndef GN_CLI_PULL_STORE_H
#define GN_CLI_PULL_STORE_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Remove the model `name` (checked to be a plain name), its partial downloads included; *bytes is what
 * its files held. Symbolic links are removed, not followed. GN_E_NOT_FOUND, GN_E_UNAVAILABLE. */
GN_MUST_USE gn_status gn_cli_store_remove(const char *name, uint64_t *bytes);

/* Print the models there are, and those of the catalogue that are not. */
GN_MUST_USE gn_status gn_cli_store_list(bool as_json);

#endif
