/* Deltas of a chat as the events of the Responses API. The parts of an answer are its output items, numbered from
 * 0; one is open at a time:
 *
 *     response.created response.in_progress
 *       message:  output_item.added content_part.added output_text.delta… output_text.done content_part.done
 *       reasoning: the same with reasoning_text             function_call: function_call_arguments.delta… done
 *       custom_tool_call: custom_tool_call_input.delta done           each: output_item.done
 *     response.completed, or response.incomplete at the token limit, or response.failed
 *
 * The text of all items is kept, because the last events repeat it. The input of a custom tool is known only when
 * its JSON is whole, so it comes in one delta. */
#include "serve/responses.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

typedef struct kind {
    const char *item;   /* type of the item */
    const char *prefix; /* of its id */
    const char *delta, *done;
    const char *text_key; /* of what is said, in `done` and in the item */
} kind;

static const kind MESSAGE = {"message", "msg", "response.output_text.delta",
                             "response.output_text.done", "text"};
static const kind REASONING = {"reasoning", "rs", "response.reasoning_text.delta",
                               "response.reasoning_text.done", "text"};
static const kind FUNCTION = {"function_call", "fc", "response.function_call_arguments.delta",
                              "response.function_call_arguments.done", "arguments"};
static const kind CUSTOM = {"custom_tool_call", "ctc", "response.custom_tool_call_input.delta",
                            "response.custom_tool_call_input.done", "input"};

static const kind *kind_of(const gn_responses_stream *stream, const gn_part *part)
{
    if (part->type == GN_CHAT_TEXT) {
        return &MESSAGE;
    }
    if (part->type == GN_CHAT_REASONING) {
        return &REASONING;
    }
    return gn_responses_is_custom(stream->body, part->name) ? &CUSTOM : &FUNCTION;
}

/* --- items --- */

static void put_id(gn_json_out *out, const char *key, const gn_responses_stream *stream,
                   const char *prefix, size_t index)
{
    char id[96];
    (void)snprintf(id, sizeof id, "%s_%.60s_%zu", prefix, stream->key, index);
    gn_base_put_str(out, key, id);
}

/* What a part says, in text: of a custom call the string in its arguments. */
static gn_status put_said(gn_json_out *out, const char *key, const kind *k, const gn_part *part)
{
    const char *text = part->text.len == 0 ? "" : part->text.data;
    if (k != &CUSTOM) {
        gn_base_put_strn(out, key, text, part->text.len);
        return out->status;
    }
    gn_arena arena;
    gn_arena_init(&arena, 0);
    const gn_json *value = NULL;
    const gn_json *input = NULL;
    if (gn_base_json_parse(&arena, text, part->text.len, &value, NULL) == GN_OK) {
        input = gn_base_json_get(value, "input");
    }
    if (input != NULL && input->type == GN_JSON_STRING) {
        gn_base_put_strn(out, key, input->text, input->len);
    } else {
        gn_base_put_str(out, key, "");
    }
    gn_arena_fini(&arena);
    return out->status;
}

static void put_logprobs(gn_json_out *out, const gn_buf *entries)
{
    gn_base_put_array(out, "logprobs");
    if (entries != NULL && entries->len > 0) {
        gn_base_put_raw(out, NULL, entries->data, entries->len);
    }
    gn_base_put_end(out);
}

/* A content part; `empty`: as it begins. */
static void put_content(gn_json_out *out, const char *key, const gn_part *part, bool empty)
{
    gn_base_put_object(out, key);
    const size_t len = empty ? 0 : part->text.len;
    if (part->type == GN_CHAT_REASONING) {
        gn_base_put_str(out, "type", "reasoning_text");
        gn_base_put_strn(out, "text", len == 0 ? "" : part->text.data, len);
    } else {
        gn_base_put_str(out, "type", "output_text");
        gn_base_put_raw(out, "annotations", "[]", 2);
        put_logprobs(out, empty ? NULL : &part->logprobs);
        gn_base_put_strn(out, "text", len == 0 ? "" : part->text.data, len);
    }
    gn_base_put_end(out);
}

