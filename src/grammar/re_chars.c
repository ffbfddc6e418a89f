/* Code points as bytes: sets of code points become trees over UTF-8 bytes (or over the hex digits of JSON's
 * \uXXXX), in which equal subtrees are one node and leading bytes with equal subtrees are one set. */
#include "base/alloc.h"
#include "base/utf8.h"
#include "grammar/re_impl.h"

#include <stdlib.h>
#include <string.h>

#define LAST_CHAR 0x10ffffu

typedef struct ranges {
    gn_re_range *v;
    size_t n;
} ranges;

static int compare_ranges(const void *x, const void *y)
{
    uint32_t a = ((const gn_re_range *)x)->lo;
    uint32_t b = ((const gn_re_range *)y)->lo;
    return (a > b) - (a < b);
}

static void append(ranges *r, uint32_t lo, uint32_t hi)
{
    if (lo > hi) {
        return;
    }
    if (r->n > 0 && lo <= r->v[r->n - 1].hi + 1) {
        gn_re_range *last = &r->v[r->n - 1];
        last->hi = hi > last->hi ? hi : last->hi;
    } else {
        r->v[r->n++] = (gn_re_range){lo, hi};
    }
}

/* Without surrogates: lo .. hi may span them. */
static void append_scalar(ranges *r, uint32_t lo, uint32_t hi)
{
    hi = hi > LAST_CHAR ? LAST_CHAR : hi;
    append(r, lo, hi < 0xd7ff ? hi : 0xd7ff);
    append(r, lo > 0xe000 ? lo : 0xe000, hi);
}

/* Sorted, merged, complemented where asked for. The memory is the caller's. */
static bool normal_form(gn_re_pool *pool, const gn_re_range *in, size_t n, bool negate, ranges *out)
{
    gn_re_range *sorted = gn_alloc_array(n + 1, sizeof *sorted);
    out->v = gn_alloc_array(2 * n + 4, sizeof *out->v);
    out->n = 0;
    if (sorted == NULL || out->v == NULL) {
        gn_free(sorted);
        gn_free(out->v);
        (void)gn_grammar_re_nomem(pool);
        return false;
    }
    if (n > 0) {
        memcpy(sorted, in, n * sizeof *in);
    }
    qsort(sorted, n, sizeof *sorted, compare_ranges);
    uint32_t next = 0; /* first code point not yet spoken for, of the complement */
    for (size_t i = 0; i < n; i++) {
        if (sorted[i].lo > sorted[i].hi || sorted[i].lo > LAST_CHAR) {
            continue;
        }
        if (!negate) {
            append_scalar(out, sorted[i].lo, sorted[i].hi);
        } else {
            if (sorted[i].lo > next) {
                append_scalar(out, next, sorted[i].lo - 1);
            }
            next = sorted[i].hi >= next ? sorted[i].hi + 1 : next;
        }
    }
    if (negate && next <= LAST_CHAR) {
        append_scalar(out, next, LAST_CHAR);
    }
    gn_free(sorted);
    return true;
}

/* ---- Trees ------------------------------------------------------------------------------------------- */

typedef struct
    digit_code { /* how digits of a code are written: 6 bits a byte, or 4 bits a hex letter */
    unsigned bits;
    bool hex;
} digit_code;

static void add_digit(const digit_code *code, gn_re_set *set, uint32_t digit)
{
    if (!code->hex) {
        gn_re_set_add(set, (uint8_t)(0x80 + digit));
    } else if (digit < 10) {
        gn_re_set_add(set, (uint8_t)('0' + digit));
    } else {
        gn_re_set_add(set, (uint8_t)('a' + digit - 10));
        gn_re_set_add(set, (uint8_t)('A' + digit - 10));
    }
}

typedef struct heads { /* first bytes by what follows them */
    gn_re_set set[16];
    gn_re rest[16];
    size_t n;
    gn_re done; /* those that did not fit */
} heads;

static void flush_heads(gn_re_pool *pool, heads *h)
{
    for (size_t i = 0; i < h->n; i++) {
        gn_re pair[2] = {h->done,
                         gn_grammar_re_cat(pool, gn_grammar_re_set(pool, &h->set[i]), h->rest[i])};
        h->done = gn_grammar_re_alt(pool, pair, 2);
    }
    h->n = 0;
}

static gn_re_set *head_for(gn_re_pool *pool, heads *h, gn_re rest)
{
    for (size_t i = 0; i < h->n; i++) {
        if (h->rest[i] == rest) {
            return &h->set[i];
        }
    }
    if (h->n == GN_COUNTOF(h->rest)) {
        flush_heads(pool, h);
    }
    h->set[h->n] = (gn_re_set){{0}};
    h->rest[h->n] = rest;
    return &h->set[h->n++];
}

