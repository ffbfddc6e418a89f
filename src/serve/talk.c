/* A message is collected in buffers and written when the next begins, because its members come in any order:
 * text after a tool call still belongs to `content`. The array is text first and jansson's value in the end:
 * parts of a request (arguments, schemas) are copied as they stand, without a tree between. */
#include "serve/talk.h"

#include <string.h>

/* Run the call where nothing has failed yet. */
#define KEEP(talk, call)                                                                           \
    do {                                                                                           \
        if ((talk)->status == GN_OK) {                                                             \
            (talk)->status = (call);                                                               \
        }                                                                                          \
    } while (0)

void gn_talk_init(gn_talk *talk)
{
    *talk = (gn_talk){0};
    gn_base_json_out(&talk->out, &talk->json);
    gn_base_put_array(&talk->out, NULL);
}

void gn_talk_fini(gn_talk *talk)
{
    if (talk != NULL) {
        gn_buf_fini(&talk->json);
        gn_buf_fini(&talk->text);
        gn_buf_fini(&talk->reasoning);
        gn_buf_fini(&talk->calls);
        gn_buf_fini(&talk->about);
    }
}

static void write_message(gn_talk *talk)
{
    if (talk->role == NULL) {
        return;
    }
    gn_json_out *out = &talk->out;
    gn_base_put_object(out, NULL);
    gn_base_put_str(out, "role", talk->role);
    if (talk->has_text || talk->calls.len == 0) {
        gn_base_put_strn(out, "content", talk->text.len == 0 ? "" : talk->text.data,
                         talk->text.len);
    } else {
        gn_base_put_null(out, "content");
    }
    if (talk->reasoning.len > 0) {
        gn_base_put_strn(out, "reasoning_content", talk->reasoning.data, talk->reasoning.len);
    }
    if (talk->calls.len > 0) {
        gn_base_put_array(out, "tool_calls");
        gn_base_put_raw(out, NULL, talk->calls.data, talk->calls.len);
        gn_base_put_end(out);
    }
    if (talk->about.len > 0) {
        KEEP(talk, gn_buf_append(out->buf, talk->about.data, talk->about.len));
    }
    gn_base_put_end(out);
    talk->role = NULL;
}

void gn_talk_begin(gn_talk *talk, const char *role)
{
    write_message(talk);
    gn_buf_clear(&talk->text);
    gn_buf_clear(&talk->reasoning);
    gn_buf_clear(&talk->calls);
    gn_buf_clear(&talk->about);
    talk->has_text = false;
    talk->role = role;
    talk->n++;
}

void gn_talk_continue(gn_talk *talk, const char *role)
{
    if (talk->role == NULL || strcmp(talk->role, role) != 0) {
        gn_talk_begin(talk, role);
    }
}

static void put_about(gn_talk *talk, const char *key, const gn_json *string)
{
    if (string != NULL && string->len > 0) {
        KEEP(talk, gn_buf_printf(&talk->about, ",\"%s\":", key));
        KEEP(talk, gn_base_json_quote(&talk->about, string->text, string->len));
    }
}

void gn_talk_result(gn_talk *talk, const gn_json *id, const gn_json *name)
{
    gn_talk_begin(talk, "tool");
    put_about(talk, "tool_call_id", id);
    put_about(talk, "name", name);
}

void gn_talk_text(gn_talk *talk, const char *s, size_t len)
{
    if (talk->has_text) {
        KEEP(talk, gn_buf_putc(&talk->text, '\n'));
    }
    KEEP(talk, gn_buf_append(&talk->text, s, len));
    talk->has_text = true;
}

void gn_talk_reasoning(gn_talk *talk, const char *s, size_t len)
{
    if (talk->reasoning.len > 0) {
        KEEP(talk, gn_buf_putc(&talk->reasoning, '\n'));
    }
    KEEP(talk, gn_buf_append(&talk->reasoning, s, len));
}

