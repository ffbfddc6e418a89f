/* The handlers of Ollama's API about models, and its embeddings.
 *
 * Digests name a file by its path, size and time, not by its content. What /api/show says of a template is the
 * prompt's outline in Ollama's notation: clients look in it for .Suffix and .Tools; the template itself is the model's. */
#include "serve/ollama.h"

#include "base/alloc.h"
#include "os/clock.h"
#include "serve/fim.h"
#include "serve/relay.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define API_VERSION "0.12.0" /* of Ollama: clients refuse older ones */
#define MOST_INPUTS 2048

static void reply_json(gn_call *call, const gn_json_out *json)
{
    if (json->status == GN_OK) {
        gn_serve_reply(call, 200, "application/json; charset=utf-8", json->buf);
    } else {
        gn_serve_fail_status(call, json->status, NULL);
    }
    gn_buf_fini(json->buf);
}

/* --- what is known of a model without opening it --- */

static void put_digest(gn_json_out *json, const gn_serve_model_info *info)
{
    char text[65];
    for (unsigned i = 0; i < 4; i++) {
        uint64_t hash = 0xcbf29ce484222325u + i;
        for (const char *c = info->path; *c != '\0'; c++) {
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        }
        hash = (hash ^ info->file_bytes) * 0x100000001b3u;
        hash = (hash ^ (uint64_t)info->created) * 0x100000001b3u;
        (void)snprintf(text + (size_t)16 * i, 17, "%016llx", (unsigned long long)hash);
    }
    gn_base_put_str(json, "digest", text);
}

/* The type of quantization in a file's name ("Q4_K_M"), or "unknown". */
static void quantization(const char *path, char out[16])
{
    const char *name = strrchr(path, '/');
    (void)snprintf(out, 16, "unknown");
    for (const char *c = name == NULL ? path : name + 1; *c != '\0'; c++) {
        const char *at = (c[0] == 'I' || c[0] == 'i') ? c + 1 : c;
        const bool q = (at[0] == 'Q' || at[0] == 'q') && isdigit((unsigned char)at[1]);
        const bool f = (c[0] == 'F' || c[0] == 'f') &&
                       (strncmp(c + 1, "16", 2) == 0 || strncmp(c + 1, "32", 2) == 0);
        if (q || f) {
            size_t n = 0;
            for (; n < 15 && (isalnum((unsigned char)c[n]) || c[n] == '_'); n++) {
                out[n] = (char)toupper((unsigned char)c[n]);
            }
            out[n] = '\0';
        }
    }
}

static void put_details(gn_json_out *json, const gn_serve_model_info *info, uint64_t n_params)
{
    const size_t len = strlen(info->path);
    const bool gguf = len > 5 && strcmp(info->path + len - 5, ".gguf") == 0;
    char text[32];
    gn_base_put_object(json, "details");
    gn_base_put_str(json, "parent_model", "");
    gn_base_put_str(json, "format", gguf ? "gguf" : "safetensors");
    gn_base_put_str(json, "family", info->architecture);
    gn_base_put_array(json, "families");
    if (info->architecture[0] != '\0') {
        gn_base_put_str(json, NULL, info->architecture);
    }
    gn_base_put_end(json);
    if (n_params >= 1000000000u) {
        (void)snprintf(text, sizeof text, "%.1fB", (double)n_params / 1e9);
    } else {
        (void)snprintf(text, sizeof text, "%.2fM", (double)n_params / 1e6);
    }
    gn_base_put_str(json, "parameter_size", n_params > 0 ? text : "");
    char type[16];
    quantization(info->path, type);
    gn_base_put_str(json, "quantization_level", type);
    if (info->n_ctx > 0) {
        gn_base_put_int(json, "context_length", info->n_ctx);
    }
    gn_base_put_end(json);
}

