/* llama-server's own addresses, which editors and tools use: text to tokens and back, the chat template, raw completions,
 * filling in the middle, and what the server is and can do. */
#include "serve/openai.h"

#include "base/alloc.h"
#include "serve/fim.h"
#include "serve/server_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- common --- */

static void reply_json(gn_call *call, gn_json_out *json)
{
    if (json->status != GN_OK) {
        gn_buf_fini(json->buf);
        gn_serve_fail_status(call, json->status, NULL);
        return;
    }
    gn_serve_reply(call, 200, "application/json", json->buf);
}

/* The body and the model that it names. false: the reply is sent. */
static bool begin(gn_call *call, gn_ask *ask, const gn_json **body, const gn_serve_model **model)
{
    const gn_json *name = NULL;
    if (gn_serve_call_json(call, body) != GN_OK) {
        return false;
    }
    gn_status status = gn_ask_member(ask, *body, "model", GN_JSON_STRING, &name);
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, ask->param);
        return false;
    }
    return gn_serve_model_take(call, name != NULL ? name->text : NULL, name != NULL ? name->len : 0,
                               model) == GN_OK;
}

/* Give the model back; on failure reply with it. */
static bool end(gn_call *call, const gn_ask *ask, const gn_serve_model *model, gn_status status)
{
    gn_serve_model_give(gn_serve_call_server(call), model);
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, ask->param[0] != '\0' ? ask->param : NULL);
    }
    return status == GN_OK;
}

/* --- /tokenize, /detokenize --- */

static bool is_utf8(const char *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)s[i];
        size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
        if (n == 0 || i + n > len) {
            return false;
        }
        for (size_t j = 1; j < n; j++) {
            if (((unsigned char)s[i + j] & 0xc0u) != 0x80u) {
                return false;
            }
        }
        i += n;
    }
    return true;
}

/* A piece as llama-server gives it: a string, or an array of bytes where it is no whole text. */
static gn_status put_piece(gn_json_out *json, const gn_model *model, int32_t id)
{
    char *text = NULL;
    size_t len = 0;
    GN_TRY(gn_model_piece(model, id, true, &text, &len));
    gn_base_put_object(json, NULL);
    gn_base_put_int(json, "id", id);
    if (is_utf8(text, len)) {
        gn_base_put_strn(json, "piece", text, len);
    } else {
        gn_base_put_array(json, "piece");
        for (size_t i = 0; i < len; i++) {
            gn_base_put_int(json, NULL, (unsigned char)text[i]);
        }
        gn_base_put_end(json);
    }
    gn_base_put_end(json);
    gn_release(text);
    return json->status;
}

static gn_status put_tokens(gn_ask *ask, const gn_json *body, const gn_model *model,
                            gn_json_out *json)
{
    const gn_json *content = NULL;
    bool add_special = false;
    bool parse_special = true;
    bool pieces = false;
    GN_TRY(gn_ask_needed(ask, body, "content", GN_JSON_STRING, &content));
    GN_TRY(gn_ask_bool(ask, body, "add_special", &add_special));
    GN_TRY(gn_ask_bool(ask, body, "parse_special", &parse_special));
    GN_TRY(gn_ask_bool(ask, body, "with_pieces", &pieces));
    unsigned flags =
        (add_special ? GN_TOKENIZE_BOS : 0u) | (parse_special ? GN_TOKENIZE_SPECIAL : 0u);
    int32_t *ids = NULL;
    size_t n = 0;
    GN_TRY(gn_model_tokenize(model, content->text, content->len, flags, &ids, &n));
    gn_status status = GN_OK;
    gn_base_put_object(json, NULL);
    gn_base_put_array(json, "tokens");
    for (size_t i = 0; i < n && status == GN_OK; i++) {
        if (pieces) {
            status = put_piece(json, model, ids[i]);
        } else {
            gn_base_put_int(json, NULL, ids[i]);
        }
    }
    gn_base_put_end(json);
    gn_base_put_end(json);
    gn_release(ids);
    return status;
}

static void tokenize(gn_call *call)
{
    gn_ask ask = {0};
    const gn_json *body = NULL;
    const gn_serve_model *model = NULL;
    if (!begin(call, &ask, &body, &model)) {
        return;
    }
    gn_buf out = {0};
    gn_json_out json;
    gn_base_json_out(&json, &out);
    gn_status status = put_tokens(&ask, body, model->model, &json);
    if (end(call, &ask, model, status)) {
        reply_json(call, &json);
    } else {
        gn_buf_fini(&out);
    }
}