void gn_talk_call(gn_talk *talk, const gn_json *id, const gn_json *name, const char *arguments,
                  size_t len, bool compact)
{
    gn_buf packed = {0};
    if (compact) {
        KEEP(talk, gn_talk_compact(&packed, arguments, len));
        arguments = packed.len == 0 ? "" : packed.data;
        len = packed.len;
    }
    if (talk->calls.len > 0) {
        KEEP(talk, gn_buf_putc(&talk->calls, ','));
    }
    gn_json_out out;
    gn_base_json_out(&out, &talk->calls);
    gn_base_put_object(&out, NULL);
    if (id != NULL && id->len > 0) {
        gn_base_put_strn(&out, "id", id->text, id->len);
    }
    gn_base_put_str(&out, "type", "function");
    gn_base_put_object(&out, "function");
    gn_base_put_strn(&out, "name", name->text, name->len);
    gn_base_put_strn(&out, "arguments", arguments, len);
    gn_base_put_end(&out);
    gn_base_put_end(&out);
    KEEP(talk, out.status);
    gn_buf_fini(&packed);
}

gn_status gn_talk_end(gn_talk *talk)
{
    write_message(talk);
    gn_base_put_end(&talk->out);
    KEEP(talk, talk->out.status);
    return talk->status;
}

gn_status gn_talk_value(const char *json, size_t len, json_t **out)
{
    json_error_t error;
    json_t *value = json_loadb(json, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    if (value == NULL) {
        return json_error_code(&error) == json_error_out_of_memory
                   ? gn_base_fail(GN_E_NOMEM, "out of memory")
                   : gn_base_fail(GN_E_ARG, "the request's JSON: %s", error.text);
    }
    *out = value;
    return GN_OK;
}

/* A JSON value made of the text, both in the arena. */
static gn_status parse_copy(gn_arena *arena, const gn_json_out *json, const gn_json **out)
{
    GN_TRY(json->status);
    char *copy = gn_arena_strndup(arena, json->buf->data, json->buf->len);
    GN_REQUIRE(copy != NULL, GN_E_NOMEM, "out of memory");
    return gn_base_json_parse(arena, copy, json->buf->len, out, NULL);
}

gn_status gn_talk_names(gn_arena *arena, const gn_json *const *names, size_t n, const gn_json **out)
{
    gn_buf text = {0};
    gn_json_out json;
    gn_base_json_out(&json, &text);
    gn_base_put_array(&json, NULL);
    for (size_t i = 0; i < n; i++) {
        gn_base_put_strn(&json, NULL, names[i]->text, names[i]->len);
    }
    gn_base_put_end(&json);
    const gn_status status = parse_copy(arena, &json, out);
    gn_buf_fini(&text);
    return status;
}

gn_status gn_talk_thinking(gn_arena *arena, const bool *think, const gn_json *effort,
                           const gn_json **out)
{
    if (think == NULL && effort == NULL) {
        return GN_OK;
    }
    const bool none = effort != NULL && gn_base_json_is(effort, "none");
    gn_buf text = {0};
    gn_json_out json;
    gn_base_json_out(&json, &text);
    gn_base_put_object(&json, NULL);
    if (think != NULL || none) {
        gn_base_put_bool(&json, "enable_thinking", !none && *think);
    }
    if (effort != NULL && !none) {
        gn_base_put_strn(&json, "reasoning_effort", effort->text, effort->len);
    }
    gn_base_put_end(&json);
    const gn_status status = parse_copy(arena, &json, out);
    gn_buf_fini(&text);
    return status;
}

gn_status gn_talk_compact(gn_buf *buf, const char *json, size_t len)
{
    GN_TRY(gn_buf_reserve(buf, len));
    bool quoted = false;
    size_t start = 0;
    for (size_t i = 0; i < len; i++) {
        const char c = json[i];
        if (quoted) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                quoted = false;
            }
        } else if (c == '"') {
            quoted = true;
        } else if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
            GN_TRY(gn_buf_append(buf, json + start, i - start));
            start = i + 1;
        }
    }
    return gn_buf_append(buf, json + start, len - start);
}

void gn_talk_put(gn_json_out *out, const char *key, const gn_json *value)
{
    gn_buf packed = {0};
    if (out->status == GN_OK) {
        out->status = gn_talk_compact(&packed, value->raw, value->raw_len);
    }
    gn_base_put_raw(out, key, packed.len == 0 ? "null" : packed.data,
                    packed.len == 0 ? 4 : packed.len);
    gn_buf_fini(&packed);
}
