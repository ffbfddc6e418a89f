/* The trie of a vocabulary and the cache of walks over it. */
#ifndef GN_GRAMMAR_VOCAB_IMPL_H
#define GN_GRAMMAR_VOCAB_IMPL_H

#include "grammar/vocab_index.h"

#include <pthread.h>

typedef struct gn_vocab_node { /* in depth-first order: a subtree is a run */
    uint32_t end;              /* behind the last node of the subtree */
    int32_t token;             /* first that ends here, -1: none; others by next_same */
    uint16_t depth;            /* bytes from the root, which has none */
    uint8_t byte;
} gn_vocab_node;

/* Where a regular expression may end inside tokens, by the state it has there. */
typedef struct gn_vocab_group {
    uint32_t at, n; /* nodes with children, in gn_vocab_walk.nodes; the state is the same at all */
} gn_vocab_group;

/* All tokens from one state of a regular expression: which stay inside it, and where it may end. */
typedef struct gn_vocab_walk {
    uint32_t *mask; /* [words] */
    gn_vocab_group *groups;
    uint32_t n_groups;
    uint32_t *nodes;
    uint32_t n_nodes;
    char *key; /* the expression, written out */
    size_t key_len;
} gn_vocab_walk;

struct gn_vocab_index {
    gn_vocab_node *nodes; /* [0] is the root */
    uint32_t n_nodes;
    uint32_t max_depth;
    int32_t *next_same; /* [n] */
    char *text;
    uint32_t *start;    /* [n + 1] */
    uint32_t *end_mask; /* [words] */
    size_t n, words;
    pthread_mutex_t lock; /* of the cache */
    gn_vocab_walk **walks;
    uint32_t n_walks, cap_walks;
};

void gn_vocab_walk_destroy(gn_vocab_walk *walk);

#endif
