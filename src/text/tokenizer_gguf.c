/* A tokenizer from a GGUF's tokenizer.ggml.* keys. Everything there is untrusted: types, counts
 * that must agree, ids that must exist, scores that must be finite. */
#include "text/tokenizer_impl.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KEY       "tokenizer.ggml."
#define MARK      "\xe2\x96\x81" /* ▁ */
#define MAX_SCORE 1e30

typedef struct loader {
    const gn_gguf *gguf;
    gn_tokenizer *t;
    bool marked; /* spellings write spaces as ▁ */
} loader;

static const char *type_name(const gn_gguf_value *v)
{
    return v->type == GN_GGUF_ARRAY ? "an array of another type" : "a single value";
}

/* An array under `key`, of strings or of numbers. */
static gn_status get_array(const loader *l, const char *key, bool strings,
                           const gn_gguf_value **out)
{
    const gn_gguf_value *v = gn_gguf_find(l->gguf, key);
    GN_REQUIRE(v != NULL, GN_E_FORMAT, "%s: not found, expected an array", key);
    bool fits = v->type == GN_GGUF_ARRAY && v->elem != GN_GGUF_ARRAY &&
                (v->elem == GN_GGUF_STRING) == strings;
    GN_REQUIRE(fits || (v->type == GN_GGUF_ARRAY && v->n == 0), GN_E_FORMAT,
               "%s: found %s, expected an array of %s", key, type_name(v),
               strings ? "strings" : "numbers");
    *out = v;
    return GN_OK;
}

static bool equals(gn_gguf_str s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.s, text, s.len) == 0;
}

/* An optional key: *out stays as it is where the key is absent. */
static gn_status get_flag(const loader *l, const char *key, bool *out)
{
    return gn_gguf_find(l->gguf, key) != NULL ? gn_gguf_get_bool(l->gguf, key, out) : GN_OK;
}

static gn_status get_id(const loader *l, const char *key, int32_t *out)
{
    if (gn_gguf_find(l->gguf, key) == NULL) {
        return GN_OK;
    }
    uint64_t id;
    GN_TRY(gn_gguf_get_u64(l->gguf, key, &id));
    GN_REQUIRE(id < (uint64_t)l->t->vocab.n, GN_E_FORMAT,
               "%s: found id %llu, expected one below the vocabulary's %d", key,
               (unsigned long long)id, l->t->vocab.n);
    *out = (int32_t)id;
    return GN_OK;
}

/* --- vocabulary --- */

static gn_status read_kinds(const loader *l, gn_vocab_item *items, size_t n)
{
    const char *key = KEY "token_type";
    for (size_t i = 0; i < n; i++) {
        items[i].kind = GN_VOCAB_NORMAL;
    }
    if (gn_gguf_find(l->gguf, key) == NULL) {
        return GN_OK;
    }
    const gn_gguf_value *v;
    GN_TRY(get_array(l, key, false, &v));
    GN_REQUIRE(v->n == n, GN_E_FORMAT,
               "%s: found %llu entries, expected one for each of %zu tokens", key,
               (unsigned long long)v->n, n);
    GN_REQUIRE(v->elem != GN_GGUF_F32 && v->elem != GN_GGUF_F64, GN_E_FORMAT,
               "%s: found fractions, expected integers", key);
    for (size_t i = 0; i < n; i++) {
        int64_t kind = gn_gguf_elem_i64(v, i);
        GN_REQUIRE(kind >= 0 && kind <= GN_VOCAB_BYTE, GN_E_FORMAT,
                   "%s: found %lld for token %zu, expected 0 to %d", key, (long long)kind, i,
                   GN_VOCAB_BYTE);
        items[i].kind = kind != 0 ? (gn_vocab_kind)kind : GN_VOCAB_NORMAL;
    }
    return GN_OK;
}

static gn_status read_scores(const loader *l)
{
    const char *key = KEY "scores";
    gn_vocab *vocab = &l->t->vocab;
    const gn_gguf_value *v;
    GN_TRY(get_array(l, key, false, &v));
    GN_REQUIRE(v->n == (uint64_t)vocab->n, GN_E_FORMAT,
               "%s: found %llu entries, expected one for each of %d tokens", key,
               (unsigned long long)v->n, vocab->n);
    vocab->score = gn_alloc_array((size_t)vocab->n, sizeof *vocab->score);
    if (vocab->score == NULL) {
        return gn_alloc_failed();
    }
    for (int32_t id = 0; id < vocab->n; id++) {
        double score = gn_gguf_elem_f64(v, (uint64_t)id);
        GN_REQUIRE(isfinite(score) && fabs(score) <= MAX_SCORE, GN_E_FORMAT,
                   "%s: found %g for token %d, expected a finite number", key, score, id);
        vocab->score[id] = score;
    }
    return GN_OK;
}

