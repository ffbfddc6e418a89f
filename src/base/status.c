/* Status names, texts, the per-thread failure message, and the log hook. */
#include "base/status.h"
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_BYTES 1024

static _Thread_local char message[MESSAGE_BYTES];

const char *gn_status_name(gn_status status)
{
    switch (status) {
#define CASE(name, value, text)                                                                    \
    case GN_##name: return "GN_" #name;
        GN_STATUS_LIST(CASE)
#undef CASE
    }
    return "GN_E_?";
}

const char *gn_status_text(gn_status status)
{
    switch (status) {
#define CASE(name, value, text)                                                                    \
    case GN_##name: return text;
        GN_STATUS_LIST(CASE)
#undef CASE
    }
    return "unknown status";
}

const char *gn_error_message(void)
{
    return message;
}

void gn_base_fail_clear(void)
{
    message[0] = '\0';
}

/* Copy `in` to `out` with control characters escaped; what does not fit is cut. */
static void copy_escaped(char *out, size_t cap, const char *in)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;
    for (; *in != '\0' && n + 5 < cap; in++) {
        unsigned char c = (unsigned char)*in;
        if (c < 0x20 || c == 0x7f) {
            out[n++] = '\\';
            out[n++] = 'x';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        } else {
            out[n++] = (char)c;
        }
    }
    out[n] = '\0';
}

static void GN_PRINTF(2, 0) put_line(char out[MESSAGE_BYTES], const char *fmt, va_list args)
{
    char text[MESSAGE_BYTES];
    (void)vsnprintf(text, sizeof text, fmt, args);
    copy_escaped(out, MESSAGE_BYTES, text);
}

void gn_base_record(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put_line(message, fmt, args);
    va_end(args);
}

gn_status gn_base_fail_prefix(gn_status code, const char *fmt, ...)
{
    char prefix[MESSAGE_BYTES];
    char old[MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(prefix, sizeof prefix / 2, fmt, args);
    va_end(args);
    memcpy(old, message, sizeof old);
    copy_escaped(message, sizeof message, prefix);
    size_t n = strlen(message);
    (void)snprintf(message + n, sizeof message - n, "%s", old);
    return code;
}

static gn_log_fn *log_fn;
static void *log_ctx;

void gn_set_log(gn_log_fn *fn, void *ctx)
{
    log_fn = fn;
    log_ctx = ctx;
}

void gn_base_log(const char *fmt, ...)
{
    if (log_fn == NULL) {
        return;
    }
    char line[MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    put_line(line, fmt, args);
    va_end(args);
    log_fn(log_ctx, line);
}
