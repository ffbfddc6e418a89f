/* The streaming JSON writer of cli/out.h: commas and nesting are kept here, so that output of any length
 * needs no tree in memory. */
#include "cli/out.h"

#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

void gn_cli_json_init(gn_cli_json *json, FILE *file)
{
    *json = (gn_cli_json){.file = file};
}

static void put_string(FILE *file, const char *s, size_t len)
{
    (void)fputc('"', file);
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)s[i];
        uint32_t cp;
        size_t n = gn_utf8_decode(s + i, len - i, &cp);
        if (n == 0) {
            (void)fputs("\xef\xbf\xbd", file);
            i++;
        } else if (n > 1) {
            (void)fwrite(s + i, 1, n, file);
            i += n;
        } else {
            if (c == '"' || c == '\\') {
                (void)fputc('\\', file);
                (void)fputc(c, file);
            } else if (c == '\n') {
                (void)fputs("\\n", file);
            } else if (c == '\t') {
                (void)fputs("\\t", file);
            } else if (c == '\r') {
                (void)fputs("\\r", file);
            } else if (c < 0x20 || c == 0x7f) {
                (void)fprintf(file, "\\u%04x", c);
            } else {
                (void)fputc(c, file);
            }
            i++;
        }
    }
    (void)fputc('"', file);
}

/* Comma and key before a value. */
static void put_key(gn_cli_json *json, const char *key)
{
    if (json->depth > 0) {
        bool *filled = &json->filled[json->depth - 1];
        if (*filled) {
            (void)fputc(',', json->file);
        }
        *filled = true;
        assert((key != NULL) == (json->closer[json->depth - 1] == '}'));
    }
    if (key != NULL) {
        put_string(json->file, key, strlen(key));
        (void)fputc(':', json->file);
    }
}

static void begin(gn_cli_json *json, const char *key, char open, char close)
{
    assert(json->depth < GN_CLI_JSON_DEPTH);
    put_key(json, key);
    (void)fputc(open, json->file);
    json->closer[json->depth] = close;
    json->filled[json->depth] = false;
    json->depth++;
}

void gn_cli_json_object(gn_cli_json *json, const char *key)
{
    begin(json, key, '{', '}');
}

void gn_cli_json_array(gn_cli_json *json, const char *key)
{
    begin(json, key, '[', ']');
}

void gn_cli_json_end(gn_cli_json *json)
{
    assert(json->depth > 0);
    json->depth--;
    (void)fputc(json->closer[json->depth], json->file);
    if (json->depth == 0) {
        (void)fputc('\n', json->file);
    }
}

void gn_cli_json_strn(gn_cli_json *json, const char *key, const char *s, size_t len)
{
    put_key(json, key);
    put_string(json->file, s, len);
}

void gn_cli_json_str(gn_cli_json *json, const char *key, const char *s)
{
    if (s == NULL) {
        gn_cli_json_null(json, key);
    } else {
        gn_cli_json_strn(json, key, s, strlen(s));
    }
}

void gn_cli_json_int(gn_cli_json *json, const char *key, int64_t v)
{
    put_key(json, key);
    (void)fprintf(json->file, "%" PRId64, v);
}

void gn_cli_json_uint(gn_cli_json *json, const char *key, uint64_t v)
{
    put_key(json, key);
    (void)fprintf(json->file, "%" PRIu64, v);
}

void gn_cli_json_bool(gn_cli_json *json, const char *key, bool v)
{
    put_key(json, key);
    (void)fputs(v ? "true" : "false", json->file);
}

void gn_cli_json_null(gn_cli_json *json, const char *key)
{
    put_key(json, key);
    (void)fputs("null", json->file);
}

void gn_cli_json_real(gn_cli_json *json, const char *key, double v, int decimals)
{
    if (!isfinite(v)) {
        gn_cli_json_null(json, key);
        return;
    }
    put_key(json, key);
    if (decimals >= 0) {
        (void)fprintf(json->file, "%.*f", decimals, v);
    } else {
        (void)fprintf(json->file, "%.17g", v);
    }
}

void gn_cli_json_raw(gn_cli_json *json, const char *key, const char *text)
{
    put_key(json, key);
    (void)fputs(text, json->file);
}

void gn_cli_json_floats(gn_cli_json *json, const char *key, const float *v, size_t n)
{
    gn_cli_json_array(json, key);
    for (size_t i = 0; i < n; i++) {
        if (isfinite(v[i])) {
            put_key(json, NULL);
            (void)fprintf(json->file, "%.9g", (double)v[i]);
        } else {
            gn_cli_json_null(json, NULL);
        }
    }
    gn_cli_json_end(json);
}
