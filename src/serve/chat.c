/* A chat: one prompt, one to sixteen requests for answers to it, and their events as deltas. The requests run side by
 * side; each event is turned into deltas before the next is looked at. */
#include "base/alloc.h"
#include "base/json_write.h"
#include "os/clock.h"
#include "serve/chat_impl.h"
#include "serve/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN_MS 20 /* with several choices: how long to wait for one before looking at the others */

typedef enum gn_chat_phase { /* what is left of the event at hand */
                             PHASE_NONE,
                             PHASE_START,
                             PHASE_PIECES,
                             PHASE_LOGPROB,
                             PHASE_END
} gn_chat_phase;

struct gn_chat {
    gn_call *call;
    gn_server *server;
    const gn_serve_model *model;
    gn_chat_choice choices[GN_CHAT_MOST_CHOICES];
    int32_t n;
    int32_t n_top;
    gn_chat_prompt prompt;
    char **stops; /* copies of the stop strings */
    size_t n_stops;
    gn_grammar *grammar;

    gn_chat_phase phase;
    int32_t at; /* the choice whose event it is */
    int32_t turn;
    gn_event event;
    uint64_t start_ns, quiet_ns; /* when the last delta was */
    bool failed;
};

/* --- starting --- */

/* Reply that a format or a tool's schema can't be enforced. */
static void fail_grammar(gn_call *call, gn_status status, const char *param, const char *pointer)
{
    char message[900];
    (void)snprintf(message, sizeof message, "%s", gn_error_message());
    gn_serve_error error = {.status = 400, .param = param, .code = "unsupported_format"};
    if (status == GN_E_NOMEM) {
        gn_serve_fail_status(call, status, param);
    } else {
        bool inside = pointer != NULL && pointer[0] != '\0';
        gn_serve_fail(call, &error, "%s%s%s: %s", param, inside ? " at " : "",
                      inside ? pointer : "", message);
    }
}

/* Everything that the tools' grammar depends on, as text. */
static gn_status put_tools_key(const gn_tool_format *format, const gn_toolcall_rules *rules,
                               gn_buf *out)
{
    GN_TRY(gn_buf_printf(out, "%s %d %d %d", format->name, rules->required, rules->parallel,
                         rules->thinks));
    for (const gn_json *a = rules->allowed != NULL ? rules->allowed->first : NULL; a != NULL;
         a = a->next) {
        GN_TRY(gn_base_json_quote(out, a->text, a->len));
    }
    char *tools = json_dumps(rules->tools, JSON_COMPACT);
    gn_status status = tools != NULL ? gn_buf_puts(out, tools) : gn_alloc_failed();
    free(tools);
    return status;
}

static gn_status tools_grammar(gn_chat *chat, const gn_tool_format *format,
                               const gn_toolcall_rules *rules, char **pointer)
{
    gn_buf key = {0};
    gn_status status = put_tools_key(format, rules, &key);
    if (status == GN_OK) {
        chat->grammar = gn_formats_find(chat->model->formats, key.data, key.len);
    }
    if (status == GN_OK && chat->grammar == NULL) {
        status = gn_toolcall_grammar(format, rules, &chat->grammar, pointer);
        if (status == GN_OK) {
            gn_formats_keep(chat->model->formats, key.data, key.len, chat->grammar);
        }
    }
    gn_buf_fini(&key);
    return status;
}

static gn_status make_tools(gn_chat *chat, const gn_chat_options *options)
{
    if (options->format != GN_FORMAT_TEXT) {
        gn_serve_error error = {.status = 400, .param = options->format_param};
        gn_serve_fail(chat->call, &error,
                      "%s beside tools: an answer can be held to one of them; set tool_choice to "
                      "none",
                      options->format_param);
        return GN_E_ARG;
    }
    const gn_tool_format *format = gn_toolcall_format(gn_model_chat_template(chat->model->model));
    const gn_toolcall_rules rules = {.tools = options->tools,
                                     .allowed = options->allowed_tools,
                                     .required = options->tool_mode == GN_TOOLS_REQUIRED,
                                     .parallel = options->parallel_tool_calls,
                                     .thinks = chat->prompt.thinks};
    char *pointer = NULL;
    gn_status status = tools_grammar(chat, format, &rules, &pointer);
    if (status != GN_OK) {
        fail_grammar(chat->call, status, "tools", pointer);
        gn_release(pointer);
        return status;
    }
    for (int32_t i = 0; i < chat->n && status == GN_OK; i++) {
        status = gn_toolcall_reader_create(format, &chat->choices[i].tools);
        char *stem = gn_arena_alloc(gn_serve_call_arena(chat->call), 48);
        status = stem != NULL ? status : gn_alloc_failed();
        if (status == GN_OK) {
            (void)snprintf(stem, 48, "%s%x", gn_serve_call_id(chat->call) + 4, (unsigned)i);
            chat->choices[i].id_stem = stem;
        }
    }
    if (status != GN_OK) {
        gn_serve_fail_status(chat->call, status, NULL);
    }
    return status;
}

