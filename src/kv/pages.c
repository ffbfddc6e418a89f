/* Ids and memory are kept apart. An id is a place in `pages`; a page's parts are pieces of memory of two sizes, and
 * each size has a stack of free ones. Memory that is given back goes there, until a piece of the other size
 * finds no room under the limit. */
#include "kv/pages.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/rng.h"

#include <assert.h>
#include <string.h>

enum { FAR, WINDOWED, N_PARTS }; /* parts of a page: of layers that see everything, and of others */

/* Pieces of memory of one size. */
typedef struct store {
    size_t bytes;         /* 0: pages have no such part */
    unsigned char **free; /* [n_free], 64-byte aligned; room for n_created */
    size_t cap;
    uint32_t n_free;
    uint32_t n_created;
} store;

typedef struct held {
    unsigned char *part[N_PARTS]; /* NULL: not held */
    uint32_t n_holders;           /* 0: free */
} held;

typedef struct place {
    uint8_t part;
    uint32_t index; /* of the layer, among those of the part */
} place;

struct gn_kv_pool {
    gn_kv_shape shape;
    bool *windowed;        /* [n_layer] the shape's */
    place *layers;         /* [n_layer] */
    size_t block_bytes[2]; /* one head's keys, and values */
    uint64_t limit_bytes;
    uint64_t bytes; /* allocated, in use or free */
    store stores[N_PARTS];
    uint32_t capacity;
    held *pages; /* [n_ids] */
    size_t pages_cap;
    uint32_t n_ids;
    uint32_t *free_ids; /* [n_free_ids], room for n_ids */
    size_t free_ids_cap;
    uint32_t n_free_ids;
    bool (*reclaim)(void *ctx);
    void *reclaim_ctx;
    gn_rng rng;
    int shuffle;
};

uint32_t gn_kv_padded_dim(const gn_kv_shape *shape)
{
    uint32_t whole = shape->type == GN_KV_Q4 ? 32 : 16;
    return (shape->head_dim + whole - 1) / whole * whole;
}

/* Bytes of one head's keys (value 0) or values (1) in a page, or 0: codes and the scales behind them. */
static size_t block_bytes(const gn_kv_shape *shape, uint32_t value)
{
    if (shape->head_dim > UINT32_MAX - 32) {
        return 0;
    }
    size_t d = gn_kv_padded_dim(shape);
    size_t row = 0; /* of one token */
    switch (shape->type) {
    case GN_KV_F32: row = sizeof(float) * d; break;
    case GN_KV_F16: row = sizeof(uint16_t) * d; break;
    case GN_KV_Q8:
    case GN_KV_FP8: row = d + sizeof(float); break;
    case GN_KV_Q4: row = value != 0 ? d / 2 + d / 32 * sizeof(uint16_t) : d + sizeof(float); break;
    }
    return GN_KV_PAGE_TOK * row;
}

/* Bytes of a part with n_layer layers, or 0 where there are none or it overflows. */
static size_t part_bytes(const gn_kv_shape *shape, uint32_t n_layer)
{
    size_t bytes = block_bytes(shape, 0) + block_bytes(shape, 1);
    if (!gn_checked_mul(bytes, shape->n_head_kv, &bytes) ||
        !gn_checked_mul(bytes, n_layer, &bytes)) {
        return 0;
    }
    return bytes;
}

static uint32_t count_windowed(const gn_kv_shape *shape)
{
    uint32_t n = 0;
    for (uint32_t i = 0; shape->windowed != NULL && shape->n_window != 0 && i < shape->n_layer;
         i++) {
        n += shape->windowed[i];
    }
    return n;
}

size_t gn_kv_page_bytes(const gn_kv_shape *shape)
{
    return part_bytes(shape, shape->n_layer);
}

size_t gn_kv_window_bytes(const gn_kv_shape *shape)
{
    return part_bytes(shape, count_windowed(shape));
}

static gn_status init_layers(gn_kv_pool *pool)
{
    uint32_t n = pool->shape.n_layer;
    pool->windowed = gn_calloc(n, sizeof *pool->windowed);
    pool->layers = gn_calloc(n, sizeof *pool->layers);
    if (pool->windowed == NULL || pool->layers == NULL) {
        return gn_alloc_failed();
    }
    bool any = count_windowed(&pool->shape) != 0;
    uint32_t n_of[N_PARTS] = {0};
    for (uint32_t i = 0; i < n; i++) {
        pool->windowed[i] = any && pool->shape.windowed[i];
        uint8_t part = pool->windowed[i] ? WINDOWED : FAR;
        pool->layers[i] = (place){.part = part, .index = n_of[part]++};
    }
    for (int i = 0; i < N_PARTS; i++) {
        pool->stores[i].bytes = part_bytes(&pool->shape, n_of[i]);
    }
    pool->shape.windowed = any ? pool->windowed : NULL;
    return GN_OK;
}