/* First range that does not end before lo. */
static size_t first_range(const ranges *r, uint32_t lo)
{
    size_t a = 0;
    size_t b = r->n;
    while (a < b) {
        size_t m = (a + b) / 2;
        if (r->v[m].hi < lo) {
            a = m + 1;
        } else {
            b = m;
        }
    }
    return a;
}

/* The codes of n digits that, above base, lie in the ranges. At most 4 deep. */
static gn_re tails(gn_re_pool *pool, const ranges *r, const digit_code *code, uint32_t base,
                   unsigned n)
{
    uint32_t size = (uint32_t)1 << (code->bits * n);
    size_t i = first_range(r, base);
    if (i == r->n || r->v[i].lo > base + size - 1) {
        return GN_RE_NONE;
    }
    if (n == 0) {
        return GN_RE_EPS;
    }
    bool full = r->v[i].lo <= base && r->v[i].hi >= base + size - 1;
    if (full) {
        gn_re_set any = {{0}};
        for (uint32_t d = 0; d < (uint32_t)1 << code->bits; d++) {
            add_digit(code, &any, d);
        }
        gn_re one = gn_grammar_re_set(pool, &any);
        gn_re all = GN_RE_EPS;
        for (unsigned k = 0; k < n; k++) {
            all = gn_grammar_re_cat(pool, one, all);
        }
        return all;
    }
    heads h = {.done = GN_RE_NONE};
    uint32_t step = size >> code->bits;
    for (uint32_t d = 0; d < (uint32_t)1 << code->bits; d++) {
        gn_re rest = tails(pool, r, code, base + d * step, n - 1);
        if (rest != GN_RE_NONE) {
            add_digit(code, head_for(pool, &h, rest), d);
        }
    }
    flush_heads(pool, &h);
    return h.done;
}

static gn_re utf8_tree(gn_re_pool *pool, const ranges *r)
{
    static const digit_code cont = {6, false};
    heads h = {.done = GN_RE_NONE};
    for (uint32_t b = 0; b < 0xf5; b++) {
        uint32_t base = b;
        unsigned n = 0;
        if (b >= 0xf0) {
            base = (b & 7) << 18;
            n = 3;
        } else if (b >= 0xe0) {
            base = (b & 15) << 12;
            n = 2;
        } else if (b >= 0xc2) {
            base = (b & 31) << 6;
            n = 1;
        } else if (b >= 0x80) {
            continue;
        }
        /* Blocks of E0 and F0 begin with what shorter forms write. */
        uint32_t first = b == 0xe0 ? 0x800 : b == 0xf0 ? 0x10000 : base;
        gn_re rest;
        if (first == base) {
            rest = tails(pool, r, &cont, base, n);
        } else {
            heads lead = {.done = GN_RE_NONE};
            uint32_t step = (uint32_t)1 << (6 * (n - 1));
            for (uint32_t d = (first - base) / step; d < 64; d++) {
                gn_re sub = tails(pool, r, &cont, base + d * step, n - 1);
                if (sub != GN_RE_NONE) {
                    add_digit(&cont, head_for(pool, &lead, sub), d);
                }
            }
            flush_heads(pool, &lead);
            rest = lead.done;
        }
        if (rest != GN_RE_NONE) {
            gn_re_set_add(head_for(pool, &h, rest), (uint8_t)b);
        }
    }
    flush_heads(pool, &h);
    return h.done;
}

gn_re gn_grammar_re_chars(gn_re_pool *pool, const gn_re_range *in, size_t n, bool negate)
{
    ranges r;
    if (!normal_form(pool, in, n, negate, &r)) {
        return GN_RE_NONE;
    }
    gn_re re = utf8_tree(pool, &r);
    gn_free(r.v);
    return re;
}

/* ---- JSON's spellings -------------------------------------------------------------------------------- */

static bool holds(const ranges *r, uint32_t c)
{
    size_t i = first_range(r, c);
    return i < r->n && r->v[i].lo <= c;
}

/* \uXXXX of the BMP's members that are no printable ASCII. */
static gn_re escaped_bmp(gn_re_pool *pool, const ranges *r)
{
    static const digit_code hex = {4, true};
    ranges part = {gn_alloc_array(r->n + 2, sizeof *part.v), 0};
    if (part.v == NULL) {
        return gn_grammar_re_nomem(pool);
    }
    for (size_t i = 0; i < r->n; i++) {
        uint32_t lo = r->v[i].lo;
        uint32_t hi = r->v[i].hi > 0xffff ? 0xffff : r->v[i].hi;
        append(&part, lo, hi < 0x1f ? hi : 0x1f);
        append(&part, lo > 0x7f ? lo : 0x7f, hi);
    }
    gn_re digits = tails(pool, &part, &hex, 0, 4);
    gn_free(part.v);
    return gn_grammar_re_cat(pool, gn_grammar_re_literal(pool, "\\u", 2), digits);
}

