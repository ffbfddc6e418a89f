/* The vocabulary, merges and scores of tokenizer.json, and its added tokens. */
#include "text/hf.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

#define MAX_SCORE 1e30

gn_status gn_hf_bool(const json_t *object, const char *key, const char *where, bool *out)
{
    const json_t *v = json_object_get(object, key);
    if (v == NULL || json_is_null(v)) {
        return GN_OK;
    }
    GN_REQUIRE(json_is_boolean(v), GN_E_FORMAT, "tokenizer.json: %s: %s: expected true or false",
               where, key);
    *out = json_is_true(v);
    return GN_OK;
}

gn_status gn_hf_int(const json_t *object, const char *key, const char *where, int64_t *out)
{
    const json_t *v = json_object_get(object, key);
    if (v == NULL || json_is_null(v)) {
        return GN_OK;
    }
    GN_REQUIRE(json_is_integer(v), GN_E_FORMAT, "tokenizer.json: %s: %s: expected an integer",
               where, key);
    *out = json_integer_value(v);
    return GN_OK;
}

gn_status gn_hf_str(const json_t *object, const char *key, const char *where, const char **out,
                    size_t *len)
{
    const json_t *v = json_object_get(object, key);
    if (v == NULL || json_is_null(v)) {
        return GN_OK;
    }
    GN_REQUIRE(json_is_string(v), GN_E_FORMAT, "tokenizer.json: %s: %s: expected a string", where,
               key);
    *out = json_string_value(v);
    *len = json_string_length(v);
    return GN_OK;
}

gn_status gn_hf_type(const json_t *object, const char *where, const char **out)
{
    *out = json_string_value(json_object_get(object, "type"));
    GN_REQUIRE(*out != NULL, GN_E_FORMAT, "tokenizer.json: %s: expected an object with a type",
               where);
    return GN_OK;
}

/* --- vocabulary --- */

typedef struct spellings { /* by id, with holes */
    gn_vocab_item *items;
    size_t n;
    size_t cap;
    size_t
        expected; /* how many tokens the file lists: bounds what a wild id can make us allocate */
} spellings;

/* Give `id` a spelling; the same one twice is fine. */
static gn_status set_spelling(spellings *all, json_int_t id, const char *s, size_t len,
                              gn_vocab_kind kind)
{
    GN_REQUIRE(id >= 0 && id < GN_VOCAB_MAX && (size_t)id < 4 * all->expected + 1024, GN_E_FORMAT,
               "tokenizer.json: token \"%.40s\": found id %lld, with %zu tokens in the file", s,
               (long long)id, all->expected);
    size_t at = (size_t)id;
    if (at >= all->cap) {
        size_t cap = at + 1 > all->cap * 2 ? at + 1 : all->cap * 2;
        gn_vocab_item *items = gn_realloc_array(all->items, cap, sizeof *items);
        if (items == NULL) {
            return gn_alloc_failed();
        }
        memset(items + all->cap, 0, (cap - all->cap) * sizeof *items);
        all->items = items;
        all->cap = cap;
    }
    gn_vocab_item *item = &all->items[at];
    bool same = item->len == len && item->s != NULL && memcmp(item->s, s, len) == 0;
    GN_REQUIRE(item->s == NULL || same, GN_E_FORMAT,
               "tokenizer.json: id %lld: found \"%.40s\" and \"%.40s\", expected one token",
               (long long)id, item->s, s);
    *item = (gn_vocab_item){s, len, kind};
    all->n = at + 1 > all->n ? at + 1 : all->n;
    return GN_OK;
}

static gn_status collect_object(const json_t *vocab, spellings *all)
{
    const char *key;
    json_t *id;
    /* The iteration macro wants a mutable object and changes nothing. */
    json_object_foreach((json_t *)(uintptr_t)vocab, key, id)
    {
        GN_REQUIRE(json_is_integer(id), GN_E_FORMAT,
                   "tokenizer.json: model: vocab: \"%.40s\": expected an integer", key);
        GN_TRY(set_spelling(all, json_integer_value(id), key, strlen(key), GN_VOCAB_NORMAL));
    }
    return GN_OK;
}

/* Unigram's vocabulary: an array of [piece, score]. */
static gn_status collect_array(const json_t *vocab, spellings *all)
{
    for (size_t i = 0; i < json_array_size(vocab); i++) {
        const json_t *piece = json_array_get(json_array_get(vocab, i), 0);
        GN_REQUIRE(json_is_string(piece), GN_E_FORMAT,
                   "tokenizer.json: model: vocab: entry %zu: expected a piece and a score", i);
        GN_TRY(set_spelling(all, (json_int_t)i, json_string_value(piece), json_string_length(piece),
                            GN_VOCAB_NORMAL));
    }
    return GN_OK;
}

