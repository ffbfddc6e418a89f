/* Filters on text and numbers, and those that work on anything. */
#include "text/jinja_lib.h"

#include "base/utf8.h"
#include "text/jinja_lex.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

static gn_status none_wanted(gn_jrun *run, const char *func, const gn_jargs *args)
{
    return gn_jinja_bind(run, func, args, NULL, 0, 0, NULL);
}

static gn_status want_int(gn_jrun *run, const char *func, gn_jval v, int64_t *out)
{
    if (gn_jinja_as_int(v, out)) {
        return GN_OK;
    }
    return gn_jinja_fail(run, "%s needs an integer, found %s", func,
                         gn_jinja_type_name((gn_jtype)v.type));
}

/* Apply a method of str, whose name is the filter's, to soft_str(in). */
static gn_status by_method(gn_jrun *run, const char *name, gn_jval in, const gn_jargs *args,
                           gn_jval *out)
{
    gn_jval text;
    gn_jval method;
    bool found;
    gn_jstr key = {.data = name, .len = strlen(name)};
    GN_TRY(gn_jinja_soft_str(run, in, &text));
    GN_TRY(gn_jinja_str_attribute(run, text, &key, &method, &found));
    return gn_jinja_call(run, method, args, out);
}

static gn_status filter_upper(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    return by_method(run, "upper", in, args, out);
}

static gn_status filter_lower(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    return by_method(run, "lower", in, args, out);
}

static gn_status filter_capitalize(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    return by_method(run, "capitalize", in, args, out);
}

static gn_status filter_trim(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"chars"};
    gn_jval chars = gn_jnone();
    GN_TRY(gn_jinja_bind(run, "trim", args, names, 1, 0, &chars));
    return by_method(run, "strip", in, &(gn_jargs){.pos = &chars, .n_pos = 1}, out);
}

static gn_status filter_center(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"width"};
    gn_jval width = gn_jint(80);
    GN_TRY(gn_jinja_bind(run, "center", args, names, 1, 0, &width));
    return by_method(run, "center", in, &(gn_jargs){.pos = &width, .n_pos = 1}, out);
}

static bool starts_word(uint32_t cp)
{
    return cp == '-' || cp == '(' || cp == '{' || cp == '[' || cp == '<' || gn_jinja_is_space(cp);
}

/* Unlike str.title(), words begin only behind whitespace and opening brackets. */
static gn_status filter_title(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    const gn_jstr *s;
    GN_TRY(none_wanted(run, "title", args));
    GN_TRY(gn_jinja_to_str(run, in, &s));
    size_t mark = run->out->len;
    for (size_t at = 0; at < s->len;) {
        uint32_t cp = 0;
        at += gn_utf8_decode(s->data + at, s->len - at, &cp);
        GN_TRY(gn_jinja_write_case(run, cp, GN_J_UPPER));
        bool separator = starts_word(cp);
        size_t from = at;
        while (at < s->len) {
            size_t used = gn_utf8_decode(s->data + at, s->len - at, &cp);
            if (starts_word(cp) != separator) {
                break;
            }
            at += used;
        }
        GN_TRY(gn_jinja_write_cased(run, s->data + from, at - from, GN_J_LOWER));
    }
    return gn_jinja_str_captured(run, mark, out);
}

static gn_status filter_string(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(none_wanted(run, "string", args));
    return gn_jinja_soft_str(run, in, out);
}

static gn_status filter_safe(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(none_wanted(run, "safe", args));
    GN_TRY(gn_jinja_soft_str(run, in, out));
    out->sub = 1;
    return GN_OK;
}

static gn_status filter_escape(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(none_wanted(run, "escape", args));
    return gn_jinja_escape(run, in, out);
}

static gn_status filter_forceescape(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(none_wanted(run, "forceescape", args));
    in.sub = in.type == GN_J_STRING ? 0 : in.sub;
    return gn_jinja_escape(run, in, out);
}

static gn_status filter_default(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"default_value", "boolean"};
    gn_jval arg[2];
    GN_TRY(gn_jinja_str_view(run, "", 0, &arg[0]));
    arg[1] = gn_jbool(false);
    GN_TRY(gn_jinja_bind(run, "default", args, names, 2, 0, arg));
    bool absent = in.type == GN_J_UNDEFINED || (gn_jinja_truth(arg[1]) && !gn_jinja_truth(in));
    *out = absent ? arg[0] : in;
    return GN_OK;
}

