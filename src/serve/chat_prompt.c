/* From what a chat was asked with to its tokens. The template sees messages whose content is a string: parts of text
 * are joined, nothing is an empty string, so that templates which know strings alone work for all clients. */
#include "base/alloc.h"
#include "serve/chat_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TOKEN_BYTES 256u /* no vocabulary has longer tokens in plain text */

bool gn_chat_has_tools(const gn_chat_options *options)
{
    return options->messages != NULL && options->tool_mode != GN_TOOLS_NONE &&
           json_array_size(options->tools) > 0;
}

/* --- messages --- */

static json_t *joined(const json_t *parts)
{
    gn_buf text = {0};
    gn_status status = gn_buf_puts(&text, "");
    size_t i = 0;
    const json_t *part = NULL;
    json_array_foreach(parts, i, part)
    {
        const json_t *piece = json_is_string(part) ? part : json_object_get(part, "text");
        if (status == GN_OK && json_is_string(piece)) {
            if (text.len > 0) {
                status = gn_buf_putc(&text, '\n');
            }
            if (status == GN_OK) {
                status = gn_buf_append(&text, json_string_value(piece), json_string_length(piece));
            }
        }
    }
    json_t *out =
        status == GN_OK ? json_stringn(text.data != NULL ? text.data : "", text.len) : NULL;
    gn_buf_fini(&text);
    return out;
}

static json_t *flat_message(const json_t *message)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)message);
    const json_t *content = json_object_get(message, "content");
    json_t *flat = NULL;
    if (copy == NULL || json_is_string(content)) {
        return copy;
    }
    flat = json_is_array(content) ? joined(content) : json_string("");
    if (flat == NULL || json_object_set_new(copy, "content", flat) != 0) {
        json_decref(copy);
        return NULL;
    }
    return copy;
}

