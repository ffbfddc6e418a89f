/* GET /v1/models and /v1/models/{id}. */
#include "serve/openai.h"

#include "serve/server_impl.h"

#include <string.h>

static void put_model(gn_json_out *json, const gn_serve_model_info *info)
{
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "id", info->name);
    gn_base_put_str(json, "object", "model");
    gn_base_put_int(json, "created", info->created);
    gn_base_put_str(json, "owned_by", "ganglion");
    gn_base_put_bool(json, "loaded", info->loaded);
    if (info->n_ctx > 0) {
        gn_base_put_int(json, "max_model_len", info->n_ctx);
        gn_base_put_str(json, "architecture", info->architecture);
        gn_base_put_bool(json, "embeddings_only", info->is_encoder);
    }
    gn_base_put_end(json);
}

static bool may_see(const gn_call *call, const char *name)
{
    const gn_key *key = gn_serve_call_key(call);
    return key == NULL || gn_key_allows_model(key, name);
}

/* Codex looks for `models`, all others for `data`. */
static void put_list(gn_call *call, gn_json_out *json, const char *key)
{
    gn_server *server = gn_serve_call_server(call);
    gn_base_put_array(json, key);
    for (size_t i = 0; i < gn_serve_n_models(server); i++) {
        gn_serve_model_info info;
        gn_serve_model_describe(server, i, &info);
        if (may_see(call, info.name)) {
            put_model(json, &info);
        }
    }
    gn_base_put_end(json);
}

static void reply(gn_call *call, gn_json_out *json)
{
    if (json->status != GN_OK) {
        gn_buf_fini(json->buf);
        gn_serve_fail_status(call, json->status, NULL);
        return;
    }
    gn_serve_reply(call, 200, "application/json", json->buf);
}

void gn_openai_models(gn_call *call)
{
    gn_buf body = {0};
    gn_json_out json;
    gn_base_json_out(&json, &body);
    gn_base_put_object(&json, NULL);
    gn_base_put_str(&json, "object", "list");
    put_list(call, &json, "data");
    put_list(call, &json, "models");
    gn_base_put_end(&json);
    reply(call, &json);
}

void gn_openai_model(gn_call *call)
{
    gn_server *server = gn_serve_call_server(call);
    const char *name = gn_serve_call_segment(call);
    for (size_t i = 0; i < gn_serve_n_models(server); i++) {
        gn_serve_model_info info;
        gn_serve_model_describe(server, i, &info);
        if (strcmp(info.name, name) == 0 && may_see(call, name)) {
            gn_buf body = {0};
            gn_json_out json;
            gn_base_json_out(&json, &body);
            put_model(&json, &info);
            reply(call, &json);
            return;
        }
    }
    gn_serve_error error = {.status = 404, .code = "model_not_found", .param = "model"};
    gn_serve_fail(call, &error, "the model \"%.200s\" is not served here", name);
}
