/* Following a text through a grammar: which tokens may come, what must come, how to end soonest.
 *
 * A matcher belongs to one thread at a time (masks may be computed on another thread than the one that runs
 * the forward pass). Never a dead end: whatever the mask allows can be completed to a text of the grammar. */
#ifndef GN_GRAMMAR_MATCHER_H
#define GN_GRAMMAR_MATCHER_H

#include "base/buf.h"
#include "grammar/compile.h"
#include "grammar/vocab_index.h"

typedef struct gn_matcher gn_matcher;

/* Takes a reference of the grammar; index is borrowed and may be NULL (no masks, no tokens). */
GN_MUST_USE gn_status gn_matcher_create(gn_grammar *grammar, gn_vocab_index *index,
                                        gn_matcher **out);
GN_MUST_USE gn_status gn_matcher_clone(const gn_matcher *matcher, gn_matcher **out);
void gn_matcher_destroy(gn_matcher *matcher);
void gn_matcher_reset(gn_matcher *matcher); /* back to the empty text */

/* Words of a mask: bit id of mask[id / 32]. */
size_t gn_matcher_mask_words(const gn_matcher *matcher);
/* The tokens that may come. End tokens are allowed where the text may end. GN_E_LIMIT: the automaton grew
 * past its bounds; the matcher can't go on. */
GN_MUST_USE gn_status gn_matcher_mask(gn_matcher *matcher, uint32_t *mask);

/* The token came. GN_E_REFUSED: it is not allowed; the matcher is as before. An end token is allowed where
 * the text may end, and nothing after it. */
GN_MUST_USE gn_status gn_matcher_accept_token(gn_matcher *matcher, int32_t id);
/* Bytes came; GN_E_REFUSED as above. *n_ok (may be NULL): how many bytes could have been taken. */
GN_MUST_USE gn_status gn_matcher_accept_bytes(gn_matcher *matcher, const char *s, size_t len,
                                              size_t *n_ok);
/* Undo the last n calls of accept_token / accept_bytes that returned GN_OK. GN_E_ARG: fewer there were. */
GN_MUST_USE gn_status gn_matcher_rollback(gn_matcher *matcher, size_t n);

bool gn_matcher_may_end(gn_matcher *matcher); /* the text is complete as it is */
/* The text is complete, and nothing but the end may follow. */
bool gn_matcher_must_end(gn_matcher *matcher);

/* Append the bytes that must come next, whatever the model would choose: "" where there is a choice or the
 * text may end. At most `limit` bytes. */
GN_MUST_USE gn_status gn_matcher_forced(gn_matcher *matcher, size_t limit, gn_buf *out);
/* Append a shortest text that completes what came so far, in bytes. */
GN_MUST_USE gn_status gn_matcher_shortest(gn_matcher *matcher, gn_buf *out);
/* Its length in bytes. */
uint64_t gn_matcher_shortest_len(gn_matcher *matcher);

#endif
