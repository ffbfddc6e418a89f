/* Downloads: what to fetch (a plan made from a name, a hub reference or a URL) and the fetching of one
 * file over parallel ranges, with resume. One thread; curl's multi interface does the waiting. */
#ifndef GN_CLI_PULL_H
#define GN_CLI_PULL_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define GN_CLI_SHA256_HEX 65 /* with the NUL */

typedef struct gn_cli_pull_options {
    const char *hub;     /* "https://…", no slash at the end */
    int64_t connections; /* 1 .. 16 */
    int64_t retries;     /* failures in a row without progress */
    int64_t timeout_s;   /* for connecting, and for a transfer that stands still */
} gn_cli_pull_options;

typedef struct gn_cli_pull_file {
    char *url;
    char *local;    /* path in the model's folder: names joined by '/', each checked */
    uint64_t bytes; /* 0: unknown */
    char sha256[GN_CLI_SHA256_HEX]; /* "": unknown */
} gn_cli_pull_file;

typedef struct gn_cli_pull_plan {
    char *name; /* the model's folder */
    gn_cli_pull_file *files;
    size_t n_files;
} gn_cli_pull_plan;

/* Plan for `what`: a catalogue name, "hf:ORG/REPO[:FILE]" (asks the hub), or a URL. `as` (may be NULL)
 * overrides the name of the model. GN_E_ARG: no such name, or one that can't be a file name;
 * GN_E_NOT_FOUND: the repository has no such file (message: those there are); GN_E_UNAVAILABLE. */
GN_MUST_USE gn_status gn_cli_pull_plan_make(const char *what, const char *as,
                                            const gn_cli_pull_options *options,
                                            gn_cli_pull_plan *out);
void gn_cli_pull_plan_fini(gn_cli_pull_plan *plan);
/* Takes copies. `sha256` may be NULL. For the resolvers. */
GN_MUST_USE gn_status gn_cli_pull_plan_add(gn_cli_pull_plan *plan, const char *url,
                                           const char *local, uint64_t bytes, const char *sha256);
/* The hub half of the above: `reference` is what follows "hf:". */
GN_MUST_USE gn_status gn_cli_pull_hub_plan(const char *reference,
                                           const gn_cli_pull_options *options,
                                           gn_cli_pull_plan *plan);

typedef struct gn_cli_pull_result {
    uint64_t bytes;
    char sha256[GN_CLI_SHA256_HEX];
    bool already_there;
    uint64_t resumed_bytes; /* taken over from an earlier, cut download */
} gn_cli_pull_result;

/* Fetch a file to `path`, whose folder exists. Until it is complete and its digest is checked it is
 * `path`.part, with `path`.part.json saying which bytes are there; it gets its name by a rename, so
 * `path` is never half-written. A file that is there already is kept if its digest (or, where none is
 * known, its presence) says so.
 * GN_E_DIGEST: the bytes are others than announced (the .part is removed); GN_E_UNAVAILABLE: network,
 * HTTP status, disk full, another pull of the same file (the .part stays for resume); GN_E_CANCELLED. */
GN_MUST_USE gn_status gn_cli_pull_fetch(const gn_cli_pull_file *file, const char *path,
                                        const gn_cli_pull_options *options,
                                        gn_cli_pull_result *result);

/* Fetch a short text (the hub's answers) of at most `limit` bytes. */
GN_MUST_USE gn_status gn_cli_pull_text(const char *url, const gn_cli_pull_options *options,
                                       size_t limit, gn_buf *out);

#endif
