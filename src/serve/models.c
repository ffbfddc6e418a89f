/* The models behind the endpoint. A slot goes CLOSED → OPENING → OPEN → CLOSING → CLOSED; whoever moves it into
 * OPENING or CLOSING does the work without the lock, and all others wait for it. An OPEN slot with users is
 * never closed. */
#include "base/alloc.h"
#include "os/clock.h"
#include "os/memory.h"
#include "serve/formats.h"
#include "serve/server_impl.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

typedef enum slot_state { SLOT_CLOSED, SLOT_OPENING, SLOT_OPEN, SLOT_CLOSING } slot_state;

struct gn_model_slot {
    gn_serve_model pub;
    slot_state state;
    uint32_t n_users;
    uint64_t n_loads;
    uint64_t used_ns; /* when it was last given back */
    uint64_t file_bytes;
    char fingerprint[96];
    /* kept from the first time it was open */
    bool known, is_encoder, has_chat_template;
    int32_t n_ctx;
    char architecture[64];
};

static size_t n_slots(const gn_server *server)
{
    return server->slots != NULL ? server->options.n_models : 0;
}

gn_status gn_serve_models_init(gn_server *server)
{
    gn_server_options *o = &server->options;
    server->slots = gn_arena_calloc(&server->copies, o->n_models, sizeof *server->slots);
    server->stall = gn_arena_calloc(&server->copies, o->n_models, sizeof *server->stall);
    if (server->slots == NULL || server->stall == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < o->n_models; i++) {
        gn_model_slot *slot = &server->slots[i];
        slot->pub.index = i;
        slot->pub.name = o->models[i].name;
        slot->pub.path = o->models[i].path;
        struct stat st;
        if (stat(o->models[i].path, &st) == 0) {
            slot->pub.created = (int64_t)st.st_mtime;
            slot->file_bytes = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
        }
    }
    if (o->max_loaded == 0 || o->max_loaded > o->n_models) {
        o->max_loaded = (uint32_t)o->n_models;
    }
    if (o->model.kv_bytes == 0) {
        o->model.kv_bytes = gn_os_free_memory() / 2 / o->max_loaded;
    }
    return GN_OK;
}

/* --- opening and closing, without the lock --- */

static void close_slot(gn_model_slot *slot)
{
    gn_engine_destroy(slot->pub.engine);
    gn_formats_destroy(slot->pub.formats);
    gn_model_close(slot->pub.model);
    slot->pub.engine = NULL;
    slot->pub.formats = NULL;
    slot->pub.model = NULL;
}

static gn_status open_slot(gn_server *server, gn_model_slot *slot)
{
    const gn_server_options *o = &server->options;
    GN_TRY(gn_model_open(slot->pub.path, &o->model, &slot->pub.model));
    gn_model_info info = gn_model_get_info(slot->pub.model);
    gn_status status = GN_OK;
    if (!info.is_encoder) {
        gn_engine_options engine = {.max_waiting = o->max_waiting,
                                    .max_running = o->max_running,
                                    .no_prefix_cache = o->no_prefix_cache};
        status = gn_engine_create(slot->pub.model, &engine, &slot->pub.engine);
    }
    if (status == GN_OK) {
        status = gn_formats_create(&slot->pub.formats);
    }
    if (status != GN_OK) {
        close_slot(slot);
        return status;
    }
    static const char *const kv[] = {"f16", "q8", "fp8", "q4"};
    (void)snprintf(slot->fingerprint, sizeof slot->fingerprint, "gn-%s-%.8s-%s-%s-%llx-%llx",
                   gn_version(), gn_version_commit(), info.cpu_level, kv[o->model.kv_format],
                   (unsigned long long)slot->file_bytes, (unsigned long long)slot->pub.created);
    slot->pub.fingerprint = slot->fingerprint;
    return GN_OK;
}

static void note_known(gn_model_slot *slot)
{
    gn_model_info info = gn_model_get_info(slot->pub.model);
    slot->known = true;
    slot->is_encoder = info.is_encoder;
    slot->has_chat_template = info.has_chat_template;
    slot->n_ctx = info.n_ctx_train;
    (void)snprintf(slot->architecture, sizeof slot->architecture, "%s", info.architecture);
}

/* --- with the lock --- */

