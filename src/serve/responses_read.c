/* A request of OpenAI's Responses API as a chat. Its input is a list of items: messages, calls, results and
 * reasoning each stand alone; items of one side in a row become one message again.
 *
 * Tools are functions, or custom tools whose input is free text, which become functions with one argument.
 * Ignored: tools and items of other types (those that the API's own servers run), include's other values,
 * store, metadata, client_metadata, prompt_cache_key, service_tier, user, safety_identifier, max_tool_calls, verbosity, truncation (nothing
 * is ever left out: what does not fit is refused). Refused: previous_response_id, conversation, prompt,
 * item references and background, since nothing is stored here; images, files and audio. */
#include "serve/responses.h"

#include "serve/openai.h"

#include <string.h>

typedef struct reader {
    gn_ask *ask;
    gn_talk talk;
} reader;

/* --- input --- */

static gn_status read_part(reader *r, const gn_json *part)
{
    const gn_json *type = NULL;
    const gn_json *text = NULL;
    if (part->type != GN_JSON_OBJECT) {
        return gn_ask_unexpected(r->ask, part, "an object");
    }
    GN_TRY(gn_ask_needed(r->ask, part, "type", GN_JSON_STRING, &type));
    if (gn_base_json_is(type, "input_text") || gn_base_json_is(type, "output_text") ||
        gn_base_json_is(type, "text")) {
        GN_TRY(gn_ask_needed(r->ask, part, "text", GN_JSON_STRING, &text));
    } else if (gn_base_json_is(type, "refusal")) {
        GN_TRY(gn_ask_needed(r->ask, part, "refusal", GN_JSON_STRING, &text));
    } else if (gn_base_json_is(type, "input_image")) {
        return gn_ask_refuse(r->ask, part, "images are not supported");
    } else {
        return gn_ask_unexpected(r->ask, type, "\"input_text\" or \"output_text\"");
    }
    gn_talk_text(&r->talk, text->text, text->len);
    return GN_OK;
}

static gn_status read_content(reader *r, const gn_json *item, const char *key)
{
    const gn_json *content = gn_ask_get(item, key);
    if (content == NULL) {
        return gn_ask_missing(r->ask, item, key, "a string or an array of parts");
    }
    if (content->type == GN_JSON_STRING) {
        gn_talk_text(&r->talk, content->text, content->len);
        return GN_OK;
    }
    if (content->type != GN_JSON_ARRAY) {
        return gn_ask_unexpected(r->ask, content, "a string or an array of parts");
    }
    for (const gn_json *part = content->first; part != NULL; part = part->next) {
        GN_TRY(read_part(r, part));
    }
    return GN_OK;
}

static gn_status read_message(reader *r, const gn_json *item)
{
    const gn_json *role = NULL;
    GN_TRY(gn_ask_needed(r->ask, item, "role", GN_JSON_STRING, &role));
    const bool assistant = gn_base_json_is(role, "assistant");
    const bool system = gn_base_json_is(role, "system") || gn_base_json_is(role, "developer");
    if (!assistant && !system && !gn_base_json_is(role, "user")) {
        return gn_ask_unexpected(r->ask, role,
                                 "\"user\", \"assistant\", \"system\" or \"developer\"");
    }
    gn_talk_continue(&r->talk, assistant ? "assistant" : system ? "system" : "user");
    return read_content(r, item, "content");
}

/* The text of a list of {"text"}. */
static gn_status read_thoughts(reader *r, const gn_json *list)
{
    for (const gn_json *at = list->first; at != NULL; at = at->next) {
        const gn_json *text = NULL;
        if (at->type != GN_JSON_OBJECT) {
            return gn_ask_unexpected(r->ask, at, "an object");
        }
        GN_TRY(gn_ask_needed(r->ask, at, "text", GN_JSON_STRING, &text));
        gn_talk_reasoning(&r->talk, text->text, text->len);
    }
    return GN_OK;
}

/* What was thought, or where that is not there, its summary. */
static gn_status read_reasoning(reader *r, const gn_json *item)
{
    const gn_json *content = NULL;
    const gn_json *summary = NULL;
    GN_TRY(gn_ask_member(r->ask, item, "content", GN_JSON_ARRAY, &content));
    GN_TRY(gn_ask_member(r->ask, item, "summary", GN_JSON_ARRAY, &summary));
    const gn_json *list = content != NULL && content->len > 0 ? content : summary;
    if (list == NULL || list->len == 0) {
        return GN_OK;
    }
    gn_talk_continue(&r->talk, "assistant");
    return read_thoughts(r, list);
}

