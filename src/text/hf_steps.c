/* The steps of tokenizer.json around the model: normalizer, pre-tokenizer, decoder,
 * post-processor. A step that is not known is refused by name: leaving it out would give other ids
 * in silence. */
#include "text/hf.h"

#include "base/alloc.h"

#include <string.h>

#define MAX_DEPTH 8

static bool is(const char *type, const char *name)
{
    return strcmp(type, name) == 0;
}

static gn_status unsupported(const char *what, const char *type, const char *known)
{
    return gn_base_fail(GN_E_UNSUPPORTED,
                        "tokenizer.json: %s: found type \"%.40s\", expected one of %s", what, type,
                        known);
}

/* The members of a Sequence, or NULL with *status set. */
static const json_t *members(const json_t *json, const char *key, const char *where, int depth,
                             gn_status *status)
{
    const json_t *list = json_object_get(json, key);
    if (!json_is_array(list)) {
        *status =
            gn_base_fail(GN_E_FORMAT, "tokenizer.json: %s: %s: expected an array", where, key);
        return NULL;
    }
    if (depth >= MAX_DEPTH) {
        *status =
            gn_base_fail(GN_E_LIMIT, "tokenizer.json: %s: nested over %d deep", where, MAX_DEPTH);
        return NULL;
    }
    return list;
}

/* {"String": s} or {"Regex": r} */
static gn_status get_pattern(const json_t *json, const char *where, const char **s, size_t *len,
                             bool *literal)
{
    const json_t *pattern = json_object_get(json, "pattern");
    *s = NULL;
    if (json_is_object(pattern)) {
        *literal = json_object_get(pattern, "String") != NULL;
        GN_TRY(gn_hf_str(pattern, *literal ? "String" : "Regex", where, s, len));
    }
    GN_REQUIRE(*s != NULL && *len != 0, GN_E_FORMAT,
               "tokenizer.json: %s: pattern: expected a String or a Regex", where);
    return GN_OK;
}

/* --- normalizer --- */

static gn_status bert_normalizer(const json_t *json, gn_norm *norm)
{
    bool clean = true;
    bool cjk = true;
    bool lowercase = true;
    GN_TRY(gn_hf_bool(json, "clean_text", "normalizer", &clean));
    GN_TRY(gn_hf_bool(json, "handle_chinese_chars", "normalizer", &cjk));
    GN_TRY(gn_hf_bool(json, "lowercase", "normalizer", &lowercase));
    bool strip = lowercase;
    GN_TRY(gn_hf_bool(json, "strip_accents", "normalizer", &strip));
    GN_TRY(clean ? gn_norm_add_kind(norm, GN_NORM_BERT_CLEAN) : GN_OK);
    GN_TRY(cjk ? gn_norm_add_kind(norm, GN_NORM_BERT_CJK) : GN_OK);
    if (strip) {
        GN_TRY(gn_norm_add_kind(norm, GN_NORM_NFD));
        GN_TRY(gn_norm_add_kind(norm, GN_NORM_STRIP_MN));
    }
    return lowercase ? gn_norm_add_kind(norm, GN_NORM_LOWERCASE) : GN_OK;
}

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

static gn_status base64(const char *s, size_t len, gn_buf *out)
{
    uint32_t bits = 0;
    int n = 0;
    while (len != 0 && s[len - 1] == '=') {
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        int digit = base64_digit(s[i]);
        GN_REQUIRE(digit >= 0, GN_E_FORMAT,
                   "tokenizer.json: precompiled_charsmap: found byte %u at %zu, expected base64",
                   (unsigned char)s[i], i);
        bits = bits << 6 | (uint32_t)digit;
        n += 6;
        if (n >= 8) {
            n -= 8;
            GN_TRY(gn_buf_putc(out, (char)(bits >> n & 0xff)));
        }
    }
    return GN_OK;
}

