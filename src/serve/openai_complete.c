/* POST /v1/completions: one or many prompts, each with n answers; echo with log-probabilities of the prompt, which is how
 * evaluation harnesses score texts. All prompts are submitted at once; the replies are put together in their order. */
#include "serve/openai.h"

#include "base/alloc.h"
#include "serve/fim.h"
#include "serve/server_impl.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MOST_ANSWERS 128 /* prompts times n */

/* What legacy log-probabilities are put together from: four lists. */
typedef struct logprob_lists {
    gn_buf tokens, values, tops, offsets; /* JSON values with commas between them */
    size_t offset;                        /* characters so far */
} logprob_lists;

typedef struct answer {
    gn_buf text;
    logprob_lists lists;
    gn_finish finish;
} answer;

typedef struct completion { /* in the call's arena */
    gn_call *call;
    const char *id;
    int64_t created;
    const char *model;
    const char *fingerprint;
    const gn_model *vocabulary;
    bool echo, logprobs, stream, include_usage;
    int32_t n; /* of each prompt */
    size_t n_prompts;
    gn_chat **chats; /* [n_prompts] */
    size_t at;       /* streamed: which is read now */
    answer *answers; /* [n_prompts * n] */
} completion;

/* --- log-probabilities --- */

static gn_status comma(gn_buf *buf)
{
    return buf->len > 0 ? gn_buf_putc(buf, ',') : GN_OK;
}

static size_t n_chars(const char *s, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        n += ((unsigned char)s[i] & 0xc0u) != 0x80u;
    }
    return n;
}

static gn_status put_tops(const completion *c, const gn_token_logprob *token, gn_buf *out)
{
    gn_json_out json;
    gn_base_json_out(&json, out);
    if (token->n_top == 0) {
        gn_base_put_null(&json, NULL);
        return json.status;
    }
    gn_base_put_object(&json, NULL);
    for (int32_t i = 0; i < token->n_top; i++) {
        char *text = NULL;
        size_t len = 0;
        GN_TRY(gn_model_piece(c->vocabulary, token->top[i].id, true, &text, &len));
        gn_base_put_float(&json, text, token->top[i].logprob);
        gn_release(text);
    }
    gn_base_put_end(&json);
    return json.status;
}

/* first: the first token of a prompt, which nothing predicts. */
static gn_status add_logprob(const completion *c, answer *a, const gn_token_logprob *token,
                             bool first)
{
    logprob_lists *lists = &a->lists;
    char *text = NULL;
    size_t len = 0;
    GN_TRY(gn_model_piece(c->vocabulary, token->id, true, &text, &len));
    gn_json_out json;
    gn_status status = comma(&lists->tokens);
    gn_base_json_out(&json, &lists->tokens);
    gn_base_put_strn(&json, NULL, text, len);
    status = status == GN_OK ? json.status : status;
    if (status == GN_OK) {
        status = gn_buf_printf(&lists->offsets, "%s%zu", lists->offsets.len > 0 ? "," : "",
                               lists->offset);
    }
    lists->offset += n_chars(text, len);
    gn_release(text);
    GN_TRY(status);
    GN_TRY(comma(&lists->values));
    GN_TRY(comma(&lists->tops));
    if (first) {
        GN_TRY(gn_buf_puts(&lists->values, "null"));
        return gn_buf_puts(&lists->tops, "null");
    }
    gn_base_json_out(&json, &lists->values);
    gn_base_put_float(&json, NULL, token->logprob);
    GN_TRY(json.status);
    return put_tops(c, token, &lists->tops);
}

static void put_lists(gn_json_out *json, const completion *c, const logprob_lists *lists)
{
    if (!c->logprobs) {
        gn_base_put_null(json, "logprobs");
        return;
    }
    const struct {
        const char *key;
        const gn_buf *values;
    } rows[] = {{"tokens", &lists->tokens},
                {"token_logprobs", &lists->values},
                {"top_logprobs", &lists->tops},
                {"text_offset", &lists->offsets}};
    gn_base_put_object(json, "logprobs");
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        gn_base_put_array(json, rows[i].key);
        if (rows[i].values->len > 0) {
            gn_base_put_raw(json, NULL, rows[i].values->data, rows[i].values->len);
        }
        gn_base_put_end(json);
    }
    gn_base_put_end(json);
}

