/* The step loop's thread, and the calls on an engine as a whole. The loop sleeps when nothing waits or runs; where
 * what waits finds no pages although nothing runs (sessions beside the engine hold them), it looks again
 * every PAGES_MS. */
#include "base/alloc.h"
#include "engine/engine_impl.h"
#include "os/clock.h"

#include <assert.h>

#define DEFAULT_WAITING 256u
#define DEFAULT_RUNNING 64u
#define PROMPT_ITEMS                                                                               \
    32u /* rows of logits for log-probabilities of prompts, beside one for each that runs */
#define PAGES_MS 20
#define COUNT_NS 50000000u

/* --- the loop --- */

/* Counting reads the whole tree: now and then is enough for those who look. */
static void note_pages(gn_engine *e)
{
    uint64_t now = gn_os_now_ns();
    uint32_t n_idle = 0;
    if (e->n_running != 0 && now - e->counted_ns < COUNT_NS) {
        return;
    }
    e->counted_ns = now;
    if (e->prefix != NULL) {
        (void)gn_kv_prefix_count(e->prefix, &n_idle);
    }
    (void)pthread_mutex_lock(&e->lock);
    e->stats.n_pages_used = gn_kv_pool_in_use(e->model->kv) - n_idle;
    e->stats.n_pages_cached = n_idle;
    (void)pthread_mutex_unlock(&e->lock);
}

/* One step, if there is anything to compute. */
static bool take_turn(gn_engine *e)
{
    if (e->n_running == 0 && gn_engine_sched_n_waiting(e) == 0) {
        return false;
    }
    (void)pthread_mutex_lock(&e->model->lock);
    gn_engine_sched_reap(e);
    gn_engine_sched_admit(e);
    gn_engine_sched_make_room(e);
    gn_engine_batch_fill(e);
    bool any = e->n_rows != 0;
    if (any) {
        gn_engine_step(e);
    }
    note_pages(e);
    (void)pthread_mutex_unlock(&e->model->lock);
    return any;
}

static bool is_stopping(gn_engine *e)
{
    (void)pthread_mutex_lock(&e->lock);
    bool stopping = e->stopping;
    (void)pthread_mutex_unlock(&e->lock);
    return stopping;
}

static void *loop_main(void *arg)
{
    gn_engine *e = arg;
    for (;;) {
        unsigned seen = gn_engine_wake_count(&e->wake);
        bool stopping = is_stopping(e);
        bool worked = take_turn(e);
        uint32_t n_waiting = gn_engine_sched_n_waiting(e);
        if (stopping && n_waiting == 0 && e->n_running == 0) {
            return NULL;
        }
        if (!worked) {
            gn_engine_wake_wait(&e->wake, seen, n_waiting != 0 ? PAGES_MS : -1);
        }
    }
}

/* --- life --- */

static uint32_t choose_number(uint32_t given, uint32_t usual, uint32_t most)
{
    uint32_t n = given != 0 ? given : usual;
    return n < most ? n : most;
}

static gn_status fill(gn_engine *e, const gn_engine_options *options)
{
    e->options = options != NULL ? *options : (gn_engine_options){0};
    gn_engine_options *o = &e->options;
    o->step_tokens = choose_number(o->step_tokens, GN_NET_MAX_ROWS, GN_NET_MAX_ROWS);
    o->max_waiting = choose_number(o->max_waiting, DEFAULT_WAITING, UINT32_MAX);
    o->max_running = choose_number(o->max_running, DEFAULT_RUNNING, o->step_tokens);
    e->max_items = o->max_running + PROMPT_ITEMS;
    e->running = gn_calloc(o->max_running, sizeof(gn_request *));
    e->items = gn_calloc(e->max_items, sizeof *e->items);
    e->logits = gn_alloc_aligned(e->max_items, (size_t)e->model->info.n_vocab * sizeof *e->logits);
    if (e->running == NULL || e->items == NULL || e->logits == NULL) {
        return gn_alloc_failed();
    }
    if (!o->no_prefix_cache) {
        GN_TRY(gn_kv_prefix_create(e->model->kv, &e->prefix));
    }
    e->stats.n_pages = gn_kv_pool_capacity(e->model->kv);
    e->stats.page_bytes = gn_kv_page_bytes(gn_kv_pool_shape(e->model->kv));
    return GN_OK;
}