static gn_status filter_replace(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"old", "new", "count"};
    gn_jval arg[3] = {gn_jnone(), gn_jnone(), gn_jnone()};
    const gn_jstr *text[3];
    int64_t max = -1;
    GN_TRY(gn_jinja_bind(run, "replace", args, names, 3, 2, arg));
    GN_TRY(gn_jinja_to_str(run, in, &text[0]));
    GN_TRY(gn_jinja_to_str(run, arg[0], &text[1]));
    GN_TRY(gn_jinja_to_str(run, arg[1], &text[2]));
    if (arg[2].type != GN_J_NONE) {
        GN_TRY(want_int(run, "replace", arg[2], &max));
    }
    return gn_jinja_replace(run, text[0], text[1], text[2], max, out);
}

static gn_status write_spaces(gn_jrun *run, int64_t n)
{
    for (; n > 0; n--) {
        GN_TRY(gn_jinja_write_bytes(run, " ", 1));
    }
    return GN_OK;
}

static gn_status write_indent(gn_jrun *run, gn_jval width)
{
    int64_t n = 0;
    if (width.type == GN_J_STRING) {
        return gn_jinja_write(run, width);
    }
    GN_TRY(want_int(run, "indent", width, &n));
    return write_spaces(run, n);
}

static gn_status filter_indent(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"width", "first", "blank"};
    gn_jval arg[3] = {gn_jint(4), gn_jbool(false), gn_jbool(false)};
    GN_TRY(gn_jinja_bind(run, "indent", args, names, 3, 0, arg));
    if (in.type == GN_J_UNDEFINED) {
        return gn_jinja_fail_undefined(run, in);
    }
    if (in.type != GN_J_STRING) {
        return gn_jinja_fail(run, "indent needs a string, found %s",
                             gn_jinja_type_name((gn_jtype)in.type));
    }
    if (in.sub != 0 && arg[0].type == GN_J_STRING) {
        GN_TRY(gn_jinja_escape(run, arg[0], &arg[0]));
    }
    const gn_jstr *s = in.u.s;
    size_t mark = run->out->len;
    if (gn_jinja_truth(arg[1])) {
        GN_TRY(write_indent(run, arg[0]));
    }
    /* Python cuts s + "\n" into lines, so a last newline leaves an empty line behind it. */
    for (size_t at = 0;;) {
        size_t line;
        size_t end;
        gn_jinja_line(s->data + at, s->len - at, &line, &end);
        GN_TRY(gn_jinja_write_bytes(run, s->data + at, line));
        at += line + end;
        if (end == 0 || (at == s->len && s->data[at - 1] == '\r')) {
            break; /* "\r" and the added "\n" are one line end */
        }
        size_t next;
        size_t next_end;
        gn_jinja_line(s->data + at, s->len - at, &next, &next_end);
        GN_TRY(gn_jinja_write_bytes(run, "\n", 1));
        if (next != 0 || gn_jinja_truth(arg[2])) {
            GN_TRY(write_indent(run, arg[0]));
        }
    }
    GN_TRY(gn_jinja_str_captured(run, mark, out));
    out->sub = in.sub;
    return GN_OK;
}