static void list(gn_call *call, bool open_only)
{
    gn_server *server = gn_serve_call_server(call);
    gn_serve_model_info *info = gn_arena_alloc(gn_serve_call_arena(call), sizeof *info);
    gn_buf body = {0};
    gn_json_out json;
    gn_base_json_out(&json, &body);
    if (info == NULL) {
        gn_serve_fail_status(call, gn_alloc_failed(), NULL);
        return;
    }
    gn_base_put_object(&json, NULL);
    gn_base_put_array(&json, "models");
    for (size_t i = 0; i < gn_serve_n_models(server); i++) {
        gn_serve_model_describe(server, i, info);
        if (open_only && !info->loaded) {
            continue;
        }
        char time[40];
        gn_ollama_time(info->created, 0, time);
        gn_base_put_object(&json, NULL);
        gn_base_put_str(&json, "name", info->name);
        gn_base_put_str(&json, "model", info->name);
        gn_base_put_uint(&json, "size", info->file_bytes);
        put_digest(&json, info);
        put_details(&json, info, 0);
        if (open_only) {
            gn_base_put_str(&json, "expires_at", "9999-12-31T23:59:59Z");
            gn_base_put_int(&json, "size_vram", 0);
            gn_base_put_int(&json, "context_length", info->n_ctx);
        } else {
            gn_base_put_str(&json, "modified_at", time);
        }
        gn_base_put_end(&json);
    }
    gn_base_put_end(&json);
    gn_base_put_end(&json);
    reply_json(call, &json);
}

void gn_ollama_tags(gn_call *call)
{
    list(call, false);
}

void gn_ollama_ps(gn_call *call)
{
    list(call, true);
}

void gn_ollama_version(gn_call *call)
{
    gn_buf body = {0};
    gn_json_out json;
    gn_base_json_out(&json, &body);
    gn_base_put_object(&json, NULL);
    gn_base_put_str(&json, "version", API_VERSION);
    gn_base_put_str(&json, "ganglion", gn_version());
    gn_base_put_end(&json);
    reply_json(call, &json);
}

/* --- show --- */

/* Does the template know of thinking? */
static bool takes_thinking(const gn_model *model)
{
    static const char context[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"add_generation_prompt\":true,"
        "\"enable_thinking\":false}";
    char *text = NULL;
    size_t len = 0;
    const bool found =
        gn_model_render_chat(model, context, sizeof context - 1, &text, &len) == GN_OK &&
        strstr(text, "<think>") != NULL;
    gn_release(text);
    return found;
}

static void put_capabilities(gn_json_out *json, const gn_model *model, bool fim)
{
    const gn_model_info info = gn_model_get_info(model);
    gn_base_put_array(json, "capabilities");
    if (info.is_encoder) {
        gn_base_put_str(json, NULL, "embedding");
    } else {
        gn_base_put_str(json, NULL, "completion");
    }
    if (info.has_chat_template) { /* where the template has no place for tools, the system prompt has */
        gn_base_put_str(json, NULL, "tools");
    }
    if (fim) {
        gn_base_put_str(json, NULL, "insert");
    }
    if (info.has_chat_template && takes_thinking(model)) {
        gn_base_put_str(json, NULL, "thinking");
    }
    gn_base_put_end(json);
}

static void put_template(gn_json_out *json, bool chat, bool fim)
{
    char text[256];
    (void)snprintf(text, sizeof text, "%s%s%s%s",
                   fim ? "{{ if .Suffix }}{{ .Prompt }}{{ .Suffix }}{{ else }}" : "",
                   chat ? "{{ .System }}{{ .Tools }}" : "",
                   chat ? "{{ .Messages }}" : "{{ .Prompt }}", fim ? "{{ end }}" : "");
    gn_base_put_str(json, "template", text);
}

static void put_model_info(gn_json_out *json, const gn_model_info *info)
{
    char key[96];
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"context_length", info->n_ctx_train},
                   {"embedding_length", info->n_embd},
                   {"block_count", info->n_layer},
                   {"vocab_size", info->n_vocab}};
    gn_base_put_object(json, "model_info");
    gn_base_put_str(json, "general.architecture", info->architecture);
    gn_base_put_str(json, "general.basename", info->name);
    gn_base_put_uint(json, "general.parameter_count", info->n_params);
    for (size_t i = 0; i < GN_COUNTOF(numbers); i++) {
        (void)snprintf(key, sizeof key, "%.64s.%s", info->architecture, numbers[i].name);
        gn_base_put_int(json, key, numbers[i].value);
    }
    gn_base_put_end(json);
}

