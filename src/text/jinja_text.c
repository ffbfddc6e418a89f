/* What filters and methods share on text: case mapping, stripping, replacing, lines, and numbers read from
 * strings. Case follows the full mappings of Unicode, as Python's does. */
#include "text/jinja_lib.h"

#include "base/utf8.h"
#include "text/jinja_lex.h"

#include <math.h>
#include <string.h>
#include <utf8proc.h>

typedef struct case_row {
    uint32_t cp;
    uint32_t upper[3];
    uint32_t title[3];
    uint32_t folded[3];
} case_row;

static const case_row CASES[] = {
#include "text/jinja_case.inc"
};

static const case_row *find_case(uint32_t cp)
{
    size_t lo = 0;
    size_t hi = GN_COUNTOF(CASES);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (CASES[mid].cp < cp) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < GN_COUNTOF(CASES) && CASES[lo].cp == cp ? &CASES[lo] : NULL;
}

static gn_status write_cp(gn_jrun *run, uint32_t cp)
{
    char bytes[4];
    return gn_jinja_write_bytes(run, bytes, gn_utf8_encode(cp, bytes));
}

gn_status gn_jinja_write_case(gn_jrun *run, uint32_t cp, gn_jcase how)
{
    const case_row *row = cp >= 0x80 && how != GN_J_LOWER ? find_case(cp) : NULL;
    if (row != NULL) {
        const uint32_t *to = how == GN_J_UPPER   ? row->upper
                             : how == GN_J_TITLE ? row->title
                                                 : row->folded;
        for (size_t i = 0; i < 3 && to[i] != 0; i++) {
            GN_TRY(write_cp(run, to[i]));
        }
        return GN_OK;
    }
    if (how == GN_J_LOWER && cp == 0x130) { /* the one lower case that is two characters */
        GN_TRY(write_cp(run, 'i'));
        return write_cp(run, 0x307);
    }
    utf8proc_int32_t c = (utf8proc_int32_t)cp;
    utf8proc_int32_t to = c;
    switch (how) {
    case GN_J_LOWER: to = utf8proc_tolower(c); break;
    case GN_J_UPPER: to = utf8proc_toupper(c); break;
    case GN_J_TITLE: to = utf8proc_totitle(c); break;
    case GN_J_FOLD: {
        utf8proc_int32_t folded[4];
        int boundary = 0;
        if (utf8proc_decompose_char(c, folded, 4, UTF8PROC_CASEFOLD, &boundary) == 1) {
            to = folded[0];
        }
        break;
    }
    }
    return write_cp(run, (uint32_t)to);
}

bool gn_jinja_is_lower(uint32_t cp)
{
    if (cp == 0xaa ||
        cp == 0xba) { /* Other_Lowercase among the letters without case of their own */
        return true;
    }
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_LL ||
           (cp >= 0x2b0 && cp <= 0x2b8) || (cp >= 0x2c0 && cp <= 0x2c1) ||
           (cp >= 0x2e0 && cp <= 0x2e4) || cp == 0x345 || cp == 0x37a ||
           (cp >= 0x1d2c && cp <= 0x1d6a) || cp == 0x1d78 || (cp >= 0x1d9b && cp <= 0x1dbf) ||
           cp == 0x2071 || cp == 0x207f || (cp >= 0x2090 && cp <= 0x209c) ||
           (cp >= 0x2170 && cp <= 0x217f) || (cp >= 0x24d0 && cp <= 0x24e9);
}

bool gn_jinja_is_upper(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_LU ||
           (cp >= 0x2160 && cp <= 0x216f) || (cp >= 0x24b6 && cp <= 0x24cf) ||
           (cp >= 0x1f130 && cp <= 0x1f149) || (cp >= 0x1f150 && cp <= 0x1f169) ||
           (cp >= 0x1f170 && cp <= 0x1f189);
}

bool gn_jinja_is_titlecase(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_LT;
}

static bool is_cased(uint32_t cp)
{
    return gn_jinja_is_lower(cp) || gn_jinja_is_upper(cp) || gn_jinja_is_titlecase(cp);
}

static bool is_case_ignorable(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default:
        return cp == '\'' || cp == '.' || cp == ':' || cp == 0xb7 || cp == 0x387 || cp == 0x2018 ||
               cp == 0x2019 || cp == 0x2024 || cp == 0x2027;
    }
}

