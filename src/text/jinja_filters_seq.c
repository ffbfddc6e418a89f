/* Filters on sequences and mappings. Those that Jinja writes as generators give a value that is read once
 * and is true even when it is empty, as there. */
#include "text/jinja_lib.h"

#include <string.h>

/* ---- attributes named by text: "a.b.0" ---- */

typedef struct getter {
    gn_jlist *parts; /* NULL: the item itself */
    bool fold_case;  /* strings compare in lower case */
    bool has_default;
    gn_jval fallback;
} getter;

static gn_status split_attribute(gn_jrun *run, gn_jval attribute, gn_jlist **out)
{
    gn_jval list = {0};
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 2, &list));
    *out = list.u.list;
    if (attribute.type != GN_J_STRING) {
        return gn_jinja_list_push(run, list.u.list, attribute);
    }
    const gn_jstr *s = attribute.u.s;
    for (size_t from = 0; from <= s->len;) {
        const char *dot = memchr(s->data + from, '.', s->len - from);
        size_t to = dot != NULL ? (size_t)(dot - s->data) : s->len;
        bool digits = to > from;
        for (size_t i = from; i < to; i++) {
            digits = digits && s->data[i] >= '0' && s->data[i] <= '9';
        }
        gn_jval part;
        GN_TRY(gn_jinja_str(run, s->data + from, to - from, &part));
        if (digits) {
            int64_t index = 0;
            bool overflow;
            (void)gn_jinja_parse_int(part.u.s, 10, &index, &overflow);
            part = gn_jint(overflow ? INT64_MAX : index);
        }
        GN_TRY(gn_jinja_list_push(run, list.u.list, part));
        from = to + 1;
    }
    return GN_OK;
}

static gn_status make_getter(gn_jrun *run, gn_jval attribute, bool fold_case, getter *out)
{
    *out = (getter){.fold_case = fold_case};
    return attribute.type == GN_J_NONE ? GN_OK : split_attribute(run, attribute, &out->parts);
}

static gn_status fold(gn_jrun *run, gn_jval *v)
{
    if (v->type != GN_J_STRING) {
        return GN_OK;
    }
    size_t mark = run->out->len;
    GN_TRY(gn_jinja_write_cased(run, v->u.s->data, v->u.s->len, GN_J_LOWER));
    return gn_jinja_str_captured(run, mark, v);
}

static gn_status get(gn_jrun *run, const getter *g, gn_jval item, gn_jval *out)
{
    for (size_t i = 0; g->parts != NULL && i < g->parts->n; i++) {
        GN_TRY(gn_jinja_step(run, 1));
        GN_TRY(gn_jinja_getitem(run, item, g->parts->items[i], &item));
        if (g->has_default && item.type == GN_J_UNDEFINED) {
            item = g->fallback;
        }
    }
    if (g->fold_case) {
        GN_TRY(fold(run, &item));
    }
    *out = item;
    return GN_OK;
}

/* The sort keys of items by an attribute that may name several, "a,b": a list of each item's values. */
static gn_status multi_keys(gn_jrun *run, gn_jval attribute, bool fold_case, const gn_jlist *items,
                            gn_jval *keys)
{
    gn_jval names;
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 1, &names));
    if (attribute.type == GN_J_STRING) {
        const gn_jstr *s = attribute.u.s;
        for (size_t from = 0; from <= s->len;) {
            const char *comma = memchr(s->data + from, ',', s->len - from);
            size_t to = comma != NULL ? (size_t)(comma - s->data) : s->len;
            gn_jval name;
            GN_TRY(gn_jinja_str(run, s->data + from, to - from, &name));
            GN_TRY(gn_jinja_list_push(run, names.u.list, name));
            from = to + 1;
        }
    } else {
        GN_TRY(gn_jinja_list_push(run, names.u.list, attribute));
    }
    size_t n = names.u.list->n;
    getter *getters = gn_jinja_alloc(run, n, sizeof *getters);
    if (getters == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    for (size_t k = 0; k < n; k++) {
        GN_TRY(make_getter(run, names.u.list->items[k], fold_case, &getters[k]));
    }
    for (size_t i = 0; i < items->n; i++) {
        GN_TRY(gn_jinja_list_new(run, GN_J_LIST, n, &keys[i]));
        for (size_t k = 0; k < n; k++) {
            gn_jval key;
            GN_TRY(get(run, &getters[k], items->items[i], &key));
            GN_TRY(gn_jinja_list_push(run, keys[i].u.list, key));
        }
    }
    return GN_OK;
}

