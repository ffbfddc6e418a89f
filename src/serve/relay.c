#include "serve/relay.h"

#include "base/alloc.h"
#include "os/clock.h"
#include "serve/openai.h"

#include <string.h>

typedef struct relay {
    gn_relay api;
    gn_call *call;
    gn_chat *chat;
    const gn_model *model;
    gn_buf logprob;
    bool ended;
} relay;

bool gn_serve_relay_model(gn_call *call, const gn_json *name, const gn_serve_model **out)
{
    return gn_serve_model_take(call, name == NULL ? NULL : name->text, name == NULL ? 0 : name->len,
                               out) == GN_OK;
}

uint64_t gn_serve_seed(const gn_call *call)
{
    uint64_t seed = gn_os_now_ns();
    for (const char *c = gn_serve_call_id(call); *c != '\0'; c++) {
        seed = (seed ^ (unsigned char)*c) * 0x100000001b3u;
    }
    return seed;
}

/* --- streams --- */

/* The delta's entry in r->logprob, or "". */
static gn_status render_logprob(relay *r, const gn_chat_delta *delta)
{
    gn_buf_clear(&r->logprob);
    if (delta->type != GN_CHAT_LOGPROB || !r->api.logprobs) {
        return gn_buf_append(&r->logprob, "", 0);
    }
    gn_json_out json;
    gn_base_json_out(&json, &r->logprob);
    gn_openai_put_logprob(&json, r->model, &delta->token);
    return json.status;
}

static const char *logprob_text(const relay *r)
{
    return r->logprob.len == 0 ? "" : r->logprob.data;
}

static unsigned http_status(gn_status status)
{
    switch (status) {
    case GN_E_ARG:
    case GN_E_FORMAT:
    case GN_E_UNSUPPORTED:
    case GN_E_REFUSED:
    case GN_E_LIMIT: return 400;
    case GN_E_UNAVAILABLE:
    case GN_E_NOMEM:
    case GN_E_NO_PAGES:
    case GN_E_CANCELLED: return 503;
    default: return 500;
    }
}

static gn_status fail_stream(relay *r, gn_status status, const char *message, gn_buf *out)
{
    gn_buf error = {0};
    const gn_serve_error about = {.status = http_status(status)};
    gn_status wrote = gn_serve_error_object(r->call, &about, message, &error);
    if (wrote == GN_OK) {
        wrote = r->api.failed(r->api.ctx, error.data, message, out);
    }
    gn_buf_fini(&error);
    return wrote;
}

static gn_status write_delta(relay *r, const gn_chat_delta *delta, gn_buf *out)
{
    if (delta->type == GN_CHAT_FAILED) {
        return fail_stream(r, delta->status, delta->text == NULL ? "" : delta->text, out);
    }
    GN_TRY(render_logprob(r, delta));
    const gn_chat_usage usage = gn_chat_get_usage(r->chat);
    return r->api.event(r->api.ctx, delta, &usage, logprob_text(r), out);
}

static bool next_bytes(void *ctx, gn_buf *out)
{
    relay *r = ctx;
    gn_chat_delta delta;
    const size_t before = out->len;
    while (!r->ended && out->len == before) {
        if (!gn_chat_next(r->chat, &delta)) {
            r->ended = true;
        } else if (write_delta(r, &delta, out) != GN_OK) {
            r->ended = true; /* out of memory: the client sees a stream without its end */
        }
    }
    return !r->ended;
}

static void end_relay(void *ctx)
{
    relay *r = ctx;
    gn_chat_destroy(r->chat);
    gn_buf_fini(&r->logprob);
    if (r->api.done != NULL) {
        r->api.done(r->api.ctx);
    }
}

/* --- answers in one piece --- */

static gn_status keep_logprob(relay *r, gn_parts *parts, const gn_chat_delta *delta)
{
    GN_TRY(render_logprob(r, delta));
    if (r->logprob.len == 0 || parts->n == 0) {
        return GN_OK;
    }
    gn_buf *list = &parts->v[parts->n - 1].logprobs;
    if (list->len > 0) {
        GN_TRY(gn_buf_putc(list, ','));
    }
    return gn_buf_append(list, r->logprob.data, r->logprob.len);
}

/* True: all deltas are in `parts`. */
static bool collect(relay *r, gn_parts *parts)
{
    gn_chat_delta delta;
    while (gn_chat_next(r->chat, &delta)) {
        if (delta.type == GN_CHAT_FAILED) {
            const gn_status status =
                gn_base_fail(delta.status, "%s", delta.text == NULL ? "" : delta.text);
            gn_serve_fail_status(r->call, status, NULL);
            return false;
        }
        gn_status status = gn_parts_add(parts, &delta, NULL);
        if (status == GN_OK && delta.type == GN_CHAT_LOGPROB) {
            status = keep_logprob(r, parts, &delta);
        }
        if (status != GN_OK) {
            gn_serve_fail_status(r->call, status, NULL);
            return false;
        }
    }
    if (!parts->ended) { /* nobody listens any more */
        const gn_serve_error error = {.status = 503};
        gn_serve_fail(r->call, &error, "the request was cancelled");
    }
    return parts->ended;
}

static void reply_whole(relay *r)
{
    gn_parts parts = {0};
    gn_buf body = {0};
    if (collect(r, &parts)) {
        const gn_chat_usage usage = gn_chat_get_usage(r->chat);
        const gn_status status = r->api.whole(r->api.ctx, &parts, &usage, &body);
        if (status == GN_OK) {
            gn_serve_reply(r->call, 200, "application/json", &body);
        } else {
            gn_serve_fail_status(r->call, status, NULL);
        }
    }
    gn_buf_fini(&body);
    gn_parts_fini(&parts);
    end_relay(r);
}

void gn_serve_relay(gn_call *call, const gn_serve_model *model, const gn_chat_options *options,
                    const gn_relay *api)
{
    relay *r = gn_arena_calloc(gn_serve_call_arena(call), 1, sizeof *r);
    if (r == NULL) {
        gn_serve_model_give(gn_serve_call_server(call), model);
        gn_serve_fail_status(call, gn_alloc_failed(), NULL);
    } else {
        *r = (relay){.api = *api, .call = call, .model = model->model};
        if (gn_chat_start(call, model, options, &r->chat) == GN_OK) {
            if (api->stream) {
                gn_serve_stream(call, api->type, next_bytes, end_relay, r);
            } else {
                reply_whole(r);
            }
            return;
        }
        gn_serve_model_give(gn_serve_call_server(call), model);
    }
    if (api->done != NULL) {
        api->done(api->ctx);
    }
}
