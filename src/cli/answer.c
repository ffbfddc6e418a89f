/* Answers. The prompt is evaluated in pieces, so that Ctrl-C works and progress shows during a long one;
 * the session keeps what it has of it, so a turn of a chat evaluates only what is new. */
#include "cli/answer.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "cli/interrupt.h"
#include "cli/out.h"
#include "os/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define PROMPT_PIECE ((size_t)512) /* tokens between two looks at Ctrl-C */

/* ---- what the sampler needs to know of the vocabulary ---- */

static gn_status read_bias(gn_cli_asker *asker)
{
    const gn_cli_list *list = asker->options.logit_bias;
    asker->bias = gn_alloc_array(list->n, sizeof *asker->bias);
    if (asker->bias == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < list->n; i++) {
        char *colon;
        char *end = NULL;
        errno = 0;
        long id = strtol(list->v[i], &colon, 10);
        float bias = *colon == ':' ? strtof(colon + 1, &end) : 0.0F;
        GN_REQUIRE(colon != list->v[i] && end != NULL && end != colon + 1 && *end == '\0' &&
                       id >= 0 && id < asker->info.n_vocab && bias < INFINITY,
                   GN_E_ARG,
                   "--logit-bias: found \"%s\", expected ID:BIAS with an id below %d and a number "
                   "or -inf",
                   list->v[i], asker->info.n_vocab);
        asker->bias[i] = (gn_logit_bias){.id = (int32_t)id, .bias = bias};
    }
    return GN_OK;
}

static gn_status find_end_ids(gn_cli_asker *asker)
{
    size_t n = 0;
    for (int32_t id = 0; id < asker->info.n_vocab; id++) {
        n += gn_model_is_end(asker->model, id);
    }
    asker->end_ids = gn_alloc_array(n, sizeof *asker->end_ids);
    if (asker->end_ids == NULL) {
        return gn_alloc_failed();
    }
    for (int32_t id = 0; id < asker->info.n_vocab; id++) {
        if (gn_model_is_end(asker->model, id)) {
            asker->end_ids[asker->n_end_ids++] = id;
        }
    }
    return GN_OK;
}

/* A breaker given as a text is the token that the text ends with after a letter, so that it is the one
 * which comes in running text (text-generation-webui takes it the same way). */
static gn_status find_breakers(gn_cli_asker *asker)
{
    static const char *const usual[] = {"\n", ":", "\"", "*"};
    const gn_cli_list *given = asker->options.dry_breakers;
    size_t n = given->n != 0 ? given->n : GN_COUNTOF(usual);
    asker->breakers = gn_alloc_array(n, sizeof *asker->breakers);
    if (asker->breakers == NULL) {
        return gn_alloc_failed();
    }
    gn_buf text = {0};
    gn_status status = GN_OK;
    for (size_t i = 0; i < n && status == GN_OK; i++) {
        gn_buf_clear(&text);
        int32_t *ids = NULL;
        size_t n_ids = 0;
        status = gn_buf_printf(&text, "a%s", given->n != 0 ? given->v[i] : usual[i]);
        if (status == GN_OK) {
            status = gn_model_tokenize(asker->model, text.data, text.len, 0, &ids, &n_ids);
        }
        if (status == GN_OK && n_ids != 0) {
            asker->breakers[asker->n_breakers++] = ids[n_ids - 1];
        }
        gn_release(ids);
    }
    gn_buf_fini(&text);
    return status;
}

gn_status gn_cli_asker_init(gn_cli_asker *asker, gn_model *model,
                            const gn_cli_asker_options *options)
{
    *asker = (gn_cli_asker){.options = *options, .model = model, .info = gn_model_get_info(model)};
    asker->echo_is_terminal = options->echo != NULL && isatty(fileno(options->echo)) == 1;
    asker->n_ctx = options->n_ctx != 0 ? (size_t)options->n_ctx : (size_t)asker->info.n_ctx_train;
    gn_session_options session = {.n_ctx = (int32_t)options->n_ctx};
    GN_TRY(gn_session_create(model, &session, &asker->session));
    GN_TRY(read_bias(asker));
    GN_TRY(find_end_ids(asker));
    return find_breakers(asker);
}

void gn_cli_asker_fini(gn_cli_asker *asker)
{
    gn_session_destroy(asker->session);
    gn_free(asker->breakers);
    gn_free(asker->end_ids);
    gn_free(asker->bias);
    *asker = (gn_cli_asker){0};
}

/* A given seed gives each answer of a chat its own, so that /regen is a new try and the whole chat repeats. */
static uint64_t choose_seed(gn_cli_asker *asker, const gn_cli_settings *settings)
{
    uint64_t n = asker->n_answers++;
    if (settings->seed >= 0) {
        return (uint64_t)settings->seed + n;
    }
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        seed = gn_os_now_ns();
    }
    return seed >> 11; /* 53 bits: one that --seed can give again */
}

