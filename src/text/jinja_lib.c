/* Looking filters up, and the global functions. */
#include "text/jinja_lib.h"

#include <string.h>
#include <time.h>

static const gn_jfilter *find_in(const gn_jfilter *rows, const char *name, size_t len)
{
    for (; rows->name != NULL; rows++) {
        if (strlen(rows->name) == len && memcmp(rows->name, name, len) == 0) {
            return rows;
        }
    }
    return NULL;
}

const gn_jfilter *gn_jinja_find_filter(const char *name, size_t len)
{
    const gn_jfilter *found = find_in(GN_JINJA_SEQ_FILTERS, name, len);
    found = found != NULL ? found : find_in(GN_JINJA_TEXT_FILTERS, name, len);
    return found != NULL ? found : find_in(GN_JINJA_JSON_FILTERS, name, len);
}

static gn_status global_range(gn_jrun *run, const gn_jargs *args, gn_jval *out)
{
    gn_jval arg[3] = {gn_jint(0), gn_jint(0), gn_jint(1)};
    int64_t bound[3];
    GN_TRY(gn_jinja_bind(run, "range", args, NULL, 3, 1, arg));
    if (args->n_pos == 1) {
        arg[1] = arg[0];
        arg[0] = gn_jint(0);
    }
    for (size_t i = 0; i < 3; i++) {
        if (arg[i].type == GN_J_UNDEFINED) {
            return gn_jinja_fail_undefined(run, arg[i]);
        }
        if (!gn_jinja_as_int(arg[i], &bound[i])) {
            return gn_jinja_fail(run, "range() needs integers, found %s",
                                 gn_jinja_type_name((gn_jtype)arg[i].type));
        }
    }
    return gn_jinja_range_new(run, bound[0], bound[1], bound[2], out);
}

static gn_status add_pairs(gn_jrun *run, gn_jval from, gn_jdict *dict)
{
    gn_jcursor cursor;
    if (from.type == GN_J_DICT) {
        from = (gn_jval){.type = GN_J_VIEW, .sub = GN_J_ITEMS, .u.dict = from.u.dict};
    }
    GN_TRY(gn_jinja_iterate(run, from, &cursor));
    for (;;) {
        gn_jval item;
        gn_jlist *pair;
        bool more;
        GN_TRY(gn_jinja_next(run, &cursor, &item, &more));
        if (!more) {
            return GN_OK;
        }
        GN_TRY(gn_jinja_items(run, item, &pair));
        if (pair->n != 2) {
            return gn_jinja_fail(run, "a dict is made of pairs, found %zu items", pair->n);
        }
        GN_TRY(gn_jinja_dict_set(run, dict, pair->items[0], pair->items[1]));
    }
}

/* dict(pairs, name=value …), and namespace() the same way. */
static gn_status make_dict(gn_jrun *run, const gn_jargs *args, gn_jtype type, gn_jval *out)
{
    gn_jval dict;
    if (args->n_pos > 1) {
        return gn_jinja_fail(run, "dict() takes at most 1 positional argument");
    }
    GN_TRY(gn_jinja_dict_new(run, type, args->n_kw, &dict));
    if (args->n_pos == 1) {
        GN_TRY(add_pairs(run, args->pos[0], dict.u.dict));
    }
    for (size_t i = 0; i < args->n_kw; i++) {
        GN_TRY(
            gn_jinja_dict_set(run, dict.u.dict, gn_jstring(args->kw[i].name), args->kw[i].value));
    }
    *out = dict;
    return GN_OK;
}

static gn_status global_dict(gn_jrun *run, const gn_jargs *args, gn_jval *out)
{
    return make_dict(run, args, GN_J_DICT, out);
}

static gn_status global_namespace(gn_jrun *run, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(make_dict(run, args, GN_J_NAMESPACE, out));
    for (size_t i = 0; i < out->u.dict->n; i++) {
        gn_jval key = out->u.dict->entries[i].key;
        if (key.type == GN_J_STRING && key.u.s->data[0] == '_') {
            return gn_jinja_fail(run, "a namespace cannot hold the name '%.100s'", key.u.s->data);
        }
    }
    return GN_OK;
}

