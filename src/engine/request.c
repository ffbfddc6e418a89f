/* A request: what was asked for, checked and copied, and the events that its owner takes. Events are a list that
 * max_tokens bounds; the last one is part of the request, so that the end can always be told. */
#include "engine/request_impl.h"

#include "base/alloc.h"
#include "engine/engine_impl.h"
#include "os/clock.h"
#include "sample/sampler.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define NS_A_MS 1000000u

gn_request_options gn_request_defaults(void)
{
    return (gn_request_options){.sample = gn_sample_defaults(),
                                .max_tokens = -1,
                                .priority = GN_PRIORITY_INTERACTIVE,
                                .n_top = -1,
                                .n_prompt_top = -1};
}

/* --- submission --- */

static gn_status check_ids(const gn_model *model, const int32_t *ids, size_t n)
{
    GN_REQUIRE(ids != NULL && n >= 1, GN_E_ARG, "the prompt: found no token, expected one or more");
    for (size_t i = 0; i < n; i++) {
        GN_REQUIRE(ids[i] >= 0 && ids[i] < model->info.n_vocab, GN_E_ARG,
                   "the prompt's token %zu: found id %d, expected 0 to %d", i, ids[i],
                   model->info.n_vocab - 1);
    }
    return GN_OK;
}

static gn_status check(const gn_model *model, const gn_request_options *o)
{
    GN_TRY(check_ids(model, o->prompt, o->n_prompt));
    GN_REQUIRE(o->n_ctx >= 0, GN_E_ARG, "n_ctx: found %d, expected 0 or more", o->n_ctx);
    GN_REQUIRE((unsigned)o->priority < GN_N_PRIORITIES, GN_E_ARG,
               "priority: found %d, expected 0 to %d", (int)o->priority, GN_N_PRIORITIES - 1);
    GN_REQUIRE(o->n_top <= GN_OUTPUT_MAX_TOP, GN_E_ARG,
               "log-probabilities: found %d, expected at most %d", o->n_top, GN_OUTPUT_MAX_TOP);
    GN_REQUIRE(o->n_prompt_top <= GN_OUTPUT_MAX_TOP, GN_E_ARG,
               "log-probabilities of the prompt: found %d, expected at most %d", o->n_prompt_top,
               GN_OUTPUT_MAX_TOP);
    return gn_sample_check(&o->sample, model->info.n_vocab);
}

/* The most tokens that all pages together could hold for one sequence, at most `n`. */
static size_t fit_pages(const gn_model *model, size_t n)
{
    const gn_kv_shape *shape = gn_kv_pool_shape(model->kv);
    uint64_t bytes = (uint64_t)gn_kv_pool_capacity(model->kv) * gn_kv_page_bytes(shape);
    size_t fits = 0;
    size_t over = n + 1;
    while (over - fits > 1) {
        size_t middle = fits + (over - fits) / 2;
        if (gn_kv_table_bytes(shape, (uint32_t)middle) <= bytes) {
            fits = middle;
        } else {
            over = middle;
        }
    }
    return fits;
}

/* How long the sequence may become. */
static gn_status set_limits(gn_request *r, const gn_model *model, const gn_request_options *o)
{
    r->n_ctx = o->n_ctx != 0 ? (size_t)o->n_ctx : (size_t)model->info.n_ctx_train;
    r->long_context = r->n_ctx > gn_net_hparams(model->net)->rope.n_ctx_orig;
    GN_REQUIRE(o->n_prompt <= r->n_ctx, GN_E_LIMIT,
               "the context is limited to %zu tokens, the prompt has %zu", r->n_ctx, o->n_prompt);
    size_t room = r->n_ctx - o->n_prompt;
    size_t wanted = o->max_tokens < 0 || (size_t)o->max_tokens > room
                        ? r->n_ctx
                        : o->n_prompt + (size_t)o->max_tokens;
    size_t fits = fit_pages(model, wanted);
    size_t least = o->max_tokens < 0 ? o->n_prompt : wanted;
    GN_REQUIRE(least <= fits, GN_E_LIMIT,
               "the KV pool holds %zu tokens of one sequence, the request needs %zu", fits, least);
    r->n_ctx = o->max_tokens < 0 ? fits : r->n_ctx;
    return GN_OK;
}