static gn_status make_sampler(gn_cli_asker *asker, const gn_cli_settings *settings,
                              const int32_t *ids, size_t n, uint64_t seed, gn_sampler **out)
{
    gn_sample_params params = gn_cli_settings_params(settings);
    params.logit_bias = asker->bias;
    params.n_logit_bias = asker->options.logit_bias->n;
    params.end_ids = asker->end_ids;
    params.n_end_ids = asker->n_end_ids;
    params.dry_breakers = asker->breakers;
    params.n_dry_breakers = asker->n_breakers;
    params.seed = seed;
    gn_sampler *sampler = NULL;
    GN_TRY(gn_sampler_create(&params, asker->info.n_vocab, &sampler));
    gn_status status = GN_OK;
    for (size_t i = 0; i < n && status == GN_OK; i++) {
        status = gn_sampler_accept(sampler, ids[i], false);
    }
    if (status != GN_OK) {
        gn_sampler_destroy(sampler);
        return status;
    }
    *out = sampler;
    return GN_OK;
}

/* ---- evaluating the prompt ---- */

/* *finish is set to GN_FINISH_CANCELLED by Ctrl-C. */
static gn_status evaluate(gn_cli_asker *asker, const int32_t *ids, size_t n, gn_cli_answer *answer)
{
    GN_REQUIRE(n != 0, GN_E_ARG, "the prompt is empty");
    GN_REQUIRE(n < asker->n_ctx, GN_E_LIMIT,
               "the prompt has %zu tokens and needs room for an answer, the context holds %zu", n,
               asker->n_ctx);
    size_t to = 0; /* the prefix that the session has already */
    while (to < n && to < gn_session_length(asker->session) &&
           gn_session_tokens(asker->session)[to] == ids[to]) {
        to++;
    }
    gn_cli_progress progress;
    gn_cli_progress_start(&progress, "prompt", "tok", n, to);
    gn_status status = GN_OK;
    for (bool first = true; status == GN_OK && (first || to < n); first = false) {
        size_t reused = 0;
        to = n - to > PROMPT_PIECE ? to + PROMPT_PIECE : n;
        status = gn_session_set(asker->session, ids, to, &reused);
        answer->n_reused = first ? reused : answer->n_reused;
        if (to < n) { /* nothing to see for a prompt of one piece */
            gn_cli_progress_at(&progress, to);
        }
        if (gn_cli_interrupted()) {
            answer->finish = GN_FINISH_CANCELLED;
            break;
        }
    }
    gn_cli_progress_end(&progress);
    return status;
}

/* ---- generating ---- */

typedef struct sink {
    gn_cli_asker *asker;
    gn_cli_answer *answer;
    gn_status status; /* why a callback asked to end */
} sink;

/* A terminal gets control characters as ^X and U+0080 … U+009F not at all: a model's words must not move
 * the cursor, set the title or clear the screen. Newline and tab pass. */
static void put_text(const gn_cli_asker *asker, const char *text, size_t len)
{
    FILE *to = asker->options.echo;
    if (to == NULL) {
        return;
    }
    if (!asker->echo_is_terminal) {
        (void)fwrite(text, 1, len, to);
        (void)fflush(to);
        return;
    }
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0xfffd;
        size_t n = gn_utf8_decode(text + i, len - i, &cp);
        n = n == 0 ? 1 : n;
        if ((cp < 0x20 && cp != '\n' && cp != '\t') || cp == 0x7f) {
            (void)fprintf(to, "^%c", (char)(cp ^ 0x40));
        } else if (cp < 0x80 || cp > 0x9f) {
            (void)fwrite(text + i, 1, n, to);
        }
        i += n;
    }
    (void)fflush(to);
}

static bool on_text(void *ctx, const char *text, size_t len)
{
    sink *s = ctx;
    s->status = gn_buf_append(&s->answer->text, text, len);
    put_text(s->asker, text, len);
    return s->status == GN_OK;
}

static gn_status grow(gn_cli_answer *answer)
{
    if (answer->n < answer->cap) {
        return GN_OK;
    }
    size_t cap = answer->cap == 0 ? 256 : 2 * answer->cap;
    int32_t *ids = gn_realloc_array(answer->ids, cap, sizeof *ids);
    if (ids == NULL) {
        return gn_alloc_failed();
    }
    answer->ids = ids;
    float *logprobs = gn_realloc_array(answer->logprobs, cap, sizeof *logprobs);
    if (logprobs == NULL) {
        return gn_alloc_failed();
    }
    answer->logprobs = logprobs;
    answer->cap = cap;
    return GN_OK;
}

