/* Requests of Ollama's API as chats. Sampling has Ollama's defaults where a request says nothing.
 *
 * options.num_ctx is a limit of this request alone: no field has a model opened again. Ignored: keep_alive (models are
 * closed by least use), truncate and shift (nothing is ever left out: what does not fit is refused), and the options
 * that say how a model is opened or computed (num_gpu, num_thread …). Refused: images, template, context. */
#include "serve/ollama.h"

#include <string.h>

/* --- options --- */

static void set_defaults(gn_sample_params *sample)
{
    sample->temperature = 0.8F;
    sample->top_k = 40;
    sample->top_p = 0.9F;
    sample->penalty_last_n = 64;
}

static gn_status read_mirostat(gn_ask *ask, const gn_json *options, gn_sample_params *sample)
{
    int32_t version = 0;
    float tau = 5;
    float eta = 0.1F;
    GN_TRY(gn_ask_int(ask, options, "mirostat", 0, 2, &version));
    GN_TRY(gn_ask_float(ask, options, "mirostat_tau", 0, 100, &tau));
    GN_TRY(gn_ask_float(ask, options, "mirostat_eta", 0, 1, &eta));
    if (version == 1) {
        return gn_ask_refuse(ask, gn_ask_get(options, "mirostat"),
                             "found 1, expected 0 (off) or 2");
    }
    if (version == 2) {
        sample->mirostat_tau = tau;
        sample->mirostat_eta = eta;
    }
    return GN_OK;
}

static gn_status read_seed(gn_ask *ask, const gn_json *options, gn_sample_params *sample)
{
    const gn_json *seed = gn_ask_get(options, "seed");
    if (seed != NULL && seed->type == GN_JSON_NUMBER && seed->text[0] == '-') {
        return GN_OK; /* another one each time */
    }
    return gn_ask_seed(ask, options, "seed", &sample->seed);
}

static gn_status read_options(gn_ask *ask, gn_arena *arena, const gn_json *body,
                              gn_request_options *request)
{
    const gn_json *options = NULL;
    gn_sample_params *sample = &request->sample;
    set_defaults(sample);
    GN_TRY(gn_ask_member(ask, body, "options", GN_JSON_OBJECT, &options));
    GN_TRY(gn_ask_int(ask, options, "num_ctx", 0, INT32_MAX, &request->n_ctx));
    GN_TRY(gn_ask_int(ask, options, "num_predict", INT32_MIN, INT32_MAX, &request->max_tokens));
    GN_TRY(gn_ask_float(ask, options, "temperature", 0, 100, &sample->temperature));
    GN_TRY(gn_ask_int(ask, options, "top_k", INT32_MIN, INT32_MAX, &sample->top_k));
    GN_TRY(gn_ask_float(ask, options, "top_p", 0, 1, &sample->top_p));
    GN_TRY(gn_ask_float(ask, options, "min_p", 0, 1, &sample->min_p));
    GN_TRY(gn_ask_float(ask, options, "typical_p", 0, 1, &sample->typical_p));
    /* 0 means "off" to clients, or the best token alone. */
    sample->top_p = sample->top_p == 0 ? 1e-6F : sample->top_p;
    sample->typical_p = sample->typical_p == 0 ? 1.0F : sample->typical_p;
    GN_TRY(gn_ask_int(ask, options, "repeat_last_n", -1, INT32_MAX, &sample->penalty_last_n));
    GN_TRY(gn_ask_float(ask, options, "repeat_penalty", 0.01F, 10, &sample->repetition_penalty));
    GN_TRY(gn_ask_float(ask, options, "presence_penalty", -100, 100, &sample->presence_penalty));
    GN_TRY(gn_ask_float(ask, options, "frequency_penalty", -100, 100, &sample->frequency_penalty));
    GN_TRY(read_mirostat(ask, options, sample));
    GN_TRY(read_seed(ask, options, sample));
    return gn_ask_strings(ask, arena, options, "stop", 64, &request->stop, &request->n_stop);
}