/* Tokens that a request may have: the model's context, or what the pool of pages holds. */
static int32_t context_tokens(const gn_serve_model *model)
{
    const int32_t most = gn_model_get_info(model->model).n_ctx_train;
    if (model->engine == NULL) {
        return most;
    }
    gn_engine_stats stats;
    gn_engine_get_stats(model->engine, &stats);
    const uint64_t pool = (uint64_t)stats.n_pages * 64;
    return pool > 0 && pool < (uint64_t)most ? (int32_t)pool : most;
}

static void reply_show(gn_call *call, const gn_serve_model *model, gn_serve_model_info *about)
{
    gn_buf body = {0};
    gn_json_out json;
    char parameters[64];
    char time[40];
    const gn_model_info info = gn_model_get_info(model->model);
    const bool fim = !info.is_encoder && gn_fim_supported(model->model);
    gn_serve_model_describe(gn_serve_call_server(call), model->index, about);
    (void)snprintf(parameters, sizeof parameters, "num_ctx                        %d",
                   context_tokens(model));
    gn_ollama_time(about->created, 0, time);
    gn_base_json_out(&json, &body);
    gn_base_put_object(&json, NULL);
    gn_base_put_str(&json, "modelfile", "");
    gn_base_put_str(&json, "parameters", parameters);
    put_template(&json, info.has_chat_template, fim);
    put_details(&json, about, info.n_params);
    put_model_info(&json, &info);
    put_capabilities(&json, model->model, fim);
    gn_base_put_str(&json, "modified_at", time);
    gn_base_put_end(&json);
    reply_json(call, &json);
}

/* The model that "model", or in older clients "name", asks for: a string or NULL. */
static gn_status read_name(gn_ask *ask, const gn_json *body, const gn_json **out)
{
    GN_TRY(gn_ask_member(ask, body, "name", GN_JSON_STRING, out));
    return gn_ask_member(ask, body, "model", GN_JSON_STRING, out);
}

void gn_ollama_show(gn_call *call)
{
    const gn_json *body;
    const gn_json *name = NULL;
    gn_ask ask = {0};
    if (gn_serve_call_json(call, &body) != GN_OK) {
        return;
    }
    const gn_status status = read_name(&ask, body, &name);
    gn_serve_model_info *about = gn_arena_alloc(gn_serve_call_arena(call), sizeof *about);
    const gn_serve_model *model;
    if (status != GN_OK || about == NULL) {
        gn_serve_fail_status(call, status != GN_OK ? status : gn_alloc_failed(), NULL);
    } else if (gn_serve_relay_model(call, name, &model)) {
        reply_show(call, model, about);
        gn_serve_model_give(gn_serve_call_server(call), model);
    }
}

/* --- what would change the models --- */

void gn_ollama_refuse(gn_call *call)
{
    const gn_serve_error error = {.status = 403};
    gn_serve_fail(call, &error,
                  "models are not changed over HTTP: use `ganglion pull` and `ganglion serve -m`");
}

static bool is_served(gn_call *call, const gn_json *name)
{
    gn_server *server = gn_serve_call_server(call);
    gn_serve_model_info *info = gn_arena_alloc(gn_serve_call_arena(call), sizeof *info);
    for (size_t i = 0; info != NULL && i < gn_serve_n_models(server); i++) {
        gn_serve_model_describe(server, i, info);
        const size_t len = strlen(info->name);
        if (strncmp(name->text, info->name, len) == 0 &&
            (name->text[len] == '\0' || strcmp(name->text + len, ":latest") == 0)) {
            return true;
        }
    }
    return false;
}

