/* Unigram model (Kudo 2018): of all ways to cut a word into pieces, the one with the highest sum
 * of scores, found by dynamic programming over a trie. Linear in the word for pieces of bounded
 * length. */
#ifndef GN_TEXT_UNIGRAM_H
#define GN_TEXT_UNIGRAM_H

#include "text/token_list.h"
#include "text/trie.h"
#include "text/vocab.h"

typedef struct gn_unigram {
    const gn_vocab *vocab; /* borrowed; has scores */
    gn_trie trie;
    double unk_score;
    int32_t unk; /* -1: a code point without a piece is left out */
    bool byte_fallback;
    bool fuse_unk;
    int32_t byte_id[256]; /* <0xNN>, -1 where absent */
} gn_unigram;

typedef struct gn_unigram_node { /* the best way to reach a byte of the word */
    double score;
    uint32_t start; /* of its last piece */
    int32_t id;
} gn_unigram_node;

typedef struct gn_unigram_work { /* a zeroed one is valid */
    gn_unigram_node *nodes;
    size_t cap;
} gn_unigram_work;

/* Build from the pieces of the vocabulary; unk, byte_fallback and fuse_unk are set before. */
GN_MUST_USE gn_status gn_unigram_build(gn_unigram *unigram);
void gn_unigram_fini(gn_unigram *unigram);

GN_MUST_USE gn_status gn_unigram_encode(const gn_unigram *unigram, gn_unigram_work *work,
                                        const char *word, size_t len, gn_token_list *out);
void gn_unigram_work_fini(gn_unigram_work *work);

#endif