static gn_status read_call(reader *r, const gn_json *item, bool custom)
{
    const gn_json *id = NULL;
    const gn_json *name = NULL;
    const gn_json *input = NULL;
    GN_TRY(gn_ask_needed(r->ask, item, "call_id", GN_JSON_STRING, &id));
    GN_TRY(gn_ask_needed(r->ask, item, "name", GN_JSON_STRING, &name));
    GN_TRY(gn_ask_needed(r->ask, item, custom ? "input" : "arguments", GN_JSON_STRING, &input));
    gn_talk_continue(&r->talk, "assistant");
    if (!custom) {
        gn_talk_call(&r->talk, id, name, input->text, input->len, false);
        return GN_OK;
    }
    gn_buf text = {0};
    gn_json_out json;
    gn_base_json_out(&json, &text);
    gn_base_put_object(&json, NULL);
    gn_base_put_strn(&json, "input", input->text, input->len);
    gn_base_put_end(&json);
    if (json.status == GN_OK) {
        gn_talk_call(&r->talk, id, name, text.data, text.len, false);
    }
    gn_buf_fini(&text);
    return json.status;
}

static gn_status read_result(reader *r, const gn_json *item)
{
    const gn_json *id = NULL;
    GN_TRY(gn_ask_needed(r->ask, item, "call_id", GN_JSON_STRING, &id));
    gn_talk_result(&r->talk, id, NULL);
    return read_content(r, item, "output");
}

static gn_status read_item(reader *r, const gn_json *item)
{
    const gn_json *type = NULL;
    if (item->type != GN_JSON_OBJECT) {
        return gn_ask_unexpected(r->ask, item, "an object");
    }
    GN_TRY(gn_ask_member(r->ask, item, "type", GN_JSON_STRING, &type));
    if (type == NULL || gn_base_json_is(type, "message")) {
        return read_message(r, item);
    }
    if (gn_base_json_is(type, "reasoning")) {
        return read_reasoning(r, item);
    }
    if (gn_base_json_is(type, "function_call") || gn_base_json_is(type, "custom_tool_call")) {
        return read_call(r, item, type->text[0] == 'c');
    }
    if (gn_base_json_is(type, "function_call_output") ||
        gn_base_json_is(type, "custom_tool_call_output")) {
        return read_result(r, item);
    }
    if (gn_base_json_is(type, "item_reference")) {
        return gn_ask_refuse(r->ask, item, "nothing is stored here, so items can't be referred to");
    }
    return GN_OK;
}

static gn_status read_input(reader *r, const gn_json *body)
{
    const gn_json *instructions = NULL;
    GN_TRY(gn_ask_member(r->ask, body, "instructions", GN_JSON_STRING, &instructions));
    if (instructions != NULL && instructions->len > 0) {
        gn_talk_begin(&r->talk, "system");
        gn_talk_text(&r->talk, instructions->text, instructions->len);
    }
    const gn_json *input = gn_ask_get(body, "input");
    if (input == NULL) {
        return gn_ask_missing(r->ask, body, "input", "a string or an array of items");
    }
    if (input->type == GN_JSON_STRING) {
        gn_talk_begin(&r->talk, "user");
        gn_talk_text(&r->talk, input->text, input->len);
        return GN_OK;
    }
    if (input->type != GN_JSON_ARRAY) {
        return gn_ask_unexpected(r->ask, input, "a string or an array of items");
    }
    for (const gn_json *item = input->first; item != NULL; item = item->next) {
        GN_TRY(read_item(r, item));
    }
    return r->talk.n > 0 ? GN_OK
                         : gn_ask_refuse(r->ask, input, "found no message, expected at least one");
}

/* --- tools --- */

static bool same(const gn_json *a, const char *b)
{
    return strlen(b) == a->len && memcmp(a->text, b, a->len) == 0;
}

bool gn_responses_is_custom(const gn_json *body, const char *name)
{
    const gn_json *tools = gn_ask_get(body, "tools");
    for (const gn_json *at = tools == NULL ? NULL : tools->first; at != NULL; at = at->next) {
        const gn_json *type = gn_ask_get(at, "type");
        const gn_json *own = gn_ask_get(at, "name");
        if (type != NULL && own != NULL && gn_base_json_is(type, "custom") && same(own, name)) {
            return true;
        }
    }
    return false;
}

static const char CUSTOM_INPUT[] = "{\"type\":\"object\",\"properties\":{\"input\":{\"type\":"
                                   "\"string\"}},\"required\":[\"input\"],"
                                   "\"additionalProperties\":false}";

