/* The tokenizer as an object: life, look-ups, and the way from ids back to text. */
#include "text/tokenizer.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/tokenizer_impl.h"

#include <string.h>

gn_tokenizer *gn_tokenizer_new(void)
{
    gn_tokenizer *t = gn_calloc(1, sizeof *t);
    if (t == NULL) {
        return NULL;
    }
    t->bos = t->eos = t->pad = -1;
    t->bpe.unk = t->unigram.unk = t->wordpiece.unk = -1;
    memset(t->bpe.byte_id, 0xff, sizeof t->bpe.byte_id);
    t->bpe.vocab = t->unigram.vocab = t->wordpiece.vocab = &t->vocab;
    return t;
}

void gn_tokenizer_destroy(gn_tokenizer *t)
{
    if (t == NULL) {
        return;
    }
    gn_vocab_fini(&t->vocab);
    gn_free(t->ends);
    gn_free(t->added);
    gn_special_fini(&t->raw);
    gn_special_fini(&t->normalized);
    gn_norm_fini(&t->norm);
    gn_pretok_fini(&t->pretok);
    gn_bpe_fini(&t->bpe);
    gn_unigram_fini(&t->unigram);
    gn_free(t->affix);
    gn_token_list_fini(&t->before);
    gn_token_list_fini(&t->after);
    gn_free(t->chat_template);
    gn_free(t);
}

gn_status gn_tokenizer_size(gn_tokenizer *t)
{
    t->ends = gn_calloc((size_t)t->vocab.n, sizeof *t->ends);
    t->added = gn_calloc((size_t)t->vocab.n, sizeof *t->added);
    return t->ends != NULL && t->added != NULL ? GN_OK : gn_alloc_failed();
}

gn_status gn_tokenizer_add_end(gn_tokenizer *t, int64_t id)
{
    GN_REQUIRE(id >= 0 && id < t->vocab.n, GN_E_FORMAT,
               "end token: found id %lld, expected one below the vocabulary's %d", (long long)id,
               t->vocab.n);
    t->ends[id] = true;
    return GN_OK;
}

static int32_t find_text(const gn_tokenizer *t, const char *s)
{
    return gn_vocab_find(&t->vocab, s, strlen(s));
}

/* Files often name one end token only, while a chat model ends its turn with another; these are the
 * turn ends of the published families. They count only where they are special or added tokens, so
 * that an ordinary piece spelled alike ends nothing. */
static void find_ends(gn_tokenizer *t)
{
    static const char *const texts[] = {
        "<|eot_id|>",
        "<|eom_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<end_of_turn>",
        "<turn|>",
        "<|END_OF_TURN_TOKEN|>",
        "<｜end▁of▁sentence｜>",
        "<|end_of_turn|>",
        "<|user|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[e~[",
        "<end_of_utterance>",
        "<|eot|>",
        "[|endofturn|]",
        "<|endofprompt|>",
    };
    for (size_t i = 0; i < GN_COUNTOF(texts); i++) {
        int32_t id = find_text(t, texts[i]);
        if (id >= 0 && (t->vocab.kind[id] == GN_VOCAB_CONTROL ||
                        t->vocab.kind[id] == GN_VOCAB_USER || t->added[id])) {
            t->ends[id] = true;
        }
    }
    int32_t end = find_text(t, "<|end|>");
    if (end >= 0 && find_text(t, "<|return|>") >= 0 && find_text(t, "<|call|>") >= 0) {
        t->ends[end] = false; /* harmony: it ends a message, and more of the turn follows */
    }
    if (t->eos >= 0) {
        t->ends[t->eos] = true;
    }
}

gn_status gn_tokenizer_finish(gn_tokenizer *t)
{
    find_ends(t);
    gn_bpe *bpe = &t->bpe;
    if (t->model != GN_MODEL_BPE) {
        /* The names of bytes are kept with the BPE model's, for decoding and for broken UTF-8. */
        bpe->symbols = GN_BPE_CHARS;
        gn_bpe_find_bytes(bpe);
    }
    bool fallback = t->model == GN_MODEL_BPE ? bpe->byte_fallback : t->unigram.byte_fallback;
    for (size_t b = 0; fallback && b < 256; b++) {
        fallback = bpe->byte_id[b] >= 0;
    }
    t->keeps_bytes = fallback || bpe->symbols == GN_BPE_BYTES;
    return GN_OK;
}

int32_t gn_tokenizer_n_vocab(const gn_tokenizer *t)
{
    return t->vocab.n;
}

int32_t gn_tokenizer_bos(const gn_tokenizer *t)
{
    return t->bos;
}

int32_t gn_tokenizer_eos(const gn_tokenizer *t)
{
    return t->eos;
}

int32_t gn_tokenizer_pad(const gn_tokenizer *t)
{
    return t->pad;
}

bool gn_tokenizer_adds_bos(const gn_tokenizer *t)
{
    return t->before.n != 0;
}

static bool in_range(const gn_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->vocab.n;
}

bool gn_tokenizer_is_end(const gn_tokenizer *t, int32_t id)
{
    return in_range(t, id) && t->ends[id];
}

bool gn_tokenizer_is_special(const gn_tokenizer *t, int32_t id)
{
    return in_range(t, id) &&
           (t->vocab.kind[id] == GN_VOCAB_CONTROL || t->vocab.kind[id] == GN_VOCAB_UNKNOWN);
}

int32_t gn_tokenizer_find(const gn_tokenizer *t, const char *s, size_t len)
{
    return gn_vocab_find(&t->vocab, s, len);
}

const char *gn_tokenizer_spelling(const gn_tokenizer *t, int32_t id, size_t *len)
{
    if (!in_range(t, id)) {
        *len = 0;
        return NULL;
    }
    return gn_vocab_spelling(&t->vocab, id, len);
}

