/* A tokenizer from tokenizer.json, with tokenizer_config.json and generation_config.json beside
 * it. The parts are read in the order they depend on each other: vocabulary, normalizer (which
 * added tokens pass), pre-tokenizer (which decides what the model's symbols are), model, added
 * tokens, the rest. */
#include "text/hf.h"

#include "base/alloc.h"

#include <string.h>

static gn_status load(const json_t *json, gn_tokenizer *t)
{
    GN_REQUIRE(json_is_object(json), GN_E_FORMAT, "tokenizer.json: expected an object");
    const json_t *model = json_object_get(json, "model");
    const json_t *added = json_object_get(json, "added_tokens");
    GN_REQUIRE(json_is_object(model), GN_E_FORMAT, "tokenizer.json: model: expected an object");
    bool letters;
    t->spell = GN_SPELL_PLAIN;
    GN_TRY(gn_hf_vocab(model, added, t));
    GN_TRY(gn_hf_normalizer(json_object_get(json, "normalizer"), t));
    GN_TRY(gn_hf_pretok(json_object_get(json, "pre_tokenizer"), t, &letters));
    GN_TRY(gn_hf_model(model, letters, t));
    GN_TRY(gn_hf_added(added, t));
    GN_TRY(gn_hf_decoder(json_object_get(json, "decoder"), t));
    return gn_hf_post(json_object_get(json, "post_processor"), t);
}

/* "bos_token" and its like: a string, or an object with its content. An unknown text is no
 * token. */
static int32_t config_token(const json_t *config, const char *key, const gn_tokenizer *t)
{
    const json_t *v = json_object_get(config, key);
    const json_t *text = json_is_object(v) ? json_object_get(v, "content") : v;
    return json_is_string(text)
               ? gn_vocab_find(&t->vocab, json_string_value(text), json_string_length(text))
               : -1;
}

/* A string, or an array of named ones, of which "default" is meant. */
static gn_status config_template(const json_t *config, gn_tokenizer *t)
{
    const json_t *v = json_object_get(config, "chat_template");
    const char *text = json_string_value(v);
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *entry = json_array_get(v, i);
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name != NULL && strcmp(name, "default") == 0) {
            text = json_string_value(json_object_get(entry, "template"));
        }
    }
    if (text != NULL) {
        t->chat_template = gn_strdup(text);
        return t->chat_template != NULL ? GN_OK : gn_alloc_failed();
    }
    return GN_OK;
}

static gn_status read_config(const json_t *config, gn_tokenizer *t)
{
    t->bos = config_token(config, "bos_token", t);
    t->eos = config_token(config, "eos_token", t);
    t->pad = config_token(config, "pad_token", t);
    if (t->bos < 0) {
        t->bos = config_token(config, "cls_token", t);
    }
    if (t->eos < 0) {
        t->eos = config_token(config, "sep_token", t);
    }
    if (json_is_true(json_object_get(config, "add_bos_token")) && t->before.n == 0 && t->bos >= 0) {
        GN_TRY(gn_token_list_push(&t->before, t->bos));
    }
    return config_template(config, t);
}

gn_status gn_tokenizer_create_hf(const json_t *tokenizer, const json_t *config, gn_tokenizer **out)
{
    gn_tokenizer *t = gn_tokenizer_new();
    if (t == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = load(tokenizer, t);
    if (status == GN_OK && config != NULL) {
        status = read_config(config, t);
    }
    if (status == GN_OK) {
        status = gn_tokenizer_finish(t);
    }
    if (status != GN_OK) {
        gn_tokenizer_destroy(t);
        return status;
    }
    *out = t;
    return GN_OK;
}

/* eos_token_id of config.json or generation_config.json: an id or an array of them. */
static gn_status add_ends(const json_t *config, gn_tokenizer *t)
{
    const json_t *v = json_object_get(config, "eos_token_id");
    size_t n = json_is_array(v) ? json_array_size(v) : v != NULL && !json_is_null(v) ? 1 : 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_is_array(v) ? json_array_get(v, i) : v;
        GN_REQUIRE(json_is_integer(id), GN_E_FORMAT, "eos_token_id: expected integers");
        gn_status status = gn_tokenizer_add_end(t, json_integer_value(id));
        if (status != GN_OK) {
            return gn_base_fail_prefix(status, "eos_token_id: ");
        }
    }
    return GN_OK;
}

static gn_status add_source(const gn_source *source, gn_tokenizer *t)
{
    GN_TRY(add_ends(gn_source_config(source), t));
    GN_TRY(add_ends(gn_source_generation(source), t));
    const char *text = gn_source_chat_template(source);
    if (text != NULL) {
        gn_free(t->chat_template);
        t->chat_template = gn_strdup(text);
        return t->chat_template != NULL ? GN_OK : gn_alloc_failed();
    }
    return GN_OK;
}

gn_status gn_tokenizer_create(const gn_source *source, gn_tokenizer **out)
{
    if (gn_source_get_kind(source) == GN_SOURCE_GGUF) {
        return gn_tokenizer_create_gguf(gn_source_gguf(source), out);
    }
    const json_t *json = gn_source_tokenizer(source);
    GN_REQUIRE(json != NULL, GN_E_NOT_FOUND, "tokenizer.json: not found in %s",
               gn_source_path(source));
    gn_tokenizer *t = NULL;
    GN_TRY(gn_tokenizer_create_hf(json, gn_source_tokenizer_config(source), &t));
    gn_status status = add_source(source, t);
    if (status != GN_OK) {
        gn_tokenizer_destroy(t);
        return status;
    }
    *out = t;
    return GN_OK;
}