/* Does a sigma at s[at] end a word: a cased letter before it, none behind, ignorable ones aside? */
static bool is_final_sigma(const char *s, size_t len, size_t at)
{
    bool before = false;
    for (size_t i = at; i > 0 && !before;) {
        i--;
        while (i > 0 && ((unsigned char)s[i] & 0xc0u) == 0x80u) {
            i--;
        }
        uint32_t cp = 0;
        (void)gn_utf8_decode(s + i, len - i, &cp);
        if (is_case_ignorable(cp)) {
            continue;
        }
        if (!is_cased(cp)) {
            return false;
        }
        before = true;
    }
    for (size_t i = at + 2; i < len;) {
        uint32_t cp = 0;
        size_t used = gn_utf8_decode(s + i, len - i, &cp);
        if (!is_case_ignorable(cp)) {
            return before && !is_cased(cp);
        }
        i += used != 0 ? used : 1;
    }
    return before;
}

gn_status gn_jinja_write_cased(gn_jrun *run, const char *s, size_t len, gn_jcase how)
{
    char block[256]; /* ASCII goes out by the block */
    size_t n = 0;
    for (size_t at = 0; at < len;) {
        unsigned char c = (unsigned char)s[at];
        if (c < 0x80) {
            bool turn = how == GN_J_UPPER ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
            block[n++] = (char)(turn ? c ^ 0x20 : c);
            at++;
        }
        if (n == sizeof block || (c >= 0x80 && n != 0)) {
            GN_TRY(gn_jinja_write_bytes(run, block, n));
            n = 0;
        }
        if (c >= 0x80) {
            uint32_t cp = 0;
            size_t used = gn_utf8_decode(s + at, len - at, &cp);
            bool sigma = cp == 0x3a3 && how == GN_J_LOWER && is_final_sigma(s, len, at);
            GN_TRY(sigma ? write_cp(run, 0x3c2) : gn_jinja_write_case(run, cp, how));
            at += used != 0 ? used : 1;
        }
    }
    return gn_jinja_write_bytes(run, block, n);
}

/* ---- cutting ---- */

static bool has_cp(const gn_jstr *set, const char *s, size_t len)
{
    return memmem(set->data, set->len, s, len) != NULL;
}

void gn_jinja_strip(const char **s, size_t *len, const gn_jstr *chars, int sides)
{
    const char *p = *s;
    size_t from = 0;
    size_t to = *len;
    uint32_t cp = 0;
    while ((sides & 1) != 0 && from < to) {
        size_t used = gn_utf8_decode(p + from, to - from, &cp);
        if (used == 0 || !(chars != NULL ? has_cp(chars, p + from, used) : gn_jinja_is_space(cp))) {
            break;
        }
        from += used;
    }
    while ((sides & 2) != 0 && to > from) {
        size_t start = to - 1;
        while (start > from && ((unsigned char)p[start] & 0xc0u) == 0x80u) {
            start--;
        }
        size_t used = gn_utf8_decode(p + start, to - start, &cp);
        if (used == 0 ||
            !(chars != NULL ? has_cp(chars, p + start, used) : gn_jinja_is_space(cp))) {
            break;
        }
        to = start;
    }
    *s = p + from;
    *len = to - from;
}

gn_status gn_jinja_replace(gn_jrun *run, const gn_jstr *s, const gn_jstr *from, const gn_jstr *to,
                           int64_t max, gn_jval *out)
{
    size_t mark = run->out->len;
    size_t at = 0;
    size_t kept = 0; /* what is behind this byte is not written yet */
    while (max != 0 && at + from->len <= s->len) {
        size_t hit = at;
        if (from->len != 0) {
            const char *found = memmem(s->data + at, s->len - at, from->data, from->len);
            if (found == NULL) {
                break;
            }
            hit = (size_t)(found - s->data);
        }
        GN_TRY(gn_jinja_write_bytes(run, s->data + kept, hit - kept));
        GN_TRY(gn_jinja_write_bytes(run, to->data, to->len));
        kept = hit + from->len;
        at = kept;
        if (from->len == 0) { /* between any two characters, and at both ends */
            do {
                at++;
            } while (at < s->len && ((unsigned char)s->data[at] & 0xc0u) == 0x80u);
        }
        max -= max > 0;
    }
    GN_TRY(gn_jinja_write_bytes(run, s->data + kept, s->len - kept));
    return gn_jinja_str_captured(run, mark, out);
}

