/* Workers wait for a new epoch: they spin for a while, then sleep on a condition variable. A loop's
 * chunks are handed out by one atomic counter; the caller waits until every worker has left the loop,
 * so the loop's context may live on its stack.
 *
 * Invariants: (1) fn, ctx, n_items and grain change only while no worker is inside a loop;
 * (2) `epoch` is advanced by the caller alone, after the loop's fields are written (release);
 * (3) `running` counts workers that have not finished the current epoch. */
#include "os/pool.h"

#include "base/alloc.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define spin_pause() _mm_pause()
#elif defined(__aarch64__)
#define spin_pause() __asm__ volatile("yield")
#else
#define spin_pause() ((void)0)
#endif

#define SPINS_BEFORE_SLEEP 4000

typedef struct worker {
    gn_os_pool *pool;
    pthread_t thread;
    int index;
} worker;

struct gn_os_pool {
    int n_threads;
    worker *workers; /* [n_threads - 1] */
    int n_started;

    pthread_mutex_t lock;
    pthread_cond_t wake; /* a new epoch, or stop */
    pthread_cond_t done; /* running fell to 0 */
    int sleepers;        /* workers waiting on `wake`; under lock */
    bool stop;           /* under lock */

    gn_os_pool_fn *fn;
    void *ctx;
    size_t n_items;
    size_t grain;
    _Alignas(64) atomic_uint epoch;
    _Alignas(64) atomic_size_t next;
    _Alignas(64) atomic_int running;
};

static void work(gn_os_pool *pool, int index)
{
    for (;;) {
        size_t begin = atomic_fetch_add_explicit(&pool->next, pool->grain, memory_order_relaxed);
        if (begin >= pool->n_items) {
            return;
        }
        size_t left = pool->n_items - begin;
        pool->fn(pool->ctx, begin, begin + (left < pool->grain ? left : pool->grain), index);
    }
}

/* Wait until the epoch differs from `seen`; returns false to stop. */
static bool wait_for_epoch(gn_os_pool *pool, unsigned seen)
{
    for (int i = 0; i < SPINS_BEFORE_SLEEP; i++) {
        if (atomic_load_explicit(&pool->epoch, memory_order_acquire) != seen) {
            return true;
        }
        spin_pause();
    }
    (void)pthread_mutex_lock(&pool->lock);
    pool->sleepers++;
    while (!pool->stop && atomic_load_explicit(&pool->epoch, memory_order_acquire) == seen) {
        (void)pthread_cond_wait(&pool->wake, &pool->lock);
    }
    pool->sleepers--;
    bool go = !pool->stop;
    (void)pthread_mutex_unlock(&pool->lock);
    return go;
}

static void *worker_main(void *arg)
{
    worker *self = arg;
    gn_os_pool *pool = self->pool;
    unsigned seen = 0;
    while (wait_for_epoch(pool, seen)) {
        seen++;
        work(pool, self->index);
        if (atomic_fetch_sub_explicit(&pool->running, 1, memory_order_acq_rel) == 1) {
            (void)pthread_mutex_lock(&pool->lock);
            (void)pthread_cond_signal(&pool->done);
            (void)pthread_mutex_unlock(&pool->lock);
        }
    }
    return NULL;
}

gn_status gn_os_pool_create(int n_threads, gn_os_pool **out)
{
    GN_REQUIRE(n_threads >= 1 && n_threads <= 1024, GN_E_ARG,
               "threads: found %d, expected 1 to 1024", n_threads);
    gn_os_pool *pool = gn_alloc_aligned(1, sizeof *pool);
    worker *workers = gn_calloc((size_t)n_threads, sizeof *workers);
    if (pool == NULL || workers == NULL) {
        gn_free_aligned(pool);
        gn_free(workers);
        return gn_alloc_failed();
    }
    *pool = (gn_os_pool){.n_threads = n_threads, .workers = workers};
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->wake, NULL);
    (void)pthread_cond_init(&pool->done, NULL);
    for (int i = 1; i < n_threads; i++) {
        worker *w = &workers[i - 1];
        *w = (worker){.pool = pool, .index = i};
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0) {
            gn_os_pool_destroy(pool);
            return gn_base_fail(GN_E_UNAVAILABLE, "cannot start thread %d of %d", i + 1, n_threads);
        }
        pool->n_started++;
    }
    *out = pool;
    return GN_OK;
}

void gn_os_pool_destroy(gn_os_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    (void)pthread_cond_broadcast(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->n_started; i++) {
        (void)pthread_join(pool->workers[i].thread, NULL);
    }
    (void)pthread_cond_destroy(&pool->done);
    (void)pthread_cond_destroy(&pool->wake);
    (void)pthread_mutex_destroy(&pool->lock);
    gn_free(pool->workers);
    gn_free_aligned(pool);
}

int gn_os_pool_threads(const gn_os_pool *pool)
{
    return pool != NULL ? pool->n_threads : 1;
}

void gn_os_pool_run(gn_os_pool *pool, size_t n_items, size_t grain, gn_os_pool_fn *fn, void *ctx)
{
    if (n_items == 0) {
        return;
    }
    if (pool == NULL || pool->n_threads == 1 || n_items <= grain) {
        fn(ctx, 0, n_items, 0);
        return;
    }
    pool->fn = fn;
    pool->ctx = ctx;
    pool->n_items = n_items;
    pool->grain = grain;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->running, pool->n_threads - 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&pool->epoch, 1, memory_order_release);
    (void)pthread_mutex_lock(&pool->lock);
    if (pool->sleepers > 0) {
        (void)pthread_cond_broadcast(&pool->wake);
    }
    (void)pthread_mutex_unlock(&pool->lock);

    work(pool, 0);

    for (int i = 0; i < SPINS_BEFORE_SLEEP; i++) {
        if (atomic_load_explicit(&pool->running, memory_order_acquire) == 0) {
            return;
        }
        spin_pause();
    }
    (void)pthread_mutex_lock(&pool->lock);
    while (atomic_load_explicit(&pool->running, memory_order_acquire) != 0) {
        (void)pthread_cond_wait(&pool->done, &pool->lock);
    }
    (void)pthread_mutex_unlock(&pool->lock);
}

/* The cgroup v2 CPU quota in whole processors, rounded up; 0 where there is none. */
static int cgroup_quota(void)
{
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (f == NULL) {
        return 0;
    }
    long quota = 0;
    long period = 0;
    int n = fscanf(f, "%ld %ld", &quota, &period);
    (void)fclose(f);
    return n == 2 && quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

int gn_os_cpu_count(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int quota = cgroup_quota();
    if (quota > 0 && quota < n) {
        n = quota;
    }
    return n > 0 ? n : 1;
}
