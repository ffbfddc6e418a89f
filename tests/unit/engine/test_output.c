/* Answers under a grammar, over logits drawn at random: what comes is a text of the grammar at every limit, and
 * what is known beforehand comes whether somebody asks for it or not. The vocabulary is that of the tiny llama: a, b,
 * ab and t6 to t95, so that most bytes are no tokens. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/rng.h"
#include "engine/output.h"
#include "grammar/matcher.h"

#define N_VOCAB 96
#define EOS     2
#define MODEL   GN_TEST_GOLDEN "/tiny/gguf_llama/model.gguf"

static gn_model *open_model(const char *path)
{
    const gn_model_options options = {.threads = 1, .kv_bytes = 16 << 20};
    gn_model *model = NULL;
    if (gn_model_open(path, &options, &model) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    return model;
}

static gn_grammar *regex(const char *text)
{
    gn_grammar *grammar = NULL;
    if (gn_grammar_from_regex(text, strlen(text), &grammar) != GN_OK) {
        fail_msg("%s: %s", text, gn_error_message());
    }
    return grammar;
}

static gn_sampler *make_sampler(const gn_sample_params *params)
{
    gn_sampler *sampler = NULL;
    assert_int_equal(gn_sampler_create(params, N_VOCAB, &sampler), GN_OK);
    return sampler;
}

static void draw_logits(gn_rng *rng, float *logits)
{
    for (int i = 0; i < N_VOCAB; i++) {
        logits[i] = (float)(8.0 * gn_rng_uniform(rng));
    }
}

typedef struct answer {
    int32_t ids[256];
    size_t n;
    gn_buf text;
    gn_output_token last;
} answer;

/* Run one answer to its end. ask: use what is forced, without logits for it. */
static void run(const gn_model *model, const gn_output_options *options, size_t n_left,
                uint64_t seed, bool ask, answer *a)
{
    gn_output *output = NULL;
    if (gn_output_create(model, options, &output) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    *a = (answer){0};
    size_t n_known = 0;
    int32_t known[8];
    while (!a->last.ended) {
        /* The logits are those of the place, as in a model. */
        gn_rng rng = {.state = seed * 1000 + a->n};
        float logits[N_VOCAB];
        draw_logits(&rng, logits);
        if (ask && n_known == 0) {
            assert_int_equal(gn_output_forced(output, n_left - a->n, known, 8, &n_known), GN_OK);
        }
        bool is_known = n_known != 0;
        if (gn_output_next(output, is_known ? NULL : logits, n_left - a->n, &a->last) != GN_OK) {
            fail_msg("%s", gn_error_message());
        }
        if (is_known) {
            assert_int_equal(a->last.id, known[0]);
            memmove(known, known + 1, --n_known * sizeof *known);
        }
        assert_int_equal(gn_buf_append(&a->text, a->last.text, a->last.text_len), GN_OK);
        if (a->last.id >= 0) {
            assert_true(a->n < 256);
            a->ids[a->n++] = a->last.id;
        }
    }
    assert_int_equal(gn_output_n_tokens(output), a->n);
    assert_int_equal(n_known, 0);
    gn_output_destroy(output);
}

static bool matches(const char *text, const gn_buf *got)
{
    gn_grammar *grammar = regex(text);
    gn_matcher *m = NULL;
    assert_int_equal(gn_matcher_create(grammar, NULL, &m), GN_OK);
    bool yes =
        gn_matcher_accept_bytes(m, got->data != NULL ? got->data : "", got->len, NULL) == GN_OK &&
        gn_matcher_may_end(m);
    gn_matcher_destroy(m);
    gn_grammar_release(grammar);
    return yes;
}

static const char *const expressions[] = {"a*",
                                          "(ab)+",
                                          "a{3,9}b",
                                          "(t1[0-9])*ab",
                                          "ababab(a|t90)",
                                          "(a|b){4}",
                                          "t5(0t60|1t61|2t62)",
                                          "(aa|bb)*(t77)?",
                                          "(abab){1,5}",
                                          "a|",
                                          "((a|b)(ab|t20)){2,}",
                                          "ab{10}a*"};

static const size_t least[] = {0, 1, 3, 1, 4, 4, 2, 0, 2, 0, 4, 10};

static void test_every_answer_is_a_text_of_the_grammar(void **state)
{
    (void)state;
    gn_model *model = open_model(MODEL);
    size_t n_closed = 0;
    size_t n_stopped = 0;
    for (size_t e = 0; e < sizeof expressions / sizeof expressions[0]; e++) {
        gn_grammar *grammar = regex(expressions[e]);
        for (uint64_t seed = 1; seed <= 60; seed++) {
            gn_sample_params params = gn_sample_defaults();
            params.temperature = seed % 3 == 0 ? 0.0F : 2.0F;
            params.seed = seed;
            size_t limit = least[e] + seed % 14;
            /* Half of the limits are those of the answer, half those of the context. */
            bool own = seed % 2 == 0;
            gn_output_options options = {.sampler = make_sampler(&params),
                                         .grammar = grammar,
                                         .max_tokens = own ? (int32_t)limit : -1,
                                         .n_left = own ? 0 : limit,
                                         .n_top = -1};
            answer a;
            run(model, &options, own ? 200 : limit, seed, seed % 5 == 0, &a);
            if (!matches(expressions[e], &a.text) || a.n > limit) {
                fail_msg("%s, seed %d: \"%s\", %zu tokens of %zu", expressions[e], (int)seed,
                         a.text.data, a.n, limit);
            }
            assert_int_equal(a.last.finish == GN_FINISH_LENGTH, a.last.grammar_closed);
            n_closed += a.last.grammar_closed;
            n_stopped += a.last.finish == GN_FINISH_STOP;
            gn_buf_fini(&a.text);
            gn_sampler_destroy(options.sampler);
        }
        gn_grammar_release(grammar);
    }
    assert_true(n_closed > 50 && n_stopped > 50);
    gn_model_close(model);
}

static void test_forced_tokens_come_whether_asked_for_or_not(void **state)
{
    (void)state;
    gn_model *model = open_model(MODEL);
    for (size_t e = 0; e < sizeof expressions / sizeof expressions[0]; e++) {
        gn_grammar *grammar = regex(expressions[e]);
        for (uint64_t seed = 1; seed <= 20; seed++) {
            gn_sample_params params = gn_sample_defaults();
            params.seed = seed;
            answer a[2];
            for (int ask = 0; ask < 2; ask++) {
                gn_output_options options = {.sampler = make_sampler(&params),
                                             .grammar = grammar,
                                             .max_tokens = (int32_t)(least[e] + seed),
                                             .n_top = -1};
                run(model, &options, 200, seed, ask != 0, &a[ask]);
                gn_sampler_destroy(options.sampler);
            }
            assert_int_equal(a[0].n, a[1].n);
            assert_memory_equal(a[0].ids, a[1].ids, a[0].n * sizeof a[0].ids[0]);
            gn_buf_fini(&a[0].text);
            gn_buf_fini(&a[1].text);
        }
        gn_grammar_release(grammar);
    }
    /* A text without a choice takes no logits at all. */
    gn_grammar *grammar = regex("abaabb");
    gn_sample_params params = gn_sample_defaults();
    gn_output_options options = {
        .sampler = make_sampler(&params), .grammar = grammar, .max_tokens = -1, .n_top = -1};
    gn_output *output = NULL;
    int32_t ids[8];
    size_t n = 0;
    assert_int_equal(gn_output_create(model, &options, &output), GN_OK);
    assert_int_equal(gn_output_forced(output, 50, ids, 8, &n), GN_OK);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        gn_output_token t;
        assert_int_equal(gn_output_next(output, NULL, 50 - i, &t), GN_OK);
        assert_int_equal(t.id, ids[i]);
        assert_int_equal(t.ended, i == n - 1);
        assert_true(!t.ended || t.finish == GN_FINISH_STOP);
    }
    gn_output_destroy(output);
    gn_sampler_destroy(options.sampler);
    gn_grammar_release(grammar);
    gn_model_close(model);
}

