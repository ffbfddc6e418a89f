/* Connections: libmicrohttpd reads and writes; here a request is let in or refused, matched with a route, and handed to
 * its handler.
 *
 * Refused before the body is read: hosts and origins that are not ours (DNS rebinding, pages elsewhere), missing
 * keys, unknown addresses, bodies that are too large. A small body is read all the same, so that the client gets to
 * read the reply. A connection that does not come to the point is shut down by the watch thread: the time to send
 * headers and body is bounded in all, not between two bytes. */
#include "base/alloc.h"
#include "os/clock.h"
#include "serve/server_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#define STACK_BYTES                                                                                \
    (8u << 20) /* of a connection: readers of nested input, bounded in depth, fit well */

static const gn_route *const tables[] = {
    gn_serve_routes_openai,    gn_serve_routes_responses, gn_serve_routes_anthropic,
    gn_serve_routes_ollama,    gn_serve_routes_native,    gn_serve_routes_operate,
    gn_serve_routes_dashboard,
};

const gn_route *gn_serve_route_at(unsigned i)
{
    for (size_t t = 0; t < GN_COUNTOF(tables); t++) {
        for (const gn_route *row = tables[t]; row->method != NULL; row++) {
            if (i-- == 0) {
                return row;
            }
        }
    }
    return NULL;
}

/* --- routes --- */

/* Does the path fit the row's? *segment: what stands for "{…}". */
static bool path_fits(const gn_route *row, const char *path, const char **segment)
{
    const char *open = strchr(row->path, '{');
    if (open == NULL) {
        return strcmp(row->path, path) == 0;
    }
    size_t head = (size_t)(open - row->path);
    if (strncmp(row->path, path, head) != 0 || path[head] == '\0') {
        return false;
    }
    *segment = path + head;
    return true; /* names of models have slashes */
}

static gn_dialect dialect_of(const char *path)
{
    if (strncmp(path, "/api/", 5) == 0) {
        return GN_DIALECT_OLLAMA;
    }
    return strncmp(path, "/v1/messages", 12) == 0 ? GN_DIALECT_ANTHROPIC : GN_DIALECT_OPENAI;
}

static void refuse(gn_call *call, unsigned status, const char *code, const char *message)
{
    call->refused = true;
    call->refusal = (gn_serve_error){.status = status, .code = code};
    (void)snprintf(call->refusal_message, sizeof call->refusal_message, "%s", message);
}

static void find_route(gn_call *call)
{
    bool head = strcmp(call->method, "HEAD") == 0;
    const char *method = head ? "GET" : call->method;
    char allow[64] = "";
    const gn_route *row;
    for (unsigned i = 0; (row = gn_serve_route_at(i)) != NULL; i++) {
        const char *segment = NULL;
        if (!path_fits(row, call->path, &segment)) {
            continue;
        }
        call->dialect = row->dialect;
        if (strcmp(row->method, method) == 0) {
            call->route = row;
            call->route_index = i < GN_METRIC_ROUTES ? i : GN_METRIC_ROUTES - 1;
            call->segment = segment;
            return;
        }
        size_t len = strlen(allow);
        (void)snprintf(allow + len, sizeof allow - len, "%s%s", len > 0 ? ", " : "", row->method);
    }
    if (allow[0] != '\0') {
        gn_serve_header(call, "Allow", allow);
        refuse(call, 405, "method_not_allowed", "this address knows other methods: see Allow");
    } else {
        refuse(call, 404, "not_found", "no such address; /openapi.json has the list");
    }
}

/* --- who may ask --- */

/* The host without its port; [::1] without brackets. */
static size_t bare_host(const char *host, char *out, size_t cap)
{
    size_t len = 0;
    if (host[0] == '[') {
        host++;
        len = strcspn(host, "]");
    } else {
        len = strcspn(host, ":");
    }
    len = len < cap ? len : cap - 1;
    memcpy(out, host, len);
    out[len] = '\0';
    return len;
}