/* --- what both requests have --- */

static gn_status read_format(gn_ask *ask, const gn_json *body, gn_chat_options *options)
{
    const gn_json *format = gn_ask_get(body, "format");
    options->format_param = "format";
    if (format == NULL || (format->type == GN_JSON_STRING && format->len == 0)) {
        return GN_OK;
    }
    if (format->type == GN_JSON_STRING && gn_base_json_is(format, "json")) {
        options->format = GN_FORMAT_JSON;
        return GN_OK;
    }
    if (format->type != GN_JSON_OBJECT) {
        return gn_ask_unexpected(ask, format, "\"json\" or a JSON Schema");
    }
    options->format = GN_FORMAT_SCHEMA;
    options->format_text = format->raw;
    options->format_len = format->raw_len;
    return GN_OK;
}

static gn_status read_think(gn_ask *ask, gn_arena *arena, const gn_json *body,
                            gn_chat_options *options)
{
    const gn_json *think = gn_ask_get(body, "think");
    if (think == NULL) {
        return GN_OK;
    }
    const bool yes = think->type != GN_JSON_FALSE;
    if (think->type == GN_JSON_TRUE || think->type == GN_JSON_FALSE) {
        return gn_talk_thinking(arena, &yes, NULL, &options->template_kwargs);
    }
    if (think->type != GN_JSON_STRING) {
        return gn_ask_unexpected(ask, think, "true, false, \"low\", \"medium\" or \"high\"");
    }
    return gn_talk_thinking(arena, &yes, think, &options->template_kwargs);
}

static gn_status read_keep_alive(gn_ask *ask, const gn_json *body)
{
    const gn_json *keep = gn_ask_get(body, "keep_alive");
    return keep == NULL || keep->type == GN_JSON_NUMBER || keep->type == GN_JSON_STRING
               ? GN_OK
               : gn_ask_unexpected(ask, keep, "a number of seconds or a duration");
}

static gn_status read_common(gn_arena *arena, const gn_json *body, gn_ollama_ask *out)
{
    gn_ask *ask = &out->names;
    int32_t top = 0;
    out->stream = true;
    out->options.n = 1;
    GN_TRY(gn_ask_member(ask, body, "model", GN_JSON_STRING, &out->model));
    GN_TRY(gn_ask_bool(ask, body, "stream", &out->stream));
    GN_TRY(gn_ask_bool(ask, body, "logprobs", &out->logprobs));
    GN_TRY(gn_ask_int(ask, body, "top_logprobs", 0, 20, &top));
    if (out->logprobs) {
        out->options.request.n_top = top;
    }
    GN_TRY(read_keep_alive(ask, body));
    GN_TRY(read_format(ask, body, &out->options));
    GN_TRY(read_think(ask, arena, body, &out->options));
    return read_options(ask, arena, body, &out->options.request);
}

static gn_status refuse_images(gn_ask *ask, const gn_json *object)
{
    const gn_json *images = NULL;
    GN_TRY(gn_ask_member(ask, object, "images", GN_JSON_ARRAY, &images));
    return images != NULL && images->len > 0
               ? gn_ask_refuse(ask, images, "images are not supported")
               : GN_OK;
}

static gn_status end_talk(gn_talk *talk, gn_status status, gn_ollama_ask *out)
{
    if (status == GN_OK) {
        status = gn_talk_end(talk);
    }
    if (status == GN_OK) {
        status = gn_talk_value(talk->json.data, talk->json.len, &out->messages);
    }
    gn_talk_fini(talk);
    out->options.messages = out->messages;
    return status;
}

/* --- chat --- */

