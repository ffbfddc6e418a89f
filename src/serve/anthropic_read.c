/* A request of Anthropic's Messages API as a chat. Its messages are lists of blocks; the result of a tool is a block
 * of a user's message there and a message of its own here, and calls are blocks of the assistant's message.
 * Turns of one role in a row are one turn, as that API has it; a last turn of the assistant is the beginning of
 * the answer.
 *
 * Ignored: cache_control, metadata, service_tier, container, context_management, mcp_servers, thinking's budget,
 * betas, and tools that the API's own servers run (they have a type other than "custom"). Refused: images and
 * documents that are not text. */
#include "serve/anthropic.h"

#include "serve/ask.h"

#include <string.h>

typedef struct reader {
    gn_ask *ask;
    gn_arena *arena;
    gn_talk talk;
} reader;

static gn_status read_blocks(reader *r, const gn_json *content, const char *role);

/* {"type":"text","text":…} */
static gn_status read_text(reader *r, const gn_json *block)
{
    const gn_json *text = NULL;
    GN_TRY(gn_ask_needed(r->ask, block, "text", GN_JSON_STRING, &text));
    gn_talk_text(&r->talk, text->text, text->len);
    return GN_OK;
}

/* A document whose source is text: its title and the text. */
static gn_status read_document(reader *r, const gn_json *block)
{
    const gn_json *source = NULL;
    const gn_json *title = NULL;
    GN_TRY(gn_ask_needed(r->ask, block, "source", GN_JSON_OBJECT, &source));
    GN_TRY(gn_ask_member(r->ask, block, "title", GN_JSON_STRING, &title));
    const gn_json *type = gn_ask_get(source, "type");
    if (!gn_base_json_is(type, "text")) {
        return gn_ask_refuse(r->ask, source, "documents are supported as text alone");
    }
    const gn_json *data = NULL;
    GN_TRY(gn_ask_needed(r->ask, source, "data", GN_JSON_STRING, &data));
    if (title != NULL) {
        gn_talk_text(&r->talk, title->text, title->len);
    }
    gn_talk_text(&r->talk, data->text, data->len);
    return GN_OK;
}

static gn_status read_call(reader *r, const gn_json *block)
{
    const gn_json *id = NULL;
    const gn_json *name = NULL;
    const gn_json *input = NULL;
    GN_TRY(gn_ask_needed(r->ask, block, "id", GN_JSON_STRING, &id));
    GN_TRY(gn_ask_needed(r->ask, block, "name", GN_JSON_STRING, &name));
    GN_TRY(gn_ask_member(r->ask, block, "input", GN_JSON_OBJECT, &input));
    gn_talk_call(&r->talk, id, name, input == NULL ? "{}" : input->raw,
                 input == NULL ? 2 : input->raw_len, true);
    return GN_OK;
}

static gn_status read_result(reader *r, const gn_json *block)
{
    const gn_json *id = NULL;
    bool failed = false;
    GN_TRY(gn_ask_needed(r->ask, block, "tool_use_id", GN_JSON_STRING, &id));
    GN_TRY(gn_ask_bool(r->ask, block, "is_error", &failed));
    gn_talk_result(&r->talk, id, NULL);
    if (failed) {
        gn_talk_text(&r->talk, "Error:", 6);
    }
    const gn_json *content = gn_ask_get(block, "content");
    return content == NULL ? GN_OK : read_blocks(r, content, NULL);
}

/* role: whose message it is; NULL: the result of a tool. */
static gn_status read_block(reader *r, const gn_json *block, const char *role)
{
    if (block->type != GN_JSON_OBJECT) {
        return gn_ask_unexpected(r->ask, block, "an object");
    }
    const gn_json *type = NULL;
    GN_TRY(gn_ask_needed(r->ask, block, "type", GN_JSON_STRING, &type));
    const bool assistant = role != NULL && strcmp(role, "assistant") == 0;
    const bool user = role != NULL && strcmp(role, "user") == 0;
    if (user && gn_base_json_is(type, "tool_result")) {
        return read_result(r, block);
    }
    if (role != NULL) {
        gn_talk_continue(&r->talk, role);
    }
    if (gn_base_json_is(type, "text")) {
        return read_text(r, block);
    }
    if (gn_base_json_is(type, "document") && !assistant) {
        return read_document(r, block);
    }
    if (assistant && gn_base_json_is(type, "tool_use")) {
        return read_call(r, block);
    }
    if (assistant && gn_base_json_is(type, "thinking")) {
        const gn_json *text = NULL;
        GN_TRY(gn_ask_needed(r->ask, block, "thinking", GN_JSON_STRING, &text));
        gn_talk_reasoning(&r->talk, text->text, text->len);
        return GN_OK;
    }
    if (assistant && gn_base_json_is(type, "redacted_thinking")) {
        return GN_OK;
    }
    if (gn_base_json_is(type, "image")) {
        return gn_ask_refuse(r->ask, block, "images are not supported");
    }
    return gn_ask_unexpected(r->ask, type, "a type of content block that is supported here");
}

