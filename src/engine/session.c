/* One sequence: its ids, its pages, and the logits of its last token.
 *
 * Invariants: (1) table.n_tok ≤ n_ids: ids [0, table.n_tok) are evaluated, the rest wait for the next call
 * that needs them; (2) last_valid means `last` holds the logits of id n_ids - 1 and all ids are evaluated;
 * (3) a failed call leaves the ids as they were, and evaluated as far as the pages of windowed layers
 * (kv/table.h) still allow. */
#include "engine/session_impl.h"

#include "base/alloc.h"
#include "engine/pass.h"

#include <assert.h>
#include <string.h>

#define DEFAULT_BATCH 256
#define MAX_BATCH     4096

static_assert(GN_NET_MAX_ROWS <= GN_KV_PASS_TOK, "a table has room for every pass");

struct gn_session {
    gn_model *model;
    gn_kv_table table;
    int32_t *ids; /* [cap] */
    size_t n_ids;
    size_t cap;
    size_t n_ctx;
    size_t n_batch;
    bool long_context;
    float *last; /* [n_vocab] */
    bool last_valid;
    bool claimed; /* by the gn_session_eval_many() that runs: finds a session that comes twice */
};

gn_status gn_session_create(gn_model *model, const gn_session_options *options, gn_session **out)
{
    gn_session_options chosen = options != NULL ? *options : (gn_session_options){0};
    GN_REQUIRE(model->net != NULL, GN_E_UNSUPPORTED,
               "%s: architecture \"%s\" is an encoder: it makes embeddings and can't generate",
               gn_source_path(model->source), model->info.architecture);
    GN_REQUIRE(chosen.n_ctx >= 0, GN_E_ARG, "n_ctx: found %d, expected 0 or more", chosen.n_ctx);
    GN_REQUIRE(chosen.n_batch >= 0 && chosen.n_batch <= MAX_BATCH, GN_E_ARG,
               "n_batch: found %d, expected 0 to %d", chosen.n_batch, MAX_BATCH);
    gn_session *s = gn_calloc(1, sizeof *s);
    if (s == NULL) {
        return gn_alloc_failed();
    }
    s->model = model;
    s->n_ctx = chosen.n_ctx != 0 ? (size_t)chosen.n_ctx : (size_t)model->info.n_ctx_train;
    s->n_batch = chosen.n_batch != 0 ? (size_t)chosen.n_batch : DEFAULT_BATCH;
    s->n_batch = s->n_batch < GN_NET_MAX_ROWS ? s->n_batch : GN_NET_MAX_ROWS;
    s->long_context = s->n_ctx > gn_net_hparams(model->net)->rope.n_ctx_orig;
    gn_kv_table_init(&s->table, model->kv);
    s->last = gn_alloc_array((size_t)model->info.n_vocab, sizeof *s->last);
    if (s->last == NULL) {
        gn_session_destroy(s);
        return gn_alloc_failed();
    }
    *out = s;
    return GN_OK;
}

void gn_session_destroy(gn_session *s)
{
    if (s == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&s->model->lock);
    gn_kv_table_fini(&s->table);
    (void)pthread_mutex_unlock(&s->model->lock);
    gn_free(s->ids);
    gn_free(s->last);
    gn_free(s);
}

uint64_t gn_session_bytes(const gn_model *model, size_t n_ctx)
{
    size_t page_ids = n_ctx / GN_KV_PAGE_TOK + 1;
    return sizeof(gn_session) + 2 * (uint64_t)model->info.n_vocab * sizeof(float) +
           n_ctx * sizeof(int32_t) + page_ids * sizeof(uint32_t);
}

gn_model *gn_session_model(const gn_session *s)
{
    return s->model;
}

size_t gn_session_n_ctx(const gn_session *s)
{
    return s->n_ctx;
}

size_t gn_session_length(const gn_session *s)
{
    return s->n_ids;
}

const int32_t *gn_session_tokens(const gn_session *s)
{
    return s->ids;
}

static gn_status check_ids(const gn_session *s, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        GN_REQUIRE(ids[i] >= 0 && ids[i] < s->model->info.n_vocab, GN_E_ARG,
                   "token %zu: found id %d, expected 0 to %d", i, ids[i],
                   s->model->info.n_vocab - 1);
    }
    return GN_OK;
}

/* Room for n ids in all, so that adding up to that many can't fail. */
static gn_status reserve_ids(gn_session *s, size_t n)
{
    if (n > s->cap) {
        size_t cap = n + s->n_ids / 2 + 64;
        int32_t *grown = gn_realloc_array(s->ids, cap, sizeof *grown);
        if (grown == NULL) {
            return gn_alloc_failed();
        }
        s->ids = grown;
        s->cap = cap;
    }
    return GN_OK;
}