void gn_ollama_pull(gn_call *call)
{
    const gn_json *body;
    const gn_json *name = NULL;
    bool stream = true;
    gn_ask ask = {0};
    if (gn_serve_call_json(call, &body) != GN_OK) {
        return;
    }
    gn_status status = read_name(&ask, body, &name);
    if (status == GN_OK) {
        status = gn_ask_bool(&ask, body, "stream", &stream);
    }
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, NULL);
        return;
    }
    if (name == NULL || !is_served(call, name)) {
        gn_ollama_refuse(call);
        return;
    }
    gn_buf text = {0};
    if (gn_buf_puts(&text, "{\"status\":\"success\"}\n") == GN_OK) {
        gn_serve_reply(call, 200, stream ? "application/x-ndjson" : "application/json", &text);
    } else {
        gn_serve_fail_status(call, gn_alloc_failed(), NULL);
    }
    gn_buf_fini(&text);
}

/* --- embeddings --- */

typedef struct embedding {
    gn_ask ask;
    const gn_json *model;
    const gn_json *input; /* a string or an array of strings */
    bool truncate;
    int32_t dimensions; /* 0: all */
    float *vector;
    int32_t width;
    size_t n_tokens;
} embedding;

static gn_status read_embed(embedding *e, const gn_json *body)
{
    GN_TRY(read_name(&e->ask, body, &e->model));
    GN_TRY(gn_ask_bool(&e->ask, body, "truncate", &e->truncate));
    GN_TRY(gn_ask_int(&e->ask, body, "dimensions", 1, INT32_MAX, &e->dimensions));
    const gn_json *input = gn_ask_get(body, "input");
    if (input == NULL) {
        return gn_ask_missing(&e->ask, body, "input", "a string or an array of strings");
    }
    const bool many = input->type == GN_JSON_ARRAY;
    if (!many && input->type != GN_JSON_STRING) {
        return gn_ask_unexpected(&e->ask, input, "a string or an array of strings");
    }
    if (many && input->len > MOST_INPUTS) {
        return gn_ask_refuse(&e->ask, input, "found %zu inputs, expected at most %d", input->len,
                             MOST_INPUTS);
    }
    for (const gn_json *at = many ? input->first : NULL; at != NULL; at = at->next) {
        if (at->type != GN_JSON_STRING) {
            return gn_ask_unexpected(&e->ask, at, "a string");
        }
    }
    e->input = input;
    return GN_OK;
}

/* What stands first and last (the model's marks) stays, where the text is cut to the context. */
static void cut(const gn_model *model, int32_t *ids, size_t *n)
{
    const size_t most = (size_t)gn_model_get_info(model).n_ctx_train;
    if (*n > most && most > 0) {
        ids[most - 1] = ids[*n - 1];
        *n = most;
    }
}

static gn_status embed(embedding *e, gn_model *model, const gn_json *text)
{
    int32_t *ids = NULL;
    size_t n = 0;
    GN_TRY(gn_model_tokenize(model, text->text, text->len, GN_TOKENIZE_BOS, &ids, &n));
    if (e->truncate) {
        cut(model, ids, &n);
    }
    const gn_status status = n == 0 ? gn_ask_refuse(&e->ask, text, "found an empty text")
                                    : gn_model_embed_ids(model, ids, n, e->vector);
    gn_release(ids);
    e->n_tokens += n;
    return status;
}

/* The first `dimensions` numbers, at length 1 again. */
static void shorten(embedding *e)
{
    double sum = 0;
    for (int32_t i = 0; i < e->width; i++) {
        sum += (double)e->vector[i] * (double)e->vector[i];
    }
    for (int32_t i = 0; i < e->width && sum > 0; i++) {
        e->vector[i] = (float)((double)e->vector[i] / sqrt(sum));
    }
}

