/* What operators ask: is it alive, is it ready, what runs, what was counted. */
#include "base/json_write.h"
#include "os/clock.h"
#include "os/process.h"
#include "serve/server_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void reply_json(gn_call *call, unsigned status, const gn_json_out *json)
{
    if (json->status != GN_OK) {
        gn_buf_fini(json->buf);
        gn_serve_fail_status(call, json->status, NULL);
        return;
    }
    gn_serve_reply(call, status, "application/json", json->buf);
}

/* --- health --- */

static void reply_health(gn_call *call, bool good, const char *bad)
{
    gn_buf body = {0};
    gn_json_out json;
    gn_base_json_out(&json, &body);
    gn_base_put_object(&json, NULL);
    gn_base_put_str(&json, "status", good ? "ok" : bad);
    gn_base_put_end(&json);
    reply_json(call, good ? 200 : 503, &json);
}

static void live(gn_call *call)
{
    bool good = gn_server_healthy(gn_serve_call_server(call));
    reply_health(call, good, "a step loop stands still");
}

static void ready(gn_call *call)
{
    const gn_server *server = gn_serve_call_server(call);
    bool draining = atomic_load(&server->draining);
    reply_health(call, atomic_load(&server->ready) && !draining,
                 draining ? "stopping" : "loading model");
}

/* --- requests that wait or run --- */

static const char *const state_names[] = {"waiting", "prefill", "decode", "ended"};
static const char *const class_names[] = {"realtime", "interactive", "batch"};

static void put_request(gn_json_out *json, const char *model, const gn_request_info *info)
{
    gn_base_put_object(json, NULL);
    gn_base_put_uint(json, "id", info->usage.id);
    gn_base_put_str(json, "model", model);
    gn_base_put_str(json, "state", state_names[info->state]);
    gn_base_put_str(json, "class", class_names[info->priority]);
    gn_base_put_int(json, "n_prompt", info->usage.n_prompt);
    gn_base_put_int(json, "n_cached", info->usage.n_cached);
    gn_base_put_int(json, "n_evaluated", info->n_evaluated);
    gn_base_put_int(json, "n_generated", info->usage.n_generated);
    gn_base_put_int(json, "n_preempted", info->usage.n_preempted);
    gn_base_put_int(json, "max_tokens", info->max_tokens);
    gn_base_put_int(json, "n_ctx", info->n_ctx);
    double ms = (double)(gn_os_now_ns() - info->usage.submit_ns) / 1e6;
    gn_base_put_real(json, "age_ms", ms, 1);
    gn_base_put_end(json);
}

static void list_requests(void *ctx, const gn_serve_model *model)
{
    gn_json_out *json = ctx;
    if (model->engine == NULL) {
        return;
    }
    gn_request_info infos[24]; /* what does not fit is left out */
    size_t n = gn_engine_list(model->engine, infos, GN_COUNTOF(infos));
    for (size_t i = 0; i < n && i < GN_COUNTOF(infos); i++) {
        put_request(json, model->name, &infos[i]);
    }
}

static void slots(gn_call *call)
{
    gn_buf body = {0};
    gn_json_out json;
    gn_base_json_out(&json, &body);
    gn_base_put_array(&json, NULL);
    gn_serve_models_visit(gn_serve_call_server(call), list_requests, &json);
    gn_base_put_end(&json);
    reply_json(call, 200, &json);
}

typedef struct cancel_ctx {
    const char *model; /* NULL: any */
    uint64_t id;
    bool found;
} cancel_ctx;

static void cancel_in(void *ctx, const gn_serve_model *model)
{
    cancel_ctx *c = ctx;
    if (model->engine != NULL && (c->model == NULL || strcmp(c->model, model->name) == 0)) {
        c->found = gn_engine_cancel(model->engine, c->id) || c->found;
    }
}