static gn_status precompiled(const json_t *json, gn_norm *norm)
{
    const char *text = NULL;
    size_t len = 0;
    GN_TRY(gn_hf_str(json, "precompiled_charsmap", "normalizer", &text, &len));
    if (len == 0) {
        return GN_OK;
    }
    gn_buf data = {0};
    gn_status status = base64(text, len, &data);
    if (status == GN_OK) {
        status = gn_norm_add_charsmap(norm, data.data, data.len, true);
    }
    gn_buf_fini(&data);
    return status;
}

static gn_status replace(const json_t *json, gn_norm *norm)
{
    const char *find;
    const char *text = NULL;
    size_t find_len = 0;
    size_t text_len = 0;
    bool literal = false;
    GN_TRY(get_pattern(json, "normalizer", &find, &find_len, &literal));
    GN_TRY(gn_hf_str(json, "content", "normalizer", &text, &text_len));
    GN_REQUIRE(text != NULL, GN_E_FORMAT, "tokenizer.json: normalizer: Replace without content");
    return gn_norm_add_replace(norm, find, find_len, literal, text, text_len);
}

static gn_status prepend(const json_t *json, gn_norm *norm)
{
    const char *text = NULL;
    size_t len = 0;
    GN_TRY(gn_hf_str(json, "prepend", "normalizer", &text, &len));
    return len != 0 ? gn_norm_add_prepend(norm, text, len) : GN_OK;
}

static gn_status strip(const json_t *json, gn_norm *norm)
{
    gn_norm_step step = {.kind = GN_NORM_STRIP, .left = true, .right = true};
    GN_TRY(gn_hf_bool(json, "strip_left", "normalizer", &step.left));
    GN_TRY(gn_hf_bool(json, "strip_right", "normalizer", &step.right));
    return gn_norm_add(norm, step);
}

static gn_status add_normalizer(const json_t *json, gn_norm *norm, int depth)
{
    static const struct {
        const char *name;
        gn_norm_kind kind;
    } plain[] = {
        {"NFC", GN_NORM_NFC},
        {"NFD", GN_NORM_NFD},
        {"NFKC", GN_NORM_NFKC},
        {"NFKD", GN_NORM_NFKD},
        {"Lowercase", GN_NORM_LOWERCASE},
        {"StripAccents", GN_NORM_STRIP_ACCENTS},
        {"Nmt", GN_NORM_NMT},
        {"ByteLevel", GN_NORM_LETTERS},
    };
    const char *type;
    GN_TRY(gn_hf_type(json, "normalizer", &type));
    if (is(type, "Sequence")) {
        gn_status status = GN_OK;
        const json_t *list = members(json, "normalizers", "normalizer", depth, &status);
        for (size_t i = 0; status == GN_OK && i < json_array_size(list); i++) {
            status = add_normalizer(json_array_get(list, i), norm, depth + 1);
        }
        return status;
    }
    for (size_t i = 0; i < GN_COUNTOF(plain); i++) {
        if (is(type, plain[i].name)) {
            return gn_norm_add_kind(norm, plain[i].kind);
        }
    }
    if (is(type, "BertNormalizer")) {
        return bert_normalizer(json, norm);
    }
    if (is(type, "Replace")) {
        return replace(json, norm);
    }
    if (is(type, "Prepend")) {
        return prepend(json, norm);
    }
    if (is(type, "Strip")) {
        return strip(json, norm);
    }
    if (is(type, "Precompiled")) {
        return precompiled(json, norm);
    }
    return unsupported("normalizer", type,
                       "Sequence, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Nmt, ByteLevel, "
                       "BertNormalizer, Replace, Prepend, Strip, Precompiled");
}

gn_status gn_hf_normalizer(const json_t *json, gn_tokenizer *t)
{
    return json == NULL || json_is_null(json) ? GN_OK : add_normalizer(json, &t->norm, 0);
}

/* --- pre-tokenizer --- */