gn_status gn_kv_pool_create(const gn_kv_shape *shape, uint64_t limit_bytes, gn_kv_pool **out)
{
    size_t page_bytes = gn_kv_page_bytes(shape);
    GN_REQUIRE(page_bytes != 0, GN_E_ARG,
               "a KV page of %u layers, %u heads of %u has no valid size", shape->n_layer,
               shape->n_head_kv, shape->head_dim);
    uint64_t capacity = limit_bytes / page_bytes;
    GN_REQUIRE(capacity >= 1, GN_E_ARG,
               "KV memory: found %llu bytes, expected at least a page of %zu",
               (unsigned long long)limit_bytes, page_bytes);
    gn_kv_pool *pool = gn_calloc(1, sizeof *pool);
    if (pool == NULL) {
        return gn_alloc_failed();
    }
    pool->shape = *shape;
    pool->limit_bytes = limit_bytes;
    pool->block_bytes[0] = block_bytes(shape, 0);
    pool->block_bytes[1] = block_bytes(shape, 1);
    pool->capacity = capacity > UINT32_MAX ? UINT32_MAX : (uint32_t)capacity;
    gn_status status = init_layers(pool);
    if (status != GN_OK) {
        gn_kv_pool_destroy(pool);
        return status;
    }
    *out = pool;
    return GN_OK;
}

void gn_kv_pool_destroy(gn_kv_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    assert(pool->n_free_ids == pool->n_ids);
    for (int i = 0; i < N_PARTS; i++) {
        store *s = &pool->stores[i];
        assert(s->n_free == s->n_created);
        while (s->n_free > 0) {
            gn_free_aligned(s->free[--s->n_free]);
        }
        gn_free(s->free);
    }
    gn_free(pool->pages);
    gn_free(pool->free_ids);
    gn_free(pool->layers);
    gn_free(pool->windowed);
    gn_free(pool);
}

const gn_kv_shape *gn_kv_pool_shape(const gn_kv_pool *pool)
{
    return &pool->shape;
}

uint32_t gn_kv_pool_capacity(const gn_kv_pool *pool)
{
    return pool->capacity;
}

uint32_t gn_kv_pool_in_use(const gn_kv_pool *pool)
{
    return pool->n_ids - pool->n_free_ids;
}

uint64_t gn_kv_pool_bytes_in_use(const gn_kv_pool *pool)
{
    uint64_t bytes = pool->bytes;
    for (int i = 0; i < N_PARTS; i++) {
        bytes -= pool->stores[i].n_free * (uint64_t)pool->stores[i].bytes;
    }
    return bytes;
}

void gn_kv_pool_shuffle(gn_kv_pool *pool, uint64_t seed)
{
    pool->rng.state = seed;
    pool->shuffle = seed != 0;
}

/* --- memory --- */

/* Give free pieces of s back to the allocator until `bytes` more fit the limit, or none is left. */
static void make_room(gn_kv_pool *pool, store *s, size_t bytes)
{
    while (s->n_free > 0 && pool->limit_bytes - pool->bytes < bytes) {
        gn_free_aligned(s->free[--s->n_free]);
        s->n_created--;
        pool->bytes -= s->bytes;
    }
}

/* Allocate pieces of a part until n are free. */
static gn_status fill(gn_kv_pool *pool, int part, uint32_t n)
{
    store *s = &pool->stores[part];
    while (s->bytes != 0 && s->n_free < n) {
        make_room(pool, &pool->stores[part == WINDOWED ? FAR : WINDOWED], s->bytes);
        if (pool->limit_bytes - pool->bytes < s->bytes && pool->reclaim != NULL &&
            pool->reclaim(pool->reclaim_ctx)) {
            continue;
        }
        GN_REQUIRE(pool->limit_bytes - pool->bytes >= s->bytes, GN_E_NO_PAGES,
                   "the KV pool is full: %u pages and %llu of %llu bytes are in use",
                   gn_kv_pool_in_use(pool), (unsigned long long)gn_kv_pool_bytes_in_use(pool),
                   (unsigned long long)pool->limit_bytes);
        unsigned char **grown =
            gn_grow_array(s->free, &s->cap, (size_t)s->n_created + 1, sizeof *s->free);
        if (grown == NULL) {
            return gn_alloc_failed();
        }
        s->free = grown;
        unsigned char *memory = gn_alloc_aligned(s->bytes, 1);
        if (memory == NULL) {
            return gn_alloc_failed();
        }
        /* Kernels read pages whole; what was never written is not used, but it is defined. */
        memset(memory, 0, s->bytes);
        s->free[s->n_free++] = memory;
        s->n_created++;
        pool->bytes += s->bytes;
    }
    return GN_OK;
}

static void hold(gn_kv_pool *pool, uint32_t id, int part)
{
    store *s = &pool->stores[part];
    if (s->bytes != 0 && pool->pages[id].part[part] == NULL) {
        pool->pages[id].part[part] = s->free[--s->n_free];
    }
}