static gn_status global_raise(gn_jrun *run, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"message"};
    gn_jval message = gn_jnone();
    const gn_jstr *text;
    (void)out;
    GN_TRY(gn_jinja_bind(run, "raise_exception", args, names, 1, 1, &message));
    GN_TRY(gn_jinja_to_str(run, message, &text));
    int len = text->len < 1000 ? (int)text->len : 1000;
    return gn_base_fail(GN_E_REFUSED, "%.*s", len, text->data);
}

/* Append what strftime gives for one conversion, or copy plain text. Python has no time zone and no
 * microseconds here. */
static gn_status write_time(gn_jrun *run, const char *format, size_t len, const struct tm *now)
{
    char spec[16];
    char text[256];
    if (len == 2 && (format[1] == 'z' || format[1] == 'Z')) {
        return GN_OK;
    }
    if (len == 2 && format[1] == 'f') {
        return gn_jinja_write_bytes(run, "000000", 6);
    }
    if (format[0] != '%' || len >= sizeof spec) {
        return gn_jinja_write_bytes(run, format, len);
    }
    memcpy(spec, format, len);
    spec[len] = '\0';
    return gn_jinja_write_bytes(run, text, strftime(text, sizeof text, spec, now));
}

static gn_status global_strftime_now(gn_jrun *run, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"format"};
    gn_jval format = gn_jnone();
    struct tm now;
    GN_TRY(gn_jinja_bind(run, "strftime_now", args, names, 1, 1, &format));
    if (format.type != GN_J_STRING) {
        return gn_jinja_fail(run, "strftime_now() needs a string");
    }
    if (localtime_r(&run->now, &now) == NULL) {
        return gn_jinja_fail(run, "the time given is out of range");
    }
    const gn_jstr *s = format.u.s;
    size_t mark = run->out->len;
    for (size_t at = 0; at < s->len;) {
        size_t end = at + 1;
        if (s->data[at] == '%') {
            while (end < s->len && strchr("-_0^#EO", s->data[end]) != NULL) {
                end++;
            }
            end += end < s->len;
        } else {
            while (end < s->len && s->data[end] != '%') {
                end++;
            }
        }
        GN_TRY(write_time(run, s->data + at, end - at, &now));
        at = end;
    }
    return gn_jinja_str_captured(run, mark, out);
}

static gn_status new_cycler(gn_jrun *run, gn_jtype type, gn_jlist *items, gn_jval *out)
{
    gn_jcycler *cycler = gn_jinja_alloc(run, 1, sizeof *cycler);
    if (cycler == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    *cycler = (gn_jcycler){.items = items};
    *out = (gn_jval){.type = (uint8_t)type, .u.cycler = cycler};
    return GN_OK;
}

static gn_status global_cycler(gn_jrun *run, const gn_jargs *args, gn_jval *out)
{
    gn_jval items;
    if (args->n_pos == 0 || args->n_kw != 0) {
        return gn_jinja_fail(run, "cycler() needs at least one item");
    }
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, args->n_pos, &items));
    for (size_t i = 0; i < args->n_pos; i++) {
        GN_TRY(gn_jinja_list_push(run, items.u.list, args->pos[i]));
    }
    return new_cycler(run, GN_J_CYCLER, items.u.list, out);
}

static gn_status global_joiner(gn_jrun *run, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"sep"};
    gn_jval sep;
    gn_jval items;
    GN_TRY(gn_jinja_str_view(run, ", ", 2, &sep));
    GN_TRY(gn_jinja_bind(run, "joiner", args, names, 1, 0, &sep));
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 1, &items));
    GN_TRY(gn_jinja_list_push(run, items.u.list, sep));
    return new_cycler(run, GN_J_JOINER, items.u.list, out);
}

static const gn_jfunc GLOBALS[] = {
    {"cycler", global_cycler},
    {"dict", global_dict},
    {"joiner", global_joiner},
    {"namespace", global_namespace},
    {"raise_exception", global_raise},
    {"range", global_range},
    {"strftime_now", global_strftime_now},
};

const gn_jfunc *gn_jinja_find_global(const char *name, size_t len)
{
    for (size_t i = 0; i < GN_COUNTOF(GLOBALS); i++) {
        if (strlen(GLOBALS[i].name) == len && memcmp(GLOBALS[i].name, name, len) == 0) {
            return &GLOBALS[i];
        }
    }
    return NULL;
}
