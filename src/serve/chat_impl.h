/* A chat's parts: the prompt (chat_prompt.c), what one choice has said so far (chat_choice.c), and both driven from the
 * requests' events (chat.c). */
#ifndef GN_SERVE_CHAT_IMPL_H
#define GN_SERVE_CHAT_IMPL_H

#include "agent/toolcall.h"
#include "serve/chat.h"

#define GN_CHAT_MOST_CHOICES 16
#define GN_CHAT_PING_MS      5000

/* --- chat_prompt.c --- */

typedef struct gn_chat_prompt {
    int32_t *ids; /* gn_release() */
    size_t n_ids;
    bool thinks; /* it ends inside of the answer's reasoning */
} gn_chat_prompt;

/* Are there tools that may be called? */
bool gn_chat_has_tools(const gn_chat_options *options);

/* Template, tokens, and the check that they fit n_ctx. On failure the reply is sent. */
GN_MUST_USE gn_status gn_chat_prompt_make(gn_call *call, const gn_serve_model *model,
                                          const gn_chat_options *options, int32_t n_ctx,
                                          gn_chat_prompt *out);

/* --- chat_choice.c --- */

/* A delta that waits to be taken. */
typedef struct gn_chat_piece {
    gn_chat_delta_type type;
    size_t begin, len; /* in text */
} gn_chat_piece;

/* Splits an answer's text into reasoning and what is said. What may be the beginning of a tag is held back. */
typedef struct gn_chat_choice {
    gn_request *request;
    bool started, ended;
    bool thinks;  /* inside of reasoning */
    bool settled; /* no reasoning can begin any more */
    gn_buf held;  /* text not yet decided about */
    gn_buf text;  /* of the pieces */
    gn_chat_piece pieces[4];
    size_t n_pieces, n_taken;
    bool last;           /* nothing follows what was pushed */
    int64_t n_reasoning; /* tokens */
    /* Where tools may be called: what is said goes through the reader. */
    gn_toolcall_reader *tools; /* NULL: none */
    const char *id_stem;       /* of the calls' ids; borrowed */
    int32_t n_calls;
    bool reading; /* events of the reader are left */
    bool flushed; /* the reader was told the end */
    char id[64];
    gn_buf name;
} gn_chat_choice;

/* More text; `last`: nothing follows. Pieces are there afterwards. GN_E_NOMEM. */
GN_MUST_USE gn_status gn_chat_choice_push(gn_chat_choice *choice, const char *text, size_t len,
                                          bool last);
/* The next piece of what was pushed; *any false: none is left. GN_E_NOMEM. */
GN_MUST_USE gn_status gn_chat_choice_take(gn_chat_choice *choice, gn_chat_delta *out, bool *any);
void gn_chat_choice_fini(gn_chat_choice *choice);

#endif
