#include "base/json_write.h"

#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Bytes of a character that stand in a string as they are. */
static size_t plain(const char *s, size_t len)
{
    unsigned char c = (unsigned char)s[0];
    if (c < 0x80) {
        return c >= 0x20 && c != 0x7f && c != '"' && c != '\\';
    }
    uint32_t cp;
    return gn_utf8_decode(s, len, &cp);
}

static gn_status put_escape(gn_buf *buf, unsigned char c)
{
    char text[8];
    const char *named = c == '"'    ? "\\\""
                        : c == '\\' ? "\\\\"
                        : c == '\n' ? "\\n"
                        : c == '\t' ? "\\t"
                        : c == '\r' ? "\\r"
                                    : NULL;
    if (named != NULL) {
        return gn_buf_append(buf, named, 2);
    }
    if (c >= 0x80) {
        return gn_buf_append(buf, "\xef\xbf\xbd", 3);
    }
    (void)snprintf(text, sizeof text, "\\u%04x", c);
    return gn_buf_append(buf, text, 6);
}

gn_status gn_base_json_quote(gn_buf *buf, const char *s, size_t len)
{
    GN_TRY(gn_buf_append(buf, "\"", 1));
    for (size_t i = 0; i < len;) {
        size_t run = 0;
        for (size_t n; i + run < len && (n = plain(s + i + run, len - i - run)) != 0;) {
            run += n;
        }
        GN_TRY(gn_buf_append(buf, s + i, run));
        i += run;
        if (i < len) {
            GN_TRY(put_escape(buf, (unsigned char)s[i]));
            i++;
        }
    }
    return gn_buf_append(buf, "\"", 1);
}

static void put(gn_json_out *out, const char *s, size_t len)
{
    if (out->status == GN_OK) {
        out->status = gn_buf_append(out->buf, s, len);
    }
}

static void put_string(gn_json_out *out, const char *s, size_t len)
{
    if (out->status == GN_OK) {
        out->status = gn_base_json_quote(out->buf, s, len);
    }
}

/* Comma and key before a value. */
static void put_key(gn_json_out *out, const char *key)
{
    if (out->depth > 0) {
        bool *filled = &out->filled[out->depth - 1];
        if (*filled) {
            put(out, ",", 1);
        }
        *filled = true;
        assert((key != NULL) == (out->closer[out->depth - 1] == '}'));
    }
    if (key != NULL) {
        put_string(out, key, strlen(key));
        put(out, ":", 1);
    }
}

void gn_base_json_out(gn_json_out *out, gn_buf *buf)
{
    *out = (gn_json_out){.buf = buf};
}

static void begin(gn_json_out *out, const char *key, const char *open, char close)
{
    assert(out->depth < GN_JSON_WRITE_DEPTH);
    put_key(out, key);
    put(out, open, 1);
    out->closer[out->depth] = close;
    out->filled[out->depth] = false;
    out->depth++;
}

void gn_base_put_object(gn_json_out *out, const char *key)
{
    begin(out, key, "{", '}');
}

void gn_base_put_array(gn_json_out *out, const char *key)
{
    begin(out, key, "[", ']');
}

void gn_base_put_end(gn_json_out *out)
{
    assert(out->depth > 0);
    out->depth--;
    put(out, &out->closer[out->depth], 1);
}

void gn_base_put_strn(gn_json_out *out, const char *key, const char *s, size_t len)
{
    put_key(out, key);
    put_string(out, s, len);
}

void gn_base_put_str(gn_json_out *out, const char *key, const char *s)
{
    if (s == NULL) {
        gn_base_put_null(out, key);
    } else {
        gn_base_put_strn(out, key, s, strlen(s));
    }
}

void gn_base_put_raw(gn_json_out *out, const char *key, const char *json, size_t len)
{
    put_key(out, key);
    put(out, json, len);
}

void gn_base_put_int(gn_json_out *out, const char *key, int64_t v)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%" PRId64, v);
    gn_base_put_raw(out, key, text, (size_t)n);
}

void gn_base_put_uint(gn_json_out *out, const char *key, uint64_t v)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%" PRIu64, v);
    gn_base_put_raw(out, key, text, (size_t)n);
}

void gn_base_put_bool(gn_json_out *out, const char *key, bool v)
{
    gn_base_put_raw(out, key, v ? "true" : "false", v ? 4 : 5);
}

void gn_base_put_null(gn_json_out *out, const char *key)
{
    gn_base_put_raw(out, key, "null", 4);
}

void gn_base_put_real(gn_json_out *out, const char *key, double v, int decimals)
{
    char text[400]; /* the largest double has 309 digits */
    if (!isfinite(v)) {
        gn_base_put_null(out, key);
        return;
    }
    decimals = decimals < 40 ? decimals : 40;
    int n = decimals >= 0 ? snprintf(text, sizeof text, "%.*f", decimals, v)
                          : snprintf(text, sizeof text, "%.17g", v);
    gn_base_put_raw(out, key, text, (size_t)n);
}

void gn_base_put_float(gn_json_out *out, const char *key, float v)
{
    char text[32];
    if (!isfinite(v)) {
        gn_base_put_null(out, key);
        return;
    }
    int n = snprintf(text, sizeof text, "%.9g", (double)v);
    gn_base_put_raw(out, key, text, (size_t)n);
}