static gn_status read_vocab(const loader *l)
{
    const gn_gguf_value *v;
    GN_TRY(get_array(l, KEY "tokens", true, &v));
    GN_REQUIRE(v->n <= GN_VOCAB_MAX, GN_E_FORMAT, KEY "tokens: found %llu, expected at most %d",
               (unsigned long long)v->n, GN_VOCAB_MAX);
    size_t n = (size_t)v->n;
    gn_vocab_item *items = gn_alloc_array(n, sizeof *items);
    if (items == NULL) {
        return gn_alloc_failed();
    }
    const void *cursor = NULL;
    for (size_t i = 0; i < n; i++) {
        gn_gguf_str s = gn_gguf_str_next(v, &cursor);
        items[i] = (gn_vocab_item){.s = s.s, .len = s.len};
    }
    gn_status status = read_kinds(l, items, n);
    if (status == GN_OK) {
        status = gn_vocab_build(&l->t->vocab, items, n);
    }
    gn_free(items);
    GN_TRY(status);
    return gn_tokenizer_size(l->t);
}

/* --- merges --- */

static gn_status read_merges(const loader *l)
{
    const char *key = KEY "merges";
    const gn_gguf_value *v;
    GN_TRY(get_array(l, key, true, &v));
    GN_REQUIRE(v->n < UINT32_MAX / 4, GN_E_FORMAT, "%s: found %llu, expected under 2^30", key,
               (unsigned long long)v->n);
    GN_TRY(gn_bpe_reserve(&l->t->bpe, (size_t)v->n));
    const void *cursor = NULL;
    gn_bpe_merge merges[GN_BPE_BATCH];
    size_t n = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        gn_gguf_str s = gn_gguf_str_next(v, &cursor);
        /* The parts are separated by a space; a part may start with one. */
        const char *space = s.len > 1 ? memchr(s.s + 1, ' ', s.len - 1) : NULL;
        GN_REQUIRE(space != NULL, GN_E_FORMAT, "%s: entry %u is \"%.*s\", expected two parts", key,
                   i, (int)(s.len < 40 ? s.len : 40), s.s);
        size_t left = (size_t)(space - s.s);
        merges[n++] = (gn_bpe_merge){{s.s, left}, {space + 1, s.len - left - 1}};
        if (n == GN_BPE_BATCH || i + 1 == v->n) {
            gn_status status = gn_bpe_add(&l->t->bpe, merges, n, (uint32_t)(i + 1 - n));
            if (status != GN_OK) {
                return gn_base_fail_prefix(status, "%s: ", key);
            }
            n = 0;
        }
    }
    return GN_OK;
}

/* --- models --- */

static gn_status find_mark(loader *l)
{
    memcpy(l->t->mark, MARK, sizeof MARK);
    l->t->spell = GN_SPELL_MARK;
    l->marked = true;
    return GN_OK;
}

/* Does a piece hold a mark behind something else than marks? Where none does, no piece spans the
 * place before a word's marks, and the text can be cut there without changing what the model
 * finds. */
static bool words_are_apart(const gn_vocab *vocab)
{
    const size_t mark = strlen(MARK);
    for (int32_t id = 0; id < vocab->n; id++) {
        size_t len;
        const char *s = gn_vocab_spelling(vocab, id, &len);
        if (vocab->kind[id] != GN_VOCAB_NORMAL && vocab->kind[id] != GN_VOCAB_USER) {
            continue;
        }
        size_t i = 0;
        while (len - i >= mark && memcmp(s + i, MARK, mark) == 0) {
            i += mark;
        }
        if (i < len && memmem(s + i, len - i, MARK, mark) != NULL) {
            return false;
        }
    }
    return true;
}

/* What SentencePiece does to the text: spaces to marks, one more in front, words apart. */
static gn_status mark_spaces(loader *l, bool add_prefix)
{
    static const char words[] = MARK "*[^" MARK "]+|" MARK "+";
    gn_tokenizer *t = l->t;
    if (add_prefix) {
        GN_TRY(gn_norm_add_prepend(&t->norm, " ", 1));
    }
    GN_TRY(gn_norm_add_replace(&t->norm, " ", 1, true, MARK, strlen(MARK)));
    t->strips_start = add_prefix;
    if (words_are_apart(&t->vocab)) {
        GN_TRY(
            gn_pretok_add_split(&t->pretok, words, strlen(words), false, GN_SPLIT_ISOLATED, false));
    }
    return find_mark(l);
}

