/* The pool of KV pages. A page holds the keys and values of GN_KV_PAGE_TOK consecutive tokens of one
 * sequence, for all layers. Pages are taken by id, so that a sequence's pages may lie anywhere.
 *
 * Layout of a page, outermost first: [n_layer][2: K, V][n_head_kv] blocks. A block is what the attention kernels
 * read in one stream: the codes of one head's keys or values and, where the type has them, the scales
 * (kernels/paged/paged.h). */
#ifndef GN_KV_PAGES_H
#define GN_KV_PAGES_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define GN_KV_PAGE_TOK 64u

typedef enum gn_kv_type {
    GN_KV_F16,
    GN_KV_F32,
    GN_KV_Q8,  /* 8-bit integers, a scale a token; of the head's Hadamard transform, as all below */
    GN_KV_FP8, /* E4M3, a scale a token */
    GN_KV_Q4   /* keys as in Q8; values in 4-bit integers with a scale for 32 */
} gn_kv_type;

typedef struct gn_kv_shape {
    uint32_t n_layer;
    uint32_t n_head_kv;
    uint32_t head_dim;
    gn_kv_type type;
} gn_kv_shape;

typedef struct gn_kv_pool gn_kv_pool;

/* limit_bytes: the most that all pages together may take. Pages are allocated when first taken and kept
 * for reuse. GN_E_NOMEM; GN_E_ARG where the shape overflows or one page is larger than the limit. */
GN_MUST_USE gn_status gn_kv_pool_create(const gn_kv_shape *shape, uint64_t limit_bytes,
                                        gn_kv_pool **out);
/* All pages must have been given back. NULL is fine. */
void gn_kv_pool_destroy(gn_kv_pool *pool);

const gn_kv_shape *gn_kv_pool_shape(const gn_kv_pool *pool);
size_t gn_kv_page_bytes(const gn_kv_shape *shape);
uint32_t gn_kv_pool_capacity(const gn_kv_pool *pool); /* pages that fit the limit */
uint32_t gn_kv_pool_in_use(const gn_kv_pool *pool);

/* Take n_pages. One thread at a time; out [n_pages], written only on GN_OK.
 * GN_E_NO_PAGES: the limit (nothing taken); GN_E_NOMEM (nothing taken). */
GN_MUST_USE gn_status gn_kv_take(gn_kv_pool *pool, uint32_t n_pages, uint32_t *out);
void gn_kv_give(gn_kv_pool *pool, uint32_t n_pages, const uint32_t *ids);

/* Tests: hand out pages in an order drawn from `seed` instead of first free first. 0 switches it off. */
void gn_kv_pool_shuffle(gn_kv_pool *pool, uint64_t seed);

/* Elements of a head as pages hold it: head_dim and zeros up to whole vectors. */
uint32_t gn_kv_padded_dim(const gn_kv_shape *shape);

/* A head's block in a page; `value` 0 is K, 1 is V. The page must be taken. 64-byte aligned. */
void *gn_kv_block(const gn_kv_pool *pool, uint32_t page, uint32_t layer, uint32_t value,
                  uint32_t head);

#endif