static gn_status read_ids(gn_ask *ask, const gn_json *array, int32_t n_vocab, int32_t *ids)
{
    size_t n = 0;
    for (const gn_json *id = array->first; id != NULL; id = id->next) {
        long value = 0;
        char rest = 0;
        if (id->type != GN_JSON_NUMBER || sscanf(id->text, "%ld%c", &value, &rest) != 1 ||
            value < 0 || value >= n_vocab) {
            return gn_ask_unexpected(ask, id, "the id of a token");
        }
        ids[n++] = (int32_t)value;
    }
    return GN_OK;
}

static gn_status put_text(gn_call *call, gn_ask *ask, const gn_json *body, const gn_model *model,
                          gn_json_out *json)
{
    const gn_json *tokens = NULL;
    GN_TRY(gn_ask_needed(ask, body, "tokens", GN_JSON_ARRAY, &tokens));
    int32_t *ids = gn_arena_calloc(gn_serve_call_arena(call), tokens->len + 1, sizeof *ids);
    if (ids == NULL) {
        return gn_alloc_failed();
    }
    GN_TRY(read_ids(ask, tokens, gn_model_get_info(model).n_vocab, ids));
    char *text = NULL;
    size_t len = 0;
    GN_TRY(gn_model_detokenize(model, ids, tokens->len, true, &text, &len));
    gn_base_put_object(json, NULL);
    gn_base_put_strn(json, "content", text, len);
    gn_base_put_end(json);
    gn_release(text);
    return json->status;
}

static void detokenize(gn_call *call)
{
    gn_ask ask = {0};
    const gn_json *body = NULL;
    const gn_serve_model *model = NULL;
    if (!begin(call, &ask, &body, &model)) {
        return;
    }
    gn_buf out = {0};
    gn_json_out json;
    gn_base_json_out(&json, &out);
    gn_status status = put_text(call, &ask, body, model->model, &json);
    if (end(call, &ask, model, status)) {
        reply_json(call, &json);
    } else {
        gn_buf_fini(&out);
    }
}

/* --- /apply-template --- */

static void apply_template(gn_call *call)
{
    const gn_json *body = NULL;
    if (gn_serve_call_json(call, &body) != GN_OK) {
        return;
    }
    gn_openai_ask ask = {.stream = false};
    const gn_serve_model *model = NULL;
    gn_status status = gn_openai_read(gn_serve_call_arena(call), body, &ask);
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, ask.ask.param[0] != '\0' ? ask.ask.param : NULL);
    } else {
        status = gn_serve_model_take(call, ask.model != NULL ? ask.model->text : NULL,
                                     ask.model != NULL ? ask.model->len : 0, &model);
    }
    char *text = NULL;
    size_t len = 0;
    if (status == GN_OK) {
        status = gn_chat_render(call, model, &ask.options, &text, &len);
        gn_serve_model_give(gn_serve_call_server(call), model);
    }
    gn_openai_ask_fini(&ask);
    if (status != GN_OK) {
        return;
    }
    gn_buf out = {0};
    gn_json_out json;
    gn_base_json_out(&json, &out);
    gn_base_put_object(&json, NULL);
    gn_base_put_strn(&json, "prompt", text, len);
    gn_base_put_end(&json);
    gn_release(text);
    reply_json(call, &json);
}

/* --- /completion and /infill --- */

typedef struct completion { /* in the call's arena */
    gn_call *call;
    gn_chat *chat;
    const char *model;
    bool stream;
    gn_buf text; /* not streamed: all of it */
    gn_chat_delta last;
    int64_t n_tokens;
} completion;

