/* A chat in no API's dialect: what a handler asks for, and the deltas it gets. Every chat API (OpenAI's two,
 * Anthropic's, Ollama's, the dashboard's pane) is a reader of its own request into gn_chat_options and a
 * writer of gn_chat_delta into its own reply; template, tokens, grammar, tool calls, reasoning and stop
 * strings are the same for all. */
#ifndef GN_SERVE_CHAT_H
#define GN_SERVE_CHAT_H

#include "serve/models.h"

#include <jansson.h>

typedef enum gn_tool_mode {
    GN_TOOLS_NONE,
    GN_TOOLS_AUTO,
    GN_TOOLS_REQUIRED /* at least one call of those allowed */
} gn_tool_mode;

typedef enum gn_chat_format {
    GN_FORMAT_TEXT,
    GN_FORMAT_JSON,   /* any JSON object */
    GN_FORMAT_SCHEMA, /* format_text: a JSON Schema */
    GN_FORMAT_REGEX,
    GN_FORMAT_GBNF,
    GN_FORMAT_CHOICE /* format_text: a JSON array of strings */
} gn_chat_format;

typedef struct gn_chat_options {
    /* One of the two: messages in OpenAI's chat form (a JSON array; borrowed), or a raw prompt. */
    const json_t *messages;
    const char
        *prompt; /* text, tokenized with special tokens parsed and BOS as the model adds it */
    size_t prompt_len;
    const int32_t *prompt_ids; /* or ids as they are */
    size_t n_prompt_ids;
    const json_t
        *tools; /* OpenAI's form: an array of {"type":"function","function":{…}}; NULL: none */
    gn_tool_mode tool_mode;
    const gn_json *allowed_tools; /* array of names; NULL: all */
    bool parallel_tool_calls;
    const gn_json *template_kwargs; /* further names for the template; NULL */
    bool continue_last;             /* the last message is the beginning of the answer */
    gn_chat_format format;
    const char *format_text;
    size_t format_len;
    const char *format_param; /* what an error about the format calls its field */
    bool format_ordered;
    gn_request_options
        request; /* sampling, limits, stop, log-probabilities; prompt and grammar are set here */
    int32_t n;   /* answers, 1 .. 16, seeds one apart */
} gn_chat_options;

typedef enum gn_chat_delta_type {
    GN_CHAT_START, /* a choice begins: the prompt is evaluated; once a choice, in order of index */
    GN_CHAT_TEXT,  /* text */
    GN_CHAT_REASONING, /* text that is not part of the answer */
    GN_CHAT_CALL,      /* a tool call begins: call_index, id, name */
    GN_CHAT_ARGUMENTS, /* a piece of its arguments, JSON text */
    GN_CHAT_LOGPROB, /* a token of the answer, where log-probabilities were asked for; follows its text */
    GN_CHAT_FINISH, /* a choice ends */
    GN_CHAT_PING,   /* nothing happened for a while */
    GN_CHAT_FAILED  /* the last: status, message */
} gn_chat_delta_type;

typedef struct gn_chat_delta { /* pointers live until the next call */
    gn_chat_delta_type type;
    int32_t index; /* which choice */
    const char *text;
    size_t len;
    int32_t call_index; /* from 0, without gaps, in each choice */
    const char *id;     /* "call_…" */
    const char *name;
    gn_token_logprob token;
    const gn_token_logprob *prompt; /* START, where n_prompt_top ≥ 0: [n_prompt] */
    const int32_t *prompt_ids;      /* START: [n_prompt] */
    size_t n_prompt;
    /* FINISH */
    gn_finish finish;
    bool called;           /* the answer has tool calls */
    const char *stop_text; /* the stop string that ended it, or NULL */
    bool grammar_closed;
    gn_status status; /* FAILED */
} gn_chat_delta;

typedef struct gn_chat gn_chat;

/* The prompt that the messages become; *text: gn_release(). On failure the reply is sent. */
GN_MUST_USE gn_status gn_chat_render(gn_call *call, const gn_serve_model *model,
                                     const gn_chat_options *options, char **text, size_t *len);

/* Render, tokenize, compile, submit. The model is taken over on success (given back by gn_chat_destroy()), and
 * stays the caller's on failure, where the reply is sent already (400 with the field, context_length_exceeded, 429 …). */
GN_MUST_USE gn_status gn_chat_start(gn_call *call, const gn_serve_model *model,
                                    const gn_chat_options *options, gn_chat **out);
/* The tokens of the prompt that a chat would have, whether they fit or not; nothing is computed. The model stays
 * the caller's. On failure the reply is sent already. */
GN_MUST_USE gn_status gn_chat_count(gn_call *call, const gn_serve_model *model,
                                    const gn_chat_options *options, int64_t *n);
/* The next delta, blocking. false: all choices have ended, or the client is gone. */
bool gn_chat_next(gn_chat *chat, gn_chat_delta *out);
void gn_chat_destroy(gn_chat *chat); /* cancels what runs. NULL is fine */

typedef struct gn_chat_usage {
    int64_t n_prompt, n_cached, n_generated, n_reasoning; /* of all choices; the prompt once */
    double prompt_ms, generate_ms, queue_ms, total_ms;
} gn_chat_usage;
gn_chat_usage gn_chat_get_usage(const gn_chat *chat);

#endif
