/* A model's vocabulary as grammars need it, built when first asked for: most models never meet a grammar. */
#ifndef GN_ENGINE_VOCAB_H
#define GN_ENGINE_VOCAB_H

#include "grammar/vocab_index.h"
#include "text/tokenizer.h"

typedef struct gn_engine_vocab gn_engine_vocab;

/* tokenizer is borrowed; n_rows: of the logits. */
GN_MUST_USE gn_status gn_engine_vocab_create(const gn_tokenizer *tokenizer, size_t n_rows,
                                             gn_engine_vocab **out);
void gn_engine_vocab_destroy(gn_engine_vocab *vocab);

/* The index, borrowed until destroy(). Any thread; the first call builds it while others wait. GN_E_NOMEM (a
 * later call tries again). *bytewise: see gn_grammar_spells_bytes(). */
GN_MUST_USE gn_status gn_engine_vocab_index(gn_engine_vocab *vocab, gn_vocab_index **index,
                                            bool *bytewise);

#endif
