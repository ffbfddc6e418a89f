/* A scanner with two states. Outside tags it looks for the next tag and gives out the text before it,
 * stripped as the tag's sign and the two settings ask. Inside a tag it reads tokens until the tag's end,
 * which is looked for only while all brackets are closed. Newlines are normalised once, at the start, in a
 * copy of the source that data tokens then point into. */
#include "text/jinja_lex.h"

#include "base/alloc.h"
#include "base/attr.h"
#include "base/utf8.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#define MAX_BRACKETS 256

typedef struct lexer {
    gn_arena *arena;
    const char *s;
    size_t len;
    size_t pos;
    uint32_t line; /* of counted */
    size_t counted;
    size_t line_start;
    gn_jtoken *tokens;
    size_t n;
    size_t cap;
    bool line_starting; /* what was read last ended in a newline */
} lexer;

bool gn_jinja_is_space(uint32_t cp)
{
    return (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x20) || cp == 0x85 || cp == 0xa0 ||
           cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

double gn_jinja_parse_double(const char *s, size_t len)
{
    char text[1024];
    size_t n = 0;
    const char *point = localeconv()->decimal_point;
    for (size_t i = 0; i < len && n + 2 < sizeof text; i++) {
        text[n++] = s[i] == '.' && point[0] != '\0' ? point[0] : s[i];
    }
    text[n] = '\0';
    return strtod(text, NULL);
}

static void locate(lexer *lx, size_t at, uint32_t *line, uint32_t *column)
{
    if (at < lx->counted) { /* only errors look back */
        lx->line = 1;
        lx->counted = 0;
        lx->line_start = 0;
    }
    for (; lx->counted < at; lx->counted++) {
        if (lx->s[lx->counted] == '\n') {
            lx->line++;
            lx->line_start = lx->counted + 1;
        }
    }
    *line = lx->line;
    *column = (uint32_t)(at - lx->line_start) + 1;
}

static gn_status fail_at(lexer *lx, size_t at, const char *what)
{
    uint32_t line;
    uint32_t column;
    locate(lx, at, &line, &column);
    return gn_base_fail(GN_E_FORMAT, "line %u, column %u: %s", line, column, what);
}

static gn_status push(lexer *lx, gn_jtok type, size_t at, const char *text, size_t len)
{
    gn_jtoken *tokens = gn_grow_array(lx->tokens, &lx->cap, lx->n + 1, sizeof *tokens);
    if (tokens == NULL) {
        return gn_alloc_failed();
    }
    lx->tokens = tokens;
    gn_jtoken *token = &lx->tokens[lx->n++];
    *token = (gn_jtoken){.type = type, .text = text, .len = len};
    locate(lx, at, &token->line, &token->column);
    return GN_OK;
}

static bool starts_with(const lexer *lx, size_t at, const char *what)
{
    size_t n = strlen(what);
    return n <= lx->len - at && memcmp(lx->s + at, what, n) == 0;
}

static size_t skip_space(const lexer *lx, size_t at)
{
    while (at < lx->len) {
        uint32_t cp = 0;
        size_t used = gn_utf8_decode(lx->s + at, lx->len - at, &cp);
        if (used == 0 || !gn_jinja_is_space(cp)) {
            break;
        }
        at += used;
    }
    return at;
}

/* The end of s[from .. to) without trailing whitespace. */
static size_t strip_end(const lexer *lx, size_t from, size_t to)
{
    while (to > from) {
        size_t start = to - 1;
        while (start > from && ((unsigned char)lx->s[start] & 0xc0u) == 0x80u) {
            start--;
        }
        uint32_t cp = 0;
        if (gn_utf8_decode(lx->s + start, to - start, &cp) == 0 || !gn_jinja_is_space(cp)) {
            break;
        }
        to = start;
    }
    return to;
}

/* Where text [from .. to) ends when a tag with this sign follows it. */
static size_t strip_before_tag(const lexer *lx, size_t from, size_t to, char sign, bool is_variable)
{
    if (sign == '-') {
        return strip_end(lx, from, to);
    }
    if (sign == '+' || is_variable) {
        return to;
    }
    size_t line = to;
    while (line > from && lx->s[line - 1] != '\n') {
        line--;
    }
    if (line == from && !lx->line_starting) {
        return to;
    }
    return skip_space(lx, line) >= to ? line : to;
}

static char sign_at(const lexer *lx, size_t at)
{
    return at < lx->len && (lx->s[at] == '-' || lx->s[at] == '+') ? lx->s[at] : '\0';
}

/* Try to read a tag's end at `at`: `%}` and its variants. Returns the position behind it, or 0. */
static size_t read_end(const lexer *lx, size_t at, const char *mark, bool trims)
{
    if (lx->s[at] == '-' && at + 1 < lx->len && starts_with(lx, at + 1, mark)) {
        return skip_space(lx, at + 3);
    }
    if (trims && lx->s[at] == '+' && at + 1 < lx->len && starts_with(lx, at + 1, mark)) {
        return at + 3;
    }
    if (starts_with(lx, at, mark)) {
        bool newline = trims && at + 2 < lx->len && lx->s[at + 2] == '\n';
        return at + 2 + newline;
    }
    return 0;
}

static void move_to(lexer *lx, size_t at)
{
    lx->pos = at;
    lx->line_starting = at > 0 && lx->s[at - 1] == '\n';
}

/* `{% raw %}` at lx->pos: the position of its content, or 0. */
static size_t read_raw_begin(const lexer *lx)
{
    size_t at = lx->pos + 2 + (sign_at(lx, lx->pos + 2) != '\0');
    at = skip_space(lx, at);
    if (!starts_with(lx, at, "raw")) {
        return 0;
    }
    at = skip_space(lx, at + 3);
    if (at < lx->len && starts_with(lx, at, "-%}")) {
        return skip_space(lx, at + 3);
    }
    return at < lx->len && starts_with(lx, at, "%}") ? at + 2 : 0;
}

static gn_status lex_raw(lexer *lx, size_t content)
{
    move_to(lx, content);
    for (size_t at = content; at + 1 < lx->len; at++) {
        if (!starts_with(lx, at, "{%")) {
            continue;
        }
        char sign = sign_at(lx, at + 2);
        size_t name = skip_space(lx, at + 2 + (sign != '\0'));
        if (!starts_with(lx, name, "endraw")) {
            continue;
        }
        size_t close = skip_space(lx, name + 6);
        size_t end = close < lx->len ? read_end(lx, close, "%}", true) : 0;
        if (end == 0) {
            continue;
        }
        size_t stop = strip_before_tag(lx, content, at, sign, false);
        if (stop > content) {
            GN_TRY(push(lx, GN_JT_DATA, content, lx->s + content, stop - content));
        }
        move_to(lx, end);
        return GN_OK;
    }
    if (content >= lx->len) { /* Jinja lets a tag that opens at the very end pass */
        return GN_OK;
    }
    return fail_at(lx, content, "this raw block has no end");
}

static gn_status lex_comment(lexer *lx)
{
    size_t start = lx->pos;
    size_t at = start + 2 + (sign_at(lx, start + 2) != '\0');
    if (at >= lx->len) { /* Jinja lets a comment that opens at the very end pass */
        move_to(lx, lx->len);
        return GN_OK;
    }
    for (; at < lx->len; at++) {
        size_t end = read_end(lx, at, "#}", true);
        if (end != 0) {
            move_to(lx, end);
            return GN_OK;
        }
    }
    return fail_at(lx, start, "this comment has no end");
}

static bool is_word(uint32_t cp)
{
    if (cp < 128) {
        return (cp >= '0' && cp <= '9') || (cp >= 'A' && cp <= 'Z') || (cp >= 'a' && cp <= 'z') ||
               cp == '_';
    }
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)cp);
    return (cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_LO) ||
           (cat >= UTF8PROC_CATEGORY_ND && cat <= UTF8PROC_CATEGORY_NO);
}

