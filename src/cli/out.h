/* What commands write and read: JSON on standard output, progress on standard error, files and standard
 * input, exit codes. One thread. */
#ifndef GN_CLI_OUT_H
#define GN_CLI_OUT_H

#include "base/buf.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* 0 done, 1 the answer is no, 2 usage, 3 bad input file, 4 out of memory, 5 unavailable. */
int gn_cli_exit_code(gn_status status);

/* Print `ganglion COMMAND: gn_error_message()` on standard error and return the exit code. Nothing is
 * printed for GN_OK or where no message was recorded. */
int gn_cli_report(const char *command, gn_status status);

/* Flush standard output; GN_E_UNAVAILABLE where some of what was written is lost (a full disk). */
GN_MUST_USE gn_status gn_cli_flush(void);

/* How messages call an input: its path, or "standard input" for "-". */
const char *gn_cli_input_name(const char *path);

/* Append the file at `path` ("-": standard input) to `out`, at most `limit` bytes (0: 1 GiB).
 * GN_E_NOT_FOUND, GN_E_IO, GN_E_LIMIT, GN_E_NOMEM; messages name the file. */
GN_MUST_USE gn_status gn_cli_read(const char *path, size_t limit, gn_buf *out);

/* Read and parse JSON; GN_E_FORMAT names file, line and column. *out: json_decref(). */
GN_MUST_USE gn_status gn_cli_read_json(const char *path, json_t **out);

/* A JSON array of token ids at `path`. *ids: gn_free(). GN_E_FORMAT names the element. */
GN_MUST_USE gn_status gn_cli_read_ids(const char *path, int32_t **ids, size_t *n);

/* Streaming JSON. `key` names a member inside an object and is NULL inside an array. Strings that are no
 * UTF-8 get U+FFFD for each bad byte; a real that is not finite is written as null. Errors of the stream
 * are seen by gn_cli_flush(). */
#define GN_CLI_JSON_DEPTH 16
typedef struct gn_cli_json {
    FILE *file;
    int depth;
    char closer[GN_CLI_JSON_DEPTH];
    bool filled[GN_CLI_JSON_DEPTH];
} gn_cli_json;

void gn_cli_json_init(gn_cli_json *json, FILE *file);
void gn_cli_json_object(gn_cli_json *json, const char *key); /* "{", ended by gn_cli_json_end() */
void gn_cli_json_array(gn_cli_json *json, const char *key);  /* "[" */
void gn_cli_json_end(gn_cli_json *json); /* closes the innermost; the outermost ends the line */
void gn_cli_json_strn(gn_cli_json *json, const char *key, const char *s, size_t len);
void gn_cli_json_str(gn_cli_json *json, const char *key, const char *s); /* NULL: null */
void gn_cli_json_int(gn_cli_json *json, const char *key, int64_t v);
void gn_cli_json_uint(gn_cli_json *json, const char *key, uint64_t v);
void gn_cli_json_bool(gn_cli_json *json, const char *key, bool v);
void gn_cli_json_null(gn_cli_json *json, const char *key);
/* decimals ≥ 0: that many after the point; -1: as many as a double needs. */
void gn_cli_json_real(gn_cli_json *json, const char *key, double v, int decimals);
void gn_cli_json_raw(gn_cli_json *json, const char *key, const char *text); /* valid JSON already */
/* Numbers of an array of floats, 9 significant digits each: they read back to the same bits. */
void gn_cli_json_floats(gn_cli_json *json, const char *key, const float *v, size_t n);

/* A line on standard error with share, rate and time left; silent unless that is a terminal. */
typedef struct gn_cli_progress {
    const char *label;
    const char *unit; /* "B" is shown as MB, MB/s; else as it is ("tok") */
    uint64_t total;   /* 0: unknown */
    uint64_t base;    /* done before the start: no part of the rate */
    uint64_t start_ns;
    uint64_t shown_ns;
    bool on;
    bool shown;
} gn_cli_progress;

void gn_cli_progress_start(gn_cli_progress *progress, const char *label, const char *unit,
                           uint64_t total, uint64_t base);
void gn_cli_progress_at(gn_cli_progress *progress, uint64_t done);
void gn_cli_progress_end(gn_cli_progress *progress); /* clears the line */

/* "1.2 GB", "345 MB", "12 B" (powers of 1000). */
#define GN_CLI_HUMAN 24
const char *gn_cli_human_bytes(uint64_t bytes, char out[GN_CLI_HUMAN]);

#endif
