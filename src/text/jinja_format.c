/* Python's two ways to format: "%5.1f" % values, and "{0:>8}".format(values). Both come down to one
 * specification of fill, sign, width, precision and type. */
#include "text/jinja_lib.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_PRECISION 400
#define MAX_NUMBER    1200 /* bytes of one formatted number: 309 digits, the precision, grouping */

typedef struct format_spec {
    const char *fill; /* one character */
    size_t fill_len;
    char align; /* '<' '>' '=' '^', or 0 */
    char sign;  /* '+' ' ' '-', or 0 */
    bool alternate;
    bool zero;
    char group; /* ',' '_', or 0 */
    int64_t width;
    int64_t precision; /* -1: none */
    char type;         /* 0: none */
} format_spec;

static const format_spec PLAIN = {.fill = " ", .fill_len = 1, .precision = -1};

static gn_status write_text(gn_jrun *run, const char *s)
{
    return gn_jinja_write_bytes(run, s, strlen(s));
}

static gn_status write_fill(gn_jrun *run, const format_spec *spec, int64_t n)
{
    for (; n > 0; n--) {
        GN_TRY(gn_jinja_write_bytes(run, spec->fill, spec->fill_len));
    }
    return GN_OK;
}

static gn_status write_padded(gn_jrun *run, const format_spec *spec, const char *s, size_t len,
                              char align)
{
    int64_t pad = spec->width - (int64_t)gn_jinja_count_cp(s, len);
    int64_t left = pad <= 0 || align == '<' ? 0 : align == '^' ? pad / 2 : pad;
    GN_TRY(write_fill(run, spec, left));
    GN_TRY(gn_jinja_write_bytes(run, s, len));
    return write_fill(run, spec, pad - left);
}

/* A number made of sign, prefix ("0x") and digits; '=' pads between prefix and digits. */
static gn_status write_number(gn_jrun *run, const format_spec *spec, bool negative,
                              const char *prefix, const char *digits)
{
    char text[MAX_NUMBER + 8];
    const char *sign = negative ? "-" : spec->sign == '+' ? "+" : spec->sign == ' ' ? " " : "";
    char align = spec->align != 0 ? spec->align : spec->zero ? '=' : '>';
    if (align != '=') {
        int len = snprintf(text, sizeof text, "%s%s%s", sign, prefix, digits);
        return write_padded(run, spec, text, (size_t)len, align);
    }
    size_t len = strlen(sign) + strlen(prefix) + strlen(digits);
    format_spec zeros = *spec;
    if (spec->zero && spec->align == 0) {
        zeros.fill = "0";
        zeros.fill_len = 1;
    }
    GN_TRY(write_text(run, sign));
    GN_TRY(write_text(run, prefix));
    GN_TRY(write_fill(run, &zeros, spec->width - (int64_t)len));
    return write_text(run, digits);
}

/* Put `mark` between groups of `size` digits of the whole part. */
static void group_digits(char *digits, char mark, size_t size)
{
    char text[MAX_NUMBER];
    size_t whole = strspn(digits, "0123456789abcdefABCDEF");
    size_t n = 0;
    if (mark == 0) {
        return;
    }
    for (size_t i = 0; i < whole && n + 2 < sizeof text; i++) {
        if (i != 0 && (whole - i) % size == 0) {
            text[n++] = mark;
        }
        text[n++] = digits[i];
    }
    (void)snprintf(text + n, sizeof text - n, "%s", digits + whole);
    (void)snprintf(digits, MAX_NUMBER, "%s", text);
}

static gn_status write_int(gn_jrun *run, const format_spec *spec, int64_t i)
{
    char digits[MAX_NUMBER];
    char raw[72];
    const char *prefix = "";
    uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    unsigned base = spec->type == 'b'                        ? 2
                    : spec->type == 'o'                      ? 8
                    : spec->type == 'x' || spec->type == 'X' ? 16
                                                             : 10;
    const char *letters = spec->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    size_t at = sizeof raw - 1;
    raw[at] = '\0';
    do {
        raw[--at] = letters[u % base];
        u /= base;
    } while (u != 0);
    if (spec->alternate) {
        prefix = spec->type == 'b'   ? "0b"
                 : spec->type == 'o' ? "0o"
                 : spec->type == 'x' ? "0x"
                 : spec->type == 'X' ? "0X"
                                     : "";
    }
    int64_t n = (int64_t)(sizeof raw - 1 - at);
    int64_t zeros = spec->precision > n ? spec->precision - n : 0;
    memset(digits, '0', (size_t)zeros);
    (void)snprintf(digits + zeros, sizeof digits - (size_t)zeros, "%s", raw + at);
    group_digits(digits, spec->group, base == 10 ? 3 : 4);
    return write_number(run, spec, i < 0, prefix, digits);
}

