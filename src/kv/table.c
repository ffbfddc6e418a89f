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

static bool has_windows(const gn_kv_table *table)
{
    return gn_kv_pool_shape(table->pool)->windowed != NULL;
}

/* The first page that layers with a window see from position n_tok. */
static uint32_t first_seen(const gn_kv_table *table, uint32_t n_tok)
{
    uint32_t window = gn_kv_pool_shape(table->pool)->n_window;
    return n_tok >= window ? (n_tok - window + 1) / GN_KV_PAGE_TOK : 0;
}

/* The first page that keeps the windowed layers' part when n_tok tokens are there. */
static uint32_t first_kept(const gn_kv_table *table, uint32_t n_tok)
{
    return n_tok > GN_KV_KEEP ? first_seen(table, n_tok - GN_KV_KEEP) : 0;
}

/* Pages with the windowed layers' part that reach from the first kept to the end of the next pass, wherever those
 * lie in their pages. */
static uint64_t most_kept(const gn_kv_shape *shape)
{
    uint64_t n_tok = (uint64_t)shape->n_window - 1 + GN_KV_KEEP + GN_KV_PASS_TOK;
    return (n_tok + 2 * (GN_KV_PAGE_TOK - 1)) / GN_KV_PAGE_TOK;
}

/* What the windowed layers need next, and with it all they will need up to the table's last page: as much at a
 * time as at the end of the way there. */
static gn_status reserve_windows(gn_kv_table *table)
{
    if (!has_windows(table)) {
        return GN_OK;
    }
    uint32_t begin = table->n_tok / GN_KV_PAGE_TOK;
    uint64_t end = first_kept(table, table->n_tok) + most_kept(gn_kv_pool_shape(table->pool));
    end = end < table->n_pages ? end : table->n_pages;
    if (begin < end) {
        GN_TRY(gn_kv_window_take(table->pool, (uint32_t)end - begin, table->pages + begin));
    }
    table->n_passed = table->n_passed < begin ? table->n_passed : begin;
    return GN_OK;
}

static gn_status grow(gn_kv_table *table, uint32_t need)
{
    if (need > table->cap) {
        uint32_t cap = need < 8 ? 8 : need + need / 2;
        uint32_t *pages = gn_realloc_array(table->pages, cap, sizeof *pages);
        if (pages == NULL) {
            return gn_alloc_failed();
        }
        table->pages = pages;
        table->cap = cap;
    }
    return GN_OK;
}

gn_status gn_kv_table_share(gn_kv_table *table, uint32_t n_pages, const uint32_t *pages)
{
    assert(table->n_pages == 0 && table->n_tok == 0);
    GN_TRY(grow(table, n_pages));
    for (uint32_t i = 0; i < n_pages; i++) {
        gn_kv_share(table->pool, pages[i]);
        table->pages[i] = pages[i];
    }
    table->n_pages = n_pages;
    table->n_tok = n_pages * GN_KV_PAGE_TOK;
    gn_kv_table_truncate(table, table->n_tok);
    gn_kv_table_advance(table, table->n_tok);
    return GN_OK;
}

gn_status gn_kv_table_reserve(gn_kv_table *table, uint32_t n_tok)
{
    uint32_t before = table->n_pages;
    uint32_t need = pages_for(n_tok);
    GN_TRY(grow(table, need));
    if (need > before) {
        GN_TRY(gn_kv_take(table->pool, need - before, table->pages + before));
        table->n_pages = need;
    }
    gn_status status = reserve_windows(table);
    if (status != GN_OK) {
        gn_kv_give(table->pool, table->n_pages - before, table->pages + before);
        table->n_pages = before;
    }
    return status;
}

void gn_kv_table_advance(gn_kv_table *table, uint32_t n_tok)
{
    assert(n_tok >= table->n_tok && pages_for(n_tok) <= table->n_pages);
    table->n_tok = n_tok;
    if (!has_windows(table)) {
        return;
    }
    for (uint32_t end = first_kept(table, n_tok); table->n_passed < end; table->n_passed++) {
        gn_kv_window_give(table->pool, table->pages[table->n_passed]);
    }
}

uint32_t gn_kv_table_usable(const gn_kv_table *table, uint32_t n_tok)
{
    assert(n_tok <= table->n_tok);
    while (has_windows(table)) {
        uint32_t first = first_seen(table, n_tok);
        uint32_t i = pages_for(n_tok);
        while (i > first && gn_kv_is_whole(table->pool, table->pages[i - 1])) {
            i--;
        }
        if (i <= first) {
            break;
        }
        n_tok = (i - 1) * GN_KV_PAGE_TOK; /* what lies in page i - 1 is not there */
    }
    return n_tok;
}

void gn_kv_table_truncate(gn_kv_table *table, uint32_t n_tok)
{
    table->n_tok = gn_kv_table_usable(table, n_tok);
    uint32_t keep = pages_for(table->n_tok);
    if (keep < table->n_pages) {
        gn_kv_give(table->pool, table->n_pages - keep, table->pages + keep);
        table->n_pages = keep;
    }
    table->n_passed = table->n_passed < keep ? table->n_passed : keep;
}

uint64_t gn_kv_table_bytes(const gn_kv_shape *shape, uint32_t n_tok)
{
    uint64_t window = gn_kv_window_bytes(shape);
    uint64_t n_pages = pages_for(n_tok);
    uint64_t n_kept = window != 0 && most_kept(shape) < n_pages ? most_kept(shape) : n_pages;
    return n_pages * (gn_kv_page_bytes(shape) - window) + n_kept * window;
}