static void put_item(gn_json_out *out, const char *key, const gn_responses_stream *stream,
                     const gn_part *part, size_t index, const char *status)
{
    const kind *k = kind_of(stream, part);
    const bool begins = strcmp(status, "in_progress") == 0;
    gn_base_put_object(out, key);
    put_id(out, "id", stream, k->prefix, index);
    gn_base_put_str(out, "type", k->item);
    if (k == &MESSAGE || k == &FUNCTION) {
        gn_base_put_str(out, "status", status);
    }
    if (part->type == GN_CHAT_CALL) {
        gn_base_put_str(out, "call_id", part->id);
        gn_base_put_str(out, "name", part->name);
        if (begins) {
            gn_base_put_str(out, k->text_key, "");
        } else {
            (void)put_said(out, k->text_key, k, part);
        }
    } else {
        if (k == &MESSAGE) {
            gn_base_put_str(out, "role", "assistant");
        } else {
            gn_base_put_raw(out, "summary", "[]", 2);
        }
        gn_base_put_array(out, "content");
        if (!begins) {
            put_content(out, NULL, part, false);
        }
        gn_base_put_end(out);
    }
    gn_base_put_end(out);
}

/* --- the response --- */

static void put_usage(gn_json_out *out, const gn_chat_usage *usage)
{
    gn_base_put_object(out, "usage");
    gn_base_put_int(out, "input_tokens", usage->n_prompt);
    gn_base_put_object(out, "input_tokens_details");
    gn_base_put_int(out, "cached_tokens", usage->n_cached);
    gn_base_put_int(out, "cache_write_tokens", 0);
    gn_base_put_end(out);
    gn_base_put_int(out, "output_tokens", usage->n_generated);
    gn_base_put_object(out, "output_tokens_details");
    gn_base_put_int(out, "reasoning_tokens", usage->n_reasoning);
    gn_base_put_end(out);
    gn_base_put_int(out, "total_tokens", usage->n_prompt + usage->n_generated);
    gn_base_put_end(out);
}

/* The settings of the request, or what it means where they are not there. */
static void put_settings(gn_json_out *out, const gn_json *body)
{
    static const char *const keys[][2] = {
        {"instructions", "null"},
        {"max_output_tokens", "null"},
        {"max_tool_calls", "null"},
        {"metadata", "{}"},
        {"parallel_tool_calls", "true"},
        {"prompt_cache_key", "null"},
        {"reasoning", "{\"effort\":null,\"summary\":null}"},
        {"safety_identifier", "null"},
        {"temperature", "1"},
        {"text", "{\"format\":{\"type\":\"text\"}}"},
        {"tool_choice", "\"auto\""},
        {"tools", "[]"},
        {"top_logprobs", "0"},
        {"top_p", "1"},
        {"user", "null"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const gn_json *own = gn_ask_get(body, keys[i][0]);
        if (own != NULL) {
            gn_talk_put(out, keys[i][0], own);
        } else {
            gn_base_put_raw(out, keys[i][0], keys[i][1], strlen(keys[i][1]));
        }
    }
    gn_base_put_bool(out, "background", false);
    gn_base_put_null(out, "previous_response_id");
    gn_base_put_str(out, "service_tier", "default");
    gn_base_put_bool(out, "store", false);
    gn_base_put_str(out, "truncation", "disabled");
}

static const char *final_status(const gn_parts *parts)
{
    return parts->ended && parts->finish == GN_FINISH_STOP ? "completed" : "incomplete";
}

static void put_output(gn_json_out *out, const gn_responses_stream *stream, const gn_parts *parts)
{
    gn_base_put_array(out, "output");
    for (size_t i = 0; i < parts->n; i++) {
        put_item(out, NULL, stream, &parts->v[i], i,
                 i + 1 < parts->n ? "completed" : final_status(parts));
    }
    gn_base_put_end(out);
}

/* usage: NULL before the end. error: NULL, or what went wrong. */
static void put_response(gn_json_out *out, const char *key, const gn_responses_stream *stream,
                         const gn_parts *parts, const char *status, const gn_chat_usage *usage,
                         const char *error)
{
    gn_base_put_object(out, key);
    put_id(out, "id", stream, "resp", 0);
    gn_base_put_str(out, "object", "response");
    gn_base_put_int(out, "created_at", stream->created);
    gn_base_put_str(out, "status", status);
    if (error != NULL) {
        gn_base_put_object(out, "error");
        gn_base_put_str(out, "code", "server_error");
        gn_base_put_str(out, "message", error);
        gn_base_put_end(out);
    } else {
        gn_base_put_null(out, "error");
    }
    if (strcmp(status, "incomplete") == 0) {
        gn_base_put_raw(out, "incomplete_details", "{\"reason\":\"max_output_tokens\"}", 30);
    } else {
        gn_base_put_null(out, "incomplete_details");
    }
    gn_base_put_str(out, "model", stream->model);
    put_settings(out, stream->body);
    put_output(out, stream, parts);
    if (usage != NULL) {
        put_usage(out, usage);
    } else {
        gn_base_put_null(out, "usage");
    }
    gn_base_put_end(out);
}

gn_status gn_responses_whole(const gn_responses_stream *stream, const gn_parts *parts,
                             const gn_chat_usage *usage, gn_buf *out)
{
    gn_json_out json;
    gn_base_json_out(&json, out);
    put_response(&json, NULL, stream, parts, final_status(parts), usage, NULL);
    return json.status;
}

/* --- events --- */

/* "event: TYPE\ndata: {"type":"TYPE","sequence_number":N", to be ended by end_event(). */
static gn_status begin_event(gn_responses_stream *stream, gn_json_out *json, gn_buf *out,
                             const char *type)
{
    GN_TRY(gn_buf_printf(out, "event: %s\ndata: ", type));
    gn_base_json_out(json, out);
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "type", type);
    gn_base_put_int(json, "sequence_number", stream->sequence++);
    return GN_OK;
}

