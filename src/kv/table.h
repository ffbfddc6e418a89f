/* The pages of one sequence, in order of position: position p lies in page p / GN_KV_PAGE_TOK at row
 * p % GN_KV_PAGE_TOK. One thread at a time. */
#ifndef GN_KV_TABLE_H
#define GN_KV_TABLE_H

#include "kv/pages.h"

typedef struct gn_kv_table {
    gn_kv_pool *pool; /* borrowed */
    uint32_t *pages;  /* [n_pages] */
    uint32_t n_pages;
    uint32_t cap;
    uint32_t n_tok; /* positions [0, n_tok) hold keys and values */
} gn_kv_table;

void gn_kv_table_init(gn_kv_table *table, gn_kv_pool *pool);
void gn_kv_table_fini(gn_kv_table *table);

/* Make room for positions up to n_tok - 1. n_tok itself does not change: it is set when the forward pass
 * has written them. Codes as gn_kv_take(); on failure the table is as before. */
GN_MUST_USE gn_status gn_kv_table_reserve(gn_kv_table *table, uint32_t n_tok);

/* Keep the first n_tok positions and give back the pages that hold none of them. */
void gn_kv_table_truncate(gn_kv_table *table, uint32_t n_tok);

#endif
