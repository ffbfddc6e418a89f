/* The HTTP server behind `ganglion serve`: the APIs that clients of OpenAI, Anthropic, Ollama and llama-server speak,
 * over models of which each has one step loop that serves all its requests together.
 *
 * A gn_server has threads of its own, one a connection. The functions below may be called from any thread, but
 * create, start and destroy from one at a time. It makes no outbound connection. */
#ifndef GANGLION_SERVER_H
#define GANGLION_SERVER_H

#include "ganglion/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gn_server gn_server;

typedef struct gn_server_model {
    const char *name; /* what requests call it; 1 to 200 bytes */
    const char *path; /* as for gn_model_open() */
} gn_server_model;

typedef struct gn_server_options { /* zeroed: the defaults; all that is pointed to is copied */
    const gn_server_model *models; /* [n_models], at least one; the first is opened at start */
    size_t n_models;
    gn_model_options model; /* of each of them; kv_bytes 0: their share of half the free memory */
    uint32_t max_loaded; /* models open at a time, the least used is closed for another; 0: all */

    const char *host; /* an address, or "localhost"; NULL: "127.0.0.1" */
    uint16_t port;    /* 0: any free one */
    const char *
        key_file; /* API keys, hashed: one a line (docs/SERVER.md); read again by gn_server_reload(). NULL: none */
    const char *key;      /* one more key, in clear, with all rights; NULL: none */
    const char *tls_cert; /* PEM files; both or none */
    const char *tls_key;
    const char *const *origins; /* [n_origins] web pages that may call the server, "https://…" */
    size_t n_origins;
    const char *const *hosts; /* [n_hosts] further names in the Host header */
    size_t n_hosts;

    uint64_t max_body_bytes;  /* of a request; 0: 32 MiB */
    uint32_t max_connections; /* 0: 256 */
    uint32_t idle_ms;         /* until a connection has sent a request's headers; 0: 75,000 */
    uint32_t upload_ms;       /* until it has sent the body; 0: 60,000 */
    uint32_t max_waiting;     /* requests that wait, of each model; 0: 256 */
    uint32_t max_running;     /* requests in steps, of each model; 0: 64 */
    bool no_prefix_cache;

    bool log_prompts; /* put what is asked into the log */
    /* One JSON object a line, no newline, from any thread; must not call the server. NULL: no log. */
    void (*log)(void *ctx, const char *line, size_t len);
    void *log_ctx;
} gn_server_options;

/* Check the options, read the keys. Nothing is opened yet. GN_E_ARG (also: an address that others can reach, and no
 * key), GN_E_FORMAT and GN_E_IO (key and TLS files), GN_E_NOMEM. */
GN_MUST_USE GN_API gn_status gn_server_create(const gn_server_options *options, gn_server **out);

/* Listen, then open the first model; requests that come meanwhile wait or get 503. Returns when the model is open.
 * GN_E_UNAVAILABLE: the address is taken; codes of gn_model_open(). */
GN_MUST_USE GN_API gn_status gn_server_start(gn_server *server);

/* Where it listens, "http://127.0.0.1:8080"; NULL before gn_server_start(). */
GN_API const char *gn_server_url(const gn_server *server);

/* Read the key file again. On failure the keys stay as they were. */
GN_MUST_USE GN_API gn_status gn_server_reload(gn_server *server);

/* Stop taking requests and wait up to `ms` for those that run; false: some still do. */
GN_API bool gn_server_drain(gn_server *server, uint32_t ms);

/* false: a model has had work for two minutes without finishing a step of it. */
GN_API bool gn_server_healthy(gn_server *server);

/* Ends what runs, closes connections and models. NULL is fine. */
GN_API void gn_server_destroy(gn_server *server);

/* A new random API key and its line for the key file, both NUL-terminated. name: 1 to 64 letters, digits and ._-
 * GN_E_ARG, GN_E_UNAVAILABLE (no randomness). */
#define GN_SERVER_KEY_BYTES  64
#define GN_SERVER_LINE_BYTES 192
GN_MUST_USE GN_API gn_status gn_server_new_key(const char *name, char key[GN_SERVER_KEY_BYTES],
                                               char line[GN_SERVER_LINE_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
