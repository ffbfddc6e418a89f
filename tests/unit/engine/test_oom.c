/* Every public call with each of its allocations failing in turn: the code is GN_E_NOMEM, nothing leaks,
 * and what the call worked on is as it was before.
 *
 * Where a call makes many allocations, later ones are sampled with growing strides; the first 200 are all
 * tried. jansson's own allocations are left alone: 2.14 reads past its buffer where growing that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "ganglion/ganglion.h"

#define N_VOCAB 96

static const char chat_template[] =
    "{% for m in messages %}<{{ m.role }}>{{ m['content'] | trim }}{{ eos_token }}{% endfor %}"
    "{% if tools %}{{ tools | tojson(indent=2) }}{% endif %}"
    "{% macro ask(x='u') %}[{{ x ~ 1 }}]{% endmacro %}{{ ask() }}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

static const char chat_context[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \" a b \"}], \"tools\": [{\"name\": \"t\"}],"
    " \"add_generation_prompt\": true}";

/* ---- failing the n-th allocation ---- */

static int fail_nth(void *ctx)
{
    long *left = ctx;
    return --*left == 0;
}

/* ---- a Hugging Face folder: the tiny llama with a byte-level vocabulary ---- */

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static FILE *create(const char *name)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    return file;
}

static void link_golden(const char *name)
{
    char target[1024];
    (void)snprintf(target, sizeof target, "%s/tiny/llama/%s", GN_TEST_GOLDEN, name);
    assert_int_equal(symlink(target, in_folder(name)), 0);
}

