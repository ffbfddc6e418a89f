/* JSON out and in: tojson is Python's json.dumps() with the arguments that transformers exposes. */
#include "text/jinja_lib.h"

#include "base/utf8.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static gn_status write_text(gn_jrun *run, const char *s)
{
    return gn_jinja_write_bytes(run, s, strlen(s));
}

static gn_status dump_string(gn_jrun *run, const gn_jstr *s, bool ascii)
{
    static const char short_from[] = "\"\\\n\r\t\f\b";
    static const char short_to[] = "\"\\nrtfb";
    GN_TRY(write_text(run, "\""));
    size_t from = 0;
    for (size_t at = 0; at < s->len;) {
        uint32_t cp = (unsigned char)s->data[at];
        size_t used = 1;
        char escape[24] = "";
        const char *known = cp != 0 && cp < 0x80 ? strchr(short_from, (int)cp) : NULL;
        if (cp >= 0x80 && ascii) {
            used = gn_utf8_decode(s->data + at, s->len - at, &cp);
            used = used != 0 ? used : 1;
        }
        if (known != NULL) {
            (void)snprintf(escape, sizeof escape, "\\%c", short_to[known - short_from]);
        } else if (cp < 0x20 || (ascii && cp >= 0x7f && cp < 0x10000 && cp != 0x7f)) {
            (void)snprintf(escape, sizeof escape, "\\u%04x", cp);
        } else if (ascii && cp >= 0x10000) {
            (void)snprintf(escape, sizeof escape, "\\u%04x\\u%04x",
                           0xd800u + ((cp - 0x10000) >> 10), 0xdc00u + ((cp - 0x10000) & 0x3ff));
        }
        if (escape[0] != '\0') {
            GN_TRY(gn_jinja_write_bytes(run, s->data + from, at - from));
            GN_TRY(write_text(run, escape));
            from = at + used;
        }
        at += used;
    }
    GN_TRY(gn_jinja_write_bytes(run, s->data + from, s->len - from));
    return write_text(run, "\"");
}

static gn_status dump_scalar(gn_jrun *run, gn_jval v)
{
    char text[32];
    switch ((gn_jtype)v.type) {
    case GN_J_NONE: return write_text(run, "null");
    case GN_J_BOOL: return write_text(run, v.u.b ? "true" : "false");
    case GN_J_INT:
        (void)snprintf(text, sizeof text, "%lld", (long long)v.u.i);
        return write_text(run, text);
    default:
        if (isnan(v.u.f) || isinf(v.u.f)) {
            return write_text(run, isnan(v.u.f) ? "NaN" : v.u.f > 0 ? "Infinity" : "-Infinity");
        }
        return gn_jinja_write_bytes(run, text, gn_jinja_float_repr(v.u.f, text));
    }
}

static gn_status dump_break(gn_jrun *run, const gn_jdump *how, unsigned level)
{
    if (how->indent == NULL) {
        return GN_OK;
    }
    GN_TRY(write_text(run, "\n"));
    for (unsigned i = 0; i < level; i++) {
        GN_TRY(gn_jinja_write_bytes(run, how->indent->data, how->indent->len));
    }
    return GN_OK;
}

static gn_status dump_between(gn_jrun *run, const gn_jdump *how, unsigned level, bool first)
{
    if (!first) {
        GN_TRY(gn_jinja_write_bytes(run, how->item_separator->data, how->item_separator->len));
    }
    return dump_break(run, how, level);
}

static gn_status dump_list(gn_jrun *run, const gn_jlist *list, const gn_jdump *how, unsigned level)
{
    if (list->n == 0) {
        return write_text(run, "[]");
    }
    GN_TRY(write_text(run, "["));
    for (size_t i = 0; i < list->n; i++) {
        GN_TRY(dump_between(run, how, level + 1, i == 0));
        GN_TRY(gn_jinja_dump(run, list->items[i], how, level + 1));
    }
    GN_TRY(dump_break(run, how, level));
    return write_text(run, "]");
}

static gn_status dump_key(gn_jrun *run, gn_jval key, const gn_jdump *how)
{
    if (key.type == GN_J_STRING) {
        return dump_string(run, key.u.s, how->ascii);
    }
    if (key.type != GN_J_NONE && !gn_jinja_is_number(key)) {
        return gn_jinja_fail(run, "a %s cannot be a key in JSON",
                             gn_jinja_type_name((gn_jtype)key.type));
    }
    GN_TRY(write_text(run, "\""));
    GN_TRY(dump_scalar(run, key));
    return write_text(run, "\"");
}

