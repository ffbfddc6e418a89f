/* A value knows its parents and its key, so the path in a message is found when it is needed, and readers pass
 * none along. */
#include "serve/ask.h"

#include "base/status.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS 16 /* of a path, the innermost; the rest is "…" */

static size_t index_of(const gn_json *node)
{
    size_t i = 0;
    for (const gn_json *at = node->parent->first; at != node; at = at->next) {
        i++;
    }
    return i;
}

static void put_text(char *out, size_t size, const char *text)
{
    const size_t len = strlen(out);
    (void)snprintf(out + len, size - len, "%s", text);
}

static void put_path(char *out, size_t size, const gn_json *node)
{
    const gn_json *steps[MAX_STEPS];
    size_t n = 0;
    for (; node->parent != NULL && n < MAX_STEPS; node = node->parent) {
        steps[n++] = node;
    }
    out[0] = '\0';
    if (node->parent != NULL) {
        put_text(out, size, "...");
    }
    while (n-- > 0) {
        char step[72];
        if (steps[n]->key != NULL) {
            (void)snprintf(step, sizeof step, "%s%.64s", out[0] == '\0' ? "" : ".", steps[n]->key);
        } else {
            (void)snprintf(step, sizeof step, "[%zu]", index_of(steps[n]));
        }
        put_text(out, size, step);
    }
}

gn_status gn_ask_refuse(gn_ask *ask, const gn_json *node, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    put_path(ask->param, sizeof ask->param, node);
    return gn_base_fail(GN_E_ARG, "%s%s%s", ask->param, ask->param[0] == '\0' ? "" : ": ", text);
}

gn_status gn_ask_unexpected(gn_ask *ask, const gn_json *node, const char *expected)
{
    switch (node->type) {
    case GN_JSON_NULL: return gn_ask_refuse(ask, node, "found null, expected %s", expected);
    case GN_JSON_FALSE: return gn_ask_refuse(ask, node, "found false, expected %s", expected);
    case GN_JSON_TRUE: return gn_ask_refuse(ask, node, "found true, expected %s", expected);
    case GN_JSON_NUMBER:
        return gn_ask_refuse(ask, node, "found %.40s, expected %s", node->text, expected);
    case GN_JSON_STRING:
        return node->len <= 40
                   ? gn_ask_refuse(ask, node, "found \"%s\", expected %s", node->text, expected)
                   : gn_ask_refuse(ask, node, "found a string, expected %s", expected);
    case GN_JSON_ARRAY: return gn_ask_refuse(ask, node, "found an array, expected %s", expected);
    case GN_JSON_OBJECT: return gn_ask_refuse(ask, node, "found an object, expected %s", expected);
    }
    return GN_E_ARG;
}

gn_status gn_ask_missing(gn_ask *ask, const gn_json *object, const char *key, const char *expected)
{
    char path[sizeof ask->param];
    put_path(path, sizeof path, object);
    (void)snprintf(ask->param, sizeof ask->param, "%.100s%s%.50s", path, path[0] == '\0' ? "" : ".",
                   key);
    return gn_base_fail(GN_E_ARG, "%s: not there, expected %s", ask->param, expected);
}

const gn_json *gn_ask_get(const gn_json *object, const char *key)
{
    const gn_json *member = gn_base_json_get(object, key);
    return member == NULL || member->type == GN_JSON_NULL ? NULL : member;
}

static const char *type_name(gn_json_type type)
{
    return type == GN_JSON_STRING ? "a string" : type == GN_JSON_ARRAY ? "an array" : "an object";
}

gn_status gn_ask_member(gn_ask *ask, const gn_json *object, const char *key, gn_json_type type,
                        const gn_json **out)
{
    const gn_json *member = gn_ask_get(object, key);
    if (member == NULL) {
        return GN_OK;
    }
    if (member->type != type) {
        return gn_ask_unexpected(ask, member, type_name(type));
    }
    *out = member;
    return GN_OK;
}

gn_status gn_ask_needed(gn_ask *ask, const gn_json *object, const char *key, gn_json_type type,
                        const gn_json **out)
{
    if (gn_ask_get(object, key) == NULL) {
        return gn_ask_missing(ask, object, key, type_name(type));
    }
    return gn_ask_member(ask, object, key, type, out);
}

