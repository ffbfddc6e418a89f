/* Decimal bounds as regular expressions over the digits.
 *
 * A bound is brought to whole digits I and fraction digits F, without leading zeros of I (but "0") and trailing zeros
 * of F. That a magnitude is at least I.F is then a choice of where it first differs: in the number of whole
 * digits, at a whole digit, at a fraction digit, or nowhere; at most, likewise. Signs mirror the bounds. */
#include "grammar/number.h"

#include "base/alloc.h"

#include <string.h>

enum { MAX_DIGITS = 400 };

/* A decimal with its point: digits[0 .. whole) "." digits[whole .. n). */
typedef struct decimal {
    bool negative;
    size_t whole, n;
    char digits[MAX_DIGITS + 1];
} decimal;

static bool is_zero(const decimal *d)
{
    return d->whole == 1 && d->n == 1 && d->digits[0] == '0';
}

static bool read_exponent(const char **s, long *out)
{
    bool negative = **s == '-';
    long value = 0;
    if (**s == '-' || **s == '+') {
        (*s)++;
    }
    if (**s < '0' || **s > '9') {
        return false;
    }
    for (; **s >= '0' && **s <= '9'; (*s)++) {
        value = value < 100000 ? value * 10 + (**s - '0') : value;
    }
    *out = negative ? -value : value;
    return true;
}

/* Digits as written, without the point; *point: how many of them stand before it. */
static gn_status read_digits(const char *text, const char **end, char *raw, size_t *n, long *point)
{
    const char *s = text;
    bool seen_point = false;
    *n = 0;
    *point = 0;
    for (;; s++) {
        if (*s == '.' && !seen_point) {
            seen_point = true;
            continue;
        }
        if (*s < '0' || *s > '9') {
            break;
        }
        GN_REQUIRE(*n < MAX_DIGITS, GN_E_LIMIT, "a number of more than %d digits", MAX_DIGITS);
        raw[(*n)++] = *s;
        *point += !seen_point;
    }
    GN_REQUIRE(*n > 0, GN_E_FORMAT, "\"%.40s\" is no number", text);
    *end = s;
    return GN_OK;
}

static gn_status read_decimal(const char *text, decimal *out)
{
    char raw[MAX_DIGITS];
    size_t n = 0;
    long point = 0;
    const char *s = text + (text[0] == '-');
    GN_TRY(read_digits(s, &s, raw, &n, &point));
    if (*s == 'e' || *s == 'E') {
        long exponent = 0;
        s++;
        GN_REQUIRE(read_exponent(&s, &exponent), GN_E_FORMAT, "\"%.40s\" is no number", text);
        point += exponent;
    }
    GN_REQUIRE(*s == '\0', GN_E_FORMAT, "\"%.40s\" is no number", text);
    size_t first = 0;
    while (first < n && raw[first] == '0') {
        first++;
    }
    while (n > first && raw[n - 1] == '0') {
        n--;
    }
    point -= (long)first;
    long digits = (long)(n - first);
    *out = (decimal){.negative = text[0] == '-' && digits > 0, .whole = 1, .n = 1, .digits = "0"};
    if (digits == 0) {
        return GN_OK;
    }
    /* Zeros between the digits and the point are written out. */
    long before = point < 1 ? 1 - point : 0;
    long after = point > digits ? point - digits : 0;
    GN_REQUIRE(before + digits + after <= MAX_DIGITS, GN_E_LIMIT, "a number of more than %d digits",
               MAX_DIGITS);
    out->n = (size_t)(before + digits + after);
    out->whole = (size_t)(point < 1 ? 1 : point);
    memset(out->digits, '0', out->n);
    memcpy(out->digits + before, raw + first, (size_t)digits);
    return GN_OK;
}

static int compare_magnitudes(const decimal *a, const decimal *b)
{
    if (a->whole != b->whole) {
        return a->whole < b->whole ? -1 : 1;
    }
    size_t n = a->n < b->n ? a->n : b->n;
    int order = memcmp(a->digits, b->digits, n);
    return order != 0 ? order : (a->n > n) - (b->n > n);
}