const char *gn_tokenizer_chat_template(const gn_tokenizer *t)
{
    return t->chat_template;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : (c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1);
}

/* The byte of "<0xNN>", or -1. */
static int byte_of(const char *s, size_t len)
{
    if (len != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>') {
        return -1;
    }
    int high = hex_digit(s[3]);
    int low = hex_digit(s[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static gn_status put_letters(const char *s, size_t len, gn_buf *out)
{
    size_t kept = out->len;
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        size_t n = gn_utf8_decode(s + i, len - i, &cp);
        int byte = n != 0 ? gn_bpe_byte(cp) : -1;
        if (byte < 0) {
            /* A spelling that is not made of letters stands for itself. */
            gn_text_cut(out, kept);
            return gn_buf_append(out, s, len);
        }
        GN_TRY(gn_buf_putc(out, (char)byte));
        i += n;
    }
    return GN_OK;
}

static gn_status put_marked(const gn_tokenizer *t, const char *s, size_t len, gn_buf *out)
{
    size_t mark = strlen(t->mark);
    for (size_t i = 0; i < len;) {
        if (mark != 0 && len - i >= mark && memcmp(s + i, t->mark, mark) == 0) {
            GN_TRY(gn_buf_putc(out, ' '));
            i += mark;
        } else {
            GN_TRY(gn_buf_putc(out, s[i++]));
        }
    }
    return GN_OK;
}

static bool is_affixed(const gn_tokenizer *t, const char *s, size_t len, bool at_end)
{
    size_t n = t->affix != NULL ? strlen(t->affix) : 0;
    return n != 0 && len > n && memcmp(at_end ? s + len - n : s, t->affix, n) == 0;
}

static gn_status put_piece(const gn_tokenizer *t, int32_t id, gn_buf *out)
{
    size_t len;
    const char *s = gn_vocab_spelling(&t->vocab, id, &len);
    if (t->spell == GN_SPELL_WORDPIECE) {
        size_t start = strlen(t->wordpiece.start);
        if (start != 0) { /* GGUF: word starts are marked, continuations are not */
            bool starts = len > start && memcmp(s, t->wordpiece.start, start) == 0;
            bool special = gn_tokenizer_is_special(t, id);
            GN_TRY(starts || special ? gn_buf_putc(out, ' ') : GN_OK);
            return gn_buf_append(out, starts ? s + start : s, starts ? len - start : len);
        }
        if (is_affixed(t, s, len, false)) {
            return gn_buf_append(out, s + strlen(t->affix), len - strlen(t->affix));
        }
        GN_TRY(gn_buf_putc(out, ' '));
        return gn_buf_append(out, s, len);
    }
    if (t->added[id] || t->vocab.kind[id] == GN_VOCAB_CONTROL) {
        return gn_buf_append(out, s, len);
    }
    int byte = byte_of(s, len);
    switch (t->spell) {
    case GN_SPELL_LETTERS: return put_letters(s, len, out);
    case GN_SPELL_MARK:
        return byte >= 0 && t->bpe.byte_id[byte] == id ? gn_buf_putc(out, (char)byte)
                                                       : put_marked(t, s, len, out);
    case GN_SPELL_SUFFIX:
        if (is_affixed(t, s, len, true)) {
            GN_TRY(gn_buf_append(out, s, len - strlen(t->affix)));
            return gn_buf_putc(out, ' ');
        }
        break;
    case GN_SPELL_WORDPIECE:
    case GN_SPELL_PLAIN: break;
    }
    return gn_buf_append(out, s, len);
}

void gn_tokenizer_set_rows(gn_tokenizer *t, int32_t n_rows)
{
    t->n_rows = n_rows;
}

gn_status gn_tokenizer_piece(const gn_tokenizer *t, int32_t id, bool special, gn_buf *out)
{
    int32_t n = t->n_rows > t->vocab.n ? t->n_rows : t->vocab.n;
    GN_REQUIRE(id >= 0 && id < n, GN_E_ARG, "token: found id %d, expected 0 to %d", id, n - 1);
    if (id >= t->vocab.n) {
        return GN_OK;
    }
    if (!special && gn_tokenizer_is_special(t, id)) {
        return GN_OK;
    }
    size_t kept = out->len;
    gn_status status = put_piece(t, id, out);
    if (status != GN_OK) {
        gn_text_cut(out, kept);
    }
    return status;
}

/* WordPiece's decoder takes the space off before these marks. Its further rules (English
 * contractions) look for what never is one token, so they never apply. */
static void clean_up(char *s, size_t *len)
{
    size_t n = 0;
    for (size_t i = 0; i < *len; i++) {
        if (s[i] != ' ' || i + 1 == *len || strchr(".?!,", s[i + 1]) == NULL) {
            s[n++] = s[i];
        }
    }
    *len = n;
}

gn_status gn_tokenizer_decode(const gn_tokenizer *t, const int32_t *ids, size_t n, bool special,
                              gn_buf *out)
{
    size_t kept = out->len;
    for (size_t i = 0; i < n; i++) {
        gn_status status = gn_tokenizer_piece(t, ids[i], special, out);
        if (status != GN_OK) {
            gn_text_cut(out, kept);
            return status;
        }
    }
    if (t->strips_start && out->len > kept && out->data[kept] == ' ') {
        memmove(out->data + kept, out->data + kept + 1, out->len - kept);
        out->len--;
    }
    if (t->cleans_up && out->len > kept) {
        size_t len = out->len - kept;
        clean_up(out->data + kept, &len);
        gn_text_cut(out, kept + len);
    }
    return GN_OK;
}