static gn_status filter_truncate(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"length", "killwords", "end", "leeway"};
    gn_jval arg[4] = {gn_jint(255), gn_jbool(false), gn_jnone(), gn_jint(5)};
    int64_t length;
    int64_t leeway = 5;
    GN_TRY(gn_jinja_str_view(run, "...", 3, &arg[2]));
    GN_TRY(gn_jinja_bind(run, "truncate", args, names, 4, 0, arg));
    GN_TRY(want_int(run, "truncate", arg[0], &length));
    if (arg[3].type != GN_J_NONE) {
        GN_TRY(want_int(run, "truncate", arg[3], &leeway));
    }
    if (arg[2].type != GN_J_STRING) {
        return gn_jinja_fail(run, "truncate needs a string as end mark");
    }
    size_t length_in;
    GN_TRY(gn_jinja_length(run, in, &length_in));
    int64_t n = (int64_t)length_in;
    int64_t n_end = (int64_t)arg[2].u.s->n_cp;
    if (length < n_end || leeway < 0) {
        return gn_jinja_fail(run, "truncate: the length is shorter than what marks the end");
    }
    if (n <= leeway || n - leeway <= length) {
        *out = in;
        return GN_OK;
    }
    if (in.type != GN_J_STRING) {
        return gn_jinja_fail(run, "truncate needs a string, found %s",
                             gn_jinja_type_name((gn_jtype)in.type));
    }
    size_t keep = gn_jinja_cp_offset(in.u.s, (size_t)(length - n_end));
    for (size_t i = keep; i > 0 && !gn_jinja_truth(arg[1]); i--) {
        if (in.u.s->data[i - 1] == ' ') {
            keep = i - 1;
            break;
        }
    }
    gn_jval head;
    GN_TRY(gn_jinja_str_view(run, in.u.s->data, keep, &head));
    head.sub = in.sub;
    return gn_jinja_binary(run, "+", head, arg[2], out);
}

static bool is_word_cp(uint32_t cp)
{
    if (cp < 128) {
        return cp == '_' || (cp >= '0' && cp <= '9') || ((cp | 0x20) >= 'a' && (cp | 0x20) <= 'z');
    }
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)cp);
    return (cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_LO) ||
           (cat >= UTF8PROC_CATEGORY_ND && cat <= UTF8PROC_CATEGORY_NO);
}

static gn_status filter_wordcount(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    const gn_jstr *s;
    int64_t n = 0;
    bool inside = false;
    GN_TRY(none_wanted(run, "wordcount", args));
    GN_TRY(gn_jinja_to_str(run, in, &s));
    for (size_t at = 0; at < s->len;) {
        uint32_t cp = 0;
        size_t used = gn_utf8_decode(s->data + at, s->len - at, &cp);
        bool word = is_word_cp(cp);
        n += word && !inside;
        inside = word;
        at += used != 0 ? used : 1;
    }
    *out = gn_jint(n);
    return GN_OK;
}

static gn_status write_quoted(gn_jrun *run, gn_jval v, bool for_query)
{
    static const char digits[] = "0123456789ABCDEF";
    const gn_jstr *s;
    GN_TRY(gn_jinja_to_str(run, v, &s));
    for (size_t i = 0; i < s->len; i++) {
        unsigned char c = (unsigned char)s->data[i];
        bool plain = (c < 128 && is_word_cp(c)) || c == '.' || c == '-' || c == '~' ||
                     (c == '/' && !for_query);
        char text[3] = {(char)c, digits[c & 15], '\0'};
        if (!plain) {
            text[0] = c == ' ' && for_query ? '+' : '%';
            text[1] = digits[c >> 4];
            text[2] = digits[c & 15];
        }
        GN_TRY(gn_jinja_write_bytes(run, text, plain || text[0] == '+' ? 1 : 3));
    }
    return GN_OK;
}

static gn_status filter_urlencode(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    gn_jcursor cursor;
    size_t mark = run->out->len;
    GN_TRY(none_wanted(run, "urlencode", args));
    if (in.type == GN_J_STRING || !gn_jinja_is_iterable(in)) {
        GN_TRY(write_quoted(run, in, false));
        return gn_jinja_str_captured(run, mark, out);
    }
    if (in.type == GN_J_DICT) {
        in = (gn_jval){.type = GN_J_VIEW, .sub = GN_J_ITEMS, .u.dict = in.u.dict};
    }
    GN_TRY(gn_jinja_iterate(run, in, &cursor));
    for (bool first = true;; first = false) {
        gn_jval item;
        gn_jlist *pair;
        bool more;
        GN_TRY(gn_jinja_next(run, &cursor, &item, &more));
        if (!more) {
            return gn_jinja_str_captured(run, mark, out);
        }
        GN_TRY(gn_jinja_items(run, item, &pair));
        if (pair->n != 2) {
            return gn_jinja_fail(run, "urlencode needs pairs");
        }
        GN_TRY(gn_jinja_write_bytes(run, "&", first ? 0 : 1));
        GN_TRY(write_quoted(run, pair->items[0], true));
        GN_TRY(gn_jinja_write_bytes(run, "=", 1));
        GN_TRY(write_quoted(run, pair->items[1], true));
    }
}

