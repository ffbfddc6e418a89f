/* One call: its reply in the dialect of its route, and waiting for requests on behalf of a client that may go away. */
#include "base/alloc.h"
#include "base/json_write.h"
#include "os/clock.h"
#include "serve/server_impl.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* --- what the handler asks about the call --- */

gn_server *gn_serve_call_server(const gn_call *call)
{
    return call->server;
}

const char *gn_serve_call_id(const gn_call *call)
{
    return call->id;
}

const gn_key *gn_serve_call_key(const gn_call *call)
{
    return call->key;
}

const char *gn_serve_call_method(const gn_call *call)
{
    return call->method;
}

const char *gn_serve_call_path(const gn_call *call)
{
    return call->path;
}

const char *gn_serve_call_segment(const gn_call *call)
{
    return call->segment;
}

const char *gn_serve_call_header(const gn_call *call, const char *name)
{
    return MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
}

const char *gn_serve_call_query(const gn_call *call, const char *name)
{
    return MHD_lookup_connection_value(call->connection, MHD_GET_ARGUMENT_KIND, name);
}

gn_arena *gn_serve_call_arena(gn_call *call)
{
    return &call->arena;
}

const char *gn_serve_call_body(const gn_call *call, size_t *len)
{
    *len = call->body.len;
    return call->body.data != NULL ? call->body.data : "";
}

/* The name of the model, if the body is of the kind that has one: for the log alone. */
static void note_model(gn_call *call, const gn_json *body)
{
    const gn_json *model = gn_base_json_get(body, "model");
    if (model != NULL && model->type == GN_JSON_STRING) {
        (void)snprintf(call->model, sizeof call->model, "%s", model->text);
    }
}

gn_status gn_serve_call_json(gn_call *call, const gn_json **out)
{
    size_t len = 0;
    const char *text = gn_serve_call_body(call, &len);
    const gn_json *json = NULL;
    gn_status status = gn_base_json_parse(&call->arena, text, len, &json, NULL);
    if (status == GN_OK && json->type != GN_JSON_OBJECT) {
        status = gn_base_fail(GN_E_FORMAT, "expected a JSON object");
    }
    if (status == GN_E_NOMEM) {
        gn_serve_fail_status(call, status, NULL);
        return status;
    }
    if (status != GN_OK) {
        gn_serve_error error = {.status = 400};
        gn_serve_fail(call, &error, "the body is no valid request: %s", gn_error_message());
        return status;
    }
    note_model(call, json);
    *out = json;
    return GN_OK;
}

static gn_status read_priority(gn_call *call, gn_request_options *options)
{
    static const char *const names[GN_N_PRIORITIES] = {"realtime", "interactive", "batch"};
    const char *value = gn_serve_call_header(call, "x-ganglion-priority");
    if (value == NULL) {
        bool lower = call->key != NULL && !gn_key_allows_class(call->key, options->priority);
        options->priority = lower ? GN_PRIORITY_BATCH : options->priority;
        return GN_OK;
    }
    for (int i = 0; i < GN_N_PRIORITIES; i++) {
        if (strcmp(value, names[i]) != 0) {
            continue;
        }
        if (call->key != NULL && !gn_key_allows_class(call->key, (gn_priority)i)) {
            gn_serve_error error = {.status = 403, .param = "x-ganglion-priority"};
            gn_serve_fail(call, &error, "this key may not use the class %s", value);
            return GN_E_REFUSED;
        }
        options->priority = (gn_priority)i;
        return GN_OK;
    }
    gn_serve_fail_field(call, "x-ganglion-priority",
                        "found %.40s, expected realtime, interactive or batch", value);
    return GN_E_ARG;
}

static gn_status read_deadline(gn_call *call, gn_request_options *options)
{
    const char *value = gn_serve_call_header(call, "x-ganglion-deadline-ms");
    if (value == NULL) {
        return GN_OK;
    }
    char *end = NULL;
    errno = 0;
    unsigned long ms = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || ms < 1 ||
        ms > 86400000ul) {
        gn_serve_fail_field(call, "x-ganglion-deadline-ms",
                            "found %.40s, expected milliseconds from 1 to 86400000", value);
        return GN_E_ARG;
    }
    options->deadline_ns = gn_os_now_ns() + (uint64_t)ms * 1000000u;
    return GN_OK;
}

gn_status gn_serve_call_defaults(gn_call *call, gn_request_options *options)
{
    options->salt = call->key != NULL ? gn_key_salt(call->key) : 0;
    GN_TRY(read_priority(call, options));
    call->priority = options->priority;
    return read_deadline(call, options);
}

/* --- errors --- */

