/* Anthropic's Messages API: its requests as chats, and the deltas of a chat as its events. Both are pure; the
 * handlers are in anthropic.c. Source: the types and the stream accumulator of the official Python client. */
#ifndef GN_SERVE_ANTHROPIC_H
#define GN_SERVE_ANTHROPIC_H

#include "serve/chat.h"
#include "serve/parts.h"
#include "serve/talk.h"

/* --- requests --- */

typedef struct gn_anthropic_ask {
    const gn_json *model; /* a string */
    bool stream;
    bool hide_thinking; /* thinking blocks come without their text */
    bool count_only;    /* set by the caller: count_tokens, which needs no max_tokens */
    gn_chat_options options;
    json_t *messages, *tools; /* owned; options point at them */
} gn_anthropic_ask;

/* What a request asks for. Strings live in `arena` or are borrowed from `body`, an object. GN_E_ARG: the message
 * begins with the field, "messages[2].content: …". ask->options.request holds defaults beforehand, the rest is zeroed. Give `ask` back with gn_anthropic_ask_fini() in any case. */
GN_MUST_USE gn_status gn_anthropic_read(gn_arena *arena, const gn_json *body,
                                        gn_anthropic_ask *ask);
/* Members of the body that this API does not have. */
size_t gn_anthropic_count_unknown(const gn_json *body);
void gn_anthropic_ask_fini(gn_anthropic_ask *ask);

/* --- replies --- */

typedef struct gn_anthropic_stream {
    const char *id;    /* "msg_…" */
    const char *model; /* its name */
    bool hide_thinking;
    /* Kept by gn_anthropic_event(). */
    bool open;               /* a content block is open: */
    gn_chat_delta_type kind; /* TEXT, REASONING or CALL */
    int32_t n_blocks;        /* begun */
} gn_anthropic_stream;

/* The events that a delta becomes, appended to `out`; usage as it is now. FAILED is not written here. */
GN_MUST_USE gn_status gn_anthropic_event(gn_anthropic_stream *stream, const gn_chat_delta *delta,
                                         const gn_chat_usage *usage, gn_buf *out);
/* The whole message. */
GN_MUST_USE gn_status gn_anthropic_message(const gn_anthropic_stream *stream, const gn_parts *parts,
                                           const gn_chat_usage *usage, gn_buf *out);

#endif