static void put_end(gn_json_out *json, const completion *c, const char *text, size_t len)
{
    gn_chat_usage usage = gn_chat_get_usage(c->chat);
    const gn_chat_delta *last = &c->last;
    const char *stop = last->stop_text;
    bool full = last->finish != GN_FINISH_STOP;
    gn_base_put_object(json, NULL);
    gn_base_put_int(json, "index", 0);
    gn_base_put_strn(json, "content", text, len);
    gn_base_put_bool(json, "stop", true);
    gn_base_put_str(json, "model", c->model);
    gn_base_put_int(json, "tokens_predicted", usage.n_generated);
    gn_base_put_int(json, "tokens_evaluated", usage.n_prompt);
    gn_base_put_int(json, "tokens_cached", usage.n_cached);
    gn_base_put_bool(json, "has_new_line", memchr(text, '\n', len) != NULL);
    gn_base_put_bool(json, "truncated", false);
    gn_base_put_str(json, "stop_type", full ? "limit" : stop != NULL ? "word" : "eos");
    gn_base_put_str(json, "stopping_word", stop != NULL ? stop : "");
    gn_openai_put_timings(json, &usage);
    gn_base_put_end(json);
}

static gn_status put_piece_event(completion *c, const gn_chat_delta *delta, gn_buf *out)
{
    gn_json_out json;
    if (delta->type == GN_CHAT_PING) {
        return gn_buf_puts(out, ": ping\n\n");
    }
    if (delta->type != GN_CHAT_TEXT && delta->type != GN_CHAT_REASONING &&
        delta->type != GN_CHAT_FINISH) {
        return GN_OK;
    }
    GN_TRY(gn_buf_puts(out, "data: "));
    gn_base_json_out(&json, out);
    if (delta->type == GN_CHAT_FINISH) {
        c->last = *delta;
        put_end(&json, c, "", 0);
    } else {
        gn_base_put_object(&json, NULL);
        gn_base_put_int(&json, "index", 0);
        gn_base_put_strn(&json, "content", delta->text, delta->len);
        gn_base_put_bool(&json, "stop", false);
        gn_base_put_end(&json);
    }
    GN_TRY(json.status);
    return gn_buf_puts(out, "\n\n");
}

static gn_status put_error(const completion *c, const gn_chat_delta *delta, gn_buf *out)
{
    gn_serve_error error = {.status = delta->status == GN_E_FORMAT ? 500 : 503};
    GN_TRY(gn_buf_puts(out, "data: "));
    GN_TRY(gn_serve_error_object(c->call, &error, delta->text, out));
    return gn_buf_puts(out, "\n\n");
}

static bool next(void *ctx, gn_buf *out)
{
    completion *c = ctx;
    gn_chat_delta delta;
    if (!gn_chat_next(c->chat, &delta)) {
        return false;
    }
    bool failed = delta.type == GN_CHAT_FAILED;
    gn_status status = failed ? put_error(c, &delta, out) : put_piece_event(c, &delta, out);
    return !failed && status == GN_OK;
}

static void finish(void *ctx)
{
    completion *c = ctx;
    gn_buf_fini(&c->text);
    gn_chat_destroy(c->chat);
}

static gn_status collect(completion *c, gn_buf *out)
{
    gn_chat_delta delta;
    while (gn_chat_next(c->chat, &delta)) {
        if (delta.type == GN_CHAT_FAILED) {
            return gn_base_fail(delta.status, "%.*s", (int)delta.len, delta.text);
        }
        if (delta.type == GN_CHAT_TEXT || delta.type == GN_CHAT_REASONING) {
            GN_TRY(gn_buf_append(&c->text, delta.text, delta.len));
        }
        if (delta.type == GN_CHAT_FINISH) {
            c->last = delta;
        }
    }
    GN_REQUIRE(gn_serve_alive(c->call), GN_E_CANCELLED, "the client went away");
    gn_json_out json;
    gn_base_json_out(&json, out);
    put_end(&json, c, c->text.data != NULL ? c->text.data : "", c->text.len);
    return json.status;
}

/* Start the chat that `options` describe; the model goes to it, or back. */
static void run(gn_call *call, const gn_serve_model *model, const gn_chat_options *options,
                bool stream)
{
    completion *c = gn_arena_calloc(gn_serve_call_arena(call), 1, sizeof *c);
    gn_status status = c != NULL ? GN_OK : gn_alloc_failed();
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, NULL);
    } else {
        *c = (completion){.call = call, .model = model->name, .stream = stream};
        status = gn_chat_start(call, model, options, &c->chat);
    }
    if (status != GN_OK) {
        gn_serve_model_give(gn_serve_call_server(call), model);
        return;
    }
    if (stream) {
        gn_serve_stream(call, "text/event-stream", next, finish, c);
        return;
    }
    gn_buf out = {0};
    status = collect(c, &out);
    finish(c);
    if (status != GN_OK) {
        gn_buf_fini(&out);
        gn_serve_fail_status(call, status, NULL);
        return;
    }
    gn_serve_reply(call, 200, "application/json", &out);
}