static void clear_lists(logprob_lists *lists)
{
    gn_buf_clear(&lists->tokens);
    gn_buf_clear(&lists->values);
    gn_buf_clear(&lists->tops);
    gn_buf_clear(&lists->offsets);
}

/* --- deltas --- */

static gn_status echo_prompt(const completion *c, answer *a, const gn_chat_delta *delta)
{
    char *text = NULL;
    size_t len = 0;
    GN_TRY(
        gn_model_detokenize(c->vocabulary, delta->prompt_ids, delta->n_prompt, true, &text, &len));
    gn_status status = gn_buf_append(&a->text, text, len);
    gn_release(text);
    for (size_t i = 0; status == GN_OK && delta->prompt != NULL && i < delta->n_prompt; i++) {
        gn_token_logprob token = delta->prompt[i];
        token.id = delta->prompt_ids[i];
        status = add_logprob(c, a, &token, i == 0);
    }
    return status;
}

static gn_status add_delta(const completion *c, answer *a, const gn_chat_delta *delta)
{
    switch (delta->type) {
    case GN_CHAT_START: return c->echo ? echo_prompt(c, a, delta) : GN_OK;
    case GN_CHAT_TEXT:
    case GN_CHAT_REASONING: return gn_buf_append(&a->text, delta->text, delta->len);
    case GN_CHAT_LOGPROB: return add_logprob(c, a, &delta->token, false);
    case GN_CHAT_FINISH: a->finish = delta->finish; return GN_OK;
    case GN_CHAT_FAILED: return gn_base_fail(delta->status, "%.*s", (int)delta->len, delta->text);
    case GN_CHAT_CALL:
    case GN_CHAT_ARGUMENTS:
    case GN_CHAT_PING: break;
    }
    return GN_OK;
}

static void put_head(gn_json_out *json, const completion *c, gn_buf *out)
{
    gn_base_json_out(json, out);
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "id", c->id);
    gn_base_put_str(json, "object", "text_completion");
    gn_base_put_int(json, "created", c->created);
    gn_base_put_str(json, "model", c->model);
    gn_base_put_str(json, "system_fingerprint", c->fingerprint);
    gn_base_put_array(json, "choices");
}

static void put_answer(gn_json_out *json, const completion *c, size_t index, const answer *a,
                       const char *finish)
{
    gn_base_put_object(json, NULL);
    gn_base_put_uint(json, "index", index);
    gn_base_put_strn(json, "text", a->text.data != NULL ? a->text.data : "", a->text.len);
    put_lists(json, c, &a->lists);
    gn_base_put_str(json, "finish_reason", finish);
    gn_base_put_end(json);
}

static gn_chat_usage total_usage(const completion *c)
{
    gn_chat_usage sum = {0};
    for (size_t i = 0; i < c->n_prompts; i++) {
        gn_chat_usage u = gn_chat_get_usage(c->chats[i]);
        sum.n_prompt += u.n_prompt;
        sum.n_cached += u.n_cached;
        sum.n_generated += u.n_generated;
        sum.n_reasoning += u.n_reasoning;
        sum.prompt_ms = u.prompt_ms > sum.prompt_ms ? u.prompt_ms : sum.prompt_ms;
        sum.generate_ms = u.generate_ms > sum.generate_ms ? u.generate_ms : sum.generate_ms;
        sum.queue_ms = u.queue_ms > sum.queue_ms ? u.queue_ms : sum.queue_ms;
    }
    return sum;
}

/* --- whole --- */

static gn_status collect(completion *c)
{
    for (size_t p = 0; p < c->n_prompts; p++) {
        gn_chat_delta delta;
        while (gn_chat_next(c->chats[p], &delta)) {
            answer *a = &c->answers[p * (size_t)c->n + (size_t)delta.index];
            GN_TRY(add_delta(c, a, &delta));
        }
        GN_REQUIRE(gn_serve_alive(c->call), GN_E_CANCELLED, "the client went away");
    }
    return GN_OK;
}

static gn_status put_whole(const completion *c, gn_buf *out)
{
    gn_json_out json;
    put_head(&json, c, out);
    for (size_t i = 0; i < c->n_prompts * (size_t)c->n; i++) {
        const answer *a = &c->answers[i];
        put_answer(&json, c, i, a, gn_openai_finish(a->finish, false, false));
    }
    gn_base_put_end(&json);
    gn_chat_usage usage = total_usage(c);
    gn_openai_put_usage(&json, &usage);
    gn_openai_put_timings(&json, &usage);
    gn_base_put_end(&json);
    return json.status;
}

