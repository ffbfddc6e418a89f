/* A request for a chat completion. Messages go on as they are, with the roles' older and newer names made one and
 * parts that no model here can read refused. */
#include "serve/openai.h"

#include "serve/talk.h"

#include <string.h>

/* --- messages --- */

static gn_status check_part(gn_ask *ask, const gn_json *part)
{
    if (part->type != GN_JSON_OBJECT) {
        return gn_ask_unexpected(ask, part, "an object");
    }
    const gn_json *type = NULL;
    const gn_json *text = NULL;
    GN_TRY(gn_ask_needed(ask, part, "type", GN_JSON_STRING, &type));
    if (gn_base_json_is(type, "text")) {
        return gn_ask_needed(ask, part, "text", GN_JSON_STRING, &text);
    }
    if (gn_base_json_is(type, "refusal")) {
        return gn_ask_needed(ask, part, "refusal", GN_JSON_STRING, &text);
    }
    return gn_ask_refuse(ask, type, "found \"%.40s\"; the models served here read text alone",
                         type->text);
}

static gn_status check_content(gn_ask *ask, const gn_json *message, bool needed)
{
    const gn_json *content = gn_ask_get(message, "content");
    if (content == NULL) {
        return needed ? gn_ask_missing(ask, message, "content", "a string or an array of parts")
                      : GN_OK;
    }
    if (content->type == GN_JSON_STRING) {
        return GN_OK;
    }
    if (content->type != GN_JSON_ARRAY) {
        return gn_ask_unexpected(ask, content, "a string or an array of parts");
    }
    for (const gn_json *part = content->first; part != NULL; part = part->next) {
        GN_TRY(check_part(ask, part));
    }
    return GN_OK;
}

static gn_status check_calls(gn_ask *ask, const gn_json *message)
{
    const gn_json *calls = NULL;
    GN_TRY(gn_ask_member(ask, message, "tool_calls", GN_JSON_ARRAY, &calls));
    for (const gn_json *c = calls != NULL ? calls->first : NULL; c != NULL; c = c->next) {
        if (c->type != GN_JSON_OBJECT) {
            return gn_ask_unexpected(ask, c, "an object");
        }
    }
    return GN_OK;
}

/* *role: what the template is told. */
static gn_status check_message(gn_ask *ask, const gn_json *message, const char **role)
{
    static const char *const names[][2] = {
        {"system", "system"},       {"developer", "system"}, {"user", "user"},
        {"assistant", "assistant"}, {"tool", "tool"},        {"function", "tool"},
    };
    if (message->type != GN_JSON_OBJECT) {
        return gn_ask_unexpected(ask, message, "an object");
    }
    const gn_json *given = NULL;
    GN_TRY(gn_ask_needed(ask, message, "role", GN_JSON_STRING, &given));
    *role = NULL;
    for (size_t i = 0; i < GN_COUNTOF(names); i++) {
        if (gn_base_json_is(given, names[i][0])) {
            *role = names[i][1];
        }
    }
    if (*role == NULL) {
        return gn_ask_unexpected(ask, given,
                                 "system, developer, user, assistant, tool or function");
    }
    GN_TRY(check_calls(ask, message));
    return check_content(ask, message, strcmp(*role, "assistant") != 0);
}

static gn_status read_messages(gn_openai_ask *out, const gn_json *body)
{
    gn_ask *ask = &out->ask;
    const gn_json *messages = NULL;
    GN_TRY(gn_ask_needed(ask, body, "messages", GN_JSON_ARRAY, &messages));
    if (messages->len == 0) {
        return gn_ask_refuse(ask, messages, "empty, expected at least one message");
    }
    GN_TRY(gn_talk_value(messages->raw, messages->raw_len, &out->messages));
    size_t i = 0;
    for (const gn_json *m = messages->first; m != NULL; m = m->next, i++) {
        const char *role = NULL;
        GN_TRY(check_message(ask, m, &role));
        json_t *value = json_array_get(out->messages, i);
        GN_REQUIRE(json_object_set_new(value, "role", json_string(role)) == 0, GN_E_NOMEM,
                   "out of memory");
    }
    out->options.messages = out->messages;
    return GN_OK;
}

