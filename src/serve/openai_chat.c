/* POST /v1/chat/completions. */
#include "serve/openai.h"

#include "base/alloc.h"
#include "serve/server_impl.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct chat_reply { /* in the call's arena */
    gn_call *call;
    gn_chat *chat;
    gn_openai_stream stream;
    int32_t n;
} chat_reply;

/* --- streamed --- */

static gn_status put_failure(const chat_reply *reply, const gn_chat_delta *delta, gn_buf *out)
{
    gn_serve_error error = {.status = delta->status == GN_E_FORMAT ? 500 : 503};
    GN_TRY(gn_buf_puts(out, "data: "));
    GN_TRY(gn_serve_error_object(reply->call, &error, delta->text, out));
    return gn_buf_puts(out, "\n\n");
}

static gn_status put_end(chat_reply *reply, gn_buf *out)
{
    gn_chat_usage usage = gn_chat_get_usage(reply->chat);
    return gn_serve_alive(reply->call) ? gn_openai_done(&reply->stream, &usage, out) : GN_OK;
}

/* Where memory ends the stream does too, without "[DONE]". */
static bool next(void *ctx, gn_buf *out)
{
    chat_reply *reply = ctx;
    gn_chat_delta delta;
    bool more = gn_chat_next(reply->chat, &delta);
    gn_status status;
    if (!more) {
        status = put_end(reply, out);
    } else if (delta.type == GN_CHAT_FAILED) {
        more = false;
        status = put_failure(reply, &delta, out);
    } else {
        status = gn_openai_event(&reply->stream, &delta, out);
    }
    return more && status == GN_OK;
}

static void done(void *ctx)
{
    chat_reply *reply = ctx;
    gn_buf_fini(&reply->stream.pending);
    gn_chat_destroy(reply->chat);
}

/* --- whole --- */

static gn_status collect(chat_reply *reply, gn_openai_choice *choices)
{
    gn_chat_delta delta;
    while (gn_chat_next(reply->chat, &delta)) {
        if (delta.type == GN_CHAT_FAILED) {
            return gn_base_fail(delta.status, "%.*s", (int)delta.len, delta.text);
        }
        GN_TRY(gn_openai_keep(&reply->stream, &choices[delta.index], &delta));
    }
    GN_REQUIRE(gn_serve_alive(reply->call), GN_E_CANCELLED, "the client went away");
    return GN_OK;
}

static void answer(chat_reply *reply)
{
    gn_buf body = {0};
    gn_openai_choice *choices =
        gn_arena_calloc(gn_serve_call_arena(reply->call), (size_t)reply->n, sizeof *choices);
    gn_status status = choices != NULL ? collect(reply, choices) : gn_alloc_failed();
    if (status == GN_OK) {
        gn_chat_usage usage = gn_chat_get_usage(reply->chat);
        status = gn_openai_reply(&reply->stream, choices, (size_t)reply->n, &usage, &body);
    }
    for (int32_t i = 0; choices != NULL && i < reply->n; i++) {
        gn_openai_choice_fini(&choices[i]);
    }
    done(reply);
    if (status != GN_OK) {
        gn_buf_fini(&body);
        gn_serve_fail_status(reply->call, status, NULL);
        return;
    }
    gn_serve_reply(reply->call, 200, "application/json", &body);
}

/* --- both --- */

static gn_status begin(gn_call *call, const gn_json *body, gn_openai_ask *ask, chat_reply **out)
{
    gn_arena *arena = gn_serve_call_arena(call);
    gn_status status = gn_openai_read(arena, body, ask);
    chat_reply *reply = gn_arena_calloc(arena, 1, sizeof *reply);
    char *id = gn_arena_alloc(arena, 64);
    if (status == GN_OK && (reply == NULL || id == NULL)) {
        status = gn_alloc_failed();
    }
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, ask->ask.param[0] != '\0' ? ask->ask.param : NULL);
        return status;
    }
    gn_serve_note_unknown(call, gn_openai_count_unknown(body));
    const gn_serve_model *model = NULL;
    GN_TRY(gn_serve_model_take(call, ask->model != NULL ? ask->model->text : NULL,
                               ask->model != NULL ? ask->model->len : 0, &model));
    (void)snprintf(id, 64, "chatcmpl-%s", gn_serve_call_id(call) + 4);
    *reply = (chat_reply){
        .call = call,
        .n = ask->options.n,
        .stream = {.id = id,
                   .created = (int64_t)time(NULL),
                   .model = model->name,
                   .fingerprint = model->fingerprint,
                   .vocabulary = model->model,
                   .include_usage = ask->include_usage,
                   .legacy = ask->legacy,
                   .logprobs = ask->options.request.n_top >= 0},
    };
    status = gn_chat_start(call, model, &ask->options, &reply->chat);
    if (status != GN_OK) {
        gn_serve_model_give(gn_serve_call_server(call), model);
        return status;
    }
    *out = reply;
    return GN_OK;
}

void gn_openai_chat(gn_call *call)
{
    const gn_json *body = NULL;
    if (gn_serve_call_json(call, &body) != GN_OK) {
        return;
    }
    gn_openai_ask ask = {.stream = false};
    chat_reply *reply = NULL;
    gn_status status = begin(call, body, &ask, &reply);
    gn_openai_ask_fini(&ask);
    if (status != GN_OK) {
        return;
    }
    if (ask.stream) {
        gn_serve_stream(call, "text/event-stream", next, done, reply);
    } else {
        answer(reply);
    }
}