static gn_status read_options(gn_call *call, gn_ask *ask, const gn_json *body,
                              gn_chat_options *options, bool *stream)
{
    bool include_usage = false;
    options->request = gn_request_defaults();
    options->n = 1;
    GN_TRY(gn_openai_read_sampling(ask, gn_serve_call_arena(call), body, &options->request));
    GN_TRY(gn_ask_int(ask, body, "n_predict", -1, INT32_MAX, &options->request.max_tokens));
    GN_TRY(gn_openai_read_format(ask, body, options));
    return gn_openai_read_stream(ask, body, stream, &include_usage);
}

static gn_status read_prompt(gn_call *call, gn_ask *ask, const gn_json *body, const gn_model *model,
                             gn_chat_options *options)
{
    const gn_json *prompt = gn_ask_get(body, "prompt");
    if (prompt == NULL) {
        return gn_ask_missing(ask, body, "prompt", "a string or an array of ids");
    }
    if (prompt->type == GN_JSON_STRING) {
        options->prompt = prompt->text;
        options->prompt_len = prompt->len;
        return GN_OK;
    }
    if (prompt->type != GN_JSON_ARRAY) {
        return gn_ask_unexpected(ask, prompt, "a string or an array of ids");
    }
    int32_t *ids = gn_arena_calloc(gn_serve_call_arena(call), prompt->len + 1, sizeof *ids);
    if (ids == NULL) {
        return gn_alloc_failed();
    }
    options->prompt_ids = ids;
    options->n_prompt_ids = prompt->len;
    return read_ids(ask, prompt, gn_model_get_info(model).n_vocab, ids);
}

static void complete(gn_call *call)
{
    gn_ask ask = {0};
    const gn_json *body = NULL;
    const gn_serve_model *model = NULL;
    if (!begin(call, &ask, &body, &model)) {
        return;
    }
    gn_chat_options options = {.n = 1};
    bool stream = false;
    gn_status status = read_options(call, &ask, body, &options, &stream);
    if (status == GN_OK) {
        status = read_prompt(call, &ask, body, model->model, &options);
    }
    if (status != GN_OK) {
        (void)end(call, &ask, model, status);
        return;
    }
    run(call, model, &options, stream);
}

/* The files beside the one that is edited, then what stands before the cursor. */
static gn_status put_extra(gn_ask *ask, const gn_json *body, gn_buf *out)
{
    const gn_json *extra = NULL;
    GN_TRY(gn_ask_member(ask, body, "input_extra", GN_JSON_ARRAY, &extra));
    for (const gn_json *e = extra != NULL ? extra->first : NULL; e != NULL; e = e->next) {
        const gn_json *name = NULL;
        const gn_json *text = NULL;
        if (e->type != GN_JSON_OBJECT) {
            return gn_ask_unexpected(ask, e, "an object");
        }
        GN_TRY(gn_ask_member(ask, e, "filename", GN_JSON_STRING, &name));
        GN_TRY(gn_ask_needed(ask, e, "text", GN_JSON_STRING, &text));
        if (name != NULL) {
            GN_TRY(gn_buf_printf(out, "%s\n", name->text));
        }
        GN_TRY(gn_buf_append(out, text->text, text->len));
        GN_TRY(gn_buf_putc(out, '\n'));
    }
    return GN_OK;
}

static gn_status read_infill(gn_call *call, gn_ask *ask, const gn_json *body, const gn_model *model,
                             gn_chat_options *options)
{
    const gn_json *prefix = NULL;
    const gn_json *suffix = NULL;
    const gn_json *prompt = NULL;
    GN_TRY(gn_ask_needed(ask, body, "input_prefix", GN_JSON_STRING, &prefix));
    GN_TRY(gn_ask_needed(ask, body, "input_suffix", GN_JSON_STRING, &suffix));
    GN_TRY(gn_ask_member(ask, body, "prompt", GN_JSON_STRING, &prompt));
    gn_buf before = {0};
    gn_buf text = {0};
    gn_status status = put_extra(ask, body, &before);
    status = status == GN_OK ? gn_buf_append(&before, prefix->text, prefix->len) : status;
    if (status == GN_OK && prompt != NULL) {
        status = gn_buf_append(&before, prompt->text, prompt->len);
    }
    if (status == GN_OK) {
        status = gn_fim_prompt(model, before.data != NULL ? before.data : "", before.len,
                               suffix->text, suffix->len, &text);
    }
    if (status == GN_OK) {
        options->prompt = gn_arena_strndup(gn_serve_call_arena(call), text.data, text.len);
        options->prompt_len = text.len;
        status = options->prompt != NULL ? GN_OK : gn_alloc_failed();
    }
    gn_buf_fini(&before);
    gn_buf_fini(&text);
    return status;
}