/* --- tools --- */

/* The name of a tool's function. */
static gn_status tool_name(gn_ask *ask, const gn_json *function, const gn_json **name)
{
    const gn_json *parameters = NULL;
    const gn_json *about = NULL;
    GN_TRY(gn_ask_needed(ask, function, "name", GN_JSON_STRING, name));
    GN_TRY(gn_ask_member(ask, function, "description", GN_JSON_STRING, &about));
    if ((*name)->len == 0) {
        return gn_ask_refuse(ask, *name, "empty, expected a name");
    }
    return gn_ask_member(ask, function, "parameters", GN_JSON_OBJECT, &parameters);
}

static gn_status check_tools(gn_ask *ask, const gn_json *tools)
{
    for (const gn_json *tool = tools->first; tool != NULL; tool = tool->next) {
        const gn_json *type = NULL;
        const gn_json *function = NULL;
        const gn_json *name = NULL;
        if (tool->type != GN_JSON_OBJECT) {
            return gn_ask_unexpected(ask, tool, "an object");
        }
        GN_TRY(gn_ask_needed(ask, tool, "type", GN_JSON_STRING, &type));
        if (!gn_base_json_is(type, "function")) {
            return gn_ask_unexpected(ask, type, "\"function\"");
        }
        GN_TRY(gn_ask_needed(ask, tool, "function", GN_JSON_OBJECT, &function));
        GN_TRY(tool_name(ask, function, &name));
    }
    return GN_OK;
}

/* Is there a tool of this name? */
static gn_status find_tool(gn_ask *ask, const json_t *tools, const gn_json *name)
{
    size_t i = 0;
    const json_t *tool = NULL;
    json_array_foreach(tools, i, tool)
    {
        const json_t *own = json_object_get(json_object_get(tool, "function"), "name");
        if (json_string_length(own) == name->len &&
            memcmp(json_string_value(own), name->text, name->len) == 0) {
            return GN_OK;
        }
    }
    return gn_ask_refuse(ask, name, "found \"%.60s\", expected the name of one of the tools",
                         name->text);
}

/* {"type":"allowed_tools","allowed_tools":{"mode":…,"tools":[{"type":"function","function":{"name":…}}]}} */
static gn_status read_allowed(gn_openai_ask *out, gn_arena *arena, const gn_json *choice)
{
    gn_ask *ask = &out->ask;
    const gn_json *allowed = NULL;
    const gn_json *mode = NULL;
    const gn_json *tools = NULL;
    GN_TRY(gn_ask_needed(ask, choice, "allowed_tools", GN_JSON_OBJECT, &allowed));
    GN_TRY(gn_ask_needed(ask, allowed, "mode", GN_JSON_STRING, &mode));
    GN_TRY(gn_ask_needed(ask, allowed, "tools", GN_JSON_ARRAY, &tools));
    if (!gn_base_json_is(mode, "auto") && !gn_base_json_is(mode, "required")) {
        return gn_ask_unexpected(ask, mode, "\"auto\" or \"required\"");
    }
    if (tools->len == 0) {
        return gn_ask_refuse(ask, tools, "empty, expected at least one tool");
    }
    const gn_json **names = gn_arena_calloc(arena, tools->len, sizeof *names);
    GN_REQUIRE(names != NULL, GN_E_NOMEM, "out of memory");
    size_t n = 0;
    for (const gn_json *tool = tools->first; tool != NULL; tool = tool->next) {
        const gn_json *function = NULL;
        if (tool->type != GN_JSON_OBJECT) {
            return gn_ask_unexpected(ask, tool, "an object");
        }
        GN_TRY(gn_ask_member(ask, tool, "function", GN_JSON_OBJECT, &function));
        GN_TRY(gn_ask_needed(ask, function != NULL ? function : tool, "name", GN_JSON_STRING,
                             &names[n]));
        GN_TRY(find_tool(ask, out->tools, names[n]));
        n++;
    }
    out->options.tool_mode = gn_base_json_is(mode, "auto") ? GN_TOOLS_AUTO : GN_TOOLS_REQUIRED;
    return gn_talk_names(arena, names, n, &out->options.allowed_tools);
}

