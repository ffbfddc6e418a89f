/* Mixed requests, what each gets from a session of its own, and what an engine gives them. Include after cmocka.h. */
#ifndef TESTS_UNIT_ENGINE_MIX_H
#define TESTS_UNIT_ENGINE_MIX_H

#include "base/alloc.h"
#include "engine/port.h"
#include "engine/session_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIX_MOST  200
#define MIX_CTX   400 /* most tokens of a prompt */
#define MIX_TOP   3
#define MIX_TOKEN 48 /* most tokens of an answer */

typedef struct mix_answer {
    size_t n;
    int32_t ids[MIX_TOKEN];
    float logprobs[MIX_TOKEN];
    gn_logprob top[MIX_TOKEN][MIX_TOP];
    gn_finish finish;
    gn_status status;
} mix_answer;

typedef struct mix_request {
    int32_t prompt[MIX_CTX];
    size_t n_prompt;
    int32_t n_ctx; /* of the sequence */
    int32_t stop_id;
    int32_t max_tokens;
    gn_sample_params sample;
    gn_priority priority;
} mix_request;

static inline gn_model *mix_open(const char *name, uint64_t kv_bytes, gn_kv_format format)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tiny/%s", GN_TEST_GOLDEN, name);
    const gn_model_options options = {
        .threads = 2, .kv_bytes = kv_bytes, .kv_format = format, .cache = GN_CACHE_OFF};
    gn_model *model = NULL;
    if (gn_model_open(path, &options, &model) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    return model;
}

/* Number i of a mix: lengths around pages' edges, some with the same beginning, greedy and drawn, with and without
 * penalties, in all classes. */
static inline void mix_make(mix_request *r, size_t i, int32_t n_vocab)
{
    static const size_t lengths[] = {1, 64, 3, 63, 65, 130, 17, 200, 128, 33, 257, 90};
    memset(r, 0, sizeof *r);
    r->n_prompt = lengths[i % GN_COUNTOF(lengths)] + i / GN_COUNTOF(lengths) % 5;
    size_t family = i % 4; /* those of one begin alike */
    size_t alike = family == 0 ? 0 : 40 * family + 7;
    for (size_t p = 0; p < r->n_prompt; p++) {
        size_t seed = p < alike ? family : i * 131 + 1;
        r->prompt[p] = (int32_t)((p * 7919 + seed * 31 + p * p % 13) % (size_t)n_vocab);
    }
    r->max_tokens = (int32_t)(4 + i * 7 % (MIX_TOKEN - 4));
    r->n_ctx = i % 9 == 8 ? (int32_t)r->n_prompt + 5 : 600;
    r->stop_id = (int32_t)(i % (size_t)n_vocab);
    r->priority = (gn_priority)(i * 5 % GN_N_PRIORITIES);
    r->sample = gn_sample_defaults();
    r->sample.seed = i;
    switch (i % 4) {
    case 0: r->sample.temperature = 0.0f; break;
    case 1: r->sample.temperature = 0.8f; break;
    case 2:
        r->sample.top_p = 0.9f;
        r->sample.repetition_penalty = 1.3f;
        r->sample.penalty_last_n = 64;
        break;
    default:
        r->sample.top_k = 20;
        r->sample.presence_penalty = 0.5f;
        r->sample.penalty_last_n = -1;
        break;
    }
}

/* What a session of its own gives, token by token. */
static inline void mix_alone(gn_model *model, const mix_request *r, mix_answer *a)
{
    gn_session *session = NULL;
    gn_sampler *sampler = NULL;
    int32_t n_vocab = gn_model_get_info(model).n_vocab;
    float *logits = malloc((size_t)n_vocab * sizeof *logits);
    const gn_session_options options = {.n_ctx = r->n_ctx};
    assert_int_equal(gn_session_create(model, &options, &session), GN_OK);
    assert_int_equal(gn_sampler_create(&r->sample, n_vocab, &sampler), GN_OK);
    for (size_t i = 0; i < r->n_prompt; i++) {
        assert_int_equal(gn_sampler_accept(sampler, r->prompt[i], false), GN_OK);
    }
    assert_int_equal(gn_session_eval(session, r->prompt, r->n_prompt, logits, 1), GN_OK);
    memset(a, 0, sizeof *a);
    a->finish = GN_FINISH_LENGTH;
    while ((int32_t)a->n < r->max_tokens &&
           gn_session_length(session) < gn_session_n_ctx(session)) {
        int32_t id = -1;
        assert_int_equal(gn_sampler_pick(sampler, logits, NULL, &id), GN_OK);
        assert_int_equal(gn_sampler_accept(sampler, id, true), GN_OK);
        a->ids[a->n] = id;
        a->logprobs[a->n] = (float)((double)logits[id] - gn_sample_logsumexp(logits, n_vocab));
        assert_int_equal(gn_sample_top_logprobs(logits, n_vocab, MIX_TOP, a->top[a->n]), GN_OK);
        a->n++;
        assert_int_equal(gn_session_eval(session, &id, 1, logits, 1), GN_OK);
        if (id == r->stop_id || gn_model_is_end(model, id)) {
            a->finish = GN_FINISH_STOP;
            break;
        }
    }
    gn_sampler_destroy(sampler);
    gn_session_destroy(session);
    free(logits);
}

