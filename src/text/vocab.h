/* The vocabulary: spelling, kind and score of every id, and the id of every spelling. Built once,
 * then immutable: any thread may read. */
#ifndef GN_TEXT_VOCAB_H
#define GN_TEXT_VOCAB_H

#include "base/attr.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More ids than any published vocabulary has; keeps every id and table size in 32 bits. */
#define GN_VOCAB_MAX 16777216

typedef enum gn_vocab_kind {                    /* the numbers of tokenizer.ggml.token_type */
                             GN_VOCAB_HOLE = 0, /* no token has this id */
                             GN_VOCAB_NORMAL = 1,
                             GN_VOCAB_UNKNOWN = 2,
                             GN_VOCAB_CONTROL = 3,
                             GN_VOCAB_USER =
                                 4, /* matched in the text before the model runs, shown in the output */
                             GN_VOCAB_UNUSED = 5, /* never produced */
                             GN_VOCAB_BYTE = 6    /* <0xNN> */
} gn_vocab_kind;

typedef struct gn_vocab_item { /* what a vocabulary is built from */
    const char *s; /* borrowed during the build; NULL only where kind is GN_VOCAB_HOLE */
    size_t len;
    gn_vocab_kind kind;
} gn_vocab_item;

typedef struct gn_vocab_slot {
    uint32_t tag; /* other bits of the hash than the index uses */
    int32_t id;   /* -1: free */
} gn_vocab_slot;

typedef struct gn_vocab {
    int32_t n;
    char *text;      /* all spellings, each followed by a NUL */
    uint32_t *start; /* [n + 1] offsets into text */
    uint8_t *kind;   /* [n] of gn_vocab_kind */
    double *score;   /* [n], or NULL where the model has none */
    size_t max_len;  /* of the longest spelling, in bytes */
    gn_vocab_slot *slots;
    size_t cap; /* of slots, a power of two */
} gn_vocab;

/* Copy n spellings. GN_E_FORMAT: none, too many, or two ids with one spelling (an empty spelling
 * may repeat: no text ever gives it). A zeroed gn_vocab is valid and empty. */
GN_MUST_USE gn_status gn_vocab_build(gn_vocab *vocab, const gn_vocab_item *items, size_t n);
void gn_vocab_fini(gn_vocab *vocab);

/* The id of a spelling, or -1. */
int32_t gn_vocab_find(const gn_vocab *vocab, const char *s, size_t len);

typedef struct gn_vocab_query {
    const char *s;
    size_t len;
} gn_vocab_query;

#define GN_VOCAB_BATCH 64

/* The ids of n ≤ GN_VOCAB_BATCH spellings, as gn_vocab_find() gives them one by one; their cache misses
 * overlap here. */
void gn_vocab_find_many(const gn_vocab *vocab, const gn_vocab_query *queries, size_t n,
                        int32_t *ids);

GN_INLINE const char *gn_vocab_spelling(const gn_vocab *vocab, int32_t id, size_t *len)
{
    uint32_t start = vocab->start[id];
    *len = vocab->start[id + 1] - start - 1;
    return vocab->text + start;
}

#endif