static gn_status read_named(gn_openai_ask *out, gn_arena *arena, const gn_json *holder)
{
    const gn_json *name = NULL;
    GN_TRY(gn_ask_needed(&out->ask, holder, "name", GN_JSON_STRING, &name));
    GN_TRY(find_tool(&out->ask, out->tools, name));
    out->options.tool_mode = GN_TOOLS_REQUIRED;
    return gn_talk_names(arena, &name, 1, &out->options.allowed_tools);
}

static gn_status read_choice(gn_openai_ask *out, gn_arena *arena, const gn_json *choice)
{
    static const char expected[] =
        "\"none\", \"auto\", \"required\", or an object of type function or allowed_tools";
    gn_ask *ask = &out->ask;
    if (choice->type == GN_JSON_STRING) {
        if (gn_base_json_is(choice, "none")) {
            out->options.tool_mode = GN_TOOLS_NONE;
        } else if (gn_base_json_is(choice, "auto")) {
            out->options.tool_mode = GN_TOOLS_AUTO;
        } else if (gn_base_json_is(choice, "required")) {
            out->options.tool_mode = GN_TOOLS_REQUIRED;
        } else {
            return gn_ask_unexpected(ask, choice, expected);
        }
        return GN_OK;
    }
    if (choice->type != GN_JSON_OBJECT) {
        return gn_ask_unexpected(ask, choice, expected);
    }
    const gn_json *type = NULL;
    const gn_json *function = NULL;
    GN_TRY(gn_ask_needed(ask, choice, "type", GN_JSON_STRING, &type));
    if (gn_base_json_is(type, "function")) {
        GN_TRY(gn_ask_needed(ask, choice, "function", GN_JSON_OBJECT, &function));
        return read_named(out, arena, function);
    }
    if (gn_base_json_is(type, "allowed_tools")) {
        return read_allowed(out, arena, choice);
    }
    return gn_ask_unexpected(ask, type, "\"function\" or \"allowed_tools\"");
}

/* functions and function_call, as the API had them first. */
static gn_status read_functions(gn_openai_ask *out, gn_arena *arena, const gn_json *body)
{
    gn_ask *ask = &out->ask;
    const gn_json *functions = NULL;
    GN_TRY(gn_ask_needed(ask, body, "functions", GN_JSON_ARRAY, &functions));
    out->tools = json_array();
    for (const gn_json *f = functions->first; f != NULL; f = f->next) {
        const gn_json *name = NULL;
        json_t *value = NULL;
        if (f->type != GN_JSON_OBJECT) {
            return gn_ask_unexpected(ask, f, "an object");
        }
        GN_TRY(tool_name(ask, f, &name));
        GN_TRY(gn_talk_value(f->raw, f->raw_len, &value));
        json_t *tool = json_pack("{s:s, s:o}", "type", "function", "function", value);
        GN_REQUIRE(tool != NULL && json_array_append_new(out->tools, tool) == 0, GN_E_NOMEM,
                   "out of memory");
    }
    out->legacy = true;
    const gn_json *choice = gn_ask_get(body, "function_call");
    if (choice != NULL && choice->type == GN_JSON_OBJECT) {
        return read_named(out, arena, choice);
    }
    return choice != NULL ? read_choice(out, arena, choice) : GN_OK;
}