static inline gn_request_options mix_options(const mix_request *r)
{
    gn_request_options o = gn_request_defaults();
    o.prompt = r->prompt;
    o.n_prompt = r->n_prompt;
    o.sample = r->sample;
    o.max_tokens = r->max_tokens;
    o.n_ctx = r->n_ctx;
    o.stop_ids = &r->stop_id;
    o.n_stop_ids = 1;
    o.n_top = MIX_TOP;
    o.priority = r->priority;
    return o;
}

/* Take all events up to the end, checking their order. */
static inline void mix_collect(gn_request *request, mix_answer *a)
{
    gn_event event;
    bool prompt = false;
    memset(a, 0, sizeof *a);
    for (;;) {
        if (!gn_request_wait(request, 60000, &event)) {
            fail_msg("no event in a minute, after %zu tokens", a->n);
        }
        if (event.type == GN_EVENT_END) {
            break;
        }
        if (event.type == GN_EVENT_PROMPT) {
            assert_false(prompt);
            prompt = true;
            continue;
        }
        assert_true(prompt && a->n < MIX_TOKEN);
        a->ids[a->n] = event.token.id;
        a->logprobs[a->n] = event.token.logprob;
        assert_int_equal(event.token.n_top, MIX_TOP);
        memcpy(a->top[a->n], event.token.top, sizeof a->top[0]);
        a->n++;
    }
    a->finish = event.finish;
    a->status = event.status;
    assert_false(gn_request_wait(request, 0, &event));
}

static inline void mix_compare(const char *what, size_t i, const mix_answer *found,
                               const mix_answer *expected)
{
    if (memcmp(found, expected, sizeof *found) != 0) {
        size_t k = 0;
        while (k < expected->n && found->ids[k] == expected->ids[k] &&
               memcmp(&found->logprobs[k], &expected->logprobs[k], sizeof(float)) == 0) {
            k++;
        }
        fail_msg("%s: request %zu: found %zu tokens, %s, expected %zu; they part at token %zu",
                 what, i, found->n, gn_status_name(found->status), expected->n, k);
    }
}

/* Submit all, then collect all and compare; returns how often one was pre-empted. */
static inline int32_t mix_together(const char *what, gn_engine *engine, const mix_request *requests,
                                   const mix_answer *expected, size_t n)
{
    gn_request *handles[MIX_MOST];
    int32_t n_preempted = 0;
    for (size_t i = 0; i < n; i++) {
        const gn_request_options o = mix_options(&requests[i]);
        if (gn_request_submit(engine, &o, &handles[i]) != GN_OK) {
            fail_msg("%s: request %zu: %s", what, i, gn_error_message());
        }
    }
    for (size_t i = 0; i < n; i++) {
        mix_answer answer;
        mix_collect(handles[i], &answer);
        mix_compare(what, i, &answer, &expected[i]);
        gn_request_usage usage = gn_request_get_usage(handles[i]);
        assert_int_equal(usage.n_generated, answer.n);
        assert_int_equal(usage.n_prompt, requests[i].n_prompt);
        assert_true(usage.submit_ns <= usage.start_ns && usage.start_ns <= usage.first_ns &&
                    usage.first_ns <= usage.end_ns);
        n_preempted += usage.n_preempted;
        gn_request_release(handles[i]);
    }
    return n_preempted;
}

#endif
