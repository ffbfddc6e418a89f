/* GBNF by recursive descent, bounded in depth. A rule's name becomes a node when first met; whether it was ever
 * defined is found by compiling. */
#include "grammar/gbnf.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/utf8.h"
#include "grammar/ir.h"

#include <string.h>

#define MAX_DEPTH  100
#define MAX_REPEAT 1000000u

typedef struct parser {
    gn_ir_builder *b;
    const char *s;
    size_t len, at;
    int depth;
    gn_map rules; /* name → node */
} parser;

typedef struct list {
    gn_ir *v;
    size_t n, cap;
} list;

static gn_status fail_at(const parser *p, const char *what)
{
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < p->at && i < p->len; i++) {
        column = p->s[i] == '\n' ? 1 : column + 1;
        line += p->s[i] == '\n';
    }
    return gn_base_fail(GN_E_FORMAT, "gbnf: line %zu, column %zu: %s", line, column, what);
}

static gn_status push(list *l, gn_ir node)
{
    gn_ir *more = gn_grow_array(l->v, &l->cap, l->n + 1, sizeof *more);
    if (more == NULL) {
        return gn_alloc_failed();
    }
    l->v = more;
    l->v[l->n++] = node;
    return GN_OK;
}

static char peek(const parser *p)
{
    return p->at < p->len ? p->s[p->at] : '\0';
}

static bool take(parser *p, char c)
{
    if (p->at < p->len && p->s[p->at] == c) {
        p->at++;
        return true;
    }
    return false;
}

static void skip_space(parser *p, bool newlines)
{
    while (p->at < p->len) {
        char c = p->s[p->at];
        if (c == '#') {
            while (p->at < p->len && p->s[p->at] != '\n' && p->s[p->at] != '\r') {
                p->at++;
            }
        } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
            p->at++;
        } else {
            return;
        }
    }
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static gn_status parse_name(parser *p, gn_ir *out)
{
    size_t start = p->at;
    while (name_char(peek(p))) {
        p->at++;
    }
    size_t len = p->at - start;
    if (len == 0) {
        return fail_at(p, "found no name");
    }
    const uint32_t *have = gn_map_find(&p->rules, p->s + start, len);
    if (have != NULL) {
        *out = *have;
        return GN_OK;
    }
    *out = gn_grammar_ir_rule(p->b, p->s + start, len);
    GN_TRY(gn_grammar_ir_status(p->b));
    return gn_map_add(&p->rules, p->s + start, len, *out, NULL, NULL);
}

/* A code point of a literal or class, escapes resolved. */
static gn_status parse_char(parser *p, uint32_t *out)
{
    if (!take(p, '\\')) {
        size_t n = p->at < p->len ? gn_utf8_decode(p->s + p->at, p->len - p->at, out) : 0;
        p->at += n;
        return n != 0 ? GN_OK : fail_at(p, "found the end of the text or invalid UTF-8");
    }
    char c = peek(p);
    p->at += p->at < p->len;
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    static const char letters[] = "nrt\\\"[]-^'/";
    static const char values[] = "\n\r\t\\\"[]-^'/";
    if (digits == 0) {
        const char *hit = c != '\0' ? strchr(letters, c) : NULL;
        if (hit == NULL) {
            return fail_at(p, "found an unknown escape");
        }
        *out = (uint8_t)values[hit - letters];
        return GN_OK;
    }
    uint32_t v = 0;
    for (int i = 0; i < digits; i++, p->at++) {
        char h = peek(p);
        int d = h >= '0' && h <= '9'   ? h - '0'
                : h >= 'a' && h <= 'f' ? h - 'a' + 10
                : h >= 'A' && h <= 'F' ? h - 'A' + 10
                                       : -1;
        if (d < 0 || v > 0x10ffff) {
            return fail_at(p, "found no hexadecimal code point");
        }
        v = v * 16 + (uint32_t)d;
    }
    *out = v;
    return v <= 0x10ffff ? GN_OK : fail_at(p, "found no hexadecimal code point");
}

static gn_status parse_literal(parser *p, gn_ir *out)
{
    gn_buf text = {0};
    gn_status status = GN_OK;
    while (status == GN_OK && !take(p, '"')) {
        uint32_t c = 0;
        char bytes[4];
        status = parse_char(p, &c);
        if (status == GN_OK) {
            size_t n = gn_utf8_encode(c, bytes);
            status = n != 0 ? gn_buf_append(&text, bytes, n) : fail_at(p, "found a surrogate");
        }
    }
    if (status == GN_OK) {
        *out = gn_grammar_ir_literal(p->b, text.data != NULL ? text.data : "", text.len);
        status = gn_grammar_ir_status(p->b);
    }
    gn_buf_fini(&text);
    return status;
}

static gn_status parse_class(parser *p, gn_ir *out)
{
    gn_re_range *v = NULL;
    size_t n = 0;
    size_t cap = 0;
    bool negate = take(p, '^');
    gn_status status = GN_OK;
    while (status == GN_OK && !take(p, ']')) {
        uint32_t lo = 0;
        status = parse_char(p, &lo);
        uint32_t hi = lo;
        if (status == GN_OK && p->at + 1 < p->len && peek(p) == '-' && p->s[p->at + 1] != ']') {
            p->at++;
            status = parse_char(p, &hi);
        }
        if (status == GN_OK) {
            gn_re_range *more = gn_grow_array(v, &cap, n + 1, sizeof *more);
            status = more != NULL ? GN_OK : gn_alloc_failed();
            v = more != NULL ? more : v;
        }
        if (status == GN_OK) {
            v[n++] = (gn_re_range){lo, hi};
        }
    }
    if (status == GN_OK) {
        gn_re_pool *pool = gn_grammar_ir_pool(p->b);
        *out = gn_grammar_ir_term(p->b, gn_grammar_re_chars(pool, v, n, negate));
        status = gn_grammar_ir_status(p->b);
    }
    gn_free(v);
    return status;
}

