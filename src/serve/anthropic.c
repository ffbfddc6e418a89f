/* The handlers of Anthropic's Messages API. */
#include "serve/anthropic.h"

#include "base/alloc.h"
#include "serve/relay.h"
#include "serve/route.h"

#include <stdio.h>

typedef struct answer {
    gn_anthropic_ask ask;
    gn_anthropic_stream stream;
    char id[48];
} answer;

static gn_status put_event(void *ctx, const gn_chat_delta *delta, const gn_chat_usage *usage,
                           const char *logprob, gn_buf *out)
{
    (void)logprob;
    answer *a = ctx;
    return gn_anthropic_event(&a->stream, delta, usage, out);
}

static gn_status put_failure(void *ctx, const char *error, const char *message, gn_buf *out)
{
    (void)ctx;
    (void)message;
    return gn_buf_printf(out, "event: error\ndata: %s\n\n", error);
}

static gn_status put_whole(void *ctx, const gn_parts *parts, const gn_chat_usage *usage,
                           gn_buf *out)
{
    const answer *a = ctx;
    return gn_anthropic_message(&a->stream, parts, usage, out);
}

static void end_answer(void *ctx)
{
    answer *a = ctx;
    gn_anthropic_ask_fini(&a->ask);
}

/* The request, read; NULL: the reply is sent already. */
static answer *read_request(gn_call *call, bool count_only)
{
    const gn_json *body;
    if (gn_serve_call_json(call, &body) != GN_OK) {
        return NULL;
    }
    answer *a = gn_arena_calloc(gn_serve_call_arena(call), 1, sizeof *a);
    if (a == NULL) {
        gn_serve_fail_status(call, gn_alloc_failed(), NULL);
        return NULL;
    }
    a->ask.count_only = count_only;
    a->ask.options.request = gn_request_defaults();
    a->ask.options.request.sample.seed = gn_serve_seed(call);
    const gn_status status = gn_anthropic_read(gn_serve_call_arena(call), body, &a->ask);
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, NULL);
        gn_anthropic_ask_fini(&a->ask);
        return NULL;
    }
    gn_serve_note_unknown(call, gn_anthropic_count_unknown(body));
    return a;
}

static void messages(gn_call *call)
{
    gn_serve_header(call, "request-id", gn_serve_call_id(call));
    answer *a = read_request(call, false);
    if (a == NULL) {
        return;
    }
    const gn_serve_model *model;
    if (!gn_serve_relay_model(call, a->ask.model, &model)) {
        gn_anthropic_ask_fini(&a->ask);
        return;
    }
    (void)snprintf(a->id, sizeof a->id, "msg_%s", gn_serve_call_id(call) + 4);
    a->stream = (gn_anthropic_stream){
        .id = a->id, .model = model->name, .hide_thinking = a->ask.hide_thinking};
    const gn_relay relay = {.event = put_event,
                            .failed = put_failure,
                            .whole = put_whole,
                            .done = end_answer,
                            .ctx = a,
                            .type = "text/event-stream",
                            .stream = a->ask.stream};
    gn_serve_relay(call, model, &a->ask.options, &relay);
}

static void count_tokens(gn_call *call)
{
    gn_serve_header(call, "request-id", gn_serve_call_id(call));
    answer *a = read_request(call, true);
    if (a == NULL) {
        return;
    }
    const gn_serve_model *model;
    int64_t n;
    if (gn_serve_relay_model(call, a->ask.model, &model)) {
        if (gn_chat_count(call, model, &a->ask.options, &n) == GN_OK) {
            gn_buf body = {0};
            const gn_status status = gn_buf_printf(&body, "{\"input_tokens\":%lld}", (long long)n);
            if (status == GN_OK) {
                gn_serve_reply(call, 200, "application/json", &body);
            } else {
                gn_serve_fail_status(call, status, NULL);
            }
        }
        gn_serve_model_give(gn_serve_call_server(call), model);
    }
    gn_anthropic_ask_fini(&a->ask);
}

const gn_route gn_serve_routes_anthropic[] = {
    {.method = "POST",
     .path = "/v1/messages",
     .dialect = GN_DIALECT_ANTHROPIC,
     .access = GN_ACCESS_USE,
     .handler = messages,
     .summary = "A message after these, streamed or whole (Anthropic)"},
    {.method = "POST",
     .path = "/v1/messages/count_tokens",
     .dialect = GN_DIALECT_ANTHROPIC,
     .access = GN_ACCESS_USE,
     .handler = count_tokens,
     .summary = "How many tokens such a message's prompt has (Anthropic)"},
    {.method = NULL},
};