static gn_status lex_name(lexer *lx, bool *found)
{
    size_t start = lx->pos;
    size_t at = start;
    while (at < lx->len) {
        uint32_t cp = 0;
        size_t used = gn_utf8_decode(lx->s + at, lx->len - at, &cp);
        if (used == 0 || !is_word(cp)) {
            break;
        }
        at += used;
    }
    *found = at > start;
    if (!*found) {
        return GN_OK;
    }
    if (lx->s[start] >= '0' && lx->s[start] <= '9') {
        return fail_at(lx, start, "a name cannot begin with a digit");
    }
    GN_TRY(push(lx, GN_JT_NAME, start, lx->s + start, at - start));
    lx->pos = at;
    return GN_OK;
}

static bool digit_of(char c, int base)
{
    int v = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : 99;
    return v < base;
}

/* Digits with single underscores between them: the position behind, or `at` where there are none. */
static size_t skip_digits(const lexer *lx, size_t at, int base)
{
    while (at < lx->len && digit_of(lx->s[at], base)) {
        at++;
        if (at + 1 < lx->len && lx->s[at] == '_' && digit_of(lx->s[at + 1], base)) {
            at++;
        }
    }
    return at;
}

static size_t float_end(const lexer *lx, size_t at)
{
    if (at > 0 && lx->s[at - 1] == '.') {
        return 0;
    }
    size_t whole = skip_digits(lx, at, 10);
    size_t end = whole;
    if (end + 1 < lx->len && lx->s[end] == '.' && digit_of(lx->s[end + 1], 10)) {
        end = skip_digits(lx, end + 1, 10);
    }
    if (end < lx->len && (lx->s[end] == 'e' || lx->s[end] == 'E')) {
        size_t exponent = end + 1 + (sign_at(lx, end + 1) != '\0');
        size_t stop = skip_digits(lx, exponent, 10);
        if (stop > exponent) {
            return stop;
        }
    }
    return end > whole ? end : 0;
}

