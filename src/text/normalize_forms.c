/* Unicode normalization forms (UAX #15) over utf8proc's tables. utf8proc's own functions order
 * marks by exchanging neighbours, which costs the square of a long run of marks; here runs are
 * sorted by counting, and the text is handled in stretches between characters that never
 * combine. */
#include "text/normalize_steps.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

#define MAX_DECOMPOSED 32 /* longest in Unicode: 18 */
#define STRETCH        512

static gn_status reserve(gn_norm_work *work, size_t n)
{
    if (n <= work->cap) {
        return GN_OK;
    }
    size_t cap = work->cap + work->cap / 2;
    cap = cap > n ? cap : n;
    int32_t *cps = gn_realloc_array(work->cps, cap, sizeof *cps);
    if (cps == NULL) {
        return gn_alloc_failed();
    }
    work->cps = cps;
    work->cap = cap;
    return GN_OK;
}

static unsigned combining_class(int32_t cp)
{
    return cp < 0x300 ? 0 : (unsigned)utf8proc_get_property(cp)->combining_class & 0xff;
}

/* Sort marks [0 .. n) by class, equal ones in the order they had. */
static gn_status sort_marks(int32_t *cps, size_t n)
{
    if (n <= 16) {
        for (size_t i = 1; i < n; i++) {
            int32_t cp = cps[i];
            unsigned class = combining_class(cp);
            size_t at = i;
            while (at > 0 && combining_class(cps[at - 1]) > class) {
                cps[at] = cps[at - 1];
                at--;
            }
            cps[at] = cp;
        }
        return GN_OK;
    }
    size_t start[257] = {0};
    int32_t *copy = gn_alloc_array(n, sizeof *copy);
    if (copy == NULL) {
        return gn_alloc_failed();
    }
    memcpy(copy, cps, n * sizeof *cps);
    for (size_t i = 0; i < n; i++) {
        start[combining_class(copy[i]) + 1]++;
    }
    for (size_t c = 1; c < 257; c++) {
        start[c] += start[c - 1];
    }
    for (size_t i = 0; i < n; i++) {
        cps[start[combining_class(copy[i])]++] = copy[i];
    }
    gn_free(copy);
    return GN_OK;
}

static gn_status flush(gn_norm_work *work, size_t *n, bool compose, gn_buf *out)
{
    int32_t *cps = work->cps;
    for (size_t i = 0; i < *n;) {
        size_t end = i + 1;
        if (combining_class(cps[i]) != 0) {
            while (end < *n && combining_class(cps[end]) != 0) {
                end++;
            }
            GN_TRY(sort_marks(cps + i, end - i));
        }
        i = end;
    }
    size_t len = *n;
    if (compose && len > 1) {
        utf8proc_ssize_t composed = utf8proc_normalize_utf32(cps, (utf8proc_ssize_t)len,
                                                             UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        len = composed > 0 ? (size_t)composed : 0;
    }
    for (size_t i = 0; i < len; i++) {
        GN_TRY(gn_norm_put(out, (uint32_t)cps[i]));
    }
    *n = 0;
    return GN_OK;
}

/* Characters that no normalization form joins to what stands before them. */
static bool starts_anew(uint32_t cp, size_t run)
{
    return cp < 0x80 || (run >= STRETCH && cp >= 0x4e00 && cp <= 0x9fa5);
}

/* Bytes of ASCII at the start of s that the next character can't change: all but the last. */
static size_t plain_ascii(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len && (unsigned char)s[n] < 0x80) {
        n++;
    }
    return n == len || n == 0 ? n : n - 1;
}

gn_status gn_norm_form(gn_norm_kind form, gn_norm_work *work, const char *s, size_t len,
                       gn_buf *out)
{
    bool compose = form == GN_NORM_NFC || form == GN_NORM_NFKC;
    unsigned options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    options |= form == GN_NORM_NFKC || form == GN_NORM_NFKD ? UTF8PROC_COMPAT : 0u;
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        size_t used = gn_utf8_decode(s + i, len - i, &cp);
        used = used != 0 ? used : 1;
        if (starts_anew(cp, n)) {
            GN_TRY(flush(work, &n, compose, out));
            size_t plain = plain_ascii(s + i, len - i);
            if (plain != 0) {
                GN_TRY(gn_buf_append(out, s + i, plain));
                i += plain;
                continue;
            }
        }
        GN_TRY(reserve(work, n + MAX_DECOMPOSED));
        int bound = 0;
        utf8proc_ssize_t got =
            utf8proc_decompose_char((utf8proc_int32_t)cp, work->cps + n, MAX_DECOMPOSED,
                                    (utf8proc_option_t)options, &bound);
        if (got < 0 || got > MAX_DECOMPOSED) {
            work->cps[n] = (int32_t)cp;
            got = 1;
        }
        n += (size_t)got;
        i += used;
    }
    return flush(work, &n, compose, out);
}