static void put_vector(gn_json_out *json, const char *key, const embedding *e)
{
    gn_base_put_array(json, key);
    for (int32_t i = 0; i < e->width; i++) {
        gn_base_put_float(json, NULL, e->vector[i]);
    }
    gn_base_put_end(json);
}

static gn_status prepare(gn_call *call, embedding *e, const gn_serve_model *model)
{
    const int32_t width = gn_model_get_info(model->model).n_embd;
    e->width = e->dimensions > 0 && e->dimensions < width ? e->dimensions : width;
    e->vector = gn_arena_alloc(gn_serve_call_arena(call), (size_t)width * sizeof *e->vector);
    return e->vector == NULL ? gn_alloc_failed() : GN_OK;
}

static gn_status embed_all(gn_call *call, embedding *e, const gn_serve_model *model,
                           gn_json_out *json)
{
    GN_TRY(prepare(call, e, model));
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "model", model->name);
    gn_base_put_array(json, "embeddings");
    const bool many = e->input->type == GN_JSON_ARRAY;
    const gn_json *text = many ? e->input->first : e->input;
    for (; text != NULL; text = many ? text->next : NULL) {
        GN_REQUIRE(gn_serve_alive(call), GN_E_CANCELLED, "the client went away");
        GN_TRY(embed(e, model->model, text));
        if (e->dimensions > 0) {
            shorten(e);
        }
        put_vector(json, NULL, e);
    }
    gn_base_put_end(json);
    return json->status;
}

static void finish_embed(gn_call *call, embedding *e, gn_status status, gn_json_out *json)
{
    gn_serve_note_tokens(call, e->n_tokens);
    if (status == GN_OK) {
        gn_base_put_end(json);
        reply_json(call, json);
    } else {
        gn_serve_fail_status(call, status, NULL);
        gn_buf_fini(json->buf);
    }
}

void gn_ollama_embed(gn_call *call)
{
    const gn_json *body;
    embedding e = {.truncate = false};
    if (gn_serve_call_json(call, &body) != GN_OK) {
        return;
    }
    gn_status status = read_embed(&e, body);
    const gn_serve_model *model;
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, NULL);
        return;
    }
    const uint64_t start = gn_os_now_ns();
    if (!gn_serve_relay_model(call, e.model, &model)) {
        return;
    }
    const uint64_t loaded = gn_os_now_ns();
    gn_buf text = {0};
    gn_json_out json;
    gn_base_json_out(&json, &text);
    status = embed_all(call, &e, model, &json);
    if (status == GN_OK) {
        gn_base_put_uint(&json, "total_duration", gn_os_now_ns() - start);
        gn_base_put_uint(&json, "load_duration", loaded - start);
        gn_base_put_uint(&json, "prompt_eval_count", e.n_tokens);
    }
    gn_serve_model_give(gn_serve_call_server(call), model);
    finish_embed(call, &e, status, &json);
}

void gn_ollama_embeddings(gn_call *call)
{
    const gn_json *body;
    embedding e = {.truncate = false};
    if (gn_serve_call_json(call, &body) != GN_OK) {
        return;
    }
    gn_status status = read_name(&e.ask, body, &e.model);
    if (status == GN_OK) {
        status = gn_ask_needed(&e.ask, body, "prompt", GN_JSON_STRING, &e.input);
    }
    const gn_serve_model *model;
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, NULL);
        return;
    }
    if (!gn_serve_relay_model(call, e.model, &model)) {
        return;
    }
    gn_buf text = {0};
    gn_json_out json;
    gn_base_json_out(&json, &text);
    status = prepare(call, &e, model);
    if (status == GN_OK) {
        status = embed(&e, model->model, e.input);
    }
    if (status == GN_OK) {
        gn_base_put_object(&json, NULL);
        put_vector(&json, "embedding", &e);
    }
    gn_serve_model_give(gn_serve_call_server(call), model);
    finish_embed(call, &e, status, &json);
}