static gn_status lex_integer(lexer *lx)
{
    size_t start = lx->pos;
    int base = 10;
    size_t digits = start;
    if (lx->s[start] == '0' && start + 1 < lx->len) {
        char kind = (char)(lx->s[start + 1] | 0x20);
        base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
        size_t first = start + 2 + (start + 2 < lx->len && lx->s[start + 2] == '_');
        if (base != 10 && first < lx->len && digit_of(lx->s[first], base)) {
            digits = first;
        } else {
            base = 10;
        }
    }
    size_t end = skip_digits(lx, digits, base);
    if (base == 10 && lx->s[start] == '0') { /* zeros only: 012 is 0 and then 12 */
        end = start;
        while (end < lx->len && (lx->s[end] == '0' || (lx->s[end] == '_' && end + 1 < lx->len &&
                                                       lx->s[end + 1] == '0'))) {
            end++;
        }
    }
    uint64_t value = 0;
    for (size_t i = digits; i < end; i++) {
        char c = lx->s[i];
        if (c == '_') {
            continue;
        }
        uint64_t d = (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        if (value > ((uint64_t)INT64_MAX - d) / (uint64_t)base) {
            return fail_at(lx, start, "this integer does not fit into 64 bits");
        }
        value = value * (uint64_t)base + d;
    }
    GN_TRY(push(lx, GN_JT_INT, start, lx->s + start, end - start));
    lx->tokens[lx->n - 1].i = (int64_t)value;
    lx->pos = end;
    return GN_OK;
}

static gn_status lex_number(lexer *lx)
{
    size_t end = float_end(lx, lx->pos);
    if (end == 0) {
        return lex_integer(lx);
    }
    char text[512];
    size_t n = 0;
    for (size_t i = lx->pos; i < end; i++) {
        if (lx->s[i] != '_') {
            if (n == sizeof text) {
                return fail_at(lx, lx->pos, "this number has too many digits");
            }
            text[n++] = lx->s[i];
        }
    }
    GN_TRY(push(lx, GN_JT_FLOAT, lx->pos, lx->s + lx->pos, end - lx->pos));
    lx->tokens[lx->n - 1].f = gn_jinja_parse_double(text, n);
    lx->pos = end;
    return GN_OK;
}

/* \x41, \u0041, \U00000041: the code point, or UINT32_MAX. */
static uint32_t read_hex(const char *s, size_t n, size_t digits)
{
    uint32_t cp = 0;
    if (n < digits) {
        return UINT32_MAX;
    }
    for (size_t i = 0; i < digits; i++) {
        if (!digit_of(s[i], 16)) {
            return UINT32_MAX;
        }
        cp = cp * 16 + (uint32_t)(s[i] <= '9' ? s[i] - '0' : (s[i] | 0x20) - 'a' + 10);
    }
    return cp;
}

/* One escape, s[0] being the character behind the backslash. Writes to `to`, sets *n_to, returns the
 * bytes used, or 0 where it is malformed. */
static size_t unescape(const char *s, size_t n, char *to, size_t *n_to)
{
    static const char plain[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    for (size_t i = 0; i + 1 < sizeof plain - 1; i += 2) {
        if (s[0] == plain[i]) {
            to[0] = plain[i + 1];
            *n_to = 1;
            return 1;
        }
    }
    if (s[0] == '\n') {
        *n_to = 0;
        return 1;
    }
    if (s[0] >= '0' && s[0] <= '7') {
        uint32_t cp = 0;
        size_t used = 0;
        while (used < 3 && used < n && s[used] >= '0' && s[used] <= '7') {
            cp = cp * 8 + (uint32_t)(s[used++] - '0');
        }
        *n_to = gn_utf8_encode(cp, to);
        return used;
    }
    size_t digits = s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : s[0] == 'U' ? 8 : 0;
    if (digits != 0) {
        *n_to = gn_utf8_encode(read_hex(s + 1, n - 1, digits), to);
        return *n_to != 0 ? digits + 1 : 0;
    }
    if (s[0] == 'N') { /* names of characters are not carried along */
        return 0;
    }
    to[0] = '\\';
    to[1] = s[0];
    *n_to = 2;
    return 1;
}

static gn_status lex_string(lexer *lx)
{
    size_t start = lx->pos;
    char quote = lx->s[start];
    size_t end = start + 1;
    while (end < lx->len && lx->s[end] != quote) {
        end += lx->s[end] == '\\' && end + 1 < lx->len ? 2 : 1;
    }
    if (end >= lx->len) {
        return fail_at(lx, start, "this string has no end");
    }
    char *text = gn_arena_alloc(lx->arena, end - start + 8);
    if (text == NULL) {
        return gn_alloc_failed();
    }
    size_t n = 0;
    for (size_t i = start + 1; i < end;) {
        if (lx->s[i] != '\\') {
            text[n++] = lx->s[i++];
            continue;
        }
        char bytes[8];
        size_t n_bytes = 0;
        size_t used = unescape(lx->s + i + 1, end - i - 1, bytes, &n_bytes);
        if (used == 0) {
            return fail_at(lx, i, "malformed escape in a string");
        }
        memcpy(text + n, bytes, n_bytes);
        n += n_bytes;
        i += used + 1;
    }
    text[n] = '\0';
    GN_TRY(push(lx, GN_JT_STRING, start, text, n));
    lx->pos = end + 1;
    return GN_OK;
}

typedef struct operator_row {
    char text[3];
    gn_jtok type;
} operator_row;

static const operator_row OPERATORS[] = {
    {"**", GN_JT_POW},   {"//", GN_JT_FLOORDIV}, {"==", GN_JT_EQ},       {"!=", GN_JT_NE},
    {"<=", GN_JT_LE},    {">=", GN_JT_GE},       {"+", GN_JT_ADD},       {"-", GN_JT_SUB},
    {"*", GN_JT_MUL},    {"/", GN_JT_DIV},       {"%", GN_JT_MOD},       {"~", GN_JT_TILDE},
    {"<", GN_JT_LT},     {">", GN_JT_GT},        {"=", GN_JT_ASSIGN},    {".", GN_JT_DOT},
    {",", GN_JT_COMMA},  {":", GN_JT_COLON},     {";", GN_JT_SEMICOLON}, {"|", GN_JT_PIPE},
    {"(", GN_JT_LPAREN}, {")", GN_JT_RPAREN},    {"[", GN_JT_LBRACKET},  {"]", GN_JT_RBRACKET},
    {"{", GN_JT_LBRACE}, {"}", GN_JT_RBRACE},
};

static gn_status lex_operator(lexer *lx, char *brackets, size_t *n_brackets)
{
    const operator_row *row = NULL;
    for (size_t i = 0; i < GN_COUNTOF(OPERATORS) && row == NULL; i++) {
        row = starts_with(lx, lx->pos, OPERATORS[i].text) ? &OPERATORS[i] : NULL;
    }
    if (row == NULL) {
        return fail_at(lx, lx->pos, "unexpected character");
    }
    char c = row->text[0];
    if (c == '(' || c == '[' || c == '{') {
        if (*n_brackets == MAX_BRACKETS) {
            (void)fail_at(lx, lx->pos, "brackets are nested too deep");
            return GN_E_LIMIT;
        }
        brackets[(*n_brackets)++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
        if (*n_brackets == 0 || brackets[*n_brackets - 1] != c) {
            return fail_at(lx, lx->pos, "this bracket closes none that is open");
        }
        (*n_brackets)--;
    }
    size_t len = strlen(row->text);
    GN_TRY(push(lx, row->type, lx->pos, lx->s + lx->pos, len));
    lx->pos += len;
    return GN_OK;
}

static gn_status lex_tag(lexer *lx, bool is_variable)
{
    const char *mark = is_variable ? "}}" : "%}";
    size_t start = lx->pos;
    char brackets[MAX_BRACKETS];
    size_t n_brackets = 0;
    GN_TRY(push(lx, is_variable ? GN_JT_VAR_BEGIN : GN_JT_BLOCK_BEGIN, start, lx->s + start, 2));
    lx->pos = start + 2 + (sign_at(lx, start + 2) != '\0');
    for (;;) {
        size_t at = lx->pos;
        size_t end = n_brackets == 0 && at < lx->len ? read_end(lx, at, mark, !is_variable) : 0;
        if (end != 0) {
            GN_TRY(push(lx, is_variable ? GN_JT_VAR_END : GN_JT_BLOCK_END, at, lx->s + at, 2));
            move_to(lx, end);
            return GN_OK;
        }
        lx->pos = skip_space(lx, at);
        if (lx->pos >= lx->len) {
            return fail_at(lx, start, "this tag has no end");
        }
        if (lx->pos > at) {
            continue;
        }
        char c = lx->s[at];
        bool is_name = false;
        if (c >= '0' && c <= '9') {
            GN_TRY(lex_number(lx));
        } else if (c == '"' || c == '\'') {
            GN_TRY(lex_string(lx));
        } else {
            GN_TRY(lex_name(lx, &is_name));
            if (!is_name) {
                GN_TRY(lex_operator(lx, brackets, &n_brackets));
            }
        }
    }
}

static gn_status lex_root(lexer *lx)
{
    while (lx->pos < lx->len) {
        size_t from = lx->pos;
        size_t at = from;
        while (at < lx->len &&
               !(lx->s[at] == '{' && at + 1 < lx->len &&
                 (lx->s[at + 1] == '{' || lx->s[at + 1] == '%' || lx->s[at + 1] == '#'))) {
            at++;
        }
        bool tag = at < lx->len;
        char kind = tag ? lx->s[at + 1] : '\0';
        size_t stop =
            tag ? strip_before_tag(lx, from, at, sign_at(lx, at + 2), kind == '{') : lx->len;
        if (stop > from) {
            GN_TRY(push(lx, GN_JT_DATA, from, lx->s + from, stop - from));
        }
        lx->pos = at;
        if (!tag) {
            break;
        }
        size_t raw = kind == '%' ? read_raw_begin(lx) : 0;
        if (raw != 0) {
            GN_TRY(lex_raw(lx, raw));
        } else if (kind == '#') {
            GN_TRY(lex_comment(lx));
        } else {
            GN_TRY(lex_tag(lx, kind == '{'));
        }
    }
    return push(lx, GN_JT_EOF, lx->len, "", 0);
}

/* The source with \n for every line end and without the last one. */
static char *normalise(gn_arena *arena, const char *source, size_t len, size_t *out_len)
{
    char *copy = gn_arena_alloc(arena, len + 4); /* look-ahead reads a few bytes past the end */
    if (copy == NULL) {
        return NULL;
    }
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (source[i] == '\r') {
            copy[n++] = '\n';
            i += i + 1 < len && source[i + 1] == '\n';
        } else {
            copy[n++] = source[i];
        }
    }
    n -= n > 0 && copy[n - 1] == '\n';
    memset(copy + n, 0, len + 4 - n);
    *out_len = n;
    return copy;
}

gn_status gn_jinja_lex(gn_arena *arena, const char *source, size_t len, gn_jtoken **tokens,
                       size_t *n_tokens)
{
    lexer lx = {.arena = arena, .line = 1, .line_starting = true};
    lx.s = normalise(arena, source, len, &lx.len);
    if (lx.s == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = lex_root(&lx);
    if (status != GN_OK) {
        gn_free(lx.tokens);
        return status;
    }
    *tokens = lx.tokens;
    *n_tokens = lx.n;
    return GN_OK;
}

const char *gn_jinja_token_name(gn_jtok type)
{
    switch (type) {
    case GN_JT_EOF: return "the end of the template";
    case GN_JT_DATA: return "text";
    case GN_JT_VAR_BEGIN: return "'{{'";
    case GN_JT_VAR_END: return "'}}'";
    case GN_JT_BLOCK_BEGIN: return "'{%'";
    case GN_JT_BLOCK_END: return "'%}'";
    case GN_JT_NAME: return "a name";
    case GN_JT_STRING: return "a string";
    case GN_JT_INT: return "an integer";
    case GN_JT_FLOAT: return "a float";
    case GN_JT_ASSIGN: return "'='";
    case GN_JT_DOT: return "'.'";
    case GN_JT_COMMA: return "','";
    case GN_JT_COLON: return "':'";
    case GN_JT_PIPE: return "'|'";
    case GN_JT_LPAREN: return "'('";
    case GN_JT_RPAREN: return "')'";
    case GN_JT_LBRACKET: return "'['";
    case GN_JT_RBRACKET: return "']'";
    case GN_JT_LBRACE: return "'{'";
    case GN_JT_RBRACE: return "'}'";
    default: return "an operator";
    }
}
