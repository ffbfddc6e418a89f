/* Python's methods of str that make something; those that ask are in jinja_methods_ask.c. Positions are code points, and what comes from markup is markup again. */
#include "text/jinja_lib.h"

#include "base/utf8.h"
#include "text/jinja_lex.h"

#include <string.h>

typedef struct method_row {
    const char *name;
    gn_status (*call)(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out);
} method_row;

/* ---- arguments ---- */

/* Up to n positional arguments, none of them by name; absent ones are none. */
static gn_status positional(gn_jrun *run, const char *func, const gn_jargs *args, size_t n_min,
                            size_t n, gn_jval *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = gn_jnone();
    }
    return gn_jinja_bind(run, func, args, NULL, n, n_min, out);
}

static gn_status want_str(gn_jrun *run, const char *func, gn_jval v)
{
    if (v.type == GN_J_STRING) {
        return GN_OK;
    }
    return gn_jinja_fail(run, "%s() needs a string, found %s", func,
                         gn_jinja_type_name((gn_jtype)v.type));
}

static gn_status want_int(gn_jrun *run, const char *func, gn_jval v, int64_t *out)
{
    if (gn_jinja_as_int(v, out)) {
        return GN_OK;
    }
    return gn_jinja_fail(run, "%s() needs an integer, found %s", func,
                         gn_jinja_type_name((gn_jtype)v.type));
}

static gn_status part(gn_jrun *run, gn_jval self, size_t from, size_t len, gn_jval *out)
{
    GN_TRY(gn_jinja_str_view(run, self.u.s->data + from, len, out));
    out->sub = self.sub;
    return GN_OK;
}

static gn_status captured(gn_jrun *run, gn_jval self, size_t mark, gn_jval *out)
{
    GN_TRY(gn_jinja_str_captured(run, mark, out));
    out->sub = self.sub;
    return GN_OK;
}

/* ---- case ---- */

static gn_status cased(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jcase how, gn_jval *out)
{
    size_t mark = run->out->len;
    GN_TRY(positional(run, "str", args, 0, 0, NULL));
    GN_TRY(gn_jinja_write_cased(run, self.u.s->data, self.u.s->len, how));
    return captured(run, self, mark, out);
}

static gn_status str_lower(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return cased(run, self, args, GN_J_LOWER, out);
}

static gn_status str_upper(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return cased(run, self, args, GN_J_UPPER, out);
}

static gn_status str_casefold(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return cased(run, self, args, GN_J_FOLD, out);
}

static bool has_case(uint32_t cp)
{
    return gn_jinja_is_lower(cp) || gn_jinja_is_upper(cp) || gn_jinja_is_titlecase(cp);
}

static gn_status str_title(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    const gn_jstr *s = self.u.s;
    size_t mark = run->out->len;
    bool inside = false;
    GN_TRY(positional(run, "title", args, 0, 0, NULL));
    for (size_t at = 0; at < s->len;) {
        uint32_t cp = 0;
        size_t used = gn_utf8_decode(s->data + at, s->len - at, &cp);
        used = used != 0 ? used : 1;
        GN_TRY(gn_jinja_write_case(run, cp, inside ? GN_J_LOWER : GN_J_TITLE));
        inside = has_case(cp);
        at += used;
    }
    return captured(run, self, mark, out);
}

static gn_status str_capitalize(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    const gn_jstr *s = self.u.s;
    size_t mark = run->out->len;
    size_t used = 0;
    GN_TRY(positional(run, "capitalize", args, 0, 0, NULL));
    if (s->len != 0) {
        uint32_t cp = 0;
        used = gn_utf8_decode(s->data, s->len, &cp);
        GN_TRY(gn_jinja_write_case(run, cp, GN_J_TITLE));
    }
    GN_TRY(gn_jinja_write_cased(run, s->data + used, s->len - used, GN_J_LOWER));
    return captured(run, self, mark, out);
}