static gn_status make_grammar(gn_chat *chat, const gn_chat_options *options)
{
    if (gn_chat_has_tools(options)) {
        return make_tools(chat, options);
    }
    if (options->format == GN_FORMAT_TEXT) {
        return GN_OK;
    }
    char *pointer = NULL;
    gn_status status =
        gn_formats_get(chat->model->formats, options->format, options->format_text,
                       options->format_len, options->format_ordered, &chat->grammar, &pointer);
    if (status != GN_OK) {
        fail_grammar(chat->call, status,
                     options->format_param != NULL ? options->format_param : "response_format",
                     pointer);
        gn_release(pointer);
    }
    return status;
}

static gn_status copy_stops(gn_chat *chat, const gn_request_options *request)
{
    gn_arena *arena = gn_serve_call_arena(chat->call);
    chat->stops = gn_arena_calloc(arena, request->n_stop + 1, sizeof *chat->stops);
    for (size_t i = 0; chat->stops != NULL && i < request->n_stop; i++) {
        chat->stops[i] = gn_arena_strndup(arena, request->stop[i], strlen(request->stop[i]));
        if (chat->stops[i] == NULL) {
            return gn_alloc_failed();
        }
    }
    chat->n_stops = request->n_stop;
    return chat->stops != NULL ? GN_OK : gn_alloc_failed();
}

/* Tokens that end an answer are banned for a while, or always. */
static gn_status set_end_ids(gn_chat *chat, gn_sample_params *sample)
{
    if (sample->min_tokens <= 0 && !sample->ignore_eos) {
        return GN_OK;
    }
    const gn_model *model = chat->model->model;
    int32_t n_vocab = gn_model_get_info(model).n_vocab;
    gn_buf ids = {0};
    gn_status status = GN_OK;
    for (int32_t id = 0; id < n_vocab && status == GN_OK; id++) {
        if (gn_model_is_end(model, id)) {
            status = gn_buf_append(&ids, &id, sizeof id);
        }
    }
    int32_t *copy = gn_arena_alloc(gn_serve_call_arena(chat->call), ids.len + sizeof *copy);
    if (status == GN_OK && copy == NULL) {
        status = gn_alloc_failed();
    }
    if (status == GN_OK && ids.len > 0) {
        memcpy(copy, ids.data, ids.len);
        sample->end_ids = copy;
        sample->n_end_ids = ids.len / sizeof *copy;
    }
    gn_buf_fini(&ids);
    return status;
}

/* All choices, or none. */
static gn_status submit(gn_chat *chat, const gn_chat_options *options, int32_t n_ctx)
{
    gn_request_options request = options->request;
    request.prompt = chat->prompt.ids;
    request.n_prompt = chat->prompt.n_ids;
    request.n_ctx = n_ctx;
    request.grammar = chat->grammar;
    GN_TRY(set_end_ids(chat, &request.sample));
    for (int32_t i = 0; i < chat->n; i++) {
        request.sample.seed = options->request.sample.seed + (uint64_t)i;
        if (i > 0) {
            request.n_prompt_top = -1; /* told once */
        }
        chat->choices[i].thinks = chat->prompt.thinks;
        chat->choices[i].settled = options->messages == NULL;
        GN_TRY(gn_request_submit(chat->model->engine, &request, &chat->choices[i].request));
    }
    return GN_OK;
}

static int32_t context_limit(const gn_serve_model *model, const gn_chat_options *options)
{
    int32_t most = gn_model_get_info(model->model).n_ctx_train;
    int32_t asked = options->request.n_ctx;
    return asked > 0 && asked < most ? asked : most;
}

static gn_status start(gn_chat *chat, const gn_chat_options *options)
{
    gn_call *call = chat->call;
    gn_chat_options own = *options;
    GN_TRY(gn_serve_call_defaults(call, &own.request));
    int32_t n_ctx = context_limit(chat->model, options);
    GN_TRY(gn_chat_prompt_make(call, chat->model, options, n_ctx, &chat->prompt));
    GN_TRY(make_grammar(chat, options));
    gn_status status = copy_stops(chat, &options->request);
    if (status == GN_OK) {
        status = submit(chat, &own, n_ctx);
    }
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, NULL);
    }
    return status;
}

