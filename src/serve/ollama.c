/* The handlers of Ollama's /api/chat and /api/generate, and its table of routes. */
#include "serve/ollama.h"

#include "base/alloc.h"
#include "os/clock.h"
#include "serve/fim.h"
#include "serve/relay.h"
#include "serve/route.h"

#include <time.h>

typedef struct answer {
    gn_ollama_ask ask;
    gn_ollama_stream stream;
    gn_buf filled; /* the prompt for what belongs between two texts */
    char created[40];
} answer;

static gn_status put_line(void *ctx, const gn_chat_delta *delta, const gn_chat_usage *usage,
                          const char *logprob, gn_buf *out)
{
    answer *a = ctx;
    return gn_ollama_line(&a->stream, delta, usage, logprob, out);
}

static gn_status put_failure(void *ctx, const char *error, const char *message, gn_buf *out)
{
    (void)ctx;
    (void)message;
    return gn_buf_printf(out, "%s\n", error);
}

static gn_status put_whole(void *ctx, const gn_parts *parts, const gn_chat_usage *usage,
                           gn_buf *out)
{
    const answer *a = ctx;
    return gn_ollama_whole(&a->stream, parts, usage, out);
}

static void end_answer(void *ctx)
{
    answer *a = ctx;
    gn_ollama_stream_fini(&a->stream);
    gn_ollama_ask_fini(&a->ask);
    gn_buf_fini(&a->filled);
}

/* The request, read; NULL: the reply is sent already. */
static answer *read_request(gn_call *call, bool generate)
{
    const gn_json *body;
    if (gn_serve_call_json(call, &body) != GN_OK) {
        return NULL;
    }
    gn_arena *arena = gn_serve_call_arena(call);
    answer *a = gn_arena_calloc(arena, 1, sizeof *a);
    if (a == NULL) {
        gn_serve_fail_status(call, gn_alloc_failed(), NULL);
        return NULL;
    }
    a->ask.options.request = gn_request_defaults();
    a->ask.options.request.sample.seed = gn_serve_seed(call);
    const gn_status status = generate ? gn_ollama_read_generate(arena, body, &a->ask)
                                      : gn_ollama_read_chat(arena, body, &a->ask);
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, NULL);
        end_answer(a);
        return NULL;
    }
    gn_serve_note_unknown(call, gn_ollama_count_unknown(body));
    a->stream.generate = generate;
    a->stream.logprobs = a->ask.logprobs;
    return a;
}

/* What the model is asked for a generate request: its own form of filling in, its template, or the text. */
static gn_status choose_prompt(answer *a, const gn_serve_model *model)
{
    gn_ollama_ask *ask = &a->ask;
    gn_chat_options *options = &ask->options;
    if (ask->suffix != NULL) {
        const gn_json *prompt = ask->prompt;
        GN_TRY(gn_fim_prompt(model->model, prompt == NULL ? "" : prompt->text,
                             prompt == NULL ? 0 : prompt->len, ask->suffix->text, ask->suffix->len,
                             &a->filled));
        options->prompt = a->filled.data;
        options->prompt_len = a->filled.len;
        options->messages = NULL;
    } else if (ask->raw || !gn_model_get_info(model->model).has_chat_template) {
        options->messages = NULL;
    } else {
        options->prompt = NULL;
    }
    return GN_OK;
}

static void reply_loaded(gn_call *call, answer *a, const gn_serve_model *model)
{
    gn_buf body = {0};
    const gn_status status = gn_ollama_loaded(&a->stream, &body);
    gn_serve_model_give(gn_serve_call_server(call), model);
    if (status == GN_OK) {
        gn_serve_reply(call, 200,
                       a->ask.stream ? "application/x-ndjson" : "application/json; charset=utf-8",
                       &body);
    } else {
        gn_serve_fail_status(call, status, NULL);
    }
    gn_buf_fini(&body);
    end_answer(a);
}

static void answer_request(gn_call *call, bool generate)
{
    answer *a = read_request(call, generate);
    if (a == NULL) {
        return;
    }
    const gn_serve_model *model;
    const uint64_t start = gn_os_now_ns();
    if (!gn_serve_relay_model(call, a->ask.model, &model)) {
        end_answer(a);
        return;
    }
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    gn_ollama_time((int64_t)now.tv_sec, now.tv_nsec, a->created);
    a->stream.created = a->created;
    a->stream.model = model->name;
    a->stream.load_ns = (int64_t)(gn_os_now_ns() - start);
    if (a->ask.load_only) {
        reply_loaded(call, a, model);
        return;
    }
    const gn_status status = generate ? choose_prompt(a, model) : GN_OK;
    if (status != GN_OK) {
        gn_serve_model_give(gn_serve_call_server(call), model);
        gn_serve_fail_status(call, status, NULL);
        end_answer(a);
        return;
    }
    const gn_relay relay = {.event = put_line,
                            .failed = put_failure,
                            .whole = put_whole,
                            .done = end_answer,
                            .ctx = a,
                            .type = "application/x-ndjson",
                            .stream = a->ask.stream,
                            .logprobs = a->ask.logprobs};
    gn_serve_relay(call, model, &a->ask.options, &relay);
}

static void chat(gn_call *call)
{
    answer_request(call, false);
}

static void generate(gn_call *call)
{
    answer_request(call, true);
}

#define ROUTE(verb, address, function, text)                                                       \
    {                                                                                              \
        .method = (verb), .path = (address), .dialect = GN_DIALECT_OLLAMA,                         \
        .access = GN_ACCESS_USE, .handler = (function), .summary = (text)                          \
    }

const gn_route gn_serve_routes_ollama[] = {
    ROUTE("POST", "/api/chat", chat, "The next message of a chat (Ollama)"),
    ROUTE("POST", "/api/generate", generate,
          "What follows a prompt, or belongs between it and a suffix (Ollama)"),
    ROUTE("POST", "/api/embed", gn_ollama_embed, "Embeddings of texts (Ollama)"),
    ROUTE("POST", "/api/embeddings", gn_ollama_embeddings, "The embedding of a text (Ollama)"),
    ROUTE("GET", "/api/tags", gn_ollama_tags, "The models (Ollama)"),
    ROUTE("GET", "/api/ps", gn_ollama_ps, "The models that are open (Ollama)"),
    ROUTE("POST", "/api/show", gn_ollama_show, "About a model (Ollama)"),
    ROUTE("GET", "/api/version", gn_ollama_version, "Which version of Ollama's API this follows"),
    ROUTE("POST", "/api/pull", gn_ollama_pull, "Done for models that are here, else refused"),
    ROUTE("POST", "/api/push", gn_ollama_refuse, "Refused (Ollama)"),
    ROUTE("POST", "/api/create", gn_ollama_refuse, "Refused (Ollama)"),
    ROUTE("POST", "/api/copy", gn_ollama_refuse, "Refused (Ollama)"),
    ROUTE("POST", "/api/blobs/{id}", gn_ollama_refuse, "Refused (Ollama)"),
    ROUTE("DELETE", "/api/delete", gn_ollama_refuse, "Refused (Ollama)"),
    {.method = NULL},
};
