/* GET /openapi.json, made from the rows of the routes and the schemas of their bodies. A schema says what a request of the usual
 * kind looks like; docs/API.md has every field. */
#include "base/json_write.h"
#include "serve/server_impl.h"

#include <string.h>

static const struct {
    const char *path, *schema;
} bodies[] = {
    {"/v1/chat/completions",
     "{\"type\":\"object\",\"required\":[\"messages\"],\"properties\":{\"model\":{"
     "\"type\":\"string\"},\"stream\":{\"type\":\"boolean\"},\"temperature\":{\"ty"
     "pe\":\"number\",\"minimum\":0,\"maximum\":2},\"top_p\":{\"type\":\"number\","
     "\"minimum\":0,\"maximum\":1},\"max_tokens\":{\"type\":\"integer\",\"minimum"
     "\":1,\"maximum\":64},\"stop\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\""
     "array\",\"items\":{\"type\":\"string\"},\"maxItems\":64}]},\"seed\":{\"type"
     "\":\"integer\"},\"presence_penalty\":{\"type\":\"number\",\"minimum\":-2,\"m"
     "aximum\":2},\"frequency_penalty\":{\"type\":\"number\",\"minimum\":-2,\"maxi"
     "mum\":2},\"messages\":{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\""
     ":\"object\",\"required\":[\"role\",\"content\"],\"properties\":{\"role\":{\""
     "enum\":[\"system\",\"developer\",\"user\",\"assistant\",\"tool\"]},\"content"
     "\":{\"type\":\"string\"}}}},\"n\":{\"type\":\"integer\",\"minimum\":1,\"maxi"
     "mum\":16},\"logprobs\":{\"type\":\"boolean\"},\"max_completion_tokens\":{\"t"
     "ype\":\"integer\",\"minimum\":1,\"maximum\":64},\"tools\":{\"type\":\"array"
     "\",\"items\":{\"type\":\"object\"}},\"response_format\":{\"type\":\"object\""
     "}}}"},
    {"/v1/completions",
     "{\"type\":\"object\",\"required\":[\"prompt\"],\"properties\":{\"model\":{\""
     "type\":\"string\"},\"stream\":{\"type\":\"boolean\"},\"temperature\":{\"type"
     "\":\"number\",\"minimum\":0,\"maximum\":2},\"top_p\":{\"type\":\"number\",\""
     "minimum\":0,\"maximum\":1},\"max_tokens\":{\"type\":\"integer\",\"minimum\":"
     "1,\"maximum\":64},\"stop\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"arr"
     "ay\",\"items\":{\"type\":\"string\"},\"maxItems\":64}]},\"seed\":{\"type\":"
     "\"integer\"},\"presence_penalty\":{\"type\":\"number\",\"minimum\":-2,\"maxi"
     "mum\":2},\"frequency_penalty\":{\"type\":\"number\",\"minimum\":-2,\"maximum"
     "\":2},\"prompt\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"min"
     "Items\":1,\"items\":{\"type\":\"string\"}},{\"type\":\"array\",\"minItems\":"
     "1,\"items\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000}}]},\"n\":{"
     "\"type\":\"integer\",\"minimum\":1,\"maximum\":16},\"echo\":{\"type\":\"bool"
     "ean\"},\"logprobs\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":20},\"su"
     "ffix\":{\"type\":\"string\"}}}"},
    {"/v1/embeddings",
     "{\"type\":\"object\",\"required\":[\"input\"],\"properties\":{\"model\":{\"t"
     "ype\":\"string\"},\"input\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"ar"
     "ray\",\"minItems\":1,\"items\":{\"type\":\"string\"}},{\"type\":\"array\",\""
     "minItems\":1,\"items\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000}"
     "}]},\"encoding_format\":{\"enum\":[\"float\",\"base64\"]}}}"},
    {"/v1/responses", "{\"type\":\"object\",\"required\":[\"input\"],\"properties\":{\"model\":{\"t"
                      "ype\":\"string\"},\"input\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"ar"
                      "ray\"}]},\"instructions\":{\"type\":\"string\"},\"stream\":{\"type\":\"boole"
                      "an\"},\"max_output_tokens\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":"
                      "64},\"temperature\":{\"type\":\"number\",\"minimum\":0,\"maximum\":2}}}"},
    {"/v1/responses/input_tokens",
     "{\"type\":\"object\",\"required\":[\"input\"],\"properties\":{\"model\":{\"t"
     "ype\":\"string\"},\"input\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"ar"
     "ray\"}]},\"instructions\":{\"type\":\"string\"}}}"},
    {"/v1/messages", "{\"type\":\"object\",\"required\":[\"messages\",\"max_tokens\"],\"properties"
                     "\":{\"model\":{\"type\":\"string\"},\"messages\":{\"type\":\"array\",\"minIt"
                     "ems\":1,\"items\":{\"type\":\"object\",\"required\":[\"role\",\"content\"],"
                     "\"properties\":{\"role\":{\"enum\":[\"user\",\"assistant\"]},\"content\":{\""
                     "type\":\"string\"}}}},\"system\":{\"type\":\"string\"},\"max_tokens\":{\"typ"
                     "e\":\"integer\",\"minimum\":1,\"maximum\":64},\"stream\":{\"type\":\"boolean"
                     "\"},\"temperature\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1},\"stop"
                     "_sequences\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems"
                     "\":64}}}"},
    {"/v1/messages/count_tokens",
     "{\"type\":\"object\",\"required\":[\"messages\"],\"properties\":{\"model\":{"
     "\"type\":\"string\"},\"messages\":{\"type\":\"array\",\"minItems\":1,\"items"
     "\":{\"type\":\"object\",\"required\":[\"role\",\"content\"],\"properties\":{"
     "\"role\":{\"enum\":[\"user\",\"assistant\"]},\"content\":{\"type\":\"string"
     "\"}}}},\"system\":{\"type\":\"string\"}}}"},
    {"/api/chat", "{\"type\":\"object\",\"required\":[\"messages\"],\"properties\":{\"model\":{"
                  "\"type\":\"string\"},\"messages\":{\"type\":\"array\",\"minItems\":1,\"items"
                  "\":{\"type\":\"object\",\"required\":[\"role\",\"content\"],\"properties\":{"
                  "\"role\":{\"enum\":[\"user\",\"assistant\"]},\"content\":{\"type\":\"string"
                  "\"}}}},\"stream\":{\"type\":\"boolean\"},\"options\":{\"type\":\"object\",\""
                  "properties\":{\"num_predict\":{\"type\":\"integer\",\"minimum\":1,\"maximum"
                  "\":64},\"temperature\":{\"type\":\"number\",\"minimum\":0,\"maximum\":2},\"n"
                  "um_ctx\":{\"type\":\"integer\",\"minimum\":64,\"maximum\":4096}}}}}"},
    {"/api/generate", "{\"type\":\"object\",\"required\":[\"prompt\"],\"properties\":{\"model\":{\""
                      "type\":\"string\"},\"prompt\":{\"type\":\"string\"},\"system\":{\"type\":\"s"
                      "tring\"},\"stream\":{\"type\":\"boolean\"},\"options\":{\"type\":\"object\","
                      "\"properties\":{\"num_predict\":{\"type\":\"integer\",\"minimum\":1,\"maximu"
                      "m\":64},\"temperature\":{\"type\":\"number\",\"minimum\":0,\"maximum\":2},\""
                      "num_ctx\":{\"type\":\"integer\",\"minimum\":64,\"maximum\":4096}}}}}"},
    {"/api/embed", "{\"type\":\"object\",\"required\":[\"input\"],\"properties\":{\"model\":{\"t"
                   "ype\":\"string\"},\"input\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"ar"
                   "ray\",\"items\":{\"type\":\"string\"}}]}}}"},
    {"/api/embeddings",
     "{\"type\":\"object\",\"required\":[\"prompt\"],\"properties\":{\"model\":{\""
     "type\":\"string\"},\"prompt\":{\"type\":\"string\"}}}"},
    {"/api/show", "{\"type\":\"object\",\"properties\":{\"model\":{\"type\":\"string\"}}}"},
    {"/tokenize", "{\"type\":\"object\",\"required\":[\"content\"],\"properties\":{\"model\":{"
                  "\"type\":\"string\"},\"content\":{\"type\":\"string\"},\"add_special\":{\"ty"
                  "pe\":\"boolean\"},\"parse_special\":{\"type\":\"boolean\"},\"with_pieces\":{"
                  "\"type\":\"boolean\"}}}"},
    {"/detokenize", "{\"type\":\"object\",\"required\":[\"tokens\"],\"properties\":{\"model\":{\""
                    "type\":\"string\"},\"tokens\":{\"type\":\"array\",\"items\":{\"type\":\"inte"
                    "ger\",\"minimum\":0,\"maximum\":1000}}}}"},
    {"/apply-template",
     "{\"type\":\"object\",\"required\":[\"messages\"],\"properties\":{\"model\":{"
     "\"type\":\"string\"},\"messages\":{\"type\":\"array\",\"minItems\":1,\"items"
     "\":{\"type\":\"object\",\"required\":[\"role\",\"content\"],\"properties\":{"
     "\"role\":{\"enum\":[\"system\",\"developer\",\"user\",\"assistant\",\"tool\""
     "]},\"content\":{\"type\":\"string\"}}}}}}"},
    {"/completion", "{\"type\":\"object\",\"required\":[\"prompt\"],\"properties\":{\"model\":{\""
                    "type\":\"string\"},\"prompt\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\""
                    "array\",\"minItems\":1,\"items\":{\"type\":\"integer\",\"minimum\":0,\"maxim"
                    "um\":1000}}]},\"n_predict\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":"
                    "64},\"stream\":{\"type\":\"boolean\"},\"temperature\":{\"type\":\"number\","
                    "\"minimum\":0,\"maximum\":2},\"stop\":{\"anyOf\":[{\"type\":\"string\"},{\"t"
                    "ype\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":64}]}}}"},
    {"/infill", "{\"type\":\"object\",\"required\":[\"input_prefix\",\"input_suffix\"],\"prop"
                "erties\":{\"model\":{\"type\":\"string\"},\"input_prefix\":{\"type\":\"strin"
                "g\"},\"input_suffix\":{\"type\":\"string\"},\"prompt\":{\"type\":\"string\"}"
                ",\"n_predict\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":64}}}"},
};

