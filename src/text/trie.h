/* A byte trie over many strings, packed: children of a node lie side by side in byte order. Built
 * once, then immutable. */
#ifndef GN_TEXT_TRIE_H
#define GN_TEXT_TRIE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct gn_trie_item {
    const char *s; /* not empty; borrowed during the build */
    size_t len;
    int32_t value; /* ≥ 0 */
} gn_trie_item;

typedef struct gn_trie_node {
    uint32_t child; /* first child */
    int32_t value;  /* of the string that ends here, or -1 */
    uint16_t n_children;
    uint8_t byte; /* on the edge that leads here */
} gn_trie_node;

typedef struct gn_trie {
    gn_trie_node *nodes; /* [0] is the root; NULL: empty */
    size_t n_nodes;
    uint32_t root[256]; /* children of the root, 0: none */
} gn_trie;

/* Sorts `items` in place. Of equal strings the one with the lowest value stays. GN_E_FORMAT where
 * the strings need over 2^31 nodes. A zeroed trie is valid and empty. */
GN_MUST_USE gn_status gn_trie_build(gn_trie *trie, gn_trie_item *items, size_t n);
void gn_trie_fini(gn_trie *trie);

/* The child of `node` by `byte`, or 0 (the root is nobody's child). */
uint32_t gn_trie_step(const gn_trie *trie, uint32_t node, uint8_t byte);

#endif
