/* The writer's thread runs at idle priority beside the first answers, so it takes only what they leave; who
 * waits for it (gn_engine_panels_wait) gives it its normal share.
 *
 * Threads: everything but the three atomics and `thread_id` is written before the thread starts. `finished`
 * is set by the thread as its last step (release), `stop` by the closing thread. */
#include "engine/panels.h"

#include "base/alloc.h"
#include "base/log.h"
#include "file/panel_cache.h"
#include "os/clock.h"
#include "os/priority.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define WAIT_STEP_NS 2000000

struct gn_engine_panels {
    gn_view **weights; /* [n], the net's own */
    size_t n;
    size_t cap;
    gn_panel_cache *cache; /* NULL: none yet */
    uint64_t bytes;        /* of the cache file */

    gn_buf folder;
    char *model;
    gn_panel_key key;
    uint64_t limit;
    bool started;
    pthread_t thread;
    _Atomic int64_t thread_id;
    _Atomic uint64_t done;
    atomic_bool stop;
    atomic_bool finished;
};

static void count(void *ctx, gn_view *weight)
{
    gn_engine_panels *p = ctx;
    (void)weight;
    p->cap++;
}

static void collect(void *ctx, gn_view *weight)
{
    gn_engine_panels *p = ctx;
    p->weights[p->n++] = weight;
}

static const gn_view *const *views(const gn_engine_panels *p)
{
    return (const gn_view *const *)p->weights;
}

static bool on_progress(void *ctx, uint64_t done, uint64_t total)
{
    gn_engine_panels *p = ctx;
    (void)total;
    atomic_store_explicit(&p->done, done, memory_order_relaxed);
    return !atomic_load_explicit(&p->stop, memory_order_relaxed);
}

static void *write_main(void *arg)
{
    gn_engine_panels *p = arg;
    int64_t id = gn_os_thread_id();
    gn_os_thread_set_idle(id, true);
    atomic_store_explicit(&p->thread_id, id, memory_order_release);
    const gn_panel_write job = {.folder = p->folder.data,
                                .model = p->model,
                                .key = p->key,
                                .weights = views(p),
                                .n = p->n,
                                .limit_bytes = p->limit,
                                .progress = on_progress,
                                .ctx = p};
    gn_status status = gn_panel_cache_write(&job);
    if (status != GN_OK && status != GN_E_CANCELLED && status != GN_E_STATE) {
        gn_base_log("packed weights are not cached: %s", gn_error_message());
    }
    atomic_store_explicit(&p->finished, true, memory_order_release);
    return NULL;
}

/* The model's path as the list of cache files shows it. */
static char *full_path(const char *path)
{
    char *full = realpath(path, NULL);
    char *copy = gn_strdup(full != NULL ? full : path);
    free(full);
    return copy;
}

static gn_status start_writer(gn_engine_panels *p, const gn_source *source,
                              const gn_model_options *options)
{
    p->model = full_path(gn_source_path(source));
    if (p->model == NULL) {
        return gn_alloc_failed();
    }
    p->limit = options->cache_bytes;
    p->started = pthread_create(&p->thread, NULL, write_main, p) == 0;
    return GN_OK;
}

static gn_status open_cache(gn_engine_panels *p, const gn_source *source, gn_net *net,
                            const gn_model_options *options)
{
    gn_net_each_weight(net, count, p);
    p->weights = gn_calloc(p->cap, sizeof *p->weights);
    if (p->weights == NULL) {
        return gn_alloc_failed();
    }
    gn_net_each_weight(net, collect, p);
    p->bytes = gn_panel_cache_bytes(views(p), p->n);
    if (p->bytes == 0) {
        return GN_OK;
    }
    GN_TRY(options->cache_folder != NULL ? gn_buf_puts(&p->folder, options->cache_folder)
                                         : gn_panel_cache_folder(&p->folder));
    GN_TRY(gn_panel_key_find(source, views(p), p->n, &p->key));
    gn_status status = gn_panel_cache_open(p->folder.data, &p->key, views(p), p->n, &p->cache);
    if (status == GN_OK) {
        for (size_t i = 0; i < p->n; i++) {
            p->weights[i]->panels = gn_panel_cache_at(p->cache, i);
        }
        return GN_OK;
    }
    if (status == GN_E_FORMAT) {
        gn_base_log("a cache file is not used: %s", gn_error_message());
    }
    GN_REQUIRE(status != GN_E_NOMEM, status, "out of memory");
    return options->cache == GN_CACHE_AUTO ? start_writer(p, source, options) : GN_OK;
}

gn_status gn_engine_panels_open(const gn_source *source, gn_net *net,
                                const gn_model_options *options, gn_engine_panels **out)
{
    gn_engine_panels *p = gn_calloc(1, sizeof *p);
    if (p == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = open_cache(p, source, net, options);
    if (status == GN_E_NOMEM) {
        gn_engine_panels_close(p);
        return status;
    }
    if (status != GN_OK) {
        gn_base_log("packed weights are not cached: %s", gn_error_message());
    }
    *out = p;
    return GN_OK;
}

void gn_engine_panels_close(gn_engine_panels *p)
{
    if (p == NULL) {
        return;
    }
    if (p->started) {
        atomic_store_explicit(&p->stop, true, memory_order_relaxed);
        (void)gn_engine_panels_wait(p, 0, NULL, NULL);
        (void)pthread_join(p->thread, NULL);
    }
    gn_panel_cache_close(p->cache);
    gn_buf_fini(&p->folder);
    gn_free(p->model);
    gn_free(p->weights);
    gn_free(p);
}

bool gn_engine_panels_writing(const gn_engine_panels *p)
{
    return p != NULL && p->started && !atomic_load_explicit(&p->finished, memory_order_acquire);
}

bool gn_engine_panels_wait(gn_engine_panels *p, int32_t ms, uint64_t *done, uint64_t *total)
{
    bool finished = true;
    if (p != NULL && p->started) {
        int64_t id = atomic_load_explicit(&p->thread_id, memory_order_acquire);
        if (id != 0) {
            gn_os_thread_set_idle(id, false);
        }
        uint64_t end = gn_os_now_ns() + (uint64_t)ms * 1000000;
        const struct timespec pause = {0, WAIT_STEP_NS};
        while (!(finished = atomic_load_explicit(&p->finished, memory_order_acquire)) &&
               gn_os_now_ns() < end) {
            (void)nanosleep(&pause, NULL);
        }
    }
    if (done != NULL) {
        *done = p != NULL ? atomic_load_explicit(&p->done, memory_order_relaxed) : 0;
    }
    if (total != NULL) {
        *total = p != NULL ? p->bytes : 0;
    }
    return finished;
}

uint64_t gn_engine_panels_bytes(const gn_engine_panels *p)
{
    return p != NULL && p->cache != NULL ? p->bytes : 0;
}