static uint32_t n_loaded(const gn_server *server)
{
    uint32_t n = 0;
    for (size_t i = 0; i < n_slots(server); i++) {
        n += server->slots[i].state != SLOT_CLOSED;
    }
    return n;
}

static gn_model_slot *least_used(gn_server *server)
{
    gn_model_slot *found = NULL;
    for (size_t i = 0; i < n_slots(server); i++) {
        gn_model_slot *slot = &server->slots[i];
        if (slot->state == SLOT_OPEN && slot->n_users == 0 &&
            (found == NULL || slot->used_ns < found->used_ns)) {
            found = slot;
        }
    }
    return found;
}

/* Close models until one more may be open. false: all are in use. The lock is let go meanwhile. */
static bool make_place(gn_server *server)
{
    while (n_loaded(server) >= server->options.max_loaded) {
        gn_model_slot *slot = least_used(server);
        if (slot == NULL) {
            return false;
        }
        slot->state = SLOT_CLOSING;
        (void)pthread_mutex_unlock(&server->models_lock);
        gn_serve_log_event(server, "info", "model_closed", "%s", slot->pub.name);
        close_slot(slot);
        (void)pthread_mutex_lock(&server->models_lock);
        slot->state = SLOT_CLOSED;
        (void)pthread_cond_broadcast(&server->models_changed);
    }
    return true;
}

/* CLOSED → OPEN, or CLOSED again. The lock is let go meanwhile. */
static gn_status load(gn_server *server, gn_model_slot *slot)
{
    slot->state = SLOT_OPENING;
    (void)pthread_mutex_unlock(&server->models_lock);
    uint64_t start = gn_os_now_ns();
    gn_status status = open_slot(server, slot);
    if (status == GN_OK) {
        gn_serve_log_event(server, "info", "model_opened", "%s in %.1f ms", slot->pub.name,
                           (double)(gn_os_now_ns() - start) / 1e6);
    } else {
        gn_serve_log_event(server, "warning", "model_failed", "%s", gn_error_message());
    }
    (void)pthread_mutex_lock(&server->models_lock);
    slot->state = status == GN_OK ? SLOT_OPEN : SLOT_CLOSED;
    slot->n_loads += status == GN_OK;
    if (status == GN_OK) {
        note_known(slot);
    }
    (void)pthread_cond_broadcast(&server->models_changed);
    return status;
}

static void wait_changed(gn_server *server)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)GN_SERVE_TICK_MS * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    (void)pthread_cond_timedwait(&server->models_changed, &server->models_lock, &until);
}

/* call: NULL at start. */
static gn_status take(gn_server *server, gn_call *call, gn_model_slot *slot)
{
    while (slot->state != SLOT_OPEN) {
        if (call != NULL && !gn_serve_alive(call)) {
            return gn_base_fail(GN_E_CANCELLED, "the client went away");
        }
        if (slot->state == SLOT_OPENING || slot->state == SLOT_CLOSING) {
            wait_changed(server);
            continue;
        }
        GN_REQUIRE(make_place(server), GN_E_UNAVAILABLE,
                   "the model %s is not loaded, and all that are loaded are in use",
                   slot->pub.name);
        if (slot->state == SLOT_CLOSED && n_loaded(server) < server->options.max_loaded) {
            GN_TRY(load(server, slot));
        }
    }
    slot->n_users++;
    return GN_OK;
}

/* --- the contract --- */

static gn_model_slot *find(gn_server *server, const char *name, size_t len)
{
    if (len == 0 || n_slots(server) == 1) {
        return &server->slots[0];
    }
    static const char latest[] = ":latest";
    size_t short_len = len;
    if (len > sizeof latest - 1 &&
        memcmp(name + len - (sizeof latest - 1), latest, sizeof latest - 1) == 0) {
        short_len = len - (sizeof latest - 1);
    }
    for (size_t i = 0; i < n_slots(server); i++) {
        const char *own = server->slots[i].pub.name;
        size_t own_len = strlen(own);
        if ((own_len == len || own_len == short_len) && memcmp(own, name, own_len) == 0) {
            return &server->slots[i];
        }
    }
    return NULL;
}

static void fail_take(gn_call *call, gn_status status, const gn_model_slot *slot)
{
    gn_serve_error error = {.status = 503, .param = "model", .retry_ms = 2000};
    char message[1000];
    (void)snprintf(message, sizeof message, "%s",
                   status == GN_E_CANCELLED ? "the client went away" : gn_error_message());
    gn_serve_fail(call, &error, "the model %s can't be used now: %s", slot->pub.name, message);
}