/* ---- small ones ---- */

static gn_status none_wanted(gn_jrun *run, const char *func, const gn_jargs *args)
{
    return gn_jinja_bind(run, func, args, NULL, 0, 0, NULL);
}

static gn_status filter_length(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    size_t n;
    GN_TRY(none_wanted(run, "length", args));
    GN_TRY(gn_jinja_length(run, in, &n));
    *out = gn_jint((int64_t)n);
    return GN_OK;
}

static gn_status filter_first(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    gn_jcursor cursor;
    bool more;
    GN_TRY(none_wanted(run, "first", args));
    GN_TRY(gn_jinja_iterate(run, in, &cursor));
    GN_TRY(gn_jinja_next(run, &cursor, out, &more));
    return more ? GN_OK : gn_jinja_undefined_hint(run, "No first item, sequence was empty.", out);
}

static gn_status want_reversible(gn_jrun *run, gn_jval in)
{
    if (in.type == GN_J_ITER || !gn_jinja_is_iterable(in)) {
        return gn_jinja_fail(run, "a %s is not reversible", gn_jinja_type_name((gn_jtype)in.type));
    }
    return GN_OK;
}

static gn_status filter_last(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    gn_jlist *items;
    GN_TRY(none_wanted(run, "last", args));
    GN_TRY(want_reversible(run, in));
    GN_TRY(gn_jinja_items(run, in, &items));
    if (items->n == 0) {
        return gn_jinja_undefined_hint(run, "No last item, sequence was empty.", out);
    }
    *out = items->items[items->n - 1];
    return GN_OK;
}

static gn_status filter_list(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(none_wanted(run, "list", args));
    return gn_jinja_list_copy(run, in, out);
}

static gn_status filter_items(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    gn_jval list = {0};
    GN_TRY(none_wanted(run, "items", args));
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &list));
    if (in.type == GN_J_DICT) {
        for (size_t i = 0; i < in.u.dict->n; i++) {
            gn_jval pair;
            GN_TRY(gn_jinja_step(run, 1));
            GN_TRY(
                gn_jinja_pair(run, in.u.dict->entries[i].key, in.u.dict->entries[i].value, &pair));
            GN_TRY(gn_jinja_list_push(run, list.u.list, pair));
        }
    } else if (in.type != GN_J_UNDEFINED) {
        return gn_jinja_fail(run, "Can only get item pairs from a mapping.");
    }
    return gn_jinja_iter_new(run, list.u.list, out);
}

static gn_status filter_reverse(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(none_wanted(run, "reverse", args));
    if (in.type == GN_J_STRING) {
        gn_jval part[3] = {gn_jnone(), gn_jnone(), gn_jint(-1)};
        return gn_jinja_slice(run, in, part, out);
    }
    gn_jval list = {0};
    GN_TRY(gn_jinja_list_copy(run, in, &list));
    for (size_t i = 0; i < list.u.list->n / 2; i++) {
        gn_jval *a = &list.u.list->items[i];
        gn_jval *b = &list.u.list->items[list.u.list->n - 1 - i];
        gn_jval swap = *a;
        *a = *b;
        *b = swap;
    }
    if (in.type ==
        GN_J_ITER) { /* a generator cannot be walked backwards, so a list was made of it */
        *out = list;
        return GN_OK;
    }
    return gn_jinja_iter_new(run, list.u.list, out);
}

/* ---- joining and adding up ---- */

