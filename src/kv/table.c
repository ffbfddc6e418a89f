#include "kv/table.h"

#include "base/alloc.h"

#include <assert.h>

void gn_kv_table_init(gn_kv_table *table, gn_kv_pool *pool)
{
    *table = (gn_kv_table){.pool = pool};
}

void gn_kv_table_fini(gn_kv_table *table)
{
    if (table == NULL || table->pool == NULL) {
        return;
    }
    gn_kv_give(table->pool, table->n_pages, table->pages);
    gn_free(table->pages);
    *table = (gn_kv_table){0};
}

static uint32_t pages_for(uint32_t n_tok)
{
    return n_tok / GN_KV_PAGE_TOK + (n_tok % GN_KV_PAGE_TOK != 0);
}

gn_status gn_kv_table_reserve(gn_kv_table *table, uint32_t n_tok)
{
    uint32_t need = pages_for(n_tok);
    if (need <= table->n_pages) {
        return GN_OK;
    }
    if (need > table->cap) {
        uint32_t cap = need < 8 ? 8 : need + need / 2;
        uint32_t *pages = gn_realloc_array(table->pages, cap, sizeof *pages);
        if (pages == NULL) {
            return gn_alloc_failed();
        }
        table->pages = pages;
        table->cap = cap;
    }
    GN_TRY(gn_kv_take(table->pool, need - table->n_pages, table->pages + table->n_pages));
    table->n_pages = need;
    return GN_OK;
}

void gn_kv_table_truncate(gn_kv_table *table, uint32_t n_tok)
{
    assert(n_tok <= table->n_tok || table->n_tok == 0);
    uint32_t keep = pages_for(n_tok);
    if (keep < table->n_pages) {
        gn_kv_give(table->pool, table->n_pages - keep, table->pages + keep);
        table->n_pages = keep;
    }
    if (n_tok < table->n_tok) {
        table->n_tok = n_tok;
    }
}
