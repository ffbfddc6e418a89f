/* One answer: what comes after each token's logits. Text leaves it in whole UTF-8 sequences; what may be the
 * beginning of a stop string is held back until it is known not to be. */
#include "engine/output.h"

#include "base/alloc.h"
#include "engine/constraint.h"
#include "engine/session_impl.h"

#include <assert.h>
#include <string.h>

struct gn_output {
    const gn_model *model;
    gn_sampler *sampler;
    gn_constraint *constraint; /* NULL: any text */
    int32_t max_tokens;
    int32_t n_top;
    int32_t n_tokens;
    int32_t *stop_ids; /* [n_stop_ids] */
    size_t n_stop_ids;
    gn_detok detok;
    gn_stop *stop; /* NULL: no stop strings */
    gn_buf piece;  /* what the last token completed */
    gn_buf text;   /* what may be shown of it */
    gn_logprob top[GN_OUTPUT_MAX_TOP];
};

static gn_status create_stop(gn_output *o, const gn_output_options *options)
{
    size_t lens[GN_OUTPUT_MAX_STOP];
    GN_REQUIRE(options->n_stop <= GN_OUTPUT_MAX_STOP, GN_E_ARG,
               "stop strings: found %zu, expected at most %u", options->n_stop, GN_OUTPUT_MAX_STOP);
    for (size_t i = 0; i < options->n_stop; i++) {
        lens[i] = strlen(options->stop[i]);
    }
    return gn_stop_create(options->stop, lens, options->n_stop, &o->stop);
}

/* Tokens that may come. */
static size_t room(const gn_output *o, size_t n_left)
{
    if (o->max_tokens < 0) {
        return n_left;
    }
    size_t most = o->n_tokens < o->max_tokens ? (size_t)(o->max_tokens - o->n_tokens) : 0;
    return n_left < most ? n_left : most;
}

static gn_status fill(gn_output *o, const gn_output_options *options)
{
    GN_REQUIRE(options->n_top <= GN_OUTPUT_MAX_TOP, GN_E_ARG,
               "log-probabilities: found %d, expected at most %d", options->n_top,
               GN_OUTPUT_MAX_TOP);
    gn_detok_init(&o->detok, o->model->tokenizer, options->special, false);
    if (options->n_stop_ids != 0) {
        o->stop_ids = gn_alloc_array(options->n_stop_ids, sizeof *o->stop_ids);
        if (o->stop_ids == NULL) {
            return gn_alloc_failed();
        }
        memcpy(o->stop_ids, options->stop_ids, options->n_stop_ids * sizeof *o->stop_ids);
        o->n_stop_ids = options->n_stop_ids;
    }
    if (options->grammar != NULL) {
        size_t left = room(o, options->n_left != 0 ? options->n_left : SIZE_MAX);
        GN_TRY(gn_constraint_create(o->model, options->grammar, o->stop_ids, o->n_stop_ids, left,
                                    &o->constraint));
    }
    return options->n_stop != 0 ? create_stop(o, options) : GN_OK;
}

gn_status gn_output_create(const gn_model *model, const gn_output_options *options, gn_output **out)
{
    gn_output *o = gn_calloc(1, sizeof *o);
    if (o == NULL) {
        return gn_alloc_failed();
    }
    o->model = model;
    o->sampler = options->sampler;
    o->max_tokens = options->max_tokens;
    o->n_top = options->n_top;
    gn_status status = fill(o, options);
    if (status != GN_OK) {
        gn_output_destroy(o);
        return status;
    }
    *out = o;
    return GN_OK;
}

void gn_output_destroy(gn_output *o)
{
    if (o == NULL) {
        return;
    }
    gn_constraint_destroy(o->constraint);
    gn_detok_fini(&o->detok);
    gn_stop_destroy(o->stop);
    gn_free(o->stop_ids);
    gn_buf_fini(&o->piece);
    gn_buf_fini(&o->text);
    gn_free(o);
}

void gn_output_set_sampler(gn_output *o, gn_sampler *sampler)
{
    o->sampler = sampler;
}

int32_t gn_output_n_tokens(const gn_output *o)
{
    return o->n_tokens;
}

static bool is_end(const gn_output *o, int32_t id)
{
    for (size_t i = 0; i < o->n_stop_ids; i++) {
        if (o->stop_ids[i] == id) {
            return true;
        }
    }
    return gn_model_is_end(o->model, id);
}

/* Pass `piece` through the stop strings to `text`. */
static gn_status pass_on(gn_output *o, gn_output_token *t)
{
    if (o->stop == NULL) {
        return gn_buf_append(&o->text, o->piece.data, o->piece.len);
    }
    size_t emit = 0;
    int32_t hit = -1;
    GN_TRY(gn_stop_push(o->stop, o->piece.data != NULL ? o->piece.data : "", o->piece.len, &emit,
                        &hit));
    GN_TRY(gn_buf_append(&o->text, gn_stop_text(o->stop), emit));
    if (hit >= 0) {
        t->ended = true;
        t->finish = GN_FINISH_STOP;
        t->stop_index = hit;
    }
    return GN_OK;
}