static int compare(const decimal *a, const decimal *b)
{
    if (a->negative != b->negative) {
        return a->negative ? -1 : 1;
    }
    int order = compare_magnitudes(a, b);
    return a->negative ? -order : order;
}

/* ---- expressions ---- */

typedef struct forms {
    gn_re_pool *pool;
    gn_re any_digits; /* [0-9]* */
    gn_re any_tail;   /* (\.[0-9]+)? */
    gn_re alternatives[2 * MAX_DIGITS + 8];
    size_t n;
} forms;

static gn_re digit_between(gn_re_pool *pool, char low, char high)
{
    gn_re_set set = {{0}};
    for (char c = low; c <= high; c++) {
        gn_re_set_add(&set, (uint8_t)c);
    }
    return low <= high ? gn_grammar_re_set(pool, &set) : GN_RE_NONE;
}

static gn_re cat3(forms *f, gn_re a, gn_re b, gn_re c)
{
    return gn_grammar_re_cat(f->pool, a, gn_grammar_re_cat(f->pool, b, c));
}

static gn_re text(forms *f, const char *s, size_t n)
{
    return gn_grammar_re_literal(f->pool, s, n);
}

static gn_re digits(forms *f, uint32_t min, uint32_t max)
{
    return gn_grammar_re_repeat(f->pool, digit_between(f->pool, '0', '9'), min, max);
}

static void add(forms *f, gn_re re)
{
    if (re != GN_RE_NONE) {
        f->alternatives[f->n++] = re;
    }
}

static gn_re take_all(forms *f)
{
    gn_re all = gn_grammar_re_alt(f->pool, f->alternatives, f->n);
    f->n = 0;
    return all;
}

static void init_forms(forms *f, gn_re_pool *pool)
{
    f->pool = pool;
    f->n = 0;
    f->any_digits = digits(f, 0, GN_RE_MANY);
    const gn_re tail[] = {GN_RE_EPS,
                          gn_grammar_re_cat(pool, text(f, ".", 1), digits(f, 1, GN_RE_MANY))};
    f->any_tail = gn_grammar_re_alt(pool, tail, 2);
}

/* A digit other than 0, somewhere in a row of digits. */
static gn_re some_digit(forms *f)
{
    return cat3(f, f->any_digits, digit_between(f->pool, '1', '9'), f->any_digits);
}

/* Same number of whole digits, the first difference at a whole digit that is larger or smaller. */
static void add_whole_differs(forms *f, const decimal *d, bool larger)
{
    for (size_t i = 0; i < d->whole; i++) {
        char c = d->digits[i];
        char low = i == 0 && d->whole > 1 ? '1' : '0';
        gn_re digit = larger ? digit_between(f->pool, (char)(c + 1), '9')
                             : digit_between(f->pool, low, (char)(c - 1));
        gn_re rest = digits(f, (uint32_t)(d->whole - i - 1), (uint32_t)(d->whole - i - 1));
        add(f, digit == GN_RE_NONE ? GN_RE_NONE
                                   : cat3(f, text(f, d->digits, i), digit,
                                          gn_grammar_re_cat(f->pool, rest, f->any_tail)));
    }
}

/* Equal whole digits, the first difference at a fraction digit. */
static void add_fraction_differs(forms *f, const decimal *d, bool larger)
{
    gn_re start = gn_grammar_re_cat(f->pool, text(f, d->digits, d->whole), text(f, ".", 1));
    for (size_t i = d->whole; i < d->n; i++) {
        char c = d->digits[i];
        gn_re digit = larger ? digit_between(f->pool, (char)(c + 1), '9')
                             : digit_between(f->pool, '0', (char)(c - 1));
        gn_re same = text(f, d->digits + d->whole, i - d->whole);
        add(f, digit == GN_RE_NONE
                   ? GN_RE_NONE
                   : cat3(f, gn_grammar_re_cat(f->pool, start, same), digit, f->any_digits));
    }
}