static gn_status str_swapcase(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    const gn_jstr *s = self.u.s;
    size_t mark = run->out->len;
    GN_TRY(positional(run, "swapcase", args, 0, 0, NULL));
    for (size_t at = 0; at < s->len;) {
        uint32_t cp = 0;
        size_t used = gn_utf8_decode(s->data + at, s->len - at, &cp);
        used = used != 0 ? used : 1;
        bool upper = gn_jinja_is_upper(cp);
        if (upper || gn_jinja_is_lower(cp)) {
            GN_TRY(gn_jinja_write_case(run, cp, upper ? GN_J_LOWER : GN_J_UPPER));
        } else {
            GN_TRY(gn_jinja_write_bytes(run, s->data + at, used));
        }
        at += used;
    }
    return captured(run, self, mark, out);
}

/* ---- stripping ---- */

static gn_status strip_sides(gn_jrun *run, gn_jval self, const gn_jargs *args, int sides,
                             gn_jval *out)
{
    gn_jval chars;
    GN_TRY(positional(run, "strip", args, 0, 1, &chars));
    if (chars.type != GN_J_NONE) {
        GN_TRY(want_str(run, "strip", chars));
    }
    const char *s = self.u.s->data;
    size_t len = self.u.s->len;
    GN_TRY(gn_jinja_step_bytes(run, len));
    gn_jinja_strip(&s, &len, chars.type == GN_J_STRING ? chars.u.s : NULL, sides);
    return part(run, self, (size_t)(s - self.u.s->data), len, out);
}

static gn_status str_strip(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return strip_sides(run, self, args, 3, out);
}

static gn_status str_lstrip(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return strip_sides(run, self, args, 1, out);
}

static gn_status str_rstrip(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return strip_sides(run, self, args, 2, out);
}

static bool has_prefix(const gn_jstr *s, const gn_jstr *prefix)
{
    return prefix->len <= s->len && memcmp(s->data, prefix->data, prefix->len) == 0;
}

static bool has_suffix(const gn_jstr *s, const gn_jstr *suffix)
{
    return suffix->len <= s->len &&
           memcmp(s->data + s->len - suffix->len, suffix->data, suffix->len) == 0;
}

static gn_status str_removeprefix(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jval fix;
    GN_TRY(positional(run, "removeprefix", args, 1, 1, &fix));
    GN_TRY(want_str(run, "removeprefix", fix));
    size_t cut = has_prefix(self.u.s, fix.u.s) ? fix.u.s->len : 0;
    return part(run, self, cut, self.u.s->len - cut, out);
}

static gn_status str_removesuffix(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jval fix;
    GN_TRY(positional(run, "removesuffix", args, 1, 1, &fix));
    GN_TRY(want_str(run, "removesuffix", fix));
    size_t cut = has_suffix(self.u.s, fix.u.s) ? fix.u.s->len : 0;
    return part(run, self, 0, self.u.s->len - cut, out);
}

/* ---- searching ---- */

/* The bytes of self between the code points that the arguments start and end name. *none: start lies
 * behind the end, where not even the empty string is found. */
static gn_status window(gn_jrun *run, const char *func, gn_jval self, gn_jval start, gn_jval end,
                        gn_jstr *out, size_t *first, bool *none)
{
    const gn_jstr *s = self.u.s;
    int64_t n = (int64_t)s->n_cp;
    int64_t bound[2] = {0, n};
    gn_jval given[2] = {start, end};
    for (size_t i = 0; i < 2; i++) {
        if (given[i].type != GN_J_NONE) {
            GN_TRY(want_int(run, func, given[i], &bound[i]));
            bound[i] += bound[i] < 0 ? n : 0;
            bound[i] = bound[i] < 0 ? 0 : bound[i];
        }
    }
    bound[1] = bound[1] > n ? n : bound[1];
    *none = bound[0] > bound[1];
    *first = *none ? 0 : (size_t)bound[0];
    GN_TRY(gn_jinja_step_bytes(run, s->len));
    size_t from = gn_jinja_cp_offset(s, *first);
    size_t to = *none ? from : gn_jinja_cp_offset(s, (size_t)bound[1]);
    *out = (gn_jstr){.data = s->data + from, .len = to - from, .n_cp = 0};
    return GN_OK;
}

