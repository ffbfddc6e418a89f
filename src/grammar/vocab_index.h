/* The vocabulary as masks need it: a byte trie of all tokens in depth-first order, so that a subtree is a
 * run of nodes. Built once per tokenizer, then immutable but for a cache of masks of regular terminals,
 * which has its own lock: any thread may use it. */
#ifndef GN_GRAMMAR_VOCAB_INDEX_H
#define GN_GRAMMAR_VOCAB_INDEX_H

#include "base/attr.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gn_vocab_index gn_vocab_index;
typedef struct gn_tokenizer gn_tokenizer;

typedef struct gn_vocab_token {
    const char
        *s; /* bytes; borrowed. len 0: this id is never allowed inside a text (special tokens) */
    uint32_t len;
    bool is_end; /* ends a generation: allowed where the text may end */
} gn_vocab_token;

/* Index of tokens[0 .. n): masks have n bits. */
GN_MUST_USE gn_status gn_grammar_vocab_create(const gn_vocab_token *tokens, size_t n,
                                              gn_vocab_index **out);
/* Of a tokenizer: special tokens never stand inside a text, n_rows (≥ its vocabulary) bits. */
GN_MUST_USE gn_status gn_grammar_vocab_from_tokenizer(const gn_tokenizer *tokenizer, size_t n_rows,
                                                      gn_vocab_index **out);
void gn_grammar_vocab_destroy(gn_vocab_index *index); /* after all matchers */

size_t gn_grammar_vocab_size(const gn_vocab_index *index);
/* Bytes of a token; *len is 0 for those that have none. Borrowed. */
const char *gn_grammar_vocab_bytes(const gn_vocab_index *index, int32_t id, size_t *len);
bool gn_grammar_vocab_is_end(const gn_vocab_index *index, int32_t id);

#endif