static const char *error_type(gn_dialect dialect, unsigned status)
{
    bool anthropic = dialect == GN_DIALECT_ANTHROPIC;
    switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return anthropic ? "request_too_large" : "invalid_request_error";
    case 429: return "rate_limit_error";
    case 500: return anthropic ? "api_error" : "server_error";
    case 503: return anthropic ? "overloaded_error" : "unavailable_error";
    default: return "invalid_request_error";
    }
}

gn_status gn_serve_error_object(const gn_call *call, const gn_serve_error *error,
                                const char *message, gn_buf *out)
{
    gn_json_out json;
    gn_base_json_out(&json, out);
    gn_base_put_object(&json, NULL);
    if (call->dialect == GN_DIALECT_OLLAMA) {
        gn_base_put_str(&json, "error", message);
        gn_base_put_end(&json);
        return json.status;
    }
    const char *type = error->type != NULL ? error->type : error_type(call->dialect, error->status);
    if (call->dialect == GN_DIALECT_ANTHROPIC) {
        gn_base_put_str(&json, "type", "error");
    }
    gn_base_put_object(&json, "error");
    gn_base_put_str(&json, "type", type);
    gn_base_put_str(&json, "message", message);
    if (call->dialect == GN_DIALECT_OPENAI) {
        gn_base_put_str(&json, "param", error->param);
        gn_base_put_str(&json, "code", error->code);
    }
    if (json.status == GN_OK && error->extra != NULL) {
        json.status = gn_buf_printf(out, ",%s", error->extra);
    }
    gn_base_put_end(&json);
    if (call->dialect == GN_DIALECT_ANTHROPIC) {
        gn_base_put_str(&json, "request_id", call->id);
    }
    gn_base_put_end(&json);
    return json.status;
}

static void fail_with(gn_call *call, const gn_serve_error *error, const char *message)
{
    if (call->replied) {
        return;
    }
    if (error->retry_ms > 0) {
        char text[24];
        (void)snprintf(text, sizeof text, "%u", (error->retry_ms + 999) / 1000);
        gn_serve_header(call, "Retry-After", text);
        (void)snprintf(text, sizeof text, "%u", error->retry_ms);
        gn_serve_header(call, "retry-after-ms", text);
    }
    (void)snprintf(call->why, sizeof call->why, "%s", message);
    gn_buf body = {0};
    if (gn_serve_error_object(call, error, message, &body) != GN_OK) {
        gn_buf_clear(&body);
    }
    gn_serve_reply(call, error->status, "application/json", &body);
}

void gn_serve_fail(gn_call *call, const gn_serve_error *error, const char *fmt, ...)
{
    char message[1100];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    fail_with(call, error, message);
}

void gn_serve_fail_status(gn_call *call, gn_status status, const char *param)
{
    gn_serve_error error = {.param = param};
    switch (status) {
    case GN_E_ARG:
    case GN_E_FORMAT:
    case GN_E_UNSUPPORTED:
    case GN_E_REFUSED:
    case GN_E_LIMIT: error.status = 400; break;
    case GN_E_NOT_FOUND: error.status = 404; break;
    case GN_E_UNAVAILABLE:
        error.status = atomic_load(&call->server->draining) ? 503 : 429;
        error.code = error.status == 429 ? "queue_full" : NULL;
        error.retry_ms = 1000;
        break;
    case GN_E_NOMEM:
    case GN_E_NO_PAGES:
    case GN_E_CANCELLED:
        error.status = 503;
        error.retry_ms = 1000;
        break;
    default: error.status = 500;
    }
    const char *message = gn_error_message();
    fail_with(call, &error, message[0] != '\0' ? message : gn_status_text(status));
}

void gn_serve_fail_field(gn_call *call, const char *param, const char *fmt, ...)
{
    char message[1000];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    gn_serve_error error = {.status = 400, .param = param};
    gn_serve_fail(call, &error, "%s: %s", param, message);
}

/* --- replies --- */

void gn_serve_header(gn_call *call, const char *name, const char *value)
{
    gn_call_header *header = gn_arena_alloc(&call->arena, sizeof *header);
    char *name_copy = gn_arena_strndup(&call->arena, name, strlen(name));
    char *value_copy = gn_arena_strndup(&call->arena, value, strlen(value));
    if (header == NULL || name_copy == NULL || value_copy == NULL) {
        return; /* a reply without it is better than none */
    }
    for (char *at = value_copy; *at != '\0'; at++) {
        *at = *at < ' ' || *at == 0x7f ? ' ' : *at;
    }
    *header = (gn_call_header){.next = call->headers, .name = name_copy, .value = value_copy};
    call->headers = header;
}

static void put_cors(gn_call *call, struct MHD_Response *response)
{
    const char *origin = gn_serve_call_header(call, "Origin");
    const gn_server_options *o = &call->server->options;
    for (size_t i = 0; origin != NULL && i < o->n_origins; i++) {
        if (strcasecmp(origin, o->origins[i]) == 0) {
            (void)MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
            (void)MHD_add_response_header(response, "Access-Control-Expose-Headers",
                                          "x-request-id, retry-after-ms");
            (void)MHD_add_response_header(response, "Vary", "Origin");
            return;
        }
    }
}

