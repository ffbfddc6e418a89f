/* Growth doubles, so appending n bytes costs O(n) in all. */
#include "base/buf.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gn_buf_fini(gn_buf *buf)
{
    if (buf != NULL) {
        gn_free(buf->data);
        *buf = (gn_buf){.limit = buf->limit};
    }
}

void gn_buf_clear(gn_buf *buf)
{
    buf->len = 0;
    if (buf->data != NULL) {
        buf->data[0] = '\0';
    }
}

gn_status gn_buf_reserve(gn_buf *buf, size_t extra)
{
    size_t need;
    if (!gn_checked_add(buf->len, extra, &need) || !gn_checked_add(need, 1, &need)) {
        return gn_alloc_failed();
    }
    GN_REQUIRE(buf->limit == 0 || need - 1 <= buf->limit, GN_E_LIMIT,
               "output is limited to %zu bytes", buf->limit);
    if (need <= buf->cap) {
        return GN_OK;
    }
    size_t cap = buf->cap < 32 ? 64 : buf->cap + buf->cap / 2;
    cap = cap < need ? need : cap;
    char *data = gn_realloc_array(buf->data, cap, 1);
    if (data == NULL) {
        return gn_alloc_failed();
    }
    buf->data = data;
    buf->cap = cap;
    return GN_OK;
}

gn_status gn_buf_append(gn_buf *buf, const void *data, size_t len)
{
    GN_TRY(gn_buf_reserve(buf, len));
    if (len != 0) {
        memcpy(buf->data + buf->len, data, len);
    }
    buf->len += len;
    buf->data[buf->len] = '\0';
    return GN_OK;
}

gn_status gn_buf_puts(gn_buf *buf, const char *s)
{
    return gn_buf_append(buf, s, strlen(s));
}

gn_status gn_buf_putc(gn_buf *buf, char c)
{
    return gn_buf_append(buf, &c, 1);
}

gn_status gn_buf_printf(gn_buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    gn_status status = n < 0 ? gn_base_fail(GN_E_ARG, "a format could not be printed")
                             : gn_buf_reserve(buf, (size_t)n);
    if (status == GN_OK) {
        (void)vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, again);
        buf->len += (size_t)n;
    }
    va_end(again);
    return status;
}

char *gn_buf_take(gn_buf *buf)
{
    char *data = buf->data;
    *buf = (gn_buf){.limit = buf->limit};
    return data;
}
