/* The log: one JSON object a line. What clients asked is not in it, unless the options say so. */
#include "base/json_write.h"
#include "os/clock.h"
#include "serve/server_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static void begin(gn_json_out *json, gn_buf *line, const char *level, const char *event)
{
    struct timespec now;
    struct tm tm;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &tm);
    char text[40];
    size_t len = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(text + len, sizeof text - len, ".%03dZ", (int)(now.tv_nsec / 1000000));
    gn_base_json_out(json, line);
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "time", text);
    gn_base_put_str(json, "level", level);
    gn_base_put_str(json, "event", event);
}

static void end(const gn_server *server, gn_json_out *json, gn_buf *line)
{
    gn_base_put_end(json);
    if (json->status == GN_OK) {
        server->options.log(server->options.log_ctx, line->data, line->len);
    }
    gn_buf_fini(line);
}

void gn_serve_log_event(gn_server *server, const char *level, const char *event, const char *fmt,
                        ...)
{
    if (server->options.log == NULL) {
        return;
    }
    char message[1024];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    gn_json_out json;
    gn_buf line = {0};
    begin(&json, &line, level, event);
    gn_base_put_str(&json, "message", message);
    end(server, &json, &line);
}

static void put_tokens(gn_json_out *json, const gn_call *call)
{
    if (call->n_prompt + call->n_generated == 0) {
        return;
    }
    gn_base_put_uint(json, "prompt_tokens", call->n_prompt);
    gn_base_put_uint(json, "cached_tokens", call->n_cached);
    gn_base_put_uint(json, "completion_tokens", call->n_generated);
    if (call->queue_ms >= 0) {
        gn_base_put_real(json, "queue_ms", call->queue_ms, 1);
    }
    if (call->first_ms >= 0) {
        gn_base_put_real(json, "first_token_ms", call->first_ms, 1);
    }
}

void gn_serve_log_call(const gn_call *call)
{
    const gn_server *server = call->server;
    if (server->options.log == NULL) {
        return;
    }
    gn_json_out json;
    gn_buf line = {0};
    begin(&json, &line, call->status >= 500 ? "warning" : "info", "call");
    gn_base_put_str(&json, "id", call->id);
    gn_base_put_str(&json, "method", call->method);
    gn_base_put_str(&json, "path", call->path != NULL ? call->path : "");
    gn_base_put_uint(&json, "status", call->status);
    gn_base_put_real(&json, "ms", (double)(gn_os_now_ns() - call->start_ns) / 1e6, 1);
    if (call->key != NULL) {
        gn_base_put_str(&json, "key", gn_key_name(call->key));
    }
    if (call->model[0] != '\0') {
        gn_base_put_str(&json, "model", call->model);
    }
    put_tokens(&json, call);
    if (call->gone) {
        gn_base_put_bool(&json, "client_gone", true);
    }
    if (call->why[0] != '\0') {
        gn_base_put_str(&json, "error", call->why);
    }
    if (server->options.log_prompts && call->body.len > 0) {
        gn_base_put_strn(&json, "body", call->body.data, call->body.len);
    }
    end(server, &json, &line);
}