static gn_status filter_join(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"d", "attribute"};
    gn_jval arg[2];
    getter g;
    gn_jcursor cursor;
    const gn_jstr *between;
    GN_TRY(gn_jinja_str_view(run, "", 0, &arg[0]));
    arg[1] = gn_jnone();
    GN_TRY(gn_jinja_bind(run, "join", args, names, 2, 0, arg));
    GN_TRY(gn_jinja_to_str(run, arg[0], &between));
    GN_TRY(make_getter(run, arg[1], false, &g));
    GN_TRY(gn_jinja_iterate(run, in, &cursor));
    size_t mark = run->out->len;
    for (bool first = true;; first = false) {
        gn_jval item;
        bool more;
        GN_TRY(gn_jinja_next(run, &cursor, &item, &more));
        if (!more) {
            return gn_jinja_str_captured(run, mark, out);
        }
        GN_TRY(get(run, &g, item, &item));
        GN_TRY(gn_jinja_write_bytes(run, between->data, first ? 0 : between->len));
        GN_TRY(gn_jinja_write(run, item));
    }
}

static gn_status filter_sum(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"attribute", "start"};
    gn_jval arg[2] = {gn_jnone(), gn_jint(0)};
    getter g;
    gn_jcursor cursor;
    GN_TRY(gn_jinja_bind(run, "sum", args, names, 2, 0, arg));
    GN_TRY(make_getter(run, arg[0], false, &g));
    GN_TRY(gn_jinja_iterate(run, in, &cursor));
    if (arg[1].type == GN_J_STRING) {
        return gn_jinja_fail(run, "sum cannot add strings up");
    }
    for (;;) {
        gn_jval item;
        bool more;
        GN_TRY(gn_jinja_next(run, &cursor, &item, &more));
        if (!more) {
            *out = arg[1];
            return GN_OK;
        }
        GN_TRY(get(run, &g, item, &item));
        GN_TRY(gn_jinja_binary(run, "+", arg[1], item, &arg[1]));
    }
}

/* ---- ordering ---- */

static gn_status new_keys(gn_jrun *run, size_t n, gn_jval **out)
{
    *out = gn_jinja_alloc(run, n, sizeof **out);
    return *out != NULL ? GN_OK : gn_jinja_alloc_failed(run);
}

static gn_status filter_sort(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"reverse", "case_sensitive", "attribute"};
    gn_jval arg[3] = {gn_jbool(false), gn_jbool(false), gn_jnone()};
    gn_jval list = {0};
    gn_jval *keys;
    GN_TRY(gn_jinja_bind(run, "sort", args, names, 3, 0, arg));
    GN_TRY(gn_jinja_list_copy(run, in, &list));
    GN_TRY(new_keys(run, list.u.list->n, &keys));
    GN_TRY(multi_keys(run, arg[2], !gn_jinja_truth(arg[1]), list.u.list, keys));
    GN_TRY(gn_jinja_sort(run, keys, list.u.list->items, list.u.list->n, gn_jinja_truth(arg[0])));
    *out = list;
    return GN_OK;
}

static gn_status filter_dictsort(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"case_sensitive", "by", "reverse"};
    gn_jval arg[3] = {gn_jbool(false), gn_jnone(), gn_jbool(false)};
    gn_jval list = {0};
    gn_jval *keys;
    GN_TRY(gn_jinja_bind(run, "dictsort", args, names, 3, 0, arg));
    bool by_value = gn_jis_str(arg[1], "value", 5);
    if (arg[1].type != GN_J_NONE && !by_value && !gn_jis_str(arg[1], "key", 3)) {
        return gn_jinja_fail(run, "You can only sort by either \"key\" or \"value\"");
    }
    if (in.type == GN_J_UNDEFINED) {
        return gn_jinja_fail_undefined(run, in);
    }
    if (in.type != GN_J_DICT) {
        return gn_jinja_fail(run, "dictsort needs a dict, found %s",
                             gn_jinja_type_name((gn_jtype)in.type));
    }
    size_t n = in.u.dict->n;
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, n, &list));
    GN_TRY(new_keys(run, n, &keys));
    for (size_t i = 0; i < n; i++) {
        const gn_jentry *entry = &in.u.dict->entries[i];
        gn_jval pair;
        keys[i] = by_value ? entry->value : entry->key;
        if (!gn_jinja_truth(arg[0])) {
            GN_TRY(fold(run, &keys[i]));
        }
        GN_TRY(gn_jinja_pair(run, entry->key, entry->value, &pair));
        GN_TRY(gn_jinja_list_push(run, list.u.list, pair));
    }
    GN_TRY(gn_jinja_sort(run, keys, list.u.list->items, n, gn_jinja_truth(arg[2])));
    *out = list;
    return GN_OK;
}