gn_status gn_serve_model_take(gn_call *call, const char *name, size_t name_len,
                              const gn_serve_model **out)
{
    gn_server *server = call->server;
    gn_model_slot *slot = find(server, name, name != NULL ? name_len : 0);
    if (slot == NULL) {
        gn_serve_error error = {.status = 404, .code = "model_not_found", .param = "model"};
        gn_serve_fail(call, &error,
                      "the model \"%.*s\" is not served here; GET /v1/models has the list",
                      name_len < 200 ? (int)name_len : 200, name);
        return GN_E_NOT_FOUND;
    }
    if (call->key != NULL && !gn_key_allows_model(call->key, slot->pub.name)) {
        gn_serve_error error = {.status = 403, .param = "model"};
        gn_serve_fail(call, &error, "this key may not use the model %s", slot->pub.name);
        return GN_E_REFUSED;
    }
    (void)snprintf(call->model, sizeof call->model, "%s", slot->pub.name);
    (void)pthread_mutex_lock(&server->models_lock);
    gn_status status = take(server, call, slot);
    (void)pthread_mutex_unlock(&server->models_lock);
    if (status != GN_OK) {
        fail_take(call, status, slot);
        return status;
    }
    *out = &slot->pub;
    return GN_OK;
}

void gn_serve_model_give(gn_server *server, const gn_serve_model *model)
{
    (void)pthread_mutex_lock(&server->models_lock);
    for (size_t i = 0; i < n_slots(server); i++) {
        gn_model_slot *slot = &server->slots[i];
        if (&slot->pub == model) {
            slot->n_users--;
            slot->used_ns = gn_os_now_ns();
        }
    }
    (void)pthread_cond_broadcast(&server->models_changed);
    (void)pthread_mutex_unlock(&server->models_lock);
}

size_t gn_serve_n_models(const gn_server *server)
{
    return n_slots(server);
}

void gn_serve_model_describe(gn_server *server, size_t i, gn_serve_model_info *out)
{
    memset(out, 0, sizeof *out);
    (void)pthread_mutex_lock(&server->models_lock);
    const gn_model_slot *slot = &server->slots[i];
    (void)snprintf(out->name, sizeof out->name, "%s", slot->pub.name);
    (void)snprintf(out->path, sizeof out->path, "%s", slot->pub.path);
    out->loaded = slot->state == SLOT_OPEN;
    out->is_encoder = slot->is_encoder;
    out->has_chat_template = slot->has_chat_template;
    out->n_users = slot->n_users;
    out->n_loads = slot->n_loads;
    out->file_bytes = slot->file_bytes;
    out->created = slot->pub.created;
    out->n_ctx = slot->n_ctx;
    (void)snprintf(out->architecture, sizeof out->architecture, "%s", slot->architecture);
    (void)pthread_mutex_unlock(&server->models_lock);
}

uint64_t gn_serve_models_n_loads(gn_server *server, size_t i)
{
    (void)pthread_mutex_lock(&server->models_lock);
    uint64_t n = server->slots[i].n_loads;
    (void)pthread_mutex_unlock(&server->models_lock);
    return n;
}

void gn_serve_models_visit(gn_server *server, void (*visit)(void *ctx, const gn_serve_model *model),
                           void *ctx)
{
    (void)pthread_mutex_lock(&server->models_lock);
    for (size_t i = 0; i < n_slots(server); i++) {
        if (server->slots[i].state == SLOT_OPEN) {
            visit(ctx, &server->slots[i].pub);
        }
    }
    (void)pthread_mutex_unlock(&server->models_lock);
}

gn_status gn_serve_models_open_first(gn_server *server)
{
    (void)pthread_mutex_lock(&server->models_lock);
    gn_status status = take(server, NULL, &server->slots[0]);
    (void)pthread_mutex_unlock(&server->models_lock);
    if (status == GN_OK) {
        gn_serve_model_give(server, &server->slots[0].pub);
    }
    return status;
}

void gn_serve_models_fini(gn_server *server)
{
    for (size_t i = 0; i < n_slots(server); i++) {
        close_slot(&server->slots[i]);
    }
}