/* The end: what was held back comes out, unless a stop string ended it. */
static gn_status finish(gn_output *o, gn_output_token *t)
{
    gn_buf_clear(&o->piece);
    if (o->model->tokenizer != NULL) {
        GN_TRY(gn_detok_flush(&o->detok, &o->piece));
    }
    gn_finish why = t->finish;
    GN_TRY(pass_on(o, t));
    if (t->stop_index < 0) {
        t->finish = why;
        if (o->stop != NULL) {
            size_t emit = gn_stop_flush(o->stop);
            GN_TRY(gn_buf_append(&o->text, gn_stop_text(o->stop), emit));
        }
    }
    return GN_OK;
}

static void give(const gn_output *o, gn_output_token *t, gn_output_token *out)
{
    t->text = o->text.len != 0 ? o->text.data : "";
    t->text_len = o->text.len;
    *out = *t;
}

gn_status gn_output_stop(gn_output *o, gn_finish why, gn_output_token *out)
{
    gn_output_token t = {.id = -1, .stop_index = -1, .ended = true, .finish = why};
    if (o->constraint != NULL && why == GN_FINISH_LENGTH) {
        t.grammar_closed = gn_constraint_stop(o->constraint);
    }
    gn_buf_clear(&o->text);
    GN_TRY(finish(o, &t));
    give(o, &t, out);
    return GN_OK;
}

/* The token's id, t->id; -1: the grammar ends the answer without one. */
static gn_status pick(gn_output *o, const float *logits, size_t left, gn_output_token *t)
{
    if (o->constraint == NULL) {
        return gn_sampler_pick(o->sampler, logits, NULL, &t->id);
    }
    const int32_t *ids;
    size_t n_forced;
    GN_TRY(gn_constraint_prepare(o->constraint, left, &ids, &n_forced));
    assert(logits != NULL || gn_constraint_ended(o->constraint) || (n_forced != 0 && o->n_top < 0));
    return gn_constraint_choose(o->constraint, o->sampler, logits, left, &t->id);
}

static gn_status choose(gn_output *o, const float *logits, size_t left, gn_output_token *t)
{
    GN_TRY(pick(o, logits, left, t));
    if (t->id < 0) {
        return GN_OK;
    }
    GN_TRY(gn_sampler_accept(o->sampler, t->id, true));
    o->n_tokens++;
    int32_t n_vocab = o->model->info.n_vocab;
    if (o->n_top >= 0) {
        t->logprob = (float)((double)logits[t->id] - gn_sample_logsumexp(logits, n_vocab));
    }
    if (o->n_top > 0) {
        t->n_top = o->n_top < n_vocab ? o->n_top : n_vocab;
        t->top = o->top;
        GN_TRY(gn_sample_top_logprobs(logits, n_vocab, t->n_top, o->top));
    }
    return GN_OK;
}

/* Does the token, or what the grammar says of it, end the answer? */
static bool ends(const gn_output *o, const gn_output_token *t, bool *is_text)
{
    if (o->constraint == NULL) {
        *is_text = !is_end(o, t->id);
        return !*is_text;
    }
    bool ended = gn_constraint_ended(o->constraint);
    *is_text = t->id >= 0 && !(ended && is_end(o, t->id));
    return ended;
}

/* The text of t->id, and of what was held back where the answer ends. */
static gn_status take(gn_output *o, gn_output_token *t)
{
    bool is_text;
    bool ended = ends(o, t, &is_text);
    if (is_text) {
        gn_buf_clear(&o->piece);
        if (o->model->tokenizer != NULL) {
            GN_TRY(gn_detok_push(&o->detok, t->id, &o->piece));
        }
        GN_TRY(pass_on(o, t));
    }
    if (ended && !t->ended) {
        t->ended = true;
        t->grammar_closed = o->constraint != NULL && gn_constraint_closed(o->constraint);
        t->finish = t->grammar_closed ? GN_FINISH_LENGTH : GN_FINISH_STOP;
    }
    return t->ended && t->stop_index < 0 ? finish(o, t) : GN_OK;
}

gn_status gn_output_next(gn_output *o, const float *logits, size_t n_left, gn_output_token *out)
{
    size_t left = room(o, n_left);
    if (o->constraint != NULL) {
        GN_TRY(gn_constraint_check_room(o->constraint, left));
    }
    if (left == 0) {
        return gn_output_stop(o, GN_FINISH_LENGTH, out);
    }
    gn_output_token t = {.id = -1, .stop_index = -1};
    gn_buf_clear(&o->text);
    GN_TRY(choose(o, logits, left, &t));
    GN_TRY(take(o, &t));
    give(o, &t, out);
    return GN_OK;
}

gn_status gn_output_forced(gn_output *o, size_t n_left, int32_t *ids, size_t cap, size_t *n)
{
    const int32_t *queue = NULL;
    size_t n_queue = 0;
    size_t left = room(o, n_left);
    if (o->constraint != NULL && left != 0) {
        GN_TRY(gn_constraint_check_room(o->constraint, left));
        GN_TRY(gn_constraint_prepare(o->constraint, left, &queue, &n_queue));
    }
    *n = n_queue < cap ? n_queue : cap;
    if (*n != 0) {
        memcpy(ids, queue, *n * sizeof *ids);
    }
    return GN_OK;
}