static gn_status copy_array(gn_arena *arena, const void **p, size_t n, size_t bytes)
{
    if (n == 0) {
        *p = NULL;
        return GN_OK;
    }
    void *copy = gn_arena_alloc(arena, n * bytes);
    if (copy == NULL) {
        return gn_alloc_failed();
    }
    memcpy(copy, *p, n * bytes);
    *p = copy;
    return GN_OK;
}

static gn_status copy_sample(gn_request *r, const gn_sample_params *params)
{
    r->sample = *params;
    const void *bias = params->logit_bias;
    const void *ends = params->end_ids;
    const void *breakers = params->dry_breakers;
    GN_TRY(copy_array(&r->copies, &bias, params->n_logit_bias, sizeof *params->logit_bias));
    GN_TRY(copy_array(&r->copies, &ends, params->n_end_ids, sizeof *params->end_ids));
    GN_TRY(copy_array(&r->copies, &breakers, params->n_dry_breakers, sizeof *params->dry_breakers));
    r->sample.logit_bias = bias;
    r->sample.end_ids = ends;
    r->sample.dry_breakers = breakers;
    return GN_OK;
}

static gn_status fill(gn_request *r, const gn_model *model, const gn_request_options *o)
{
    GN_TRY(set_limits(r, model, o));
    GN_TRY(copy_sample(r, &o->sample));
    r->cap = o->n_prompt + 64;
    r->ids = gn_alloc_array(r->cap, sizeof *r->ids);
    if (r->ids == NULL) {
        return gn_alloc_failed();
    }
    memcpy(r->ids, o->prompt, o->n_prompt * sizeof *r->ids);
    r->n_ids = o->n_prompt;
    const gn_output_options output = {.grammar = o->grammar,
                                      .max_tokens = o->max_tokens,
                                      .stop = o->stop,
                                      .n_stop = o->n_stop,
                                      .stop_ids = o->stop_ids,
                                      .n_stop_ids = o->n_stop_ids,
                                      .n_top = o->n_top,
                                      .special = o->special};
    return gn_output_create(model, &output, &r->output);
}

static void set_fixed(gn_request *r, const gn_request_options *o)
{
    r->priority = o->priority;
    r->salt = o->salt;
    r->deadline_ns = o->deadline_ns;
    r->n_prompt = o->n_prompt;
    r->max_tokens = o->max_tokens;
    r->n_top = o->n_top;
    r->n_prompt_top = o->n_prompt_top;
    r->no_cache = o->no_cache;
    r->notify = o->notify;
    r->notify_ctx = o->notify_ctx;
    r->owned = true;
}

static void destroy(gn_request *r)
{
    while (r->first != NULL) {
        gn_event_node *node = r->first;
        r->first = node->next;
        if (node != &r->end) {
            gn_free(node);
        }
    }
    if (r->taken != &r->end) {
        gn_free(r->taken);
    }
    gn_free(r->end_text);
    gn_free(r->message);
    gn_free(r->prompt_logprobs);
    gn_free(r->prompt_top);
    gn_free(r->ids);
    gn_output_destroy(r->output);
    gn_sampler_destroy(r->sampler);
    gn_arena_fini(&r->copies);
    (void)pthread_cond_destroy(&r->cond);
    (void)pthread_mutex_destroy(&r->lock);
    gn_free(r);
}

gn_status gn_engine_request_create(gn_engine *engine, const gn_request_options *options,
                                   gn_request **out)
{
    const gn_model *model = gn_engine_model(engine);
    GN_TRY(check(model, options));
    gn_request *r = gn_calloc(1, sizeof *r);
    if (r == NULL) {
        return gn_alloc_failed();
    }
    r->engine = engine;
    atomic_init(&r->refs, 2);
    atomic_init(&r->cancelled, false);
    (void)pthread_mutex_init(&r->lock, NULL);
    gn_engine_cond_init(&r->cond);
    gn_arena_init(&r->copies, 0);
    gn_kv_table_init(&r->table, model->kv);
    set_fixed(r, options);
    gn_status status = fill(r, model, options);
    if (status != GN_OK) {
        destroy(r);
        return status;
    }
    r->info = (gn_request_info){.usage = {.n_prompt = (int32_t)r->n_prompt},
                                .priority = r->priority,
                                .max_tokens = r->max_tokens,
                                .n_ctx = (int32_t)r->n_ctx};
    *out = r;
    return GN_OK;
}