static gn_re hex_range(gn_re_pool *pool, uint32_t lo, uint32_t hi)
{
    static const digit_code hex = {4, true};
    gn_re_range one = {lo, hi};
    ranges r = {&one, 1};
    return gn_grammar_re_cat(pool, gn_grammar_re_literal(pool, "\\u", 2),
                             tails(pool, &r, &hex, 0, 4));
}

/* Surrogate pairs of lo .. hi, all past the BMP: a first part, whole blocks, a last part. */
static gn_re escaped_pairs(gn_re_pool *pool, uint32_t lo, uint32_t hi)
{
    lo -= 0x10000;
    hi -= 0x10000;
    gn_re sum = GN_RE_NONE;
    while (lo <= hi) {
        uint32_t last = lo;
        uint32_t lo_end = 0x3ff;
        if ((lo & 0x3ff) == 0 && (hi >> 10) - (lo >> 10) + ((hi & 0x3ff) == 0x3ff) >= 1) {
            last = ((hi + 1) >> 10) - 1; /* whole blocks up to this one */
        } else {
            last = lo >> 10;
            lo_end = hi >> 10 == last ? hi & 0x3ff : 0x3ff;
        }
        gn_re one = gn_grammar_re_cat(pool, hex_range(pool, 0xd800 + (lo >> 10), 0xd800 + last),
                                      hex_range(pool, 0xdc00 + (lo & 0x3ff), 0xdc00 + lo_end));
        gn_re pair[2] = {sum, one};
        sum = gn_grammar_re_alt(pool, pair, 2);
        lo = (last << 10 | lo_end) + 1;
    }
    return sum;
}

static gn_re json_spellings(gn_re_pool *pool, const ranges *r)
{
    static const char shorts[][2] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'\b', 'b'},
                                     {'\f', 'f'}, {'\n', 'n'},  {'\r', 'r'}, {'\t', 't'}};
    ranges plain = {gn_alloc_array(r->n + 4, sizeof *plain.v), 0};
    if (plain.v == NULL) {
        return gn_grammar_re_nomem(pool);
    }
    gn_re sum = GN_RE_NONE;
    for (size_t i = 0; i < r->n; i++) {
        uint32_t lo = r->v[i].lo;
        uint32_t hi = r->v[i].hi;
        append(&plain, lo > 0x20 ? lo : 0x20, hi < 0x21 ? hi : 0x21);
        append(&plain, lo > 0x23 ? lo : 0x23, hi < 0x5b ? hi : 0x5b);
        append(&plain, lo > 0x5d ? lo : 0x5d, hi);
        if (hi > 0xffff) {
            gn_re pair[2] = {sum, escaped_pairs(pool, lo > 0x10000 ? lo : 0x10000, hi)};
            sum = gn_grammar_re_alt(pool, pair, 2);
        }
    }
    gn_re_set letters = {{0}};
    bool any = false;
    for (size_t i = 0; i < GN_COUNTOF(shorts); i++) {
        if (holds(r, (uint8_t)shorts[i][0])) {
            gn_re_set_add(&letters, (uint8_t)shorts[i][1]);
            any = true;
        }
    }
    gn_re list[4] = {sum, utf8_tree(pool, &plain), escaped_bmp(pool, r), GN_RE_NONE};
    if (any) {
        list[3] = gn_grammar_re_cat(pool, gn_grammar_re_literal(pool, "\\", 1),
                                    gn_grammar_re_set(pool, &letters));
    }
    gn_free(plain.v);
    return gn_grammar_re_alt(pool, list, 4);
}

gn_re gn_grammar_re_json_chars(gn_re_pool *pool, const gn_re_range *in, size_t n, bool negate)
{
    ranges r;
    if (!normal_form(pool, in, n, negate, &r)) {
        return GN_RE_NONE;
    }
    gn_re re = json_spellings(pool, &r);
    gn_free(r.v);
    return re;
}

gn_re gn_grammar_re_json_literal(gn_re_pool *pool, const char *s, size_t len)
{
    size_t mark = pool->scratch.n;
    for (size_t at = 0; at < len;) {
        uint32_t c = 0;
        size_t used = gn_utf8_decode(s + at, len - at, &c);
        gn_re one;
        if (used == 1 && c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '/') {
            one = gn_grammar_re_literal(pool, s + at, 1);
        } else if (used != 0) {
            gn_re_range self = {c, c};
            ranges r = {&self, 1};
            one = json_spellings(pool, &r);
        } else {
            one = gn_grammar_re_fail(pool, GN_E_FORMAT, "a text is not valid UTF-8");
            used = 1;
        }
        if (!gn_grammar_re_push(pool, &pool->scratch, one)) {
            return GN_RE_NONE;
        }
        at += used;
    }
    gn_re re = GN_RE_EPS;
    while (pool->scratch.n > mark) {
        re = gn_grammar_re_cat(pool, pool->scratch.v[--pool->scratch.n], re);
    }
    return re;
}