gn_status gn_chat_start(gn_call *call, const gn_serve_model *model, const gn_chat_options *options,
                        gn_chat **out)
{
    if (model->engine == NULL) {
        gn_serve_error error = {.status = 400, .param = "model", .code = "not_a_generator"};
        gn_serve_fail(call, &error, "the model %s makes embeddings; it can't generate",
                      model->name);
        return GN_E_UNSUPPORTED;
    }
    gn_chat *chat = gn_calloc(1, sizeof *chat);
    if (chat == NULL) {
        gn_serve_fail_status(call, gn_alloc_failed(), NULL);
        return GN_E_NOMEM;
    }
    chat->call = call;
    chat->server = gn_serve_call_server(call);
    chat->model = model;
    chat->n = options->n > 0 && options->n <= GN_CHAT_MOST_CHOICES ? options->n : 1;
    chat->n_top = options->request.n_top;
    chat->start_ns = gn_os_now_ns();
    chat->quiet_ns = chat->start_ns;
    gn_status status = start(chat, options);
    if (status != GN_OK) {
        chat->model = NULL; /* stays the caller's */
        gn_chat_destroy(chat);
        return status;
    }
    *out = chat;
    return GN_OK;
}

void gn_chat_destroy(gn_chat *chat)
{
    if (chat == NULL) {
        return;
    }
    for (int32_t i = 0; i < chat->n; i++) {
        gn_chat_choice_fini(&chat->choices[i]);
    }
    gn_grammar_release(chat->grammar);
    gn_release(chat->prompt.ids);
    if (chat->model != NULL) {
        gn_serve_model_give(chat->server, chat->model);
    }
    gn_free(chat);
}

/* --- the next event --- */

/* May this choice's events be looked at? Choices begin in order. */
static bool is_open(const gn_chat *chat, int32_t i)
{
    const gn_chat_choice *choice = &chat->choices[i];
    return !choice->ended && (choice->started || i == 0 || chat->choices[i - 1].started);
}

static bool all_ended(const gn_chat *chat)
{
    for (int32_t i = 0; i < chat->n; i++) {
        if (!chat->choices[i].ended) {
            return false;
        }
    }
    return true;
}

/* One look at each choice, waiting up to `ms` for the first of them. */
static gn_serve_wait look(gn_chat *chat, int32_t ms)
{
    for (int32_t k = 0; k < chat->n; k++) {
        int32_t i = (chat->turn + k) % chat->n;
        if (!is_open(chat, i)) {
            continue;
        }
        gn_serve_wait wait =
            gn_serve_wait_event(chat->call, chat->choices[i].request, ms, &chat->event);
        if (wait == GN_SERVE_EVENT) {
            chat->at = i;
            chat->turn = (i + 1) % chat->n;
        }
        if (wait != GN_SERVE_IDLE) {
            return wait;
        }
        ms = 0;
    }
    chat->turn = (chat->turn + 1) % chat->n;
    return GN_SERVE_IDLE;
}

static gn_serve_wait next_event(gn_chat *chat)
{
    for (;;) {
        gn_serve_wait wait = look(chat, chat->n == 1 ? GN_CHAT_PING_MS : TURN_MS);
        if (wait != GN_SERVE_IDLE) {
            return wait;
        }
        if (gn_os_now_ns() - chat->quiet_ns >= GN_CHAT_PING_MS * 1000000ull) {
            return GN_SERVE_IDLE;
        }
    }
}

/* --- from events to deltas --- */

static bool fail(gn_chat *chat, gn_status status, const char *message, gn_chat_delta *out)
{
    chat->failed = true;
    out->type = GN_CHAT_FAILED;
    out->status = status;
    out->text = message != NULL && message[0] != '\0' ? message : gn_status_text(status);
    out->len = strlen(out->text);
    return true;
}

static void take_start(gn_chat *chat, gn_chat_choice *choice, gn_chat_delta *out)
{
    choice->started = true;
    out->type = GN_CHAT_START;
    if (chat->event.type == GN_EVENT_PROMPT) {
        out->prompt = chat->event.prompt;
    }
    out->prompt_ids = chat->prompt.ids;
    out->n_prompt = chat->prompt.n_ids;
}

