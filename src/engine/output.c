/* One answer: what comes after each token's logits. Text leaves it in whole UTF-8 sequences; what may be the
 * beginning of a stop string is held back until it is known not to be. */
#include "engine/output.h"

#include "base/alloc.h"
#include "engine/session_impl.h"

#include <string.h>

struct gn_output {
    const gn_model *model;
    gn_sampler *sampler;
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

static gn_status fill(gn_output *o, const gn_output_options *options)
{
    GN_REQUIRE(options->n_top <= GN_OUTPUT_MAX_TOP, GN_E_ARG,
               "log-probabilities: found %d, expected at most %d", options->n_top,
               GN_OUTPUT_MAX_TOP);
    GN_REQUIRE(options->grammar == NULL, GN_E_UNSUPPORTED, "grammars are not in generation yet");
    gn_detok_init(&o->detok, o->model->tokenizer, options->special, false);
    if (options->n_stop_ids != 0) {
        o->stop_ids = gn_alloc_array(options->n_stop_ids, sizeof *o->stop_ids);
        if (o->stop_ids == NULL) {
            return gn_alloc_failed();
        }
        memcpy(o->stop_ids, options->stop_ids, options->n_stop_ids * sizeof *o->stop_ids);
        o->n_stop_ids = options->n_stop_ids;
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
    gn_detok_fini(&o->detok);
    gn_stop_destroy(o->stop);
    gn_free(o->stop_ids);
    gn_buf_fini(&o->piece);
    gn_buf_fini(&o->text);
    gn_free(o);
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
    gn_buf_clear(&o->text);
    GN_TRY(finish(o, &t));
    give(o, &t, out);
    return GN_OK;
}

static gn_status choose(gn_output *o, const float *logits, gn_output_token *t)
{
    GN_TRY(gn_sampler_pick(o->sampler, logits, NULL, &t->id));
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

gn_status gn_output_next(gn_output *o, const float *logits, size_t n_left, gn_output_token *out)
{
    if (n_left == 0 || (o->max_tokens >= 0 && o->n_tokens >= o->max_tokens)) {
        return gn_output_stop(o, GN_FINISH_LENGTH, out);
    }
    gn_output_token t = {.id = -1, .stop_index = -1};
    gn_buf_clear(&o->text);
    GN_TRY(choose(o, logits, &t));
    if (is_end(o, t.id)) {
        t.ended = true;
        t.finish = GN_FINISH_STOP;
    } else {
        gn_buf_clear(&o->piece);
        if (o->model->tokenizer != NULL) {
            GN_TRY(gn_detok_push(&o->detok, t.id, &o->piece));
        }
        GN_TRY(pass_on(o, &t));
    }
    if (t.ended && t.stop_index < 0) {
        GN_TRY(finish(o, &t));
    }
    give(o, &t, out);
    return GN_OK;
}