static const char *find_last(const gn_jstr *s, const gn_jstr *what)
{
    for (size_t at = s->len - what->len + 1; at > 0; at--) {
        if (memcmp(s->data + at - 1, what->data, what->len) == 0) {
            return s->data + at - 1;
        }
    }
    return NULL;
}

static gn_status find(gn_jrun *run, const char *func, gn_jval self, const gn_jargs *args, bool last,
                      int64_t *out)
{
    gn_jval arg[3];
    gn_jstr in;
    size_t first;
    bool none;
    *out = -1;
    GN_TRY(positional(run, func, args, 1, 3, arg));
    GN_TRY(want_str(run, func, arg[0]));
    GN_TRY(window(run, func, self, arg[1], arg[2], &in, &first, &none));
    const gn_jstr *what = arg[0].u.s;
    if (none || what->len > in.len) {
        return GN_OK;
    }
    const char *hit = NULL;
    if (last) {
        GN_TRY(gn_jinja_step(run, in.len * (what->len / 8 + 1) / 8));
        hit = find_last(&in, what);
    } else {
        hit = what->len == 0 ? in.data : memmem(in.data, in.len, what->data, what->len);
    }
    if (hit != NULL) {
        *out = (int64_t)(first + gn_jinja_count_cp(in.data, (size_t)(hit - in.data)));
    }
    return GN_OK;
}

static gn_status str_find(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    int64_t at;
    GN_TRY(find(run, "find", self, args, false, &at));
    *out = gn_jint(at);
    return GN_OK;
}

static gn_status str_rfind(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    int64_t at;
    GN_TRY(find(run, "rfind", self, args, true, &at));
    *out = gn_jint(at);
    return GN_OK;
}

static gn_status str_index(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(str_find(run, self, args, out));
    return out->u.i >= 0 ? GN_OK : gn_jinja_fail(run, "substring not found");
}

static gn_status str_rindex(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    GN_TRY(str_rfind(run, self, args, out));
    return out->u.i >= 0 ? GN_OK : gn_jinja_fail(run, "substring not found");
}

static gn_status str_count(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jval arg[3];
    gn_jstr in;
    size_t first;
    bool none;
    int64_t n = 0;
    GN_TRY(positional(run, "count", args, 1, 3, arg));
    GN_TRY(want_str(run, "count", arg[0]));
    GN_TRY(window(run, "count", self, arg[1], arg[2], &in, &first, &none));
    const gn_jstr *what = arg[0].u.s;
    if (what->len == 0) {
        n = none ? 0 : (int64_t)gn_jinja_count_cp(in.data, in.len) + 1;
    }
    const char *end = in.data + in.len;
    for (const char *at = in.data; what->len != 0 && !none;) {
        at = memmem(at, (size_t)(end - at), what->data, what->len);
        if (at == NULL) {
            break;
        }
        at += what->len;
        n++;
    }
    *out = gn_jint(n);
    return GN_OK;
}

static gn_status affix(gn_jrun *run, const char *func, gn_jval self, const gn_jargs *args,
                       bool (*has)(const gn_jstr *, const gn_jstr *), gn_jval *out)
{
    gn_jval arg[3];
    gn_jstr in;
    size_t first;
    bool none;
    bool hit = false;
    GN_TRY(positional(run, func, args, 1, 3, arg));
    GN_TRY(window(run, func, self, arg[1], arg[2], &in, &first, &none));
    if (arg[0].type != GN_J_TUPLE) {
        GN_TRY(want_str(run, func, arg[0]));
        *out = gn_jbool(!none && has(&in, arg[0].u.s));
        return GN_OK;
    }
    for (size_t i = 0; i < arg[0].u.list->n && !hit; i++) {
        GN_TRY(want_str(run, func, arg[0].u.list->items[i]));
        hit = !none && has(&in, arg[0].u.list->items[i].u.s);
    }
    *out = gn_jbool(hit);
    return GN_OK;
}