static gn_status read_tool(gn_ask *ask, const gn_json *tool, gn_json_out *json)
{
    const gn_json *type = NULL;
    const gn_json *name = NULL;
    const gn_json *about = NULL;
    const gn_json *schema = NULL;
    bool strict = false;
    if (tool->type != GN_JSON_OBJECT) {
        return gn_ask_unexpected(ask, tool, "an object");
    }
    GN_TRY(gn_ask_needed(ask, tool, "type", GN_JSON_STRING, &type));
    const bool custom = gn_base_json_is(type, "custom");
    if (!custom && !gn_base_json_is(type, "function")) {
        return GN_OK;
    }
    GN_TRY(gn_ask_needed(ask, tool, "name", GN_JSON_STRING, &name));
    GN_TRY(gn_ask_member(ask, tool, "description", GN_JSON_STRING, &about));
    GN_TRY(gn_ask_bool(ask, tool, "strict", &strict));
    if (!custom) {
        GN_TRY(gn_ask_member(ask, tool, "parameters", GN_JSON_OBJECT, &schema));
    }
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "type", "function");
    gn_base_put_object(json, "function");
    gn_base_put_strn(json, "name", name->text, name->len);
    if (about != NULL) {
        gn_base_put_strn(json, "description", about->text, about->len);
    }
    if (schema != NULL) {
        gn_talk_put(json, "parameters", schema);
    } else {
        gn_base_put_raw(json, "parameters", custom ? CUSTOM_INPUT : "{\"type\":\"object\"}",
                        custom ? sizeof CUSTOM_INPUT - 1 : 17);
    }
    if (strict || custom) {
        gn_base_put_bool(json, "strict", true);
    }
    gn_base_put_end(json);
    gn_base_put_end(json);
    return GN_OK;
}

static gn_status read_tools(gn_ask *ask, const gn_json *tools, gn_buf *text)
{
    gn_json_out json;
    gn_base_json_out(&json, text);
    gn_base_put_array(&json, NULL);
    for (const gn_json *tool = tools->first; tool != NULL; tool = tool->next) {
        GN_TRY(read_tool(ask, tool, &json));
    }
    gn_base_put_end(&json);
    return json.status;
}

/* Is there a tool of this name that the client runs? */
static gn_status check_name(gn_ask *ask, const gn_json *tools, const gn_json *name)
{
    for (const gn_json *at = tools == NULL ? NULL : tools->first; at != NULL; at = at->next) {
        const gn_json *own = gn_ask_get(at, "name");
        const gn_json *type = gn_ask_get(at, "type");
        if (own != NULL && own->len == name->len && memcmp(own->text, name->text, own->len) == 0 &&
            (gn_base_json_is(type, "function") || gn_base_json_is(type, "custom"))) {
            return GN_OK;
        }
    }
    return gn_ask_refuse(ask, name, "found \"%.60s\", expected the name of one of the tools",
                         name->text);
}

static gn_status read_mode(gn_ask *ask, const gn_json *mode, gn_tool_mode *out)
{
    if (gn_base_json_is(mode, "auto")) {
        *out = GN_TOOLS_AUTO;
    } else if (gn_base_json_is(mode, "required")) {
        *out = GN_TOOLS_REQUIRED;
    } else if (gn_base_json_is(mode, "none")) {
        *out = GN_TOOLS_NONE;
    } else {
        return gn_ask_unexpected(ask, mode, "\"none\", \"auto\" or \"required\"");
    }
    return GN_OK;
}

/* {"type":"allowed_tools","mode","tools":[{"type","name"}…]} */
static gn_status read_allowed(gn_ask *ask, gn_arena *arena, const gn_json *choice,
                              const gn_json *tools, gn_chat_options *options)
{
    const gn_json *mode = NULL;
    const gn_json *list = NULL;
    GN_TRY(gn_ask_needed(ask, choice, "mode", GN_JSON_STRING, &mode));
    GN_TRY(gn_ask_needed(ask, choice, "tools", GN_JSON_ARRAY, &list));
    GN_TRY(read_mode(ask, mode, &options->tool_mode));
    const gn_json **names = gn_arena_alloc(arena, (list->len + 1) * sizeof *names);
    GN_REQUIRE(names != NULL, GN_E_NOMEM, "out of memory");
    size_t n = 0;
    for (const gn_json *at = list->first; at != NULL; at = at->next) {
        const gn_json *type = NULL;
        if (at->type != GN_JSON_OBJECT) {
            return gn_ask_unexpected(ask, at, "an object");
        }
        GN_TRY(gn_ask_needed(ask, at, "type", GN_JSON_STRING, &type));
        if (gn_base_json_is(type, "function") || gn_base_json_is(type, "custom")) {
            GN_TRY(gn_ask_needed(ask, at, "name", GN_JSON_STRING, &names[n]));
            GN_TRY(check_name(ask, tools, names[n]));
            n++;
        }
    }
    if (n == 0) {
        return gn_ask_refuse(ask, list, "found no function, expected at least one");
    }
    return gn_talk_names(arena, names, n, &options->allowed_tools);
}