static gn_status min_or_max(gn_jrun *run, gn_jval in, const gn_jargs *args, bool max, gn_jval *out)
{
    static const char *const names[] = {"case_sensitive", "attribute"};
    gn_jval arg[2] = {gn_jbool(false), gn_jnone()};
    gn_jcursor cursor;
    getter g;
    gn_jval best_key = gn_jnone();
    bool any = false;
    GN_TRY(gn_jinja_bind(run, max ? "max" : "min", args, names, 2, 0, arg));
    GN_TRY(make_getter(run, arg[1], !gn_jinja_truth(arg[0]), &g));
    GN_TRY(gn_jinja_iterate(run, in, &cursor));
    for (;;) {
        gn_jval item;
        gn_jval key;
        bool more;
        int c = 0;
        GN_TRY(gn_jinja_next(run, &cursor, &item, &more));
        if (!more) {
            break;
        }
        GN_TRY(get(run, &g, item, &key));
        if (any) {
            GN_TRY(gn_jinja_compare(run, key, best_key, max ? ">" : "<", &c));
        }
        if (!any || c == (max ? 1 : -1)) {
            best_key = key;
            *out = item;
        }
        any = true;
    }
    return any ? GN_OK
               : gn_jinja_undefined_hint(run, "No aggregated item, sequence was empty.", out);
}

static gn_status filter_min(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    return min_or_max(run, in, args, false, out);
}

static gn_status filter_max(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    return min_or_max(run, in, args, true, out);
}

static gn_status filter_unique(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"case_sensitive", "attribute"};
    gn_jval arg[2] = {gn_jbool(false), gn_jnone()};
    gn_jcursor cursor;
    getter g;
    gn_jval seen;
    gn_jval list = {0};
    GN_TRY(gn_jinja_bind(run, "unique", args, names, 2, 0, arg));
    GN_TRY(make_getter(run, arg[1], !gn_jinja_truth(arg[0]), &g));
    GN_TRY(gn_jinja_iterate(run, in, &cursor));
    GN_TRY(gn_jinja_dict_new(run, GN_J_DICT, 0, &seen));
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &list));
    for (;;) {
        gn_jval item;
        gn_jval key;
        bool more;
        GN_TRY(gn_jinja_next(run, &cursor, &item, &more));
        if (!more) {
            return gn_jinja_iter_new(run, list.u.list, out);
        }
        GN_TRY(get(run, &g, item, &key));
        size_t n = seen.u.dict->n;
        GN_TRY(gn_jinja_dict_set(run, seen.u.dict, key, gn_jnone()));
        if (seen.u.dict->n > n) {
            GN_TRY(gn_jinja_list_push(run, list.u.list, item));
        }
    }
}

static gn_status filter_groupby(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"attribute", "default", "case_sensitive"};
    gn_jval arg[3] = {gn_jnone(), gn_jnone(), gn_jbool(false)};
    getter g;
    gn_jval list = {0};
    gn_jval *keys;
    gn_jval groups;
    GN_TRY(gn_jinja_bind(run, "groupby", args, names, 3, 1, arg));
    GN_TRY(make_getter(run, arg[0], !gn_jinja_truth(arg[2]), &g));
    g.has_default = arg[1].type != GN_J_NONE;
    g.fallback = arg[1];
    GN_TRY(gn_jinja_list_copy(run, in, &list));
    size_t n = list.u.list->n;
    GN_TRY(new_keys(run, n, &keys));
    for (size_t i = 0; i < n; i++) {
        GN_TRY(get(run, &g, list.u.list->items[i], &keys[i]));
    }
    GN_TRY(gn_jinja_sort(run, keys, list.u.list->items, n, false));
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &groups));
    g.fold_case = false; /* a group shows the key of its first member as it is */
    for (size_t from = 0; from < n;) {
        gn_jval members;
        gn_jval key;
        gn_jval pair;
        bool same = true;
        GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 1, &members));
        size_t to = from;
        while (to < n && same) {
            GN_TRY(gn_jinja_list_push(run, members.u.list, list.u.list->items[to++]));
            if (to < n) {
                GN_TRY(gn_jinja_equal(run, keys[to], keys[from], &same));
            }
        }
        GN_TRY(get(run, &g, list.u.list->items[from], &key));
        GN_TRY(gn_jinja_pair(run, key, members, &pair));
        GN_TRY(gn_jinja_list_push(run, groups.u.list, pair));
        from = to;
    }
    *out = groups;
    return GN_OK;
}