static gn_status end_event(gn_json_out *json)
{
    gn_base_put_end(json);
    GN_TRY(json->status);
    return gn_buf_append(json->buf, "\n\n", 2);
}

static gn_status response_event(gn_responses_stream *stream, const char *type, const char *status,
                                const gn_chat_usage *usage, const char *error, gn_buf *out)
{
    gn_json_out json;
    GN_TRY(begin_event(stream, &json, out, type));
    put_response(&json, "response", stream, &stream->parts, status, usage, error);
    return end_event(&json);
}

/* An event about the last item: its id, its index, and for items with content the index of that. */
static gn_status begin_item_event(gn_responses_stream *stream, const kind *k, const char *type,
                                  gn_json_out *json, gn_buf *out)
{
    const size_t index = stream->parts.n - 1;
    GN_TRY(begin_event(stream, json, out, type));
    put_id(json, "item_id", stream, k->prefix, index);
    gn_base_put_uint(json, "output_index", index);
    if (k == &MESSAGE || k == &REASONING) {
        gn_base_put_int(json, "content_index", 0);
    }
    return GN_OK;
}

static gn_status item_event(gn_responses_stream *stream, const char *type, const char *status,
                            gn_buf *out)
{
    const size_t index = stream->parts.n - 1;
    gn_json_out json;
    GN_TRY(begin_event(stream, &json, out, type));
    gn_base_put_uint(&json, "output_index", index);
    put_item(&json, "item", stream, &stream->parts.v[index], index, status);
    return end_event(&json);
}

static gn_status content_event(gn_responses_stream *stream, const kind *k, const char *type,
                               bool empty, gn_buf *out)
{
    gn_json_out json;
    GN_TRY(begin_item_event(stream, k, type, &json, out));
    put_content(&json, "part", &stream->parts.v[stream->parts.n - 1], empty);
    return end_event(&json);
}

static gn_status delta_event(gn_responses_stream *stream, const kind *k, const char *text,
                             size_t len, const char *logprob, gn_buf *out)
{
    gn_json_out json;
    GN_TRY(begin_item_event(stream, k, k->delta, &json, out));
    gn_base_put_strn(&json, "delta", len == 0 ? "" : text, len);
    if (k == &MESSAGE) {
        gn_base_put_array(&json, "logprobs");
        if (logprob[0] != '\0') {
            gn_base_put_raw(&json, NULL, logprob, strlen(logprob));
        }
        gn_base_put_end(&json);
    }
    return end_event(&json);
}

static gn_status flush_held(gn_responses_stream *stream, const char *logprob, gn_buf *out)
{
    if (stream->held.len == 0 && logprob[0] == '\0') {
        return GN_OK;
    }
    GN_TRY(delta_event(stream, &MESSAGE, stream->held.data, stream->held.len, logprob, out));
    gn_buf_clear(&stream->held);
    return GN_OK;
}

/* The input of a custom call, as it is now, in one delta. */
static gn_status custom_delta(gn_responses_stream *stream, const gn_part *part, gn_buf *out)
{
    gn_json_out json;
    GN_TRY(begin_item_event(stream, &CUSTOM, CUSTOM.delta, &json, out));
    GN_TRY(put_said(&json, "delta", &CUSTOM, part));
    return end_event(&json);
}

static gn_status close_item(gn_responses_stream *stream, const char *status, gn_buf *out)
{
    if (!stream->open) {
        return GN_OK;
    }
    GN_TRY(flush_held(stream, "", out));
    const gn_part *part = &stream->parts.v[stream->parts.n - 1];
    const kind *k = kind_of(stream, part);
    if (k == &CUSTOM) {
        GN_TRY(custom_delta(stream, part, out));
    }
    gn_json_out json;
    GN_TRY(begin_item_event(stream, k, k->done, &json, out));
    if (k == &FUNCTION) {
        gn_base_put_str(&json, "name", part->name);
    }
    GN_TRY(put_said(&json, k->text_key, k, part));
    if (k == &MESSAGE) {
        put_logprobs(&json, &part->logprobs);
    }
    GN_TRY(end_event(&json));
    if (k == &MESSAGE || k == &REASONING) {
        GN_TRY(content_event(stream, k, "response.content_part.done", false, out));
    }
    stream->open = false;
    return item_event(stream, "response.output_item.done", status, out);
}