static bool on_token(void *ctx, int32_t id, float logprob)
{
    sink *s = ctx;
    s->status = grow(s->answer);
    if (s->status != GN_OK) {
        return false;
    }
    s->answer->ids[s->answer->n] = id;
    s->answer->logprobs[s->answer->n++] = logprob;
    FILE *echo = s->asker->options.echo;
    return !gn_cli_interrupted() && (echo == NULL || ferror(echo) == 0);
}

static gn_status generate(gn_cli_asker *asker, const gn_cli_settings *settings, gn_sampler *sampler,
                          gn_cli_answer *answer)
{
    sink s = {.asker = asker, .answer = answer};
    gn_generate_options options = {
        .max_tokens = (int32_t)settings->max_tokens,
        .stop = asker->options.stop->v,
        .n_stop = asker->options.stop->n,
        .on_text = on_text,
        .on_token = on_token,
        .ctx = &s,
        .grammar = asker->options.grammar,
    };
    gn_generate_result result = {.stop_index = -1};
    GN_TRY(gn_generate(asker->session, sampler, &options, &result));
    GN_TRY(s.status);
    answer->finish = result.finish;
    answer->stop_index = result.stop_index;
    answer->grammar_closed = result.grammar_closed;
    return GN_OK;
}

static gn_status ask_ids(gn_cli_asker *asker, const gn_cli_settings *settings, const int32_t *ids,
                         size_t n, gn_cli_answer *answer)
{
    answer->n_prompt = n;
    answer->seed = choose_seed(asker, settings);
    uint64_t start = gn_os_now_ns();
    GN_TRY(evaluate(asker, ids, n, answer));
    uint64_t middle = gn_os_now_ns();
    answer->prompt_ns = middle - start;
    if (answer->finish == GN_FINISH_CANCELLED) {
        return GN_OK;
    }
    gn_sampler *sampler = NULL;
    GN_TRY(make_sampler(asker, settings, ids, n, answer->seed, &sampler));
    gn_status status = generate(asker, settings, sampler, answer);
    answer->generate_ns = gn_os_now_ns() - middle;
    gn_sampler_destroy(sampler);
    return status;
}

gn_status gn_cli_ask(gn_cli_asker *asker, const gn_cli_settings *settings, const char *prompt,
                     size_t len, unsigned flags, gn_cli_answer *answer)
{
    int32_t *ids = NULL;
    size_t n = 0;
    gn_cli_answer_fini(answer);
    answer->stop_index = -1;
    (void)gn_cli_interrupted(); /* one that came before the question is not meant for it */
    GN_TRY(gn_model_tokenize(asker->model, prompt, len, GN_TOKENIZE_SPECIAL | flags, &ids, &n));
    gn_status status = ask_ids(asker, settings, ids, n, answer);
    gn_release(ids);
    return status;
}

gn_status gn_cli_ask_chat(gn_cli_asker *asker, const gn_cli_settings *settings,
                          const json_t *messages, gn_cli_answer *answer)
{
    json_t *context = json_pack("{s:O, s:b}", "messages", messages, "add_generation_prompt", 1);
    char *json = context != NULL ? json_dumps(context, JSON_COMPACT) : NULL;
    json_decref(context);
    if (json == NULL) {
        return gn_alloc_failed();
    }
    char *prompt = NULL;
    size_t len = 0;
    gn_status status = gn_model_render_chat(asker->model, json, strlen(json), &prompt, &len);
    free(json);
    if (status == GN_OK) {
        status = gn_cli_ask(asker, settings, prompt, len, 0, answer);
    }
    gn_release(prompt);
    return status;
}

void gn_cli_answer_fini(gn_cli_answer *answer)
{
    gn_buf_fini(&answer->text);
    gn_free(answer->ids);
    gn_free(answer->logprobs);
    *answer = (gn_cli_answer){0};
}

const char *gn_cli_finish_name(gn_finish finish)
{
    switch (finish) {
    case GN_FINISH_STOP: return "stop";
    case GN_FINISH_LENGTH: return "length";
    case GN_FINISH_CANCELLED: return "cancelled";
    case GN_FINISH_DEADLINE: return "deadline";
    }
    return "?";
}

static double rate(size_t n, uint64_t ns)
{
    return ns != 0 ? (double)n * 1e9 / (double)ns : 0.0;
}

void gn_cli_answer_stats(const gn_cli_answer *a)
{
    size_t evaluated = a->n_prompt - a->n_reused;
    (void)fprintf(
        stderr,
        "prompt %zu tokens (%zu known) in %.2f s, %.1f tok/s; answer %zu tokens in %.2f s, "
        "%.1f tok/s; %s; seed %llu\n",
        a->n_prompt, a->n_reused, (double)a->prompt_ns * 1e-9, rate(evaluated, a->prompt_ns), a->n,
        (double)a->generate_ns * 1e-9, rate(a->n, a->generate_ns), gn_cli_finish_name(a->finish),
        (unsigned long long)a->seed);
}
