/* Pages that outlive the sequence which computed them: a tree whose nodes are full pages, each known by the tokens it
 * holds and the nodes before it. A sequence that begins with the same tokens begins with the same pages, and since
 * keys and values depend on the tokens before them alone, it gets the same bits.
 *
 * The tree holds its pages as a sequence does (gn_kv_share()). Only full pages are in it, and sequences write behind
 * what is full: a shared page is never written. Pages that the tree alone holds are given back when the pool is full,
 * the least recently used first, ends of branches before what leads to them.
 *
 * Invariants: (1) who holds a node's page for a sequence in the tree holds the pages of all nodes before it, so
 * where a node is idle (the tree alone holds its page) all nodes behind it are; (2) in the list of use a node comes
 * after all nodes behind it, so the first idle node of the list is the end of a branch.
 *
 * Method: Kwon et al. 2023 (paged attention) for pages, Zheng et al. 2024 (RadixAttention) for the tree.
 * One thread at a time, the pool's. */
#ifndef GN_KV_PREFIX_H
#define GN_KV_PREFIX_H

#include "kv/table.h"

typedef struct gn_kv_prefix gn_kv_prefix;
typedef struct gn_kv_node gn_kv_node;

/* Where a sequence stands in the tree. Zeroed: at the root. */
typedef struct gn_kv_place {
    gn_kv_node *node; /* of its last page that is in the tree; NULL: the root */
    uint32_t n_pages; /* on the way there */
} gn_kv_place;

/* A tree over a pool, which asks it for pages from then on. GN_E_NOMEM. */
GN_MUST_USE gn_status gn_kv_prefix_create(gn_kv_pool *pool, gn_kv_prefix **out);
/* Gives its pages back. NULL is fine. */
void gn_kv_prefix_destroy(gn_kv_prefix *prefix);

/* Begin an empty table with the pages of the longest beginning of ids[0 .. n) that the tree has under `root` and
 * that leaves at least one token to be computed. Sequences with different roots never share. Returns tokens taken,
 * 0 also without memory. */
uint32_t gn_kv_prefix_attach(gn_kv_prefix *prefix, uint64_t root, const int32_t *ids, uint32_t n,
                             gn_kv_table *table, gn_kv_place *place);

/* Put the table's full pages, which hold ids [table->n_tok], into the tree from `place` on. Where the tree has the
 * same page already, the table's is given back for it. Without memory less is put there. */
void gn_kv_prefix_insert(gn_kv_prefix *prefix, uint64_t root, const int32_t *ids,
                         gn_kv_table *table, gn_kv_place *place);

/* Pages in the tree, and of those the ones that it alone holds. O(pages). */
uint32_t gn_kv_prefix_count(const gn_kv_prefix *prefix, uint32_t *n_idle);

#endif