/* The delta is added to the parts; where it begins one, the item before is closed and this one opened. */
static gn_status add_delta(gn_responses_stream *stream, const gn_chat_delta *delta, gn_buf *out)
{
    const bool begins = delta->type == GN_CHAT_CALL || stream->parts.n == 0 ||
                        stream->parts.v[stream->parts.n - 1].type != delta->type;
    if (!begins) {
        return gn_parts_add(&stream->parts, delta, NULL);
    }
    GN_TRY(close_item(stream, "completed", out));
    GN_TRY(gn_parts_add(&stream->parts, delta, NULL));
    const gn_part *part = &stream->parts.v[stream->parts.n - 1];
    GN_TRY(item_event(stream, "response.output_item.added", "in_progress", out));
    stream->open = true;
    return delta->type == GN_CHAT_CALL ? GN_OK
                                       : content_event(stream, kind_of(stream, part),
                                                       "response.content_part.added", true, out);
}

static gn_status add_text(gn_responses_stream *stream, const gn_chat_delta *delta, gn_buf *out)
{
    if (delta->len == 0) {
        return GN_OK;
    }
    const bool text = delta->type == GN_CHAT_TEXT;
    if (text && stream->logprobs) {
        GN_TRY(flush_held(stream, "", out));
    }
    GN_TRY(add_delta(stream, delta, out));
    if (text && stream->logprobs) {
        return gn_buf_append(&stream->held, delta->text, delta->len);
    }
    return delta_event(stream, text ? &MESSAGE : &REASONING, delta->text, delta->len, "", out);
}

static gn_status add_logprob(gn_responses_stream *stream, const char *logprob, gn_buf *out)
{
    if (logprob[0] == '\0' || !stream->open ||
        stream->parts.v[stream->parts.n - 1].type != GN_CHAT_TEXT) {
        return GN_OK;
    }
    gn_buf *list = &stream->parts.v[stream->parts.n - 1].logprobs;
    GN_TRY(gn_buf_printf(list, "%s%s", list->len > 0 ? "," : "", logprob));
    return flush_held(stream, logprob, out);
}

static gn_status add_arguments(gn_responses_stream *stream, const gn_chat_delta *delta, gn_buf *out)
{
    GN_TRY(gn_parts_add(&stream->parts, delta, NULL));
    if (delta->len == 0 || !stream->open ||
        kind_of(stream, &stream->parts.v[stream->parts.n - 1]) != &FUNCTION) {
        return GN_OK;
    }
    return delta_event(stream, &FUNCTION, delta->text, delta->len, "", out);
}

static gn_status finish(gn_responses_stream *stream, const gn_chat_delta *delta,
                        const gn_chat_usage *usage, gn_buf *out)
{
    GN_TRY(gn_parts_add(&stream->parts, delta, NULL));
    const char *status = final_status(&stream->parts);
    GN_TRY(close_item(stream, status, out));
    return response_event(stream, status[0] == 'c' ? "response.completed" : "response.incomplete",
                          status, usage, NULL, out);
}

gn_status gn_responses_event(gn_responses_stream *stream, const gn_chat_delta *delta,
                             const gn_chat_usage *usage, const char *logprob, gn_buf *out)
{
    switch (delta->type) {
    case GN_CHAT_START:
        GN_TRY(response_event(stream, "response.created", "in_progress", NULL, NULL, out));
        return response_event(stream, "response.in_progress", "in_progress", NULL, NULL, out);
    case GN_CHAT_TEXT:
    case GN_CHAT_REASONING: return add_text(stream, delta, out);
    case GN_CHAT_LOGPROB: return add_logprob(stream, logprob, out);
    case GN_CHAT_CALL: return add_delta(stream, delta, out);
    case GN_CHAT_ARGUMENTS: return add_arguments(stream, delta, out);
    case GN_CHAT_FINISH: return finish(stream, delta, usage, out);
    case GN_CHAT_PING: return gn_buf_puts(out, ": ping\n\n");
    case GN_CHAT_FAILED:
        return response_event(stream, "response.failed", "failed", usage, delta->text, out);
    }
    return GN_OK;
}

void gn_responses_stream_fini(gn_responses_stream *stream)
{
    gn_parts_fini(&stream->parts);
    gn_buf_fini(&stream->held);
}