static void test_what_has_no_room_or_no_spelling_is_refused(void **state)
{
    (void)state;
    gn_model *model = open_model(MODEL);
    gn_sample_params params = gn_sample_defaults();
    gn_sampler *sampler = make_sampler(&params);
    gn_output *output = NULL;
    gn_grammar *grammar = regex("(ab){5}a*");
    gn_output_options options = {
        .sampler = sampler, .grammar = grammar, .max_tokens = 4, .n_top = -1};
    assert_int_equal(gn_output_create(model, &options, &output), GN_E_LIMIT);
    assert_non_null(strstr(gn_error_message(), "needs 5 tokens, the answer may have 4"));
    options.max_tokens = -1;
    options.n_left = 3;
    assert_int_equal(gn_output_create(model, &options, &output), GN_E_LIMIT);
    /* Where the room wasn't known, the first token is asked for in vain. */
    options.n_left = 0;
    assert_int_equal(gn_output_create(model, &options, &output), GN_OK);
    float logits[N_VOCAB] = {0};
    gn_output_token t;
    assert_int_equal(gn_output_next(output, logits, 4, &t), GN_E_LIMIT);
    gn_output_destroy(output);

    gn_grammar *foreign = regex("ab|z");
    gn_grammar *odd = regex("zzz");
    options.grammar = odd;
    options.n_left = 100;
    assert_int_equal(gn_output_create(model, &options, &output), GN_E_REFUSED);

    /* A token after which nothing can be spelled is never the way on, whatever its logit. */
    gn_grammar *trap = regex("t6z|t7");
    options.grammar = trap;
    options.n_left = 2;
    assert_int_equal(gn_output_create(model, &options, &output), GN_OK);
    logits[6] = 20.0F;
    assert_int_equal(gn_output_next(output, logits, 2, &t), GN_OK);
    assert_true(t.ended);
    assert_string_equal(t.text, "t7");
    gn_output_destroy(output);

    /* One grammar serves one vocabulary. */
    gn_model *other = open_model(MODEL);
    options.grammar = grammar;
    options.n_left = 100;
    assert_int_equal(gn_output_create(other, &options, &output), GN_E_ARG);
    gn_model_close(other);

    gn_model *mute = open_model(GN_TEST_GOLDEN "/tiny/llama");
    options.grammar = foreign;
    assert_int_equal(gn_output_create(mute, &options, &output), GN_E_UNSUPPORTED);
    gn_model_close(mute);
    gn_grammar_release(trap);
    gn_grammar_release(odd);
    gn_grammar_release(foreign);
    gn_grammar_release(grammar);
    gn_sampler_destroy(sampler);
    gn_model_close(model);
}