static gn_status read_tool_choice(gn_ask *ask, gn_arena *arena, const gn_json *choice,
                                  const gn_json *tools, gn_chat_options *options)
{
    static const char expected[] = "\"none\", \"auto\", \"required\" or an object";
    if (choice->type == GN_JSON_STRING) {
        return read_mode(ask, choice, &options->tool_mode);
    }
    if (choice->type != GN_JSON_OBJECT) {
        return gn_ask_unexpected(ask, choice, expected);
    }
    const gn_json *type = NULL;
    const gn_json *name = NULL;
    GN_TRY(gn_ask_needed(ask, choice, "type", GN_JSON_STRING, &type));
    if (gn_base_json_is(type, "allowed_tools")) {
        return read_allowed(ask, arena, choice, tools, options);
    }
    if (!gn_base_json_is(type, "function") && !gn_base_json_is(type, "custom")) {
        return gn_ask_unexpected(ask, type, "\"function\", \"custom\" or \"allowed_tools\"");
    }
    GN_TRY(gn_ask_needed(ask, choice, "name", GN_JSON_STRING, &name));
    GN_TRY(check_name(ask, tools, name));
    options->tool_mode = GN_TOOLS_REQUIRED;
    return gn_talk_names(arena, &name, 1, &options->allowed_tools);
}

static gn_status read_tooling(gn_ask *ask, gn_arena *arena, const gn_json *body,
                              gn_responses_ask *out)
{
    const gn_json *tools = NULL;
    gn_chat_options *options = &out->options;
    GN_TRY(gn_ask_member(ask, body, "tools", GN_JSON_ARRAY, &tools));
    options->tool_mode = GN_TOOLS_AUTO;
    options->parallel_tool_calls = true;
    GN_TRY(gn_ask_bool(ask, body, "parallel_tool_calls", &options->parallel_tool_calls));
    const gn_json *choice = gn_ask_get(body, "tool_choice");
    if (choice != NULL) {
        GN_TRY(read_tool_choice(ask, arena, choice, tools, options));
    }
    if (tools != NULL) {
        gn_buf text = {0};
        gn_status status = read_tools(ask, tools, &text);
        if (status == GN_OK && text.len > 2) {
            status = gn_talk_value(text.data, text.len, &out->tools);
        }
        gn_buf_fini(&text);
        GN_TRY(status);
        options->tools = out->tools;
    }
    if (options->tools == NULL) {
        if (options->tool_mode == GN_TOOLS_REQUIRED) {
            return gn_ask_refuse(ask, choice, "a tool is asked for, but tools has no function");
        }
        options->tool_mode = GN_TOOLS_NONE;
    }
    return GN_OK;
}

/* --- the rest --- */

static gn_status read_text_format(gn_ask *ask, const gn_json *body, gn_chat_options *options)
{
    const gn_json *text = NULL;
    const gn_json *format = NULL;
    const gn_json *type = NULL;
    const gn_json *schema = NULL;
    GN_TRY(gn_ask_member(ask, body, "text", GN_JSON_OBJECT, &text));
    GN_TRY(gn_ask_member(ask, text, "format", GN_JSON_OBJECT, &format));
    if (format == NULL) {
        return GN_OK;
    }
    GN_TRY(gn_ask_needed(ask, format, "type", GN_JSON_STRING, &type));
    if (gn_base_json_is(type, "text")) {
        return GN_OK;
    }
    options->format_param = "text.format.schema";
    if (gn_base_json_is(type, "json_object")) {
        options->format = GN_FORMAT_JSON;
        return GN_OK;
    }
    if (!gn_base_json_is(type, "json_schema")) {
        return gn_ask_unexpected(ask, type, "\"text\", \"json_object\" or \"json_schema\"");
    }
    GN_TRY(gn_ask_needed(ask, format, "schema", GN_JSON_OBJECT, &schema));
    options->format = GN_FORMAT_SCHEMA;
    options->format_text = schema->raw;
    options->format_len = schema->raw_len;
    return GN_OK;
}