static bool has_kind(const gn_vocab *vocab, gn_vocab_kind kind)
{
    return memchr(vocab->kind, (int)kind, (size_t)vocab->n) != NULL;
}

static gn_status load_spm(loader *l)
{
    gn_tokenizer *t = l->t;
    bool prefix = true;
    GN_TRY(get_flag(l, KEY "add_space_prefix", &prefix));
    GN_TRY(read_scores(l));
    GN_TRY(mark_spaces(l, prefix));
    t->model = GN_MODEL_BPE;
    t->bpe.symbols = GN_BPE_CHARS;
    t->bpe.byte_fallback = has_kind(&t->vocab, GN_VOCAB_BYTE);
    t->bpe.fuse_unk = true;
    t->bpe.unk = 0;
    t->bos = t->vocab.n > 1 ? 1 : -1;
    t->eos = t->vocab.n > 2 ? 2 : -1;
    t->adds_bos_by_family = true;
    GN_TRY(get_id(l, KEY "unknown_token_id", &t->bpe.unk));
    gn_bpe_find_bytes(&t->bpe);
    return gn_bpe_rank_scores(&t->bpe);
}

static gn_status load_bpe(loader *l, gn_gguf_str family)
{
    gn_tokenizer *t = l->t;
    t->model = GN_MODEL_BPE;
    GN_TRY(gn_tokenizer_set_family(t, family.s, family.len));
    if (t->spell == GN_SPELL_MARK) {
        GN_TRY(find_mark(l));
        t->bpe.fuse_unk = true;
        GN_TRY(get_id(l, KEY "unknown_token_id", &t->bpe.unk));
    }
    if (t->bpe.byte_fallback || t->bpe.symbols == GN_BPE_BYTES) {
        gn_bpe_find_bytes(&t->bpe);
    }
    return read_merges(l);
}

static gn_status load_wordpiece(loader *l)
{
    gn_tokenizer *t = l->t;
    gn_wordpiece *wp = &t->wordpiece;
    bool lowercase = true;
    GN_TRY(get_flag(l, KEY "normalizer.lowercase", &lowercase));
    bool strip = lowercase;
    GN_TRY(get_flag(l, KEY "normalizer.strip_accents", &strip));
    t->model = GN_MODEL_WORDPIECE;
    t->spell = GN_SPELL_WORDPIECE;
    t->strips_start = true;
    t->cleans_up = true;
    wp->max_chars = 100;
    memcpy(wp->start, MARK, sizeof MARK);
    wp->unk = gn_vocab_find(&t->vocab, "[UNK]", 5);
    GN_TRY(get_id(l, KEY "unknown_token_id", &wp->unk));
    GN_TRY(gn_norm_add_kind(&t->norm, GN_NORM_BERT_CLEAN));
    GN_TRY(gn_norm_add_kind(&t->norm, GN_NORM_BERT_CJK));
    if (strip) {
        GN_TRY(gn_norm_add_kind(&t->norm, GN_NORM_NFD));
        GN_TRY(gn_norm_add_kind(&t->norm, GN_NORM_STRIP_MN));
    }
    if (lowercase) {
        GN_TRY(gn_norm_add_kind(&t->norm, GN_NORM_LOWERCASE));
    }
    gn_pretok_step space = {.kind = GN_PRETOK_SPACE, .split = GN_SPLIT_REMOVED};
    gn_pretok_step punct = {.kind = GN_PRETOK_PUNCT, .split = GN_SPLIT_ISOLATED};
    GN_TRY(gn_pretok_add(&t->pretok, space));
    GN_TRY(gn_pretok_add(&t->pretok, punct));
    t->bos = gn_vocab_find(&t->vocab, "[CLS]", 5);
    t->eos = gn_vocab_find(&t->vocab, "[SEP]", 5);
    GN_TRY(get_id(l, KEY "cls_token_id", &t->bos));
    GN_TRY(get_id(l, KEY "seperator_token_id", &t->eos)); /* the format's own spelling */
    t->adds_bos_by_family = true;
    t->adds_eos_by_family = true;
    return GN_OK;
}