static void send_response(gn_call *call, unsigned status, const char *type,
                          struct MHD_Response *response)
{
    call->replied = true;
    call->status = status;
    if (type != NULL) {
        (void)MHD_add_response_header(response, "Content-Type", type);
    }
    (void)MHD_add_response_header(response, "x-request-id", call->id);
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    bool cached = false;
    for (const gn_call_header *h = call->headers; h != NULL; h = h->next) {
        cached = cached || strcasecmp(h->name, "Cache-Control") == 0;
        (void)MHD_add_response_header(response, h->name, h->value);
    }
    if (!cached) {
        (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    }
    put_cors(call, response);
    call->queued = MHD_queue_response(call->connection, status, response);
    MHD_destroy_response(response);
}

void gn_serve_reply(gn_call *call, unsigned status, const char *type, gn_buf *body)
{
    size_t len = body->len;
    char *data = gn_buf_take(body);
    if (call->replied) {
        gn_free(data);
        return;
    }
    struct MHD_Response *response =
        data != NULL ? MHD_create_response_from_buffer_with_free_callback(len, data, gn_free)
                     : MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        gn_free(data);
        call->queued = MHD_NO;
        return;
    }
    send_response(call, status, type, response);
}

/* --- streams --- */

static void end_stream(gn_call *call)
{
    if (call->done != NULL) {
        call->done(call->stream_ctx);
        call->done = NULL;
    }
    call->next = NULL;
    call->stream_ended = true;
}

static ssize_t read_stream(void *ctx, uint64_t pos, char *out, size_t max)
{
    gn_call *call = ctx;
    (void)pos;
    while (call->chunk_sent == call->chunk.len) {
        if (call->stream_ended) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        gn_buf_clear(&call->chunk);
        call->chunk_sent = 0;
        if (!call->next(call->stream_ctx, &call->chunk)) {
            end_stream(call);
        }
    }
    size_t n = call->chunk.len - call->chunk_sent;
    n = n < max ? n : max;
    memcpy(out, call->chunk.data + call->chunk_sent, n);
    call->chunk_sent += n;
    return (ssize_t)n;
}

static void free_stream(void *ctx)
{
    gn_serve_call_unref(ctx);
}

void gn_serve_stream(gn_call *call, const char *type, bool (*next)(void *ctx, gn_buf *out),
                     void (*done)(void *ctx), void *ctx)
{
    assert(!call->replied);
    call->next = next;
    call->done = done;
    call->stream_ctx = ctx;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_stream, call, free_stream);
    if (response == NULL) {
        end_stream(call);
        call->queued = MHD_NO;
        return;
    }
    call->refs++;
    send_response(call, 200, type, response);
}

/* --- waiting --- */

bool gn_serve_alive(gn_call *call)
{
    if (call->gone || atomic_load_explicit(&call->server->ending, memory_order_relaxed)) {
        return false;
    }
    struct pollfd fd = {.fd = call->conn->fd, .events = POLLRDHUP};
    if (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0) {
        call->gone = true;
        atomic_fetch_add(&call->server->metrics.n_gone, 1);
        return false;
    }
    return true;
}

/* NULL: out of memory, and the event is not counted. */
static gn_call_track *track(gn_call *call, const gn_request *request)
{
    for (size_t i = 0; i < call->n_tracks; i++) {
        if (call->tracks[i].request == request && !call->tracks[i].ended) {
            return &call->tracks[i];
        }
    }
    gn_call_track *tracks =
        gn_realloc_array(call->tracks, call->n_tracks + 1, sizeof *call->tracks);
    if (tracks == NULL) {
        return NULL;
    }
    call->tracks = tracks;
    tracks[call->n_tracks] = (gn_call_track){.request = request};
    return &tracks[call->n_tracks++];
}

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) * 1e-9 : 0.0;
}

static void note_end(gn_call *call, const gn_request_usage *usage)
{
    gn_metrics *m = &call->server->metrics;
    uint64_t now = usage->end_ns != 0 ? usage->end_ns : gn_os_now_ns();
    gn_histogram_add(&m->request, seconds(usage->submit_ns, now));
    uint64_t start = usage->start_ns != 0 ? usage->start_ns : now;
    gn_histogram_add(&m->queue[call->priority], seconds(usage->submit_ns, start));
    call->queue_ms = seconds(usage->submit_ns, start) * 1e3;
    uint64_t n_prompt = (uint64_t)usage->n_prompt;
    uint64_t n_generated = (uint64_t)usage->n_generated;
    call->n_prompt += n_prompt;
    call->n_generated += n_generated;
    call->n_cached += (uint64_t)usage->n_cached;
    atomic_fetch_add(&m->n_prompt_tok, n_prompt);
    atomic_fetch_add(&m->n_generated_tok, n_generated);
    atomic_fetch_add(&m->n_cached_tok, (uint64_t)usage->n_cached);
    if (call->key != NULL) {
        gn_key_charge(call->key, now, n_prompt + n_generated);
    }
}

