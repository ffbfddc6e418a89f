/* Members of a request, checked. Every function leaves its output as it was where the member is absent or null, and
 * fails with GN_E_ARG where it has the wrong type or is out of range: the message is "PATH: found …, expected
 * …", and ask->param keeps the path. One thread. */
#ifndef GN_SERVE_ASK_H
#define GN_SERVE_ASK_H

#include "base/arena.h"
#include "base/json.h"

typedef struct gn_ask {
    char param[160]; /* "messages[2].content"; "" where nothing was refused */
} gn_ask;

/* Refuse `node`: the message is its path and the text. */
gn_status gn_ask_refuse(gn_ask *ask, const gn_json *node, const char *fmt, ...)
    GN_PRINTF(3, 4) GN_COLD;
/* "PATH: found a number, expected EXPECTED"; short strings are shown. */
gn_status gn_ask_unexpected(gn_ask *ask, const gn_json *node, const char *expected) GN_COLD;
/* "OBJECT.KEY: not there, expected EXPECTED". */
gn_status gn_ask_missing(gn_ask *ask, const gn_json *object, const char *key,
                         const char *expected) GN_COLD;

/* The member of an object; NULL where absent or null. */
const gn_json *gn_ask_get(const gn_json *object, const char *key);

/* type: GN_JSON_STRING, GN_JSON_ARRAY or GN_JSON_OBJECT. */
GN_MUST_USE gn_status gn_ask_member(gn_ask *ask, const gn_json *object, const char *key,
                                    gn_json_type type, const gn_json **out);
/* The same, but it has to be there. */
GN_MUST_USE gn_status gn_ask_needed(gn_ask *ask, const gn_json *object, const char *key,
                                    gn_json_type type, const gn_json **out);
GN_MUST_USE gn_status gn_ask_bool(gn_ask *ask, const gn_json *object, const char *key, bool *out);
/* Whole numbers, also written as 3.0. */
GN_MUST_USE gn_status gn_ask_int(gn_ask *ask, const gn_json *object, const char *key, int32_t least,
                                 int32_t most, int32_t *out);
GN_MUST_USE gn_status gn_ask_float(gn_ask *ask, const gn_json *object, const char *key, float least,
                                   float most, float *out);
/* Any whole number as a seed: its 64 low bits. */
GN_MUST_USE gn_status gn_ask_seed(gn_ask *ask, const gn_json *object, const char *key,
                                  uint64_t *out);
/* A string, or an array of at most `most` strings, without NUL characters; empty ones are left out. The array
 * lives in `arena`. */
GN_MUST_USE gn_status gn_ask_strings(gn_ask *ask, gn_arena *arena, const gn_json *object,
                                     const char *key, size_t most, const char *const **out,
                                     size_t *n);

/* Members whose names are not among known[0 .. n). */
size_t gn_ask_count_unknown(const gn_json *object, const char *const *known, size_t n);

#endif