static void write_tokenizer(void)
{
    FILE *f = create("tokenizer.json");
    (void)fputs("{\"added_tokens\": [{\"id\": 1, \"content\": \"<s>\", \"special\": true}, "
                "{\"id\": 2, \"content\": \"</s>\", \"special\": true}], "
                "\"normalizer\": {\"type\": \"NFC\"}, "
                "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                "\"use_regex\": true}, \"decoder\": {\"type\": \"ByteLevel\"}, "
                "\"model\": {\"type\": \"BPE\", \"vocab\": {\"<unk>\": 0, \"<s>\": 1, \"</s>\": 2, "
                "\"\\u0120\": 3, \"ab\": 4, \"\\u0120ab\": 5",
                f);
    for (int i = 0; i < 90; i++) { /* the printable characters, ! to z */
        char c = (char)('!' + i);
        (void)fprintf(f, ", \"%s%c\": %d", c == '"' || c == '\\' ? "\\" : "", c, 6 + i);
    }
    (void)fputs("}, \"merges\": [\"a b\", \"\\u0120 ab\"]}}", f);
    assert_int_equal(fclose(f), 0);
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/ganglion-test-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    link_golden("config.json");
    link_golden("model.safetensors");
    write_tokenizer();
    FILE *f = create("chat_template.jinja");
    (void)fputs(chat_template, f);
    assert_int_equal(fclose(f), 0);
    f = create("tokenizer_config.json");
    (void)fputs("{\"bos_token\": \"<s>\", \"eos_token\": {\"content\": \"</s>\"}}", f);
    assert_int_equal(fclose(f), 0);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

typedef struct bench {
    gn_model *model;
    gn_session *session;
    gn_sampler *sampler;
    const char *path;
    float logits[2 * N_VOCAB];
    size_t shown; /* bytes of text */
} bench;

/* Makes the call, and gives back what it handed out. */
typedef gn_status call_fn(bench *b);
/* Fails the test where the call has left a mark. May be NULL. */
typedef void check_fn(const bench *b);

static void fail_each(bench *b, call_fn *call, check_fn *unchanged)
{
    long n = 1;
    for (;; n += n < 200 ? 1 : n / 16) {
        long before = gn_alloc_live();
        long left = n;
        gn_alloc_set_fault(fail_nth, &left);
        gn_status status = call(b);
        gn_alloc_set_fault(NULL, NULL);
        if (left > 0) {
            if (status != GN_OK) {
                fail_msg("without a fault: %s", gn_error_message());
            }
            break;
        }
        if (status != GN_E_NOMEM) {
            fail_msg("allocation %ld: %s: %s", n, gn_status_name(status), gn_error_message());
        }
        if (gn_alloc_live() != before) {
            fail_msg("allocation %ld: %ld blocks leaked", n, gn_alloc_live() - before);
        }
        if (unchanged != NULL) {
            unchanged(b);
        }
    }
    assert_true(n > 1);
}

static gn_model *open_model(const char *path)
{
    const gn_model_options options = {.threads = 1, .kv_bytes = 16 << 20};
    gn_model *model = NULL;
    if (gn_model_open(path, &options, &model) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    return model;
}

/* ---- models ---- */

static gn_status call_open(bench *b)
{
    const gn_model_options options = {.threads = 2, .kv_bytes = 16 << 20};
    gn_model *model = NULL;
    gn_status status = gn_model_open(b->path, &options, &model);
    assert_true((status == GN_OK) == (model != NULL));
    gn_model_close(model);
    return status;
}

static void test_open(void **state)
{
    (void)state;
    static const char *const paths[] = {
        GN_TEST_GOLDEN "/tiny/gguf_llama/model.gguf",
        GN_TEST_GOLDEN "/tiny/gguf_qwen3moe",
        GN_TEST_GOLDEN "/tiny/gguf_gemma3",
        GN_TEST_GOLDEN "/tiny/llama_sharded",
        GN_TEST_GOLDEN "/tiny/phi3_longrope",
        GN_TEST_GOLDEN "/tiny/mixtral",
        GN_TEST_GOLDEN "/tiny/qwen3moe_raw",
        GN_TEST_GOLDEN "/tiny/bert",
        GN_TEST_GOLDEN "/tiny/llama_yarn",
        GN_TEST_GOLDEN "/tiny/gemma3",
    };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        bench b = {.path = paths[i]};
        fail_each(&b, call_open, NULL);
    }
    bench b = {.path = folder};
    fail_each(&b, call_open, NULL);
}

/* ---- text ---- */

static gn_status call_tokenize(bench *b)
{
    static const char text[] = "<s> ab ab it's A\xcc\x8a! 12 </s>";
    int32_t *ids = NULL;
    size_t n = 0;
    gn_status status = gn_model_tokenize(b->model, text, sizeof text - 1,
                                         GN_TOKENIZE_SPECIAL | GN_TOKENIZE_BOS, &ids, &n);
    gn_release(ids);
    return status;
}

static gn_status call_tokenize_nothing(bench *b)
{
    int32_t *ids = NULL;
    size_t n = 1;
    gn_status status = gn_model_tokenize(b->model, "", 0, 0, &ids, &n);
    assert_true(status != GN_OK || (ids != NULL && n == 0));
    gn_release(ids);
    return status;
}

static gn_status call_detokenize(bench *b)
{
    static const int32_t ids[] = {1, 5, 4, 40, 41, 2};
    char *text = NULL;
    size_t len = 0;
    gn_status status = gn_model_detokenize(b->model, ids, 6, true, &text, &len);
    gn_release(text);
    return status;
}

static gn_status call_piece(bench *b)
{
    char *text = NULL;
    size_t len = 0;
    gn_status status = gn_model_piece(b->model, 4, false, &text, &len);
    gn_release(text);
    return status;
}

static gn_status call_render(bench *b)
{
    char *text = NULL;
    size_t len = 0;
    gn_status status =
        gn_model_render_chat(b->model, chat_context, sizeof chat_context - 1, &text, &len);
    gn_release(text);
    return status;
}

static void test_text(void **state)
{
    (void)state;
    const char *const paths[] = {folder, GN_TEST_GOLDEN "/tiny/gguf_llama",
                                 GN_TEST_GOLDEN "/tiny/bert"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        bench b = {.model = open_model(paths[i])};
        fail_each(&b, call_tokenize, NULL);
        fail_each(&b, call_tokenize_nothing, NULL);
        fail_each(&b, call_detokenize, NULL);
        fail_each(&b, call_piece, NULL);
        if (gn_model_get_info(b.model).has_chat_template) {
            fail_each(&b, call_render, NULL);
        } else {
            assert_int_equal(call_render(&b), GN_E_NOT_FOUND);
        }
        gn_model_close(b.model);
    }
}

static gn_status call_embed(bench *b)
{
    return gn_model_embed(b->model, "ab ab", 5, b->logits);
}

static void test_embed(void **state)
{
    (void)state;
    const char *const paths[] = {folder, GN_TEST_GOLDEN "/tiny/bert"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        /* The pool keeps the pages of the first call, which would look like a leak of a later one. */
        bench b = {.model = open_model(paths[i])};
        assert_int_equal(call_embed(&b), GN_OK);
        fail_each(&b, call_embed, NULL);
        gn_model_close(b.model);
    }
}

/* ---- sessions ---- */

static const int32_t held[] = {1, 5, 9, 11, 40, 7};
#define N_HELD (sizeof held / sizeof held[0])

/* A session of `held` on a model of its own, whose pool holds one page. */
static void open_session(bench *b)
{
    b->model = open_model(folder);
    assert_int_equal(gn_session_create(b->model, NULL, &b->session), GN_OK);
    assert_int_equal(gn_session_set(b->session, held, N_HELD, NULL), GN_OK);
}

static void close_session(bench *b)
{
    gn_sampler_destroy(b->sampler);
    gn_session_destroy(b->session);
    gn_model_close(b->model);
}

static void holds_the_same(const bench *b)
{
    assert_int_equal(gn_session_length(b->session), N_HELD);
    assert_memory_equal(gn_session_tokens(b->session), held, sizeof held);
}

static gn_status call_create(bench *b)
{
    const gn_session_options options = {.n_ctx = 100, .n_batch = 3};
    gn_session *session = NULL;
    gn_status status = gn_session_create(b->model, &options, &session);
    gn_session_destroy(session);
    return status;
}

static void long_ids(int32_t ids[200])
{
    for (int32_t i = 0; i < 200; i++) {
        ids[i] = 3 + (i * 37) % 90;
    }
}

/* 200 tokens: more pages and a longer list of ids. */
static gn_status call_eval(bench *b)
{
    int32_t ids[200];
    long_ids(ids);
    return gn_session_eval(b->session, ids, 200, b->logits, 2);
}

static gn_status call_set(bench *b)
{
    int32_t ids[200];
    long_ids(ids);
    ids[0] = held[0];
    size_t reused = 99;
    gn_status status = gn_session_set(b->session, ids, 200, &reused);
    assert_int_equal(reused, status == GN_OK ? 1 : 99);
    return status;
}

static void test_session(void **state)
{
    (void)state;
    bench b = {0};
    open_session(&b);
    float before[N_VOCAB];
    float after[N_VOCAB];
    int32_t next = 50;
    assert_int_equal(gn_session_eval(b.session, &next, 1, before, 1), GN_OK);
    assert_int_equal(gn_session_truncate(b.session, N_HELD), GN_OK);
    fail_each(&b, call_create, holds_the_same);
    close_session(&b);

    call_fn *const calls[] = {call_eval, call_set};
    for (size_t i = 0; i < 2; i++) {
        for (long n = 1;; n++) {
            open_session(&b);
            long left = n;
            gn_alloc_set_fault(fail_nth, &left);
            gn_status status = calls[i](&b);
            gn_alloc_set_fault(NULL, NULL);
            if (left > 0) {
                assert_int_equal(status, GN_OK);
                assert_true(n > 3);
                close_session(&b);
                break;
            }
            assert_int_equal(status, GN_E_NOMEM);
            holds_the_same(&b);
            assert_int_equal(gn_session_eval(b.session, &next, 1, after, 1), GN_OK);
            assert_memory_equal(after, before, sizeof after);
            close_session(&b);
        }
    }
}

/* A pool without pages is as harmless as a heap without memory. */
static void test_no_pages(void **state)
{
    (void)state;
    bench b = {0};
    gn_model_options options = {.threads = 1, .kv_bytes = 1};
    assert_int_equal(gn_model_open(folder, &options, &b.model), GN_E_ARG);
    options.kv_bytes = gn_model_get_info((b.model = open_model(folder))).kv_bytes_per_tok * 128;
    gn_model_close(b.model);
    assert_int_equal(gn_model_open(folder, &options, &b.model), GN_OK);
    assert_int_equal(gn_session_create(b.model, NULL, &b.session), GN_OK);
    assert_int_equal(gn_session_set(b.session, held, N_HELD, NULL), GN_OK);
    assert_int_equal(call_eval(&b), GN_E_NO_PAGES);
    holds_the_same(&b);
    assert_int_equal(call_set(&b), GN_E_NO_PAGES);
    holds_the_same(&b);
    close_session(&b);
}

/* ---- samplers, stop strings, generation ---- */

static gn_sample_params all_on(void)
{
    static const int32_t breakers[] = {3};
    static const gn_logit_bias bias[] = {{.id = 2, .bias = -1.0f}};
    static const int32_t ends[] = {2};
    gn_sample_params p = gn_sample_defaults();
    p.top_k = 40;
    p.top_p = 0.9f;
    p.repetition_penalty = 1.1f;
    p.penalty_last_n = -1;
    p.dry_multiplier = 0.5f;
    p.dry_last_n = -1;
    p.dry_breakers = breakers;
    p.n_dry_breakers = 1;
    p.logit_bias = bias;
    p.n_logit_bias = 1;
    p.end_ids = ends;
    p.n_end_ids = 1;
    p.min_tokens = 1;
    return p;
}

static gn_status call_sampler(bench *b)
{
    (void)b;
    gn_sample_params params = all_on();
    gn_sampler *sampler = NULL;
    gn_status status = gn_sampler_create(&params, N_VOCAB, &sampler);
    for (int32_t i = 0; status == GN_OK && i < 300; i++) {
        status = gn_sampler_accept(sampler, i % N_VOCAB, true);
    }
    int32_t id = -1;
    if (status == GN_OK) {
        float logits[N_VOCAB] = {0};
        status = gn_sampler_pick(sampler, logits, NULL, &id);
    }
    gn_sampler_destroy(sampler);
    return status;
}

static gn_status call_stop(bench *b)
{
    (void)b;
    static const char *const strings[] = {"abc", "stop"};
    static const size_t lens[] = {3, 4};
    gn_stop *stop = NULL;
    gn_status status = gn_stop_create(strings, lens, 2, &stop);
    for (int i = 0; status == GN_OK && i < 10; i++) {
        size_t emit = 0;
        int32_t hit = -1;
        status = gn_stop_push(stop, "a long text without it, sto", 27, &emit, &hit);
    }
    gn_stop_destroy(stop);
    return status;
}

static void test_sampler_and_stop(void **state)
{
    (void)state;
    bench b = {0};
    fail_each(&b, call_sampler, NULL);
    fail_each(&b, call_stop, NULL);
}

/* A first token, which nothing before it has told the sampler. */
static gn_status call_next(bench *b)
{
    int32_t id = -1;
    float logprob = 1.0f;
    gn_status status = gn_session_next(b->session, b->sampler, &id, &logprob);
    assert_true((status == GN_OK) == (id >= 0));
    return status;
}

static bool count_text(void *ctx, const char *text, size_t len)
{
    bench *b = ctx;
    assert_true(len > 0 && memchr(text, '\0', len) == NULL);
    b->shown += len;
    return true;
}

static gn_status call_generate(bench *b)
{
    static const char *const stops[] = {"never said", "x y z"};
    static const int32_t ids[] = {94};
    const gn_generate_options options = {.max_tokens = 100,
                                         .stop = stops,
                                         .n_stop = 2,
                                         .stop_ids = ids,
                                         .n_stop_ids = 1,
                                         .on_text = count_text,
                                         .ctx = b};
    return gn_generate(b->session, b->sampler, &options, NULL);
}

/* Each call on a session that begins anew; a failure in the middle of a generation keeps the tokens that
 * were chosen before it, and the next call goes on from there. */
static void test_generate(void **state)
{
    (void)state;
    call_fn *const calls[] = {call_next, call_generate};
    for (size_t i = 0; i < 2; i++) {
        for (long n = 1;; n++) {
            long at_start = gn_alloc_live();
            bench b = {0};
            open_session(&b);
            gn_sample_params params = all_on();
            assert_int_equal(gn_sampler_create(&params, N_VOCAB, &b.sampler), GN_OK);
            assert_int_equal(gn_session_truncate(b.session, N_HELD), GN_OK);
            long left = n;
            gn_alloc_set_fault(fail_nth, &left);
            gn_status status = calls[i](&b);
            gn_alloc_set_fault(NULL, NULL);
            if (left <= 0) {
                assert_int_equal(status, GN_E_NOMEM);
                assert_memory_equal(gn_session_tokens(b.session), held, sizeof held);
                if (i == 0) {
                    holds_the_same(&b);
                }
                status = calls[i](&b);
            }
            if (status != GN_OK) {
                fail_msg("allocation %ld: %s", n, gn_error_message());
            }
            close_session(&b);
            assert_int_equal(gn_alloc_live(), at_start);
            if (left > 0) {
                break;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),     cmocka_unit_test(test_text),
        cmocka_unit_test(test_embed),    cmocka_unit_test(test_session),
        cmocka_unit_test(test_no_pages), cmocka_unit_test(test_sampler_and_stop),
        cmocka_unit_test(test_generate),
    };
    return cmocka_run_group_tests_name("engine/oom", tests, make_folder, remove_folder);
}