static gn_status read_blocks(reader *r, const gn_json *content, const char *role)
{
    if (content->type == GN_JSON_STRING) {
        if (role != NULL) {
            gn_talk_continue(&r->talk, role);
        }
        gn_talk_text(&r->talk, content->text, content->len);
        return GN_OK;
    }
    if (content->type != GN_JSON_ARRAY) {
        return gn_ask_unexpected(r->ask, content, "a string or an array of content blocks");
    }
    if (content->len == 0 && role != NULL) {
        gn_talk_continue(&r->talk, role);
    }
    for (const gn_json *block = content->first; block != NULL; block = block->next) {
        GN_TRY(read_block(r, block, role));
    }
    return GN_OK;
}

/* A string or an array, whose length is that of what is in it. */
static bool is_list(const gn_json *value)
{
    return value->type == GN_JSON_STRING || value->type == GN_JSON_ARRAY;
}

static gn_status read_messages(reader *r, const gn_json *body, gn_anthropic_ask *ask)
{
    const gn_json *messages = NULL;
    const gn_json *system = gn_ask_get(body, "system");
    if (system != NULL && !(is_list(system) && system->len == 0)) {
        GN_TRY(read_blocks(r, system, "system"));
    }
    GN_TRY(gn_ask_needed(r->ask, body, "messages", GN_JSON_ARRAY, &messages));
    if (messages->len == 0) {
        return gn_ask_refuse(r->ask, messages, "found no message, expected at least one");
    }
    for (const gn_json *at = messages->first; at != NULL; at = at->next) {
        const gn_json *role = NULL;
        if (at->type != GN_JSON_OBJECT) {
            return gn_ask_unexpected(r->ask, at, "an object");
        }
        GN_TRY(gn_ask_needed(r->ask, at, "role", GN_JSON_STRING, &role));
        const char *name = gn_base_json_is(role, "user")        ? "user"
                           : gn_base_json_is(role, "assistant") ? "assistant"
                           : gn_base_json_is(role, "system")    ? "system"
                                                                : NULL;
        if (name == NULL) {
            return gn_ask_unexpected(r->ask, role, "\"user\" or \"assistant\"");
        }
        const gn_json *content = gn_ask_get(at, "content");
        if (content == NULL) {
            return gn_ask_missing(r->ask, at, "content", "a string or an array of content blocks");
        }
        GN_TRY(read_blocks(r, content, name));
        ask->options.continue_last = at->next == NULL && name[0] == 'a' && r->talk.calls.len == 0;
    }
    return GN_OK;
}