/* ---- picking ---- */

static gn_status filter_map(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"attribute", "default"};
    gn_jcursor cursor;
    gn_jval list = {0};
    getter g = {0};
    const gn_jfilter *filter = NULL;
    gn_jargs rest = *args;
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &list));
    if (!gn_jinja_truth(in)) { /* Jinja looks no further then, not even at the arguments */
        return gn_jinja_iter_new(run, list.u.list, out);
    }
    if (args->n_pos == 0) {
        gn_jval arg[2] = {gn_jnone(), gn_jnone()};
        GN_TRY(gn_jinja_bind(run, "map", args, names, 2, 0, arg));
        if (arg[0].type == GN_J_NONE) {
            return gn_jinja_fail(run, "map requires a filter argument");
        }
        GN_TRY(make_getter(run, arg[0], false, &g));
        g.has_default = arg[1].type != GN_J_NONE;
        g.fallback = arg[1];
    } else {
        gn_jval name = args->pos[0];
        filter =
            name.type == GN_J_STRING ? gn_jinja_find_filter(name.u.s->data, name.u.s->len) : NULL;
        if (filter == NULL) {
            return gn_jinja_fail(run, "map: there is no such filter");
        }
        rest.pos++;
        rest.n_pos--;
    }
    GN_TRY(gn_jinja_iterate(run, in, &cursor));
    for (;;) {
        gn_jval item;
        bool more;
        GN_TRY(gn_jinja_next(run, &cursor, &item, &more));
        if (!more) {
            return gn_jinja_iter_new(run, list.u.list, out);
        }
        if (filter == NULL) {
            GN_TRY(get(run, &g, item, &item));
        } else {
            GN_TRY(gn_jinja_enter(run));
            GN_TRY(filter->apply(run, item, &rest, &item));
            gn_jinja_leave(run);
        }
        GN_TRY(gn_jinja_list_push(run, list.u.list, item));
    }
}

/* select, reject and their attr forms: items (or one attribute of each) that pass a test, or are true. */
static gn_status pick(gn_jrun *run, gn_jval in, const gn_jargs *args, bool by_attr, bool keep,
                      gn_jval *out)
{
    gn_jcursor cursor;
    gn_jval list = {0};
    getter g = {0};
    const gn_jtest *test = NULL;
    gn_jargs rest = *args;
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &list));
    if (!gn_jinja_truth(in)) {
        return gn_jinja_iter_new(run, list.u.list, out);
    }
    if (by_attr) {
        if (rest.n_pos == 0) {
            return gn_jinja_fail(run, "Missing parameter for attribute name");
        }
        GN_TRY(make_getter(run, rest.pos[0], false, &g));
        rest.pos++;
        rest.n_pos--;
    }
    if (rest.n_pos > 0) {
        gn_jval name = rest.pos[0];
        test = name.type == GN_J_STRING ? gn_jinja_find_test(name.u.s->data, name.u.s->len) : NULL;
        if (test == NULL) {
            return gn_jinja_fail(run, "select: there is no such test");
        }
        rest.pos++;
        rest.n_pos--;
    }
    GN_TRY(gn_jinja_iterate(run, in, &cursor));
    for (;;) {
        gn_jval item;
        gn_jval asked;
        bool more;
        GN_TRY(gn_jinja_next(run, &cursor, &item, &more));
        if (!more) {
            return gn_jinja_iter_new(run, list.u.list, out);
        }
        GN_TRY(get(run, &g, item, &asked));
        bool holds = test == NULL && gn_jinja_truth(asked);
        if (test != NULL) {
            GN_TRY(test->apply(run, asked, &rest, &holds));
        }
        if (holds == keep) {
            GN_TRY(gn_jinja_list_push(run, list.u.list, item));
        }
    }
}

static gn_status filter_select(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    return pick(run, in, args, false, true, out);
}