static gn_status str_startswith(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return affix(run, "startswith", self, args, has_prefix, out);
}

static gn_status str_endswith(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return affix(run, "endswith", self, args, has_suffix, out);
}

/* ---- cutting up ---- */

static gn_status push_part(gn_jrun *run, gn_jval self, size_t from, size_t to, gn_jlist *list)
{
    gn_jval v;
    GN_TRY(part(run, self, from, to - from, &v));
    return gn_jinja_list_push(run, list, v);
}

static size_t next_cp(const gn_jstr *s, size_t at, uint32_t *cp)
{
    *cp = 0;
    size_t used = gn_utf8_decode(s->data + at, s->len - at, cp);
    return at + (used != 0 ? used : 1);
}

static gn_status split_space(gn_jrun *run, gn_jval self, int64_t max, gn_jlist *list)
{
    const gn_jstr *s = self.u.s;
    uint32_t cp;
    size_t at = 0;
    for (;;) {
        size_t next;
        while (at < s->len && (next = next_cp(s, at, &cp), gn_jinja_is_space(cp))) {
            at = next;
        }
        if (at >= s->len) {
            return GN_OK;
        }
        if (max == 0) { /* the rest, without the whitespace at its end */
            const char *rest = s->data + at;
            size_t len = s->len - at;
            gn_jinja_strip(&rest, &len, NULL, 2);
            return push_part(run, self, at, at + len, list);
        }
        size_t from = at;
        while (at < s->len && (next = next_cp(s, at, &cp), !gn_jinja_is_space(cp))) {
            at = next;
        }
        GN_TRY(push_part(run, self, from, at, list));
        max -= max > 0;
    }
}

static gn_status split_by(gn_jrun *run, gn_jval self, const gn_jstr *by, int64_t max,
                          gn_jlist *list)
{
    const gn_jstr *s = self.u.s;
    size_t at = 0;
    for (; max != 0; max -= max > 0) {
        const char *hit = memmem(s->data + at, s->len - at, by->data, by->len);
        if (hit == NULL) {
            break;
        }
        GN_TRY(push_part(run, self, at, (size_t)(hit - s->data), list));
        at = (size_t)(hit - s->data) + by->len;
    }
    return push_part(run, self, at, s->len, list);
}

static void reverse(gn_jlist *list)
{
    for (size_t i = 0; i < list->n / 2; i++) {
        gn_jval swap = list->items[i];
        list->items[i] = list->items[list->n - 1 - i];
        list->items[list->n - 1 - i] = swap;
    }
}

static gn_status rsplit_by(gn_jrun *run, gn_jval self, const gn_jstr *by, int64_t max,
                           gn_jlist *list)
{
    gn_jstr rest = *self.u.s;
    GN_TRY(gn_jinja_step(run, rest.len * (by->len / 8 + 1) / 8));
    for (; max != 0 && rest.len >= by->len; max -= max > 0) {
        const char *hit = find_last(&rest, by);
        if (hit == NULL) {
            break;
        }
        size_t at = (size_t)(hit - rest.data);
        GN_TRY(push_part(run, self, at + by->len, rest.len, list));
        rest.len = at;
    }
    GN_TRY(push_part(run, self, 0, rest.len, list));
    reverse(list);
    return GN_OK;
}

static gn_status rsplit_space(gn_jrun *run, gn_jval self, int64_t max, gn_jlist *list)
{
    const char *s = self.u.s->data;
    size_t len = self.u.s->len;
    for (;;) {
        const char *from = s;
        gn_jinja_strip(&from, &len, NULL, 2);
        if (len == 0) {
            break;
        }
        if (max == 0) {
            gn_jinja_strip(&from, &len, NULL, 1);
            size_t at = (size_t)(from - s);
            GN_TRY(push_part(run, self, at, at + len, list));
            break;
        }
        size_t start = len;
        while (start > 0) {
            size_t before = start - 1;
            uint32_t cp = 0;
            while (before > 0 && ((unsigned char)s[before] & 0xc0u) == 0x80u) {
                before--;
            }
            (void)gn_utf8_decode(s + before, len - before, &cp);
            if (gn_jinja_is_space(cp)) {
                break;
            }
            start = before;
        }
        GN_TRY(push_part(run, self, start, len, list));
        len = start;
        max -= max > 0;
    }
    reverse(list);
    return GN_OK;
}

