/* Python's operators, subscripts and attributes. */
#include "text/jinja_eval.h"
#include "text/jinja_lib.h"

#include <math.h>
#include <string.h>

/* ---- arithmetic ---- */

static gn_status overflow(gn_jrun *run, const char *op)
{
    return gn_jinja_fail(run, "the result of '%s' does not fit into 64 bits", op);
}

static gn_status int_pow(gn_jrun *run, int64_t base, int64_t exponent, gn_jval *out)
{
    int64_t result = 1;
    while (exponent > 0) {
        if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
            return overflow(run, "**");
        }
        exponent >>= 1;
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
            return overflow(run, "**");
        }
    }
    *out = gn_jint(result);
    return GN_OK;
}

static gn_status int_binary(gn_jrun *run, const char *op, int64_t a, int64_t b, gn_jval *out)
{
    int64_t r = 0;
    bool over = false;
    bool floor_div = op[0] == '/' && op[1] == '/';
    if (op[0] == '+') {
        over = __builtin_add_overflow(a, b, &r);
    } else if (op[0] == '-') {
        over = __builtin_sub_overflow(a, b, &r);
    } else if (op[0] == '*' && op[1] == '*') {
        return int_pow(run, a, b, out);
    } else if (op[0] == '*') {
        over = __builtin_mul_overflow(a, b, &r);
    } else if (b == 0) {
        return gn_jinja_fail(run, "division by zero");
    } else if (b == -1) {
        over = floor_div && __builtin_sub_overflow((int64_t)0, a, &r);
    } else if (floor_div) {
        r = a / b - (a % b != 0 && (a < 0) != (b < 0));
    } else {
        r = a % b;
        r += r != 0 && (r < 0) != (b < 0) ? b : 0;
    }
    if (over) {
        return overflow(run, op);
    }
    *out = gn_jint(r);
    return GN_OK;
}

static double float_mod(double a, double b)
{
    double r = fmod(a, b);
    if (r == 0) {
        return copysign(0.0, b);
    }
    return (r < 0) != (b < 0) ? r + b : r;
}

/* Python's float floor division, which rounds the exact quotient down. */
static double float_floordiv(double a, double b)
{
    double r = fmod(a, b);
    double q = (a - r) / b;
    if (r != 0 && (r < 0) != (b < 0)) {
        q -= 1.0;
    }
    if (q == 0) {
        return copysign(0.0, a / b);
    }
    double down = floor(q);
    return q - down > 0.5 ? down + 1.0 : down;
}

static gn_status float_binary(gn_jrun *run, const char *op, double a, double b, gn_jval *out)
{
    double r;
    if (op[0] == '+') {
        r = a + b;
    } else if (op[0] == '-') {
        r = a - b;
    } else if (op[0] == '*' && op[1] == '*') {
        if (a == 0 && b < 0) {
            return gn_jinja_fail(run, "0.0 cannot be raised to a negative power");
        }
        if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b)) {
            return gn_jinja_fail(run, "a negative number to a fractional power is complex");
        }
        r = pow(a, b);
        if (isinf(r) && isfinite(a) && isfinite(b)) {
            return overflow(run, op);
        }
    } else if (op[0] == '*') {
        r = a * b;
    } else if (b == 0) {
        return gn_jinja_fail(run, "division by zero");
    } else if (op[0] == '%') {
        r = float_mod(a, b);
    } else {
        r = op[1] == '/' ? float_floordiv(a, b) : a / b;
    }
    *out = gn_jfloat(r);
    return GN_OK;
}

static gn_status number_binary(gn_jrun *run, const char *op, gn_jval a, gn_jval b, gn_jval *out)
{
    int64_t x;
    int64_t y;
    bool true_div = op[0] == '/' && op[1] == '\0';
    if (gn_jinja_as_int(a, &x) && gn_jinja_as_int(b, &y) && !true_div && !(op[1] == '*' && y < 0)) {
        return int_binary(run, op, x, y, out);
    }
    return float_binary(run, op, gn_jinja_number(a), gn_jinja_number(b), out);
}

