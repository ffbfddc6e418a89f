/* OpenAI's Chat Completions and Completions: requests as chats, and the deltas of a chat as chunks. Readers and writers
 * are pure; the handlers are in openai_chat.c and openai_complete.c. docs/API.md has the fields one by one. Source:
 * the types and the stream accumulator of the official Python client. */
#ifndef GN_SERVE_OPENAI_H
#define GN_SERVE_OPENAI_H

#include "serve/ask.h"
#include "serve/chat.h"
#include "serve/parts.h"

#define GN_CHAT_MOST_STOPS 64

/* --- what both requests share (openai_sample.c) --- */

/* Sampling, limits, stop strings, penalties, logit_bias, seed, and what local clients add: into `request`, whose
 * arrays live in `arena`. */
GN_MUST_USE gn_status gn_openai_read_sampling(gn_ask *ask, gn_arena *arena, const gn_json *body,
                                              gn_request_options *request);
/* response_format, json_schema, grammar, guided_*, structured_outputs: at most one of them. */
GN_MUST_USE gn_status gn_openai_read_format(gn_ask *ask, const gn_json *body,
                                            gn_chat_options *options);
/* stream, and stream_options.include_usage. */
GN_MUST_USE gn_status gn_openai_read_stream(gn_ask *ask, const gn_json *body, bool *stream,
                                            bool *include_usage);
/* Members of the body that no list of `known` names has. */
uint64_t gn_openai_count_unknown(const gn_json *body);

/* --- chat requests (openai_read.c) --- */

typedef struct gn_openai_ask {
    gn_ask ask;           /* ask.param: the field of a failure */
    const gn_json *model; /* a string, or NULL */
    bool stream, include_usage;
    bool legacy; /* functions and function_call instead of tools */
    gn_chat_options options;
    json_t *messages, *tools; /* owned; options point at them */
} gn_openai_ask;

/* As gn_anthropic_read(). GN_E_ARG: the message begins with the field. Give `out` back with gn_openai_ask_fini() in
 * any case. */
GN_MUST_USE gn_status gn_openai_read(gn_arena *arena, const gn_json *body, gn_openai_ask *out);
void gn_openai_ask_fini(gn_openai_ask *out);

/* --- chat replies (openai_write.c) --- */

typedef struct gn_openai_stream {
    const char *id; /* "chatcmpl-…" */
    int64_t created;
    const char *model;
    const char *fingerprint;
    const gn_model *vocabulary; /* for the spelling of tokens in log-probabilities */
    bool include_usage, legacy, logprobs;
    gn_buf pending; /* text that waits for its log-probability */
} gn_openai_stream;

/* "data: …\n\n" for a delta, appended to `out`; nothing for some. FAILED is not written here. */
GN_MUST_USE gn_status gn_openai_event(gn_openai_stream *stream, const gn_chat_delta *delta,
                                      gn_buf *out);
/* The chunk with the usage where it was asked for, and "data: [DONE]". */
GN_MUST_USE gn_status gn_openai_done(gn_openai_stream *stream, const gn_chat_usage *usage,
                                     gn_buf *out);

/* A choice of a reply that is not streamed. */
typedef struct gn_openai_choice {
    gn_parts parts;
    gn_buf logprobs; /* JSON values with commas between them */
    bool grammar_closed;
} gn_openai_choice;

/* Keep what a delta says. */
GN_MUST_USE gn_status gn_openai_keep(const gn_openai_stream *stream, gn_openai_choice *choice,
                                     const gn_chat_delta *delta);
/* The whole reply. */
GN_MUST_USE gn_status gn_openai_reply(const gn_openai_stream *stream,
                                      const gn_openai_choice *choices, size_t n,
                                      const gn_chat_usage *usage, gn_buf *out);
void gn_openai_choice_fini(gn_openai_choice *choice);

/* {"token":…,"logprob":…,"bytes":…,"top_logprobs":…} */
void gn_openai_put_logprob(gn_json_out *json, const gn_model *vocabulary,
                           const gn_token_logprob *token);
/* "usage" and "timings" of a reply. */
void gn_openai_put_usage(gn_json_out *json, const gn_chat_usage *usage);
void gn_openai_put_timings(gn_json_out *json, const gn_chat_usage *usage);
const char *gn_openai_finish(gn_finish finish, bool called, bool legacy);

/* --- the handlers' own --- */

void gn_openai_chat(gn_call *call);
void gn_openai_complete(gn_call *call);
void gn_openai_embed(gn_call *call);
void gn_openai_models(gn_call *call);
void gn_openai_model(gn_call *call);

#endif