static void finish(void *ctx)
{
    completion *c = ctx;
    for (size_t i = 0; i < c->n_prompts; i++) {
        gn_chat_destroy(c->chats[i]);
    }
    for (size_t i = 0; i < c->n_prompts * (size_t)c->n; i++) {
        answer *a = &c->answers[i];
        gn_buf_fini(&a->text);
        gn_buf_fini(&a->lists.tokens);
        gn_buf_fini(&a->lists.values);
        gn_buf_fini(&a->lists.tops);
        gn_buf_fini(&a->lists.offsets);
    }
}

static void reply_whole(completion *c)
{
    gn_buf body = {0};
    gn_status status = collect(c);
    if (status == GN_OK) {
        status = put_whole(c, &body);
    }
    gn_call *call = c->call;
    finish(c);
    if (status != GN_OK) {
        gn_buf_fini(&body);
        gn_serve_fail_status(call, status, NULL);
        return;
    }
    gn_serve_reply(call, 200, "application/json", &body);
}

/* --- streamed --- */

static gn_status put_chunk(const completion *c, size_t index, answer *a, const char *finish_reason,
                           gn_buf *out)
{
    gn_json_out json;
    GN_TRY(gn_buf_puts(out, "data: "));
    put_head(&json, c, out);
    put_answer(&json, c, index, a, finish_reason);
    gn_base_put_end(&json);
    if (c->include_usage) {
        gn_base_put_null(&json, "usage");
    }
    gn_base_put_end(&json);
    GN_TRY(json.status);
    gn_buf_clear(&a->text);
    clear_lists(&a->lists);
    return gn_buf_puts(out, "\n\n");
}

static gn_status put_last(const completion *c, gn_buf *out)
{
    if (c->include_usage) {
        gn_json_out json;
        gn_chat_usage usage = total_usage(c);
        GN_TRY(gn_buf_puts(out, "data: "));
        put_head(&json, c, out);
        gn_base_put_end(&json);
        gn_openai_put_usage(&json, &usage);
        gn_openai_put_timings(&json, &usage);
        gn_base_put_end(&json);
        GN_TRY(json.status);
        GN_TRY(gn_buf_puts(out, "\n\n"));
    }
    return gn_buf_puts(out, "data: [DONE]\n\n");
}

static gn_status put_delta(completion *c, const gn_chat_delta *delta, gn_buf *out)
{
    size_t index = c->at * (size_t)c->n + (size_t)delta->index;
    answer *a = &c->answers[index];
    if (delta->type == GN_CHAT_PING) {
        return gn_buf_puts(out, ": ping\n\n");
    }
    GN_TRY(add_delta(c, a, delta));
    if (delta->type == GN_CHAT_FINISH) {
        return put_chunk(c, index, a, gn_openai_finish(delta->finish, false, false), out);
    }
    bool ready = c->logprobs ? a->lists.tokens.len > 0 : a->text.len > 0;
    return ready ? put_chunk(c, index, a, NULL, out) : GN_OK;
}

static gn_status put_error(const completion *c, const gn_chat_delta *delta, gn_buf *out)
{
    gn_serve_error error = {.status = delta->status == GN_E_FORMAT ? 500 : 503};
    GN_TRY(gn_buf_puts(out, "data: "));
    GN_TRY(gn_serve_error_object(c->call, &error, delta->text, out));
    return gn_buf_puts(out, "\n\n");
}

/* *more: something follows. */
static gn_status advance(completion *c, gn_buf *out, bool *more)
{
    gn_chat_delta delta;
    if (gn_chat_next(c->chats[c->at], &delta)) {
        *more = delta.type != GN_CHAT_FAILED;
        return *more ? put_delta(c, &delta, out) : put_error(c, &delta, out);
    }
    bool alive = gn_serve_alive(c->call);
    *more = alive && ++c->at < c->n_prompts;
    return *more || !alive ? GN_OK : put_last(c, out);
}

static bool next(void *ctx, gn_buf *out)
{
    bool more = false;
    gn_status status = advance(ctx, out, &more);
    return more && status == GN_OK;
}

/* --- the request --- */

typedef struct request {
    gn_ask ask;
    const gn_json *model, *suffix;
    const gn_json *prompts; /* an array of prompts, or one of another kind */
    bool many;
    gn_chat_options options;
} request;

