/* A recursive descent over RE2's syntax, bounded in depth. ^ and $ are written as bytes that no text has and resolved
 * at the end (re_quotient.c); lookahead at the start of a top-level alternative is intersection. */
#include "grammar/regex.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "grammar/re_impl.h"

#include <string.h>
#include <utf8proc.h>

#define MAX_DEPTH  100
#define MAX_REPEAT 1000000u
#define MAX_LOOKS  16u

typedef struct class_list {
    gn_re_range *v;
    size_t n, cap;
} class_list;

typedef struct parser {
    gn_re_pool *pool;
    const char *s;
    size_t len, at;
    unsigned flags;
    int depth;
} parser;

static gn_status parse_alt(parser *p, bool top, gn_re *out);

static bool more(const parser *p)
{
    return p->at < p->len;
}

static bool take(parser *p, const char *s)
{
    size_t n = strlen(s);
    if (p->len - p->at >= n && memcmp(p->s + p->at, s, n) == 0) {
        p->at += n;
        return true;
    }
    return false;
}

/* ---- Classes ----------------------------------------------------------------------------------------- */

static gn_status add(class_list *list, uint32_t lo, uint32_t hi)
{
    gn_re_range *bigger = gn_grow_array(list->v, &list->cap, list->n + 1, sizeof *bigger);
    if (bigger == NULL) {
        return gn_alloc_failed();
    }
    list->v = bigger;
    list->v[list->n++] = (gn_re_range){lo, hi};
    return GN_OK;
}

/* Ranges sorted and without gaps between: what lies outside of them. */
static gn_status add_outside(class_list *list, const gn_re_range *v, size_t n)
{
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i].lo > next) {
            GN_TRY(add(list, next, v[i].lo - 1));
        }
        next = v[i].hi + 1;
    }
    return next <= 0x10ffff ? add(list, next, 0x10ffff) : GN_OK;
}

static gn_status add_ranges(class_list *list, const gn_re_range *v, size_t n, bool negate)
{
    if (negate) {
        return add_outside(list, v, n);
    }
    for (size_t i = 0; i < n; i++) {
        GN_TRY(add(list, v[i].lo, v[i].hi));
    }
    return GN_OK;
}