static void release(gn_kv_pool *pool, uint32_t id, int part)
{
    store *s = &pool->stores[part];
    if (pool->pages[id].part[part] != NULL) {
        assert(s->n_free < s->n_created);
        s->free[s->n_free++] = pool->pages[id].part[part];
        pool->pages[id].part[part] = NULL;
    }
}

/* --- ids --- */

/* Make ids until n are free. */
static gn_status make_ids(gn_kv_pool *pool, uint32_t n)
{
    while (pool->n_free_ids < n) {
        GN_REQUIRE(pool->n_ids < UINT32_MAX, GN_E_NO_PAGES, "the KV pool is out of page ids");
        held *pages =
            gn_grow_array(pool->pages, &pool->pages_cap, (size_t)pool->n_ids + 1, sizeof *pages);
        if (pages == NULL) {
            return gn_alloc_failed();
        }
        pool->pages = pages;
        uint32_t *free_ids = gn_grow_array(pool->free_ids, &pool->free_ids_cap,
                                           (size_t)pool->n_ids + 1, sizeof *free_ids);
        if (free_ids == NULL) {
            return gn_alloc_failed();
        }
        pool->free_ids = free_ids;
        pool->pages[pool->n_ids] = (held){.n_holders = 0};
        pool->free_ids[pool->n_free_ids++] = pool->n_ids++;
    }
    return GN_OK;
}

gn_status gn_kv_take(gn_kv_pool *pool, uint32_t n_pages, uint32_t *out)
{
    GN_TRY(fill(pool, FAR, n_pages));
    GN_TRY(make_ids(pool, n_pages));
    for (uint32_t i = 0; i < n_pages; i++) {
        if (pool->shuffle) {
            uint32_t j = (uint32_t)(gn_rng_next(&pool->rng) % pool->n_free_ids);
            uint32_t last = pool->free_ids[pool->n_free_ids - 1];
            pool->free_ids[pool->n_free_ids - 1] = pool->free_ids[j];
            pool->free_ids[j] = last;
        }
        out[i] = pool->free_ids[--pool->n_free_ids];
        hold(pool, out[i], FAR);
        pool->pages[out[i]].n_holders = 1;
    }
    return GN_OK;
}

void gn_kv_share(gn_kv_pool *pool, uint32_t page)
{
    assert(page < pool->n_ids && pool->pages[page].n_holders > 0);
    pool->pages[page].n_holders++;
}

uint32_t gn_kv_n_holders(const gn_kv_pool *pool, uint32_t page)
{
    assert(page < pool->n_ids);
    return pool->pages[page].n_holders;
}

void gn_kv_pool_set_reclaim(gn_kv_pool *pool, bool (*reclaim)(void *ctx), void *ctx)
{
    pool->reclaim = reclaim;
    pool->reclaim_ctx = ctx;
}

void gn_kv_give(gn_kv_pool *pool, uint32_t n_pages, const uint32_t *ids)
{
    for (uint32_t i = 0; i < n_pages; i++) {
        assert(ids[i] < pool->n_ids && pool->pages[ids[i]].n_holders > 0);
        if (--pool->pages[ids[i]].n_holders > 0) {
            continue;
        }
        release(pool, ids[i], FAR);
        release(pool, ids[i], WINDOWED);
        pool->free_ids[pool->n_free_ids++] = ids[i];
    }
}

gn_status gn_kv_window_take(gn_kv_pool *pool, uint32_t n_pages, const uint32_t *ids)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_pages; i++) {
        n += !gn_kv_is_whole(pool, ids[i]);
    }
    GN_TRY(fill(pool, WINDOWED, n));
    for (uint32_t i = 0; i < n_pages; i++) {
        hold(pool, ids[i], WINDOWED);
    }
    return GN_OK;
}

void gn_kv_window_give(gn_kv_pool *pool, uint32_t page)
{
    assert(page < pool->n_ids);
    if (pool->pages[page].n_holders <= (pool->reclaim != NULL ? 2u : 1u)) {
        release(pool, page, WINDOWED);
    }
}

bool gn_kv_is_whole(const gn_kv_pool *pool, uint32_t page)
{
    assert(page < pool->n_ids);
    return pool->stores[WINDOWED].bytes == 0 || pool->pages[page].part[WINDOWED] != NULL;
}

void *gn_kv_block(const gn_kv_pool *pool, uint32_t page, uint32_t layer, uint32_t value,
                  uint32_t head)
{
    assert(page < pool->n_ids && layer < pool->shape.n_layer && value < 2 &&
           head < pool->shape.n_head_kv);
    place at = pool->layers[layer];
    size_t n = pool->shape.n_head_kv;
    size_t offset = at.index * n * (pool->block_bytes[0] + pool->block_bytes[1]) +
                    value * n * pool->block_bytes[0] + head * pool->block_bytes[value];
    assert(pool->pages[page].part[at.part] != NULL);
    return pool->pages[page].part[at.part] + offset;
}
