/* POST /v1/embeddings. */
#include "serve/openai.h"

#include "base/alloc.h"
#include "serve/server_impl.h"

#include <stdio.h>
#include <string.h>

#define MOST_INPUTS 2048

typedef struct embedding {
    gn_ask ask;
    const gn_json *model;
    const gn_json *input;
    bool many;
    bool base64;
    int32_t dimensions; /* 0: not asked for */
} embedding;

static bool is_ids(const gn_json *v)
{
    return v->type == GN_JSON_ARRAY && v->first != NULL && v->first->type == GN_JSON_NUMBER;
}

static gn_status read_input(embedding *e, const gn_json *body)
{
    const gn_json *input = gn_ask_get(body, "input");
    if (input == NULL) {
        return gn_ask_missing(&e->ask, body, "input", "a string, or an array");
    }
    if (input->type != GN_JSON_STRING && input->type != GN_JSON_ARRAY) {
        return gn_ask_unexpected(&e->ask, input, "a string, or an array");
    }
    e->input = input;
    e->many = input->type == GN_JSON_ARRAY && !is_ids(input);
    if (input->type == GN_JSON_ARRAY &&
        (input->len == 0 || (e->many && input->len > MOST_INPUTS))) {
        return gn_ask_refuse(&e->ask, input, "found %zu inputs, expected 1 to %d", input->len,
                             MOST_INPUTS);
    }
    for (const gn_json *v = e->many ? input->first : NULL; v != NULL; v = v->next) {
        if (v->type != GN_JSON_STRING && !is_ids(v)) {
            return gn_ask_unexpected(&e->ask, v, "a string or an array of ids");
        }
    }
    return GN_OK;
}

static gn_status read_request(embedding *e, const gn_json *body)
{
    const gn_json *format = NULL;
    GN_TRY(gn_ask_member(&e->ask, body, "model", GN_JSON_STRING, &e->model));
    GN_TRY(gn_ask_member(&e->ask, body, "encoding_format", GN_JSON_STRING, &format));
    GN_TRY(gn_ask_int(&e->ask, body, "dimensions", 1, INT32_MAX, &e->dimensions));
    if (format != NULL && !gn_base_json_is(format, "float") && !gn_base_json_is(format, "base64")) {
        return gn_ask_unexpected(&e->ask, format, "\"float\" or \"base64\"");
    }
    e->base64 = format != NULL && gn_base_json_is(format, "base64");
    return read_input(e, body);
}

/* --- one input --- */

static gn_status read_ids(embedding *e, const gn_json *input, int32_t **ids, size_t *n)
{
    *ids = gn_alloc_array(input->len, sizeof **ids);
    if (*ids == NULL) {
        return gn_alloc_failed();
    }
    *n = 0;
    for (const gn_json *id = input->first; id != NULL; id = id->next) {
        long value = -1;
        char rest = 0;
        if (id->type != GN_JSON_NUMBER || sscanf(id->text, "%ld%c", &value, &rest) != 1 ||
            value < 0 || value > INT32_MAX) {
            return gn_ask_unexpected(&e->ask, id, "the id of a token");
        }
        (*ids)[(*n)++] = (int32_t)value;
    }
    return GN_OK;
}

static gn_status embed(embedding *e, gn_model *model, const gn_json *input, float *out,
                       size_t *n_tokens)
{
    int32_t *ids = NULL;
    size_t n = 0;
    gn_status status;
    if (input->type == GN_JSON_STRING) {
        status = gn_model_tokenize(model, input->text, input->len, GN_TOKENIZE_BOS, &ids, &n);
    } else {
        status = read_ids(e, input, &ids, &n);
    }
    if (status == GN_OK) {
        status = gn_model_embed_ids(model, ids, n, out);
    }
    gn_release(ids);
    if (status == GN_E_LIMIT && e->ask.param[0] == '\0') {
        (void)snprintf(e->ask.param, sizeof e->ask.param, "input");
    }
    *n_tokens += n;
    return status;
}

/* --- the reply --- */