static gn_status load_unigram(loader *l)
{
    gn_tokenizer *t = l->t;
    const char *key = KEY "precompiled_charsmap";
    bool squeeze = false;
    bool prefix = false;
    GN_TRY(get_flag(l, KEY "remove_extra_whitespaces", &squeeze));
    GN_TRY(get_flag(l, KEY "add_space_prefix", &prefix));
    GN_TRY(read_scores(l));
    if (gn_gguf_find(l->gguf, key) != NULL) {
        const gn_gguf_value *v;
        GN_TRY(get_array(l, key, false, &v));
        GN_REQUIRE(v->elem == GN_GGUF_U8 || v->elem == GN_GGUF_I8, GN_E_FORMAT,
                   "%s: found an array of another type, expected bytes", key);
        GN_TRY(gn_norm_add_charsmap(&t->norm, v->data, (size_t)v->n, false));
    }
    if (squeeze) {
        GN_TRY(gn_norm_add_kind(&t->norm, GN_NORM_SQUEEZE));
    }
    GN_TRY(mark_spaces(l, prefix));
    t->model = GN_MODEL_UNIGRAM;
    t->unigram.unk = t->vocab.n > 2 ? 2 : -1;
    t->unigram.fuse_unk = true;
    t->unigram.byte_fallback = has_kind(&t->vocab, GN_VOCAB_BYTE);
    GN_TRY(get_id(l, KEY "unknown_token_id", &t->unigram.unk));
    t->eos = t->vocab.n > 1 ? 1 : -1;
    t->adds_eos_by_family = true;
    return gn_unigram_build(&t->unigram);
}

/* --- special tokens --- */

static bool contains_lower(gn_gguf_str s, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= s.len; i++) {
        size_t k = 0;
        while (k < n && (s.s[i + k] | 0x20) == (word[k] | 0x20)) {
            k++;
        }
        if (k == n) {
            return true;
        }
    }
    return false;
}

/* A GGUF does not say which special tokens take the white space behind them; Phi-3's do in its
 * tokenizer.json. */
static bool strips_behind(const loader *l, const char *s, size_t len)
{
    gn_gguf_str name;
    if (gn_gguf_find(l->gguf, "general.name") == NULL ||
        gn_gguf_get_str(l->gguf, "general.name", &name) != GN_OK ||
        !(contains_lower(name, "phi-3") || contains_lower(name, "phi3"))) {
        return false;
    }
    bool framed = len > 4 && memcmp(s, "<|", 2) == 0 && memcmp(s + len - 2, "|>", 2) == 0;
    bool text_end = len == 13 && memcmp(s, "<|endoftext|>", 13) == 0;
    return (framed && !text_end) || (len == 4 && memcmp(s, "</s>", 4) == 0);
}

/* Spaces as the vocabulary's marks, appended to `text`. */
static gn_status put_marks(gn_buf *text, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        GN_TRY(s[i] == ' ' ? gn_buf_puts(text, MARK) : gn_buf_putc(text, s[i]));
    }
    return GN_OK;
}

static bool has_space(const char *s, size_t len)
{
    return memchr(s, ' ', len) != NULL || memmem(s, len, MARK, strlen(MARK)) != NULL;
}

typedef struct special_lists {
    gn_special_item *raw;
    gn_special_item *marked;
    size_t n_raw;
    size_t n_marked;
    gn_buf texts; /* spellings of `marked` */
} special_lists;

/* User-defined pieces with spaces in them are looked for where SentencePiece does it: in the text
 * whose spaces are marks. The rest are looked for in the text as it is. */
static gn_status list_special(const loader *l, special_lists *lists, int32_t id)
{
    unsigned kind = l->t->vocab.kind[id];
    size_t len;
    const char *s = gn_vocab_spelling(&l->t->vocab, id, &len);
    if (kind == GN_VOCAB_USER && l->marked && has_space(s, len)) {
        size_t at = lists->texts.len;
        GN_TRY(put_marks(&lists->texts, s, len));
        s = lists->texts.data + at;
        len = lists->texts.len - at;
        lists->marked[lists->n_marked++] = (gn_special_item){{s, len, id}, 0};
        return GN_OK;
    }
    l->t->added[id] = true;
    unsigned flags = kind == GN_VOCAB_USER ? 0u : (unsigned)GN_SPECIAL_CONTROL;
    flags |= strips_behind(l, s, len) ? (unsigned)GN_SPECIAL_RSTRIP : 0u;
    lists->raw[lists->n_raw++] = (gn_special_item){{s, len, id}, flags};
    return GN_OK;
}

static gn_status list_specials(const loader *l, special_lists *lists)
{
    gn_tokenizer *t = l->t;
    gn_vocab *vocab = &t->vocab;
    /* Reserved once, so that the items may point into it: a mark takes three bytes for one. */
    GN_TRY(gn_buf_reserve(&lists->texts, 3 * (size_t)vocab->start[vocab->n]));
    for (int32_t id = 0; id < vocab->n; id++) {
        unsigned kind = vocab->kind[id];
        bool special =
            kind == GN_VOCAB_CONTROL || kind == GN_VOCAB_UNKNOWN || kind == GN_VOCAB_USER;
        if (special && vocab->start[id + 1] - vocab->start[id] > 1) {
            GN_TRY(list_special(l, lists, id));
        }
    }
    GN_TRY(gn_special_build(&t->raw, lists->raw, lists->n_raw));
    return gn_special_build(&t->normalized, lists->marked, lists->n_marked);
}