static gn_status get_behavior(const json_t *json, gn_pretok_split *out)
{
    static const struct {
        const char *name;
        gn_pretok_split split;
    } names[] = {
        {"Isolated", GN_SPLIT_ISOLATED},        {"Removed", GN_SPLIT_REMOVED},
        {"Contiguous", GN_SPLIT_CONTIGUOUS},    {"MergedWithPrevious", GN_SPLIT_WITH_PREVIOUS},
        {"MergedWithNext", GN_SPLIT_WITH_NEXT},
    };
    const char *name = NULL;
    size_t len;
    GN_TRY(gn_hf_str(json, "behavior", "pre_tokenizer", &name, &len));
    for (size_t i = 0; name != NULL && i < GN_COUNTOF(names); i++) {
        if (is(name, names[i].name)) {
            *out = names[i].split;
            return GN_OK;
        }
    }
    GN_REQUIRE(name == NULL, GN_E_FORMAT,
               "tokenizer.json: pre_tokenizer: behavior \"%.40s\" is not known", name);
    return GN_OK;
}

/* Two expressions in use look ahead over all digits that follow, at each digit; they are the same
 * as threes counted from the right. */
static bool is_threes(const char *regex, bool *boundary)
{
    *boundary = is(regex, "\\d{1,3}(?=(?:\\d{3})*\\b)");
    return *boundary || is(regex, "(?=(\\d{3})+(?!\\d))");
}

static gn_status split(const json_t *json, gn_pretok *pretok)
{
    const char *s;
    size_t len = 0;
    bool literal = false;
    bool invert = false;
    bool boundary;
    gn_pretok_split behavior = GN_SPLIT_ISOLATED;
    GN_TRY(get_pattern(json, "pre_tokenizer", &s, &len, &literal));
    GN_TRY(get_behavior(json, &behavior));
    GN_TRY(gn_hf_bool(json, "invert", "pre_tokenizer", &invert));
    if (!literal && !invert && behavior == GN_SPLIT_ISOLATED && is_threes(s, &boundary)) {
        return gn_pretok_add(pretok,
                             (gn_pretok_step){.kind = GN_PRETOK_DIGITS3, .boundary = boundary});
    }
    return gn_pretok_add_split(pretok, s, len, literal, behavior, invert);
}

static gn_status byte_level(const json_t *json, gn_pretok *pretok)
{
    bool prefix = true;
    bool regex = true;
    GN_TRY(gn_hf_bool(json, "add_prefix_space", "pre_tokenizer", &prefix));
    GN_TRY(gn_hf_bool(json, "use_regex", "pre_tokenizer", &regex));
    if (prefix) {
        GN_TRY(gn_pretok_add(pretok, (gn_pretok_step){.kind = GN_PRETOK_SPACE_FIRST}));
    }
    if (regex) {
        GN_TRY(gn_pretok_add_split(pretok, gn_pretok_gpt2, strlen(gn_pretok_gpt2), false,
                                   GN_SPLIT_ISOLATED, false));
    }
    return gn_pretok_add(pretok, (gn_pretok_step){.kind = GN_PRETOK_LETTERS});
}

/* "replacement" and how it is prepended, which both the pre-tokenizer and the decoder have. */
static gn_status get_metaspace(const json_t *json, const char *where, char mark[8],
                               gn_pretok_prepend *prepend_scheme)
{
    const char *s = NULL;
    const char *scheme = NULL;
    size_t len = 0;
    size_t scheme_len;
    bool prefix = true;
    GN_TRY(gn_hf_str(json, "replacement", where, &s, &len));
    GN_REQUIRE(s == NULL || (len > 0 && len <= 4), GN_E_FORMAT,
               "tokenizer.json: %s: replacement: expected one character", where);
    strcpy(mark, s != NULL ? s : "\xe2\x96\x81");
    GN_TRY(gn_hf_bool(json, "add_prefix_space", where, &prefix));
    GN_TRY(gn_hf_str(json, "prepend_scheme", where, &scheme, &scheme_len));
    if (scheme == NULL) {
        *prepend_scheme = prefix ? GN_PREPEND_ALWAYS : GN_PREPEND_NEVER;
        return GN_OK;
    }
    GN_REQUIRE(is(scheme, "always") || is(scheme, "first") || is(scheme, "never"), GN_E_FORMAT,
               "tokenizer.json: %s: prepend_scheme \"%.40s\", expected always, first or never",
               where, scheme);
    *prepend_scheme = is(scheme, "always")  ? GN_PREPEND_ALWAYS
                      : is(scheme, "first") ? GN_PREPEND_FIRST
                                            : GN_PREPEND_NEVER;
    return GN_OK;
}