gn_status gn_ask_bool(gn_ask *ask, const gn_json *object, const char *key, bool *out)
{
    const gn_json *member = gn_ask_get(object, key);
    if (member == NULL) {
        return GN_OK;
    }
    if (member->type != GN_JSON_TRUE && member->type != GN_JSON_FALSE) {
        return gn_ask_unexpected(ask, member, "true or false");
    }
    *out = member->type == GN_JSON_TRUE;
    return GN_OK;
}

/* A number within the bounds; *given says whether there is one. */
static gn_status read_number(gn_ask *ask, const gn_json *object, const char *key, double least,
                             double most, bool whole, bool *given, double *out)
{
    const gn_json *member = gn_ask_get(object, key);
    *given = false;
    if (member == NULL) {
        return GN_OK;
    }
    char expected[80];
    (void)snprintf(expected, sizeof expected, "%s from %.10g to %.10g",
                   whole ? "a whole number" : "a number", least, most);
    if (member->type != GN_JSON_NUMBER) {
        return gn_ask_unexpected(ask, member, expected);
    }
    const double value = strtod(member->text, NULL);
    if (!(value >= least && value <= most) || (whole && value != floor(value))) {
        return gn_ask_unexpected(ask, member, expected);
    }
    *given = true;
    *out = value;
    return GN_OK;
}

gn_status gn_ask_int(gn_ask *ask, const gn_json *object, const char *key, int32_t least,
                     int32_t most, int32_t *out)
{
    bool given;
    double value = 0;
    GN_TRY(read_number(ask, object, key, least, most, true, &given, &value));
    if (given) {
        *out = (int32_t)value;
    }
    return GN_OK;
}

gn_status gn_ask_float(gn_ask *ask, const gn_json *object, const char *key, float least, float most,
                       float *out)
{
    bool given;
    double value = 0;
    GN_TRY(read_number(ask, object, key, (double)least, (double)most, false, &given, &value));
    if (given) {
        *out = (float)value;
    }
    return GN_OK;
}

gn_status gn_ask_seed(gn_ask *ask, const gn_json *object, const char *key, uint64_t *out)
{
    const gn_json *member = gn_ask_get(object, key);
    if (member == NULL) {
        return GN_OK;
    }
    static const char expected[] = "a whole number of 64 bits";
    if (member->type != GN_JSON_NUMBER) {
        return gn_ask_unexpected(ask, member, expected);
    }
    char *end;
    errno = 0;
    const uint64_t value = member->text[0] == '-' ? (uint64_t)strtoll(member->text, &end, 10)
                                                  : strtoull(member->text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return gn_ask_unexpected(ask, member, expected);
    }
    *out = value;
    return GN_OK;
}

static gn_status take_string(gn_ask *ask, const gn_json *string, const char **v, size_t *n)
{
    if (string->type != GN_JSON_STRING) {
        return gn_ask_unexpected(ask, string, "a string");
    }
    if (memchr(string->text, '\0', string->len) != NULL) {
        return gn_ask_refuse(ask, string, "found a NUL character, expected none");
    }
    if (string->len > 0) {
        v[(*n)++] = string->text;
    }
    return GN_OK;
}

gn_status gn_ask_strings(gn_ask *ask, gn_arena *arena, const gn_json *object, const char *key,
                         size_t most, const char *const **out, size_t *n)
{
    const gn_json *member = gn_ask_get(object, key);
    if (member == NULL) {
        return GN_OK;
    }
    const bool many = member->type == GN_JSON_ARRAY;
    if (!many && member->type != GN_JSON_STRING) {
        return gn_ask_unexpected(ask, member, "a string or an array of strings");
    }
    if (many && member->len > most) {
        return gn_ask_refuse(ask, member, "found %zu strings, expected at most %zu", member->len,
                             most);
    }
    const char **v = gn_arena_alloc(arena, (many ? member->len + 1 : 1) * sizeof *v);
    GN_REQUIRE(v != NULL, GN_E_NOMEM, "out of memory");
    size_t count = 0;
    if (!many) {
        GN_TRY(take_string(ask, member, v, &count));
    }
    for (const gn_json *at = many ? member->first : NULL; at != NULL; at = at->next) {
        GN_TRY(take_string(ask, at, v, &count));
    }
    *out = v;
    *n = count;
    return GN_OK;
}

size_t gn_ask_count_unknown(const gn_json *object, const char *const *known, size_t n)
{
    size_t count = 0;
    for (const gn_json *member = object == NULL ? NULL : object->first; member != NULL;
         member = member->next) {
        size_t i = 0;
        while (i < n && strcmp(known[i], member->key) != 0) {
            i++;
        }
        count += i == n;
    }
    return count;
}
