/* What one choice of a chat has said: its deltas put together again. One thread. A zeroed gn_parts is valid and
 * empty. */
#ifndef GN_SERVE_PARTS_H
#define GN_SERVE_PARTS_H

#include "base/buf.h"
#include "base/json_write.h"
#include "serve/chat.h"

typedef struct gn_part {
    gn_chat_delta_type type; /* GN_CHAT_TEXT, GN_CHAT_REASONING or GN_CHAT_CALL */
    gn_buf text;             /* of a call its arguments */
    char *id, *name;         /* of a call */
    gn_buf logprobs;         /* JSON values with commas between them */
} gn_part;

typedef struct gn_parts {
    gn_part *v;
    size_t n, cap;
    /* From GN_CHAT_FINISH. */
    bool ended;
    gn_finish finish;
    bool called;
    char *stop_text; /* NULL: none */
} gn_parts;

/* The delta becomes part of the last part, or begins one; *begun (may be NULL) says which. Those without content
 * change nothing. GN_E_NOMEM. */
GN_MUST_USE gn_status gn_parts_add(gn_parts *parts, const gn_chat_delta *delta, bool *begun);
void gn_parts_fini(gn_parts *parts);

/* A call's arguments as a member: the JSON object that they are; {} where they are none, since the answer ended
 * in the middle. */
void gn_parts_put_arguments(gn_json_out *out, const char *key, const gn_part *part);

#endif
