/* The models behind the endpoint: opened in place when first asked for (or at start), each with its engine; closed
 * by least use where the memory limit needs it and nobody uses them. Any thread. */
#ifndef GN_SERVE_MODELS_H
#define GN_SERVE_MODELS_H

#include "serve/call.h"

typedef struct gn_serve_model {
    size_t index;     /* for gn_serve_model_describe() */
    const char *name; /* what requests call it */
    const char *path;
    gn_model *model;
    gn_engine *engine;          /* NULL: an encoder */
    struct gn_formats *formats; /* compiled grammars (serve/formats.h) */
    int64_t created;            /* unix time of the file */
    const char *fingerprint;    /* system_fingerprint: build, model digest, CPU level, KV type */
} gn_serve_model;

/* The model that a request names (NULL or "": the first), opened where it is not; give it back with
 * gn_serve_model_give(). Where there is exactly one model, any name is served by it. On failure the
 * reply is sent already: 404 model_not_found, 403 where the key may not use it, 503 where it can't be opened. */
GN_MUST_USE gn_status gn_serve_model_take(gn_call *call, const char *name, size_t name_len,
                                          const gn_serve_model **out);
void gn_serve_model_give(gn_server *server, const gn_serve_model *model);

typedef struct gn_serve_model_info {
    char name[256];
    char path[1024];
    bool loaded;
    bool is_encoder;
    bool has_chat_template;
    uint32_t n_users; /* calls that hold it now */
    uint64_t n_loads; /* times it was opened */
    uint64_t file_bytes;
    int64_t created;
    int32_t n_ctx; /* 0: not loaded yet */
    char architecture[64];
} gn_serve_model_info;

size_t gn_serve_n_models(const gn_server *server);
void gn_serve_model_describe(gn_server *server, size_t i, gn_serve_model_info *out);

#endif