void gn_engine_request_unref(gn_request *r)
{
    if (atomic_fetch_sub(&r->refs, 1) == 1) {
        destroy(r);
    }
}

/* --- the step loop's side --- */

static gn_status start_logprobs(gn_request *r)
{
    if (r->n_prompt_top < 0) {
        return GN_OK;
    }
    r->prompt_logprobs = gn_calloc(r->n_prompt, sizeof *r->prompt_logprobs);
    r->prompt_top = gn_alloc_array(r->n_prompt * (size_t)r->n_prompt_top, sizeof *r->prompt_top);
    if (r->prompt_logprobs == NULL || r->prompt_top == NULL) {
        return gn_alloc_failed();
    }
    r->prompt_logprobs[0] = (gn_token_logprob){.id = r->ids[0], .logprob = NAN};
    r->n_prompt_logprobs = 1;
    return GN_OK;
}

gn_status gn_engine_request_start(gn_request *r)
{
    if (r->sampler != NULL) {
        return GN_OK;
    }
    gn_sampler *sampler = NULL;
    GN_TRY(gn_sampler_create(&r->sample, gn_engine_model(r->engine)->info.n_vocab, &sampler));
    gn_status status = GN_OK;
    for (size_t i = 0; i < r->n_prompt && status == GN_OK; i++) {
        status = gn_sampler_accept(sampler, r->ids[i], false);
    }
    if (status == GN_OK) {
        status = start_logprobs(r);
    }
    if (status != GN_OK) {
        gn_sampler_destroy(sampler);
        return status;
    }
    r->sampler = sampler;
    gn_output_set_sampler(r->output, sampler);
    return GN_OK;
}

gn_status gn_engine_request_reserve(gn_request *r)
{
    int32_t *grown = gn_grow_array(r->ids, &r->cap, r->n_ids + 1, sizeof *grown);
    if (grown == NULL) {
        return gn_alloc_failed();
    }
    r->ids = grown;
    return GN_OK;
}

void gn_engine_request_append(gn_request *r, int32_t id)
{
    assert(r->n_ids < r->cap && r->n_ids < r->n_ctx);
    r->ids[r->n_ids++] = id;
}

void gn_engine_request_keep_message(gn_request *r)
{
    if (r->message == NULL) {
        r->message = gn_strdup(gn_error_message());
    }
}

void gn_engine_request_note(gn_request *r, gn_request_state state)
{
    (void)pthread_mutex_lock(&r->lock);
    r->info.state = state;
    r->info.n_evaluated = (int32_t)r->table.n_tok;
    (void)pthread_mutex_unlock(&r->lock);
}

/* --- events --- */

gn_event_node *gn_engine_event_token(const gn_output_token *token)
{
    size_t top_bytes = (size_t)token->n_top * sizeof *token->top;
    unsigned char *block = gn_alloc(sizeof(gn_event_node) + top_bytes + token->text_len + 1);
    if (block == NULL) {
        return NULL;
    }
    gn_event_node *node = (gn_event_node *)(void *)block;
    gn_logprob *top = (gn_logprob *)(void *)(block + sizeof *node);
    char *text = (char *)block + sizeof *node + top_bytes;
    if (top_bytes != 0) {
        memcpy(top, token->top, top_bytes);
    }
    memcpy(text, token->text, token->text_len);
    text[token->text_len] = '\0';
    *node = (gn_event_node){
        .event = {.type = GN_EVENT_TOKEN,
                  .token = {token->id, token->logprob, token->n_top > 0 ? top : NULL, token->n_top},
                  .text = text,
                  .text_len = token->text_len,
                  .message = "",
                  .stop_index = -1}};
    return node;
}

/* Under lock: the owner can't be gone before `notify` has returned. */
static void post(gn_request *r, gn_event_node *node)
{
    node->event.time_ns = gn_os_now_ns();
    node->next = NULL;
    if (r->last != NULL) {
        r->last->next = node;
    } else {
        r->first = node;
    }
    r->last = node;
    (void)pthread_cond_broadcast(&r->cond);
    if (r->notify != NULL && r->owned) {
        r->notify(r->notify_ctx);
    }
}

