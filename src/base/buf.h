/* A growing byte buffer. One thread at a time. A zeroed gn_buf is a valid, empty buffer. */
#ifndef GN_BASE_BUF_H
#define GN_BASE_BUF_H

#include "base/attr.h"
#include "base/status.h"

#include <stddef.h>

typedef struct gn_buf {
    char *data; /* NULL while empty; always followed by a NUL once something was appended */
    size_t len;
    size_t cap;
    size_t limit; /* 0: none; else GN_E_LIMIT where len would pass it */
} gn_buf;

void gn_buf_fini(gn_buf *buf);
void gn_buf_clear(gn_buf *buf); /* len = 0, memory kept */

/* On failure the buffer is as it was. Codes: GN_E_NOMEM, GN_E_LIMIT. */
GN_MUST_USE gn_status gn_buf_reserve(gn_buf *buf, size_t extra);
GN_MUST_USE gn_status gn_buf_append(gn_buf *buf, const void *data, size_t len);
GN_MUST_USE gn_status gn_buf_puts(gn_buf *buf, const char *s);
GN_MUST_USE gn_status gn_buf_putc(gn_buf *buf, char c);
GN_MUST_USE gn_status gn_buf_printf(gn_buf *buf, const char *fmt, ...) GN_PRINTF(2, 3);

/* Hand the memory to the caller (gn_free), leaving the buffer empty. NULL only where nothing was
 * ever appended. */
char *gn_buf_take(gn_buf *buf);

#endif
