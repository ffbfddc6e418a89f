/* The pool of KV pages. A page holds the keys and values of GN_KV_PAGE_TOK consecutive tokens of one
 * sequence, for all layers. Pages are taken by id, so that a sequence's pages may lie anywhere.
 *
 * A page has two parts, each with memory of its own: that of the layers that see everything, which it holds from
 * take to give, and that of the layers with a window, which it holds only while the window is over it. A model
 * where all layers are of one kind has pages of one part.
 *
 * Layout of a part, outermost first: [its layers, ascending][2: K, V][n_head_kv] blocks. A block is what the
 * attention kernels read in one stream: the codes of one head's keys or values and, where the type has them, the
 * scales (kernels/paged/paged.h). */
#ifndef GN_KV_PAGES_H
#define GN_KV_PAGES_H

#include "base/status.h"

#include <stdbool.h>
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
    uint32_t n_window; /* tokens that layers with a window look back at, the own one included */
    const bool
        *windowed; /* [n_layer] which have one; borrowed until a pool is created. NULL: none */
} gn_kv_shape;

typedef struct gn_kv_pool gn_kv_pool;

/* limit_bytes: the most that all pages together may take. Memory is allocated when first needed and kept for
 * reuse. GN_E_NOMEM; GN_E_ARG where the shape overflows or one page is larger than the limit. */
GN_MUST_USE gn_status gn_kv_pool_create(const gn_kv_shape *shape, uint64_t limit_bytes,
                                        gn_kv_pool **out);
/* All pages must have been given back. NULL is fine. */
void gn_kv_pool_destroy(gn_kv_pool *pool);

const gn_kv_shape *gn_kv_pool_shape(const gn_kv_pool *pool);
size_t gn_kv_page_bytes(const gn_kv_shape *shape);        /* of a whole page; 0: overflows */
size_t gn_kv_window_bytes(const gn_kv_shape *shape);      /* of those, the windowed layers' part */
uint32_t gn_kv_pool_capacity(const gn_kv_pool *pool);     /* whole pages that fit the limit */
uint32_t gn_kv_pool_in_use(const gn_kv_pool *pool);       /* pages, whole or not */
uint64_t gn_kv_pool_bytes_in_use(const gn_kv_pool *pool); /* of what those hold */

/* Take n_pages, without the windowed layers' part. One thread at a time; out [n_pages], written only on GN_OK.
 * GN_E_NO_PAGES: the limit (nothing taken); GN_E_NOMEM (nothing taken). */
GN_MUST_USE gn_status gn_kv_take(gn_kv_pool *pool, uint32_t n_pages, uint32_t *out);
/* One more holder of a page that is taken; with several nobody writes into it. */
void gn_kv_share(gn_kv_pool *pool, uint32_t page);
uint32_t gn_kv_n_holders(const gn_kv_pool *pool, uint32_t page);
/* Give back pages; the last holder's giving frees what they hold. */
void gn_kv_give(gn_kv_pool *pool, uint32_t n_pages, const uint32_t *ids);

/* Called where the limit is reached: give back at least one page that nobody else holds and return true, or false
 * where there is none. NULL: no such function. */
void gn_kv_pool_set_reclaim(gn_kv_pool *pool, bool (*reclaim)(void *ctx), void *ctx);

/* Have pages that are taken hold the windowed layers' part too; those that do are left alone. Codes as
 * gn_kv_take(), with nothing changed. */
GN_MUST_USE gn_status gn_kv_window_take(gn_kv_pool *pool, uint32_t n_pages, const uint32_t *ids);
/* Give back that part of one page, if it holds it and no other sequence holds the page (a prefix tree may). */
void gn_kv_window_give(gn_kv_pool *pool, uint32_t page);
/* Whether the page holds all that there is of a page: true without windowed layers. */
bool gn_kv_is_whole(const gn_kv_pool *pool, uint32_t page);

/* Tests: hand out pages in an order drawn from `seed` instead of first free first. 0 switches it off. */
void gn_kv_pool_shuffle(gn_kv_pool *pool, uint64_t seed);

/* Elements of a head as pages hold it: head_dim and zeros up to whole vectors. */
uint32_t gn_kv_padded_dim(const gn_kv_shape *shape);

/* A head's block in a page; `value` 0 is K, 1 is V. The page must be taken, with the layer's part. 64-byte
 * aligned. */
void *gn_kv_block(const gn_kv_pool *pool, uint32_t page, uint32_t layer, uint32_t value,
                  uint32_t head);

#endif
