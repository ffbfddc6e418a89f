/* Deltas of a chat as lines of JSON. A tool call comes in one line when its arguments are whole, since they are an
 * object there. The last line has the counts and the durations, in nanoseconds. */
#include "serve/ollama.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

void gn_ollama_time(int64_t seconds, int64_t ns, char out[40])
{
    const time_t at = (time_t)seconds;
    struct tm tm = {0};
    char text[32];
    (void)gmtime_r(&at, &tm);
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(out, 40, "%.24s.%09lldZ", text, (long long)(ns % 1000000000));
}

static void put_head(gn_json_out *json, const gn_ollama_stream *stream)
{
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "model", stream->model);
    gn_base_put_str(json, "created_at", stream->created);
}

static gn_status end_line(gn_json_out *json)
{
    gn_base_put_end(json);
    GN_TRY(json->status);
    return gn_buf_putc(json->buf, '\n');
}

static const char *text_of(const gn_buf *buf)
{
    return buf->len == 0 ? "" : buf->data;
}

static void put_call(gn_json_out *json, const gn_part *part, int32_t index)
{
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "id", part->id);
    gn_base_put_object(json, "function");
    gn_base_put_int(json, "index", index);
    gn_base_put_str(json, "name", part->name);
    gn_parts_put_arguments(json, "arguments", part);
    gn_base_put_end(json);
    gn_base_put_end(json);
}

/* What is said, as "message" or "response" and "thinking". calls: JSON values with commas between them. */
static void put_said(gn_json_out *json, const gn_ollama_stream *stream, const gn_buf *text,
                     const gn_buf *thinking, const gn_buf *calls)
{
    if (stream->generate) {
        gn_base_put_strn(json, "response", text_of(text), text->len);
    } else {
        gn_base_put_object(json, "message");
        gn_base_put_str(json, "role", "assistant");
        gn_base_put_strn(json, "content", text_of(text), text->len);
    }
    if (thinking->len > 0) {
        gn_base_put_strn(json, "thinking", thinking->data, thinking->len);
    }
    if (calls->len > 0) {
        gn_base_put_array(json, "tool_calls");
        gn_base_put_raw(json, NULL, calls->data, calls->len);
        gn_base_put_end(json);
    }
    if (!stream->generate) {
        gn_base_put_end(json);
    }
}

static void put_logprobs(gn_json_out *json, const char *entries, size_t len)
{
    if (len > 0) {
        gn_base_put_array(json, "logprobs");
        gn_base_put_raw(json, NULL, entries, len);
        gn_base_put_end(json);
    }
}

static int64_t in_ns(double ms)
{
    return (int64_t)(ms * 1e6);
}

static void put_end(gn_json_out *json, const gn_ollama_stream *stream, gn_finish finish,
                    const gn_chat_usage *usage)
{
    gn_base_put_bool(json, "done", true);
    gn_base_put_str(json, "done_reason", finish == GN_FINISH_STOP ? "stop" : "length");
    gn_base_put_int(json, "total_duration", in_ns(usage->total_ms) + stream->load_ns);
    gn_base_put_int(json, "load_duration", stream->load_ns);
    gn_base_put_int(json, "prompt_eval_count", usage->n_prompt);
    gn_base_put_int(json, "prompt_eval_duration", in_ns(usage->prompt_ms));
    gn_base_put_int(json, "eval_count", usage->n_generated);
    gn_base_put_int(json, "eval_duration", in_ns(usage->generate_ms));
}

/* A line that is not the last. */
static gn_status put_line(const gn_ollama_stream *stream, gn_chat_delta_type kind, const char *s,
                          size_t len, const gn_buf *calls, const char *logprob, gn_buf *out)
{
    const gn_buf none = {0};
    const gn_buf said = {.data = (char *)(uintptr_t)s, .len = len};
    gn_json_out json;
    gn_base_json_out(&json, out);
    put_head(&json, stream);
    const bool thinking = kind == GN_CHAT_REASONING;
    put_said(&json, stream, thinking ? &none : &said, thinking ? &said : &none, calls);
    gn_base_put_bool(&json, "done", false);
    put_logprobs(&json, logprob, strlen(logprob));
    return end_line(&json);
}

static gn_status flush_held(gn_ollama_stream *stream, const char *logprob, gn_buf *out)
{
    if (stream->held.len == 0 && logprob[0] == '\0') {
        return GN_OK;
    }
    const gn_buf none = {0};
    GN_TRY(
        put_line(stream, stream->kind, stream->held.data, stream->held.len, &none, logprob, out));
    gn_buf_clear(&stream->held);
    stream->kind = GN_CHAT_TEXT;
    return GN_OK;
}

static gn_status flush_call(gn_ollama_stream *stream, gn_buf *out)
{
    if (stream->call.n == 0) {
        return GN_OK;
    }
    gn_buf calls = {0};
    gn_json_out json;
    gn_base_json_out(&json, &calls);
    put_call(&json, &stream->call.v[0], stream->n_calls++);
    gn_status status = json.status;
    if (status == GN_OK) {
        status = put_line(stream, GN_CHAT_TEXT, "", 0, &calls, "", out);
    }
    gn_buf_fini(&calls);
    gn_parts_fini(&stream->call);
    return status;
}