static gn_status sorted_keys(gn_jrun *run, const gn_jdict *dict, gn_jval **values)
{
    gn_jval *keys = gn_jinja_alloc(run, dict->n, sizeof *keys);
    gn_jval *pairs = keys != NULL ? gn_jinja_alloc(run, dict->n, sizeof *pairs) : NULL;
    if (pairs == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    for (size_t i = 0; i < dict->n; i++) {
        keys[i] = dict->entries[i].key;
        GN_TRY(gn_jinja_pair(run, dict->entries[i].key, dict->entries[i].value, &pairs[i]));
    }
    *values = pairs;
    return gn_jinja_sort(run, keys, pairs, dict->n, false);
}

static gn_status dump_dict(gn_jrun *run, const gn_jdict *dict, const gn_jdump *how, unsigned level)
{
    gn_jval *sorted = NULL;
    if (dict->n == 0) {
        return write_text(run, "{}");
    }
    if (how->sort_keys) {
        GN_TRY(sorted_keys(run, dict, &sorted));
    }
    GN_TRY(write_text(run, "{"));
    for (size_t i = 0; i < dict->n; i++) {
        gn_jval key = sorted != NULL ? sorted[i].u.list->items[0] : dict->entries[i].key;
        gn_jval value = sorted != NULL ? sorted[i].u.list->items[1] : dict->entries[i].value;
        GN_TRY(dump_between(run, how, level + 1, i == 0));
        GN_TRY(dump_key(run, key, how));
        GN_TRY(gn_jinja_write_bytes(run, how->key_separator->data, how->key_separator->len));
        GN_TRY(gn_jinja_dump(run, value, how, level + 1));
    }
    GN_TRY(dump_break(run, how, level));
    return write_text(run, "}");
}

gn_status gn_jinja_dump(gn_jrun *run, gn_jval v, const gn_jdump *how, unsigned level)
{
    gn_status status;
    switch ((gn_jtype)v.type) {
    case GN_J_STRING: return dump_string(run, v.u.s, how->ascii);
    case GN_J_NONE:
    case GN_J_BOOL:
    case GN_J_INT:
    case GN_J_FLOAT: return dump_scalar(run, v);
    case GN_J_LIST:
    case GN_J_TUPLE:
        GN_TRY(gn_jinja_enter(run));
        status = dump_list(run, v.u.list, how, level);
        gn_jinja_leave(run);
        return status;
    case GN_J_DICT:
        GN_TRY(gn_jinja_enter(run));
        status = dump_dict(run, v.u.dict, how, level);
        gn_jinja_leave(run);
        return status;
    default:
        return gn_jinja_fail(run, "Object of type %s is not JSON serializable",
                             gn_jinja_type_name((gn_jtype)v.type));
    }
}

static gn_status set_indent(gn_jrun *run, gn_jval v, gn_jdump *how)
{
    int64_t n = 0;
    gn_jval text = v;
    if (v.type == GN_J_NONE) {
        return GN_OK;
    }
    if (v.type != GN_J_STRING) {
        if (!gn_jinja_as_int(v, &n)) {
            return gn_jinja_fail(run, "indent must be an integer or a string");
        }
        gn_jval space;
        GN_TRY(gn_jinja_str_view(run, " ", 1, &space));
        GN_TRY(gn_jinja_binary(run, "*", space, gn_jint(n), &text));
    }
    how->indent = text.u.s;
    return GN_OK;
}

static gn_status set_separators(gn_jrun *run, gn_jval v, gn_jdump *how)
{
    gn_jval item;
    gn_jval key;
    if (v.type == GN_J_NONE) {
        GN_TRY(gn_jinja_str_view(run, ", ", how->indent != NULL ? 1 : 2, &item));
        GN_TRY(gn_jinja_str_view(run, ": ", 2, &key));
    } else {
        gn_jlist *pair;
        GN_TRY(gn_jinja_items(run, v, &pair));
        if (pair->n != 2 || pair->items[0].type != GN_J_STRING ||
            pair->items[1].type != GN_J_STRING) {
            return gn_jinja_fail(run, "separators must be two strings");
        }
        item = pair->items[0];
        key = pair->items[1];
    }
    how->item_separator = item.u.s;
    how->key_separator = key.u.s;
    return GN_OK;
}

static gn_status filter_tojson(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"ensure_ascii", "indent", "separators", "sort_keys"};
    gn_jval arg[4] = {gn_jbool(false), gn_jnone(), gn_jnone(), gn_jbool(false)};
    GN_TRY(gn_jinja_bind(run, "tojson", args, names, 4, 0, arg));
    gn_jdump how = {.ascii = gn_jinja_truth(arg[0]), .sort_keys = gn_jinja_truth(arg[3])};
    GN_TRY(set_indent(run, arg[1], &how));
    GN_TRY(set_separators(run, arg[2], &how));
    size_t mark = run->out->len;
    GN_TRY(gn_jinja_dump(run, in, &how, 0));
    return gn_jinja_str_captured(run, mark, out);
}

