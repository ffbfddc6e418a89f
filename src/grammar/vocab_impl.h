/* The trie of a vocabulary and the cache of walks over it. */
#ifndef GN_GRAMMAR_VOCAB_IMPL_H
#define GN_GRAMMAR_VOCAB_IMPL_H

#include "base/attr.h"
#include "grammar/vocab_index.h"

#include <pthread.h>

typedef struct gn_vocab_node { /* in depth-first order: a subtree is a run */
    uint32_t end;              /* behind the last node of the subtree */
    int32_t token;             /* first that ends here, -1: none; others by next_same */
    uint32_t first;            /* place in `order` of the first token that ends here or below */
    uint16_t depth;            /* bytes from the root, which has none */
    uint8_t byte;
    uint8_t flags; /* GN_VOCAB_WHOLE … */
} gn_vocab_node;

#define GN_VOCAB_WHOLE 1u /* behind the node's bytes a character begins */
#define GN_VOCAB_PLAIN                                                                             \
    2u /* this byte and all below are whole plain characters, to each token's end */
#define GN_VOCAB_KNOWN 4u /* a plain subtree whose tokens are in gn_vocab_index.plain */

/* Plain: any but control characters, the quotation mark and the backslash, which strings of JSON take as it is. */
GN_INLINE bool gn_vocab_is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

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
    int32_t *order;     /* tokens in the order of their nodes: those of a subtree are a run */
    uint32_t n_order;
    char *text;
    uint32_t *start;    /* [n + 1] */
    uint32_t *end_mask; /* [words] */
    uint32_t *plain;    /* [words] tokens of plain subtrees below plain characters alone */
    size_t n, words;
    pthread_mutex_t lock; /* of the cache */
    gn_vocab_walk **walks;
    uint32_t n_walks, cap_walks;
};

/* Set the bits of all tokens that end at the node or below it. */
GN_INLINE void gn_vocab_set_below(const gn_vocab_index *x, uint32_t node, uint32_t *mask)
{
    uint32_t end = x->nodes[node].end;
    uint32_t behind = end < x->n_nodes ? x->nodes[end].first : x->n_order;
    for (uint32_t k = x->nodes[node].first; k < behind; k++) {
        int32_t token = x->order[k];
        mask[token / 32] |= 1u << (token % 32);
    }
}

void gn_vocab_walk_destroy(gn_vocab_walk *walk);

#endif