/* f ≥ 0 as C's printf shows it, with a point whatever the locale has. */
static void print_digits(char digits[MAX_NUMBER], char type, bool alternate, int precision,
                         double f)
{
    const size_t size = MAX_NUMBER;
    switch (type) {
    case 'e': (void)snprintf(digits, size, alternate ? "%#.*e" : "%.*e", precision, f); break;
    case 'E': (void)snprintf(digits, size, alternate ? "%#.*E" : "%.*E", precision, f); break;
    case 'f':
    case 'F': (void)snprintf(digits, size, alternate ? "%#.*f" : "%.*f", precision, f); break;
    case 'G': (void)snprintf(digits, size, alternate ? "%#.*G" : "%.*G", precision, f); break;
    default: (void)snprintf(digits, size, alternate ? "%#.*g" : "%.*g", precision, f); break;
    }
    char *comma = strchr(digits, ',');
    if (comma != NULL) {
        *comma = '.';
    }
}

static gn_status write_float(gn_jrun *run, const format_spec *spec, double f)
{
    char digits[MAX_NUMBER];
    bool percent = spec->type == '%';
    char type = percent ? 'f' : spec->type;
    double size = fabs(percent ? f * 100 : f);
    int precision = spec->precision >= 0 ? (int)spec->precision : 6;
    if (isnan(f) || isinf(f)) {
        bool upper = type == 'F' || type == 'E' || type == 'G';
        const char *name = isnan(f) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
        (void)snprintf(digits, sizeof digits, "%s", name);
    } else if (type == 0 && spec->precision < 0) {
        (void)gn_jinja_float_repr(size, digits);
    } else {
        print_digits(digits, type == 0 ? 'g' : type, spec->alternate, precision, size);
        if (type == 0 && strpbrk(digits, ".e") == NULL) {
            (void)strncat(digits, ".0", 3);
        }
    }
    group_digits(digits, spec->group, 3);
    if (percent) {
        (void)strncat(digits, "%", 2);
    }
    return write_number(run, spec, signbit(f) != 0 && !isnan(f), "", digits);
}

static gn_status check_limits(gn_jrun *run, const format_spec *spec)
{
    if (spec->precision > MAX_PRECISION) {
        return gn_jinja_fail_limit(run, "a precision is limited to %d", MAX_PRECISION);
    }
    return GN_OK;
}

/* ---- "%…" % values ---- */

typedef struct percent_args {
    gn_jval values; /* what stands right of % */
    size_t next;
    bool is_map;
    bool markup;
} percent_args;

static gn_status next_value(gn_jrun *run, percent_args *args, gn_jval *out)
{
    bool tuple = args->values.type == GN_J_TUPLE;
    size_t n = tuple ? args->values.u.list->n : 1;
    if (args->next >= n) {
        return gn_jinja_fail(run, "not enough arguments for format string");
    }
    *out = tuple ? args->values.u.list->items[args->next] : args->values;
    args->next++;
    return GN_OK;
}

static gn_status read_count(gn_jrun *run, percent_args *args, const gn_jstr *s, size_t *at,
                            int64_t *out)
{
    if (*at < s->len && s->data[*at] == '*') {
        gn_jval v;
        (*at)++;
        GN_TRY(next_value(run, args, &v));
        if (!gn_jinja_as_int(v, out)) {
            return gn_jinja_fail(run, "* wants int");
        }
        return GN_OK;
    }
    *out = 0;
    for (; *at < s->len && s->data[*at] >= '0' && s->data[*at] <= '9'; (*at)++) {
        *out = *out * 10 + (s->data[*at] - '0');
        if (*out > INT32_MAX) {
            return gn_jinja_fail(run, "a width or precision is too big");
        }
    }
    return GN_OK;
}