static void infill(gn_call *call)
{
    gn_ask ask = {0};
    const gn_json *body = NULL;
    const gn_serve_model *model = NULL;
    if (!begin(call, &ask, &body, &model)) {
        return;
    }
    gn_chat_options options = {.n = 1};
    bool stream = false;
    gn_status status = read_options(call, &ask, body, &options, &stream);
    if (status == GN_OK) {
        status = read_infill(call, &ask, body, model->model, &options);
    }
    if (status != GN_OK) {
        (void)end(call, &ask, model, status);
        return;
    }
    run(call, model, &options, stream);
}

/* --- what the server is --- */

static void props(gn_call *call)
{
    const gn_serve_model *model = NULL;
    const char *name = gn_serve_call_query(call, "model");
    if (gn_serve_model_take(call, name, name != NULL ? strlen(name) : 0, &model) != GN_OK) {
        return;
    }
    gn_model_info info = gn_model_get_info(model->model);
    gn_buf out = {0};
    gn_json_out json;
    gn_base_json_out(&json, &out);
    gn_base_put_object(&json, NULL);
    gn_base_put_object(&json, "default_generation_settings");
    gn_base_put_int(&json, "n_ctx", info.n_ctx_train);
    gn_base_put_end(&json);
    gn_base_put_uint(&json, "total_slots",
                     gn_serve_call_server(call)->options.max_running != 0
                         ? gn_serve_call_server(call)->options.max_running
                         : 64);
    gn_base_put_str(&json, "model_alias", model->name);
    gn_base_put_str(&json, "architecture", info.architecture);
    gn_base_put_int(&json, "n_vocab", info.n_vocab);
    gn_base_put_int(&json, "n_embd", info.n_embd);
    gn_base_put_int(&json, "n_layer", info.n_layer);
    gn_base_put_uint(&json, "n_params", info.n_params);
    gn_base_put_str(&json, "cpu_level", info.cpu_level);
    gn_base_put_int(&json, "threads", info.threads);
    gn_base_put_bool(&json, "has_chat_template", info.has_chat_template);
    gn_base_put_bool(&json, "fill_in_the_middle", gn_fim_supported(model->model));
    gn_base_put_str(&json, "system_fingerprint", model->fingerprint);
    gn_base_put_str(&json, "build_info", gn_version());
    gn_base_put_object(&json, "modalities");
    gn_base_put_bool(&json, "vision", false);
    gn_base_put_bool(&json, "audio", false);
    gn_base_put_end(&json);
    gn_base_put_end(&json);
    gn_serve_model_give(gn_serve_call_server(call), model);
    reply_json(call, &json);
}

static void put_names(gn_json_out *json, const char *key, const char *const *names)
{
    gn_base_put_array(json, key);
    for (; *names != NULL; names++) {
        gn_base_put_str(json, NULL, *names);
    }
    gn_base_put_end(json);
}