static gn_status add_text(gn_ollama_stream *stream, const gn_chat_delta *delta, gn_buf *out)
{
    if (delta->len == 0) {
        return GN_OK;
    }
    GN_TRY(flush_call(stream, out));
    GN_TRY(flush_held(stream, "", out));
    if (stream->logprobs) {
        stream->kind = delta->type;
        return gn_buf_append(&stream->held, delta->text, delta->len);
    }
    const gn_buf none = {0};
    return put_line(stream, delta->type, delta->text, delta->len, &none, "", out);
}

static gn_status finish(gn_ollama_stream *stream, const gn_chat_delta *delta,
                        const gn_chat_usage *usage, gn_buf *out)
{
    const gn_buf none = {0};
    GN_TRY(flush_call(stream, out));
    GN_TRY(flush_held(stream, "", out));
    gn_json_out json;
    gn_base_json_out(&json, out);
    put_head(&json, stream);
    put_said(&json, stream, &none, &none, &none);
    put_end(&json, stream, delta->finish, usage);
    return end_line(&json);
}

gn_status gn_ollama_line(gn_ollama_stream *stream, const gn_chat_delta *delta,
                         const gn_chat_usage *usage, const char *logprob, gn_buf *out)
{
    const gn_buf none = {0};
    switch (delta->type) {
    case GN_CHAT_TEXT:
    case GN_CHAT_REASONING: return add_text(stream, delta, out);
    case GN_CHAT_LOGPROB: return flush_held(stream, logprob, out);
    case GN_CHAT_CALL:
        GN_TRY(flush_held(stream, "", out));
        GN_TRY(flush_call(stream, out));
        return gn_parts_add(&stream->call, delta, NULL);
    case GN_CHAT_ARGUMENTS: return gn_parts_add(&stream->call, delta, NULL);
    case GN_CHAT_FINISH: return finish(stream, delta, usage, out);
    case GN_CHAT_PING: return put_line(stream, GN_CHAT_TEXT, "", 0, &none, "", out);
    case GN_CHAT_START:
    case GN_CHAT_FAILED: break;
    }
    return GN_OK;
}

/* The parts of an answer by what they are. */
typedef struct sorted {
    gn_buf text, thinking, calls, logprobs;
    int32_t n_calls;
} sorted;

static gn_status add_call(sorted *all, const gn_part *part)
{
    if (all->calls.len > 0) {
        GN_TRY(gn_buf_putc(&all->calls, ','));
    }
    gn_json_out json;
    gn_base_json_out(&json, &all->calls);
    put_call(&json, part, all->n_calls++);
    return json.status;
}

static gn_status sort_part(sorted *all, const gn_part *part)
{
    if (part->logprobs.len > 0) {
        if (all->logprobs.len > 0) {
            GN_TRY(gn_buf_putc(&all->logprobs, ','));
        }
        GN_TRY(gn_buf_append(&all->logprobs, part->logprobs.data, part->logprobs.len));
    }
    if (part->type == GN_CHAT_CALL) {
        return add_call(all, part);
    }
    gn_buf *into = part->type == GN_CHAT_REASONING ? &all->thinking : &all->text;
    return gn_buf_append(into, text_of(&part->text), part->text.len);
}

gn_status gn_ollama_whole(const gn_ollama_stream *stream, const gn_parts *parts,
                          const gn_chat_usage *usage, gn_buf *out)
{
    sorted all = {0};
    gn_status status = GN_OK;
    for (size_t i = 0; i < parts->n && status == GN_OK; i++) {
        status = sort_part(&all, &parts->v[i]);
    }
    if (status == GN_OK) {
        gn_json_out json;
        gn_base_json_out(&json, out);
        put_head(&json, stream);
        put_said(&json, stream, &all.text, &all.thinking, &all.calls);
        put_end(&json, stream, parts->finish, usage);
        put_logprobs(&json, text_of(&all.logprobs), all.logprobs.len);
        gn_base_put_end(&json);
        status = json.status;
    }
    gn_buf_fini(&all.text);
    gn_buf_fini(&all.thinking);
    gn_buf_fini(&all.calls);
    gn_buf_fini(&all.logprobs);
    return status;
}

gn_status gn_ollama_loaded(const gn_ollama_stream *stream, gn_buf *out)
{
    const gn_buf none = {0};
    gn_json_out json;
    gn_base_json_out(&json, out);
    put_head(&json, stream);
    put_said(&json, stream, &none, &none, &none);
    gn_base_put_bool(&json, "done", true);
    gn_base_put_str(&json, "done_reason", "load");
    gn_base_put_int(&json, "load_duration", stream->load_ns);
    gn_base_put_int(&json, "total_duration", stream->load_ns);
    return end_line(&json);
}

void gn_ollama_stream_fini(gn_ollama_stream *stream)
{
    gn_buf_fini(&stream->held);
    gn_parts_fini(&stream->call);
}