static gn_status append(gn_session *s, const int32_t *ids, size_t n)
{
    GN_REQUIRE(n <= s->n_ctx && s->n_ids <= s->n_ctx - n, GN_E_LIMIT,
               "the context is limited to %zu tokens: %zu are there, %zu more were given", s->n_ctx,
               s->n_ids, n);
    GN_TRY(reserve_ids(s, s->n_ids + n));
    memcpy(s->ids + s->n_ids, ids, n * sizeof *ids);
    s->n_ids += n;
    return GN_OK;
}

/* Evaluate one batch from table.n_tok on; the rows from `first_out` (an index of ids) on give logits. */
static gn_status run_batch(gn_session *s, size_t m, size_t first_out, float *logits)
{
    /* The first batch takes all pages; the others what windows see next, in place of what they have passed. */
    GN_TRY(gn_kv_table_reserve(&s->table, (uint32_t)s->n_ids));
    gn_row *rows = s->model->rows;
    size_t start = s->table.n_tok;
    size_t n_out = 0;
    for (size_t i = 0; i < m; i++) {
        rows[i] = (gn_row){.id = s->ids[start + i],
                           .pos = (uint32_t)(start + i),
                           .table = &s->table,
                           .long_context = s->long_context,
                           .wants_output = start + i >= first_out};
        n_out += rows[i].wants_output;
    }
    gn_engine_pass(s->model, m, logits);
    gn_kv_table_advance(&s->table, (uint32_t)(start + m));
    if (!gn_engine_all_finite(logits, n_out * (size_t)s->model->info.n_vocab)) {
        return gn_engine_nonfinite(s->model);
    }
    return GN_OK;
}

/* Evaluate every id that is not; logits gets the rows of the last n_logits ids, all of them among those. */
static gn_status catch_up(gn_session *s, float *logits, size_t n_logits)
{
    size_t before = s->table.n_tok;
    size_t first_out = s->n_ids - n_logits;
    assert(first_out >= before);
    (void)pthread_mutex_lock(&s->model->lock);
    gn_status status = GN_OK;
    while (status == GN_OK && s->table.n_tok < s->n_ids) {
        size_t start = s->table.n_tok;
        size_t m = s->n_ids - start < s->n_batch ? s->n_ids - start : s->n_batch;
        float *out = logits;
        if (logits != NULL && start > first_out) {
            out = logits + (start - first_out) * (size_t)s->model->info.n_vocab;
        }
        status = run_batch(s, m, first_out, out);
    }
    if (status != GN_OK) {
        gn_kv_table_truncate(&s->table, (uint32_t)before);
    }
    (void)pthread_mutex_unlock(&s->model->lock);
    return status;
}

gn_status gn_session_eval(gn_session *s, const int32_t *ids, size_t n, float *logits,
                          size_t n_logits)
{
    GN_REQUIRE(n >= 1 && n_logits <= n && (logits != NULL || n_logits == 0), GN_E_ARG,
               "gn_session_eval: %zu tokens with %zu rows of logits", n, n_logits);
    GN_TRY(check_ids(s, ids, n));
    size_t before = s->n_ids;
    GN_TRY(append(s, ids, n));
    gn_status status = catch_up(s, logits, n_logits);
    if (status != GN_OK) {
        s->n_ids = before;
        return status;
    }
    size_t n_vocab = (size_t)s->model->info.n_vocab;
    s->last_valid = n_logits != 0;
    if (s->last_valid) {
        memcpy(s->last, logits + (n_logits - 1) * n_vocab, n_vocab * sizeof *logits);
    }
    return GN_OK;
}

/* --- many sessions in one pass --- */

/* Evaluate the last id of sessions [n ≤ GN_NET_MAX_ROWS], the only one of each that is not. Under lock. */
static gn_status run_lasts(gn_session *const *sessions, size_t n, float *logits)
{
    gn_model *model = sessions[0]->model;
    for (size_t i = 0; i < n; i++) {
        gn_session *s = sessions[i];
        assert(s->table.n_tok + 1 == s->n_ids);
        model->rows[i] = (gn_row){.id = s->ids[s->n_ids - 1],
                                  .pos = s->table.n_tok,
                                  .table = &s->table,
                                  .long_context = s->long_context,
                                  .wants_output = true};
    }
    gn_engine_pass(model, n, logits);
    for (size_t i = 0; i < n; i++) {
        gn_kv_table_advance(&sessions[i]->table, sessions[i]->table.n_tok + 1);
    }
    if (!gn_engine_all_finite(logits, n * (size_t)model->info.n_vocab)) {
        return gn_engine_nonfinite(model);
    }
    return GN_OK;
}

