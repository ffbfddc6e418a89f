/* Deltas of a chat as chunks. Each thing is said once: the role in a choice's first chunk, a call's id and name in the
 * call's first, the reason of the end in a chunk of its own; clients add up what they get. */
#include "serve/openai.h"

#include <string.h>

/* --- tokens and their log-probabilities --- */

static void put_token(gn_json_out *json, const gn_model *vocabulary, int32_t id, float logprob)
{
    char *text = NULL;
    size_t len = 0;
    if (json->status != GN_OK) {
        return;
    }
    json->status = gn_model_piece(vocabulary, id, true, &text, &len);
    if (json->status != GN_OK) {
        return;
    }
    gn_base_put_strn(json, "token", text, len);
    gn_base_put_int(json, "id", id);
    /* The API has no infinity; a token that is out of the question gets a very small number. */
    gn_base_put_float(json, "logprob", logprob > -9999.0f ? logprob : -9999.0f);
    gn_base_put_array(json, "bytes");
    for (size_t i = 0; i < len; i++) {
        gn_base_put_int(json, NULL, (unsigned char)text[i]);
    }
    gn_base_put_end(json);
    gn_release(text);
}

void gn_openai_put_logprob(gn_json_out *json, const gn_model *vocabulary,
                           const gn_token_logprob *token)
{
    gn_base_put_object(json, NULL);
    put_token(json, vocabulary, token->id, token->logprob);
    gn_base_put_array(json, "top_logprobs");
    for (int32_t i = 0; i < token->n_top; i++) {
        gn_base_put_object(json, NULL);
        put_token(json, vocabulary, token->top[i].id, token->top[i].logprob);
        gn_base_put_end(json);
    }
    gn_base_put_end(json);
    gn_base_put_end(json);
}

/* --- usage --- */

void gn_openai_put_usage(gn_json_out *json, const gn_chat_usage *usage)
{
    gn_base_put_object(json, "usage");
    gn_base_put_int(json, "prompt_tokens", usage->n_prompt);
    gn_base_put_int(json, "completion_tokens", usage->n_generated);
    gn_base_put_int(json, "total_tokens", usage->n_prompt + usage->n_generated);
    gn_base_put_object(json, "prompt_tokens_details");
    gn_base_put_int(json, "cached_tokens", usage->n_cached);
    gn_base_put_end(json);
    gn_base_put_object(json, "completion_tokens_details");
    gn_base_put_int(json, "reasoning_tokens", usage->n_reasoning);
    gn_base_put_int(json, "accepted_prediction_tokens", 0);
    gn_base_put_int(json, "rejected_prediction_tokens", 0);
    gn_base_put_end(json);
    gn_base_put_end(json);
}

static double rate(int64_t n, double ms)
{
    return ms > 0 ? (double)n / ms * 1e3 : 0;
}

void gn_openai_put_timings(gn_json_out *json, const gn_chat_usage *usage)
{
    int64_t n_evaluated = usage->n_prompt - usage->n_cached;
    gn_base_put_object(json, "timings");
    gn_base_put_int(json, "cache_n", usage->n_cached);
    gn_base_put_int(json, "prompt_n", n_evaluated);
    gn_base_put_real(json, "prompt_ms", usage->prompt_ms, 3);
    gn_base_put_real(json, "prompt_per_second", rate(n_evaluated, usage->prompt_ms), 3);
    gn_base_put_int(json, "predicted_n", usage->n_generated);
    gn_base_put_real(json, "predicted_ms", usage->generate_ms, 3);
    gn_base_put_real(json, "predicted_per_second", rate(usage->n_generated, usage->generate_ms), 3);
    gn_base_put_real(json, "queue_ms", usage->queue_ms, 3);
    gn_base_put_end(json);
}

const char *gn_openai_finish(gn_finish finish, bool called, bool legacy)
{
    if (finish != GN_FINISH_STOP) {
        return "length";
    }
    return !called ? "stop" : legacy ? "function_call" : "tool_calls";
}

/* --- chunks --- */

static gn_status begin_chunk(gn_json_out *json, const gn_openai_stream *stream, gn_buf *out)
{
    GN_TRY(gn_buf_puts(out, "data: "));
    gn_base_json_out(json, out);
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "id", stream->id);
    gn_base_put_str(json, "object", "chat.completion.chunk");
    gn_base_put_int(json, "created", stream->created);
    gn_base_put_str(json, "model", stream->model);
    gn_base_put_str(json, "system_fingerprint", stream->fingerprint);
    return GN_OK;
}

static gn_status end_chunk(gn_json_out *json)
{
    gn_base_put_end(json);
    GN_TRY(json->status);
    return gn_buf_append(json->buf, "\n\n", 2);
}

/* A chunk up to its delta, to be ended by end_delta(). */
static gn_status begin_delta(gn_json_out *json, const gn_openai_stream *stream, int32_t index,
                             gn_buf *out)
{
    GN_TRY(begin_chunk(json, stream, out));
    gn_base_put_array(json, "choices");
    gn_base_put_object(json, NULL);
    gn_base_put_int(json, "index", index);
    gn_base_put_object(json, "delta");
    return GN_OK;
}