/* An array of ids? */
static bool is_ids(const gn_json *v)
{
    return v->type == GN_JSON_ARRAY && v->first != NULL && v->first->type == GN_JSON_NUMBER;
}

static gn_status read_prompts(request *r, const gn_json *body)
{
    const gn_json *prompt = gn_ask_get(body, "prompt");
    if (prompt == NULL) {
        return gn_ask_missing(&r->ask, body, "prompt", "a string, or an array");
    }
    r->many = prompt->type == GN_JSON_ARRAY && !is_ids(prompt);
    if (prompt->type != GN_JSON_STRING && prompt->type != GN_JSON_ARRAY) {
        return gn_ask_unexpected(&r->ask, prompt, "a string, or an array");
    }
    if (prompt->type == GN_JSON_ARRAY && prompt->len == 0) {
        return gn_ask_refuse(&r->ask, prompt, "empty, expected at least one prompt");
    }
    for (const gn_json *p = r->many ? prompt->first : NULL; p != NULL; p = p->next) {
        if (p->type != GN_JSON_STRING && !is_ids(p)) {
            return gn_ask_unexpected(&r->ask, p, "a string or an array of ids");
        }
    }
    r->prompts = prompt;
    return GN_OK;
}

static gn_status read_request(gn_arena *arena, const gn_json *body, request *r, completion *c)
{
    gn_ask *ask = &r->ask;
    gn_request_options *o = &r->options.request;
    *o = gn_request_defaults();
    o->max_tokens = 16; /* as the API has it */
    r->options.n = 1;
    int32_t logprobs = -1;
    int32_t best_of = -1;
    GN_TRY(gn_ask_member(ask, body, "model", GN_JSON_STRING, &r->model));
    GN_TRY(gn_openai_read_stream(ask, body, &c->stream, &c->include_usage));
    GN_TRY(gn_ask_int(ask, body, "n", 1, 16, &r->options.n));
    GN_TRY(gn_ask_int(ask, body, "best_of", 1, 16, &best_of));
    if (best_of > 0 && best_of != r->options.n) {
        return gn_ask_refuse(ask, gn_ask_get(body, "best_of"), "found %d, expected n, which is %d",
                             best_of, r->options.n);
    }
    GN_TRY(gn_openai_read_sampling(ask, arena, body, o));
    GN_TRY(gn_ask_int(ask, body, "logprobs", 0, 20, &logprobs));
    GN_TRY(gn_ask_bool(ask, body, "echo", &c->echo));
    GN_TRY(gn_ask_member(ask, body, "suffix", GN_JSON_STRING, &r->suffix));
    o->n_top = logprobs;
    o->n_prompt_top = c->echo ? logprobs : -1;
    c->logprobs = logprobs >= 0;
    c->n = r->options.n;
    GN_TRY(gn_openai_read_format(ask, body, &r->options));
    GN_TRY(read_prompts(r, body));
    if (c->echo && r->suffix != NULL) {
        return gn_ask_refuse(ask, r->suffix, "does not go with echo");
    }
    c->n_prompts = r->many ? r->prompts->len : 1;
    if (c->n_prompts * (size_t)c->n > MOST_ANSWERS) {
        return gn_ask_refuse(ask, r->prompts,
                             "%zu prompts times n, which is %d, expected at most %d", c->n_prompts,
                             c->n, MOST_ANSWERS);
    }
    return GN_OK;
}

static gn_status set_ids(gn_arena *arena, gn_ask *ask, const gn_model *model, const gn_json *prompt,
                         gn_chat_options *options)
{
    int32_t *ids = gn_arena_calloc(arena, prompt->len, sizeof *ids);
    int32_t n_vocab = gn_model_get_info(model).n_vocab;
    if (ids == NULL) {
        return gn_alloc_failed();
    }
    size_t n = 0;
    for (const gn_json *id = prompt->first; id != NULL; id = id->next) {
        long value = 0;
        char rest = 0;
        if (id->type != GN_JSON_NUMBER || sscanf(id->text, "%ld%c", &value, &rest) != 1 ||
            value < 0 || value >= n_vocab) {
            return gn_ask_unexpected(ask, id, "the id of a token");
        }
        ids[n++] = (int32_t)value;
    }
    options->prompt_ids = ids;
    options->n_prompt_ids = n;
    return GN_OK;
}