static void cancel(gn_call *call)
{
    const char *text = gn_serve_call_segment(call);
    char *end = NULL;
    cancel_ctx c = {.model = gn_serve_call_query(call, "model"), .id = strtoull(text, &end, 10)};
    if (text[0] < '0' || text[0] > '9' || *end != '\0') {
        gn_serve_fail_field(call, "id", "found %.40s, expected a number", text);
        return;
    }
    gn_serve_models_visit(gn_serve_call_server(call), cancel_in, &c);
    if (!c.found) {
        gn_serve_error error = {.status = 404, .code = "not_found", .param = "id"};
        gn_serve_fail(call, &error, "no request %llu waits or runs", (unsigned long long)c.id);
        return;
    }
    gn_buf body = {0};
    gn_json_out json;
    gn_base_json_out(&json, &body);
    gn_base_put_object(&json, NULL);
    gn_base_put_bool(&json, "cancelled", true);
    gn_base_put_end(&json);
    reply_json(call, 200, &json);
}

/* --- is the step loop alive? --- */

#define STALL_NS 120000000000ull

typedef struct stall_ctx {
    gn_server *server;
    bool good;
} stall_ctx;

static void look_for_stall(void *ctx, const gn_serve_model *model)
{
    stall_ctx *c = ctx;
    if (model->engine == NULL) {
        return;
    }
    gn_engine_stats stats;
    gn_engine_get_stats(model->engine, &stats);
    gn_stall_watch *w = &c->server->stall[model->index];
    uint64_t now = gn_os_now_ns();
    (void)pthread_mutex_lock(&c->server->lock);
    if (stats.n_running == 0 || stats.n_steps != w->n_steps || w->since_ns == 0) {
        w->n_steps = stats.n_steps;
        w->since_ns = now;
    }
    c->good = c->good && now - w->since_ns < STALL_NS;
    (void)pthread_mutex_unlock(&c->server->lock);
}

bool gn_server_healthy(gn_server *server)
{
    stall_ctx ctx = {.server = server, .good = true};
    gn_serve_models_visit(server, look_for_stall, &ctx);
    return ctx.good;
}

/* --- metrics --- */

#define PREFIX "ganglion_"

static gn_status put_number(gn_buf *out, const char *name, const char *type, const char *help,
                            double value)
{
    return gn_buf_printf(out,
                         "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n" PREFIX "%s %.17g\n",
                         name, help, name, type, name, value);
}

typedef struct sums {
    gn_engine_stats s;
    uint64_t n_models_loaded;
} sums;

static void add_stats(void *ctx, const gn_serve_model *model)
{
    sums *sum = ctx;
    sum->n_models_loaded++;
    if (model->engine == NULL) {
        return;
    }
    gn_engine_stats s;
    gn_engine_get_stats(model->engine, &s);
    gn_engine_stats *t = &sum->s;
    t->n_requests += s.n_requests;
    t->n_ended += s.n_ended;
    t->n_failed += s.n_failed;
    t->n_cancelled += s.n_cancelled;
    t->n_steps += s.n_steps;
    t->n_rows += s.n_rows;
    t->n_prompt_tok += s.n_prompt_tok;
    t->n_generated_tok += s.n_generated_tok;
    t->n_forced_tok += s.n_forced_tok;
    t->n_cache_query_tok += s.n_cache_query_tok;
    t->n_cache_hit_tok += s.n_cache_hit_tok;
    t->n_preemptions += s.n_preemptions;
    t->n_running += s.n_running;
    for (int i = 0; i < GN_N_PRIORITIES; i++) {
        t->n_waiting[i] += s.n_waiting[i];
    }
    t->n_pages += s.n_pages;
    t->n_pages_used += s.n_pages_used;
    t->n_pages_cached += s.n_pages_cached;
    t->busy_ns += s.busy_ns;
}