static gn_status metaspace(const json_t *json, gn_pretok *pretok)
{
    gn_pretok_step step = {.kind = GN_PRETOK_METASPACE, .cut = true};
    GN_TRY(get_metaspace(json, "pre_tokenizer", step.mark, &step.prepend));
    GN_TRY(gn_hf_bool(json, "split", "pre_tokenizer", &step.cut));
    return gn_pretok_add(pretok, step);
}

static gn_status add_space(gn_pretok *pretok)
{
    return gn_pretok_add(pretok,
                         (gn_pretok_step){.kind = GN_PRETOK_SPACE, .split = GN_SPLIT_REMOVED});
}

static gn_status add_punct(gn_pretok *pretok, gn_pretok_split behavior)
{
    return gn_pretok_add(pretok, (gn_pretok_step){.kind = GN_PRETOK_PUNCT, .split = behavior});
}

static gn_status digits(const json_t *json, gn_pretok *pretok)
{
    bool single = false;
    GN_TRY(gn_hf_bool(json, "individual_digits", "pre_tokenizer", &single));
    gn_pretok_split behavior = single ? GN_SPLIT_ISOLATED : GN_SPLIT_CONTIGUOUS;
    return gn_pretok_add(pretok, (gn_pretok_step){.kind = GN_PRETOK_DIGITS, .split = behavior});
}

static gn_status punctuation(const json_t *json, gn_pretok *pretok)
{
    gn_pretok_split behavior = GN_SPLIT_ISOLATED;
    GN_TRY(get_behavior(json, &behavior));
    return add_punct(pretok, behavior);
}

static gn_status delimiter(const json_t *json, gn_pretok *pretok)
{
    const char *s = NULL;
    size_t len = 0;
    GN_TRY(gn_hf_str(json, "delimiter", "pre_tokenizer", &s, &len));
    GN_REQUIRE(len != 0, GN_E_FORMAT,
               "tokenizer.json: pre_tokenizer: delimiter: expected a character");
    return gn_pretok_add_split(pretok, s, len, true, GN_SPLIT_REMOVED, false);
}

/* The library's Whitespace goes through Rust's regex crate, whose \w has the joiners too. */
static gn_status whitespace(gn_pretok *pretok)
{
    static const char words[] = "[\\w\\x{200c}\\x{200d}]+|[^\\w\\x{200c}\\x{200d}\\s]+";
    return gn_pretok_add_split(pretok, words, strlen(words), false, GN_SPLIT_REMOVED, true);
}

static gn_status add_pretok(const json_t *json, gn_pretok *pretok, int depth)
{
    const char *type;
    GN_TRY(gn_hf_type(json, "pre_tokenizer", &type));
    if (is(type, "Sequence")) {
        gn_status status = GN_OK;
        const json_t *list = members(json, "pretokenizers", "pre_tokenizer", depth, &status);
        for (size_t i = 0; status == GN_OK && i < json_array_size(list); i++) {
            status = add_pretok(json_array_get(list, i), pretok, depth + 1);
        }
        return status;
    }
    if (is(type, "BertPreTokenizer")) {
        GN_TRY(add_space(pretok));
        return add_punct(pretok, GN_SPLIT_ISOLATED);
    }
    if (is(type, "WhitespaceSplit")) {
        return add_space(pretok);
    }
    if (is(type, "Whitespace")) {
        return whitespace(pretok);
    }
    static const struct {
        const char *name;
        gn_status (*add)(const json_t *, gn_pretok *);
    } rest[] = {
        {"Split", split},   {"ByteLevel", byte_level},    {"Metaspace", metaspace},
        {"Digits", digits}, {"Punctuation", punctuation}, {"CharDelimiterSplit", delimiter},
    };
    for (size_t i = 0; i < GN_COUNTOF(rest); i++) {
        if (is(type, rest[i].name)) {
            return rest[i].add(json, pretok);
        }
    }
    return unsupported(
        "pre_tokenizer", type,
        "Sequence, Split, ByteLevel, Metaspace, Digits, Whitespace, WhitespaceSplit, "
        "BertPreTokenizer, Punctuation, CharDelimiterSplit");
}