static gn_status set_prompt(gn_arena *arena, request *r, const gn_model *model,
                            const gn_json *prompt, gn_chat_options *options)
{
    if (prompt->type == GN_JSON_ARRAY) {
        return set_ids(arena, &r->ask, model, prompt, options);
    }
    options->prompt = prompt->text;
    options->prompt_len = prompt->len;
    if (r->suffix == NULL || r->suffix->len == 0) {
        return GN_OK;
    }
    gn_buf text = {0};
    gn_status status =
        gn_fim_prompt(model, prompt->text, prompt->len, r->suffix->text, r->suffix->len, &text);
    if (status == GN_OK) {
        options->prompt = gn_arena_strndup(arena, text.data, text.len);
        options->prompt_len = text.len;
        status = options->prompt != NULL ? GN_OK : gn_alloc_failed();
    } else if (status == GN_E_UNSUPPORTED) {
        status = gn_ask_refuse(&r->ask, r->suffix, "%s", "this model can't fill in the middle");
    }
    gn_buf_fini(&text);
    return status;
}

/* Start a chat for each prompt; each holds the model. */
static gn_status start_all(completion *c, request *r, const gn_serve_model *model)
{
    gn_call *call = c->call;
    const gn_json *prompt = r->many ? r->prompts->first : r->prompts;
    size_t n = c->n_prompts;
    c->n_prompts = 0;
    gn_status status = GN_OK;
    for (size_t i = 0; i < n && status == GN_OK; i++, prompt = r->many ? prompt->next : NULL) {
        gn_chat_options options = r->options;
        const gn_serve_model *held = model;
        status = set_prompt(gn_serve_call_arena(call), r, model->model, prompt, &options);
        if (status != GN_OK) {
            gn_serve_fail_status(call, status, r->ask.param[0] != '\0' ? r->ask.param : "prompt");
            break;
        }
        if (i > 0) {
            status = gn_serve_model_take(call, model->name, strlen(model->name), &held);
        }
        if (status == GN_OK) {
            status = gn_chat_start(call, held, &options, &c->chats[i]);
            if (status != GN_OK && i > 0) {
                gn_serve_model_give(gn_serve_call_server(call), held);
            }
        }
        c->n_prompts += status == GN_OK;
    }
    if (status != GN_OK && c->n_prompts == 0) {
        gn_serve_model_give(gn_serve_call_server(call), model);
    }
    if (status != GN_OK) {
        finish(c);
    }
    return status;
}

static gn_status begin(completion *c, const gn_json *body)
{
    gn_call *call = c->call;
    gn_arena *arena = gn_serve_call_arena(call);
    request r = {.many = false};
    gn_status status = read_request(arena, body, &r, c);
    char *id = gn_arena_alloc(arena, 64);
    if (status == GN_OK) {
        c->chats = gn_arena_calloc(arena, c->n_prompts, sizeof *c->chats);
        c->answers = gn_arena_calloc(arena, c->n_prompts * (size_t)c->n, sizeof *c->answers);
        status = c->chats != NULL && c->answers != NULL && id != NULL ? GN_OK : gn_alloc_failed();
    }
    if (status != GN_OK) {
        gn_serve_fail_status(call, status, r.ask.param[0] != '\0' ? r.ask.param : NULL);
        return status;
    }
    gn_serve_note_unknown(call, gn_openai_count_unknown(body));
    const gn_serve_model *model = NULL;
    GN_TRY(gn_serve_model_take(call, r.model != NULL ? r.model->text : NULL,
                               r.model != NULL ? r.model->len : 0, &model));
    (void)snprintf(id, 64, "cmpl-%s", gn_serve_call_id(call) + 4);
    c->id = id;
    c->created = (int64_t)time(NULL);
    c->model = model->name;
    c->fingerprint = model->fingerprint;
    c->vocabulary = model->model;
    return start_all(c, &r, model);
}

void gn_openai_complete(gn_call *call)
{
    const gn_json *body = NULL;
    if (gn_serve_call_json(call, &body) != GN_OK) {
        return;
    }
    completion *c = gn_arena_calloc(gn_serve_call_arena(call), 1, sizeof *c);
    if (c == NULL) {
        gn_serve_fail_status(call, gn_alloc_failed(), NULL);
        return;
    }
    c->call = call;
    if (begin(c, body) != GN_OK) {
        return;
    }
    if (c->stream) {
        gn_serve_stream(call, "text/event-stream", next, finish, c);
    } else {
        reply_whole(c);
    }
}