static gn_status parse_number(parser *p, uint32_t *out)
{
    uint64_t v = 0;
    size_t start = p->at;
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++) {
        v = v > MAX_REPEAT ? v : v * 10 + (uint64_t)(peek(p) - '0');
    }
    if (p->at == start) {
        return fail_at(p, "found no number");
    }
    GN_REQUIRE(v <= MAX_REPEAT, GN_E_LIMIT, "gbnf: repeats over %u", MAX_REPEAT);
    *out = (uint32_t)v;
    return GN_OK;
}

static gn_status parse_repeats(parser *p, bool nested, gn_ir *node)
{
    for (;;) {
        uint32_t min = 0;
        uint32_t max = GN_IR_MANY;
        if (take(p, '+')) {
            min = 1;
        } else if (take(p, '?')) {
            max = 1;
        } else if (take(p, '{')) {
            skip_space(p, nested);
            GN_TRY(parse_number(p, &min));
            skip_space(p, nested);
            max = min;
            if (take(p, ',')) {
                skip_space(p, nested);
                max = GN_IR_MANY;
                if (peek(p) != '}') {
                    GN_TRY(parse_number(p, &max));
                }
                skip_space(p, nested);
            }
            if (!take(p, '}') || max < min) {
                return fail_at(p, "found a malformed repeat");
            }
        } else if (!take(p, '*')) {
            return GN_OK;
        }
        *node = gn_grammar_ir_repeat(p->b, *node, min, max);
        skip_space(p, nested);
    }
}

static gn_status parse_alt(parser *p, bool nested, gn_ir *out);

static gn_status parse_item(parser *p, bool nested, gn_ir *out, bool *found)
{
    *found = true;
    if (take(p, '"')) {
        return parse_literal(p, out);
    }
    if (take(p, '[')) {
        return parse_class(p, out);
    }
    if (take(p, '.')) {
        gn_re_pool *pool = gn_grammar_ir_pool(p->b);
        *out = gn_grammar_ir_term(p->b, gn_grammar_re_chars(pool, NULL, 0, true));
        return gn_grammar_ir_status(p->b);
    }
    if (take(p, '(')) {
        GN_REQUIRE(++p->depth <= MAX_DEPTH, GN_E_LIMIT, "gbnf: groups nested over %d deep",
                   MAX_DEPTH);
        skip_space(p, true);
        GN_TRY(parse_alt(p, true, out));
        p->depth--;
        return take(p, ')') ? GN_OK : fail_at(p, "found no ) of the group");
    }
    (void)nested;
    *found = name_char(peek(p));
    return *found ? parse_name(p, out) : GN_OK;
}

static gn_status parse_seq(parser *p, bool nested, gn_ir *out)
{
    list items = {0};
    gn_status status = GN_OK;
    for (bool found = true; status == GN_OK;) {
        gn_ir node = GN_IR_NONE;
        status = parse_item(p, nested, &node, &found);
        if (!found || status != GN_OK) {
            break;
        }
        skip_space(p, nested);
        status = parse_repeats(p, nested, &node);
        if (status == GN_OK) {
            status = push(&items, node);
        }
    }
    if (status == GN_OK) {
        *out = gn_grammar_ir_seq(p->b, items.v, items.n);
        status = gn_grammar_ir_status(p->b);
    }
    gn_free(items.v);
    return status;
}

static gn_status parse_alt(parser *p, bool nested, gn_ir *out)
{
    list items = {0};
    gn_status status = GN_OK;
    do {
        skip_space(p, true);
        gn_ir one = GN_IR_NONE;
        status = parse_seq(p, nested, &one);
        if (status == GN_OK) {
            status = push(&items, one);
        }
    } while (status == GN_OK && take(p, '|'));
    if (status == GN_OK) {
        *out = gn_grammar_ir_alt(p->b, items.v, items.n);
        status = gn_grammar_ir_status(p->b);
    }
    gn_free(items.v);
    return status;
}

static gn_status parse_rules(parser *p)
{
    for (skip_space(p, true); p->at < p->len; skip_space(p, true)) {
        gn_ir rule = GN_IR_NONE;
        GN_TRY(parse_name(p, &rule));
        skip_space(p, false);
        if (!take(p, ':') || !take(p, ':') || !take(p, '=')) {
            return fail_at(p, "expected ::=");
        }
        gn_ir body = GN_IR_NONE;
        GN_TRY(parse_alt(p, false, &body));
        gn_grammar_ir_define(p->b, rule, body);
        if (p->at < p->len && peek(p) != '\n' && peek(p) != '\r') {
            return fail_at(p, "expected the end of the rule");
        }
    }
    return GN_OK;
}

gn_status gn_grammar_gbnf(const char *text, size_t len, gn_grammar **out)
{
    parser p = {.s = text, .len = len};
    GN_TRY(gn_grammar_ir_create(NULL, &p.b));
    gn_status status = parse_rules(&p);
    const uint32_t *root = gn_map_find(&p.rules, "root", 4);
    gn_ir node = root != NULL ? *root : GN_IR_NONE;
    if (status == GN_OK && root == NULL) {
        status = gn_base_fail(GN_E_FORMAT, "gbnf: found no rule \"root\"");
    }
    gn_map_fini(&p.rules);
    if (status != GN_OK) {
        gn_grammar_ir_destroy(p.b);
        return status;
    }
    return gn_grammar_compile(p.b, node, out);
}