static gn_status filter_reject(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    return pick(run, in, args, false, false, out);
}

static gn_status filter_selectattr(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    return pick(run, in, args, true, true, out);
}

static gn_status filter_rejectattr(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    return pick(run, in, args, true, false, out);
}

/* ---- cutting into lists ---- */

static gn_status want_count(gn_jrun *run, const char *func, gn_jval v, int64_t *out)
{
    if (!gn_jinja_as_int(v, out)) {
        return gn_jinja_fail(run, "%s needs an integer", func);
    }
    return GN_OK;
}

static gn_status filter_batch(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"linecount", "fill_with"};
    gn_jval arg[2] = {gn_jnone(), gn_jnone()};
    int64_t size;
    gn_jlist *items;
    gn_jval rows;
    gn_jval row = gn_jnone();
    GN_TRY(gn_jinja_bind(run, "batch", args, names, 2, 1, arg));
    GN_TRY(want_count(run, "batch", arg[0], &size));
    GN_TRY(gn_jinja_items(run, in, &items));
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &rows));
    for (size_t i = 0; i < items->n; i++) {
        GN_TRY(gn_jinja_step(run, 1));
        if (row.type == GN_J_NONE || (int64_t)row.u.list->n == size) {
            if (row.type == GN_J_NONE && size == 0) { /* Jinja gives an empty row first here */
                GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &row));
                GN_TRY(gn_jinja_list_push(run, rows.u.list, row));
            }
            GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &row));
            GN_TRY(gn_jinja_list_push(run, rows.u.list, row));
        }
        GN_TRY(gn_jinja_list_push(run, row.u.list, items->items[i]));
    }
    while (row.type != GN_J_NONE && arg[1].type != GN_J_NONE && (int64_t)row.u.list->n < size) {
        GN_TRY(gn_jinja_step(run, 1));
        GN_TRY(gn_jinja_list_push(run, row.u.list, arg[1]));
    }
    return gn_jinja_iter_new(run, rows.u.list, out);
}

static gn_status filter_slice(gn_jrun *run, gn_jval in, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"slices", "fill_with"};
    gn_jval arg[2] = {gn_jnone(), gn_jnone()};
    int64_t slices;
    gn_jlist *items;
    gn_jval rows;
    GN_TRY(gn_jinja_bind(run, "slice", args, names, 2, 1, arg));
    GN_TRY(want_count(run, "slice", arg[0], &slices));
    GN_TRY(gn_jinja_items(run, in, &items));
    if (slices == 0) {
        return gn_jinja_fail(run, "division by zero");
    }
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &rows));
    int64_t per_slice = slices > 0 ? (int64_t)items->n / slices : 0;
    int64_t with_extra = slices > 0 ? (int64_t)items->n % slices : 0;
    size_t at = 0;
    for (int64_t k = 0; k < slices; k++) {
        gn_jval row;
        int64_t n = per_slice + (k < with_extra);
        GN_TRY(gn_jinja_step(run, 1 + (uint64_t)n));
        GN_TRY(gn_jinja_list_new(run, GN_J_LIST, (size_t)n + 1, &row));
        for (int64_t i = 0; i < n; i++) {
            GN_TRY(gn_jinja_list_push(run, row.u.list, items->items[at++]));
        }
        if (arg[1].type != GN_J_NONE && k >= with_extra) {
            GN_TRY(gn_jinja_list_push(run, row.u.list, arg[1]));
        }
        GN_TRY(gn_jinja_list_push(run, rows.u.list, row));
    }
    return gn_jinja_iter_new(run, rows.u.list, out);
}

const gn_jfilter GN_JINJA_SEQ_FILTERS[] = {
    {"batch", filter_batch},
    {"count", filter_length},
    {"dictsort", filter_dictsort},
    {"first", filter_first},
    {"groupby", filter_groupby},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"map", filter_map},
    {"max", filter_max},
    {"min", filter_min},
    {"reject", filter_reject},
    {"rejectattr", filter_rejectattr},
    {"reverse", filter_reverse},
    {"select", filter_select},
    {"selectattr", filter_selectattr},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"sum", filter_sum},
    {"unique", filter_unique},
    {NULL, NULL},
};