/* The tools that the client runs, in OpenAI's form; *found becomes true where `name` is one of them. */
static gn_status read_tools(gn_ask *ask, const gn_json *tools, const gn_json *name, bool *found,
                            gn_buf *out)
{
    gn_json_out json;
    gn_base_json_out(&json, out);
    gn_base_put_array(&json, NULL);
    for (const gn_json *tool = tools->first; tool != NULL; tool = tool->next) {
        const gn_json *type = NULL;
        const gn_json *tool_name = NULL;
        const gn_json *about = NULL;
        const gn_json *schema = NULL;
        bool strict = false;
        if (tool->type != GN_JSON_OBJECT) {
            return gn_ask_unexpected(ask, tool, "an object");
        }
        GN_TRY(gn_ask_member(ask, tool, "type", GN_JSON_STRING, &type));
        if (type != NULL && !gn_base_json_is(type, "custom")) {
            continue;
        }
        GN_TRY(gn_ask_needed(ask, tool, "name", GN_JSON_STRING, &tool_name));
        GN_TRY(gn_ask_member(ask, tool, "description", GN_JSON_STRING, &about));
        GN_TRY(gn_ask_needed(ask, tool, "input_schema", GN_JSON_OBJECT, &schema));
        GN_TRY(gn_ask_bool(ask, tool, "strict", &strict));
        gn_base_put_object(&json, NULL);
        gn_base_put_str(&json, "type", "function");
        gn_base_put_object(&json, "function");
        gn_base_put_strn(&json, "name", tool_name->text, tool_name->len);
        if (about != NULL) {
            gn_base_put_strn(&json, "description", about->text, about->len);
        }
        gn_talk_put(&json, "parameters", schema);
        if (strict) {
            gn_base_put_bool(&json, "strict", true);
        }
        gn_base_put_end(&json);
        gn_base_put_end(&json);
        *found = *found || (name != NULL && name->len == tool_name->len &&
                            memcmp(name->text, tool_name->text, name->len) == 0);
    }
    gn_base_put_end(&json);
    return json.status;
}

static gn_status read_tool_choice(gn_ask *ask, const gn_json *choice, const gn_json **name,
                                  gn_chat_options *options)
{
    const gn_json *type = NULL;
    bool alone = false;
    GN_TRY(gn_ask_needed(ask, choice, "type", GN_JSON_STRING, &type));
    GN_TRY(gn_ask_bool(ask, choice, "disable_parallel_tool_use", &alone));
    options->parallel_tool_calls = !alone;
    if (gn_base_json_is(type, "auto")) {
        options->tool_mode = GN_TOOLS_AUTO;
    } else if (gn_base_json_is(type, "none")) {
        options->tool_mode = GN_TOOLS_NONE;
    } else if (gn_base_json_is(type, "any")) {
        options->tool_mode = GN_TOOLS_REQUIRED;
    } else if (gn_base_json_is(type, "tool")) {
        options->tool_mode = GN_TOOLS_REQUIRED;
        return gn_ask_needed(ask, choice, "name", GN_JSON_STRING, name);
    } else {
        return gn_ask_unexpected(ask, type, "\"auto\", \"any\", \"tool\" or \"none\"");
    }
    return GN_OK;
}

static gn_status read_tooling(gn_ask *ask, gn_arena *arena, const gn_json *body,
                              gn_anthropic_ask *out)
{
    const gn_json *tools = NULL;
    const gn_json *choice = NULL;
    const gn_json *name = NULL;
    gn_chat_options *options = &out->options;
    GN_TRY(gn_ask_member(ask, body, "tools", GN_JSON_ARRAY, &tools));
    GN_TRY(gn_ask_member(ask, body, "tool_choice", GN_JSON_OBJECT, &choice));
    options->parallel_tool_calls = true;
    options->tool_mode = GN_TOOLS_AUTO;
    if (choice != NULL) {
        GN_TRY(read_tool_choice(ask, choice, &name, options));
    }
    bool found = false;
    if (tools != NULL) {
        gn_buf text = {0};
        gn_status status = read_tools(ask, tools, name, &found, &text);
        if (status == GN_OK && text.len > 2) {
            status = gn_talk_value(text.data, text.len, &out->tools);
        }
        gn_buf_fini(&text);
        GN_TRY(status);
        options->tools = out->tools;
    }
    if (name != NULL && !found) {
        return gn_ask_refuse(ask, name, "found \"%.60s\", expected the name of one of the tools",
                             name->text);
    }
    if (options->tools == NULL) {
        if (options->tool_mode == GN_TOOLS_REQUIRED) {
            return gn_ask_refuse(ask, choice, "a tool is asked for, but tools has none");
        }
        options->tool_mode = GN_TOOLS_NONE;
    }
    return name == NULL ? GN_OK : gn_talk_names(arena, &name, 1, &options->allowed_tools);
}