static gn_status collect_added(const json_t *added, spellings *all)
{
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);
        const char *s = NULL;
        size_t len = 0;
        int64_t id = -1;
        bool special = false;
        GN_TRY(gn_hf_str(token, "content", "added_tokens", &s, &len));
        GN_TRY(gn_hf_int(token, "id", "added_tokens", &id));
        GN_TRY(gn_hf_bool(token, "special", "added_tokens", &special));
        GN_REQUIRE(s != NULL && len != 0, GN_E_FORMAT,
                   "tokenizer.json: added_tokens: entry %zu: expected a content", i);
        GN_TRY(set_spelling(all, id, s, len, special ? GN_VOCAB_CONTROL : GN_VOCAB_USER));
    }
    return GN_OK;
}

static gn_status collect(const json_t *vocab, const json_t *added, spellings *all)
{
    all->expected = json_object_size(vocab) + json_array_size(vocab) + json_array_size(added);
    if (json_is_object(vocab)) {
        GN_TRY(collect_object(vocab, all));
    } else if (json_is_array(vocab)) {
        GN_TRY(collect_array(vocab, all));
    } else {
        return gn_base_fail(GN_E_FORMAT,
                            "tokenizer.json: model: vocab: expected an object or an array");
    }
    return collect_added(added, all);
}

static gn_status read_scores(const json_t *vocab, gn_vocab *out)
{
    if (!json_is_array(vocab)) {
        return GN_OK;
    }
    out->score = gn_calloc((size_t)out->n, sizeof *out->score);
    if (out->score == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < json_array_size(vocab); i++) {
        const json_t *v = json_array_get(json_array_get(vocab, i), 1);
        double score = json_number_value(v);
        GN_REQUIRE(json_is_number(v) && isfinite(score) && fabs(score) <= MAX_SCORE, GN_E_FORMAT,
                   "tokenizer.json: model: vocab: entry %zu: expected a finite score", i);
        out->score[i] = score;
    }
    return GN_OK;
}

gn_status gn_hf_vocab(const json_t *model, const json_t *added, gn_tokenizer *t)
{
    GN_REQUIRE(added == NULL || json_is_null(added) || json_is_array(added), GN_E_FORMAT,
               "tokenizer.json: added_tokens: expected an array");
    const json_t *vocab = json_object_get(model, "vocab");
    spellings all = {0};
    gn_status status = collect(vocab, added, &all);
    if (status == GN_OK) {
        status = gn_vocab_build(&t->vocab, all.items, all.n);
    }
    gn_free(all.items);
    GN_TRY(status);
    GN_TRY(read_scores(vocab, &t->vocab));
    return gn_tokenizer_size(t);
}

/* --- models --- */

/* The id of the token that `key` names, which must exist where it is named. */
static gn_status get_token(const json_t *model, const char *key, const gn_tokenizer *t, int32_t *id)
{
    const char *s = NULL;
    size_t len = 0;
    GN_TRY(gn_hf_str(model, key, "model", &s, &len));
    if (s == NULL || len == 0) {
        return GN_OK;
    }
    *id = gn_vocab_find(&t->vocab, s, len);
    GN_REQUIRE(*id >= 0, GN_E_FORMAT,
               "tokenizer.json: model: %s: \"%.40s\" is not in the vocabulary", key, s);
    return GN_OK;
}

static gn_status copy_affix(const json_t *model, const char *key, char **out)
{
    const char *s = NULL;
    size_t len = 0;
    GN_TRY(gn_hf_str(model, key, "model", &s, &len));
    if (len != 0) {
        *out = gn_strdup(s);
        return *out != NULL ? GN_OK : gn_alloc_failed();
    }
    return GN_OK;
}

/* "left right" or ["left", "right"] */
static bool get_merge(const json_t *entry, gn_bpe_merge *out)
{
    if (json_is_string(entry)) {
        const char *s = json_string_value(entry);
        size_t len = json_string_length(entry);
        const char *space = len > 1 ? memchr(s + 1, ' ', len - 1) : NULL;
        if (space == NULL) {
            return false;
        }
        size_t left = (size_t)(space - s);
        *out = (gn_bpe_merge){{s, left}, {space + 1, len - left - 1}};
        return true;
    }
    const json_t *left = json_array_get(entry, 0);
    const json_t *right = json_array_get(entry, 1);
    *out = (gn_bpe_merge){{json_string_value(left), json_string_length(left)},
                          {json_string_value(right), json_string_length(right)}};
    return json_array_size(entry) == 2 && json_is_string(left) && json_is_string(right);
}