static json_t *flat_messages(const json_t *messages)
{
    json_t *out = json_array();
    size_t i = 0;
    const json_t *message = NULL;
    json_array_foreach(messages, i, message)
    {
        json_t *copy = flat_message(message);
        if (copy == NULL || json_array_append_new(out, copy) != 0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}

/* --- rendering --- */

static int set_kwargs(json_t *context, const gn_json *kwargs)
{
    for (const gn_json *k = kwargs != NULL ? kwargs->first : NULL; k != NULL; k = k->next) {
        json_t *value = json_loadb(k->raw, k->raw_len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (value == NULL || json_object_setn_new(context, k->key, k->key_len, value) != 0) {
            return -1;
        }
    }
    return 0;
}

/* {"messages": …, "tools": …, "add_generation_prompt": …} as JSON text (free()); NULL: no memory. */
static char *context_text(const gn_chat_options *options, json_t *messages, bool with_tools)
{
    json_t *context = json_object();
    char *text = NULL;
    bool good = context != NULL && json_object_set(context, "messages", messages) == 0 &&
                json_object_set_new(context, "add_generation_prompt",
                                    json_boolean(!options->continue_last)) == 0;
    if (good && with_tools) {
        good = json_object_set(context, "tools", (json_t *)(uintptr_t)options->tools) == 0;
    }
    if (good && set_kwargs(context, options->template_kwargs) == 0) {
        text = json_dumps(context, JSON_COMPACT);
    }
    json_decref(context);
    return text;
}

/* The text ends where the last message's content does: what the template puts behind a message goes. */
static void cut_behind(const json_t *messages, char *text, size_t *len)
{
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const json_t *content = json_object_get(last, "content");
    const char *s = json_string_value(content);
    size_t n = json_string_length(content);
    while (n > 0 && (s[n - 1] == '\n' || s[n - 1] == ' ')) {
        n--; /* templates trim */
    }
    for (size_t at = *len; n > 0 && at-- > 0;) {
        if (at + n <= *len && memcmp(text + at, s, n) == 0) {
            *len = at + n;
            text[*len] = '\0';
            return;
        }
    }
}

static gn_status render_once(const gn_serve_model *model, const gn_chat_options *options,
                             json_t *messages, bool with_tools, char **text, size_t *len)
{
    char *context = messages != NULL ? context_text(options, messages, with_tools) : NULL;
    if (context == NULL) {
        return gn_base_fail(GN_E_NOMEM, "out of memory");
    }
    gn_status status = gn_model_render_chat(model->model, context, strlen(context), text, len);
    free(context);
    if (status == GN_OK && options->continue_last) {
        cut_behind(messages, *text, len);
    }
    return status;
}

/* Most templates want arguments as objects; those that put them together as strings fail on that, and get them as
 * the client sent them. */
static gn_status render(const gn_serve_model *model, const gn_chat_options *options, char **text,
                        size_t *len)
{
    const gn_tool_format *format = gn_toolcall_format(gn_model_chat_template(model->model));
    bool tools = gn_chat_has_tools(options);
    json_t *flat = flat_messages(options->messages);
    json_t *fixed =
        flat != NULL ? gn_toolcall_messages(format, flat, tools ? options->tools : NULL) : NULL;
    gn_status status = render_once(model, options, fixed, tools && !format->told, text, len);
    if (status == GN_E_REFUSED || status == GN_E_FORMAT || status == GN_E_ARG) {
        gn_status again = render_once(model, options, flat, tools && !format->told, text, len);
        status = again == GN_OK ? again : status;
    }
    json_decref(fixed);
    json_decref(flat);
    return status;
}

static void fail_render(gn_call *call, const gn_serve_model *model, gn_status status)
{
    if (status == GN_E_NOMEM) {
        gn_serve_fail_status(call, status, NULL);
        return;
    }
    gn_serve_error error = {.status = 400, .param = "messages"};
    if (status == GN_E_NOT_FOUND) {
        error.code = "no_chat_template";
        gn_serve_fail(call, &error,
                      "the model %s has no chat template: ask /v1/completions for plain text",
                      model->name);
        return;
    }
    char message[900];
    (void)snprintf(message, sizeof message, "%s", gn_error_message());
    gn_serve_fail(call, &error, "the chat template of %s refuses these messages: %s", model->name,
                  message);
}

gn_status gn_chat_render(gn_call *call, const gn_serve_model *model, const gn_chat_options *options,
                         char **text, size_t *len)
{
    gn_status status = render(model, options, text, len);
    if (status != GN_OK) {
        fail_render(call, model, status);
    }
    return status;
}

/* --- tokens --- */

static void fail_overflow(gn_call *call, const gn_chat_options *options, const char *about,
                          size_t n_tokens, int32_t n_ctx)
{
    char extra[96];
    (void)snprintf(extra, sizeof extra, "\"n_prompt_tokens\":%zu,\"n_ctx\":%d", n_tokens, n_ctx);
    gn_serve_error error = {.status = 400,
                            .code = "context_length_exceeded",
                            .param = options->messages != NULL ? "messages" : "prompt",
                            .extra = extra};
    gn_serve_fail(call, &error,
                  "This model's maximum context length is %d tokens. However, your request has "
                  "%s%zu tokens (prompt alone). It exceeds the available context size. Please "
                  "reduce the length of the messages.",
                  n_ctx, about, n_tokens);
}

static gn_status tokenize(gn_call *call, const gn_serve_model *model,
                          const gn_chat_options *options, const char *text, size_t len,
                          int32_t n_ctx, gn_chat_prompt *out)
{
    if (len / MOST_TOKEN_BYTES > (size_t)n_ctx) {
        fail_overflow(call, options, "at least ", len / MOST_TOKEN_BYTES, n_ctx);
        return GN_E_LIMIT;
    }
    unsigned flags = GN_TOKENIZE_SPECIAL | (options->messages == NULL ? GN_TOKENIZE_BOS : 0u);
    gn_status status = gn_model_tokenize(model->model, text, len, flags, &out->ids, &out->n_ids);
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, options->messages != NULL ? "messages" : "prompt");
    }
    return status;
}

static gn_status copy_ids(gn_call *call, const gn_chat_options *options, gn_chat_prompt *out)
{
    size_t bytes = options->n_prompt_ids * sizeof *out->ids;
    out->ids = gn_alloc(bytes > 0 ? bytes : 1);
    if (out->ids == NULL) {
        gn_serve_fail_status(call, GN_E_NOMEM, NULL);
        return GN_E_NOMEM;
    }
    memcpy(out->ids, options->prompt_ids, bytes);
    out->n_ids = options->n_prompt_ids;
    return GN_OK;
}

static bool ends_thinking(const char *text, size_t len)
{
    static const char tag[] = "<think>";
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' ')) {
        len--;
    }
    return len >= sizeof tag - 1 && memcmp(text + len - (sizeof tag - 1), tag, sizeof tag - 1) == 0;
}

gn_status gn_chat_prompt_make(gn_call *call, const gn_serve_model *model,
                              const gn_chat_options *options, int32_t n_ctx, gn_chat_prompt *out)
{
    gn_status status = GN_OK;
    *out = (gn_chat_prompt){0};
    if (options->messages != NULL) {
        char *text = NULL;
        size_t len = 0;
        GN_TRY(gn_chat_render(call, model, options, &text, &len));
        out->thinks = ends_thinking(text, len);
        status = tokenize(call, model, options, text, len, n_ctx, out);
        gn_release(text);
    } else if (options->prompt_ids != NULL) {
        status = copy_ids(call, options, out);
    } else {
        status = tokenize(call, model, options, options->prompt, options->prompt_len, n_ctx, out);
    }
    if (status != GN_OK) {
        return status;
    }
    size_t room = options->request.max_tokens == 0 ? 0 : 1;
    if (out->n_ids + room > (size_t)n_ctx) {
        fail_overflow(call, options, "", out->n_ids, n_ctx);
        status = GN_E_LIMIT;
    } else if (out->n_ids == 0) {
        gn_serve_fail_field(call, options->messages != NULL ? "messages" : "prompt",
                            "empty, expected at least one token");
        status = GN_E_ARG;
    }
    if (status != GN_OK) {
        gn_release(out->ids);
        out->ids = NULL;
    }
    return status;
}

gn_status gn_chat_count(gn_call *call, const gn_serve_model *model, const gn_chat_options *options,
                        int64_t *n)
{
    gn_chat_prompt prompt;
    GN_TRY(gn_chat_prompt_make(call, model, options, INT32_MAX, &prompt));
    *n = (int64_t)prompt.n_ids;
    gn_release(prompt.ids);
    return GN_OK;
}