static gn_re at_least(forms *f, const decimal *d, bool exclusive)
{
    gn_re whole = text(f, d->digits, d->whole);
    gn_re first = digit_between(f->pool, '1', '9');
    add(f, cat3(f, first, digits(f, (uint32_t)d->whole, GN_RE_MANY), f->any_tail));
    add_whole_differs(f, d, true);
    add_fraction_differs(f, d, true);
    gn_re point = text(f, ".", 1);
    if (d->n > d->whole) {
        gn_re fraction = text(f, d->digits + d->whole, d->n - d->whole);
        add(f, cat3(f, whole, gn_grammar_re_cat(f->pool, point, fraction),
                    exclusive ? some_digit(f) : f->any_digits));
    } else {
        add(f, exclusive ? cat3(f, whole, point, some_digit(f))
                         : gn_grammar_re_cat(f->pool, whole, f->any_tail));
    }
    return take_all(f);
}

static gn_re at_most(forms *f, const decimal *d, bool exclusive)
{
    gn_re whole = text(f, d->digits, d->whole);
    gn_re zeros = gn_grammar_re_repeat(f->pool, text(f, "0", 1), 0, GN_RE_MANY);
    gn_re point = text(f, ".", 1);
    if (d->whole > 1) {
        add(f, gn_grammar_re_cat(f->pool, text(f, "0", 1), f->any_tail));
        add(f, cat3(f, digit_between(f->pool, '1', '9'), digits(f, 0, (uint32_t)d->whole - 2),
                    f->any_tail));
    }
    add_whole_differs(f, d, false);
    add_fraction_differs(f, d, false);
    bool has_fraction = d->n > d->whole;
    if (has_fraction || !exclusive) {
        add(f, whole);
    }
    /* A fraction that stops early is smaller. */
    for (size_t i = d->whole + 1; i < d->n; i++) {
        add(f, cat3(f, whole, point, text(f, d->digits + d->whole, i - d->whole)));
    }
    if (!exclusive) {
        gn_re fraction =
            has_fraction ? text(f, d->digits + d->whole, d->n - d->whole) : text(f, "0", 1);
        add(f, cat3(f, whole, gn_grammar_re_cat(f->pool, point, fraction), zeros));
    }
    return take_all(f);
}

static gn_re plain(forms *f, bool integer)
{
    gn_re more = gn_grammar_re_cat(f->pool, digit_between(f->pool, '1', '9'), f->any_digits);
    const gn_re whole[] = {text(f, "0", 1), more};
    gn_re zeros = gn_grammar_re_repeat(f->pool, text(f, "0", 1), 1, GN_RE_MANY);
    const gn_re no_fraction[] = {GN_RE_EPS, gn_grammar_re_cat(f->pool, text(f, ".", 1), zeros)};
    return gn_grammar_re_cat(f->pool, gn_grammar_re_alt(f->pool, whole, 2),
                             integer ? gn_grammar_re_alt(f->pool, no_fraction, 2) : f->any_tail);
}

static gn_re both(forms *f, gn_re a, gn_re b)
{
    const gn_re list[] = {a, b};
    return gn_grammar_re_and(f->pool, list, 2);
}

/* Magnitudes y with low ≤ y ≤ high; NULL: no bound. */
static gn_re between(forms *f, const decimal *low, bool low_exclusive, const decimal *high,
                     bool high_exclusive, bool integer)
{
    gn_re re = plain(f, integer);
    if (low != NULL && (low_exclusive || !is_zero(low))) {
        re = both(f, re, at_least(f, low, low_exclusive));
    }
    if (high != NULL) {
        re = both(f, re, at_most(f, high, high_exclusive));
    }
    return re;
}

static gn_re ranges(forms *f, const gn_number_rule *rule, const decimal *min, const decimal *max)
{
    gn_re minus = text(f, "-", 1);
    gn_re positive = GN_RE_NONE;
    gn_re negative = GN_RE_NONE;
    if (max == NULL || !max->negative) {
        bool bounded = min != NULL && !min->negative;
        positive = between(f, bounded ? min : NULL, bounded && rule->min_exclusive, max,
                           rule->max_exclusive, rule->integer);
    }
    if (min == NULL || min->negative || is_zero(min)) {
        bool bounded = max != NULL && (max->negative || is_zero(max));
        negative = between(f, bounded ? max : NULL, bounded && rule->max_exclusive, min,
                           rule->min_exclusive, rule->integer);
    }
    const gn_re list[] = {positive, gn_grammar_re_cat(f->pool, minus, negative)};
    return gn_grammar_re_alt(f->pool, list, negative == GN_RE_NONE ? 1 : 2);
}

