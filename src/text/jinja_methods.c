/* Attributes and methods of everything but str: dict, list, tuple, numbers, namespaces, loops, macros,
 * cycler() and joiner(). Methods that would change a list or dict exist, but the sandbox makes them
 * undefined. */
#include "text/jinja_ast.h"
#include "text/jinja_eval.h"
#include "text/jinja_lib.h"

#include <math.h>
#include <string.h>

typedef gn_status (*method_fn)(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out);

typedef struct method_row {
    const char *name;
    method_fn call; /* NULL: unsafe */
} method_row;

static gn_status none_wanted(gn_jrun *run, const char *func, const gn_jargs *args)
{
    return gn_jinja_bind(run, func, args, NULL, 0, 0, NULL);
}

/* ---- dict ---- */

static gn_status view(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jview kind, gn_jval *out)
{
    GN_TRY(none_wanted(run, "dict view", args));
    *out = (gn_jval){.type = GN_J_VIEW, .sub = (uint8_t)kind, .u.dict = self.u.dict};
    return GN_OK;
}

static gn_status dict_keys(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return view(run, self, args, GN_J_KEYS, out);
}

static gn_status dict_values(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return view(run, self, args, GN_J_VALUES, out);
}

static gn_status dict_items(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return view(run, self, args, GN_J_ITEMS, out);
}

static gn_status dict_get(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jval arg[2] = {gn_jnone(), gn_jnone()};
    const gn_jval *found;
    GN_TRY(gn_jinja_bind(run, "get", args, NULL, 2, 1, arg));
    if (!gn_jinja_hashable(arg[0])) {
        return gn_jinja_fail(run, "a %s cannot be a key",
                             gn_jinja_type_name((gn_jtype)arg[0].type));
    }
    GN_TRY(gn_jinja_dict_get(run, self.u.dict, arg[0], &found));
    *out = found != NULL ? *found : arg[1];
    return GN_OK;
}

static gn_status dict_copy(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jval copy;
    GN_TRY(none_wanted(run, "copy", args));
    GN_TRY(gn_jinja_dict_new(run, GN_J_DICT, self.u.dict->n, &copy));
    for (size_t i = 0; i < self.u.dict->n; i++) {
        GN_TRY(gn_jinja_step(run, 1));
        GN_TRY(gn_jinja_dict_set(run, copy.u.dict, self.u.dict->entries[i].key,
                                 self.u.dict->entries[i].value));
    }
    *out = copy;
    return GN_OK;
}

static gn_status dict_fromkeys(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jval arg[2] = {gn_jnone(), gn_jnone()};
    gn_jlist *keys;
    gn_jval dict;
    (void)self;
    GN_TRY(gn_jinja_bind(run, "fromkeys", args, NULL, 2, 1, arg));
    GN_TRY(gn_jinja_items(run, arg[0], &keys));
    GN_TRY(gn_jinja_dict_new(run, GN_J_DICT, 0, &dict));
    for (size_t i = 0; i < keys->n; i++) {
        GN_TRY(gn_jinja_step(run, 1));
        GN_TRY(gn_jinja_dict_set(run, dict.u.dict, keys->items[i], arg[1]));
    }
    *out = dict;
    return GN_OK;
}

static const method_row DICT_METHODS[] = {
    {"get", dict_get},   {"items", dict_items},       {"keys", dict_keys}, {"values", dict_values},
    {"copy", dict_copy}, {"fromkeys", dict_fromkeys}, {"clear", NULL},     {"pop", NULL},
    {"popitem", NULL},   {"setdefault", NULL},        {"update", NULL},    {NULL, NULL},
};

/* ---- list and tuple ---- */

static gn_status list_count(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jval what;
    int64_t n = 0;
    gn_jlist *items;
    GN_TRY(gn_jinja_bind(run, "count", args, NULL, 1, 1, &what));
    GN_TRY(gn_jinja_items(run, self, &items));
    for (size_t i = 0; i < items->n; i++) {
        bool same;
        GN_TRY(gn_jinja_step(run, 1));
        GN_TRY(gn_jinja_equal(run, items->items[i], what, &same));
        n += same;
    }
    *out = gn_jint(n);
    return GN_OK;
}

