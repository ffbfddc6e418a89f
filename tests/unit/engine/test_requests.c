/* Requests served together get the bits that each gets alone, also after pre-emption; they end as asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "mix.h"
#include "os/clock.h"

#ifdef __SANITIZE_THREAD__
enum { MANY = 60 }; /* it is slow */
#else
enum { MANY = MIX_MOST };
#endif

static mix_request requests[MIX_MOST];
static mix_answer expected[MIX_MOST];

static void prepare(const char *name, gn_kv_format format, size_t n)
{
    gn_model *model = mix_open(name, 1ull << 30, format);
    for (size_t i = 0; i < n; i++) {
        mix_make(&requests[i], i, gn_model_get_info(model).n_vocab);
        mix_alone(model, &requests[i], &expected[i]);
    }
    gn_model_close(model);
}

static gn_engine *start(gn_model *model, const gn_engine_options *options)
{
    gn_engine *engine = NULL;
    if (gn_engine_create(model, options, &engine) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    return engine;
}

static void test_together(void **state)
{
    (void)state;
    static const char *const names[] = {"llama/", "gemma3/", "mixtral/", "phi3/",
                                        "gguf_llama/model.gguf"};
    for (size_t k = 0; k < GN_COUNTOF(names); k++) {
        size_t n = k == 0 ? MANY : 40;
        gn_kv_format format = (gn_kv_format)(k % 4);
        prepare(names[k], format, n);
        gn_model *model = mix_open(names[k], 1ull << 30, format);
        static const uint32_t steps[] = {0, 16};
        for (size_t s = 0; s < GN_COUNTOF(steps); s++) {
            const gn_engine_options options = {.step_tokens = steps[s], .no_prefix_cache = true};
            gn_engine *engine = start(model, &options);
            (void)mix_together(names[k], engine, requests, expected, n);
            gn_engine_stats stats;
            gn_engine_get_stats(engine, &stats);
            assert_int_equal(stats.n_requests, n);
            assert_int_equal(stats.n_ended, n);
            assert_int_equal(stats.n_failed + stats.n_cancelled, 0);
            assert_int_equal(stats.n_running, 0);
            gn_engine_destroy(engine);
        }
        gn_model_close(model);
    }
    assert_int_equal(gn_alloc_live(), 0);
}

static uint64_t page_bytes(const char *name)
{
    gn_model *model = mix_open(name, 1ull << 30, GN_KV_FORMAT_F16);
    uint64_t bytes = gn_model_get_info(model).kv_bytes_per_tok * GN_KV_PAGE_TOK;
    gn_model_close(model);
    return bytes;
}

/* So few pages that requests lose theirs: what they get is the same, and no event comes twice. */
static void test_preempted(void **state)
{
    (void)state;
    static const char *const names[] = {"llama/", "gemma3/"};
    for (size_t k = 0; k < GN_COUNTOF(names); k++) {
        prepare(names[k], GN_KV_FORMAT_F16, MANY);
        gn_model *model = mix_open(names[k], 12 * page_bytes(names[k]), GN_KV_FORMAT_F16);
        const gn_engine_options options = {.no_prefix_cache = true};
        gn_engine *engine = start(model, &options);
        int32_t n = mix_together(names[k], engine, requests, expected, MANY);
        gn_engine_stats stats;
        gn_engine_get_stats(engine, &stats);
        assert_true(n > 0);
        assert_int_equal(stats.n_preemptions, n);
        gn_engine_destroy(engine);
        assert_int_equal(gn_kv_pool_in_use(model->kv), 0);
        gn_model_close(model);
    }
}

/* --- one at a time --- */

static const int32_t ids[] = {5, 9, 11, 40, 7, 3, 60, 22};

static gn_request_options options_of(int32_t max_tokens)
{
    gn_request_options o = gn_request_defaults();
    o.prompt = ids;
    o.n_prompt = GN_COUNTOF(ids);
    o.max_tokens = max_tokens;
    return o;
}

/* Wait for the end; returns the tokens before it. */
static int32_t wait_end(gn_request *request, gn_event *event)
{
    int32_t n = 0;
    for (;;) {
        if (!gn_request_wait(request, 60000, event)) {
            fail_msg("no event in a minute");
        }
        n += event->type == GN_EVENT_TOKEN;
        if (event->type == GN_EVENT_END) {
            return n;
        }
    }
}

static gn_request *submit(gn_engine *engine, const gn_request_options *o)
{
    gn_request *request = NULL;
    if (gn_request_submit(engine, o, &request) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    return request;
}

static void test_refused(void **state)
{
    (void)state;
    gn_model *model = mix_open("llama/", 3 * page_bytes("llama/"), GN_KV_FORMAT_F16);
    gn_engine *engine = start(model, NULL);
    gn_request *request = NULL;
    gn_request_options o = options_of(4);
    o.n_prompt = 0;
    assert_int_equal(gn_request_submit(engine, &o, &request), GN_E_ARG);
    const int32_t bad[] = {5, 96};
    o = options_of(4);
    o.prompt = bad;
    o.n_prompt = 2;
    assert_int_equal(gn_request_submit(engine, &o, &request), GN_E_ARG);
    assert_non_null(strstr(gn_error_message(), "token 1: found id 96"));
    o = options_of(4);
    o.n_ctx = 7;
    assert_int_equal(gn_request_submit(engine, &o, &request), GN_E_LIMIT);
    o = options_of(4);
    o.sample.top_p = 2.0f;
    assert_int_equal(gn_request_submit(engine, &o, &request), GN_E_ARG);
    o = options_of(4);
    o.n_top = 21;
    assert_int_equal(gn_request_submit(engine, &o, &request), GN_E_ARG);
    o = options_of(4);
    o.priority = (gn_priority)3;
    assert_int_equal(gn_request_submit(engine, &o, &request), GN_E_ARG);
    /* Three pages hold 192 tokens. */
    assert_int_equal(gn_request_submit(engine, &(gn_request_options){0}, &request), GN_E_ARG);
    o = options_of(185);
    assert_int_equal(gn_request_submit(engine, &o, &request), GN_E_LIMIT);
    o = options_of(-1);
    o.sample.ignore_eos = true;
    gn_event event;
    request = submit(engine, &o);
    assert_int_equal(wait_end(request, &event), 192 - 8);
    assert_int_equal(event.finish, GN_FINISH_LENGTH);
    assert_int_equal(event.status, GN_OK);
    gn_request_release(request);
    gn_engine_destroy(engine);
    gn_model_close(model);
}

static void test_ends(void **state)
{
    (void)state;
    gn_model *model = mix_open("llama/", 1ull << 30, GN_KV_FORMAT_F16);
    gn_engine *engine = start(model, NULL);
    gn_event event;
    gn_request_options o = options_of(0); /* the prompt alone */
    gn_request *request = submit(engine, &o);
    assert_true(gn_request_wait(request, 60000, &event));
    assert_int_equal(event.type, GN_EVENT_PROMPT);
    assert_int_equal(wait_end(request, &event), 0);
    assert_int_equal(event.finish, GN_FINISH_LENGTH);
    gn_request_release(request);
    o = options_of(1);
    request = submit(engine, &o);
    assert_int_equal(wait_end(request, &event), 1);
    gn_request_release(request);
    o = options_of(-1);
    o.n_ctx = 10;
    request = submit(engine, &o);
    assert_int_equal(wait_end(request, &event), 2);
    assert_int_equal(event.finish, GN_FINISH_LENGTH);
    gn_request_release(request);
    /* Cancelled in the middle, by its handle and by its number. */
    for (int by_id = 0; by_id < 2; by_id++) {
        o = options_of(-1);
        o.n_ctx = 100000;
        request = submit(engine, &o);
        do {
            assert_true(gn_request_wait(request, 60000, &event));
        } while (event.type != GN_EVENT_TOKEN);
        uint64_t id = gn_request_get_usage(request).id;
        if (by_id != 0) {
            assert_true(gn_engine_cancel(engine, id));
        } else {
            gn_request_cancel(request);
        }
        (void)wait_end(request, &event);
        assert_int_equal(event.status, GN_E_CANCELLED);
        assert_int_equal(event.finish, GN_FINISH_CANCELLED);
        assert_false(gn_engine_cancel(engine, id));
        gn_request_cancel(request);
        gn_request_release(request);
    }
    o.deadline_ns = gn_os_now_ns() + 20000000;
    request = submit(engine, &o);
    (void)wait_end(request, &event);
    assert_int_equal(event.status, GN_OK);
    assert_int_equal(event.finish, GN_FINISH_DEADLINE);
    assert_true(event.time_ns >= o.deadline_ns);
    gn_request_release(request);
    gn_request_release(NULL);
    /* Released in the middle, and left to the engine's end. */
    o.deadline_ns = 0;
    gn_request_release(submit(engine, &o));
    request = submit(engine, &o);
    gn_engine_destroy(engine);
    (void)wait_end(request, &event);
    assert_int_equal(event.status, GN_E_CANCELLED);
    gn_request_cancel(request);
    gn_request_release(request);
    gn_model_close(model);
    assert_int_equal(gn_alloc_live(), 0);
}

/* With one place and one that runs: the queue is bounded, its order is that of classes, then of age. */
static void test_queue(void **state)
{
    (void)state;
    gn_model *model = mix_open("llama/", 1ull << 30, GN_KV_FORMAT_F16);
    const gn_engine_options options = {.max_waiting = 3, .max_running = 1};
    gn_engine *engine = start(model, &options);
    gn_request_options o = options_of(-1);
    o.n_ctx = 100000;
    o.priority = GN_PRIORITY_REALTIME;
    gn_request *first = submit(engine, &o);
    gn_event event;
    assert_true(gn_request_wait(first, 60000, &event));
    static const gn_priority classes[] = {GN_PRIORITY_BATCH, GN_PRIORITY_INTERACTIVE,
                                          GN_PRIORITY_INTERACTIVE};
    gn_request *waiting[3];
    o = options_of(3);
    for (size_t i = 0; i < 3; i++) {
        o.priority = classes[i];
        waiting[i] = submit(engine, &o);
    }
    gn_request *none = NULL;
    assert_int_equal(gn_request_submit(engine, &o, &none), GN_E_UNAVAILABLE);
    gn_request_info info[8];
    assert_int_equal(gn_engine_list(engine, info, 8), 4);
    assert_int_equal(info[0].usage.id, gn_request_get_usage(first).id);
    assert_int_equal(info[1].priority, GN_PRIORITY_INTERACTIVE);
    assert_int_equal(info[1].state, GN_REQUEST_WAITING);
    assert_int_equal(info[3].priority, GN_PRIORITY_BATCH);
    assert_int_equal(gn_engine_list(engine, info, 1), 4);
    gn_engine_stats stats;
    gn_engine_get_stats(engine, &stats);
    assert_int_equal(stats.n_running, 1);
    assert_int_equal(stats.n_waiting[GN_PRIORITY_INTERACTIVE], 2);
    assert_int_equal(stats.n_waiting[GN_PRIORITY_BATCH], 1);
    gn_request_release(first);
    uint64_t ends[3];
    for (size_t i = 0; i < 3; i++) {
        (void)wait_end(waiting[i], &event);
        ends[i] = gn_request_get_usage(waiting[i]).end_ns;
        gn_request_release(waiting[i]);
    }
    assert_true(ends[1] <= ends[2] && ends[2] <= ends[0]);
    gn_engine_destroy(engine);
    gn_model_close(model);
}

/* A higher class takes the place of a lower one, which then goes on. */
static void test_classes(void **state)
{
    (void)state;
    prepare("llama/", GN_KV_FORMAT_F16, 12);
    gn_model *model = mix_open("llama/", 1ull << 30, GN_KV_FORMAT_F16);
    const gn_engine_options options = {.max_running = 1};
    gn_engine *engine = start(model, &options);
    gn_request_options o = options_of(-1);
    o.n_ctx = 100000;
    o.priority = GN_PRIORITY_BATCH;
    gn_request *batch = submit(engine, &o);
    gn_event event;
    do {
        assert_true(gn_request_wait(batch, 60000, &event));
    } while (event.type != GN_EVENT_TOKEN);
    for (size_t i = 0; i < 12; i++) {
        mix_answer answer;
        o = mix_options(&requests[i]);
        o.priority = GN_PRIORITY_INTERACTIVE;
        gn_request *request = submit(engine, &o);
        mix_collect(request, &answer);
        mix_compare("before a batch", i, &answer, &expected[i]);
        gn_request_release(request);
    }
    assert_true(gn_request_get_usage(batch).n_preempted > 0);
    gn_request_release(batch);
    gn_engine_destroy(engine);
    gn_model_close(model);
}

static void test_prompt_logprobs(void **state)
{
    (void)state;
    gn_model *model = mix_open("llama/", 1ull << 30, GN_KV_FORMAT_F16);
    gn_engine *engine = start(model, NULL);
    mix_request m;
    mix_make(&m, 10, 96);
    gn_request_options o = mix_options(&m);
    o.n_prompt_top = 2;
    o.max_tokens = 0;
    gn_event event;
    gn_request *request = submit(engine, &o);
    assert_true(gn_request_wait(request, 60000, &event));
    assert_int_equal(event.type, GN_EVENT_PROMPT);
    assert_int_equal(event.n_prompt, m.n_prompt);
    assert_true(isnan(event.prompt[0].logprob));
    gn_session *session = NULL;
    float *logits = malloc(m.n_prompt * 96 * sizeof *logits);
    const gn_session_options session_options = {.n_ctx = m.n_ctx};
    assert_int_equal(gn_session_create(model, &session_options, &session), GN_OK);
    assert_int_equal(gn_session_eval(session, m.prompt, m.n_prompt, logits, m.n_prompt), GN_OK);
    for (size_t i = 1; i < m.n_prompt; i++) {
        const float *row = logits + (i - 1) * 96;
        gn_logprob top[2];
        assert_int_equal(gn_sample_top_logprobs(row, 96, 2, top), GN_OK);
        float logprob = (float)((double)row[m.prompt[i]] - gn_sample_logsumexp(row, 96));
        assert_int_equal(event.prompt[i].id, m.prompt[i]);
        assert_memory_equal(&event.prompt[i].logprob, &logprob, sizeof logprob);
        assert_memory_equal(event.prompt[i].top, top, sizeof top);
    }
    (void)wait_end(request, &event);
    gn_request_release(request);
    gn_session_destroy(session);
    free(logits);
    gn_engine_destroy(engine);
    gn_model_close(model);
}

/* Sessions and an engine of one model: both go on, to the same bits, and pages held by a session are waited for. */
static void test_sessions_beside(void **state)
{
    (void)state;
    prepare("llama/", GN_KV_FORMAT_F16, 40);
    gn_model *model = mix_open("llama/", 9 * page_bytes("llama/"), GN_KV_FORMAT_F16);
    gn_engine *engine = start(model, NULL);
    gn_request *handles[20];
    for (size_t i = 0; i < 20; i++) {
        const gn_request_options o = mix_options(&requests[i]);
        handles[i] = submit(engine, &o);
    }
    const gn_session_options session_options = {.n_ctx = 64};
    gn_session *session = NULL;
    float logits[96];
    assert_int_equal(gn_session_create(model, &session_options, &session), GN_OK);
    for (int32_t i = 0; i < 64; i++) {
        gn_status status = gn_session_eval(session, &(int32_t){i}, 1, logits, 1);
        assert_true(status == GN_OK || (i == 0 && status == GN_E_NO_PAGES));
        i -= status != GN_OK;
    }
    for (size_t i = 0; i < 20; i++) {
        mix_answer answer;
        mix_collect(handles[i], &answer);
        mix_compare("beside a session", i, &answer, &expected[i]);
        gn_request_release(handles[i]);
    }
    /* All pages are the session's: a request waits until it is gone. */
    gn_session *large = NULL;
    int32_t many[8 * 64];
    for (size_t i = 0; i < GN_COUNTOF(many); i++) {
        many[i] = (int32_t)(i % 90);
    }
    gn_session_destroy(session);
    const gn_session_options large_options = {.n_ctx = 9 * 64};
    assert_int_equal(gn_session_create(model, &large_options, &large), GN_OK);
    gn_status status = gn_session_eval(large, many, GN_COUNTOF(many), NULL, 0);
    assert_int_equal(status, GN_OK);
    assert_int_equal(gn_session_eval(large, many, 64, NULL, 0), GN_OK);
    const gn_request_options o = mix_options(&requests[5]);
    gn_request *request = submit(engine, &o);
    gn_event event;
    assert_false(gn_request_wait(request, 100, &event));
    gn_session_destroy(large);
    mix_answer answer;
    mix_collect(request, &answer);
    mix_compare("after a session", 5, &answer, &expected[5]);
    gn_request_release(request);
    gn_engine_destroy(engine);
    gn_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together),        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_ends),
        cmocka_unit_test(test_queue),           cmocka_unit_test(test_classes),
        cmocka_unit_test(test_prompt_logprobs), cmocka_unit_test(test_sessions_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
