/* Byte-pair encoding of one word (Sennrich, Haddow, Birch 2016): join the neighbours of the lowest
 * rank, the leftmost among equals, until no pair can be joined. Ranks come from a list of merges
 * (GPT-2, Hugging Face) or from the scores of the joined pieces (SentencePiece). O(n log n) in the
 * word. */
#ifndef GN_TEXT_BPE_H
#define GN_TEXT_BPE_H

#include "text/token_list.h"
#include "text/vocab.h"

typedef enum gn_bpe_symbols {
    GN_BPE_BYTES, /* a word is bytes; each byte's letter (GPT-2's table) is a token */
    GN_BPE_CHARS, /* a word is code points, looked up as they are */
} gn_bpe_symbols;

typedef struct gn_bpe_pair {
    uint64_t key; /* left id << 32 | right id; all ones: free */
    uint32_t rank;
    int32_t id; /* of the joined piece */
} gn_bpe_pair;

typedef struct gn_bpe {
    const gn_vocab *vocab; /* borrowed */
    gn_bpe_symbols symbols;
    bool by_score;        /* a pair joins where its text is a piece; `rank` orders them */
    bool ignore_merges;   /* a word that is a token is taken whole */
    bool byte_fallback;   /* a code point without a token becomes its bytes <0xNN> */
    bool fuse_unk;        /* neighbouring unknown code points give one unknown token */
    int32_t unk;          /* -1: what has no token is left out */
    int32_t byte_id[256]; /* the byte's letter or <0xNN>; -1 where the vocabulary has none */
    gn_bpe_pair *pairs;   /* open addressing; NULL while by_score */
    size_t cap;
    uint32_t *rank;      /* [n_vocab], by_score only; UINT32_MAX: never joined to */
    size_t max_piece;    /* bytes, by_score only */
    int32_t last_joined; /* of the merge added last: the next one's is often the id after it */
    char *prefix;        /* put before every symbol of a word but the first; NULL: nothing */
    char *suffix;        /* put after the last symbol of a word; NULL: nothing */
} gn_bpe;

typedef struct gn_bpe_symbol {
    int32_t id; /* -1: none */
    uint32_t start;
    uint32_t len; /* bytes of the word; 0 once joined to the left */
    uint32_t prev;
    uint32_t next; /* UINT32_MAX: none */
} gn_bpe_symbol;

typedef struct gn_bpe_entry { /* a pair that could be joined */
    uint64_t key;             /* rank << 32 | index of the left symbol */
    uint32_t len;             /* bytes of both; another length now means the pair is gone */
    int32_t id;
} gn_bpe_entry;

/* Memory of one encode call; a zeroed one is valid. */
typedef struct gn_bpe_work {
    gn_bpe_symbol *symbols;
    size_t n;
    size_t cap;
    gn_bpe_entry *heap;
    size_t heap_n;
    size_t heap_cap;
    gn_buf letters;
} gn_bpe_work;

typedef struct gn_bpe_merge { /* two spellings, borrowed during the call */
    gn_vocab_query left;
    gn_vocab_query right;
} gn_bpe_merge;

#define GN_BPE_BATCH (GN_VOCAB_BATCH / 2)

/* Fill byte_id: from the letters of GPT-2's byte alphabet (GN_BPE_BYTES) or the pieces <0xNN>. */
void gn_bpe_find_bytes(gn_bpe *bpe);
/* Reserve the table of n merges, then add them in order, n ≤ GN_BPE_BATCH at a time: rank = number of
 * merges added before. A pair that comes twice has the later rank, as in Hugging Face's library.
 * GN_E_FORMAT: a merge whose parts or joined piece are not in the vocabulary. */
GN_MUST_USE gn_status gn_bpe_reserve(gn_bpe *bpe, size_t n_merges);
GN_MUST_USE gn_status gn_bpe_add(gn_bpe *bpe, const gn_bpe_merge *merges, size_t n, uint32_t rank);
/* Order the pieces by vocab->score. */
GN_MUST_USE gn_status gn_bpe_rank_scores(gn_bpe *bpe);
void gn_bpe_fini(gn_bpe *bpe);

/* Append the ids of word[0 .. len). */
GN_MUST_USE gn_status gn_bpe_encode(const gn_bpe *bpe, gn_bpe_work *work, const char *word,
                                    size_t len, gn_token_list *out);
void gn_bpe_work_fini(gn_bpe_work *work);

/* GPT-2's byte alphabet: the code point that stands for a byte, and back (-1: no letter of it). */
uint32_t gn_bpe_letter(uint8_t byte);
int gn_bpe_byte(uint32_t letter);

#endif