static gn_status read_percent_spec(gn_jrun *run, percent_args *args, const gn_jstr *s, size_t *at,
                                   format_spec *spec)
{
    *spec = PLAIN;
    for (; *at < s->len && strchr("-+ #0", s->data[*at]) != NULL && s->data[*at] != '\0'; (*at)++) {
        char c = s->data[*at];
        spec->align = c == '-' ? '<' : spec->align;
        spec->sign = c == '+' || (c == ' ' && spec->sign == 0) ? c : spec->sign;
        spec->alternate = spec->alternate || c == '#';
        spec->zero = spec->zero || c == '0';
    }
    GN_TRY(read_count(run, args, s, at, &spec->width));
    if (spec->width < 0) {
        spec->align = '<';
        spec->width = spec->width > -INT32_MAX ? -spec->width : INT32_MAX;
    }
    if (*at < s->len && s->data[*at] == '.') {
        (*at)++;
        GN_TRY(read_count(run, args, s, at, &spec->precision));
        spec->precision = spec->precision < 0 ? 0 : spec->precision;
    }
    if (*at < s->len && strchr("hlL", s->data[*at]) != NULL && s->data[*at] != '\0') {
        (*at)++;
    }
    if (*at >= s->len) {
        return gn_jinja_fail(run, "incomplete format");
    }
    spec->type = s->data[(*at)++];
    return GN_OK;
}

static gn_status percent_text(gn_jrun *run, const format_spec *spec, bool markup, gn_jval v)
{
    gn_jval text;
    if (spec->type == 'r' || spec->type == 'a') {
        size_t mark = run->out->len;
        GN_TRY(gn_jinja_write_repr(run, v));
        GN_TRY(gn_jinja_str_captured(run, mark, &text));
    } else {
        GN_TRY(gn_jinja_soft_str(run, v, &text));
    }
    if (markup) {
        GN_TRY(gn_jinja_escape(run, text, &text));
    }
    size_t len = text.u.s->len;
    if (spec->precision >= 0 && spec->precision < (int64_t)text.u.s->n_cp) {
        len = gn_jinja_cp_offset(text.u.s, (size_t)spec->precision);
    }
    return write_padded(run, spec, text.u.s->data, len, spec->align == '<' ? '<' : '>');
}

static gn_status percent_char(gn_jrun *run, const format_spec *spec, gn_jval v)
{
    char bytes[4];
    int64_t cp = 0;
    if (v.type == GN_J_STRING && v.u.s->n_cp == 1) {
        return write_padded(run, spec, v.u.s->data, v.u.s->len, spec->align == '<' ? '<' : '>');
    }
    size_t len = gn_jinja_as_int(v, &cp) && cp >= 0 && cp <= 0x10ffff
                     ? gn_utf8_encode((uint32_t)cp, bytes)
                     : 0;
    if (len == 0) {
        return gn_jinja_fail(run, "%%c requires int or char");
    }
    return write_padded(run, spec, bytes, len, spec->align == '<' ? '<' : '>');
}

static gn_status percent_number(gn_jrun *run, format_spec *spec, gn_jval v)
{
    int64_t i = 0;
    bool integral = strchr("diuxXo", spec->type) != NULL;
    bool decimal = strchr("diu", spec->type) != NULL;
    if (!gn_jinja_is_number(v)) {
        return gn_jinja_fail(run, "%%%c format: a number is required, not %s", spec->type,
                             gn_jinja_type_name((gn_jtype)v.type));
    }
    if (spec->align == '<') {
        spec->zero = false;
    }
    if (!integral) {
        return write_float(run, spec, gn_jinja_number(v));
    }
    if (!gn_jinja_as_int(v, &i)) {
        if (!decimal || !(fabs(v.u.f) < 0x1p63)) {
            return gn_jinja_fail(run, "%%%c format: an integer is required", spec->type);
        }
        i = (int64_t)v.u.f;
    }
    spec->type = decimal ? 'd' : spec->type;
    return write_int(run, spec, i);
}

static gn_status percent_value(gn_jrun *run, const percent_args *args, format_spec *spec, gn_jval v)
{
    GN_TRY(check_limits(run, spec));
    switch (spec->type) {
    case 's':
    case 'r':
    case 'a': return percent_text(run, spec, args->markup, v);
    case 'c': return percent_char(run, spec, v);
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': return percent_number(run, spec, v);
    default: return gn_jinja_fail(run, "unsupported format character");
    }
}