static const gn_re_range DIGIT[] = {{'0', '9'}};
static const gn_re_range WORD[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const gn_re_range SPACE_RE2[] = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
static const gn_re_range SPACE_ECMA[] = {
    {'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
    {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};

/* \d \w \s and their complements, \p and \P, behind the backslash; *is_class false: none of these. */
static gn_status class_escape(parser *p, class_list *list, bool *is_class)
{
    char c = p->s[p->at];
    *is_class = true;
    switch (c) {
    case 'd':
    case 'D': p->at++; return add_ranges(list, DIGIT, GN_COUNTOF(DIGIT), c == 'D');
    case 'w':
    case 'W': p->at++; return add_ranges(list, WORD, GN_COUNTOF(WORD), c == 'W');
    case 's':
    case 'S':
        p->at++;
        return (p->flags & GN_REGEX_ECMA) != 0
                   ? add_ranges(list, SPACE_ECMA, GN_COUNTOF(SPACE_ECMA), c == 'S')
                   : add_ranges(list, SPACE_RE2, GN_COUNTOF(SPACE_RE2), c == 'S');
    case 'p':
    case 'P': break;
    default: *is_class = false; return GN_OK;
    }
    bool negate = c == 'P';
    size_t where = p->at++;
    const char *name = p->s + p->at;
    size_t len = more(p) ? 1 : 0;
    if (take(p, "{")) {
        name = p->s + p->at;
        const char *end = memchr(name, '}', p->len - p->at);
        GN_REQUIRE(end != NULL, GN_E_FORMAT, "regex: byte %zu: found no } of \\p{", where);
        len = (size_t)(end - name);
        p->at += len + 1;
    } else {
        p->at += len;
    }
    if (len > 1 && name[0] == '^') {
        negate = !negate;
        name++;
        len--;
    }
    static const char *const prefixes[] = {
        "Script=", "sc=", "Script_Extensions=", "scx=", "General_Category=", "gc="};
    for (size_t i = 0; i < GN_COUNTOF(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        if (len > n && memcmp(name, prefixes[i], n) == 0) {
            name += n;
            len -= n;
            break;
        }
    }
    if ((len == 6 && memcmp(name, "Letter", 6) == 0) ||
        (len == 6 && memcmp(name, "Number", 6) == 0)) {
        len = 1; /* ECMA's long names of L and N */
    }
    gn_re_range *v = NULL;
    size_t n = 0;
    GN_TRY(gn_grammar_unicode_class(name, len, &v, &n));
    gn_status status = add_ranges(list, v, n, negate);
    gn_free(v);
    return status;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static gn_status hex(parser *p, size_t digits, uint32_t *out)
{
    size_t where = p->at;
    bool braces = take(p, "{");
    uint32_t c = 0;
    size_t n = 0;
    while (more(p) && hex_digit(p->s[p->at]) >= 0 && (braces ? n < 8 : n < digits)) {
        c = c * 16 + (uint32_t)hex_digit(p->s[p->at++]);
        n++;
    }
    bool closed = !braces || take(p, "}");
    GN_REQUIRE(n > 0 && closed && (braces || n == digits) && c <= 0x10ffff, GN_E_FORMAT,
               "regex: byte %zu: found no hexadecimal code point", where);
    *out = c;
    return GN_OK;
}

static gn_status unicode_escape(parser *p, uint32_t *out)
{
    GN_TRY(hex(p, 4, out));
    if (*out >= 0xd800 && *out < 0xdc00 && take(p, "\\u")) {
        uint32_t low = 0;
        GN_TRY(hex(p, 4, &low));
        GN_REQUIRE(low >= 0xdc00 && low < 0xe000, GN_E_FORMAT,
                   "regex: byte %zu: a surrogate stands alone", p->at);
        *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    }
    return GN_OK;
}

/* One code point behind a backslash. */
static gn_status char_escape(parser *p, bool in_class, uint32_t *out)
{
    size_t where = p->at;
    uint32_t c = 0;
    p->at += gn_utf8_decode(p->s + p->at, p->len - p->at, &c);
    bool ecma = (p->flags & GN_REGEX_ECMA) != 0;
    switch (c) {
    case 'a': *out = 7; return GN_OK;
    case 'b':
        GN_REQUIRE(in_class, GN_E_UNSUPPORTED, "regex: byte %zu: \\b is not supported", where);
        *out = 8;
        return GN_OK;
    case 'f': *out = '\f'; return GN_OK;
    case 'n': *out = '\n'; return GN_OK;
    case 'r': *out = '\r'; return GN_OK;
    case 't': *out = '\t'; return GN_OK;
    case 'v': *out = '\v'; return GN_OK;
    case 'x': return hex(p, 2, out);
    case 'u': return unicode_escape(p, out);
    case '0': *out = 0; return GN_OK;
    case 'c':
        if (ecma && more(p)) {
            *out = (uint32_t)p->s[p->at++] & 31;
            return GN_OK;
        }
        break;
    default: break;
    }
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9');
    GN_REQUIRE(!letter, GN_E_UNSUPPORTED, "regex: byte %zu: \\%c is not supported", where, (char)c);
    *out = c;
    return GN_OK;
}

static gn_status fold_case(class_list *list)
{
    size_t n = list->n;
    for (size_t i = 0; i < n; i++) {
        /* Beyond a block the fold of each single code point would cost more than it is worth. */
        if (list->v[i].hi - list->v[i].lo > 0x400) {
            continue;
        }
        for (uint32_t c = list->v[i].lo; c <= list->v[i].hi; c++) {
            uint32_t lower = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
            uint32_t upper = (uint32_t)utf8proc_toupper((utf8proc_int32_t)c);
            if (lower != c) {
                GN_TRY(add(list, lower, lower));
            }
            if (upper != c) {
                GN_TRY(add(list, upper, upper));
            }
        }
    }
    return GN_OK;
}

static gn_status emit(parser *p, class_list *list, bool negate, gn_re *out)
{
    if (p->flags & GN_REGEX_ICASE) {
        GN_TRY(fold_case(list));
    }
    *out = p->flags & GN_REGEX_JSON ? gn_grammar_re_json_chars(p->pool, list->v, list->n, negate)
                                    : gn_grammar_re_chars(p->pool, list->v, list->n, negate);
    return gn_grammar_re_status(p->pool);
}

static gn_status posix_class(parser *p, class_list *list, bool *found)
{
    static const struct {
        const char *name;
        gn_re_range v[4];
        size_t n;
    } classes[] = {
        {"alnum:]", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
        {"alpha:]", {{'A', 'Z'}, {'a', 'z'}}, 2},
        {"ascii:]", {{0, 127}}, 1},
        {"blank:]", {{'\t', '\t'}, {' ', ' '}}, 2},
        {"cntrl:]", {{0, 31}, {127, 127}}, 2},
        {"digit:]", {{'0', '9'}}, 1},
        {"graph:]", {{33, 126}}, 1},
        {"lower:]", {{'a', 'z'}}, 1},
        {"print:]", {{32, 126}}, 1},
        {"punct:]", {{33, 47}, {58, 64}, {91, 96}, {123, 126}}, 4},
        {"space:]", {{'\t', '\r'}, {' ', ' '}}, 2},
        {"upper:]", {{'A', 'Z'}}, 1},
        {"word:]", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
        {"xdigit:]", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
    };
    *found = false;
    size_t at = p->at;
    if (!take(p, "[:")) {
        return GN_OK;
    }
    bool negate = take(p, "^");
    for (size_t i = 0; i < GN_COUNTOF(classes); i++) {
        if (take(p, classes[i].name)) {
            *found = true;
            return add_ranges(list, classes[i].v, classes[i].n, negate);
        }
    }
    p->at = at;
    return GN_OK;
}

/* One end of a range, or a class of its own. */
static gn_status class_item(parser *p, class_list *list, bool *is_class, uint32_t *c)
{
    *is_class = false;
    if (p->s[p->at] == '\\' && p->at + 1 < p->len) {
        p->at++;
        GN_TRY(class_escape(p, list, is_class));
        return *is_class ? GN_OK : char_escape(p, true, c);
    }
    p->at += gn_utf8_decode(p->s + p->at, p->len - p->at, c);
    return GN_OK;
}

static gn_status class_body(parser *p, class_list *list, size_t open)
{
    bool ecma = (p->flags & GN_REGEX_ECMA) != 0;
    for (bool first = !ecma;; first = false) {
        GN_REQUIRE(more(p), GN_E_FORMAT, "regex: byte %zu: found no ] of this class", open);
        if (!first && take(p, "]")) {
            return GN_OK;
        }
        bool is_class = false;
        if (!ecma) {
            GN_TRY(posix_class(p, list, &is_class));
            if (is_class) {
                continue;
            }
        }
        size_t where = p->at;
        uint32_t lo = 0;
        GN_TRY(class_item(p, list, &is_class, &lo));
        if (is_class) {
            continue;
        }
        uint32_t hi = lo;
        if (p->at + 1 < p->len && p->s[p->at] == '-' && p->s[p->at + 1] != ']') {
            p->at++;
            GN_TRY(class_item(p, list, &is_class, &hi));
            if (is_class) { /* a-\d: the dash is one of the members */
                GN_TRY(add(list, '-', '-'));
                hi = lo;
            }
        }
        GN_REQUIRE(lo <= hi, GN_E_FORMAT, "regex: byte %zu: the range ends before it begins",
                   where);
        GN_TRY(add(list, lo, hi));
    }
}

static gn_status parse_class(parser *p, gn_re *out)
{
    size_t open = p->at - 1;
    class_list list = {0};
    bool negate = take(p, "^");
    gn_status status = class_body(p, &list, open);
    if (status == GN_OK) {
        status = emit(p, &list, negate, out);
    }
    gn_free(list.v);
    return status;
}

static gn_status one_char(parser *p, uint32_t c, gn_re *out)
{
    class_list list = {0};
    gn_status status = add(&list, c, c);
    if (status == GN_OK) {
        status = emit(p, &list, false, out);
    }
    gn_free(list.v);
    return status;
}

/* ---- Atoms ------------------------------------------------------------------------------------------- */

static gn_status parse_escape(parser *p, gn_re *out)
{
    GN_REQUIRE(more(p), GN_E_FORMAT, "regex: byte %zu: found the end behind a backslash", p->at);
    bool ecma = (p->flags & GN_REGEX_ECMA) != 0;
    if (!ecma && (take(p, "A") || take(p, "z"))) {
        *out = gn_grammar_re_literal(p->pool, p->s[p->at - 1] == 'A' ? "\xfe" : "\xff", 1);
        return GN_OK;
    }
    class_list list = {0};
    bool is_class = false;
    gn_status status = class_escape(p, &list, &is_class);
    if (status == GN_OK && is_class) {
        status = emit(p, &list, false, out);
    }
    gn_free(list.v);
    if (status == GN_OK && !is_class) {
        uint32_t c = 0;
        GN_TRY(char_escape(p, false, &c));
        return one_char(p, c, out);
    }
    return status;
}

/* Flags of (?flags) and (?flags: up to the mark behind them. */
static gn_status parse_flags(parser *p)
{
    bool off = false;
    for (; more(p); p->at++) {
        unsigned flag = 0;
        switch (p->s[p->at]) {
        case 'i': flag = GN_REGEX_ICASE; break;
        case 's': flag = GN_REGEX_DOTALL; break;
        case '-': off = true; continue;
        case ')':
        case ':': return GN_OK;
        default:
            return gn_base_fail(GN_E_UNSUPPORTED, "regex: byte %zu: this group is not supported",
                                p->at);
        }
        p->flags = off ? p->flags & ~flag : p->flags | flag;
    }
    return gn_base_fail(GN_E_FORMAT, "regex: byte %zu: found no end of the group", p->at);
}

static gn_status parse_group(parser *p, gn_re *out)
{
    size_t open = p->at - 1;
    GN_REQUIRE(++p->depth <= MAX_DEPTH, GN_E_LIMIT, "regex: groups nested over %d deep", MAX_DEPTH);
    unsigned flags = p->flags;
    bool look = take(p, "?=") || take(p, "?!") || take(p, "?<=") || take(p, "?<!");
    GN_REQUIRE(!look, GN_E_UNSUPPORTED, "regex: byte %zu: look-around is not supported here", open);
    if (take(p, "?P<") || take(p, "?<")) {
        const char *end = memchr(p->s + p->at, '>', p->len - p->at);
        GN_REQUIRE(end != NULL, GN_E_FORMAT, "regex: byte %zu: found no > of the group's name",
                   open);
        p->at = (size_t)(end - p->s) + 1;
    } else if (take(p, "?")) {
        GN_TRY(parse_flags(p));
        if (take(p, ")")) { /* for the rest of the group around */
            p->depth--;
            *out = GN_RE_EPS;
            return GN_OK;
        }
        (void)take(p, ":");
    }
    GN_TRY(parse_alt(p, false, out));
    GN_REQUIRE(take(p, ")"), GN_E_FORMAT, "regex: byte %zu: found no ) of this group", open);
    p->flags = flags;
    p->depth--;
    return GN_OK;
}

static gn_status parse_atom(parser *p, gn_re *out)
{
    char c = p->s[p->at];
    switch (c) {
    case '(': p->at++; return parse_group(p, out);
    case '[': p->at++; return parse_class(p, out);
    case '\\': p->at++; return parse_escape(p, out);
    case '^':
    case '$':
        p->at++;
        *out = gn_grammar_re_literal(p->pool, c == '^' ? "\xfe" : "\xff", 1);
        return GN_OK;
    case '.': {
        p->at++;
        class_list list = {0};
        gn_status status = GN_OK;
        if ((p->flags & GN_REGEX_DOTALL) == 0) {
            status = add(&list, '\n', '\n');
            if (status == GN_OK && p->flags & GN_REGEX_ECMA) {
                status = add(&list, '\r', '\r');
                status = status == GN_OK ? add(&list, 0x2028, 0x2029) : status;
            }
        }
        unsigned flags = p->flags;
        p->flags &= ~GN_REGEX_ICASE;
        status = status == GN_OK ? emit(p, &list, true, out) : status;
        p->flags = flags;
        gn_free(list.v);
        return status;
    }
    case '*':
    case '+':
    case '?': return gn_base_fail(GN_E_FORMAT, "regex: byte %zu: found nothing to repeat", p->at);
    default: {
        uint32_t cp = 0;
        p->at += gn_utf8_decode(p->s + p->at, p->len - p->at, &cp);
        return one_char(p, cp, out);
    }
    }
}

/* {m}, {m,}, {m,n} behind its brace; *found false: it is text. */
static gn_status parse_counts(parser *p, uint32_t *min, uint32_t *max, bool *found)
{
    size_t at = p->at;
    uint64_t v[2] = {0, 0};
    bool have[2] = {false, false};
    bool comma = false;
    for (; more(p) && p->s[p->at] != '}'; p->at++) {
        char c = p->s[p->at];
        if (c == ',' && !comma) {
            comma = true;
        } else if (c >= '0' && c <= '9') {
            v[comma] = v[comma] * 10 + (uint64_t)(c - '0');
            v[comma] = v[comma] > MAX_REPEAT ? MAX_REPEAT + 1 : v[comma];
            have[comma] = true;
        } else {
            break;
        }
    }
    *found = have[0] && take(p, "}");
    if (!*found) {
        p->at = at;
        return GN_OK;
    }
    GN_REQUIRE(v[0] <= MAX_REPEAT && v[1] <= MAX_REPEAT, GN_E_LIMIT,
               "regex: byte %zu: repeats over %u", at, MAX_REPEAT);
    *min = (uint32_t)v[0];
    *max = !comma ? *min : have[1] ? (uint32_t)v[1] : GN_RE_MANY;
    GN_REQUIRE(*max >= *min, GN_E_FORMAT, "regex: byte %zu: the repeat ends below its beginning",
               at);
    return GN_OK;
}

static gn_status parse_repeats(parser *p, gn_re *re)
{
    for (;;) {
        uint32_t min = 0;
        uint32_t max = GN_RE_MANY;
        bool found = true;
        if (take(p, "+")) {
            min = 1;
        } else if (take(p, "?")) {
            max = 1;
        } else if (take(p, "{")) {
            GN_TRY(parse_counts(p, &min, &max, &found));
            p->at -= !found;
        } else if (!take(p, "*")) {
            found = false;
        }
        if (!found) {
            return GN_OK;
        }
        (void)take(p, "?"); /* which match is found makes no difference to whether there is one */
        *re = gn_grammar_re_repeat(p->pool, *re, min, max);
    }
}

/* ---- Sequences --------------------------------------------------------------------------------------- */

typedef struct looks {
    gn_re v[MAX_LOOKS];
    size_t n;
} looks;

/* Lookaheads at the start of a top-level alternative, perhaps behind its ^. */
static gn_status parse_looks(parser *p, looks *l)
{
    while (l->n < MAX_LOOKS) {
        bool negative = take(p, "(?!");
        if (!negative && !take(p, "(?=")) {
            return GN_OK;
        }
        gn_re inside;
        GN_REQUIRE(++p->depth <= MAX_DEPTH, GN_E_LIMIT, "regex: groups nested over %d deep",
                   MAX_DEPTH);
        GN_TRY(parse_alt(p, false, &inside));
        GN_REQUIRE(take(p, ")"), GN_E_FORMAT, "regex: byte %zu: found no ) of a lookahead", p->at);
        p->depth--;
        gn_re all = gn_grammar_re_not(p->pool, GN_RE_NONE);
        inside = gn_grammar_re_cat(p->pool, inside, all);
        l->v[l->n++] = negative ? gn_grammar_re_not(p->pool, inside) : inside;
    }
    return gn_base_fail(GN_E_LIMIT, "regex: over %u lookaheads", MAX_LOOKS);
}

static gn_re any_text(parser *p)
{
    gn_re one = p->flags & GN_REGEX_JSON ? gn_grammar_re_json_chars(p->pool, NULL, 0, true)
                                         : gn_grammar_re_chars(p->pool, NULL, 0, true);
    return gn_grammar_re_repeat(p->pool, one, 0, GN_RE_MANY);
}

/* What may stand before (0xFE) or behind (0xFF) a top-level alternative, the anchor byte included. */
static gn_re outside(parser *p, bool behind)
{
    gn_re mark = gn_grammar_re_literal(p->pool, behind ? "\xff" : "\xfe", 1);
    if (p->flags & GN_REGEX_SEARCH) {
        gn_re any = any_text(p);
        mark =
            behind ? gn_grammar_re_cat(p->pool, any, mark) : gn_grammar_re_cat(p->pool, mark, any);
    }
    return gn_grammar_re_repeat(p->pool, mark, 0, 1);
}

/* One alternative: items to the next | or ). */
static gn_status parse_seq(parser *p, bool top, gn_re *out)
{
    looks l = {.n = 0};
    gn_re_pool *pool = p->pool;
    size_t mark = pool->scratch.n;
    gn_re start = top ? outside(p, false) : GN_RE_EPS;
    if (top && take(p, "^")) {
        start = gn_grammar_re_literal(pool, "\xfe", 1);
    }
    gn_status status = top ? parse_looks(p, &l) : GN_OK;
    while (status == GN_OK && more(p) && p->s[p->at] != '|' && p->s[p->at] != ')') {
        gn_re re = GN_RE_NONE;
        status = parse_atom(p, &re);
        if (status == GN_OK) {
            status = parse_repeats(p, &re);
        }
        if (status == GN_OK && !gn_grammar_re_push(pool, &pool->scratch, re)) {
            status = gn_grammar_re_status(pool);
        }
    }
    gn_re re = top ? outside(p, true) : GN_RE_EPS;
    while (pool->scratch.n > mark) {
        gn_re item = pool->scratch.v[--pool->scratch.n];
        re = status == GN_OK ? gn_grammar_re_cat(pool, item, re) : GN_RE_NONE;
    }
    GN_TRY(status);
    if (l.n > 0) {
        gn_re both[2] = {re, gn_grammar_re_and(pool, l.v, l.n)};
        re = gn_grammar_re_and(pool, both, 2);
    }
    *out = gn_grammar_re_cat(pool, start, re);
    return gn_grammar_re_status(pool);
}

static gn_status parse_alt(parser *p, bool top, gn_re *out)
{
    gn_re_pool *pool = p->pool;
    size_t mark = pool->scratch.n;
    gn_status status = GN_OK;
    do {
        gn_re one = GN_RE_NONE;
        status = parse_seq(p, top, &one);
        if (status == GN_OK && !gn_grammar_re_push(pool, &pool->scratch, one)) {
            status = gn_grammar_re_status(pool);
        }
    } while (status == GN_OK && take(p, "|"));
    if (status != GN_OK) {
        pool->scratch.n = mark;
        return status;
    }
    *out = gn_grammar_re_join(pool, RE_ALT, mark);
    return gn_grammar_re_status(pool);
}

gn_status gn_grammar_regex_parse(gn_re_pool *pool, const char *text, size_t len, unsigned flags,
                                 gn_re *out)
{
    GN_REQUIRE(gn_utf8_valid(text, len), GN_E_FORMAT, "regex: found invalid UTF-8");
    parser p = {.pool = pool, .s = text, .len = len, .flags = flags};
    gn_re re = GN_RE_NONE;
    GN_TRY(parse_alt(&p, true, &re));
    GN_REQUIRE(!more(&p), GN_E_FORMAT, "regex: byte %zu: found ), expected the end", p.at);
    *out = gn_grammar_re_between_anchors(pool, re);
    return gn_grammar_re_status(pool);
}

gn_status gn_grammar_regex(const char *text, size_t len, unsigned flags, gn_grammar **out)
{
    gn_ir_builder *b = NULL;
    GN_TRY(gn_grammar_ir_create(NULL, &b));
    gn_re re = GN_RE_NONE;
    gn_status status = gn_grammar_regex_parse(gn_grammar_ir_pool(b), text, len, flags, &re);
    if (status != GN_OK) {
        gn_grammar_ir_destroy(b);
        return status;
    }
    return gn_grammar_compile(b, gn_grammar_ir_term(b, re), out);
}