static void destroy(gn_engine *e)
{
    (void)pthread_mutex_lock(&e->model->lock);
    gn_kv_prefix_destroy(e->prefix);
    (void)pthread_mutex_unlock(&e->model->lock);
    gn_free((void *)e->running);
    gn_free(e->items);
    gn_free_aligned(e->logits);
    gn_free(e->nonfinite);
    gn_engine_wake_fini(&e->wake);
    (void)pthread_mutex_destroy(&e->lock);
    gn_free(e);
}

gn_status gn_engine_create(gn_model *model, const gn_engine_options *options, gn_engine **out)
{
    GN_REQUIRE(model->net != NULL, GN_E_UNSUPPORTED,
               "%s: architecture \"%s\" is an encoder: it makes embeddings and can't generate",
               gn_source_path(model->source), model->info.architecture);
    gn_engine *e = gn_calloc(1, sizeof *e);
    if (e == NULL) {
        return gn_alloc_failed();
    }
    e->model = model;
    (void)pthread_mutex_init(&e->lock, NULL);
    gn_engine_wake_init(&e->wake);
    gn_status status = fill(e, options);
    if (status == GN_OK && pthread_create(&e->thread, NULL, loop_main, e) != 0) {
        status = gn_base_fail(GN_E_UNAVAILABLE, "no thread for the step loop");
    }
    if (status != GN_OK) {
        destroy(e);
        return status;
    }
    *out = e;
    return GN_OK;
}

void gn_engine_destroy(gn_engine *e)
{
    if (e == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&e->lock);
    e->stopping = true;
    (void)pthread_mutex_unlock(&e->lock);
    gn_engine_wake_up(&e->wake);
    (void)pthread_join(e->thread, NULL);
    assert(e->n_running == 0);
    destroy(e);
}

gn_model *gn_engine_model(const gn_engine *e)
{
    return e->model;
}

/* --- requests --- */

gn_status gn_request_submit(gn_engine *e, const gn_request_options *options, gn_request **out)
{
    gn_request *r = NULL;
    GN_TRY(gn_engine_request_create(e, options, &r));
    gn_status status = gn_engine_queue_push(e, r);
    if (status != GN_OK) {
        gn_engine_request_unref(r);
        gn_engine_request_unref(r);
        return status;
    }
    *out = r;
    return GN_OK;
}

/* Call fn on all that run or wait, in the order of their turn, until it says false. */
static void each(gn_engine *e, bool (*fn)(void *ctx, gn_request *r), void *ctx)
{
    (void)pthread_mutex_lock(&e->lock);
    bool more = true;
    for (uint32_t i = 0; i < e->n_running && more; i++) {
        more = fn(ctx, e->running[i]);
    }
    for (int i = 0; i < GN_N_PRIORITIES; i++) {
        for (gn_request *r = e->queues[i].first; r != NULL && more; r = r->next) {
            more = fn(ctx, r);
        }
    }
    (void)pthread_mutex_unlock(&e->lock);
}

typedef struct list {
    gn_request_info *out;
    size_t cap;
    size_t n;
} list;

static bool add_info(void *ctx, gn_request *r)
{
    list *l = ctx;
    if (l->n < l->cap) {
        (void)pthread_mutex_lock(&r->lock);
        l->out[l->n] = r->info;
        (void)pthread_mutex_unlock(&r->lock);
    }
    l->n++;
    return true;
}

size_t gn_engine_list(gn_engine *e, gn_request_info *out, size_t cap)
{
    list l = {.out = out, .cap = cap};
    each(e, add_info, &l);
    return l.n;
}

typedef struct search {
    uint64_t id;
    bool found;
} search;

static bool cancel_id(void *ctx, gn_request *r)
{
    search *s = ctx;
    if (r->id == s->id) {
        atomic_store(&r->cancelled, true);
        s->found = true;
    }
    return !s->found;
}

bool gn_engine_cancel(gn_engine *e, uint64_t id)
{
    search s = {.id = id};
    each(e, cancel_id, &s);
    if (s.found) {
        gn_engine_wake_up(&e->wake);
    }
    return s.found;
}

void gn_engine_get_stats(gn_engine *e, gn_engine_stats *out)
{
    (void)pthread_mutex_lock(&e->lock);
    *out = e->stats;
    out->n_running = e->n_running;
    for (int i = 0; i < GN_N_PRIORITIES; i++) {
        out->n_waiting[i] = e->queues[i].n;
    }
    (void)pthread_mutex_unlock(&e->lock);
}