/* The (name) behind a %, looked up in the mapping. */
static gn_status read_key(gn_jrun *run, percent_args *args, const gn_jstr *s, size_t *at,
                          gn_jval *out)
{
    size_t from = *at + 1;
    size_t depth = 1;
    for ((*at)++; *at < s->len && depth > 0; (*at)++) {
        depth += s->data[*at] == '(';
        depth -= s->data[*at] == ')';
    }
    if (depth > 0) {
        return gn_jinja_fail(run, "incomplete format key");
    }
    if (args->values.type != GN_J_DICT) {
        return gn_jinja_fail(run, "format requires a mapping");
    }
    size_t len = *at - 1 - from;
    const gn_jval *v = gn_jinja_dict_get_str(args->values.u.dict, s->data + from, len);
    if (v == NULL) {
        return gn_jinja_fail(run, "the format names a key that is not there");
    }
    *out = *v;
    return GN_OK;
}

gn_status gn_jinja_percent(gn_jrun *run, gn_jval format, gn_jval values, gn_jval *out)
{
    const gn_jstr *s = format.u.s;
    percent_args args = {.values = values, .markup = gn_jis_markup(format)};
    args.is_map = values.type == GN_J_DICT || values.type == GN_J_LIST ||
                  values.type == GN_J_RANGE || values.type == GN_J_UNDEFINED;
    size_t mark = run->out->len;
    for (size_t at = 0; at < s->len;) {
        const char *hit = memchr(s->data + at, '%', s->len - at);
        size_t to = hit != NULL ? (size_t)(hit - s->data) : s->len;
        GN_TRY(gn_jinja_write_bytes(run, s->data + at, to - at));
        at = to + 1;
        if (hit == NULL) {
            break;
        }
        gn_jval v = gn_jnone();
        bool keyed = at < s->len && s->data[at] == '(';
        format_spec spec;
        if (keyed) {
            GN_TRY(read_key(run, &args, s, &at, &v));
        }
        GN_TRY(read_percent_spec(run, &args, s, &at, &spec));
        if (spec.type == '%') {
            GN_TRY(write_text(run, "%"));
            continue;
        }
        if (!keyed) {
            GN_TRY(next_value(run, &args, &v));
        }
        GN_TRY(percent_value(run, &args, &spec, v));
    }
    size_t n = values.type == GN_J_TUPLE ? values.u.list->n : 1;
    if (args.next < n && !args.is_map) {
        return gn_jinja_fail(run, "not all arguments converted during string formatting");
    }
    GN_TRY(gn_jinja_str_captured(run, mark, out));
    out->sub = args.markup;
    return GN_OK;
}

/* ---- "{…}".format(values) ---- */

static bool is_align(char c)
{
    return c == '<' || c == '>' || c == '=' || c == '^';
}

static gn_status parse_spec(gn_jrun *run, const gn_jstr *s, format_spec *spec)
{
    size_t at = 0;
    uint32_t cp = 0;
    *spec = PLAIN;
    size_t first = s->len != 0 ? gn_utf8_decode(s->data, s->len, &cp) : 0;
    if (first != 0 && first < s->len && is_align(s->data[first])) {
        spec->fill = s->data;
        spec->fill_len = first;
        spec->align = s->data[first];
        at = first + 1;
    } else if (s->len != 0 && is_align(s->data[0])) {
        spec->align = s->data[0];
        at = 1;
    }
    if (at < s->len && (s->data[at] == '+' || s->data[at] == '-' || s->data[at] == ' ')) {
        spec->sign = s->data[at++];
    }
    if (at < s->len && s->data[at] == '#') {
        spec->alternate = true;
        at++;
    }
    if (at < s->len && s->data[at] == '0') {
        spec->zero = true;
        at++;
        if (spec->align != 0 && spec->fill == PLAIN.fill) {
            spec->fill = "0";
        }
    }
    percent_args none = {0};
    if (at < s->len && s->data[at] != '*') {
        GN_TRY(read_count(run, &none, s, &at, &spec->width));
    }
    if (at < s->len && (s->data[at] == ',' || s->data[at] == '_')) {
        spec->group = s->data[at++];
    }
    if (at < s->len && s->data[at] == '.') {
        size_t digits = ++at;
        if (at >= s->len || s->data[at] < '0' || s->data[at] > '9') {
            return gn_jinja_fail(run, "Format specifier missing precision");
        }
        (void)digits;
        GN_TRY(read_count(run, &none, s, &at, &spec->precision));
    }
    if (at < s->len) {
        spec->type = s->data[at++];
    }
    if (at < s->len) {
        return gn_jinja_fail(run, "Invalid format specifier");
    }
    return check_limits(run, spec);
}

