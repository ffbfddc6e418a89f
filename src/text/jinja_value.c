/* Making, asking, comparing and walking values. Numbers compare and hash across bool, int and float as
 * in Python; strings compare by bytes, which for UTF-8 is the order of code points. */
#include "text/jinja_value.h"

#include "base/map.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

#define MIN_INDEXED 9u     /* a dict of fewer entries is searched in order */
#define MAX_RANGE   100000 /* the sandbox's own bound */

/* ---- strings ---- */

size_t gn_jinja_count_cp(const char *s, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        n += ((unsigned char)s[i] & 0xc0u) != 0x80u;
    }
    return n;
}

const gn_jstr *gn_jinja_str_in(gn_arena *arena, const char *s, size_t len)
{
    gn_jstr *str = gn_arena_alloc(arena, sizeof *str);
    char *copy = str != NULL ? gn_arena_strndup(arena, s, len) : NULL;
    if (copy == NULL) {
        return NULL;
    }
    *str = (gn_jstr){.data = copy, .len = len, .n_cp = gn_jinja_count_cp(s, len)};
    return str;
}

gn_status gn_jinja_str_view(gn_jrun *run, const char *s, size_t len, gn_jval *out)
{
    GN_TRY(gn_jinja_step_bytes(run, len));
    gn_jstr *str = gn_jinja_alloc(run, 1, sizeof *str);
    if (str == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    *str = (gn_jstr){.data = s, .len = len, .n_cp = gn_jinja_count_cp(s, len)};
    *out = gn_jstring(str);
    return GN_OK;
}

gn_status gn_jinja_str(gn_jrun *run, const char *s, size_t len, gn_jval *out)
{
    char *copy = gn_jinja_alloc(run, len + 1, 1);
    if (copy == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    if (len != 0) {
        memcpy(copy, s, len);
    }
    copy[len] = '\0';
    return gn_jinja_str_view(run, copy, len, out);
}

gn_status gn_jinja_str_captured(gn_jrun *run, size_t mark, gn_jval *out)
{
    size_t len = run->out->len - mark;
    const char *from = len != 0 ? run->out->data + mark : "";
    gn_status status = gn_jinja_str(run, from, len, out);
    run->out->len = mark;
    return status;
}

gn_status gn_jinja_concat(gn_jrun *run, const gn_jstr *a, const gn_jstr *b, gn_jval *out)
{
    gn_jstr *str = gn_jinja_alloc(run, 1, sizeof *str);
    if (str == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    gn_jgrow *grow = a->grow;
    bool extends = grow != NULL && a->data + a->len == grow->data + grow->used &&
                   b->len <= grow->cap - grow->used;
    if (!extends) {
        size_t len = a->len + b->len;
        size_t cap = len + len / 2 + 16; /* the slack pays for the next appends */
        grow = gn_jinja_alloc(run, 1, sizeof *grow);
        char *data = grow != NULL ? gn_jinja_alloc(run, cap, 1) : NULL;
        if (data == NULL) {
            return gn_jinja_alloc_failed(run);
        }
        *grow = (gn_jgrow){.data = data, .used = a->len, .cap = cap};
        memcpy(data, a->data, a->len);
    }
    GN_TRY(gn_jinja_step_bytes(run, extends ? b->len : a->len + b->len));
    const char *start = extends ? a->data : grow->data;
    memcpy(grow->data + grow->used, b->data, b->len);
    grow->used += b->len;
    *str =
        (gn_jstr){.data = start, .len = a->len + b->len, .n_cp = a->n_cp + b->n_cp, .grow = grow};
    *out = gn_jstring(str);
    return GN_OK;
}

gn_status gn_jinja_undefined_hint(gn_jrun *run, const char *hint, gn_jval *out)
{
    gn_jval text;
    GN_TRY(gn_jinja_str_view(run, hint, strlen(hint), &text));
    *out = (gn_jval){.type = GN_J_UNDEFINED, .sub = GN_J_UNDEF_HINT, .u.s = text.u.s};
    return GN_OK;
}

/* ---- lists ---- */

gn_status gn_jinja_list_new(gn_jrun *run, gn_jtype type, size_t cap, gn_jval *out)
{
    gn_jlist *list = gn_jinja_alloc(run, 1, sizeof *list);
    gn_jval *items = list != NULL ? gn_jinja_alloc(run, cap, sizeof *items) : NULL;
    if (items == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    *list = (gn_jlist){.items = items, .cap = cap};
    *out = (gn_jval){.type = (uint8_t)type, .u.list = list};
    return GN_OK;
}

gn_status gn_jinja_list_push(gn_jrun *run, gn_jlist *list, gn_jval v)
{
    if (list->n == list->cap) {
        size_t cap = list->cap < 4 ? 8 : list->cap * 2;
        gn_jval *items = gn_jinja_alloc(run, cap, sizeof *items);
        if (items == NULL) {
            return gn_jinja_alloc_failed(run);
        }
        if (list->n != 0) {
            memcpy(items, list->items, list->n * sizeof *items);
        }
        list->items = items;
        list->cap = cap;
    }
    list->items[list->n++] = v;
    return GN_OK;
}

gn_status gn_jinja_iter_new(gn_jrun *run, gn_jlist *list, gn_jval *out)
{
    gn_jiterable *iter = gn_jinja_alloc(run, 1, sizeof *iter);
    if (iter == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    *iter = (gn_jiterable){.list = list};
    *out = (gn_jval){.type = GN_J_ITER, .u.iter = iter};
    return GN_OK;
}

gn_status gn_jinja_pair(gn_jrun *run, gn_jval a, gn_jval b, gn_jval *out)
{
    gn_jval tuple;
    GN_TRY(gn_jinja_list_new(run, GN_J_TUPLE, 2, &tuple));
    tuple.u.list->items[0] = a;
    tuple.u.list->items[1] = b;
    tuple.u.list->n = 2;
    *out = tuple;
    return GN_OK;
}

int64_t gn_jinja_range_item(const gn_jrange *range, int64_t k)
{
    return (int64_t)((uint64_t)range->start + (uint64_t)k * (uint64_t)range->step);
}

gn_status gn_jinja_range_new(gn_jrun *run, int64_t start, int64_t stop, int64_t step, gn_jval *out)
{
    if (step == 0) {
        return gn_jinja_fail(run, "range() needs a step other than 0");
    }
    uint64_t span = 0;
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (step > 0 && start < stop) {
        span = (uint64_t)stop - (uint64_t)start;
    } else if (step < 0 && start > stop) {
        span = (uint64_t)start - (uint64_t)stop;
    }
    uint64_t n = span == 0 ? 0 : (span - 1) / stride + 1;
    if (n > MAX_RANGE) {
        return gn_jinja_fail(run, "range() is limited to %d items", MAX_RANGE);
    }
    gn_jrange *range = gn_jinja_alloc(run, 1, sizeof *range);
    if (range == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    *range = (gn_jrange){.start = start, .stop = stop, .step = step, .n = (int64_t)n};
    *out = (gn_jval){.type = GN_J_RANGE, .u.range = range};
    return GN_OK;
}

/* ---- dicts ---- */

static uint64_t hash_bytes(const void *p, size_t n)
{
    return gn_map_hash(p, n);
}

static bool hash_value(gn_jval v, unsigned depth, uint64_t *out)
{
    switch ((gn_jtype)v.type) {
    case GN_J_STRING: *out = hash_bytes(v.u.s->data, v.u.s->len); return true;
    case GN_J_BOOL:
    case GN_J_INT:
    case GN_J_FLOAT: { /* equal numbers of any type hash alike */
        double d = gn_jinja_number(v);
        d = d == 0 ? 0 : d;
        *out = hash_bytes(&d, sizeof d);
        return true;
    }
    case GN_J_TUPLE: {
        uint64_t h = 17;
        for (size_t i = 0; i < v.u.list->n; i++) {
            uint64_t item;
            if (depth == 0 || !hash_value(v.u.list->items[i], depth - 1, &item)) {
                return false;
            }
            h = h * 1000003u ^ item;
        }
        *out = h;
        return true;
    }
    case GN_J_LIST:
    case GN_J_DICT:
    case GN_J_VIEW: return false;
    default: *out = v.type; return true;
    }
}

bool gn_jinja_hashable(gn_jval v)
{
    uint64_t h;
    return hash_value(v, 16, &h);
}

gn_status gn_jinja_dict_new(gn_jrun *run, gn_jtype type, size_t cap, gn_jval *out)
{
    gn_jdict *dict = gn_jinja_alloc(run, 1, sizeof *dict);
    gn_jentry *entries = dict != NULL ? gn_jinja_alloc(run, cap, sizeof *entries) : NULL;
    if (entries == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    *dict = (gn_jdict){.entries = entries, .cap = cap};
    *out = (gn_jval){.type = (uint8_t)type, .u.dict = dict};
    return GN_OK;
}

static void index_entry(gn_jdict *dict, size_t entry)
{
    size_t slot = dict->entries[entry].hash & (dict->index_cap - 1);
    while (dict->index[slot] != 0) {
        slot = (slot + 1) & (dict->index_cap - 1);
    }
    dict->index[slot] = (uint32_t)entry + 1;
}

static gn_status find_entry(gn_jrun *run, const gn_jdict *dict, gn_jval key, uint64_t hash,
                            size_t *out)
{
    if (dict->index == NULL) {
        for (size_t i = 0; i < dict->n; i++) {
            bool same = false;
            if (dict->entries[i].hash == hash) {
                GN_TRY(gn_jinja_equal(run, dict->entries[i].key, key, &same));
            }
            if (same) {
                *out = i;
                return GN_OK;
            }
        }
        *out = SIZE_MAX;
        return GN_OK;
    }
    size_t slot = hash & (dict->index_cap - 1);
    for (; dict->index[slot] != 0; slot = (slot + 1) & (dict->index_cap - 1)) {
        size_t i = dict->index[slot] - 1;
        bool same = false;
        GN_TRY(gn_jinja_step(run, 1));
        if (dict->entries[i].hash == hash) {
            GN_TRY(gn_jinja_equal(run, dict->entries[i].key, key, &same));
        }
        if (same) {
            *out = i;
            return GN_OK;
        }
    }
    *out = SIZE_MAX;
    return GN_OK;
}

static gn_status grow_dict(gn_jrun *run, gn_jdict *dict)
{
    if (dict->n == dict->cap) {
        size_t cap = dict->cap < 4 ? 8 : dict->cap * 2;
        gn_jentry *entries = gn_jinja_alloc(run, cap, sizeof *entries);
        if (entries == NULL) {
            return gn_jinja_alloc_failed(run);
        }
        if (dict->n != 0) {
            memcpy(entries, dict->entries, dict->n * sizeof *entries);
        }
        dict->entries = entries;
        dict->cap = cap;
    }
    if (dict->n + 1 >= MIN_INDEXED && (dict->n + 1) * 2 > dict->index_cap) {
        size_t cap = dict->index_cap == 0 ? 32 : dict->index_cap * 2;
        while (cap < (dict->n + 1) * 2) {
            cap *= 2;
        }
        uint32_t *index = gn_jinja_alloc(run, cap, sizeof *index);
        if (index == NULL) {
            return gn_jinja_alloc_failed(run);
        }
        memset(index, 0, cap * sizeof *index);
        dict->index = index;
        dict->index_cap = cap;
        for (size_t i = 0; i < dict->n; i++) {
            index_entry(dict, i);
        }
    }
    return GN_OK;
}

gn_status gn_jinja_dict_set(gn_jrun *run, gn_jdict *dict, gn_jval key, gn_jval v)
{
    uint64_t hash;
    if (!hash_value(key, 16, &hash)) {
        return gn_jinja_fail(run, "a %s cannot be a key", gn_jinja_type_name((gn_jtype)key.type));
    }
    size_t at;
    GN_TRY(find_entry(run, dict, key, hash, &at));
    if (at != SIZE_MAX) {
        dict->entries[at].value = v;
        return GN_OK;
    }
    GN_TRY(grow_dict(run, dict));
    dict->entries[dict->n] = (gn_jentry){.key = key, .value = v, .hash = hash};
    if (dict->index != NULL) {
        index_entry(dict, dict->n);
    }
    dict->n++;
    return GN_OK;
}

gn_status gn_jinja_dict_get(gn_jrun *run, const gn_jdict *dict, gn_jval key, const gn_jval **found)
{
    *found = NULL;
    uint64_t hash;
    if (!hash_value(key, 16, &hash)) {
        return GN_OK;
    }
    size_t at;
    GN_TRY(find_entry(run, dict, key, hash, &at));
    if (at != SIZE_MAX) {
        *found = &dict->entries[at].value;
    }
    return GN_OK;
}

const gn_jval *gn_jinja_dict_get_str(const gn_jdict *dict, const char *key, size_t len)
{
    uint64_t hash = hash_bytes(key, len);
    if (dict->index == NULL) {
        for (size_t i = 0; i < dict->n; i++) {
            if (dict->entries[i].hash == hash && gn_jis_str(dict->entries[i].key, key, len)) {
                return &dict->entries[i].value;
            }
        }
        return NULL;
    }
    size_t slot = hash & (dict->index_cap - 1);
    for (; dict->index[slot] != 0; slot = (slot + 1) & (dict->index_cap - 1)) {
        const gn_jentry *entry = &dict->entries[dict->index[slot] - 1];
        if (entry->hash == hash && gn_jis_str(entry->key, key, len)) {
            return &entry->value;
        }
    }
    return NULL;
}

/* ---- asking ---- */

const char *gn_jinja_type_name(gn_jtype type)
{
    static const char *const names[] = {
        [GN_J_UNDEFINED] = "Undefined", [GN_J_NONE] = "NoneType",
        [GN_J_BOOL] = "bool",           [GN_J_INT] = "int",
        [GN_J_FLOAT] = "float",         [GN_J_STRING] = "str",
        [GN_J_LIST] = "list",           [GN_J_TUPLE] = "tuple",
        [GN_J_DICT] = "dict",           [GN_J_VIEW] = "dict view",
        [GN_J_NAMESPACE] = "Namespace", [GN_J_RANGE] = "range",
        [GN_J_ITER] = "generator",      [GN_J_MACRO] = "Macro",
        [GN_J_FUNC] = "function",       [GN_J_METHOD] = "method",
        [GN_J_LOOP] = "LoopContext",    [GN_J_CYCLER] = "Cycler",
        [GN_J_JOINER] = "Joiner",
    };
    return names[type];
}

bool gn_jinja_truth(gn_jval v)
{
    switch ((gn_jtype)v.type) {
    case GN_J_UNDEFINED:
    case GN_J_NONE: return false;
    case GN_J_BOOL: return v.u.b;
    case GN_J_INT: return v.u.i != 0;
    case GN_J_FLOAT: return v.u.f != 0;
    case GN_J_STRING: return v.u.s->len != 0;
    case GN_J_LIST:
    case GN_J_TUPLE: return v.u.list->n != 0;
    case GN_J_DICT:
    case GN_J_VIEW: return v.u.dict->n != 0;
    case GN_J_RANGE: return v.u.range->n != 0;
    default: return true;
    }
}

bool gn_jinja_is_number(gn_jval v)
{
    return v.type == GN_J_BOOL || v.type == GN_J_INT || v.type == GN_J_FLOAT;
}

double gn_jinja_number(gn_jval v)
{
    return v.type == GN_J_FLOAT ? v.u.f : v.type == GN_J_INT ? (double)v.u.i : (double)v.u.b;
}

bool gn_jinja_as_int(gn_jval v, int64_t *out)
{
    if (v.type == GN_J_INT) {
        *out = v.u.i;
    } else if (v.type == GN_J_BOOL) {
        *out = v.u.b;
    } else {
        return false;
    }
    return true;
}

/* Exact comparison of an integer with a float, as Python's: never by rounding the integer. */
static int compare_int_float(int64_t i, double f)
{
    if (isnan(f)) {
        return 2;
    }
    if (f >= 0x1p63) {
        return -1;
    }
    if (f < -0x1p63) {
        return 1;
    }
    int64_t whole = (int64_t)f;
    if (i != whole) {
        return i < whole ? -1 : 1;
    }
    double rest = f - (double)whole;
    return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

static int compare_numbers(gn_jval a, gn_jval b)
{
    int64_t x = 0;
    int64_t y = 0;
    bool x_int = gn_jinja_as_int(a, &x);
    bool y_int = gn_jinja_as_int(b, &y);
    if (x_int && y_int) {
        return x < y ? -1 : x > y;
    }
    if (x_int) {
        return compare_int_float(x, b.u.f);
    }
    if (y_int) {
        int c = compare_int_float(y, a.u.f);
        return c == 2 ? 2 : -c;
    }
    return isnan(a.u.f) || isnan(b.u.f) ? 2 : a.u.f < b.u.f ? -1 : a.u.f > b.u.f;
}

static int compare_strings(const gn_jstr *a, const gn_jstr *b)
{
    size_t n = a->len < b->len ? a->len : b->len;
    int c = n != 0 ? memcmp(a->data, b->data, n) : 0;
    if (c != 0) {
        return c < 0 ? -1 : 1;
    }
    return a->len < b->len ? -1 : a->len > b->len;
}

static gn_status equal_lists(gn_jrun *run, const gn_jlist *a, const gn_jlist *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) {
        GN_TRY(gn_jinja_step(run, 1));
        GN_TRY(gn_jinja_equal(run, a->items[i], b->items[i], out));
    }
    return GN_OK;
}

static gn_status equal_dicts(gn_jrun *run, const gn_jdict *a, const gn_jdict *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) {
        const gn_jval *other;
        GN_TRY(gn_jinja_step(run, 1));
        GN_TRY(gn_jinja_dict_get(run, b, a->entries[i].key, &other));
        *out = other != NULL;
        if (other != NULL) {
            GN_TRY(gn_jinja_equal(run, a->entries[i].value, *other, out));
        }
    }
    return GN_OK;
}

static bool equal_ranges(const gn_jrange *a, const gn_jrange *b)
{
    return a->n == b->n &&
           (a->n == 0 || (a->start == b->start && (a->n == 1 || a->step == b->step)));
}

gn_status gn_jinja_equal(gn_jrun *run, gn_jval a, gn_jval b, bool *out)
{
    if (gn_jinja_is_number(a) && gn_jinja_is_number(b)) {
        *out = compare_numbers(a, b) == 0;
        return GN_OK;
    }
    if (a.type != b.type) {
        *out = false;
        return GN_OK;
    }
    gn_status status = GN_OK;
    switch ((gn_jtype)a.type) {
    case GN_J_UNDEFINED:
    case GN_J_NONE: *out = true; break;
    case GN_J_STRING:
        *out = a.u.s == b.u.s ||
               (a.u.s->len == b.u.s->len && memcmp(a.u.s->data, b.u.s->data, a.u.s->len) == 0);
        status = gn_jinja_step_bytes(run, a.u.s->len);
        break;
    case GN_J_LIST:
    case GN_J_TUPLE:
        GN_TRY(gn_jinja_enter(run));
        status = equal_lists(run, a.u.list, b.u.list, out);
        gn_jinja_leave(run);
        break;
    case GN_J_DICT:
        GN_TRY(gn_jinja_enter(run));
        status = equal_dicts(run, a.u.dict, b.u.dict, out);
        gn_jinja_leave(run);
        break;
    case GN_J_RANGE: *out = equal_ranges(a.u.range, b.u.range); break;
    default: *out = a.u.dict == b.u.dict; break;
    }
    return status;
}

static gn_status compare_lists(gn_jrun *run, const gn_jlist *a, const gn_jlist *b, const char *op,
                               int *out)
{
    size_t n = a->n < b->n ? a->n : b->n;
    for (size_t i = 0; i < n; i++) {
        bool same;
        GN_TRY(gn_jinja_step(run, 1));
        GN_TRY(gn_jinja_equal(run, a->items[i], b->items[i], &same));
        if (!same) {
            return gn_jinja_compare(run, a->items[i], b->items[i], op, out);
        }
    }
    *out = a->n < b->n ? -1 : a->n > b->n;
    return GN_OK;
}

gn_status gn_jinja_compare(gn_jrun *run, gn_jval a, gn_jval b, const char *op, int *out)
{
    if (a.type == GN_J_UNDEFINED || b.type == GN_J_UNDEFINED) {
        return gn_jinja_fail_undefined(run, a.type == GN_J_UNDEFINED ? a : b);
    }
    if (gn_jinja_is_number(a) && gn_jinja_is_number(b)) {
        *out = compare_numbers(a, b);
        return GN_OK;
    }
    if (a.type == GN_J_STRING && b.type == GN_J_STRING) {
        *out = compare_strings(a.u.s, b.u.s);
        return gn_jinja_step_bytes(run, a.u.s->len);
    }
    if (a.type == b.type && (a.type == GN_J_LIST || a.type == GN_J_TUPLE)) {
        GN_TRY(gn_jinja_enter(run));
        gn_status status = compare_lists(run, a.u.list, b.u.list, op, out);
        gn_jinja_leave(run);
        return status;
    }
    return gn_jinja_fail(run, "'%s' is not supported between '%s' and '%s'", op,
                         gn_jinja_type_name((gn_jtype)a.type),
                         gn_jinja_type_name((gn_jtype)b.type));
}

bool gn_jinja_has_length(gn_jval v)
{
    switch ((gn_jtype)v.type) {
    case GN_J_UNDEFINED:
    case GN_J_STRING:
    case GN_J_LIST:
    case GN_J_TUPLE:
    case GN_J_DICT:
    case GN_J_VIEW:
    case GN_J_RANGE: return true;
    default: return false;
    }
}

gn_status gn_jinja_length(gn_jrun *run, gn_jval v, size_t *out)
{
    switch ((gn_jtype)v.type) {
    case GN_J_UNDEFINED: *out = 0; break;
    case GN_J_STRING: *out = v.u.s->n_cp; break;
    case GN_J_LIST:
    case GN_J_TUPLE: *out = v.u.list->n; break;
    case GN_J_DICT:
    case GN_J_VIEW: *out = v.u.dict->n; break;
    case GN_J_RANGE: *out = (size_t)v.u.range->n; break;
    default: return gn_jinja_fail(run, "a %s has no length", gn_jinja_type_name((gn_jtype)v.type));
    }
    return GN_OK;
}

bool gn_jinja_is_iterable(gn_jval v)
{
    return gn_jinja_has_length(v) || v.type == GN_J_ITER;
}

bool gn_jinja_is_callable(gn_jval v)
{
    return v.type == GN_J_MACRO || v.type == GN_J_FUNC || v.type == GN_J_METHOD ||
           v.type == GN_J_LOOP || v.type == GN_J_JOINER || v.type == GN_J_UNDEFINED;
}

/* ---- walking ---- */

gn_status gn_jinja_iterate(gn_jrun *run, gn_jval v, gn_jcursor *out)
{
    if (!gn_jinja_is_iterable(v)) {
        return gn_jinja_fail(run, "a %s is not iterable", gn_jinja_type_name((gn_jtype)v.type));
    }
    *out = (gn_jcursor){.over = v};
    return GN_OK;
}

static gn_status view_item(gn_jrun *run, gn_jval view, size_t at, gn_jval *out)
{
    const gn_jentry *entry = &view.u.dict->entries[at];
    if (view.sub == GN_J_ITEMS) {
        return gn_jinja_pair(run, entry->key, entry->value, out);
    }
    *out = view.sub == GN_J_KEYS ? entry->key : entry->value;
    return GN_OK;
}

gn_status gn_jinja_next(gn_jrun *run, gn_jcursor *cursor, gn_jval *out, bool *more)
{
    GN_TRY(gn_jinja_step(run, 1));
    gn_jval v = cursor->over;
    size_t at = cursor->pos;
    *more = false;
    switch ((gn_jtype)v.type) {
    case GN_J_LIST:
    case GN_J_TUPLE:
        if (at < v.u.list->n) {
            *out = v.u.list->items[at];
            *more = true;
        }
        break;
    case GN_J_ITER:
        if (v.u.iter->pos < v.u.iter->list->n) {
            *out = v.u.iter->list->items[v.u.iter->pos++];
            *more = true;
        }
        break;
    case GN_J_DICT:
        if (at < v.u.dict->n) {
            *out = v.u.dict->entries[at].key;
            *more = true;
        }
        break;
    case GN_J_VIEW:
        if (at < v.u.dict->n) {
            GN_TRY(view_item(run, v, at, out));
            *more = true;
        }
        break;
    case GN_J_RANGE:
        if ((int64_t)at < v.u.range->n) {
            *out = gn_jint(gn_jinja_range_item(v.u.range, (int64_t)at));
            *more = true;
        }
        break;
    case GN_J_STRING:
        if (at < v.u.s->len) {
            uint32_t cp;
            size_t used = gn_utf8_decode(v.u.s->data + at, v.u.s->len - at, &cp);
            used = used != 0 ? used : 1;
            GN_TRY(gn_jinja_str_view(run, v.u.s->data + at, used, out));
            cursor->pos = at + used - 1;
            *more = true;
        }
        break;
    default: break;
    }
    cursor->pos++;
    return GN_OK;
}

gn_status gn_jinja_list_copy(gn_jrun *run, gn_jval in, gn_jval *out)
{
    gn_jcursor cursor;
    gn_jval list = {0};
    GN_TRY(gn_jinja_iterate(run, in, &cursor));
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &list));
    for (;;) {
        gn_jval item;
        bool more;
        GN_TRY(gn_jinja_next(run, &cursor, &item, &more));
        if (!more) {
            *out = list;
            return GN_OK;
        }
        GN_TRY(gn_jinja_list_push(run, list.u.list, item));
    }
}

gn_status gn_jinja_items(gn_jrun *run, gn_jval v, gn_jlist **out)
{
    if (v.type == GN_J_LIST || v.type == GN_J_TUPLE) {
        *out = v.u.list;
        return GN_OK;
    }
    gn_jval list = {0};
    GN_TRY(gn_jinja_list_copy(run, v, &list));
    *out = list.u.list;
    return GN_OK;
}

/* ---- sorting ---- */

typedef struct sort_row {
    gn_jval key;
    gn_jval item;
} sort_row;

static gn_status merge_runs(gn_jrun *run, const sort_row *from, sort_row *to, size_t lo, size_t mid,
                            size_t hi, bool reverse)
{
    size_t a = lo;
    size_t b = mid;
    for (size_t k = lo; k < hi; k++) {
        bool take_b = b < hi;
        if (a < mid && b < hi) {
            int c;
            GN_TRY(gn_jinja_step(run, 1));
            GN_TRY(gn_jinja_compare(run, from[b].key, from[a].key, "<", &c));
            take_b = reverse ? c == 1 : c == -1;
        }
        to[k] = take_b ? from[b++] : from[a++];
    }
    return GN_OK;
}

gn_status gn_jinja_sort(gn_jrun *run, gn_jval *keys, gn_jval *items, size_t n, bool reverse)
{
    sort_row *rows = gn_jinja_alloc(run, n, sizeof *rows);
    sort_row *other = rows != NULL ? gn_jinja_alloc(run, n, sizeof *rows) : NULL;
    if (other == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    for (size_t i = 0; i < n; i++) {
        rows[i] = (sort_row){.key = keys[i], .item = items[i]};
    }
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t mid = lo + width < n ? lo + width : n;
            size_t hi = lo + 2 * width < n ? lo + 2 * width : n;
            GN_TRY(merge_runs(run, rows, other, lo, mid, hi, reverse));
        }
        sort_row *swap = rows;
        rows = other;
        other = swap;
    }
    for (size_t i = 0; i < n; i++) {
        keys[i] = rows[i].key;
        items[i] = rows[i].item;
    }
    return GN_OK;
}
