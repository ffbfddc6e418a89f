/* The server's inside: what http.c (connections), call.c (one request and its reply), models.c and operate.c share.
 *
 * A connection has a thread of libmicrohttpd's, which reads a request, runs its handler and sends the reply. `lock`
 * guards the list of connections and the count of calls; the watch thread shuts a connection down that takes
 * too long to say what it wants. */
#ifndef GN_SERVE_SERVER_IMPL_H
#define GN_SERVE_SERVER_IMPL_H

#include "serve/call.h"
#include "serve/keys.h"
#include "serve/metrics.h"
#include "serve/models.h"
#include "serve/route.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#define GN_SERVE_ID_BYTES      40
#define GN_SERVE_TICK_MS       100          /* how soon a client that is gone is noticed */
#define GN_SERVE_ALL_BODIES    (512u << 20) /* bytes of all bodies in memory at a time */
#define GN_SERVE_DISCARD_BYTES (1u << 20)   /* a body up to this is read before it is refused */

typedef struct gn_conn {
    struct gn_conn *next, *prev;
    int fd;
    uint64_t deadline_ns; /* to have sent what it has to; 0: it is being answered */
    bool shut;
} gn_conn;

typedef struct gn_model_slot gn_model_slot;

typedef struct gn_stall_watch { /* of a step loop */
    uint64_t n_steps;
    uint64_t since_ns; /* when n_steps was seen first, or nothing ran */
} gn_stall_watch;

struct gn_server {
    gn_server_options options; /* with the defaults filled in */
    gn_arena copies;
    char url[320];
    struct MHD_Daemon *daemon;
    char *tls_cert, *tls_key;
    bool loopback;
    uint64_t start_ns;
    int64_t start_unix;
    gn_metrics metrics;

    pthread_mutex_t keys_lock;
    gn_key_set *keys; /* under keys_lock */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    gn_conn *conns;   /* under lock */
    uint32_t n_conns; /* under lock */
    uint32_t n_calls; /* under lock */
    pthread_t watch;
    bool watching;
    atomic_bool ready;    /* the first model is open */
    atomic_bool draining; /* new calls get 503 */
    atomic_bool ending;   /* calls give up */
    atomic_uint_fast64_t body_bytes;
    atomic_uint_fast64_t next_id;
    uint64_t id_seed;

    /* models.c */
    pthread_mutex_t models_lock;
    pthread_cond_t models_changed;
    gn_model_slot *slots;  /* [options.n_models] */
    gn_stall_watch *stall; /* the same; under lock */
};

typedef struct gn_call_header {
    struct gn_call_header *next;
    const char *name, *value;
} gn_call_header;

typedef struct gn_call_track { /* a request whose events go through the call */
    const gn_request *request;
    uint64_t last_ns; /* of its last token */
    bool ended;
} gn_call_track;

struct gn_call {
    gn_server *server;
    struct MHD_Connection *connection;
    gn_conn *conn;
    int refs;              /* the connection's and a stream's; one thread */
    const gn_route *route; /* NULL: none */
    unsigned route_index;
    gn_dialect dialect;
    const char *method;
    char *path;
    const char *segment;
    char id[GN_SERVE_ID_BYTES];
    gn_arena arena;
    uint64_t start_ns;
    uint64_t looked_ns; /* when it was seen last that the client is there */
    gn_key_set *keys;
    gn_key *key;

    gn_buf body;
    uint64_t n_counted; /* of the body, in server->body_bytes */
    bool too_large;
    bool crowded; /* no room for the body now */
    bool refused; /* before the body was read: `refusal` answers when it is */
    gn_serve_error refusal;
    char refusal_message[160];
    bool counted; /* in server->n_calls */

    gn_call_header *headers;
    bool replied;
    unsigned status;
    enum MHD_Result queued; /* what MHD_queue_response() said */
    char why[200];          /* of an error, for the log */

    bool (*next)(void *ctx, gn_buf *out);
    void (*done)(void *ctx);
    void *stream_ctx;
    bool stream_ended;
    gn_buf chunk;
    size_t chunk_sent;

    gn_priority priority;
    char model[208]; /* asked for, for the log */
    gn_call_track *tracks;
    size_t n_tracks;
    uint64_t n_prompt, n_cached, n_generated;
    double first_ms, queue_ms; /* < 0: none */
    bool gone;
};

/* --- call.c --- */

gn_call *gn_serve_call_create(gn_server *server, struct MHD_Connection *connection, gn_conn *conn);
void gn_serve_call_unref(gn_call *call);
/* The client's part is over: count and log it, give back what the call held. */
void gn_serve_call_finish(gn_call *call);

/* --- http.c --- */

GN_MUST_USE gn_status gn_serve_http_start(gn_server *server);
void gn_serve_http_stop(gn_server *server);
/* All rows of all tables, one after the other; NULL behind the last. */
const gn_route *gn_serve_route_at(unsigned i);

/* --- openapi.c --- */

void gn_serve_openapi(gn_call *call);

/* --- models.c --- */

GN_MUST_USE gn_status gn_serve_models_init(gn_server *server);
void gn_serve_models_fini(gn_server *server);
GN_MUST_USE gn_status gn_serve_models_open_first(gn_server *server);
/* Visit the step loops that are there now; `visit` may not open or close models. */
void gn_serve_models_visit(gn_server *server, void (*visit)(void *ctx, const gn_serve_model *model),
                           void *ctx);
uint64_t gn_serve_models_n_loads(gn_server *server, size_t i);

/* --- log.c --- */

void gn_serve_log_call(const gn_call *call);
/* A line of its own: level "info", "warning"; event: a word. */
void gn_serve_log_event(gn_server *server, const char *level, const char *event, const char *fmt,
                        ...) GN_PRINTF(4, 5);

#endif
