/* The way from a request to its reply that all chat APIs share: take the model, start the chat, then stream the
 * deltas as the API's events, or put them together into one answer. The API gives a request that was read and
 * three writers. */
#ifndef GN_SERVE_RELAY_H
#define GN_SERVE_RELAY_H

#include "serve/chat.h"
#include "serve/parts.h"

typedef struct gn_relay {
    /* What a delta becomes, appended to `out`. logprob: of LOGPROB its entry in the form that
     * OpenAI's and Ollama's APIs share, as JSON text, else "". PING: what
     * keeps the connection busy. FAILED is not given here. */
    gn_status (*event)(void *ctx, const gn_chat_delta *delta, const gn_chat_usage *usage,
                       const char *logprob, gn_buf *out);
    /* What a stream ends with after a failure: error is the error object of the dialect. */
    gn_status (*failed)(void *ctx, const char *error, const char *message, gn_buf *out);
    /* The whole answer; logprobs are in its parts. */
    gn_status (*whole)(void *ctx, const gn_parts *parts, const gn_chat_usage *usage, gn_buf *out);
    void (*done)(void *ctx); /* `ctx` is not used any more. NULL: nothing to do */
    void *ctx;
    const char *type; /* of a stream: "text/event-stream" … */
    bool stream;
    bool logprobs; /* entries of log-probabilities are wanted */
} gn_relay;

/* Reply. The relay is copied; ctx lives until `done`, which is called once in any case. */
void gn_serve_relay(gn_call *call, const gn_serve_model *model, const gn_chat_options *options,
                    const gn_relay *relay);

/* The model that `name` (a string, or NULL) asks for; false: the reply is sent already. */
bool gn_serve_relay_model(gn_call *call, const gn_json *name, const gn_serve_model **out);

/* A seed for requests that bring none. */
uint64_t gn_serve_seed(const gn_call *call);

#endif
