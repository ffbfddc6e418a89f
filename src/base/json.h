/* JSON text (RFC 8259) as a tree that keeps what other readers lose: the order of members and the digits of
 * numbers. Strings are decoded; nothing else is interpreted. The whole text is checked: UTF-8, no lone
 * surrogate, no duplicate key, nesting up to a bound. */
#ifndef GN_BASE_JSON_H
#define GN_BASE_JSON_H

#include "base/arena.h"
#include "base/attr.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GN_JSON_MAX_DEPTH 512u

typedef enum gn_json_type {
    GN_JSON_NULL,
    GN_JSON_FALSE,
    GN_JSON_TRUE,
    GN_JSON_NUMBER,
    GN_JSON_STRING,
    GN_JSON_ARRAY,
    GN_JSON_OBJECT
} gn_json_type;

typedef struct gn_json gn_json;
struct gn_json {
    gn_json_type type;
    const char *
        text; /* number: as written; string: decoded; both with a NUL behind, which is not counted */
    size_t len;            /* bytes of text; of arrays and objects the number of children */
    const gn_json *first;  /* first child */
    const gn_json *next;   /* next sibling */
    const gn_json *parent; /* NULL: the root */
    const char *key;       /* of a member, decoded, NUL behind; NULL elsewhere */
    size_t key_len;
    const char *raw; /* the value as it stands in the text that was parsed; borrowed from it */
    size_t raw_len;
    uint32_t id; /* 0 for the root, then counted in the order of the text */
};

/* Parse s[0 .. len) into `arena`, which the tree lives in. *n_nodes (may be NULL): how many there are.
 * GN_E_FORMAT (message: what, at which byte), GN_E_LIMIT (depth, 2^32 nodes), GN_E_NOMEM. */
GN_MUST_USE gn_status gn_base_json_parse(gn_arena *arena, const char *s, size_t len,
                                         const gn_json **out, uint32_t *n_nodes);

/* Member of an object; NULL where absent, or where `object` is none. */
const gn_json *gn_base_json_get(const gn_json *object, const char *key);

/* Is the string equal to s? */
bool gn_base_json_is(const gn_json *string, const char *s);

#endif
