/* A reader without recursion: open containers are the chain of parents. */
#include "base/json.h"

#include "base/alloc.h"
#include "base/map.h"
#include "base/utf8.h"

#include <string.h>

typedef struct reader {
    gn_arena *arena;
    const char *s;
    size_t len;
    size_t at;
    uint32_t n;
    uint32_t depth;
} reader;

static gn_status bad(const reader *r, const char *expected)
{
    if (r->at >= r->len) {
        return gn_base_fail(GN_E_FORMAT, "JSON: the text ends at byte %zu, expected %s", r->at,
                            expected);
    }
    return gn_base_fail(GN_E_FORMAT, "JSON: byte %zu is 0x%02x, expected %s", r->at,
                        (unsigned char)r->s[r->at], expected);
}

static void skip_blanks(reader *r)
{
    while (r->at < r->len && memchr(" \t\r\n", r->s[r->at], 4) != NULL) {
        r->at++;
    }
}

static bool take(reader *r, char c)
{
    if (r->at < r->len && r->s[r->at] == c) {
        r->at++;
        return true;
    }
    return false;
}

static gn_status word(reader *r, const char *expected)
{
    size_t n = strlen(expected);
    if (r->len - r->at < n || memcmp(r->s + r->at, expected, n) != 0) {
        return bad(r, "a JSON value");
    }
    r->at += n;
    return GN_OK;
}

static size_t digits(reader *r)
{
    size_t start = r->at;
    while (r->at < r->len && r->s[r->at] >= '0' && r->s[r->at] <= '9') {
        r->at++;
    }
    return r->at - start;
}

static gn_status number(reader *r, gn_json *node)
{
    size_t start = r->at;
    (void)take(r, '-');
    if (!take(r, '0') && digits(r) == 0) {
        return bad(r, "a digit");
    }
    if (take(r, '.') && digits(r) == 0) {
        return bad(r, "a digit after the point");
    }
    if (take(r, 'e') || take(r, 'E')) {
        if (!take(r, '+')) {
            (void)take(r, '-');
        }
        if (digits(r) == 0) {
            return bad(r, "a digit of the exponent");
        }
    }
    node->len = r->at - start;
    char *copy = gn_arena_calloc(r->arena, node->len + 1, 1);
    if (copy == NULL) {
        return gn_alloc_failed();
    }
    memcpy(copy, r->s + start, node->len);
    node->text = copy;
    return GN_OK;
}

static gn_status hex4(reader *r, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        char c = r->at < r->len ? r->s[r->at] : 'x';
        uint32_t digit;
        if (c >= '0' && c <= '9') {
            digit = (uint32_t)(c - '0');
        } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
            digit = (uint32_t)((c | 0x20) - 'a') + 10;
        } else {
            return bad(r, "four hexadecimal digits");
        }
        *out = *out << 4 | digit;
    }
    return GN_OK;
}

/* What follows a backslash: at most four bytes at `to`. */
static gn_status escape(reader *r, char *to, size_t *n)
{
    static const char from[] = "\"\\/bfnrt";
    static const char into[] = "\"\\/\b\f\n\r\t";
    const char *found = r->at < r->len && r->s[r->at] != '\0' ? strchr(from, r->s[r->at]) : NULL;
    if (found != NULL) {
        r->at++;
        *to = into[found - from];
        *n = 1;
        return GN_OK;
    }
    if (!take(r, 'u')) {
        return bad(r, "an escape");
    }
    uint32_t c = 0;
    GN_TRY(hex4(r, &c));
    if (c >= 0xd800 && c < 0xdc00) {
        uint32_t low = 0;
        if (!take(r, '\\') || !take(r, 'u')) {
            return bad(r, "the second half of a surrogate pair");
        }
        GN_TRY(hex4(r, &low));
        GN_REQUIRE(low >= 0xdc00 && low < 0xe000, GN_E_FORMAT,
                   "JSON: byte %zu: found \\u%04x, expected the second half of a surrogate pair",
                   r->at - 6, (unsigned)low);
        c = 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
    }
    GN_REQUIRE(c < 0xdc00 || c >= 0xe000, GN_E_FORMAT,
               "JSON: byte %zu: a lone second half of a surrogate pair", r->at - 6);
    *n = gn_utf8_encode(c, to);
    return GN_OK;
}

/* A string from its quote on: decoded, with a NUL behind. */
static gn_status string(reader *r, const char **text, size_t *len)
{
    if (!take(r, '"')) {
        return bad(r, "a string");
    }
    size_t end = r->at;
    while (end < r->len && r->s[end] != '"') {
        end += r->s[end] == '\\' ? 2 : 1;
    }
    if (end >= r->len) {
        r->at = r->len;
        return bad(r, "the end of a string");
    }
    char *to = gn_arena_calloc(r->arena, end - r->at + 1, 1);
    if (to == NULL) {
        return gn_alloc_failed();
    }
    *text = to;
    *len = 0;
    size_t start = r->at;
    while (r->at < end) {
        if (take(r, '\\')) {
            size_t n = 0;
            GN_TRY(escape(r, to + *len, &n));
            *len += n;
        } else if ((unsigned char)r->s[r->at] < 0x20) {
            return bad(r, "a character that may stand in a string");
        } else {
            to[(*len)++] = r->s[r->at++];
        }
    }
    GN_REQUIRE(r->at == end, GN_E_FORMAT, "JSON: an escape runs past the string at byte %zu", end);
    GN_REQUIRE(gn_utf8_valid(r->s + start, end - start), GN_E_FORMAT,
               "JSON: the string at byte %zu is no UTF-8", start);
    r->at = end + 1;
    return GN_OK;
}