void gn_engine_request_post_prompt(gn_request *r, gn_event_node *node)
{
    r->prompt_told = true;
    *node = (gn_event_node){.event = {.type = GN_EVENT_PROMPT,
                                      .text = "",
                                      .prompt = r->prompt_logprobs,
                                      .n_prompt = r->prompt_logprobs != NULL ? r->n_prompt : 0,
                                      .message = "",
                                      .stop_index = -1}};
    (void)pthread_mutex_lock(&r->lock);
    post(r, node);
    (void)pthread_mutex_unlock(&r->lock);
}

void gn_engine_request_post_token(gn_request *r, gn_event_node *node)
{
    (void)pthread_mutex_lock(&r->lock);
    post(r, node);
    if (r->info.usage.n_generated++ == 0) {
        r->info.usage.first_ns = node->event.time_ns;
    }
    (void)pthread_mutex_unlock(&r->lock);
}

/* The text held back for a stop string that did not come. Where there is no memory for it the request has failed. */
static gn_status take_held_text(gn_request *r, gn_finish finish, size_t *len)
{
    gn_output_token rest;
    GN_TRY(gn_output_stop(r->output, finish, &rest));
    if (rest.text_len == 0) {
        return GN_OK;
    }
    r->end_text = gn_strndup(rest.text, rest.text_len);
    if (r->end_text == NULL) {
        return gn_alloc_failed();
    }
    *len = rest.text_len;
    return GN_OK;
}

void gn_engine_request_end(gn_request *r, gn_status status, gn_finish finish, int32_t stop_index)
{
    size_t len = 0;
    if (stop_index < 0 && finish != GN_FINISH_STOP && status == GN_OK) {
        status = take_held_text(r, finish, &len);
    }
    gn_kv_table_fini(&r->table);
    gn_sampler_destroy(r->sampler);
    gn_output_destroy(r->output);
    r->sampler = NULL;
    r->output = NULL;
    const char *message = r->message != NULL ? r->message : gn_status_text(status);
    r->end.event = (gn_event){.type = GN_EVENT_END,
                              .text = len != 0 ? r->end_text : "",
                              .text_len = len,
                              .status = status,
                              .message = status != GN_OK ? message : "",
                              .finish = finish,
                              .stop_index = stop_index};
    (void)pthread_mutex_lock(&r->lock);
    r->ended = true;
    r->engine = NULL;
    r->info.state = GN_REQUEST_ENDED;
    r->info.n_evaluated = 0;
    post(r, &r->end);
    r->info.usage.end_ns = r->end.event.time_ns;
    (void)pthread_mutex_unlock(&r->lock);
    gn_engine_request_unref(r);
}

/* --- the owner's side --- */

bool gn_request_wait(gn_request *r, int32_t ms, gn_event *event)
{
    uint64_t until = gn_os_now_ns() + (ms > 0 ? (uint64_t)ms * NS_A_MS : 0);
    (void)pthread_mutex_lock(&r->lock);
    if (r->taken != &r->end) {
        gn_free(r->taken);
        r->taken = NULL;
    }
    bool more = ms > 0 && r->taken == NULL;
    while (r->first == NULL && more) {
        more = gn_engine_cond_wait(&r->cond, &r->lock, until);
    }
    gn_event_node *node = r->first;
    if (node != NULL) {
        r->first = node->next;
        r->last = node->next != NULL ? r->last : NULL;
        r->taken = node;
        *event = node->event;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return node != NULL;
}

/* Under the request's lock, since the engine lives as long as the request has not ended. */
static void cancel(gn_request *r)
{
    if (!r->ended) {
        atomic_store(&r->cancelled, true);
        gn_engine_wake_up(&r->engine->wake);
    }
}

void gn_request_cancel(gn_request *r)
{
    (void)pthread_mutex_lock(&r->lock);
    cancel(r);
    (void)pthread_mutex_unlock(&r->lock);
}

void gn_request_release(gn_request *r)
{
    if (r == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&r->lock);
    cancel(r);
    r->owned = false;
    (void)pthread_mutex_unlock(&r->lock);
    gn_engine_request_unref(r);
}

gn_request_usage gn_request_get_usage(gn_request *r)
{
    (void)pthread_mutex_lock(&r->lock);
    gn_request_usage usage = r->info.usage;
    (void)pthread_mutex_unlock(&r->lock);
    return usage;
}