/* ---- in ---- */

static gn_status convert_array(gn_jrun *run, const json_t *json, gn_jval *out)
{
    size_t n = json_array_size(json);
    gn_jval list = {0};
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, n, &list));
    for (size_t i = 0; i < n; i++) {
        GN_TRY(gn_jinja_from_json(run, json_array_get(json, i), &list.u.list->items[i]));
        list.u.list->n = i + 1;
    }
    *out = list;
    return GN_OK;
}

static gn_status convert_object(gn_jrun *run, const json_t *json, gn_jval *out)
{
    gn_jval dict;
    GN_TRY(gn_jinja_dict_new(run, GN_J_DICT, json_object_size(json), &dict));
    /* jansson iterates by a non-const pointer but changes nothing. */
    json_t *object = (json_t *)(uintptr_t)json;
    for (void *it = json_object_iter(object); it != NULL; it = json_object_iter_next(object, it)) {
        gn_jval key;
        gn_jval value;
        const char *text = json_object_iter_key(it);
        GN_TRY(gn_jinja_str_view(run, text, json_object_iter_key_len(it), &key));
        GN_TRY(gn_jinja_from_json(run, json_object_iter_value(it), &value));
        GN_TRY(gn_jinja_dict_set(run, dict.u.dict, key, value));
    }
    *out = dict;
    return GN_OK;
}

gn_status gn_jinja_from_json(gn_jrun *run, const json_t *json, gn_jval *out)
{
    gn_status status;
    GN_TRY(gn_jinja_step(run, 1));
    switch (json_typeof(json)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        GN_TRY(gn_jinja_enter(run));
        status =
            json_is_array(json) ? convert_array(run, json, out) : convert_object(run, json, out);
        gn_jinja_leave(run);
        return status;
    case JSON_STRING:
        return gn_jinja_str_view(run, json_string_value(json), json_string_length(json), out);
    case JSON_INTEGER: *out = gn_jint(json_integer_value(json)); return GN_OK;
    case JSON_REAL: *out = gn_jfloat(json_real_value(json)); return GN_OK;
    case JSON_TRUE:
    case JSON_FALSE: *out = gn_jbool(json_is_true(json)); return GN_OK;
    default: *out = gn_jnone(); return GN_OK;
    }
}

/* Strings are copied: the parsed text does not outlive the filter. */
static gn_status copy_strings(gn_jrun *run, gn_jval *v)
{
    gn_status status = GN_OK;
    if (v->type == GN_J_STRING) {
        return gn_jinja_str(run, v->u.s->data, v->u.s->len, v);
    }
    GN_TRY(gn_jinja_enter(run));
    if (v->type == GN_J_LIST) {
        for (size_t i = 0; i < v->u.list->n && status == GN_OK; i++) {
            status = copy_strings(run, &v->u.list->items[i]);
        }
    } else if (v->type == GN_J_DICT) {
        for (size_t i = 0; i < v->u.dict->n && status == GN_OK; i++) {
            status = copy_strings(run, &v->u.dict->entries[i].key);
            status = status == GN_OK ? copy_strings(run, &v->u.dict->entries[i].value) : status;
        }
    }
    gn_jinja_leave(run);
    return status;
}

static gn_status filter_from_json(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(gn_jinja_bind(run, "from_json", args, NULL, 0, 0, NULL));
    if (in.type != GN_J_STRING) {
        return gn_jinja_fail(run, "from_json needs a string, found %s",
                             gn_jinja_type_name((gn_jtype)in.type));
    }
    json_error_t error;
    json_t *json = json_loadb(in.u.s->data, in.u.s->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (json == NULL) {
        return gn_jinja_fail(run, "from_json: %.160s", error.text);
    }
    gn_status status = gn_jinja_from_json(run, json, out);
    if (status == GN_OK) {
        status = copy_strings(run, out);
    }
    json_decref(json);
    return status;
}

const gn_jfilter GN_JINJA_JSON_FILTERS[] = {
    {"tojson", filter_tojson}, {"from_json", filter_from_json}, {NULL, NULL}};
