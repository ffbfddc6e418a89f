#include "kv/prefix.h"

#include "base/alloc.h"

#include <assert.h>
#include <string.h>

struct gn_kv_node {
    gn_kv_node *parent;      /* NULL: behind the root */
    gn_kv_node *next_bucket; /* with the same place in the table */
    gn_kv_node *older, *newer;
    uint64_t root;
    uint64_t hash;
    uint32_t page;
    int32_t ids[GN_KV_PAGE_TOK];
};

struct gn_kv_prefix {
    gn_kv_pool *pool;
    gn_kv_node **buckets; /* [n_buckets], a power of two */
    size_t n_buckets;
    uint32_t n_nodes;
    gn_kv_node *oldest, *newest; /* the list of use */
};

/* --- the hash table --- */

/* FNV-1a over words, then mixed. Collisions cost time alone: nodes are compared whole. */
static uint64_t hash_of(uint64_t root, const gn_kv_node *parent, const int32_t *ids)
{
    uint64_t h = 0xcbf29ce484222325u ^ (parent != NULL ? parent->hash : root);
    for (size_t i = 0; i < GN_KV_PAGE_TOK; i++) {
        h = (h ^ (uint32_t)ids[i]) * 0x100000001b3u;
    }
    h ^= h >> 32;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static gn_kv_node **bucket_of(const gn_kv_prefix *p, uint64_t hash)
{
    return &p->buckets[hash & (p->n_buckets - 1)];
}

static gn_kv_node *find(const gn_kv_prefix *p, uint64_t root, const gn_kv_node *parent,
                        const int32_t *ids, uint64_t hash)
{
    gn_kv_node *node = *bucket_of(p, hash);
    while (node != NULL && !(node->hash == hash && node->root == root && node->parent == parent &&
                             memcmp(node->ids, ids, sizeof node->ids) == 0)) {
        node = node->next_bucket;
    }
    return node;
}

static void grow_table(gn_kv_prefix *p)
{
    size_t n = p->n_buckets * 2;
    gn_kv_node **buckets = gn_calloc(n, sizeof *buckets);
    if (buckets == NULL) {
        return; /* longer chains */
    }
    for (gn_kv_node *node = p->oldest; node != NULL; node = node->newer) {
        gn_kv_node **at = &buckets[node->hash & (n - 1)];
        node->next_bucket = *at;
        *at = node;
    }
    gn_free((void *)p->buckets);
    p->buckets = buckets;
    p->n_buckets = n;
}

/* --- the list of use --- */

static void unlink_use(gn_kv_prefix *p, gn_kv_node *node)
{
    *(node->older != NULL ? &node->older->newer : &p->oldest) = node->newer;
    *(node->newer != NULL ? &node->newer->older : &p->newest) = node->older;
}

static void link_newest(gn_kv_prefix *p, gn_kv_node *node)
{
    node->older = p->newest;
    node->newer = NULL;
    *(p->newest != NULL ? &p->newest->newer : &p->oldest) = node;
    p->newest = node;
}

/* A node and all before it were used: those before it come after it. */
static void touch(gn_kv_prefix *p, gn_kv_node *node)
{
    for (; node != NULL; node = node->parent) {
        unlink_use(p, node);
        link_newest(p, node);
    }
}

/* --- nodes --- */

static gn_kv_node *add(gn_kv_prefix *p, uint64_t root, gn_kv_node *parent, const int32_t *ids,
                       uint64_t hash, uint32_t page)
{
    gn_kv_node *node = gn_alloc(sizeof *node);
    if (node == NULL) {
        return NULL;
    }
    if (p->n_nodes >= p->n_buckets) {
        grow_table(p);
    }
    gn_kv_node **bucket = bucket_of(p, hash);
    *node = (gn_kv_node){
        .parent = parent, .next_bucket = *bucket, .root = root, .hash = hash, .page = page};
    memcpy(node->ids, ids, sizeof node->ids);
    *bucket = node;
    link_newest(p, node);
    p->n_nodes++;
    gn_kv_share(p->pool, page);
    return node;
}

static void drop(gn_kv_prefix *p, gn_kv_node *node)
{
    gn_kv_node **at = bucket_of(p, node->hash);
    while (*at != node) {
        at = &(*at)->next_bucket;
    }
    *at = node->next_bucket;
    unlink_use(p, node);
    p->n_nodes--;
    gn_kv_give(p->pool, 1, &node->page);
    gn_free(node);
}

static bool is_idle(const gn_kv_prefix *p, const gn_kv_node *node)
{
    return gn_kv_n_holders(p->pool, node->page) == 1;
}

/* For the pool: give the page back that is needed least. */
static bool reclaim(void *ctx)
{
    gn_kv_prefix *p = ctx;
    for (gn_kv_node *node = p->oldest; node != NULL; node = node->newer) {
        if (is_idle(p, node)) {
            drop(p, node);
            return true;
        }
    }
    return false;
}

/* --- the contract --- */

gn_status gn_kv_prefix_create(gn_kv_pool *pool, gn_kv_prefix **out)
{
    gn_kv_prefix *p = gn_calloc(1, sizeof *p);
    if (p == NULL) {
        return gn_alloc_failed();
    }
    p->pool = pool;
    p->n_buckets = 256;
    p->buckets = gn_calloc(p->n_buckets, sizeof *p->buckets);
    if (p->buckets == NULL) {
        gn_free(p);
        return gn_alloc_failed();
    }
    gn_kv_pool_set_reclaim(pool, reclaim, p);
    *out = p;
    return GN_OK;
}

void gn_kv_prefix_destroy(gn_kv_prefix *p)
{
    if (p == NULL) {
        return;
    }
    gn_kv_pool_set_reclaim(p->pool, NULL, NULL);
    while (p->oldest != NULL) {
        drop(p, p->oldest);
    }
    gn_free((void *)p->buckets);
    gn_free(p);
}

/* Nodes on the way from the root to `node`, its own last, as pages. */
static void list_pages(const gn_kv_node *node, uint32_t n, uint32_t *pages)
{
    while (n > 0) {
        pages[--n] = node->page;
        node = node->parent;
    }
}

uint32_t gn_kv_prefix_attach(gn_kv_prefix *p, uint64_t root, const int32_t *ids, uint32_t n,
                             gn_kv_table *table, gn_kv_place *place)
{
    gn_kv_node *node = NULL;
    uint32_t n_pages = 0;
    *place = (gn_kv_place){0};
    while ((n_pages + 1) * GN_KV_PAGE_TOK < n) {
        const int32_t *page_ids = ids + (size_t)n_pages * GN_KV_PAGE_TOK;
        gn_kv_node *next = find(p, root, node, page_ids, hash_of(root, node, page_ids));
        if (next == NULL) {
            break;
        }
        node = next;
        n_pages++;
    }
    if (n_pages == 0) {
        return 0;
    }
    touch(p, node);
    uint32_t *pages = gn_alloc_array(n_pages, sizeof *pages);
    if (pages == NULL) {
        return 0;
    }
    list_pages(node, n_pages, pages);
    gn_status status = gn_kv_table_share(table, n_pages, pages);
    gn_free(pages);
    if (status != GN_OK) {
        return 0;
    }
    for (; n_pages > table->n_tok / GN_KV_PAGE_TOK; n_pages--) {
        node = node->parent; /* windows have passed what it would need */
    }
    *place = (gn_kv_place){.node = node, .n_pages = n_pages};
    return table->n_tok;
}

/* Two pages hold the same: the node's stays, unless nobody uses it and only the other has all there is. */
static void merge(gn_kv_prefix *p, gn_kv_node *node, uint32_t *page)
{
    bool better = !gn_kv_is_whole(p->pool, node->page) && gn_kv_is_whole(p->pool, *page);
    if (better && is_idle(p, node)) {
        gn_kv_share(p->pool, *page);
        gn_kv_give(p->pool, 1, &node->page);
        node->page = *page;
    } else {
        gn_kv_share(p->pool, node->page);
        gn_kv_give(p->pool, 1, page);
        *page = node->page;
    }
}

void gn_kv_prefix_insert(gn_kv_prefix *p, uint64_t root, const int32_t *ids, gn_kv_table *table,
                         gn_kv_place *place)
{
    uint32_t n_full = table->n_tok / GN_KV_PAGE_TOK;
    bool any = place->n_pages < n_full;
    for (; place->n_pages < n_full; place->n_pages++) {
        const int32_t *page_ids = ids + (size_t)place->n_pages * GN_KV_PAGE_TOK;
        uint32_t *page = &table->pages[place->n_pages];
        uint64_t hash = hash_of(root, place->node, page_ids);
        gn_kv_node *node = find(p, root, place->node, page_ids, hash);
        if (node == NULL) {
            node = add(p, root, place->node, page_ids, hash, *page);
        } else if (node->page != *page) {
            merge(p, node, page);
        }
        if (node == NULL) {
            break;
        }
        place->node = node;
    }
    if (any) {
        touch(p, place->node);
    }
}

uint32_t gn_kv_prefix_count(const gn_kv_prefix *p, uint32_t *n_idle)
{
    *n_idle = 0;
    for (const gn_kv_node *node = p->oldest; node != NULL; node = node->newer) {
        *n_idle += is_idle(p, node);
    }
    return p->n_nodes;
}
