/* Deltas of a chat as Anthropic's events. At most one content block is open at a time; blocks are numbered from 0 in
 * the order in which they begin:
 *
 *     message_start (content_block_start content_block_delta… content_block_stop)… message_delta message_stop
 *
 * A thinking block ends with a signature, which clients send back with the block. There is nothing to verify
 * here, and the signature says so. */
#include "serve/anthropic.h"

#include <string.h>

#define SIGNATURE "unsigned"

static const char *stop_reason(gn_finish finish, bool called, const char *stop_text)
{
    if (finish != GN_FINISH_STOP) {
        return "max_tokens";
    }
    return stop_text != NULL ? "stop_sequence" : called ? "tool_use" : "end_turn";
}

static void put_usage(gn_json_out *out, const gn_chat_usage *usage)
{
    gn_base_put_object(out, "usage");
    gn_base_put_int(out, "input_tokens", usage->n_prompt - usage->n_cached);
    gn_base_put_int(out, "cache_creation_input_tokens", 0);
    gn_base_put_int(out, "cache_read_input_tokens", usage->n_cached);
    gn_base_put_int(out, "output_tokens", usage->n_generated);
    gn_base_put_object(out, "output_tokens_details");
    gn_base_put_int(out, "thinking_tokens", usage->n_reasoning);
    gn_base_put_end(out);
    gn_base_put_end(out);
}

/* The message's members before its content. */
static void put_head(gn_json_out *out, const gn_anthropic_stream *stream)
{
    gn_base_put_str(out, "id", stream->id);
    gn_base_put_str(out, "type", "message");
    gn_base_put_str(out, "role", "assistant");
    gn_base_put_str(out, "model", stream->model);
}

/* "event: TYPE\ndata: {"type":"TYPE"", to be ended by end_event(). */
static gn_status begin_event(gn_json_out *json, gn_buf *out, const char *type)
{
    GN_TRY(gn_buf_printf(out, "event: %s\ndata: ", type));
    gn_base_json_out(json, out);
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "type", type);
    return GN_OK;
}

static gn_status end_event(gn_json_out *json)
{
    gn_base_put_end(json);
    GN_TRY(json->status);
    return gn_buf_append(json->buf, "\n\n", 2);
}

static gn_status start_message(const gn_anthropic_stream *stream, const gn_chat_usage *usage,
                               gn_buf *out)
{
    gn_json_out json;
    GN_TRY(begin_event(&json, out, "message_start"));
    gn_base_put_object(&json, "message");
    put_head(&json, stream);
    gn_base_put_raw(&json, "content", "[]", 2);
    gn_base_put_null(&json, "stop_reason");
    gn_base_put_null(&json, "stop_sequence");
    put_usage(&json, usage);
    gn_base_put_end(&json);
    return end_event(&json);
}

/* An empty block of the delta's kind, as a member of what is open. */
static void put_block(gn_json_out *json, const char *key, const gn_chat_delta *delta)
{
    gn_base_put_object(json, key);
    if (delta->type == GN_CHAT_CALL) {
        gn_base_put_str(json, "type", "tool_use");
        gn_base_put_str(json, "id", delta->id);
        gn_base_put_str(json, "name", delta->name);
        gn_base_put_raw(json, "input", "{}", 2);
    } else if (delta->type == GN_CHAT_REASONING) {
        gn_base_put_str(json, "type", "thinking");
        gn_base_put_str(json, "thinking", "");
        gn_base_put_str(json, "signature", "");
    } else {
        gn_base_put_str(json, "type", "text");
        gn_base_put_str(json, "text", "");
    }
    gn_base_put_end(json);
}

/* A content_block_delta of the open block: one member beside its type. */
static gn_status put_delta(const gn_anthropic_stream *stream, const char *type, const char *key,
                           const char *text, size_t len, gn_buf *out)
{
    gn_json_out json;
    GN_TRY(begin_event(&json, out, "content_block_delta"));
    gn_base_put_int(&json, "index", stream->n_blocks - 1);
    gn_base_put_object(&json, "delta");
    gn_base_put_str(&json, "type", type);
    gn_base_put_strn(&json, key, text, len);
    gn_base_put_end(&json);
    return end_event(&json);
}

static gn_status close_block(gn_anthropic_stream *stream, gn_buf *out)
{
    if (!stream->open) {
        return GN_OK;
    }
    if (stream->kind == GN_CHAT_REASONING) {
        GN_TRY(
            put_delta(stream, "signature_delta", "signature", SIGNATURE, strlen(SIGNATURE), out));
    }
    stream->open = false;
    gn_json_out json;
    GN_TRY(begin_event(&json, out, "content_block_stop"));
    gn_base_put_int(&json, "index", stream->n_blocks - 1);
    return end_event(&json);
}

