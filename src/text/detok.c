/* Bytes wait in `held` until they form whole code points. Only an incomplete sequence at the end
 * may wait; a byte that no continuation can make valid is replaced at once, as Python's decoder
 * with errors="replace" does: one U+FFFD for each maximal part of a sequence. */
#include "text/detok.h"

#include "base/utf8.h"
#include "text/tokenizer_impl.h"

#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

void gn_detok_init(gn_detok *detok, const gn_tokenizer *tokenizer, bool special, bool at_start)
{
    *detok = (gn_detok){.tokenizer = tokenizer, .special = special, .at_start = at_start};
}

void gn_detok_fini(gn_detok *detok)
{
    if (detok != NULL) {
        gn_buf_fini(&detok->held);
    }
}

/* Bytes of the longest part of s[0 .. n) that starts a valid sequence, at least 1. */
static size_t broken_part(const char *s, size_t n)
{
    for (size_t k = n < 3 ? n : 3; k > 1; k--) {
        if (gn_utf8_incomplete_tail(s, k) == k) {
            return k;
        }
    }
    return 1;
}

/* Move what is complete from `held` to `out`; with `all`, what is incomplete too. */
static gn_status drain(gn_detok *d, bool all, gn_buf *out)
{
    size_t wait = all ? 0 : gn_utf8_incomplete_tail(d->held.data, d->held.len);
    size_t end = d->held.len - wait;
    size_t kept = out->len;
    gn_status status = GN_OK;
    for (size_t i = 0; status == GN_OK && i < end;) {
        uint32_t cp;
        size_t n = gn_utf8_decode(d->held.data + i, end - i, &cp);
        if (n != 0) {
            status = gn_buf_append(out, d->held.data + i, n);
        } else {
            n = broken_part(d->held.data + i, end - i);
            status = gn_buf_append(out, replacement, 3);
        }
        i += n;
    }
    if (status != GN_OK) {
        gn_text_cut(out, kept);
        return status;
    }
    memmove(d->held.data, d->held.data + end, wait);
    d->held.len = wait;
    return GN_OK;
}

gn_status gn_detok_push(gn_detok *d, int32_t id, gn_buf *out)
{
    size_t before = d->held.len;
    GN_TRY(gn_tokenizer_piece(d->tokenizer, id, d->special, &d->held));
    if (d->held.len == before) {
        return GN_OK;
    }
    if (d->at_start && d->tokenizer->strips_start && before == 0 && d->held.data[0] == ' ') {
        d->held.len--;
        memmove(d->held.data, d->held.data + 1, d->held.len);
    }
    d->at_start = false;
    gn_status status = drain(d, false, out);
    if (status != GN_OK) {
        gn_text_cut(&d->held, before);
    }
    return status;
}

gn_status gn_detok_flush(gn_detok *d, gn_buf *out)
{
    return d->held.len != 0 ? drain(d, true, out) : GN_OK;
}
