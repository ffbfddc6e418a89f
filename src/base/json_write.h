/* JSON text written member by member into a buffer: commas and nesting are kept here. `key` names a member inside an
 * object and is NULL inside an array and for the outermost value. Strings that are no UTF-8 get U+FFFD for each bad byte;
 * a real that is not finite is null. The first failure (memory) is kept in `status`; what follows does
 * nothing, so that a caller checks once at the end. One thread. */
#ifndef GN_BASE_JSON_WRITE_H
#define GN_BASE_JSON_WRITE_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define GN_JSON_WRITE_DEPTH 32
typedef struct gn_json_out {
    gn_buf *buf; /* borrowed; appended to */
    gn_status status;
    int depth;
    char closer[GN_JSON_WRITE_DEPTH];
    bool filled[GN_JSON_WRITE_DEPTH];
} gn_json_out;

void gn_base_json_out(gn_json_out *out, gn_buf *buf);
void gn_base_put_object(gn_json_out *out, const char *key); /* "{", ended by gn_base_put_end() */
void gn_base_put_array(gn_json_out *out, const char *key);  /* "[" */
void gn_base_put_end(gn_json_out *out);
void gn_base_put_strn(gn_json_out *out, const char *key, const char *s, size_t len);
void gn_base_put_str(gn_json_out *out, const char *key, const char *s); /* NULL: null */
void gn_base_put_int(gn_json_out *out, const char *key, int64_t v);
void gn_base_put_uint(gn_json_out *out, const char *key, uint64_t v);
void gn_base_put_bool(gn_json_out *out, const char *key, bool v);
void gn_base_put_null(gn_json_out *out, const char *key);
/* decimals ≥ 0: that many after the point; -1: as many as a double needs. */
void gn_base_put_real(gn_json_out *out, const char *key, double v, int decimals);
void gn_base_put_float(gn_json_out *out, const char *key,
                       float v); /* 9 digits: reads back to the same bits */
void gn_base_put_raw(gn_json_out *out, const char *key, const char *json,
                     size_t len); /* valid JSON already */

/* A JSON string with its quotes, appended to `buf`. */
GN_MUST_USE gn_status gn_base_json_quote(gn_buf *buf, const char *s, size_t len);

#endif
