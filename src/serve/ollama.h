/* Ollama's API: its requests as chats, and the deltas of a chat as its lines. Both are pure; the handlers are in
 * ollama.c and ollama_models.c. Source: the types of its official Python client and its documentation. */
#ifndef GN_SERVE_OLLAMA_H
#define GN_SERVE_OLLAMA_H

#include "serve/ask.h"
#include "serve/chat.h"
#include "serve/parts.h"
#include "serve/talk.h"

/* --- requests --- */

typedef struct gn_ollama_ask {
    gn_ask names;         /* which field was refused */
    const gn_json *model; /* a string */
    bool stream;
    bool logprobs;
    bool load_only; /* nothing is asked: the model is opened */
    bool raw;       /* generate: the prompt as it is, without a template */
    /* generate: */
    const gn_json *prompt, *system, *suffix; /* strings, or NULL; suffix: fill in the middle */
    gn_chat_options options;
    json_t *messages, *tools; /* owned; options point at them */
} gn_ollama_ask;

/* What a request of /api/chat, or of /api/generate, asks for. Strings live in `arena` or are borrowed from `body`, an
 * object. GN_E_ARG: the message begins with the field. ask->options.request holds defaults beforehand, the
 * rest is zeroed. Give `ask` back with gn_ollama_ask_fini() in any case. A generate request has both its messages and,
 * in options.prompt, the text for models without a template: the caller keeps one. */
GN_MUST_USE gn_status gn_ollama_read_chat(gn_arena *arena, const gn_json *body, gn_ollama_ask *ask);
GN_MUST_USE gn_status gn_ollama_read_generate(gn_arena *arena, const gn_json *body,
                                              gn_ollama_ask *ask);
/* Members of the body and of its options that this API does not have. */
size_t gn_ollama_count_unknown(const gn_json *body);
void gn_ollama_ask_fini(gn_ollama_ask *ask);

/* --- replies --- */

typedef struct gn_ollama_stream {
    const char *model;   /* its name */
    const char *created; /* RFC 3339 */
    bool generate;       /* "response" in place of "message" */
    bool logprobs;       /* text waits for its log-probabilities */
    int64_t load_ns;     /* what opening the model took */
    /* Kept by gn_ollama_line(). */
    gn_chat_delta_type kind; /* of what is held */
    gn_buf held;             /* text without its log-probability */
    gn_parts call;           /* a call whose arguments are not whole */
    int32_t n_calls;
} gn_ollama_stream;

/* The lines that a delta becomes, appended to `out`; usage as it is now. logprob: JSON text of LOGPROB's entry, or
 * "". FAILED is not written here. */
GN_MUST_USE gn_status gn_ollama_line(gn_ollama_stream *stream, const gn_chat_delta *delta,
                                     const gn_chat_usage *usage, const char *logprob, gn_buf *out);
/* The whole answer. */
GN_MUST_USE gn_status gn_ollama_whole(const gn_ollama_stream *stream, const gn_parts *parts,
                                      const gn_chat_usage *usage, gn_buf *out);
/* The answer to a request that asks for nothing. */
GN_MUST_USE gn_status gn_ollama_loaded(const gn_ollama_stream *stream, gn_buf *out);
void gn_ollama_stream_fini(gn_ollama_stream *stream);

/* Unix time as RFC 3339 in UTC. */
void gn_ollama_time(int64_t seconds, int64_t ns, char out[40]);

/* --- the handlers' own (ollama_models.c) --- */

void gn_ollama_tags(gn_call *call);
void gn_ollama_ps(gn_call *call);
void gn_ollama_show(gn_call *call);
void gn_ollama_version(gn_call *call);
void gn_ollama_pull(gn_call *call);
void gn_ollama_refuse(gn_call *call);
void gn_ollama_embed(gn_call *call);
void gn_ollama_embeddings(gn_call *call);

#endif
