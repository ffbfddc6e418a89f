/* A call: one HTTP request and its reply. Handlers run on a thread of their own for as long as the call lasts and
 * may block, but only in functions that notice when the client is gone or the server ends.
 *
 * A handler gets the whole body, checked for size; it replies exactly once: with gn_serve_reply*(),
 * gn_serve_fail(), or gn_serve_stream(). All strings of a call are borrowed until the handler returns (for a
 * stream: until its `done`). */
#ifndef GN_SERVE_CALL_H
#define GN_SERVE_CALL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "engine/port.h"
#include "ganglion/server.h"

typedef struct gn_call gn_call;
typedef struct gn_key gn_key; /* an API key and its limits (serve/keys.h) */

/* How errors are spelled; a route belongs to one. */
typedef enum gn_dialect { GN_DIALECT_OPENAI, GN_DIALECT_ANTHROPIC, GN_DIALECT_OLLAMA } gn_dialect;

gn_server *gn_serve_call_server(const gn_call *call);
const char *gn_serve_call_id(const gn_call *call);    /* the x-request-id of the reply */
const gn_key *gn_serve_call_key(const gn_call *call); /* NULL: the server needs none */
const char *gn_serve_call_method(const gn_call *call);
const char *gn_serve_call_path(const gn_call *call); /* without the query, not decoded */
const char *gn_serve_call_header(const gn_call *call, const char *name); /* NULL: not there */
const char *gn_serve_call_query(const gn_call *call,
                                const char *name); /* decoded; NULL: not there */
gn_arena *gn_serve_call_arena(gn_call *call);      /* lives as long as the call */
/* What the call says of every request that is made for it, whatever the API: class (header x-ganglion-priority), deadline
 * (x-ganglion-deadline-ms, from now on) and the salt of its key's prefixes. Only these are set. On failure (400, or
 * 403 where the key may not use the class) the reply is sent already. */
GN_MUST_USE gn_status gn_serve_call_defaults(gn_call *call, gn_request_options *options);
/* The body as it came. */
const char *gn_serve_call_body(const gn_call *call, size_t *len);
/* The body as a JSON object, parsed into the call's arena. On failure the 400 is sent already: the handler
 * returns. */
GN_MUST_USE gn_status gn_serve_call_json(gn_call *call, const gn_json **out);

/* --- replies --- */

/* Headers may be added before the reply is given; both are copied. */
void gn_serve_header(gn_call *call, const char *name, const char *value);
/* Take the bytes of `body` (empty afterwards). type: "application/json" … */
void gn_serve_reply(gn_call *call, unsigned status, const char *type, gn_buf *body);

typedef struct gn_serve_error {
    unsigned status;   /* 400, 401, 403, 404, 405, 413, 429, 500, 503 */
    const char *type;  /* "invalid_request_error" …; NULL: the one that goes with the status */
    const char *code;  /* NULL: null */
    const char *param; /* NULL: null */
    uint32_t retry_ms; /* 429, 503: Retry-After and retry-after-ms; 0: none */
    const char *extra; /* more members of the error object, as `"a":1,"b":2`; NULL: none */
} gn_serve_error;

/* Reply with an error in the dialect of the route; message is one line. */
void gn_serve_fail(gn_call *call, const gn_serve_error *error, const char *fmt, ...)
    GN_PRINTF(3, 4);
/* The same for a failed call of the library: GN_E_ARG, FORMAT, UNSUPPORTED, REFUSED, LIMIT are 400,
 * NOT_FOUND 404, UNAVAILABLE 429 or 503, NOMEM 503, else 500. The message is gn_error_message(). */
void gn_serve_fail_status(gn_call *call, gn_status status, const char *param);
/* 400 about a field: "messages[2].content: found a number, expected a string". */
void gn_serve_fail_field(gn_call *call, const char *param, const char *fmt, ...) GN_PRINTF(3, 4);
/* The error object of the dialect, appended to `out`: for errors in the middle of a stream. */
GN_MUST_USE gn_status gn_serve_error_object(const gn_call *call, const gn_serve_error *error,
                                            const char *message, gn_buf *out);

/* A streamed reply, status 200. `next` appends the bytes that come next, blocking until there are some, and
 * returns false after the last (what it appended with false is sent too). It is called on the call's thread after the handler has returned; `done` (may be
 * NULL) is called once at the end, also where the client went away in the middle. */
void gn_serve_stream(gn_call *call, const char *type, bool (*next)(void *ctx, gn_buf *out),
                     void (*done)(void *ctx), void *ctx);

/* --- blocking --- */

typedef enum gn_serve_wait {
    GN_SERVE_EVENT, /* *event is there */
    GN_SERVE_IDLE,  /* `ms` passed: send a ping */
    GN_SERVE_GONE   /* the client went away, or the server ends now: give up */
} gn_serve_wait;

/* gn_request_wait() for up to `ms`, which also notices a client that is gone. What comes is counted: metrics, the log
 * line and the key's limits know of every event that was taken here. */
gn_serve_wait gn_serve_wait_event(gn_call *call, gn_request *request, int32_t ms, gn_event *event);
/* Tokens that were read for the call without a request: embeddings. */
void gn_serve_note_tokens(gn_call *call, uint64_t n_prompt);
/* Members of the body that nobody knows were ignored. */
void gn_serve_note_unknown(gn_call *call, uint64_t n_fields);
/* Is there still somebody who listens? */
bool gn_serve_alive(gn_call *call);

#endif