static gn_status list_index(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jval arg[3] = {gn_jnone(), gn_jint(0), gn_jint(INT64_MAX)};
    int64_t bound[2];
    gn_jlist *items;
    GN_TRY(gn_jinja_bind(run, "index", args, NULL, 3, 1, arg));
    GN_TRY(gn_jinja_items(run, self, &items));
    int64_t n = (int64_t)items->n;
    for (size_t i = 0; i < 2; i++) {
        if (!gn_jinja_as_int(arg[i + 1], &bound[i])) {
            return gn_jinja_fail(run, "index() needs integers");
        }
        bound[i] += bound[i] < 0 ? n : 0;
        bound[i] = bound[i] < 0 ? 0 : bound[i];
    }
    for (int64_t i = bound[0]; i < n && i < bound[1]; i++) {
        bool same;
        GN_TRY(gn_jinja_step(run, 1));
        GN_TRY(gn_jinja_equal(run, items->items[i], arg[0], &same));
        if (same) {
            *out = gn_jint(i);
            return GN_OK;
        }
    }
    return gn_jinja_fail(run, "the value is not in the list");
}

static gn_status list_copy(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(none_wanted(run, "copy", args));
    *out = self; /* lists never change */
    return gn_jinja_step(run, 1);
}

static const method_row LIST_METHODS[] = {
    {"count", list_count}, {"index", list_index}, {"copy", list_copy}, {"append", NULL},
    {"clear", NULL},       {"pop", NULL},         {"reverse", NULL},   {"insert", NULL},
    {"sort", NULL},        {"extend", NULL},      {"remove", NULL},    {NULL, NULL},
};

static const method_row TUPLE_METHODS[] = {
    {"count", list_count}, {"index", list_index}, {NULL, NULL}};

/* ---- numbers ---- */

static gn_status bit_length(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    int64_t i = 0;
    int64_t bits = 0;
    GN_TRY(none_wanted(run, "bit_length", args));
    (void)gn_jinja_as_int(self, &i);
    for (uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i; u != 0; u >>= 1) {
        bits++;
    }
    *out = gn_jint(bits);
    return GN_OK;
}

static gn_status is_integer(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(none_wanted(run, "is_integer", args));
    *out = gn_jbool(isfinite(self.u.f) && floor(self.u.f) == self.u.f);
    return GN_OK;
}

static const method_row INT_METHODS[] = {{"bit_length", bit_length}, {NULL, NULL}};
static const method_row FLOAT_METHODS[] = {{"is_integer", is_integer}, {NULL, NULL}};

/* ---- cycler ---- */

static gn_status cycler_next(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jcycler *cycler = self.u.cycler;
    GN_TRY(none_wanted(run, "next", args));
    *out = cycler->items->items[cycler->pos];
    cycler->pos = (cycler->pos + 1) % cycler->items->n;
    return GN_OK;
}

static gn_status cycler_reset(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(none_wanted(run, "reset", args));
    self.u.cycler->pos = 0;
    *out = gn_jnone();
    return GN_OK;
}

static const method_row CYCLER_METHODS[] = {
    {"next", cycler_next}, {"reset", cycler_reset}, {NULL, NULL}};

/* ---- the dispatch ---- */

static gn_status from_table(gn_jrun *run, gn_jval obj, const method_row *rows, const gn_jstr *name,
                            gn_jval *out, bool *found)
{
    *found = false;
    for (; rows->name != NULL; rows++) {
        if (strcmp(rows->name, name->data) == 0) {
            *found = true;
            if (rows->call == NULL) {
                *out = (gn_jval){
                    .type = GN_J_UNDEFINED, .sub = GN_J_UNDEF_UNSAFE, .of = obj.type, .u.s = name};
                return GN_OK;
            }
            return gn_jinja_bind_method(run, obj, rows->name, rows->call, out);
        }
    }
    return GN_OK;
}