static gn_status end_delta(gn_json_out *json, const gn_openai_stream *stream,
                           const gn_token_logprob *token, const char *finish, bool closed)
{
    gn_base_put_end(json);
    if (token != NULL) {
        gn_base_put_object(json, "logprobs");
        gn_base_put_array(json, "content");
        gn_openai_put_logprob(json, stream->vocabulary, token);
        gn_base_put_end(json);
        gn_base_put_null(json, "refusal");
        gn_base_put_end(json);
    } else {
        gn_base_put_null(json, "logprobs");
    }
    gn_base_put_str(json, "finish_reason", finish);
    if (closed) {
        gn_base_put_bool(json, "grammar_closed", true);
    }
    gn_base_put_end(json);
    gn_base_put_end(json);
    if (stream->include_usage) {
        gn_base_put_null(json, "usage");
    }
    return end_chunk(json);
}

static gn_status put_content(gn_openai_stream *stream, int32_t index, const char *text, size_t len,
                             const gn_token_logprob *token, gn_buf *out)
{
    gn_json_out json;
    GN_TRY(begin_delta(&json, stream, index, out));
    gn_base_put_strn(&json, "content", text, len);
    return end_delta(&json, stream, token, NULL, false);
}

static gn_status put_call(gn_openai_stream *stream, const gn_chat_delta *delta, gn_buf *out)
{
    gn_json_out json;
    bool begins = delta->type == GN_CHAT_CALL;
    GN_TRY(begin_delta(&json, stream, delta->index, out));
    if (!stream->legacy) {
        gn_base_put_array(&json, "tool_calls");
        gn_base_put_object(&json, NULL);
        gn_base_put_int(&json, "index", delta->call_index);
        if (begins) {
            gn_base_put_str(&json, "id", delta->id);
            gn_base_put_str(&json, "type", "function");
        }
    }
    gn_base_put_object(&json, stream->legacy ? "function_call" : "function");
    if (begins) {
        gn_base_put_str(&json, "name", delta->name);
    }
    gn_base_put_strn(&json, "arguments", begins ? "" : delta->text, begins ? 0 : delta->len);
    gn_base_put_end(&json);
    if (!stream->legacy) {
        gn_base_put_end(&json);
        gn_base_put_end(&json);
    }
    return end_delta(&json, stream, NULL, NULL, false);
}

/* Text waits for its log-probability, where one is to come. */
static gn_status flush_pending(gn_openai_stream *stream, int32_t index,
                               const gn_token_logprob *token, gn_buf *out)
{
    if (stream->pending.len == 0 && token == NULL) {
        return GN_OK;
    }
    const char *text = stream->pending.data != NULL ? stream->pending.data : "";
    gn_status status = put_content(stream, index, text, stream->pending.len, token, out);
    gn_buf_clear(&stream->pending);
    return status;
}

gn_status gn_openai_event(gn_openai_stream *stream, const gn_chat_delta *delta, gn_buf *out)
{
    gn_json_out json;
    switch (delta->type) {
    case GN_CHAT_START:
        GN_TRY(begin_delta(&json, stream, delta->index, out));
        gn_base_put_str(&json, "role", "assistant");
        gn_base_put_str(&json, "content", "");
        return end_delta(&json, stream, NULL, NULL, false);
    case GN_CHAT_TEXT:
        if (stream->logprobs) {
            return gn_buf_append(&stream->pending, delta->text, delta->len);
        }
        return put_content(stream, delta->index, delta->text, delta->len, NULL, out);
    case GN_CHAT_REASONING:
        GN_TRY(begin_delta(&json, stream, delta->index, out));
        gn_base_put_strn(&json, "reasoning_content", delta->text, delta->len);
        return end_delta(&json, stream, NULL, NULL, false);
    case GN_CHAT_CALL:
    case GN_CHAT_ARGUMENTS:
        GN_TRY(flush_pending(stream, delta->index, NULL, out));
        return put_call(stream, delta, out);
    case GN_CHAT_LOGPROB: return flush_pending(stream, delta->index, &delta->token, out);
    case GN_CHAT_FINISH:
        GN_TRY(flush_pending(stream, delta->index, NULL, out));
        GN_TRY(begin_delta(&json, stream, delta->index, out));
        return end_delta(&json, stream, NULL,
                         gn_openai_finish(delta->finish, delta->called, stream->legacy),
                         delta->grammar_closed);
    case GN_CHAT_PING: return gn_buf_puts(out, ": ping\n\n");
    case GN_CHAT_FAILED: break;
    }
    return GN_OK;
}

gn_status gn_openai_done(gn_openai_stream *stream, const gn_chat_usage *usage, gn_buf *out)
{
    if (stream->include_usage) {
        gn_json_out json;
        GN_TRY(begin_chunk(&json, stream, out));
        gn_base_put_array(&json, "choices");
        gn_base_put_end(&json);
        gn_openai_put_usage(&json, usage);
        gn_openai_put_timings(&json, usage);
        GN_TRY(end_chunk(&json));
    }
    return gn_buf_puts(out, "data: [DONE]\n\n");
}

/* --- whole replies --- */

