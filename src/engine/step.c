/* A step: the forward pass, then for each row whose logits are wanted the choice of a token, spread over the pool
 * (a choice reads the whole vocabulary several times), then one after another what follows from it. */
#include "base/alloc.h"
#include "engine/engine_impl.h"
#include "engine/pass.h"
#include "os/clock.h"

#include <assert.h>

/* --- on the pool's threads: of a request, several items may be at work; only the one that chooses changes it, and
 * none of what the others read --- */

static gn_status note_logprob(gn_request *r, size_t pos, const float *logits, int32_t n_vocab)
{
    int32_t id = r->ids[pos + 1];
    int32_t n_top = r->n_prompt_top < n_vocab ? r->n_prompt_top : n_vocab;
    gn_logprob *top = r->prompt_top + (pos + 1) * (size_t)r->n_prompt_top;
    r->prompt_logprobs[pos + 1] = (gn_token_logprob){
        .id = id,
        .logprob = (float)((double)logits[id] - gn_sample_logsumexp(logits, n_vocab)),
        .top = n_top > 0 ? top : NULL,
        .n_top = n_top};
    return n_top > 0 ? gn_sample_top_logprobs(logits, n_vocab, n_top, top) : GN_OK;
}

static gn_status choose(gn_engine_item *item, const float *logits)
{
    gn_request *r = item->request;
    gn_output_token token;
    GN_TRY(gn_output_next(r->output, logits, r->n_ctx - r->n_ids, &token));
    item->id = token.id;
    item->ended = token.ended;
    item->finish = token.finish;
    item->stop_index = token.stop_index;
    if (token.id >= 0) {
        item->event = gn_engine_event_token(&token);
        return item->event != NULL ? GN_OK : gn_alloc_failed();
    }
    return GN_OK;
}

static void run_items(void *ctx, size_t begin, size_t end, int worker)
{
    const gn_engine *e = ctx;
    int32_t n_vocab = e->model->info.n_vocab;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        gn_engine_item *item = &e->items[i];
        const float *logits = e->logits + i * (size_t)n_vocab;
        if (item->status != GN_OK) {
            continue;
        }
        if (!gn_engine_all_finite(logits, (size_t)n_vocab)) {
            item->status = GN_E_FORMAT; /* what to say of it is found out by the step loop */
            continue;
        }
        item->status = item->chooses ? choose(item, logits)
                                     : note_logprob(item->request, item->pos, logits, n_vocab);
        if (item->status != GN_OK) {
            gn_engine_request_keep_message(item->request);
        }
    }
}

/* --- what follows --- */

/* Say which weight is to blame; it is looked for once, since that reads all of them. */
static void explain_nonfinite(gn_engine *e, gn_request *r)
{
    if (r->message != NULL) {
        return;
    }
    if (e->nonfinite == NULL) {
        (void)gn_engine_nonfinite(e->model);
        e->nonfinite = gn_strdup(gn_error_message());
    }
    if (e->nonfinite != NULL) {
        gn_base_record("%s", e->nonfinite);
        gn_engine_request_keep_message(r);
    }
}

static gn_status tell_prompt(gn_request *r)
{
    if (r->prompt_told) {
        return GN_OK;
    }
    gn_event_node *node = gn_alloc(sizeof *node);
    if (node == NULL) {
        return gn_alloc_failed();
    }
    gn_engine_request_post_prompt(r, node);
    return GN_OK;
}

/* No token more: the limit is known when the last one is chosen, without another pass. */
static bool is_full(const gn_request *r)
{
    return r->n_ids == r->n_ctx ||
           (r->max_tokens >= 0 && gn_output_n_tokens(r->output) >= r->max_tokens);
}

static void follow(gn_engine *e, gn_engine_item *item)
{
    gn_request *r = item->request;
    if (!item->chooses) {
        r->n_prompt_logprobs = item->pos + 2;
        return;
    }
    gn_status status = tell_prompt(r);
    if (status != GN_OK) {
        gn_free(item->event);
        gn_engine_request_keep_message(r);
        gn_engine_sched_end(e, r, status, GN_FINISH_CANCELLED, -1);
        return;
    }
    if (item->id >= 0) {
        gn_engine_request_append(r, item->id);
        gn_engine_request_post_token(r, item->event);
        e->n_chosen++;
    }
    if (item->ended) {
        gn_engine_sched_end(e, r, GN_OK, item->finish, item->stop_index);
    } else if (is_full(r)) {
        gn_engine_sched_end(e, r, GN_OK, GN_FINISH_LENGTH, -1);
    } else {
        gn_engine_request_note(r, GN_REQUEST_DECODE);
    }
}

static bool is_running(const gn_engine *e, const gn_request *r)
{
    for (uint32_t i = 0; i < e->n_running; i++) {
        if (e->running[i] == r) {
            return true;
        }
    }
    return false;
}

static void follow_all(gn_engine *e)
{
    for (uint32_t i = 0; i < e->n_items; i++) {
        gn_engine_item *item = &e->items[i];
        if (!is_running(e, item->request)) {
            continue; /* a row of its prompt, before this one, has ended it */
        }
        if (item->status == GN_OK) {
            follow(e, item);
            continue;
        }
        if (item->status == GN_E_FORMAT) {
            explain_nonfinite(e, item->request);
        }
        gn_free(item->event);
        gn_engine_sched_end(e, item->request, item->status, GN_FINISH_CANCELLED, -1);
    }
}

/* Rows of one sequence are neighbours: its table moves on past all of them. */
static void advance(gn_engine *e)
{
    const gn_row *rows = e->model->rows;
    for (uint32_t i = 0; i < e->n_rows; i++) {
        if (i + 1 == e->n_rows || rows[i + 1].table != rows[i].table) {
            gn_kv_table_advance(rows[i].table, rows[i].pos + 1);
        }
    }
}

/* Room for the tokens that are chosen now: others read a request's ids meanwhile. */
static void reserve_ids(gn_engine *e)
{
    for (uint32_t i = 0; i < e->n_items; i++) {
        gn_engine_item *item = &e->items[i];
        if (item->chooses) {
            item->status = gn_engine_request_reserve(item->request);
        }
        if (item->status != GN_OK) {
            gn_engine_request_keep_message(item->request);
        }
    }
}

static void note_progress(gn_engine *e)
{
    for (uint32_t i = 0; i < e->n_running; i++) {
        gn_engine_reuse_keep(e, e->running[i], false);
        gn_engine_request_note(e->running[i], e->running[i]->info.state);
    }
}

void gn_engine_step(gn_engine *e)
{
    uint64_t start = gn_os_now_ns();
    e->n_chosen = 0;
    gn_engine_pass(e->model, e->n_rows, e->n_items != 0 ? e->logits : NULL);
    advance(e);
    note_progress(e);
    reserve_ids(e);
    gn_os_pool_run(e->model->pool, e->n_items, 1, run_items, e);
    follow_all(e);
    uint64_t ns = gn_os_now_ns() - start;
    gn_engine_pace_add(&e->pace, e->n_decode_rows, e->n_prompt_rows, ns);
    (void)pthread_mutex_lock(&e->lock);
    e->stats.n_steps++;
    e->stats.n_rows += e->n_rows;
    e->stats.n_prompt_tok += e->n_prompt_rows;
    e->stats.n_generated_tok += e->n_chosen;
    e->stats.busy_ns += ns;
    (void)pthread_mutex_unlock(&e->lock);
}
