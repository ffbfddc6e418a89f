/* The way of a text to ids: bytes that are no UTF-8 set apart, added tokens found, the rest
 * normalized, added tokens found again (those that want normalized text), cut into words, each
 * word to the model. */
#include "text/tokenizer_impl.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

typedef struct encoder {
    const gn_tokenizer *t;
    bool control; /* special tokens are parsed */
    gn_token_list *out;
    gn_norm_work norm;
    gn_pretok_work pretok;
    gn_bpe_work bpe;
    gn_unigram_work unigram;
    gn_buf wordpiece;
} encoder;

static gn_status encode_word(void *ctx, const char *word, size_t len)
{
    encoder *e = ctx;
    const gn_tokenizer *t = e->t;
    switch (t->model) {
    case GN_MODEL_BPE: return gn_bpe_encode(&t->bpe, &e->bpe, word, len, e->out);
    case GN_MODEL_UNIGRAM: return gn_unigram_encode(&t->unigram, &e->unigram, word, len, e->out);
    case GN_MODEL_WORDPIECE:
        return gn_wordpiece_encode(&t->wordpiece, &e->wordpiece, word, len, e->out);
    }
    return GN_OK;
}

/* Text between added tokens, as given. */
static gn_status encode_plain(encoder *e, const char *text, size_t len, bool first, bool joined)
{
    const gn_tokenizer *t = e->t;
    const char *s;
    size_t n;
    if (len == 0) {
        return GN_OK;
    }
    GN_TRY(gn_norm_run(&t->norm, &e->norm, text, len, joined, &s, &n));
    for (size_t at = 0; at < n;) {
        gn_special_match m = gn_special_find(&t->normalized, s, n, at, e->control);
        GN_TRY(gn_pretok_run(&t->pretok, &e->pretok, s + at, m.start - at, first && at == 0,
                             encode_word, e));
        if (m.id >= 0) {
            GN_TRY(gn_token_list_push(e->out, m.id));
        }
        at = m.end;
    }
    return GN_OK;
}

/* Valid UTF-8. */
static gn_status encode_valid(encoder *e, const char *text, size_t len, bool first)
{
    bool joined = !first;
    for (size_t at = 0; at < len;) {
        gn_special_match m = gn_special_find(&e->t->raw, text, len, at, e->control);
        GN_TRY(encode_plain(e, text + at, m.start - at, first && at == 0, joined));
        if (m.id >= 0) {
            GN_TRY(gn_token_list_push(e->out, m.id));
        }
        at = m.end;
        joined = false;
    }
    return GN_OK;
}

/* Bytes that are no UTF-8, for a vocabulary that has tokens for them. A byte-level vocabulary may
 * lack the letters of some that its training text never had: those become U+FFFD. */
static gn_status encode_bytes(encoder *e, const char *bytes, size_t len)
{
    const gn_bpe *bpe = &e->t->bpe;
    bool letters = e->t->model == GN_MODEL_BPE && bpe->symbols == GN_BPE_BYTES;
    for (size_t i = 0; i < len;) {
        size_t known = 0;
        while (i + known < len && bpe->byte_id[(uint8_t)bytes[i + known]] >= 0) {
            known++;
        }
        if (letters && known != 0) {
            GN_TRY(gn_bpe_encode(bpe, &e->bpe, bytes + i, known, e->out));
        }
        for (size_t k = 0; !letters && k < known; k++) {
            GN_TRY(gn_token_list_push(e->out, bpe->byte_id[(uint8_t)bytes[i + k]]));
        }
        i += known;
        if (i < len) {
            GN_TRY(gn_bpe_encode(bpe, &e->bpe, replacement, strlen(replacement), e->out));
            i++;
        }
    }
    return GN_OK;
}

/* Length of the run of valid (or of invalid) bytes that text starts with. */
static size_t run_length(const char *text, size_t len, bool valid)
{
    size_t at = 0;
    while (at < len) {
        uint32_t cp;
        size_t n = (unsigned char)text[at] < 0x80 ? 1 : gn_utf8_decode(text + at, len - at, &cp);
        if ((n != 0) != valid) {
            break;
        }
        at += n != 0 ? n : 1;
    }
    return at;
}

static gn_status replace_invalid(const char *text, size_t len, gn_buf *out)
{
    for (size_t at = 0; at < len;) {
        size_t good = run_length(text + at, len - at, true);
        GN_TRY(gn_buf_append(out, text + at, good));
        at += good;
        for (size_t bad = run_length(text + at, len - at, false); bad > 0; bad--, at++) {
            GN_TRY(gn_buf_puts(out, replacement));
        }
    }
    return GN_OK;
}

static gn_status encode_any(encoder *e, const char *text, size_t len)
{
    size_t good = run_length(text, len, true);
    if (good == len) {
        return encode_valid(e, text, len, true);
    }
    if (!e->t->keeps_bytes) {
        gn_buf clean = {0};
        gn_status status = replace_invalid(text, len, &clean);
        if (status == GN_OK) {
            status = encode_valid(e, clean.data, clean.len, true);
        }
        gn_buf_fini(&clean);
        return status;
    }
    for (size_t at = 0; at < len;) {
        good = run_length(text + at, len - at, true);
        GN_TRY(encode_valid(e, text + at, good, at == 0));
        at += good;
        size_t bad = run_length(text + at, len - at, false);
        GN_TRY(encode_bytes(e, text + at, bad));
        at += bad;
    }
    return GN_OK;
}

static gn_status push_all(gn_token_list *out, const gn_token_list *ids)
{
    for (size_t i = 0; i < ids->n; i++) {
        GN_TRY(gn_token_list_push(out, ids->ids[i]));
    }
    return GN_OK;
}

gn_status gn_tokenizer_encode(const gn_tokenizer *t, const char *text, size_t len, unsigned flags,
                              gn_token_list *out)
{
    size_t kept = out->n;
    encoder *e = gn_calloc(1, sizeof *e);
    if (e == NULL) {
        return gn_alloc_failed();
    }
    e->t = t;
    e->control = (flags & GN_ENCODE_SPECIAL) != 0;
    e->out = out;
    gn_status status = GN_OK;
    if (flags & GN_ENCODE_BOS) {
        status = push_all(out, &t->before);
    }
    if (status == GN_OK && len != 0) {
        status = encode_any(e, text, len);
    }
    if (status == GN_OK && (flags & GN_ENCODE_BOS)) {
        status = push_all(out, &t->after);
    }
    gn_norm_work_fini(&e->norm);
    gn_pretok_work_fini(&e->pretok);
    gn_bpe_work_fini(&e->bpe);
    gn_unigram_work_fini(&e->unigram);
    gn_buf_fini(&e->wordpiece);
    gn_free(e);
    if (status != GN_OK) {
        out->n = kept;
    }
    return status;
}