gn_status gn_openai_keep(const gn_openai_stream *stream, gn_openai_choice *choice,
                         const gn_chat_delta *delta)
{
    if (delta->type == GN_CHAT_LOGPROB) {
        gn_json_out json;
        if (choice->logprobs.len > 0) {
            GN_TRY(gn_buf_putc(&choice->logprobs, ','));
        }
        gn_base_json_out(&json, &choice->logprobs);
        gn_openai_put_logprob(&json, stream->vocabulary, &delta->token);
        return json.status;
    }
    choice->grammar_closed = choice->grammar_closed || delta->grammar_closed;
    return gn_parts_add(&choice->parts, delta, NULL);
}

/* The text of all parts of one kind; null where there is none. */
static void put_texts(gn_json_out *json, const char *key, const gn_parts *parts,
                      gn_chat_delta_type type)
{
    gn_buf text = {0};
    bool any = false;
    for (size_t i = 0; i < parts->n && json->status == GN_OK; i++) {
        if (parts->v[i].type == type) {
            any = true;
            json->status = gn_buf_append(&text, parts->v[i].text.data, parts->v[i].text.len);
        }
    }
    if (any) {
        gn_base_put_strn(json, key, text.data, text.len);
    } else if (type == GN_CHAT_TEXT) {
        gn_base_put_null(json, key);
    }
    gn_buf_fini(&text);
}

static void put_function(gn_json_out *json, const char *key, const gn_part *part)
{
    gn_base_put_object(json, key);
    gn_base_put_str(json, "name", part->name);
    gn_base_put_strn(json, "arguments", part->text.data != NULL ? part->text.data : "",
                     part->text.len);
    gn_base_put_end(json);
}

static void put_calls(gn_json_out *json, const gn_parts *parts, bool legacy)
{
    bool open = false;
    for (size_t i = 0; i < parts->n; i++) {
        const gn_part *part = &parts->v[i];
        if (part->type != GN_CHAT_CALL) {
            continue;
        }
        if (legacy) {
            put_function(json, "function_call", part);
            return;
        }
        if (!open) {
            gn_base_put_array(json, "tool_calls");
            open = true;
        }
        gn_base_put_object(json, NULL);
        gn_base_put_str(json, "id", part->id);
        gn_base_put_str(json, "type", "function");
        put_function(json, "function", part);
        gn_base_put_end(json);
    }
    if (open) {
        gn_base_put_end(json);
    }
}

static bool has_text(const gn_parts *parts)
{
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->v[i].type != GN_CHAT_REASONING) {
            return true;
        }
    }
    return false;
}

static void put_choice(gn_json_out *json, const gn_openai_stream *stream, size_t index,
                       const gn_openai_choice *choice)
{
    gn_base_put_object(json, NULL);
    gn_base_put_uint(json, "index", index);
    gn_base_put_object(json, "message");
    gn_base_put_str(json, "role", "assistant");
    if (has_text(&choice->parts)) {
        put_texts(json, "content", &choice->parts, GN_CHAT_TEXT);
    } else {
        gn_base_put_str(json, "content", "");
    }
    put_texts(json, "reasoning_content", &choice->parts, GN_CHAT_REASONING);
    gn_base_put_null(json, "refusal");
    put_calls(json, &choice->parts, stream->legacy);
    gn_base_put_end(json);
    if (stream->logprobs) {
        gn_base_put_object(json, "logprobs");
        gn_base_put_array(json, "content");
        if (choice->logprobs.len > 0) {
            gn_base_put_raw(json, NULL, choice->logprobs.data, choice->logprobs.len);
        }
        gn_base_put_end(json);
        gn_base_put_null(json, "refusal");
        gn_base_put_end(json);
    } else {
        gn_base_put_null(json, "logprobs");
    }
    gn_base_put_str(json, "finish_reason",
                    gn_openai_finish(choice->parts.finish, choice->parts.called, stream->legacy));
    if (choice->grammar_closed) {
        gn_base_put_bool(json, "grammar_closed", true);
    }
    gn_base_put_end(json);
}

gn_status gn_openai_reply(const gn_openai_stream *stream, const gn_openai_choice *choices, size_t n,
                          const gn_chat_usage *usage, gn_buf *out)
{
    gn_json_out json;
    gn_base_json_out(&json, out);
    gn_base_put_object(&json, NULL);
    gn_base_put_str(&json, "id", stream->id);
    gn_base_put_str(&json, "object", "chat.completion");
    gn_base_put_int(&json, "created", stream->created);
    gn_base_put_str(&json, "model", stream->model);
    gn_base_put_array(&json, "choices");
    for (size_t i = 0; i < n; i++) {
        put_choice(&json, stream, i, &choices[i]);
    }
    gn_base_put_end(&json);
    gn_openai_put_usage(&json, usage);
    gn_base_put_str(&json, "system_fingerprint", stream->fingerprint);
    gn_openai_put_timings(&json, usage);
    gn_base_put_end(&json);
    return json.status;
}

void gn_openai_choice_fini(gn_openai_choice *choice)
{
    gn_parts_fini(&choice->parts);
    gn_buf_fini(&choice->logprobs);
}
