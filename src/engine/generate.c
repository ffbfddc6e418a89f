/* The generation loop of one session: logits → output → the caller. */
#include "engine/output.h"
#include "engine/session_impl.h"

typedef struct generation {
    gn_session *session;
    gn_output *output;
    const gn_generate_options *options;
    gn_generate_result result;
    bool ended;
} generation;

static void end(generation *g, gn_finish why, int32_t stop_index)
{
    g->ended = true;
    g->result.finish = why;
    g->result.stop_index = stop_index;
}

/* What a token means for the caller: the token first, then its text. */
static void tell(generation *g, const gn_output_token *t)
{
    const gn_generate_options *options = g->options;
    if (t->ended) {
        end(g, t->finish, t->stop_index);
    }
    if (t->id >= 0 && options->on_token != NULL &&
        !options->on_token(options->ctx, t->id, t->logprob)) {
        end(g, GN_FINISH_CANCELLED, -1);
        return;
    }
    if (t->text_len != 0 && options->on_text != NULL &&
        !options->on_text(options->ctx, t->text, t->text_len) && !g->ended) {
        end(g, GN_FINISH_CANCELLED, -1);
    }
}

static gn_status step(generation *g)
{
    size_t n_left = gn_session_n_ctx(g->session) - gn_session_length(g->session);
    bool wants_token =
        n_left != 0 && (g->options->max_tokens < 0 || g->result.n_tokens < g->options->max_tokens);
    const float *logits = NULL;
    if (wants_token) {
        GN_TRY(gn_session_last(g->session, &logits));
    }
    gn_output_token token;
    GN_TRY(gn_output_next(g->output, logits, n_left, &token));
    if (token.id >= 0) {
        gn_session_push(g->session, token.id);
        g->result.n_tokens++;
    }
    tell(g, &token);
    return GN_OK;
}

gn_status gn_generate(gn_session *session, gn_sampler *sampler, const gn_generate_options *options,
                      gn_generate_result *result)
{
    static const gn_generate_options defaults = {.max_tokens = -1};
    generation g = {.session = session,
                    .options = options != NULL ? options : &defaults,
                    .result = {.stop_index = -1}};
    gn_output_options wanted = {.sampler = sampler,
                                .max_tokens = g.options->max_tokens,
                                .stop = g.options->stop,
                                .n_stop = g.options->n_stop,
                                .stop_ids = g.options->stop_ids,
                                .n_stop_ids = g.options->n_stop_ids,
                                .n_top = g.options->on_token != NULL ? 0 : -1,
                                .special = g.options->special};
    GN_TRY(gn_output_create(gn_session_model(session), &wanted, &g.output));
    gn_status status = GN_OK;
    while (status == GN_OK && !g.ended) {
        status = step(&g);
    }
    gn_output_destroy(g.output);
    if (status == GN_OK && result != NULL) {
        *result = g.result;
    }
    return status;
}