static gn_status read_call(gn_ask *ask, gn_talk *talk, const gn_json *call)
{
    const gn_json *id = NULL;
    const gn_json *function = NULL;
    const gn_json *name = NULL;
    if (call->type != GN_JSON_OBJECT) {
        return gn_ask_unexpected(ask, call, "an object");
    }
    GN_TRY(gn_ask_member(ask, call, "id", GN_JSON_STRING, &id));
    GN_TRY(gn_ask_needed(ask, call, "function", GN_JSON_OBJECT, &function));
    GN_TRY(gn_ask_needed(ask, function, "name", GN_JSON_STRING, &name));
    const gn_json *arguments = gn_ask_get(function, "arguments");
    if (arguments == NULL) {
        gn_talk_call(talk, id, name, "{}", 2, false);
    } else if (arguments->type == GN_JSON_STRING) {
        gn_talk_call(talk, id, name, arguments->text, arguments->len, false);
    } else if (arguments->type == GN_JSON_OBJECT) {
        gn_talk_call(talk, id, name, arguments->raw, arguments->raw_len, true);
    } else {
        return gn_ask_unexpected(ask, arguments, "an object");
    }
    return GN_OK;
}

static gn_status read_message(gn_ask *ask, gn_talk *talk, const gn_json *message, bool *assistant)
{
    const gn_json *role = NULL;
    const gn_json *content = NULL;
    const gn_json *thinking = NULL;
    const gn_json *calls = NULL;
    const gn_json *id = NULL;
    const gn_json *name = NULL;
    if (message->type != GN_JSON_OBJECT) {
        return gn_ask_unexpected(ask, message, "an object");
    }
    GN_TRY(gn_ask_needed(ask, message, "role", GN_JSON_STRING, &role));
    GN_TRY(gn_ask_member(ask, message, "content", GN_JSON_STRING, &content));
    GN_TRY(gn_ask_member(ask, message, "thinking", GN_JSON_STRING, &thinking));
    GN_TRY(gn_ask_member(ask, message, "tool_calls", GN_JSON_ARRAY, &calls));
    GN_TRY(gn_ask_member(ask, message, "tool_call_id", GN_JSON_STRING, &id));
    GN_TRY(gn_ask_member(ask, message, "tool_name", GN_JSON_STRING, &name));
    GN_TRY(refuse_images(ask, message));
    *assistant = gn_base_json_is(role, "assistant");
    if (gn_base_json_is(role, "tool")) {
        gn_talk_result(talk, id, name);
    } else if (*assistant) {
        gn_talk_begin(talk, "assistant");
    } else if (gn_base_json_is(role, "user")) {
        gn_talk_begin(talk, "user");
    } else if (gn_base_json_is(role, "system")) {
        gn_talk_begin(talk, "system");
    } else {
        return gn_ask_unexpected(ask, role, "\"system\", \"user\", \"assistant\" or \"tool\"");
    }
    if (thinking != NULL && thinking->len > 0) {
        gn_talk_reasoning(talk, thinking->text, thinking->len);
    }
    if (content != NULL && (content->len > 0 || calls == NULL || calls->len == 0)) {
        gn_talk_text(talk, content->text, content->len);
    }
    for (const gn_json *call = calls == NULL ? NULL : calls->first; call != NULL;
         call = call->next) {
        GN_TRY(read_call(ask, talk, call));
    }
    return GN_OK;
}

static gn_status read_messages(gn_ask *ask, const gn_json *messages, gn_ollama_ask *out)
{
    gn_talk talk;
    gn_talk_init(&talk);
    gn_status status = GN_OK;
    bool assistant = false;
    for (const gn_json *at = messages->first; at != NULL && status == GN_OK; at = at->next) {
        status = read_message(ask, &talk, at, &assistant);
    }
    out->options.continue_last = assistant && talk.calls.len == 0;
    return end_talk(&talk, status, out);
}