static const char *body_of(const char *path)
{
    for (size_t i = 0; i < GN_COUNTOF(bodies); i++) {
        if (strcmp(bodies[i].path, path) == 0) {
            return bodies[i].schema;
        }
    }
    return "{\"type\":\"object\"}";
}

static void put_response(gn_json_out *json, const char *status, const char *text)
{
    gn_base_put_object(json, status);
    gn_base_put_str(json, "description", text);
    gn_base_put_end(json);
}

static void put_parameter(gn_json_out *json, const char *path)
{
    const char *open = strchr(path, '{');
    if (open == NULL) {
        return;
    }
    gn_base_put_array(json, "parameters");
    gn_base_put_object(json, NULL);
    gn_base_put_strn(json, "name", open + 1, strlen(open) - 2);
    gn_base_put_str(json, "in", "path");
    gn_base_put_bool(json, "required", true);
    gn_base_put_object(json, "schema");
    gn_base_put_str(json, "type", "string");
    gn_base_put_end(json);
    gn_base_put_end(json);
    gn_base_put_end(json);
}

static void put_operation(gn_json_out *json, const gn_route *row)
{
    const char *key = strcmp(row->method, "GET") == 0    ? "get"
                      : strcmp(row->method, "POST") == 0 ? "post"
                                                         : "delete";
    gn_base_put_object(json, key);
    gn_base_put_str(json, "summary", row->summary);
    put_parameter(json, row->path);
    if (strcmp(row->method, "POST") == 0) {
        const char *schema = body_of(row->path);
        gn_base_put_object(json, "requestBody");
        gn_base_put_bool(json, "required", true);
        gn_base_put_object(json, "content");
        gn_base_put_object(json, "application/json");
        gn_base_put_raw(json, "schema", schema, strlen(schema));
        gn_base_put_end(json);
        gn_base_put_end(json);
        gn_base_put_end(json);
    }
    gn_base_put_object(json, "responses");
    put_response(json, "200", "The answer; a stream of events where the request asks for one.");
    put_response(json, "400", "A field is wrong, or the prompt does not fit the context.");
    if (row->access != GN_ACCESS_OPEN) {
        put_response(json, "401", "No API key, or one that is not known.");
    }
    put_response(json, "403", "The key lacks a right, or the host or origin is not allowed.");
    put_response(json, "404", "No such model or thing.");
    put_response(json, "405", "The address knows other methods.");
    put_response(json, "413", "The body is too large.");
    put_response(json, "429", "A limit is used up, or the queue is full: Retry-After.");
    put_response(json, "503", "Loading or stopping: Retry-After.");
    gn_base_put_end(json);
    gn_base_put_end(json);
}

