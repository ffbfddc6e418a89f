/* A grammar over one answer: which tokens may come, which must, and closing the text before its room ends.
 *
 * Invariant, while there is a grammar: what came so far can be completed in the tokens that are left. A choice that
 * would break it isn't taken; the shortest completion is, and the answer is closed.
 * Tokens that are known beforehand, because the grammar leaves no choice or the text is being closed, wait in a
 * queue. What the queue holds depends on the text so far and the room that is left, on nothing else.
 *
 *        prepare: nothing is forced          choose: a token that keeps the invariant
 *      ┌────────────────────────────┐      ┌──────────────────┐
 *      ▼                            │      ▼                  │
 *   [queue empty] ──prepare: forced──▶ [queued] ──take──▶ [queue empty] …
 *      │  ╲ choose, prepare: no room                take: the text must end ─▶ [ended]
 *      ▼    ╲──────────────────────▶ [closing, queued] ──take: the last──▶ [ended, closed]
 *   [ended] on an end token                                                              */
#ifndef GN_ENGINE_CONSTRAINT_H
#define GN_ENGINE_CONSTRAINT_H

#include "engine/model_impl.h"
#include "ganglion/grammar.h"
#include "ganglion/sample.h"

typedef struct gn_constraint gn_constraint;

/* left: tokens that the answer may have; SIZE_MAX: not known yet. stop_ids [n] are borrowed: they end the answer
 * where the text may end. GN_E_UNSUPPORTED: the model has no tokenizer. GN_E_LIMIT: the shortest text needs more
 * than `left` (message: how many). GN_E_REFUSED: the vocabulary can't spell the shortest text. GN_E_ARG: the
 * grammar is in use with another model. */
GN_MUST_USE gn_status gn_constraint_create(const gn_model *model, gn_grammar *grammar,
                                           const int32_t *stop_ids, size_t n_stop_ids, size_t left,
                                           gn_constraint **out);
void gn_constraint_destroy(gn_constraint *c);

/* Is there room for the shortest text? Asked before the first token where `left` was not known; GN_OK later. */
GN_MUST_USE gn_status gn_constraint_check_room(gn_constraint *c, size_t left);

/* Fill the queue where it is empty and something is known. left ≥ 1: tokens that may come, the next one included;
 * it never falls by more than one a token. *n: tokens in the queue, *ids (borrowed until the next call) they. */
GN_MUST_USE gn_status gn_constraint_prepare(gn_constraint *c, size_t left, const int32_t **ids,
                                            size_t *n);
/* The next token: the queue's first, else the sampler's choice from logits [n_vocab] among those allowed; where
 * it allows none of them, the one with the largest logit. -1: the text ends as it is, without another token.
 * After gn_constraint_prepare() with the same `left`. */
GN_MUST_USE gn_status gn_constraint_choose(gn_constraint *c, gn_sampler *sampler,
                                           const float *logits, size_t left, int32_t *id);

bool gn_constraint_ended(const gn_constraint *c);  /* no token may follow */
bool gn_constraint_closed(const gn_constraint *c); /* the end is the shortest completion */
/* The room ended: was the text complete? Then it counts as closed. */
bool gn_constraint_stop(gn_constraint *c);

#endif
