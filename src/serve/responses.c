/* The handler of OpenAI's Responses API. */
#include "serve/responses.h"

#include "base/alloc.h"
#include "serve/relay.h"
#include "serve/route.h"

#include <time.h>

typedef struct answer {
    gn_responses_ask ask;
    gn_responses_stream stream;
} answer;

static gn_status put_event(void *ctx, const gn_chat_delta *delta, const gn_chat_usage *usage,
                           const char *logprob, gn_buf *out)
{
    answer *a = ctx;
    return gn_responses_event(&a->stream, delta, usage, logprob, out);
}

static gn_status put_failure(void *ctx, const char *error, const char *message, gn_buf *out)
{
    (void)error;
    answer *a = ctx;
    const gn_chat_delta delta = {.type = GN_CHAT_FAILED, .text = message};
    return gn_responses_event(&a->stream, &delta, NULL, "", out);
}

static gn_status put_whole(void *ctx, const gn_parts *parts, const gn_chat_usage *usage,
                           gn_buf *out)
{
    const answer *a = ctx;
    return gn_responses_whole(&a->stream, parts, usage, out);
}

static void end_answer(void *ctx)
{
    answer *a = ctx;
    gn_responses_stream_fini(&a->stream);
    gn_responses_ask_fini(&a->ask);
}

/* The request, read; NULL: the reply is sent already. */
static answer *read_request(gn_call *call)
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
    gn_responses_ask *ask = &a->ask;
    ask->options.request = gn_request_defaults();
    a->stream.body = body;
    const gn_status status = gn_responses_read(gn_serve_call_arena(call), body, ask);
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, ask->names.param[0] == '\0' ? NULL : ask->names.param);
        end_answer(a);
        return NULL;
    }
    gn_serve_note_unknown(call, gn_responses_count_unknown(body));
    return a;
}

static void responses(gn_call *call)
{
    answer *a = read_request(call);
    const gn_serve_model *model;
    if (a == NULL) {
        return;
    }
    if (!gn_serve_relay_model(call, a->ask.model, &model)) {
        end_answer(a);
        return;
    }
    a->stream.key = gn_serve_call_id(call) + 4;
    a->stream.model = model->name;
    a->stream.created = (int64_t)time(NULL);
    a->stream.logprobs = a->ask.logprobs;
    const gn_relay relay = {.event = put_event,
                            .failed = put_failure,
                            .whole = put_whole,
                            .done = end_answer,
                            .ctx = a,
                            .type = "text/event-stream",
                            .stream = a->ask.stream,
                            .logprobs = a->ask.logprobs};
    gn_serve_relay(call, model, &a->ask.options, &relay);
}

static void input_tokens(gn_call *call)
{
    answer *a = read_request(call);
    const gn_serve_model *model;
    int64_t n;
    if (a == NULL) {
        return;
    }
    if (gn_serve_relay_model(call, a->ask.model, &model)) {
        if (gn_chat_count(call, model, &a->ask.options, &n) == GN_OK) {
            gn_buf body = {0};
            const gn_status status =
                gn_buf_printf(&body, "{\"object\":\"response.input_tokens\",\"input_tokens\":%lld}",
                              (long long)n);
            if (status == GN_OK) {
                gn_serve_reply(call, 200, "application/json", &body);
            } else {
                gn_serve_fail_status(call, status, NULL);
            }
        }
        gn_serve_model_give(gn_serve_call_server(call), model);
    }
    end_answer(a);
}

const gn_route gn_serve_routes_responses[] = {
    {.method = "POST",
     .path = "/v1/responses",
     .access = GN_ACCESS_USE,
     .handler = responses,
     .summary = "A response to this input, streamed or whole"},
    {.method = "POST",
     .path = "/v1/responses/input_tokens",
     .access = GN_ACCESS_USE,
     .handler = input_tokens,
     .summary = "How many tokens such a response's prompt has"},
    {.method = NULL},
};
