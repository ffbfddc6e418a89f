/* WordPiece (Schuster, Nakajima 2012) as BERT uses it: the longest piece of the vocabulary that
 * starts the word, then the longest that continues it; a word that can't be cut so is unknown as a
 * whole. */
#ifndef GN_TEXT_WORDPIECE_H
#define GN_TEXT_WORDPIECE_H

#include "text/token_list.h"
#include "text/vocab.h"

#define GN_WORDPIECE_MAX_AFFIX 16

typedef struct gn_wordpiece {
    const gn_vocab *vocab;              /* borrowed */
    char start[GN_WORDPIECE_MAX_AFFIX]; /* put before a piece that starts a word ("▁" in GGUF) */
    char continuation[GN_WORDPIECE_MAX_AFFIX]; /* before one that continues it ("##") */
    size_t max_chars;                          /* longer words are unknown */
    int32_t unk;
} gn_wordpiece;

GN_MUST_USE gn_status gn_wordpiece_encode(const gn_wordpiece *wordpiece, gn_buf *work,
                                          const char *word, size_t len, gn_token_list *out);

#endif
