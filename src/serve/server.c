/* The public functions of ganglion/server.h. */
#include "ganglion/server.h"

#include "base/alloc.h"
#include "os/clock.h"
#include "serve/server_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* --- options --- */

static gn_status copy_text(gn_arena *arena, const char **text)
{
    if (*text != NULL) {
        *text = gn_arena_strndup(arena, *text, strlen(*text));
        if (*text == NULL) {
            return gn_alloc_failed();
        }
    }
    return GN_OK;
}

static gn_status copy_list(gn_arena *arena, const char *const **list, size_t n)
{
    const char **copy = gn_arena_calloc(arena, n + 1, sizeof *copy);
    if (copy == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < n; i++) {
        copy[i] = (*list)[i];
        GN_TRY(copy_text(arena, &copy[i]));
    }
    *list = copy;
    return GN_OK;
}

static gn_status copy_models(gn_arena *arena, gn_server_options *o)
{
    gn_server_model *models = gn_arena_calloc(arena, o->n_models, sizeof *models);
    if (models == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < o->n_models; i++) {
        models[i] = o->models[i];
        size_t len = models[i].name != NULL ? strlen(models[i].name) : 0;
        GN_REQUIRE(len >= 1 && len <= 200, GN_E_ARG,
                   "model %zu: found a name of %zu bytes, expected 1 to 200", i, len);
        for (size_t j = 0; j < i; j++) {
            GN_REQUIRE(strcmp(models[i].name, models[j].name) != 0, GN_E_ARG,
                       "two models are called %s: give one another name", models[i].name);
        }
        GN_REQUIRE(models[i].path != NULL, GN_E_ARG, "model %s: no path", models[i].name);
        GN_TRY(copy_text(arena, &models[i].name));
        GN_TRY(copy_text(arena, &models[i].path));
    }
    o->models = models;
    return GN_OK;
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    if (strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0) {
        return true;
    }
    return inet_pton(AF_INET, host, &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

static gn_status take_options(gn_server *server, const gn_server_options *options)
{
    gn_server_options *o = &server->options;
    gn_arena *arena = &server->copies;
    *o = *options;
    GN_REQUIRE(o->n_models >= 1, GN_E_ARG, "no model: give at least one");
    GN_REQUIRE((o->tls_cert == NULL) == (o->tls_key == NULL), GN_E_ARG,
               "TLS needs both a certificate and its key");
    o->host = o->host != NULL ? o->host : "127.0.0.1";
    GN_REQUIRE(strlen(o->host) < 256, GN_E_ARG, "host: the name is too long");
    o->max_body_bytes = o->max_body_bytes != 0 ? o->max_body_bytes : 32u << 20;
    o->max_connections = o->max_connections != 0 ? o->max_connections : 256;
    o->idle_ms = o->idle_ms != 0 ? o->idle_ms : 75000;
    o->upload_ms = o->upload_ms != 0 ? o->upload_ms : 60000;
    GN_TRY(copy_models(arena, o));
    GN_TRY(copy_text(arena, &o->host));
    GN_TRY(copy_text(arena, &o->key_file));
    GN_TRY(copy_text(arena, &o->tls_cert));
    GN_TRY(copy_text(arena, &o->tls_key));
    GN_TRY(copy_text(arena, &o->model.cache_folder));
    GN_TRY(copy_text(arena, &o->key));
    GN_TRY(copy_list(arena, &o->origins, o->n_origins));
    return copy_list(arena, &o->hosts, o->n_hosts);
}

static gn_status read_pem(const char *path, char **out)
{
    FILE *file = fopen(path, "re");
    GN_REQUIRE(file != NULL, GN_E_IO, "%s: cannot open: %s", path, strerror(errno));
    gn_buf text = {.limit = 1 << 20};
    char piece[1024];
    gn_status status = GN_OK;
    for (size_t n; status == GN_OK && (n = fread(piece, 1, sizeof piece, file)) > 0;) {
        status = gn_buf_append(&text, piece, n);
    }
    (void)fclose(file);
    if (status == GN_OK && text.len == 0) {
        status = gn_base_fail(GN_E_FORMAT, "%s: empty, expected PEM", path);
    }
    if (status != GN_OK) {
        gn_buf_fini(&text);
        return status;
    }
    *out = gn_buf_take(&text);
    return GN_OK;
}

static gn_status prepare(gn_server *server)
{
    const gn_server_options *o = &server->options;
    GN_TRY(gn_keys_load(o->key_file, o->key, &server->keys));
    server->loopback = is_loopback(o->host);
    GN_REQUIRE(server->loopback || gn_keys_count(server->keys) > 0, GN_E_ARG,
               "host %s can be reached by others: that needs an API key", o->host);
    if (o->tls_cert != NULL) {
        GN_TRY(read_pem(o->tls_cert, &server->tls_cert));
        GN_TRY(read_pem(o->tls_key, &server->tls_key));
    }
    return gn_serve_models_init(server);
}

static void init_conds(gn_server *server)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&server->changed, &attr);
    (void)pthread_cond_init(&server->models_changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&server->lock, NULL);
    (void)pthread_mutex_init(&server->keys_lock, NULL);
    (void)pthread_mutex_init(&server->models_lock, NULL);
}