static gn_status put_engine(gn_buf *out, const sums *sum)
{
    const gn_engine_stats *s = &sum->s;
    double pages = s->n_pages > 0 ? (double)s->n_pages : 1.0;
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        {"prompt_tokens_total", "counter", "Prompt tokens computed.", (double)s->n_prompt_tok},
        {"generation_tokens_total", "counter", "Tokens generated.", (double)s->n_generated_tok},
        {"grammar_forced_tokens_total", "counter", "Tokens that a grammar left no choice about.",
         (double)s->n_forced_tok},
        {"requests_total", "counter", "Requests submitted.", (double)s->n_requests},
        {"requests_failed_total", "counter", "Requests that failed.", (double)s->n_failed},
        {"requests_cancelled_total", "counter", "Requests that were cancelled.",
         (double)s->n_cancelled},
        {"engine_steps_total", "counter", "Steps of the step loops.", (double)s->n_steps},
        {"engine_rows_total", "counter", "Rows in those steps.", (double)s->n_rows},
        {"engine_busy_seconds_total", "counter", "Time spent in steps.", (double)s->busy_ns / 1e9},
        {"num_requests_running", "gauge", "Requests in steps now.", s->n_running},
        {"kv_cache_usage_perc", "gauge", "Share of KV pages held by requests, 0 to 1.",
         s->n_pages_used / pages},
        {"kv_pages", "gauge", "KV pages there are.", s->n_pages},
        {"kv_pages_used", "gauge", "KV pages held by requests.", s->n_pages_used},
        {"kv_pages_cached", "gauge", "KV pages held by the prefix cache alone.", s->n_pages_cached},
        {"prefix_cache_queries_total", "counter", "Prompt tokens looked up in the prefix cache.",
         (double)s->n_cache_query_tok},
        {"prefix_cache_hits_total", "counter", "Prompt tokens found there.",
         (double)s->n_cache_hit_tok},
        {"num_preemptions_total", "counter", "Requests whose pages were taken away.",
         (double)s->n_preemptions},
        {"truncations_total", "counter", "Prompts that were cut to fit; the server cuts none.", 0},
        {"kernel_fallbacks_total", "counter",
         "Work done by slower kernels than promised; there is no such path.", 0},
        {"egress_bytes_total", "counter", "Bytes sent over connections that the server opened.", 0},
        {"models_loaded", "gauge", "Models open now.", (double)sum->n_models_loaded},
    };
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        GN_TRY(put_number(out, rows[i].name, rows[i].type, rows[i].help, rows[i].value));
    }
    GN_TRY(gn_buf_puts(out,
                       "# HELP " PREFIX "num_requests_waiting Requests in the queue, by class.\n"
                       "# TYPE " PREFIX "num_requests_waiting gauge\n"));
    for (int i = 0; i < GN_N_PRIORITIES; i++) {
        GN_TRY(gn_buf_printf(out, PREFIX "num_requests_waiting{class=\"%s\"} %u\n", class_names[i],
                             s->n_waiting[i]));
    }
    return GN_OK;
}

static gn_status put_histograms(gn_buf *out, const gn_metrics *m)
{
    GN_TRY(gn_histogram_put(&m->first_token, PREFIX "time_to_first_token_seconds",
                            "From submission to the first token.", "", true, out));
    GN_TRY(gn_histogram_put(&m->inter_token, PREFIX "inter_token_latency_seconds",
                            "Between two tokens of a request.", "", true, out));
    GN_TRY(gn_histogram_put(&m->request, PREFIX "e2e_request_latency_seconds",
                            "From submission to the end.", "", true, out));
    for (int i = 0; i < GN_N_PRIORITIES; i++) {
        char labels[40];
        (void)snprintf(labels, sizeof labels, "class=\"%s\",", class_names[i]);
        GN_TRY(gn_histogram_put(&m->queue[i], PREFIX "request_queue_time_seconds",
                                "From submission to the first step.", labels, i == 0, out));
    }
    return gn_histogram_put(&m->call, PREFIX "http_request_duration_seconds", "Whole HTTP calls.",
                            "", true, out);
}

static gn_status put_calls(gn_buf *out, const gn_metrics *m)
{
    GN_TRY(gn_buf_puts(out, "# HELP " PREFIX "http_requests_total HTTP calls by route and status.\n"
                            "# TYPE " PREFIX "http_requests_total counter\n"));
    const gn_route *row;
    for (unsigned i = 0; i < GN_METRIC_ROUTES && (row = gn_serve_route_at(i)) != NULL; i++) {
        for (unsigned c = 0; c < GN_METRIC_STATUSES; c++) {
            unsigned long long n = atomic_load(&m->calls[i][c]);
            if (n > 0) {
                GN_TRY(gn_buf_printf(out,
                                     PREFIX "http_requests_total{method=\"%s\",path=\"%s\","
                                            "status=\"%u\"} %llu\n",
                                     row->method, row->path, gn_metric_status_at(c), n));
            }
        }
    }
    return GN_OK;
}