static gn_status format_string(gn_jrun *run, const format_spec *spec, const gn_jstr *s)
{
    if ((spec->type != 0 && spec->type != 's') || spec->align == '=' || spec->sign != 0 ||
        spec->alternate || spec->group != 0) {
        return gn_jinja_fail(run, "Invalid format specifier for a string");
    }
    size_t len = s->len;
    if (spec->precision >= 0 && spec->precision < (int64_t)s->n_cp) {
        len = gn_jinja_cp_offset(s, (size_t)spec->precision);
    }
    format_spec padded = *spec;
    if (spec->zero && spec->align == 0) {
        padded.fill = "0";
        padded.fill_len = 1;
    }
    return write_padded(run, &padded, s->data, len, spec->align != 0 ? spec->align : '<');
}

static gn_status format_value(gn_jrun *run, gn_jval v, const gn_jstr *text)
{
    format_spec spec;
    int64_t i = 0;
    if (text->len == 0) {
        return gn_jinja_write(run, v);
    }
    GN_TRY(parse_spec(run, text, &spec));
    if (v.type == GN_J_STRING) {
        return format_string(run, &spec, v.u.s);
    }
    bool is_int = gn_jinja_as_int(v, &i);
    if (!is_int && v.type != GN_J_FLOAT) {
        return gn_jinja_fail(run, "unsupported format string passed to %s",
                             gn_jinja_type_name((gn_jtype)v.type));
    }
    spec.type = spec.type == 'n' ? (is_int ? 'd' : 'g') : spec.type;
    if (is_int && (spec.type == 0 || strchr("dbxXo", spec.type) != NULL)) {
        if (spec.precision >= 0) {
            return gn_jinja_fail(run, "Precision not allowed in integer format specifier");
        }
        return write_int(run, &spec, i);
    }
    if (is_int && spec.type == 'c') {
        char bytes[4];
        size_t len = i >= 0 && i <= 0x10ffff ? gn_utf8_encode((uint32_t)i, bytes) : 0;
        if (len == 0) {
            return gn_jinja_fail(run, "%%c arg not in range");
        }
        return write_padded(run, &spec, bytes, len, spec.align != 0 ? spec.align : '<');
    }
    if (spec.type != 0 && strchr("eEfFgG%", spec.type) == NULL) {
        return gn_jinja_fail(run, "Unknown format code '%c'", spec.type);
    }
    return write_float(run, &spec, gn_jinja_number(v));
}

typedef struct fields {
    const gn_jargs *args;
    int64_t next;   /* of automatic numbering */
    bool automatic; /* {} was used */
    bool manual;    /* {0} was used */
    bool markup;
} fields;

static bool all_digits(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9') {
            return false;
        }
    }
    return len != 0;
}

static gn_status first_value(gn_jrun *run, fields *f, const char *name, size_t len, gn_jval *out)
{
    int64_t index = -1;
    if (len == 0) {
        f->automatic = true;
        index = f->next++;
    } else if (all_digits(name, len)) {
        bool overflow;
        gn_jstr digits = {.data = name, .len = len};
        f->manual = true;
        if (!gn_jinja_parse_int(&digits, 10, &index, &overflow) || overflow) {
            index = INT64_MAX;
        }
    }
    if (f->automatic && f->manual) {
        return gn_jinja_fail(run, "automatic and manual field numbering cannot be mixed");
    }
    if (index >= 0) {
        if ((uint64_t)index >= f->args->n_pos) {
            return gn_jinja_fail(run, "a replacement index is out of range");
        }
        *out = f->args->pos[index];
        return GN_OK;
    }
    for (size_t i = 0; i < f->args->n_kw; i++) {
        if (f->args->kw[i].name->len == len && memcmp(f->args->kw[i].name->data, name, len) == 0) {
            *out = f->args->kw[i].value;
            return GN_OK;
        }
    }
    return gn_jinja_fail(run, "the format names an argument that is not there");
}

