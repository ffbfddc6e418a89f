#include "engine/constraint.h"

#include "base/alloc.h"
#include "engine/vocab.h"
#include "grammar/matcher.h"
#include "grammar/spell.h"

#include <string.h>

#define MAX_FORCED 512 /* bytes looked ahead at a time */

struct gn_constraint {
    const gn_tokenizer *tokenizer; /* borrowed, as the index is */
    gn_vocab_index *index;
    bool bytewise;
    gn_matcher *matcher;
    const int32_t *stop_ids; /* [n_stop_ids], borrowed */
    size_t n_stop_ids;
    uint32_t *mask;
    gn_token_list queue; /* from `at` on: what comes next */
    size_t at;
    gn_token_list spelled; /* scratch, as is */
    gn_buf text;
    bool room_checked;
    bool closing;
    bool ended;
};

/* ---- The shortest completion ------------------------------------------------------------------------- */

static gn_status spell_shortest(gn_constraint *c, gn_token_list *ids)
{
    ids->n = 0;
    gn_buf_clear(&c->text);
    GN_TRY(gn_matcher_shortest(c->matcher, &c->text));
    return c->text.len != 0 ? gn_grammar_spell(c->index, c->text.data, c->text.len, ids) : GN_OK;
}

/* Tokens that complete what came so far: at most *n, exactly so where it is above `left`. */
static gn_status count_shortest(gn_constraint *c, size_t left, size_t *n)
{
    *n = 0;
    if (gn_matcher_may_end(c->matcher)) {
        return GN_OK;
    }
    uint64_t bytes = c->bytewise ? gn_matcher_shortest_len(c->matcher) : UINT64_MAX;
    if (bytes <= left) {
        *n = (size_t)bytes;
        return GN_OK;
    }
    GN_TRY(spell_shortest(c, &c->spelled));
    *n = c->spelled.n;
    return GN_OK;
}

/* Can what came so far be completed in `left` tokens? */
static gn_status fits(gn_constraint *c, size_t left, bool *yes)
{
    size_t n = 0;
    gn_status status = count_shortest(c, left, &n);
    *yes = status == GN_OK && n <= left;
    return status == GN_E_REFUSED ? GN_OK : status;
}

/* End with the shortest completion, which fits. */
static gn_status close_text(gn_constraint *c)
{
    c->at = 0;
    GN_TRY(spell_shortest(c, &c->queue));
    c->closing = true;
    c->ended = c->queue.n == 0;
    return GN_OK;
}

/* ---- One answer -------------------------------------------------------------------------------------- */

gn_status gn_constraint_check_room(gn_constraint *c, size_t left)
{
    if (c->room_checked) {
        return GN_OK;
    }
    size_t needed = 0;
    GN_TRY(count_shortest(c, left, &needed));
    GN_REQUIRE(needed <= left, GN_E_LIMIT,
               "grammar: its shortest text needs %zu tokens, the answer may have %zu", needed,
               left);
    c->room_checked = true;
    return GN_OK;
}

static gn_status fill(gn_constraint *c, const gn_model *model, gn_grammar *grammar, size_t left)
{
    GN_REQUIRE(model->vocab != NULL, GN_E_UNSUPPORTED,
               "%s: the model has no tokenizer, a grammar needs one",
               gn_source_path(model->source));
    GN_TRY(gn_engine_vocab_index(model->vocab, &c->index, &c->bytewise));
    GN_TRY(gn_matcher_create(grammar, c->index, &c->matcher));
    c->mask = gn_alloc_array(gn_matcher_mask_words(c->matcher), sizeof *c->mask);
    if (c->mask == NULL) {
        return gn_alloc_failed();
    }
    c->tokenizer = model->tokenizer;
    c->ended = gn_matcher_must_end(c->matcher);
    return left != SIZE_MAX ? gn_constraint_check_room(c, left) : GN_OK;
}

gn_status gn_constraint_create(const gn_model *model, gn_grammar *grammar, const int32_t *stop_ids,
                               size_t n_stop_ids, size_t left, gn_constraint **out)
{
    gn_constraint *c = gn_calloc(1, sizeof *c);
    if (c == NULL) {
        return gn_alloc_failed();
    }
    c->stop_ids = stop_ids;
    c->n_stop_ids = n_stop_ids;
    gn_status status = fill(c, model, grammar, left);
    if (status != GN_OK) {
        gn_constraint_destroy(c);
        return status;
    }
    *out = c;
    return GN_OK;
}

void gn_constraint_destroy(gn_constraint *c)
{
    if (c != NULL) {
        gn_matcher_destroy(c->matcher);
        gn_free(c->mask);
        gn_token_list_fini(&c->queue);
        gn_token_list_fini(&c->spelled);
        gn_buf_fini(&c->text);
        gn_free(c);
    }
}

bool gn_constraint_ended(const gn_constraint *c)
{
    return c->ended;
}

bool gn_constraint_closed(const gn_constraint *c)
{
    return c->ended && c->closing;
}

bool gn_constraint_stop(gn_constraint *c)
{
    c->closing = gn_matcher_may_end(c->matcher);
    c->ended = true;
    return c->closing;
}

/* ---- What is known beforehand ------------------------------------------------------------------------ */