static gn_status macro_attribute(gn_jrun *run, gn_jval obj, const gn_jstr *name, gn_jval *out,
                                 bool *found)
{
    const gn_jsignature *sig = obj.u.macro->signature;
    *found = true;
    if (strcmp(name->data, "name") == 0) {
        *out = sig->name != NULL ? gn_jstring(sig->name) : gn_jnone();
    } else if (strcmp(name->data, "catch_kwargs") == 0) {
        *out = gn_jbool(sig->uses_kwargs);
    } else if (strcmp(name->data, "catch_varargs") == 0) {
        *out = gn_jbool(sig->uses_varargs);
    } else if (strcmp(name->data, "caller") == 0) {
        *out = gn_jbool(sig->uses_caller);
    } else if (strcmp(name->data, "arguments") == 0) {
        GN_TRY(gn_jinja_list_new(run, GN_J_TUPLE, sig->n_params, out));
        for (size_t i = 0; i < sig->n_params; i++) {
            const gn_jstr *param = run->program->names[sig->params[i]];
            GN_TRY(gn_jinja_list_push(run, out->u.list, gn_jstring(param)));
        }
    } else {
        *found = false;
    }
    return GN_OK;
}

static gn_status number_attribute(gn_jrun *run, gn_jval obj, const gn_jstr *name, gn_jval *out,
                                  bool *found)
{
    int64_t i = 0;
    bool is_int = gn_jinja_as_int(obj, &i);
    bool whole = is_int && strcmp(name->data, "numerator") == 0;
    *found = true;
    if (whole || strcmp(name->data, "real") == 0) {
        *out = is_int ? gn_jint(i) : obj;
    } else if (strcmp(name->data, "imag") == 0) {
        *out = is_int ? gn_jint(0) : gn_jfloat(0);
    } else if (is_int && strcmp(name->data, "denominator") == 0) {
        *out = gn_jint(1);
    } else {
        return from_table(run, obj, is_int ? INT_METHODS : FLOAT_METHODS, name, out, found);
    }
    return GN_OK;
}

static gn_status range_attribute(gn_jrun *run, gn_jval obj, const gn_jstr *name, gn_jval *out,
                                 bool *found)
{
    const gn_jrange *range = obj.u.range;
    *found = true;
    if (strcmp(name->data, "start") == 0) {
        *out = gn_jint(range->start);
    } else if (strcmp(name->data, "stop") == 0) {
        *out = gn_jint(range->stop);
    } else if (strcmp(name->data, "step") == 0) {
        *out = gn_jint(range->step);
    } else {
        return from_table(run, obj, TUPLE_METHODS, name, out, found);
    }
    return GN_OK;
}

gn_status gn_jinja_attribute(gn_jrun *run, gn_jval obj, const gn_jstr *name, gn_jval *out,
                             bool *found)
{
    const gn_jval *value;
    *found = false;
    if (memchr(name->data, '\0', name->len) != NULL) {
        return GN_OK;
    }
    switch ((gn_jtype)obj.type) {
    case GN_J_STRING: return gn_jinja_str_attribute(run, obj, name, out, found);
    case GN_J_DICT: return from_table(run, obj, DICT_METHODS, name, out, found);
    case GN_J_LIST: return from_table(run, obj, LIST_METHODS, name, out, found);
    case GN_J_TUPLE: return from_table(run, obj, TUPLE_METHODS, name, out, found);
    case GN_J_BOOL:
    case GN_J_INT:
    case GN_J_FLOAT: return number_attribute(run, obj, name, out, found);
    case GN_J_RANGE: return range_attribute(run, obj, name, out, found);
    case GN_J_LOOP: return gn_jinja_loop_attribute(run, obj.u.loop, name, out, found);
    case GN_J_MACRO: return macro_attribute(run, obj, name, out, found);
    case GN_J_NAMESPACE:
        value = gn_jinja_dict_get_str(obj.u.dict, name->data, name->len);
        *found = value != NULL;
        if (value != NULL) {
            *out = *value;
        }
        return GN_OK;
    case GN_J_CYCLER:
        if (strcmp(name->data, "current") == 0) {
            *found = true;
            *out = obj.u.cycler->items->items[obj.u.cycler->pos];
            return GN_OK;
        }
        return from_table(run, obj, CYCLER_METHODS, name, out, found);
    case GN_J_FUNC:
        if (strcmp(obj.u.func->name, "dict") == 0 && strcmp(name->data, "fromkeys") == 0) {
            *found = true;
            return gn_jinja_bind_method(run, obj, "fromkeys", dict_fromkeys, out);
        }
        return GN_OK;
    default: return GN_OK;
    }
}