static gn_re unbounded(forms *f, bool integer)
{
    const gn_re sign[] = {GN_RE_EPS, text(f, "-", 1)};
    const gn_re mark[] = {text(f, "e", 1), text(f, "E", 1)};
    const gn_re exponent_sign[] = {GN_RE_EPS, text(f, "+", 1), sign[1]};
    const gn_re exponent[] = {GN_RE_EPS, cat3(f, gn_grammar_re_alt(f->pool, mark, 2),
                                              gn_grammar_re_alt(f->pool, exponent_sign, 3),
                                              digits(f, 1, GN_RE_MANY))};
    return cat3(f, gn_grammar_re_alt(f->pool, sign, 2), plain(f, integer),
                integer ? GN_RE_EPS : gn_grammar_re_alt(f->pool, exponent, 2));
}

/* Texts, with or without sign, whose value is a multiple of the step. */
static gn_status multiples(forms *f, const char *step_text, gn_re *out)
{
    decimal *step = gn_calloc(1, sizeof *step);
    if (step == NULL) {
        return gn_alloc_failed();
    }
    uint64_t value = 0;
    gn_status status = read_decimal(step_text, step);
    for (size_t i = 0; i < step->n && status == GN_OK; i++) {
        value = value * 10 + (uint64_t)(step->digits[i] - '0');
        if (value > (uint64_t)1 << 40) {
            status = gn_base_fail(GN_E_LIMIT, "multipleOf: a step of more than 2^40 units");
        }
    }
    size_t scale = step->n - step->whole;
    bool bad = status == GN_OK && (step->negative || is_zero(step));
    gn_free(step);
    GN_TRY(status);
    GN_REQUIRE(!bad, GN_E_FORMAT, "multipleOf: expected a number above 0");
    GN_REQUIRE(scale <= 18, GN_E_LIMIT, "multipleOf: more than 18 digits after the point");
    const gn_re sign[] = {GN_RE_EPS, text(f, "-", 1)};
    *out = gn_grammar_re_cat(f->pool, gn_grammar_re_alt(f->pool, sign, 2),
                             gn_grammar_re_multiple(f->pool, value, (uint32_t)scale));
    return GN_OK;
}

static gn_status build(forms *f, decimal *bounds, const gn_number_rule *rule, gn_re *out)
{
    const decimal *min = rule->min != NULL ? &bounds[0] : NULL;
    const decimal *max = rule->max != NULL ? &bounds[1] : NULL;
    if (min != NULL) {
        GN_TRY(read_decimal(rule->min, &bounds[0]));
    }
    if (max != NULL) {
        GN_TRY(read_decimal(rule->max, &bounds[1]));
    }
    if (min == NULL && max == NULL && rule->multiple_of == NULL) {
        *out = unbounded(f, rule->integer);
        return GN_OK;
    }
    int order = min != NULL && max != NULL ? compare(min, max) : -1;
    if (order > 0 || (order == 0 && (rule->min_exclusive || rule->max_exclusive))) {
        *out = GN_RE_NONE;
        return GN_OK;
    }
    gn_re re = ranges(f, rule, min, max);
    if (rule->multiple_of != NULL) {
        gn_re steps = GN_RE_NONE;
        GN_TRY(multiples(f, rule->multiple_of, &steps));
        re = both(f, re, steps);
    }
    *out = gn_grammar_re_min_len(f->pool, re) == GN_RE_NEVER ? GN_RE_NONE : re;
    return GN_OK;
}

gn_status gn_grammar_number(gn_re_pool *pool, const gn_number_rule *rule, gn_re *out)
{
    forms *f = gn_calloc(1, sizeof *f);
    decimal *bounds = gn_calloc(2, sizeof *bounds);
    gn_status status = f != NULL && bounds != NULL ? GN_OK : gn_alloc_failed();
    if (status == GN_OK) {
        init_forms(f, pool);
        status = build(f, bounds, rule, out);
    }
    gn_free(f);
    gn_free(bounds);
    return status == GN_OK ? gn_grammar_re_status(pool) : status;
}
