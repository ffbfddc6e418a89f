/* Pieces are looked up by hash from the longest candidate down. A word has at most max_chars (100)
 * characters, so this is bounded; no trie is needed. */
#include "text/wordpiece.h"

#include "base/utf8.h"

#include <string.h>

/* Longest piece that text[0 .. len) starts with; *id = -1 where there is none. */
static gn_status longest(const gn_wordpiece *wp, gn_buf *work, const char *affix, const char *text,
                         size_t len, size_t *used, int32_t *id)
{
    gn_buf_clear(work);
    GN_TRY(gn_buf_puts(work, affix));
    size_t skip = work->len;
    GN_TRY(gn_buf_append(work, text, len));
    size_t n = len;
    *id = -1;
    while (n > 0) {
        *id = gn_vocab_find(wp->vocab, work->data, skip + n);
        if (*id >= 0) {
            break;
        }
        do {
            n--;
        } while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80);
    }
    *used = n;
    return GN_OK;
}

static size_t count_chars(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return n;
}

gn_status gn_wordpiece_encode(const gn_wordpiece *wp, gn_buf *work, const char *word, size_t len,
                              gn_token_list *out)
{
    size_t kept = out->n;
    bool known = count_chars(word, len) <= wp->max_chars;
    for (size_t at = 0; known && at < len;) {
        size_t used = 0;
        int32_t id = -1;
        GN_TRY(longest(wp, work, at == 0 ? wp->start : wp->continuation, word + at, len - at, &used,
                       &id));
        known = id >= 0;
        if (known) {
            GN_TRY(gn_token_list_push(out, id));
            at += used;
        }
    }
    if (!known) {
        out->n = kept;
        return wp->unk >= 0 ? gn_token_list_push(out, wp->unk) : GN_OK;
    }
    return GN_OK;
}
