/* OpenAI's Responses API: its requests as chats, and the deltas of a chat as its events. Both are pure; the
 * handler is in responses.c. Source: the types and the stream accumulator of the official Python client. */
#ifndef GN_SERVE_RESPONSES_H
#define GN_SERVE_RESPONSES_H

#include "serve/ask.h"
#include "serve/chat.h"
#include "serve/parts.h"
#include "serve/talk.h"

/* --- requests --- */

typedef struct gn_responses_ask {
    gn_ask names;         /* which field was refused */
    const gn_json *model; /* a string */
    bool stream;
    bool logprobs; /* include has message.output_text.logprobs */
    gn_chat_options options;
    json_t *messages, *tools; /* owned; options point at them */
} gn_responses_ask;

/* What a request asks for. Strings live in `arena` or are borrowed from `body`, an object. GN_E_ARG: the message
 * begins with the field. ask->options.request holds defaults beforehand, the rest is zeroed. Give `ask`
 * back with gn_responses_ask_fini() in any case. */
GN_MUST_USE gn_status gn_responses_read(gn_arena *arena, const gn_json *body,
                                        gn_responses_ask *ask);
/* Members of the body that this API does not have. */
size_t gn_responses_count_unknown(const gn_json *body);
void gn_responses_ask_fini(gn_responses_ask *ask);

/* Is the tool of this name one whose input is free text? The model sees it as a function with the one argument
 * "input". */
bool gn_responses_is_custom(const gn_json *body, const char *name);

/* --- replies --- */

typedef struct gn_responses_stream {
    const char *key;     /* what the ids are made of: "resp_KEY", "msg_KEY_0" … */
    const char *model;   /* its name */
    int64_t created;     /* unix time */
    const gn_json *body; /* the request, whose settings the reply repeats */
    bool logprobs;       /* text waits for its log-probabilities */
    /* Kept by gn_responses_event(). */
    gn_parts parts;
    gn_buf held;      /* text without its log-probability */
    int64_t sequence; /* of the next event */
    bool open;        /* the last part is an item that is not done */
} gn_responses_stream;

/* The events that a delta becomes, appended to `out`; usage as it is now. logprob: JSON text of LOGPROB's entry,
 * or "". FAILED: response.failed with delta->text. */
GN_MUST_USE gn_status gn_responses_event(gn_responses_stream *stream, const gn_chat_delta *delta,
                                         const gn_chat_usage *usage, const char *logprob,
                                         gn_buf *out);
/* The whole response. */
GN_MUST_USE gn_status gn_responses_whole(const gn_responses_stream *stream, const gn_parts *parts,
                                         const gn_chat_usage *usage, gn_buf *out);
void gn_responses_stream_fini(gn_responses_stream *stream);

#endif
