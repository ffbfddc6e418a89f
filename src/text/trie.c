/* Built breadth first from the sorted strings: each node stands for a range of them that share a
 * prefix, so its children are found by one pass over the range, and no pointers are needed. */
#include "text/trie.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

typedef struct trie_range { /* strings [from, to) share their first `depth` bytes */
    uint32_t from;
    uint32_t to;
    uint32_t depth;
} trie_range;

void gn_trie_fini(gn_trie *trie)
{
    if (trie != NULL) {
        gn_free(trie->nodes);
        *trie = (gn_trie){0};
    }
}

static int compare(const void *a, const void *b)
{
    const gn_trie_item *x = a;
    const gn_trie_item *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int c = memcmp(x->s, y->s, n);
    if (c != 0) {
        return c;
    }
    if (x->len != y->len) {
        return x->len < y->len ? -1 : 1;
    }
    return (x->value > y->value) - (x->value < y->value);
}

/* Distinct prefixes of the sorted strings: the length of each beyond what it shares with the one
 * before it. */
static size_t count_nodes(const gn_trie_item *items, size_t n)
{
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++) {
        size_t shared = 0;
        if (i != 0) {
            size_t most = items[i - 1].len < items[i].len ? items[i - 1].len : items[i].len;
            while (shared < most && items[i - 1].s[shared] == items[i].s[shared]) {
                shared++;
            }
        }
        nodes += items[i].len - shared;
    }
    return nodes;
}

static void expand(gn_trie *trie, const gn_trie_item *items, trie_range *ranges, size_t at)
{
    trie_range r = ranges[at];
    gn_trie_node *node = &trie->nodes[at];
    node->value = -1;
    node->child = (uint32_t)trie->n_nodes;
    uint32_t i = r.from;
    while (i < r.to && items[i].len == r.depth) {
        if (node->value < 0) {
            node->value = items[i].value;
        }
        i++;
    }
    while (i < r.to) {
        uint8_t byte = (uint8_t)items[i].s[r.depth];
        uint32_t end = i + 1;
        while (end < r.to && (uint8_t)items[end].s[r.depth] == byte) {
            end++;
        }
        trie->nodes[trie->n_nodes].byte = byte;
        ranges[trie->n_nodes] = (trie_range){i, end, r.depth + 1};
        trie->n_nodes++;
        node->n_children++;
        i = end;
    }
}

gn_status gn_trie_build(gn_trie *trie, gn_trie_item *items, size_t n)
{
    *trie = (gn_trie){0};
    if (n == 0) {
        return GN_OK;
    }
    qsort(items, n, sizeof *items, compare);
    size_t n_nodes = count_nodes(items, n);
    GN_REQUIRE(n_nodes < INT32_MAX && n < INT32_MAX, GN_E_FORMAT,
               "vocabulary: its spellings need %zu trie nodes, expected under 2^31", n_nodes);
    trie->nodes = gn_calloc(n_nodes, sizeof *trie->nodes);
    trie_range *ranges = gn_alloc_array(n_nodes, sizeof *ranges);
    if (trie->nodes == NULL || ranges == NULL) {
        gn_free(ranges);
        gn_trie_fini(trie);
        return gn_alloc_failed();
    }
    ranges[0] = (trie_range){0, (uint32_t)n, 0};
    trie->n_nodes = 1;
    for (size_t at = 0; at < trie->n_nodes; at++) {
        expand(trie, items, ranges, at);
    }
    gn_free(ranges);
    for (uint32_t i = 0; i < trie->nodes[0].n_children; i++) {
        trie->root[trie->nodes[trie->nodes[0].child + i].byte] = trie->nodes[0].child + i;
    }
    return GN_OK;
}

uint32_t gn_trie_step(const gn_trie *trie, uint32_t node, uint8_t byte)
{
    if (node == 0) {
        return trie->root[byte];
    }
    const gn_trie_node *p = &trie->nodes[node];
    uint32_t lo = p->child;
    uint32_t hi = lo + p->n_children;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (trie->nodes[mid].byte < byte) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < p->child + p->n_children && trie->nodes[lo].byte == byte ? lo : 0;
}