gn_status gn_hf_pretok(const json_t *json, gn_tokenizer *t, bool *letters)
{
    *letters = false;
    if (json == NULL || json_is_null(json)) {
        return GN_OK;
    }
    GN_TRY(add_pretok(json, &t->pretok, 0));
    gn_pretok *p = &t->pretok;
    if (p->n != 0 && p->steps[p->n - 1].kind == GN_PRETOK_LETTERS) {
        *letters = true;
    }
    return GN_OK;
}

/* --- decoder --- */

static gn_status decoder_strip(const json_t *json, gn_tokenizer *t)
{
    const char *content = NULL;
    size_t len = 0;
    int64_t start = 0;
    GN_TRY(gn_hf_str(json, "content", "decoder", &content, &len));
    GN_TRY(gn_hf_int(json, "start", "decoder", &start));
    t->strips_start = content != NULL && is(content, " ") && start > 0;
    return GN_OK;
}

static gn_status decoder_affix(const json_t *json, const char *key, const char *fallback,
                               gn_tokenizer *t)
{
    const char *s = fallback;
    size_t len;
    GN_TRY(gn_hf_str(json, key, "decoder", &s, &len));
    gn_free(t->affix);
    t->affix = gn_strdup(s);
    return t->affix != NULL ? GN_OK : gn_alloc_failed();
}

static gn_status decoder_replace(const json_t *json, gn_tokenizer *t)
{
    const char *s;
    const char *content = NULL;
    size_t len = 0;
    size_t content_len = 0;
    bool literal = false;
    GN_TRY(get_pattern(json, "decoder", &s, &len, &literal));
    GN_TRY(gn_hf_str(json, "content", "decoder", &content, &content_len));
    GN_REQUIRE(
        literal && len < sizeof t->mark && content != NULL && is(content, " "), GN_E_UNSUPPORTED,
        "tokenizer.json: decoder: found Replace of \"%.20s\", expected of a mark by a space", s);
    t->spell = GN_SPELL_MARK;
    memcpy(t->mark, s, len + 1);
    return GN_OK;
}

static gn_status decoder_metaspace(const json_t *json, gn_tokenizer *t)
{
    gn_pretok_prepend scheme;
    t->spell = GN_SPELL_MARK;
    GN_TRY(get_metaspace(json, "decoder", t->mark, &scheme));
    t->strips_start = scheme != GN_PREPEND_NEVER;
    return GN_OK;
}

static gn_status decoder_wordpiece(const json_t *json, gn_tokenizer *t)
{
    t->spell = GN_SPELL_WORDPIECE;
    t->strips_start = true;
    t->cleans_up = true;
    GN_TRY(gn_hf_bool(json, "cleanup", "decoder", &t->cleans_up));
    return decoder_affix(json, "prefix", "##", t);
}

static gn_status add_decoder(const json_t *json, gn_tokenizer *t, int depth)
{
    const char *type;
    GN_TRY(gn_hf_type(json, "decoder", &type));
    if (is(type, "Sequence")) {
        gn_status status = GN_OK;
        const json_t *list = members(json, "decoders", "decoder", depth, &status);
        for (size_t i = 0; status == GN_OK && i < json_array_size(list); i++) {
            status = add_decoder(json_array_get(list, i), t, depth + 1);
        }
        return status;
    }
    if (is(type, "ByteLevel")) {
        t->spell = GN_SPELL_LETTERS;
        return GN_OK;
    }
    if (is(type, "BPEDecoder")) {
        t->spell = GN_SPELL_SUFFIX;
        return decoder_affix(json, "suffix", "</w>", t);
    }
    if (is(type, "WordPiece")) {
        return decoder_wordpiece(json, t);
    }
    if (is(type, "Metaspace")) {
        return decoder_metaspace(json, t);
    }
    if (is(type, "Replace")) {
        return decoder_replace(json, t);
    }
    if (is(type, "Strip")) {
        return decoder_strip(json, t);
    }
    if (is(type, "ByteFallback") || is(type, "Fuse")) {
        return GN_OK; /* bytes are joined whatever the decoder says */
    }
    return unsupported("decoder", type,
                       "Sequence, ByteLevel, BPEDecoder, WordPiece, Metaspace, Replace, Strip, "
                       "ByteFallback, Fuse");
}