/* Take pages for all first, so that the passes can fail only by what the weights are. */
static gn_status run_many(gn_session *const *sessions, size_t n, float *logits)
{
    gn_model *model = sessions[0]->model;
    gn_status status = GN_OK;
    (void)pthread_mutex_lock(&model->lock);
    for (size_t i = 0; status == GN_OK && i < n; i++) {
        status = gn_kv_table_reserve(&sessions[i]->table, (uint32_t)sessions[i]->n_ids);
    }
    for (size_t done = 0; status == GN_OK && done < n;) {
        size_t m = n - done < GN_NET_MAX_ROWS ? n - done : GN_NET_MAX_ROWS;
        status = run_lasts(sessions + done, m, logits + done * (size_t)model->info.n_vocab);
        done += m;
    }
    for (size_t i = 0; status != GN_OK && i < n; i++) {
        gn_kv_table_truncate(&sessions[i]->table, (uint32_t)sessions[i]->n_ids - 1);
    }
    (void)pthread_mutex_unlock(&model->lock);
    return status;
}

/* Forget the evaluation of the last id, which is evaluated again then (to the same bits). Pages are kept. */
static void forget_last(gn_session *s)
{
    (void)pthread_mutex_lock(&s->model->lock);
    s->table.n_tok = gn_kv_table_usable(&s->table, s->table.n_tok - 1);
    (void)pthread_mutex_unlock(&s->model->lock);
    s->last_valid = false;
}

/* Leave one id of s to evaluate, the last: those before it that wait are evaluated. */
static gn_status leave_last(gn_session *s)
{
    if (s->table.n_tok == s->n_ids) {
        forget_last(s);
    }
    if (s->table.n_tok + 1 == s->n_ids) {
        return GN_OK;
    }
    s->n_ids--;
    gn_status status = catch_up(s, NULL, 0);
    s->n_ids++;
    return status;
}

static gn_status check_many(gn_session *const *sessions, const int32_t *ids, size_t n)
{
    GN_REQUIRE(n >= 1, GN_E_ARG, "gn_session_eval_many: no sessions");
    for (size_t i = 0; i < n; i++) {
        gn_session *s = sessions[i];
        GN_REQUIRE(s->model == sessions[0]->model, GN_E_ARG,
                   "session %zu: found another model than session 0 has", i);
        GN_REQUIRE(!s->claimed, GN_E_ARG, "session %zu: found twice, expected once", i);
        s->claimed = true;
        if (ids != NULL) {
            GN_TRY(check_ids(s, &ids[i], 1));
        } else {
            GN_REQUIRE(s->n_ids >= 1, GN_E_ARG, "session %zu: found no token", i);
        }
    }
    return GN_OK;
}

gn_status gn_session_eval_many(gn_session *const *sessions, const int32_t *ids, size_t n,
                               float *logits)
{
    gn_status status = check_many(sessions, ids, n);
    for (size_t i = 0; i < n; i++) {
        sessions[i]->claimed = false;
    }
    GN_TRY(status);
    size_t n_appended = 0;
    for (; status == GN_OK && ids != NULL && n_appended < n; n_appended++) {
        status = append(sessions[n_appended], &ids[n_appended], 1);
        if (status != GN_OK) {
            break;
        }
    }
    for (size_t i = 0; status == GN_OK && i < n; i++) {
        status = leave_last(sessions[i]);
    }
    if (status == GN_OK) {
        status = run_many(sessions, n, logits);
    }
    for (size_t i = 0; status != GN_OK && i < n_appended; i++) {
        sessions[i]->n_ids--;
    }
    GN_TRY(status);
    size_t n_vocab = (size_t)sessions[0]->model->info.n_vocab;
    for (size_t i = 0; i < n; i++) {
        memcpy(sessions[i]->last, logits + i * n_vocab, n_vocab * sizeof *logits);
        sessions[i]->last_valid = true;
    }
    return GN_OK;
}

gn_status gn_session_truncate(gn_session *s, size_t n)
{
    GN_REQUIRE(n <= s->n_ids, GN_E_ARG, "gn_session_truncate: found %zu, expected at most %zu", n,
               s->n_ids);
    if (n < s->n_ids) {
        s->n_ids = n;
        s->last_valid = false;
        if (n < s->table.n_tok) {
            (void)pthread_mutex_lock(&s->model->lock);
            gn_kv_table_truncate(&s->table, (uint32_t)n);
            (void)pthread_mutex_unlock(&s->model->lock);
        }
    }
    return GN_OK;
}

/* Pages for n ids, of which the first *common are as they were: fewer where windows have passed what those would
 * be gone on from. The table then ends with those. */
