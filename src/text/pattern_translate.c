/* Oniguruma's syntax (Ruby flavour, as the `tokenizers` library compiles it) to PCRE2's.
 *
 * Most of the two agree. What is rewritten:
 *   \s \w \h \b   its sets: White_Space; alphabetic, mark, digit, connector; hexadecimal digit
 *   \p{Han}       the script itself; PCRE2 would take Script_Extensions
 *   \uHHHH        \x{HHHH}
 *   [a&&[^b]]     intersection and nested sets, which PCRE2 10 reads as literal characters
 *   \s+$          looked for at the start of a run only, else a long run costs its square
 * A set becomes text that matches exactly one character: [..] where that is enough, else a group
 * with lookaheads. */
#include "text/pattern.h"

#include "base/alloc.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdio.h>
#include <string.h>

#define SPACE                                                                                      \
    "\\t-\\r "                                                                                     \
    "\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define WORD      "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define HEX       "0-9A-Fa-f"
#define MAX_DEPTH 16

typedef struct reader {
    const char *s;
    size_t len;
    size_t at;
} reader;

static gn_status fail_at(const reader *r, const char *what)
{
    int shown = r->len < 80 ? (int)r->len : 80;
    return gn_base_fail(GN_E_FORMAT, "regular expression \"%.*s\": %s (near byte %zu)", shown, r->s,
                        what, r->at);
}

static bool starts(const reader *r, const char *text)
{
    size_t n = strlen(text);
    return r->len - r->at >= n && memcmp(r->s + r->at, text, n) == 0;
}

static bool compiles(const char *text)
{
    int code;
    PCRE2_SIZE at;
    pcre2_code *c = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                  &code, &at, NULL);
    pcre2_code_free(c);
    return c != NULL;
}

/* Names that Oniguruma spells in another way. */
static const char *const aliases[][2] = {
    {"Letter", "L"},          {"Mark", "M"},          {"Number", "N"},
    {"Punctuation", "P"},     {"Punct", "P"},         {"Symbol", "S"},
    {"Separator", "Z"},       {"Other", "C"},         {"Digit", "Nd"},
    {"Alpha", "Alphabetic"},  {"Upper", "Uppercase"}, {"Lower", "Lowercase"},
    {"Space", "White_Space"},
};

/* \p{..} or \P{..} at the reader, which stands on the backslash. */
static gn_status property(reader *r, gn_buf *out)
{
    bool negated = r->s[r->at + 1] == 'P';
    char name[48];
    size_t n = 0;
    r->at += 2;
    if (r->at >= r->len || r->s[r->at] != '{') {
        return fail_at(r, "expected { after \\p");
    }
    r->at++;
    if (r->at < r->len && r->s[r->at] == '^') {
        negated = !negated;
        r->at++;
    }
    while (r->at < r->len && r->s[r->at] != '}' && n + 1 < sizeof name) {
        name[n++] = r->s[r->at++];
    }
    if (r->at >= r->len || r->s[r->at] != '}') {
        return fail_at(r, "expected a property name and }");
    }
    r->at++;
    name[n] = '\0';
    const char *use = name;
    for (size_t i = 0; i < GN_COUNTOF(aliases); i++) {
        use = strcmp(name, aliases[i][0]) == 0 ? aliases[i][1] : use;
    }
    char script[64];
    snprintf(script, sizeof script, "\\p{sc:%s}", use);
    const char *kind = strlen(use) > 2 && compiles(script) ? "sc:" : "";
    return gn_buf_printf(out, "\\%c{%s%s}", negated ? 'P' : 'p', kind, use);
}

/* \uHHHH */
static gn_status unicode_escape(reader *r, gn_buf *out)
{
    if (r->len - r->at < 6) {
        return fail_at(r, "expected four hexadecimal digits after \\u");
    }
    GN_TRY(gn_buf_puts(out, "\\x{"));
    GN_TRY(gn_buf_append(out, r->s + r->at + 2, 4));
    GN_TRY(gn_buf_putc(out, '}'));
    r->at += 6;
    return GN_OK;
}

/* Pass on what can't be split: an escape with its letter, or one byte. */
static gn_status pass(reader *r, gn_buf *out)
{
    size_t n = r->s[r->at] == '\\' ? 2 : 1;
    if (r->len - r->at < n) {
        return fail_at(r, "expected a character after \\");
    }
    GN_TRY(gn_buf_append(out, r->s + r->at, n));
    r->at += n;
    return GN_OK;
}

static gn_status set(reader *r, int depth, gn_buf *out);

typedef struct set_parts {
    gn_buf body;   /* for inside [..] */
    gn_buf others; /* |-separated texts that each match one character */
} set_parts;

static gn_status add_other(set_parts *parts, const char *text)
{
    if (parts->others.len != 0) {
        GN_TRY(gn_buf_putc(&parts->others, '|'));
    }
    return gn_buf_puts(&parts->others, text);
}

static gn_status set_escape(reader *r, set_parts *parts)
{
    switch (r->len - r->at >= 2 ? r->s[r->at + 1] : '\0') {
    case 's': r->at += 2; return gn_buf_puts(&parts->body, SPACE);
    case 'w': r->at += 2; return gn_buf_puts(&parts->body, WORD);
    case 'h': r->at += 2; return gn_buf_puts(&parts->body, HEX);
    case 'S': r->at += 2; return add_other(parts, "[^" SPACE "]");
    case 'W': r->at += 2; return add_other(parts, "[^" WORD "]");
    case 'H': r->at += 2; return add_other(parts, "[^" HEX "]");
    case 'p':
    case 'P': return property(r, &parts->body);
    case 'u': return unicode_escape(r, &parts->body);
    default: return pass(r, &parts->body);
    }
}