static bool is_loopback_name(const char *host)
{
    struct in_addr v4;
    if (strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0) {
        return true;
    }
    return inet_pton(AF_INET, host, &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

static bool is_our_host(const gn_server *server, const char *host)
{
    char bare[256];
    (void)bare_host(host, bare, sizeof bare);
    if (is_loopback_name(bare) || strcasecmp(bare, server->options.host) == 0) {
        return true;
    }
    for (size_t i = 0; i < server->options.n_hosts; i++) {
        if (strcasecmp(bare, server->options.hosts[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_our_origin(const gn_call *call, const char *origin)
{
    const gn_server_options *o = &call->server->options;
    for (size_t i = 0; i < o->n_origins; i++) {
        if (strcasecmp(origin, o->origins[i]) == 0) {
            return true;
        }
    }
    const char *host = gn_serve_call_header(call, "Host");
    const char *at = strstr(origin, "://");
    return host != NULL && at != NULL && strcasecmp(at + 3, host) == 0;
}

/* The key of the call: *text, *len; false: none. */
static bool find_key_text(const gn_call *call, const char **text, size_t *len)
{
    const char *bearer = gn_serve_call_header(call, "Authorization");
    if (bearer != NULL && strncasecmp(bearer, "Bearer ", 7) == 0) {
        bearer += 7 + strspn(bearer + 7, " ");
        *text = bearer;
        *len = strcspn(bearer, " ");
        return true;
    }
    *text = gn_serve_call_header(call, "x-api-key");
    *text = *text != NULL ? *text : gn_serve_call_header(call, "api-key");
    *len = *text != NULL ? strlen(*text) : 0;
    return *text != NULL;
}

static void check_key(gn_call *call)
{
    gn_server *server = call->server;
    (void)pthread_mutex_lock(&server->keys_lock);
    call->keys = gn_keys_ref(server->keys);
    (void)pthread_mutex_unlock(&server->keys_lock);
    if (gn_keys_count(call->keys) == 0) {
        return;
    }
    const char *text = NULL;
    size_t len = 0;
    bool given = find_key_text(call, &text, &len);
    call->key = given ? gn_keys_find(call->keys, text, len) : NULL;
    if (call->route == NULL || call->route->access == GN_ACCESS_OPEN) {
        return;
    }
    if (call->key == NULL) {
        gn_serve_header(call, "WWW-Authenticate", "Bearer");
        refuse(call, 401, "invalid_api_key",
               given
                   ? "this API key is not known here"
                   : "no API key: send it as \"Authorization: Bearer KEY\" or \"x-api-key: KEY\"");
    } else if (call->route->access == GN_ACCESS_ADMIN && !gn_key_is_admin(call->key)) {
        refuse(call, 403, NULL, "this key lacks the right \"admin\"");
    }
}

static void let_in(gn_call *call)
{
    gn_server *server = call->server;
    const char *host = gn_serve_call_header(call, "Host");
    const char *origin = gn_serve_call_header(call, "Origin");
    if (server->loopback && host != NULL && !is_our_host(server, host)) {
        refuse(call, 403, "host_not_allowed",
               "this name in the Host header is not ours; `hosts` allows more");
    } else if (origin != NULL && !is_our_origin(call, origin)) {
        refuse(call, 403, "origin_not_allowed",
               "pages of this origin may not call the server; `origins` allows more");
    } else {
        check_key(call);
    }
    if (call->refused && call->refusal.status != 404 && call->refusal.status != 405) {
        atomic_fetch_add(&server->metrics.n_refused, 1);
    }
}

/* A page asks whether it may call. */
static bool answer_preflight(gn_call *call)
{
    const char *origin = gn_serve_call_header(call, "Origin");
    if (strcmp(call->method, "OPTIONS") != 0 || origin == NULL || !is_our_origin(call, origin)) {
        return false;
    }
    gn_serve_header(call, "Access-Control-Allow-Methods", "GET, POST, DELETE");
    const char *wanted = gn_serve_call_header(call, "Access-Control-Request-Headers");
    gn_serve_header(call, "Access-Control-Allow-Headers",
                    wanted != NULL ? wanted : "Authorization, Content-Type");
    gn_serve_header(call, "Access-Control-Max-Age", "600");
    gn_buf none = {0};
    gn_serve_reply(call, 204, NULL, &none);
    return true;
}

/* --- a request comes in --- */

static void set_deadline(gn_server *server, gn_conn *conn, uint32_t ms)
{
    (void)pthread_mutex_lock(&server->lock);
    conn->deadline_ns = ms > 0 ? gn_os_now_ns() + (uint64_t)ms * 1000000u : 0;
    (void)pthread_mutex_unlock(&server->lock);
}

static const char *fixed_method(const char *method)
{
    static const char *const names[] = {"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"};
    for (size_t i = 0; i < GN_COUNTOF(names); i++) {
        if (strcmp(method, names[i]) == 0) {
            return names[i];
        }
    }
    return "other";
}

/* Bytes of the body that were announced; UINT64_MAX: not said. */
static uint64_t announced(const gn_call *call)
{
    const char *length = gn_serve_call_header(call, "Content-Length");
    if (length == NULL) {
        return gn_serve_call_header(call, "Transfer-Encoding") != NULL ? UINT64_MAX : 0;
    }
    return strtoull(length, NULL, 10);
}

static enum MHD_Result begin(gn_server *server, struct MHD_Connection *connection, const char *url,
                             const char *method, void **state)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    gn_conn *conn = info != NULL ? info->socket_context : NULL;
    gn_call *call = conn != NULL ? gn_serve_call_create(server, connection, conn) : NULL;
    if (call == NULL) {
        return MHD_NO;
    }
    *state = call;
    set_deadline(server, conn, server->options.upload_ms);
    call->method = fixed_method(method);
    call->path = gn_arena_strndup(&call->arena, url, strlen(url));
    if (call->path == NULL) {
        return MHD_NO;
    }
    call->dialect = dialect_of(url);
    uint64_t n = announced(call);
    if (answer_preflight(call)) {
        return call->queued;
    }
    find_route(call);
    let_in(call);
    if (n != UINT64_MAX && n > server->options.max_body_bytes) {
        char message[96];
        (void)snprintf(message, sizeof message, "the body has %llu bytes, more than %llu",
                       (unsigned long long)n, (unsigned long long)server->options.max_body_bytes);
        refuse(call, 413, "body_too_large", message);
    }
    if (call->refused && n > GN_SERVE_DISCARD_BYTES) {
        gn_serve_fail(call, &call->refusal, "%s", call->refusal_message);
        return call->queued;
    }
    return MHD_YES;
}

static void take_body(gn_call *call, const char *data, size_t len)
{
    gn_server *server = call->server;
    if (call->refused || call->too_large || call->crowded) {
        return;
    }
    if (call->body.len + len > server->options.max_body_bytes) {
        call->too_large = true;
    } else if (atomic_fetch_add(&server->body_bytes, len) + len > GN_SERVE_ALL_BODIES) {
        atomic_fetch_sub(&server->body_bytes, len);
        call->crowded = true;
    } else {
        call->n_counted += len;
        call->crowded = gn_buf_append(&call->body, data, len) != GN_OK;
    }
}

/* May it run? Counts it where it may. */
static bool admit(gn_call *call)
{
    gn_server *server = call->server;
    gn_serve_error busy = {.status = 503, .retry_ms = 1000};
    if (call->refused) {
        gn_serve_fail(call, &call->refusal, "%s", call->refusal_message);
        return false;
    }
    if (call->too_large) {
        gn_serve_error error = {.status = 413, .code = "body_too_large"};
        gn_serve_fail(call, &error, "the body has more than %llu bytes",
                      (unsigned long long)server->options.max_body_bytes);
        return false;
    }
    if (call->crowded) {
        gn_serve_fail(call, &busy, "no memory for the body now");
        return false;
    }
    bool counts = call->route->access != GN_ACCESS_OPEN;
    if (counts && atomic_load(&server->draining)) {
        gn_serve_fail(call, &busy, "the server is stopping");
        return false;
    }
    uint32_t retry_ms = 0;
    if (call->key != NULL && strcmp(call->route->method, "POST") == 0 &&
        !gn_key_admit(call->key, gn_os_now_ns(), &retry_ms)) {
        gn_serve_error error = {.status = 429, .code = "rate_limit_exceeded", .retry_ms = retry_ms};
        gn_serve_fail(call, &error, "the limit of this key is used up");
        return false;
    }
    (void)pthread_mutex_lock(&server->lock);
    server->n_calls++;
    (void)pthread_mutex_unlock(&server->lock);
    call->counted = true;
    return true;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **state)
{
    (void)version;
    if (*state == NULL) {
        return begin(ctx, connection, url, method, state);
    }
    gn_call *call = *state;
    if (*len > 0) {
        take_body(call, data, *len);
        *len = 0;
        return MHD_YES;
    }
    if (call->replied) {
        return MHD_YES;
    }
    set_deadline(call->server, call->conn, 0);
    if (admit(call)) {
        call->route->handler(call);
        if (!call->replied) {
            gn_serve_error error = {.status = 500};
            gn_serve_fail(call, &error, "the request had no answer");
        }
    }
    return call->queued;
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    (void)connection;
    gn_call *call = *state;
    *state = NULL;
    if (call == NULL) {
        return;
    }
    if (code == MHD_REQUEST_TERMINATED_CLIENT_ABORT || code == MHD_REQUEST_TERMINATED_WITH_ERROR) {
        call->gone = true;
    }
    gn_conn *conn = call->conn;
    gn_serve_call_finish(call);
    gn_serve_call_unref(call);
    gn_server *server = ctx;
    set_deadline(server, conn, server->options.idle_ms);
}

/* --- connections --- */

static void on_connection(void *ctx, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    gn_server *server = ctx;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        gn_conn *conn = info != NULL ? gn_calloc(1, sizeof *conn) : NULL;
        if (conn == NULL) {
            return; /* its requests are refused in begin() */
        }
        conn->fd = info->connect_fd;
        conn->deadline_ns = gn_os_now_ns() + (uint64_t)server->options.idle_ms * 1000000u;
        (void)pthread_mutex_lock(&server->lock);
        conn->next = server->conns;
        if (conn->next != NULL) {
            conn->next->prev = conn;
        }
        server->conns = conn;
        server->n_conns++;
        (void)pthread_mutex_unlock(&server->lock);
        *socket_context = conn;
        return;
    }
    gn_conn *conn = *socket_context;
    *socket_context = NULL;
    if (conn == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&server->lock);
    *(conn->prev != NULL ? &conn->prev->next : &server->conns) = conn->next;
    if (conn->next != NULL) {
        conn->next->prev = conn->prev;
    }
    server->n_conns--;
    (void)pthread_mutex_unlock(&server->lock);
    gn_free(conn);
}

static void *watch(void *ctx)
{
    gn_server *server = ctx;
    (void)pthread_mutex_lock(&server->lock);
    while (!atomic_load(&server->ending)) {
        uint64_t now = gn_os_now_ns();
        for (gn_conn *conn = server->conns; conn != NULL; conn = conn->next) {
            if (conn->deadline_ns != 0 && now >= conn->deadline_ns && !conn->shut) {
                conn->shut = true;
                (void)shutdown(conn->fd, SHUT_RDWR);
                atomic_fetch_add(&server->metrics.n_dropped, 1);
            }
        }
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 200000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        (void)pthread_cond_timedwait(&server->changed, &server->lock, &until);
    }
    (void)pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* --- start and stop --- */

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} address;

static gn_status read_address(const gn_server *server, address *out, bool *v6)
{
    const char *host = server->options.host;
    host = strcasecmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    memset(out, 0, sizeof *out);
    *v6 = inet_pton(AF_INET6, host, &out->v6.sin6_addr) == 1;
    if (*v6) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(server->options.port);
        return GN_OK;
    }
    GN_REQUIRE(inet_pton(AF_INET, host, &out->v4.sin_addr) == 1, GN_E_ARG,
               "host: found %s, expected an IP address or localhost", host);
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(server->options.port);
    return GN_OK;
}

static void drop_message(void *ctx, const char *fmt, va_list args)
{
    (void)ctx;
    (void)fmt;
    (void)args;
}

static gn_status find_url(gn_server *server, bool v6)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    GN_REQUIRE(info != NULL, GN_E_UNAVAILABLE, "the server has no port");
    (void)snprintf(server->url, sizeof server->url, "%s://%s%s%s:%u",
                   server->tls_cert != NULL ? "https" : "http", v6 ? "[" : "", server->options.host,
                   v6 ? "]" : "", info->port);
    return GN_OK;
}

gn_status gn_serve_http_start(gn_server *server)
{
    address where;
    bool v6 = false;
    GN_TRY(read_address(server, &where, &v6));
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | MHD_USE_ERROR_LOG;
    flags |= v6 ? MHD_USE_IPv6 : 0u;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, server->tls_cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, server->tls_key},
        {MHD_OPTION_END, 0, NULL},
    };
    if (server->tls_cert != NULL) {
        flags |= MHD_USE_TLS;
    } else {
        tls[0] = tls[2];
    }
    const gn_server_options *o = &server->options;
    server->daemon = MHD_start_daemon(
        flags, o->port, NULL, NULL, on_request, server, MHD_OPTION_SOCK_ADDR, &where.any,
        MHD_OPTION_EXTERNAL_LOGGER, drop_message, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)o->max_connections, MHD_OPTION_CONNECTION_TIMEOUT, o->idle_ms / 1000 + 1,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)65536, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)1 << 20, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    GN_REQUIRE(server->daemon != NULL, GN_E_UNAVAILABLE, "cannot listen on %s port %u: %s", o->host,
               o->port, errno != 0 ? strerror(errno) : "TLS files are refused");
    GN_TRY(find_url(server, v6));
    GN_REQUIRE(pthread_create(&server->watch, NULL, watch, server) == 0, GN_E_UNAVAILABLE,
               "no thread");
    server->watching = true;
    return GN_OK;
}

void gn_serve_http_stop(gn_server *server)
{
    (void)pthread_mutex_lock(&server->lock);
    atomic_store(&server->ending, true);
    (void)pthread_cond_broadcast(&server->changed);
    (void)pthread_mutex_unlock(&server->lock);
    if (server->watching) {
        (void)pthread_join(server->watch, NULL);
        server->watching = false;
    }
    if (server->daemon != NULL) {
        MHD_stop_daemon(server->daemon);
        server->daemon = NULL;
    }
}