static void test_the_grammar_wins_over_the_sampler(void **state)
{
    (void)state;
    gn_model *model = open_model(MODEL);
    int32_t end = EOS;
    gn_logit_bias bias[] = {{3, -INFINITY}, {4, -INFINITY}, {5, -INFINITY}};
    gn_sample_params params = gn_sample_defaults();
    params.logit_bias = bias;
    params.n_logit_bias = 3;
    params.end_ids = &end;
    params.n_end_ids = 1;
    params.ignore_eos = true;
    gn_grammar *grammar = regex("a{2}|b{2}");
    for (int greedy = 0; greedy < 2; greedy++) {
        params.temperature = greedy != 0 ? 0.0F : 1.0F;
        gn_output_options options = {
            .sampler = make_sampler(&params), .grammar = grammar, .max_tokens = 9, .n_top = -1};
        gn_output *output = NULL;
        assert_int_equal(gn_output_create(model, &options, &output), GN_OK);
        float logits[N_VOCAB] = {[3] = -5.0F, [4] = 1.0F};
        gn_output_token t;
        assert_int_equal(gn_output_next(output, logits, 9, &t), GN_OK);
        assert_int_equal(t.id, 4);
        assert_false(t.ended);
        assert_int_equal(gn_output_next(output, logits, 8, &t), GN_OK);
        assert_int_equal(t.id, 4);
        assert_true(t.ended && t.finish == GN_FINISH_STOP && !t.grammar_closed);
        gn_output_destroy(output);
        gn_sampler_destroy(options.sampler);
    }
    gn_grammar_release(grammar);
    gn_model_close(model);
}

