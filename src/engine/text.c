/* The public functions on text: tokens, pieces, the chat template. */
#include "base/alloc.h"
#include "engine/model_impl.h"

#include <string.h>

static gn_status need_tokenizer(const gn_model *model)
{
    GN_REQUIRE(model->tokenizer != NULL, GN_E_UNSUPPORTED, "%s: the model has no tokenizer",
               gn_source_path(model->source));
    return GN_OK;
}

gn_status gn_model_tokenize(const gn_model *model, const char *text, size_t len, unsigned flags,
                            int32_t **ids, size_t *n)
{
    GN_TRY(need_tokenizer(model));
    GN_REQUIRE((flags & ~(GN_TOKENIZE_SPECIAL | GN_TOKENIZE_BOS)) == 0, GN_E_ARG,
               "gn_model_tokenize: found flags 0x%x, expected bits of 0x%x", flags,
               GN_TOKENIZE_SPECIAL | GN_TOKENIZE_BOS);
    unsigned encode = ((flags & GN_TOKENIZE_SPECIAL) != 0 ? GN_ENCODE_SPECIAL : 0u) |
                      ((flags & GN_TOKENIZE_BOS) != 0 ? GN_ENCODE_BOS : 0u);
    gn_token_list list = {0};
    gn_status status = gn_tokenizer_encode(model->tokenizer, text, len, encode, &list);
    if (status == GN_E_LIMIT || status == GN_E_FORMAT) {
        status = gn_base_fail_prefix(status, "%s: ", gn_source_path(model->source));
    }
    if (status == GN_OK && list.ids == NULL) {
        list.ids = gn_alloc_array(1, sizeof *list.ids);
        status = list.ids != NULL ? GN_OK : gn_alloc_failed();
    }
    if (status != GN_OK) {
        gn_token_list_fini(&list);
        return status;
    }
    *ids = list.ids;
    *n = list.n;
    return GN_OK;
}

/* Hand a buffer's bytes out; an empty one gives "". */
static gn_status hand_out(gn_status status, gn_buf *buf, char **text, size_t *len)
{
    if (status == GN_OK) {
        status = gn_buf_reserve(buf, 0);
    }
    if (status != GN_OK) {
        gn_buf_fini(buf);
        return status;
    }
    buf->data[buf->len] = '\0';
    *len = buf->len;
    *text = gn_buf_take(buf);
    return GN_OK;
}

gn_status gn_model_detokenize(const gn_model *model, const int32_t *ids, size_t n, bool special,
                              char **text, size_t *len)
{
    GN_TRY(need_tokenizer(model));
    gn_buf buf = {0};
    return hand_out(gn_tokenizer_decode(model->tokenizer, ids, n, special, &buf), &buf, text, len);
}

gn_status gn_model_piece(const gn_model *model, int32_t id, bool special, char **text, size_t *len)
{
    GN_TRY(need_tokenizer(model));
    gn_buf buf = {0};
    return hand_out(gn_tokenizer_piece(model->tokenizer, id, special, &buf), &buf, text, len);
}

bool gn_model_is_end(const gn_model *model, int32_t id)
{
    return model->tokenizer != NULL && gn_tokenizer_is_end(model->tokenizer, id);
}

/* Set bos_token or eos_token to the token's text, unless the caller did. */
static int add_token(json_t *context, const gn_model *model, const char *key, int32_t id)
{
    size_t len = 0;
    const char *text = NULL;
    if (json_object_get(context, key) != NULL || model->tokenizer == NULL || id < 0) {
        return 0;
    }
    text = gn_tokenizer_spelling(model->tokenizer, id, &len);
    return text == NULL ? 0 : json_object_set_new(context, key, json_stringn(text, len));
}

/* transformers passes tools and documents always, as None where there are none, and templates test that. */
static int add_null(json_t *context, const char *key)
{
    return json_object_get(context, key) != NULL ? 0
                                                 : json_object_set_new(context, key, json_null());
}

static gn_status render(const gn_model *model, json_t *context, gn_buf *out)
{
    GN_REQUIRE(json_is_object(context), GN_E_ARG, "the chat context is no JSON object");
    if (add_token(context, model, "bos_token", model->info.bos) != 0 ||
        add_token(context, model, "eos_token", model->info.eos) != 0 ||
        add_null(context, "tools") != 0 || add_null(context, "documents") != 0) {
        return gn_alloc_failed();
    }
    gn_status status = gn_template_render(model->chat, context, time(NULL), NULL, out);
    /* A refusal is in the template's own words; anything else is a fault of the file. */
    return status == GN_OK || status == GN_E_REFUSED || status == GN_E_NOMEM
               ? status
               : gn_base_fail_prefix(status, "%s: chat template: ", gn_source_path(model->source));
}

const char *gn_model_chat_template(const gn_model *model)
{
    const char *text = gn_source_chat_template(model->source);
    return text != NULL || model->tokenizer == NULL ? text
                                                    : gn_tokenizer_chat_template(model->tokenizer);
}

gn_status gn_model_render_chat(const gn_model *model, const char *context_json, size_t len,
                               char **text, size_t *text_len)
{
    GN_REQUIRE(model->info.has_chat_template, GN_E_NOT_FOUND, "%s: the model has no chat template",
               gn_source_path(model->source));
    GN_REQUIRE(model->chat != NULL, GN_E_FORMAT, "%s: chat template: %s",
               gn_source_path(model->source), model->chat_error);
    json_error_t error;
    json_t *context =
        json_loadb(context_json, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (context == NULL) {
        /* Where a small allocation fails jansson sets no text at all. */
        if (json_error_code(&error) == json_error_out_of_memory || error.text[0] == '\0') {
            return gn_alloc_failed();
        }
        return gn_base_fail(GN_E_ARG, "chat context: line %d, column %d: %s", error.line,
                            error.column, error.text);
    }
    gn_buf buf = {0};
    gn_status status = render(model, context, &buf);
    json_decref(context);
    return hand_out(status, &buf, text, text_len);
}