/* tool_choice in OpenAI's form, which Ollama's API does not have: "none", "auto", "required", or a function. */
static gn_status read_tool_choice(gn_ask *ask, gn_arena *arena, const gn_json *choice,
                                  const gn_json *tools, gn_chat_options *options)
{
    const gn_json *function = NULL;
    const gn_json *name = NULL;
    if (choice->type == GN_JSON_OBJECT) {
        GN_TRY(gn_ask_needed(ask, choice, "function", GN_JSON_OBJECT, &function));
        GN_TRY(gn_ask_needed(ask, function, "name", GN_JSON_STRING, &name));
        options->tool_mode = GN_TOOLS_REQUIRED;
        for (const gn_json *tool = tools->first; tool != NULL; tool = tool->next) {
            const gn_json *own = gn_base_json_get(gn_base_json_get(tool, "function"), "name");
            if (own->len == name->len && memcmp(own->text, name->text, name->len) == 0) {
                return gn_talk_names(arena, &name, 1, &options->allowed_tools);
            }
        }
        return gn_ask_refuse(ask, name, "found \"%.60s\", expected the name of one of the tools",
                             name->text);
    }
    if (choice->type == GN_JSON_STRING && gn_base_json_is(choice, "none")) {
        options->tool_mode = GN_TOOLS_NONE;
    } else if (choice->type == GN_JSON_STRING && gn_base_json_is(choice, "required")) {
        options->tool_mode = GN_TOOLS_REQUIRED;
    } else if (choice->type != GN_JSON_STRING || !gn_base_json_is(choice, "auto")) {
        return gn_ask_unexpected(ask, choice, "\"none\", \"auto\", \"required\" or a function");
    }
    return GN_OK;
}

static gn_status read_tools(gn_ask *ask, gn_arena *arena, const gn_json *body, gn_ollama_ask *out)
{
    const gn_json *tools = NULL;
    GN_TRY(gn_ask_member(ask, body, "tools", GN_JSON_ARRAY, &tools));
    out->options.tool_mode = GN_TOOLS_NONE;
    out->options.parallel_tool_calls = true;
    const gn_json *choice = gn_ask_get(body, "tool_choice");
    if (tools == NULL || tools->len == 0) {
        const bool idle = choice == NULL ||
                          (choice->type == GN_JSON_STRING && !gn_base_json_is(choice, "required"));
        return idle ? GN_OK : gn_ask_refuse(ask, choice, "a tool is asked for, but tools has none");
    }
    for (const gn_json *tool = tools->first; tool != NULL; tool = tool->next) {
        const gn_json *function = NULL;
        const gn_json *name = NULL;
        if (tool->type != GN_JSON_OBJECT) {
            return gn_ask_unexpected(ask, tool, "an object");
        }
        GN_TRY(gn_ask_needed(ask, tool, "function", GN_JSON_OBJECT, &function));
        GN_TRY(gn_ask_needed(ask, function, "name", GN_JSON_STRING, &name));
    }
    GN_TRY(gn_talk_value(tools->raw, tools->raw_len, &out->tools));
    out->options.tools = out->tools;
    out->options.tool_mode = GN_TOOLS_AUTO;
    return choice == NULL ? GN_OK : read_tool_choice(ask, arena, choice, tools, &out->options);
}

gn_status gn_ollama_read_chat(gn_arena *arena, const gn_json *body, gn_ollama_ask *ask)
{
    const gn_json *messages = NULL;
    GN_TRY(read_common(arena, body, ask));
    GN_TRY(read_tools(&ask->names, arena, body, ask));
    GN_TRY(gn_ask_member(&ask->names, body, "messages", GN_JSON_ARRAY, &messages));
    ask->load_only = messages == NULL || messages->len == 0;
    return ask->load_only ? GN_OK : read_messages(&ask->names, messages, ask);
}

/* --- generate --- */

static gn_status refuse_unsupported(gn_ask *ask, const gn_json *body)
{
    const gn_json *template = NULL;
    const gn_json *context = NULL;
    GN_TRY(refuse_images(ask, body));
    GN_TRY(gn_ask_member(ask, body, "template", GN_JSON_STRING, &template));
    if (template != NULL && template->len > 0) {
        return gn_ask_refuse(ask, template, "templates of requests are not supported; use raw");
    }
    GN_TRY(gn_ask_member(ask, body, "context", GN_JSON_ARRAY, &context));
    return context != NULL && context->len > 0
               ? gn_ask_refuse(ask, context, "not supported; send the messages to /api/chat")
               : GN_OK;
}