gn_status gn_hf_decoder(const json_t *json, gn_tokenizer *t)
{
    return json == NULL || json_is_null(json) ? GN_OK : add_decoder(json, t, 0);
}

/* --- post-processor --- */

static gn_status push_checked(gn_tokenizer *t, gn_token_list *list, const json_t *id)
{
    GN_REQUIRE(json_is_integer(id), GN_E_FORMAT,
               "tokenizer.json: post_processor: expected an id that is an integer");
    json_int_t value = json_integer_value(id);
    GN_REQUIRE(
        value >= 0 && value < t->vocab.n, GN_E_FORMAT,
        "tokenizer.json: post_processor: found id %lld, expected one below the vocabulary's %d",
        (long long)value, t->vocab.n);
    return gn_token_list_push(list, (int32_t)value);
}

static gn_status template_special(const json_t *json, const json_t *name, gn_tokenizer *t,
                                  gn_token_list *list)
{
    const char *id = json_string_value(json_object_get(name, "id"));
    const json_t *ids =
        id != NULL
            ? json_object_get(json_object_get(json_object_get(json, "special_tokens"), id), "ids")
            : NULL;
    GN_REQUIRE(json_is_array(ids), GN_E_FORMAT,
               "tokenizer.json: post_processor: special token \"%.40s\" has no ids",
               id != NULL ? id : "");
    for (size_t i = 0; i < json_array_size(ids); i++) {
        GN_TRY(push_checked(t, list, json_array_get(ids, i)));
    }
    return GN_OK;
}

static gn_status post_template(const json_t *json, gn_tokenizer *t)
{
    const json_t *single = json_object_get(json, "single");
    GN_REQUIRE(json_is_array(single), GN_E_FORMAT,
               "tokenizer.json: post_processor: single: expected an array");
    gn_token_list *list = &t->before;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i);
        const json_t *special = json_object_get(piece, "SpecialToken");
        if (special != NULL) {
            GN_TRY(template_special(json, special, t, list));
        } else {
            list = &t->after;
        }
    }
    return GN_OK;
}

/* "cls" and "sep" are [text, id]. */
static gn_status post_bert(const json_t *json, gn_tokenizer *t)
{
    GN_TRY(push_checked(t, &t->before, json_array_get(json_object_get(json, "cls"), 1)));
    return push_checked(t, &t->after, json_array_get(json_object_get(json, "sep"), 1));
}

static gn_status add_post(const json_t *json, gn_tokenizer *t, int depth)
{
    const char *type;
    GN_TRY(gn_hf_type(json, "post_processor", &type));
    if (is(type, "Sequence")) {
        gn_status status = GN_OK;
        const json_t *list = members(json, "processors", "post_processor", depth, &status);
        for (size_t i = 0; status == GN_OK && i < json_array_size(list); i++) {
            status = add_post(json_array_get(list, i), t, depth + 1);
        }
        return status;
    }
    if (is(type, "TemplateProcessing")) {
        return post_template(json, t);
    }
    if (is(type, "BertProcessing") || is(type, "RobertaProcessing")) {
        return post_bert(json, t);
    }
    if (is(type, "ByteLevel")) {
        return GN_OK; /* it trims offsets, which are not kept here */
    }
    return unsupported(
        "post_processor", type,
        "Sequence, TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel");
}

gn_status gn_hf_post(const json_t *json, gn_tokenizer *t)
{
    return json == NULL || json_is_null(json) ? GN_OK : add_post(json, t, 0);
}