static gn_status read_merges(const json_t *merges, gn_bpe *bpe)
{
    GN_REQUIRE(json_is_array(merges), GN_E_FORMAT,
               "tokenizer.json: model: merges: expected an array");
    size_t n = json_array_size(merges);
    GN_TRY(gn_bpe_reserve(bpe, n));
    gn_bpe_merge batch[GN_BPE_BATCH];
    size_t n_batch = 0;
    for (size_t i = 0; i < n; i++) {
        GN_REQUIRE(get_merge(json_array_get(merges, i), &batch[n_batch]), GN_E_FORMAT,
                   "tokenizer.json: model: merges: entry %zu: expected two parts", i);
        n_batch++;
        if (n_batch == GN_BPE_BATCH || i + 1 == n) {
            gn_status status = gn_bpe_add(bpe, batch, n_batch, (uint32_t)(i + 1 - n_batch));
            if (status != GN_OK) {
                return gn_base_fail_prefix(status, "tokenizer.json: ");
            }
            n_batch = 0;
        }
    }
    return GN_OK;
}

static gn_status load_bpe(const json_t *model, bool letters, gn_tokenizer *t)
{
    gn_bpe *bpe = &t->bpe;
    t->model = GN_MODEL_BPE;
    GN_TRY(gn_hf_bool(model, "byte_fallback", "model", &bpe->byte_fallback));
    GN_TRY(gn_hf_bool(model, "fuse_unk", "model", &bpe->fuse_unk));
    GN_TRY(gn_hf_bool(model, "ignore_merges", "model", &bpe->ignore_merges));
    GN_TRY(get_token(model, "unk_token", t, &bpe->unk));
    GN_TRY(copy_affix(model, "continuing_subword_prefix", &bpe->prefix));
    GN_TRY(copy_affix(model, "end_of_word_suffix", &bpe->suffix));
    /* Letters that only the model would see stay bytes: the affixes need them as they are
     * spelled. */
    if (letters && bpe->prefix == NULL && bpe->suffix == NULL) {
        t->pretok.n--;
        bpe->symbols = GN_BPE_BYTES;
    } else {
        bpe->symbols = GN_BPE_CHARS;
    }
    gn_bpe_find_bytes(bpe);
    return read_merges(json_object_get(model, "merges"), bpe);
}

static gn_status load_unigram(const json_t *model, gn_tokenizer *t)
{
    int64_t unk = -1;
    GN_REQUIRE(t->vocab.score != NULL, GN_E_FORMAT,
               "tokenizer.json: model: vocab: expected an array of pieces and scores");
    t->model = GN_MODEL_UNIGRAM;
    t->unigram.fuse_unk = true;
    GN_TRY(gn_hf_bool(model, "byte_fallback", "model", &t->unigram.byte_fallback));
    GN_TRY(gn_hf_int(model, "unk_id", "model", &unk));
    GN_REQUIRE(unk >= -1 && unk < t->vocab.n, GN_E_FORMAT,
               "tokenizer.json: model: unk_id: found %lld, expected one below the vocabulary's %d",
               (long long)unk, t->vocab.n);
    t->unigram.unk = (int32_t)unk;
    return gn_unigram_build(&t->unigram);
}

static gn_status load_wordpiece(const json_t *model, gn_tokenizer *t)
{
    gn_wordpiece *wp = &t->wordpiece;
    const char *prefix = "##";
    size_t len = 2;
    int64_t max_chars = 100;
    t->model = GN_MODEL_WORDPIECE;
    GN_TRY(gn_hf_str(model, "continuing_subword_prefix", "model", &prefix, &len));
    GN_REQUIRE(
        len < sizeof wp->continuation, GN_E_FORMAT,
        "tokenizer.json: model: continuing_subword_prefix: found %zu bytes, expected under %zu",
        len, sizeof wp->continuation);
    memcpy(wp->continuation, prefix, len + 1);
    GN_TRY(gn_hf_int(model, "max_input_chars_per_word", "model", &max_chars));
    GN_REQUIRE(max_chars > 0 && max_chars <= 1000, GN_E_FORMAT,
               "tokenizer.json: model: max_input_chars_per_word: found %lld, expected 1 to 1000",
               (long long)max_chars);
    wp->max_chars = (size_t)max_chars;
    return get_token(model, "unk_token", t, &wp->unk);
}