void gn_jinja_line(const char *s, size_t len, size_t *line, size_t *end)
{
    for (size_t at = 0; at < len; at++) {
        unsigned char c = (unsigned char)s[at];
        if (c == '\r') {
            *line = at;
            *end = at + 1 < len && s[at + 1] == '\n' ? 2 : 1;
            return;
        }
        if ((c >= '\n' && c <= '\f') || (c >= 0x1c && c <= 0x1e)) {
            *line = at;
            *end = 1;
            return;
        }
        bool wide = (c == 0xc2 && at + 1 < len && (unsigned char)s[at + 1] == 0x85) ||
                    (c == 0xe2 && at + 2 < len && (unsigned char)s[at + 1] == 0x80 &&
                     ((unsigned char)s[at + 2] & 0xfeu) == 0xa8);
        if (wide) { /* U+0085, U+2028, U+2029 */
            *line = at;
            *end = c == 0xc2 ? 2 : 3;
            return;
        }
    }
    *line = len;
    *end = 0;
}

size_t gn_jinja_cp_offset(const gn_jstr *s, size_t k)
{
    if (s->len == s->n_cp || k == 0) {
        return k;
    }
    if (k >= s->n_cp) {
        return s->len;
    }
    size_t at = 0;
    for (; k > 0; k--) {
        at++;
        while (at < s->len && ((unsigned char)s->data[at] & 0xc0u) == 0x80u) {
            at++;
        }
    }
    return at;
}

/* ---- numbers ---- */

static int digit_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'z' ? c - 'a' + 10
           : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                  : 99;
}

bool gn_jinja_parse_int(const gn_jstr *s, int base, int64_t *out, bool *overflow)
{
    const char *p = s->data;
    size_t len = s->len;
    size_t at = 0;
    *overflow = false;
    gn_jinja_strip(&p, &len, NULL, 3);
    bool negative = len > 0 && p[0] == '-';
    at += len > 0 && (p[0] == '-' || p[0] == '+');
    if (base == 0 || base == 2 || base == 8 || base == 16) {
        int kind = at + 1 < len && p[at] == '0' ? p[at + 1] | 0x20 : 0;
        int named = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
        if (named != 0 && (base == 0 || base == named)) {
            base = named;
            at += 2;
            at += at < len && p[at] == '_';
        }
    }
    bool decimal = base == 0;
    base = decimal ? 10 : base;
    uint64_t value = 0;
    bool any = false;
    bool digit = false;
    bool leading_zero = decimal && at < len && p[at] == '0';
    for (; at < len; at++) {
        if (p[at] == '_' && digit) {
            digit = false;
            continue;
        }
        int d = digit_value(p[at]);
        if (d >= base) {
            return false;
        }
        digit = true;
        any = true;
        if (!*overflow && value > ((uint64_t)INT64_MAX + negative - (uint64_t)d) / (uint64_t)base) {
            *overflow = true;
        }
        value = value * (uint64_t)base + (uint64_t)d;
    }
    if (!any || !digit || (leading_zero && value != 0)) {
        return false;
    }
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

static bool same_word(const char *s, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i < n && n == len; i++) {
        if ((s[i] | 0x20) != word[i]) {
            return false;
        }
    }
    return n == len;
}

bool gn_jinja_parse_float(const gn_jstr *s, double *out)
{
    const char *p = s->data;
    size_t len = s->len;
    char text[512];
    size_t n = 0;
    gn_jinja_strip(&p, &len, NULL, 3);
    size_t at = len > 0 && (p[0] == '-' || p[0] == '+');
    double sign = at == 1 && p[0] == '-' ? -1.0 : 1.0;
    if (same_word(p + at, len - at, "inf") || same_word(p + at, len - at, "infinity")) {
        *out = sign * INFINITY;
        return true;
    }
    if (same_word(p + at, len - at, "nan")) {
        *out = NAN;
        return true;
    }
    bool digits = false;
    bool point = false;
    bool exponent = false;
    for (; at < len; at++) {
        char c = p[at];
        bool is_digit = c >= '0' && c <= '9';
        if (c == '_' && at > 0 && at + 1 < len && p[at - 1] >= '0' && p[at - 1] <= '9' &&
            p[at + 1] >= '0' && p[at + 1] <= '9') {
            continue;
        }
        if (n + 1 >= sizeof text) {
            return false;
        }
        if (is_digit) {
            digits = true;
        } else if (c == '.' && !point && !exponent) {
            point = true;
        } else if ((c == 'e' || c == 'E') && digits && !exponent) {
            exponent = true;
            digits = false;
            text[n++] = c;
            if (at + 1 < len && (p[at + 1] == '-' || p[at + 1] == '+')) {
                text[n++] = p[++at];
            }
            continue;
        } else {
            return false;
        }
        text[n++] = c;
    }
    if (!digits) {
        return false;
    }
    *out = sign * gn_jinja_parse_double(text, n);
    return true;
}
