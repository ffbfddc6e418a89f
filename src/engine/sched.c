/* Who runs. Classes are strict: one that waits in a higher class comes before all of a lower class, and takes their
 * place and pages; within a class the older comes first. Nothing ages: what must not starve belongs in a
 * higher class.
 *
 * A request is let in with the pages of all it knows (prompt, and answer where it was pre-empted), so a prompt is
 * not begun that has no room. Pages of the answer come one by one; who finds none takes them from the last of
 * `running`, which is the youngest of the lowest class, or gives way itself where it is that. Then the one that lost
 * its pages needs as many at once to come back: it waits until somebody ends, and nothing goes to and fro. */
#include "base/alloc.h"
#include "engine/engine_impl.h"
#include "os/clock.h"

#include <assert.h>
#include <string.h>

/* --- the queue --- */

/* Put r where its age belongs: a pre-empted one is older than those that came after it. Under the engine's lock. */
static void insert(gn_engine_queue *queue, gn_request *r)
{
    gn_request **at = &queue->first;
    while (*at != NULL && (*at)->id < r->id) {
        at = &(*at)->next;
    }
    r->next = *at;
    *at = r;
    queue->n++;
}

static gn_request *pop(gn_engine_queue *queue)
{
    gn_request *r = queue->first;
    queue->first = r->next;
    queue->n--;
    r->next = NULL;
    return r;
}

static uint32_t n_waiting(const gn_engine *e)
{
    uint32_t n = 0;
    for (int i = 0; i < GN_N_PRIORITIES; i++) {
        n += e->queues[i].n;
    }
    return n;
}

uint32_t gn_engine_sched_n_waiting(gn_engine *e)
{
    (void)pthread_mutex_lock(&e->lock);
    uint32_t n = n_waiting(e);
    (void)pthread_mutex_unlock(&e->lock);
    return n;
}

gn_status gn_engine_queue_push(gn_engine *e, gn_request *r)
{
    gn_status status = GN_OK;
    (void)pthread_mutex_lock(&e->lock);
    if (e->stopping) {
        status = gn_base_fail(GN_E_UNAVAILABLE, "the engine ends");
    } else if (n_waiting(e) >= e->options.max_waiting) {
        status = gn_base_fail(GN_E_UNAVAILABLE, "%u requests wait already, the most that may",
                              e->options.max_waiting);
    } else {
        r->id = ++e->next_id;
        r->info.usage.id = r->id;
        r->info.usage.submit_ns = gn_os_now_ns();
        insert(&e->queues[r->priority], r);
        e->stats.n_requests++;
    }
    (void)pthread_mutex_unlock(&e->lock);
    if (status == GN_OK) {
        gn_engine_wake_up(&e->wake);
    }
    return status;
}

/* The next to be let in, or NULL. */
static gn_request *head(gn_engine *e)
{
    gn_request *r = NULL;
    (void)pthread_mutex_lock(&e->lock);
    for (int i = 0; i < GN_N_PRIORITIES && r == NULL; i++) {
        r = e->queues[i].first;
    }
    (void)pthread_mutex_unlock(&e->lock);
    return r;
}

/* --- the running --- */

/* Move the head of its queue to where it belongs among the running. */
static void enter(gn_engine *e, gn_request *r)
{
    (void)pthread_mutex_lock(&e->lock);
    gn_request *popped = pop(&e->queues[r->priority]);
    assert(popped == r && e->n_running < e->options.max_running);
    (void)popped;
    uint32_t at = e->n_running++;
    while (at > 0 &&
           (e->running[at - 1]->priority > r->priority ||
            (e->running[at - 1]->priority == r->priority && e->running[at - 1]->id > r->id))) {
        e->running[at] = e->running[at - 1];
        at--;
    }
    e->running[at] = r;
    (void)pthread_mutex_unlock(&e->lock);
}

/* Take r out of the running; the engine's lock is held. */
static void leave(gn_engine *e, const gn_request *r)
{
    uint32_t at = 0;
    while (e->running[at] != r) {
        at++;
        assert(at < e->n_running);
    }
    e->n_running--;
    memmove(&e->running[at], &e->running[at + 1], (e->n_running - at) * sizeof *e->running);
}

static void count_end(gn_engine *e, gn_status status)
{
    e->stats.n_ended++;
    e->stats.n_cancelled += status == GN_E_CANCELLED;
    e->stats.n_failed += status != GN_OK && status != GN_E_CANCELLED;
}

void gn_engine_sched_end(gn_engine *e, gn_request *r, gn_status status, gn_finish finish,
                         int32_t stop_index)
{
    gn_engine_reuse_keep(e, r, true);
    (void)pthread_mutex_lock(&e->lock);
    leave(e, r);
    count_end(e, status);
    (void)pthread_mutex_unlock(&e->lock);
    gn_engine_request_end(r, status, finish, stop_index);
}

/* Take the pages of one that runs; it waits again. */
static void preempt(gn_engine *e, gn_request *r)
{
    gn_engine_reuse_keep(e, r, true);
    gn_engine_reuse_drop(r);
    gn_engine_request_note(r, GN_REQUEST_WAITING);
    (void)pthread_mutex_lock(&r->lock);
    r->info.usage.n_preempted++;
    (void)pthread_mutex_unlock(&r->lock);
    (void)pthread_mutex_lock(&e->lock);
    leave(e, r);
    insert(&e->queues[r->priority], r);
    e->stats.n_preemptions++;
    (void)pthread_mutex_unlock(&e->lock);
}

/* --- ends from outside --- */