/* Old files leave the type out. */
static const char *guess_type(const json_t *model)
{
    if (json_object_get(model, "merges") != NULL) {
        return "BPE";
    }
    return json_is_array(json_object_get(model, "vocab")) ? "Unigram" : "WordPiece";
}

gn_status gn_hf_model(const json_t *model, bool letters, gn_tokenizer *t)
{
    const char *type = json_string_value(json_object_get(model, "type"));
    type = type != NULL ? type : guess_type(model);
    if (strcmp(type, "BPE") == 0) {
        return load_bpe(model, letters, t);
    }
    if (strcmp(type, "Unigram") == 0) {
        return load_unigram(model, t);
    }
    if (strcmp(type, "WordPiece") == 0) {
        return load_wordpiece(model, t);
    }
    return gn_base_fail(
        GN_E_UNSUPPORTED,
        "tokenizer.json: model: found type \"%.40s\", expected BPE, Unigram or WordPiece", type);
}

/* --- added tokens --- */

static gn_status get_flags(const json_t *token, unsigned *flags, bool *normalized)
{
    bool special = false;
    bool lstrip = false;
    bool rstrip = false;
    bool single = false;
    GN_TRY(gn_hf_bool(token, "special", "added_tokens", &special));
    GN_TRY(gn_hf_bool(token, "lstrip", "added_tokens", &lstrip));
    GN_TRY(gn_hf_bool(token, "rstrip", "added_tokens", &rstrip));
    GN_TRY(gn_hf_bool(token, "single_word", "added_tokens", &single));
    *normalized = !special;
    GN_TRY(gn_hf_bool(token, "normalized", "added_tokens", normalized));
    *flags = (special ? (unsigned)GN_SPECIAL_CONTROL : 0u) |
             (lstrip ? (unsigned)GN_SPECIAL_LSTRIP : 0u) |
             (rstrip ? (unsigned)GN_SPECIAL_RSTRIP : 0u) |
             (single ? (unsigned)GN_SPECIAL_SINGLE_WORD : 0u);
    return GN_OK;
}

typedef struct added_lists {
    gn_special_item *raw;
    gn_special_item *normalized;
    char **texts; /* normalized spellings, owned */
    size_t n_raw;
    size_t n_normalized;
    gn_norm_work work;
} added_lists;

/* A token that is looked for in normalized text is itself normalized first. */
static gn_status add_normalized(gn_tokenizer *t, added_lists *lists, gn_special_item item)
{
    const char *s;
    size_t len;
    GN_TRY(gn_norm_run(&t->norm, &lists->work, item.text.s, item.text.len, false, &s, &len));
    if (len == 0) {
        return GN_OK;
    }
    char *copy = gn_strndup(s, len);
    if (copy == NULL) {
        return gn_alloc_failed();
    }
    lists->texts[lists->n_normalized] = copy;
    item.text.s = copy;
    item.text.len = len;
    lists->normalized[lists->n_normalized++] = item;
    return GN_OK;
}

static gn_status sort_added(const json_t *added, gn_tokenizer *t, added_lists *lists)
{
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);
        int32_t id = (int32_t)json_integer_value(json_object_get(token, "id"));
        gn_special_item item = {.text = {.value = id}};
        bool normalized;
        GN_TRY(gn_hf_str(token, "content", "added_tokens", &item.text.s, &item.text.len));
        GN_TRY(get_flags(token, &item.flags, &normalized));
        t->added[id] = true;
        if (normalized) {
            GN_TRY(add_normalized(t, lists, item));
        } else {
            lists->raw[lists->n_raw++] = item;
        }
    }
    GN_TRY(gn_special_build(&t->raw, lists->raw, lists->n_raw));
    return gn_special_build(&t->normalized, lists->normalized, lists->n_normalized);
}

gn_status gn_hf_added(const json_t *added, gn_tokenizer *t)
{
    size_t n = json_array_size(added);
    if (n == 0) {
        return GN_OK;
    }
    added_lists lists = {
        .raw = gn_alloc_array(n, sizeof *lists.raw),
        .normalized = gn_alloc_array(n, sizeof *lists.normalized),
        .texts = gn_calloc(n, sizeof *lists.texts),
    };
    gn_status status = lists.raw != NULL && lists.normalized != NULL && lists.texts != NULL
                           ? sort_added(added, t, &lists)
                           : gn_alloc_failed();
    for (size_t i = 0; lists.texts != NULL && i < n; i++) {
        gn_free(lists.texts[i]);
    }
    gn_free(lists.texts);
    gn_free(lists.raw);
    gn_free(lists.normalized);
    gn_norm_work_fini(&lists.work);
    return status;
}