static gn_status scalar(reader *r, gn_json *node)
{
    char c = r->at < r->len ? r->s[r->at] : '\0';
    switch (c) {
    case 'n': node->type = GN_JSON_NULL; return word(r, "null");
    case 't': node->type = GN_JSON_TRUE; return word(r, "true");
    case 'f': node->type = GN_JSON_FALSE; return word(r, "false");
    case '"': node->type = GN_JSON_STRING; return string(r, &node->text, &node->len);
    default: break;
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        node->type = GN_JSON_NUMBER;
        return number(r, node);
    }
    return bad(r, "a JSON value");
}

/* No key twice: a map for each object would cost more than it saves, but for objects of many members. */
static gn_status check_keys(const gn_json *object)
{
    gn_map seen = {0};
    gn_status status = GN_OK;
    for (const gn_json *m = object->first; m != NULL && status == GN_OK; m = m->next) {
        bool added = true;
        status = gn_map_add(&seen, m->key, m->key_len, 0, &added, NULL);
        if (status == GN_OK && !added) {
            status = gn_base_fail(GN_E_FORMAT, "JSON: the key \"%.100s\" comes twice", m->key);
        }
    }
    gn_map_fini(&seen);
    return status;
}

typedef struct cursor {
    gn_json *open; /* innermost open container */
    gn_json *last; /* its last child so far */
} cursor;

static gn_status add_node(reader *r, const cursor *c, gn_json **out)
{
    gn_json *node = gn_arena_calloc(r->arena, 1, sizeof *node);
    if (node == NULL) {
        return gn_alloc_failed();
    }
    GN_REQUIRE(r->n != UINT32_MAX, GN_E_LIMIT, "JSON: more than 2^32 values");
    node->id = r->n++;
    node->parent = c->open;
    if (c->open != NULL && c->open->type == GN_JSON_OBJECT) {
        GN_TRY(string(r, &node->key, &node->key_len));
        skip_blanks(r);
        if (!take(r, ':')) {
            return bad(r, "\":\"");
        }
        skip_blanks(r);
    }
    node->raw = r->s + r->at;
    if (c->open != NULL) {
        c->open->len++;
        if (c->last != NULL) {
            c->last->next = node;
        } else {
            c->open->first = node;
        }
    }
    *out = node;
    return GN_OK;
}

/* Close containers that end here and step over the comma; *more says whether a value follows. */
static gn_status after_value(reader *r, cursor *c, gn_json *done, bool *more)
{
    for (;;) {
        done->raw_len = (size_t)(r->s + r->at - done->raw);
        skip_blanks(r);
        if (c->open == NULL) {
            *more = false;
            return r->at == r->len ? GN_OK : bad(r, "the end of the text");
        }
        c->last = done;
        if (take(r, ',')) {
            skip_blanks(r);
            *more = true;
            return GN_OK;
        }
        bool object = c->open->type == GN_JSON_OBJECT;
        if (!take(r, object ? '}' : ']')) {
            return bad(r, object ? "\",\" or \"}\"" : "\",\" or \"]\"");
        }
        if (object) {
            GN_TRY(check_keys(c->open));
        }
        done = c->open;
        c->open = (gn_json *)(uintptr_t)done->parent;
        r->depth--;
    }
}

gn_status gn_base_json_parse(gn_arena *arena, const char *s, size_t len, const gn_json **out,
                             uint32_t *n_nodes)
{
    reader r = {.arena = arena, .s = s, .len = len};
    cursor c = {0};
    const gn_json *root = NULL;
    bool more = true;
    skip_blanks(&r);
    while (more) {
        gn_json *node = NULL;
        GN_TRY(add_node(&r, &c, &node));
        root = root == NULL ? node : root;
        if (take(&r, '{') || take(&r, '[')) {
            node->type = r.s[r.at - 1] == '{' ? GN_JSON_OBJECT : GN_JSON_ARRAY;
            skip_blanks(&r);
            bool empty = take(&r, node->type == GN_JSON_OBJECT ? '}' : ']');
            if (!empty) {
                GN_REQUIRE(++r.depth <= GN_JSON_MAX_DEPTH, GN_E_LIMIT,
                           "JSON: nested more than %u deep", GN_JSON_MAX_DEPTH);
                c = (cursor){node, NULL};
                continue;
            }
        } else {
            GN_TRY(scalar(&r, node));
        }
        GN_TRY(after_value(&r, &c, node, &more));
    }
    *out = root;
    if (n_nodes != NULL) {
        *n_nodes = r.n;
    }
    return GN_OK;
}

const gn_json *gn_base_json_get(const gn_json *object, const char *key)
{
    if (object == NULL || object->type != GN_JSON_OBJECT) {
        return NULL;
    }
    size_t len = strlen(key);
    for (const gn_json *m = object->first; m != NULL; m = m->next) {
        if (m->key_len == len && memcmp(m->key, key, len) == 0) {
            return m;
        }
    }
    return NULL;
}

bool gn_base_json_is(const gn_json *string, const char *s)
{
    return string != NULL && string->type == GN_JSON_STRING && string->len == strlen(s) &&
           memcmp(string->text, s, string->len) == 0;
}