/* Tokens that the grammar leaves no choice about, into the empty queue. */
static gn_status find_forced(gn_constraint *c)
{
    gn_buf_clear(&c->text);
    GN_TRY(gn_matcher_forced(c->matcher, MAX_FORCED, &c->text));
    if (c->text.len == 0) {
        return GN_OK;
    }
    GN_TRY(gn_matcher_accept_bytes(c->matcher, c->text.data, c->text.len, NULL));
    bool open = !gn_matcher_must_end(c->matcher);
    GN_TRY(gn_matcher_rollback(c->matcher, 1));
    c->queue.n = 0;
    c->at = 0;
    return gn_grammar_spell_stable(c->index, c->tokenizer, c->text.data, c->text.len, open,
                                   &c->queue);
}

/* What is forced must leave room for the rest: the tokenizer's own cut may take more tokens than the shortest
 * completion has. */
static gn_status check_forced(gn_constraint *c, size_t left)
{
    size_t n = c->queue.n;
    for (size_t i = 0; i < n; i++) {
        GN_TRY(gn_matcher_accept_token(c->matcher, c->queue.ids[i]));
    }
    bool yes = false;
    if (n <= left) {
        GN_TRY(fits(c, left - n, &yes));
    }
    GN_TRY(gn_matcher_rollback(c->matcher, n));
    return yes ? GN_OK : close_text(c);
}

gn_status gn_constraint_prepare(gn_constraint *c, size_t left, const int32_t **ids, size_t *n)
{
    if (c->at == c->queue.n && !c->ended && !c->closing) {
        GN_TRY(find_forced(c));
        if (c->queue.n > c->at) {
            GN_TRY(check_forced(c, left));
        }
    }
    *n = c->queue.n - c->at;
    *ids = c->queue.ids + c->at;
    return GN_OK;
}

/* ---- A choice ---------------------------------------------------------------------------------------- */

static bool allowed(const gn_constraint *c, int32_t id)
{
    return (c->mask[id / 32] >> (id % 32) & 1u) != 0;
}

static bool is_stop(const gn_constraint *c, int32_t id)
{
    for (size_t i = 0; i < c->n_stop_ids; i++) {
        if (c->stop_ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* The tokens allowed; further end tokens where the text may end. */
static gn_status make_mask(gn_constraint *c)
{
    GN_TRY(gn_matcher_mask(c->matcher, c->mask));
    if (c->n_stop_ids != 0 && gn_matcher_may_end(c->matcher)) {
        for (size_t i = 0; i < c->n_stop_ids; i++) {
            int32_t id = c->stop_ids[i];
            if (id >= 0 && (size_t)id < gn_grammar_vocab_size(c->index)) {
                c->mask[id / 32] |= 1u << (id % 32);
            }
        }
    }
    return GN_OK;
}

/* The sampler bans all that the grammar allows: the grammar wins. */
static gn_status pick_best(const gn_constraint *c, const float *logits, int32_t *id)
{
    int32_t best = -1;
    size_t n = gn_grammar_vocab_size(c->index);
    for (size_t i = 0; i < n; i++) {
        if (allowed(c, (int32_t)i) && (best < 0 || logits[i] > logits[best])) {
            best = (int32_t)i;
        }
    }
    GN_REQUIRE(best >= 0, GN_E_REFUSED, "grammar: the vocabulary has no token that may come here");
    *id = best;
    return GN_OK;
}

/* An end token, or one of the caller's where the text may end. */
static bool ends(gn_constraint *c, int32_t id)
{
    return gn_grammar_vocab_is_end(c->index, id) ||
           (is_stop(c, id) && gn_matcher_may_end(c->matcher));
}

static gn_status pick(gn_constraint *c, gn_sampler *sampler, const float *logits, size_t left,
                      int32_t *id)
{
    GN_TRY(make_mask(c));
    gn_status status = gn_sampler_pick(sampler, logits, c->mask, id);
    if (status == GN_E_REFUSED) {
        status = pick_best(c, logits, id);
    }
    GN_TRY(status);
    if (ends(c, *id)) {
        c->ended = true;
        return GN_OK;
    }
    GN_TRY(gn_matcher_accept_token(c->matcher, *id));
    bool yes = false;
    GN_TRY(fits(c, left - 1, &yes));
    if (yes) {
        c->ended = gn_matcher_must_end(c->matcher);
        return GN_OK;
    }
    *id = -1;
    GN_TRY(gn_matcher_rollback(c->matcher, 1));
    return close_text(c);
}

gn_status gn_constraint_choose(gn_constraint *c, gn_sampler *sampler, const float *logits,
                               size_t left, int32_t *id)
{
    *id = -1;
    if (c->ended) {
        return GN_OK;
    }
    if (c->at == c->queue.n) {
        GN_TRY(pick(c, sampler, logits, left, id));
        if (*id >= 0 || c->at == c->queue.n) {
            return GN_OK;
        }
    }
    *id = c->queue.ids[c->at];
    GN_TRY(gn_matcher_accept_token(c->matcher, *id));
    c->at++;
    bool last = c->at == c->queue.n;
    c->ended = last && (c->closing || gn_matcher_must_end(c->matcher));
    return GN_OK;
}