static gn_status read_specials(const loader *l)
{
    size_t n = (size_t)l->t->vocab.n;
    special_lists lists = {
        .raw = gn_alloc_array(n, sizeof *lists.raw),
        .marked = gn_alloc_array(n, sizeof *lists.marked),
    };
    gn_status status =
        lists.raw != NULL && lists.marked != NULL ? list_specials(l, &lists) : gn_alloc_failed();
    gn_buf_fini(&lists.texts);
    gn_free(lists.marked);
    gn_free(lists.raw);
    return status;
}

static gn_status read_ends(const loader *l)
{
    static const char *const keys[] = {KEY "eot_token_id", KEY "eom_token_id"};
    for (size_t i = 0; i < GN_COUNTOF(keys); i++) {
        int32_t id = -1;
        GN_TRY(get_id(l, keys[i], &id));
        if (id >= 0) {
            GN_TRY(gn_tokenizer_add_end(l->t, id));
        }
    }
    return GN_OK;
}

static gn_status read_ids(const loader *l)
{
    gn_tokenizer *t = l->t;
    bool add_bos = t->adds_bos_by_family;
    bool add_eos = t->adds_eos_by_family;
    GN_TRY(get_id(l, KEY "bos_token_id", &t->bos));
    GN_TRY(get_id(l, KEY "eos_token_id", &t->eos));
    GN_TRY(get_id(l, KEY "padding_token_id", &t->pad));
    GN_TRY(get_flag(l, KEY "add_bos_token", &add_bos));
    GN_TRY(get_flag(l, KEY "add_eos_token", &add_eos));
    if (add_bos && t->bos >= 0) {
        GN_TRY(gn_token_list_push(&t->before, t->bos));
    }
    if (add_eos && t->eos >= 0) {
        GN_TRY(gn_token_list_push(&t->after, t->eos));
    }
    return read_ends(l);
}

static gn_status read_template(const loader *l)
{
    const char *key = "tokenizer.chat_template";
    if (gn_gguf_find(l->gguf, key) == NULL) {
        return GN_OK;
    }
    gn_gguf_str s;
    GN_TRY(gn_gguf_get_str(l->gguf, key, &s));
    l->t->chat_template = gn_strndup(s.s, s.len);
    return l->t->chat_template != NULL ? GN_OK : gn_alloc_failed();
}

static gn_status load_model(loader *l)
{
    gn_gguf_str model;
    gn_gguf_str pre = {"default", 7};
    GN_TRY(gn_gguf_get_str(l->gguf, KEY "model", &model));
    if (gn_gguf_find(l->gguf, KEY "pre") != NULL) {
        GN_TRY(gn_gguf_get_str(l->gguf, KEY "pre", &pre));
    }
    GN_TRY(read_vocab(l));
    if (equals(model, "llama")) {
        return load_spm(l);
    }
    if (equals(model, "gpt2")) {
        return load_bpe(l, pre);
    }
    if (equals(model, "gemma4")) {
        return load_bpe(l, (gn_gguf_str){"gemma4", 6});
    }
    if (equals(model, "whitespace")) {
        return load_bpe(l, (gn_gguf_str){"whitespace", 10});
    }
    if (equals(model, "bert")) {
        return load_wordpiece(l);
    }
    if (equals(model, "t5")) {
        return load_unigram(l);
    }
    return gn_base_fail(GN_E_UNSUPPORTED,
                        KEY "model: found \"%.*s\", expected gpt2, llama, bert, t5, gemma4 or "
                            "whitespace",
                        (int)(model.len < 40 ? model.len : 40), model.s);
}

gn_status gn_tokenizer_create_gguf(const gn_gguf *gguf, gn_tokenizer **out)
{
    gn_tokenizer *t = gn_tokenizer_new();
    if (t == NULL) {
        return gn_alloc_failed();
    }
    loader l = {.gguf = gguf, .t = t};
    gn_status status = load_model(&l);
    status = status == GN_OK ? read_specials(&l) : status;
    status = status == GN_OK ? read_ids(&l) : status;
    status = status == GN_OK ? read_template(&l) : status;
    status = status == GN_OK ? gn_tokenizer_finish(t) : status;
    if (status != GN_OK) {
        gn_tokenizer_destroy(t);
        return status;
    }
    *out = t;
    return GN_OK;
}