static gn_status put_base64(gn_json_out *json, const float *v, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *bytes = (const unsigned char *)v; /* little-endian, as the API has it */
    size_t len = n * sizeof *v;
    gn_buf text = {0};
    gn_status status = gn_buf_reserve(&text, len / 3 * 4 + 5);
    for (size_t i = 0; status == GN_OK && i < len; i += 3) {
        size_t left = len - i;
        unsigned word = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0u) |
                        (left > 2 ? bytes[i + 2] : 0u);
        char quad[4] = {digits[word >> 18], digits[word >> 12 & 63],
                        left > 1 ? digits[word >> 6 & 63] : '=',
                        left > 2 ? digits[word & 63] : '='};
        status = gn_buf_append(&text, quad, sizeof quad);
    }
    if (status == GN_OK) {
        gn_base_put_strn(json, "embedding", text.data, text.len);
    }
    gn_buf_fini(&text);
    return status;
}

static gn_status put_embedding(gn_json_out *json, const embedding *e, size_t index, const float *v,
                               size_t n)
{
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "object", "embedding");
    gn_base_put_uint(json, "index", index);
    if (e->base64) {
        GN_TRY(put_base64(json, v, n));
    } else {
        gn_base_put_array(json, "embedding");
        for (size_t i = 0; i < n; i++) {
            gn_base_put_float(json, NULL, v[i]);
        }
        gn_base_put_end(json);
    }
    gn_base_put_end(json);
    return json->status;
}

static gn_status put_all(gn_call *call, embedding *e, const gn_serve_model *model, float *vector,
                         gn_buf *out)
{
    size_t width = (size_t)gn_model_get_info(model->model).n_embd;
    size_t n_tokens = 0;
    size_t index = 0;
    gn_json_out json;
    gn_base_json_out(&json, out);
    gn_base_put_object(&json, NULL);
    gn_base_put_str(&json, "object", "list");
    gn_base_put_array(&json, "data");
    const gn_json *input = e->many ? e->input->first : e->input;
    for (; input != NULL; input = e->many ? input->next : NULL, index++) {
        GN_REQUIRE(gn_serve_alive(call), GN_E_CANCELLED, "the client went away");
        GN_TRY(embed(e, model->model, input, vector, &n_tokens));
        GN_TRY(put_embedding(&json, e, index, vector, width));
    }
    gn_base_put_end(&json);
    gn_base_put_str(&json, "model", model->name);
    gn_base_put_object(&json, "usage");
    gn_base_put_uint(&json, "prompt_tokens", n_tokens);
    gn_base_put_uint(&json, "total_tokens", n_tokens);
    gn_base_put_end(&json);
    gn_base_put_end(&json);
    gn_serve_note_tokens(call, n_tokens);
    return json.status;
}

static gn_status check_dimensions(embedding *e, const gn_serve_model *model)
{
    int32_t width = gn_model_get_info(model->model).n_embd;
    if (e->dimensions != 0 && e->dimensions != width) {
        (void)snprintf(e->ask.param, sizeof e->ask.param, "dimensions");
        return gn_base_fail(GN_E_ARG, "dimensions: found %d, expected %d, all that %s has",
                            e->dimensions, width, model->name);
    }
    return GN_OK;
}

void gn_openai_embed(gn_call *call)
{
    const gn_json *body = NULL;
    if (gn_serve_call_json(call, &body) != GN_OK) {
        return;
    }
    embedding e = {.many = false};
    gn_status status = read_request(&e, body);
    const gn_serve_model *model = NULL;
    if (status == GN_OK &&
        gn_serve_model_take(call, e.model != NULL ? e.model->text : NULL,
                            e.model != NULL ? e.model->len : 0, &model) != GN_OK) {
        return;
    }
    gn_buf out = {0};
    if (status == GN_OK) {
        status = check_dimensions(&e, model);
    }
    if (status == GN_OK) {
        size_t width = (size_t)gn_model_get_info(model->model).n_embd;
        float *vector = gn_alloc_array(width, sizeof *vector);
        status = vector != NULL ? put_all(call, &e, model, vector, &out) : gn_alloc_failed();
        gn_free(vector);
    }
    if (model != NULL) {
        gn_serve_model_give(gn_serve_call_server(call), model);
    }
    if (status != GN_OK) {
        gn_buf_fini(&out);
        gn_serve_fail_status(call, status, e.ask.param[0] != '\0' ? e.ask.param : NULL);
        return;
    }
    gn_serve_reply(call, 200, "application/json", &out);
}