static gn_status put_server(gn_buf *out, gn_server *server)
{
    const gn_metrics *m = &server->metrics;
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    gn_os_usage memory = gn_os_memory_usage();
    (void)pthread_mutex_lock(&server->lock);
    double n_conns = server->n_conns;
    double n_calls = server->n_calls;
    (void)pthread_mutex_unlock(&server->lock);
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        {"connections", "gauge", "Connections open now.", n_conns},
        {"calls_running", "gauge", "HTTP calls being answered now.", n_calls},
        {"clients_gone_total", "counter", "Clients that left before the answer's end.",
         (double)atomic_load(&m->n_gone)},
        {"connections_dropped_total", "counter", "Connections closed for being too slow.",
         (double)atomic_load(&m->n_dropped)},
        {"requests_refused_total", "counter", "Calls refused for their key, host or origin.",
         (double)atomic_load(&m->n_refused)},
        {"unknown_fields_total", "counter", "Fields of requests that nobody knows, ignored.",
         (double)atomic_load(&m->n_unknown_fields)},
        {"process_cpu_seconds_total", "counter", "Processor time, user and system.", cpu},
        {"process_private_memory_bytes", "gauge", "Resident memory of its own.",
         (double)memory.private_bytes},
        {"process_shared_memory_bytes", "gauge", "Resident pages of mapped files.",
         (double)memory.shared_bytes},
        {"process_start_time_seconds", "gauge", "Unix time of the start.",
         (double)server->start_unix},
    };
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        GN_TRY(put_number(out, rows[i].name, rows[i].type, rows[i].help, rows[i].value));
    }
    GN_TRY(gn_buf_puts(out, "# HELP " PREFIX "weight_reloads_total Times a model's weights were "
                            "opened.\n# TYPE " PREFIX "weight_reloads_total counter\n"));
    for (size_t i = 0; i < gn_serve_n_models(server); i++) {
        GN_TRY(gn_buf_printf(out, PREFIX "weight_reloads_total{model=\"%s\"} %llu\n",
                             server->options.models[i].name,
                             (unsigned long long)gn_serve_models_n_loads(server, i)));
    }
    return GN_OK;
}

static void metrics(gn_call *call)
{
    gn_server *server = gn_serve_call_server(call);
    sums sum = {.n_models_loaded = 0};
    gn_serve_models_visit(server, add_stats, &sum);
    gn_buf body = {0};
    gn_status status = put_engine(&body, &sum);
    status = status == GN_OK ? put_histograms(&body, &server->metrics) : status;
    status = status == GN_OK ? put_calls(&body, &server->metrics) : status;
    status = status == GN_OK ? put_server(&body, server) : status;
    if (status != GN_OK) {
        gn_buf_fini(&body);
        gn_serve_fail_status(call, status, NULL);
        return;
    }
    gn_serve_reply(call, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
}

const gn_route gn_serve_routes_operate[] = {
    {.method = "GET",
     .path = "/health",
     .access = GN_ACCESS_OPEN,
     .handler = ready,
     .summary = "Can it answer? 503 while it loads or stops"},
    {.method = "GET",
     .path = "/health/live",
     .access = GN_ACCESS_OPEN,
     .handler = live,
     .summary = "Does it run? 503 where a step loop stands still"},
    {.method = "GET",
     .path = "/health/ready",
     .access = GN_ACCESS_OPEN,
     .handler = ready,
     .summary = "The same as /health"},
    {.method = "GET",
     .path = "/metrics",
     .access = GN_ACCESS_USE,
     .handler = metrics,
     .summary = "Counters and histograms for Prometheus"},
    {.method = "GET",
     .path = "/slots",
     .access = GN_ACCESS_USE,
     .handler = slots,
     .summary = "Requests that wait or run"},
    {.method = "DELETE",
     .path = "/slots/{id}",
     .access = GN_ACCESS_ADMIN,
     .handler = cancel,
     .summary = "Cancel a request"},
    {.method = "GET",
     .path = "/openapi.json",
     .access = GN_ACCESS_OPEN,
     .handler = gn_serve_openapi,
     .summary = "This list"},
    {.method = NULL},
};