/* Log-probabilities of the text, where include has them. */
static gn_status read_include(gn_ask *ask, const gn_json *body, gn_responses_ask *out)
{
    const gn_json *include = NULL;
    int32_t top = 0;
    GN_TRY(gn_ask_member(ask, body, "include", GN_JSON_ARRAY, &include));
    GN_TRY(gn_ask_int(ask, body, "top_logprobs", 0, 20, &top));
    for (const gn_json *at = include == NULL ? NULL : include->first; at != NULL; at = at->next) {
        if (at->type != GN_JSON_STRING) {
            return gn_ask_unexpected(ask, at, "a string");
        }
        out->logprobs = out->logprobs || gn_base_json_is(at, "message.output_text.logprobs");
    }
    if (out->logprobs) {
        out->options.request.n_top = top;
    }
    return GN_OK;
}

/* What this server can't do, since it stores nothing. */
static gn_status refuse_stored(gn_ask *ask, const gn_json *body)
{
    static const char *const keys[] = {"previous_response_id", "conversation", "prompt"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const gn_json *at = gn_ask_get(body, keys[i]);
        if (at != NULL) {
            return gn_ask_refuse(ask, at, "nothing is stored here; send the whole input");
        }
    }
    bool background = false;
    GN_TRY(gn_ask_bool(ask, body, "background", &background));
    return background ? gn_ask_refuse(ask, gn_ask_get(body, "background"),
                                      "nothing is stored here; wait for the answer or stream it")
                      : GN_OK;
}

static gn_status read_reasoning_effort(gn_ask *ask, gn_arena *arena, const gn_json *body,
                                       gn_chat_options *options)
{
    const gn_json *reasoning = NULL;
    const gn_json *effort = NULL;
    GN_TRY(gn_ask_member(ask, body, "reasoning", GN_JSON_OBJECT, &reasoning));
    GN_TRY(gn_ask_member(ask, reasoning, "effort", GN_JSON_STRING, &effort));
    return gn_talk_thinking(arena, NULL, effort, &options->template_kwargs);
}

gn_status gn_responses_read(gn_arena *arena, const gn_json *body, gn_responses_ask *ask)
{
    gn_ask *names = &ask->names;
    ask->options.n = 1;
    GN_TRY(gn_ask_member(names, body, "model", GN_JSON_STRING, &ask->model));
    GN_TRY(gn_ask_bool(names, body, "stream", &ask->stream));
    GN_TRY(refuse_stored(names, body));
    GN_TRY(gn_openai_read_sampling(names, arena, body, &ask->options.request));
    GN_TRY(gn_ask_int(names, body, "max_output_tokens", 1, INT32_MAX,
                      &ask->options.request.max_tokens));
    GN_TRY(read_include(names, body, ask));
    GN_TRY(read_text_format(names, body, &ask->options));
    GN_TRY(read_reasoning_effort(names, arena, body, &ask->options));
    GN_TRY(read_tooling(names, arena, body, ask));
    reader r = {.ask = names};
    gn_talk_init(&r.talk);
    gn_status status = read_input(&r, body);
    if (status == GN_OK) {
        status = gn_talk_end(&r.talk);
    }
    if (status == GN_OK) {
        status = gn_talk_value(r.talk.json.data, r.talk.json.len, &ask->messages);
    }
    gn_talk_fini(&r.talk);
    ask->options.messages = ask->messages;
    return status;
}

void gn_responses_ask_fini(gn_responses_ask *ask)
{
    json_decref(ask->messages);
    json_decref(ask->tools);
    *ask = (gn_responses_ask){0};
}

size_t gn_responses_count_unknown(const gn_json *body)
{
    static const char *const known[] = {
        "model",
        "input",
        "instructions",
        "stream",
        "stream_options",
        "max_output_tokens",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "typical_p",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "repeat_penalty",
        "logit_bias",
        "seed",
        "stop",
        "num_ctx",
        "ignore_eos",
        "min_tokens",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "text",
        "reasoning",
        "include",
        "top_logprobs",
        "previous_response_id",
        "conversation",
        "prompt",
        "background",
        "background_options",
        "store",
        "metadata",
        "client_metadata",
        "user",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "service_tier",
        "safety_identifier",
        "max_tool_calls",
        "truncation",
        "context_management",
        "moderation",
        "access_programs",
        "image",
    };
    return gn_ask_count_unknown(body, known, GN_COUNTOF(known));
}