static bool must_end(const gn_engine *e, const gn_request *r, uint64_t now, gn_status *status,
                     gn_finish *finish)
{
    if (e->stopping || atomic_load(&r->cancelled)) {
        *status = GN_E_CANCELLED;
        *finish = GN_FINISH_CANCELLED;
        return true;
    }
    *status = GN_OK;
    *finish = GN_FINISH_DEADLINE;
    return r->deadline_ns != 0 && now >= r->deadline_ns;
}

/* Take the first that must end out of the queue; NULL: none. Under the engine's lock. */
static gn_request *take_ended(gn_engine *e, uint64_t now, gn_status *status, gn_finish *finish)
{
    for (int i = 0; i < GN_N_PRIORITIES; i++) {
        for (gn_request **at = &e->queues[i].first; *at != NULL; at = &(*at)->next) {
            gn_request *r = *at;
            if (must_end(e, r, now, status, finish)) {
                *at = r->next;
                e->queues[i].n--;
                count_end(e, *status);
                return r;
            }
        }
    }
    return NULL;
}

void gn_engine_sched_reap(gn_engine *e)
{
    uint64_t now = gn_os_now_ns();
    gn_status status = GN_OK;
    gn_finish finish = GN_FINISH_CANCELLED;
    for (;;) {
        (void)pthread_mutex_lock(&e->lock);
        gn_request *waiting = take_ended(e, now, &status, &finish);
        (void)pthread_mutex_unlock(&e->lock);
        if (waiting == NULL) {
            break;
        }
        gn_engine_request_end(waiting, status, finish, -1);
    }
    for (uint32_t i = e->n_running; i-- > 0;) {
        (void)pthread_mutex_lock(&e->lock);
        bool ends = must_end(e, e->running[i], now, &status, &finish);
        (void)pthread_mutex_unlock(&e->lock);
        if (ends) {
            gn_engine_sched_end(e, e->running[i], status, finish, -1);
        }
    }
}

/* --- pages --- */

/* Room for all that r knows. Its codes are those of gn_kv_table_reserve(). */
static gn_status get_pages(gn_request *r)
{
    return gn_kv_table_reserve(&r->table, (uint32_t)r->n_ids);
}

/* The same for one that is let in: it begins with what others have left. */
static gn_status get_first_pages(gn_engine *e, gn_request *r)
{
    gn_engine_reuse_attach(e, r);
    gn_status status =
        gn_engine_reuse_has_room(e, r)
            ? get_pages(r)
            : gn_base_fail(GN_E_NO_PAGES, "the KV pool is full: other requests hold its pages");
    if (status != GN_OK) {
        gn_engine_reuse_drop(r);
    }
    return status;
}

static gn_request *last_running(const gn_engine *e)
{
    return e->n_running > 0 ? e->running[e->n_running - 1] : NULL;
}

/* Place and pages for the head of the queue, from those of lower classes where it must be. */
static gn_status make_way(gn_engine *e, gn_request *r)
{
    for (;;) {
        gn_request *last = last_running(e);
        bool has_place = e->n_running < e->options.max_running;
        gn_status status = has_place ? get_first_pages(e, r) : GN_E_NO_PAGES;
        if (status == GN_OK || last == NULL || last->priority <= r->priority) {
            return status;
        }
        preempt(e, last);
    }
}

/* The head of the queue could not be let in: where nobody runs who could give memory back, it ends. Pages may be
 * with sessions beside this engine; then it waits. */
static bool ends_without_memory(gn_engine *e, gn_request *r, gn_status status)
{
    if (status != GN_E_NOMEM || e->n_running != 0) {
        return false;
    }
    gn_engine_request_keep_message(r);
    (void)pthread_mutex_lock(&e->lock);
    (void)pop(&e->queues[r->priority]);
    count_end(e, status);
    (void)pthread_mutex_unlock(&e->lock);
    gn_engine_request_end(r, status, GN_FINISH_CANCELLED, -1);
    return true;
}

static void note_start(gn_engine *e, gn_request *r)
{
    gn_engine_request_note(r, GN_REQUEST_PREFILL);
    (void)pthread_mutex_lock(&r->lock);
    bool first = r->info.usage.start_ns == 0;
    if (first) {
        r->info.usage.start_ns = gn_os_now_ns();
        r->info.usage.n_cached = (int32_t)r->table.n_tok;
    }
    (void)pthread_mutex_unlock(&r->lock);
    (void)pthread_mutex_lock(&e->lock);
    e->stats.n_cache_query_tok += first ? r->n_prompt : 0;
    e->stats.n_cache_hit_tok += first ? r->table.n_tok : 0;
    (void)pthread_mutex_unlock(&e->lock);
}

void gn_engine_sched_admit(gn_engine *e)
{
    gn_request *r;
    while ((r = head(e)) != NULL) {
        gn_status status = gn_engine_request_start(r);
        if (status == GN_OK) {
            status = make_way(e, r);
        }
        if (status == GN_OK) {
            enter(e, r);
            note_start(e, r);
        } else if (!ends_without_memory(e, r, status)) {
            return;
        }
    }
}

void gn_engine_sched_make_room(gn_engine *e)
{
    uint32_t i = 0;
    while (i < e->n_running) {
        gn_request *r = e->running[i];
        gn_status status = get_pages(r);
        gn_request *last = last_running(e);
        if (status == GN_OK) {
            i++;
        } else if (last != r) {
            preempt(e, last);
        } else if (status == GN_E_NOMEM && e->n_running == 1) {
            gn_engine_request_keep_message(r);
            gn_engine_sched_end(e, r, status, GN_FINISH_CANCELLED, -1);
        } else {
            preempt(e, r);
        }
    }
}