static gn_status reserve_pages(gn_session *s, size_t n, size_t *common)
{
    gn_kv_table *table = &s->table;
    (void)pthread_mutex_lock(&s->model->lock);
    uint32_t before = table->n_tok;
    table->n_tok = gn_kv_table_usable(table, (uint32_t)*common);
    gn_status status = gn_kv_table_reserve(table, (uint32_t)n);
    *common = table->n_tok;
    if (status != GN_OK) {
        table->n_tok = before;
    }
    (void)pthread_mutex_unlock(&s->model->lock);
    return status;
}

/* Pages beyond the tokens evaluated. */
static void give_back_pages(gn_session *s)
{
    (void)pthread_mutex_lock(&s->model->lock);
    gn_kv_table_truncate(&s->table, s->table.n_tok);
    (void)pthread_mutex_unlock(&s->model->lock);
}

gn_status gn_session_set(gn_session *s, const int32_t *ids, size_t n, size_t *n_reused)
{
    GN_REQUIRE(n >= 1, GN_E_ARG, "gn_session_set: no tokens");
    GN_REQUIRE(n <= s->n_ctx, GN_E_LIMIT, "the context is limited to %zu tokens, %zu were given",
               s->n_ctx, n);
    GN_TRY(check_ids(s, ids, n));
    size_t common = 0;
    while (common < s->table.n_tok && common < n - 1 && ids[common] == s->ids[common]) {
        common++;
    }
    /* All memory first, so that a session that can't have it keeps what it holds. */
    GN_TRY(reserve_ids(s, n));
    GN_TRY(reserve_pages(s, n, &common));
    s->last_valid = false;
    s->n_ids = common;
    GN_TRY(append(s, ids + common, n - common));
    gn_status status = catch_up(s, s->last, 1);
    if (status != GN_OK) {
        s->n_ids = common;
        return status;
    }
    give_back_pages(s);
    s->last_valid = true;
    if (n_reused != NULL) {
        *n_reused = common;
    }
    return GN_OK;
}

/* Make `last` hold the logits of the last id. */
static gn_status need_last(gn_session *s)
{
    if (s->last_valid) {
        return GN_OK;
    }
    if (s->table.n_tok == s->n_ids) {
        forget_last(s); /* it was evaluated without logits */
    }
    GN_TRY(catch_up(s, s->last, 1));
    s->last_valid = true;
    return GN_OK;
}

gn_status gn_session_last(gn_session *s, const float **logits)
{
    GN_REQUIRE(s->n_ids >= 1, GN_E_STATE, "gn_session_next: the session holds no token");
    GN_REQUIRE(s->n_ids < s->n_ctx, GN_E_LIMIT, "the context of %zu tokens is full", s->n_ctx);
    GN_TRY(reserve_ids(s, s->n_ids + 1));
    GN_TRY(need_last(s));
    *logits = s->last;
    return GN_OK;
}

void gn_session_push(gn_session *s, int32_t id)
{
    assert(s->n_ids < s->cap && s->n_ids < s->n_ctx);
    s->ids[s->n_ids++] = id;
    s->last_valid = false;
}

gn_status gn_session_append(gn_session *s, const int32_t *ids, size_t n)
{
    GN_TRY(append(s, ids, n));
    s->last_valid = false;
    return GN_OK;
}

gn_status gn_session_append_eval(gn_session *s, const int32_t *ids, size_t n, float *rows)
{
    GN_REQUIRE(s->n_ids >= 1, GN_E_STATE, "gn_session_append_eval: the session holds no token");
    size_t n_vocab = (size_t)s->model->info.n_vocab;
    size_t before = s->n_ids;
    GN_TRY(append(s, ids, n));
    gn_status status;
    if (s->last_valid) {
        memcpy(rows, s->last, n_vocab * sizeof *rows);
        status = catch_up(s, rows + n_vocab, n);
    } else {
        if (s->table.n_tok == before) {
            s->table.n_tok--; /* as in need_last() */
        }
        status = catch_up(s, rows, n + 1);
    }
    if (status != GN_OK) {
        s->n_ids = before;
        return status;
    }
    memcpy(s->last, rows + n * n_vocab, n_vocab * sizeof *rows);
    s->last_valid = true;
    return GN_OK;
}

gn_status gn_session_next(gn_session *s, gn_sampler *sampler, int32_t *id, float *logprob)
{
    /* What can fail comes before the choice, which moves the sampler on. */
    const float *last = NULL;
    GN_TRY(gn_session_last(s, &last));
    int32_t chosen = -1;
    GN_TRY(gn_sampler_pick(sampler, last, NULL, &chosen));
    GN_TRY(gn_sampler_accept(sampler, chosen, true));
    if (logprob != NULL) {
        *logprob =
            (float)((double)last[chosen] - gn_sample_logsumexp(last, s->model->info.n_vocab));
    }
    gn_session_push(s, chosen);
    *id = chosen;
    return GN_OK;
}