gn_status gn_server_create(const gn_server_options *options, gn_server **out)
{
    gn_server *server = gn_calloc(1, sizeof *server);
    if (server == NULL) {
        return gn_alloc_failed();
    }
    init_conds(server);
    server->start_ns = gn_os_now_ns();
    server->start_unix = (int64_t)time(NULL);
    server->id_seed = server->start_ns * 0x9e3779b97f4a7c15ull;
    gn_status status = take_options(server, options);
    if (status == GN_OK) {
        status = prepare(server);
    }
    if (status != GN_OK) {
        gn_server_destroy(server);
        return status;
    }
    *out = server;
    return GN_OK;
}

/* --- running --- */

gn_status gn_server_start(gn_server *server)
{
    GN_TRY(gn_serve_http_start(server));
    gn_serve_log_event(server, "info", "listening", "%s", server->url);
    if (!server->loopback && server->tls_cert == NULL) {
        gn_serve_log_event(
            server, "warning", "no_tls",
            "keys and texts cross the network in clear: give --tls-cert and --tls-key");
    }
    GN_TRY(gn_serve_models_open_first(server));
    atomic_store(&server->ready, true);
    return GN_OK;
}

const char *gn_server_url(const gn_server *server)
{
    return server->daemon != NULL ? server->url : NULL;
}

gn_status gn_server_reload(gn_server *server)
{
    gn_key_set *set = NULL;
    GN_TRY(gn_keys_load(server->options.key_file, server->options.key, &set));
    if (!server->loopback && gn_keys_count(set) == 0) {
        gn_keys_unref(set);
        return gn_base_fail(GN_E_ARG, "%s: no key is left, and others can reach the server",
                            server->options.key_file);
    }
    (void)pthread_mutex_lock(&server->keys_lock);
    gn_key_set *old = server->keys;
    server->keys = set;
    (void)pthread_mutex_unlock(&server->keys_lock);
    gn_keys_unref(old);
    gn_serve_log_event(server, "info", "reloaded", "%zu keys", gn_keys_count(set));
    return GN_OK;
}

bool gn_server_drain(gn_server *server, uint32_t ms)
{
    atomic_store(&server->draining, true);
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    (void)pthread_mutex_lock(&server->lock);
    while (server->n_calls > 0 &&
           pthread_cond_timedwait(&server->changed, &server->lock, &until) == 0) {
    }
    bool idle = server->n_calls == 0;
    (void)pthread_mutex_unlock(&server->lock);
    return idle;
}

void gn_server_destroy(gn_server *server)
{
    if (server == NULL) {
        return;
    }
    atomic_store(&server->draining, true);
    gn_serve_http_stop(server);
    gn_serve_models_fini(server);
    gn_keys_unref(server->keys);
    gn_free(server->tls_cert);
    gn_free(server->tls_key);
    (void)pthread_cond_destroy(&server->changed);
    (void)pthread_cond_destroy(&server->models_changed);
    (void)pthread_mutex_destroy(&server->lock);
    (void)pthread_mutex_destroy(&server->keys_lock);
    (void)pthread_mutex_destroy(&server->models_lock);
    gn_arena_fini(&server->copies);
    gn_free(server);
}

gn_status gn_server_new_key(const char *name, char key[GN_SERVER_KEY_BYTES],
                            char line[GN_SERVER_LINE_BYTES])
{
    return gn_keys_new(name, key, GN_SERVER_KEY_BYTES, line, GN_SERVER_LINE_BYTES);
}