static gn_status open_block(gn_anthropic_stream *stream, const gn_chat_delta *delta, gn_buf *out)
{
    if (stream->open && stream->kind == delta->type && delta->type != GN_CHAT_CALL) {
        return GN_OK;
    }
    GN_TRY(close_block(stream, out));
    gn_json_out json;
    GN_TRY(begin_event(&json, out, "content_block_start"));
    gn_base_put_int(&json, "index", stream->n_blocks);
    put_block(&json, "content_block", delta);
    stream->open = true;
    stream->kind = delta->type;
    stream->n_blocks++;
    return end_event(&json);
}

static gn_status finish(gn_anthropic_stream *stream, const gn_chat_delta *delta,
                        const gn_chat_usage *usage, gn_buf *out)
{
    GN_TRY(close_block(stream, out));
    gn_json_out json;
    GN_TRY(begin_event(&json, out, "message_delta"));
    gn_base_put_object(&json, "delta");
    gn_base_put_str(&json, "stop_reason",
                    stop_reason(delta->finish, delta->called, delta->stop_text));
    gn_base_put_str(&json, "stop_sequence", delta->stop_text);
    gn_base_put_end(&json);
    put_usage(&json, usage);
    GN_TRY(end_event(&json));
    GN_TRY(begin_event(&json, out, "message_stop"));
    return end_event(&json);
}

gn_status gn_anthropic_event(gn_anthropic_stream *stream, const gn_chat_delta *delta,
                             const gn_chat_usage *usage, gn_buf *out)
{
    gn_json_out json;
    switch (delta->type) {
    case GN_CHAT_START: return start_message(stream, usage, out);
    case GN_CHAT_TEXT:
        if (delta->len == 0) {
            return GN_OK;
        }
        GN_TRY(open_block(stream, delta, out));
        return put_delta(stream, "text_delta", "text", delta->text, delta->len, out);
    case GN_CHAT_REASONING:
        if (delta->len == 0) {
            return GN_OK;
        }
        GN_TRY(open_block(stream, delta, out));
        return stream->hide_thinking
                   ? GN_OK
                   : put_delta(stream, "thinking_delta", "thinking", delta->text, delta->len, out);
    case GN_CHAT_CALL: return open_block(stream, delta, out);
    case GN_CHAT_ARGUMENTS:
        return put_delta(stream, "input_json_delta", "partial_json", delta->text, delta->len, out);
    case GN_CHAT_FINISH: return finish(stream, delta, usage, out);
    case GN_CHAT_PING: GN_TRY(begin_event(&json, out, "ping")); return end_event(&json);
    case GN_CHAT_LOGPROB:
    case GN_CHAT_FAILED: break;
    }
    return GN_OK;
}

static void put_part(gn_json_out *json, const gn_part *part, bool hide_thinking)
{
    gn_base_put_object(json, NULL);
    if (part->type == GN_CHAT_CALL) {
        gn_base_put_str(json, "type", "tool_use");
        gn_base_put_str(json, "id", part->id);
        gn_base_put_str(json, "name", part->name);
        gn_parts_put_arguments(json, "input", part);
    } else if (part->type == GN_CHAT_REASONING) {
        gn_base_put_str(json, "type", "thinking");
        gn_base_put_strn(json, "thinking", part->text.data, hide_thinking ? 0 : part->text.len);
        gn_base_put_str(json, "signature", SIGNATURE);
    } else {
        gn_base_put_str(json, "type", "text");
        gn_base_put_strn(json, "text", part->text.data, part->text.len);
    }
    gn_base_put_end(json);
}

gn_status gn_anthropic_message(const gn_anthropic_stream *stream, const gn_parts *parts,
                               const gn_chat_usage *usage, gn_buf *out)
{
    gn_json_out json;
    gn_base_json_out(&json, out);
    gn_base_put_object(&json, NULL);
    put_head(&json, stream);
    gn_base_put_array(&json, "content");
    for (size_t i = 0; i < parts->n; i++) {
        put_part(&json, &parts->v[i], stream->hide_thinking);
    }
    gn_base_put_end(&json);
    gn_base_put_str(&json, "stop_reason",
                    stop_reason(parts->finish, parts->called, parts->stop_text));
    gn_base_put_str(&json, "stop_sequence", parts->stop_text);
    put_usage(&json, usage);
    gn_base_put_end(&json);
    return json.status;
}
