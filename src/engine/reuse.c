/* What requests find of each other's keys and values: the prefix tree between the scheduler and the pages.
 *
 * Pages go into the tree as soon as they are full, so that requests which come while the first still runs find them.
 * Layers with a window are the exception: their pages go there when the request gives them back, since a page in the
 * tree that a request could not give its passed part back of would hold it for as long as it runs. */
#include "engine/engine_impl.h"

/* Sequences share where salt and way of computing are the same. */
static uint64_t root_of(const gn_request *r)
{
    return r->salt * 2 + (r->long_context ? 1 : 0);
}

static bool has_windows(const gn_engine *e)
{
    return gn_kv_pool_shape(e->model->kv)->windowed != NULL;
}

/* Log-probabilities of the prompt need every row of it. */
static bool needs_all_rows(const gn_request *r)
{
    return r->n_prompt_top >= 0 && r->n_prompt_logprobs < r->n_prompt;
}

void gn_engine_reuse_attach(gn_engine *e, gn_request *r)
{
    if (e->prefix == NULL || r->no_cache || needs_all_rows(r)) {
        return;
    }
    (void)gn_kv_prefix_attach(e->prefix, root_of(r), r->ids, (uint32_t)r->n_ids, &r->table,
                              &r->place);
}

void gn_engine_reuse_keep(gn_engine *e, gn_request *r, bool leaves)
{
    if (e->prefix == NULL || r->no_cache || (!leaves && has_windows(e))) {
        return;
    }
    gn_kv_prefix_insert(e->prefix, root_of(r), r->ids, &r->table, &r->place);
}

void gn_engine_reuse_drop(gn_request *r)
{
    gn_kv_table_truncate(&r->table, 0);
    r->place = (gn_kv_place){0};
}

bool gn_engine_reuse_has_room(const gn_engine *e, const gn_request *r)
{
    const gn_kv_pool *pool = e->model->kv;
    uint32_t free = gn_kv_pool_capacity(pool) - gn_kv_pool_in_use(pool);
    uint32_t all = (uint32_t)((r->n_ids + GN_KV_PAGE_TOK - 1) / GN_KV_PAGE_TOK);
    uint32_t need = all - r->table.n_pages;
    uint32_t n_idle = 0;
    if (need <= free || has_windows(e) || e->prefix == NULL) {
        return true; /* or the pool knows */
    }
    (void)gn_kv_prefix_count(e->prefix, &n_idle);
    return need <= free + n_idle;
}