static gn_status filter_xmlattr(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"autospace"};
    gn_jval space = gn_jbool(true);
    GN_TRY(gn_jinja_bind(run, "xmlattr", args, names, 1, 0, &space));
    if (in.type != GN_J_DICT) {
        return gn_jinja_fail(run, "xmlattr needs a dict, found %s",
                             gn_jinja_type_name((gn_jtype)in.type));
    }
    size_t mark = run->out->len;
    bool first = true;
    for (size_t i = 0; i < in.u.dict->n; i++) {
        gn_jval key = in.u.dict->entries[i].key;
        gn_jval value = in.u.dict->entries[i].value;
        if (value.type == GN_J_NONE || value.type == GN_J_UNDEFINED) {
            continue;
        }
        if (key.type != GN_J_STRING) {
            return gn_jinja_fail(run, "xmlattr needs names that are strings");
        }
        for (size_t k = 0; k < key.u.s->len; k++) {
            if (strchr(" \t\n\r\f\v/>=", key.u.s->data[k]) != NULL) {
                return gn_jinja_fail(run, "Invalid character in attribute name");
            }
        }
        GN_TRY(gn_jinja_escape(run, key, &key));
        GN_TRY(gn_jinja_escape(run, value, &value));
        GN_TRY(gn_jinja_write_bytes(run, " ", !first || gn_jinja_truth(space) ? 1 : 0));
        GN_TRY(gn_jinja_write(run, key));
        GN_TRY(gn_jinja_write_bytes(run, "=\"", 2));
        GN_TRY(gn_jinja_write(run, value));
        GN_TRY(gn_jinja_write_bytes(run, "\"", 1));
        first = false;
    }
    return gn_jinja_str_captured(run, mark, out);
}

/* ---- numbers ---- */

static bool float_to_int(double f, int64_t *out)
{
    if (!(f > -0x1p63 && f < 0x1p63)) {
        return false;
    }
    *out = (int64_t)f;
    return true;
}

static gn_status filter_int(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"default", "base"};
    gn_jval arg[2] = {gn_jint(0), gn_jint(10)};
    int64_t base;
    int64_t i = 0;
    double f = NAN;
    bool overflow = false;
    GN_TRY(gn_jinja_bind(run, "int", args, names, 2, 0, arg));
    GN_TRY(want_int(run, "int", arg[1], &base));
    if (in.type == GN_J_UNDEFINED) {
        return gn_jinja_fail_undefined(run, in);
    }
    *out = arg[0];
    if (in.type == GN_J_STRING) {
        if ((base == 0 || (base >= 2 && base <= 36)) &&
            gn_jinja_parse_int(in.u.s, (int)base, &i, &overflow)) {
            if (overflow) {
                return gn_jinja_fail(run, "the integer does not fit into 64 bits");
            }
            *out = gn_jint(i);
            return GN_OK;
        }
        if (!gn_jinja_parse_float(in.u.s, &f) || !isfinite(f)) {
            return GN_OK;
        }
    } else if (in.type == GN_J_FLOAT) {
        f = in.u.f;
        if (isinf(f)) {
            return gn_jinja_fail(run, "cannot convert float infinity to integer");
        }
    } else if (gn_jinja_as_int(in, &i)) {
        *out = gn_jint(i);
        return GN_OK;
    }
    if (isnan(f)) {
        return GN_OK;
    }
    if (!float_to_int(f, &i)) {
        return gn_jinja_fail(run, "the integer does not fit into 64 bits");
    }
    *out = gn_jint(i);
    return GN_OK;
}

static gn_status filter_float(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"default"};
    gn_jval fallback = gn_jfloat(0);
    double f;
    GN_TRY(gn_jinja_bind(run, "float", args, names, 1, 0, &fallback));
    if (in.type == GN_J_UNDEFINED) {
        return gn_jinja_fail_undefined(run, in);
    }
    *out = fallback;
    if (gn_jinja_is_number(in)) {
        *out = gn_jfloat(gn_jinja_number(in));
    } else if (in.type == GN_J_STRING && gn_jinja_parse_float(in.u.s, &f)) {
        *out = gn_jfloat(f);
    }
    return GN_OK;
}