static bool seen_before(unsigned i, const char *path)
{
    for (unsigned j = 0; j < i; j++) {
        if (strcmp(gn_serve_route_at(j)->path, path) == 0) {
            return true;
        }
    }
    return false;
}

void gn_serve_openapi(gn_call *call)
{
    gn_buf body = {0};
    gn_json_out json;
    gn_base_json_out(&json, &body);
    gn_base_put_object(&json, NULL);
    gn_base_put_str(&json, "openapi", "3.1.0");
    gn_base_put_object(&json, "info");
    gn_base_put_str(&json, "title", "Ganglion");
    gn_base_put_str(&json, "version", gn_version());
    gn_base_put_end(&json);
    gn_base_put_object(&json, "paths");
    const gn_route *row;
    for (unsigned i = 0; (row = gn_serve_route_at(i)) != NULL; i++) {
        if (seen_before(i, row->path)) {
            continue;
        }
        gn_base_put_object(&json, row->path);
        const gn_route *other;
        for (unsigned j = i; (other = gn_serve_route_at(j)) != NULL; j++) {
            if (strcmp(other->path, row->path) == 0) {
                put_operation(&json, other);
            }
        }
        gn_base_put_end(&json);
    }
    gn_base_put_end(&json);
    gn_base_put_end(&json);
    if (json.status != GN_OK) {
        gn_buf_fini(&body);
        gn_serve_fail_status(call, json.status, NULL);
        return;
    }
    gn_serve_reply(call, 200, "application/json", &body);
}