/* thinking and output_config.effort, as names for the template. */
static gn_status read_thinking(gn_ask *ask, gn_arena *arena, const gn_json *body,
                               gn_anthropic_ask *out)
{
    const gn_json *thinking = NULL;
    const gn_json *config = NULL;
    const gn_json *type = NULL;
    const gn_json *display = NULL;
    const gn_json *effort = NULL;
    const gn_json *format = NULL;
    GN_TRY(gn_ask_member(ask, body, "thinking", GN_JSON_OBJECT, &thinking));
    GN_TRY(gn_ask_member(ask, body, "output_config", GN_JSON_OBJECT, &config));
    GN_TRY(gn_ask_member(ask, thinking, "display", GN_JSON_STRING, &display));
    GN_TRY(gn_ask_member(ask, config, "effort", GN_JSON_STRING, &effort));
    GN_TRY(gn_ask_member(ask, config, "format", GN_JSON_OBJECT, &format));
    out->hide_thinking = display != NULL && gn_base_json_is(display, "omitted");
    bool set = false;
    bool on = false;
    if (thinking != NULL) {
        GN_TRY(gn_ask_needed(ask, thinking, "type", GN_JSON_STRING, &type));
        on = gn_base_json_is(type, "enabled");
        set = on || gn_base_json_is(type, "disabled");
    }
    GN_TRY(gn_talk_thinking(arena, set ? &on : NULL, effort, &out->options.template_kwargs));
    if (format != NULL) {
        const gn_json *schema = NULL;
        GN_TRY(gn_ask_needed(ask, format, "type", GN_JSON_STRING, &type));
        if (!gn_base_json_is(type, "json_schema")) {
            return gn_ask_unexpected(ask, type, "\"json_schema\"");
        }
        GN_TRY(gn_ask_needed(ask, format, "schema", GN_JSON_OBJECT, &schema));
        out->options.format = GN_FORMAT_SCHEMA;
        out->options.format_text = schema->raw;
        out->options.format_len = schema->raw_len;
        out->options.format_param = "output_config.format.schema";
    }
    return GN_OK;
}

static gn_status read_sampling(gn_ask *ask, gn_arena *arena, const gn_json *body,
                               gn_anthropic_ask *out)
{
    gn_request_options *request = &out->options.request;
    if (!out->count_only && gn_ask_get(body, "max_tokens") == NULL) {
        return gn_ask_missing(ask, body, "max_tokens", "a whole number");
    }
    GN_TRY(gn_ask_int(ask, body, "max_tokens", 1, INT32_MAX, &request->max_tokens));
    GN_TRY(gn_ask_float(ask, body, "temperature", 0, 2, &request->sample.temperature));
    GN_TRY(gn_ask_float(ask, body, "top_p", 0, 1, &request->sample.top_p));
    request->sample.top_p = request->sample.top_p == 0 ? 1e-6F : request->sample.top_p;
    GN_TRY(gn_ask_int(ask, body, "top_k", 0, INT32_MAX, &request->sample.top_k));
    GN_TRY(gn_ask_seed(ask, body, "seed", &request->sample.seed));
    return gn_ask_strings(ask, arena, body, "stop_sequences", 64, &request->stop, &request->n_stop);
}

gn_status gn_anthropic_read(gn_arena *arena, const gn_json *body, gn_anthropic_ask *ask)
{
    gn_ask names = {0};
    ask->options.n = 1;
    GN_TRY(gn_ask_member(&names, body, "model", GN_JSON_STRING, &ask->model));
    GN_TRY(gn_ask_bool(&names, body, "stream", &ask->stream));
    GN_TRY(read_sampling(&names, arena, body, ask));
    GN_TRY(read_thinking(&names, arena, body, ask));
    GN_TRY(read_tooling(&names, arena, body, ask));
    reader r = {.ask = &names, .arena = arena};
    gn_talk_init(&r.talk);
    gn_status status = read_messages(&r, body, ask);
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

void gn_anthropic_ask_fini(gn_anthropic_ask *ask)
{
    json_decref(ask->messages);
    json_decref(ask->tools);
    *ask = (gn_anthropic_ask){0};
}

size_t gn_anthropic_count_unknown(const gn_json *body)
{
    static const char *const known[] = {
        "model",
        "max_tokens",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "seed",
        "stop_sequences",
        "system",
        "messages",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "cache_control",
        "metadata",
        "service_tier",
        "container",
        "context_management",
        "mcp_servers",
        "betas",
        "inference_geo",
        "speed",
        "diagnostics",
        "user_profile_id",
        "workspace_id",
    };
    return gn_ask_count_unknown(body, known, GN_COUNTOF(known));
}