static void take_finish(const gn_chat *chat, gn_chat_choice *choice, gn_chat_delta *out)
{
    const gn_event *event = &chat->event;
    choice->ended = true;
    out->type = GN_CHAT_FINISH;
    out->finish = event->finish;
    out->grammar_closed = event->grammar_closed;
    out->called = choice->n_calls > 0;
    if (event->stop_index >= 0 && (size_t)event->stop_index < chat->n_stops) {
        out->stop_text = chat->stops[event->stop_index];
    }
}

/* What an event begins with. */
static gn_status open_event(gn_chat *chat)
{
    gn_chat_choice *choice = &chat->choices[chat->at];
    const gn_event *event = &chat->event;
    chat->phase = choice->started ? PHASE_PIECES : PHASE_START;
    if (event->type == GN_EVENT_PROMPT) {
        return GN_OK;
    }
    if (event->type == GN_EVENT_TOKEN && choice->thinks) {
        choice->n_reasoning++;
    }
    return gn_chat_choice_push(choice, event->text != NULL ? event->text : "", event->text_len,
                               event->type == GN_EVENT_END);
}

/* The next delta of the event at hand; false: it has no more. */
static bool take(gn_chat *chat, gn_chat_delta *out, gn_status *status)
{
    bool any = false;
    gn_chat_choice *choice = &chat->choices[chat->at];
    const gn_event *event = &chat->event;
    out->index = chat->at;
    switch (chat->phase) {
    case PHASE_START:
        chat->phase = PHASE_PIECES;
        take_start(chat, choice, out);
        return true;
    case PHASE_PIECES:
        *status = gn_chat_choice_take(choice, out, &any);
        if (any || *status != GN_OK) {
            return true;
        }
        chat->phase = PHASE_LOGPROB;
        /* fall through */
    case PHASE_LOGPROB:
        chat->phase = PHASE_END;
        if (event->type == GN_EVENT_TOKEN && chat->n_top >= 0) {
            out->type = GN_CHAT_LOGPROB;
            out->token = event->token;
            return true;
        }
        /* fall through */
    case PHASE_END:
        chat->phase = PHASE_NONE;
        if (event->type == GN_EVENT_END) {
            take_finish(chat, choice, out);
            return true;
        }
        return false;
    case PHASE_NONE: break;
    }
    return false;
}

bool gn_chat_next(gn_chat *chat, gn_chat_delta *out)
{
    while (!chat->failed) {
        memset(out, 0, sizeof *out);
        gn_status status = GN_OK;
        if (chat->phase != PHASE_NONE && take(chat, out, &status)) {
            chat->quiet_ns = gn_os_now_ns();
            return status == GN_OK || fail(chat, status, NULL, out);
        }
        if (all_ended(chat)) {
            return false;
        }
        gn_serve_wait wait = next_event(chat);
        if (wait == GN_SERVE_GONE) {
            return false;
        }
        if (wait == GN_SERVE_IDLE) {
            chat->quiet_ns = gn_os_now_ns();
            out->type = GN_CHAT_PING;
            return true;
        }
        if (chat->event.type == GN_EVENT_END && chat->event.status != GN_OK) {
            return fail(chat, chat->event.status, chat->event.message, out);
        }
        status = open_event(chat);
        if (status != GN_OK) {
            return fail(chat, status, NULL, out);
        }
    }
    return false;
}

gn_chat_usage gn_chat_get_usage(const gn_chat *chat)
{
    gn_chat_usage usage = {.n_prompt = (int64_t)chat->prompt.n_ids};
    uint64_t now = gn_os_now_ns();
    for (int32_t i = 0; i < chat->n; i++) {
        gn_request_usage u = gn_request_get_usage(chat->choices[i].request);
        usage.n_generated += u.n_generated;
        usage.n_reasoning += chat->choices[i].n_reasoning;
        if (i == 0) {
            uint64_t start = u.start_ns != 0 ? u.start_ns : now;
            uint64_t first = u.first_ns != 0 ? u.first_ns : now;
            uint64_t end = u.end_ns != 0 ? u.end_ns : now;
            usage.n_cached = u.n_cached;
            usage.queue_ms = (double)(start - u.submit_ns) / 1e6;
            usage.prompt_ms = (double)(first - start) / 1e6;
            usage.generate_ms = end > first ? (double)(end - first) / 1e6 : 0.0;
        }
    }
    usage.total_ms = (double)(now - chat->start_ns) / 1e6;
    return usage;
}