/* One operand of a set, up to && or the closing bracket. */
static gn_status set_operand(reader *r, int depth, set_parts *parts)
{
    bool first = true;
    while (r->at < r->len && (first || r->s[r->at] != ']') && !starts(r, "&&")) {
        char c = r->s[r->at];
        if (c == '\\') {
            GN_TRY(set_escape(r, parts));
        } else if (starts(r, "[:")) {
            do {
                GN_TRY(pass(r, &parts->body));
            } while (r->at < r->len && !starts(r, ":]"));
            GN_REQUIRE(r->at < r->len, GN_E_FORMAT, "regular expression: [: without :]");
            GN_TRY(gn_buf_puts(&parts->body, ":]"));
            r->at += 2;
        } else if (c == '[') {
            if (parts->others.len != 0) {
                GN_TRY(gn_buf_putc(&parts->others, '|'));
            }
            GN_TRY(set(r, depth + 1, &parts->others));
        } else {
            GN_TRY(pass(r, &parts->body));
        }
        first = false;
    }
    return r->at < r->len ? GN_OK : fail_at(r, "expected ]");
}

static gn_status put_operand(const set_parts *parts, gn_buf *out)
{
    bool body = parts->body.len != 0;
    bool others = parts->others.len != 0;
    if (body && !others) {
        GN_TRY(gn_buf_putc(out, '['));
        GN_TRY(gn_buf_append(out, parts->body.data, parts->body.len));
        return gn_buf_putc(out, ']');
    }
    GN_TRY(gn_buf_puts(out, "(?:"));
    if (body) {
        GN_TRY(gn_buf_putc(out, '['));
        GN_TRY(gn_buf_append(out, parts->body.data, parts->body.len));
        GN_TRY(gn_buf_puts(out, "]|"));
    }
    GN_TRY(gn_buf_puts(out, others ? parts->others.data : "(?!)"));
    return gn_buf_putc(out, ')');
}

static void parts_fini(set_parts *parts)
{
    gn_buf_fini(&parts->body);
    gn_buf_fini(&parts->others);
}

/* The operands after the first: each becomes a lookahead in front of it. */
static gn_status set_rest(reader *r, int depth, gn_buf *ahead)
{
    while (starts(r, "&&")) {
        r->at += 2;
        set_parts parts = {0};
        gn_status status = set_operand(r, depth, &parts);
        if (status == GN_OK) {
            status = gn_buf_puts(ahead, "(?=");
        }
        if (status == GN_OK) {
            status = put_operand(&parts, ahead);
        }
        if (status == GN_OK) {
            status = gn_buf_putc(ahead, ')');
        }
        parts_fini(&parts);
        GN_TRY(status);
    }
    return GN_OK;
}

static gn_status put_set(bool negated, const set_parts *parts, const gn_buf *ahead, gn_buf *out)
{
    if (ahead->len == 0 && parts->others.len == 0) {
        GN_TRY(gn_buf_puts(out, negated ? "[^" : "["));
        GN_TRY(gn_buf_append(out, parts->body.data, parts->body.len));
        return gn_buf_putc(out, ']');
    }
    GN_TRY(gn_buf_puts(out, negated ? "(?:(?!" : "(?:"));
    if (ahead->len != 0) {
        GN_TRY(gn_buf_append(out, ahead->data, ahead->len));
    }
    GN_TRY(put_operand(parts, out));
    return gn_buf_puts(out, negated ? ")(?s:.))" : ")");
}

/* A set; the reader stands on its opening bracket. */
static gn_status set(reader *r, int depth, gn_buf *out)
{
    GN_REQUIRE(depth < MAX_DEPTH, GN_E_LIMIT, "regular expression: sets nested over %d deep",
               MAX_DEPTH);
    r->at++;
    bool negated = r->at < r->len && r->s[r->at] == '^';
    r->at += negated;
    set_parts parts = {0};
    gn_buf ahead = {0};
    gn_status status = set_operand(r, depth, &parts);
    if (status == GN_OK) {
        status = set_rest(r, depth, &ahead);
    }
    if (status == GN_OK) {
        r->at++;
        status = put_set(negated, &parts, &ahead, out);
    }
    parts_fini(&parts);
    gn_buf_fini(&ahead);
    return status;
}

static gn_status top_escape(reader *r, gn_buf *out)
{
    const char *text = NULL;
    switch (r->len - r->at >= 2 ? r->s[r->at + 1] : '\0') {
    case 's': text = "[" SPACE "]"; break;
    case 'S': text = "[^" SPACE "]"; break;
    case 'w': text = "[" WORD "]"; break;
    case 'W': text = "[^" WORD "]"; break;
    case 'h': text = "[" HEX "]"; break;
    case 'H': text = "[^" HEX "]"; break;
    case 'b': text = "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))"; break;
    case 'B': text = "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))"; break;
    case 'p':
    case 'P': return property(r, out);
    case 'u': return unicode_escape(r, out);
    default: return pass(r, out);
    }
    r->at += 2;
    return gn_buf_puts(out, text);
}

gn_status gn_pattern_translate(const char *source, size_t len, gn_buf *out)
{
    reader r = {source, len, 0};
    if (len == 4 && memcmp(source, "\\s+$", 4) == 0) {
        return gn_buf_puts(out, "(?<![" SPACE "])[" SPACE "]++$");
    }
    while (r.at < r.len) {
        if (r.s[r.at] == '\\') {
            GN_TRY(top_escape(&r, out));
        } else if (r.s[r.at] == '[') {
            GN_TRY(set(&r, 0, out));
        } else {
            GN_TRY(pass(&r, out));
        }
    }
    return GN_OK;
}
