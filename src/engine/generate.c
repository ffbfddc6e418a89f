/* The generation loop: next token → detokenizer → stop strings → the caller. */
#include "engine/session_impl.h"
#include "text/detok.h"

#include <string.h>

typedef struct generation {
    gn_session *session;
    const gn_model *model;
    gn_sampler *sampler;
    const gn_generate_options *options;
    gn_detok detok;
    gn_stop *stop; /* NULL: no stop strings */
    gn_buf text;   /* what the last token completed */
    gn_generate_result result;
    bool ended;
} generation;

static void end(generation *g, gn_finish why)
{
    if (!g->ended) {
        g->result.finish = why;
        g->ended = true;
    }
}

static void show(generation *g, const char *text, size_t len)
{
    if (len != 0 && g->options->on_text != NULL &&
        !g->options->on_text(g->options->ctx, text, len)) {
        end(g, GN_FINISH_CANCELLED);
    }
}

/* Pass g->text on, through the stop strings where there are any. */
static gn_status pass_on(generation *g)
{
    if (g->stop == NULL) {
        show(g, g->text.data, g->text.len);
        return GN_OK;
    }
    size_t emit = 0;
    int32_t hit = -1;
    GN_TRY(
        gn_stop_push(g->stop, g->text.data != NULL ? g->text.data : "", g->text.len, &emit, &hit));
    show(g, gn_stop_text(g->stop), emit);
    if (hit >= 0) {
        end(g, GN_FINISH_STOP);
        g->result.stop_index = hit;
    }
    return GN_OK;
}

static bool is_end(const generation *g, int32_t id)
{
    for (size_t i = 0; i < g->options->n_stop_ids; i++) {
        if (g->options->stop_ids[i] == id) {
            return true;
        }
    }
    return gn_model_is_end(g->model, id);
}

static gn_status step(generation *g)
{
    if ((g->options->max_tokens >= 0 && g->result.n_tokens >= g->options->max_tokens) ||
        gn_session_length(g->session) >= gn_session_n_ctx(g->session)) {
        end(g, GN_FINISH_LENGTH);
        return GN_OK;
    }
    int32_t id = -1;
    float logprob = 0.0f;
    bool wants = g->options->on_token != NULL;
    GN_TRY(gn_session_next(g->session, g->sampler, &id, wants ? &logprob : NULL));
    g->result.n_tokens++;
    if (wants && !g->options->on_token(g->options->ctx, id, logprob)) {
        end(g, GN_FINISH_CANCELLED);
        return GN_OK;
    }
    if (is_end(g, id)) {
        end(g, GN_FINISH_STOP);
        return GN_OK;
    }
    gn_buf_clear(&g->text);
    if (g->model->tokenizer != NULL) {
        GN_TRY(gn_detok_push(&g->detok, id, &g->text));
    }
    return pass_on(g);
}

/* The end: show what was held back, unless a stop string ended it or the caller has enough. */
static gn_status finish(generation *g)
{
    if (g->result.stop_index >= 0 || g->result.finish == GN_FINISH_CANCELLED) {
        return GN_OK;
    }
    gn_buf_clear(&g->text);
    if (g->model->tokenizer != NULL) {
        GN_TRY(gn_detok_flush(&g->detok, &g->text));
    }
    GN_TRY(pass_on(g));
    if (g->stop != NULL && g->result.stop_index < 0) {
        size_t emit = gn_stop_flush(g->stop);
        show(g, gn_stop_text(g->stop), emit);
    }
    return GN_OK;
}

static gn_status run(generation *g)
{
    if (g->options->n_stop != 0) {
        size_t lens[64];
        GN_REQUIRE(g->options->n_stop <= GN_COUNTOF(lens), GN_E_ARG,
                   "stop strings: found %zu, expected at most %zu", g->options->n_stop,
                   GN_COUNTOF(lens));
        for (size_t i = 0; i < g->options->n_stop; i++) {
            lens[i] = strlen(g->options->stop[i]);
        }
        GN_TRY(gn_stop_create(g->options->stop, lens, g->options->n_stop, &g->stop));
    }
    while (!g->ended) {
        GN_TRY(step(g));
    }
    return finish(g);
}

gn_status gn_generate(gn_session *session, gn_sampler *sampler, const gn_generate_options *options,
                      gn_generate_result *result)
{
    static const gn_generate_options defaults = {.max_tokens = -1};
    generation g = {.session = session,
                    .model = gn_session_model(session),
                    .sampler = sampler,
                    .options = options != NULL ? options : &defaults,
                    .result = {.stop_index = -1}};
    gn_detok_init(&g.detok, g.model->tokenizer, g.options->special, false);
    gn_status status = run(&g);
    gn_detok_fini(&g.detok);
    gn_stop_destroy(g.stop);
    gn_buf_fini(&g.text);
    if (status == GN_OK && result != NULL) {
        *result = g.result;
    }
    return status;
}
