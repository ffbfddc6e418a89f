/* Values as text: what Python's str() and repr() give. */
#include "text/jinja_lib.h"

#include "base/utf8.h"
#include "text/jinja_ast.h"
#include "text/jinja_eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

gn_status gn_jinja_write_bytes(gn_jrun *run, const char *s, size_t len)
{
    size_t used = run->out->len - run->out_base;
    if (len > run->max_output - used) {
        return gn_jinja_fail_limit(run, "the output is limited to %zu bytes", run->max_output);
    }
    GN_TRY(gn_jinja_step_bytes(run, len));
    return gn_buf_append(run->out, s, len);
}

/* The shortest digits that read back as f, laid out as Python does: an exponent from 1e16 on and below
 * 1e-4, and always a point or an exponent. */
size_t gn_jinja_float_repr(double f, char out[32])
{
    if (isnan(f) || isinf(f)) {
        return (size_t)snprintf(out, 32, "%s", isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
    }
    char text[32];
    int digits = 1;
    for (; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*e", digits - 1, f);
        if (strtod(text, NULL) == f) {
            break;
        }
    }
    char mantissa[20];
    size_t n = 0;
    const char *at = text + (text[0] == '-');
    for (; *at != 'e' && n < sizeof mantissa; at++) { /* whatever the locale's point is */
        if (*at >= '0' && *at <= '9') {
            mantissa[n++] = *at;
        }
    }
    int exponent = atoi(strchr(text, 'e') + 1);
    size_t len = 0;
    if (text[0] == '-') {
        out[len++] = '-';
    }
    if (exponent >= 16 || exponent < -4) {
        out[len++] = mantissa[0];
        if (n > 1) {
            out[len++] = '.';
            memcpy(out + len, mantissa + 1, n - 1);
            len += n - 1;
        }
        return len + (size_t)snprintf(out + len, 32 - len, "e%c%02d", exponent < 0 ? '-' : '+',
                                      abs(exponent));
    }
    if (exponent < 0) {
        out[len++] = '0';
        out[len++] = '.';
        for (int k = -1; k > exponent; k--) {
            out[len++] = '0';
        }
        memcpy(out + len, mantissa, n);
        len += n;
    } else {
        for (int k = 0; k <= exponent || k < (int)n; k++) {
            if (k == exponent + 1) {
                out[len++] = '.';
            }
            out[len++] = k < (int)n ? mantissa[k] : '0';
        }
        if ((int)n <= exponent + 1) {
            out[len++] = '.';
            out[len++] = '0';
        }
    }
    out[len] = '\0';
    return len;
}

bool gn_jinja_is_printable(uint32_t cp)
{
    if (cp < 127) {
        return cp >= 32;
    }
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
    }
}

static gn_status write_text(gn_jrun *run, const char *s)
{
    return gn_jinja_write_bytes(run, s, strlen(s));
}

static gn_status write_str_repr(gn_jrun *run, const gn_jstr *s)
{
    bool single = memchr(s->data, '\'', s->len) != NULL;
    bool dbl = memchr(s->data, '"', s->len) != NULL;
    char quote = single && !dbl ? '"' : '\'';
    GN_TRY(gn_jinja_write_bytes(run, &quote, 1));
    size_t from = 0;
    size_t at = 0;
    while (at < s->len) {
        uint32_t cp = 0;
        size_t used = gn_utf8_decode(s->data + at, s->len - at, &cp);
        used = used != 0 ? used : 1;
        char escape[16] = "";
        if (cp == (uint32_t)quote || cp == '\\') {
            (void)snprintf(escape, sizeof escape, "\\%c", (char)cp);
        } else if (cp == '\n' || cp == '\r' || cp == '\t') {
            (void)snprintf(escape, sizeof escape, "\\%c",
                           cp == '\n'   ? 'n'
                           : cp == '\r' ? 'r'
                                        : 't');
        } else if (!gn_jinja_is_printable(cp)) {
            const char *fmt = cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x";
            (void)snprintf(escape, sizeof escape, fmt, cp);
        }
        if (escape[0] != '\0') {
            GN_TRY(gn_jinja_write_bytes(run, s->data + from, at - from));
            GN_TRY(write_text(run, escape));
            from = at + used;
        }
        at += used;
    }
    GN_TRY(gn_jinja_write_bytes(run, s->data + from, s->len - from));
    return gn_jinja_write_bytes(run, &quote, 1);
}

static gn_status write_items_repr(gn_jrun *run, const gn_jlist *list, const char *open,
                                  const char *close)
{
    GN_TRY(write_text(run, open));
    for (size_t i = 0; i < list->n; i++) {
        if (i != 0) {
            GN_TRY(write_text(run, ", "));
        }
        GN_TRY(gn_jinja_write_repr(run, list->items[i]));
    }
    return write_text(run, close);
}

static gn_status write_dict_repr(gn_jrun *run, const gn_jdict *dict)
{
    GN_TRY(write_text(run, "{"));
    for (size_t i = 0; i < dict->n; i++) {
        if (i != 0) {
            GN_TRY(write_text(run, ", "));
        }
        GN_TRY(gn_jinja_write_repr(run, dict->entries[i].key));
        GN_TRY(write_text(run, ": "));
        GN_TRY(gn_jinja_write_repr(run, dict->entries[i].value));
    }
    return write_text(run, "}");
}

