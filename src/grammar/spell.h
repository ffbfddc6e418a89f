/* Spelling a known text in tokens of a vocabulary: what closes an answer, and what a grammar leaves no choice
 * about. Any thread may call these. */
#ifndef GN_GRAMMAR_SPELL_H
#define GN_GRAMMAR_SPELL_H

#include "grammar/vocab_index.h"
#include "text/tokenizer.h"

/* Append the fewest tokens whose bytes are text[0 .. len) to `ids` (among as few, those with the longest tokens
 * first). GN_E_REFUSED: the vocabulary can't spell it; GN_E_LIMIT: len is above GN_SPELL_MAX. O(len × the longest token). */
#define GN_SPELL_MAX ((size_t)1 << 20)
GN_MUST_USE gn_status gn_grammar_spell(const gn_vocab_index *index, const char *text, size_t len,
                                       gn_token_list *ids);

/* Append those tokens of text[0 .. len), as the tokenizer itself would cut it, that stay whatever comes after
 * it: where a longer token could begin inside the text, the cut before it must be the same. open: something comes
 * after the text; else all of it is taken. Appends nothing where the tokenizer changes the text (a space added
 * in front). */
GN_MUST_USE gn_status gn_grammar_spell_stable(const gn_vocab_index *index,
                                              const gn_tokenizer *tokenizer, const char *text,
                                              size_t len, bool open, gn_token_list *ids);

/* Is every byte a token of its own? Then no text takes more tokens than it has bytes. */
bool gn_grammar_spells_bytes(const gn_vocab_index *index);

#endif