static gn_status add_strings(gn_jrun *run, gn_jval a, gn_jval b, gn_jval *out)
{
    bool markup = gn_jis_markup(a) || gn_jis_markup(b);
    if (markup) {
        GN_TRY(gn_jinja_escape(run, a, &a));
        GN_TRY(gn_jinja_escape(run, b, &b));
    }
    GN_TRY(gn_jinja_concat(run, a.u.s, b.u.s, out));
    out->sub = markup;
    return GN_OK;
}

static gn_status add_lists(gn_jrun *run, gn_jval a, gn_jval b, gn_jval *out)
{
    size_t n = a.u.list->n + b.u.list->n;
    gn_jval sum;
    GN_TRY(gn_jinja_step(run, n));
    GN_TRY(gn_jinja_list_new(run, (gn_jtype)a.type, n, &sum));
    for (size_t i = 0; i < a.u.list->n; i++) {
        sum.u.list->items[i] = a.u.list->items[i];
    }
    for (size_t i = 0; i < b.u.list->n; i++) {
        sum.u.list->items[a.u.list->n + i] = b.u.list->items[i];
    }
    sum.u.list->n = n;
    *out = sum;
    return GN_OK;
}

static gn_status repeat(gn_jrun *run, gn_jval v, int64_t times, gn_jval *out)
{
    size_t n = v.type == GN_J_STRING ? v.u.s->len : v.u.list->n;
    size_t total;
    times = times < 0 ? 0 : times;
    if (__builtin_mul_overflow(n, (size_t)times, &total)) {
        return gn_jinja_fail_limit(run, "a repetition is too long");
    }
    if (v.type != GN_J_STRING) {
        gn_jval list = {0};
        GN_TRY(gn_jinja_step(run, total));
        GN_TRY(gn_jinja_list_new(run, (gn_jtype)v.type, total, &list));
        for (size_t i = 0; i < total; i++) {
            list.u.list->items[i] = v.u.list->items[i % n];
        }
        list.u.list->n = total;
        *out = list;
        return GN_OK;
    }
    char *text = gn_jinja_alloc(run, total + (total != SIZE_MAX), 1);
    if (text == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    for (size_t at = 0; at < total; at += n) {
        memcpy(text + at, v.u.s->data, n);
    }
    text[total] = '\0';
    GN_TRY(gn_jinja_str_view(run, text, total, out));
    out->sub = v.sub;
    return GN_OK;
}

static bool is_sequence(gn_jval v)
{
    return v.type == GN_J_STRING || v.type == GN_J_LIST || v.type == GN_J_TUPLE;
}

gn_status gn_jinja_binary(gn_jrun *run, const char *op, gn_jval a, gn_jval b, gn_jval *out)
{
    int64_t times;
    if (gn_jinja_is_number(a) && gn_jinja_is_number(b)) {
        return number_binary(run, op, a, b, out);
    }
    if (a.type == GN_J_STRING && op[0] == '%') {
        return gn_jinja_percent(run, a, b, out);
    }
    if (a.type == GN_J_UNDEFINED || b.type == GN_J_UNDEFINED) {
        return gn_jinja_fail_undefined(run, a.type == GN_J_UNDEFINED ? a : b);
    }
    if (op[0] == '+' && a.type == b.type && a.type == GN_J_STRING) {
        return add_strings(run, a, b, out);
    }
    if (op[0] == '+' && a.type == b.type && is_sequence(a)) {
        return add_lists(run, a, b, out);
    }
    if (op[0] == '*' && op[1] == '\0' && is_sequence(a) && gn_jinja_as_int(b, &times)) {
        return repeat(run, a, times, out);
    }
    if (op[0] == '*' && op[1] == '\0' && is_sequence(b) && gn_jinja_as_int(a, &times)) {
        return repeat(run, b, times, out);
    }
    return gn_jinja_fail(run, "unsupported operand types for %s: '%s' and '%s'", op,
                         gn_jinja_type_name((gn_jtype)a.type),
                         gn_jinja_type_name((gn_jtype)b.type));
}

gn_status gn_jinja_negate(gn_jrun *run, gn_jval a, gn_jval *out)
{
    if (a.type == GN_J_FLOAT) {
        *out = gn_jfloat(-a.u.f);
        return GN_OK;
    }
    int64_t i = 0;
    (void)gn_jinja_as_int(a, &i);
    return int_binary(run, "-", 0, i, out);
}

/* ---- membership ---- */

gn_status gn_jinja_contains(gn_jrun *run, gn_jval haystack, gn_jval needle, bool *out)
{
    *out = false;
    if (haystack.type == GN_J_STRING) {
        if (needle.type != GN_J_STRING) {
            return gn_jinja_fail(run, "'in <string>' requires string as left operand, not %s",
                                 gn_jinja_type_name((gn_jtype)needle.type));
        }
        GN_TRY(gn_jinja_step_bytes(run, haystack.u.s->len));
        *out = needle.u.s->len == 0 || memmem(haystack.u.s->data, haystack.u.s->len,
                                              needle.u.s->data, needle.u.s->len) != NULL;
        return GN_OK;
    }
    if (haystack.type == GN_J_DICT || (haystack.type == GN_J_VIEW && haystack.sub == GN_J_KEYS)) {
        const gn_jval *found;
        if (!gn_jinja_hashable(needle)) {
            return gn_jinja_fail(run, "a %s cannot be a key",
                                 gn_jinja_type_name((gn_jtype)needle.type));
        }
        GN_TRY(gn_jinja_dict_get(run, haystack.u.dict, needle, &found));
        *out = found != NULL;
        return GN_OK;
    }
    gn_jcursor cursor;
    GN_TRY(gn_jinja_iterate(run, haystack, &cursor));
    while (!*out) {
        gn_jval item;
        bool more;
        GN_TRY(gn_jinja_next(run, &cursor, &item, &more));
        if (!more) {
            break;
        }
        GN_TRY(gn_jinja_equal(run, item, needle, out));
    }
    return GN_OK;
}

/* ---- attributes and subscripts ---- */

gn_status gn_jinja_bind_method(gn_jrun *run, gn_jval self, const char *name,
                               gn_status (*call)(gn_jrun *, gn_jval, const gn_jargs *, gn_jval *),
                               gn_jval *out)
{
    gn_jmethod *method = gn_jinja_alloc(run, 1, sizeof *method);
    if (method == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    *method = (gn_jmethod){.self = self, .name = name, .call = call};
    *out = (gn_jval){.type = GN_J_METHOD, .u.method = method};
    return GN_OK;
}

static gn_jval missing(gn_jundef why, gn_jval obj, const gn_jstr *name)
{
    return (gn_jval){.type = GN_J_UNDEFINED, .sub = (uint8_t)why, .of = obj.type, .u.s = name};
}

gn_status gn_jinja_getattr(gn_jrun *run, gn_jval obj, const gn_jstr *name, gn_jval *out)
{
    if (obj.type == GN_J_UNDEFINED && strcmp(name->data, "__class__") != 0) {
        return gn_jinja_fail_undefined(run, obj);
    }
    bool found;
    GN_TRY(gn_jinja_attribute(run, obj, name, out, &found));
    if (found) {
        return GN_OK;
    }
    if (obj.type == GN_J_DICT) {
        const gn_jval *value = gn_jinja_dict_get_str(obj.u.dict, name->data, name->len);
        if (value != NULL) {
            *out = *value;
            return GN_OK;
        }
    }
    bool internal = name->len > 2 && name->data[0] == '_' && name->data[1] == '_';
    *out = missing(internal ? GN_J_UNDEF_UNSAFE : GN_J_UNDEF_ATTR, obj, name);
    return GN_OK;
}

/* Item `at` of a sequence, negative from the end; false where it is out of range or obj is none. */
static gn_status item_at(gn_jrun *run, gn_jval obj, int64_t at, gn_jval *out, bool *found)
{
    size_t n = 0;
    *found = false;
    if (obj.type != GN_J_LIST && obj.type != GN_J_TUPLE && obj.type != GN_J_STRING &&
        obj.type != GN_J_RANGE) {
        return GN_OK;
    }
    GN_TRY(gn_jinja_length(run, obj, &n));
    at += at < 0 ? (int64_t)n : 0;
    if (at < 0 || at >= (int64_t)n) {
        return GN_OK;
    }
    *found = true;
    if (obj.type == GN_J_RANGE) {
        *out = gn_jint(gn_jinja_range_item(obj.u.range, at));
    } else if (obj.type != GN_J_STRING) {
        *out = obj.u.list->items[at];
    } else {
        GN_TRY(gn_jinja_step_bytes(run, obj.u.s->n_cp == obj.u.s->len ? 1 : obj.u.s->len));
        size_t from = gn_jinja_cp_offset(obj.u.s, (size_t)at);
        size_t to = from + 1;
        while (to < obj.u.s->len && ((unsigned char)obj.u.s->data[to] & 0xc0u) == 0x80u) {
            to++;
        }
        GN_TRY(gn_jinja_str_view(run, obj.u.s->data + from, to - from, out));
        out->sub = obj.sub;
    }
    return GN_OK;
}

gn_status gn_jinja_getitem(gn_jrun *run, gn_jval obj, gn_jval key, gn_jval *out)
{
    bool found = false;
    int64_t at;
    if (obj.type == GN_J_UNDEFINED) {
        return gn_jinja_fail_undefined(run, obj);
    }
    if (obj.type == GN_J_DICT) {
        const gn_jval *value;
        GN_TRY(gn_jinja_dict_get(run, obj.u.dict, key, &value));
        if (value != NULL) {
            *out = *value;
            return GN_OK;
        }
    } else if (gn_jinja_as_int(key, &at)) {
        GN_TRY(item_at(run, obj, at, out, &found));
    }
    if (!found && key.type == GN_J_STRING) {
        GN_TRY(gn_jinja_attribute(run, obj, key.u.s, out, &found));
    }
    if (!found) {
        bool named = key.type == GN_J_STRING;
        *out = missing(named ? GN_J_UNDEF_ATTR : GN_J_UNDEF_ELEM, obj, named ? key.u.s : NULL);
    }
    return GN_OK;
}

/* Python's slice.indices(n): where the slice begins, how it steps, and how many items it has. */
static gn_status slice_range(gn_jrun *run, const gn_jval part[3], int64_t n, int64_t *start,
                             int64_t *step, int64_t *count)
{
    int64_t value[3] = {0, 0, 1};
    bool given[3];
    for (size_t i = 0; i < 3; i++) {
        given[i] = part[i].type != GN_J_NONE;
        if (given[i] && !gn_jinja_as_int(part[i], &value[i])) {
            return gn_jinja_fail(run, "slice indices must be integers or none");
        }
    }
    if (value[2] == 0) {
        return gn_jinja_fail(run, "slice step cannot be zero");
    }
    bool down = value[2] < 0;
    int64_t lowest = down ? -1 : 0;
    int64_t highest = down ? n - 1 : n;
    int64_t bound[2] = {down ? highest : lowest, down ? lowest : highest};
    for (size_t i = 0; i < 2; i++) {
        if (given[i]) {
            int64_t v = value[i] < 0 ? value[i] + n : value[i];
            bound[i] = v < lowest ? lowest : v > highest ? highest : v;
        }
    }
    uint64_t stride = down ? 0 - (uint64_t)value[2] : (uint64_t)value[2];
    int64_t span = down ? bound[0] - bound[1] : bound[1] - bound[0];
    *start = bound[0];
    *step = value[2];
    *count = span <= 0 ? 0 : (int64_t)(((uint64_t)span - 1) / stride) + 1;
    return GN_OK;
}

static gn_status slice_string(gn_jrun *run, gn_jval obj, int64_t start, int64_t step, int64_t count,
                              gn_jval *out)
{
    const gn_jstr *s = obj.u.s;
    bool ascii = s->len == s->n_cp;
    if (step == 1 || count == 0) {
        size_t from = gn_jinja_cp_offset(s, count == 0 ? 0 : (size_t)start);
        size_t to = count == 0 ? from : gn_jinja_cp_offset(s, (size_t)(start + count));
        GN_TRY(gn_jinja_step_bytes(run, ascii ? 1 : s->len));
        GN_TRY(gn_jinja_str_view(run, s->data + from, to - from, out));
        out->sub = obj.sub;
        return GN_OK;
    }
    char *text = gn_jinja_alloc(run, (size_t)count + 1, ascii ? 1 : 4);
    if (text == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    GN_TRY(gn_jinja_step_bytes(run, s->len));
    size_t len = 0;
    size_t at = gn_jinja_cp_offset(s, (size_t)start);
    for (int64_t k = 0;;) {
        do {
            text[len++] = s->data[at++];
        } while (at < s->len && ((unsigned char)s->data[at] & 0xc0u) == 0x80u);
        if (++k == count) {
            break;
        }
        /* `at` is behind the code point just copied: one step forward already, two back to its left. */
        int64_t moves = step - 1;
        for (; moves > 0; moves--) {
            at++;
            while (at < s->len && ((unsigned char)s->data[at] & 0xc0u) == 0x80u) {
                at++;
            }
        }
        for (; moves < 0; moves++) {
            at--;
            while (at > 0 && ((unsigned char)s->data[at] & 0xc0u) == 0x80u) {
                at--;
            }
        }
    }
    text[len] = '\0';
    GN_TRY(gn_jinja_str_view(run, text, len, out));
    out->sub = obj.sub;
    return GN_OK;
}

gn_status gn_jinja_slice(gn_jrun *run, gn_jval obj, const gn_jval part[3], gn_jval *out)
{
    int64_t start = 0;
    int64_t step = 0;
    int64_t count = 0;
    size_t n;
    if (obj.type == GN_J_UNDEFINED) {
        return gn_jinja_fail_undefined(run, obj);
    }
    if (!is_sequence(obj) && obj.type != GN_J_RANGE) {
        return gn_jinja_fail(run, "a %s cannot be sliced", gn_jinja_type_name((gn_jtype)obj.type));
    }
    GN_TRY(gn_jinja_length(run, obj, &n));
    GN_TRY(slice_range(run, part, (int64_t)n, &start, &step, &count));
    if (obj.type == GN_J_STRING) {
        return slice_string(run, obj, start, step, count, out);
    }
    if (obj.type == GN_J_RANGE) {
        int64_t stride;
        int64_t end;
        const gn_jrange *range = obj.u.range;
        int64_t first = gn_jinja_range_item(range, start);
        if (__builtin_mul_overflow(range->step, step, &stride) ||
            __builtin_mul_overflow(stride, count, &end) ||
            __builtin_add_overflow(first, end, &end)) {
            return overflow(run, "slice");
        }
        return gn_jinja_range_new(run, first, end, stride, out);
    }
    gn_jval list = {0};
    GN_TRY(gn_jinja_step(run, (uint64_t)count));
    GN_TRY(gn_jinja_list_new(run, (gn_jtype)obj.type, (size_t)count, &list));
    for (int64_t k = 0; k < count; k++) {
        list.u.list->items[k] = obj.u.list->items[start + k * step];
    }
    list.u.list->n = (size_t)count;
    *out = list;
    return GN_OK;
}

/* ---- calls ---- */

gn_status gn_jinja_call(gn_jrun *run, gn_jval callee, const gn_jargs *args, gn_jval *out)
{
    switch ((gn_jtype)callee.type) {
    case GN_J_UNDEFINED: return gn_jinja_fail_undefined(run, callee);
    case GN_J_MACRO: return gn_jinja_macro_call(run, callee.u.macro, args, out);
    case GN_J_FUNC: return callee.u.func->call(run, args, out);
    case GN_J_METHOD: return callee.u.method->call(run, callee.u.method->self, args, out);
    case GN_J_LOOP: return gn_jinja_loop_call(run, callee.u.loop, args, out);
    case GN_J_JOINER: {
        gn_jcycler *joiner = callee.u.cycler;
        if (joiner->pos++ == 0) {
            return gn_jinja_str_view(run, "", 0, out);
        }
        *out = joiner->items->items[0];
        return GN_OK;
    }
    default:
        return gn_jinja_fail(run, "'%s' object is not callable",
                             gn_jinja_type_name((gn_jtype)callee.type));
    }
}