static gn_status want_number(gn_jrun *run, const char *func, gn_jval v)
{
    if (v.type == GN_J_UNDEFINED) {
        return gn_jinja_fail_undefined(run, v);
    }
    if (!gn_jinja_is_number(v)) {
        return gn_jinja_fail(run, "%s needs a number, found %s", func,
                             gn_jinja_type_name((gn_jtype)v.type));
    }
    return GN_OK;
}

static gn_status filter_abs(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(none_wanted(run, "abs", args));
    GN_TRY(want_number(run, "abs", in));
    int64_t i;
    if (!gn_jinja_as_int(in, &i)) {
        *out = gn_jfloat(fabs(in.u.f));
        return GN_OK;
    }
    *out = gn_jint(i);
    return i < 0 ? gn_jinja_negate(run, in, out) : GN_OK;
}

/* Python rounds the exact decimal value half to even, which is what printing digits does too. */
static gn_status round_common(gn_jrun *run, gn_jval in, int64_t digits, gn_jval *out)
{
    char text[400];
    int64_t i;
    if (gn_jinja_as_int(in, &i)) {
        if (digits >= 0 || i == 0) {
            *out = gn_jint(i);
            return GN_OK;
        }
        int64_t unit = 1;
        for (; digits < 0; digits++) {
            if (__builtin_mul_overflow(unit, 10, &unit)) {
                *out = gn_jint(0);
                return GN_OK;
            }
        }
        int64_t rest = ((i % unit) + unit) % unit;
        int64_t down;
        bool up = rest > unit - rest;
        if (__builtin_sub_overflow(i, rest, &down)) {
            return gn_jinja_fail(run, "the result does not fit into 64 bits");
        }
        up = up || (rest == unit - rest && (down / unit) % 2 != 0);
        if (up && __builtin_add_overflow(down, unit, &down)) {
            return gn_jinja_fail(run, "the result does not fit into 64 bits");
        }
        *out = gn_jint(down);
        return GN_OK;
    }
    if (!isfinite(in.u.f) || digits > 323) {
        *out = in;
        return GN_OK;
    }
    if (digits < -308) {
        *out = gn_jfloat(copysign(0.0, in.u.f));
        return GN_OK;
    }
    if (digits >= 0) {
        int len = snprintf(text, sizeof text, "%.*f", (int)digits, in.u.f);
        if (len < 0 || (size_t)len >= sizeof text) { /* so many digits change nothing */
            *out = in;
            return GN_OK;
        }
        for (int k = 0; k < len; k++) {
            text[k] = text[k] == ',' ? '.' : text[k];
        }
        *out = gn_jfloat(gn_jinja_parse_double(text, (size_t)len));
        return GN_OK;
    }
    double unit = pow(10.0, (double)-digits);
    double scaled = in.u.f / unit;
    double rounded = nearbyint(scaled);
    *out = gn_jfloat(rounded * unit);
    return GN_OK;
}

static gn_status filter_round(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"precision", "method"};
    gn_jval arg[2] = {gn_jint(0), gn_jnone()};
    int64_t digits;
    GN_TRY(gn_jinja_bind(run, "round", args, names, 2, 0, arg));
    GN_TRY(want_int(run, "round", arg[0], &digits));
    bool ceiling = gn_jis_str(arg[1], "ceil", 4);
    if (arg[1].type != GN_J_NONE && !ceiling && !gn_jis_str(arg[1], "floor", 5) &&
        !gn_jis_str(arg[1], "common", 6)) {
        return gn_jinja_fail(run, "method must be common, ceil or floor");
    }
    GN_TRY(want_number(run, "round", in));
    if (arg[1].type == GN_J_NONE || gn_jis_str(arg[1], "common", 6)) {
        return round_common(run, in, digits, out);
    }
    gn_jval power;
    gn_jval scaled;
    int64_t whole;
    GN_TRY(gn_jinja_binary(run, "**", gn_jint(10), arg[0], &power));
    GN_TRY(gn_jinja_binary(run, "*", in, power, &scaled));
    double f = gn_jinja_number(scaled);
    if (gn_jinja_as_int(scaled, &whole)) {
        return gn_jinja_binary(run, "/", gn_jint(whole), power, out);
    }
    f = ceiling ? ceil(f) : floor(f);
    if (!isfinite(f)) {
        return gn_jinja_fail(run, "cannot convert float infinity or NaN to integer");
    }
    scaled = float_to_int(f, &whole) ? gn_jint(whole) : gn_jfloat(f);
    return gn_jinja_binary(run, "/", scaled, power, out);
}