static void capabilities(gn_call *call)
{
    static const char *const formats[] = {"json_object", "json_schema", "regex",
                                          "gbnf",        "choice",      NULL};
    static const char *const keywords[] = {"type",
                                           "enum",
                                           "const",
                                           "minimum",
                                           "maximum",
                                           "exclusiveMinimum",
                                           "exclusiveMaximum",
                                           "multipleOf",
                                           "minLength",
                                           "maxLength",
                                           "pattern",
                                           "format",
                                           "properties",
                                           "required",
                                           "additionalProperties",
                                           "patternProperties",
                                           "propertyNames",
                                           "minProperties",
                                           "maxProperties",
                                           "dependentRequired",
                                           "dependentSchemas",
                                           "prefixItems",
                                           "items",
                                           "minItems",
                                           "maxItems",
                                           "contains",
                                           "minContains",
                                           "maxContains",
                                           "uniqueItems",
                                           "allOf",
                                           "anyOf",
                                           "oneOf",
                                           "not",
                                           "if",
                                           "then",
                                           "else",
                                           "unevaluatedProperties",
                                           "unevaluatedItems",
                                           "$ref",
                                           "$anchor",
                                           "$id",
                                           "$dynamicRef",
                                           "$defs",
                                           NULL};
    static const char *const strings[] = {"date",
                                          "time",
                                          "date-time",
                                          "duration",
                                          "email",
                                          "hostname",
                                          "ipv4",
                                          "ipv6",
                                          "uri",
                                          "uri-reference",
                                          "uuid",
                                          "json-pointer",
                                          "relative-json-pointer",
                                          NULL};
    static const char *const classes[] = {"realtime", "interactive", "batch", NULL};
    const gn_server_options *o = &gn_serve_call_server(call)->options;
    gn_buf out = {0};
    gn_json_out json;
    gn_base_json_out(&json, &out);
    gn_base_put_object(&json, NULL);
    put_names(&json, "response_formats", formats);
    gn_base_put_object(&json, "json_schema");
    gn_base_put_str(&json, "draft", "2020-12, with draft-7 and OpenAPI 3.0 spellings");
    gn_base_put_str(&json, "documentation", "docs/JSON_SCHEMA.md");
    put_names(&json, "keywords", keywords);
    put_names(&json, "formats", strings);
    gn_base_put_bool(&json, "refuses_what_it_cannot_enforce", true);
    gn_base_put_end(&json);
    put_names(&json, "classes", classes);
    gn_base_put_bool(&json, "vision", false);
    gn_base_put_bool(&json, "rerank", false);
    gn_base_put_object(&json, "limits");
    gn_base_put_uint(&json, "body_bytes", o->max_body_bytes);
    gn_base_put_int(&json, "n", 16);
    gn_base_put_int(&json, "stop_strings", GN_CHAT_MOST_STOPS);
    gn_base_put_int(&json, "top_logprobs", 20);
    gn_base_put_uint(&json, "json_depth", GN_JSON_MAX_DEPTH);
    gn_base_put_end(&json);
    gn_base_put_end(&json);
    reply_json(call, &json);
}

static void rerank(gn_call *call)
{
    gn_serve_error error = {.status = 400, .code = "unsupported", .param = "model"};
    gn_serve_fail(call, &error, "no model for reranking is served here");
}

static void no_adapters(gn_call *call)
{
    gn_buf out = {0};
    gn_json_out json;
    gn_base_json_out(&json, &out);
    gn_base_put_array(&json, NULL);
    gn_base_put_end(&json);
    reply_json(call, &json);
}

const gn_route gn_serve_routes_native[] = {
    {.method = "POST",
     .path = "/tokenize",
     .access = GN_ACCESS_USE,
     .handler = tokenize,
     .summary = "Text to tokens"},
    {.method = "POST",
     .path = "/detokenize",
     .access = GN_ACCESS_USE,
     .handler = detokenize,
     .summary = "Tokens to text"},
    {.method = "POST",
     .path = "/apply-template",
     .access = GN_ACCESS_USE,
     .handler = apply_template,
     .summary = "The prompt that messages become"},
    {.method = "POST",
     .path = "/completion",
     .access = GN_ACCESS_USE,
     .handler = complete,
     .summary = "A completion, as llama-server has it"},
    {.method = "POST",
     .path = "/infill",
     .access = GN_ACCESS_USE,
     .handler = infill,
     .summary = "What belongs between two texts"},
    {.method = "GET",
     .path = "/props",
     .access = GN_ACCESS_USE,
     .handler = props,
     .summary = "A model's numbers"},
    {.method = "GET",
     .path = "/v1/capabilities",
     .access = GN_ACCESS_USE,
     .handler = capabilities,
     .summary = "What can be asked for"},
    {.method = "POST",
     .path = "/v1/rerank",
     .access = GN_ACCESS_USE,
     .handler = rerank,
     .summary = "Refused: there is no model for it"},
    {.method = "POST",
     .path = "/rerank",
     .access = GN_ACCESS_USE,
     .handler = rerank,
     .summary = "The same"},
    {.method = "GET",
     .path = "/lora-adapters",
     .access = GN_ACCESS_USE,
     .handler = no_adapters,
     .summary = "Adapters: none"},
    {.method = NULL},
};