static void note_event(gn_call *call, gn_request *request, const gn_event *event)
{
    gn_call_track *t = track(call, request);
    if (t == NULL) {
        return;
    }
    if (event->type == GN_EVENT_TOKEN) {
        if (t->last_ns != 0) {
            gn_histogram_add(&call->server->metrics.inter_token,
                             seconds(t->last_ns, event->time_ns));
        } else {
            gn_request_usage usage = gn_request_get_usage(request);
            double s = seconds(usage.submit_ns, event->time_ns);
            gn_histogram_add(&call->server->metrics.first_token, s);
            call->first_ms = call->first_ms < 0 ? s * 1e3 : call->first_ms;
        }
        t->last_ns = event->time_ns;
    } else if (event->type == GN_EVENT_END) {
        t->ended = true;
        gn_request_usage usage = gn_request_get_usage(request);
        note_end(call, &usage);
    }
}

/* Looks after the client once a tick, also while events come without a pause. */
static bool still_alive(gn_call *call, uint64_t now_ns)
{
    if (now_ns - call->looked_ns < GN_SERVE_TICK_MS * 1000000ull) {
        return true;
    }
    call->looked_ns = now_ns;
    return gn_serve_alive(call);
}

gn_serve_wait gn_serve_wait_event(gn_call *call, gn_request *request, int32_t ms, gn_event *event)
{
    for (;;) {
        int32_t slice = ms < GN_SERVE_TICK_MS ? ms : GN_SERVE_TICK_MS;
        bool is_there = gn_request_wait(request, slice, event);
        if (is_there) {
            note_event(call, request, event);
        }
        if (!still_alive(call, gn_os_now_ns())) {
            return GN_SERVE_GONE;
        }
        if (is_there) {
            return GN_SERVE_EVENT;
        }
        ms -= slice;
        if (ms <= 0) {
            return GN_SERVE_IDLE;
        }
    }
}

void gn_serve_note_tokens(gn_call *call, uint64_t n_prompt)
{
    call->n_prompt += n_prompt;
    atomic_fetch_add(&call->server->metrics.n_prompt_tok, n_prompt);
    if (call->key != NULL) {
        gn_key_charge(call->key, gn_os_now_ns(), n_prompt);
    }
}

void gn_serve_note_unknown(gn_call *call, uint64_t n_fields)
{
    atomic_fetch_add(&call->server->metrics.n_unknown_fields, n_fields);
}

/* --- life --- */

gn_call *gn_serve_call_create(gn_server *server, struct MHD_Connection *connection, gn_conn *conn)
{
    gn_call *call = gn_calloc(1, sizeof *call);
    if (call == NULL) {
        return NULL;
    }
    call->server = server;
    call->connection = connection;
    call->conn = conn;
    call->refs = 1;
    call->start_ns = gn_os_now_ns();
    call->first_ms = -1;
    call->queue_ms = -1;
    call->priority = GN_PRIORITY_INTERACTIVE;
    call->queued = MHD_YES;
    gn_arena_init(&call->arena, 0);
    (void)snprintf(call->id, sizeof call->id, "req_%012llx%08llx",
                   (unsigned long long)(server->id_seed & 0xffffffffffffull),
                   (unsigned long long)atomic_fetch_add(&server->next_id, 1));
    return call;
}

void gn_serve_call_finish(gn_call *call)
{
    gn_server *server = call->server;
    end_stream(call);
    if (call->route != NULL) {
        atomic_fetch_add(
            &server->metrics.calls[call->route_index][gn_metric_status_column(call->status)], 1);
        gn_histogram_add(&server->metrics.call, seconds(call->start_ns, gn_os_now_ns()));
    }
    gn_serve_log_call(call);
    atomic_fetch_sub(&server->body_bytes, call->n_counted);
    call->n_counted = 0;
    gn_buf_fini(&call->body);
    gn_keys_unref(call->keys);
    call->keys = NULL;
    call->key = NULL;
    if (call->counted) {
        (void)pthread_mutex_lock(&server->lock);
        server->n_calls--;
        (void)pthread_cond_broadcast(&server->changed);
        (void)pthread_mutex_unlock(&server->lock);
    }
}

void gn_serve_call_unref(gn_call *call)
{
    if (--call->refs > 0) {
        return;
    }
    gn_buf_fini(&call->chunk);
    gn_free(call->tracks);
    gn_arena_fini(&call->arena);
    gn_free(call);
}