static gn_status filter_filesizeformat(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"binary"};
    static const char prefixes[] = "kMGTPEZY";
    gn_jval binary = gn_jbool(false);
    double bytes;
    char text[64];
    GN_TRY(gn_jinja_bind(run, "filesizeformat", args, names, 1, 0, &binary));
    if (in.type == GN_J_STRING && gn_jinja_parse_float(in.u.s, &bytes)) {
        in = gn_jfloat(bytes);
    }
    GN_TRY(want_number(run, "filesizeformat", in));
    bytes = gn_jinja_number(in);
    bool is_binary = gn_jinja_truth(binary);
    double base = is_binary ? 1024 : 1000;
    if (bytes == 1) {
        return gn_jinja_str_view(run, "1 Byte", 6, out);
    }
    if (bytes < base) {
        (void)snprintf(text, sizeof text, "%.0f Bytes", trunc(bytes));
        return gn_jinja_str(run, text, strlen(text), out);
    }
    double unit = base;
    size_t k = 0;
    for (; k < 8; k++) {
        unit *= base;
        if (bytes < unit || k == 7) {
            break;
        }
    }
    char prefix = is_binary && prefixes[k] == 'k' ? 'K' : prefixes[k];
    (void)snprintf(text, sizeof text, "%.1f %c%sB", base * bytes / unit, prefix,
                   is_binary ? "i" : "");
    return gn_jinja_str(run, text, strlen(text), out);
}

/* ---- the rest ---- */

static gn_status filter_attr(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"name"};
    gn_jval name;
    bool found;
    GN_TRY(gn_jinja_bind(run, "attr", args, names, 1, 1, &name));
    if (name.type != GN_J_STRING) {
        return gn_jinja_fail(run, "attr needs a name");
    }
    if (in.type == GN_J_UNDEFINED) {
        return gn_jinja_fail_undefined(run, in);
    }
    GN_TRY(gn_jinja_attribute(run, in, name.u.s, out, &found));
    if (!found) {
        *out = (gn_jval){
            .type = GN_J_UNDEFINED, .sub = GN_J_UNDEF_ATTR, .of = in.type, .u.s = name.u.s};
    }
    return GN_OK;
}

static gn_status filter_format(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    gn_jval format;
    gn_jval values;
    if (args->n_pos != 0 && args->n_kw != 0) {
        return gn_jinja_fail(run, "format takes positional or keyword arguments, not both");
    }
    GN_TRY(gn_jinja_soft_str(run, in, &format));
    if (args->n_kw != 0) {
        GN_TRY(gn_jinja_dict_new(run, GN_J_DICT, args->n_kw, &values));
        for (size_t i = 0; i < args->n_kw; i++) {
            GN_TRY(gn_jinja_dict_set(run, values.u.dict, gn_jstring(args->kw[i].name),
                                     args->kw[i].value));
        }
    } else {
        GN_TRY(gn_jinja_list_new(run, GN_J_TUPLE, args->n_pos, &values));
        for (size_t i = 0; i < args->n_pos; i++) {
            GN_TRY(gn_jinja_list_push(run, values.u.list, args->pos[i]));
        }
    }
    return gn_jinja_percent(run, format, values, out);
}

const gn_jfilter GN_JINJA_TEXT_FILTERS[] = {
    {"abs", filter_abs},
    {"attr", filter_attr},
    {"capitalize", filter_capitalize},
    {"center", filter_center},
    {"d", filter_default},
    {"default", filter_default},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"filesizeformat", filter_filesizeformat},
    {"float", filter_float},
    {"forceescape", filter_forceescape},
    {"format", filter_format},
    {"indent", filter_indent},
    {"int", filter_int},
    {"lower", filter_lower},
    {"replace", filter_replace},
    {"round", filter_round},
    {"safe", filter_safe},
    {"string", filter_string},
    {"title", filter_title},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"upper", filter_upper},
    {"urlencode", filter_urlencode},
    {"wordcount", filter_wordcount},
    {"xmlattr", filter_xmlattr},
    {NULL, NULL},
};
