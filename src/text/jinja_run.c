/* The state of one rendering: its errors, and its budgets of steps, depth and memory. */
#include "text/jinja_value.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_BYTES 900

static gn_status fail_at(gn_jrun *run, gn_status code, const char *fmt, va_list args)
{
    char text[MESSAGE_BYTES];
    (void)vsnprintf(text, sizeof text, fmt, args);
    return gn_base_fail(code, "line %u: %s", run->line, text);
}

gn_status gn_jinja_fail(gn_jrun *run, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    gn_status status = fail_at(run, GN_E_FORMAT, fmt, args);
    va_end(args);
    return status;
}

gn_status gn_jinja_fail_limit(gn_jrun *run, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    gn_status status = fail_at(run, GN_E_LIMIT, fmt, args);
    va_end(args);
    return status;
}

gn_status gn_jinja_fail_undefined(gn_jrun *run, gn_jval value)
{
    int len = value.u.s != NULL ? (int)(value.u.s->len < 200 ? value.u.s->len : 200) : 0;
    const char *name = value.u.s != NULL ? value.u.s->data : "";
    const char *of = gn_jinja_type_name((gn_jtype)value.of);
    switch ((gn_jundef)value.sub) {
    case GN_J_UNDEF_NAME: return gn_jinja_fail(run, "'%.*s' is undefined", len, name);
    case GN_J_UNDEF_ATTR:
        return gn_jinja_fail(run, "'%s object' has no attribute '%.*s'", of, len, name);
    case GN_J_UNDEF_ELEM: return gn_jinja_fail(run, "%s object has no such element", of);
    case GN_J_UNDEF_HINT: return gn_jinja_fail(run, "%.*s", len, name);
    case GN_J_UNDEF_UNSAFE: break;
    }
    return gn_jinja_fail(run, "access to attribute '%.*s' of '%s' object is unsafe", len, name, of);
}

gn_status gn_jinja_step(gn_jrun *run, uint64_t n)
{
    if (GN_UNLIKELY(n > run->steps_left)) {
        run->steps_left = 0;
        return gn_jinja_fail_limit(run, "the template takes too many steps");
    }
    run->steps_left -= n;
    return GN_OK;
}

gn_status gn_jinja_step_bytes(gn_jrun *run, size_t bytes)
{
    return gn_jinja_step(run, 1 + bytes / 32);
}

gn_status gn_jinja_enter(gn_jrun *run)
{
    if (GN_UNLIKELY(run->depth >= GN_JINJA_MAX_DEPTH)) {
        return gn_jinja_fail_limit(run, "evaluation is nested deeper than %u levels",
                                   GN_JINJA_MAX_DEPTH);
    }
    run->depth++;
    return GN_OK;
}

void gn_jinja_leave(gn_jrun *run)
{
    run->depth--;
}

void *gn_jinja_alloc(gn_jrun *run, size_t n, size_t bytes)
{
    size_t total;
    if (!gn_checked_mul(n, bytes, &total)) {
        run->alloc_status = GN_E_LIMIT;
        return NULL;
    }
    void *p = gn_arena_alloc(&run->arena, total);
    if (p == NULL) {
        size_t limit = run->arena.limit_bytes;
        bool past = total > limit || run->arena.used_bytes > limit - total ||
                    limit - total - run->arena.used_bytes < 16;
        run->alloc_status = past ? GN_E_LIMIT : GN_E_NOMEM;
    }
    return p;
}

gn_status gn_jinja_alloc_failed(gn_jrun *run)
{
    if (run->alloc_status == GN_E_LIMIT) {
        return gn_jinja_fail_limit(run, "the values of the template need more than %zu bytes",
                                   run->arena.limit_bytes);
    }
    return gn_alloc_failed();
}

static bool same_name(const gn_jstr *name, const char *want)
{
    size_t len = strlen(want);
    return name->len == len && memcmp(name->data, want, len) == 0;
}

gn_status gn_jinja_bind(gn_jrun *run, const char *func, const gn_jargs *args,
                        const char *const *names, size_t n, size_t n_required, gn_jval *out)
{
    if (args->n_pos > n) {
        return gn_jinja_fail(run, "%s() takes at most %zu arguments, found %zu", func, n,
                             args->n_pos);
    }
    uint32_t given = 0;
    for (size_t i = 0; i < args->n_pos; i++) {
        out[i] = args->pos[i];
        given |= 1u << i;
    }
    for (size_t k = 0; k < args->n_kw; k++) {
        size_t at = 0;
        while (names != NULL && at < n && !same_name(args->kw[k].name, names[at])) {
            at++;
        }
        if (names == NULL || at == n) {
            return gn_jinja_fail(run, "%s() has no keyword argument '%.100s'", func,
                                 args->kw[k].name->data);
        }
        if ((given >> at & 1) != 0) {
            return gn_jinja_fail(run, "%s() has two values for argument '%s'", func, names[at]);
        }
        out[at] = args->kw[k].value;
        given |= 1u << at;
    }
    for (size_t i = 0; i < n_required; i++) {
        if ((given >> i & 1) == 0) {
            return gn_jinja_fail(run, "%s() lacks argument %zu", func, i + 1);
        }
    }
    return GN_OK;
}