static gn_status split(gn_jrun *run, const char *func, gn_jval self, const gn_jargs *args,
                       bool from_right, gn_jval *out)
{
    static const char *const names[] = {"sep", "maxsplit"};
    gn_jval arg[2] = {gn_jnone(), gn_jint(-1)};
    int64_t max;
    gn_jval list = {0};
    GN_TRY(gn_jinja_bind(run, func, args, names, 2, 0, arg));
    GN_TRY(want_int(run, func, arg[1], &max));
    GN_TRY(gn_jinja_step_bytes(run, self.u.s->len));
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &list));
    if (arg[0].type == GN_J_NONE) {
        GN_TRY(from_right ? rsplit_space(run, self, max, list.u.list)
                          : split_space(run, self, max, list.u.list));
    } else {
        GN_TRY(want_str(run, func, arg[0]));
        if (arg[0].u.s->len == 0) {
            return gn_jinja_fail(run, "empty separator");
        }
        GN_TRY(from_right ? rsplit_by(run, self, arg[0].u.s, max, list.u.list)
                          : split_by(run, self, arg[0].u.s, max, list.u.list));
    }
    *out = list;
    return GN_OK;
}

static gn_status str_split(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return split(run, "split", self, args, false, out);
}

static gn_status str_rsplit(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return split(run, "rsplit", self, args, true, out);
}

static gn_status str_splitlines(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"keepends"};
    gn_jval keep = gn_jbool(false);
    gn_jval list = {0};
    GN_TRY(gn_jinja_bind(run, "splitlines", args, names, 1, 0, &keep));
    GN_TRY(gn_jinja_step_bytes(run, self.u.s->len));
    GN_TRY(gn_jinja_list_new(run, GN_J_LIST, 0, &list));
    for (size_t at = 0; at < self.u.s->len;) {
        size_t line;
        size_t end;
        gn_jinja_line(self.u.s->data + at, self.u.s->len - at, &line, &end);
        size_t kept = line + (gn_jinja_truth(keep) ? end : 0);
        GN_TRY(push_part(run, self, at, at + kept, list.u.list));
        at += line + end;
    }
    *out = list;
    return GN_OK;
}

static gn_status partition(gn_jrun *run, const char *func, gn_jval self, const gn_jargs *args,
                           bool last, gn_jval *out)
{
    gn_jval by;
    gn_jval tuple;
    GN_TRY(positional(run, func, args, 1, 1, &by));
    GN_TRY(want_str(run, func, by));
    const gn_jstr *s = self.u.s;
    if (by.u.s->len == 0) {
        return gn_jinja_fail(run, "empty separator");
    }
    GN_TRY(gn_jinja_step(run, s->len * (by.u.s->len / 8 + 1) / 8));
    const char *hit = NULL;
    if (by.u.s->len <= s->len) {
        hit = last ? find_last(s, by.u.s) : memmem(s->data, s->len, by.u.s->data, by.u.s->len);
    }
    GN_TRY(gn_jinja_list_new(run, GN_J_TUPLE, 3, &tuple));
    size_t from = hit != NULL ? (size_t)(hit - s->data) : last ? 0 : s->len;
    size_t to = hit != NULL ? from + by.u.s->len : from;
    GN_TRY(push_part(run, self, 0, from, tuple.u.list));
    GN_TRY(push_part(run, self, from, to, tuple.u.list));
    GN_TRY(push_part(run, self, to, s->len, tuple.u.list));
    *out = tuple;
    return GN_OK;
}

static gn_status str_partition(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return partition(run, "partition", self, args, false, out);
}