static gn_status write_view_repr(gn_jrun *run, gn_jval v)
{
    static const char *const names[] = {
        [GN_J_KEYS] = "dict_keys(", [GN_J_VALUES] = "dict_values(", [GN_J_ITEMS] = "dict_items("};
    gn_jlist *items;
    GN_TRY(write_text(run, names[v.sub]));
    GN_TRY(gn_jinja_items(run, v, &items));
    return write_items_repr(run, items, "[", "])");
}

static gn_status write_range_repr(gn_jrun *run, const gn_jrange *range)
{
    char text[96];
    if (range->step == 1) {
        (void)snprintf(text, sizeof text, "range(%lld, %lld)", (long long)range->start,
                       (long long)range->stop);
    } else {
        (void)snprintf(text, sizeof text, "range(%lld, %lld, %lld)", (long long)range->start,
                       (long long)range->stop, (long long)range->step);
    }
    return write_text(run, text);
}

static gn_status write_object_repr(gn_jrun *run, gn_jval v)
{
    if (v.type == GN_J_MACRO) {
        const gn_jstr *name = v.u.macro->signature->name;
        GN_TRY(write_text(run, "<Macro "));
        GN_TRY(name != NULL ? write_str_repr(run, name) : write_text(run, "anonymous"));
        return write_text(run, ">");
    }
    GN_TRY(write_text(run, "<"));
    GN_TRY(write_text(run, gn_jinja_type_name((gn_jtype)v.type)));
    return write_text(run, " object>");
}

static gn_status write_nested(gn_jrun *run, gn_jval v)
{
    switch ((gn_jtype)v.type) {
    case GN_J_LIST: return write_items_repr(run, v.u.list, "[", "]");
    case GN_J_TUPLE: return write_items_repr(run, v.u.list, "(", v.u.list->n == 1 ? ",)" : ")");
    case GN_J_DICT: return write_dict_repr(run, v.u.dict);
    case GN_J_VIEW: return write_view_repr(run, v);
    case GN_J_NAMESPACE:
        GN_TRY(write_text(run, "<Namespace "));
        GN_TRY(write_dict_repr(run, v.u.dict));
        return write_text(run, ">");
    default: return write_object_repr(run, v);
    }
}

static gn_status write_scalar(gn_jrun *run, gn_jval v)
{
    char text[32];
    switch ((gn_jtype)v.type) {
    case GN_J_NONE: return write_text(run, "None");
    case GN_J_BOOL: return write_text(run, v.u.b ? "True" : "False");
    case GN_J_INT:
        (void)snprintf(text, sizeof text, "%lld", (long long)v.u.i);
        return write_text(run, text);
    case GN_J_FLOAT: return gn_jinja_write_bytes(run, text, gn_jinja_float_repr(v.u.f, text));
    default: return write_range_repr(run, v.u.range);
    }
}

gn_status gn_jinja_write_repr(gn_jrun *run, gn_jval v)
{
    switch ((gn_jtype)v.type) {
    case GN_J_UNDEFINED: return write_text(run, "Undefined");
    case GN_J_STRING:
        if (v.sub == 0) {
            return write_str_repr(run, v.u.s);
        }
        GN_TRY(write_text(run, "Markup("));
        GN_TRY(write_str_repr(run, v.u.s));
        return write_text(run, ")");
    case GN_J_NONE:
    case GN_J_BOOL:
    case GN_J_INT:
    case GN_J_FLOAT:
    case GN_J_RANGE: return write_scalar(run, v);
    default: break;
    }
    GN_TRY(gn_jinja_enter(run));
    GN_TRY(write_nested(run, v));
    gn_jinja_leave(run);
    return GN_OK;
}

gn_status gn_jinja_write(gn_jrun *run, gn_jval v)
{
    if (v.type == GN_J_STRING) {
        return gn_jinja_write_bytes(run, v.u.s->data, v.u.s->len);
    }
    return v.type == GN_J_UNDEFINED ? GN_OK : gn_jinja_write_repr(run, v);
}

gn_status gn_jinja_soft_str(gn_jrun *run, gn_jval v, gn_jval *out)
{
    if (v.type == GN_J_STRING) {
        *out = v;
        return GN_OK;
    }
    size_t mark = run->out->len;
    GN_TRY(gn_jinja_write(run, v));
    return gn_jinja_str_captured(run, mark, out);
}

gn_status gn_jinja_to_str(gn_jrun *run, gn_jval v, const gn_jstr **out)
{
    gn_jval text;
    GN_TRY(gn_jinja_soft_str(run, v, &text));
    *out = text.u.s;
    return GN_OK;
}

gn_status gn_jinja_escape(gn_jrun *run, gn_jval v, gn_jval *out)
{
    if (gn_jis_markup(v)) {
        *out = v;
        return GN_OK;
    }
    const gn_jstr *s;
    GN_TRY(gn_jinja_to_str(run, v, &s));
    size_t mark = run->out->len;
    size_t from = 0;
    for (size_t i = 0; i < s->len; i++) {
        const char *entity = s->data[i] == '&'    ? "&amp;"
                             : s->data[i] == '<'  ? "&lt;"
                             : s->data[i] == '>'  ? "&gt;"
                             : s->data[i] == '"'  ? "&#34;"
                             : s->data[i] == '\'' ? "&#39;"
                                                  : NULL;
        if (entity != NULL) {
            GN_TRY(gn_jinja_write_bytes(run, s->data + from, i - from));
            GN_TRY(write_text(run, entity));
            from = i + 1;
        }
    }
    GN_TRY(gn_jinja_write_bytes(run, s->data + from, s->len - from));
    GN_TRY(gn_jinja_str_captured(run, mark, out));
    out->sub = 1;
    return GN_OK;
}
