/* The page at / and the snapshot of the server that it draws. The page is one file with its script and its style, in the
 * binary; the browser is told their digests (Content-Security-Policy), so that nothing else of it can run or load,
 * and connections go nowhere but here. It holds no data: what it shows comes from addresses that check the key. */
#include "base/alloc.h"
#include "base/json_write.h"
#include "os/clock.h"
#include "os/process.h"
#include "serve/server_impl.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

extern const unsigned char gn_serve_dashboard_page[];
extern const size_t gn_serve_dashboard_page_len;

/* --- the page --- */

/* 'sha256-…' of what stands between <tag> and </tag>. */
static gn_status put_digest(gn_buf *out, const char *page, const char *open, const char *close)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    char text[sodium_base64_ENCODED_LEN(sizeof hash, sodium_base64_VARIANT_ORIGINAL)];
    const char *begin = strstr(page, open);
    const char *end = begin == NULL ? NULL : strstr(begin, close);
    GN_REQUIRE(end != NULL, GN_E_FORMAT, "the page has no %s", open);
    begin += strlen(open);
    (void)crypto_hash_sha256(hash, (const unsigned char *)begin, (size_t)(end - begin));
    (void)sodium_bin2base64(text, sizeof text, hash, sizeof hash, sodium_base64_VARIANT_ORIGINAL);
    return gn_buf_printf(out, "'sha256-%s'", text);
}

static gn_status put_policy(gn_buf *out, const char *page)
{
    GN_TRY(gn_buf_puts(
        out, "default-src 'none'; img-src data:; connect-src 'self'; base-uri 'none'; form-action "
             "'none'; frame-ancestors 'none'; script-src "));
    GN_TRY(put_digest(out, page, "<script>", "</script>"));
    GN_TRY(gn_buf_puts(out, "; style-src "));
    return put_digest(out, page, "<style>", "</style>");
}

static void page(gn_call *call)
{
    gn_buf policy = {0};
    gn_buf body = {0};
    gn_status status = gn_buf_append(&body, gn_serve_dashboard_page, gn_serve_dashboard_page_len);
    if (status == GN_OK) {
        status = put_policy(&policy, body.data);
    }
    if (status == GN_OK) {
        gn_serve_header(call, "Content-Security-Policy", policy.data);
        gn_serve_header(call, "Referrer-Policy", "no-referrer");
        gn_serve_header(call, "Cache-Control", "no-cache");
        gn_serve_reply(call, 200, "text/html; charset=utf-8", &body);
    } else {
        gn_serve_fail_status(call, status, NULL);
    }
    gn_buf_fini(&policy);
    gn_buf_fini(&body);
}

/* --- the snapshot --- */

static void put_engine(gn_json_out *json, gn_engine *engine)
{
    gn_engine_stats s;
    gn_engine_get_stats(engine, &s);
    uint64_t n_waiting = 0;
    for (size_t i = 0; i < GN_N_PRIORITIES; i++) {
        n_waiting += s.n_waiting[i];
    }
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"n_requests", s.n_requests},
        {"n_running", s.n_running},
        {"n_waiting", n_waiting},
        {"n_prompt_tok", s.n_prompt_tok},
        {"n_generated_tok", s.n_generated_tok},
        {"n_cache_query_tok", s.n_cache_query_tok},
        {"n_cache_hit_tok", s.n_cache_hit_tok},
        {"n_preemptions", s.n_preemptions},
        {"n_pages", s.n_pages},
        {"n_pages_used", s.n_pages_used},
        {"n_pages_cached", s.n_pages_cached},
        {"page_bytes", s.page_bytes},
    };
    for (size_t i = 0; i < GN_COUNTOF(numbers); i++) {
        gn_base_put_uint(json, numbers[i].name, numbers[i].value);
    }
    gn_base_put_real(json, "busy_s", (double)s.busy_ns / 1e9, 3);
}

/* A model that is open: its numbers and those of its engine. */
static void put_open(void *ctx, const gn_serve_model *model)
{
    gn_json_out *json = ctx;
    const gn_model_info info = gn_model_get_info(model->model);
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "name", model->name);
    gn_base_put_str(json, "cpu_level", info.cpu_level);
    gn_base_put_int(json, "threads", info.threads);
    gn_base_put_uint(json, "n_params", info.n_params);
    gn_base_put_uint(json, "weight_bytes", info.weight_bytes);
    gn_base_put_uint(json, "cache_bytes", info.cache_bytes);
    gn_base_put_uint(json, "kv_bytes_per_tok", info.kv_bytes_per_tok);
    if (model->engine != NULL) {
        put_engine(json, model->engine);
    }
    gn_base_put_end(json);
}

static void put_models(gn_json_out *json, gn_server *server, gn_serve_model_info *info)
{
    gn_base_put_array(json, "models");
    for (size_t i = 0; i < gn_serve_n_models(server); i++) {
        gn_serve_model_describe(server, i, info);
        gn_base_put_object(json, NULL);
        gn_base_put_str(json, "name", info->name);
        gn_base_put_bool(json, "loaded", info->loaded);
        gn_base_put_bool(json, "encoder", info->is_encoder);
        gn_base_put_bool(json, "chat", info->has_chat_template);
        gn_base_put_str(json, "architecture", info->architecture);
        gn_base_put_int(json, "n_ctx", info->n_ctx);
        gn_base_put_uint(json, "n_users", info->n_users);
        gn_base_put_uint(json, "n_loads", info->n_loads);
        gn_base_put_uint(json, "file_bytes", info->file_bytes);
        gn_base_put_end(json);
    }
    gn_base_put_end(json);
}

static void state(gn_call *call)
{
    gn_server *server = gn_serve_call_server(call);
    gn_serve_model_info *info = gn_arena_alloc(gn_serve_call_arena(call), sizeof *info);
    if (info == NULL) {
        gn_serve_fail_status(call, gn_alloc_failed(), NULL);
        return;
    }
    gn_buf body = {0};
    gn_json_out json;
    const gn_os_usage memory = gn_os_memory_usage();
    gn_base_json_out(&json, &body);
    gn_base_put_object(&json, NULL);
    gn_base_put_str(&json, "version", gn_version());
    gn_base_put_real(&json, "now_ms", (double)gn_os_now_ns() / 1e6, 1);
    gn_base_put_int(&json, "uptime_s", (int64_t)time(NULL) - (int64_t)server->start_unix);
    gn_base_put_uint(&json, "private_bytes", memory.private_bytes);
    gn_base_put_uint(&json, "shared_bytes", memory.shared_bytes);
    put_models(&json, server, info);
    gn_base_put_array(&json, "open");
    gn_serve_models_visit(server, put_open, &json);
    gn_base_put_end(&json);
    gn_base_put_end(&json);
    if (json.status == GN_OK) {
        gn_serve_reply(call, 200, "application/json", &body);
    } else {
        gn_serve_fail_status(call, json.status, NULL);
    }
    gn_buf_fini(&body);
}

const gn_route gn_serve_routes_dashboard[] = {
    {.method = "GET",
     .path = "/",
     .access = GN_ACCESS_OPEN,
     .handler = page,
     .summary = "The dashboard: one page for people"},
    {.method = "GET",
     .path = "/dashboard/state",
     .access = GN_ACCESS_USE,
     .handler = state,
     .summary = "What the dashboard draws: models, memory, pages, counts"},
    {.method = NULL},
};