static gn_status str_rpartition(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return partition(run, "rpartition", self, args, true, out);
}

/* ---- putting together ---- */

static gn_status str_join(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jval over;
    gn_jlist *items;
    GN_TRY(positional(run, "join", args, 1, 1, &over));
    GN_TRY(gn_jinja_items(run, over, &items));
    size_t mark = run->out->len;
    for (size_t i = 0; i < items->n; i++) {
        gn_jval item = items->items[i];
        if (item.type != GN_J_STRING && self.sub == 0) {
            return gn_jinja_fail(run, "join() needs strings, found %s",
                                 gn_jinja_type_name((gn_jtype)item.type));
        }
        if (self.sub != 0) {
            GN_TRY(gn_jinja_escape(run, item, &item));
        }
        GN_TRY(gn_jinja_write_bytes(run, self.u.s->data, i != 0 ? self.u.s->len : 0));
        GN_TRY(gn_jinja_write_bytes(run, item.u.s->data, item.u.s->len));
    }
    return captured(run, self, mark, out);
}

static gn_status str_replace(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jval arg[3];
    int64_t max = -1;
    GN_TRY(positional(run, "replace", args, 2, 3, arg));
    GN_TRY(want_str(run, "replace", arg[0]));
    GN_TRY(want_str(run, "replace", arg[1]));
    if (arg[2].type != GN_J_NONE || args->n_pos == 3) {
        GN_TRY(want_int(run, "replace", arg[2], &max));
    }
    if (self.sub != 0) {
        GN_TRY(gn_jinja_escape(run, arg[1], &arg[1]));
    }
    GN_TRY(gn_jinja_replace(run, self.u.s, arg[0].u.s, arg[1].u.s, max, out));
    out->sub = self.sub;
    return GN_OK;
}

static gn_status write_fill(gn_jrun *run, const gn_jstr *fill, int64_t n)
{
    for (; n > 0; n--) {
        GN_TRY(gn_jinja_write_bytes(run, fill->data, fill->len));
    }
    return GN_OK;
}

/* where: -1 text at the left, 0 in the middle, 1 at the right. */
static gn_status justify(gn_jrun *run, const char *func, gn_jval self, const gn_jargs *args,
                         int where, gn_jval *out)
{
    gn_jval arg[2];
    int64_t width;
    GN_TRY(positional(run, func, args, 1, 2, arg));
    GN_TRY(want_int(run, func, arg[0], &width));
    if (args->n_pos < 2) {
        GN_TRY(gn_jinja_str_view(run, " ", 1, &arg[1]));
    }
    GN_TRY(want_str(run, func, arg[1]));
    if (arg[1].u.s->n_cp != 1) {
        return gn_jinja_fail(run, "the fill character must be exactly one character long");
    }
    int64_t n = (int64_t)self.u.s->n_cp;
    int64_t pad = width > n ? width - n : 0;
    int64_t left = where < 0 ? 0 : where > 0 ? pad : pad / 2 + (pad & width & 1);
    size_t mark = run->out->len;
    GN_TRY(write_fill(run, arg[1].u.s, left));
    GN_TRY(gn_jinja_write(run, self));
    GN_TRY(write_fill(run, arg[1].u.s, pad - left));
    return captured(run, self, mark, out);
}

static gn_status str_center(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return justify(run, "center", self, args, 0, out);
}

static gn_status str_ljust(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return justify(run, "ljust", self, args, -1, out);
}

static gn_status str_rjust(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return justify(run, "rjust", self, args, 1, out);
}

static gn_status str_zfill(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jval arg;
    int64_t width;
    GN_TRY(positional(run, "zfill", args, 1, 1, &arg));
    GN_TRY(want_int(run, "zfill", arg, &width));
    const gn_jstr *s = self.u.s;
    size_t sign = s->len > 0 && (s->data[0] == '-' || s->data[0] == '+');
    size_t mark = run->out->len;
    GN_TRY(gn_jinja_write_bytes(run, s->data, sign));
    GN_TRY(write_fill(run, &(gn_jstr){.data = "0", .len = 1}, width - (int64_t)s->n_cp));
    GN_TRY(gn_jinja_write_bytes(run, s->data + sign, s->len - sign));
    return captured(run, self, mark, out);
}

