/* A file under way: NAME.part holds the bytes at their place, NAME.part.json which of them are there.
 * One thread; a lock on NAME.part keeps other processes away. */
#ifndef GN_CLI_PULL_PART_H
#define GN_CLI_PULL_PART_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GN_CLI_MAX_SEGMENTS  64
#define GN_CLI_MAX_VALIDATOR 256

typedef struct gn_cli_segment {
    uint64_t begin, end; /* bytes [begin, end) of the file */
    uint64_t done;       /* of them written, from the start */
} gn_cli_segment;

typedef struct gn_cli_part {
    char *final_path, *part_path, *state_path, *temp_path;
    int fd; /* -1: closed */
    /* What identifies the remote file; a resume needs all of them equal. */
    uint64_t size;
    bool size_known;
    char validator[GN_CLI_MAX_VALIDATOR]; /* strong ETag or Last-Modified, "" if it has neither */
    char sha256[65];                      /* "" if unknown */
    bool ranges;                          /* the server can send a part of the file */
    gn_cli_segment segments[GN_CLI_MAX_SEGMENTS];
    size_t n_segments;
} gn_cli_part;

/* Open or create PATH.part and lock it. GN_E_UNAVAILABLE: another process pulls it, or it can't be made. */
GN_MUST_USE gn_status gn_cli_part_open(const char *path, gn_cli_part **out);
void gn_cli_part_close(gn_cli_part *part); /* the files stay */

/* With size, validator, sha256 and ranges set: take over the segments of an earlier run where it was of
 * the same remote file, else start with none done. Reserves the disk space. GN_E_UNAVAILABLE: disk full. */
GN_MUST_USE gn_status gn_cli_part_plan(gn_cli_part *part, size_t connections);

GN_MUST_USE gn_status gn_cli_part_write(gn_cli_part *part, gn_cli_segment *segment,
                                        const void *data, size_t len);
uint64_t gn_cli_part_done(const gn_cli_part *part);
/* Bring the data to disk, then the state that speaks of it. */
GN_MUST_USE gn_status gn_cli_part_save(gn_cli_part *part);
/* Forget everything fetched. */
GN_MUST_USE gn_status gn_cli_part_restart(gn_cli_part *part);
/* The file is whole: give it its name. */
GN_MUST_USE gn_status gn_cli_part_finish(gn_cli_part *part);
void gn_cli_part_remove(gn_cli_part *part);
/* Remove it only where nothing was fetched, now or by an earlier run. */
void gn_cli_part_discard_empty(gn_cli_part *part);

#endif
