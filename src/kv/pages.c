/* Page memory is allocated one page at a time, 64-byte aligned; a freed page goes to a stack of free ids
 * and keeps its memory. */
#include "kv/pages.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/rng.h"

#include <assert.h>
#include <string.h>

struct gn_kv_pool {
    gn_kv_shape shape;
    size_t page_bytes;
    size_t block_bytes[2]; /* one head's keys, and values */
    uint32_t capacity;     /* pages */
    uint32_t n_created;    /* pages [0, n_created) have memory */
    uint32_t n_slots;      /* length of memory and free_ids */
    unsigned char **memory;
    uint32_t *free_ids;
    uint32_t n_free;
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

size_t gn_kv_page_bytes(const gn_kv_shape *shape)
{
    size_t bytes = block_bytes(shape, 0) + block_bytes(shape, 1);
    if (!gn_checked_mul(bytes, shape->n_head_kv, &bytes) ||
        !gn_checked_mul(bytes, shape->n_layer, &bytes)) {
        return 0;
    }
    return bytes;
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
    pool->page_bytes = page_bytes;
    pool->block_bytes[0] = block_bytes(shape, 0);
    pool->block_bytes[1] = block_bytes(shape, 1);
    pool->capacity = capacity > UINT32_MAX ? UINT32_MAX : (uint32_t)capacity;
    *out = pool;
    return GN_OK;
}

void gn_kv_pool_destroy(gn_kv_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    assert(pool->n_free == pool->n_created);
    for (uint32_t i = 0; i < pool->n_created; i++) {
        gn_free_aligned(pool->memory[i]);
    }
    gn_free(pool->memory);
    gn_free(pool->free_ids);
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
    return pool->n_created - pool->n_free;
}

void gn_kv_pool_shuffle(gn_kv_pool *pool, uint64_t seed)
{
    pool->rng.state = seed;
    pool->shuffle = seed != 0;
}

/* Make sure that memory and free_ids have room for one more page. */
static gn_status grow(gn_kv_pool *pool)
{
    if (pool->n_created < pool->n_slots) {
        return GN_OK;
    }
    uint32_t n = pool->n_slots < 16 ? 16 : pool->n_slots + pool->n_slots / 2;
    unsigned char **memory = gn_realloc_array(pool->memory, n, sizeof *memory);
    if (memory == NULL) {
        return gn_alloc_failed();
    }
    pool->memory = memory;
    uint32_t *free_ids = gn_realloc_array(pool->free_ids, n, sizeof *free_ids);
    if (free_ids == NULL) {
        return gn_alloc_failed();
    }
    pool->free_ids = free_ids;
    pool->n_slots = n;
    return GN_OK;
}

/* Allocate pages until `n` are free. */
static gn_status create_until(gn_kv_pool *pool, uint32_t n)
{
    while (pool->n_free < n) {
        GN_REQUIRE(pool->n_created < pool->capacity, GN_E_NO_PAGES,
                   "the KV pool is full: %u pages of %zu bytes are in use", gn_kv_pool_in_use(pool),
                   pool->page_bytes);
        GN_TRY(grow(pool));
        unsigned char *memory = gn_alloc_aligned(pool->page_bytes, 1);
        if (memory == NULL) {
            return gn_alloc_failed();
        }
        /* Kernels read pages whole; what was never written is not used, but it is defined. */
        memset(memory, 0, pool->page_bytes);
        pool->memory[pool->n_created] = memory;
        pool->free_ids[pool->n_free++] = pool->n_created++;
    }
    return GN_OK;
}

gn_status gn_kv_take(gn_kv_pool *pool, uint32_t n_pages, uint32_t *out)
{
    GN_TRY(create_until(pool, n_pages));
    for (uint32_t i = 0; i < n_pages; i++) {
        if (pool->shuffle) {
            uint32_t j = (uint32_t)(gn_rng_next(&pool->rng) % pool->n_free);
            uint32_t last = pool->free_ids[pool->n_free - 1];
            pool->free_ids[pool->n_free - 1] = pool->free_ids[j];
            pool->free_ids[j] = last;
        }
        out[i] = pool->free_ids[--pool->n_free];
    }
    return GN_OK;
}

void gn_kv_give(gn_kv_pool *pool, uint32_t n_pages, const uint32_t *ids)
{
    for (uint32_t i = 0; i < n_pages; i++) {
        assert(ids[i] < pool->n_created && pool->n_free < pool->n_created);
        pool->free_ids[pool->n_free++] = ids[i];
    }
}

void *gn_kv_block(const gn_kv_pool *pool, uint32_t page, uint32_t layer, uint32_t value,
                  uint32_t head)
{
    assert(page < pool->n_created && layer < pool->shape.n_layer && value < 2 &&
           head < pool->shape.n_head_kv);
    size_t n = pool->shape.n_head_kv;
    size_t offset = layer * n * (pool->block_bytes[0] + pool->block_bytes[1]) +
                    value * n * pool->block_bytes[0] + head * pool->block_bytes[value];
    return pool->memory[page] + offset;
}