static gn_status read_tooling(gn_openai_ask *out, gn_arena *arena, const gn_json *body)
{
    gn_ask *ask = &out->ask;
    gn_chat_options *options = &out->options;
    const gn_json *tools = NULL;
    options->parallel_tool_calls = true;
    options->tool_mode = GN_TOOLS_AUTO;
    GN_TRY(gn_ask_bool(ask, body, "parallel_tool_calls", &options->parallel_tool_calls));
    GN_TRY(gn_ask_member(ask, body, "tools", GN_JSON_ARRAY, &tools));
    if (tools == NULL && gn_ask_get(body, "functions") != NULL) {
        options->parallel_tool_calls = false;
        GN_TRY(read_functions(out, arena, body));
    } else if (tools != NULL) {
        GN_TRY(check_tools(ask, tools));
        GN_TRY(gn_talk_value(tools->raw, tools->raw_len, &out->tools));
    }
    const gn_json *choice = gn_ask_get(body, "tool_choice");
    if (choice != NULL && !out->legacy) {
        GN_TRY(read_choice(out, arena, choice));
    }
    if (json_array_size(out->tools) == 0) {
        if (options->tool_mode == GN_TOOLS_REQUIRED) {
            return gn_ask_refuse(ask, choice != NULL ? choice : body,
                                 "a tool is asked for, but tools has none");
        }
        options->tool_mode = GN_TOOLS_NONE;
    } else {
        options->tools = out->tools;
    }
    return GN_OK;
}

/* --- the rest --- */

static gn_status read_logprobs(gn_ask *ask, const gn_json *body, gn_request_options *request)
{
    bool wanted = false;
    int32_t n_top = 0;
    GN_TRY(gn_ask_bool(ask, body, "logprobs", &wanted));
    GN_TRY(gn_ask_int(ask, body, "top_logprobs", 0, 20, &n_top));
    if (!wanted && n_top > 0) {
        return gn_ask_refuse(ask, gn_ask_get(body, "top_logprobs"),
                             "found %d without logprobs, expected logprobs to be true", n_top);
    }
    request->n_top = wanted ? n_top : -1;
    return GN_OK;
}

static gn_status read_template(gn_ask *ask, gn_arena *arena, const gn_json *body,
                               gn_chat_options *options)
{
    const gn_json *kwargs = NULL;
    const gn_json *effort = NULL;
    GN_TRY(gn_ask_member(ask, body, "chat_template_kwargs", GN_JSON_OBJECT, &kwargs));
    GN_TRY(gn_ask_member(ask, body, "reasoning_effort", GN_JSON_STRING, &effort));
    GN_TRY(gn_ask_bool(ask, body, "continue_final_message", &options->continue_last));
    options->template_kwargs = kwargs;
    return kwargs != NULL ? GN_OK
                          : gn_talk_thinking(arena, NULL, effort, &options->template_kwargs);
}

gn_status gn_openai_read(gn_arena *arena, const gn_json *body, gn_openai_ask *out)
{
    gn_ask *ask = &out->ask;
    gn_chat_options *options = &out->options;
    options->request = gn_request_defaults();
    options->n = 1;
    GN_TRY(gn_ask_member(ask, body, "model", GN_JSON_STRING, &out->model));
    GN_TRY(gn_openai_read_stream(ask, body, &out->stream, &out->include_usage));
    GN_TRY(gn_ask_int(ask, body, "n", 1, 16, &options->n));
    GN_TRY(gn_openai_read_sampling(ask, arena, body, &options->request));
    GN_TRY(read_logprobs(ask, body, &options->request));
    GN_TRY(read_template(ask, arena, body, options));
    GN_TRY(gn_openai_read_format(ask, body, options));
    GN_TRY(read_tooling(out, arena, body));
    return read_messages(out, body);
}

void gn_openai_ask_fini(gn_openai_ask *out)
{
    json_decref(out->messages);
    json_decref(out->tools);
    out->messages = NULL;
    out->tools = NULL;
}