/* name, name.attr, name[key] … */
static gn_status field_value(gn_jrun *run, fields *f, const char *s, size_t len, gn_jval *out)
{
    size_t at = 0;
    while (at < len && s[at] != '.' && s[at] != '[') {
        at++;
    }
    GN_TRY(first_value(run, f, s, at, out));
    while (at < len) {
        bool attr = s[at] == '.';
        size_t from = ++at;
        while (at < len && (attr ? s[at] != '.' && s[at] != '[' : s[at] != ']')) {
            at++;
        }
        gn_jval name;
        if (at == from || (!attr && at == len)) {
            return gn_jinja_fail(run, "malformed field in a format string");
        }
        GN_TRY(gn_jinja_str(run, s + from, at - from, &name));
        if (attr) {
            GN_TRY(gn_jinja_getattr(run, *out, name.u.s, out));
            continue;
        }
        at++;
        if (at < len && s[at] != '.' && s[at] != '[') {
            return gn_jinja_fail(run, "only '.' or '[' may follow ']' in a format string");
        }
        int64_t index;
        bool overflow;
        if (all_digits(s + from, at - 1 - from) &&
            gn_jinja_parse_int(name.u.s, 10, &index, &overflow) && !overflow) {
            name = gn_jint(index);
        }
        GN_TRY(gn_jinja_getitem(run, *out, name, out));
    }
    return GN_OK;
}

static gn_status format_fields(gn_jrun *run, fields *f, const char *s, size_t len, unsigned depth);

static gn_status format_field(gn_jrun *run, fields *f, const char *s, size_t len, unsigned depth)
{
    size_t name = 0;
    size_t brackets = 0;
    while (name < len && (brackets > 0 || (s[name] != '!' && s[name] != ':'))) {
        brackets += s[name] == '[';
        brackets -= brackets > 0 && s[name] == ']';
        name++;
    }
    gn_jval v;
    GN_TRY(field_value(run, f, s, name, &v));
    size_t at = name;
    if (at < len && s[at] == '!') {
        char how = at + 1 < len ? s[at + 1] : '\0';
        if ((how != 'r' && how != 's' && how != 'a') || (at + 2 < len && s[at + 2] != ':')) {
            return gn_jinja_fail(run, "malformed conversion in a format string");
        }
        size_t mark = run->out->len;
        GN_TRY(how == 's' ? gn_jinja_write(run, v) : gn_jinja_write_repr(run, v));
        GN_TRY(gn_jinja_str_captured(run, mark, &v));
        at += 2;
    }
    gn_jval spec;
    size_t mark = run->out->len;
    if (at < len) {
        GN_TRY(format_fields(run, f, s + at + 1, len - at - 1, depth + 1));
    }
    GN_TRY(gn_jinja_str_captured(run, mark, &spec));
    if (!f->markup) {
        return format_value(run, v, spec.u.s);
    }
    bool safe = gn_jis_markup(v);
    GN_TRY(format_value(run, v, spec.u.s));
    GN_TRY(gn_jinja_str_captured(run, mark, &v));
    if (!safe) {
        GN_TRY(gn_jinja_escape(run, v, &v));
    }
    return gn_jinja_write(run, v);
}

/* Where the field that begins behind a brace ends: at its own closing brace. */
static size_t field_end(const char *s, size_t len, size_t at)
{
    size_t open = 1;
    for (; at < len; at++) {
        open += s[at] == '{';
        open -= s[at] == '}';
        if (open == 0) {
            return at;
        }
    }
    return SIZE_MAX;
}

static gn_status format_fields(gn_jrun *run, fields *f, const char *s, size_t len, unsigned depth)
{
    if (depth > 1) {
        return gn_jinja_fail(run, "Max string recursion exceeded");
    }
    for (size_t at = 0; at < len;) {
        size_t from = at;
        while (at < len && s[at] != '{' && s[at] != '}') {
            at++;
        }
        GN_TRY(gn_jinja_write_bytes(run, s + from, at - from));
        if (at == len) {
            return GN_OK;
        }
        if (at + 1 < len && s[at + 1] == s[at]) {
            GN_TRY(gn_jinja_write_bytes(run, s + at, 1));
            at += 2;
            continue;
        }
        size_t end = s[at] == '{' ? field_end(s, len, at + 1) : SIZE_MAX;
        if (end == SIZE_MAX) {
            return gn_jinja_fail(run, "a single '%c' in a format string", s[at]);
        }
        GN_TRY(format_field(run, f, s + at + 1, end - at - 1, depth));
        at = end + 1;
    }
    return GN_OK;
}

gn_status gn_jinja_str_format(gn_jrun *run, gn_jval format, const gn_jargs *args, gn_jval *out)
{
    fields f = {.args = args, .markup = gn_jis_markup(format)};
    size_t mark = run->out->len;
    GN_TRY(format_fields(run, &f, format.u.s->data, format.u.s->len, 0));
    GN_TRY(gn_jinja_str_captured(run, mark, out));
    out->sub = f.markup;
    return GN_OK;
}