static gn_status str_expandtabs(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    static const char *const names[] = {"tabsize"};
    gn_jval size = gn_jint(8);
    int64_t tab;
    int64_t column = 0;
    GN_TRY(gn_jinja_bind(run, "expandtabs", args, names, 1, 0, &size));
    GN_TRY(want_int(run, "expandtabs", size, &tab));
    size_t mark = run->out->len;
    for (size_t i = 0; i < self.u.s->len; i++) {
        char c = self.u.s->data[i];
        if (c == '\t') {
            int64_t n = tab > 0 ? tab - column % tab : 0;
            GN_TRY(write_fill(run, &(gn_jstr){.data = " ", .len = 1}, n));
            column += n;
            continue;
        }
        column = c == '\n' || c == '\r' ? 0 : column + (((unsigned char)c & 0xc0u) != 0x80u);
        GN_TRY(gn_jinja_write_bytes(run, &c, 1));
    }
    return captured(run, self, mark, out);
}

static gn_status str_format(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    return gn_jinja_str_format(run, self, args, out);
}

static gn_status str_format_map(gn_jrun *run, gn_jval self, const gn_jargs *args, gn_jval *out)
{
    gn_jval map;
    GN_TRY(positional(run, "format_map", args, 1, 1, &map));
    if (map.type != GN_J_DICT) {
        return gn_jinja_fail(run, "format_map() needs a dict");
    }
    gn_jargs by_name = {0};
    by_name.kw = gn_jinja_alloc(run, map.u.dict->n, sizeof *by_name.kw);
    if (by_name.kw == NULL) {
        return gn_jinja_alloc_failed(run);
    }
    for (size_t i = 0; i < map.u.dict->n; i++) {
        if (map.u.dict->entries[i].key.type == GN_J_STRING) {
            by_name.kw[by_name.n_kw++] = (gn_jkw){.name = map.u.dict->entries[i].key.u.s,
                                                  .value = map.u.dict->entries[i].value};
        }
    }
    return gn_jinja_str_format(run, self, &by_name, out);
}

/* ---- the table ---- */

static const method_row METHODS[] = {
    {"capitalize", str_capitalize},
    {"casefold", str_casefold},
    {"center", str_center},
    {"count", str_count},
    {"endswith", str_endswith},
    {"expandtabs", str_expandtabs},
    {"find", str_find},
    {"format", str_format},
    {"format_map", str_format_map},
    {"index", str_index},
    {"join", str_join},
    {"ljust", str_ljust},
    {"lower", str_lower},
    {"lstrip", str_lstrip},
    {"partition", str_partition},
    {"removeprefix", str_removeprefix},
    {"removesuffix", str_removesuffix},
    {"replace", str_replace},
    {"rfind", str_rfind},
    {"rindex", str_rindex},
    {"rjust", str_rjust},
    {"rpartition", str_rpartition},
    {"rsplit", str_rsplit},
    {"rstrip", str_rstrip},
    {"split", str_split},
    {"splitlines", str_splitlines},
    {"startswith", str_startswith},
    {"strip", str_strip},
    {"swapcase", str_swapcase},
    {"title", str_title},
    {"upper", str_upper},
    {"zfill", str_zfill},
};

gn_status gn_jinja_str_attribute(gn_jrun *run, gn_jval self, const gn_jstr *name, gn_jval *out,
                                 bool *found)
{
    for (size_t i = 0; i < GN_COUNTOF(METHODS); i++) {
        if (strcmp(METHODS[i].name, name->data) == 0) {
            *found = true;
            return gn_jinja_bind_method(run, self, METHODS[i].name, METHODS[i].call, out);
        }
    }
    return gn_jinja_str_question(run, self, name, out, found);
}