/* The prompt for models without a chat template: the system prompt, an empty line, the prompt. */
static gn_status plain_prompt(gn_arena *arena, gn_ollama_ask *ask)
{
    gn_chat_options *options = &ask->options;
    const gn_json *system = ask->system;
    options->prompt = ask->prompt->text;
    options->prompt_len = ask->prompt->len;
    if (ask->raw || system == NULL || system->len == 0) {
        return GN_OK;
    }
    const size_t len = system->len + 2 + ask->prompt->len;
    char *text = gn_arena_alloc(arena, len + 1);
    GN_REQUIRE(text != NULL, GN_E_NOMEM, "out of memory");
    memcpy(text, system->text, system->len);
    memcpy(text + system->len, "\n\n", 2);
    memcpy(text + system->len + 2, ask->prompt->text, ask->prompt->len + 1);
    options->prompt = text;
    options->prompt_len = len;
    return GN_OK;
}

gn_status gn_ollama_read_generate(gn_arena *arena, const gn_json *body, gn_ollama_ask *ask)
{
    gn_ask *names = &ask->names;
    GN_TRY(read_common(arena, body, ask));
    GN_TRY(refuse_unsupported(names, body));
    GN_TRY(gn_ask_member(names, body, "prompt", GN_JSON_STRING, &ask->prompt));
    GN_TRY(gn_ask_member(names, body, "system", GN_JSON_STRING, &ask->system));
    GN_TRY(gn_ask_member(names, body, "suffix", GN_JSON_STRING, &ask->suffix));
    GN_TRY(gn_ask_bool(names, body, "raw", &ask->raw));
    if (ask->suffix != NULL && (ask->suffix->len == 0 || ask->raw)) {
        ask->suffix = NULL;
    }
    ask->load_only = (ask->prompt == NULL || ask->prompt->len == 0) && ask->suffix == NULL;
    if (ask->load_only || ask->prompt == NULL) {
        return GN_OK;
    }
    GN_TRY(plain_prompt(arena, ask));
    gn_talk talk;
    gn_talk_init(&talk);
    if (ask->system != NULL && ask->system->len > 0) {
        gn_talk_begin(&talk, "system");
        gn_talk_text(&talk, ask->system->text, ask->system->len);
    }
    gn_talk_begin(&talk, "user");
    gn_talk_text(&talk, ask->prompt->text, ask->prompt->len);
    return end_talk(&talk, GN_OK, ask);
}

void gn_ollama_ask_fini(gn_ollama_ask *ask)
{
    json_decref(ask->messages);
    json_decref(ask->tools);
    *ask = (gn_ollama_ask){0};
}

size_t gn_ollama_count_unknown(const gn_json *body)
{
    static const char *const known[] = {
        "model",    "messages",    "prompt",  "system",     "suffix",   "raw",
        "template", "context",     "images",  "stream",     "format",   "think",
        "tools",    "tool_choice", "options", "keep_alive", "logprobs", "top_logprobs",
        "truncate", "shift",       "width",   "height",     "steps",
    };
    static const char *const options[] = {
        "num_ctx",
        "num_predict",
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "typical_p",
        "repeat_last_n",
        "repeat_penalty",
        "presence_penalty",
        "frequency_penalty",
        "mirostat",
        "mirostat_tau",
        "mirostat_eta",
        "seed",
        "stop",
        "num_keep",
        "tfs_z",
        "penalize_newline",
        "numa",
        "num_batch",
        "num_gpu",
        "main_gpu",
        "low_vram",
        "f16_kv",
        "logits_all",
        "vocab_only",
        "use_mmap",
        "use_mlock",
        "embedding_only",
        "num_thread",
        "draft_num_predict",
    };
    return gn_ask_count_unknown(body, known, GN_COUNTOF(known)) +
           gn_ask_count_unknown(gn_ask_get(body, "options"), options, GN_COUNTOF(options));
}