/* A caller's end token ends the answer where the text may end; elsewhere it is a token like others. */
static void test_stop_ids(void **state)
{
    (void)state;
    gn_model *model = open_model(MODEL);
    gn_sample_params params = gn_sample_defaults();
    params.temperature = 0.0F;
    gn_grammar *grammar = regex("a(t50)?b*");
    const int32_t stop_ids[] = {50, 7, -1, 1 << 20};
    gn_output_options options = {.sampler = make_sampler(&params),
                                 .grammar = grammar,
                                 .max_tokens = 9,
                                 .stop_ids = stop_ids,
                                 .n_stop_ids = 4,
                                 .n_top = -1};
    gn_output *output = NULL;
    gn_output_token t;
    float logits[N_VOCAB] = {[7] = 9.0F, [3] = 1.0F};
    assert_int_equal(gn_output_create(model, &options, &output), GN_OK);
    assert_int_equal(gn_output_next(output, logits, 9, &t), GN_OK);
    assert_int_equal(t.id, 3); /* t7 may not come before the text may end */
    assert_int_equal(gn_output_next(output, logits, 8, &t), GN_OK);
    assert_int_equal(t.id, 7);
    assert_true(t.ended && t.finish == GN_FINISH_STOP && t.text_len == 0);
    gn_output_destroy(output);
    gn_sampler_destroy(options.sampler);
    gn_grammar_release(grammar);
    gn_model_close(model);
}

/* A stop string cuts a grammar's text too, and log-probabilities are those of the whole vocabulary. */
static void test_stop_string_and_logprobs(void **state)
{
    (void)state;
    gn_model *model = open_model(MODEL);
    gn_sample_params params = gn_sample_defaults();
    params.temperature = 0.0F;
    gn_grammar *grammar = regex("(t50)+");
    const char *stop = "0t5";
    gn_output_options options = {.sampler = make_sampler(&params),
                                 .grammar = grammar,
                                 .max_tokens = 9,
                                 .stop = &stop,
                                 .n_stop = 1,
                                 .n_top = 2};
    gn_output *output = NULL;
    gn_output_token t;
    float logits[N_VOCAB] = {[60] = 3.0F, [EOS] = 1.0F};
    assert_int_equal(gn_output_create(model, &options, &output), GN_OK);
    assert_int_equal(gn_output_next(output, logits, 9, &t), GN_OK);
    assert_int_equal(t.id, 50);
    assert_string_equal(t.text, "t5");
    double sum = gn_sample_logsumexp(logits, N_VOCAB);
    assert_true(t.logprob == (float)((double)logits[50] - sum));
    assert_int_equal(t.n_top, 2);
    assert_int_equal(t.top[0].id, 60);
    assert_int_equal(gn_output_next(output, logits, 8, &t), GN_OK);
    if (!t.ended) {
        assert_int_equal(gn_output_next(output, logits, 7, &t), GN_OK);
    }
    assert_true(t.ended && t.finish == GN_FINISH_STOP);
    gn_output_destroy(output);
    gn_sampler_destroy(options.sampler);
    gn_grammar_release(grammar);
    gn_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_answer_is_a_text_of_the_grammar),
        cmocka_unit_test(test_forced_tokens_come_whether_asked_for_or_not),
        cmocka_unit_test(test_what_has_no_room_or_no_spelling_is_refused),
        cmocka_unit_test(test_the_grammar_wins_over_the_sampler),
        cmocka_unit_test(test_stop_ids),
        cmocka_unit_test(test_stop_string_and_logprobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
