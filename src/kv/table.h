/* The pages of one sequence, in order of position: position p lies in page p / GN_KV_PAGE_TOK at row
 * p % GN_KV_PAGE_TOK. One thread at a time.
 *
 * What layers with a window can't see any more is given back as the sequence goes on, all but the last
 * GN_KV_KEEP tokens of it, so that taking back a few tokens costs nothing. Taking back more leaves keys and values
 * that can't be gone on from: then they are computed again, from as far back as it takes. */
#ifndef GN_KV_TABLE_H
#define GN_KV_TABLE_H

#include "kv/pages.h"

#define GN_KV_PASS_TOK 256u /* most tokens of a sequence that one forward pass writes */
#define GN_KV_KEEP     256u

typedef struct gn_kv_table {
    gn_kv_pool *pool; /* borrowed */
    uint32_t *pages;  /* [n_pages] */
    uint32_t n_pages;
    uint32_t cap;
    uint32_t n_tok; /* positions [0, n_tok) hold keys and values, as far as they are still seen */
    uint32_t n_passed; /* pages [0, n_passed) have given back what windows passed */
} gn_kv_table;

void gn_kv_table_init(gn_kv_table *table, gn_kv_pool *pool);
void gn_kv_table_fini(gn_kv_table *table);

/* Make room for positions up to n_tok - 1; layers with a window get it for the next GN_KV_PASS_TOK positions from
 * table->n_tok on, so call it again before each pass. Where the first call succeeds, and nobody else takes
 * pages before the last, so do the others. n_tok itself does not change: gn_kv_table_advance(). Codes as
 * gn_kv_take(); on failure the table is as before. */
GN_MUST_USE gn_status gn_kv_table_reserve(gn_kv_table *table, uint32_t n_tok);

/* Begin an empty table with n_pages full pages that others hold too, as far as a forward pass can go on from them;
 * table->n_tok then says how far. GN_E_NOMEM. */
GN_MUST_USE gn_status gn_kv_table_share(gn_kv_table *table, uint32_t n_pages,
                                        const uint32_t *pages);

/* The forward pass has written positions up to n_tok - 1, at least table->n_tok. */
void gn_kv_table_advance(gn_kv_table *table, uint32_t n_tok);

/* The most positions, n_tok ≤ table->n_tok or fewer, that a forward pass can go on from. */
uint32_t gn_kv_table_usable(const gn_kv_table *table, uint32_t n_tok);

/* Keep the first n_tok positions, or as many of them as are usable, and give back the pages that hold none of
 * them; n_tok ≤ table->n_tok, which then says how many. */
void gn_kv_table_truncate(gn_kv_table *table, uint32_t n_tok);

/* The most bytes of pages that a sequence of n_tok tokens takes on its way there. */
uint64_t gn_kv_table_bytes(const gn_kv_shape *shape, uint32_t n_tok);

#endif
