/* The generation loop of one session: logits → output → the caller. */
#include "engine/output.h"

#include "base/alloc.h"
#include "engine/session_impl.h"

#define MAX_FORCED                                                                                 \
    ((size_t)15) /* tokens of one pass: with the one before them, as many rows as decode has */

typedef struct generation {
    gn_session *session;
    gn_output *output;
    const gn_generate_options *options;
    gn_generate_result result;
    float *rows; /* [MAX_FORCED + 1][n_vocab] logits of forced tokens; NULL: not needed yet */
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
        g->result.grammar_closed = t->grammar_closed;
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

/* What the session and the answer still have room for. */
static size_t room(const generation *g)
{
    return gn_session_n_ctx(g->session) - gn_session_length(g->session);
}

static gn_status step_one(generation *g)
{
    size_t n_left = room(g);
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

/* Tokens that are known before their logits are: one pass for all of them, now where their log-probabilities
 * are wanted, else with the next token that is not known. */
static gn_status step_forced(generation *g, const int32_t *ids, size_t n)
{
    size_t n_left = room(g);
    size_t before = gn_session_length(g->session);
    size_t n_vocab = (size_t)gn_model_get_info(gn_session_model(g->session)).n_vocab;
    const float *rows = NULL;
    if (g->options->on_token != NULL) {
        if (g->rows == NULL) {
            g->rows = gn_alloc_array((MAX_FORCED + 1) * n_vocab, sizeof *g->rows);
            if (g->rows == NULL) {
                return gn_alloc_failed();
            }
        }
        GN_TRY(gn_session_append_eval(g->session, ids, n, g->rows));
        rows = g->rows;
    } else {
        GN_TRY(gn_session_append(g->session, ids, n));
    }
    size_t i = 0;
    gn_status status = GN_OK;
    while (i < n && !g->ended && status == GN_OK) {
        gn_output_token token;
        const float *row = rows != NULL ? rows + i * n_vocab : NULL;
        status = gn_output_next(g->output, row, n_left - i, &token);
        if (status == GN_OK) {
            g->result.n_tokens++;
            i++;
            tell(g, &token);
        }
    }
    if (i < n) { /* the caller, a stop string or a failure ended it on the way */
        GN_TRY(gn_session_truncate(g->session, before + i));
    }
    return status;
}

static gn_status step(generation *g)
{
    int32_t ids[MAX_FORCED];
    size_t n = 0;
    if (g->options->grammar != NULL) {
        GN_TRY(gn_output_forced(g->output, room(g), ids, MAX_FORCED, &n));
    }
    return n != 0 ? step_forced(g, ids, n) : step_one(g);
}

gn_status gn_generate(gn_session *session, gn_sampler *sampler, const gn_generate_options *options,
                      gn_generate_result *result)
{
    static const gn_generate_options defaults = {.max_tokens = -1};
    generation g = {.session = session,
                    .options = options != NULL ? options : &defaults,
                    .result = {.stop_index = -1}};
    gn_output_options wanted = {.sampler = sampler,
                                .grammar = g.options->grammar,
                                .max_tokens = g.options->max_tokens,
                                .n_left = room(&g),
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
    gn_free(g.rows);
    if (status == GN_OK && result != NULL) {
        *result = g.result;
    }
    return status;
}
